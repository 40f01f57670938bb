//! Assigns new ids to nodes and ways that are known to be in order, while they are written. The new ids follow from the
//! positions of the objects.

use super::new_ids::{CountedObjects, ids_match_entry};
use super::numbering::{IdList, Numbering};
use super::{Orphans, Renumbering};
use crate::engine::rewrite::DecodedBlob;
use crate::engine::sink::{BlobOutcome, Sink};
use crate::error::{FormatError, FormatResult, Result};
use crate::file::{BlobPass, WriteOptions};
use crate::index::{IdBatch, RankSetBuilder};
use crate::osm::{KindSet, ObjectKind};
use crate::pbf::{
    BlobEntry, BlobFlags, BlockWayIds, EncodedFrame, FrameEncoder, NewIds, PART_LEN, patch_ids,
    stale_index_error,
};
use crate::runtime::{TicketLock, Turn};

impl Renumbering<'_> {
    /// Removes the blobs of a kind from the plan and returns them, if the new id of each object follows from the
    /// position of the object alone. These blobs have to be read only once. The blobs must be the next to be written,
    /// all objects of the kind must be known to be in order, and the map must not have an id of the kind yet.
    /// Otherwise, returns `None`.
    pub(super) fn take_ordered_blobs(&mut self, kind: ObjectKind) -> Option<Vec<BlobEntry>> {
        let entries = &mut self.plan.entries;
        let is_kind = |entry: &&BlobEntry| entry.kinds == KindSet::of(kind);
        let count = entries.iter().take_while(is_kind).count();
        let (blobs, rest) = entries.split_at(count);
        let has = |entry: &BlobEntry, flag| entry.flags.has(flag);
        let is_known =
            |entry: &BlobEntry| has(entry, BlobFlags::UNIQUE_IDS) && has(entry, BlobFlags::HASHED);
        let is_fit = self.options.kinds.contains(kind)
            && self.numberings[kind as usize].len() == 0
            && blobs.iter().all(is_known)
            && blobs.is_sorted_by(|one, next| one.last_sort_key() < next.first_sort_key())
            && !rest.iter().any(|entry| entry.kinds.contains(kind));
        if !is_fit || blobs.is_empty() {
            return None;
        }
        let (blobs, rest) = (blobs.to_vec(), rest.to_vec());
        *entries = rest;
        Some(blobs)
    }

    /// Assigns new ids to nodes or ways by their positions, and writes them. Ways may refer to nodes that are not in
    /// the file. With [`Orphans::Assign`], these nodes also get new ids, in the order of the references. Returns the
    /// number of ambiguous references, as in [`Summary::ambiguous`](super::Summary::ambiguous).
    pub(super) fn write_in_order(
        &mut self,
        kind: ObjectKind,
        blobs: Vec<BlobEntry>,
        sink: &mut Sink,
    ) -> Result<u64> {
        let numbering = &self.numberings[kind as usize];
        let mut first = 0;
        let positions = (0..).zip(blobs).map(|(number, entry)| {
            let start = first;
            first += u64::from(entry.count);
            (entry, (number, start))
        });
        let items: Vec<_> = positions.collect();
        numbering.check_new_ids_fit(first)?;
        let nodes = &self.numberings[ObjectKind::Node as usize];
        let pass = OrderedPass {
            numbering,
            nodes,
            replaces_nodes: kind == ObjectKind::Way
                && self.options.kinds.contains(ObjectKind::Node),
            assigns: self.options.orphans == Orphans::Assign,
            missing: TicketLock::new(MissingNodes::new(nodes)),
        };
        let write = self.options.output.encoding();
        let name = match kind {
            ObjectKind::Node => "renumber nodes",
            ObjectKind::Way | ObjectKind::Relation => "renumber ways",
        };
        let (mut all, mut ambiguous) = (RankSetBuilder::default(), 0);
        let input = &self.file.input;
        BlobPass::new(name, input, self.ctx)
            .with_memory_factor(4)
            .run(
                items,
                || NumberingWorker::new(write),
                |reader, worker, (entry, (number, start))| {
                    let turn = pass.turn(number);
                    DecodedBlob::decode(reader, &entry, write, |blob| {
                        pass.renumber(worker, blob, start, turn)
                    })
                },
                |(frames, old, more)| {
                    all.push_batch(&old);
                    ambiguous += more;
                    sink.add(input, BlobOutcome::Frames(frames))
                },
            )?;
        if kind == ObjectKind::Way {
            self.orphans.ids[ObjectKind::Node as usize] = pass.missing.into_inner().ids;
        }
        self.numberings[kind as usize].assign_first_ids(all.finish());
        Ok(ambiguous)
    }
}

