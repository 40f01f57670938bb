//! Reverse geocoding: composes the answer about a place.

use super::address_tags::{house_number, is_address, is_address_item};
use super::answer::{
    Answer, AnsweringObject, NamedArea, NearAddress, NearObject, NearRoad, NearStreet, Nearest,
};
use super::area::Area;
use super::compose::{AddressParts, country_code_in_address, country_code_of, label};
use super::folding::StreetNames;
use super::index::{GeocodeIndex, Hit};
use super::item::{nonblank_tag, tag};
use super::languages::Languages;
use super::layout::Layer;
use super::leaf::LeafItem;
use super::options::QueryOptions;
use super::sides::set_side_name;
use crate::error::{FormatResult, Result};
use crate::geometry::{Extent, Point};
use crate::osm::Location;

/// The tags of an object.
type QueriedTags<'i> = Vec<(&'i str, &'i str)>;

/// An object near the query point, with its tags.
#[derive(Debug, Clone)]
pub(super) struct Near<'i> {
    pub found: Hit<'i>,
    extent: Option<Extent>,
    pub tags: QueriedTags<'i>,
}

impl<'i> Near<'i> {
    pub(super) fn of(
        index: &'i GeocodeIndex,
        found: Hit<'i>,
        options: &QueryOptions,
    ) -> Result<Self> {
        let damaged = |error| index.damage_error(&error);
        let mut tags = found.item.tags().map_err(damaged)?;
        set_side_name(&mut tags, &found).map_err(damaged)?;
        Ok(Self {
            extent: if options.has_boxes {
                Some(found.item.extent().map_err(damaged)?)
            } else {
                None
            },
            tags,
            found,
        })
    }

    pub(super) fn distance_m(&self) -> f64 {
        self.found.distance_m()
    }

    /// Returns the kind, the id, the distance and the box of the object.
    pub(super) fn object(&self) -> NearObject {
        NearObject {
            kind: self.found.item.kind,
            id: self.found.item.id,
            distance_m: self.distance_m(),
            extent: self.extent,
        }
    }

    /// Returns the street that the address names.
    pub(super) fn street(&self) -> Option<&'i str> {
        nonblank_tag(&self.tags, "addr:street")
    }

    /// Returns the object as the [`AnsweringObject`] of the answer. Its class is the first tag of the object that is
    /// neither a name nor part of an address.
    fn answering_object(&self) -> AnsweringObject<'i> {
        let is_class = |key: &str| key != "name" && !key.contains([':', '@', '#']);
        let class = self.tags.iter().find(|(key, _)| is_class(key));
        AnsweringObject {
            object: self.object(),
            class: class.copied(),
            name: nonblank_tag(&self.tags, "name"),
        }
    }

    fn near_address(&self, house_number: Option<String>) -> NearAddress<'i> {
        NearAddress {
            object: self.object(),
            house_number,
            street: tag(&self.tags, "addr:street"),
            place: tag(&self.tags, "addr:place"),
        }
    }
}

/// The address that was chosen as the answer.
pub(super) struct ChosenAddress<'i> {
    /// The object with the address.
    pub near: Near<'i>,
    /// The house number.
    pub number: Option<String>,
}

impl<'i> ChosenAddress<'i> {
    pub(super) fn of(near: Near<'i>) -> Self {
        Self {
            number: house_number(&near.tags),
            near,
        }
    }
}

/// Returns the code of the country that contains the query point. If this country is not known, returns the code in the
/// address.
fn country_code(areas: &[Area<'_>], chosen: Option<&ChosenAddress<'_>>) -> Option<String> {
    country_code_of(areas).or_else(|| country_code_in_address(&chosen?.near.tags))
}

impl GeocodeIndex {
    /// Finds the address and the objects at a location.
    ///
    /// # Errors
    ///
    /// The index is damaged.
    pub fn reverse(&self, place: Location, options: &QueryOptions) -> Result<Answer<'_>> {
        let query = Query {
            index: self,
            options,
            languages: Languages::of(options),
            place: place.into(),
        };
        query.answer(place)
    }
}

/// A query for a location.
pub(super) struct Query<'i, 'o> {
    pub index: &'i GeocodeIndex,
    pub options: &'o QueryOptions,
    pub languages: Languages,
    pub place: Point,
}

