//! What is known of one data blob without reading it.

use crate::osm::{Bbox, KindSet, OrderKey, id_rank};

/// Facts about a blob's contents, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlobFlags(u8);

impl BlobFlags {
    /// Objects stand in canonical order, versions ascending within an id.
    pub const SORTED: Self = Self(1);
    /// Sorted, and no id occurs twice.
    pub const STRICT: Self = Self(2);
    /// Some way carries the coordinates of its nodes.
    pub const LOCATIONS: Self = Self(4);
    /// Some nodes are dense.
    pub const DENSE: Self = Self(8);
    /// Some object is a deleted version.
    pub const DELETED: Self = Self(16);
    /// The facts above come from the decoded blob; otherwise only set bits mean something.
    pub const SCANNED: Self = Self(32);
    /// The content hash is known.
    pub const HASHED: Self = Self(64);

    /// The flags from their bits; unknown bits are dropped.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 127)
    }

    /// The bits.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether all of `flags` are set.
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Sets or clears `flags`.
    pub const fn set(&mut self, flags: Self, on: bool) {
        if on {
            self.0 |= flags.0;
        } else {
            self.0 &= !flags.0;
        }
    }
}

/// What is known of one data blob (or of `blobs` neighbouring ones) without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobEntry {
    /// Where the frame starts in the file, in bytes.
    pub offset: u64,
    /// The smallest id in canonical order; of the first kind where there are several.
    pub min_id: i64,
    /// The largest id in canonical order; of the last kind where there are several.
    pub max_id: i64,
    /// xxh3 of the uncompressed payload; 0 where not [`BlobFlags::HASHED`].
    pub hash: u64,
    /// Box around all nodes; [`Bbox::EMPTY`] where there are none or it is not known.
    pub bbox: Bbox,
    /// Length of the whole frame in bytes.
    pub frame_len: u32,
    /// Length of the uncompressed payload in bytes; 0 where not known.
    pub payload_len: u32,
    /// How many objects there are.
    pub count: u32,
    /// How many frames the entry stands for: 1 but in a table that had to be shortened.
    pub blobs: u32,
    /// Number of the (first) frame in the file; the header is 0.
    pub number: u32,
    /// Length of the frame's prefix and BlobHeader in bytes.
    pub header_len: u32,
    /// Kinds of objects.
    pub kinds: KindSet,
    /// Facts about the contents.
    pub flags: BlobFlags,
}

impl Default for BlobEntry {
    fn default() -> Self {
        Self {
            offset: 0,
            min_id: 0,
            max_id: 0,
            hash: 0,
            bbox: Bbox::EMPTY,
            frame_len: 0,
            payload_len: 0,
            count: 0,
            blobs: 1,
            number: 0,
            header_len: 0,
            kinds: KindSet::EMPTY,
            flags: BlobFlags::default(),
        }
    }
}

impl BlobEntry {
    /// The first byte behind the frame.
    pub const fn end(&self) -> u64 {
        self.offset + self.frame_len as u64
    }

    /// The place of the first object in canonical order; `None` without objects.
    pub fn first_key(&self) -> Option<OrderKey> {
        self.kinds.first().map(|kind| (kind, id_rank(self.min_id)))
    }

    /// The place of the last object in canonical order; `None` without objects.
    pub fn last_key(&self) -> Option<OrderKey> {
        self.kinds.last().map(|kind| (kind, id_rank(self.max_id)))
    }

    /// Whether `other`, read from the blob itself, says the same of its contents as this entry.
    /// What this entry does not know is not compared.
    pub fn agrees_with(&self, other: &Self) -> bool {
        let both_hashed = self.flags.has(BlobFlags::HASHED) && other.flags.has(BlobFlags::HASHED);
        let sorted = |entry: &Self| entry.flags.has(BlobFlags::SORTED);
        (!both_hashed || self.hash == other.hash)
            && (!self.flags.has(BlobFlags::SCANNED) || sorted(self) == sorted(other))
            && self.kinds == other.kinds
            && (self.count, self.min_id, self.max_id) == (other.count, other.min_id, other.max_id)
    }
}
