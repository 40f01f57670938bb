//! Completions for shells.

use super::session::Session;
use super::{CommandAnswer, help, usage};
use anyhow::Result;
use clap::Command;
use clap::builder::PossibleValuesParser;
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

pub fn run(session: &Session, args: &Args, program: Command) -> Result<CommandAnswer> {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut with_values(program),
        session.conventions.name,
        &mut script,
    );
    session.print(&String::from_utf8_lossy(&script))?;
    Ok(CommandAnswer::Yes)
}

/// The names of the built-in themes.
const THEMES: &[&str] = &[
    "roads",
    "buildings",
    "pois",
    "addresses",
    "landuse",
    "water",
    "boundaries",
    "places",
    "transit",
];

/// The values of options that also accept other values: the command, the name of the option, and the values. An empty
/// command stands for all commands that are not listed with this option.
const VALUES: &[(&str, &str, &[&str])] = &[
    (
        "export",
        "output-format",
        &[
            "geojson",
            "geojsonseq",
            "csv",
            "text",
            "pg",
            "geoparquet",
            "geojson.gz",
            "geojsonseq.gz",
            "csv.gz",
            "text.gz",
            "pg.gz",
        ],
    ),
    ("export", "theme", THEMES),
    (
        "export",
        "with",
        &["area", "length", "centroid", "country", "names", "h3:"],
    ),
    (
        "export",
        "partition",
        &["geometry_type", "theme", "quadkey:", "h3:"],
    ),
    (
        "diff",
        "format",
        &["text", "opl", "debug", "osc", "osc.pbf", "adiff"],
    ),
    ("derive-changes", "format", &["osc", "osc.pbf"]),
    (
        "augmented-diff",
        "format",
        &["adiff", "geojson", "geojsonseq", "parquet"],
    ),
    ("show", "output-format", &["debug", "opl", "osm", "osc"]),
    (
        "",
        "output-format",
        &[
            "pbf", "osm", "osm.gz", "osm.bz2", "osh.pbf", "osh", "osc", "osc.gz", "osc.pbf", "opl",
            "opl.gz", "debug",
        ],
    ),
    (
        "",
        "input-format",
        &[
            "pbf", "osm", "osc", "opl", "o5m", "o5c", "xml", "osc.pbf", "osc.opl",
        ],
    ),
];

/// Adds to a program what only completions use: the values of options that accept other values, too, and the words that
/// `help` explains.
fn with_values(program: Command) -> Command {
    let words = usage::command_names().chain(help::topics());
    let words = words.map(|word| Command::new(word).disable_help_flag(true));
    let program = program.mut_subcommand("help", |help| help.subcommands(words));
    program.mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        command.mut_args(|arg| {
            let of = |command: &str| {
                let mut found = VALUES.iter().filter(|(of, ..)| *of == command);
                found.find(|(_, option, _)| arg.get_long() == Some(*option))
            };
            match of(&name).or_else(|| of("")) {
                Some((.., values)) => arg.value_parser(PossibleValuesParser::new(*values)),
                None => arg,
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::export::Theme;
    use clap::CommandFactory;

    #[test]
    fn themes_are_those_that_are_built_in() {
        let built_in = Theme::built_in();
        assert!(
            built_in
                .iter()
                .map(|theme| theme.name.as_str())
                .eq(THEMES.iter().copied())
        );
    }

    #[test]
    fn every_option_with_values_exists() {
        let program = super::super::Cli::command();
        for (name, option, _) in VALUES {
            let mut commands = program
                .get_subcommands()
                .filter(|of| name.is_empty() || of.get_name() == *name);
            let has = |of: &Command| {
                of.get_arguments()
                    .any(|arg| arg.get_long() == Some(*option))
            };
            assert!(commands.any(has), "{name} --{option}");
        }
        with_values(program).debug_assert();
    }
}
