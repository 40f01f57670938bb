//! Writes tables of features in the order of a Hilbert curve, to one file or to several files in a directory, which may
//! be divided into partitions.

use super::boundaries::Boundaries;
use super::feature_pass::FeaturePass;
use super::output::{FeatureNeeds, FeatureOutput, RelationCollector};
use super::tally::theme_numbers;
use super::{Options, Report, Summary};
use crate::error::{Error, Result};
use crate::file::PbfFile;
use crate::formats::features::Feature;
use crate::formats::parquet::{
    COUNTRY_LEVEL, FeatureGroup, FeatureTable, LOWEST_LEVEL, ParquetFile, Partitioning, TableFacts,
    ThemeSet, is_part, put_row,
};
use crate::formats::{GeoParquetOptions, MAX_FILE_LEN};
use crate::geometry::Extent;
use crate::index::{KeyBits, KeyRange, RowBatch, RowLimits, RowSorter, SortedRows};
use crate::io::{OpenOutput, OutputDirectory, OutputTarget, StreamOutput};
use crate::pbf::Relation;
use crate::runtime::{Context, Pass, PassResults};
use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// The limits for the number of rows in a row group. Within these limits, a table has about [`GROUPS`] row groups, so
/// that even in a small table, readers that look for a place can skip most rows.
const GROUP_ROWS: RangeInclusive<u64> = 1_024..=100_000;
const GROUPS: u64 = 64;
/// The maximum size in memory of the rows that are read at a time, in bytes. It also limits the size of a row group.
const READ_MEMORY: usize = 24 << 20;
/// The memory limits for sorting rows.
const LIMITS: RowLimits = RowLimits {
    run: 32 << 20,
    memory: 48 << 20,
};
/// The key of a row consists of the number of a partition and a position on the Hilbert curve. A range of keys may
/// contain several partitions, because partitions can be small.
const KEY: KeyBits = KeyBits {
    uncounted: 8,
    below_group: 63,
};

/// The size in bytes at which the rows of a thread are passed to the sorter even before the end of a blob. In real
/// files, the rows of one blob are smaller.
const MAX_ROWS: usize = 2 << 20;

/// Tables whose rows are collected. They are written when all rows were added.
struct FeatureTables<'a> {
    options: &'a GeoParquetOptions,
    partitioning: Partitioning,
    /// The administrative boundaries, if a column needs them; otherwise `None`.
    boundaries: Option<Boundaries>,
    sorter: RowSorter,
    output: TableOutput,
}

/// The rows of the features of a thread.
struct FeatureRows<'a> {
    rows: RowBatch,
    partitioning: &'a Partitioning,
    sorter: &'a RowSorter,
}

impl FeatureOutput for FeatureRows<'_> {
    type Part = Infallible;

    /// Adds a row for each theme of a feature. Returns the themes as a set of bits.
    fn put(&mut self, feature: &Feature<'_>, extent: &Extent, _: Option<&Relation<'_>>) -> u64 {
        let themes = self.partitioning.themes().of(feature);
        for theme in theme_numbers(themes) {
            let key = self.partitioning.sort_key(&feature.geometry, extent, theme);
            self.rows.push(key, |out| put_row(out, feature));
            // A feature of many themes has many rows.
            if self.rows.len() >= MAX_ROWS {
                self.flush();
            }
        }
        themes
    }

    fn flush(&mut self) {
        self.sorter.add_all(&mut self.rows);
    }

    fn check(&self) -> Result<()> {
        self.sorter.check()
    }
}

enum TableOutput {
    File(OpenOutput),
    Directory(OutputDirectory),
}

