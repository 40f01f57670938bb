//! Manual pages, made from the help of the commands.

use super::session::Session;
use super::{Cli, CommandAnswer};
use crate::error::FileResult;
use crate::io::{OpenOutput, OutputTarget, StreamOutput, commit_together};
use anyhow::{Context as _, Result};
use clap::CommandFactory;
use clap::builder::Resettable;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::fs::DirBuilder;
use std::io;
use std::path::PathBuf;

/// Write the manual pages of all commands
///
/// Writes one page for each command: `pbfhogg.1`, `pbfhogg-cat.1` and so on. Missing directories are created.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  pbfhogg man -o ~/.local/share/man/man1 && man pbfhogg-extract")]
pub struct Args {
    /// Directory for the pages
    #[arg(short = 'o', long, value_name = "DIR")]
    output: PathBuf,
    /// Replace existing pages
    #[arg(short = 'O', long)]
    overwrite: bool,
}

pub fn run(_: &Session, args: &Args) -> Result<CommandAnswer> {
    let mut program = Cli::command();
    program.build();
    DirBuilder::new()
        .recursive(true)
        .create(&args.output)
        .for_path(&args.output, "cannot create")?;
    let mut pages = Vec::new();
    add_pages(&program, args, &mut pages)?;
    commit_together(pages)?;
    Ok(CommandAnswer::Yes)
}

/// Adds the manual pages of a command and of all its visible subcommands.
fn add_pages(command: &clap::Command, args: &Args, pages: &mut Vec<StreamOutput>) -> Result<()> {
    let name = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name());
    let text = page(command).context("a manual page cannot be made")?;
    let target = OutputTarget::named_file(args.output.join(format!("{name}.1")), args.overwrite);
    let mut page = StreamOutput::new(OpenOutput::open(target, &crate::Context::default())?);
    page.write(&text)?;
    pages.push(page);
    let below = command.get_subcommands();
    below
        .filter(|command| !command.is_hide_set())
        .try_for_each(|command| add_pages(command, args, pages))
}

/// Returns the manual page of a command. The text that follows the options in the help becomes separate sections.
pub fn page(command: &clap::Command) -> io::Result<Vec<u8>> {
    let after = command.get_after_help().map(ToString::to_string);
    let mut text = Vec::new();
    Man::new(command.clone().after_help(Resettable::Reset))
        .source(concat!("pbfhogg ", env!("CARGO_PKG_VERSION")))
        .manual("pbfhogg")
        .render(&mut text)?;
    for part in after.unwrap_or_default().split("\n\n") {
        let (title, lines) = match part.split_once(":\n") {
            Some(("Example" | "Examples", lines)) => ("EXAMPLES", lines),
            _ => ("NOTES", part),
        };
        if lines.is_empty() {
            continue;
        }
        let mut section = Roff::default();
        section.control("SH", [title]).control("nf", []);
        for line in lines.lines() {
            section.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        section.control("fi", []).to_writer(&mut text)?;
    }
    Ok(text)
}
