//! Writes the files of a table.

use crate::error::Result;
use crate::formats::parquet::{EncodedGroup, FeatureTable, ParquetFile, TableFacts, TableForm};
use crate::io::{OpenOutput, OutputDirectory, StreamOutput};
use crate::runtime::Context;
use std::path::Path;

/// The output of a table: one file, or a directory of files.
pub(super) enum TableOutput {
    /// One file. `None` after writing to the file has started.
    File(Option<OpenOutput>),
    Directory(OutputDirectory),
}

/// The files of a table, which are written one after another. The files in a directory get their final names together.
pub(super) struct TableParts<'t> {
    form: &'t TableForm,
    /// The table of features that provides the metadata of each file; `None` for files without such metadata.
    features: Option<&'t FeatureTable>,
    /// The function that returns the directory of a partition.
    path_of: &'t dyn Fn(u64) -> String,
    /// The maximum size in bytes of a file in a directory.
    max_len: u64,
    output: TableOutput,
    /// The file that is being written, and the facts about its rows that its metadata will contain.
    current: Option<(ParquetFile, TableFacts)>,
    /// The number of the partition to which the current file belongs. `next_number` is the number of the next file in
    /// this partition.
    partition: u64,
    next_number: u32,
    /// The total size in bytes of the complete files.
    written: u64,
}

impl<'t> TableParts<'t> {
    pub(super) const fn new(
        output: TableOutput,
        form: &'t TableForm,
        features: Option<&'t FeatureTable>,
        path_of: &'t dyn Fn(u64) -> String,
        max_len: u64,
    ) -> Self {
        Self {
            form,
            features,
            path_of,
            max_len,
            output,
            current: None,
            partition: 0,
            next_number: 0,
            written: 0,
        }
    }

    /// Adds a row group to a partition. The row groups of a partition are added one after another. `facts` describes
    /// the rows of the group.
    pub(super) fn add(
        &mut self,
        partition: u64,
        group: EncodedGroup,
        facts: &TableFacts,
    ) -> Result<()> {
        let is_next = match (&self.current, &self.output) {
            (None, _) => true,
            (Some(_), TableOutput::File(_)) => false,
            (Some((file, _)), TableOutput::Directory(_)) => {
                self.partition != partition || file.len() + group.len() > self.max_len
            }
        };
        if is_next {
            self.start_file(partition)?;
        }
        if let Some((file, all)) = &mut self.current {
            all.add(facts);
            file.add(group)?;
        }
        Ok(())
    }

    /// Ends the current file, and starts the next file of a partition.
    fn start_file(&mut self, partition: u64) -> Result<()> {
        self.end_file()?;
        if self.partition != partition {
            (self.partition, self.next_number) = (partition, 0);
        }
        let output = match &mut self.output {
            TableOutput::File(output) => output.take(),
            TableOutput::Directory(directory) => {
                let name = format!("part-{:04}.parquet", self.next_number);
                self.next_number += 1;
                let path = Path::new(&(self.path_of)(partition)).join(name);
                Some(directory.open(&path)?)
            }
        };
        if let Some(output) = output {
            let (schema, properties) = (self.form.schema.clone(), self.form.properties.clone());
            let file = ParquetFile::create(StreamOutput::new(output), schema, properties)?;
            self.current = Some((file, TableFacts::default()));
        }
        Ok(())
    }

    /// Completes the current file.
    fn end_file(&mut self) -> Result<()> {
        if let Some((file, facts)) = self.current.take() {
            let metadata = self.features.map(|table| ("geo", table.metadata(&facts)));
            let file = file.finish(metadata)?;
            self.written += match self.output {
                TableOutput::File(_) => file.commit()?,
                TableOutput::Directory(_) => file.commit_unflushed()?,
            };
        }
        Ok(())
    }

    /// Completes the table. If no file was written and `needs_file` is set, writes a file without rows, so that readers
    /// find the columns. Returns the total size of the files in bytes.
    pub(super) fn finish(mut self, needs_file: bool, ctx: &Context) -> Result<u64> {
        if needs_file && self.current.is_none() && self.written == 0 {
            self.start_file(0)?;
        }
        self.end_file()?;
        if let TableOutput::Directory(directory) = self.output {
            directory.complete(ctx)?;
        }
        Ok(self.written)
    }
}
