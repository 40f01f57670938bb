//! Writes tables of features in the order of a Hilbert curve, to one file or to partitions by geometry type.

use super::Options;
use crate::error::{Error, Result};
use crate::formats::GeoParquetOptions;
use crate::formats::parquet::{
    FeatureGroup, FeatureTable, ParquetFile, TableFacts, is_part, partition_name,
};
use crate::index::{KeyBits, KeyRange, RowBatch, RowLimits, RowSorter, SortedRows};
use crate::io::{OpenOutput, OutputDirectory, StreamOutput};
use crate::pbf::InfoFields;
use crate::runtime::{ChunkQueue, ChunkSender, Context, lock, unlocked};
use std::sync::{Arc, Mutex};

/// The approximate number of rows of a row group.
const GROUP_ROWS: usize = 100_000;
/// The maximum memory of the rows that are read at once, in bytes. It also limits the memory of a row group.
const READ_MEMORY: usize = 24 << 20;
/// The memory limits for sorting rows.
const LIMITS: RowLimits = RowLimits {
    run: 32 << 20,
    memory: 48 << 20,
};
/// The size in bytes at which a partition continues in another file.
pub(super) const PART_LEN: u64 = 500_000_000;

/// The keys of rows, which are the number of a partition and a position on the Hilbert curve.
const KEY: KeyBits = KeyBits {
    uncounted: 8,
    below_group: 32,
};

/// Collects rows, and writes them as tables when all rows have been added.
pub(super) struct TableSink {
    pub rows: Arc<TableRows>,
    output: TableOutput,
}

/// Collects the rows of tables from all workers.
pub(super) struct TableRows {
    pub options: GeoParquetOptions,
    sorter: RowSorter,
    /// The metadata fields that some objects have.
    info: Mutex<InfoFields>,
}

impl TableRows {
    /// Adds rows, and the metadata fields that some of their objects have. May block while rows are sorted.
    pub(super) fn add(&self, rows: RowBatch, info: InfoFields) {
        {
            let mut all = lock(&self.info);
            *all = all.and(info);
        }
        self.sorter.add(rows);
    }

    /// Fails if rows could not be added.
    pub(super) fn check(&self) -> Result<()> {
        self.sorter.check()
    }
}

enum TableOutput {
    File(OpenOutput),
    Directory(OutputDirectory),
}

impl TableSink {
    pub(super) fn open(
        options: &Options,
        tables: &GeoParquetOptions,
        ctx: &Context,
    ) -> Result<Self> {
        let target = &options.target;
        let directory = options.temp_dir.clone();
        let directory = directory.unwrap_or_else(|| target.scratch_directory());
        Ok(Self {
            output: if tables.is_partitioned {
                TableOutput::Directory(OutputDirectory::create(
                    target.path(),
                    target.may_overwrite(),
                    is_part,
                )?)
            } else {
                TableOutput::File(OpenOutput::open(target.clone(), ctx)?)
            },
            rows: Arc::new(TableRows {
                options: tables.clone(),
                sorter: RowSorter::new(LIMITS, KEY, &directory),
                info: Mutex::default(),
            }),
        })
    }

    /// Writes the tables. Returns their total size in bytes.
    pub(super) fn finish(self, ctx: &Context) -> Result<u64> {
        let rows = Arc::into_inner(self.rows);
        let rows = rows.ok_or_else(|| Error::Internal("a thread still adds rows".into()))?;
        let TableRows {
            options,
            sorter,
            info,
        } = rows;
        let sorted = Arc::new(sorter.finish()?);
        ctx.debug(format!(
            "rows are sorted: {} in temporary files",
            crate::runtime::human_bytes(sorted.scratch_len())
        ));
        let table = Arc::new(FeatureTable::new(&options, unlocked(info))?);
        let mut writer = TableWriter::begin(self.output, &table)?;
        let ranges = sorted.ranges(GROUP_ROWS as u64);
        let phase = ctx.phase("tables", ranges.iter().map(|range| range.rows).sum());
        ctx.observer.counts_rows();
        let mut add = |encoded| match encoded {
            Encoded::Group(partition, group) => writer.add(partition, group),
            Encoded::Done(rows) => {
                phase.advance(rows);
                Ok(())
            }
        };
        let mut queue = ChunkQueue::start("tables", ctx.jobs, || (), {
            let table = table.clone();
            move |(), range, chunks: &_| row_groups(&table, &sorted, range, chunks)
        })?;
        for range in ranges {
            queue.push(range, &mut add)?;
        }
        queue.drain(&mut add)?;
        writer.finish()
    }
}

