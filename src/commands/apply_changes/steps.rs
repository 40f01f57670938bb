//! Assigns the changes to the blobs of the base.

use crate::file::BlobPlan;
use crate::formats::ChangeSet;
use crate::osm::{ObjectKind, TypeThenId};
use crate::pbf::{BlobEntry, BlobFlags, TARGET_ELEMENTS, TARGET_PAYLOAD};

use crate::io::SizeHint;
use crate::runtime::WorkItem;
use std::ops::Range;

/// A step that produces one part of the output from blobs and changes. Steps are in canonical order.
#[derive(Debug, Clone)]
pub(super) enum ApplyStep {
    /// Adjacent blobs of the same kinds that are copied. Most blobs of a large file are copied, and a step for each of
    /// them would take longer than all other work.
    Copy(Vec<BlobEntry>),
    /// A blob that is decoded, or adjacent blobs that are joined, each with its changes as indices into
    /// [`ChangeSet::changes`].
    Edit(Vec<(BlobEntry, Range<usize>)>),
    /// The indices of changes between two blobs of the base. The objects of the changes become new blobs.
    Insert(Range<usize>),
}

impl WorkItem for ApplyStep {
    fn input_bytes(&self) -> u64 {
        match self {
            Self::Copy(blobs) => blobs.iter().map(|blob| u64::from(blob.frame_len)).sum(),
            Self::Edit(blobs) => {
                let lens = blobs.iter().map(|(blob, _)| u64::from(blob.frame_len));
                lens.sum()
            }
            Self::Insert(_) => 0,
        }
    }

    /// Estimates the memory in bytes for the frames that are read and for the new frames. The frames of copied blobs
    /// are not read.
    fn held_bytes(&self) -> u64 {
        match self {
            Self::Copy(_) => 0,
            Self::Edit(_) => self.input_bytes() * 2,
            Self::Insert(changes) => changes.len() as u64 * 64,
        }
    }
}

impl ApplyStep {
    /// Whether the step contains only nodes.
    pub(super) fn is_nodes(&self, changes: &ChangeSet) -> bool {
        let kind = match self {
            Self::Copy(blobs) => blobs.first().and_then(|entry| entry.kinds.single()),
            Self::Edit(blobs) => blobs.first().and_then(|(entry, _)| entry.kinds.single()),
            Self::Insert(range) => Some(changes.changes()[range.start].key.0),
        };
        kind == Some(ObjectKind::Node)
    }

    /// Returns the size hint for the part of the output that this step produces.
    pub(super) fn size_hint(&self) -> SizeHint {
        match self {
            Self::Copy(blobs) => {
                let first = blobs.first().map_or(0, |entry| entry.offset);
                SizeHint::copy_of(first, self.input_bytes())
            }
            Self::Edit(_) => SizeHint::new_bytes(self.input_bytes()),
            Self::Insert(_) => SizeHint::default(),
        }
    }
}

/// A blob of the base, or changes that become new blobs.
enum Planned {
    /// A blob, with its changes as indices into [`ChangeSet::changes`]; `None` for a blob that is copied unless it is
    /// joined.
    Blob(BlobEntry, Option<Range<usize>>),
    /// The indices of changes between two blobs.
    Insert(Range<usize>),
}

/// A blob of the base, its first and last key, and the range of the changes that have been assigned to it so far.
struct Slot {
    entry: BlobEntry,
    changes: Range<usize>,
    first: TypeThenId,
    last: TypeThenId,
}

impl Slot {
    /// Whether the blob has room for `more` objects of `kind` at one of its ends. `edge` is the key of the object at
    /// this end. A blob with changes has to be re-encoded anyway, so its limit is higher than that of a blob that could
    /// be copied.
    fn has_room(&self, edge: TypeThenId, kind: ObjectKind, more: usize) -> bool {
        let limit = if self.changes.is_empty() {
            TARGET_ELEMENTS
        } else {
            TARGET_ELEMENTS + TARGET_ELEMENTS / 4
        };
        edge.0 == kind && self.entry.count as usize + more <= limit
    }
}

