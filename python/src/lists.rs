//! Columns of lists and of tags.

use arrow_array::builder::{ArrayBuilder, StringBuilder};
use arrow_array::{ArrayRef, ListArray, MapArray, StructArray};
use arrow_buffer::{NullBuffer, NullBufferBuilder, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, TimeUnit};
use pbfhogg::model::UniqueTags;
use std::sync::Arc;

/// The type of times.
pub fn time_type() -> DataType {
    DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))
}

/// The type of tags: a map from keys to values.
pub fn tags_type() -> DataType {
    DataType::Map(Arc::new(entries()), false)
}

fn entries() -> Field {
    Field::new("entries", DataType::Struct(tag_fields()), false)
}

/// The field of the items of a list.
pub fn item(data_type: DataType) -> Arc<Field> {
    Arc::new(Field::new("item", data_type, false))
}

fn tag_fields() -> Fields {
    vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Utf8, false),
    ]
    .into()
}

/// The end of each list in the values, and whether the object has such a list.
pub struct Ends {
    offsets: Vec<i32>,
    is_there: NullBufferBuilder,
}

impl Default for Ends {
    fn default() -> Self {
        Self {
            offsets: vec![0],
            is_there: NullBufferBuilder::new(0),
        }
    }
}

impl Ends {
    /// Adds the end of a list. `is_there` is `false` for an object that has no such list.
    pub fn push(&mut self, end: usize, is_there: bool) {
        self.offsets.push(end as i32);
        self.is_there.append(is_there);
    }

    fn take(&mut self) -> (OffsetBuffer<i32>, Option<NullBuffer>) {
        let mut ends = std::mem::take(self);
        (
            OffsetBuffer::new(ends.offsets.into()),
            ends.is_there.finish(),
        )
    }
}

/// Returns a column of lists.
pub fn list(ends: &mut Ends, data_type: DataType, values: ArrayRef) -> ArrayRef {
    let (offsets, is_there) = ends.take();
    Arc::new(ListArray::new(item(data_type), offsets, values, is_there))
}

/// Returns a column of lists of structs.
pub fn structs(ends: &mut Ends, fields: Fields, columns: Vec<ArrayRef>) -> ArrayRef {
    let values = Arc::new(StructArray::new(fields.clone(), columns, None));
    list(ends, DataType::Struct(fields), values)
}

/// A column of tags.
#[derive(Default)]
pub struct TagColumn {
    ends: Ends,
    keys: StringBuilder,
    values: StringBuilder,
}

impl TagColumn {
    /// Adds the tags of an object. Of several tags with the same key, it adds the first one, because programs refuse
    /// maps in which a key occurs twice. Returns their size in bytes.
    pub fn push<'t>(&mut self, tags: impl Iterator<Item = (&'t str, &'t str)>) -> usize {
        let mut bytes = 0;
        for (key, value) in UniqueTags::new(tags) {
            self.keys.append_value(key);
            self.values.append_value(value);
            bytes += key.len() + value.len();
        }
        self.ends.push(self.keys.len(), true);
        bytes
    }

    /// Adds the tags of an object, or null if there is none. Returns their size in bytes.
    pub fn push_optional<'t>(
        &mut self,
        tags: Option<impl Iterator<Item = (&'t str, &'t str)>>,
    ) -> usize {
        match tags {
            Some(tags) => self.push(tags),
            None => {
                self.ends.push(self.keys.len(), false);
                0
            }
        }
    }

    /// Ends the column, and returns it as an array.
    pub fn finish(&mut self) -> ArrayRef {
        let columns: Vec<ArrayRef> =
            vec![Arc::new(self.keys.finish()), Arc::new(self.values.finish())];
        let tags = StructArray::new(tag_fields(), columns, None);
        let (offsets, is_there) = self.ends.take();
        Arc::new(MapArray::new(
            Arc::new(entries()),
            offsets,
            tags,
            is_there,
            false,
        ))
    }
}
