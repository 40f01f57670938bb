//! Collects the areas of administrative boundaries in a file, for columns such as `country`.

use super::output::RelationCollector;
use crate::area::WayStore;
use crate::engine::geometry_pass::is_area;
use crate::engine::object_geometry::GeometryMaker;
use crate::error::{FormatError, FormatResult};
use crate::formats::parquet::{AdminArea, AdminAreas, COUNTRY_LEVEL};
use crate::osm::UniqueTags;
use crate::pbf::{Block, Element, Relation};
use crate::runtime::lock;
use std::sync::Mutex;

/// The areas of administrative boundaries that all workers have found.
pub(super) struct Boundaries {
    /// The highest `admin_level` that is collected, which is the level of the smallest areas.
    lowest: u8,
    found: Mutex<Vec<AdminArea>>,
}

impl Boundaries {
    pub(super) fn new(lowest: u8) -> Self {
        Self {
            lowest,
            found: Mutex::default(),
        }
    }

    /// Returns the admin level of a relation, if its area is collected; `None` otherwise.
    fn admin_level_of(&self, relation: &Relation<'_>) -> Option<u8> {
        let (mut is_administrative, mut level) = (false, None);
        for (key, value) in UniqueTags::new(relation.tags()) {
            match key {
                "boundary" => is_administrative = value == "administrative",
                "admin_level" => level = value.parse().ok(),
                _ => {}
            }
        }
        let level = level.filter(|level| (1..=self.lowest).contains(level));
        level.filter(|_| is_administrative && is_area(relation.tags()))
    }

    /// Removes the areas, and returns them in a form that can be searched.
    pub(super) fn take_areas(&self) -> AdminAreas {
        AdminAreas::new(std::mem::take(&mut lock(&self.found)))
    }
}

impl RelationCollector for Boundaries {
    fn select(&self, block: &Block<'_>, selected: &mut [bool]) -> FormatResult<()> {
        let mut selected = selected.iter_mut();
        block.try_for_each(|element| {
            let is_wanted = match element {
                Element::Relation(relation) => self.admin_level_of(&relation).is_some(),
                _ => false,
            };
            if let Some(selected) = selected.next() {
                *selected |= is_wanted;
            }
            Ok::<(), FormatError>(())
        })
    }

    /// Adds the area of a relation, if areas of its level are collected and all its member ways are in the file.
    fn add(&self, relation: &Relation<'_>, ways: &WayStore) {
        let Some(level) = self.admin_level_of(relation) else {
            return;
        };
        let mut geometry = GeometryMaker::default();
        let (id, members) = (relation.id(), relation.members());
        let polygons = geometry.polygons_of_relation(id, members, ways, &mut |_| {});
        if polygons.is_empty() {
            return;
        }
        let code = |wanted| relation.tags().find(|(key, _)| *key == wanted);
        let code = ["ISO3166-1:alpha2", "ISO3166-1", "country_code"]
            .into_iter()
            .find_map(code);
        let country = code.filter(|_| level == COUNTRY_LEVEL);
        lock(&self.found).push(AdminArea {
            id,
            level,
            country: country.map(|(_, code)| code.to_ascii_uppercase()),
            polygons,
        });
    }
}
