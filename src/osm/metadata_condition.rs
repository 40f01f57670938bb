//! Conditions on the ids and the metadata of objects in expressions: `@id=17`, `@version>1`, `@timestamp>=2024-05`,
//! `@user=a,b`.

use super::order::id_rank;
use super::string_matcher::StringMatcher;
use super::time::parse_period;
use std::ops::RangeInclusive;

/// A numeric attribute: the id of the object, or a number of its metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetadataNumber {
    /// The id of the object.
    Id,
    /// The version.
    Version,
    /// The timestamp, in seconds since 1970.
    Timestamp,
    /// The id of the changeset.
    Changeset,
    /// The id of the user.
    Uid,
}

/// A condition on the id, or on an attribute of the metadata. It does not hold for an object without the attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetadataCondition {
    /// A numeric attribute is in one of the ranges or, if negated, in none of them.
    Number {
        /// The attribute.
        attribute: MetadataNumber,
        /// The ranges.
        ranges: Vec<RangeInclusive<i64>>,
        /// Whether the number must be in none of the ranges.
        is_negated: bool,
    },
    /// The name of the user matches a pattern or, if negated, does not match it.
    User {
        /// The pattern.
        name: StringMatcher,
        /// Whether the name must not match the pattern.
        is_negated: bool,
    },
}

/// The operators. Each operator comes before its own prefixes (`<=` before `<`), so the first match is the longest.
const OPERATORS: [&str; 6] = ["<=", ">=", "!=", "<", ">", "="];

/// The names of the attributes. `None` stands for the name of the user, the only attribute that is a string.
const ATTRIBUTES: [(&str, Option<MetadataNumber>); 6] = [
    ("id", Some(MetadataNumber::Id)),
    ("version", Some(MetadataNumber::Version)),
    ("timestamp", Some(MetadataNumber::Timestamp)),
    ("changeset", Some(MetadataNumber::Changeset)),
    ("uid", Some(MetadataNumber::Uid)),
    ("user", None),
];

/// The start of a condition in an expression: the attribute and the operator.
struct ConditionStart {
    attribute: Option<MetadataNumber>,
    operator: &'static str,
    /// The length in bytes from the `@` to the end of the operator.
    len: usize,
}

impl ConditionStart {
    /// Parses the attribute and the operator at the start of `text`. Returns `None` if `text` does not begin with them.
    fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix('@')?;
        let (attribute, rest) = ATTRIBUTES
            .iter()
            .find_map(|(name, attribute)| Some((*attribute, rest.strip_prefix(name)?)))?;
        let rest = rest.trim_start();
        let operator = OPERATORS.into_iter().find(|one| rest.starts_with(one))?;
        let len = text.len() - rest.len() + operator.len();
        Some(Self {
            attribute,
            operator,
            len,
        })
    }
}

/// Whether a condition may begin right after the character `before`.
fn may_precede_condition(before: char) -> bool {
    before.is_whitespace() || before == '&'
}

/// Returns `text`, which precedes a condition, without white space and an `&` at its end.
fn without_trailing_ampersand(text: &str) -> &str {
    let text = text.trim_end();
    text.strip_suffix('&').unwrap_or(text)
}

