//! Code that tests share: an independent decoder and encoder, oracles, and functions that run the program.

pub mod accuracy;
pub mod answers;
pub mod areas;
pub mod augmented;
pub mod awkward;
pub mod bad_files;
pub mod browser;
pub mod clipped;
pub mod coast;
pub mod comparison;
pub mod craft;
pub mod decode;
pub mod every;
pub mod extracts;
pub mod geocode;
pub mod hostile;
pub mod hostile_files;
pub mod hostile_relations;
pub mod hostile_texts;
pub mod islands;
pub mod kills;
pub mod lines;
pub mod measured;
pub mod missing;
pub mod mutants;
pub mod objects;
pub mod oracle;
pub mod pieces;
pub mod properties;
pub mod publisher;
pub mod questions;
#[path = "../../src/for_tests/random.rs"]
pub mod random;
pub mod regions;
pub mod repaired;
pub mod retag;
pub mod served;
pub mod service;
pub mod shapefiles;
pub mod town;
pub mod web;
pub mod writers;
pub mod year;

pub use objects::*;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Whether tests run in their long version: `PBFHOGG_LONG=1`.
pub fn is_long() -> bool {
    std::env::var("PBFHOGG_LONG").is_ok_and(|value| value == "1")
}

/// The elements of `all` in a long run. In a short run each `of`-th, from number `turn` on: where turns count up, every
/// element has its turn.
pub fn in_turn<T>(
    turn: usize,
    of: usize,
    all: impl IntoIterator<Item = T>,
) -> impl Iterator<Item = T> {
    let of = if is_long() { 1 } else { of };
    all.into_iter().skip(turn % of).step_by(of)
}

/// Runs the test `name` again in a process of its own, where it is the only test, so that threads and planned faults are
/// its own. Returns whether this process is that one.
pub fn is_alone(name: &str) -> bool {
    const ALONE: &str = "PBFHOGG_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", name, "--test-threads=1", "--nocapture"]);
    let ran = test.env(ALONE, "1").output().unwrap();
    let said = [ran.stdout, ran.stderr].concat();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&said));
    false
}

// Running the tool.

/// An argument. The type lets strings and paths be elements of one list.
pub type Arg<'a> = &'a dyn AsRef<OsStr>;

/// The program as built for this test run.
pub fn pbfhogg() -> Command {
    Command::new(env!("CARGO_BIN_EXE_pbfhogg"))
}

/// Runs the program and expects success: `run_ok(&[&"sort", &input, &"-o", &output])`.
pub fn run_ok(args: &[Arg]) -> Output {
    let output = run(args);
    assert!(
        output.status.success(),
        "{}: {}\n{}",
        shown(args),
        output.status,
        stderr(&output)
    );
    output
}

/// Runs the program and expects an ordinary failure: exit status 2 and one line on stderr. Returns that line.
pub fn run_fail(args: &[Arg]) -> String {
    run_fail_with(2, args)
}

/// Does the same as [`run_fail`], and expects another exit status.
pub fn run_fail_with(status: i32, args: &[Arg]) -> String {
    let output = run(args);
    let message = stderr(&output);
    let command = shown(args);
    assert_eq!(
        output.status.code(),
        Some(status),
        "{command}: exit code; stderr:\n{message}"
    );
    assert!(
        !message.contains("panicked"),
        "{command} panicked:\n{message}"
    );
    assert_eq!(
        message.lines().count(),
        1,
        "{command}: lines on stderr:\n{message}"
    );
    message.trim_end().to_owned()
}

/// Creates a synthetic file with `elements` objects, and beside it the change file of one day, `001.osc.gz`.
pub fn world(dir: &Path, elements: &str) -> PathBuf {
    let path = dir.join("world.osm.pbf");
    run_ok(&[
        &"synth",
        &"--objects",
        &elements,
        &"--changes",
        &"1",
        &"-o",
        &path,
    ]);
    path
}

/// Writes a small synthetic file with metadata.
pub fn small_world(dir: &Path) -> PathBuf {
    let path = dir.join("small.osm.pbf");
    run_ok(&[&"synth", &"-q", &"--objects", &"3000", &"-o", &path]);
    path
}

pub fn run(args: &[Arg]) -> Output {
    let mut command = pbfhogg();
    command.args(args.iter().map(|arg| arg.as_ref()));
    command.output().expect("the tool starts")
}

fn shown(args: &[Arg]) -> String {
    let args: Vec<_> = args
        .iter()
        .map(|arg| arg.as_ref().to_string_lossy())
        .collect();
    format!("pbfhogg {}", args.join(" "))
}

/// The messages of a run.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
