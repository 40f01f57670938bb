//! Looks up which objects of the changes the base has, and where the nodes of changed ways lie.

use super::completion::CompletionRule;
use super::region::ClipRegion;
use crate::commands::extract::Strategy;
use crate::engine::location_form::LocationForm;
use crate::engine::stored_locations::for_each_stored_location;
use crate::error::{FormatResult, Result};
use crate::file::{BlobDecoder, PlannedFile};
use crate::formats::{Change, ChangeSet};
use crate::index::{IdSet, IdSets};
use crate::osm::{ObjectId, ObjectKind, id_rank};
use crate::pbf::{BlobEntry, Block, BlockWalk, WayNodes};

/// The facts about a base that decide which changes are kept.
#[derive(Debug, Default)]
pub(super) struct BaseFacts {
    /// The objects of the base that are changed, are nodes of changed ways, or are members of changed relations.
    pub present: IdSets,
    /// The nodes of changed ways whose location in the base lies in the region.
    pub inside: IdSet,
    /// The changed objects with a newer version in the base. Their changes have no effect.
    pub outdated: IdSets,
    /// Nodes of changed ways whose locations are stored in ways of the base. Neither the base nor the changes have
    /// these nodes.
    pub stored: IdSet,
    /// The nodes in `stored` that lie in the region.
    pub stored_inside: IdSet,
    /// The changed nodes that are neither in the base nor in the region, although unchanged ways of the base refer to
    /// them.
    pub referred: IdSet,
    /// The changed objects that are members of unchanged relations of the base, if the strategy completes these
    /// relations.
    pub of_completed: IdSets,
    /// Whether ways of the base store locations.
    pub is_located: bool,
}

/// The search for the facts about a base.
#[derive(Clone, Copy)]
pub(super) struct BaseLookup<'l> {
    pub source: PlannedFile<'l>,
    pub changes: &'l ChangeSet,
    pub strategy: &'l Strategy,
    pub region: &'l ClipRegion,
}

/// The facts that a lookup finds in a block of relations.
#[derive(Default)]
struct RelationsOfBlock {
    present: Vec<i64>,
    outdated: Vec<i64>,
    of_completed: Vec<ObjectId>,
}

/// The facts that a lookup finds in a block of ways.
#[derive(Default)]
struct WaysOfBlock {
    present: Vec<i64>,
    outdated: Vec<i64>,
    referred: Vec<i64>,
    /// Nodes with a stored location, and whether it lies in the region.
    stored: Vec<(i64, bool)>,
}

/// A node of the base that was looked up.
struct NodeOfBase {
    id: i64,
    is_inside: bool,
    /// Whether the base has a newer version than the changes.
    is_newer: bool,
}

