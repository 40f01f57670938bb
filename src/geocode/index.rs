//! Opening an index, and finding objects in it.

use super::area::{Area, Areas};
use super::container::Container;
use super::layout::{AREA_SECTION, Layer, SECTION_COUNT};
use super::leaf::{ItemLeaf, LeafItem};
use super::local_projection::LocalProjection;
use super::packed_rtree::PackedRTree;
use super::write::part_places;
use crate::error::{Advice, Error, ErrorKind, FileResult, FormatError, FormatResult, Result};
use crate::geometry::{Extent, Point};
use crate::osm::ObjectKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The name of the manifest in the directory of an index.
pub(crate) const MANIFEST: &str = "manifest.json";
/// The version of the index format.
pub(crate) const VERSION: u32 = 4;

/// The contents of `manifest.json` in the directory of an index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Manifest {
    /// The version of the index format.
    pub version: u32,
    /// The name of the file with the index.
    pub file: String,
    /// The size of the index file in bytes.
    pub bytes: u64,
    /// The name of the PBF file from which the index was built.
    pub input: String,
    /// The replication timestamp of the PBF file, in seconds since 1970.
    pub timestamp: Option<i64>,
    /// The number of objects in each layer. For streets and roads, the number of their parts.
    pub counts: BTreeMap<String, u64>,
    /// The maximum distance of an address from the query point, in metres.
    pub search_radius: f64,
    /// The maximum distance in metres between the query point and the nearest objects in an answer, such as streets.
    /// Place nodes have limits of their own.
    pub coarse_search_radius: f64,
}

impl Manifest {
    /// Reads the manifest in a directory. Fails if the directory has no manifest of this version.
    pub(crate) fn read(directory: &Path) -> Result<Self> {
        let path = directory.join(MANIFEST);
        let bytes = std::fs::read(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                let error =
                    Error::file_of(directory, ErrorKind::NotFound, "there is no index here");
                error.advise(Advice::BuildGeocodeIndex)
            }
            io::ErrorKind::NotADirectory => {
                let error = Error::file(directory, "this is a file, not the directory of an index");
                error.advise(Advice::BuildGeocodeIndexFirst)
            }
            _ => Error::io(&path, "cannot open", error),
        })?;
        let manifest = serde_json::from_slice(&bytes).ok();
        let is_known = |manifest: &Self| {
            let is_name = Path::new(&manifest.file).components().count() == 1;
            manifest.version == VERSION && is_name && manifest.file.starts_with("index-")
        };
        manifest.filter(is_known).ok_or_else(|| {
            let error = Error::file(
                &path,
                "this is not the manifest of an index of this version",
            );
            error.advise(Advice::ReplaceGeocodeIndex)
        })
    }

    /// Returns the name of the index file from the manifest in a directory. The manifest may have any version. Returns
    /// `None` if the directory has no manifest, or if the manifest does not name an index file. Fails if the manifest
    /// cannot be read.
    pub(crate) fn read_index_file_name(directory: &Path) -> std::io::Result<Option<String>> {
        let Some(bytes) = std::fs::read(directory.join(MANIFEST)).if_exists()? else {
            return Ok(None);
        };
        let manifest = serde_json::from_slice::<serde_json::Value>(&bytes).ok();
        let file = manifest.and_then(|manifest| Some(manifest.get("file")?.as_str()?.to_owned()));
        let is_name =
            |file: &String| Path::new(file).components().count() == 1 && file.starts_with("index-");
        Ok(file.filter(is_name))
    }

    /// Creates a manifest of this version, with an empty file name. The array has the search radius and the coarse
    /// search radius.
    pub(crate) fn new(
        bytes: u64,
        input: impl Into<String>,
        timestamp: Option<i64>,
        counts: BTreeMap<String, u64>,
        [search_radius, coarse_search_radius]: [f64; 2],
    ) -> Self {
        Self {
            version: VERSION,
            file: String::new(),
            bytes,
            input: input.into(),
            timestamp,
            counts,
            search_radius,
            coarse_search_radius,
        }
    }
}

/// An index for reverse geocoding.
///
/// The file is memory-mapped, so processes share its memory. Any number of threads can query an index.
#[derive(Debug)]
pub struct GeocodeIndex {
    pub(super) container: Container,
    /// The trees of the layers, in the order of [`Layer::ALL`].
    trees: Vec<PackedRTree>,
    manifest: Manifest,
}

/// An object that a search found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit<'c> {
    pub item: LeafItem<'c>,
    /// The query point, with a longitude on the object's side of the antimeridian.
    pub place: Point,
    /// The square of the distance in metres.
    pub squared: f64,
}

impl Hit<'_> {
    /// Returns the sort key, which orders by distance, then by kind and id.
    pub(super) fn key(&self) -> (f64, ObjectKind, i64) {
        (self.squared, self.item.kind, self.item.id)
    }

    /// Returns the distance in metres.
    pub(crate) fn distance_m(&self) -> f64 {
        self.squared.sqrt()
    }
}

