//! Writes groups of changes: one group for each user, or one for each changeset.

use crate::error::Result;
use crate::formats::TextOutput;
use crate::formats::csv::CsvText;
use crate::formats::features::{EDIT_GROUP_COLUMNS, EditGroup, put_table_header, put_table_row};
#[cfg(feature = "parquet")]
use crate::formats::parquet::write_edit_groups;
use crate::io::OutputTarget;
#[cfg(feature = "parquet")]
use crate::io::{OpenOutput, StreamOutput};
use crate::runtime::Context;

/// The output format of groups of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EditGroupForm {
    /// Comma-separated values (RFC 4180).
    Csv,
    /// A collection of GeoJSON features, whose geometries are boxes.
    GeoJson,
    /// A sequence of GeoJSON features (RFC 8142), whose geometries are boxes.
    GeoJsonSeq,
    /// A Parquet table.
    #[cfg(feature = "parquet")]
    Parquet,
}

/// Writes groups of changes.
///
/// # Errors
///
/// The output exists and may not be overwritten, or it cannot be written.
pub fn write_groups(
    groups: &[EditGroup],
    form: EditGroupForm,
    target: OutputTarget,
    ctx: &Context,
) -> Result<()> {
    #[cfg(feature = "parquet")]
    if form == EditGroupForm::Parquet {
        let output = StreamOutput::new(OpenOutput::open(target, ctx)?);
        ctx.stats
            .bytes_written
            .add(write_edit_groups(groups, output)?);
        return Ok(());
    }
    let mut output = TextOutput::create(target, ctx)?;
    output.write(&groups_text(groups, form))?;
    ctx.stats.bytes_written.add(output.finish()?);
    Ok(())
}

fn groups_text(groups: &[EditGroup], form: EditGroupForm) -> String {
    let features = || groups.iter().map(|group| group.to_geojson().to_string());
    match form {
        EditGroupForm::GeoJson => {
            let features = features().collect::<Vec<_>>().join(",\n");
            format!("{{\"type\":\"FeatureCollection\",\"features\":[\n{features}\n]}}\n")
        }
        EditGroupForm::GeoJsonSeq => features()
            .map(|feature| format!("\u{1e}{feature}\n"))
            .collect(),
        _ => {
            let mut csv = CsvText::new();
            put_table_header(&mut csv, &EDIT_GROUP_COLUMNS);
            for group in groups {
                put_table_row(&mut csv, &EDIT_GROUP_COLUMNS, &group);
            }
            csv.take()
        }
    }
}
