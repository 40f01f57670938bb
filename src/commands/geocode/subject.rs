//! The object that answers a request and its address, with the names that clients of geocoders know.

use crate::geocode::{Address, Answer, NamedArea, NearObject};
use crate::osm::{Edges, ObjectKind};
use serde::{Serialize, Serializer};

/// The licence of the answers.
pub(super) const LICENCE: &str =
    "Data © OpenStreetMap contributors, ODbL 1.0. https://www.openstreetmap.org/copyright";
/// The value of `zoom` for an address, which is the default.
pub(super) const ADDRESS_ZOOM: u8 = 18;
/// The least value of `zoom` for a street.
const STREET_ZOOM: u8 = 16;

/// The object that answers a request, with its classification.
pub(super) struct Subject<'a> {
    pub kind: ObjectKind,
    pub id: i64,
    /// The edges of the box in 1e-7 degree.
    pub edges: Edges<i32>,
    pub category: &'a str,
    pub sort: &'a str,
    pub address_type: &'a str,
    /// The rank: 30 for a house, 26 street, 20 suburb, 16 city, 12 county, 8 state, 4 country.
    pub rank: u8,
    pub name: &'a str,
}

impl<'a> Subject<'a> {
    fn object(object: &NearObject, types: [&'a str; 3], rank: u8, name: &'a str) -> Self {
        let [category, sort, address_type] = types;
        // The queries of the service ask for boxes.
        Self {
            kind: object.kind,
            id: object.id,
            edges: object
                .extent
                .map(|extent| extent.edges())
                .unwrap_or_default(),
            category,
            sort,
            address_type,
            rank,
            name,
        }
    }

    /// Selects the object of an answer for a value of `zoom`.
    pub(super) fn of(answer: &'a Answer<'_>, zoom: u8) -> Option<Self> {
        let (address, sources) = (&answer.address, &answer.sources);
        let house = sources.house_number.filter(|_| zoom >= ADDRESS_ZOOM);
        let named = sources.house_number.is_some() || address.house_name.is_some();
        let answering = answer.object.filter(|_| zoom >= ADDRESS_ZOOM && named);
        if let Some(answering) = answering {
            let name = answering.name.or(address.house_name).unwrap_or_default();
            let types = match answering.class {
                Some((key, value)) => [key, value, key],
                None => ["place", "house", "place"],
            };
            return Some(Self::object(&answering.object, types, 30, name));
        }
        if let Some(house) = house {
            return Some(Self::object(&house, ["place", "house", "place"], 30, ""));
        }
        let is_street = zoom >= STREET_ZOOM;
        if let Some(street) = answer
            .nearest
            .street
            .as_ref()
            .filter(|street| is_street && address.street.is_none_or(|name| name == street.name))
        {
            let types = ["highway", "residential", "road"];
            return Some(Self::object(&street.object, types, 26, street.name));
        }
        if let Some((name, source)) = address.street.zip(sources.street).filter(|_| is_street) {
            return Some(Self::object(
                &source,
                ["highway", "residential", "road"],
                26,
                name,
            ));
        }
        if let Some(road) = answer.nearest.road.as_ref().filter(|_| is_street) {
            let types = ["highway", road.highway, "road"];
            let name = road.reference.unwrap_or_default();
            return Some(Self::object(&road.object, types, 26, name));
        }
        Self::larger(answer, zoom)
    }

    /// The finest part of the address above the street that a value of `zoom` allows.
    fn larger(answer: &'a Answer<'_>, zoom: u8) -> Option<Self> {
        let (address, sources) = (&answer.address, &answer.sources);
        let city_kind = address.city_kind.unwrap_or("city");
        let steps = [
            (13, "suburb", 20, address.suburb, sources.suburb),
            (10, city_kind, 16, address.city, sources.city),
            (8, "county", 12, address.county, sources.county),
            (5, "state", 8, address.state, sources.state),
            (0, "country", 4, address.country, sources.country),
        ];
        let known = steps
            .into_iter()
            .find_map(|(least_zoom, kind, rank, name, source)| {
                let (name, source) = name.zip(source).filter(|_| zoom >= least_zoom)?;
                let mut areas = answer.areas.iter();
                let is_area =
                    areas.any(|area| (area.object_kind, area.id) == (source.kind, source.id));
                let types = if is_area {
                    ["boundary", "administrative", kind]
                } else {
                    ["place", kind, kind]
                };
                Some(Self::object(&source, types, rank, name))
            });
        if known.is_some() {
            return known;
        }
        answer
            .areas
            .iter()
            .rev()
            .find_map(|area| Self::area(area, zoom))
    }

    /// An administrative area, if it is large enough for a value of `zoom`.
    fn area(area: &'a NamedArea<'_>, zoom: u8) -> Option<Self> {
        let level = area.admin_level?;
        let (address_type, rank, least_zoom) = match level {
            0..=2 => ("country", 4, 0),
            3..=4 => ("state", 8, 5),
            5..=6 => ("county", 12, 8),
            7..=8 => ("city", 16, 10),
            _ => ("suburb", 20, 13),
        };
        let object = NearObject {
            kind: area.object_kind,
            id: area.id,
            distance_m: 0.0,
            extent: Some(area.extent),
        };
        let types = ["boundary", "administrative", address_type];
        (zoom >= least_zoom).then(|| Self::object(&object, types, rank, area.name))
    }
}

/// Converts units of 1e-7 degree to degrees.
pub(super) fn degrees(e7: i32) -> f64 {
    f64::from(e7) / 1e7
}

impl Subject<'_> {
    /// A number computed from the kind and the id of the object. It is stable, unlike the number in a database.
    pub(super) fn place_id(&self) -> i64 {
        self.id.wrapping_mul(4).wrapping_add(self.kind as i64)
    }

