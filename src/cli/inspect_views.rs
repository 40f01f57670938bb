//! Formats the optional views of `inspect` as text.

use super::show;
use crate::commands::inspect::{
    Anomalies, BlobLine, ByKind, Extended, IdDistribution, LargestObjects, NodeStatistics, Summary,
    WayLocationStatistics,
};
use crate::osm::Degrees;
use std::fmt::Write;

/// Formats all optional views that the summary contains.
pub fn text(summary: &Summary) -> String {
    let mut out = String::new();
    let views = [
        summary.extended.as_ref().map(extended_text),
        summary.node_statistics.as_ref().map(node_statistics_text),
        summary.way_locations.as_ref().map(locations),
        summary.anomalies.as_ref().map(anomalies),
        summary.top.as_ref().map(largest_objects_text),
        summary.id_ranges.as_deref().map(id_ranges),
        summary.blob_list.as_deref().map(blobs),
    ];
    for view in views.into_iter().flatten() {
        out.push('\n');
        out += &view;
    }
    out
}

/// Appends a line with the name of a value and the value.
fn put_line(out: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = writeln!(out, "{name:<26}{value}");
}

fn extended_text(found: &Extended) -> String {
    let mut out = String::from("Objects\n");
    let total = found.objects.total();
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".into());
    put_line(&mut out, "  oldest", or_none(&found.first_timestamp));
    put_line(&mut out, "  newest", or_none(&found.last_timestamp));
    for (name, count) in [
        ("  with version", found.with_version),
        ("  with timestamp", found.with_timestamp),
        ("  with changeset", found.with_changeset),
        ("  with user number", found.with_uid),
        ("  with user name", found.with_user),
        ("  deleted", found.deleted),
    ] {
        put_line(&mut out, name, share(count, total));
    }
    let versions = match found.further_versions {
        Some(count) => share(count, total),
        None => "not checked: the file is not sorted; `pbfhogg check --ids --full` looks".into(),
    };
    put_line(&mut out, "  further versions", versions);
    put_line(&mut out, "  with tags", counts_by_kind_text(&found.tagged));
    put_line(&mut out, "  tags", counts_by_kind_text(&found.tags));
    let most = |count: u64, what: &str, id: Option<i64>| {
        let letter = &what[..1];
        let id = id.map_or(String::new(), |id| format!(": {letter}{id}"));
        format!(" (at most {} a {what}{id})", show::number(count))
    };
    let refs = show::number(found.refs) + &most(found.most_refs, "way", found.most_refs_way);
    put_line(&mut out, "  nodes of ways", refs);
    let most = most(found.most_members, "relation", found.most_members_relation);
    let members = show::number(found.members) + &most;
    put_line(&mut out, "  members of relations", members);
    out
}

/// Formats a count as a share of a total: `all`, `none`, or the count and the percentage.
fn share(count: u64, total: u64) -> String {
    match count {
        0 => "none".into(),
        count if count == total => "all".into(),
        count => {
            let percent = count as f64 * 100.0 / total.max(1) as f64;
            format!("{} ({percent:.1} %)", show::number(count))
        }
    }
}

fn counts_by_kind_text(counts: &ByKind) -> String {
    format!(
        "{} (nodes {}, ways {}, relations {})",
        show::number(counts.total()),
        show::number(counts.nodes),
        show::number(counts.ways),
        show::number(counts.relations)
    )
}

fn node_statistics_text(found: &NodeStatistics) -> String {
    let mut out = String::from("Coordinates of nodes\n");
    put_line(&mut out, "  nodes", show::number(found.nodes));
    put_line(&mut out, "  with tags", share(found.tagged, found.nodes));
    put_line(
        &mut out,
        "  outside of the world",
        share(found.outside, found.nodes),
    );
    put_line(&mut out, "  at 0,0", share(found.at_zero, found.nodes));
    put_line(
        &mut out,
        "  finer than 1e-7 degree",
        share(found.finer_than_e7, found.nodes),
    );
    if let Some(bbox) = &found.bbox {
        put_line(&mut out, "  box", bbox);
    }
    for (name, id) in [
        ("  westernmost", found.westernmost),
        ("  southernmost", found.southernmost),
        ("  easternmost", found.easternmost),
        ("  northernmost", found.northernmost),
    ] {
        if let Some(id) = id {
            put_line(&mut out, name, format_args!("n{id}"));
        }
    }
    if let Some(Degrees { lat, lon }) = found.center {
        put_line(
            &mut out,
            "  mean",
            format_args!("{lat:.7} {lon:.7} (latitude, longitude)"),
        );
    }
    out
}

