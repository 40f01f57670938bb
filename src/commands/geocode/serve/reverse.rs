//! The parameters of `/reverse`. Other geocoders have the same parameters.

use super::subject::{ADDRESS_ZOOM, has_house};
use crate::error::Result;
use crate::geocode::{Answer, GeocodeIndex, QueryOptions};
use crate::geometry::parse_lon_lat;
use crate::osm::Location;
use std::collections::HashMap;

/// Parameters of other geocoders that ask for more than an address. A request with one of them is refused, unless its
/// value turns the parameter off.
const REFUSED: [&str; 8] = [
    "namedetails",
    "extratags",
    "entrances",
    "debug",
    "polygon_geojson",
    "polygon_kml",
    "polygon_svg",
    "polygon_text",
];
/// Parameters of other geocoders that are refused with any value. A callback would let pages of other origins use the
/// answers even if the service does not allow these origins.
const CALLBACKS: [&str; 2] = ["json_callback", "callback"];

/// The parameters of a request.
pub(super) type Parameters = HashMap<String, String>;

/// Returns the place in the parameters `lat` and `lon`.
pub(super) fn place_of(parameters: &Parameters) -> Result<Location, String> {
    let parameter = |name: &str| {
        let value = parameters.get(name);
        value.ok_or_else(|| format!("parameter '{name}' is missing"))
    };
    let point = parse_lon_lat(parameter("lon")?, parameter("lat")?)?;
    let place = Location::new(point.lat_e7, point.lon_e7);
    place.ok_or_else(|| "this place is not on the earth".to_owned())
}

/// Returns query options with the languages of the parameter `accept-language`, in order of preference. If this
/// parameter is missing, the languages are those of the header `Accept-Language`.
pub(super) fn query_options_of(parameters: &Parameters, header: Option<&str>) -> QueryOptions {
    let list = parameters.get("accept-language").map(String::as_str);
    let list = list.or(header).unwrap_or_default();
    QueryOptions {
        languages: QueryOptions::parse_languages(list),
        has_boxes: true,
        resolves_names: false,
    }
}

/// Returns the value of a parameter that is on or off; `None` if it is neither.
fn parse_switch(value: &str) -> Option<bool> {
    match value {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// Fails if a list of layers has an unknown layer or lacks the layer `address`.
fn check_layers(list: &str) -> Result<(), String> {
    let mut layers = list.split(',').map(str::trim);
    if let Some(other) = layers.find(|layer| !matches!(*layer, "address" | "poi")) {
        return Err(format!(
            "parameter 'layer' has the unknown layer '{other}': the layers are address and poi"
        ));
    }
    if list.split(',').any(|layer| layer.trim() == "address") {
        Ok(())
    } else {
        Err("parameter 'layer' must have the layer address".to_owned())
    }
}

/// Fails if the parameters ask for more than the service can answer.
fn refuse_unsupported_parameters(parameters: &Parameters) -> Result<(), String> {
    let given = |name: &str| {
        let value = parameters.get(name).map(String::as_str);
        value.filter(|value| !value.is_empty())
    };
    let is_asked =
        |name: &&&str| given(name).is_some_and(|value| parse_switch(value) != Some(false));
    if let Some(name) = REFUSED.iter().find(is_asked) {
        return Err(format!(
            "parameter '{name}' is not supported: the only value is 0"
        ));
    }
    if let Some(name) = CALLBACKS.iter().find(|name| given(name).is_some()) {
        return Err(format!("parameter '{name}' is not supported: leave it out"));
    }
    let threshold = given("polygon_threshold").map(str::parse::<f64>);
    if threshold.is_some_and(|threshold| threshold != Ok(0.0)) {
        return Err("parameter 'polygon_threshold' is not supported: the only value is 0".into());
    }
    given("layer").map_or(Ok(()), check_layers)
}

/// The format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerFormat {
    Json,
    JsonV2,
    GeoJson,
    GeocodeJson,
    Xml,
}

/// The options of a request, apart from the place and the languages.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReverseOptions {
    pub format: AnswerFormat,
    pub zoom: u8,
    pub has_address: bool,
}

impl ReverseOptions {
    pub(super) fn of(parameters: &Parameters) -> Result<Self, String> {
        let get = |name: &str| parameters.get(name).map(String::as_str);
        let format = match get("format") {
            None | Some("jsonv2") => AnswerFormat::JsonV2,
            Some("json") => AnswerFormat::Json,
            Some("geojson") => AnswerFormat::GeoJson,
            Some("geocodejson") => AnswerFormat::GeocodeJson,
            Some("xml") => AnswerFormat::Xml,
            Some(_) => {
                let formats = "json, jsonv2, geojson, geocodejson or xml";
                return Err(format!("parameter 'format' must be {formats}"));
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
            None | Some("") => true,
            Some(value) => {
                let has_address = parse_switch(value);
                has_address.ok_or_else(|| "parameter 'addressdetails' must be 0 or 1".to_owned())?
            }
        };
        refuse_unsupported_parameters(parameters)?;
        Ok(Self {
            format,
            zoom,
            has_address,
        })
    }
}

/// Returns the answer to a query. Also looks up the objects with the names in the address, if `zoom` is below
/// [`ADDRESS_ZOOM`] or the answer has no house.
pub(super) fn answer_of<'i>(
    index: &'i GeocodeIndex,
    place: Location,
    query: QueryOptions,
    zoom: u8,
) -> Result<Answer<'i>> {
    if zoom >= ADDRESS_ZOOM {
        let answer = index.reverse(place, &query)?;
        if has_house(&answer) {
            return Ok(answer);
        }
    }
    let query = QueryOptions {
        resolves_names: true,
        ..query
    };
    index.reverse(place, &query)
}
