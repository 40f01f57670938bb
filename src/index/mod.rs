//! Sets of object ids, maps from ids to numbers and locations, and a join on disk.

mod chunk;
mod disk_join;
mod id_map;
mod id_set;
mod id_sets;
mod location_store;
mod rank_set;
mod row_sorter;
mod set_table;
mod table;
mod values;

pub(crate) use disk_join::{DiskJoin, ListReader};
pub use id_map::{IdMap, IdMapCursor};
pub use id_set::IdSet;
pub use id_sets::IdSets;
pub use location_store::{LocationStore, NodeBatch, StoreForm};
pub use rank_set::{RankCursor, RankSet};
#[cfg(feature = "parquet")]
pub(crate) use row_sorter::KeyRange;
pub(crate) use row_sorter::{KeyBits, RowBatch, RowLimits, RowSorter, SharedRows, SortedRows};
pub use set_table::{EMPTY_SET, SetAlgebra, SetNumber, SetTable};
