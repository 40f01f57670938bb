//! Writes a file of features, with the text before, between and after the features.

use super::csv;
use super::options::{FeatureFormat, FeatureOptions};
use super::text::{ChunkText, FeatureChunk, SEPARATOR};
use crate::error::{Error, Result};
use crate::formats::TextOutput;
use crate::io::OpenOutput;

/// Writes features to a file or to standard output.
pub(crate) struct FeatureDocument {
    output: TextOutput,
    format: FeatureFormat,
    features: u64,
}

impl FeatureDocument {
    /// Begins a file in an open output. Fails if two columns would have the same name.
    pub(crate) fn create(output: OpenOutput, options: &FeatureOptions) -> Result<Self> {
        let header = match options.format {
            FeatureFormat::Csv { .. } => csv::header(options).map_err(Error::Usage)?,
            FeatureFormat::GeoJson => "{\"type\":\"FeatureCollection\",\"features\":[\n".to_owned(),
            _ => String::new(),
        };
        let mut output = TextOutput::in_output(output, options.compression);
        if !header.is_empty() {
            output.write(&header)?;
        }
        Ok(Self {
            output,
            format: options.format,
            features: 0,
        })
    }

    /// Appends a chunk of features, or of a piece of them.
    pub(crate) fn add(&mut self, chunk: FeatureChunk) -> Result<()> {
        let is_next = self.features > 0 && !chunk.is_continued;
        if self.format == FeatureFormat::GeoJson && is_next {
            self.output.write(SEPARATOR)?;
        }
        match chunk.text {
            ChunkText::Encoded(text) => self.output.chunk(text)?,
            ChunkText::Numbered(text, positions) => {
                let mut start = 0;
                for (number, position) in (self.features + 1..).zip(positions) {
                    self.output.write(&text[start..position])?;
                    self.output.write(&number.to_string())?;
                    start = position;
                }
                self.output.write(&text[start..])?;
            }
        }
        self.features += chunk.features;
        Ok(())
    }

    /// Completes the file, flushes it to disk, and gives it its name. Returns its size in bytes.
    pub(crate) fn finish(mut self) -> Result<u64> {
        if self.format == FeatureFormat::GeoJson {
            self.output.write("\n]}\n")?;
        }
        self.output.finish()
    }
}
