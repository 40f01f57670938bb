//! The locations and boxes of kept objects outside of the regions, for files with a spatial layout. A blob is read only
//! if its box meets a region or one of these locations and boxes.

use super::RegionMembers;
use crate::engine::location_form::LocationForm;
use crate::error::FormatResult;
use crate::osm::{Bbox, Location, ObjectKind};
use crate::pbf::{BlobEntry, Block, stale_index_error};

/// The locations that some ways store for their nodes.
#[derive(Debug, Default)]
pub(super) struct NodePlaces {
    locations: Vec<Location>,
    /// Whether one of the ways stores no location for a node that the file may have.
    has_unknown: bool,
}

impl NodePlaces {
    /// Adds the locations of other ways.
    pub(super) fn add(&mut self, more: Self) {
        self.locations.extend(more.locations);
        self.has_unknown |= more.has_unknown;
    }
}

/// The locations and boxes of kept objects that lie outside of the regions.
#[derive(Debug, Default)]
pub(super) struct OutsideObjects {
    /// The locations of the nodes of those kept ways that are not wholly in the regions. The locations are sorted by
    /// latitude after all of them were added.
    nodes: NodePlaces,
    /// The boxes of the blobs with completed relations. All nodes and ways that are members of a completed relation are
    /// kept.
    relations: Vec<Bbox>,
}

impl OutsideObjects {
    pub(super) fn add_nodes(&mut self, places: NodePlaces) {
        self.nodes.add(places);
    }

    /// Adds the box of a blob with a completed relation.
    pub(super) fn add_relation(&mut self, bbox: &Bbox) {
        const WORLD: Bbox = Bbox {
            min_lat_e7: i32::MIN,
            max_lat_e7: i32::MAX,
            min_lon_e7: i32::MIN,
            max_lon_e7: i32::MAX,
        };
        // An empty box means that the locations of the members are unknown, so they may be anywhere.
        let bbox = if bbox.is_empty() { WORLD } else { *bbox };
        if self.relations.last() != Some(&bbox) {
            self.relations.push(bbox);
        }
    }

    /// Sorts the locations for lookups.
    pub(super) fn sort(&mut self) {
        let nodes = &mut self.nodes.locations;
        nodes.sort_unstable_by_key(|node| (node.lat_e7(), node.lon_e7()));
        nodes.dedup();
    }

    /// Returns the memory of the node locations, in bytes.
    pub(super) const fn bytes(&self) -> u64 {
        (self.nodes.locations.len() * size_of::<Location>()) as u64
    }

    /// Whether a blob of nodes may contain a kept node outside of the regions. A kept node outside of the regions
    /// belongs to a kept way, or is a member of a completed relation.
    pub(super) fn may_have_node(&self, entry: &BlobEntry) -> bool {
        let (nodes, bbox) = (&self.nodes.locations, &entry.bbox);
        let start = nodes.partition_point(|node| node.lat_e7() < bbox.min_lat_e7);
        let above = nodes[start..].iter();
        let mut within = above.take_while(|node| node.lat_e7() <= bbox.max_lat_e7);
        let lons = bbox.min_lon_e7..=bbox.max_lon_e7;
        self.nodes.has_unknown
            || self.may_have_member(entry)
            || within.any(|node| lons.contains(&node.lon_e7()))
    }

    /// Whether a blob may contain a member of a completed relation.
    pub(super) fn may_have_member(&self, entry: &BlobEntry) -> bool {
        let bbox = &entry.bbox;
        bbox.is_empty() || self.relations.iter().any(|all| all.intersects(bbox))
    }
}

impl RegionMembers<'_> {
    /// Whether the ways or relations of a blob may have a node in a region. Without a spatial layout, the locations of
    /// ways and relations are unknown, and the result is always `true`. The box of a blob of relations does not cover
    /// members that are missing in the file. This box is therefore only used if the header says that the file has all
    /// members of relations.
    pub(super) fn may_touch_a_region(&self, entry: &BlobEntry) -> bool {
        let is_known = match entry.kinds.single() {
            Some(ObjectKind::Relation) => self.form != LocationForm::Mixed,
            kind => kind.is_some(),
        };
        self.outside.is_none()
            || !is_known
            || entry.bbox.is_empty()
            || self.areas.meets(&entry.bbox)
    }

    /// Whether a blob may have ways or nodes that are kept as members of completed relations.
    pub(super) fn may_have_member(&self, entry: &BlobEntry) -> bool {
        let outside = self.outside.as_ref();
        outside.is_none_or(|outside| outside.may_have_member(entry))
    }

    /// Returns the locations that ways store for their nodes. `is_wanted` selects the ways by their index. Without a
    /// spatial layout, returns no locations. Fails if a way lies outside of the box of its blob.
    pub(super) fn places_of_ways(
        &self,
        entry: &BlobEntry,
        block: &Block<'_>,
        is_wanted: impl Fn(u32) -> bool,
    ) -> FormatResult<NodePlaces> {
        let (mut wanted, mut around) = (NodePlaces::default(), Bbox::EMPTY);
        if self.outside.is_none() {
            return Ok(wanted);
        }
        // In files of the other forms, a way lacks the location of a node only if the file does not have the node.
        let may_be_anywhere = self.form == LocationForm::Mixed;
        block.for_each_wanted_way(
            |_| true,
            |index, _, locations| {
                let stored = locations.unwrap_or_default();
                for location in stored.iter().flatten() {
                    around.add(location.lat_e7(), location.lon_e7());
                }
                if is_wanted(index as u32) {
                    let is_unknown = may_be_anywhere && stored.contains(&None);
                    wanted.has_unknown |= is_unknown || locations.is_none();
                    wanted.locations.extend(stored.iter().flatten());
                }
            },
        )?;
        if entry.bbox.is_empty() || entry.bbox.union(&around) == entry.bbox {
            Ok(wanted)
        } else {
            Err(stale_index_error("the box of its ways differs"))
        }
    }
}
