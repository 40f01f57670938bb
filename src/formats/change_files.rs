//! Opens change files in any format: OsmChange, o5c, OPL or PBF. The format is detected from the content, unless the
//! caller sets it.

use super::content::format_of;
use super::read::ObjectSource;
use crate::error::{Error, ErrorKind, Result};
use crate::file::{PbfFile, begins_with_header_frame};
use crate::io::Input;
use crate::osm::{FileContent, TextFormat};
use crate::pbf::feature;
use crate::runtime::{Context, InputFormat};

/// Returns a source of objects for each change file. The format is [`Context::change_format`] or, with
/// [`InputFormat::Auto`], detected from the content of the file. Fails if a file contains data instead of changes,
/// unless [`Context::data_as_changes`] is set.
pub(crate) fn change_sources(inputs: &[Input], ctx: &Context) -> Result<Vec<ObjectSource>> {
    let sources = inputs.iter().map(|input| change_source(input, ctx));
    sources.collect()
}

/// Returns the source of a change file, as [`change_sources`] does.
pub(crate) fn change_source(input: &Input, ctx: &Context) -> Result<ObjectSource> {
    let format = match ctx.change_format {
        // If the format cannot be detected, the parser of OsmChange describes the problem.
        InputFormat::Auto => TextFormat::of(input).unwrap_or_default(),
        given => format_of(input, given)?,
    };
    match format {
        Some(format) if format.is_change() => Ok(ObjectSource::of_text(input, format)),
        // OPL has no form of its own for changes.
        Some(format) if format.facts().content.is_none() || ctx.data_as_changes => {
            Ok(ObjectSource::of_text_versions(input, format))
        }
        None if ctx.change_format == InputFormat::Pbf
            || begins_with_header_frame(input.first_bytes()?) =>
        {
            pbf_source(input, ctx)
        }
        Some(TextFormat::Osm) | None => Ok(ObjectSource::of_text(input, TextFormat::OsmChange)),
        Some(format) => Err(not_a_change_file_error(input, format.name())),
    }
}

/// Returns the source of a change file in PBF. Fails if nothing shows that the objects are changes: neither a history
/// in the header, nor the file name, nor [`Context::data_as_changes`].
fn pbf_source(input: &Input, ctx: &Context) -> Result<ObjectSource> {
    let file = PbfFile::of_input(input.clone(), ctx)?;
    let is_named = FileContent::of_name(input.path(), None) == Some(FileContent::Changes);
    if ctx.data_as_changes || is_named || file.header.has(feature::HISTORY) {
        Ok(ObjectSource::of_pbf(file))
    } else {
        Err(not_a_change_file_error(input, "a PBF file"))
    }
}

fn not_a_change_file_error(input: &Input, name: &str) -> Error {
    let cause = format!("this is {name} with data, not a change file");
    Error::file_of(input.path(), ErrorKind::NotOsm, cause)
}
