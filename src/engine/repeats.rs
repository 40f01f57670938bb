//! Finds objects that occur twice in a file of current data, while a command reads the file. An object occurs again if
//! an earlier object has the same kind and id.
//!
//! In nearly every file, the entries of the blobs prove that no object occurs twice. The entries come from a table of
//! contents or from a scan of the blobs. Only blobs without this proof are watched. Their ranges of ids overlap, or the
//! order of their ids is unknown. Histories and change files have several versions of an object, and are not watched.

use super::repeat_count::{
    ProvenRepeats, RepeatCount, has_proven_repeat, is_scanned, is_versioned,
};
use crate::error::{FormatError, FormatResult, Result};
use crate::file::{BlobDecoder, BlobPlan, HeaderWalker, PbfFile};
use crate::index::{IdBatch, IdSet};
use crate::io::Input;
use crate::osm::{ObjectId, ObjectKind, TypeThenId, id_rank};
use crate::pbf::{BlobEntry, BlobFlags, Block, scan_ids, scan_payload};
use crate::runtime::{Context, Disorder, PayloadWatch, lock};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

/// The cause in an error about an object that occurs twice.
const NEED: &str = "the command needs a file that has each object once";

/// The treatment of objects that occur twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// The command fails.
    Refused,
    /// The command continues, and warns with the number of these objects.
    Counted,
}

/// Returns the context in which a command that needs each object once reads `file`. Decoding a blob in this context
/// fails if the blob has an object that occurs twice in the file.
///
/// # Errors
///
/// The plan shows that an object occurs twice.
pub(crate) fn context_refusing_repeats(
    file: &PbfFile,
    plan: &BlobPlan,
    ctx: &Context,
) -> Result<Context> {
    let Some(watch) = RepeatWatch::of(file, plan, Repeats::Refused, ctx) else {
        return Ok(ctx.clone());
    };
    let watched = ctx.clone().with_watch(Arc::new(watch));
    let mut reader = BlobDecoder::new(&file.input, &watched);
    // An entry may contradict its blob, so only the blob itself is proof.
    let repetitive = plan.entries.iter().find(|entry| has_proven_repeat(entry));
    for entry in first_continued_pair(plan)
        .into_iter()
        .flatten()
        .chain(repetitive)
    {
        reader.payload(entry)?;
    }
    Ok(watched)
}

/// Does the same as [`context_refusing_repeats`]. Under the conventions of osmium, returns `ctx` unchanged, because the
/// command of osmium accepts objects that occur twice.
pub(crate) fn context_refusing_unless_osmium(
    file: &PbfFile,
    plan: &BlobPlan,
    ctx: &Context,
) -> Result<Context> {
    match ctx.disorder {
        Disorder::Refuse => Ok(ctx.clone()),
        Disorder::Accept | Disorder::Tell { .. } => context_refusing_repeats(file, plan, ctx),
    }
}

/// Calls `read` with a context. Counts the objects that were decoded in this context and occur again, and warns with
/// their number. Under the conventions of osmium, there is no warning.
pub(crate) fn read_and_warn_of_repeats<T>(
    file: &PbfFile,
    plan: &BlobPlan,
    ctx: &Context,
    read: impl FnOnce(&Context) -> Result<T>,
) -> Result<T> {
    let counting = Counting::begin(file, plan, ctx);
    let result = read(&counting.ctx)?;
    counting.warn_of_repeats();
    Ok(result)
}

/// A count of the decoded objects that occur again. Under the conventions of osmium, no object is counted.
pub(crate) struct Counting {
    /// The context in which blobs are decoded.
    pub ctx: Context,
    watch: Option<Arc<RepeatWatch>>,
}

