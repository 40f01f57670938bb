//! A region, with tests whether points, lines and polygons share a point with it.

use super::antimeridian::{is_on_antimeridian, point_at_opposite_map_edge};
use super::edge::{Edge, EdgeRelation, add_ring};
use super::{AreaIndex, Extent, Point, Shape};

/// A region, prepared for exact tests. Points on an edge of the region belong to it.
///
/// The tests take geometries as they are on the map, so geometries must have been cut at the antimeridian. A point at
/// 180 degrees east and the point of the same latitude at 180 degrees west are the same place. A region that has one of
/// these two points contains both.
#[derive(Debug)]
pub(crate) struct Region {
    index: AreaIndex,
    edges: Vec<Edge>,
    /// Whether the region has a point on the antimeridian.
    is_at_antimeridian: bool,
}

/// The position of the box around a geometry relative to a region.
enum Contact {
    Inside,
    Outside,
    Unclear,
}

impl Region {
    pub(crate) fn new(shape: &Shape) -> Self {
        let mut edges = Vec::new();
        for (ring, is_hole) in shape.rings() {
            add_ring(ring, is_hole, &mut edges);
        }
        Self {
            index: AreaIndex::new(std::slice::from_ref(shape)),
            is_at_antimeridian: edges.iter().any(|edge| is_on_antimeridian(edge.from)),
            edges,
        }
    }

    /// Whether the region contains a point.
    pub(crate) fn contains(&self, point: Point) -> bool {
        self.contains_without_wrapping(point) || self.meets_at_opposite_map_edge(&[point], false)
    }

    /// Whether the region contains a point. Unlike [`contains`](Self::contains), ignores the other edge of the map.
    fn contains_without_wrapping(&self, point: Point) -> bool {
        !self.index.regions_of(point).is_empty()
    }

    /// Whether the region shares a point with a line.
    pub(crate) fn meets_line(&self, points: &[Point]) -> bool {
        let meets = match self.contact(points) {
            Contact::Inside => true,
            Contact::Outside => false,
            Contact::Unclear => self.meets_path(points, false),
        };
        meets || self.meets_at_opposite_map_edge(points, false)
    }

    /// Whether the region shares a point with a polygon, given as its outer ring and its holes. Rings do not repeat
    /// their first point.
    pub(crate) fn meets_polygon(&self, outer: &[Point], holes: &[Vec<Point>]) -> bool {
        let meets = match self.contact(outer) {
            Contact::Inside => true,
            Contact::Outside => false,
            Contact::Unclear => self.meets_rings(outer, holes),
        };
        meets || self.meets_at_opposite_map_edge(outer, true)
    }

    /// Whether the region shares a point with a polygon whose box has the position [`Contact::Unclear`].
    fn meets_rings(&self, outer: &[Point], holes: &[Vec<Point>]) -> bool {
        let mut rings = std::iter::once(outer).chain(holes.iter().map(Vec::as_slice));
        if rings.any(|ring| self.meets_path(ring, true)) {
            return true;
        }
        // No edges meet, so each ring of the region lies completely inside or completely outside of the polygon.
        let is_within = |edge: &Edge| {
            let rings = std::iter::once(outer).chain(holes.iter().map(Vec::as_slice));
            let crossed = rings.flat_map(|ring| edges_of(ring, true));
            let crossed = crossed.filter(|other| other.crosses_ray_east_of(edge.from));
            crossed.count() % 2 == 1
        };
        self.edges.iter().any(is_within)
    }

    /// Whether the box around some points is known to lie in the region. May return `false` for a box inside the region
    /// if edges of the region meet the box.
    pub(crate) fn is_known_to_contain(&self, points: &[Point]) -> bool {
        matches!(self.contact(points), Contact::Inside)
    }

    /// Returns the parts of an edge that lie within the region, in order from `from` to `to`.
    pub(crate) fn edge_parts_within(&self, from: Point, to: Point) -> Vec<(Point, Point)> {
        match self.contact(&[from, to]) {
            Contact::Inside => return vec![(from, to)],
            Contact::Outside => return Vec::new(),
            Contact::Unclear => {}
        }
        let edge = Edge { from, to };
        let met = self
            .edges
            .iter()
            .filter(|own| own.relation_to(&edge) != EdgeRelation::Apart);
        let mut shares: Vec<f64> = met
            .flat_map(|own| intersection_fractions(&edge, own))
            .collect();
        shares.extend([0.0, 1.0]);
        shares.sort_unstable_by(f64::total_cmp);
        shares.dedup();
        let at = |share: f64| {
            Point::new(
                interpolate_coordinate(from.lat_e7, to.lat_e7, share),
                interpolate_coordinate(from.lon_e7, to.lon_e7, share),
            )
        };
        let mut parts: Vec<(Point, Point)> = Vec::new();
        for pair in shares.windows(2) {
            let (start, end) = (at(pair[0]), at(pair[1]));
            if start == end || !self.contains_without_wrapping(at((pair[0] + pair[1]) / 2.0)) {
                continue;
            }
            match parts.last_mut() {
                Some((_, last)) if *last == start => *last = end,
                _ => parts.push((start, end)),
            }
        }
        parts
    }

    /// Returns the position of the box around points relative to the region.
    fn contact(&self, points: &[Point]) -> Contact {
        let Some(extent) = Extent::of(points) else {
            return Contact::Outside;
        };
        let cover = self.index.cover(&extent.to_bbox());
        if !cover.inside.is_empty() {
            Contact::Inside
        } else if cover.touched.is_empty() {
            Contact::Outside
        } else {
            Contact::Unclear
        }
    }

