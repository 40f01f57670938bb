//! Writes features as lines, with the geometry as WKT and the tags in the notation of OPL, byte for byte as osmium
//! does.

use super::feature_id::FeatureId;
use super::options::{Attribute, Attributes};
use super::{Feature, Geometry, closed_rings};
use crate::formats::numbers::{put_decimal_degrees, put_number};
use crate::formats::text_buffer::TextBuffer;
use crate::formats::write_opl::put_escaped;
use crate::geometry::Point;

/// Appends the line of a feature. As in osmium, names of users and of attributes are not escaped, because the text is
/// for people, not for parsers.
pub(super) fn put_line(
    text: &mut TextBuffer,
    feature: &Feature<'_>,
    attributes: &Attributes,
    id: Option<FeatureId<'_>>,
) {
    if let Some(id) = id {
        id.put(text, feature, "");
        text.push(' ');
    }
    put_geometry(text, &feature.geometry);
    let mut separator = ' ';
    for (attribute, name) in attributes.iter() {
        if feature.is_attribute_left_out(attribute) {
            continue;
        }
        text.push(separator);
        separator = ',';
        text.push_str(name);
        text.push('=');
        put_attribute(text, feature, attribute);
    }
    for (key, value) in feature.tags {
        if !attributes.has_name(key) {
            text.push(separator);
            separator = ',';
            put_escaped(text, key);
            text.push('=');
            put_escaped(text, value);
        }
    }
    text.push_str(if separator == ' ' { " \n" } else { "\n" });
}

fn put_attribute(text: &mut TextBuffer, feature: &Feature<'_>, attribute: Attribute) {
    match attribute {
        Attribute::Type => text.push_str(feature.kind.name()),
        Attribute::User => text.push_str(feature.info.user.unwrap_or("")),
        Attribute::WayNodes => {
            let nodes = feature.way_nodes.unwrap_or_default();
            for (index, node) in nodes.iter().enumerate() {
                if index > 0 {
                    text.push('/');
                }
                put_number(text, *node);
            }
        }
        _ => put_number(text, feature.numeric_value(attribute)),
    }
}

/// Appends a geometry as WKT.
pub(super) fn put_geometry(text: &mut TextBuffer, geometry: &Geometry<'_>) {
    match geometry {
        Geometry::Point(point) => {
            text.push_str("POINT");
            put_points(text, [*point].into_iter());
        }
        Geometry::LineString(points) => {
            text.push_str("LINESTRING");
            put_points(text, points.iter().copied());
        }
        Geometry::MultiLineString(lines) => {
            text.push_str("MULTILINESTRING");
            for (index, line) in lines.iter().enumerate() {
                text.push(if index == 0 { '(' } else { ',' });
                put_points(text, line.iter().copied());
            }
            text.push(')');
        }
        Geometry::MultiPolygon(polygons) => {
            text.push_str("MULTIPOLYGON");
            for (index, polygon) in polygons.iter().enumerate() {
                text.push_str(if index == 0 { "((" } else { ",(" });
                for (index, ring) in closed_rings(polygon).enumerate() {
                    text.push_str(if index == 0 { "" } else { "," });
                    put_points(text, ring);
                }
                text.push(')');
            }
            text.push(')');
        }
    }
}

fn put_points(text: &mut TextBuffer, points: impl Iterator<Item = Point>) {
    let mut separator = '(';
    for point in points {
        text.push(separator);
        separator = ',';
        put_decimal_degrees(text, point.lon_e7);
        text.push(' ');
        put_decimal_degrees(text, point.lat_e7);
    }
    text.push(')');
}
