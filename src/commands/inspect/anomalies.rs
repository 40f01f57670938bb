//! Finds unusual objects and blobs in a file.

use super::coordinates::is_outside_lat_lon_range;
use crate::error::FormatResult;
use crate::osm::{ObjectId, ObjectKind, id_from_rank};
use crate::pbf::{BlobEntry, BlobFlags, Block, RawElement};
use serde::Serialize;
use std::collections::BTreeMap;

/// The number of occurrences of an anomaly, and the first occurrence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Anomaly {
    /// The number of occurrences. An object of a history file counts once, however many of its versions have the
    /// anomaly.
    pub count: u64,
    /// The first object with the anomaly, in the form `n17`; `None` for an anomaly of blobs.
    pub object: Option<String>,
    /// The index of the first blob that has the anomaly or contains an object with the anomaly. The header blob has
    /// index 0.
    pub blob: u32,
    /// The last object with the anomaly; `None` for an anomaly of blobs.
    #[serde(skip)]
    last: Option<ObjectId>,
}

impl Anomaly {
    /// Adds the occurrences in the next blob in file order. An object whose versions continue in that blob counts once.
    pub(super) fn merge(&mut self, next: &Self) {
        let last = self.last.map(|id| id.to_string());
        let is_continued = last.is_some() && last == next.object;
        self.count += next.count - u64::from(is_continued);
        self.last = next.last;
    }
}

/// The description of blobs in which an id occurs more than once.
const REPETITIVE: &str = "blobs in which ids occur again";

/// Returns the anomalies of a file. In a history file, repeated ids are not an anomaly.
pub(super) fn anomalies_of_file(mut anomalies: Anomalies, is_history: bool) -> Anomalies {
    if is_history {
        anomalies.remove(REPETITIVE);
    }
    anomalies
}

/// Anomalies by their description.
pub type Anomalies = BTreeMap<&'static str, Anomaly>;

/// Counts an occurrence of an anomaly. Without `object`, it is an anomaly of a blob.
fn count_anomaly(
    anomalies: &mut Anomalies,
    what: &'static str,
    object: Option<ObjectId>,
    blob: u32,
) {
    let anomaly = anomalies.entry(what).or_insert_with(|| Anomaly {
        count: 0,
        object: object.map(|id| id.to_string()),
        blob,
        last: None,
    });
    // The versions of an object follow each other, so a comparison with the last object suffices to count the object
    // once.
    if object.is_none() || object != anomaly.last {
        anomaly.count += 1;
        anomaly.last = object;
    }
}

/// Records the anomalies of an object.
pub(super) fn record_object_anomalies(
    anomalies: &mut Anomalies,
    object: &RawElement<'_>,
    block: &Block<'_>,
    blob: u32,
) -> FormatResult<()> {
    let (kind, id) = (object.key.0, id_from_rank(object.key.1));
    let mut found = |what| count_anomaly(anomalies, what, Some(ObjectId { kind, id }), blob);
    let is_deleted = object.info()?.visible == Some(false);
    if id <= 0 {
        found("ids that are not positive");
    }
    match kind {
        ObjectKind::Node => {
            if !object.is_dense() {
                found("nodes that are not dense");
            }
            if let Some((lat, lon)) = object.location()? {
                let (lat, lon) = (block.units.nano_lat(lat), block.units.nano_lon(lon));
                if is_outside_lat_lon_range(lat, lon) && !is_deleted {
                    found("nodes outside of the world");
                }
                if (lat, lon) == (0, 0) && !is_deleted {
                    found("nodes at 0,0");
                }
            }
        }
        ObjectKind::Way => match object.count_refs_and_locations(&block.units)?.0 {
            _ if is_deleted => {}
            0 => found("ways without nodes"),
            1 => found("ways with one node"),
            2..=2000 => {}
            _ => found("ways with more than 2,000 nodes"),
        },
        ObjectKind::Relation => {
            let mut refers_to_itself = false;
            let mut members = 0;
            object.for_each_member(|member_kind, member| {
                members += 1;
                refers_to_itself |= (member_kind, member) == (ObjectKind::Relation, id);
            })?;
            if members == 0 && !is_deleted {
                found("relations without members");
            }
            if refers_to_itself {
                found("relations that are members of themselves");
            }
        }
    }
    Ok(())
}

/// Records the anomalies of a blob.
pub(super) fn record_blob_anomalies(anomalies: &mut Anomalies, entry: &BlobEntry) {
    let kinds = entry.kinds;
    for (is_so, what) in [
        (entry.count == 0, "blobs without objects"),
        (
            kinds.single().is_none() && !kinds.is_empty(),
            "blobs of several kinds",
        ),
        (entry.count > 16_000, "blobs of more than 16,000 objects"),
        (entry.payload_len > 16 << 20, "blobs of more than 16 MB"),
        (
            !entry.flags.has(BlobFlags::SORTED),
            "blobs whose objects are not in order",
        ),
        (
            entry.flags.has(BlobFlags::SORTED) && !entry.flags.has(BlobFlags::UNIQUE_IDS),
            REPETITIVE,
        ),
    ] {
        if is_so {
            count_anomaly(anomalies, what, None, entry.number);
        }
    }
}
