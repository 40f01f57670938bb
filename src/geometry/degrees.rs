//! Converts coordinates in degrees to points, rings and boxes.

use super::antimeridian::Antimeridian;
use super::shape::{Point, Ring, Shape, ShapeError};
use crate::osm::{Bbox, DECIMICRO_PER_DEGREE, format_e7, parse_e7};

/// The antimeridian in 1e-7 degree.
const ANTIMERIDIAN_E7: i32 = 180 * DECIMICRO_PER_DEGREE as i32;

/// Formats an error at a vertex of a ring. Vertices are counted from 1.
pub(crate) fn vertex_message(ring: &str, vertex: usize, cause: impl Into<String>) -> String {
    let error = ShapeError {
        ring: ring.to_owned(),
        vertex: Some(vertex),
        cause: cause.into(),
    };
    error.to_string()
}

/// Parses a longitude and a latitude in decimal degrees and rounds them to the nearest 1e-7 degree.
/// Fails if one is not a number or is out of range.
pub(crate) fn parse_lon_lat(lon: &str, lat: &str) -> Result<Point, String> {
    let lon_e7 = parse_degrees_e7("longitude", lon, 180)?;
    Ok(Point::new(parse_degrees_e7("latitude", lat, 90)?, lon_e7))
}

/// Converts a longitude and a latitude in degrees like [`parse_lon_lat`]. Rounds the shortest decimal form of each
/// number, because the number was written in that form. The binary value might be rounded differently.
pub(crate) fn point_of_degrees(lon: f64, lat: f64) -> Result<Point, String> {
    parse_lon_lat(&lon.to_string(), &lat.to_string())
}

/// Returns the point with a longitude and a latitude in 1e-7 degree. Fails if one of them is out of range.
pub(crate) fn point_of_e7(lon_e7: i32, lat_e7: i32) -> Result<Point, String> {
    for (what, value, limit) in [("longitude", lon_e7, 180), ("latitude", lat_e7, 90)] {
        if i64::from(value).abs() > limit * DECIMICRO_PER_DEGREE {
            let degrees = format_e7(value);
            return Err(out_of_range_message(what, &degrees, limit));
        }
    }
    Ok(Point { lat_e7, lon_e7 })
}

fn out_of_range_message(what: &str, degrees: &str, limit: i64) -> String {
    format!("{what} {degrees} lies outside ±{limit} degrees")
}

fn parse_degrees_e7(what: &str, text: &str, limit: i32) -> Result<i32, String> {
    let text = text.trim();
    parse_e7(text, limit).ok_or_else(|| match text.parse::<f64>() {
        Ok(number) if number.is_finite() => out_of_range_message(what, text, i64::from(limit)),
        _ => format!("{what} '{}' is not a number", shorten_for_message(text)),
    })
}

/// Returns a string from an input in a form that is safe to show in messages. Control characters become spaces. In a
/// string of more than 40 characters, all characters after the 40th are replaced by an ellipsis.
pub(crate) fn shorten_for_message(text: &str) -> String {
    const MOST: usize = 40;
    let mut shown: String = text
        .chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .take(MOST)
        .collect();
    if text.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}

/// Makes a ring. Fails if fewer than three of the points are different.
pub(crate) fn ring(name: String, points: Vec<Point>) -> Result<Ring, String> {
    let first = points.first();
    let second = points.iter().find(|&point| Some(point) != first);
    let mut others = points.iter();
    if second.is_none() || others.all(|point| Some(point) == first || Some(point) == second) {
        return Err(vertex_message(
            &name,
            points.len().max(1),
            "the ring has fewer than three different points",
        ));
    }
    Ok(Ring { name, points })
}

/// The order of the two corners of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CornerOrder {
    /// The south-western and the north-eastern corner, in either order. If the first corner lies further east than the
    /// second but not further north, the box crosses the antimeridian.
    Southwest,
    /// Any two opposite corners, in any order. No box crosses the antimeridian.
    Any,
}

impl CornerOrder {
    /// Returns the treatment of areas that cross the antimeridian, if boxes have this order of corners. Areas are cut
    /// only if such boxes can cross the antimeridian, too.
    pub(crate) const fn antimeridian_treatment(self) -> Antimeridian {
        match self {
            Self::Southwest => Antimeridian::Cut,
            Self::Any => Antimeridian::Keep,
        }
    }
}

