//! Decompression of whole files: gzip, bzip2 and zstd.
//!
//! A file can consist of several members or frames. Zeros between the members of gzip and bzip2, and after the last
//! member, are padding, which tapes and block devices add. Other bytes in these places are an error.

use super::Input;
use crate::error::{ENDS_EARLY, Error, FileResult, Result};
use std::io::{self, BufRead, BufReader, Read};

/// The compression of a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileCompression {
    Gzip,
    Bzip2,
    Zstd,
    /// A compression that is known, but not supported.
    Xz,
}

impl FileCompression {
    /// Detects the compression of a file from its first bytes. Returns `None` for a file that is not compressed.
    pub(crate) fn detect(start: &[u8]) -> Option<Self> {
        Some(match start {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [b'B', b'Z', b'h', ..] => Self::Bzip2,
            // A zstd file may begin with a skippable frame, in which parallel compressors store the length of the next
            // frame.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', ..] => Self::Xz,
            _ => return None,
        })
    }

    /// Returns the name of the compression.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
        }
    }

    /// Returns the command that decompresses a file to standard output.
    pub(crate) const fn command(self) -> &'static str {
        match self {
            Self::Gzip => "gunzip -c",
            Self::Bzip2 => "bunzip2 -c",
            Self::Zstd => "unzstd -c",
            Self::Xz => "unxz -c",
        }
    }
}

/// Returns a reader of the decompressed bytes of an input. Detects the compression from the first bytes. Fails for xz.
pub(crate) fn decompressed_reader(input: &Input) -> Result<Box<dyn Read + Send>> {
    let compression = FileCompression::detect(input.first_bytes()?);
    let bytes = InputBytes {
        input: input.clone(),
        position: 0,
    };
    let bytes = BufReader::with_capacity(1 << 16, bytes);
    Ok(match compression {
        None => Box::new(bytes),
        Some(FileCompression::Gzip) => Box::new(gunzip(bytes)),
        Some(compression @ FileCompression::Bzip2) => Box::new(Decompressing {
            bytes: CompressedMembers::new(
                bytes,
                bzip2::bufread::BzDecoder::new,
                bzip2::bufread::BzDecoder::into_inner,
            ),
            compression,
        }),
        Some(compression @ FileCompression::Zstd) => {
            let zstd = zstd::stream::read::Decoder::with_buffer(bytes);
            Box::new(Decompressing {
                bytes: zstd.for_path(input.path(), "cannot read")?,
                compression,
            })
        }
        Some(xz @ FileCompression::Xz) => {
            let cause = format!(
                "the file is compressed with xz, which is not supported: decompress it first (`{}`)",
                xz.command()
            );
            return Err(Error::file(input.path(), cause));
        }
    })
}

/// Reads `bytes` to their end, or up to an error. Returns the number of bytes read.
pub(crate) fn count_remaining_bytes(mut bytes: impl Read) -> u64 {
    let (mut len, mut buffer) = (0, vec![0; 1 << 16]);
    while let Ok(count @ 1..) = bytes.read(&mut buffer) {
        len += count as u64;
    }
    len
}

/// Returns a reader of the decompressed bytes of a gzip file.
pub(crate) fn gunzip<R: BufRead>(bytes: R) -> impl Read + use<R> {
    Decompressing {
        bytes: CompressedMembers::new(
            bytes,
            flate2::bufread::GzDecoder::new,
            flate2::bufread::GzDecoder::into_inner,
        ),
        compression: FileCompression::Gzip,
    }
}

/// A reader of decompressed bytes that replaces the error messages of the decompression libraries with its own.
struct Decompressing<R> {
    bytes: R,
    compression: FileCompression,
}

impl<R: Read> Read for Decompressing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.bytes.read(buffer).map_err(|error| {
            let is_of_input = error.get_ref().is_some_and(|inner| inner.is::<Error>());
            if is_of_input || error.raw_os_error().is_some() {
                return error;
            }
            match error.kind() {
                io::ErrorKind::Interrupted | io::ErrorKind::OutOfMemory => error,
                _ => decompression_error(self.compression, &error),
            }
        })
    }
}

/// The words with which the libraries say that data is damaged. Errors with other words can have other causes.
const DAMAGE: [&str; 10] = [
    "corrupt deflate stream",
    "invalid gzip header",
    "bzip2: invalid data",
    "bz2 header missing",
    "Data corruption",
    "Unknown frame descriptor",
    "Header of Literals",
    "tableLog requires too much memory",
    "maxSymbolValue",
    "max Symbol Value",
];

/// Converts an error of a decompression library to an error that states the cause. The libraries have several messages
/// for data that ends early.
fn decompression_error(compression: FileCompression, error: &io::Error) -> io::Error {
    let (name, text) = (compression.name(), error.to_string());
    let has = |words: &[&str]| words.iter().any(|words| text.contains(words));
    let is_cut =
        error.kind() == io::ErrorKind::UnexpectedEof || has(&["incomplete", "not finished", "EOF"]);
    if is_cut {
        let cause = format!("the {name} {ENDS_EARLY}");
        return io::Error::new(io::ErrorKind::UnexpectedEof, cause);
    }
    let (kind, cause) = if has(&["checksum"]) {
        let cause = "is damaged: its checksum differs";
        (io::ErrorKind::InvalidData, cause)
    } else if has(&["Frame requires too much memory"]) {
        let cause = "needs a window of more memory than is used here: decompress it first (`zstd -d --long=31`)";
        (io::ErrorKind::Unsupported, cause)
    } else if has(&["Dictionary mismatch"]) {
        let cause = "needs a dictionary: decompress it first (`zstd -d -D DICTIONARY`)";
        (io::ErrorKind::Unsupported, cause)
    } else if has(&["not enough memory"]) {
        let cause = "needs more memory than there is";
        (io::ErrorKind::OutOfMemory, cause)
    } else if has(&DAMAGE) {
        (io::ErrorKind::InvalidData, "is damaged")
    } else {
        let cause = "is damaged, or of a kind that cannot be decompressed";
        (io::ErrorKind::InvalidData, cause)
    };
    io::Error::new(kind, format!("the {name} data {cause}"))
}

