//! Checks whether all blobs of a file can be decoded, and whether the indexes of the file describe them correctly.

use super::contents::NO_WAY_HAS_LOCATIONS;
use super::id_table::{IdRanges, IdsOfBlob};
use crate::error::{Error, FormatError, FormatResult, Result};
use crate::file::{BlobPass, BlobPlan, FrameHead, PbfFile};
use crate::osm::{Bbox, KindSet, ObjectKind};
use crate::pbf::{BlobEntry, BlobFlags, BlobSegments, Block, Toc, feature, scan_payload};
use crate::runtime::Context;
use serde::Serialize;

/// The result of comparing every blob with the indexes.
#[derive(Debug, Clone, Default, Serialize)]
pub struct IndexCheck {
    /// The number of data blobs that were read, including damaged ones.
    pub blobs: u64,
    /// The number of undamaged blobs that the table of contents describes.
    pub in_table: u64,
    /// Whether the file has a spatial layout. `cat` can rebuild indexes, but not a spatial layout.
    pub spatial_layout: bool,
    /// The number of objects whose ids are in ranges of the id table; 0 if the file has no id table. Objects in damaged
    /// blobs do not count.
    pub in_id_table: u64,
    /// The number of undamaged blobs whose payload was compared with a content hash in the table of contents.
    pub hashed: u64,
    /// The number of undamaged blobs with an index in the BlobHeader.
    pub with_blob_index: u64,
    /// The number of undamaged blobs whose zlib data has segments. An edit copies the segments that do not change.
    pub with_segments: u64,
    /// The number of blobs that cannot be decoded.
    pub damaged: u64,
    /// The number of differences between blobs and the indexes that describe them.
    pub differences: u64,
    /// The first problems, at most [`Options::max_listed`](super::Options::max_listed). Problems of blobs are in file
    /// order. Problems of the file as a whole come before or after them.
    pub listed: Vec<Finding>,
}

/// A problem of a blob or of its description in an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The index of the blob in the file. 0, the index of the header blob, stands for the file as a whole.
    pub blob: u32,
    /// The offset of the blob's frame in the file, in bytes.
    pub offset: u64,
    /// A description of the problem.
    pub what: String,
}

impl IndexCheck {
    /// Returns the number of all problems, whether they are listed or not.
    pub const fn problems(&self) -> u64 {
        self.damaged + self.differences
    }
}

/// The result of reading a blob.
struct BlobResult {
    /// The entry that was read from the blob. If the blob cannot be decoded, an entry with its offset and lengths, and
    /// the error.
    found: Result<BlobEntry, (BlobEntry, FormatError)>,
    /// The entry according to the index in the BlobHeader; `None` if there is no index that can be read.
    indexed: Option<BlobEntry>,
    segments: SegmentUse,
    /// The bounding box of the locations in ways, if the table of contents has boxes of ways.
    box_of_ways: Option<Bbox>,
    ids: IdsOfBlob,
}

/// Whether a blob has segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SegmentUse {
    None,
    Found,
    /// The data ends like data with segments, but the segments cannot be inflated independently.
    Wrong,
}

/// Decodes every blob and compares it with the table of contents and the index in its BlobHeader.
pub(super) fn check_index(file: &PbfFile, max_listed: usize, ctx: &Context) -> Result<IndexCheck> {
    let mut comparison = IndexComparison::new(file, max_listed);
    let id_ranges = comparison.usable_id_ranges(IdRanges::read(file, ctx)?);
    let has_boxes_of_ways = file.has_spatial_layout();
    BlobPass::new("check index", &file.input, ctx)
        .with_memory_factor(2)
        .run_stream(
            file.frames(),
            || (),
            |reader, (), FrameHead { entry, indexed }| {
                let (mut found, mut segments) = (entry, SegmentUse::None);
                let (mut box_of_ways, mut ids) = (None, IdsOfBlob::default());
                let scan = |payload: &[u8], of_blob: BlobSegments<'_>| {
                    segments = match of_blob {
                        BlobSegments::None => SegmentUse::None,
                        BlobSegments::Found(_) => SegmentUse::Found,
                        BlobSegments::Wrong => SegmentUse::Wrong,
                    };
                    scan_payload(payload, &mut found)?;
                    if has_boxes_of_ways {
                        box_of_ways =
                            Some(Block::parse_without_strings(payload)?.bbox_of_way_locations()?);
                    }
                    if let Some(ranges) = &id_ranges {
                        ids = ranges.compare_blob(&entry, payload)?;
                    }
                    Ok(())
                };
                let stored = reader.read(&entry);
                let scanned = match stored.and_then(|stored| stored.decode_in_segments(scan)) {
                    Ok(()) => Ok(()),
                    Err(Error::Blob { source, .. }) => Err(source),
                    Err(error) => return Err(error),
                };
                Ok(BlobResult {
                    found: scanned.map(|()| found).map_err(|error| (entry, error)),
                    indexed,
                    segments,
                    box_of_ways,
                    ids,
                })
            },
            |result| {
                comparison.add_blob(result);
                Ok(())
            },
        )?;
    if let Some(ranges) = &id_ranges {
        comparison.compare_whole_id_table(ranges);
    }
    Ok(comparison.finish())
}