/// A box as a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoxRegion {
    /// The rectangle of the box, or two rectangles if the box crosses the antimeridian.
    pub shape: Shape,
    /// A warning if the box crosses the antimeridian and is more than 180 degrees wide. Such a box is usually a
    /// mistake. The warning also names the box that the corners form without crossing the antimeridian.
    pub warning: Option<String>,
}

/// Returns the box with two opposite corners, given in degrees. A box without area is an error.
pub fn bbox_of_degrees(
    [lon1, lat1, lon2, lat2]: [f64; 4],
    order: CornerOrder,
) -> Result<BoxRegion, String> {
    let (first, second) = (point_of_degrees(lon1, lat1)?, point_of_degrees(lon2, lat2)?);
    region_of_corners(first, second, order)
}

/// Parses a box from `lon1,lat1,lon2,lat2` in degrees, with the corners in the order `CornerOrder::Southwest`. A box
/// without area is an error.
pub fn parse_bbox(text: &str) -> Result<Shape, String> {
    parse_box(text, CornerOrder::Southwest).map(|region| region.shape)
}

impl Bbox {
    /// Parses the box around two opposite corners, `lon1,lat1,lon2,lat2` in degrees, which are usually west, south,
    /// east and north.
    ///
    /// # Errors
    ///
    /// There are not four numbers, or a corner is not on the earth. The message says which of these is the case.
    pub fn parse_degrees(text: &str) -> Result<Self, String> {
        parse_corners(text)
    }

    /// Returns the box with two opposite corners, given as longitude, latitude, longitude and latitude in degrees,
    /// which are usually west, south, east and north. The order of the corners is [`CornerOrder::Southwest`]: if the
    /// first corner lies further east than the second but not further north, the box crosses the antimeridian, and its
    /// western edge lies east of its eastern edge. The box may have no area.
    ///
    /// # Errors
    ///
    /// A corner is not on the earth.
    pub fn of_degrees([lon1, lat1, lon2, lat2]: [f64; 4]) -> Result<Self, String> {
        let (first, second) = (point_of_degrees(lon1, lat1)?, point_of_degrees(lon2, lat2)?);
        Ok(bbox_of_corners(first, second, CornerOrder::Southwest))
    }

    /// Returns a warning if the box crosses the antimeridian and is more than 180 degrees wide. Such a box is usually a
    /// mistake. The warning also names the box between the same edges that does not cross the antimeridian.
    pub fn crossing_warning(&self) -> Option<String> {
        wide_crossing_warning(self)
    }
}

/// Parses a box from `lon1,lat1,lon2,lat2` in degrees. A box without area is an error.
pub fn parse_box(text: &str, order: CornerOrder) -> Result<BoxRegion, String> {
    let parts: Vec<&str> = text.split(',').collect();
    let &[lon1, lat1, lon2, lat2] = parts.as_slice() else {
        return Err(format!(
            "'{}' is not a bounding box: expected min_lon,min_lat,max_lon,max_lat",
            shorten_for_message(text)
        ));
    };
    let points = parse_lon_lat(lon1, lat1)
        .and_then(|first| Ok((first, parse_lon_lat(lon2, lat2)?)))
        .map_err(|cause| format!("{cause}: the order is min_lon,min_lat,max_lon,max_lat"));
    points
        .and_then(|(first, second)| region_of_corners(first, second, order))
        .map_err(|cause| format!("bounding box '{}': {cause}", shorten_for_message(text)))
}

/// Parses the box around two opposite corners, `lon1,lat1,lon2,lat2` in degrees. The box may have no area.
pub fn parse_corners(text: &str) -> Result<Bbox, String> {
    let parts: Vec<&str> = text.split(',').collect();
    let &[lon1, lat1, lon2, lat2] = parts.as_slice() else {
        return Err(format!(
            "'{}' is not a box: expected min_lon,min_lat,max_lon,max_lat",
            shorten_for_message(text)
        ));
    };
    let mut bbox = Bbox::EMPTY;
    for point in [parse_lon_lat(lon1, lat1)?, parse_lon_lat(lon2, lat2)?] {
        bbox.add(point.lat_e7, point.lon_e7);
    }
    Ok(bbox)
}

