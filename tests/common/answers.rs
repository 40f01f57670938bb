//! Programs that are asked something: what they answer, and small files to ask about.

use super::craft::{self, Shape};
use super::{Arg, Kind, Object, canonical_key, pbfhogg};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a program said in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its exit status.
    pub status: i32,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
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

    /// Standard output as JSON.
    pub fn json(&self) -> serde_json::Value {
        let parsed = serde_json::from_str(&self.stdout);
        parsed.unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs the tool, whatever its exit status.
pub fn ask(args: &[Arg]) -> Answer {
    let answer = answer(pbfhogg(), args);
    assert!(!answer.stderr.contains("panicked"), "{}", answer.stderr);
    answer
}

/// Runs osmium, whatever its exit status.
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

/// A file of these blobs.
pub fn file_of(dir: &Path, name: &str, blobs: &[&[Object]]) -> PathBuf {
    file_in_shape(dir, name, blobs, &Shape::USUAL)
}

/// A file of these blobs, in any shape.
pub fn file_in_shape(dir: &Path, name: &str, blobs: &[&[Object]], shape: &Shape) -> PathBuf {
    let blobs: Vec<_> = blobs
        .iter()
        .map(|objects| craft::block(objects, shape))
        .collect();
    let path = dir.join(name);
    std::fs::write(&path, craft::plain_file(&blobs)).expect("the file can be written");
    path
}

/// A history file of these blobs.
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

/// The objects in canonical order, versions ascending.
pub fn in_order(mut objects: Vec<Object>) -> Vec<Object> {
    objects.sort_by_key(|object| (canonical_key(object.kind, object.id), object.version));
    objects
}

/// `n17`, `w-3`, `r111`.
pub fn name_of(object: &Object) -> String {
    let letter = match object.kind {
        Kind::Node => 'n',
        Kind::Way => 'w',
        Kind::Relation => 'r',
    };
    format!("{letter}{}", object.id)
}
