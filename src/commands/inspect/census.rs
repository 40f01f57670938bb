//! Statistics of the objects of a file.

use super::anomalies::{Anomalies, record_blob_anomalies, record_object_anomalies};
use super::coordinates::{NodeStatistics, WayLocationStatistics};
use crate::commands::object_census::ObjectCensus;
use crate::error::FormatResult;
use crate::osm::ObjectKind;
use crate::pbf::{BlobEntry, BlobFlags, Block, RawElement};

/// The requested statistics. Each of them needs a visit to every object, or to every object of one kind. Extended
/// statistics alone need no visit if the table of contents contains them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Whether to collect statistics of metadata and sizes.
    pub extended: bool,
    /// Whether to collect statistics of the coordinates of nodes.
    pub nodes: bool,
    /// Whether to collect statistics of the locations in ways.
    pub locations: bool,
    /// Whether to find unusual objects and blobs.
    pub anomalies: bool,
}

impl Statistics {
    /// Whether any statistics are requested.
    pub const fn any(self) -> bool {
        self.extended || self.nodes || self.locations || self.anomalies
    }

    /// Whether objects of a blob have to be visited one by one. `entry` must describe the blob completely.
    pub(super) fn needs_visit(self, entry: &BlobEntry) -> bool {
        self.anomalies
            || self.nodes && entry.kinds.contains(ObjectKind::Node)
            || self.locations && entry.kinds.contains(ObjectKind::Way)
    }

    /// Whether the entry of a blob contains all requested statistics of the blob.
    pub(super) fn is_answered_by(self, entry: &BlobEntry) -> bool {
        entry.flags.has(BlobFlags::SCANNED)
            && !self.needs_visit(entry)
            && (!self.extended || entry.statistics.is_some())
    }

    /// Returns the requested statistics of a blob from its entry, which must contain all of them.
    pub(super) fn census_of(self, entry: &BlobEntry) -> Census {
        Census {
            extended: if self.extended {
                ObjectCensus::of_entry(entry)
            } else {
                ObjectCensus::default()
            },
            ..Census::default()
        }
    }
}

/// Counts of objects that are collected in the same pass as the statistics, such as the counts for the charts of an
/// HTML page. A value of the type has the counts of one blob, or the sums over all blobs so far.
pub(super) trait ObjectCounter: Default + Send {
    /// Creates empty counts for the next blob. `level` is the [`level`](Self::level) of the sums so far.
    fn at_level(level: u32) -> Self;

    /// Returns the level of the grid in which nodes are counted.
    fn level(&self) -> u32;

    /// Counts an object of a block.
    fn add(&mut self, object: &RawElement<'_>, block: &Block<'_>) -> FormatResult<()>;

    /// Adds the counts of the next blob.
    fn merge(&mut self, other: &Self);
}

/// Counts nothing.
impl ObjectCounter for () {
    fn at_level(_: u32) -> Self {}

    fn level(&self) -> u32 {
        0
    }

    fn add(&mut self, _: &RawElement<'_>, _: &Block<'_>) -> FormatResult<()> {
        Ok(())
    }

    fn merge(&mut self, (): &Self) {}
}

/// The statistics of a blob, or of all blobs of a file together. Statistics that are not requested stay empty.
#[derive(Debug, Clone, Default)]
pub(super) struct Census {
    pub extended: ObjectCensus,
    pub nodes: NodeStatistics,
    pub locations: WayLocationStatistics,
    pub anomalies: Anomalies,
}

impl Census {
    /// Adds the objects of a blob to the requested statistics other than the extended ones, and to `counts` if objects
    /// are visited one by one. `entry` must describe the blob completely, as an entry with [`BlobFlags::SCANNED`] does.
    pub(super) fn add_block(
        &mut self,
        asked: Statistics,
        entry: &BlobEntry,
        block: &Block<'_>,
        counts: &mut impl ObjectCounter,
    ) -> FormatResult<()> {
        if asked.nodes {
            self.nodes.add_block(block)?;
        }
        let one_by_one = asked.locations || asked.anomalies;
        let mut objects = block.cursor();
        while one_by_one && let Some(object) = objects.next()? {
            if asked.locations {
                self.locations.add(object, &block.units)?;
            }
            counts.add(object, block)?;
            if asked.anomalies {
                record_object_anomalies(&mut self.anomalies, object, block, entry.number)?;
            }
        }
        if asked.anomalies {
            record_blob_anomalies(&mut self.anomalies, entry);
        }
        Ok(())
    }

    /// Adds the statistics of the next blob in file order.
    pub(super) fn merge(&mut self, other: Self) {
        self.extended.merge(&other.extended);
        self.nodes.merge(&other.nodes);
        self.locations.merge(&other.locations);
        for (what, anomaly) in other.anomalies {
            match self.anomalies.get_mut(what) {
                Some(known) => known.merge(&anomaly),
                None => drop(self.anomalies.insert(what, anomaly)),
            }
        }
    }

    /// Computes the values that depend on all blobs.
    pub(super) fn finish(&mut self) {
        self.nodes.finish();
    }
}
