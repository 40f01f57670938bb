//! The commands in documents, which are run, and their output, which is compared.
//!
//! A block of the language `console` has commands, which begin with `$ ` and go on in lines that begin with `> `, and
//! behind each command what it prints. In the expected
//! output, `[..]` stands for any part of a line. The commands of a document run one after the other in one directory.
//! `PBFHOGG_WRITE_DOCUMENTS=1` writes what was printed into the documents.

use crate::common::answers::ask;
use crate::common::oracle::{python_with_readers, real_file};
use crate::common::{Arg, every};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A command of a document, and the output that it is expected to have.
struct Step {
    command: String,
    expected: Vec<String>,
}

/// A part of a document: text, or the steps of a block.
enum Part {
    Text(String),
    Steps(Vec<Step>),
}

fn parts(document: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut lines = document.lines();
    let mut text = String::new();
    while let Some(line) = lines.next() {
        text += line;
        text.push('\n');
        if line != "```console" {
            continue;
        }
        parts.push(Part::Text(std::mem::take(&mut text)));
        let mut steps: Vec<Step> = Vec::new();
        for line in lines.by_ref().take_while(|line| *line != "```") {
            if let Some(command) = line.strip_prefix("$ ") {
                steps.push(Step {
                    command: command.to_owned(),
                    expected: Vec::new(),
                });
                continue;
            }
            let step = steps.last_mut().expect("a block begins with a command");
            match line.strip_prefix("> ") {
                Some(more) if step.expected.is_empty() => step.command += &format!("\n{more}"),
                _ => step.expected.push(line.to_owned()),
            }
        }
        parts.push(Part::Steps(steps));
        text = "```\n".to_owned();
    }
    parts.push(Part::Text(text));
    parts
}

/// Runs a command, and returns the lines that it prints to standard output and standard error.
fn run(command: &str, directory: &Path) -> Vec<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_pbfhogg"));
    let path = std::env::var("PATH").unwrap();
    let output = Command::new("bash")
        .args(["-c", &format!("{{ {command}\n}} 2>&1")])
        .current_dir(directory)
        .env(
            "PATH",
            format!("{}:{path}", program.parent().unwrap().display()),
        )
        .env("COLUMNS", "100")
        .env("LC_ALL", "C.UTF-8")
        .env("TZ", "UTC")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

/// Whether a line is as expected. `[..]` stands for any text.
fn fits(expected: &str, line: &str) -> bool {
    let mut parts = expected.split("[..]");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        last = Some(part);
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    match last {
        None => rest.is_empty(),
        Some(last) => last.is_empty() || rest.is_empty() || line.ends_with(last),
    }
}

/// Runs the commands of a document. Returns the document with what they printed, and what differed.
fn check(document: &str) -> (String, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let (mut written, mut differences) = (String::new(), Vec::new());
    for part in parts(document) {
        let steps = match part {
            Part::Text(text) => {
                written += &text;
                continue;
            }
            Part::Steps(steps) => steps,
        };
        for step in steps {
            let lines = run(&step.command, directory.path());
            let is_same = lines.len() == step.expected.len()
                && step
                    .expected
                    .iter()
                    .zip(&lines)
                    .all(|(expected, line)| fits(expected, line));
            if !is_same {
                differences.push(format!(
                    "$ {}\nexpected:\n{}\nprinted:\n{}\n",
                    step.command,
                    step.expected.join("\n"),
                    lines.join("\n")
                ));
            }
            written += &format!("$ {}\n", step.command.replace('\n', "\n> "));
            for (index, line) in lines.iter().enumerate() {
                let expected = step.expected.get(index);
                let kept = expected.filter(|expected| fits(expected, line));
                written += kept.unwrap_or(line);
                written.push('\n');
            }
        }
    }
    (written, differences)
}

fn document(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("reference")
        .join(name)
}

/// Whether documents are written instead of compared.
fn is_written() -> bool {
    std::env::var_os("PBFHOGG_WRITE_DOCUMENTS").is_some()
}

fn holds(name: &str) {
    let path = document(name);
    let text = std::fs::read_to_string(&path).unwrap();
    let (written, differences) = check(&text);
    if is_written() {
        std::fs::write(path, written).unwrap()
    } else {
        assert!(
            differences.is_empty(),
            "{name}:\n{}",
            differences.join("\n")
        )
    }
}

