//! Reads the relations, ways and nodes in an OSM file that make up areas.

use crate::engine::ElementReader;
use crate::engine::geometry_pass::is_area;
use crate::error::{Error, Result};
use crate::file::{PbfFile, begins_with_header_frame};
use crate::formats::{Change, ChangeSet, NO_ID, read_osm_file};
use crate::geometry::{Point, point_of_e7};
use crate::io::Input;
use crate::osm::{KindSet, Location, ObjectId, ObjectKind};
use crate::pbf::{Element, Member, Object, ObjectBody};
use crate::runtime::Context;
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::Path;

/// A relation that describes an area.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AreaRelation {
    pub id: i64,
    /// The ids of the member ways, without duplicates.
    pub ways: Vec<i64>,
    /// The ids of the member relations.
    pub relations: Vec<i64>,
}

/// The nodes of a way in an OSM file, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RegionWay {
    /// The id of each node; [`NO_ID`] for a node whose id the file does not give.
    pub refs: Vec<i64>,
    /// The location that the way stores for each node; empty if it stores none.
    pub stored: Vec<Option<Location>>,
}

impl RegionWay {
    /// Whether the way has at least four nodes and ends at its first node.
    fn is_closed(&self) -> bool {
        let (first, last) = (self.refs.first(), self.refs.last());
        let is_back = if first == Some(&NO_ID) {
            let first = self.stored.first().copied().flatten();
            first.is_some() && first == self.stored.last().copied().flatten()
        } else {
            first == last
        };
        self.refs.len() > 3 && is_back
    }
}

/// The objects in an OSM file from which areas are assembled.
#[derive(Debug, Default)]
pub(super) struct OsmObjects {
    /// The relations that describe areas, in file order for PBF and JSON and ordered by id for other formats.
    pub relations: Vec<AreaRelation>,
    /// The ids of closed ways that are not members of a relation in `relations`, in file order for PBF and JSON and
    /// ascending for other formats.
    pub closed_ways: Vec<i64>,
    /// All member ways and closed ways, by id.
    pub ways: FxHashMap<i64, RegionWay>,
    /// The locations of the nodes of `ways` that are in the file, by node id; `None` for nodes without a location.
    pub nodes: FxHashMap<i64, Option<Point>>,
    /// The locations of the nodes that relations list for their member ways, by way id.
    pub member_ways: FxHashMap<i64, Vec<Option<Location>>>,
}

impl OsmObjects {
    /// Reads the relations that describe areas, then their member ways and all closed ways, and finally the nodes of
    /// the ways.
    pub(super) fn read(input: &Input) -> Result<Self> {
        let source = Source::open(input, &Context::default())?;
        let mut objects = Self::default();
        source.for_each_relation(|relation| objects.relations.push(relation))?;
        if let Source::Xml(set) = &source {
            for way in &set.member_ways {
                objects.add_member_way(way.id, || way.locations.clone());
            }
        }
        objects.read_ways(&source)?;
        objects.read_nodes(&source, input.path())?;
        Ok(objects)
    }

    /// Reads the objects of the areas with the given ids: the relations with their member ways, the ways, and the nodes
    /// of all these ways. Areas that the file does not have are missing in the result.
    pub(super) fn read_for_areas(path: &Path, ids: &[ObjectId], ctx: &Context) -> Result<Self> {
        let input = Input::open_in(path, ctx)?;
        let mut source = Source::open(&input, ctx)?.restricted_to(ids.iter().copied());
        let mut objects = Self::default();
        let of_kind = |kind: ObjectKind| ids.iter().filter(move |id| id.kind == kind);
        let wanted: FxHashSet<i64> = of_kind(ObjectKind::Relation).map(|id| id.id).collect();
        if !wanted.is_empty() {
            let mut found: FxHashMap<i64, AreaRelation> = FxHashMap::default();
            source.for_each_relation(|relation| {
                if wanted.contains(&relation.id) {
                    // A history file has several versions, of which the last one counts.
                    found.insert(relation.id, relation);
                }
            })?;
            objects.relations = found.into_values().collect();
            objects
                .relations
                .sort_unstable_by_key(|relation| relation.id);
        }
        let mut ways = objects.member_ids();
        ways.extend(of_kind(ObjectKind::Way).map(|id| id.id));
        let kind = ObjectKind::Way;
        source = source.restricted_to(ways.iter().map(|id| ObjectId { kind, id: *id }));
        source.for_each_way(|id, way| {
            if ways.contains(&id) {
                objects.ways.insert(id, way);
            }
        })?;
        let nodes = objects.node_ids();
        let kind = ObjectKind::Node;
        let source = source.restricted_to(nodes.into_iter().map(|id| ObjectId { kind, id }));
        objects.read_nodes(&source, path)?;
        Ok(objects)
    }

