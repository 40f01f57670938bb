//! Rules that change the tags of objects.

use super::object_filter::{ObjectExpression, ObjectFilter, parse_each_line};
use super::rule_words::{RuleWord, RuleWords};
use super::string_matcher::{RegexMatcher, StringMatcher};
use std::fmt;

/// The maximum length of a key or a value in OSM, in characters.
pub const MAX_TAG_LEN: usize = 255;

/// A rule that changes the tags of objects: `[EXPRESSION: ]ACTION ARGUMENTS`.
#[derive(Debug, Clone)]
pub struct TagRule {
    /// The text of the rule.
    text: String,
    /// The objects that the rule changes. A filter without expressions selects all objects.
    pub filter: ObjectFilter,
    /// The change.
    pub action: TagAction,
}

/// A change of the tags of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TagAction {
    /// Removes the tags with these keys.
    Drop(KeyPatterns),
    /// Removes all tags except those with these keys.
    Keep(KeyPatterns),
    /// Gives the key this value, whether the object has the key or not.
    Set(String, String),
    /// Gives the key this value if the object does not have the key.
    Default(String, String),
    /// Replaces the first key with the second one.
    Rename(String, String),
    /// Gives the second key the value of the first one.
    Copy(String, String),
    /// Replaces each match of a regular expression in the values of these keys. A tag whose value becomes empty is
    /// removed.
    Replace {
        /// The keys.
        keys: KeyPatterns,
        /// The regular expression.
        pattern: RegexMatcher,
        /// The text in place of each match, with `$1` or `${name}` for the text of a group.
        value: String,
    },
}

/// A list of keys, each of which may have a `*` at either end, as in expressions. In a key in quotation marks, `*` is
/// an ordinary character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPatterns(Vec<StringMatcher>);

impl KeyPatterns {
    /// Parses a list of keys with commas between them, which begins at the offset `at` of a rule. The error is the
    /// offset of the wrong key, and what was expected there.
    fn parse(text: &str, at: usize) -> Result<Self, RuleError> {
        let (mut words, mut patterns) = (RuleWords::new(text, 0), Vec::new());
        loop {
            let (start, rest) = words.remaining_text();
            let end = rest.find(',').unwrap_or(rest.len());
            let key = rest[..end].trim_end();
            if key.starts_with('"') {
                let word = words.next().map_err(|(_, cause)| (at + start, cause))?;
                patterns.push(StringMatcher::Equal(
                    word.map_or(String::new(), |word| word.text),
                ));
            } else if key.is_empty() || key.trim_matches('*').contains('*') {
                let expected = "keys with commas between them, each with * at its ends at most";
                return Err((at + start, expected.into()));
            } else {
                let pattern = StringMatcher::parse(key);
                patterns.push(pattern.map_err(|_| (at + start, "a key".to_owned()))?);
                words.skip(end);
            }
            match words.remaining_text() {
                (_, "") => return Ok(Self(patterns)),
                (_, rest) if rest.starts_with(',') => words.skip(1),
                (behind, _) => return Err((at + behind, "a comma between keys".into())),
            }
        }
    }

    /// Whether one of the patterns accepts `key`.
    pub fn matches(&self, key: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(key))
    }
}

/// The names of the actions.
const ACTIONS: [&str; 7] = [
    "drop", "keep", "set", "default", "rename", "copy", "replace",
];

/// The names of all actions, for the message about a rule without an action.
const NO_ACTION: &str = "drop, keep, set, default, rename, copy or replace";

/// An error in a rule: the offset in the rule, in bytes, and what was expected there.
type RuleError = (usize, String);

impl TagRule {
    /// Parses a rule. The error is a message that quotes the rule and names the column, counted from 1, and what was
    /// expected there.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        parse_rule(text).map_err(|(at, expected)| {
            let column = text.get(..at).unwrap_or(text).chars().count() + 1;
            format!("'{text}', column {column}: expected {expected}")
        })
    }

    /// Parses each line of `text` as a rule. At the start of a line and after whitespace, `#` begins a comment. Errors
    /// name the line, counted from 1.
    pub fn parse_lines(text: &str) -> Result<Vec<Self>, String> {
        parse_each_line(text, Self::parse)
    }
}

