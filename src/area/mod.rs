//! Assembles areas: the polygons inside closed ways, and inside the member ways of multipolygon and boundary relations.
//!
//! The inside of an area is defined by the even-odd rule over the segments of its ways. Roles are checked, but change
//! the polygons only with [`OpenRings::LeaveOut`]. All coordinates and arithmetic are integers, so no polygon is
//! rounded.
//!
//! The steps:
//!
//! 1. The ways are cut into segments (`segments`). Two equal segments cancel each other. A way that is a member twice
//!    counts once.
//! 2. Segments that cross or overlap, and locations where an odd number of segments ends, make the area invalid.
//! 3. For each connected group of segments, a ray to infinity determines on which side of one segment the inside lies.
//!    Inside and outside alternate around each location, which determines the sides of the other segments (`sides`).
//! 4. Each boundary is followed with the inside on its left, and cut where it meets itself (`rings`). The resulting
//!    rings run counter-clockwise around polygons and clockwise around holes.
//!
//! No step backtracks. Where rings touch, they are cut so that the inside of each polygon is connected.
//!
//! [`assemble`] ignores the antimeridian. `assemble_with_antimeridian` can also cut the area there (`antimeridian`).

mod antimeridian;
mod interior;
mod members;
mod nested;
mod problems;
mod rings;
mod segment;
mod segments;
mod sides;
mod simple;
mod sweep;
#[cfg(test)]
mod tests;
mod way_store;

use crate::geometry::Point;
use crate::osm::format_e7;
use crate::runtime::lock;
pub(crate) use antimeridian::{
    assemble_with_antimeridian, cut_polygons_at_antimeridian, is_around_pole, polygon_of,
};
pub(crate) use interior::interior_point;
pub(crate) use members::{MemberWays, MissingMember};
pub(crate) use nested::{MAX_DEPTH, MAX_KEPT, NestedRelations, RouteMember};
use problems::ProblemList;
pub(crate) use segment::{
    AreaSegment, Meeting, classify_meeting, compare_west_to_east, intersection,
};
use segments::Segments;
pub(crate) use simple::set_polygon_if_simple;
use std::fmt;
use std::sync::Mutex;
pub(crate) use sweep::{OrderedSweep, first_crossing};
pub(crate) use way_store::{StoredWay, WayBatch, WayStore};

/// The maximum number of nodes of the ways of one area. It bounds the memory of an assembly to 400 MB.
pub(crate) const MAX_NODES: usize = 3_000_000;
/// Areas with at least this number of nodes are assembled one at a time, so that the memory does not grow with the
/// number of threads.
const MANY_NODES: usize = 500_000;
/// The maximum number of rounds in which an assembly leaves out holes without an outer ring. Nested holes of this kind
/// may need a round for each level.
const MAX_ROUNDS: usize = 64;

/// The lock that a thread holds while it assembles an area of at least [`MANY_NODES`] nodes.
static LARGE_AREA: Mutex<()> = Mutex::new(());

/// A node of a way, with its location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AreaNode {
    /// The id of the node.
    pub id: i64,
    /// The location of the node.
    pub point: Point,
}

/// The role of a member way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// `outer`: the way is part of an outer ring.
    Outer,
    /// `inner`: the way is part of a hole.
    Inner,
    /// No role, or a role other than `outer` and `inner`.
    #[default]
    Other,
}

impl Role {
    /// Returns the role with the given name.
    pub fn of(name: &str) -> Self {
        match name {
            "outer" => Self::Outer,
            "inner" => Self::Inner,
            _ => Self::Other,
        }
    }
}

/// A way that is part of the boundary of an area.
#[derive(Debug, Clone, Copy)]
pub struct AreaWay<'a> {
    /// The id of the way.
    pub id: i64,
    /// The role of the way in its relation.
    pub role: Role,
    /// The nodes of the way.
    pub nodes: &'a [AreaNode],
}

/// A polygon of an area. A ring does not repeat its first corner at the end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AreaPolygon {
    /// The ring around the polygon, counter-clockwise.
    pub outer: Vec<Point>,
    /// The rings around the holes, clockwise. Holes touch each other and the outer ring only at single corners.
    pub holes: Vec<Vec<Point>>,
}

