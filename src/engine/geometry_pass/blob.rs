//! Visits the objects of a blob.

use super::late::WayBlob;
use super::locations::{BlobSource, PartSource};
use super::needs::{Selected, WayNeeds};
use super::{Found, Task, Visitor, Visits, point_on_earth};
use crate::area::{WayBatch, WayStore};
use crate::error::{Error, FormatError, FormatResult, Result};
use crate::file::BlobDecoder;
use crate::index::{NodeBatch, Preparation, RankSet};
use crate::io::Input;
use crate::osm::{Location, ObjectKind};
use crate::pbf::{
    BlobEntry, Block, Element, NodeVisit, VisitedFields, Way, scan_order, scan_places,
};
use crate::runtime::{Context, PassResults};

/// The size in bytes at which a batch of ways is sent.
const BATCH: usize = 1 << 20;
/// The number of nodes at which a batch of locations is sent before the end of the blob. Blobs of real files have fewer
/// nodes.
const NODES: usize = 200_000;

/// The state of a thread that visits blobs.
pub(super) struct BlobVisit<V> {
    reader: BlobDecoder,
    visits: Visits,
    visitor: V,
}

impl<V: Visitor> BlobVisit<V> {
    pub(super) fn new(input: &Input, visits: Visits, visitor: V, ctx: &Context) -> Self {
        Self {
            reader: BlobDecoder::new(input, ctx),
            visits,
            visitor,
        }
    }

    /// Visits the objects of a blob.
    pub(super) fn visit_blob(
        &mut self,
        task: &Task,
        entry: &BlobEntry,
        results: &PassResults<'_, Found<V::Found>>,
    ) -> Result<()> {
        self.visitor.check_flushed()?;
        let mut visit = Visit {
            visits: self.visits,
            visitor: &mut self.visitor,
            results,
            locations: task.preparation(),
        };
        let mut completed = *entry;
        self.reader.decode(entry, |payload| {
            match task {
                Task::Nodes {
                    completes_entries: true,
                    is_visited: false,
                    locations: Some(_),
                } if visit.try_send_locations(payload, &mut completed)? => return Ok(()),
                Task::Nodes {
                    completes_entries: true,
                    ..
                } => scan_order(payload, &mut completed)?,
                Task::Nodes { .. } | Task::Ways { .. } | Task::Relations(_) => {}
            }
            let block = Block::parse(payload)?;
            match task {
                Task::Nodes { is_visited, .. } => visit.visit_nodes(*is_visited, &block)?,
                Task::Ways {
                    is_visited,
                    wanted,
                    locations,
                } => {
                    let ask = |are_found: &dyn Fn() -> bool| {
                        send(results, Found::Unlocated)?;
                        results.wait_until(are_found).map_err(error_of_ended_pass)
                    };
                    let blob = WayBlob {
                        entry,
                        block: &block,
                        ask: &ask,
                    };
                    let mut source = locations.source_of_blob(blob)?;
                    block.visit_in_parts(|part| {
                        visit.visit_ways(*is_visited, wanted, &mut source, part)
                    })?;
                    source.end()?;
                }
                Task::Relations(ways) => visit.visit_relations(ways, &block)?,
            }
            visit.send_ready_results(true)
        })?;
        results.send(Found::Done(completed))
    }

    /// Flushes the rows that the visitor has buffered. Called after the results of a blob were sent.
    pub(super) fn flush(&mut self) {
        self.visitor.flush();
    }
}

/// The visit of a blob.
struct Visit<'v, V: Visitor> {
    visits: Visits,
    visitor: &'v mut V,
    results: &'v PassResults<'v, Found<V::Found>>,
    /// Prepares batches of nodes for the store of locations; `None` if no locations are needed.
    locations: Option<&'v Preparation>,
}

/// Sends a message to the thread that runs the pass.
fn send<F>(results: &PassResults<'_, Found<F>>, found: Found<F>) -> FormatResult<()> {
    results.send(found).map_err(error_of_ended_pass)
}

