use super::session::Session;
use super::{CommandAnswer, man, usage};
use anyhow::{Result, bail};
use std::io::{IsTerminal, Write as _};
use std::process::Command;

/// Show the manual page of a command, or help on a topic
///
/// The topics are file-formats, index-types and output-headers. Without arguments, lists the commands.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg help extract
  pbfhogg help file-formats")]
pub struct Args {
    /// A command, such as extract or inspect tags, or a topic
    #[arg(value_name = "WORD")]
    words: Vec<String>,
}

/// The name and the text of each topic.
const TOPICS: [(&str, &str); 3] = [
    ("file-formats", include_str!("help/file-formats.txt")),
    ("index-types", include_str!("help/index-types.txt")),
    ("output-headers", include_str!("help/output-headers.txt")),
];

pub fn run(session: &Session, args: &Args, program: clap::Command) -> Result<CommandAnswer> {
    let mut command = program.name(session.conventions.name);
    if let [word] = args.words.as_slice()
        && let Some((_, text)) = TOPICS.iter().find(|(topic, _)| topic == word)
    {
        return session.print(text).map(|()| CommandAnswer::Yes);
    }
    command.build();
    if args.words.is_empty() {
        let help = usage::with_groups(command).render_long_help();
        return session
            .print(&help.to_string())
            .map(|()| CommandAnswer::Yes);
    }
    for word in &args.words {
        let Some(found) = command.find_subcommand(word) else {
            let topics = TOPICS.map(|(topic, _)| topic).join(", ");
            bail!("there is no command or topic '{word}'; the topics are {topics}");
        };
        command = found.clone();
    }
    if !(std::io::stdout().is_terminal() && shows_page(&command)?) {
        session.print(&command.render_long_help().to_string())?;
    }
    Ok(CommandAnswer::Yes)
}

/// Shows the manual page of a command with the program `man`. Returns `false` if `man` is missing or fails.
fn shows_page(command: &clap::Command) -> Result<bool> {
    let mut page = tempfile::NamedTempFile::new()?;
    page.write_all(&man::page(command)?)?;
    let shown = Command::new("man").arg("-l").arg(page.path()).status();
    Ok(shown.is_ok_and(|status| status.success()))
}
