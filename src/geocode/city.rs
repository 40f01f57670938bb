//! Finding the city, town or village among the areas that contain a query point.

use super::area::Area;
use super::countries::{has_own_levels, municipality_levels, usual_levels};
use super::item::{CENTRE, KeyNumber, LABEL};

/// The values of `place` for settlements.
const SETTLEMENTS: [&str; 3] = ["city", "town", "village"];
/// The values of `place` for parts of municipalities, and for areas that are larger than municipalities.
const NO_MUNICIPALITIES: [&str; 12] = [
    "suburb",
    "borough",
    "quarter",
    "neighbourhood",
    "city_block",
    "district",
    "county",
    "province",
    "state",
    "region",
    "country",
    "island",
];

/// Returns the kind of settlement that a value of `place` or `border_type` names.
pub(super) fn settlement(value: &str) -> Option<&'static str> {
    let mut values = value.split(';').map(str::trim);
    values.find_map(|value| SETTLEMENTS.into_iter().find(|kind| *kind == value))
}

/// The kinds of settlement that the tags and the members of a boundary indicate.
struct Roles<'a, 'i> {
    area: &'a Area<'i>,
    level: u8,
    /// The kind of settlement that the tags of the boundary indicate.
    own: Option<&'static str>,
    /// The kind of settlement that the label node indicates.
    label: Option<&'static str>,
    /// The kind of settlement that the `admin_centre` node indicates.
    centre: Option<&'static str>,
    /// Whether the tags or the label node show that the boundary is not that of a municipality.
    is_other: bool,
}

impl<'a, 'i> Roles<'a, 'i> {
    fn of(area: &'a Area<'i>) -> Option<Self> {
        let level = area.level.filter(|level| *level > 2)?;
        if !area.is_administrative {
            return None;
        }
        const KEYS: [KeyNumber; 5] = [
            KeyNumber::PLACE,
            KeyNumber::of("linked_place"),
            KeyNumber::of("border_type"),
            KeyNumber::of(LABEL),
            KeyNumber::of(CENTRE),
        ];
        let [place, linked, border, label, centre] = area.tags(KEYS);
        let kind = |value: Option<&str>| value.and_then(settlement);
        let is_other =
            |value: Option<&str>| value.is_some_and(|value| NO_MUNICIPALITIES.contains(&value));
        Some(Self {
            area,
            level,
            own: kind(place).or(kind(linked)).or(kind(border)),
            label: kind(label),
            centre: kind(centre),
            is_other: is_other(place) || is_other(linked) || place.is_none() && is_other(label),
        })
    }

    fn kind(&self) -> Option<&'static str> {
        self.own.or(self.label).or(self.centre)
    }
}

/// Returns the boundary of the settlement, and its kind, which is `city`, `town` or `village`. `areas` must be in the
/// order of their levels.
///
/// Ignores boundaries within a municipality, because they are its parts, whatever their tags. Prefers a boundary whose
/// own tags indicate a settlement, then a boundary at a level of municipalities. In a known country, a label node
/// counts less than the level, because the label of a province may be its capital. An `admin_centre` node always counts
/// least.
pub(super) fn city<'a, 'i>(
    areas: &'a [Area<'i>],
    country_code: Option<&str>,
) -> Option<(&'a Area<'i>, &'static str)> {
    let boundaries: Vec<Roles<'a, 'i>> = areas.iter().filter_map(Roles::of).collect();
    let of_country = municipality_levels(country_code);
    let levels = of_country.unwrap_or(usual_levels());
    let at_level = |level: &u8| {
        let mut boundaries = boundaries.iter();
        boundaries.find(|area| area.level == *level && !area.is_other)
    };
    let municipality = levels.iter().find_map(at_level);
    let reaches = |area: &&Roles<'_, '_>| {
        municipality.is_none_or(|municipality| area.level <= municipality.level)
    };
    // The order is from the highest level to the lowest. In `boundaries`, the lowest level comes first.
    let mut around = boundaries.iter().rev().filter(reaches);
    let is_role = |area: &&Roles<'_, '_>| {
        area.own.is_some()
            || area.label.is_some() && (municipality.is_none() || of_country.is_none())
    };
    let by_role = around.clone().find(is_role);
    let by_centre = || around.find(|area| area.centre.is_some() && !area.is_other);
    let found = by_role.or(municipality).or_else(by_centre)?;
    Some((found.area, found.kind().unwrap_or("city")))
}

/// Returns the boundary to use as the city where neither `city` nor a place node gives one. Returns `None` in a country
/// whose levels of municipalities are known, because boundaries at other levels of that country are wards, parishes or
/// districts.
pub(super) fn guess<'a, 'i>(
    areas: &'a [Area<'i>],
    country_code: Option<&str>,
) -> Option<&'a Area<'i>> {
    if has_own_levels(country_code) {
        return None;
    }
    let boundaries: Vec<Roles<'a, 'i>> = areas.iter().filter_map(Roles::of).collect();
    let at = |level: u8| {
        let mut boundaries = boundaries.iter();
        boundaries.find(|area| area.level == level && !area.is_other)
    };
    [8, 10, 7].into_iter().find_map(at).map(|found| found.area)
}

/// Returns the kind of the settlement with the given name among `areas`.
pub(super) fn kind_of_name(areas: &[Area<'_>], name: &str) -> Option<&'static str> {
    let with_name = areas
        .iter()
        .rev()
        .filter(|area| area.tag(KeyNumber::NAME) == Some(name));
    let kind = |area| Roles::of(area).and_then(|roles| roles.kind());
    with_name.filter_map(kind).next()
}

/// Returns a boundary that `is_named` accepts, and the kind of its settlement. The tags or the label node of the
/// boundary must indicate a settlement, or the boundary must be at a level of municipalities in the country.
pub(super) fn city_named<'a, 'i>(
    areas: &'a [Area<'i>],
    country_code: Option<&str>,
    is_named: impl Fn(&Area<'i>) -> bool,
) -> Option<(&'a Area<'i>, &'static str)> {
    let levels = municipality_levels(country_code).unwrap_or(usual_levels());
    let named = areas.iter().rev().filter(|area| is_named(area));
    let mut boundaries = named.filter_map(Roles::of);
    let found = boundaries.find(|area| {
        let is_municipality = levels.contains(&area.level) && !area.is_other;
        area.own.or(area.label).is_some() || is_municipality
    })?;
    Some((found.area, found.kind().unwrap_or("city")))
}
