//! Lines for a map: the streets and the boundaries of an index in a box.

use super::area::Areas;
use super::index::GeocodeIndex;
use super::layout::{AREA_SECTION, Layer};
use super::leaf::Leaf;
use super::write::part_places;
use crate::error::Result;
use crate::geometry::{Extent, Point};
use crate::osm::Bbox;

/// The lines of a map.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MapLines<'i> {
    /// Parts of streets, with their names.
    pub streets: Vec<(&'i str, Vec<Point>)>,
    /// Parts of roads without a name.
    pub roads: Vec<Vec<Point>>,
    /// Edges of administrative and other areas.
    pub boundaries: Vec<[Point; 2]>,
    /// Whether lines were left out because there are too many.
    pub is_thinned: bool,
}

impl GeocodeIndex {
    /// The box around everything in the index; empty if nothing is in it.
    ///
    /// # Errors
    ///
    /// The index is damaged.
    pub fn bbox(&self) -> Result<Bbox> {
        let mut bbox = Bbox::EMPTY;
        for layer in Layer::ALL {
            if let Some(extent) = self.tree(layer)?.extent(self.container())? {
                bbox.add(extent.low.lat_e7, extent.low.lon_e7);
                bbox.add(extent.high.lat_e7, extent.high.lon_e7);
            }
        }
        Ok(bbox)
    }

    /// Lines for a map of a box, about `budget` of each sort: the lines of every second, every fourth, … leaf of the
    /// index if there are more.
    ///
    /// # Errors
    ///
    /// The index is damaged.
    pub fn map_lines(&self, bbox: &Bbox, budget: usize) -> Result<MapLines<'_>> {
        let [west, south, east, north] = bbox.edges_e7();
        let extent = Extent::from_edges([south, west, north, east]);
        let mut map = MapLines::default();
        self.lines_of(Layer::Streets, &extent, budget, &mut map)?;
        self.lines_of(Layer::Roads, &extent, budget, &mut map)?;
        self.boundaries(&extent, budget, &mut map)?;
        Ok(map)
    }

    /// The leaves of a layer in a box, thinned to about `count`.
    fn leaves_in(
        &self,
        layer: Layer,
        extent: &Extent,
        count: usize,
        map: &mut MapLines<'_>,
    ) -> Result<Vec<u64>> {
        let mut leaves = Vec::new();
        self.tree(layer)?
            .meeting(self.container(), extent, &mut |leaf| {
                leaves.push(leaf);
                Ok(())
            })?;
        let step = leaves.len().div_ceil(count.max(1)).next_power_of_two();
        map.is_thinned |= step > 1;
        Ok(leaves.into_iter().step_by(step).collect())
    }

    fn lines_of<'i>(
        &'i self,
        layer: Layer,
        extent: &Extent,
        budget: usize,
        map: &mut MapLines<'i>,
    ) -> Result<()> {
        const LINES_OF_LEAF: usize = 16;
        for leaf in self.leaves_in(layer, extent, budget / LINES_OF_LEAF, map)? {
            let bytes = self.tree(layer)?.leaf(self.container(), leaf)?;
            let mut add_lines = || {
                let leaf = Leaf::parse(bytes)?;
                for (number, _) in leaf.boxes().filter(|(_, of_item)| of_item.meets(extent)) {
                    let item = leaf.item(number)?;
                    let line = item.lines()?.into_iter().flatten().collect();
                    match item.tag("name")? {
                        Some(name) => map.streets.push((name, line)),
                        None => map.roads.push(line),
                    }
                }
                Ok(())
            };
            add_lines().map_err(|error| self.damaged(&error))?;
        }
        Ok(())
    }

    fn boundaries(&self, extent: &Extent, budget: usize, map: &mut MapLines<'_>) -> Result<()> {
        let areas = Areas {
            container: self.container(),
            section: AREA_SECTION,
        };
        let mut parts = Vec::new();
        for leaf in self.leaves_in(Layer::Areas, extent, budget, map)? {
            let bytes = self.tree(Layer::Areas)?.leaf(self.container(), leaf)?;
            parts.extend(part_places(bytes).filter(|(other, _)| other.meets(extent)));
        }
        for (_, part) in parts {
            if map.boundaries.len() >= budget {
                map.is_thinned = true;
                break;
            }
            areas.edges(part, extent, &mut |from, to| {
                let edge = Extent::at(from).and(&Extent::at(to));
                if edge.meets(extent) {
                    map.boundaries.push([from, to]);
                }
            })?;
        }
        Ok(())
    }
}