/// A command in the help of the program.
pub struct ListedCommand {
    /// The group that it begins, if it is the first of one.
    group: Option<String>,
    pub name: String,
    summary: String,
}

/// The commands in the order of the help.
pub fn commands(directory: &Path) -> Vec<ListedCommand> {
    let mut group = None;
    let mut commands = Vec::new();
    for line in run("pbfhogg help", directory) {
        let is_command = line.starts_with("  ") && !line.starts_with("   ");
        if line.starts_with("Options:") {
            break;
        } else if let Some(name) = line.strip_suffix(':') {
            group = Some(name.to_owned());
        } else if is_command && let Some((name, summary)) = line.trim_start().split_once("  ") {
            commands.push(ListedCommand {
                group: group.take(),
                name: name.to_owned(),
                summary: summary.trim().to_owned(),
            });
        }
    }
    commands
}

/// The paragraphs of a help text, each option with all of its paragraphs.
fn items(help: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for paragraph in help.trim_end().split("\n\n") {
        match items.last_mut() {
            // The texts of options are indented more than anything else.
            Some(item) if paragraph.starts_with("          ") => {
                *item += "\n\n";
                *item += paragraph;
            }
            _ => items.push(paragraph.to_owned()),
        }
    }
    items
}

/// The name of a command before `name` whose help differs in the name alone, if there is one.
fn same_help<'c>(
    before: &'c [ListedCommand],
    helps: &[Vec<String>],
    name: &str,
    help: &[String],
) -> Option<&'c str> {
    let other = before.iter().zip(helps).find(|(other, its_help)| {
        let [own, its] = [name, &other.name].map(|name| format!("Usage: pbfhogg {name} "));
        help.join("\n").replace(&own, &its) == its_help.join("\n")
    });
    other.map(|(other, _)| other.name.as_str())
}

/// A part of a help text. An option or an argument that an earlier command has with the same words refers to it.
fn shortened<'c>(part: &str, name: &'c str, before: &mut BTreeMap<String, &'c str>) -> String {
    let at = if part.starts_with(' ') {
        0
    } else {
        part.find("\n  ").map_or(part.len(), |end| end + 1)
    };
    let (heading, entry) = part.split_at(at);
    let (line, text) = entry.split_once('\n').unwrap_or((entry, ""));
    let is_entry = line.trim_start().starts_with(['-', '<', '[']);
    if !is_entry || text.split_whitespace().count() < 8 {
        return part.to_owned();
    }
    match before.get(entry) {
        Some(other) => format!("{heading}{line}\n          As for {other}"),
        None => {
            before.insert(entry.to_owned(), name);
            part.to_owned()
        }
    }
}

/// The text of `commands.md`, of the commands and the parts of their helps.
fn reference(commands: &[ListedCommand], helps: &[Vec<String>]) -> String {
    // Options that many commands have are listed once.
    let is_common = |part: &String| {
        let count = helps.iter().filter(|help| help.contains(part)).count();
        part.trim_start().starts_with('-') && count >= 8
    };
    let mut common: Vec<String> = Vec::new();
    let mut before = BTreeMap::new();
    let mut text = "# Commands\n\nWhat `pbfhogg help COMMAND` prints. [Options of many commands](#options-of-many-commands) are \
        at the end; `As for`\nstands for the words of an earlier command. [cli.md](cli.md) explains what commands have in \
        common.\n"
        .to_owned();
    for (at, (command, help)) in commands.iter().zip(helps).enumerate() {
        let name = &command.name;
        if let Some(group) = &command.group {
            text += &format!("\n## {group}\n");
        }
        if let Some(other) = same_help(&commands[..at], helps, name, help) {
            let summary = &command.summary;
            text += &format!(
                "\n### {name}\n\n{summary}. The options are those of [{other}](#{other}).\n"
            );
            continue;
        }
        let (own, shared): (Vec<_>, Vec<_>) =
            help.iter().cloned().partition(|part| !is_common(part));
        for part in shared {
            if !common.contains(&part) {
                common.push(part);
            }
        }
        let own = own.iter().map(|part| shortened(part, name, &mut before));
        let own = own.collect::<Vec<_>>().join("\n\n");
        text += &format!("\n### {name}\n\n```text\n{own}\n```\n");
    }
    text += &format!(
        "\n## Options of many commands\n\nEach of these is an option of at least eight commands: `pbfhogg help COMMAND` says \
         whether of one.\n\n```text\n{}\n```\n",
        common.join("\n\n")
    );
    text
}

