//! The threads that collect addresses, streets and areas.

use super::simplify::simplified;
use crate::area::{
    AreaNode, AreaPolygon, AreaWay, MemberWays, OpenRings, Role, WayStore, assemble,
};
use crate::engine::geometry_pass::{Visitor, is_area, on_earth};
use crate::error::{FormatError, Result};
use crate::geocode::{
    Item, Layer, Lines, NUMBERS, Shape, key_of, node_list, on_other_side, tag, unwrap,
};
use crate::geometry::Point;
use crate::index::{RowBatch, RowSorter};
use crate::osm::{Location, ObjectId, ObjectKind};
use crate::pbf::{Block, Element, Info, Relation, Way};
use std::sync::Arc;

/// The maximum number of segments of a part of a street.
const PART_SEGMENTS: usize = 12;
/// The values of `place` of objects that are kept.
const PLACES: [&str; 9] = [
    "city",
    "town",
    "village",
    "hamlet",
    "isolated_dwelling",
    "suburb",
    "quarter",
    "neighbourhood",
    "borough",
];
/// The values of `highway` of roads that are kept although they have no name.
const ROADS: [&str; 14] = [
    "motorway",
    "motorway_link",
    "trunk",
    "trunk_link",
    "primary",
    "primary_link",
    "secondary",
    "tertiary",
    "unclassified",
    "residential",
    "living_street",
    "pedestrian",
    "service",
    "track",
];
/// The keys of areas and places that are kept, besides names.
const AREA_KEYS: [&str; 9] = [
    "admin_level",
    "boundary",
    "place",
    "postal_code",
    "population",
    "ISO3166-1",
    "ISO3166-1:alpha2",
    "ISO3166-2",
    "wikidata",
];

type TagList<'a> = Vec<(&'a str, &'a str)>;

/// The result of a blob, besides rows.
#[derive(Default)]
pub(super) struct Found {
    /// The nodes of interpolation ways.
    pub interpolated: Vec<i64>,
    /// The number of areas that were left out.
    pub incomplete: u64,
    /// The areas that lost corners.
    pub simplified: Vec<ObjectId>,
}

/// Collects rows.
pub(super) struct Collector {
    sorter: Arc<RowSorter>,
    /// The maximum number of corners of an area.
    max_vertices: Option<usize>,
    rows: RowBatch,
    found: Option<Found>,
    nodes: Vec<AreaNode>,
}

fn is_name(key: &str) -> bool {
    matches!(key, "name" | "alt_name" | "official_name" | "short_name") || key.starts_with("name:")
}

/// The tags of an address.
fn address_tags<'a>(tags: &[(&'a str, &'a str)]) -> TagList<'a> {
    let kept = tags.iter().filter(|(key, _)| key.starts_with("addr:"));
    kept.copied().collect()
}

/// The tags of an area or a place.
fn area_tags<'a>(tags: &[(&'a str, &'a str)]) -> TagList<'a> {
    let kept = tags
        .iter()
        .filter(|(key, _)| is_name(key) || AREA_KEYS.contains(key));
    kept.copied().collect()
}

fn has_place(tags: &[(&str, &str)]) -> bool {
    tag(tags, "place").is_some_and(|place| PLACES.contains(&place)) && tag(tags, "name").is_some()
}

/// Whether an area with these tags says where places in it are.
fn is_wanted_area(tags: &[(&str, &str)]) -> bool {
    match tag(tags, "boundary") {
        Some("administrative") => tag(tags, "name").is_some(),
        Some("postal_code") => tag(tags, "postal_code").is_some(),
        _ => has_place(tags),
    }
}

/// Whether each object of a block is a relation whose area is wanted, in file order.
pub(super) fn wanted_areas(block: &Block<'_>) -> Result<Vec<bool>, FormatError> {
    let mut wanted = Vec::new();
    block.try_for_each(|element| {
        wanted.push(match element {
            Element::Relation(relation) => {
                let tags: TagList<'_> = relation.tags().collect();
                is_area(relation.tags()) && (is_wanted_area(&tags) || is_address(&tags))
            }
            _ => false,
        });
        Ok::<(), FormatError>(())
    })?;
    Ok(wanted)
}

