//! The pass over a file that makes features for an output.

use super::builder::FeatureBuilder;
use super::cuts::Cuts;
use super::feature_writer::ExportPart;
use super::output::{FeatureNeeds, FeatureOutput};
use super::selection::may_select;
use super::shared::Shared;
use super::tally::Tally;
use super::{FeatureRules, Report, Summary};
use crate::engine::geometry_pass::{GeometryPass, LocationsInWays, Visits};
use crate::engine::way_locations::LocateOptions;
use crate::error::Result;
use crate::file::PbfFile;
use crate::formats::row_limit::RowLimit;
use crate::osm::{ObjectFilter, ObjectKind};
use crate::runtime::Context;

/// A pass over a file that makes features.
pub(super) struct FeaturePass<'a> {
    pub file: &'a PbfFile,
    pub rules: &'a FeatureRules,
    /// The use of the locations in ways, and the options for looking up other locations.
    pub locate: (LocationsInWays, LocateOptions),
    pub needs: FeatureNeeds<'a>,
    pub ctx: &'a Context,
}

impl FeaturePass<'_> {
    /// Makes the features. `output` creates the output of a thread. Calls `take` with each part of the output, and
    /// `report` with each problem. Returns a summary in which only the size of the output is missing.
    pub(super) fn run<O: FeatureOutput>(
        self,
        mut report: Option<&mut Report<'_>>,
        output: impl Fn() -> O + Sync,
        mut take: impl FnMut(O::Part) -> Result<()>,
    ) -> Result<Summary> {
        let (rules, ctx) = (self.rules, self.ctx);
        let filter = ObjectFilter::new(rules.filter.iter().cloned());
        let reports = report.is_some();
        let (visits, relations) = self.visits(&filter, reports);
        let (stored, locate) = self.locate;
        let row_limit = RowLimit::of(locate.max_memory);
        let pass = GeometryPass::open(self.file, visits, stored, locate, ctx)?;
        let shared = Shared {
            rules,
            filter,
            cuts: Cuts::new(rules),
            needs: self.needs,
            row_limit,
            relations,
            reports,
        };
        let mut totals = Tally::default();
        let index_type = pass.run(
            |block| shared.select_relations(block),
            || FeatureBuilder::new(&shared, output()),
            |found| match (found, &mut report) {
                (ExportPart::Features(part), _) => take(part),
                (ExportPart::Problems(problems), Some(report)) => {
                    problems.iter().try_for_each(report)
                }
                (ExportPart::Problems(_), None) => Ok(()),
                (ExportPart::Tally(tally), _) => {
                    totals.extend(&tally);
                    Ok(())
                }
            },
        )?;
        totals.problems.oversized.warn(row_limit, ctx);
        Ok(Summary {
            index_type,
            ..totals.into_summary(&shared.needs.themes)
        })
    }

    /// Returns which objects are visited, and whether relations become features. Relations may also be visited for
    /// other reasons.
    fn visits(&self, filter: &ObjectFilter, reports: bool) -> (Visits, bool) {
        let (rules, types) = (self.rules, self.rules.geometry_types);
        let selects = |kind| rules.kinds.contains(kind) && may_select(filter, kind);
        let has_lines = types.lines && !rules.line_relations.is_empty();
        let relations = (types.areas || has_lines) && selects(ObjectKind::Relation);
        let visits = Visits {
            nodes: types.points && selects(ObjectKind::Node),
            untagged_nodes: rules.keep_untagged,
            // A filter with conditions on metadata is applied again after repeated keys of an object were left out, and
            // then needs the metadata.
            info: self.needs.info || filter.needs_metadata(),
            ways: (types.lines || types.areas) && selects(ObjectKind::Way),
            areas: relations || self.needs.relations.is_some(),
            member_node_ids: reports,
        };
        (visits, relations)
    }
}
