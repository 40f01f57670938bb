//! Explains errors that are caused by files in the wrong place on the command line: change files in place of data
//! files, or data files in place of change files.
//!
//! The commands detect most of these mistakes themselves. After an error, this module examines the files, so that the
//! message can name the intended command line.

use super::session::Session;
use crate::Context;
use crate::error::display_path;
use crate::file::PbfFile;
use crate::formats::{FileContent, TextFormat};
use crate::io::Input;
use crate::pbf::feature;
use anyhow::{Error, anyhow};
use std::path::{Path, PathBuf};

/// Returns the kind of content that a file has; `None` if the content is unknown, or if the file is a stream, which can
/// be read only once.
fn detect_content(path: &Path, ctx: &Context) -> Option<FileContent> {
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
fn first_with_content<'p>(
    paths: &'p [PathBuf],
    wanted: FileContent,
    ctx: &Context,
) -> Option<&'p PathBuf> {
    let mut paths = paths.iter();
    paths.find(|path| detect_content(path, ctx) == Some(wanted))
}

/// Formats a command line that begins with the name of this program.
fn command_line_text<'p>(
    session: &Session,
    command: &str,
    inputs: impl IntoIterator<Item = &'p Path>,
    output: Option<&Path>,
) -> String {
    let output = output.unwrap_or(Path::new("OUTPUT"));
    let inputs = inputs
        .into_iter()
        .map(|path| display_path(path).to_string());
    format!(
        "`{} {command} {} -o {}`",
        session.conventions.name,
        inputs.collect::<Vec<_>>().join(" "),
        output.display()
    )
}

/// Returns the paths other than `one`.
fn others<'p>(paths: &'p [PathBuf], one: &Path) -> impl Iterator<Item = &'p Path> {
    paths
        .iter()
        .map(PathBuf::as_path)
        .filter(move |path| *path != one)
}

/// The text of the error for a change file in the place of the base.
const CHANGES_AS_BASE: &str = "this is a change file, and the base comes first";

/// Returns the error for a data file in the place of a change file.
fn not_changes_error(data: &Path, advice: &str) -> Error {
    anyhow!(
        "{}: this is data, not a change file: {advice}",
        display_path(data)
    )
}

/// Returns the error to print after `apply-changes` failed with `error`. If the base is a change file, or if one of
/// `changes` is a data file, the new error names the right command line.
pub fn explain_apply_error(
    session: &Session,
    error: Error,
    base: &Path,
    changes: &[PathBuf],
    output: Option<&Path>,
) -> Error {
    let ctx = Context::new(1);
    let is_changes = detect_content(base, &ctx) == Some(FileContent::Changes);
    match first_with_content(changes, FileContent::Data, &ctx) {
        Some(data) if is_changes => {
            let all = [data.as_path(), base]
                .into_iter()
                .chain(others(changes, data));
            let applying = command_line_text(session, "apply-changes", all, output);
            anyhow!("{}: {CHANGES_AS_BASE}: {applying}", display_path(base))
        }
        None if is_changes => {
            let all = [base]
                .into_iter()
                .chain(changes.iter().map(PathBuf::as_path));
            let joining = command_line_text(session, "merge-changes", all, output);
            anyhow!(
                "{}: {CHANGES_AS_BASE}; {joining} joins change files",
                display_path(base)
            )
        }
        Some(data) if !session.conventions.merges_data => {
            let joining = command_line_text(session, "merge", [base, data], output);
            let deriving = command_line_text(session, "derive-changes", [base, data], None);
            not_changes_error(
                data,
                &format!("{joining} joins data, {deriving} makes a change file of two states"),
            )
        }
        _ => error,
    }
}

/// Returns the error to print after `augmented-diff` failed with `error`. If one of `changes` is a data file, the new
/// error names the command that compares data.
pub fn explain_augmented_error(
    session: &Session,
    error: Error,
    base: &Path,
    changes: &[PathBuf],
    output: Option<&Path>,
) -> Error {
    match first_with_content(changes, FileContent::Data, &Context::new(1)) {
        Some(data) => {
            let comparing = command_line_text(session, "diff -f adiff", [base, data], output);
            not_changes_error(data, &format!("{comparing} compares two states"))
        }
        None => error,
    }
}

/// Returns an error if an input of `merge-changes` is a data file. The error names the right command line.
pub fn merge_input_error(
    session: &Session,
    inputs: &[PathBuf],
    output: Option<&Path>,
    ctx: &Context,
) -> Option<Error> {
    let data = first_with_content(inputs, FileContent::Data, ctx)?;
    let advice = if first_with_content(inputs, FileContent::Changes, ctx).is_some() {
        let all = [data.as_path()].into_iter().chain(others(inputs, data));
        let applying = command_line_text(session, "apply-changes", all, output);
        format!("{applying} applies changes to it")
    } else {
        let all = inputs.iter().map(PathBuf::as_path);
        format!(
            "{} joins data",
            command_line_text(session, "merge", all, output)
        )
    };
    Some(not_changes_error(data, &advice))
}

/// Returns the error to print after `derive-changes` failed with `error`. If an input is a change file, the new error
/// names the right command line.
pub fn explain_derive_error(
    session: &Session,
    error: Error,
    old: &Path,
    new: &Path,
    output: &Path,
) -> Error {
    let output = (output != Path::new("-")).then_some(output);
    let ctx = Context::new(1);
    let [of_old, of_new] =
        [old, new].map(|path| detect_content(path, &ctx) == Some(FileContent::Changes));
    let applying = |data, changes| {
        let applying = command_line_text(session, "apply-changes", [data, changes], None);
        (changes, format!("{applying} applies changes"))
    };
    let (changes, advice) = match (of_old, of_new) {
        (true, true) => {
            let joining = command_line_text(session, "merge-changes", [old, new], output);
            (old, format!("{joining} joins change files"))
        }
        (false, true) => applying(old, new),
        (true, false) => applying(new, old),
        (false, false) => return error,
    };
    anyhow!(
        "{}: this is a change file, and derive-changes compares data: {advice}",
        display_path(changes)
    )
}
