use super::session::Session;
use super::{Cli, CommandAnswer, man, usage};
use crate::formats::TextFormat;
use anyhow::{Result, bail};
use clap::CommandFactory;
use std::io::{IsTerminal, Write as _};
use std::process::Command;

/// Show the manual page of a command, or help on a topic
///
/// The topics are exit-status, expressions, file-formats, index-types and output-headers. Without arguments, lists the
/// commands.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg help extract
  pbfhogg help expressions")]
pub struct Args {
    /// A command, such as extract or inspect tags, or a topic
    #[arg(value_name = "WORD")]
    words: Vec<String>,
}

/// The name and the text of each topic.
const TOPICS: [(&str, &str); 5] = [
    ("exit-status", include_str!("help/exit-status.txt")),
    ("expressions", include_str!("help/expressions.txt")),
    ("file-formats", include_str!("help/file-formats.txt")),
    ("index-types", include_str!("help/index-types.txt")),
    ("output-headers", include_str!("help/output-headers.txt")),
];

/// Returns the names of the topics.
pub fn topics() -> impl Iterator<Item = &'static str> {
    TOPICS.into_iter().map(|(topic, _)| topic)
}

/// Returns the text of a topic. `words` are the name of the topic or the last word of the name. The words of a name may
/// be separate or joined by `-`, and a final `s` may be missing.
fn topic_text(words: &[String]) -> Option<String> {
    let name = words.join("-").to_ascii_lowercase();
    let is_named = |topic: &str| {
        [topic, topic.rsplit('-').next().unwrap_or(topic)]
            .iter()
            .any(|topic| *topic == name || topic.strip_suffix('s') == Some(&name))
    };
    let found = TOPICS.into_iter().find(|(topic, _)| is_named(topic));
    let described =
        TextFormat::writable_formats().filter_map(|facts| Some((facts.names[0], facts.help?)));
    let formats: String = described
        .map(|(name, help)| format!("  {name:<8} {help}\n"))
        .collect();
    found.map(|(_, text)| text.replace("{formats}\n", &formats))
}

/// Print the version
#[derive(Debug, clap::Args)]
pub struct VersionArgs {}

pub fn version(session: &Session, _: &VersionArgs) -> Result<CommandAnswer> {
    session.answer(concat!("pbfhogg ", env!("CARGO_PKG_VERSION"), "\n"))
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let mut command = Cli::command().name(session.conventions.name);
    if let Some(text) = topic_text(&args.words) {
        return session.answer(&text);
    }
    command.build();
    if args.words.is_empty() {
        let help = usage::with_command_list(command).render_long_help();
        return session.answer(&help.to_string());
    }
    for word in &args.words {
        let Some(found) = command.find_subcommand(word) else {
            let topics = topics().collect::<Vec<_>>().join(", ");
            bail!(
                "{}; the topics of help are {topics}",
                usage::unknown_command(word, &command)
            );
        };
        command = found.clone();
    }
    if !(std::io::stdout().is_terminal() && show_page(&command)?) {
        session.print(&command.render_long_help().to_string())?;
    }
    Ok(CommandAnswer::Yes)
}

/// Shows the manual page of a command with the program `man`. Returns `false` if `man` is missing or fails.
fn show_page(command: &clap::Command) -> Result<bool> {
    let mut page = tempfile::NamedTempFile::new()?;
    page.write_all(&man::page(command)?)?;
    let shown = Command::new("man").arg("-l").arg(page.path()).status();
    Ok(shown.is_ok_and(|status| status.success()))
}
