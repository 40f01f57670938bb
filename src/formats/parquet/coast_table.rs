//! Parquet tables of the layers of a coast: lines, polygons, and problems.

use super::PageCompression;
use super::column_buffer::{put_table_rows, table_schema};
use super::facts::TableFacts;
use super::file::ParquetFile;
use super::geometry_type::GeometryType;
use super::schema::{TableForm, parquet_compression};
use crate::error::Result;
use crate::formats::features::{CoastColumn, CoastColumns, CoastRow};
use crate::io::{OpenOutput, StreamOutput};
use parquet::file::properties::WriterProperties;
use serde_json::json;

/// A row group ends when its geometries have at least this number of points.
const GROUP_POINTS: usize = 1 << 20;

/// A GeoParquet file that is being written.
pub(crate) struct CoastTable {
    columns: Vec<CoastColumn>,
    form: TableForm,
    file: ParquetFile,
    facts: TableFacts,
    /// The rows of the next row group, and the number of their points.
    rows: Vec<CoastRow>,
    points: usize,
}

impl CoastTable {
    /// Begins a table in an open output.
    pub(crate) fn create(columns: CoastColumns, output: OpenOutput) -> Result<Self> {
        let columns = columns.table_columns();
        let properties = WriterProperties::builder()
            .set_compression(parquet_compression(PageCompression::default())?)
            .set_dictionary_enabled(false);
        let form = TableForm::new("coast", table_schema(&columns)?, properties)?;
        let (schema, properties) = (form.schema.clone(), form.properties.clone());
        Ok(Self {
            columns,
            form,
            file: ParquetFile::create(StreamOutput::new(output), schema, properties)?,
            facts: TableFacts::default(),
            rows: Vec::new(),
            points: 0,
        })
    }

    /// Appends a row.
    pub(crate) fn add(&mut self, row: CoastRow) -> Result<()> {
        self.points += row.geometry.point_count();
        self.facts.add(&TableFacts {
            extent: row.geometry.view().extent(),
            types: [GeometryType::of(&row.geometry.view())].into(),
        });
        self.rows.push(row);
        if self.points < GROUP_POINTS {
            return Ok(());
        }
        self.end_group()
    }

    fn end_group(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        self.points = 0;
        if rows.is_empty() {
            return Ok(());
        }
        self.file.add(
            self.form
                .encode(|encoder| put_table_rows(encoder, &self.columns, rows.iter()))?,
        )
    }

    /// Completes the file, which gets its name when the returned output is committed.
    pub(crate) fn finish(mut self) -> Result<StreamOutput> {
        self.end_group()?;
        let metadata = json!({
            "version": "1.1.0",
            "primary_column": "geometry",
            "columns": {"geometry": self.facts.column_metadata()},
        });
        self.file.finish(Some(("geo", metadata.to_string())))
    }
}
