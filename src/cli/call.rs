//! Runs commands inside of another program, such as the interpreter of Python.

use super::conventions::PBFHOGG;
use super::session::Session;
use super::{Cli, Command, CommandAnswer, handles_signals, parse, run, usage};
use crate::{Context, Error};
use clap::{ArgAction, CommandFactory};
use serde::Serialize;
use std::ffi::OsString;

/// The result of a command that [`call`] ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    /// Whether the exit status of the program would be 0. Otherwise a check failed, files differ, or something was not
    /// found.
    pub is_yes: bool,
    /// The text that the program would print to standard output.
    pub printed: String,
}

/// The reason why [`call`] failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The words are not a valid command line of the program.
    #[error("{0}")]
    Usage(String),
    /// The command failed.
    #[error(transparent)]
    Failed(#[from] Error),
}

/// Runs a command on the calling thread, and returns what it prints. `words` are the words of a command line after the
/// name of the program. The command sends messages to the observer of `ctx`, unless it shows a progress bar, and it
/// ends when `ctx` is cancelled. Output that a command writes to the path `-` still goes to standard output.
///
/// # Errors
///
/// The words are wrong, or the command fails.
pub fn call(words: Vec<OsString>, ctx: &Context) -> Result<Called, CallError> {
    let name = OsString::from("pbfhogg");
    let words = [name].into_iter().chain(words).collect();
    let (cli, matches) = parse(&PBFHOGG, words).map_err(|rejected| {
        let text = rejected
            .mistake
            .unwrap_or_else(|| rejected.error.to_string());
        CallError::Usage(text)
    })?;
    if matches!(cli.command, Command::Geocode(_) | Command::Show(_))
        || handles_signals(&cli.command)
    {
        let cause =
            "the program alone runs this command: it needs a terminal, standard input, or signals";
        return Err(CallError::Usage(cause.into()));
    }
    let session = Session::new(&PBFHOGG, &matches, Some(ctx));
    let answer = run(&session, &cli.command, &matches);
    let printed = session.into_printed();
    match answer {
        Ok(answer) => Ok(Called {
            is_yes: answer == CommandAnswer::Yes,
            printed,
        }),
        Err(error) => Err(match error.downcast::<Error>() {
            Ok(error) => CallError::Failed(error),
            Err(error) => CallError::Usage(error.to_string()),
        }),
    }
}

/// A command of the program, described for callers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CommandDescription {
    /// The name.
    pub name: String,
    /// The first line of the help.
    pub about: String,
    /// The positional arguments, in order.
    pub arguments: Vec<ArgumentDescription>,
    /// The options.
    pub options: Vec<ArgumentDescription>,
}

/// An argument or an option of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ArgumentDescription {
    /// The name, without the dashes of an option.
    pub name: String,
    /// The first line of the help.
    pub about: String,
    /// Whether the argument must be given.
    pub is_required: bool,
    /// Whether the argument may have several values, or be given several times.
    pub is_repeated: bool,
    /// Whether the argument has a value. Otherwise it is a switch.
    pub has_value: bool,
    /// Whether the argument is the option `-o`, which names the output.
    pub is_output: bool,
}

/// Describes the commands that [`call`] runs: those that the help lists, except those that need a terminal or standard
/// input.
pub fn commands() -> Vec<CommandDescription> {
    const OF_TERMINALS: [&str; 6] = ["help", "completions", "man", "demo", "show", "geocode"];
    let mut program = usage::with_command_list(Cli::command());
    program.build();
    let commands = program.get_subcommands();
    let described = commands
        .filter(|command| !command.is_hide_set() && !OF_TERMINALS.contains(&command.get_name()))
        .map(|command| {
            let shown =
                |arg: &&clap::Arg| !["help", "version", "watch"].contains(&arg.get_id().as_str());
            let of = |is_option: bool| {
                let args = command.get_arguments().filter(shown);
                let args = args.filter(move |arg| arg.is_positional() != is_option);
                args.map(describe_argument).collect()
            };
            CommandDescription {
                name: command.get_name().to_owned(),
                about: command.get_about().map_or_else(String::new, first_line),
                arguments: of(false),
                options: of(true),
            }
        });
    described.collect()
}

fn describe_argument(arg: &clap::Arg) -> ArgumentDescription {
    let many = arg
        .get_num_args()
        .is_some_and(|count| count.max_values() > 1);
    ArgumentDescription {
        name: arg.get_long().unwrap_or(arg.get_id().as_str()).to_owned(),
        about: arg.get_help().map_or_else(String::new, first_line),
        is_required: arg.is_required_set(),
        is_repeated: many || matches!(arg.get_action(), ArgAction::Append),
        has_value: arg.get_action().takes_values(),
        is_output: arg.get_short() == Some('o') && arg.get_action().takes_values(),
    }
}

fn first_line(text: &clap::builder::StyledStr) -> String {
    let text = text.to_string();
    text.lines().next().map_or_else(String::new, str::to_owned)
}
