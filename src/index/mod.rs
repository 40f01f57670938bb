//! Sets over object ids.

mod chunk;
mod id_set;
mod id_sets;

pub use id_set::IdSet;
pub use id_sets::IdSets;
