//! Reports about single blobs, and about the blobs of each kind.

use super::id_spans::{IdSpans, span_width};
use crate::error::Result;
use crate::file::{BlobDecoder, BlobPlan, PlannedFile};
use crate::osm::{Bbox, DECIMICRO_PER_DEGREE, ObjectKind, TypeThenId};
use crate::pbf::{Blob, BlobEntry, BlobFlags, KindTotals};
use serde::Serialize;

/// A blob in the list of blobs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BlobLine {
    /// The index of the blob in the file. The header blob has index 0.
    pub number: u32,
    /// The offset of the blob's frame in the file, in bytes.
    pub offset: u64,
    /// The size of the blob's frame in bytes.
    pub bytes: u32,
    /// The size of the uncompressed payload in bytes; `None` if the index does not record it.
    pub payload_bytes: Option<u32>,
    /// The compression of the blob: "none", "zlib", "lz4" or "zstd".
    pub compression: &'static str,
    /// The kinds of the objects in the blob, such as "nodes", "ways+relations" or "nothing".
    pub kinds: String,
    /// The number of objects in the blob.
    pub objects: u32,
    /// The smallest id; in a blob of several kinds, the first id in canonical order among the objects of its first
    /// kind.
    pub min_id: i64,
    /// The largest id; in a blob of several kinds, the last id in canonical order among the objects of its last kind.
    pub max_id: i64,
    /// Whether the objects of the blob are in canonical order; `None` if the index does not record it.
    pub sorted: Option<bool>,
    /// The box around the nodes of the blob, or around the objects of a blob in a spatial layout, in degrees: west,
    /// south, east, north. `None` if the index does not record it.
    pub bbox: Option<[f64; 4]>,
    /// Further facts: `unique_ids` (no id occurs twice), `locations` (a way has the coordinates of its nodes), `dense`
    /// (a node is dense), `deleted` (an object is a deleted version), `table` (the blob also has a part of the table of
    /// contents). A fact without a name in this list does not hold or, if `sorted` is `None`, is unknown.
    pub flags: Vec<&'static str>,
}

impl Eq for BlobLine {}

/// The distribution of the ids of one kind, in the blobs that contain only that kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IdDistribution {
    /// The kind of the objects.
    pub kind: ObjectKind,
    /// The smallest id.
    pub min_id: i64,
    /// The largest id.
    pub max_id: i64,
    /// The number of objects.
    pub objects: u64,
    /// The number of ids from the smallest to the largest, used or not.
    pub span: u64,
    /// The number of blobs that contain only this kind.
    pub blobs: u64,
    /// The number of blobs whose first id equals or precedes, in canonical order, the last id of an earlier blob.
    pub overlapping_blobs: u64,
    /// The number of ids from the smallest to the largest id of the widest blob, used or not.
    pub widest_blob: u64,
}

/// The number and size of the blobs that contain only objects of one kind, or of the blobs with several kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KindSummary {
    /// "node", "way", "relation", or "mixed" for blobs of several kinds.
    pub kind: &'static str,
    /// The number of blobs.
    pub blobs: u64,
    /// The size of the blobs in the file, in bytes.
    pub bytes: u64,
    /// The size of the uncompressed payloads in bytes; `None` unless the size is known for every blob.
    pub payload_bytes: Option<u64>,
    /// The number of objects in the blobs.
    pub objects: u64,
    /// The smallest id; `None` for blobs of several kinds.
    pub min_id: Option<i64>,
    /// The largest id; `None` for blobs of several kinds.
    pub max_id: Option<i64>,
}

impl KindSummary {
    /// Creates the summary of a kind that has at least one blob. `ids` are its smallest and its largest id.
    pub(super) const fn of_totals(kind: ObjectKind, totals: &KindTotals, ids: (i64, i64)) -> Self {
        Self {
            kind: kind.name(),
            blobs: totals.blobs,
            bytes: totals.bytes,
            payload_bytes: Some(totals.payload_bytes),
            objects: totals.counts.objects,
            min_id: Some(ids.0),
            max_id: Some(ids.1),
        }
    }
}

/// Lists the first blobs of the file, at most `most`.
pub(super) fn list_blobs(
    source: PlannedFile<'_>,
    spans: &IdSpans,
    most: usize,
) -> Result<Vec<BlobLine>> {
    let mut reader = BlobDecoder::new(&source.file.input, source.ctx);
    let lines = source
        .plan
        .entries
        .iter()
        .take(most)
        .map(|entry| Ok(blob_line(entry, spans, &reader.read(entry)?.blob)));
    lines.collect()
}