fn locations(found: &WayLocationStatistics) -> String {
    let mut out = String::from("Locations in ways\n");
    put_line(&mut out, "  form", found.form);
    put_line(&mut out, "  ways", show::number(found.ways));
    let of_ways = [
        ("  all locations known", found.located_ways),
        ("  some known", found.partly_located_ways),
        ("  none known", found.bare_ways),
    ];
    for (name, count) in of_ways {
        put_line(&mut out, name, share(count, found.ways));
    }
    put_line(&mut out, "  nodes of ways", show::number(found.refs));
    let of_refs = [
        ("  location known", found.located_refs),
        ("  location unknown", found.bare_refs),
    ];
    for (name, count) in of_refs {
        put_line(&mut out, name, share(count, found.refs));
    }
    if found.located_refs > 0 {
        let other = "not checked; `pbfhogg check --full` compares them with the nodes";
        put_line(&mut out, "  other than the node", other);
    }
    out
}

fn anomalies(found: &Anomalies) -> String {
    if found.is_empty() {
        return "Nothing unusual\n".into();
    }
    let mut out = String::from("Unusual\n");
    for (what, anomaly) in found {
        let first = match &anomaly.object {
            Some(object) => format!("first {object} in blob {}", anomaly.blob),
            None => format!("first blob {}", anomaly.blob),
        };
        let _ = writeln!(out, "{:>16}  {what} ({first})", show::number(anomaly.count));
    }
    out
}

fn largest_objects_text(found: &LargestObjects) -> String {
    let mut out = String::new();
    for (title, what, list) in [
        ("Largest relations", "members", &found.relations),
        ("Largest ways", "nodes", &found.ways),
        ("Largest sets of tags", "tags", &found.tag_sets),
        ("Largest areas", "nodes of their ways", &found.areas),
    ] {
        let _ = writeln!(out, "{title}");
        for one in list {
            let name = format!("  {}{}", one.kind.letter(), one.id);
            put_line(
                &mut out,
                &name,
                format_args!("{} {what}", show::number(one.count)),
            );
        }
        if list.is_empty() {
            out.push_str("  none\n");
        }
    }
    out
}

fn id_ranges(ranges: &[IdDistribution]) -> String {
    let mut out = format!(
        "{:<10}{:>21}{:>21}{:>10}{:>10}{:>14}{:>18}\n",
        "Ids", "smallest", "largest", "in use", "blobs", "overlapping", "widest blob"
    );
    for range in ranges {
        let used = range.objects as f64 * 100.0 / range.span.max(1) as f64;
        let _ = writeln!(
            out,
            "{:<10}{:>21}{:>21}{:>10}{:>10}{:>14}{:>18}",
            range.kind.plural(),
            range.min_id,
            range.max_id,
            format!("{used:.2} %"),
            show::number(range.blobs),
            show::number(range.overlapping_blobs),
            show::number(range.widest_blob)
        );
    }
    out
}

fn blobs(lines: &[BlobLine]) -> String {
    let mut out = format!(
        "{:>8}{:>16}{:>12}{:>14}  {:<12}{:>10}  {:<12}{:<10}ids\n",
        "Blob", "at byte", "bytes", "uncompressed", "compression", "objects", "kinds", "order"
    );
    for blob in lines {
        let payload = blob.payload_bytes.map(|bytes| show::number(bytes.into()));
        let _ = writeln!(
            out,
            "{:>8}{:>16}{:>12}{:>14}  {:<12}{:>10}  {:<12}{:<10}{} to {}",
            blob.number,
            blob.offset,
            show::number(blob.bytes.into()),
            payload.unwrap_or_else(|| "?".into()),
            blob.compression,
            show::number(blob.objects.into()),
            blob.kinds,
            match blob.sorted {
                Some(true) => "sorted",
                Some(false) => "not",
                None => "?",
            },
            blob.min_id,
            blob.max_id
        );
    }
    out
}
