//! Cuts geometries at the edges of a region, and at the antimeridian.

use super::{Extent, Point, Region, Shape, doubled_area};
use i_overlay::core::fill_rule::FillRule;
use i_overlay::core::overlay::{IntOverlayOptions, Overlay, ShapeType};
use i_overlay::core::overlay_rule::OverlayRule;
use i_overlay::core::solver::Solver;
use i_overlay::i_float::int::point::IntPoint;

/// 180 degrees in units of 1e-7 degree.
const HALF_TURN: i64 = 1_800_000_000;
/// The intersection of polygons is exact if all coordinates, relative to the middle of the polygons, are below this
/// limit.
const MAX_EXACT: i64 = 1 << 30;

/// A polygon: its outer ring, counter-clockwise, and its holes, clockwise. Rings do not repeat their first point.
pub(crate) type Rings = Vec<Vec<Point>>;

/// A region at whose edges geometries are cut.
#[derive(Debug)]
pub(crate) struct Clip {
    region: Region,
    /// The rings of the region, directed as in [`Rings`].
    contours: Rings,
}

impl Clip {
    pub(crate) fn new(shape: &Shape) -> Self {
        let contours = shape.rings().map(|(ring, is_hole)| {
            let mut points = ring.points.clone();
            if (doubled_area(&ring.points) < 0) != is_hole {
                points.reverse();
            }
            points
        });
        Self {
            region: Region::new(shape),
            contours: contours.collect(),
        }
    }

    /// Whether the region contains a point.
    pub(crate) fn has(&self, point: Point) -> bool {
        self.region.has(point)
    }

    /// Returns the parts of a line that lie in the region; `None` if the whole line is known to lie in the region.
    pub(crate) fn line(&self, points: &[Point]) -> Option<Vec<Vec<Point>>> {
        if self.region.holds(points) {
            return None;
        }
        let mut parts: Vec<Vec<Point>> = Vec::new();
        for pair in points.windows(2) {
            for (from, to) in self.region.parts_within(pair[0], pair[1]) {
                match parts.last_mut() {
                    Some(part) if part.last() == Some(&from) => part.push(to),
                    _ => parts.push(vec![from, to]),
                }
            }
        }
        Some(parts)
    }

    /// Returns the parts of a polygon that lie in the region; `None` if the whole polygon is known to lie in the
    /// region. The rings of the polygon must be directed as in [`Rings`]. The rings of the parts are directed in the
    /// same way.
    pub(crate) fn polygon<'r>(
        &self,
        rings: impl Iterator<Item = &'r Vec<Point>> + Clone,
    ) -> Option<Vec<Rings>> {
        if rings.clone().take(1).all(|outer| self.region.holds(outer)) {
            return None;
        }
        Some(intersection(rings, &self.contours))
    }
}

/// Cuts a line at the antimeridian. Returns `None` if the line does not cross the antimeridian.
pub(crate) fn line_at_antimeridian(points: &[Point]) -> Option<Vec<Vec<Point>>> {
    let (first, mut parts) = (points.first()?, Vec::new());
    let mut part = vec![*first];
    for pair in points.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        if is_across(from, to) {
            let lat_e7 = lat_at_antimeridian(from, to);
            let side = |of: Point| HALF_TURN as i32 * of.lon_e7.signum();
            let [end, start] = [from, to].map(side).map(|lon_e7| Point { lat_e7, lon_e7 });
            part.push(end);
            parts.push(std::mem::replace(&mut part, vec![start]));
        }
        part.push(to);
    }
    if parts.is_empty() {
        return None;
    }
    parts.push(part);
    // A point on the antimeridian belongs to the parts on both sides. A part at an end of the line may consist of this
    // point only. If so, the part is removed.
    parts.iter_mut().for_each(Vec::dedup);
    parts.retain(|part| part.len() > 1);
    Some(parts)
}

/// Whether an edge crosses the antimeridian, which is the case if its ends are more than half a turn apart.
fn is_across(from: Point, to: Point) -> bool {
    (i64::from(from.lon_e7) - i64::from(to.lon_e7)).abs() > HALF_TURN
}

/// Returns the latitude at which an edge crosses the antimeridian.
fn lat_at_antimeridian(from: Point, to: Point) -> i32 {
    // Measures the edge from west to east, so that an edge and its reverse are cut at the same latitude.
    let (west, east) = if from.lon_e7 > to.lon_e7 {
        (turned(from), turned(to))
    } else {
        (turned(to), turned(from))
    };
    let by = -i128::from(west.lon_e7);
    let width = i128::from(east.lon_e7) + by;
    let height = i128::from(east.lat_e7) - i128::from(west.lat_e7);
    if width == 0 {
        // Both ends lie on the antimeridian, so there is no single intersection.
        return to.lat_e7;
    }
    west.lat_e7 + (2 * by * height + width).div_euclid(2 * width) as i32
}

