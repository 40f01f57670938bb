//! Answers to `/reverse` as JSON and GeoJSON.

use super::reverse::{AnswerFormat, ReverseOptions};
use super::subject::{AddressFields, LICENCE, Subject};
use crate::error::{Error, Result};
use crate::geocode::Answer;
use serde::Serialize;
use serde_json::{Value, json};

/// A place in the form that clients of geocoders expect. Fields that the requested format does not have are left out.
#[derive(Serialize)]
struct PlaceJson<'a> {
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
    address: Option<AddressFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    boundingbox: Option<[String; 4]>,
}

/// A GeoJSON collection with a place as its only feature.
#[derive(Serialize)]
struct Collection<'a> {
    #[serde(rename = "type")]
    sort: &'static str,
    licence: &'static str,
    features: [PlaceFeature<'a>; 1],
}

#[derive(Serialize)]
struct PlaceFeature<'a> {
    #[serde(rename = "type")]
    sort: &'static str,
    properties: PlaceJson<'a>,
    bbox: [f64; 4],
    geometry: Value,
}

/// Encodes a value as JSON.
fn to_json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(Error::internal)
}

/// Returns the body of the response to a request.
pub(super) fn response(answer: &Answer<'_>, options: ReverseOptions) -> Result<String> {
    let Some(subject) = Subject::of(answer, options.zoom) else {
        return Ok(json!({"error": "Unable to geocode"}).to_string());
    };
    let parts = AddressFields::of(answer, subject.rank);
    let ([lat, lon], format) = (subject.middle(), options.format);
    let is_feature = format == AnswerFormat::GeoJson;
    let place = PlaceJson {
        place_id: subject.place_id(),
        licence: (!is_feature).then_some(LICENCE),
        osm_type: subject.kind.name(),
        osm_id: subject.id,
        lat: (!is_feature).then(|| lat.to_string()),
        lon: (!is_feature).then(|| lon.to_string()),
        class: (format == AnswerFormat::Json).then_some(subject.category),
        category: (format != AnswerFormat::Json).then_some(subject.category),
        sort: subject.sort,
        place_rank: subject.rank,
        importance: f64::from(31 - subject.rank) / 40.0,
        addresstype: subject.address_type,
        name: subject.name,
        display_name: parts.display_name(),
        address: options.has_address.then_some(parts),
        boundingbox: (!is_feature).then(|| subject.bounds_texts()),
    };
    if !is_feature {
        return to_json(&place);
    }
    to_json(&Collection {
        sort: "FeatureCollection",
        licence: LICENCE,
        features: [PlaceFeature {
            sort: "Feature",
            properties: place,
            bbox: subject.bbox().into_array(),
            geometry: json!({"type": "Point", "coordinates": [lon, lat]}),
        }],
    })
}
