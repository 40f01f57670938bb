use super::kind::{KindSet, ObjectKind};
use super::metadata_condition::MetadataCondition;
use super::order::TypeThenId;
use super::tag_pattern::{TagConditions, TagPattern};
use rustc_hash::FxHashMap;

/// An expression that selects objects by kind, and by tags, id or metadata. It has the form `[nwra/]key[=value]`,
/// `[nwra/]@attribute>value`, or a tag followed by spaces and conditions on id and metadata. `&` joins several tags,
/// and a `!` before a tag excludes the objects with this tag. The letters before the slash are kinds of objects; `a`
/// means areas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectExpression {
    /// The kinds of objects that the expression applies to.
    pub kinds: KindSet,
    /// Whether the expression also applies to areas. Areas are closed ways with four refs or more, and relations whose
    /// tag `type` is `multipolygon` or `boundary`.
    pub areas: bool,
    /// The tag that an object needs; `None` if the expression has only excluded tags and conditions on metadata.
    pub tag: Option<TagPattern>,
    /// The further tags that an object needs: `highway=primary&lanes=2`.
    pub more_tags: Vec<TagPattern>,
    /// The tags that an object must not have: `highway=primary&!name`.
    pub excluded_tags: Vec<TagPattern>,
    /// The conditions on the id and the metadata. All of them must hold.
    pub metadata: Vec<MetadataCondition>,
}

impl ObjectExpression {
    /// Parses an expression. The error is a message that quotes `text`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let split = MetadataCondition::split_expression;
        Self::parse_parts(
            text,
            &['=', '@', '~'],
            split,
            TagPattern::parse_joined_conditions,
        )
    }

    /// Creates an expression that selects objects of all kinds by a tag.
    pub fn of_tag(tag: TagPattern) -> Self {
        Self {
            kinds: KindSet::ALL,
            areas: false,
            tag: Some(tag),
            more_tags: Vec::new(),
            excluded_tags: Vec::new(),
            metadata: Vec::new(),
        }
    }

    /// Parses an expression as a single tag, so `@version>1`, `!a` and `a&b~c` are keys. The error is a message that
    /// quotes `text`.
    pub fn parse_tag(text: &str) -> Result<Self, String> {
        let parse = |tag: &str| {
            Ok(TagConditions {
                needed: vec![TagPattern::parse(tag)?],
                excluded: Vec::new(),
            })
        };
        Self::parse_parts(text, &['=', '@'], |tag| Ok((tag, Vec::new())), parse)
    }

    /// Parses an expression. The letters before the first slash are kinds of objects. If the text before the slash
    /// contains one of `operators`, the slash belongs to a tag instead. `split` separates the remaining text into the
    /// text of the tags and the parsed conditions on id and metadata. `parse` then parses the tags.
    fn parse_parts(
        text: &str,
        operators: &[char],
        split: impl Fn(&str) -> Result<(&str, Vec<MetadataCondition>), String>,
        parse: impl Fn(&str) -> Result<TagConditions, String>,
    ) -> Result<Self, String> {
        let bad = |cause: String| format!("'{text}' is not an expression: {cause}");
        let (kinds, areas, rest) = match text.split_once('/') {
            Some((kinds, rest)) if !kinds.contains(operators) => {
                let (kinds, areas) = parse_kinds(kinds).map_err(bad)?;
                (kinds, areas, rest)
            }
            _ => (KindSet::ALL, false, text),
        };
        let (tag, metadata) = split(rest).map_err(bad)?;
        let tags = if tag.trim().is_empty() && !metadata.is_empty() {
            TagConditions::default()
        } else {
            parse(tag).map_err(bad)?
        };
        let mut needed = tags.needed.into_iter();
        Ok(Self {
            kinds,
            areas,
            tag: needed.next(),
            more_tags: needed.collect(),
            excluded_tags: tags.excluded,
            metadata,
        })
    }

    /// Parses each line of `text` as an expression, with `parse`. At the start of a line and after whitespace, `#`
    /// begins a comment; elsewhere it is a part of the expression, such as `colour=#ff0000`. An error names the line,
    /// counted from 1.
    pub fn parse_lines(
        text: &str,
        parse: impl Fn(&str) -> Result<Self, String>,
    ) -> Result<Vec<Self>, String> {
        parse_each_line(text, parse)
    }

    /// Whether the expression applies to objects of a kind: to all of them, or only to areas.
    pub fn applies_to(&self, kind: ObjectKind) -> bool {
        self.kinds.contains(kind) || (self.areas && kind != ObjectKind::Node)
    }

    /// Whether the expression may match an object from `first` to `last` in canonical order. Only kinds and ids are
    /// considered.
    fn may_match_between(&self, first: TypeThenId, last: TypeThenId) -> bool {
        let mut kinds = ObjectKind::ALL
            .into_iter()
            .filter(|kind| (first.0..=last.0).contains(kind) && self.applies_to(*kind));
        kinds.any(|kind| {
            let start = if kind == first.0 { first.1 } else { 0 };
            let end = if kind == last.0 { last.1 } else { u64::MAX };
            let mut conditions = self.metadata.iter();
            conditions.all(|condition| condition.may_hold_between(start, end))
        })
    }

    /// Whether the pattern in `tag` accepts `value`. Does not check the key.
    pub fn matches_value(&self, value: &str) -> bool {
        self.tag
            .as_ref()
            .is_some_and(|tag| tag.matches_value(value))
    }
}

