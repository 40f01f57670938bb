//! Finds the segments that stay the same when a block of ways or relations is edited.

use super::{SEGMENT_LEN, Segment, Segmented};
use memchr::memmem;

/// The minimum length in bytes of a segment of ways or relations. A shorter segment is joined with the next one.
pub(super) const MIN_SEGMENT_LEN: usize = SEGMENT_LEN / 4;

/// Returns the segments of `old` whose uncompressed bytes occur in `payload`, in the same order. For each segment,
/// returns its offset in `payload`, the segment itself, and its compressed bytes. Omits segments that are shorter than
/// [`MIN_SEGMENT_LEN`]. Also omits a segment if the new segment before or after it would be shorter than that.
pub(super) fn kept_segments<'a>(
    payload: &[u8],
    old: Segmented<'a>,
) -> Vec<(usize, &'a Segment, &'a [u8])> {
    let (mut kept, mut done) = (Vec::new(), 0);
    let mut search = KeptPartSearch {
        payload,
        done: 0,
        old_done: 0,
    };
    for segment in old.segments {
        let bytes = old.payload.get(segment.payload.clone());
        let (Some(bytes), Some(data)) = (bytes, old.data.get(segment.data.clone())) else {
            return Vec::new();
        };
        if bytes.len() < MIN_SEGMENT_LEN {
            continue;
        }
        let Some(at) = search.find(bytes, segment.payload.start) else {
            continue;
        };
        if at == done || at - done >= MIN_SEGMENT_LEN {
            kept.push((at, segment, data));
            done = at + bytes.len();
        }
    }
    if (1..MIN_SEGMENT_LEN).contains(&(payload.len() - done)) {
        kept.pop();
    }
    kept
}

/// A search in a new payload for parts of an old payload, from the first part to the last.
struct KeptPartSearch<'p> {
    payload: &'p [u8],
    /// The end in `payload` of the last part that was found.
    done: usize,
    /// The end in the old payload of the last part that was found.
    old_done: usize,
}

impl KeptPartSearch<'_> {
    /// If an edit inserts more bytes than this between two parts, the second part may not be found.
    const SLACK: usize = 1 << 18;
    /// The length in bytes of the needle. The needle is the start of the part that is searched for.
    const NEEDLE: usize = 64;
    /// The maximum number of occurrences of the needle that are compared.
    const MAX_OCCURRENCES: usize = 8;

    /// Returns the offset in `payload` of a part that begins at offset `old_start` of the old payload.
    fn find(&mut self, part: &[u8], old_start: usize) -> Option<usize> {
        let rest = self.payload.get(self.done..)?;
        // Most edits insert or remove no bytes between the last part that was found and this one, so the usual offset
        // is tried first.
        let usual = old_start - self.old_done;
        let at = if rest.get(usual..).is_some_and(|rest| rest.starts_with(part)) {
            usual
        } else {
            let within = rest.get(..rest.len().min(usual + part.len() + Self::SLACK))?;
            let needle = part.get(..Self::NEEDLE)?;
            memmem::find_iter(within, needle)
                .take(Self::MAX_OCCURRENCES)
                .find(|at| rest.get(*at..).is_some_and(|rest| rest.starts_with(part)))?
        };
        let at = self.done + at;
        (self.done, self.old_done) = (at + part.len(), old_start + part.len());
        Some(at)
    }
}
