//! Composing an address from the objects near a query point and the areas around it.

use super::answer::{Address, NearObject, NearPlace, Nearest, Sources};
use super::area::Area;
use super::city::{city, city_named, guess_city};
use super::countries::{PostcodePlace, is_house_number_first, postcode_place};
use super::item::{KeyNumber, nonblank_tag};
use super::languages::Languages;
use super::place_names::PlaceNames;
use std::cmp::Reverse;

/// A part of an address, and the object from which it comes.
pub(super) type AddressPart<'i, T = &'i str> = Option<(T, NearObject)>;

/// The parts of an address.
#[derive(Debug, Clone, Default)]
pub(super) struct AddressParts<'i> {
    house_number: AddressPart<'i, String>,
    /// The parts that come from the same object as the house number.
    of_house: OfHouse<'i>,
    pub street: AddressPart<'i>,
    place: AddressPart<'i>,
    postcode: AddressPart<'i>,
    pub suburb: AddressPart<'i>,
    pub city: AddressPart<'i>,
    /// The city as the address spells it.
    written_city: Option<&'i str>,
    pub city_kind: Option<&'i str>,
    county: AddressPart<'i>,
    state: AddressPart<'i>,
    state_code: Option<&'i str>,
    country: AddressPart<'i>,
    country_code: Option<String>,
}

/// The parts of an address that come only from the tags of the house.
#[derive(Debug, Clone, Copy, Default)]
struct OfHouse<'i> {
    name: Option<&'i str>,
    unit: Option<&'i str>,
    block_number: Option<&'i str>,
    conscription_number: Option<&'i str>,
    street_number: Option<&'i str>,
    neighbourhood: Option<&'i str>,
}

/// Returns the country among `areas`.
fn country_of<'a, 'i>(areas: &'a [Area<'i>]) -> Option<&'a Area<'i>> {
    let mut areas = areas.iter();
    areas.find(|area| area.is_administrative && area.level == Some(2))
}

/// Returns the country code in an ISO 3166-2 code, such as `DE` in `DE-BW`.
fn country_part_of_code(code: &str) -> Option<&str> {
    let (country, part) = code.split_once('-')?;
    let is_country = country.len() == 2 && country.bytes().all(|byte| byte.is_ascii_uppercase());
    (is_country && part.starts_with(|first: char| first.is_ascii_alphanumeric())).then_some(country)
}

/// Returns the code of the country that contains a query point, in lower case. If the country itself has no code,
/// returns the first half of the ISO 3166-2 code of an area within the country.
pub(super) fn country_code_of(areas: &[Area<'_>]) -> Option<String> {
    let of_country = country_of(areas).and_then(|country| {
        let code = country.tag(const { KeyNumber::of("ISO3166-1") });
        code.or(country.tag(const { KeyNumber::of("ISO3166-1:alpha2") }))
    });
    let of_part = || {
        let mut parts = areas.iter().filter(|area| area.is_administrative);
        parts.find_map(|area| area.code.and_then(country_part_of_code))
    };
    of_country.or_else(of_part).map(str::to_lowercase)
}

/// Returns the country code in the tags of an address, in lower case.
pub(super) fn country_code_in_address(tags: &[(&str, &str)]) -> Option<String> {
    let code = nonblank_tag(tags, "addr:country").filter(|code| code.len() == 2);
    code.map(str::to_lowercase)
}

/// Returns the sort key that orders areas around a point from the finest to the coarsest: areas that are not
/// administrative, then administrative ones from the highest level to the lowest. Of areas with the same rank, the
/// smaller one is finer.
fn fineness_key(area: &Area<'_>) -> (Reverse<u8>, u64) {
    let level = area.level.filter(|_| area.is_administrative);
    (Reverse(level.unwrap_or(u8::MAX)), area.size_m2())
}

/// Returns the smallest administrative area at the first level in `levels` that has one.
fn area_at_level<'a, 'i>(areas: &'a [Area<'i>], levels: [u8; 2]) -> Option<&'a Area<'i>> {
    levels.iter().find_map(|level| {
        let areas = areas.iter().filter(|area| area.is_administrative);
        let areas = areas.filter(|area| area.level == Some(*level));
        areas.min_by_key(|area| area.size_m2())
    })
}

/// Returns the finest area whose tag `place` has a value in `kinds`, and this value.
fn area_of_kind<'a, 'i>(areas: &'a [Area<'i>], kinds: &[&str]) -> Option<(&'a Area<'i>, &'i str)> {
    let places = areas.iter().filter_map(|area| {
        let kind = area.tag(KeyNumber::PLACE).filter(|of| kinds.contains(of))?;
        Some((area, kind))
    });
    places.min_by_key(|(area, _)| fineness_key(area))
}

