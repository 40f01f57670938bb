//! Writes GeoJSON, byte for byte as osmium does.

use super::feature_id::FeatureId;
use super::options::{Attribute, Attributes};
use super::{Feature, Geometry, closed_rings};
use crate::formats::numbers::{decimal_degrees_text, put_number};
use crate::formats::text_buffer::TextBuffer;
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

/// The maximum length in bytes of a point and the comma after it: two numbers of at most 14 bytes, two brackets and two
/// commas.
const POINT_LEN: usize = 32;

fn put_points(text: &mut TextBuffer, points: impl ExactSizeIterator<Item = Point>) {
    text.push('[');
    text.push_ascii_with(points.len() * POINT_LEN + POINT_LEN, |space| {
        let mut len = 0;
        for point in points {
            len += put_point_and_comma(&mut space[len..len + POINT_LEN], point);
        }
        // Cuts off the comma after the last point.
        len.saturating_sub(1)
    });
    text.push(']');
}

fn put_point(text: &mut TextBuffer, point: Point) {
    text.push_ascii_with(POINT_LEN, |space| put_point_and_comma(space, point) - 1);
}

/// Writes a point and a comma to a buffer of [`POINT_LEN`] bytes, and returns their length in bytes.
#[inline(always)]
fn put_point_and_comma(space: &mut [u8], point: Point) -> usize {
    let (lon, lon_len) = degrees_text(point.lon_e7);
    let (lat, lat_len) = degrees_text(point.lat_e7);
    let mut put = |at: usize, bytes: &[u8]| space[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"[");
    put(1, &lon);
    put(1 + lon_len, b",");
    // Copies all sixteen bytes of `lat`, because the buffer has room for them. The next line overwrites the bytes after
    // the number.
    put(2 + lon_len, &lat);
    put(2 + lon_len + lat_len, b"],");
    lon_len + lat_len + 4
}

/// Formats a coordinate in degrees as JSON libraries format floating-point numbers. Returns the text and its length, at
/// most 14 bytes. The text has a decimal point or, for absolute values below 1e-6, an exponent.
#[inline(always)]
fn degrees_text(value_e7: i32) -> ([u8; 16], usize) {
    let (text, len) = decimal_degrees_text(value_e7);
    match i64::from(value_e7) % DECIMICRO_PER_DEGREE {
        0 => {
            let text =
                u128::from_le_bytes(text) | u128::from(u16::from_le_bytes(*b".0")) << (8 * len);
            (text.to_le_bytes(), len + 2)
        }
        -9..=9 if value_e7.unsigned_abs() < 10 => tiny_degrees_text(value_e7),
        _ => (text, len),
    }
}

#[cold]
fn tiny_degrees_text(value_e7: i32) -> ([u8; 16], usize) {
    let text = format!("{value_e7}e-7");
    let mut bytes = [0; 16];
    for (byte, char) in bytes.iter_mut().zip(text.bytes()) {
        *byte = char;
    }
    (bytes, text.len())
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
