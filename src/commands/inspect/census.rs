//! What only a look at every object tells.

use super::anomalies::{Anomalies, note_blob, note_object};
use super::coordinates::{NodeStatistics, WayLocations};
use super::extended::Extended;
use crate::error::FormatError;
use crate::pbf::{BlobEntry, ParsedBlock};

/// What is asked of every object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Questions {
    /// Metadata and sizes.
    pub extended: bool,
    /// Coordinates of nodes.
    pub nodes: bool,
    /// Coordinates in ways.
    pub locations: bool,
    /// What is unusual.
    pub anomalies: bool,
}

impl Questions {
    /// Whether anything is asked.
    pub const fn any(self) -> bool {
        self.extended || self.nodes || self.locations || self.anomalies
    }
}

/// Answers.
#[derive(Debug, Clone, Default)]
pub(super) struct Census {
    pub extended: Extended,
    pub nodes: NodeStatistics,
    pub locations: WayLocations,
    pub anomalies: Anomalies,
}

impl Census {
    /// Takes in the objects of a blob; the entry is one that was read from it.
    pub(super) fn add_block(
        &mut self,
        asked: Questions,
        entry: &BlobEntry,
        block: &ParsedBlock<'_>,
    ) -> Result<(), FormatError> {
        if asked.extended {
            self.extended.add(entry, block)?;
        }
        let one_by_one = asked.nodes || asked.locations || asked.anomalies;
        let mut objects = block.cursor();
        while one_by_one && let Some(object) = objects.next()? {
            if asked.nodes {
                self.nodes.add(&object, block)?;
            }
            if asked.locations {
                self.locations.add(&object)?;
            }
            if asked.anomalies {
                note_object(&mut self.anomalies, &object, block, entry.number)?;
            }
        }
        if asked.anomalies {
            note_blob(&mut self.anomalies, entry);
        }
        Ok(())
    }

    /// Takes in what was found in the blob behind.
    pub(super) fn merge(&mut self, other: Self) {
        self.extended.merge(&other.extended);
        self.nodes.merge(&other.nodes);
        self.locations.merge(&other.locations);
        for (what, anomaly) in other.anomalies {
            match self.anomalies.get_mut(what) {
                Some(known) => known.count += anomaly.count,
                None => drop(self.anomalies.insert(what, anomaly)),
            }
        }
    }

    pub(super) fn finish(&mut self, is_unsorted: bool) {
        self.extended.finish(is_unsorted);
        self.nodes.finish();
    }
}
