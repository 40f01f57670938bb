//! Detects outputs whose names have the ending of a format other than the one that is written.

use crate::cli::session::Session;
use crate::formats::TextFormat;
use anyhow::{Result, bail};
use std::path::Path;

/// The endings of compressed files.
const COMPRESSED: [&str; 7] = ["gz", "bz2", "zst", "xz", "zip", "7z", "lz4"];

/// The endings of data formats, in lower case and without the ending of a compression. The endings that [`TextFormat`]
/// knows are not listed.
const KNOWN: &str = "\
    pbf adiff geojson geojsonl geojsonseq geojsons json jsonl jsonseq ndjson topojson wkt wkb pg \
    sql csv tsv txt html htm parquet geoparquet feather arrow arrows orc avro gpkg shp dbf fgb \
    gdb kml kmz gml gpx sqlite duckdb mbtiles pmtiles mvt tif tiff dxf xls xlsx ods pdf";

fn is_known_ending(ending: &str) -> bool {
    KNOWN.split(' ').any(|known| known == ending) || TextFormat::from_name(ending).is_some()
}

/// The format of an output, if it is implied by the command or by other options instead of being named by an option.
#[derive(Debug, Clone, Copy)]
pub struct Implied<'a> {
    /// The first clause of the error message. It says what is written, as in "--raw writes a directory of tables".
    pub what: &'a str,
    /// The endings that the name may have, in lower case. Names without a known ending are always accepted.
    pub endings: &'a [&'a str],
    /// Whether the name may also have the ending of a compression that the program writes.
    pub may_be_compressed: bool,
    /// The advice at the end of the error message, such as "name a directory".
    pub advice: &'a str,
}

impl Implied<'_> {
    /// Fails if the name of an output has the ending of another format, or of a compression that is not written.
    /// Accepts standard output (`-`) and, under the conventions of osmium, every name.
    pub fn check_name(&self, session: &Session, path: &Path) -> Result<()> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.to_ascii_lowercase();
        let is_named = path.as_os_str() != "-" && !session.conventions.reports_like_osmium;
        let Some(ending) = self.mismatched_ending(&name).filter(|_| is_named) else {
            return Ok(());
        };
        bail!(
            "{}: {}, but the name ends in .{ending}: {}",
            path.display(),
            self.what,
            self.advice
        )
    }

    /// Returns the ending of `name` if it belongs to another format, or to a compression that is not written. `name`
    /// must be in lower case.
    fn mismatched_ending<'n>(&self, name: &'n str) -> Option<&'n str> {
        let (stem, last) = name.rsplit_once('.')?;
        if !COMPRESSED.contains(&last) {
            let is_other = is_known_ending(last) && !self.endings.contains(&last);
            return is_other.then_some(last);
        }
        let inner = stem.rsplit_once('.').map(|(_, inner)| inner);
        let is_written = matches!(last, "gz" | "bz2" | "zst") && self.may_be_compressed;
        let is_other =
            inner.is_some_and(|inner| is_known_ending(inner) && !self.endings.contains(&inner));
        let known = inner.filter(|inner| is_known_ending(inner));
        let len = last.len() + known.map_or(0, |inner| inner.len() + 1);
        (is_other || !is_written).then(|| &name[name.len() - len..])
    }
}

/// Returns the implied format of an output that is a directory. `what` is explained in [`Implied`].
pub const fn directory(what: &str) -> Implied<'_> {
    Implied {
        what,
        endings: &[],
        may_be_compressed: false,
        advice: "name a directory",
    }
}

/// Fails if a directory that does not exist yet would get a name with the ending of a file format.
pub fn check_new_directory(session: &Session, path: &Path, what: &str) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    directory(what).check_name(session, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_formats_are_found_with_their_compression() {
        let changes = Implied {
            what: "it writes changes",
            endings: &["osc", "xml"],
            may_be_compressed: true,
            advice: "name it .osc",
        };
        let tables = Implied {
            endings: &["parquet"],
            may_be_compressed: false,
            ..changes
        };
        for (name, of_changes, of_tables) in [
            ("a.osc", None, Some("osc")),
            ("a.osc.gz", None, Some("osc.gz")),
            ("osc.gz", None, Some("gz")),
            ("a.gz", None, Some("gz")),
            ("a.osc.zip", Some("osc.zip"), Some("osc.zip")),
            ("a.geojson.gz", Some("geojson.gz"), Some("geojson.gz")),
            ("a.osm.pbf", Some("pbf"), Some("pbf")),
            ("a.parquet", Some("parquet"), None),
            ("a.b.parquet.gz", Some("parquet.gz"), Some("parquet.gz")),
            ("roads-2026.01", None, None),
            ("roads", None, None),
            ("", None, None),
        ] {
            assert_eq!(changes.mismatched_ending(name), of_changes, "{name}");
            assert_eq!(tables.mismatched_ending(name), of_tables, "{name}");
        }
        assert!(directory("it writes").mismatched_ending("a.gpkg").is_some());
        assert!(directory("it writes").mismatched_ending("-").is_none());
    }
}