/// A reader of the members of a compressed file, one after another.
struct CompressedMembers<R, M> {
    /// The decoder of the current member.
    member: Option<M>,
    /// The reader of the rest of the file; `None` while a member is being read.
    rest: Option<R>,
    begin: fn(R) -> M,
    end: fn(M) -> R,
}

impl<R: BufRead, M: Read> CompressedMembers<R, M> {
    /// Creates a reader of a file that begins with a member.
    fn new(bytes: R, begin: fn(R) -> M, end: fn(M) -> R) -> Self {
        Self {
            member: Some(begin(bytes)),
            rest: None,
            begin,
            end,
        }
    }
}

impl<R: BufRead, M: Read> Read for CompressedMembers<R, M> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(member) = &mut self.member {
                let count = member.read(buffer)?;
                if count > 0 || buffer.is_empty() {
                    return Ok(count);
                }
                self.rest = self.member.take().map(self.end);
            }
            let Some(mut rest) = self.rest.take() else {
                return Ok(0);
            };
            if skip_zero_padding(&mut rest)? {
                return Ok(0);
            }
            self.member = Some((self.begin)(rest));
        }
    }
}

/// Skips zeros. Returns true if nothing follows the zeros.
fn skip_zero_padding(rest: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = rest.fill_buf()?;
        if bytes.is_empty() {
            return Ok(true);
        }
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let is_padding = zeros == bytes.len();
        rest.consume(zeros);
        if !is_padding {
            return Ok(false);
        }
    }
}

/// A sequential reader of the bytes of an input, from its start to its end.
struct InputBytes {
    input: Input,
    position: u64,
}

impl Read for InputBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self
            .input
            .read_at(buffer, self.position)
            .map_err(io::Error::other)?;
        self.position += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn zeros_around_members_are_padding_and_other_bytes_are_not() {
        let (one, two, zeros) = (gzip("one "), gzip("two"), vec![0; 700]);
        let text = |parts: &[&[u8]]| {
            let (bytes, mut text) = (parts.concat(), String::new());
            // The buffer is so small that it must be refilled several times within padding and members.
            let reader = BufReader::with_capacity(7, bytes.as_slice());
            gunzip(reader).read_to_string(&mut text).map(|_| text)
        };
        assert_eq!(text(&[&one, &two]).unwrap(), "one two");
        assert_eq!(text(&[&one, &zeros, &two, &zeros]).unwrap(), "one two");
        assert_eq!(text(&[&gzip(""), &zeros]).unwrap(), "");
        for broken in [
            &[&one[..], b"garbage and more of it"][..],
            &[&one, &zeros, b"garbage and more of it"],
            &[&one, &two[..9]],
            &[&one[..one.len() - 3]],
        ] {
            let cause = text(broken).unwrap_err().to_string();
            assert!(cause.starts_with("the gzip data "), "{cause}");
        }
    }

    fn message(compression: FileCompression, words: &str) -> String {
        decompression_error(compression, &io::Error::other(words)).to_string()
    }

    #[test]
    fn only_errors_of_damaged_data_are_called_damage() {
        use FileCompression::{Bzip2, Gzip, Zstd};
        for (compression, words) in [
            (Gzip, "corrupt deflate stream"),
            (Gzip, "invalid gzip header"),
            (Bzip2, "bzip2: invalid data"),
            (Zstd, "Data corruption detected"),
            (Zstd, "Unknown frame descriptor"),
            (Zstd, "Specified maxSymbolValue is too small"),
            (Zstd, "Unsupported max Symbol Value : too large"),
        ] {
            let cause = message(compression, words);
            assert!(cause.ends_with(" data is damaged"), "{words}: {cause}");
        }
        for (compression, words, expected) in [
            (Zstd, "Dictionary mismatch", "needs a dictionary"),
            (
                Zstd,
                "Allocation error : not enough memory",
                "needs more memory",
            ),
            (
                Zstd,
                "Unsupported frame parameter",
                "or of a kind that cannot",
            ),
            (
                Gzip,
                "gzip header field too long",
                "or of a kind that cannot",
            ),
            (
                Bzip2,
                "bzip2: invalid parameters",
                "or of a kind that cannot",
            ),
            (Zstd, "incomplete frame", "ends early"),
        ] {
            let cause = message(compression, words);
            assert!(cause.contains(expected), "{words}: {cause}");
            assert!(!cause.contains(words), "{words}: {cause}");
        }
    }

    #[test]
    fn a_zstd_window_that_is_too_large_is_no_damage() {
        // A frame with a window of 2 GiB, a block of seven bytes, and no checksum.
        let frame = [
            0x28, 0xb5, 0x2f, 0xfd, 0, 0xa8, 0x39, 0, 0, b'n', b'1', b' ', b'x', b'1', b'y', b'1',
        ];
        let mut decoder = Decompressing {
            bytes: zstd::stream::read::Decoder::with_buffer(&frame[..]).unwrap(),
            compression: FileCompression::Zstd,
        };
        let error = decoder.read_to_end(&mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("--long=31"), "{error}");
        assert!(!error.to_string().contains("damaged"), "{error}");
    }
}
