use super::args::names::Implied;
use super::args::{
    FormatKind, FormatSpec, KindArgs, RunArgs, Stdout, kind_of_name, names_changes, text_target,
};
use super::augmented_diff::DiffFormArg;
use super::conventions::{Conventions, parse_with};
use super::session::Session;
use super::{CommandAnswer, augmented_diff, show, wrong_files};
use crate::Context;
use crate::commands::diff::{self, Counts, Deletions, Equality, Format, Summary, page};
use crate::commands::{self, HeaderOptions, InheritedFields, cat};
use crate::engine::OutputOptions;
use crate::file::WriteOptions;
use crate::formats::{TextFormat, TextOptions, WayLocations};
use crate::io::{OutputTarget, ScratchDirectory};
use crate::osm::KindSet;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Show what differs between two files, or write it as a change file
///
/// Prints a line for each object, which begins with - (only in OLD), + (only in NEW), * (different) or a space (equal).
/// Locations, tags, nodes and members are compared, and with --metadata also the metadata; a change file contains all
/// differences. The locations that ways store are compared if neither file has the node. Exit status 1 if the files
/// differ, but 0 for a change file or a page, unless --exit-code is given. A change file gets the replication sequence
/// number, timestamp and URL of NEW, which apply-changes copies to its output.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg diff -c old.osm.pbf new.osm.pbf
  pbfhogg diff -c -v --metadata old.osm.pbf new.osm.pbf
  pbfhogg diff -q old.osm.pbf new.osm.pbf && echo the same
  pbfhogg diff --format osc old.osm.pbf new.osm.pbf -o changes.osc.gz
  pbfhogg diff -f adiff old.osm.pbf new.osm.pbf -o changes.adiff
  pbfhogg diff --html changes.html old.osm.pbf new.osm.pbf")]
pub struct Args {
    /// The old file
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The new file
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Output format: text (or compact), opl, debug, osc or osc.pbf for a change file, or adiff for an augmented diff
    /// [default: by the name of the output]
    ///
    /// The change file turns OLD into NEW; the command derive-changes writes the same. The augmented diff has each
    /// object before and after, with its geometry, and the ways and relations whose nodes or members differ; see
    /// augmented-diff.
    #[arg(
        short = 'f',
        long,
        visible_alias = "output-format",
        value_name = "FORMAT",
        value_parser = parse_with(DiffFormat::parse)
    )]
    format: Option<DiffFormat>,
    /// Output file, compressed if its name ends in .gz, .bz2 or .zst; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Replace the output file if it exists
    #[arg(short = 'O', long)]
    overwrite: bool,
    /// Write an HTML page to FILE: where objects changed, when, by whom, and which keys
    ///
    /// The differences themselves are then written only if -o names a file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Leave out objects that are the same in both files
    #[arg(short = 'c', long)]
    suppress_common: bool,
    /// Print to standard error how many objects are the same, different, or in only one of the files
    #[arg(short = 's', long)]
    summary: bool,
    /// Print the counts for all objects in one line: Summary: left=N right=N same=N different=N
    #[arg(long, hide = true)]
    osmium_summary: bool,
    /// Also compare version, timestamp, changeset and user, if both files have them
    #[arg(long)]
    metadata: bool,
    /// With --metadata: ignore changesets
    #[arg(long, alias = "ignore-attrs-changeset")]
    ignore_changeset: bool,
    /// With --metadata: ignore user ids
    #[arg(long, alias = "ignore-attrs-uid")]
    ignore_uid: bool,
    /// With --metadata: ignore user names
    #[arg(long, alias = "ignore-attrs-user")]
    ignore_user: bool,
    /// Read all blobs, even those whose hashes are equal
    #[arg(long)]
    verify: bool,
    /// Exit status 1 if the files differ, even if a change file or a page is written
    #[arg(long)]
    exit_code: bool,
    /// In a change file: give deleted objects the next version
    #[arg(long)]
    increment_version: bool,
    /// In a change file: give deleted objects the time of this run as their timestamp
    #[arg(long)]
    update_timestamp: bool,
    /// In a change file: keep the tags, nodes, members and metadata of deleted objects
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

