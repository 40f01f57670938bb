//! Warnings about objects that do not become features.

use super::{Incomplete, Options, Summary};
use crate::commands::empty_region;
use crate::engine::location_form::LocationForm;
use crate::error::{Advice, Result, shown};
use crate::file::{BlobPlan, PbfFile, PlanNeeds};
use crate::osm::Bbox;
use crate::runtime::Context;
use std::collections::BTreeMap;

/// Lists the numbers of problems with their kinds, as `open ring 2, wrong role 1`.
pub(crate) fn list_of_problems(counts: &BTreeMap<&str, u64>) -> String {
    let kinds = counts.iter();
    let kinds = kinds.map(|(name, count)| format!("{} {count}", name.replace('_', " ")));
    kinds.collect::<Vec<_>>().join(", ")
}

/// Warns of objects that were left out because they have errors or are incomplete. Does nothing if there are none.
pub(crate) fn warn_of_left_out(summary: &Summary, incomplete: Incomplete, ctx: &Context) {
    let errors: u64 = summary.errors.values().sum();
    let relations = match incomplete {
        Incomplete::LeaveOut => summary.incomplete,
        Incomplete::Keep => 0,
    };
    let mut parts = Vec::new();
    if relations > 0 {
        let plural = if relations == 1 { "" } else { "s" };
        parts.push(format!(
            "{relations} relation{plural} of which a part is not in the file"
        ));
    }
    if errors > 0 {
        let plural = if errors == 1 { "" } else { "s" };
        let kinds = list_of_problems(&summary.errors);
        parts.push(format!("objects with {errors} error{plural} ({kinds})"));
    }
    if !parts.is_empty() {
        let message = format!("left out: {}", parts.join(", and "));
        ctx.warn_with_advice(message, Advice::ListLeftOut);
    }
}

/// Warns if there is no feature, and says why.
pub(super) fn warn_of_nothing(
    options: &Options,
    summary: &Summary,
    file: &PbfFile,
    ctx: &Context,
) -> Result<()> {
    let problems = summary.errors.values().sum::<u64>() + summary.incomplete;
    // Objects that are left out are reported anyway.
    if summary.features > 0 || (problems > 0 && options.region.is_none()) {
        return Ok(());
    }
    let subject = format!(
        "{}: no object of {}",
        options.target.path().display(),
        shown(&options.input)
    );
    let plan = BlobPlan::open(file, PlanNeeds::Ranges, ctx)?;
    if plan.entries.iter().all(|entry| entry.count == 0) {
        ctx.warn(format!("{subject} becomes a feature: it has no objects"));
    } else if let Some(region) = &options.region {
        let boxes = plan.entries.iter().map(|entry| entry.bbox);
        let data = boxes.fold(Bbox::EMPTY, |all, bbox| all.union(&bbox));
        let may_lack_nodes = LocationForm::of(file, &plan).may_lack_nodes();
        let reason = empty_region::reason(&region.envelope(), &data, may_lack_nodes);
        ctx.warn(format!(
            "{subject} that becomes a feature lies in the region{reason}"
        ));
    } else if !options.filter.is_empty() {
        ctx.warn(format!(
            "{subject} that becomes a feature matches the filter"
        ));
    } else if options.keep_untagged {
        ctx.warn(format!("{subject} has one of the geometries asked for"));
    } else {
        let message = format!("{subject} with a geometry that was asked for has tags");
        ctx.warn_with_advice(message, Advice::KeepUntagged);
    }
    Ok(())
}
