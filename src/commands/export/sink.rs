//! The output of an export.

#[cfg(feature = "parquet")]
use super::tables::TableSink;
use super::{ExportFormat, Options};
#[cfg(feature = "parquet")]
use crate::error::Error;
use crate::error::Result;
use crate::formats::features::{FeatureChunk, FeatureDocument};
#[cfg(feature = "parquet")]
use crate::formats::parquet::InfoColumns;
#[cfg(feature = "parquet")]
use crate::index::{RowBatch, SortedRun};
use crate::io::OpenOutput;
use crate::runtime::Context;

/// The output of an export: a text that is written as features come, or tables that are written at the end.
pub(super) enum FeatureSink {
    Text(Box<FeatureDocument>),
    #[cfg(feature = "parquet")]
    Tables(Box<TableSink>),
}

impl FeatureSink {
    /// Opens the output.
    pub(super) fn open(options: &Options) -> Result<Self> {
        match &options.format {
            ExportFormat::Text(features) => {
                let output = OpenOutput::open(options.target.clone())?;
                let document = FeatureDocument::create(output, features)?;
                Ok(Self::Text(Box::new(document)))
            }
            #[cfg(feature = "parquet")]
            ExportFormat::GeoParquet(tables) => {
                let sink = TableSink::open(options, tables)?;
                Ok(Self::Tables(Box::new(sink)))
            }
            #[cfg(feature = "parquet")]
            ExportFormat::Objects(_) => Err(Error::Internal("objects are no features".into())),
        }
    }

    /// Appends features.
    pub(super) fn add_text(&mut self, chunk: FeatureChunk) -> Result<()> {
        match self {
            Self::Text(document) => document.add(chunk),
            #[cfg(feature = "parquet")]
            Self::Tables(_) => Ok(()),
        }
    }

    /// Adds features as rows. Returns batches that are to be sorted, if there are enough.
    #[cfg(feature = "parquet")]
    pub(super) fn add_rows(&mut self, rows: RowBatch, info: InfoColumns) -> Vec<RowBatch> {
        match self {
            Self::Text(_) => Vec::new(),
            Self::Tables(tables) => tables.add(rows, info),
        }
    }

    /// Adds sorted rows.
    #[cfg(feature = "parquet")]
    pub(super) fn add_run(&mut self, run: SortedRun) -> Result<()> {
        match self {
            Self::Text(_) => Ok(()),
            Self::Tables(tables) => tables.add_run(run),
        }
    }

    /// Completes the output. Returns its length in bytes.
    #[cfg_attr(not(feature = "parquet"), expect(unused_variables))]
    pub(super) fn finish(self, ctx: &Context) -> Result<u64> {
        match self {
            Self::Text(document) => document.finish(),
            #[cfg(feature = "parquet")]
            Self::Tables(tables) => tables.finish(ctx),
        }
    }
}
