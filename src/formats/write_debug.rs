//! Writing the debug format: text for people, with a line for each attribute. The bytes are those that osmium writes.

use super::change_set::DocumentHeader;
use super::numbers::{TimeFormatter, put_e7, put_number};
use super::text_options::TextOptions;
use crate::osm::{Location, ObjectKind, format_e7, format_timestamp};
use crate::pbf::{HeaderBlock, Info, InfoFields, Member, Object, ObjectBody, feature};
use std::fmt::Write as _;

/// The text before the objects: the facts of the header.
pub(super) fn debug_prologue(header: &DocumentHeader, pbf_header: &HeaderBlock) -> String {
    let mut text = String::from("header\n  multiple object versions: ");
    text.push_str(match pbf_header.has(feature::HISTORY) {
        true => "yes",
        false => "no",
    });
    text.push_str("\n  bounding boxes: \n");
    for bbox in &header.text.boxes {
        let edges = [
            bbox.min_lon_e7,
            bbox.min_lat_e7,
            bbox.max_lon_e7,
            bbox.max_lat_e7,
        ];
        let [left, bottom, right, top] = edges.map(format_e7);
        let _ = writeln!(text, "    {left},{bottom} {right},{top}");
    }
    text.push_str("  options: \n");
    let mut option = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            let _ = writeln!(text, "    {name} = {value}");
        }
    };
    let state = &header.replication;
    let time = state.timestamp.map(format_timestamp);
    let sequence = state.sequence.map(|number| number.to_string());
    option("generator", header.generator.as_deref());
    option(
        "osmosis_replication_base_url",
        header.replication_url.as_deref(),
    );
    option("osmosis_replication_sequence_number", sequence.as_deref());
    option("osmosis_replication_timestamp", time.as_deref());
    // The features of a text input are those of the temporary PBF file that it was converted to.
    if !pbf_header.is_converted {
        let has = |feature, value| pbf_header.has(feature).then_some(value);
        option("pbf_dense_nodes", has(feature::DENSE_NODES, "true"));
        for (number, name) in pbf_header.optional_features.iter().enumerate() {
            option(&format!("pbf_optional_feature_{number}"), Some(name));
        }
        option("sorting", has(feature::SORTED, "Type_then_ID"));
    }
    option("timestamp", time.as_deref());
    option("version", header.text.version.as_deref());
    option("xml_josm_upload", header.text.josm_upload.as_deref());
    text.push_str("\n=============================================\n\n");
    text
}

/// A buffer of objects in debug format.
#[derive(Debug)]
pub(super) struct DebugText {
    pub text: String,
    times: TimeFormatter,
    without: InfoFields,
}

impl DebugText {
    pub(super) const fn new(options: &TextOptions) -> Self {
        Self {
            text: String::new(),
            times: TimeFormatter::new(),
            without: options.without,
        }
    }

    /// Appends an object.
    pub(super) fn put(&mut self, object: &Object<'_>) {
        let text = &mut self.text;
        text.push_str(object.kind().name());
        text.push(' ');
        put_number(text, object.id);
        text.push_str(if object.info.visible {
            " visible\n"
        } else {
            " deleted\n"
        });
        self.put_info(&object.info);
        let text = &mut self.text;
        if let ObjectBody::Node { location } = &object.body
            && object.info.visible
        {
            text.push_str("  lon/lat:   ");
            put_lon_lat(text, *location);
            if !location.is_some_and(Location::is_on_earth) {
                text.push_str(" INVALID LOCATION!");
            }
            text.push('\n');
        }
        put_tags(text, &object.tags);
        match &object.body {
            ObjectBody::Node { .. } => {}
            ObjectBody::Way { refs, locations } => put_nodes(text, refs, locations),
            ObjectBody::Relation { members } => put_members(text, members),
        }
        text.push('\n');
    }

