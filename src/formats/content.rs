//! Determines the format of an input and the kind of its content, which is data, a history or changes.
//!
//! The bytes of a file show its format and its content. If the bytes fit two kinds of content, the name of the file
//! decides.

use super::text_compression::TextCompression;
use crate::error::Result;
use crate::io::Input;
use crate::osm::{FileContent, TextFormat};
use crate::runtime::{Context, InputFormat};
use std::path::Path;

impl FileContent {
    /// Returns the content that is declared by the options of the run; `None` if the options declare none.
    pub(crate) const fn from_options(ctx: &Context) -> Option<Self> {
        match (ctx.input_is_change, ctx.input_is_history) {
            (true, _) => Some(Self::Changes),
            (false, true) => Some(Self::History),
            (false, false) => None,
        }
    }

    /// Returns the content that the name of a file stands for: `.osh` and `.osc` in XML, `.osh.opl` and `.osc.opl` in
    /// OPL, `.osh.pbf` and `.osc.pbf` in PBF. `format` is the format of the file; `None` stands for PBF. Returns `None`
    /// for other names, and for a name that does not fit `format`.
    pub(crate) fn of_name(path: &Path, format: Option<TextFormat>) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
        let (plain, _) = TextCompression::split_extension(&name);
        let name = match format {
            None => name.strip_suffix(".pbf")?,
            Some(format) if format.facts().content.is_none() => {
                plain.strip_suffix(format.short_name())?.strip_suffix('.')?
            }
            Some(_) => plain.strip_suffix(".xml").unwrap_or(plain),
        };
        if name.ends_with(".osh") {
            Some(Self::History)
        } else if name.ends_with(".osc") {
            Some(Self::Changes)
        } else {
            None
        }
    }
}

/// Returns the text format of an input; `None` for PBF and for unknown content. The content decides between formats
/// that `given` leaves open: with [`InputFormat::Auto`], between all text formats; with the XML and o5m formats,
/// between data and changes.
pub(crate) fn format_of(input: &Input, given: InputFormat) -> Result<Option<TextFormat>> {
    Ok(match given {
        InputFormat::Pbf => None,
        InputFormat::Text(format) => Some(format),
        InputFormat::Xml => match TextFormat::of(input)? {
            Some(TextFormat::OsmChange) => Some(TextFormat::OsmChange),
            _ => Some(TextFormat::Osm),
        },
        InputFormat::O5m => match TextFormat::of(input)? {
            Some(TextFormat::O5c) => Some(TextFormat::O5c),
            _ => Some(TextFormat::O5m),
        },
        InputFormat::Auto => TextFormat::of(input)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_that_fits_the_format_tells_the_content() {
        let (xml, opl) = (Some(TextFormat::Osm), Some(TextFormat::Opl));
        for (name, format) in [
            ("a.osh", xml),
            ("b/a.x.OSH.gz", xml),
            ("a.osh.xml.bz2", xml),
            ("a.osh.opl.zst", opl),
            ("a.osh.pbf", None),
        ] {
            let found = FileContent::of_name(Path::new(name), format);
            assert_eq!(found, Some(FileContent::History), "{name}");
        }
        for (name, format) in [
            ("a.osc.opl", opl),
            ("a.osc.opl.gz", opl),
            ("a.osc.pbf", None),
        ] {
            let found = FileContent::of_name(Path::new(name), format);
            assert_eq!(found, Some(FileContent::Changes), "{name}");
        }
        for (name, format) in [
            ("a.osc", opl),
            ("a.osh", opl),
            ("a.osc", None),
            ("a.osh.pbf", opl),
            ("a.osh.opl", None),
            ("a.osm.pbf", None),
            ("a.osm", xml),
            ("a", xml),
            ("", xml),
        ] {
            assert_eq!(
                FileContent::of_name(Path::new(name), format),
                None,
                "{name}"
            );
        }
    }
}
