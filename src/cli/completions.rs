//! Completions for shells.

use super::CommandAnswer;
use super::session::Session;
use anyhow::Result;
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

pub fn run(session: &Session, args: &Args, mut program: clap::Command) -> Result<CommandAnswer> {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut program,
        session.conventions.name,
        &mut script,
    );
    session.print(&String::from_utf8_lossy(&script))?;
    Ok(CommandAnswer::Yes)
}
