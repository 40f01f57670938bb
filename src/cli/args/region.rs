//! Regions on the command line.

use crate::cli::conventions::Conventions;
use crate::geometry::{Shape, parse_box};
use crate::region_file::read_shape;
use crate::runtime::Context;
use anyhow::{Error, Result};
use std::path::Path;

/// Returns the region that the option -b or -p gives; `None` if neither option is given. At most one of these options
/// may be given.
pub fn region(bbox: Option<&str>, polygon: Option<&Path>, ctx: &Context) -> Result<Option<Shape>> {
    match (bbox, polygon) {
        (Some(bbox), _) => {
            let region = parse_box(bbox, Conventions::current().corners).map_err(Error::msg)?;
            region.warning.iter().for_each(|warning| ctx.warn(warning));
            Ok(Some(region.shape))
        }
        (None, Some(polygon)) => {
            // An error in the polygon file counts as wrong usage, with exit status 2. Therefore it is converted to an
            // error without the type `crate::Error`.
            let shape = read_shape(polygon, None);
            let shape = shape.map_err(|error| Error::msg(error.to_string()))?;
            Ok(Some(shape))
        }
        (None, None) => Ok(None),
    }
}