pub fn run(session: &Session, args: &Args, derive_changes: bool) -> Result<CommandAnswer> {
    let ctx = args.run.context(session);
    let conventions = session.conventions;
    if let Some(output) = other_format(session, args, derive_changes)? {
        let derived = derive_in(session, args, output, &ctx);
        return derived.map_err(|error| derive_error(session, args, error));
    }
    if is_augmented(args, derive_changes) {
        return augmented(session, args, &ctx);
    }
    let format = format(session, args, derive_changes)?;
    let is_osc = matches!(format, Format::Osc(_));
    let to_stdout = args.output == Path::new("-");
    // With --json, --html or --quiet, the differences are not written to standard output, which gets only counts or
    // nothing. However, --quiet does not suppress a change file.
    let silent = to_stdout
        && (args.run.json.is_some() || args.html.is_some() || (args.run.quiet && !is_osc));
    let target = (!silent).then(|| text_target(session, &args.output, args.overwrite));
    let is_strict = conventions.diffs_in_pairs && !derive_changes;
    let options = diff::Options {
        old: args.old.clone(),
        new: args.new.clone(),
        kinds: args.kinds.set(),
        equality: Equality {
            tag_order: is_strict,
            metadata: args.metadata || is_strict,
            ignore_changeset: args.ignore_changeset,
            ignore_uid: args.ignore_uid,
            ignore_user: args.ignore_user,
            way_locations: is_strict,
        },
        by_version: is_strict,
        verify: args.verify,
        output: target.transpose()?.map(|target| (format, target)),
    };
    let summary = match &args.html {
        Some(path) => write_page(&options, text_target(session, path, args.overwrite)?, &ctx)?,
        None => {
            let summary = diff::run(&options, &ctx);
            summary.map_err(|error| {
                if is_osc {
                    derive_error(session, args, error.into())
                } else {
                    error.into()
                }
            })?
        }
    };
    warn(&summary, is_osc, &ctx);
    print_summary(session, args, &summary);
    let stdout = Stdout::free_if(silent || !to_stdout);
    session.report(&args.run, &ctx, &summary, stdout, || {
        let total = summary.total();
        let written = args.html.as_ref().unwrap_or(&args.output);
        format!("{}: {}\n", written.display(), counts(&total))
    })?;
    let is_derived = (is_osc || args.html.is_some()) && !args.exit_code;
    Ok(CommandAnswer::yes_if(
        is_derived || summary.total().is_same(),
    ))
}

/// Writes a page. It shows objects one by one if there are not too many differences.
pub fn write_page(
    options: &diff::Options,
    target: OutputTarget,
    ctx: &Context,
) -> crate::Result<Summary> {
    /// The maximum number of differing objects with which the page shows objects one by one.
    const MOST_DIFFERENCES: u64 = 200_000;
    /// The maximum number of objects of each kind that the page shows.
    const LISTED: usize = 500;
    let list = |summary: &Summary| {
        let total = summary.total();
        let differences = total.left + total.right + total.different;
        if options.kinds != KindSet::ALL || !(1..=MOST_DIFFERENCES).contains(&differences) {
            return Ok(None);
        }
        let listed =
            commands::augmented_diff::list_between(&options.old, &options.new, LISTED, ctx);
        match listed {
            Ok(list) => Ok(Some(page::Objects {
                features: list
                    .features
                    .iter()
                    .filter_map(|feature| serde_json::from_str(feature).ok())
                    .collect(),
                total: list.total,
            })),
            Err(error) if error.kind() == crate::ErrorKind::Cancelled => Err(error),
            Err(error) => {
                ctx.warn(format!("single objects are not on the page: {error}"));
                Ok(None)
            }
        }
    };
    page::write(options, list, target, ctx)
}

/// Whether the output is an augmented diff.
fn is_augmented(args: &Args, derive_changes: bool) -> bool {
    match &args.format {
        Some(format) => matches!(format, DiffFormat::Augmented),
        None => !derive_changes && augmented_diff::is_named(&args.output),
    }
}

/// Writes an augmented diff.
fn augmented(session: &Session, args: &Args, ctx: &Context) -> Result<CommandAnswer> {
    if args.html.is_some() || args.kinds.set() != KindSet::ALL {
        bail!("an augmented diff has all kinds of objects, and no page: leave out --html and -t");
    }
    let output = augmented_diff::one_file(
        session,
        &args.output,
        args.overwrite,
        Some(DiffFormArg::Xml),
    )?;
    let summary = commands::augmented_diff::between(&args.old, &args.new, &output, ctx)?;
    let stdout = Stdout::free_if(args.output != Path::new("-"));
    session.report(&args.run, ctx, &summary, stdout, || {
        augmented_diff::report(&summary)
    })?;
    Ok(CommandAnswer::yes_if(
        !args.exit_code || summary.actions() == 0,
    ))
}

/// Prints the counts to standard error if an option asks for them.
fn print_summary(session: &Session, args: &Args, summary: &Summary) {
    if args.summary {
        session.complain(&text(summary));
    } else if args.osmium_summary {
        session.complain(&format!("Summary: {}\n", counts(&summary.total())));
    }
}

