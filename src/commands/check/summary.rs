//! The result of `check`.

use super::areas::AreaCheck;
use super::contents::{ContentFaults, Fault, Outside};
use super::doubled::DoubledCheck;
use super::index::IndexCheck;
use crate::osm::ObjectKind;
use serde::Serialize;

/// The result of `check`.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The number of nodes in the file; `None` if only indexes, areas or doubled objects were checked.
    pub nodes: Option<u64>,
    /// The number of ways in the file; `None` if `nodes` is `None`.
    pub ways: Option<u64>,
    /// The number of relations in the file; `None` if `nodes` is `None`.
    pub relations: Option<u64>,
    /// Whether the file has a spatial layout, with its objects ordered by their locations and not in canonical order.
    pub spatial_layout: bool,
    /// The number of objects that belong before the preceding object in canonical order; `None` if ids were not checked
    /// or the file has a spatial layout.
    pub out_of_order: Option<u64>,
    /// The number of objects whose id occurred before; `None` if ids were not checked. If the file is not in order,
    /// also `None` without [`Options::full`](super::Options::full).
    pub duplicates: Option<u64>,
    /// The number of objects directly after an object with the same id; `None` if ids were not checked, or if
    /// `duplicates` is set.
    pub duplicates_in_a_row: Option<u64>,
    /// The number of nodes with coordinates out of range; `None` if coordinates were not checked.
    pub outside: Option<u64>,
    /// The number of faults in the contents; `None` without [`Options::full`](super::Options::full).
    pub faults: Option<u64>,
    /// The number of strings, over all blobs, with characters that XML 1.0 does not allow, such as control characters.
    /// Each use of one of these strings is a fault. `None` without [`Options::full`](super::Options::full).
    pub inexpressible: Option<u64>,
    /// The number of tags with a key that an earlier tag of the same object has, too. Each of these tags is a fault.
    /// `None` without [`Options::full`](super::Options::full).
    pub repeated_keys: Option<u64>,
    /// The result of the check of indexes; `None` if indexes were not checked.
    pub index: Option<IndexCheck>,
    /// The result of the check of areas; `None` if areas were not checked.
    pub areas: Option<AreaCheck>,
    /// The result of the search for doubled objects and keys; `None` without
    /// [`Options::doubled`](super::Options::doubled).
    pub doubled: Option<DoubledCheck>,
    /// The numbers of references to missing objects; `None` if references were not checked.
    pub missing: Option<Missing>,
    /// The form of the file with regard to the locations in ways: `plain`, `located, with all nodes`, `located, needed
    /// nodes only` or `mixed`; `None` if `nodes` is `None`.
    pub form: Option<&'static str>,
    /// The numbers of references of ways with known and with unknown locations; `None` if they were not counted. A
    /// check of the references of ways counts them without [`Options::needs_nodes`](super::Options::needs_nodes). A
    /// comparison of the locations in ways with those of the nodes always counts them.
    pub locations: Option<ReferenceLocations>,
    /// The number of nodes without tags to which no way and no relation refers. Counted only if references are checked
    /// and `form` is `located, needed nodes only`; otherwise `None`.
    pub unused_nodes: Option<u64>,
    /// The first ids that are out of order or occurred before, in file order, at most
    /// [`Options::max_listed`](super::Options::max_listed).
    pub listed_ids: Vec<IdViolation>,
    /// The first references to missing objects, at most [`Options::max_listed`](super::Options::max_listed). References
    /// of ways come first, then those of relations to nodes and ways, then those of relations to relations, each in
    /// file order.
    pub listed_refs: Vec<Dangling>,
    /// The first references for which the location in the way differs from that of the node, in file order, at most
    /// [`Options::max_listed`](super::Options::max_listed).
    pub listed_contradictions: Vec<Dangling>,
    /// The first nodes with coordinates out of range, in file order, at most
    /// [`Options::max_listed`](super::Options::max_listed).
    pub listed_outside: Vec<Outside>,
    /// The first faults in the contents, at most [`Options::max_listed`](super::Options::max_listed). Faults of blobs
    /// come first, in file order, then contradictions between the blobs and the header.
    pub listed_faults: Vec<Fault>,
}

/// The numbers of references to objects that are not in the file, as osmium counts them. Each reference from a way to a
/// node and from a relation to a relation counts. A missing node or way counts once for all relations that refer to it.
/// A count is `None` if the references were not checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// The number of references of ways to missing nodes. A node counts as missing if it is not in the file and the way
    /// does not store its location. With [`Options::needs_nodes`](super::Options::needs_nodes), stored locations make
    /// no difference.
    pub nodes_in_ways: Option<u64>,
    /// The number of missing nodes that are members of relations.
    pub nodes_in_relations: Option<u64>,
    /// The number of missing ways that are members of relations.
    pub ways_in_relations: Option<u64>,
    /// The number of references of relations to missing relations.
    pub relations_in_relations: Option<u64>,
}

