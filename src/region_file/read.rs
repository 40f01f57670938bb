//! Reads a region from a file of any supported kind, and detects the kind.

use super::{geojson, json, osm_file, overpass, poly};
use crate::error::{Error, Result};
use crate::file::begins_with_header_frame;
use crate::geometry::{Antimeridian, Shape};
use crate::io::Input;
use std::path::Path;
use std::str::FromStr;

/// The kind of a file that describes a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ShapeFileKind {
    /// GeoJSON (RFC 7946), or the answer of an Overpass server in JSON, which is read like OSM data. A polygon of
    /// GeoJSON that jumps across the antimeridian is cut there.
    GeoJson,
    /// A polygon filter file of Osmosis (see the OSM wiki page "Osmosis/Polygon Filter File Format"). A polygon that
    /// jumps across the antimeridian is cut there.
    Poly,
    /// OSM data, as PBF, XML or OPL. The region consists of the areas of multipolygon and boundary relations, and of
    /// the closed ways that are not members of these relations. If a node is not in the file, the location that a way
    /// stores for it is used. If a way is not in the file, the nodes that a relation lists for it are used. Areas
    /// across the antimeridian are cut there, and an area around a pole is an error.
    Osm,
}

impl FromStr for ShapeFileKind {
    type Err = String;

    /// Parses `geojson`, `poly` or `osm`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "geojson" => Ok(Self::GeoJson),
            "poly" => Ok(Self::Poly),
            "osm" => Ok(Self::Osm),
            _ => Err("is not a kind of region file: use geojson, poly or osm".to_owned()),
        }
    }
}

