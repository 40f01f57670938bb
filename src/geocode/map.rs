//! Lines for a map: the streets, roads and boundaries of an index that lie in a box.

use super::area::Areas;
use super::index::GeocodeIndex;
use super::item::BROKEN;
use super::layout::{AREA_SECTION, Layer};
use super::leaf::ItemLeaf;
use super::write::part_places;
use crate::error::Result;
use crate::geometry::{Extent, Point};
use crate::osm::Bbox;

/// The approximate number of lines in a leaf.
const LINES_OF_LEAF: u64 = 16;
/// The number of bytes of a name that count as one point towards the `room` of [`MapWalk::advance`].
const BYTES_OF_POINT: usize = 16;

/// A layer of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MapLayer {
    /// Edges of administrative and other areas.
    Boundaries,
    /// Roads without a name.
    Roads,
    /// Streets, which have names.
    Streets,
}

impl MapLayer {
    /// All layers, in the order in which a walk visits them.
    const ALL: [Self; 3] = [Self::Boundaries, Self::Roads, Self::Streets];

    const fn layer(self) -> Layer {
        match self {
            Self::Boundaries => Layer::Areas,
            Self::Roads => Layer::Roads,
            Self::Streets => Layer::Streets,
        }
    }
}

/// A piece of a map, which [`MapWalk::advance`] visits.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum MapPiece<'p> {
    /// An edge of an area.
    Boundary([Point; 2]),
    /// Points of a road or a street.
    #[non_exhaustive]
    Line {
        /// The name of a street; empty for a road.
        name: &'p str,
        /// The next points of the line.
        points: &'p [Point],
        /// Whether the line begins with this piece.
        is_first: bool,
        /// Whether the line ends with this piece.
        is_last: bool,
    },
    /// The end of a layer.
    End(MapLayer),
}

/// A cursor over the lines of a map. It holds a position in the index, and no lines.
#[derive(Debug, Clone)]
pub struct MapWalk {
    extent: Extent,
    budget: usize,
    /// The current layer, as an index into [`MapLayer::ALL`].
    layer: usize,
    /// For each layer, a number `n`. The walk visits every `n`-th leaf that meets the box.
    steps: [u64; 3],
    /// The current leaf; `None` at the end of the layer.
    leaf: Option<u64>,
    /// The number of finished objects in the current leaf.
    visited: usize,
    /// The number of finished points or edges of the current object.
    skipped: usize,
    /// The number of area edges that were visited.
    boundaries: usize,
    is_thinned: bool,
}

impl GeocodeIndex {
    /// Returns the bounding box of all objects. It is empty if the index has no objects.
    ///
    /// # Errors
    ///
    /// The index is damaged.
    pub fn bbox(&self) -> Result<Bbox> {
        let mut bbox = Bbox::EMPTY;
        for layer in Layer::ALL {
            if let Some(extent) = self.tree(layer).extent(&self.container)? {
                bbox.add(extent.low.lat_e7, extent.low.lon_e7);
                bbox.add(extent.high.lat_e7, extent.high.lon_e7);
            }
        }
        Ok(bbox)
    }

    /// Begins a walk over the lines in a box, with about `budget` lines or boundary edges of each layer. If a layer has
    /// more, the walk visits only every `n`-th leaf in the box, where `n` is a power of two.
    ///
    /// # Errors
    ///
    /// The index is damaged.
    pub fn map_walk(&self, bbox: &Bbox, budget: usize) -> Result<MapWalk> {
        let extent = Extent::of_bbox(bbox);
        let step = |layer: MapLayer| -> Result<u64> {
            let budget = match layer {
                MapLayer::Boundaries => budget as u64,
                MapLayer::Roads | MapLayer::Streets => budget as u64 / LINES_OF_LEAF,
            };
            let tree = self.tree(layer.layer());
            let count = tree.count_intersecting_leaves(&self.container, &extent)?;
            Ok(count.div_ceil(budget.max(1)).next_power_of_two())
        };
        let [boundaries, roads, streets] = MapLayer::ALL;
        let steps = [step(boundaries)?, step(roads)?, step(streets)?];
        let mut walk = MapWalk {
            extent,
            budget,
            layer: 0,
            steps,
            leaf: None,
            visited: 0,
            skipped: 0,
            boundaries: 0,
            is_thinned: steps.iter().any(|step| *step > 1),
        };
        walk.go_to_leaf(self, 0, 0)?;
        Ok(walk)
    }
}

impl MapWalk {
    /// Whether lines are omitted because there are too many. The result is final at the end of
    /// [`MapLayer::Boundaries`].
    pub const fn is_thinned(&self) -> bool {
        self.is_thinned
    }

