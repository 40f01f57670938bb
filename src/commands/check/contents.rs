//! Checks the contents of blobs, such as strings and indices, but not ids and references. Compares these contents with
//! the features that the header declares.

use crate::error::{Error, FormatError, Result};
use crate::file::{BlobDecoder, BlobPass, BlobPlan, PbfFile, PlannedFile};
use crate::osm::{KindSet, ObjectKind};
use crate::pbf::{BlobEntry, ContentFacts, ContentFault, feature, report_content_faults};
use serde::Serialize;

/// A node with coordinates out of range, that is, beyond 90 degrees of latitude or 180 degrees of longitude.
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

/// A fault in the contents of a file. Because of it, other commands refuse the file, or readers misunderstand the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The kind of the object; `None` if the fault concerns a whole blob or the file.
    pub kind: Option<ObjectKind>,
    /// The id of the object; `None` if the fault concerns a whole blob or the file.
    pub id: Option<i64>,
    /// The index of the blob in the file; 0, the header, stands for the file as a whole.
    pub blob: u32,
    /// A description of the fault.
    pub what: String,
}

/// The faults of a file.
#[derive(Debug, Default)]
pub(super) struct ContentFaults {
    /// The number of faults.
    pub count: u64,
    /// The first faults in file order.
    pub listed: Vec<Fault>,
    /// The number of strings with characters that XML 1.0 does not allow.
    pub inexpressible: u64,
    /// The number of tags with a key that an earlier tag of the same object has, too.
    pub repeated_keys: u64,
}

/// The findings about the contents of a blob.
#[derive(Default)]
pub(super) struct BlobContents {
    number: u32,
    /// The facts about the objects; `None` if the objects cannot be decoded.
    facts: Option<ContentFacts>,
    faults: Vec<ContentFault>,
    /// The number of faults that are not in `faults`.
    more: u64,
    /// The number of tags with a key that an earlier tag of the same object has, too.
    repeated_keys: u64,
}

/// The rules for checking the contents of a blob.
#[derive(Clone, Copy)]
pub(super) struct ContentRules {
    /// The kinds of the objects whose faults count.
    pub kinds: KindSet,
    /// The maximum number of faults that are listed.
    pub max_listed: usize,
}

/// The findings in the blobs of a file, and facts that are compared with the header.
#[derive(Default)]
pub(super) struct ContentFindings {
    contents: ContentFaults,
    /// The number of the first blob with deleted versions.
    deleted: Option<u32>,
    /// The number of the first blob with locations in ways.
    located: Option<u32>,
    has_bare_ways: bool,
    /// Whether the facts are incomplete, because a blob could not be decoded.
    is_incomplete: bool,
}

impl ContentFindings {
    /// Adds the findings in a blob.
    pub(super) fn add(&mut self, found: BlobContents, max_listed: usize) {
        let first = |all: &mut Option<u32>, is_here: bool| {
            if is_here {
                *all = Some(all.map_or(found.number, |number| number.min(found.number)));
            }
        };
        match found.facts {
            None => self.is_incomplete = true,
            Some(facts) => {
                first(&mut self.deleted, facts.has_deleted);
                first(&mut self.located, facts.has_locations);
                self.has_bare_ways |= facts.has_bare_ways;
                self.contents.inexpressible += facts.inexpressible;
            }
        }
        self.contents.repeated_keys += found.repeated_keys;
        self.contents.count += found.faults.len() as u64 + found.more;
        let listed = &mut self.contents.listed;
        listed.extend(found.faults.into_iter().map(|fault| Fault {
            kind: fault.object.map(|(kind, _)| kind),
            id: fault.object.map(|(_, id)| id),
            blob: found.number,
            what: fault.what,
        }));
        if listed.len() > max_listed {
            // The kinds are checked one after the other, each in file order, so the list as a whole is not in file
            // order.
            listed.sort_by_key(|fault| fault.blob);
            listed.truncate(max_listed);
        }
    }
}

