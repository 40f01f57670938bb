//! Sets of object ids, maps from ids to numbers and locations, and sorting and joining on disk.
//!
//! - [`IdSet`], [`IdMap`], [`RankSet`] and [`LocationStore`] divide ids into chunks of 65,536 neighbours, and keep the
//!   chunks in a table (`table`). A chunk is a sorted list or a bitmap (`chunk`), or has a palette of numbers
//!   (`values`).
//! - [`SharedIdSet`] is a set that several threads fill.
//! - `SortedIds` and `SparseIds` look for a few ids among the ids of many objects. `Remainders` is a small set that may
//!   also report ids that were not added.
//! - [`SetTable`] assigns numbers to sets of small numbers, such as the regions that keep an object.
//! - `DiskJoin` looks up the locations of more nodes than fit into memory.
//! - `RowSorter` sorts rows of bytes by a key, in bounded memory.

mod chunk;
mod disk_join;
mod id_batch;
mod id_map;
mod id_set;
mod id_sets;
mod location_chunk;
mod location_store;
mod node_batch;
mod rank_set;
mod row_sorter;
mod set_table;
mod shared_ids;
mod sorted_ids;
mod sparse_ids;
mod table;
mod values;

pub(crate) use disk_join::{DiskJoin, ListReader};
pub use id_batch::IdBatch;
pub use id_map::{IdMap, IdMapCursor};
pub use id_set::IdSet;
pub use id_sets::IdSets;
pub use location_store::{LocationStore, StoreForm};
pub use node_batch::{NodeBatch, Preparation};
pub use rank_set::{RankCursor, RankSet, RankSetBuilder};
#[cfg(feature = "parquet")]
pub(crate) use row_sorter::KeyRange;
pub(crate) use row_sorter::{KeyBits, RowBatch, RowLimits, RowSorter, SharedRows, SortedRows};
pub use set_table::{EMPTY_SET, SetAlgebra, SetNumber, SetTable};
pub use shared_ids::SharedIdSet;
pub(crate) use sorted_ids::SortedIds;
pub(crate) use sparse_ids::{Remainders, SparseIds};
