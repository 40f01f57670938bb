//! Names of streets and cities of an address in the languages of the query.

use super::area::Area;
use super::folding::{StreetNames, is_same_name};
use super::item::text_tag;
use super::layout::Layer;
use super::query::{Near, Query};
use crate::error::Result;

/// The radius in metres of the search for the city that an address names.
const CITY_RADIUS: f64 = 15_000.0;

impl<'i> Query<'i, '_> {
    /// The name of a street that an address has as `written`, in the best language. `street` is the nearest street.
    pub(super) fn street_name(
        &self,
        written: &'i str,
        street: Option<(&Near<'i>, &StreetNames<'i>)>,
    ) -> Result<&'i str> {
        if let Some((street, names)) = street
            && names.has(written)
        {
            let name = text_tag(&street.tags, "name").filter(|name| is_same_name(name, written));
            let in_language = self.options.name_in_language(&street.tags);
            return Ok(in_language.or(name).unwrap_or(written));
        }
        if self.options.languages.is_empty() {
            return Ok(written);
        }
        let radius = self.index.manifest().coarse_search_radius;
        Ok(self
            .name_of(Layer::Streets, radius, written)?
            .unwrap_or(written))
    }

    /// The name of a city that an address has as `written`, in the best language.
    pub(super) fn city_name(&self, written: &'i str, areas: &[Area<'i>]) -> Result<&'i str> {
        if self.options.languages.is_empty() {
            return Ok(written);
        }
        let mut languages = self.options.languages.iter();
        let is_city = |area: &&Area<'i>| {
            let name = area.tag("name");
            name.is_some_and(|name| is_same_name(name, written))
        };
        let city = areas.iter().rev().find(is_city);
        let of_area = city.and_then(|city| languages.find_map(|language| city.name_in(language)));
        if let Some(name) = of_area {
            return Ok(name);
        }
        Ok(self
            .name_of(Layer::Places, CITY_RADIUS, written)?
            .unwrap_or(written))
    }

    /// The name, in the best language, of the nearest object whose `name` is a spelling of `written`.
    fn name_of(&self, layer: Layer, radius: f64, written: &'i str) -> Result<Option<&'i str>> {
        let names = StreetNames::of(&[("name", written)]);
        let found = self.near(layer, radius, |item| {
            Ok(item.tag("name")?.is_some_and(|name| names.has(name)))
        })?;
        Ok(found.and_then(|found| self.options.name_in_language(&found.tags)))
    }
}
