//! `augmented-diff`: writes what changes do to a file, with the objects before and after them.
//!
//! Passes over the base find the objects that changes concern, and what their geometry needs: `find` reads nodes, ways
//! and relations, and `geometry` holds the nodes and member ways. The last pass writes the actions in order of kind and
//! id (`write`).

mod find;
mod geometry;
mod write;

use crate::engine::input;
use crate::error::{Error, Result};
use crate::file::{BlobPlan, PbfFile};
use crate::formats::{ChangeSet, read_change_files};
use crate::io::OutputTarget;
use crate::pbf::{BlobFlags, feature};
use crate::runtime::Context;
use find::Findings;
use serde::Serialize;
use std::path::PathBuf;

/// The options of `augmented-diff`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The file before the changes, of current data; `-` is standard input. A file that is not in canonical order is
    /// first sorted into a temporary file.
    pub base: PathBuf,
    /// The change files, in order. Of several changes with the same version and timestamp, the last one wins.
    pub changes: Vec<PathBuf>,
    /// The destination of the augmented diff.
    pub output: OutputTarget,
    /// Whether to leave out objects that are concerned only because a node or a member has changed.
    pub direct_only: bool,
}

impl Options {
    /// Creates options with the given inputs and output, and defaults otherwise.
    pub fn new(base: impl Into<PathBuf>, changes: Vec<PathBuf>, output: OutputTarget) -> Self {
        Self {
            base: base.into(),
            changes,
            output,
            direct_only: false,
        }
    }
}

setters!(Options { direct_only: bool });

/// The result of `augmented-diff`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The number of created objects.
    pub created: u64,
    /// The number of objects with a new version.
    pub modified: u64,
    /// The number of deleted objects.
    pub deleted: u64,
    /// The number of ways and relations without a change of their own, of which a node or a member has changed.
    pub indirect: u64,
    /// The number of changes that were left out because the base has a newer version.
    pub outdated: u64,
    /// The number of deletions that were left out because the base does not have the object.
    pub absent: u64,
    /// The number of modifications of objects that the base does not have, which are written as creations.
    pub missing: u64,
    /// The number of references to nodes whose location is not known, in old and new states of ways.
    pub missing_references: u64,
}

/// Writes the augmented diff of changes to a file of current data.
///
/// # Memory
///
/// The [base memory](crate::commands#memory), the changes as in [`apply_changes`](crate::commands::apply_changes::run),
/// 16 bytes for each node of the ways that are written, and 6 to 12 bytes for each node of the ways that are members of
/// the relations that are written.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, or it cannot be
///   written ([details](crate::commands#errors)).
/// - The base is a history file, according to its header or because it contains deleted versions.
/// - A change file is not OsmChange, or is damaged.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    ctx.expect_phases(7);
    let file = input::open(&options.base, ctx)?;
    let changes = {
        let _phase = ctx.phase("read changes", 0);
        read_change_files(&options.changes, ctx)?
    };
    let scratch = options.output.scratch_directory();
    let (file, plan) = input::in_order(file, &Default::default(), &scratch, ctx)?;
    check_base(&file, &plan)?;
    let base = Base {
        file: &file,
        plan: &plan,
        changes: &changes,
        ctx,
    };
    let findings = Findings::of(&base)?;
    write::write(&base, &findings, options)
}

/// The inputs.
#[derive(Clone, Copy)]
struct Base<'b> {
    file: &'b PbfFile,
    plan: &'b BlobPlan,
    changes: &'b ChangeSet,
    ctx: &'b Context,
}

/// Fails if the base is a history file.
fn check_base(file: &PbfFile, plan: &BlobPlan) -> Result<()> {
    if file.header.has(feature::HISTORY) || plan.any(BlobFlags::DELETED) {
        let error = Error::file(
            file.input.path(),
            "this is a history file: the state before the changes is not one file",
        );
        return Err(error.advise("`pbfhogg time-filter FILE TIME` writes the state at a time"));
    }
    Ok(())
}
