//! Writes changesets as OSM XML, OPL or debug text.

use super::changesets::{Changeset, Comment};
use super::numbers::TimeFormatter;
use super::text_buffer::TextBuffer;
use super::text_options::TextOptions;
use super::write_debug::DebugText;
use super::write_opl::{put_escaped as put_opl_text, put_tags as put_opl_tags};
use super::write_xml::put_escaped as put_xml_text;
use crate::osm::{TextFormat, format_e7};
use std::fmt::Write as _;

/// A buffer of changesets as text.
#[derive(Debug)]
pub(crate) enum ChangesetText {
    Opl(ChangesetLines),
    Xml(ChangesetLines),
    Debug(DebugText),
}

impl ChangesetText {
    /// Creates an empty buffer for text with the given options. For a format that cannot express changesets, the text
    /// is OPL.
    pub(crate) fn new(options: &TextOptions) -> Self {
        match options.format {
            TextFormat::Osm | TextFormat::OsmChange => Self::Xml(ChangesetLines::default()),
            TextFormat::Debug => Self::Debug(DebugText::new(options)),
            _ => Self::Opl(ChangesetLines::default()),
        }
    }

    /// Appends a changeset. In OPL, the comments are left out.
    pub(crate) fn put(&mut self, changeset: &Changeset) {
        match self {
            Self::Opl(lines) => lines.put_opl(changeset),
            Self::Xml(lines) => lines.put_xml(changeset),
            Self::Debug(debug) => debug.put_changeset(changeset),
        }
    }

    /// Removes the text written so far and returns it.
    pub(crate) fn take(&mut self) -> String {
        match self {
            Self::Opl(lines) | Self::Xml(lines) => lines.text.take(),
            Self::Debug(debug) => debug.text.take(),
        }
    }

    /// Returns the length in bytes of the text written so far.
    pub(crate) const fn len(&self) -> usize {
        match self {
            Self::Opl(lines) | Self::Xml(lines) => lines.text.len(),
            Self::Debug(debug) => debug.text.len(),
        }
    }
}

/// A buffer of changesets in OPL or OSM XML.
#[derive(Debug, Default)]
pub(crate) struct ChangesetLines {
    text: TextBuffer,
    times: TimeFormatter,
}

impl ChangesetLines {
    /// Appends a changeset as a line of OPL. Comments are left out.
    fn put_opl(&mut self, changeset: &Changeset) {
        let text = &mut self.text;
        let _ = write!(text, "c{} k{} s", changeset.id, changeset.changes);
        for (letter, moment) in [(" e", changeset.created), (" d", changeset.closed)] {
            if let Some(moment) = moment {
                self.times.put(text, moment);
            }
            text.push_str(letter);
        }
        let _ = write!(
            text,
            "{} i{} u",
            changeset.comments_count,
            changeset.uid.unwrap_or(0)
        );
        put_opl_text(text, &changeset.user);
        let bbox = changeset.bbox;
        for (letter, side) in [
            (" x", bbox.map(|bbox| bbox.min_lon_e7)),
            (" y", bbox.map(|bbox| bbox.min_lat_e7)),
            (" X", bbox.map(|bbox| bbox.max_lon_e7)),
            (" Y", bbox.map(|bbox| bbox.max_lat_e7)),
        ] {
            text.push_str(letter);
            text.push_str(&side.map(format_e7).unwrap_or_default());
        }
        put_opl_tags(text, &changeset.tags);
        text.push('\n');
    }

    /// Appends a changeset as an XML element.
    fn put_xml(&mut self, changeset: &Changeset) {
        let _ = write!(self.text, " <changeset id=\"{}\"", changeset.id);
        self.put_time("created_at", changeset.created);
        self.put_time("closed_at", changeset.closed);
        let text = &mut self.text;
        let _ = write!(text, " open=\"{}\"", changeset.closed.is_none());
        if !changeset.user.is_empty() {
            text.push_str(" user=\"");
            put_xml_text(text, &changeset.user);
            text.push('"');
        }
        if let Some(uid) = changeset.uid {
            let _ = write!(text, " uid=\"{uid}\"");
        }
        if let Some(bbox) = changeset.bbox {
            for (name, side) in [
                ("min_lat", bbox.min_lat_e7),
                ("min_lon", bbox.min_lon_e7),
                ("max_lat", bbox.max_lat_e7),
                ("max_lon", bbox.max_lon_e7),
            ] {
                let _ = write!(text, " {name}=\"{}\"", format_e7(side));
            }
        }
        let _ = write!(
            text,
            " num_changes=\"{}\" comments_count=\"{}\"",
            changeset.changes, changeset.comments_count
        );
        if changeset.tags.is_empty() && changeset.comments.is_empty() {
            text.push_str("/>\n");
            return;
        }
        text.push_str(">\n");
        for (key, value) in &changeset.tags {
            text.push_str("  <tag k=\"");
            put_xml_text(text, key);
            text.push_str("\" v=\"");
            put_xml_text(text, value);
            text.push_str("\"/>\n");
        }
        if !changeset.comments.is_empty() {
            text.push_str("  <discussion>\n");
            changeset
                .comments
                .iter()
                .for_each(|comment| self.put_comment(comment));
            self.text.push_str("  </discussion>\n");
        }
        self.text.push_str(" </changeset>\n");
    }

    fn put_comment(&mut self, comment: &Comment) {
        let text = &mut self.text;
        let _ = write!(
            text,
            "   <comment uid=\"{}\" user=\"",
            comment.uid.unwrap_or(0)
        );
        put_xml_text(text, &comment.user);
        text.push('"');
        self.put_time("date", comment.date);
        self.text.push_str(">\n    <text>");
        put_xml_text(&mut self.text, &comment.text);
        self.text.push_str("</text>\n   </comment>\n");
    }

    fn put_time(&mut self, name: &str, moment: Option<i64>) {
        if let Some(moment) = moment {
            let _ = write!(self.text, " {name}=\"");
            self.times.put(&mut self.text, moment);
            self.text.push('"');
        }
    }
}
