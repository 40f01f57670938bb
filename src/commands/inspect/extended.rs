//! Statistics of the metadata and the sizes of objects.

use super::top::first_id_with_references;
use crate::commands::object_census::ObjectCensus;
use crate::error::Result;
use crate::file::PlannedFile;
use crate::osm::{ObjectKind, format_timestamp};
use crate::pbf::ObjectCounts;
use serde::Serialize;

/// A count for each kind of object.
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
    /// Returns the sum over all kinds.
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
    /// The number of references from ways to nodes.
    pub refs: u64,
    /// The maximum number of nodes in a way.
    pub most_refs: u64,
    /// The id of the first way with `most_refs` nodes; `None` if [`Options::maxima`](super::Options::maxima) is not
    /// set, or no way has nodes.
    pub most_refs_way: Option<i64>,
    /// The number of members of relations.
    pub members: u64,
    /// The maximum number of members in a relation.
    pub most_members: u64,
    /// The id of the first relation with `most_members` members; `None` if [`Options::maxima`](super::Options::maxima)
    /// is not set, or no relation has members.
    pub most_members_relation: Option<i64>,
    /// The same number as `further_versions`, but also counted for an unsorted file.
    #[serde(skip)]
    pub(super) versions_in_a_row: u64,
}

impl Extended {
    /// Computes the statistics of a file. `is_unsorted` is set if the file is known to be unsorted.
    pub(super) fn new(census: &ObjectCensus, is_unsorted: bool) -> Self {
        let all = census.total_counts();
        let by_kind = |count: fn(&ObjectCounts) -> u64| {
            let [nodes, ways, relations] = census.by_kind.each_ref().map(count);
            ByKind {
                nodes,
                ways,
                relations,
            }
        };
        let [_, ways, relations] = &census.by_kind;
        Self {
            objects: by_kind(|counts| counts.objects),
            first_timestamp: all.times.map(|(first, _)| format_timestamp(first)),
            last_timestamp: all.times.map(|(_, last)| format_timestamp(last)),
            with_version: all.with_version,
            with_timestamp: all.with_timestamp,
            with_changeset: all.with_changeset,
            with_uid: all.with_uid,
            with_user: all.with_user,
            deleted: all.deleted,
            further_versions: (!is_unsorted).then_some(census.further_versions),
            tagged: by_kind(|counts| counts.tagged),
            tags: by_kind(|counts| counts.tags),
            refs: ways.references,
            most_refs: ways.most_references,
            most_refs_way: None,
            members: relations.references,
            most_members: relations.most_references,
            most_members_relation: None,
            versions_in_a_row: census.further_versions,
        }
    }

    /// Finds the first way with the most nodes and the first relation with the most members. Skips blobs that,
    /// according to their statistics, contain neither.
    pub(super) fn find_largest_objects(&mut self, source: PlannedFile<'_>) -> Result<()> {
        let first = |kind, most| first_id_with_references(source, (kind, most));
        self.most_refs_way = first(ObjectKind::Way, self.most_refs)?;
        self.most_members_relation = first(ObjectKind::Relation, self.most_members)?;
        Ok(())
    }
}
