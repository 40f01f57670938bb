use regex_lite::Regex;

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

    /// The strings that the pattern lists; `None` for a pattern that is not a list.
    pub(super) fn listed(&self) -> Option<&[String]> {
        match self {
            Self::Equal(one) => Some(std::slice::from_ref(one)),
            Self::OneOf(several) => Some(several),
            Self::Any | Self::Prefix(_) | Self::Contains(_) | Self::Regex(_) => None,
        }
    }
}
