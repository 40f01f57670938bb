//! Columns of a row group, encoded in memory by a worker.

use super::failed;
use crate::error::Result;
use bytes::Bytes;
use parquet::column::writer::{ColumnCloseResult, get_column_writer, get_typed_column_writer_mut};
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
    /// The length of the pages in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.columns
            .iter()
            .map(|(bytes, _)| bytes.len() as u64)
            .sum()
    }
}

/// Encodes the columns of a row group one after another, in the order of the schema.
pub(super) struct GroupEncoder<'a> {
    schema: &'a SchemaDescriptor,
    properties: &'a WriterPropertiesPtr,
    columns: Vec<(Bytes, ColumnCloseResult)>,
}

/// The values of a column that has a type, and their levels.
pub(super) struct Values<T> {
    pub values: Vec<T>,
    /// For each value or absent value: 1 if it is present. Empty if the column has a value in each row.
    pub definition: Vec<i16>,
    /// For each value of a list or absent list: 1 if it is not the first. Empty if the column has no lists.
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

    /// Adds a list.
    pub(super) fn push_list(&mut self, values: impl Iterator<Item = T>) {
        let start = self.values.len();
        self.values.extend(values);
        self.end_list(self.values.len() - start);
    }

    /// Makes a list of the last `count` values.
    pub(super) fn end_list(&mut self, count: usize) {
        let levels = count.max(1);
        self.definition
            .extend(std::iter::repeat_n(i16::from(count > 0), levels));
        self.repetition.push(0);
        self.repetition.extend(std::iter::repeat_n(1, levels - 1));
    }

    /// The values that `put` adds for rows.
    pub(super) fn of<R>(rows: &[R], mut put: impl FnMut(&R, &mut Self)) -> Self {
        let mut values = Self::default();
        rows.iter().for_each(|row| put(row, &mut values));
        values
    }
}

impl<'a> GroupEncoder<'a> {
    pub(super) const fn new(
        schema: &'a SchemaDescriptor,
        properties: &'a WriterPropertiesPtr,
    ) -> Self {
        Self {
            schema,
            properties,
            columns: Vec::new(),
        }
    }

    /// Encodes the next column, whose values the library writes as type `D`.
    fn column<D: DataType>(&mut self, values: &Values<D::T>) -> Result<()> {
        let index = self.columns.len();
        let description = self.schema.column(index);
        let has_definition = description.max_def_level() > 0;
        let has_repetition = description.max_rep_level() > 0;
        let mut sink = TrackedWrite::new(Vec::new());
        let pages = Box::new(SerializedPageWriter::new(&mut sink));
        let mut writer = get_column_writer(description, self.properties.clone(), pages);
        let typed = get_typed_column_writer_mut::<D>(&mut writer);
        let written = typed.write_batch(
            &values.values,
            has_definition.then_some(values.definition.as_slice()),
            has_repetition.then_some(values.repetition.as_slice()),
        );
        written.map_err(failed)?;
        let closed = writer.close().map_err(failed)?;
        let bytes = sink.into_inner().map_err(failed)?;
        self.columns.push((Bytes::from(bytes), closed));
        Ok(())
    }

    pub(super) fn int32(&mut self, values: &Values<i32>) -> Result<()> {
        self.column::<Int32Type>(values)
    }

    pub(super) fn int64(&mut self, values: &Values<i64>) -> Result<()> {
        self.column::<Int64Type>(values)
    }

    pub(super) fn float(&mut self, values: &Values<f32>) -> Result<()> {
        self.column::<FloatType>(values)
    }

    pub(super) fn double(&mut self, values: &Values<f64>) -> Result<()> {
        self.column::<DoubleType>(values)
    }

    pub(super) fn bool(&mut self, values: &Values<bool>) -> Result<()> {
        self.column::<BoolType>(values)
    }

    pub(super) fn bytes(&mut self, values: &Values<ByteArray>) -> Result<()> {
        self.column::<ByteArrayType>(values)
    }

    /// The row group.
    pub(super) fn finish(self) -> EncodedGroup {
        EncodedGroup {
            columns: self.columns,
        }
    }
}
