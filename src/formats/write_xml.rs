//! Writing OSM XML.

use super::document_header::DocumentHeader;
use super::numbers::{TimeFormatter, put_decimal_degrees, put_number};
use super::object_lines::ObjectLines;
use super::text_buffer::TextBuffer;
use super::text_options::{TextOptions, Visibility, WayLocations};
use crate::osm::{Location, ObjectKind, format_e7, format_timestamp};
use crate::pbf::{Info, InfoFields, Object, ObjectBody};
use std::fmt::Write as _;

/// Returns the text before the objects of an OSM XML file. It consists of the XML declaration, the start tag of the
/// root element with the document header as attributes, and the bounds.
pub(crate) fn xml_prologue(document_header: &DocumentHeader) -> TextBuffer {
    let mut text = document_start("osm", document_header);
    put_bounds(&mut text, document_header);
    text
}

/// The text after the objects of an OSM XML file.
pub(crate) const XML_EPILOGUE: &str = "</osm>\n";

/// Returns the XML declaration and the start tag of the root element, which has the document header as attributes.
pub(super) fn document_start(root: &str, document_header: &DocumentHeader) -> TextBuffer {
    let mut text = TextBuffer::new();
    let _ = write!(
        text,
        "<?xml version='1.0' encoding='UTF-8'?>\n<{root} version=\"0.6\""
    );
    let mut attribute = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(text, " {name}=\"");
            put_escaped(&mut text, &value);
            text.push('"');
        }
    };
    let state = &document_header.replication;
    if root == "osm" {
        attribute("upload", document_header.text.josm_upload.clone());
    }
    attribute("generator", document_header.generator.clone());
    let url = document_header.replication_url.clone();
    attribute("osmosis_replication_base_url", url);
    let sequence = state.sequence.map(|number| number.to_string());
    attribute("osmosis_replication_sequence_number", sequence);
    let time = state.timestamp.map(format_timestamp);
    attribute("osmosis_replication_timestamp", time);
    // Without the attributes below, readers assume that a change file covers one step in the sequence. Only a change
    // file that covers several steps gets these attributes.
    let previous = &document_header.previous;
    let is_step = previous
        .sequence
        .zip(state.sequence)
        .is_some_and(|(old, new)| old == new - 1);
    let sequence = previous
        .sequence
        .filter(|_| !is_step)
        .map(|number| number.to_string());
    attribute("osmosis_replication_previous_sequence_number", sequence);
    let time = previous
        .timestamp
        .filter(|_| !is_step)
        .map(format_timestamp);
    attribute("osmosis_replication_previous_timestamp", time);
    text.push_str(">\n");
    text
}

/// Appends a `bounds` element for each box of the document header.
pub(super) fn put_bounds(text: &mut TextBuffer, document_header: &DocumentHeader) {
    for bbox in &document_header.text.boxes {
        let edges = [
            ("minlat", bbox.min_lat_e7),
            ("minlon", bbox.min_lon_e7),
            ("maxlat", bbox.max_lat_e7),
            ("maxlon", bbox.max_lon_e7),
        ];
        text.push_str("  <bounds");
        for (name, value) in edges {
            let _ = write!(text, " {name}=\"{}\"", format_e7(value));
        }
        text.push_str("/>\n");
    }
}

/// The indentation of the element of an object.
#[derive(Debug, Clone, Copy)]
pub(super) enum Indent {
    /// Two spaces, for an object in the root element.
    Root,
    /// Four spaces, for an object in a section.
    Section,
}

impl Indent {
    #[inline(always)]
    fn put(self, text: &mut TextBuffer) {
        // Each arm copies a string of constant length, for which the compiler needs no function call.
        match self {
            Self::Root => text.push_str("  "),
            Self::Section => text.push_str("    "),
        }
    }
}

/// A buffer of objects as XML elements.
#[derive(Debug)]
pub(super) struct XmlBuffer {
    pub text: TextBuffer,
    times: TimeFormatter,
    visibility: Visibility,
    without: InfoFields,
    way_locations: WayLocations,
    /// The number of characters in `text` that XML 1.0 cannot express.
    pub inexpressible: u64,
}