/// Returns the postcode of the finest area that has one.
fn postcode_of<'i>(areas: &[Area<'i>]) -> AddressPart<'i> {
    let postal = areas.iter().filter_map(|area| {
        let code = area.tag(const { KeyNumber::of("postal_code") })?.trim();
        Some((code, area)).filter(|_| !code.is_empty())
    });
    let (code, area) = postal.min_by_key(|(_, area)| fineness_key(area))?;
    Some((code, area.object()))
}

impl<'i> AddressParts<'i> {
    /// Sets the parts from the tags of an object with an address.
    pub(super) fn add_address(
        &mut self,
        house_number: Option<String>,
        tags: &[(&'i str, &'i str)],
        object: NearObject,
    ) {
        let text = |key| nonblank_tag(tags, key);
        let part = |key| text(key).map(|text| (text, object));
        self.house_number = house_number.map(|number| (number, object));
        self.of_house = OfHouse {
            name: text("addr:housename"),
            unit: text("addr:unit"),
            block_number: text("addr:block_number"),
            conscription_number: text("addr:conscriptionnumber"),
            street_number: text("addr:streetnumber"),
            neighbourhood: text("addr:neighbourhood").or(text("addr:quarter")),
        };
        self.street = part("addr:street");
        self.place = part("addr:place");
        if self.street.is_none() && self.place.is_none() {
            self.place = part("addr:hamlet");
        }
        self.postcode = part("addr:postcode");
        self.suburb = part("addr:suburb");
        self.city = part("addr:city");
        self.written_city = text("addr:city");
        self.state = part("addr:state").or(part("addr:province"));
        self.country_code = country_code_in_address(tags);
    }

    /// Sets the street, unless the address has a street, a place, or a block in a neighbourhood.
    pub(super) fn add_street(&mut self, name: &'i str, object: NearObject) {
        let OfHouse {
            block_number,
            neighbourhood,
            ..
        } = self.of_house;
        let has_block = block_number.is_some() && neighbourhood.is_some();
        if self.place.is_none() && !has_block {
            self.street.get_or_insert((name, object));
        }
    }

    /// Uses `code`, the postcode of the street, unless the address has a postcode.
    pub(super) fn add_postcode(&mut self, code: Option<&'i str>, object: NearObject) {
        let code = code.map(|code| (code, object));
        self.postcode = self.postcode.take().or(code);
    }

    /// Uses the nearest place as the city, unless the address has a city.
    pub(super) fn add_place(&mut self, place: &NearPlace<'i>) {
        if self.city.is_none() {
            self.city = Some((place.name, place.object));
            self.city_kind = Some(place.place);
        }
    }

