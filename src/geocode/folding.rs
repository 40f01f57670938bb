//! Comparing spellings of the names of streets and cities.
//!
//! Two names are the same if they differ only in case, diacritics, punctuation, white space and abbreviations of street
//! types. The abbreviations are those of the OSM wiki page "Name finder: Abbreviations".

use std::cell::{Cell, OnceCell};

/// Letters without diacritics, each with its variants that have diacritics.
const PLAIN: [(&str, &str); 36] = [
    ("a", "àáâãäåāăąǎǻạảấầẩẫậắằẳẵặ"),
    ("b", "ḃ"),
    ("c", "çćĉċč"),
    ("d", "ďđḋ"),
    ("e", "èéêëēĕėęěẹẻẽếềểễệ"),
    ("f", "ḟ"),
    ("g", "ĝğġģǧ"),
    ("h", "ĥħ"),
    ("i", "ìíîïĩīĭįıǐỉị"),
    ("j", "ĵ"),
    ("k", "ķǩ"),
    ("l", "ĺļľŀł"),
    ("m", "ṁ"),
    ("n", "ñńņňŋ"),
    ("o", "òóôõöøōŏőǒǿọỏốồổỗộơớờởỡợ"),
    ("p", "ṗ"),
    ("r", "ŕŗř"),
    ("s", "śŝşšșṡ"),
    ("t", "ţťŧțṫ"),
    ("u", "ùúûüũūŭůűųǔụủưứừửữự"),
    ("w", "ŵẁẃẅ"),
    ("y", "ýÿŷỳỵỷỹ"),
    ("z", "źżž"),
    ("ss", "ß"),
    ("ae", "æǽ"),
    ("oe", "œ"),
    ("th", "þ"),
    ("α", "άἀἁ"),
    ("ε", "έ"),
    ("η", "ή"),
    ("ι", "ίϊΐ"),
    ("ο", "ό"),
    ("υ", "ύϋΰ"),
    ("ω", "ώ"),
    ("σ", "ς"),
    ("е", "ёѐ"),
];

/// Words at the end of a name, and their abbreviations.
const LAST: [&[&str]; 31] = [
    &["street", "st", "str"],
    &["road", "rd"],
    &["avenue", "ave", "av"],
    &["boulevard", "blvd", "bvd"],
    &["drive", "dr", "drv"],
    &["lane", "ln"],
    &["court", "ct", "crt"],
    &["place", "pl"],
    &["square", "sq"],
    &["terrace", "ter", "terr", "tce"],
    &["highway", "hwy"],
    &["parkway", "pkwy", "pky"],
    &["crescent", "cres", "cr"],
    &["close", "cl"],
    &["gardens", "gdns", "gdn"],
    &["circle", "cir"],
    &["trail", "trl"],
    &["expressway", "expy", "expwy"],
    &["freeway", "fwy"],
    &["grove", "gr", "grv"],
    &["parade", "pde"],
    &["way", "wy"],
    &["caddesi", "cadde", "cad", "cd"],
    &["sokagi", "sokak", "sok", "sk"],
    &["bulvari", "bulvar", "bul", "blv"],
    &["gate", "gt"],
    &["gatan", "g"],
    &["vagen", "v"],
    &["katu", "k"],
    &["utca", "u"],
    &["ulica", "ul"],
];

/// Words at the start of a name, and their abbreviations.
const FIRST: [&[&str]; 15] = [
    &["avenue", "avenida", "avinguda", "av", "ave", "avda", "avd"],
    &["boulevard", "bd", "bld", "blvd", "boul", "bulevar"],
    &["rue", "rua", "r"],
    &["calle", "carrer", "c", "cl"],
    &[
        "plaza", "placa", "praca", "place", "piazza", "pl", "pza", "pca", "p",
    ],
    &["ulica", "ulice", "ul"],
    &["aleja", "aleje", "al"],
    &["chemin", "ch", "che"],
    &["impasse", "imp"],
    &["allee", "all"],
    &["route", "rte"],
    &["travessa", "trav", "tv"],
    &["largo", "lg"],
    &["paseo", "passeig", "pg", "po"],
    &["saint", "st", "sankt", "sint"],
];

/// Words for directions, and their abbreviations.
const DIRECTIONS: [&[&str]; 8] = [
    &["north", "n"],
    &["south", "s"],
    &["east", "e"],
    &["west", "w"],
    &["northeast", "ne"],
    &["northwest", "nw"],
    &["southeast", "se"],
    &["southwest", "sw"],
];

/// Street types at the end of a compound word, and their abbreviations.
const ENDINGS: [(&str, &str); 3] = [("strasse", "str"), ("straat", "str"), ("platz", "pl")];

/// Returns the first word of the group that contains `word`.
fn standing_for<'w>(groups: &[&[&'static str]], word: &'w str) -> Option<&'w str>
where
    'static: 'w,
{
    let group = groups.iter().find(|group| group.contains(&word))?;
    group.first().copied()
}

