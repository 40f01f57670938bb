//! The part of the report that describes the blobs and objects of the whole file.

use super::blobs::{self, KindSummary};
use super::id_spans::{IdSpans, id_span_from_ends};
use crate::commands::fileinfo::IdBounds;
use crate::error::Result;
use crate::file::{BlobDecoder, PlannedFile};
use crate::osm::{Bbox, ObjectKind};
use crate::pbf::{BlobFlags, Block, TocSummary};

/// The blobs and objects of a file.
pub(super) struct Contents {
    /// The number of data blobs.
    pub blobs: u64,
    /// The size of all uncompressed payloads in bytes; `None` unless the size is known for every blob.
    pub payload_bytes: Option<u64>,
    /// The number of objects.
    pub objects: u64,
    /// The number of objects of each kind, with the smallest and the largest id, including objects in blobs of several
    /// kinds.
    pub tallies: [KindTally; 3],
    /// The number and size of the blobs, by the kind of their objects.
    pub kinds: Vec<KindSummary>,
    /// The box around all blobs whose box is known.
    pub bbox: Bbox,
    /// Whether the objects are in canonical order; `None` if that is not known.
    pub sorted: Option<bool>,
    /// Whether the file has a spatial layout.
    pub is_spatial: bool,
    /// Whether the file has a table of ids.
    pub has_id_table: bool,
    /// Whether a blob is known to have deleted versions.
    pub has_deleted: bool,
    /// Whether a blob is known to have ways with locations.
    pub has_locations: bool,
}

impl Contents {
    /// Returns the contents according to a summary. Returns `None` if a kind has both positive and non-positive ids.
    /// The summary does not contain the smallest id in this case.
    pub(super) fn of_summary(summary: &TocSummary) -> Option<Self> {
        let spans = summary.kinds.each_ref().map(|totals| match totals.blobs {
            0 => Some(None),
            _ => id_span_from_ends(totals.ids.0, totals.ids.1).map(Some),
        });
        let [Some(nodes), Some(ways), Some(relations)] = spans else {
            return None;
        };
        let spans = [nodes, ways, relations];
        let totals = ObjectKind::ALL.into_iter().zip(&summary.kinds).zip(spans);
        let kinds: Vec<_> = totals
            .filter_map(|((kind, totals), span)| Some(KindSummary::of_totals(kind, totals, span?)))
            .collect();
        Some(Self {
            blobs: summary.blob_count(),
            payload_bytes: kinds.iter().map(|kind| kind.payload_bytes).sum(),
            objects: kinds.iter().map(|kind| kind.objects).sum(),
            tallies: ObjectKind::ALL.map(|kind| KindTally {
                count: summary.kinds[kind as usize].counts.objects,
                ids: IdBounds(spans[kind as usize]),
            }),
            kinds,
            bbox: summary.bbox,
            sorted: summary.sorted,
            is_spatial: summary.is_spatial,
            has_id_table: summary.has_id_table,
            has_deleted: summary.has_deleted,
            has_locations: summary.has_locations,
        })
    }

    /// Computes the contents from the entries of all blobs. Decodes blobs that contain several kinds.
    pub(super) fn of_plan(source: PlannedFile<'_>, spans: &IdSpans) -> Result<Self> {
        let of_nodes = source.plan.entries.iter();
        let of_nodes = of_nodes.filter(|entry| entry.kinds.contains(ObjectKind::Node));
        let boxes = of_nodes.map(|entry| &entry.bbox);
        Ok(Self {
            blobs: source.plan.entries.len() as u64,
            payload_bytes: blobs::payload_bytes(&source.plan.entries),
            objects: source.plan.count(),
            tallies: count_by_kind(source, spans)?,
            kinds: blobs::summaries_by_kind(source.plan, spans),
            bbox: boxes.fold(Bbox::EMPTY, |bbox, next| bbox.union(next)),
            sorted: source.plan.is_sorted(),
            is_spatial: source.file.has_spatial_layout(),
            has_id_table: source.file.id_table.is_some(),
            has_deleted: source.plan.has_entry_with_flag(BlobFlags::DELETED),
            has_locations: source.plan.has_entry_with_flag(BlobFlags::LOCATIONS),
        })
    }
}

/// The number of objects of a kind, and the smallest and the largest id of these objects.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KindTally {
    pub count: u64,
    pub ids: IdBounds,
}

impl KindTally {
    fn add(&mut self, count: u64, (smallest, largest): (i64, i64)) {
        self.count += count;
        self.ids.add(smallest);
        self.ids.add(largest);
    }
}

/// Counts nodes, ways and relations. A blob of several kinds is decoded, and its objects are counted one by one.
fn count_by_kind(source: PlannedFile<'_>, spans: &IdSpans) -> Result<[KindTally; 3]> {
    let mut tallies = [KindTally::default(); 3];
    let mut reader = BlobDecoder::new(&source.file.input, source.ctx);
    for entry in &source.plan.entries {
        match entry.kinds.single() {
            Some(kind) => {
                tallies[kind as usize].add(entry.count.into(), spans.span_of(entry));
            }
            None if entry.kinds.is_empty() => {}
            None => {
                let payload = reader.payload(entry)?;
                let counted = Block::parse_without_strings(payload).and_then(|block| {
                    block.for_each_id(|kind, id| tallies[kind as usize].add(1, (id, id)))
                });
                counted.map_err(|error| reader.error(entry, error))?;
            }
        }
    }
    Ok(tallies)
}
