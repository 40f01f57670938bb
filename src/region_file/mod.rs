//! Reads files that describe regions (GeoJSON, `.poly`, OSM data, answers of Overpass servers), and the config file of
//! an extract.

mod area_of_file;
mod config;
mod geojson;
mod json;
mod on_map;
mod osm_file;
mod osm_objects;
mod overpass;
mod poly;
mod read;

pub use area_of_file::{AreaOfFile, read_area};
#[cfg(feature = "cli")]
pub(crate) use config::read_config_with_stand_in;
pub use config::{ConfigExtract, ExtractConfig, read_config, read_config_for};
pub(crate) use poly::to_text as poly_of;
pub use read::{ShapeFileKind, read_shape, read_shape_as};
