//! The command line. The module of each subcommand defines its arguments, converts them to the options of a command in
//! `commands`, and formats the report.

mod add_locations_to_ways;
mod advice;
mod apply_changes;
mod args;
mod argv_compat;
mod augmented_diff;
mod call;
mod cat;
mod changeset_filter;
mod check;
mod check_areas;
mod coastline;
mod completions;
mod conventions;
mod degrade;
mod demo;
mod diff;
mod diff_changes;
mod diff_report;
mod export;
mod export_format;
mod export_selection;
mod extract;
mod fileinfo;
mod geocode;
mod getid;
mod getparents;
mod help;
mod inspect;
mod inspect_views;
mod locations_index;
mod man;
mod merge_changes;
mod progress;
mod regions;
mod renumber;
mod repack;
mod repair;
mod session;
mod show;
mod show_object;
mod signals;
mod sort;
mod split;
mod synth;
mod tags_count;
mod tags_edit;
mod tags_filter;
mod time_filter;
mod update;
mod update_report;
mod usage;
mod words;
mod wrong_files;

use anyhow::Result;
pub use call::{ArgumentDescription, CallError, Called, CommandDescription, call, commands};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use conventions::{Conventions, with_values};
use session::{Session, print_to_stderr};
use std::ffi::OsString;
use std::process::ExitCode;

/// Fast, exact and safe tools for OpenStreetMap PBF files.
///
/// An output gets its name only when it is complete, and never replaces a file without --overwrite.
/// Exit status: 0 success; 1 a check failed, files differ, or something was not found; 2 wrong usage
/// or an error.
#[derive(Debug, Parser)]
#[command(
    name = "pbfhogg",
    version,
    arg_required_else_help = true,
    max_term_width = 100,
    infer_long_args = true,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Declares the commands from a table. A row has the arguments of a command and the function that runs it. The brackets
