//! Opening an index, and finding objects in it.

use super::area::{Area, Areas};
use super::container::Container;
use super::layout::{AREA_SECTION, Layer, SECTION_COUNT};
use super::leaf::{Leaf, LeafItem};
use super::metric::Metric;
use super::tree::Tree;
use super::write::part_places;
use crate::error::{Error, ErrorKind, FormatError, Result};
use crate::geometry::{Extent, Point};
use crate::osm::ObjectKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The name of the manifest in the directory of an index.
pub(crate) const MANIFEST: &str = "manifest.json";
/// The version of the format.
pub(crate) const VERSION: u32 = 3;

/// Facts about an index, as its directory has them in `manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Manifest {
    /// The version of the format.
    pub version: u32,
    /// The name of the file with the index.
    pub file: String,
    /// The length of that file in bytes.
    pub bytes: u64,
    /// The name of the PBF file that the index was made from.
    pub input: String,
    /// The replication timestamp of that file, in seconds since 1970.
    pub timestamp: Option<i64>,
    /// The number of objects, or of parts of streets, of each sort.
    pub counts: BTreeMap<String, u64>,
    /// The distance in metres within which an address is the address of a place.
    pub search_radius: f64,
    /// The distance in metres within which objects are found.
    pub coarse_search_radius: f64,
}

impl Manifest {
    /// Reads the manifest in a directory.
    pub(crate) fn read(directory: &Path) -> Result<Self> {
        let path = directory.join(MANIFEST);
        let bytes = std::fs::read(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                let error = Error::file_of(directory, ErrorKind::NotFound, "there is no index here");
                error.advise("`pbfhogg build-geocode-index FILE --output-dir DIRECTORY` makes one")
            }
            io::ErrorKind::NotADirectory => {
                let error = Error::file(directory, "this is a file, not the directory of an index");
                error.advise(
                    "`pbfhogg build-geocode-index FILE --output-dir DIRECTORY` makes one of an OSM file first",
                )
            }
            _ => Error::io(&path, "cannot open", error),
        })?;
        let manifest = serde_json::from_slice(&bytes).ok();
        let is_known = |manifest: &Self| {
            let is_name = Path::new(&manifest.file).components().count() == 1;
            manifest.version == VERSION && is_name && manifest.file.starts_with("index-")
        };
        manifest.filter(is_known).ok_or_else(|| {
            let error = Error::file(&path, "this is not the manifest of an index of this version");
            error.advise(
                "build the index again with `pbfhogg build-geocode-index FILE -O --output-dir DIRECTORY`",
            )
        })
    }

    /// The name of the file with the index in a directory, of whatever version it is; `None` without a manifest that has
    /// one. Fails if the manifest cannot be read.
    pub(crate) fn listed_in(directory: &Path) -> std::io::Result<Option<String>> {
        let bytes = match std::fs::read(directory.join(MANIFEST)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let manifest = serde_json::from_slice::<serde_json::Value>(&bytes).ok();
        let file = manifest.and_then(|manifest| Some(manifest.get("file")?.as_str()?.to_owned()));
        let is_name =
            |file: &String| Path::new(file).components().count() == 1 && file.starts_with("index-");
        Ok(file.filter(is_name))
    }

    /// A manifest of this version. The radii are the search radius and the coarse search radius.
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
/// It is mapped into memory, and can be used by any number of threads. Processes that open the same index share its
/// memory.
#[derive(Debug)]
pub struct GeocodeIndex {
    container: Container,
    /// In the order of [`Layer::ALL`].
    trees: Vec<Tree>,
    manifest: Manifest,
}

/// An object near a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found<'c> {
    pub item: LeafItem<'c>,
    /// The place, with a longitude that is near the object's.
    pub place: Point,
    /// The squared distance in metres.
    pub squared: f64,
}

impl Found<'_> {
    /// The order of objects: by distance, and by kind and id among those at the same distance.
    pub(super) fn key(&self) -> (f64, ObjectKind, i64) {
        (self.squared, self.item.kind, self.item.id)
    }

    /// The distance in metres.
    pub(crate) fn distance_m(&self) -> f64 {
        self.squared.sqrt()
    }
}

