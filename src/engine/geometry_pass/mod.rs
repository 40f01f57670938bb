//! A pass over the objects of a file with their geometries.
//!
//! First, relations are read for the ids of their member ways. Then nodes and ways are read once. Finally, when the
//! nodes of the member ways are known, relations are read again and visited. Nodes are visited before ways, and ways
//! before relations, each kind in file order. The locations of nodes are looked up, unless the ways of the file store
//! them. If the ways store them, nodes are looked up only if a way lacks a location (see `late`).

mod area_limit;
mod blob;
mod late;
mod locations;
mod needs;
mod nested;

use super::distinct_list::DistinctList;
use super::input_content::not_current_error;
use super::repeats;
use super::scan::Scan;
use super::way_locations::{
    FirstRead, IndexType, LocateOptions, NodeParts, WayLocations, WayLocator,
};
use crate::area::{NestedRelations, RouteMember, WayBatch, WayStore};
use crate::error::{FormatError, FormatResult, Result};
use crate::file::{BlobPlan, PbfFile, PlanNeeds, PlannedFile};
use crate::geometry::Point;
use crate::index::{IdSet, LocationStore, NodeBatch, Preparation, RankSet};
use crate::osm::{Location, ObjectKind};
use crate::pbf::{BlobEntry, Block, Element, Info, Relation, Way, feature};
use crate::runtime::{Context, Pass};
use blob::BlobVisit;
use late::LateLocations;
use locations::LocationSource;
pub(crate) use nested::{has_member_lines, nested_members};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Visits objects. Each thread has its own visitor.
pub(crate) trait Visitor {
    /// A result of the visits. The thread that runs the pass receives the results in file order.
    type Found: Send;

    /// Returns, for each object of a block in file order, whether it is visited. `None` stands for all objects.
    fn select(&self, _: &Block<'_>) -> FormatResult<Option<Vec<bool>>> {
        Ok(None)
    }

    /// Returns tag keys. A way is visited only if it has a tag with at least one of these keys. `None` stands for all
    /// ways.
    fn way_keys(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// Visits a node.
    fn visit_node<'t>(
        &mut self,
        id: i64,
        info: Info<'_>,
        location: Option<Location>,
        tags: impl Iterator<Item = (&'t str, &'t str)>,
    ) -> FormatResult<()>;

    /// Visits a way. `locations` has the location of each node of the way.
    fn visit_way(&mut self, way: &Way<'_>, locations: &[Option<Location>]) -> FormatResult<()>;

    /// Visits a relation. `ways` has the nodes of its member ways, if the pass has collected them.
    fn visit_relation(&mut self, relation: &Relation<'_>, ways: &WayStore) -> FormatResult<()>;

    /// Returns the next result to send, or `None` if no result is ready. At the end of a blob, `is_end` is true, and
    /// every remaining result counts as ready.
    fn take_result(&mut self, is_end: bool) -> FormatResult<Option<Self::Found>>;

    /// Fails if [`flush`](Self::flush) failed before.
    fn check_flushed(&mut self) -> Result<()> {
        Ok(())
    }

    /// Flushes buffered rows. Called after the results of a blob were sent.
    fn flush(&mut self) {
        // Most visitors buffer no rows, so the default does nothing.
    }
}

/// The error if a list has fewer decisions than the block has objects. This is a bug.
const UNDECIDED: FormatError = FormatError::new("internal error: an object without a decision");

/// The objects that a pass visits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visits {
    pub nodes: bool,
    /// Whether `nodes` includes nodes without tags.
    pub untagged_nodes: bool,
    /// Whether nodes and ways are visited with their metadata.
    pub info: bool,
    pub ways: bool,
    /// Whether relations are visited, with the nodes of their member ways.
    pub areas: bool,
    /// Whether the nodes of member ways have their ids. If `false`, the ids are 0.
    pub member_node_ids: bool,
}

impl Visits {
    /// Visits ways, relations, and nodes with tags. Omits the metadata of nodes and ways, and the ids of the nodes of
    /// member ways.
    pub(crate) const TAGGED: Self = Self {
        nodes: true,
        untagged_nodes: false,
        info: false,
        ways: true,
        areas: true,
        member_node_ids: false,
    };
}

/// The use of the locations that ways store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum LocationsInWays {
    /// If the header declares locations in ways, these are used, and nodes are looked up only for ways that lack a
    /// location. Otherwise all nodes are looked up, and a location in a way is used only if the file lacks the node.
    #[default]
    AsDeclared,
    /// Locations in ways are used even if the header does not declare them. Nodes are looked up only for ways that lack
    /// a location.
    Taken,
    /// Locations in ways are used, and no node is looked up.
    Only,
}