fn is_address(tags: &[(&str, &str)]) -> bool {
    tag(tags, "addr:housenumber").is_some()
}

impl Visitor for Collector {
    type Found = Found;

    fn way_keys(&self) -> Option<&'static [&'static str]> {
        Some(&[
            "highway",
            "addr:housenumber",
            "addr:interpolation",
            "boundary",
            "place",
        ])
    }

    fn node<'t>(
        &mut self,
        id: i64,
        _: Info<'_>,
        location: Option<Location>,
        tags: impl Iterator<Item = (&'t str, &'t str)>,
    ) -> Result<(), FormatError> {
        let tags: TagList<'_> = tags.collect();
        let is_address = is_address(&tags);
        if !is_address && !has_place(&tags) {
            return Ok(());
        }
        let Some(point) = location.and_then(on_earth) else {
            return Ok(());
        };
        if is_address {
            self.point(Layer::Addresses, id, point, &address_tags(&tags));
        }
        if has_place(&tags) {
            self.point(Layer::Places, id, point, &area_tags(&tags));
        }
        Ok(())
    }

    fn way(&mut self, way: &Way<'_>, locations: &[Option<Location>]) -> Result<(), FormatError> {
        let points = locations.iter().map(|location| location.and_then(on_earth));
        let points: Option<Vec<Point>> = points.collect();
        // A way of which a node is not in the file has no geometry.
        let Some(mut points) = points.filter(|points| points.len() > 1) else {
            return Ok(());
        };
        let tags: TagList<'_> = way.tags().collect();
        let is_closed = points.len() > 3 && points.first() == points.last();
        if is_closed && is_wanted_area(&tags) {
            self.closed_area(way.id(), &points, &tags);
        }
        unwrap(&mut points);
        let line = points.as_slice();
        if is_address(&tags) {
            let shape = if is_closed { Shape::Area } else { Shape::Line };
            self.put_way(
                Layer::Addresses,
                way.id(),
                shape,
                line,
                &address_tags(&tags),
            );
        } else if tag(&tags, "addr:interpolation").is_some() {
            self.interpolation(way, line, &tags);
        }
        if let Some(highway) = tag(&tags, "highway") {
            let has_name = tag(&tags, "name").is_some();
            let layer = if has_name {
                Layer::Streets
            } else {
                Layer::Roads
            };
            if has_name || ROADS.contains(&highway) {
                self.street(layer, way.id(), line, &tags);
            }
        }
        Ok(())
    }

    fn relation(&mut self, relation: &Relation<'_>, ways: &WayStore) -> Result<(), FormatError> {
        let tags: TagList<'_> = relation.tags().collect();
        let (is_address, is_wanted) = (is_address(&tags), is_wanted_area(&tags));
        if !is_area(relation.tags()) || !(is_address || is_wanted) {
            return Ok(());
        }
        let mut nodes = std::mem::take(&mut self.nodes);
        let members = MemberWays::read(relation.members(), ways, &mut nodes);
        let polygons = match members.missing {
            None => members.assemble(&nodes, OpenRings::Refuse).polygons,
            Some(_) => Vec::new(),
        };
        self.nodes = nodes;
        if polygons.is_empty() {
            self.found.get_or_insert_default().incomplete += 1;
            return Ok(());
        }
        if is_wanted {
            self.area(ObjectKind::Relation, relation.id(), &polygons, &tags);
        }
        if is_address {
            let rings = polygons.iter().flat_map(rings).collect::<Vec<_>>();
            self.put(
                Layer::Addresses,
                &Item {
                    kind: ObjectKind::Relation,
                    id: relation.id(),
                    shape: Shape::Area,
                    lines: Lines::Many(&rings),
                    tags: &address_tags(&tags),
                },
            );
        }
        Ok(())
    }

    fn take(&mut self, is_end: bool) -> Result<Option<Found>, FormatError> {
        Ok(self.found.take_if(|_| is_end))
    }

    fn check(&mut self) -> Result<()> {
        self.sorter.check()
    }

    fn rest(&mut self) {
        if self.rows.count() > 0 {
            self.sorter.add(std::mem::take(&mut self.rows));
        }
    }
}