fn derive_error(session: &Session, args: &Args, error: anyhow::Error) -> anyhow::Error {
    wrong_files::of_derive(session, error, &args.old, &args.new, &args.output)
}

/// An output format for the differences.
#[derive(Debug, Clone)]
pub enum DiffFormat {
    /// One line for each object.
    Lines,
    /// A file format, such as OPL, in which the objects are written.
    Objects(FormatSpec),
    /// An augmented diff.
    Augmented,
}

impl DiffFormat {
    /// Parses the name of a format.
    pub fn parse(conventions: &Conventions, text: &str) -> Result<Self, String> {
        match text {
            "text" | "compact" => Ok(Self::Lines),
            "adiff" => Ok(Self::Augmented),
            _ => FormatSpec::parse(conventions, text)
                .map(Self::Objects)
                .map_err(|_| "expected text, opl, debug, osc, osc.pbf or adiff".to_owned()),
        }
    }
}

/// Returns the output if it is a change file in PBF or, for `derive-changes`, if its format is not OsmChange; `None` for
/// other outputs.
fn other_format(
    session: &Session,
    args: &Args,
    derive_changes: bool,
) -> Result<Option<OutputOptions>> {
    let changes = change_pbf(session, args)?;
    if changes.is_some() || !derive_changes {
        return Ok(changes);
    }
    let Some(DiffFormat::Objects(spec)) = &args.format else {
        return Ok(None);
    };
    let kind = spec.kind;
    if kind.is_none_or(FormatKind::is_change_file) {
        return Ok(None);
    }
    let format = kind.map_or(Ok(crate::Format::Pbf), |kind| spec.format(session, kind))?;
    let header = HeaderOptions {
        generator: args.generator.clone(),
        inherited: InheritedFields::Needed,
        ..HeaderOptions::default()
    };
    let output = OutputOptions::new(text_target(session, &args.output, args.overwrite)?);
    Ok(Some(output.format(format).header(header)))
}

/// Returns the output of a change file in PBF: `None` if neither the format nor the name is `osc.pbf`, and under the
/// conventions of osmium.
fn change_pbf(session: &Session, args: &Args) -> Result<Option<OutputOptions>> {
    let spec = match &args.format {
        Some(DiffFormat::Objects(spec)) => spec.clone(),
        Some(DiffFormat::Lines | DiffFormat::Augmented) => return Ok(None),
        None => FormatSpec::default(),
    };
    let kind = match &args.format {
        Some(_) => spec.kind,
        None => kind_of_name(&args.output),
    };
    let Some(kind) = kind.filter(|kind| kind.is_change_pbf()) else {
        return Ok(None);
    };
    if session.conventions.reports_like_osmium {
        return Ok(None);
    }
    if args.html.is_some() {
        bail!("a page and a change file are two outputs: leave out --html or -f");
    }
    let header = HeaderOptions {
        generator: args.generator.clone(),
        ..HeaderOptions::default()
    };
    let mut write = WriteOptions::default();
    spec.apply_to(session, kind, &mut write)?;
    let output = OutputOptions::new(text_target(session, &args.output, args.overwrite)?);
    Ok(Some(output.header(header).write(write)))
}

/// Writes the changes in a format other than OsmChange, by deriving a temporary change file and converting it.
fn derive_in(
    session: &Session,
    args: &Args,
    output: OutputOptions,
    ctx: &Context,
) -> Result<CommandAnswer> {
    let is_change_file = change_pbf(session, args)?.is_some();
    if !is_change_file {
        session.complain(&format!(
            "{}: warning: the output is not a change file: -f osc makes one\n",
            session.conventions.name
        ));
    }
    let directory = ScratchDirectory::create(None)?;
    let changes = directory.path().join("changes.osc");
    let target = OutputTarget::File {
        path: changes.clone(),
        overwrite: false,
    };
    let mut options = diff::Options::new(&args.old, &args.new);
    options.kinds = args.kinds.set();
    // The temporary file has all attributes: the output leaves out what its format requires.
    let mut text = TextOptions::new(TextFormat::OsmChange);
    let asks_for_locations = matches!(
        &args.format,
        Some(DiffFormat::Objects(spec)) if spec.has("locations_on_ways")
    );
    if session.conventions.is_plain_by_default && !asks_for_locations {
        text.way_locations = WayLocations::Never;
    }
    options.output = Some((Format::Osc(deletions(session, args, text)?), target));
    let differences = diff::run(&options, ctx)?;
    warn(&differences, is_change_file, ctx);
    if !is_change_file {
        warn_of_locations(&differences, ctx);
    }
    let summary = cat::run(&cat::Options::new(vec![changes], output.clone()), ctx)?;
    session.report(&args.run, ctx, &summary, &output.target, || {
        format!("{}\n", show::written(&summary.written))
    })?;
    Ok(CommandAnswer::yes_if(
        !args.exit_code || differences.total().is_same(),
    ))
}

