//! Choosing which name of an object is shown, by language.

use super::area::Area;
use super::countries::languages;
use super::item::{KeyNumber, tag};
use super::options::QueryOptions;

/// The maximum number of languages in a list. Further languages are ignored.
const MAX_LANGUAGES: usize = 16;
/// The maximum length of a language tag in bytes. Longer tags are ignored.
const MAX_TAG: usize = 64;
/// Pairs of language codes. Names in the language of the first code may also be stored under the second code.
const OTHER_CODES: [(&str, &str); 6] = [
    ("fil", "tl"),
    ("in", "id"),
    ("iw", "he"),
    ("nb", "no"),
    ("nn", "no"),
    ("tl", "fil"),
];

impl QueryOptions {
    /// Returns the languages of a list in the syntax of the HTTP header `Accept-Language`, the best first. Languages of
    /// equal weight stay in the order of the list. A language of weight 0 is not acceptable, so it is left out.
    pub fn parse_languages(list: &str) -> Vec<String> {
        let weighted = list.split(',').map(|entry| {
            let (language, rest) = entry.split_once(';').unwrap_or((entry, ""));
            let weight = rest.split_once('=').and_then(|(key, weight)| {
                let weight = weight.trim().parse::<f32>().ok();
                weight.filter(|_| key.trim().eq_ignore_ascii_case("q"))
            });
            (language.trim(), weight.unwrap_or(1.0))
        });
        let is_wanted = |(language, weight): &(&str, f32)| {
            !language.is_empty() && *language != "*" && *weight > 0.0
        };
        let mut weighted: Vec<(&str, f32)> =
            weighted.filter(is_wanted).take(MAX_LANGUAGES).collect();
        weighted.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        let languages = weighted.into_iter();
        languages.map(|(language, _)| language.to_owned()).collect()
    }
}

/// Returns the tags under which names in a language are looked up, in lower case. The first is the language tag. Then
/// its subtags are removed from the end one by one (RFC 4647, section 3.4): `sr-latn-rs`, `sr-latn`, `sr`. The tag for
/// the Chinese script of a region comes before `zh`: `zh-tw`, `zh-hant`, `zh`. Another code for the language comes
/// last: `nb`, `no`.
fn lookup_order(language: &str) -> Vec<String> {
    let (mut order, mut tag) = (Vec::new(), language.replace('_', "-").to_ascii_lowercase());
    if tag.is_empty() || tag.len() > MAX_TAG {
        return order;
    }
    let script = chinese_script(&tag);
    while let Some((shorter, _)) = tag.rsplit_once('-') {
        // A subtag of one character is removed together with the subtag that follows it.
        let shorter = match shorter.rsplit_once('-') {
            Some((before, single)) if single.len() == 1 => before,
            _ => shorter,
        };
        let shorter = shorter.to_owned();
        order.push(std::mem::replace(&mut tag, shorter));
    }
    order.extend(script.map(str::to_owned));
    let other = OTHER_CODES.iter().find(|(code, _)| *code == tag);
    order.push(tag);
    order.extend(other.map(|(_, other)| (*other).to_owned()));
    order
}

/// Returns the tag for the Chinese script of a region, such as `zh-hant` for `zh-tw`; `None` for other tags.
fn chinese_script(tag: &str) -> Option<&'static str> {
    match tag.strip_prefix("zh-")? {
        "tw" | "hk" | "mo" => Some("zh-hant"),
        "cn" | "sg" | "my" => Some("zh-hans"),
        _ => None,
    }
}

/// The languages that a query wants, and the languages of the place.
#[derive(Debug)]
pub(super) struct Languages {
    /// The wanted languages, the best first. For each of them, the tags under which its names may be stored.
    wanted: Vec<Vec<String>>,
    /// The languages of the tag `name` at the place; empty if they are not known.
    local: &'static [&'static str],
}

impl Languages {
    /// Creates the languages of a query. The place is set later.
    pub(super) fn of(options: &QueryOptions) -> Self {
        let wanted = options.languages.iter();
        Self {
            wanted: wanted.map(|language| lookup_order(language)).collect(),
            local: &[],
        }
    }

