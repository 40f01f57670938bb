//! Reads all polygons in a GeoJSON document (RFC 7946).

use super::on_map::shape_on_map;
use crate::geometry::{
    Antimeridian, Point, Polygon, Ring, Shape, point_of_degrees, ring, shorten_for_message,
    vertex_message,
};
use serde_json::Value;

/// Returns all polygons of a GeoJSON document, including those in nested collections. `antimeridian` tells how polygons
/// that jump across the antimeridian are treated. Errors name the feature, polygon, ring and vertex, as far as they are
/// known.
pub(super) fn shape_of(document: &Value, antimeridian: Antimeridian) -> Result<Shape, String> {
    let mut found = FoundPolygons {
        antimeridian,
        ..FoundPolygons::default()
    };
    found.add_object(document, "")?;
    match (found.polygons.is_empty(), found.other) {
        (false, _) => Ok(Shape {
            polygons: found.polygons,
        }),
        (true, Some(other)) => Err(format!("holds no polygon: {other}")),
        (true, None) => Err("holds no polygon".to_owned()),
    }
}

/// The polygons found so far.
#[derive(Default)]
struct FoundPolygons {
    antimeridian: Antimeridian,
    polygons: Vec<Polygon>,
    /// A message about the first geometry that was not a polygon.
    other: Option<String>,
}

impl FoundPolygons {
    /// Adds the polygons of an object. `place` is the name of the object in messages, and empty for the outermost
    /// object.
    fn add_object(&mut self, object: &Value, place: &str) -> Result<(), String> {
        if !object.is_object() {
            return Err(with_place(place, "is not a GeoJSON object"));
        }
        let Some(kind) = object.get("type").and_then(Value::as_str) else {
            return Err(with_place(place, "has no \"type\": this is not GeoJSON"));
        };
        match kind {
            "FeatureCollection" => self.add_each(object, "features", place, "feature"),
            "GeometryCollection" => self.add_each(object, "geometries", place, "geometry"),
            "Feature" => match object.get("geometry") {
                None | Some(Value::Null) => Ok(()),
                Some(geometry) => self.add_object(geometry, place),
            },
            "Polygon" => {
                let parts = parse_polygon(coordinates(object, place)?, place, self.antimeridian)?;
                self.polygons.extend(parts);
                Ok(())
            }
            "MultiPolygon" => {
                let coordinates = coordinates(object, place)?;
                let polygons = parse_multipolygon(coordinates, place, self.antimeridian)?;
                self.polygons.extend(polygons);
                Ok(())
            }
            "Point" | "MultiPoint" | "LineString" | "MultiLineString" => {
                let other = || with_place(place, format!("a {kind} covers nothing"));
                self.other.get_or_insert_with(other);
                Ok(())
            }
            _ => {
                let cause = format!("'{}' is not a type of GeoJSON", shorten_for_message(kind));
                Err(with_place(place, cause))
            }
        }
    }

    fn add_each(
        &mut self,
        object: &Value,
        key: &str,
        place: &str,
        part: &str,
    ) -> Result<(), String> {
        let Some(parts) = object.get(key).and_then(Value::as_array) else {
            return Err(with_place(place, format!("has no array \"{key}\"")));
        };
        for (number, object) in (1..).zip(parts) {
            self.add_object(object, &part_name(place, part, number))?;
        }
        Ok(())
    }
}

fn coordinates<'a>(object: &'a Value, place: &str) -> Result<&'a Value, String> {
    object
        .get("coordinates")
        .ok_or_else(|| with_place(place, "has no \"coordinates\""))
}

/// Parses the coordinates of a MultiPolygon.
pub(super) fn parse_multipolygon(
    value: &Value,
    place: &str,
    antimeridian: Antimeridian,
) -> Result<Vec<Polygon>, String> {
    let values = nonempty_array(value, place, "polygons")?;
    let mut polygons = Vec::new();
    for (number, value) in (1..).zip(values) {
        let parts = parse_polygon(value, &part_name(place, "polygon", number), antimeridian)?;
        polygons.extend(parts);
    }
    Ok(polygons)
}

/// Parses the coordinates of a Polygon. Returns several polygons if the polygon is cut at the antimeridian.
pub(super) fn parse_polygon(
    value: &Value,
    place: &str,
    antimeridian: Antimeridian,
) -> Result<Vec<Polygon>, String> {
    let rings = nonempty_array(value, place, "rings")?;
    let numbered = (1..).zip(rings);
    let mut rings =
        numbered.map(|(number, value)| parse_closed_ring(value, part_name(place, "ring", number)));
    let outer = rings.next();
    let outer = outer.unwrap_or_else(|| Err(with_place(place, "has no rings")))?;
    let holes = rings.collect::<Result<_, _>>()?;
    let group = |outers: Vec<Ring>, holes: Vec<Ring>| {
        let polygons = outers.into_iter().zip(std::iter::once(holes));
        Ok(Shape {
            polygons: polygons
                .map(|(outer, holes)| Polygon { outer, holes })
                .collect(),
        })
    };
    Ok(shape_on_map(vec![outer], holes, antimeridian, group)?.polygons)
}

