//! Columns of a row group, encoded in memory by a worker.

use super::parquet_error;
use crate::error::Result;
use bytes::Bytes;
use parquet::column::writer::{
    ColumnCloseResult, ColumnWriter, get_column_writer, get_typed_column_writer_mut,
};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::SchemaDescriptor;

/// An encoded row group.
pub(crate) struct EncodedGroup {
    pub(super) columns: Vec<(Bytes, ColumnCloseResult)>,
}

impl EncodedGroup {
    /// Returns the total size of the pages in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.columns
            .iter()
            .map(|(bytes, _)| bytes.len() as u64)
            .sum()
    }
}

/// An encoder of a row group. The rows are added in batches. Each batch is written column by column, in the order of
/// the schema.
pub(super) struct GroupEncoder<'a> {
    columns: Vec<Column<'a>>,
    /// The index of the column that gets values next.
    next: usize,
}

/// A column of a row group that is being encoded.
struct Column<'a> {
    writer: ColumnWriter<'a>,
    has_definition: bool,
    has_repetition: bool,
}

/// The pages of a column.
pub(super) type Pages = TrackedWrite<Vec<u8>>;

/// The typed values of a column, and their definition and repetition levels.
pub(super) struct Values<T> {
    pub values: Vec<T>,
    /// Definition levels: 1 for a value, 0 for an absent value or an empty list. If lists may be absent themselves: 2
    /// for a value, 1 for an empty list, 0 for an absent list. A required column without lists has no levels.
    pub definition: Vec<i16>,
    /// Repetition levels: 0 for the first value of a list, 1 for its other values. Empty if the column has no lists.
    pub repetition: Vec<i16>,
}

impl<T> Default for Values<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            definition: Vec::new(),
            repetition: Vec::new(),
        }
    }
}

impl<T> Values<T> {
    /// Adds a value that may be absent.
    pub(super) fn push_optional(&mut self, value: Option<T>) {
        self.definition.push(i16::from(value.is_some()));
        self.values.extend(value);
    }

    /// Adds a value, which may be absent if `is_nullable` is true.
    #[inline]
    pub(super) fn push(&mut self, is_nullable: bool, value: Option<T>) {
        if is_nullable {
            self.definition.push(i16::from(value.is_some()));
        }
        if let Some(value) = value {
            self.values.push(value);
        }
    }

    /// Adds a list.
    pub(super) fn push_list(&mut self, values: impl Iterator<Item = T>) {
        let start = self.values.len();
        self.values.extend(values);
        self.end_list(self.values.len() - start);
    }

    /// Makes the last `count` values a list.
    pub(super) fn end_list(&mut self, count: usize) {
        self.end_list_with_level(count, i16::from(count > 0));
    }

    /// Makes the last `count` values a list in a column whose lists may be absent. Adds an absent list if `count` is
    /// `None`.
    pub(super) fn end_optional_list(&mut self, count: Option<usize>) {
        let definition = count.map_or(0, |count| 1 + i16::from(count > 0));
        self.end_list_with_level(count.unwrap_or(0), definition);
    }

    /// Makes the last `count` values a list whose definition levels are all `definition`.
    fn end_list_with_level(&mut self, count: usize, definition: i16) {
        let levels = count.max(1);
        self.definition
            .extend(std::iter::repeat_n(definition, levels));
        self.repetition.push(0);
        self.repetition.extend(std::iter::repeat_n(1, levels - 1));
    }

    /// Collects the values of rows. `put` adds the values of one row.
    pub(super) fn from_rows<R>(rows: &[R], mut put: impl FnMut(&R, &mut Self)) -> Self {
        let mut values = Self::default();
        rows.iter().for_each(|row| put(row, &mut values));
        values
    }

    /// Reserves memory for exactly `count` more values in lists.
    pub(super) fn reserve(&mut self, count: usize) {
        self.values.reserve_exact(count);
        self.definition.reserve_exact(count);
        self.repetition.reserve_exact(count);
    }

    /// Removes all values.
    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.definition.clear();
        self.repetition.clear();
    }
}

impl GroupEncoder<'_> {
    /// Encodes a row group. `put` writes its values.
    pub(super) fn encode(
        schema: &SchemaDescriptor,
        properties: &WriterPropertiesPtr,
        put: impl FnOnce(&mut GroupEncoder<'_>) -> Result<()>,
    ) -> Result<EncodedGroup> {
        let columns = schema.columns();
        let mut pages: Vec<Pages> = Vec::new();
        pages.resize_with(columns.len(), || Pages::new(Vec::new()));
        let closed = {
            let with_pages = columns.iter().zip(&mut pages);
            let columns = with_pages.map(|(description, pages)| Column {
                has_definition: description.max_def_level() > 0,
                has_repetition: description.max_rep_level() > 0,
                writer: get_column_writer(
                    description.clone(),
                    properties.clone(),
                    Box::new(SerializedPageWriter::new(pages)),
                ),
            });
            let mut encoder = GroupEncoder {
                columns: columns.collect(),
                next: 0,
            };
            put(&mut encoder)?;
            encoder.close()?
        };
        let columns = pages.into_iter().zip(closed);
        let columns = columns.map(|(pages, closed)| {
            let bytes = pages.into_inner().map_err(parquet_error)?;
            Ok((Bytes::from(bytes), closed))
        });
        Ok(EncodedGroup {
            columns: columns.collect::<Result<_>>()?,
        })
    }

    /// Completes all columns.
    fn close(self) -> Result<Vec<ColumnCloseResult>> {
        let columns = self.columns.into_iter();
        columns
            .map(|column| column.writer.close().map_err(parquet_error))
            .collect()
    }

    /// Encodes values of the next column, whose type in the Parquet library is `D`.
    fn encode_column<D: DataType>(&mut self, values: &Values<D::T>) -> Result<()> {
        let (count, none) = (self.columns.len(), || {
            parquet_error("a schema has no columns")
        });
        let column = self.columns.get_mut(self.next).ok_or_else(none)?;
        self.next = (self.next + 1) % count;
        let typed = get_typed_column_writer_mut::<D>(&mut column.writer);
        let written = typed.write_batch(
            &values.values,
            column
                .has_definition
                .then_some(values.definition.as_slice()),
            column
                .has_repetition
                .then_some(values.repetition.as_slice()),
        );
        written.map(|_| ()).map_err(parquet_error)
    }

    pub(super) fn encode_int32(&mut self, values: &Values<i32>) -> Result<()> {
        self.encode_column::<Int32Type>(values)
    }

    pub(super) fn encode_int64(&mut self, values: &Values<i64>) -> Result<()> {
        self.encode_column::<Int64Type>(values)
    }

    pub(super) fn encode_float(&mut self, values: &Values<f32>) -> Result<()> {
        self.encode_column::<FloatType>(values)
    }

    pub(super) fn encode_double(&mut self, values: &Values<f64>) -> Result<()> {
        self.encode_column::<DoubleType>(values)
    }

    pub(super) fn encode_bool(&mut self, values: &Values<bool>) -> Result<()> {
        self.encode_column::<BoolType>(values)
    }

    pub(super) fn encode_bytes(&mut self, values: &Values<ByteArray>) -> Result<()> {
        self.encode_column::<ByteArrayType>(values)
    }
}