/// A pass over the blobs with the objects of one kind.
struct OrderedPass<'n> {
    /// The map of ids for the kind of the objects in the blobs.
    numbering: &'n Numbering,
    nodes: &'n Numbering,
    /// Whether references to nodes get new ids.
    replaces_nodes: bool,
    /// Whether nodes that are not in the file get new ids, too.
    assigns: bool,
    missing: TicketLock<MissingNodes>,
}

/// The state of a thread of the pass.
struct NumberingWorker {
    encoder: FrameEncoder,
    patched: Vec<u8>,
    ways: Ways,
}

impl NumberingWorker {
    fn new(write: WriteOptions) -> Self {
        Self {
            encoder: FrameEncoder::new(write.compression, write.blob_index),
            patched: Vec::new(),
            ways: Ways::default(),
        }
    }
}

impl OrderedPass<'_> {
    /// Returns the turn of the blob with index `number` to assign new ids to missing nodes; `None` if missing nodes get
    /// no new ids.
    fn turn(&self, number: u64) -> Option<Turn<'_, MissingNodes>> {
        (self.replaces_nodes && self.assigns).then(|| self.missing.turn(number))
    }

    /// Encodes a blob with new ids. `start` is the index of the blob's first object among all objects of the kind.
    /// Returns the frames, the old ids of the objects, and the number of ambiguous references.
    fn renumber(
        &self,
        worker: &mut NumberingWorker,
        blob: &DecodedBlob<'_>,
        start: u64,
        turn: Option<Turn<'_, MissingNodes>>,
    ) -> FormatResult<(Vec<EncodedFrame>, IdBatch, u64)> {
        if !self.replaces_nodes {
            let mut ids = CountedObjects::new(self.numbering, start, blob.entry);
            worker.patched.clear();
            patch_ids(blob.payload, &mut ids, &mut worker.patched)?;
            return self.encode(worker, blob, start, ids.old, 0);
        }
        if blob.payload.len() > PART_LEN {
            return self.renumber_one_by_one(worker, blob, start, turn);
        }
        let nodes = self.nodes;
        worker.ways.read_block(blob.payload, nodes)?;
        let ambiguous = match turn {
            Some(turn) => {
                // `take` returns `None` only after an error in an earlier blob. That error is reported instead of
                // `failed`.
                let failed = FormatError::new("a blob before this one is damaged");
                turn.take(|missing| worker.ways.assign_ids_to_missing_nodes(missing, nodes))
                    .ok_or(failed)?;
                0
            }
            None => worker.ways.count_ambiguous(nodes),
        };
        let mut ids = CountedObjects::new(self.numbering, start, blob.entry);
        ids.replace_ids(ObjectKind::Way, &mut worker.ways.ids.ways);
        worker.patched.clear();
        worker.ways.ids.patch(blob.payload, &mut worker.patched)?;
        self.encode(worker, blob, start, ids.old, ambiguous)
    }

    /// Does the same as [`renumber`](Self::renumber) for a large blob of ways. To save memory, replaces references way
    /// by way instead of looking up all of them in advance.
    fn renumber_one_by_one(
        &self,
        worker: &mut NumberingWorker,
        blob: &DecodedBlob<'_>,
        start: u64,
        turn: Option<Turn<'_, MissingNodes>>,
    ) -> FormatResult<(Vec<EncodedFrame>, IdBatch, u64)> {
        worker.patched.clear();
        let mut patch = |missing: Option<&mut MissingNodes>| {
            let mut ids = OneByOne {
                objects: CountedObjects::new(self.numbering, start, blob.entry),
                nodes: self.nodes,
                missing,
                unknown: Vec::new(),
                ambiguous: 0,
            };
            patch_ids(blob.payload, &mut ids, &mut worker.patched)?;
            Ok::<_, FormatError>((ids.objects.old, ids.ambiguous))
        };
        let (old, ambiguous) = match turn {
            Some(turn) => turn
                .take(|missing| patch(Some(missing)))
                .ok_or(FormatError::new("a blob before this one is damaged"))??,
            None => patch(None)?,
        };
        self.encode(worker, blob, start, old, ambiguous)
    }

    /// Encodes a blob from `worker.patched`, which already has the new ids. `old` has the old ids of the blob's
    /// objects.
    fn encode(
        &self,
        worker: &mut NumberingWorker,
        blob: &DecodedBlob<'_>,
        start: u64,
        old: Vec<i64>,
        ambiguous: u64,
    ) -> FormatResult<(Vec<EncodedFrame>, IdBatch, u64)> {
        let entry = blob.entry;
        if !ids_match_entry(&old, entry) {
            return Err(stale_index_error("ids or their order differ"));
        }
        let last = (start + u64::from(entry.count)).saturating_sub(1);
        let entry = BlobEntry {
            min_id: self.numbering.new_id_at(start),
            max_id: self.numbering.new_id_at(last),
            ..*entry
        };
        worker
            .encoder
            .add_edited_payload_with_entry(&worker.patched, blob.segments, &entry)?;
        Ok((worker.encoder.finish()?, old.as_slice().into(), ambiguous))
    }
}

