//! Unit tests of grids.

use super::*;
use crate::geometry::doubled_area;

/// The whole world.
const WORLD: Extent = Extent {
    low: Point::new(-900_000_000, -1_800_000_000),
    high: Point::new(900_000_000, 1_800_000_000),
};

fn polygon(rings: &[&[(i32, i32)]]) -> AreaPolygon {
    let ring = |points: &[(i32, i32)]| -> Vec<Point> {
        let points = points.iter();
        points
            .map(|&(lon_e7, lat_e7)| Point { lat_e7, lon_e7 })
            .collect()
    };
    let mut rings = rings.iter().map(|points| ring(points));
    AreaPolygon {
        outer: rings.next().unwrap(),
        holes: rings.collect(),
    }
}

fn area(polygons: &[AreaPolygon]) -> i128 {
    polygons
        .iter()
        .flat_map(AreaPolygon::rings)
        .map(|ring| doubled_area(ring))
        .sum()
}

fn extent(west: i32, south: i32, east: i32, north: i32) -> Extent {
    let corner = |lon_e7, lat_e7| Point { lat_e7, lon_e7 };
    Extent {
        low: corner(west, south),
        high: corner(east, north),
    }
}

fn box_area(of: &Extent) -> i128 {
    let side = |low: i32, high: i32| i128::from(high) - i128::from(low);
    2 * side(of.low.lon_e7, of.high.lon_e7) * side(of.low.lat_e7, of.high.lat_e7)
}

/// Checks for each cell that the polygons of the area and the polygons outside of the area add up to the cell. If cells
/// do not overlap, also checks that the areas in all cells add up to the area of the polygons, with a difference of at
/// most `slack`.
fn check(bounds: Extent, area_of: &[AreaPolygon], grid: Grid, slack: i128) {
    let (mut inside, mut all) = (0, 0);
    for cell in grid.cells(bounds, area_of) {
        let (land, rest) = (cell.part.polygons(), cell.part.outside_polygons());
        assert_eq!(
            area(&land) + area(&rest),
            box_area(&cell.part.bounds),
            "{:?}",
            cell.number
        );
        for polygon in land.iter().chain(&rest) {
            let ring =
                |points: &Vec<Point>| crate::geometry::Ring::new("ring".into(), points.clone());
            let shape = crate::geometry::Shape {
                polygons: vec![crate::geometry::Polygon {
                    outer: ring(&polygon.outer),
                    holes: polygon.holes.iter().map(ring).collect(),
                }],
            };
            shape.check().unwrap();
        }
        inside += area(&land);
        all += box_area(&cell.part.bounds);
    }
    if grid.overlap_e7 == 0 {
        assert_eq!(all, box_area(&bounds));
        assert!(
            (inside - area(area_of)).abs() <= slack,
            "{inside} {}",
            area(area_of)
        );
    }
}

#[test]
fn area_and_rest_add_up_to_each_cell() {
    let hole: &[(i32, i32)] = &[(20, 20), (20, 60), (60, 60), (60, 20)];
    let bounds = extent(0, 0, 100, 100);
    for area_of in [
        vec![],
        vec![polygon(&[&[(0, 0), (100, 0), (100, 100), (0, 100)]])],
        vec![polygon(&[&[(0, 0), (100, 0), (100, 100), (0, 100)], hole])],
        vec![polygon(&[&[(10, 10), (90, 10), (90, 90), (10, 90)], hole])],
        // A lake with one corner on the edge of the box, and another corner at a point where four cells meet.
        vec![polygon(&[
            &[(0, 0), (100, 0), (100, 100), (0, 100)],
            &[(0, 50), (20, 60), (50, 50), (20, 40)],
        ])],
        // Two islands touch each other at a point where four cells meet, and both touch the edge of the box.
        vec![
            polygon(&[&[(0, 50), (25, 25), (50, 50), (25, 75)]]),
            polygon(&[&[(50, 50), (75, 25), (100, 50), (75, 75)]]),
        ],
        // Edges that lie on the edges of cells.
        vec![polygon(&[&[
            (0, 0),
            (50, 0),
            (50, 25),
            (75, 25),
            (75, 50),
            (25, 50),
            (25, 75),
            (0, 75),
        ]])],
        // Slopes. The points at which the edges of cells cut them are rounded.
        vec![
            polygon(&[&[(0, 0), (97, 0), (13, 91)]]),
            polygon(&[&[(97, 1), (98, 99), (14, 92)]]),
        ],
    ] {
        for cell_e7 in [100, 50, 25, 10, 7] {
            for overlap_e7 in [0, 1, 3] {
                check(
                    bounds,
                    &area_of,
                    Grid {
                        cell_e7,
                        overlap_e7,
                    },
                    1_000,
                );
            }
        }
    }
}

#[test]
fn the_whole_world_is_divided() {
    let grid = Grid {
        cell_e7: 300_000_000,
        overlap_e7: 1000,
    };
    assert_eq!(grid.cells(WORLD, &[]).count(), 12 * 6);
    let pole = polygon(&[&[
        (-1_800_000_000, -900_000_000),
        (1_800_000_000, -900_000_000),
        (1_800_000_000, -700_000_000),
        (123_456_789, -654_321_098),
        (-1_800_000_000, -700_000_000),
    ]]);
    check(WORLD, std::slice::from_ref(&pole), grid, 0);
    let grid = Grid {
        overlap_e7: 0,
        ..grid
    };
    check(WORLD, &[pole], grid, 1 << 40);
}

/// The islands are triangles and quadrangles with random corners on a coarse grid, so that many of them touch.
#[test]
fn random_islands_that_touch_cells_and_each_other_are_divided() {
    let mut state = 7u64;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % below) as i32
    };
    let bounds = extent(0, 0, 400, 400);
    for _ in 0..40 {
        // The sides of a square are 100 units long. A square is empty, or has one island that touches its edges.
        let mut islands = Vec::new();
        for column in 0..4 {
            for row in 0..4 {
                if random(4) == 0 {
                    continue;
                }
                let at = |lon: i32, lat: i32| (100 * column + lon, 100 * row + lat);
                let [south, east, north, west] =
                    [random(5), random(5), random(5), random(5)].map(|at| 25 * at);
                let mut ring = vec![at(south, 0), at(100, east), at(north, 100), at(0, west)];
                ring.dedup();
                if ring.first() == ring.last() {
                    ring.pop();
                }
                if ring.len() > 2 {
                    islands.push(polygon(&[&ring]));
                }
            }
        }
        islands.retain(|island| area(std::slice::from_ref(island)) > 0);
        for cell_e7 in [400, 100, 90, 33] {
            for overlap_e7 in [0, 5] {
                check(
                    bounds,
                    &islands,
                    Grid {
                        cell_e7,
                        overlap_e7,
                    },
                    4_000,
                );
            }
        }
    }
}
