//! Formats numbers and statistics for people.

pub use crate::runtime::human_bytes as bytes;
use crate::{StatsReport, Written};
use std::fmt::Write;

/// Formats a number with its digits in groups of three: `12,345,678`.
pub fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns text with control characters escaped.
pub fn on_one_line(text: &str) -> String {
    text.chars().flat_map(super::escape_if_control).collect()
}

/// Formats a number and a noun, which gets an `s` unless the number is 1: `1 blob`, `2 blobs`.
pub fn counted(value: u64, singular: &str) -> String {
    format!(
        "{} {singular}{}",
        number(value),
        if value == 1 { "" } else { "s" }
    )
}

/// Formats the numbers of created, modified and deleted objects: `1 created, 2 modified, 3 deleted`.
pub fn changes(counts: [u64; 3]) -> String {
    let [created, modified, deleted] = counts.map(number);
    format!("{created} created, {modified} modified, {deleted} deleted")
}

/// Formats the numbers of nodes, ways and relations: `1 node, 2 ways, 3 relations`.
pub fn kinds([nodes, ways, relations]: [u64; 3]) -> String {
    [(nodes, "node"), (ways, "way"), (relations, "relation")]
        .map(|(count, kind)| counted(count, kind))
        .join(", ")
}

/// Formats a number of objects: `1 object`, `2,000 objects`. Returns `objects not counted` for `None`.
pub fn objects(count: Option<u64>) -> String {
    count.map_or("objects not counted".into(), |count| {
        counted(count, "object")
    })
}

/// Formats the number of objects and the size of a file that was written: `2,000 objects, 1.2 MB`.
pub fn objects_and_size(written: &Written) -> String {
    format!("{}, {}", objects(written.objects), bytes(written.bytes))
}

/// Formats the numbers of objects and blobs and the size of a file that was written: `2,000 objects, 2 blobs, 1.2 MB`.
/// The blobs are omitted for text formats.
pub fn written(written: &Written) -> String {
    match written.blobs {
        0 => objects_and_size(written),
        blobs => format!(
            "{}, {}, {}",
            objects(written.objects),
            counted(blobs, "blob"),
            bytes(written.bytes)
        ),
    }
}

/// Returns a line with the number of blobs that were skipped because of index entries that this run has not verified,
/// or an empty string if there are none.
pub fn skipped(report: &StatsReport) -> String {
    match report.blobs_trusted {
        0 => String::new(),
        blobs => format!(
            "  {} skipped according to the index\n",
            counted(blobs, "blob")
        ),
    }
}

/// Formats the statistics of a run, as `--verbose` prints them.
pub fn stats(report: &StatsReport) -> String {
    let mut out = String::new();
    for phase in &report.phases {
        let _ = writeln!(
            out,
            "{:>12}: {:.2} s ({:.2} s cpu)",
            phase.name, phase.wall_seconds, phase.cpu_seconds
        );
    }
    let _ = writeln!(
        out,
        "{:>12}: read {}, decoded {}, copied {}, written {}",
        "bytes",
        bytes(report.bytes_read),
        bytes(report.bytes_decoded),
        bytes(report.bytes_copied),
        bytes(report.bytes_written)
    );
    let _ = writeln!(
        out,
        "{:>12}: {} decoded, {} copied, {} rewritten, {} skipped",
        "blobs",
        number(report.blobs_decoded),
        number(report.blobs_copied),
        number(report.blobs_rewritten),
        number(report.blobs_skipped)
    );
    if let Some(peak) = report.peak_memory_bytes {
        let _ = writeln!(out, "{:>12}: {} at most", "memory", bytes(peak));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_bytes_get_a_fitting_unit() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1_000_000), "1,000,000");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(541_000_000), "541.0 MB");
        assert_eq!(bytes(999_999), "1.0 MB");
        assert_eq!(counted(1, "blob"), "1 blob");
    }
}
