//! The result of examining a part of a damaged file.

use super::report::Loss;
use crate::error::FormatError;
use crate::osm::TypeThenId;
use crate::pbf::{BlobEntry, Salvage};

/// The result of examining a part of the file.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    /// The blob is whole, and is copied.
    Whole {
        entry: BlobEntry,
        /// The number of ways with fewer than two nodes.
        short_ways: u64,
    },
    /// The readable objects are encoded again.
    Mended(Box<MendedOutcome>),
    /// No object can be read. The second value is the entry of the lost blob; `None` if no index describes the objects
    /// of the blob.
    Lost(Loss, Option<BlobEntry>),
    /// The blob has no objects.
    Empty,
}

/// A blob that cannot be copied as a whole.
#[derive(Debug, Clone)]
pub(super) struct MendedOutcome {
    /// The entry of the damaged blob.
    pub entry: BlobEntry,
    pub cause: String,
    pub changes: Salvage,
    /// The number of written ways that have fewer than two nodes.
    pub short_ways: u64,
    /// The blobs that replace the damaged one.
    pub new: Vec<SpooledFrame>,
}

/// An encoded blob that a [`BlobMender`](super::mender::BlobMender) holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpooledFrame {
    /// The facts about the blob.
    pub entry: BlobEntry,
    /// The number of the piece in the spool that holds the blob.
    pub piece: usize,
}

impl Outcome {
    /// Returns the entries of the blobs that are written.
    pub(super) fn written(&self) -> impl Iterator<Item = &BlobEntry> {
        let (copied, new) = match self {
            Self::Whole { entry, .. } => (Some(entry), &[][..]),
            Self::Mended(mended) => (None, mended.new.as_slice()),
            Self::Lost(..) | Self::Empty => (None, &[][..]),
        };
        copied.into_iter().chain(new.iter().map(|new| &new.entry))
    }

    /// Returns the outcome of a blob that cannot be read.
    pub(super) fn lost(entry: BlobEntry, cause: &FormatError) -> Self {
        let (number, len) = (Some(entry.number), entry.frame_len.into());
        let loss = Loss::new(number, entry.offset, len, cause.to_string());
        Self::Lost(loss, (entry.count > 0).then_some(entry))
    }

    /// Returns the offset after the last byte of the blob or of the lost bytes; `None` if the blob has no objects.
    pub(super) fn end(&self) -> Option<u64> {
        match self {
            Self::Whole { entry, .. } => Some(entry.end()),
            Self::Mended(mended) => Some(mended.entry.end()),
            Self::Lost(loss, _) => Some(loss.offset.saturating_add(loss.bytes)),
            Self::Empty => None,
        }
    }

    /// Returns the first and the last key of the objects that are written.
    pub(super) fn keys(&self) -> Option<(TypeThenId, TypeThenId)> {
        let mut entries = self.written().filter(|entry| entry.count > 0);
        let first = entries.next()?;
        let last = entries.last().unwrap_or(first);
        first.first_sort_key().zip(last.last_sort_key())
    }

    pub(super) const fn is_lost(&self) -> bool {
        matches!(self, Self::Lost(..))
    }
}
