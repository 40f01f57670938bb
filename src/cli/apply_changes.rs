use super::args::{InputKind, RunArgs, WriteArgs, is_history_file_name};
use super::augmented_diff::EffectArgs;
use super::conventions::parse_with;
use super::session::Session;
use super::{CommandAnswer, show, wrong_files};
use crate::commands::apply_changes::{self, HeaderBox, SameVersion, Summary, UntaggedNodes};
use crate::commands::augmented_diff::{AugmentedDiffs, is_replaceable};
use crate::file::PbfFile;
use crate::formats::{SameTime, TextFormat, Visibility, read_changes};
use crate::io::OutputTarget;
use crate::pbf::feature;
use crate::{Context, Disorder, Error, InputFormat};
use anyhow::{Result, bail};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Apply change files to a sorted file
///
/// Change files are OsmChange, o5c, OPL or PBF, plain or compressed. The highest version of an object in the base and
/// all changes wins, so it does no harm to apply a day twice, or an older day later. Blobs without a changed object are
/// copied unchanged.
///
/// The header gets the replication sequence number and timestamp of the change files, or of the state files next to
/// them, such as 123.state.txt next to 123.osc.gz; --output-header overrides these.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg apply-changes planet.osm.pbf day.osc.gz -o new.osm.pbf
  pbfhogg apply-changes planet.osm.pbf 4711.osc.gz 4712.osc.gz -o new.osm.pbf
  pbfhogg apply-changes --in-place berlin.osm.pbf day.osc.gz
  pbfhogg apply-changes --locations-on-ways located.osm.pbf day.osc.gz -o new.osm.pbf")]
pub struct Args {
    /// The base: a sorted PBF file; - is standard input
    #[arg(value_name = "BASE")]
    base: PathBuf,
    /// Change files, applied in this order
    #[arg(required = true, value_name = "CHANGE")]
    changes: Vec<PathBuf>,
    /// Output file; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the base with the result once it is complete
    #[arg(long, conflicts_with = "output")]
    in_place: bool,
    /// Update the coordinates of nodes in ways, for a base whose ways have them
    ///
    /// Ways move with their nodes. If the base lacks the nodes that only ways need, so does the result, except for
    /// recently changed ones.
    #[arg(long)]
    locations_on_ways: bool,
    /// With --locations-on-ways: keep new nodes without tags even if the base has none
    #[arg(short = 'n', long, requires = "locations_on_ways")]
    keep_untagged_nodes: bool,
    /// With --locations-on-ways: days for which recently changed nodes stay [default: 30]
    ///
    /// A base without the nodes that only ways need gets changed ones for a while, so that ways of later change files
    /// find their locations. The days are counted from the timestamp of a node to the day of the replication timestamp
    /// in the header. 0 keeps no node.
    #[arg(long, value_name = "DAYS", requires = "locations_on_ways")]
    keep_nodes: Option<u32>,
    /// Also write what the changes do, with each object before and after them, as augmented-diff does
    ///
    /// The name of FILE determines the format: .adiff, .geojson, .geojsonseq or .parquet. FILE is complete before the
    /// output gets its name.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["with_history", "redact"])]
    augmented_diff: Option<PathBuf>,
    #[command(flatten)]
    effects: EffectArgs,
    /// Treat the base as a history file, and add the versions in the change files
    ///
    /// This is the default if the base is a history file, and the name of the output or -f is that of one, such as
    /// .osh.pbf.
    #[arg(short = 'H', long, conflicts_with_all = ["locations_on_ways", "in_place", "expire_tiles"])]
    with_history: bool,
    /// Patch a history file: a version in a change file replaces the same version in the base
    #[arg(long, conflicts_with_all = ["locations_on_ways", "in_place", "expire_tiles"])]
    redact: bool,
    /// Format of the change files if their content does not show it: osc, o5c, opl or pbf
    #[arg(long, value_name = "FORMAT", value_parser = parse_with(InputKind::parse), hide_short_help = true)]
    change_file_format: Option<InputKind>,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let ctx = args.context(session)?;
    let output = if args.in_place {
        args.write.in_place_output(session, &args.base)?
    } else {
        args.write.output(session, args.output.as_deref())?
    };
    let output = if args.locations_on_ways {
        output.with_way_locations()
    } else {
        output
    };
    let is_output_history =
        args.output.as_deref().is_some_and(is_history_file_name) || args.write.is_history_format();
    let is_named_history = args.is_base_named_as_history() && is_output_history;
    let is_one_named = args.is_base_named_as_history() || args.redact;
    if session.conventions.needs_history_names
        && is_one_named
        && !args.with_history
        && !is_named_history
    {
        bail!("base and output must both be history files by their names, or give --with-history");
    }
    let may_replace = |path: &Path| args.write.overwrite || args.in_place && is_replaceable(path);
    let actions = args.augmented_diff.as_ref();
    let actions = actions.map(|path| args.effects.action_output(session, path, may_replace(path)));
    let tiles = args.effects.tile_output(session, may_replace)?;
    let outputs = actions.transpose()?.into_iter().chain(tiles);
    let options = apply_changes::Options {
        base: args.base.clone(),
        changes: args.changes.clone(),
        output,
        locations_on_ways: args.untagged_nodes(),
        locates_base: session.conventions.locates_base,
        keep_days: args.keep_nodes.unwrap_or(apply_changes::KEEP_DAYS),
        keeps_locations: false,
        base_time: None,
        header: None,
        augmented_diffs: AugmentedDiffs::default().outputs(outputs.collect()),
    };
    let explain = |error: Error| {
        let output = args.output.as_deref();
        wrong_files::explain_apply_error(session, error.into(), &args.base, &args.changes, output)
    };
    let base = apply_changes::open_base(&options, &ctx).map_err(explain)?;
    let is_history = args.with_history
        || args.redact
        || is_named_history
        || is_output_history && has_history(session, &base);
    if is_history && !args.in_place && !args.locations_on_ways {
        return add_to_history(session, args, &options, base, &ctx);
    }
    ctx.expect_phases(options.phases());
    let read = |versions| read_changes(&options.changes, SameTime::LastRead, versions, &ctx);
    let summary = apply_changes::apply(&options, base, read, None, &ctx).map_err(explain)?;
    session.report(&args.run, &ctx, &summary, &options.output.target, || {
        report_text(&options.output.target, &summary)
    })
}

