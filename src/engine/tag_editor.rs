//! Changes the tags of objects by rules: in blocks, which are edited in their encoded form, and in change sets.

mod blocks;
mod counts;
mod edited_tags;
mod editor;
mod table;

pub(crate) use counts::EditCounts;
pub use counts::RuleCount;
pub(crate) use editor::{EditStep, TagEditor};
pub use table::TagTable;
