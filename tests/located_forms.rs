//! Files in each form that has to do with the locations of ways: plain; located, with all nodes; located, without the
//! nodes that only ways need; mixed. Every command must give the same objects and the same known locations for each.
//!
//! The location of a node reference is that of the node, if the node is in the file; else the one that the way stores;
//! else it is unknown. Expected results are those of the plain file or of simple, slow code. Files are written by an
//! encoder that shares no code with the program. Short runs take a few worlds for each command, and two forms of each
//! world in turn. Long runs take two thousand worlds and the real extracts, all in all forms.

mod changes;
mod clips;
mod combining;
mod days;
mod differences;
mod facts;
mod features;
mod forms;
mod making;
mod real;
mod regions;
mod selections;
mod worlds;

use crate::common::answers::Answer;
use crate::common::pbfhogg;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;

/// Runs a command line of the program, which must end with status 0 or 1. Words that are names of `paths`, such as
/// `{in}`, stand for these paths.
fn run_line(line: &str, paths: &[(&str, &Path)]) -> Answer {
    run_line_with(line, paths, Stdio::null())
}

/// As [`run_line`], with a file as standard input.
fn run_line_on(line: &str, paths: &[(&str, &Path)], stdin: &Path) -> Answer {
    let stdin = File::open(stdin).expect("the input can be read");
    run_line_with(line, paths, stdin.into())
}

fn run_line_with(line: &str, paths: &[(&str, &Path)], stdin: Stdio) -> Answer {
    let answer = try_line(line, paths, stdin);
    let shown: Vec<_> = paths.iter().map(|(_, path)| path.display()).collect();
    assert!(
        matches!(answer.status, 0 | 1),
        "{line} {shown:?}: status {}\n{}",
        answer.status,
        answer.stderr
    );
    answer
}

/// Runs a command line that may end with any status, but without a panic.
fn try_line(line: &str, paths: &[(&str, &Path)], stdin: Stdio) -> Answer {
    let word = |word: &str| {
        let found = paths.iter().find(|(name, _)| *name == word);
        found.map_or_else(
            || OsString::from(word),
            |(_, path)| path.as_os_str().to_owned(),
        )
    };
    let mut command = pbfhogg();
    command.args(line.split_whitespace().map(word)).stdin(stdin);
    let output = command.output().expect("the program starts");
    let answer = Answer {
        status: output.status.code().expect("the program ends by itself"),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    assert!(
        !answer.stderr.contains("panicked"),
        "{line}: {}",
        answer.stderr
    );
    answer
}
