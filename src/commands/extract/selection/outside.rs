//! The locations and boxes of kept objects outside of the regions, for files with a spatial layout. A blob is read only
//! if its box meets a region or one of these locations and boxes.

use super::RegionMembers;
use crate::error::FormatError;
use crate::osm::{Bbox, Location};
use crate::pbf::{BlobEntry, Block, stale_index};

/// The locations and boxes of kept objects that lie outside of the regions.
#[derive(Debug, Default)]
pub(super) struct Outside {
    /// The locations of all nodes of those kept ways that are not wholly in the regions. Sorted by latitude once all
    /// are known.
    nodes: Vec<Location>,
    /// The boxes of the blobs with completed relations, which are relations whose members are all kept.
    relations: Vec<Bbox>,
}

impl Outside {
    pub(super) fn add_nodes(&mut self, locations: Vec<Location>) {
        self.nodes.extend(locations);
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
        self.nodes
            .sort_unstable_by_key(|node| (node.lat_e7(), node.lon_e7()));
        self.nodes.dedup();
    }

    /// Returns the memory of the node locations, in bytes.
    pub(super) const fn bytes(&self) -> u64 {
        (self.nodes.len() * size_of::<Location>()) as u64
    }

    /// Whether a blob of nodes may contain a kept node outside of the regions. A kept node outside of the regions
    /// belongs to a kept way, or is a member of a completed relation.
    pub(super) fn may_have_node(&self, entry: &BlobEntry) -> bool {
        let bbox = &entry.bbox;
        let start = self
            .nodes
            .partition_point(|node| node.lat_e7() < bbox.min_lat_e7);
        let above = self.nodes[start..].iter();
        let mut within = above.take_while(|node| node.lat_e7() <= bbox.max_lat_e7);
        let lons = bbox.min_lon_e7..=bbox.max_lon_e7;
        self.may_have_member(entry) || within.any(|node| lons.contains(&node.lon_e7()))
    }

    /// Whether a blob may contain a member of a completed relation.
    pub(super) fn may_have_member(&self, entry: &BlobEntry) -> bool {
        let bbox = &entry.bbox;
        bbox.is_empty() || self.relations.iter().any(|all| all.intersects(bbox))
    }
}

impl RegionMembers<'_> {
    /// Whether the ways or relations of a blob may have a node in a region. Always true without a spatial layout,
    /// because the locations of ways and relations are then unknown.
    pub(super) fn may_touch_a_region(&self, entry: &BlobEntry) -> bool {
        let is_known = self.outside.is_some() && entry.kinds.single().is_some();
        !is_known || entry.bbox.is_empty() || self.areas.meets(&entry.bbox)
    }

    /// Whether a blob may have ways or nodes that are kept as members of completed relations.
    pub(super) fn may_have_member(&self, entry: &BlobEntry) -> bool {
        let outside = self.outside.as_ref();
        outside.is_none_or(|outside| outside.may_have_member(entry))
    }

    /// Returns the locations of the nodes of the ways whose index `is_wanted` accepts. Without a spatial layout,
    /// returns no locations. Fails if a way has no locations or lies outside of the box of its blob.
    pub(super) fn locations_of_ways(
        &self,
        entry: &BlobEntry,
        block: &Block<'_>,
        is_wanted: impl Fn(u32) -> bool,
    ) -> Result<Vec<Location>, FormatError> {
        let (mut wanted, mut around, mut are_located) = (Vec::new(), Bbox::EMPTY, true);
        if self.outside.is_none() {
            return Ok(wanted);
        }
        block.for_each_way_location(
            |_| true,
            |index, _, locations| {
                are_located &= locations.is_some();
                let locations = locations.into_iter().flatten().flatten();
                for location in locations.clone() {
                    around.add(location.lat_e7(), location.lon_e7());
                }
                if is_wanted(index as u32) {
                    wanted.extend(locations);
                }
            },
        )?;
        let has_all = entry.bbox.is_empty() || entry.bbox.union(&around) == entry.bbox;
        match (are_located, has_all) {
            (true, true) => Ok(wanted),
            (false, _) => Err(stale_index("a way has no locations")),
            (true, false) => Err(stale_index("the box of its ways differs")),
        }
    }
}
