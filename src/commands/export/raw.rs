//! Writes objects as Parquet tables, one for nodes, one for ways and one for relations.

use super::selection::selects_by_unique_tags;
use super::{Options, Summary};
use crate::commands::repeated_keys::warn_of_repeated_keys;
use crate::engine::repeats;
use crate::error::{FormatError, Result};
use crate::file::{BlobDecoder, BlobPlan, PbfFile, PlanNeeds};
use crate::formats::ObjectTableOptions;
use crate::formats::parquet::{EncodedGroup, ObjectRows, ObjectTable, ParquetFile, is_part};
use crate::formats::row_limit::OversizedObjects;
use crate::io::{OutputDirectory, StreamOutput};
use crate::osm::{ObjectFilter, ObjectKind};
use crate::pbf::{BlobEntry, Block};
use crate::runtime::{Context, Pass, PassResults, WorkItem};
use std::path::Path;

/// The number of objects at which a group of blobs ends. A group usually becomes one row group.
const GROUP_ROWS: u64 = 100_000;
/// The size of rows in memory, in bytes, at which a row group ends after the current blob.
const GROUP_MEMORY: usize = 32 << 20;
/// The maximum size of the rows of a row group in memory, in bytes. A row group that reaches this size ends within a
/// blob. In real files, the rows of one blob are smaller.
const MAX_MEMORY: usize = 48 << 20;

/// Blobs that become one or more row groups.
struct Blobs(Vec<BlobEntry>);

impl WorkItem for Blobs {
    fn input_bytes(&self) -> u64 {
        self.0.iter().map(|entry| u64::from(entry.frame_len)).sum()
    }
}

/// A row group.
struct RowGroup {
    /// `None` if there are no rows.
    encoded: Option<EncodedGroup>,
    rows: u64,
    /// The number of tags that were left out, because an earlier tag of the object has their key.
    repeated_keys: u64,
    /// The objects that were left out because their rows would be too large.
    oversized: OversizedObjects,
}

/// Writes the objects of a file as tables.
pub(super) fn write(
    file: &PbfFile,
    options: &Options,
    tables: ObjectTableOptions,
    ctx: &Context,
) -> Result<Summary> {
    let plan = BlobPlan::open(file, PlanNeeds::Ranges, ctx)?;
    repeats::count(file, &plan, ctx, |ctx| {
        write_tables(file, &plan, options, tables, ctx)
    })
}

fn write_tables(
    file: &PbfFile,
    plan: &BlobPlan,
    options: &Options,
    tables: ObjectTableOptions,
    ctx: &Context,
) -> Result<Summary> {
    let target = &options.target;
    let mut directory =
        OutputDirectory::create(target.path(), target.may_overwrite(), is_part, ctx)?;
    let table = ObjectTable::new(tables.compression)?;
    let filter = ObjectFilter::new(options.rules.filter.iter().cloned());
    let (mut summary, mut oversized) = (Summary::default(), OversizedObjects::default());
    ctx.expect_phases(3);
    let kinds = [
        (ObjectKind::Node, "nodes"),
        (ObjectKind::Way, "ways"),
        (ObjectKind::Relation, "relations"),
    ];
    let kinds = kinds.into_iter();
    for (kind, name) in kinds.filter(|(kind, _)| options.rules.kinds.contains(*kind)) {
        let mut parts = Parts {
            directory: &mut directory,
            kind,
            table: &table,
            max_len: tables.max_file_len,
            current: None,
            count: 0,
            bytes: 0,
        };
        let items = items(plan, kind);
        let bytes = items.iter().map(WorkItem::input_bytes).sum();
        Pass::new(name, ctx).counting_items().run_results(
            bytes,
            items.into_iter().map(Ok),
            || BlobDecoder::new(&file.input, ctx),
            |reader, blobs: Blobs, results| {
                groups(reader, &blobs.0, kind, &filter, &table, results)
            },
            |_| (),
            |group: RowGroup| {
                summary.features += group.rows;
                summary.repeated_keys += group.repeated_keys;
                oversized.extend(&group.oversized);
                group.encoded.map_or(Ok(()), |encoded| parts.add(encoded))
            },
        )?;
        summary.bytes += parts.finish()?;
    }
    directory.complete(ctx)?;
    warn_of_repeated_keys(summary.repeated_keys, ctx);
    oversized.warn(ctx);
    ctx.stats.bytes_written.add(summary.bytes);
    Ok(summary)
}