impl GeocodeIndex {
    /// Opens the index in a directory. Reads only the manifest, the footer and the checksums.
    ///
    /// # Errors
    ///
    /// The directory has no index of this version, or its files are damaged.
    pub fn open(directory: &Path) -> Result<Self> {
        let mut manifest = Manifest::read(directory)?;
        loop {
            let opened = Self::open_with_manifest(directory, manifest.clone());
            let newer = match &opened {
                // A build may have replaced the index after this manifest was read. If so, the new manifest differs.
                Err(_) => Manifest::read(directory)?,
                Ok(_) => return opened,
            };
            if newer == manifest {
                return opened;
            }
            manifest = newer;
        }
    }

    /// Opens the index that a manifest describes.
    fn open_with_manifest(directory: &Path, manifest: Manifest) -> Result<Self> {
        let container = Container::open(&directory.join(&manifest.file), SECTION_COUNT)?;
        let trees = Layer::ALL.iter();
        let trees = trees.map(|layer| PackedRTree::open(&container, layer.first_tree_section()));
        Ok(Self {
            trees: trees.collect::<Result<_>>()?,
            container,
            manifest,
        })
    }

    /// Returns the manifest of the index.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    pub(super) fn tree(&self, layer: Layer) -> &PackedRTree {
        &self.trees[layer as usize]
    }

    /// Returns the error for bytes that violate the format. The message names the file.
    pub(super) fn damage_error(&self, error: &FormatError) -> Error {
        self.container.damage_error(&error.to_string())
    }

    /// Calls `visit` with each object of a layer that may be within `radius` metres of a place, roughly nearest first.
    /// The second argument of `visit` is the square of the maximum distance in metres. `visit` may lower it. With a
    /// radius of 0, the objects are those whose box contains the place, in no particular order.
    pub(super) fn visit_near<'c>(
        &'c self,
        layer: Layer,
        place: Point,
        radius: f64,
        mut visit: impl FnMut(Hit<'c>, &mut f64) -> FormatResult<()>,
    ) -> Result<()> {
        let tree = self.tree(layer);
        let mut limit = radius * radius;
        for projection in LocalProjection::covering(place, radius) {
            let place = projection.place();
            let mut visit_leaf = |leaf, limit: &mut f64| {
                let bytes = tree.leaf(&self.container, leaf)?;
                let mut visited = || {
                    let leaf = ItemLeaf::parse(bytes)?;
                    let mut queue = leaf.queue(&projection);
                    while let Some(number) = queue.next(*limit) {
                        let item = leaf.item(number)?;
                        let squared = item.squared_distance(&projection, place)?;
                        let found = Hit {
                            item,
                            place,
                            squared,
                        };
                        visit(found, limit)?;
                    }
                    Ok(())
                };
                visited().map_err(|error| self.damage_error(&error))
            };
            // Near a pole, a segment is a straight line in the projection, so an object may reach beyond its box.
            if radius == 0.0 && !projection.is_polar() {
                let here = Extent::at(place);
                tree.visit_intersecting_leaves(&self.container, &here, &mut |leaf| {
                    visit_leaf(leaf, &mut limit)
                })?;
            } else {
                tree.visit_near(&self.container, &projection, &mut limit, &mut visit_leaf)?;
            }
        }
        Ok(())
    }

    /// Returns the nearest object of a layer that is within `radius` metres of a place and that `accepts` accepts.
    pub(super) fn nearest<'c>(
        &'c self,
        layer: Layer,
        place: Point,
        radius: f64,
        accepts: impl Fn(&LeafItem<'c>) -> FormatResult<bool>,
    ) -> Result<Option<Hit<'c>>> {
        let mut best: Option<Hit<'c>> = None;
        self.visit_near(layer, place, radius, |found, limit| {
            let is_better =
                found.squared <= *limit && best.is_none_or(|best| found.key() < best.key());
            if is_better && accepts(&found.item)? {
                best = Some(found);
                *limit = found.squared;
            }
            Ok(())
        })?;
        Ok(best)
    }

    /// Returns the areas that contain a place.
    pub(super) fn areas_at(&self, place: Point) -> Result<Vec<Area<'_>>> {
        let tree = self.tree(Layer::Areas);
        let areas = Areas {
            container: &self.container,
            section: AREA_SECTION,
        };
        // For each area, the start of its record, and the bounding box of the part of the area that contains the place.
        let mut records: Vec<(u64, Extent)> = Vec::new();
        for place in places_on_both_sides(place) {
            tree.visit_intersecting_leaves(&self.container, &Extent::at(place), &mut |leaf| {
                let bytes = tree.leaf(&self.container, leaf)?;
                for (extent, start) in
                    part_places(bytes).map_err(|error| self.damage_error(&error))?
                {
                    if extent.holds(place)
                        && let Some(record) = areas.record_if_part_contains(start, place)?
                        && !records.iter().any(|(other, _)| *other == record)
                    {
                        records.push((record, extent));
                    }
                }
                Ok(())
            })?;
        }
        let areas = records
            .into_iter()
            .map(|(record, extent)| areas.area(record, extent));
        areas.collect()
    }
}

/// Returns a place. If the place is on the antimeridian, also returns the same place with the opposite longitude.
fn places_on_both_sides(place: Point) -> impl Iterator<Item = Point> {
    const ANTIMERIDIAN_E7: u32 = 1_800_000_000;
    let other = Point {
        lon_e7: place.lon_e7.wrapping_neg(),
        ..place
    };
    let is_both = place.lon_e7.unsigned_abs() == ANTIMERIDIAN_E7;
    std::iter::once(place).chain(is_both.then_some(other))
}
