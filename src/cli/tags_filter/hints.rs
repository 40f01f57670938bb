//! Finds the likely reason why `tags-filter` keeps nothing, from the expressions and from the keys in the file.

use crate::osm::{
    KindSet, MetadataCondition, ObjectExpression, ObjectKind, StringMatcher, TagPattern,
};
use std::path::Path;

/// Returns the likely reason why nothing is kept. `texts` are the expressions as given on the command line. `has_keys`
/// tells whether a key of the expressions occurs in the file. It is `None` if no strings were read.
pub(super) fn why_nothing_is_kept(
    expressions: &[ObjectExpression],
    texts: &[String],
    invert: bool,
    has_keys: Option<bool>,
) -> String {
    if invert {
        return "every object matches, and -i leaves those out that do".into();
    }
    let of_text = texts
        .iter()
        .find_map(|text| mistake_in_argument(text).or_else(|| mistake_in_key(text)));
    let of_value = || expressions.iter().find_map(mistake_in_value);
    let guess = of_text
        .or_else(of_value)
        .or_else(|| hint_about_key(expressions, has_keys));
    let kinds = restricted_kinds_text(expressions);
    let cause = match (&guess, kinds) {
        (Some(guess), _) => format!(": {guess}"),
        (None, Some(kinds)) => {
            format!("; it is looked for among {kinds} alone, because of what is before the slash")
        }
        (None, None) => String::new(),
    };
    match expressions {
        [_] => format!("no object matches the expression{cause}"),
        _ => format!("no object matches any of the expressions{cause}"),
    }
}

/// Describes the mistake in an argument, if there is one.
fn mistake_in_argument(text: &str) -> Option<String> {
    if !text.contains(['=', '*', '@', '~']) && text.contains('.') && Path::new(text).exists() {
        return Some(format!(
            "'{text}' is a file: a shell puts names of files in place of *, unless the expression is in quotes"
        ));
    }
    let is_joint = matches!(text, "&" | "&&" | "AND" | "and" | "OR" | "or" | "|" | "||");
    if is_joint {
        return Some(format!(
            "'{text}' is taken for a key: & within an expression joins tags, as in 'w/highway=primary&lanes=2', and of \
             several expressions one has to match"
        ));
    }
    let has_word = [" and ", " AND ", "&&"]
        .iter()
        .any(|word| text.contains(word));
    (has_word && text.contains('=')).then(|| {
        format!("in '{text}', tags are joined by a single &, as in 'w/highway=primary&lanes=2'")
    })
}

/// Describes the mistake if a value in the expression looks as if a part of it was meant as another tag or condition.
fn mistake_in_value(expression: &ObjectExpression) -> Option<String> {
    let tags = expression.tag.iter().chain(&expression.more_tags);
    tags.filter(|tag| !tag.is_negated).find_map(|tag| {
        let key = exact_key(tag)?;
        match &tag.value {
            StringMatcher::OneOf(values) => {
                let (value, of_other) = (values.first()?, values.iter().find(|one| one.contains('='))?);
                Some(format!(
                    "commas separate values of one key, so '{of_other}' is taken for a value of {key}: & joins tags, \
                     as in '{key}={value}&{of_other}'"
                ))
            }
            StringMatcher::Equal(value) if split_before_second_tag(value).is_some() => {
                let (value, other) = split_before_second_tag(value)?;
                Some(if starts_with_metadata_condition(other) {
                    format!("a condition on metadata begins with @, as in '{key}={value} @{other}'")
                } else {
                    format!(
                        "'{other}' is taken for a part of the value: & joins tags, as in '{key}={value}&{other}'"
                    )
                })
            }
            StringMatcher::Equal(value) if value.contains('&') => {
                let (value, other) = value.split_once('&')?;
                let (value, other) = (value.trim_end_matches('\\').trim(), other.trim());
                Some(format!(
                    "& is taken for a part of the value: it joins tags where an operator follows the key, as in \
                     '{key}={value}&{other}=*'"
                ))
            }
            _ => None,
        }
    })
}

