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

/// The number of rows that are written to a column at a time.
const AT_ONCE: usize = 4096;

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
        let count = (self.values.len() - start).max(1);
        let has_values = i16::from(self.values.len() > start);
        self.definition
            .extend(std::iter::repeat_n(has_values, count));
        self.repetition.push(0);
        self.repetition.extend(std::iter::repeat_n(1, count - 1));
    }

    fn clear(&mut self) {
        self.values.clear();
        self.definition.clear();
        self.repetition.clear();
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

    /// Encodes the next column, which has type `D` in the schema. `put` adds the values of a row to a list.
    fn column<R, D: DataType>(
        &mut self,
        rows: &[R],
        mut put: impl FnMut(&R, &mut Values<D::T>),
    ) -> Result<()> {
        let index = self.columns.len();
        let description = self.schema.column(index);
        let has_definition = description.max_def_level() > 0;
        let has_repetition = description.max_rep_level() > 0;
        let mut sink = TrackedWrite::new(Vec::new());
        let pages = Box::new(SerializedPageWriter::new(&mut sink));
        let mut writer = get_column_writer(description, self.properties.clone(), pages);
        let mut values = Values::default();
        for rows in rows.chunks(AT_ONCE) {
            values.clear();
            rows.iter().for_each(|row| put(row, &mut values));
            let writer = get_typed_column_writer_mut::<D>(&mut writer);
            let written = writer.write_batch(
                &values.values,
                has_definition.then_some(values.definition.as_slice()),
                has_repetition.then_some(values.repetition.as_slice()),
            );
            written.map_err(failed)?;
        }
        let closed = writer.close().map_err(failed)?;
        let bytes = sink.into_inner().map_err(failed)?;
        self.columns.push((Bytes::from(bytes), closed));
        Ok(())
    }

    pub(super) fn int32<R>(
        &mut self,
        rows: &[R],
        put: impl FnMut(&R, &mut Values<i32>),
    ) -> Result<()> {
        self.column::<R, Int32Type>(rows, put)
    }

    pub(super) fn int64<R>(
        &mut self,
        rows: &[R],
        put: impl FnMut(&R, &mut Values<i64>),
    ) -> Result<()> {
        self.column::<R, Int64Type>(rows, put)
    }

    pub(super) fn float<R>(
        &mut self,
        rows: &[R],
        put: impl FnMut(&R, &mut Values<f32>),
    ) -> Result<()> {
        self.column::<R, FloatType>(rows, put)
    }

    pub(super) fn double<R>(
        &mut self,
        rows: &[R],
        put: impl FnMut(&R, &mut Values<f64>),
    ) -> Result<()> {
        self.column::<R, DoubleType>(rows, put)
    }

    pub(super) fn bool<R>(
        &mut self,
        rows: &[R],
        put: impl FnMut(&R, &mut Values<bool>),
    ) -> Result<()> {
        self.column::<R, BoolType>(rows, put)
    }

    pub(super) fn bytes<R>(
        &mut self,
        rows: &[R],
        put: impl FnMut(&R, &mut Values<ByteArray>),
    ) -> Result<()> {
        self.column::<R, ByteArrayType>(rows, put)
    }

    /// The row group.
    pub(super) fn finish(self) -> EncodedGroup {
        EncodedGroup {
            columns: self.columns,
        }
    }
}