/// Returns the box with two opposite corners as a region. A box without area is an error.
fn region_of_corners(first: Point, second: Point, order: CornerOrder) -> Result<BoxRegion, String> {
    let bbox = bbox_of_corners(first, second, order);
    if bbox.min_lat_e7 == bbox.max_lat_e7 || bbox.min_lon_e7 == bbox.max_lon_e7 {
        return Err("the box is empty: it has no area".to_owned());
    }
    Ok(BoxRegion {
        shape: Shape::of_bbox(&bbox),
        warning: wide_crossing_warning(&bbox),
    })
}

/// Returns the box with two opposite corners, which may have no area.
fn bbox_of_corners(first: Point, second: Point, order: CornerOrder) -> Bbox {
    let is_swapped = first.lat_e7 > second.lat_e7 || order == CornerOrder::Any;
    let (mut west, mut east) = (first.lon_e7, second.lon_e7);
    if west > east && is_swapped {
        (west, east) = (east, west);
    }
    if west > east {
        // 180 and -180 are the same meridian. An edge on this meridian gets the sign of the side on which the box lies.
        if west == ANTIMERIDIAN_E7 {
            west = -ANTIMERIDIAN_E7;
        } else if east == -ANTIMERIDIAN_E7 {
            east = ANTIMERIDIAN_E7;
        }
    }
    Bbox {
        min_lat_e7: first.lat_e7.min(second.lat_e7),
        max_lat_e7: first.lat_e7.max(second.lat_e7),
        min_lon_e7: west,
        max_lon_e7: east,
    }
}

