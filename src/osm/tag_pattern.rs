use super::string_matcher::{RegexMatcher, StringMatcher};

/// The part of an expression that selects objects by a tag: `key`, `key=value` or `key!=value`. `key!=value` accepts
/// all values that `value` does not match. With `~` instead of `=`, the value is a regular expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagPattern {
    /// The pattern of the key.
    pub key: StringMatcher,
    /// The pattern of the value; [`StringMatcher::Any`] if the expression has no value.
    pub value: StringMatcher,
    /// Whether the expression has `!=` or `!~`. `value` is then the pattern of the excluded values.
    pub is_negated: bool,
    /// Whether the expression has a value, which may be `*`.
    pub has_value: bool,
}

/// The conditions on the tags of an object: the tags must match all of `needed`, and none of `excluded`.
#[derive(Debug, Default)]
pub(super) struct TagConditions {
    pub needed: Vec<TagPattern>,
    pub excluded: Vec<TagPattern>,
}

impl TagPattern {
    /// Parses a key, or a key and a value. `~` is an ordinary character. The error message states the cause and does
    /// not quote `text`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (key, value) = match text.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (text, None),
        };
        Self::from_parts(key, value, StringMatcher::parse)
    }

    /// Parses conditions that are joined by `&` and must all hold. Each condition may have the operator `=`, `!=`, `~`
    /// or `!~`. `!condition` holds if no tag of the object matches `condition`.
    pub(super) fn parse_joined_conditions(text: &str) -> Result<TagConditions, String> {
        let mut parsed = TagConditions::default();
        for condition in split_conditions(text) {
            let condition = condition.replace("\\&", "&");
            match condition.trim().strip_prefix('!') {
                Some(attribute) if attribute.trim_start().starts_with('@') => {
                    return Err("a condition on metadata is negated by !=, as in '@user!=x'".into());
                }
                Some(excluded) => parsed.excluded.push(Self::parse_condition(excluded)?),
                None => parsed.needed.push(Self::parse_condition(&condition)?),
            }
        }
        Ok(parsed)
    }

    /// Parses a condition whose value may be a regular expression.
    fn parse_condition(condition: &str) -> Result<Self, String> {
        match condition.split_once(['=', '~']) {
            Some((key, value)) if condition[key.len()..].starts_with('~') => {
                let regex = |text: &str| match text.trim() {
                    "*" => Ok(StringMatcher::Any),
                    text => RegexMatcher::parse(text).map(StringMatcher::Regex),
                };
                Self::from_parts(key, Some(value), regex)
            }
            _ => Self::parse(condition),
        }
    }

    fn from_parts(
        key: &str,
        value: Option<&str>,
        parse_value: impl Fn(&str) -> Result<StringMatcher, String>,
    ) -> Result<Self, String> {
        let is_negated = value.is_some() && key.ends_with('!');
        let key = key.strip_suffix('!').filter(|_| is_negated).unwrap_or(key);
        if key.trim().is_empty() {
            return Err("it has no key".into());
        }
        Ok(Self {
            key: StringMatcher::parse(key)?,
            value: value.map_or(Ok(StringMatcher::Any), parse_value)?,
            is_negated,
            has_value: value.is_some(),
        })
    }

    /// Whether the pattern accepts a value, taking `!=` into account.
    pub fn matches_value(&self, value: &str) -> bool {
        self.value.matches(value) != self.is_negated
    }

    /// Whether the pattern accepts a tag.
    pub fn matches(&self, key: &str, value: &str) -> bool {
        self.key.matches(key) && self.matches_value(value)
    }
}