impl MetadataCondition {
    /// Returns the names of the attributes that conditions can have.
    pub fn attributes() -> impl Iterator<Item = &'static str> {
        ATTRIBUTES.into_iter().map(|(name, _)| name)
    }

    /// Whether the condition is on the metadata, and not on the id.
    pub(crate) const fn is_on_metadata(&self) -> bool {
        !matches!(
            self,
            Self::Number {
                attribute: MetadataNumber::Id,
                ..
            }
        )
    }

    /// Whether the condition may hold for an object whose id has a rank from `first` to `last`, both included.
    pub(crate) fn may_hold_between(&self, first: u64, last: u64) -> bool {
        let Self::Number {
            attribute: MetadataNumber::Id,
            ranges,
            is_negated: false,
        } = self
        else {
            return true;
        };
        // Negative ids descend as their ranks ascend, so negative and positive ids need separate ranges of ranks.
        let mut ranks = ranges.iter().flat_map(|range| {
            let (start, end) = (*range.start(), *range.end());
            [
                (start <= 0).then(|| (id_rank(end.min(0)), id_rank(start))),
                (end > 0).then(|| (id_rank(start.max(1)), id_rank(end))),
            ]
        });
        ranks.any(|range| range.is_some_and(|(start, end)| start <= last && first <= end))
    }

    /// Returns the first word of an expression that would be a condition if it began with `@`, such as `version>1`.
    /// Only `<` and `>` count as operators, because a word with `=` may be a tag. Words after the first `=` or `~`
    /// belong to a value, and do not count.
    fn condition_lacking_at_sign(text: &str) -> Option<&str> {
        let (key, _) = text.split_at(text.find(['=', '~']).unwrap_or(text.len()));
        let starts = |word: &str, name: &str| {
            let rest = word.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['<', '>']))
        };
        let is_start = |at: &usize| *at == 0 || key[..*at].ends_with(may_precede_condition);
        let ats = key.char_indices().map(|(at, _)| at).filter(is_start);
        let mut rests = ats.map(|at| &text[at..]);
        let rest = rests.find(|rest| Self::attributes().any(|name| starts(rest, name)))?;
        rest.split(char::is_whitespace).next()
    }

    /// Splits an expression. Returns the text of the tags, and the parsed conditions on the id and the metadata.
    pub(super) fn split_expression(text: &str) -> Result<(&str, Vec<Self>), String> {
        let is_start = |at: &usize| *at == 0 || text[..*at].ends_with(may_precede_condition);
        let starts: Vec<(usize, ConditionStart)> = text
            .match_indices('@')
            .map(|(at, _)| at)
            .filter(is_start)
            .filter_map(|at| Some((at, ConditionStart::parse(&text[at..])?)))
            .collect();
        let before = starts.first().map_or(text, |(at, _)| &text[..*at]);
        if let Some(word) = Self::condition_lacking_at_sign(before) {
            return Err(format!(
                "a condition on metadata begins with @, as in '@{word}'"
            ));
        }
        let (tag, has_more) = match starts.first() {
            Some((at, _)) => (&text[..*at], true),
            None => (text, false),
        };
        let tag = if has_more {
            without_trailing_ampersand(tag)
        } else {
            tag
        };
        if tag.starts_with('@') && tag.contains(['<', '>']) {
            let known = ATTRIBUTES.map(|(name, _)| format!("@{name}")).join(", ");
            return Err(format!("the attributes are {known}"));
        }
        let ends = starts.iter().skip(1).map(|(at, _)| *at);
        let ends = ends.chain([text.len()]);
        let conditions = starts.iter().zip(ends).map(|((at, start), end)| {
            let value = &text[at + start.len..end];
            let is_last = end == text.len();
            let value = if is_last {
                value
            } else {
                without_trailing_ampersand(value)
            };
            Self::parse(start, value.trim())
        });
        Ok((tag, conditions.collect::<Result<_, _>>()?))
    }

    fn parse(start: &ConditionStart, value: &str) -> Result<Self, String> {
        let is_negated = start.operator == "!=";
        let Some(attribute) = start.attribute else {
            if !matches!(start.operator, "=" | "!=") {
                return Err(format!(
                    "a user name is compared with = or !=, not {}",
                    start.operator
                ));
            }
            let name = StringMatcher::parse(value)?;
            return Ok(Self::User { name, is_negated });
        };
        let range = |value: &str| attribute.parse(value);
        let ranges = match start.operator {
            "<" => vec![i64::MIN..=range(value)?.start().saturating_sub(1)],
            "<=" => vec![i64::MIN..=*range(value)?.end()],
            ">" => vec![range(value)?.end().saturating_add(1)..=i64::MAX],
            ">=" => vec![*range(value)?.start()..=i64::MAX],
            _ => value.split(',').map(range).collect::<Result<_, _>>()?,
        };
        Ok(Self::Number {
            attribute,
            ranges,
            is_negated,
        })
    }
}

