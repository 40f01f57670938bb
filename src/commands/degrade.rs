//! `degrade`: rewrites a file for tests. The output is valid but awkward, like real files that are unsorted, without
//! indexes or incomplete.

use super::random::Random;
use crate::engine::headers::header_of_part;
use crate::engine::rewrite::{Rewrite, Rewritten};
use crate::engine::sink::Sink;
use crate::engine::{OutputOptions, input};
use crate::error::{Error, FormatResult, Result};
use crate::file::{BlobPlan, PlanNeeds, WriteOptions, Written};
use crate::io::SizeHint;
use crate::pbf::{
    BlobEntry, BlobFlags, Block, EditScript, FrameEncoder, HeaderBlock, RawElement, SourceStrings,
    SpliceOptions, feature, splice_block, stale_index_error,
};
use crate::runtime::Context;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

options! {
    /// The options of `degrade`.
    pub struct Options {
        /// The input file; `-` is standard input.
        pub input: PathBuf,
        /// The target, the encoding and the header of the output.
        pub output: OutputOptions,
        /// The properties that make the output awkward; at least one has to be set.
        pub defects: Defects,
    }
    new(input: impl Into<PathBuf>, output: OutputOptions, defects: Defects);
    setters {}
}

/// The properties that make an output awkward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Defects {
    /// Whether blobs are in random order. If there is only one blob, its objects are in random order instead.
    pub unsort: bool,
    /// Whether the objects of each blob are in random order.
    pub unsort_intra: bool,
    /// Whether the output lacks a table of contents and per-blob indexes.
    pub strip_index: bool,
    /// Whether the coordinates of nodes are removed from ways.
    pub strip_locations: bool,
    /// Whether the bounding box is removed from the header.
    pub strip_bbox: bool,
    /// The number of objects to leave out, and the seed that selects them. Kept objects may still refer to the objects
    /// that are left out. `None` keeps all objects.
    pub drop: Option<(u64, u64)>,
}

impl Defects {
    /// Returns the header of an output with these properties.
    fn header(&self, input: &HeaderBlock) -> HeaderBlock {
        let mut header = header_of_part(input.clone(), self.drop.is_none());
        header.set_optional(feature::SORTED, false);
        if self.strip_bbox {
            header.bbox_nano = None;
        }
        if self.strip_locations {
            header.declare_locations(None);
        }
        header
    }

    /// Returns the write options of an output with these properties.
    fn write_options(&self, write: WriteOptions) -> WriteOptions {
        WriteOptions {
            toc: write.toc && !self.strip_index,
            blob_index: write.blob_index && !self.strip_index,
            ..write
        }
    }
}

/// The result of `degrade`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The size of the output, and the number of its blobs and objects.
    pub written: Written,
    /// The number of objects that were left out.
    pub dropped: u64,
}

/// The stream of random numbers for the order of blobs.
const BLOBS: u64 = 1;
/// The stream of random numbers for the order of objects.
const OBJECTS: u64 = 2;
/// The stream of random numbers for the objects to leave out.
const DROPS: u64 = 3;

/// Writes a valid but awkward version of a file. The same input and options give the same bytes.
///
/// Reads one file, which may be unsorted or a history file, and decodes every blob. Writes one file.
///
/// # Memory
///
/// The [base memory](crate::commands#memory), and about 30 bytes for each object to leave out.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, its file system
///   has too little space, or it cannot be written ([details](crate::commands#errors)).
/// - No property of [`Defects`] is set.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    ctx.expect_phases(1);
    let defects = options.defects;
    if defects == Defects::default() {
        return Err(Error::Usage(
            "no property of the output is set: there is nothing to degrade".into(),
        ));
    }
    let file = input::open_to_copy(&options.input, &options.output.encoding(), ctx)?;
    let plan = BlobPlan::open(&file, PlanNeeds::Order, ctx)?;
    let drops = Drops::choose(&plan, defects.drop);
    let mut entries = plan.entries;
    if defects.unsort {
        let mut random = Random::from_seed_parts(&[BLOBS]);
        shuffle(&mut entries, &mut random, |entry| entry.offset);
    }
    let mut header = defects.header(&file.header);
    options.output.header.apply(&mut header);
    let output = OutputOptions {
        write: defects.write_options(options.output.write),
        ..options.output.clone()
    };
    let write = output.encoding();
    let mut sink = Sink::create(&output, header, SizeHint::default(), ctx)?;
    let (dropped, alone) = (AtomicU64::new(0), entries.len() == 1);
    let rewrite = Rewrite {
        name: "degrade",
        file: &file,
        entries,
        stays: None,
        write,
    };
    rewrite.run(
        &mut sink,
        ctx,
        || (),
        |(), blob, encoder| {
            let entry = blob.entry;
            let positions = drops.positions_to_drop(entry);
            dropped.fetch_add(positions.len() as u64, Ordering::Relaxed);
            let has_locations = entry.flags.has(BlobFlags::LOCATIONS) && defects.strip_locations;
            let is_shuffled = defects.unsort_intra || (defects.unsort && alone);
            if positions.is_empty() && !has_locations && !is_shuffled {
                return Ok((Rewritten::No, ()));
            }
            let change = BlobChange {
                dropped: positions,
                drops_locations: has_locations,
                is_shuffled,
            };
            change.apply(entry, blob.payload, encoder)?;
            Ok((Rewritten::Yes, ()))
        },
        |()| (),
    )?;
    Ok(Summary {
        written: sink.finish()?.written,
        dropped: dropped.into_inner(),
    })
}

/// The changes to one blob.
struct BlobChange {
    /// The positions, within the blob, of the objects to leave out.
    dropped: FxHashSet<u32>,
    /// Whether coordinates are removed from ways.
    drops_locations: bool,
    /// Whether the objects are put into random order.
    is_shuffled: bool,
}

