use super::args::{RunArgs, text_target};
use super::{Answer, show};
use crate::commands::augmented_diff::{self, Options, Summary};
use anyhow::Result;
use std::path::PathBuf;

/// Write what changes do to a file: each object before and after them, with its geometry
///
/// The result has an action for each object of the changes, and for each way and relation that they concern although it
/// has no new version: ways of which a node has changed, and relations of which a member has changed or moved. It is
/// XML as other programs for OpenStreetMap read it (.adiff).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg augmented-diff malta.osm.pbf day.osc.gz -o day.adiff
  pbfhogg augmented-diff --direct-only malta.osm.pbf 4711.osc.gz 4712.osc.gz -o two.adiff.gz")]
pub struct Args {
    /// The file before the changes; - is standard input
    #[arg(value_name = "BASE")]
    base: PathBuf,
    /// Change files, applied in this order
    #[arg(required = true, value_name = "CHANGE")]
    changes: Vec<PathBuf>,
    /// Output file, compressed if its name ends in .gz, .bz2 or .zst; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Replace the output file if it exists
    #[arg(short = 'O', long)]
    overwrite: bool,
    /// Leave out ways and relations that have no change of their own
    #[arg(long)]
    direct_only: bool,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(args: &Args) -> Result<Answer> {
    let ctx = args.run.context();
    let output = text_target(&args.output, args.overwrite);
    let options = Options::new(&args.base, args.changes.clone(), output);
    let options = options.direct_only(args.direct_only);
    let summary = augmented_diff::run(&options, &ctx)?;
    args.run
        .report(&ctx, &summary, &options.output, || report(&summary))
}

fn report(summary: &Summary) -> String {
    let mut text = format!(
        "{} created, {} modified, {} deleted, {} concerned by them\n",
        show::number(summary.created),
        show::number(summary.modified),
        show::number(summary.deleted),
        show::counted(summary.indirect, "object"),
    );
    for (count, cause) in [
        (summary.outdated, "outdated: the base has a newer version"),
        (
            summary.absent,
            "deletions of objects that the base does not have",
        ),
        (
            summary.missing,
            "modifications of objects that the base does not have: written as creations",
        ),
        (
            summary.missing_references,
            "references to nodes whose location is not known",
        ),
    ] {
        if count > 0 {
            text += &format!("  {} {cause}\n", show::number(count));
        }
    }
    text
}
