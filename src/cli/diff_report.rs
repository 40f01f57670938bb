//! The warnings and the counts of `diff`.

use super::show;
use crate::commands::diff::{Counts, Summary};
use crate::runtime::Context;

/// If a change file is written (`is_osc`), warns about changes that the file cannot express exactly, and about changes
/// that have no effect when the file is applied.
pub fn warn_of_inexact_changes(summary: &Summary, is_osc: bool, ctx: &Context) {
    if is_osc && summary.going_back > 0 {
        ctx.warn(format!(
            "{} have a lower version or an older time in the new file: applying the changes leaves these objects unchanged",
            show::counted(summary.going_back, "object")
        ));
    }
    if is_osc && summary.inexact > 0 {
        ctx.warn(format!(
            "{} have coordinates with more than seven decimals: the change file rounds them",
            show::counted(summary.inexact, "node")
        ));
    }
    if is_osc {
        warn_of_changed_locations(summary, ctx);
    }
}

/// Warns about ways that a change file contains only because of their stored locations, and about stored locations that
/// a change file cannot remove.
pub fn warn_of_changed_locations(summary: &Summary, ctx: &Context) {
    if summary.relocated > 0 {
        ctx.warn(format!(
            "the change file has {} only for the locations of nodes that the new file does not have: \
             `apply-changes --locations-on-ways` takes them",
            show::counted(summary.relocated, "way")
        ));
    }
    if summary.locations_lost > 0 {
        ctx.warn(format!(
            "{} of the new file without a location that the old file has, of a node that neither file has: \
             applying the changes leaves the location",
            show::counted(summary.locations_lost, "way")
        ));
    }
}

/// Returns counts on one line.
pub fn counts_line(counts: &Counts) -> String {
    format!(
        "left={} right={} same={} different={}",
        counts.left, counts.right, counts.same, counts.different
    )
}

/// Returns the total counts and the counts of each kind, each on a line.
pub fn summary_text(summary: &Summary) -> String {
    let lines = [
        ("Summary", &summary.total()),
        ("  nodes", &summary.nodes),
        ("  ways", &summary.ways),
        ("  relations", &summary.relations),
    ];
    let line = |(name, found): (&str, &Counts)| format!("{name}: {}\n", counts_line(found));
    let only = match summary.new_version_only {
        0 => String::new(),
        count => format!("  {} with a new version only\n", show::number(count)),
    };
    lines.map(line).concat() + &only
}