    /// The latitude and the longitude of the middle of the box, in degrees.
    pub(super) fn middle(&self) -> [f64; 2] {
        let [south, north, west, east] = self.bounding_box();
        let middle = [f64::midpoint(south, north), f64::midpoint(west, east)];
        middle.map(|degrees| (degrees * 1e7).round() / 1e7)
    }

    /// The box: south, north, west, east in degrees.
    pub(super) fn bounding_box(&self) -> [f64; 4] {
        let Edges {
            west,
            south,
            east,
            north,
        } = self.edges.map(degrees);
        [south, north, west, east]
    }
}

/// The parts of an address with the names that clients know, the finest first.
pub(super) struct Parts(Vec<(&'static str, String)>);

impl Parts {
    /// The parts that are not finer than a subject with the given rank.
    pub(super) fn of(address: &Address<'_>, rank: u8) -> Self {
        let part = |key, least: u8, text: Option<&str>| {
            let text = text.filter(|_| rank >= least)?;
            Some((key, text.to_owned()))
        };
        let city_key = match address.city_kind {
            Some("town") => "town",
            Some("village") => "village",
            Some("hamlet") => "hamlet",
            Some("isolated_dwelling") => "isolated_dwelling",
            _ => "city",
        };
        let parts = [
            part("house_name", 30, address.house_name),
            part("house_number", 30, address.house_number.as_deref()),
            part("unit", 30, address.unit),
            part("block", 30, address.block_number),
            part("road", 26, address.street),
            part("place", 26, address.place),
            part("neighbourhood", 26, address.neighbourhood),
            part("suburb", 20, address.suburb),
            part(city_key, 16, address.city),
            part("county", 12, address.county),
            part("state", 8, address.state),
            part("ISO3166-2-lvl4", 8, address.state_code),
            part("postcode", 16, address.postcode),
            part("country", 4, address.country),
            part("country_code", 4, address.country_code.as_deref()),
        ];
        Self(parts.into_iter().flatten().collect())
    }

    /// The names and the texts of the parts.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(key, text)| (*key, text.as_str()))
    }

    /// The text of all parts in a line, without codes.
    pub(super) fn display_name(&self) -> String {
        let is_shown = |key: &str| !matches!(key, "ISO3166-2-lvl4" | "country_code");
        let shown = self.0.iter().filter(|(key, _)| is_shown(key));
        let texts: Vec<&str> = shown.map(|(_, text)| text.as_str()).collect();
        texts.join(", ")
    }
}

impl Serialize for Parts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, text)| (key, text)))
    }
}
