//! Finds the streets and cities that an address names: their objects, and the names of these objects in the languages
//! of the query.

use super::answer::NearObject;
use super::area::Area;
use super::city::city_named;
use super::compose::{AddressParts, country_code_of};
use super::folding::{StreetNames, entries, is_same_name};
use super::item::{KeyNumber, nonblank_tag};
use super::layout::Layer;
use super::place_names::{PlaceNames, names_in};
use super::query::{Near, Query};
use crate::error::Result;

/// The radius in metres of the search for the city that an address names.
const CITY_RADIUS: f64 = 15_000.0;
/// The radius in metres of the search for a smaller place that an address names.
const PART_RADIUS: f64 = 4_000.0;
/// The values of the tag `place` for cities. [`HAMLETS`] has the values for smaller settlements, which an address may
/// also name as its city.
const CITIES: [&str; 3] = ["city", "town", "village"];
const HAMLETS: [&str; 2] = ["hamlet", "isolated_dwelling"];
/// The values of the tag `place` for parts of cities.
const SUBURBS: [&str; 4] = ["suburb", "quarter", "neighbourhood", "borough"];

/// A place that an address names: its name in the best language, its object, and its kind.
type NamedPlace<'i> = (&'i str, NearObject, &'i str);

impl<'i> Query<'i, '_> {
    /// Returns the name, in the best language, of the street that an address calls `written`. `street` is the nearest
    /// street.
    pub(super) fn street_name(
        &self,
        written: &'i str,
        street: Option<(&Near<'i>, &StreetNames<'i>)>,
    ) -> Result<&'i str> {
        if let Some((street, names)) = street
            && names.has(written)
        {
            let is_written = |name: &&str| entries(written).any(|entry| is_same_name(name, entry));
            let name = nonblank_tag(&street.tags, "name").filter(is_written);
            let in_language = self.languages.name_in_language(&street.tags);
            return Ok(in_language.or(name).unwrap_or(written));
        }
        if self.languages.is_empty() {
            return Ok(written);
        }
        let radius = self.index.manifest().coarse_search_radius;
        let street = self.nearest_street_named(written, radius)?;
        let name = street.and_then(|street| self.languages.name_in_language(&street.tags));
        Ok(name.unwrap_or(written))
    }

    /// Returns the name, in the best language, of the city that an address calls `written`.
    pub(super) fn city_name(&self, written: &'i str, areas: &[Area<'i>]) -> Result<&'i str> {
        if self.languages.is_empty() {
            return Ok(written);
        }
        let names = PlaceNames::of([written]);
        let is_named = |area: &Area<'i>| names.has_any(area.names());
        let city = city_named(areas, country_code_of(areas).as_deref(), is_named);
        let city = city.map(|(area, _)| area);
        let city = city.or_else(|| areas.iter().rev().find(|area| is_named(area)));
        let of_area = city.and_then(|city| self.languages.area_name_in_language(city));
        if let Some(name) = of_area {
            return Ok(name);
        }
        let place = self.nearest(Layer::Places, CITY_RADIUS, |item| {
            Ok(item.tag("name")?.is_some_and(|name| names.has(name)))
        })?;
        let name = place.and_then(|place| self.languages.name_in_language(&place.tags));
        Ok(name.unwrap_or(written))
    }

    /// Looks up the street, the part of the city, and the city in `parts`, if the query resolves names. Replaces each
    /// of the three names by the name of its object. Removes a name for which no object is found. If no street is found
    /// by its name, uses `street`, the nearest street. Returns the street, if there is one.
    pub(super) fn resolve_names(
        &self,
        parts: &mut AddressParts<'i>,
        street: Option<(&Near<'i>, &StreetNames<'i>)>,
        areas: &[Area<'i>],
    ) -> Result<Option<Near<'i>>> {
        if !self.options.resolves_names {
            return Ok(None);
        }
        let named = match parts.street.take() {
            Some((written, _)) => self.find_street(written, street)?,
            None => None,
        };
        if let Some((written, _)) = parts.suburb.take() {
            let suburb = self.suburb_named(written, areas)?;
            parts.suburb = suburb.map(|(name, object, _)| (name, object));
        }
        if let Some((written, _)) = parts.city.take()
            && let Some((name, object, kind)) = self.city_named(written, areas)?
        {
            parts.city = Some((name, object));
            parts.city_kind = Some(kind);
        }
        let street = named.or_else(|| street.map(|(nearest, _)| nearest.clone()));
        if let Some(street) = &street {
            let name = self.languages.name(&street.tags);
            parts.street = name.map(|name| (name, street.object()));
            parts.add_postcode(nonblank_tag(&street.tags, "postal_code"), street.object());
        }
        Ok(street)
    }

    /// Returns the nearest street with a name that is a spelling of `written`.
    fn find_street(
        &self,
        written: &'i str,
        street: Option<(&Near<'i>, &StreetNames<'i>)>,
    ) -> Result<Option<Near<'i>>> {
        if let Some((street, names)) = street
            && names.has(written)
        {
            return Ok(Some(street.clone()));
        }
        self.nearest_street_named(written, self.index.manifest().coarse_search_radius)
    }

    /// Returns the nearest street within `radius` metres with a name that is a spelling of `written`.
    fn nearest_street_named(&self, written: &'i str, radius: f64) -> Result<Option<Near<'i>>> {
        let names = StreetNames::of(&[("name", written)]);
        self.nearest(Layer::Streets, radius, |item| {
            Ok(has_name(&item.tags()?, &names))
        })
    }

    /// Whether a street within `radius` metres has a name that is a spelling of `written`.
    pub(super) fn is_on_street_named(&self, written: &'i str, radius: f64) -> Result<bool> {
        Ok(self.nearest_street_named(written, radius)?.is_some())
    }

    /// Returns the city that an address names: a boundary around the query point, an area tagged as a city or a smaller
    /// settlement, or the nearest place node.
    fn city_named(&self, written: &'i str, areas: &[Area<'i>]) -> Result<Option<NamedPlace<'i>>> {
        let names = PlaceNames::of([written]);
        let is_named = |area: &Area<'i>| names.has_any(area.names());
        let code = country_code_of(areas);
        if let Some((area, kind)) = city_named(areas, code.as_deref(), is_named) {
            let name = self.languages.area_name(area);
            return Ok(name.map(|name| (name, area.object(), kind)));
        }
        for (kinds, radius) in [(&CITIES[..], CITY_RADIUS), (&HAMLETS[..], PART_RADIUS)] {
            if let Some(found) = self.place_named(&names, kinds, radius, areas)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns the part of a city that an address names: an area around the query point, or the nearest place node.
    fn suburb_named(&self, written: &'i str, areas: &[Area<'i>]) -> Result<Option<NamedPlace<'i>>> {
        let names = PlaceNames::of([written]);
        let is_part = |area: &&Area<'i>| area.is_administrative && area.level > Some(8);
        let mut parts = areas.iter().rev().filter(is_part);
        if let Some(area) = parts.find(|area| names.has_any(area.names()))
            && let Some(name) = self.languages.area_name(area)
        {
            return Ok(Some((name, area.object(), "suburb")));
        }
        self.place_named(&names, &SUBURBS, PART_RADIUS, areas)
    }

    /// Returns the place whose kind is in `kinds` and which has one of `names`: an area around the query point, or the
    /// nearest place node that `is_elsewhere` does not reject.
    fn place_named(
        &self,
        names: &PlaceNames,
        kinds: &[&str],
        radius: f64,
        areas: &[Area<'i>],
    ) -> Result<Option<NamedPlace<'i>>> {
        let is_kind = |kind: Option<&str>| kind.is_some_and(|kind| kinds.contains(&kind));
        let mut around = areas.iter().rev();
        let area =
            around.find(|area| is_kind(area.tag(KeyNumber::PLACE)) && names.has_any(area.names()));
        if let Some(area) = area {
            let name = self
                .languages
                .area_name(area)
                .zip(area.tag(KeyNumber::PLACE));
            return Ok(name.map(|(name, kind)| (name, area.object(), kind)));
        }
        let node = self.first_acceptable_place(areas, |others| {
            self.nearest(Layer::Places, radius, |item| {
                Ok(!others.contains(&item.id)
                    && is_kind(item.tag("place")?)
                    && names.has_any(names_in(&item.tags()?)))
            })
        })?;
        Ok(node.and_then(|node| {
            let name = self.languages.name(&node.tags)?;
            Some((name, node.object(), nonblank_tag(&node.tags, "place")?))
        }))
    }
}

/// Whether any name in the tags of a street is one of `names`.
fn has_name<'i>(tags: &[(&'i str, &'i str)], names: &StreetNames<'i>) -> bool {
    let mut of = tags.iter().filter(|(key, _)| key.contains("name"));
    of.any(|(_, name)| names.has(name))
}
