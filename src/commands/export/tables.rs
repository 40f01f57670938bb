//! Writes tables of features in the order of a Hilbert curve, to one file or to several files in a directory. The
//! directory may be divided into partitions.

use super::boundaries::Boundaries;
use super::feature_pass::FeaturePass;
use super::output::{FeatureNeeds, FeatureOutput, RelationCollector};
use super::parts::{TableOutput, TableParts};
use super::tally::theme_numbers;
use super::{Options, Report, Summary};
use crate::error::{Error, Result};
use crate::file::PbfFile;
use crate::formats::features::Feature;
use crate::formats::parquet::{
    COUNTRY_LEVEL, FeatureGroup, FeatureTable, LOWEST_LEVEL, Partitioning, ThemeSet, is_part,
    put_row,
};
use crate::formats::{GeoParquetOptions, MAX_FILE_LEN};
use crate::geometry::Extent;
use crate::index::{KeyBits, KeyRange, RowBatch, RowLimits, RowSorter, SortedRows};
use crate::io::{OpenOutput, OutputDirectory, OutputTarget};
use crate::pbf::Relation;
use crate::runtime::{Context, Pass, PassResults};
use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::path::Path;

/// The limits for the number of rows in a row group. Within these limits, a row group has 1 / [`GROUPS`] of all rows.
/// Even in a small table, a reader that looks for a location can therefore skip most rows.
const GROUP_ROWS: RangeInclusive<u64> = 1_024..=100_000;
const GROUPS: u64 = 64;
/// The maximum size in memory of the rows that are read at a time, in bytes. It also limits the size of a row group.
const READ_MEMORY: usize = 24 << 20;
/// The memory limits for sorting rows.
const LIMITS: RowLimits = RowLimits::new(32 << 20, 48 << 20);
/// The key of a row consists of the number of a partition and a position on the Hilbert curve. A range of keys may
/// contain several partitions, because partitions can be small.
const KEY: KeyBits = KeyBits::new(8, 63);

/// Tables whose rows are being collected. The tables are written after all rows were added.
struct FeatureTables<'a> {
    options: &'a GeoParquetOptions,
    partitioning: Partitioning,
    /// The administrative boundaries, if a column needs them; otherwise `None`.
    boundaries: Option<Boundaries>,
    sorter: RowSorter,
    output: TableOutput,
}

/// The rows that a thread makes from features.
struct FeatureRows<'a> {
    rows: RowBatch,
    partitioning: &'a Partitioning,
    sorter: &'a RowSorter,
}

impl FeatureOutput for FeatureRows<'_> {
    type Part = Infallible;

    /// Adds a row for each theme of a feature. Returns the themes as a set of bits.
    fn put(&mut self, feature: &Feature<'_>, extent: &Extent, _: Option<&Relation<'_>>) -> u64 {
        let themes = self.partitioning.themes().themes_of(feature);
        for theme in theme_numbers(themes) {
            let key = self.partitioning.sort_key(&feature.geometry, extent, theme);
            self.rows.push(key, |out| put_row(out, feature));
            // A feature with many themes has many rows, so the batch may become full in this loop.
            self.sorter.add_if_full(&mut self.rows);
        }
        themes
    }

    fn flush(&mut self) {
        self.sorter.add_and_clear(&mut self.rows);
    }

    fn check(&self) -> Result<()> {
        self.sorter.check_for_error()
    }
}

/// Writes the features of a file as tables.
pub(super) fn write(
    file: &PbfFile,
    options: &Options,
    format: &GeoParquetOptions,
    report: Option<&mut Report<'_>>,
    ctx: &Context,
) -> Result<Summary> {
    let locate = options.locate_options();
    let tables = FeatureTables::open(&options.target, format, &locate.1.temp_dir, ctx)?;
    let themes = tables.partitioning.themes();
    let mut rules = options.rules.clone().keeps_repeated_keys(false);
    if rules.filter.is_empty() && !themes.is_empty() {
        // Without a filter from the user, only objects that belong to a theme are read.
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
    /// Opens the output for the tables. Temporary files are created in `directory`.
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
                TableOutput::File(Some(OpenOutput::open(target.clone(), ctx)?))
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
        let max_len = options.max_file_len.unwrap_or(MAX_FILE_LEN);
        let path_of = |partition| partitioning.directory(partition);
        let mut parts = TableParts::new(self.output, &table.form, Some(&table), &path_of, max_len);
        let count = sorted.count();
        let group_rows = (count / GROUPS).clamp(*GROUP_ROWS.start(), *GROUP_ROWS.end());
        let ranges = sorted.ranges(group_rows);
        Pass::new("tables", ctx).with_item_limit().run_results(
            count,
            ranges.into_iter().map(Ok),
            || (),
            |(), range, results| {
                let rows = TableRange {
                    sorted: &sorted,
                    range,
                    group_rows: group_rows as usize,
                };
                send_row_groups(&table, partitioning, rows, results)
            },
            |_| (),
            |(partition, FeatureGroup { group, facts })| parts.add(partition, group, &facts),
        )?;
        parts.finish(partitioning.is_empty(), ctx)
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

/// Encodes the rows of a range as row groups, and sends each row group. A row group has rows of only one partition. The
/// rows of a partition are divided into row groups of about equal size.
fn send_row_groups(
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
    for rows in sorted.portions(range, READ_MEMORY) {
        let rows = rows?;
        let keys = rows.keys_and_lens().map(|(key, _)| key);
        let partitions: Vec<u64> = keys.map(Partitioning::partition_of_sort_key).collect();
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
