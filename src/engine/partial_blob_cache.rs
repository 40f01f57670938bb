//! What is kept of blobs, from when it was found until it is written: a blob of which little is kept need
//! not be read a second time.

use crate::error::FormatError;
use crate::pbf::{BlobEntry, BlobFlags, EditScript, ParsedBlock, put_kept_block};
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Of how many objects one is kept at most, in a blob that is cache.
const LEAST_OF: usize = 4;
/// Bytes a blob that is cache, beside what is cache of it.
const A_BLOB: u64 = (size_of::<(BlobEntry, Vec<u8>)>() * 2) as u64;

/// Blobs without the objects that nobody keeps, by where they were in the file. Several threads may add
/// to it at a time.
#[derive(Debug)]
pub(crate) struct PartialBlobCache {
    blobs: Mutex<FxHashMap<u64, (BlobEntry, Vec<u8>)>>,
    /// Bytes that may still be taken.
    left: AtomicU64,
}

impl PartialBlobCache {
    /// Takes no more than so many bytes of memory: what does not fit is not cache.
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            blobs: Mutex::default(),
            left: AtomicU64::new(limit),
        }
    }

    /// Holds the objects of a block that a script keeps, `kept` of them, where they are few. The script has a
    /// step for each object of the block, which are of one kind.
    pub(crate) fn add(
        &self,
        entry: &BlobEntry,
        block: &ParsedBlock<'_>,
        kept: usize,
        script: impl FnOnce() -> EditScript,
    ) -> Result<(), FormatError> {
        let is_little = kept > 0 && kept * LEAST_OF <= entry.count as usize;
        // What an entry without a hash says is compared with its blob where the blob is written.
        let is_true = entry.flags.has(BlobFlags::HASHED) && entry.kinds.single().is_some();
        if !is_little || !is_true || self.left.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let mut cut = Vec::new();
        if !put_kept_block(block.payload(), &script(), &mut cut)? {
            return Ok(());
        }
        cut.shrink_to_fit();
        let bytes = cut.len() as u64 + A_BLOB;
        let take = |left: u64| left.checked_sub(bytes);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        match self.left.fetch_update(set, fetch, take) {
            Ok(_) => {
                let mut blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
                blobs.insert(entry.offset, (*entry, cut));
            }
            // No room: the next need not be cut out.
            Err(_) => self.left.store(0, Ordering::Relaxed),
        }
        Ok(())
    }

    /// Lets go of blobs of which more is kept than was known.
    pub(crate) fn retain(&mut self, is_complete: impl Fn(&BlobEntry) -> bool) {
        let blobs = self.blobs.get_mut();
        let blobs = blobs.unwrap_or_else(PoisonError::into_inner);
        blobs.retain(|_, (entry, _)| is_complete(entry));
    }

    /// Takes out the payload of a blob.
    pub(crate) fn take(&self, entry: &BlobEntry) -> Option<Vec<u8>> {
        let mut blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        blobs.remove(&entry.offset).map(|(_, payload)| payload)
    }
}
