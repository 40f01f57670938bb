//! Sets over object ids, and maps from them.

mod chunk;
mod id_map;
mod id_set;
mod id_sets;
mod rank_set;
mod set_table;
mod table;
mod values;

pub use id_map::{IdMap, IdMapWalk};
pub use id_set::IdSet;
pub use id_sets::IdSets;
pub use rank_set::{RankSet, RankWalk};
pub use set_table::{EMPTY_SET, SetAlgebra, SetNumber, SetTable};