impl AreaPolygon {
    /// Returns the rings, the outer ring first.
    pub(crate) fn rings(&self) -> impl Iterator<Item = &Vec<Point>> + Clone {
        std::iter::once(&self.outer).chain(&self.holes)
    }
}

/// The kind of a problem of an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ProblemKind {
    /// A ring is open, which means that an odd number of segments ends at a node.
    OpenRing,
    /// Two segments cross, or a segment ends in the middle of another.
    Crossing,
    /// Two collinear segments partly overlap.
    Overlap,
    /// There are no segments, or all segments cancel each other, or a cut at the antimeridian leaves nothing.
    NoArea,
    /// The ways of the area have more than 3,000,000 nodes, so the area is not assembled. The limit is lower if the
    /// areas of a small file share ways so often that, in total, they have far more nodes than the file can store.
    TooManyNodes,
    /// A segment occurs more than once. Pairs of equal segments cancel each other.
    DuplicateSegment,
    /// A way is a member more than once. Only its first occurrence counts.
    DuplicateWay,
    /// Two nodes that follow one another in a way have the same location.
    DuplicateNode,
    /// A way has the role `inner` but belongs to an outer ring, or has the role `outer` but belongs to a hole.
    WrongRole,
}

impl ProblemKind {
    /// Whether the problem makes the area invalid. An area with only other problems still has polygons.
    pub const fn is_error(self) -> bool {
        match self {
            Self::OpenRing | Self::Crossing | Self::Overlap | Self::NoArea | Self::TooManyNodes => {
                true
            }
            Self::DuplicateSegment | Self::DuplicateWay | Self::DuplicateNode | Self::WrongRole => {
                false
            }
        }
    }
}

/// A problem of an area, with its location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AreaProblem {
    /// The kind of the problem.
    pub kind: ProblemKind,
    /// The location of the problem, if it has one. The location of a crossing is rounded.
    pub point: Option<Point>,
    /// The id of the node at the location, if there is one.
    pub node: Option<i64>,
    /// The ids of the ways concerned. The second id is `None` if the problem concerns one way.
    pub ways: [Option<i64>; 2],
    /// The ends of the segments concerned. The second element is set only if two segments cross or overlap.
    pub segments: [Option<[Point; 2]>; 2],
}

impl AreaProblem {
    /// Creates a problem without a node and without segments.
    fn new(kind: ProblemKind, point: Option<Point>, ways: [Option<i64>; 2]) -> Self {
        Self {
            kind,
            point,
            node: None,
            ways,
            segments: [None; 2],
        }
    }
}

impl fmt::Display for AreaProblem {
    /// Describes the problem for mappers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(None, f)
    }
}

impl AreaProblem {
    /// Describes the problem. The text calls the way with the id `it` "it", because the preceding output has named that
    /// way.
    pub(crate) fn describe(&self, it: Option<i64>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_one = self.ways[0] == self.ways[1] || self.ways[1].is_none();
        let ways = match self.ways {
            [way @ Some(_), _] if is_one && way == it => "it".to_owned(),
            [Some(one), Some(other)] if !is_one => format!("ways {one} and {other}"),
            [Some(way), _] | [None, Some(way)] => format!("way {way}"),
            [None, None] => "the ways".to_owned(),
        };
        let place = match (self.node, self.point) {
            (Some(node), _) => format!("node {node}"),
            (None, Some(point)) => {
                format!("{},{}", format_e7(point.lon_e7), format_e7(point.lat_e7))
            }
            (None, None) => "an unknown place".to_owned(),
        };
        match self.kind {
            ProblemKind::OpenRing => {
                write!(
                    f,
                    "a ring does not close: {ways} ends at {place}, and no other way goes on"
                )
            }
            ProblemKind::Crossing if is_one => write!(f, "{ways} crosses itself at {place}"),
            ProblemKind::Crossing => write!(f, "{ways} cross at {place}"),
            ProblemKind::Overlap if is_one => write!(f, "{ways} overlaps itself at {place}"),
            ProblemKind::Overlap => write!(f, "{ways} overlap at {place}"),
            ProblemKind::NoArea => write!(f, "its segments enclose no area"),
            ProblemKind::TooManyNodes => {
                write!(
                    f,
                    "its ways have too many nodes for one area: more than {MAX_NODES}, or fewer where a small file has \
                     many areas of such ways"
                )
            }
            ProblemKind::DuplicateSegment if is_one => {
                write!(f, "{ways} goes over a segment at {place} twice")
            }
            ProblemKind::DuplicateSegment => write!(f, "{ways} share a segment at {place}"),
            ProblemKind::DuplicateWay => write!(f, "{ways} is a member several times"),
            ProblemKind::DuplicateNode => {
                write!(
                    f,
                    "{ways} has two nodes at one location: {place} and the one before"
                )
            }
            ProblemKind::WrongRole => write!(f, "{ways} has the wrong role: see {place}"),
        }
    }
}