/// The names of change files.
const CHANGES: Implied<'_> = Implied {
    what: "a change file is OsmChange",
    endings: &["osc", "xml"],
    may_be_compressed: true,
    advice: "name it .osc, .osc.gz or .osc.pbf, or say the format with -f",
};
/// The names of the differences in lines.
const LINES: Implied<'_> = Implied {
    what: "differences are lines of text",
    endings: &["txt"],
    may_be_compressed: true,
    advice: "-f opl, debug, osc or adiff sets another format for any name",
};

fn format(session: &Session, args: &Args, derive_changes: bool) -> Result<Format> {
    let common = !args.suppress_common;
    let spec = match &args.format {
        Some(DiffFormat::Objects(spec)) => Some(spec),
        Some(DiffFormat::Lines | DiffFormat::Augmented) | None => None,
    };
    if let Some(spec) = spec
        && let Some(kind) = spec.kind
        && !kind.is_change_file()
    {
        return match spec.format(session, kind)? {
            crate::Format::Text(text)
                if matches!(text.format, TextFormat::Opl | TextFormat::Debug) =>
            {
                Ok(Format::Objects { text, common })
            }
            _ => bail!("diff writes text, opl, debug, osc or osc.pbf"),
        };
    }
    let is_osc = match &args.format {
        Some(format) => matches!(format, DiffFormat::Objects(_)),
        None => derive_changes || names_changes(&args.output),
    };
    let to_stdout = args.output == Path::new("-");
    if derive_changes && to_stdout && spec.is_none() && session.conventions.needs_format {
        bail!("give the output with -o, or its format with -f");
    }
    if is_osc && !derive_changes && session.conventions.diffs_in_pairs {
        bail!("diff shows differences: derive-changes makes a change file");
    }
    if to_stdout && spec.is_some_and(FormatSpec::is_compressed) {
        bail!("standard output is not compressed: use -f osc, and pipe it through a compressor");
    }
    if args.format.is_none() {
        let implied = if is_osc { CHANGES } else { LINES };
        implied.check_name(session, &args.output)?;
    }
    if is_osc {
        Ok(Format::Osc(deletions(
            session,
            args,
            change_text(session, args)?,
        )?))
    } else {
        Ok(Format::Text {
            common,
            details: args.run.verbose,
        })
    }
}

/// Returns the attributes that objects have in a change file.
fn change_text(session: &Session, args: &Args) -> Result<TextOptions> {
    let changes = FormatSpec::changes();
    let spec = match &args.format {
        Some(DiffFormat::Objects(spec)) => spec,
        Some(DiffFormat::Lines | DiffFormat::Augmented) | None => &changes,
    };
    let format = spec
        .kind
        .or(changes.kind)
        .map(|kind| spec.format(session, kind));
    Ok(match format.transpose()? {
        Some(crate::Format::Text(text)) => text,
        Some(crate::Format::Pbf) | None => TextOptions::new(TextFormat::OsmChange),
    })
}

/// Returns the options for change files, most of which are about deleted objects. `text` selects the attributes of
/// objects.
fn deletions(session: &Session, args: &Args, text: TextOptions) -> Result<Deletions> {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH);
    let timestamp = if args.update_timestamp {
        Some(now()?.as_secs() as i64)
    } else {
        None
    };
    Ok(Deletions {
        increment_version: args.increment_version,
        timestamp,
        keep_details: args.keep_details,
        creates_version_1: session.conventions.creates_version_1,
        generator: args.generator.clone(),
        text,
    })
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
    if is_osc {
        warn_of_locations(summary, ctx);
    }
}

/// Warns about ways that a change file has only for their locations, and about locations that it cannot remove.
fn warn_of_locations(summary: &Summary, ctx: &crate::Context) {
    if summary.relocated > 0 {
        ctx.warn(format!(
            "the change file has {} only for the locations of nodes that the new file does not have: \
             `apply-changes --locations-on-ways` takes them",
            show::counted(summary.relocated, "way")
        ));
    }
    if summary.locations_lost > 0 {
        ctx.warn(format!(
            "{} of the new file without a location that the old file has, of a node that neither file has: \
             applying the changes leaves the location",
            show::counted(summary.locations_lost, "way")
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
