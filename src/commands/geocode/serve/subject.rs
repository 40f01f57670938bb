//! The object that answers a request, and the parts of its address with the keys that clients of geocoders expect.

use crate::geocode::{Answer, NamedArea, NearObject};
use crate::osm::{Edges, ObjectKind};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::ops::RangeInclusive;

/// The licence of the answers.
pub(super) const LICENCE: &str =
    "Data © OpenStreetMap contributors, ODbL 1.0. https://www.openstreetmap.org/copyright";
/// The smallest `zoom` at which a request selects an address. It is also the default of `zoom`.
pub(super) const ADDRESS_ZOOM: u8 = 18;
/// The smallest `zoom` at which a request selects a street.
const STREET_ZOOM: u8 = 16;

/// The object that answers a request, with its classification.
pub(super) struct Subject<'a> {
    pub kind: ObjectKind,
    pub id: i64,
    /// The edges of the object in 1e-7 degree.
    edges: Edges<i32>,
    /// The distance by which the box in the answer extends beyond the edges of the object, in 1e-7 degree.
    margin: i32,
    pub category: &'a str,
    pub sort: &'a str,
    pub address_type: &'a str,
    /// The address rank: house 30, street 26, suburb 20, city 16, county 12, state 8, country 4.
    pub rank: u8,
    pub name: &'a str,
    /// The value of the tag `ref`, if the object is a street or a road.
    pub reference: Option<&'a str>,
}

/// Whether the address of an answer has a house number, a house name or a block number.
pub(super) fn has_house(answer: &Answer<'_>) -> bool {
    let address = &answer.address;
    address.house_number.is_some() || address.house_name.is_some() || address.block_number.is_some()
}

/// Returns the distance from a node to the edges of its box, in 1e-7 degree. It depends on the address type, because a
/// client that shows the box has to show the surroundings of the node: 5 m around a house, a whole city around the node
/// of a city.
fn node_box_margin_e7(address_type: &str) -> i32 {
    match address_type {
        "city" => 1_600_000,
        "town" => 400_000,
        "village" | "suburb" => 200_000,
        "hamlet" | "isolated_dwelling" | "quarter" | "neighbourhood" | "borough" => 100_000,
        _ => 500,
    }
}

impl<'a> Subject<'a> {
    /// Creates a subject. `types` are its category, its sort and its address type.
    fn of_object(object: &NearObject, types: [&'a str; 3], rank: u8, name: &'a str) -> Self {
        let [category, sort, address_type] = types;
        // The queries of the service always ask for extents, so `extent` is set.
        let edges = object.extent.map(|extent| extent.edges());
        Self {
            kind: object.kind,
            id: object.id,
            edges: edges.unwrap_or_default(),
            margin: match object.kind {
                ObjectKind::Node => node_box_margin_e7(address_type),
                _ => 0,
            },
            category,
            sort,
            address_type,
            rank,
            name,
            reference: None,
        }
    }

    /// Returns the object that `zoom` selects in an answer: a house, a street or a larger unit.
    pub(super) fn of(answer: &'a Answer<'_>, zoom: u8) -> Option<Self> {
        let house = || Self::of_house(answer).filter(|_| zoom >= ADDRESS_ZOOM);
        let street = || Self::of_street(answer).filter(|_| zoom >= STREET_ZOOM);
        let larger = || Self::of_larger_area(answer, zoom);
        house().or_else(street).or_else(larger)
    }

    /// Returns the object that has the address, if the address names a house.
    fn of_house(answer: &'a Answer<'_>) -> Option<Self> {
        let answering = answer.object.as_ref().filter(|_| has_house(answer))?;
        let name = answering.name.or(answer.address.house_name);
        let types = match answering.class {
            Some((key, value)) => [key, value, key],
            None => ["place", "house", "place"],
        };
        let name = name.unwrap_or_default();
        Some(Self::of_object(&answering.object, types, 30, name))
    }

    /// Returns the street of the answer or, if it has none, the nearest road.
    fn of_street(answer: &'a Answer<'_>) -> Option<Self> {
        if let Some(street) = &answer.street {
            let types = match street.highway {
                Some(highway) => ["highway", highway, "road"],
                None => ["place", "square", "road"],
            };
            return Some(Self {
                reference: street.reference,
                ..Self::of_object(&street.object, types, 26, street.name)
            });
        }
        let road = answer.nearest.road.as_ref()?;
        let types = ["highway", road.highway, "road"];
        let name = road.reference.unwrap_or_default();
        Some(Self {
            reference: road.reference,
            ..Self::of_object(&road.object, types, 26, name)
        })
    }

    /// Returns the smallest unit of the address, from suburb to country, that `zoom` allows. If there is no such unit,
    /// returns the smallest administrative area that `zoom` allows.
    fn of_larger_area(answer: &'a Answer<'_>, zoom: u8) -> Option<Self> {
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
                // If a unit is known only from the address tags of a house, the source of the unit is the house. The
                // house is not the unit itself, so the unit is skipped.
                let house = answer.object.as_ref().map(|answering| answering.object);
                if house.is_some_and(|house| (house.kind, house.id) == (source.kind, source.id)) {
                    return None;
                }
                let mut areas = answer.areas.iter();
                let is_area =
                    areas.any(|area| (area.object_kind, area.id) == (source.kind, source.id));
                let types = if is_area {
                    ["boundary", "administrative", kind]
                } else {
                    ["place", kind, kind]
                };
                Some(Self::of_object(&source, types, rank, name))
            });
        if known.is_some() {
            return known;
        }
        answer
            .areas
            .iter()
            .rev()
            .find_map(|area| Self::of_area(area, zoom))
    }

    /// Returns an administrative area as the subject, if it is large enough for `zoom`.
    fn of_area(area: &'a NamedArea<'_>, zoom: u8) -> Option<Self> {
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
        (zoom >= least_zoom).then(|| Self::of_object(&object, types, rank, area.name))
    }
}