/// Assigns new ids to the ways of a blob, and replaces their references to nodes one way at a time.
struct OneByOne<'n, 'm> {
    objects: CountedObjects<'n>,
    nodes: &'n Numbering,
    /// The nodes that are not in the file; `None` if they get no new ids.
    missing: Option<&'m mut MissingNodes>,
    /// The indices of references to nodes without a new id.
    unknown: Vec<usize>,
    ambiguous: u64,
}

impl NewIds for OneByOne<'_, '_> {
    fn replace_ids(&mut self, kind: ObjectKind, ids: &mut [i64]) {
        self.objects.replace_ids(kind, ids);
    }

    fn replace_references(&mut self, _: ObjectKind, ids: &mut [i64]) {
        self.unknown.clear();
        self.nodes.replace(ids, |index| self.unknown.push(index));
        for index in &self.unknown {
            let id = &mut ids[*index];
            match &mut self.missing {
                Some(missing) => *id = self.nodes.new_id_at(missing.index_or_append(*id)),
                None => self.ambiguous += u64::from(self.nodes.is_new_id(*id)),
            }
        }
    }
}

/// The nodes that ways refer to but that are not in the file.
#[derive(Debug, Default)]
struct MissingNodes {
    /// The index of the first missing node in the map of node ids.
    first: u64,
    /// The old ids of the missing nodes, in the order of the first references to them.
    ids: IdList,
}

impl MissingNodes {
    /// Creates an empty list. The indices of its nodes will follow the indices in `known`.
    fn new(known: &Numbering) -> Self {
        Self {
            first: known.len(),
            ..Self::default()
        }
    }

    /// Returns the index of a missing node in the map of node ids. Appends the node to the list if it is new.
    fn index_or_append(&mut self, id: i64) -> u64 {
        self.first + self.ids.index_or_append(id)
    }
}

/// The ways of a block, and their references to nodes.
#[derive(Default)]
struct Ways {
    /// The old ids of the ways, and the new ids of the nodes. A node without a new id has its old id.
    ids: BlockWayIds,
    /// The index in `ids.nodes` of each reference to a node without a new id.
    unknown: Vec<usize>,
}

impl Ways {
    /// Replaces the contents with the ways of a block and the new ids of their nodes.
    fn read_block(&mut self, payload: &[u8], nodes: &Numbering) -> FormatResult<()> {
        self.ids.read(payload)?;
        self.unknown.clear();
        nodes.replace(&mut self.ids.nodes, |index| self.unknown.push(index));
        Ok(())
    }

    /// Assigns new ids to the nodes that have none, and replaces their old ids.
    fn assign_ids_to_missing_nodes(&mut self, missing: &mut MissingNodes, nodes: &Numbering) {
        for index in &self.unknown {
            let id = &mut self.ids.nodes[*index];
            *id = nodes.new_id_at(missing.index_or_append(*id));
        }
    }

    /// Counts the ambiguous references. An ambiguous reference keeps the old id of a node without a new id, although
    /// the same id is now the new id of another node.
    fn count_ambiguous(&self, nodes: &Numbering) -> u64 {
        let kept = self.unknown.iter().map(|index| self.ids.nodes[*index]);
        kept.filter(|id| nodes.is_new_id(*id)).count() as u64
    }
}
