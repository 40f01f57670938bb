//! Finds the blobs of a file that may contain wanted objects.

use crate::error::Result;
use crate::file::PbfFile;
use crate::index::IdSets;
use crate::osm::ObjectKind;
use crate::pbf::BlobEntry;
use crate::runtime::Context;

/// A test for blobs that may contain wanted objects. It uses the id range of the blob and, if the file has one, the
/// table of ids.
pub(crate) struct IdSearch<F> {
    is_met: F,
    /// The offsets of the blobs that may contain wanted objects according to the table of ids, in ascending order;
    /// `None` without a table.
    named: Option<Vec<u64>>,
}

impl<F: Fn(ObjectKind, i64, i64) -> bool> IdSearch<F> {
    /// Creates a search for the objects that `is_met` selects. `is_met` is called with a kind and with the first and
    /// the last id of a range in canonical order. `is_met` must return whether wanted ids may lie in the range.
    pub(crate) fn new(file: &PbfFile, is_met: F, ctx: &Context) -> Result<Self> {
        let named = match file.usable_id_table(ctx)? {
            Some(table) => table.blob_offsets_of_id_ranges(&is_met, ctx)?,
            None => None,
        };
        Ok(Self { is_met, named })
    }

    /// Whether a blob may contain wanted objects. The id range of the blob is compared only if all its objects are of
    /// one kind.
    pub(crate) fn may_have_wanted(&self, entry: &BlobEntry) -> bool {
        let is_named = |offsets: &Vec<u64>| offsets.binary_search(&entry.offset).is_ok();
        self.named.as_ref().is_none_or(is_named)
            && match entry.kinds.single() {
                Some(kind) => (self.is_met)(kind, entry.min_id, entry.max_id),
                None => {
                    let mut kinds = ObjectKind::ALL.into_iter();
                    kinds.any(|kind| entry.kinds.contains(kind) && (self.is_met)(kind, 0, i64::MAX))
                }
            }
    }
}

/// Creates a search for the objects whose ids are in at least one of `sets`.
pub(crate) fn id_search_for<'s>(
    sets: &'s [&IdSets],
    file: &PbfFile,
    ctx: &Context,
) -> Result<IdSearch<impl Fn(ObjectKind, i64, i64) -> bool + use<'s>>> {
    let is_met = move |kind, first, last| {
        let mut sets = sets.iter();
        sets.any(|set: &&IdSets| set.of(kind).may_meet(first, last))
    };
    IdSearch::new(file, is_met, ctx)
}
