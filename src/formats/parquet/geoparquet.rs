//! Tables of features in GeoParquet.

use super::columns::EncodedGroup;
use super::facts::TableFacts;
use super::feature_columns::{FeatureColumn, feature_columns};
use super::feature_values::FeatureValues;
use super::schema::{TableForm, parquet_compression};
use super::{AdminAreas, GeoParquetOptions, GeoParquetVersion, ThemeSet};
use crate::error::{Error, Result};
use bytes::Bytes;
use parquet::basic::Compression;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use serde_json::json;
use std::iter::Peekable;

/// The size in bytes of strings and geometries at which a row group ends. Most row groups are smaller.
const GROUP_BYTES: usize = 128 << 20;
/// The maximum number of rows in a page.
const PAGE_ROWS: usize = 20_000;

/// A table of features.
pub(crate) struct FeatureTable {
    pub(crate) form: TableForm,
    columns: Vec<FeatureColumn>,
    version: GeoParquetVersion,
    themes: ThemeSet,
    /// The administrative areas, if a column needs them; otherwise `None`.
    areas: Option<AdminAreas>,
}

/// A row group of features, and facts for the metadata of the file.
pub(crate) struct FeatureGroup {
    pub(crate) group: EncodedGroup,
    pub(crate) facts: TableFacts,
}

impl FeatureTable {
    /// Creates a table with the given options. Its columns depend on the options alone, so that tables of different
    /// inputs can be read together.
    pub(crate) fn new(
        options: &GeoParquetOptions,
        themes: &ThemeSet,
        areas: Option<AdminAreas>,
    ) -> Result<Self> {
        let columns = feature_columns(options, themes);
        let fields = columns.iter();
        let fields = fields.map(|column| column.schema_type(options.version));
        let fields = fields.collect::<Result<_>>()?;
        Ok(Self {
            form: TableForm::new("features", fields, properties(options)?)?,
            columns,
            version: options.version,
            themes: themes.clone(),
            areas,
        })
    }

    /// Encodes rows as a row group, until there are no more rows or the row group has [`GROUP_BYTES`] bytes. The rows
    /// must be slices of `bytes`. `theme` is the index of the theme of all rows, or 0 if there are no themes.
    pub(crate) fn encode<'r>(
        &self,
        bytes: &'r Bytes,
        rows: &mut Peekable<impl Iterator<Item = &'r [u8]>>,
        theme: usize,
    ) -> Result<FeatureGroup> {
        let mut len = 0;
        let mut facts = TableFacts::default();
        let group = self.form.encode(|columns| {
            let mut values =
                FeatureValues::new(&self.columns, &self.themes, self.areas.as_ref(), theme);
            while len < GROUP_BYTES && rows.peek().is_some() {
                let read = values.read_batch(bytes, rows);
                len += read.map_err(Error::internal)?;
                values.put(columns)?;
                facts.add(&values.facts);
            }
            Ok(())
        })?;
        Ok(FeatureGroup { group, facts })
    }

    /// Returns the value of the key `geo` in the metadata of a file.
    pub(crate) fn metadata(&self, facts: &TableFacts) -> String {
        let version = match self.version {
            GeoParquetVersion::V1 => "1.1.0",
            GeoParquetVersion::V2 => "2.0.0",
        };
        json!({
            "version": version,
            "primary_column": "geometry",
            "columns": {"geometry": facts.column_metadata()},
        })
        .to_string()
    }
}

fn properties(options: &GeoParquetOptions) -> Result<WriterPropertiesBuilder> {
    let path = |names: &[&str]| ColumnPath::new(names.iter().map(ToString::to_string).collect());
    let mut properties = WriterProperties::builder()
        .set_compression(parquet_compression(options.compression)?)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_dictionary_enabled(true);
    for names in [
        &["osm_id"][..],
        &["geometry"],
        &["bbox", "xmin"],
        &["bbox", "ymin"],
        &["bbox", "xmax"],
        &["bbox", "ymax"],
    ] {
        properties = properties.set_column_dictionary_enabled(path(names), false);
    }
    // Compression hardly makes the values of these columns smaller: zstd saves 6 %.
    for name in ["area_m2", "length_m", "centroid_lon", "centroid_lat"] {
        properties = properties
            .set_column_dictionary_enabled(path(&[name]), false)
            .set_column_compression(path(&[name]), Compression::UNCOMPRESSED);
    }
    for names in [
        &["geometry"][..],
        &["tags", "key_value", "key"],
        &["tags", "key_value", "value"],
        &["names", "key_value", "key"],
        &["names", "key_value", "value"],
    ] {
        let none = EnabledStatistics::None;
        properties = properties.set_column_statistics_enabled(path(names), none);
    }
    Ok(properties)
}
