//! Keeps the coordinates in ways up to date.
//!
//! A way moves if the new location of a changed node differs from the coordinates in the way. The old location of the
//! node is not needed. The nodes of changed ways are looked up in the base. If the base may lack untagged nodes, all
//! ways of the base are read first, because the coordinates in ways also provide locations.

use crate::engine::scan::Scan;
use crate::error::{Error, FormatError, Result};
use crate::file::{BlobDecoder, BlobPlan, PbfFile};
use crate::formats::{Change, ChangeSet};
use crate::index::IdSet;
use crate::osm::{Location, ObjectKind};
use crate::pbf::{BlobEntry, BlobFlags, Block, WayNodes, feature};
use crate::runtime::Context;
use rustc_hash::{FxHashMap, FxHashSet};

/// How to treat nodes that have no tags and are members of no relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum UntaggedNodes {
    /// Untagged nodes that are members of no relation are left out if the base has none, and kept otherwise.
    #[default]
    AsBase,
    /// Untagged nodes that are members of no relation are kept.
    Keep,
}

/// The locations of nodes after the changes, the blobs with ways that move, and the nodes to leave out.
#[derive(Debug, Default)]
pub(super) struct LocationUpdates {
    /// The new location of each changed node, or the location in the base if its change is outdated; `None` for a node
    /// without a location, such as a deleted node.
    moved: FxHashMap<i64, Option<Location>>,
    /// The ids of the nodes in `moved`.
    moved_ids: IdSet,
    /// The locations of nodes that have no change of their own. Changed ways refer to these nodes, or the nodes become
    /// members of relations.
    known: FxHashMap<i64, Option<Location>>,
    /// The offsets of the blobs that contain a way whose nodes move. If the offsets are not known (`None`), every blob
    /// with ways has to be decoded.
    touched: Option<FxHashSet<u64>>,
    /// The nodes to leave out; `None` if the output has all nodes.
    pub omitted: Option<OmittedNodes>,
}

/// The nodes to leave out if the base contains only nodes with tags and members of relations.
#[derive(Debug, Default)]
pub(super) struct OmittedNodes {
    /// The nodes that are members of relations after the changes.
    members: IdSet,
    /// The nodes that were members of relations before the changes, but are not after them.
    no_longer_needed: IdSet,
    /// The number of nodes that become members of relations, but are neither in the base nor in the changes.
    pub lost: u64,
}

impl OmittedNodes {
    /// Whether the node of a change is left out, because it has no tags and is a member of no relation. Returns `false`
    /// for deletions.
    pub(super) fn drops(&self, change: &Change) -> bool {
        change.key.0 == ObjectKind::Node
            && !change.is_deletion()
            && !ChangeSet::has_tags(change)
            && !self.members.contains(change.id)
    }

    /// Whether a blob may contain nodes without changes that have to be removed, because they are no longer members of
    /// a relation.
    pub(super) fn may_omit(&self, entry: &BlobEntry) -> bool {
        let first = entry.min_id;
        entry.kinds.contains(ObjectKind::Node)
            && !self.no_longer_needed.is_empty()
            && (entry.kinds.single().is_none()
                || self.no_longer_needed.may_meet(first, entry.max_id))
    }

    /// Returns the nodes of a block that have no tags and are no longer members of a relation. These nodes are removed
    /// unless a change gives them tags.
    pub(super) fn omitted_in(&self, block: &Block<'_>) -> Result<IdSet, FormatError> {
        let mut no_longer_needed = IdSet::default();
        block.for_each_node(|id, _, has_tags| {
            if !has_tags && self.no_longer_needed.contains(id) {
                no_longer_needed.insert(id);
            }
        })?;
        Ok(no_longer_needed)
    }
}

/// Whether a base contains the untagged nodes of its ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nodes {
    /// The base contains all nodes of its ways.
    All,
    /// The base contains only nodes with tags and members of relations.
    Needed,
    /// Neither [`All`](Self::All) nor [`Needed`](Self::Needed) is certain.
    Unknown,
}

