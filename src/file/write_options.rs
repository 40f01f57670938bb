//! The options for writing a PBF file.

use crate::error::FormatResult;
use crate::pbf::{Compression, HeaderBlock, InfoFields, check_strings, feature};

/// Options for writing a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The compression of blobs that are re-encoded.
    pub compression: Compression,
    /// Whether the user chose the compression. If so, a warning reports the copied blobs, which keep the compression of
    /// the input.
    pub is_compression_explicit: bool,
    /// Whether copied blobs are recompressed if their compression differs from `compression`.
    pub recompress: bool,
    /// Whether copied blobs are decompressed and compared with their content hashes before the output gets its final
    /// name.
    pub verify: bool,
    /// Whether the output gets a table of contents.
    pub toc: bool,
    /// Whether the BlobHeaders get indexes of their blobs, for programs that read per-blob indexes. Some blobs cannot
    /// have an index.
    pub blob_index: bool,
    /// The metadata fields that objects are written without. The attribute `visible` depends on `history` instead.
    pub without: InfoFields,
    /// Whether ways keep the locations of their nodes.
    pub way_locations: BlobLocations,
    /// Whether the output is a history file.
    pub history: BlobHistory,
    /// Whether the bounding box in the header is computed from the blob entries. A stream cannot have this box, because
    /// its header is written before the blobs.
    pub box_of_data: bool,
    /// Whether nodes are written as DenseNodes, which are smaller than single Node messages.
    pub dense_nodes: bool,
    /// Whether the table of contents declares a spatial layout ([`TocFlags::spatial`](crate::pbf::TocFlags::spatial)).
    pub(crate) has_spatial_layout: bool,
    /// Whether the output decodes the blobs that are passed to it. This is the case if the output is text or changes
    /// the form of objects.
    pub(crate) is_decoded_again: bool,
}

impl WriteOptions {
    /// Fails if the output decodes blobs again and a string of the block in `payload` is not UTF-8. Commands that edit
    /// a block without reading its strings call this method first. An error of the output could no longer name the
    /// blob.
    pub(crate) fn check_strings(&self, payload: &[u8]) -> FormatResult<()> {
        if self.is_decoded_again {
            check_strings(payload)
        } else {
            Ok(())
        }
    }

    /// Whether the form of objects in the output differs from that in the input. If it does, no blob can be copied.
    pub(crate) fn changes_objects(&self) -> bool {
        !self.without.is_empty() || self.way_locations == BlobLocations::Drop || !self.dense_nodes
    }

    /// Resolves the options that depend on the inputs, and returns the result. `header` is the output header, as
    /// derived from the inputs.
    pub(crate) fn for_header(self, header: &HeaderBlock) -> Self {
        let (is_located, is_history) =
            (header.has(feature::LOCATIONS), header.has(feature::HISTORY));
        let decided = Self {
            way_locations: match self.way_locations {
                BlobLocations::DropDeclared if is_located => BlobLocations::Drop,
                BlobLocations::DropDeclared => BlobLocations::Keep,
                decided => decided,
            },
            without: match self.history {
                BlobHistory::Drop if is_history => {
                    InfoFields::all_of(&[self.without, InfoFields::VISIBLE])
                }
                _ => self.without,
            },
            ..self
        };
        Self {
            // A spatial layout requires that its blobs are written unchanged.
            has_spatial_layout: self.has_spatial_layout && !decided.changes_objects(),
            ..decided
        }
    }
}

/// The treatment of the locations of nodes in the ways of a PBF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum BlobLocations {
    /// Ways keep the locations that they carry.
    #[default]
    Keep,
    /// Ways lose their locations if the header of the input declares that ways have them.
    DropDeclared,
    /// Ways lose their locations.
    Drop,
}

/// The treatment of the history in a PBF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum BlobHistory {
    /// The output is a history file if an input is one, or if deleted objects are written.
    #[default]
    Keep,
    /// The output is declared to be a history file.
    Declare,
    /// The output is not a history file. Objects lose the attribute `visible`, so deleted objects appear as existing
    /// ones.
    Drop,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            compression: Compression::default(),
            is_compression_explicit: false,
            recompress: false,
            verify: false,
            toc: true,
            blob_index: false,
            without: InfoFields::NONE,
            way_locations: BlobLocations::Keep,
            history: BlobHistory::Keep,
            box_of_data: false,
            dense_nodes: true,
            has_spatial_layout: false,
            is_decoded_again: false,
        }
    }
}
