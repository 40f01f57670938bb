//! Geometries of objects, by the same rules for all commands: points of nodes, lines of ways, and the polygons of
//! closed ways and of relations.

use super::geometry_pass::point_on_earth;
use super::geometry_problem::{Problem, ProblemCause};
use crate::area::{
    AreaNode, AreaPolygon, AreaProblem, AreaWay, MemberWays, MissingMember, OpenRings, Role,
    WayStore, assemble_with_antimeridian, set_polygon_if_simple,
};
use crate::geometry::{Antimeridian, MapTurn, Point};
use crate::osm::{Location, ObjectKind};
use crate::pbf::Member;
use std::borrow::Cow;

/// The treatment of incomplete relations. A relation is incomplete if a member way, or a node of a member way, is not
/// in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Incomplete {
    /// Incomplete relations are left out and counted.
    #[default]
    LeaveOut,
    /// The closed rings of an incomplete relation are written.
    Keep,
}

/// A function that is called with each problem of an object.
pub(crate) type OnProblem<'r> = &'r mut dyn FnMut(Problem);

/// A maker of the geometries of objects. It reuses its memory from object to object.
#[derive(Default)]
pub(crate) struct GeometryMaker {
    antimeridian: Antimeridian,
    incomplete: Incomplete,
    /// The locations of the current way, without consecutive duplicates.
    points: Vec<Point>,
    /// All nodes of the current relation, or of the current way if consecutive nodes of the way have the same location
    /// or its polygons are assembled.
    nodes: Vec<AreaNode>,
    polygon: AreaPolygon,
}

/// Whether a way whose nodes have these locations is closed.
pub(crate) fn is_closed(locations: &[Option<Location>]) -> bool {
    locations.len() > 1 && locations.first() == locations.last()
}

impl GeometryMaker {
    /// Creates a maker. `antimeridian` tells whether polygons are cut at the antimeridian.
    pub(crate) fn new(antimeridian: Antimeridian, incomplete: Incomplete) -> Self {
        Self {
            antimeridian,
            incomplete,
            ..Self::default()
        }
    }

    /// Returns the point of a node; `None` if it has no location.
    pub(crate) fn point(
        id: i64,
        location: Option<Location>,
        report: OnProblem<'_>,
    ) -> Option<Point> {
        let point = location.and_then(point_on_earth);
        if point.is_none() {
            report(Problem {
                kind: ObjectKind::Node,
                id,
                cause: ProblemCause::NoLocation,
                point,
            });
        }
        point
    }

    /// Returns the line of a way, without consecutive duplicates. `refs` and `locations` have the ids and the locations
    /// of the nodes. Returns `None` if a node has no location, or if the line would have fewer than two points.
    pub(crate) fn line_of_way(
        &mut self,
        id: i64,
        mut refs: impl Iterator<Item = i64>,
        locations: &[Option<Location>],
        report: OnProblem<'_>,
    ) -> Option<&[Point]> {
        self.points.clear();
        self.nodes.clear();
        let known = locations.iter();
        let known = known.map_while(|location| location.and_then(point_on_earth));
        self.points.extend(known);
        let cause = if self.points.len() < locations.len() {
            let node = refs.nth(self.points.len()).unwrap_or_default();
            ProblemCause::MissingNode(node)
        } else {
            let next = self.points.iter().skip(1);
            if self.points.iter().zip(next).any(|(one, next)| one == next) {
                self.set_nodes(refs);
                self.points.dedup();
            }
            match (locations.len(), self.points.len()) {
                (count @ (0 | 1), _) => ProblemCause::TooFewNodes(count),
                (_, 0 | 1) => ProblemCause::OneLocation,
                _ => return Some(&self.points),
            }
        };
        report(Problem {
            kind: ObjectKind::Way,
            id,
            cause,
            point: self.points.last().copied(),
        });
        None
    }

    /// Sets `nodes` to the nodes of a way. `points` must have a point for each node.
    fn set_nodes(&mut self, refs: impl Iterator<Item = i64>) {
        let nodes = refs.zip(&self.points);
        let nodes = nodes.map(|(id, point)| AreaNode { id, point: *point });
        self.nodes.extend(nodes);
    }

