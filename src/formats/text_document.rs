//! Writes a whole document with its prologue, objects and epilogue.

use super::change_action::ChangeAction;
use super::document_header::{DocumentHeader, Replication};
use super::functions::functions;
use super::object_lines::Sections;
use super::object_text::ObjectChunk;
use super::text_buffer::TextBuffer;
use super::text_options::TextOptions;
use super::text_output::TextOutput;
use super::write_osc::put_section_tags;
use crate::error::{Error, Result};
use crate::io::OpenOutput;
use crate::osm::TextFormat;
use crate::pbf::HeaderBlock;

/// A text file of objects, or standard output.
#[derive(Debug)]
pub(crate) struct TextDocument {
    output: TextOutput,
    epilogue: &'static str,
    /// The open section of an OsmChange document.
    section: Option<ChangeAction>,
}

impl TextDocument {
    /// Begins a document. Its prologue has the facts in `header`.
    pub(crate) fn create(
        output: OpenOutput,
        header: &HeaderBlock,
        options: &TextOptions,
    ) -> Result<Self> {
        if options.format.is_read_only() {
            let cause = format!("{} cannot be written, only read", options.format.name());
            return Err(Error::file(output.output.path(), cause));
        }
        let mut document_header = DocumentHeader::of(header);
        if !options.replication && options.format != TextFormat::Debug {
            document_header.replication = Replication::default();
            document_header.replication_url = None;
        }
        let functions = functions(options.format);
        let prologue = (functions.prologue)(header, &document_header, options);
        let mut prologue = prologue.map_err(Error::Usage)?;
        let mut output = TextOutput::from_open_output(output, options.compression);
        output.write(&prologue.take())?;
        Ok(Self {
            output,
            epilogue: functions.epilogue,
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
        put_section_tags(&mut tags, self.section, section);
        self.section = section;
        self.output.write(&tags.take())
    }

    /// Completes the document, flushes it to disk, and gives it its name. Returns its size in bytes.
    pub(crate) fn finish(mut self) -> Result<u64> {
        self.go_to_section(None)?;
        self.output.write(self.epilogue)?;
        self.output.finish()
    }
}
