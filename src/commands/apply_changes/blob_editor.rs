//! Applies changes to blobs.

use super::blob_changes::BlobChanges;
use super::change_counts::ChangeCounts;
use super::locations::LocationUpdates;
use super::steps::ApplyStep;
use crate::engine::block_observer::{BlockObserver, CandidateRefs};
use crate::engine::sink::BlobOutcome;
use crate::error::{Error, FormatResult, Result};
use crate::file::{BlobDecoder, WriteOptions};
use crate::formats::ChangeSet;
use crate::osm::ObjectKind;
use crate::pbf::{
    BlobEntry, Block, EditOp, EncodedFrame, FrameEncoder, MovedWays, Segmented, SourceStrings,
    SpliceOptions, TARGET_ELEMENTS, WayNodes, splice_block, stale_index_error,
};
use std::ops::Range;

/// The maximum size in bytes of a block that is spliced. A larger block is rebuilt as blocks of the usual size, because
/// splicing needs up to ten times as much memory as the block.
const MAX_SPLICED: usize = 16 << 20;

/// The executor of the steps of one worker, with an encoder and buffers.
pub(super) struct BlobEditor<'a> {
    changes: &'a ChangeSet,
    /// The locations of nodes; `None` unless the coordinates in ways are kept up to date.
    locations: Option<&'a LocationUpdates>,
    /// A search that observes the decoded blocks of the base.
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
            // The coordinates in the ways of change files are dropped, too, so that no way of the output has
            // coordinates.
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

    /// Executes a step. Returns the outcomes of its blobs, in file order, and the effects of its changes.
    ///
    /// Decoded blobs are copied if none of their objects change. A blob whose objects are all deleted is left out. If
    /// the step joins several blobs, the new blobs take the place of the first of the joined blobs.
    pub(super) fn apply(
        &mut self,
        reader: &mut BlobDecoder,
        step: &ApplyStep,
    ) -> Result<(Vec<BlobOutcome>, ChangeCounts)> {
        let blobs = match step {
            ApplyStep::Copy(blobs) => {
                let copies = blobs.iter().map(|entry| BlobOutcome::Copy(*entry));
                return Ok((copies.collect(), ChangeCounts::default()));
            }
            ApplyStep::Insert(range) => {
                let (frames, counts) = self.encode_inserted(range).map_err(Error::internal)?;
                return Ok((vec![BlobOutcome::Insert(frames)], counts));
            }
            ApplyStep::Edit(blobs) => blobs,
        };
        let (mut counts, mut is_unchanged) = (ChangeCounts::default(), true);
        for (entry, range) in blobs {
            reader
                .read(entry)?
                .decode_in_segments(|payload, segments| {
                    self.write.check_strings(payload)?;
                    let block = Block::parse(payload)?;
                    let (changes, locations) = (self.changes, self.locations);
                    let mut blob = BlobChanges::of_block(entry, &block, changes, range, locations)?;
                    self.find_moved_ways(entry, &block, &mut blob)?;
                    is_unchanged &= blob.is_unchanged();
                    if blobs.len() > 1 {
                        self.rebuild(&block, &blob)?;
                    } else if !is_unchanged
                        && !self.splice(entry, &block, &blob, segments.into_segmented())?
                    {
                        // Spreads the objects evenly over the blocks, because a small last block would stay small.
                        let count = blob.script.edited_object_count();
                        let blocks = count.div_ceil(TARGET_ELEMENTS);
                        self.encoder.set_max_objects(count.div_ceil(blocks));
                        self.rebuild(&block, &blob)?;
                        self.encoder.end_block()?;
                        self.encoder.set_max_objects(TARGET_ELEMENTS);
                    }
                    counts.add(blob.counts);
                    Ok(())
                })?;
        }
        let mut frames = self.encoder.finish().map_err(Error::internal)?;
        let outcomes = blobs.iter().map(|(entry, _)| {
            if is_unchanged {
                BlobOutcome::Copy(*entry)
            } else {
                BlobOutcome::Frames(std::mem::take(&mut frames))
            }
        });
        Ok((outcomes.collect(), counts))
    }

    /// Encodes the objects that changes create between two blobs of the base. Deletions are only counted.
    fn encode_inserted(
        &mut self,
        range: &Range<usize>,
    ) -> FormatResult<(Vec<EncodedFrame>, ChangeCounts)> {
        let (entry, block) = (BlobEntry::default(), Block::parse(&[])?);
        let (changes, locations) = (self.changes, self.locations);
        let created = BlobChanges::of_block(&entry, &block, changes, range, locations)?;
        self.rebuild(&block, &created)?;
        Ok((self.encoder.finish()?, created.counts))
    }

    /// Whether coordinates are removed from the ways of a blob. If the entry of the blob does not say whether its ways
    /// have coordinates, they are assumed to have coordinates.
    fn drops_locations(&self, entry: &BlobEntry) -> bool {
        self.locations.is_none() && entry.may_have_locations()
    }

    /// Passes a block to the observer. Stores in `blob` the ways of the block whose nodes move. Also counts the ways
    /// that lose their locations.
    fn find_moved_ways(
        &self,
        entry: &BlobEntry,
        block: &Block<'_>,
        blob: &mut BlobChanges<'_>,
    ) -> FormatResult<()> {
        let observe = |refs: Option<CandidateRefs<'_>>| match self.observer {
            Some(observer) => observer.observe(self.changes, entry, block, refs),
            None => Ok(()),
        };
        match self.locations {
            Some(locations) if locations.may_have_moved_ways(entry) => {
                let nodes = &WayNodes::from_block(block)?;
                let mut moved = locations.changed_node_indices(nodes);
                let candidates = &moved;
                observe(Some(CandidateRefs { nodes, candidates }))?;
                let dropped = &blob.dropped_ways;
                moved.retain(|node| dropped.binary_search(&nodes.way_index_of(*node)).is_err());
                let location_of = |id| locations.new_location(id);
                blob.moved = MovedWays::find(block, nodes, moved, location_of)?;
                let counts = &mut blob.counts.locations;
                counts.ways_moved += blob.moved.count;
                counts.missing_references += blob.moved.lost;
                counts.incomplete_ways += blob.moved.incomplete;
            }
            _ => observe(None)?,
        }
        if self.drops_locations(entry) {
            block.for_each_stored_way(|_, way| {
                blob.counts.locations_dropped += u64::from(way.has_locations()?);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Encodes the edited block. Copies the unchanged parts of the block. `old` is the blob before the edit. Its
    /// compressed segments that stay the same are copied, too. Returns `false` if the block has to be rebuilt.
    fn splice(
        &mut self,
        entry: &BlobEntry,
        block: &Block<'_>,
        blob: &BlobChanges<'_>,
        old: Option<Segmented<'_>>,
    ) -> FormatResult<bool> {
        let count = blob.script.edited_object_count();
        if count == 0 {
            return Ok(true);
        }
        self.edited.clear();
        if blob.script.is_unchanged() && !self.drops_locations(entry) {
            // Only coordinates in ways have changed here. The index entry of a blob that contains only ways does not
            // depend on coordinates.
            blob.moved.put_block(block, &mut self.edited)?;
            if entry.kinds.single() == Some(ObjectKind::Way) {
                self.encoder
                    .add_edited_payload_with_entry(&self.edited, old, entry)?
            } else {
                self.encoder.add_edited_payload(&self.edited, old)?
            }
            return Ok(true);
        }
        let mut payload = block.payload();
        let grown = count > 2 * TARGET_ELEMENTS && count > entry.count as usize;
        if grown || payload.len() > MAX_SPLICED {
            return Ok(false);
        }
        let moved = Some(&blob.moved).filter(|moved| !moved.is_empty());
        let mut options = SpliceOptions {
            drop_locations: self.drops_locations(entry),
            new_locations: self.locations.is_some(),
            moved,
        };
        if let Some(moved) = moved.filter(|moved| moved.changes_units) {
            self.relocated.clear();
            moved.put_block(block, &mut self.relocated)?;
            (payload, options.moved) = (&self.relocated, None);
        }
        let (script, new) = (&blob.script, &blob.inserted);
        let is_spliced = splice_block(payload, script, new, options, &mut self.edited)?;
        if is_spliced {
            self.encoder.add_edited_payload(&self.edited, old)?;
        }
        Ok(is_spliced)
    }

    /// Adds the objects of the edited block to the encoder one by one. The encoder begins a new block whenever the
    /// current block is full.
    fn rebuild(&mut self, block: &Block<'_>, blob: &BlobChanges<'_>) -> FormatResult<()> {
        let moved;
        let block = if blob.moved.is_empty() {
            block
        } else {
            self.relocated.clear();
            blob.moved.put_block(block, &mut self.relocated)?;
            moved = Block::parse(&self.relocated)?;
            &moved
        };
        let fewer_objects = || stale_index_error("it has fewer objects");
        let mut strings = SourceStrings::new(&block.strings);
        let mut objects = block.cursor();
        for step in blob.script.steps() {
            match *step {
                EditOp::Insert(index) => self.encoder.add(&blob.inserted[index])?,
                EditOp::Keep(count) => {
                    for _ in 0..count {
                        let object = objects.next()?.ok_or_else(fewer_objects)?;
                        self.encoder.add_raw(object, &block.units, &mut strings)?;
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
