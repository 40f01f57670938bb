//! Writing OSM XML.

use super::change_set::DocumentHeader;
use super::numbers::{TimeFormatter, put_e7, put_number};
use crate::osm::{Location, format_e7, format_timestamp};
use crate::pbf::{HeaderBlock, Info, Object, ObjectBody};
use std::fmt::Write as _;

/// A buffer of objects as elements of an OSM XML document, without the document's prologue and epilogue.
#[derive(Debug, Default)]
pub struct XmlText {
    elements: XmlBuffer,
}

impl XmlText {
    /// The text before the objects: the start tag of the root element with the document header, and the bounds.
    pub fn prologue(document_header: &DocumentHeader) -> String {
        let mut text = document("osm", document_header);
        if let Some(bbox) = document_header.bbox {
            let [minlat, minlon, maxlat, maxlon] = [
                bbox.min_lat_e7,
                bbox.min_lon_e7,
                bbox.max_lat_e7,
                bbox.max_lon_e7,
            ]
            .map(format_e7);
            let _ = writeln!(
                text,
                "  <bounds minlat=\"{minlat}\" minlon=\"{minlon}\" maxlat=\"{maxlat}\" maxlon=\"{maxlon}\"/>"
            );
        }
        text
    }

    /// The text after the objects.
    pub const EPILOGUE: &str = "</osm>\n";

    /// An empty buffer. If `has_visibility`, every object gets the attribute `visible`, as in history files; otherwise
    /// only deleted objects get it.
    pub fn with_visibility(has_visibility: bool) -> Self {
        Self {
            elements: XmlBuffer {
                visibility: match has_visibility {
                    true => Visibility::All,
                    false => Visibility::Deleted,
                },
                ..XmlBuffer::default()
            },
        }
    }

    /// Appends an object.
    pub fn put(&mut self, object: &Object<'_>) {
        self.elements.put(object, "  ");
    }

    /// The elements, and the number of characters in them that XML 1.0 cannot express.
    pub fn finish(self) -> (String, u64) {
        (self.elements.text, self.elements.inexpressible)
    }
}

impl DocumentHeader {
    /// The document header with the data of a PBF file's header.
    pub fn of(header: &HeaderBlock) -> Self {
        Self {
            replication: super::Replication {
                sequence: header.replication_sequence,
                timestamp: header.replication_timestamp,
            },
            replication_url: header.replication_url.clone(),
            bbox: header.bbox(),
            generator: header.writing_program.clone(),
        }
    }
}

/// The XML declaration and the start tag of the root element, with the document header as attributes.
pub(super) fn document(root: &str, document_header: &DocumentHeader) -> String {
    let mut text = format!("<?xml version='1.0' encoding='UTF-8'?>\n<{root} version=\"0.6\"");
    let mut attribute = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(text, " {name}=\"");
            put_escaped(&mut text, &value);
            text.push('"');
        }
    };
    let state = &document_header.replication;
    attribute("generator", document_header.generator.clone());
    let url = document_header.replication_url.clone();
    attribute("osmosis_replication_base_url", url);
    let sequence = state.sequence.map(|number| number.to_string());
    attribute("osmosis_replication_sequence_number", sequence);
    let time = state.timestamp.map(format_timestamp);
    attribute("osmosis_replication_timestamp", time);
    text.push_str(">\n");
    text
}

/// The objects that get the attribute `visible`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Visibility {
    All,
    #[default]
    Deleted,
    /// No object: the sections of a change file show which objects are deleted.
    Unsaid,
}

/// A buffer of objects as XML elements.
#[derive(Debug, Default)]
pub(super) struct XmlBuffer {
    pub text: String,
    pub times: TimeFormatter,
    pub visibility: Visibility,
    pub inexpressible: u64,
}

impl XmlBuffer {
    /// Appends an object.
    pub(super) fn put(&mut self, object: &Object<'_>, indent: &str) {
        let kind = object.kind().name();
        let text = &mut self.text;
        for part in [indent, "<", kind, " id=\""] {
            text.push_str(part);
        }
        put_number(text, object.id);
        text.push('"');
        self.put_info(&object.info);
        if let ObjectBody::Node { location } = object.body {
            put_location(&mut self.text, location);
        }
        let start = self.text.len();
        self.text.push_str(">\n");
        let empty = self.text.len();
        self.put_references(object, indent);
        for (key, value) in &object.tags {
            let text = &mut self.text;
            text.push_str(indent);
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
            for part in [indent, "</", kind, ">\n"] {
                text.push_str(part);
            }
        }
    }

