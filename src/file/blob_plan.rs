//! What is in each blob of a file: from its table of contents, from per-blob indexes, or from one
//! parallel pass over the blobs.

use super::blob_pass::BlobPass;
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
}

/// What is in each data blob of a file, in file order.
#[derive(Debug, Clone)]
pub struct BlobPlan {
    /// The blobs.
    pub entries: Vec<BlobEntry>,
}

/// A blob of which the plan needs an entry.
enum PlanItem {
    /// The index says enough.
    Known(BlobEntry),
    /// The blob has to be decoded.
    Scan(BlobEntry),
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
        Self::open_with(file, needs, ctx, |_| Ok(()))
    }

    /// As [`open`](Self::open); `on_entry` sees each entry, in file order, as soon as it is known.
    pub fn open_with(
        file: &PbfFile,
        needs: PlanNeeds,
        ctx: &Context,
        mut on_entry: impl FnMut(&BlobEntry) -> Result<()>,
    ) -> Result<Self> {
        let enough =
            |entry: &BlobEntry| needs == PlanNeeds::Ranges || entry.flags.has(BlobFlags::SCANNED);
        if let Some(toc) = &file.toc
            && toc.entries.iter().all(enough)
        {
            toc.entries.iter().try_for_each(&mut on_entry)?;
            return Ok(Self {
                entries: toc.entries.clone(),
            });
        }
        let items = file.frames().map(|head| {
            head.map(
                |FrameHead {
                     mut entry,
                     indexdata,
                 }| {
                    let known = indexdata.and_then(|bytes| decode_blob_index(&bytes, &mut entry));
                    if needs == PlanNeeds::Frames || (known.is_some() && enough(&entry)) {
                        PlanItem::Known(entry)
                    } else {
                        PlanItem::Scan(entry)
                    }
                },
            )
        });
        let mut entries = Vec::new();
        index_pass(file, items, ctx, |entry| {
            on_entry(&entry)?;
            entries.push(entry);
            Ok(())
        })?;
        Ok(Self { entries })
    }

    /// Decodes every blob, whatever index the file has.
    pub fn rescan(
        file: &PbfFile,
        ctx: &Context,
        mut on_entry: impl FnMut(&BlobEntry) -> Result<()>,
    ) -> Result<Self> {
        let items = file
            .frames()
            .map(|head| head.map(|head| PlanItem::Scan(head.entry)));
        let mut entries = Vec::new();
        index_pass(file, items, ctx, |entry| {
            on_entry(&entry)?;
            entries.push(entry);
            Ok(())
        })?;
        Ok(Self { entries })
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

/// Turns items into entries, decoding those that need it on every core; `take` gets the entries in
/// order.
fn index_pass(
    file: &PbfFile,
    items: impl Iterator<Item = Result<PlanItem>> + Send,
    ctx: &Context,
    take: impl FnMut(BlobEntry) -> Result<()>,
) -> Result<()> {
    ctx.expect_phases(1);
    BlobPass::new("index", &file.input, ctx).run_stream(
        items,
        || (),
        |reader, (), item| match item {
            PlanItem::Known(entry) => Ok(entry),
            PlanItem::Scan(mut entry) => {
                reader.decode(&entry.clone(), |payload| scan_payload(payload, &mut entry))?;
                Ok(entry)
            }
        },
        take,
    )
}
