//! Collects addresses, streets and areas from the objects of a file.

use super::kinds::{
    StreetKind, WAY_KEYS, address_tags, area_tags, is_address, is_building, is_interpolation,
    is_short, is_street_area, is_street_relation, is_wanted_area, place_kind, street_tags,
};
use super::numbered_cells::NumberedCells;
use super::relations::Relations;
use super::simplify::simplify_polygons;
use crate::area::{AreaPolygon, WayStore};
use crate::engine::geometry_pass::{Visitor, is_area, point_on_earth};
use crate::engine::object_geometry::{GeometryMaker, is_closed};
use crate::error::{FormatResult, Result};
use crate::geocode::{
    IndexedItem, ItemShape, ItemTags, Layer, Lines, NUMBERS, STREET, format_node_list, key_of,
    nonblank_tag, shifted_across_antimeridian, tag, unwrap_longitudes,
};
use crate::geometry::{Extent, Point};
use crate::index::{RowBatch, RowSorter};
use crate::osm::{Location, ObjectId, ObjectKind};
use crate::pbf::{Info, Relation, Way};

/// The maximum number of segments in one part of a street.
const PART_SEGMENTS: usize = 16;
/// The maximum number of nodes of an interpolation way. The OSM database has the same limit for all ways
/// (<https://wiki.openstreetmap.org/wiki/API_v0.6>). The limit bounds the row of the way, which lists all nodes of the
/// way.
const MAX_WAY_NODES: usize = 2000;

/// The findings from one blob, apart from the rows for the index.
#[derive(Default)]
pub(super) struct CollectedBlob {
    /// The nodes of interpolation ways.
    pub interpolated: Vec<i64>,
    /// The number of interpolation ways with more than [`MAX_WAY_NODES`] nodes, which are left out.
    pub not_interpolated: u64,
    /// The number of tags that were left out because they are too long.
    pub long_tags: u64,
    /// The number of areas that were left out. They are not valid, or their nodes or members are not all in the file.
    pub incomplete: u64,
    /// The areas with fewer corners in the index than in the file.
    pub simplified: Vec<ObjectId>,
}

/// The state that the threads share.
#[derive(Debug)]
pub(super) struct CollectorState {
    pub sorter: RowSorter,
    /// Facts that relations provide about nodes and ways.
    pub relations: Relations,
    /// The cells with nodes that have a house number.
    pub numbered: NumberedCells,
}

/// The visitor of a thread, which collects the rows of the index.
pub(super) struct Collector<'s> {
    shared: &'s CollectorState,
    /// The maximum number of corners of an area.
    max_vertices: Option<usize>,
    rows: RowBatch,
    found: Option<CollectedBlob>,
    geometry: GeometryMaker,
    points: Vec<Point>,
}

/// The layers of the index to which a way belongs.
struct WayLayers {
    is_address: bool,
    is_interpolation: bool,
    /// Whether the way, if it is closed, is the outline of a wanted area.
    is_wanted: bool,
    /// Whether the way is a building without a house number of its own.
    is_building: bool,
    street: Option<StreetKind>,
}

impl WayLayers {
    /// Returns the layers of a way with the given tags; `None` if the way belongs to no layer.
    fn of(tags: &ItemTags<'_>) -> Option<Self> {
        let is_address = is_address(tags);
        let layers = Self {
            is_address,
            is_interpolation: !is_address && is_interpolation(tags),
            is_wanted: is_wanted_area(tags),
            is_building: !is_address && is_building(tags),
            street: StreetKind::of(tags),
        };
        let is_used = layers.is_address
            || layers.is_interpolation
            || layers.is_wanted
            || layers.is_building
            || layers.street.is_some();
        is_used.then_some(layers)
    }
}

