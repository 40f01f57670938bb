use super::args::{KindArgs, RunArgs, names_changes, text_target};
use super::{Answer, complain, show};
use crate::cli::args::Stdout;
use crate::commands::diff::{self, Counts, Deletions, Equality, Format, Summary};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Show what differs between two files, or write it as a change file
///
/// Prints a line for each object: - only in OLD, + only in NEW, * in both and different, a space if equal. Locations,
/// tags, nodes and members are compared, and the metadata with --metadata; a change file contains all differences. Exit
/// status 1 if the files differ, but 0 for a change file, unless --exit-code is given. A change file gets the
/// replication sequence, time and URL of NEW, which apply-changes copies.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg diff -c old.osm.pbf new.osm.pbf
  pbfhogg diff -c -v --metadata old.osm.pbf new.osm.pbf
  pbfhogg diff -q old.osm.pbf new.osm.pbf && echo the same
  pbfhogg diff --format osc old.osm.pbf new.osm.pbf -o changes.osc.gz")]
pub struct Args {
    /// The old file
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The new file
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Format of the output: text, or osc for a change file that turns OLD into NEW (also as the command
    /// derive-changes); by default the name of the output decides
    #[arg(
        short = 'f',
        long,
        visible_alias = "output-format",
        value_name = "FORMAT",
        value_enum,
        hide_possible_values = true
    )]
    format: Option<FormatName>,
    /// Output file, compressed where its name ends in .gz, .bz2 or .zst; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Replace the output file if it exists
    #[arg(short = 'O', long)]
    overwrite: bool,
    /// Leave out objects that are the same in both files
    #[arg(short = 'c', long)]
    suppress_common: bool,
    /// Print how many objects are the same, different, or in one file alone to standard error
    #[arg(short = 's', long)]
    summary: bool,
    /// Compare version, timestamp, changeset and user, too
    #[arg(long)]
    metadata: bool,
    /// With --metadata: changesets may differ
    #[arg(long)]
    ignore_changeset: bool,
    /// With --metadata: numbers of users may differ
    #[arg(long)]
    ignore_uid: bool,
    /// With --metadata: names of users may differ
    #[arg(long)]
    ignore_user: bool,
    /// Read all blobs, also those whose hashes are equal
    #[arg(long)]
    verify: bool,
    /// With a change file, too: exit status 1 where the files differ
    #[arg(long)]
    exit_code: bool,
    /// In a change file: deleted objects get the next version
    #[arg(long)]
    increment_version: bool,
    /// In a change file: deleted objects get the time of this run
    #[arg(long)]
    update_timestamp: bool,
    /// In a change file: deleted objects keep their tags, nodes, members and metadata
    #[arg(long)]
    keep_details: bool,
    /// In a change file: name of the writing program
    #[arg(long, value_name = "TEXT")]
    generator: Option<String>,
    #[command(flatten)]
    kinds: KindArgs,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(args: &Args, derive_changes: bool) -> Result<Answer> {
    let ctx = args.run.context();
    let format = format(args, derive_changes)?;
    let is_osc = matches!(format, Format::Osc(_));
    let to_stdout = args.output == Path::new("-");
    // Only counts are reported, so the differences are not written.
    let silent = to_stdout && (args.run.json || (args.run.quiet && !is_osc));
    let target = text_target(&args.output, args.overwrite);
    let options = diff::Options {
        old: args.old.clone(),
        new: args.new.clone(),
        kinds: args.kinds.set(),
        equality: Equality {
            metadata: args.metadata,
            ignore_changeset: args.ignore_changeset,
            ignore_uid: args.ignore_uid,
            ignore_user: args.ignore_user,
        },
        verify: args.verify,
        output: (!silent).then_some((format, target)),
    };
    let summary = diff::run(&options, &ctx)?;
    warn(&summary, is_osc, &ctx);
    if args.summary {
        complain(&text(&summary));
    }
    let stdout = Stdout::free_if(silent || !to_stdout);
    args.run.report(&ctx, &summary, stdout, || {
        let total = summary.total();
        format!("{}: {}\n", args.output.display(), counts(&total))
    })?;
    let is_derived = is_osc && !args.exit_code;
    Ok(Answer::yes_if(is_derived || summary.total().is_same()))
}

/// The name of an output format. The names with a compression exist because osmium has them; the compression depends
/// on the name of the output alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FormatName {
    #[value(alias = "compact")]
    Text,
    Osc,
    #[value(name = "osc.gz")]
    OscGz,
    #[value(name = "osc.bz2")]
    OscBz2,
    #[value(name = "osc.zst")]
    OscZst,
}

fn format(args: &Args, derive_changes: bool) -> Result<Format> {
    let is_osc = match args.format {
        Some(format) => format != FormatName::Text,
        None => derive_changes || names_changes(&args.output),
    };
    let is_plain = matches!(args.format, None | Some(FormatName::Text | FormatName::Osc));
    if args.output == Path::new("-") && !is_plain {
        bail!("standard output is not compressed: use -f osc, and pipe it through a compressor");
    }
    if !is_osc {
        return Ok(Format::Text {
            common: !args.suppress_common,
            details: args.run.verbose,
        });
    }
    let now = || SystemTime::now().duration_since(UNIX_EPOCH);
    let timestamp = match args.update_timestamp {
        true => Some(now()?.as_secs() as i64),
        false => None,
    };
    Ok(Format::Osc(Deletions {
        increment_version: args.increment_version,
        timestamp,
        keep_details: args.keep_details,
        generator: args.generator.clone(),
    }))
}

fn warn(summary: &Summary, is_osc: bool, ctx: &crate::Context) {
    if is_osc && summary.going_back > 0 {
        ctx.warn(format!(
            "{} have a lower version or an older time in the new file: applying the changes leaves these objects unchanged",
            show::counted(summary.going_back, "object")
        ));
    }
    if is_osc && summary.inexact > 0 {
        ctx.warn(format!(
            "{} have coordinates with more than seven decimals: the change file rounds them",
            show::counted(summary.inexact, "node")
        ));
    }
}

fn counts(counts: &Counts) -> String {
    format!(
        "left={} right={} same={} different={}",
        counts.left, counts.right, counts.same, counts.different
    )
}

fn text(summary: &Summary) -> String {
    let lines = [
        ("Summary", &summary.total()),
        ("  nodes", &summary.nodes),
        ("  ways", &summary.ways),
        ("  relations", &summary.relations),
    ];
    let line = |(name, found): (&str, &Counts)| format!("{name}: {}\n", counts(found));
    lines.map(line).concat()
}
