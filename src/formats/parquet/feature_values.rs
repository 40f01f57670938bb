//! The values of the columns of features.

use super::column_buffer::ColumnBuffer;
use super::columns::{GroupEncoder, Values};
use super::country::country_of;
use super::facts::TableFacts;
use super::feature_columns::{FeatureColumn, FeatureValue, ReadFeature};
use super::row::{FeatureRow, GeometryBuffer, StoredTags};
use super::theme::ThemeRow;
use super::{AdminAreas, ThemeSet};
use crate::error::{FormatError, FormatResult, Result};
use crate::formats::derived_columns::{h3_cell, language_of_key};
use crate::formats::features::put_wkb;
use bytes::Bytes;
use parquet::data_type::ByteArray;
use std::cell::OnceCell;

/// The size in bytes at which a batch of rows ends.
const BATCH_BYTES: usize = 1 << 20;
/// The number of rows at which a batch ends. It is small, so that the values stay in a CPU cache.
const BATCH_ROWS: usize = 4096;

/// The size in bytes above which the tags of a row are counted before they are read. Exactly the memory for this number
/// of tags is reserved.
const MANY_TAGS: usize = 64 << 10;

/// The values of all columns for some rows, and facts about the rows.
pub(super) struct FeatureValues<'k> {
    columns: Vec<(&'k FeatureColumn, ColumnBuffer)>,
    pub facts: TableFacts,
    themes: &'k ThemeSet,
    theme: usize,
    areas: Option<&'k AdminAreas>,
    buffer: GeometryBuffer,
}

impl<'k> FeatureValues<'k> {
    /// Creates an empty batch for rows of a theme.
    pub(super) fn new(
        columns: &'k [FeatureColumn],
        themes: &'k ThemeSet,
        areas: Option<&'k AdminAreas>,
        theme: usize,
    ) -> Self {
        let columns = columns.iter();
        Self {
            columns: columns
                .map(|column| (column, ColumnBuffer::new(column.value_type)))
                .collect(),
            facts: TableFacts::default(),
            themes,
            theme,
            areas,
            buffer: GeometryBuffer::default(),
        }
    }

    /// Replaces the values with those of the next batch of rows. The rows must be slices of `bytes`, because the values
    /// share the memory of `bytes`. Returns the size of the strings and geometries in bytes.
    pub(super) fn read_batch<'r>(
        &mut self,
        bytes: &'r Bytes,
        rows: &mut impl Iterator<Item = &'r [u8]>,
    ) -> FormatResult<usize> {
        self.columns
            .iter_mut()
            .for_each(|(_, buffer)| buffer.clear());
        self.facts = TableFacts::default();
        let (mut wkb, mut ends) = (Vec::new(), Vec::new());
        let mut len = 0;
        while len < BATCH_BYTES
            && ends.len() < BATCH_ROWS
            && let Some(row) = rows.next()
        {
            len += row.len();
            self.add_row(&mut wkb, FeatureRow::parse(row)?, bytes)?;
            ends.push(wkb.len());
        }
        len += wkb.len();
        let wkb = Bytes::from(wkb);
        let starts = [0].into_iter().chain(ends.iter().copied());
        let ranges = starts.zip(&ends);
        let mut geometries = ranges.map(|(start, end)| ByteArray::from(wkb.slice(start..*end)));
        for (column, buffer) in &mut self.columns {
            if let (FeatureValue::Geometry, ColumnBuffer::Bytes(values)) = (column.value, buffer) {
                values.values.extend(geometries.by_ref());
            }
        }
        Ok(len)
    }

    /// Adds the values of a row, except the geometry, which is appended to `wkb`.
    fn add_row(
        &mut self,
        wkb: &mut Vec<u8>,
        row: FeatureRow<'_>,
        bytes: &Bytes,
    ) -> FormatResult<()> {
        let text = |text: &[u8]| ByteArray::from(bytes.slice_ref(text));
        let (geometry, tags) = row.read_geometry_and_tags(&mut self.buffer)?;
        put_wkb(wkb, &geometry, None);
        let extent = geometry.extent();
        let feature = ReadFeature {
            row,
            geometry,
            extent: extent.ok_or(FormatError::new("a geometry without points"))?,
            centroid: OnceCell::new(),
        };
        self.facts.add_row(row.geometry_type, feature.extent);
        let mut of_theme = ThemeRow {
            themes: self.themes,
            theme: self.theme,
            kind: row.kind,
            id: row.id,
            geometry: &geometry,
            tags,
            areas: self.areas,
            texts: None,
        };
        for (column, buffer) in &mut self.columns {
            match (column.value, buffer) {
                (FeatureValue::Known(column), buffer) => buffer.push(&column, &feature, text),
                (FeatureValue::Theme(index), buffer) => of_theme.put(index, buffer, text)?,
                (FeatureValue::Tags, ColumnBuffer::Map(sides)) => put_tags(tags, sides, text)?,
                (FeatureValue::Names, ColumnBuffer::Map(sides)) => put_names(tags, sides, text),
                (FeatureValue::Tag, ColumnBuffer::Bytes(values)) => {
                    // `flatten` skips errors, which the column of all tags reports.
                    let wanted = column.name.as_bytes();
                    let found = tags.flatten().find(|(key, _)| *key == wanted);
                    values.push_optional(found.map(|(_, value)| text(value)));
                }
                (FeatureValue::Country, ColumnBuffer::Bytes(values)) => {
                    let country = self.areas.and_then(|areas| country_of(&geometry, areas));
                    values.push_optional(country.map(ByteArray::from));
                }
                (FeatureValue::Cell(resolution), ColumnBuffer::Bytes(values)) => {
                    let cell = h3_cell(resolution, feature.extent.centre());
                    let cell = cell.map(|cell| ByteArray::from(cell.to_string().as_str()));
                    values.push_optional(cell);
                }
                // Geometries are added after all rows of the batch.
                _ => {}
            }
        }
        Ok(())
    }

    /// Encodes the values.
    pub(super) fn put(&self, encoder: &mut GroupEncoder<'_>) -> Result<()> {
        let mut buffers = self.columns.iter().map(|(_, buffer)| buffer);
        buffers.try_for_each(|buffer| buffer.put(encoder))
    }
}

/// Adds tags to the columns of their keys and values.
fn put_tags(
    tags: StoredTags<'_>,
    [keys, values]: &mut [Values<ByteArray>; 2],
    text: impl Fn(&[u8]) -> ByteArray,
) -> FormatResult<()> {
    if tags.remaining_len() > MANY_TAGS {
        // A list that doubles its capacity could use twice the memory that the tags need. For many tags, the exact
        // capacity is therefore reserved.
        let count = tags.count();
        keys.reserve(count);
        values.reserve(count);
    }
    let before = keys.values.len();
    for tag in tags {
        let (key, value) = tag?;
        keys.values.push(text(key));
        values.values.push(text(value));
    }
    let count = keys.values.len() - before;
    keys.end_list(count);
    values.end_list(count);
    Ok(())
}

/// Adds the names in particular languages, from tags such as `name:de`: the codes of the languages to one column, and
/// the names to another.
fn put_names(
    tags: StoredTags<'_>,
    [languages, names]: &mut [Values<ByteArray>; 2],
    text: impl Fn(&[u8]) -> ByteArray,
) {
    let before = names.values.len();
    for (key, name) in tags.flatten() {
        if let Some(language) = language_of_key(key) {
            languages.values.push(text(language));
            names.values.push(text(name));
        }
    }
    let count = names.values.len() - before;
    languages.end_list(count);
    names.end_list(count);
}
