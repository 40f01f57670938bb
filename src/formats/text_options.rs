//! The options for writing text files: format, compression, and the attributes that are written.

use super::text_compression::TextCompression;
use crate::osm::TextFormat;
use crate::pbf::InfoFields;

/// The options for writing objects as text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextOptions {
    /// The format of the text.
    pub format: TextFormat,
    /// The compression of the file.
    pub compression: TextCompression,
    /// The metadata fields that are not written.
    pub without: InfoFields,
    /// The objects that get the attribute `visible` in OSM XML. `None` means all objects of history files, and the
    /// deleted objects of other files. [`TextFormat::Csv`] has a column `visible` if all objects get the attribute.
    pub visibility: Option<Visibility>,
    /// Whether ways are written with the locations of their nodes. In [`TextFormat::Debug`], known locations are always
    /// written. A way in [`TextFormat::Csv`] has the point halfway along it if all its locations are known.
    pub way_locations: WayLocations,
    /// Whether the root element of OSM XML and OsmChange has the replication state of the header.
    pub replication: bool,
    /// The optional additions in [`TextFormat::Debug`].
    pub debug: DebugOptions,
    /// The keys of the tags that are columns of [`TextFormat::Csv`]. `None` means a column `tags` with all tags as a
    /// JSON object.
    pub tag_columns: Option<Vec<String>>,
}

/// The optional additions to text in [`TextFormat::Debug`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DebugOptions {
    /// Whether text is coloured by the escape sequences of terminals.
    pub colors: bool,
    /// Whether each object is written with the CRC-32 of its attributes.
    pub checksums: bool,
}

impl TextOptions {
    /// Returns options for uncompressed text in `format`, with all attributes.
    pub const fn new(format: TextFormat) -> Self {
        Self {
            format,
            compression: TextCompression::None,
            without: InfoFields::NONE,
            visibility: None,
            way_locations: WayLocations::IfKnown,
            replication: true,
            debug: DebugOptions {
                colors: false,
                checksums: false,
            },
            tag_columns: None,
        }
    }

    /// Returns the objects that get the attribute `visible`. `is_history` tells whether they are from a history file.
    pub(super) fn resolve_visibility(&self, is_history: bool) -> Visibility {
        self.visibility.unwrap_or(if is_history {
            Visibility::All
        } else {
            Visibility::Deleted
        })
    }
}

/// The objects that get the attribute `visible` in OSM XML.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Visibility {
    /// All objects.
    All,
    /// Deleted objects.
    #[default]
    Deleted,
    /// No object.
    Never,
}

/// Whether ways are written with the locations of their nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WayLocations {
    /// Ways are written without locations.
    Never,
    /// Locations are written if the ways carry them.
    #[default]
    IfKnown,
    /// Locations are written if the ways carry them. In OPL, if a way carries no locations, its nodes get empty
    /// locations.
    Always,
}
