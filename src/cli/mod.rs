//! The command line. The module of each subcommand defines its arguments, converts them to the options of a command in
//! `commands`, and formats the report.

mod add_locations_to_ways;
mod apply_changes;
mod args;
mod argv_compat;
mod augmented_diff;
mod call;
mod cat;
mod changeset_filter;
mod check;
mod completions;
mod conventions;
mod degrade;
mod demo;
mod diff;
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
mod renumber;
mod repack;
mod repair;
mod show;
mod show_object;
mod signals;
mod sort;
mod split;
mod synth;
mod tags_count;
mod tags_filter;
mod time_filter;
mod update;
mod usage;
mod wrong_files;

use anyhow::Result;
pub use call::{ArgumentDescription, CallError, Called, CommandDescription, call, commands};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use conventions::Conventions;
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

#[derive(Debug, Subcommand)]
enum Command {
    Inspect(inspect::Args),
    Fileinfo(fileinfo::Args),
    #[command(name = "tags-count", hide = true)]
    TagsCount(tags_count::Args),
    Show(show_object::Args),
    Check(check::Args),
    #[command(name = "check-refs", hide = true)]
    CheckRefs(check::Args),
    Diff(diff::Args),
    #[command(name = "derive-changes", hide = true)]
    DeriveChanges(diff::Args),
    Cat(cat::Args),
    Sort(sort::Args),
    /// Merge sorted files: each object once, in its highest version
    ///
    /// In history files, each version is written once. Blobs that are equal in several files are copied once.
    #[command(after_help = "Example:\n  pbfhogg merge north.osm.pbf south.osm.pbf -o both.osm.pbf")]
    Merge(sort::Args),
    Update(update::Args),
    ApplyChanges(apply_changes::Args),
    #[command(visible_alias = "adiff")]
    AugmentedDiff(augmented_diff::Args),
    MergeChanges(merge_changes::Args),
    Extract(extract::Args),
    Getid(getid::Args),
    #[command(name = "removeid", hide = true)]
    RemoveId(getid::Args),
    Getparents(getparents::Args),
    TagsFilter(tags_filter::Args),
    Export(export::Args),
    BuildGeocodeIndex(geocode::BuildArgs),
    Geocode(geocode::Args),
    AddLocationsToWays(add_locations_to_ways::Args),
    Renumber(renumber::Args),
    Repack(repack::Args),
    Repair(repair::Args),
    Split(split::Args),
    Degrade(degrade::Args),
    TimeFilter(time_filter::Args),
    ChangesetFilter(changeset_filter::Args),
    Synth(synth::Args),
    Demo(demo::Args),
    CreateLocationsIndex(locations_index::CreateArgs),
    QueryLocationsIndex(locations_index::QueryArgs),
    Help(help::Args),
    Completions(completions::Args),
    Man(man::Args),
    /// Print the version
    #[command(hide = true)]
    Version,
}

/// The answer of a command that ended without an error. The answer determines the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// The command did its work, and every check or comparison succeeded: exit status 0.
    Yes,
    /// A check or comparison failed, or something that the user asked for was not found: exit status 1.
    No,
}

impl Answer {
    /// Returns [`Answer::Yes`] if `is_yes`, else [`Answer::No`].
    const fn yes_if(is_yes: bool) -> Self {
        if is_yes { Self::Yes } else { Self::No }
    }
}

/// Parses the command line, runs the command, and returns the exit status. Prints an error to standard error.
pub fn main() -> ExitCode {
    ExitCode::from(main_with(std::env::args_os().collect()))
}

/// Does the same as [`main`] with a given command line, which begins with the name of the program.
pub fn main_with(args: Vec<std::ffi::OsString>) -> u8 {
    let args = conventions::choose(args);
    let words = argv_compat::rewrite(args.into_iter());
    let mut command = usage::with_groups(Cli::command());
    if Conventions::current().reads_stdin {
        command = conventions::with_stdin(command);
    }
    if Conventions::current().ignores_force {
        command = conventions::with_force(command);
    }
    let parsed = command.try_get_matches_from(words);
    let parsed = parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return not_parsed(&error),
    };
    if !handles_signals(&cli.command) {
        signals::install();
    }
    let answer = args::open_stats(&matches).and_then(|()| run(&cli.command));
    args::abandon_stats();
    match answer {
        Ok(Answer::Yes) => 0,
        Ok(Answer::No) => 1,
        Err(error) => failure(&error),
    }
}

/// Whether a command runs until a signal arrives, and handles signals itself.
fn handles_signals(command: &Command) -> bool {
    match command {
        Command::Geocode(args) => args.is_service(),
        Command::Update(args) => args.is_watch(),
        _ => false,
    }
}