/// A part of the results of a thread.
enum Encoded {
    /// A row group of a partition.
    Group(u64, FeatureGroup),
    /// The number of rows of a range that was encoded.
    Done(u64),
}

/// Encodes the rows of a range as row groups with about equal numbers of rows, and sends them.
fn row_groups(
    table: &FeatureTable,
    sorted: &SortedRows,
    range: KeyRange,
    chunks: &ChunkSender<Encoded>,
) -> Result<()> {
    let (count, partition) = (range.rows, range.keys.start >> 32);
    let mut portions = sorted.portions(range);
    while portions.left() > 0 {
        let rows = portions.next(READ_MEMORY)?;
        let groups = ((rows.count() + GROUP_ROWS / 2) / GROUP_ROWS).max(1);
        let start = |group: usize| rows.count() * group / groups;
        for group in 0..groups {
            let numbers = start(group)..start(group + 1);
            let encoded = table.encode(&rows.bytes, rows.rows(numbers))?;
            chunks.send(Encoded::Group(partition, encoded))?;
        }
    }
    chunks.send(Encoded::Done(count))
}

/// Writes row groups to one file or to several.
struct TableWriter<'t> {
    table: &'t FeatureTable,
    directory: Option<OutputDirectory>,
    /// The file that is being written, and facts about its rows.
    current: Option<(ParquetFile, TableFacts)>,
    /// The partition of the current file, and the index of the file in the partition.
    place: (u64, u32),
    /// The complete files, which do not have their final names yet.
    written: Vec<StreamOutput>,
}

impl<'t> TableWriter<'t> {
    fn begin(output: TableOutput, table: &'t FeatureTable) -> Result<Self> {
        let mut writer = Self {
            table,
            directory: None,
            current: None,
            place: (0, 0),
            written: Vec::new(),
        };
        match output {
            TableOutput::File(output) => writer.start(output)?,
            TableOutput::Directory(directory) => writer.directory = Some(directory),
        }
        Ok(writer)
    }

    fn start(&mut self, output: OpenOutput) -> Result<()> {
        let form = &self.table.form;
        let (schema, properties) = (form.schema.clone(), form.properties.clone());
        let file = ParquetFile::create(StreamOutput::new(output), schema, properties)?;
        self.current = Some((file, TableFacts::default()));
        Ok(())
    }

    fn add(&mut self, partition: u64, group: FeatureGroup) -> Result<()> {
        let is_full = |file: &ParquetFile| file.len() + group.group.len() > PART_LEN;
        let is_next = match &self.current {
            None => true,
            Some((file, _)) => self.place.0 != partition || is_full(file),
        };
        if self.directory.is_some() && is_next {
            self.end_file()?;
            self.place = match self.place {
                (last, number) if last == partition && !self.written.is_empty() => {
                    (last, number + 1)
                }
                _ => (partition, 0),
            };
            let directory = format!("geometry_type={}", partition_name(partition));
            let name = format!("part-{:04}.parquet", self.place.1);
            if let Some(directories) = &mut self.directory {
                let output = directories.open_below(&directory, &name)?;
                self.start(output)?;
            }
        }
        if let Some((file, facts)) = &mut self.current {
            facts.add(&group.facts);
            file.add(group.group)?;
        }
        Ok(())
    }

    /// Writes the end of the current file.
    fn end_file(&mut self) -> Result<()> {
        if let Some((file, facts)) = self.current.take() {
            let metadata = self.table.metadata(&facts);
            self.written.push(file.finish(Some(("geo", metadata)))?);
        }
        Ok(())
    }

    /// Gives all files their final names. Returns their total size in bytes.
    fn finish(mut self) -> Result<u64> {
        self.end_file()?;
        if let Some(directory) = self.directory {
            return directory.complete(self.written);
        }
        let files = self.written.into_iter();
        files.map(StreamOutput::commit).sum()
    }
}
