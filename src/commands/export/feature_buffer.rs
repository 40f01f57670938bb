//! The features of a worker that are not sent yet.

#[cfg(feature = "parquet")]
use super::tables::TableRows;
use crate::error::FormatError;
#[cfg(feature = "parquet")]
use crate::error::Result;
use crate::formats::features::{Feature, FeatureChunk, FeatureText};
#[cfg(feature = "parquet")]
use crate::formats::parquet::{InfoColumns, put_row, sort_key};
use crate::formats::{Attribute, FeatureOptions};
#[cfg(feature = "parquet")]
use crate::index::RowBatch;
#[cfg(feature = "parquet")]
use std::sync::Arc;

/// The form that the format needs features in.
#[derive(Clone)]
pub(super) enum FeatureForm {
    /// Text that is written as it is.
    Text(FeatureOptions),
    /// Rows that are sorted before they are written.
    #[cfg(feature = "parquet")]
    Rows(Arc<TableRows>),
}

impl FeatureForm {
    /// Whether features are written with metadata.
    pub(super) fn needs_info(&self) -> bool {
        match self {
            Self::Text(options) => options.attributes.iter().any(|(attribute, _)| {
                !matches!(
                    attribute,
                    Attribute::Type | Attribute::Id | Attribute::WayNodes
                )
            }),
            #[cfg(feature = "parquet")]
            Self::Rows(target) => target.options.has_metadata,
        }
    }
}

/// Features that are not passed on yet.
pub(super) enum FeatureBuffer {
    Text(Box<FeatureText>, FeatureOptions),
    #[cfg(feature = "parquet")]
    Rows(RowBuffer),
}

/// Features as rows.
#[cfg(feature = "parquet")]
pub(super) struct RowBuffer {
    rows: RowBatch,
    info: InfoColumns,
    target: Arc<TableRows>,
}

impl FeatureBuffer {
    pub(super) fn new(form: &FeatureForm) -> Self {
        match form {
            FeatureForm::Text(options) => {
                Self::Text(Box::new(FeatureText::new(options)), options.clone())
            }
            #[cfg(feature = "parquet")]
            FeatureForm::Rows(target) => Self::Rows(RowBuffer {
                rows: RowBatch::default(),
                info: InfoColumns::default(),
                target: target.clone(),
            }),
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
                let is_partitioned = buffer.target.options.is_partitioned;
                let key = sort_key(&feature.geometry, is_partitioned);
                let info = &mut buffer.info;
                buffer
                    .rows
                    .push(key, |out| *info = info.and(put_row(out, feature)));
            }
        }
    }

    /// The length of the text in bytes. Rows stay in the buffer until the end of a blob.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Text(text, _) => text.len(),
            #[cfg(feature = "parquet")]
            Self::Rows(_) => 0,
        }
    }

    /// Removes the text, and returns it if there is any.
    pub(super) fn take(&mut self) -> Result<Option<FeatureChunk>, FormatError> {
        match self {
            Self::Text(text, _) => {
                let chunk = text.take();
                chunk.map_err(|error| FormatError::with(error.to_string()))
            }
            #[cfg(feature = "parquet")]
            Self::Rows(_) => Ok(None),
        }
    }

    /// Passes rows on, which may take a while.
    #[cfg(feature = "parquet")]
    pub(super) fn pass_on(&mut self) {
        if let Self::Rows(buffer) = self
            && buffer.rows.count() > 0
        {
            let rows = std::mem::take(&mut buffer.rows);
            buffer.target.add(rows, buffer.info);
        }
    }

    /// Fails if rows could not be passed on.
    #[cfg(feature = "parquet")]
    pub(super) fn check(&self) -> Result<()> {
        match self {
            Self::Text(..) => Ok(()),
            Self::Rows(buffer) => buffer.target.check(),
        }
    }
}
