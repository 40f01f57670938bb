//! Where the nodes of a block are.

use super::FormatError;
use super::cursor::{ParsedBlock, ParsedMessage};
use super::dense::{Delta, DenseNodes, STRIDE};
use super::messages::NodeMessage;
use crate::osm::{DECIMICRO_PER_DEGREE, NANO_PER_DECIMICRO, ObjectKind};

/// A position on the earth: latitude and longitude in 1e-7 degree.
pub(crate) type LocationE7 = (i32, i32);

impl ParsedBlock<'_> {
    /// Calls `look` with the id of each node and where it is: `None` for a deleted one, and for one that
    /// lies outside of the world, which is how some writers say that there is no place.
    pub(crate) fn for_each_location(
        &self,
        mut look: impl FnMut(i64, Option<LocationE7>),
    ) -> Result<(), FormatError> {
        for message in self.messages() {
            match message {
                ParsedMessage::Dense(dense) => self.dense_locations(dense, &mut look)?,
                ParsedMessage::Single(ObjectKind::Node, bytes) => {
                    let node = NodeMessage::parse(bytes)?;
                    let is_visible = node.info.visible != Some(false);
                    let location = self.location_e7(node.lat, node.lon);
                    look(node.id, location.filter(|_| is_visible));
                }
                ParsedMessage::Single(..) => {}
            }
        }
        Ok(())
    }

    fn dense_locations(
        &self,
        dense: &DenseNodes<'_>,
        look: &mut impl FnMut(i64, Option<LocationE7>),
    ) -> Result<(), FormatError> {
        let mut ids = Delta::new(&dense.ids);
        let (mut lats, mut lons) = (Delta::new(&dense.lats), Delta::new(&dense.lons));
        let mut visible = dense.info.visible.values();
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
                look(id, self.location_e7(lat, lon).filter(|_| is_visible));
            }
        }
        Ok(())
    }

    #[inline]
    fn location_e7(&self, lat: i64, lon: i64) -> Option<LocationE7> {
        const MOST_LON: u64 = 180 * DECIMICRO_PER_DEGREE as u64;
        let (mut lat, mut lon) = (lat, lon);
        if !self.scale.is_decimicro() {
            lat = self.scale.nano_lat(lat) / NANO_PER_DECIMICRO;
            lon = self.scale.nano_lon(lon) / NANO_PER_DECIMICRO;
        }
        let is_on_earth = lat.unsigned_abs() <= MOST_LON / 2 && lon.unsigned_abs() <= MOST_LON;
        is_on_earth.then_some((lat as i32, lon as i32))
    }
}
