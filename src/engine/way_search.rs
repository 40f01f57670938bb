//! Searches the ways of a base, the file to which changes are applied. The search finds:
//!
//! - the ways whose nodes move,
//! - the locations that ways store,
//! - the nodes that ways need,
//! - the nodes that ways needed until changes replaced these ways.

use super::stored_locations::{StoredLocations, WayAge, way_ages, ways_with_nodes};
use crate::error::{FormatResult, Result};
use crate::file::PlannedFile;
use crate::formats::{Change, ChangeSet};
use crate::index::IdSet;
use crate::osm::{Location, ObjectKind, id_rank};
use crate::pbf::{BlobEntry, Block, WayNodes};
use rustc_hash::{FxHashMap, FxHashSet};

/// A search through the ways of a base.
pub(crate) struct WaySearch<'s> {
    /// The nodes whose locations are searched for.
    pub wanted: &'s IdSet,
    /// The new locations of changed nodes.
    pub moved: &'s FxHashMap<i64, Option<Location>>,
    /// The nodes with a location that are removed from the file.
    pub leaving: &'s IdSet,
    pub changes: &'s ChangeSet,
    /// Whether the search finds the nodes of [`FoundInWays::released`].
    pub finds_released: bool,
}

/// The result of a [`WaySearch`].
#[derive(Default)]
pub(crate) struct FoundInWays {
    /// The offsets of the blobs with ways whose nodes move.
    pub touched: FxHashSet<u64>,
    /// The locations of the wanted nodes.
    pub stored: StoredLocations,
    /// The nodes that must stay in the file, because a way does not store their locations. A leaving node is needed if
    /// a way refers to it without storing its location. A changed node is needed if a way refers to it and stores no
    /// locations at all. Ways that the changes replace do not count.
    pub needed: IdSet,
    /// The nodes that replaced ways refer to without storing their locations.
    pub released: IdSet,
}

/// The ways of a blob that refer to nodes of a search, or that are replaced by changes.
#[derive(Default)]
struct BlobWays {
    offset: u64,
    is_touched: bool,
    /// The indices of ways in the block, ascending.
    ways: Vec<usize>,
    /// The age of each of these ways.
    ages: Vec<WayAge>,
    /// The locations of wanted nodes, each with an index into `ways`.
    stored: Vec<(usize, i64, Location)>,
    /// The candidates for [`FoundInWays::needed`], each with an index into `ways`.
    needed: Vec<(usize, i64)>,
    /// The candidates for [`FoundInWays::released`], each with an index into `ways`.
    unlocated: Vec<(usize, i64)>,
}

impl BlobWays {
    /// Returns the index into `ways` of a way, and adds the way if it is new. `way` is the index of the way in the
    /// block. It must not be less than the index that was added last.
    fn find_or_add_way(&mut self, way: usize) -> usize {
        if self.ways.last() != Some(&way) {
            self.ways.push(way);
        }
        self.ways.len() - 1
    }
}

