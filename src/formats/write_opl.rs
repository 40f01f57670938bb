//! Writing OPL, with the same bytes as osmium.

use super::numbers::{TimeFormatter, put_e7, put_number};
use crate::osm::Location;
use crate::pbf::{Object, ObjectBody};
use std::fmt::Write as _;

/// A buffer of objects as lines of OPL.
#[derive(Debug, Default)]
pub struct OplText {
    text: String,
    times: TimeFormatter,
}

impl OplText {
    /// Appends an object.
    pub fn put(&mut self, object: &Object<'_>) {
        let (text, info) = (&mut self.text, &object.info);
        text.push(object.kind().letter());
        put_number(text, object.id);
        text.push_str(" v");
        put_number(text, info.version.unwrap_or(0).into());
        text.push_str(if info.visible { " dV c" } else { " dD c" });
        put_number(text, info.changeset.unwrap_or(0));
        text.push_str(" t");
        if let Some(timestamp) = info.timestamp {
            self.times.put(text, timestamp);
        }
        text.push_str(" i");
        put_number(text, info.uid.unwrap_or(0).into());
        text.push_str(" u");
        put_escaped(text, info.user.unwrap_or(""));
        text.push_str(" T");
        for (index, (key, value)) in object.tags.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            put_escaped(text, key);
            text.push('=');
            put_escaped(text, value);
        }
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
                    if let Some(location) = locations.get(index) {
                        put_location(text, *location, "");
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

    /// The text of all objects.
    pub fn finish(self) -> String {
        self.text
    }
}

/// Appends the fields `x` and `y`, separated by `between`. Both are empty for an undefined location.
fn put_location(text: &mut String, location: Option<Location>, between: &str) {
    text.push('x');
    if let Some(location) = location {
        put_e7(text, location.lon_e7());
    }
    text.push_str(between);
    text.push('y');
    if let Some(location) = location {
        put_e7(text, location.lat_e7());
    }
}

/// Appends a string. Characters with a meaning in OPL, and invisible characters, become `%hex%`.
pub(super) fn put_escaped(out: &mut String, text: &str) {
    let is_escaped = |char: char| {
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
    };
    let mut rest = text;
    // Nearly all characters stand for themselves: they are copied run by run.
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
