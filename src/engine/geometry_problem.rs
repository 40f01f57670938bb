//! Problems with objects. A problem is a reason to leave the object out, or a mistake without an effect.

use crate::area::{AreaProblem, MAX_NODES, ProblemKind};
use crate::error::Advice;
use crate::formats::row_limit::OversizedObjects;
use crate::geometry::Point;
use crate::osm::ObjectKind;
use crate::runtime::Context;
use std::collections::BTreeMap;
use std::fmt;

/// A problem with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// The kind of the object.
    pub kind: ObjectKind,
    /// The id of the object.
    pub id: i64,
    /// The cause of the problem.
    pub cause: ProblemCause,
    /// The location of the problem. If the problem has none, the location of a node of the object; `None` if no
    /// location is known.
    pub point: Option<Point>,
}

/// The cause of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProblemCause {
    /// The node has no location, or an invalid one.
    NoLocation,
    /// The way has fewer than two nodes. The value is the number of nodes.
    TooFewNodes(usize),
    /// All nodes of the way, or of the lines of the relation, have the same location. If geometries are cut at the
    /// antimeridian, 180 and -180 degrees count as the same longitude.
    OneLocation,
    /// A node of the way is not in the file, or has no location. The value is its id.
    MissingNode(i64),
    /// The relation has no member ways.
    NoWays,
    /// A member way of the relation is not in the file. The value is its id.
    MissingWay(i64),
    /// A node of a member way is not in the file, or has no location. The first value is the id of the way, the second
    /// is the id of the node.
    MissingNodeOf(i64, i64),
    /// The ways of a relation from which lines are made have more than 3,000,000 nodes in total.
    TooManyNodes,
    /// The feature would take more bytes than are allowed. Its size is that of the coordinates as WKB plus that of the
    /// strings. The value is the limit in MB.
    TooLarge(u64),
    /// A problem with the polygons of a way or a relation.
    Area(AreaProblem),
}

/// The effect of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Severity {
    /// The object is left out.
    Error,
    /// The relation is not wrong, but a part of it is not in the file.
    Incomplete,
    /// The problem has no effect.
    Warning,
}

impl Severity {
    /// Returns the name of the effect, for reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Incomplete => "incomplete",
            Self::Warning => "warning",
        }
    }
}

