//! The functions that read and write each text format. `osm/text_format.rs` has the facts about the formats.

use super::change_set::ChangeSet;
use super::document_header::DocumentHeader;
use super::object_lines::ObjectLines;
use super::opl;
use super::text_buffer::TextBuffer;
use super::text_chunks::{TextChunk, TextDamage};
use super::text_options::{TextOptions, Visibility};
use super::write_csv::{CsvRows, csv_header};
use super::write_debug::{DebugText, debug_prologue};
use super::write_opl::OplText;
use super::write_osc::{ChangeLines, OscText, osc_prologue};
use super::write_xml::{XML_EPILOGUE, XmlBuffer, xml_prologue};
use super::xml::{self, WayNodesIn};
use crate::osm::TextFormat;
use crate::pbf::{HeaderBlock, feature};

/// The functions of a format.
pub(super) struct FormatFunctions {
    /// Parses a chunk of text. Not called for a format that is binary or is not read.
    pub parse: fn(&TextChunk, TextFormat, WayNodesIn) -> Result<ChangeSet, TextDamage>,
    /// Creates a buffer for objects. Not called for a format that is not written.
    pub lines: fn(&TextOptions, Visibility) -> Box<dyn ObjectLines>,
    /// Returns the text before the objects of a document. The error is a message that describes a wrong option.
    pub prologue: fn(&HeaderBlock, &DocumentHeader, &TextOptions) -> Result<TextBuffer, String>,
    /// The text after the objects of a document.
    pub epilogue: &'static str,
}

/// Returns the functions of a format.
pub(super) fn functions(format: TextFormat) -> FormatFunctions {
    match format {
        TextFormat::Osm => FormatFunctions {
            parse: xml::parse,
            lines: |options, visibility| Box::new(XmlBuffer::new(options, visibility)),
            prologue: |_, document_header, _| Ok(xml_prologue(document_header)),
            epilogue: XML_EPILOGUE,
        },
        TextFormat::OsmChange => FormatFunctions {
            parse: xml::parse,
            lines: |options, _| Box::new(ChangeLines::new(options)),
            prologue: |_, document_header, _| Ok(osc_prologue(document_header)),
            epilogue: OscText::EPILOGUE,
        },
        TextFormat::Opl | TextFormat::O5m | TextFormat::O5c => FormatFunctions {
            parse: |chunk, _, _| opl::parse(chunk),
            lines: |options, _| Box::new(OplText::new(options)),
            prologue: |_, _, _| Ok(TextBuffer::new()),
            epilogue: "",
        },
        TextFormat::Debug => FormatFunctions {
            parse: |chunk, _, _| opl::parse(chunk),
            lines: |options, _| Box::new(DebugText::new(options)),
            prologue: |header, document_header, options| {
                let boxes = &document_header.text.boxes;
                Ok(debug_prologue(header, boxes, options))
            },
            epilogue: "",
        },
        TextFormat::Csv => FormatFunctions {
            parse: |chunk, _, _| opl::parse(chunk),
            lines: |options, visibility| Box::new(CsvRows::new(options, visibility)),
            prologue: |header, _, options| {
                let visibility = options.resolve_visibility(header.has(feature::HISTORY));
                csv_header(options, visibility)
            },
            epilogue: "",
        },
    }
}
