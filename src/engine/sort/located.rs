//! Keeps the locations in ways correct when several inputs are merged into one file of current data.
//!
//! Two inputs may have different versions of a node. Only one version is written, so the ways of the other input have
//! the wrong location for the node. Inputs may also lack a node, and their ways may store different locations for it.
//! The output has one location for each node: the location of the node itself, if an input has the node, and otherwise
//! the newest location that ways store.
//!
//! Locations are kept in memory only for these nodes:
//!
//! - nodes whose location differs between inputs;
//! - nodes without a location in a way, and nodes that the input of a way may lack;
//! - nodes that no input has, if ways store different locations for them.

use super::kept::DuplicateChoice;
use super::merged::{BlockError, Merged, parse_blocks, units_by_index};
use super::stored::{LackingInput, NewestLocation, newest_locations};
use super::{MERGE_BUDGET, ResolvedDedupe};
use crate::engine::location_form::LocationForm;
use crate::engine::shards::{MergeStep, Shard, Sources};
use crate::error::{FormatResult, Result};
use crate::file::{BlobPlan, PbfFile, PlannedFile};
use crate::index::{IdSet, SharedIdSet};
use crate::io::Input;
use crate::osm::{Location, ObjectKind, id_from_rank};
use crate::pbf::{BlobEntry, BlobFlags, Block, HeaderBlock, MovedWays, WayNodes, feature};
use crate::runtime::{Context, Pass};
use rustc_hash::FxHashMap;

/// The treatment of the locations in ways.
#[derive(Debug, Default)]
pub(super) enum WayLocationRule {
    /// Locations in ways stay unchanged.
    #[default]
    Keep,
    /// Locations in ways are removed, because the ways of some inputs have none, and all nodes are in the inputs.
    Drop,
    /// Locations in ways are replaced by the locations that the nodes have in the output.
    Agree(MovedNodes),
}

/// The nodes whose location in a way may differ from their location in the output.
#[derive(Debug, Default)]
pub(super) struct MovedNodes {
    /// Nodes that have to be looked up in all inputs: a way has no location for the node, or the input of the way may
    /// lack the node.
    wanted: IdSet,
    /// Nodes for which ways of several inputs store different locations, each with the newest location. This location
    /// is used if no input has the node.
    stored: FxHashMap<i64, NewestLocation>,
    /// The locations of nodes in the output. Has those nodes of `wanted` that an input has, the nodes whose location
    /// differs between inputs, and the nodes in `stored`.
    locations: FxHashMap<i64, Option<Location>>,
    /// The keys of `locations`.
    ids: IdSet,
    /// The number of contradictions: nodes that no input has, and for which ways store different locations.
    contradictions: u64,
}

/// Whether a blob may have ways. The contents of a blob without an index are unknown.
fn may_have_ways(entry: &BlobEntry) -> bool {
    !entry.is_indexed() || entry.kinds.contains(ObjectKind::Way)
}

/// Returns the location form of a file, or `None` if the file has no ways.
fn location_form_if_ways(file: &PbfFile, plan: &BlobPlan) -> Option<LocationForm> {
    let has_ways = plan.kinds().contains(ObjectKind::Way);
    has_ways.then(|| LocationForm::of(file, plan))
}

impl WayLocationRule {
    /// Decides how the locations in the ways of several inputs are treated, and sets the declarations about locations
    /// in `header`, the header of the output. Reads the ways of the inputs if the decision is [`Agree`](Self::Agree).
    pub(super) fn decide(
        files: &[PbfFile],
        plans: &[BlobPlan],
        kept: ResolvedDedupe,
        header: &mut HeaderBlock,
        ctx: &Context,
    ) -> Result<Self> {
        if files.len() < 2 || header.has(feature::HISTORY) {
            return Ok(Self::Keep);
        }
        let inputs = files.iter().zip(plans);
        let with_ways = inputs.filter_map(|(file, plan)| {
            let form = location_form_if_ways(file, plan)?;
            Some((file, plan, form))
        });
        let (located, plain): (Vec<_>, Vec<_>) =
            with_ways.partition(|(_, _, form)| form.has_locations());
        let may_lack_nodes = located.iter().any(|(_, _, form)| form.may_lack_nodes());
        match kept {
            ResolvedDedupe::HighestVersion | ResolvedDedupe::EachVersion(_) => {}
            // If all versions are written, only the locations of nodes that no input has are compared.
            ResolvedDedupe::All if may_lack_nodes => {}
            ResolvedDedupe::All | ResolvedDedupe::LastChange(_) => return Ok(Self::Keep),
        }
        if located.is_empty() {
            return Ok(Self::Keep);
        }
        let declares = |name| move |(file, _, _): &(&PbfFile, _, _)| file.header.has(name);
        let is_declared = located.iter().any(declares(feature::LOCATIONS));
        if let Some((file, _, _)) = plain.first()
            && is_declared
            && !may_lack_nodes
        {
            ctx.warn(format!(
                "the locations in ways are removed, because the ways of {} have none \
                 (add-locations-to-ways adds them)",
                file.input.path().display()
            ));
            header.declare_locations(None);
            return Ok(Self::Drop);
        }
        // The output declares a feature about locations in ways if all inputs with ways declare it. Otherwise it may
        // mix ways with and without locations, as the inputs do.
        for name in [feature::LOCATIONS, feature::ALL_NODES] {
            if plain.is_empty() && located.iter().all(declares(name)) {
                header.set_optional(name, true);
            }
        }
        Ok(Self::Agree(MovedNodes::find(&located, ctx)?))
    }

