//! `sort` and `merge`: write objects in canonical order. Blobs that are in order already are copied.

use super::open_all;
use crate::engine::OutputOptions;
use crate::engine::headers::HeaderOptions;
pub use crate::engine::sort::{Dedupe, Summary};
use crate::engine::sort::{SortJob, sort_files};
use crate::error::Result;
use crate::file::WriteOptions;
use crate::io::OutputTarget;
use crate::runtime::Context;
use std::path::PathBuf;

/// Options of `sort`.
#[derive(Debug, Clone)]
pub struct Options {
    /// Input files.
    pub inputs: Vec<PathBuf>,
    /// Where the result goes.
    pub output: OutputTarget,
    /// How it is written.
    pub write: WriteOptions,
    /// Header fields that the user sets.
    pub header: HeaderOptions,
    /// Which duplicates are left out.
    pub dedupe: Dedupe,
}

/// Merges the inputs into one file in canonical order.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    let job = SortJob {
        output: OutputOptions::new(options.output.clone())
            .write(options.write)
            .header(options.header.clone()),
        dedupe: options.dedupe,
    };
    sort_files(open_all(&options.inputs, &options.write, ctx)?, &job, ctx)
}
