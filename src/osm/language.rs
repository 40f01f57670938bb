/// Whether the part of a key after `name:` is a language tag, such as `de` and `sr-Latn`, rather than a property of the
/// name, such as `etymology`.
pub(crate) fn is_language_tag(tag: impl AsRef<[u8]>) -> bool {
    let mut subtags = tag.as_ref().split(|byte| matches!(byte, b'-' | b'_'));
    let main = subtags.next().unwrap_or_default();
    let is_subtag = |subtag: &[u8]| {
        (1..=8).contains(&subtag.len()) && subtag.iter().all(u8::is_ascii_alphanumeric)
    };
    matches!(main.len(), 2 | 3) && main.iter().all(u8::is_ascii_lowercase) && subtags.all(is_subtag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_tags_are_told_from_other_suffixes() {
        for tag in ["de", "zh-Hant", "be-tarask", "nan-Hant-TW", "sr_Latn"] {
            assert!(is_language_tag(tag), "{tag}");
        }
        for other in [
            "",
            "left",
            "etymology:wikidata",
            "1990",
            "de:pronunciation",
            "DE",
            "de-",
            "de-languages",
        ] {
            assert!(!is_language_tag(other), "{other}");
        }
    }
}
