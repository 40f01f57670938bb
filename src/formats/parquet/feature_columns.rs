//! The columns of a table of features.

use super::column_buffer::ValueType;
use super::row::FeatureRow;
use super::schema::primitive_type;
use super::{DerivedColumns, GeoParquetOptions, GeoParquetVersion, ThemeSet};
use crate::error::Result;
use crate::formats::features::{Geometry, centroid};
use crate::formats::table::{ColumnGetter, RowType, TableColumn};
use crate::geometry::Extent;
use ColumnGetter::{Bbox, Double, Int32, Int64, Name, Text, Time};
use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::schema::types::TypePtr;
use std::cell::OnceCell;

/// The reference system of coordinates as PROJJSON: longitude and latitude in WGS 84. This system is the default of
/// GeoParquet, but DuckDB shows the system in the type of a column only if the column names it.
const CRS84: &str = include_str!("crs84.json");

/// A feature that is read from a row.
pub(super) struct ReadFeature<'a> {
    pub row: FeatureRow<'a>,
    pub geometry: Geometry<'a>,
    pub extent: Extent,
    pub centroid: OnceCell<[f64; 2]>,
}

impl ReadFeature<'_> {
    /// Returns the longitude and the latitude of the centroid.
    fn centroid(&self) -> [f64; 2] {
        *self.centroid.get_or_init(|| centroid(&self.geometry))
    }

    fn user(&self) -> Option<&str> {
        std::str::from_utf8(self.row.info.user?).ok()
    }
}

/// The rows of a table of features.
#[derive(Clone, Copy)]
pub(super) struct ReadFeatures;

impl RowType for ReadFeatures {
    type Row<'r> = ReadFeature<'r>;
}

type KnownColumn = TableColumn<ReadFeatures>;

const OBJECT: [KnownColumn; 2] = [
    KnownColumn::required("osm_type", Name(|feature| feature.row.kind.name())),
    KnownColumn::required("osm_id", Int64(|feature| Some(feature.row.id))),
];
const METADATA: [KnownColumn; 5] = [
    KnownColumn::optional(
        "version",
        Int32(|feature| Some(feature.row.info.version? as i32)),
    ),
    KnownColumn::optional("timestamp", Time(|feature| feature.row.info.timestamp)),
    KnownColumn::optional("changeset", Int64(|feature| feature.row.info.changeset)),
    KnownColumn::optional("uid", Int32(|feature| feature.row.info.uid)),
    KnownColumn::optional("user", Text(|feature| feature.user())),
];
const AREA: [KnownColumn; 1] = [KnownColumn::optional(
    "area_m2",
    Double(|feature| feature.geometry.area_m2()),
)];
const LENGTH: [KnownColumn; 1] = [KnownColumn::optional(
    "length_m",
    Double(|feature| feature.geometry.length_m()),
)];
const CENTROID: [KnownColumn; 2] = [
    KnownColumn::optional(
        "centroid_lon",
        Double(|feature| Some(feature.centroid()[0])),
    ),
    KnownColumn::optional(
        "centroid_lat",
        Double(|feature| Some(feature.centroid()[1])),
    ),
];
const BBOX: KnownColumn =
    KnownColumn::required("bbox", Bbox(|feature| Some(feature.extent.edges())));

/// A column of a table of features.
pub(super) struct FeatureColumn {
    pub name: String,
    pub value_type: ValueType,
    /// Whether a feature may lack a value.
    pub is_nullable: bool,
    pub value: FeatureValue,
}

/// The part of a feature from which a column gets its values.
#[derive(Clone, Copy)]
pub(super) enum FeatureValue {
    Known(KnownColumn),
    Tags,
    /// The value of the tag whose key is the name of the column.
    Tag,
    /// The value of the theme column with this index.
    Theme(usize),
    /// The names by language, from tags such as `name:de`.
    Names,
    /// The code of the country.
    Country,
    /// The H3 cell of this resolution.
    Cell(u8),
    Geometry,
}

