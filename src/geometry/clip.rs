//! Cuts geometries at the edges of a region, and at the antimeridian.

use super::{Point, Region, Shape, doubled_area};
use i_overlay::core::fill_rule::FillRule;
use i_overlay::core::overlay::{IntOverlayOptions, Overlay, ShapeType};
use i_overlay::core::overlay_rule::OverlayRule;
use i_overlay::core::solver::Solver;
use i_overlay::i_float::int::point::IntPoint;

/// 180 degrees in units of 1e-7 degree.
const HALF_TURN: i64 = 1_800_000_000;
/// The overlay of polygons is exact for coordinates below this size.
const MAX_EXACT: i64 = 1 << 30;

/// A polygon: its outer ring, counter-clockwise, and its holes, clockwise. Rings do not repeat their first point.
pub(crate) type Rings = Vec<Vec<Point>>;

/// A point whose longitude may lie beyond 180 degrees, in 1e-7 degree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WidePoint {
    lon: i64,
    lat: i64,
}

impl WidePoint {
    fn of(point: Point) -> Self {
        Self {
            lon: point.lon_e7.into(),
            lat: point.lat_e7.into(),
        }
    }

    /// Returns the point in a band of longitudes that is `turns` turns east of the one around zero.
    fn in_band(self, turns: i64) -> Point {
        let lon = (self.lon - 2 * HALF_TURN * turns).clamp(-HALF_TURN, HALF_TURN);
        Point {
            lat_e7: self.lat as i32,
            lon_e7: lon as i32,
        }
    }
}

/// A region at whose edges geometries are cut.
#[derive(Debug)]
pub(crate) struct Clip {
    region: Region,
    contours: Vec<Vec<WidePoint>>,
}

impl Clip {
    pub(crate) fn new(shape: &Shape) -> Self {
        let contours = shape.rings().map(|(ring, is_hole)| {
            let mut points: Vec<_> = ring.points.iter().copied().map(WidePoint::of).collect();
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

    /// Returns the parts of a line in the region; `None` if that is the whole line.
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

    /// Returns the parts of a polygon in the region; `None` if that is the whole polygon. Rings are as in [`Rings`].
    pub(crate) fn polygon<'r>(
        &self,
        rings: impl Iterator<Item = &'r Vec<Point>> + Clone,
    ) -> Option<Vec<Rings>> {
        if rings.clone().take(1).all(|outer| self.region.holds(outer)) {
            return None;
        }
        let wide = |ring: &Vec<Point>| ring.iter().copied().map(WidePoint::of).collect();
        let rings: Vec<Vec<WidePoint>> = rings.map(wide).collect();
        let shapes = intersection(&rings, &self.contours).into_iter();
        Some(shapes.map(|rings| in_band(&rings, 0)).collect())
    }
}

/// Whether a path of points crosses the antimeridian, which is the case if two consecutive points are more than half a
/// turn apart.
fn crosses(mut points: impl Iterator<Item = Point>) -> bool {
    let mut before = points.next();
    points.any(|point| {
        let last = before.replace(point);
        last.is_some_and(|last| {
            (i64::from(last.lon_e7) - i64::from(point.lon_e7)).abs() > HALF_TURN
        })
    })
}

/// Returns the points of a path with longitudes that do not jump at the antimeridian.
fn unwrapped<'p>(points: impl Iterator<Item = &'p Point>) -> Vec<WidePoint> {
    let mut turns = 0;
    let mut before: Option<i64> = None;
    let wide = points.map(|point| {
        let lon = i64::from(point.lon_e7);
        if let Some(before) = before.replace(lon) {
            match lon - before {
                by if by > HALF_TURN => turns -= 1,
                by if by < -HALF_TURN => turns += 1,
                _ => {}
            }
        }
        WidePoint {
            lon: lon + 2 * HALF_TURN * turns,
            lat: point.lat_e7.into(),
        }
    });
    wide.collect()
}

/// Cuts a line at the antimeridian. Returns `None` if it does not cross it.
pub(crate) fn line_at_antimeridian(points: &[Point]) -> Option<Vec<Vec<Point>>> {
    if !crosses(points.iter().copied()) {
        return None;
    }
    let path = unwrapped(points.iter());
    let mut last_band = None;
    let band_of = |from: WidePoint, to: WidePoint, last: Option<i64>| {
        let doubled = from.lon + to.lon + 2 * HALF_TURN;
        let is_on_border = doubled.rem_euclid(4 * HALF_TURN) == 0;
        // An edge along the antimeridian is on the side of the edge before it.
        let last = last.filter(|_| is_on_border);
        last.unwrap_or(doubled.div_euclid(4 * HALF_TURN))
    };
    let mut parts: Vec<Vec<Point>> = Vec::new();
    for pair in path.windows(2) {
        for (from, to) in cut_at_bands(pair[0], pair[1]) {
            let band = band_of(from, to, last_band);
            let (from, to) = (from.in_band(band), to.in_band(band));
            match parts.last_mut() {
                Some(part) if last_band == Some(band) => part.push(to),
                _ => parts.push(vec![from, to]),
            }
            last_band = Some(band);
        }
    }
    parts.iter_mut().for_each(Vec::dedup);
    parts.retain(|part| part.len() > 1);
    Some(parts)
}

/// Divides an edge where it crosses the antimeridian.
fn cut_at_bands(from: WidePoint, to: WidePoint) -> Vec<(WidePoint, WidePoint)> {
    let (low, high) = (from.lon.min(to.lon), from.lon.max(to.lon));
    // An edge is at most half a turn long, so there is at most one border.
    let border = (low + HALF_TURN).div_euclid(2 * HALF_TURN) * 2 * HALF_TURN + HALF_TURN;
    if !(low < border && border < high) {
        return vec![(from, to)];
    }
    let (west, east) = if from.lon < to.lon {
        (from, to)
    } else {
        (to, from)
    };
    let (by, width) = (
        i128::from(border - west.lon),
        i128::from(east.lon - west.lon),
    );
    let height = i128::from(east.lat - west.lat);
    let lat = west.lat + (2 * by * height + width).div_euclid(2 * width) as i64;
    let middle = WidePoint { lon: border, lat };
    vec![(from, middle), (middle, to)]
}

/// Moves a point by half a turn. Around the antimeridian, longitudes then do not jump.
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

/// Whether a path of points crosses the antimeridian, and lies around it, not around a pole.
pub(crate) fn crosses_antimeridian(points: impl Iterator<Item = Point> + Clone) -> bool {
    let lons = points.clone().map(|point| point.lon_e7);
    let (low, high) = lons.fold((i32::MAX, i32::MIN), |(low, high), lon| {
        (low.min(lon), high.max(lon))
    });
    let is_wide = i64::from(high) - i64::from(low) > HALF_TURN;
    is_wide && crosses(points.clone()) && !crosses(points.map(turned))
}

/// Cuts a polygon whose points are [`turned`] at the antimeridian. Returns its parts, whose points are not turned.
pub(crate) fn turned_back<'r>(rings: impl Iterator<Item = &'r Vec<Point>>) -> Vec<Rings> {
    let wide = |ring: &Vec<Point>| ring.iter().copied().map(WidePoint::of).collect();
    let rings: Vec<Vec<WidePoint>> = rings.map(wide).collect();
    let mut parts = Vec::new();
    for west in [-HALF_TURN, 0] {
        let corner = |lon, lat| WidePoint {
            lon,
            lat: lat * HALF_TURN / 2,
        };
        let east = west + HALF_TURN;
        let half = vec![
            corner(west, -1),
            corner(east, -1),
            corner(east, 1),
            corner(west, 1),
        ];
        // The western half lies east of the prime meridian.
        let by = -HALF_TURN - 2 * west;
        let back = |ring: &Vec<WidePoint>| {
            let points = ring.iter().map(|point| WidePoint {
                lon: point.lon + by,
                ..*point
            });
            points.map(|point| point.in_band(0)).collect()
        };
        let found = intersection(&rings, &[half]).into_iter();
        parts.extend(found.map(|rings| rings.iter().map(back).collect::<Rings>()));
    }
    parts
}

