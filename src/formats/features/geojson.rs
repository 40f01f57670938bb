//! Writes GeoJSON, byte for byte as osmium does.

use super::feature_id::FeatureId;
use super::options::{Attribute, Attributes};
use super::{Feature, Geometry, closed_rings};
use crate::formats::numbers::put_number;
use crate::formats::text_buffer::{ShortText, TextBuffer};
use crate::geometry::Point;
use crate::osm::DECIMICRO_PER_DEGREE;
use std::fmt::Write as _;

/// Appends a feature.
pub(super) fn put_feature(
    text: &mut TextBuffer,
    feature: &Feature<'_>,
    attributes: &Attributes,
    id: Option<FeatureId<'_>>,
) {
    text.push_str("{\"type\":\"Feature\"");
    if let Some(id) = id {
        text.push_str(",\"id\":");
        id.put(text, feature, "\"");
    }
    text.push_str(",\"geometry\":");
    put_geometry(text, &feature.geometry);
    text.push_str(",\"properties\":{");
    let mut separator = "";
    for (attribute, name) in attributes.iter() {
        if feature.is_attribute_left_out(attribute) {
            continue;
        }
        text.push_str(separator);
        put_string(text, name);
        text.push(':');
        put_attribute(text, feature, attribute);
        separator = ",";
    }
    for (key, value) in feature.tags {
        if !attributes.has_name(key) {
            text.push_str(separator);
            put_tag(text, key, value);
            separator = ",";
        }
    }
    text.push_str("}}");
}

/// Appends a geometry.
pub(super) fn put_geometry(text: &mut TextBuffer, geometry: &Geometry<'_>) {
    text.push_str("{\"type\":\"");
    match *geometry {
        Geometry::Point(point) => {
            text.push_str("Point\",\"coordinates\":");
            put_point(text, point);
        }
        Geometry::LineString(points) => {
            text.push_str("LineString\",\"coordinates\":");
            put_points(text, points.iter().copied());
        }
        Geometry::MultiLineString(lines) => {
            text.push_str("MultiLineString\",\"coordinates\":");
            put_array(text, lines.iter(), |text, line| {
                put_points(text, line.iter().copied())
            });
        }
        Geometry::MultiPolygon(polygons) => {
            text.push_str("MultiPolygon\",\"coordinates\":");
            put_array(text, polygons, |text, polygon| {
                put_array(text, closed_rings(polygon), |text, ring| {
                    put_points(text, ring);
                });
            });
        }
    }
    text.push('}');
}

/// Appends an array.
fn put_array<T>(
    text: &mut TextBuffer,
    items: impl IntoIterator<Item = T>,
    mut put: impl FnMut(&mut TextBuffer, T),
) {
    let mut separator = '[';
    for item in items {
        text.push(separator);
        separator = ',';
        put(text, item);
    }
    text.push(']');
}

/// The maximum length in bytes of a point and the comma before it: two numbers of at most 14 bytes, two brackets and
/// two commas.
const POINT_LEN: usize = 32;

fn put_points(text: &mut TextBuffer, points: impl ExactSizeIterator<Item = Point>) {
    text.push('[');
    text.push_shorts(points.enumerate(), POINT_LEN, |text, (index, point)| {
        if index > 0 {
            text.put(*b",");
        }
        put_position(text, point);
    });
    text.push(']');
}

fn put_point(text: &mut TextBuffer, point: Point) {
    text.push_short(|text| put_position(text, point));
}

/// Appends a position: the array of the longitude and the latitude of a point.
#[inline(always)]
fn put_position(text: &mut ShortText<'_>, point: Point) {
    text.put(*b"[");
    put_degrees(text, point.lon_e7);
    text.put(*b",");
    put_degrees(text, point.lat_e7);
    text.put(*b"]");
}

/// Appends a coordinate in degrees as JSON libraries format floating-point numbers. The text has a decimal point or,
/// for absolute values below 1e-6, an exponent.
#[inline(always)]
fn put_degrees(text: &mut ShortText<'_>, value_e7: i32) {
    match i64::from(value_e7) % DECIMICRO_PER_DEGREE {
        0 => {
            text.put_decimal_degrees(value_e7);
            text.put(*b".0");
        }
        -9..=9 if value_e7.unsigned_abs() < 10 => {
            text.put_number(value_e7.into());
            text.put(*b"e-7");
        }
        _ => text.put_decimal_degrees(value_e7),
    }
}

fn put_attribute(text: &mut TextBuffer, feature: &Feature<'_>, attribute: Attribute) {
    match attribute {
        Attribute::Type => put_string(text, feature.kind.name()),
        Attribute::User => put_string(text, feature.info.user.unwrap_or("")),
        Attribute::WayNodes => match feature.way_nodes {
            None => text.push_str("null"),
            Some(nodes) => put_ids(text, nodes),
        },
        _ => put_number(text, feature.numeric_value(attribute)),
    }
}

/// Appends ids as an array.
pub(super) fn put_ids(text: &mut TextBuffer, ids: &[i64]) {
    match ids {
        [] => text.push_str("[]"),
        ids => put_array(text, ids, |text, id| put_number(text, *id)),
    }
}

/// Appends the tags as an object.
pub(in crate::formats) fn put_tags(text: &mut TextBuffer, tags: &[(&str, &str)]) {
    text.push('{');
    for (index, (key, value)) in tags.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        put_tag(text, key, value);
    }
    text.push('}');
}

fn put_tag(text: &mut TextBuffer, key: &str, value: &str) {
    put_string(text, key);
    text.push(':');
    put_string(text, value);
}

/// Appends a string in quotes. Quotes, backslashes and control characters are escaped.
pub(super) fn put_string(text: &mut TextBuffer, string: &str) {
    text.push('"');
    let is_escaped = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    let mut rest = string;
    while let Some(at) = rest.bytes().position(is_escaped) {
        let (before, behind) = rest.split_at(at);
        text.push_str(before);
        let mut chars = behind.chars();
        match chars.next() {
            Some('"') => text.push_str("\\\""),
            Some('\\') => text.push_str("\\\\"),
            Some('\u{8}') => text.push_str("\\b"),
            Some('\u{c}') => text.push_str("\\f"),
            Some('\n') => text.push_str("\\n"),
            Some('\r') => text.push_str("\\r"),
            Some('\t') => text.push_str("\\t"),
            Some(other) => {
                let _ = write!(text, "\\u{:04X}", u32::from(other));
            }
            None => {}
        }
        rest = chars.as_str();
    }
    text.push_str(rest);
    text.push('"');
}