/// Parses a ring. The last position of the ring must equal the first one.
fn parse_closed_ring(value: &Value, name: String) -> Result<Ring, String> {
    let positions = nonempty_array(value, &name, "positions")?;
    let numbered = (1..).zip(positions);
    let points = numbered.map(|(vertex, value)| {
        parse_position(value).map_err(|cause| vertex_message(&name, vertex, cause))
    });
    let mut points = points.collect::<Result<Vec<_>, _>>()?;
    let len = points.len();
    if points.first() != points.last() {
        let cause = "the ring is not closed: the last position differs from the first";
        return Err(vertex_message(&name, len, cause));
    }
    if len < 4 {
        let cause = format!("the ring ends with {len} positions: it needs four or more");
        return Err(vertex_message(&name, len, cause));
    }
    points.pop();
    ring(name, points)
}

/// Parses the longitude and the latitude of a position. Ignores further numbers, such as an altitude.
fn parse_position(value: &Value) -> Result<Point, String> {
    let numbers = value
        .as_array()
        .ok_or_else(|| format!("{} is not a position", format_value(value)))?;
    let [lon, lat, ..] = numbers.as_slice() else {
        return Err(format!(
            "a position of {} numbers: longitude and latitude are wanted",
            numbers.len()
        ));
    };
    point_of_degrees(
        parse_number("longitude", lon)?,
        parse_number("latitude", lat)?,
    )
}

fn parse_number(what: &str, value: &Value) -> Result<f64, String> {
    value
        .as_f64()
        .ok_or_else(|| format!("{what} is not a number but {}", format_value(value)))
}

/// Formats a value for a message.
fn format_value(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        value => shorten_for_message(&value.to_string()),
    }
}

/// Returns the items of an array, which must not be empty.
fn nonempty_array<'a>(value: &'a Value, place: &str, what: &str) -> Result<&'a [Value], String> {
    match value.as_array() {
        Some(array) if array.is_empty() => Err(with_place(place, format!("has no {what}"))),
        Some(array) => Ok(array),
        None => {
            let cause = format!("expected an array of {what}, not {}", format_value(value));
            Err(with_place(place, cause))
        }
    }
}

/// Returns the name of a part of `place`, for messages.
fn part_name(place: &str, part: &str, number: usize) -> String {
    match place {
        "" => format!("{part} {number}"),
        place => format!("{place}, {part} {number}"),
    }
}