/// The parts of the table for a kind, of which the last one is being written.
struct Parts<'t> {
    directory: &'t mut OutputDirectory,
    kind: ObjectKind,
    table: &'t ObjectTable,
    /// The maximum size of a part in bytes.
    max_len: u64,
    current: Option<ParquetFile>,
    /// The number of parts.
    count: u32,
    /// The size in bytes of the complete parts.
    bytes: u64,
}

impl Parts<'_> {
    /// Adds a row group to the last part, or to a new one if the last part has no room for it.
    fn add(&mut self, group: EncodedGroup) -> Result<()> {
        let is_full = |file: &mut ParquetFile| file.len() + group.len() > self.max_len;
        if let Some(full) = self.current.take_if(is_full) {
            self.bytes += full.finish(None)?.commit_unflushed()?;
        }
        let file = match self.current.take() {
            Some(file) => file,
            None => self.open()?,
        };
        self.current.insert(file).add(group)
    }

    /// Opens the output for another part.
    fn open(&mut self) -> Result<ParquetFile> {
        let part = format!("type={}/part-{:04}.parquet", self.kind.name(), self.count);
        self.count += 1;
        let output = self.directory.open(Path::new(&part))?;
        let form = &self.table.form;
        let (schema, properties) = (form.schema.clone(), form.properties.clone());
        ParquetFile::create(StreamOutput::new(output), schema, properties)
    }

    /// Completes the last part. Returns the size in bytes of all parts.
    fn finish(mut self) -> Result<u64> {
        if let Some(last) = self.current.take() {
            self.bytes += last.finish(None)?.commit_unflushed()?;
        }
        Ok(self.bytes)
    }
}

/// Returns the blobs with objects of a kind, in groups with about as many objects as a row group.
fn items(plan: &BlobPlan, kind: ObjectKind) -> Vec<Blobs> {
    let (mut items, mut count) = (Vec::<Blobs>::new(), GROUP_ROWS);
    let entries = plan.entries.iter();
    for entry in entries.filter(|entry| entry.kinds.contains(kind)) {
        match items.last_mut() {
            Some(last) if count < GROUP_ROWS => last.0.push(*entry),
            _ => {
                items.push(Blobs(vec![*entry]));
                count = 0;
            }
        }
        count += u64::from(entry.count);
    }
    items
}

/// Encodes the objects of `entries` as row groups, and sends each row group as soon as it is complete.
fn groups(
    reader: &mut BlobDecoder,
    entries: &[BlobEntry],
    kind: ObjectKind,
    filter: &ObjectFilter,
    table: &ObjectTable,
    results: &PassResults<'_, RowGroup>,
) -> Result<()> {
    let mut rows = ObjectRows::default();
    let end = |rows: &mut ObjectRows| {
        let rows = std::mem::take(rows);
        let (count, repeated_keys) = (rows.len() as u64, rows.repeated_keys());
        let oversized = rows.oversized();
        let has_rows = count > 0;
        results.send(RowGroup {
            encoded: has_rows.then(|| table.encode(rows)).transpose()?,
            rows: count,
            repeated_keys,
            oversized,
        })
    };
    for entry in entries {
        reader.decode(entry, |payload| {
            let block = Block::parse(payload)?;
            let selected = crate::engine::block_matcher::select(filter, &block)?;
            let mut position = 0;
            block.try_for_each(|element| {
                let is_selected = selected.as_ref().is_none_or(|selected| selected[position]);
                position += 1;
                if !is_selected || element.kind() != kind {
                    return Ok(());
                }
                element.check_size()?;
                if !selects_by_unique_tags(filter, &element) {
                    return Ok(());
                }
                if !rows.has_room(&element, MAX_MEMORY) {
                    end(&mut rows).map_err(|error| FormatError::with(error.to_string()))?;
                }
                rows.push(&element, payload.len());
                if rows.memory() >= MAX_MEMORY {
                    end(&mut rows).map_err(|error| FormatError::with(error.to_string()))?;
                }
                Ok(())
            })
        })?;
        if rows.memory() >= GROUP_MEMORY {
            end(&mut rows)?;
        }
    }
    end(&mut rows)
}
