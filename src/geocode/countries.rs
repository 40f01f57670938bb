//! Facts about countries.

use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// A table from codes of countries, or of parts of countries, to values.
type CodeTable<T> = LazyLock<FxHashMap<&'static str, T>>;

/// Languages of names, the most common first.
type NameLanguages = &'static [&'static str];

/// Returns a table from codes to values. A row has a value and a list of the codes to which the value belongs.
fn code_table<T: Copy>(rows: &[(T, &'static str)]) -> FxHashMap<&'static str, T> {
    let rows = rows.iter();
    let codes = rows.flat_map(|(value, codes)| codes.split(' ').map(|code| (code, *value)));
    codes.collect()
}

/// The values of `admin_level` for municipalities by country. The best value comes first.
///
/// The sources are the pages about single countries in the OpenStreetMap wiki, and the table "admin_level=* values for
/// specific countries" in <https://wiki.openstreetmap.org/wiki/Tag:boundary%3Dadministrative>. A country with an empty
/// list has boundaries of districts, wards or parishes, but no boundaries of the towns that addresses name. If a city
/// and its parts have boundaries at two of the levels, the level of the whole city comes first.
static MUNICIPALITIES: CodeTable<&[u8]> = LazyLock::new(|| {
    code_table(&[
        (&[], "gb ie iq ke kh mm ng nz pk ru tw tz ug ve vn"),
        (&[5], "cn id"),
        (&[6], "ao cd co ec kr ph tr"),
        (&[7], "ad al dk jp no pt se"),
        (&[8], "at be br ca ch cz de es fi fr in ir it li lu"),
        (&[9], "sk"),
        (&[6, 7], "ba"),
        (&[7, 6], "th"),
        (&[7, 8], "rs"),
        (&[8, 6], "mx"),
        (&[8, 7], "pl us"),
        (&[9, 10], "au"),
        (&[10, 8], "nl"),
    ])
});

/// The levels of municipalities in most countries.
pub(super) const USUAL_LEVELS: &[u8] = &[8, 7];

/// The languages of the tag `name` by country, according to the wiki page "Multilingual names"
/// <https://wiki.openstreetmap.org/wiki/Multilingual_names> and the official languages of the country. Where a country
/// has several languages, `name` is in one of them, or in several.
static LANGUAGES: CodeTable<NameLanguages> = LazyLock::new(|| {
    code_table(&[
        (&["am"], "et"),
        (&["ar"], "eg jo ly ps sa sd sy ye"),
        (&["az"], "az"),
        (&["bg"], "bg"),
        (&["bn"], "bd"),
        (&["ca"], "ad"),
        (&["cs"], "cz"),
        (&["da"], "dk"),
        (&["de"], "at de li"),
        (&["dv"], "mv"),
        (&["el"], "gr"),
        (
            &["en"],
            "ag au bb bs bw bz dm gd gg gh gi gm gy im je jm lc lr mw ng nz pg sg sl tt ug us vc zm \
             zw",
        ),
        (
            &["es"],
            "ar cl co cr cu do ec gq gt hn mx ni pa pe pr sv uy ve",
        ),
        (&["et"], "ee"),
        (&["fa"], "ir"),
        (&["fo"], "fo"),
        (&["fr"], "bf bj cd cf cg ci fr ga gn mc ml ne sn tg"),
        (&["hr"], "hr"),
        (&["hu"], "hu"),
        (&["hy"], "am"),
        (&["id"], "id"),
        (&["is"], "is"),
        (&["it"], "it sm va"),
        (&["ja"], "jp"),
        (&["ka"], "ge"),
        (&["kl"], "gl"),
        (&["km"], "kh"),
        (&["ko"], "kp kr"),
        (&["lo"], "la"),
        (&["lt"], "lt"),
        (&["lv"], "lv"),
        (&["mn"], "mn"),
        (&["ms"], "bn my"),
        (&["my"], "mm"),
        (&["ne"], "np"),
        (&["nl"], "nl sr"),
        (&["no"], "no"),
        (&["pl"], "pl"),
        (&["pt"], "ao br cv gw mz pt st"),
        (&["ro"], "ro"),
        (&["ru"], "ru"),
        (&["sk"], "sk"),
        (&["sl"], "si"),
        (&["so"], "so"),
        (&["sq"], "al"),
        (&["sr"], "rs"),
        (&["sv"], "se"),
        (&["th"], "th"),
        (&["tr"], "tr"),
        (&["uk"], "ua"),
        (&["vi"], "vn"),
        (&["zh"], "cn tw"),
        (&["ar", "en"], "ae bh kw om qa"),
        (&["ar", "fr"], "lb mr tn"),
        (&["ar", "ku"], "iq"),
        (&["be", "ru"], "by"),
        (&["cnr", "sr"], "me"),
        (&["en", "af"], "za"),
        (&["en", "fr"], "ca mu sc"),
        (&["en", "ga"], "ie"),
        (&["en", "st"], "ls"),
        (&["en", "sw"], "ke"),
        (&["en", "tl"], "ph"),
        (&["es", "gn"], "py"),
        (&["fi", "sv"], "fi"),
        (&["fr", "ar"], "dj km"),
        (&["fr", "en"], "cm"),
        (&["fr", "ht"], "ht"),
        (&["he", "ar"], "il"),
        (&["kk", "ru"], "kz"),
        (&["ky", "ru"], "kg"),
        (&["mg", "fr"], "mg"),
        (&["mk", "sq"], "mk"),
        (&["mt", "en"], "mt"),
        (&["ps", "fa"], "af"),
        (&["ro", "ru"], "md"),
        (&["sq", "sr"], "xk"),
        (&["sw", "en"], "tz"),
        (&["tg", "ru"], "tj"),
        (&["tk", "ru"], "tm"),
        (&["ur", "en"], "pk"),
        (&["uz", "ru"], "uz"),
        (&["zh", "en"], "hk"),
        (&["zh", "pt"], "mo"),
        (&["ar", "fr", "ber"], "dz ma"),
        (&["bs", "hr", "sr"], "ba"),
        (&["el", "tr", "en"], "cy"),
        (&["en", "af", "de"], "na"),
        (&["es", "qu", "ay"], "bo"),
        (&["lb", "fr", "de"], "lu"),
        (&["nl", "fr", "de"], "be"),
        (&["si", "ta", "en"], "lk"),
        (&["de", "fr", "it", "rm"], "ch"),
        (&["en", "cy", "gd", "ga"], "gb"),
        (&["es", "ca", "eu", "gl"], "es"),
    ])
});

/// The languages of the tag `name` in parts of a country whose languages differ from those of the whole country, by ISO
/// 3166-2 code.
static REGION_LANGUAGES: CodeTable<NameLanguages> = LazyLock::new(|| {
    code_table(&[
        (
            &["de"],
            "CH-AG CH-AI CH-AR CH-BL CH-BS CH-GL CH-LU CH-NW CH-OW CH-SG CH-SH CH-SO CH-SZ CH-TG CH-UR \
             CH-ZG CH-ZH",
        ),
        (
            &["en"],
            "CA-AB CA-BC CA-MB CA-NL CA-NS CA-ON CA-PE CA-SK CA-YT GB-ENG",
        ),
        (
            &["es"],
            "ES-AN ES-CB ES-CE ES-CL ES-CM ES-CN ES-EX ES-MC ES-MD ES-ML ES-RI US-PR",
        ),
        (
            &["fr"],
            "BE-WBR BE-WHT BE-WNA CA-QC CH-GE CH-JU CH-NE CH-VD",
        ),
        (&["it"], "CH-TI"),
        (&["nl"], "BE-VLG"),
        (&["sv"], "FI-01"),
        (&["ca", "es"], "ES-CT ES-IB ES-VC"),
        (&["de", "fr"], "CH-BE"),
        (&["en", "cy"], "GB-WLS"),
        (&["en", "ga"], "GB-NIR"),
        (&["en", "gd"], "GB-SCT"),
        (&["es", "ast"], "ES-AS"),
        (&["es", "eu"], "ES-NC"),
        (&["eu", "es"], "ES-PV"),
        (&["fr", "co"], "FR-20R"),
        (&["fr", "de"], "BE-WAL CH-FR CH-VS"),
        (&["fr", "nl"], "BE-BRU"),
        (&["gl", "es"], "ES-GA"),
        (&["it", "fr"], "IT-23"),
        (&["it", "sc"], "IT-88"),
        (&["nl", "fy"], "NL-FR"),
        (&["sr", "hu"], "RS-VO"),
        (&["uk", "ru"], "UA-40"),
        (&["zh", "bo"], "CN-XZ"),
        (&["zh", "en"], "CN-HK"),
        (&["zh", "mn"], "CN-NM"),
        (&["zh", "pt"], "CN-MO"),
        (&["zh", "ug"], "CN-XJ"),
        (&["de", "rm", "it"], "CH-GR"),
        (&["es", "an", "ca"], "ES-AR"),
        (&["it", "de", "lld"], "IT-32"),
        (&["it", "sl", "fur"], "IT-36"),
        (&["uk", "ru", "crh"], "UA-43"),
    ])
});

/// Countries whose addresses begin with the house number, according to the Universal Postal Union:
/// <https://www.upu.int/en/Postal-Solutions/Programmes-Services/Addressing-Solutions>.
const NUMBER_FIRST: &str = "\
    au bb bd bw ca ci dz eg fr gb gg gh hk ht ie il im in je jm ke kh lk lu ma mc mm mt mu \
    my ng nz ph pk sa sg sn th tn tt ug us vn za zm zw";

/// Countries whose addresses have the postcode after the city, according to the formats of Google's libaddressinput:
/// <https://github.com/google/libaddressinput/wiki/AddressValidationMetadata>.
const POSTCODE_AFTER_CITY: &str = "\
    af ai bd bh bm bn bt cr fk gb gg gi gs gu il im in io je jo ke kh lb lk ls lv mm mt mv \
    na ng np nz pe pg ph pk pn pr sa sd sg sh sz tc vc vg za";

/// Countries whose addresses have the postcode after the state, according to the formats of Google's libaddressinput.
const POSTCODE_AFTER_STATE: &str = "\
    au bb br ca cc co cu cx eg fm hm hn id ie iq mh mn mp nf pw ru so th ua um us ve vi vn";

/// Returns the values of `admin_level` for municipalities in a country, the best first. These are the usual levels if
/// the table does not have the country. Returns `None` without a country code.
pub(super) fn municipality_levels(country_code: Option<&str>) -> Option<&'static [u8]> {
    country_code.map(|code| known_municipality_levels(code).unwrap_or(USUAL_LEVELS))
}

/// Whether the levels of municipalities in a country are known.
pub(super) fn has_known_municipality_levels(country_code: Option<&str>) -> bool {
    country_code.is_some_and(|code| known_municipality_levels(code).is_some())
}

/// Returns the levels of municipalities in a country; `None` if the country is not in the table.
fn known_municipality_levels(country_code: &str) -> Option<&'static [u8]> {
    MUNICIPALITIES.get(country_code).copied()
}

/// Whether a country is in a list of countries.
fn is_listed(countries: &str, country_code: &str) -> bool {
    // A code and the space after it have three bytes. The last code has no space after it.
    let mut countries = countries.as_bytes().chunks(3);
    countries.any(|known| known.get(..2) == Some(country_code.as_bytes()))
}

/// Returns the languages of the tag `name` at a place; `None` if the tables have neither the region nor the country.
/// `codes` are the ISO 3166-2 codes of the areas around the place, the smallest area first.
pub(super) fn languages<'c>(
    country_code: Option<&str>,
    mut codes: impl Iterator<Item = &'c str>,
) -> Option<NameLanguages> {
    let of_region = codes.find_map(|code| REGION_LANGUAGES.get(code));
    of_region.or_else(|| LANGUAGES.get(country_code?)).copied()
}