/// hold the fixed last arguments of the function. After `as`, the row has the name and the description that the help of
/// the program shows, if they differ from those of the command.
macro_rules! commands {
    ($($purpose:literal {
        $($(#[$attribute:meta])* $name:ident($args:ty): $run:path $([$($fixed:expr),*])? $(as $listed:expr)?;)*
    })*) => {
        #[derive(Debug, Subcommand)]
        enum Command {
            $($($(#[$attribute])* $name($args),)*)*
        }

        /// For each command, in order: its heading in the help, and the name and the description shown there instead of
        /// its own.
        const LISTED: &[(&str, Option<(&str, &str)>)] =
            &[$($(($purpose, commands!(@ $($listed)?)),)*)*];

        /// Runs a command. `matches` has the same parsed arguments as `command`.
        fn run(
            session: &Session,
            command: &Command,
            matches: &clap::ArgMatches,
        ) -> Result<CommandAnswer> {
            args::set_up_stats(session, matches)?;
            match command {
                $($(Command::$name(args) => $run(session, args $(, $($fixed),*)?),)*)*
            }
        }
    };
    (@) => { None };
    (@ $listed:expr) => { Some($listed) };
}

// The help lists the commands in this order. It omits a hidden command that has no description here.
commands! {
    "Inspect" {
        Inspect(inspect::Args): inspect::run;
        Fileinfo(fileinfo::Args): fileinfo::run;
        Show(show_object::Args): show_object::run;
        #[command(name = "tags-count", hide = true)]
        TagsCount(tags_count::Args): tags_count::run as ("inspect tags", "How often keys and tags occur");
    }
    "Check and compare" {
        Check(check::Args): check::run[false];
        #[command(name = "check-refs", hide = true)]
        CheckRefs(check::Args): check::run[true];
        Repair(repair::Args): repair::run;
        Diff(diff::Args): diff::run[false];
    }
    "Select" {
        Extract(extract::Args): extract::run;
        TagsFilter(tags_filter::Args): tags_filter::run;
        Getid(getid::Args): getid::run[false];
        #[command(name = "removeid", hide = true)]
        RemoveId(getid::Args): getid::run[true] as ("removeid", "Everything but objects with certain ids");
        Getparents(getparents::Args): getparents::run;
        TimeFilter(time_filter::Args): time_filter::run
            as ("time-filter", "The state at a time, or the versions of a period, from a history");
        ChangesetFilter(changeset_filter::Args): changeset_filter::run;
    }
    "Update" {
        Update(update::Args): update::run;
        Regions(regions::Args): regions::run;
        ApplyChanges(apply_changes::Args): apply_changes::run;
        #[command(visible_alias = "adiff")]
        AugmentedDiff(augmented_diff::Args): augmented_diff::run;
        MergeChanges(merge_changes::Args): merge_changes::run;
        #[command(name = "derive-changes", hide = true)]
        DeriveChanges(diff::Args): diff::run[true]
            as ("derive-changes", "Write what differs between two files as a change file");
    }
    "Transform" {
        Cat(cat::Args): cat::run;
        /// Merge sorted files: each object once, in its highest version
        ///
        /// In history files, each version is written once. Blobs that are equal in several files are copied once.
        #[command(after_help = "Example:\n  pbfhogg merge north.osm.pbf south.osm.pbf -o both.osm.pbf")]
        Merge(sort::Args): sort::run[true];
        Sort(sort::Args): sort::run[false];
        Renumber(renumber::Args): renumber::run;
        TagsEdit(tags_edit::Args): tags_edit::run;
        Repack(repack::Args): repack::run;
        Split(split::Args): split::run;
        Export(export::Args): export::run
            as ("export", "Turn objects into features: GeoJSON, GeoParquet, CSV, WKT, tables");
        Coastline(coastline::Args): coastline::run;
        AddLocationsToWays(add_locations_to_ways::Args): add_locations_to_ways::run;
        CreateLocationsIndex(locations_index::CreateArgs): locations_index::create;
        QueryLocationsIndex(locations_index::QueryArgs): locations_index::query;
    }
    "Ask what is at a place" {
        BuildGeocodeIndex(geocode::BuildArgs): geocode::build;
        Geocode(geocode::Args): geocode::run;
    }
    "Help" {
        Help(help::Args): help::run;
        Completions(completions::Args): completions::run;
        Man(man::Args): man::run;
        #[command(hide = true)]
        Version(help::VersionArgs): help::version;
    }
    "Make data" {
        Demo(demo::Args): demo::run;
        Synth(synth::Args): synth::run;
        Degrade(degrade::Args): degrade::run;
    }
}

/// The answer of a command that ended without an error. The answer determines the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandAnswer {
    /// The command did its work, and every check or comparison succeeded: exit status 0.
    Yes,
    /// A check or comparison failed, or something that the user asked for was not found: exit status 1.
    No,
}

impl CommandAnswer {
    /// Returns [`CommandAnswer::Yes`] if `is_yes`, else [`CommandAnswer::No`].
    const fn yes_if(is_yes: bool) -> Self {
        if is_yes { Self::Yes } else { Self::No }
    }
}

/// Parses the command line, runs the command, and returns the exit status. Prints an error to standard error.
pub fn main() -> ExitCode {
    ExitCode::from(main_with(std::env::args_os().collect()))
}

/// Does the same as [`main`] for the command line `words`, which begins with the name of the program.
pub fn main_with(words: Vec<OsString>) -> u8 {
    let (conventions, words) = conventions::choose(words);
    let (cli, matches) = match parse(conventions, words) {
        Ok(parsed) => parsed,
        Err(rejected) => return rejected.report(conventions.name),
    };
    if !handles_signals(&cli.command) {
        signals::install();
    }
    let session = Session::new(conventions, &matches, None);
    match run(&session, &cli.command, &matches) {
        Ok(CommandAnswer::Yes) => 0,
        Ok(CommandAnswer::No) => 1,
        Err(error) => report_failure(conventions, &error),
    }
}

/// A command line that is not run, because it is wrong or asks for help or the version.
struct Rejected {
    error: clap::Error,
    /// The mistake in the command line; `None` if the user asked for help or the version.
    mistake: Option<String>,
}

impl Rejected {
    /// Prints the help or the version if the user asked for it, otherwise the mistake. Returns the exit status.
    fn report(&self, name: &str) -> u8 {
        match &self.mistake {
            Some(line) => print_to_stderr(&format!("{name}: error: {line}\n")),
            None => {
                let _ = self.error.print();
            }
        }
        if self.error.use_stderr() { 2 } else { 0 }
    }
}

/// Returns the definition of the command line under the given conventions.
fn program(conventions: &'static Conventions) -> clap::Command {
    adapt_values(
        conventions.adapt(usage::with_command_list(Cli::command())),
        conventions,
    )
}

/// Makes the arguments of a command and of its subcommands parse their values under the given conventions.
fn adapt_values(command: clap::Command, conventions: &'static Conventions) -> clap::Command {
    let command = command.mut_args(|arg| {
        let arg = with_values(arg, conventions, args::FormatSpec::parse);
        let arg = with_values(arg, conventions, args::InputKind::parse);
        let arg = with_values(arg, conventions, args::OutputBox::parse);
        let arg = with_values(arg, conventions, args::parse_header);
        with_values(arg, conventions, diff::DiffFormat::parse)
    });
    command.mut_subcommands(|command| adapt_values(command, conventions))
}

/// Parses a command line, which begins with the name of the program.
fn parse(
    conventions: &'static Conventions,
    words: Vec<OsString>,
) -> Result<(Cli, clap::ArgMatches), Rejected> {
    let words = argv_compat::rewrite(words.into_iter());
    let mut program = program(conventions);
    let matches = program.try_get_matches_from_mut(&words);
    let parsed = matches.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    parsed.map_err(|error| Rejected {
        mistake: usage::mistake(&error, &program, &words),
        error,
    })
}

/// Whether a command runs until a signal arrives, and handles signals itself.
fn handles_signals(command: &Command) -> bool {
    match command {
        Command::Geocode(args) => args.is_service(),
        Command::Update(args) => args.is_watch(),
        _ => false,
    }
}

/// Prints an error. Returns the exit status.
fn report_failure(conventions: &Conventions, error: &anyhow::Error) -> u8 {
    let closed_pipe = matches!(error.downcast_ref(), Some(crate::Error::ClosedPipe));
    if closed_pipe {
        return 0;
    }
    print_to_stderr(&format!(
        "{}: error: {}\n",
        conventions.name,
        message(error)
    ));
    status(conventions, error)
}

/// Returns the message of an error, with advice. The message can contain file names and text from files, so control
/// characters are escaped to keep it on one line.
fn message(error: &anyhow::Error) -> String {
    let message = error
        .downcast_ref()
        .map_or_else(|| error.to_string(), advice::explain);
    message.chars().flat_map(escape_if_control).collect()
}

/// Returns the exit status after an error.
fn status(conventions: &Conventions, error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<crate::Error>() {
        // An error that is not a `crate::Error` is a mistake in the command line that clap could not detect.
        None => 2,
        Some(error) => match error.kind() {
            crate::ErrorKind::Usage => 2,
            crate::ErrorKind::Shrunk => 1,
            crate::ErrorKind::Command => COMMAND_FAILED,
            crate::ErrorKind::Locked if conventions.error_status == 2 => LOCKED,
            _ => conventions.error_status,
        },
    }
}

/// The exit status of `update` if the command of --exec has failed.
const COMMAND_FAILED: u8 = 3;
/// The exit status if another run is replacing a file that the command would replace.
const LOCKED: u8 = 4;

/// Returns the character itself, or the escape of a control character, such as `\n`.
fn escape_if_control(char: char) -> impl Iterator<Item = char> {
    let escaped = char.is_control().then(|| char.escape_default());
    let shown = escaped.is_none().then_some(char);
    escaped.into_iter().flatten().chain(shown)
}
