//! `index.html`, a page with the regions of a directory on a map.

use super::FollowedRegion;
use super::index::RegionIndex;
use crate::commands::pages;
use crate::error::Result;
use crate::geometry::{Point, Ring, Shape};
use crate::io::OutputTarget;
use crate::runtime::Context;
use serde::Serialize;
use std::path::Path;

const PAGE: &str = include_str!("page.html");

/// The data of the page.
#[derive(Serialize)]
struct RegionsPage<'i> {
    index: &'i RegionIndex,
    /// The rings of each region of the index, as pairs of longitude and latitude in degrees.
    outlines: Vec<Vec<Vec<[f64; 2]>>>,
    program: &'static str,
}

/// Writes the page.
pub(super) fn write(
    index: &RegionIndex,
    regions: &[FollowedRegion],
    directory: &Path,
    ctx: &Context,
) -> Result<()> {
    let shape_of = |name: &str| regions.iter().find(|region| region.name == name);
    let outlines = index.regions.iter().map(|record| {
        let region = shape_of(&record.name);
        region.map_or_else(Vec::new, |region| outline(&region.shape))
    });
    let data = RegionsPage {
        index,
        outlines: outlines.collect(),
        program: pages::PROGRAM,
    };
    let target = OutputTarget::File {
        path: directory.join("index.html"),
        overwrite: true,
    };
    pages::write(PAGE, &data, target, ctx)
}

/// Returns the rings of a shape without the points that are too near to the previous point to be told apart.
fn outline(shape: &Shape) -> Vec<Vec<[f64; 2]>> {
    /// The number of points that can be told apart along an edge of the box around the shape.
    const POINTS: f64 = 400.0;
    let [west, south, east, north] = shape.envelope().edges_e7().into_array().map(f64::from);
    let step = (east - west).max(north - south) / 1e7 / POINTS;
    let degrees = |point: &Point| [point.lon(), point.lat()];
    let rounded = |[lon, lat]: [f64; 2]| [lon, lat].map(|edge| (edge * 1e5).round() / 1e5);
    let thinned = |ring: &Ring| {
        let mut kept: Vec<[f64; 2]> = Vec::new();
        for [lon, lat] in ring.points.iter().map(degrees) {
            let is_near =
                |last: &&[f64; 2]| (last[0] - lon).abs() < step && (last[1] - lat).abs() < step;
            if kept.last().as_ref().is_none_or(|last| !is_near(last)) {
                kept.push([lon, lat]);
            }
        }
        kept.into_iter().map(rounded).collect::<Vec<_>>()
    };
    let rings = shape.rings().map(|(ring, _)| thinned(ring));
    rings.filter(|ring| ring.len() > 2).collect()
}