impl Args {
    /// Whether -F or, without -F, the file name of the base says that the base is a history file.
    fn is_base_named_as_history(&self) -> bool {
        let named = || is_history_file_name(&self.base);
        self.run
            .input_format
            .map_or_else(named, InputKind::has_versions)
    }

    /// Returns how untagged nodes are treated; `None` without `--locations-on-ways`.
    fn untagged_nodes(&self) -> Option<UntaggedNodes> {
        self.locations_on_ways
            .then_some(if self.keep_untagged_nodes {
                UntaggedNodes::Keep
            } else {
                UntaggedNodes::AsBase
            })
    }

    /// Creates the context. `-F` gives the format of the base, and `--change-file-format` that of the change files.
    fn context(&self, session: &Session) -> Result<Context> {
        if let Some(kind) = self.change_file_format {
            kind.check_changes(session, "--change-file-format")?;
        }
        if let Some(kind) = self.run.input_format {
            kind.check_data(
                session,
                "--change-file-format gives the format of the change files",
            )?;
        }
        let mut ctx = self.run.context(session);
        let format = self.change_file_format;
        ctx.change_format = format.map_or(InputFormat::Auto, |kind| kind.format);
        let is_stated = format.is_some_and(|kind| kind.is_change);
        ctx.data_as_changes = is_stated || session.conventions.merges_data;
        Ok(ctx)
    }
}

/// Whether the header of a base says that the base is a history file. Returns `false` if the conventions require that
/// file names show this instead.
fn has_history(session: &Session, base: &PbfFile) -> bool {
    !session.conventions.needs_history_names
        && base.header.has(feature::HISTORY)
        && !base.header.text.is_change
}

fn add_to_history(
    session: &Session,
    args: &Args,
    options: &apply_changes::Options,
    base: PbfFile,
    ctx: &Context,
) -> Result<CommandAnswer> {
    let same_version = if args.redact || session.conventions.redacts_history {
        SameVersion::Redact
    } else {
        SameVersion::KeepBase
    };
    let mut options = options.clone();
    if session.conventions.is_plain_by_default
        && let crate::engine::Format::Text(text) = &mut options.output.format
        && text.format == TextFormat::Osm
    {
        // A history file has to state for each version whether the version is a deletion, so every object gets the
        // attribute `visible`.
        text.visibility = Some(Visibility::All);
    }
    let mut ctx = ctx.clone();
    // The objects in the inputs need not be in order, because the command sorts them.
    ctx.disorder = Disorder::Accept;
    let summary = apply_changes::add_to_history(&options, base, same_version, &ctx)?;
    session.report_output(&args.run, &ctx, &summary, &options.output.target, || {
        show::written(&summary.written)
    })
}

fn report_text(output: &OutputTarget, summary: &Summary) -> String {
    let mut out = format!(
        "{}: {}\n",
        output.path().display(),
        show::changes([summary.created, summary.modified, summary.deleted]),
    );
    if summary.outdated + summary.absent > 0 {
        let _ = writeln!(
            out,
            "  without effect: {} older than the base, {} of objects that it does not have",
            show::number(summary.outdated),
            show::counted(summary.absent, "deletion"),
        );
    }
    let _ = writeln!(
        out,
        "  {}: {} copied, {} rewritten",
        show::written(&summary.written),
        show::number(summary.blobs_copied),
        show::number(summary.blobs_rewritten),
    );
    if let Some(locations) = &summary.locations {
        let _ = writeln!(
            out,
            "  locations: {} moved with their nodes, {} left out that only ways need, {} recent ones kept",
            show::counted(locations.ways_moved, "way"),
            show::counted(locations.nodes_left_out + locations.nodes_removed, "node"),
            show::number(locations.nodes_kept),
        );
    }
    if let Some(augmented) = &summary.augmented_diff {
        let _ = writeln!(
            out,
            "  augmented diff: {}",
            show::counted(augmented.actions(), "action")
        );
    }
    if let Some(count) = summary.expired_tiles.as_ref().and_then(|of| of.tiles) {
        let _ = writeln!(out, "  tiles to draw again: {}", show::number(count));
    }
    match summary.header_box {
        HeaderBox::Kept => {}
        HeaderBox::Widened => out += "  the header's box was widened to hold the new nodes\n",
        HeaderBox::Dropped => {
            out += "  the header's box was taken out: new nodes lie outside, and it crosses the 180th meridian\n";
        }
    }
    out += &replication_line(summary);
    out
}

/// Returns a line with the replication state of the output. Returns an empty string if the output has no such state.
fn replication_line(summary: &Summary) -> String {
    let sequence = summary.replication_sequence;
    let sequence = sequence.map(|number| format!(" sequence {number}"));
    let time = summary.replication_timestamp.as_ref();
    let time = time.map(|time| format!(" up to {time}"));
    let state: Vec<String> = [sequence, time].into_iter().flatten().collect();
    match state.as_slice() {
        [] => String::new(),
        state => format!("  replication:{}\n", state.join(",")),
    }
}
