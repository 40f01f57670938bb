use super::args::{RunArgs, WriteArgs, names, parse_size};
use super::session::Session;
use super::{CommandAnswer, show};
use crate::commands::split;
use crate::file::Parts;
use crate::io::OutputTarget;
use anyhow::{Result, bail};
use std::path::PathBuf;

/// Divide a file into parts of consecutive blobs
///
/// Each part is a complete file with a table of contents: part-0000.osm.pbf, part-0001.osm.pbf and so on. Together they
/// have all objects of the input, in the same order. Blobs are copied, so this takes as long as a copy of the file. The
/// parts of a file with a spatial layout (pbfhogg repack --layout hilbert) are regions.
///
/// With -O, the parts take the place of those of an earlier run; other files in the directory stay.
///
/// A part has ways without their nodes. Commands that need locations work on parts of a file that has them in its ways
/// (pbfhogg add-locations-to-ways).
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("division").required(true),
    after_help = "Examples:
  pbfhogg split planet.osm.pbf -n 64 -o parts
  pbfhogg split planet.osm.pbf --size 1G -o parts"
)]
pub struct Args {
    /// Input file; - is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Write N parts of about the same size
    #[arg(short = 'n', long, group = "division", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    parts: Option<u64>,
    /// Write parts with at most SIZE bytes of blobs, such as 1G; a part has at least one blob
    #[arg(long, group = "division", value_name = "SIZE", value_parser = parse_size)]
    size: Option<u64>,
    /// Directory for the parts
    #[arg(short, long, value_name = "DIRECTORY", help_heading = "Common options")]
    output: PathBuf,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let ctx = args.run.context(session);
    names::directory("split writes a directory of files").check_name(session, &args.output)?;
    let parts = match (args.parts, args.size) {
        (Some(count), _) => Parts::Count(count),
        (None, Some(size)) => Parts::Size(size),
        (None, None) => bail!("say how many parts (-n), or how large they are (--size)"),
    };
    let options = split::Options::new(&args.input, &args.output, parts)
        .overwrite(args.write.overwrite)
        .write(args.write.pbf(
            session,
            "split writes PBF: convert the parts with `pbfhogg cat`",
        )?)
        .header(args.write.header(session));
    let summary = split::run(&options, &ctx)?;
    let target = OutputTarget::named_file(&args.output, args.write.overwrite);
    session.report_output(&args.run, &ctx, &summary, &target, || {
        format!(
            "{}, {}, {}",
            show::counted(summary.parts.len() as u64, "part"),
            show::counted(summary.objects, "object"),
            show::bytes(summary.bytes)
        )
    })
}
