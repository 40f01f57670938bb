use super::args::{RunArgs, text_target};
use super::session::Session;
use super::{CommandAnswer, inspect_views, show, show_object, tags_count, usage};
use crate::cli::args::Stdout;
use crate::commands::inspect::page::{self, PageOptions};
use crate::commands::inspect::{self, KindSummary, Statistics, Summary};
use crate::file::IndexKind;
use crate::osm::Bbox;
use crate::runtime::Context;
use anyhow::{Result, bail};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Show what is in a file
///
/// Prints the header, the blobs and objects of each kind with their sizes, and whether objects are in order. With an
/// index, this takes a few reads; without one, every blob is decoded once.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "Examples:
  pbfhogg inspect berlin.osm.pbf
  pbfhogg inspect -e --nodes --anomalies berlin.osm.pbf
  pbfhogg inspect --top 10 berlin.osm.pbf
  pbfhogg inspect --show n17,w42 berlin.osm.pbf
  pbfhogg inspect tags berlin.osm.pbf 'highway=*'
  pbfhogg inspect --html berlin.html berlin.osm.pbf
  pbfhogg inspect --json berlin.osm.pbf
  pbfhogg inspect --indexed berlin.osm.pbf || pbfhogg cat berlin.osm.pbf -o indexed.osm.pbf
  pbfhogg inspect --get osmosis_replication_sequence_number planet.osm.pbf

Keys of --get: header.option.NAME, file.size, data.count.nodes, data.count.ways,
data.count.relations, data.objects_ordered, data.bbox, data.timestamp.first, data.timestamp.last,
data.minid.nodes, data.maxid.ways, metadata.all_objects.user, metadata.some_objects.version
(and so on), and every field of the JSON report.")]
pub struct Args {
    #[command(subcommand)]
    view: Option<View>,
    /// The file; - is standard input
    #[arg(value_name = "FILE", required = true)]
    input: Option<PathBuf>,
    /// Print only whether the file is indexed; exit status 0 if it has a table of contents, else 1
    #[arg(long, conflicts_with_all = ["get", "show"])]
    indexed: bool,
    /// Also print times, metadata, and counts of tags, references and members
    ///
    /// Without a table of contents, every object is decoded.
    #[arg(short, long)]
    extended: bool,
    /// List the blobs, or the first N of them
    #[arg(
        long,
        visible_alias = "blobs",
        value_name = "N",
        num_args = 0..=1,
        default_missing_value = "0",
        require_equals = true
    )]
    blocks: Option<usize>,
    /// Print how the ids of each kind are distributed over the blobs
    #[arg(long)]
    id_ranges: bool,
    /// Count the ways and the references in ways whose locations the ways store
    ///
    /// Also names the form of the file: plain; located, with all nodes; located, needed nodes only; or mixed.
    #[arg(long)]
    locations: bool,
    /// Print statistics of the coordinates of all nodes
    #[arg(long)]
    nodes: bool,
    /// List whatever is unusual in the file
    #[arg(long)]
    anomalies: bool,
    /// List the N relations with the most members, ways with the most nodes, objects with the most tags, and areas with
    /// the most nodes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    top: Option<u32>,
    /// Write an HTML page to FILE: where the nodes are, when objects were edited, frequent keys, the layout
    #[arg(long, value_name = "FILE", conflicts_with_all = ["indexed", "get", "show"])]
    html: Option<PathBuf>,
    /// Replace the page if it exists
    #[arg(short = 'O', long, requires = "html")]
    overwrite: bool,
    /// Show the objects with these ids, such as n17 or n17,w42, as the file stores them
    #[arg(long, value_name = "ID", conflicts_with = "get")]
    show: Vec<String>,
    /// Print only the value of KEY; exit status 1 if the file does not have it
    #[arg(short, long, value_name = "KEY")]
    get: Option<String>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, clap::Subcommand)]
