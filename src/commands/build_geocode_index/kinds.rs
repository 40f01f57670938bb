//! Decides which objects the index contains, based on their tags.

use super::street_names::{is_street_name_key, street_name};
use crate::engine::geometry_pass::is_area;
use crate::error::{FormatError, FormatResult};
use crate::geocode::{ItemTags, may_be_house_number, nonblank_tag, tag};
use crate::pbf::{Block, Element};

/// The values of `place` that the index keeps.
const PLACES: [&str; 9] = [
    "city",
    "town",
    "village",
    "hamlet",
    "isolated_dwelling",
    "suburb",
    "quarter",
    "neighbourhood",
    "borough",
];
/// The keys that give the class of an object with an address.
const CLASS_KEYS: [&str; 12] = [
    "amenity",
    "shop",
    "tourism",
    "office",
    "leisure",
    "craft",
    "healthcare",
    "historic",
    "club",
    "emergency",
    "aeroway",
    "man_made",
];
/// The keys that make an object an address, besides `addr:housenumber`.
const ADDRESS_KEYS: [&str; 4] = [
    "addr:housename",
    "addr:conscriptionnumber",
    "addr:streetnumber",
    "addr:block_number",
];
/// The keys of the ways that the index may contain. A way without any of these keys is not visited.
pub(super) const WAY_KEYS: &[&str] = &[
    "highway",
    "addr:housenumber",
    "addr:housename",
    "addr:conscriptionnumber",
    "addr:streetnumber",
    "addr:block_number",
    "addr:interpolation",
    "boundary",
    "building",
    "place",
];

/// The maximum number of characters of a key or a value. The OSM database has the same limit
/// (<https://wiki.openstreetmap.org/wiki/API_v0.6>). Without a limit, a value of several megabytes that thousands of
/// objects have would be stored thousands of times, in memory and in the index.
const MAX_CHARS: usize = 255;

/// Whether the key and the value of a tag are as short as the OSM database requires.
pub(super) fn is_short((key, value): &(&str, &str)) -> bool {
    let is_short = |text: &str| text.len() <= MAX_CHARS || text.chars().nth(MAX_CHARS).is_none();
    is_short(key) && is_short(value)
}

type BlockTags<'t, 'a> = &'t [(&'a str, &'a str)];

/// Whether a tag with this key is a name.
fn is_name_key(key: &str) -> bool {
    match key {
        "name" | "alt_name" | "official_name" | "short_name" | "int_name" | "loc_name" => true,
        _ => key.starts_with("name:"),
    }
}

/// Whether the index keeps a tag with this key if the object is an area or a place.
fn is_kept_area_key(key: &str) -> bool {
    match key {
        "admin_level" | "boundary" | "place" | "postal_code" | "population" | "ISO3166-1"
        | "ISO3166-1:alpha2" | "ISO3166-2" | "wikidata" | "border_type" | "linked_place" => true,
        _ => is_name_key(key),
    }
}

fn has_name(tags: BlockTags<'_, '_>) -> bool {
    nonblank_tag(tags, "name").is_some()
}

/// Returns the `addr:*` tags of an object, its `name`, and the tag that gives its class. Leaves out `addr:housenumber`,
/// and tags with a key in [`ADDRESS_KEYS`], if the value cannot be a house number.
pub(super) fn address_tags<'a>(tags: BlockTags<'_, 'a>) -> ItemTags<'a> {
    let class = CLASS_KEYS.iter().find(|key| tag(tags, key).is_some());
    let is_kept = |key: &str, value: &str| {
        let is_wanted = key.starts_with("addr:") || key == "name";
        (is_wanted || class.is_some_and(|class| *class == key))
            && (!is_address_key(key) || may_be_house_number(value))
    };
    let kept = tags.iter().filter(|(key, value)| is_kept(key, value));
    kept.copied().collect()
}

/// Returns the tags that the index keeps of an area or a place.
pub(super) fn area_tags<'a>(tags: BlockTags<'_, 'a>) -> ItemTags<'a> {
    let kept = tags.iter().filter(|(key, _)| is_kept_area_key(key));
    kept.copied().collect()
}

/// Returns the tags that the index keeps of a street. A street without `name` gets one of its other names as `name`.
pub(super) fn street_tags<'a>(tags: BlockTags<'_, 'a>) -> ItemTags<'a> {
    let is_kept = |key: &str, value: &str| match key {
        "name" => !value.trim().is_empty(),
        "highway" | "ref" | "postal_code" => true,
        "place" => value == "square",
        key => is_street_name_key(key),
    };
    let kept = tags.iter().filter(|(key, value)| is_kept(key, value));
    let mut kept: ItemTags<'a> = kept.copied().collect();
    if tag(&kept, "name").is_none()
        && let Some(name) = street_name(tags)
    {
        kept.push(("name", name));
    }
    kept
}

