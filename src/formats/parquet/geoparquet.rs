//! Tables of features: GeoParquet.

use super::columns::{EncodedGroup, GroupEncoder};
use super::row::{Corners, FeatureRow, GeometryBuffer, GeometryType, InfoColumns, StoredTags};
use super::{GeoParquetOptions, GeoParquetVersion, PageCompression, failed};
use crate::error::{Error, FormatError, Result};
use crate::formats::features::put_wkb;
use crate::osm::DECIMICRO_PER_DEGREE;
use bytes::Bytes;
use parquet::basic::{
    Compression, LogicalType, Repetition, TimeUnit, Type as PhysicalType, ZstdLevel,
};
use parquet::data_type::ByteArray;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::schema::types::{ColumnPath, SchemaDescriptor, Type, TypePtr};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The number of rows of a page.
const PAGE_ROWS: usize = 20_000;

/// The form of a table of features.
pub(crate) struct FeatureTable {
    pub(crate) schema: TypePtr,
    pub(crate) properties: WriterPropertiesPtr,
    description: SchemaDescriptor,
    options: GeoParquetOptions,
    info: InfoColumns,
}

/// A row group of features, and facts for the metadata of the file.
pub(crate) struct FeatureGroup {
    pub(crate) group: EncodedGroup,
    corners: Option<Corners>,
    types: BTreeSet<&'static str>,
}

/// Facts about the rows of a file.
#[derive(Debug, Default)]
pub(crate) struct TableFacts {
    corners: Option<Corners>,
    types: BTreeSet<&'static str>,
}

impl TableFacts {
    /// Adds a row group.
    pub(crate) fn add(&mut self, group: &FeatureGroup) {
        self.types.extend(&group.types);
        self.corners = match (self.corners, group.corners) {
            (Some(one), Some(other)) => Some(one.and(other)),
            (one, other) => one.or(other),
        };
    }
}

/// A row, and what is computed of it.
struct Prepared<'a> {
    row: FeatureRow<'a>,
    tags: StoredTags<'a>,
    corners: Corners,
    wkb: std::ops::Range<usize>,
}

