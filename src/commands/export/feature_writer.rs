//! Cuts features, hands them to an output, and counts features and problems.

use super::cuts::CutGeometry;
use super::output::FeatureOutput;
use super::shared::Shared;
use super::tally::Tally;
use crate::engine::geometry_problem::{Problem, ProblemCause};
use crate::error::FormatResult;
use crate::formats::features::Feature;
use crate::formats::row_limit::feature_size;
use crate::pbf::Relation;

/// The number of problems that are collected before they are sent.
const PROBLEMS: usize = 1 << 10;

/// A result that a worker thread sends to the thread that runs the export.
pub(super) enum ExportPart<P> {
    /// A part of the output.
    Features(P),
    Problems(Vec<Problem>),
    /// The numbers of features and problems of a blob.
    Tally(Tally),
}

/// Writes the features of a thread.
pub(super) struct FeatureWriter<'s, O> {
    pub shared: &'s Shared<'s>,
    pub output: O,
    problems: Vec<Problem>,
    /// The numbers of features and problems of the current blob; `None` until it has a feature or a problem.
    tally: Option<Tally>,
    /// The number of tags of the current object that were left out because an earlier tag has the same key. 0 after the
    /// object has become a feature.
    pub repeated_keys: u64,
}

impl<'s, O: FeatureOutput> FeatureWriter<'s, O> {
    pub(super) const fn new(shared: &'s Shared<'s>, output: O) -> Self {
        Self {
            shared,
            output,
            problems: Vec::new(),
            tally: None,
            repeated_keys: 0,
        }
    }

    /// Counts a problem, and keeps it if problems are reported.
    pub(super) fn add_problem(&mut self, problem: Problem) {
        let tally = self.tally.get_or_insert_default();
        tally.problems.add(&problem);
        if self.shared.reports {
            self.problems.push(problem);
        }
    }

    /// Counts a relation that lacks some of its lines.
    pub(super) fn count_incomplete_line(&mut self) {
        self.tally.get_or_insert_default().problems.incomplete += 1;
    }

    /// Cuts the geometry of a feature, and adds the feature to the output. Leaves out a feature if it lies outside of
    /// the region, if the cuts leave nothing of its geometry, or if it is too large. `relation` is the relation from
    /// which an area was made.
    pub(super) fn put(&mut self, feature: &Feature<'_>, relation: Option<&Relation<'_>>) {
        let Some(whole) = feature.geometry.extent() else {
            return;
        };
        let problem = |cause, feature: &Feature<'_>| Problem {
            kind: feature.kind,
            id: feature.id,
            cause,
            point: feature.geometry.first_point(),
        };
        let cut = self.shared.cuts.apply(&feature.geometry, &whole);
        let Some(geometry) = cut.remainder_of(feature.geometry) else {
            if matches!(cut, CutGeometry::Empty) {
                self.add_problem(problem(ProblemCause::OneLocation, feature));
            }
            return;
        };
        let feature = Feature {
            geometry,
            ..*feature
        };
        let limit = self.shared.row_limit;
        if !limit.allows(feature_size(&feature)) {
            let cause = ProblemCause::TooLarge(limit.0);
            return self.add_problem(problem(cause, &feature));
        }
        let extent = if matches!(cut, CutGeometry::Whole) {
            whole
        } else {
            feature.geometry.extent().unwrap_or(whole)
        };
        let themes = self.output.put(&feature, &extent, relation);
        let repeated_keys = std::mem::take(&mut self.repeated_keys);
        let tally = self.tally.get_or_insert_default();
        tally.add(&feature.geometry, extent, themes);
        if themes != 0 {
            tally.repeated_keys += repeated_keys;
        }
    }

    /// Returns the next result, or `None` if none is ready. At the end of a blob, `is_end` is true.
    pub(super) fn take(&mut self, is_end: bool) -> FormatResult<Option<ExportPart<O::Part>>> {
        if let Some(part) = self.output.take(is_end)? {
            return Ok(Some(ExportPart::Features(part)));
        }
        if self.problems.len() >= PROBLEMS || (is_end && !self.problems.is_empty()) {
            let problems = std::mem::take(&mut self.problems);
            return Ok(Some(ExportPart::Problems(problems)));
        }
        Ok(self.tally.take_if(|_| is_end).map(ExportPart::Tally))
    }
}
