//! Cuts the geometries of features at the antimeridian and at the edges of a region, and selects the features that
//! share a point with a region.

use super::FeatureRules;
use crate::area::{AreaPolygon, cut_polygons_at_antimeridian, polygon_of};
use crate::formats::features::Geometry;
use crate::geometry::{Antimeridian, Clip, Extent, Point, Region, Rings, cut_line_at_antimeridian};

/// The cuts that the rules of an export ask for, and the region that selects features.
pub(super) struct Cuts {
    antimeridian: Antimeridian,
    region: Option<Region>,
    clip: Option<Clip>,
}

/// The geometry of a feature after it was cut.
pub(super) enum CutGeometry {
    /// No cut has changed the geometry.
    Whole,
    /// No part of the geometry is in the region.
    Outside,
    /// The geometry has no length on the map: all its points are at one location on the antimeridian.
    Empty,
    Lines(Vec<Vec<Point>>),
    Polygons(Vec<AreaPolygon>),
}

impl CutGeometry {
    /// Returns the geometry after the cuts; `None` if nothing is left. `whole` is the geometry before the cuts.
    pub(super) fn remainder_of<'g>(&'g self, whole: Geometry<'g>) -> Option<Geometry<'g>> {
        match self {
            Self::Whole => Some(whole),
            Self::Outside | Self::Empty => None,
            Self::Lines(lines) => match lines.as_slice() {
                [line] => Some(Geometry::LineString(line)),
                lines => Some(Geometry::MultiLineString(lines)),
            },
            Self::Polygons(polygons) => Some(Geometry::MultiPolygon(polygons)),
        }
    }
}

impl Cuts {
    pub(super) fn new(rules: &FeatureRules) -> Self {
        Self {
            antimeridian: rules.antimeridian,
            region: rules.region.as_ref().map(Region::new),
            clip: rules.clip.as_ref().map(Clip::new),
        }
    }

    /// Whether geometries are cut at the antimeridian. Areas are then cut when they are assembled, and not here.
    fn cuts_at_antimeridian(&self) -> bool {
        self.antimeridian == Antimeridian::Cut
    }

    /// Selects and cuts a geometry. `extent` is the box around the geometry. Before a geometry is compared with a
    /// region, it is cut at the antimeridian, even if it is then written without this cut. A geometry that is cut at
    /// the edges of a region is also cut at the antimeridian.
    pub(super) fn apply(&self, geometry: &Geometry<'_>, extent: &Extent) -> CutGeometry {
        let on_map = self.cut_for_map(geometry, extent);
        let Some(judged) = on_map.remainder_of(*geometry) else {
            return on_map;
        };
        if let Some(region) = &self.region
            && !region_meets(region, &judged)
        {
            return CutGeometry::Outside;
        }
        let Some(clip) = &self.clip else {
            return if self.cuts_at_antimeridian() {
                on_map
            } else {
                CutGeometry::Whole
            };
        };
        match clip_geometry(clip, &judged) {
            CutGeometry::Whole => on_map,
            clipped => clipped,
        }
    }

    /// Cuts a geometry at the antimeridian if the output needs this cut, or if there is a region to compare the
    /// geometry with.
    fn cut_for_map(&self, geometry: &Geometry<'_>, extent: &Extent) -> CutGeometry {
        let is_judged = self.region.is_some() || self.clip.is_some();
        if !extent.spans_over_180_degrees() || !(self.cuts_at_antimeridian() || is_judged) {
            return CutGeometry::Whole;
        }
        let on_map = match geometry {
            Geometry::MultiPolygon(_) if self.cuts_at_antimeridian() => CutGeometry::Whole,
            Geometry::MultiPolygon(polygons) => cut_polygons_at_antimeridian(polygons)
                .map_or(CutGeometry::Whole, CutGeometry::Polygons),
            lines => cut(lines, cut_line_at_antimeridian, |_| None),
        };
        match on_map {
            CutGeometry::Outside if self.cuts_at_antimeridian() => CutGeometry::Empty,
            // All points are at one location on the antimeridian. The geometry is written nevertheless, and its points
            // are compared with the region.
            CutGeometry::Outside => CutGeometry::Whole,
            on_map => on_map,
        }
    }
}

/// Whether a region shares a point with a geometry.
fn region_meets(region: &Region, geometry: &Geometry<'_>) -> bool {
    match geometry {
        Geometry::Point(point) => region.contains(*point),
        Geometry::LineString(points) => region.meets_line(points),
        Geometry::MultiLineString(lines) => lines.iter().any(|line| region.meets_line(line)),
        Geometry::MultiPolygon(polygons) => polygons
            .iter()
            .any(|polygon| region.meets_polygon(&polygon.outer, &polygon.holes)),
    }
}

/// Cuts a geometry at the edges of a region.
fn clip_geometry(clip: &Clip, geometry: &Geometry<'_>) -> CutGeometry {
    match geometry {
        Geometry::Point(point) if clip.has(*point) => CutGeometry::Whole,
        Geometry::Point(_) => CutGeometry::Outside,
        geometry => cut(
            geometry,
            |line| clip.parts_of_line(line),
            |polygon| clip.parts_of_polygon(polygon.rings()),
        ),
    }
}

/// Cuts each line or polygon of a geometry. `line_parts` and `polygon_parts` return the parts of a line or a polygon,
/// or `None` if it stays whole. If no parts are left, the geometry is [`CutGeometry::Outside`].
fn cut(
    geometry: &Geometry<'_>,
    line_parts: impl Fn(&[Point]) -> Option<Vec<Vec<Point>>>,
    polygon_parts: impl Fn(&AreaPolygon) -> Option<Vec<Rings>>,
) -> CutGeometry {
    match geometry {
        Geometry::Point(_) => CutGeometry::Whole,
        Geometry::LineString(points) => {
            line_parts(points).map_or(CutGeometry::Whole, lines_or_outside)
        }
        Geometry::MultiLineString(lines) => {
            let parts: Vec<_> = lines.iter().map(|line| line_parts(line)).collect();
            if parts.iter().all(Option::is_none) {
                return CutGeometry::Whole;
            }
            let pairs = lines.iter().zip(parts);
            let parts = pairs.flat_map(|(line, parts)| parts.unwrap_or_else(|| vec![line.clone()]));
            lines_or_outside(parts.collect())
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
                CutGeometry::Outside
            } else {
                CutGeometry::Polygons(cut)
            }
        }
    }
}

fn lines_or_outside(lines: Vec<Vec<Point>>) -> CutGeometry {
    if lines.is_empty() {
        CutGeometry::Outside
    } else {
        CutGeometry::Lines(lines)
    }
}
