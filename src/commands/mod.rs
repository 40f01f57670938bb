//! The commands as library functions: options in, a summary of what was done out.
//!
//! Each module has `Options`, `Summary` and `run(&Options, &Context) -> Result<Summary>`.

pub mod add_locations_to_ways;
pub mod apply_changes;
pub mod cat;
pub mod check;
pub mod degrade;
pub mod diff;
pub mod extract;
pub mod getid;
pub mod getparents;
mod headers;
mod held;
mod ids;
mod input;
pub mod inspect;
mod keep;
pub mod merge_changes;
mod random;
mod references;
pub mod renumber;
pub mod repack;
mod rewrite;
mod scan;
mod shards;
pub mod sort;
pub mod synth;
mod tag_match;
pub mod tags_count;
pub mod tags_filter;
pub mod time_filter;

pub use headers::{HeaderOption, HeaderOptions};
pub use ids::IdSource;
pub use keep::Kept;

use crate::Context;
use crate::error::Result;
use crate::read::PbfFile;
use crate::write::{Expected, WriteOptions};
use std::path::PathBuf;

/// Opens all inputs of a command that copies blobs.
fn open_all(paths: &[PathBuf], write: &WriteOptions, ctx: &Context) -> Result<Vec<PbfFile>> {
    let files = paths.iter();
    files
        .map(|path| input::open_to_copy(path, write, ctx))
        .collect()
}

/// What is expected of a copy of a file.
fn expected_copy(file: &PbfFile) -> Expected {
    Expected::copy_of(file.data_start, file.data_end - file.data_start)
}
