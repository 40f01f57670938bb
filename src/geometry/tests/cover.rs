use super::*;
use crate::geometry::area_index::{AreaIndex, Cover};
use crate::osm::Bbox;

fn bbox((west, south): (i32, i32), (east, north): (i32, i32)) -> Bbox {
    Bbox {
        min_lat_e7: south,
        max_lat_e7: north,
        min_lon_e7: west,
        max_lon_e7: east,
    }
}

fn assert_cover_is_sound(shapes: &[Shape], index: &AreaIndex, bbox: &Bbox) -> Cover {
    let cover = index.cover(bbox);
    assert!(cover.inside.is_sorted() && cover.touched.is_sorted());
    for (region, shape) in (0u32..).zip(shapes) {
        let is_inside = cover.inside.contains(&region);
        let is_touched = cover.touched.contains(&region);
        assert!(!(is_inside && is_touched));
        let rows = bbox.min_lat_e7..=bbox.max_lat_e7;
        let mut points =
            rows.flat_map(|y| (bbox.min_lon_e7..=bbox.max_lon_e7).map(move |x| point((x, y))));
        if is_inside {
            let all = points.all(|p| holds_by_winding(shape, p));
            assert!(all, "region {region} is not all of {bbox}: {shapes:?}");
        } else if !is_touched {
            let any = points.any(|p| holds_by_winding(shape, p));
            assert!(!any, "region {region} is missing in {bbox}: {shapes:?}");
        }
    }
    cover
}

#[test]
fn a_cover_claims_no_more_and_no_less_than_the_points_of_the_box() {
    let random = &mut Random(11);
    for round in 0..rounds(400) {
        let scale = [1, 2, 3, 5][round % 4];
        let shapes: Vec<Shape> = (0..random.between(1, 4))
            .map(|_| scribble(random, 6, scale))
            .collect();
        let index = AreaIndex::new(&shapes);
        for _ in 0..60 {
            let limit = 6 * scale + 4;
            let (a, b) = (random_point(random, limit), random_point(random, limit));
            let least = (a.0.min(b.0) - 2, a.1.min(b.1) - 2);
            let most = (a.0.max(b.0) - 2, a.1.max(b.1) - 2);
            assert_cover_is_sound(&shapes, &index, &bbox(least, most));
            assert_cover_is_sound(&shapes, &index, &bbox(least, least));
        }
    }
}

#[test]
fn a_box_that_meets_no_edge_is_inside_or_apart() {
    let random = &mut Random(12);
    let center = (200, 200);
    let outer = star(random, center, (150, 200), 100);
    let hole = star(random, center, (20, 60), 50);
    let shapes = [shape(vec![polygon(&outer, &[&hole])])];
    let index = AreaIndex::new(&shapes);
    for _ in 0..rounds(3000) {
        let (x, y) = random_point(random, 400);
        let (width, height) = random_point(random, 30);
        let bbox = bbox((x, y), (x + width, y + height));
        let cover = assert_cover_is_sound(&shapes, &index, &bbox);
        // If the bounding box of every edge is disjoint from the box, the box lies completely inside or completely
        // outside of the region, and one corner shows which.
        let is_far = |ring: &Ring| {
            let is_apart = |(a, b): (Point, Point)| {
                a.lon_e7.max(b.lon_e7) < bbox.min_lon_e7
                    || a.lon_e7.min(b.lon_e7) > bbox.max_lon_e7
                    || a.lat_e7.max(b.lat_e7) < bbox.min_lat_e7
                    || a.lat_e7.min(b.lat_e7) > bbox.max_lat_e7
            };
            ring_edges(ring).all(is_apart)
        };
        if shapes[0].rings().all(|(ring, _)| is_far(ring)) {
            let is_inside = holds_by_even_odd(&shapes[0], point((x, y)));
            assert_eq!(cover.inside, if is_inside { vec![0] } else { vec![] });
            assert_eq!(cover.touched, Vec::<u32>::new());
        }
    }
}

#[test]
fn a_shared_border_is_told_apart_from_a_shared_area() {
    let hole: &[(i32, i32)] = &rectangle(40, 40, 60, 60);
    let index = AreaIndex::new(&[shape(vec![polygon(&rectangle(0, 0, 100, 100), &[hole])])]);
    let cover = |west, south, east, north| {
        let cover = index.cover(&bbox((west, south), (east, north)));
        (cover.inside.len(), cover.touched.len())
    };
    let (inside, touched, apart) = ((1, 0), (0, 1), (0, 0));
    assert_eq!(cover(0, 0, 100, 40), inside);
    assert_eq!(cover(0, 0, 1, 1), inside);
    assert_eq!(cover(0, 0, 0, 0), inside);
    assert_eq!(cover(-1, 0, 0, 100), touched);
    assert_eq!(cover(100, 100, 120, 120), touched);
    assert_eq!(cover(101, 0, 120, 120), apart);
    assert_eq!(cover(40, 40, 60, 60), touched);
    assert_eq!(cover(41, 41, 59, 59), apart);
    assert_eq!(cover(30, 30, 50, 50), touched);
    assert_eq!(cover(0, 0, 100, 100), touched);
    assert_eq!(cover(i32::MIN, i32::MIN, i32::MAX, i32::MAX), touched);
    assert_eq!(cover(30, 30, 30, 70), inside);
    assert_eq!(cover(50, 50, 50, 50), apart);
    assert_eq!(cover(50, 0, 40, 10), apart);
    assert_eq!(index.cover(&Bbox::EMPTY), Cover::default());
}

#[test]
fn the_box_of_a_rectangular_region_is_inside_the_region() {
    let bbox = bbox((-5, -5), (1_000_000, 2_000_000));
    let index = AreaIndex::new(&[Shape::of_bbox(&bbox), Shape::of_bbox(&bbox)]);
    assert_eq!(index.cover(&bbox).inside, [0, 1]);
}