impl From<KnownColumn> for FeatureColumn {
    fn from(known: KnownColumn) -> Self {
        Self {
            name: known.name.to_owned(),
            value_type: ValueType::of(&known.getter),
            is_nullable: known.is_nullable,
            value: FeatureValue::Known(known),
        }
    }
}

impl FeatureColumn {
    fn required(name: &str, value_type: ValueType, value: FeatureValue) -> Self {
        Self {
            name: name.to_owned(),
            value_type,
            is_nullable: false,
            value,
        }
    }

    fn optional(name: &str, value_type: ValueType, value: FeatureValue) -> Self {
        Self {
            is_nullable: true,
            ..Self::required(name, value_type, value)
        }
    }

    /// Returns the type of the column in a schema.
    pub(super) fn schema_type(&self, version: GeoParquetVersion) -> Result<TypePtr> {
        if self.value_type == ValueType::Geometry && version == GeoParquetVersion::V2 {
            let logical = LogicalType::geometry(Some(CRS84.trim().to_owned()));
            let (physical, required) = (PhysicalType::BYTE_ARRAY, Repetition::REQUIRED);
            return primitive_type(&self.name, physical, required, Some(logical));
        }
        self.value_type.schema_type(&self.name, self.is_nullable)
    }

    /// Whether the name of the column is given by the user.
    pub(super) const fn has_user_defined_name(&self) -> bool {
        matches!(self.value, FeatureValue::Tag | FeatureValue::Theme(_))
    }
}

/// Returns the columns of a table, in their order.
pub(super) fn feature_columns(
    options: &GeoParquetOptions,
    themes: &ThemeSet,
) -> Vec<FeatureColumn> {
    let mut columns: Vec<FeatureColumn> = OBJECT.map(FeatureColumn::from).into();
    if options.has_metadata {
        columns.extend(METADATA.map(FeatureColumn::from));
    }
    columns.push(FeatureColumn::required(
        "tags",
        ValueType::Map,
        FeatureValue::Tags,
    ));
    let keys = options.tag_columns.iter();
    columns
        .extend(keys.map(|key| FeatureColumn::optional(key, ValueType::Text, FeatureValue::Tag)));
    for (index, column) in themes.columns().iter().enumerate() {
        let (name, value) = (&column.name, FeatureValue::Theme(index));
        columns.push(match column.column_type.value_type() {
            ValueType::IntList => FeatureColumn::required(name, ValueType::IntList, value),
            value_type => FeatureColumn::optional(name, value_type, value),
        });
    }
    put_derived_columns(&mut columns, options.derived);
    columns.push(BBOX.into());
    let geometry = FeatureValue::Geometry;
    columns.push(FeatureColumn::required(
        "geometry",
        ValueType::Geometry,
        geometry,
    ));
    columns
}

/// Adds the columns that are computed from the geometry or the tags.
fn put_derived_columns(columns: &mut Vec<FeatureColumn>, wanted: DerivedColumns) {
    if wanted.names {
        columns.push(FeatureColumn::required(
            "names",
            ValueType::Map,
            FeatureValue::Names,
        ));
    }
    for (is_wanted, known) in [
        (wanted.area, &AREA[..]),
        (wanted.length, &LENGTH),
        (wanted.centroid, &CENTROID),
    ] {
        let known = known.iter().filter(|_| is_wanted);
        columns.extend(known.copied().map(FeatureColumn::from));
    }
    let text = |name: &str, value| FeatureColumn::optional(name, ValueType::Text, value);
    if wanted.country {
        columns.push(text("country", FeatureValue::Country));
    }
    let cells = (0..16).filter(|resolution| wanted.h3 >> resolution & 1 == 1);
    columns.extend(
        cells.map(|resolution| text(&format!("h3_{resolution}"), FeatureValue::Cell(resolution))),
    );
}
