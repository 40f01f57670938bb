//! The values of the columns of features.

use super::columns::Values;
use super::row::{FeatureRow, GeometryBuffer, GeometryType, extent_of};
use crate::error::FormatError;
use crate::formats::features::put_wkb;
use crate::geometry::Extent;
use crate::osm::DECIMICRO_PER_DEGREE;
use bytes::Bytes;
use parquet::data_type::ByteArray;
use std::collections::BTreeSet;

/// The values of all columns for some rows, and facts about the rows.
#[derive(Default)]
pub(super) struct FeatureValues {
    pub kinds: Values<ByteArray>,
    pub ids: Values<i64>,
    pub versions: Values<i32>,
    /// Milliseconds since 1970.
    pub timestamps: Values<i64>,
    pub changesets: Values<i64>,
    pub uids: Values<i32>,
    pub users: Values<ByteArray>,
    pub keys: Values<ByteArray>,
    /// The values of tags.
    pub tags: Values<ByteArray>,
    /// The values of the tags that have a column of their own.
    pub tag_columns: Vec<Values<ByteArray>>,
    /// The boxes around the geometries: left, bottom, right, top.
    pub edges: [Values<f32>; 4],
    pub geometries: Values<ByteArray>,
    pub extent: Option<Extent>,
    pub types: BTreeSet<GeometryType>,
}

impl FeatureValues {
    /// Reads rows. The rows must be parts of `bytes`, whose memory the values share. `tag_columns` are the keys of the
    /// tags that have a column of their own.
    pub(super) fn of<'r>(
        bytes: &'r Bytes,
        rows: impl ExactSizeIterator<Item = &'r [u8]>,
        tag_columns: &[String],
    ) -> Result<Self, FormatError> {
        let text = |text: &[u8]| ByteArray::from(bytes.slice_ref(text));
        let kinds = ["node", "way", "relation"].map(ByteArray::from);
        let mut values = Self::default();
        values
            .tag_columns
            .resize_with(tag_columns.len(), Values::default);
        let mut buffer = GeometryBuffer::default();
        // A point takes about four bytes in a row, and sixteen in WKB.
        let mut wkb = Vec::with_capacity(bytes.len() * 2);
        let mut ends = Vec::with_capacity(rows.len());
        for row in rows {
            let row = FeatureRow::parse(row)?;
            values
                .kinds
                .values
                .extend(kinds.get(row.kind as usize).cloned());
            values.ids.values.push(row.id);
            values.versions.push_optional(row.version);
            let milliseconds = |seconds: i64| seconds.saturating_mul(1000);
            values
                .timestamps
                .push_optional(row.timestamp.map(milliseconds));
            values.changesets.push_optional(row.changeset);
            values.uids.push_optional(row.uid);
            values.users.push_optional(row.user.map(text));
            values.types.insert(row.geometry_type);
            let (geometry, tags) = row.geometry(&mut buffer)?;
            put_wkb(&mut wkb, &geometry, None);
            ends.push(wkb.len());
            let extent = extent_of(&geometry);
            values.add_extent(extent.ok_or(FormatError::new("a geometry without points"))?);
            let columns = values.tag_columns.iter_mut();
            for (column, wanted) in columns.zip(tag_columns) {
                let mut tags = tags;
                let found = tags.find(|(key, _)| *key == wanted.as_bytes());
                column.push_optional(found.map(|(_, value)| text(value)));
            }
            let start = values.tags.values.len();
            for (key, value) in tags {
                values.keys.values.push(text(key));
                values.tags.values.push(text(value));
            }
            let count = values.tags.values.len() - start;
            values.keys.end_list(count);
            values.tags.end_list(count);
        }
        let wkb = Bytes::from(wkb);
        let starts = [0].into_iter().chain(ends.iter().copied());
        let ranges = starts.zip(&ends);
        let geometries = ranges.map(|(start, end)| ByteArray::from(wkb.slice(start..*end)));
        values.geometries.values = geometries.collect();
        Ok(values)
    }

    fn add_extent(&mut self, extent: Extent) {
        let edges = [
            below(extent.low.lon_e7),
            below(extent.low.lat_e7),
            above(extent.high.lon_e7),
            above(extent.high.lat_e7),
        ];
        for (column, edge) in self.edges.iter_mut().zip(edges) {
            column.values.push(edge);
        }
        self.extent = Some(self.extent.map_or(extent, |all| all.and(&extent)));
    }
}

/// A coordinate in degrees.
pub(super) fn degrees(value_e7: i32) -> f64 {
    f64::from(value_e7) / DECIMICRO_PER_DEGREE as f64
}

/// The largest `f32` that is not above a coordinate.
fn below(value_e7: i32) -> f32 {
    let exact = degrees(value_e7);
    let rounded = exact as f32;
    if f64::from(rounded) > exact {
        rounded.next_down()
    } else {
        rounded
    }
}

/// The smallest `f32` that is not below a coordinate.
fn above(value_e7: i32) -> f32 {
    -below(-value_e7)
}
