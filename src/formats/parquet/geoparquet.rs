//! Tables of features in GeoParquet.

use super::columns::{EncodedGroup, GroupEncoder};
use super::facts::TableFacts;
use super::feature_values::FeatureValues;
use super::schema::{TableForm, compression, group, optional, primitive, text_map};
use super::{AdminAreas, GeoParquetOptions, GeoParquetVersion, ThemeSet};
use crate::error::{Error, Result};
use bytes::Bytes;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use serde_json::json;
use std::iter::Peekable;

/// The reference system of coordinates as PROJJSON: longitude and latitude in WGS 84. This system is the default of
/// GeoParquet, but DuckDB shows the system in the type of a column only if the column names it.
const CRS84: &str = include_str!("crs84.json");
/// The size in bytes of strings and geometries at which a row group ends. Usual row groups are smaller.
const GROUP_BYTES: usize = 128 << 20;
/// The maximum number of rows in a page.
const PAGE_ROWS: usize = 20_000;

/// A table of features.
pub(crate) struct FeatureTable {
    pub(crate) form: TableForm,
    options: GeoParquetOptions,
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
        use PhysicalType::{BYTE_ARRAY, FLOAT, INT32, INT64};
        let required = Repetition::REQUIRED;
        let text = Some(LogicalType::String);
        let time = LogicalType::timestamp(true, TimeUnit::MILLIS);
        let mut fields = vec![
            primitive("osm_type", BYTE_ARRAY, required, text.clone())?,
            primitive("osm_id", INT64, required, None)?,
        ];
        if options.has_metadata {
            for (name, physical, logical) in [
                ("version", INT32, None),
                ("timestamp", INT64, Some(time)),
                ("changeset", INT64, None),
                ("uid", INT32, None),
                ("user", BYTE_ARRAY, text.clone()),
            ] {
                fields.push(optional(name, physical, logical)?);
            }
        }
        fields.push(text_map("tags")?);
        for key in &options.tag_columns {
            fields.push(optional(key, BYTE_ARRAY, text.clone())?);
        }
        fields.extend(themes.fields()?);
        fields.extend(options.derived.fields()?);
        let edges = ["xmin", "ymin", "xmax", "ymax"];
        let edges = edges.map(|name| primitive(name, FLOAT, required, None));
        let edges = edges.into_iter().collect::<Result<_>>()?;
        fields.push(group("bbox", required, None, edges)?);
        let geometry = match options.version {
            GeoParquetVersion::V1 => None,
            GeoParquetVersion::V2 => Some(LogicalType::geometry(Some(CRS84.trim().to_owned()))),
        };
        fields.push(primitive("geometry", BYTE_ARRAY, required, geometry)?);
        Ok(Self {
            form: TableForm::new("features", fields, properties(options)?)?,
            options: options.clone(),
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
                FeatureValues::new(&self.options, &self.themes, self.areas.as_ref(), theme);
            while len < GROUP_BYTES && rows.peek().is_some() {
                let read = values.read(bytes, rows);
                len += read.map_err(|error| Error::Internal(error.to_string()))?;
                self.put(columns, &values)?;
                facts.add(&values.facts);
            }
            Ok(())
        })?;
        Ok(FeatureGroup { group, facts })
    }

    /// Encodes the values of some rows.
    fn put(&self, columns: &mut GroupEncoder<'_>, values: &FeatureValues) -> Result<()> {
        columns.bytes(&values.kinds)?;
        columns.int64(&values.ids)?;
        if self.options.has_metadata {
            columns.int32(&values.versions)?;
            columns.int64(&values.timestamps)?;
            columns.int64(&values.changesets)?;
            columns.int32(&values.uids)?;
            columns.bytes(&values.users)?;
        }
        columns.bytes(&values.keys)?;
        columns.bytes(&values.tags)?;
        for column in &values.tag_columns {
            columns.bytes(column)?;
        }
        values.of_theme.put(columns)?;
        values.derived.put(columns)?;
        for edges in &values.edges {
            columns.float(edges)?;
        }
        columns.bytes(&values.geometries)
    }

    /// Returns the value of the key `geo` in the metadata of a file.
    pub(crate) fn metadata(&self, facts: &TableFacts) -> String {
        let version = match self.options.version {
            GeoParquetVersion::V1 => "1.1.0",
            GeoParquetVersion::V2 => "2.0.0",
        };
        json!({
            "version": version,
            "primary_column": "geometry",
            "columns": {"geometry": facts.column()},
        })
        .to_string()
    }
}

fn properties(options: &GeoParquetOptions) -> Result<WriterPropertiesBuilder> {
    let path = |names: &[&str]| ColumnPath::new(names.iter().map(ToString::to_string).collect());
    let mut properties = WriterProperties::builder()
        .set_compression(compression(options.compression)?)
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
    // Measured values hardly become smaller: zstd saves 6 % of them.
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
