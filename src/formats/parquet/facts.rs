//! Facts about the rows of a file, for its GeoParquet metadata.

use super::geometry_type::GeometryType;
use crate::geometry::Extent;
use crate::osm::DECIMICRO_PER_DEGREE;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The extent and the geometry types of the rows of a file, or of a part of a file.
#[derive(Debug, Default)]
pub(crate) struct TableFacts {
    pub(super) extent: Option<Extent>,
    pub(super) types: BTreeSet<GeometryType>,
}

impl TableFacts {
    /// Returns the entry of a geometry column in the metadata of GeoParquet.
    pub(super) fn column_metadata(&self) -> Value {
        let corner = |edge: &str| json!(["bbox", edge]);
        let types = self.types.iter().map(|of| of.name());
        let mut column = json!({
            "encoding": "WKB",
            "geometry_types": types.collect::<Vec<_>>(),
            "orientation": "counterclockwise",
            "edges": "planar",
            "covering": {"bbox": {
                "xmin": corner("xmin"), "ymin": corner("ymin"),
                "xmax": corner("xmax"), "ymax": corner("ymax"),
            }},
        });
        if let (Some(Extent { low, high }), Value::Object(members)) = (self.extent, &mut column) {
            let edges = [low.lon_e7, low.lat_e7, high.lon_e7, high.lat_e7].map(degrees);
            members.insert("bbox".into(), json!(edges));
        }
        column
    }

    /// Adds facts about a row.
    pub(super) fn add_row(&mut self, geometry_type: GeometryType, extent: Extent) {
        self.types.insert(geometry_type);
        self.extent = Some(self.extent.map_or(extent, |all| all.and(&extent)));
    }

    /// Adds facts about further rows.
    pub(crate) fn add(&mut self, other: &Self) {
        self.types.extend(&other.types);
        self.extent = match (self.extent, other.extent) {
            (Some(one), Some(other)) => Some(one.and(&other)),
            (one, other) => one.or(other),
        };
    }
}

/// Converts a coordinate to degrees.
pub(super) fn degrees(value_e7: i32) -> f64 {
    f64::from(value_e7) / DECIMICRO_PER_DEGREE as f64
}
