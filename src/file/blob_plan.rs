//! What is in each blob of a file: from its table of contents, from per-blob indexes, or from one
//! parallel pass over the blobs.

use super::blob_pass::BlobPass;
use super::blob_reader::BlobReader;
use super::header_walker::FrameHead;
use super::pbf_file::PbfFile;
use crate::error::Result;
use crate::osm::{KindSet, TypeThenId};
use crate::pbf::{BlobEntry, BlobFlags, decode_blob_index, scan_payload};
use crate::runtime::{Context, WorkItem};

/// The index that a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexKind {
    /// A table of contents that fits the file.
    TableOfContents,
    /// An index in the BlobHeader of every blob.
    BlobIndexes,
    /// None, or one that leaves blobs out.
    None,
}

impl IndexKind {
    /// Finds out which index a file has. Without a table of contents BlobHeaders are read, up to the first one without
    /// an index.
    pub fn of(file: &PbfFile) -> Result<Self> {
        if file.toc.is_some() {
            return Ok(Self::TableOfContents);
        }
        let mut blobs = 0;
        for head in file.frames() {
            let FrameHead {
                mut entry,
                indexdata,
            } = head?;
            if indexdata
                .and_then(|bytes| decode_blob_index(&bytes, &mut entry))
                .is_none()
            {
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

    /// The name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TableOfContents => "table of contents",
            Self::BlobIndexes => "per-blob indexes",
            Self::None => "none",
        }
    }
}

/// How much a command must know of each blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanNeeds {
    /// Where it is; whatever else an index tells comes along.
    Frames,
    /// Kind, id range and count, as claimed by whatever index there is.
    Ranges,
    /// Also whether the objects within the blob stand in order, which per-blob indexes do not say.
    Order,
    /// The same, decoded from every blob, whatever index the file has.
    Rescan,
}

impl PlanNeeds {
    /// Whether an entry of an index says enough.
    fn are_met_by(self, entry: &BlobEntry) -> bool {
        match self {
            Self::Ranges => true,
            Self::Frames | Self::Order => entry.flags.has(BlobFlags::SCANNED),
            Self::Rescan => false,
        }
    }
}

/// What is in each data blob of a file, in file order.
#[derive(Debug, Clone)]
pub struct BlobPlan {
    /// The blobs.
    pub entries: Vec<BlobEntry>,
}

/// A blob on its way into a plan.
pub(crate) enum PlanItem {
    /// The index says enough.
    Known(BlobEntry),
    /// The blob has to be decoded.
    Scan(BlobEntry),
}

impl PlanItem {
    /// The entry of the blob, which is decoded where its index does not say enough.
    pub(crate) fn resolve(self, reader: &mut BlobReader<'_>) -> Result<BlobEntry> {
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
    /// Finds out what is in each blob, in the cheapest way that the file allows.
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

    /// The blobs of a file in file order, for a pass that works on each as soon as its entry is known.
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
            let mut entry = head.entry;
            let indexdata = head.indexdata.filter(|_| needs != PlanNeeds::Rescan);
            let known = indexdata.and_then(|bytes| decode_blob_index(&bytes, &mut entry));
            let is_enough = known.is_some() && needs.are_met_by(&entry);
            match needs == PlanNeeds::Frames || is_enough {
                true => PlanItem::Known(entry),
                false => PlanItem::Scan(entry),
            }
        };
        Box::new(file.frames().map(move |head| head.map(item_of)))
    }

    /// The kinds of objects in the file.
    pub fn kinds(&self) -> KindSet {
        self.entries
            .iter()
            .fold(KindSet::EMPTY, |kinds, entry| kinds.union(entry.kinds))
    }

    /// How many objects there are.
    pub fn count(&self) -> u64 {
        self.entries
            .iter()
            .map(|entry| u64::from(entry.count))
            .sum()
    }

    /// Whether some blob has that flag.
    pub fn any(&self, flag: BlobFlags) -> bool {
        self.entries.iter().any(|entry| entry.flags.has(flag))
    }

    /// The first blob that does not come, as a whole, behind all blobs before it. One that goes on
    /// with the object that ended the blob before may be in place or not: the versions tell.
    pub fn first_out_of_place(&self) -> Option<&BlobEntry> {
        self.first_where(|first, last| first < last)
    }

    /// The first blob that goes on with the object that ended a blob before it.
    pub fn first_continued(&self) -> Option<&BlobEntry> {
        self.first_where(|first, last| first == last)
    }

    fn first_where(&self, test: impl Fn(TypeThenId, TypeThenId) -> bool) -> Option<&BlobEntry> {
        let mut last: Option<TypeThenId> = None;
        self.entries.iter().find(|entry| {
            let found = last
                .zip(entry.first_key())
                .is_some_and(|(last, first)| test(first, last));
            last = entry.last_key().max(last);
            found
        })
    }

    /// Whether it is known that no object comes twice, in one version or in several.
    pub fn has_each_object_once(&self) -> bool {
        let strict = |entry: &BlobEntry| entry.flags.has(BlobFlags::STRICT) || entry.count == 0;
        self.entries.iter().all(strict) && self.first_where(|first, last| first <= last).is_none()
    }

    /// Whether all objects stand in canonical order; `None` where the index does not tell.
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
