//! The region within which the coast of a file is known.

use super::RegionSource;
use super::border::{Border, winding_around};
use super::gaps::BoundPath;
use super::path::CoastPath;
use super::ways::CoastNodes;
use super::{CoastOptions, Surface};
use crate::area::{AreaPolygon, polygon_of};
use crate::engine::references::sort_and_dedup;
use crate::error::{Error, Result};
use crate::file::PlannedFile;
use crate::geometry::{
    AreaIndex, Extent, Point, Polygon, Ring, Rings, Shape, doubled_area, polygons_with_winding_sign,
};
use crate::osm::{Bbox, ObjectKind};
use crate::pbf::{BlobEntry, Element};

/// The edges of the world in 1e-7 degree.
const WORLD: Bbox = Bbox {
    min_lat_e7: -900_000_000,
    max_lat_e7: 900_000_000,
    min_lon_e7: -1_800_000_000,
    max_lon_e7: 1_800_000_000,
};
/// The minimum width, in 1e-7 degree, of a bounding box that counts as the whole world.
const NEARLY_ALL: i64 = 3_550_000_000;

/// The region of a coast.
pub(super) struct CoastRegion {
    /// Each polygon of the region: its outer ring, counter-clockwise, and its holes, clockwise.
    pub polygons: Vec<Rings>,
    pub source: RegionSource,
}

impl CoastRegion {
    /// Returns the region of the options. If the options have no region, returns the box in the header or, if the
    /// header has none, the box of the data.
    pub(super) fn of(options: &CoastOptions, data: PlannedFile<'_>) -> Result<Self> {
        if let Some(shape) = &options.region {
            let polygons = polygons_of(shape);
            if polygons.is_empty() {
                return Err(Error::Usage("the region has no inside".to_owned()));
            }
            let rings = polygons.iter().flatten();
            let area: i128 = rings.map(|ring| doubled_area(ring)).sum();
            let of_world: i128 = world()
                .iter()
                .flatten()
                .map(|ring| doubled_area(ring))
                .sum();
            let is_world = area == of_world;
            return Ok(Self {
                polygons,
                source: if is_world {
                    RegionSource::World
                } else {
                    RegionSource::Given
                },
            });
        }
        let of_header = data.file.header.bbox().filter(|bbox| !bbox.is_empty());
        let (bbox, source) = match of_header {
            Some(bbox) => (bbox, RegionSource::Header),
            None => (box_of_data(data)?, RegionSource::Data),
        };
        let width = i64::from(bbox.max_lon_e7) - i64::from(bbox.min_lon_e7);
        let polygons = polygons_of(&Shape::of_bbox(&bbox));
        if bbox.is_empty() || width >= NEARLY_ALL || polygons.is_empty() {
            return Ok(Self {
                polygons: world(),
                source: RegionSource::World,
            });
        }
        Ok(Self { polygons, source })
    }

    /// Returns the border of the region and, for each ring of the border, the index of the polygon to which the ring
    /// belongs.
    pub(super) fn border(&self) -> (Border, Vec<usize>) {
        let polygons = self.polygons.iter().enumerate();
        let owners = polygons.flat_map(|(index, rings)| rings.iter().map(move |_| index));
        let rings = self.polygons.iter().flatten().cloned().collect();
        (Border::new(rings), owners.collect())
    }
}

/// Returns the whole world.
fn world() -> Vec<Rings> {
    polygons_of(&Shape::of_bbox(&WORLD))
}

/// Returns the area of a shape as polygons that do not overlap.
fn polygons_of(shape: &Shape) -> Vec<Rings> {
    let directed = |ring: &Ring, is_hole: bool| {
        let mut points = ring.points.clone();
        points.dedup();
        if (doubled_area(&points) < 0) != is_hole {
            points.reverse();
        }
        points
    };
    let polygons = shape.polygons.iter().map(|polygon| {
        let holes = polygon.holes.iter().map(|hole| directed(hole, true));
        let rings = std::iter::once(directed(&polygon.outer, false)).chain(holes);
        rings.collect::<Rings>()
    });
    let polygons: Vec<Rings> = polygons
        .filter(|rings| rings.first().is_some_and(|outer| doubled_area(outer) > 0))
        .collect();
    if !may_overlap(&polygons) {
        return polygons;
    }
    // The region with positive winding numbers is the union of the polygons: inside a hole, the windings of the hole
    // and of its outer ring cancel each other.
    polygons_with_winding_sign(polygons.iter().flatten(), false)
}

