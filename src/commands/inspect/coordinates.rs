//! Statistics of the coordinates of nodes, and of the coordinates in ways.

use crate::error::FormatResult;
use crate::osm::{Bbox, Degrees, NANO_PER_DECIMICRO, ObjectKind, floor_e7};
use crate::pbf::{Block, BlockUnits, RawElement};
use serde::Serialize;

/// The number of nanodegrees in a degree.
const DEGREE: u64 = 1_000_000_000;

/// Whether a location in nanodegrees lies beyond 90 degrees of latitude or 180 degrees of longitude.
pub(super) const fn is_outside_lat_lon_range(lat: i64, lon: i64) -> bool {
    lat.unsigned_abs() > 90 * DEGREE || lon.unsigned_abs() > 180 * DEGREE
}

/// Statistics of the coordinates of nodes. Deleted versions are ignored. A node of a history file counts once, with its
/// newest version that is not deleted.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct NodeStatistics {
    /// The number of nodes.
    pub nodes: u64,
    /// The number of nodes with tags.
    pub tagged: u64,
    /// The number of nodes outside of the world, which have a latitude beyond 90 or a longitude beyond 180 degrees.
    pub outside: u64,
    /// The number of nodes at exactly 0,0.
    pub at_zero: u64,
    /// The number of nodes with coordinates finer than 1e-7 degree.
    pub finer_than_e7: u64,
    /// The bounding box of the nodes within the world; `None` if no node is within the world. Serialized as a list of
    /// four numbers in degrees: `min_lon`, `min_lat`, `max_lon`, `max_lat`.
    pub bbox: Option<Bbox>,
    /// The id of the westernmost node within the world. If there are several, the first one in the file.
    pub westernmost: Option<i64>,
    /// The id of the southernmost node within the world. If there are several, the first one in the file.
    pub southernmost: Option<i64>,
    /// The id of the easternmost node within the world. If there are several, the first one in the file.
    pub easternmost: Option<i64>,
    /// The id of the northernmost node within the world. If there are several, the first one in the file.
    pub northernmost: Option<i64>,
    /// The mean latitude and longitude of the nodes within the world, in degrees.
    pub center: Option<Degrees>,
    /// The westernmost, southernmost, easternmost and northernmost coordinates with the ids of their nodes, in the form
    /// that [`extend_bbox_edges`](Self::extend_bbox_edges) accepts.
    #[serde(skip)]
    edges: Option<[(i64, i64); 4]>,
    /// The sums of the latitudes and of the longitudes of the nodes within the world, in nanodegrees.
    #[serde(skip)]
    sum: (i128, i128),
    /// The id of the first node.
    #[serde(skip)]
    first: Option<i64>,
    /// The last node, which is not counted yet, because a newer version may follow.
    #[serde(skip)]
    last: Option<StoredNode>,
}

/// A version of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StoredNode {
    id: i64,
    /// The latitude in nanodegrees.
    lat: i64,
    /// The longitude in nanodegrees.
    lon: i64,
    is_tagged: bool,
    /// Whether the coordinates are finer than 1e-7 degree.
    is_finer: bool,
}

impl NodeStatistics {
    /// Adds the nodes of a block.
    pub(super) fn add_block(&mut self, block: &Block<'_>) -> FormatResult<()> {
        let units = &block.units;
        let lengths = [units.granularity, units.lat_offset, units.lon_offset];
        let may_be_finer = lengths.iter().any(|len| len % NANO_PER_DECIMICRO != 0);
        block.for_each_stored_location(|id, (lat, lon), is_tagged| {
            let (lat, lon) = (units.nano_lat(lat), units.nano_lon(lon));
            let is_finer =
                may_be_finer && (lat % NANO_PER_DECIMICRO != 0 || lon % NANO_PER_DECIMICRO != 0);
            let node = StoredNode {
                id,
                lat,
                lon,
                is_tagged,
                is_finer,
            };
            self.count_last_unless_same(id);
            self.first.get_or_insert(id);
            self.last = Some(node);
        })
    }

    /// Counts the last node, unless the next node is another version of it. `next` is the id of the next node.
    fn count_last_unless_same(&mut self, next: i64) {
        if let Some(node) = self.last.take_if(|last| last.id != next) {
            self.count_node(node);
        }
    }

