//! The schema of a table, and the types of its columns.

use super::columns::{EncodedGroup, GroupEncoder};
use super::{PageCompression, parquet_error};
use crate::error::Result;
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::file::properties::{WriterPropertiesBuilder, WriterPropertiesPtr};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};
use std::sync::Arc;

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
        let schema = Arc::new(schema.map_err(parquet_error)?);
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

/// Returns the type of a column that is not a group of fields.
pub(super) fn primitive_type(
    name: &str,
    physical: PhysicalType,
    repetition: Repetition,
    logical: Option<LogicalType>,
) -> Result<TypePtr> {
    let column = Type::primitive_type_builder(name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build();
    column.map(Arc::new).map_err(parquet_error)
}

/// Returns the type of a group of fields.
pub(super) fn group_type(
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
    group.map(Arc::new).map_err(parquet_error)
}

/// Returns the type of a column of lists of 64-bit numbers.
pub(super) fn int_list_type(name: &str, repetition: Repetition) -> Result<TypePtr> {
    let element = primitive_type("element", PhysicalType::INT64, Repetition::REQUIRED, None)?;
    let list = group_type("list", Repetition::REPEATED, None, vec![element])?;
    group_type(name, repetition, Some(LogicalType::List), vec![list])
}

/// Returns the type of a column of maps from strings to strings.
pub(super) fn text_map_type(name: &str, repetition: Repetition) -> Result<TypePtr> {
    let text = |name| {
        let (required, logical) = (Repetition::REQUIRED, Some(LogicalType::String));
        primitive_type(name, PhysicalType::BYTE_ARRAY, required, logical)
    };
    let fields = vec![text("key")?, text("value")?];
    let entry = group_type("key_value", Repetition::REPEATED, None, fields)?;
    group_type(name, repetition, Some(LogicalType::Map), vec![entry])
}

/// Returns the type of a column of boxes.
pub(super) fn bbox_type(name: &str, repetition: Repetition) -> Result<TypePtr> {
    let edges = ["xmin", "ymin", "xmax", "ymax"];
    let edges =
        edges.map(|edge| primitive_type(edge, PhysicalType::FLOAT, Repetition::REQUIRED, None));
    let edges = edges.into_iter().collect::<Result<_>>()?;
    group_type(name, repetition, None, edges)
}

/// Converts the compression of pages to the type of the Parquet library.
pub(super) fn parquet_compression(compression: PageCompression) -> Result<Compression> {
    Ok(match compression {
        PageCompression::None => Compression::UNCOMPRESSED,
        PageCompression::Zstd(level) => {
            Compression::ZSTD(ZstdLevel::try_new(level.into()).map_err(parquet_error)?)
        }
    })
}
