use super::kind::{KindSet, ObjectKind};
use rustc_hash::FxHashMap;

/// What a key or a value must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StringMatcher {
    /// Anything: `*`.
    Any,
    /// Just that.
    Equal(String),
    /// One of several: `a,b`.
    OneOf(Vec<String>),
    /// Something that begins so: `addr:*`.
    Prefix(String),
    /// Something that contains that: `*Paris` or `*Paris*`.
    Contains(String),
}

impl StringMatcher {
    /// Reads a matcher as it stands in an expression.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let inner = text.trim_matches('*');
        if text == "*" || (inner.is_empty() && !text.is_empty()) {
            return Ok(Self::Any);
        }
        let starred = |one: &str| one.trim().starts_with('*') || one.trim().ends_with('*');
        if text.contains(',') && text.split(',').any(starred) {
            return Err("a list cannot be combined with *".into());
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

    /// Whether a string is one that is meant.
    pub fn matches(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Equal(one) => one == text,
            Self::OneOf(several) => several.iter().any(|one| one == text),
            Self::Prefix(start) => text.starts_with(start.as_str()),
            Self::Contains(part) => text.contains(part.as_str()),
        }
    }

    /// The strings that are meant, where they can be listed.
    fn listed(&self) -> Option<&[String]> {
        match self {
            Self::Equal(one) => Some(std::slice::from_ref(one)),
            Self::OneOf(several) => Some(several),
            Self::Any | Self::Prefix(_) | Self::Contains(_) => None,
        }
    }
}

/// One expression: `[nwra/]key[=value]`, with `!=` for every value but those given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagExpression {
    /// Kinds of objects that it is about.
    pub kinds: KindSet,
    /// Whether it is also about areas: ways that are closed and have four nodes or more, and relations that
    /// are multipolygons or boundaries.
    pub areas: bool,
    /// The key.
    pub key: StringMatcher,
    /// The value.
    pub value: StringMatcher,
    /// Whether the values are those that are not meant.
    pub other_values: bool,
    /// Whether a value was given, be it `*`.
    pub has_value: bool,
}

impl TagExpression {
    /// Reads an expression.
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
        let other_values = value.is_some() && key.ends_with('!');
        let key = key
            .strip_suffix('!')
            .filter(|_| other_values)
            .unwrap_or(key);
        if key.trim().is_empty() {
            return Err(bad("it has no key"));
        }
        Ok(Self {
            kinds,
            areas,
            key: StringMatcher::parse(key).map_err(|cause| bad(&cause))?,
            value: StringMatcher::parse(value.unwrap_or("*")).map_err(|cause| bad(&cause))?,
            other_values,
            has_value: value.is_some(),
        })
    }

    /// Whether a value is one that is meant.
    pub fn matches_value(&self, value: &str) -> bool {
        self.value.matches(value) != self.other_values
    }

    /// Whether the expression is about objects of that kind.
    pub fn concerns(&self, kind: ObjectKind) -> bool {
        self.kinds.contains(kind) || (self.areas && kind != ObjectKind::Node)
    }
}

/// Kinds before the slash; none given means all.
fn parse_kinds(text: &str) -> Result<(KindSet, bool), String> {
    let (mut kinds, mut areas) = (KindSet::EMPTY, false);
    for letter in text.trim().chars() {
        match (ObjectKind::from_letter(letter), letter) {
            (Some(kind), _) => kinds.insert(kind),
            (None, 'a') => areas = true,
            (None, _) => {
                let cause = format!("'{text}' before the slash is not made of n, w, r and a");
                return Err(cause);
            }
        }
    }
    if kinds.is_empty() && !areas {
        kinds = KindSet::ALL;
    }
    Ok((kinds, areas))
}

/// Several expressions, of which one has to match.
#[derive(Debug, Clone, Default)]
pub struct TagFilter {
    expressions: Vec<TagExpression>,
    /// The expressions by their keys, where these can be listed.
    by_key: FxHashMap<String, Vec<usize>>,
    /// The others.
    by_pattern: Vec<usize>,
}

impl TagFilter {
    /// A filter of some expressions.
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

    /// Reads the expressions of a text, one a line; `#` begins a comment. Fails with the number of the
    /// line.
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

    /// The expressions with that key.
    pub fn with_key<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a TagExpression> {
        let listed = self.by_key.get(key).into_iter().flatten();
        let listed = listed.filter_map(|index| self.expressions.get(*index));
        let patterns = self.by_pattern.iter();
        let patterns = patterns.filter_map(|index| self.expressions.get(*index));
        listed.chain(patterns.filter(move |expression| expression.key.matches(key)))
    }

    /// Kinds of objects of which some may match.
    pub fn kinds(&self) -> KindSet {
        let concerned = |kind: &ObjectKind| self.expressions.iter().any(|one| one.concerns(*kind));
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