    /// Adds a node to the statistics.
    fn count_node(&mut self, node: StoredNode) {
        let StoredNode {
            id,
            lat,
            lon,
            is_tagged,
            is_finer,
        } = node;
        self.nodes += 1;
        self.tagged += u64::from(is_tagged);
        self.at_zero += u64::from((lat, lon) == (0, 0));
        self.finer_than_e7 += u64::from(is_finer);
        if is_outside_lat_lon_range(lat, lon) {
            self.outside += 1;
            return;
        }
        self.sum = (self.sum.0 + i128::from(lat), self.sum.1 + i128::from(lon));
        self.extend_bbox_edges([(lon, id), (lat, id), (-lon, id), (-lat, id)]);
    }

    /// Extends the bounding box of the nodes to include another box. `found` has the west, south, east and north edges
    /// of that box in nanodegrees, each with the id of the node on the edge. East and north are negated, so the smaller
    /// of two edges is always the outer one.
    fn extend_bbox_edges(&mut self, found: [(i64, i64); 4]) {
        let edges = self.edges.get_or_insert(found);
        for (edge, found) in edges.iter_mut().zip(found) {
            // `<` and not `<=`, because among nodes with the same coordinate the first one in the file counts.
            if found.0 < edge.0 {
                *edge = found;
            }
        }
    }

    /// Adds the nodes of the next blob in file order.
    pub(super) fn merge(&mut self, other: &Self) {
        if let Some(first) = other.first {
            self.count_last_unless_same(first);
            self.first.get_or_insert(first);
            self.last = other.last;
        }
        let sums = [
            (&mut self.nodes, other.nodes),
            (&mut self.tagged, other.tagged),
            (&mut self.outside, other.outside),
            (&mut self.at_zero, other.at_zero),
            (&mut self.finer_than_e7, other.finer_than_e7),
        ];
        sums.into_iter().for_each(|(sum, more)| *sum += more);
        self.sum = (self.sum.0 + other.sum.0, self.sum.1 + other.sum.1);
        if let Some(edges) = other.edges {
            self.extend_bbox_edges(edges);
        }
    }

    /// Counts the last node, and computes the values that depend on all nodes.
    pub(super) fn finish(&mut self) {
        if let Some(last) = self.last.take() {
            self.count_node(last);
        }
        let Some([west, south, east, north]) = self.edges else {
            return;
        };
        self.westernmost = Some(west.1);
        self.southernmost = Some(south.1);
        self.easternmost = Some(east.1);
        self.northernmost = Some(north.1);
        let mut bbox = Bbox::EMPTY;
        let e7 = |nano| floor_e7(nano) as i32;
        let e7_up = |nano| -e7(nano);
        bbox.add(e7(south.0), e7(west.0));
        bbox.add(e7_up(north.0), e7_up(east.0));
        self.bbox = Some(bbox);
        let inside = (self.nodes - self.outside).max(1) as f64 * 1e9;
        self.center = Some(Degrees {
            lat: self.sum.0 as f64 / inside,
            lon: self.sum.1 as f64 / inside,
        });
    }
}

/// Statistics of the locations that ways store for their nodes. An undefined location counts as a location that is not
/// stored. The nodes themselves are not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct WayLocationStatistics {
    /// The form of the file: `plain`, `located, with all nodes`, `located, needed nodes only` or `mixed`.
    pub form: &'static str,
    /// The number of ways.
    pub ways: u64,
    /// The number of ways that have nodes and store the locations of all of them.
    pub located_ways: u64,
    /// The number of ways that store the locations of some of their nodes, but not of all.
    pub partly_located_ways: u64,
    /// The number of ways that have nodes and store no location.
    pub bare_ways: u64,
    /// The number of references from ways to nodes.
    pub refs: u64,
    /// The number of references whose locations the ways store.
    pub located_refs: u64,
    /// The number of references whose locations the ways do not store.
    pub bare_refs: u64,
}

impl WayLocationStatistics {
    pub(super) fn add(&mut self, object: &RawElement<'_>, units: &BlockUnits) -> FormatResult<()> {
        if object.key.0 == ObjectKind::Way {
            let (refs, located) = object.count_refs_and_locations(units)?;
            self.ways += 1;
            self.refs += refs as u64;
            self.located_refs += located as u64;
            self.bare_refs += (refs - located) as u64;
            self.located_ways += u64::from(located == refs && refs > 0);
            self.partly_located_ways += u64::from(located > 0 && located < refs);
            self.bare_ways += u64::from(located == 0 && refs > 0);
        }
        Ok(())
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.ways += other.ways;
        self.located_ways += other.located_ways;
        self.partly_located_ways += other.partly_located_ways;
        self.bare_ways += other.bare_ways;
        self.refs += other.refs;
        self.located_refs += other.located_refs;
        self.bare_refs += other.bare_refs;
    }
}
