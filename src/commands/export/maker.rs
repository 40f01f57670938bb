//! Batches of features in a form that the caller chooses. Callers implement [`FeatureMaker`] to make the batches. A
//! maker gets each feature as a [`FeatureView`].

use crate::formats::features::{Feature, put_wkb};
use crate::formats::table::{OsmRow, TagPairs};
use crate::osm::{Edges, ObjectKind};
use crate::pbf::Info;

/// A feature, as [`run`](super::run) writes it.
#[derive(Debug, Clone, Copy)]
pub struct FeatureView<'f>(pub(super) &'f Feature<'f>);

impl<'f> FeatureView<'f> {
    /// Returns the kind of the object from which the feature was made.
    pub const fn kind(&self) -> ObjectKind {
        self.0.kind
    }

    /// Returns the id of the object.
    pub const fn id(&self) -> i64 {
        self.0.id
    }

    /// Returns the metadata of the object. It may be empty unless it was requested from [`batches`](super::batches()).
    pub const fn info(&self) -> &Info<'f> {
        &self.0.info
    }

    /// Returns the tags as pairs of a key and a value, in the order of the file.
    pub const fn tags(&self) -> &[(&'f str, &'f str)] {
        self.0.tags
    }

    /// Appends the geometry as WKB (OGC 06-103r4), with longitude before latitude in degrees.
    pub fn put_wkb(&self, out: &mut Vec<u8>) {
        put_wkb(out, &self.0.geometry, None);
    }

    /// Returns the area of polygons on the ellipsoid of WGS 84, in square metres; `None` for other geometries.
    #[cfg(feature = "parquet")]
    pub fn area_m2(&self) -> Option<f64> {
        self.0.geometry.area_m2()
    }

    /// Returns the length of lines on the ellipsoid of WGS 84, in metres; `None` for other geometries.
    #[cfg(feature = "parquet")]
    pub fn length_m(&self) -> Option<f64> {
        self.0.geometry.length_m()
    }

    /// Returns the box around the geometry, in units of 1e-7 degree.
    pub fn edges(&self) -> Option<Edges<i32>> {
        self.0.geometry.extent().map(|extent| extent.edges())
    }
}

impl OsmRow for FeatureView<'_> {
    fn kind(&self) -> ObjectKind {
        self.kind()
    }

    fn id(&self) -> i64 {
        self.id()
    }

    fn info(&self) -> Info<'_> {
        *self.info()
    }

    fn tags(&self) -> TagPairs<'_> {
        TagPairs::Listed(self.0.tags.iter())
    }
}

/// Makes batches of features. Each thread has its own maker.
pub trait FeatureMaker: Send {
    /// A batch of features.
    type Batch: Send + 'static;

    /// Adds a feature to the current batch.
    fn add(&mut self, feature: &FeatureView<'_>);

    /// Ends the current batch and returns it. Returns `None` if it has no features.
    fn take(&mut self) -> Option<Self::Batch>;

    /// Whether the current batch should end.
    fn is_full(&self) -> bool;
}
