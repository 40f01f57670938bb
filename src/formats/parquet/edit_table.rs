//! Tables of changes by user or by changeset.

use super::PageCompression;
use super::columns::{GroupEncoder, Values};
use super::file::ParquetFile;
use super::schema::{TableForm, compression, optional, primitive};
use crate::error::Result;
use crate::formats::features::EditGroup;
use crate::io::StreamOutput;
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;

/// A number of a group, and the name of its column.
type CountColumn = (&'static str, fn(&EditGroup) -> u64);

const COUNTS: [CountColumn; 8] = [
    ("changesets", |group| group.changesets),
    ("changes", |group| group.changes),
    ("created", |group| group.created),
    ("modified", |group| group.modified),
    ("deleted", |group| group.deleted),
    ("nodes", |group| group.nodes),
    ("ways", |group| group.ways),
    ("relations", |group| group.relations),
];
const EDGES: [&str; 4] = ["min_lon", "min_lat", "max_lon", "max_lat"];

fn form() -> Result<TableForm> {
    use PhysicalType::{BYTE_ARRAY, DOUBLE, INT32, INT64};
    let time = || Some(LogicalType::timestamp(true, TimeUnit::MILLIS));
    let mut fields = vec![
        optional("user", BYTE_ARRAY, Some(LogicalType::String))?,
        optional("uid", INT32, None)?,
        optional("changeset", INT64, None)?,
    ];
    for (name, _) in COUNTS {
        fields.push(primitive(name, INT64, Repetition::REQUIRED, None)?);
    }
    fields.push(optional("first", INT64, time())?);
    fields.push(optional("last", INT64, time())?);
    for name in EDGES {
        fields.push(optional(name, DOUBLE, None)?);
    }
    let compression = compression(PageCompression::default())?;
    let properties = WriterProperties::builder().set_compression(compression);
    TableForm::new("groups", fields, properties)
}

/// Writes a table of groups. Returns its size in bytes.
pub(crate) fn write_edit_groups(groups: &[EditGroup], output: StreamOutput) -> Result<u64> {
    let form = form()?;
    let mut file = ParquetFile::create(output, form.schema.clone(), form.properties.clone())?;
    if !groups.is_empty() {
        file.add(form.encode(|columns| put(columns, groups))?)?;
    }
    file.finish(None)?.commit()
}

fn put(columns: &mut GroupEncoder<'_>, groups: &[EditGroup]) -> Result<()> {
    columns.bytes(&Values::of(groups, |group, values| {
        values.push_optional(group.user.as_deref().map(ByteArray::from));
    }))?;
    columns.int32(&Values::of(groups, |group, values| {
        values.push_optional(group.uid);
    }))?;
    columns.int64(&Values::of(groups, |group, values| {
        values.push_optional(group.changeset);
    }))?;
    for (_, count) in COUNTS {
        columns.int64(&Values::of(groups, |group, values| {
            values.values.push(count(group) as i64);
        }))?;
    }
    for time in [
        |group: &EditGroup| group.first,
        |group: &EditGroup| group.last,
    ] {
        columns.int64(&Values::of(groups, |group, values| {
            values.push_optional(time(group).map(|seconds| seconds.saturating_mul(1000)));
        }))?;
    }
    for edge in 0..EDGES.len() {
        columns.double(&Values::of(groups, |group, values| {
            values.push_optional(group.bbox.and_then(|bbox| bbox.get(edge).copied()));
        }))?;
    }
    Ok(())
}
