//! The values of the columns of themes.

use super::super::columns::{GroupEncoder, Values};
use super::super::row::StoredTags;
use super::super::schema::{int_list, optional};
use super::{ColumnType, ThemeSet, cast};
use crate::error::{FormatError, Result};
use crate::formats::features::Geometry;
use crate::osm::ObjectKind;
use parquet::basic::{LogicalType, Type as PhysicalType};
use parquet::data_type::ByteArray;
use parquet::schema::types::TypePtr;

/// The values of the columns of themes, for some rows.
pub(in super::super) struct ThemeValues<'t> {
    themes: &'t ThemeSet,
    columns: Vec<ColumnValues>,
}

enum ColumnValues {
    Text(Values<ByteArray>),
    Int(Values<i64>),
    Double(Values<f64>),
    Bool(Values<bool>),
    List(Values<i64>),
}

impl ColumnValues {
    fn new(column_type: ColumnType) -> Self {
        match column_type {
            ColumnType::Text | ColumnType::Key => Self::Text(Values::default()),
            ColumnType::Int => Self::Int(Values::default()),
            ColumnType::Float | ColumnType::Speed | ColumnType::Length => {
                Self::Double(Values::default())
            }
            ColumnType::Bool => Self::Bool(Values::default()),
            ColumnType::Parents => Self::List(Values::default()),
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Text(values) => values.clear(),
            Self::Int(values) | Self::List(values) => values.clear(),
            Self::Double(values) => values.clear(),
            Self::Bool(values) => values.clear(),
        }
    }
}

impl ThemeSet {
    /// Returns the types of the columns.
    pub(in super::super) fn fields(&self) -> Result<Vec<TypePtr>> {
        let fields = self.columns().iter().map(|column| {
            let name = &column.name;
            match ColumnValues::new(column.column_type) {
                ColumnValues::Text(_) => {
                    optional(name, PhysicalType::BYTE_ARRAY, Some(LogicalType::String))
                }
                ColumnValues::Int(_) => optional(name, PhysicalType::INT64, None),
                ColumnValues::Double(_) => optional(name, PhysicalType::DOUBLE, None),
                ColumnValues::Bool(_) => optional(name, PhysicalType::BOOLEAN, None),
                ColumnValues::List(_) => int_list(name),
            }
        });
        fields.collect()
    }
}

impl<'t> ThemeValues<'t> {
    pub(in super::super) fn new(themes: &'t ThemeSet) -> Self {
        let columns = themes.columns().iter();
        let columns = columns.map(|column| ColumnValues::new(column.column_type));
        Self {
            themes,
            columns: columns.collect(),
        }
    }

    pub(in super::super) fn clear(&mut self) {
        self.columns.iter_mut().for_each(ColumnValues::clear);
    }

    /// Adds the values of a row of a theme, whose feature has the kind and the geometry `subject`. `text` must convert a
    /// slice of the row to a value. `parents` must return the ids of the administrative boundaries around the row's
    /// area.
    pub(in super::super) fn add(
        &mut self,
        theme: usize,
        subject: (ObjectKind, &Geometry<'_>),
        tags: StoredTags<'_>,
        text: impl Fn(&[u8]) -> ByteArray,
        parents: impl Fn() -> Vec<i64>,
    ) -> Result<(), FormatError> {
        let themes = self.themes;
        let mut all = None;
        let mut is_rejected = |key: &[u8], value: &[u8]| {
            let all = all.get_or_insert_with(|| texts(tags));
            let tag = std::str::from_utf8(key)
                .ok()
                .zip(std::str::from_utf8(value).ok());
            tag.is_some_and(|tag| themes.rejects(theme, subject, all, tag))
        };
        for (column, values) in themes.columns().iter().zip(&mut self.columns) {
            let keys = column.keys.get(theme).and_then(Option::as_ref);
            if let ColumnValues::List(lists) = values {
                let parents = keys.map_or_else(Vec::new, |_| parents());
                lists.push_list(parents.into_iter());
                continue;
            }
            let found = keys.map_or(Ok(None), |keys| find(keys, tags, &mut is_rejected))?;
            let is_key = column.column_type == ColumnType::Key;
            let as_text = || found.and_then(|(_, value)| std::str::from_utf8(value).ok());
            match values {
                ColumnValues::Text(values) => values.push_optional(
                    found.map(|(key, value)| text(if is_key { key } else { value })),
                ),
                ColumnValues::Int(values) => values.push_optional(as_text().and_then(cast::int)),
                ColumnValues::Double(values) => {
                    let parse = match column.column_type {
                        ColumnType::Speed => cast::speed,
                        ColumnType::Length => cast::length,
                        _ => cast::float,
                    };
                    values.push_optional(as_text().and_then(parse));
                }
                ColumnValues::Bool(values) => values.push_optional(as_text().map(cast::bool)),
                ColumnValues::List(_) => {}
            }
        }
        Ok(())
    }

    /// Encodes the values, in the order of the columns.
    pub(in super::super) fn put(&self, columns: &mut GroupEncoder<'_>) -> Result<()> {
        self.columns.iter().try_for_each(|values| match values {
            ColumnValues::Text(values) => columns.bytes(values),
            ColumnValues::Int(values) | ColumnValues::List(values) => columns.int64(values),
            ColumnValues::Double(values) => columns.double(values),
            ColumnValues::Bool(values) => columns.bool(values),
        })
    }
}

/// A key and a value of a tag.
type Tag<'t> = (&'t [u8], &'t [u8]);

/// Returns the tag whose key comes first in `keys`, or `None` if no tag has one of the keys. Of several keys, those
/// count whose tag is not rejected, so that a class is not that of a tag by which the theme does not select the feature.
fn find<'t>(
    keys: &[String],
    tags: StoredTags<'t>,
    mut is_rejected: impl FnMut(&[u8], &[u8]) -> bool,
) -> Result<Option<Tag<'t>>, FormatError> {
    for wanted in keys {
        for tag in tags {
            let (key, value) = tag?;
            if key == wanted.as_bytes() {
                if keys.len() > 1 && is_rejected(key, value) {
                    break;
                }
                return Ok(Some((key, value)));
            }
        }
    }
    Ok(None)
}

/// Returns the tags as text. Leaves out tags that cannot be read.
fn texts(tags: StoredTags<'_>) -> Vec<(&str, &str)> {
    let tags = tags.flatten();
    tags.filter_map(|(key, value)| {
        Some((
            std::str::from_utf8(key).ok()?,
            std::str::from_utf8(value).ok()?,
        ))
    })
    .collect()
}