pub(super) fn primitive(
    name: &str,
    physical: PhysicalType,
    repetition: Repetition,
    logical: Option<LogicalType>,
) -> Result<TypePtr> {
    let column = Type::primitive_type_builder(name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build();
    column.map(Arc::new).map_err(failed)
}

pub(super) fn group(
    name: &str,
    repetition: Repetition,
    logical: Option<LogicalType>,
    fields: Vec<TypePtr>,
) -> Result<TypePtr> {
    let group = Type::group_type_builder(name)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .with_fields(fields)
        .build();
    group.map(Arc::new).map_err(failed)
}

/// The column `tags`: a map from keys to values.
fn tags_column() -> Result<TypePtr> {
    let text = |name| {
        let logical = Some(LogicalType::String);
        primitive(
            name,
            PhysicalType::BYTE_ARRAY,
            Repetition::REQUIRED,
            logical,
        )
    };
    let entry = group(
        "key_value",
        Repetition::REPEATED,
        None,
        vec![text("key")?, text("value")?],
    )?;
    group(
        "tags",
        Repetition::REQUIRED,
        Some(LogicalType::Map),
        vec![entry],
    )
}

impl FeatureTable {
    /// The form of a table with the given options. `info` is the metadata that objects have.
    pub(crate) fn new(options: &GeoParquetOptions, info: InfoColumns) -> Result<Self> {
        use PhysicalType::{BYTE_ARRAY, FLOAT, INT32, INT64};
        let info = match options.has_metadata {
            true => info,
            false => InfoColumns::default(),
        };
        let (required, optional) = (Repetition::REQUIRED, Repetition::OPTIONAL);
        let text = Some(LogicalType::String);
        let time = LogicalType::timestamp(true, TimeUnit::MILLIS);
        let mut fields = vec![
            primitive("osm_type", BYTE_ARRAY, required, text.clone())?,
            primitive("osm_id", INT64, required, None)?,
        ];
        for (column, name, physical, logical) in [
            (InfoColumns::VERSION, "version", INT32, None),
            (InfoColumns::TIMESTAMP, "timestamp", INT64, Some(time)),
            (InfoColumns::CHANGESET, "changeset", INT64, None),
            (InfoColumns::UID, "uid", INT32, None),
            (InfoColumns::USER, "user", BYTE_ARRAY, text.clone()),
        ] {
            if info.has(column) {
                fields.push(primitive(name, physical, optional, logical)?);
            }
        }
        fields.push(tags_column()?);
        for key in &options.tag_columns {
            fields.push(primitive(key, BYTE_ARRAY, optional, text.clone())?);
        }
        let edges = ["xmin", "ymin", "xmax", "ymax"];
        let edges = edges.map(|name| primitive(name, FLOAT, required, None));
        let edges = edges.into_iter().collect::<Result<_>>()?;
        fields.push(group("bbox", required, None, edges)?);
        let geometry = match options.version {
            GeoParquetVersion::V1 => None,
            GeoParquetVersion::V2 => Some(LogicalType::geometry(None)),
        };
        fields.push(primitive("geometry", BYTE_ARRAY, required, geometry)?);
        let schema = Type::group_type_builder("features")
            .with_fields(fields)
            .build();
        let schema = Arc::new(schema.map_err(failed)?);
        Ok(Self {
            description: SchemaDescriptor::new(schema.clone()),
            schema,
            properties: Arc::new(properties(options)?),
            options: options.clone(),
            info,
        })
    }

    /// Encodes rows as a row group. The rows must be parts of `bytes`.
    pub(crate) fn encode<'r>(
        &self,
        bytes: &'r Bytes,
        rows: impl ExactSizeIterator<Item = &'r [u8]>,
    ) -> Result<FeatureGroup> {
        // Texts share the memory of the rows.
        let text = |text: &[u8]| ByteArray::from(bytes.slice_ref(text));
        // A point takes about four bytes in a row, and sixteen in WKB.
        let mut wkb = Vec::with_capacity(bytes.len() * 2);
        let prepared = prepare(rows, &mut wkb);
        let rows = prepared.map_err(|error| Error::Internal(error.to_string()))?;
        let wkb = Bytes::from(wkb);
        let mut columns = GroupEncoder::new(&self.description, &self.properties);
        let names = ["node", "way", "relation"].map(ByteArray::from);
        columns.bytes(&rows, |row, values| {
            values
                .values
                .extend(names.get(row.row.kind as usize).cloned());
        })?;
        columns.int64(&rows, |row, values| values.values.push(row.row.id))?;
        self.encode_info(&rows, text, &mut columns)?;
        columns.bytes(&rows, |row, values| {
            values.push_list(row.tags.map(|(key, _)| text(key)));
        })?;
        columns.bytes(&rows, |row, values| {
            values.push_list(row.tags.map(|(_, value)| text(value)));
        })?;
        for wanted in &self.options.tag_columns {
            columns.bytes(&rows, |row, values| {
                let mut tags = row.tags;
                let found = tags.find(|(key, _)| *key == wanted.as_bytes());
                values.push_optional(found.map(|(_, value)| text(value)));
            })?;
        }
        let edges: [fn(&Corners) -> f32; 4] = [
            |corners| below(corners.low.lon_e7),
            |corners| below(corners.low.lat_e7),
            |corners| above(corners.high.lon_e7),
            |corners| above(corners.high.lat_e7),
        ];
        for edge in edges {
            columns.float(&rows, |row, values| values.values.push(edge(&row.corners)))?;
        }
        columns.bytes(&rows, |row, values| {
            values
                .values
                .push(ByteArray::from(wkb.slice(row.wkb.clone())));
        })?;
        let corners = rows.iter().map(|row| row.corners);
        Ok(FeatureGroup {
            group: columns.finish(),
            corners: corners.reduce(Corners::and),
            types: rows
                .iter()
                .map(|row| row.row.geometry_type.name())
                .collect(),
        })
    }

    fn encode_info(
        &self,
        rows: &[Prepared<'_>],
        text: impl Fn(&[u8]) -> ByteArray,
        columns: &mut GroupEncoder<'_>,
    ) -> Result<()> {
        if self.info.has(InfoColumns::VERSION) {
            columns.int32(rows, |row, values| values.push_optional(row.row.version))?;
        }
        if self.info.has(InfoColumns::TIMESTAMP) {
            columns.int64(rows, |row, values| {
                let milliseconds = row
                    .row
                    .timestamp
                    .map(|seconds| seconds.saturating_mul(1000));
                values.push_optional(milliseconds);
            })?;
        }
        if self.info.has(InfoColumns::CHANGESET) {
            columns.int64(rows, |row, values| values.push_optional(row.row.changeset))?;
        }
        if self.info.has(InfoColumns::UID) {
            columns.int32(rows, |row, values| values.push_optional(row.row.uid))?;
        }
        if self.info.has(InfoColumns::USER) {
            columns.bytes(rows, |row, values| {
                values.push_optional(row.row.user.map(&text));
            })?;
        }
        Ok(())
    }

    /// The value of the key `geo` in the metadata of a file.
    pub(crate) fn metadata(&self, facts: &TableFacts) -> String {
        let corner = |edge: &str| json!(["bbox", edge]);
        let mut geometry = json!({
            "encoding": "WKB",
            "geometry_types": facts.types.iter().collect::<Vec<_>>(),
            "orientation": "counterclockwise",
            "edges": "planar",
            "covering": {"bbox": {
                "xmin": corner("xmin"), "ymin": corner("ymin"),
                "xmax": corner("xmax"), "ymax": corner("ymax"),
            }},
        });
        if let (Some(Corners { low, high }), Value::Object(members)) =
            (facts.corners, &mut geometry)
        {
            let edges = [low.lon_e7, low.lat_e7, high.lon_e7, high.lat_e7].map(degrees);
            members.insert("bbox".into(), json!(edges));
        }
        let version = match self.options.version {
            GeoParquetVersion::V1 => "1.1.0",
            GeoParquetVersion::V2 => "2.0.0",
        };
        json!({
            "version": version,
            "primary_column": "geometry",
            "columns": {"geometry": geometry},
        })
        .to_string()
    }
}

/// Reads rows, and appends their geometries to `wkb`.
fn prepare<'r>(
    rows: impl ExactSizeIterator<Item = &'r [u8]>,
    wkb: &mut Vec<u8>,
) -> Result<Vec<Prepared<'r>>, FormatError> {
    let mut buffer = GeometryBuffer::default();
    let mut prepared = Vec::with_capacity(rows.len());
    for row in rows {
        let row = FeatureRow::parse(row)?;
        let (geometry, tags) = row.geometry(&mut buffer)?;
        let start = wkb.len();
        put_wkb(wkb, &geometry, None);
        let corners = Corners::of_geometry(&geometry);
        prepared.push(Prepared {
            row,
            tags,
            corners: corners.ok_or(FormatError::new("a geometry without points"))?,
            wkb: start..wkb.len(),
        });
    }
    Ok(prepared)
}

