//! Explains errors that are caused by files in the wrong place on the command line: change files in place of data
//! files, or data files in place of change files.
//!
//! The commands detect most of these mistakes themselves. After an error, this module examines the files, so that the
//! message can name the intended command line.

use super::session::Session;
use crate::Context;
use crate::error::shown;
use crate::file::PbfFile;
use crate::formats::{FileContent, TextFormat};
use crate::io::Input;
use crate::pbf::feature;
use anyhow::{Error, anyhow};
use std::path::{Path, PathBuf};

/// Returns the content of a file; `None` if the content is unknown, or if the file is a stream, which can be read only
/// once.
fn content(path: &Path, ctx: &Context) -> Option<FileContent> {
    if !path.is_file() && ctx.file(path).is_none() {
        return None;
    }
    let input = Input::open_in(path, ctx).ok()?;
    match TextFormat::of(&input).ok()? {
        Some(format) => format.facts().content,
        None => {
            let is_named = FileContent::of_name(path, None) == Some(FileContent::Changes);
            let file = PbfFile::of_input(input, &Context::new(1)).ok()?;
            // A PBF file with the history feature may contain changes, so its content counts as unknown.
            (!is_named && !file.header.has(feature::HISTORY)).then_some(FileContent::Data)
        }
    }
}

/// Returns the first file with the given content.
fn first<'p>(paths: &'p [PathBuf], wanted: FileContent, ctx: &Context) -> Option<&'p PathBuf> {
    let mut paths = paths.iter();
    paths.find(|path| content(path, ctx) == Some(wanted))
}

/// Formats a command line that begins with the name of this program.
fn line(session: &Session, command: &str, inputs: &[&Path], output: Option<&Path>) -> String {
    let output = output.unwrap_or(Path::new("OUTPUT"));
    let inputs = inputs.iter().map(|path| shown(path).to_string());
    format!(
        "`{} {command} {} -o {}`",
        session.conventions.name,
        inputs.collect::<Vec<_>>().join(" "),
        output.display()
    )
}

fn paths(paths: &[PathBuf]) -> Vec<&Path> {
    paths.iter().map(PathBuf::as_path).collect()
}

/// Returns the error to print after `apply-changes` failed with `error`. If the base is a change file, or if one of
/// `changes` is a data file, the new error names the right command line.
pub fn of_apply(
    session: &Session,
    error: Error,
    base: &Path,
    changes: &[PathBuf],
    output: Option<&Path>,
) -> Error {
    let ctx = Context::new(1);
    if content(base, &ctx) == Some(FileContent::Changes) {
        return match first(changes, FileContent::Data, &ctx) {
            Some(data) => {
                let others = changes.iter().filter(|path| *path != data);
                let inputs = [data.as_path(), base].into_iter();
                let inputs: Vec<_> = inputs.chain(others.map(PathBuf::as_path)).collect();
                anyhow!(
                    "{}: this is a change file, and the base comes first: {}",
                    shown(base),
                    line(session, "apply-changes", &inputs, output)
                )
            }
            None => {
                let inputs: Vec<_> = [base].into_iter().chain(paths(changes)).collect();
                anyhow!(
                    "{}: this is a change file, and the base comes first; {} joins change files",
                    shown(base),
                    line(session, "merge-changes", &inputs, output)
                )
            }
        };
    }
    match first(changes, FileContent::Data, &ctx) {
        Some(data) if !session.conventions.merges_data => anyhow!(
            "{}: this is data, not a change file: {} joins data, {} makes a change file of two states",
            shown(data),
            line(session, "merge", &[base, data], output),
            line(session, "derive-changes", &[base, data], None)
        ),
        _ => error,
    }
}

/// Returns the error to print after `augmented-diff` failed with `error`. If one of `changes` is a data file, the new
/// error names the command that compares data.
pub fn of_augmented(
    session: &Session,
    error: Error,
    base: &Path,
    changes: &[PathBuf],
    output: Option<&Path>,
) -> Error {
    match first(changes, FileContent::Data, &Context::new(1)) {
        Some(data) => anyhow!(
            "{}: this is data, not a change file: {} compares two states",
            shown(data),
            line(session, "diff -f adiff", &[base, data], output)
        ),
        None => error,
    }
}

/// Returns an error if an input of `merge-changes` is a data file. The error names the right command line.
pub fn of_merge(
    session: &Session,
    inputs: &[PathBuf],
    output: Option<&Path>,
    ctx: &Context,
) -> Option<Error> {
    let data = first(inputs, FileContent::Data, ctx)?;
    let message = match first(inputs, FileContent::Changes, ctx) {
        None => format!(
            "{} joins data",
            line(session, "merge", &paths(inputs), output)
        ),
        Some(_) => {
            let changes = inputs.iter().filter(|path| *path != data);
            let all = [data.as_path()].into_iter();
            let all: Vec<_> = all.chain(changes.map(PathBuf::as_path)).collect();
            format!(
                "{} applies changes to it",
                line(session, "apply-changes", &all, output)
            )
        }
    };
    Some(anyhow!(
        "{}: this is data, not a change file: {message}",
        shown(data)
    ))
}

/// Returns the error to print after `derive-changes` failed with `error`. If an input is a change file, the new error
/// names the right command line.
pub fn of_derive(session: &Session, error: Error, old: &Path, new: &Path, output: &Path) -> Error {
    let output = (output != Path::new("-")).then_some(output);
    let ctx = Context::new(1);
    let [of_old, of_new] = [content(old, &ctx), content(new, &ctx)];
    let (changes, message) = match (of_old, of_new) {
        (Some(FileContent::Changes), Some(FileContent::Changes)) => (
            old,
            format!(
                "{} joins change files",
                line(session, "merge-changes", &[old, new], output)
            ),
        ),
        (_, Some(FileContent::Changes)) => (
            new,
            format!(
                "{} applies changes",
                line(session, "apply-changes", &[old, new], None)
            ),
        ),
        (Some(FileContent::Changes), _) => (
            old,
            format!(
                "{} applies changes",
                line(session, "apply-changes", &[new, old], None)
            ),
        ),
        _ => return error,
    };
    anyhow!(
        "{}: this is a change file, and derive-changes compares data: {message}",
        shown(changes)
    )
}
