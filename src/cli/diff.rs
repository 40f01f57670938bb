use super::args::names::Implied;
use super::args::{
    FormatKind, FormatSpec, KindArgs, RunArgs, Stdout, is_change_file_name, is_stdout,
    kind_of_name, parse_size, text_target,
};
use super::augmented_diff::DiffFormArg;
use super::conventions::{Conventions, parse_with};
use super::diff_changes::{self, ChangesTarget, ComparedFiles, ScopeArgs, parse_grouping};
use super::diff_report::{
    counts_line, summary_text, warn_of_changed_locations, warn_of_inexact_changes,
};
use super::session::Session;
use super::{CommandAnswer, augmented_diff, show, wrong_files};
use crate::Context;
use crate::commands::augmented_diff::{FilePair, GroupBy, Selection};
use crate::commands::diff::{self, Deletions, Equality, Format, Summary, page};
use crate::commands::{self, cat};
use crate::engine::{HeaderOptions, InheritedFields, OutputOptions};
use crate::file::WriteOptions;
use crate::formats::{TextFormat, TextOptions, WayLocations};
use crate::io::{OutputTarget, ScratchDirectory};
use anyhow::{Result, bail};
use serde_json::value::RawValue;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Show what differs between two files, or write it as a change file
///
/// Prints a line for each object that differs, which begins with - (only in OLD), + (only in NEW) or * (different), and
/// with --all also for each object that is the same, which begins with a space. Locations, tags, nodes and members are
/// compared, and with --metadata also the metadata; a change file contains all differences. The locations that ways
/// store are compared if neither file has the node. Exit status 1 if the files differ, but 0 for a change file, a page,
/// features or --by, unless --exit-code is given. A change file gets the replication sequence number, timestamp and URL
/// of NEW, which apply-changes copies to its output. The author of a deletion is in neither file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg diff old.osm.pbf new.osm.pbf
  pbfhogg diff -v --metadata old.osm.pbf new.osm.pbf
  pbfhogg diff -q old.osm.pbf new.osm.pbf && echo the same
  pbfhogg diff --format osc old.osm.pbf new.osm.pbf -o changes.osc.gz
  pbfhogg diff -f adiff old.osm.pbf new.osm.pbf -o changes.adiff
  pbfhogg diff --html changes.html old.osm.pbf new.osm.pbf
  pbfhogg diff --area Vaduz --by user old.osm.pbf new.osm.pbf
  pbfhogg diff -b 9.5,47.1,9.6,47.2 --filter w/highway old.osm.pbf new.osm.pbf -o streets.geojson")]
