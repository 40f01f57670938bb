//! Files of changesets. `cat` concatenates them, and `changeset-filter` copies some of their changesets. The inputs and
//! the output are text.

use crate::engine::{Format, OutputOptions};
use crate::error::{Error, Result};
use crate::file::Written;
use crate::formats::{
    Changeset, ChangesetText, TextDocument, TextFormat, TextOptions, begins_with_changeset,
    changeset_header, read_changesets,
};
use crate::io::{Input, OpenOutput};
use crate::pbf::HeaderBlock;
use crate::runtime::Context;
use std::path::Path;

/// The size in bytes at which buffered text is written.
const CHUNK: usize = 1 << 20;

/// Returns the inputs with their formats if each input begins with a changeset, as files of changesets do; `None`
/// otherwise.
pub(super) fn changeset_files(
    inputs: &[(Input, Option<TextFormat>)],
) -> Result<Option<Vec<(&Input, TextFormat)>>> {
    let mut found = Vec::new();
    for (input, format) in inputs {
        match format {
            Some(format) if begins_with_changeset(input, *format)? => found.push((input, *format)),
            _ => {}
        }
    }
    Ok((!found.is_empty() && found.len() == inputs.len()).then_some(found))
}

/// Returns the inputs with their formats if each is a text input that contains changesets, perhaps among nodes, ways
/// and relations; `None` otherwise. Reads the inputs to the end unless each begins with a changeset.
pub(super) fn inputs_with_changesets(
    inputs: &[(Input, Option<TextFormat>)],
) -> Result<Option<Vec<(&Input, TextFormat)>>> {
    if let Some(found) = changeset_files(inputs)? {
        return Ok(Some(found));
    }
    let mut found = Vec::new();
    for (input, format) in inputs {
        let Some(format) = format else {
            return Ok(None);
        };
        let mut has_some = false;
        read_changesets(input, *format, |_| {
            has_some = true;
            Ok(())
        })?;
        if !has_some {
            return Ok(None);
        }
        found.push((input, *format));
    }
    Ok(Some(found))
}

/// Whether a text input also contains nodes, ways or relations. Reads the whole input.
fn has_objects(input: &Input, format: TextFormat, ctx: &Context) -> Result<bool> {
    read_changesets(input, format, |_| ctx.cancellation.check())
}

/// Writes the changesets for which `keeps` returns `true`, in the order of the inputs. The output is text. If
/// `are_alone` is set and an input also contains nodes, ways or relations, returns `None`, and no output remains. Fails
/// if the output is PBF or CSV.
pub(super) fn write_changesets(
    inputs: &[(&Input, TextFormat)],
    output: &OutputOptions,
    keeps: impl Fn(&Changeset) -> bool,
    are_alone: bool,
    ctx: &Context,
) -> Result<Option<Written>> {
    let options = text_options(output);
    // Text that was written to a stream cannot be withdrawn. If the target is a stream, the inputs are therefore
    // searched for other objects first. They are also searched first if the output cannot hold changesets, because the
    // error below is only for inputs without other objects.
    if are_alone && (output.target.is_stream() || options.is_none()) {
        for (input, format) in inputs {
            if has_objects(input, *format, ctx)? {
                return Ok(None);
            }
        }
    }
    let options = options.ok_or_else(|| unsupported_output_error(inputs[0].0.path(), output))?;
    let open = OpenOutput::open(output.target.clone(), ctx)?;
    let mut file = TextDocument::create(open, &header(inputs, output)?, options)?;
    let (mut text, mut objects, mut comments) = (ChangesetText::new(options), 0, 0);
    let phase = ctx.phase("write changesets", 0);
    for (input, from) in inputs {
        let has_objects = read_changesets(input, *from, |changeset| {
            ctx.cancellation.check()?;
            if !keeps(changeset) {
                return Ok(());
            }
            objects += 1;
            comments += changeset.comments.len();
            text.put(changeset);
            if text.len() > CHUNK {
                file.add_text(&text.take())
            } else {
                Ok(())
            }
        })?;
        if has_objects && are_alone {
            return Ok(None);
        }
    }
    file.add_text(&text.take())?;
    drop(phase);
    if comments > 0 && options.format == TextFormat::Opl {
        ctx.warn(format!(
            "comments on changesets are left out, {comments} in all: OPL has no place for them"
        ));
    }
    let bytes = file.finish()?;
    ctx.stats.bytes_written.add(bytes);
    Ok(Some(Written {
        objects: Some(objects),
        bytes,
        ..Written::default()
    }))
}

/// Returns the text options of an output that can hold changesets; `None` for other outputs.
fn text_options(output: &OutputOptions) -> Option<&TextOptions> {
    match &output.format {
        Format::Text(options) if options.format != TextFormat::Csv => Some(options),
        Format::Text(_) | Format::Pbf => None,
    }
}

/// Returns the error for an output that cannot hold changesets.
fn unsupported_output_error(path: &Path, output: &OutputOptions) -> Error {
    let cause = match output.format {
        Format::Pbf => "this file holds changesets, which PBF cannot hold: write osm or opl",
        Format::Text(_) => "this file holds changesets, and CSV is for objects: write osm or opl",
    };
    Error::file(path, cause)
}

/// Returns the header of the output. If there is only one input, the fields of its header are the defaults. The header
/// options of the output are applied to them.
fn header(inputs: &[(&Input, TextFormat)], output: &OutputOptions) -> Result<HeaderBlock> {
    let mut header = HeaderBlock::default();
    if let [(input, format)] = inputs {
        let document = changeset_header(input, *format)?;
        header.writing_program = document.generator;
        header.text = document.text;
    }
    header.is_converted = true;
    output.header.apply(&mut header);
    Ok(header)
}
