//! Determines which nodes of ways the base contains as objects, and which of them the output contains.

use crate::commands::add_locations_to_ways::read_member_node_ids;
use crate::engine::location_form::LocationForm;
use crate::error::{Advice, Error, Result, display_path};
use crate::file::{BlobDecoder, PlannedFile};
use crate::index::IdSet;
use crate::osm::{Location, ObjectKind};
use crate::pbf::{BlobEntry, BlobFlags, Block, feature};
use rustc_hash::FxHashMap;

/// The treatment of nodes that have no tags and are members of no relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum UntaggedNodes {
    /// These nodes are left out if the base has none of them. Otherwise they are kept. Nodes that changed recently are
    /// always kept.
    #[default]
    AsBase,
    /// These nodes are kept.
    Keep,
}

/// The extent to which a base contains the nodes of its ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BaseNodes {
    /// The base contains all nodes of its ways.
    All,
    /// The base contains only nodes with tags, members of relations, and nodes that changed recently.
    Needed,
    /// The base may lack nodes of its ways, but contains other nodes that only ways need.
    Some,
}

impl BaseNodes {
    /// Determines which nodes the base contains. If the header does not declare this, looks up a sample of the nodes of
    /// ways; headers written by other programs never declare it. The result is `Needed` if the base has fewer than half
    /// of the nodes of the sample, every way stores locations, and every node of the base has tags or is a member of a
    /// relation. Otherwise, the result is `Some`. The header of the output declares the result, so that later runs do
    /// not have to decide again.
    fn of(source: PlannedFile<'_>) -> Result<Self> {
        match LocationForm::of(source.file, source.plan) {
            // A `Plain` base has no ways: a base with ways but without locations has been refused.
            LocationForm::Plain | LocationForm::AllNodes => Ok(Self::All),
            LocationForm::NeededNodes => Ok(Self::Needed),
            LocationForm::Mixed if source.file.header.has(feature::SOME_NODES) => Ok(Self::Some),
            LocationForm::Mixed => {
                let sample = sample_nodes(source)?;
                let there = look_up(source, &sample)?.len() as u64;
                let lacks_nodes = there < sample.len() / 2;
                let may_omit = || -> Result<bool> {
                    Ok(!has_bare_ways(source)? && !has_unneeded_nodes(source)?)
                };
                Ok(if lacks_nodes && may_omit()? {
                    Self::Needed
                } else {
                    Self::Some
                })
            }
        }
    }
}

/// A base whose ways have locations.
pub(super) struct LocatedBase<'b> {
    pub source: PlannedFile<'b>,
    pub nodes: BaseNodes,
    untagged: UntaggedNodes,
}

impl<'b> LocatedBase<'b> {
    /// Determines which nodes the base contains. Fails if its ways have no locations.
    pub(super) fn of(source: PlannedFile<'b>, untagged: UntaggedNodes) -> Result<Self> {
        check_has_locations(source)?;
        Ok(Self {
            source,
            nodes: BaseNodes::of(source)?,
            untagged,
        })
    }

    /// Whether the output leaves out nodes that have no tags and are members of no relation.
    pub(super) fn omits_nodes(&self) -> bool {
        self.nodes == BaseNodes::Needed && self.untagged == UntaggedNodes::AsBase
    }

    /// Returns the feature that declares which nodes the output has.
    pub(super) const fn output_header_feature(&self) -> &'static str {
        match (self.nodes, self.untagged) {
            (BaseNodes::All, _) => feature::ALL_NODES,
            (BaseNodes::Needed, UntaggedNodes::AsBase) => feature::NEEDED_NODES,
            (BaseNodes::Needed, UntaggedNodes::Keep) | (BaseNodes::Some, _) => feature::SOME_NODES,
        }
    }
}

/// Fails if no way of the base has locations. Warns if the ways of some blobs have none.
fn check_has_locations(source: PlannedFile<'_>) -> Result<()> {
    let with_ways = || {
        let entries = source.plan.entries.iter();
        entries.filter(|entry| entry.kinds.contains(ObjectKind::Way))
    };
    // A per-blob index does not record whether ways have locations. If a blob has only this index, the header decides.
    let is_without = |entry: &&BlobEntry| {
        if entry.flags.has(BlobFlags::SCANNED) {
            !entry.flags.has(BlobFlags::LOCATIONS)
        } else {
            !source.file.header.has(feature::LOCATIONS)
        }
    };
    let (without, all) = (with_ways().filter(is_without).count(), with_ways().count());
    let path = source.file.input.path();
    let declares = source.file.header.has(feature::LOCATIONS);
    if !declares && all > 0 && without == all {
        let cause = "the ways have no locations that could be kept up to date";
        return Err(Error::file(path, cause).advise(Advice::AddLocations));
    }
    if without > 0 {
        source.ctx.warn(format!(
            "{}: in {without} of {all} blobs the ways have no locations, and get none",
            display_path(path)
        ));
    }
    Ok(())
}

/// Whether the file has a way that stores no locations. Reads all ways.
fn has_bare_ways(source: PlannedFile<'_>) -> Result<bool> {
    let mut has_any = false;
    source.scan("scan ways").run(
        |entry| entry.kinds.contains(ObjectKind::Way),
        |_, block| {
            let mut is_bare = false;
            let note = |_, _: &[i64], stored: Option<&[_]>| is_bare |= stored.is_none();
            block.for_each_wanted_way(|_| true, note)?;
            Ok(is_bare)
        },
        |is_bare| has_any |= is_bare,
    )?;
    Ok(has_any)
}

/// Whether the file has a node without tags that is not a member of any relation. Reads the relations and the nodes.
fn has_unneeded_nodes(source: PlannedFile<'_>) -> Result<bool> {
    let (members, mut has_any) = (read_member_node_ids(source)?, false);
    source.scan("look up nodes").run(
        |entry| entry.kinds.contains(ObjectKind::Node),
        |_, block| {
            let mut is_spare = false;
            block
                .for_each_node(|id, _, has_tags| is_spare |= !has_tags && !members.contains(id))?;
            Ok(is_spare)
        },
        |is_spare| has_any |= is_spare,
    )?;
    Ok(has_any)
}

/// Returns a sample of nodes whose coordinates are in ways, with at most 16 nodes from each of at most 3 blobs. A base
/// that contains only tagged nodes and members of relations lacks many nodes of the sample.
fn sample_nodes(source: PlannedFile<'_>) -> Result<IdSet> {
    const BLOBS: usize = 3;
    const NODES_A_BLOB: usize = 16;
    let may_have = |entry: &&BlobEntry| entry.may_have_locations();
    let blobs: Vec<&BlobEntry> = source.plan.entries.iter().filter(may_have).collect();
    let mut reader = BlobDecoder::new(&source.file.input, source.ctx);
    let mut sample = IdSet::default();
    for entry in blobs.iter().step_by(blobs.len().div_ceil(BLOBS).max(1)) {
        let payload = reader.payload(entry)?;
        let mut nodes = Vec::new();
        let looked = Block::parse_without_strings(payload).and_then(|block| {
            block.for_each_wanted_way(
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
pub(super) fn look_up(
    source: PlannedFile<'_>,
    ids: &IdSet,
) -> Result<FxHashMap<i64, Option<Location>>> {
    let mut locations = FxHashMap::default();
    source.scan("look up nodes").collect(
        |entry| ids.may_meet_blob(entry, ObjectKind::Node),
        |block, found| {
            block.for_each_selected_location(
                |block_ids, selected| ids.append_present(block_ids, selected),
                |id, location| found.push((id, location)),
            )
        },
        &mut locations,
    )?;
    Ok(locations)
}
