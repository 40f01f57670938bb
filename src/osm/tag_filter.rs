use super::kind::{KindSet, ObjectKind};
use rustc_hash::FxHashMap;

/// A pattern for a key or a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StringMatcher {
    /// Matches any string: `*`.
    Any,
    /// Matches this string.
    Equal(String),
    /// Matches any one of these strings: `a,b`.
    OneOf(Vec<String>),
    /// Matches strings that begin with this text: `addr:*`.
    Prefix(String),
    /// Matches strings that contain this text: `*Paris` or `*Paris*`.
    Contains(String),
}

impl StringMatcher {
    /// Parses the pattern of a key or a value in an expression. Fails if the pattern is a list and one of its strings
    /// begins or ends with `*`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let inner = text.trim_matches('*');
        if text == "*" || (inner.is_empty() && !text.is_empty()) {
            return Ok(Self::Any);
        }
        let starred = |one: &str| one.trim().starts_with('*') || one.trim().ends_with('*');
        if text.contains(',') && text.split(',').any(starred) {
            return Err("a list of keys or values cannot contain *".into());
        }
        let (leading, trailing) = (text.starts_with('*'), text.ends_with('*'));
        Ok(match (leading, trailing) {
            (true, _) => Self::Contains(inner.into()),
            (false, true) => Self::Prefix(inner.into()),
            (false, false) if text.contains(',') => {
                Self::OneOf(text.split(',').map(|one| one.trim().to_owned()).collect())
            }
            (false, false) => Self::Equal(text.into()),
        })
    }

    /// Whether a string matches the pattern.
    pub fn matches(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Equal(one) => one == text,
            Self::OneOf(several) => several.iter().any(|one| one == text),
            Self::Prefix(start) => text.starts_with(start.as_str()),
            Self::Contains(part) => text.contains(part.as_str()),
        }
    }

    /// The strings that match; `None` if the pattern does not list them.
    fn listed(&self) -> Option<&[String]> {
        match self {
            Self::Equal(one) => Some(std::slice::from_ref(one)),
            Self::OneOf(several) => Some(several),
            Self::Any | Self::Prefix(_) | Self::Contains(_) => None,
        }
    }
}

/// A tag expression: `[nwra/]key[=value]`, or `[nwra/]key!=value` for every value except the given ones. The letters
/// before the slash are kinds of objects; `a` stands for areas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagExpression {
    /// The kinds of objects that the expression applies to.
    pub kinds: KindSet,
    /// Whether the expression also applies to areas: closed ways with four refs or more, and relations whose tag `type`
    /// is `multipolygon` or `boundary`.
    pub areas: bool,
    /// The pattern of the key.
    pub key: StringMatcher,
    /// The pattern of the value; [`StringMatcher::Any`] if the expression has no value.
    pub value: StringMatcher,
    /// Whether the expression has `!=`. `value` is then the pattern of the values that do not match.
    pub is_negated: bool,
    /// Whether the expression has a value, which may be `*`.
    pub has_value: bool,
}

impl TagExpression {
    /// Parses an expression. The error is a message that quotes `text`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = |cause: &str| format!("'{text}' is not a tag expression: {cause}");
        let (kinds, areas, tag) = match text.split_once('/') {
            Some((kinds, tag)) if !kinds.contains('=') => {
                let (kinds, areas) = parse_kinds(kinds).map_err(|cause| bad(&cause))?;
                (kinds, areas, tag)
            }
            _ => (KindSet::ALL, false, text),
        };
        let (key, value) = match tag.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (tag, None),
        };
        let is_negated = value.is_some() && key.ends_with('!');
        let key = key.strip_suffix('!').filter(|_| is_negated).unwrap_or(key);
        if key.trim().is_empty() {
            return Err(bad("it has no key"));
        }
        Ok(Self {
            kinds,
            areas,
            key: StringMatcher::parse(key).map_err(|cause| bad(&cause))?,
            value: StringMatcher::parse(value.unwrap_or("*")).map_err(|cause| bad(&cause))?,
            is_negated,
            has_value: value.is_some(),
        })
    }

    /// Whether the expression accepts a value, with regard to `!=`.
    pub fn matches_value(&self, value: &str) -> bool {
        self.value.matches(value) != self.is_negated
    }

    /// Whether the expression applies to all objects of a kind, or to the areas among them.
    pub fn applies_to(&self, kind: ObjectKind) -> bool {
        self.kinds.contains(kind) || (self.areas && kind != ObjectKind::Node)
    }
}

/// Parses the letters before the slash. Returns the kinds, and whether `a` for areas is among the letters. No letters
/// mean all kinds.
fn parse_kinds(text: &str) -> Result<(KindSet, bool), String> {
    let (mut kinds, mut areas) = (KindSet::EMPTY, false);
    for letter in text.trim().chars() {
        match (ObjectKind::from_letter(letter), letter) {
            (Some(kind), _) => kinds.insert(kind),
            (None, 'a') => areas = true,
            (None, _) => {
                let cause =
                    format!("'{text}' before the slash has letters other than n, w, r and a");
                return Err(cause);
            }
        }
    }
    if kinds.is_empty() && !areas {
        kinds = KindSet::ALL;
    }
    Ok((kinds, areas))
}

