use super::args::{OutputArgs, RunArgs, names};
use super::session::Session;
use super::{CommandAnswer, show};
use crate::commands::synth;
use crate::io::OutputTarget;
use anyhow::Result;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Generate a realistic data set, and change files for it
///
/// The data has towns with streets, houses, addresses, shops, boundaries and bus lines, with tags and metadata like
/// those of real data. The same seed gives the same bytes. Each change file (001.osc.gz and so on, with its state file)
/// has the edits of one day; --day N generates the data after the first N days.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg synth -o world.osm.pbf
  pbfhogg synth --objects 1000000 --changes 3 --changes-dir days -o world.osm.pbf
  pbfhogg synth --objects 1000000 --day 3 -o expected.osm.pbf")]
pub struct Args {
    /// Approximate number of objects
    #[arg(
        long,
        alias = "elements",
        value_name = "N",
        default_value_t = 1_000_000
    )]
    objects: u64,
    /// Random seed; the same seed gives the same bytes
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Also write change files for DAYS days
    #[arg(long, value_name = "DAYS", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=i64::from(synth::MAX_DAYS)))]
    changes: u32,
    /// Directory for change files [default: the directory of the output]
    #[arg(long, value_name = "DIR")]
    changes_dir: Option<PathBuf>,
    /// Generate the data after N days of changes
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=i64::from(synth::MAX_DAYS)))]
    day: u32,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let ctx = args.run.context(session);
    let output = args.output.options(session)?;
    if let Some(directory) = &args.changes_dir {
        names::check_new_directory(session, directory, "--changes-dir is a directory")?;
    }
    let directory = args.changes_dir.clone().or_else(|| match &output.target {
        OutputTarget::File { path, .. } => path.parent().map(Path::to_owned),
        _ => None,
    });
    let directory = directory.filter(|path| !path.as_os_str().is_empty());
    let options = synth::Options {
        objects: args.objects,
        seed: args.seed,
        day: args.day,
        output,
        changes: (args.changes > 0)
            .then(|| (args.changes, directory.unwrap_or_else(|| ".".into()))),
    };
    let summary = synth::run(&options, &ctx)?;
    session.report(&args.run, &ctx, &summary, &options.output.target, || {
        let mut out = format!(
            "{}: {} in {}, {}\n",
            options.output.target.path().display(),
            show::objects(summary.written.objects),
            show::counted(summary.towns, "town"),
            show::bytes(summary.written.bytes),
        );
        for day in &summary.days {
            let changes = show::changes([day.created, day.modified, day.deleted]);
            let _ = writeln!(out, "{}: {changes}", day.path.display());
        }
        out
    })
}