/// Splits an expression into conditions at `&`. After a value, `&` separates only if a key and an operator follow, or
/// `!` and a key, so `Marks & Spencer` is one value. `\&` and an `&` in the query of a URL (`https://…?a=1&b=2`) do not
/// separate.
fn split_conditions(text: &str) -> Vec<&str> {
    let (mut found, mut start) = (Vec::new(), 0);
    for (at, _) in text.match_indices('&') {
        let (before, after) = (&text[start..at], &text[at + 1..]);
        let is_address = before.contains("://") && before.contains('?');
        let has_value = before.contains(['=', '~']);
        let separates = !before.ends_with('\\')
            && !before.trim().is_empty()
            && !(has_value && (is_address || !begins_with_condition(after)));
        if separates {
            found.push(before);
            start = at + 1;
        }
    }
    found.push(&text[start..]);
    found
}

/// Whether a string begins with a condition: one or more keys and an operator, or `!` and one or more keys.
fn begins_with_condition(text: &str) -> bool {
    let text = text.trim_start();
    let (text, is_excluded) = match text.strip_prefix('!') {
        Some(excluded) => (excluded.split('&').next().unwrap_or(excluded), true),
        None => (text, false),
    };
    let key = match text.split_once(['=', '~']) {
        Some((key, _)) => key.strip_suffix('!').unwrap_or(key),
        None if is_excluded => text,
        None => return false,
    };
    let is_key = |key: &str| {
        let is_plain = |char: char| char.is_alphanumeric() || "_:-.*".contains(char);
        !key.is_empty() && key.chars().all(is_plain)
    };
    key.split(',').map(str::trim).all(is_key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ampersand_joins_conditions_and_stays_in_values() {
        for (text, expected) in [
            (
                "highway=primary&lanes=2",
                &["highway=primary", "lanes=2"][..],
            ),
            ("a=b & c!=d,e & f~^g", &["a=b ", " c!=d,e ", " f~^g"]),
            ("highway&lanes", &["highway", "lanes"]),
            ("shop&name=H&M", &["shop", "name=H&M"]),
            ("name=Marks & Spencer", &["name=Marks & Spencer"]),
            (
                "name=Marks & Spencer&shop=*",
                &["name=Marks & Spencer", "shop=*"],
            ),
            ("brand=C&A,H&M", &["brand=C&A,H&M"]),
            ("name=a\\&b=c", &["name=a\\&b=c"]),
            ("url=http://a/?b=1&c=2", &["url=http://a/?b=1&c=2"]),
            ("url=http://a/&c=2", &["url=http://a/", "c=2"]),
            ("a=b&name,name:fi=x", &["a=b", "name,name:fi=x"]),
            ("highway=path&!name", &["highway=path", "!name"]),
            ("a=b & !c,d & !e=f", &["a=b ", " !c,d ", " !e=f"]),
            ("name=Ben & !Jerry!", &["name=Ben & !Jerry!"]),
            ("name=a&", &["name=a&"]),
            ("&a=b", &["&a=b"]),
        ] {
            assert_eq!(split_conditions(text), expected, "{text}");
        }
    }

    #[test]
    fn values_match_regular_expressions() {
        let matches = |text: &str, value: &str| {
            let patterns = TagPattern::parse_joined_conditions(text).unwrap();
            patterns.needed.iter().all(|one| one.matches("k", value))
        };
        for (text, value, expected) in [
            ("k~^A[0-9]+$", "A81", true),
            ("k~^A[0-9]+$", "BA81", false),
            ("k~81", "BA81x", true),
            ("k!~81", "BA81x", false),
            ("k!~81", "x", true),
            ("k~(?i)straße|street", "Main STREET", true),
            ("k~a=b", "xa=b", true),
            ("k=a~b", "a~b", true),
            ("k~*", "x", true),
            ("k~^a\\&b$", "a&b", true),
            ("k~^a&k~b$", "axb", true),
            ("k~^a&k~b$", "axc", false),
        ] {
            assert_eq!(matches(text, value), expected, "{text} {value}");
        }
        let error = TagPattern::parse_joined_conditions("k~(").unwrap_err();
        assert!(error.contains("'('") && !error.contains('\n'), "{error}");
        // `parse` does not support regular expressions, so `~` is a part of the key.
        assert!(!TagPattern::parse("k~a").unwrap().has_value);
    }
}
