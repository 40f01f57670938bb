//! Sets over object ids.

mod id_set;

pub use id_set::IdSet;
