//! Reads the relations, ways and nodes in an OSM file that make up areas.

use crate::error::{Error, Result};
use crate::file::{ElementReader, begins_like_pbf};
use crate::formats::{Change, ChangeSet, read_osm_file};
use crate::geometry::{Point, point_of_e7};
use crate::io::Input;
use crate::osm::{Location, ObjectKind};
use crate::pbf::{Element, Member, Object, ObjectBody};
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

/// The objects in an OSM file from which areas are assembled.
#[derive(Debug, Default)]
pub(super) struct OsmObjects {
    /// The relations that describe areas, in file order for PBF and ordered by id for other formats.
    pub relations: Vec<AreaRelation>,
    /// The ids of closed ways that are not members of a relation in `relations`, in file order for PBF and ascending
    /// for other formats.
    pub closed_ways: Vec<i64>,
    /// The node ids of all member ways and closed ways, by way id.
    pub ways: FxHashMap<i64, Vec<i64>>,
    /// The locations of the nodes in `ways`, by node id.
    pub nodes: FxHashMap<i64, Point>,
}

impl OsmObjects {
    /// Reads the relations that describe areas, then their member ways and all closed ways, and finally the nodes of
    /// the ways.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let source = Source::open(path)?;
        let mut objects = Self::default();
        source.relations(|relation| objects.relations.push(relation))?;
        objects.read_ways(&source)?;
        objects.read_nodes(&source, path)?;
        Ok(objects)
    }

    fn read_ways(&mut self, source: &Source) -> Result<()> {
        let members = self.relations.iter().flat_map(|relation| &relation.ways);
        let wanted: FxHashSet<i64> = members.copied().collect();
        source.ways(|id, refs| {
            let is_member = wanted.contains(&id);
            let refs: Vec<i64> = refs.collect();
            let is_closed = refs.len() > 3 && refs.first() == refs.last();
            if is_closed && !is_member {
                self.closed_ways.push(id);
            }
            if is_closed || is_member {
                self.ways.insert(id, refs);
            }
        })
    }

    fn read_nodes(&mut self, source: &Source, path: &Path) -> Result<()> {
        let wanted: FxHashSet<i64> = self.ways.values().flatten().copied().collect();
        let mut problem = None;
        source.nodes(|id, lon_e7, lat_e7| {
            if wanted.contains(&id) {
                match point_of_e7(lon_e7, lat_e7) {
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

/// An OSM file that can be read more than once. XML and OPL are held in memory. PBF is read again each time.
enum Source {
    Xml(ChangeSet),
    Pbf(ElementReader),
}

impl Source {
    fn open(path: &Path) -> Result<Self> {
        let mut start = [0; 5];
        let found = Input::open(path)?.read_at(&mut start, 0)?;
        if begins_like_pbf(&start[..found]) {
            Ok(Self::Pbf(ElementReader::from_path(path)?))
        } else {
            Ok(Self::Xml(read_osm_file(path)?))
        }
    }

    fn relations(&self, mut add: impl FnMut(AreaRelation)) -> Result<()> {
        match self {
            Self::Xml(set) => for_each(set, ObjectKind::Relation, |object| {
                if let ObjectBody::Relation { members } = &object.body
                    && is_area(object.tags.iter().copied())
                {
                    add(area(object.id, members.iter().copied()));
                }
            }),
            Self::Pbf(reader) => reader.for_each_pipelined(|element| {
                if let Element::Relation(relation) = element
                    && relation.info().visible
                    && is_area(relation.tags())
                {
                    add(area(relation.id(), relation.members()));
                }
            })?,
        }
        Ok(())
    }

    fn ways(&self, mut visit: impl FnMut(i64, &mut dyn Iterator<Item = i64>)) -> Result<()> {
        match self {
            Self::Xml(set) => for_each(set, ObjectKind::Way, |object| {
                if let ObjectBody::Way { refs, .. } = &object.body {
                    visit(object.id, &mut refs.iter().copied());
                }
            }),
            Self::Pbf(reader) => reader.for_each_pipelined(|element| {
                if let Element::Way(way) = element
                    && way.info().visible
                {
                    visit(way.id(), &mut way.refs());
                }
            })?,
        }
        Ok(())
    }

    fn nodes(&self, mut visit: impl FnMut(i64, i32, i32)) -> Result<()> {
        match self {
            Self::Xml(set) => for_each(set, ObjectKind::Node, |object| {
                if let ObjectBody::Node { location } = &object.body {
                    let (lat_e7, lon_e7) = Location::stored_e7(*location);
                    visit(object.id, lon_e7, lat_e7);
                }
            }),
            Self::Pbf(reader) => reader.for_each_pipelined(|element| {
                if let Element::Node(node) = element
                    && node.info().visible
                {
                    visit(node.id(), node.decimicro_lon(), node.decimicro_lat());
                }
            })?,
        }
        Ok(())
    }
}

/// Calls `visit` with each object of the given kind that is not deleted.
fn for_each(set: &ChangeSet, kind: ObjectKind, mut visit: impl FnMut(&Object<'_>)) {
    let wanted = |change: &&Change| change.key.0 == kind && !change.is_deletion();
    let changes = set.changes().iter().filter(wanted);
    changes.for_each(|change| visit(&set.object(change)));
}

/// Whether a relation with the given tags describes an area.
fn is_area<'a>(mut tags: impl Iterator<Item = (&'a str, &'a str)>) -> bool {
    tags.any(|(key, value)| key == "type" && matches!(value, "multipolygon" | "boundary"))
}

fn area<'a>(id: i64, members: impl Iterator<Item = Member<'a>>) -> AreaRelation {
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
