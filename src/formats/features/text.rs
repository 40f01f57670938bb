//! A buffer of features as text, in any format.

use super::feature_id::FeatureId;
use super::options::{FeatureFormat, FeatureOptions, UniqueId};
use super::{Feature, geojson, postgres, wkt};
use crate::error::{Error, Result};
use crate::formats::numbers::TimeFormatter;
use crate::formats::text_buffer::TextBuffer;
use crate::formats::{EncodedText, TextEncoder};
use std::io;

/// A buffer of consecutive features as text. Each worker has its own.
pub(crate) struct FeatureText {
    options: FeatureOptions,
    text: TextBuffer,
    times: TimeFormatter,
    encoder: TextEncoder,
    /// The positions at which the numbers of features are inserted into the text later.
    numbers: Vec<usize>,
    features: u64,
}

/// Consecutive features as text. A GeoJSON feature collection needs a separator between two chunks.
pub(crate) struct FeatureChunk {
    pub(super) text: ChunkText,
    /// The number of features, at least 1.
    pub(crate) features: u64,
}

/// The text of a chunk.
pub(super) enum ChunkText {
    /// Text that is encoded for the output.
    Encoded(EncodedText),
    /// Text without the numbers of its features, and the positions at which the numbers are inserted later.
    Numbered(String, Vec<usize>),
}

/// The separator between two features of a GeoJSON feature collection.
pub(super) const SEPARATOR: &str = ",\n";

impl FeatureText {
    pub(crate) fn new(options: &FeatureOptions) -> Self {
        Self {
            options: options.clone(),
            text: TextBuffer::new(),
            times: TimeFormatter::new(),
            encoder: TextEncoder::new(options.compression),
            numbers: Vec::new(),
            features: 0,
        }
    }

    /// Appends a feature.
    pub(crate) fn put(&mut self, feature: &Feature<'_>) {
        let (text, attributes) = (&mut self.text, &self.options.attributes);
        self.features += 1;
        if self.options.format == FeatureFormat::GeoJson && self.features > 1 {
            text.push_str(SEPARATOR);
        }
        let id = match self.options.unique_id {
            UniqueId::None => None,
            UniqueId::Counter => Some(FeatureId::Number(&mut self.numbers)),
            UniqueId::TypeAndId => Some(FeatureId::TypeAndId),
        };
        match self.options.format {
            FeatureFormat::GeoJson => geojson::put(text, feature, attributes, id),
            FeatureFormat::GeoJsonSeq {
                has_record_separator,
            } => {
                if has_record_separator {
                    text.push('\u{1e}');
                }
                geojson::put(text, feature, attributes, id);
                text.push('\n');
            }
            FeatureFormat::Text => wkt::put_line(text, feature, attributes, id),
            FeatureFormat::Postgres { tags } => {
                postgres::put_row(text, &mut self.times, feature, attributes, tags, id);
            }
        }
    }

    /// Appends a feature to `out`, as a row for [`add_row`](Self::add_row). The buffer must be empty, and is empty
    /// afterwards.
    pub(crate) fn put_row(&mut self, out: &mut Vec<u8>, feature: &Feature<'_>) {
        self.put(feature);
        // The number is among the first bytes of the feature, so its position fits in 32 bits. `u32::MAX` means no
        // number.
        let number = self.numbers.pop().map_or(u32::MAX, |at| at as u32);
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(self.text.bytes());
        self.text.truncate(0);
        self.features = 0;
    }

    /// Appends the feature in a row from [`put_row`](Self::put_row).
    pub(crate) fn add_row(&mut self, row: &[u8]) -> Result<()> {
        let broken = || Error::Internal("the row of a feature is broken".into());
        let (number, text) = row.split_first_chunk().ok_or_else(broken)?;
        let text = std::str::from_utf8(text).map_err(|_| broken())?;
        self.features += 1;
        if self.options.format == FeatureFormat::GeoJson && self.features > 1 {
            self.text.push_str(SEPARATOR);
        }
        let number = u32::from_le_bytes(*number);
        if number != u32::MAX {
            self.numbers.push(self.text.len() + number as usize);
        }
        self.text.push_str(text);
        Ok(())
    }

    /// The length of the text in the buffer, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// Encodes the text in the buffer, and empties the buffer. Returns `None` if the buffer has no feature.
    pub(crate) fn take(&mut self) -> io::Result<Option<FeatureChunk>> {
        let features = std::mem::take(&mut self.features);
        if features == 0 {
            return Ok(None);
        }
        // The next chunk will probably be about as long as this text, so its buffer gets slightly more capacity than
        // that.
        let space = TextBuffer::with_capacity(self.text.len() + self.text.len() / 8);
        let mut text = std::mem::replace(&mut self.text, space);
        let text = match self.options.unique_id {
            UniqueId::Counter => {
                ChunkText::Numbered(text.take(), std::mem::take(&mut self.numbers))
            }
            UniqueId::None | UniqueId::TypeAndId => ChunkText::Encoded(self.encoder.encode(text)?),
        };
        Ok(Some(FeatureChunk { text, features }))
    }
}
