//! Sets over object ids.

mod chunk;
mod id_set;

pub use id_set::IdSet;
