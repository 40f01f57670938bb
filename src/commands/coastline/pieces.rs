//! The pieces into which a coast is divided for encoding.

use super::CoastLayer;
use super::layers::{EncodedRows, LayerSpec};
use crate::area::AreaPolygon;
use crate::coast::{BoxPart, Coast, CoastLine, CoastProblem, Grid, GridCells, ProblemPlace};
use crate::error::Result;
use crate::formats::features::{CoastRow, OwnedGeometry};
use crate::geometry::{Extent, Projection};
use crate::runtime::WorkItem;

/// The maximum number of lines, polygons or problems of a piece.
const ITEMS: usize = 256;
/// The size of the cells in which water is computed if polygons are not divided, in 1e-7 degree. Wide regions have
/// smaller cells ([`QUARTER_E7`]). The subtraction of polygons is exact only in boxes of less than 214 degrees.
const WHOLE_E7: u32 = 3_600_000_000;
const QUARTER_E7: u32 = 900_000_000;

/// The key of rows that several files share: the layer, whether polygons are divided into cells, and the box that the
/// map of the projection shows.
type RowsKey = (CoastLayer, bool, Option<Extent>);

/// A part of a coast.
pub(super) enum LayerPiece<'c> {
    Lines(&'c [CoastLine]),
    Problems(&'c [CoastProblem]),
    /// Whole polygons of land.
    Land(&'c [AreaPolygon]),
    Cell(Box<CoastCell>),
}

/// A part of a coast in a cell.
pub(super) struct CoastCell {
    /// The number of the cell; `None` if polygons are not divided.
    number: Option<[i32; 2]>,
    land: BoxPart,
    /// The part of the region in the cell; `None` if the region is a box.
    region: Option<BoxPart>,
}

impl WorkItem for LayerPiece<'_> {
    fn input_bytes(&self) -> u64 {
        let points: usize = match self {
            Self::Lines(lines) => lines.iter().map(|line| line.points.len()).sum(),
            Self::Problems(problems) => problems.len(),
            Self::Land(land) => land.iter().flat_map(AreaPolygon::rings).map(Vec::len).sum(),
            Self::Cell(cell) => cell.land.point_count(),
        };
        8 * points as u64
    }
}

/// Returns the pieces of a coast that the files need. `grid` is the grid by which polygons are divided.
pub(super) fn pieces<'c>(
    coast: &'c Coast,
    grid: Grid,
    specs: &[LayerSpec],
) -> impl Iterator<Item = LayerPiece<'c>> + Send {
    let needs = |layer, is_split| {
        specs
            .iter()
            .any(|spec| spec.layer == layer && spec.is_split == is_split)
    };
    let lines = coast.lines.chunks(ITEMS).map(LayerPiece::Lines);
    let problems = coast.problems.chunks(ITEMS).map(LayerPiece::Problems);
    let land = coast.land.chunks(ITEMS).map(LayerPiece::Land);
    let is_wide = Extent::of(coast.region.iter().flat_map(|polygon| &polygon.outer))
        .is_some_and(|extent| extent.spans_over_180_degrees());
    let whole = Grid {
        cell_e7: if is_wide { QUARTER_E7 } else { WHOLE_E7 },
        overlap_e7: 0,
    };
    let water = needs(CoastLayer::Water, false).then(|| cell_pieces(coast, whole, false));
    let is_split = needs(CoastLayer::Land, true) || needs(CoastLayer::Water, true);
    let split = is_split.then(|| cell_pieces(coast, grid, true));
    lines
        .chain(problems)
        .chain(land)
        .chain(water.into_iter().flatten())
        .chain(split.into_iter().flatten())
}

