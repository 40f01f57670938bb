//! The help of the program, with the commands grouped by purpose, and one-line messages for mistakes on the command
//! line.

use super::{Cli, LISTED, words};
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;
use std::fmt::Write;

/// Returns the commands that the help lists: the purpose, the name and the description of each. `program` has its
/// commands in the order of their definition.
fn listed_commands(
    program: &clap::Command,
) -> impl Iterator<Item = (&'static str, String, String)> {
    let commands = program.get_subcommands().zip(LISTED);
    commands.filter_map(|(command, (purpose, listed))| match listed {
        Some((name, about)) => Some((*purpose, (*name).to_owned(), (*about).to_owned())),
        None if command.is_hide_set() => None,
        None => {
            let about = command.get_about().map(ToString::to_string);
            Some((
                *purpose,
                command.get_name().to_owned(),
                about.unwrap_or_default(),
            ))
        }
    })
}

/// Returns the names of the commands that the help lists.
pub fn command_names() -> Vec<String> {
    let program = Cli::command();
    let names = listed_commands(&program).map(|(_, name, _)| name);
    names.filter(|name| !name.contains(' ')).collect()
}

/// Adds the list of all commands to the help of the program.
pub fn with_command_list(command: clap::Command) -> clap::Command {
    let (mut list, mut last) = (String::new(), "");
    for (purpose, name, about) in listed_commands(&command) {
        if purpose != last {
            let end = if last.is_empty() { "" } else { "\n" };
            let _ = writeln!(list, "{end}{purpose}:");
            last = purpose;
        }
        let _ = writeln!(list, "  {name:<23} {about}");
    }
    list.push('\n');
    list.push_str(
        "`pbfhogg help COMMAND` shows all options, with examples. Called as `pbfhogg osmium COMMAND`,\n\
         or by a link named osmium, the program follows the conventions of that tool.\n\
         An input may be a URL: only the parts that a command reads are fetched.",
    );
    command
        .help_template(
            "{about-with-newline}\n{usage-heading} {usage}{after-help}\n\nOptions:\n{options}",
        )
        .after_help(list)
}

/// Converts an error of clap about the command line `words` to a one-line message that names the mistake and how to
/// correct it. Returns `None` if the user made no mistake, but asked for help or the version.
pub fn mistake(error: &clap::Error, program: &clap::Command, words: &[OsString]) -> Option<String> {
    let (command, definition) = resolve_subcommand(program, words);
    let help = if command.is_empty() {
        "see `pbfhogg --help`".to_owned()
    } else {
        format!("see `pbfhogg {command} --help`")
    };
    let argument = context(error, ContextKind::InvalidArg).unwrap_or_default();
    Some(match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        | ErrorKind::DisplayVersion => return None,
        ErrorKind::MissingRequiredArgument => {
            let missing = match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::Strings(names)) => names.clone(),
                _ => vec![argument],
            };
            format!("{command}: {}; {help}", missing_arguments_message(&missing))
        }
        ErrorKind::UnknownArgument if argument.starts_with('-') => {
            let name = if command.is_empty() {
                "pbfhogg"
            } else {
                &command
            };
            let meant = match words::negative_box(words, &argument) {
                Some(of_box) => words::for_argument(name, definition, of_box),
                None => words::for_option(name, definition, &argument),
            };
            match meant {
                Some(meant) => format!("{name} has no option {argument}: {meant}"),
                None => unknown_option_message(error, name, &argument, &help),
            }
        }
        ErrorKind::UnknownArgument if takes_one_file(definition) => {
            let meant = words::for_argument(&command, definition, &argument);
            let meant = meant.map_or_else(String::new, |meant| format!(": {meant}"));
            format!("{command} takes one file; '{argument}' is one too many{meant}")
        }
        ErrorKind::UnknownArgument => {
            format!("{command}: '{argument}' is one argument too many; {help}")
        }
        ErrorKind::InvalidSubcommand => {
            let name = context(error, ContextKind::InvalidSubcommand).unwrap_or_default();
            unknown_command(&name, program)
        }
        _ => other_mistake_message(error, &command, &argument, &help),
    })
}

/// Returns the command to which a command line refers, with its name, such as `inspect tags`. Without a command,
/// returns the program and an empty name.
fn resolve_subcommand<'p>(
    program: &'p clap::Command,
    words: &[OsString],
) -> (String, &'p clap::Command) {
    let mut words = words.iter().skip(1);
    let first = words.next().and_then(|word| program.find_subcommand(word));
    let Some(command) = first else {
        return (String::new(), program);
    };
    let is_option = |word: &&OsString| word.to_string_lossy().starts_with('-');
    let next = words.find(|word| !is_option(word));
    match next.and_then(|word| command.find_subcommand(word)) {
        Some(view) => (format!("{} {}", command.get_name(), view.get_name()), view),
        None => (command.get_name().to_owned(), command),
    }
}