    /// Returns the boundary of the city that the address names, and its kind. `city` is the object from which the name
    /// of the city comes.
    fn boundary_of_named_city<'a>(
        &self,
        areas: &'a [Area<'i>],
        city: &NearObject,
    ) -> Option<(&'a Area<'i>, &'static str)> {
        let names = PlaceNames::of(self.written_city);
        city_named(areas, self.country_code.as_deref(), |area| {
            (area.kind, area.id) == (city.kind, city.id) || names.has_any(area.names())
        })
    }

    /// Uses the boundary from [`guess_city`] as the city, unless the address has a city.
    pub(super) fn add_guessed_city(&mut self, areas: &[Area<'i>], languages: &Languages) {
        if self.city.is_none()
            && let Some((area, kind)) = guess_city(areas, self.country_code.as_deref())
        {
            self.city = languages.area_name(area).map(|name| (name, area.object()));
            self.city_kind = self.city.map(|_| kind);
        }
    }

    /// Sets the kind of the city and, if the address has no city, also the city. Returns the boundary of the city, if
    /// there is one.
    fn add_city<'a>(
        &mut self,
        areas: &'a [Area<'i>],
        languages: &Languages,
    ) -> Option<&'a Area<'i>> {
        if let Some((_, object)) = self.city {
            let of_city = self.boundary_of_named_city(areas, &object);
            let known = self.city_kind.or(of_city.map(|(_, kind)| kind));
            self.city_kind = Some(known.unwrap_or("city"));
            return of_city.map(|(area, _)| area);
        }
        let in_boundary = city(areas, self.country_code.as_deref());
        let area = in_boundary.or_else(|| area_of_kind(areas, &["city", "town", "village"]));
        if let Some((area, kind)) = area.or_else(|| area_of_kind(areas, &["hamlet"])) {
            self.city = languages.area_name(area).map(|name| (name, area.object()));
            self.city_kind = Some(kind);
        }
        in_boundary.map(|(area, _)| area)
    }

    /// Sets the parts that come from areas. `areas` must be in the order of their levels.
    pub(super) fn add_areas(&mut self, areas: &[Area<'i>], languages: &Languages) {
        let named = |area: &Area<'i>| Some((languages.area_name(area)?, area.object()));
        let (country, state) = (country_of(areas), area_at_level(areas, [4, 3]));
        self.country = country.and_then(named);
        self.country_code = country_code_of(areas).or(self.country_code.take());
        self.state = state.and_then(named).or(self.state.take());
        self.state_code = state.and_then(|area| area.code);
        let municipality = self.add_city(areas, languages);
        let is_city = |area: &Area<'i>| {
            municipality.is_some_and(|city| (city.kind, city.id) == (area.kind, area.id))
        };
        let county = area_at_level(areas, [6, 5]).filter(|area| !is_city(area));
        self.county = county.and_then(named);
        // If the level of the municipality is below 8, all boundaries of higher levels around the query point are parts
        // of the municipality.
        let level = municipality.and_then(|city| city.level);
        let is_part = |area: &&Area<'i>| {
            area.is_administrative
                && level.is_some_and(|level| level < 8 && area.level > Some(level))
        };
        let is_named_city = |name: &str| self.city.is_some_and(|(city, _)| city == name);
        let suburb = || {
            let at = area_at_level(areas, [10, 9]).filter(|area| !is_city(area));
            let of_place = || area_of_kind(areas, &["suburb", "quarter", "neighbourhood"]);
            let area = at.or_else(|| of_place().map(|(area, _)| area));
            let parts = areas.iter().filter(is_part);
            let area = area.or_else(|| parts.min_by_key(|area| fineness_key(area)));
            area.and_then(named)
                .filter(|(name, _)| !is_named_city(name))
        };
        self.suburb = self.suburb.take().or_else(suburb);
        self.postcode = self.postcode.take().or_else(|| postcode_of(areas));
    }

    /// Returns the address, and the objects from which its parts come.
    pub(super) fn finish(self) -> (Address<'i>, Sources) {
        fn split<T>(part: Option<(T, NearObject)>) -> (Option<T>, Option<NearObject>) {
            part.unzip()
        }
        let (house_number, of_number) = split(self.house_number);
        let (street, of_street) = split(self.street);
        let (place, of_place) = split(self.place);
        let (postcode, of_postcode) = split(self.postcode);
        let (suburb, of_suburb) = split(self.suburb);
        let (city, of_city) = split(self.city);
        let (county, of_county) = split(self.county);
        let (state, of_state) = split(self.state);
        let (country, of_country) = split(self.country);
        let OfHouse {
            name,
            unit,
            block_number,
            conscription_number,
            street_number,
            neighbourhood,
        } = self.of_house;
        let address = Address {
            house_number,
            house_name: name,
            unit,
            block_number,
            conscription_number,
            street_number,
            street,
            place,
            neighbourhood,
            postcode,
            suburb,
            city,
            city_kind: self.city_kind,
            county,
            state,
            state_code: self.state_code,
            country,
            country_code: self.country_code,
        };
        let sources = Sources {
            house_number: of_number,
            street: of_street,
            place: of_place,
            postcode: of_postcode,
            suburb: of_suburb,
            city: of_city,
            county: of_county,
            state: of_state,
            country: of_country,
        };
        (address, sources)
    }
}

/// Returns the address in one line.
pub(super) fn label(address: &Address<'_>, nearest: &Nearest<'_>) -> String {
    let road = nearest.road.as_ref().and_then(|road| road.reference);
    let street = address.street.or(address.place).or(road);
    let street = street.or(address.neighbourhood);
    let number = address.house_number.as_deref();
    let block = address.block_number;
    let house = match block {
        Some(_) => [street, None],
        None if is_house_number_first(address.country_code.as_deref()) => [number, street],
        None => [street, number],
    };
    let Address {
        postcode,
        city,
        state,
        ..
    } = *address;
    // A city that is also a state is named once. The check for equal parts below would miss the repetition, because one
    // of the parts may also have a postcode.
    let state = state.filter(|state| Some(*state) != city);
    let [city, state] = match postcode_place(address.country_code.as_deref()) {
        PostcodePlace::BeforeCity => [[postcode, city], [state, None]],
        PostcodePlace::AfterState if state.is_some() => [[city, None], [state, postcode]],
        PostcodePlace::AfterCity | PostcodePlace::AfterState => [[city, postcode], [state, None]],
    };
    // A part has at most two words. If consecutive parts are equal, only the first of them is kept.
    let parts = [
        [address.house_name, None],
        house,
        [block.map(|_| "block"), block],
        [number.filter(|_| block.is_some()), None],
        [address.unit.map(|_| "unit"), address.unit],
        [address.suburb, None],
        city,
        state,
        [address.country, None],
    ];
    let mut label = String::with_capacity(128);
    let mut last = 0..0;
    for part in parts {
        let before = label.len();
        if before > 0 {
            label.push_str(", ");
        }
        let start = label.len();
        for (number, word) in part.into_iter().flatten().enumerate() {
            if number > 0 {
                label.push(' ');
            }
            label.push_str(word);
        }
        if label.len() == start || label[start..] == label[last.clone()] {
            label.truncate(before);
        } else {
            last = start..label.len();
        }
    }
    label
}