impl MetadataNumber {
    /// Parses the value of a condition. A number becomes a range of one number, and a time becomes the range of its
    /// seconds, for example all seconds of a year.
    fn parse(self, value: &str) -> Result<RangeInclusive<i64>, String> {
        let value = value.trim();
        match self {
            Self::Timestamp => parse_period(value).ok_or_else(|| {
                format!("'{value}' is not a time like 2024, 2024-05-31 or 2024-05-31T12:00:00Z")
            }),
            Self::Id | Self::Version | Self::Changeset | Self::Uid => value
                .parse()
                .map(|number| number..=number)
                .map_err(|_| format!("'{value}' is not a number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(text: &str) -> (Vec<RangeInclusive<i64>>, bool) {
        let (rest, conditions) = MetadataCondition::split_expression(text).unwrap();
        assert_eq!(rest, "");
        match conditions.as_slice() {
            [
                MetadataCondition::Number {
                    ranges, is_negated, ..
                },
            ] => (ranges.clone(), *is_negated),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn numbers_are_compared_with_ranges() {
        assert_eq!(ranges("@version>1"), (vec![2..=i64::MAX], false));
        assert_eq!(ranges("@version >= 2"), (vec![2..=i64::MAX], false));
        assert_eq!(ranges("@uid<5"), (vec![i64::MIN..=4], false));
        assert_eq!(ranges("@changeset!=5, 7"), (vec![5..=5, 7..=7], true));
        assert_eq!(ranges("@id=-5, 7"), (vec![-5..=-5, 7..=7], false));
        let day = 1_704_067_200..=1_704_153_599;
        assert_eq!(ranges("@timestamp=2024-01-01"), (vec![day], false));
        assert_eq!(
            ranges("@timestamp>2024-01-01"),
            (vec![1_704_153_600..=i64::MAX], false)
        );
    }

    #[test]
    fn conditions_on_ids_rule_out_ranges_of_ranks() {
        for text in [
            "@id=3", "@id=-3", "@id=0", "@id=-2,2", "@id>2", "@id>=-1", "@id<-2", "@id<=1",
            "@id!=3",
        ] {
            let (_, conditions) = MetadataCondition::split_expression(text).unwrap();
            let (values, is_negated) = ranges(text);
            let ids = [0, -1, -2, -3, -4, 1, 2, 3, 4];
            let holds = |id: &i64| values.iter().any(|range| range.contains(id));
            for from in 0..ids.len() {
                for to in from..ids.len() {
                    let [first, last] = [from, to].map(|index| id_rank(ids[index]));
                    let expected = is_negated || ids[from..=to].iter().any(holds);
                    let found = conditions[0].may_hold_between(first, last);
                    assert_eq!(found, expected, "{text} {:?}", &ids[from..=to]);
                }
            }
        }
        assert!(!MetadataCondition::split_expression("@id=1").unwrap().1[0].is_on_metadata());
        assert!(MetadataCondition::split_expression("@uid=1").unwrap().1[0].is_on_metadata());
    }

    #[test]
    fn users_are_compared_with_patterns() {
        let (tag, conditions) =
            MetadataCondition::split_expression("shop @user!=some one, two @uid=1").unwrap();
        assert_eq!(tag, "shop");
        let name = StringMatcher::OneOf(vec!["some one".into(), "two".into()]);
        assert_eq!(
            conditions.first(),
            Some(&MetadataCondition::User {
                name,
                is_negated: true
            })
        );
        assert_eq!(conditions.len(), 2);
    }
}
