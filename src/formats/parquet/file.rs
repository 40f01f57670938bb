//! A Parquet file that is written row group by row group.

use super::columns::EncodedGroup;
use super::parquet_error;
use crate::error::{Error, Result};
use crate::io::StreamOutput;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::TypePtr;
use std::io::{self, Write};

/// A Parquet file.
pub(crate) struct ParquetFile {
    writer: SerializedFileWriter<Sink>,
}

/// The output of the Parquet writer. Keeps the first error that occurs.
struct Sink {
    /// The file; `None` after [`ParquetFile::finish`] has returned it.
    output: Option<StreamOutput>,
    buffer: Vec<u8>,
    error: Option<Error>,
}

/// The number of buffered bytes at which the buffer is written.
const WRITE_LEN: usize = 1 << 20;

impl Sink {
    fn flush_buffer(&mut self) -> io::Result<()> {
        let written = match &mut self.output {
            Some(output) => output.write_owned(std::mem::take(&mut self.buffer)),
            None => Ok(()),
        };
        self.buffer.clear();
        written.map_err(|error| {
            let message = error.to_string();
            self.error.get_or_insert(error);
            io::Error::other(message)
        })
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= WRITE_LEN {
            self.flush_buffer()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ParquetFile {
    /// Begins a file with the given schema.
    pub(crate) fn create(
        output: StreamOutput,
        schema: TypePtr,
        properties: WriterPropertiesPtr,
    ) -> Result<Self> {
        let sink = Sink {
            output: Some(output),
            buffer: Vec::new(),
            error: None,
        };
        let writer = SerializedFileWriter::new(sink, schema, properties).map_err(parquet_error)?;
        Ok(Self { writer })
    }

    /// Returns the number of bytes written.
    pub(crate) fn len(&self) -> u64 {
        self.writer.bytes_written() as u64
    }

    /// Appends a row group.
    pub(crate) fn add(&mut self, group: EncodedGroup) -> Result<()> {
        let added = self.append_row_group(group);
        added.map_err(|error| self.error_to_report(error))
    }

    fn append_row_group(
        &mut self,
        group: EncodedGroup,
    ) -> Result<(), parquet::errors::ParquetError> {
        let mut rows = self.writer.next_row_group()?;
        for (bytes, closed) in group.columns {
            rows.append_column(&bytes, closed)?;
        }
        rows.close().map(|_| ())
    }

    /// Returns the error to report if the Parquet library reported `error`. If the output failed, this is the error of
    /// the output.
    fn error_to_report(&mut self, error: parquet::errors::ParquetError) -> Error {
        let own = self.writer.inner_mut().error.take();
        own.unwrap_or_else(|| parquet_error(error))
    }

    /// Writes the footer of the file, with the key and the value in `metadata`. The file gets its name only when the
    /// returned output is committed.
    pub(crate) fn finish(mut self, metadata: Option<(&str, String)>) -> Result<StreamOutput> {
        if let Some((key, value)) = metadata {
            let pair = KeyValue::new(key.to_owned(), value);
            self.writer.append_key_value_metadata(pair);
        }
        let ended = self.writer.finish().map(|_| ());
        ended.map_err(|error| self.error_to_report(error))?;
        let flushed = self.writer.inner_mut().flush_buffer();
        flushed.map_err(|error| self.error_to_report(error.into()))?;
        let output = self.writer.inner_mut().output.take();
        output.ok_or_else(|| parquet_error("a file has no output"))
    }
}
