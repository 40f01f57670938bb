//! The words of a name, in lower case and with one form for each letter that Unicode can write in several ways.
//!
//! Unicode writes a letter with a mark as one character (normalization form C) or as the letter and the mark (form D).
//! Marks are dropped where they only tell variants of a letter apart. They are kept where they make another letter: the
//! voicing marks of Japanese, the vowels of Indic scripts, and the parts of Korean syllables. A compatibility
//! character, such as a ligature or a half-width letter, is replaced by the text that it stands for.

use super::compatibility::{compatibility_text, rows_of};
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// Letters without marks, each with its variants that have marks, and with its full-width form. In Indic scripts, a
/// composed letter counts as a variant of the characters into which form D decomposes it.
const PLAIN: &str = "\
    0=０ 1=１ 2=２ 3=３ 4=４ 5=５ 6=６ 7=７ 8=８ 9=９ a=àáâãäåāăąǎǟǡǻȁȃȧḁạảấầẩẫậắằẳẵặａ ae=æǣǽ b=ḃḅḇｂ c=çćĉċčḉｃ \
    d=ďđḋḍḏḑḓｄ e=èéêëēĕėęěȅȇȩḕḗḙḛḝẹẻẽếềểễệｅ f=ḟｆ g=ĝğġģǧǵḡｇ h=ĥħȟḣḥḧḩḫẖｈ i=ìíîïĩīĭįıǐȉȋḭḯỉịｉ j=ĵǰｊ \
    k=ķǩḱḳḵｋ l=ĺļľŀłḷḹḻḽｌ m=ḿṁṃｍ n=ñńņňŋǹṅṇṉṋｎ o=òóôõöøōŏőơǒǫǭǿȍȏȫȭȯȱṍṏṑṓọỏốồổỗộớờởỡợｏ oe=œ p=ṕṗｐ q=ｑ \
    r=ŕŗřȑȓṙṛṝṟｒ s=śŝşšșṡṣṥṧṩｓ ss=ß t=ţťŧțṫṭṯṱẗｔ th=þ u=ùúûüũūŭůűųưǔǖǘǚǜȕȗṳṵṷṹṻụủứừửữựｕ v=ṽṿｖ w=ŵẁẃẅẇẉẘｗ \
    x=ẋẍｘ y=ýÿŷȳẏẙỳỵỷỹｙ z=źżžẑẓẕｚ ʒ=ǯ α=άἀἁἂἃἄἅἆἇὰάᾀᾁᾂᾃᾄᾅᾆᾇᾰᾱᾲᾳᾴᾶᾷ ε=έἐἑἒἓἔἕὲέ \
    η=ήἠἡἢἣἤἥἦἧὴήᾐᾑᾒᾓᾔᾕᾖᾗῂῃῄῆῇ ι=ΐίϊἰἱἲἳἴἵἶἷὶίιῐῑῒΐῖῗ ο=όὀὁὂὃὄὅὸό ρ=ῤῥ σ=ς υ=ΰϋύὐὑὒὓὔὕὖὗὺύῠῡῢΰῦῧ \
    ω=ώὠὡὢὣὤὥὦὧὼώᾠᾡᾢᾣᾤᾥᾦᾧῲῳῴῶῷ а=ӑӓ г=ѓ е=ѐёӗ ж=ӂӝ з=ӟ и=йѝӣӥ к=ќ о=ӧ у=ўӯӱӳ ч=ӵ ы=ӹ э=ӭ і=ї ѵ=ѷ ә=ӛ ө=ӫ \
    \u{627}=\u{622}\u{623}\u{625} \u{648}=\u{624} \u{64a}=\u{626} \u{6c1}=\u{6c2} \u{6d2}=\u{6d3} \
    \u{6d5}=\u{6c0} \u{915}=\u{958} \u{916}=\u{959} \u{917}=\u{95a} \u{91c}=\u{95b} \u{921}=\u{95c} \
    \u{922}=\u{95d} \u{928}=\u{929} \u{92b}=\u{95e} \u{92f}=\u{95f} \u{930}=\u{931} \u{933}=\u{934} \
    \u{9a1}=\u{9dc} \u{9a2}=\u{9dd} \u{9af}=\u{9df} \u{9c7}\u{9be}=\u{9cb} \u{9c7}\u{9d7}=\u{9cc} \
    \u{a16}=\u{a59} \u{a17}=\u{a5a} \u{a1c}=\u{a5b} \u{a2b}=\u{a5e} \u{a32}=\u{a33} \u{a38}=\u{a36} \
    \u{b21}=\u{b5c} \u{b22}=\u{b5d} \u{b47}\u{b3e}=\u{b4b} \u{b47}\u{b56}=\u{b48} \u{b47}\u{b57}=\u{b4c} \
    \u{b92}\u{bd7}=\u{b94} \u{bc6}\u{bbe}=\u{bca} \u{bc6}\u{bd7}=\u{bcc} \u{bc7}\u{bbe}=\u{bcb} \
    \u{c46}\u{c56}=\u{c48} \u{cbf}\u{cd5}=\u{cc0} \u{cc6}\u{cc2}=\u{cca} \u{cc6}\u{cc2}\u{cd5}=\u{ccb} \
    \u{cc6}\u{cd5}=\u{cc7} \u{cc6}\u{cd6}=\u{cc8} \u{d46}\u{d3e}=\u{d4a} \u{d46}\u{d57}=\u{d4c} \
    \u{d47}\u{d3e}=\u{d4b} \u{dd9}=\u{dda} \u{dd9}\u{dcf}=\u{ddc}\u{ddd} \u{dd9}\u{ddf}=\u{dde}";