impl Visitor for Collector<'_> {
    type Found = CollectedBlob;

    fn way_keys(&self) -> Option<&'static [&'static str]> {
        Some(WAY_KEYS)
    }

    fn visit_node<'t>(
        &mut self,
        id: i64,
        _: Info<'_>,
        location: Option<Location>,
        tags: impl Iterator<Item = (&'t str, &'t str)>,
    ) -> FormatResult<()> {
        let tags = self.short_tags(tags);
        let (is_address, has_place) = (is_address(&tags), place_kind(&tags).is_some());
        if !is_address && !has_place {
            return Ok(());
        }
        if has_place {
            self.shared.relations.add_place(id, &tags);
        }
        let Some(point) = location.and_then(point_on_earth) else {
            return Ok(());
        };
        if is_address {
            self.shared.numbered.add(point);
            let (shared, mut way) = (self.shared, None);
            let tags =
                complete_address_tags(&shared.relations, ObjectKind::Node, id, &tags, &mut way);
            self.add_point(Layer::Addresses, id, point, &tags);
        }
        if has_place {
            self.add_point(Layer::Places, id, point, &area_tags(&tags));
        }
        Ok(())
    }

    fn visit_way(&mut self, way: &Way<'_>, locations: &[Option<Location>]) -> FormatResult<()> {
        let tags = self.short_tags(way.tags());
        let Some(layers) = WayLayers::of(&tags) else {
            return Ok(());
        };
        let mut points = std::mem::take(&mut self.points);
        points.clear();
        let on_earth = locations
            .iter()
            .map_while(|location| location.and_then(point_on_earth));
        points.extend(on_earth);
        // A way with a missing node, or with a node outside of the world, has no geometry.
        if points.len() == locations.len() && points.len() > 1 {
            if layers.is_wanted && points.len() > 3 && is_closed(locations) {
                self.add_closed_area(way, locations, &tags);
            }
            self.add_located_way(way, &mut points, &tags, &layers);
        }
        self.points = points;
        Ok(())
    }

    fn visit_relation(&mut self, relation: &Relation<'_>, ways: &WayStore) -> FormatResult<()> {
        let tags = self.short_tags(relation.tags());
        let (is_address, is_wanted) = (is_address(&tags), is_wanted_area(&tags));
        let is_street = is_street_relation(&tags);
        let is_building = !is_address && is_building(&tags);
        if !is_area(relation.tags()) || !(is_address || is_wanted || is_street || is_building) {
            return Ok(());
        }
        let (id, members) = (relation.id(), relation.members());
        let polygons = self
            .geometry
            .polygons_of_relation(id, members, ways, &mut |_| {});
        if polygons.is_empty() {
            if is_address || is_wanted || is_street {
                self.found.get_or_insert_default().incomplete += 1;
            }
            return Ok(());
        }
        if is_wanted {
            let mut kept = area_tags(&tags);
            kept.extend(self.shared.relations.labels(relation, &tags));
            self.add_area(ObjectKind::Relation, id, &polygons, &kept);
        }
        if !(is_address || is_street || is_building) {
            return Ok(());
        }
        let rings = polygons.iter().flat_map(closed_rings).collect::<Vec<_>>();
        if is_address {
            let (relations, mut way) = (&self.shared.relations, None);
            let tags = complete_address_tags(relations, ObjectKind::Relation, id, &tags, &mut way);
            self.add_rings(Layer::Addresses, id, &rings, &tags);
        } else if is_building
            && rings
                .iter()
                .any(|ring| self.may_contain_house_numbers(ring))
        {
            self.add_rings(Layer::Buildings, id, &rings, &ItemTags::new());
        }
        if is_street {
            self.add_rings(Layer::Streets, id, &rings, &street_tags(&tags));
        }
        Ok(())
    }

    fn take_result(&mut self, is_end: bool) -> FormatResult<Option<CollectedBlob>> {
        Ok(self.found.take_if(|_| is_end))
    }

    fn check_flushed(&mut self) -> Result<()> {
        self.shared.sorter.check_for_error()
    }

    fn flush(&mut self) {
        self.shared.sorter.add_and_clear(&mut self.rows);
    }
}

