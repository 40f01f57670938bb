//! The output of a command: its target, its format, the options for its blobs, and its header.

use super::HeaderOptions;
use crate::error::Result;
use crate::file::{BlobLocations, PbfFile, WriteOptions};
use crate::formats::{TextCompression, TextOptions, WayLocations};
use crate::io::{OutputTarget, ScratchFile};
use crate::pbf::{Compression, feature};
use std::path::{Path, PathBuf};

/// The output of a command that writes one file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OutputOptions {
    /// The destination of the file.
    pub target: OutputTarget,
    /// The format of the file.
    pub(crate) format: Format,
    /// The options for writing the blobs of a PBF file.
    pub(crate) write: WriteOptions,
    /// The options for the header of the file.
    pub(crate) header: HeaderOptions,
}

/// The format of an output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Format {
    /// PBF.
    #[default]
    Pbf,
    /// OSM XML, OsmChange, OPL, the debug format or CSV, plain or compressed.
    Text(TextOptions),
}

impl OutputOptions {
    /// Returns the options for a PBF file that must not exist yet, with defaults: zlib at level 6, and a table of
    /// contents.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::new(OutputTarget::file(path))
    }

    /// Returns the options for a PBF output to `target`, with defaults.
    pub fn new(target: OutputTarget) -> Self {
        Self {
            target,
            format: Format::Pbf,
            write: WriteOptions::default(),
            header: HeaderOptions::default(),
        }
    }

    /// Creates a temporary file in `directory`. Also returns the options of an output to this file. `compression`
    /// should be that of the final output, if blobs of the temporary file may be copied to it.
    pub(crate) fn create_scratch(
        directory: &Path,
        compression: Compression,
    ) -> Result<(ScratchFile, Self)> {
        let file = ScratchFile::create(directory)?;
        let write = WriteOptions {
            compression,
            ..WriteOptions::default()
        };
        let output = Self::new(OutputTarget::Scratch(file.clone())).write(write);
        Ok((file, output))
    }

    /// Allows the output to replace an existing file. Has no effect if the target is not a file.
    #[must_use]
    pub fn overwrite(mut self) -> Self {
        if let OutputTarget::File { overwrite, .. } = &mut self.target {
            *overwrite = true;
        }
        self
    }

    /// Sets the format.
    #[must_use]
    pub fn format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// Sets the options for writing blobs.
    #[must_use]
    pub fn write(self, write: WriteOptions) -> Self {
        Self { write, ..self }
    }

    /// Sets the options for the header.
    #[must_use]
    pub fn header(self, header: HeaderOptions) -> Self {
        Self { header, ..self }
    }

    /// Keeps the locations that ways contain, in any format.
    #[must_use]
    pub(crate) fn with_way_locations(mut self) -> Self {
        self.write.way_locations = BlobLocations::Keep;
        if let Format::Text(text) = &mut self.format
            && text.way_locations == WayLocations::Never
        {
            text.way_locations = WayLocations::IfKnown;
        }
        self
    }

    /// Resolves [`BlobLocations::DropDeclared`] for an output with the objects of `files`. Ways lose their locations if
    /// at least one file declares locations in ways. The header of the output cannot decide this: it declares locations
    /// only if all files do.
    #[must_use]
    pub(crate) fn resolve_for_inputs(mut self, files: &[PbfFile]) -> Self {
        let is_located = |file: &PbfFile| file.header.has(feature::LOCATIONS);
        if self.write.way_locations == BlobLocations::DropDeclared && files.iter().any(is_located) {
            self.write.way_locations = BlobLocations::Drop;
        }
        self
    }

    /// Whether the output is a stream or text. Bytes that were written to a stream cannot be withdrawn, and writing
    /// text is too slow to be repeated.
    pub(crate) fn is_stream_or_text(&self) -> bool {
        self.target.is_stream() || self.format != Format::Pbf
    }

    /// Returns the compression of a text output. If the format is not text, the file name determines the compression.
    pub(crate) fn text_compression(&self) -> TextCompression {
        match &self.format {
            Format::Text(text) => text.compression,
            Format::Pbf => TextCompression::of_name(self.target.path()),
        }
    }

    /// Returns the options with which workers encode blobs for the output.
    pub(crate) fn encoding(&self) -> WriteOptions {
        self.format.encoding(self.write)
    }
}

impl Format {
    /// Returns the options with which workers encode blobs, for an output in this format with the options `write`. If
    /// the output is text or changes the form of objects, the blobs are decoded again, so workers do not compress them.
    pub(crate) fn encoding(&self, write: WriteOptions) -> WriteOptions {
        if *self == Self::Pbf && !write.changes_objects() {
            write
        } else {
            WriteOptions {
                compression: Compression::None,
                is_compression_explicit: false,
                recompress: false,
                toc: false,
                blob_index: false,
                is_decoded_again: true,
                ..write
            }
        }
    }
}
