//! The table of commands (`tests/commands.txt`), for properties that all commands must have.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const TABLE: &str = include_str!("../commands.txt");

/// A line of the table.
#[derive(Debug, Clone, Copy)]
pub struct TableLine {
    /// The command.
    pub command: &'static str,
    /// The words before the colon.
    pub words: &'static str,
    /// The command line, or what documents say of the command.
    pub text: &'static str,
}

impl TableLine {
    /// Whether the line has one of the words.
    pub fn has(&self, wanted: &[&str]) -> bool {
        self.words.split(' ').any(|word| wanted.contains(&word))
    }

    /// Whether the line is a command line.
    pub fn is_run(&self) -> bool {
        self.text.starts_with(self.command)
    }
}

/// The names of the commands in the table, in its order.
pub fn command_names() -> Vec<&'static str> {
    let names = TABLE.lines().filter_map(|line| line.strip_prefix('['));
    names.map(|name| name.trim_end_matches(']')).collect()
}

/// The lines of the table.
pub fn table() -> Vec<TableLine> {
    let (mut lines, mut command) = (Vec::new(), "");
    for line in TABLE.lines() {
        if let Some(name) = line.strip_prefix('[') {
            command = name.trim_end_matches(']');
        } else if !line.is_empty() && !line.starts_with('#') {
            let (words, text) = line.split_once(": ").expect("words before a colon");
            lines.push(TableLine {
                command,
                words,
                text,
            });
        }
    }
    lines
}

/// The command lines with one of the words.
pub fn lines(wanted: &[&str]) -> Vec<&'static str> {
    let found = table().into_iter().filter(TableLine::is_run);
    let found = found.filter(|line| line.has(wanted));
    found.map(|line| line.text).collect()
}

/// Whether a command line of the table has one of the words.
pub fn has(command: &str, wanted: &[&str]) -> bool {
    lines(wanted).contains(&command)
}

/// Replaces placeholders at the beginning of words of a command line by the values that `values` gives for them. Without
/// a value, `{n}`, `{w}` and `{r}` stand for ids.
pub fn arguments(command: &str, values: &[(&str, &Path)]) -> Vec<PathBuf> {
    let ids = [("{n}", "n150"), ("{w}", "w5"), ("{r}", "r5")];
    let ids = ids.map(|(name, id)| (name, Path::new(id)));
    let argument = |word: &str| {
        let end = word.find('}').filter(|_| word.starts_with('{'));
        let (name, rest) = word.split_at(end.map_or(0, |at| at + 1));
        let mut known = values.iter().chain(&ids);
        let value = known.find(|(known, _)| *known == name);
        assert!(value.is_some() || name.is_empty(), "{command}: {name}");
        let mut argument =
            value.map_or_else(Default::default, |(_, value)| value.as_os_str().to_owned());
        argument.push(rest);
        argument.into()
    };
    command.split_whitespace().map(argument).collect()
}

/// Removes the outputs whose names begin with `out` as `{out}` of a command line. Returns whether there were any.
pub fn remove_outputs(out: &Path) -> bool {
    let directory = out.parent().expect("a path in a directory");
    let stem = out.file_name().expect("a name").to_string_lossy();
    let mut is_any = false;
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let entry = entry.expect("a directory");
        let name = entry.file_name().to_string_lossy().into_owned();
        let rest = name.strip_prefix(stem.as_ref());
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.')) {
            let path = entry.path();
            let removed = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
            removed.expect("an output can be removed");
            is_any = true;
        }
    }
    is_any
}

/// The result of a run.
pub struct Ran {
    /// The exit status; `None` if a signal ended the run.
    pub status: Option<i32>,
    /// Standard error.
    pub stderr: String,
    /// The wall time of the run.
    pub time: Duration,
}

impl fmt::Display for Ran {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{:?} {}", self.status, self.stderr)
    }
}

impl Ran {
    /// The error message, if standard error has exactly one.
    pub fn error(&self) -> Option<&str> {
        let mut errors = self
            .stderr
            .lines()
            .filter(|line| line.starts_with("pbfhogg: error: "));
        errors.next().filter(|_| errors.next().is_none())
    }
}

/// Maximum number of bytes of memory for a command on bad input. An allocation beyond it aborts the run.
pub const MOST_BYTES: u64 = 200_000_000;

/// Runs a command with at most [`MOST_BYTES`] of memory. `values` gives the path for each placeholder in braces.
pub fn run_with(command: &str, values: &[(&str, &Path)]) -> Ran {
    let mut tool = Command::new("prlimit");
    tool.arg(format!("--data={MOST_BYTES}"));
    tool.arg(env!("CARGO_BIN_EXE_pbfhogg"));
    tool.args(arguments(command, values));
    let start = Instant::now();
    tool.stdin(Stdio::null());
    let ended = tool.output().expect("the tool starts");
    Ran {
        status: ended.status.code(),
        stderr: String::from_utf8(ended.stderr).expect("messages are text"),
        time: start.elapsed(),
    }
}
