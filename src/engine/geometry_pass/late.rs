//! Looks up the nodes of ways that lack locations, although the ways of the file are declared to store them.
//!
//! Nodes are visited before ways. They are read again when the first way that is needed lacks a location, and not at
//! all if every way has its locations. The thread that visits this way asks the thread that runs the pass for the
//! locations, and waits for them. Other threads go on until they need locations, too. So each object is visited once,
//! whatever its way lacks.

use crate::engine::way_locations::{BlobLocations, WayLocations};
use crate::error::FormatError;
use crate::osm::Location;
use crate::pbf::{BlobEntry, Block, WayNodes};
use crate::runtime::lock;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

/// The locations of the nodes of all ways, which are looked up once they are asked for.
#[derive(Default)]
pub(super) struct LateLocations {
    /// Empty until the look-up was successful.
    found: OnceLock<WayLocations>,
    /// Whether no thread has to wait any more, because the look-up was successful or the pass has failed.
    is_settled: Mutex<bool>,
    settled: Condvar,
}

impl LateLocations {
    /// Whether the locations were looked up.
    pub(super) fn are_found(&self) -> bool {
        self.found.get().is_some()
    }

    /// Hands the locations to the threads that wait for them.
    pub(super) fn provide(&self, locations: WayLocations) {
        let _ = self.found.set(locations);
        self.settle();
    }

    fn settle(&self) {
        *lock(&self.is_settled) = true;
        self.settled.notify_all();
    }

    /// Waits for the locations. Fails if the pass has failed.
    fn wait(&self) -> Result<&WayLocations, FormatError> {
        const FAILED: FormatError = FormatError::new("locations were not looked up");
        let is_settled = lock(&self.is_settled);
        let waited = self
            .settled
            .wait_while(is_settled, |is_settled| !*is_settled);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        self.found.get().ok_or(FAILED)
    }
}

/// Ends the waiting of all threads when it is dropped. Before a part of a pass waits for the ends of its threads, it
/// has to drop this value: after an error, nobody looks up locations any more.
pub(super) struct EndOfWaiting(pub Option<Arc<LateLocations>>);

impl Drop for EndOfWaiting {
    fn drop(&mut self) {
        if let Some(late) = &self.0 {
            late.settle();
        }
    }
}

/// A blob with ways.
#[derive(Clone, Copy)]
pub(super) struct WayBlob<'b> {
    pub entry: &'b BlobEntry,
    /// The content of the blob.
    pub block: &'b Block<'b>,
    /// Asks the thread that runs the pass to look up locations.
    pub ask: &'b dyn Fn() -> Result<(), FormatError>,
}

/// The locations of the nodes of the ways of a blob, looked up once a way lacks one.
pub(super) struct LateBlob<'b> {
    late: &'b LateLocations,
    blob: WayBlob<'b>,
    /// `None` until a way of the blob has lacked a location.
    found: Option<BlobLocations<'b>>,
    /// The number of parts of the blob that were begun.
    begun: usize,
    /// The number of parts of the blob whose locations were read from `found`, if it has the locations of all ways in
    /// order.
    read: usize,
    /// The locations of the current part, if they were read.
    current: Option<PartLocations>,
}

impl<'b> LateBlob<'b> {
    pub(super) fn new(late: &'b LateLocations, blob: WayBlob<'b>) -> Self {
        Self {
            late,
            blob,
            found: None,
            begun: 0,
            read: 0,
            current: None,
        }
    }

    /// Begins the next part of the blob.
    pub(super) fn begin_part(&mut self) {
        self.begun += 1;
        self.current = None;
    }

    /// Appends the locations of the nodes of a way to `locations`. `refs` are the nodes of the way, and `index` is its
    /// index among the ways of `part`, the current part of the blob.
    pub(super) fn find(
        &mut self,
        part: &Block<'_>,
        index: usize,
        refs: &[i64],
        locations: &mut Vec<Option<Location>>,
    ) -> Result<(), FormatError> {
        let (late, blob) = (self.late, self.blob);
        let found = match &mut self.found {
            Some(found) => found,
            none => {
                if !late.are_found() {
                    (blob.ask)()?;
                }
                none.insert(late.wait()?.of(blob.entry)?)
            }
        };
        if !found.needs_all() {
            return found.find(refs, locations);
        }
        let current = match &mut self.current {
            Some(current) => current,
            none => {
                let before = self.begun.saturating_sub(1);
                skip_parts(found, blob.block, self.read, before)?;
                self.read = self.begun;
                none.insert(PartLocations::next(found, part)?)
            }
        };
        locations.extend_from_slice(current.of_way(index)?);
        Ok(())
    }
}

/// Reads the locations of the parts of a block from number `first` to `end` (exclusive).
fn skip_parts(
    found: &mut BlobLocations<'_>,
    block: &Block<'_>,
    first: usize,
    end: usize,
) -> Result<(), FormatError> {
    if first >= end {
        return Ok(());
    }
    let mut number = 0;
    block.in_parts(|part| {
        if (first..end).contains(&number) {
            PartLocations::next(found, part)?;
        }
        number += 1;
        Ok(())
    })
}

/// The locations of the nodes of all ways of a part of a blob.
struct PartLocations {
    /// The id of each way, and the end of its locations in `locations` (exclusive).
    ways: Vec<(i64, usize)>,
    locations: Vec<Option<Location>>,
}

impl PartLocations {
    /// Reads the locations of `part`, whose references are the next ones of `found`.
    fn next(found: &mut BlobLocations<'_>, part: &Block<'_>) -> Result<Self, FormatError> {
        let nodes = WayNodes::of(part)?;
        let mut locations = Vec::with_capacity(nodes.refs.len());
        found.find(&nodes.refs, &mut locations)?;
        let ways = nodes.ways;
        Ok(Self { ways, locations })
    }

    fn of_way(&self, index: usize) -> Result<&[Option<Location>], FormatError> {
        const UNKNOWN: FormatError =
            FormatError::new("internal error: a way whose locations were not read");
        let end_of = |way: usize| self.ways.get(way).map(|(_, end)| *end);
        let start = index.checked_sub(1).map_or(Some(0), end_of);
        let range = start.zip(end_of(index)).map(|(start, end)| start..end);
        let locations = range.and_then(|range| self.locations.get(range));
        locations.ok_or(UNKNOWN)
    }
}
