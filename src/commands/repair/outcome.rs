//! The finding about each part of a damaged file.

use super::frames::Frame;
use super::report::Loss;
use crate::error::FormatError;
use crate::osm::TypeThenId;
use crate::pbf::{BlobEntry, Salvage};

/// The finding about a part of the file.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    /// The blob is whole, and is copied. The number is that of its ways with fewer than two nodes.
    Whole(BlobEntry, u64),
    /// The objects that can be read are written anew.
    Mended(Box<Mended>),
    /// No object can be read. The entry has facts about the lost blob, if there are any.
    Lost(Loss, BlobEntry),
    /// The blob has no objects.
    Empty,
}

/// A blob of which not everything can be copied.
#[derive(Debug, Clone)]
pub(super) struct Mended {
    pub frame: Frame,
    pub cause: String,
    pub changes: Salvage,
    /// The number of ways with fewer than two nodes that are written.
    pub short_ways: u64,
    /// The facts about the blobs that replace it.
    pub new: Vec<BlobEntry>,
}

impl Outcome {
    /// The facts about the blobs that are written for a blob.
    pub(super) fn written(&self) -> impl Iterator<Item = &BlobEntry> {
        let (one, several) = match self {
            Self::Whole(entry, _) => (Some(entry), &[][..]),
            Self::Mended(mended) => (None, mended.new.as_slice()),
            Self::Lost(..) | Self::Empty => (None, &[][..]),
        };
        one.into_iter().chain(several)
    }

    /// The outcome of a blob that cannot be read.
    pub(super) fn lost(entry: BlobEntry, cause: &FormatError) -> Self {
        let number = Some(entry.number);
        let loss = Loss::new(
            number,
            entry.offset,
            entry.frame_len.into(),
            cause.to_string(),
        );
        Self::Lost(loss, entry)
    }

    /// The end of the bytes that the outcome is about; `None` if the blob has no objects.
    pub(super) fn end(&self) -> Option<u64> {
        match self {
            Self::Whole(entry, _) => Some(entry.end()),
            Self::Mended(mended) => Some(mended.frame.entry.end()),
            Self::Lost(loss, _) => Some(loss.offset.saturating_add(loss.bytes)),
            Self::Empty => None,
        }
    }

    /// The first and the last key of the objects that are written for a blob.
    pub(super) fn keys(&self) -> Option<(TypeThenId, TypeThenId)> {
        let mut entries = self.written().filter(|entry| entry.count > 0);
        let first = entries.next()?;
        let last = entries.last().unwrap_or(first);
        first.first_key().zip(last.last_key())
    }

    pub(super) const fn is_lost(&self) -> bool {
        matches!(self, Self::Lost(..))
    }
}
