//! Converts text to UTF-8 from UTF-16, or from the encoding that an XML document declares.

use crate::error::{Error, Result};
use crate::file::refuse_compressed_pbf;
use crate::io::{Input, decompressed_reader};
use encoding_rs::{Decoder, DecoderResult, Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE, mem};
use memchr::memmem;
use std::io::{self, Cursor, Read};

/// The number of bytes at the start of a document that are searched for the declaration of its encoding.
const PROBE_LEN: u64 = 1024;
/// The number of bytes that are decoded at a time.
const INPUT_LEN: usize = 16 << 10;

/// Returns a reader of the decompressed text of an input. Text that is not in UTF-8 is converted to UTF-8. The byte
/// order mark or, without one, the XML declaration shows the encoding. The reader fails at invalid bytes of text that
/// it converts. Text that needs no conversion is not checked.
pub(super) fn utf8_reader(input: &Input) -> Result<Box<dyn Read + Send>> {
    let mut bytes = decompressed_reader(input)?;
    let mut start = Vec::new();
    let read = bytes.by_ref().take(PROBE_LEN).read_to_end(&mut start);
    refuse_compressed_pbf(input, &start)?;
    let coding = detect_coding(&start).map_err(|cause| Error::file(input.path(), cause))?;
    let bytes: Box<dyn Read + Send> = match read {
        Ok(_) => Box::new(Cursor::new(start).chain(bytes)),
        // Passes on the bytes before the error. The next read then fails with the error.
        Err(error) => Box::new(Cursor::new(start).chain(Failing(Some(error)))),
    };
    Ok(match coding {
        Coding::Utf8 => bytes,
        coding => Box::new(Decoding {
            bytes,
            coding,
            input: Vec::new(),
            text: Vec::new(),
            at: 0,
            state: DecodingState::Reading,
        }),
    })
}

/// Whether a document is in UTF-16: it begins with the byte order mark of UTF-16, or with a `<` in two bytes.
pub(super) const fn is_utf16(start: &[u8]) -> bool {
    matches!(
        start,
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [b'<', 0, ..] | [0, b'<', ..]
    )
}

/// The conversion of text to UTF-8.
enum Coding {
    Utf8,
    /// ISO 8859-1, in which each byte is a code point. In XML, this is the meaning of the label `iso-8859-1`.
    /// `encoding_rs` takes the label for Windows-1252, as web browsers do.
    Latin1,
    Other(Decoder),
}

/// Determines the conversion of a document that begins with `start`. The error is a message for the user.
fn detect_coding(start: &[u8]) -> Result<Coding, String> {
    let utf16 =
        |encoding: &'static Encoding| Ok(Coding::Other(encoding.new_decoder_with_bom_removal()));
    match start {
        [0xff, 0xfe, ..] | [b'<', 0, ..] => return utf16(UTF_16LE),
        [0xfe, 0xff, ..] | [0, b'<', ..] => return utf16(UTF_16BE),
        _ => {}
    }
    let Some(label) = declared_encoding(start) else {
        return Ok(Coding::Utf8);
    };
    match label.to_ascii_lowercase().as_str() {
        "iso-8859-1" | "iso8859-1" | "iso_8859-1" | "latin1" | "latin-1" | "l1" => {
            return Ok(Coding::Latin1);
        }
        // ASCII text is valid UTF-8.
        "us-ascii" | "ascii" => return Ok(Coding::Utf8),
        _ => {}
    }
    match Encoding::for_label(label.as_bytes()) {
        // A declaration in ASCII shows that the document is not in UTF-16, whatever the declaration says.
        Some(encoding) if [UTF_8, UTF_16LE, UTF_16BE].contains(&encoding) => Ok(Coding::Utf8),
        Some(encoding) if encoding != REPLACEMENT => {
            Ok(Coding::Other(encoding.new_decoder_without_bom_handling()))
        }
        _ => Err(format!(
            "the encoding '{}', which the XML declaration names, is not known: convert the file to UTF-8 (iconv)",
            label.escape_debug()
        )),
    }
}

/// Returns the name of the encoding in the XML declaration at the start of a document.
fn declared_encoding(start: &[u8]) -> Option<&str> {
    let behind = start.strip_prefix(b"<?xml")?;
    let declaration = behind.get(..memmem::find(behind, b"?>")?)?;
    let declaration = std::str::from_utf8(declaration).ok()?;
    let (_, value) = declaration.split_once("encoding")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|char| "'\"".contains(*char))?;
    let (label, _) = value.strip_prefix(quote)?.split_once(quote)?;
    Some(label)
}

