//! Cuts geometries before they are written: at the antimeridian, and at the edges of a region.

use super::{Antimeridian, Options};
use crate::area::{AreaPolygon, polygon_of};
use crate::formats::features::Geometry;
use crate::geometry::{Clip, Extent, Point, Rings, line_at_antimeridian};

/// The cuts that the options of an export ask for.
pub(super) struct Cuts {
    pub at_antimeridian: bool,
    clip: Option<Clip>,
}

/// The geometry of a feature after it was cut.
pub(super) enum CutGeometry {
    /// No cut has changed the geometry.
    Whole,
    /// The whole geometry was cut off, so nothing is left.
    Nothing,
    Lines(Vec<Vec<Point>>),
    Polygons(Vec<AreaPolygon>),
}

impl CutGeometry {
    /// Returns the geometry after the cuts; `None` if nothing is left. `whole` is the geometry before the cuts.
    pub(super) fn of<'g>(&'g self, whole: Geometry<'g>) -> Option<Geometry<'g>> {
        match self {
            Self::Whole => Some(whole),
            Self::Nothing => None,
            Self::Lines(lines) => match lines.as_slice() {
                [line] => Some(Geometry::LineString(line)),
                lines => Some(Geometry::MultiLineString(lines)),
            },
            Self::Polygons(polygons) => Some(Geometry::MultiPolygon(polygons)),
        }
    }

    fn of_lines(lines: Vec<Vec<Point>>) -> Self {
        if lines.is_empty() {
            Self::Nothing
        } else {
            Self::Lines(lines)
        }
    }
}

impl Cuts {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            at_antimeridian: options.antimeridian == Antimeridian::Cut,
            clip: options.clip.as_ref().map(Clip::new),
        }
    }

    /// Cuts a geometry. `extent` is the box around it.
    pub(super) fn apply(&self, geometry: &Geometry<'_>, extent: &Extent) -> CutGeometry {
        let at_antimeridian = if self.at_antimeridian && extent.is_wide() {
            // The last argument cuts no polygon, because areas are already cut at the antimeridian when they are
            // assembled.
            cut(geometry, line_at_antimeridian, |_| None)
        } else {
            CutGeometry::Whole
        };
        let Some(clip) = &self.clip else {
            return at_antimeridian;
        };
        let Some(geometry) = at_antimeridian.of(*geometry) else {
            return CutGeometry::Nothing;
        };
        if let Geometry::Point(point) = geometry {
            return if clip.has(point) {
                CutGeometry::Whole
            } else {
                CutGeometry::Nothing
            };
        }
        match cut(
            &geometry,
            |line| clip.line(line),
            |polygon| clip.polygon(rings_of(polygon)),
        ) {
            CutGeometry::Whole => at_antimeridian,
            clipped => clipped,
        }
    }
}

fn rings_of(polygon: &AreaPolygon) -> impl Iterator<Item = &Vec<Point>> + Clone {
    std::iter::once(&polygon.outer).chain(&polygon.holes)
}

/// Cuts each line or polygon of a geometry. `line_parts` and `polygon_parts` return the parts of a line or a polygon,
/// or `None` if it stays whole.
fn cut(
    geometry: &Geometry<'_>,
    line_parts: impl Fn(&[Point]) -> Option<Vec<Vec<Point>>>,
    polygon_parts: impl Fn(&AreaPolygon) -> Option<Vec<Rings>>,
) -> CutGeometry {
    match geometry {
        Geometry::Point(_) => CutGeometry::Whole,
        Geometry::LineString(points) => {
            line_parts(points).map_or(CutGeometry::Whole, CutGeometry::of_lines)
        }
        Geometry::MultiLineString(lines) => {
            let parts: Vec<_> = lines.iter().map(|line| line_parts(line)).collect();
            if parts.iter().all(Option::is_none) {
                return CutGeometry::Whole;
            }
            let pairs = lines.iter().zip(parts);
            let parts = pairs.flat_map(|(line, parts)| parts.unwrap_or_else(|| vec![line.clone()]));
            CutGeometry::of_lines(parts.collect())
        }
        Geometry::MultiPolygon(polygons) => {
            let parts: Vec<_> = polygons.iter().map(&polygon_parts).collect();
            if parts.iter().all(Option::is_none) {
                return CutGeometry::Whole;
            }
            let mut cut = Vec::new();
            for (polygon, parts) in polygons.iter().zip(parts) {
                match parts {
                    None => cut.push(polygon.clone()),
                    Some(parts) => cut.extend(parts.into_iter().filter_map(polygon_of)),
                }
            }
            if cut.is_empty() {
                CutGeometry::Nothing
            } else {
                CutGeometry::Polygons(cut)
            }
        }
    }
}
