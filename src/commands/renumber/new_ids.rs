//! The two sources of new ids for [`patch_ids`](crate::pbf::patch_ids). [`CountedObjects`] is for blobs whose objects
//! are known to be in order, [`NewIdLookup`] for all other blobs.

use super::numbering::{NumberWalk, Numbering};
use crate::osm::{KindSet, ObjectKind, id_rank};
use crate::pbf::{BlobEntry, NewIds};

/// Gives consecutive new ids to the objects of a blob in canonical order, and records the old ids.
pub(super) struct CountedObjects<'n> {
    numbering: &'n Numbering,
    /// The index of the next object among all objects of the kind.
    next: u64,
    /// The old ids of the objects.
    pub(super) old: Vec<i64>,
}

impl<'n> CountedObjects<'n> {
    /// Creates the source for the objects of a blob. `first` is the index of the blob's first object among all objects
    /// of the kind.
    pub(super) fn new(numbering: &'n Numbering, first: u64, entry: &BlobEntry) -> Self {
        Self {
            numbering,
            next: first,
            // The blob is not read yet, and the entry in a damaged table can state any number.
            old: Vec::with_capacity(entry.count.min(1 << 16) as usize),
        }
    }
}

/// Whether the old ids of the objects of a blob are in canonical order without duplicates, and agree with the entry in
/// their number and in the first and the last id.
pub(super) fn ids_match_entry(old: &[i64], entry: &BlobEntry) -> bool {
    let ends = (old.first().copied(), old.last().copied());
    old.len() == entry.count as usize
        && ends == (Some(entry.min_id), Some(entry.max_id))
        && old.is_sorted_by(|one, next| id_rank(*one) < id_rank(*next))
}

impl NewIds for CountedObjects<'_> {
    fn replace_ids(&mut self, _: ObjectKind, ids: &mut [i64]) {
        self.old.extend_from_slice(ids);
        for id in ids {
            *id = self.numbering.new_id_at(self.next);
            self.next += 1;
        }
    }

    /// Leaves the references unchanged.
    fn replace_references(&mut self, _: ObjectKind, _: &mut [i64]) {}
}

/// Looks up the new ids of the objects of the kinds in `kinds`, and of the references to these objects.
pub(super) struct NewIdLookup<'n> {
    numberings: &'n [Numbering; 3],
    walks: [NumberWalk<'n>; 3],
    /// The kinds of objects that get new ids.
    kinds: KindSet,
    /// The indices of references without a new id.
    unknown: Vec<usize>,
    /// The number of references that keep an old id which is now the new id of another object.
    pub(super) ambiguous: u64,
}

impl<'n> NewIdLookup<'n> {
    pub(super) fn new(numberings: &'n [Numbering; 3], kinds: KindSet) -> Self {
        Self {
            numberings,
            walks: numberings.each_ref().map(Numbering::walk),
            kinds,
            unknown: Vec::new(),
            ambiguous: 0,
        }
    }
}

impl NewIdLookup<'_> {
    /// Returns the entry that a blob has after its ids are replaced. Returns `None` if the blob has several kinds, or
    /// if its new ids may be in another order than its old ids.
    pub(super) fn renumbered_entry(&mut self, entry: &BlobEntry) -> Option<BlobEntry> {
        let kind = entry.kinds.single()?;
        let keeps_order = !self.kinds.contains(kind) || self.numberings[kind as usize].is_fresh;
        let mut ends = [entry.min_id, entry.max_id];
        self.replace_ids(kind, &mut ends[..1]);
        self.replace_ids(kind, &mut ends[1..]);
        let [min_id, max_id] = ends;
        keeps_order.then_some(BlobEntry {
            min_id,
            max_id,
            ..*entry
        })
    }
}

impl NewIds for NewIdLookup<'_> {
    fn replace_ids(&mut self, kind: ObjectKind, ids: &mut [i64]) {
        if self.kinds.contains(kind) {
            self.walks[kind as usize].replace_object_ids(ids);
        }
    }

    fn replace_references(&mut self, kind: ObjectKind, ids: &mut [i64]) {
        if !self.kinds.contains(kind) {
            return;
        }
        let numbering = &self.numberings[kind as usize];
        self.unknown.clear();
        numbering.replace(ids, |index| self.unknown.push(index));
        let kept = self.unknown.iter().map(|index| ids[*index]);
        self.ambiguous += kept.filter(|id| numbering.is_new_id(*id)).count() as u64;
    }
}