/// A message from a thread that visits blobs.
enum Found<T> {
    Visitor(T),
    Nodes(NodeBatch),
    Ways(WayBatch),
    /// A way lacks locations. The thread waits until they are looked up.
    Unlocated,
    /// All objects of the blob were visited.
    Done(BlobEntry),
}

/// The task of the threads for the blobs with objects of one kind.
enum Task {
    Nodes {
        is_visited: bool,
        /// Prepares the locations of all nodes for the store of locations; `None` if ways do not need them.
        locations: Option<Preparation>,
        /// Whether the entry of each blob is completed from its payload, because the id range of some blob is not
        /// known.
        completes_entries: bool,
    },
    Ways {
        is_visited: bool,
        /// The ids of the ways whose nodes are stored, because relations need them.
        wanted: Arc<RankSet>,
        locations: LocationSource,
    },
    Relations(Arc<WayStore>),
}

impl Task {
    const fn preparation(&self) -> Option<&Preparation> {
        match self {
            Self::Nodes { locations, .. } => locations.as_ref(),
            Self::Ways { .. } | Self::Relations(_) => None,
        }
    }
}

/// A pass over the objects of a file.
pub(crate) struct GeometryPass<'a> {
    file: &'a PbfFile,
    plan: BlobPlan,
    /// Whether the locations that ways store are used. If so, nodes are looked up only if a way lacks a location.
    takes_stored: bool,
    /// Whether nodes are looked up for ways that lack locations.
    looks_up_missing: bool,
    visits: Visits,
    locate: LocateOptions,
    /// The context in which the file is read. In this context, an object that occurs twice is an error.
    ctx: Context,
}

/// Whether a relation with these tags is an area.
pub(crate) fn is_area<'a>(mut tags: impl Iterator<Item = (&'a str, &'a str)>) -> bool {
    let type_of = tags.find(|(key, _)| *key == "type");
    matches!(type_of, Some((_, "multipolygon" | "boundary")))
}

/// Converts a location to a point. Returns `None` if it is not on the earth.
pub(crate) fn point_on_earth(location: Location) -> Option<Point> {
    let (lat_e7, lon_e7) = (location.lat_e7(), location.lon_e7());
    location.is_on_earth().then_some(Point { lat_e7, lon_e7 })
}

impl<'a> GeometryPass<'a> {
    /// Prepares a pass over a file.
    ///
    /// # Errors
    ///
    /// The file is a history file, its objects are not in canonical order, or an object is known to occur twice. If an
    /// object occurs twice and this is not known yet, [`run`](Self::run) fails.
    pub(crate) fn open(
        file: &'a PbfFile,
        visits: Visits,
        stored: LocationsInWays,
        locate: LocateOptions,
        ctx: &Context,
    ) -> Result<Self> {
        let is_declared = file.header.has(feature::LOCATIONS);
        let mut pass = Self {
            file,
            plan: BlobPlan::open_for_kinds(file, ctx)?,
            takes_stored: is_declared || stored != LocationsInWays::AsDeclared,
            looks_up_missing: stored != LocationsInWays::Only,
            visits,
            locate,
            ctx: ctx.clone(),
        };
        pass.check_is_current(&pass.plan)?;
        pass.ctx = repeats::context_refusing_repeats(file, &pass.plan, ctx)?;
        Ok(pass)
    }

