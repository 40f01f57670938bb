//! Worlds of islands.

use super::answers::file_of;
use super::{Object, node, way};
use std::path::{Path, PathBuf};

const COASTLINE: &[(&str, &str)] = &[("natural", "coastline")];

/// A ring of longitudes and latitudes in degrees. Land is on its left.
pub type IslandRing = Vec<[f64; 2]>;

/// A rectangle of land.
pub fn island([west, south, east, north]: [f64; 4]) -> IslandRing {
    vec![[west, south], [east, south], [east, north], [west, north]]
}

/// The ring in the other direction: a rectangle of water.
pub fn reversed(mut ring: IslandRing) -> IslandRing {
    ring.reverse();
    ring
}

/// Nodes and ways of rings. The nodes of the ring with index `i` have the ids from `100 * i + 1` on, and its two ways
/// the ids `10 * i + 1` and `10 * i + 2`.
pub fn coast_objects(rings: &[IslandRing]) -> Vec<Object> {
    let (mut nodes, mut ways) = (Vec::new(), Vec::new());
    for (index, ring) in (0i64..).zip(rings) {
        let first = 100 * index + 1;
        let e7 = |degrees: f64| (degrees * 1e7).round() as i64;
        for (id, [lon, lat]) in (first..).zip(ring) {
            nodes.push(node(id, e7(*lat), e7(*lon), &[]));
        }
        let ids: Vec<i64> = (first..).take(ring.len()).chain([first]).collect();
        ways.push(way(10 * index + 1, &ids[..2], COASTLINE));
        ways.push(way(10 * index + 2, &ids[1..], COASTLINE));
    }
    nodes.into_iter().chain(ways).collect()
}

/// Writes a file of objects.
pub fn coast_file(dir: &Path, name: &str, objects: &[Object]) -> PathBuf {
    let (nodes, ways): (Vec<_>, Vec<_>) = objects
        .iter()
        .cloned()
        .partition(|object| object.refs.is_empty());
    file_of(dir, name, &[&nodes, &ways])
}

/// Writes a world of islands: one with a lake, one across cells, one at the antimeridian, and a far one.
pub fn islands(dir: &Path) -> PathBuf {
    let rings = [
        island([-5.25, 41.5, 12.125, 57.75]),
        reversed(island([0.5, 45.25, 3.75, 50.5])),
        vec![
            [101.3, -33.7],
            [139.1, -29.9],
            [133.3, -11.3],
            [117.7, -14.1],
        ],
        island([171.0, 60.0, 180.0, 70.0]),
        island([55.4, -21.3, 55.8, -20.9]),
    ];
    coast_file(dir, "islands.osm.pbf", &coast_objects(&rings))
}