/// Whether the bounding boxes of any two polygons overlap, or any polygon has a hole.
fn may_overlap(polygons: &[Rings]) -> bool {
    let boxes = polygons
        .iter()
        .filter_map(|rings| Extent::of(rings.first()?));
    let mut boxes: Vec<Extent> = boxes.collect();
    boxes.sort_by_key(|extent| extent.low.lon_e7);
    let mut open: Vec<Extent> = Vec::new();
    for extent in boxes {
        open.retain(|other| other.high.lon_e7 > extent.low.lon_e7);
        let is_met = open.iter().any(|other| {
            other.low.lat_e7 < extent.high.lat_e7 && extent.low.lat_e7 < other.high.lat_e7
        });
        if is_met {
            return true;
        }
        open.push(extent);
    }
    polygons.iter().any(|rings| rings.len() > 1)
}

/// Returns the box around the nodes of a file. If the file has no nodes, returns the box around the locations that its
/// ways store.
fn box_of_data(data: PlannedFile<'_>) -> Result<Bbox> {
    let has_nodes = data
        .plan
        .entries
        .iter()
        .any(|entry| entry.kinds.contains(ObjectKind::Node));
    let kind = if has_nodes {
        ObjectKind::Node
    } else {
        ObjectKind::Way
    };
    let is_wanted = |entry: &BlobEntry| entry.kinds.contains(kind);
    let is_known = |entry: &BlobEntry| has_nodes && !entry.bbox.is_empty();
    let mut all = Bbox::EMPTY;
    for entry in data
        .plan
        .entries
        .iter()
        .filter(|entry| is_wanted(entry) && is_known(entry))
    {
        all = all.union(&entry.bbox);
    }
    data.scan("box of the data").run(
        |entry| is_wanted(entry) && !is_known(entry),
        |_, block| {
            let mut bbox = Bbox::EMPTY;
            let mut add = |location: Option<crate::osm::Location>| {
                if let Some(location) = location.filter(|location| location.is_on_earth()) {
                    bbox.add(location.lat_e7(), location.lon_e7());
                }
            };
            if has_nodes {
                block.for_each_location(|_, location| add(location))?;
            } else {
                block.for_each_wanted_way(
                    |_| true,
                    |_, _, stored| stored.into_iter().flatten().for_each(|one| add(*one)),
                )?;
            }
            Ok(bbox)
        },
        |bbox| all = all.union(&bbox),
    )?;
    Ok(all)
}

/// The maximum number of blobs from which roads and buildings are sampled. Roads and buildings show where land is.
const SAMPLED_BLOBS: usize = 64;
/// The maximum number of roads and buildings that are sampled in each blob.
const SAMPLED_WAYS: usize = 64;

/// The options and the data of a coast. They decide whether a ring of the border lies in land or in water if no
/// coastline meets the ring.
pub(super) struct Surroundings<'s> {
    pub options: &'s CoastOptions,
    pub data: PlannedFile<'s>,
}

