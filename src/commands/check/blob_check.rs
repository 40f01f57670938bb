//! Checks the objects of one kind in a blob.

use super::contents::{BlobContents, ContentRules};
use super::{Dangling, IdViolation, Outside};
use crate::error::FormatResult;
use crate::index::{IdBatch, IdSet, SharedIdSet};
use crate::osm::{Location, ObjectKind, TypeThenId, id_from_rank, id_rank};
use crate::pbf::{BlobEntry, Block};

/// The first and the last key of a blob, and the versions of the first and the last object.
pub(super) type BlobEnds = (TypeThenId, TypeThenId, i64, i64);

/// The position of a violation in its blob: `(kind, objects_before, is_duplicate)`. `kind` is the kind of the object.
/// `objects_before` is the number of objects of this kind before it in the blob. `is_duplicate` is `false` for an id
/// that is out of order. An id can be both a duplicate and out of order.
pub(super) type ViolationPosition = (ObjectKind, u64, bool);

/// The findings of a worker in a blob, for one kind of objects.
#[derive(Default)]
pub(super) struct BlobFindings {
    /// The index of the blob in the plan.
    pub index: usize,
    /// The ends of the blob; `None` if its keys were not read.
    pub ends: Option<BlobEnds>,
    /// The number of objects of the kind.
    pub count: u64,
    /// The ids of the objects of the kind in block order, if ids are collected and not in `batch`.
    pub ids: Vec<i64>,
    /// The ids of the objects of the kind, if ids are collected and strictly ascending.
    pub batch: IdBatch,
    /// The first violations, at most [`KindCheck::max_listed`].
    pub violations: Vec<(ViolationPosition, IdViolation)>,
    /// The number of further ids that are out of order, and the number of further duplicate ids.
    pub more_violations: [u64; 2],
    /// The first references to missing objects, at most [`KindCheck::max_listed`]. If several relations refer to the
    /// same missing node or way, only the first reference is listed.
    pub dangling: Vec<Dangling>,
    /// The number of further references to missing objects, not counting those in `more_members`.
    pub more_dangling: u64,
    /// The number of references of ways.
    pub references: u64,
    /// The number of references from ways to nodes that are not in the file, but have a location in the way.
    pub stored: u64,
    /// The missing nodes and ways that are members of relations and are not listed in `dangling`. Each counts once.
    pub more_members: MissingMembers,
    /// Whether a relation refers to a relation.
    pub has_nested: bool,
    /// The first nodes with coordinates out of range, at most [`KindCheck::max_listed`].
    pub outside: Vec<Outside>,
    /// The number of further nodes with coordinates out of range.
    pub more_outside: u64,
    /// The findings in the contents; `None` unless this is the first check that reads the blob.
    pub contents: Option<BlobContents>,
}

impl BlobFindings {
    /// Removes the findings about references of ways.
    fn clear_references(&mut self) {
        self.dangling.clear();
        (self.more_dangling, self.references, self.stored) = (0, 0, 0);
    }
}

/// The use of the locations that ways store for their nodes. With `Ignored`, every reference to a node that is not in
/// the file counts as missing. With the other variants, it does not count if the way stores a location for the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoredLocationUse {
    /// Stored locations are not read.
    Ignored,
    /// Stored locations are read only in blobs with references to nodes that are not in the file.
    IfMissing,
    /// Stored locations are read in all blobs that may have some.
    Always,
}

/// A compact list of missing nodes and ways that are members of relations.
#[derive(Default)]
pub(super) struct MissingMembers {
    /// The ids of the missing nodes, and of the missing ways.
    ids: [Vec<i64>; 2],
    /// The id of each relation, and the indices in `ids` at which its nodes and its ways end.
    relations: Vec<(i64, [usize; 2])>,
}

impl MissingMembers {
    fn push(&mut self, relation: i64, kind: ObjectKind, id: i64) {
        self.ids[kind as usize].push(id);
        let ends = self.ids.each_ref().map(Vec::len);
        match self.relations.last_mut() {
            Some((last, found)) if *last == relation => *found = ends,
            _ => self.relations.push((relation, ends)),
        }
    }

