//! Sets of objects of any kind.

use super::id_set::IdSet;
use crate::osm::{KindSet, ObjectId, ObjectKind};
use crate::pbf::BlobEntry;

/// A set of objects: one [`IdSet`] per kind.
#[derive(Debug, Default, Clone)]
pub struct IdSets([IdSet; 3]);

impl IdSets {
    /// Returns the set of the ids of one kind.
    pub const fn of(&self, kind: ObjectKind) -> &IdSet {
        &self.0[kind as usize]
    }

    /// Returns a mutable reference to the set of the ids of one kind.
    pub const fn of_mut(&mut self, kind: ObjectKind) -> &mut IdSet {
        &mut self.0[kind as usize]
    }

    /// Adds an object. Returns whether the object was absent before.
    pub fn insert(&mut self, kind: ObjectKind, id: i64) -> bool {
        self.of_mut(kind).insert(id)
    }

    /// Whether the object is in the set.
    pub fn contains(&self, kind: ObjectKind, id: i64) -> bool {
        self.of(kind).contains(id)
    }

    /// Returns the number of objects in the set.
    pub fn len(&self) -> u64 {
        self.0.iter().map(IdSet::len).sum()
    }

    /// Whether the set has no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the kinds with at least one object in the set.
    pub fn kinds(&self) -> KindSet {
        let found = |kind: &ObjectKind| !self.of(*kind).is_empty();
        ObjectKind::ALL.into_iter().filter(found).collect()
    }

    /// Returns the objects in canonical order.
    pub fn ids(&self) -> impl Iterator<Item = ObjectId> + '_ {
        ObjectKind::ALL
            .into_iter()
            .flat_map(|kind| self.of(kind).ids().map(move |id| ObjectId { kind, id }))
    }

    /// Whether the blob of `entry` may contain an object of the set. The id range of the blob is compared only if the
    /// blob has objects of a single kind.
    pub fn may_meet(&self, entry: &BlobEntry) -> bool {
        match entry.kinds.single() {
            Some(kind) => self.of(kind).may_meet(entry.min_id, entry.max_id),
            None => {
                let wanted = self.kinds().intersection(entry.kinds);
                !wanted.is_empty()
            }
        }
    }
}

impl Extend<ObjectId> for IdSets {
    fn extend<T: IntoIterator<Item = ObjectId>>(&mut self, ids: T) {
        for id in ids {
            self.insert(id.kind, id.id);
        }
    }
}

impl FromIterator<ObjectId> for IdSets {
    fn from_iter<T: IntoIterator<Item = ObjectId>>(ids: T) -> Self {
        let mut sets = Self::default();
        sets.extend(ids);
        sets
    }
}
