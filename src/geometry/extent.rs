//! Boxes around points.

use super::Point;

/// A box of locations. Its longitudes may lie beyond 180 degrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The south-western corner.
    pub low: Point,
    /// The north-eastern corner.
    pub high: Point,
}

impl Extent {
    /// The smallest box around points; `None` without points.
    pub fn of<'p>(points: impl IntoIterator<Item = &'p Point>) -> Option<Self> {
        let mut points = points.into_iter();
        let first = *points.next()?;
        let start = Self {
            low: first,
            high: first,
        };
        Some(points.fold(start, |all, point| {
            all.and(&Self {
                low: *point,
                high: *point,
            })
        }))
    }

    /// The box with the given edges in 1e-7 degree: south, west, north, east.
    pub const fn from_edges([south, west, north, east]: [i32; 4]) -> Self {
        Self {
            low: Point {
                lat_e7: south,
                lon_e7: west,
            },
            high: Point {
                lat_e7: north,
                lon_e7: east,
            },
        }
    }

    /// The edges in 1e-7 degree: south, west, north, east.
    pub const fn edges(&self) -> [i32; 4] {
        let Self { low, high } = self;
        [low.lat_e7, low.lon_e7, high.lat_e7, high.lon_e7]
    }

    /// The smallest box around two boxes.
    pub fn and(&self, other: &Self) -> Self {
        Self {
            low: Point {
                lat_e7: self.low.lat_e7.min(other.low.lat_e7),
                lon_e7: self.low.lon_e7.min(other.low.lon_e7),
            },
            high: Point {
                lat_e7: self.high.lat_e7.max(other.high.lat_e7),
                lon_e7: self.high.lon_e7.max(other.high.lon_e7),
            },
        }
    }

    /// Whether two boxes share a point.
    pub const fn meets(&self, other: &Self) -> bool {
        self.low.lat_e7 <= other.high.lat_e7
            && other.low.lat_e7 <= self.high.lat_e7
            && self.low.lon_e7 <= other.high.lon_e7
            && other.low.lon_e7 <= self.high.lon_e7
    }

    /// Whether a point lies in the box or on its edge.
    pub const fn holds(&self, point: Point) -> bool {
        self.low.lat_e7 <= point.lat_e7
            && point.lat_e7 <= self.high.lat_e7
            && self.low.lon_e7 <= point.lon_e7
            && point.lon_e7 <= self.high.lon_e7
    }
}
