//! Finds the kinds of objects in each blob of a file without an index, if the header declares canonical order.

use super::blob_decoder::BlobDecoder;
use super::blob_plan::{BlobPlan, PlanItem, PlanNeeds};
use super::pbf_file::PbfFile;
use crate::error::Result;
use crate::pbf::{BlobEntry, feature};
use crate::runtime::Context;

impl BlobPlan {
    /// Makes a plan for a command that needs only the kinds of each blob. If the file has no index and its header
    /// declares canonical order, a binary search finds the blobs at which the kinds change. The search decodes about 35
    /// blobs of a planet file. If two decoded blobs have one and the same kind, all blobs between them are assumed to
    /// have this kind, and their entries have [only the kind](BlobEntry::has_kinds_only). Decoding a blob fails if it
    /// has another kind.
    pub(crate) fn of_kinds(file: &PbfFile, ctx: &Context) -> Result<Self> {
        match Self::of_kinds_by_order(file, ctx)? {
            Some(plan) => Ok(plan),
            None => Self::open(file, PlanNeeds::Ranges, ctx),
        }
    }

    /// Does the same as [`of_kinds`](Self::of_kinds) if the header declares canonical order and the file has no table of
    /// contents. Returns `None` otherwise.
    pub(super) fn of_kinds_by_order(file: &PbfFile, ctx: &Context) -> Result<Option<Self>> {
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
            search.scan(0)?;
            search.scan(last)?;
            search.find_between(0, last)?;
        }
        let known = search.items.into_iter().map(|item| match item {
            PlanItem::Known(entry) | PlanItem::Scan(entry) => entry,
        });
        let entries = known.collect();
        Ok(Some(Self { entries }))
    }
}

struct KindSearch {
    reader: BlobDecoder,
    items: Vec<PlanItem>,
}

impl KindSearch {
    /// Completes the entries of the blobs between two blobs whose entries are known.
    fn find_between(&mut self, first: usize, last: usize) -> Result<()> {
        if last <= first + 1 {
            return Ok(());
        }
        let kinds = self.scan(first)?.kinds;
        if kinds == self.scan(last)?.kinds && kinds.single().is_some() {
            for item in &mut self.items[first + 1..last] {
                if let PlanItem::Scan(entry) = item {
                    entry.kinds = kinds;
                    *item = PlanItem::Known(*entry);
                }
            }
            return Ok(());
        }
        let middle = first.midpoint(last);
        self.scan(middle)?;
        self.find_between(first, middle)?;
        self.find_between(middle, last)
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
