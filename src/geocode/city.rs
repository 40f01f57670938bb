//! Finds the city, town or village among the areas that contain a query point.

use super::area::Area;
use super::countries::{USUAL_LEVELS, has_known_municipality_levels, municipality_levels};
use super::item::{CENTRE, KeyNumber, LABEL, NAMESAKE};

/// The values of `place` for settlements.
const SETTLEMENTS: [&str; 3] = ["city", "town", "village"];
/// The values of `place` for parts of municipalities.
const PARTS: [&str; 5] = [
    "suburb",
    "borough",
    "quarter",
    "neighbourhood",
    "city_block",
];
/// The values of `place` for areas that are larger than municipalities.
const LARGER: [&str; 7] = [
    "district", "county", "province", "state", "region", "country", "island",
];

/// Returns the kind of settlement that a value of `place` or `border_type` names.
pub(super) fn settlement_kind(value: &str) -> Option<&'static str> {
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
    /// The kind of the city that lies within the boundary and has the name of the boundary.
    namesake: Option<&'static str>,
    /// The levels of the boundaries that contain the node of the namesake but have other names. Each bit stands for a
    /// level.
    levels_of_parts: u16,
    /// Whether the tags or the label node show that the boundary is a part of a municipality.
    is_part: bool,
    /// Whether the tags or the label node show that the boundary is larger than a municipality.
    is_larger: bool,
}

/// Parses a value of [`NAMESAKE`]: the kind of settlement, and a set of levels.
fn parse_namesake(value: &str) -> (Option<&'static str>, u16) {
    let mut values = value.split(';');
    let kind = values.next().and_then(settlement_kind);
    let levels = values.filter_map(|level| 1u16.checked_shl(level.parse().ok()?));
    (kind, levels.fold(0, |all, level| all | level))
}

impl<'a, 'i> Roles<'a, 'i> {
    /// Reads the roles from the tags of a boundary; `None` for an area that is not an administrative boundary within a
    /// country.
    fn of(area: &'a Area<'i>) -> Option<Self> {
        let level = area.level.filter(|level| *level > 2)?;
        if !area.is_administrative {
            return None;
        }
        const KEYS: [KeyNumber; 6] = [
            KeyNumber::PLACE,
            KeyNumber::of("linked_place"),
            KeyNumber::of("border_type"),
            KeyNumber::of(LABEL),
            KeyNumber::of(CENTRE),
            KeyNumber::of(NAMESAKE),
        ];
        let [place, linked, border, label, centre, named] = area.tags(KEYS);
        let kind = |value: Option<&str>| value.and_then(settlement_kind);
        let is_in = |values: &[&str]| {
            let has = |value: Option<&str>| value.is_some_and(|value| values.contains(&value));
            has(place) || has(linked) || place.is_none() && has(label)
        };
        let (namesake, levels_of_parts) = named.map_or((None, 0), parse_namesake);
        Some(Self {
            area,
            level,
            own: kind(place).or(kind(linked)).or(kind(border)),
            label: kind(label),
            centre: kind(centre),
            namesake: namesake.filter(|_| !is_in(&PARTS)),
            levels_of_parts,
            is_part: is_in(&PARTS),
            is_larger: is_in(&LARGER),
        })
    }

    /// Returns the kind of settlement that the tags, the members or the namesake of the boundary indicate.
    fn kind(&self) -> Option<&'static str> {
        let of_members = self.own.or(self.label).or(self.centre);
        of_members.or(self.namesake)
    }

    /// Whether the boundary is that of a part of a municipality, or of an area larger than a municipality.
    const fn is_part_or_above_municipality(&self) -> bool {
        self.is_part || self.is_larger
    }

    /// Whether boundaries at `level` are parts of the city that has the name of this boundary.
    fn is_divided_at(&self, level: u8) -> bool {
        let bit = 1u16.checked_shl(level.into()).unwrap_or(0);
        self.namesake.is_some() && self.levels_of_parts & bit != 0
    }
}

/// The boundaries around a place, in the order of their levels.
struct CityBoundaries<'a, 'i> {
    all: Vec<Roles<'a, 'i>>,
    /// The levels of municipalities in the country, or the usual levels if they are not known.
    levels: &'static [u8],
    /// Whether the country is known.
    is_country_known: bool,
}

impl<'a, 'i> CityBoundaries<'a, 'i> {
    fn of(areas: &'a [Area<'i>], country_code: Option<&str>) -> Self {
        let of_country = municipality_levels(country_code);
        Self {
            all: areas.iter().filter_map(Roles::of).collect(),
            levels: of_country.unwrap_or(USUAL_LEVELS),
            is_country_known: of_country.is_some(),
        }
    }

    /// Returns the smallest boundary at the first of `levels` that has a boundary. Ignores parts of municipalities and
    /// areas larger than a municipality.
    fn smallest_boundary_at_levels(&self, levels: &[u8]) -> Option<&Roles<'a, 'i>> {
        levels.iter().find_map(|level| {
            let at_level = self.all.iter().filter(|area| area.level == *level);
            let at_level = at_level.filter(|area| !area.is_part_or_above_municipality());
            at_level.min_by_key(|area| area.area.size_m2())
        })
    }

    /// Returns the boundary of the municipality, which is at one of the levels of municipalities.
    fn municipality(&self) -> Option<&Roles<'a, 'i>> {
        self.smallest_boundary_at_levels(self.levels)
    }

    /// Returns the boundaries that are not within `municipality`, the highest level first. Without a municipality,
    /// returns all boundaries.
    fn boundaries_not_within(
        &self,
        municipality: Option<&Roles<'a, 'i>>,
    ) -> impl Iterator<Item = &Roles<'a, 'i>> {
        let level = municipality.map(|municipality| municipality.level);
        let all = self.all.iter().rev();
        all.filter(move |area| level.is_none_or(|level| area.level <= level))
    }
}