/// Converts units of 1e-7 degree to degrees.
pub(super) fn degrees(e7: i32) -> f64 {
    f64::from(e7) / 1e7
}

impl Subject<'_> {
    /// Returns a number computed from the kind and the id of the object. The number is stable, unlike the row number
    /// that a geocoder with a database returns.
    pub(super) fn place_id(&self) -> i64 {
        self.id.wrapping_mul(4).wrapping_add(self.kind as i64)
    }

    /// Returns the latitude and the longitude of the middle of the object, in degrees.
    pub(super) fn middle(&self) -> [f64; 2] {
        let [west, south, east, north] = self.edges.map(degrees).into_array();
        let middle = [f64::midpoint(south, north), f64::midpoint(west, east)];
        middle.map(|degrees| (degrees * 1e7).round() / 1e7)
    }

    /// Returns the box of the object with its margin, in degrees. The margin is clamped at the poles and at 180
    /// degrees.
    pub(super) fn bbox(&self) -> Edges<f64> {
        let (half_turn, pole) = (1_800_000_000, 900_000_000);
        let [west, south, east, north] = self.edges.into_array();
        let edges = Edges {
            west: west.saturating_sub(self.margin).max(west.min(-half_turn)),
            south: south.saturating_sub(self.margin).max(-pole),
            east: east.saturating_add(self.margin).min(east.max(half_turn)),
            north: north.saturating_add(self.margin).min(pole),
        };
        edges.map(degrees)
    }

    /// Returns the edges of the box in degrees as strings, in the order south, north, west, east.
    pub(super) fn bounds_texts(&self) -> [String; 4] {
        let [west, south, east, north] = self.bbox().into_array();
        [south, north, west, east].map(|edge| edge.to_string())
    }
}

/// A part of an address: its key, such as `city`, and its value.
type AddressField = (Cow<'static, str>, String);

/// The parts of an address from the house to the country, with the keys that clients of geocoders expect.
pub(super) struct AddressFields(Vec<AddressField>);

/// The prefix of the key of an ISO 3166-2 code. The key ends with the admin level of the area.
const CODE_KEY: &str = "ISO3166-2-lvl";

/// Returns the key of the city in an address.
fn city_key(kind: Option<&str>) -> &'static str {
    match kind {
        Some("town") => "town",
        Some("village") => "village",
        Some("hamlet") => "hamlet",
        Some("isolated_dwelling") => "isolated_dwelling",
        _ => "city",
    }
}

/// Returns the ISO 3166-2 codes of an answer's areas with admin levels in `levels`, the smallest area first.
fn iso_3166_2_fields(
    answer: &Answer<'_>,
    levels: RangeInclusive<u8>,
) -> impl Iterator<Item = AddressField> {
    let areas = answer.areas.iter().rev();
    areas.filter_map(move |area| {
        let level = area.admin_level.filter(|level| levels.contains(level))?;
        let key = format!("{CODE_KEY}{level}");
        Some((key.into(), area.code?.to_owned()))
    })
}

impl AddressFields {
    /// Creates the parts of an answer's address, without the parts whose rank is higher than `rank`, the rank of the
    /// subject.
    pub(super) fn of(answer: &Answer<'_>, rank: u8) -> Self {
        let address = &answer.address;
        let part = |key: &'static str, least: u8, text: Option<&str>| {
            let text = text.filter(|_| rank >= least)?;
            Some((Cow::Borrowed(key), text.to_owned()))
        };
        let codes =
            |least: u8, levels| iso_3166_2_fields(answer, levels).filter(move |_| rank >= least);
        let fine = [
            part("house_name", 30, address.house_name),
            part("house_number", 30, address.house_number.as_deref()),
            part("unit", 30, address.unit),
            part("block", 30, address.block_number),
            part("road", 26, address.street),
            part("place", 26, address.place),
            part("neighbourhood", 26, address.neighbourhood),
            part("suburb", 20, address.suburb),
            part(city_key(address.city_kind), 16, address.city),
        ];
        let last = [
            part("postcode", 16, address.postcode),
            part("country", 4, address.country),
            part("country_code", 4, address.country_code.as_deref()),
        ];
        let parts = fine.into_iter().flatten();
        let parts = parts.chain(codes(16, 7..=u8::MAX));
        let parts = parts.chain(part("county", 12, address.county));
        let parts = parts.chain(codes(12, 5..=6));
        let parts = parts.chain(part("state", 8, address.state));
        let parts = parts.chain(codes(8, 3..=4));
        let mut parts: Vec<AddressField> = parts.chain(last.into_iter().flatten()).collect();
        // Overlapping areas of one level have codes with the same key. Only the first of them stays, the code of the
        // smallest area.
        parts.dedup_by(|later, earlier| later.0 == earlier.0);
        Self(parts)
    }

    /// Returns the keys and the values of the parts.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, text)| (&**key, text.as_str()))
    }

    /// Returns the values of all parts except codes, joined with commas. Of consecutive areas with the same name, such
    /// as a city that is a state, only the first is shown.
    pub(super) fn display_name(&self) -> String {
        let is_shown = |key: &str| !key.starts_with(CODE_KEY) && key != "country_code";
        let is_area = |key: &str| matches!(key, "county" | "state" | "country");
        let mut texts: Vec<&str> = Vec::new();
        for (key, text) in self.iter().filter(|(key, _)| is_shown(key)) {
            if !(is_area(key) && texts.last() == Some(&text)) {
                texts.push(text);
            }
        }
        texts.join(", ")
    }
}

impl Serialize for AddressFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}