impl Surroundings<'_> {
    /// Finds the rings of the border that no coastline meets, and adds those in land to `rings`. Returns the surface at
    /// the first outer ring that no coastline meets; `None` if coastlines meet all outer rings.
    pub(super) fn add_border(
        &self,
        rings: &mut Vec<CoastPath>,
        region: &CoastRegion,
        is_met: &[bool],
        shown: &ShownSurfaces,
    ) -> Result<Option<Surface>> {
        let (mut start, mut outers, mut holes) = (0, Vec::new(), Vec::new());
        for (polygon, contours) in region.polygons.iter().enumerate() {
            let met = is_met.get(start..start + contours.len());
            let met = met.unwrap_or_default();
            start += contours.len();
            if met.first() == Some(&false) {
                outers.push((polygon, met.contains(&true)));
            }
            let unmet = contours.iter().zip(met).skip(1);
            holes.extend(unmet.filter(|(_, is_met)| !**is_met).map(|(hole, _)| hole));
        }
        let surfaces = self.surfaces_at_outer_borders(region, &outers, shown)?;
        for ((polygon, _), surface) in outers.iter().zip(&surfaces) {
            if let Some(outer) = region.polygons[*polygon].first()
                && *surface == Surface::Land
            {
                rings.push(path_of(outer));
            }
        }
        let in_land = holes.into_iter().filter(|hole| is_in_land(hole, rings));
        let in_land: Vec<CoastPath> = in_land.map(|hole| path_of(hole)).collect();
        rings.extend(in_land);
        Ok(surfaces.first().copied())
    }

    /// Returns the surface at the outer border of each polygon in `outers`. An entry of `outers` is the index of a
    /// polygon, and whether coastlines meet one of its holes. If coastlines meet no hole and the option `inside` is
    /// set, the option decides. Otherwise, a polygon that lies within a ring of land is land. For any other polygon,
    /// the largest ring in it decides. A polygon without rings is land if it contains roads or buildings.
    fn surfaces_at_outer_borders(
        &self,
        region: &CoastRegion,
        outers: &[(usize, bool)],
        shown: &ShownSurfaces,
    ) -> Result<Vec<Surface>> {
        let polygons = outers.iter().map(|(polygon, _)| &region.polygons[*polygon]);
        let shapes: Vec<Shape> = polygons.map(|rings| shape_of(rings)).collect();
        let index = AreaIndex::new(&shapes);
        let mut largest = vec![0; outers.len()];
        for (point, area) in &shown.rings {
            for polygon in index.regions_of(*point) {
                let known: &mut i128 = &mut largest[polygon as usize];
                if area.abs() > known.abs() {
                    *known = *area;
                }
            }
        }
        let given = |has_met_holes: bool| self.options.inside.filter(|_| !has_met_holes);
        let by_rings = |polygon: usize, area: i128| match shown.is_in_land.get(polygon) {
            Some(true) => Some(Surface::Land),
            _ if area < 0 => Some(Surface::Land),
            _ if area > 0 => Some(Surface::Water),
            _ => None,
        };
        let known = outers
            .iter()
            .zip(&largest)
            .map(|((polygon, has_met_holes), area)| {
                given(*has_met_holes).or_else(|| by_rings(*polygon, *area))
            });
        let known: Vec<Option<Surface>> = known.collect();
        let mut with_samples = vec![false; outers.len()];
        if known.contains(&None) {
            for point in self.sample_points()? {
                for polygon in index.regions_of(point) {
                    with_samples[polygon as usize] = true;
                }
            }
        }
        let by_samples = |has_samples| {
            if has_samples {
                Surface::Land
            } else {
                Surface::Water
            }
        };
        let surfaces = known.into_iter().zip(with_samples);
        let surfaces =
            surfaces.map(|(known, has_samples)| known.unwrap_or(by_samples(has_samples)));
        Ok(surfaces.collect())
    }

    /// Returns points of some roads and buildings.
    fn sample_points(&self) -> Result<Vec<Point>> {
        let ways = self
            .data
            .plan
            .entries
            .iter()
            .filter(|entry| entry.kinds.contains(ObjectKind::Way));
        let offsets: Vec<u64> = ways.map(|entry| entry.offset).collect();
        let step = offsets.len().div_ceil(SAMPLED_BLOBS).max(1);
        let offsets: Vec<u64> = offsets.into_iter().step_by(step).collect();
        let (mut nodes, mut points) = (Vec::new(), Vec::new());
        self.data.scan("roads and buildings").with_strings().run(
            |entry| offsets.binary_search(&entry.offset).is_ok(),
            |_, block| {
                let mut found = Vec::new();
                block.try_for_each(|element| {
                    if let Element::Way(way) = element
                        && found.len() < SAMPLED_WAYS
                        && way
                            .tags()
                            .any(|(key, _)| matches!(key, "highway" | "building"))
                    {
                        let node = way.refs().next();
                        found.push((node, way.locations().next().flatten()));
                    }
                    Ok::<_, crate::error::FormatError>(())
                })?;
                Ok(found)
            },
            |found| {
                for (node, location) in found {
                    match location {
                        Some(location) => points.push(Point::from(location)),
                        None => nodes.extend(node),
                    }
                }
            },
        )?;
        let nodes = sort_and_dedup(nodes);
        if !nodes.is_empty() {
            let found = CoastNodes::read(self.data, nodes.clone())?;
            let mut locations = Vec::new();
            found.store.get_all(&nodes, &mut locations);
            points.extend(locations.into_iter().flatten().map(Point::from));
        }
        Ok(points)
    }
}

