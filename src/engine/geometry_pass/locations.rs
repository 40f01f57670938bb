//! The locations of the nodes of ways. They come from the nodes themselves, or from the ways that store them.

use super::late::{LateBlob, LateLocations, WayBlob};
use super::needs::WayNeeds;
use crate::engine::location_form::location_of_reference;
use crate::engine::way_locations::{BlobLocations, WayLocations};
use crate::error::{FormatError, FormatResult};
use crate::index::RankSet;
use crate::osm::Location;
use crate::pbf::{Block, Way, WayRefs};
use std::ops::Range;
use std::sync::Arc;

/// The source of the locations of the nodes of ways.
pub(super) enum LocationSource {
    /// The nodes, whose locations were looked up. For a node that is not in the file, the location in the way is used.
    Nodes(Arc<WayLocations>),
    /// The ways. If a way lacks a location, its nodes are looked up. The value is `None` if nodes are never looked up.
    Ways(Option<Arc<LateLocations>>),
}

impl LocationSource {
    /// Returns the locations for the ways of a blob.
    pub(super) fn source_of_blob<'b>(&'b self, blob: WayBlob<'b>) -> FormatResult<BlobSource<'b>> {
        Ok(match self {
            Self::Nodes(all) => BlobSource::Nodes(all.locations_of_blob(blob.entry)?),
            Self::Ways(late) => {
                let late = late.as_deref();
                BlobSource::Ways(late.map(|late| LateBlob::new(late, blob)))
            }
        })
    }

    /// Returns the locations that are looked up while ways are visited; `None` if no locations are looked up then.
    pub(super) fn late_locations(&self) -> Option<&Arc<LateLocations>> {
        match self {
            Self::Nodes(_) => None,
            Self::Ways(late) => late.as_ref(),
        }
    }
}

/// The locations for the ways of a blob.
pub(super) enum BlobSource<'b> {
    Nodes(BlobLocations<'b>),
    Ways(Option<LateBlob<'b>>),
}

impl BlobSource<'_> {
    /// Whether the locations for all references of the blob must be looked up, in order.
    pub(super) const fn needs_all_refs(&self) -> bool {
        match self {
            Self::Nodes(found) => found.needs_all_refs(),
            Self::Ways(_) => false,
        }
    }

    /// Begins the next part of the blob.
    pub(super) fn begin_part(&mut self) {
        if let Self::Ways(Some(late)) = self {
            late.begin_part();
        }
    }

    /// Ends the blob. Fails if locations of its ways have not been read.
    pub(super) fn end(self) -> FormatResult<()> {
        match self {
            Self::Nodes(found) => found.end(),
            Self::Ways(_) => Ok(()),
        }
    }
}

/// The locations for the ways of a part of a blob, one way after another.
pub(super) struct PartSource<'s, 'b> {
    part: &'s Block<'s>,
    found: FoundFirst<'s, 'b>,
    /// The locations of the current way, if some of them are stored in the way.
    locations: Vec<Option<Location>>,
    /// Scratch buffers for the nodes of a way, and their locations.
    refs: Vec<i64>,
    nodes: Vec<Option<Location>>,
}

/// The source that is read first: the nodes, or the ways. The value of `Ways` looks up the nodes of a way that lacks a
/// location; it is `None` if nodes are never looked up.
enum FoundFirst<'s, 'b> {
    Nodes(NodeLocations),
    Ways(Option<&'s mut LateBlob<'b>>),
}

impl<'s, 'b> PartSource<'s, 'b> {
    /// Creates the source for the ways in `part`. For [`BlobSource::Nodes`], looks up the locations of the nodes of
    /// these ways. Skips ways that will not be visited and are not in `wanted`, unless all references must be looked
    /// up.
    pub(super) fn look_up(
        source: &'s mut BlobSource<'b>,
        part: &'s Block<'_>,
        needs: &WayNeeds<'_>,
        wanted: &RankSet,
    ) -> FormatResult<Self> {
        let found = match source {
            BlobSource::Nodes(found) => {
                FoundFirst::Nodes(NodeLocations::look_up(found, part, needs, wanted)?)
            }
            BlobSource::Ways(late) => FoundFirst::Ways(late.as_mut()),
        };
        Ok(Self {
            part,
            found,
            locations: Vec::new(),
            refs: Vec::new(),
            nodes: Vec::new(),
        })
    }

    /// Goes on to the next way. `is_needed` tells whether the way may be visited or is in `wanted`.
    pub(super) fn advance(&mut self, is_needed: bool) -> FormatResult<()> {
        match &mut self.found {
            FoundFirst::Nodes(nodes) => nodes.advance(is_needed),
            FoundFirst::Ways(_) => Ok(()),
        }
    }