/// Whether addresses of a country begin with the house number.
pub(super) fn is_house_number_first(country_code: Option<&str>) -> bool {
    country_code.is_some_and(|code| is_listed(NUMBER_FIRST, code))
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
        Some(code) if is_listed(POSTCODE_AFTER_CITY, code) => PostcodePlace::AfterCity,
        Some(code) if is_listed(POSTCODE_AFTER_STATE, code) => PostcodePlace::AfterState,
        _ => PostcodePlace::BeforeCity,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_code_is_in_two_rows_of_a_table() {
        let sizes = [
            LANGUAGES.len(),
            REGION_LANGUAGES.len(),
            MUNICIPALITIES.len(),
        ];
        assert_eq!(sizes, [185, 81, 55]);
        assert!(
            LANGUAGES
                .keys()
                .chain(MUNICIPALITIES.keys())
                .all(|code| code.len() == 2)
        );
        assert!(
            REGION_LANGUAGES
                .keys()
                .all(|code| code.as_bytes()[2] == b'-')
        );
    }

    #[test]
    fn lists_of_countries_have_codes_of_two_letters_in_order() {
        for countries in [NUMBER_FIRST, POSTCODE_AFTER_CITY, POSTCODE_AFTER_STATE] {
            let codes: Vec<&str> = countries.split(' ').collect();
            assert!(codes.is_sorted() && codes.iter().all(|code| code.len() == 2));
        }
    }
}
