//! Blocks of objects (PrimitiveBlock), and the forms in which their objects are read.
//!
//! - `outline` splits a block into string table, units and groups. `parsed` has `Block`, which checks the messages of
//!   the groups and walks over them.
//! - `messages` splits Node, Way, Relation and Info messages into fields, `dense` splits DenseNodes messages into
//!   columns, and `delta` reads delta-coded columns.
//! - `element` has objects as views with strings, for users of the library; `dense_iter` has the views of dense nodes.
//!   `object` has objects that do not depend on a block. `raw_element` has objects with the units and string ids of
//!   their block, for merges.
//! - Walks that decode a part of each object: `walk` (keys, tags, references, metadata), `node_locations`,
//!   `stored_ways`. `node_versions` and `prefix` read the beginning of a block.
//! - `contents` checks everything in a block. `string_faults` finds strings that are not UTF-8 or not allowed in XML.
//!   `repeated_keys` finds tags that repeat a key, and tags without a key. `oddities` finds objects that other programs
//!   refuse. `limits` checks the sizes of objects. `salvage` reads the undamaged objects of a damaged block.
//! - `list` has lists that are borrowed or owned. `row_info` encodes metadata for rows that are sorted on disk.

pub(super) mod contents;
pub(super) mod delta;
pub(super) mod dense;
pub(super) mod dense_iter;
pub(super) mod element;
pub(super) mod limits;
pub(super) mod list;
pub(super) mod messages;
pub(super) mod node_locations;
pub(super) mod node_versions;
pub(super) mod object;
pub(super) mod oddities;
pub(super) mod outline;
pub(super) mod parsed;
pub(super) mod prefix;
pub(super) mod raw_element;
pub(super) mod repeated_keys;
pub(super) mod row_info;
pub(super) mod salvage;
#[cfg(test)]
mod samples;
pub(super) mod stored_ways;
pub(super) mod string_faults;
pub(super) mod walk;
