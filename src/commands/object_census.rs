//! Counts of the objects of a file, which `inspect` and `fileinfo` report.

use crate::osm::TypeThenId;
use crate::pbf::{BlobEntry, BlobFlags, Object, ObjectBody, ObjectCounts, TocSummary};

/// The counts of consecutive objects, and facts about their order. The counts of adjacent sequences can be joined.
#[derive(Debug, Clone, Default)]
pub(super) struct ObjectCensus {
    /// The counts of nodes, ways and relations.
    pub by_kind: [ObjectCounts; 3],
    /// The number of objects that directly follow another version of the same object.
    pub further_versions: u64,
    /// Whether the added objects are out of canonical order. The objects within a blob that was counted by
    /// [`of_blob`](Self::of_blob) are not compared with each other.
    pub is_unordered: bool,
    /// The keys of the first and the last object; `None` if there are no objects or the keys are unknown.
    /// [`of_blob`](Self::of_blob) treats the keys as unknown if the objects of the blob are not in order.
    ends: Option<(TypeThenId, TypeThenId)>,
}

impl ObjectCensus {
    /// Returns the counts of a whole file.
    pub fn of_summary(summary: &TocSummary) -> Self {
        Self {
            by_kind: summary.kinds.map(|totals| totals.counts),
            further_versions: summary.further_versions,
            ..Self::default()
        }
    }

    /// Returns the counts of a blob whose entry has statistics; zeros for an entry without statistics.
    pub fn of_entry(entry: &BlobEntry) -> Self {
        match (entry.kinds.single(), &entry.statistics) {
            (Some(kind), Some(statistics)) => {
                let mut by_kind = [ObjectCounts::default(); 3];
                by_kind[kind as usize] = statistics.counts(entry.count);
                Self::of_blob(entry, by_kind, statistics.further_versions.into())
            }
            _ => Self::default(),
        }
    }

    /// Creates the counts of a blob. `by_kind` are the counts of its nodes, ways and relations. `further_versions` is
    /// the number of objects that directly follow another version of the same object.
    pub fn of_blob(entry: &BlobEntry, by_kind: [ObjectCounts; 3], further_versions: u64) -> Self {
        let ends = entry.first_sort_key().zip(entry.last_sort_key());
        Self {
            by_kind,
            further_versions,
            is_unordered: false,
            ends: ends.filter(|_| entry.flags.has(BlobFlags::SORTED)),
        }
    }

    /// Adds the next object.
    pub fn add(&mut self, object: &Object<'_>) {
        self.extend_ends((object.key(), object.key()));
        let references = match &object.body {
            ObjectBody::Node { .. } => 0,
            ObjectBody::Way { refs, .. } => refs.len(),
            ObjectBody::Relation { members } => members.len(),
        };
        let counts = &mut self.by_kind[object.kind() as usize];
        counts.add_object(&object.info, [object.tags.len(), references]);
    }

    /// Adds the counts of the next objects. They must directly follow the objects that were added before.
    pub fn merge(&mut self, next: &Self) {
        if let Some(ends) = next.ends {
            self.extend_ends(ends);
        }
        self.further_versions += next.further_versions;
        self.is_unordered |= next.is_unordered;
        for (counts, more) in self.by_kind.iter_mut().zip(&next.by_kind) {
            counts.add(more);
        }
    }

    /// Compares the first key of the next objects with the last key so far, and extends `ends`.
    fn extend_ends(&mut self, (first, last): (TypeThenId, TypeThenId)) {
        if let Some((_, before)) = self.ends {
            self.is_unordered |= first < before;
            self.further_versions += u64::from(first == before);
        }
        self.ends = Some((self.ends.map_or(first, |(first, _)| first), last));
    }

    /// Returns the sums of the counts of nodes, ways and relations.
    pub fn total_counts(&self) -> ObjectCounts {
        let mut all = ObjectCounts::default();
        self.by_kind.iter().for_each(|counts| all.add(counts));
        all
    }
}