/// Returns the tags that the index keeps of an address. An address without a street gets the tags of the relation that
/// assigns the house to a street. If this relation has no street name, sets `way` to the id of the way that has the
/// name, and adds this id as a tag.
fn complete_address_tags<'a>(
    relations: &'a Relations,
    kind: ObjectKind,
    id: i64,
    tags: &[(&'a str, &'a str)],
    way: &'a mut Option<String>,
) -> ItemTags<'a> {
    let mut tags = address_tags(tags);
    if nonblank_tag(&tags, "addr:street").is_some() {
        return tags;
    }
    let Some(street) = relations.street_of(kind, id) else {
        return tags;
    };
    tags.retain(|(key, _)| *key != "addr:street");
    for (key, value) in &street.tags {
        if tag(&tags, key).is_none() {
            tags.push((key, value));
        }
    }
    *way = street.way.map(|way| way.to_string());
    tags.extend(way.as_deref().map(|way| (STREET, way)));
    tags
}

/// Returns the rings of a polygon, each closed by repeating its first point.
fn closed_rings(polygon: &AreaPolygon) -> impl Iterator<Item = Vec<Point>> {
    let rings = polygon.rings();
    rings.map(|ring| ring.iter().chain(ring.first()).copied().collect())
}

impl<'s> Collector<'s> {
    pub(super) fn new(shared: &'s CollectorState, max_vertices: Option<usize>) -> Self {
        Self {
            shared,
            max_vertices,
            rows: RowBatch::default(),
            found: None,
            geometry: GeometryMaker::default(),
            points: Vec::new(),
        }
    }

    /// Collects the tags that are not too long, and counts the others.
    fn short_tags<'t>(&mut self, tags: impl Iterator<Item = (&'t str, &'t str)>) -> ItemTags<'t> {
        let mut long_tags = 0;
        let short = tags.filter(|tag| {
            let is_short = is_short(tag);
            long_tags += u64::from(!is_short);
            is_short
        });
        let short: ItemTags<'t> = short.collect();
        if long_tags > 0 {
            self.found.get_or_insert_default().long_tags += long_tags;
        }
        short
    }

    /// Adds a way whose nodes have locations.
    fn add_located_way(
        &mut self,
        way: &Way<'_>,
        points: &mut [Point],
        tags: &ItemTags<'_>,
        layers: &WayLayers,
    ) {
        let is_closed = points.len() > 3 && points.first() == points.last();
        unwrap_longitudes(points);
        let line = &*points;
        if layers.is_address {
            let shape = if is_closed {
                ItemShape::Area
            } else {
                ItemShape::Line
            };
            let (relations, mut street) = (&self.shared.relations, None);
            let tags =
                complete_address_tags(relations, ObjectKind::Way, way.id(), tags, &mut street);
            self.put_way(Layer::Addresses, way.id(), shape, line, &tags);
        } else if layers.is_interpolation {
            self.add_interpolation(way, line, tags);
        }
        if layers.is_building && is_closed && self.may_contain_house_numbers(line) {
            let none = ItemTags::new();
            self.put_way(Layer::Buildings, way.id(), ItemShape::Area, line, &none);
        }
        match layers.street {
            Some(StreetKind::Street) if is_closed && is_street_area(tags) => {
                let tags = street_tags(tags);
                self.put_way(Layer::Streets, way.id(), ItemShape::Area, line, &tags);
            }
            Some(StreetKind::Street) => self.add_street(Layer::Streets, way.id(), line, tags),
            Some(StreetKind::Road) => self.add_street(Layer::Roads, way.id(), line, tags),
            None => {}
        }
    }

    /// Adds a row for an item of a layer, if the item has a location.
    fn put(&mut self, layer: Layer, item: &IndexedItem<'_>) {
        if let Some(extent) = item.extent() {
            let key = key_of(layer, &extent);
            self.rows.push(key, |out| item.put_row(out));
            self.shared.sorter.add_if_full(&mut self.rows);
        }
    }

    /// Whether the area inside `line` may contain nodes with a house number.
    fn may_contain_house_numbers(&self, line: &[Point]) -> bool {
        Extent::of(line).is_some_and(|extent| self.shared.numbered.may_contain_node(&extent))
    }