/// The result of an assembly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assembly {
    /// The polygons, in the order of their westernmost corners; empty if the area is invalid.
    pub polygons: Vec<AreaPolygon>,
    /// The problems that were found, up to 1,000 of each kind.
    pub problems: Vec<AreaProblem>,
}

impl Assembly {
    /// Whether the area is valid.
    pub fn is_valid(&self) -> bool {
        !self.problems.iter().any(|problem| problem.kind.is_error())
    }
}

/// The treatment of open rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OpenRings {
    /// Open rings make the area invalid.
    #[default]
    Refuse,
    /// Segments of open rings are left out, and closed rings are kept. This is useful for relations that an extract has
    /// cut. Outer rings whose ways all have the role `inner` are left out, too, because the ring around them is
    /// missing.
    LeaveOut,
}

/// Assembles the polygons that are bounded by ways. If the ways have more than 3,000,000 nodes, the result has no
/// polygons and one problem, [`ProblemKind::TooManyNodes`].
///
/// # Memory
///
/// About 120 bytes for each segment. Areas of at least 500,000 nodes are assembled one at a time.
pub fn assemble(ways: &[AreaWay<'_>], open_rings: OpenRings) -> Assembly {
    let mut problems = ProblemList::default();
    let polygons = polygons_bounded_by(ways, open_rings, &mut problems);
    Assembly {
        polygons,
        problems: problems.finish(ways),
    }
}

/// Returns the result of an assembly whose ways have too many nodes.
fn assembly_with_too_many_nodes() -> Assembly {
    let mut problems = ProblemList::default();
    problems.add_for_area(ProblemKind::TooManyNodes, None);
    Assembly {
        polygons: Vec::new(),
        problems: problems.finish(&[]),
    }
}

/// Returns the polygons that are bounded by ways; none if the area is invalid. Adds the problems to `problems`.
fn polygons_bounded_by(
    ways: &[AreaWay<'_>],
    open_rings: OpenRings,
    problems: &mut ProblemList,
) -> Vec<AreaPolygon> {
    let count: usize = ways.iter().map(|way| way.nodes.len()).sum();
    if count > MAX_NODES {
        problems.add_for_area(ProblemKind::TooManyNodes, None);
        return Vec::new();
    }
    let _one = (count >= MANY_NODES).then(|| lock(&LARGE_AREA));
    let first_way = ways.first().map(|way| way.id);
    let mut segments = Segments::of(ways, problems);
    if open_rings == OpenRings::LeaveOut {
        segments.leave_out_open_ends();
    }
    segments.report_crossings(problems);
    let mut corners = sides::Corners::of(&segments);
    corners.report_open_ends(&segments, problems);
    for _ in 0..MAX_ROUNDS {
        if problems.has_error {
            return Vec::new();
        }
        if segments.is_empty() {
            break;
        }
        let sides = sides::Sides::of(&segments, &corners);
        let rings = rings::AreaRings::of(&segments, &corners, &sides);
        // If all ways of an outer ring have the role `inner`, the ring is a hole, and the ring around the hole is
        // missing. Inside and outside are then swapped in this hole and in all rings within the hole. Leaving out the
        // hole corrects the rings within it.
        if open_rings == OpenRings::LeaveOut
            && let Some(is_kept) = rings.segments_kept_without_lone_holes(&segments)
        {
            segments.retain(is_kept);
            corners = sides::Corners::of(&segments);
            continue;
        }
        rings.check_roles(&segments, problems);
        return rings.into_polygons();
    }
    problems.add_for_area(ProblemKind::NoArea, first_way);
    Vec::new()
}