/// Puts the name of a part before a cause.
fn with_place(place: &str, cause: impl Into<String>) -> String {
    match place {
        "" => cause.into(),
        place => format!("{place}: {}", cause.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region_file::json;

    const SQUARE: &str = "[[0,0],[4,0],[4,4],[0,4],[0,0]]";
    const HOLE: &str = "[[1,1],[1,2,99,98],[2,2],[1,1]]";

    fn parse_text(text: &str) -> Result<Shape, String> {
        shape_of(&json::parse(text.as_bytes())?, Antimeridian::Cut)
    }

    fn names(shape: &Shape) -> Vec<&str> {
        shape.rings().map(|(ring, _)| ring.name.as_str()).collect()
    }

    #[test]
    fn a_polygon_has_an_outer_ring_and_holes() {
        let text = format!(r#"{{"type":"Polygon","coordinates":[{SQUARE},{HOLE}]}}"#);
        let shape = parse_text(&text).unwrap();
        assert_eq!(names(&shape), ["ring 1", "ring 2"]);
        assert_eq!(shape.polygons[0].outer.points.len(), 4);
        assert_eq!(shape.polygons[0].holes[0].points.len(), 3);
        let degree = 10_000_000;
        assert_eq!(shape.polygons[0].outer.points[1], Point::new(0, 4 * degree));
    }

    #[test]
    fn a_collection_is_the_union_of_its_polygons() {
        let polygon = format!(r#"{{"type":"Polygon","coordinates":[{SQUARE}]}}"#);
        let multi =
            format!(r#"{{"type":"MultiPolygon","coordinates":[[{SQUARE},{HOLE}],[{SQUARE}]]}}"#);
        let text = format!(
            r#"{{"type":"FeatureCollection","features":[
            {{"type":"Feature","geometry":null}},
            {{"type":"Feature","geometry":{{"type":"Point","coordinates":[1,2]}}}},
            {{"type":"Feature","properties":{{"a":NaN}},"geometry":{multi}}},
            {{"type":"Feature","geometry":{{"type":"GeometryCollection","geometries":[{polygon}]}}}}]}}"#
        );
        let shape = parse_text(&text).unwrap();
        assert_eq!(
            names(&shape),
            [
                "feature 3, polygon 1, ring 1",
                "feature 3, polygon 1, ring 2",
                "feature 3, polygon 2, ring 1",
                "feature 4, geometry 1, ring 1"
            ]
        );
    }

    #[test]
    fn a_text_that_is_not_geojson_or_holds_no_polygon_is_refused() {
        for (text, cause) in [
            ("[]", "is not a GeoJSON object"),
            ("{}", "has no \"type\""),
            (
                r#"{"type":"Topology"}"#,
                "'Topology' is not a type of GeoJSON",
            ),
            (
                r#"{"type":"FeatureCollection"}"#,
                "has no array \"features\"",
            ),
            (
                r#"{"type":"FeatureCollection","features":[]}"#,
                "holds no polygon",
            ),
            (
                r#"{"type":"FeatureCollection","features":[7]}"#,
                "feature 1: is not a GeoJSON object",
            ),
            (r#"{"type":"Feature"}"#, "holds no polygon"),
            (
                r#"{"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"type":"LineString"}}]}"#,
                "holds no polygon: feature 1: a LineString covers nothing",
            ),
            (r#"{"type":"Polygon"}"#, "has no \"coordinates\""),
            (r#"{"type":"Polygon","coordinates":[]}"#, "has no rings"),
            (
                r#"{"type":"Polygon","coordinates":null}"#,
                "expected an array of rings, not null",
            ),
            (
                r#"{"type":"MultiPolygon","coordinates":[]}"#,
                "has no polygons",
            ),
            (
                r#"{"type":"MultiPolygon","coordinates":[[]]}"#,
                "polygon 1: has no rings",
            ),
            (
                r#"{"type":"Polygon","coordinates":[[]]}"#,
                "ring 1: has no positions",
            ),
            (
                "{\"type\":\n}",
                "line 2, column 1: this is not JSON: expected value",
            ),
        ] {
            let message = parse_text(text).unwrap_err();
            assert!(message.starts_with(cause), "{message}");
        }
    }

    #[test]
    fn an_error_names_ring_and_vertex() {
        for (ring, cause) in [
            (
                "[[1,1],[2,1],[2,2],[1,2]]",
                "vertex 4: the ring is not closed: the last position differs",
            ),
            (
                "[[1,1],[2,1],[1,1]]",
                "vertex 3: the ring ends with 3 positions",
            ),
            ("[[1,1]]", "vertex 1: the ring ends with 1 positions"),
            (
                "[[1,1],[2,1],[1,1],[2,1],[1,1]]",
                "vertex 4: the ring has fewer than three",
            ),
            (
                "[[1,1],[181.5,1],[2,2],[1,1]]",
                "vertex 2: longitude 181.5 lies outside ±180 degrees",
            ),
            (
                "[[1,1],[2,1],[2,-90.1],[1,1]]",
                "vertex 3: latitude -90.1 lies outside ±90 degrees",
            ),
            (
                "[[1,1],[NaN,1],[2,2],[1,1]]",
                "vertex 2: longitude is not a number but null",
            ),
            (
                "[[1,1],[2,-Infinity],[2,2],[1,1]]",
                "vertex 2: latitude is not a number but null",
            ),
            (
                "[[1,1],[\"2\",1],[2,2],[1,1]]",
                "vertex 2: longitude is not a number but \"2\"",
            ),
            (
                "[[1,1],[2],[2,2],[1,1]]",
                "vertex 2: a position of 1 numbers",
            ),
            ("[[1,1],2,[2,2],[1,1]]", "vertex 2: 2 is not a position"),
        ] {
            let text = format!(
                r#"{{"type":"FeatureCollection","features":[{{"type":"Feature","geometry":null}},
                {{"type":"Feature","geometry":{{"type":"MultiPolygon","coordinates":[[{SQUARE},{ring}]]}}}}]}}"#
            );
            let message = parse_text(&text).unwrap_err();
            let place = format!("feature 2, polygon 1, ring 2, {cause}");
            assert!(message.starts_with(&place), "{message}");
        }
    }

    #[test]
    fn positions_that_are_equal_as_points_close_a_ring() {
        let text = r#"{"type":"Polygon","coordinates":[[[1,1],[2,1],[2,2],[1.00000001,1]]]}"#;
        assert_eq!(parse_text(text).unwrap().polygons[0].outer.points.len(), 3);
    }
}