impl fmt::Display for TagRule {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.text)
    }
}

fn parse_rule(text: &str) -> Result<TagRule, RuleError> {
    let (expression, action_at) = split_expression(text)?;
    let filter = match expression {
        None => ObjectFilter::default(),
        Some(expression) => {
            let parsed = ObjectExpression::parse(expression);
            let parsed = parsed.map_err(|cause| (0, format!("an expression: {cause}")))?;
            ObjectFilter::new([parsed])
        }
    };
    Ok(TagRule {
        text: text.to_owned(),
        filter,
        action: parse_action(text, action_at)?,
    })
}

/// Returns the expression of a rule, if it has one, and the offset of its action. A rule without an expression begins
/// with the name of an action. Otherwise, the expression ends at the first `: ` that is followed by the name of an
/// action.
fn split_expression(text: &str) -> Result<(Option<&str>, usize), RuleError> {
    let begins_with_action = |at: usize| {
        let word = text[at..].split_whitespace().next();
        word.is_some_and(|word| ACTIONS.contains(&word))
    };
    if begins_with_action(0) {
        return Ok((None, 0));
    }
    let mut first_end = None;
    for (colon, _) in text.match_indices(':') {
        let rest = &text[colon + 1..];
        let at = text.len() - rest.trim_start().len();
        if at == colon + 1 {
            continue;
        }
        if begins_with_action(at) {
            return Ok((Some(&text[..colon]), at));
        }
        first_end.get_or_insert(at);
    }
    match first_end {
        Some(at) => Err((at, NO_ACTION.into())),
        None => Err((
            0,
            format!("{NO_ACTION}, or an expression, ': ' and one of them"),
        )),
    }
}

fn parse_action(text: &str, at: usize) -> Result<TagAction, RuleError> {
    let mut words = RuleWords::new(text, at);
    let name = words.next()?.map_or(String::new(), |word| word.text);
    let action = match name.as_str() {
        "drop" => TagAction::Drop(parse_key_patterns(&mut words)?),
        "keep" => TagAction::Keep(parse_key_patterns(&mut words)?),
        "set" => parse_key_and_value(&mut words).map(|(key, value)| TagAction::Set(key, value))?,
        "default" => {
            parse_key_and_value(&mut words).map(|(key, value)| TagAction::Default(key, value))?
        }
        "rename" => parse_two_keys(&mut words).map(|(from, to)| TagAction::Rename(from, to))?,
        "copy" => parse_two_keys(&mut words).map(|(from, to)| TagAction::Copy(from, to))?,
        "replace" => parse_replace(&mut words)?,
        _ => return Err((at, NO_ACTION.into())),
    };
    Ok(action)
}

fn parse_key_patterns(words: &mut RuleWords<'_>) -> Result<KeyPatterns, RuleError> {
    let (at, rest) = words.remaining_text();
    KeyPatterns::parse(rest, at)
}

/// Parses `KEY=VALUE`.
fn parse_key_and_value(words: &mut RuleWords<'_>) -> Result<(String, String), RuleError> {
    let (at, rest) = words.remaining_text();
    let key = if rest.starts_with('"') {
        words.next()?.map_or(String::new(), |word| word.text)
    } else {
        let key = rest.split('=').next().unwrap_or(rest);
        words.skip(key.len());
        key.trim().to_owned()
    };
    if !words.remaining_text().1.starts_with('=') {
        return Err((at, "KEY=VALUE".into()));
    }
    words.skip(1);
    let key = checked_key(&RuleWord { at, text: key })?;
    let value = words.read_rest_as_word()?;
    if value.text.is_empty() {
        return Err((value.at, "a value".into()));
    }
    check_tag_text(&value)?;
    Ok((key, value.text))
}

/// Parses two keys with a space between them.
fn parse_two_keys(words: &mut RuleWords<'_>) -> Result<(String, String), RuleError> {
    let mut next = |name: &str| match words.next()? {
        Some(word) => Ok((word.at, checked_key(&word)?)),
        None => Err((words.position(), name.to_owned())),
    };
    let (_, from) = next("two keys with a space between them")?;
    let (at, to) = next("a second key")?;
    if from == to {
        return Err((at, "another key".into()));
    }
    match words.next()? {
        Some(word) => Err((word.at, "the end of the rule".into())),
        None => Ok((from, to)),
    }
}