impl BlobChange {
    /// Adds the objects of a changed block to an encoder.
    fn apply(
        &self,
        entry: &BlobEntry,
        payload: &[u8],
        encoder: &mut FrameEncoder,
    ) -> FormatResult<()> {
        let is_kept = |position: u32| !self.dropped.contains(&position);
        if !self.is_shuffled {
            let script = EditScript::from_kept_flags((0..entry.count).map(is_kept));
            let options = SpliceOptions {
                drop_locations: self.drops_locations,
                ..SpliceOptions::default()
            };
            let mut spliced = Vec::new();
            if splice_block(payload, &script, &[], options, &mut spliced)? {
                return encoder.add_payload(&spliced);
            }
        }
        let block = Block::parse(payload)?;
        let mut strings = SourceStrings::new(&block.strings);
        if self.drops_locations {
            encoder.drop_locations();
        }
        let mut add = |object: &RawElement<'_>| encoder.add_raw(object, &block.units, &mut strings);
        let mut cursor = block.cursor();
        let mut random = Random::from_seed_parts(&[OBJECTS, entry.number.into()]);
        match (self.is_shuffled, entry.count as usize <= PORTION) {
            (false, _) => {
                for position in 0.. {
                    let Some(object) = cursor.next()? else {
                        break;
                    };
                    if is_kept(position) {
                        add(object)?;
                    }
                }
            }
            (true, true) => {
                let (mut objects, mut position) = (Vec::with_capacity(entry.count as usize), 0);
                while let Some(object) = cursor.next()? {
                    if is_kept(position) {
                        objects.push(*object);
                    }
                    position += 1;
                }
                shuffle(&mut objects, &mut random, |object| object.key);
                objects.iter().try_for_each(add)?;
            }
            (true, false) => {
                let mut kept: Vec<u32> = (0..entry.count).filter(|at| is_kept(*at)).collect();
                shuffle(&mut kept, &mut random, |position| *position);
                visit_objects_at_positions(&block, &kept, add)?;
            }
        }
        encoder.end_block()
    }
}

/// The maximum number of objects that are held in memory at a time. They use at most 130 bytes each, 130 MB in total.
/// Blocks usually have about 8,000 objects.
const PORTION: usize = 1_000_000;

/// Calls `add` with the objects of a block at `positions`, in the order of `positions`. The block is walked once for
/// every [`PORTION`] positions, so that memory does not depend on the number of objects.
fn visit_objects_at_positions(
    block: &Block<'_>,
    positions: &[u32],
    mut add: impl FnMut(&RawElement<'_>) -> FormatResult<()>,
) -> FormatResult<()> {
    for wanted in positions.chunks(PORTION) {
        let mut places: Vec<(u32, u32)> = wanted.iter().copied().zip(0..).collect();
        places.sort_unstable();
        let mut objects = vec![None; places.len()];
        let (mut cursor, mut places) = (block.cursor(), places.into_iter().peekable());
        for position in 0.. {
            let (Some(object), Some(_)) = (cursor.next()?, places.peek()) else {
                break;
            };
            if let Some((_, place)) = places.next_if(|next| next.0 == position) {
                objects[place as usize] = Some(*object);
            }
        }
        for object in &objects {
            let fewer = || stale_index_error("it has fewer objects");
            add(object.as_ref().ok_or_else(fewer)?)?;
        }
    }
    Ok(())
}

/// Shuffles a slice. The result is never in the order of the keys.
fn shuffle<T, K: PartialOrd>(elements: &mut [T], random: &mut Random, key: impl Fn(&T) -> K) {
    for last in (1..elements.len()).rev() {
        elements.swap(last, random.draw_below(last as u64 + 1) as usize);
    }
    // If there are few elements, the shuffle may leave them in order. The elements are then reversed.
    if elements.is_sorted_by_key(key) {
        elements.reverse();
    }
}

/// The objects to leave out.
struct Drops {
    /// The indices of the objects to leave out, in ascending order. They are indices among all objects of the file.
    indices: Vec<u64>,
    /// The index of the first object of each blob among all objects of the file, by the offset of the blob.
    starts: FxHashMap<u64, u64>,
}

impl Drops {
    /// Chooses the objects to leave out. `drop` has the number of these objects and the seed of the choice.
    fn choose(plan: &BlobPlan, drop: Option<(u64, u64)>) -> Self {
        let mut total = 0;
        let starts = plan.entries.iter().map(|entry| {
            let start = total;
            total += u64::from(entry.count);
            (entry.offset, start)
        });
        let starts = starts.collect();
        let (count, seed) = drop.unwrap_or((0, 0));
        let mut random = Random::from_seed_parts(&[DROPS, seed]);
        // Floyd's algorithm draws distinct indices without retries.
        let mut chosen = FxHashSet::default();
        for last in total.saturating_sub(count)..total {
            let index = random.draw_below(last + 1);
            if !chosen.insert(index) {
                chosen.insert(last);
            }
        }
        let mut indices: Vec<u64> = chosen.into_iter().collect();
        indices.sort_unstable();
        Self { indices, starts }
    }

    /// Returns the positions, within the blob, of the objects to leave out.
    fn positions_to_drop(&self, entry: &BlobEntry) -> FxHashSet<u32> {
        let start = self.starts[&entry.offset];
        let end = start + u64::from(entry.count);
        let first = self.indices.partition_point(|index| *index < start);
        let indices = self.indices[first..].iter();
        let indices = indices.take_while(|index| **index < end);
        indices.map(|index| (index - start) as u32).collect()
    }
}
