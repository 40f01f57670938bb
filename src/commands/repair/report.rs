//! The report of a repair: what was found, what was saved, and what was lost.

use crate::file::Written;
use crate::osm::ObjectKind;
use crate::pbf::Salvage;
use serde::Serialize;
use std::path::PathBuf;

/// The report of a repair.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The size of the input in bytes. For a compressed input, the size after unpacking.
    pub bytes: u64,
    /// The compression of the file as a whole, `gzip`, `bzip2` or `zstd`; `None` if it was not compressed.
    pub unpacked: Option<&'static str>,
    /// Whether the compressed file ends early or is damaged. The data before the damage is repaired.
    pub unpacked_in_part: bool,
    /// The format of the input if it is not PBF: `osm`, `osc`, `opl`, `o5m` or `o5c`. The data after the first damage
    /// is lost.
    pub text: Option<&'static str>,
    /// Whether the input is uncompressed, undamaged OPL whose last line has no line break at its end. The line is
    /// saved, although it may be incomplete.
    pub ends_within_line: bool,
    /// The number of readable header blobs. More than one means that files were concatenated.
    pub headers: u64,
    /// The error in the frame of a damaged header that could still be read.
    pub header_fault: Option<String>,
    /// The number of blobs that are whole; 0 for text.
    pub whole_blobs: u64,
    /// The blobs that were saved in part or with changes, in file order; none for text, whose changes are in `changes`.
    pub mended: Vec<MendedBlob>,
    /// The lost bytes and blobs, in file order.
    pub lost: Vec<Loss>,
    /// The numbers of objects in mended blobs or in text, and of parts of these objects that were left out or changed.
    pub changes: Salvage,
    /// The number of ways with fewer than two nodes, which are kept.
    pub short_ways: u64,
    /// Whether the objects were in canonical order, and each object occurred only once or, in a history file, with all
    /// its versions together.
    pub was_sorted: bool,
    /// The number of objects that occurred more than once or in older versions, and were left out. 0 if the objects
    /// were in order.
    pub duplicates: u64,
    /// Whether the file had a replication state.
    pub had_replication: bool,
    /// Whether the output has a replication state. If data was lost, the state is left out, because an update would not
    /// restore the data.
    pub keeps_replication: bool,
    /// The sequence number of the output's replication state; `None` if there is no number. This is the number of the
    /// last change file that the output contains completely.
    pub replication_sequence: Option<i64>,
    /// The other file that lost objects were taken from.
    pub from: Option<Taken>,
    /// The size, blobs and objects of the output; `None` if nothing was written.
    pub written: Option<Written>,
}

/// A blob that was saved in part or with changes.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct MendedBlob {
    /// The number of the blob among the blobs that were found. The header usually has number 0.
    pub blob: u32,
    /// The offset of the blob.
    pub offset: u64,
    /// The error in the blob.
    pub cause: String,
    /// The numbers of objects in the blob, and of parts of these objects that were left out or changed.
    #[serde(flatten)]
    pub changes: Salvage,
}

/// Bytes of the file that are lost.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Loss {
    /// The number of the blob; `None` if the loss is not a blob at a known place.
    pub blob: Option<u32>,
    /// The offset of the first byte.
    pub offset: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// The cause of the loss.
    pub cause: String,
    /// The number of lost objects; `None` if it is not known. 0 means that the lost bytes had no objects, according to
    /// the table of contents.
    pub objects: Option<u64>,
    /// The ids that lost objects can have.
    pub ids: Vec<LostIds>,
}

/// Ids of one kind that lost objects can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LostIds {
    /// The kind of the objects.
    pub kind: ObjectKind,
    /// The first id in canonical order that a lost object can have; `None` if there is no such limit.
    pub first: Option<i64>,
    /// The last id in canonical order that a lost object can have; `None` if there is no such limit.
    pub last: Option<i64>,
    /// Whether `first` and `last` are the ids of the first and the last lost object, as the table of contents or the
    /// index of the blob has them. Otherwise they are limits.
    pub is_exact: bool,
}

/// The file that lost objects were taken from.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Taken {
    /// The file.
    pub path: PathBuf,
    /// The number of objects that were taken.
    pub objects: u64,
}

impl Loss {
    /// Creates a loss whose objects are not known.
    pub(super) const fn new(blob: Option<u32>, offset: u64, bytes: u64, cause: String) -> Self {
        Self {
            blob,
            offset,
            bytes,
            cause,
            objects: None,
            ids: Vec::new(),
        }
    }

    /// Whether the lost bytes had no objects.
    pub fn is_without_objects(&self) -> bool {
        self.objects == Some(0)
    }
}

impl Report {
    /// Whether everything was saved, including the header.
    pub fn is_complete(&self) -> bool {
        self.headers > 0
            && self.lost.iter().all(Loss::is_without_objects)
            && !self.changes.is_lossy()
            && !self.unpacked_in_part
    }
}
