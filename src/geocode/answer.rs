//! The answer to a question about a place.

use crate::geometry::Extent;
use crate::osm::{Location, ObjectKind};
use serde::{Serialize, Serializer};

/// The objects at a place, and the address that they make. Parts that are not there, or not near, are absent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Answer<'i> {
    /// The place.
    #[serde(serialize_with = "location")]
    pub query: Location,
    /// The answer in a line for a person; empty if nothing is known.
    pub label: String,
    /// The address that the rules compose.
    pub address: Address<'i>,
    /// The objects that the parts of the address come from.
    pub sources: Sources,
    /// The nearest objects.
    pub nearest: Nearest<'i>,
    /// The administrative areas that contain the place, the lowest `admin_level` first.
    pub areas: Vec<NamedArea<'i>>,
}

/// An address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Address<'i> {
    /// The house number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub house_number: Option<String>,
    /// The street.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub street: Option<&'i str>,
    /// The place that stands for a street: `addr:place`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<&'i str>,
    /// The postcode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub postcode: Option<&'i str>,
    /// A part of the city.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suburb: Option<&'i str>,
    /// The city, town or village.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub city: Option<&'i str>,
    /// The county or district.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub county: Option<&'i str>,
    /// The state or province.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'i str>,
    /// The code of the state or province, such as `DE-BW`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_code: Option<&'i str>,
    /// The country.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<&'i str>,
    /// The code of the country in two capital letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country_code: Option<&'i str>,
}

/// The objects that the parts of an address come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Sources {
    /// The source of the house number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub house_number: Option<NearObject>,
    /// The source of the street.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub street: Option<NearObject>,
    /// The source of the place that stands for a street.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<NearObject>,
    /// The source of the postcode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub postcode: Option<NearObject>,
    /// The source of the part of the city.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suburb: Option<NearObject>,
    /// The source of the city.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub city: Option<NearObject>,
    /// The source of the county.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub county: Option<NearObject>,
    /// The source of the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<NearObject>,
    /// The source of the country.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<NearObject>,
}

/// The nearest objects of each sort.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Nearest<'i> {
    /// The nearest object with a house number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<NearAddress<'i>>,
    /// The nearest street with a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub street: Option<NearStreet<'i>>,
    /// The nearest road without a name, if no street with a name is near.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub road: Option<NearRoad<'i>>,
    /// The nearest way along which house numbers are interpolated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpolation: Option<NearAddress<'i>>,
    /// The nearest place, if no administrative area says in which city the place is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<NearPlace<'i>>,
}

/// An object near a place.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct NearObject {
    /// The kind of the object.
    #[serde(rename = "type", serialize_with = "kind")]
    pub kind: ObjectKind,
    /// The id of the object.
    pub id: i64,
    /// The distance in metres; 0 inside of an area with an address.
    #[serde(serialize_with = "metres")]
    pub distance_m: f64,
    /// The box around the object, or around the part of it that is near; `None` unless the query asks for boxes.
    #[serde(skip)]
    pub extent: Option<Extent>,
}

/// An object with a house number.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct NearAddress<'i> {
    /// The object.
    #[serde(flatten)]
    pub object: NearObject,
    /// The house number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub house_number: Option<String>,
    /// The street: `addr:street`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub street: Option<&'i str>,
    /// The place that stands for a street: `addr:place`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<&'i str>,
}

/// A street.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct NearStreet<'i> {
    /// The object.
    #[serde(flatten)]
    pub object: NearObject,
    /// The name.
    pub name: &'i str,
}

/// A road without a name.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct NearRoad<'i> {
    /// The object.
    #[serde(flatten)]
    pub object: NearObject,
    /// The value of `highway`.
    pub highway: &'i str,
    /// The reference, such as `A 5`.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<&'i str>,
}

/// A node that is a city, a town, a village or the like.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct NearPlace<'i> {
    /// The object.
    #[serde(flatten)]
    pub object: NearObject,
    /// The value of `place`.
    pub place: &'i str,
    /// The name.
    pub name: &'i str,
}

/// An area that contains a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NamedArea<'i> {
    /// The kind of the object.
    #[serde(rename = "type", serialize_with = "kind")]
    pub object_kind: ObjectKind,
    /// The id of the object.
    pub id: i64,
    /// The box around the part of the area that contains the place.
    #[serde(skip)]
    pub extent: Extent,
    /// The level, from 2 for countries to 11; `None` if the object has none, or none that is a number.
    pub admin_level: Option<u8>,
    /// The name.
    pub name: &'i str,
    /// The sort of area: `administrative`.
    pub kind: &'static str,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn kind<S: Serializer>(kind: &ObjectKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

/// Metres with two digits.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn metres<S: Serializer>(metres: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((metres * 100.0).round() / 100.0)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn location<S: Serializer>(location: &Location, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Degrees {
        lat: f64,
        lon: f64,
    }
    let degrees = |e7: i32| f64::from(e7) / 1e7;
    Degrees {
        lat: degrees(location.lat_e7()),
        lon: degrees(location.lon_e7()),
    }
    .serialize(serializer)
}
