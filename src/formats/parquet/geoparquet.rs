//! Tables of features in GeoParquet.

use super::columns::{EncodedGroup, GroupEncoder};
use super::facts::TableFacts;
use super::feature_values::{FeatureValues, degrees};
use super::row::GeometryType;
use super::{GeoParquetOptions, GeoParquetVersion, PageCompression, failed};
use crate::error::{Error, Result};
use crate::geometry::Extent;
use crate::pbf::InfoFields;
use bytes::Bytes;
use parquet::basic::{
    Compression, LogicalType, Repetition, TimeUnit, Type as PhysicalType, ZstdLevel,
};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterPropertiesPtr,
};
use parquet::schema::types::{ColumnPath, SchemaDescriptor, Type, TypePtr};
use serde_json::{Value, json};
use std::sync::Arc;

/// The maximum number of rows in a page.
const PAGE_ROWS: usize = 20_000;

/// The schema and the encoding of a table.
pub(crate) struct TableForm {
    pub(crate) schema: TypePtr,
    pub(crate) properties: WriterPropertiesPtr,
    description: SchemaDescriptor,
}

impl TableForm {
    pub(super) fn new(
        name: &str,
        columns: Vec<TypePtr>,
        properties: WriterPropertiesBuilder,
    ) -> Result<Self> {
        let schema = Type::group_type_builder(name).with_fields(columns).build();
        let schema = Arc::new(schema.map_err(failed)?);
        let author = concat!("pbfhogg version ", env!("CARGO_PKG_VERSION"));
        let properties = properties
            .set_created_by(author.to_owned())
            .set_max_row_group_row_count(None);
        Ok(Self {
            description: SchemaDescriptor::new(schema.clone()),
            schema,
            properties: Arc::new(properties.build()),
        })
    }

    /// Encodes a row group. `put` writes its values.
    pub(super) fn encode(
        &self,
        put: impl FnOnce(&mut GroupEncoder<'_>) -> Result<()>,
    ) -> Result<EncodedGroup> {
        GroupEncoder::encode(&self.description, &self.properties, put)
    }
}

/// A table of features.
pub(crate) struct FeatureTable {
    pub(crate) form: TableForm,
    options: GeoParquetOptions,
    info: InfoFields,
}

/// A row group of features, and facts for the metadata of the file.
pub(crate) struct FeatureGroup {
    pub(crate) group: EncodedGroup,
    pub(crate) facts: TableFacts,
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

/// The column `tags`, which is a map from keys to values.
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
    /// Creates a table with the given options. `info` has the metadata fields that occur in the objects.
    pub(crate) fn new(options: &GeoParquetOptions, info: InfoFields) -> Result<Self> {
        use PhysicalType::{BYTE_ARRAY, FLOAT, INT32, INT64};
        let info = if options.has_metadata {
            info
        } else {
            InfoFields::default()
        };
        let (required, optional) = (Repetition::REQUIRED, Repetition::OPTIONAL);
        let text = Some(LogicalType::String);
        let time = LogicalType::timestamp(true, TimeUnit::MILLIS);
        let mut fields = vec![
            primitive("osm_type", BYTE_ARRAY, required, text.clone())?,
            primitive("osm_id", INT64, required, None)?,
        ];
        for (column, name, physical, logical) in [
            (InfoFields::VERSION, "version", INT32, None),
            (InfoFields::TIMESTAMP, "timestamp", INT64, Some(time)),
            (InfoFields::CHANGESET, "changeset", INT64, None),
            (InfoFields::UID, "uid", INT32, None),
            (InfoFields::USER, "user", BYTE_ARRAY, text.clone()),
        ] {
            if info.contains(column) {
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
        Ok(Self {
            form: TableForm::new("features", fields, properties(options)?)?,
            options: options.clone(),
            info,
        })
    }

    /// Encodes rows as a row group. The rows must be slices of `bytes`.
    pub(crate) fn encode<'r>(
        &self,
        bytes: &'r Bytes,
        rows: impl Iterator<Item = &'r [u8]>,
    ) -> Result<FeatureGroup> {
        let mut rows = rows.peekable();
        let mut facts = TableFacts::default();
        let group = self.form.encode(|columns| {
            let mut values = FeatureValues::new(&self.options.tag_columns);
            while rows.peek().is_some() {
                let read = values.read(bytes, &mut rows);
                read.map_err(|error| Error::Internal(error.to_string()))?;
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
        if self.info.contains(InfoFields::VERSION) {
            columns.int32(&values.versions)?;
        }
        if self.info.contains(InfoFields::TIMESTAMP) {
            columns.int64(&values.timestamps)?;
        }
        if self.info.contains(InfoFields::CHANGESET) {
            columns.int64(&values.changesets)?;
        }
        if self.info.contains(InfoFields::UID) {
            columns.int32(&values.uids)?;
        }
        if self.info.contains(InfoFields::USER) {
            columns.bytes(&values.users)?;
        }
        columns.bytes(&values.keys)?;
        columns.bytes(&values.tags)?;
        for column in &values.tag_columns {
            columns.bytes(column)?;
        }
        for edges in &values.edges {
            columns.float(edges)?;
        }
        columns.bytes(&values.geometries)
    }

    /// The value of the key `geo` in the metadata of a file.
    pub(crate) fn metadata(&self, facts: &TableFacts) -> String {
        let corner = |edge: &str| json!(["bbox", edge]);
        let types = facts.types.iter().map(|of| of.name());
        let mut geometry = json!({
            "encoding": "WKB",
            "geometry_types": types.collect::<Vec<_>>(),
            "orientation": "counterclockwise",
            "edges": "planar",
            "covering": {"bbox": {
                "xmin": corner("xmin"), "ymin": corner("ymin"),
                "xmax": corner("xmax"), "ymax": corner("ymax"),
            }},
        });
        if let (Some(Extent { low, high }), Value::Object(members)) = (facts.extent, &mut geometry)
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

/// Converts the compression of pages to the type of the Parquet library.
pub(super) fn compression(compression: PageCompression) -> Result<Compression> {
    Ok(match compression {
        PageCompression::None => Compression::UNCOMPRESSED,
        PageCompression::Zstd(level) => {
            Compression::ZSTD(ZstdLevel::try_new(level.into()).map_err(failed)?)
        }
    })
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
    for names in [
        &["geometry"][..],
        &["tags", "key_value", "key"],
        &["tags", "key_value", "value"],
    ] {
        let none = EnabledStatistics::None;
        properties = properties.set_column_statistics_enabled(path(names), none);
    }
    Ok(properties)
}

/// The name of the partition with the given number. Partitions are numbered in the order of [`GeometryType`].
pub(crate) const fn partition_name(number: u64) -> &'static str {
    match number {
        0 => GeometryType::Point.partition(),
        1 => GeometryType::LineString.partition(),
        _ => GeometryType::MultiPolygon.partition(),
    }
}
