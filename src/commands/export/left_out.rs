//! Warnings about objects that do not become features.

use super::{Incomplete, Options, Summary};
use crate::commands::empty_region;
use crate::engine::geometry_problem;
use crate::engine::location_form::LocationForm;
use crate::error::{Advice, Result, display_path};
use crate::file::{BlobPlan, PbfFile, PlanNeeds};
use crate::osm::Bbox;
use crate::runtime::Context;

/// Warns of objects that were left out because they have errors or are incomplete. Does nothing if there are none.
pub(crate) fn warn_of_left_out(summary: &Summary, incomplete: Incomplete, ctx: &Context) {
    let relations = match incomplete {
        Incomplete::LeaveOut => summary.incomplete,
        Incomplete::Keep => 0,
    };
    geometry_problem::warn_of_left_out_objects(&summary.errors, relations, ctx);
}

/// Warns if there is no feature, and says why.
pub(super) fn warn_if_no_features(
    options: &Options,
    summary: &Summary,
    file: &PbfFile,
    ctx: &Context,
) -> Result<()> {
    let problems = summary.errors.values().sum::<u64>() + summary.incomplete;
    // `warn_of_left_out` warns of objects with problems. A region may be a further reason, which is reported here.
    if summary.features > 0 || (problems > 0 && options.rules.region.is_none()) {
        return Ok(());
    }
    let subject = format!(
        "{}: no object of {}",
        options.target.path().display(),
        display_path(&options.input)
    );
    let plan = BlobPlan::open(file, PlanNeeds::Ranges, ctx)?;
    if plan.entries.iter().all(|entry| entry.count == 0) {
        ctx.warn(format!("{subject} becomes a feature: it has no objects"));
    } else if let Some(region) = &options.rules.region {
        let boxes = plan.entries.iter().map(|entry| entry.bbox);
        let data = boxes.fold(Bbox::EMPTY, |all, bbox| all.union(&bbox));
        let may_lack_nodes = LocationForm::of(file, &plan).may_lack_nodes();
        let reason = empty_region::reason(&region.envelope(), &data, may_lack_nodes);
        ctx.warn(format!(
            "{subject} that becomes a feature lies in the region{reason}"
        ));
    } else if !options.rules.filter.is_empty() {
        ctx.warn(format!(
            "{subject} that becomes a feature matches the filter"
        ));
    } else if options.rules.keep_untagged {
        ctx.warn(format!("{subject} has one of the geometries asked for"));
    } else {
        let message = format!("{subject} with a geometry that was asked for has tags");
        ctx.warn_with_advice(message, Advice::KeepUntagged);
    }
    Ok(())
}