/// Parses each line of `text`, except empty lines and lines with nothing but a comment. An error names the line,
/// counted from 1.
pub(super) fn parse_each_line<T>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = (1..).zip(text.lines().map(|line| strip_comment(line).trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty());
    let parsed = lines.map(|(number, line): (u64, &str)| {
        parse(line).map_err(|cause| format!("line {number}: {cause}"))
    });
    parsed.collect()
}

/// Returns the part of a line before a comment. A comment begins with a `#` at the start of the line or after
/// whitespace.
fn strip_comment(line: &str) -> &str {
    let mut hashes = line.match_indices('#').map(|(at, _)| &line[..at]);
    let comment = hashes.find(|before| before.is_empty() || before.ends_with(char::is_whitespace));
    comment.unwrap_or(line)
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

/// A list of expressions. An object is selected if at least one expression matches.
#[derive(Debug, Clone, Default)]
pub struct ObjectFilter {
    expressions: Vec<ObjectExpression>,
    /// For each key, the indices of the expressions whose key pattern lists it.
    by_key: FxHashMap<String, Vec<usize>>,
    /// The indices of the expressions whose key pattern does not list keys, such as `addr:*`.
    by_pattern: Vec<usize>,
    /// The indices of the expressions without a tag.
    without_tag: Vec<usize>,
}

impl ObjectFilter {
    /// Creates a filter with the given expressions.
    pub fn new(expressions: impl IntoIterator<Item = ObjectExpression>) -> Self {
        let mut filter = Self::default();
        for expression in expressions {
            let index = filter.expressions.len();
            match expression.tag.as_ref().map(|tag| tag.key.listed_strings()) {
                Some(Some(keys)) => {
                    for key in keys {
                        filter.by_key.entry(key.clone()).or_default().push(index);
                    }
                }
                Some(None) => filter.by_pattern.push(index),
                None => filter.without_tag.push(index),
            }
            filter.expressions.push(expression);
        }
        filter
    }

    /// Returns the expressions.
    pub fn expressions(&self) -> &[ObjectExpression] {
        &self.expressions
    }

    /// Returns the expressions whose key pattern matches `key`.
    pub fn with_key<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a ObjectExpression> {
        self.indices_with_key(key)
            .map(|index| &self.expressions[index])
    }

    /// Returns the indices of the expressions whose key pattern matches `key`.
    pub fn indices_with_key<'a>(&'a self, key: &'a str) -> impl Iterator<Item = usize> {
        let listed = self.by_key.get(key).map_or(&[][..], Vec::as_slice);
        let patterns = self.by_pattern.iter().filter(move |index| {
            let tag = self.expressions[**index].tag.as_ref();
            tag.is_some_and(|tag| tag.key.matches(key))
        });
        listed.iter().chain(patterns).copied()
    }

    /// Returns the expressions without a tag.
    pub fn without_tag(&self) -> impl Iterator<Item = &ObjectExpression> {
        self.expressions_at(&self.without_tag)
    }

    /// Whether an expression has a condition on metadata.
    pub fn needs_metadata(&self) -> bool {
        let mut conditions = self.expressions.iter().flat_map(|one| &one.metadata);
        conditions.any(MetadataCondition::is_on_metadata)
    }

    /// Whether an expression may match an object from `first` to `last` in canonical order. Only kinds and ids are
    /// considered.
    pub(crate) fn may_match_between(&self, first: TypeThenId, last: TypeThenId) -> bool {
        let mut expressions = self.expressions.iter();
        expressions.any(|one| one.may_match_between(first, last))
    }

    /// Returns the kinds of objects to which at least one expression applies.
    pub fn kinds(&self) -> KindSet {
        let concerned =
            |kind: &ObjectKind| self.expressions.iter().any(|one| one.applies_to(*kind));
        ObjectKind::ALL.into_iter().filter(concerned).collect()
    }

    fn expressions_at<'a>(
        &'a self,
        indices: &'a [usize],
    ) -> impl Iterator<Item = &'a ObjectExpression> {
        indices.iter().map(|index| &self.expressions[*index])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::osm::StringMatcher;

    fn matches(expression: &str, key: &str, value: &str) -> bool {
        let filter = ObjectFilter::new([ObjectExpression::parse(expression).unwrap()]);
        filter.with_key(key).any(|one| one.matches_value(value))
    }

    #[test]
    fn keys_and_values_match_lists_and_wildcards() {
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
            |text: &str| ObjectExpression::parse(text).map(|one| (one.kinds.bits(), one.areas));
        assert_eq!(kinds("n/a").unwrap(), (1, false));
        assert_eq!(kinds("wr/a=b").unwrap(), (6, false));
        assert_eq!(kinds("a/building").unwrap(), (0, true));
        assert_eq!(kinds("/note").unwrap(), (7, false));
        for bad in ["x/a", "", "n/", "=b", "n/=b", "!=x", "a*,b=c"] {
            assert!(kinds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_ampersand_joins_tags_except_in_parse_tag() {
        let parts = |text: &str| {
            let one = ObjectExpression::parse(text).unwrap();
            (one.kinds.bits(), one.more_tags.len(), one.metadata.len())
        };
        assert_eq!(parts("w/highway=primary&lanes=2"), (2, 1, 0));
        assert_eq!(parts("w/a=b & c & d~e/f @version>1 @uid=5"), (2, 1, 2));
        assert_eq!(parts("w/a=b&@version>1&@uid=5"), (2, 0, 2));
        assert_eq!(parts("name~a/b"), (7, 0, 0));
        let one = ObjectExpression::parse_tag("highway=primary&lanes=2").unwrap();
        let value = one.tag.map(|tag| tag.value);
        assert_eq!(value, Some(StringMatcher::Equal("primary&lanes=2".into())));
        assert!(one.more_tags.is_empty());
        for bad in ["a~(", "a=b&c~[", "a=b&c=*d,e"] {
            assert!(ObjectExpression::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_exclamation_mark_excludes_objects_with_a_tag() {
        let parts = |text: &str| {
            let one = ObjectExpression::parse(text).unwrap();
            let keys =
                |tags: &[TagPattern]| tags.iter().map(|tag| tag.key.clone()).collect::<Vec<_>>();
            let needed: Vec<_> = one.tag.iter().chain(&one.more_tags).cloned().collect();
            (
                keys(&needed).len(),
                keys(&one.excluded_tags),
                one.metadata.len(),
            )
        };
        let equal = |text: &str| StringMatcher::Equal(text.into());
        assert_eq!(parts("w/!name"), (0, vec![equal("name")], 0));
        assert_eq!(
            parts("w/highway=path & ! name @version>1"),
            (1, vec![equal("name")], 1)
        );
        assert_eq!(parts("!a&!b!~c&d=e"), (1, vec![equal("a"), equal("b")], 0));
        assert_eq!(parts("n/!*"), (0, vec![StringMatcher::Any], 0));
        assert_eq!(parts("a!=b"), (1, vec![], 0));
        let one = ObjectExpression::parse_tag("!name").unwrap();
        assert_eq!(one.tag.map(|tag| tag.key), Some(equal("!name")));
    }

    #[test]
    fn id_conditions_exclude_ranges_of_objects() {
        use crate::osm::id_rank;
        use ObjectKind::{Node, Relation, Way};
        let may = |text: &str,
                   (first, first_id): (ObjectKind, i64),
                   (last, last_id): (ObjectKind, i64)| {
            let filter = ObjectFilter::new([ObjectExpression::parse(text).unwrap()]);
            filter.may_match_between((first, id_rank(first_id)), (last, id_rank(last_id)))
        };
        assert!(may("@id=5", (Node, 1), (Node, 9)) && !may("@id=5", (Node, 6), (Node, 9)));
        assert!(!may("w/@id=5", (Node, 1), (Node, 9)) && may("w/a", (Way, 1), (Way, 1)));
        assert!(may("w/@id=5", (Node, 7), (Relation, 1)));
        assert!(may("w/@id=5", (Node, 7), (Way, 5)) && !may("w/@id=5", (Node, 7), (Way, 4)));
        assert!(!may("@id>3 @id<6", (Way, 6), (Way, 9)) && may("@id!=5", (Way, 5), (Way, 5)));
    }

    #[test]
    fn a_file_has_one_expression_per_line_and_comments() {
        let text = "n/amenity # shops\n\n# nothing\nhighway=primary\r\n";
        let parse = |text| ObjectExpression::parse_lines(text, ObjectExpression::parse);
        assert_eq!(parse(text).unwrap().len(), 2);
        assert!(parse("a\nx/b").unwrap_err().contains("line 2"));
    }

    #[test]
    fn a_hash_within_a_word_is_no_comment() {
        for (line, expected) in [
            ("colour=#ff0000", "colour=#ff0000"),
            ("colour=#ff0000 # red", "colour=#ff0000 "),
            ("ref=A#1,B#2\t# two", "ref=A#1,B#2\t"),
            ("# colour=#ff0000", ""),
            ("#", ""),
            ("  # nothing", "  "),
            ("a\u{a0}# nothing", "a\u{a0}"),
            ("name=é#1", "name=é#1"),
            ("plain", "plain"),
        ] {
            assert_eq!(strip_comment(line), expected, "{line}");
        }
    }

    #[test]
    fn conditions_on_metadata_stand_alone_or_behind_a_tag() {
        let parse = |text: &str| {
            let one = ObjectExpression::parse(text).unwrap();
            (one.kinds.bits(), one.tag.is_some(), one.metadata.len())
        };
        assert_eq!(parse("@version>1"), (7, false, 1));
        assert_eq!(parse("wr/@timestamp>=2024 @user=a/b"), (6, false, 2));
        assert_eq!(parse("w/highway=primary @version>1"), (2, true, 1));
        assert_eq!(parse("n/@id=5,-6 @uid>1"), (1, false, 2));
        assert_eq!(parse("@ids=5"), (7, true, 0));
        assert_eq!(parse("opening_hours=Mo-Fr @ 8"), (7, true, 0));
        let as_tag = ObjectExpression::parse_tag("@version>1").unwrap();
        assert_eq!(
            as_tag.tag.map(|tag| tag.key),
            Some(StringMatcher::Equal("@version>1".into()))
        );
        for bad in [
            "@version>x",
            "w/@timestamp<yesterday",
            "@verison>1",
            "@user>a",
            "@id=x",
            "!@id=5",
            "!",
            "a&!",
        ] {
            assert!(ObjectExpression::parse(bad).is_err(), "{bad}");
        }
    }
}
