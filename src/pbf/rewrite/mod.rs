//! Rewrites encoded blocks. Unchanged parts are copied byte for byte.
//!
//! `edit` removes, replaces and inserts objects as a `script` says, `ids` replaces ids, `locations` writes locations
//! into ways, `metadata` removes attributes, and `tags` replaces tags. `message` replaces fields of a message, and
//! `growing_table` appends strings to a string table.

mod edit;
mod growing_table;
mod ids;
mod locations;
mod message;
mod metadata;
mod script;
mod tags;

pub(crate) use edit::{SpliceOptions, put_kept_block, put_kept_messages, splice_block};
pub(crate) use ids::{BlockWayIds, NewIds, patch_ids};
pub(crate) use locations::{MovedWays, WayNodeLocations, WayNodes, locate_ways};
pub use metadata::{InfoFields, clean_block};
pub(crate) use script::{EditOp, EditScript};
pub(crate) use tags::NewTags;