/// Returns the region if it is a box.
fn region_as_box(coast: &Coast) -> Option<Extent> {
    let [polygon] = &coast.region[..] else {
        return None;
    };
    let extent = Extent::of(&polygon.outer)?;
    let is_corner = |point: &crate::geometry::Point| {
        (point.lon_e7 == extent.low.lon_e7 || point.lon_e7 == extent.high.lon_e7)
            && (point.lat_e7 == extent.low.lat_e7 || point.lat_e7 == extent.high.lat_e7)
    };
    let is_box =
        polygon.holes.is_empty() && polygon.outer.len() == 4 && polygon.outer.iter().all(is_corner);
    is_box.then_some(extent)
}

/// Returns the cells of a grid that share points with the region.
fn cell_pieces<'c>(
    coast: &'c Coast,
    grid: Grid,
    is_split: bool,
) -> impl Iterator<Item = LayerPiece<'c>> + Send {
    let bounds = Extent::of(coast.region.iter().flat_map(|polygon| &polygon.outer));
    let land = bounds.map(|bounds| grid.cells(bounds, &coast.land));
    let mut region: Option<GridCells> = match (bounds, region_as_box(coast)) {
        (Some(bounds), None) => Some(grid.cells(bounds, &coast.region)),
        _ => None,
    };
    let cells = land.into_iter().flatten().filter_map(move |cell| {
        // The iterators over the land and over the region return the same cells in the same order.
        let region = region
            .as_mut()
            .and_then(Iterator::next)
            .map(|cell| cell.part);
        let number = is_split.then_some(cell.number);
        let is_outside = region.as_ref().is_some_and(BoxPart::is_empty);
        let land = cell.part;
        (!is_outside).then_some(CoastCell {
            number,
            land,
            region,
        })
    });
    cells.map(|cell| LayerPiece::Cell(Box::new(cell)))
}

impl LayerPiece<'_> {
    /// Encodes the rows of the piece for each file. Returns the index of each file, the number of rows, and the encoded
    /// rows.
    pub(super) fn encode(&self, specs: &[LayerSpec]) -> Result<Vec<(usize, u64, EncodedRows)>> {
        let mut encoded = Vec::new();
        // Files of one layer have the same rows in all projections whose maps show the same part of the piece.
        let mut made: Vec<(RowsKey, Vec<CoastRow>)> = Vec::new();
        for (index, spec) in specs.iter().enumerate() {
            let key = (
                spec.layer,
                spec.is_split,
                self.shown_extent(spec.projection),
            );
            let known = made.iter().position(|(known, _)| *known == key);
            let at = known.unwrap_or(made.len());
            if at == made.len() {
                made.push((key, self.rows_for_file(spec)));
            }
            let (_, rows) = &made[at];
            if !rows.is_empty() {
                encoded.push((index, rows.len() as u64, spec.encode(rows)?));
            }
        }
        Ok(encoded)
    }

    /// Returns the part of the piece's bounding box that the map of a projection shows; `None` if the map shows no part
    /// of the box. Also returns `None` for lines and problems, which are not cut at the edges of maps.
    fn shown_extent(&self, projection: Projection) -> Option<Extent> {
        let extent = match self {
            Self::Lines(_) | Self::Problems(_) => None,
            Self::Land(land) => Extent::of(land.iter().flat_map(|polygon| &polygon.outer)),
            Self::Cell(cell) => Some(cell.land.bounds),
        };
        extent.and_then(|extent| intersection(&extent, &projection.bounds()))
    }

    /// Returns the rows of the piece for a file; an empty list if the file does not contain pieces of this kind.
    fn rows_for_file(&self, spec: &LayerSpec) -> Vec<CoastRow> {
        match (self, spec.layer, spec.is_split) {
            (Self::Lines(lines), CoastLayer::Lines, _) => lines.iter().map(line_row).collect(),
            (Self::Problems(problems), CoastLayer::Errors, _) => {
                problems.iter().filter_map(problem_row).collect()
            }
            (Self::Land(land), CoastLayer::Land, false) => {
                let polygons = land
                    .iter()
                    .flat_map(|polygon| clip_to_projection_bounds(polygon, spec.projection));
                polygons.map(|polygon| polygon_row(polygon, None)).collect()
            }
            (Self::Cell(cell), layer @ (CoastLayer::Land | CoastLayer::Water), is_split)
                if cell.number.is_some() == is_split
                    && (is_split || layer == CoastLayer::Water) =>
            {
                let polygons = cell.polygons(layer, spec.projection).into_iter();
                polygons
                    .map(|polygon| polygon_row(polygon, cell.number))
                    .collect()
            }
            _ => Vec::new(),
        }
    }
}