/// Parses `KEYS ~REGEX VALUE`.
fn parse_replace(words: &mut RuleWords<'_>) -> Result<TagAction, RuleError> {
    let (at, rest) = words.remaining_text();
    let Some(tilde) = rest.find(" ~") else {
        return Err((at, "KEYS ~REGEX VALUE".into()));
    };
    let keys = KeyPatterns::parse(&rest[..tilde], at)?;
    words.skip(tilde + 2);
    let (regex_at, _) = words.remaining_text();
    let regex = words.next()?.map_or(String::new(), |word| word.text);
    let pattern = RegexMatcher::parse(&regex);
    let pattern = pattern.map_err(|cause| (regex_at, format!("a regular expression: {cause}")))?;
    if regex.is_empty() {
        return Err((regex_at, "a regular expression".into()));
    }
    if words.is_done() {
        let expected = "a value, or \"\" for none";
        return Err((words.position(), expected.into()));
    }
    let value = words.read_rest_as_word()?;
    check_tag_text(&value)?;
    if let Some(group) = pattern.missing_group(&value.text) {
        let expected = format!("groups of the regular expression, which '{group}' is not");
        return Err((value.at, expected));
    }
    Ok(TagAction::Replace {
        keys,
        pattern,
        value: value.text,
    })
}

/// Returns the text of `word` as a key. Fails if the text is empty, contains `*`, or cannot be a key in OSM.
fn checked_key(word: &RuleWord) -> Result<String, RuleError> {
    if word.text.is_empty() || word.text.contains('*') {
        return Err((word.at, "a key without *".into()));
    }
    check_tag_text(word)?;
    Ok(word.text.clone())
}

