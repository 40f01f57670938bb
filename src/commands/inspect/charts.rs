//! The data of the charts of a file: the locations of its nodes, the times of its edits, and the layout of its blobs.

use super::census::ObjectCounter;
use crate::commands::pages;
use crate::error::FormatResult;
use crate::file::BlobPlan;
use crate::geometry::{CellCounts, Density};
use crate::osm::{ObjectKind, floor_e7};
use crate::pbf::{BlobEntry, Block, RawElement};
use jiff::civil::date;
use serde::Serialize;
use std::sync::OnceLock;

/// The maximum number of parts in [`Charts::layout`].
const MAX_PARTS: usize = 240;
/// The years in which edits are counted by month.
const YEARS: std::ops::Range<i16> = 1970..2200;

/// The data of the charts of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Charts {
    /// The number of nodes in each cell.
    pub density: CellCounts,
    /// The boxes of at most 2,000 blobs with nodes, which are spread evenly over the file. The edges of a box are west,
    /// south, east and north in 1e-7 degree.
    pub boxes: Vec<[i32; 4]>,
    /// The number of blobs with a box.
    pub blobs_with_box: u64,
    /// The number of edits by month.
    pub months: Months,
    /// At most 240 parts of the file, from its beginning to its end.
    pub layout: Vec<ChartPart>,
}

/// The number of object versions by the month of their timestamps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Months {
    /// The first month with an object, such as `2006-03`; `None` if no object has a timestamp from 1970 to 2199.
    pub first: Option<String>,
    /// The numbers of nodes, ways and relations in each month, from the first to the last month with an object.
    pub counts: Vec<[u64; 3]>,
}

/// A part of a file: consecutive blobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(super) struct ChartPart {
    /// The number of blobs.
    pub blobs: u64,
    /// The size of the blobs in the file, in bytes.
    pub bytes: u64,
    /// The size of the uncompressed payloads in bytes.
    pub payload_bytes: u64,
    /// The number of objects.
    pub objects: u64,
    /// The sizes in bytes of the blobs with only nodes, with only ways, with only relations, and of all other blobs.
    pub bytes_by_kind: [u64; 4],
}

/// The counts from which the charts of objects are made, for one blob or for all blobs so far.
#[derive(Debug, Clone, Default)]
pub(super) struct ObjectCharts {
    density: Density<1>,
    /// The numbers of nodes, ways and relations in each month, from the first month of [`YEARS`] on.
    months: Vec<[u64; 3]>,
}

impl ObjectCounter for ObjectCharts {
    fn at_level(level: u32) -> Self {
        Self {
            density: Density::at_level(level),
            months: Vec::new(),
        }
    }

    fn level(&self) -> u32 {
        self.density.level()
    }

    fn add(&mut self, object: &RawElement<'_>, block: &Block<'_>) -> FormatResult<()> {
        let info = object.info()?;
        let kind = object.key.0;
        if info.timestamp != 0 {
            let seconds = block.units.seconds(info.timestamp);
            if let Some(month) = month_of(seconds) {
                if self.months.len() <= month {
                    self.months.resize(month + 1, [0; 3]);
                }
                self.months[month][kind as usize] += 1;
            }
        }
        if kind == ObjectKind::Node
            && info.visible != Some(false)
            && let Some((lat, lon)) = object.location()?
        {
            let (lat, lon) = (block.units.nano_lat(lat), block.units.nano_lon(lon));
            if !super::coordinates::is_outside_lat_lon_range(lat, lon) {
                self.density.add(floor_e7(lat), floor_e7(lon), 0);
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: &Self) {
        self.density.merge(&other.density);
        if self.months.len() < other.months.len() {
            self.months.resize(other.months.len(), [0; 3]);
        }
        for (sum, more) in self.months.iter_mut().zip(&other.months) {
            pages::add_counts(sum, more);
        }
    }
}

impl ObjectCharts {
    /// Makes the charts of a file from the counts of all its objects.
    pub(super) fn finish(&self, plan: &BlobPlan) -> Charts {
        let entries = &plan.entries;
        let (boxes, blobs_with_box) = pages::sample_blob_boxes(plan);
        Charts {
            density: self.density.counts(),
            boxes,
            blobs_with_box,
            months: self.months(),
            layout: entries
                .chunks(entries.len().div_ceil(MAX_PARTS).max(1))
                .map(ChartPart::of)
                .collect(),
        }
    }

    /// Returns the counts of the months, beginning with the first month with an object.
    fn months(&self) -> Months {
        let first = self.months.iter().position(|counts| *counts != [0; 3]);
        let name = |month: usize| {
            let year = YEARS.start as usize + month / 12;
            format!("{year}-{:02}", month % 12 + 1)
        };
        Months {
            first: first.map(name),
            counts: first.map_or_else(Vec::new, |first| self.months[first..].to_vec()),
        }
    }
}

impl ChartPart {
    fn of(entries: &[BlobEntry]) -> Self {
        let mut part = Self::default();
        for entry in entries {
            let bytes = u64::from(entry.frame_len);
            part.blobs += 1;
            part.bytes += bytes;
            part.payload_bytes += u64::from(entry.payload_len);
            part.objects += u64::from(entry.count);
            part.bytes_by_kind[entry.kinds.single().map_or(3, |kind| kind as usize)] += bytes;
        }
        part
    }
}

/// Returns the number of months from the first month of [`YEARS`] to a time in seconds since 1970; `None` outside of
/// [`YEARS`].
fn month_of(seconds: i64) -> Option<usize> {
    static MONTHS: OnceLock<Vec<u16>> = OnceLock::new();
    let months = MONTHS.get_or_init(months_by_day);
    let day = usize::try_from(seconds.div_euclid(86_400)).ok()?;
    months.get(day).map(|month| usize::from(*month))
}

/// Returns, for each day of [`YEARS`], the number of months from the first month of [`YEARS`] to that day.
fn months_by_day() -> Vec<u16> {
    let mut days = Vec::new();
    for year in YEARS {
        for month in 1..=12 {
            let index = (year - YEARS.start) as u16 * 12 + (month - 1) as u16;
            let days_of_month = date(year, month, 1).days_in_month();
            days.extend(std::iter::repeat_n(index, days_of_month as usize));
        }
    }
    days
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::osm::parse_timestamp;

    #[test]
    fn a_month_begins_at_midnight_of_its_first_day() {
        for (time, month) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("1970-01-31T23:59:59Z", Some(0)),
            ("1970-02-01T00:00:00Z", Some(1)),
            ("2000-02-29T12:00:00Z", Some(361)),
            ("2026-11-24T00:00:00Z", Some(56 * 12 + 10)),
            ("2199-12-31T23:59:59Z", Some(230 * 12 - 1)),
            ("2200-01-01T00:00:00Z", None),
        ] {
            assert_eq!(month_of(parse_timestamp(time).unwrap()), month, "{time}");
        }
        assert_eq!(month_of(-1), None);
        assert_eq!(month_of(i64::MAX), None);
    }
}
