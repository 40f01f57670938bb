//! The interface through which a command passes its decoded blocks to a search.

use crate::error::FormatResult;
use crate::formats::ChangeSet;
use crate::pbf::{BlobEntry, Block, WayNodes};

/// A search in the blocks that another command decodes. The search does not have to decode them again.
pub(crate) trait BlockObserver: Sync {
    /// Receives a block of the base file, before `changes` are applied to it. `refs` is `None` if the references of the
    /// ways have not been decoded. Blobs may come in any order and from any thread.
    fn observe(
        &self,
        changes: &ChangeSet,
        entry: &BlobEntry,
        block: &Block<'_>,
        refs: Option<CandidateRefs<'_>>,
    ) -> FormatResult<()>;
}

/// The references of the ways of a block. `candidates` are the references to nodes that may have changed.
#[derive(Clone, Copy)]
pub(crate) struct CandidateRefs<'r> {
    pub nodes: &'r WayNodes,
    /// Ascending indices into [`WayNodes::refs`].
    pub candidates: &'r [usize],
}
