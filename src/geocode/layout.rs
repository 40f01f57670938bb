//! The sections of an index, and the order of its items.

use super::tree::SECTIONS;
use crate::geometry::{Extent, Point};
use crate::index::KeyBits;

/// A layer of an index: objects that are looked for together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    /// Objects with a house number.
    Addresses,
    /// Parts of streets with a name.
    Streets,
    /// Parts of roads without a name.
    Roads,
    /// Ways along which house numbers are interpolated.
    Interpolations,
    /// Nodes that are places.
    Places,
    /// Areas that contain places.
    Areas,
}

impl Layer {
    /// All layers, in the order of their sections.
    pub(crate) const ALL: [Self; 6] = [
        Self::Addresses,
        Self::Streets,
        Self::Roads,
        Self::Interpolations,
        Self::Places,
        Self::Areas,
    ];

    /// The name in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Addresses => "addresses",
            Self::Streets => "streets",
            Self::Roads => "roads",
            Self::Interpolations => "interpolations",
            Self::Places => "places",
            Self::Areas => "areas",
        }
    }

    /// The first section of the layer's tree.
    pub(crate) const fn tree(self) -> usize {
        match self {
            Self::Areas => AREA_SECTION + 1,
            _ => self as usize * SECTIONS,
        }
    }
}

/// The section with the records and the parts of areas.
pub(crate) const AREA_SECTION: usize = Layer::Areas as usize * SECTIONS;
/// The number of sections of an index.
pub(crate) const SECTION_COUNT: usize = AREA_SECTION + 1 + SECTIONS;

/// The number of bits of a position on the curve.
pub(crate) const CURVE_BITS: u32 = 56;
/// The keys of rows: a position on the curve, below the number of a layer. Rows are counted by cells of 0.022
/// by 0.011 degrees.
pub(crate) const KEY: KeyBits = KeyBits {
    uncounted: 24,
    below_group: CURVE_BITS,
};

/// The layer of a key.
pub(crate) fn layer_of(key: u64) -> Option<Layer> {
    let number = usize::try_from(key >> CURVE_BITS).ok()?;
    Layer::ALL.get(number).copied()
}

/// The key of an item of a layer with a box.
pub(crate) fn key_of(layer: Layer, extent: &Extent) -> u64 {
    (layer as u64) << CURVE_BITS | extent.curve_position(CURVE_BITS)
}

/// Moves the points of a line behind the back of the earth by a circle, so that each segment takes the short way. Fails
/// if the line would go round more than once.
pub(crate) fn unwrap(line: &mut [Point]) -> Option<()> {
    const CIRCLE: i64 = 3_600_000_000;
    let (mut shift, mut last) = (0, None);
    for point in line {
        let lon = i64::from(point.lon_e7);
        shift += match last.map(|last| lon - last) {
            Some(step) if step > CIRCLE / 2 => -CIRCLE,
            Some(step) if step < -CIRCLE / 2 => CIRCLE,
            _ => 0,
        };
        last = Some(lon);
        if shift != 0 {
            point.lon_e7 = i32::try_from(lon + shift).ok()?;
        }
    }
    Some(())
}
