//! Applies changes to blobs.

use super::blob_changes::BlobChanges;
use super::change_counts::ChangeCounts;
use super::locations::LocationUpdates;
use super::steps::ApplyStep;
use crate::engine::block_observer::{BlockObserver, CandidateRefs};
use crate::engine::sink::BlobOutcome;
use crate::error::{Error, FormatResult, Result};
use crate::file::{BlobDecoder, WriteOptions};
use crate::formats::{Change, ChangeSet};
use crate::osm::ObjectKind;
use crate::pbf::{
    BlobEntry, Block, EditOp, FrameEncoder, MovedWays, Object, Segmented, SourceStrings,
    SpliceOptions, TARGET_ELEMENTS, WayNodes, splice_block, stale_index,
};
use std::ops::Range;

/// The maximum size in bytes of a block that is spliced. A larger block is rebuilt as blocks of the usual size, because
/// splicing needs up to ten times as much memory as the block.
const MAX_SPLICED: usize = 16 << 20;

/// Executes steps. Each worker has its own editor, with an encoder and buffers.
pub(super) struct BlobEditor<'a> {
    changes: &'a ChangeSet,
    /// The locations of nodes; `None` unless the coordinates in ways are kept up to date.
    locations: Option<&'a LocationUpdates>,
    /// A search that is shown the decoded blocks of the base.
    observer: Option<&'a dyn BlockObserver>,
    write: WriteOptions,
    encoder: FrameEncoder,
    edited: Vec<u8>,
    relocated: Vec<u8>,
}

impl<'a> BlobEditor<'a> {
    pub(super) fn new(
        changes: &'a ChangeSet,
        locations: Option<&'a LocationUpdates>,
        observer: Option<&'a dyn BlockObserver>,
        write: WriteOptions,
    ) -> Self {
        let mut encoder = FrameEncoder::new(write.compression, write.blob_index);
        if locations.is_none() {
            // Drops the coordinates in the ways of change files, too, so that no way of the output has coordinates.
            encoder.drop_locations();
        }
        Self {
            changes,
            locations,
            observer,
            write,
            encoder,
            edited: Vec::new(),
            relocated: Vec::new(),
        }
    }