impl GeocodeIndex {
    /// Opens the index in a directory. Only a few bytes of it are read.
    ///
    /// # Errors
    ///
    /// The directory has no index of this version, or its files are damaged.
    pub fn open(directory: &Path) -> Result<Self> {
        let mut manifest = Manifest::read(directory)?;
        loop {
            let opened = Self::of(directory, manifest.clone());
            let newer = match &opened {
                // A build may have replaced the index since the manifest was read.
                Err(_) => Manifest::read(directory)?,
                Ok(_) => return opened,
            };
            if newer == manifest {
                return opened;
            }
            manifest = newer;
        }
    }

    /// Opens the index of a manifest.
    fn of(directory: &Path, manifest: Manifest) -> Result<Self> {
        let container = Container::open(&directory.join(&manifest.file), SECTION_COUNT)?;
        let trees = Layer::ALL.iter();
        let trees = trees.map(|layer| Tree::open(&container, layer.tree()));
        Ok(Self {
            trees: trees.collect::<Result<_>>()?,
            container,
            manifest,
        })
    }

    /// Facts about the index.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    pub(super) const fn container(&self) -> &Container {
        &self.container
    }

    pub(super) fn tree(&self, layer: Layer) -> &Tree {
        &self.trees[layer as usize]
    }

    /// The error for bytes that make no sense.
    pub(super) fn damaged(&self, error: &FormatError) -> Error {
        self.container.damaged(&error.to_string())
    }

    /// Visits the objects of a layer that may be within a distance of a place, about in the order of their distances.
    /// `limit` is the square of that distance in metres, up to `radius` metres. `visit` may lower it.
    pub(super) fn visit_near<'c>(
        &'c self,
        layer: Layer,
        place: Point,
        radius: f64,
        mut visit: impl FnMut(Found<'c>, &mut f64) -> Result<(), FormatError>,
    ) -> Result<()> {
        let tree = self.tree(layer);
        let mut limit = radius * radius;
        for metric in Metric::all_around(place, radius) {
            let place = metric.place();
            tree.near(&self.container, &metric, &mut limit, &mut |leaf, limit| {
                let bytes = tree.leaf(&self.container, leaf)?;
                let mut visited = || {
                    let leaf = Leaf::parse(bytes)?;
                    let mut ranking = leaf.ranking(&metric);
                    while let Some(number) = ranking.next(*limit) {
                        let item = leaf.item(number)?;
                        let squared = item.distance(&metric, place)?;
                        let found = Found {
                            item,
                            place,
                            squared,
                        };
                        visit(found, limit)?;
                    }
                    Ok(())
                };
                visited().map_err(|error| self.damaged(&error))
            })?;
        }
        Ok(())
    }

    /// The object of a layer that is nearest to a place, among those that `accepts` accepts within `radius` metres.
    pub(super) fn nearest<'c>(
        &'c self,
        layer: Layer,
        place: Point,
        radius: f64,
        accepts: impl Fn(&LeafItem<'c>) -> Result<bool, FormatError>,
    ) -> Result<Option<Found<'c>>> {
        let mut best: Option<Found<'c>> = None;
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

    /// The areas that contain a place.
    pub(super) fn areas_at(&self, place: Point) -> Result<Vec<Area<'_>>> {
        let tree = self.tree(Layer::Areas);
        let areas = Areas {
            container: &self.container,
            section: AREA_SECTION,
        };
        // The start of the record of each area, and the box of the part that holds the place.
        let mut records: Vec<(u64, Extent)> = Vec::new();
        for place in both_sides(place) {
            tree.meeting(&self.container, &Extent::at(place), &mut |leaf| {
                let bytes = tree.leaf(&self.container, leaf)?;
                for (extent, start) in part_places(bytes).map_err(|error| self.damaged(&error))? {
                    if extent.holds(place)
                        && let Some(record) = areas.record_of(start, place)?
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

/// A place, and the same place with the other longitude if it is on the antimeridian.
fn both_sides(place: Point) -> impl Iterator<Item = Point> {
    const ANTIMERIDIAN_E7: u32 = 1_800_000_000;
    let other = Point {
        lon_e7: place.lon_e7.wrapping_neg(),
        ..place
    };
    let is_both = place.lon_e7.unsigned_abs() == ANTIMERIDIAN_E7;
    std::iter::once(place).chain(is_both.then_some(other))
}
