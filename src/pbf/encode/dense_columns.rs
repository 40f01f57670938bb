//! The columns of dense nodes.

use crate::pbf::block::messages::RawInfo;
use crate::pbf::block::object::put_deltas;
use crate::pbf::wire::schema::{dense_nodes, info, primitive_block, primitive_group};
use crate::pbf::wire::{bytes_field_len, put_bytes_head, put_packed_field, put_varint};

/// A column of DenseInfo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InfoColumn {
    Version,
    Timestamp,
    Changeset,
    Uid,
    User,
    Visible,
}

impl InfoColumn {
    pub(crate) const ALL: [Self; 6] = [
        Self::Version,
        Self::Timestamp,
        Self::Changeset,
        Self::Uid,
        Self::User,
        Self::Visible,
    ];

    /// Returns the columns to write if the columns `needed` have values. Some readers expect all columns besides
    /// `visible`, or none. So if any column is needed, all columns besides `visible` are written. `visible` is written
    /// only if it is in `needed`.
    pub(crate) fn written_columns(needed: &[Self]) -> impl Iterator<Item = Self> + '_ {
        let wanted = |column: &Self| match column {
            Self::Visible => needed.contains(column),
            _ => !needed.is_empty(),
        };
        Self::ALL.into_iter().filter(wanted)
    }

    /// Whether the values are zigzag-coded deltas, rather than plain varints.
    pub(crate) const fn is_delta(self) -> bool {
        !matches!(self, Self::Version | Self::Visible)
    }

    /// Returns the value that each node has if the column is missing.
    pub(crate) const fn value_if_missing(self) -> i64 {
        matches!(self, Self::Visible) as i64
    }

    /// Returns the value of the attribute in `info`, as this column stores it.
    pub(crate) fn value(self, info: &RawInfo) -> i64 {
        match self {
            Self::Version => info.version,
            Self::Timestamp => info.timestamp,
            Self::Changeset => info.changeset,
            Self::Uid => info.uid,
            Self::User => i64::from(info.user_sid.unwrap_or(0)),
            Self::Visible => i64::from(info.visible != Some(false)),
        }
    }

    /// Appends values in the coding of this column.
    pub(crate) fn encode(self, values: impl Iterator<Item = i64>, out: &mut Vec<u8>) {
        if self.is_delta() {
            put_deltas(out, values);
        } else {
            values.for_each(|value| put_varint(out, value as u64));
        }
    }
}

/// The encoded columns of a DenseNodes message.
#[derive(Debug, Default)]
pub(crate) struct DenseColumns {
    pub ids: Vec<u8>,
    pub lats: Vec<u8>,
    pub lons: Vec<u8>,
    pub keys_vals: Vec<u8>,
    info: [Vec<u8>; 6],
}

impl DenseColumns {
    pub(crate) fn info(&mut self, column: InfoColumn) -> &mut Vec<u8> {
        &mut self.info[column as usize]
    }

    /// Appends a field of a block: a group that consists of a DenseNodes message with these columns. Empty columns are
    /// omitted.
    pub(crate) fn put_group(&self, out: &mut Vec<u8>) {
        let group_len = bytes_field_len(primitive_group::DENSE, self.message_len());
        out.reserve(bytes_field_len(primitive_block::PRIMITIVEGROUP, group_len));
        put_bytes_head(out, primitive_block::PRIMITIVEGROUP, group_len);
        self.put_message(out);
    }

    /// Appends a field of a group: a DenseNodes message with these columns. Empty columns are omitted.
    pub(crate) fn put_message(&self, out: &mut Vec<u8>) {
        put_bytes_head(out, primitive_group::DENSE, self.message_len());
        put_packed_field(out, dense_nodes::ID, &self.ids);
        let info_len = self.info_len();
        if info_len > 0 {
            put_bytes_head(out, dense_nodes::DENSEINFO, info_len);
            for (column, number) in self.info.iter().zip(info::VERSION..) {
                put_packed_field(out, number, column);
            }
        }
        put_packed_field(out, dense_nodes::LAT, &self.lats);
        put_packed_field(out, dense_nodes::LON, &self.lons);
        put_packed_field(out, dense_nodes::KEYS_VALS, &self.keys_vals);
    }

    /// Returns the length of the DenseNodes message in bytes.
    fn message_len(&self) -> usize {
        let columns = [
            (dense_nodes::ID, self.ids.len()),
            (dense_nodes::DENSEINFO, self.info_len()),
            (dense_nodes::LAT, self.lats.len()),
            (dense_nodes::LON, self.lons.len()),
            (dense_nodes::KEYS_VALS, self.keys_vals.len()),
        ];
        packed_fields_len(columns)
    }

    /// Returns the length of the DenseInfo message in bytes.
    fn info_len(&self) -> usize {
        let columns = (info::VERSION..).zip(&self.info);
        packed_fields_len(columns.map(|(number, column)| (number, column.len())))
    }
}

/// Returns the length in bytes of the fields that [`put_packed_field`] appends, given their numbers and the lengths of
/// their runs.
fn packed_fields_len(runs: impl IntoIterator<Item = (u32, usize)>) -> usize {
    let runs = runs.into_iter().filter(|(_, len)| *len > 0);
    runs.map(|(number, len)| bytes_field_len(number, len)).sum()
}
