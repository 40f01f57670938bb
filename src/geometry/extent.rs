//! Bounding boxes whose longitudes may lie beyond 180 degrees.

use super::Point;
use crate::osm::{Bbox, Edges};

/// The largest longitude in 1e-7 degree.
const MAX_LON_E7: i64 = 1_800_000_000;

/// A bounding box. Its longitudes may lie beyond 180 degrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The south-western corner.
    pub low: Point,
    /// The north-eastern corner.
    pub high: Point,
}

impl Extent {
    /// The size of an encoded box in bytes.
    pub const LEN: usize = 16;

    /// Returns the bounding box of points; `None` if there are no points.
    pub fn of<'p>(points: impl IntoIterator<Item = &'p Point>) -> Option<Self> {
        let mut points = points.into_iter();
        let start = Self::at(*points.next()?);
        Some(points.fold(start, |all, point| all.and(&Self::at(*point))))
    }

    /// Returns the bounding box of one point.
    pub const fn at(point: Point) -> Self {
        Self {
            low: point,
            high: point,
        }
    }

    /// Converts a [`Bbox`], which must not be empty.
    pub const fn of_bbox(bbox: &Bbox) -> Self {
        let edges = bbox.edges_e7();
        Self::from_stored_edges([edges.south, edges.west, edges.north, edges.east])
    }

    /// Returns the box with the given edges in 1e-7 degree, in the order in which indexes store them: south, west,
    /// north, east.
    pub(crate) const fn from_stored_edges([south, west, north, east]: [i32; 4]) -> Self {
        Self {
            low: Point::new(south, west),
            high: Point::new(north, east),
        }
    }

    /// Returns the edges in 1e-7 degree, in the order in which indexes store them: south, west, north, east.
    pub(crate) const fn stored_edges(&self) -> [i32; 4] {
        let Self { low, high } = self;
        [low.lat_e7, low.lon_e7, high.lat_e7, high.lon_e7]
    }

    /// Returns the edges in 1e-7 degree.
    #[inline]
    pub const fn edges(&self) -> Edges<i32> {
        Edges {
            west: self.low.lon_e7,
            south: self.low.lat_e7,
            east: self.high.lon_e7,
            north: self.high.lat_e7,
        }
    }

    /// Returns the edges as little-endian bytes: south, west, north, east.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        for (bytes, edge) in bytes.chunks_exact_mut(4).zip(self.stored_edges()) {
            bytes.copy_from_slice(&edge.to_le_bytes());
        }
        bytes
    }

    /// Converts bytes from [`to_bytes`](Self::to_bytes) back to a box.
    #[inline]
    pub const fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let all = u128::from_le_bytes(*bytes);
        Self::from_stored_edges([
            all as i32,
            (all >> 32) as i32,
            (all >> 64) as i32,
            (all >> 96) as i32,
        ])
    }

    /// Converts the box to a [`Bbox`] with the same edges.
    pub(crate) const fn to_bbox(self) -> Bbox {
        Bbox {
            min_lat_e7: self.low.lat_e7,
            max_lat_e7: self.high.lat_e7,
            min_lon_e7: self.low.lon_e7,
            max_lon_e7: self.high.lon_e7,
        }
    }

    /// Whether the box spans more than 180 degrees of longitude, like the box around a line that crosses the
    /// antimeridian.
    pub(crate) fn spans_over_180_degrees(&self) -> bool {
        i64::from(self.high.lon_e7) - i64::from(self.low.lon_e7) > MAX_LON_E7
    }

    /// Returns the centre of the box. Longitudes beyond 180 degrees wrap around.
    pub fn centre(&self) -> Point {
        let [west, south, east, north] = self.edges().map(i64::from).into_array();
        let middle = |low: i64, high: i64, max: i64| {
            let middle = (low + high).div_euclid(2);
            match middle {
                _ if middle > max => middle - 2 * max,
                _ if middle < -max => middle + 2 * max,
                _ => middle,
            }
        };
        Point::new(
            middle(south, north, MAX_LON_E7 / 2) as i32,
            middle(west, east, MAX_LON_E7) as i32,
        )
    }

    /// Returns the position of the centre of the box on a Hilbert curve over the whole earth, as a number of `bits`
    /// bits. `bits` must be even and at most 64. Longitudes beyond 180 degrees wrap around.
    pub fn curve_position(&self, bits: u32) -> u64 {
        let scaled = |middle: i32, max: i64| {
            let from_zero = (i64::from(middle) + max).clamp(0, 2 * max - 1) as u128;
            ((from_zero << (bits / 2)) / (2 * max) as u128) as u32
        };
        let centre = self.centre();
        let (lon, lat) = (
            scaled(centre.lon_e7, MAX_LON_E7),
            scaled(centre.lat_e7, MAX_LON_E7 / 2),
        );
        fast_hilbert::xy2h(lon, lat, (bits / 2) as u8)
    }

    /// Returns the smallest box that contains both boxes.
    pub fn and(&self, other: &Self) -> Self {
        Self {
            low: Point::new(
                self.low.lat_e7.min(other.low.lat_e7),
                self.low.lon_e7.min(other.low.lon_e7),
            ),
            high: Point::new(
                self.high.lat_e7.max(other.high.lat_e7),
                self.high.lon_e7.max(other.high.lon_e7),
            ),
        }
    }

    /// Whether two boxes share a point, edges included.
    #[inline]
    pub const fn meets(&self, other: &Self) -> bool {
        // `&` evaluates all comparisons. With `&&`, branches would often be mispredicted.
        (self.low.lat_e7 <= other.high.lat_e7)
            & (other.low.lat_e7 <= self.high.lat_e7)
            & (self.low.lon_e7 <= other.high.lon_e7)
            & (other.low.lon_e7 <= self.high.lon_e7)
    }

    /// Whether a point lies in the box or on its edge.
    pub const fn holds(&self, point: Point) -> bool {
        self.low.lat_e7 <= point.lat_e7
            && point.lat_e7 <= self.high.lat_e7
            && self.low.lon_e7 <= point.lon_e7
            && point.lon_e7 <= self.high.lon_e7
    }
}
