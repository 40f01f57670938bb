//! Tables of features in the order of a Hilbert curve: one file, or partitions by the type of the geometry.

use super::Options;
use crate::error::{Error, Result};
use crate::formats::GeoParquetOptions;
use crate::formats::parquet::{
    FeatureGroup, FeatureTable, InfoColumns, ParquetFile, TableFacts, is_part, partition_name,
};
use crate::index::{KeyBits, KeyRange, RowBatch, RowLimits, RowSorter, SortedRows};
use crate::io::{OpenOutput, OutputDirectory, StreamOutput};
use crate::runtime::{Context, Pass};
use std::sync::{Arc, Mutex, PoisonError};

/// The approximate number of rows of a row group.
const GROUP_ROWS: u64 = 100_000;
/// The maximum number of rows that are read at once, where a range of keys has more.
const MAX_ROWS: u64 = 400_000;
/// The limits of memory for rows that are being sorted.
const LIMITS: RowLimits = RowLimits {
    run: 32 << 20,
    memory: 48 << 20,
};
/// The number of bytes after which a partition goes on in another file.
pub(super) const PART_LEN: u64 = 500_000_000;

/// The keys of rows: a position on a curve, below the number of a partition.
const KEY: KeyBits = KeyBits {
    uncounted: 8,
    below_group: 32,
};

/// Writes rows as tables when all are there.
pub(super) struct TableSink {
    pub rows: Arc<TableRows>,
    output: TableOutput,
}

/// The rows of tables, which workers add.
pub(super) struct TableRows {
    pub options: GeoParquetOptions,
    sorter: RowSorter,
    /// The metadata that some objects have.
    info: Mutex<InfoColumns>,
}

impl TableRows {
    /// Adds rows, and the metadata that some of their objects have. This may take a while.
    pub(super) fn add(&self, rows: RowBatch, info: InfoColumns) {
        {
            let mut all = self.info.lock().unwrap_or_else(PoisonError::into_inner);
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
    pub(super) fn open(options: &Options, tables: &GeoParquetOptions) -> Result<Self> {
        let target = &options.target;
        let directory = options.temp_dir.clone();
        let directory = directory.unwrap_or_else(|| target.scratch_directory());
        Ok(Self {
            output: match tables.is_partitioned {
                true => TableOutput::Directory(OutputDirectory::create(
                    target.path(),
                    target.may_overwrite(),
                    is_part,
                )?),
                false => TableOutput::File(OpenOutput::open(target.clone())?),
            },
            rows: Arc::new(TableRows {
                options: tables.clone(),
                sorter: RowSorter::new(LIMITS, KEY, &directory),
                info: Mutex::default(),
            }),
        })
    }

    /// Writes the tables. Returns their length in bytes.
    pub(super) fn finish(self, ctx: &Context) -> Result<u64> {
        let rows = Arc::into_inner(self.rows);
        let rows = rows.ok_or_else(|| Error::Internal("a thread still adds rows".into()))?;
        let TableRows {
            options,
            sorter,
            info,
        } = rows;
        let sorted = &sorter.finish()?;
        ctx.debug(format!(
            "rows are sorted: {} in temporary files",
            crate::runtime::human_bytes(sorted.scratch_len())
        ));
        let info = info.into_inner();
        let info = info.unwrap_or_else(PoisonError::into_inner);
        let table = FeatureTable::new(&options, info)?;
        let mut writer = TableWriter::begin(self.output, &table)?;
        Pass::new("tables", ctx)
            .with_budget(ctx.jobs as u64 + 1)
            .run(
                sorted.ranges(GROUP_ROWS),
                || (),
                |(), range| match range.rows <= MAX_ROWS {
                    true => {
                        let (partition, mut groups) = (range.keys.start >> 32, Vec::new());
                        row_groups(&table, sorted, range, |group| {
                            groups.push(group);
                            Ok(())
                        })?;
                        Ok(Encoded::Groups(partition, groups))
                    }
                    false => Ok(Encoded::Later(range)),
                },
                |encoded| match encoded {
                    Encoded::Groups(partition, groups) => {
                        let mut groups = groups.into_iter();
                        groups.try_for_each(|group| writer.add(partition, group))
                    }
                    Encoded::Later(range) => {
                        let partition = range.keys.start >> 32;
                        row_groups(&table, sorted, range, |group| writer.add(partition, group))
                    }
                },
            )?;
        writer.finish()
    }
}

/// The rows of a range of keys.
enum Encoded {
    /// The row groups of a partition.
    Groups(u64, Vec<FeatureGroup>),
    /// A range with so many rows that each of its row groups is written before the next one is encoded.
    Later(KeyRange),
}

/// Encodes the rows of a range as row groups of about equal length, and passes them to `add`.
fn row_groups(
    table: &FeatureTable,
    sorted: &SortedRows,
    range: KeyRange,
    mut add: impl FnMut(FeatureGroup) -> Result<()>,
) -> Result<()> {
    let count = range.rows;
    let groups = ((count + GROUP_ROWS / 2) / GROUP_ROWS).max(1);
    let at_once = match count <= MAX_ROWS {
        true => groups,
        false => MAX_ROWS / 2 / GROUP_ROWS,
    };
    let start = |number: u64| count * number / groups;
    let mut portions = sorted.portions(range);
    for first in (0..groups).step_by(at_once as usize) {
        let last = groups.min(first + at_once);
        let rows = portions.next(start(last) - start(first))?;
        for number in first..last {
            let [start, end] = [number, number + 1].map(|at| (start(at) - start(first)) as usize);
            add(table.encode(&rows.bytes, rows.rows(start..end))?)?;
        }
    }
    Ok(())
}

/// Writes row groups to one file or to several.
struct TableWriter<'t> {
    table: &'t FeatureTable,
    directory: Option<OutputDirectory>,
    /// The file that is written, and facts about its rows.
    current: Option<(ParquetFile, TableFacts)>,
    /// The partition of that file, and the number of the file in it.
    place: (u64, u32),
    /// Files that are written and have no names yet.
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
            let directory = format!("geometry={}", partition_name(partition));
            let name = format!("part-{:04}.parquet", self.place.1);
            if let Some(directories) = &mut self.directory {
                let output = directories.open_below(&directory, &name)?;
                self.start(output)?;
            }
        }
        if let Some((file, facts)) = &mut self.current {
            facts.add(&group);
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

    /// Gives all files their names. Returns their length in bytes.
    fn finish(mut self) -> Result<u64> {
        self.end_file()?;
        if let Some(directory) = self.directory {
            return directory.complete(self.written);
        }
        let files = self.written.into_iter();
        files.map(StreamOutput::commit).sum()
    }
}
