//! Tables of augmented diffs. Each object has a row with its states before and after the changes.

use super::PageCompression;
use super::column_buffer::{put_table_rows, table_schema};
use super::columns::EncodedGroup;
use super::facts::TableFacts;
use super::geometry_type::GeometryType;
use super::schema::{TableForm, parquet_compression};
use crate::error::Result;
use crate::formats::features::{ACTION_COLUMNS, ActionRow, ActionView, OwnedGeometry};
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
        let [old, new] = self.0.each_ref().map(TableFacts::column_metadata);
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
        let form = TableForm::new("actions", table_schema(&ACTION_COLUMNS)?, properties()?)?;
        Ok(Self { form })
    }

    /// Encodes rows as a row group.
    pub(crate) fn encode(&self, rows: &[ActionRow]) -> Result<EncodedGroup> {
        /// The number of rows that are converted to columns at a time.
        const BATCH: usize = 4096;
        self.form.encode(|encoder| {
            rows.chunks(BATCH).try_for_each(|rows| {
                put_table_rows(encoder, &ACTION_COLUMNS, rows.iter().map(ActionView))
            })
        })
    }
}

fn properties() -> Result<WriterPropertiesBuilder> {
    let mut properties = WriterProperties::builder()
        .set_compression(parquet_compression(PageCompression::default())?);
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