    /// Calls `visit` with the next pieces, which have about `room` points. Returns whether more pieces are left.
    ///
    /// # Errors
    ///
    /// The index is damaged.
    pub fn advance(
        &mut self,
        index: &GeocodeIndex,
        mut room: usize,
        visit: &mut impl FnMut(&Self, MapPiece<'_>),
    ) -> Result<bool> {
        while let Some(layer) = MapLayer::ALL.get(self.layer).copied() {
            let Some(leaf) = self.leaf else {
                visit(self, MapPiece::End(layer));
                self.layer += 1;
                self.go_to_leaf(index, 0, 0)?;
                continue;
            };
            if room == 0 {
                return Ok(true);
            }
            let is_whole = match layer {
                MapLayer::Boundaries => self.visit_boundaries(index, leaf, &mut room, visit)?,
                MapLayer::Roads | MapLayer::Streets => {
                    self.visit_lines(index, layer, leaf, &mut room, visit)?
                }
            };
            if is_whole && self.leaf.is_some() {
                self.go_to_leaf(index, leaf + 1, self.steps[self.layer] - 1)?;
            }
        }
        Ok(false)
    }

    /// Starting at leaf `from`, finds the leaves whose boxes intersect the extent, skips the first `between` of them,
    /// and moves to the next one.
    fn go_to_leaf(&mut self, index: &GeocodeIndex, from: u64, between: u64) -> Result<()> {
        (self.visited, self.skipped, self.leaf) = (0, 0, None);
        if let Some(layer) = MapLayer::ALL.get(self.layer) {
            let tree = index.tree(layer.layer());
            self.leaf =
                tree.nth_intersecting_leaf(&index.container, &self.extent, from, between)?;
        }
        Ok(())
    }

    /// Visits lines of a leaf until `room` is used up. Returns whether the leaf is finished.
    fn visit_lines(
        &mut self,
        index: &GeocodeIndex,
        layer: MapLayer,
        leaf: u64,
        room: &mut usize,
        visit: &mut impl FnMut(&Self, MapPiece<'_>),
    ) -> Result<bool> {
        let bytes = index.tree(layer.layer()).leaf(&index.container, leaf)?;
        let mut visit_lines = || {
            let leaf = ItemLeaf::parse(bytes)?;
            let boxes = leaf.boxes().skip(self.visited);
            for (number, of_item) in boxes {
                if of_item.meets(&self.extent) {
                    if *room == 0 {
                        return Ok(false);
                    }
                    let item = leaf.item(number)?;
                    let line: Vec<Point> = item.lines()?.into_iter().flatten().collect();
                    let name = item.tag("name")?.unwrap_or_default();
                    let rest = line.get(self.skipped..).ok_or(BROKEN)?;
                    let (points, later) = rest.split_at(rest.len().min(*room));
                    let is_first = self.skipped == 0;
                    let piece = MapPiece::Line {
                        name,
                        points,
                        is_first,
                        is_last: later.is_empty(),
                    };
                    visit(self, piece);
                    let begin = if is_first {
                        1 + name.len() / BYTES_OF_POINT
                    } else {
                        0
                    };
                    *room = room.saturating_sub(points.len() + begin);
                    if !later.is_empty() {
                        self.skipped += points.len();
                        return Ok(false);
                    }
                }
                (self.visited, self.skipped) = (self.visited + 1, 0);
            }
            Ok(true)
        };
        visit_lines().map_err(|error| index.damage_error(&error))
    }

    /// Visits edges of the parts of areas in a leaf until `room` is used up. Returns whether the leaf is finished. Ends
    /// the layer when the budget is used up.
    fn visit_boundaries(
        &mut self,
        index: &GeocodeIndex,
        leaf: u64,
        room: &mut usize,
        visit: &mut impl FnMut(&Self, MapPiece<'_>),
    ) -> Result<bool> {
        let areas = Areas {
            container: &index.container,
            section: AREA_SECTION,
        };
        let bytes = index.tree(Layer::Areas).leaf(&index.container, leaf)?;
        let parts = part_places(bytes).map_err(|error| index.damage_error(&error))?;
        for (other, part) in parts.skip(self.visited) {
            if other.meets(&self.extent) {
                if self.skipped == 0 && self.boundaries >= self.budget {
                    (self.is_thinned, self.leaf) = (true, None);
                    return Ok(true);
                }
                let (extent, skipped) = (self.extent, self.skipped);
                areas.visit_edges(part, &extent, skipped, &mut |from, to| {
                    if *room == 0 {
                        return false;
                    }
                    self.skipped += 1;
                    if Extent::at(from).and(&Extent::at(to)).meets(&extent) {
                        visit(self, MapPiece::Boundary([from, to]));
                        self.boundaries += 1;
                        *room = room.saturating_sub(2);
                    }
                    true
                })?;
                if *room == 0 {
                    return Ok(false);
                }
            }
            (self.visited, self.skipped) = (self.visited + 1, 0);
        }
        Ok(true)
    }
}