impl ShapeFileKind {
    /// Returns the kind that the suffix of a file name stands for. Ignores case.
    fn of_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
        let mut suffixes = name.rsplit('.');
        match suffixes.next()? {
            "geojson" | "json" => Some(Self::GeoJson),
            "poly" => Some(Self::Poly),
            "osm" | "xml" | "pbf" | "opl" => Some(Self::Osm),
            "gz" | "bz2" | "zst" => match suffixes.next()? {
                "osm" | "opl" => Some(Self::Osm),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the kind of a file that begins with `start`; `None` if the content does not show the kind. `.poly` files
    /// have no signature.
    fn of_content(start: &[u8]) -> Option<Self> {
        let start = start.strip_prefix(BOM).unwrap_or(start).trim_ascii_start();
        match start {
            [b'{', ..] => Some(Self::GeoJson),
            _ if begins_with_header_frame(start) => Some(Self::Osm),
            [b'<', ..]
            | [0xff, 0xe0, 4, b'o', b'5', ..]
            | [0x1f, 0x8b, ..]
            | [b'B', b'Z', b'h', ..]
            | [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Osm),
            [b'n' | b'w' | b'r', b'-' | b'0'..=b'9', ..] => {
                let line = start.split(|byte| *byte == b'\n').next();
                let mut fields = line.unwrap_or_default().split(|byte| *byte == b' ');
                let has_version = fields.any(|field| matches!(field, [b'v', b'0'..=b'9', ..]));
                has_version.then_some(Self::Osm)
            }
            _ => None,
        }
    }

    /// Returns the kind that the content of a file shows. If the content does not show it, returns the kind that the
    /// suffix of the file name stands for, or `Poly` for an unknown suffix.
    fn of_file(input: &Input) -> Result<Self> {
        let mut start = [0; 64];
        let found = input.read_at(&mut start, 0)?;
        let shown = start.get(..found).and_then(Self::of_content);
        Ok(shown.or(Self::of_name(input.path())).unwrap_or(Self::Poly))
    }
}

/// The byte order mark of UTF-8, which some editors write.
pub(super) const BOM: &[u8] = b"\xef\xbb\xbf";

/// Reads a region and checks its shape ([`Shape::check`]). Without `kind`, the kind is detected from the content of the
/// file or, if the content does not show it, from the suffix of the file name. Fails for standard input (`-`). Errors
/// name the file and, where possible, the ring and the vertex.
pub fn read_shape(path: &Path, kind: Option<ShapeFileKind>) -> Result<Shape> {
    read_shape_as(path, kind, Antimeridian::Cut)
}

/// Reads a region as [`read_shape`] does. `antimeridian` tells how areas and polygons that cross the antimeridian are
/// treated. A polygon of GeoJSON or `.poly` crosses the antimeridian if a ring jumps from one side to the other, such
/// as from 179 to -179 degrees. If no ring jumps, the polygon does not cross it, or its author has already cut it.
pub fn read_shape_as(
    path: &Path,
    kind: Option<ShapeFileKind>,
    antimeridian: Antimeridian,
) -> Result<Shape> {
    if path.as_os_str() == "-" {
        let cause = "a region is read from a file, not from standard input";
        return Err(Error::Usage(cause.to_owned()));
    }
    // A stream can be opened only once.
    let input = Input::open(path)?;
    let kind = kind.map_or_else(|| ShapeFileKind::of_file(&input), Ok)?;
    let shape = match kind {
        ShapeFileKind::GeoJson => parse_json_shape(&read_text(&input)?, antimeridian),
        ShapeFileKind::Poly => poly::parse(&read_text(&input)?, antimeridian),
        ShapeFileKind::Osm => Ok(osm_file::read(&input, antimeridian)?),
    };
    shape
        .and_then(Shape::checked)
        .map_err(|cause| Error::file(path, cause))
}

/// Returns the region in a JSON document, which is GeoJSON or the answer of an Overpass server.
fn parse_json_shape(text: &[u8], antimeridian: Antimeridian) -> Result<Shape, String> {
    let document = json::parse(text)?;
    if overpass::is_overpass_response(&document) {
        osm_file::shape_of(&overpass::objects_of(&document)?, antimeridian)
    } else {
        geojson::shape_of(&document, antimeridian)
    }
}

/// Reads a text file and removes a byte order mark. Fails if the file is empty.
pub(super) fn read_text(input: &Input) -> Result<Vec<u8>> {
    /// The maximum size of a file in bytes. No file that describes a region is nearly as large.
    const LONGEST: u64 = 1 << 30;
    if input.is_empty() {
        return Err(Error::file(input.path(), "the file is empty"));
    }
    if input.len() > LONGEST {
        let cause = format!("{} bytes are too many for this kind of file", input.len());
        return Err(Error::file(input.path(), cause));
    }
    let mut bytes = vec![0; input.len() as usize];
    let found = input.read_at(&mut bytes, 0)?;
    bytes.truncate(found);
    if bytes.starts_with(BOM) {
        bytes.drain(..BOM.len());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;
    use crate::for_tests::rounds::rounds;

    #[test]
    fn the_suffix_tells_the_kind() {
        for (name, kind) in [
            ("a.geojson", Some(ShapeFileKind::GeoJson)),
            ("a.b.JSON", Some(ShapeFileKind::GeoJson)),
            ("a.poly", Some(ShapeFileKind::Poly)),
            ("a.osm", Some(ShapeFileKind::Osm)),
            ("a.osm.gz", Some(ShapeFileKind::Osm)),
            ("a.osm.bz2", Some(ShapeFileKind::Osm)),
            ("a.osm.zst", Some(ShapeFileKind::Osm)),
            ("a.xml", Some(ShapeFileKind::Osm)),
            ("a.osm.pbf", Some(ShapeFileKind::Osm)),
            ("a.pbf", Some(ShapeFileKind::Osm)),
            ("a.gz", None),
            ("a.txt", None),
            ("a", None),
        ] {
            assert_eq!(ShapeFileKind::of_name(Path::new(name)), kind, "{name}");
        }
    }

    #[test]
    fn the_content_tells_the_kind() {
        let (geojson, osm) = (Some(ShapeFileKind::GeoJson), Some(ShapeFileKind::Osm));
        for (start, kind) in [
            (&b"\xef\xbb\xbf\n {\"type\""[..], geojson),
            (b"<?xml", osm),
            (b"\0\0\0\x0d\n\x09OSMHeader", osm),
            (b"\x1f\x8b\x08", osm),
            (b"\xff\xe0\x04o5m2\xff", osm),
            (b"n1 v1 x1 y1\n", osm),
            (b"n1\n1\n 1 2\n", None),
            (b"berlin\n1\n", None),
            (b"", None),
        ] {
            assert_eq!(ShapeFileKind::of_content(start), kind);
        }
    }

    #[test]
    fn the_content_overrides_the_suffix() {
        let folder = tempfile::tempdir().unwrap();
        let polygon = r#"{"type":"Polygon","coordinates":[[[0,0],[4,0],[4,4],[0,0]]]}"#;
        for name in ["a.geojson", "a.poly", "a.osm", "a.txt", "a"] {
            let path = folder.path().join(name);
            std::fs::write(&path, polygon).unwrap();
            assert_eq!(read_shape(&path, None).unwrap().polygons.len(), 1);
        }
        let poly = "name\n1\n 1 2\n 3 4\n 5 2\nEND\nEND\n";
        for name in ["a.poly", "a.txt", "a"] {
            let path = folder.path().join(name);
            std::fs::write(&path, poly).unwrap();
            assert_eq!(read_shape(&path, None).unwrap().polygons.len(), 1);
        }
    }

    #[test]
    fn an_error_names_a_missing_or_empty_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.poly");
        let message = read_shape(&path, None).unwrap_err().to_string();
        assert!(message.contains("a.poly: cannot open"), "{message}");
        std::fs::write(&path, "").unwrap();
        let message = read_shape(&path, None).unwrap_err().to_string();
        assert!(message.ends_with("a.poly: the file is empty"), "{message}");
    }

    #[test]
    fn the_given_kind_overrides_the_suffix() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        std::fs::write(&path, "\u{feff}name\n1\n 1 2\n 3 4\n 5 2\nEND\nEND\n").unwrap();
        assert!(read_shape(&path, None).is_err());
        let shape = read_shape(&path, Some(ShapeFileKind::Poly)).unwrap();
        assert_eq!(shape.polygons.len(), 1);
    }

    #[test]
    fn a_damaged_file_gives_at_most_an_error_of_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let files: [&[u8]; 4] = [
            br#"{"type":"MultiPolygon","coordinates":[[[[0,0],[4,0],[4,4],[0,0]]]]}"#,
            b"a\n1\n 0 0\n 4 0\n 4 4\nEND\n!2\n 2 1\n 3 1\n 3 2\nEND\nEND\n",
            b"<osm version='0.6'><node id='1' lat='0' lon='0'/><node id='2' lat='1' lon='0'/>\
              <node id='3' lat='1' lon='1'/><way id='1'><nd ref='1'/><nd ref='2'/><nd ref='3'/>\
              <nd ref='1'/></way></osm>",
            br#"{"extracts":[{"output":"a","bbox":[1,2,3,4]},{"output":"b","polygon":[[[0,0],[4,0],[4,4],[0,0]]]}]}"#,
        ];
        let mut random = Random(1);
        for round in 0..rounds(4000) {
            let mut bytes = files[round % files.len()].to_vec();
            for _ in 0..=random.below(3) {
                let place = random.below(bytes.len());
                match random.below(4) {
                    0 => bytes.truncate(place + 1),
                    1 => drop(bytes.remove(place)),
                    2 => bytes[place] = b"0123456789.-eE,[]{}\"'<>/ \n\xff"[random.below(27)],
                    _ => bytes.insert(place, bytes[random.below(bytes.len())]),
                }
                if bytes.is_empty() {
                    bytes.push(b' ');
                }
            }
            std::fs::write(&path, &bytes).unwrap();
            let kinds = [
                ShapeFileKind::GeoJson,
                ShapeFileKind::Poly,
                ShapeFileKind::Osm,
            ];
            let errors = kinds.map(|kind| read_shape(&path, Some(kind)).err());
            let config =
                super::super::read_config(&path, crate::geometry::CornerOrder::Southwest).err();
            for error in errors.into_iter().chain([config]).flatten() {
                let message = error.to_string();
                assert!(!message.contains(['\n', '\r']), "{message}");
            }
        }
    }
}