fn degrees(value_e7: i32) -> f64 {
    f64::from(value_e7) / DECIMICRO_PER_DEGREE as f64
}

/// The largest `f32` that is not above a coordinate.
fn below(value_e7: i32) -> f32 {
    let exact = degrees(value_e7);
    let rounded = exact as f32;
    if f64::from(rounded) > exact {
        rounded.next_down()
    } else {
        rounded
    }
}

/// The smallest `f32` that is not below a coordinate.
fn above(value_e7: i32) -> f32 {
    -below(-value_e7)
}

/// The compression of pages, in the terms of the library.
pub(super) fn compression(compression: PageCompression) -> Result<Compression> {
    Ok(match compression {
        PageCompression::None => Compression::UNCOMPRESSED,
        PageCompression::Zstd(level) => {
            Compression::ZSTD(ZstdLevel::try_new(level.into()).map_err(failed)?)
        }
    })
}

fn properties(options: &GeoParquetOptions) -> Result<WriterProperties> {
    let path = |names: &[&str]| ColumnPath::new(names.iter().map(ToString::to_string).collect());
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("pbfhogg version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(compression(options.compression)?)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_max_row_group_row_count(None)
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
    for names in [
        &["geometry"][..],
        &["tags", "key_value", "key"],
        &["tags", "key_value", "value"],
    ] {
        let none = EnabledStatistics::None;
        properties = properties.set_column_statistics_enabled(path(names), none);
    }
    Ok(properties.build())
}

/// The types of geometries, in the order of partitions.
pub(crate) const fn partition_name(number: u64) -> &'static str {
    match number {
        0 => GeometryType::Point.partition(),
        1 => GeometryType::LineString.partition(),
        _ => GeometryType::MultiPolygon.partition(),
    }
}
