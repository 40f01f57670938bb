//! Writing a whole document with its prologue, objects and epilogue.

use super::change_action::ChangeAction;
use super::document_header::{DocumentHeader, Replication};
use super::format::TextFormat;
use super::object_text::{ObjectChunk, Sections};
use super::text_buffer::TextBuffer;
use super::text_options::TextOptions;
use super::text_output::TextOutput;
use super::write_debug::debug_prologue;
use super::write_osc::{OscText, change_section};
use super::write_xml::{XML_EPILOGUE, document, put_bounds, xml_prologue};
use crate::error::{Error, Result};
use crate::io::OpenOutput;
use crate::pbf::HeaderBlock;

/// A text file of objects, or standard output.
#[derive(Debug)]
pub(crate) struct TextDocument {
    output: TextOutput,
    format: TextFormat,
    /// The open section of an OsmChange document.
    section: Option<ChangeAction>,
}

impl TextDocument {
    /// Begins a document with the facts of a header.
    pub(crate) fn create(
        output: OpenOutput,
        header: &HeaderBlock,
        options: &TextOptions,
    ) -> Result<Self> {
        if options.format.is_read_only() {
            let cause = format!("{} cannot be written, only read", options.format.name());
            return Err(Error::file(output.output.path(), cause));
        }
        let mut output = TextOutput::in_output(output, options.compression);
        let mut document_header = DocumentHeader::of(header);
        if !options.replication && options.format != TextFormat::Debug {
            document_header.replication = Replication::default();
            document_header.replication_url = None;
        }
        let mut prologue = match options.format {
            TextFormat::Osm => xml_prologue(&document_header),
            TextFormat::OsmChange => {
                let mut text = document("osmChange", &document_header);
                put_bounds(&mut text, &document_header);
                text
            }
            TextFormat::Opl | TextFormat::O5m | TextFormat::O5c => TextBuffer::new(),
            TextFormat::Debug => debug_prologue(header, &document_header.text.boxes, options),
        };
        output.write(&prologue.take())?;
        Ok(Self {
            output,
            format: options.format,
            section: None,
        })
    }

    /// Appends a chunk of objects.
    pub(crate) fn add(&mut self, chunk: ObjectChunk) -> Result<()> {
        if let Some(Sections { first, last }) = chunk.sections {
            self.go_to_section(Some(first))?;
            self.section = Some(last);
        }
        self.output.chunk(chunk.text)
    }

    /// Appends text in the format of the document.
    pub(crate) fn add_text(&mut self, text: &str) -> Result<()> {
        self.output.write(text)
    }

    fn go_to_section(&mut self, section: Option<ChangeAction>) -> Result<()> {
        let mut tags = TextBuffer::new();
        change_section(&mut tags, self.section, section);
        self.section = section;
        self.output.write(&tags.take())
    }

    /// Completes the document, flushes it to disk, and gives it its name. Returns its size in bytes.
    pub(crate) fn finish(mut self) -> Result<u64> {
        self.go_to_section(None)?;
        self.output.write(match self.format {
            TextFormat::Osm => XML_EPILOGUE,
            TextFormat::OsmChange => OscText::EPILOGUE,
            _ => "",
        })?;
        self.output.finish()
    }
}
