//! Finds out whether the objects of an output are in canonical order, from the entries of its blobs.

use crate::osm::TypeThenId;
use crate::pbf::{BlobEntry, BlobFlags};

/// Records whether all objects written so far are in canonical order, if this is known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OrderSoFar {
    last: Option<TypeThenId>,
    broken: bool,
    unknown: bool,
}

impl OrderSoFar {
    /// Adds the objects of the next blob.
    pub fn add(&mut self, entry: &BlobEntry) {
        let scanned = entry.flags.has(BlobFlags::SCANNED);
        let first = entry.first_sort_key();
        let unsorted = scanned && !entry.flags.has(BlobFlags::SORTED);
        self.broken |= unsorted || (first.is_some() && first < self.last);
        // If `first` equals `last`, the blob may begin with further versions of the last object. Id ranges do not show
        // whether these versions are in order.
        self.unknown |= !scanned || (first.is_some() && first == self.last);
        self.last = entry.last_sort_key().max(self.last);
    }

    /// Whether all objects are in canonical order. `None` if no disorder is known, but the order within or between some
    /// blobs is unknown.
    pub const fn verdict(self) -> Option<bool> {
        match (self.broken, self.unknown) {
            (true, _) => Some(false),
            (false, true) => None,
            (false, false) => Some(true),
        }
    }
}
