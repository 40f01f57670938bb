//! An index of the administrative boundaries of a file. It finds the country of a feature, and the boundaries around an
//! area.

use crate::area::AreaPolygon;
use crate::geometry::{AreaIndex, Point, Polygon, Ring, Shape};

/// The admin level of countries.
pub(crate) const COUNTRY_LEVEL: u8 = 2;
/// The largest value of `admin_level` that is used, which is the level of the smallest areas.
pub(crate) const LOWEST_LEVEL: u8 = 11;

/// The area of an administrative boundary.
#[derive(Debug)]
pub(crate) struct AdminArea {
    /// The id of the boundary relation.
    pub id: i64,
    /// The value of the tag `admin_level`.
    pub level: u8,
    /// The ISO 3166-1 alpha-2 code; `None` for a country without a code, and for areas that are not countries.
    pub country: Option<String>,
    pub polygons: Vec<AreaPolygon>,
}

/// Administrative areas that can be found by a point in them.
#[derive(Debug)]
pub(crate) struct AdminAreas {
    /// The areas without their polygons, countries first.
    areas: Vec<AdminArea>,
    index: AreaIndex,
}

impl AdminAreas {
    pub(crate) fn new(mut areas: Vec<AdminArea>) -> Self {
        areas.sort_unstable_by_key(|area| (area.level, area.id));
        let shapes: Vec<Shape> = areas.iter_mut().map(take_shape).collect();
        Self {
            index: AreaIndex::new(&shapes),
            areas,
        }
    }

    /// Returns the areas that contain a point, countries first.
    fn areas_around(&self, point: Point) -> impl Iterator<Item = &AdminArea> {
        let numbers = self.index.regions_of(point);
        numbers
            .into_iter()
            .map(|number| &self.areas[number as usize])
    }

    /// Returns the code of the country that contains a point.
    pub(super) fn country_at(&self, point: Point) -> Option<&str> {
        let mut countries = self
            .areas_around(point)
            .filter_map(|area| area.country.as_deref());
        countries.next()
    }

    /// Returns the ids of the areas that contain a point, countries first. Omits the area of the relation `id`. If
    /// `level` is given, returns only areas whose admin level is lower than `level`.
    pub(super) fn parents_at(&self, point: Point, id: Option<i64>, level: Option<u8>) -> Vec<i64> {
        let above =
            |area: &&AdminArea| Some(area.id) != id && level.is_none_or(|level| area.level < level);
        self.areas_around(point)
            .filter(above)
            .map(|area| area.id)
            .collect()
    }
}

/// Removes the polygons of an area, and returns them as a shape.
fn take_shape(area: &mut AdminArea) -> Shape {
    let ring = |points| Ring::new(String::new(), points);
    let polygons = std::mem::take(&mut area.polygons).into_iter();
    let polygons = polygons.map(|polygon| Polygon {
        outer: ring(polygon.outer),
        holes: polygon.holes.into_iter().map(ring).collect(),
    });
    Shape {
        polygons: polygons.collect(),
    }
}