impl WaySearch<'_> {
    /// Reads the ways of the base. If `wanted`, `moved` and `leaving` are all empty, reads only the blobs whose ways
    /// may be replaced by changes.
    pub(crate) fn run(self, source: PlannedFile<'_>) -> Result<FoundInWays> {
        let mut all = self.wanted.clone();
        all.extend(self.moved.keys().copied());
        all.extend(self.leaving.ids());
        let mut found = FoundInWays::default();
        source.scan("scan ways").run(
            |entry| {
                let is_read = || !all.is_empty() || !self.changes_of(entry).is_empty();
                entry.kinds.contains(ObjectKind::Way) && is_read()
            },
            |entry, block| {
                let nodes = WayNodes::from_block(block)?;
                let mut ways = self.changed_ways(entry, &nodes);
                ways.extend(ways_with_nodes(&nodes, &all));
                ways.sort_unstable();
                ways.dedup();
                let mut found = BlobWays {
                    offset: entry.offset,
                    ..BlobWays::default()
                };
                if !ways.is_empty() {
                    self.visit_ways(block, &ways, &mut found)?;
                }
                Ok(found)
            },
            |of_blob| {
                if of_blob.is_touched {
                    found.touched.insert(of_blob.offset);
                }
                for (slot, id, location) in of_blob.stored {
                    found.stored.add(id, of_blob.ages[slot], location);
                }
                found
                    .needed
                    .extend(of_blob.needed.into_iter().map(|(_, id)| id));
                let released = of_blob.unlocated.into_iter();
                found.released.extend(released.map(|(_, id)| id));
            },
        )?;
        Ok(found)
    }

    /// Returns the changes that may concern ways of a blob. Returns no changes if `finds_released` is not set.
    fn changes_of(&self, entry: &BlobEntry) -> &[Change] {
        match (entry.first_sort_key(), entry.last_sort_key()) {
            (Some(first), Some(last)) if self.finds_released => {
                &self.changes.changes()[self.changes.range(first, last)]
            }
            _ => &[],
        }
    }

    /// Returns the indices of those ways of a blob that have changes. Returns no indices if `finds_released` is not
    /// set.
    fn changed_ways(&self, entry: &BlobEntry, nodes: &WayNodes) -> Vec<usize> {
        let key = |(id, _): &(i64, usize)| (ObjectKind::Way, id_rank(*id));
        let changes = self.changes_of(entry).iter();
        let found = changes.map(|change| nodes.ways.binary_search_by_key(&change.key, key));
        found.filter_map(std::result::Result::ok).collect()
    }

    /// Visits the ways with the given indices in the block.
    fn visit_ways(
        &self,
        block: &Block<'_>,
        ways: &[usize],
        found: &mut BlobWays,
    ) -> FormatResult<()> {
        let is_wanted = |way: usize| ways.binary_search(&way).is_ok();
        block.for_each_wanted_way(is_wanted, |way, refs, stored| {
            self.visit_way(found, way, refs, stored);
        })?;
        found.ages = way_ages(block, &found.ways)?;
        let is_replaced: Vec<bool> = found.ages.iter().map(|way| self.is_replaced(way)).collect();
        found.needed.retain(|(slot, _)| !is_replaced[*slot]);
        found.unlocated.retain(|(slot, _)| is_replaced[*slot]);
        Ok(())
    }

    /// Adds the facts about the way with the index `way` to `found`. `refs` are the nodes of the way, and `stored` are
    /// the locations that the way stores for them.
    fn visit_way(
        &self,
        found: &mut BlobWays,
        way: usize,
        refs: &[i64],
        stored: Option<&[Option<Location>]>,
    ) {
        for (at, id) in refs.iter().enumerate() {
            let location = stored.and_then(|stored| stored.get(at).copied().flatten());
            let known = location.filter(|location| location.is_on_earth());
            let mut is_needed = known.is_none() && self.leaving.contains(*id);
            if self.wanted.contains(*id) {
                if let Some(known) = known {
                    let slot = found.find_or_add_way(way);
                    found.stored.push((slot, *id, known));
                }
            } else if let Some(new) = self.moved.get(id) {
                found.is_touched |= stored.is_some() && *new != location;
                is_needed |= stored.is_none() && new.is_some();
            }
            if is_needed {
                let slot = found.find_or_add_way(way);
                found.needed.push((slot, *id));
            }
            if self.finds_released && known.is_none() {
                let slot = found.find_or_add_way(way);
                found.unlocated.push((slot, *id));
            }
        }
    }

    /// Whether a change replaces or deletes a way of the base.
    fn is_replaced(&self, way: &WayAge) -> bool {
        let key = (ObjectKind::Way, id_rank(way.id));
        let changes = &self.changes.changes()[self.changes.range(key, key)];
        changes
            .iter()
            .any(|change| change.replaces(way.version, way.timestamp))
    }
}