fn run(command: &Command) -> Result<Answer> {
    match command {
        Command::Inspect(args) => inspect::run(args),
        Command::Fileinfo(args) => fileinfo::run(args),
        Command::ChangesetFilter(args) => changeset_filter::run(args),
        Command::CreateLocationsIndex(args) => locations_index::create(args),
        Command::QueryLocationsIndex(args) => locations_index::query(args),
        Command::Help(args) => help::run(args, Cli::command()),
        Command::Completions(args) => completions::run(args, Cli::command()),
        Command::Man(args) => man::run(args, Cli::command()),
        Command::TagsCount(args) => tags_count::run(args),
        Command::Show(args) => show_object::run(args),
        Command::Check(args) => check::run(args, false),
        Command::CheckRefs(args) => check::run(args, true),
        Command::Diff(args) => diff::run(args, false),
        Command::DeriveChanges(args) => diff::run(args, true),
        Command::Cat(args) => cat::run(args),
        Command::Sort(args) => sort::run(args, false),
        Command::Merge(args) => sort::run(args, true),
        Command::Update(args) => update::run(args),
        Command::ApplyChanges(args) => apply_changes::run(args),
        Command::AugmentedDiff(args) => augmented_diff::run(args),
        Command::Extract(args) => extract::run(args),
        Command::Getid(args) => getid::run(args, false),
        Command::RemoveId(args) => getid::run(args, true),
        Command::Getparents(args) => getparents::run(args),
        Command::TagsFilter(args) => tags_filter::run(args),
        Command::MergeChanges(args) => merge_changes::run(args),
        Command::AddLocationsToWays(args) => add_locations_to_ways::run(args),
        Command::Export(args) => export::run(args),
        Command::BuildGeocodeIndex(args) => geocode::build(args),
        Command::Geocode(args) => geocode::run(args),
        Command::Renumber(args) => renumber::run(args),
        Command::Repack(args) => repack::run(args),
        Command::Repair(args) => repair::run(args),
        Command::Split(args) => split::run(args),
        Command::Degrade(args) => degrade::run(args),
        Command::TimeFilter(args) => time_filter::run(args),
        Command::Synth(args) => synth::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Version => {
            print(concat!("pbfhogg ", env!("CARGO_PKG_VERSION"), "\n")).map(|()| Answer::Yes)
        }
    }
}

/// Prints the help or the version if the user asked for it, otherwise the error in the command line. Returns the exit
/// status.
fn not_parsed(error: &clap::Error) -> u8 {
    match usage::mistake(error) {
        Some(line) => complain(&format!("{}: error: {line}\n", Conventions::current().name)),
        None => {
            let _ = error.print();
        }
    }
    if error.use_stderr() { 2 } else { 0 }
}

fn failure(error: &anyhow::Error) -> u8 {
    let closed_pipe = matches!(error.downcast_ref(), Some(crate::Error::ClosedPipe));
    if closed_pipe {
        return 0;
    }
    let advice = error.downcast_ref().and_then(crate::Error::advice);
    let message = match advice {
        Some(advice) => format!("{error}; {advice}"),
        None => error.to_string(),
    };
    // The message can contain file names and text from files, so control characters are escaped to keep it on one line.
    let line: String = message.chars().flat_map(printable).collect();
    let conventions = Conventions::current();
    complain(&format!("{}: error: {line}\n", conventions.name));
    match error.downcast_ref::<crate::Error>() {
        // An error that is no `crate::Error` is a mistake in the command line that clap could not detect.
        None | Some(crate::Error::Usage(_)) => 2,
        Some(error) if error.kind() == crate::ErrorKind::Command => COMMAND_FAILED,
        Some(_) => conventions.error_status,
    }
}

/// The exit status of `update` if the command after the update has failed.
const COMMAND_FAILED: u8 = 3;

/// Prints to standard error, but not for a [`call`]. Ignores a failure, which could not be reported anywhere else.
fn complain(text: &str) {
    use std::io::Write;
    if call::is_active() {
        return;
    }
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Returns the character itself, or the escape of a control character, such as `\n`.
fn printable(char: char) -> impl Iterator<Item = char> {
    let escaped = char.is_control().then(|| char.escape_default());
    let shown = escaped.is_none().then_some(char);
    escaped.into_iter().flatten().chain(shown)
}

/// Prints text to standard output, or keeps it for a [`call`]. If the reader has closed the pipe, returns [`crate::Error::ClosedPipe`], after which
/// the program exits successfully.
fn print(text: &str) -> Result<()> {
    use std::io::Write;
    if call::keep(text) {
        return Ok(());
    }
    let written = std::io::stdout().write_all(text.as_bytes());
    let path = std::path::Path::new("standard output");
    Ok(written.map_err(|error| crate::Error::io(path, "cannot write", error))?)
}
