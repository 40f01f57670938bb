//! `sort` and `merge`: write objects in canonical order. Blobs that are in order already are copied.

use super::open_all;
use crate::engine::OutputOptions;
pub use crate::engine::sort::{Dedupe, Summary};
use crate::engine::sort::{SortJob, sort_files};
use crate::error::Result;
use crate::runtime::Context;
use std::path::PathBuf;

/// The options of `sort` and `merge`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The input files; `-` is standard input. Objects with the same key and version keep the order of the inputs.
    pub inputs: Vec<PathBuf>,
    /// The output: where it goes, how it is written, and its header.
    pub output: OutputOptions,
    /// The handling of duplicates.
    pub dedupe: Dedupe,
}

impl Options {
    /// The options with what is required. Duplicates are kept.
    pub fn new(inputs: Vec<PathBuf>, output: OutputOptions) -> Self {
        Self {
            inputs,
            output,
            dedupe: Dedupe::KeepAll,
        }
    }
}

setters!(Options { dedupe: Dedupe });

/// Merges the inputs into one file in canonical order.
///
/// Reads one file or several, each sorted or unsorted, which may be history files: the versions of an object are
/// ordered by version. A single file is checked and copied in one pass while it is in order. Otherwise blobs that
/// overlap no other blob are copied, and the others are merged. Writes one PBF file. If blobs overlap widely, sorted
/// runs are first written to a temporary file in the directory of the output.
///
/// # Memory
///
/// The [base memory](crate::commands#memory); in place of the blobs in flight, about 256 MB of payloads that are being
/// merged, and the frames made from them.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, its file system
///   has too little space, or it cannot be written ([details](crate::commands#errors)).
/// - There is no input.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    let job = SortJob {
        output: options.output.clone(),
        dedupe: options.dedupe,
    };
    sort_files(
        open_all(&options.inputs, &options.output.write, ctx)?,
        &job,
        ctx,
    )
}