enum View {
    Tags(tags_count::Args),
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    if let Some(View::Tags(args)) = &args.view {
        return tags_count::run(session, args);
    }
    let input = args.input.clone().unwrap_or_default();
    if !args.show.is_empty() {
        return show_object::run_with(session, &input, &args.show, &args.run);
    }
    let ctx = args.run.context(session);
    if let Some(path) = &args.html {
        return write_page(session, args, input, path, &ctx);
    }
    let needs = |starts: &[&str]| {
        let key = args.get.as_deref().unwrap_or_default();
        starts.iter().any(|start| key.starts_with(start))
    };
    let options = inspect::Options {
        input,
        statistics: Statistics {
            extended: args.extended
                || needs(&["data.timestamp.", "data.multiple", "metadata.", "extended"]),
            nodes: args.nodes || needs(&["node_statistics"]),
            locations: args.locations || needs(&["way_locations"]),
            anomalies: args.anomalies || needs(&["anomalies"]),
        },
        list_blobs: args
            .blocks
            .map(|most| if most == 0 { usize::MAX } else { most }),
        id_ranges: args.id_ranges,
        compression: args.get.is_none() || needs(&["compression"]),
        maxima: args.get.is_none() || needs(&["extended.most_"]),
        top: args.top.map(|most| most as usize),
    };
    if args.indexed {
        let index = inspect::index_kind(&options, &ctx)?;
        let indexed = index == IndexKind::TableOfContents;
        if !args.run.quiet {
            let is = if indexed { "indexed" } else { "not indexed" };
            session.print(&format!("{is} (index: {})\n", index.name()))?;
        }
        return Ok(CommandAnswer::yes_if(indexed));
    }
    let summary = inspect::run(&options, &ctx)?;
    if let Some(key) = &args.get {
        args.run.end(session, &ctx, Stdout::Taken)?;
        return match summary.get(key) {
            Some(value) => session.answer(&format!("{value}\n")),
            None => match unknown_key_message(&summary, key) {
                None => Ok(CommandAnswer::No),
                Some(mistake) => bail!(mistake),
            },
        };
    }
    session.report(&args.run, &ctx, &summary, Stdout::Answer, || {
        summary_text(&summary) + &inspect_views::text(&summary)
    })
}

/// Writes the HTML page, and reports its path.
fn write_page(
    session: &Session,
    args: &Args,
    input: PathBuf,
    path: &Path,
    ctx: &Context,
) -> Result<CommandAnswer> {
    let output = text_target(session, path, args.overwrite)?;
    let stdout = Stdout::from(&output);
    let summary = page::write(&PageOptions::new(input, output), ctx)?;
    session.report(&args.run, ctx, &summary, stdout, || {
        format!("{} is written: open it in a browser\n", path.display())
    })
}

/// Returns the error message for a key that --get does not support; `None` for a known key that has no value in this
/// file.
fn unknown_key_message(summary: &Summary, key: &str) -> Option<String> {
    let mut keys = summary.keys();
    if keys.iter().any(|known| known == key) {
        return None;
    }
    keys.sort();
    keys.dedup();
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let is_near =
        |known: &&String| usage::is_near(known, key) || usage::is_near(&last(known), &last(key));
    let near: Vec<&str> = keys
        .iter()
        .filter(is_near)
        .map(String::as_str)
        .take(5)
        .collect();
    let hint = if near.is_empty() {
        "`pbfhogg inspect --help` lists them".to_owned()
    } else {
        format!("did you mean {}?", near.join(", "))
    };
    Some(format!("'{key}' is not a key of --get; {hint}"))
}

/// Formats a box, and names the order of its edges.
fn box_text(bbox: Bbox) -> String {
    format!("{bbox} (min_lon,min_lat,max_lon,max_lat)")
}

