//! The types of geometries that users can select.

#[cfg(feature = "parquet")]
use super::Geometry;
use std::str::FromStr;

/// The types of geometries that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeometryTypes {
    /// Whether points are written.
    pub points: bool,
    /// Whether lines are written.
    pub lines: bool,
    /// Whether areas are written.
    pub areas: bool,
}

impl Default for GeometryTypes {
    fn default() -> Self {
        Self {
            points: true,
            lines: true,
            areas: true,
        }
    }
}

impl GeometryTypes {
    /// Whether geometries of the type of `geometry` are written.
    #[cfg(feature = "parquet")]
    pub(crate) const fn has(self, geometry: &Geometry<'_>) -> bool {
        match geometry {
            Geometry::Point(_) => self.points,
            Geometry::LineString(_) | Geometry::MultiLineString(_) => self.lines,
            Geometry::MultiPolygon(_) => self.areas,
        }
    }
}

impl FromStr for GeometryTypes {
    type Err = String;

    /// Parses the names `point`, `linestring` and `polygon`, separated by commas. Types that are not named are not
    /// written.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut types = Self {
            points: false,
            lines: false,
            areas: false,
        };
        for name in text.split(',') {
            match name {
                "point" => types.points = true,
                "linestring" => types.lines = true,
                "polygon" => types.areas = true,
                _ => return Err("expected point, linestring or polygon".into()),
            }
        }
        Ok(types)
    }
}