impl Nodes {
    /// Determines from the header which nodes the base contains. Headers written by other programs do not declare this.
    /// In this case, looks up a sample of the nodes of ways. Returns `All` if at least 16 nodes were sampled and all of
    /// them are in the base, and `Needed` if fewer than half of the sampled nodes are in the base.
    fn of_base(file: &PbfFile, plan: &BlobPlan, ctx: &Context) -> Result<Self> {
        const LEAST: u64 = 16;
        match (
            file.header.has(feature::ALL_NODES),
            file.header.has(feature::NEEDED_NODES),
        ) {
            (true, false) => return Ok(Self::All),
            (false, true) => return Ok(Self::Needed),
            _ => {}
        }
        let sample = sample_of_nodes(file, plan, ctx)?;
        let there = look_up(file, plan, &sample, ctx)?.len() as u64;
        Ok(match sample.len() {
            all if all >= LEAST && there == all => Self::All,
            all if there < all / 2 => Self::Needed,
            _ => Self::Unknown,
        })
    }
}

/// Fails if no way of the base has locations. Warns if the ways of some blobs have none.
fn check_has_locations(file: &PbfFile, plan: &BlobPlan, ctx: &Context) -> Result<()> {
    let with_ways = || {
        let entries = plan.entries.iter();
        entries.filter(|entry| entry.kinds.contains(ObjectKind::Way))
    };
    // A per-blob index does not record whether ways have locations. If a blob has only this index, the header decides.
    let is_without = |entry: &&BlobEntry| {
        if entry.flags.has(BlobFlags::SCANNED) {
            !entry.flags.has(BlobFlags::LOCATIONS)
        } else {
            !file.header.has(feature::LOCATIONS)
        }
    };
    let (without, all) = (with_ways().filter(is_without).count(), with_ways().count());
    let path = file.input.path();
    let declares = file.header.has(feature::LOCATIONS);
    if !declares && all > 0 && without == all {
        let cause = "the ways have no locations that could be kept up to date; \
                     run `pbfhogg add-locations-to-ways` first";
        return Err(Error::file(path, cause));
    }
    if without > 0 {
        ctx.warn(format!(
            "{}: in {without} of {all} blobs the ways have no locations, and get none",
            path.display()
        ));
    }
    Ok(())
}

/// Warns if the changes are older than the base. A base without untagged nodes lacks the versions of these nodes, so an
/// older change is not recognized and may move ways back.
fn warn_of_old_changes(file: &PbfFile, changes: &ChangeSet, ctx: &Context) {
    let (base, new) = (&file.header, changes.replication());
    let is_older =
        |new: Option<i64>, base: Option<i64>| new.zip(base).is_some_and(|(new, base)| new < base);
    if is_older(new.sequence, base.replication_sequence)
        || is_older(new.timestamp, base.replication_timestamp)
    {
        ctx.warn(format!(
            "{}: the changes are older than the base, which has not the nodes that would tell: \
             ways may have moved back",
            file.input.path().display()
        ));
    }
}

impl LocationUpdates {
    /// Collects the new locations of changed nodes, the locations of the other nodes of changed ways, the blobs whose
    /// ways move, and the nodes to leave out. Fails if the ways of the base have no locations.
    pub(super) fn find(
        file: &PbfFile,
        plan: &BlobPlan,
        changes: &ChangeSet,
        untagged: UntaggedNodes,
        ctx: &Context,
    ) -> Result<Self> {
        check_has_locations(file, plan, ctx)?;
        let mut found = Self::default();
        for change in changes.changes() {
            if change.key.0 == ObjectKind::Node {
                found.moved.insert(change.id, ChangeSet::location(change));
                found.moved_ids.insert(change.id);
            }
        }
        let outdated = outdated_in_mixed_blobs(file, plan, changes, ctx)?;
        found.restore_base_location(outdated, file, plan, ctx)?;
        let refs = changes.changes().iter().flat_map(|way| changes.refs(way));
        let wanted: IdSet = refs
            .copied()
            .filter(|id| !found.moved.contains_key(id))
            .collect();
        let nodes = Nodes::of_base(file, plan, ctx)?;
        if nodes != Nodes::All {
            found.look_through_ways(file, plan, &wanted, ctx)?;
        }
        let members = match untagged {
            UntaggedNodes::AsBase if nodes == Nodes::Needed => {
                warn_of_old_changes(file, changes, ctx);
                Some(Members::find(file, plan, changes, ctx)?)
            }
            UntaggedNodes::AsBase | UntaggedNodes::Keep => None,
        };
        let mut unknown = IdSet::default();
        unknown.extend(wanted.ids().filter(|id| !found.known.contains_key(id)));
        unknown.extend(members.iter().flat_map(|members| members.new.ids()));
        let there = look_up(file, plan, &unknown, ctx)?;
        found.omitted = members.map(|members| {
            let lost = |id: &i64| !there.contains_key(id) && !found.moved.contains_key(id);
            OmittedNodes {
                lost: members.new.ids().filter(lost).count() as u64,
                members: members.now,
                no_longer_needed: members.no_longer_needed,
            }
        });
        ctx.debug(match found.omitted {
            Some(_) => "the base has no nodes that only ways need: none are added",
            None => "nodes that only ways need are kept",
        });
        found.known.extend(there);
        Ok(found)
    }

