//! Regions on the command line.

use crate::cli::session::Session;
use crate::geometry::{Shape, parse_box};
use crate::region_file::read_shape_as;
use crate::runtime::Context;
use anyhow::{Error, Result};
use std::path::{Path, PathBuf};

/// A region that selects features or objects.
#[derive(Debug, clap::Args)]
pub struct RegionArgs {
    /// Keep only what shares a point with this box: min_lon,min_lat,max_lon,max_lat
    ///
    /// The geometry decides. A line that crosses the box without a node in it is kept, and so is an area around it.
    /// Lines and areas across the antimeridian are judged after a cut there.
    #[arg(
        short,
        long,
        value_name = "BOX",
        allow_hyphen_values = true,
        conflicts_with = "polygon"
    )]
    bbox: Option<String>,
    /// Keep only what shares a point with a polygon of this file: GeoJSON, .poly, or OSM
    #[arg(short, long, value_name = "FILE")]
    polygon: Option<PathBuf>,
}

impl RegionArgs {
    /// Returns the region; `None` if no option is given.
    pub fn region(&self, session: &Session, ctx: &Context) -> Result<Option<Shape>> {
        region(session, self.bbox.as_deref(), self.polygon.as_deref(), ctx)
    }
}

/// Returns the region that the option -b or -p gives; `None` if neither option is given. At most one of these options
/// may be given.
pub fn region(
    session: &Session,
    bbox: Option<&str>,
    polygon: Option<&Path>,
    ctx: &Context,
) -> Result<Option<Shape>> {
    match (bbox, polygon) {
        (Some(bbox), _) => {
            let region = parse_box(bbox, session.conventions.corners).map_err(Error::msg)?;
            region.warning.iter().for_each(|warning| ctx.warn(warning));
            Ok(Some(region.shape))
        }
        (None, Some(polygon)) => {
            // An error in the polygon file counts as wrong usage, with exit status 2. Therefore it is converted to an
            // error without the type `crate::Error`.
            let antimeridian = session.conventions.antimeridian;
            let shape = read_shape_as(polygon, None, antimeridian);
            let shape = shape.map_err(|error| Error::msg(error.to_string()))?;
            Ok(Some(shape))
        }
        (None, None) => Ok(None),
    }
}