impl Counting {
    /// Begins to count the objects of `file`.
    pub(crate) fn begin(file: &PbfFile, plan: &BlobPlan, ctx: &Context) -> Self {
        let ctx = ctx.clone();
        let watch = match ctx.disorder {
            Disorder::Refuse => None,
            Disorder::Accept | Disorder::Tell { .. } => {
                RepeatWatch::of(file, plan, Repeats::Counted, &ctx)
            }
        };
        let watch = watch.map(Arc::new);
        let ctx = match &watch {
            Some(watch) => ctx.with_watch(watch.clone()),
            None => ctx,
        };
        Self { ctx, watch }
    }

    /// Warns with the number of objects that occur again, if there are any.
    pub(crate) fn warn_of_repeats(&self) {
        if let Some(watch) = &self.watch {
            watch.findings.warn_of_repeats(&self.ctx);
        }
    }
}

/// Warns about objects that occur twice, for a command that copies blobs. Decodes only the blobs that have such objects
/// according to their entries. Does nothing if the file is not in order, or if the contents of a blob are unknown.
pub(crate) fn warn_of_repeated_objects(
    file: &PbfFile,
    plan: &BlobPlan,
    ctx: &Context,
) -> Result<()> {
    if plan.first_out_of_place().is_some() || !plan.entries.iter().all(is_scanned) {
        return Ok(());
    }
    read_and_warn_of_repeats(file, plan, ctx, |watched| {
        let Some(keys) = repeated_ends(plan) else {
            return Ok(());
        };
        let mut reader = BlobDecoder::new(&file.input, watched);
        for entry in &plan.entries {
            let ends = [entry.first_sort_key(), entry.last_sort_key()];
            let is_continued = ends.iter().flatten().any(|key| keys.contains(key));
            if has_proven_repeat(entry) || is_continued {
                reader.payload(entry)?;
            }
        }
        Ok(())
    })
}

/// Returns the first two blobs such that the first object of the later blob has the same kind and id as the last object
/// of the earlier blob. Blobs whose ranges of ids are unknown are left out.
fn first_continued_pair(plan: &BlobPlan) -> Option<[&BlobEntry; 2]> {
    let mut last: Option<&BlobEntry> = None;
    let mut filled = plan.entries.iter().filter(|entry| entry.count > 0);
    filled.find_map(|entry| {
        let continued = last.filter(|last| last.last_sort_key() == entry.first_sort_key());
        if last.is_none_or(|last| last.last_sort_key() < entry.last_sort_key()) {
            last = Some(entry);
        }
        continued.map(|continued| [continued, entry])
    })
}

/// Returns the keys of the objects that end a blob and begin the next blob; `None` if no entry shows a repetition.
fn repeated_ends(plan: &BlobPlan) -> Option<FxHashSet<TypeThenId>> {
    let filled = plan.entries.iter().filter(|entry| entry.count > 0);
    let pairs = filled.clone().zip(filled.skip(1));
    let same = pairs.filter(|(one, next)| one.last_sort_key() == next.first_sort_key());
    let keys: FxHashSet<TypeThenId> = same.filter_map(|(one, _)| one.last_sort_key()).collect();
    let is_any = !keys.is_empty() || plan.entries.iter().any(has_proven_repeat);
    is_any.then_some(keys)
}

/// The objects that were found to occur twice in a file.
#[derive(Debug)]
pub(crate) struct RepeatFindings {
    treatment: Repeats,
    input: Input,
    /// The range of bytes of the data frames.
    data: Range<u64>,
    /// Whether the file has deleted versions, so that it is a history or a change file.
    is_history: OnceLock<bool>,
    /// The objects that occur again.
    counted: Mutex<RepeatCount>,
}

impl RepeatFindings {
    /// Creates empty findings. Returns `None` if the file is known or stated to be a history or a change file, is known
    /// to have each object once, or has a spatial layout.
    fn of(file: &PbfFile, plan: &BlobPlan, treatment: Repeats, ctx: &Context) -> Option<Self> {
        let is_history = is_versioned(file, ctx) || plan.has_entry_with_flag(BlobFlags::DELETED);
        let are_scanned = plan.entries.iter().all(is_scanned);
        let has_each_once = are_scanned && plan.has_each_object_once();
        if is_history || has_each_once || file.has_spatial_layout() {
            return None;
        }
        let is_history = OnceLock::new();
        if are_scanned {
            let _ = is_history.set(false);
        }
        Some(Self {
            treatment,
            input: file.input.clone(),
            data: file.data_start..file.data_end,
            is_history,
            counted: Mutex::default(),
        })
    }