fn summary_text(summary: &Summary) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<14}{value}");
    };
    line(
        "File",
        format!("{} ({})", summary.path, show::bytes(summary.bytes)),
    );
    let optional = [
        ("Generator", &summary.generator),
        ("Source", &summary.source),
        ("Header box", &summary.header_bbox.map(box_text)),
        ("Data box", &summary.data_bbox.map(box_text)),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            line(name, value.clone());
        }
    }
    let features = [
        &summary.required_features[..],
        &summary.optional_features[..],
    ]
    .concat();
    line("Features", features.join(", "));
    if let Some(replication) = replication(summary) {
        line("Replication", replication);
    }
    let hint = match summary.index {
        "none" => "; `pbfhogg cat` makes a file with one",
        _ if summary.id_table => ", table of ids",
        _ => "",
    };
    line("Index", format!("{}{hint}", summary.index));
    line("Order", order(summary).to_owned());
    let blobs = show::number(summary.blobs) + &payload_note(summary);
    line("Blobs", blobs);
    if let Some(compression) = compression(summary) {
        line("Compression", compression);
    }
    let kinds = show::kinds([summary.nodes, summary.ways, summary.relations]);
    line(
        "Objects",
        format!("{} ({kinds})", show::number(summary.objects)),
    );
    put_kinds(&mut out, &summary.kinds);
    out
}

/// Formats the uncompressed size as a note to put after the number of blobs. Returns an empty string if the size is
/// unknown.
fn payload_note(summary: &Summary) -> String {
    let note = |bytes| format!(", {} uncompressed", show::bytes(bytes));
    summary.payload_bytes.map(note).unwrap_or_default()
}

/// Describes the compression of the blobs; `None` if it was not examined.
fn compression(summary: &Summary) -> Option<String> {
    let sample = summary.compression.as_ref()?;
    let is_mixed = sample.kinds.len() > 1;
    let mut text = sample
        .kinds
        .iter()
        .map(|kind| {
            let level = kind.level.map(|level| format!(", probably level {level}"));
            let blobs = is_mixed.then(|| format!(" ({})", show::counted(kind.blobs, "blob")));
            format!(
                "{}{}{}",
                kind.kind,
                level.unwrap_or_default(),
                blobs.unwrap_or_default()
            )
        })
        .collect::<Vec<_>>()
        .join("; ");
    if sample.sampled_blobs < summary.blobs {
        let _ = write!(
            text,
            " ({} of {} blobs looked at)",
            show::number(sample.sampled_blobs),
            show::number(summary.blobs)
        );
    }
    (sample.sampled_blobs > 0).then_some(text)
}

/// Appends a table with a row for each kind of object.
fn put_kinds(out: &mut String, kinds: &[KindSummary]) {
    let _ = writeln!(
        out,
        "\n{:<10}{:>16}{:>10}{:>12}{:>14}   ids",
        "", "objects", "blobs", "size", "uncompressed"
    );
    for kind in kinds {
        let ids = match (kind.min_id, kind.max_id) {
            (Some(min), Some(max)) => format!("{min} to {max}"),
            _ => String::new(),
        };
        let _ = writeln!(
            out,
            "{:<10}{:>16}{:>10}{:>12}{:>14}   {ids}",
            kind.kind,
            show::number(kind.objects),
            show::number(kind.blobs),
            show::bytes(kind.bytes),
            kind.payload_bytes.map_or("?".into(), show::bytes),
        );
    }
}

/// Describes the replication state; `None` if the header has none.
fn replication(summary: &Summary) -> Option<String> {
    let sequence = summary.replication_sequence;
    let sequence = sequence.map(|number| format!("sequence {number}"));
    let timestamp = summary.replication_timestamp.as_ref();
    let timestamp = timestamp.map(|time| format!("up to {time}"));
    let url = summary.replication_url.as_ref();
    let url = url.map(|url| format!("from {url}"));
    let parts: Vec<String> = [sequence, timestamp, url].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Describes the order of the objects.
fn order(summary: &Summary) -> &'static str {
    if summary.spatial_layout {
        return "along a Hilbert curve (a spatial layout); `pbfhogg sort` restores the usual one";
    }
    match (summary.sorted, summary.declared_sorted) {
        (Some(true), true) => "sorted by kind and id",
        (Some(true), false) => "sorted by kind and id, though the header does not say so",
        (Some(false), true) => "NOT sorted, though the header says so; run `pbfhogg sort`",
        (Some(false), false) => "not sorted",
        (None, true) => "sorted by kind and id, as the header says",
        (None, false) => "not known",
    }
}
