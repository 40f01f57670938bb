//! Objects as tables: one for nodes, one for ways, one for relations.

use super::tables::PART_LEN;
use super::{Options, Summary};
use crate::error::Result;
use crate::file::{BlobPlan, BlobReader, PbfFile};
use crate::formats::PageCompression;
use crate::formats::parquet::{EncodedGroup, ObjectRows, ObjectTable, ParquetFile};
use crate::io::{OutputDirectory, StreamOutput};
use crate::osm::{ObjectFilter, ObjectKind};
use crate::pbf::{BlobEntry, Block};
use crate::runtime::{Context, Pass, WorkItem};

/// The approximate number of rows of a row group.
const GROUP_ROWS: u64 = 100_000;
/// The memory of rows, in bytes, at which a row group ends.
const GROUP_MEMORY: usize = 32 << 20;

/// The blobs that become a row group, or several.
struct Blobs(Vec<BlobEntry>);

impl WorkItem for Blobs {
    fn input_bytes(&self) -> u64 {
        self.0.iter().map(|entry| u64::from(entry.frame_len)).sum()
    }

    /// The budget is a number of row groups.
    fn held_bytes(&self) -> u64 {
        1
    }
}

/// Writes the objects of a file.
pub(super) fn write(
    file: &PbfFile,
    plan: &BlobPlan,
    options: &Options,
    compression: PageCompression,
    ctx: &Context,
) -> Result<Summary> {
    let mut directory = OutputDirectory::create(options.target.path())?;
    let table = ObjectTable::new(compression)?;
    let filter = ObjectFilter::new(options.filter.iter().cloned());
    let (mut written, mut summary) = (Vec::new(), Summary::default());
    ctx.expect_phases(3);
    for (kind, name) in [
        (ObjectKind::Node, "nodes"),
        (ObjectKind::Way, "ways"),
        (ObjectKind::Relation, "relations"),
    ] {
        let mut current: Option<ParquetFile> = None;
        let mut parts = 0;
        Pass::new(name, ctx).with_budget(ctx.jobs as u64 + 1).run(
            items(plan, kind),
            || BlobReader::new(&file.input, ctx),
            |reader, blobs| groups(reader, &blobs.0, kind, &filter, &table),
            |groups| {
                for (group, rows) in groups {
                    let is_full = |file: &ParquetFile| file.len() + group.len() > PART_LEN;
                    if let Some(full) = current.take_if(|file| is_full(file)) {
                        written.push(full.finish(None)?);
                    }
                    let file = match &mut current {
                        Some(file) => file,
                        none => {
                            let part = format!("part-{parts:04}.parquet");
                            parts += 1;
                            let output =
                                directory.open_below(&format!("type={}", kind.name()), &part)?;
                            let (schema, properties) =
                                (table.form.schema.clone(), table.form.properties.clone());
                            let output = StreamOutput::new(output);
                            none.insert(ParquetFile::create(output, schema, properties)?)
                        }
                    };
                    summary.features += rows;
                    file.add(group)?;
                }
                Ok(())
            },
        )?;
        if let Some(file) = current {
            written.push(file.finish(None)?);
        }
    }
    for file in written {
        summary.bytes += file.commit()?;
    }
    directory.complete();
    ctx.stats.bytes_written.add(summary.bytes);
    Ok(summary)
}

/// The blobs with objects of a kind, in groups of about as many objects as a row group has.
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

/// Encodes the objects of some blobs, and returns the row groups with their numbers of rows.
fn groups(
    reader: &mut BlobReader,
    entries: &[BlobEntry],
    kind: ObjectKind,
    filter: &ObjectFilter,
    table: &ObjectTable,
) -> Result<Vec<(EncodedGroup, u64)>> {
    let (mut groups, mut rows) = (Vec::new(), ObjectRows::default());
    let mut end = |rows: &mut ObjectRows| {
        let rows = std::mem::take(rows);
        let count = rows.len() as u64;
        if count > 0 {
            groups.push((table.encode(rows)?, count));
        }
        Ok::<(), crate::error::Error>(())
    };
    for entry in entries {
        reader.decode(entry, |payload| {
            let block = Block::parse(payload)?;
            let mut selected = super::selection::select(filter, &block)?
                .into_iter()
                .flatten();
            block.try_for_each(|element| {
                let is_selected = selected.next().unwrap_or(true);
                if is_selected && element.kind() == kind {
                    rows.push(&element);
                }
                Ok::<(), crate::error::FormatError>(())
            })
        })?;
        if rows.memory() >= GROUP_MEMORY {
            end(&mut rows)?;
        }
    }
    end(&mut rows)?;
    Ok(groups)
}
