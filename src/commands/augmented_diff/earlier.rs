//! Recognizes the outputs of earlier runs, which a run that updates a file in place may replace.

use super::xml::GENERATOR;
use crate::error::Result;
use crate::formats::features::is_action_csv;
#[cfg(feature = "parquet")]
use crate::formats::parquet::is_action_table;
use crate::io::{Input, decompressed_reader};
use memchr::memmem;
use std::io::Read;
use std::path::Path;

/// The number of bytes at the start of a GeoJSON file that are searched for the property `action` of the first feature.
/// A geometry with half a million points fits before the property.
const MOST: u64 = 16 << 20;
/// The number of bytes at the start of a file by which an augmented diff in XML or a list of tiles is recognized.
const HEAD: usize = 1 << 10;

/// Whether a run that updates a file in place may replace the file at `path`. This is the case if the file does not
/// exist, is not a regular file, is empty, or looks like an augmented diff or a list of tiles of this program. Returns
/// `false` if the file cannot be read.
pub fn is_replaceable(path: &Path) -> bool {
    match path.metadata() {
        Ok(found) if found.is_file() && found.len() > 0 => is_own_output(path).unwrap_or(false),
        // Nothing is lost: the file does not exist or is empty, or it is a device or a pipe.
        _ => true,
    }
}

/// Whether the file at `path` begins like an output of this program.
fn is_own_output(path: &Path) -> Result<bool> {
    let input = Input::open(path)?;
    #[cfg(feature = "parquet")]
    if is_action_table(input.file()) {
        return Ok(true);
    }
    let mut start = Vec::new();
    // A file that cannot be decompressed as a whole may still begin like an output of an earlier run.
    let _ = decompressed_reader(&input)?
        .take(MOST)
        .read_to_end(&mut start);
    Ok(looks_like_augmented_diff(&start) || begins_with_tile(&start))
}

/// Whether a file begins like an augmented diff in XML, GeoJSON or CSV.
fn looks_like_augmented_diff(start: &[u8]) -> bool {
    let head = start.get(..HEAD).unwrap_or(start);
    if memmem::find(head, GENERATOR.as_bytes()).is_some() || is_action_csv(start) {
        return true;
    }
    let rest = start
        .strip_prefix(b"{\"type\":\"FeatureCollection\",\"features\":[\n")
        .or_else(|| start.strip_prefix(b"\x1e"));
    rest.is_some_and(|rest| {
        rest.trim_ascii() == b"]}"
            || rest.starts_with(b"{\"type\":\"Feature\"")
                && memmem::find(rest, b",\"properties\":{\"action\":\"").is_some()
    })
}

/// Whether a file begins with a tile, such as `14/8802/5373`.
fn begins_with_tile(start: &[u8]) -> bool {
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let head = start.get(..HEAD).unwrap_or(start);
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let parts: Vec<&[u8]> = line.split(|byte| *byte == b'/').collect();
    parts.len() == 3 && parts.into_iter().all(is_number)
}

#[cfg(test)]
mod tests {
    use super::super::xml::PROLOGUE;
    use super::*;

    #[test]
    fn earlier_outputs_are_distinguished_from_foreign_files() {
        assert!(looks_like_augmented_diff(PROLOGUE.as_bytes()));
        let generator = format!("<?xml version='1.0'?>\n<osm {GENERATOR}>\n");
        for own in [
            generator.as_bytes(),
            b"{\"type\":\"FeatureCollection\",\"features\":[\n\n]}\n",
            b"{\"type\":\"FeatureCollection\",\"features\":[\n{\"type\":\"Feature\",\"bbox\":[1,2,3,4],\
              \"geometry\":null,\"properties\":{\"action\":\"modify\"}}",
            b"\x1e{\"type\":\"Feature\",\"geometry\":null,\"properties\":{\"action\":\"create\"}}\n",
            b"action,type,id,indirect,old_version,new_version,user,uid,changeset,timestamp,lon,lat,\
              old_tags,new_tags\n",
        ] {
            assert!(looks_like_augmented_diff(own) && !begins_with_tile(own));
        }
        assert!(begins_with_tile(b"14/8802/5373\n14/8803/5373\n") && begins_with_tile(b"0/0/0"));
        for other in [
            &b""[..],
            b"notes\n",
            b"{}",
            b"<osm version=\"0.6\" generator=\"Overpass API 0.7.62\">",
            b"<osmChange version=\"0.6\" generator=\"pbfhogg\"/>",
            b"{\"type\":\"FeatureCollection\",\"features\":[\n{\"type\":\"Feature\",\"geometry\":null,\
              \"properties\":{\"name\":\"a\"}}\n]}",
            b"\x1e{\"type\":\"Feature\",\"geometry\":null,\"properties\":{}}\n",
            b"action,type,id\n",
            b"1/2\n",
            b"1/2/x\n",
            b"2026/11/29 a diary\n",
        ] {
            assert!(!looks_like_augmented_diff(other) && !begins_with_tile(other));
        }
    }
}