impl CoastCell {
    /// Returns the polygons of land or water on the map of a projection.
    fn polygons(&self, layer: CoastLayer, projection: Projection) -> Vec<AreaPolygon> {
        let Some(bounds) = intersection(&self.land.bounds, &projection.bounds()) else {
            return Vec::new();
        };
        let cut = (bounds != self.land.bounds).then(|| {
            let region = self.region.clone();
            let region = region.map(|region| region.cut_to_box(bounds));
            (self.land.clone().cut_to_box(bounds), region)
        });
        let (land, region) = match &cut {
            Some((land, region)) => (land, region.as_ref()),
            None => (&self.land, self.region.as_ref()),
        };
        match (layer, region) {
            (CoastLayer::Water, Some(region)) => region.difference_polygons(land),
            (CoastLayer::Water, None) => land.outside_polygons(),
            _ => land.polygons(),
        }
    }
}

/// Returns the part of a polygon that the map of a projection shows.
fn clip_to_projection_bounds(polygon: &AreaPolygon, projection: Projection) -> Vec<AreaPolygon> {
    let Some(extent) = Extent::of(&polygon.outer) else {
        return Vec::new();
    };
    match intersection(&extent, &projection.bounds()) {
        None => Vec::new(),
        Some(bounds) if bounds == extent => vec![polygon.clone()],
        Some(bounds) => BoxPart::new(extent, [polygon])
            .cut_to_box(bounds)
            .polygons(),
    }
}

/// Returns the box that two boxes have in common, if it has an area.
fn intersection(one: &Extent, other: &Extent) -> Option<Extent> {
    let mut both = *one;
    both.low.lon_e7 = both.low.lon_e7.max(other.low.lon_e7);
    both.low.lat_e7 = both.low.lat_e7.max(other.low.lat_e7);
    both.high.lon_e7 = both.high.lon_e7.min(other.high.lon_e7);
    both.high.lat_e7 = both.high.lat_e7.min(other.high.lat_e7);
    let has_area = both.low.lon_e7 < both.high.lon_e7 && both.low.lat_e7 < both.high.lat_e7;
    has_area.then_some(both)
}

const fn new_row(geometry: OwnedGeometry) -> CoastRow {
    CoastRow {
        cell: None,
        ways: String::new(),
        problem: None,
        geometry,
    }
}

fn polygon_row(polygon: AreaPolygon, cell: Option<[i32; 2]>) -> CoastRow {
    CoastRow {
        cell,
        ..new_row(OwnedGeometry::MultiPolygon(vec![polygon]))
    }
}

fn line_row(line: &CoastLine) -> CoastRow {
    CoastRow {
        ways: comma_separated(&line.ways),
        ..new_row(OwnedGeometry::LineString(line.points.clone()))
    }
}

/// Returns the row of a problem; `None` if its location is not known.
fn problem_row(problem: &CoastProblem) -> Option<CoastRow> {
    let geometry = match &problem.place {
        ProblemPlace::Point(point) => OwnedGeometry::Point(*point),
        ProblemPlace::Line(points) => OwnedGeometry::LineString(points.clone()),
        ProblemPlace::Unknown => return None,
    };
    Some(CoastRow {
        ways: comma_separated(&problem.ways),
        problem: Some((problem.kind.name(), problem.node, problem.to_string())),
        ..new_row(geometry)
    })
}

fn comma_separated(ids: &[i64]) -> String {
    let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
    ids.join(",")
}
