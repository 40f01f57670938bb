//! Tables of augmented diffs, which have a row with both states for each object.

use super::PageCompression;
use super::columns::{EncodedGroup, GroupEncoder, Values};
use super::facts::TableFacts;
use super::feature_values::{above, below};
use super::geometry_type::GeometryType;
use super::schema::{TableForm, compression, group, optional, optional_text_map, primitive};
use crate::error::Result;
use crate::formats::features::{ActionRow, OwnedGeometry, OwnedTags, put_wkb};
use bytes::Bytes;
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::data_type::ByteArray;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use serde_json::json;

/// A table of actions.
pub(crate) struct ActionTable {
    pub(crate) form: TableForm,
}

/// Facts about the old and about the new geometries of a table.
#[derive(Debug, Default)]
pub(crate) struct ActionFacts([TableFacts; 2]);

impl ActionFacts {
    /// Adds facts about a row.
    pub(crate) fn add(&mut self, row: &ActionRow) {
        for (facts, geometry) in self
            .0
            .iter_mut()
            .zip([&row.old_geometry, &row.new_geometry])
        {
            if let Some(geometry) = geometry.as_ref().map(OwnedGeometry::view) {
                facts.add(&TableFacts {
                    extent: geometry.extent(),
                    types: [GeometryType::of(&geometry)].into(),
                });
            }
        }
    }

    /// Returns the value of the key `geo` in the metadata of a file.
    pub(crate) fn metadata(&self) -> String {
        let [old, new] = self.0.each_ref().map(TableFacts::column);
        json!({
            "version": "1.1.0",
            "primary_column": "new_geometry",
            "columns": {"new_geometry": new, "old_geometry": old},
        })
        .to_string()
    }
}

impl ActionTable {
    pub(crate) fn new() -> Result<Self> {
        use PhysicalType::{BOOLEAN, BYTE_ARRAY, FLOAT, INT32, INT64};
        let required = Repetition::REQUIRED;
        let text = || Some(LogicalType::String);
        let time = LogicalType::timestamp(true, TimeUnit::MILLIS);
        let edges = ["xmin", "ymin", "xmax", "ymax"];
        let edges = edges.map(|name| primitive(name, FLOAT, required, None));
        let edges = edges.into_iter().collect::<Result<_>>()?;
        let fields = vec![
            primitive("action", BYTE_ARRAY, required, text())?,
            primitive("type", BYTE_ARRAY, required, text())?,
            primitive("id", INT64, required, None)?,
            primitive("indirect", BOOLEAN, required, None)?,
            optional("changeset", INT64, None)?,
            optional("timestamp", INT64, Some(time))?,
            optional("uid", INT32, None)?,
            optional("user", BYTE_ARRAY, text())?,
            optional("old_version", INT32, None)?,
            optional("new_version", INT32, None)?,
            optional_text_map("old_tags")?,
            optional_text_map("new_tags")?,
            group("bbox", Repetition::OPTIONAL, None, edges)?,
            optional("old_geometry", BYTE_ARRAY, None)?,
            optional("new_geometry", BYTE_ARRAY, None)?,
        ];
        let form = TableForm::new("actions", fields, properties()?)?;
        Ok(Self { form })
    }

    /// Encodes rows as a row group.
    pub(crate) fn encode(&self, rows: &[ActionRow]) -> Result<EncodedGroup> {
        /// The number of rows whose values are in memory as columns.
        const BATCH: usize = 4096;
        self.form
            .encode(|columns| rows.chunks(BATCH).try_for_each(|rows| put(columns, rows)))
    }
}

fn put(columns: &mut GroupEncoder<'_>, rows: &[ActionRow]) -> Result<()> {
    let name = |name: &'static str| ByteArray::from(Bytes::from_static(name.as_bytes()));
    columns.bytes(&Values::of(rows, |row, values| {
        values.values.push(name(row.action.name()));
    }))?;
    columns.bytes(&Values::of(rows, |row, values| {
        values.values.push(name(row.kind.name()));
    }))?;
    columns.int64(&Values::of(rows, |row, values| values.values.push(row.id)))?;
    columns.bool(&Values::of(rows, |row, values| {
        values.values.push(row.is_indirect)
    }))?;
    columns.int64(&Values::of(rows, |row, values| {
        values.push_optional(row.changeset)
    }))?;
    columns.int64(&Values::of(rows, |row, values| {
        values.push_optional(row.timestamp.map(|seconds| seconds.saturating_mul(1000)));
    }))?;
    columns.int32(&Values::of(rows, |row, values| {
        values.push_optional(row.uid)
    }))?;
    columns.bytes(&Values::of(rows, |row, values| {
        values.push_optional(row.user.as_deref().map(ByteArray::from));
    }))?;
    for version in [
        |row: &ActionRow| row.old_version,
        |row: &ActionRow| row.new_version,
    ] {
        columns.int32(&Values::of(rows, |row, values| {
            values.push_optional(version(row).map(|version| version as i32));
        }))?;
    }
    let tags: [fn(&ActionRow) -> Option<&OwnedTags>; 2] =
        [|row| row.old_tags.as_ref(), |row| row.new_tags.as_ref()];
    for tags in tags {
        for part in [
            |tag: &(String, String)| ByteArray::from(tag.0.as_str()),
            |tag: &(String, String)| ByteArray::from(tag.1.as_str()),
        ] {
            columns.bytes(&Values::of(rows, |row, values| {
                values.push_optional_list(tags(row).map(|tags| tags.iter().map(part)));
            }))?;
        }
    }
    put_geometries(columns, rows)
}

fn put_geometries(columns: &mut GroupEncoder<'_>, rows: &[ActionRow]) -> Result<()> {
    let extents: Vec<_> = rows.iter().map(ActionRow::extent).collect();
    for edge in 0..4 {
        columns.float(&Values::of(&extents, |extent, values| {
            values.push_optional(extent.map(|extent| match edge {
                0 => below(extent.low.lon_e7),
                1 => below(extent.low.lat_e7),
                2 => above(extent.high.lon_e7),
                _ => above(extent.high.lat_e7),
            }));
        }))?;
    }
    for geometry in [
        |row: &ActionRow| row.old_geometry.as_ref().map(wkb),
        |row: &ActionRow| row.new_geometry.as_ref().map(wkb),
    ] {
        columns.bytes(&Values::of(rows, |row, values| {
            values.push_optional(geometry(row));
        }))?;
    }
    Ok(())
}

fn wkb(geometry: &OwnedGeometry) -> ByteArray {
    let mut bytes = Vec::new();
    put_wkb(&mut bytes, &geometry.view(), None);
    ByteArray::from(bytes)
}

fn properties() -> Result<WriterPropertiesBuilder> {
    let mut properties =
        WriterProperties::builder().set_compression(compression(PageCompression::default())?);
    for name in ["id", "old_geometry", "new_geometry"] {
        let path = ColumnPath::new(vec![name.to_owned()]);
        properties = properties.set_column_dictionary_enabled(path, false);
    }
    for name in ["old_geometry", "new_geometry"] {
        let path = ColumnPath::new(vec![name.to_owned()]);
        properties = properties.set_column_statistics_enabled(path, EnabledStatistics::None);
    }
    Ok(properties)
}
