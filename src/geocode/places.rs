//! The nearest place node: a city, a town, a village or the like.

use super::answer::NearPlace;
use super::area::Area;
use super::city::city;
use super::compose::country_code_of;
use super::index::Hit;
use super::item::tag;
use super::layout::Layer;
use super::place_names::PlaceNames;
use super::query::{Near, Query};
use crate::error::Result;

/// The reach of place nodes by value of the tag `place`: the maximum distance in metres at which an answer may use the
/// node.
const PLACES: [(&str, f64); 5] = [
    ("city", 15_000.0),
    ("town", 8_000.0),
    ("village", 4_000.0),
    ("hamlet", 1_000.0),
    ("isolated_dwelling", 1_000.0),
];
/// The maximum number of places that `is_elsewhere` rejects in a search. If there are more, no place is found.
const MAX_OTHERS: usize = 16;

/// Returns the reach of places of a kind. Parts of cities have the reach of villages.
fn reach_of_place_kind(kind: &str) -> f64 {
    let known = PLACES.iter().find(|(place, _)| *place == kind);
    known.map_or(4_000.0, |(_, reach)| *reach)
}

/// Whether a place node of the given kind must lie in `area` to name the surroundings of the query point. `area`
/// contains the query point.
///
/// The result is true for a country or a state. If the place is smaller than a town, the result is also true for a
/// district. For other administrative areas, it is true if the area is larger than a circle with the reach of the
/// place. A smaller area may be one of several parts of the place.
fn must_contain_place(area: &Area<'_>, kind: &str) -> bool {
    let reach = reach_of_place_kind(kind);
    let largest = std::f64::consts::PI * reach * reach;
    let is_small = reach < reach_of_place_kind("town");
    area.is_administrative
        && match area.level {
            Some(..=4) => true,
            Some(5..=8) if is_small => true,
            _ => area.size_m2() as f64 > largest,
        }
}

impl<'i> Query<'i, '_> {
    /// Returns the place node with the smallest ratio of distance to reach (see [`PLACES`]). `areas` are the areas that
    /// contain the query point. Ignores the place nodes that `is_elsewhere` rejects.
    pub(super) fn nearest_place(&self, areas: &[Area<'i>]) -> Result<Option<NearPlace<'i>>> {
        let near = self.first_acceptable_place(areas, |others| self.best_place_except(others))?;
        Ok(near.and_then(|near| {
            let (place, name) = tag(&near.tags, "place").zip(self.languages.name(&near.tags))?;
            Some(NearPlace {
                object: near.object(),
                place,
                name,
            })
        }))
    }

    /// Returns the first place node that `is_elsewhere` does not reject. `next` returns the best place node whose id is
    /// not in the given list.
    pub(super) fn first_acceptable_place(
        &self,
        areas: &[Area<'i>],
        next: impl Fn(&[i64]) -> Result<Option<Near<'i>>>,
    ) -> Result<Option<Near<'i>>> {
        let mut others: Vec<i64> = Vec::new();
        while others.len() <= MAX_OTHERS
            && let Some(near) = next(&others)?
        {
            if !self.is_elsewhere(&near, areas)? {
                return Ok(Some(near));
            }
            others.push(near.found.item.id);
        }
        Ok(None)
    }

    /// Returns the place node with the smallest ratio of distance to reach. Ignores the nodes whose ids are in
    /// `others`.
    fn best_place_except(&self, others: &[i64]) -> Result<Option<Near<'i>>> {
        let farthest = PLACES.iter().map(|(_, reach)| *reach);
        let farthest = farthest.fold(0.0, f64::max);
        // The squared ratio of distance to reach of the best place so far, and that place.
        let mut best: Option<(f64, Hit<'i>)> = None;
        let index = self.index;
        index.visit_near(Layer::Places, self.place, farthest, |found, limit| {
            if found.squared > *limit {
                return Ok(());
            }
            let kind = found.item.tag("place")?;
            let Some((_, reach)) = PLACES.iter().find(|(place, _)| Some(*place) == kind) else {
                return Ok(());
            };
            let part = found.squared / (reach * reach);
            let key = |part, found: &Hit<'_>| (part, found.key());
            let is_better = |(other, best): &(f64, Hit<'_>)| key(part, &found) < key(*other, best);
            if part <= 1.0
                && best.as_ref().is_none_or(is_better)
                && !others.contains(&found.item.id)
            {
                best = Some((part, found));
                *limit = part * farthest * farthest;
            }
            Ok(())
        })?;
        let near = |(_, found)| Near::of(index, found, self.options);
        best.map(near).transpose()
    }

    /// Whether a place node does not name the surroundings of the query point. `areas` are the areas that contain the
    /// query point. The result is true if the node lies outside of an area in `areas` for which `excludes_places`
    /// returns true. It is also true if the node lies in another municipality than the query point. Boundaries with the
    /// name of the place count as its municipality. If there are none, `city` finds the municipality.
    fn is_elsewhere(&self, near: &Near<'i>, areas: &[Area<'i>]) -> Result<bool> {
        let point = near.found.item.first_point();
        let point = point.map_err(|error| self.index.damage_error(&error))?;
        let around = self.areas_around(point)?;
        let is_in = |areas: &[Area<'_>], wanted: &Area<'_>| {
            let mut areas = areas.iter();
            areas.any(|area| (area.kind, area.id) == (wanted.kind, wanted.id))
        };
        let kind = tag(&near.tags, "place").unwrap_or_default();
        let mut excluding = areas.iter().filter(|area| must_contain_place(area, kind));
        if excluding.any(|area| !is_in(&around, area)) {
            return Ok(true);
        }
        let names = PlaceNames::of_tags(&near.tags);
        let boundaries = around.iter().filter(|area| area.is_administrative);
        let boundaries = boundaries.filter(|area| area.level > Some(2));
        let mut own = boundaries
            .filter(|area| names.has_any(area.names()))
            .peekable();
        if own.peek().is_some() {
            return Ok(!own.any(|area| is_in(areas, area)));
        }
        let code = country_code_of(areas);
        let municipality = city(&around, code.as_deref());
        Ok(municipality.is_some_and(|(area, _)| !is_in(areas, area)))
    }
}
