//! Caches the kept objects of blobs. One pass selects the objects and fills the cache. A later pass takes the objects
//! from the cache and writes them. Thus a blob with few kept objects is read only once.

use super::payload_cache::PayloadCache;
use crate::error::FormatResult;
use crate::pbf::{BlobEntry, BlobFlags, Block, EditScript, put_kept_block};

/// A blob is cached only if at most 1/n of its objects are kept, where n is this number.
const MIN_RATIO: usize = 4;

/// A cache of payloads, each reduced to the objects that an output keeps. Several threads may add blobs at the same
/// time.
#[derive(Debug)]
pub(crate) struct PartialBlobCache(PayloadCache);

impl PartialBlobCache {
    /// Creates an empty cache for `limit` bytes. Blobs that do not fit are not cached.
    pub(crate) fn new(limit: u64) -> Self {
        Self(PayloadCache::new(limit))
    }

    /// Caches those objects of a block that `script` keeps, if they are at most a quarter of the block's objects.
    /// `kept` is the number of objects that `script` keeps. `script` must cover all objects of the block. Does not
    /// cache blobs with several kinds of objects, or blobs without a content hash.
    pub(crate) fn add(
        &self,
        entry: &BlobEntry,
        block: &Block<'_>,
        kept: usize,
        script: impl FnOnce() -> EditScript,
    ) -> FormatResult<()> {
        let is_little = kept > 0 && kept * MIN_RATIO <= entry.count as usize;
        // An entry with a content hash is known to match its blob. An entry without a hash is compared with its blob
        // only when the objects are written. For this comparison, the blob has to be decoded again, so it is not
        // cached.
        let is_true = entry.flags.has(BlobFlags::HASHED) && entry.kinds.single().is_some();
        if !is_little || !is_true || !self.0.has_room() {
            return Ok(());
        }
        let mut cut = Vec::new();
        if !put_kept_block(block.payload(), &script(), &mut cut)? {
            return Ok(());
        }
        cut.shrink_to_fit();
        self.0.add(entry, cut);
        Ok(())
    }

    /// Removes the blobs for which `is_complete` returns false. `is_complete` must return false for a blob if an output
    /// keeps an object of the blob that was not cached.
    pub(crate) fn retain(&self, is_complete: impl Fn(&BlobEntry) -> bool) {
        self.0.retain(is_complete);
    }

    /// Removes the payload of a blob from the cache and returns it.
    pub(crate) fn take(&self, entry: &BlobEntry) -> Option<Vec<u8>> {
        self.0.take(entry)
    }
}
