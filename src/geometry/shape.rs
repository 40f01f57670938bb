//! What a region covers: polygons with holes, in units of 1e-7 degree.

use crate::osm::Bbox;
use std::fmt;

/// A position on the earth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point {
    /// Latitude in 1e-7 degree.
    pub lat_e7: i32,
    /// Longitude in 1e-7 degree.
    pub lon_e7: i32,
}

/// A closed line. The last point is joined to the first and does not repeat it; neighbours may be equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ring {
    /// How messages name it, such as `feature 3, polygon 1, ring 2`.
    pub name: String,
    /// Its points, at least three of them different.
    pub points: Vec<Point>,
}

/// A ring without what lies within its holes. Edges belong to it, those of holes too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Polygon {
    /// What it covers.
    pub outer: Ring,
    /// What is taken out.
    pub holes: Vec<Ring>,
}

/// What a region covers: whatever lies in one of some polygons, which may overlap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shape {
    /// The polygons.
    pub polygons: Vec<Polygon>,
}

/// What is wrong with a shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeError {
    /// The ring concerned.
    pub ring: String,
    /// The point concerned, counted from 1.
    pub vertex: Option<usize>,
    /// What is wrong there.
    pub cause: String,
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.vertex {
            Some(vertex) => write!(f, "{}, vertex {vertex}: {}", self.ring, self.cause),
            None => write!(f, "{}: {}", self.ring, self.cause),
        }
    }
}

impl std::error::Error for ShapeError {}

impl Shape {
    /// A box. One whose western edge lies east of its eastern one crosses the antimeridian.
    pub fn of_bbox(bbox: &Bbox) -> Self {
        const EDGE: i32 = 1_800_000_000;
        let spans = if bbox.min_lon_e7 > bbox.max_lon_e7 {
            vec![(bbox.min_lon_e7, EDGE), (-EDGE, bbox.max_lon_e7)]
        } else {
            vec![(bbox.min_lon_e7, bbox.max_lon_e7)]
        };
        let polygon = |(west, east): (i32, i32)| {
            let (south, north) = (bbox.min_lat_e7, bbox.max_lat_e7);
            let corners = [(south, west), (south, east), (north, east), (north, west)];
            let points = corners.map(|(lat_e7, lon_e7)| Point { lat_e7, lon_e7 });
            Polygon {
                outer: Ring {
                    name: "bbox".into(),
                    points: points.to_vec(),
                },
                holes: Vec::new(),
            }
        };
        Self {
            polygons: spans.into_iter().map(polygon).collect(),
        }
    }

    /// The smallest box that holds all of it.
    pub fn envelope(&self) -> Bbox {
        let points = self
            .polygons
            .iter()
            .flat_map(|polygon| &polygon.outer.points);
        points.fold(Bbox::EMPTY, |mut envelope, point| {
            envelope.add(point.lat_e7, point.lon_e7);
            envelope
        })
    }

    /// All rings, each with whether it is a hole.
    pub fn rings(&self) -> impl Iterator<Item = (&Ring, bool)> {
        self.polygons.iter().flat_map(|polygon| {
            let holes = polygon.holes.iter().map(|hole| (hole, true));
            std::iter::once((&polygon.outer, false)).chain(holes)
        })
    }
}
