//! Tables in Apache Parquet: features with geometries (GeoParquet) in the order of a Hilbert curve, and objects.

mod columns;
mod facts;
mod feature_values;
mod file;
mod geoparquet;
mod parts;
mod raw;
mod row;

pub(crate) use columns::EncodedGroup;
pub(crate) use facts::TableFacts;
pub(crate) use file::ParquetFile;
pub(crate) use geoparquet::{FeatureGroup, FeatureTable, partition_name};
pub(crate) use parts::is_part;
pub(crate) use raw::{ObjectRows, ObjectTable};
pub(crate) use row::{put_row, sort_key};

use crate::error::Error;
use std::fmt;
use std::str::FromStr;

/// The version of GeoParquet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum GeoParquetVersion {
    /// Version 1.1, which all GeoParquet readers support. Geometries are WKB in a column of type BYTE_ARRAY, which the
    /// metadata of the file describes.
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

impl Default for PageCompression {
    fn default() -> Self {
        Self::Zstd(3)
    }
}

impl FromStr for PageCompression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, level) = match text.split_once(':') {
            Some((kind, level)) => (kind, level.parse().ok()),
            None => (text, Some(3)),
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

/// The form of tables of features.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GeoParquetOptions {
    /// The version of GeoParquet.
    pub version: GeoParquetVersion,
    /// The compression of pages.
    pub compression: PageCompression,
    /// Whether there are columns for the metadata of objects. A metadata column without any value is always left out.
    pub has_metadata: bool,
    /// The keys of tags that get a column of their own, in addition to the column of all tags.
    pub tag_columns: Vec<String>,
    /// Whether points, lines and areas are written to separate files, in directories that are named after the geometry
    /// types.
    pub is_partitioned: bool,
}

impl Default for GeoParquetOptions {
    /// GeoParquet 1.1 in one file, zstd, with metadata.
    fn default() -> Self {
        Self {
            version: GeoParquetVersion::default(),
            compression: PageCompression::default(),
            has_metadata: true,
            tag_columns: Vec::new(),
            is_partitioned: false,
        }
    }
}

/// Returns the error for a failure of the Parquet library. If the output failed, the error of the output is reported
/// instead.
fn failed(error: impl fmt::Display) -> Error {
    Error::Internal(format!("cannot write Parquet: {error}"))
}