#[test]
fn the_reference_of_commands_is_their_help() {
    let directory = tempfile::tempdir().unwrap();
    let commands = commands(directory.path());
    assert!(commands.len() > 25, "{}", commands.len());
    let helps = commands.iter().map(|command| {
        let name = &command.name;
        let help = run(&format!("pbfhogg help {name}"), directory.path()).join("\n");
        items(&help.replace("Common options:\n", ""))
    });
    let helps: Vec<Vec<String>> = helps.collect();
    let text = reference(&commands, &helps);
    let path = document("commands.md");
    if is_written() {
        std::fs::write(path, text).unwrap()
    } else {
        assert!(
            std::fs::read_to_string(path).unwrap() == text,
            "reference/commands.md is not what the help says: PBFHOGG_WRITE_DOCUMENTS=1 writes it"
        )
    }
}

/// Returns an item of a list, in lines of at most 120 characters.
fn list_item(text: &str) -> String {
    let (mut item, mut length) = ("-".to_owned(), 1);
    for word in text.split(' ') {
        let count = word.chars().count();
        if length + 1 + count > 120 {
            item += "\n ";
            length = 1;
        }
        item += " ";
        item += word;
        length += 1 + count;
    }
    item
}

/// Expects that `text` follows the line `before` in a document, up to the next empty line, or writes it there.
fn assert_part(path: &Path, before: &str, text: &str) {
    let document = std::fs::read_to_string(path).unwrap();
    let start = document.find(before).expect("the line before the part") + before.len();
    let length = document[start..]
        .find("\n\n")
        .expect("an empty line behind the part");
    if is_written() {
        let rest = &document[start + length..];
        std::fs::write(path, format!("{}{text}{rest}", &document[..start])).unwrap();
    } else {
        assert!(
            document[start..start + length] == *text,
            "{}: not what tests/commands.txt says: PBFHOGG_WRITE_DOCUMENTS=1 writes it",
            path.display()
        );
    }
}

#[test]
fn documents_say_of_commands_what_the_table_says() {
    let (mut rows, mut items, mut group) = (Vec::new(), Vec::new(), String::new());
    for line in every::table() {
        match line.words {
            "group" => group = format!("{} ", line.text),
            "readme" => rows.push(format!("| {}| {} |", std::mem::take(&mut group), line.text)),
            "json" if !line.is_run() => items.push(list_item(line.text)),
            _ => {}
        }
    }
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    assert_part(
        &readme,
        "| | command | purpose |\n|---|---|---|\n",
        &rows.join("\n"),
    );
    let json = document("json.md");
    assert_part(
        &json,
        "Some commands have further fields:\n\n",
        &items.join("\n"),
    );
}

#[test]
fn the_commands_of_the_guide_print_what_it_says() {
    holds("guide.md");
}

#[test]
fn the_commands_of_the_cookbook_print_what_it_says() {
    holds("cookbook.md");
}

#[test]
fn commands_about_changes_print_what_the_chapter_says() {
    holds("changes.md");
}

#[test]
fn a_part_of_a_line_may_be_left_out() {
    for (expected, line, is_fit) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("a[..]", "ab", true),
        ("[..]b", "ab", true),
        ("[..]b", "abc", false),
        ("a[..]c", "abc", true),
        ("a[..]c", "abcd", false),
        ("a[..]b[..]c", "a1b2c", true),
        ("a[..]b[..]c", "a1c", false),
    ] {
        assert_eq!(fits(expected, line), is_fit, "{expected}, {line}");
    }
}

/// The commands of this program in the blocks of a document for the shell, without comments. Those that wait for
/// requests or ask servers are left out.
fn shell_commands(document: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        if line != "```sh" {
            continue;
        }
        let block = lines.by_ref().take_while(|line| *line != "```");
        let own = block.filter(|line| line.starts_with("pbfhogg ") || line.starts_with("mkdir "));
        let own = own.filter(|line| !line.contains("--serve"));
        commands.extend(own.map(|line| line.split(" #").next().unwrap_or(line).to_owned()));
    }
    commands
}

