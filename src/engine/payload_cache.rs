//! Caches decoded payloads for a later pass over the same blobs.

use crate::pbf::BlobEntry;
use crate::runtime::lock;
use rustc_hash::FxHashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The estimated number of bytes that a cached blob needs in addition to its payload.
const BYTES_PER_BLOB: u64 = (size_of::<(BlobEntry, Vec<u8>)>() * 2) as u64;

/// A cache of payloads, or of parts of them. The key of a payload is the offset of its blob in the file. Several
/// threads may use the cache at the same time.
#[derive(Debug)]
pub(crate) struct PayloadCache {
    payloads: Mutex<FxHashMap<u64, (BlobEntry, Vec<u8>)>>,
    /// The number of bytes that are left for further payloads. Removing payloads does not increase this number.
    left: AtomicU64,
}

impl PayloadCache {
    /// Creates an empty cache for `limit` bytes.
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            payloads: Mutex::default(),
            left: AtomicU64::new(limit),
        }
    }

    /// Whether there is room for further payloads.
    pub(crate) fn has_room(&self) -> bool {
        self.left.load(Ordering::Relaxed) > 0
    }

    /// Adds the payload of a blob if it fits. Once a payload does not fit, no further payload is added.
    pub(crate) fn add(&self, entry: &BlobEntry, payload: Vec<u8>) {
        let bytes = payload.capacity() as u64 + BYTES_PER_BLOB;
        let take = |left: u64| left.checked_sub(bytes);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        match self.left.fetch_update(set, fetch, take) {
            Ok(_) => {
                lock(&self.payloads).insert(entry.offset, (*entry, payload));
            }
            Err(_) => self.left.store(0, Ordering::Relaxed),
        }
    }

    /// Removes the payloads of the blobs for which `is_kept` returns `false`.
    pub(crate) fn retain(&self, is_kept: impl Fn(&BlobEntry) -> bool) {
        lock(&self.payloads).retain(|_, (entry, _)| is_kept(entry));
    }

    /// Removes the payload of a blob and returns it.
    pub(crate) fn take(&self, entry: &BlobEntry) -> Option<Vec<u8>> {
        let mut payloads = lock(&self.payloads);
        payloads.remove(&entry.offset).map(|(_, payload)| payload)
    }
}