fn blob_line(entry: &BlobEntry, spans: &IdSpans, blob: &Blob<'_>) -> BlobLine {
    let scanned = entry.flags.has(BlobFlags::SCANNED);
    let (min_id, max_id) = match entry.kinds.single() {
        Some(_) => spans.span_of(entry),
        None => (entry.min_id, entry.max_id),
    };
    BlobLine {
        number: entry.number,
        offset: entry.offset,
        bytes: entry.frame_len,
        payload_bytes: (entry.payload_len > 0).then_some(entry.payload_len),
        compression: blob.encoding.name(),
        kinds: entry.kinds.to_string(),
        objects: entry.count,
        min_id,
        max_id,
        sorted: scanned.then(|| entry.flags.has(BlobFlags::SORTED)),
        bbox: (!entry.bbox.is_empty()).then(|| edges_in_degrees(entry.bbox)),
        flags: FLAGS
            .into_iter()
            .filter(|(flag, _)| entry.flags.has(*flag))
            .map(|(_, name)| name)
            .collect(),
    }
}

/// The flags in the list of blobs, and their names.
const FLAGS: [(BlobFlags, &str); 5] = [
    (BlobFlags::UNIQUE_IDS, "unique_ids"),
    (BlobFlags::LOCATIONS, "locations"),
    (BlobFlags::DENSE, "dense"),
    (BlobFlags::DELETED, "deleted"),
    (BlobFlags::HAS_TABLE, "table"),
];

/// Returns the edges of a box in degrees: west, south, east, north.
fn edges_in_degrees(bbox: Bbox) -> [f64; 4] {
    let degrees = |edge_e7: i32| f64::from(edge_e7) / DECIMICRO_PER_DEGREE as f64;
    bbox.edges_e7().map(degrees).into_array()
}

/// Returns the distribution of the ids of each kind that the file has.
pub(super) fn id_distributions(plan: &BlobPlan, spans: &IdSpans) -> Vec<IdDistribution> {
    let range = |kind: ObjectKind| {
        let blobs = plan.entries.iter();
        let blobs = blobs.filter(|entry| entry.kinds.single() == Some(kind));
        let mut range: Option<IdDistribution> = None;
        let mut last: Option<TypeThenId> = None;
        for entry in blobs {
            let (Some(first_key), Some(last_key)) = (entry.first_sort_key(), entry.last_sort_key())
            else {
                continue;
            };
            let (min_id, max_id) = spans.span_of(entry);
            let found = range.get_or_insert(IdDistribution {
                kind,
                min_id,
                max_id,
                objects: 0,
                span: 0,
                blobs: 0,
                overlapping_blobs: 0,
                widest_blob: 0,
            });
            found.min_id = found.min_id.min(min_id);
            found.max_id = found.max_id.max(max_id);
            found.objects += u64::from(entry.count);
            found.blobs += 1;
            found.overlapping_blobs += u64::from(last >= Some(first_key));
            found.widest_blob = found.widest_blob.max(span_width((min_id, max_id)));
            last = last.max(Some(last_key));
        }
        range.map(|range| IdDistribution {
            span: span_width((range.min_id, range.max_id)),
            ..range
        })
    };
    ObjectKind::ALL.into_iter().filter_map(range).collect()
}

/// Returns the size of all uncompressed payloads in bytes; `None` unless the size is known for every blob.
pub(super) fn payload_bytes<'e>(entries: impl IntoIterator<Item = &'e BlobEntry>) -> Option<u64> {
    let lengths = entries.into_iter().map(|entry| entry.payload_len);
    lengths.map(|len| (len > 0).then_some(u64::from(len))).sum()
}

/// Summarizes the blobs by the kind of their objects.
pub(super) fn summaries_by_kind(plan: &BlobPlan, spans: &IdSpans) -> Vec<KindSummary> {
    let kinds = ObjectKind::ALL.into_iter().map(Some).chain([None]);
    let summaries = kinds.map(|kind| {
        let of_kind = || {
            plan.entries
                .iter()
                .filter(move |entry| entry.kinds.single() == kind && !entry.kinds.is_empty())
        };
        let sum = |value: fn(&BlobEntry) -> u64| of_kind().map(value).sum();
        let of_one_kind = || {
            of_kind()
                .filter(|_| kind.is_some())
                .map(|entry| spans.span_of(entry))
        };
        KindSummary {
            kind: kind.map_or("mixed", ObjectKind::name),
            blobs: of_kind().count() as u64,
            bytes: sum(|entry| u64::from(entry.frame_len)),
            payload_bytes: payload_bytes(of_kind()),
            objects: sum(|entry| u64::from(entry.count)),
            min_id: of_one_kind().map(|(smallest, _)| smallest).min(),
            max_id: of_one_kind().map(|(_, largest)| largest).max(),
        }
    });
    summaries.filter(|summary| summary.blobs > 0).collect()
}