    /// Whether the region contains a point of a path, or an edge of the region meets an edge of the path.
    fn meets_path(&self, points: &[Point], is_closed: bool) -> bool {
        points
            .iter()
            .any(|point| self.contains_without_wrapping(*point))
            || edges_of(points, is_closed).any(|edge| self.meets_edge(&edge))
    }

    /// Whether an edge of the region shares a point with `edge`.
    fn meets_edge(&self, edge: &Edge) -> bool {
        let mut own = self.edges.iter();
        own.any(|own| own.relation_to(edge) != EdgeRelation::Apart)
    }

    /// Whether the region meets the part of a path on the antimeridian, if this part is moved to the other edge of the
    /// map.
    fn meets_at_opposite_map_edge(&self, points: &[Point], is_closed: bool) -> bool {
        if !self.is_at_antimeridian {
            return false;
        }
        let mut ends = points.iter().filter(|point| is_on_antimeridian(**point));
        if ends.any(|point| self.contains_without_wrapping(point_at_opposite_map_edge(*point))) {
            return true;
        }
        let mut along = edges_of(points, is_closed)
            .filter(|edge| is_on_antimeridian(edge.from) && edge.from.lon_e7 == edge.to.lon_e7);
        along.any(|edge| {
            self.meets_edge(&Edge::new(
                point_at_opposite_map_edge(edge.from),
                point_at_opposite_map_edge(edge.to),
            ))
        })
    }
}

/// Returns the coordinate at the fraction `share` of the way between two coordinates.
fn interpolate_coordinate(from: i32, to: i32, share: f64) -> i32 {
    (f64::from(from) + (f64::from(to) - f64::from(from)) * share).round() as i32
}

/// Returns the positions at which `edge` meets `other`, as fractions of the length of `edge`. If the edges lie on one
/// line, these are the positions of the ends of `other` that lie on `edge`.
fn intersection_fractions(edge: &Edge, other: &Edge) -> Vec<f64> {
    let (width, height) = (edge.width() as f64, edge.height() as f64);
    let (other_width, other_height) = (other.width() as f64, other.height() as f64);
    let cross = width * other_height - height * other_width;
    let to = |point: Point| {
        (
            f64::from(point.lon_e7) - f64::from(edge.from.lon_e7),
            f64::from(point.lat_e7) - f64::from(edge.from.lat_e7),
        )
    };
    let (x, y) = to(other.from);
    let shares = if cross == 0.0 {
        let (end_x, end_y) = to(other.to);
        let square = width * width + height * height;
        vec![
            (x * width + y * height) / square,
            (end_x * width + end_y * height) / square,
        ]
    } else {
        vec![(x * other_height - y * other_width) / cross]
    };
    let within = shares
        .into_iter()
        .filter(|share| (0.0..=1.0).contains(share));
    within.collect()
}

/// Returns the edges of a path. A closed path also has the edge from its last point to its first.
fn edges_of(points: &[Point], is_closed: bool) -> impl Iterator<Item = Edge> {
    let next = points.iter().cycle().skip(1);
    let count = points.len() - usize::from(!is_closed && !points.is_empty());
    let pairs = points.iter().zip(next).take(count);
    pairs.map(|(from, to)| Edge::new(*from, *to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::parse_bbox;

    fn points(places: &[(i32, i32)]) -> Vec<Point> {
        let places = places.iter();
        places
            .map(|(lon, lat)| Point::new(lat * 10_000_000, lon * 10_000_000))
            .collect()
    }

    #[test]
    fn a_geometry_without_a_vertex_in_a_box_can_meet_the_box() {
        let region = Region::new(&parse_bbox("2,2,4,4").unwrap());
        assert!(region.contains(points(&[(2, 3)])[0]) && !region.contains(points(&[(5, 3)])[0]));
        for (line, expected) in [
            (&[(0, 3), (6, 3)][..], true),
            (&[(0, 0), (3, 3)], true),
            (&[(0, 4), (6, 4)], true),
            (&[(0, 0), (1, 6), (6, 6)], false),
            // The region meets the bounding box of this line, but not the line.
            (&[(0, 3), (3, 6)], false),
        ] {
            assert_eq!(region.meets_line(&points(line)), expected, "{line:?}");
        }
        let around = points(&[(0, 0), (9, 0), (9, 9), (0, 9)]);
        let hole = points(&[(1, 1), (1, 8), (8, 8), (8, 1)]);
        let crossing = points(&[(1, 1), (1, 3), (3, 3), (3, 1)]);
        assert!(region.meets_polygon(&around, &[]));
        assert!(!region.meets_polygon(&around, &[hole]));
        assert!(region.meets_polygon(&around, &[crossing]));
        assert!(region.meets_polygon(&points(&[(3, 0), (9, 0), (3, 9)]), &[]));
        assert!(!region.meets_polygon(&points(&[(5, 0), (9, 0), (9, 9)]), &[]));
    }

    #[test]
    fn the_antimeridian_has_the_same_points_at_both_edges_of_the_map() {
        let west = Region::new(&parse_bbox("-180,2,-170,4").unwrap());
        assert!(west.contains(points(&[(180, 3)])[0]) && !west.contains(points(&[(180, 5)])[0]));
        for (line, expected) in [
            (&[(170, 3), (180, 3)][..], true),
            (&[(170, 3), (179, 3)], false),
            (&[(180, 0), (180, 9)], true),
            (&[(180, 5), (180, 9)], false),
        ] {
            assert_eq!(west.meets_line(&points(line)), expected, "{line:?}");
        }
        let square = points(&[(170, 0), (180, 0), (180, 9), (170, 9)]);
        assert!(west.meets_polygon(&square, &[]));
        let apart = points(&[(170, 5), (180, 5), (180, 9), (170, 9)]);
        assert!(!west.meets_polygon(&apart, &[]));
    }
}