/// The commands of documents that name files of a reader, in a directory with such files.
#[test]
fn commands_for_the_shell_succeed() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    for (name, from) in [
        ("berlin.osm.pbf", "monaco.osm.pbf"),
        ("malta.osm.pbf", "malta.osm.pbf"),
        ("liechtenstein.osm.pbf", "liechtenstein-c.osm.pbf"),
    ] {
        std::fs::copy(real_file(from), dir.join(name)).unwrap();
    }
    std::fs::write(dir.join("points.txt"), "47.141 9.5215\n").unwrap();
    let prepare = "mkdir -p ~/.local/share/bash-completion/completions &&
        pbfhogg tags-filter -q -R berlin.osm.pbf n/* -o nodes.osm.pbf &&
        pbfhogg derive-changes -q nodes.osm.pbf berlin.osm.pbf -o day.osc.gz";
    let run = |command: &str| {
        let shell = format!("export HOME=\"$PWD\"; set -e; {command}\necho done");
        let lines = run(&shell, dir);
        let last = lines.last().map(String::as_str);
        assert_eq!(last, Some("done"), "{command}:\n{}", lines.join("\n"));
    };
    run(prepare);
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let mut count = 0;
    for path in [readme, document("analytics.md"), document("geocode.md")] {
        for command in shell_commands(&std::fs::read_to_string(path).unwrap()) {
            run(&command);
            count += 1;
        }
    }
    assert!(count >= 12, "{count}");
    questions_have_their_answers(dir);
}

/// The blocks of a document in SQL and in Python, each with the block of text behind it.
fn questions(document: &str) -> Vec<(String, String, String)> {
    let mut lines = document.lines();
    let mut blocks: Vec<(String, String)> = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push((language.to_owned(), block.join("\n")));
        }
    }
    let pairs = blocks
        .windows(2)
        .filter(|pair| matches!(pair[0].0.as_str(), "sql" | "python") && pair[1].0 == "text");
    let triples = pairs.map(|pair| (pair[0].0.clone(), pair[0].1.clone(), pair[1].1.clone()));
    triples.collect()
}

/// Asks the questions of analytics.md, in a directory with the tables that its commands have made.
fn questions_have_their_answers(directory: &Path) {
    // One process asks all of them, as Python and the packages start slowly.
    const ASK: &str = "import duckdb, sys
for language, question in zip(sys.argv[1::2], sys.argv[2::2]):
    if language == 'sql':
        for row in duckdb.sql(question).fetchall(): print(' | '.join(map(str, row)))
    else:
        exec(question, {})
    print('the next one')";
    let document = std::fs::read_to_string(document("analytics.md")).unwrap();
    let questions = questions(&document);
    assert!(questions.len() >= 7, "{}", questions.len());
    let mut args: Vec<Arg> = vec![&"-c", &ASK];
    for (language, question, _) in &questions {
        args.extend([language as Arg, question]);
    }
    let Some(done) = python_with_readers(&args, directory) else {
        return;
    };
    let [found, messages] = [&done.stdout, &done.stderr].map(|text| String::from_utf8_lossy(text));
    let mut found = found.split("the next one\n");
    for (_, question, answer) in &questions {
        let found = found.next().unwrap_or_default().trim_end();
        assert_eq!(found, answer, "{question}\n{messages}");
    }
}

#[test]
fn every_command_is_in_the_help_of_the_program() {
    let help = ask(&[&"--help"]).stdout;
    for name in [
        "inspect",
        "show",
        "merge",
        "removeid",
        "derive-changes",
        "demo",
        "repack",
    ] {
        assert!(help.contains(&format!("\n  {name} ")), "{name}: {help}");
    }
    for heading in ["Inspect:", "Select:", "Update:", "Transform:"] {
        assert!(help.contains(heading), "{help}");
    }
    // The description of a command has one line.
    let list = help.lines().take_while(|line| !line.starts_with('`'));
    for line in list.filter(|line| line.starts_with("  ")) {
        assert!(line.trim_start().contains("  "), "{line}");
    }
}
