//! The numerically smallest and largest ids of blobs. The entry of a blob contains the first and the last id in
//! canonical order instead. In canonical order, negative ids descend and precede positive ids.

use crate::error::Result;
use crate::file::PlannedFile;
use crate::pbf::BlobEntry;
use std::collections::BTreeMap;

/// The smallest ids of those blobs whose entries do not contain the smallest id. Each blob contains only one kind.
#[derive(Debug, Default)]
pub(super) struct IdSpans {
    /// The smallest id in a blob, by the offset of the blob.
    smallest: BTreeMap<u64, i64>,
}

impl IdSpans {
    /// Decodes the blobs that contain only one kind, with both positive and non-positive ids. A file in canonical order
    /// has at most one of these blobs for each kind.
    pub(super) fn read(source: PlannedFile<'_>) -> Result<Self> {
        let is_open = |entry: &BlobEntry| {
            entry.kinds.single().is_some()
                && id_span_from_ends(entry.min_id, entry.max_id).is_none()
        };
        let mut smallest = BTreeMap::new();
        if source.plan.entries.iter().any(is_open) {
            source.ctx.expect_phases(1);
            source.scan("read negative ids").run(
                is_open,
                |entry, block| {
                    let mut least = i64::MAX;
                    block.for_each_id(|_, id| least = least.min(id))?;
                    Ok((entry.offset, least))
                },
                |(offset, least)| {
                    smallest.insert(offset, least);
                },
            )?;
        }
        Ok(Self { smallest })
    }

    /// Returns the smallest and the largest id of a blob of one kind.
    pub(super) fn span_of(&self, entry: &BlobEntry) -> (i64, i64) {
        id_span_from_ends(entry.min_id, entry.max_id)
            .unwrap_or_else(|| (self.smallest[&entry.offset], entry.max_id))
    }
}

/// Returns the smallest and the largest of a list of ids, given its first and its last id in canonical order. Returns
/// `None` if `first <= 0 < last`. In this case, the smallest id can be in the middle of the list, as in `-1, -2, 3`.
pub(super) const fn id_span_from_ends(first: i64, last: i64) -> Option<(i64, i64)> {
    match (first, last) {
        (1.., _) => Some((first, last)),
        (_, ..=0) => Some((last, first)),
        _ => None,
    }
}

/// Returns the number of ids from the smallest to the largest, both included; `u64::MAX` if the number does not fit.
pub(super) fn span_width((smallest, largest): (i64, i64)) -> u64 {
    largest.abs_diff(smallest).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_of_only_negative_ids_comes_last() {
        assert_eq!(id_span_from_ends(-1, -30), Some((-30, -1)));
        assert_eq!(id_span_from_ends(0, -30), Some((-30, 0)));
        assert_eq!(id_span_from_ends(1, i64::MAX), Some((1, i64::MAX)));
        assert_eq!(id_span_from_ends(-1, 5), None);
        assert_eq!(id_span_from_ends(0, 5), None);
        assert_eq!(span_width((-30, 5)), 36);
        assert_eq!(span_width((i64::MIN, i64::MAX)), u64::MAX);
    }
}
