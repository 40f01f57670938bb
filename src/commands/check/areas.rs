//! Checks that polygons can be made from closed ways, multipolygons and boundaries.

use super::problem_file::ProblemWriter;
use crate::commands::export::{Problem, ProblemCause, Severity, area_problems};
use crate::error::Result;
use crate::file::PbfFile;
use crate::geometry::Point;
use crate::osm::{DECIMICRO_PER_DEGREE, ObjectKind};
use crate::runtime::Context;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// The result of a check of areas.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AreaCheck {
    /// The number of ways and relations that are areas, and from which polygons can be assembled.
    pub areas: u64,
    /// The numbers of problems that make an area invalid, by the kind of problem.
    pub errors: BTreeMap<&'static str, u64>,
    /// The number of relations with a member way, or a node of a member way, that is not in the file.
    pub incomplete: u64,
    /// The numbers of mistakes that do not change the polygons of an area, by the kind of mistake.
    pub warnings: BTreeMap<&'static str, u64>,
    /// The number of errors and mistakes without a known location, which are not written as features; `None` if no
    /// features are written.
    pub unplaced: Option<u64>,
    /// The first problems of each severity, in file order, at most
    /// [`Options::max_listed`](super::Options::max_listed) of each.
    pub listed: Vec<ListedProblem>,
}

impl AreaCheck {
    /// Returns the number of problems that make an area invalid.
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }
}

/// A problem of an area.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ListedProblem {
    /// The kind of the object.
    pub kind: ObjectKind,
    /// The id of the object.
    pub id: i64,
    /// The effect of the problem: `error`, `incomplete` or `warning`.
    pub severity: &'static str,
    /// The kind of the problem.
    pub problem: &'static str,
    /// A description of the problem.
    pub what: String,
    /// The id of the node at which the problem is; `None` if there is none.
    pub node: Option<i64>,
    /// The ids of the ways concerned.
    pub ways: Vec<i64>,
    /// The latitude in degrees of the problem or, if it has no location, of a node of the object; `None` if no location
    /// is known.
    pub lat: Option<f64>,
    /// The longitude of the same location, in degrees.
    pub lon: Option<f64>,
}

/// A wrapper that displays a problem without naming its object.
struct Description<'p>(&'p Problem);

impl fmt::Display for Description<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.describe(f)
    }
}

/// Converts a coordinate to degrees.
pub(super) fn degrees(value_e7: i32) -> f64 {
    f64::from(value_e7) / DECIMICRO_PER_DEGREE as f64
}

impl From<&Problem> for ListedProblem {
    fn from(problem: &Problem) -> Self {
        let (node, ways) = match problem.cause {
            ProblemCause::MissingNode(node) => (Some(node), Vec::new()),
            ProblemCause::MissingWay(way) => (None, vec![way]),
            ProblemCause::MissingNodeOf(way, node) => (Some(node), vec![way]),
            ProblemCause::Area(area) => {
                let mut ways: Vec<i64> = area.ways.into_iter().flatten().collect();
                ways.dedup();
                (area.node, ways)
            }
            _ => (None, Vec::new()),
        };
        Self {
            kind: problem.kind,
            id: problem.id,
            severity: problem.severity().name(),
            problem: problem.name(),
            what: Description(problem).to_string(),
            node,
            ways,
            lat: problem.point.map(|point| degrees(point.lat_e7)),
            lon: problem.point.map(|point| degrees(point.lon_e7)),
        }
    }
}

/// Checks the areas of a file. Lists at most `max_listed` problems of each severity. Writes the errors and mistakes
/// with a location to `file_of_problems`.
pub(super) fn check(
    file: &PbfFile,
    max_listed: usize,
    mut file_of_problems: Option<&mut ProblemWriter>,
    ctx: &Context,
) -> Result<AreaCheck> {
    let (mut listed, mut unplaced) = (Vec::new(), 0);
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut report = |problem: &Problem| -> Result<()> {
        let count = counts.entry(problem.severity().name()).or_default();
        *count += 1;
        let is_listed = *count <= max_listed;
        let writer = file_of_problems
            .as_mut()
            .filter(|_| problem.severity() != Severity::Incomplete);
        if !is_listed && writer.is_none() {
            return Ok(());
        }
        let found = ListedProblem::from(problem);
        if let Some(writer) = writer {
            match problem.point {
                Some(point) => write_problem(writer, problem, &found, point)?,
                None => unplaced += 1,
            }
        }
        if is_listed {
            listed.push(found);
        }
        Ok(())
    };
    let summary = area_problems(file, &mut report, ctx)?;
    Ok(AreaCheck {
        areas: summary.areas,
        errors: summary.errors,
        incomplete: summary.incomplete,
        warnings: summary.warnings,
        unplaced: file_of_problems.map(|_| unplaced),
        listed,
    })
}

/// Writes a problem as a point at its location, and the segments that it concerns as lines.
fn write_problem(
    writer: &mut ProblemWriter,
    problem: &Problem,
    found: &ListedProblem,
    point: Point,
) -> Result<()> {
    let segments = match problem.cause {
        ProblemCause::Area(area) => area.segments,
        _ => [None; 2],
    };
    // A segment across the antimeridian would be drawn around the whole world.
    let is_drawn = |[from, to]: &[Point; 2]| from.lon_e7.abs_diff(to.lon_e7) <= HALF_TURN_E7;
    let segments = segments.into_iter().flatten().filter(is_drawn);
    let lines: Vec<Vec<Point>> = segments.map(Vec::from).collect();
    let node = found.node.map(|node| node.to_string());
    let ways = found.ways.iter().map(i64::to_string).collect::<Vec<_>>();
    let ways = ways.join(";");
    let mut properties = vec![
        ("problem", found.problem),
        ("severity", found.severity),
        ("description", found.what.as_str()),
    ];
    properties.extend(node.as_deref().map(|node| ("node", node)));
    properties.extend((!ways.is_empty()).then_some(("ways", ways.as_str())));
    writer.put((found.kind, found.id), &properties, point, &lines)
}

/// Half a turn around the earth, in units of 1e-7 degree.
const HALF_TURN_E7: u32 = 1_800_000_000;