    fn changes_in(&self, range: &Range<usize>) -> &'a [Change] {
        &self.changes.changes()[range.clone()]
    }

    /// Executes a step. Returns the outcomes of its blobs, in file order, and the effects of its changes.
    pub(super) fn apply(
        &mut self,
        reader: &mut BlobDecoder,
        step: &ApplyStep,
    ) -> Result<(Vec<BlobOutcome>, ChangeCounts)> {
        match step {
            ApplyStep::Copy(blobs) => {
                let copies = blobs.iter().map(|entry| BlobOutcome::Copy(*entry));
                Ok((copies.collect(), ChangeCounts::default()))
            }
            ApplyStep::Insert(range) => {
                let inserted = self.insert(self.changes_in(range));
                let (outcome, counts) = inserted.map_err(Error::internal)?;
                Ok((vec![outcome], counts))
            }
            ApplyStep::Edit(blobs) => match blobs.as_slice() {
                [(entry, range)] => {
                    let changes = self.changes_in(range);
                    reader.read(entry)?.decode_in_segments(|payload, segments| {
                        self.write.check_strings(payload)?;
                        let edited = self.edit(entry, payload, segments.found(), changes);
                        edited.map(|(outcome, counts)| (vec![outcome], counts))
                    })
                }
                blobs => self.join(reader, blobs),
            },
        }
    }

    /// Encodes the objects that changes create between two blobs of the base. Deletions are only counted.
    fn insert(&mut self, changes: &'a [Change]) -> FormatResult<(BlobOutcome, ChangeCounts)> {
        let mut created = BlobChanges::between_blobs(changes, self.locations);
        for object in &created.new_objects(self.changes) {
            self.encoder.add(object)?;
        }
        Ok((BlobOutcome::Insert(self.encoder.finish()?), created.counts))
    }

    /// Joins blobs to new ones. Copies the blobs if no object of any of them changes.
    fn join(
        &mut self,
        reader: &mut BlobDecoder,
        blobs: &[(BlobEntry, Range<usize>)],
    ) -> Result<(Vec<BlobOutcome>, ChangeCounts)> {
        let (mut counts, mut is_unchanged) = (ChangeCounts::default(), true);
        for (entry, range) in blobs {
            let changes = self.changes_in(range);
            reader.decode(entry, |payload| {
                self.write.check_strings(payload)?;
                let block = Block::parse(payload)?;
                let mut blob = self.merge(entry, &block, changes)?;
                let objects = blob.new_objects(self.changes);
                self.rebuild(&block, &blob, &objects)?;
                is_unchanged &= blob.is_unchanged();
                counts.add(blob.counts);
                Ok(())
            })?;
        }
        let mut frames = self.encoder.finish().map_err(Error::internal)?;
        let outcomes = blobs.iter().map(|(entry, _)| {
            if is_unchanged {
                BlobOutcome::Copy(*entry)
            } else {
                // The new blobs take the place of the first blob. The other blobs are removed.
                BlobOutcome::Frames(std::mem::take(&mut frames))
            }
        });
        Ok((outcomes.collect(), counts))
    }

    /// Applies changes to a blob. The outcome is a copy of the blob if nothing changes, and new blobs otherwise. There
    /// are no new blobs if all objects are deleted.
    fn edit(
        &mut self,
        entry: &BlobEntry,
        payload: &[u8],
        segments: Option<Segmented<'_>>,
        changes: &'a [Change],
    ) -> FormatResult<(BlobOutcome, ChangeCounts)> {
        let block = Block::parse(payload)?;
        let mut blob = self.merge(entry, &block, changes)?;
        if blob.is_unchanged() {
            return Ok((BlobOutcome::Copy(*entry), blob.counts));
        }
        let count = blob.script.count_after();
        if count == 0 {
            return Ok((BlobOutcome::Frames(Vec::new()), blob.counts));
        }
        let objects = blob.new_objects(self.changes);
        let grown = count > 2 * TARGET_ELEMENTS && count > entry.count as usize;
        if blob.script.is_unchanged() && !self.drops_locations(entry) {
            // Only coordinates in ways have changed here. The index entry of a blob that contains only ways does not
            // depend on coordinates.
            self.edited.clear();
            blob.moved.put_block(&block, &mut self.edited)?;
            if entry.kinds.single() == Some(ObjectKind::Way) {
                self.encoder
                    .add_edited_with_entry(&self.edited, segments, entry)?
            } else {
                self.encoder.add_edited(&self.edited, segments)?
            }
        } else if !grown
            && payload.len() <= MAX_SPLICED
            && self.splice(entry, &block, &blob, &objects)?
        {
            self.encoder.add_edited(&self.edited, segments)?;
        } else {
            // Spreads the objects evenly over the blocks, because a small last block would stay small.
            let blocks = count.div_ceil(TARGET_ELEMENTS);
            self.encoder.set_max_objects(count.div_ceil(blocks));
            self.rebuild(&block, &blob, &objects)?;
        }
        let frames = self.encoder.finish()?;
        self.encoder.set_max_objects(TARGET_ELEMENTS);
        Ok((BlobOutcome::Frames(frames), blob.counts))
    }

    /// Whether coordinates are removed from the ways of a blob. The ways may have none, because the index entry need
    /// not record whether they have coordinates.
    fn drops_locations(&self, entry: &BlobEntry) -> bool {
        self.locations.is_none() && entry.may_have_locations()
    }

    /// Merges changes with the objects of a block, and finds the ways that move. Shows the block to the observer.
    fn merge(
        &self,
        entry: &BlobEntry,
        block: &Block<'_>,
        changes: &'a [Change],
    ) -> FormatResult<BlobChanges<'a>> {
        let mut blob = BlobChanges::of_block(entry, block, changes, self.locations)?;
        let observe = |refs: Option<CandidateRefs<'_>>| match self.observer {
            Some(observer) => observer.observe(self.changes, entry, block, refs),
            None => Ok(()),
        };
        match self.locations {
            Some(locations) if locations.may_move(entry) => {
                let nodes = &WayNodes::of(block)?;
                let mut moved = locations.moved_among(nodes);
                let candidates = &moved;
                observe(Some(CandidateRefs { nodes, candidates }))?;
                let dropped = &blob.dropped_ways;
                moved.retain(|node| dropped.binary_search(&nodes.way_index_of(*node)).is_err());
                let location_of = |id| locations.new_location(id);
                blob.set_moved(MovedWays::find(block, nodes, moved, location_of)?);
            }
            _ => observe(None)?,
        }
        if self.drops_locations(entry) {
            block.for_each_stored_way(|_, way| {
                blob.counts.locations_dropped += u64::from(way.has_locations()?);
                Ok(())
            })?;
        }
        Ok(blob)
    }

    /// Writes the edited block to `self.edited`. Returns `false` if the block has to be rebuilt.
    fn splice(
        &mut self,
        entry: &BlobEntry,
        block: &Block<'_>,
        blob: &BlobChanges<'_>,
        objects: &[Object<'_>],
    ) -> FormatResult<bool> {
        let moved = Some(&blob.moved).filter(|moved| !moved.is_empty());
        let mut options = SpliceOptions {
            drop_locations: self.drops_locations(entry),
            new_locations: self.locations.is_some(),
            moved,
        };
        let mut payload = block.payload();
        if let Some(moved) = moved.filter(|moved| moved.changes_units) {
            self.relocated.clear();
            moved.put_block(block, &mut self.relocated)?;
            (payload, options.moved) = (&self.relocated, None);
        }
        self.edited.clear();
        splice_block(payload, &blob.script, objects, options, &mut self.edited)
    }

    /// Adds the objects of the edited block to the encoder one by one. The encoder begins a new block whenever one is
    /// full.
    fn rebuild(
        &mut self,
        block: &Block<'_>,
        blob: &BlobChanges<'_>,
        new: &[Object<'_>],
    ) -> FormatResult<()> {
        let moved;
        let block = if blob.moved.is_empty() {
            block
        } else {
            self.relocated.clear();
            blob.moved.put_block(block, &mut self.relocated)?;
            moved = Block::parse(&self.relocated)?;
            &moved
        };
        let fewer_objects = || stale_index("it has fewer objects");
        let mut strings = SourceStrings::new(&block.strings);
        let mut objects = block.cursor();
        for step in blob.script.steps() {
            match *step {
                EditOp::Insert(index) => self.encoder.add(&new[index])?,
                EditOp::Keep(count) => {
                    for _ in 0..count {
                        let object = objects.next()?.ok_or_else(fewer_objects)?;
                        self.encoder.add_raw(&object, &block.units, &mut strings)?;
                    }
                }
                EditOp::Drop(count) => {
                    for _ in 0..count {
                        objects.next()?;
                    }
                }
            }
        }
        Ok(())
    }
}