/// The finding about an entry of the table of contents whose blob does not exist.
const NO_BLOB: &str = "the table of contents has an entry for a blob that does not exist";

/// A comparison of the blobs of a file, in file order, with the indexes of the file. Collects the findings.
struct IndexComparison<'f> {
    file: &'f PbfFile,
    /// The entries of the table of contents that have not been matched with a blob yet.
    entries: std::slice::Iter<'f, BlobEntry>,
    /// The entries that were read from the undamaged blobs so far.
    plan: BlobPlan,
    check: IndexCheck,
    max_listed: usize,
    /// The sum of one hash per pair (id range, blob), over the blobs that were read so far. A blob forms a pair with
    /// each range that contains some of its ids.
    sum_of_ids: u64,
}

impl<'f> IndexComparison<'f> {
    fn new(file: &'f PbfFile, max_listed: usize) -> Self {
        let entries = file.toc.as_ref().map_or(&[][..], |toc| &toc.entries);
        let mut comparison = Self {
            file,
            entries: entries.iter(),
            plan: BlobPlan {
                entries: Vec::new(),
            },
            check: IndexCheck {
                spatial_layout: file.has_spatial_layout(),
                ..IndexCheck::default()
            },
            max_listed,
            sum_of_ids: 0,
        };
        if let Some(problem) = &file.toc_problem {
            comparison.add_difference(&BlobEntry::default(), problem);
        }
        comparison
    }

    fn add_blob(&mut self, result: BlobResult) {
        self.check.blobs += 1;
        let found = match result.found {
            Ok(found) => found,
            Err((entry, error)) => {
                self.check.damaged += 1;
                self.list_problem(&entry, error.to_string());
                self.advance_to_entry_of(&entry);
                return;
            }
        };
        match result.segments {
            SegmentUse::None => {}
            SegmentUse::Found => self.check.with_segments += 1,
            SegmentUse::Wrong => self.add_difference(
                &found,
                "its segments cannot be inflated independently, so that each edit compresses the whole blob again",
            ),
        }
        if let Some(indexed) = result.indexed {
            self.check.with_blob_index += 1;
            self.compare_entries(&indexed, &found, "its own index");
        }
        if self.file.toc.is_some() {
            self.compare_with_table(&found, result.box_of_ways);
        }
        self.add_ids(&found, result.ids);
        self.plan.entries.push(found);
    }

