//! The threads that make features of the objects of blobs.

use super::builder::{Builder, Tally};
use super::feature_buffer::{FeatureBuffer, FeatureForm};
use super::members::select;
use super::problem::Problem;
use super::{FeatureRules, GeometryTypes, Incomplete, Options};
use crate::area::{WayBatch, WayStore};
use crate::engine::way_locations::WayLocations;
use crate::error::{FormatError, Result};
use crate::file::BlobReader;
use crate::formats::features::FeatureChunk;
use crate::index::{NodeBatch, RankSet};
use crate::io::Input;
use crate::osm::{Location, ObjectFilter, ObjectKind};
use crate::pbf::{BlobEntry, Block, Element, WayNodes};
use crate::runtime::{ChunkSender, Context};
use std::sync::Arc;

/// The choices of the user that workers need.
pub(super) struct Shared {
    pub form: FeatureForm,
    pub rules: FeatureRules,
    pub types: GeometryTypes,
    pub keep_untagged: bool,
    pub filter: ObjectFilter,
    pub incomplete: Incomplete,
    /// Whether problems are reported one by one.
    pub reports: bool,
}

impl Shared {
    pub(super) fn new(
        options: &Options,
        form: FeatureForm,
        filter: ObjectFilter,
        reports: bool,
    ) -> Self {
        Self {
            form,
            rules: options.rules.clone(),
            types: options.geometry_types,
            keep_untagged: options.keep_untagged,
            filter,
            incomplete: options.incomplete,
            reports,
        }
    }

    /// Whether the filter may select objects of a kind.
    fn may_select(&self, kind: ObjectKind) -> bool {
        self.filter.expressions().is_empty() || self.filter.kinds().contains(kind)
    }

    /// Whether nodes may become features.
    pub(super) fn has_points(&self) -> bool {
        self.types.points && self.may_select(ObjectKind::Node)
    }

    /// Whether ways may become features.
    pub(super) fn has_ways(&self) -> bool {
        (self.types.lines || self.types.areas) && self.may_select(ObjectKind::Way)
    }

    /// Whether relations may become features.
    pub(super) fn has_areas(&self) -> bool {
        self.types.areas && self.may_select(ObjectKind::Relation)
    }
}

/// Whether a relation with these tags becomes an area.
pub(super) fn is_area<'a>(mut tags: impl Iterator<Item = (&'a str, &'a str)>) -> bool {
    let type_of = tags.find(|(key, _)| *key == "type");
    matches!(type_of, Some((_, "multipolygon" | "boundary")))
}

/// The task of a pass.
#[derive(Clone)]
pub(super) enum Task {
    Nodes(NodeTask),
    /// The ranks of the ways whose nodes are wanted, and the locations of nodes, unless the ways have them.
    Ways(Arc<RankSet>, Option<Arc<WayLocations>>),
    /// The nodes of the member ways of areas.
    Relations(Arc<WayStore>),
}

/// The task of a pass over nodes.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeTask {
    /// Whether nodes become features.
    pub has_points: bool,
    /// Whether the locations of all nodes are wanted.
    pub has_locations: bool,
}

/// The results of a worker.
pub(super) enum Found {
    Features(FeatureChunk),
    Problems(Vec<Problem>),
    Nodes(NodeBatch),
    Ways(WayBatch),
    /// The blob is done.
    Done(BlobEntry, Tally),
}

/// The state of a thread.
pub(super) struct Worker {
    reader: BlobReader,
    features: FeatureBuffer,
    shared: Arc<Shared>,
}

impl Worker {
    pub(super) fn new(input: &Input, shared: &Arc<Shared>, ctx: &Context) -> Self {
        Self {
            reader: BlobReader::new(input, ctx),
            features: FeatureBuffer::new(&shared.form),
            shared: shared.clone(),
        }
    }

    /// Makes features of the objects of a blob.
    pub(super) fn blob(
        &mut self,
        task: &Task,
        entry: &BlobEntry,
        chunks: &ChunkSender<Found>,
    ) -> Result<()> {
        #[cfg(feature = "parquet")]
        self.features.check()?;
        let mut builder = Builder::new(&self.shared, &mut self.features, chunks);
        let tally = self.reader.decode(entry, |payload| {
            let block = Block::parse(payload)?;
            match task {
                Task::Nodes(task) => nodes(&mut builder, *task, &block)?,
                Task::Ways(wanted, locations) => {
                    ways(&mut builder, wanted, locations.as_deref(), entry, &block)?
                }
                Task::Relations(ways) => relations(&mut builder, ways, &block)?,
            }
            builder.finish()
        })?;
        chunks.send(Found::Done(*entry, tally))
    }

    /// Does what nobody waits for.
    #[cfg_attr(not(feature = "parquet"), expect(clippy::unused_self))]
    pub(super) fn rest(&mut self) {
        #[cfg(feature = "parquet")]
        self.features.pass_on();
    }
}

