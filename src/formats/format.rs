//! Detects the text format of a file, compressed or not.

use super::encoding::{is_utf16, utf8_reader};
use crate::error::{Advice, Error, Result};
use crate::io::{FileCompression, Input};
use crate::osm::{TextFormat, has_change_root};
use std::io::{self, Read};
use std::path::Path;

impl TextFormat {
    /// Detects the format of an input from its first bytes, after they are decompressed and converted to UTF-8. Returns
    /// `None` for an unknown format. Fails if the input cannot be read, or cannot be decompressed far enough to detect
    /// the format.
    pub fn of(input: &Input) -> Result<Option<Self>> {
        const PROBE_LEN: u64 = 1 << 16;
        let start = input.first_bytes()?;
        // An OPL file that has neither objects nor comments is recognized by its name alone.
        let empty = has_opl_extension(input.path()).then_some(Self::Opl);
        if is_blank(start) {
            return Ok(empty);
        }
        if FileCompression::detect(start).is_none() && !is_utf16(start) {
            return Ok(Self::detect_from_text(start));
        }
        let mut start = Vec::new();
        let read = utf8_reader(input)?.take(PROBE_LEN).read_to_end(&mut start);
        match (Self::detect_from_text(&start), read) {
            // If the format is known although `read` is an error, the file is damaged after its first bytes. The damage
            // is reported when the file is read.
            (Some(format), _) => Ok(Some(format)),
            (None, Ok(_)) if is_blank(&start) => Ok(empty),
            (None, Ok(_)) => Ok(None),
            (None, Err(error)) => Err(error.downcast::<Error>().unwrap_or_else(|error| {
                let is_cut = error.kind() == io::ErrorKind::UnexpectedEof;
                let error = Error::file(input.path(), format!("cannot be decompressed: {error}"));
                if is_cut {
                    error.advise(Advice::FetchAgain)
                } else {
                    error
                }
            })),
        }
    }

    fn detect_from_text(start: &[u8]) -> Option<Self> {
        if let Some(format) = Self::from_magic(start) {
            return Some(format);
        }
        let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
        // XML may begin with white space. OPL may begin only with empty lines, because a line of OPL cannot begin with
        // white space.
        let start = match start.trim_ascii_start() {
            trimmed @ [b'<', ..] => trimmed,
            _ => {
                let is_end = |byte: &&u8| matches!(**byte, b'\n' | b'\r');
                start.get(start.iter().take_while(is_end).count()..)?
            }
        };
        let is_object = |line: &&[u8]| {
            matches!(
                line,
                [b'n' | b'w' | b'r' | b'c', b'0'..=b'9', ..]
                    | [b'n' | b'w' | b'r', b'-', b'0'..=b'9', ..]
            )
        };
        match start.first()? {
            b'<' if has_change_root(start) => Some(Self::OsmChange),
            b'<' => Some(Self::Osm),
            b'#' | b'n' | b'w' | b'r' | b'c' => {
                let lines = start.split(|byte| *byte == b'\n');
                let mut said = lines.filter(|line| !line.starts_with(b"#") && !is_blank(line));
                // A file that has only comments is OPL without objects. No other format has comments that begin with
                // `#`.
                said.next()
                    .is_none_or(|line| is_object(&line))
                    .then_some(Self::Opl)
            }
            _ => None,
        }
    }
}

/// Whether a text consists only of line breaks.
fn is_blank(text: &[u8]) -> bool {
    text.iter().all(|byte| matches!(byte, b'\n' | b'\r'))
}

/// Whether a file name has the extension of OPL, compressed or not.
fn has_opl_extension(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut endings = name.rsplit('.').take(2);
    endings.any(|ending| ending.eq_ignore_ascii_case("opl"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_the_format() {
        let of = TextFormat::detect_from_text;
        assert_eq!(of(b"\xef\xbb\xbf <?xml?><osm>"), Some(TextFormat::Osm));
        assert_eq!(of(b"<osmChange/>"), Some(TextFormat::OsmChange));
        assert_eq!(of(b"# a comment\n\nn-1 v1"), Some(TextFormat::Opl));
        assert_eq!(of(b"r17"), Some(TextFormat::Opl));
        assert_eq!(of(b"\r\nn1"), Some(TextFormat::Opl));
        for comments in [&b"#"[..], b"# a\n", b"\n#\r\n\r\n# b"] {
            assert_eq!(of(comments), Some(TextFormat::Opl));
        }
        assert_eq!(of(b"\xff\xe0\x04o5m2\xfe"), Some(TextFormat::O5m));
        assert_eq!(of(b"\xff\xe0\x04o5c2"), Some(TextFormat::O5c));
        for other in [
            &b"neither"[..],
            b"",
            b"\0\0\0\x0d\n",
            b"{}",
            b"# a\n{}",
            b"\n\n",
            b"c-1",
        ] {
            assert_eq!(of(other), None, "{other:?}");
        }
    }
}