    /// Makes the area `id` the only one that the objects describe, and moves all other relations to `relations`. An
    /// earlier call may have moved the relation of the area to `relations`; it is then moved back. If the file does not
    /// have the area, returns `false`, and the objects describe no area.
    pub(super) fn isolate_area(&mut self, id: ObjectId, relations: &mut Vec<AreaRelation>) -> bool {
        relations.append(&mut self.relations);
        self.closed_ways.clear();
        if id.kind == ObjectKind::Relation {
            let found = relations.iter().position(|relation| relation.id == id.id);
            self.relations
                .extend(found.map(|at| relations.swap_remove(at)));
        } else {
            let is_closed = self.ways.get(&id.id).is_some_and(RegionWay::is_closed);
            self.closed_ways.extend(is_closed.then_some(id.id));
        }
        !self.relations.is_empty() || !self.closed_ways.is_empty()
    }

    /// Adds the locations of nodes that a relation lists for its member way `id`. Does nothing if a list has already
    /// been added for this way.
    pub(super) fn add_member_way(
        &mut self,
        id: i64,
        locations: impl FnOnce() -> Vec<Option<Location>>,
    ) {
        self.member_ways.entry(id).or_insert_with(locations);
    }

    /// Returns the ids of the member ways of all relations.
    pub(super) fn member_ids(&self) -> FxHashSet<i64> {
        let members = self.relations.iter().flat_map(|relation| &relation.ways);
        members.copied().collect()
    }

    /// Adds a way if it is closed, or if it is in `members`, the member ways of all relations.
    pub(super) fn add_way(&mut self, members: &FxHashSet<i64>, id: i64, way: RegionWay) {
        let (is_closed, is_member) = (way.is_closed(), members.contains(&id));
        if !is_closed && !is_member {
            return;
        }
        let is_new = self.ways.insert(id, way).is_none();
        if is_new && !is_member {
            self.closed_ways.push(id);
        }
    }

    /// Returns the ids of the nodes of all ways.
    pub(super) fn node_ids(&self) -> FxHashSet<i64> {
        let refs = self.ways.values().flat_map(|way| &way.refs);
        refs.copied().collect()
    }

    fn read_ways(&mut self, source: &Source) -> Result<()> {
        let members = self.member_ids();
        source.for_each_way(|id, way| self.add_way(&members, id, way))
    }

    fn read_nodes(&mut self, source: &Source, path: &Path) -> Result<()> {
        let wanted = self.node_ids();
        let mut problem = None;
        source.for_each_node(|id, location| {
            if wanted.contains(&id) {
                match location.map(point_of).transpose() {
                    Ok(point) => {
                        self.nodes.insert(id, point);
                    }
                    Err(cause) => {
                        problem.get_or_insert_with(|| format!("node {id}: {cause}"));
                    }
                }
            }
        })?;
        match problem {
            Some(cause) => Err(Error::file(path, cause)),
            None => Ok(()),
        }
    }
}

/// Converts a location to a point. Fails if the location is not on earth.
pub(super) fn point_of(location: Location) -> Result<Point, String> {
    point_of_e7(location.lon_e7(), location.lat_e7())
}

/// An OSM file that can be read more than once. XML and OPL are held in memory. PBF is read again each time.
enum Source {
    Xml(Box<ChangeSet>),
    Pbf(Box<ElementReader>),
}

impl Source {
    fn open(input: &Input, ctx: &Context) -> Result<Self> {
        let mut start = [0; 5];
        let found = input.read_at(&mut start, 0)?;
        if begins_with_header_frame(&start[..found]) {
            let file = PbfFile::of_input(input.clone(), ctx)?;
            let reader = ElementReader::of_file(file, ctx.clone());
            Ok(Self::Pbf(Box::new(reader)))
        } else {
            Ok(Self::Xml(Box::new(read_osm_file(input)?)))
        }
    }

