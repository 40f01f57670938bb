//! Regions on the command line.

use crate::ErrorKind;
use crate::cli::session::Session;
use crate::geometry::{Shape, parse_box};
use crate::region_file::{AreaOfFile, read_area, read_shape_as};
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
        conflicts_with_all = ["polygon", "area"]
    )]
    bbox: Option<String>,
    /// Keep only what shares a point with a polygon: a file (GeoJSON, .poly, OSM), or a relation of the input (r62422)
    #[arg(short, long, value_name = "REGION", conflicts_with = "area")]
    polygon: Option<PathBuf>,
    /// Keep only what shares a point with the boundary of this name in the input
    #[arg(long, value_name = "NAME")]
    area: Option<String>,
}

/// A region on the command line. At most one of the fields is `Some`.
#[derive(Debug, Clone, Copy, Default)]
pub struct GivenRegion<'a> {
    /// The edges of a box.
    pub bbox: Option<&'a str>,
    /// The path of a file, or the id of an area of the input.
    pub polygon: Option<&'a Path>,
    /// The name of a boundary of the input.
    pub area: Option<&'a str>,
}

impl RegionArgs {
    /// Whether one of the options is given.
    pub const fn is_given(&self) -> bool {
        self.bbox.is_some() || self.polygon.is_some() || self.area.is_some()
    }

    /// Returns the region that an option describes; `None` if no option is given. `input` is the file with the areas
    /// that an option may name.
    pub fn region(&self, session: &Session, input: &Path, ctx: &Context) -> Result<Option<Shape>> {
        let given = GivenRegion {
            bbox: self.bbox.as_deref(),
            polygon: self.polygon.as_deref(),
            area: self.area.as_deref(),
        };
        region(session, given, input, ctx)
    }
}

/// Returns the region that `given` describes; `None` if all of its fields are `None`. `input` is the file with the
/// areas that `given` may name.
pub fn region(
    session: &Session,
    given: GivenRegion<'_>,
    input: &Path,
    ctx: &Context,
) -> Result<Option<Shape>> {
    let antimeridian = session.conventions.antimeridian;
    if let Some(bbox) = given.bbox {
        let region = parse_box(bbox, session.conventions.corners).map_err(Error::msg)?;
        region.warning.iter().for_each(|warning| ctx.warn(warning));
        return Ok(Some(region.shape));
    }
    let named = given.area.map(|name| AreaOfFile::Name(name.to_owned()));
    let area = given.polygon.map_or(named, AreaOfFile::of_path);
    let shape = match (area, given.polygon) {
        (Some(area), _) => read_area(input, &area, antimeridian, ctx),
        (None, Some(polygon)) => read_shape_as(polygon, None, antimeridian),
        (None, None) => return Ok(None),
    };
    // An error in the region counts as wrong usage. The program exits with status 2, which stands for wrong usage, if
    // an error is not a `crate::Error`. So the error is converted to a plain message.
    shape.map(Some).map_err(|error| match error.kind() {
        ErrorKind::Cancelled => error.into(),
        _ => Error::msg(error.to_string()),
    })
}
