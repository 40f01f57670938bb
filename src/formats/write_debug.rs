//! Writing the debug format: text for human readers, with a line for each attribute. The output is identical to that of
//! osmium, byte for byte.

use super::changesets::Changeset;
use super::checksum::{add_changeset, add_object};
use super::header_facts::{declares_history, header_options};
use super::numbers::{TimeFormatter, put_decimal_degrees, put_number};
use super::object_lines::ObjectLines;
use super::text_buffer::TextBuffer;
use super::text_options::{DebugOptions, TextOptions};
use crate::osm::{Bbox, Location, ObjectKind, format_e7};
use crate::pbf::{HeaderBlock, Info, InfoFields, Member, Object, ObjectBody};
use crc32fast::Hasher;
use std::fmt::Write as _;

/// Returns the text that precedes the objects. It describes the file header.
pub(super) fn debug_prologue(
    header: &HeaderBlock,
    boxes: &[Bbox],
    options: &TextOptions,
) -> TextBuffer {
    let mut text = TextBuffer::new();
    let paint = Paint::new(options.debug);
    paint.put(&mut text, BOLD, "header\n");
    text.push_str("  ");
    paint.put(&mut text, CYAN, "multiple object versions");
    text.push_str(if declares_history(header) {
        ": yes\n  "
    } else {
        ": no\n  "
    });
    paint.put(&mut text, CYAN, "bounding boxes");
    text.push_str(": \n");
    for bbox in boxes {
        let [left, bottom, right, top] = bbox.edges_e7().map(format_e7).into_array();
        let _ = writeln!(text, "    {left},{bottom} {right},{top}");
    }
    text.push_str("  ");
    paint.put(&mut text, CYAN, "options");
    text.push_str(": \n");
    for (name, value) in header_options(header) {
        let _ = writeln!(text, "    {name} = {value}");
    }
    text.push_str("\n=============================================\n\n");
    text
}

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const BLUE: &str = "\x1b[34m";
const CYAN: &str = "\x1b[36m";
const WHITE: &str = "\x1b[37m";
const RESET: &str = "\x1b[0m";

/// A writer of text with or without colours.
#[derive(Debug, Clone, Copy)]
struct Paint {
    has_colors: bool,
}

impl Paint {
    const fn new(options: DebugOptions) -> Self {
        Self {
            has_colors: options.colors,
        }
    }

    fn put_code(self, out: &mut TextBuffer, code: &str) {
        if self.has_colors {
            out.push_str(code);
        }
    }

    fn put(self, out: &mut TextBuffer, color: &str, text: &str) {
        self.put_code(out, color);
        out.push_str(text);
        self.put_code(out, RESET);
    }

    /// Appends the name of an attribute, a colon, and spaces up to column `width`, at which the values begin.
    fn put_name(self, out: &mut TextBuffer, name: &str, width: usize) {
        out.push_str("  ");
        self.put(out, CYAN, name);
        let width = width.saturating_sub(name.len());
        let _ = write!(out, "{:<width$}", ":");
    }

    /// Appends a string in quotation marks. Quotation marks, angle brackets, invisible characters and all characters
    /// above U+05FF become `<U+…>`.
    fn put_quoted(self, out: &mut TextBuffer, text: &str) {
        out.push('"');
        self.put_code(out, BLUE);
        for char in text.chars() {
            match char {
                '\u{20}'..='\u{21}'
                | '\u{23}'..='\u{3b}'
                | '\u{3d}'
                | '\u{3f}'..='\u{7e}'
                | '\u{a1}'..='\u{ac}'
                | '\u{ae}'..='\u{5ff}' => out.push(char),
                _ => {
                    self.put_code(out, RED);
                    let _ = write!(out, "<U+{:04X}>", u32::from(char));
                    self.put_code(out, BLUE);
                }
            }
        }
        self.put_code(out, RESET);
        out.push('"');
    }

    /// Appends the index of a node, member or comment.
    fn put_index(self, out: &mut TextBuffer, index: usize, width: usize) {
        self.put_code(out, WHITE);
        let _ = write!(out, "    {index:0width$}: ");
        self.put_code(out, RESET);
    }

    fn put_tags<K: AsRef<str>>(self, out: &mut TextBuffer, tags: &[(K, K)], width: usize) {
        let longest = tags.iter().map(|(key, _)| key.as_ref().len()).max();
        let Some(longest) = longest else {
            return;
        };
        self.put_name(out, "tags", width);
        let _ = writeln!(out, "{}", tags.len());
        for (key, value) in tags {
            let key = key.as_ref();
            out.push_str("    ");
            self.put_quoted(out, key);
            let padding = longest - key.len();
            let _ = write!(out, "{:padding$} = ", "");
            self.put_quoted(out, value.as_ref());
            out.push('\n');
        }
    }

