//! Running programs that report something, and small files to run them on.

use super::craft::{self, Shape};
use super::{Arg, Kind, Object, canonical_key, pbfhogg};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The result of running a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The exit status.
    pub status: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Answer {
    /// The lines of standard output.
    pub fn lines(&self) -> Vec<String> {
        self.stdout.lines().map(str::to_owned).collect()
    }

    /// The lines of standard output, sorted.
    pub fn sorted_lines(&self) -> Vec<String> {
        let mut lines = self.lines();
        lines.sort();
        lines
    }

    /// Standard output parsed as JSON.
    pub fn json(&self) -> serde_json::Value {
        let parsed = serde_json::from_str(&self.stdout);
        parsed.unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs the program, which may end with any exit status but must not panic.
pub fn ask(args: &[Arg]) -> Answer {
    let answer = answer(pbfhogg(), args);
    assert!(!answer.stderr.contains("panicked"), "{}", answer.stderr);
    answer
}

/// Runs osmium, which may end with any exit status.
pub fn ask_osmium(args: &[Arg]) -> Answer {
    answer(Command::new("osmium"), args)
}

fn answer(mut command: Command, args: &[Arg]) -> Answer {
    let output = command
        .args(args.iter().map(|arg| arg.as_ref()))
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    Answer {
        status: output.status.code().expect("an exit status"),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Writes a file with a blob for each list of objects.
pub fn file_of(dir: &Path, name: &str, blobs: &[&[Object]]) -> PathBuf {
    file_in_shape(dir, name, blobs, &Shape::USUAL)
}

/// Writes a file with a blob for each list of objects, in a given shape.
pub fn file_in_shape(dir: &Path, name: &str, blobs: &[&[Object]], shape: &Shape) -> PathBuf {
    let blobs: Vec<_> = blobs
        .iter()
        .map(|objects| craft::block(objects, shape))
        .collect();
    let path = dir.join(name);
    std::fs::write(&path, craft::plain_file(&blobs)).expect("the file can be written");
    path
}

/// Writes a history file with a blob for each list of objects.
pub fn history_of(dir: &Path, name: &str, blobs: &[&[Object]]) -> PathBuf {
    let shape = Shape {
        history: true,
        ..Shape::USUAL
    };
    let blobs: Vec<_> = blobs
        .iter()
        .map(|objects| craft::block(objects, &shape))
        .collect();
    let required = ["OsmSchema-V0.6", "DenseNodes", "HistoricalInformation"];
    let header = craft::header_payload(&required, &[]);
    let path = dir.join(name);
    std::fs::write(&path, craft::file(header, &blobs)).expect("the file can be written");
    path
}

/// The objects in canonical order, versions of an object ascending.
pub fn in_order(mut objects: Vec<Object>) -> Vec<Object> {
    objects.sort_by_key(|object| (canonical_key(object.kind, object.id), object.version));
    objects
}

/// The name of an object: `n17`, `w-3`, `r111`.
pub fn name_of(object: &Object) -> String {
    let letter = match object.kind {
        Kind::Node => 'n',
        Kind::Way => 'w',
        Kind::Relation => 'r',
    };
    format!("{letter}{}", object.id)
}
