//! What tests share: an independent decoder and writer, oracles, and running the tool.

pub mod answers;
pub mod bad_files;
pub mod comparison;
pub mod craft;
pub mod decode;
pub mod every;
pub mod extracts;
pub mod objects;
pub mod oracle;
pub mod properties;
pub mod questions;
pub mod regions;

pub use objects::*;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Whether tests take their time: `PBFHOGG_LONG=1`.
pub fn is_long() -> bool {
    std::env::var("PBFHOGG_LONG").is_ok_and(|value| value == "1")
}

// Running the tool.

/// An argument: anything that can be one, so that names and paths go into one list.
pub type Arg<'a> = &'a dyn AsRef<OsStr>;

/// The tool as it was built for this test run.
pub fn pbfhogg() -> Command {
    Command::new(env!("CARGO_BIN_EXE_pbfhogg"))
}

/// Runs the tool and expects success: `run_ok(&[&"sort", &input, &"-o", &output])`.
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

/// Runs the tool and expects a plain failure: exit code 2 and one line on stderr, which it returns.
pub fn run_fail(args: &[Arg]) -> String {
    let output = run(args);
    let message = stderr(&output);
    let command = shown(args);
    assert_eq!(
        output.status.code(),
        Some(2),
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

/// A generated world with a day of changes beside it, as `001.osc.gz`.
pub fn world(dir: &Path, elements: &str) -> PathBuf {
    let path = dir.join("world.osm.pbf");
    run_ok(&[
        &"synth",
        &"--elements",
        &elements,
        &"--changes",
        &"1",
        &"-o",
        &path,
    ]);
    path
}

fn run(args: &[Arg]) -> Output {
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

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