    /// Reads all ways of the base. Finds the blobs with ways whose nodes move, and collects the locations of `wanted`
    /// nodes from the coordinates in ways.
    fn look_through_ways(
        &mut self,
        file: &PbfFile,
        plan: &BlobPlan,
        wanted: &IdSet,
        ctx: &Context,
    ) -> Result<()> {
        let (moved, moved_ids) = (&self.moved, &self.moved_ids);
        let (touched, known) = (self.touched.insert(FxHashSet::default()), &mut self.known);
        let mut both = wanted.clone();
        both.extend(moved_ids.ids());
        Scan::bare("scan ways", file, plan, ctx).run(
            |entry| entry.kinds.contains(ObjectKind::Way) && !both.is_empty(),
            |entry, block| {
                let nodes = WayNodes::of(block)?;
                let mut ways = Vec::new();
                both.for_each_present(&nodes.refs, |at| {
                    let way = nodes.way_index_of(at);
                    if ways.last() != Some(&way) {
                        ways.push(way);
                    }
                });
                let (mut is_touched, mut locations) = (false, Vec::new());
                if ways.is_empty() {
                    return Ok((entry.offset, false, locations));
                }
                let is_wanted = |way: usize| ways.binary_search(&way).is_ok();
                block.for_each_way_location(is_wanted, |_, refs, old| {
                    for (id, location) in refs.iter().zip(old.into_iter().flatten()) {
                        if wanted.contains(*id) {
                            locations.push((*id, *location));
                        } else if let Some(new) = moved.get(id) {
                            is_touched |= new != location;
                        }
                    }
                })?;
                Ok((entry.offset, is_touched, locations))
            },
            |(offset, is_touched, locations)| {
                if is_touched {
                    touched.insert(offset);
                }
                for (id, location) in locations {
                    if location.is_some() {
                        known.entry(id).or_insert(location);
                    }
                }
            },
        )
    }

    /// Whether a blob may contain a way whose nodes move.
    pub(super) fn may_move(&self, entry: &BlobEntry) -> bool {
        let is_touched = |touched: &FxHashSet<u64>| touched.contains(&entry.offset);
        entry.kinds.contains(ObjectKind::Way)
            && !self.moved_ids.is_empty()
            && self.touched.as_ref().is_none_or(is_touched)
    }

    /// Returns the changed nodes among the node references of a block's ways, as indices into [`WayNodes::refs`].
    pub(super) fn moved_among(&self, nodes: &WayNodes) -> Vec<usize> {
        let mut moved = Vec::new();
        self.moved_ids
            .for_each_present(&nodes.refs, |at| moved.push(at));
        moved
    }

    /// Returns the new location of a changed node. The result is `Some(None)` if the node has no location, and `None`
    /// if the node has no change.
    pub(super) fn new_location(&self, id: i64) -> Option<Option<Location>> {
        self.moved.get(&id).copied()
    }