    /// Consumes the entries of the table of contents up to the given blob. Returns the entry of that blob; `None` if
    /// the table has none. Counts the earlier entries as differences, because their blobs do not exist.
    fn advance_to_entry_of(&mut self, blob: &BlobEntry) -> Option<&'f BlobEntry> {
        while let Some(entry) = self.entries.as_slice().first()
            && entry.offset <= blob.offset
        {
            self.entries.next();
            if entry.offset == blob.offset {
                return Some(entry);
            }
            self.add_difference(entry, NO_BLOB);
        }
        None
    }

    fn compare_with_table(&mut self, found: &BlobEntry, box_of_ways: Option<Bbox>) {
        let Some(entry) = self.advance_to_entry_of(found) else {
            self.add_difference(found, "the table of contents has no entry for this blob");
            return;
        };
        self.check.in_table += 1;
        self.check.hashed += u64::from(entry.flags.has(BlobFlags::HASHED));
        self.compare_entries(entry, found, "the table of contents");
        // Only boxes of ways are compared here, because a blob of relations does not contain the locations of its
        // relations. An entry without a box is not a difference, because readers never skip a blob without a box.
        let has_box = entry.kinds == KindSet::of(ObjectKind::Way) && !entry.bbox.is_empty();
        let is_false = |bbox| has_box && entry.bbox != bbox;
        if box_of_ways.is_some_and(is_false) {
            self.add_difference(found, "the table of contents: the box of the ways differs");
        }
    }

    /// Returns the ranges of the id table; `None` if the file has no id table or the table is damaged. Reports a
    /// damaged table as a difference.
    fn usable_id_ranges<'i>(
        &mut self,
        read: Option<FormatResult<IdRanges<'i>>>,
    ) -> Option<IdRanges<'i>> {
        match read? {
            Ok(ranges) => Some(ranges),
            Err(problem) => {
                let what = format!("the table of ids cannot be read: {problem}");
                self.add_difference(&BlobEntry::default(), &what);
                None
            }
        }
    }

    fn add_ids(&mut self, found: &BlobEntry, ids: IdsOfBlob) {
        self.check.in_id_table += ids.in_ranges;
        self.sum_of_ids = self.sum_of_ids.wrapping_add(ids.sum);
        if ids.outside > 0 {
            let what = format!(
                "the table of ids does not lead to {} of its objects",
                ids.outside
            );
            self.add_difference(found, &what);
        }
    }

    /// Compares the id table with the ids of all blobs, unless some blobs are damaged.
    fn compare_whole_id_table(&mut self, ranges: &IdRanges<'_>) {
        if self.check.damaged == 0 && ranges.hash_sum() != self.sum_of_ids {
            let what = "the table of ids: it leads to other blobs than those that have the ids";
            self.add_difference(&BlobEntry::default(), what);
        }
    }

    fn compare_entries(&mut self, indexed: &BlobEntry, found: &BlobEntry, source: &str) {
        let lengths = |entry: &BlobEntry| (entry.frame_len, entry.header_len);
        if lengths(indexed) != lengths(found) {
            self.add_difference(
                indexed,
                &format!("{source}: the length of the frame differs"),
            );
        }
        for mismatch in indexed.mismatches(found) {
            self.add_difference(found, &format!("{source}: {mismatch}"));
        }
    }

    fn add_difference(&mut self, entry: &BlobEntry, what: &str) {
        self.check.differences += 1;
        self.list_problem(entry, what.to_owned());
    }

    /// Adds a problem to the list, if there is room.
    fn list_problem(&mut self, entry: &BlobEntry, what: String) {
        if self.check.listed.len() < self.max_listed {
            let (blob, offset) = (entry.number, entry.offset);
            self.check.listed.push(Finding { blob, offset, what });
        }
    }

    fn finish(mut self) -> IndexCheck {
        for entry in self.entries.clone() {
            self.add_difference(entry, NO_BLOB);
        }
        let is_located = self.file.header.has(feature::LOCATIONS);
        if is_located && self.check.damaged == 0 && lacks_locations(&self.plan) {
            self.add_difference(&BlobEntry::default(), NO_WAY_HAS_LOCATIONS);
        }
        if let Some(toc) = &self.file.toc {
            self.check_whole_file(toc);
        }
        self.check
    }

    /// Checks the statements of the table of contents and of the header about the whole file.
    fn check_whole_file(&mut self, toc: &Toc) {
        let (plan, flags) = (&self.plan, toc.flags);
        // The order of a damaged blob is unknown, so the file counts as sorted unless the other blobs prove otherwise.
        let is_sorted = match self.check.damaged {
            0 => plan.is_sorted() == Some(true),
            _ => plan.is_sorted() != Some(false),
        };
        let checks = [
            (
                flags.sorted && !is_sorted,
                "the table of contents: objects are not in order",
            ),
            (
                flags.history != self.file.header.has(feature::HISTORY),
                "the table of contents: the header disagrees on whether the file is a history",
            ),
            (
                flags.locations != self.file.header.has(feature::LOCATIONS),
                "the table of contents: the header disagrees on whether ways have locations",
            ),
            (
                self.file.summary.is_some()
                    && self.check.damaged == 0
                    && self.file.summary.as_deref() != plan.summary(flags).as_ref(),
                "the header: the summary of the table of contents differs from the blobs",
            ),
            (
                plan.has_entry_with_flag(BlobFlags::DELETED) && !flags.history,
                "the table of contents: there are deleted versions",
            ),
        ];
        for (_, what) in checks.into_iter().filter(|(is_wrong, _)| *is_wrong) {
            self.add_difference(&BlobEntry::default(), what);
        }
    }
}

/// Whether the file has ways with nodes, but no way with locations, according to the entries of decoded blobs.
fn lacks_locations(plan: &BlobPlan) -> bool {
    let has_nodes = |entry: &BlobEntry| {
        let references = entry.statistics.as_ref().map(|counts| counts.references);
        entry.kinds.single() == Some(ObjectKind::Way) && references.is_none_or(|count| count > 0)
    };
    !plan.has_entry_with_flag(BlobFlags::LOCATIONS) && plan.entries.iter().any(has_nodes)
}
