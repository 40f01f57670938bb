//! Writes objects as text in any format.

use super::functions::functions;
use super::object_lines::{ObjectLines, Sections};
use super::text_buffer::TextBuffer;
use super::text_encoder::{EncodedText, TextEncoder};
use super::text_options::TextOptions;
use crate::pbf::Object;
use std::io;

/// The maximum number of bytes that are reserved for the text of the next chunk.
const MAX_SPACE: usize = 4 << 20;

/// A buffer of consecutive objects as text. Each worker needs its own.
#[derive(Debug)]
pub(crate) struct ObjectText {
    lines: Box<dyn ObjectLines>,
    encoder: TextEncoder,
    /// The number of objects in the buffer.
    objects: u64,
}

/// The text of consecutive objects, encoded for the output.
#[derive(Debug)]
pub(crate) struct ObjectChunk {
    pub(super) text: EncodedText,
    pub(super) sections: Option<Sections>,
    /// The number of objects.
    pub(crate) objects: u64,
    /// The number of characters that XML 1.0 cannot express. They are written as character references or replaced.
    pub(crate) inexpressible: u64,
}

impl ObjectChunk {
    /// Returns the length of the encoded text in bytes.
    pub(crate) const fn len(&self) -> usize {
        self.text.bytes.len()
    }

    /// Calls `take` with the chunk. If the chunk is longer than `most` bytes and can be cut, calls `take` with each
    /// piece instead.
    pub(crate) fn visit_pieces<E>(
        self,
        most: usize,
        mut take: impl FnMut(Self) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(pieces) = self.text.pieces(most) else {
            return take(self);
        };
        let (mut sections, mut objects) = (self.sections, self.objects);
        let mut inexpressible = self.inexpressible;
        for text in pieces {
            take(Self {
                text,
                sections: sections.take(),
                objects: std::mem::take(&mut objects),
                inexpressible: std::mem::take(&mut inexpressible),
            })?;
        }
        Ok(())
    }
}

impl ObjectText {
    /// Creates an empty buffer for text with the given options. `is_history` tells whether the objects are from a
    /// history file.
    pub(crate) fn new(options: &TextOptions, is_history: bool) -> Self {
        let visibility = options.resolve_visibility(is_history);
        Self {
            lines: (functions(options.format).lines)(options, visibility),
            encoder: TextEncoder::new(options.compression),
            objects: 0,
        }
    }

    /// Appends an object.
    pub(crate) fn put(&mut self, object: &Object<'_>) {
        self.put_next(object, false);
    }

    /// Appends an object. `has_same_info` tells whether its metadata equals that of the previous object.
    pub(crate) fn put_next(&mut self, object: &Object<'_>, has_same_info: bool) {
        self.objects += 1;
        self.lines.put(object, has_same_info);
    }

    /// Returns the length of the text in the buffer, in bytes.
    pub(crate) fn len(&mut self) -> usize {
        self.lines.text().len()
    }

    /// Removes the text in the buffer and returns it. Text in [`TextFormat::OsmChange`] lacks the start tag of its
    /// first section and the end tag of its last section.
    pub(crate) fn take_unencoded_text(&mut self) -> String {
        self.objects = 0;
        self.lines.text().take()
    }

    /// Encodes the text in the buffer, and empties the buffer.
    pub(crate) fn take(&mut self) -> io::Result<ObjectChunk> {
        let (sections, inexpressible) =
            (self.lines.take_sections(), self.lines.take_inexpressible());
        let text = self.lines.text();
        // The next chunk will probably be about as long as this one, so its buffer gets slightly more capacity than
        // this one needs.
        let space = TextBuffer::with_capacity((text.len() + text.len() / 8).min(MAX_SPACE));
        let text = std::mem::replace(text, space);
        Ok(ObjectChunk {
            text: self.encoder.encode(text)?,
            sections,
            objects: std::mem::take(&mut self.objects),
            inexpressible,
        })
    }
}
