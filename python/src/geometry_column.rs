//! Columns of geometries.

use arrow_array::ArrayRef;
use arrow_array::builder::BinaryBuilder;
use arrow_schema::{DataType, Field};
use std::collections::HashMap;
use std::sync::Arc;

/// Returns the field of a column of geometries: WKB in longitude and latitude.
pub fn geometry_field(name: &str, is_nullable: bool) -> Field {
    let crs = r#"{"crs":"OGC:CRS84","crs_type":"authority_code"}"#;
    let metadata = [
        ("ARROW:extension:name", "geoarrow.wkb"),
        ("ARROW:extension:metadata", crs),
    ];
    let owned = metadata.map(|(key, value)| (key.to_owned(), value.to_owned()));
    Field::new(name, DataType::Binary, is_nullable).with_metadata(HashMap::from(owned))
}

/// A column of geometries.
#[derive(Default)]
pub struct GeometryColumn {
    values: BinaryBuilder,
    /// The bytes of the current geometry.
    wkb: Vec<u8>,
}

impl GeometryColumn {
    /// Adds a geometry. `put` appends its WKB, and returns whether there is one. Returns its size in bytes.
    pub fn push(&mut self, put: impl FnOnce(&mut Vec<u8>) -> bool) -> usize {
        self.wkb.clear();
        let is_there = put(&mut self.wkb);
        self.values
            .append_option(is_there.then_some(self.wkb.as_slice()));
        self.wkb.len()
    }

    /// Ends the column, and returns it as an array.
    pub fn finish(&mut self) -> ArrayRef {
        Arc::new(self.values.finish())
    }
}