/// The rings of a polygon, which end where they began.
fn rings(polygon: &AreaPolygon) -> impl Iterator<Item = Vec<Point>> {
    let rings = std::iter::once(&polygon.outer).chain(&polygon.holes);
    rings.map(|ring| ring.iter().chain(ring.first()).copied().collect())
}

impl Collector {
    pub(super) fn new(sorter: &Arc<RowSorter>, max_vertices: Option<usize>) -> Self {
        Self {
            sorter: sorter.clone(),
            max_vertices,
            rows: RowBatch::default(),
            found: None,
            nodes: Vec::new(),
        }
    }

    fn put(&mut self, layer: Layer, item: &Item<'_>) {
        if let Some(extent) = item.extent() {
            let key = key_of(layer, &extent);
            self.rows.push(key, |out| item.put_row(out));
        }
    }

    fn point(&mut self, layer: Layer, id: i64, point: Point, tags: &TagList<'_>) {
        let item = Item {
            kind: ObjectKind::Node,
            id,
            shape: Shape::Point,
            lines: Lines::One(&[point]),
            tags,
        };
        self.put(layer, &item);
    }

    /// Adds a way. One that crosses the antimeridian is added with longitudes of both sides.
    fn put_way(&mut self, layer: Layer, id: i64, shape: Shape, line: &[Point], tags: &TagList<'_>) {
        let item = |line| Item {
            kind: ObjectKind::Way,
            id,
            shape,
            lines: Lines::One(line),
            tags,
        };
        self.put(layer, &item(line));
        if let Some(other) = on_other_side(line) {
            self.put(layer, &item(&other));
        }
    }

    /// Adds a street in parts.
    fn street(&mut self, layer: Layer, id: i64, line: &[Point], tags: &TagList<'_>) {
        let kept = tags
            .iter()
            .filter(|(key, _)| is_name(key) || matches!(*key, "highway" | "ref"));
        let kept: TagList<'_> = kept.copied().collect();
        let mut start = 0;
        while let Some(part) = line.get(start..line.len().min(start + PART_SEGMENTS + 1))
            && part.len() > 1
        {
            self.put_way(layer, id, Shape::Line, part, &kept);
            start += PART_SEGMENTS;
        }
    }

    /// Adds an interpolation way with the ids of its nodes.
    fn interpolation(&mut self, way: &Way<'_>, line: &[Point], tags: &TagList<'_>) {
        let found = self.found.get_or_insert_default();
        found.interpolated.extend(way.refs());
        let (nodes, mut kept) = (node_list(way.refs()), address_tags(tags));
        kept.push((NUMBERS, &nodes));
        self.put_way(Layer::Interpolations, way.id(), Shape::Line, line, &kept);
    }

    /// Adds the area of a closed way.
    fn closed_area(&mut self, id: i64, points: &[Point], tags: &TagList<'_>) {
        let nodes = points.iter().map(|point| AreaNode {
            id: 0,
            point: *point,
        });
        let mut nodes: Vec<AreaNode> = nodes.collect();
        nodes.dedup();
        let way = AreaWay {
            id,
            role: Role::Other,
            nodes: &nodes,
        };
        let polygons = assemble(&[way], OpenRings::Refuse).polygons;
        if polygons.is_empty() {
            self.found.get_or_insert_default().incomplete += 1;
        }
        self.area(ObjectKind::Way, id, &polygons, tags);
    }

    /// Adds an area that contains places.
    fn area(&mut self, kind: ObjectKind, id: i64, polygons: &[AreaPolygon], tags: &TagList<'_>) {
        let fewer = self.max_vertices.and_then(|max| simplified(polygons, max));
        if fewer.is_some() {
            let found = self.found.get_or_insert_default();
            found.simplified.push(ObjectId { kind, id });
        }
        let mut lines: Vec<Vec<Point>> = Vec::new();
        for polygon in fewer.as_deref().unwrap_or(polygons) {
            if !lines.is_empty() {
                lines.push(Vec::new());
            }
            lines.extend(rings(polygon));
        }
        let item = Item {
            kind,
            id,
            shape: Shape::Area,
            lines: Lines::Many(&lines),
            tags: &area_tags(tags),
        };
        self.put(Layer::Areas, &item);
    }
}