    /// Replaces the locations of the nodes in `outdated` with those in the base, because the changes of these nodes
    /// turned out to be older than the base.
    pub(super) fn restore_base_location(
        &mut self,
        outdated: Vec<i64>,
        file: &PbfFile,
        plan: &BlobPlan,
        ctx: &Context,
    ) -> Result<()> {
        if outdated.is_empty() {
            return Ok(());
        }
        let ids: IdSet = outdated.into_iter().collect();
        let locations = look_up(file, plan, &ids, ctx)?;
        for id in ids.ids() {
            // Replaces the location, but keeps the node among the changed nodes, because the coordinates that a way has
            // for the node may be older than the node.
            let location = locations.get(&id).copied().flatten();
            self.moved.insert(id, location);
        }
        Ok(())
    }

    /// Sets the coordinates in changed ways. The location of a node comes from the change of the node or, if the node
    /// has no change, from the base. If the base does not have the node, the location comes from the change of the way.
    pub(super) fn locate(&self, changes: &mut ChangeSet) {
        changes.set_way_locations(|id, given| {
            let known = self.moved.get(&id).or_else(|| self.known.get(&id));
            known.copied().unwrap_or(given)
        });
    }
}

/// The nodes that are members of relations.
struct Members {
    /// The nodes that are members of relations after the changes.
    now: IdSet,
    /// The nodes that were members of relations before the changes, but are not after them.
    no_longer_needed: IdSet,
    /// The nodes that are members of relations after the changes, but were not before them.
    new: IdSet,
}

impl Members {
    fn find(file: &PbfFile, plan: &BlobPlan, changes: &ChangeSet, ctx: &Context) -> Result<Self> {
        let (mut now, mut before) = (IdSet::default(), IdSet::default());
        let mut outdated = FxHashSet::default();
        let of_relation = |entry: &BlobEntry| entry.kinds.contains(ObjectKind::Relation);
        Scan::bare("members", file, plan, ctx).run(
            of_relation,
            |entry, block| {
                let mut found = Replaced::default();
                found.visit(entry, block, changes)?;
                Ok(found)
            },
            |found| {
                now.extend(found.kept);
                before.extend(found.gone);
                outdated.extend(found.outdated);
            },
        )?;
        let effective = |change: &&Change| !change.is_deletion() && !outdated.contains(&change.id);
        let changed = changes.changes().iter().filter(effective);
        let mut new = IdSet::default();
        for id in changed.flat_map(|change| changes.node_members(change)) {
            if !now.contains(id) && !before.contains(id) {
                new.insert(id);
            }
            now.insert(id);
        }
        let no_longer_needed = before.ids().filter(|id| !now.contains(*id)).collect();
        Ok(Self {
            now,
            no_longer_needed,
            new,
        })
    }
}

/// The nodes that are members of the relations of a block, and the relations whose changes are outdated.
#[derive(Default)]
struct Replaced {
    /// The nodes that are members of relations without an effective change.
    kept: Vec<i64>,
    /// The nodes that are members of relations that changes replace or delete.
    gone: Vec<i64>,
    /// The relations whose changes are older than the base.
    outdated: Vec<i64>,
}

impl Replaced {
    /// Adds the relations of a block.
    fn visit(
        &mut self,
        entry: &BlobEntry,
        block: &Block<'_>,
        changes: &ChangeSet,
    ) -> Result<(), FormatError> {
        let mut replaced = FxHashSet::default();
        let outdated = &mut self.outdated;
        for_each_changed(entry, block, changes, |change, is_replaced| {
            match change.key.0 {
                ObjectKind::Relation if is_replaced => drop(replaced.insert(change.id)),
                ObjectKind::Relation => outdated.push(change.id),
                ObjectKind::Node | ObjectKind::Way => {}
            };
        })?;
        block.for_each_member(|relation, kind, id| {
            if kind == ObjectKind::Node {
                if replaced.contains(&relation) {
                    self.gone.push(id)
                } else {
                    self.kept.push(id)
                }
            }
        })
    }
}