impl ObjectLines for XmlBuffer {
    fn put(&mut self, object: &Object<'_>, has_same_info: bool) {
        self.put(object, has_same_info, Indent::Root);
    }

    fn text(&mut self) -> &mut TextBuffer {
        &mut self.text
    }

    fn take_inexpressible(&mut self) -> u64 {
        std::mem::take(&mut self.inexpressible)
    }
}

impl XmlBuffer {
    /// Creates an empty buffer for text with the given options. `visibility` selects the objects that get the attribute
    /// `visible`.
    pub(super) const fn new(options: &TextOptions, visibility: Visibility) -> Self {
        Self {
            text: TextBuffer::new(),
            times: TimeFormatter::new(),
            visibility,
            without: options.without,
            way_locations: options.way_locations,
            inexpressible: 0,
        }
    }

    /// Appends an object. `has_same_info` tells whether its metadata equals that of the previous object.
    pub(super) fn put(&mut self, object: &Object<'_>, has_same_info: bool, indent: Indent) {
        let text = &mut self.text;
        indent.put(text);
        text.push_str(match object.kind() {
            ObjectKind::Node => "<node id=\"",
            ObjectKind::Way => "<way id=\"",
            ObjectKind::Relation => "<relation id=\"",
        });
        put_number(text, object.id);
        text.push('"');
        self.put_info(&object.info, has_same_info);
        if let ObjectBody::Node { location } = object.body {
            put_location(&mut self.text, location);
        }
        let start = self.text.len();
        self.text.push_str(">\n");
        let empty = self.text.len();
        self.put_references(object, indent);
        for (key, value) in &object.tags {
            let text = &mut self.text;
            indent.put(text);
            text.push_str("  <tag k=\"");
            self.inexpressible += put_escaped(text, key);
            text.push_str("\" v=\"");
            self.inexpressible += put_escaped(text, value);
            text.push_str("\"/>\n");
        }
        let text = &mut self.text;
        if text.len() == empty {
            text.truncate(start);
            text.push_str("/>\n");
        } else {
            indent.put(text);
            text.push_str(match object.kind() {
                ObjectKind::Node => "</node>\n",
                ObjectKind::Way => "</way>\n",
                ObjectKind::Relation => "</relation>\n",
            });
        }
    }

    /// Appends the attributes of the metadata.
    fn put_info(&mut self, info: &Info<'_>, is_same: bool) {
        let (times, inexpressible) = (&mut self.times, &mut self.inexpressible);
        let (without, visibility) = (self.without, self.visibility);
        let has = |field| !without.contains(field);
        self.text.put_info(is_same, |text| {
            let before = *inexpressible;
            if let Some(version) = info.version.filter(|_| has(InfoFields::VERSION)) {
                put_attribute(text, "version", version.into());
            }
            if let Some(timestamp) = info.timestamp.filter(|_| has(InfoFields::TIMESTAMP)) {
                text.push_str(" timestamp=\"");
                times.put(text, timestamp);
                text.push('"');
            }
            if let Some(uid) = info.uid.filter(|_| has(InfoFields::UID)) {
                put_attribute(text, "uid", uid.into());
            }
            if let Some(user) = info.user.filter(|_| has(InfoFields::USER)) {
                text.push_str(" user=\"");
                *inexpressible += put_escaped(text, user);
                text.push('"');
            }
            if let Some(changeset) = info.changeset.filter(|_| has(InfoFields::CHANGESET)) {
                put_attribute(text, "changeset", changeset);
            }
            let has_visibility = match visibility {
                Visibility::All => true,
                Visibility::Deleted => !info.visible,
                Visibility::Never => false,
            };
            if has_visibility {
                text.push_str(if info.visible {
                    " visible=\"true\""
                } else {
                    " visible=\"false\""
                });
            }
            *inexpressible == before
        });
    }

