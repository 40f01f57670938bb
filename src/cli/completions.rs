//! Completions for shells.

use super::args::{read_formats, written_formats};
use super::session::Session;
use super::{Cli, CommandAnswer, help, usage};
use crate::commands::export::Theme;
use crate::formats::TextFormat;
use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory};
use clap_complete::Shell;

/// Print a completion script for a shell
///
/// With the script, the shell completes commands, options and their values when you press the Tab key.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg completions bash > ~/.local/share/bash-completion/completions/pbfhogg
  pbfhogg completions zsh > ~/.zfunc/_pbfhogg
  pbfhogg completions fish > ~/.config/fish/completions/pbfhogg.fish")]
pub struct Args {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut with_completion_values(Cli::command()),
        session.conventions.name,
        &mut script,
    );
    session.answer(&String::from_utf8_lossy(&script))
}

/// The values that a completion script lists for options that also accept other values. Each row has the command, the
/// name of the option, and the values.
const VALUES: [(&str, &str, &str); 6] = [
    (
        "export",
        "output-format",
        "geojson geojsonseq csv text pg geoparquet geojson.gz geojsonseq.gz csv.gz text.gz pg.gz",
    ),
    ("export", "with", "area length centroid country names h3:"),
    ("export", "partition", "geometry_type theme quadkey: h3:"),
    (
        "diff",
        "format",
        "text opl debug osc osc.pbf adiff geojson geojsonseq csv parquet",
    ),
    ("derive-changes", "format", "osc osc.pbf"),
    (
        "augmented-diff",
        "format",
        "adiff geojson geojsonseq csv parquet",
    ),
];

/// Returns the values that a completion script lists for an option of a command; `None` if the option itself lists its
/// values, or accepts any value.
fn completion_values(command: &str, option: &str) -> Option<Vec<&'static str>> {
    if (command, option) == ("export", "theme") {
        let themes = Theme::built_in().into_iter();
        return Some(themes.map(|theme| leak_word(theme.name)).collect());
    }
    let mut values = VALUES.into_iter();
    let found = values.find(|(of, known, _)| (*of, *known) == (command, option));
    if let Some((.., values)) = found {
        return Some(values.split(' ').collect());
    }
    let written = TextFormat::writable_formats().map(|facts| facts.names[0]);
    match (command, option) {
        ("show", "output-format") => Some(written.collect()),
        (_, "output-format") => {
            let others = ["osh.pbf", "osc.pbf"].into_iter();
            let compressed =
                |name: &str| ["gz", "bz2"].map(|ending| leak_word(format!("{name}.{ending}")));
            let compressed = written.flat_map(compressed);
            Some(written_formats().chain(others).chain(compressed).collect())
        }
        (_, "input-format") => {
            let others = ["xml", "osc.pbf", "osc.opl"];
            Some(read_formats().chain(others).collect())
        }
        _ => None,
    }
}

/// Keeps a word in memory until the program ends, because clap demands static strings.
fn leak_word(word: String) -> &'static str {
    word.leak()
}

/// Adds the parts of the command line that only completions use: the values of options that also accept other values,
/// and the words that `help` explains.
fn with_completion_values(program: Command) -> Command {
    let names = usage::command_names().into_iter().map(leak_word);
    let words = names.chain(help::topics());
    let words = words.map(|word| Command::new(word).disable_help_flag(true));
    let program = program.mut_subcommand("help", |help| help.subcommands(words));
    program.mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        command.mut_args(
            |arg| match completion_values(&name, arg.get_long().unwrap_or_default()) {
                Some(values) => arg.value_parser(PossibleValuesParser::new(values)),
                None => arg,
            },
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_with_values_exists() {
        let program = Cli::command();
        for (name, option, _) in VALUES {
            let mut commands = program.get_subcommands().filter(|of| of.get_name() == name);
            let has = |of: &Command| of.get_arguments().any(|arg| arg.get_long() == Some(option));
            assert!(commands.any(has), "{name} --{option}");
        }
        with_completion_values(program).debug_assert();
    }
}