    /// Fails if the file is a history file, or if its objects are not in canonical order. `plan` is a plan of the file.
    fn check_is_current(&self, plan: &BlobPlan) -> Result<()> {
        plan.check_is_current(self.file, &self.ctx)?;
        if plan.is_history(self.file, &self.ctx) {
            let cause =
                "this is a history file, and geometries are made of one version of each object";
            return Err(not_current_error(self.file, cause, &self.ctx));
        }
        Ok(())
    }

    /// Visits the objects. `init` creates the visitor of a thread. Calls `take` with each result. `areas` returns, for
    /// each object of a block, whether it is a relation whose member ways are needed. Returns the index type that was
    /// used to look up locations; `None` if no location was looked up.
    pub(crate) fn run<V: Visitor>(
        &self,
        areas: impl Fn(&Block<'_>) -> FormatResult<Vec<bool>> + Sync,
        init: impl Fn() -> V + Sync,
        mut take: impl FnMut(V::Found) -> Result<()>,
    ) -> Result<Option<IndexType>> {
        let visits = self.visits;
        let ways = self.blobs_of_kind(ObjectKind::Way);
        let needs_ways = visits.ways || visits.areas;
        let looks_up = needs_ways && !self.takes_stored && !ways.is_empty();
        self.ctx.expect_phases(
            u64::from(visits.nodes || looks_up)
                + 2 * u64::from(visits.areas)
                + u64::from(needs_ways),
        );
        let (wanted, nested, members) = if visits.areas {
            self.find_member_ways(&areas)?
        } else {
            Default::default()
        };
        let (locations, mut index_type) =
            self.visit_nodes_and_locate(looks_up, &init, &mut take)?;
        let late = locations.late_locations().cloned();
        let needs_ways = visits.ways || !wanted.is_empty();
        let ways = if needs_ways { ways } else { Vec::new() };
        let mut way_store =
            WayStore::new(wanted.clone(), visits.member_node_ids).with_nested(Arc::new(nested));
        let task = Task::Ways {
            is_visited: visits.ways,
            wanted,
            locations,
        };
        self.visit_blobs("ways", ways, task, &init, &mut take, |found| match found {
            Found::Ways(batch) => {
                way_store.add(batch);
                Ok(())
            }
            Found::Unlocated => match &late {
                Some(late) => self.provide_late_locations(late, &mut index_type, &init),
                None => Ok(()),
            },
            Found::Visitor(_) | Found::Nodes(_) | Found::Done(_) => Ok(()),
        })?;
        drop(late);
        if visits.areas {
            self.limit_areas(&areas, &mut way_store, members)?;
            let blobs = self.blobs_of_kind(ObjectKind::Relation);
            let task = Task::Relations(Arc::new(way_store));
            self.visit_blobs("areas", blobs, task, &init, &mut take, |_| Ok(()))?;
        }
        Ok(index_type)
    }

    /// Visits the nodes, and looks up the locations of all nodes if `looks_up` is set. Returns the source of the
    /// locations of ways, and the index type that was used for the look-up.
    fn visit_nodes_and_locate<V: Visitor>(
        &self,
        looks_up: bool,
        init: &(impl Fn() -> V + Sync),
        take: &mut impl FnMut(V::Found) -> Result<()>,
    ) -> Result<(LocationSource, Option<IndexType>)> {
        if looks_up {
            let (found, index_type) = self.locate(self.visits.nodes, init, take)?;
            return Ok((LocationSource::Nodes(Arc::new(found)), Some(index_type)));
        }
        if self.visits.nodes {
            let blobs = self.blobs_of_kind(ObjectKind::Node);
            self.visit_nodes(blobs, true, None, init, take)?;
        }
        let late = self.looks_up_missing.then(Arc::default);
        Ok((LocationSource::Ways(late), None))
    }

    /// Looks up the locations of the nodes of all ways, and hands them to the threads that wait for `late`. Does
    /// nothing if `late` already has the locations. Sets `index_type` to the index type that was used. Does not visit
    /// nodes.
    fn provide_late_locations<V: Visitor>(
        &self,
        late: &LateLocations,
        index_type: &mut Option<IndexType>,
        init: &(impl Fn() -> V + Sync),
    ) -> Result<()> {
        if late.are_found() {
            return Ok(());
        }
        self.ctx
            .debug("a way lacks locations, so the locations of nodes are looked up");
        let mut take = |_: V::Found| -> Result<()> { Ok(()) };
        let (locations, used) = self.locate(false, init, &mut take)?;
        *index_type = Some(used);
        late.provide_locations(locations);
        Ok(())
    }

    /// Returns the blobs that contain objects of a kind.
    fn blobs_of_kind(&self, kind: ObjectKind) -> Vec<BlobEntry> {
        let entries = self.plan.entries.iter();
        let found = entries.filter(|entry| entry.kinds.contains(kind));
        found.copied().collect()
    }

    /// Reads the relations that `areas` selects. If a selected relation is not an area, also reads the relations nested
    /// in it. Returns the ids of the member ways of all these relations, the nested relations, and the number of member
    /// ways of the selected relations.
    fn find_member_ways(
        &self,
        areas: &(impl Fn(&Block<'_>) -> FormatResult<Vec<bool>> + Sync),
    ) -> Result<(Arc<RankSet>, NestedRelations, u64)> {
        let (mut wanted, mut relations, mut count) = (IdSet::default(), BTreeSet::new(), 0);
        let scan =
            Scan::without_strings("members", self.file, &self.plan, &self.ctx).with_strings();
        scan.run(
            |entry| entry.kinds.contains(ObjectKind::Relation),
            |_, block| {
                let (mut ways, mut relations) = (DistinctList::default(), DistinctList::default());
                let mut count = 0;
                let mut areas = areas(block)?.into_iter();
                block.try_for_each(|element| {
                    let is_wanted = areas.next().ok_or(UNDECIDED)?;
                    if let Element::Relation(relation) = element
                        && is_wanted
                    {
                        let members = relation.members();
                        let members = members.filter(|member| member.kind == ObjectKind::Way);
                        ways.extend(members.inspect(|_| count += 1).map(|member| member.id));
                        if has_member_lines(relation.tags()) {
                            let members = RouteMember::line_members(relation.members());
                            relations.extend(members.filter_map(RouteMember::relation));
                        }
                    }
                    Ok(())
                })?;
                Ok((ways.finish(), relations.finish(), count))
            },
            |(ways, found, more)| {
                wanted.extend(ways);
                relations.extend(found);
                count += more;
            },
        )?;
        let nested = self.read_nested_relations(relations, &mut wanted)?;
        Ok((Arc::new(RankSet::from(wanted)), nested, count))
    }

    /// Looks up the locations of the nodes of all ways. Visits the nodes if `visits_nodes` is set. Returns the
    /// locations, and the index type that was used.
    fn locate<V: Visitor>(
        &self,
        visits_nodes: bool,
        init: &(impl Fn() -> V + Sync),
        take: &mut impl FnMut(V::Found) -> Result<()>,
    ) -> Result<(WayLocations, IndexType)> {
        let Some(mut read) = FirstRead::prepare(&self.plan, &self.locate, &self.ctx) else {
            if !self
                .plan
                .entries
                .iter()
                .any(BlobEntry::has_only_kinds_known)
            {
                return self.locate_by_plan(&self.plan, visits_nodes, init, take);
            }
            let plan = BlobPlan::open(self.file, PlanNeeds::Ranges, &self.ctx)?;
            self.check_is_current(&plan)?;
            return self.locate_by_plan(&plan, visits_nodes, init, take);
        };
        let task = Task::Nodes {
            is_visited: visits_nodes,
            locations: Some(read.preparation()),
            completes_entries: true,
        };
        let blobs = self.blobs_of_kind(ObjectKind::Node);
        self.visit_blobs("nodes", blobs, task, init, take, |found| {
            match found {
                Found::Nodes(nodes) => read.add(&nodes),
                Found::Done(entry) => read.end_blob(entry),
                Found::Visitor(_) | Found::Ways(_) | Found::Unlocated => {}
            }
            Ok(())
        })?;
        let (plan, found) = read.finish(&self.plan);
        self.check_is_current(&plan)?;
        found.map_or_else(|| self.locate_by_plan(&plan, false, init, take), Ok)
    }

    /// Looks up the locations of the nodes of all ways. `plan` has the id range of each blob with nodes. Visits the
    /// nodes if `visits_nodes` is set. Returns the locations, and the index type that was used.
    fn locate_by_plan<V: Visitor>(
        &self,
        plan: &BlobPlan,
        visits_nodes: bool,
        init: &(impl Fn() -> V + Sync),
        take: &mut impl FnMut(V::Found) -> Result<()>,
    ) -> Result<(WayLocations, IndexType)> {
        let parts = NodeParts::of(&plan.entries);
        let source = PlannedFile::new(self.file, plan, &self.ctx);
        let locator = WayLocator::new(source, &parts, &self.locate)?;
        let index_type = locator.index_type();
        if visits_nodes && !locator.calls_read_for_nodes() {
            self.visit_nodes(self.blobs_of_kind(ObjectKind::Node), true, None, init, take)?;
        }
        let found = locator.locate(|blobs, store| {
            self.visit_nodes(blobs.to_vec(), visits_nodes, Some(store), init, take)
        })?;
        Ok((found, index_type))
    }

    /// Visits the nodes of some blobs if `is_visited` is set, and adds the locations of all nodes of these blobs to
    /// `store`.
    fn visit_nodes<V: Visitor>(
        &self,
        blobs: Vec<BlobEntry>,
        is_visited: bool,
        mut store: Option<&mut LocationStore>,
        init: &(impl Fn() -> V + Sync),
        take: &mut impl FnMut(V::Found) -> Result<()>,
    ) -> Result<()> {
        let task = Task::Nodes {
            is_visited,
            locations: store.as_ref().map(|store| store.preparation()),
            completes_entries: false,
        };
        self.visit_blobs("nodes", blobs, task, init, take, |found| {
            if let (Found::Nodes(nodes), Some(store)) = (found, store.as_mut()) {
                store.add(&nodes);
            }
            Ok(())
        })
    }

    /// Visits the objects of some blobs. Calls `take` with the results of visitors, and `keep` with all other messages
    /// of the threads.
    fn visit_blobs<V: Visitor>(
        &self,
        name: &'static str,
        blobs: Vec<BlobEntry>,
        task: Task,
        init: &(impl Fn() -> V + Sync),
        take: &mut impl FnMut(V::Found) -> Result<()>,
        mut keep: impl FnMut(Found<V::Found>) -> Result<()>,
    ) -> Result<()> {
        let (input, ctx, visits) = (&self.file.input, &self.ctx, self.visits);
        let lengths = blobs.iter().map(|entry| u64::from(entry.frame_len));
        Pass::new(name, ctx).with_item_limit().run_results(
            lengths.sum(),
            blobs.into_iter().map(Ok),
            || BlobVisit::new(input, visits, init(), ctx),
            |visit: &mut BlobVisit<V>, entry, results| visit.visit_blob(&task, &entry, results),
            BlobVisit::flush,
            |found| match found {
                Found::Visitor(found) => take(found),
                found => keep(found),
            },
        )
    }
}
