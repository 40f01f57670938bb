//! Compatibility characters and the text that they stand for, such as `iv` for `ⅳ`. Unicode has these characters only
//! for compatibility with older encodings. They include half-width katakana, ligatures and Roman numerals.
//!
//! The tables have the characters of normalization form KC that occur in names and house numbers. Full-width letters
//! and digits are in the table of `letters` instead.

use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// The full-width forms of the half-width katakana and voicing marks, from U+FF66 on.
const KATAKANA: &str = "ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン\u{3099}\u{309a}";

/// Runs of half-width letters of Korean: the first and the last character of a run, and the letter that the first one
/// stands for.
const HANGUL: [[u32; 3]; 5] = [
    [0xffa1, 0xffbe, 0x3131],
    [0xffc2, 0xffc7, 0x314f],
    [0xffca, 0xffcf, 0x3155],
    [0xffd2, 0xffd7, 0x315b],
    [0xffda, 0xffdc, 0x3161],
];

/// Rows, separated by spaces. A row consists of a text, `=`, and the characters that stand for the text, all in lower
/// case.
const TEXTS: &str = "\
    '=＇ 0=⁰₀⓪ 1=¹₁① 2=²₂② 3=³₃③ 4=⁴₄④ 5=⁵₅⑤ 6=⁶₆⑥ 7=⁷₇⑦ 8=⁸₈⑧ 9=⁹₉⑨ 10=⑩ 11=⑪ 12=⑫ 13=⑬ 14=⑭ 15=⑮ \
    16=⑯ 17=⑰ 18=⑱ 19=⑲ 20=⑳ a=ªₐⓐ b=ⓑ c=ⅽⓒ d=ⅾⓓ e=ₑⓔ f=ⓕ g=ⓖ h=ₕⓗ i=ⁱⅰⓘ j=ⓙ k=ₖⓚ l=ₗⅼⓛ m=ₘⅿⓜ n=ⁿₙⓝŉ \
    o=ºₒⓞ p=ₚⓟ q=ⓠ r=ⓡ s=ſₛⓢ t=ₜⓣ u=ⓤ v=ⅴⓥ w=ⓦ x=ₓⅹⓧ y=ⓨ z=ⓩ ii=ⅱ iii=ⅲ iv=ⅳ vi=ⅵ vii=ⅶ viii=ⅷ ix=ⅸ \
    xi=ⅺ xii=ⅻ ij=ĳ dž=ǆ lj=ǉ nj=ǌ dz=ǳ ff=ﬀ fi=ﬁ fl=ﬂ ffi=ﬃ ffl=ﬄ st=ﬅﬆ \
    \u{644}\u{622}=\u{fef5}\u{fef6} \u{644}\u{623}=\u{fef7}\u{fef8} \u{644}\u{625}=\u{fef9}\u{fefa} \
    \u{644}\u{627}=\u{fefb}\u{fefc} \u{67e}=\u{fb56}\u{fb57}\u{fb58}\u{fb59} \
    \u{686}=\u{fb7a}\u{fb7b}\u{fb7c}\u{fb7d} \u{698}=\u{fb8a}\u{fb8b} \
    \u{6a9}=\u{fb8e}\u{fb8f}\u{fb90}\u{fb91} \u{6af}=\u{fb92}\u{fb93}\u{fb94}\u{fb95} \
    \u{6c1}=\u{fba6}\u{fba7}\u{fba8}\u{fba9} \u{6be}=\u{fbaa}\u{fbab}\u{fbac}\u{fbad} \
    \u{6d2}=\u{fbae}\u{fbaf} \u{6cc}=\u{fbfc}\u{fbfd}\u{fbfe}\u{fbff}";

/// Returns the rows of a table. Each row is a text and the characters that stand for it.
pub(super) fn rows_of(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    table.split(' ').filter_map(|row| row.split_once('='))
}

