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
mod ids;
pub mod inspect;
pub mod merge_changes;
mod random;
pub mod renumber;
pub mod repack;
pub mod sort;
pub mod synth;
pub mod tags_count;
pub mod tags_filter;
pub mod time_filter;

pub use crate::engine::{HeaderOption, HeaderOptions, WriteSummary};
pub use ids::IdSource;

use crate::error::Result;
use crate::file::{PbfFile, WriteOptions};
use crate::runtime::Context;
use std::path::PathBuf;

/// Opens the inputs of a command that may copy their blobs.
fn open_all(paths: &[PathBuf], write: &WriteOptions, ctx: &Context) -> Result<Vec<PbfFile>> {
    let files = paths.iter();
    files
        .map(|path| crate::engine::input::open_to_copy(path, write, ctx))
        .collect()
}