fn check_tag_text(word: &RuleWord) -> Result<(), RuleError> {
    if word.text.chars().any(char::is_control) {
        return Err((word.at, "text without control characters".into()));
    }
    if word.text.chars().count() > MAX_TAG_LEN {
        return Err((word.at, format!("at most {MAX_TAG_LEN} characters")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_an_expression_an_action_and_arguments() {
        let parse = |text: &str| TagRule::parse(text).unwrap();
        let keys = |text: &str| KeyPatterns::parse(text, 0).unwrap();
        let text = |text: &str| text.to_owned();
        for (rule, has_expression, action) in [
            (
                "drop source,tiger:*",
                false,
                TagAction::Drop(keys("source,tiger:*")),
            ),
            (
                "w/highway=*: keep name, ref",
                true,
                TagAction::Keep(keys("name,ref")),
            ),
            ("addr:*: keep addr:*", true, TagAction::Keep(keys("addr:*"))),
            ("set a=b c", false, TagAction::Set(text("a"), text("b c"))),
            (
                "n/!a,b & c=d @id=1: drop a",
                true,
                TagAction::Drop(keys("a")),
            ),
            (
                "n/@user=x: default a=\" b\"",
                true,
                TagAction::Default(text("a"), text(" b")),
            ),
            ("rename a b", false, TagAction::Rename(text("a"), text("b"))),
            (
                "copy \"a b\" c",
                false,
                TagAction::Copy(text("a b"), text("c")),
            ),
            (
                "name=a: b: replace name ~\"^a b\" $0",
                true,
                TagAction::Replace {
                    keys: keys("name"),
                    pattern: RegexMatcher::parse("^a b").unwrap(),
                    value: text("$0"),
                },
            ),
        ] {
            let parsed = parse(rule);
            assert_eq!(parsed.action, action, "{rule}");
            assert_eq!(
                parsed.filter.expressions().len(),
                usize::from(has_expression),
                "{rule}"
            );
            assert_eq!(parsed.to_string(), rule);
        }
    }

    #[test]
    fn a_quoted_key_may_have_any_characters() {
        let action = |text: &str| TagRule::parse(text).unwrap().action;
        let keys = vec![
            StringMatcher::Equal("a, *".into()),
            StringMatcher::Prefix("b".into()),
        ];
        let drop = action("drop \"a, *\" , b*");
        assert_eq!(drop, TagAction::Drop(KeyPatterns(keys)));
        let set = action("set \" a=\" = b=c");
        assert_eq!(set, TagAction::Set(" a=".into(), "b=c".into()));
    }

    /// Asserts that parsing `rule` fails with an error of one line. The error begins with the rule, the column, and the
    /// expected text.
    fn assert_error(rule: &str, column: usize, expected: &str) {
        let error = TagRule::parse(rule).unwrap_err();
        let start = format!("'{rule}', column {column}: expected {expected}");
        assert!(error.starts_with(&start), "{error} instead of {start}");
        assert!(!error.contains('\n'), "{error}");
    }

    #[test]
    fn an_error_names_the_column_and_what_was_expected() {
        for (rule, column, expected) in [
            ("w/highway: drp name", 12, "drop, keep"),
            ("source", 1, "drop, keep"),
            ("x/a: drop b", 1, "an expression"),
            ("drop", 5, "keys"),
            ("keep", 5, "keys"),
            ("drop a,,b", 8, "keys"),
            ("drop a, b*c", 9, "keys"),
            ("drop a*b", 6, "keys"),
            ("drop \"a\" b", 10, "a comma"),
            ("drop a,\"b", 8, "a closing \""),
            ("é: set a", 8, "KEY=VALUE"),
            ("default a", 9, "KEY=VALUE"),
            ("set \"a\" b", 5, "KEY=VALUE"),
            ("set a=", 7, "a value"),
            ("set a=\"\"", 7, "a value"),
            ("set =b", 5, "a key"),
            ("set a*=b", 5, "a key without *"),
            ("set a=b\u{1}c", 7, "text without control"),
            ("set a=\"b", 7, "a closing \""),
            ("set a=\"b\" c", 11, "the end"),
        ] {
            assert_error(rule, column, expected);
        }
    }

    #[test]
    fn an_error_in_the_arguments_or_the_expression_names_the_column() {
        for (rule, column, expected) in [
            ("rename", 7, "two keys"),
            ("rename a", 9, "a second key"),
            ("rename a a", 10, "another key"),
            ("rename a b*", 10, "a key without *"),
            ("rename \"a b", 8, "a closing \""),
            ("copy a b c", 10, "the end"),
            ("copy \"\" b", 6, "a key"),
            ("replace a b c", 9, "KEYS ~REGEX VALUE"),
            ("replace ~b c", 9, "KEYS ~REGEX VALUE"),
            ("replace a,,b ~c d", 11, "keys"),
            ("replace a ~( c", 12, "a regular expression"),
            ("replace a ~\"\" c", 12, "a regular expression"),
            ("replace a ~b", 13, "a value"),
            ("replace a ~b \"c\" d", 18, "the end"),
            ("replace a ~(b) $1x", 16, "groups"),
            ("", 1, "drop, keep"),
            ("DROP a", 1, "drop, keep"),
            ("w/highway:drop a", 1, "drop, keep"),
            ("w/: drop a", 1, "an expression"),
            ("a~(: drop a", 1, "an expression"),
            ("@id=x: drop a", 1, "an expression"),
            ("@version>x: drop a", 1, "an expression"),
            ("!@user=a: drop a", 1, "an expression"),
            ("version>1: drop a", 1, "an expression"),
        ] {
            assert_error(rule, column, expected);
        }
    }

    #[test]
    fn keys_and_values_longer_than_in_osm_are_rejected() {
        let long = "k".repeat(MAX_TAG_LEN + 1);
        for (rule, column) in [
            (format!("set {long}=b"), 5),
            (format!("set a={long}"), 7),
            (format!("default a={long}"), 11),
            (format!("rename a {long}"), 10),
            (format!("copy {long} b"), 6),
            (format!("replace a ~b {long}"), 14),
        ] {
            let error = TagRule::parse(&rule).unwrap_err();
            let end = format!("', column {column}: expected at most 255 characters");
            assert!(error.ends_with(&end), "{error} instead of {end}");
        }
    }

    #[test]
    fn an_error_in_a_file_of_rules_names_the_line() {
        let error = TagRule::parse_lines("# a\ndrop b # c\n\nset d\n").unwrap_err();
        assert!(error.starts_with("line 4: 'set d', column 5"), "{error}");
    }
}
