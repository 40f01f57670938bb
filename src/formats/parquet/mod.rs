//! Tables in Apache Parquet: features with geometries (GeoParquet) in the order of a Hilbert curve, and objects.

mod action_table;
mod admin_areas;
mod coast_table;
mod column_buffer;
mod columns;
mod country;
mod edit_table;
mod facts;
mod feature_columns;
mod feature_values;
mod file;
mod geometry_type;
mod geoparquet;
mod partition;
mod parts;
mod raw;
mod row;
mod schema;
mod theme;

pub(crate) use action_table::{ActionFacts, ActionTable};
pub(crate) use admin_areas::{AdminArea, AdminAreas, COUNTRY_LEVEL, LOWEST_LEVEL};
pub(crate) use coast_table::CoastTable;
pub(crate) use columns::EncodedGroup;
pub(crate) use edit_table::write_edit_groups;
pub(crate) use facts::TableFacts;
pub(crate) use file::ParquetFile;
pub(crate) use geoparquet::{FeatureGroup, FeatureTable};
pub use partition::PartitionKey;
pub(crate) use partition::Partitioning;
pub(crate) use parts::{is_action_table, is_part};
pub(crate) use raw::{ObjectRows, ObjectTable};
pub(crate) use row::put_row;
pub(crate) use schema::TableForm;
pub(crate) use theme::ThemeSet;
pub use theme::{ColumnType, Theme, ThemeColumn};

use crate::error::Error;
use crate::formats::DerivedColumns;
use feature_columns::{FeatureColumn, feature_columns};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The version of GeoParquet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum GeoParquetVersion {
    /// Version 1.1, which all GeoParquet readers support. Geometries are WKB in a column of type BYTE_ARRAY. Only the
    /// metadata of the file marks this column as a geometry column.
    #[default]
    V1,
    /// Version 2.0, in which the geometry column also has the Parquet type GEOMETRY.
    V2,
}

/// The compression of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PageCompression {
    /// No compression.
    None,
    /// zstd with a level from 1 to 22.
    Zstd(u8),
}

/// The default level of zstd. Level 3 would make tables of features 2.6 % smaller, but takes a fifth longer. Most of
/// the additional time is spent on coordinates, which hardly repeat.
const DEFAULT_LEVEL: u8 = 2;

impl Default for PageCompression {
    fn default() -> Self {
        Self::Zstd(DEFAULT_LEVEL)
    }
}

impl FromStr for PageCompression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, level) = match text.split_once(':') {
            Some((kind, level)) => (kind, level.parse().ok()),
            None => (text, Some(DEFAULT_LEVEL)),
        };
        match (kind, level) {
            ("none", _) if !text.contains(':') => Ok(Self::None),
            ("zstd", Some(level @ 1..=22)) => Ok(Self::Zstd(level)),
            _ => Err("expected none, zstd, or zstd:1 to zstd:22".into()),
        }
    }
}

impl fmt::Display for PageCompression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(f, "none"),
            Self::Zstd(level) => write!(f, "zstd:{level}"),
        }
    }
}

/// Options of a GeoParquet table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GeoParquetOptions {
    /// The version of GeoParquet.
    pub version: GeoParquetVersion,
    /// The compression of pages.
    pub compression: PageCompression,
    /// Whether there are columns for the metadata of objects: version, timestamp, changeset, uid and user.
    pub has_metadata: bool,
    /// The keys of tags that get a column of their own, in addition to the column of all tags.
    pub tag_columns: Vec<String>,
    /// The columns that are computed from geometries and tags.
    pub derived: DerivedColumns,
    /// The themes that are written. A feature has a row for each of its themes. If there are no themes, all features
    /// are written.
    pub themes: Vec<Theme>,
    /// The keys of partitions, from the outermost directory to the innermost. If there are several themes, each is a
    /// partition, even without [`PartitionKey::Theme`].
    pub partition: Vec<PartitionKey>,
    /// The size in bytes at which a file ends and another one begins. If a size is set, the output is a directory even
    /// without partitions. `None` means [`MAX_FILE_LEN`] if there are partitions or several themes, and otherwise a
    /// single file of any size.
    pub max_file_len: Option<u64>,
}

/// The default size in bytes at which a file in a directory ends and another one begins.
pub const MAX_FILE_LEN: u64 = 512_000_000;

impl GeoParquetOptions {
    /// Fails if two columns would have the same name. `partitioning` has the keys of partitions, which readers treat as
    /// columns.
    pub(crate) fn check_columns(&self, partitioning: &Partitioning) -> Result<(), String> {
        let columns = feature_columns(self, partitioning.themes()).into_iter();
        let (given, own): (Vec<_>, Vec<_>) =
            columns.partition(FeatureColumn::has_user_defined_name);
        let keys = partitioning.key_names().map(str::to_owned);
        let own = own.into_iter().map(|column| column.name);
        let mut seen: BTreeSet<String> = own.chain(keys).collect();
        for FeatureColumn { name, .. } in given {
            if !seen.insert(name.clone()) {
                return Err(format!(
                    "{name}: the table has a column of that name already"
                ));
            }
        }
        Ok(())
    }

    /// Whether the output is a directory of files.
    pub fn is_directory(&self) -> bool {
        !self.partition.is_empty() || self.themes.len() > 1 || self.max_file_len.is_some()
    }
}

/// Options of a table of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectTableOptions {
    /// The compression of pages.
    pub compression: PageCompression,
    /// The size in bytes at which a file ends and another one begins.
    pub max_file_len: u64,
}

impl Default for ObjectTableOptions {
    /// Returns options with zstd, and with [`MAX_FILE_LEN`] as the size at which a file ends.
    fn default() -> Self {
        Self {
            compression: PageCompression::default(),
            max_file_len: MAX_FILE_LEN,
        }
    }
}

impl Default for GeoParquetOptions {
    /// Returns options for GeoParquet 1.1 in one file, with zstd and with metadata.
    fn default() -> Self {
        Self {
            version: GeoParquetVersion::default(),
            compression: PageCompression::default(),
            has_metadata: true,
            tag_columns: Vec::new(),
            derived: DerivedColumns::default(),
            themes: Vec::new(),
            partition: Vec::new(),
            max_file_len: None,
        }
    }
}

/// Returns the error for a failure of the Parquet library. If the output failed, the error of the output is reported
/// instead.
fn parquet_error(error: impl fmt::Display) -> Error {
    Error::internal(format!("cannot write Parquet: {error}"))
}
