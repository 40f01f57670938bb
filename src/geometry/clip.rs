//! Cuts geometries at the edges of a region.

use super::intersection::{Rings, intersection};
use super::{Point, Region, Shape, doubled_area};

/// A region at whose edges geometries are cut.
#[derive(Debug)]
pub(crate) struct Clip {
    region: Region,
    /// The rings of the region, directed as in [`Rings`].
    contours: Rings,
}

impl Clip {
    pub(crate) fn new(shape: &Shape) -> Self {
        let contours = shape.rings().map(|(ring, is_hole)| {
            let mut points = ring.points.clone();
            if (doubled_area(&ring.points) < 0) != is_hole {
                points.reverse();
            }
            points
        });
        Self {
            region: Region::new(shape),
            contours: contours.collect(),
        }
    }

    /// Whether the region contains a point.
    pub(crate) fn has(&self, point: Point) -> bool {
        self.region.contains(point)
    }

    /// Returns the parts of a line that lie in the region; `None` if the whole line is known to lie in the region.
    pub(crate) fn parts_of_line(&self, points: &[Point]) -> Option<Vec<Vec<Point>>> {
        if self.region.is_known_to_contain(points) {
            return None;
        }
        let mut parts: Vec<Vec<Point>> = Vec::new();
        for pair in points.windows(2) {
            for (from, to) in self.region.edge_parts_within(pair[0], pair[1]) {
                match parts.last_mut() {
                    Some(part) if part.last() == Some(&from) => part.push(to),
                    _ => parts.push(vec![from, to]),
                }
            }
        }
        Some(parts)
    }

    /// Returns the parts of a polygon that lie in the region; `None` if the whole polygon is known to lie in the
    /// region. The rings of the polygon must be directed as in [`Rings`]. The rings of the parts are directed in the
    /// same way.
    pub(crate) fn parts_of_polygon<'r>(
        &self,
        rings: impl Iterator<Item = &'r Vec<Point>> + Clone,
    ) -> Option<Vec<Rings>> {
        if rings
            .clone()
            .take(1)
            .all(|outer| self.region.is_known_to_contain(outer))
        {
            return None;
        }
        Some(intersection(rings, &self.contours))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::parse_bbox;
    use crate::geometry::tests::{places_of_lines, points};

    fn area(parts: &[Rings]) -> i128 {
        parts.iter().flatten().map(|ring| doubled_area(ring)).sum()
    }

    #[test]
    fn geometries_are_cut_at_the_edges_of_a_region() {
        let clip = Clip::new(&parse_bbox("2,2,4,4").unwrap());
        let line = points(&[(0.0, 3.0), (3.0, 3.0), (3.0, 9.0), (3.5, 9.0), (3.5, 0.0)]);
        assert_eq!(
            places_of_lines(clip.parts_of_line(&line)),
            [
                vec![(2.0, 3.0), (3.0, 3.0), (3.0, 4.0)],
                vec![(3.5, 4.0), (3.5, 2.0)]
            ]
        );
        assert_eq!(clip.parts_of_line(&points(&[(2.5, 3.0), (3.0, 3.0)])), None);
        assert_eq!(
            clip.parts_of_line(&points(&[(5.0, 3.0), (6.0, 3.0)])),
            Some(Vec::new())
        );
        let outer = points(&[(0.0, 0.0), (3.0, 0.0), (3.0, 9.0), (0.0, 9.0)]);
        let parts = clip.parts_of_polygon([outer].iter()).unwrap();
        assert_eq!(area(&parts), 2 * 2 * 100_000_000_000_000);
        let within = points(&[(2.5, 2.5), (3.0, 2.5), (3.0, 3.0)]);
        assert!(clip.parts_of_polygon([within].iter()).is_none());
    }
}
