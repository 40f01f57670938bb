//! Entries of data blobs: facts about their contents that are known without decoding them.

use super::statistics::ObjectStatistics;
use crate::osm::{Bbox, KindSet, ObjectKind, TypeThenId, id_rank};
use crate::pbf::rewrite::InfoFields;

/// Facts about the contents of a blob, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlobFlags(u8);

impl BlobFlags {
    /// Objects are in canonical order, and the versions of an object do not descend.
    pub const SORTED: Self = Self(1);
    /// Objects are in canonical order, and no id occurs twice.
    pub const UNIQUE_IDS: Self = Self(2);
    /// Some way carries the coordinates of its nodes.
    pub const LOCATIONS: Self = Self(4);
    /// Some nodes are dense.
    pub const DENSE: Self = Self(8);
    /// Some object is a deleted version.
    pub const DELETED: Self = Self(16);
    /// The flags above were read from the decoded blob. Without this flag, a cleared flag above means "not known".
    pub const SCANNED: Self = Self(32);
    /// The content hash is known.
    pub const HASHED: Self = Self(64);
    /// The whole entry was computed from the decoded blob in this run, not read from an index. Not stored in files.
    pub const VERIFIED: Self = Self(128);

    /// The flags with the given stored bits. [`VERIFIED`](Self::VERIFIED) is cleared.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & !Self::VERIFIED.0)
    }

    /// The bits as they are stored, without [`VERIFIED`](Self::VERIFIED).
    pub const fn bits(self) -> u8 {
        self.0 & !Self::VERIFIED.0
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

/// The facts about one data blob that are known without decoding it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlobEntry {
    /// The offset of the frame in the file, in bytes.
    pub offset: u64,
    /// The smallest id in canonical order, of the first kind if the blob has several kinds.
    pub min_id: i64,
    /// The largest id in canonical order, of the last kind if the blob has several kinds.
    pub max_id: i64,
    /// The xxh3 hash of the uncompressed payload; 0 without [`BlobFlags::HASHED`].
    pub hash: u64,
    /// The bounding box of all nodes; [`Bbox::EMPTY`] if the blob has no nodes or the box is not known. In a file with
    /// a spatial layout, entries of ways have the box of the locations of their nodes, and entries of relations the box
    /// of all their members.
    pub bbox: Bbox,
    /// Length of the whole frame in bytes.
    pub frame_len: u32,
    /// Length of the uncompressed payload in bytes; 0 if not known.
    pub payload_len: u32,
    /// The number of objects.
    pub count: u32,
    /// The index of the frame in the file; the header frame has index 0.
    pub number: u32,
    /// Length of the frame's prefix and BlobHeader in bytes.
    pub header_len: u32,
    /// The kinds of the objects.
    pub kinds: KindSet,
    /// Facts about the contents.
    pub flags: BlobFlags,
    /// Statistics of the objects; `None` if they are not known, as for a blob of several kinds.
    pub statistics: Option<ObjectStatistics>,
}

impl BlobEntry {
    /// The offset of the first byte after the frame.
    pub const fn end(&self) -> u64 {
        self.offset + self.frame_len as u64
    }

    /// Whether ways of the blob may have locations. True for a blob with ways if the entry does not record that.
    pub(crate) fn may_have_locations(&self) -> bool {
        let may_have = self.flags.has(BlobFlags::LOCATIONS) || !self.flags.has(BlobFlags::SCANNED);
        self.kinds.contains(ObjectKind::Way) && may_have
    }

    /// The sort key of the first object in canonical order; `None` if the blob has no objects.
    pub fn first_key(&self) -> Option<TypeThenId> {
        self.kinds.first().map(|kind| (kind, id_rank(self.min_id)))
    }

    /// The sort key of the last object in canonical order; `None` if the blob has no objects.
    pub fn last_key(&self) -> Option<TypeThenId> {
        self.kinds.last().map(|kind| (kind, id_rank(self.max_id)))
    }

    /// Whether this run has computed the entry from the decoded blob. The entry of an index may contradict its blob.
    pub const fn is_verified(&self) -> bool {
        self.flags.has(BlobFlags::VERIFIED)
    }

    /// Whether anything is known about the blob's contents.
    pub fn is_indexed(&self) -> bool {
        self.flags.has(BlobFlags::SCANNED) || !self.kinds.is_empty()
    }

    /// Whether the kinds of the objects are all that is known about the blob's contents.
    pub(crate) fn has_kinds_only(&self) -> bool {
        !self.flags.has(BlobFlags::SCANNED) && !self.kinds.is_empty() && self.count == 0
    }

    /// The entry of the same blob whose objects have lost some attributes other than `visible`.
    pub(crate) fn without(&self, removed: InfoFields) -> Self {
        let statistics = self.statistics.map(|found| found.without(removed));
        Self {
            statistics,
            ..*self
        }
    }

    /// Describes the first contradiction between this entry and `found`, the entry computed from the decoded blob, in
    /// the kinds, number, id range and order of the objects; `None` if there is none.
    pub fn id_mismatch(&self, found: &Self) -> Option<&'static str> {
        let lacks = |flag| self.flags.has(flag) && !found.flags.has(flag);
        if self.kinds != found.kinds {
            Some("the kinds of objects differ")
        } else if self.count != found.count {
            Some("the number of objects differs")
        } else if (self.min_id, self.max_id) != (found.min_id, found.max_id) {
            Some("the range of ids differs")
        } else if lacks(BlobFlags::SORTED) || lacks(BlobFlags::UNIQUE_IDS) {
            Some("ids are not in the order that the index states")
        } else {
            None
        }
    }

    /// Describes all contradictions between this entry and `found`, the entry computed from the decoded blob. Facts
    /// that this entry does not have are not compared.
    pub fn mismatches(&self, found: &Self) -> Vec<&'static str> {
        if !self.is_indexed() {
            return Vec::new();
        }
        let mut mismatches: Vec<_> = self.id_mismatch(found).into_iter().collect();
        let mut differ = |is_false: bool, what| {
            if is_false {
                mismatches.push(what);
            }
        };
        let differs = |flag| self.flags.has(flag) != found.flags.has(flag);
        let scanned = self.flags.has(BlobFlags::SCANNED);
        let box_differs = if scanned {
            self.kinds.contains(ObjectKind::Node) && self.bbox != found.bbox
        } else {
            let alike = self.bbox.widened(1).encloses(&found.bbox)
                && found.bbox.widened(1).encloses(&self.bbox);
            !self.bbox.is_empty() && !alike
        };
        differ(
            self.payload_len != 0 && self.payload_len != found.payload_len,
            "the length of the content differs",
        );
        differ(box_differs, "the bounding box of the nodes differs");
        let flags = [
            (BlobFlags::LOCATIONS, "whether ways have locations differs"),
            (
                BlobFlags::DELETED,
                "whether there are deleted versions differs",
            ),
            (BlobFlags::DENSE, "whether nodes are dense differs"),
        ];
        for (flag, what) in flags {
            differ(scanned && differs(flag), what);
        }
        differ(
            self.statistics.is_some() && self.statistics != found.statistics,
            "the statistics of the objects differ",
        );
        differ(
            self.flags.has(BlobFlags::HASHED) && self.hash != found.hash,
            "the content differs",
        );
        mismatches
    }
}
