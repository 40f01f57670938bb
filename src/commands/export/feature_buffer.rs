//! The features that a worker has built but not sent yet.

#[cfg(feature = "parquet")]
use super::boundaries::Boundaries;
use super::late_areas::{AreaBuffer, Completion, LateAreas};
use super::maker::{AnyMaker, FeatureView, Made, MakerForm};
#[cfg(feature = "parquet")]
use super::tables::TableRows;
#[cfg(feature = "parquet")]
use super::tally::theme_numbers;
use crate::error::{FormatError, Result};
use crate::formats::features::{Feature, FeatureChunk, FeatureText, OwnedGeometry};
#[cfg(feature = "parquet")]
use crate::formats::parquet::put_row;
use crate::formats::{Attribute, FeatureOptions};
use crate::geometry::Extent;
#[cfg(feature = "parquet")]
use crate::index::RowBatch;
use crate::osm::ObjectExpression;
use std::sync::Arc;

/// The form in which an output needs features.
#[derive(Clone)]
pub(super) enum FeatureForm {
    /// Text. If `LateAreas` are given, areas are written after all other features.
    Text(FeatureOptions, Option<Arc<LateAreas>>),
    /// Geometries of features, which are kept for [`ObjectGeometries`](super::ObjectGeometries).
    Kept,
    /// Features that a caller makes batches of.
    Made(MakerForm),
    /// Rows of tables. They are sorted before they are written.
    #[cfg(feature = "parquet")]
    Rows(Arc<TableRows>),
}

impl FeatureForm {
    /// Returns the administrative boundaries that workers collect for columns; `None` if no column needs them.
    #[cfg(feature = "parquet")]
    pub(super) fn boundaries(&self) -> Option<Arc<Boundaries>> {
        match self {
            Self::Text(..) | Self::Kept | Self::Made(_) => None,
            Self::Rows(target) => target.boundaries.clone(),
        }
    }

    /// Whether features are written as text.
    pub(super) const fn is_text(&self) -> bool {
        matches!(self, Self::Text(..))
    }

    /// Whether features of more than [`MAX_ROW`](crate::formats::row_limit::MAX_ROW) bytes are left out. Who asks for
    /// geometries only has rows of another kind.
    pub(super) const fn is_limited(&self) -> bool {
        !matches!(self, Self::Kept)
    }

    /// Whether administrative boundaries have to be collected.
    pub(super) fn needs_boundaries(&self) -> bool {
        match self {
            Self::Text(..) | Self::Kept | Self::Made(_) => false,
            #[cfg(feature = "parquet")]
            Self::Rows(target) => target.boundaries.is_some(),
        }
    }

    /// Returns the expressions of all themes; `None` if the output has no themes.
    pub(super) fn expressions(&self) -> Option<Vec<ObjectExpression>> {
        match self {
            Self::Text(..) | Self::Kept | Self::Made(_) => None,
            #[cfg(feature = "parquet")]
            Self::Rows(target) => {
                let themes = target.partitioning.themes();
                (!themes.is_empty()).then(|| themes.expressions().to_vec())
            }
        }
    }

    /// Returns the names of the themes; empty if the output has no themes.
    pub(super) fn theme_names(&self) -> Vec<String> {
        match self {
            Self::Text(..) | Self::Kept | Self::Made(_) => Vec::new(),
            #[cfg(feature = "parquet")]
            Self::Rows(target) => {
                let names = target.partitioning.themes().names();
                names.map(str::to_owned).collect()
            }
        }
    }

    /// Whether features are written with metadata.
    pub(super) fn needs_info(&self) -> bool {
        match self {
            Self::Text(options, _) => options.attributes.iter().any(|(attribute, _)| {
                !matches!(
                    attribute,
                    Attribute::Type | Attribute::Id | Attribute::WayNodes
                )
            }),
            Self::Kept => false,
            Self::Made(form) => form.needs_info,
            #[cfg(feature = "parquet")]
            Self::Rows(target) => target.options.has_metadata,
        }
    }
}

/// The size in bytes at which buffered rows or late areas are passed to the sorter even before the end of a blob. In real
/// files, the rows of one blob are smaller.
const MAX_ROWS: usize = 2 << 20;

/// The features that have not been sent or passed to a sorter yet.
pub(super) enum FeatureBuffer {
    Text(Box<TextFeatures>),
    Kept(Vec<OwnedGeometry>),
    Made(Box<dyn AnyMaker>),
    #[cfg(feature = "parquet")]
    Rows(RowBuffer),
}

/// Features as text.
pub(super) struct TextFeatures {
    text: FeatureText,
    options: FeatureOptions,
    /// The areas, if they are written after all other features; otherwise `None`.
    areas: Option<AreaBuffer>,
}

/// Features as rows.
#[cfg(feature = "parquet")]
pub(super) struct RowBuffer {
    rows: RowBatch,
    target: Arc<TableRows>,
}

#[cfg(feature = "parquet")]
impl RowBuffer {
    /// Adds a row for each theme of a feature. Returns the themes as a set of bits.
    fn put(&mut self, feature: &Feature<'_>, extent: &Extent) -> u64 {
        let partitioning = &self.target.partitioning;
        let themes = partitioning.themes().of(feature);
        for theme in theme_numbers(themes) {
            let key = partitioning.sort_key(&feature.geometry, extent, theme);
            self.rows.push(key, |out| put_row(out, feature));
            // A feature of many themes has many rows.
            if self.rows.len() >= MAX_ROWS {
                self.target.add(std::mem::take(&mut self.rows));
            }
        }
        themes
    }

