//! Facts about consecutive objects. The facts about adjacent sequences can be joined.

use crate::commands::object_census::ObjectCensus;
use crate::formats::{Changeset, add_changeset, add_object};
use crate::osm::{Bbox, ObjectKind};
use crate::pbf::{Object, ObjectBody, ObjectCounts};
use crc32fast::Hasher;
use serde::Serialize;

/// Facts about the objects of a file.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The bounding box of all nodes with a valid location; empty if there are none.
    pub bbox: Bbox,
    /// The number of changesets.
    pub changesets: u64,
    /// The range of ids of each kind.
    pub ids: [IdBounds; 3],
    /// The range of ids of the changesets.
    pub changeset_ids: IdBounds,
    /// The memory that osmium uses for the objects, in bytes.
    pub buffer_bytes: u64,
    census: ObjectCensus,
    sum: Option<Hasher>,
}

/// The smallest and the largest id of some objects; `None` if there are no objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IdBounds(pub Option<(i64, i64)>);

impl IdBounds {
    pub(in crate::commands) fn add(&mut self, id: i64) {
        let (min, max) = self.0.unwrap_or((id, id));
        self.0 = Some((min.min(id), max.max(id)));
    }

    fn append(&mut self, other: Self) {
        if let Some((min, max)) = other.0 {
            self.add(min);
            self.add(max);
        }
    }

    /// Returns the smallest id; 0 if there are no ids.
    pub fn min(self) -> i64 {
        self.0.map_or(0, |(min, _)| min)
    }

    /// Returns the largest id; 0 if there are no ids.
    pub fn max(self) -> i64 {
        self.0.map_or(0, |(_, max)| max)
    }
}

/// The metadata fields that objects have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MetadataFields {
    /// Whether the version is one of the fields.
    pub version: bool,
    /// Whether the timestamp is one of the fields.
    pub timestamp: bool,
    /// Whether the changeset is one of the fields.
    pub changeset: bool,
    /// Whether the name of the user is one of the fields.
    pub user: bool,
    /// Whether the id of the user is one of the fields.
    pub uid: bool,
}

impl MetadataFields {
    /// Returns the fields for which `has` returns true. For each field, calls `has` with the number of objects that
    /// have the field.
    fn of(counts: &ObjectCounts, has: impl Fn(u64) -> bool) -> Self {
        Self {
            version: has(counts.with_version),
            timestamp: has(counts.with_timestamp),
            changeset: has(counts.with_changeset),
            uid: has(counts.with_uid),
            user: has(counts.with_user),
        }
    }

    /// Returns all fields, each as its name and whether it is set.
    pub const fn named(&self) -> [(&'static str, bool); 5] {
        [
            ("version", self.version),
            ("timestamp", self.timestamp),
            ("changeset", self.changeset),
            ("uid", self.uid),
            ("user", self.user),
        ]
    }
}

impl Facts {
    /// Returns the facts about an empty sequence of objects.
    pub(super) fn new(with_checksum: bool) -> Self {
        Self {
            bbox: Bbox::EMPTY,
            changesets: 0,
            ids: [IdBounds(None); 3],
            changeset_ids: IdBounds(None),
            buffer_bytes: 0,
            census: ObjectCensus::default(),
            sum: with_checksum.then(Hasher::new),
        }
    }

    /// Returns the checksum of all objects; `None` if it was not calculated.
    pub fn checksum(&self) -> Option<u32> {
        self.sum.clone().map(Hasher::finalize)
    }

    /// Returns the number of objects by kind.
    pub fn counts(&self) -> [u64; 3] {
        self.census.by_kind.map(|counts| counts.objects)
    }

    /// Returns the number of objects and changesets.
    pub fn total(&self) -> u64 {
        self.counts().iter().sum::<u64>() + self.changesets
    }

    /// Returns the first and the last timestamp in seconds since 1970; `None` if there is no object. As in osmium, an
    /// object without a timestamp counts as having timestamp 0, and the last timestamp is at least 1.
    pub fn timestamps(&self) -> Option<(i64, i64)> {
        let all = self.census.total_counts();
        let (first, last) = all.times.unwrap_or((0, 0));
        let first = if all.with_timestamp < all.objects {
            first.min(0)
        } else {
            first
        };
        (all.objects > 0).then_some((first, last.max(1)))
    }

    /// Returns the metadata fields that all objects have.
    pub fn in_all(&self) -> MetadataFields {
        let all = self.census.total_counts();
        MetadataFields::of(&all, |count| count == all.objects)
    }

    /// Returns the metadata fields that some objects have.
    pub fn in_some(&self) -> MetadataFields {
        MetadataFields::of(&self.census.total_counts(), |count| count > 0)
    }

    /// Whether the objects are in canonical order.
    pub fn is_ordered(&self) -> bool {
        !self.census.is_unordered
    }

    /// Whether an object directly follows another version of itself.
    pub fn has_versions(&self) -> bool {
        self.census.further_versions > 0
    }

    pub(super) fn add(&mut self, object: &Object<'_>) {
        self.census.add(object);
        self.ids[object.kind() as usize].add(object.id);
        if let ObjectBody::Node {
            location: Some(location),
        } = object.body
            && location.is_on_earth()
        {
            self.bbox.add(location.lat_e7(), location.lon_e7());
        }
        self.buffer_bytes += buffer_bytes(object);
        if let Some(sum) = &mut self.sum {
            add_object(sum, object);
        }
    }

    pub(super) fn add_changeset(&mut self, changeset: &Changeset) {
        self.changesets += 1;
        self.changeset_ids.add(changeset.id);
        if let Some(sum) = &mut self.sum {
            add_changeset(sum, changeset);
        }
    }

    /// Appends the facts about the objects that directly follow the objects so far.
    pub(super) fn append(&mut self, next: &Self) {
        self.census.merge(&next.census);
        self.bbox = self.bbox.union(&next.bbox);
        for kind in ObjectKind::ALL {
            self.ids[kind as usize].append(next.ids[kind as usize]);
        }
        self.buffer_bytes += next.buffer_bytes;
        if let (Some(sum), Some(more)) = (&mut self.sum, &next.sum) {
            sum.combine(more);
        }
    }
}

/// Returns the size in bytes that an object has in the buffers of osmium. The sizes of the parts were measured; each
/// part is padded to a multiple of 8 bytes.
fn buffer_bytes(object: &Object<'_>) -> u64 {
    let padded = |bytes: usize| bytes.next_multiple_of(8) as u64;
    let fixed = match object.kind() {
        ObjectKind::Node => 40,
        ObjectKind::Way | ObjectKind::Relation => 32,
    };
    let list = |bytes: usize| if bytes == 0 { 0 } else { 8 + padded(bytes) };
    let user = padded(3 + object.info.user.map_or(0, str::len));
    let tags = object.tags.iter();
    let tags: usize = tags.map(|(key, value)| key.len() + value.len() + 2).sum();
    let body = match &object.body {
        ObjectBody::Node { .. } => 0,
        ObjectBody::Way { refs, .. } => list(refs.len() * 16),
        ObjectBody::Relation { members } => {
            let members = members.iter();
            let members = members.map(|member| 16 + (member.role.len() + 1).next_multiple_of(8));
            list(members.sum())
        }
    };
    fixed + user + list(tags) + body
}