    /// Returns the missing members by relation, nodes before ways.
    pub(super) fn iter(&self) -> impl Iterator<Item = Dangling> {
        let starts = std::iter::once([0; 2]).chain(self.relations.iter().map(|(_, ends)| *ends));
        let relations = self.relations.iter().zip(starts);
        relations.flat_map(move |((relation, ends), starts)| {
            [ObjectKind::Node, ObjectKind::Way]
                .into_iter()
                .flat_map(move |kind| {
                    let index = kind as usize;
                    let ids = &self.ids[index][starts[index]..ends[index]];
                    ids.iter()
                        .map(move |id| Dangling::missing_member(*relation, kind, *id))
                })
        })
    }
}

/// The number of references that are looked up at a time.
const REFS_AT_A_TIME: usize = 1 << 16;

/// The rule for the order of two adjacent objects.
#[derive(Clone, Copy)]
pub(super) struct OrderRule {
    /// Whether objects may be in any order.
    pub is_free: bool,
    /// Whether an object may be followed by a later version of itself.
    pub history: bool,
}

impl OrderRule {
    /// Compares two adjacent objects. Returns `None` if `next` may follow `last`, `Some(true)` for a duplicate, and
    /// `Some(false)` for wrong order.
    pub(super) fn find_violation(
        self,
        last: (TypeThenId, i64),
        next: (TypeThenId, i64),
    ) -> Option<bool> {
        match last.0.cmp(&next.0) {
            std::cmp::Ordering::Less => None,
            std::cmp::Ordering::Greater if self.is_free => None,
            std::cmp::Ordering::Greater => Some(false),
            std::cmp::Ordering::Equal if self.history && last.1 < next.1 => None,
            std::cmp::Ordering::Equal => Some(true),
        }
    }
}

/// The rules for checking the objects of one kind.
#[derive(Clone, Copy)]
pub(super) struct KindCheck {
    pub kind: ObjectKind,
    pub order: OrderRule,
    /// Whether nodes with coordinates out of range are counted.
    pub places: bool,
    pub checks_ids: bool,
    /// Whether the ids are collected in a set.
    pub collects: bool,
    /// Whether the references are checked.
    pub refs: bool,
    pub stored: StoredLocationUse,
    /// The maximum number of violations to list, and of references to missing objects to list. Further violations and
    /// references are only counted.
    pub max_listed: usize,
    /// Whether to detect duplicate ids with a set of all ids, instead of by comparing adjacent objects.
    pub full: bool,
    /// The rules for contents, if contents are checked in the same pass.
    pub contents: Option<ContentRules>,
}

impl KindCheck {
    /// Whether a duplicate is found wherever it is in the file, and not only directly after an object with the same id.
    pub(super) const fn finds_all_duplicates(&self) -> bool {
        self.full && self.checks_ids
    }

    /// Moves the collected ids of a blob to `all`, unless they are still needed to find duplicates.
    pub(super) fn move_ids_to(&self, mut found: BlobFindings, all: &SharedIdSet) -> BlobFindings {
        if !self.finds_all_duplicates() {
            all.add(&std::mem::take(&mut found.batch));
            all.add(&std::mem::take(&mut found.ids).as_slice().into());
        }
        found
    }

