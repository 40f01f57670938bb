//! Changesets in texts that also have nodes, ways or relations. Commands work on the objects; those that write every
//! object of their input as text write the changesets, too.

use super::output_options::{Format, OutputOptions};
use super::sink::Sink;
use crate::error::Result;
use crate::file::PbfFile;
use crate::formats::{ChangesetText, TextFormat, holds_changesets, read_changesets};
use crate::runtime::Context;

/// The number of bytes of buffered text after which the text is written.
const CHUNK: usize = 1 << 20;

/// The place of changesets in an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Before the objects, if the first object of the input is a changeset.
    Before,
    /// Behind the objects, if the first object of the input is none.
    Behind,
}

/// Writes the changesets of the text that `file` was converted from, if they belong to `place` and the output has room
/// for them. Otherwise tells the user how many are left out.
pub(crate) fn put(
    file: &PbfFile,
    place: Place,
    output: &OutputOptions,
    sink: &mut Sink,
    ctx: &Context,
) -> Result<()> {
    let Some(changesets) = &file.changesets else {
        return Ok(());
    };
    let text = &changesets.text;
    let options = match output.format {
        Format::Text(options) if options.format != TextFormat::OsmChange => options,
        Format::Text(_) | Format::Pbf => {
            if place == Place::Before {
                note_left_out(file, ctx);
            }
            return Ok(());
        }
    };
    let Some(format) = super::input::format_of(text, ctx)? else {
        return Ok(());
    };
    if holds_changesets(text, format)? != (place == Place::Before) {
        return Ok(());
    }
    let mut buffer = ChangesetText::new(&options);
    read_changesets(text, format, |changeset| {
        buffer.put(changeset);
        match buffer.len() > CHUNK {
            true => sink.add_text(&buffer.take()),
            false => Ok(()),
        }
    })?;
    sink.add_text(&buffer.take())
}

/// Tells the user how many changesets of an input are left out, if there are any.
pub(crate) fn note_left_out(file: &PbfFile, ctx: &Context) {
    if let Some(changesets) = &file.changesets {
        ctx.warn(format!(
            "{}: changesets are left out: {}",
            file.input.path().display(),
            changesets.count
        ));
    }
}