    /// Whether the ways of a blob may get other locations. If so, the blob has to be decoded, and cannot simply be
    /// copied.
    pub(super) fn may_change(&self, entry: &BlobEntry) -> bool {
        may_have_ways(entry)
            && match self {
                Self::Keep => false,
                Self::Drop => entry.flags.has(BlobFlags::LOCATIONS),
                Self::Agree(moved) => !moved.ids.is_empty(),
            }
    }

    /// Returns a payload in which the ways have the locations that the nodes have in the output. Returns `None` if the
    /// payload does not change.
    pub(super) fn relocate(
        &self,
        entry: &BlobEntry,
        payload: &[u8],
    ) -> FormatResult<Option<Vec<u8>>> {
        let Self::Agree(moved) = self else {
            return Ok(None);
        };
        if moved.ids.is_empty() || !may_have_ways(entry) {
            return Ok(None);
        }
        let block = Block::parse(payload)?;
        let nodes = WayNodes::from_block(&block)?;
        let mut found = Vec::new();
        moved.ids.append_present(&nodes.refs, &mut found);
        let location_of = |id: i64| moved.locations.get(&id).copied();
        let ways = MovedWays::find(&block, &nodes, found, location_of)?;
        if ways.is_empty() {
            return Ok(None);
        }
        let mut out = Vec::new();
        ways.put_block(&block, &mut out)?;
        Ok(Some(out))
    }

    /// Fills the [`MovedNodes`] of [`WayLocationRule::Agree`]. Does nothing for the other variants. Reads the nodes of
    /// all steps that may have moved nodes.
    pub(super) fn find_moved(
        &mut self,
        steps: &[MergeStep],
        inputs: &[&Input],
        kept: ResolvedDedupe,
        ctx: &Context,
    ) -> Result<()> {
        let Self::Agree(moved) = self else {
            return Ok(());
        };
        let wanted = &moved.wanted;
        let has_nodes = |entry: &BlobEntry| entry.kinds.contains(ObjectKind::Node);
        let shards = steps.iter().filter_map(|step| match step {
            MergeStep::Merge(shard) => {
                let is_needed = shard.sources.len() > 1 || !wanted.is_empty();
                let nodes = shard.sources.iter().any(|source| has_nodes(&source.entry));
                (is_needed && nodes).then(|| shard.clone())
            }
            MergeStep::Copy(source) => {
                let entry = &source.entry;
                let is_needed = wanted.may_meet_blob(entry, ObjectKind::Node);
                is_needed.then(|| Shard::of(*source))
            }
        });
        let mut locations: FxHashMap<i64, Option<Location>> = FxHashMap::default();
        Pass::new("compare nodes", ctx)
            .with_budget(MERGE_BUDGET)
            .run(
                shards.collect(),
                || Sources::new(inputs, ctx),
                |sources, shard| moved_nodes(sources, &shard, kept, wanted),
                |found| {
                    locations.extend(found);
                    Ok(())
                },
            )?;
        moved.set_locations(locations, ctx);
        Ok(())
    }

    /// Returns the number of contradictions: nodes that no input has, and for which ways of the inputs store different
    /// locations.
    pub(super) const fn contradiction_count(&self) -> u64 {
        match self {
            Self::Agree(moved) => moved.contradictions,
            Self::Keep | Self::Drop => 0,
        }
    }
}

impl MovedNodes {
    /// Reads the ways of `inputs`, and collects the nodes in `wanted` and `stored`. `inputs` must be the inputs whose
    /// ways have locations.
    fn find(inputs: &[(&PbfFile, &BlobPlan, LocationForm)], ctx: &Context) -> Result<Self> {
        let (mut wanted, mut lacking) = (IdSet::default(), Vec::new());
        for (file, plan, form) in inputs {
            let refs =
                node_ids_of_located_ways(PlannedFile::new(file, plan, ctx), form.may_lack_nodes())?;
            wanted.extend(refs.ids());
            if form.may_lack_nodes() {
                lacking.push(LackingInput { file, plan, refs });
            }
        }
        Ok(Self {
            wanted,
            stored: newest_locations(&lacking, ctx)?,
            ..Self::default()
        })
    }