    /// Adds `count` objects that occur again. `first` is one of them. Fails if repeated objects are refused. Does
    /// nothing if the file turns out to have deleted versions.
    fn add(&self, count: u64, first: TypeThenId) -> FormatResult<()> {
        if count == 0 || *self.is_history.get_or_init(|| self.has_deleted()) {
            return Ok(());
        }
        let object = ObjectId::from_sort_key(first);
        if self.treatment == Repeats::Refused {
            return Err(FormatError::repetition(object, NEED));
        }
        lock(&self.counted).add(RepeatCount {
            count,
            first: Some(first),
            is_minimum: false,
        });
        Ok(())
    }

    /// Adds objects that occur again according to the entries of blobs. Does nothing if the file turns out to have
    /// deleted versions.
    fn add_repeats_of_entries(&self, found: RepeatCount) {
        if found.count > 0 && !*self.is_history.get_or_init(|| self.has_deleted()) {
            lock(&self.counted).add(found);
        }
    }

    /// Whether a blob has a deleted version. Reads blobs up to the first such blob. Skips blobs that cannot be read.
    fn has_deleted(&self) -> bool {
        let mut reader = BlobDecoder::new(&self.input, &Context::new(1));
        let mut has_deleted = |entry: &BlobEntry| {
            let mut scanned = *entry;
            let scan = reader.decode(entry, |payload| scan_payload(payload, &mut scanned));
            scan.is_ok() && scanned.flags.has(BlobFlags::DELETED)
        };
        HeaderWalker::new(&self.input, self.data.clone())
            .map_while(Result::ok)
            .any(|head| has_deleted(&head.entry))
    }

    /// Warns with the number of objects that occur again, if there are any.
    fn warn_of_repeats(&self, ctx: &Context) {
        let counted = *lock(&self.counted);
        counted.warn_of_repeats(Some(self.input.path()), ctx);
    }
}

/// The overlap of a watched blob with other blobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlobRole {
    /// No other blob is known to have ids in its range.
    Alone,
    /// Other blobs have ids in its range.
    Overlapping,
}

/// A watch over the blobs in which an object may occur twice.
#[derive(Debug)]
struct RepeatWatch {
    findings: RepeatFindings,
    /// The blobs that are watched, by their numbers.
    roles: FxHashMap<u32, BlobRole>,
    /// Whether the blobs that are not in `roles` are watched, too, as [`BlobRole::Alone`].
    watches_others: bool,
    seen: Mutex<Seen>,
}

/// The blobs that were seen.
#[derive(Debug, Default)]
struct Seen {
    blobs: FxHashSet<u32>,
    /// The first and the last object of each blob that is compared with its neighbours.
    ends: BTreeMap<u32, (TypeThenId, TypeThenId)>,
    /// The ids of overlapping blobs, by kind.
    ids: [IdSet; 3],
}

impl RepeatWatch {
    fn of(file: &PbfFile, plan: &BlobPlan, treatment: Repeats, ctx: &Context) -> Option<Self> {
        let findings = RepeatFindings::of(file, plan, treatment, ctx)?;
        let mut seen = Seen::default();
        if plan.entries.iter().any(BlobEntry::has_only_kinds_known) {
            // Blobs with unknown ranges are compared with their neighbours, so the ends of the known ranges are needed.
            let known = plan.entries.iter().filter(|entry| is_scanned(entry));
            seen.ends = known
                .filter_map(|entry| {
                    Some((
                        entry.number,
                        (entry.first_sort_key()?, entry.last_sort_key()?),
                    ))
                })
                .collect();
        }
        Some(Self {
            findings,
            roles: blob_roles(&plan.entries),
            watches_others: !plan.entries.iter().all(is_scanned),
            seen: Mutex::new(seen),
        })
    }

