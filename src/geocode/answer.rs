//! The answer to a query.

use crate::geometry::Extent;
use crate::osm::{Location, ObjectKind};

/// The address of a location, and the objects from which it is composed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Answer<'i> {
    /// The location.
    pub query: Location,
    /// The address in one line; empty if nothing is near.
    pub label: String,
    /// The object that has the address.
    pub object: Option<AnsweringObject<'i>>,
    /// The address.
    pub address: Address<'i>,
    /// The objects from which the parts of the address come.
    pub sources: Sources,
    /// The street of the address; `None` unless `QueryOptions::resolves_names` is set.
    pub street: Option<NearStreet<'i>>,
    /// The nearest objects.
    pub nearest: Nearest<'i>,
    /// The administrative areas that contain the location, the lowest `admin_level` first.
    pub areas: Vec<NamedArea<'i>>,
}

/// An address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Address<'i> {
    /// The house number.
    pub house_number: Option<String>,
    /// The name of the house.
    pub house_name: Option<&'i str>,
    /// The number of a flat, a room or the like.
    pub unit: Option<&'i str>,
    /// The number of the block of houses, as in Japanese addresses.
    pub block_number: Option<&'i str>,
    /// The number of the house in its part of the town, in countries whose houses have two numbers.
    pub conscription_number: Option<&'i str>,
    /// The number of the house in its street, in countries whose houses have two numbers.
    pub street_number: Option<&'i str>,
    /// The street.
    pub street: Option<&'i str>,
    /// The place that replaces a street (`addr:place` or `addr:hamlet`).
    pub place: Option<&'i str>,
    /// The neighbourhood that the address names.
    pub neighbourhood: Option<&'i str>,
    /// The postcode.
    pub postcode: Option<&'i str>,
    /// A part of the city.
    pub suburb: Option<&'i str>,
    /// The city, town or village.
    pub city: Option<&'i str>,
    /// The kind of the city, which is `city`, `town`, `village`, or another value of `place`.
    pub city_kind: Option<&'i str>,
    /// The county or district.
    pub county: Option<&'i str>,
    /// The state or province.
    pub state: Option<&'i str>,
    /// The code of the state or province, such as `DE-BW`.
    pub state_code: Option<&'i str>,
    /// The country.
    pub country: Option<&'i str>,
    /// The ISO 3166-1 code of the country, which has two letters in lower case.
    pub country_code: Option<String>,
}

/// The object that has the address of an [`Answer`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct AnsweringObject<'i> {
    /// The object, with its distance from the location.
    pub object: NearObject,
    /// The key and the value of the tag that classifies the object, such as `amenity` and `townhall`.
    pub class: Option<(&'i str, &'i str)>,
    /// The name of the object.
    pub name: Option<&'i str>,
}

/// The objects from which the parts of an address come.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Sources {
    /// The source of the house number.
    pub house_number: Option<NearObject>,
    /// The source of the street.
    pub street: Option<NearObject>,
    /// The source of the place that replaces a street.
    pub place: Option<NearObject>,
    /// The source of the postcode.
    pub postcode: Option<NearObject>,
    /// The source of the part of the city.
    pub suburb: Option<NearObject>,
    /// The source of the city.
    pub city: Option<NearObject>,
    /// The source of the county.
    pub county: Option<NearObject>,
    /// The source of the state.
    pub state: Option<NearObject>,
    /// The source of the country.
    pub country: Option<NearObject>,
}

/// The nearest object of each kind.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Nearest<'i> {
    /// The nearest object with a house number.
    pub address: Option<NearAddress<'i>>,
    /// The nearest street with a name.
    pub street: Option<NearStreet<'i>>,
    /// The nearest road without a name, if no street with a name is near.
    pub road: Option<NearRoad<'i>>,
    /// The nearest way along which house numbers are interpolated.
    pub interpolation: Option<NearAddress<'i>>,
    /// The nearest place node, if neither the address nor an administrative area has a city.
    pub place: Option<NearPlace<'i>>,
}

/// An object near the location.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct NearObject {
    /// The kind of the object.
    pub kind: ObjectKind,
    /// The id of the object.
    pub id: i64,
    /// The distance from the location to the object in metres; 0 if the object is an area that contains the location.
    pub distance_m: f64,
    /// The bounding box of the object, or of the part of it that is near. Boundaries and other areas that can contain
    /// places always have a box. Other objects have a box only if `QueryOptions::has_boxes` is set.
    pub extent: Option<Extent>,
}

/// An object with a house number.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NearAddress<'i> {
    /// The object, with its distance from the location.
    pub object: NearObject,
    /// The house number.
    pub house_number: Option<String>,
    /// The street (`addr:street`).
    pub street: Option<&'i str>,
    /// The place that replaces a street (`addr:place`).
    pub place: Option<&'i str>,
}

/// A street.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NearStreet<'i> {
    /// The object, with its distance from the location.
    pub object: NearObject,
    /// The name of the object.
    pub name: &'i str,
    /// The value of `highway`; `None` for a square without this tag.
    pub highway: Option<&'i str>,
    /// The reference of the street, such as `B 3`.
    pub reference: Option<&'i str>,
}

/// A road without a name.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NearRoad<'i> {
    /// The object, with its distance from the location.
    pub object: NearObject,
    /// The value of `highway`.
    pub highway: &'i str,
    /// The reference of the road, such as `A 5`.
    pub reference: Option<&'i str>,
}

/// A node that is a city, a town, a village or the like.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NearPlace<'i> {
    /// The object, with its distance from the location.
    pub object: NearObject,
    /// The value of `place`, which is the kind of the place.
    pub place: &'i str,
    /// The name of the object.
    pub name: &'i str,
}

/// An area that contains the location.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedArea<'i> {
    /// The kind of the object.
    pub object_kind: ObjectKind,
    /// The id of the object.
    pub id: i64,
    /// The bounding box of the part of the area that contains the location.
    pub extent: Extent,
    /// The value of `admin_level`, from 2 for countries to 11; `None` if it is absent or not a number.
    pub admin_level: Option<u8>,
    /// The name of the object.
    pub name: &'i str,
    /// The ISO 3166-2 code of the area, such as `DE-BW`.
    pub code: Option<&'i str>,
    /// The kind of the area. It is always `administrative`.
    pub kind: &'static str,
}
