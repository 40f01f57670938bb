//! Tables of changes by user or by changeset.

use super::PageCompression;
use super::column_buffer::{put_table_rows, table_schema};
use super::file::ParquetFile;
use super::schema::{TableForm, parquet_compression};
use crate::error::Result;
use crate::formats::features::{EDIT_GROUP_COLUMNS, EditGroup};
use crate::io::StreamOutput;
use parquet::file::properties::WriterProperties;

/// Writes a table with a row for each group of changes. Returns the size of the file in bytes.
pub(crate) fn write_edit_groups(groups: &[EditGroup], output: StreamOutput) -> Result<u64> {
    let compression = parquet_compression(PageCompression::default())?;
    let properties = WriterProperties::builder().set_compression(compression);
    let form = TableForm::new("groups", table_schema(&EDIT_GROUP_COLUMNS)?, properties)?;
    let mut file = ParquetFile::create(output, form.schema.clone(), form.properties.clone())?;
    if !groups.is_empty() {
        file.add(
            form.encode(|encoder| put_table_rows(encoder, &EDIT_GROUP_COLUMNS, groups.iter()))?,
        )?;
    }
    file.finish(None)?.commit()
}