    /// Sets the place. `areas` are the areas around it in the order of their levels.
    pub(super) fn set_local_languages(&mut self, areas: &[Area<'_>], country_code: Option<&str>) {
        if !self.is_empty() {
            let codes = areas.iter().rev().filter_map(|area| area.code);
            self.local = languages(country_code, codes).unwrap_or_default();
        }
    }

    /// Whether no language is wanted.
    pub(super) const fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Returns the name of an object in the best language in which it has a name, or its tag `name`.
    pub(super) fn name<'i>(&self, tags: &[(&'i str, &'i str)]) -> Option<&'i str> {
        self.name_in_language(tags).or_else(|| tag(tags, "name"))
    }

    /// Returns the name of an object in the best language in which it has a name. Returns `None` if no name is known to
    /// be in a wanted language.
    pub(super) fn name_in_language<'i>(&self, tags: &[(&'i str, &'i str)]) -> Option<&'i str> {
        let named = |language: &str| {
            let name = tags.iter().find(|(key, _)| {
                let of = key.strip_prefix("name:");
                of.is_some_and(|of| of.eq_ignore_ascii_case(language))
            });
            name.map(|(_, name)| *name)
        };
        self.best_name(|| tag(tags, "name"), named)
    }

    /// Returns the name of an area in the best language in which it has a name, or its tag `name`.
    pub(super) fn area_name<'i>(&self, area: &Area<'i>) -> Option<&'i str> {
        let name = self.area_name_in_language(area);
        name.or_else(|| area.tag(KeyNumber::NAME))
    }

    /// Returns the name of an area in the best language in which it has a name. Returns `None` if no name is known to
    /// be in a wanted language.
    pub(super) fn area_name_in_language<'i>(&self, area: &Area<'i>) -> Option<&'i str> {
        self.best_name(
            || area.tag(KeyNumber::NAME),
            |language| area.name_in(language),
        )
    }

    /// Returns the name in the best language. `own` returns the tag `name`, and `named` the name in a language.
    fn best_name<'i>(
        &self,
        own: impl Fn() -> Option<&'i str>,
        named: impl Fn(&str) -> Option<&'i str>,
    ) -> Option<&'i str> {
        self.wanted.iter().find_map(|order| {
            let in_language = order.iter().find_map(|language| named(language));
            in_language.or_else(|| own().filter(|own| self.is_in_language(order, own, &named)))
        })
    }

    /// Whether `own`, the value of an object's tag `name`, is in the language of `order`. This requires that the
    /// language is one of the languages of the place. In addition, the object must have a name in each other language
    /// of the place, and `own` must not contain any of these names.
    fn is_in_language<'i>(
        &self,
        order: &[String],
        own: &str,
        named: impl Fn(&str) -> Option<&'i str>,
    ) -> bool {
        let is_wanted = |language: &str| order.iter().any(|wanted| wanted == language);
        self.local.iter().any(|language| is_wanted(language))
            && self.local.iter().all(|language| {
                is_wanted(language) || named(language).is_some_and(|other| !own.contains(other))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_ordered_by_weight() {
        assert_eq!(
            QueryOptions::parse_languages("fr;q=0.5, de-AT , *;q=0.1,en;Q=0.9,it;q=0,es;q=x"),
            ["de-AT", "es", "en", "fr"]
        );
        assert_eq!(QueryOptions::parse_languages("de,en"), ["de", "en"]);
        assert!(QueryOptions::parse_languages("").is_empty());
        assert_eq!(
            QueryOptions::parse_languages(&"en,".repeat(100)).len(),
            MAX_LANGUAGES
        );
    }

    #[test]
    fn language_tags_are_shortened_step_by_step() {
        let cases: [(&str, &[&str]); 8] = [
            ("el-GR", &["el-gr", "el"]),
            ("EN", &["en"]),
            ("sr-Latn-RS", &["sr-latn-rs", "sr-latn", "sr"]),
            ("de_CH", &["de-ch", "de"]),
            ("zh-TW", &["zh-tw", "zh-hant", "zh"]),
            (
                "zh-Hant-CN-x-a",
                &["zh-hant-cn-x-a", "zh-hant-cn", "zh-hant", "zh"],
            ),
            ("nb-NO", &["nb-no", "nb", "no"]),
            ("", &[]),
        ];
        for (tag, order) in cases {
            assert_eq!(lookup_order(tag), order, "{tag}");
        }
        assert!(lookup_order(&"a-".repeat(1000)).is_empty());
    }

    #[test]
    fn other_names_and_the_place_decide_the_language_of_name() {
        let named = |local: &'static [&'static str],
                     wanted: &str,
                     tags: &[(&'static str, &'static str)]| {
            let languages = Languages {
                wanted: vec![lookup_order(wanted), lookup_order("en")],
                local,
            };
            languages.name_in_language(tags)
        };
        let greek = [("name", "Ερμού"), ("name:en", "Ermou")];
        assert_eq!(named(&["el"], "el-GR", &greek), Some("Ερμού"));
        assert_eq!(named(&["el"], "de", &greek), Some("Ermou"));
        assert_eq!(named(&[], "el", &greek), Some("Ermou"));
        // In a country with several languages, the other names show in which language the tag `name` is.
        let finnish = [
            ("name", "Kaivokatu"),
            ("name:sv", "Brunnsgatan"),
            ("name:en", "Well"),
        ];
        assert_eq!(named(&["fi", "sv"], "fi", &finnish), Some("Kaivokatu"));
        assert_eq!(named(&["fi", "sv"], "sv", &finnish), Some("Brunnsgatan"));
        let unknown = [("name", "Rue Haute"), ("name:en", "High Street")];
        assert_eq!(named(&["nl", "fr"], "fr", &unknown), Some("High Street"));
        let both = [
            ("name", "Rue - Straat"),
            ("name:nl", "Straat"),
            ("name:en", "Street"),
        ];
        assert_eq!(named(&["nl", "fr"], "fr", &both), Some("Street"));
    }
}