/// Writes the features of a file as tables.
pub(super) fn write(
    file: &PbfFile,
    options: &Options,
    format: &GeoParquetOptions,
    report: Option<&mut Report<'_>>,
    ctx: &Context,
) -> Result<Summary> {
    let locate = options.locate();
    let tables = FeatureTables::open(&options.target, format, &locate.1.temp_dir, ctx)?;
    let themes = tables.partitioning.themes();
    let mut rules = options.rules.clone().keeps_repeated_keys(false);
    if rules.filter.is_empty() && !themes.is_empty() {
        // Without a filter of the user, only objects that belong to a theme are read.
        rules.filter = themes.expressions().to_vec();
    }
    let boundaries = tables.boundaries.as_ref();
    let pass = FeaturePass {
        file,
        rules: &rules,
        locate,
        needs: FeatureNeeds {
            info: format.has_metadata,
            way_nodes: false,
            themes: themes.names().map(str::to_owned).collect(),
            relations: boundaries.map(|boundaries| boundaries as &dyn RelationCollector),
        },
        ctx,
    };
    let output = || FeatureRows {
        rows: RowBatch::default(),
        partitioning: &tables.partitioning,
        sorter: &tables.sorter,
    };
    let summary = pass.run(report, output, |part| match part {})?;
    let bytes = tables.finish(ctx)?;
    Ok(Summary { bytes, ..summary })
}

impl<'a> FeatureTables<'a> {
    /// Opens the output of tables. Temporary files are in `directory`.
    fn open(
        target: &OutputTarget,
        options: &'a GeoParquetOptions,
        directory: &Path,
        ctx: &Context,
    ) -> Result<Self> {
        let partitioning = ThemeSet::new(&options.themes)
            .and_then(|themes| Partitioning::new(&options.partition, themes))
            .and_then(|partitioning| {
                options.check_columns(&partitioning)?;
                Ok(partitioning)
            })
            .map_err(Error::Usage)?;
        let lowest = if partitioning.themes().needs_parents() {
            Some(LOWEST_LEVEL)
        } else {
            options.derived.country.then_some(COUNTRY_LEVEL)
        };
        let (path, overwrite) = (target.path(), target.may_overwrite());
        Ok(Self {
            options,
            output: if options.is_directory() {
                let directory = OutputDirectory::create(path, overwrite, is_part, ctx)?;
                TableOutput::Directory(directory)
            } else {
                TableOutput::File(OpenOutput::open(target.clone(), ctx)?)
            },
            partitioning,
            boundaries: lowest.map(Boundaries::new),
            sorter: RowSorter::new(LIMITS, KEY, directory, ctx),
        })
    }

    /// Writes the tables. Returns their total size in bytes.
    fn finish(self, ctx: &Context) -> Result<u64> {
        let (options, partitioning) = (self.options, &self.partitioning);
        let sorted = self.sorter.finish()?;
        ctx.debug(format!(
            "rows are sorted: {} in temporary files",
            crate::runtime::human_bytes(sorted.scratch_len())
        ));
        let areas = self.boundaries.map(|boundaries| boundaries.take_areas());
        let table = FeatureTable::new(options, partitioning.themes(), areas)?;
        let mut writer = TableWriter::begin(self.output, &table, partitioning.clone(), options)?;
        let count = sorted.count();
        let group_rows = (count / GROUPS).clamp(*GROUP_ROWS.start(), *GROUP_ROWS.end());
        let ranges = sorted.ranges(group_rows);
        Pass::new("tables", ctx).counting_items().run_results(
            count,
            ranges.into_iter().map(Ok),
            || (),
            |(), range, results| {
                let rows = TableRange {
                    sorted: &sorted,
                    range,
                    group_rows: group_rows as usize,
                };
                row_groups(&table, partitioning, rows, results)
            },
            |_| (),
            |(partition, group)| writer.add(partition, group),
        )?;
        writer.finish(ctx)
    }
}

/// A row group, and the number of its partition.
type PartitionGroup = (u64, FeatureGroup);

/// The range of rows that a thread encodes.
struct TableRange<'s> {
    sorted: &'s SortedRows,
    range: KeyRange,
    /// The approximate number of rows in a row group.
    group_rows: usize,
}

