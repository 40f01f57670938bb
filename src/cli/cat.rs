use super::args::{AttributeArg, ChangesetKindArgs, OutputArgs, RunArgs};
use super::session::Session;
use super::{CommandAnswer, show, sort};
use crate::commands::{self, cat};
use crate::engine::Format;
use anyhow::Result;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Concatenate files and index the result, or convert them
///
/// Reads PBF, OSM XML and OPL, the latter two compressed or not. The name of the output determines its format. Blobs
/// are copied unchanged. The output gets a table of contents, so that later commands can find objects without reading
/// every blob. An input that has a table of contents is not decoded, unless --force is given.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg cat berlin.osm.pbf -o berlin-indexed.osm.pbf
  pbfhogg cat north.osm.pbf south.osm.pbf -o both.osm.pbf
  pbfhogg cat -t way,relation planet.osm.pbf -o no-nodes.osm.pbf
  pbfhogg cat -c changeset,uid,user berlin.osm.pbf -o anonymous.osm.pbf
  pbfhogg cat by-hand.osm -o by-hand.osm.pbf
  pbfhogg cat -f opl -t relation berlin.osm.pbf -o - | less")]
pub struct Args {
    /// Input files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    inputs: Vec<PathBuf>,
    /// Merge sorted files, like the command merge: each object once, in its highest version
    ///
    /// In history files, each version is written once.
    #[arg(long, conflicts_with_all = ["kinds", "clean"])]
    dedupe: bool,
    #[command(flatten)]
    kinds: ChangesetKindArgs,
    /// Leave out metadata: version, timestamp, changeset, uid, user; comma-separated, repeatable
    #[arg(
        short,
        long,
        value_name = "ATTRIBUTE",
        value_delimiter = ',',
        value_enum,
        hide_possible_values = true
    )]
    clean: Vec<AttributeArg>,
    /// Keep only the data blobs with these numbers, such as 1-64 or 7; `pbfhogg inspect --blobs` lists them
    #[arg(long, value_name = "FROM-TO", value_parser = parse_blobs, conflicts_with = "dedupe")]
    blobs: Option<RangeInclusive<u64>>,
    /// Decode every blob and make a new index, even if the input has one
    #[arg(long, conflicts_with = "dedupe")]
    force: bool,
    /// No effect: the data is never held in memory as a whole
    #[arg(long, hide = true)]
    buffer_data: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let ctx = args.run.context(session);
    let mut output = args.output.options(session)?;
    if args.inputs.len() > 1 {
        output.header.inherited = session.conventions.concatenated_fields;
    }
    if args.dedupe {
        let options = commands::sort::Options {
            inputs: args.inputs.clone(),
            output,
            dedupe: commands::sort::Dedupe::HighestVersion,
            changesets: args.kinds.has_changesets(),
            accepts_mixture: session.conventions.merges_data,
            keeps_locations: session.conventions.keeps_way_locations,
        };
        return sort::run_with(session, &options, &args.run, &ctx);
    }
    let options = cat::Options {
        inputs: args.inputs.clone(),
        output,
        kinds: args.kinds.kind_set(),
        changesets: args.kinds.has_changesets(),
        clean: AttributeArg::all_of(&args.clean),
        blobs: args.blobs.clone(),
        rescan: args.force,
        accepts_mixture: session.conventions.merges_data,
        keeps_locations: session.conventions.keeps_way_locations,
    };
    let summary = cat::run(&options, &ctx)?;
    session.report_output(&args.run, &ctx, &summary, &options.output.target, || {
        let is_sorted = summary.written.sorted && options.output.format == Format::Pbf;
        show::written(&summary.written) + if is_sorted { ", sorted" } else { "" }
    })
}

/// Parses the number of a blob, or the numbers of the first and the last blob of a range.
fn parse_blobs(text: &str) -> Result<RangeInclusive<u64>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.trim().parse(), last.trim().parse()) {
        (Ok(first @ 1..), Ok(last)) if first <= last => Ok(first..=last),
        _ => Err("expected the numbers of blobs, counted from 1, such as 1-64 or 7".into()),
    }
}
