//! Abbreviations of the words in the names of streets and cities.
//!
//! Most of these abbreviations come from the OSM wiki page "Name finder: Abbreviations". A group is a list of words
//! that stand for each other. Words are written as [`words`](super::letters::words) returns them: in lower case and
//! without marks.

use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// A table that maps each word to its normal form.
type WordTable = LazyLock<FxHashMap<&'static str, &'static str>>;

/// Returns the table for `groups`. A group is a list of words with the same meaning, and its first word is their normal
/// form.
fn word_table(groups: &[&'static str]) -> FxHashMap<&'static str, &'static str> {
    let words_of = |group: &&'static str| {
        let mut words = group.split(' ').peekable();
        let normal = words.peek().copied().unwrap_or_default();
        words.map(move |word| (word, normal))
    };
    groups.iter().flat_map(words_of).collect()
}

/// Words at the end of a name, and their abbreviations.
static LAST: WordTable = LazyLock::new(|| {
    word_table(&[
        "street st str",
        "road rd",
        "avenue ave av",
        "boulevard blvd bvd",
        "drive dr drv",
        "lane ln",
        "court ct crt",
        "place pl",
        "square sq",
        "terrace ter terr tce",
        "highway hwy",
        "parkway pkwy pky",
        "crescent cres cr",
        "close cl",
        "gardens gdns gdn",
        "circle cir",
        "trail trl",
        "expressway expy expwy",
        "freeway fwy",
        "grove gr grv",
        "parade pde",
        "way wy",
        "alley aly",
        "bypass byp",
        "causeway cswy",
        "cove cv",
        "crossing xing",
        "esplanade esp",
        "estate est",
        "green grn",
        "heights hts",
        "hill hl",
        "junction jct",
        "manor mnr",
        "meadows mdws",
        "mews mws",
        "motorway mwy",
        "park pk",
        "plaza plz",
        "ridge rdg",
        "turnpike tpke",
        "view vw",
        "walk wlk",
        "caddesi cadde cad cd",
        "sokagi sokak sok sk",
        "bulvari bulvar bul blv",
        "mahallesi mah",
        "gate gt",
        "gatan gatve g",
        "vagen v",
        "katu k",
        "utca u",
        "korut krt",
        "tanav tn",
        "maantee mnt",
        "puiestee pst",
        "prospekt prospektas prosp pr",
        "ulica ulitsa vulytsia vul ul",
        "namesti nam",
        "trida tr",
        "plein pln",
    ])
});

/// Words at the start of a name, and their abbreviations.
static FIRST: WordTable = LazyLock::new(|| {
    word_table(&[
        "avenue avenida avinguda av ave avda avd",
        "boulevard bulevar bulevardul bd bld blvd boul",
        "rue rua r",
        "calle carrer c cl",
        "plaza placa praca place piazza piata plac platz pl pza pca p",
        "ulica ulice ulitsa vulytsia vul ul",
        "aleja aleje aleea alameda al",
        "chemin ch che",
        "impasse imp",
        "allee all",
        "route rte",
        "travessa trav tv",
        "largo lg",
        "paseo passeig pg po",
        "camino cno",
        "carretera ctra crta",
        "glorieta gta",
        "ronda rda",
        "estrada estr",
        "praceta pct",
        "rodovia rod",
        "faubourg fbg fg",
        "passage pass",
        "residence res",
        "soseaua sos",
        "namesti nam",
        "prospekt prosp pr",
        "jalan jln jl",
        "οδοσ οδ",
        "λεωφοροσ λεωφ λ",
        "πλατεια πλ",
        "great gt",
    ])
});

/// Words anywhere in a name, and their abbreviations. A word at the start of a name is first looked up in
/// [`DIRECTIONS`] and [`FIRST`], and a word at the end in [`LAST`].
static ANYWHERE: WordTable = LazyLock::new(|| {
    word_table(&[
        "saint st sankt sint",
        "sainte ste",
        "santa sta",
        "santo sto",
        "mount mt",
        "mountain mtn",
        "fort ft",
        "point pt",
        "doctor doutor doktor docteur dr",
        "professor profesor professeur prof",
        "general gen gral",
        "captain capt cpt",
        "colonel coronel col",
        "lieutenant lt",
        "sergeant sgt",
        "president presidente pres",
        "governor gov",
        "junior jr",
        "senior sr",
        "road rd",
        "highway hwy",
    ])
});

