use super::CommandAnswer;
use super::args::{ChangesetKindArgs, FormatSpec, RunArgs, Stdout};
use super::conventions::parse_with;
use super::session::Session;
use super::show::on_one_line as printable;
use crate::commands::inspect::show::{self, ShownObject};
use crate::commands::{IdSource, cat, getid};
use crate::engine::{Format, HeaderOption, HeaderOptions, OutputOptions};
use crate::formats::TextOptions;
use crate::io::OutputTarget;
use crate::osm::{ObjectId, ObjectKind, parse_object_ids};
use anyhow::{Result, bail};
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// Show all objects of a file, or those with certain ids
///
/// Without ids, all objects are shown, and on a terminal they go through a pager: the program in PAGER, or less if
/// PAGER is not set. Exit status 1 if some ids were not found.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg show berlin.osm.pbf n17 w42
  pbfhogg show berlin.osm.pbf
  pbfhogg show -o -t relation berlin.osm.pbf")]
pub struct Args {
    /// Input file; - is standard input
    #[arg(value_name = "FILE", index = 1)]
    input: PathBuf,
    /// Ids, such as n17, w42, way/42 or the address of a page of openstreetmap.org; a number alone is a node
    #[arg(
        value_name = "ID",
        index = 2,
        allow_negative_numbers = true,
        conflicts_with = "kinds"
    )]
    ids: Vec<String>,
    #[command(flatten)]
    format: ShownFormatArgs,
    #[command(flatten)]
    kinds: ChangesetKindArgs,
    /// Do not use a pager
    #[arg(long)]
    no_pager: bool,
    #[command(flatten)]
    run: RunArgs,
}

/// The format in which objects are shown.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct ShownFormatArgs {
    /// Show readable text with one line for each attribute (default without ids)
    #[arg(short = 'd', long)]
    format_debug: bool,
    /// Show OPL
    #[arg(short = 'o', long)]
    format_opl: bool,
    /// Show OSM XML
    #[arg(short = 'x', long)]
    format_xml: bool,
    /// Show this format: debug, opl, csv, osm or osc; options follow after commas, as in opl,add_metadata=false
    #[arg(short = 'f', long, value_name = "FORMAT", value_parser = parse_with(FormatSpec::parse))]
    output_format: Option<FormatSpec>,
}

impl ShownFormatArgs {
    /// Returns the options of the text format to show; `None` if no format was given. Fails if the format is not a text
    /// format.
    fn text(&self, session: &Session) -> Result<Option<TextOptions>> {
        let flags = [
            (self.format_debug, "debug"),
            (self.format_opl, "opl"),
            (self.format_xml, "osm"),
        ];
        if let Some((_, format)) = flags.into_iter().find(|(is_given, _)| *is_given) {
            return text_options(session, format).map(Some);
        }
        let Some(spec) = &self.output_format else {
            return Ok(None);
        };
        match spec
            .kind
            .map(|kind| spec.format(session, kind))
            .transpose()?
        {
            Some(Format::Text(text)) => Ok(Some(text)),
            _ => bail!(
                "show writes text: give debug, opl, csv, osm or osc with -f, and PBF with getid"
            ),
        }
    }
}

/// Returns the options of the text format with the given name. Debug output has colours if it goes to a terminal.
fn text_options(session: &Session, name: &str) -> Result<TextOptions> {
    let spec = FormatSpec::parse(session.conventions, name).map_err(anyhow::Error::msg)?;
    let Some(Format::Text(mut text)) = spec
        .kind
        .map(|kind| spec.format(session, kind))
        .transpose()?
    else {
        bail!("{name} is not a text format");
    };
    text.debug.colors = session.conventions.always_colors || std::io::stdout().is_terminal();
    Ok(text)
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let format = match args.format.text(session)? {
        None if !args.ids.is_empty() => {
            return run_with(session, &args.input, &args.ids, &args.run);
        }
        None => Format::Text(text_options(session, "debug")?),
        Some(text) => Format::Text(text),
    };
    let ctx = args.run.context(session);
    let pager = if args.no_pager || !std::io::stdout().is_terminal() {
        None
    } else {
        Pager::start()
    };
    let target = pager.as_ref().map_or(OutputTarget::Stdout, Pager::target);
    let output = OutputOptions::new(target)
        .format(format)
        .header(HeaderOptions {
            set: vec![HeaderOption::KeepGenerator],
            ..HeaderOptions::default()
        });
    let is_complete = if args.ids.is_empty() {
        let options = cat::Options::new(vec![args.input.clone()], output)
            .kinds(args.kinds.kind_set())
            .changesets(args.kinds.has_changesets());
        cat::run(&options, &ctx)?;
        true
    } else {
        let ids = IdSource::new(parse_ids(&args.ids)?);
        let options = getid::Options::new(&args.input, ids, output);
        let missing = getid::run(&options, &ctx)?.missing;
        print_missing_ids(session, missing.ids(), &args.run);
        missing.is_empty()
    };
    args.run.end(session, &ctx, Stdout::Taken)?;
    Ok(CommandAnswer::yes_if(is_complete))
}

