//! Formats as text the findings of `check` about areas and about doubled objects.

use super::show;
use crate::commands::check::{AreaCheck, DoubledCheck, Summary};
use crate::commands::export::list_of_problems;
use std::fmt::Write;

/// Appends the findings about areas and about doubled objects, as far as the summary contains them.
pub fn put_area_findings(out: &mut String, summary: &Summary) {
    if let Some(areas) = &summary.areas {
        put_areas(out, areas);
    }
    if let Some(doubled) = &summary.doubled {
        put_doubled_objects(out, doubled);
    }
}

/// Appends the listed problems of areas, the most serious first, and the total numbers of problems.
fn put_areas(out: &mut String, found: &AreaCheck) {
    let mistakes: u64 = found.warnings.values().sum();
    for (severity, count) in [
        ("error", found.error_count()),
        ("warning", mistakes),
        ("incomplete", found.incomplete),
    ] {
        let listed = found.listed.iter();
        let listed: Vec<_> = listed.filter(|one| one.severity == severity).collect();
        for one in &listed {
            let _ = writeln!(out, "  {} {}: {}", one.kind.name(), one.id, one.what);
        }
        put_left_out(out, count, listed.len());
    }
    let _ = writeln!(
        out,
        "areas: {} whole, {} of which a part is not in the file",
        show::number(found.areas),
        show::counted(found.incomplete, "relation"),
    );
    let _ = match found.error_count() {
        0 => writeln!(out, "broken areas: none"),
        errors => writeln!(
            out,
            "problems that break areas: {} ({})",
            show::number(errors),
            list_of_problems(&found.errors)
        ),
    };
    if mistakes > 0 {
        let _ = writeln!(
            out,
            "mistakes that do not change areas: {} ({})",
            show::number(mistakes),
            list_of_problems(&found.warnings)
        );
    }
    let unplaced = "problems without a place, which are not in the output";
    put_count(out, unplaced, found.unplaced.unwrap_or(0));
}

/// Appends the listed doubled objects and keys, and their total numbers.
fn put_doubled_objects(out: &mut String, found: &DoubledCheck) {
    for one in &found.listed {
        let letter = one.kind.letter();
        let _ = match (&one.key, one.same_as) {
            (Some(key), _) => writeln!(out, "  {letter}{}: the key {key} comes twice", one.id),
            (None, Some(other)) => writeln!(
                out,
                "  {letter}{}: at the place of {letter}{other}, with the same tags",
                one.id
            ),
            (None, None) => Ok(()),
        };
    }
    put_left_out(out, found.total(), found.listed.len());
    let _ = match found.total() {
        0 => writeln!(out, "doubled: nothing"),
        _ => writeln!(
            out,
            "doubled: {}, {}, {}",
            show::counted(found.nodes, "node"),
            show::counted(found.ways, "way"),
            show::counted(found.keys, "key")
        ),
    };
}

/// Appends a line with a count and its description, unless the count is 0.
pub fn put_count(out: &mut String, what: &str, count: u64) {
    if count > 0 {
        let _ = writeln!(out, "{what}: {}", show::number(count));
    }
}

/// Appends a line with the number of findings that are not listed, if there are any.
pub fn put_left_out(out: &mut String, found: u64, listed: usize) {
    let more = found.saturating_sub(listed as u64);
    if more > 0 {
        let more = show::number(more);
        let _ = writeln!(out, "  … and {more} more: --max-errors 0 lists all");
    }
}
