//! Finds the ways that regions keep, and the nodes that regions add to complete these ways.
//!
//! A way lies where its nodes lie. If the file may lack nodes, a node without a location in the file has the location
//! that the way stores.

use super::located::RegionLookup;
use super::outside::{NodePlaces, OutsideObjects};
use super::{
    IdsWithRegions, MemoryBudget, RegionMembers, add_ids_with_regions, add_regions,
    may_have_mapped_ids, script_keeping,
};
use crate::engine::location_form::LocationForm;
use crate::engine::references::sort_and_dedup;
use crate::error::{FormatResult, Result};
use crate::file::PlannedFile;
use crate::index::{EMPTY_SET, IdMap, SetAlgebra, SetNumber};
use crate::osm::ObjectKind;
use crate::pbf::{BlobEntry, Block, BlockUnits, LocatedWay};
use rustc_hash::FxHashSet;

/// The value, in a map of nodes, for a node that is in the file and has a location there.
const WITH_LOCATION: u32 = 1;
/// The value, in a map of nodes, for a node that is in the file but has no location there.
const WITHOUT_LOCATION: u32 = 2;

/// The rule for stored locations, which are the locations that ways store for their nodes. It decides whether the
/// stored location of a node counts. The rule is applied only if the node was found in no region, and its stored
/// location lies in a region.
#[derive(Clone, Copy)]
enum StoredLocationRule<'n> {
    /// Stored locations do not count, because the file has all nodes of its ways.
    Ignored,
    /// A stored location counts unless the node is in the file and has a location there. The map has the value
    /// [`WITH_LOCATION`] or [`WITHOUT_LOCATION`] for each node that was collected under [`Self::Open`] and is in the
    /// file.
    OfAbsentNodes(&'n IdMap),
    /// It is not known yet which nodes the file has. The nodes are collected. Whether their stored locations count is
    /// decided later.
    Open,
}

/// The node references of the ways of a block.
#[derive(Default)]
struct LocatedRefs {
    refs: Vec<i64>,
    /// For each reference, the set of the regions that contain the node.
    sets: Vec<SetNumber>,
    /// The id of each way, and the end of its references in `refs` (exclusive).
    ways: Vec<(i64, usize)>,
    /// The nodes that are not in the file, each with the set of regions that contain its stored location.
    absent: IdsWithRegions,
    /// The nodes that are in the file but have no location there, each with the set of regions that contain its stored
    /// location.
    unlocated: IdsWithRegions,
    /// The nodes that are collected under [`StoredLocationRule::Open`]. Whether their stored locations count is decided
    /// later.
    open: Vec<i64>,
}

/// The ways with a node in a region, from the parts of a block that were read so far.
#[derive(Default)]
struct KeptWays {
    /// The number of ways that were read.
    count: u32,
    /// As in [`WaysByRegion::ways`].
    ways: IdsWithRegions,
    /// For each way in `ways`, its index among all ways of the block.
    indices: Vec<u32>,
    /// The indices of the ways with a node that regions have to add.
    partly_outside: Vec<u32>,
    /// As in [`WaysByRegion::nodes`], but not sorted, and with duplicates.
    nodes: IdsWithRegions,
    /// As in [`LocatedRefs::absent`].
    absent: IdsWithRegions,
    /// As in [`LocatedRefs::open`].
    open: Vec<i64>,
    /// The number of nodes above which duplicates are removed before the end of the block.
    limit: usize,
}

