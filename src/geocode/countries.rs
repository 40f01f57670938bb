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

/// The languages of the tag `name` by country, according to the wiki page "Multilingual names"
/// <https://wiki.openstreetmap.org/wiki/Multilingual_names> and the official languages of the country. Where a country
/// has several languages, `name` is in one of them, or in several.
const LANGUAGES: [(&str, &[&str]); 185] = [
    ("ad", &["ca"]),
    ("ae", &["ar", "en"]),
    ("af", &["ps", "fa"]),
    ("ag", &["en"]),
    ("al", &["sq"]),
    ("am", &["hy"]),
    ("ao", &["pt"]),
    ("ar", &["es"]),
    ("at", &["de"]),
    ("au", &["en"]),
    ("az", &["az"]),
    ("ba", &["bs", "hr", "sr"]),
    ("bb", &["en"]),
    ("bd", &["bn"]),
    ("be", &["nl", "fr", "de"]),
    ("bf", &["fr"]),
    ("bg", &["bg"]),
    ("bh", &["ar", "en"]),
    ("bj", &["fr"]),
    ("bn", &["ms"]),
    ("bo", &["es", "qu", "ay"]),
    ("br", &["pt"]),
    ("bs", &["en"]),
    ("bw", &["en"]),
    ("by", &["be", "ru"]),
    ("bz", &["en"]),
    ("ca", &["en", "fr"]),
    ("cd", &["fr"]),
    ("cf", &["fr"]),
    ("cg", &["fr"]),
    ("ch", &["de", "fr", "it", "rm"]),
    ("ci", &["fr"]),
    ("cl", &["es"]),
    ("cm", &["fr", "en"]),
    ("cn", &["zh"]),
    ("co", &["es"]),
    ("cr", &["es"]),
    ("cu", &["es"]),
    ("cv", &["pt"]),
    ("cy", &["el", "tr", "en"]),
    ("cz", &["cs"]),
    ("de", &["de"]),
    ("dj", &["fr", "ar"]),
    ("dk", &["da"]),
    ("dm", &["en"]),
    ("do", &["es"]),
    ("dz", &["ar", "fr", "ber"]),
    ("ec", &["es"]),
    ("ee", &["et"]),
    ("eg", &["ar"]),
    ("es", &["es", "ca", "eu", "gl"]),
    ("et", &["am"]),
    ("fi", &["fi", "sv"]),
    ("fo", &["fo"]),
    ("fr", &["fr"]),
    ("ga", &["fr"]),
    ("gb", &["en", "cy", "gd", "ga"]),
    ("gd", &["en"]),
    ("ge", &["ka"]),
    ("gg", &["en"]),
    ("gh", &["en"]),
    ("gi", &["en"]),
    ("gl", &["kl"]),
    ("gm", &["en"]),
    ("gn", &["fr"]),
    ("gq", &["es"]),
    ("gr", &["el"]),
    ("gt", &["es"]),
    ("gw", &["pt"]),
    ("gy", &["en"]),
    ("hk", &["zh", "en"]),
    ("hn", &["es"]),
    ("hr", &["hr"]),
    ("ht", &["fr", "ht"]),
    ("hu", &["hu"]),
    ("id", &["id"]),
    ("ie", &["en", "ga"]),
    ("il", &["he", "ar"]),
    ("im", &["en"]),
    ("iq", &["ar", "ku"]),
    ("ir", &["fa"]),
    ("is", &["is"]),
    ("it", &["it"]),
    ("je", &["en"]),
    ("jm", &["en"]),
    ("jo", &["ar"]),
    ("jp", &["ja"]),
    ("ke", &["en", "sw"]),
    ("kg", &["ky", "ru"]),
    ("kh", &["km"]),
    ("km", &["fr", "ar"]),
    ("kp", &["ko"]),
    ("kr", &["ko"]),
    ("kw", &["ar", "en"]),
    ("kz", &["kk", "ru"]),
    ("la", &["lo"]),
    ("lb", &["ar", "fr"]),
    ("lc", &["en"]),
    ("li", &["de"]),
    ("lk", &["si", "ta", "en"]),
    ("lr", &["en"]),
    ("ls", &["en", "st"]),
    ("lt", &["lt"]),
    ("lu", &["lb", "fr", "de"]),
    ("lv", &["lv"]),
    ("ly", &["ar"]),
    ("ma", &["ar", "fr", "ber"]),
    ("mc", &["fr"]),
    ("md", &["ro", "ru"]),
    ("me", &["cnr", "sr"]),
    ("mg", &["mg", "fr"]),
    ("mk", &["mk", "sq"]),
    ("ml", &["fr"]),
    ("mm", &["my"]),
    ("mn", &["mn"]),
    ("mo", &["zh", "pt"]),
    ("mr", &["ar", "fr"]),
    ("mt", &["mt", "en"]),
    ("mu", &["en", "fr"]),
    ("mv", &["dv"]),
    ("mw", &["en"]),
    ("mx", &["es"]),
    ("my", &["ms"]),
    ("mz", &["pt"]),
    ("na", &["en", "af", "de"]),
    ("ne", &["fr"]),
    ("ng", &["en"]),
    ("ni", &["es"]),
    ("nl", &["nl"]),
    ("no", &["no"]),
    ("np", &["ne"]),
    ("nz", &["en"]),
    ("om", &["ar", "en"]),
    ("pa", &["es"]),
    ("pe", &["es"]),
    ("pg", &["en"]),
    ("ph", &["en", "tl"]),
    ("pk", &["ur", "en"]),
    ("pl", &["pl"]),
    ("pr", &["es"]),
    ("ps", &["ar"]),
    ("pt", &["pt"]),
    ("py", &["es", "gn"]),
    ("qa", &["ar", "en"]),
    ("ro", &["ro"]),
    ("rs", &["sr"]),
    ("ru", &["ru"]),
    ("sa", &["ar"]),
    ("sc", &["en", "fr"]),
    ("sd", &["ar"]),
    ("se", &["sv"]),
    ("sg", &["en"]),
    ("si", &["sl"]),
    ("sk", &["sk"]),
    ("sl", &["en"]),
    ("sm", &["it"]),
    ("sn", &["fr"]),
    ("so", &["so"]),
    ("sr", &["nl"]),
    ("st", &["pt"]),
    ("sv", &["es"]),
    ("sy", &["ar"]),
    ("tg", &["fr"]),
    ("th", &["th"]),
    ("tj", &["tg", "ru"]),
    ("tm", &["tk", "ru"]),
    ("tn", &["ar", "fr"]),
    ("tr", &["tr"]),
    ("tt", &["en"]),
    ("tw", &["zh"]),
    ("tz", &["sw", "en"]),
    ("ua", &["uk"]),
    ("ug", &["en"]),
    ("us", &["en"]),
    ("uy", &["es"]),
    ("uz", &["uz", "ru"]),
    ("va", &["it"]),
    ("vc", &["en"]),
    ("ve", &["es"]),
    ("vn", &["vi"]),
    ("xk", &["sq", "sr"]),
    ("ye", &["ar"]),
    ("za", &["en", "af"]),
    ("zm", &["en"]),
    ("zw", &["en"]),
];