/// Returns the value of `place` if the object has a name and the index keeps that value.
pub(super) fn place_kind(tags: BlockTags<'_, '_>) -> Option<&'static str> {
    let place = tag(tags, "place").filter(|_| has_name(tags))?;
    PLACES.into_iter().find(|kind| *kind == place)
}

/// Whether an area with these tags is part of the answers for positions inside the area.
pub(super) fn is_wanted_area(tags: BlockTags<'_, '_>) -> bool {
    match tag(tags, "boundary") {
        Some("administrative") => has_name(tags),
        Some("postal_code") => tag(tags, "postal_code").is_some(),
        _ => place_kind(tags).is_some(),
    }
}

/// Whether a tag with this key makes an object an address.
fn is_address_key(key: &str) -> bool {
    key == "addr:housenumber" || ADDRESS_KEYS.contains(&key)
}

pub(super) fn is_address(tags: BlockTags<'_, '_>) -> bool {
    let mut tags = tags.iter();
    tags.any(|(key, value)| is_address_key(key) && may_be_house_number(value))
}

/// Whether house numbers are interpolated along a way.
pub(super) fn is_interpolation(tags: BlockTags<'_, '_>) -> bool {
    nonblank_tag(tags, "addr:interpolation").is_some_and(|rule| !rule.eq_ignore_ascii_case("no"))
}

/// Whether a way with this value of `highway` is kept even without a name; `None` if the value does not make the way a
/// street or a road. Planned streets, and objects that nobody travels on, have such values.
fn is_kept_without_name(highway: &str) -> Option<bool> {
    match highway {
        "motorway" | "motorway_link" | "trunk" | "trunk_link" | "primary" | "primary_link"
        | "secondary" | "tertiary" | "unclassified" | "residential" | "living_street"
        | "pedestrian" | "service" | "track" => Some(true),
        "secondary_link" | "tertiary_link" | "footway" | "path" | "cycleway" | "bridleway"
        | "steps" | "road" | "busway" => Some(false),
        _ => None,
    }
}

/// The kind of a way. A street has a name, and a road has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreetKind {
    Street,
    Road,
}

impl StreetKind {
    /// Returns the kind of a way with `highway` or `place=square`; `None` if the way is neither a street nor a road.
    pub(super) fn of(tags: BlockTags<'_, '_>) -> Option<Self> {
        let highway = tag(tags, "highway");
        let is_road = highway.and_then(is_kept_without_name);
        if (is_road.is_some() || is_square(tags)) && street_name(tags).is_some() {
            return Some(Self::Street);
        }
        is_road.filter(|is_road| *is_road).map(|_| Self::Road)
    }
}

fn is_square(tags: BlockTags<'_, '_>) -> bool {
    tag(tags, "place") == Some("square")
}

/// Whether a closed way with the tags of a street is an area.
pub(super) fn is_street_area(tags: BlockTags<'_, '_>) -> bool {
    tag(tags, "area") == Some("yes") || is_square(tags) && tag(tags, "highway").is_none()
}

/// Whether a multipolygon relation is a street with a name.
pub(super) fn is_street_relation(tags: BlockTags<'_, '_>) -> bool {
    tag(tags, "type") == Some("multipolygon") && StreetKind::of(tags) == Some(StreetKind::Street)
}

/// Whether an area is a building.
pub(super) fn is_building(tags: BlockTags<'_, '_>) -> bool {
    tag(tags, "building").is_some_and(|building| building != "no")
}

/// Returns, for each object of a block in file order, whether it is a relation whose area the index may contain.
pub(super) fn select_wanted_areas(block: &Block<'_>) -> FormatResult<Vec<bool>> {
    let mut wanted = Vec::new();
    block.try_for_each(|element| {
        wanted.push(match element {
            Element::Relation(relation) => {
                let tags: ItemTags<'_> = relation.tags().collect();
                is_area(relation.tags())
                    && (is_wanted_area(&tags)
                        || is_address(&tags)
                        || is_street_relation(&tags)
                        || is_building(&tags))
            }
            _ => false,
        });
        Ok::<(), FormatError>(())
    })?;
    Ok(wanted)
}
