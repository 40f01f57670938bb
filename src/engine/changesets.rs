//! Copies changesets from text inputs that also have nodes, ways or relations. A command that writes every object of
//! its input as text also writes the changesets. [`put`] writes them before or after the objects, as in the input, and
//! [`put_sorted_changesets`] writes them ordered by id.

use super::output_options::{Format, OutputOptions};
use super::sink::Sink;
use crate::error::Result;
use crate::file::PbfFile;
use crate::formats::{
    Changeset, ChangesetText, TextFormat, TextOptions, begins_with_changeset, format_of,
    read_changesets,
};
use crate::runtime::Context;

/// The number of bytes after which buffered text is written.
const CHUNK: usize = 1 << 20;

/// The place of changesets in an output, relative to the other objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// Before the other objects, for an input whose first object is a changeset.
    Before,
    /// After the other objects, for an input whose first object is not a changeset.
    Behind,
}

/// Writes the changesets of a text input to the output. `file` is the PBF file that was converted from the text input.
/// Does nothing if the changesets belong to the other [`Placement`], or if the output format cannot hold changesets.
pub(crate) fn put(
    file: &PbfFile,
    place: Placement,
    output: &OutputOptions,
    sink: &mut Sink,
    ctx: &Context,
) -> Result<()> {
    let Some(changesets) = &file.changesets else {
        return Ok(());
    };
    let text = &changesets.text;
    let Some(options) = text_options(output) else {
        return Ok(());
    };
    let Some(format) = format_of(text, ctx.input_format)? else {
        return Ok(());
    };
    if begins_with_changeset(text, format)? != (place == Placement::Before) {
        return Ok(());
    }
    let mut buffer = ChangesetText::new(options);
    read_changesets(text, format, |changeset| {
        buffer.put(changeset);
        if buffer.len() > CHUNK {
            sink.add_text(&buffer.take())
        } else {
            Ok(())
        }
    })?;
    sink.add_text(&buffer.take())
}

/// Writes the changesets of several text inputs to the output, sorted by id. `files` are the PBF files that were
/// converted from the inputs. Does nothing if the output format cannot hold changesets. If `once` is set, only the last
/// of several changesets with the same id is written. All changesets are held in memory.
pub(crate) fn put_sorted_changesets(
    files: &[PbfFile],
    once: bool,
    output: &OutputOptions,
    sink: &mut Sink,
    ctx: &Context,
) -> Result<()> {
    let Some(options) = text_options(output) else {
        return Ok(());
    };
    let mut all: Vec<Changeset> = Vec::new();
    for changesets in files.iter().filter_map(|file| file.changesets.as_ref()) {
        if let Some(format) = format_of(&changesets.text, ctx.input_format)? {
            read_changesets(&changesets.text, format, |changeset| {
                all.push(changeset.clone());
                Ok(())
            })?;
        }
    }
    all.sort_by_key(|changeset| changeset.id);
    let mut buffer = ChangesetText::new(options);
    for (index, changeset) in all.iter().enumerate() {
        let is_last = all
            .get(index + 1)
            .is_none_or(|next| next.id != changeset.id);
        if is_last || !once {
            buffer.put(changeset);
        }
        if buffer.len() > CHUNK {
            sink.add_text(&buffer.take())?;
        }
    }
    sink.add_text(&buffer.take())
}

/// Whether the output format can hold changesets. Every text format except OsmChange and CSV can.
pub(crate) fn can_hold_changesets(output: &OutputOptions) -> bool {
    text_options(output).is_some()
}

/// Returns the options of the output format; `None` if the format cannot hold changesets.
fn text_options(output: &OutputOptions) -> Option<&TextOptions> {
    match &output.format {
        Format::Text(options)
            if !matches!(options.format, TextFormat::OsmChange | TextFormat::Csv) =>
        {
            Some(options)
        }
        Format::Text(_) | Format::Pbf => None,
    }
}

/// Warns the user that the changesets of an input are left out, with the number of changesets. Does nothing if the
/// input has none.
pub(crate) fn warn_of_left_out_changesets(file: &PbfFile, ctx: &Context) {
    if let Some(changesets) = &file.changesets {
        ctx.warn(format!(
            "{}: changesets are left out: {}",
            file.input.path().display(),
            changesets.count
        ));
    }
}