impl Missing {
    /// Returns 0 for each count of checked references, and `None` for the other counts. `of_ways` tells whether the
    /// references of ways are checked, and `of_relations` whether those of relations are.
    pub(super) fn zero_counts(of_ways: bool, of_relations: bool) -> Self {
        Self {
            nodes_in_ways: of_ways.then_some(0),
            nodes_in_relations: of_relations.then_some(0),
            ways_in_relations: of_relations.then_some(0),
            relations_in_relations: of_relations.then_some(0),
        }
    }

    /// Returns the sum of all counts.
    pub fn total(&self) -> u64 {
        let counts = [
            self.nodes_in_ways,
            self.nodes_in_relations,
            self.ways_in_relations,
            self.relations_in_relations,
        ];
        counts.into_iter().flatten().sum()
    }

    /// Adds `more` to the count of references from objects of kind `in_kind` to missing objects of kind `kind`.
    pub(super) fn add_count(&mut self, kind: ObjectKind, in_kind: ObjectKind, more: u64) {
        use ObjectKind::{Node, Relation, Way};
        let counter = match (kind, in_kind) {
            (Node, Way) => &mut self.nodes_in_ways,
            (Node, _) => &mut self.nodes_in_relations,
            (Way, _) => &mut self.ways_in_relations,
            (Relation, _) => &mut self.relations_in_relations,
        };
        *counter = Some(counter.unwrap_or(0) + more);
    }
}

/// The locations of the references of ways. If the node of a reference is in the file, the location is that of the
/// node. Otherwise, it is the location that the way stores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ReferenceLocations {
    /// The number of references.
    pub references: u64,
    /// The number of references to nodes that are not in the file but have a location in the way.
    pub stored: u64,
    /// The number of references whose location is unknown.
    pub unknown: u64,
    /// The number of references for which the location in the way differs from that of the node; `None` if these
    /// locations were not compared.
    pub contradicting: Option<u64>,
}

impl ReferenceLocations {
    /// Returns the number of references whose location is known.
    pub const fn known(&self) -> u64 {
        self.references.saturating_sub(self.unknown)
    }
}

/// An object whose id is out of order or occurred before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct IdViolation {
    /// The kind of the object.
    pub kind: ObjectKind,
    /// The id of the object.
    pub id: i64,
    /// The index of the object's blob in the file; the first data blob is 1.
    pub blob: u32,
    /// Whether the id occurred before; otherwise it is out of order.
    pub duplicate: bool,
}

/// A reference to an object that is not in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Dangling {
    /// The kind of the missing object.
    pub kind: ObjectKind,
    /// The id of the missing object.
    pub id: i64,
    /// The kind of the object with the reference.
    pub in_kind: ObjectKind,
    /// The id of the object with the reference.
    pub in_id: i64,
}

impl Dangling {
    /// Returns a reference from a way to a missing node.
    pub(super) const fn missing_node(way: i64, id: i64) -> Self {
        Self {
            kind: ObjectKind::Node,
            id,
            in_kind: ObjectKind::Way,
            in_id: way,
        }
    }

    /// Returns a reference from a relation to a missing member.
    pub(super) const fn missing_member(relation: i64, kind: ObjectKind, id: i64) -> Self {
        Self {
            kind,
            id,
            in_kind: ObjectKind::Relation,
            in_id: relation,
        }
    }
}

impl Summary {
    pub(super) fn set_content_faults(&mut self, found: ContentFaults) {
        self.faults = Some(found.count);
        self.inexpressible = Some(found.inexpressible);
        self.repeated_keys = Some(found.repeated_keys);
        self.listed_faults = found.listed;
    }

    /// Adds a contradiction between the header and the file as a whole. Lists it unless `max_listed` faults are listed
    /// already.
    pub(super) fn add_fault(&mut self, what: &str, max_listed: usize) {
        *self.faults.get_or_insert(0) += 1;
        if self.listed_faults.len() < max_listed {
            self.listed_faults.push(Fault {
                kind: None,
                id: None,
                blob: 0,
                what: what.into(),
            });
        }
    }

    /// Whether no problem was found. Incomplete areas, and mistakes that do not change an area, do not count.
    pub fn is_sound(&self) -> bool {
        let missing = self.missing.map_or(0, |missing| missing.total());
        let index = self.index.as_ref().map_or(0, IndexCheck::problems);
        let contents = self.outside.unwrap_or(0) + self.faults.unwrap_or(0);
        let areas = self.areas.as_ref().map_or(0, AreaCheck::error_count);
        let doubled = self.doubled.as_ref().map_or(0, DoubledCheck::total);
        let objects = self.id_violations() + missing + contents + self.contradicting();
        objects + index + areas + doubled == 0
    }

    /// Returns the number of references for which the location in the way differs from that of the node. Includes
    /// references that are not listed. Returns 0 if the locations were not compared.
    pub fn contradicting(&self) -> u64 {
        let found = self.locations.and_then(|found| found.contradicting);
        found.unwrap_or(0)
    }

    /// Returns the number of objects whose ids are out of order or occurred before. Includes objects that are not
    /// listed.
    pub fn id_violations(&self) -> u64 {
        let duplicates = self.duplicates.or(self.duplicates_in_a_row);
        self.out_of_order.unwrap_or(0) + duplicates.unwrap_or(0)
    }
}
