//! Points, rings and polygons, their validity, and an index that finds which of many regions
//! contain a point.

mod area_index;
mod check;
mod degrees;
mod density;
mod edge;
mod extent;
mod nesting;
mod point_list;
mod quadtree;
mod quadtree_build;
mod shape;
#[cfg(test)]
mod tests;

pub use area_index::{AreaIndex, Cover, Locator};
pub use degrees::{BoxRegion, CornerOrder, bbox_of_degrees, parse_bbox, parse_box, parse_corners};
pub(crate) use degrees::{
    at_vertex, for_message, point_of_degrees, point_of_e7, point_of_text, ring,
};
pub use density::CellCounts;
pub(crate) use density::{Density, FINEST_LEVEL};
pub(crate) use edge::{Edge, EdgeRelation, HalfUnitPoint, doubled_area};
pub use extent::Extent;
pub(crate) use nesting::with_holes;
pub(crate) use point_list::{ORIGIN, put_points, read_points};
pub use shape::{Point, Polygon, Ring, Shape, ShapeError};
