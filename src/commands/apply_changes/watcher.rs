//! Shows decoded blobs to an augmented diff, so that blobs that both need are decoded once.

use crate::commands::augmented_diff::{CandidateRefs, ChangedNodes, Ongoing};
use crate::error::FormatError;
use crate::formats::ChangeSet;
use crate::pbf::{BlobEntry, Block};

/// The part of an augmented diff that is shown the decoded blobs.
#[derive(Clone, Copy)]
pub(super) enum Watcher<'a> {
    /// There is no augmented diff.
    None,
    /// The search for changed nodes, which comes before the other blobs are decoded.
    Nodes(&'a ChangedNodes),
    /// The search for ways.
    Ways(&'a Ongoing<'a, 'a>),
}

impl Watcher<'_> {
    /// Shows a block of the base. `known` is given if the references of its ways have been decoded.
    pub(super) fn show(
        self,
        changes: &ChangeSet,
        entry: &BlobEntry,
        block: &Block<'_>,
        known: Option<CandidateRefs<'_>>,
    ) -> Result<(), FormatError> {
        match self {
            Self::None => Ok(()),
            Self::Nodes(nodes) => nodes.look(changes, entry, block),
            Self::Ways(ongoing) => ongoing.look(entry, block, known),
        }
    }
}
