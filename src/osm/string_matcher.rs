use regex_lite::Regex;
use std::borrow::Cow;

/// A regular expression. Two regular expressions are equal if they were parsed from the same string.
#[derive(Debug, Clone)]
pub struct RegexMatcher(Regex);

impl RegexMatcher {
    /// Parses a regular expression in the syntax of the crate `regex-lite`. The expression is not anchored.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = |error| format!("'{text}' is not a regular expression: {error}");
        Regex::new(text).map(Self).map_err(bad)
    }

    /// Whether some part of a string matches.
    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// Replaces all matches in a string. In `value`, `$1` and `${name}` stand for the text of a group.
    pub(crate) fn replace_all<'t>(&self, text: &'t str, value: &str) -> Cow<'t, str> {
        self.0.replace_all(text, value)
    }

    /// Returns the first reference in `value` to a group that the expression does not have.
    pub(super) fn missing_group<'v>(&self, value: &'v str) -> Option<&'v str> {
        let mut rest = value;
        while let Some((_, after)) = rest.split_once('$') {
            let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
            let (name, behind) = if let Some(after) = after.strip_prefix('$') {
                ("", after)
            } else if let Some((name, behind)) = after
                .strip_prefix('{')
                .and_then(|after| after.split_once('}'))
            {
                (name, behind)
            } else {
                after.split_at(after.find(|char| !is_name(char)).unwrap_or(after.len()))
            };
            if !name.is_empty() && !self.has_group(name) {
                return Some(name);
            }
            rest = behind;
        }
        None
    }

    fn has_group(&self, name: &str) -> bool {
        match name.parse::<usize>() {
            Ok(number) => number < self.0.captures_len(),
            Err(_) => self.0.capture_names().flatten().any(|one| one == name),
        }
    }
}

impl PartialEq for RegexMatcher {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for RegexMatcher {}

/// A pattern for a key or a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StringMatcher {
    /// Matches any string (`*`).
    Any,
    /// Matches this string.
    Equal(String),
    /// Matches any one of these strings (`a,b`).
    OneOf(Vec<String>),
    /// Matches strings that begin with this string (`addr:*`).
    Prefix(String),
    /// Matches strings that contain this string (`*Paris` or `*Paris*`).
    Contains(String),
    /// Matches strings that contain a match of this regular expression.
    Regex(RegexMatcher),
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
            Self::Regex(regex) => regex.matches(text),
        }
    }

    /// Returns the only strings that match the pattern; `None` if the pattern is neither a list nor a single string.
    pub(super) fn listed_strings(&self) -> Option<&[String]> {
        match self {
            Self::Equal(one) => Some(std::slice::from_ref(one)),
            Self::OneOf(several) => Some(several),
            Self::Any | Self::Prefix(_) | Self::Contains(_) | Self::Regex(_) => None,
        }
    }
}
