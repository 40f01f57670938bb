//! The index for reverse geocoding: the addresses, streets and areas of a file, by place.
//!
//! `write` builds an index from sorted rows, and [`GeocodeIndex`] answers queries. An index is a directory with a
//! manifest and a file of sections with checksums (`container`). Objects are in layers. Each layer is a packed Hilbert
//! R-tree (`packed_rtree`) whose leaves hold the objects (`leaf`). The polygons of areas are cut into bands of latitude
//! (`area`).

mod abbreviations;
mod address_search;
mod address_tags;
mod answer;
mod area;
mod child_queue;
mod city;
mod compatibility;
mod compose;
mod container;
mod countries;
mod folding;
mod house_numbers;
mod index;
mod interpolation;
mod item;
mod json;
mod languages;
mod layout;
mod leaf;
mod leaf_encoder;
mod letters;
mod lines;
mod local_projection;
mod map;
mod named;
mod namesakes;
mod options;
mod pack;
mod packed_rtree;
mod place_names;
mod places;
mod query;
mod row_parts;
mod sides;
mod write;

pub(crate) use address_tags::may_be_house_number;
pub use answer::{
    Address, Answer, AnsweringObject, NamedArea, NearAddress, NearObject, NearPlace, NearRoad,
    NearStreet, Nearest, Sources,
};
pub(crate) use container::is_container;
pub(crate) use folding::{entries, is_same_name};
pub(crate) use house_numbers::format_node_list;
pub(crate) use index::MANIFEST;
pub use index::{GeocodeIndex, Manifest};
pub(crate) use item::{
    CENTRE, IndexedItem, ItemShape, ItemTags, LABEL, Lines, NUMBERS, STREET, nonblank_tag, tag,
};
pub(crate) use layout::{
    KEY as ROW_KEY, Layer, key_of, shifted_across_antimeridian, unwrap_longitudes,
};
pub use map::{MapLayer, MapPiece, MapWalk};
pub use options::QueryOptions;
pub(crate) use write::write_index;