impl KeptWays {
    /// Adds the ways of a part of the block. If `with_nodes` is set, also adds the nodes of these ways that regions
    /// have to add.
    fn add(&mut self, located: LocatedRefs, with_nodes: bool, algebra: &mut SetAlgebra<'_>) {
        let mut start = 0;
        for (index, (way, end)) in (self.count..).zip(&located.ways) {
            let range = start..*end;
            start = *end;
            let of_nodes = &located.sets[range.clone()];
            // Most ways have no node in a region. This test takes several sets at a time.
            if of_nodes.iter().fold(0, |bits, set| bits | set) == EMPTY_SET {
                continue;
            }
            let sets = of_nodes.iter();
            let union = sets.fold(EMPTY_SET, |all, set| algebra.union(all, *set));
            self.ways.push((*way, union));
            self.indices.push(index);
            if with_nodes {
                let (refs, before) = (&located.refs[range], self.nodes.len());
                for (id, set) in refs.iter().zip(of_nodes) {
                    let missing = algebra.difference(union, *set);
                    if missing != EMPTY_SET {
                        self.nodes.push((*id, missing));
                    }
                }
                if self.nodes.len() > before {
                    self.partly_outside.push(index);
                }
            }
        }
        self.count += located.ways.len() as u32;
        if with_nodes {
            self.nodes.extend(located.unlocated);
        }
        self.absent.extend(located.absent);
        self.open.extend(located.open);
        if self.nodes.len() + self.absent.len() + self.open.len() > self.limit.max(MANY) {
            self.nodes = sort_and_merge_duplicates(std::mem::take(&mut self.nodes), algebra);
            self.absent = sort_and_merge_duplicates(std::mem::take(&mut self.absent), algebra);
            self.open = sort_and_dedup(std::mem::take(&mut self.open));
            self.limit = 2 * (self.nodes.len() + self.absent.len() + self.open.len());
        }
    }
}

/// The number of nodes of a block above which duplicates are removed before the end of the block.
const MANY: usize = 1 << 20;

/// For one block, the ways with a node in a region, and the nodes of these ways.
#[derive(Default)]
struct WaysByRegion {
    /// The ways with a node in a region.
    ways: IdsWithRegions,
    /// The nodes of these ways that regions have to add. A region adds a node if it keeps the way and does not contain
    /// the node.
    nodes: IdsWithRegions,
    /// As in [`LocatedRefs::absent`].
    absent: IdsWithRegions,
    /// In a file with a spatial layout, the locations of the nodes of each way with an added node.
    places: NodePlaces,
    /// The offset of the blob, and the nodes that are described at [`LocatedRefs::open`]; `None` if there are no such
    /// nodes. If it is set, the other fields are empty.
    open: Option<(u64, Vec<i64>)>,
}

/// For all blocks, the ways with a node in a region, and the nodes of these ways.
struct AllWays {
    ways: IdMap,
    added_nodes: IdMap,
    absent_nodes: IdMap,
    outside: OutsideObjects,
    /// The nodes that are described at [`LocatedRefs::open`], each with the value 1.
    open_nodes: IdMap,
    /// The offsets of the blobs with ways that refer to nodes in `open_nodes`.
    open_blobs: FxHashSet<u64>,
    room: MemoryBudget,
}

impl AllWays {
    fn new(room: MemoryBudget) -> Self {
        Self {
            ways: IdMap::default(),
            added_nodes: IdMap::default(),
            absent_nodes: IdMap::default(),
            outside: OutsideObjects::default(),
            open_nodes: IdMap::default(),
            open_blobs: FxHashSet::default(),
            room,
        }
    }

    /// Adds the ways of a block, unless the memory is used up.
    fn add(&mut self, found: WaysByRegion, algebra: &mut SetAlgebra<'_>) {
        let maps = [
            &self.ways,
            &self.added_nodes,
            &self.absent_nodes,
            &self.open_nodes,
        ];
        if !self.room.may_add_ids(maps) {
            return;
        }
        add_ids_with_regions(&mut self.ways, &found.ways, algebra);
        add_ids_with_regions(&mut self.added_nodes, &found.nodes, algebra);
        add_ids_with_regions(&mut self.absent_nodes, &found.absent, algebra);
        self.outside.add_nodes(found.places);
        if let Some((offset, nodes)) = found.open {
            self.open_blobs.insert(offset);
            for id in nodes {
                self.open_nodes.add(id, 1, |one, _| one);
            }
        }
    }

    /// Measures the memory of the ids, and of the ids in `others`.
    fn measure(&mut self, others: &IdMap) {
        let maps = [
            &self.ways,
            &self.added_nodes,
            &self.absent_nodes,
            &self.open_nodes,
            others,
        ];
        self.room.measure(maps);
    }
}

