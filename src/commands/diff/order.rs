//! Opens the files to compare, and sorts them if necessary. Only files in canonical order can be walked side by side.

use crate::engine::input;
use crate::error::Result;
use crate::file::{BlobPlan, PbfFile, WriteOptions};
use crate::pbf::Compression;
use crate::runtime::Context;
use std::path::{Path, PathBuf};

/// One of the two files to compare.
pub(super) struct Side {
    pub file: PbfFile,
    /// The path that the user gave.
    pub path: PathBuf,
    pub plan: BlobPlan,
}

/// Opens a file. A file that is not in canonical order is sorted into a temporary file first.
pub(super) fn open_in_order(path: &Path, ctx: &Context) -> Result<Side> {
    let write = WriteOptions {
        compression: Compression::Lz4,
        ..WriteOptions::default()
    };
    let file = input::open(path, ctx)?;
    let (file, plan) = input::sort_if_needed(file, &write, &std::env::temp_dir(), ctx)?;
    Ok(Side {
        file,
        path: path.to_owned(),
        plan,
    })
}
