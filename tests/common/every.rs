//! The command lines of every command, for properties that all commands must have.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Commands that read all of `{in}`, or all objects of a kind. `{other}` is a valid file with some of the same ids,
/// `{day}` a change file, `{out}` the output.
pub const READERS: [&str; 30] = [
    "cat -c version {in} -o {out}",
    "cat -f opl {in} -o {out}",
    "sort {in} {other} -o {out}",
    "merge {in} {other} -o {out}",
    "apply-changes {in} {day} -o {out}",
    "diff -q {in} {other}",
    "diff --html {out} {in} {other}",
    "derive-changes -f osc {in} {other} -o {out}",
    "add-locations-to-ways -i sparse {in} -o {out}",
    "add-locations-to-ways -n -i external {in} -o {out}",
    "export -f text -n {in} -o {out}",
    "export -f geojson -i external -u counter {in} -o {out}",
    "renumber {in} -o {out}",
    "degrade --unsort {in} -o {out}",
    "repack -n 10 {in} -o {out}",
    "extract -b 0.005,0.005,0.015,0.015 {in} -o {out}",
    "extract -s smart -b 0.005,0.005,0.015,0.015 {in} -o {out}",
    "getid -r {in} n50 n150 w5 r5 -o {out}",
    "removeid {in} n50 n150 w5 r5 -o {out}",
    "getparents {in} n150 w5 -o {out}",
    "tags-filter {in} highway=stop,path type=route -o {out}",
    "tags-filter -R {in} highway=stop,path type=route -o {out}",
    "tags-count {in}",
    "time-filter {in} 2026-01-01T00:00:00Z -o {out}",
    "check -r {in}",
    "check --doubled {in}",
    "inspect -e {in}",
    "inspect --top 5 {in}",
    "inspect --html {out} {in}",
    "inspect tags {in}",
];

/// Commands that read all of a file without index, but little more than the headers of a file with an index.
pub const COPIERS: [&str; 2] = ["cat {in} -o {out}", "inspect {in}"];

/// The other commands that read a file, and further forms of commands. `{in}` can be a file of any sort.
pub const OTHERS: [&str; 35] = [
    "cat -f osm {in} -o {out}",
    "cat -f debug {in} -o {out}",
    "apply-changes --locations-on-ways {in} {day} -o {out}",
    "apply-changes {other} {in} -o {out}",
    "merge-changes -s {in} -o {out}",
    "augmented-diff {in} {day} -o {out}",
    "augmented-diff {other} {in} -o {out}",
    "diff {other} {in}",
    "diff -f adiff {other} {in} -o {out}",
    "derive-changes -f osc {other} {in} -o {out}",
    "create-locations-index {in} -i {out}",
    "export -f geojsonseq -n --line-relations route {in} -o {out}",
    "export -f geojsonseq --clip 0.001,0.001,0.002,0.002 {in} -o {out}",
    "export -f pg -n {in} -o {out}",
    "export -f geoparquet -n {in} -o {out}",
    "export --raw {in} -o {out}",
    "build-geocode-index {in} -o {out}",
    "repack {in} -o {out}",
    "repack --layout hilbert {in} -o {out}",
    "split -n 3 {in} -o {out}",
    "changeset-filter {in} -o {out}",
    "extract -p {in} {other} -o {out}",
    "getid -I {in} {other} -o {out}",
    "getid -r -f opl {in} n1 w1 r1 -o {out}",
    "tags-filter {in} k=v building type=route -o {out}",
    "check --areas {in}",
    "tags-edit {in} --drop highway --default-on w/name:a=b -o {out}",
    "tags-edit {in} --keep name --drop-untagged -o {out}",
    "check --full {in}",
    "check --refs -r -i {in}",
    "inspect --show w1 {in}",
    "inspect --locations {in}",
    "fileinfo -e {in}",
    "show {in}",
    "repair {in} -o {out}",
];

/// Replaces placeholders of a command line by the paths that `words` gives for them.
pub fn arguments(command: &str, words: &[(&str, &Path)]) -> Vec<PathBuf> {
    let path_of = |word: &str| words.iter().find(|(name, _)| word == *name);
    let words = command.split_whitespace();
    words
        .map(|word| path_of(word).map_or_else(|| PathBuf::from(word), |(_, path)| path.into()))
        .collect()
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

/// Runs a command with at most [`MOST_BYTES`] of memory. `words` gives the path for each placeholder in braces.
pub fn run_with(command: &str, words: &[(&str, &Path)]) -> Ran {
    let mut tool = Command::new("prlimit");
    tool.arg(format!("--data={MOST_BYTES}"));
    tool.arg(env!("CARGO_BIN_EXE_pbfhogg"));
    tool.args(arguments(command, words));
    let start = Instant::now();
    tool.stdin(Stdio::null());
    let ended = tool.output().expect("the tool starts");
    Ran {
        status: ended.status.code(),
        stderr: String::from_utf8(ended.stderr).expect("messages are text"),
        time: start.elapsed(),
    }
}
