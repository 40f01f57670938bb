//! Facts about countries.

/// The values of `admin_level` of municipalities by country, the best first.
///
/// The source is the table "admin_level=* values for specific countries" in the wiki of OpenStreetMap:
/// <https://wiki.openstreetmap.org/wiki/Tag:boundary%3Dadministrative>. Great Britain and Ireland have none: their
/// boundaries are those of districts and parishes.
const MUNICIPALITIES: [(&str, &[u8]); 29] = [
    ("ad", &[7]),
    ("at", &[8]),
    ("au", &[6]),
    ("be", &[8]),
    ("br", &[8]),
    ("ca", &[8]),
    ("ch", &[8]),
    ("cz", &[8]),
    ("de", &[8]),
    ("dk", &[7]),
    ("es", &[8]),
    ("fi", &[8]),
    ("fr", &[8]),
    ("gb", &[]),
    ("id", &[5]),
    ("ie", &[]),
    ("it", &[8]),
    ("jp", &[7]),
    ("li", &[8]),
    ("lu", &[8]),
    ("nl", &[10, 8]),
    ("no", &[7]),
    ("nz", &[6]),
    ("pl", &[8, 7]),
    ("pt", &[7]),
    ("ru", &[8, 6]),
    ("se", &[7]),
    ("tr", &[6]),
    ("us", &[8, 7]),
];

/// The levels of municipalities in most countries.
const USUAL: &[u8] = &[8, 7];

/// Countries whose addresses begin with the house number, as the Universal Postal Union describes them:
/// <https://www.upu.int/en/Postal-Solutions/Programmes-Services/Addressing-Solutions>.
const NUMBER_FIRST: [&str; 34] = [
    "au", "bb", "bd", "bw", "ca", "dz", "eg", "fr", "gb", "gg", "gh", "hk", "ie", "il", "im", "in",
    "je", "jm", "ke", "lk", "lu", "ma", "mc", "mt", "my", "ng", "nz", "ph", "sg", "th", "tn", "tt",
    "us", "za",
];

/// The values of `admin_level` of municipalities in a country, the best first; `None` without a country.
pub(super) fn municipality_levels(country_code: Option<&str>) -> Option<&'static [u8]> {
    let code = country_code?;
    let known = MUNICIPALITIES.iter().find(|(country, _)| *country == code);
    Some(known.map_or(USUAL, |(_, levels)| levels))
}

/// The levels of municipalities where the country is not known.
pub(super) const fn usual_levels() -> &'static [u8] {
    USUAL
}

/// Whether addresses of a country begin with the house number.
pub(super) fn is_number_first(country_code: Option<&str>) -> bool {
    country_code.is_some_and(|code| NUMBER_FIRST.contains(&code))
}