/// A list of tag expressions. An object is selected if at least one expression matches.
#[derive(Debug, Clone, Default)]
pub struct TagFilter {
    expressions: Vec<TagExpression>,
    /// The indices of the expressions that match only listed keys, by key.
    by_key: FxHashMap<String, Vec<usize>>,
    /// The indices of the other expressions, whose keys begin or end with `*`.
    by_pattern: Vec<usize>,
}

impl TagFilter {
    /// A filter with the given expressions.
    pub fn new(expressions: impl IntoIterator<Item = TagExpression>) -> Self {
        let mut filter = Self::default();
        for expression in expressions {
            let index = filter.expressions.len();
            match expression.key.listed() {
                Some(keys) => {
                    for key in keys {
                        filter.by_key.entry(key.clone()).or_default().push(index);
                    }
                }
                None => filter.by_pattern.push(index),
            }
            filter.expressions.push(expression);
        }
        filter
    }

    /// Parses the expressions of a text, one per line; `#` begins a comment. An error names the line, counted
    /// from 1.
    pub fn parse_lines(text: &str) -> Result<Vec<TagExpression>, String> {
        let mut expressions = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                let expression = TagExpression::parse(line);
                expressions.push(expression.map_err(|cause| format!("line {number}: {cause}"))?);
            }
        }
        Ok(expressions)
    }

    /// The expressions.
    pub fn expressions(&self) -> &[TagExpression] {
        &self.expressions
    }

    /// The expressions whose key matches `key`.
    pub fn with_key<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a TagExpression> {
        let listed = self.by_key.get(key).into_iter().flatten();
        let listed = listed.filter_map(|index| self.expressions.get(*index));
        let patterns = self.by_pattern.iter();
        let patterns = patterns.filter_map(|index| self.expressions.get(*index));
        listed.chain(patterns.filter(move |expression| expression.key.matches(key)))
    }

    /// The kinds of objects that any of the expressions applies to.
    pub fn kinds(&self) -> KindSet {
        let concerned =
            |kind: &ObjectKind| self.expressions.iter().any(|one| one.applies_to(*kind));
        ObjectKind::ALL.into_iter().filter(concerned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(expression: &str, key: &str, value: &str) -> bool {
        let filter = TagFilter::new([TagExpression::parse(expression).unwrap()]);
        filter.with_key(key).any(|one| one.matches_value(value))
    }

    #[test]
    fn keys_and_values_match_as_the_field_writes_them() {
        for (expression, key, value, expected) in [
            ("highway", "highway", "primary", true),
            ("highway=primary", "highway", "primary", true),
            ("highway=primary", "highway", "primary_link", false),
            ("highway!=primary", "highway", "secondary", true),
            ("highway!=primary", "highway", "primary", false),
            ("highway=a, b", "highway", "b", true),
            ("highway!=a,b", "highway", "b", false),
            (
                "name,name:de=Kastanienallee,Kastanienstrasse",
                "name:de",
                "Kastanienallee",
                true,
            ),
            ("addr:*", "addr:street", "x", true),
            ("addr:*", "xaddr:street", "x", false),
            ("name=*Paris", "name", "Rue de Paris 5", true),
            ("name=*Paris*", "name", "Paris", true),
            ("name=Paris*", "name", "Rue de Paris", false),
            ("*=yes", "anything", "yes", true),
            ("*", "anything", "at all", true),
            ("source=http://a/b", "source", "http://a/b", true),
            ("name=", "name", "", true),
        ] {
            assert_eq!(
                matches(expression, key, value),
                expected,
                "{expression} {key}={value}"
            );
        }
    }

    #[test]
    fn kinds_stand_before_a_slash() {
        let kinds =
            |text: &str| TagExpression::parse(text).map(|one| (one.kinds.bits(), one.areas));
        assert_eq!(kinds("n/a").unwrap(), (1, false));
        assert_eq!(kinds("wr/a=b").unwrap(), (6, false));
        assert_eq!(kinds("a/building").unwrap(), (0, true));
        assert_eq!(kinds("/note").unwrap(), (7, false));
        for bad in ["x/a", "", "n/", "=b", "n/=b", "!=x", "a*,b=c"] {
            assert!(kinds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_file_has_an_expression_a_line_and_comments() {
        let text = "n/amenity # shops\n\n# nothing\nhighway=primary\r\n";
        assert_eq!(TagFilter::parse_lines(text).unwrap().len(), 2);
        assert!(
            TagFilter::parse_lines("a\nx/b")
                .unwrap_err()
                .contains("line 2")
        );
    }
}
