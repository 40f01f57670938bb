//! Regions of the earth: where they come from, and which of many holds a point or a box.

mod area_index;
mod assemble;
mod check;
mod config;
mod degrees;
mod edge;
mod geojson;
mod json;
mod nesting;
mod osm_file;
mod osm_objects;
mod poly;
mod quadtree;
mod quadtree_build;
mod read;
mod shape;
#[cfg(test)]
mod tests;

pub use area_index::{AreaIndex, Cover, Locator};
pub use config::{Config, ConfigExtract, read_config};
pub use degrees::{bbox_of_degrees, parse_bbox};
pub use read::{ShapeFileKind, read_shape};
pub use shape::{Point, Polygon, Ring, Shape, ShapeError};