    /// Restricts a PBF file to the given objects.
    fn restricted_to(self, ids: impl IntoIterator<Item = ObjectId>) -> Self {
        match self {
            Self::Xml(set) => Self::Xml(set),
            Self::Pbf(reader) => Self::Pbf(Box::new(reader.ids(ids))),
        }
    }

    fn for_each_relation(&self, mut add: impl FnMut(AreaRelation)) -> Result<()> {
        match self {
            Self::Xml(set) => for_each_object(set, ObjectKind::Relation, |object| {
                if let ObjectBody::Relation { members } = &object.body
                    && is_area(object.tags.iter().copied())
                {
                    add(area_relation(object.id, members.iter().copied()));
                }
            }),
            Self::Pbf(reader) => reader.for_each_pipelined(|element| {
                if let Element::Relation(relation) = element
                    && relation.info().visible
                    && is_area(relation.tags())
                {
                    add(area_relation(relation.id(), relation.members()));
                }
            })?,
        }
        Ok(())
    }

    fn for_each_way(&self, mut visit: impl FnMut(i64, RegionWay)) -> Result<()> {
        match self {
            Self::Xml(set) => for_each_object(set, ObjectKind::Way, |object| {
                if let ObjectBody::Way { refs, locations } = &object.body {
                    let way = RegionWay {
                        refs: refs.to_vec(),
                        stored: locations.to_vec(),
                    };
                    visit(object.id, way);
                }
            }),
            Self::Pbf(reader) => reader.for_each_pipelined(|element| {
                if let Element::Way(way) = element
                    && way.info().visible
                {
                    let nodes = RegionWay {
                        refs: way.refs().collect(),
                        stored: way.locations().collect(),
                    };
                    visit(way.id(), nodes);
                }
            })?,
        }
        Ok(())
    }

    fn for_each_node(&self, mut visit: impl FnMut(i64, Option<Location>)) -> Result<()> {
        match self {
            Self::Xml(set) => for_each_object(set, ObjectKind::Node, |object| {
                if let ObjectBody::Node { location } = &object.body {
                    visit(object.id, *location);
                }
            }),
            Self::Pbf(reader) => reader.for_each_pipelined(|element| {
                if let Element::Node(node) = element
                    && node.info().visible
                {
                    visit(node.id(), node.location());
                }
            })?,
        }
        Ok(())
    }
}

/// Calls `visit` with the id and the tags of each relation that describes an area.
pub(super) fn for_each_area(
    path: &Path,
    ctx: &Context,
    mut visit: impl FnMut(i64, &[(&str, &str)]),
) -> Result<()> {
    match Source::open(&Input::open_in(path, ctx)?, ctx)? {
        Source::Xml(set) => for_each_object(&set, ObjectKind::Relation, |object| {
            if is_area(object.tags.iter().copied()) {
                visit(object.id, &object.tags);
            }
        }),
        Source::Pbf(reader) => {
            let reader = reader.kinds(KindSet::from_iter([ObjectKind::Relation]));
            reader.find_kinds()?;
            reader.for_each_pipelined(|element| {
                if let Element::Relation(relation) = element
                    && relation.info().visible
                    && is_area(relation.tags())
                {
                    visit(relation.id(), &relation.tags().collect::<Vec<_>>());
                }
            })?;
        }
    }
    Ok(())
}

/// Calls `visit` with each object of the given kind that is not deleted.
fn for_each_object(set: &ChangeSet, kind: ObjectKind, mut visit: impl FnMut(&Object<'_>)) {
    let wanted = |change: &&Change| change.key.0 == kind && !change.is_deletion();
    let changes = set.changes().iter().filter(wanted);
    changes.for_each(|change| visit(&set.object(change)));
}

/// Returns the relation with the given id and members.
pub(super) fn area_relation<'a>(
    id: i64,
    members: impl Iterator<Item = Member<'a>>,
) -> AreaRelation {
    let mut relation = AreaRelation {
        id,
        ways: Vec::new(),
        relations: Vec::new(),
    };
    let mut seen = FxHashSet::default();
    for member in members {
        match member.kind {
            ObjectKind::Way if seen.insert(member.id) => relation.ways.push(member.id),
            ObjectKind::Relation => relation.relations.push(member.id),
            ObjectKind::Way | ObjectKind::Node => {}
        }
    }
    relation
}
