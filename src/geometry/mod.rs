//! Points, rings and polygons, their validity, and an index that finds which of many regions
//! contain a point.

mod antimeridian;
mod area_index;
mod check;
mod clip;
mod degrees;
#[cfg(feature = "pages")]
mod density;
mod edge;
mod extent;
#[cfg(feature = "parquet")]
mod geodesic;
mod intersection;
mod location_test;
mod nesting;
mod point_list;
mod projection;
mod quadtree;
mod quadtree_build;
mod region;
mod shape;
#[cfg(test)]
mod tests;
mod tiles;

pub use antimeridian::Antimeridian;
pub(crate) use antimeridian::{
    MapTurn, antimeridian_ends, cut_line_at_antimeridian, goes_around_pole,
    is_edge_across_antimeridian, is_on_antimeridian, wrapped_longitude_delta,
};
pub use area_index::{AreaIndex, Cover, Locator};
pub(crate) use clip::Clip;
pub use degrees::{BoxRegion, CornerOrder, bbox_of_degrees, parse_bbox, parse_box, parse_corners};
pub(crate) use degrees::{
    parse_lon_lat, point_of_degrees, point_of_e7, ring, shorten_for_message, vertex_message,
};
#[cfg(feature = "pages")]
pub(crate) use density::{CellCounts, Density};
pub(crate) use edge::{Edge, EdgeRelation, Enclosure, HalfUnitPoint, doubled_area};
pub use extent::Extent;
#[cfg(feature = "parquet")]
pub(crate) use geodesic::{length_m, ring_area_m2};
pub(crate) use intersection::{Rings, difference, intersection, polygons_with_winding_sign};
pub(crate) use location_test::LocationTest;
pub(crate) use nesting::nest_holes;
pub(crate) use point_list::{ORIGIN, put_points, read_points};
pub use projection::Projection;
pub(crate) use region::Region;
pub use shape::{Point, Polygon, Ring, Shape, ShapeError};
pub(crate) use tiles::{MAX_ZOOM, TileSet, box_of_tile, tile_of};
