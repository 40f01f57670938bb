//! The types of columns in Parquet, and the values of a column for some rows.

use super::columns::{GroupEncoder, Values};
use super::facts::degrees;
use super::schema::{bbox_type, int_list_type, primitive_type, text_map_type};
use crate::error::Result;
use crate::formats::table::{ColumnGetter, RowType, TableColumn, TagPairs};
use crate::osm::Edges;
use bytes::Bytes;
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::data_type::ByteArray;
use parquet::schema::types::TypePtr;

/// The type of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueType {
    Text,
    Int32,
    Int64,
    /// A time in milliseconds since 1970.
    Time,
    Double,
    Bool,
    /// A map from texts to texts.
    Map,
    /// A list of 64-bit numbers.
    IntList,
    Bbox,
    Geometry,
}

impl ValueType {
    /// Returns the type of the values that a getter returns.
    pub(super) const fn of<T: RowType>(getter: &ColumnGetter<T>) -> Self {
        match getter {
            ColumnGetter::Name(_) | ColumnGetter::Text(_) => Self::Text,
            ColumnGetter::Int32(_) => Self::Int32,
            ColumnGetter::Int64(_) => Self::Int64,
            ColumnGetter::Time(_) => Self::Time,
            ColumnGetter::Double(_) | ColumnGetter::Degrees(_) => Self::Double,
            ColumnGetter::Bool(_) => Self::Bool,
            ColumnGetter::Tags(_) => Self::Map,
            // Parquet tables have no columns of locations or members, so the result for these getters is not used.
            ColumnGetter::Refs(_) | ColumnGetter::Locations(_) | ColumnGetter::Members(_) => {
                Self::IntList
            }
            ColumnGetter::Bbox(_) => Self::Bbox,
            ColumnGetter::Geometry(_) => Self::Geometry,
        }
    }

    /// Returns the type of a column in a schema.
    pub(super) fn schema_type(self, name: &str, is_nullable: bool) -> Result<TypePtr> {
        use PhysicalType::{BOOLEAN, BYTE_ARRAY, DOUBLE, INT32, INT64};
        let repetition = if is_nullable {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        };
        let (physical, logical) = match self {
            Self::Text => (BYTE_ARRAY, Some(LogicalType::String)),
            Self::Int32 => (INT32, None),
            Self::Int64 => (INT64, None),
            Self::Time => (INT64, Some(LogicalType::timestamp(true, TimeUnit::MILLIS))),
            Self::Double => (DOUBLE, None),
            Self::Bool => (BOOLEAN, None),
            Self::Geometry => (BYTE_ARRAY, None),
            Self::Map => return text_map_type(name, repetition),
            Self::IntList => return int_list_type(name, repetition),
            Self::Bbox => return bbox_type(name, repetition),
        };
        primitive_type(name, physical, repetition, logical)
    }
}

/// Returns the schema types of the columns of a table.
pub(super) fn table_schema<T: RowType>(columns: &[TableColumn<T>]) -> Result<Vec<TypePtr>> {
    let columns = columns.iter();
    columns
        .map(|column| ValueType::of(&column.getter).schema_type(column.name, column.is_nullable))
        .collect()
}

/// Encodes some rows of a table.
pub(super) fn put_table_rows<'r, T: RowType>(
    encoder: &mut GroupEncoder<'_>,
    columns: &[TableColumn<T>],
    rows: impl Iterator<Item = T::Row<'r>> + Clone,
) -> Result<()> {
    for column in columns {
        let mut buffer = ColumnBuffer::new(ValueType::of(&column.getter));
        for row in rows.clone() {
            buffer.push(column, &row, |text| ByteArray::from(text.to_vec()));
        }
        buffer.put(encoder)?;
    }
    Ok(())
}

/// The values of a column.
pub(super) enum ColumnBuffer {
    /// Texts or geometries.
    Bytes(Values<ByteArray>),
    Int32(Values<i32>),
    Int64(Values<i64>),
    Double(Values<f64>),
    Bool(Values<bool>),
    /// Keys and values.
    Map([Values<ByteArray>; 2]),
    IntList(Values<i64>),
    /// West, south, east and north.
    Bbox([Values<f32>; 4]),
}

impl ColumnBuffer {
    pub(super) fn new(value_type: ValueType) -> Self {
        match value_type {
            ValueType::Text | ValueType::Geometry => Self::Bytes(Values::default()),
            ValueType::Int32 => Self::Int32(Values::default()),
            ValueType::Int64 | ValueType::Time => Self::Int64(Values::default()),
            ValueType::Double => Self::Double(Values::default()),
            ValueType::Bool => Self::Bool(Values::default()),
            ValueType::Map => Self::Map(Default::default()),
            ValueType::IntList => Self::IntList(Values::default()),
            ValueType::Bbox => Self::Bbox(Default::default()),
        }
    }

