//! Lists the contents of each blob of a file. The contents are known from the file's table of contents, from per-blob
//! indexes, or from one parallel pass over the blobs.

use super::blob_decoder::BlobDecoder;
use super::blob_pass::BlobPass;
use super::header_prefetch::HeaderPrefetch;
use super::header_walker::FrameHead;
use super::pbf_file::PbfFile;
use crate::error::{Error, ErrorKind, Result};
use crate::osm::{KindSet, TypeThenId};
use crate::pbf::{BlobEntry, BlobFlags, TocFlags, TocSummary, feature, scan_payload};
use crate::runtime::{Context, Disorder, WorkItem};

/// The kind of index that a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexKind {
    /// A table of contents that fits the file.
    TableOfContents,
    /// An index in the BlobHeader of every blob.
    BlobIndexes,
    /// No index. At least one blob lacks an index, or the file has no data blobs.
    None,
}

impl IndexKind {
    /// Determines which index a file has. Without a table of contents, BlobHeaders are read up to the first one without
    /// an index.
    pub fn of(file: &PbfFile) -> Result<Self> {
        if file.toc.is_some() || file.summary.is_some() {
            return Ok(Self::TableOfContents);
        }
        let mut blobs = 0;
        for head in file.frames() {
            if head?.indexed.is_none() {
                return Ok(Self::None);
            }
            blobs += 1;
        }
        Ok(if blobs > 0 {
            Self::BlobIndexes
        } else {
            Self::None
        })
    }

    /// Returns the name that is used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TableOfContents => "table of contents",
            Self::BlobIndexes => "per-blob indexes",
            Self::None => "none",
        }
    }
}

/// The facts about each blob that a command needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanNeeds {
    /// Offset and length. The entries have other facts only if an index provides them.
    Frames,
    /// Offset, length, kinds, id range and number of objects. Every index has these facts.
    Ranges,
    /// The facts of [`Ranges`](Self::Ranges), and whether the objects within the blob are in canonical order. Per-blob
    /// indexes do not record the order.
    Order,
    /// The facts of [`Order`](Self::Order), decoded from each blob. Indexes are ignored.
    Rescan,
}

impl PlanNeeds {
    /// Whether `entry`, which comes from an index, has the needed facts. For [`Frames`](Self::Frames), only entries of
    /// a table of contents are tested. If one of these entries lacks the facts, [`BlobPlan::items`] walks over the
    /// frame headers and accepts any entry.
    fn are_met_by(self, entry: &BlobEntry) -> bool {
        match self {
            Self::Ranges => true,
            Self::Frames | Self::Order => entry.flags.has(BlobFlags::SCANNED),
            Self::Rescan => false,
        }
    }
}

/// A plan of a file. It has an entry for each data blob, in file order.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BlobPlan {
    /// The entries of the blobs.
    pub entries: Vec<BlobEntry>,
}

/// A blob to add to a plan.
pub(crate) enum PlanItem {
    /// The entry has all facts that are needed.
    Known(BlobEntry),
    /// The blob must be decoded to complete its entry.
    Scan(BlobEntry),
}

impl PlanItem {
    /// Returns the entry of the blob, and decodes the blob if necessary.
    pub(crate) fn resolve(self, reader: &mut BlobDecoder) -> Result<BlobEntry> {
        match self {
            Self::Known(entry) => Ok(entry),
            Self::Scan(entry) => {
                let mut scanned = entry;
                reader.decode(&entry, |payload| scan_payload(payload, &mut scanned))?;
                Ok(scanned)
            }
        }
    }
}

impl WorkItem for PlanItem {
    fn input_bytes(&self) -> u64 {
        let (Self::Known(entry) | Self::Scan(entry)) = self;
        u64::from(entry.frame_len)
    }

    fn held_bytes(&self) -> u64 {
        match self {
            Self::Known(_) => 0,
            Self::Scan(_) => self.input_bytes(),
        }
    }
}

impl BlobPlan {
    /// Collects the entries of all blobs from the table of contents or from per-blob indexes. Blobs without a
    /// sufficient index are decoded in one parallel pass.
    pub fn open(file: &PbfFile, needs: PlanNeeds, ctx: &Context) -> Result<Self> {
        if let Some(toc) = &file.toc
            && toc.entries.iter().all(|entry| needs.are_met_by(entry))
        {
            let entries = toc.entries.clone();
            return Ok(Self { entries });
        }
        let mut entries = Vec::new();
        ctx.expect_phases(1);
        BlobPass::new("index", &file.input, ctx).run_stream(
            Self::items(file, needs),
            || (),
            |reader, (), item| item.resolve(reader),
            |entry| {
                entries.push(entry);
                Ok(())
            },
        )?;
        Ok(Self { entries })
    }