/// Encodes the rows of a range as row groups, and sends each of them. A row group has rows of one partition. The rows
/// of a partition are divided into row groups of about equal size.
fn row_groups(
    table: &FeatureTable,
    partitioning: &Partitioning,
    rows: TableRange<'_>,
    results: &PassResults<'_, PartitionGroup>,
) -> Result<()> {
    let TableRange {
        sorted,
        range,
        group_rows,
    } = rows;
    let mut portions = sorted.portions(range);
    while portions.left() > 0 {
        let rows = portions.next(READ_MEMORY)?;
        let keys = rows.keys_and_lens().map(|(key, _)| key);
        let partitions: Vec<u64> = keys.map(Partitioning::partition_of).collect();
        let mut end = 0;
        for equal in partitions.chunk_by(u64::eq) {
            let (start, count) = (end, equal.len());
            end += count;
            let theme = partitioning.theme(partitions[start]);
            let groups = ((count + group_rows / 2) / group_rows).max(1);
            let start_of = |group: usize| start + count * group / groups;
            for group in 0..groups {
                let numbers = start_of(group)..start_of(group + 1);
                let mut next = rows.rows(numbers).peekable();
                while next.peek().is_some() {
                    let encoded = table.encode(&rows.bytes, &mut next, theme)?;
                    results.send((partitions[start], encoded))?;
                }
            }
        }
    }
    Ok(())
}

/// Writes row groups to one file or to the files of a directory.
struct TableWriter<'t> {
    table: &'t FeatureTable,
    partitioning: Partitioning,
    /// The directory of the files; `None` if there is only one file.
    directory: Option<OutputDirectory>,
    max_file_len: u64,
    /// The file that is being written, and the facts about its rows that its metadata will contain.
    current: Option<(ParquetFile, TableFacts)>,
    /// The number of the partition to which the current file belongs. `next_number` is the number of the next file in
    /// this partition.
    partition: u64,
    next_number: u32,
    /// The total size in bytes of the complete files.
    written: u64,
}

impl<'t> TableWriter<'t> {
    fn begin(
        output: TableOutput,
        table: &'t FeatureTable,
        partitioning: Partitioning,
        options: &GeoParquetOptions,
    ) -> Result<Self> {
        let mut writer = Self {
            table,
            partitioning,
            directory: None,
            max_file_len: options.max_file_len.unwrap_or(MAX_FILE_LEN),
            current: None,
            partition: 0,
            next_number: 0,
            written: 0,
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
        let is_full = |file: &ParquetFile| file.len() + group.group.len() > self.max_file_len;
        let is_next = match &self.current {
            None => true,
            Some((file, _)) => self.partition != partition || is_full(file),
        };
        if self.directory.is_some() && is_next {
            self.start_part(partition)?;
        }
        if let Some((file, facts)) = &mut self.current {
            facts.add(&group.facts);
            file.add(group.group)?;
        }
        Ok(())
    }

    /// Ends the current file, and starts the next file of a partition.
    fn start_part(&mut self, partition: u64) -> Result<()> {
        self.end_file()?;
        if self.partition != partition {
            (self.partition, self.next_number) = (partition, 0);
        }
        let directory = PathBuf::from(self.partitioning.directory(partition));
        let path = directory.join(format!("part-{:04}.parquet", self.next_number));
        self.next_number += 1;
        match &mut self.directory {
            Some(directory) => {
                let output = directory.open(&path)?;
                self.start(output)
            }
            None => Ok(()),
        }
    }

    /// Completes the current file. If the output is a directory, all of its files get their names later, together.
    fn end_file(&mut self) -> Result<()> {
        if let Some((file, facts)) = self.current.take() {
            let metadata = self.table.metadata(&facts);
            let file = file.finish(Some(("geo", metadata)))?;
            self.written += if self.directory.is_some() {
                file.commit_unflushed()?
            } else {
                file.commit()?
            };
        }
        Ok(())
    }

    /// Completes the table. Returns the total size of its files in bytes.
    fn finish(mut self, ctx: &Context) -> Result<u64> {
        if self.current.is_none() && self.written == 0 && self.partitioning.is_empty() {
            // Writes a file even if there are no rows, so that readers find the columns.
            self.start_part(0)?;
        }
        self.end_file()?;
        if let Some(directory) = self.directory {
            directory.complete(ctx)?;
        }
        Ok(self.written)
    }
}
