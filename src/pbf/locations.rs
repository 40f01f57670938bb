//! Where the nodes of a block are.

use super::cursor::{ParsedBlock, ParsedMessage};
use super::dense::{Delta, DenseNodes, STRIDE, next_tag_run};
use super::messages::{NodeMessage, WayMessage};
use crate::error::FormatError;
use crate::osm::{DECIMICRO_PER_DEGREE, NANO_PER_DECIMICRO, ObjectKind, Place};

/// A position on the earth: latitude and longitude in 1e-7 degree.
pub(crate) type LocationE7 = (i32, i32);

impl ParsedBlock<'_> {
    /// Calls `look` with the id of each node and where it is: `None` for a deleted one, and for one that
    /// lies outside of the world, which is how some writers say that there is no place.
    pub(crate) fn for_each_location(
        &self,
        mut look: impl FnMut(i64, Option<LocationE7>),
    ) -> Result<(), FormatError> {
        const MOST_LON: u32 = 180 * DECIMICRO_PER_DEGREE as u32;
        let is_on_earth = |&(lat, lon): &LocationE7| {
            lat.unsigned_abs() <= MOST_LON / 2 && lon.unsigned_abs() <= MOST_LON
        };
        self.walk_nodes::<false>(|id, place, _| look(id, place.get().filter(is_on_earth)))
    }

    /// Calls `look` with the id of each node, the place that it has, which may be anywhere or nowhere, and whether it has
    /// tags.
    pub(crate) fn for_each_node(
        &self,
        look: impl FnMut(i64, Place, bool),
    ) -> Result<(), FormatError> {
        self.walk_nodes::<true>(look)
    }

    /// Calls `look` with each way that is wanted by its number in the block: the number, its nodes, and where they are, as
    /// far as the way says that.
    pub(crate) fn for_each_way_place(
        &self,
        is_wanted: impl Fn(usize) -> bool,
        mut look: impl FnMut(usize, &[i64], Option<&[Place]>),
    ) -> Result<(), FormatError> {
        let (mut ids, mut places, mut number) = (Vec::new(), Vec::new(), 0);
        for message in self.messages() {
            let ParsedMessage::Single(ObjectKind::Way, bytes) = message else {
                continue;
            };
            number += 1;
            if !is_wanted(number - 1) {
                continue;
            }
            let way = WayMessage::parse(bytes)?;
            way.check()?;
            ids.clear();
            places.clear();
            let mut refs = Delta::new(&way.refs);
            while !refs.is_done() {
                ids.push(refs.read()?);
            }
            let (mut lats, mut lons) = (Delta::new(&way.lats), Delta::new(&way.lons));
            while !lats.is_done() {
                places.push(self.place(lats.read()?, lons.read()?));
            }
            let has_places = !places.is_empty() || ids.is_empty();
            look(number - 1, &ids, has_places.then_some(places.as_slice()));
        }
        Ok(())
    }

    #[inline(always)]
    fn walk_nodes<const TAGS: bool>(
        &self,
        mut look: impl FnMut(i64, Place, bool),
    ) -> Result<(), FormatError> {
        for message in self.messages() {
            match message {
                ParsedMessage::Dense(dense) => self.walk_dense::<TAGS>(dense, &mut look)?,
                ParsedMessage::Single(ObjectKind::Node, bytes) => {
                    let node = NodeMessage::parse(bytes)?;
                    let place = match node.info.visible {
                        Some(false) => Place::NONE,
                        _ => self.place(node.lat, node.lon),
                    };
                    look(node.id, place, !node.keys.is_empty());
                }
                ParsedMessage::Single(..) => {}
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn walk_dense<const TAGS: bool>(
        &self,
        dense: &DenseNodes<'_>,
        look: &mut impl FnMut(i64, Place, bool),
    ) -> Result<(), FormatError> {
        let mut ids = Delta::new(&dense.ids);
        let (mut lats, mut lons) = (Delta::new(&dense.lats), Delta::new(&dense.lons));
        let mut visible = dense.info.visible.values();
        let mut tags = dense.keys_vals.values();
        // A column at a time is quicker than a node at a time.
        let mut columns = [[0; STRIDE]; 3];
        let mut left = dense.len();
        while left > 0 {
            let count = left.min(STRIDE);
            left -= count;
            for (column, deltas) in columns.iter_mut().zip([&mut ids, &mut lats, &mut lons]) {
                deltas.fill(column.get_mut(..count).unwrap_or_default())?;
            }
            let [ids, lats, lons] = &columns;
            for ((&id, &lat), &lon) in ids.iter().zip(lats).zip(lons).take(count) {
                let is_visible = visible.is_done() || visible.read()? != 0;
                let place = match is_visible {
                    true => self.place(lat, lon),
                    false => Place::NONE,
                };
                look(id, place, TAGS && !next_tag_run(&mut tags)?.is_empty());
            }
        }
        Ok(())
    }

    /// The place that a block stores so; none where it is too far out for 1e-7 degrees in 32 bits.
    #[inline]
    fn place(&self, lat: i64, lon: i64) -> Place {
        let (mut lat, mut lon) = (lat, lon);
        if !self.units.is_decimicro() {
            lat = self.units.nano_lat(lat) / NANO_PER_DECIMICRO;
            lon = self.units.nano_lon(lon) / NANO_PER_DECIMICRO;
        }
        match (i32::try_from(lat), i32::try_from(lon)) {
            (Ok(lat), Ok(lon)) => Place::new(lat, lon),
            _ => Place::NONE,
        }
    }
}
