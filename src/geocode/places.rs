//! The nearest place node: a city, a town, a village or the like.

use super::answer::NearPlace;
use super::area::Area;
use super::city::city;
use super::compose::country_code_of;
use super::folding::is_same_name;
use super::index::Hit;
use super::item::{KeyNumber, tag};
use super::layout::Layer;
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
/// The maximum number of places that are rejected because they lie in another municipality.
const MAX_OTHERS: usize = 16;

impl<'i> Query<'i, '_> {
    /// Returns the place node with the smallest ratio of distance to reach (see [`PLACES`]). `areas` are the areas that
    /// contain the query point. A place node in a municipality that is not in `areas` is rejected.
    pub(super) fn nearest_place(&self, areas: &[Area<'i>]) -> Result<Option<NearPlace<'i>>> {
        let mut others: Vec<i64> = Vec::new();
        while let Some(near) = self.next_place(&others)? {
            if self.is_elsewhere(&near, areas)? && others.len() < MAX_OTHERS {
                others.push(near.found.item.id);
                continue;
            }
            let names = tag(&near.tags, "place").zip(self.languages.name(&near.tags));
            return Ok(names.map(|(place, name)| NearPlace {
                object: near.object(),
                place,
                name,
            }));
        }
        Ok(None)
    }

    /// Returns the place node with the smallest ratio of distance to reach. Ignores the nodes whose ids are in
    /// `others`.
    fn next_place(&self, others: &[i64]) -> Result<Option<Near<'i>>> {
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

    /// Whether a place is in a municipality that is not in `areas`.
    fn is_elsewhere(&self, near: &Near<'i>, areas: &[Area<'i>]) -> Result<bool> {
        let point = near.found.item.first_point();
        let point = point.map_err(|error| self.index.damaged(&error))?;
        let around = self.areas_around(point)?;
        let is_shared = |area: &Area<'_>| {
            let mut areas = areas.iter();
            areas.any(|other| (other.kind, other.id) == (area.kind, area.id))
        };
        let code = country_code_of(areas);
        let name = tag(&near.tags, "name").unwrap_or_default();
        let has_name = |area: &&Area<'_>| {
            area.is_administrative
                && area
                    .tag(KeyNumber::NAME)
                    .is_some_and(|of| is_same_name(of, name))
        };
        let mut own = around.iter().filter(has_name).peekable();
        if own.peek().is_some() {
            return Ok(!own.any(is_shared));
        }
        let municipality = city(&around, code.as_deref());
        Ok(municipality.is_some_and(|(area, _)| !is_shared(area)))
    }
}