/// Turns a point by 180 degrees around the axis of the earth. Turned longitudes do not jump at the antimeridian.
pub(crate) fn turned(point: Point) -> Point {
    let by = if point.lon_e7 >= 0 {
        -HALF_TURN
    } else {
        HALF_TURN
    };
    Point {
        lat_e7: point.lat_e7,
        lon_e7: (i64::from(point.lon_e7) + by) as i32,
    }
}

/// Whether a path crosses the antimeridian but not the prime meridian. A path around a pole crosses both.
pub(crate) fn crosses_antimeridian(points: impl Iterator<Item = Point> + Clone) -> bool {
    let lons = points.clone().map(|point| point.lon_e7);
    let (low, high) = lons.fold((i32::MAX, i32::MIN), |(low, high), lon| {
        (low.min(lon), high.max(lon))
    });
    let is_wide = i64::from(high) - i64::from(low) > HALF_TURN;
    is_wide && has_edge_across(points.clone()) && !has_edge_across(points.map(turned))
}

fn has_edge_across(mut points: impl Iterator<Item = Point>) -> bool {
    let mut before = points.next();
    points.any(|point| {
        let last = before.replace(point);
        last.is_some_and(|last| is_across(last, point))
    })
}

/// Cuts a polygon of [`turned`] points at the antimeridian. Returns its parts, whose points are not turned.
pub(crate) fn cut_turned<'r>(rings: impl Iterator<Item = &'r Vec<Point>> + Clone) -> Vec<Rings> {
    const QUARTER: i32 = (HALF_TURN / 2) as i32;
    let mut parts = Vec::new();
    for (west, east) in [(-HALF_TURN, 0), (0, HALF_TURN)] {
        let corner = |lon, lat_e7| Point {
            lat_e7,
            lon_e7: lon as i32,
        };
        let half = vec![
            corner(west, -QUARTER),
            corner(east, -QUARTER),
            corner(east, QUARTER),
            corner(west, QUARTER),
        ];
        let mut found = intersection(rings.clone(), &[half]);
        // Turns the points back. The western half of the turned map lies between the prime meridian and 180 degrees
        // east.
        for point in found.iter_mut().flatten().flatten() {
            point.lon_e7 = (i64::from(point.lon_e7) - west - east) as i32;
        }
        parts.extend(found);
    }
    parts
}

/// Returns the polygons in which two areas intersect. The rings of both areas must be directed as in [`Rings`].
fn intersection<'r>(
    one: impl Iterator<Item = &'r Vec<Point>> + Clone,
    other: &[Vec<Point>],
) -> Vec<Rings> {
    let extents = (
        Extent::of(one.clone().flatten()),
        Extent::of(other.iter().flatten()),
    );
    let (Some(of_one), Some(of_other)) = extents else {
        return Vec::new();
    };
    let Extent { low, high } = of_one.and(&of_other);
    let (lon, lon_reach) = middle(low.lon_e7, high.lon_e7);
    let (lat, lat_reach) = middle(low.lat_e7, high.lat_e7);
    // Intersections are exact only below `MAX_EXACT`, so the coordinates of wide areas are halved.
    let unit = 1 + i64::from(lon_reach.max(lat_reach) >= MAX_EXACT);
    let scaled = |point: &Point| {
        let scaled = |value_e7: i32, middle: i64| ((i64::from(value_e7) - middle) / unit) as i32;
        IntPoint::new(scaled(point.lon_e7, lon), scaled(point.lat_e7, lat))
    };
    let options = IntOverlayOptions {
        preserve_input_collinear: true,
        preserve_output_collinear: true,
        ..IntOverlayOptions::ogc()
    };
    let edges = one.clone().map(Vec::len).sum();
    let mut overlay = Overlay::new_custom(edges, options, Solver::default());
    for ring in one.clone() {
        overlay.add_path_iter(ring.iter().map(scaled), ShapeType::Subject);
    }
    for ring in other {
        overlay.add_path_iter(ring.iter().map(scaled), ShapeType::Clip);
    }
    let point = |point: IntPoint| Point {
        lat_e7: (i64::from(point.y) * unit + lat) as i32,
        lon_e7: (i64::from(point.x) * unit + lon) as i32,
    };
    let polygons = overlay.overlay(OverlayRule::Intersect, FillRule::NonZero);
    let ring = |ring: Vec<IntPoint>| ring.into_iter().map(point).collect();
    let polygons = polygons.into_iter();
    polygons
        .map(|rings| rings.into_iter().map(ring).collect())
        .collect()
}

