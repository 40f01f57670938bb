//! The entries of data blobs in an index. An entry has facts about a blob that are known without decoding it.

use super::statistics::ObjectStatistics;
use crate::osm::{Bbox, KindSet, ObjectKind, TypeThenId, id_rank};
use crate::pbf::rewrite::InfoFields;

/// Facts about the contents of a blob, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlobFlags(u16);

impl BlobFlags {
    /// Objects are in canonical order, and the versions of each object do not descend.
    pub const SORTED: Self = Self(1);
    /// Objects are in canonical order, and no id occurs twice.
    pub const UNIQUE_IDS: Self = Self(2);
    /// At least one way has the coordinates of its nodes.
    pub const LOCATIONS: Self = Self(4);
    /// At least one node is dense.
    pub const DENSE: Self = Self(8);
    /// At least one object is a deleted version.
    pub const DELETED: Self = Self(16);
    /// [`SORTED`](Self::SORTED), [`UNIQUE_IDS`](Self::UNIQUE_IDS), [`LOCATIONS`](Self::LOCATIONS),
    /// [`DENSE`](Self::DENSE) and [`DELETED`](Self::DELETED) were determined from the decoded blob. Without this flag,
    /// a cleared flag among these five means "unknown".
    pub const SCANNED: Self = Self(32);
    /// The hash of the payload is known.
    pub const HASHED: Self = Self(64);
    /// The whole entry was computed from the decoded blob in this run of the program, not read from an index. Not
    /// stored in files.
    pub const VERIFIED: Self = Self(256);
    /// At least one way with nodes has no coordinates. Known only if the blob was decoded in this run of the program.
    /// Not stored in files.
    pub const BARE_WAYS: Self = Self(512);
    /// The string table of the blob also has a part of a table about the file. Decoding the blob removes this part.
    pub const HAS_TABLE: Self = Self(128);
    /// The flags that are stored in files.
    const STORED: u16 = 255;

    /// Returns the flags with the given stored bits. Ignores the bits of flags that are not stored.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits as u16 & Self::STORED)
    }

    /// Returns the bits of the flags that are stored.
    pub const fn bits(self) -> u8 {
        (self.0 & Self::STORED) as u8
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
#[non_exhaustive]
pub struct BlobEntry {
    /// The offset of the frame in the file, in bytes.
    pub offset: u64,
    /// The first id in canonical order. Belongs to the first kind if the blob has several kinds.
    pub min_id: i64,
    /// The last id in canonical order. Belongs to the last kind if the blob has several kinds.
    pub max_id: i64,
    /// The xxh3 hash of the uncompressed payload; 0 if it is not known.
    pub hash: u64,
    /// The bounding box of all nodes; [`Bbox::EMPTY`] if the blob has no nodes or the box is unknown. In a file with a
    /// spatial layout, an entry for ways has the box of all their nodes, and an entry for relations the box of all
    /// their members.
    pub bbox: Bbox,
    /// The size of the whole frame in bytes.
    pub frame_len: u32,
    /// The size of the uncompressed payload in bytes; 0 if unknown.
    pub payload_len: u32,
    /// The number of objects.
    pub count: u32,
    /// The index of the frame in the file; the header frame has index 0.
    pub number: u32,
    /// The total size in bytes of the prefix and BlobHeader of the frame.
    pub header_len: u32,
    /// The kinds of the objects.
    pub kinds: KindSet,
    /// Facts about the contents.
    pub(crate) flags: BlobFlags,
    /// Statistics of the objects; `None` if unknown. Always unknown for a blob with several kinds.
    pub(crate) statistics: Option<ObjectStatistics>,
}

impl BlobEntry {
    /// Returns the offset of the first byte after the frame.
    pub const fn end(&self) -> u64 {
        self.offset + self.frame_len as u64
    }

    /// Returns the entry with only these facts: the offset, the lengths and the number of the frame, and whether the
    /// blob has a table beside its objects.
    pub(crate) fn without_facts(&self) -> Self {
        let mut entry = Self {
            offset: self.offset,
            frame_len: self.frame_len,
            header_len: self.header_len,
            number: self.number,
            ..Self::default()
        };
        let has_table = self.flags.has(BlobFlags::HAS_TABLE);
        entry.flags.set(BlobFlags::HAS_TABLE, has_table);
        entry
    }

    /// Whether the blob may have ways with locations. Also `true` if the blob has ways and the entry has no facts about
    /// their locations.
    pub(crate) fn may_have_locations(&self) -> bool {
        let may_have = self.flags.has(BlobFlags::LOCATIONS) || !self.flags.has(BlobFlags::SCANNED);
        self.kinds.contains(ObjectKind::Way) && may_have
    }

    /// Returns the sort key of the first object in canonical order. Returns `None` if the blob has no objects, or if
    /// their ids are not known.
    pub(crate) fn first_sort_key(&self) -> Option<TypeThenId> {
        let kind = self
            .kinds
            .first()
            .filter(|_| !self.has_only_kinds_known())?;
        Some((kind, id_rank(self.min_id)))
    }

    /// Returns the sort key of the last object in canonical order. Returns `None` if the blob has no objects, or if
    /// their ids are not known.
    pub(crate) fn last_sort_key(&self) -> Option<TypeThenId> {
        let kind = self.kinds.last().filter(|_| !self.has_only_kinds_known())?;
        Some((kind, id_rank(self.max_id)))
    }

    /// Whether this run of the program has computed the entry from the decoded blob. An entry that was read from an
    /// index may contradict its blob.
    pub const fn is_verified(&self) -> bool {
        self.flags.has(BlobFlags::VERIFIED)
    }

    /// Whether anything is known about the blob's contents.
    pub fn is_indexed(&self) -> bool {
        self.flags.has(BlobFlags::SCANNED) || !self.kinds.is_empty()
    }

    /// Whether all facts about the blob are known, so that they need not be read from the blob.
    pub(crate) const fn is_complete(&self) -> bool {
        self.flags.has(BlobFlags::SCANNED) && self.flags.has(BlobFlags::HASHED)
    }

    /// Whether the kinds of the objects are the only known fact about the blob's contents.
    pub(crate) fn has_only_kinds_known(&self) -> bool {
        !self.flags.has(BlobFlags::SCANNED) && !self.kinds.is_empty() && self.count == 0
    }

    /// Returns the entry of the same blob after the attributes in `removed`, other than `visible`, are removed from its
    /// objects.
    pub(crate) fn without_attributes(&self, removed: InfoFields) -> Self {
        let statistics = self
            .statistics
            .map(|found| found.without_attributes(removed));
        Self {
            statistics,
            ..*self
        }
    }

    /// Returns a description of the first contradiction between this entry and `found`, the entry computed from the
    /// decoded blob. Returns `None` if there is no contradiction. Compares the kinds, number, id range and order of the
    /// objects.
    pub(crate) fn id_mismatch(&self, found: &Self) -> Option<&'static str> {
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

    /// Returns descriptions of all contradictions between this entry and `found`, the entry computed from the decoded
    /// blob. Does not compare facts that this entry lacks.
    pub(crate) fn mismatches(&self, found: &Self) -> Vec<&'static str> {
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
