//! Writes rows for `COPY` in PostgreSQL, byte for byte as osmium does.

use super::feature_id::FeatureId;
use super::options::{Attribute, Attributes, TagColumn};
use super::wkb::put_wkb;
use super::{Feature, geojson};
use crate::formats::numbers::{TimeFormatter, put_number};
use crate::formats::text_buffer::TextBuffer;

/// The SRID of WGS 84.
const WGS_84: u32 = 4326;
/// An absent value.
const NULL: &str = "\\N";

/// Appends the row of a feature.
pub(super) fn put_row(
    text: &mut TextBuffer,
    times: &mut TimeFormatter,
    feature: &Feature<'_>,
    attributes: &Attributes,
    tags: TagColumn,
    id: Option<FeatureId<'_>>,
) {
    if let Some(id) = id {
        id.put(text, feature, "");
        text.push('\t');
    }
    put_hex_wkb(text, feature);
    text.push('\t');
    for (attribute, _) in attributes.iter() {
        put_attribute(text, times, feature, attribute);
        text.push('\t');
    }
    match tags {
        TagColumn::Json => {
            let mut json = TextBuffer::new();
            geojson::put_tags(&mut json, feature.tags);
            put_escaped(text, &json.take());
        }
        TagColumn::Hstore => put_hstore(text, feature.tags),
    }
    text.push('\n');
}

fn put_hex_wkb(text: &mut TextBuffer, feature: &Feature<'_>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut wkb = Vec::new();
    put_wkb(&mut wkb, &feature.geometry, Some(WGS_84));
    let digit = |value: u8| DIGITS[usize::from(value)];
    for byte in wkb {
        text.push_ascii([digit(byte >> 4), digit(byte & 15)]);
    }
}

fn put_attribute(
    text: &mut TextBuffer,
    times: &mut TimeFormatter,
    feature: &Feature<'_>,
    attribute: Attribute,
) {
    let info = &feature.info;
    match attribute {
        Attribute::Type => text.push_str(feature.kind.name()),
        Attribute::User => put_escaped(text, info.user.unwrap_or("")),
        Attribute::Timestamp => match info.timestamp {
            Some(timestamp) => times.put(text, timestamp),
            None => text.push_str(NULL),
        },
        Attribute::WayNodes => match feature.way_nodes {
            None => text.push_str(NULL),
            Some(nodes) => {
                text.push('{');
                for (index, node) in nodes.iter().enumerate() {
                    if index > 0 {
                        text.push(',');
                    }
                    put_number(text, *node);
                }
                text.push('}');
            }
        },
        _ => put_number(text, feature.numeric_value(attribute)),
    }
}

fn put_hstore(text: &mut TextBuffer, tags: &[(&str, &str)]) {
    for (index, (key, value)) in tags.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        put_quoted(text, key);
        text.push_str("=>");
        put_quoted(text, value);
    }
}

/// Appends a quoted string of an hstore. It is escaped first for hstore, then for `COPY`.
fn put_quoted(text: &mut TextBuffer, string: &str) {
    text.push('"');
    if !string.contains(['"', '\\']) {
        put_escaped(text, string)
    } else {
        put_escaped(text, &string.replace('\\', "\\\\").replace('"', "\\\""))
    }
    text.push('"');
}

/// Appends a string, escaped for `COPY`.
fn put_escaped(text: &mut TextBuffer, string: &str) {
    let mut rest = string;
    while let Some(at) = rest.find(['\\', '\n', '\r', '\t']) {
        let (before, behind) = rest.split_at(at);
        text.push_str(before);
        let mut chars = behind.chars();
        text.push_str(match chars.next() {
            Some('\n') => "\\n",
            Some('\r') => "\\r",
            Some('\t') => "\\t",
            _ => "\\\\",
        });
        rest = chars.as_str();
    }
    text.push_str(rest);
}
