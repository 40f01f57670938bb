//! From a file to decoded blocks.
//!
//! [`PbfFile`] opens a file with one read, [`BlobPlan`] says what is in each of its blobs,
//! [`BlobReader`] fetches and decompresses one, [`parallel_classify_phase`] does so on every core,
//! and [`ElementReader`] is the front door for users of the library.

mod blob_reader;
mod direct;
mod element_reader;
mod file;
mod file_toc;
mod header_walker;
mod input;
mod phase;
#[cfg(test)]
mod phase_tests;
mod plan;
mod threads;

pub use blob_reader::BlobReader;
pub(crate) use blob_reader::{Glanced, complete};
pub use element_reader::ElementReader;
pub(crate) use file::binary_kind;
pub use file::PbfFile;
pub use header_walker::{FrameHead, HeaderWalker};
pub use input::Input;
pub use phase::parallel_classify_phase;
pub use plan::{BlobPlan, IndexKind, PlanNeeds};
