//! Assigns the changes to the blobs of the base.

use crate::file::BlobPlan;
use crate::formats::{Change, ChangeSet};
use crate::io::SizeHint;
use crate::osm::{ObjectKind, TypeThenId};
use crate::pbf::{BlobEntry, BlobFlags, TARGET_ELEMENTS, TARGET_PAYLOAD};
use crate::runtime::WorkItem;
use std::ops::Range;

/// The maximum number of blobs that one step copies.
const MAX_COPIES: usize = 4096;

/// A blob with its changes, as indices into [`ChangeSet::changes`].
type EditedBlob = (BlobEntry, Range<usize>);

/// A step that produces one part of the output from blobs and changes. Steps are in canonical order.
#[derive(Debug, Clone)]
pub(super) enum ApplyStep {
    /// Adjacent blobs of the same kinds that are copied. Most blobs of a large file are copied, and a step for each of
    /// them would take longer than all other work.
    Copy(Vec<BlobEntry>),
    /// A blob that is decoded, or adjacent blobs that are joined.
    Edit(Vec<EditedBlob>),
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
    pub(super) fn has_only_nodes(&self, changes: &ChangeSet) -> bool {
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

/// Assigns every change to a blob or to a gap between blobs, and returns the steps. The changes of a gap go to an
/// adjacent blob if the blob has room, and become new blobs otherwise. `is_rewritten` returns whether a blob has to be
/// decoded even without changes.
pub(super) fn plan_steps(
    plan: &BlobPlan,
    changes: &ChangeSet,
    is_rewritten: impl Fn(&BlobEntry) -> bool,
) -> Vec<ApplyStep> {
    let (mut steps, all) = (StepList::of(plan), changes.changes());
    let ordered = plan.entries.iter().filter_map(|entry| {
        let range = changes.range(entry.first_sort_key()?, entry.last_sort_key()?);
        Some((*entry, range))
    });
    let mut before: Option<EditedBlob> = None;
    for mut after in ordered.map(Some).chain([None]) {
        let mut start = before.as_ref().map_or(0, |blob| blob.1.end);
        let end = after.as_ref().map_or(all.len(), |blob| blob.1.start);
        let mut inserts = Vec::new();
        // Each part becomes a separate step, so that all cores work on the new objects.
        let kinds = all[start..end.max(start)].chunk_by(|one, next| one.key.0 == next.key.0);
        for part in kinds.flat_map(|kind| kind.chunks(TARGET_ELEMENTS)) {
            let range = start..start + part.len();
            start = range.end;
            match (&mut before, &mut after) {
                (Some(blob), _)
                    if blob.1.end == range.start
                        && has_room(blob, blob.0.last_sort_key(), part) =>
                {
                    blob.1.end = range.end;
                }
                (_, Some(blob))
                    if blob.1.start == range.end
                        && has_room(blob, blob.0.first_sort_key(), part) =>
                {
                    blob.1.start = range.start;
                }
                _ => inserts.push(range),
            }
        }
        if let Some((entry, changes)) = before {
            let is_copied = changes.is_empty() && !is_rewritten(&entry);
            steps.add_blob(entry, (!is_copied).then_some(changes));
        }
        for range in inserts {
            steps.add_insert(range);
        }
        before = after;
    }
    // A blob without nodes, ways or relations has no position in the order, so it is copied at the end.
    let is_empty = |entry: &&BlobEntry| entry.first_sort_key().is_none();
    for entry in plan.entries.iter().filter(is_empty) {
        steps.add_blob(*entry, None);
    }
    steps.finish()
}

/// Whether a blob has room for the objects of `part`, a part of the changes. `end` is the key of the first or the last
/// object of the blob. The new objects belong next to this object. A blob that already has changes is re-encoded
/// anyway, and has a higher limit than a blob that could be copied.
fn has_room((entry, changes): &EditedBlob, end: Option<TypeThenId>, part: &[Change]) -> bool {
    let new = part.iter().filter(|change| !change.is_deletion()).count();
    let more = TARGET_ELEMENTS / 4 * usize::from(!changes.is_empty());
    let is_of_kind = end.map(|end| end.0) == part.first().map(|change| change.key.0);
    new > 0 && is_of_kind && entry.count as usize + new <= TARGET_ELEMENTS + more
}

/// The steps of an output, to which blobs and changes are added in order.
///
/// Small blobs are joined with neighbours that have room, if at least one of them has to be re-encoded anyway. Without
/// joining, each update would increase the number of small blobs. A blob is small if it has less than a quarter of the
/// objects of a full blob, and less than a quarter of [`TARGET_PAYLOAD`]. The other blobs with changes are edited one
/// by one, and the other blobs without changes are copied.
#[derive(Default)]
struct StepList {
    steps: Vec<ApplyStep>,
    /// The number of objects of a full blob, for each kind.
    full: [u32; 3],
    /// The blobs that were added last and may be joined. All are of one kind. Each has its changes, or `None` if the
    /// blob is copied unless it is joined.
    run: Vec<(BlobEntry, Option<Range<usize>>)>,
    /// The number of objects in `run`, plus one for each change, because a change may add an object.
    count: u32,
    /// The total size of the payloads in `run` in bytes.
    bytes: u64,
}

impl StepList {
    /// Creates a list without steps. The size of a full blob is the number of objects of the largest blob of the same
    /// kind. A file that was written with small blobs therefore keeps its blob size. The size is limited to the range
    /// from `TARGET_ELEMENTS / 4` to [`TARGET_ELEMENTS`]. The minimum is for files in which all blobs have become
    /// small.
    fn of(plan: &BlobPlan) -> Self {
        let mut full = [TARGET_ELEMENTS as u32 / 4; 3];
        for entry in &plan.entries {
            if let Some(kind) = entry.kinds.single() {
                let most = &mut full[kind as usize];
                *most = entry.count.max(*most).min(TARGET_ELEMENTS as u32);
            }
        }
        Self {
            full,
            ..Self::default()
        }
    }

    /// Adds changes that become new blobs.
    fn add_insert(&mut self, changes: Range<usize>) {
        self.flush_blob_run();
        self.steps.push(ApplyStep::Insert(changes));
    }

    /// Adds a blob with its changes. `changes` is `None` for a blob that is copied unless it is joined.
    fn add_blob(&mut self, entry: BlobEntry, changes: Option<Range<usize>>) {
        let full = entry
            .kinds
            .single()
            .map_or(0, |kind| self.full[kind as usize]);
        let is_small =
            |count: u32, bytes: u64| count < full / 4 && bytes < TARGET_PAYLOAD as u64 / 4;
        let bytes = match entry.payload_len {
            // An estimate, for a blob whose index does not record the size.
            0 => u64::from(entry.frame_len) * 4,
            known => known.into(),
        };
        let blob_is_small = is_small(entry.count, bytes);
        let run_is_small = is_small(self.count, self.bytes);
        // Only the last blobs of a file have parts of the table of contents. If such a blob were joined with a large
        // blob, the writer would divide the result again.
        let any_small = if entry.flags.has(BlobFlags::HAS_TABLE) {
            blob_is_small && run_is_small
        } else {
            blob_is_small || run_is_small
        };
        let more = changes.as_ref().map_or(0, Range::len);
        let count = entry.count.saturating_add(more as u32);
        let is_of_kind = self
            .run
            .last()
            .is_some_and(|(last, _)| last.kinds == entry.kinds);
        let has_room = self.count.saturating_add(count) <= full
            && self.bytes + bytes <= TARGET_PAYLOAD as u64 * 3 / 4;
        let may_join = full > 0 && (blob_is_small || changes.is_some());
        if !(may_join && is_of_kind && any_small && has_room) {
            self.flush_blob_run();
        }
        self.count = self.count.saturating_add(count);
        self.bytes += bytes;
        self.run.push((entry, changes));
        if !may_join {
            self.flush_blob_run();
        }
    }

    /// Appends the steps for the blobs in `run`. Joined blobs are one step. Otherwise, each edited blob is a step of
    /// its own, and adjacent copied blobs are one step.
    fn flush_blob_run(&mut self) {
        (self.count, self.bytes) = (0, 0);
        let Self { steps, run, .. } = self;
        if run.len() > 1 && run.iter().any(|(_, changes)| changes.is_some()) {
            let joined = run.drain(..);
            let joined = joined.map(|(entry, changes)| (entry, changes.unwrap_or(0..0)));
            steps.push(ApplyStep::Edit(joined.collect()));
        }
        for (entry, changes) in run.drain(..) {
            match (changes, steps.last_mut()) {
                (Some(changes), _) => steps.push(ApplyStep::Edit(vec![(entry, changes)])),
                (None, Some(ApplyStep::Copy(blobs)))
                    if blobs.len() < MAX_COPIES
                        && blobs.last().is_some_and(|last| last.kinds == entry.kinds) =>
                {
                    blobs.push(entry);
                }
                (None, _) => steps.push(ApplyStep::Copy(vec![entry])),
            }
        }
    }

    /// Returns the steps.
    fn finish(mut self) -> Vec<ApplyStep> {
        self.flush_blob_run();
        self.steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::osm::KindSet;

    type Blob = (BlobEntry, Option<Range<usize>>);

    fn edited_blob(number: u64, count: u32, payload_len: u32) -> Blob {
        let entry = BlobEntry {
            offset: number * 1000,
            frame_len: 1000,
            payload_len,
            count,
            kinds: KindSet::of(ObjectKind::Way),
            ..BlobEntry::default()
        };
        (entry, Some(0..1))
    }

    fn steps_of(blobs: impl Iterator<Item = Blob>) -> Vec<ApplyStep> {
        let mut steps = StepList {
            full: [8000; 3],
            ..StepList::default()
        };
        blobs.for_each(|(entry, changes)| steps.add_blob(entry, changes));
        steps.finish()
    }

    #[test]
    fn blobs_of_few_objects_are_joined_unless_the_blobs_are_large() {
        for (payload_len, size_hint) in [(50_000, 1), (0, 1), (3 << 20, 4), (900_000, 2)] {
            let joined = steps_of((0..4).map(|number| edited_blob(number, 400, payload_len)));
            assert_eq!(joined.len(), size_hint, "{payload_len}");
        }
    }

    #[test]
    fn adjacent_blobs_that_are_copied_are_one_step() {
        let steps = steps_of((0..10_000).map(|number| {
            let (mut entry, _) = edited_blob(number, 8000, 50_000);
            if number < 3000 {
                entry.kinds = KindSet::of(ObjectKind::Node);
            }
            (entry, (number == 5000).then_some(0..1))
        }));
        let lens = steps.iter().map(|step| match step {
            ApplyStep::Copy(blobs) => blobs.len(),
            _ => 0,
        });
        assert_eq!(lens.collect::<Vec<_>>(), [3000, 2000, 0, 4096, 903]);
    }
}
