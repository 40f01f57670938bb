//! Answers to `/reverse` as GeocodeJSON, version 0.1.0 (<https://github.com/geocoders/geocodejson-spec>).

use super::reverse::ReverseOptions;
use super::subject::{AddressFields, LICENCE, Subject, degrees};
use crate::geocode::Answer;
use serde_json::{Map, Value, json};

/// Returns the body of the response to a request.
pub(super) fn response(answer: &Answer<'_>, options: ReverseOptions) -> String {
    let Some(subject) = Subject::of(answer, options.zoom) else {
        return json!({"error": "Unable to geocode"}).to_string();
    };
    let [lat, lon] = subject.middle();
    let [query_lat, query_lon] = [answer.query.lat_e7(), answer.query.lon_e7()].map(degrees);
    let query = format!("{query_lat},{query_lon}");
    json!({
        "type": "FeatureCollection",
        "geocoding": {
            "version": "0.1.0",
            "attribution": LICENCE,
            "licence": "ODbL",
            "query": query,
        },
        "features": [{
            "type": "Feature",
            "properties": {"geocoding": properties(&subject, answer, options.has_address)},
            "geometry": {"type": "Point", "coordinates": [lon, lat]},
        }],
    })
    .to_string()
}

/// Returns the member `geocoding` of the properties of a feature.
fn properties(subject: &Subject<'_>, answer: &Answer<'_>, has_address: bool) -> Map<String, Value> {
    let parts = AddressFields::of(answer, subject.rank);
    let mut members = Map::new();
    let mut put = |key: &str, value: Value| members.insert(key.to_owned(), value);
    put("place_id", subject.place_id().into());
    put("osm_type", subject.kind.name().into());
    put("osm_id", subject.id.into());
    put("osm_key", subject.category.into());
    put("osm_value", subject.sort.into());
    put("type", type_of_rank(subject.rank).into());
    put("label", parts.display_name().into());
    if !subject.name.is_empty() {
        put("name", subject.name.into());
    }
    if has_address {
        for (key, text) in parts.iter() {
            if let Some(key) = member_name_for(key) {
                put(key, text.into());
            }
        }
        let levels = answer.areas.iter().filter_map(|area| {
            let level = area.admin_level?;
            Some((format!("level{level}"), Value::from(area.name)))
        });
        put("admin", levels.collect::<Map<_, _>>().into());
    }
    members
}

/// Returns the GeocodeJSON type of a subject with the given rank.
const fn type_of_rank(rank: u8) -> &'static str {
    match rank {
        30.. => "house",
        26..30 => "street",
        20..26 => "district",
        16..20 => "city",
        12..16 => "county",
        8..12 => "state",
        0..8 => "country",
    }
}

/// Returns the GeocodeJSON member for a part of an address; `None` if the format has no such member.
fn member_name_for(part: &str) -> Option<&'static str> {
    Some(match part {
        "house_number" => "housenumber",
        "road" => "street",
        "place" | "neighbourhood" => "locality",
        "suburb" => "district",
        "city" | "town" | "village" | "hamlet" | "isolated_dwelling" => "city",
        "county" => "county",
        "state" => "state",
        "postcode" => "postcode",
        "country" => "country",
        "country_code" => "country_code",
        _ => return None,
    })
}
