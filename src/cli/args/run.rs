//! The options that every command has, and the report at the end of a run.

use super::format::{InputKind, join_words, read_formats};
use super::text_target;
use crate::cli::conventions::parse_with;
use crate::cli::progress::{Level, Terminal};
use crate::cli::session::Session;
use crate::cli::{CommandAnswer, show};
use crate::formats::{TextCompression, TextOutput};
use crate::io::OutputTarget;
use crate::{Context, IoMode, StatsReport};
use anyhow::{Result, bail};
use clap::{ArgMatches, Args, ValueEnum};
use serde::Serialize;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The text that only the long help of --input-format has.
const MORE_OF_INPUTS: &str = "

OSM XML, OsmChange, OPL and o5m, compressed or not, are first converted to a temporary PBF file. osc.opl and osc.pbf \
state that the objects of a file are changes.";

fn input_format_help(more: &str) -> String {
    let names = join_words(read_formats(), "or");
    format!("Format of the inputs if their content does not show it: {names}{more}")
}

/// The options that every command has.
#[derive(Debug, Args)]
#[command(next_help_heading = "Common options")]
pub struct RunArgs {
    /// Worker threads; 0 uses all cores
    #[arg(short, long, value_name = "N", default_value_t = 0, value_parser = parse_jobs)]
    pub jobs: usize,
    /// The format of the inputs
    #[arg(
        short = 'F',
        long,
        value_name = "FORMAT",
        value_parser = parse_with(InputKind::parse),
        hide_short_help = true,
        help = input_format_help(""),
        long_help = input_format_help(MORE_OF_INPUTS)
    )]
    pub input_format: Option<InputKind>,
    /// Read and write without the page cache (O_DIRECT), so that other files stay cached
    #[arg(long, conflicts_with = "io_uring", hide_short_help = true)]
    pub direct_io: bool,
    /// Write with io_uring
    #[arg(long, hide_short_help = true)]
    pub io_uring: bool,
    /// Show a progress bar even if standard error is not a terminal
    #[arg(long, overrides_with = "no_progress", hide_short_help = true)]
    pub progress: bool,
    /// Do not show a progress bar
    #[arg(long, hide_short_help = true)]
    pub no_progress: bool,
    /// Print notes, the summary and the time of each phase to standard error, even if it is not a terminal
    #[arg(short, long)]
    pub verbose: bool,
    /// Print no warnings, notes or summary
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print the summary as JSON: to standard output, or to standard error if the result goes there
    ///
    /// --json=lines prints it on one line. update then prints a line for each event.
    #[arg(
        long,
        value_name = "FORM",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "pretty",
        hide_possible_values = true
    )]
    pub json: Option<JsonForm>,
    /// Write the times of phases and the numbers of bytes and blobs to FILE as JSON; - is standard output
    ///
    /// An existing FILE is replaced only if an earlier run wrote it with --stats, or with --overwrite where there is
    /// one.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub stats: Option<PathBuf>,
}

/// The form of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum JsonForm {
    /// Many lines, which are indented.
    Pretty,
    /// One line for each value.
    Lines,
}

impl JsonForm {
    /// Formats a value, with a line break at its end.
    pub fn text(self, value: &impl Serialize) -> serde_json::Result<String> {
        let json = match self {
            Self::Pretty => serde_json::to_string_pretty(value),
            Self::Lines => serde_json::to_string(value),
        };
        json.map(|json| json + "\n")
    }
}

/// Opens the file for --stats before the work begins, so that the run fails early if the file exists or cannot be
/// created.
pub fn set_up_stats(session: &Session, matches: &ArgMatches) -> Result<()> {
    let Some((_, matches)) = matches.subcommand() else {
        return Ok(());
    };
    let stats = matches.try_get_one::<PathBuf>("stats").ok().flatten();
    if let Some(path) = stats.filter(|path| path.as_os_str() != "-") {
        let overwrite = matches.try_get_one::<bool>("overwrite").ok().flatten();
        let may_replace = overwrite.is_some_and(|overwrite| *overwrite) || is_stats_file(path);
        let target = text_target(session, path, may_replace)?;
        let file = TextOutput::compressed(target, TextCompression::None, &Context::default())?;
        session.stats.replace(Some(file));
    }
    set_up_stats(session, matches)
}

/// Whether a file was written by an earlier run with --stats.
fn is_stats_file(path: &Path) -> bool {
    const MAX_LEN: u64 = 1 << 20;
    let is_short = |path: &Path| {
        path.metadata()
            .is_ok_and(|metadata| metadata.is_file() && metadata.len() < MAX_LEN)
    };
    let text = is_short(path).then(|| std::fs::read(path).ok()).flatten();
    let json = text.and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok());
    json.is_some_and(|json| json.get("phases").is_some() && json.get("peak_memory_bytes").is_some())
}

impl RunArgs {
    /// Creates the context in which the command runs.
    pub fn context(&self, session: &Session) -> Context {
        let mut ctx = Context::new(self.jobs);
        ctx.io = match (self.direct_io, self.io_uring) {
            (true, _) => IoMode::Direct,
            (false, true) => IoMode::IoUring,
            (false, false) => IoMode::Auto,
        };
        if let Some(kind) = self.input_format {
            ctx.input_format = kind.format;
            ctx.input_is_history = kind.is_history;
            ctx.input_is_change = kind.is_change;
        }
        ctx.disorder = session.conventions.disorder;
        ctx.max_shrink = session.max_shrink;
        let is_person = std::io::stderr().is_terminal();
        let has_bar = self.progress || (is_person && !self.no_progress && !self.quiet);
        ctx.observer = Arc::new(Terminal::new(
            has_bar,
            self.level(session),
            session.is_call(),
        ));
        session.connect_to_caller(&mut ctx, self.progress);
        ctx
    }