impl RegionMembers<'_> {
    /// Finds the ways with a node in a region. If `with_nodes` is set, also finds the nodes of these ways that regions
    /// have to add.
    pub(super) fn find_ways(&mut self, with_nodes: bool, source: PlannedFile<'_>) -> Result<()> {
        let none = IdMap::default();
        let mut all = AllWays::new(self.room.reduced_by(self.nodes.bytes()));
        let stored = match self.form {
            LocationForm::Plain | LocationForm::AllNodes => StoredLocationRule::Ignored,
            LocationForm::NeededNodes => StoredLocationRule::OfAbsentNodes(&none),
            LocationForm::Mixed => StoredLocationRule::Open,
        };
        let may_be_kept = |entry: &BlobEntry| {
            entry.kinds.contains(ObjectKind::Way) && self.may_touch_a_region(entry)
        };
        self.add_ways(stored, with_nodes, may_be_kept, &mut all, source)?;
        all.measure(&none);
        if !all.open_blobs.is_empty() && !all.room.is_exceeded {
            source.ctx.expect_phases(2);
            let known = self.nodes_in_file(&all.open_nodes, source)?;
            all.measure(&known);
            let blobs = std::mem::take(&mut all.open_blobs);
            all.open_nodes = IdMap::default();
            let stored = StoredLocationRule::OfAbsentNodes(&known);
            let is_open = |entry: &BlobEntry| blobs.contains(&entry.offset);
            self.add_ways(stored, with_nodes, is_open, &mut all, source)?;
            all.measure(&known);
        }
        if let Some(outside) = &mut self.outside {
            *outside = all.outside;
        }
        (self.ways, self.added_nodes, self.room) = (all.ways, all.added_nodes, all.room);
        let mut algebra = SetAlgebra::new(&self.sets);
        let nodes = &mut self.nodes;
        all.absent_nodes
            .for_each(|id, set| add_regions(nodes, id, set, &mut algebra));
        Ok(())
    }

    /// Adds to `all` the ways with a node in a region. Reads only the blobs that `picks` selects.
    fn add_ways(
        &self,
        stored: StoredLocationRule<'_>,
        with_nodes: bool,
        picks: impl Fn(&BlobEntry) -> bool,
        all: &mut AllWays,
        source: PlannedFile<'_>,
    ) -> Result<()> {
        let mut algebra = SetAlgebra::new(&self.sets);
        source.scan("find ways").run(
            picks,
            |entry, block| self.find_kept_ways(stored, entry, block, with_nodes),
            |found| all.add(found, &mut algebra),
        )
    }

    /// Returns those nodes in `asked` that the file has, each with the value [`WITH_LOCATION`] or [`WITHOUT_LOCATION`].
    fn nodes_in_file(&self, asked: &IdMap, source: PlannedFile<'_>) -> Result<IdMap> {
        let mut known = IdMap::default();
        source.scan("find nodes of ways").run(
            |entry| entry.kinds.contains(ObjectKind::Node) && may_have_mapped_ids(entry, asked),
            |_, block| {
                let (mut asked, mut found) = (asked.walk(), Vec::new());
                block.for_each_location(|id, location| {
                    if asked.get(id) != 0 {
                        found.push((id, location.is_some()));
                    }
                })?;
                Ok(found)
            },
            |found: Vec<(i64, bool)>| {
                for (id, is_located) in found {
                    let number = if is_located {
                        WITH_LOCATION
                    } else {
                        WITHOUT_LOCATION
                    };
                    known.add(id, number, u32::min);
                }
            },
        )?;
        Ok(known)
    }

    /// Returns the node references of the ways of a block, with the regions that contain the nodes.
    fn located_refs(
        &self,
        stored: StoredLocationRule<'_>,
        block: &Block<'_>,
    ) -> FormatResult<LocatedRefs> {
        let (mut refs, mut ways, mut located) = (Vec::new(), Vec::new(), Vec::new());
        match stored {
            StoredLocationRule::Ignored => {
                block.collect_refs(|| true, |_| true, &mut refs, &mut ways)?;
            }
            StoredLocationRule::OfAbsentNodes(_) | StoredLocationRule::Open => {
                block.for_each_stored_way(|_, way| {
                    located.push(way.append_refs(&mut refs)?);
                    Ok(())
                })?;
                ways.extend(located.iter().map(|way| (way.id, way.end)));
            }
        }
        // Consecutive refs of a way are mostly close to each other, and a cursor looks up nearby ids faster.
        let mut nodes = self.nodes.walk();
        let sets: Vec<SetNumber> = refs.iter().map(|id| nodes.get(*id)).collect();
        let mut found = LocatedRefs {
            refs,
            sets,
            ways,
            ..LocatedRefs::default()
        };
        if !located.is_empty() {
            self.find_stored_location_regions(stored, &located, &block.units, &mut found)?;
        }
        Ok(found)
    }

    /// Looks up the regions of the locations that `ways` store. Skips nodes that were already found in a region. If the
    /// stored location of a node lies in a region, applies the rule `stored` to the node.
    fn find_stored_location_regions(
        &self,
        stored: StoredLocationRule<'_>,
        ways: &[LocatedWay<'_>],
        units: &BlockUnits,
        found: &mut LocatedRefs,
    ) -> FormatResult<()> {
        let mut lookup = RegionLookup::new(self.areas, &self.sets);
        let (mut locations, mut start) = (Vec::new(), 0);
        for way in ways {
            let range = start..way.end;
            start = way.end;
            if !way.has_locations() || !found.sets[range.clone()].contains(&EMPTY_SET) {
                continue;
            }
            way.read_locations(range.len(), units, &mut locations)?;
            for (index, location) in range.zip(locations.iter().copied()) {
                let Some(location) = location.filter(|location| location.is_on_earth()) else {
                    continue;
                };
                if found.sets[index] != EMPTY_SET {
                    continue;
                }
                let set = lookup.regions_at(location);
                if set != EMPTY_SET {
                    found.add_stored_location(stored, index, set, self.form);
                }
            }
        }
        Ok(())
    }

    /// Finds those ways of a block that have a node in a region. If `with_nodes` is set, also returns the nodes of
    /// these ways that regions have to add.
    fn find_kept_ways(
        &self,
        stored: StoredLocationRule<'_>,
        entry: &BlobEntry,
        block: &Block<'_>,
        with_nodes: bool,
    ) -> FormatResult<WaysByRegion> {
        let mut algebra = SetAlgebra::new(&self.sets);
        let mut kept = KeptWays::default();
        block.visit_in_parts(|part| {
            let located = self.located_refs(stored, part)?;
            kept.add(located, with_nodes, &mut algebra);
            Ok(())
        })?;
        if !kept.open.is_empty() {
            return Ok(WaysByRegion {
                open: Some((entry.offset, kept.open)),
                ..WaysByRegion::default()
            });
        }
        self.held.add(entry, block, kept.ways.len(), || {
            script_keeping(&kept.indices, kept.count)
        })?;
        let is_wanted = |index| kept.partly_outside.binary_search(&index).is_ok();
        Ok(WaysByRegion {
            places: self.places_of_ways(entry, block, is_wanted)?,
            ways: kept.ways,
            nodes: sort_and_merge_duplicates(kept.nodes, &mut algebra),
            absent: sort_and_merge_duplicates(kept.absent, &mut algebra),
            open: None,
        })
    }

    /// Returns, for each way of a block, whether `is_met` accepts its id. Without a spatial layout, the list is empty.
    fn flag_accepted_ways(
        &self,
        block: &Block<'_>,
        is_met: impl Fn(i64) -> bool,
    ) -> FormatResult<Vec<bool>> {
        let mut accepted = Vec::new();
        if self.outside.is_some() {
            block.for_each_id(|kind, id| {
                if kind == ObjectKind::Way {
                    accepted.push(is_met(id));
                }
            })?;
        }
        Ok(accepted)
    }

    /// Adds the nodes of ways that are kept as members of completed relations. If objects may occur in several
    /// versions, adds the nodes of all versions of all kept ways.
    pub(super) fn complete_ways(&mut self, source: PlannedFile<'_>) -> Result<()> {
        let each_once = self.each_once;
        if self.added_ways.is_empty() && each_once {
            return Ok(());
        }
        let mut added_nodes = std::mem::take(&mut self.added_nodes);
        let mut outside = NodePlaces::default();
        let mut algebra = SetAlgebra::new(&self.sets);
        source.scan("complete ways").run(
            |entry| {
                entry.kinds.contains(ObjectKind::Way)
                    && (may_have_mapped_ids(entry, &self.added_ways)
                        || (!each_once && may_have_mapped_ids(entry, &self.ways)))
                    && self.may_have_member(entry)
            },
            |entry, block| {
                let mut algebra = SetAlgebra::new(&self.sets);
                let is_met = |id: i64| {
                    self.added_ways.get(id) != EMPTY_SET
                        || (!each_once && self.ways.get(id) != EMPTY_SET)
                };
                let nodes = self.nodes_to_complete(block, is_met, &mut algebra)?;
                let kept = self.flag_accepted_ways(block, is_met)?;
                let is_kept = |index: u32| kept[index as usize];
                let places = self.places_of_ways(entry, block, is_kept)?;
                Ok((nodes, places))
            },
            |(found, places)| {
                add_ids_with_regions(&mut added_nodes, &found, &mut algebra);
                outside.add(places);
            },
        )?;
        self.added_nodes = added_nodes;
        if let Some(all) = &mut self.outside {
            all.add_nodes(outside);
        }
        Ok(())
    }

    /// Returns the nodes that regions have to add for the ways that `is_met` accepts. Each node has the set of regions
    /// that keep one of these ways but lack the node.
    fn nodes_to_complete(
        &self,
        block: &Block<'_>,
        is_met: impl Fn(i64) -> bool,
        algebra: &mut SetAlgebra<'_>,
    ) -> FormatResult<Vec<(i64, SetNumber)>> {
        let set_of_way = |algebra: &mut SetAlgebra<'_>, id: i64| {
            let again = if self.each_once {
                EMPTY_SET
            } else {
                self.ways.get(id)
            };
            algebra.union(self.added_ways.get(id), again)
        };
        let (mut nodes, mut limit) = (Vec::new(), MANY);
        block.visit_in_parts(|part| {
            let (mut refs, mut ways) = (Vec::new(), Vec::new());
            part.collect_refs(|| true, |way| is_met(way.id), &mut refs, &mut ways)?;
            let mut start = 0;
            for (way, end) in ways {
                let set = set_of_way(algebra, way);
                for id in &refs[start..end] {
                    let missing = algebra.difference(set, self.nodes.get(*id));
                    if missing != EMPTY_SET {
                        nodes.push((*id, missing));
                    }
                }
                start = end;
            }
            if nodes.len() > limit {
                nodes = sort_and_merge_duplicates(std::mem::take(&mut nodes), algebra);
                limit = MANY.max(2 * nodes.len());
            }
            Ok(())
        })?;
        Ok(sort_and_merge_duplicates(nodes, algebra))
    }
}