/// The maximum number of points of a hole that are tested to find out whether the hole is in land.
const HOLE_POINTS: usize = 9;

/// Whether a hole of the region is in land. No coastline crosses the border of the hole, but a coastline may touch the
/// border at a point with rounded coordinates. Therefore, the majority of several points decides.
fn is_in_land(hole: &[Point], rings: &[CoastPath]) -> bool {
    let step = hole.len().div_ceil(HOLE_POINTS).max(1);
    let points: Vec<Point> = hole.iter().copied().step_by(step).collect();
    let paths = || rings.iter().map(|path| path.points.as_slice());
    let in_land = points
        .iter()
        .filter(|point| winding_around(**point, paths()) > 0);
    2 * in_land.count() > points.len()
}

/// Returns a ring of the border as a path without ways.
fn path_of(ring: &[Point]) -> CoastPath {
    let mut path = CoastPath::default();
    path.extend(ring.iter().chain(ring.first()).copied(), None);
    path.is_closed = true;
    path
}

/// The evidence that closed rings of coastlines give about the surface at the border of a region.
#[derive(Default)]
pub(super) struct ShownSurfaces {
    /// For each polygon of the region, whether closed rings around it show that it is in land.
    is_in_land: Vec<bool>,
    /// A point of each ring in the region, and twice the signed area of the ring.
    rings: Vec<(Point, i128)>,
}

impl ShownSurfaces {
    /// Finds the polygons of a region that closed paths wind around.
    pub(super) fn of_paths(paths: &[BoundPath], region: &CoastRegion) -> Self {
        let mut windings = vec![0; region.polygons.len()];
        for path in paths
            .iter()
            .map(|bound| &bound.path)
            .filter(|path| path.is_closed)
        {
            let Some(extent) = Extent::of(&path.points) else {
                continue;
            };
            let holds = |point: &Point| {
                (extent.low.lon_e7..=extent.high.lon_e7).contains(&point.lon_e7)
                    && (extent.low.lat_e7..=extent.high.lat_e7).contains(&point.lat_e7)
            };
            for (rings, winding) in region.polygons.iter().zip(&mut windings) {
                let vertex = rings.first().and_then(|outer| outer.first());
                if let Some(vertex) = vertex.filter(|vertex| holds(vertex)) {
                    *winding += winding_around(*vertex, std::iter::once(path.points.as_slice()));
                }
            }
        }
        Self {
            is_in_land: windings.into_iter().map(|winding| winding > 0).collect(),
            rings: Vec::new(),
        }
    }

    /// Adds the rings in the region.
    pub(super) fn add_rings(&mut self, rings: &[CoastPath]) {
        let measured = rings
            .iter()
            .filter_map(|path| Some((*path.points.first()?, doubled_area(&path.points))));
        self.rings.extend(measured);
    }
}

fn shape_of(rings: &[Vec<Point>]) -> Shape {
    let ring = |points: &Vec<Point>| Ring::new(String::new(), points.clone());
    let polygons = rings.first().map(|outer| Polygon {
        outer: ring(outer),
        holes: rings.iter().skip(1).map(ring).collect(),
    });
    Shape {
        polygons: polygons.into_iter().collect(),
    }
}

/// Returns the polygons that the rings of a border form. For each ring, `owners` has the index of its polygon.
pub(super) fn polygons_of_border(border: Rings, owners: &[usize]) -> Vec<AreaPolygon> {
    let mut polygons: Vec<Rings> = Vec::new();
    for (ring, owner) in border.into_iter().zip(owners) {
        polygons.resize_with(polygons.len().max(owner + 1), Rings::new);
        polygons[*owner].push(ring);
    }
    polygons.into_iter().filter_map(polygon_of).collect()
}