/// The text for each character of the tables.
static STANDS_FOR: LazyLock<FxHashMap<char, String>> = LazyLock::new(|| {
    let texts = rows_of(TEXTS)
        .flat_map(|(text, forms)| forms.chars().map(move |form| (form, text.to_owned())));
    let kana = ('\u{ff66}'..).zip(KATAKANA.chars());
    let kana = kana.map(|(form, kana)| (form, kana.to_string()));
    let hangul = HANGUL.iter().flat_map(|[first, last, letter]| {
        let forms = (*first..=*last).zip(*letter..);
        forms.filter_map(|(form, letter)| compatibility_form(form, letter))
    });
    texts
        .chain(kana)
        .chain(hangul)
        .chain(arabic_forms())
        .collect()
});

/// Returns a compatibility character and the letter that it stands for.
fn compatibility_form(form: u32, letter: u32) -> Option<(char, String)> {
    Some((char::from_u32(form)?, char::from_u32(letter)?.to_string()))
}

/// Returns the presentation forms of Arabic letters, each with its letter. The forms are the characters from U+FE80 on.
/// A letter that joins the letter after it has four forms, and the hamza has one. Other letters have two.
fn arabic_forms() -> impl Iterator<Item = (char, String)> {
    let letters = (0x621..=0x63a).chain(0x641..=0x64a);
    let forms = letters.flat_map(|letter: u32| {
        let count = match letter {
            0x621 => 1,
            0x622..=0x625 | 0x627 | 0x629 | 0x62f..=0x632 | 0x648 | 0x649 => 2,
            _ => 4,
        };
        std::iter::repeat_n(letter, count)
    });
    (0xfe80..)
        .zip(forms)
        .filter_map(|(form, letter)| compatibility_form(form, letter))
}

/// Returns the lower-case text that a lower-case compatibility character represents; `None` for other characters.
pub(super) fn compatibility_text(form: char) -> Option<&'static str> {
    if form.is_ascii() {
        return None;
    }
    STANDS_FOR.get(&form).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compatibility_forms_are_distinct() {
        let forms = rows_of(TEXTS).map(|(_, forms)| forms.chars().count());
        let hangul = HANGUL
            .iter()
            .map(|[first, last, _]| (last - first + 1) as usize);
        let count = forms.chain(hangul).sum::<usize>() + KATAKANA.chars().count();
        assert_eq!(STANDS_FOR.len(), count + arabic_forms().count());
        let is_lower = |text: &str| text.to_lowercase() == text;
        let mut all = STANDS_FOR.iter();
        assert!(all.all(|(form, text)| is_lower(&form.to_string()) && is_lower(text)));
    }

    #[test]
    fn the_ends_of_runs_map_to_the_right_letters() {
        for (form, text) in [
            ('\u{ff66}', "ヲ"),
            ('\u{ff67}', "ァ"),
            ('\u{ff70}', "ー"),
            ('\u{ff71}', "ア"),
            ('\u{ff9d}', "ン"),
            ('\u{ff9e}', "\u{3099}"),
            ('\u{ff9f}', "\u{309a}"),
            ('\u{ffa1}', "\u{3131}"),
            ('\u{ffbe}', "\u{314e}"),
            ('\u{ffdc}', "\u{3163}"),
            ('\u{fe80}', "\u{621}"),
            ('\u{fe8d}', "\u{627}"),
            ('\u{fe8f}', "\u{628}"),
            ('\u{feb1}', "\u{633}"),
            ('\u{fed1}', "\u{641}"),
            ('\u{fee1}', "\u{645}"),
            ('\u{feed}', "\u{648}"),
            ('\u{fef4}', "\u{64a}"),
            ('\u{fefb}', "\u{644}\u{627}"),
            ('ⅷ', "viii"),
            ('ﬃ', "ffi"),
        ] {
            assert_eq!(compatibility_text(form), Some(text), "{form}");
        }
        for itself in ['a', 'é', '\u{ff65}', '\u{ffa0}', 'ア', '½', '七'] {
            assert_eq!(compatibility_text(itself), None, "{itself}");
        }
    }
}