impl LocatedRefs {
    /// Sets the regions of the reference at `index` to `set` if the stored location of its node counts. `set` is the
    /// set of regions that contain this location.
    fn add_stored_location(
        &mut self,
        stored: StoredLocationRule<'_>,
        index: usize,
        set: SetNumber,
        form: LocationForm,
    ) {
        let id = self.refs[index];
        let in_file = match stored {
            StoredLocationRule::Ignored => return,
            StoredLocationRule::Open => {
                self.open.push(id);
                return;
            }
            StoredLocationRule::OfAbsentNodes(known) => known.get(id),
        };
        if in_file == WITH_LOCATION {
            return;
        }
        self.sets[index] = set;
        if in_file == WITHOUT_LOCATION {
            self.unlocated.push((id, set));
        } else if form == LocationForm::Mixed {
            // The absent node may be a member of a relation, so its regions are recorded. Files of the form
            // `NeededNodes` do not need this, because they have all members of relations.
            self.absent.push((id, set));
        }
    }
}

/// Sorts the ids in ascending order, and merges duplicates. The result has each id once, with the union of its sets.
fn sort_and_merge_duplicates(
    mut found: IdsWithRegions,
    algebra: &mut SetAlgebra<'_>,
) -> IdsWithRegions {
    found.sort_unstable();
    found.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = algebra.union(kept.1, next.1);
        }
        same
    });
    found
}
