//! Writing OPL. The output is identical to that of osmium, byte for byte.

use super::numbers::{TimeFormatter, put_decimal_degrees, put_number};
use super::object_lines::ObjectLines;
use super::text_buffer::TextBuffer;
use super::text_options::{TextOptions, WayLocations};
use crate::osm::Location;
use crate::pbf::{Info, InfoFields, Object, ObjectBody};
use std::fmt::Write as _;

/// A buffer of objects as lines of OPL.
#[derive(Debug)]
pub struct OplText {
    pub(super) text: TextBuffer,
    times: TimeFormatter,
    without: InfoFields,
    way_locations: WayLocations,
}

impl OplText {
    /// Creates an empty buffer for text with the given options.
    pub const fn new(options: &TextOptions) -> Self {
        Self {
            text: TextBuffer::new(),
            times: TimeFormatter::new(),
            without: options.without,
            way_locations: options.way_locations,
        }
    }
}

impl ObjectLines for OplText {
    fn text(&mut self) -> &mut TextBuffer {
        &mut self.text
    }

    fn put(&mut self, object: &Object<'_>, has_same_info: bool) {
        self.text.push(object.kind().letter());
        put_number(&mut self.text, object.id);
        let Self { text, times, .. } = self;
        if self.without != InfoFields::ALL {
            text.put_info(has_same_info, |text| {
                put_info(text, times, self.without, &object.info);
                true
            });
        }
        put_tags(text, &object.tags);
        match &object.body {
            ObjectBody::Node { location } => {
                text.push(' ');
                put_location(text, *location, " ");
            }
            ObjectBody::Way { refs, locations } => {
                text.push_str(" N");
                for (index, id) in refs.iter().enumerate() {
                    text.push_str(if index > 0 { ",n" } else { "n" });
                    put_number(text, *id);
                    match (self.way_locations, locations.get(index)) {
                        (WayLocations::Never, _) | (WayLocations::IfKnown, None) => {}
                        (WayLocations::Always, None) => put_location(text, None, ""),
                        (_, Some(location)) => put_location(text, *location, ""),
                    }
                }
            }
            ObjectBody::Relation { members } => {
                text.push_str(" M");
                for (index, member) in members.iter().enumerate() {
                    if index > 0 {
                        text.push(',');
                    }
                    text.push(member.kind.letter());
                    put_number(text, member.id);
                    text.push('@');
                    put_escaped(text, member.role);
                }
            }
        }
        text.push('\n');
    }
}

/// Appends the field with the tags.
pub(super) fn put_tags<K: AsRef<str>>(text: &mut TextBuffer, tags: &[(K, K)]) {
    text.push_str(" T");
    for (index, (key, value)) in tags.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        put_escaped(text, key.as_ref());
        text.push('=');
        put_escaped(text, value.as_ref());
    }
}

/// Appends the fields with the metadata.
fn put_info(
    text: &mut TextBuffer,
    times: &mut TimeFormatter,
    without: InfoFields,
    info: &Info<'_>,
) {
    if !without.contains(InfoFields::VERSION) {
        text.push_str(" v");
        put_number(text, info.version.unwrap_or(0).into());
    }
    text.push_str(if info.visible { " dV" } else { " dD" });
    if !without.contains(InfoFields::CHANGESET) {
        text.push_str(" c");
        put_number(text, info.changeset.unwrap_or(0));
    }
    if !without.contains(InfoFields::TIMESTAMP) {
        text.push_str(" t");
        if let Some(timestamp) = info.timestamp {
            times.put(text, timestamp);
        }
    }
    if !without.contains(InfoFields::UID) {
        text.push_str(" i");
        put_number(text, info.uid.unwrap_or(0).into());
    }
    if !without.contains(InfoFields::USER) {
        text.push_str(" u");
        put_escaped(text, info.user.unwrap_or(""));
    }
}

/// Appends the fields `x` and `y`, separated by `between`. For an undefined location, both fields are empty.
fn put_location(text: &mut TextBuffer, location: Option<Location>, between: &str) {
    text.push('x');
    if let Some(location) = location {
        put_decimal_degrees(text, location.lon_e7());
    }
    text.push_str(between);
    text.push('y');
    if let Some(location) = location {
        put_decimal_degrees(text, location.lat_e7());
    }
}

/// Whether a character is escaped: it has a meaning in OPL, is invisible, or lies above U+05FF.
const fn is_escaped(char: char) -> bool {
    !matches!(
        char,
        '\u{21}'..='\u{24}'
            | '\u{26}'..='\u{2b}'
            | '\u{2d}'..='\u{3c}'
            | '\u{3e}'..='\u{3f}'
            | '\u{41}'..='\u{7e}'
            | '\u{a1}'..='\u{ac}'
            | '\u{ae}'..='\u{5ff}'
    )
}

/// For each byte, whether it is an ASCII character that needs no escape.
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0u8;
    while byte < 0x80 {
        plain[byte as usize] = !is_escaped(byte as char);
        byte += 1;
    }
    plain
};

/// Appends a string. A character for which [`is_escaped`] returns true becomes `%hex%`.
pub(super) fn put_escaped(out: &mut TextBuffer, text: &str) {
    // Nearly all strings are ASCII without special characters, and are copied whole.
    let is_plain = |byte: u8| PLAIN[usize::from(byte)];
    if text.bytes().all(is_plain) {
        out.push_str(text);
        return;
    }
    let mut rest = text;
    while let Some(at) = rest.find(is_escaped) {
        let (before, behind) = rest.split_at(at);
        out.push_str(before);
        let mut chars = behind.chars();
        if let Some(char) = chars.next() {
            let width = if char < '\u{100}' { 2 } else { 4 };
            let _ = write!(out, "%{:0width$x}%", u32::from(char));
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
}
