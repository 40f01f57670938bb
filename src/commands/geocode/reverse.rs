//! The answers of the service to `/reverse`, with the parameters and the fields that clients of geocoders know.

use crate::error::Error;
use crate::geocode::{Address, Answer, NamedArea, NearObject, QueryOptions};
use crate::geometry::point_of_text;
use crate::osm::{Location, ObjectKind};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::collections::HashMap;

/// The terms under which answers may be used.
const LICENCE: &str =
    "Data © OpenStreetMap contributors, ODbL 1.0. https://www.openstreetmap.org/copyright";
/// The value of `zoom` for an address, which is the default.
const ADDRESS_ZOOM: u8 = 18;
/// The least value of `zoom` for a street.
const STREET_ZOOM: u8 = 16;

/// Parameters that change the answers of other geocoders, and the value that asks for what this one answers.
const REFUSED: [(&str, &str); 9] = [
    ("namedetails", "0"),
    ("extratags", "0"),
    ("entrances", "0"),
    ("polygon_geojson", "0"),
    ("polygon_kml", "0"),
    ("polygon_svg", "0"),
    ("polygon_text", "0"),
    ("layer", "address"),
    ("json_callback", ""),
];

/// The parameters of a request.
pub(super) type Parameters = HashMap<String, String>;

/// A place in the parameters `lat` and `lon`.
pub(super) fn place_of(parameters: &Parameters) -> Result<Location, String> {
    let parameter = |name: &str| {
        let value = parameters.get(name);
        value.ok_or_else(|| format!("parameter '{name}' is missing"))
    };
    let point = point_of_text(parameter("lon")?, parameter("lat")?)?;
    let place = Location::new(point.lat_e7, point.lon_e7);
    place.ok_or_else(|| "this place is not on the earth".to_owned())
}

/// The languages of the parameter `accept-language` or, without one, of the header `Accept-Language`, the best first.
pub(super) fn languages_of(parameters: &Parameters, header: Option<&str>) -> QueryOptions {
    let list = parameters.get("accept-language").map(String::as_str);
    let list = list.or(header).unwrap_or_default();
    let weighted = list.split(',').map(|entry| {
        let (language, rest) = entry.split_once(';').unwrap_or((entry, ""));
        let weight = rest.trim().strip_prefix("q=");
        let weight = weight.and_then(|weight| weight.parse::<f32>().ok());
        (language.trim(), weight.unwrap_or(1.0))
    });
    let is_language = |(language, _): &(&str, f32)| !language.is_empty() && *language != "*";
    let mut weighted: Vec<(&str, f32)> = weighted.filter(is_language).take(16).collect();
    weighted.sort_by(|one, other| other.1.total_cmp(&one.1));
    let mut languages: Vec<String> = Vec::new();
    for (language, _) in weighted {
        // Names are tagged with languages, seldom with regions.
        let plain = language.split('-').next().unwrap_or(language);
        for language in [language, plain] {
            if !languages.iter().any(|known| known == language) {
                languages.push(language.to_owned());
            }
        }
    }
    QueryOptions {
        languages,
        has_boxes: true,
    }
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    JsonV2,
    GeoJson,
}

/// The choices of a request, besides place and languages.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReverseOptions {
    format: Format,
    zoom: u8,
    has_address: bool,
}

impl ReverseOptions {
    pub(super) fn of(parameters: &Parameters) -> Result<Self, String> {
        let get = |name: &str| parameters.get(name).map(String::as_str);
        let format = match get("format") {
            None | Some("jsonv2") => Format::JsonV2,
            Some("json") => Format::Json,
            Some("geojson") => Format::GeoJson,
            Some(_) => {
                return Err("parameter 'format' must be json, jsonv2 or geojson".to_owned());
            }
        };
        let zoom = match get("zoom") {
            None | Some("") => ADDRESS_ZOOM,
            Some(text) => {
                let zoom = text.parse::<i64>();
                let zoom =
                    zoom.map_err(|_| "parameter 'zoom' must be a number from 0 to 18".to_owned());
                zoom?.clamp(0, ADDRESS_ZOOM.into()) as u8
            }
        };
        let has_address = match get("addressdetails") {
            None | Some("" | "1") => true,
            Some("0") => false,
            Some(_) => return Err("parameter 'addressdetails' must be 0 or 1".to_owned()),
        };
        let refused = REFUSED
            .iter()
            .find(|(name, no)| get(name).is_some_and(|value| !value.is_empty() && value != *no));
        if let Some((name, no)) = refused {
            let hint = match *no {
                "" => "leave it out".to_owned(),
                no => format!("the only value is {no}"),
            };
            return Err(format!("parameter '{name}' is not supported: {hint}"));
        }
        Ok(Self {
            format,
            zoom,
            has_address,
        })
    }
}