    /// Compares the first object of a blob with the last object of the blob before it, and the last object with the
    /// first object of the blob after it. Skips blobs that were not seen yet.
    fn compare_with_neighbour_blobs(
        &self,
        number: u32,
        (first, last): (TypeThenId, TypeThenId),
    ) -> FormatResult<()> {
        let (before, after) = {
            let mut seen = lock(&self.seen);
            seen.ends.insert(number, (first, last));
            let before = seen.ends.range(..number).next_back();
            let after = seen.ends.range(number..).nth(1);
            (
                before.map(|(_, ends)| ends.1),
                after.map(|(_, ends)| ends.0),
            )
        };
        let before = before.filter(|key| *key == first);
        let after = after.filter(|key| *key == last);
        let mut repeated = [before, after].into_iter().flatten();
        repeated.try_for_each(|key| self.findings.add(1, key))
    }

    /// Adds the ids of a block to the ids of overlapping blobs, and reports the ids that were added before. `is_strict`
    /// tells whether the ids of the block ascend strictly.
    fn add_ids(&self, block: &Block<'_>, is_strict: bool) -> FormatResult<()> {
        let ids = ids_by_kind(block)?;
        let mut found = Repeated::default();
        for (kind, ids) in ObjectKind::ALL.into_iter().zip(&ids) {
            let batch = is_strict.then(|| IdBatch::from(ids.as_slice()));
            let mut seen = lock(&self.seen);
            let set = &mut seen.ids[kind as usize];
            if !batch.is_some_and(|batch| set.add_new(&batch)) {
                found.insert(set, kind, ids);
            }
        }
        found.add_to(&self.findings)
    }

    /// Looks for objects that occur twice within a block.
    fn find_repeats_within(&self, block: &Block<'_>) -> FormatResult<()> {
        let mut found = Repeated::default();
        for (kind, ids) in ObjectKind::ALL.into_iter().zip(&ids_by_kind(block)?) {
            found.insert(&mut IdSet::default(), kind, ids);
        }
        found.add_to(&self.findings)
    }
}

impl PayloadWatch for RepeatWatch {
    fn see(&self, input: usize, entry: &BlobEntry, payload: &[u8]) -> FormatResult<()> {
        let others = self.watches_others.then_some(BlobRole::Alone);
        let role = self.roles.get(&entry.number).copied().or(others);
        let Some(role) = role.filter(|_| input == self.findings.input.number()) else {
            return Ok(());
        };
        if !lock(&self.seen).blobs.insert(entry.number) {
            return Ok(());
        }
        let mut found = BlobEntry::default();
        scan_ids(payload, &mut found)?;
        let Some(ends) = found.first_sort_key().zip(found.last_sort_key()) else {
            return Ok(());
        };
        let is_strict = found.flags.has(BlobFlags::UNIQUE_IDS);
        if role == BlobRole::Overlapping {
            return self.add_ids(&Block::parse_without_strings(payload)?, is_strict);
        }
        if !is_strict {
            self.find_repeats_within(&Block::parse_without_strings(payload)?)?;
        }
        self.compare_with_neighbour_blobs(entry.number, ends)
    }
}

/// The ids of a block that occur again.
#[derive(Default)]
struct Repeated {
    count: u64,
    first: Option<TypeThenId>,
}

impl Repeated {
    /// Adds `ids` to `set`, and counts the ids that the set already has.
    fn insert(&mut self, set: &mut IdSet, kind: ObjectKind, ids: &[i64]) {
        for id in ids {
            if !set.insert(*id) {
                self.count += 1;
                self.first.get_or_insert((kind, id_rank(*id)));
            }
        }
    }