/// The variants in [`PLAIN`], each with its letters without marks.
static VARIANTS: LazyLock<FxHashMap<char, &str>> = LazyLock::new(|| {
    let rows = rows_of(PLAIN);
    rows.flat_map(|(plain, marked)| marked.chars().map(move |variant| (variant, plain)))
        .collect()
});

/// The kana that have a voiced variant. [`VOICED`] has these variants in the same order.
const UNVOICED: &str = "うかきくけこさしすせそたちつてとはひふへほゝウカキクケコサシスセソタチツテトハヒフヘホヽワヰヱヲ";
const VOICED: &str = "ゔがぎぐげござじずぜぞだぢづでどばびぶべぼゞヴガギグゲゴザジズゼゾダヂヅデドバビブベボヾヷヸヹヺ";
/// The kana that have a half-voiced variant, and these variants in the same order.
const HALF_VOICED: [&str; 2] = ["はひふへほハヒフヘホ", "ぱぴぷぺぽパピプペポ"];

/// Returns the words of a name in lower case, without marks.
pub(super) fn words(name: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    let mut add = |char: char| match char {
        'a'..='z' | '0'..='9' => word.push(char),
        char if is_ignored_in_word(char) => {}
        char if char.is_alphanumeric() || is_voicing_mark(char) => {
            push_without_marks(&mut word, char)
        }
        _ if !word.is_empty() => words.push(std::mem::take(&mut word)),
        _ => {}
    };
    for char in name.chars().flat_map(char::to_lowercase) {
        match compatibility_text(char) {
            Some(text) => text.chars().for_each(&mut add),
            None => add(char),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Appends a letter in lower case to a word, without its marks.
fn push_without_marks(word: &mut String, letter: char) {
    if let Some(whole) = word
        .chars()
        .next_back()
        .and_then(|last| composed_letter(last, letter))
    {
        word.pop();
        word.push(whole);
        return;
    }
    match VARIANTS.get(&letter) {
        Some(plain) => word.push_str(plain),
        None => word.push(letter),
    }
}

/// Whether a character adds nothing to a word and does not end it: an apostrophe, a mark, or an invisible character.
const fn is_ignored_in_word(char: char) -> bool {
    matches!(
        char,
        '\'' | '’' | '‘' | '`' | '´' | 'ʼ'
            // Marks of Latin, Greek and Cyrillic letters, and Arabic vowel signs, which spellings may omit.
            | '\u{300}'..='\u{36f}'
            | '\u{64b}'..='\u{65f}'
            | '\u{640}'
            | '\u{670}'
            // The dots below Indic letters.
            | '\u{93c}'
            | '\u{9bc}'
            | '\u{a3c}'
            | '\u{abc}'
            | '\u{b3c}'
            | '\u{cbc}'
            // The soft hyphen, joiners, marks of direction, variation selectors and the byte order mark.
            | '\u{ad}'
            | '\u{200b}'..='\u{200f}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
    )
}

/// Whether a character is part of the letter before it, although Unicode does not count it as a letter itself.
const fn is_voicing_mark(char: char) -> bool {
    matches!(char, '\u{3099}' | '\u{309a}')
}

/// Returns the character that form C has for `last` and `part`: a voiced kana, or a syllable of Korean.
fn composed_letter(last: char, part: char) -> Option<char> {
    const LEADS: u32 = 0x1100;
    const VOWELS: u32 = 0x1161;
    const BEFORE_TAILS: u32 = 0x11a7;
    const SYLLABLES: u32 = 0xac00;
    let variant = |plain: &str, marked: &'static str| {
        let at = plain.chars().position(|kana| kana == last)?;
        marked.chars().nth(at)
    };
    match part {
        '\u{3099}' => return variant(UNVOICED, VOICED),
        '\u{309a}' => return variant(HALF_VOICED[0], HALF_VOICED[1]),
        _ => {}
    }
    let last = u32::from(last);
    let code = match u32::from(part) {
        part @ 0x1161..=0x1175 if matches!(last, 0x1100..=0x1112) => {
            SYLLABLES + ((last - LEADS) * 21 + part - VOWELS) * 28
        }
        part @ 0x11a8..=0x11c2
            if matches!(last, 0xac00..=0xd7a3) && (last - SYLLABLES).is_multiple_of(28) =>
        {
            last + part - BEFORE_TAILS
        }
        _ => return None,
    };
    char::from_u32(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        words(text).concat()
    }

    #[test]
    fn letters_and_their_decomposed_forms_are_the_same() {
        for (one, other) in [
            ("é", "e\u{301}"),
            ("ḥ", "h\u{323}"),
            ("ệ", "e\u{323}\u{302}"),
            ("й", "и\u{306}"),
            ("ї", "і\u{308}"),
            ("ᾷ", "α\u{342}\u{345}"),
            ("が", "か\u{3099}"),
            ("ヴ", "ウ\u{3099}"),
            ("ヺ", "ヲ\u{3099}"),
            ("ぽ", "ほ\u{309a}"),
            ("ー", "ー"),
            ("\u{ac00}", "\u{1100}\u{1161}"),
            ("\u{ac01}", "\u{1100}\u{1161}\u{11a8}"),
            ("\u{d7a3}", "\u{1112}\u{1175}\u{11c2}"),
            ("\u{623}", "\u{627}\u{654}"),
            ("\u{9cb}", "\u{9c7}\u{9be}"),
            ("\u{bca}", "\u{bc6}\u{bbe}"),
            ("\u{929}", "\u{928}\u{93c}"),
            ("１ａ", "1a"),
            // Half-width letters and other compatibility characters.
            ("ｶﾞｰﾄﾞ", "ガード"),
            ("ﾊﾟﾋﾟﾌﾟﾍﾟﾎﾟ", "パピプペポ"),
            ("ｳﾞｧ", "ヴァ"),
            ("\u{ffa1}\u{ffc2}", "\u{3131}\u{314f}"),
            ("ＡＢＣ＇ｓ", "abcs"),
            ("ﬃﬆ", "ffist"),
            ("Ⅷ", "VIII"),
            ("1ª", "1a"),
            ("Ⓐ②", "a2"),
            ("ĳ", "ij"),
            ("ǅ", "dž"),
            ("\u{fee3}", "\u{645}"),
            ("\u{fefb}", "\u{644}\u{627}"),
        ] {
            assert_eq!(plain(one), plain(other), "{one}");
        }
        assert_ne!(plain("が"), plain("か"));
        assert_ne!(plain("ぱ"), plain("ば"));
        assert_eq!(plain("\u{3099}"), "\u{3099}");
        assert_eq!(plain("a\u{11a8}"), "a\u{11a8}");
    }

    #[test]
    fn each_variant_is_in_one_row() {
        let count: usize = rows_of(PLAIN)
            .map(|(_, marked)| marked.chars().count())
            .sum();
        assert!(rows_of(PLAIN).all(|(letters, _)| plain(letters) == letters));
        assert_eq!(VARIANTS.len(), count);
        assert_eq!(UNVOICED.chars().count(), VOICED.chars().count());
    }
}