    /// Adds the rings of a relation as one area.
    fn add_rings(&mut self, layer: Layer, id: i64, rings: &[Vec<Point>], tags: &ItemTags<'_>) {
        let item = IndexedItem {
            kind: ObjectKind::Relation,
            id,
            shape: ItemShape::Area,
            lines: Lines::Many(rings),
            tags,
        };
        self.put(layer, &item);
    }

    fn add_point(&mut self, layer: Layer, id: i64, point: Point, tags: &ItemTags<'_>) {
        let item = IndexedItem {
            kind: ObjectKind::Node,
            id,
            shape: ItemShape::Point,
            lines: Lines::One(&[point]),
            tags,
        };
        self.put(layer, &item);
    }

    /// Adds a way. A way that crosses the antimeridian is added twice, once with the longitudes of each side.
    fn put_way(
        &mut self,
        layer: Layer,
        id: i64,
        shape: ItemShape,
        line: &[Point],
        tags: &ItemTags<'_>,
    ) {
        let item = |line| IndexedItem {
            kind: ObjectKind::Way,
            id,
            shape,
            lines: Lines::One(line),
            tags,
        };
        self.put(layer, &item(line));
        if let Some(other) = shifted_across_antimeridian(line) {
            self.put(layer, &item(&other));
        }
    }

    /// Adds a street as parts of at most [`PART_SEGMENTS`] segments.
    fn add_street(&mut self, layer: Layer, id: i64, line: &[Point], tags: &ItemTags<'_>) {
        let kept = street_tags(tags);
        let mut start = 0;
        while let Some(part) = line.get(start..line.len().min(start + PART_SEGMENTS + 1))
            && part.len() > 1
        {
            self.put_way(layer, id, ItemShape::Line, part, &kept);
            start += PART_SEGMENTS;
        }
    }

    /// Adds an interpolation way with the ids of its nodes, unless it has too many nodes.
    fn add_interpolation(&mut self, way: &Way<'_>, line: &[Point], tags: &ItemTags<'_>) {
        let found = self.found.get_or_insert_default();
        if line.len() > MAX_WAY_NODES {
            found.not_interpolated += 1;
            return;
        }
        found.interpolated.extend(way.refs());
        let nodes = format_node_list(way.refs());
        let (relations, mut street) = (&self.shared.relations, None);
        let id = way.id();
        let mut kept = complete_address_tags(relations, ObjectKind::Way, id, tags, &mut street);
        kept.push((NUMBERS, &nodes));
        self.put_way(
            Layer::Interpolations,
            way.id(),
            ItemShape::Line,
            line,
            &kept,
        );
    }

    /// Adds the area of a closed way.
    fn add_closed_area(
        &mut self,
        way: &Way<'_>,
        locations: &[Option<Location>],
        tags: &ItemTags<'_>,
    ) {
        let mut geometry = std::mem::take(&mut self.geometry);
        let (id, refs) = (way.id(), way.refs());
        let polygons = geometry.polygons_of_way(id, refs, locations, &mut |_| {});
        if polygons.is_empty() {
            self.found.get_or_insert_default().incomplete += 1;
        }
        self.add_area(ObjectKind::Way, id, &polygons, &area_tags(tags));
        self.geometry = geometry;
    }

    /// Adds the polygons of an area, simplified if they have more than `max_vertices` corners.
    fn add_area(
        &mut self,
        kind: ObjectKind,
        id: i64,
        polygons: &[AreaPolygon],
        tags: &ItemTags<'_>,
    ) {
        let fewer = self
            .max_vertices
            .and_then(|max| simplify_polygons(polygons, max));
        if fewer.is_some() {
            let found = self.found.get_or_insert_default();
            found.simplified.push(ObjectId { kind, id });
        }
        let mut lines: Vec<Vec<Point>> = Vec::new();
        for polygon in fewer.as_deref().unwrap_or(polygons) {
            if !lines.is_empty() {
                lines.push(Vec::new());
            }
            lines.extend(closed_rings(polygon));
        }
        let item = IndexedItem {
            kind,
            id,
            shape: ItemShape::Area,
            lines: Lines::Many(&lines),
            tags,
        };
        self.put(Layer::Areas, &item);
    }
}