    /// Adds the counted objects to `findings`.
    fn add_to(&self, findings: &RepeatFindings) -> FormatResult<()> {
        match self.first {
            Some(first) => findings.add(self.count, first),
            None => Ok(()),
        }
    }
}

/// Returns the ids of a block by kind, in the order of the block.
fn ids_by_kind(block: &Block<'_>) -> FormatResult<[Vec<i64>; 3]> {
    let mut ids = [const { Vec::new() }; 3];
    block.for_each_id(|kind, id| ids[kind as usize].push(id))?;
    Ok(ids)
}

/// Returns the blobs that are watched according to their entries: those whose ranges of ids overlap, and those in which
/// an object may occur twice.
fn blob_roles(entries: &[BlobEntry]) -> FxHashMap<u32, BlobRole> {
    let ranges = entries.iter().filter(|entry| entry.count > 0);
    let mut ranges: Vec<_> = ranges
        .filter_map(|entry| Some((entry.first_sort_key()?, entry.last_sort_key()?, entry)))
        .collect();
    ranges.sort_unstable_by_key(|(first, last, entry)| (*first, *last, entry.number));
    let mut roles = FxHashMap::default();
    let mut furthest: Option<(TypeThenId, u32)> = None;
    for (first, last, entry) in ranges {
        match furthest.filter(|(end, _)| *end >= first) {
            Some((_, other)) => {
                roles.insert(other, BlobRole::Overlapping);
                roles.insert(entry.number, BlobRole::Overlapping);
            }
            None if entry.flags.has(BlobFlags::UNIQUE_IDS) => {}
            None => {
                roles.insert(entry.number, BlobRole::Alone);
            }
        }
        if furthest.is_none_or(|(end, _)| end < last) {
            furthest = Some((last, entry.number));
        }
    }
    roles
}

/// The objects that a command selects. An object that is selected twice is refused or counted.
pub(crate) struct Chosen {
    findings: Option<RepeatFindings>,
    ids: Mutex<[IdSet; 3]>,
}

impl Chosen {
    /// Creates an empty selection of objects of `file`. Under the conventions of osmium, an object may be selected
    /// twice.
    pub(crate) fn of(file: &PbfFile, plan: &BlobPlan, treatment: Repeats, ctx: &Context) -> Self {
        let findings = match ctx.disorder {
            Disorder::Refuse => None,
            Disorder::Accept | Disorder::Tell { .. } => {
                RepeatFindings::of(file, plan, treatment, ctx)
            }
        };
        Self {
            findings,
            ids: Mutex::default(),
        }
    }

    /// Whether an object may occur twice in the file, so that the objects have to be [added](Self::add).
    pub(crate) const fn may_have_repeats(&self) -> bool {
        self.findings.is_some()
    }

    /// Adds the selected objects of a block. Fails if an object was selected before, and repeated objects are refused.
    pub(crate) fn add(&self, objects: &[ObjectId]) -> FormatResult<()> {
        let Some(findings) = self.findings.as_ref().filter(|_| !objects.is_empty()) else {
            return Ok(());
        };
        let mut found = Repeated::default();
        {
            let mut ids = lock(&self.ids);
            for object in objects {
                found.insert(&mut ids[object.kind as usize], object.kind, &[object.id]);
            }
        }
        found.add_to(findings)
    }

    /// Adds the objects that occur again in blobs that are selected as a whole. These blobs are not decoded, so only
    /// the repetitions that their entries prove are found.
    pub(crate) fn add_repeats_in_copied<'e>(&self, entries: impl Iterator<Item = &'e BlobEntry>) {
        if let Some(findings) = &self.findings {
            let mut proven = ProvenRepeats::new(false);
            entries.for_each(|entry| proven.compare_entry(entry));
            findings.add_repeats_of_entries(proven.proven_repeats());
        }
    }

    /// Warns with the number of objects that were selected again.
    pub(crate) fn warn_of_repeats(&self, ctx: &Context) {
        if let Some(findings) = &self.findings {
            findings.warn_of_repeats(ctx);
        }
    }
}
