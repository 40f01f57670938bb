//! Statistics of the metadata and the sizes of objects.

use crate::osm::{ObjectKind, TypeThenId, format_timestamp};
use crate::pbf::{BlobEntry, BlobFlags, ObjectCounts, TocSummary};
use serde::Serialize;

/// A count for each kind of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ByKind {
    /// The count of nodes.
    pub nodes: u64,
    /// The count of ways.
    pub ways: u64,
    /// The count of relations.
    pub relations: u64,
}

impl ByKind {
    pub(super) fn add(&mut self, kind: ObjectKind, more: u64) {
        match kind {
            ObjectKind::Node => self.nodes += more,
            ObjectKind::Way => self.ways += more,
            ObjectKind::Relation => self.relations += more,
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.nodes += other.nodes;
        self.ways += other.ways;
        self.relations += other.relations;
    }

    /// The sum over all kinds.
    pub const fn total(&self) -> u64 {
        self.nodes + self.ways + self.relations
    }
}

/// Statistics of the metadata and the sizes of objects.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Extended {
    /// The number of objects.
    pub objects: ByKind,
    /// The earliest timestamp; `None` if no object has one.
    pub first_timestamp: Option<String>,
    /// The latest timestamp; `None` if no object has one.
    pub last_timestamp: Option<String>,
    /// The number of objects with a version.
    pub with_version: u64,
    /// The number of objects with a timestamp.
    pub with_timestamp: u64,
    /// The number of objects with a changeset.
    pub with_changeset: u64,
    /// The number of objects with a user id.
    pub with_uid: u64,
    /// The number of objects with a user name.
    pub with_user: u64,
    /// The number of deleted versions.
    pub deleted: u64,
    /// The number of objects that directly follow another version of the same object; `None` for an unsorted file, in
    /// which the versions of an object need not be adjacent.
    pub further_versions: Option<u64>,
    /// The number of objects with tags.
    pub tagged: ByKind,
    /// The number of tags, by the kind of the objects that have them.
    pub tags: ByKind,
    /// The number of references of ways to nodes.
    pub refs: u64,
    /// The maximum number of nodes in a way.
    pub most_refs: u64,
    /// The number of members of relations.
    pub members: u64,
    /// The maximum number of members in a relation.
    pub most_members: u64,
    /// The same number as `further_versions`, but also counted for an unsorted file.
    #[serde(skip)]
    pub(super) versions_in_a_row: u64,
    /// The earliest and the latest timestamp, in seconds since 1970.
    #[serde(skip)]
    times: Option<(i64, i64)>,
    /// The first and the last key of the last blob whose objects are in order.
    #[serde(skip)]
    ends: Option<(TypeThenId, TypeThenId)>,
}

impl Extended {
    /// The statistics of a whole file.
    pub(super) fn of_summary(summary: &TocSummary) -> Self {
        let mut extended = Self {
            versions_in_a_row: summary.further_versions,
            ..Self::default()
        };
        extended.add_counts(&summary.kinds.map(|totals| totals.counts));
        extended.finish(summary.sorted == Some(false));
        extended
    }

    /// Adds the objects of a blob whose entry has statistics.
    pub(super) fn add_entry(&mut self, entry: &BlobEntry) {
        if let (Some(kind), Some(statistics)) = (entry.kinds.single(), &entry.statistics) {
            let mut counts = [ObjectCounts::default(); 3];
            counts[kind as usize] = statistics.counts(entry.count);
            self.add(entry, &counts, statistics.further_versions.into());
        }
    }

    /// Adds the objects of a blob: the counts for nodes, ways and relations, and the number of objects that directly
    /// follow another version of the same object.
    pub(super) fn add(&mut self, entry: &BlobEntry, by_kind: &[ObjectCounts; 3], repeated: u64) {
        self.add_counts(by_kind);
        let ends = entry.first_key().zip(entry.last_key());
        self.ends = ends.filter(|_| entry.flags.has(BlobFlags::SORTED));
        self.versions_in_a_row += repeated;
    }

    fn add_counts(&mut self, by_kind: &[ObjectCounts; 3]) {
        let [_, ways, relations] = by_kind;
        self.refs += ways.references;
        self.most_refs = self.most_refs.max(ways.most_references);
        self.members += relations.references;
        self.most_members = self.most_members.max(relations.most_references);
        for (kind, facts) in ObjectKind::ALL.into_iter().zip(by_kind) {
            self.objects.add(kind, facts.objects);
            self.tags.add(kind, facts.tags);
            self.tagged.add(kind, facts.tagged);
            self.with_version += facts.with_version;
            self.with_timestamp += facts.with_timestamp;
            self.with_changeset += facts.with_changeset;
            self.with_uid += facts.with_uid;
            self.with_user += facts.with_user;
            self.deleted += facts.deleted;
            if let Some((first, last)) = facts.times {
                self.add_times(first);
                self.add_times(last);
            }
        }
    }

    fn add_times(&mut self, seconds: i64) {
        let (first, last) = self.times.unwrap_or((seconds, seconds));
        self.times = Some((first.min(seconds), last.max(seconds)));
    }

    /// Adds the statistics of the next blob in file order.
    pub(super) fn merge(&mut self, other: &Self) {
        if let Some((first, last)) = other.times {
            self.add_times(first);
            self.add_times(last);
        }
        let goes_on = self
            .ends
            .zip(other.ends)
            .is_some_and(|(one, two)| one.1 == two.0);
        self.versions_in_a_row += u64::from(goes_on);
        self.ends = other.ends.or(self.ends);
        let sums = [
            (&mut self.with_version, other.with_version),
            (&mut self.with_timestamp, other.with_timestamp),
            (&mut self.with_changeset, other.with_changeset),
            (&mut self.with_uid, other.with_uid),
            (&mut self.with_user, other.with_user),
            (&mut self.deleted, other.deleted),
            (&mut self.versions_in_a_row, other.versions_in_a_row),
            (&mut self.refs, other.refs),
            (&mut self.members, other.members),
        ];
        sums.into_iter().for_each(|(sum, more)| *sum += more);
        self.objects.merge(&other.objects);
        self.tagged.merge(&other.tagged);
        self.tags.merge(&other.tags);
        self.most_refs = self.most_refs.max(other.most_refs);
        self.most_members = self.most_members.max(other.most_members);
    }

    /// Computes the fields that depend on all blobs. `is_unsorted` is whether the file is known to be unsorted.
    pub(super) fn finish(&mut self, is_unsorted: bool) {
        self.further_versions = (!is_unsorted).then_some(self.versions_in_a_row);
        self.first_timestamp = self.times.map(|(first, _)| format_timestamp(first));
        self.last_timestamp = self.times.map(|(_, last)| format_timestamp(last));
    }
}