fn in_band(rings: &[Vec<WidePoint>], turns: i64) -> Rings {
    let rings = rings.iter();
    rings
        .map(|ring| ring.iter().map(|point| point.in_band(turns)).collect())
        .collect()
}

/// Returns the polygons of the intersection of two areas. Outer rings of both are counter-clockwise, holes clockwise.
fn intersection(one: &[Vec<WidePoint>], other: &[Vec<WidePoint>]) -> Vec<Vec<Vec<WidePoint>>> {
    let all = || one.iter().chain(other).flatten();
    let edge = |select: fn(i64, i64) -> i64, of: fn(&WidePoint) -> i64| {
        all().map(of).reduce(select).unwrap_or(0)
    };
    let (west, east) = (
        edge(i64::min, |point| point.lon),
        edge(i64::max, |point| point.lon),
    );
    let (south, north) = (
        edge(i64::min, |point| point.lat),
        edge(i64::max, |point| point.lat),
    );
    // Even, so that the antimeridian and the edges of boxes are on the coarse grid, too.
    let (lon, lat) = ((west + east) / 4 * 2, (south + north) / 4 * 2);
    let reach = [east - lon, lon - west, north - lat, lat - south];
    // Wide areas are cut on a grid that is half as fine.
    let unit = 1 + i64::from(reach.into_iter().max().unwrap_or(0) >= MAX_EXACT);
    let scaled = |point: &WidePoint| {
        IntPoint::new(
            ((point.lon - lon) / unit) as i32,
            ((point.lat - lat) / unit) as i32,
        )
    };
    let options = IntOverlayOptions {
        preserve_input_collinear: true,
        preserve_output_collinear: true,
        ..IntOverlayOptions::ogc()
    };
    let mut overlay = Overlay::new_custom(all().count(), options, Solver::default());
    for (contours, area) in [(one, ShapeType::Subject), (other, ShapeType::Clip)] {
        for contour in contours {
            overlay.add_path_iter(contour.iter().map(scaled), area);
        }
    }
    let shapes = overlay.overlay(OverlayRule::Intersect, FillRule::NonZero);
    let wide = |point: IntPoint| WidePoint {
        lon: i64::from(point.x) * unit + lon,
        lat: i64::from(point.y) * unit + lat,
    };
    let shapes = shapes.into_iter();
    shapes
        .map(|rings| {
            let rings = rings.into_iter();
            rings
                .map(|ring| ring.into_iter().map(wide).collect())
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Extent, parse_bbox};

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
        // There and back.
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
        let parts = turned_back([turn(outer), turn(hole)].iter());
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
