//! Compares spellings of the names of streets and cities.
//!
//! Two names are the same if they differ only in case, diacritics, punctuation, white space and abbreviations of street
//! types.

use super::abbreviations::{
    cyrillic_street_type, direction, expand_hyphenated, normal_form_of_first_word,
    normal_form_of_last_word, normal_form_of_middle_word, split_compound,
};
use super::letters::words;
use std::cell::{Cell, OnceCell};

/// Finds pairs of words that were one abbreviation with a hyphen, such as "пр-т". Replaces each pair with the word that
/// the abbreviation stands for.
fn expand_hyphenated_words(words: Vec<String>) -> Vec<String> {
    let mut whole: Vec<String> = Vec::with_capacity(words.len());
    for word in words {
        match whole.last().and_then(|last| expand_hyphenated(last, &word)) {
            Some(both) => {
                whole.pop();
                whole.push(both.to_owned());
            }
            None => whole.push(word),
        }
    }
    whole
}

/// Returns the normal form of a name, which all spellings of the name share.
pub(crate) fn fold_name(name: &str) -> String {
    let all = expand_hyphenated_words(words(name));
    // Street types in Cyrillic letters stand before or after the name proper. In the normal form, they come last.
    let (mut proper, mut types) = (Vec::with_capacity(all.len()), String::new());
    for word in &all {
        match cyrillic_street_type(word).filter(|_| all.len() > 1) {
            Some(kind) => types.push_str(kind),
            None => proper.push(word.as_str()),
        }
    }
    let mut out = String::with_capacity(name.len());
    put_words(&mut out, &proper);
    out.push_str(&types);
    if out.is_empty() { all.concat() } else { out }
}

/// Appends the normal forms of the words of a name.
fn put_words(out: &mut String, words: &[&str]) {
    let is_direction = |word: &&str| direction(word).is_some();
    // The type of the street is the last word, or the word before a direction, as in "Main St N".
    let mut last = words.len().saturating_sub(1);
    if last > 1 && words.get(last).is_some_and(is_direction) {
        last -= 1;
    }
    for (at, word) in words.iter().enumerate() {
        let put = if words.len() == 1 {
            None
        } else if at == last {
            normal_form_of_last_word(word)
        } else if at == 0 || at > last {
            normal_form_of_first_word(word)
        } else {
            normal_form_of_middle_word(word)
        };
        match (put, split_compound(word)) {
            (Some("street"), _) => out.push_str("str"),
            (Some("place"), _) if at == last => out.push_str("pl"),
            // Some spellings of Polish and Russian names omit the word that means "street", so the normal form never
            // has it.
            (Some("ulica"), _) => {}
            (Some(word), _) => out.push_str(word),
            (None, Some((start, short))) => {
                out.push_str(start);
                out.push_str(short);
            }
            (None, None) => out.push_str(word),
        }
    }
}

/// Whether two names are spellings of the same name.
pub(crate) fn is_same_name(one: &str, other: &str) -> bool {
    one == other || {
        let folded = [one, other].map(fold_name);
        let [one, other] = &folded;
        one == other && !one.is_empty()
    }
}

/// Returns the entries of a list that is separated by semicolons. A text without a semicolon is its only entry.
pub(crate) fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(';')
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

/// The names of a street, for comparisons with other names.
pub(super) struct StreetNames<'i> {
    names: Vec<&'i str>,
    folded: OnceCell<Vec<String>>,
    /// The last name that was compared, and the result of the comparison. They are cached because neighbouring
    /// addresses share their street.
    last: Cell<Option<(&'i str, bool)>>,
}

impl<'i> StreetNames<'i> {
    /// Collects the names in the tags of a street, in all languages and including alternative names. The value of a tag
    /// may be a list of names.
    pub(super) fn of(tags: &[(&'i str, &'i str)]) -> Self {
        let names = tags.iter().filter(|(key, _)| key.contains("name"));
        Self {
            names: names.map(|(_, name)| *name).collect(),
            folded: OnceCell::new(),
            last: Cell::new(None),
        }
    }

    /// Whether `name`, or an entry of `name` if it is a list, is a spelling of one of the names of the street.
    pub(super) fn has(&self, name: &'i str) -> bool {
        if let Some((last, result)) = self.last.get()
            && std::ptr::eq(last, name)
        {
            return result;
        }
        let result = self.names.contains(&name) || {
            let names = self.names.iter().flat_map(|name| entries(name));
            let all = self.folded.get_or_init(|| names.map(fold_name).collect());
            let is_one = |wanted: String| !wanted.is_empty() && all.contains(&wanted);
            entries(name).map(fold_name).any(is_one)
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
            ("Mount Pleasant Road", "Mt. Pleasant Rd"),
            ("Old Mount Vernon Road", "Old Mt Vernon Rd"),
            ("Rocky Mount", "Rocky Mt"),
            ("Great Portland Street", "Gt Portland St"),
            ("County Road 12", "County Rd 12"),
            (
                "Dr. Martin Luther King Jr. Blvd",
                "Doctor Martin Luther King Junior Boulevard",
            ),
            ("Platz der Republik", "Pl. der Republik"),
            ("plac Wolności", "pl. Wolnosci"),
            ("Jalan Merdeka", "Jl. Merdeka"),
            ("Λεωφόρος Συγγρού", "Λεωφ. Συγγρου"),
            ("вулиця Шевченка", "вул. Шевченка"),
            ("вулиця Шевченка", "Шевченка вул."),
            ("проспект Перемоги", "пр. Перемоги"),
            ("проспект Перемоги", "пр-т Перемоги"),
            ("Невский проспект", "Невский пр-кт"),
            ("Невский проспект", "проспект Невскии\u{306}"),
            ("провулок Шкільний", "пров. Шкільний"),
            ("Садовый переулок", "пер. Садовый"),
            ("бульвар Тараса Шевченка", "б-р Тараса Шевченка"),
            ("площадь Революции", "пл. Революции"),
            ("набережная реки Мойки", "наб. реки Мойки"),
            ("Киевское шоссе", "Киевское ш."),
            ("улица", "УЛИЦА"),
            ("ガード通り", "カ\u{3099}ート\u{3099}通り"),
            (
                "세종로",
                "\u{1109}\u{1166}\u{110c}\u{1169}\u{11bc}\u{1105}\u{1169}",
            ),
            ("１丁目", "1丁目"),
            ("ｶﾞｰﾄﾞ通り", "ガード通り"),
            ("Ｍａｉｎ Ｓｔ．", "Main Street"),
            ("Rua 1º de Maio", "Rua 1o de Maio"),
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
            ("вулиця Шевченка", "провулок Шевченка"),
            ("пр. Ленина", "пр-д Ленина"),
            ("проспект Мира", "площадь Мира"),
            ("Mount Street", "Mountain Street"),
            ("かき通り", "がぎ通り"),
            ("ｶｷ通り", "ｶﾞｷﾞ通り"),
        ] {
            assert!(!is_same_name(one, other), "{one}, {other}");
        }
    }

    #[test]
    fn a_street_has_each_name_in_its_lists() {
        let street = StreetNames::of(&[
            ("name", "High Street"),
            ("alt_name", "Market Pl.; Old Road;"),
        ]);
        for name in [
            "High St",
            "Market Place",
            "old road",
            "Elsewhere;Old Rd",
            "Old Road;High Street",
        ] {
            assert!(street.has(name), "{name}");
        }
        for name in ["Market Place Old Road", "Elsewhere", ";", ""] {
            assert!(!street.has(name), "{name}");
        }
    }
}