/// A reader that fails once, and is at its end afterwards.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// The state of a [`Decoding`] after the part of the text that it decoded last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DecodingState {
    Reading,
    /// The text is at its end.
    Ended,
    /// The next bytes are invalid.
    Failed,
}

/// A reader that converts text in another encoding to UTF-8.
struct Decoding<R> {
    bytes: R,
    coding: Coding,
    /// The bytes that are not decoded yet.
    input: Vec<u8>,
    /// The decoded text. Its first `at` bytes were passed on.
    text: Vec<u8>,
    at: usize,
    state: DecodingState,
}

impl<R: Read> Decoding<R> {
    /// Decodes the next part of the text.
    fn decode(&mut self) -> io::Result<()> {
        let wanted = INPUT_LEN.saturating_sub(self.input.len()) as u64;
        let mut more = self.bytes.by_ref().take(wanted);
        let ends = more.read_to_end(&mut self.input)? == 0 && wanted > 0;
        // Most bytes become at most three bytes of UTF-8. If the decoder needs more space, it is called again.
        self.text.resize(3 * self.input.len() + 16, 0);
        self.at = 0;
        let (state, read, written) = match &mut self.coding {
            Coding::Other(decoder) => {
                let (input, text) = (&self.input, &mut self.text);
                let (result, read, written) =
                    decoder.decode_to_utf8_without_replacement(input, text, ends);
                let state = match result {
                    DecoderResult::InputEmpty if ends => DecodingState::Ended,
                    DecoderResult::InputEmpty | DecoderResult::OutputFull => DecodingState::Reading,
                    DecoderResult::Malformed(..) => DecodingState::Failed,
                };
                (state, read, written)
            }
            Coding::Latin1 | Coding::Utf8 => {
                let state = if ends {
                    DecodingState::Ended
                } else {
                    DecodingState::Reading
                };
                let written = mem::convert_latin1_to_utf8(&self.input, &mut self.text);
                (state, self.input.len(), written)
            }
        };
        self.state = state;
        self.input.drain(..read);
        self.text.truncate(written);
        Ok(())
    }
}

impl<R: Read> Read for Decoding<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut text = &self.text[self.at..];
            if !text.is_empty() || buffer.is_empty() {
                let count = text.read(buffer)?;
                self.at += count;
                return Ok(count);
            }
            match self.state {
                DecodingState::Reading => self.decode()?,
                DecodingState::Ended => return Ok(0),
                DecodingState::Failed => {
                    let name = match &self.coding {
                        Coding::Other(decoder) => decoder.encoding().name(),
                        Coding::Latin1 | Coding::Utf8 => "ISO-8859-1",
                    };
                    let cause = format!("the text is not {name}, as its beginning says");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, cause));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode_to_utf8(bytes: &[u8]) -> io::Result<String> {
        let start = bytes.get(..bytes.len().min(PROBE_LEN as usize)).unwrap();
        let mut text = String::new();
        let mut reader = Decoding {
            bytes,
            coding: detect_coding(start).unwrap(),
            input: Vec::new(),
            text: Vec::new(),
            at: 0,
            state: DecodingState::Reading,
        };
        reader.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn long_text_is_decoded_in_parts() {
        let line = "é \u{20ac} \u{1f600} ";
        let text = format!("<?xml version='1.0'?>{}", line.repeat(9000));
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(decode_to_utf8(&big).unwrap(), text);
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(
            decode_to_utf8(&[&[0xff, 0xfe], &little[..]].concat()).unwrap(),
            text
        );
        let cut = decode_to_utf8(&little[..little.len() - 3]).unwrap_err();
        assert!(cut.to_string().contains("not UTF-16LE"), "{cut}");
    }

    #[test]
    fn the_declaration_names_the_encoding() {
        for (declaration, label) in [
            ("<?xml version='1.0' encoding='koi8-r'?>", Some("koi8-r")),
            (
                "<?xml version=\"1.0\" encoding = \"UTF-8\" ?>",
                Some("UTF-8"),
            ),
            ("<?xml version='1.0'?><a encoding='x'/>", None),
            ("<?xml version='1.0' encoding='koi8-r\"?>", None),
            ("<a encoding='x'/>", None),
        ] {
            assert_eq!(declared_encoding(declaration.as_bytes()), label);
        }
    }
}