    fn put_location(self, out: &mut TextBuffer, location: Option<Location>) {
        let (lat_e7, lon_e7) = Location::lat_lon_e7_or_undefined(location);
        put_decimal_degrees(out, lon_e7);
        out.push(',');
        put_decimal_degrees(out, lat_e7);
        if !location.is_some_and(Location::is_on_earth) {
            self.put(out, RED, " INVALID LOCATION!");
        }
    }
}

/// The column, counted after the indentation, at which the attribute values of objects begin.
const OBJECT_COLUMN: usize = 11;
/// The column, counted after the indentation, at which the attribute values of changesets begin.
const CHANGESET_COLUMN: usize = 13;

/// A buffer of objects in debug format.
#[derive(Debug)]
pub(crate) struct DebugText {
    pub text: TextBuffer,
    times: TimeFormatter,
    without: InfoFields,
    paint: Paint,
    with_checksum: bool,
}

impl ObjectLines for DebugText {
    fn put(&mut self, object: &Object<'_>, _: bool) {
        self.put(object);
    }

    fn text(&mut self) -> &mut TextBuffer {
        &mut self.text
    }
}

impl DebugText {
    pub(super) const fn new(options: &TextOptions) -> Self {
        Self {
            text: TextBuffer::new(),
            times: TimeFormatter::new(),
            without: options.without,
            paint: Paint::new(options.debug),
            with_checksum: options.debug.checksums,
        }
    }

    /// Appends an object.
    pub(super) fn put(&mut self, object: &Object<'_>) {
        self.put_title(object);
        self.put_info(&object.info);
        let (text, paint) = (&mut self.text, self.paint);
        if let ObjectBody::Node { location } = &object.body
            && object.info.visible
        {
            paint.put_name(text, "lon/lat", OBJECT_COLUMN);
            paint.put_location(text, *location);
            text.push('\n');
        }
        paint.put_tags(text, &object.tags, OBJECT_COLUMN);
        match &object.body {
            ObjectBody::Node { .. } => {}
            ObjectBody::Way { refs, locations } => put_nodes(text, paint, refs, locations),
            ObjectBody::Relation { members } => put_members(text, paint, members),
        }
        if self.with_checksum {
            let mut sum = Hasher::new();
            add_object(&mut sum, object);
            self.put_checksum(sum, OBJECT_COLUMN);
        }
        self.text.push('\n');
    }

    fn put_title(&mut self, object: &Object<'_>) {
        let (text, paint) = (&mut self.text, self.paint);
        let is_visible = object.info.visible;
        let color = if is_visible { BOLD } else { WHITE };
        paint.put(text, color, object.kind().name());
        text.push(' ');
        put_number(text, object.id);
        if is_visible {
            text.push_str(" visible\n")
        } else {
            paint.put(text, RED, " deleted\n")
        }
    }

    fn put_info(&mut self, info: &Info<'_>) {
        let (without, paint) = (self.without, self.paint);
        let has = |field| !without.contains(field);
        if has(InfoFields::VERSION) {
            paint.put_name(&mut self.text, "version", OBJECT_COLUMN);
            let _ = writeln!(self.text, "{}", info.version.unwrap_or(0));
        }
        if has(InfoFields::CHANGESET) {
            paint.put_name(&mut self.text, "changeset", OBJECT_COLUMN);
            let _ = writeln!(self.text, "{}", info.changeset.unwrap_or(0));
        }
        if has(InfoFields::TIMESTAMP) {
            paint.put_name(&mut self.text, "timestamp", OBJECT_COLUMN);
            self.put_time(info.timestamp);
            self.text.push('\n');
        }
        if has(InfoFields::UID) || has(InfoFields::USER) {
            let text = &mut self.text;
            paint.put_name(text, "user", OBJECT_COLUMN);
            if has(InfoFields::UID) {
                let _ = write!(text, "{} ", info.uid.unwrap_or(0));
            }
            if has(InfoFields::USER) {
                paint.put_quoted(text, info.user.unwrap_or(""));
            }
            text.push('\n');
        }
    }

    fn put_time(&mut self, timestamp: Option<i64>) {
        match timestamp {
            None => self.paint.put(&mut self.text, RED, "NOT SET"),
            Some(timestamp) => {
                self.times.put(&mut self.text, timestamp);
                let _ = write!(self.text, " ({timestamp})");
            }
        }
    }

    fn put_checksum(&mut self, sum: Hasher, column: usize) {
        self.paint.put_name(&mut self.text, "crc32", column);
        let _ = writeln!(self.text, "{:x}", sum.finalize());
    }

