//! The features of a worker that are not sent yet.

use super::ExportFormat;
use super::worker::Found;
use crate::error::FormatError;
use crate::formats::features::{Feature, FeatureText};
#[cfg(feature = "parquet")]
use crate::formats::parquet::{InfoColumns, put_row, sort_key};
use crate::formats::{Attribute, FeatureOptions};
#[cfg(feature = "parquet")]
use crate::index::RowBatch;

/// Features in the form that the format needs.
pub(super) enum FeatureBuffer {
    /// Text that is written as it is.
    Text(Box<FeatureText>, FeatureOptions),
    /// Rows that are sorted before they are written.
    #[cfg(feature = "parquet")]
    Rows(RowBuffer),
}

/// Features as rows.
#[cfg(feature = "parquet")]
#[derive(Default)]
pub(super) struct RowBuffer {
    rows: RowBatch,
    info: InfoColumns,
    has_info: bool,
    is_partitioned: bool,
}

impl FeatureBuffer {
    pub(super) fn new(format: &ExportFormat) -> Self {
        match format {
            ExportFormat::Text(options) => {
                Self::Text(Box::new(FeatureText::new(options)), options.clone())
            }
            #[cfg(feature = "parquet")]
            ExportFormat::GeoParquet(options) => Self::Rows(RowBuffer {
                has_info: options.has_metadata,
                is_partitioned: options.is_partitioned,
                ..RowBuffer::default()
            }),
            // Objects are written without features.
            #[cfg(feature = "parquet")]
            ExportFormat::Objects(_) => Self::Rows(RowBuffer::default()),
        }
    }

    /// Whether features are written with metadata.
    pub(super) fn needs_info(&self) -> bool {
        match self {
            Self::Text(_, options) => options.attributes.iter().any(|(attribute, _)| {
                !matches!(
                    attribute,
                    Attribute::Type | Attribute::Id | Attribute::WayNodes
                )
            }),
            #[cfg(feature = "parquet")]
            Self::Rows(rows) => rows.has_info,
        }
    }

    /// Whether lines are written with the ids of their nodes.
    pub(super) fn needs_way_nodes(&self) -> bool {
        match self {
            Self::Text(_, options) => options.attributes.has(Attribute::WayNodes),
            #[cfg(feature = "parquet")]
            Self::Rows(_) => false,
        }
    }

    /// Adds a feature.
    pub(super) fn put(&mut self, feature: &Feature<'_>) {
        match self {
            Self::Text(text, _) => text.put(feature),
            #[cfg(feature = "parquet")]
            Self::Rows(buffer) => {
                let key = sort_key(&feature.geometry, buffer.is_partitioned);
                let info = &mut buffer.info;
                buffer
                    .rows
                    .push(key, |out| *info = info.and(put_row(out, feature)));
            }
        }
    }

    /// The memory of the features in bytes.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Text(text, _) => text.len(),
            #[cfg(feature = "parquet")]
            Self::Rows(buffer) => buffer.rows.len(),
        }
    }

    /// Removes the features, and returns them if there are any.
    pub(super) fn take(&mut self) -> Result<Option<Found>, FormatError> {
        match self {
            Self::Text(text, _) => {
                let chunk = text.take();
                let chunk = chunk.map_err(|error| FormatError::with(error.to_string()))?;
                Ok(chunk.map(Found::Features))
            }
            #[cfg(feature = "parquet")]
            Self::Rows(buffer) => {
                let rows = std::mem::take(&mut buffer.rows);
                Ok((rows.count() > 0).then_some(Found::Rows(rows, buffer.info)))
            }
        }
    }
}
