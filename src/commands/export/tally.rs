//! Counts of features and problems.

use super::Summary;
use crate::engine::geometry_problem::ProblemCounts;
use crate::formats::features::Geometry;
use crate::geometry::{Extent, doubled_area};
use crate::osm::DECIMICRO_PER_DEGREE;
use std::collections::BTreeMap;
use std::num::NonZero;

/// Returns the indices of the themes in a bit set.
pub(super) fn theme_numbers(themes: u64) -> impl Iterator<Item = usize> {
    let without_first = |bits: &NonZero<u64>| NonZero::new(bits.get() & (bits.get() - 1));
    std::iter::successors(NonZero::new(themes), without_first)
        .map(|bits| bits.trailing_zeros() as usize)
}

/// The numbers of features and problems of a blob or of all blobs, and the box and the area of the features.
#[derive(Debug, Default)]
pub(super) struct Tally {
    points: u64,
    lines: u64,
    areas: u64,
    /// The box around all features.
    extent: Option<Extent>,
    /// Twice the area of all polygons, in square units of 1e-7 degree.
    doubled_area: i128,
    pub problems: ProblemCounts,
    /// The number of tags that were left out because an earlier tag of the same object has the same key.
    pub repeated_keys: u64,
    /// The number of features of each theme, by the index of the theme. Without themes, all features have index 0.
    themes: BTreeMap<usize, u64>,
}

impl Tally {
    fn add_extent(&mut self, extent: Extent) {
        self.extent = Some(self.extent.map_or(extent, |all| all.and(&extent)));
    }

    /// Adds a feature that is written once for each theme of the bit set `themes`. `extent` is the box around the
    /// feature.
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

    /// Adds the numbers of a blob that comes later in the input.
    pub(super) fn extend(&mut self, later: &Self) {
        self.points += later.points;
        self.lines += later.lines;
        self.areas += later.areas;
        self.repeated_keys += later.repeated_keys;
        self.doubled_area += later.doubled_area;
        self.problems.extend(&later.problems);
        for (theme, count) in &later.themes {
            *self.themes.entry(*theme).or_default() += count;
        }
        if let Some(extent) = later.extent {
            self.add_extent(extent);
        }
    }

    /// Returns the summary of a run that wrote the themes with the given names.
    pub(super) fn into_summary(self, themes: &[String]) -> Summary {
        const ONE: f64 = DECIMICRO_PER_DEGREE as f64;
        let degrees = |value_e7: i32| f64::from(value_e7) / ONE;
        let count = |number| self.themes.get(&number).copied().unwrap_or(0);
        let themes = (0..).zip(themes);
        let themes = themes.map(|(number, name)| (name.clone(), count(number)));
        Summary {
            features: self.points + self.lines + self.areas,
            points: self.points,
            lines: self.lines,
            areas: self.areas,
            themes: themes.collect(),
            bbox: self.extent.map(|Extent { low, high }| {
                [low.lon_e7, low.lat_e7, high.lon_e7, high.lat_e7].map(degrees)
            }),
            square_degrees: self.doubled_area as f64 / 2.0 / ONE / ONE,
            errors: self.problems.errors,
            incomplete: self.problems.incomplete,
            warnings: self.problems.warnings,
            repeated_keys: self.repeated_keys,
            ..Summary::default()
        }
    }
}
