//! The problems of a coast.

use crate::geometry::Point;
use crate::osm::format_e7;
use serde::Serialize;
use std::fmt;

/// The kind of a problem of a coast. A kind that osmcoastline also reports has the name that osmcoastline uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CoastProblemKind {
    /// A point at which a line ends. The continuation of the line is not known.
    EndPoint,
    /// A line that was left out because it does not close.
    NotClosed,
    /// A point at which a line ended. The gap between this point and another end was closed.
    FixedEndPoint,
    /// A line that was added to close a gap.
    AddedLine,
    /// A ring that went the wrong way, and was turned around. Or a node at which several ways end and none begins, or
    /// several begin and none ends.
    Direction,
    /// A ring of water or land within land. The ring is a lake or an island that is tagged as a coastline in error, or
    /// it goes the wrong way.
    Questionable,
    /// Segments that two ways share.
    Overlap,
    /// A point at which two segments cross, or at which one ends within the other.
    Intersection,
    /// A ring that was left out because it crosses itself or other rings too often to be repaired.
    Invalid,
    /// A ring with fewer than three different points, or without an area.
    NotARing,
    /// A way with one node.
    SinglePointInRing,
    /// A way that is also a boundary. Many boundaries do not follow the coast.
    Boundary,
    /// A node that is tagged `natural=coastline`.
    TaggedNode,
    /// A way with a node whose location is not known.
    MissingNode,
}

impl CoastProblemKind {
    /// Returns the name of the kind in outputs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EndPoint => "end_point",
            Self::NotClosed => "not_closed",
            Self::FixedEndPoint => "fixed_end_point",
            Self::AddedLine => "added_line",
            Self::Direction => "direction",
            Self::Questionable => "questionable",
            Self::Overlap => "overlap",
            Self::Intersection => "intersection",
            Self::Invalid => "invalid",
            Self::NotARing => "not_a_ring",
            Self::SinglePointInRing => "single_point_in_ring",
            Self::Boundary => "boundary",
            Self::TaggedNode => "tagged_node",
            Self::MissingNode => "missing_node",
        }
    }

    /// Whether the land may be wrong because of the problem. Other problems are warnings.
    pub const fn is_error(self) -> bool {
        matches!(
            self,
            Self::EndPoint | Self::NotClosed | Self::Invalid | Self::NotARing | Self::MissingNode
        )
    }

    const fn description(self) -> &'static str {
        match self {
            Self::EndPoint => "the coastline ends, and no other goes on",
            Self::NotClosed => "the coastline does not close, and is left out",
            Self::FixedEndPoint => "the coastline ended, and was joined with the nearest other end",
            Self::AddedLine => "a line was added to close a gap",
            Self::Direction => "the coastline goes the wrong way: land has to be on its left",
            Self::Questionable => {
                "a ring within land: perhaps no coastline, or one that goes the wrong way"
            }
            Self::Overlap => "coastlines share a segment",
            Self::Intersection => "coastlines cross, or one ends within a segment of the other",
            Self::Invalid => "coastlines cross too often to be mended, and are left out",
            Self::NotARing => "the ring has no area",
            Self::SinglePointInRing => "the way has only one node",
            Self::Boundary => "the coastline is also a boundary, which may lie off the coast",
            Self::TaggedNode => "natural=coastline is not for nodes",
            Self::MissingNode => "the place of a node is not known",
        }
    }
}

/// The place of a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProblemPlace {
    /// A point.
    Point(Point),
    /// A line of two or more points.
    Line(Vec<Point>),
    /// The place is not known, because the locations of the nodes are not known.
    Unknown,
}

impl ProblemPlace {
    /// Returns the place of a line, which may have only one point or none.
    pub(super) fn of_line(points: Vec<Point>) -> Self {
        match points[..] {
            [] => Self::Unknown,
            [point] => Self::Point(point),
            _ => Self::Line(points),
        }
    }

    /// Returns the first point.
    pub fn point(&self) -> Option<Point> {
        match self {
            Self::Point(point) => Some(*point),
            Self::Line(points) => points.first().copied(),
            Self::Unknown => None,
        }
    }
}

/// A problem of a coast.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoastProblem {
    /// The kind of the problem.
    pub kind: CoastProblemKind,
    /// The ids of the ways concerned.
    pub ways: Vec<i64>,
    /// The id of the node concerned, if there is one.
    pub node: Option<i64>,
    /// The place of the problem.
    pub place: ProblemPlace,
}

impl CoastProblem {
    /// Returns a problem that concerns no single node.
    pub(super) const fn of_ways(
        kind: CoastProblemKind,
        ways: Vec<i64>,
        place: ProblemPlace,
    ) -> Self {
        Self {
            kind,
            ways,
            node: None,
            place,
        }
    }
}

/// The maximum number of ways that a message names.
const NAMED_WAYS: usize = 3;

impl fmt::Display for CoastProblem {
    /// Describes the problem for mappers, in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.kind.description())?;
        let ways = self.ways.iter().take(NAMED_WAYS).map(i64::to_string);
        let ways: Vec<String> = ways.collect();
        if let Some(node) = self.node {
            write!(f, ", node {node}")?;
        }
        if !ways.is_empty() {
            let noun = if ways.len() == 1 { "way" } else { "ways" };
            write!(f, ", {noun} {}", ways.join(", "))?;
        }
        if self.ways.len() > NAMED_WAYS {
            write!(f, " and {} more", self.ways.len() - NAMED_WAYS)?;
        }
        match self.place.point() {
            Some(point) => {
                let (lon, lat) = (format_e7(point.lon_e7), format_e7(point.lat_e7));
                write!(f, ", at {lon},{lat}")
            }
            None => Ok(()),
        }
    }
}

/// Sorts problems by their kinds, ways, nodes and places, and removes duplicates.
pub(super) fn sort_problems(mut problems: Vec<CoastProblem>) -> Vec<CoastProblem> {
    let place = |problem: &CoastProblem| match &problem.place {
        ProblemPlace::Unknown => None,
        ProblemPlace::Point(point) => Some((*point, *point)),
        ProblemPlace::Line(points) => points.first().copied().zip(points.last().copied()),
    };
    problems.sort_by(|one, other| {
        let key = |problem: &CoastProblem| (problem.kind, problem.node);
        let by_ways = one
            .kind
            .cmp(&other.kind)
            .then_with(|| one.ways.cmp(&other.ways));
        by_ways
            .then_with(|| key(one).cmp(&key(other)))
            .then_with(|| place(one).cmp(&place(other)))
    });
    problems.dedup();
    problems
}
