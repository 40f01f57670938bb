//! GeoJSON, with the same bytes as osmium.

use super::options::{Attribute, Attributes};
use super::text::FeatureId;
use super::{Feature, Geometry, closed_rings};
use crate::formats::numbers::{put_e7, put_number};
use crate::formats::text_buffer::TextBuffer;
use crate::geometry::Point;
use crate::osm::DECIMICRO_PER_DEGREE;
use std::fmt::Write as _;

/// Appends a feature.
pub(super) fn put(
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
    text.push_str(",\"geometry\":{\"type\":\"");
    match feature.geometry {
        Geometry::Point(point) => {
            text.push_str("Point\",\"coordinates\":");
            put_point(text, point);
        }
        Geometry::LineString(points) => {
            text.push_str("LineString\",\"coordinates\":");
            put_points(text, points.iter().copied());
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
    text.push_str("},\"properties\":{");
    let mut separator = "";
    for (attribute, name) in attributes.iter() {
        if attribute == Attribute::WayNodes && feature.way_nodes.is_none() {
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

#[inline]
fn put_points(text: &mut TextBuffer, points: impl Iterator<Item = Point>) {
    put_array(text, points, put_point);
}

#[inline]
fn put_point(text: &mut TextBuffer, point: Point) {
    text.push('[');
    put_degrees(text, point.lon_e7);
    text.push(',');
    put_degrees(text, point.lat_e7);
    text.push(']');
}

/// Appends a coordinate as JSON libraries write floating-point numbers: always with a decimal point, or with an exponent
/// if it is below 1e-6.
#[inline]
fn put_degrees(text: &mut TextBuffer, value_e7: i32) {
    if i64::from(value_e7) % DECIMICRO_PER_DEGREE == 0 {
        put_e7(text, value_e7);
        text.push_str(".0");
    } else if value_e7.unsigned_abs() < 10 {
        put_number(text, value_e7.into());
        text.push_str("e-7");
    } else {
        put_e7(text, value_e7);
    }
}

fn put_attribute(text: &mut TextBuffer, feature: &Feature<'_>, attribute: Attribute) {
    let info = &feature.info;
    match attribute {
        Attribute::Type => put_string(text, feature.kind.name()),
        Attribute::Id => put_number(text, feature.id),
        Attribute::Version => put_number(text, info.version.unwrap_or(0).into()),
        Attribute::Changeset => put_number(text, info.changeset.unwrap_or(0)),
        Attribute::Uid => put_number(text, info.uid.unwrap_or(0).into()),
        Attribute::User => put_string(text, info.user.unwrap_or("")),
        Attribute::Timestamp => put_number(text, info.timestamp.unwrap_or(0)),
        Attribute::WayNodes => {
            let nodes = feature.way_nodes.unwrap_or_default();
            match nodes.is_empty() {
                true => text.push_str("[]"),
                false => put_array(text, nodes, |text, id| put_number(text, *id)),
            }
        }
    }
}

/// Appends the tags as an object.
pub(super) fn put_tags(text: &mut TextBuffer, tags: &[(&str, &str)]) {
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
fn put_string(text: &mut TextBuffer, string: &str) {
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