impl Problem {
    /// Returns the effect of the problem.
    pub const fn severity(&self) -> Severity {
        match self.cause {
            ProblemCause::MissingWay(_) | ProblemCause::MissingNodeOf(..) => Severity::Incomplete,
            ProblemCause::Area(problem) if !problem.kind.is_error() => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// Returns the name of this kind of problem, for reports.
    pub const fn name(&self) -> &'static str {
        match self.cause {
            ProblemCause::NoLocation => "no_location",
            ProblemCause::TooFewNodes(_) => "too_few_nodes",
            ProblemCause::OneLocation => "one_location",
            ProblemCause::MissingNode(_) => "missing_node",
            ProblemCause::NoWays => "no_ways",
            ProblemCause::MissingWay(_) => "missing_way",
            ProblemCause::MissingNodeOf(..) => "missing_node_of_way",
            ProblemCause::TooManyNodes => "too_many_nodes",
            ProblemCause::TooLarge(_) => "too_large",
            ProblemCause::Area(problem) => match problem.kind {
                ProblemKind::OpenRing => "open_ring",
                ProblemKind::Crossing => "crossing",
                ProblemKind::Overlap => "overlap",
                ProblemKind::NoArea => "no_area",
                ProblemKind::TooManyNodes => "too_many_nodes",
                ProblemKind::DuplicateSegment => "duplicate_segment",
                ProblemKind::DuplicateWay => "duplicate_way",
                ProblemKind::DuplicateNode => "duplicate_node",
                ProblemKind::WrongRole => "wrong_role",
            },
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: ", self.kind.name(), self.id)?;
        self.describe(f)
    }
}

impl Problem {
    /// Describes the problem without naming the object.
    pub(crate) fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause {
            ProblemCause::NoLocation => write!(f, "it has no location on the earth"),
            ProblemCause::TooFewNodes(0) => write!(f, "it has no nodes"),
            ProblemCause::TooFewNodes(_) => write!(f, "it has only one node"),
            ProblemCause::OneLocation => write!(f, "all its nodes have the same location"),
            ProblemCause::MissingNode(node) => {
                write!(f, "its node {node} is not in the file, or has no location")
            }
            ProblemCause::NoWays => write!(f, "it has no member ways"),
            ProblemCause::MissingWay(way) => {
                write!(f, "incomplete: its member way {way} is not in the file")
            }
            ProblemCause::MissingNodeOf(way, node) => write!(
                f,
                "incomplete: node {node} of its member way {way} is not in the file, or has no location"
            ),
            ProblemCause::TooManyNodes => {
                write!(
                    f,
                    "its ways have more than {MAX_NODES} nodes, too many for one line"
                )
            }
            ProblemCause::TooLarge(limit) => write!(
                f,
                "its geometry and strings would take more than {limit} MB"
            ),
            ProblemCause::Area(problem) => {
                problem.describe((self.kind == ObjectKind::Way).then_some(self.id), f)
            }
        }
    }
}

/// The numbers of problems.
#[derive(Debug, Default)]
pub(crate) struct ProblemCounts {
    /// The numbers of errors, by the kind of the error.
    pub errors: BTreeMap<&'static str, u64>,
    /// The number of relations of which a part is not in the file.
    pub incomplete: u64,
    /// The numbers of mistakes without an effect, by the kind of mistake.
    pub warnings: BTreeMap<&'static str, u64>,
    /// The objects that were left out because their features would be too large.
    pub oversized: OversizedObjects,
}

impl ProblemCounts {
    pub(crate) fn add(&mut self, problem: &Problem) {
        match problem.severity() {
            Severity::Error => *self.errors.entry(problem.name()).or_default() += 1,
            Severity::Incomplete => self.incomplete += 1,
            Severity::Warning => *self.warnings.entry(problem.name()).or_default() += 1,
        }
        if matches!(problem.cause, ProblemCause::TooLarge(_)) {
            self.oversized.add(problem.kind, problem.id);
        }
    }

    /// Adds the numbers of problems with objects that come later in the input.
    pub(crate) fn extend(&mut self, later: &Self) {
        for (counts, more) in [
            (&mut self.errors, &later.errors),
            (&mut self.warnings, &later.warnings),
        ] {
            for (name, count) in more {
                *counts.entry(*name).or_default() += count;
            }
        }
        self.incomplete += later.incomplete;
        self.oversized.extend(&later.oversized);
    }
}

/// Lists the numbers of problems with their kinds, as `open ring 2, wrong role 1`.
pub(crate) fn list_of_problems(counts: &BTreeMap<&str, u64>) -> String {
    let kinds = counts.iter();
    let kinds = kinds.map(|(name, count)| format!("{} {count}", name.replace('_', " ")));
    kinds.collect::<Vec<_>>().join(", ")
}

/// Warns that objects were left out. `errors` has the numbers of the errors that caused objects to be left out.
/// `relations` is the number of incomplete relations that were left out. Does nothing if no object was left out.
pub(crate) fn warn_of_left_out_objects(
    errors: &BTreeMap<&'static str, u64>,
    relations: u64,
    ctx: &Context,
) {
    let count: u64 = errors.values().sum();
    let mut parts = Vec::new();
    if relations > 0 {
        let plural = if relations == 1 { "" } else { "s" };
        parts.push(format!(
            "{relations} relation{plural} of which a part is not in the file"
        ));
    }
    if count > 0 {
        let plural = if count == 1 { "" } else { "s" };
        let kinds = list_of_problems(errors);
        parts.push(format!("objects with {count} error{plural} ({kinds})"));
    }
    if !parts.is_empty() {
        let message = format!("left out: {}", parts.join(", and "));
        ctx.warn_with_advice(message, Advice::ListLeftOut);
    }
}
