//! The JSON text of a map, generated piece by piece.

use super::refusal::Refusal;
use super::reverse::Parameters;
use super::subject::degrees;
use crate::error::Result;
use crate::geocode::{GeocodeIndex, MapLayer, MapPiece, MapWalk};
use crate::geometry::Point;
use crate::osm::Bbox;
use serde::Serialize;
use std::sync::Arc;

/// The approximate maximum number of roads in a map. The same limit applies to streets, and to boundary edges.
const MAP_BUDGET: usize = 20_000;
/// The number of points in a piece of text.
const PIECE_POINTS: usize = 512;
/// The expected size of a piece of text, in bytes.
const PIECE_LEN: usize = 16 << 10;

/// Generates the JSON text of the roads, streets and boundaries of a map piece by piece. Stores only a position in the
/// index, and no text.
pub(super) struct MapText {
    index: Arc<GeocodeIndex>,
    walk: MapWalk,
    /// Whether the list that is being written already has an entry.
    has_entry: bool,
    has_begun: bool,
    has_ended: bool,
}

impl MapText {
    /// Creates the map of the box in the request parameter `bbox`.
    pub(super) fn new(index: Arc<GeocodeIndex>, parameters: &Parameters) -> Result<Self, Refusal> {
        let text = parameters.get("bbox").map(String::as_str);
        let text = text.unwrap_or_default();
        let edges = text.split(',').map(|edge| edge.trim().parse::<f64>());
        let edges = edges.collect::<Result<Vec<f64>, _>>().ok();
        let is_box = |edges: &Vec<f64>| matches!(edges[..], [w, s, e, n] if w <= e && s <= n);
        let edges = edges.filter(is_box);
        let Some([west, south, east, north]) = edges.as_deref() else {
            return Err("parameter 'bbox' must be west,south,east,north in degrees".to_owned())?;
        };
        let e7 = |degrees: &f64| (degrees * 1e7) as i32;
        let bbox = Bbox {
            min_lat_e7: e7(south),
            max_lat_e7: e7(north),
            min_lon_e7: e7(west),
            max_lon_e7: e7(east),
        };
        let walk = index.map_walk(&bbox, MAP_BUDGET)?;
        Ok(Self {
            index,
            walk,
            has_entry: false,
            has_begun: false,
            has_ended: false,
        })
    }

    /// Returns the next piece of the text; `None` at the end.
    pub(super) fn next_piece(&mut self) -> Result<Option<Vec<u8>>> {
        if self.has_ended {
            return Ok(None);
        }
        let mut text = Vec::with_capacity(PIECE_LEN);
        if !self.has_begun {
            text.extend_from_slice(b"{\"boundaries\":[");
            self.has_begun = true;
        }
        let has_entry = &mut self.has_entry;
        let more = self
            .walk
            .advance(&self.index, PIECE_POINTS, &mut |walk, piece| {
                put_piece(&mut text, has_entry, walk, piece);
            })?;
        self.has_ended = !more;
        Ok(Some(text))
    }
}

/// Appends a piece of the map.
fn put_piece(text: &mut Vec<u8>, has_entry: &mut bool, walk: &MapWalk, piece: MapPiece<'_>) {
    match piece {
        MapPiece::Boundary(ends) => {
            put_comma(text, has_entry);
            text.push(b'[');
            put_points(text, &ends, true);
            text.push(b']');
        }
        MapPiece::Line {
            name,
            points,
            is_first,
            is_last,
            ..
        } => {
            if is_first {
                put_comma(text, has_entry);
                if !name.is_empty() {
                    text.push(b'[');
                    put_json(text, &name);
                    text.push(b',');
                }
                text.push(b'[');
            }
            put_points(text, points, is_first);
            if is_last {
                let end: &[u8] = if name.is_empty() { b"]" } else { b"]]" };
                text.extend_from_slice(end);
            }
        }
        MapPiece::End(layer) => {
            *has_entry = false;
            let next = match layer {
                MapLayer::Boundaries => {
                    format!("],\"is_thinned\":{},\"roads\":[", walk.is_thinned())
                }
                MapLayer::Roads => "],\"streets\":[".to_owned(),
                MapLayer::Streets => "]}".to_owned(),
            };
            text.extend_from_slice(next.as_bytes());
        }
    }
}

/// Appends a comma, unless the next entry is the first of its list.
fn put_comma(text: &mut Vec<u8>, has_entry: &mut bool) {
    if *has_entry {
        text.push(b',');
    }
    *has_entry = true;
}

/// Appends the coordinates of points, separated by commas. The longitude of each point precedes its latitude. Begins
/// with a comma unless `is_first` is set.
fn put_points(text: &mut Vec<u8>, points: &[Point], is_first: bool) {
    let coordinates = points.iter().flat_map(|point| [point.lon_e7, point.lat_e7]);
    for (number, coordinate) in coordinates.enumerate() {
        if number > 0 || !is_first {
            text.push(b',');
        }
        put_json(text, &degrees(coordinate));
    }
}

/// Appends a value as JSON.
fn put_json(text: &mut Vec<u8>, value: &impl Serialize) {
    // Numbers and strings can always be written as JSON, and writing to a vector cannot fail.
    let _ = serde_json::to_writer(text, value);
}
