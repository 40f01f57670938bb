//! Caches the kept objects of blobs. The pass that selects objects fills the cache, and the pass that writes the
//! objects takes them from the cache, so that a blob with few kept objects is read only once.

use crate::error::FormatError;
use crate::pbf::{BlobEntry, BlobFlags, Block, EditScript, put_kept_block};
use crate::runtime::lock;
use rustc_hash::FxHashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A blob is cached only if at most 1/n of its objects are kept, where n is this number.
const MIN_RATIO: usize = 4;
/// The estimated number of bytes that a cached blob needs in addition to its payload.
const BYTES_PER_BLOB: u64 = (size_of::<(BlobEntry, Vec<u8>)>() * 2) as u64;

/// A cache of payloads, each reduced to the objects that an output keeps. The key of a payload is the offset of its
/// blob in the file. Several threads may add blobs at the same time.
#[derive(Debug)]
pub(crate) struct PartialBlobCache {
    blobs: Mutex<FxHashMap<u64, (BlobEntry, Vec<u8>)>>,
    /// The number of bytes that are left for further blobs. Removing blobs does not increase this number.
    left: AtomicU64,
}

impl PartialBlobCache {
    /// Creates an empty cache for `limit` bytes. Blobs that do not fit are not cached.
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            blobs: Mutex::default(),
            left: AtomicU64::new(limit),
        }
    }

    /// Caches the objects of a block that `script` keeps, if they are at most a quarter of the objects of the block.
    /// `kept` is the number of objects that `script` keeps. `script` must cover all objects of the block. Does not
    /// cache blobs with several kinds of objects, or blobs without a content hash.
    pub(crate) fn add(
        &self,
        entry: &BlobEntry,
        block: &Block<'_>,
        kept: usize,
        script: impl FnOnce() -> EditScript,
    ) -> Result<(), FormatError> {
        let is_little = kept > 0 && kept * MIN_RATIO <= entry.count as usize;
        // An entry with a content hash is known to match its blob. A blob whose entry has no hash has to be decoded
        // again when it is written, because only then is the entry compared with the blob.
        let is_true = entry.flags.has(BlobFlags::HASHED) && entry.kinds.single().is_some();
        if !is_little || !is_true || self.left.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let mut cut = Vec::new();
        if !put_kept_block(block.payload(), &script(), &mut cut)? {
            return Ok(());
        }
        cut.shrink_to_fit();
        let bytes = cut.len() as u64 + BYTES_PER_BLOB;
        let take = |left: u64| left.checked_sub(bytes);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        match self.left.fetch_update(set, fetch, take) {
            Ok(_) => {
                let mut blobs = lock(&self.blobs);
                blobs.insert(entry.offset, (*entry, cut));
            }
            // The cache is full. `left` becomes 0, so `add` returns early for all further blobs.
            Err(_) => self.left.store(0, Ordering::Relaxed),
        }
        Ok(())
    }

    /// Removes the blobs for which `is_complete` returns false. `is_complete` must return false if an output keeps
    /// objects of the blob that were not cached.
    pub(crate) fn retain(&mut self, is_complete: impl Fn(&BlobEntry) -> bool) {
        lock(&self.blobs).retain(|_, (entry, _)| is_complete(entry));
    }

    /// Removes the payload of a blob from the cache and returns it.
    pub(crate) fn take(&self, entry: &BlobEntry) -> Option<Vec<u8>> {
        let mut blobs = lock(&self.blobs);
        blobs.remove(&entry.offset).map(|(_, payload)| payload)
    }
}
