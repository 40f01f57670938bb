//! The polygons of an area in a box.

use super::box_part::BoxPart;
use crate::area::AreaPolygon;
use crate::geometry::{Point, Rings, Shape, difference, intersection};

impl BoxPart {
    /// Returns the polygons of the area in the box. They are valid even where rounding has moved a line across a point.
    pub(crate) fn polygons(&self) -> Vec<AreaPolygon> {
        if self.is_uniform() {
            return polygons(vec![self.rings()]);
        }
        polygons(intersection(self.rings().iter(), &[self.edge_ring()]))
    }

    /// Returns the polygons of that part of the box which lies outside of the area. Together with the polygons of the
    /// area, they fill the box exactly.
    pub(crate) fn outside_polygons(&self) -> Vec<AreaPolygon> {
        if self.is_full() {
            return Vec::new();
        }
        polygons(difference([self.edge_ring()].iter(), &self.rings()))
    }

    /// Returns the polygons of the area minus the area of `other`. `self` and `other` must have the same box.
    pub(crate) fn difference_polygons(&self, other: &Self) -> Vec<AreaPolygon> {
        if self.is_full() {
            return other.outside_polygons();
        }
        polygons(difference(self.rings().iter(), &other.rings()))
    }

    /// Returns the edges of the box as a ring.
    fn edge_ring(&self) -> Vec<Point> {
        let shape = Shape::of_bbox(&self.bounds.to_bbox());
        let polygons = shape.polygons.into_iter();
        polygons.flat_map(|polygon| polygon.outer.points).collect()
    }
}

/// Converts lists of rings to polygons. The first ring of each list is the outer ring, and the others are holes.
fn polygons(polygons: Vec<Rings>) -> Vec<AreaPolygon> {
    let polygon = |rings: Rings| {
        let mut rings = rings.into_iter();
        Some(AreaPolygon {
            outer: rings.next()?,
            holes: rings.collect(),
        })
    };
    polygons.into_iter().filter_map(polygon).collect()
}