    /// Appends a changeset.
    pub(super) fn put_changeset(&mut self, changeset: &Changeset) {
        const COLUMN: usize = CHANGESET_COLUMN;
        let (text, paint) = (&mut self.text, self.paint);
        paint.put(text, BOLD, "changeset");
        let _ = writeln!(text, " {}", changeset.id);
        paint.put_name(text, "num changes", COLUMN);
        let _ = write!(text, "{}", changeset.changes);
        if changeset.changes == 0 {
            paint.put(text, RED, " NO CHANGES!");
        }
        text.push('\n');
        paint.put_name(text, "created at", COLUMN);
        self.put_time(changeset.created);
        self.text.push('\n');
        paint.put_name(&mut self.text, "closed at", COLUMN);
        match changeset.closed {
            None => paint.put(&mut self.text, RED, "OPEN!\n"),
            closed => {
                self.put_time(closed);
                self.text.push('\n');
            }
        }
        let text = &mut self.text;
        paint.put_name(text, "user", COLUMN);
        let _ = write!(text, "{} ", changeset.uid.unwrap_or(0));
        paint.put_quoted(text, &changeset.user);
        text.push('\n');
        paint.put_name(text, "box l/b/r/t", COLUMN);
        match &changeset.bbox {
            None => paint.put(text, RED, "BOX NOT SET!\n"),
            Some(bbox) => {
                let [left, bottom, right, top] = bbox.edges_e7().map(format_e7).into_array();
                let _ = writeln!(text, "{left},{bottom} {right},{top}");
            }
        }
        paint.put_tags(text, &changeset.tags, COLUMN);
        self.put_comments(changeset);
        if self.with_checksum {
            let mut sum = Hasher::new();
            add_changeset(&mut sum, changeset);
            self.put_checksum(sum, COLUMN);
        }
        self.text.push('\n');
    }

    fn put_comments(&mut self, changeset: &Changeset) {
        let (paint, comments) = (self.paint, &changeset.comments);
        if changeset.comments_count == 0 {
            return;
        }
        paint.put_name(&mut self.text, "comments", CHANGESET_COLUMN);
        let _ = writeln!(self.text, "{}", changeset.comments_count);
        let width = digit_count(comments.len());
        for (index, comment) in comments.iter().enumerate() {
            paint.put_index(&mut self.text, index, width);
            paint.put(&mut self.text, CYAN, "date");
            self.text.push_str(": ");
            self.put_time(comment.date);
            let text = &mut self.text;
            let _ = write!(text, "\n    {:width$}  ", "");
            paint.put(text, CYAN, "user");
            let _ = write!(text, ": {} ", comment.uid.unwrap_or(0));
            paint.put_quoted(text, &comment.user);
            let _ = write!(text, "\n    {:width$}  ", "");
            paint.put(text, CYAN, "text");
            text.push_str(": ");
            paint.put_quoted(text, &comment.text);
            text.push('\n');
        }
    }
}

fn put_nodes(text: &mut TextBuffer, paint: Paint, refs: &[i64], locations: &[Option<Location>]) {
    paint.put_name(text, "nodes", OBJECT_COLUMN);
    let _ = write!(text, "{}", refs.len());
    match refs {
        [] | [_] => paint.put(text, RED, " LESS THAN 2 NODES!\n"),
        [first, .., last] if first == last => text.push_str(" (closed)\n"),
        _ => text.push_str(" (open)\n"),
    }
    let width = digit_count(refs.len());
    for (index, id) in refs.iter().enumerate() {
        paint.put_index(text, index, width);
        let _ = write!(text, "{id:>10}");
        if let Some(location) = locations.get(index).copied().flatten() {
            text.push_str(" (");
            paint.put_location(text, Some(location));
            text.push(')');
        }
        text.push('\n');
    }
}

fn put_members(text: &mut TextBuffer, paint: Paint, members: &[Member<'_>]) {
    paint.put_name(text, "members", OBJECT_COLUMN);
    let _ = writeln!(text, "{}", members.len());
    let width = digit_count(members.len());
    for (index, member) in members.iter().enumerate() {
        paint.put_index(text, index, width);
        let kind = match member.kind {
            ObjectKind::Node => "node",
            ObjectKind::Way => "way ",
            ObjectKind::Relation => "rel ",
        };
        let _ = write!(text, "{kind} {:>10} ", member.id);
        paint.put_quoted(text, member.role);
        text.push('\n');
    }
}

/// Returns the number of decimal digits of `count`, at least 1.
const fn digit_count(count: usize) -> usize {
    match count.checked_ilog10() {
        Some(log) => log as usize + 1,
        None => 1,
    }
}