/// Words for directions, and their abbreviations.
static DIRECTIONS: WordTable = LazyLock::new(|| {
    word_table(&[
        "north n",
        "south s",
        "east e",
        "west w",
        "northeast ne",
        "northwest nw",
        "southeast se",
        "southwest sw",
    ])
});

/// Types of streets in languages with Cyrillic letters, and their abbreviations. The type may come before or after the
/// name proper. Some spellings omit the word that means "street". The forms of this word are in the first row.
static CYRILLIC: WordTable = LazyLock::new(|| {
    word_table(&[
        "улица ул вулиця вуліца вул",
        "проспект праспект прасп просп пр",
        "переулок провулок завулак пер пров прв зав",
        "площадь площа плошча площад плоштад пл площ",
        "бульвар булевард булевар бульв бул",
        "шоссе шосе ш",
        "набережная набережна наб",
        "проезд проізд праезд",
        "тупик тупік туп",
        "аллея алея ал",
        "линия лінія лин",
        "микрораион мікрораион мкрн мкр",
        "квартал кварт",
        "маидан маид",
        "узвіз узв",
        "дорога дор",
    ])
});

/// Hyphenated abbreviations, each split at its hyphen, and the words that they stand for.
const HYPHENATED: [([&str; 2], &str); 11] = [
    (["пр", "т"], "проспект"),
    (["пр", "кт"], "проспект"),
    (["просп", "т"], "проспект"),
    (["пр", "д"], "проезд"),
    (["б", "р"], "бульвар"),
    (["пер", "к"], "переулок"),
    (["пл", "дь"], "площадь"),
    (["мкр", "н"], "микрораион"),
    (["кв", "л"], "квартал"),
    (["b", "dul"], "bulevardul"),
    (["p", "ta"], "piata"),
];

/// Street types at the end of a compound word, and their abbreviations.
const ENDINGS: [(&str, &str); 3] = [("strasse", "str"), ("straat", "str"), ("platz", "pl")];

/// Returns the normal form of a word at the end of a name.
pub(super) fn normal_form_of_last_word(word: &str) -> Option<&'static str> {
    LAST.get(word)
        .copied()
        .or_else(|| ANYWHERE.get(word).copied())
}

/// Returns the normal form of a word at the start of a name.
pub(super) fn normal_form_of_first_word(word: &str) -> Option<&'static str> {
    let direction = direction(word);
    let first = || FIRST.get(word).copied();
    direction
        .or_else(first)
        .or_else(|| ANYWHERE.get(word).copied())
}

/// Returns the normal form of a word in the middle of a name.
pub(super) fn normal_form_of_middle_word(word: &str) -> Option<&'static str> {
    ANYWHERE.get(word).copied()
}

/// Returns the direction that a word names.
pub(super) fn direction(word: &str) -> Option<&'static str> {
    DIRECTIONS.get(word).copied()
}

/// Returns the type of street that a word in Cyrillic letters names. The result is empty for the word that means
/// "street", because some spellings omit this word.
pub(super) fn cyrillic_street_type(word: &str) -> Option<&'static str> {
    let kind = CYRILLIC.get(word).copied()?;
    Some(if kind == "улица" { "" } else { kind })
}

/// Returns the word that an abbreviation with a hyphen stands for. `first` and `second` are its two halves.
pub(super) fn expand_hyphenated(first: &str, second: &str) -> Option<&'static str> {
    let found = HYPHENATED
        .iter()
        .find(|(words, _)| *words == [first, second]);
    found.map(|(_, word)| *word)
}

/// Returns the start of a compound word that ends with a type of street, and the abbreviation of this type.
pub(super) fn split_compound(word: &str) -> Option<(&str, &'static str)> {
    ENDINGS
        .iter()
        .find_map(|(ending, short)| Some((word.strip_suffix(ending)?, *short)))
}

#[cfg(test)]
mod tests {
    use super::super::letters::words;
    use super::*;

    #[test]
    fn each_word_of_a_table_has_no_marks_and_is_in_one_group() {
        let tables = [&LAST, &FIRST, &ANYWHERE, &DIRECTIONS, &CYRILLIC];
        let sizes = tables.map(|table| table.len());
        assert_eq!(sizes, [146, 103, 53, 16, 59]);
        for (word, normal) in tables.into_iter().flat_map(|table| table.iter()) {
            assert_eq!(words(word), [*word]);
            assert_eq!(words(normal), [*normal]);
        }
        for (pair, word) in HYPHENATED {
            assert_eq!(words(&pair.join("-")), pair);
            assert_eq!(words(word), [word]);
        }
    }
}