/// Whether a command has exactly one argument besides its options, and this argument is one file.
fn takes_one_file(command: &clap::Command) -> bool {
    let mut positionals = command.get_positionals();
    let file = positionals.next().filter(|_| positionals.next().is_none());
    file.is_some_and(|file| {
        let names = file.get_value_names().unwrap_or_default();
        let is_one = file
            .get_num_args()
            .is_none_or(|count| count.max_values() == 1);
        names == ["FILE"] && is_one
    })
}

/// Returns the context of the given kind that clap attached to an error, as a string.
fn context(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(" ")),
        Some(ContextValue::StyledStr(text)) => Some(text.to_string()),
        _ => None,
    }
}

/// Returns the message for an option that the command does not have.
fn unknown_option_message(error: &clap::Error, command: &str, option: &str, help: &str) -> String {
    let meant = context(error, ContextKind::SuggestedArg);
    match meant.filter(|meant| is_near(meant, option)) {
        Some(meant) => format!("{command} has no option {option}; did you mean {meant}? ({help})"),
        None => format!("{command} has no option {option}; {help}"),
    }
}

/// Returns the message for a command that does not exist.
pub fn unknown_command(name: &str, program: &clap::Command) -> String {
    if let Some(line) = words::for_command(name) {
        return format!("there is no command '{name}': {line}");
    }
    let names = program.get_subcommands().map(clap::Command::get_name);
    let near = names.filter(|meant| is_near(meant, name));
    let meant = near.min_by_key(|meant| strsim::osa_distance(meant, name));
    match (meant, words::for_file(name)) {
        (Some(meant), _) => format!("there is no command '{name}'; did you mean {meant}?"),
        (None, Some(message)) => message,
        (None, None) => {
            format!("there is no command '{name}'; `pbfhogg --help` lists them all")
        }
    }
}

/// Returns the message for a mistake for which this module has no message of its own. The message has the first line of
/// clap's message, without the usage and the tips that follow.
fn other_mistake_message(error: &clap::Error, command: &str, argument: &str, help: &str) -> String {
    let rendered = error.to_string();
    let line = rendered.lines().next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line).trim_end();
    // This conflict means that clap took a second file for the name of a subcommand.
    if let (ErrorKind::ArgumentConflict, Some(name)) =
        (error.kind(), context(error, ContextKind::InvalidSubcommand))
    {
        return format!("{command} takes one file; '{name}' is one too many");
    }
    let has_json = command.contains("inspect") || command.contains("fileinfo");
    let json = match (argument, has_json) {
        ("--jobs <N>", true) => " (JSON is --json)",
        _ => "",
    };
    let values = match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) if !values.is_empty() => {
            format!(" (expected {})", values.join(", "))
        }
        _ => String::new(),
    };
    format!("{command}: {line}{values}{json}; {help}")
}

/// Returns the message for missing arguments, given their names as clap formats them.
fn missing_arguments_message(names: &[String]) -> String {
    // clap formats alternatives as `<--bbox <BOX>|--polygon <FILE>>`, which becomes `--bbox BOX or --polygon FILE`.
    let names: Vec<String> = names
        .iter()
        .map(|name| name.replace(['<', '>'], "").replace('|', " or "))
        .collect();
    format!("{} is missing", names.join(" "))
}

/// Whether `typed` is probably a misspelling or an abbreviation of `meant`. An abbreviation has three letters or more.
/// A misspelling changes, adds or removes one letter, or swaps two adjacent letters. If both words have six letters or
/// more, two such mistakes are accepted. Leading dashes are ignored.
pub fn is_near(meant: &str, typed: &str) -> bool {
    let [meant, typed] = [meant, typed].map(|text| text.trim_start_matches('-'));
    let most = (meant.len().min(typed.len()) / 3).clamp(1, 2);
    typed.len() > 1
        && (typed.len() > 2 && meant.starts_with(typed)
            || strsim::osa_distance(meant, typed) <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_every_command_once() {
        let program = Cli::command();
        let names: Vec<_> = listed_commands(&program).map(|(_, name, _)| name).collect();
        // These commands are hidden, because `inspect tags`, `check --refs` and `--version` do the same.
        let aliases = ["tags-count", "check-refs", "version"];
        for command in program.get_subcommands() {
            let name = command.get_name();
            let count = names.iter().filter(|listed| *listed == name).count();
            assert_eq!(count, usize::from(!aliases.contains(&name)), "{name}");
        }
        for name in command_names() {
            assert!(program.find_subcommand(&name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_suggestion_differs_by_a_typing_mistake() {
        for (meant, typed) in [
            ("--overwrite", "--overwirte"),
            ("--json", "--josn"),
            ("cat", "ct"),
            ("--jobs", "--job"),
            ("extract", "extrac"),
        ] {
            assert!(is_near(meant, typed), "{meant} {typed}");
        }
        for (meant, typed) in [
            ("--json", "--bbox"),
            ("--stats", "--set"),
            ("cat", "rat-race"),
        ] {
            assert!(!is_near(meant, typed), "{meant} {typed}");
        }
    }
}
