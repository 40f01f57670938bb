//! The parts that commands are made of: passes over blobs, selections of objects, references, and the sink of results.

pub(crate) mod block_packer;
pub(crate) mod headers;
pub(crate) mod held;
pub(crate) mod input;
pub(crate) mod keep;
pub(crate) mod references;
pub(crate) mod rewrite;
pub(crate) mod scan;
pub(crate) mod shards;
pub(crate) mod sort;
pub(crate) mod tag_match;

pub(crate) use block_packer::{Encoders, Reblocker};
pub use headers::{HeaderOption, HeaderOptions};
pub use keep::Kept;
pub(crate) use keep::{Class, Keep, Marks};

use crate::file::PbfFile;
use crate::io::Expected;

/// The size of a copy of a file.
pub(crate) fn expected_copy(file: &PbfFile) -> Expected {
    Expected::copy_of(file.data_start, file.data_end - file.data_start)
}