/// Splits the value of an expression before a word that looks like a second tag or condition.
fn split_before_second_tag(value: &str) -> Option<(&str, &str)> {
    let mut spaces = value.match_indices(' ').map(|(at, _)| at);
    spaces.find_map(|at| {
        let (first, other) = (value[..at].trim_end(), &value[at + 1..]);
        let word = other.split(' ').next().unwrap_or_default();
        let has_key = word.starts_with(|char: char| char.is_ascii_lowercase());
        (has_key && word.contains(['=', '~', '<', '>']) && !first.is_empty())
            .then_some((first, other))
    })
}

/// Whether a text begins with the name of a metadata attribute, followed by an operator.
fn starts_with_metadata_condition(text: &str) -> bool {
    let rest_of = |name| text.strip_prefix(name);
    let mut rests = MetadataCondition::attributes().filter_map(rest_of);
    rests.any(|rest| rest.starts_with(['=', '!', '<', '>']))
}

/// Describes the mistake if the tag of an expression looks like a condition on metadata without its `@`.
fn mistake_in_key(text: &str) -> Option<String> {
    let (kinds, tag) = match text.split_once('/') {
        Some((kinds, tag)) if !kinds.contains('=') => (format!("{kinds}/"), tag),
        _ => (String::new(), text),
    };
    starts_with_metadata_condition(tag).then(|| {
        format!(
            "'{tag}' is taken for a tag: '{kinds}@{tag}' is a condition on the metadata of objects"
        )
    })
}

/// Returns a note about `&` if the user probably wanted objects that have the tags of several expressions. This is
/// likely if the first expression has kinds before its tag and another expression has none.
pub(super) fn hint_about_separate_tags(texts: &[String]) -> Option<String> {
    let (first, others) = texts.split_first()?;
    let (kinds, _) = first.split_once('/').filter(|(_, tag)| tag.contains('='))?;
    let is_plain = |text: &&String| text.contains('=') && !text.contains(['/', '@']);
    let other = others.iter().find(is_plain)?;
    (!kinds.contains(['=', '@', '~'])).then(|| {
        format!("one of the expressions has to match; '{first}&{other}' keeps the objects that have both tags")
    })
}

/// If there is only one expression, returns a hint that depends on whether its key occurs in the file.
fn hint_about_key(expressions: &[ObjectExpression], has_keys: Option<bool>) -> Option<String> {
    let [expression] = expressions else {
        return None;
    };
    let tag = expression.tag.as_ref()?;
    let key = exact_key(tag)?;
    match has_keys? {
        false => {
            let kinds = restricted_kinds_text(expressions);
            let kinds = kinds.as_deref().unwrap_or("objects");
            Some(format!(
                "none of the {kinds} that were looked at has the key {key}"
            ))
        }
        true if expression.more_tags.is_empty()
            && expression.excluded_tags.is_empty()
            && expression.metadata.is_empty() =>
        {
            if !tag.has_value {
                return None;
            }
            let list = format!("'pbfhogg inspect tags FILE {key}=*' lists its values");
            Some(format!("the key {key} seems to have other values: {list}"))
        }
        true => {
            Some("no object has all of it at the same time; several expressions are an or".into())
        }
    }
}

fn exact_key(tag: &TagPattern) -> Option<&str> {
    match &tag.key {
        StringMatcher::Equal(key) => Some(key),
        _ => None,
    }
}

/// Returns the kinds that the expressions apply to, such as `nodes and ways`; `None` if they apply to all kinds.
fn restricted_kinds_text(expressions: &[ObjectExpression]) -> Option<String> {
    let mut all = KindSet::EMPTY;
    for expression in expressions {
        ObjectKind::ALL
            .into_iter()
            .filter(|kind| expression.applies_to(*kind))
            .for_each(|kind| all.insert(kind));
    }
    let names: Vec<String> = ObjectKind::ALL
        .into_iter()
        .filter(|kind| all.contains(*kind))
        .map(|kind| format!("{kind}s"))
        .collect();
    (names.len() < ObjectKind::ALL.len()).then(|| names.join(" and "))
}