    /// Removes all values.
    pub(super) fn clear(&mut self) {
        match self {
            Self::Bytes(values) => values.clear(),
            Self::Int32(values) => values.clear(),
            Self::Int64(values) | Self::IntList(values) => values.clear(),
            Self::Double(values) => values.clear(),
            Self::Bool(values) => values.clear(),
            Self::Map(sides) => sides.iter_mut().for_each(Values::clear),
            Self::Bbox(edges) => edges.iter_mut().for_each(Values::clear),
        }
    }

    /// Encodes the values as the next column.
    pub(super) fn put(&self, encoder: &mut GroupEncoder<'_>) -> Result<()> {
        match self {
            Self::Bytes(values) => encoder.encode_bytes(values),
            Self::Int32(values) => encoder.encode_int32(values),
            Self::Int64(values) | Self::IntList(values) => encoder.encode_int64(values),
            Self::Double(values) => encoder.encode_double(values),
            Self::Bool(values) => encoder.encode_bool(values),
            Self::Map(sides) => sides.iter().try_for_each(|side| encoder.encode_bytes(side)),
            Self::Bbox(edges) => edges.iter().try_for_each(|edge| encoder.encode_float(edge)),
        }
    }

    /// Adds the value of a row. The buffer must have been created for the type of the column. `text` converts a text of
    /// the row to a [`ByteArray`].
    #[inline]
    pub(super) fn push<T: RowType>(
        &mut self,
        column: &TableColumn<T>,
        row: &T::Row<'_>,
        text: impl Fn(&[u8]) -> ByteArray,
    ) {
        let is_nullable = column.is_nullable;
        match (self, column.getter) {
            (Self::Bytes(values), ColumnGetter::Name(name)) => {
                let name = Bytes::from_static(name(row).as_bytes());
                values.push(is_nullable, Some(ByteArray::from(name)));
            }
            (Self::Bytes(values), ColumnGetter::Text(get)) => {
                values.push(is_nullable, get(row).map(|value| text(value.as_bytes())));
            }
            (Self::Bytes(values), ColumnGetter::Geometry(put)) => {
                let mut wkb = Vec::new();
                values.push(
                    is_nullable,
                    put(row, &mut wkb).then(|| ByteArray::from(wkb)),
                );
            }
            (Self::Int32(values), ColumnGetter::Int32(number)) => {
                values.push(is_nullable, number(row))
            }
            (Self::Int64(values), ColumnGetter::Int64(number)) => {
                values.push(is_nullable, number(row))
            }
            (Self::Int64(values), ColumnGetter::Time(seconds)) => {
                let milliseconds = |seconds: i64| seconds.saturating_mul(1000);
                values.push(is_nullable, seconds(row).map(milliseconds));
            }
            (Self::Double(values), ColumnGetter::Double(number)) => {
                values.push(is_nullable, number(row));
            }
            (Self::Double(values), ColumnGetter::Degrees(e7)) => {
                values.push(is_nullable, e7(row).map(degrees));
            }
            (Self::Bool(values), ColumnGetter::Bool(is_true)) => {
                values.push(is_nullable, Some(is_true(row)));
            }
            (Self::Map(sides), ColumnGetter::Tags(tags)) => {
                push_tags(sides, is_nullable, tags(row), text);
            }
            (Self::Bbox(edges), ColumnGetter::Bbox(bbox)) => {
                push_bbox(edges, is_nullable, bbox(row))
            }
            _ => {}
        }
    }
}

/// Adds tags to the columns of their keys and values.
#[inline]
fn push_tags(
    sides: &mut [Values<ByteArray>; 2],
    is_nullable: bool,
    tags: Option<TagPairs<'_>>,
    text: impl Fn(&[u8]) -> ByteArray,
) {
    let [keys, values] = sides;
    let before = keys.values.len();
    let is_there = tags.is_some();
    for (key, value) in tags.into_iter().flatten() {
        keys.values.push(text(key.as_bytes()));
        values.values.push(text(value.as_bytes()));
    }
    let count = keys.values.len() - before;
    for side in sides {
        if is_nullable {
            side.end_optional_list(is_there.then_some(count));
        } else {
            side.end_list(count);
        }
    }
}

/// Adds the edges of a box, rounded outwards.
fn push_bbox(columns: &mut [Values<f32>; 4], is_nullable: bool, bbox: Option<Edges<i32>>) {
    let edges = bbox.map(|edges| {
        [
            round_down_to_f32(edges.west),
            round_down_to_f32(edges.south),
            round_up_to_f32(edges.east),
            round_up_to_f32(edges.north),
        ]
    });
    for (index, column) in columns.iter_mut().enumerate() {
        column.push(is_nullable, edges.map(|edges| edges[index]));
    }
}

/// Returns the largest `f32` that is not above a coordinate.
fn round_down_to_f32(value_e7: i32) -> f32 {
    let exact = degrees(value_e7);
    let rounded = exact as f32;
    if f64::from(rounded) > exact {
        rounded.next_down()
    } else {
        rounded
    }
}

/// Returns the smallest `f32` that is not below a coordinate.
fn round_up_to_f32(value_e7: i32) -> f32 {
    -round_down_to_f32(-value_e7)
}
