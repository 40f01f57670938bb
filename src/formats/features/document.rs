//! Writes a file of features, with the text before, between and after the features.

use super::csv;
use super::options::FeatureOptions;
use super::text::{ChunkText, FeatureChunk, FeatureText};
use crate::error::{Error, Result};
use crate::formats::TextOutput;
use crate::io::{OpenOutput, StreamOutput};

/// Writes features to a file or to standard output.
pub(crate) struct FeatureDocument {
    output: TextOutput,
    /// The text between two features, and after the last one.
    frame: [&'static str; 2],
    features: u64,
}

impl FeatureDocument {
    /// Begins a file in an open output. Fails if two columns would have the same name.
    pub(crate) fn create(output: OpenOutput, options: &FeatureOptions) -> Result<Self> {
        let [before, frame @ ..] = options.format.prologue_separator_epilogue();
        let columns = options.format.is_table().then(|| csv::header_row(options));
        let columns = columns.transpose().map_err(Error::Usage)?;
        let mut output = TextOutput::from_open_output(output, options.compression);
        output.write(before)?;
        output.write(columns.as_deref().unwrap_or_default())?;
        Ok(Self {
            output,
            frame,
            features: 0,
        })
    }

    /// Appends a chunk, which may be a piece of a long text.
    pub(crate) fn add(&mut self, chunk: FeatureChunk) -> Result<()> {
        if self.features > 0 && !chunk.is_continued {
            self.output.write(self.frame[0])?;
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

    /// Appends the features of a buffer, and empties it.
    pub(crate) fn put(&mut self, text: &mut FeatureText) -> Result<()> {
        while let Some(chunk) = text.take().map_err(Error::internal)? {
            self.add(chunk)?;
        }
        Ok(())
    }

    /// Completes the file, flushes it to disk, and gives it its name. Returns its size in bytes.
    pub(crate) fn finish(self) -> Result<u64> {
        self.finish_uncommitted()?.commit()
    }

    /// Completes the file, which gets its name when the returned output is committed.
    pub(crate) fn finish_uncommitted(mut self) -> Result<StreamOutput> {
        self.output.write(self.frame[1])?;
        self.output.finish_uncommitted()
    }
}