/// Returns a warning if a box crosses the antimeridian and is more than 180 degrees wide.
fn wide_crossing_warning(bbox: &Bbox) -> Option<String> {
    let (west, east) = (i64::from(bbox.min_lon_e7), i64::from(bbox.max_lon_e7));
    let width = 2 * i64::from(ANTIMERIDIAN_E7) - (west - east);
    if west <= east || width <= i64::from(ANTIMERIDIAN_E7) {
        return None;
    }
    let between = Bbox {
        min_lon_e7: bbox.max_lon_e7,
        max_lon_e7: bbox.min_lon_e7,
        ..*bbox
    };
    Some(format!(
        "the box {bbox} crosses the antimeridian and is {:.1} degrees wide, because its first longitude is greater \
         than its second; the box between both is {between}",
        width as f64 / DECIMICRO_PER_DEGREE as f64
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the western, southern, eastern and northern edge of each polygon, in whole degrees.
    fn edges_of_boxes(text: &str) -> Vec<[i32; 4]> {
        let shape = parse_bbox(text).unwrap();
        let edges = shape.polygons.into_iter().map(|polygon| {
            let polygons = vec![polygon];
            let bbox = Shape { polygons }.envelope();
            [
                bbox.min_lon_e7,
                bbox.min_lat_e7,
                bbox.max_lon_e7,
                bbox.max_lat_e7,
            ]
            .map(|edge| edge / DECIMICRO_PER_DEGREE as i32)
        });
        edges.collect()
    }

    #[test]
    fn corners_come_in_any_order() {
        for text in [
            "1,2,3,4",
            " 1 , 2 , 3 , 4 ",
            "3,4,1,2",
            "1,4,3,2",
            "1e0,2.0,3,4",
        ] {
            assert_eq!(edges_of_boxes(text), [[1, 2, 3, 4]], "{text}");
        }
    }

    #[test]
    fn a_box_with_west_above_east_crosses_the_antimeridian() {
        assert_eq!(
            edges_of_boxes("170,1,-170,2"),
            [[170, 1, 180, 2], [-180, 1, -170, 2]]
        );
        assert_eq!(edges_of_boxes("180,1,-170,2"), [[-180, 1, -170, 2]]);
        assert_eq!(edges_of_boxes("170,1,-180,2"), [[170, 1, 180, 2]]);
        assert_eq!(edges_of_boxes("-180,-90,180,90"), [[-180, -90, 180, 90]]);
    }

    #[test]
    fn a_box_across_the_antimeridian_is_two_plain_boxes_on_the_map() {
        let on_map = |corners: [f64; 4]| {
            let boxes = Bbox::of_degrees(corners).unwrap().on_map();
            let boxes = boxes.iter().filter(|bbox| !bbox.is_empty());
            boxes.map(Bbox::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            on_map([170.0, 1.0, -170.0, 2.0]),
            ["170,1,180,2", "-180,1,-170,2"]
        );
        assert_eq!(on_map([1.0, 4.0, 3.0, 2.0]), ["1,2,3,4"]);
        // A place on the antimeridian is at both edges of the map.
        for (corners, expected) in [
            ([180.0, 1.0, -170.0, 2.0], ["-180,1,-170,2", "180,1,180,2"]),
            ([170.0, 1.0, 180.0, 2.0], ["170,1,180,2", "-180,1,-180,2"]),
            ([180.0, 1.0, 180.0, 1.0], ["180,1,180,1", "-180,1,-180,1"]),
        ] {
            assert_eq!(on_map(corners), expected);
        }
        assert_eq!(on_map([-180.0, 1.0, 180.0, 2.0]), ["-180,1,180,2"]);
        assert!(Bbox::of_degrees([170.0, 1.0, 181.0, 2.0]).is_err());
        assert_eq!(Bbox::EMPTY.on_map(), [Bbox::EMPTY; 2]);
    }

    #[test]
    fn with_corners_in_any_order_no_box_crosses_the_antimeridian() {
        for text in ["1,2,3,4", "3,2,1,4", "1,4,3,2", "3,4,1,2"] {
            let region = parse_box(text, CornerOrder::Any).unwrap();
            assert_eq!(region.shape, parse_bbox("1,2,3,4").unwrap(), "{text}");
            assert_eq!(region.warning, None);
        }
        let whole = parse_box("180,-90,-180,90", CornerOrder::Any).unwrap();
        assert_eq!(whole.shape, parse_bbox("-180,-90,180,90").unwrap());
    }

    #[test]
    fn a_crossing_box_wider_than_half_of_the_earth_has_a_warning() {
        let warning = |text| parse_box(text, CornerOrder::Southwest).unwrap().warning;
        let wide = warning("57.2,35.9,54.3,39.7").unwrap();
        assert!(wide.contains("is 357.1 degrees wide"), "{wide}");
        assert!(wide.ends_with("is 54.3,35.9,57.2,39.7"), "{wide}");
        for text in [
            "170,1,-170,2",
            "90,-60,-90,60",
            "54.3,35.9,57.2,39.7",
            "57.2,39.7,54.3,35.9",
            "-180,-90,180,90",
            "180,1,10,2",
        ] {
            assert_eq!(warning(text), None, "{text}");
        }
    }

    #[test]
    fn a_text_that_is_no_box_is_refused() {
        for (text, cause) in [
            ("", "is not a bounding box"),
            ("1,2,3", "is not a bounding box"),
            ("1,2,3,4,5", "is not a bounding box"),
            ("1,2,x,4", "longitude 'x' is not a number"),
            ("1,,3,4", "latitude '' is not a number"),
            ("1,nan,3,4", "latitude 'nan' is not a number"),
            ("1,2,inf,4", "longitude 'inf' is not a number"),
            ("1,2,180.5,4", "longitude 180.5 lies outside ±180 degrees"),
            ("1,-91,3,4", "latitude -91 lies outside ±90 degrees"),
            ("1,2,1,4", "the box is empty"),
            ("1,2,3,2", "the box is empty"),
            ("180,2,-180,3", "the box is empty"),
        ] {
            let message = parse_bbox(text).unwrap_err();
            assert!(message.contains(cause), "{message}");
        }
        assert!(bbox_of_degrees([f64::NAN, 1.0, 2.0, 3.0], CornerOrder::Any).is_err());
    }

    #[test]
    fn numbers_are_rounded_in_decimal_form() {
        // The nearest binary numbers have smaller absolute values, and would be rounded down.
        let point = point_of_degrees(1.00000015, -0.00000005).unwrap();
        assert_eq!((point.lon_e7, point.lat_e7), (10_000_002, -1));
        let point = parse_lon_lat("1.5e1", "+4.").unwrap();
        assert_eq!((point.lon_e7, point.lat_e7), (150_000_000, 40_000_000));
        assert!(point_of_degrees(1e300, 0.0).is_err());
        assert!(point_of_e7(1_800_000_001, 0).is_err());
    }
}
