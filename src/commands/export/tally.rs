//! Counts of features and problems.

use super::Summary;
use crate::formats::features::Geometry;
use crate::formats::row_limit::OversizedObjects;
use crate::geometry::{Extent, doubled_area};
use crate::osm::DECIMICRO_PER_DEGREE;
use std::collections::BTreeMap;
use std::num::NonZero;

/// Returns the numbers of the themes in a set of bits.
pub(super) fn theme_numbers(themes: u64) -> impl Iterator<Item = usize> {
    let without_first = |bits: &NonZero<u64>| NonZero::new(bits.get() & (bits.get() - 1));
    std::iter::successors(NonZero::new(themes), without_first)
        .map(|bits| bits.trailing_zeros() as usize)
}

/// The numbers of features and problems of a blob, and the box and the area of the features.
#[derive(Debug, Default)]
pub(super) struct Tally {
    points: u64,
    lines: u64,
    areas: u64,
    /// The box around all features.
    extent: Option<Extent>,
    /// Twice the area of all polygons, in square units of 1e-7 degree.
    doubled_area: i128,
    pub errors: BTreeMap<&'static str, u64>,
    pub incomplete: u64,
    pub warnings: BTreeMap<&'static str, u64>,
    /// The number of tags that were left out, because an earlier tag of the object has their key.
    pub repeated_keys: u64,
    /// The objects that were left out because their features would be too large.
    pub oversized: OversizedObjects,
    /// The number of features of each theme, by its index. Without themes, all features have index 0.
    themes: BTreeMap<usize, u64>,
}

impl Tally {
    fn add_extent(&mut self, extent: Extent) {
        self.extent = Some(self.extent.map_or(extent, |all| all.and(&extent)));
    }

    /// Adds a feature that is written once for each theme of the bit set `themes`. `extent` is the box around it.
    pub(super) fn add(&mut self, geometry: &Geometry<'_>, extent: Extent, themes: u64) {
        for theme in theme_numbers(themes) {
            *self.themes.entry(theme).or_default() += 1;
            self.add_extent(extent);
            match geometry {
                Geometry::Point(_) => self.points += 1,
                Geometry::LineString(_) | Geometry::MultiLineString(_) => self.lines += 1,
                Geometry::MultiPolygon(polygons) => {
                    self.areas += 1;
                    let rings = polygons
                        .iter()
                        .flat_map(|polygon| polygon.holes.iter().chain([&polygon.outer]));
                    self.doubled_area += rings.map(|ring| doubled_area(ring)).sum::<i128>();
                }
            }
        }
    }

    /// Adds the numbers of a blob to the totals of all blobs.
    pub(super) fn add_to(&self, all: &mut Totals) {
        let summary = &mut all.summary;
        summary.points += self.points;
        summary.lines += self.lines;
        summary.areas += self.areas;
        summary.features += self.points + self.lines + self.areas;
        summary.incomplete += self.incomplete;
        summary.repeated_keys += self.repeated_keys;
        for (counts, more) in [
            (&mut summary.errors, &self.errors),
            (&mut summary.warnings, &self.warnings),
        ] {
            for (name, count) in more {
                *counts.entry(*name).or_default() += count;
            }
        }
        for (theme, count) in &self.themes {
            *all.geometry.themes.entry(*theme).or_default() += count;
        }
        all.geometry.oversized.extend(&self.oversized);
        all.geometry.doubled_area += self.doubled_area;
        if let Some(extent) = self.extent {
            all.geometry.add_extent(extent);
        }
    }
}

/// The totals of all blobs.
#[derive(Debug, Default)]
pub(super) struct Totals {
    summary: Summary,
    /// The box and the area of all features, the numbers of features by theme, and the objects that are too large. The
    /// other numbers are in `summary`.
    geometry: Tally,
}

impl Totals {
    /// The objects that were left out because their features would be too large.
    pub(super) const fn oversized(&self) -> &OversizedObjects {
        &self.geometry.oversized
    }

    /// Returns the summary of a run that wrote the themes with the given names.
    pub(super) fn into_summary<'n>(self, themes: impl Iterator<Item = &'n str>) -> Summary {
        const ONE: f64 = DECIMICRO_PER_DEGREE as f64;
        let degrees = |value_e7: i32| f64::from(value_e7) / ONE;
        let extent = self.geometry.extent;
        let count = |number| self.geometry.themes.get(&number).copied().unwrap_or(0);
        let themes = (0..).zip(themes);
        let themes = themes.map(|(number, name)| (name.to_owned(), count(number)));
        Summary {
            bbox: extent.map(|Extent { low, high }| {
                [low.lon_e7, low.lat_e7, high.lon_e7, high.lat_e7].map(degrees)
            }),
            themes: themes.collect(),
            square_degrees: self.geometry.doubled_area as f64 / 2.0 / ONE / ONE,
            ..self.summary
        }
    }
}