    /// Passes the rows to the sorter, if there are any.
    fn pass_on(&mut self) {
        if self.rows.count() > 0 {
            self.target.add(std::mem::take(&mut self.rows));
        }
    }
}

impl FeatureBuffer {
    pub(super) fn new(form: &FeatureForm) -> Self {
        match form {
            FeatureForm::Text(options, areas) => Self::Text(Box::new(TextFeatures {
                text: FeatureText::new(options),
                options: options.clone(),
                areas: areas.as_ref().map(AreaBuffer::new),
            })),
            FeatureForm::Kept => Self::Kept(Vec::new()),
            FeatureForm::Made(form) => Self::Made((form.create)()),
            #[cfg(feature = "parquet")]
            FeatureForm::Rows(target) => Self::Rows(RowBuffer {
                rows: RowBatch::default(),
                target: target.clone(),
            }),
        }
    }

    /// Whether lines are written with the ids of their nodes.
    pub(super) fn needs_way_nodes(&self) -> bool {
        match self {
            Self::Text(features) => features.options.attributes.has(Attribute::WayNodes),
            Self::Kept(_) | Self::Made(_) => false,
            #[cfg(feature = "parquet")]
            Self::Rows(_) => false,
        }
    }

    /// Adds a feature. Text contains a feature once; rows contain a feature once for each of its themes. `extent` is
    /// the box around the feature. `completion` is given for areas only. Returns the themes for which the feature is
    /// counted, as a set of bits: bit 0 alone if the output has no themes, and no bit if features go to a caller, which
    /// counts them itself.
    #[cfg_attr(not(feature = "parquet"), expect(unused_variables))]
    pub(super) fn put(
        &mut self,
        feature: &Feature<'_>,
        extent: &Extent,
        completion: Option<Completion>,
    ) -> u64 {
        match self {
            Self::Text(features) => {
                match (&mut features.areas, completion) {
                    (Some(areas), Some(completion)) => areas.put(feature, completion),
                    _ => features.text.put(feature),
                }
                1
            }
            Self::Kept(geometries) => {
                geometries.push(feature.geometry.to_owned());
                0
            }
            Self::Made(maker) => {
                maker.add(&FeatureView(feature));
                0
            }
            #[cfg(feature = "parquet")]
            Self::Rows(buffer) => buffer.put(feature, extent),
        }
    }

    /// Returns the size in bytes of the buffered text; 0 for rows.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Text(features) => features.text.len(),
            Self::Kept(_) | Self::Made(_) => 0,
            #[cfg(feature = "parquet")]
            Self::Rows(_) => 0,
        }
    }

    /// Removes and returns the buffered text; `None` if there is none.
    pub(super) fn take(&mut self) -> Result<Option<FeatureChunk>, FormatError> {
        match self {
            Self::Text(features) => {
                let chunk = features.text.take();
                chunk.map_err(|error| FormatError::with(error.to_string()))
            }
            Self::Kept(_) | Self::Made(_) => Ok(None),
            #[cfg(feature = "parquet")]
            Self::Rows(_) => Ok(None),
        }
    }

    /// Removes and returns the batch of a caller if the batch is full or, at the end of a blob, if it has features.
    pub(super) fn take_made(&mut self, is_end: bool) -> Option<Made> {
        match self {
            Self::Made(maker) if is_end || maker.is_full() => maker.take(),
            _ => None,
        }
    }

    /// Removes and returns the geometries of the kept features.
    pub(super) fn take_kept(&mut self) -> Vec<OwnedGeometry> {
        match self {
            Self::Kept(geometries) => std::mem::take(geometries),
            _ => Vec::new(),
        }
    }

    /// Passes rows or late areas to the sorter if they use at least [`MAX_ROWS`] bytes.
    pub(super) fn pass_on_many(&mut self) {
        let len = match self {
            Self::Text(features) => features.areas.as_ref().map_or(0, AreaBuffer::len),
            Self::Kept(_) | Self::Made(_) => 0,
            #[cfg(feature = "parquet")]
            Self::Rows(buffer) => buffer.rows.len(),
        };
        if len >= MAX_ROWS {
            self.pass_on();
        }
    }

    /// Passes rows or late areas to the sorter. May block while the sorter is busy.
    pub(super) fn pass_on(&mut self) {
        match self {
            Self::Text(features) => features.areas.iter_mut().for_each(AreaBuffer::pass_on),
            Self::Kept(_) | Self::Made(_) => {}
            #[cfg(feature = "parquet")]
            Self::Rows(buffer) => buffer.pass_on(),
        }
    }

    /// Fails if the sorter of rows or late areas has failed.
    pub(super) fn check(&self) -> Result<()> {
        match self {
            Self::Text(features) => features.areas.as_ref().map_or(Ok(()), AreaBuffer::check),
            Self::Kept(_) | Self::Made(_) => Ok(()),
            #[cfg(feature = "parquet")]
            Self::Rows(buffer) => buffer.target.check(),
        }
    }
}
