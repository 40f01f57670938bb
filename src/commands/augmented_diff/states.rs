//! The geometry of objects at a moment.

use super::find::{Findings, MemberGeometry};
use crate::engine::geometry_pass::point_on_earth;
use crate::engine::location_form::location_of_reference;
use crate::error::Result;
use crate::formats::{AugmentedObject, Place, PlacedNode};
use crate::geometry::Point;
use crate::osm::{Location, ObjectKind};
use crate::pbf::{Member, Object, ObjectBody};
use crate::runtime::lock;

/// An object at a moment.
pub(super) struct State<'a> {
    /// The object. After a deletion, it has the content that the change file gives.
    pub object: &'a Object<'a>,
    /// The nodes of a way; empty for other kinds.
    pub nodes: Vec<PlacedNode>,
    /// The moment, as [`history`](super::history) defines it.
    pub moment: u32,
    member_geometry: MemberGeometry,
}

impl<'a> State<'a> {
    /// Creates a state. `is_base` is whether the object comes from the base, and not from a change file.
    pub(super) fn new(
        object: &'a Object<'a>,
        is_base: bool,
        moment: u32,
        findings: &Findings<'_>,
    ) -> Self {
        let Findings { nodes, history, .. } = findings;
        let place = |id: i64, given: Option<Location>| {
            let found = nodes.node_at(id, given.filter(|_| is_base), history, moment);
            // A change file may store locations in ways. These locations are used only for nodes whose location is not
            // known otherwise.
            let location = location_of_reference(found.location, given.filter(|_| !is_base));
            PlacedNode { location, ..found }
        };
        let nodes = match &object.body {
            ObjectBody::Way { refs, locations } => {
                let given = |at: usize| locations.get(at).copied().flatten();
                let nodes = refs.iter().enumerate();
                nodes.map(|(at, id)| place(*id, given(at))).collect()
            }
            ObjectBody::Node { .. } | ObjectBody::Relation { .. } => Vec::new(),
        };
        Self {
            object,
            nodes,
            moment,
            member_geometry: findings.member_geometry(object, moment),
        }
    }

    /// Whether the object is written with the geometry of its members. Always true for nodes and ways.
    pub(super) fn has_member_geometry(&self) -> bool {
        self.member_geometry == MemberGeometry::Known
    }

    /// Returns the number of references of a way to nodes whose location is not known.
    pub(super) fn missing_references(&self) -> u64 {
        let missing = self.nodes.iter().filter(|node| node.location.is_none());
        missing.count() as u64
    }

    /// Calls `take` with the object and its geometry.
    pub(super) fn with_augmented<R>(
        &self,
        findings: &Findings<'_>,
        take: impl FnOnce(&AugmentedObject<'_>) -> R,
    ) -> R {
        let places = |member: &Member<'_>, take: &mut dyn FnMut(Place<'_>)| {
            findings.with_member_geometry(member, self.moment, take);
        };
        take(&AugmentedObject {
            object: self.object,
            nodes: &self.nodes,
            places: self.has_member_geometry().then_some(&places),
        })
    }
}

impl Findings<'_> {
    /// Calls `take` with the geometry of a member at a moment.
    pub(super) fn with_member_geometry(
        &self,
        member: &Member<'_>,
        moment: u32,
        take: &mut dyn FnMut(Place<'_>),
    ) {
        match member.kind {
            ObjectKind::Node => {
                let place = self
                    .nodes
                    .location_at(member.id, None, &self.history, moment);
                take(Place::Node(place));
            }
            ObjectKind::Way => {
                let mut nodes = Vec::new();
                self.for_each_node_of(member.id, moment, |id, location| {
                    nodes.push(PlacedNode {
                        id,
                        version: None,
                        location,
                    });
                });
                take(Place::Way(&nodes));
            }
            ObjectKind::Relation => take(Place::None),
        }
    }

    /// Fails if a temporary file could not be read.
    pub(super) fn check_for_read_error(&self) -> Result<()> {
        lock(&self.failed).take().map_or(Ok(()), Err)
    }

    /// Calls `take` with the nodes of a member way at a moment, each with its location. Returns whether the way exists
    /// at that moment. Errors are kept until [`check_for_read_error`](Self::check_for_read_error) is called.
    pub(super) fn for_each_node_of(
        &self,
        way: i64,
        moment: u32,
        mut take: impl FnMut(i64, Option<Location>),
    ) -> bool {
        let locate = |id, given| self.nodes.location_at(id, given, &self.history, moment);
        match self.history.last_change(ObjectKind::Way, way, moment) {
            Some(change) if change.is_deletion() => false,
            Some(change) => {
                let object = self.history.changes.object(change);
                if let ObjectBody::Way { refs, locations } = &object.body {
                    for (at, id) in refs.iter().enumerate() {
                        let given = locations.get(at).copied().flatten();
                        take(*id, location_of_reference(locate(*id, None), given));
                    }
                }
                true
            }
            None => {
                let take = |id, given| take(id, locate(id, given));
                let is_there = self.member_ways.for_each_node(way, take);
                is_there.unwrap_or_else(|error| {
                    lock(&self.failed).get_or_insert(error);
                    false
                })
            }
        }
    }
}

impl State<'_> {
    /// Calls `take` with the location of a node, with the line of a way, or with the locations and lines of the members
    /// of a relation. Nodes whose location is not known divide a line. With `follows_routes`, the lines of routes that
    /// are nested in a route are also visited; a way of the route itself may then be visited twice. A relation is not
    /// visited if its members have too many nodes.
    pub(super) fn for_each_line(
        &self,
        findings: &Findings<'_>,
        follows_routes: bool,
        mut take: impl FnMut(&[Point]),
    ) {
        let point = |location: Option<Location>| location.and_then(point_on_earth);
        let mut points = Vec::new();
        let mut put = |nodes: &[PlacedNode]| {
            for part in nodes.split(|node| point(node.location).is_none()) {
                points.clear();
                points.extend(part.iter().filter_map(|node| point(node.location)));
                if !points.is_empty() {
                    take(&points);
                }
            }
        };
        let mut place = |place: Place<'_>| match place {
            Place::Node(location) => put(&[PlacedNode {
                id: 0,
                version: None,
                location,
            }]),
            Place::Way(nodes) => put(nodes),
            Place::None => {}
        };
        match &self.object.body {
            ObjectBody::Node { location } => place(Place::Node(*location)),
            ObjectBody::Way { .. } => place(Place::Way(&self.nodes)),
            ObjectBody::Relation { .. } if self.member_geometry == MemberGeometry::TooLarge => {}
            ObjectBody::Relation { members } => {
                for member in members {
                    findings.with_member_geometry(member, self.moment, &mut place);
                }
                if follows_routes {
                    for id in findings.routes.way_ids_at(self.object, self.moment) {
                        let (kind, role) = (ObjectKind::Way, "");
                        findings.with_member_geometry(
                            &Member { kind, id, role },
                            self.moment,
                            &mut place,
                        );
                    }
                }
            }
        }
    }
}
