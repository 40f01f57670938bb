//! Concatenates files of changesets. The inputs and the output are text.

use super::{Options, Summary};
use crate::engine::Format;
use crate::engine::headers::generator;
use crate::error::{Error, Result};
use crate::formats::{
    ChangesetText, DocumentHeader, TextFormat, TextOutput, XML_EPILOGUE, holds_changesets,
    read_changesets, xml_prologue,
};
use crate::io::Input;
use crate::runtime::Context;
use std::path::Path;

/// The number of bytes of buffered text after which the text is written.
const CHUNK: usize = 1 << 20;

/// The inputs with their formats if all contain changesets; `None` if no input does. Fails if only some inputs contain
/// changesets.
pub(super) fn of(
    inputs: &[(Input, Option<TextFormat>)],
) -> Result<Option<Vec<(&Input, TextFormat)>>> {
    let mut found = Vec::new();
    for (input, format) in inputs {
        match format {
            Some(format) if holds_changesets(input, *format)? => found.push((input, *format)),
            _ => {}
        }
    }
    match found.first() {
        None => Ok(None),
        Some(_) if found.len() == inputs.len() => Ok(Some(found)),
        Some((input, _)) => {
            let cause =
                "this file holds changesets, and other inputs do not: they cannot be joined";
            Err(Error::file(input.path(), cause))
        }
    }
}

/// Writes the changesets of some files as text, in the order of the files. Fails if the output is in a format other than
/// OSM XML and OPL.
pub(super) fn write(
    inputs: &[(&Input, TextFormat)],
    options: &Options,
    ctx: &Context,
) -> Result<Summary> {
    let (format, compression) = match options.output.format {
        Format::Text(text) if matches!(text.format, TextFormat::Osm | TextFormat::Opl) => {
            (text.format, text.compression)
        }
        _ => {
            let cause = "this file holds changesets, which only OSM XML and OPL can hold: write osm or opl (-f)";
            let path = inputs
                .first()
                .map_or(Path::new(""), |(input, _)| input.path());
            return Err(Error::file(path, cause));
        }
    };
    let mut output = TextOutput::compressed(options.output.target.clone(), compression)?;
    if format != TextFormat::Opl {
        output.write(&xml_prologue(&DocumentHeader {
            generator: Some(generator(options.output.header.generator.as_deref())),
            ..DocumentHeader::default()
        }))?;
    }
    let mut summary = Summary::default();
    let (mut text, mut objects, mut comments) = (ChangesetText::default(), 0, 0);
    let phase = ctx.phase("write changesets", 0);
    for (input, from) in inputs {
        read_changesets(input, *from, |changeset| {
            objects += 1;
            match format {
                TextFormat::Opl => {
                    comments += changeset.comments.len();
                    text.put_opl(changeset);
                }
                _ => text.put_xml(changeset),
            }
            match text.len() > CHUNK {
                true => output.write(&text.take()),
                false => Ok(()),
            }
        })?;
    }
    output.write(&text.take())?;
    if format != TextFormat::Opl {
        output.write(XML_EPILOGUE)?;
    }
    drop(phase);
    summary.written.objects = Some(objects);
    summary.written.bytes = output.finish()?;
    if comments > 0 {
        ctx.warn(format!(
            "comments on changesets are left out, {comments} in all: OPL has no place for them"
        ));
    }
    Ok(summary)
}
