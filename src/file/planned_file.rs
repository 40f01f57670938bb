//! A file with a plan of its blobs.

use super::{BlobPlan, PbfFile};
use crate::runtime::Context;

/// A file, a plan of its blobs, and the context of the passes over them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlannedFile<'f> {
    pub file: &'f PbfFile,
    pub plan: &'f BlobPlan,
    pub ctx: &'f Context,
}

impl<'f> PlannedFile<'f> {
    pub(crate) const fn new(file: &'f PbfFile, plan: &'f BlobPlan, ctx: &'f Context) -> Self {
        Self { file, plan, ctx }
    }
}