/// Returns the words of a name in lower case, without diacritics.
fn words(name: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    for char in name.chars().flat_map(char::to_lowercase) {
        match char {
            'a'..='z' | '0'..='9' => word.push(char),
            // An apostrophe does not end a word, and a combining mark is dropped, so neither adds anything.
            '\'' | '’' | '‘' | '`' | '´' | 'ʼ' | '\u{300}'..='\u{36f}' => {}
            _ if char.is_alphanumeric() => {
                let plain = PLAIN.iter().find(|(_, marked)| marked.contains(char));
                match plain {
                    Some((plain, _)) => word.push_str(plain),
                    None => word.push(char),
                }
            }
            _ if !word.is_empty() => words.push(std::mem::take(&mut word)),
            _ => {}
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Returns the normal form of a name, which all spellings of the name share.
pub(crate) fn folded(name: &str) -> String {
    let words = words(name);
    let is_direction = |word: &String| standing_for(&DIRECTIONS, word).is_some();
    // The type of the street is the last word, or the word before a direction, as in "Main St N".
    let mut last = words.len().saturating_sub(1);
    if last > 1 && words.get(last).is_some_and(is_direction) {
        last -= 1;
    }
    let mut out = String::with_capacity(name.len());
    for (at, word) in words.iter().enumerate() {
        let is_alone = words.len() == 1;
        let put = if is_alone {
            None
        } else if at == last {
            standing_for(&LAST, word)
        } else if at == 0 || at > last {
            standing_for(&DIRECTIONS, word).or_else(|| standing_for(&FIRST, word))
        } else {
            matches!(word.as_str(), "st" | "sankt" | "sint").then_some("saint")
        };
        let ending = ENDINGS.iter().find_map(|(ending, short)| {
            let start = word.strip_suffix(ending)?;
            Some((start, *short))
        });
        match (put, ending) {
            (Some("street"), _) => out.push_str("str"),
            (Some("place"), _) if at == last => out.push_str("pl"),
            // Some spellings of Polish and Russian names omit the word for a street, so the normal form never has this
            // word.
            (Some("ulica"), _) => {}
            (Some(word), _) => out.push_str(word),
            (None, Some((start, short))) => {
                out.push_str(start);
                out.push_str(short);
            }
            (None, None) if matches!(word.as_str(), "улица" | "ул") => {}
            (None, None) => out.push_str(word),
        }
    }
    out
}

/// Whether two names are spellings of the same name.
pub(crate) fn is_same_name(one: &str, other: &str) -> bool {
    one == other || {
        let folded = [one, other].map(folded);
        let [one, other] = &folded;
        one == other && !one.is_empty()
    }
}

/// The names of a street, for comparisons with other names.
pub(super) struct StreetNames<'i> {
    names: Vec<&'i str>,
    folded: OnceCell<Vec<String>>,
    /// The last name that was compared, and the result. It is cached because neighbouring addresses share their street.
    last: Cell<Option<(&'i str, bool)>>,
}

impl<'i> StreetNames<'i> {
    /// The names in the tags of a street, in all languages and with alternative names.
    pub(super) fn of(tags: &[(&'i str, &'i str)]) -> Self {
        let names = tags.iter().filter(|(key, _)| key.contains("name"));
        Self {
            names: names.map(|(_, name)| *name).collect(),
            folded: OnceCell::new(),
            last: Cell::new(None),
        }
    }

    /// Whether `name` is a spelling of one of the names of the street.
    pub(super) fn has(&self, name: &'i str) -> bool {
        if let Some((last, result)) = self.last.get()
            && std::ptr::eq(last, name)
        {
            return result;
        }
        let result = self.names.contains(&name) || {
            let names = self.names.iter();
            let all = self
                .folded
                .get_or_init(|| names.map(|name| folded(name)).collect());
            let wanted = folded(name);
            !wanted.is_empty() && all.contains(&wanted)
        };
        self.last.set(Some((name, result)));
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_street_are_the_same_name() {
        for (one, other) in [
            ("Main Street", "main street"),
            ("Main Street", "Main St."),
            ("Main Street North", "Main St N"),
            ("Saint John's Road", "St Johns Rd"),
            ("Hauptstraße", "Hauptstr."),
            ("Hauptstrasse", "HAUPTSTRAẞE"),
            ("Kaiser-Wilhelm-Straße", "Kaiser Wilhelm Str."),
            ("Marktplatz", "Marktpl."),
            ("Triq l-Isqof", "Triq L’Isqof"),
            ("Rue de l'Église", "rue de l’eglise"),
            ("Avenida da Liberdade", "Av. da Liberdade"),
            ("Praça São João", "Pr\u{61}ca Sa\u{303}o Joa\u{303}o"),
            ("Bağdat Caddesi", "Bagdat Cad."),
            ("Mickiewicza", "ulica Mickiewicza"),
            ("улица Ленина", "Ленина ул."),
        ] {
            assert!(is_same_name(one, other), "{one}, {other}");
        }
    }

    #[test]
    fn different_streets_stay_different() {
        for (one, other) in [
            ("Main Street", "Main Road"),
            ("Main Street", "Main Street North"),
            ("Main Street East", "Main Street West"),
            ("Bahnhofstraße", "Bahnhofplatz"),
            ("1st Street", "2nd Street"),
            ("Straße 12", "Straße 21"),
            ("улица Ленина", "проспект Ленина"),
            ("銀座", "新宿"),
            ("?", "!"),
            ("Rue Haute", "Rue Basse"),
        ] {
            assert!(!is_same_name(one, other), "{one}, {other}");
        }
    }
}