/// The languages of the tag `name` in parts of countries where they are others than in the whole country, by ISO 3166-2
/// code.
const REGION_LANGUAGES: [(&str, &[&str]); 81] = [
    ("BE-BRU", &["fr", "nl"]),
    ("BE-VLG", &["nl"]),
    ("BE-WAL", &["fr", "de"]),
    ("BE-WBR", &["fr"]),
    ("BE-WHT", &["fr"]),
    ("BE-WNA", &["fr"]),
    ("CA-AB", &["en"]),
    ("CA-BC", &["en"]),
    ("CA-MB", &["en"]),
    ("CA-NL", &["en"]),
    ("CA-NS", &["en"]),
    ("CA-ON", &["en"]),
    ("CA-PE", &["en"]),
    ("CA-QC", &["fr"]),
    ("CA-SK", &["en"]),
    ("CA-YT", &["en"]),
    ("CH-AG", &["de"]),
    ("CH-AI", &["de"]),
    ("CH-AR", &["de"]),
    ("CH-BE", &["de", "fr"]),
    ("CH-BL", &["de"]),
    ("CH-BS", &["de"]),
    ("CH-FR", &["fr", "de"]),
    ("CH-GE", &["fr"]),
    ("CH-GL", &["de"]),
    ("CH-GR", &["de", "rm", "it"]),
    ("CH-JU", &["fr"]),
    ("CH-LU", &["de"]),
    ("CH-NE", &["fr"]),
    ("CH-NW", &["de"]),
    ("CH-OW", &["de"]),
    ("CH-SG", &["de"]),
    ("CH-SH", &["de"]),
    ("CH-SO", &["de"]),
    ("CH-SZ", &["de"]),
    ("CH-TG", &["de"]),
    ("CH-TI", &["it"]),
    ("CH-UR", &["de"]),
    ("CH-VD", &["fr"]),
    ("CH-VS", &["fr", "de"]),
    ("CH-ZG", &["de"]),
    ("CH-ZH", &["de"]),
    ("CN-HK", &["zh", "en"]),
    ("CN-MO", &["zh", "pt"]),
    ("CN-NM", &["zh", "mn"]),
    ("CN-XJ", &["zh", "ug"]),
    ("CN-XZ", &["zh", "bo"]),
    ("ES-AN", &["es"]),
    ("ES-AR", &["es", "an", "ca"]),
    ("ES-AS", &["es", "ast"]),
    ("ES-CB", &["es"]),
    ("ES-CE", &["es"]),
    ("ES-CL", &["es"]),
    ("ES-CM", &["es"]),
    ("ES-CN", &["es"]),
    ("ES-CT", &["ca", "es"]),
    ("ES-EX", &["es"]),
    ("ES-GA", &["gl", "es"]),
    ("ES-IB", &["ca", "es"]),
    ("ES-MC", &["es"]),
    ("ES-MD", &["es"]),
    ("ES-ML", &["es"]),
    ("ES-NC", &["es", "eu"]),
    ("ES-PV", &["eu", "es"]),
    ("ES-RI", &["es"]),
    ("ES-VC", &["ca", "es"]),
    ("FI-01", &["sv"]),
    ("FR-20R", &["fr", "co"]),
    ("GB-ENG", &["en"]),
    ("GB-NIR", &["en", "ga"]),
    ("GB-SCT", &["en", "gd"]),
    ("GB-WLS", &["en", "cy"]),
    ("IT-23", &["it", "fr"]),
    ("IT-32", &["it", "de", "lld"]),
    ("IT-36", &["it", "sl", "fur"]),
    ("IT-88", &["it", "sc"]),
    ("NL-FR", &["nl", "fy"]),
    ("RS-VO", &["sr", "hu"]),
    ("UA-40", &["uk", "ru"]),
    ("UA-43", &["uk", "ru", "crh"]),
    ("US-PR", &["es"]),
];

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

/// Returns the languages of the tag `name` in a country, and `None` if the country is not in the table. `codes` are the
/// ISO 3166-2 codes of the areas around a place, the smallest area first.
pub(super) fn languages<'c>(
    country_code: Option<&str>,
    mut codes: impl Iterator<Item = &'c str>,
) -> Option<&'static [&'static str]> {
    let of_region = codes.find_map(|code| languages_in(&REGION_LANGUAGES, code));
    of_region.or_else(|| languages_in(&LANGUAGES, country_code?))
}

/// Returns the languages in a row of a sorted table.
fn languages_in(
    table: &'static [(&'static str, &'static [&'static str])],
    code: &str,
) -> Option<&'static [&'static str]> {
    let found = table.binary_search_by_key(&code, |(key, _)| key).ok()?;
    table.get(found).map(|(_, languages)| *languages)
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
        assert!(LANGUAGES.is_sorted_by_key(|(country, _)| country));
        assert!(REGION_LANGUAGES.is_sorted_by_key(|(region, _)| region));
        assert!(NUMBER_FIRST.is_sorted());
        assert!(POSTCODE_AFTER_CITY.is_sorted());
        assert!(POSTCODE_AFTER_STATE.is_sorted());
    }
}