    /// Returns the locations of the nodes of the current way. The way must be visited or in `wanted`. `index` is the
    /// index of the way among the ways of the part.
    pub(super) fn locations_of_way(
        &mut self,
        way: &Way<'_>,
        index: usize,
    ) -> FormatResult<&[Option<Location>]> {
        let locations = &mut self.locations;
        match &mut self.found {
            FoundFirst::Nodes(found) => {
                let nodes = found.current_locations();
                if !(way.has_locations() && nodes.iter().any(is_unknown)) {
                    return Ok(nodes);
                }
                read_stored_locations(way, locations)?;
                replace_known_locations(nodes, locations);
            }
            FoundFirst::Ways(late) => {
                read_stored_locations(way, locations)?;
                if let Some(late) = late
                    && locations.iter().any(is_unknown)
                {
                    self.refs.clear();
                    self.refs.extend(way.refs());
                    self.nodes.clear();
                    late.append_locations_of_way(self.part, index, &self.refs, &mut self.nodes)?;
                    replace_known_locations(&self.nodes, locations);
                }
            }
        }
        Ok(locations)
    }
}

/// Whether a location is unknown, or not on earth.
fn is_unknown(location: &Option<Location>) -> bool {
    location.is_none_or(|location| !location.is_on_earth())
}

/// Reads the locations that a way stores, one for each node. If the way stores no locations, all are `None`.
fn read_stored_locations(way: &Way<'_>, locations: &mut Vec<Option<Location>>) -> FormatResult<()> {
    locations.clear();
    way.read_locations(locations)?;
    if locations.is_empty() {
        locations.resize(way.ref_count(), None);
    }
    Ok(())
}

/// Replaces each location in `stored` by the location of the same node in `nodes`, unless the latter is `None`.
fn replace_known_locations(nodes: &[Option<Location>], stored: &mut [Option<Location>]) {
    for (node, stored) in nodes.iter().zip(stored) {
        *stored = location_of_reference(*node, *stored);
    }
}

/// The locations that were looked up for the nodes of ways of a block.
struct NodeLocations {
    /// The end of the locations of each way in `locations` (exclusive).
    ends: std::vec::IntoIter<usize>,
    locations: Vec<Option<Location>>,
    /// The range of the locations of the current way in `locations`; empty before the first way.
    current: Range<usize>,
    /// Whether `locations` has the locations of all ways of the block.
    has_all: bool,
}

impl NodeLocations {
    /// Looks up the locations of the nodes of the ways that may be visited or are in `wanted`. If `found` needs all
    /// references, looks up the nodes of all ways.
    fn look_up(
        found: &mut BlobLocations<'_>,
        block: &Block<'_>,
        needs: &WayNeeds<'_>,
        wanted: &RankSet,
    ) -> FormatResult<Self> {
        let (has_all, mut ranks, counter) =
            (found.needs_all_refs(), wanted.walk(), needs.counter());
        let is_needed = |way: &WayRefs<'_>| {
            let index = counter.next_index();
            has_all
                || ranks.rank(way.id).is_some()
                || (needs.may_visit(index)
                    && needs.may_visit_by_keys(|keys| way.has_key_among(keys)))
        };
        let (mut refs, mut ways) = (Vec::new(), Vec::new());
        block.collect_refs(
            || counter.advance_to_next_way(),
            is_needed,
            &mut refs,
            &mut ways,
        )?;
        let mut locations = Vec::with_capacity(refs.len());
        found.append_locations(&refs, &mut locations)?;
        let ends: Vec<usize> = ways.into_iter().map(|(_, end)| end).collect();
        Ok(Self {
            ends: ends.into_iter(),
            locations,
            current: 0..0,
            has_all,
        })
    }

    /// Goes on to the next way. `is_needed` tells whether the way may be visited or is in `wanted`. The locations of
    /// other ways have been looked up only if `has_all` is set.
    fn advance(&mut self, is_needed: bool) -> FormatResult<()> {
        const UNKNOWN: FormatError =
            FormatError::new("internal error: a way whose locations were not looked up");
        if is_needed || self.has_all {
            let end = self.ends.next().ok_or(UNKNOWN)?;
            self.current = self.current.end..end;
        }
        Ok(())
    }

    /// Returns the locations of the nodes of the current way.
    fn current_locations(&self) -> &[Option<Location>] {
        &self.locations[self.current.clone()]
    }
}