    fn put_info(&mut self, info: &Info<'_>) {
        let (text, without) = (&mut self.text, self.without);
        let has = |field| !without.contains(field);
        if has(InfoFields::VERSION) {
            let _ = writeln!(text, "  version:   {}", info.version.unwrap_or(0));
        }
        if has(InfoFields::CHANGESET) {
            let _ = writeln!(text, "  changeset: {}", info.changeset.unwrap_or(0));
        }
        if has(InfoFields::TIMESTAMP) {
            text.push_str("  timestamp: ");
            match info.timestamp {
                None => text.push_str("NOT SET"),
                Some(timestamp) => {
                    self.times.put(text, timestamp);
                    let _ = write!(text, " ({timestamp})");
                }
            }
            text.push('\n');
        }
        if has(InfoFields::UID) || has(InfoFields::USER) {
            text.push_str("  user:      ");
            if has(InfoFields::UID) {
                let _ = write!(text, "{} ", info.uid.unwrap_or(0));
            }
            if has(InfoFields::USER) {
                put_quoted(text, info.user.unwrap_or(""));
            }
            text.push('\n');
        }
    }
}

fn put_tags(text: &mut String, tags: &[(&str, &str)]) {
    let Some(width) = tags.iter().map(|(key, _)| key.len()).max() else {
        return;
    };
    let _ = writeln!(text, "  tags:      {}", tags.len());
    for (key, value) in tags {
        text.push_str("    ");
        put_quoted(text, key);
        let padding = width - key.len();
        let _ = write!(text, "{:padding$} = ", "");
        put_quoted(text, value);
        text.push('\n');
    }
}

fn put_nodes(text: &mut String, refs: &[i64], locations: &[Option<Location>]) {
    let _ = write!(text, "  nodes:     {}", refs.len());
    text.push_str(match refs {
        [] | [_] => " LESS THAN 2 NODES!\n",
        [first, .., last] if first == last => " (closed)\n",
        _ => " (open)\n",
    });
    let width = digits(refs.len());
    for (index, id) in refs.iter().enumerate() {
        let _ = write!(text, "    {index:0width$}: {id:>10}");
        if let Some(location) = locations.get(index).copied().flatten() {
            text.push_str(" (");
            put_lon_lat(text, Some(location));
            if !location.is_on_earth() {
                text.push_str(" INVALID LOCATION!");
            }
            text.push(')');
        }
        text.push('\n');
    }
}

fn put_members(text: &mut String, members: &[Member<'_>]) {
    let _ = writeln!(text, "  members:   {}", members.len());
    let width = digits(members.len());
    for (index, member) in members.iter().enumerate() {
        let kind = match member.kind {
            ObjectKind::Node => "node",
            ObjectKind::Way => "way ",
            ObjectKind::Relation => "rel ",
        };
        let _ = write!(text, "    {index:0width$}: {kind} {:>10} ", member.id);
        put_quoted(text, member.role);
        text.push('\n');
    }
}

/// The number of decimal digits of `count`, at least 1.
const fn digits(count: usize) -> usize {
    match count.checked_ilog10() {
        Some(log) => log as usize + 1,
        None => 1,
    }
}

/// Appends longitude and latitude, separated by a comma.
fn put_lon_lat(text: &mut String, location: Option<Location>) {
    let (lat_e7, lon_e7) = Location::stored_e7(location);
    put_e7(text, lon_e7);
    text.push(',');
    put_e7(text, lat_e7);
}

/// Appends a string in quotation marks. Characters that would be mistaken for something else become `<U+…>`.
fn put_quoted(out: &mut String, text: &str) {
    out.push('"');
    for char in text.chars() {
        match char {
            '\u{20}'..='\u{21}'
            | '\u{23}'..='\u{3b}'
            | '\u{3d}'
            | '\u{3f}'..='\u{7e}'
            | '\u{a1}'..='\u{ac}'
            | '\u{ae}'..='\u{5ff}' => out.push(char),
            _ => {
                let _ = write!(out, "<U+{:04X}>", u32::from(char));
            }
        }
    }
    out.push('"');
}
