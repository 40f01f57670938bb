//! Looks up locations for ways that lack them, in a file whose ways are expected to store locations.
//!
//! Nodes are visited before ways. Nodes are read again only if a needed way lacks a location. The worker that visits
//! the first such way asks the thread that runs the pass to look up the locations of all ways, and waits. Other workers
//! continue until they need a missing location, too. Each object is visited only once, even if ways lack locations.

use crate::engine::way_locations::{BlobLocations, WayLocations};
use crate::error::{FormatError, FormatResult};
use crate::osm::Location;
use crate::pbf::{BlobEntry, Block, WayNodes};
use std::sync::OnceLock;

/// The locations of the nodes of all ways. Empty until a thread asks for the locations and they are looked up.
#[derive(Default)]
pub(super) struct LateLocations(OnceLock<WayLocations>);

impl LateLocations {
    /// Whether the locations were looked up.
    pub(super) fn are_found(&self) -> bool {
        self.0.get().is_some()
    }

    /// Hands the locations to the threads that wait for them.
    pub(super) fn provide_locations(&self, locations: WayLocations) {
        let _ = self.0.set(locations);
    }

    /// Returns the locations. If they were not looked up yet, asks for them with `ask`, and waits.
    fn wait_for_locations(&self, ask: &AskForLocations<'_>) -> FormatResult<&WayLocations> {
        const FAILED: FormatError = FormatError::new("locations were not looked up");
        if !self.are_found() {
            ask(&|| self.are_found())?;
        }
        self.0.get().ok_or(FAILED)
    }
}

/// A function that asks the thread that runs the pass to look up locations, and waits for them. Its argument is a
/// function that returns whether the locations were looked up.
type AskForLocations<'a> = dyn Fn(&dyn Fn() -> bool) -> FormatResult<()> + 'a;

/// A blob with ways.
#[derive(Clone, Copy)]
pub(super) struct WayBlob<'b> {
    pub entry: &'b BlobEntry,
    /// The content of the blob.
    pub block: &'b Block<'b>,
    pub ask: &'b AskForLocations<'b>,
}

/// The locations of the nodes of the ways of a blob. They are looked up at the first way that lacks a location.
pub(super) struct LateBlob<'b> {
    late: &'b LateLocations,
    blob: WayBlob<'b>,
    /// The locations that were looked up; `None` as long as no way of the blob has lacked a location.
    found: Option<BlobLocations<'b>>,
    /// The number of parts of the blob that were begun.
    begun: usize,
    /// The number of parts of the blob whose locations were read from `found`. This number is used only if `found`
    /// returns the locations of all ways in order.
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
    pub(super) fn append_locations_of_way(
        &mut self,
        part: &Block<'_>,
        index: usize,
        refs: &[i64],
        locations: &mut Vec<Option<Location>>,
    ) -> FormatResult<()> {
        let (late, blob) = (self.late, self.blob);
        let found = match &mut self.found {
            Some(found) => found,
            none => none.insert(
                late.wait_for_locations(blob.ask)?
                    .locations_of_blob(blob.entry)?,
            ),
        };
        if !found.needs_all_refs() {
            return found.append_locations(refs, locations);
        }
        let current = match &mut self.current {
            Some(current) => current,
            none => {
                let before = self.begun.saturating_sub(1);
                skip_parts(found, blob.block, self.read, before)?;
                self.read = self.begun;
                none.insert(PartLocations::read_next(found, part)?)
            }
        };
        locations.extend_from_slice(current.locations_of_way(index)?);
        Ok(())
    }
}

/// Reads and discards the locations of the parts `first..end` of a block. `found` returns locations in order, so it
/// cannot jump to a later part.
fn skip_parts(
    found: &mut BlobLocations<'_>,
    block: &Block<'_>,
    first: usize,
    end: usize,
) -> FormatResult<()> {
    if first >= end {
        return Ok(());
    }
    let mut number = 0;
    block.visit_in_parts(|part| {
        if (first..end).contains(&number) {
            PartLocations::read_next(found, part)?;
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
    /// Reads the locations of the nodes of the ways of `part`. These must be the next locations that `found` returns.
    fn read_next(found: &mut BlobLocations<'_>, part: &Block<'_>) -> FormatResult<Self> {
        let nodes = WayNodes::from_block(part)?;
        let mut locations = Vec::with_capacity(nodes.refs.len());
        found.append_locations(&nodes.refs, &mut locations)?;
        let ways = nodes.ways;
        Ok(Self { ways, locations })
    }

    /// Returns the locations of the nodes of the way with the given index.
    fn locations_of_way(&self, index: usize) -> FormatResult<&[Option<Location>]> {
        const UNKNOWN: FormatError =
            FormatError::new("internal error: a way whose locations were not read");
        let end_of = |way: usize| self.ways.get(way).map(|(_, end)| *end);
        let start = index.checked_sub(1).map_or(Some(0), end_of);
        let range = start.zip(end_of(index)).map(|(start, end)| start..end);
        let locations = range.and_then(|range| self.locations.get(range));
        locations.ok_or(UNKNOWN)
    }
}