    /// Returns the polygons of a closed way; none if the way is not a valid area. The last call of
    /// [`line_of_way`](Self::line_of_way) must have returned the line of this way.
    pub(crate) fn polygons_of_line(
        &mut self,
        id: i64,
        refs: impl Iterator<Item = i64>,
        report: OnProblem<'_>,
    ) -> Cow<'_, [AreaPolygon]> {
        let path = std::iter::once(self.points.iter().copied());
        let is_across = self.antimeridian == Antimeridian::Cut && MapTurn::of(path).is_some();
        // After `line_of_way`, `nodes` is empty unless consecutive nodes have the same location.
        if self.nodes.is_empty() {
            if !is_across && set_polygon_if_simple(&self.points, &mut self.polygon) {
                return Cow::Borrowed(std::slice::from_ref(&self.polygon));
            }
            self.set_nodes(refs);
        }
        let ways = [AreaWay {
            id,
            role: Role::Other,
            nodes: &self.nodes,
        }];
        let assembly = assemble_with_antimeridian(&ways, self.antimeridian, OpenRings::Refuse);
        for problem in assembly.problems {
            report(self.area_problem(ObjectKind::Way, id, problem));
        }
        Cow::Owned(assembly.polygons)
    }

    /// Returns the polygons of a closed way; none if the way is not a valid area.
    pub(crate) fn polygons_of_way(
        &mut self,
        id: i64,
        refs: impl Iterator<Item = i64> + Clone,
        locations: &[Option<Location>],
        report: OnProblem<'_>,
    ) -> Cow<'_, [AreaPolygon]> {
        match self.line_of_way(id, refs.clone(), locations, report) {
            Some(_) => self.polygons_of_line(id, refs, report),
            None => Cow::Borrowed(&[]),
        }
    }

    /// Returns the polygons of a relation; none if the relation is not a valid area. With [`Incomplete::LeaveOut`],
    /// also returns none if a member way or one of its nodes is missing. `ways` has the member ways.
    pub(crate) fn polygons_of_relation<'m>(
        &mut self,
        id: i64,
        members: impl Iterator<Item = Member<'m>>,
        ways: &WayStore,
        report: OnProblem<'_>,
    ) -> Vec<AreaPolygon> {
        let kind = ObjectKind::Relation;
        let members = MemberWays::read(members, ways, &mut self.nodes);
        let cause = match members.missing {
            None if members.is_empty() => Some(ProblemCause::NoWays),
            None => None,
            Some(MissingMember::Way(way)) => Some(ProblemCause::MissingWay(way)),
            Some(MissingMember::NodeOf(way, node)) => Some(ProblemCause::MissingNodeOf(way, node)),
        };
        if let Some(cause) = cause {
            let point = self.first_point();
            report(Problem {
                kind,
                id,
                cause,
                point,
            });
            if members.missing.is_none() || self.incomplete == Incomplete::LeaveOut {
                return Vec::new();
            }
        }
        let is_complete = members.missing.is_none();
        let open_rings = if is_complete {
            OpenRings::Refuse
        } else {
            OpenRings::LeaveOut
        };
        let assembly = members.assemble(&self.nodes, self.antimeridian, open_rings);
        for problem in assembly.problems {
            // An error in a relation with missing members may be due to these members, so it is not reported.
            if is_complete || !problem.kind.is_error() {
                report(self.area_problem(kind, id, problem));
            }
        }
        assembly.polygons
    }

    /// Returns the point of the first node of the current object, if the node is known.
    fn first_point(&self) -> Option<Point> {
        self.nodes.first().map(|node| node.point)
    }

    /// Converts a problem with the polygons of an object to a [`Problem`].
    fn area_problem(&self, kind: ObjectKind, id: i64, problem: AreaProblem) -> Problem {
        Problem {
            kind,
            id,
            cause: ProblemCause::Area(problem),
            point: problem.point.or_else(|| self.first_point()),
        }
    }
}
