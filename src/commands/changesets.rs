//! Files of changesets, which `cat` concatenates and `changeset-filter` selects from. The inputs and the output are text.

use crate::engine::{Format, OutputOptions};
use crate::error::{Error, Result};
use crate::file::Written;
use crate::formats::{
    Changeset, ChangesetText, TextDocument, TextFormat, changeset_header, holds_changesets,
    read_changesets,
};
use crate::io::{Input, OpenOutput};
use crate::pbf::HeaderBlock;
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

/// Writes the changesets of some files that `keeps` selects as text, in the order of the files. Fails if the output is
/// PBF.
pub(super) fn write(
    inputs: &[(&Input, TextFormat)],
    output: &OutputOptions,
    keeps: impl Fn(&Changeset) -> bool,
    ctx: &Context,
) -> Result<Written> {
    let path = inputs
        .first()
        .map_or(Path::new(""), |(input, _)| input.path());
    let Format::Text(options) = output.format else {
        let cause = "this file holds changesets, which PBF cannot hold: write osm or opl (-f)";
        return Err(Error::file(path, cause));
    };
    let open = OpenOutput::open(output.target.clone())?;
    let mut file = TextDocument::create(open, &header(inputs, output)?, &options)?;
    let (mut text, mut objects, mut comments) = (ChangesetText::new(&options), 0, 0);
    let phase = ctx.phase("write changesets", 0);
    for (input, from) in inputs {
        read_changesets(input, *from, |changeset| {
            if !keeps(changeset) {
                return Ok(());
            }
            objects += 1;
            comments += changeset.comments.len();
            text.put(changeset);
            match text.len() > CHUNK {
                true => file.add_text(&text.take()),
                false => Ok(()),
            }
        })?;
    }
    file.add_text(&text.take())?;
    drop(phase);
    if comments > 0 && options.format == TextFormat::Opl {
        ctx.warn(format!(
            "comments on changesets are left out, {comments} in all: OPL has no place for them"
        ));
    }
    Ok(Written {
        objects: Some(objects),
        bytes: file.finish()?,
        ..Written::default()
    })
}

/// The header of the output: that of a single input, with the fields that the user sets.
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
