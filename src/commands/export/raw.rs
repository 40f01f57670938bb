//! Writes objects as Parquet tables, one for nodes, one for ways and one for relations.

use super::parts::{TableOutput, TableParts};
use super::selection::selects_by_unique_tags;
use super::{Options, Summary};
use crate::commands::repeated_keys::warn_of_repeated_keys;
use crate::engine::repeats;
use crate::error::{FormatError, Result};
use crate::file::{BlobDecoder, BlobPlan, PbfFile, PlanNeeds};
use crate::formats::ObjectTableOptions;
use crate::formats::parquet::{EncodedGroup, ObjectRows, ObjectTable, TableFacts, is_part};
use crate::formats::row_limit::{OversizedObjects, RowLimit};
use crate::io::OutputDirectory;
use crate::osm::{ObjectFilter, ObjectKind};
use crate::pbf::{BlobEntry, Block};
use crate::runtime::{Context, Pass, PassResults, WorkItem};

/// The number of objects at which a group of blobs ends. A group usually becomes one row group.
const GROUP_ROWS: u64 = 100_000;
/// The size of rows in memory, in bytes, at which a row group ends after the current blob.
const GROUP_MEMORY: usize = 32 << 20;
/// The maximum size of the rows of a row group in memory, in bytes. A row group that reaches this size ends within a
/// blob. The row groups of real files stay smaller.
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
    /// The number of tags that were left out because an earlier tag of the same object has the same key.
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
    repeats::read_and_warn_of_repeats(file, &plan, ctx, |ctx| {
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
    let directory = OutputDirectory::create(target.path(), target.may_overwrite(), is_part, ctx)?;
    let table = ObjectTable::new(tables.compression)?;
    let filter = ObjectFilter::new(options.rules.filter.iter().cloned());
    let row_limit = RowLimit::of(options.lookup.max_memory);
    let (mut summary, mut oversized) = (Summary::default(), OversizedObjects::default());
    ctx.expect_phases(3);
    let path_of = |kind: u64| {
        let kind = ObjectKind::ALL.into_iter().nth(kind as usize);
        format!("type={}", kind.map_or("", ObjectKind::name))
    };
    let output = TableOutput::Directory(directory);
    let mut parts = TableParts::new(output, &table.form, None, &path_of, tables.max_file_len);
    let kinds = (0..).zip(["nodes", "ways", "relations"]);
    let kinds = ObjectKind::ALL.into_iter().zip(kinds);
    let kinds = kinds.filter(|(kind, _)| options.rules.kinds.contains(*kind));
    for (kind, (partition, name)) in kinds {
        let items = group_blobs(plan, kind);
        let bytes = items.iter().map(WorkItem::input_bytes).sum();
        Pass::new(name, ctx).with_item_limit().run_results(
            bytes,
            items.into_iter().map(Ok),
            || BlobDecoder::new(&file.input, ctx),
            |reader, blobs: Blobs, results| {
                let rows = || ObjectRows::new(row_limit);
                send_row_groups(reader, &blobs.0, kind, &filter, (&table, &rows), results)
            },
            |_| (),
            |group: RowGroup| {
                summary.features += group.rows;
                summary.repeated_keys += group.repeated_keys;
                oversized.extend(&group.oversized);
                match group.encoded {
                    Some(group) => parts.add(partition, group, &TableFacts::default()),
                    None => Ok(()),
                }
            },
        )?;
    }
    summary.bytes = parts.finish(false, ctx)?;
    warn_of_repeated_keys(summary.repeated_keys, ctx);
    oversized.warn(row_limit, ctx);
    ctx.stats.bytes_written.add(summary.bytes);
    Ok(summary)
}

/// Returns the blobs with objects of a kind, in groups with about as many objects as a row group.
fn group_blobs(plan: &BlobPlan, kind: ObjectKind) -> Vec<Blobs> {
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

/// Encodes the objects of `entries` as row groups, and sends each row group as soon as it is complete. `new_rows`
/// creates the empty rows of a group.
fn send_row_groups(
    reader: &mut BlobDecoder,
    entries: &[BlobEntry],
    kind: ObjectKind,
    filter: &ObjectFilter,
    (table, new_rows): (&ObjectTable, &dyn Fn() -> ObjectRows),
    results: &PassResults<'_, RowGroup>,
) -> Result<()> {
    let mut rows = new_rows();
    let end = |rows: &mut ObjectRows| {
        let rows = std::mem::replace(rows, new_rows());
        let (count, repeated_keys) = (rows.len() as u64, rows.repeated_keys);
        let oversized = rows.oversized;
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
            let selected = crate::engine::block_matcher::selection_flags(filter, &block)?;
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