impl<'i> Query<'i, '_> {
    /// Finds the nearest objects, and composes the answer from them.
    fn answer(mut self, place: Location) -> Result<Answer<'i>> {
        let radius = self.index.manifest().coarse_search_radius;
        let first = self.nearest(Layer::Addresses, radius, |_| Ok(true))?;
        let street = self.nearest(Layer::Streets, radius, |_| Ok(true))?;
        let interpolation = self.nearest(Layer::Interpolations, radius, |_| Ok(true))?;
        let areas = self.areas()?;
        let usable = self.nearest_with_address(first.as_ref(), radius)?;
        let names = street.as_ref().map(|street| StreetNames::of(&street.tags));
        let named_street = street.as_ref().zip(names.as_ref());
        let chosen = self.choose_address(usable.as_ref(), named_street, interpolation.as_ref())?;
        let object = chosen.as_ref().map(|chosen| chosen.near.answering_object());
        let code = country_code(&areas, chosen.as_ref());
        self.languages.set_local_languages(&areas, code.as_deref());
        let mut parts = self.compose(chosen, named_street, &areas)?;
        let own_street = self.resolve_names(&mut parts, named_street, &areas)?;
        parts.add_areas(&areas, &self.languages);
        let nearest_place = match parts.city {
            Some(_) => None,
            None => self.nearest_place(&areas)?,
        };
        if let Some(place) = &nearest_place {
            parts.add_place(place);
        }
        parts.add_guessed_city(&areas, &self.languages);
        let address = match first {
            Some(near) if tag(&near.tags, "addr:housenumber").is_none() => {
                let has_number = |item: &LeafItem<'i>| Ok(item.tag("addr:housenumber")?.is_some());
                self.nearest(Layer::Addresses, radius, has_number)?
            }
            first => first,
        };
        let road = match street {
            Some(_) => None,
            None => self.nearest(Layer::Roads, radius, |_| Ok(true))?,
        };
        let nearest = Nearest {
            address: address.map(|near| {
                let number = tag(&near.tags, "addr:housenumber");
                near.near_address(number.map(str::to_owned))
            }),
            interpolation: match interpolation {
                Some(near) => Some(near.near_address(self.interpolated_number_along(&near)?)),
                None => None,
            },
            place: nearest_place,
            ..self.nearest_streets(street, road)
        };
        let named = areas.iter().filter_map(|area| self.named_area(area));
        let (address, sources) = parts.finish();
        Ok(Answer {
            query: place,
            label: label(&address, &nearest),
            object,
            address,
            sources,
            street: own_street.and_then(|street| self.near_street(&street)),
            nearest,
            areas: named.collect(),
        })
    }

    /// Returns the nearest object that has an address according to [`is_address`]. `first` is the nearest object in the
    /// layer of addresses. In most cases, the function returns `first`.
    fn nearest_with_address(
        &self,
        first: Option<&Near<'i>>,
        radius: f64,
    ) -> Result<Option<Near<'i>>> {
        match first {
            Some(near) if !is_address(&near.tags) => {
                self.nearest(Layer::Addresses, radius, is_address_item)
            }
            first => Ok(first.cloned()),
        }
    }

    /// Returns a `Nearest` with only the nearest street and the nearest road.
    fn nearest_streets(&self, street: Option<Near<'i>>, road: Option<Near<'i>>) -> Nearest<'i> {
        Nearest {
            street: street.and_then(|near| self.near_street(&near)),
            road: road.and_then(|near| {
                Some(NearRoad {
                    object: near.object(),
                    highway: tag(&near.tags, "highway")?,
                    reference: tag(&near.tags, "ref"),
                })
            }),
            ..Nearest::default()
        }
    }

    fn near_street(&self, near: &Near<'i>) -> Option<NearStreet<'i>> {
        let [mut name, mut highway, mut reference] = [None; 3];
        for (key, value) in &near.tags {
            match *key {
                "name" => name = Some(*value),
                "highway" => highway = Some(*value),
                "ref" => reference = Some(*value),
                _ => {}
            }
        }
        Some(NearStreet {
            object: near.object(),
            name: self.languages.name_in_language(&near.tags).or(name)?,
            highway,
            reference,
        })
    }

    /// Returns the nearest object in a layer, within `radius` metres, for which `accepts` returns true.
    pub(super) fn nearest(
        &self,
        layer: Layer,
        radius: f64,
        accepts: impl Fn(&LeafItem<'i>) -> FormatResult<bool>,
    ) -> Result<Option<Near<'i>>> {
        let found = self.index.nearest(layer, self.place, radius, accepts)?;
        let near = |found| Near::of(self.index, found, self.options);
        found.map(near).transpose()
    }

    /// Composes the part of the address that does not come from areas. If the query resolves names, the names in the
    /// result are spelled as in the tags of the chosen address, and `resolve_names` replaces them later.
    fn compose(
        &self,
        chosen: Option<ChosenAddress<'i>>,
        street: Option<(&Near<'i>, &StreetNames<'i>)>,
        areas: &[Area<'i>],
    ) -> Result<AddressParts<'i>> {
        let manifest = self.index.manifest();
        let mut parts = AddressParts::default();
        // A chosen address without a street gets the nearest street only within `search_radius`, the smaller of the two
        // radii.
        let radius = match chosen {
            Some(_) => manifest.search_radius,
            None => manifest.coarse_search_radius,
        };
        if let Some(ChosenAddress { near, number }) = chosen {
            parts.add_address(number, &near.tags, near.object());
        }
        if self.options.resolves_names {
            return Ok(parts);
        }
        if let Some((written, _)) = &mut parts.street {
            *written = self.street_name(written, street)?;
        }
        if let Some((written, _)) = &mut parts.city {
            *written = self.city_name(written, areas)?;
        }
        if let Some((near, _)) = street.filter(|(near, _)| near.distance_m() <= radius)
            && let Some(name) = self.languages.name(&near.tags)
        {
            parts.add_street(name, near.object());
        }
        if let Some((near, _)) = street
            && let Some((name, _)) = parts.street
            && near.tags.iter().any(|(_, value)| *value == name)
        {
            parts.add_postcode(nonblank_tag(&near.tags, "postal_code"), near.object());
        }
        Ok(parts)
    }

    /// Returns the areas that contain the query point, the lowest `admin_level` first.
    fn areas(&self) -> Result<Vec<Area<'i>>> {
        self.areas_around(self.place)
    }

    /// Returns the areas that contain a point, the lowest `admin_level` first.
    pub(super) fn areas_around(&self, point: Point) -> Result<Vec<Area<'i>>> {
        let mut areas = self.index.areas_at(point)?;
        areas.sort_unstable_by_key(|area| (area.level.unwrap_or(u8::MAX), area.kind, area.id));
        Ok(areas)
    }

    fn named_area(&self, area: &Area<'i>) -> Option<NamedArea<'i>> {
        let name = self
            .languages
            .area_name(area)
            .filter(|_| area.is_administrative)?;
        Some(NamedArea {
            object_kind: area.kind,
            id: area.id,
            extent: area.extent,
            admin_level: area.level,
            name,
            code: area.code,
            kind: "administrative",
        })
    }
}