/// Assigns every change to a blob or to a gap between blobs, and returns the steps. The changes of a gap go to an
/// adjacent blob if it has room, and become new blobs otherwise. `is_rewritten` returns whether a blob has to be
/// decoded even without changes.
pub(super) fn plan_steps(
    plan: &BlobPlan,
    changes: &ChangeSet,
    is_rewritten: impl Fn(&BlobEntry) -> bool,
) -> Vec<ApplyStep> {
    let mut slots: Vec<Slot> = Vec::with_capacity(plan.entries.len());
    let mut empty: Vec<Planned> = Vec::new();
    for entry in &plan.entries {
        match (entry.first_key(), entry.last_key()) {
            (Some(first), Some(last)) => {
                slots.push(Slot {
                    entry: *entry,
                    changes: changes.range(first, last),
                    first,
                    last,
                });
            }
            // A blob without nodes, ways or relations has no position in the order, so it is copied at the end.
            _ => empty.push(Planned::Blob(*entry, None)),
        }
    }
    let mut steps = Vec::with_capacity(slots.len() + 8);
    let mut next_change = 0;
    // The ranges of changes that become new blobs, each with the index of the slot before which these blobs are
    // written.
    let mut inserts: Vec<(usize, Range<usize>)> = Vec::new();
    for index in 0..=slots.len() {
        let gap_end = slots
            .get(index)
            .map_or(changes.changes().len(), |slot| slot.changes.start);
        let gap = next_change..gap_end.max(next_change);
        for part in by_kind(changes, gap.clone()) {
            if !attach(&mut slots, index, &part, &gap, changes) {
                inserts.push((index, part));
            }
        }
        next_change = slots
            .get(index)
            .map_or(gap_end, |slot| slot.changes.end.max(gap_end));
    }
    let mut inserts = inserts.into_iter().peekable();
    for (index, slot) in slots.into_iter().enumerate() {
        while let Some((_, part)) = inserts.next_if(|(before, _)| *before == index) {
            steps.push(Planned::Insert(part));
        }
        let is_copied = slot.changes.is_empty() && !is_rewritten(&slot.entry);
        steps.push(Planned::Blob(
            slot.entry,
            (!is_copied).then_some(slot.changes),
        ));
    }
    steps.extend(inserts.map(|(_, part)| Planned::Insert(part)));
    steps.extend(empty);
    join_small(steps, &Fullness::of(plan))
}

/// The minimum of the numbers in [`Fullness`]. A blob with fewer objects has room for more, even if all blobs of the
/// file are small.
const FULL_AT_LEAST: u32 = TARGET_ELEMENTS as u32 / 4;

/// The number of objects at which a blob counts as full, for each kind.
struct Fullness([u32; 3]);

impl Fullness {
    /// Returns the number of objects in the largest blob of each kind, but at least [`FULL_AT_LEAST`] and at most
    /// [`TARGET_ELEMENTS`]. A file that was written with small blobs keeps its blob size. The lower limit is for files
    /// in which all blobs have become small.
    fn of(plan: &BlobPlan) -> Self {
        let mut most = [FULL_AT_LEAST; 3];
        for entry in &plan.entries {
            if let Some(kind) = entry.kinds.single() {
                let most = &mut most[kind as usize];
                *most = entry.count.max(*most).min(TARGET_ELEMENTS as u32);
            }
        }
        Self(most)
    }

    fn full_size(&self, kind: ObjectKind) -> u32 {
        self.0[kind as usize]
    }

    /// Whether a blob with `count` objects and `bytes` bytes of payload is small enough to be joined with its
    /// neighbour. `count` must be less than a quarter of the objects of a full blob, and `bytes` less than a quarter of
    /// [`TARGET_PAYLOAD`].
    fn is_small(&self, kind: ObjectKind, count: u32, bytes: u64) -> bool {
        count < self.full_size(kind) / 4 && bytes < TARGET_PAYLOAD as u64 / 4
    }
}

/// Returns the payload size of a blob in bytes, estimated as four times the frame size if the index does not record it.
fn content_bytes(entry: &BlobEntry) -> u64 {
    match entry.payload_len {
        0 => u64::from(entry.frame_len) * 4,
        known => known.into(),
    }
}