    /// Appends the attributes of the metadata.
    fn put_info(&mut self, info: &Info<'_>) {
        let text = &mut self.text;
        if let Some(version) = info.version {
            put_attribute(text, "version", version.into());
        }
        if let Some(timestamp) = info.timestamp {
            text.push_str(" timestamp=\"");
            self.times.put(text, timestamp);
            text.push('"');
        }
        if let Some(uid) = info.uid {
            put_attribute(text, "uid", uid.into());
        }
        if let Some(user) = info.user {
            text.push_str(" user=\"");
            self.inexpressible += put_escaped(text, user);
            text.push('"');
        }
        if let Some(changeset) = info.changeset {
            put_attribute(text, "changeset", changeset);
        }
        let has_visibility = match self.visibility {
            Visibility::All => true,
            Visibility::Deleted => !info.visible,
            Visibility::Unsaid => false,
        };
        if has_visibility {
            let _ = write!(text, " visible=\"{}\"", info.visible);
        }
    }

    fn put_references(&mut self, object: &Object<'_>, indent: &str) {
        let text = &mut self.text;
        match &object.body {
            ObjectBody::Node { .. } => {}
            ObjectBody::Way { refs, locations } => {
                for (index, id) in refs.iter().enumerate() {
                    text.push_str(indent);
                    text.push_str("  <nd ref=\"");
                    put_number(text, *id);
                    text.push('"');
                    if let Some(location) = locations.get(index) {
                        put_location(text, *location);
                    }
                    text.push_str("/>\n");
                }
            }
            ObjectBody::Relation { members } => {
                for member in members {
                    text.push_str(indent);
                    let _ = write!(
                        text,
                        "  <member type=\"{}\" ref=\"{}\" role=\"",
                        member.kind, member.id
                    );
                    self.inexpressible += put_escaped(text, member.role);
                    text.push_str("\"/>\n");
                }
            }
        }
    }
}

fn put_attribute(text: &mut String, name: &str, value: i64) {
    text.push(' ');
    text.push_str(name);
    text.push_str("=\"");
    put_number(text, value);
    text.push('"');
}

/// Appends the attributes lat and lon of a location.
fn put_location(text: &mut String, location: Option<Location>) {
    if let Some(location) = location {
        text.push_str(" lat=\"");
        put_e7(text, location.lat_e7());
        text.push_str("\" lon=\"");
        put_e7(text, location.lon_e7());
        text.push('"');
    }
}

/// Appends a string as the value of an attribute. Line breaks and tabs become character references, since readers
/// replace them by spaces otherwise. Characters that XML 1.0 cannot express become references, too, except NUL,
/// which becomes U+FFFD. Returns the number of characters that XML 1.0 cannot express.
pub(super) fn put_escaped(out: &mut String, text: &str) -> u64 {
    let mut inexpressible = 0;
    let mut rest = text;
    // Nearly all strings have no special character.
    let is_special = |char: char| {
        matches!(
            char,
            '\0'..='\u{1f}' | '"' | '&' | '\'' | '<' | '>' | '\u{fffe}' | '\u{ffff}'
        )
    };
    while let Some(at) = rest.find(is_special) {
        let (before, behind) = rest.split_at(at);
        out.push_str(before);
        let mut chars = behind.chars();
        match chars.next().unwrap_or_default() {
            '"' => out.push_str("&quot;"),
            '&' => out.push_str("&amp;"),
            '\'' => out.push_str("&apos;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\0' => {
                // XML has no reference for NUL.
                inexpressible += 1;
                out.push(char::REPLACEMENT_CHARACTER);
            }
            char => {
                inexpressible += u64::from(!matches!(char, '\t' | '\n' | '\r'));
                let _ = write!(out, "&#x{:X};", u32::from(char));
            }
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    inexpressible
}