impl BaseLookup<'_> {
    /// Looks up all facts. A pass reads only the blobs that may have a wanted object, according to their ranges of ids,
    /// with two exceptions. All relations are read if the strategy completes relations. All ways are read if nodes that
    /// the base lacks have to be looked for in ways: changed nodes outside of the region and, if ways store locations,
    /// nodes of changed ways.
    pub(super) fn run(&self) -> Result<BaseFacts> {
        let mut facts = BaseFacts {
            is_located: LocationForm::of(self.source.file, self.source.plan).has_locations(),
            ..BaseFacts::default()
        };
        let changes = self.changes.changes().iter();
        let changed: IdSets = changes.map(Change::object_id).collect();
        self.find_relations(&changed, &mut facts)?;
        self.find_nodes(&changed, &mut facts)?;
        self.find_ways(&changed, &mut facts)?;
        Ok(facts)
    }

    /// Whether an object of the base lies in the region: a node or, if ways store locations, a node of a way.
    pub(super) fn is_anything_inside(&self) -> Result<bool> {
        let entries = self.source.plan.entries.iter();
        let nodes = entries.clone().filter(|entry| {
            entry.kinds.contains(ObjectKind::Node) && self.region.may_have_node_of(entry)
        });
        let has_nodes = self.any_block_matches(nodes, |block| {
            let (mut test, mut found) = (self.region.location_test(), false);
            block.for_each_location(|_, location| {
                found = found || location.is_some_and(|location| test.has(location));
            })?;
            Ok(found)
        })?;
        let ways = entries.filter(|entry| entry.may_have_locations());
        let is_located = LocationForm::of(self.source.file, self.source.plan).has_locations();
        if has_nodes || !is_located {
            return Ok(has_nodes);
        }
        self.any_block_matches(ways, |block| {
            let (mut test, mut found) = (self.region.location_test(), false);
            block.for_each_wanted_way(
                |_| true,
                |_, _, stored| {
                    let mut stored = stored.into_iter().flatten().flatten();
                    found = found || stored.any(|location| test.has(*location));
                },
            )?;
            Ok(found)
        })
    }

    /// Whether `test` returns `true` for one of the blobs. Reads no further blobs after the first such blob.
    fn any_block_matches<'e>(
        &self,
        entries: impl Iterator<Item = &'e BlobEntry>,
        test: impl Fn(&Block<'_>) -> FormatResult<bool>,
    ) -> Result<bool> {
        let mut reader = BlobDecoder::new(&self.source.file.input, self.source.ctx);
        for entry in entries {
            let payload = reader.payload(entry)?;
            let found = Block::parse_without_strings(payload).and_then(|block| test(&block));
            if found.map_err(|error| reader.error(entry, error))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the changes that create or modify ways.
    fn changed_ways(&self) -> impl Iterator<Item = &Change> {
        let changes = self.changes.changes().iter();
        changes.filter(|change| change.kind() == ObjectKind::Way && !change.is_deletion())
    }

    /// Returns the members of the given kind in the changed relations. Ignores a relation if its members do not decide
    /// whether it is kept or completed.
    fn wanted_members(&self, facts: &BaseFacts, kind: ObjectKind) -> IdSet {
        let is_smart = matches!(self.strategy, Strategy::Smart { .. });
        let mut wanted = IdSet::default();
        for change in self.changes.changes() {
            let is_new = !facts.present.contains(ObjectKind::Relation, change.id());
            if self.strategy.keeps_relations() && (is_new || is_smart) {
                let members = self.changes.member_ids(change);
                wanted.extend(
                    members
                        .filter(|member| member.kind == kind)
                        .map(|member| member.id),
                );
            }
        }
        wanted
    }

    /// Finds the relations of the base that are changed or are members of changed relations, and the changed members of
    /// completed relations.
    fn find_relations(&self, changed: &IdSets, facts: &mut BaseFacts) -> Result<()> {
        let mut wanted = changed.of(ObjectKind::Relation).clone();
        if self.strategy.completes_ways() {
            wanted.extend(self.wanted_members(facts, ObjectKind::Relation).ids());
        }
        let completion = CompletionRule::of(self.strategy);
        let mut scan = self.source.scan("look up relations");
        if completion.is_some() {
            scan = scan.with_strings();
        }
        scan.run(
            |entry| {
                let is_read = completion.is_some() && entry.kinds.contains(ObjectKind::Relation);
                is_read || may_have(entry, ObjectKind::Relation, &wanted)
            },
            |_, block| {
                let mut found = RelationsOfBlock::default();
                let mut objects = block.walk();
                while let Some(kind) = objects.next()? {
                    if kind != ObjectKind::Relation {
                        continue;
                    }
                    let id = objects.id()?;
                    if wanted.contains(id) {
                        found.present.push(id);
                    }
                    let mut is_changed = changed.contains(kind, id);
                    if is_changed && self.is_change_outdated(kind, id, version_of(&mut objects)?) {
                        found.outdated.push(id);
                        is_changed = false;
                    }
                    if let Some(completion) = &completion
                        && !is_changed
                        && completion.applies_by_tags(block, &mut objects)?
                    {
                        objects.any_member(|kind, id| {
                            if changed.contains(kind, id) {
                                found.of_completed.push(ObjectId { kind, id });
                            }
                            false
                        })?;
                    }
                }
                Ok(found)
            },
            |found| {
                let kind = ObjectKind::Relation;
                facts.present.of_mut(kind).extend(found.present);
                facts.outdated.of_mut(kind).extend(found.outdated);
                facts.of_completed.extend(found.of_completed);
            },
        )
    }

    /// Finds the nodes of the base that are changed, belong to changed ways, or are members of changed relations.
    fn find_nodes(&self, changed: &IdSets, facts: &mut BaseFacts) -> Result<()> {
        let refs = self.changed_ways().flat_map(|way| self.changes.refs(way));
        let of_ways: IdSet = refs.copied().collect();
        let mut wanted = changed.of(ObjectKind::Node).clone();
        wanted.extend(of_ways.ids());
        wanted.extend(self.wanted_members(facts, ObjectKind::Node).ids());
        self.source.scan("look up nodes").run_on_node_versions(
            |entry| may_have(entry, ObjectKind::Node, &wanted),
            |entry| may_have(entry, ObjectKind::Node, &of_ways),
            |nodes| {
                let (mut found, mut test) = (Vec::new(), self.region.location_test());
                nodes.for_each_selected_version(
                    |ids, selected| wanted.append_present(ids, selected),
                    |id| of_ways.contains(id),
                    |id, location, version| {
                        let location = location
                            .filter(|location| of_ways.contains(id) && location.is_on_earth());
                        found.push(NodeOfBase {
                            id,
                            is_inside: location.is_some_and(|location| test.has(location)),
                            is_newer: self.is_change_outdated(ObjectKind::Node, id, version),
                        });
                    },
                )?;
                Ok(found)
            },
            |found| {
                let kind = ObjectKind::Node;
                for node in found {
                    facts.present.insert(kind, node.id);
                    if node.is_inside {
                        facts.inside.insert(node.id);
                    }
                    if node.is_newer {
                        facts.outdated.insert(kind, node.id);
                    }
                }
            },
        )
    }

    /// Whether the newest change of an object is older than `version`, the version in the base. Returns `false` for an
    /// object without a change.
    fn is_change_outdated(&self, kind: ObjectKind, id: i64, version: Option<u32>) -> bool {
        let key = (kind, id_rank(id));
        let changes = self.changes.range(key, key);
        let newest = self.changes.changes()[changes].last();
        newest.is_some_and(|change| !change.replaces(version, None))
    }

    /// Finds the ways of the base that are changed, and those that are members of changed relations. Also finds the
    /// nodes to which ways of the base refer although the base does not have them.
    fn find_ways(&self, changed: &IdSets, facts: &mut BaseFacts) -> Result<()> {
        let mut wanted = changed.of(ObjectKind::Way).clone();
        wanted.extend(self.wanted_members(facts, ObjectKind::Way).ids());
        // If ways do not store locations, a node outside of the region matters only to strategies that complete ways.
        let follows_nodes = facts.is_located || self.strategy.completes_ways();
        let absent = if follows_nodes {
            self.absent_nodes(changed, facts)
        } else {
            IdSet::default()
        };
        let unlocated: IdSet = if facts.is_located {
            let refs = self.changed_ways().flat_map(|way| self.changes.refs(way));
            refs.copied()
                .filter(|id| {
                    !changed.contains(ObjectKind::Node, *id)
                        && !facts.present.contains(ObjectKind::Node, *id)
                })
                .collect()
        } else {
            IdSet::default()
        };
        let nodes = NodesInWays {
            changed,
            absent,
            unlocated,
        };
        let reads_all = !nodes.absent.is_empty() || !nodes.unlocated.is_empty();
        self.source.scan("look up ways").run(
            |entry| {
                let is_read = reads_all && entry.kinds.contains(ObjectKind::Way);
                is_read || may_have(entry, ObjectKind::Way, &wanted)
            },
            |_, block| self.ways_of_block(&nodes, &wanted, block),
            |found| {
                let kind = ObjectKind::Way;
                facts.present.of_mut(kind).extend(found.present);
                facts.outdated.of_mut(kind).extend(found.outdated);
                facts.referred.extend(found.referred);
                for (id, is_inside) in found.stored {
                    if facts.stored.insert(id) && is_inside {
                        facts.stored_inside.insert(id);
                    }
                }
            },
        )
    }

    /// Finds the ways of a block that are in `wanted`, and the `wanted_nodes` in all ways of the block.
    fn ways_of_block(
        &self,
        wanted_nodes: &NodesInWays<'_>,
        wanted: &IdSet,
        block: &Block<'_>,
    ) -> FormatResult<WaysOfBlock> {
        let NodesInWays {
            changed,
            absent,
            unlocated,
        } = wanted_nodes;
        let nodes = WayNodes::from_block(block)?;
        let ways = nodes.ways.iter().map(|(id, _)| *id);
        let mut found = WaysOfBlock {
            present: ways.filter(|id| wanted.contains(*id)).collect(),
            ..WaysOfBlock::default()
        };
        let kind = ObjectKind::Way;
        if found.present.iter().any(|id| changed.contains(kind, *id)) {
            found.outdated = self.ways_with_outdated_change(changed, block)?;
        }
        absent.for_each_present(&nodes.refs, |at| {
            // If the changes replace this version of the way, its references do not matter.
            let way = nodes.way_id_of(at);
            if !changed.contains(kind, way) || found.outdated.contains(&way) {
                found.referred.push(nodes.refs[at]);
            }
        });
        let mut test = self.region.location_test();
        for_each_stored_location(block, &nodes, unlocated, |_, id, location| {
            if let Some(location) = location.filter(|location| location.is_on_earth()) {
                found.stored.push((id, test.has(location)));
            }
        })?;
        Ok(found)
    }

    /// Returns the changed ways of which the block has a newer version than the changes.
    fn ways_with_outdated_change(
        &self,
        changed: &IdSets,
        block: &Block<'_>,
    ) -> FormatResult<Vec<i64>> {
        let (mut objects, mut outdated) = (block.walk(), Vec::new());
        while let Some(kind) = objects.next()? {
            let id = objects.id()?;
            let is_changed = kind == ObjectKind::Way && changed.contains(kind, id);
            if is_changed && self.is_change_outdated(kind, id, version_of(&mut objects)?) {
                outdated.push(id);
            }
        }
        Ok(outdated)
    }

    /// Returns the changed nodes that are neither in the base nor in the region.
    fn absent_nodes(&self, changed: &IdSets, facts: &BaseFacts) -> IdSet {
        let inside = self.region.changed_nodes_inside(self.changes);
        let is_absent =
            |id: &i64| !facts.present.contains(ObjectKind::Node, *id) && !inside.contains(*id);
        changed
            .of(ObjectKind::Node)
            .ids()
            .filter(is_absent)
            .collect()
    }
}

/// The nodes to look for in the ways of the base.
struct NodesInWays<'n> {
    /// The changed objects.
    changed: &'n IdSets,
    /// The changed nodes outside of the region that the base does not have.
    absent: IdSet,
    /// The nodes of changed ways that neither the base nor the changes have.
    unlocated: IdSet,
}

/// Returns the version number of the current object of a walk.
fn version_of(object: &mut BlockWalk<'_>) -> FormatResult<Option<u32>> {
    Ok(object.version_info()?.version_number())
}

/// Whether a blob may have an object of a kind with an id in `ids`, according to the blob's range of ids.
fn may_have(entry: &BlobEntry, kind: ObjectKind, ids: &IdSet) -> bool {
    let is_single = entry.kinds.single().is_some();
    entry.kinds.contains(kind)
        && !ids.is_empty()
        && (!is_single || ids.may_meet(entry.min_id, entry.max_id))
}
