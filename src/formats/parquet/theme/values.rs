//! The values of the columns of themes.

use super::super::AdminAreas;
use super::super::column_buffer::{ColumnBuffer, ValueType};
use super::super::row::StoredTags;
use super::{ColumnType, ThemeSet, cast};
use crate::area::interior_point;
use crate::error::FormatResult;
use crate::formats::features::Geometry;
use crate::osm::ObjectKind;
use parquet::data_type::ByteArray;

impl ColumnType {
    /// Returns the type of the values of a column.
    pub(in super::super) const fn value_type(self) -> ValueType {
        match self {
            Self::Text | Self::Key => ValueType::Text,
            Self::Int => ValueType::Int64,
            Self::Float | Self::Speed | Self::Length => ValueType::Double,
            Self::Bool => ValueType::Bool,
            Self::Parents => ValueType::IntList,
        }
    }
}

/// A row of a theme.
pub(in super::super) struct ThemeRow<'a> {
    pub themes: &'a ThemeSet,
    pub theme: usize,
    pub kind: ObjectKind,
    pub id: i64,
    pub geometry: &'a Geometry<'a>,
    pub tags: StoredTags<'a>,
    pub areas: Option<&'a AdminAreas>,
    /// The tags as text; `None` until they are needed.
    pub texts: Option<Vec<(&'a str, &'a str)>>,
}

/// The key and the value of a tag.
type Tag<'t> = (&'t [u8], &'t [u8]);

impl<'a> ThemeRow<'a> {
    /// Adds the value of the column with the given index among the columns of all themes. `text` must convert a slice
    /// of the row to a value.
    pub(in super::super) fn put(
        &mut self,
        index: usize,
        buffer: &mut ColumnBuffer,
        text: impl Fn(&[u8]) -> ByteArray,
    ) -> FormatResult<()> {
        let Some(column) = self.themes.columns().get(index) else {
            return Ok(());
        };
        let keys = column.keys.get(self.theme).and_then(Option::as_ref);
        if let ColumnBuffer::IntList(lists) = buffer {
            let parents = keys.map_or_else(Vec::new, |_| self.parents());
            lists.push_list(parents.into_iter());
            return Ok(());
        }
        let found = keys.map_or(Ok(None), |keys| self.find_tag(keys))?;
        let as_text = || found.and_then(|(_, value)| std::str::from_utf8(value).ok());
        let is_key = column.column_type == ColumnType::Key;
        match buffer {
            ColumnBuffer::Bytes(values) => {
                let bytes = found.map(|(key, value)| if is_key { key } else { value });
                values.push_optional(bytes.map(text));
            }
            ColumnBuffer::Int64(values) => {
                values.push_optional(as_text().and_then(cast::parse_int))
            }
            ColumnBuffer::Double(values) => {
                let parse = match column.column_type {
                    ColumnType::Speed => cast::parse_speed,
                    ColumnType::Length => cast::parse_length,
                    _ => cast::parse_float,
                };
                values.push_optional(as_text().and_then(parse));
            }
            ColumnBuffer::Bool(values) => values.push_optional(as_text().map(cast::is_yes)),
            _ => {}
        }
        Ok(())
    }

    /// Searches the tags for each of `keys` in turn, and returns the first tag found. Returns `None` if no tag has one
    /// of the keys. If there are several keys, skips the tags that the theme [rejects](ThemeSet::is_tag_rejected).
    fn find_tag(&mut self, keys: &[String]) -> FormatResult<Option<Tag<'a>>> {
        for wanted in keys {
            for tag in self.tags {
                let (key, value) = tag?;
                if key == wanted.as_bytes() {
                    if keys.len() > 1 && self.rejects_tag(key, value) {
                        break;
                    }
                    return Ok(Some((key, value)));
                }
            }
        }
        Ok(None)
    }

    /// Whether the theme [rejects](ThemeSet::is_tag_rejected) a tag.
    fn rejects_tag(&mut self, key: &[u8], value: &[u8]) -> bool {
        let all = self.texts.get_or_insert_with(|| tags_as_text(self.tags));
        let tag = std::str::from_utf8(key)
            .ok()
            .zip(std::str::from_utf8(value).ok());
        let subject = (self.kind, self.geometry);
        tag.is_some_and(|tag| self.themes.is_tag_rejected(self.theme, subject, all, tag))
    }

    /// Returns the ids of the administrative areas around an area, countries first. If the area has a tag
    /// `admin_level`, only areas with a lower admin level count.
    fn parents(&self) -> Vec<i64> {
        let (Some(areas), Geometry::MultiPolygon(polygons)) = (self.areas, self.geometry) else {
            return Vec::new();
        };
        let level = self.tags.flatten().find(|(key, _)| *key == b"admin_level");
        let level = level.and_then(|(_, value)| std::str::from_utf8(value).ok()?.parse().ok());
        let relation = (self.kind == ObjectKind::Relation).then_some(self.id);
        let place = interior_point(polygons);
        place.map_or_else(Vec::new, |place| areas.parents_at(place, relation, level))
    }
}

/// Returns the tags as text. Leaves out tags that cannot be read.
fn tags_as_text(tags: StoredTags<'_>) -> Vec<(&str, &str)> {
    let tags = tags.flatten();
    tags.filter_map(|(key, value)| {
        Some((
            std::str::from_utf8(key).ok()?,
            std::str::from_utf8(value).ok()?,
        ))
    })
    .collect()
}
