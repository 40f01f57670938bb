//! The compression of text files.

use crate::error::Result;
use crate::io::{FileCompression, Input};
use std::path::Path;

/// The compression of a text file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum TextCompression {
    /// No compression.
    #[default]
    None,
    /// gzip.
    Gzip,
    /// bzip2.
    Bzip2,
    /// zstd.
    Zstd,
}

impl TextCompression {
    /// Detects the compression of an input from its first bytes. Returns [`None`](Self::None) for xz, which is not
    /// supported.
    pub(crate) fn of_content(input: &Input) -> Result<Self> {
        Ok(match FileCompression::detect(input.first_bytes()?) {
            Some(FileCompression::Gzip) => Self::Gzip,
            Some(FileCompression::Bzip2) => Self::Bzip2,
            Some(FileCompression::Zstd) => Self::Zstd,
            Some(FileCompression::Xz) | None => Self::None,
        })
    }

    /// Returns the name of a file or of a format without the ending of its compression, and the compression. The name
    /// must be in lower case.
    pub(crate) fn split_extension(name: &str) -> (&str, Self) {
        let endings = [
            (".gz", Self::Gzip),
            (".bz2", Self::Bzip2),
            (".zst", Self::Zstd),
        ];
        let mut endings = endings.into_iter();
        let found = endings.find_map(|(ending, found)| Some((name.strip_suffix(ending)?, found)));
        found.unwrap_or((name, Self::None))
    }

    /// Returns the compression that the extension of a file name stands for: `gz`, `bz2` or `zst` in lower case. Any
    /// other extension means no compression.
    pub fn of_name(path: &Path) -> Self {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("gz") => Self::Gzip,
            Some("bz2") => Self::Bzip2,
            Some("zst") => Self::Zstd,
            _ => Self::None,
        }
    }
}
