//! Regions as polygons with holes, in units of 1e-7 degree.

use crate::osm::{Bbox, Location};
use std::fmt;

/// A location on the earth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point {
    /// Latitude in 1e-7 degree.
    pub lat_e7: i32,
    /// Longitude in 1e-7 degree.
    pub lon_e7: i32,
}

impl Point {
    pub(crate) const fn new(lat_e7: i32, lon_e7: i32) -> Self {
        Self { lat_e7, lon_e7 }
    }

    /// Latitude in degrees.
    pub fn lat(self) -> f64 {
        f64::from(self.lat_e7) / 1e7
    }

    /// Longitude in degrees.
    pub fn lon(self) -> f64 {
        f64::from(self.lon_e7) / 1e7
    }
}

impl From<Location> for Point {
    fn from(location: Location) -> Self {
        Self {
            lat_e7: location.lat_e7(),
            lon_e7: location.lon_e7(),
        }
    }
}

/// A closed line through points. The last point is joined to the first and does not repeat it.
/// Consecutive points may be equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ring {
    /// The name of the ring in messages, such as `feature 3, polygon 1, ring 2`.
    pub name: String,
    /// The points of the ring. [`Shape::check`] requires that at least three of them are different.
    pub points: Vec<Point>,
}

impl Ring {
    /// Returns the ring through the points.
    pub(crate) const fn new(name: String, points: Vec<Point>) -> Self {
        Self { name, points }
    }
}

/// An outer ring without the interiors of its holes. Points on an edge belong to the polygon, including those on the
/// edge of a hole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Polygon {
    /// The ring around the polygon.
    pub outer: Ring,
    /// The rings whose interiors are not part of the polygon.
    pub holes: Vec<Ring>,
}

/// A region: the union of its polygons, which may overlap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shape {
    /// The polygons.
    pub polygons: Vec<Polygon>,
}

/// An error in a shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeError {
    /// The name of the ring with the error.
    pub ring: String,
    /// The number of the vertex with the error, counted from 1; `None` if the error concerns the
    /// whole ring.
    pub vertex: Option<usize>,
    /// The description of the error.
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
    /// Returns the shape of a box. A box whose western edge lies east of its eastern edge crosses the antimeridian and
    /// becomes two polygons.
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
                outer: Ring::new("bbox".into(), points.to_vec()),
                holes: Vec::new(),
            }
        };
        Self {
            polygons: spans.into_iter().map(polygon).collect(),
        }
    }

    /// Returns the smallest box that contains all outer rings; [`Bbox::EMPTY`] for a shape without points.
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

    /// Iterates over all rings, each with a flag that is true for a hole.
    pub fn rings(&self) -> impl Iterator<Item = (&Ring, bool)> {
        self.polygons.iter().flat_map(|polygon| {
            let holes = polygon.holes.iter().map(|hole| (hole, true));
            std::iter::once((&polygon.outer, false)).chain(holes)
        })
    }
}