/// Compares the contents of all blobs with the features that the header declares. `findings` are the findings in all
/// blobs with objects. If `findings` is `None`, all blobs are decoded and checked first.
pub(super) fn check(
    source: PlannedFile<'_>,
    findings: Option<ContentFindings>,
    rules: ContentRules,
) -> Result<ContentFaults> {
    // The passes that check ids do not read blobs without objects, so the contents of these blobs are checked here.
    let is_left = |entry: &&BlobEntry| findings.is_none() || entry.kinds.is_empty();
    let left: Vec<_> = source.plan.entries.iter().filter(is_left).collect();
    let mut findings = findings.unwrap_or_default();
    if !left.is_empty() {
        BlobPass::new("check contents", &source.file.input, source.ctx)
            .with_memory_factor(2)
            .run(
                left,
                || (),
                |reader, (), entry| decode_and_check(reader, entry, rules),
                |found| {
                    findings.add(found, rules.max_listed);
                    Ok(())
                },
            )?;
    }
    let false_features = false_header_features(source.file, source.plan, &findings);
    let mut contents = findings.contents;
    contents.listed.sort_by_key(|fault| fault.blob);
    for (blob, what) in false_features {
        contents.count += 1;
        if contents.listed.len() < rules.max_listed {
            contents.listed.push(Fault {
                kind: None,
                id: None,
                blob,
                what: what.into(),
            });
        }
    }
    Ok(contents)
}

impl ContentRules {
    /// Checks the objects in the payload of a blob.
    pub(super) fn check_payload(self, entry: &BlobEntry, payload: &[u8]) -> BlobContents {
        let (mut faults, mut more, mut repeated_keys) = (Vec::new(), 0, 0);
        let facts = report_content_faults(payload, |fault| {
            let kind = fault.object.map(|(kind, _)| kind);
            if kind.is_some_and(|kind| !self.kinds.contains(kind)) {
                return;
            }
            repeated_keys += u64::from(fault.is_repeated_key);
            if faults.len() < self.max_listed {
                faults.push(fault)
            } else {
                more += 1
            }
        });
        let mut found = BlobContents {
            number: entry.number,
            facts: facts.as_ref().ok().copied(),
            faults,
            more,
            repeated_keys,
        };
        if let Err(error) = facts {
            found.faults.push(undecodable_blob_fault(&error));
        }
        found
    }
}

/// Returns the fault to report for a blob that cannot be decoded.
fn undecodable_blob_fault(error: &FormatError) -> ContentFault {
    ContentFault::new(None, error.to_string(), false)
}

/// Decodes a blob, and checks its objects. A blob that cannot be decoded counts as a fault.
fn decode_and_check(
    reader: &mut BlobDecoder,
    entry: &BlobEntry,
    rules: ContentRules,
) -> Result<BlobContents> {
    let decoded = reader.decode(entry, |payload| Ok(rules.check_payload(entry, payload)));
    match decoded {
        Err(Error::Blob { source, .. }) => Ok(BlobContents {
            number: entry.number,
            faults: vec![undecodable_blob_fault(&source)],
            ..BlobContents::default()
        }),
        decoded => decoded,
    }
}

/// Returns the contradictions between the blobs and the features that the header declares. Each comes with the number
/// of a blob, or with 0 for the file as a whole.
fn false_header_features(
    file: &PbfFile,
    plan: &BlobPlan,
    findings: &ContentFindings,
) -> Vec<(u32, &'static str)> {
    let declares = |feature| file.header.has(feature);
    let mut found = Vec::new();
    if let Some(blob) = findings.deleted.filter(|_| !declares(feature::HISTORY)) {
        let what =
            "there are deleted versions, and the header does not declare HistoricalInformation";
        found.push((blob, what));
    }
    // Other programs look up no locations in a file whose header declares them. So the header may declare them only if
    // all ways have locations.
    let is_undeclared = !declares(feature::LOCATIONS) && !findings.has_bare_ways;
    if let Some(blob) = findings.located.filter(|_| is_undeclared) {
        let what = "ways have locations, and the header does not declare LocationsOnWays";
        found.push((blob, what));
    }
    let lacks_locations =
        findings.has_bare_ways && findings.located.is_none() && !findings.is_incomplete;
    if declares(feature::LOCATIONS) && lacks_locations {
        found.push((0, NO_WAY_HAS_LOCATIONS));
    }
    if declares(feature::SORTED) && plan.is_sorted() == Some(false) {
        let what = "the header declares Sort.Type_then_ID, and the objects are not in this order";
        found.push((0, what));
    }
    found
}

/// The description of a fault: the header declares locations on ways, but no way has locations.
pub(super) const NO_WAY_HAS_LOCATIONS: &str =
    "the header declares LocationsOnWays, and no way has the locations of its nodes";