/// Returns the middle between two coordinates, and the distance from the middle to the farther of the two. The middle
/// is even. If the distances of points from the middle are halved, the antimeridian and all other even coordinates stay
/// exact.
fn middle(low: i32, high: i32) -> (i64, i64) {
    let (low, high) = (i64::from(low), i64::from(high));
    let middle = (low + high) / 4 * 2;
    (middle, (high - middle).max(middle - low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::parse_bbox;

    fn points(places: &[(f64, f64)]) -> Vec<Point> {
        let places = places.iter();
        places
            .map(|(lon, lat)| Point {
                lat_e7: (lat * 1e7) as i32,
                lon_e7: (lon * 1e7) as i32,
            })
            .collect()
    }

    fn shown(parts: Option<Vec<Vec<Point>>>) -> Vec<Vec<(f64, f64)>> {
        let degrees =
            |point: &Point| (f64::from(point.lon_e7) / 1e7, f64::from(point.lat_e7) / 1e7);
        let parts = parts.unwrap().into_iter();
        parts
            .map(|part| part.iter().map(degrees).collect())
            .collect()
    }

    #[test]
    fn lines_are_cut_at_the_antimeridian() {
        assert_eq!(
            line_at_antimeridian(&points(&[(0.0, 0.0), (179.0, 0.0)])),
            None
        );
        let line = points(&[(170.0, 0.0), (-170.0, 10.0), (-160.0, 10.0)]);
        assert_eq!(
            shown(line_at_antimeridian(&line)),
            [
                vec![(170.0, 0.0), (180.0, 5.0)],
                vec![(-180.0, 5.0), (-170.0, 10.0), (-160.0, 10.0)]
            ]
        );
        // Points on the antimeridian, on either side, and along it.
        let line = points(&[(179.0, 0.0), (180.0, 1.0), (-180.0, 2.0), (-179.0, 3.0)]);
        assert_eq!(
            shown(line_at_antimeridian(&line)),
            [
                vec![(179.0, 0.0), (180.0, 1.0), (180.0, 2.0)],
                vec![(-180.0, 2.0), (-179.0, 3.0)]
            ]
        );
        // A line that crosses the antimeridian twice.
        let line = points(&[(179.0, 0.0), (-179.0, 0.0), (179.0, 0.0)]);
        let parts = shown(line_at_antimeridian(&line));
        assert_eq!(parts.len(), 3);
        assert!(parts.iter().flatten().all(|(_, lat)| *lat == 0.0));
    }

    fn area(parts: &[Rings]) -> i128 {
        parts.iter().flatten().map(|ring| doubled_area(ring)).sum()
    }

    #[test]
    fn polygons_are_cut_at_the_antimeridian() {
        let outer = points(&[(178.0, -2.0), (-178.0, -2.0), (-178.0, 2.0), (178.0, 2.0)]);
        let hole = points(&[(179.0, -1.0), (179.0, 1.0), (-179.0, 1.0), (-179.0, -1.0)]);
        assert!(crosses_antimeridian(outer.iter().copied()));
        let turn = |ring: Vec<Point>| ring.into_iter().map(turned).collect();
        let parts = cut_turned([turn(outer), turn(hole)].iter());
        assert_eq!(parts.len(), 2);
        assert_eq!(area(&parts), 2 * 12 * 100_000_000_000_000);
        for ring in parts.iter().flatten() {
            let extent = Extent::of(ring).unwrap();
            let width = i64::from(extent.high.lon_e7) - i64::from(extent.low.lon_e7);
            assert_eq!(width, 20_000_000);
        }
        let east = points(&[(170.0, 0.0), (179.0, 0.0), (179.0, 5.0)]);
        assert!(!crosses_antimeridian(east.into_iter()));
        // Around the south pole.
        let polar = points(&[
            (-120.0, -70.0),
            (0.0, -70.0),
            (120.0, -70.0),
            (-120.0, -70.0),
        ]);
        assert!(!crosses_antimeridian(polar.into_iter()));
    }

    #[test]
    fn geometries_are_cut_at_the_edges_of_a_region() {
        let clip = Clip::new(&parse_bbox("2,2,4,4").unwrap());
        let line = points(&[(0.0, 3.0), (3.0, 3.0), (3.0, 9.0), (3.5, 9.0), (3.5, 0.0)]);
        assert_eq!(
            shown(clip.line(&line)),
            [
                vec![(2.0, 3.0), (3.0, 3.0), (3.0, 4.0)],
                vec![(3.5, 4.0), (3.5, 2.0)]
            ]
        );
        assert_eq!(clip.line(&points(&[(2.5, 3.0), (3.0, 3.0)])), None);
        assert_eq!(
            clip.line(&points(&[(5.0, 3.0), (6.0, 3.0)])),
            Some(Vec::new())
        );
        let outer = points(&[(0.0, 0.0), (3.0, 0.0), (3.0, 9.0), (0.0, 9.0)]);
        let parts = clip.polygon([outer].iter()).unwrap();
        assert_eq!(area(&parts), 2 * 2 * 100_000_000_000_000);
        let within = points(&[(2.5, 2.5), (3.0, 2.5), (3.0, 3.0)]);
        assert!(clip.polygon([within].iter()).is_none());
    }
}
