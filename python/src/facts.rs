//! Columns that tables of objects and of features have in common, and the batches of their rows.

use crate::lists::{TagColumn, tags_type, time_type};
use arrow_array::builder::{
    BooleanBuilder, Int32Builder, Int64Builder, StringBuilder, TimestampMillisecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, SchemaRef};
use pbfhogg::{Info, ObjectKind};
use std::sync::Arc;

/// The number of rows at which a batch ends.
const MAX_ROWS: usize = 65_536;
/// The size in bytes of strings, lists and geometries at which a batch ends. Some dozens of batches are in memory at a
/// time. The batches of usual blobs are smaller.
pub const MAX_BYTES: usize = 8 << 20;

/// A fact that every object has, if it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    Type,
    Id,
    Version,
    Timestamp,
    Changeset,
    Uid,
    User,
    Visible,
    Tags,
}

impl Fact {
    pub const ALL: [Self; 9] = [
        Self::Type,
        Self::Id,
        Self::Version,
        Self::Timestamp,
        Self::Changeset,
        Self::Uid,
        Self::User,
        Self::Visible,
        Self::Tags,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Id => "id",
            Self::Version => "version",
            Self::Timestamp => "timestamp",
            Self::Changeset => "changeset",
            Self::Uid => "uid",
            Self::User => "user",
            Self::Visible => "visible",
            Self::Tags => "tags",
        }
    }

    /// The field of the column, with a name.
    pub fn field(self, name: &str) -> Field {
        let (data_type, is_nullable) = match self {
            Self::Type => (DataType::Utf8, false),
            Self::Id => (DataType::Int64, false),
            Self::Version | Self::Uid => (DataType::Int32, true),
            Self::Timestamp => (time_type(), true),
            Self::Changeset => (DataType::Int64, true),
            Self::User => (DataType::Utf8, true),
            Self::Visible => (DataType::Boolean, false),
            Self::Tags => (tags_type(), false),
        };
        Field::new(name, data_type, is_nullable)
    }

    /// Whether the fact belongs to the metadata of an object.
    pub const fn is_metadata(self) -> bool {
        matches!(
            self,
            Self::Version | Self::Timestamp | Self::Changeset | Self::Uid | Self::User
        )
    }
}

/// A row of a table.
pub trait Row {
    fn kind(&self) -> ObjectKind;
    fn id(&self) -> i64;
    fn info(&self) -> Info<'_>;

    /// Adds the tags to a column. Returns their size in bytes.
    fn put_tags(&self, tags: &mut TagColumn) -> usize;
}

/// The values of a fact.
pub enum FactValues {
    Text(StringBuilder),
    Int64(Int64Builder),
    Int32(Int32Builder),
    Time(TimestampMillisecondBuilder),
    Bool(BooleanBuilder),
    Tags(TagColumn),
}

impl FactValues {
    pub fn of(fact: Fact) -> Self {
        match fact {
            Fact::Type | Fact::User => Self::Text(StringBuilder::new()),
            Fact::Id | Fact::Changeset => Self::Int64(Int64Builder::new()),
            Fact::Version | Fact::Uid => Self::Int32(Int32Builder::new()),
            Fact::Timestamp => Self::Time(TimestampMillisecondBuilder::new().with_timezone("UTC")),
            Fact::Visible => Self::Bool(BooleanBuilder::new()),
            Fact::Tags => Self::Tags(TagColumn::default()),
        }
    }

    /// Adds the value of a row. Returns its size in bytes, as far as it has no fixed size.
    pub fn push(&mut self, fact: Fact, row: &impl Row) -> usize {
        match self {
            Self::Text(texts) => {
                let info = row.info();
                let text = match fact {
                    Fact::Type => Some(row.kind().name()),
                    _ => info.user,
                };
                texts.append_option(text);
                return text.map_or(0, str::len);
            }
            Self::Int64(values) => values.append_option(match fact {
                Fact::Id => Some(row.id()),
                _ => row.info().changeset,
            }),
            Self::Int32(values) => {
                let info = row.info();
                values.append_option(match fact {
                    Fact::Version => info.version.map(|version| version as i32),
                    _ => info.uid,
                });
            }
            Self::Time(values) => {
                let seconds = row.info().timestamp;
                values.append_option(seconds.map(|seconds| seconds.saturating_mul(1000)));
            }
            Self::Bool(values) => values.append_value(row.info().visible),
            Self::Tags(tags) => return row.put_tags(tags),
        }
        0
    }

    /// Ends the column, and returns it as an array.
    pub fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Text(values) => Arc::new(values.finish()),
            Self::Int64(values) => Arc::new(values.finish()),
            Self::Int32(values) => Arc::new(values.finish()),
            Self::Time(values) => Arc::new(values.finish()),
            Self::Bool(values) => Arc::new(values.finish()),
            Self::Tags(values) => values.finish(),
        }
    }
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
