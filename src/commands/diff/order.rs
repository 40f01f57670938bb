//! Files that are to be gone through side by side have to be in order.

use crate::Context;
use crate::commands::input;
use crate::commands::{HeaderOptions, sort};
use crate::error::{Error, Result};
use crate::pbf::{Compression, feature};
use crate::read::{BlobPlan, PbfFile, PlanNeeds};
use crate::write::{OutputTarget, WriteOptions};
use std::path::{Path, PathBuf};

/// One of the two files.
pub(super) struct Side {
    pub file: PbfFile,
    /// The name it was given by.
    pub path: PathBuf,
    pub plan: BlobPlan,
}

/// Opens a file; one that is not in order is sorted into a temporary file first.
pub(super) fn in_order(path: &Path, ctx: &Context) -> Result<Side> {
    let side = Side::open(input::open(path, ctx)?, path.to_owned(), ctx)?;
    if side.plan.is_sorted() != Some(false) {
        return Ok(side);
    }
    ctx.warn(format!(
        "{}: the objects are not in order: a sorted copy is compared",
        path.display()
    ));
    let directory = tempfile::tempdir()
        .map_err(|error| Error::io(&std::env::temp_dir(), "cannot write a file there", error))?;
    let sorted = directory.path().join("sorted.osm.pbf");
    let options = sort::Options {
        inputs: vec![path.to_owned()],
        output: OutputTarget::File {
            path: sorted.clone(),
            overwrite: false,
        },
        write: WriteOptions {
            compression: Compression::Lz4,
            ..WriteOptions::default()
        },
        header: HeaderOptions::default(),
        dedupe: sort::Dedupe::KeepAll,
    };
    sort::run(&options, ctx)?;
    // Once it is open the file needs no name, and nothing is left of it whatever happens.
    let file = PbfFile::open(&sorted, ctx)?;
    drop(directory);
    Side::open(file, path.to_owned(), ctx)
}

impl Side {
    fn open(file: PbfFile, path: PathBuf, ctx: &Context) -> Result<Self> {
        let declared = file.header.has(feature::SORTED);
        let needs = match declared {
            true => PlanNeeds::Ranges,
            false => PlanNeeds::Order,
        };
        let plan = BlobPlan::open(&file, needs, ctx)?;
        Ok(Self { file, path, plan })
    }
}