pub struct Args {
    /// The old file
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The new file
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Output format: text (or compact), opl, debug, osc or osc.pbf for a change file, adiff for an augmented diff, or
    /// geojson, geojsonseq, csv, parquet [default: by the name of the output]
    ///
    /// The change file turns OLD into NEW; the command derive-changes writes the same. The augmented diff has each
    /// object before and after, with its geometry, and the ways and relations whose nodes or members differ; see
    /// augmented-diff. The last four have a feature or a row for each object that differs: what happened, by whom and
    /// when, the tags before and after, and the new geometry, or the old one of a deletion.
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
    /// Print objects that are the same in both files, too
    #[arg(short, long, conflicts_with_all = ["suppress_common", "bbox", "polygon", "area", "filter", "by"])]
    all: bool,
    /// Leave out objects that are the same in both files; the default, except under the name osmium
    #[arg(short = 'c', long)]
    suppress_common: bool,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Count the changes of each user or of each changeset; WHOM is user or changeset
    #[arg(long, value_name = "WHOM", value_parser = parse_grouping, conflicts_with = "html")]
    by: Option<GroupBy>,
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
    /// Memory for the changes of an augmented diff, of features or of --by [default: by the size of the files]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_memory: Option<u64>,
    #[command(flatten)]
    kinds: KindArgs,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(session: &Session, args: &Args, derive_changes: bool) -> Result<CommandAnswer> {
    let ctx = args.run.context(session);
    let other = conversion_output_options(session, args, derive_changes)?;
    let makes_changes = derive_changes || other.is_some();
    if makes_changes && (args.by.is_some() || args.scope.is_given()) {
        bail!(WHOLE_CHANGES);
    }
    if let Some(output) = other {
        let derived = derive_and_convert(session, args, output, &ctx);
        return derived.map_err(|error| explain_diff_error(session, args, error));
    }
    let files = ComparedFiles {
        old: &args.old,
        new: &args.new,
        metadata: args.metadata,
        max_memory: args.max_memory,
    };
    if let Some(answer) = write_changes(session, args, &files, derive_changes, &ctx)? {
        return Ok(answer);
    }
    let format = difference_format(session, args, derive_changes)?;
    let is_osc = matches!(format, Format::Osc(_));
    let to_stdout = is_stdout(&args.output);
    // With --json, --html or --quiet, the differences are not written to standard output, which gets only counts or
    // nothing. However, --quiet does not suppress a change file.
    let silent = to_stdout
        && (args.run.json.is_some() || args.html.is_some() || (args.run.quiet && !is_osc));
    let target = (!silent).then(|| text_target(session, &args.output, args.overwrite));
    let selection = args.scope.selection_if_given(session, &files, &ctx)?;
    if is_osc && selection.is_some() {
        bail!(WHOLE_CHANGES);
    }
    let mut options = comparison_options(session, args, derive_changes);
    options.output = target.transpose()?.map(|target| (format, target));
    if let Some(selection) = &selection {
        options.only = Some(diff_changes::selected_ids(&files, selection, &ctx)?);
    }
    let summary = compare(session, args, &options, selection.unwrap_or_default(), &ctx)?;
    warn_of_inexact_changes(&summary, is_osc, &ctx);
    print_summary(session, args, &summary);
    let stdout = Stdout::free_if(silent || !to_stdout);
    session.report(&args.run, &ctx, &summary, stdout, || {
        let written = args.html.as_ref().unwrap_or(&args.output);
        let counts = counts_line(&summary.total());
        match summary.new_version_only {
            0 => format!("{}: {counts}\n", written.display()),
            only => format!(
                "{}: {counts}, {} with a new version only\n",
                written.display(),
                show::number(only)
            ),
        }
    })?;
    let is_derived = (is_osc || args.html.is_some()) && !args.exit_code;
    Ok(CommandAnswer::yes_if(
        is_derived || summary.total().is_same(),
    ))
}

/// The error message if a change file of selected objects is requested.
const WHOLE_CHANGES: &str =
    "a change file has all differences: cut both files to the region with extract before";

/// Returns the options of the comparison, without an output.
fn comparison_options(session: &Session, args: &Args, derive_changes: bool) -> diff::Options {
    let is_strict = session.conventions.diffs_in_pairs && !derive_changes;
    diff::Options::new(&args.old, &args.new)
        .kinds(args.kinds.kind_set())
        .equality(Equality {
            tag_order: is_strict,
            metadata: args.metadata || is_strict,
            ignore_changeset: args.ignore_changeset,
            ignore_uid: args.ignore_uid,
            ignore_user: args.ignore_user,
            way_locations: is_strict,
        })
        .by_version(is_strict)
        .verify(args.verify)
}

/// Compares the files, and writes a page if an option asks for one.
fn compare(
    session: &Session,
    args: &Args,
    options: &diff::Options,
    selection: Selection,
    ctx: &Context,
) -> Result<Summary> {
    if let Some(path) = &args.html {
        let target = text_target(session, path, args.overwrite)?;
        return Ok(write_page(options, selection, target, ctx)?);
    }
    let is_osc = matches!(&options.output, Some((Format::Osc(_), _)));
    diff::run(options, ctx).map_err(|error| {
        if is_osc {
            explain_diff_error(session, args, error.into())
        } else {
            error.into()
        }
    })
}

/// Writes a page. It shows objects one by one if there are not too many differences.
pub fn write_page(
    options: &diff::Options,
    selection: Selection,
    target: OutputTarget,
    ctx: &Context,
) -> crate::Result<Summary> {
    /// The maximum number of differing objects for which the page shows the objects one by one.
    const MOST_DIFFERENCES: u64 = 200_000;
    let list = |summary: &Summary| {
        let total = summary.total();
        let differences = total.left + total.right + total.different;
        if !(1..=MOST_DIFFERENCES).contains(&differences) {
            return Ok(None);
        }
        let pair = FilePair::new(&options.old, &options.new)
            .metadata(options.equality.metadata)
            .selection(selection.kinds(Some(options.kinds)).whole_objects(true));
        let listed = commands::augmented_diff::list_between(&pair, ctx);
        match listed {
            Ok(list) => Ok(Some(page::Objects {
                features: list
                    .features
                    .into_iter()
                    .filter_map(|feature| RawValue::from_string(feature).ok())
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

/// Returns the form of the changes if the format or the name of the output asks for features or for an augmented diff;
/// `None` otherwise.
fn form_of_changes(
    args: &Args,
    conventions: &Conventions,
    derive_changes: bool,
) -> Option<DiffFormArg> {
    match &args.format {
        Some(DiffFormat::Changes(form)) => Some(*form),
        Some(_) => None,
        None if derive_changes => None,
        None if augmented_diff::is_xml_file_name(&args.output) => Some(DiffFormArg::Xml),
        None if conventions.diffs_in_pairs => None,
        None => augmented_diff::form_of_name(&args.output),
    }
}

/// Writes the changes as features or as an augmented diff, or the numbers of changes by user or by changeset. Returns
/// `None` if the arguments ask for another output.
fn write_changes(
    session: &Session,
    args: &Args,
    files: &ComparedFiles<'_>,
    derive_changes: bool,
    ctx: &Context,
) -> Result<Option<CommandAnswer>> {
    let form = form_of_changes(args, session.conventions, derive_changes);
    if form.is_none() && args.by.is_none() {
        return Ok(None);
    }
    if args.html.is_some() {
        bail!("a page has its own lists of changes: leave out -f and -o, or --html");
    }
    let target = ChangesTarget {
        path: &args.output,
        overwrite: args.overwrite,
        exit_code: args.exit_code,
        run: &args.run,
    };
    let scope = (&args.scope, args.kinds.kind_set());
    let written = match (args.by, form) {
        (Some(_), None) if matches!(&args.format, Some(DiffFormat::Objects(_))) => {
            bail!("--by writes text, csv, geojson, geojsonseq or parquet")
        }
        (Some(by), form) => {
            if form.is_none() {
                LINES.check_name(session, &args.output)?;
            }
            diff_changes::write_grouped(session, files, scope, (by, form), &target, ctx)?
        }
        (None, Some(form)) => {
            diff_changes::write_as_form(session, files, scope, form, &target, ctx)?
        }
        (None, None) => return Ok(None),
    };
    Ok(Some(written))
}

/// Prints the counts to standard error if an option asks for them.
fn print_summary(session: &Session, args: &Args, summary: &Summary) {
    if args.summary {
        session.print_to_stderr(&summary_text(summary));
    } else if args.osmium_summary {
        session.print_to_stderr(&format!("Summary: {}\n", counts_line(&summary.total())));
    }
}

fn explain_diff_error(session: &Session, args: &Args, error: anyhow::Error) -> anyhow::Error {
    wrong_files::explain_derive_error(session, error, &args.old, &args.new, &args.output)
}

/// An output format for the differences.
#[derive(Debug, Clone)]
pub enum DiffFormat {
    /// One line for each object.
    Lines,
    /// A file format, such as OPL, in which the objects are written.
    Objects(FormatSpec),
    /// An augmented diff, or changes as features.
    Changes(DiffFormArg),
}

impl DiffFormat {
    /// Parses the name of a format.
    pub fn parse(conventions: &Conventions, text: &str) -> Result<Self, String> {
        match text {
            "text" | "compact" => Ok(Self::Lines),
            _ => match augmented_diff::parse_form(text) {
                Ok(form) => Ok(Self::Changes(form)),
                Err(_) => FormatSpec::parse(conventions, text)
                    .map(Self::Objects)
                    .map_err(|_| {
                        "expected text, opl, debug, osc, osc.pbf, adiff, geojson, geojsonseq, csv or parquet"
                            .to_owned()
                    }),
            },
        }
    }
}

/// Returns the options of the output if the derived change file has to be converted. This is the case for a change file
/// in PBF and, with `derive_changes`, for any format except OsmChange. Returns `None` for other outputs.
fn conversion_output_options(
    session: &Session,
    args: &Args,
    derive_changes: bool,
) -> Result<Option<OutputOptions>> {
    let changes = change_pbf_output(session, args)?;
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
    let format = kind.map_or(Ok(crate::engine::Format::Pbf), |kind| {
        spec.format(session, kind)
    })?;
    let header = HeaderOptions {
        generator: args.generator.clone(),
        inherited: InheritedFields::Needed,
        ..HeaderOptions::default()
    };
    let output = OutputOptions::new(text_target(session, &args.output, args.overwrite)?);
    Ok(Some(output.format(format).header(header)))
}

/// Returns the options of the output if the format or, without a format, the name of the output asks for a change file
/// in PBF (`osc.pbf`). Returns `None` otherwise, and always under the conventions of osmium.
fn change_pbf_output(session: &Session, args: &Args) -> Result<Option<OutputOptions>> {
    let spec = match &args.format {
        Some(DiffFormat::Objects(spec)) => spec.clone(),
        Some(DiffFormat::Lines | DiffFormat::Changes(_)) => return Ok(None),
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
fn derive_and_convert(
    session: &Session,
    args: &Args,
    output: OutputOptions,
    ctx: &Context,
) -> Result<CommandAnswer> {
    let is_change_file = change_pbf_output(session, args)?.is_some();
    if !is_change_file {
        session.print_to_stderr(&format!(
            "{}: warning: the output is not a change file: -f osc makes one\n",
            session.conventions.name
        ));
    }
    let directory = ScratchDirectory::create(None)?;
    let changes = directory.path().join("changes.osc");
    let target = OutputTarget::file(&changes);
    let mut options = diff::Options::new(&args.old, &args.new);
    options.kinds = args.kinds.kind_set();
    // The temporary file has all attributes of objects. The conversion omits those that the format of the output
    // excludes.
    let mut text = TextOptions::new(TextFormat::OsmChange);
    let asks_for_locations = matches!(
        &args.format,
        Some(DiffFormat::Objects(spec)) if spec.has_option("locations_on_ways")
    );
    if session.conventions.is_plain_by_default && !asks_for_locations {
        text.way_locations = WayLocations::Never;
    }
    options.output = Some((
        Format::Osc(change_file_options(session, args, text)?),
        target,
    ));
    let differences = diff::run(&options, ctx)?;
    warn_of_inexact_changes(&differences, is_change_file, ctx);
    if !is_change_file {
        warn_of_changed_locations(&differences, ctx);
    }
    let summary = cat::run(&cat::Options::new(vec![changes], output.clone()), ctx)?;
    session.report(&args.run, ctx, &summary, &output.target, || {
        format!("{}\n", show::written(&summary.written))
    })?;
    Ok(CommandAnswer::yes_if(
        !args.exit_code || differences.total().is_same(),
    ))
}

/// The implied format of an output that is a change file.
const CHANGES: Implied<'_> = Implied {
    what: "a change file is OsmChange",
    endings: &["osc", "xml"],
    may_be_compressed: true,
    advice: "name it .osc, .osc.gz or .osc.pbf, or say the format with -f",
};
/// The implied format of an output with differences as lines.
const LINES: Implied<'_> = Implied {
    what: "differences are lines of text",
    endings: &["txt"],
    may_be_compressed: true,
    advice: "-f sets another format for any name: opl, debug, osc, adiff, geojson, geojsonseq, csv or parquet",
};

/// Returns the format of the differences that the arguments select.
fn difference_format(session: &Session, args: &Args, derive_changes: bool) -> Result<Format> {
    let common = args.all || session.conventions.diffs_in_pairs && !args.suppress_common;
    let spec = match &args.format {
        Some(DiffFormat::Objects(spec)) => Some(spec),
        Some(DiffFormat::Lines | DiffFormat::Changes(_)) | None => None,
    };
    if let Some(spec) = spec
        && let Some(kind) = spec.kind
        && !kind.is_change_file()
    {
        return match spec.format(session, kind)? {
            crate::engine::Format::Text(text)
                if matches!(text.format, TextFormat::Opl | TextFormat::Debug) =>
            {
                Ok(Format::Objects { text, common })
            }
            _ => bail!(
                "diff writes text, opl, debug, osc, osc.pbf, adiff, geojson, geojsonseq, csv or parquet"
            ),
        };
    }
    let is_osc = match &args.format {
        Some(format) => matches!(format, DiffFormat::Objects(_)),
        None => derive_changes || is_change_file_name(&args.output),
    };
    let to_stdout = is_stdout(&args.output);
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
        Ok(Format::Osc(change_file_options(
            session,
            args,
            change_text_options(session, args)?,
        )?))
    } else {
        Ok(Format::Text {
            common,
            details: args.run.verbose,
        })
    }
}

/// Returns the text options of a change file, which select the attributes of objects.
fn change_text_options(session: &Session, args: &Args) -> Result<TextOptions> {
    let changes = FormatSpec::changes();
    let spec = match &args.format {
        Some(DiffFormat::Objects(spec)) => spec,
        Some(DiffFormat::Lines | DiffFormat::Changes(_)) | None => &changes,
    };
    let format = spec
        .kind
        .or(changes.kind)
        .map(|kind| spec.format(session, kind));
    Ok(match format.transpose()? {
        Some(crate::engine::Format::Text(text)) => text,
        Some(crate::engine::Format::Pbf) | None => TextOptions::new(TextFormat::OsmChange),
    })
}

/// Returns the options for change files. Most of the options are about deleted objects. `text` selects the attributes
/// of objects.
fn change_file_options(session: &Session, args: &Args, text: TextOptions) -> Result<Deletions> {
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
        content_only: false,
        generator: args.generator.clone(),
        text,
    })
}
