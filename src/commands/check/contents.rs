//! The check of what the blobs hold beside ids and references: locations on earth, strings, indices, and the features
//! that the header declares.

use crate::error::{Error, Result};
use crate::file::{BlobPass, BlobPlan, BlobReader, PbfFile};
use crate::osm::{KindSet, ObjectKind};
use crate::pbf::{BlobEntry, BlobFlags, ContentFault, content_faults, feature, scan_payload};
use crate::runtime::Context;
use serde::Serialize;

/// A node outside of the world: beyond 90 degrees of latitude or 180 degrees of longitude.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Outside {
    /// The id of the node.
    pub id: i64,
    /// The index of the node's blob in the file; the first data blob is 1.
    pub blob: u32,
    /// The latitude in degrees.
    pub lat: f64,
    /// The longitude in degrees.
    pub lon: f64,
}

/// A fault in the contents of a file, because of which other commands refuse the file or readers misunderstand it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The kind of the object; `None` if the fault concerns a whole blob or the file.
    pub kind: Option<ObjectKind>,
    /// The id of the object; `None` if the fault concerns a whole blob or the file.
    pub id: Option<i64>,
    /// The index of the blob in the file; 0, the header, stands for the file as a whole.
    pub blob: u32,
    /// The fault, as text.
    pub what: String,
}

/// The faults of a file.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// The number of faults.
    pub count: u64,
    /// The first faults in file order.
    pub listed: Vec<Fault>,
    /// The number of strings with characters that XML 1.0 does not know.
    pub inexpressible: u64,
}

/// The findings in a blob.
struct InBlob {
    /// The entry that was read from the blob; `None` if the blob cannot be decoded.
    entry: Option<BlobEntry>,
    number: u32,
    faults: Vec<ContentFault>,
    /// The number of further faults.
    more: u64,
    inexpressible: u64,
}

/// Decodes all objects, and compares what the blobs have with what the header declares. A fault of an object counts only
/// if the object is of one of `kinds`.
pub(super) fn check(
    file: &PbfFile,
    plan: &BlobPlan,
    kinds: KindSet,
    max_listed: usize,
    ctx: &Context,
) -> Result<Contents> {
    let (mut contents, mut entries) = (Contents::default(), Vec::new());
    let mut add = |fault: Fault| {
        contents.count += 1;
        if contents.listed.len() < max_listed {
            contents.listed.push(fault);
        }
    };
    let (mut more, mut inexpressible) = (0, 0);
    BlobPass::new("check contents", &file.input, ctx)
        .holding(2)
        .run(
            plan.entries.iter().collect(),
            || (),
            |reader, (), entry| look_into(reader, entry, kinds, max_listed),
            |found| {
                for ContentFault { object, what, .. } in found.faults {
                    add(Fault {
                        kind: object.map(|(kind, _)| kind),
                        id: object.map(|(_, id)| id),
                        blob: found.number,
                        what,
                    });
                }
                more += found.more;
                inexpressible += found.inexpressible;
                entries.extend(found.entry);
                Ok(())
            },
        )?;
    for (blob, what) in false_features(file, entries, plan.entries.len()) {
        add(Fault {
            kind: None,
            id: None,
            blob,
            what: what.into(),
        });
    }
    contents.count += more;
    contents.inexpressible = inexpressible;
    Ok(contents)
}

/// Decodes the objects of a blob.
fn look_into(
    reader: &mut BlobReader,
    entry: &BlobEntry,
    kinds: KindSet,
    max_listed: usize,
) -> Result<InBlob> {
    let mut found = InBlob {
        entry: None,
        number: entry.number,
        faults: Vec::new(),
        more: 0,
        inexpressible: 0,
    };
    let decoded = reader.decode(entry, |payload| {
        let inexpressible = content_faults(payload, |fault| {
            let kind = fault.object.map(|(kind, _)| kind);
            if kind.is_some_and(|kind| !kinds.contains(kind)) {
                return;
            }
            match found.faults.len() < max_listed {
                true => found.faults.push(fault),
                false => found.more += 1,
            }
        })?;
        let mut scanned = *entry;
        scan_payload(payload, &mut scanned)?;
        Ok((scanned, inexpressible))
    });
    match decoded {
        Ok((scanned, inexpressible)) => {
            found.entry = Some(scanned);
            found.inexpressible = inexpressible;
        }
        Err(Error::Blob { source, .. }) => found.faults.push(ContentFault {
            object: None,
            what: source.to_string(),
            is_readable: false,
        }),
        Err(error) => return Err(error),
    }
    Ok(found)
}

/// The contradictions between the features that the header declares and `entries`, which were read from the blobs, each
/// with the number of a blob, or 0. `blobs` is the number of all blobs, including damaged ones.
fn false_features(
    file: &PbfFile,
    entries: Vec<BlobEntry>,
    blobs: usize,
) -> Vec<(u32, &'static str)> {
    let declares = |feature| file.header.has(feature);
    let is_whole = entries.len() == blobs;
    let plan = BlobPlan { entries };
    let first = |flag| {
        let mut entries = plan.entries.iter();
        entries
            .find(|entry| entry.flags.has(flag))
            .map(|entry| entry.number)
    };
    let (deleted, located) = (first(BlobFlags::DELETED), first(BlobFlags::LOCATIONS));
    let mut found = Vec::new();
    if let Some(blob) = deleted.filter(|_| !declares(feature::HISTORY)) {
        let what =
            "there are deleted versions, and the header does not declare HistoricalInformation";
        found.push((blob, what));
    }
    if let Some(blob) = located.filter(|_| !declares(feature::LOCATIONS)) {
        let what = "ways have locations, and the header does not declare LocationsOnWays";
        found.push((blob, what));
    }
    if is_whole && declares(feature::LOCATIONS) && lacks_locations(&plan) {
        found.push((0, NO_WAY_HAS_LOCATIONS));
    }
    if declares(feature::SORTED) && plan.is_sorted() == Some(false) {
        let what = "the header declares Sort.Type_then_ID, and the objects are not in this order";
        found.push((0, what));
    }
    found
}

/// The contradiction between a header and the ways of a file.
pub(super) const NO_WAY_HAS_LOCATIONS: &str =
    "the header declares LocationsOnWays, and no way has the locations of its nodes";

/// Whether there are ways with nodes, and none has locations, according to the entries of decoded blobs.
pub(super) fn lacks_locations(plan: &BlobPlan) -> bool {
    let has_nodes = |entry: &BlobEntry| {
        let references = entry.statistics.as_ref().map(|counts| counts.references);
        entry.kinds.single() == Some(ObjectKind::Way) && references.is_none_or(|count| count > 0)
    };
    !plan.any(BlobFlags::LOCATIONS) && plan.entries.iter().any(has_nodes)
}
