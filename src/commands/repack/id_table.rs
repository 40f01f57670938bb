//! Builds the table of ids of a file in a spatial layout while its blobs are written.
//!
//! The ids in each output blob become rows, which are sorted by the group of input blobs that contains the ids. The
//! input is in the order of ids, so each group has a small range of ids.

use crate::error::{Error, FormatError, FormatResult, Result};
use crate::file::{BlobPlan, PbfWriter};
use crate::index::{KeyBits, RowBatch, RowLimits, RowSorter};
use crate::osm::{ObjectKind, TypeThenId};
use crate::pbf::wire::{Varints, put_varint};
use crate::pbf::{BlobEntry, IdTableBuilder};
use crate::runtime::{Context, Pass};
use std::path::Path;

/// The memory limits for sorting rows.
const LIMITS: RowLimits = RowLimits::new(16 << 20, 48 << 20);
/// The layout of the keys of rows: a kind, and the index of a group of input blobs.
const KEY: KeyBits = KeyBits::new(0, GROUP_BITS);
const GROUP_BITS: u32 = 32;
/// The number of input blobs in a group.
const BLOBS_IN_A_GROUP: usize = 8;
/// The number of objects above which an input blob is treated as several blobs. Blobs of real files have fewer.
const MAX_OBJECTS: u32 = 200_000;
const OBJECTS_OF_A_PART: u32 = 16_000;
/// The maximum number of ids in a row. It bounds the size of a row, so a limit on the number of rows also limits the
/// memory of the rows.
const IDS_IN_A_ROW: usize = 64;
/// The number of rows that a worker reads at a time.
const ROWS_AT_ONCE: u64 = 2000;

/// Collects the ids of the objects in the blobs that are written.
pub(super) struct IdRows {
    /// The key of the first object in each group of input blobs.
    groups: Vec<TypeThenId>,
    sorter: RowSorter,
}

/// Returns the key of the first object in an input blob. For a blob with more than [`MAX_OBJECTS`] objects, also
/// returns keys between its first and its last key, as if it were several blobs.
fn first_keys(entry: &BlobEntry) -> impl Iterator<Item = TypeThenId> {
    let first = entry.first_sort_key();
    let parts = if entry.count <= MAX_OBJECTS {
        0
    } else {
        u64::from(entry.count / OBJECTS_OF_A_PART)
    };
    let ends = first.zip(entry.last_sort_key());
    let ends = ends.filter(|(first, last)| first.0 == last.0);
    let inner = ends
        .into_iter()
        .flat_map(move |((kind, first), (_, last))| {
            let step = last.saturating_sub(first) / parts.max(1);
            (1..parts).map(move |part| (kind, first + part * step))
        });
    first.into_iter().chain(inner)
}

/// An output blob: the index of the range of objects that it is made of, and its index among the blobs of this range.
pub(super) type BlobOfRange = (u32, u32);

impl IdRows {
    /// Creates an empty collection. `plan` has the blobs of the input, which must be in order. Rows that exceed the
    /// memory limit are spilled to a file in `scratch`.
    pub(super) fn new(plan: &BlobPlan, scratch: &Path, ctx: &Context) -> Self {
        let firsts: Vec<TypeThenId> = plan.entries.iter().flat_map(first_keys).collect();
        let groups = firsts.chunks(BLOBS_IN_A_GROUP);
        Self {
            groups: groups.map(|group| group[0]).collect(),
            sorter: RowSorter::new(LIMITS, KEY, scratch, ctx),
        }
    }

    /// Adds the ids of the objects in a blob. The ids are given as ranks, in any order.
    pub(super) fn add(&self, kind: ObjectKind, mut ranks: Vec<u64>, blob: BlobOfRange) {
        ranks.sort_unstable();
        let mut batch = RowBatch::default();
        let mut rest = ranks.as_slice();
        while let Some(first) = rest.first() {
            let group = self
                .groups
                .partition_point(|start| *start <= (kind, *first));
            let end = self.groups.get(group).copied();
            let len = rest.partition_point(|rank| end.is_none_or(|end| (kind, *rank) < end));
            let (row, behind) = rest.split_at(len.clamp(1, IDS_IN_A_ROW));
            rest = behind;
            let key = u64::from(kind.number()) << GROUP_BITS | group as u64;
            batch.push(key, |bytes| put_row(row, blob, bytes));
        }
        self.sorter.add(batch);
    }

    /// Fails if rows could not be written to a temporary file.
    pub(super) fn check(&self) -> Result<()> {
        self.sorter.check_for_error()
    }

    /// Writes the table of ids. For each range of objects, `first_blobs` has the index of the first blob of the range.
    pub(super) fn write(
        self,
        first_blobs: &[u32],
        writer: &mut PbfWriter,
        ctx: &Context,
    ) -> Result<()> {
        let sorted = self.sorter.finish()?;
        let failed = |error: FormatError| Error::internal(format!("the table of ids: {error}"));
        let mut builder = IdTableBuilder::default();
        let fingerprint = writer.id_fingerprint();
        Pass::new("write table of ids", ctx)
            .with_budget(ctx.jobs as u64 + 1)
            .run(
                sorted.ranges(ROWS_AT_ONCE),
                || (),
                |(), range| {
                    let kind = ObjectKind::from_number(range.keys.start >> GROUP_BITS);
                    let rows = sorted.read(&range.keys)?;
                    let mut ids = Vec::new();
                    for row in rows.iter() {
                        read_row(row, first_blobs, &mut ids).map_err(failed)?;
                    }
                    ids.sort_unstable();
                    Ok((kind, ids))
                },
                |(kind, ids)| {
                    let unknown = || Error::internal("a row of unknown kind");
                    let kind = kind.ok_or_else(unknown)?;
                    for (rank, blob) in ids {
                        builder.add(kind, rank, blob);
                    }
                    let mut sections = builder.take_sections().into_iter();
                    sections.try_for_each(|section| writer.put_id_section(section))
                },
            )?;
        let mut sections = builder.finish().into_iter();
        sections.try_for_each(|section| writer.put_id_section(section))?;
        writer.finish_id_table(fingerprint)
    }
}

/// Appends an encoded row to `row`. The row consists of the blob, and of the ranks of ids in ascending order.
fn put_row(ranks: &[u64], blob: BlobOfRange, row: &mut Vec<u8>) {
    put_varint(row, blob.0.into());
    put_varint(row, blob.1.into());
    let mut last = 0;
    for rank in ranks {
        put_varint(row, rank - last);
        last = *rank;
    }
}

/// Decodes a row that [`put_row`] has encoded. Appends its ranks to `ids`, each with the index of the blob.
fn read_row(row: &[u8], first_blobs: &[u32], ids: &mut Vec<(u64, u32)>) -> FormatResult<()> {
    let mut fields = Varints::new(row);
    let (range, number) = (fields.read()?, fields.read()?);
    let first = first_blobs.get(range as usize);
    let first = first.ok_or(FormatError::new("a row belongs to no blob"))?;
    let (blob, mut rank) = (first + number as u32, 0);
    while !fields.is_done() {
        rank += fields.read()?;
        ids.push((rank, blob));
    }
    Ok(())
}