/// Adjacent blobs of one kind that may be joined, as collected by [`join_small`].
#[derive(Default)]
struct Neighbours {
    /// The blobs, each with its changes; `None` for a blob that is copied unless it is joined.
    blobs: Vec<(BlobEntry, Option<Range<usize>>)>,
    kind: Option<ObjectKind>,
    /// The number of objects in the blobs, plus one for each change, because a change may add an object.
    count: u32,
    /// The total size of the payloads in bytes.
    bytes: u64,
    /// Whether at least one of the blobs is rewritten even if they are not joined.
    any_edited: bool,
}

impl Neighbours {
    /// Removes the collected blobs, and appends one step to `out` that joins them. If there is only one blob, or if all
    /// blobs could be copied, appends a separate step for each blob instead.
    fn end(&mut self, out: &mut Vec<ApplyStep>) {
        let Self {
            blobs, any_edited, ..
        } = std::mem::take(self);
        let is_single = blobs.len() < 2;
        let blobs = blobs.into_iter();
        if is_single || !any_edited {
            blobs.for_each(|(entry, changes)| push_blob(entry, changes, out));
        } else {
            let joined = blobs.map(|(entry, changes)| (entry, changes.unwrap_or(0..0)));
            out.push(ApplyStep::Edit(joined.collect()));
        }
    }
}

/// The maximum number of blobs that one step copies.
const MAX_COPIES: usize = 4096;

/// Appends the step for a blob that is not joined. Copies adjacent blobs in one step.
fn push_blob(entry: BlobEntry, changes: Option<Range<usize>>, out: &mut Vec<ApplyStep>) {
    match (changes, out.last_mut()) {
        (Some(changes), _) => out.push(ApplyStep::Edit(vec![(entry, changes)])),
        (None, Some(ApplyStep::Copy(blobs)))
            if blobs.len() < MAX_COPIES
                && blobs.last().is_some_and(|last| last.kinds == entry.kinds) =>
        {
            blobs.push(entry);
        }
        (None, _) => out.push(ApplyStep::Copy(vec![entry])),
    }
}

/// Joins small blobs with neighbours that have room, if at least one of them has to be re-encoded anyway. Otherwise,
/// each update would add to the small blobs of the file.
fn join_small(planned: Vec<Planned>, fullness: &Fullness) -> Vec<ApplyStep> {
    let mut joined = Vec::new();
    let mut run = Neighbours::default();
    for planned in planned {
        let (entry, changes) = match planned {
            Planned::Blob(entry, changes) => (entry, changes),
            Planned::Insert(changes) => {
                run.end(&mut joined);
                joined.push(ApplyStep::Insert(changes));
                continue;
            }
        };
        let Some(kind) = entry.kinds.single() else {
            run.end(&mut joined);
            push_blob(entry, changes, &mut joined);
            continue;
        };
        let is_edited = changes.is_some();
        let more = changes.as_ref().map_or(0, Range::len);
        let count = entry.count.saturating_add(more as u32);
        let all = run.count.saturating_add(count);
        let bytes = content_bytes(&entry);
        let is_small = fullness.is_small(kind, entry.count, bytes);
        let run_is_small = fullness.is_small(kind, run.count, run.bytes);
        // Only the last blobs of a file have parts of the table of contents. If such a blob were joined with a large
        // blob, the writer would divide the result again.
        let any_small = if entry.flags.has(BlobFlags::HAS_TABLE) {
            is_small && run_is_small
        } else {
            is_small || run_is_small
        };
        let has_room =
            all <= fullness.full_size(kind) && run.bytes + bytes <= TARGET_PAYLOAD as u64 * 3 / 4;
        let fits = run.kind == Some(kind) && any_small && has_room;
        if !fits || !(is_small || is_edited) {
            run.end(&mut joined);
        }
        if is_small || is_edited {
            run.kind = Some(kind);
            run.count = run.count.saturating_add(count);
            run.bytes += bytes;
            run.any_edited |= is_edited;
            run.blobs.push((entry, changes));
        } else {
            push_blob(entry, changes, &mut joined);
        }
    }
    run.end(&mut joined);
    joined
}