/// Returns the boundary of the settlement, and its kind, which is `city`, `town` or `village`. `areas` must be in the
/// order of their levels.
///
/// Ignores boundaries within a municipality, because they are its parts, whatever their tags. Returns the first
/// boundary in this list that exists:
///
/// 1. A boundary whose own tags indicate a settlement. A label node may indicate a settlement instead, but only if the
///    country is unknown or no boundary is at a level of municipalities: the label of a province may be its capital.
/// 2. The boundary of a city whose parts are at the level of municipalities.
/// 3. The boundary at a level of municipalities.
/// 4. A boundary with an `admin_centre` node.
/// 5. A boundary that has the name of a city within it. This rule is not used in a country whose municipalities have no
///    boundaries. The boundary may contain villages there, and [`guess_city`] uses it only if no place node gives the
///    city.
pub(super) fn city<'a, 'i>(
    areas: &'a [Area<'i>],
    country_code: Option<&str>,
) -> Option<(&'a Area<'i>, &'static str)> {
    let boundaries = CityBoundaries::of(areas, country_code);
    let municipality = boundaries.municipality();
    let around = || boundaries.boundaries_not_within(municipality);
    let is_role = |area: &&Roles<'_, '_>| {
        area.own.is_some()
            || area.label.is_some() && (municipality.is_none() || !boundaries.is_country_known)
    };
    let divided = || {
        let level = municipality?.level;
        around().find(|area| area.level < level && area.is_divided_at(level))
    };
    let by_centre =
        || around().find(|area| area.centre.is_some() && !area.is_part_or_above_municipality());
    let by_namesake = || {
        let has_levels = !boundaries.levels.is_empty();
        around().find(|area| has_levels && area.namesake.is_some())
    };
    let found = around().find(is_role).or_else(divided).or(municipality);
    let found = found.or_else(by_centre).or_else(by_namesake)?;
    Some((found.area, found.kind().unwrap_or("city")))
}

/// Returns the boundary to use as the city if neither [`city`] nor a place node gives a city. Also returns its kind.
/// Prefers a boundary that has the name of a city within it to a boundary at a usual level. Does not use the usual
/// levels if the levels of municipalities in the country are known. In such a country, boundaries at other levels are
/// wards, parishes or districts.
pub(super) fn guess_city<'a, 'i>(
    areas: &'a [Area<'i>],
    country_code: Option<&str>,
) -> Option<(&'a Area<'i>, &'static str)> {
    let boundaries = CityBoundaries::of(areas, country_code);
    let by_namesake = boundaries
        .boundaries_not_within(None)
        .find(|area| area.namesake.is_some());
    let at_usual_level = || {
        let is_known = has_known_municipality_levels(country_code);
        boundaries
            .smallest_boundary_at_levels(&[8, 10, 7])
            .filter(|_| !is_known)
    };
    let found = by_namesake.or_else(at_usual_level)?;
    Some((found.area, found.kind().unwrap_or("city")))
}

/// Returns the boundary of the city that an address names, and its kind. `is_named` returns whether an area has the
/// name of that city.
///
/// Prefers the boundary of a settlement. A boundary is that of a settlement if its tags, its members or a city of the
/// same name within it indicate one, or if it is at a level of municipalities. If no settlement has the name of the
/// city, returns any boundary with this name, whatever its level. The boundary must not be within a municipality, and
/// its tags must not show a part of a municipality or a larger area.
pub(super) fn city_named<'a, 'i>(
    areas: &'a [Area<'i>],
    country_code: Option<&str>,
    is_named: impl Fn(&Area<'i>) -> bool,
) -> Option<(&'a Area<'i>, &'static str)> {
    let boundaries = CityBoundaries::of(areas, country_code);
    let is_settlement = |area: &&Roles<'_, '_>| {
        let is_municipality =
            boundaries.levels.contains(&area.level) && !area.is_part_or_above_municipality();
        let by_node = area.centre.is_some() && !area.is_part_or_above_municipality()
            || area.namesake.is_some();
        area.own.or(area.label).is_some() || is_municipality || by_node
    };
    let mut settlements = boundaries.boundaries_not_within(None).filter(is_settlement);
    let larger = || {
        let mut around = boundaries.boundaries_not_within(boundaries.municipality());
        around.find(|area| !area.is_part_or_above_municipality() && is_named(area.area))
    };
    // Comparing all names of a state takes long, so the names of larger boundaries are compared only if no settlement
    // has the name.
    let found = settlements.find(|area| is_named(area.area));
    let found = found.or_else(larger)?;
    Some((found.area, found.kind().unwrap_or("city")))
}
