//! Rows that become record batches.

use crate::builders::{ColumnBuilder, field};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use pbfhogg::unstable::formats::{ColumnGetter, RowType, TableColumn};
use std::sync::Arc;

/// The number of rows at which a batch ends.
const MAX_ROWS: usize = 65_536;
/// The size in bytes of strings, lists and geometries at which a batch ends. Some dozens of batches are in memory at a
/// time. The batches of usual blobs are smaller.
pub const MAX_BYTES: usize = 8 << 20;

/// Returns the schema of a table with some columns.
pub fn schema<T: RowType>(columns: &[TableColumn<T>]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// Rows that become a record batch. `V` has the values of a column.
pub struct Rows<V> {
    schema: SchemaRef,
    columns: Vec<V>,
    rows: usize,
    bytes: usize,
}

impl<V> Rows<V> {
    /// Creates an empty batch. There is a column for each field of the schema.
    pub fn new(schema: SchemaRef, columns: impl IntoIterator<Item = V>) -> Self {
        Self {
            schema,
            columns: columns.into_iter().collect(),
            rows: 0,
            bytes: 0,
        }
    }

    /// Adds a row. `push` adds a value to a column, and returns its size in bytes.
    pub fn add(&mut self, push: impl FnMut(&mut V) -> usize) {
        self.bytes += self.columns.iter_mut().map(push).sum::<usize>();
        self.rows += 1;
    }

    /// Whether the batch should end.
    pub const fn is_full(&self) -> bool {
        self.rows >= MAX_ROWS || self.bytes >= MAX_BYTES
    }

    /// Ends the batch. Returns `None` if it has no rows.
    pub fn take(&mut self, finish: impl FnMut(&mut V) -> ArrayRef) -> Option<RecordBatch> {
        if self.rows == 0 {
            return None;
        }
        let columns = self.columns.iter_mut().map(finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        (self.rows, self.bytes) = (0, 0);
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options);
        Some(batch.expect("the columns are made for the schema"))
    }
}

/// The rows of a table whose columns the library describes.
pub struct TableRows<T: RowType>(Rows<(ColumnGetter<T>, ColumnBuilder)>);

impl<T: RowType> TableRows<T> {
    pub fn new(columns: &[TableColumn<T>], schema: SchemaRef) -> Self {
        let getters = columns.iter().map(|column| column.getter);
        let builders = getters.map(|getter| (getter, ColumnBuilder::of(&getter)));
        Self(Rows::new(schema, builders))
    }

    /// Adds a row.
    pub fn add(&mut self, row: &T::Row<'_>) {
        self.0.add(|(getter, builder)| builder.push(getter, row));
    }

    /// Ends the batch. Returns `None` if it has no rows.
    pub fn take(&mut self) -> Option<RecordBatch> {
        self.0.take(|(_, builder)| builder.finish())
    }

    /// Whether the batch should end.
    pub const fn is_full(&self) -> bool {
        self.0.is_full()
    }
}