    /// Creates the context of a command whose input may be a change file.
    pub fn context_for_changes(&self, session: &Session) -> Context {
        let mut ctx = self.context(session);
        ctx.change_format = ctx.input_format;
        ctx.data_as_changes = ctx.input_is_change;
        ctx
    }

    /// Ends a run without a summary. Writes the statistics if --stats was given, and prints them to standard error if
    /// --verbose was given. Returns the statistics, and how standard output is used from then on.
    ///
    /// Fails if a write fails, or if `--stats -` is given and the result of the command is on standard output.
    pub fn end(
        &self,
        session: &Session,
        ctx: &Context,
        stdout: Stdout,
    ) -> Result<(StatsReport, Stdout)> {
        ctx.observer.finished();
        let report = ctx.stats.report();
        let stdout = self.write_stats(session, &report, stdout)?;
        if self.verbose {
            session.print_to_stderr(&show::stats(&report));
        }
        Ok((report, stdout))
    }

    /// Writes the statistics if --stats was given. Returns how standard output is used from then on.
    fn write_stats(
        &self,
        session: &Session,
        report: &StatsReport,
        stdout: Stdout,
    ) -> Result<Stdout> {
        let Some(path) = &self.stats else {
            return Ok(stdout);
        };
        let json = serde_json::to_string_pretty(report)? + "\n";
        match (path == Path::new("-"), stdout) {
            (true, Stdout::Taken) => bail!(
                "--stats -: standard output has the result of the command; give a file, such as /dev/stderr"
            ),
            (true, _) => {
                session.print(&json)?;
                Ok(Stdout::Taken)
            }
            (false, _) => {
                if let Some(mut file) = session.stats.take() {
                    file.write(&json)?;
                    file.finish()?;
                }
                Ok(stdout)
            }
        }
    }

    /// Returns the level of the messages that go to standard error. Without --quiet and --verbose, notes are printed
    /// only if standard error is a terminal.
    fn level(&self, session: &Session) -> Level {
        match (self.quiet, self.verbose) {
            (true, _) => Level::Errors,
            (false, true) => Level::Details,
            (false, false) if !session.conventions.has_warnings => Level::Errors,
            (false, false) if std::io::stderr().is_terminal() => Level::Notes,
            (false, false) => Level::Warnings,
        }
    }
}

impl Session {
    /// Prints the answer of a command.
    pub fn answer(&self, text: &str) -> Result<CommandAnswer> {
        self.print(text).map(|()| CommandAnswer::Yes)
    }

    /// Ends a run, as [`RunArgs::end`] does. Prints the summary to the stream that `stdout` implies: as JSON with
    /// --json, otherwise as the string that `text` returns. Always returns [`CommandAnswer::Yes`].
    ///
    /// Fails if a write fails, or if `--stats -` is given and the result of the command is on standard output.
    pub fn report<S: Serialize>(
        &self,
        run: &RunArgs,
        ctx: &Context,
        summary: &S,
        stdout: impl Into<Stdout>,
        text: impl FnOnce() -> String,
    ) -> Result<CommandAnswer> {
        let (report, stdout) = run.end(self, ctx, stdout.into())?;
        let text = || text() + &show::skipped(&report);
        match (stdout, run.json) {
            (Stdout::Answer | Stdout::Free, Some(form)) => self.print(&form.text(summary)?)?,
            (Stdout::Taken, Some(form)) => self.print_to_stderr(&form.text(summary)?),
            (Stdout::Answer, None) if !run.quiet => self.print(&text())?,
            (Stdout::Free, None) if run.level(self) >= Level::Notes => {
                self.print_to_stderr(&text())
            }
            (Stdout::Taken, None) if run.verbose => self.print_to_stderr(&text()),
            _ => {}
        }
        Ok(CommandAnswer::Yes)
    }

    /// Ends a run as [`report`](Self::report) does. The text is a line that begins with the name of the output.
    pub fn report_output<S: Serialize>(
        &self,
        run: &RunArgs,
        ctx: &Context,
        summary: &S,
        target: &OutputTarget,
        text: impl FnOnce() -> String,
    ) -> Result<CommandAnswer> {
        self.report(run, ctx, summary, target, || {
            format!("{}: {}\n", target.path().display(), text())
        })
    }
}

/// The use of standard output by a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdout {
    /// The summary is the result of the command and goes to standard output.
    Answer,
    /// The result is not on standard output. A summary as text goes to standard error, and a summary as JSON to
    /// standard output.
    Free,
    /// The result is on standard output. A summary goes to standard error, but only with --json or --verbose.
    Taken,
}

impl From<&OutputTarget> for Stdout {
    fn from(target: &OutputTarget) -> Self {
        Self::free_if(!target.is_stream())
    }
}

impl Stdout {
    /// Returns [`Stdout::Free`] if `is_free`, else [`Stdout::Taken`].
    pub const fn free_if(is_free: bool) -> Self {
        if is_free { Self::Free } else { Self::Taken }
    }
}

fn parse_jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(jobs @ 0..=1024) => Ok(jobs),
        _ => Err("expected 0 (every core) to 1024".into()),
    }
}
