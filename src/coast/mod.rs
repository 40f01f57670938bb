//! The coast of a file: ways with `natural=coastline`, joined to rings, and the polygons of the land on their left.
//!
//! The steps:
//!
//! 1. The ways are read, then the nodes that they need (`ways`).
//! 2. A way that ends at a node is joined to the way that begins there (`joining`). The joined ways are paths. Gaps
//!    between the ends of paths are closed, the shortest first (`gaps`).
//! 3. Paths are cut at the antimeridian and at the border of the region (`clipping`), and joined along the border
//!    (`closing`). The border of the world is the antimeridian and the poles, so Antarctica is no special case. All
//!    decisions about the border are exact (`border`).
//! 4. If no coastline meets the border, other evidence in the file decides whether the border lies on land or in water
//!    (`region`).
//! 5. Rings that touch or cross each other are repaired as a group (`contacts`). For each ring, a sweep finds the ring
//!    directly south of it. This neighbour shows whether the ring lies in land or in water (`land`).

mod border;
mod box_part;
mod clipping;
mod closing;
mod contacts;
mod doubled;
mod gaps;
mod grid;
mod joining;
mod land;
mod nearest;
mod path;
mod polygons;
mod problem;
mod ratio;
mod region;
mod ways;

use crate::area::AreaPolygon;
use crate::engine::input;
use crate::error::Result;
use crate::file::PlannedFile;
use crate::geometry::{Point, Shape};
use crate::runtime::Context;
pub(crate) use box_part::BoxPart;
use clipping::{CoastPiece, clip, cut_at_antimeridian};
use closing::{ClosedCoast, close_along_border, remove_world_rings};
use gaps::{GapRules, close_gaps};
pub(crate) use grid::{Grid, GridCells};
use joining::join;
use land::{LandPolygons, land_of};
use path::CoastPath;
use problem::sort_problems;
pub use problem::{CoastProblem, CoastProblemKind, ProblemPlace};
use region::{CoastRegion, ShownSurfaces, Surroundings, polygons_of_border};
use serde::Serialize;
use std::path::PathBuf;
use ways::CoastWays;

/// The default of the maximum length of a gap that is closed, in metres.
pub const CLOSE_DISTANCE_M: f64 = 1000.0;

/// The surface of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Surface {
    /// Land.
    Land,
    /// Water.
    Water,
}

/// The options for reading a coast.
#[derive(Debug, Clone)]
pub struct CoastOptions {
    /// The input file; `-` is standard input.
    pub input: PathBuf,
    /// The maximum length of a gap that is closed, in metres; 0 closes none.
    pub close_distance_m: f64,
    /// The region whose coastlines the file contains. `None` stands for the box in the header or, without one, for the
    /// box of the data. A box that spans nearly all longitudes stands for the whole world.
    pub region: Option<Shape>,
    /// The surface of each part of the region whose border no coastline meets. With `None`, the data of the file
    /// decides.
    pub inside: Option<Surface>,
}

impl CoastOptions {
    /// Creates options with defaults: gaps of up to [`CLOSE_DISTANCE_M`] are closed, and the file determines the
    /// region.
    pub fn new(input: impl Into<PathBuf>) -> Self {
        Self {
            input: input.into(),
            close_distance_m: CLOSE_DISTANCE_M,
            region: None,
            inside: None,
        }
    }
}

/// A line of the coast: consecutive ways, with land on the left.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoastLine {
    /// The points, two or more. A closed line repeats its first point at the end. A line across the antimeridian is cut
    /// there.
    pub points: Vec<Point>,
    /// The ids of the ways, in the order of the line.
    pub ways: Vec<i64>,
}

/// The source of the region of a coast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RegionSource {
    /// The whole world.
    World,
    /// The region that the options give.
    Given,
    /// The box in the header of the file.
    Header,
    /// The box of the nodes of the file.
    Data,
}