/// Converts the error from sending a message to a pass that has ended. The converted error is never reported.
fn error_of_ended_pass(error: Error) -> FormatError {
    FormatError::with(error.to_string())
}

/// Increments an index, and returns its previous value.
const fn post_increment(next: &mut usize) -> usize {
    *next += 1;
    *next - 1
}

impl<V: Visitor> Visit<'_, V> {
    /// Selects the objects that the visitor wants, or no objects if `is_visited` is false.
    fn select(&self, is_visited: bool, block: &Block<'_>) -> FormatResult<Selected> {
        if !is_visited {
            return Ok(Selected::None);
        }
        let selected = self.visitor.select(block)?;
        Ok(selected.map_or(Selected::All, Selected::Listed))
    }

    fn send(&self, found: Found<V::Found>) -> FormatResult<()> {
        send(self.results, found)
    }

    /// Sends the results that [`Visitor::take_result`] returns, until it returns `None`.
    fn send_ready_results(&mut self, is_end: bool) -> FormatResult<()> {
        while let Some(found) = self.visitor.take_result(is_end)? {
            self.send(Found::Visitor(found))?;
        }
        Ok(())
    }

    /// Visits the selected nodes of a block, and sends the locations of its nodes if they are needed.
    fn visit_nodes(&mut self, is_visited: bool, block: &Block<'_>) -> FormatResult<()> {
        let (mut batch, is_located) = (NodeBatch::default(), self.locations.is_some());
        let selected = self.select(is_visited, block)?;
        let is_plain = block
            .single_kind_and_count()
            .is_some_and(|(kind, _)| kind == ObjectKind::Node);
        if is_plain && (!is_visited || !self.visits.untagged_nodes) {
            let parts = VisitedFields {
                tags: is_visited,
                info: self.visits.info,
            };
            block.for_each_node_run(parts, |nodes| match nodes {
                NodeVisit::Run(ids, locations) if is_located || !is_visited => {
                    batch.push_run(ids, locations);
                    self.send_nodes_if_many(&mut batch)
                }
                NodeVisit::Tagged {
                    index,
                    id,
                    location,
                    tags,
                    info,
                } if selected.is_visited(index)? => {
                    self.visitor.visit_node(id, info, location, tags)?;
                    self.send_ready_results(false)
                }
                NodeVisit::Run(..) | NodeVisit::Tagged { .. } => Ok(()),
            })?;
        } else {
            let mut next = 0;
            block.try_for_each(|element| {
                let is_selected = selected.is_visited(post_increment(&mut next))?;
                element.check_size()?;
                let Element::Node(node) = element else {
                    return Ok(());
                };
                if is_located {
                    batch.push(node.id(), node.location());
                    self.send_nodes_if_many(&mut batch)?;
                }
                if is_selected {
                    let (info, location) = (node.info(), node.location());
                    self.visitor
                        .visit_node(node.id(), info, location, node.tags())?;
                    self.send_ready_results(false)?;
                }
                Ok(())
            })?;
        }
        if is_located {
            self.send_nodes(&mut batch)
        } else {
            Ok(())
        }
    }

    /// Completes the entry of a blob, sends the locations of its nodes, and returns `true`. Does nothing and returns
    /// `false` if the blob has objects of other kinds, or [`NODES`] nodes or more.
    fn try_send_locations(&self, payload: &[u8], entry: &mut BlobEntry) -> FormatResult<bool> {
        let (mut batch, mut scanned) = (NodeBatch::default(), *entry);
        scan_places(payload, &mut scanned, |ids, locations| {
            if batch.len() < NODES {
                batch.push_run(ids, locations);
            }
            Ok(())
        })?;
        let has_all = scanned.kinds.single() == Some(ObjectKind::Node) && batch.len() < NODES;
        if has_all {
            *entry = scanned;
            self.send_nodes(&mut batch)?;
        }
        Ok(has_all)
    }

    /// Sends the locations in `batch` if there are at least [`NODES`] of them.
    fn send_nodes_if_many(&self, batch: &mut NodeBatch) -> FormatResult<()> {
        if batch.len() < NODES {
            Ok(())
        } else {
            self.send_nodes(batch)
        }
    }

    /// Sends the locations in `batch`, and empties it.
    fn send_nodes(&self, batch: &mut NodeBatch) -> FormatResult<()> {
        let mut nodes = std::mem::take(batch);
        if let Some(preparation) = self.locations {
            preparation.prepare(&mut nodes);
        }
        self.send(Found::Nodes(nodes))
    }

    /// Sends the ways in `batch` if they have at least [`BATCH`] bytes.
    fn send_ways_if_many(&self, batch: &mut WayBatch) -> FormatResult<()> {
        if batch.memory_size() < BATCH {
            return Ok(());
        }
        let next = WayBatch::new(self.visits.member_node_ids);
        self.send(Found::Ways(std::mem::replace(batch, next)))
    }

    /// Visits the selected ways of a block, and sends the nodes of the ways in `wanted`.
    fn visit_ways(
        &mut self,
        is_visited: bool,
        wanted: &RankSet,
        source: &mut BlobSource<'_>,
        block: &Block<'_>,
    ) -> FormatResult<()> {
        let selected = self.select(is_visited, block)?;
        let needs_all = source.needs_all_refs();
        source.begin_part();
        if selected.is_empty() && wanted.is_empty() && !needs_all {
            return Ok(());
        }
        let to_indexes = |keys| block.strings.indexes_of(keys);
        let keys = self.visitor.way_keys().map(to_indexes);
        let needs = WayNeeds {
            keys: keys.as_deref(),
            selected: &selected,
            is_plain: block.single_kind_and_count().is_some(),
            needs_others: needs_all || !wanted.is_empty(),
        };
        let mut source = PartSource::look_up(source, block, &needs, wanted)?;
        let (mut ranks, mut batch) = (wanted.walk(), WayBatch::new(self.visits.member_node_ids));
        let counter = needs.counter();
        block.try_for_each_with_wanted_ways(
            self.visits.info,
            || counter.advance_to_next_way(),
            |element| {
                let index = counter.next_index();
                element.check_size()?;
                let Element::Way(way) = element else {
                    return Ok(());
                };
                let rank = ranks.rank(way.id());
                let has_key = needs.may_visit_by_keys(|keys| way.tags.has_key_among(keys));
                let is_visited = has_key && selected.is_visited(index)?;
                source.advance(rank.is_some() || (has_key && needs.may_visit(index)))?;
                if rank.is_none() && !is_visited {
                    return Ok(());
                }
                let locations = source.locations_of_way(&way, counter.way_index())?;
                if let Some(rank) = rank {
                    push_member_way(&mut batch, rank, &way, locations);
                    self.send_ways_if_many(&mut batch)?;
                }
                if is_visited {
                    self.visitor.visit_way(&way, locations)?;
                    self.send_ready_results(false)?;
                }
                Ok(())
            },
        )?;
        self.send(Found::Ways(batch))
    }

    /// Visits the selected relations of a block.
    fn visit_relations(&mut self, ways: &WayStore, block: &Block<'_>) -> FormatResult<()> {
        let (selected, mut next) = (self.select(true, block)?, 0);
        block.try_for_each(|element| {
            let is_selected = selected.is_visited(post_increment(&mut next))?;
            element.check_size()?;
            match element {
                Element::Relation(relation) if is_selected => {
                    self.visitor.visit_relation(&relation, ways)?;
                    self.send_ready_results(false)
                }
                _ => Ok(()),
            }
        })
    }
}

/// Adds a member way of a relation to `batch`.
fn push_member_way(batch: &mut WayBatch, rank: u64, way: &Way<'_>, locations: &[Option<Location>]) {
    let refs: Vec<i64> = way.refs().collect();
    let points = locations
        .iter()
        .map(|location| location.and_then(point_on_earth));
    batch.push(rank, refs.into_iter().zip(points));
}