/// Makes points of nodes.
fn nodes(builder: &mut Builder<'_>, task: NodeTask, block: &Block<'_>) -> Result<(), FormatError> {
    let mut batch = NodeBatch::default();
    let selected = match task.has_points {
        true => select(&builder.shared.filter, block)?,
        false => Some(Vec::new()),
    };
    let mut index = 0;
    let is_plain = block
        .single_kind()
        .is_some_and(|(kind, _)| kind == ObjectKind::Node);
    if is_plain && !builder.shared.keep_untagged {
        block.for_each_tagged_node(builder.needs_info(), |id, location, tags| {
            if task.has_locations {
                batch.push(id, location);
            }
            let is_selected = is_selected(selected.as_deref(), index);
            index += 1;
            match tags {
                Some((tags, info)) if is_selected => builder.node(id, info, location, tags),
                _ => Ok(()),
            }
        })?;
    } else {
        block.try_for_each(|element| {
            let is_selected = is_selected(selected.as_deref(), index);
            index += 1;
            let Element::Node(node) = element else {
                return Ok(());
            };
            if task.has_locations {
                batch.push(node.id(), node.location());
            }
            match is_selected {
                true => builder.node(node.id(), node.info(), node.location(), node.tags()),
                false => Ok(()),
            }
        })?;
    }
    if task.has_locations {
        batch.sort();
        builder.send(Found::Nodes(batch))?;
    }
    Ok(())
}

fn is_selected(selected: Option<&[bool]>, index: usize) -> bool {
    selected.is_none_or(|selected| selected.get(index).copied().unwrap_or_default())
}

/// Makes lines and areas of ways, and collects the nodes of wanted ways.
fn ways(
    builder: &mut Builder<'_>,
    wanted: &RankSet,
    found: Option<&WayLocations>,
    entry: &BlobEntry,
    block: &Block<'_>,
) -> Result<(), FormatError> {
    let selected = match builder.shared.has_ways() {
        true => select(&builder.shared.filter, block)?,
        false => Some(Vec::new()),
    };
    let mut locator = match found {
        Some(found) => Some(BlockLocations::of(found, entry, block)?),
        None => None,
    };
    let (mut ranks, mut batch) = (wanted.walk(), WayBatch::new(builder.shared.reports));
    let (mut index, mut locations) = (0, Vec::new());
    block.try_for_each(|element| {
        let is_selected = is_selected(selected.as_deref(), index);
        index += 1;
        let Element::Way(way) = element else {
            return Ok(());
        };
        let locations = match &mut locator {
            Some(locator) => locator.next(),
            None => {
                locations.clear();
                way.read_locations(&mut locations)?;
                if locations.is_empty() {
                    locations.resize(way.ref_count(), None);
                }
                locations.as_slice()
            }
        };
        if let Some(rank) = ranks.rank(way.id()) {
            let refs: Vec<i64> = way.refs().collect();
            builder.collect(&mut batch, rank, &refs, locations)?;
        }
        match is_selected {
            true => builder.way(&way, locations),
            false => Ok(()),
        }
    })?;
    builder.send(Found::Ways(batch))
}

/// The nodes of the ways of a block, and their locations, which are looked up.
struct BlockLocations {
    nodes: WayNodes,
    locations: Vec<Option<Location>>,
    /// The number of ways that were taken, and the end of the nodes of the last one.
    taken: (usize, usize),
}

impl BlockLocations {
    fn of(found: &WayLocations, entry: &BlobEntry, block: &Block<'_>) -> Result<Self, FormatError> {
        let nodes = WayNodes::of(block)?;
        let mut locations = Vec::with_capacity(nodes.refs.len());
        found.find(entry, &nodes, &mut locations)?;
        Ok(Self {
            nodes,
            locations,
            taken: (0, 0),
        })
    }

    /// The locations of the nodes of the next way.
    fn next(&mut self) -> &[Option<Location>] {
        let (way, start) = self.taken;
        let end = self.nodes.ways.get(way).map_or(start, |(_, end)| *end);
        self.taken = (way + 1, end);
        self.locations.get(start..end).unwrap_or_default()
    }
}

/// Makes areas of relations.
fn relations(
    builder: &mut Builder<'_>,
    ways: &WayStore,
    block: &Block<'_>,
) -> Result<(), FormatError> {
    let selected = select(&builder.shared.filter, block)?;
    let mut index = 0;
    block.try_for_each(|element| {
        let is_selected = is_selected(selected.as_deref(), index);
        index += 1;
        match element {
            Element::Relation(relation) if is_selected && is_area(relation.tags()) => {
                builder.relation(&relation, ways)
            }
            _ => Ok(()),
        }
    })
}
