//! The words of the library: messages below the command line name no command and no option of the program.

use crate::layers::sources;

/// Strings that have other reasons to look like commands or options.
const ALLOWED: [&str; 3] = [
    // An option of zstd.
    "zstd -d --long=31",
    // The words of osmium, under whose name alone the notice is printed.
    "Use --with-history to disable warning.",
    // The name of the program that writes a file.
    "\"pbfhogg synth\"",
];

/// Whether text names an option, such as `--json`.
fn names_option(text: &str) -> bool {
    text.match_indices("--").any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let is_start = before.is_none_or(|before| " \"`(".contains(before));
        is_start && text[at + 2..].starts_with(|letter: char| letter.is_ascii_lowercase())
    })
}

#[test]
fn no_message_of_the_library_names_a_command_or_an_option() {
    let commands = pbfhogg::cli::commands();
    let names: Vec<_> = commands
        .iter()
        .map(|command| format!("pbfhogg {}", command.name))
        .collect();
    let is_of_program =
        |file: &str| file.starts_with("cli/") || matches!(file, "main.rs" | "allocator.rs");
    let mut found = Vec::new();
    for (file, code) in sources() {
        if is_of_program(&file) {
            continue;
        }
        for (number, line) in code.lines().enumerate() {
            let line = line.trim_start();
            let names_command = || names.iter().any(|name| line.contains(name.as_str()));
            if !line.starts_with("//")
                && (names_option(line) || names_command())
                && !ALLOWED.iter().any(|allowed| line.contains(allowed))
            {
                found.push(format!("{file}:{}: {line}", number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
