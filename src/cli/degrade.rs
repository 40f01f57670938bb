use super::args::{OutputArgs, RunArgs};
use super::session::Session;
use super::{CommandAnswer, show};
use crate::commands::degrade::{self, Defects};
use anyhow::Result;
use std::path::PathBuf;

/// Make a file awkward, to test other programs with it
///
/// The result is a valid file, and every run gives the same. At least one of the options from --unsort to --drop-ids is
/// required.
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("defects").required(true).multiple(true),
    after_help = "Examples:
  pbfhogg degrade --unsort --strip-index berlin.osm.pbf -o unsorted.osm.pbf
  pbfhogg degrade --drop-ids 100:1 berlin.osm.pbf -o with-dangling-references.osm.pbf"
)]
pub struct Args {
    /// Input file; - is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Put the blobs in random order
    #[arg(long, group = "defects")]
    unsort: bool,
    /// Put the objects of each blob in random order
    #[arg(long, group = "defects")]
    unsort_intra: bool,
    /// Leave out the table of contents and the indexes of blobs
    #[arg(long, aliases = ["strip-indexdata", "strip-tagdata"], group = "defects")]
    strip_index: bool,
    /// Remove the coordinates of nodes from ways
    #[arg(long, group = "defects")]
    strip_locations: bool,
    /// Remove the bounding box from the header
    #[arg(long, group = "defects")]
    strip_bbox: bool,
    /// Leave out N random objects, even if others refer to them; SEED determines which [default: 0]
    #[arg(long, group = "defects", value_name = "N[:SEED]", value_parser = parse_drop)]
    drop_ids: Option<(u64, u64)>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let ctx = args.run.context(session);
    let options = degrade::Options {
        input: args.input.clone(),
        output: args.output.options(session)?,
        defects: Defects {
            unsort: args.unsort,
            unsort_intra: args.unsort_intra,
            strip_index: args.strip_index,
            strip_locations: args.strip_locations,
            strip_bbox: args.strip_bbox,
            drop: args.drop_ids,
        },
    };
    let summary = degrade::run(&options, &ctx)?;
    session.report_output(&args.run, &ctx, &summary, &options.output.target, || {
        format!(
            "{}, {} left out, {}",
            show::objects(summary.written.objects),
            show::number(summary.dropped),
            show::bytes(summary.written.bytes),
        )
    })
}

/// Parses `N` or `N:SEED`. N is the number of objects to leave out; SEED is 0 by default.
fn parse_drop(text: &str) -> Result<(u64, u64), String> {
    let (count, seed) = text.split_once(':').unwrap_or((text, "0"));
    match (count.parse(), seed.parse()) {
        (Ok(count), Ok(seed)) => Ok((count, seed)),
        _ => Err("expected a number of objects, and perhaps a colon and a seed".into()),
    }
}
