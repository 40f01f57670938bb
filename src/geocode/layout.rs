//! The sections of an index, and the sort keys of its rows.

use super::packed_rtree::SECTIONS;
use crate::geometry::{Extent, Point};
use crate::index::KeyBits;

/// A layer of an index: a set of objects with an R-tree of its own. One search finds objects of one layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    /// Objects with a house number.
    Addresses,
    /// Parts of named streets.
    Streets,
    /// Parts of unnamed roads.
    Roads,
    /// Ways along which house numbers are interpolated.
    Interpolations,
    /// Place nodes, such as cities and villages.
    Places,
    /// Buildings that have no house number but contain nodes with one.
    Buildings,
    /// Areas that can contain places, such as administrative boundaries.
    Areas,
}

impl Layer {
    /// All layers, in the order of their sections.
    pub(crate) const ALL: [Self; 7] = [
        Self::Addresses,
        Self::Streets,
        Self::Roads,
        Self::Interpolations,
        Self::Places,
        Self::Buildings,
        Self::Areas,
    ];

    /// Returns the name of the layer in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Addresses => "addresses",
            Self::Streets => "streets",
            Self::Roads => "roads",
            Self::Interpolations => "interpolations",
            Self::Places => "places",
            Self::Buildings => "buildings",
            Self::Areas => "areas",
        }
    }

    /// Returns the first section of the layer's tree.
    pub(crate) const fn first_tree_section(self) -> usize {
        match self {
            Self::Areas => AREA_SECTION + 1,
            _ => self as usize * SECTIONS,
        }
    }
}

/// The section with the records and the parts of all areas.
pub(crate) const AREA_SECTION: usize = Layer::Areas as usize * SECTIONS;
/// The number of sections of an index.
pub(crate) const SECTION_COUNT: usize = AREA_SECTION + 1 + SECTIONS;

/// The number of bits of a position on the Hilbert curve.
pub(crate) const CURVE_BITS: u32 = 56;
/// The layout of the sort keys of rows: the number of the layer in the high bits, and a position on the Hilbert curve
/// in the low [`CURVE_BITS`] bits. Rows whose keys differ only in the lowest 24 bits are counted together. They are the
/// rows of a layer in a cell of 0.0055 by 0.0027 degrees.
pub(crate) const KEY: KeyBits = KeyBits::new(24, CURVE_BITS);

/// Returns the layer of a sort key; `None` if the key has a number that no layer has.
pub(crate) fn layer_of(key: u64) -> Option<Layer> {
    let number = usize::try_from(key >> CURVE_BITS).ok()?;
    Layer::ALL.get(number).copied()
}

/// Returns the sort key of an item. `layer` is its layer, and `extent` its bounding box.
pub(crate) fn key_of(layer: Layer, extent: &Extent) -> u64 {
    (layer as u64) << CURVE_BITS | extent.curve_position(CURVE_BITS)
}

/// 360 degrees in units of 1e-7 degree.
const CIRCLE_E7: i64 = 3_600_000_000;

/// Returns a copy of a line that crosses the antimeridian, shifted by 360 degrees to the other side. Returns `None` for
/// other lines.
pub(crate) fn shifted_across_antimeridian(line: &[Point]) -> Option<Vec<Point>> {
    let lons = || line.iter().map(|point| i64::from(point.lon_e7));
    let turn = match (lons().min()?, lons().max()?) {
        (_, east) if east > CIRCLE_E7 / 2 => -CIRCLE_E7,
        (west, _) if west < -CIRCLE_E7 / 2 => CIRCLE_E7,
        _ => return None,
    };
    let moved = line.iter().map(|point| {
        Some(Point {
            lon_e7: i32::try_from(i64::from(point.lon_e7) + turn).ok()?,
            ..*point
        })
    });
    moved.collect()
}

/// Shifts the points of a line by multiples of 360 degrees so that no segment spans more than 180 degrees of longitude.
/// Leaves a line unchanged if its longitudes would leave the range of `i32`. Such a line runs around a pole, and
/// searches near a pole do not compare longitudes.
pub(crate) fn unwrap_longitudes(line: &mut [Point]) {
    let is_jump = |pair: &[Point]| match pair {
        [from, to] => i64::from(from.lon_e7).abs_diff(to.lon_e7.into()) > CIRCLE_E7 as u64 / 2,
        _ => false,
    };
    if !line.windows(2).any(is_jump) {
        return;
    }
    let (mut turn, mut last) = (0, None);
    let mut turn_of = |point: &Point| {
        let lon = i64::from(point.lon_e7);
        turn += match last.map(|last| lon - last) {
            Some(step) if step > CIRCLE_E7 / 2 => -CIRCLE_E7,
            Some(step) if step < -CIRCLE_E7 / 2 => CIRCLE_E7,
            _ => 0,
        };
        last = Some(lon);
        i32::try_from(lon + turn).ok()
    };
    let longitudes: Option<Vec<i32>> = line.iter().map(&mut turn_of).collect();
    if let Some(longitudes) = longitudes {
        for (point, lon_e7) in line.iter_mut().zip(longitudes) {
            point.lon_e7 = lon_e7;
        }
    }
}
