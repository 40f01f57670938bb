//! The output of an export.

use super::feature_buffer::FeatureForm;
use super::late_areas::LateAreas;
#[cfg(feature = "parquet")]
use super::tables::TableSink;
use super::{ExportFormat, Options};
#[cfg(feature = "parquet")]
use crate::error::Error;
use crate::error::Result;
use crate::formats::features::{FeatureChunk, FeatureDocument};
use crate::io::OpenOutput;
use crate::runtime::Context;
use std::sync::Arc;

/// The output of an export, which is text that is written as features arrive, or tables that are written at the end.
pub(super) enum FeatureSink {
    /// A text document, and the areas that are written after all other features.
    Text(Box<FeatureDocument>, Option<Arc<LateAreas>>),
    #[cfg(feature = "parquet")]
    Tables(Box<TableSink>),
}

impl FeatureSink {
    /// Opens the output, and returns it with the form of features that it needs.
    pub(super) fn open(options: &Options, ctx: &Context) -> Result<(Self, FeatureForm)> {
        match &options.format {
            ExportFormat::Text(features) => {
                let output = OpenOutput::open(options.target.clone(), ctx)?;
                let document = FeatureDocument::create(output, features)?;
                let late = options.areas_last.then(|| {
                    let directory = options.temp_dir.clone();
                    let directory = directory.unwrap_or_else(|| options.target.scratch_directory());
                    Arc::new(LateAreas::new(features, &directory, ctx))
                });
                let form = FeatureForm::Text(features.clone(), late.clone());
                Ok((Self::Text(Box::new(document), late), form))
            }
            #[cfg(feature = "parquet")]
            ExportFormat::GeoParquet(tables) => {
                let sink = TableSink::open(options, tables, ctx)?;
                let form = FeatureForm::Rows(sink.rows.clone());
                Ok((Self::Tables(Box::new(sink)), form))
            }
            #[cfg(feature = "parquet")]
            ExportFormat::Objects(_) => Err(Error::Internal("objects are no features".into())),
        }
    }

    /// Appends features.
    pub(super) fn add_text(&mut self, chunk: FeatureChunk) -> Result<()> {
        match self {
            Self::Text(document, _) => document.add(chunk),
            #[cfg(feature = "parquet")]
            Self::Tables(_) => Ok(()),
        }
    }

    /// Completes the output. Returns its size in bytes.
    #[cfg_attr(not(feature = "parquet"), expect(unused_variables))]
    pub(super) fn finish(self, ctx: &Context) -> Result<u64> {
        match self {
            Self::Text(mut document, late) => {
                late.map_or(Ok(()), |areas| areas.write(&mut document))?;
                document.finish()
            }
            #[cfg(feature = "parquet")]
            Self::Tables(tables) => tables.finish(ctx),
        }
    }
}
