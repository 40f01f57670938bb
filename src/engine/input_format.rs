//! Determines the formats of inputs.

use crate::error::Result;
use crate::formats::TextFormat;
use crate::io::Input;
use crate::runtime::{Context, InputFormat};

/// Returns the text format of an input, or `None` for PBF. The format is that in [`Context::input_format`] or, with
/// [`InputFormat::Auto`], detected from the content.
pub(super) fn format_of(input: &Input, ctx: &Context) -> Result<Option<TextFormat>> {
    Ok(match ctx.input_format {
        InputFormat::Pbf => None,
        InputFormat::Osm => Some(TextFormat::Osm),
        InputFormat::Osc => Some(TextFormat::OsmChange),
        InputFormat::Opl => Some(TextFormat::Opl),
        InputFormat::O5m => match TextFormat::of(input)? {
            Some(TextFormat::O5c) => Some(TextFormat::O5c),
            _ => Some(TextFormat::O5m),
        },
        InputFormat::Auto => TextFormat::of(input)?,
    })
}
