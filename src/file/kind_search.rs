//! Finds the kinds of objects in each blob of a file without an index, if the header declares canonical order.

use super::blob_decoder::BlobDecoder;
use super::blob_plan::{BlobPlan, PlanItem, PlanNeeds};
use super::pbf_file::PbfFile;
use crate::error::Result;
use crate::osm::{KindSet, ObjectKind};
use crate::pbf::{BlobEntry, bytes_needed_for_first_kind, feature, first_kind};
use crate::runtime::Context;

/// The number of blobs that are decoded as a sample, so that commands can estimate facts about the other blobs.
const SAMPLE: usize = 16;
/// In small files, each blob whose index is a multiple of this number is decoded as a sample.
const SAMPLE_STEP: usize = 4;

impl BlobPlan {
    /// Makes a plan for a command that needs only the kinds of each blob. If the file has no index and its header
    /// declares canonical order, a binary search finds the blobs at which the kinds change. The search decompresses the
    /// beginnings of about 35 blobs of a planet file, and decodes the blobs in which a kind may end. If two blobs begin
    /// with objects of the same kind, the first of them and all blobs between them are assumed to have this kind only.
    /// A sample of these blobs is decoded. The entries of the others have
    /// [only the kind](BlobEntry::has_only_kinds_known). If a blob turns out to have another kind, decoding it fails
    /// later.
    pub(crate) fn open_for_kinds(file: &PbfFile, ctx: &Context) -> Result<Self> {
        match Self::open_for_kinds_by_order(file, ctx)? {
            Some(plan) => Ok(plan),
            None => Self::open(file, PlanNeeds::Ranges, ctx),
        }
    }

    /// Does the same as [`open_for_kinds`](Self::open_for_kinds) if the header declares canonical order and the file
    /// has no table of contents. Returns `None` otherwise.
    pub(crate) fn open_for_kinds_by_order(file: &PbfFile, ctx: &Context) -> Result<Option<Self>> {
        let is_sorted = file.header.has(feature::SORTED) && !file.header.has(feature::HISTORY);
        if !is_sorted || file.toc.is_some() {
            return Ok(None);
        }
        let items: Vec<PlanItem> = Self::items(file, PlanNeeds::Ranges).collect::<Result<_>>()?;
        let mut search = KindSearch {
            reader: BlobDecoder::new(&file.input, ctx),
            items,
        };
        if let Some(last) = search.items.len().checked_sub(1) {
            let (first_kind, last_kind) = (search.first_kind(0)?, search.first_kind(last)?);
            search.determine_kinds_between((0, first_kind), (last, last_kind))?;
            search.scan(last)?;
            for number in (0..last).step_by((last / SAMPLE).max(SAMPLE_STEP)) {
                search.scan_sample(number)?;
            }
        }
        let known = search.items.into_iter().map(|item| match item {
            PlanItem::Known(entry) | PlanItem::Scan(entry) => entry,
        });
        let entries = known.collect();
        Ok(Some(Self { entries }))
    }
}

/// A binary search for the blobs at which the kinds of objects change.
struct KindSearch {
    reader: BlobDecoder,
    items: Vec<PlanItem>,
}

impl KindSearch {
    /// Completes the entries of the blobs from `first` up to, but not including, `last`. Each of these two blobs is
    /// given by its number and the kind of its first object.
    fn determine_kinds_between(
        &mut self,
        first: (usize, Option<ObjectKind>),
        last: (usize, Option<ObjectKind>),
    ) -> Result<()> {
        if first.0 >= last.0 {
            return Ok(());
        }
        if let (Some(kind), true) = (first.1, first.1 == last.1) {
            for item in &mut self.items[first.0..last.0] {
                if let PlanItem::Scan(entry) = item {
                    entry.kinds = KindSet::of(kind);
                    *item = PlanItem::Known(*entry);
                }
            }
            return Ok(());
        }
        if first.0 + 1 == last.0 {
            return self.scan(first.0).map(drop);
        }
        let middle = first.0.midpoint(last.0);
        let middle = (middle, self.first_kind(middle)?);
        self.determine_kinds_between(first, middle)?;
        self.determine_kinds_between(middle, last)
    }

    /// Returns the kind of the first object of a blob; `None` for an empty blob. Decodes the blob if its beginning does
    /// not show the kind.
    fn first_kind(&mut self, number: usize) -> Result<Option<ObjectKind>> {
        if let PlanItem::Scan(entry) = &self.items[number]
            && let Ok(kind) = first_kind(
                self.reader
                    .read(entry)?
                    .prefix(bytes_needed_for_first_kind)?,
            )
        {
            return Ok(Some(kind));
        }
        let kinds = self.scan(number)?.kinds;
        Ok(ObjectKind::ALL
            .into_iter()
            .find(|kind| kinds.contains(*kind)))
    }

    /// Decodes a blob, unless its entry already has more facts than the kind.
    fn scan_sample(&mut self, number: usize) -> Result<()> {
        let item = &mut self.items[number];
        if let PlanItem::Known(entry) = item
            && entry.has_only_kinds_known()
        {
            *item = PlanItem::Scan(*entry);
        }
        self.scan(number).map(drop)
    }

    /// Returns the entry of a blob. Decodes the blob if its entry is not known.
    fn scan(&mut self, number: usize) -> Result<BlobEntry> {
        let item = &mut self.items[number];
        let taken = std::mem::replace(item, PlanItem::Known(BlobEntry::default()));
        let entry = taken.resolve(&mut self.reader)?;
        *item = PlanItem::Known(entry);
        Ok(entry)
    }
}