    /// Returns the blobs of a file in file order, for a pass that processes each blob as soon as its entry is known.
    pub(crate) fn items(
        file: &PbfFile,
        needs: PlanNeeds,
    ) -> Box<dyn Iterator<Item = Result<PlanItem>> + Send + '_> {
        if let Some(toc) = &file.toc
            && toc.entries.iter().all(|entry| needs.are_met_by(entry))
        {
            let entries = toc.entries.iter().copied();
            return Box::new(entries.map(|entry| Ok(PlanItem::Known(entry))));
        }
        let item_of = move |head: FrameHead| {
            let indexed = head.indexed.filter(|_| needs != PlanNeeds::Rescan);
            let is_enough = indexed.is_some_and(|entry| needs.are_met_by(&entry));
            let entry = indexed.unwrap_or(head.entry);
            if needs == PlanNeeds::Frames || is_enough {
                PlanItem::Known(entry)
            } else {
                PlanItem::Scan(entry)
            }
        };
        let is_walk = |head: Result<FrameHead>| {
            head.is_ok_and(|head| matches!(item_of(head), PlanItem::Known(_)))
        };
        // Headers are read ahead only if no blob has to be decoded. A pass that decodes blobs reads the whole blobs
        // anyway. All blobs are assumed to be like the first one.
        let reads_headers_only = file.frames().next().is_some_and(is_walk);
        let ahead = reads_headers_only
            .then(|| HeaderPrefetch::start(&file.input, file.data_start..file.data_end));
        Box::new(file.frames().map(move |head| {
            let _held = &ahead;
            head.map(item_of)
        }))
    }

    /// Returns the kinds of objects in the file that the entries record.
    pub fn kinds(&self) -> KindSet {
        self.entries
            .iter()
            .fold(KindSet::EMPTY, |kinds, entry| kinds.union(entry.kinds))
    }

    /// Returns the number of objects in the file. Does not count objects in blobs whose entries do not record a number.
    pub fn count(&self) -> u64 {
        self.entries
            .iter()
            .map(|entry| u64::from(entry.count))
            .sum()
    }

    /// Whether at least one entry has `flag`.
    pub(crate) fn has_entry_with_flag(&self, flag: BlobFlags) -> bool {
        self.entries.iter().any(|entry| entry.flags.has(flag))
    }

    /// Returns the first blob whose first object precedes, in canonical order, an object of an earlier blob. Only kinds
    /// and ids are compared. If the ids of a blob are not known, only its kinds are compared. A blob may begin with
    /// another version of the last object before it. Such a blob is not out of place, but
    /// [`first_continued`](Self::first_continued) returns it.
    pub fn first_out_of_place(&self) -> Option<&BlobEntry> {
        self.first_blob_where(|first, last| first < last)
    }

    /// Returns the first blob whose first object has the same kind and id as the last object, in canonical order, of
    /// the earlier blobs. The entries do not show whether the versions of that object are in order.
    pub fn first_continued(&self) -> Option<&BlobEntry> {
        self.first_blob_where(|first, last| first == last)
    }

    /// Returns the first blob for which `test` returns `true`. The arguments of `test` are the sort key of the first
    /// object of the blob, and the highest key in the blobs before it. If only the kinds of a blob are known, its first
    /// key counts as the highest possible one, and its last key as the lowest possible one. So blobs that may be in
    /// order are never reported as out of order.
    fn first_blob_where(
        &self,
        test: impl Fn(TypeThenId, TypeThenId) -> bool,
    ) -> Option<&BlobEntry> {
        let mut last: Option<TypeThenId> = None;
        self.entries.iter().find(|entry| {
            let (first, end) = if entry.has_only_kinds_known() {
                let highest = entry.kinds.first().map(|kind| (kind, u64::MAX));
                (highest, entry.kinds.last().map(|kind| (kind, u64::MIN)))
            } else {
                (entry.first_sort_key(), entry.last_sort_key())
            };
            let is_found = last
                .zip(first)
                .is_some_and(|(last, first)| test(first, last));
            last = end.max(last);
            is_found
        })
    }

    /// Whether the entries prove that no object occurs more than once, not even in several versions.
    pub fn has_each_object_once(&self) -> bool {
        let is_empty = |entry: &BlobEntry| entry.count == 0 && entry.flags.has(BlobFlags::SCANNED);
        let strict = |entry: &BlobEntry| entry.flags.has(BlobFlags::UNIQUE_IDS) || is_empty(entry);
        self.entries.iter().all(strict)
            && self.first_blob_where(|first, last| first <= last).is_none()
    }

    /// Fails if the entries show that the objects are out of order and [`Context::disorder`] is [`Disorder::Refuse`].
    pub(crate) fn check_order(&self, file: &PbfFile, ctx: &Context) -> Result<()> {
        if ctx.disorder == Disorder::Refuse && self.is_sorted() == Some(false) {
            let cause = "the objects are not in order (nodes, ways, relations, each by id): `sort` the file first";
            return Err(Error::file_of(
                file.input.path(),
                ErrorKind::Unsorted,
                cause,
            ));
        }
        Ok(())
    }

    /// Fails if [`check_order`](Self::check_order) fails. With [`Disorder::Refuse`], also fails for a history or change
    /// file, unless its entries prove that each object occurs only once.
    pub(crate) fn check_is_current(&self, file: &PbfFile, ctx: &Context) -> Result<()> {
        self.check_order(file, ctx)?;
        let refuses = ctx.disorder == Disorder::Refuse && file.header.has(feature::HISTORY);
        if refuses && !self.has_each_object_once() {
            let cause = "this is a history or change file with several versions of an object, and the command needs \
                         one: run `time-filter` first";
            return Err(Error::file(file.input.path(), cause));
        }
        Ok(())
    }

    /// Whether the file is treated as a history file. Such a file declares a history in its header or has deleted
    /// objects, and its entries do not prove that each object occurs only once. If [`Context::disorder`] differs from
    /// [`Disorder::Refuse`], every file with deleted objects is treated as a history file.
    pub(crate) fn is_history(&self, file: &PbfFile, ctx: &Context) -> bool {
        let has_deleted = self.has_entry_with_flag(BlobFlags::DELETED);
        let is_accepted = ctx.disorder == Disorder::Refuse || !has_deleted;
        (file.header.has(feature::HISTORY) || has_deleted)
            && !(is_accepted && self.has_each_object_once())
    }

    /// Returns the summary of a table of contents with these entries and `flags`. Returns `None` unless each blob has
    /// objects of a single kind, and all facts about each blob are known.
    pub(crate) fn summary(&self, flags: TocFlags) -> Option<TocSummary> {
        TocSummary::from_entries(&self.entries, self.is_sorted(), flags)
    }

    /// Whether all objects are in canonical order. Returns `None` if the entries do not tell. This is the case if a
    /// blob was not scanned, or if a blob begins with another version of the last object before it.
    pub fn is_sorted(&self) -> Option<bool> {
        let scanned = |entry: &&BlobEntry| entry.flags.has(BlobFlags::SCANNED);
        let unsorted = |entry: &BlobEntry| !entry.flags.has(BlobFlags::SORTED);
        if self.first_out_of_place().is_some() || self.entries.iter().filter(scanned).any(unsorted)
        {
            return Some(false);
        }
        let known =
            self.entries.iter().all(|entry| scanned(&entry)) && self.first_continued().is_none();
        known.then_some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::osm::ObjectKind;

    fn entry_with_kind_only(kind: ObjectKind) -> BlobEntry {
        BlobEntry {
            kinds: KindSet::of(kind),
            ..BlobEntry::default()
        }
    }

    fn scanned_entry(kind: ObjectKind, ids: (i64, i64)) -> BlobEntry {
        let mut flags = BlobFlags::default();
        for flag in [BlobFlags::SCANNED, BlobFlags::SORTED, BlobFlags::UNIQUE_IDS] {
            flags.set(flag, true);
        }
        BlobEntry {
            kinds: KindSet::of(kind),
            flags,
            min_id: ids.0,
            max_id: ids.1,
            count: 2,
            ..BlobEntry::default()
        }
    }

    #[test]
    fn blobs_with_only_their_kind_known_are_ordered_by_kind() {
        use ObjectKind::{Node, Way};
        let plan = |entries: &[BlobEntry]| BlobPlan {
            entries: entries.to_vec(),
        };
        let in_order = plan(&[
            scanned_entry(Node, (1, 9)),
            entry_with_kind_only(Node),
            scanned_entry(Node, (10, 19)),
            entry_with_kind_only(Way),
            entry_with_kind_only(Way),
            scanned_entry(Way, (-5, 7)),
        ]);
        assert_eq!(in_order.first_out_of_place(), None);
        assert_eq!(in_order.first_continued(), None);
        assert_eq!(in_order.is_sorted(), None);
        assert!(!in_order.has_each_object_once());
        let by_ids = plan(&[
            scanned_entry(Node, (10, 19)),
            entry_with_kind_only(Node),
            scanned_entry(Node, (1, 9)),
        ]);
        assert_eq!(by_ids.is_sorted(), Some(false));
        for kinds in [
            [scanned_entry(Way, (1, 9)), entry_with_kind_only(Node)],
            [entry_with_kind_only(Way), scanned_entry(Node, (1, 9))],
            [entry_with_kind_only(Way), entry_with_kind_only(Node)],
        ] {
            assert_eq!(plan(&kinds).is_sorted(), Some(false));
        }
    }
}
