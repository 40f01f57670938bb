use super::args::{OutputArgs, RunArgs};
use super::session::Session;
use super::{CommandAnswer, show};
use crate::commands::sort::{self, Dedupe};
use crate::{Context, Disorder};
use anyhow::Result;
use std::path::PathBuf;

/// Sort objects by kind and id
///
/// Nodes come first, then ways, then relations. Within a kind, id 0 comes first, then negative ids by absolute value,
/// then positive ids; the versions of an object are in ascending order. Blobs that are already in order are copied; the
/// others are merged in bounded memory. Several inputs are sorted into one output, which keeps duplicates.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg sort edited.osm.pbf -o sorted.osm.pbf
  pbfhogg sort tile-*.osm.pbf -o region.osm.pbf
  pbfhogg sort file.osm.pbf -O -o file.osm.pbf")]
pub struct Args {
    /// Input files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    inputs: Vec<PathBuf>,
    /// No effect: every file is sorted in bounded memory
    #[arg(short, long, hide = true, value_name = "STRATEGY")]
    strategy: Option<SortStrategy>,
    /// No effect, because all versions in history files are always kept
    #[arg(short = 'H', long, hide = true)]
    with_history: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    run: RunArgs,
}

/// The names of osmium's strategies, which scripts may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SortStrategy {
    Simple,
    Multipass,
}

/// Sorts the inputs into one output. If `merge`, leaves out duplicates as [`Conventions::merged_versions`] requires.
pub fn run(session: &Session, args: &Args, merge: bool) -> Result<CommandAnswer> {
    let mut ctx = args.run.context(session);
    if merge && session.conventions.tells_disorder {
        ctx.disorder = Disorder::Tell {
            versions: !args.with_history,
        };
    }
    let options = sort::Options {
        inputs: args.inputs.clone(),
        output: args.output.options(session)?,
        dedupe: if merge {
            session.conventions.merged_versions
        } else {
            Dedupe::KeepAll
        },
        changesets: session.conventions.sorts_changesets || (merge && args.inputs.len() == 1),
        accepts_mixture: session.conventions.merges_data,
        keeps_locations: session.conventions.keeps_way_locations,
    };
    run_with(session, &options, &args.run, &ctx)
}

/// Sorts the inputs and prints a report.
pub fn run_with(
    session: &Session,
    options: &sort::Options,
    run: &RunArgs,
    ctx: &Context,
) -> Result<CommandAnswer> {
    let summary = sort::run(options, ctx)?;
    session.report_output(run, ctx, &summary, &options.output.target, || {
        format!(
            "{} ({} copied, {} merged)",
            show::written(&summary.written),
            show::number(summary.blobs_copied),
            show::number(summary.blobs_merged),
        )
    })
}
