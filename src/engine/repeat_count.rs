//! Counts objects that occur again. An object occurs again if an earlier object has the same kind and id. Decoded
//! objects in canonical order are compared with their neighbours. For blobs that are not decoded, only the repetitions
//! that their entries prove are counted.

use crate::error::{Advice, FormatResult};
use crate::file::PbfFile;
use crate::formats::FileContent;
use crate::osm::{ObjectId, TypeThenId, id_from_rank, id_rank};
use crate::pbf::{BlobEntry, BlobFlags, Block, feature};
use crate::runtime::Context;
use rustc_hash::FxHashSet;
use std::path::Path;

/// Objects that occur again.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RepeatCount {
    /// The number of these objects.
    pub count: u64,
    /// The first of these objects in canonical order, as far as they are known.
    pub first: Option<TypeThenId>,
    /// Whether there may be more of them.
    pub is_minimum: bool,
}

impl RepeatCount {
    /// Counts the objects that follow an object with the same kind and id, in a payload in canonical order.
    pub(crate) fn of_payload(payload: &[u8]) -> FormatResult<Self> {
        let mut neighbours = RepeatedNeighbours::default();
        Block::parse_without_strings(payload)?
            .for_each_id(|kind, id| neighbours.add_key((kind, id_rank(id))))?;
        Ok(neighbours.found)
    }

    /// Adds other objects that occur again.
    pub(crate) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.is_minimum |= other.is_minimum && other.count > 0;
        self.first = match (self.first, other.first) {
            (Some(first), Some(other)) => Some(first.min(other)),
            (first, other) => first.or(other),
        };
    }

    /// Prints a warning with the number of objects, unless it is 0. `path` is the file of the objects; `None` if they
    /// are in several files.
    pub(crate) fn warn_of_repeats(&self, path: Option<&Path>, ctx: &Context) {
        if self.count == 0 {
            return;
        }
        let place = path.map_or_else(String::new, |path| format!("{}: ", path.display()));
        let more = if self.is_minimum { " or more" } else { "" };
        let first = self.first.map_or_else(String::new, |(kind, rank)| {
            let id = id_from_rank(rank);
            let name = if self.is_minimum { "one" } else { "the first" };
            format!(" ({name} is {})", ObjectId { kind, id })
        });
        ctx.warn_with_advice(
            format!(
                "{place}objects that occur again: {}{more}{first}",
                self.count
            ),
            Advice::Merge,
        );
    }
}

/// Counts the objects that follow an object with the same kind and id, in canonical order.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RepeatedNeighbours {
    last: Option<TypeThenId>,
    /// The objects that were found.
    pub found: RepeatCount,
}

impl RepeatedNeighbours {
    /// Compares an object with the object before it, and counts it if both have the same key.
    pub(crate) fn add_key(&mut self, key: TypeThenId) {
        if self.last.replace(key) == Some(key) {
            self.found.count += 1;
            self.found.first.get_or_insert(key);
        }
    }
}

/// Finds objects that occur again in blobs that are not decoded. Uses only the entries of the blobs. An entry proves
/// that its first and its last object are in the blob. A content hash proves that two blobs have the same objects. An
/// entry with the flag [`BlobFlags::SORTED`] but without [`BlobFlags::UNIQUE_IDS`] proves that an object occurs twice
/// in the blob.
#[derive(Debug, Default)]
pub(crate) struct ProvenRepeats {
    /// Whether the blobs are known to be in canonical order, so that only neighbours can have the same objects.
    is_in_order: bool,
    /// The first and the last object of each blob that was seen.
    ends: FxHashSet<TypeThenId>,
    /// The hash, the length and the first object of each blob that was seen.
    blobs: FxHashSet<(u64, u32, TypeThenId)>,
    has_deleted: bool,
    found: RepeatCount,
}

impl ProvenRepeats {
    /// Creates a count. `is_in_order` tells whether the blobs are known to be in canonical order.
    pub(crate) fn new(is_in_order: bool) -> Self {
        Self {
            is_in_order,
            ..Self::default()
        }
    }

    /// Compares the entry of a blob with the entries that were seen before.
    pub(crate) fn compare_entry(&mut self, entry: &BlobEntry) {
        self.has_deleted |= entry.flags.has(BlobFlags::DELETED);
        let ends = entry.first_sort_key().zip(entry.last_sort_key());
        let Some((first, last)) = ends.filter(|_| is_scanned(entry) && entry.count > 0) else {
            return;
        };
        let blob = (entry.hash, entry.payload_len, first);
        let is_hashed =
            entry.flags.has(BlobFlags::HASHED) && entry.flags.has(BlobFlags::UNIQUE_IDS);
        let mut again = RepeatCount {
            is_minimum: true,
            ..RepeatCount::default()
        };
        if is_hashed && self.blobs.contains(&blob) {
            again.count = u64::from(entry.count);
            again.first = Some(first);
        } else {
            let keys = [Some(first), (first != last).then_some(last)];
            for key in keys.into_iter().flatten() {
                if self.ends.contains(&key) {
                    again.count += 1;
                    again.first.get_or_insert(key);
                }
            }
            again.count += u64::from(has_proven_repeat(entry));
        }
        if self.is_in_order {
            self.ends.clear();
            self.blobs.clear();
        }
        self.ends.extend([first, last]);
        if is_hashed {
            self.blobs.insert(blob);
        }
        self.found.add(again);
    }

    /// Returns the objects that occur again. If a blob has deleted versions, the file has a history, in which objects
    /// may occur again. In this case, the returned count is 0.
    pub(crate) fn proven_repeats(&self) -> RepeatCount {
        if self.has_deleted {
            RepeatCount::default()
        } else {
            self.found
        }
    }
}

/// Whether a file is known or stated to be a history or a change file, whose objects have several versions.
pub(crate) fn is_versioned(file: &PbfFile, ctx: &Context) -> bool {
    ctx.input_is_history
        || ctx.input_is_change
        || FileContent::of_name(file.input.path(), None).is_some()
        || file.header.has(feature::HISTORY)
}

/// Whether the contents of a blob are known from an index or from decoding it.
pub(crate) fn is_scanned(entry: &BlobEntry) -> bool {
    entry.flags.has(BlobFlags::SCANNED)
}

/// Whether the entry of a blob proves that an object occurs twice in it.
pub(crate) fn has_proven_repeat(entry: &BlobEntry) -> bool {
    entry.count > 0
        && is_scanned(entry)
        && entry.flags.has(BlobFlags::SORTED)
        && !entry.flags.has(BlobFlags::UNIQUE_IDS)
}
