//! Facts about countries.

/// The values of `admin_level` for municipalities by country. The best value comes first.
///
/// The sources are the pages about single countries in the OpenStreetMap wiki, and the table "admin_level=* values for
/// specific countries" in <https://wiki.openstreetmap.org/wiki/Tag:boundary%3Dadministrative>. A country with an empty
/// list has boundaries of districts, wards or parishes, but no boundaries of the towns that addresses name. Where two
/// levels divide a city, the level of the whole city comes first.
const MUNICIPALITIES: [(&str, &[u8]); 55] = [
    ("ad", &[7]),
    ("al", &[7]),
    ("ao", &[6]),
    ("at", &[8]),
    ("au", &[9, 10]),
    ("ba", &[6, 7]),
    ("be", &[8]),
    ("br", &[8]),
    ("ca", &[8]),
    ("cd", &[6]),
    ("ch", &[8]),
    ("cn", &[5]),
    ("co", &[6]),
    ("cz", &[8]),
    ("de", &[8]),
    ("dk", &[7]),
    ("ec", &[6]),
    ("es", &[8]),
    ("fi", &[8]),
    ("fr", &[8]),
    ("gb", &[]),
    ("id", &[5]),
    ("ie", &[]),
    ("in", &[8]),
    ("iq", &[]),
    ("ir", &[8]),
    ("it", &[8]),
    ("jp", &[7]),
    ("ke", &[]),
    ("kh", &[]),
    ("kr", &[6]),
    ("li", &[8]),
    ("lu", &[8]),
    ("mm", &[]),
    ("mx", &[8, 6]),
    ("ng", &[]),
    ("nl", &[10, 8]),
    ("no", &[7]),
    ("nz", &[]),
    ("ph", &[6]),
    ("pk", &[]),
    ("pl", &[8, 7]),
    ("pt", &[7]),
    ("rs", &[7, 8]),
    ("ru", &[]),
    ("se", &[7]),
    ("sk", &[9]),
    ("th", &[7, 6]),
    ("tr", &[6]),
    ("tw", &[]),
    ("tz", &[]),
    ("ug", &[]),
    ("us", &[8, 7]),
    ("ve", &[]),
    ("vn", &[]),
];

/// The levels of municipalities in most countries.
const USUAL: &[u8] = &[8, 7];

/// Countries whose addresses begin with the house number, according to the Universal Postal Union:
/// <https://www.upu.int/en/Postal-Solutions/Programmes-Services/Addressing-Solutions>.
const NUMBER_FIRST: [&str; 46] = [
    "au", "bb", "bd", "bw", "ca", "ci", "dz", "eg", "fr", "gb", "gg", "gh", "hk", "ht", "ie", "il",
    "im", "in", "je", "jm", "ke", "kh", "lk", "lu", "ma", "mc", "mm", "mt", "mu", "my", "ng", "nz",
    "ph", "pk", "sa", "sg", "sn", "th", "tn", "tt", "ug", "us", "vn", "za", "zm", "zw",
];

/// Countries whose addresses have the postcode after the city, according to the formats of Google's libaddressinput:
/// <https://github.com/google/libaddressinput/wiki/AddressValidationMetadata>.
const POSTCODE_AFTER_CITY: [&str; 48] = [
    "af", "ai", "bd", "bh", "bm", "bn", "bt", "cr", "fk", "gb", "gg", "gi", "gs", "gu", "il", "im",
    "in", "io", "je", "jo", "ke", "kh", "lb", "lk", "ls", "lv", "mm", "mt", "mv", "na", "ng", "np",
    "nz", "pe", "pg", "ph", "pk", "pn", "pr", "sa", "sd", "sg", "sh", "sz", "tc", "vc", "vg", "za",
];

/// Countries whose addresses have the postcode after the state, according to the formats of Google's libaddressinput.
const POSTCODE_AFTER_STATE: [&str; 29] = [
    "au", "bb", "br", "ca", "cc", "co", "cu", "cx", "eg", "fm", "hm", "hn", "id", "ie", "iq", "mh",
    "mn", "mp", "nf", "pw", "ru", "so", "th", "ua", "um", "us", "ve", "vi", "vn",
];

/// Returns the values of `admin_level` for municipalities in a country, the best first; `None` if the country is not
/// known.
pub(super) fn municipality_levels(country_code: Option<&str>) -> Option<&'static [u8]> {
    country_code.map(|code| own_levels(code).unwrap_or(USUAL))
}

/// Whether the levels of municipalities in a country are known.
pub(super) fn has_own_levels(country_code: Option<&str>) -> bool {
    country_code.is_some_and(|code| own_levels(code).is_some())
}

/// Returns the levels of municipalities in a country of the table.
fn own_levels(country_code: &str) -> Option<&'static [u8]> {
    let found = MUNICIPALITIES.binary_search_by_key(&country_code, |(country, _)| country);
    found.ok().map(|at| MUNICIPALITIES[at].1)
}

/// Whether a sorted list of countries has a country.
fn has(countries: &[&str], country_code: &str) -> bool {
    countries.binary_search(&country_code).is_ok()
}

/// Returns the levels of municipalities to use where the country is not known.
pub(super) const fn usual_levels() -> &'static [u8] {
    USUAL
}

/// Whether addresses of a country begin with the house number.
pub(super) fn is_number_first(country_code: Option<&str>) -> bool {
    country_code.is_some_and(|code| has(&NUMBER_FIRST, code))
}

/// The position of the postcode in an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PostcodePlace {
    BeforeCity,
    AfterCity,
    AfterState,
}

/// Returns the position of the postcode in addresses of a country.
pub(super) fn postcode_place(country_code: Option<&str>) -> PostcodePlace {
    match country_code {
        Some(code) if has(&POSTCODE_AFTER_CITY, code) => PostcodePlace::AfterCity,
        Some(code) if has(&POSTCODE_AFTER_STATE, code) => PostcodePlace::AfterState,
        _ => PostcodePlace::BeforeCity,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn countries_are_sorted() {
        assert!(MUNICIPALITIES.is_sorted_by_key(|(country, _)| country));
        assert!(NUMBER_FIRST.is_sorted());
        assert!(POSTCODE_AFTER_CITY.is_sorted());
        assert!(POSTCODE_AFTER_STATE.is_sorted());
    }
}
