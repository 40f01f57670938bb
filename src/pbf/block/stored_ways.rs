//! The ways of a block in their encoded form. A pass can decode only the ways that it needs, or keep encoded ways for
//! later.

use super::delta::Delta;
use super::messages::{ObjectOutline, WayMessage, check_coordinate_counts, object_id};
use super::outline::BlockUnits;
use super::parsed::Block;
use super::raw_element::RawElement;
use crate::error::{FormatError, FormatResult};
use crate::osm::{Location, ObjectKind};
use crate::pbf::wire::{Packed, put_varint, read_varint};

/// A way of a block, undecoded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredWay<'a>(&'a [u8]);

impl<'a> StoredWay<'a> {
    /// Returns the id.
    pub(crate) fn id(self) -> FormatResult<i64> {
        object_id(self.0, ObjectKind::Way)
    }

    /// Returns the way as an element.
    pub(crate) fn element(self) -> FormatResult<RawElement<'a>> {
        RawElement::from_message(ObjectKind::Way, self.0)
    }

    /// Whether the way stores locations.
    pub(crate) fn has_locations(self) -> FormatResult<bool> {
        Ok(ObjectOutline::parse(self.0)?.has_locations)
    }

    /// Appends the node references to `refs`, and returns the way with its locations.
    pub(crate) fn append_refs(self, refs: &mut Vec<i64>) -> FormatResult<LocatedWay<'a>> {
        let way = WayMessage::parse(self.0)?;
        way.check_size()?;
        Delta::new(&way.refs).append_all_to(refs)?;
        Ok(LocatedWay {
            id: way.id,
            end: refs.len(),
            lats: way.lats,
            lons: way.lons,
        })
    }

    /// Appends the references and coordinates to `out`, as a [`KeptWay`]. Does not check them.
    pub(crate) fn append_kept_way(self, out: &mut Vec<u8>) -> FormatResult<()> {
        let way = WayMessage::parse(self.0)?;
        let [refs, lats, lons] = [&way.refs, &way.lats, &way.lons].map(Packed::as_bytes);
        put_varint(out, refs.len() as u64);
        put_varint(out, lats.len() as u64);
        for column in [refs, lats, lons] {
            out.extend_from_slice(column);
        }
        Ok(())
    }
}

/// The references and coordinates of a way, in the form in which [`StoredWay::append_kept_way`] appends them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptWay<'k>(pub &'k [u8]);

impl<'k> KeptWay<'k> {
    /// Fails if references or coordinates are malformed, or if the way has too many nodes. `id` is named in the error.
    pub(crate) fn check(self, id: i64) -> FormatResult<()> {
        let [refs, lats, lons] = self.columns()?.map(Packed::from_run);
        let way = WayMessage {
            id,
            refs,
            lats,
            lons,
            ..WayMessage::default()
        };
        way.check_refs()?;
        way.check_size()
    }

    /// Calls `take` with the id of each node of the way, and with the location that the way stores for the node.
    /// `units` are the units of the block from which the way comes.
    pub(crate) fn for_each_node(
        self,
        units: &BlockUnits,
        mut take: impl FnMut(i64, Option<Location>),
    ) -> FormatResult<()> {
        let [mut refs, mut lats, mut lons] = self.columns()?.map(Delta::of_bytes);
        while !refs.is_done() {
            let id = refs.read()?;
            let location = if lats.is_done() {
                None
            } else {
                units.location(lats.read()?, lons.read()?)
            };
            take(id, location);
        }
        Ok(())
    }

    /// Returns the references, latitudes and longitudes as they are stored.
    fn columns(self) -> FormatResult<[&'k [u8]; 3]> {
        const CUT_OFF: FormatError = FormatError::new("a kept way is cut off");
        let mut at = 0;
        let refs_len = read_varint(self.0, &mut at)? as usize;
        let lats_len = read_varint(self.0, &mut at)? as usize;
        let (refs, rest) = self.0[at..].split_at_checked(refs_len).ok_or(CUT_OFF)?;
        let (lats, lons) = rest.split_at_checked(lats_len).ok_or(CUT_OFF)?;
        Ok([refs, lats, lons])
    }
}

/// A way whose node references have been read. The locations that the way stores are still encoded.
#[derive(Debug, Clone)]
pub(crate) struct LocatedWay<'a> {
    pub id: i64,
    /// The end of the references of the way in the list of references (exclusive).
    pub end: usize,
    lats: Packed<'a>,
    lons: Packed<'a>,
}

impl LocatedWay<'_> {
    /// Whether the way stores locations. They may be undefined.
    pub(crate) fn has_locations(&self) -> bool {
        !self.lats.is_empty() || !self.lons.is_empty()
    }

    /// Replaces the contents of `locations` with the stored location of each node, or with nothing if the way stores
    /// none. `refs` is the number of node references of the way, and `units` are the units of its block. Fails if a
    /// coordinate is malformed. Also fails if the way stores coordinates, but not exactly `refs` latitudes and `refs`
    /// longitudes.
    pub(crate) fn read_locations(
        &self,
        refs: usize,
        units: &BlockUnits,
        locations: &mut Vec<Option<Location>>,
    ) -> FormatResult<()> {
        locations.clear();
        check_coordinate_counts(self.id, refs, self.lats.count(), self.lons.count())?;
        let (mut lats, mut lons) = (Delta::new(&self.lats), Delta::new(&self.lons));
        while !lats.is_done() {
            locations.push(units.location(lats.read()?, lons.read()?));
        }
        Ok(())
    }
}

impl Block<'_> {
    /// Calls `visit` with each way and its index among the ways of the block.
    pub(crate) fn for_each_stored_way<'b>(
        &'b self,
        mut visit: impl FnMut(usize, StoredWay<'b>) -> FormatResult<()>,
    ) -> FormatResult<()> {
        let mut index = 0;
        self.for_each_object_message(ObjectKind::Way, |bytes| {
            visit(index, StoredWay(bytes))?;
            index += 1;
            Ok(())
        })
    }
}
