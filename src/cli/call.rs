//! Runs commands inside of another program, such as the interpreter of Python.

use super::{Answer, Cli, Command, argv_compat, handles_signals, run, usage};
use crate::{Context, Error};
use clap::{ArgAction, CommandFactory, FromArgMatches};
use serde::Serialize;
use std::cell::RefCell;
use std::ffi::OsString;

/// The result of a command that was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    /// Whether the exit status of the program would be 0. Otherwise a check failed, files differ, or something was not
    /// found.
    pub is_yes: bool,
    /// The text that the program would print to standard output.
    pub printed: String,
}

/// An error of a command that was called.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The words are no command line of the program.
    #[error("{0}")]
    Usage(String),
    /// The command failed.
    #[error(transparent)]
    Failed(#[from] Error),
}

thread_local! {
    /// The call that the current thread works for.
    static CALL: RefCell<Option<Call>> = const { RefCell::new(None) };
}

struct Call {
    ctx: Context,
    printed: String,
}

/// Runs a command on the calling thread, and returns what it prints. `words` are those of a command line after the name
/// of the program. The command sends messages to the observer of `ctx`, unless it shows a progress bar, and it ends
/// when `ctx` is cancelled. What a command writes to `-` still goes to standard output.
///
/// # Errors
///
/// The words are wrong, or the command fails.
pub fn call(words: Vec<OsString>, ctx: &Context) -> Result<Called, CallError> {
    let name = OsString::from("pbfhogg");
    let words = argv_compat::rewrite([name].into_iter().chain(words));
    let matches = usage::with_groups(Cli::command()).try_get_matches_from(words);
    let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = cli.map_err(|error| {
        CallError::Usage(usage::mistake(&error).unwrap_or_else(|| error.to_string()))
    })?;
    if matches!(cli.command, Command::Geocode(_) | Command::Show(_))
        || handles_signals(&cli.command)
    {
        let cause =
            "the program alone runs this command: it needs a terminal, standard input, or signals";
        return Err(CallError::Usage(cause.into()));
    }
    CALL.set(Some(Call {
        ctx: ctx.clone(),
        printed: String::new(),
    }));
    let active = Active;
    let answer = run(&cli.command);
    let printed = CALL.take().map_or_else(String::new, |call| call.printed);
    drop(active);
    match answer {
        Ok(answer) => Ok(Called {
            is_yes: answer == Answer::Yes,
            printed,
        }),
        Err(error) => Err(match error.downcast::<Error>() {
            Ok(error) => CallError::Failed(error),
            Err(error) => CallError::Usage(error.to_string()),
        }),
    }
}

/// Ends the call of the current thread when it is dropped, also if the command panics.
struct Active;

impl Drop for Active {
    fn drop(&mut self) {
        CALL.take();
    }
}

/// Keeps text that would be printed to standard output. Returns `false` if the current thread works for no call.
pub(super) fn keep(text: &str) -> bool {
    CALL.with_borrow_mut(|call| {
        if let Some(call) = call {
            call.printed.push_str(text);
        }
        call.is_some()
    })
}

/// Whether the current thread works for a call.
pub(super) fn is_active() -> bool {
    CALL.with_borrow(Option::is_some)
}

/// Makes `ctx` end when the call is cancelled and, unless `has_bar`, send messages to the observer of the call.
pub(super) fn adopt(ctx: &mut Context, has_bar: bool) {
    CALL.with_borrow(|call| {
        if let Some(call) = call {
            ctx.cancellation = call.ctx.cancellation.clone();
            if !has_bar {
                ctx.observer = call.ctx.observer.clone();
            }
        }
    });
}

/// A command of the program, described for callers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CommandDescription {
    /// The name.
    pub name: String,
    /// The first line of the help.
    pub about: String,
    /// The arguments without a name, in order.
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
    /// Whether it must be given.
    pub is_required: bool,
    /// Whether it may have several values, or be given several times.
    pub is_repeated: bool,
    /// Whether it has a value. Otherwise it is a switch.
    pub has_value: bool,
    /// Whether it is the option `-o`, which names the output.
    pub is_output: bool,
}

/// Describes the commands that [`call`] runs: those of the help, except those that need a terminal or standard input.
pub fn commands() -> Vec<CommandDescription> {
    const OF_TERMINALS: [&str; 6] = ["help", "completions", "man", "demo", "show", "geocode"];
    let mut program = usage::with_groups(Cli::command());
    program.build();
    let commands = program.get_subcommands();
    let described = commands
        .filter(|command| !command.is_hide_set() && !OF_TERMINALS.contains(&command.get_name()))
        .map(|command| {
            let shown = |arg: &&clap::Arg| {
                !["help", "version", "stats", "watch"].contains(&arg.get_id().as_str())
            };
            let of = |is_option: bool| {
                let args = command.get_arguments().filter(shown);
                let args = args.filter(move |arg| arg.is_positional() != is_option);
                args.map(describe).collect()
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

fn describe(arg: &clap::Arg) -> ArgumentDescription {
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