/// Assigns the changes in `part` to the blob before or after `gap`. `part` is a part of `gap` that contains one kind of
/// object, and `next_slot` is the index of the slot after the gap. Returns `false` if neither blob has room, if other
/// changes lie between `part` and the blob, or if all changes are deletions.
fn attach(
    slots: &mut [Slot],
    next_slot: usize,
    part: &Range<usize>,
    gap: &Range<usize>,
    changes: &ChangeSet,
) -> bool {
    let inserted = &changes.changes()[part.clone()];
    let new = inserted
        .iter()
        .filter(|change| !change.is_deletion())
        .count();
    let (Some(kind), true) = (inserted.first().map(|change| change.key.0), new > 0) else {
        return false;
    };
    let (before, after) = slots.split_at_mut(next_slot);
    // The changes of a blob are one range, so a part can be added only if it is adjacent to that range. Once a part of
    // the gap becomes new blobs, the new blobs lie between the blob before the gap and the later parts.
    if let Some(slot) = before.last_mut()
        && slot.has_room(slot.last, kind, new)
        && (slot.changes.is_empty() && part.start == gap.start || slot.changes.end == part.start)
    {
        if slot.changes.is_empty() {
            slot.changes.start = part.start;
        }
        slot.changes.end = part.end;
        return true;
    }
    if let Some(slot) = after.first_mut()
        && slot.has_room(slot.first, kind, new)
        && part.end == gap.end
        && (slot.changes.is_empty() || slot.changes.start == part.end)
    {
        if slot.changes.is_empty() {
            slot.changes.end = part.end;
        }
        slot.changes.start = part.start;
        return true;
    }
    false
}

/// Cuts a range of changes into parts that contain one kind of object and at most [`TARGET_ELEMENTS`] changes. Each
/// part becomes a separate step, so that all cores work on the new objects.
fn by_kind(changes: &ChangeSet, range: Range<usize>) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let all = &changes.changes()[range.clone()];
    for (index, change) in range.zip(all) {
        let kind_at = |at: usize| changes.changes()[at].key.0;
        match parts.last_mut() {
            Some(part) if kind_at(part.start) == change.key.0 && part.len() < TARGET_ELEMENTS => {
                part.end = index + 1;
            }
            _ => parts.push(index..index + 1),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::osm::KindSet;

    fn edited(number: u64, count: u32, payload_len: u32) -> Planned {
        let entry = BlobEntry {
            offset: number * 1000,
            frame_len: 1000,
            payload_len,
            count,
            kinds: KindSet::of(ObjectKind::Way),
            ..BlobEntry::default()
        };
        Planned::Blob(entry, Some(0..1))
    }

    #[test]
    fn blobs_of_few_objects_are_joined_unless_these_are_large() {
        let fullness = Fullness([8000; 3]);
        for (payload_len, size_hint) in [(50_000, 1), (0, 1), (3 << 20, 4), (900_000, 2)] {
            let steps = (0..4).map(|number| edited(number, 400, payload_len));
            let joined = join_small(steps.collect(), &fullness);
            assert_eq!(joined.len(), size_hint, "{payload_len}");
        }
    }

    #[test]
    fn adjacent_blobs_that_are_copied_are_one_step() {
        let blobs = (0..10_000).map(|number| {
            let Planned::Blob(mut entry, _) = edited(number, 8000, 50_000) else {
                unreachable!();
            };
            if number < 3000 {
                entry.kinds = KindSet::of(ObjectKind::Node);
            }
            Planned::Blob(entry, (number == 5000).then_some(0..1))
        });
        let steps = join_small(blobs.collect(), &Fullness([8000; 3]));
        let lens = steps.iter().map(|step| match step {
            ApplyStep::Copy(blobs) => blobs.len(),
            _ => 0,
        });
        assert_eq!(lens.collect::<Vec<_>>(), [3000, 2000, 0, 4096, 903]);
    }
}