/// A program that shows text page by page. Dropping the pager closes the input of the program, and waits until the
/// program ends.
struct Pager {
    program: Child,
    input: Option<ChildStdin>,
}

impl Pager {
    /// Starts the program that the environment variable PAGER names, or `less` if PAGER is not set. Returns `None` if
    /// the program cannot be started, if PAGER is empty, or on Windows, which has no paths for open pipes.
    fn start() -> Option<Self> {
        if cfg!(windows) {
            return None;
        }
        let program = std::env::var("PAGER").unwrap_or_else(|_| "less".into());
        let mut words = program.split_whitespace();
        let mut command = Command::new(words.next()?);
        command.args(words).stdin(Stdio::piped());
        if std::env::var_os("LESS").is_none() {
            // With these options, less passes colours through (R), exits at once if the text fits on the screen (F),
            // and leaves the text there (X).
            command.env("LESS", "FRX");
        }
        let mut program = command.spawn().ok()?;
        let input = program.stdin.take();
        Some(Self { program, input })
    }

    /// Returns the pipe to the program as an output.
    fn target(&self) -> OutputTarget {
        #[cfg(unix)]
        let descriptor = self
            .input
            .as_ref()
            .map_or(1, std::os::fd::AsRawFd::as_raw_fd);
        #[cfg(windows)]
        let descriptor = 1;
        OutputTarget::file(format!("/dev/fd/{descriptor}"))
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.program.wait();
    }
}

/// Prints to standard error that the file has no objects with the given ids. Prints nothing if --quiet was given.
fn print_missing_ids(session: &Session, ids: impl Iterator<Item = impl ToString>, run: &RunArgs) {
    let ids: Vec<String> = ids.map(|id| id.to_string()).collect();
    if !ids.is_empty() && !run.quiet {
        session.print_to_stderr(&format!("not found: {}\n", ids.join(" ")));
    }
}

fn parse_ids(texts: &[String]) -> Result<Vec<ObjectId>> {
    let texts = texts.iter().map(String::as_str);
    parse_object_ids(texts, ObjectKind::Node).map_err(anyhow::Error::msg)
}

/// Prints the objects with the given ids. An id without a letter is a node id. Prints the ids that are not in the file
/// to standard error. If there are such ids, returns [`CommandAnswer::No`].
pub fn run_with(
    session: &Session,
    input: &Path,
    ids: &[String],
    run: &RunArgs,
) -> Result<CommandAnswer> {
    let ctx = run.context(session);
    let options = show::Options {
        input: input.to_owned(),
        ids: parse_ids(ids)?,
    };
    let summary = show::run(&options, &ctx)?;
    session.report(run, &ctx, &summary, Stdout::Answer, || {
        summary.objects.iter().map(text).collect()
    })?;
    print_missing_ids(session, summary.missing.iter(), run);
    Ok(CommandAnswer::yes_if(summary.missing.is_empty()))
}

fn text(object: &ShownObject) -> String {
    let mut out = String::new();
    let deleted = if object.visible { "" } else { ", deleted" };
    let _ = writeln!(out, "{} {}{deleted}", object.kind, object.id);
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(out, "  {name:<12}{value}");
        }
    };
    line("version", object.version.map(|version| version.to_string()));
    line("timestamp", object.timestamp.clone());
    line(
        "changeset",
        object.changeset.map(|number| number.to_string()),
    );
    let user = object.user.as_deref().map(printable);
    line(
        "user",
        match (user, object.uid) {
            (Some(user), Some(uid)) => Some(format!("{user} ({uid})")),
            (user, uid) => user.or(uid.map(|uid| uid.to_string())),
        },
    );
    let location = object
        .location
        .map(|location| format!("{location} (latitude, longitude)"));
    line("location", location);
    if !object.tags.is_empty() {
        let _ = writeln!(out, "  tags");
        for (key, value) in &object.tags {
            let _ = writeln!(out, "    {} = {}", printable(key), printable(value));
        }
    }
    if !object.refs.is_empty() {
        let _ = writeln!(out, "  nodes ({})", object.refs.len());
        for (index, id) in object.refs.iter().enumerate() {
            let location = object.locations.get(index);
            let location = location.map(|location| format!("  {location}"));
            let _ = writeln!(out, "    n{id}{}", location.unwrap_or_default());
        }
    }
    if !object.members.is_empty() {
        let _ = writeln!(out, "  members ({})", object.members.len());
        for member in &object.members {
            let letter = member.kind.letter();
            let _ = writeln!(out, "    {letter}{} {}", member.id, printable(&member.role));
        }
    }
    out
}