/// Finds nodes whose changes are older than the base, in blobs that contain several kinds of objects. In blobs that
/// contain only nodes, outdated changes are found when the blobs are written, before the ways.
fn outdated_in_mixed_blobs(
    file: &PbfFile,
    plan: &BlobPlan,
    changes: &ChangeSet,
    ctx: &Context,
) -> Result<Vec<i64>> {
    let is_mixed = |entry: &BlobEntry| {
        entry.kinds.contains(ObjectKind::Node) && entry.kinds.single().is_none()
    };
    let mut all = Vec::new();
    Scan::bare("look up nodes", file, plan, ctx).run(
        is_mixed,
        |entry, block| {
            let mut outdated = Vec::new();
            for_each_changed(entry, block, changes, |change, is_replaced| {
                if change.key.0 == ObjectKind::Node && !is_replaced {
                    outdated.push(change.id);
                }
            })?;
            Ok(outdated)
        },
        |outdated| all.extend(outdated),
    )?;
    Ok(all)
}

/// For each object of a block that has a change, calls `visit` with the change and with whether the change replaces the
/// object.
fn for_each_changed(
    entry: &BlobEntry,
    block: &Block<'_>,
    changes: &ChangeSet,
    mut visit: impl FnMut(&Change, bool),
) -> Result<(), FormatError> {
    let (Some(first), Some(last)) = (entry.first_key(), entry.last_key()) else {
        return Ok(());
    };
    let range = changes.range(first, last);
    let mut changes = &changes.changes()[range];
    let mut objects = block.walk();
    while let Some(key) = objects.next_key()? {
        while let [change, rest @ ..] = changes
            && change.key < key
        {
            changes = rest;
        }
        match changes {
            [] => break,
            [change, ..] if change.key == key => {
                let age = objects.version_info()?;
                let seconds = block.units.seconds(age.timestamp);
                let timestamp = (age.timestamp != 0).then_some(seconds);
                visit(change, change.replaces(age.version_number(), timestamp));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns a sample of nodes whose coordinates are in ways, with at most 16 nodes from each of at most 3 blobs. A base
/// that contains only tagged nodes and members of relations lacks many nodes of the sample.
fn sample_of_nodes(file: &PbfFile, plan: &BlobPlan, ctx: &Context) -> Result<IdSet> {
    const BLOBS: usize = 3;
    const NODES_A_BLOB: usize = 16;
    let may_have = |entry: &&BlobEntry| entry.may_have_locations();
    let blobs: Vec<&BlobEntry> = plan.entries.iter().filter(may_have).collect();
    let mut reader = BlobDecoder::new(&file.input, ctx);
    let mut sample = IdSet::default();
    for entry in blobs.iter().step_by(blobs.len().div_ceil(BLOBS).max(1)) {
        let payload = reader.payload(entry)?;
        let mut nodes = Vec::new();
        let looked = Block::parse_bare(payload).and_then(|block| {
            block.for_each_way_location(
                |_| true,
                |_, refs, locations| {
                    let locations = refs.iter().zip(locations.into_iter().flatten());
                    let located = locations.filter(|(_, location)| !location.is_none());
                    nodes.extend(located.map(|(id, _)| *id));
                },
            )
        });
        looked.map_err(|error| reader.error(entry, error))?;
        let step = nodes.len().div_ceil(NODES_A_BLOB).max(1);
        sample.extend(nodes.into_iter().step_by(step));
    }
    Ok(sample)
}

/// Reads the locations of the nodes with the given ids. The result does not contain nodes that are not in the file.
fn look_up(
    file: &PbfFile,
    plan: &BlobPlan,
    ids: &IdSet,
    ctx: &Context,
) -> Result<FxHashMap<i64, Option<Location>>> {
    let mut locations = FxHashMap::default();
    let may_have = |entry: &BlobEntry| {
        entry.kinds.contains(ObjectKind::Node)
            && !ids.is_empty()
            && (entry.kinds.single().is_none() || ids.may_meet(entry.min_id, entry.max_id))
    };
    Scan::bare("look up nodes", file, plan, ctx).run(
        may_have,
        |_, block| {
            let mut found = Vec::new();
            block.for_each_node(|id, location, _| {
                if ids.contains(id) {
                    found.push((id, location.filter(|location| location.is_on_earth())));
                }
            })?;
            Ok(found)
        },
        |found| locations.extend(found),
    )?;
    Ok(locations)
}
