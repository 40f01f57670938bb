//! Composing an address of the objects near a place and of the areas around it.

use super::answer::{Address, NearObject, NearPlace, Nearest, Sources};
use super::area::Area;
use super::item::tag;
use super::query::QueryOptions;

/// A part of an address, and the object that it comes from.
pub(super) type Part<'i, T = &'i str> = Option<(T, NearObject)>;

/// The parts of an address.
#[derive(Debug, Clone, Default)]
pub(super) struct Parts<'i> {
    house_number: Part<'i, String>,
    street: Part<'i>,
    place: Part<'i>,
    postcode: Part<'i>,
    suburb: Part<'i>,
    pub city: Part<'i>,
    county: Part<'i>,
    state: Part<'i>,
    state_code: Option<&'i str>,
    country: Part<'i>,
    country_code: Option<&'i str>,
}

impl<'i> Parts<'i> {
    /// Takes what the tags of an object with an address say.
    pub(super) fn add_address(
        &mut self,
        house_number: Option<String>,
        tags: &[(&'i str, &'i str)],
        object: NearObject,
    ) {
        let part = |key| tag(tags, key).map(|text| (text, object));
        self.house_number = house_number.map(|number| (number, object));
        self.street = part("addr:street");
        self.place = part("addr:place");
        self.postcode = part("addr:postcode");
        self.suburb = part("addr:suburb");
        self.city = part("addr:city");
        self.state = part("addr:state").or(part("addr:province"));
        self.country_code = tag(tags, "addr:country").filter(|code| code.len() == 2);
    }

    /// Takes the nearest street, unless the address has a street or a place that stands for one.
    pub(super) fn add_street(&mut self, name: &'i str, object: NearObject) {
        if self.place.is_none() {
            self.street.get_or_insert((name, object));
        }
    }

    /// Takes the nearest place as city.
    pub(super) fn add_place(&mut self, place: &NearPlace<'i>) {
        self.city.get_or_insert((place.name, place.object));
    }

    /// Takes what areas say. They are in the order of their levels.
    pub(super) fn add_areas(&mut self, areas: &[Area<'i>], options: &QueryOptions) {
        let at_level = |levels: [u8; 2]| {
            let area_at = |wanted: &u8| {
                areas
                    .iter()
                    .find(|area| area.is_administrative && area.level == Some(*wanted))
            };
            levels.iter().find_map(area_at)
        };
        let named = |area: &Area<'i>| Some((options.area_name(area)?, area.object()));
        let at = |levels| at_level(levels).and_then(named);
        let place_of = |kinds: &[&str]| {
            let mut areas = areas.iter().rev();
            let is_of = |area: &&Area<'_>| area.tag("place").is_some_and(|of| kinds.contains(&of));
            areas.find(is_of).and_then(named)
        };
        let (country, state) = (at_level([2, 2]), at_level([4, 3]));
        let code = |area: &Area<'i>| area.tag("ISO3166-1").or(area.tag("ISO3166-1:alpha2"));
        self.country = country.and_then(named);
        self.country_code = country.and_then(code).or(self.country_code);
        self.state = state.and_then(named).or(self.state.take());
        self.state_code = state.and_then(|area| area.tag("ISO3166-2"));
        self.county = at([6, 5]);
        let city = || at([8, 7]).or_else(|| place_of(&["city", "town", "village", "hamlet"]));
        self.city = self.city.take().or_else(city);
        let suburb = || at([10, 9]).or_else(|| place_of(&["suburb", "quarter", "neighbourhood"]));
        self.suburb = self.suburb.take().or_else(suburb);
        let postal = |area: &Area<'i>| Some((area.tag("postal_code")?, area.object()));
        let postcode = || areas.iter().rev().find_map(postal);
        self.postcode = self.postcode.take().or_else(postcode);
    }

    /// The address, and the objects that its parts come from.
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
        let address = Address {
            house_number,
            street,
            place,
            postcode,
            suburb,
            city,
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

/// The answer in a line.
pub(super) fn label(address: &Address<'_>, nearest: &Nearest<'_>) -> String {
    let road = nearest.road.as_ref().and_then(|road| road.reference);
    let street = address.street.or(address.place).or(road);
    // Each part in two words at most. A part that repeats the one before is left out.
    let parts = [
        [street, address.house_number.as_deref()],
        [address.suburb, None],
        [address.postcode, address.city],
        [address.state, None],
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
        if label.len() == start || label.get(start..) == label.get(last.clone()) {
            label.truncate(before);
        } else {
            last = start..label.len();
        }
    }
    label
}