/// The object that answers a request, and what it is.
struct Subject<'a> {
    kind: ObjectKind,
    id: i64,
    /// West, south, east, north in 1e-7 degree.
    edges: [i32; 4],
    category: &'a str,
    sort: &'a str,
    address_type: &'a str,
    rank: u8,
    name: &'a str,
}

impl<'a> Subject<'a> {
    fn object(object: &NearObject, types: [&'a str; 3], rank: u8, name: &'a str) -> Self {
        let [category, sort, address_type] = types;
        // The service asks for boxes.
        let [south, west, north, east] = object.extent.map_or([0; 4], |extent| extent.edges());
        Self {
            kind: object.kind,
            id: object.id,
            edges: [west, south, east, north],
            category,
            sort,
            address_type,
            rank,
            name,
        }
    }

    /// The object of an answer for a value of `zoom`.
    fn of(answer: &'a Answer<'_>, zoom: u8) -> Option<Self> {
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
            let types = ["highway", "unclassified", "road"];
            let name = road.reference.unwrap_or_default();
            return Some(Self::object(&road.object, types, 26, name));
        }
        Self::larger(answer, zoom)
    }

    /// The finest part larger than a street that a value of `zoom` names, by whatever rule it is known.
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
                let types = match is_area {
                    true => ["boundary", "administrative", kind],
                    false => ["place", kind, kind],
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

/// The parts of an address by the names that clients know, the finest first.
struct Parts(Vec<(&'static str, String)>);

impl Parts {
    /// The parts that are not finer than a subject with the given rank.
    fn of(address: &Address<'_>, rank: u8) -> Self {
        let part = |key, least: u8, text: Option<&str>| {
            let text = text.filter(|_| rank >= least)?;
            Some((key, text.to_owned()))
        };
        let city_key = match address.city_kind {
            Some("town") => "town",
            Some("village" | "hamlet" | "isolated_dwelling") => "village",
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

    /// The parts in a line, without codes.
    fn display_name(&self) -> String {
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

/// A place as clients know it. Members that a format does not have are absent.
#[derive(Serialize)]
struct Place<'a> {
    place_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    licence: Option<&'static str>,
    osm_type: &'static str,
    osm_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lat: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lon: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<&'a str>,
    #[serde(rename = "type")]
    sort: &'a str,
    place_rank: u8,
    importance: f64,
    addresstype: &'a str,
    name: &'a str,
    display_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<Parts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    boundingbox: Option<[String; 4]>,
}

/// A place as a collection of one feature.
#[derive(Serialize)]
struct Collection<'a> {
    #[serde(rename = "type")]
    sort: &'static str,
    licence: &'static str,
    features: [Feature<'a>; 1],
}

#[derive(Serialize)]
struct Feature<'a> {
    #[serde(rename = "type")]
    sort: &'static str,
    properties: Place<'a>,
    bbox: [f64; 4],
    geometry: Value,
}

fn degrees(e7: i32) -> f64 {
    f64::from(e7) / 1e7
}

fn text(value: &impl Serialize) -> crate::error::Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Internal(error.to_string()))
}

/// The answer to a request, as JSON.
pub(super) fn response(
    answer: &Answer<'_>,
    options: ReverseOptions,
) -> crate::error::Result<String> {
    let Some(subject) = Subject::of(answer, options.zoom) else {
        return Ok(json!({"error": "Unable to geocode"}).to_string());
    };
    let parts = Parts::of(&answer.address, subject.rank);
    let [west, south, east, north] = subject.edges.map(degrees);
    let middle = [f64::midpoint(south, north), f64::midpoint(west, east)];
    let middle = middle.map(|degrees| (degrees * 1e7).round() / 1e7);
    let format = options.format;
    let is_feature = format == Format::GeoJson;
    let edges = [south, north, west, east].map(|edge| edge.to_string());
    let place = Place {
        // Ids of objects with their kinds: stable, unlike those of databases.
        place_id: subject.id.wrapping_mul(4).wrapping_add(subject.kind as i64),
        licence: (!is_feature).then_some(LICENCE),
        osm_type: subject.kind.name(),
        osm_id: subject.id,
        lat: (!is_feature).then(|| middle[0].to_string()),
        lon: (!is_feature).then(|| middle[1].to_string()),
        class: (format == Format::Json).then_some(subject.category),
        category: (format != Format::Json).then_some(subject.category),
        sort: subject.sort,
        place_rank: subject.rank,
        importance: f64::from(31 - subject.rank) / 40.0,
        addresstype: subject.address_type,
        name: subject.name,
        display_name: parts.display_name(),
        address: options.has_address.then_some(parts),
        boundingbox: (!is_feature).then_some(edges),
    };
    if !is_feature {
        return text(&place);
    }
    text(&Collection {
        sort: "FeatureCollection",
        licence: LICENCE,
        features: [Feature {
            sort: "Feature",
            properties: place,
            bbox: [west, south, east, north],
            geometry: json!({"type": "Point", "coordinates": [middle[1], middle[0]]}),
        }],
    })
}