/// The coast of a file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Coast {
    /// The lines, in the order of their smallest way ids. Lines that close gaps and lines along the border of the
    /// region are left out.
    pub lines: Vec<CoastLine>,
    /// The land within the region: valid polygons whose insides are disjoint, cut at the antimeridian, in the order of
    /// their westernmost corners.
    pub land: Vec<AreaPolygon>,
    /// For each polygon of land, whether its outer ring went clockwise and was turned around.
    pub is_turned: Vec<bool>,
    /// The problems, in the order of their kinds and ids.
    pub problems: Vec<CoastProblem>,
    /// The region within which the coast is known: valid polygons whose insides are disjoint. The whole world is one
    /// rectangle.
    pub region: Vec<AreaPolygon>,
    /// The source of the region.
    pub source: RegionSource,
    /// The number of closed rings that coastlines form, alone or together with parts of the border. Rings of the border
    /// that no coastline meets do not count.
    pub rings: u64,
    /// The surface that was assumed at the first outer border that no coastline meets. `None` if coastlines meet all
    /// outer borders, or if the region is the whole world.
    pub inside: Option<Surface>,
}

/// Reads the coast of a file.
///
/// # Memory
///
/// About 50 bytes for each node of a coastline.
///
/// # Errors
///
/// The file cannot be read, is damaged, or is a history file. The region has no inside.
pub fn read_coast(options: &CoastOptions, ctx: &Context) -> Result<Coast> {
    let file = input::open(&options.input, ctx)?;
    let mut problems = Vec::new();
    let (ways, plan) = CoastWays::read(&file, ctx, &mut problems)?;
    let data = PlannedFile::new(&file, &plan, ctx);
    let region = CoastRegion::of(options, data)?;
    let paths = join(&ways, &mut problems);
    drop(ways);
    let surroundings = Surroundings { options, data };
    coast_of(paths, &region, &surroundings, problems)
}

/// Returns the coast that paths form.
fn coast_of(
    paths: Vec<CoastPath>,
    region: &CoastRegion,
    surroundings: &Surroundings<'_>,
    mut problems: Vec<CoastProblem>,
) -> Result<Coast> {
    let ctx = surroundings.data.ctx;
    let (border, owners) = region.border();
    let rules = GapRules {
        close_distance_m: surroundings.options.close_distance_m,
        border: &border,
        is_extract: region.source != RegionSource::World,
    };
    ctx.cancellation.check()?;
    let paths = close_gaps(paths, &rules, &mut problems);
    ctx.cancellation.check()?;
    let mut shown = ShownSurfaces::of_paths(&paths, region);
    let parts = paths
        .into_iter()
        .flat_map(|path| cut_at_antimeridian(path, &border));
    let pieces = parts.flat_map(|path| clip(path, &border));
    let pieces: Vec<CoastPiece> = pieces.collect();
    let lines = lines_of(&pieces);
    let ClosedCoast {
        mut rings,
        border: border_rings,
        is_met,
    } = close_along_border(pieces, &border, &mut problems);
    shown.add_rings(&rings);
    let count = rings.len() as u64;
    let inside = match region.source {
        RegionSource::World => {
            remove_world_rings(&mut rings, &mut problems);
            None
        }
        _ => surroundings.add_border(&mut rings, region, &is_met, &shown)?,
    };
    let LandPolygons {
        polygons,
        is_turned,
    } = land_of(rings, &mut problems, ctx)?;
    Ok(Coast {
        lines,
        land: polygons,
        is_turned,
        problems: sort_problems(problems),
        region: polygons_of_border(border_rings, &owners),
        source: region.source,
        rings: count,
        inside,
    })
}

/// Returns the lines of pieces, without the segments that close gaps.
fn lines_of(pieces: &[CoastPiece]) -> Vec<CoastLine> {
    let mut lines = Vec::with_capacity(pieces.len());
    for CoastPiece { path, .. } in pieces {
        for part in path.parts_of_ways() {
            let ways = part.ways();
            lines.push(CoastLine {
                points: part.points,
                ways,
            });
        }
    }
    let first = |line: &CoastLine| line.points.first().copied();
    lines.sort_by(|one, other| {
        let by_way = one.ways.iter().min().cmp(&other.ways.iter().min());
        by_way.then_with(|| first(one).cmp(&first(other)))
    });
    lines
}
