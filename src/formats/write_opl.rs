//! Writing OPL. The output is identical to that of osmium, byte for byte.

use super::numbers::TimeFormatter;
use super::object_lines::ObjectLines;
use super::text_buffer::{ShortText, TextBuffer};
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
        let Self { text, times, .. } = self;
        text.push_short(|text| {
            text.put([object.kind().letter() as u8]);
            text.put_number(object.id);
        });
        if self.without != InfoFields::ALL {
            text.put_info(has_same_info, |text| {
                put_info(text, times, self.without, &object.info);
                true
            });
        }
        put_tags(text, &object.tags);
        match &object.body {
            ObjectBody::Node { location } => {
                text.push_short(|text| put_location(text, *location, *b" x", *b" y"));
            }
            ObjectBody::Way { refs, locations } => {
                text.push_str(" N");
                for (index, id) in refs.iter().enumerate() {
                    let location = match (self.way_locations, locations.get(index)) {
                        (WayLocations::Never, _) | (WayLocations::IfKnown, None) => None,
                        (WayLocations::Always, None) => Some(None),
                        (_, Some(location)) => Some(*location),
                    };
                    text.push_short(|text| {
                        if index > 0 {
                            text.put(*b",");
                        }
                        text.put(*b"n");
                        text.put_number(*id);
                        if let Some(location) = location {
                            put_location(text, location, *b"x", *b"y");
                        }
                    });
                }
            }
            ObjectBody::Relation { members } => {
                text.push_str(" M");
                for (index, member) in members.iter().enumerate() {
                    text.push_short(|text| {
                        if index > 0 {
                            text.put(*b",");
                        }
                        text.put([member.kind.letter() as u8]);
                        text.put_number(member.id);
                        text.put(*b"@");
                    });
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
    text.push_short(|text| {
        if !without.contains(InfoFields::VERSION) {
            text.put(*b" v");
            text.put_number(info.version.unwrap_or(0).into());
        }
        text.put(if info.visible { *b" dV" } else { *b" dD" });
        if !without.contains(InfoFields::CHANGESET) {
            text.put(*b" c");
            text.put_number(info.changeset.unwrap_or(0));
        }
    });
    if !without.contains(InfoFields::TIMESTAMP) {
        text.push_str(" t");
        if let Some(timestamp) = info.timestamp {
            times.put(text, timestamp);
        }
    }
    if !without.contains(InfoFields::UID) {
        text.push_short(|text| {
            text.put(*b" i");
            text.put_number(info.uid.unwrap_or(0).into());
        });
    }
    if !without.contains(InfoFields::USER) {
        text.push_str(" u");
        put_escaped(text, info.user.unwrap_or(""));
    }
}

/// Appends a location: its longitude after `x`, and its latitude after `y`. An undefined location has no digits.
#[inline(always)]
fn put_location<const N: usize>(
    text: &mut ShortText<'_>,
    location: Option<Location>,
    x: [u8; N],
    y: [u8; N],
) {
    text.put(x);
    if let Some(location) = location {
        text.put_decimal_degrees(location.lon_e7());
    }
    text.put(y);
    if let Some(location) = location {
        text.put_decimal_degrees(location.lat_e7());
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
