//! Writing change files (OsmChange).

use super::change_action::ChangeAction;
use super::document_header::DocumentHeader;
use super::object_lines::{ObjectLines, Sections};
use super::text_buffer::TextBuffer;
use super::text_options::{TextOptions, Visibility};
use super::write_xml::{Indent, XmlBuffer, document_start, put_bounds};
use crate::osm::{ObjectId, TextFormat, format_timestamp};
use crate::pbf::{InfoFields, Object};
use std::fmt::Write as _;
use std::io::{self, Write};

/// A buffer of changes as sections of an OsmChange document, without the document's prologue and epilogue.
#[derive(Debug)]
pub struct OscText {
    elements: XmlBuffer,
    section: Option<ChangeAction>,
    /// The metadata fields that are not written.
    without: InfoFields,
}

impl Default for OscText {
    fn default() -> Self {
        Self::new(&TextOptions::new(TextFormat::OsmChange))
    }
}

impl OscText {
    /// Creates an empty buffer for changes whose objects are written as `options` require.
    pub fn new(options: &TextOptions) -> Self {
        Self {
            // The section of an object shows whether it is deleted, so no object needs the attribute `visible`.
            elements: XmlBuffer::new(options, Visibility::Never),
            section: None,
            without: options.without,
        }
    }

    /// Returns the text before the changes. `generator` is the name of the program.
    pub fn prologue(generator: &str) -> String {
        Self::prologue_of(&DocumentHeader {
            generator: Some(generator.to_owned()),
            ..DocumentHeader::default()
        })
    }

    /// Returns the text before the changes, with the attributes of a document header, but without its bounding boxes.
    pub fn prologue_of(document_header: &DocumentHeader) -> String {
        document_start("osmChange", document_header).take()
    }

    /// The text after the changes.
    pub const EPILOGUE: &str = "</osmChange>\n";

    /// Appends a change. Consecutive changes with the same action share a section.
    pub fn put(&mut self, action: ChangeAction, object: &Object<'_>) {
        self.begin_section(action);
        self.elements.put(object, false, Indent::Section);
    }

    /// Appends a deletion that gives only the id, the version and the time of the deleted object.
    pub fn put_deletion(&mut self, id: ObjectId, version: Option<u32>, timestamp: Option<i64>) {
        self.begin_section(ChangeAction::Delete);
        let version = version.filter(|_| !self.without.contains(InfoFields::VERSION));
        let timestamp = timestamp.filter(|_| !self.without.contains(InfoFields::TIMESTAMP));
        let _ = write!(self.elements.text, "    <{} id=\"{}\"", id.kind, id.id);
        if let Some(version) = version {
            let _ = write!(self.elements.text, " version=\"{version}\"");
        }
        if let Some(timestamp) = timestamp {
            let _ = write!(
                self.elements.text,
                " timestamp=\"{}\"",
                format_timestamp(timestamp)
            );
        }
        self.elements.text.push_str("/>\n");
    }

    fn begin_section(&mut self, action: ChangeAction) {
        put_section_tags(&mut self.elements.text, self.section, Some(action));
        self.section = Some(action);
    }

    fn end_section(&mut self) {
        put_section_tags(&mut self.elements.text, self.section.take(), None);
    }

    /// Returns the length of the text written so far, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.elements.text.len()
    }

    /// Removes the text written so far and returns it. An open section stays open.
    pub(crate) fn take(&mut self) -> String {
        self.elements.text.take()
    }

    /// Ends the last section and returns the text.
    pub fn finish(mut self) -> String {
        self.end_section();
        self.take()
    }
}

/// Returns the text before the changes, with the attributes and the bounding boxes of a document header.
pub(super) fn osc_prologue(document_header: &DocumentHeader) -> TextBuffer {
    let mut text = document_start("osmChange", document_header);
    put_bounds(&mut text, document_header);
    text
}

/// A buffer of objects as sections of an OsmChange document. The start tag of the first section and the end tag of the
/// last section are not in the buffer.
#[derive(Debug)]
pub(super) struct ChangeLines {
    elements: XmlBuffer,
    sections: Option<Sections>,
}

impl ChangeLines {
    pub(super) const fn new(options: &TextOptions) -> Self {
        Self {
            elements: XmlBuffer::new(options, Visibility::Never),
            sections: None,
        }
    }
}

impl ObjectLines for ChangeLines {
    fn put(&mut self, object: &Object<'_>, has_same_info: bool) {
        let last = ChangeAction::of(object);
        let first = match self.sections {
            None => last,
            Some(sections) => {
                put_section_tags(&mut self.elements.text, Some(sections.last), Some(last));
                sections.first
            }
        };
        self.sections = Some(Sections { first, last });
        self.elements.put(object, has_same_info, Indent::Section);
    }

    fn text(&mut self) -> &mut TextBuffer {
        &mut self.elements.text
    }

    fn take_sections(&mut self) -> Option<Sections> {
        self.sections.take()
    }

    fn take_inexpressible(&mut self) -> u64 {
        self.elements.take_inexpressible()
    }
}

/// Appends the end tag of section `from` and the start tag of section `to`, unless they are the same.
pub(super) fn put_section_tags(
    text: &mut TextBuffer,
    from: Option<ChangeAction>,
    to: Option<ChangeAction>,
) {
    if from == to {
        return;
    }
    if let Some(from) = from {
        let _ = writeln!(text, "  </{}>", from.name());
    }
    if let Some(to) = to {
        let _ = writeln!(text, "  <{}>", to.name());
    }
}

/// A writer of an OsmChange document. It writes each change to a stream.
#[derive(Debug)]
pub struct OscWriter<W: Write> {
    out: W,
    text: OscText,
}

impl<W: Write> OscWriter<W> {
    /// Writes the start of a document. `generator` is the name of the program.
    pub fn new(mut out: W, generator: &str) -> io::Result<Self> {
        out.write_all(OscText::prologue(generator).as_bytes())?;
        Ok(Self {
            out,
            text: OscText::default(),
        })
    }

    /// Writes a change. Consecutive changes with the same action share a section.
    pub fn write(&mut self, action: ChangeAction, object: &Object<'_>) -> io::Result<()> {
        self.text.put(action, object);
        self.out.write_all(self.text.take().as_bytes())
    }

    /// Writes the end of the document and returns the stream.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.write_all(self.text.finish().as_bytes())?;
        self.out.write_all(OscText::EPILOGUE.as_bytes())?;
        Ok(self.out)
    }
}