    /// Returns the name of the phase.
    pub(super) const fn phase_name(&self) -> &'static str {
        match self.kind {
            ObjectKind::Node => "check nodes",
            ObjectKind::Way => "check ways",
            ObjectKind::Relation => "check relations",
        }
    }

    /// Whether a blob has to be read. If objects are only counted, the entry of a blob with a single kind suffices.
    pub(super) fn needs_payload(&self, entry: &BlobEntry) -> bool {
        self.refs || self.places || self.needs_object_keys(entry)
    }

    fn needs_object_keys(&self, entry: &BlobEntry) -> bool {
        self.checks_ids || self.collects || entry.kinds.single().is_none()
    }

    /// Checks the objects of a blob. `sets` contains the ids of the kinds that were checked before.
    pub(super) fn check_blob(
        &self,
        entry: &BlobEntry,
        payload: &[u8],
        sets: &[IdSet; 3],
    ) -> FormatResult<BlobFindings> {
        let block = Block::parse_without_strings(payload)?;
        let mut found = if !self.needs_object_keys(entry) {
            BlobFindings {
                count: u64::from(entry.count),
                ..BlobFindings::default()
            }
        } else if let Some(found) = self.check_ascending(&block)? {
            found
        } else {
            self.check_object_keys(&block, entry.number)?
        };
        if self.refs {
            self.check_refs(entry, &block, sets, &mut found)?;
        }
        if self.places {
            block.for_each_node_outside_world(|id, lat, lon| {
                let outside = Outside {
                    id,
                    blob: entry.number,
                    lat: lat as f64 / 1e9,
                    lon: lon as f64 / 1e9,
                };
                if found.outside.len() < self.max_listed {
                    found.outside.push(outside)
                } else {
                    found.more_outside += 1
                }
            })?;
        }
        let is_first = entry.kinds.first() == Some(self.kind);
        let rules = self.contents.filter(|_| is_first);
        found.contents = rules.map(|rules| rules.check_payload(entry, payload));
        Ok(found)
    }

    /// Does the same as [`check_object_keys`](Self::check_object_keys), but faster. Only for blocks that contain only
    /// this kind, with positive and strictly ascending ids. Nearly all blocks are like this. Returns `None` for other
    /// blocks, and if versions have to be compared.
    fn check_ascending(&self, block: &Block<'_>) -> FormatResult<Option<BlobFindings>> {
        if self.order.history {
            return Ok(None);
        }
        let mut found = BlobFindings::default();
        let (mut first, mut last, mut is_ascending) = (0, 0, true);
        block.for_each_id(|kind, id| {
            is_ascending &= id > last && kind == self.kind;
            last = id;
            if found.count == 0 {
                first = id;
            }
            found.count += 1;
            if self.collects {
                found.ids.push(id);
            }
        })?;
        if !is_ascending {
            return Ok(None);
        }
        found.batch = found.ids.as_slice().into();
        found.ids = Vec::new();
        if found.count > 0 {
            let [first, last] = [first, last].map(|id| (self.kind, id_rank(id)));
            found.ends = Some((first, last, 0, 0));
        }
        Ok(Some(found))
    }

    /// Counts the objects of the kind, collects their ids, and compares adjacent objects. Objects of all kinds are
    /// compared, but only violations by objects of [`kind`](Self::kind) are reported.
    fn check_object_keys(&self, block: &Block<'_>, blob: u32) -> FormatResult<BlobFindings> {
        let mut found = BlobFindings::default();
        let order = self.order;
        let mut objects = block.walk();
        let mut last: Option<(TypeThenId, i64)> = None;
        while let Some(key) = objects.next_sort_key()? {
            let version = if order.history {
                objects.version_info()?.version
            } else {
                0
            };
            let is_wanted = key.0 == self.kind;
            let id = id_from_rank(key.1);
            if is_wanted {
                found.count += 1;
                if self.collects {
                    found.ids.push(id);
                }
            }
            let violation = last.and_then(|last| order.find_violation(last, (key, version)));
            if let Some(duplicate) = violation
                && is_wanted
                && self.checks_ids
                && !(duplicate && self.full)
            {
                let violation = IdViolation {
                    kind: self.kind,
                    id,
                    blob,
                    duplicate,
                };
                let position = (self.kind, found.count - 1, duplicate);
                if found.violations.len() < self.max_listed {
                    found.violations.push((position, violation))
                } else {
                    found.more_violations[usize::from(duplicate)] += 1
                }
            }
            let (first, first_version) = found.ends.map_or((key, version), |ends| (ends.0, ends.2));
            found.ends = Some((first, key, first_version, version));
            last = Some((key, version));
        }
        Ok(found)
    }

    /// Looks up the nodes of ways, or the nodes and ways that are members of relations, in `sets`.
    fn check_refs(
        &self,
        entry: &BlobEntry,
        block: &Block<'_>,
        sets: &[IdSet; 3],
        found: &mut BlobFindings,
    ) -> FormatResult<()> {
        if self.kind == ObjectKind::Way {
            return self.check_way_refs(entry, block, &sets[ObjectKind::Node as usize], found);
        }
        // Each missing node or way counts once, however many relations it is a member of.
        let mut missing: [IdSet; 2] = Default::default();
        block.for_each_member(|relation, kind, id| {
            if kind == ObjectKind::Relation {
                found.has_nested = true;
            } else if !sets[kind as usize].contains(id) && missing[kind as usize].insert(id) {
                if found.dangling.len() < self.max_listed {
                    found
                        .dangling
                        .push(Dangling::missing_member(relation, kind, id))
                } else {
                    found.more_members.push(relation, kind, id)
                }
            }
        })
    }

    /// Checks whether the relations that are members of relations are in the set `relations`.
    pub(super) fn check_nested_refs(
        &self,
        payload: &[u8],
        relations: &IdSet,
    ) -> FormatResult<BlobFindings> {
        let (block, mut found) = (
            Block::parse_without_strings(payload)?,
            BlobFindings::default(),
        );
        block.for_each_member(|relation, kind, id| {
            if kind == ObjectKind::Relation && !relations.contains(id) {
                self.add_dangling(Dangling::missing_member(relation, kind, id), &mut found);
            }
        })?;
        Ok(found)
    }

    /// Looks up the nodes of ways. A reference whose location the way stores is not missing, unless stored locations
    /// are ignored.
    fn check_way_refs(
        &self,
        entry: &BlobEntry,
        block: &Block<'_>,
        nodes: &IdSet,
        found: &mut BlobFindings,
    ) -> FormatResult<()> {
        let reads_stored = self.stored != StoredLocationUse::Ignored && entry.may_have_locations();
        if !reads_stored || self.stored == StoredLocationUse::IfMissing {
            self.check_node_refs(block, nodes, found)?;
            let missing = found.dangling.len() as u64 + found.more_dangling;
            if !reads_stored || missing == 0 {
                return Ok(());
            }
            found.clear_references();
        }
        if self.check_located_refs(block, nodes, found).is_err() {
            // Malformed locations are a fault of the contents, and do not count here.
            found.clear_references();
            self.check_node_refs(block, nodes, found)?;
        }
        Ok(())
    }

    /// Looks up the nodes of ways, way by way. References whose locations the ways store are counted, and are not
    /// missing.
    fn check_located_refs(
        &self,
        block: &Block<'_>,
        nodes: &IdSet,
        found: &mut BlobFindings,
    ) -> FormatResult<()> {
        let mut ways = way_ids(block)?.into_iter();
        block.for_each_wanted_way(
            |_| true,
            |_, refs, stored| {
                let Some(in_id) = ways.next() else { return };
                found.references += refs.len() as u64;
                nodes.for_each_absent(refs, |index| {
                    if location_at(stored, index).is_some() {
                        found.stored += 1;
                        return;
                    }
                    self.add_dangling(Dangling::missing_node(in_id, refs[index]), found);
                });
            },
        )
    }

    /// Looks up the nodes of ways in batches that may span several ways.
    fn check_node_refs(
        &self,
        block: &Block<'_>,
        nodes: &IdSet,
        found: &mut BlobFindings,
    ) -> FormatResult<()> {
        block.for_each_ref_batch(REFS_AT_A_TIME, |refs, ways| {
            found.references += refs.len() as u64;
            nodes.for_each_absent(refs, |index| {
                let way = ways.partition_point(|(_, end)| *end <= index);
                self.add_dangling(Dangling::missing_node(ways[way].0, refs[index]), found);
            });
        })
    }

    fn add_dangling(&self, dangling: Dangling, found: &mut BlobFindings) {
        if found.dangling.len() < self.max_listed {
            found.dangling.push(dangling)
        } else {
            found.more_dangling += 1
        }
    }
}

/// Returns the ids of the ways of a block.
pub(super) fn way_ids(block: &Block<'_>) -> FormatResult<Vec<i64>> {
    let mut ids = Vec::new();
    block.for_each_id(|kind, id| {
        if kind == ObjectKind::Way {
            ids.push(id);
        }
    })?;
    Ok(ids)
}

/// Returns the location that a way stores for its reference with the given index; `None` if it stores no location, or
/// one that is not on earth.
pub(super) fn location_at(stored: Option<&[Option<Location>]>, index: usize) -> Option<Location> {
    let location = stored?.get(index).copied().flatten();
    location.filter(|location| location.is_on_earth())
}