    /// Sets the locations that nodes have in the output, and counts contradictions. `locations` has the locations of
    /// those nodes that an input has.
    fn set_locations(&mut self, locations: FxHashMap<i64, Option<Location>>, ctx: &Context) {
        self.locations = locations;
        for (id, newest) in &self.stored {
            if !self.locations.contains_key(id) {
                self.locations.insert(*id, Some(newest.location));
                self.contradictions += u64::from(newest.contradicts);
            }
        }
        self.ids = self.locations.keys().copied().collect();
        if self.contradictions > 0 {
            let nodes = match self.contradictions {
                1 => "1 node".to_owned(),
                count => format!("{count} nodes"),
            };
            ctx.warn(format!(
                "the ways of the inputs have different locations for {nodes} that no input has: the newest locations \
                 are written"
            ));
        }
    }
}

/// Returns the nodes of those ways of a file that store locations. Unless `all` is set, returns only the nodes whose
/// location is missing in one of these ways.
fn node_ids_of_located_ways(source: PlannedFile<'_>, all: bool) -> Result<IdSet> {
    let ids = SharedIdSet::default();
    source.scan("scan ways").run(
        |entry| entry.kinds.contains(ObjectKind::Way),
        |_, block| {
            let mut nodes = Vec::new();
            block.for_each_wanted_way(
                |_| true,
                |_, refs, locations| {
                    // A way without any locations stays without locations.
                    let Some(locations) = locations else {
                        return;
                    };
                    let located = refs.iter().zip(locations);
                    let missing = located.filter(|(_, location)| all || location.is_none());
                    nodes.extend(missing.map(|(id, _)| *id));
                },
            )?;
            ids.add(&nodes.as_slice().into());
            Ok(())
        },
        |()| {},
    )?;
    Ok(ids.into_set(source.ctx.jobs))
}

/// Returns the nodes of a shard that are in `wanted`, and those whose location differs between inputs. Each node comes
/// with its location in the output.
fn moved_nodes(
    sources: &mut Sources,
    shard: &Shard,
    kept: ResolvedDedupe,
    wanted: &IdSet,
) -> Result<Vec<(i64, Option<Location>)>> {
    let payloads = shard.sources.iter().map(|source| sources.payload(source));
    let payloads = payloads.collect::<Result<Vec<_>>>()?;
    let found = moved_nodes_of_payloads(&payloads, shard, kept, wanted);
    found.map_err(|error| sources.shard_error(shard, error))
}

/// Does the same as [`moved_nodes`], with the payloads of the blobs of the shard.
fn moved_nodes_of_payloads(
    payloads: &[Vec<u8>],
    shard: &Shard,
    kept: ResolvedDedupe,
    wanted: &IdSet,
) -> Result<Vec<(i64, Option<Location>)>, BlockError> {
    let blocks = parse_blocks(payloads)?;
    let mut merged = Merged::new(&blocks, shard)?;
    let units = units_by_index(&blocks);
    let mut found = Vec::new();
    let mut note = |id: i64, location: Option<Location>, differs: bool| {
        if differs || wanted.contains(id) {
            found.push((id, location));
        }
    };
    // The node that is kept so far: the index of its source, the object, its location, and whether another version of
    // the node has a different location.
    let mut last = None;
    while let Some((index, object)) = merged.next()? {
        if object.key.0 != ObjectKind::Node {
            continue;
        }
        let object = *object;
        let failed = |error| (index, error);
        let stored = object.location().map_err(failed)?;
        let location = stored.and_then(|(lat, lon)| units(index).location(lat, lon));
        match last {
            Some((source, before, location_before, differs)) => {
                let choice = kept.choose((&before, &units(source)), (&object, &units(index)));
                let differs_now = differs || location != location_before;
                last = Some(match choice.map_err(failed)? {
                    _ if before.key != object.key => {
                        note(id_from_rank(before.key.1), location_before, differs);
                        (index, object, location, false)
                    }
                    // If both versions are written, the location of the last one is used.
                    DuplicateChoice::Second | DuplicateChoice::Both => {
                        (index, object, location, differs_now)
                    }
                    DuplicateChoice::First => (source, before, location_before, differs_now),
                });
            }
            None => last = Some((index, object, location, false)),
        }
    }
    if let Some((_, before, location, differs)) = last {
        note(id_from_rank(before.key.1), location, differs);
    }
    Ok(found)
}
