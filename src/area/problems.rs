//! The list of problems that are reported for an area.

use super::{AreaProblem, AreaWay, ProblemKind};
use crate::geometry::Point;
use rustc_hash::FxHashMap;

/// The maximum number of problems of one kind that are reported for an area.
pub(super) const MOST_OF_KIND: usize = 1000;

/// The problems of an area, up to [`MOST_OF_KIND`] of each kind.
#[derive(Debug, Default)]
pub(super) struct ProblemList {
    list: Vec<AreaProblem>,
    /// The number of problems of each kind in `list`.
    counts: FxHashMap<ProblemKind, usize>,
    /// Whether at least one problem makes the area invalid. This includes problems that are not in `list`.
    pub(super) has_error: bool,
}

impl ProblemList {
    /// Adds a problem to the list, unless the list already has [`MOST_OF_KIND`] problems of its kind.
    pub(super) fn add(&mut self, problem: AreaProblem) {
        self.has_error |= problem.kind.is_error();
        let count = self.counts.entry(problem.kind).or_default();
        if *count < MOST_OF_KIND {
            *count += 1;
            self.list.push(problem);
        }
    }

    /// Adds a problem that concerns the whole area. The problem has no location, and names `way` unless that is `None`.
    pub(super) fn add_for_area(&mut self, kind: ProblemKind, way: Option<i64>) {
        self.add(AreaProblem::new(kind, None, [way, None]));
    }

    /// Returns the problems. A problem with a location but without a node gets the id of the first node at the
    /// location, if there is one.
    pub(super) fn finish(mut self, ways: &[AreaWay<'_>]) -> Vec<AreaProblem> {
        let unnamed = |problem: &AreaProblem| problem.point.filter(|_| problem.node.is_none());
        let mut wanted: FxHashMap<Point, Option<i64>> = FxHashMap::default();
        wanted.extend(
            self.list
                .iter()
                .filter_map(unnamed)
                .map(|point| (point, None)),
        );
        let mut missing = wanted.len();
        for node in ways.iter().flat_map(|way| way.nodes) {
            if missing == 0 {
                break;
            }
            if let Some(found @ None) = wanted.get_mut(&node.point) {
                *found = Some(node.id);
                missing -= 1;
            }
        }
        for problem in &mut self.list {
            if let Some(point) = unnamed(problem) {
                problem.node = wanted.get(&point).copied().flatten();
            }
        }
        self.list
    }
}