    fn put_references(&mut self, object: &Object<'_>, indent: Indent) {
        let text = &mut self.text;
        match &object.body {
            ObjectBody::Node { .. } => {}
            ObjectBody::Way { refs, locations } => {
                for (index, id) in refs.iter().enumerate() {
                    indent.put(text);
                    text.push_str("  <nd ref=\"");
                    put_number(text, *id);
                    text.push('"');
                    if self.way_locations != WayLocations::Never
                        && let Some(location) = locations.get(index)
                    {
                        put_location(text, *location);
                    }
                    text.push_str("/>\n");
                }
            }
            ObjectBody::Relation { members } => {
                for member in members {
                    indent.put(text);
                    text.push_str("  <member type=\"");
                    text.push_str(member.kind.name());
                    text.push_str("\" ref=\"");
                    put_number(text, member.id);
                    text.push_str("\" role=\"");
                    self.inexpressible += put_escaped(text, member.role);
                    text.push_str("\"/>\n");
                }
            }
        }
    }
}

pub(super) fn put_attribute(text: &mut TextBuffer, name: &str, value: i64) {
    text.push(' ');
    text.push_str(name);
    text.push_str("=\"");
    put_number(text, value);
    text.push('"');
}

/// Appends the attributes lat and lon of a location.
pub(super) fn put_location(text: &mut TextBuffer, location: Option<Location>) {
    if let Some(location) = location {
        text.push_str(" lat=\"");
        put_decimal_degrees(text, location.lat_e7());
        text.push_str("\" lon=\"");
        put_decimal_degrees(text, location.lon_e7());
        text.push('"');
    }
}

/// A table that tells for each byte whether it is plain. A plain byte occurs in no character that must be escaped.
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        plain[byte] = !matches!(
            byte as u8,
            ..b' ' | b'"' | b'&' | b'\'' | b'<' | b'>' | 0xef
        );
        byte += 1;
    }
    plain
};

/// Appends a string as the value of an attribute. Line breaks and tabs become character references, because readers
/// would otherwise replace them with spaces. Characters that XML 1.0 cannot express also become references. The only
/// exception is NUL: it becomes U+FFFD. Returns the number of characters that XML 1.0 cannot express.
pub(super) fn put_escaped(out: &mut TextBuffer, text: &str) -> u64 {
    put_escaped_as(out, text, |char| char == '\0')
}

/// Appends a string as [`put_escaped`] does, but writes U+FFFD for each character that XML 1.0 cannot express.
pub(super) fn put_escaped_with_replacement(out: &mut TextBuffer, text: &str) -> u64 {
    put_escaped_as(out, text, |_| true)
}

/// Appends an escaped string. A character that XML 1.0 cannot express becomes U+FFFD if `is_replaced` returns `true`
/// for it. Otherwise it becomes a reference. Returns the number of characters that XML 1.0 cannot express.
fn put_escaped_as(out: &mut TextBuffer, text: &str, is_replaced: fn(char) -> bool) -> u64 {
    // Nearly all strings have no special character, and are copied whole. The byte 0xef is not plain, because the
    // special characters U+FFFE and U+FFFF begin with it in UTF-8.
    let is_plain = |byte: u8| PLAIN[usize::from(byte)];
    if text.bytes().all(is_plain) {
        out.push_str(text);
        return 0;
    }
    let (mut inexpressible, mut start) = (0, 0);
    let is_special = |(_, char): &(usize, char)| {
        matches!(
            *char,
            '\0'..='\u{1f}' | '"' | '&' | '\'' | '<' | '>' | '\u{fffe}' | '\u{ffff}'
        )
    };
    for (at, char) in text.char_indices().filter(is_special) {
        out.push_str(&text[start..at]);
        start = at + char.len_utf8();
        match char {
            '"' => out.push_str("&quot;"),
            '&' => out.push_str("&amp;"),
            '\'' => out.push_str("&apos;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            char => {
                let is_inexpressible = !matches!(char, '\t' | '\n' | '\r');
                inexpressible += u64::from(is_inexpressible);
                // XML has no reference for NUL, so `is_replaced` returns true at least for NUL.
                if is_inexpressible && is_replaced(char) {
                    out.push(char::REPLACEMENT_CHARACTER);
                } else {
                    let _ = write!(out, "&#x{:X};", u32::from(char));
                }
            }
        }
    }
    out.push_str(&text[start..]);
    inexpressible
}
