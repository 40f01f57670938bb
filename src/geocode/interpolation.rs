//! Interpolates house numbers along a way.
//!
//! The OSM wiki page "Addresses" has the values of `addr:interpolation`. `even` and `odd` have the same meaning as the
//! value 2: every second number exists, counted from the number at the start of the way. The numbers at the ends
//! therefore decide whether the numbers are even or odd. No number is returned where the tags and the ends do not
//! determine it.

use super::house_numbers::decode_number;
use super::item::{NUMBERS, tag};
use super::local_projection::{
    LocalProjection, segment_fraction_nearest_origin, squared_segment_distance,
};
use crate::geometry::Point;

/// The maximum number of digits of a house number. A `u32` has at most this number of digits.
const MAX_DIGITS: usize = 10;

/// The maximum number of steps between two neighbouring house numbers of a way. If there are more, no number is
/// interpolated. Rural addresses that count along a road can have many steps: from 10000 to 19998, there are 5,000 even
/// numbers.
const MAX_STEPS: i64 = 10_000;

/// A node with a house number in an interpolation way.
struct Anchor {
    /// The length of the way up to the node, in metres.
    at: f64,
    /// The house number as it is written.
    number: String,
}

/// A house number that can be interpolated, such as 12, 12b, 94-01 or C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HouseNumber<'t> {
    /// The text before the number, such as `94-`. All numbers along a way have the same prefix. The prefix contains
    /// neither `;` nor `,`, which separate the entries of a list.
    prefix: &'t str,
    /// The digits; empty if the house number is only a letter.
    digits: &'t str,
    /// The text between the number and the letter.
    separator: &'t str,
    letter: Option<char>,
}

/// Splits a text before its longest suffix of characters that `is_part` accepts.
fn split_suffix(text: &str, is_part: impl Fn(char) -> bool) -> (&str, &str) {
    let start = text.trim_end_matches(is_part);
    text.split_at(start.len())
}

impl<'t> HouseNumber<'t> {
    /// Parses a house number; `None` if it cannot be interpolated.
    fn parse(text: &'t str) -> Option<Self> {
        let text = text.trim();
        let (head, letters) = split_suffix(text, char::is_alphabetic);
        let (head, separator) = match letters {
            "" => (head, ""),
            _ => split_suffix(head, |char| !char.is_alphanumeric()),
        };
        let (prefix, digits) = split_suffix(head, |char| char.is_ascii_digit());
        let mut letters = letters.chars();
        let letter = letters.next();
        let is_whole = letters.next().is_none() && letter.is_none_or(|l| l.is_ascii_alphabetic());
        // A letter may stand alone, without digits, but then nothing precedes it.
        let is_complete = !digits.is_empty() || letter.is_some() && text.len() == 1;
        let is_short = digits.len() <= MAX_DIGITS;
        let is_list = [prefix, separator]
            .iter()
            .any(|part| part.contains([';', ',']));
        (is_whole && is_complete && is_short && !is_list).then_some(Self {
            prefix,
            digits,
            separator,
            letter,
        })
    }

    fn number(&self) -> Option<i64> {
        self.digits.parse::<u32>().ok().map(i64::from)
    }

    /// Returns the position of the letter in the alphabet, counted from 1. Returns 0 if there is no letter. Thus 25
    /// comes directly before 25a.
    fn letter_position(&self) -> i64 {
        let position = |letter: char| i64::from(u32::from(letter.to_ascii_lowercase())) - 96;
        self.letter.map_or(0, position)
    }

    /// Whether the prefix may be the first number of a range, such as 12-14. A prefix without digits, such as `N`, does
    /// not begin a range. Neither does the prefix of 12-3, because the first number of a range is not above the last
    /// one.
    fn may_be_range(&self) -> bool {
        let before = self
            .prefix
            .trim_end_matches(|char: char| !char.is_ascii_digit());
        let (_, first) = split_suffix(before, |char| char.is_ascii_digit());
        let first = first.parse::<u32>().ok().map(i64::from);
        !before.is_empty() && first <= self.number()
    }

    /// Whether the number is padded with leading zeros.
    fn is_padded(&self) -> bool {
        self.digits.len() > 1 && self.digits.starts_with('0')
    }
}

/// Returns the house number at the point of `line` that is nearest to `place`. `line` and `tags` are those of an
/// interpolation way. The number is interpolated linearly between two nodes of the way: the nearest nodes with a number
/// before and after the point. Returns `None` if one of these nodes is missing, or if their numbers do not fit
/// `addr:interpolation`.
pub(super) fn interpolated_number(
    line: &[Point],
    tags: &[(&str, &str)],
    place: Point,
) -> Option<String> {
    let projection = LocalProjection::around(place);
    let corners: Vec<[f64; 2]> = line
        .iter()
        .map(|point| projection.project(*point))
        .collect();
    let (mut lengths, mut length, mut best) = (vec![0.0], 0.0, (f64::INFINITY, 0.0));
    for pair in corners.windows(2) {
        let [from, to] = pair else { continue };
        let segment = (to[0] - from[0]).hypot(to[1] - from[1]);
        let distance = squared_segment_distance(*from, *to);
        if distance < best.0 {
            best = (
                distance,
                length + segment_fraction_nearest_origin(*from, *to) * segment,
            );
        }
        length += segment;
        lengths.push(length);
    }
    let anchors = numbered_nodes(tag(tags, NUMBERS)?).filter_map(|(node, number)| {
        let at = *lengths.get(node)?;
        Some(Anchor { at, number })
    });
    let anchors: Vec<Anchor> = anchors.collect();
    let pair = anchors.windows(2).find(|pair| match pair {
        [from, to] => from.at <= best.1 && best.1 <= to.at,
        _ => false,
    })?;
    let [from, to] = pair else { return None };
    let part = if to.at > from.at {
        (best.1 - from.at) / (to.at - from.at)
    } else {
        0.0
    };
    let rule = InterpolationRule::parse(tag(tags, "addr:interpolation")?)?;
    number_at_fraction(&from.number, &to.number, rule, part)
}

/// Reads the value of [`NUMBERS`]: the indices of nodes in a way, and their house numbers.
fn numbered_nodes(list: &str) -> impl Iterator<Item = (usize, String)> {
    list.split(',').filter_map(|entry| {
        let (node, number) = entry.split_once(':')?;
        Some((node.parse().ok()?, decode_number(number)))
    })
}

/// Whether two neighbouring house numbers of an interpolation way have more than [`MAX_STEPS`] steps between them. No
/// number is interpolated between such house numbers. `list` is the value of [`NUMBERS`], and `rule` that of
/// `addr:interpolation`.
pub(super) fn has_too_many_steps(list: &str, rule: &str) -> bool {
    let Some(rule) = InterpolationRule::parse(rule) else {
        return false;
    };
    let numbers: Vec<String> = numbered_nodes(list).map(|(_, number)| number).collect();
    numbers.windows(2).any(|pair| {
        let [from, to] = pair else { return false };
        let ends = HouseNumber::parse(from).zip(HouseNumber::parse(to));
        let steps = ends.and_then(|(first, last)| steps_between(&[first, last], rule));
        steps.is_some_and(|steps| steps.abs() > MAX_STEPS)
    })
}

/// The value of `addr:interpolation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InterpolationRule {
    /// Neighbouring houses differ in their numbers, by this step.
    Step(i64),
    /// Neighbouring houses differ in their letters.
    Letters,
}

impl InterpolationRule {
    /// Parses the value of `addr:interpolation`.
    fn parse(text: &str) -> Option<Self> {
        match text.trim().to_lowercase().as_str() {
            "even" | "odd" => Some(Self::Step(2)),
            "all" => Some(Self::Step(1)),
            "alphabetic" => Some(Self::Letters),
            text => {
                let step = text.parse::<i64>().ok().filter(|step| *step > 0)?;
                Some(Self::Step(step))
            }
        }
    }
}

/// Whether one of the house numbers at the ends may be a range of numbers, such as 12-14, rather than a number with a
/// prefix. Numbers that are padded with zeros, such as 94-01 in Queens, are not ranges.
fn may_have_range(ends: &[HouseNumber<'_>; 2]) -> bool {
    !ends.iter().any(HouseNumber::is_padded) && ends.iter().any(HouseNumber::may_be_range)
}

/// Returns the number of steps from the first house number to the last. It is negative if the house numbers decrease.
/// Returns `None` if the ends do not fit the rule.
fn steps_between(ends: &[HouseNumber<'_>; 2], rule: InterpolationRule) -> Option<i64> {
    let [first, last] = ends;
    let numbers = ends.map(|end| end.number());
    let letters = last.letter_position() - first.letter_position();
    match (rule, numbers) {
        _ if first.prefix != last.prefix || may_have_range(ends) => None,
        (InterpolationRule::Letters, _) if first.digits == last.digits => Some(letters),
        (InterpolationRule::Step(step), [Some(first), Some(last)]) if first != last => {
            let difference = last - first;
            (difference % step == 0).then_some(difference / step)
        }
        // Between 7 and 7a, there is no other number, whatever the rule.
        (InterpolationRule::Step(_), [Some(_), Some(_)]) if letters.abs() <= 1 => Some(letters),
        _ => None,
    }
}

/// Returns the house number at the fraction `part` of the distance from `from` to `to`.
fn number_at_fraction(from: &str, to: &str, rule: InterpolationRule, part: f64) -> Option<String> {
    let ends = [HouseNumber::parse(from)?, HouseNumber::parse(to)?];
    let [first, _] = ends;
    let steps = steps_between(&ends, rule).filter(|steps| steps.abs() <= MAX_STEPS)?;
    let at = (steps as f64 * part).round() as i64;
    if at == 0 || at == steps {
        // At an end, the number is that of the node, as the tag of the node spells it.
        let end = if at == 0 { from } else { to };
        return Some(end.trim().to_owned());
    }
    match rule {
        InterpolationRule::Letters => {
            number_with_letter_between(&ends, first.letter_position() + at)
        }
        InterpolationRule::Step(step) => format_number_between(&ends, first.number()? + at * step),
    }
}

/// Returns a house number with the letter at the given position in the alphabet, counted from 1. The other parts of the
/// house number, and the case of the letter, are those of an end that has a letter.
fn number_with_letter_between(ends: &[HouseNumber<'_>; 2], position: i64) -> Option<String> {
    let like = ends.iter().find(|end| end.letter.is_some())?;
    let letter = char::from_u32(u32::try_from(position + 96).ok()?)?;
    let letter = if like.letter?.is_ascii_uppercase() {
        letter.to_ascii_uppercase()
    } else {
        letter
    };
    let HouseNumber {
        prefix,
        digits,
        separator,
        ..
    } = like;
    Some(format!("{prefix}{digits}{separator}{letter}"))
}

/// Returns a house number without a letter, in the form of the numbers at the ends. Returns `None` if the ends do not
/// determine this form: if both have the same letter, or if they disagree about leading zeros.
fn format_number_between(ends: &[HouseNumber<'_>; 2], number: i64) -> Option<String> {
    let [first, last] = ends;
    let positions = ends.map(|end| end.letter_position());
    if positions[0] != 0 && positions[0] == positions[1] {
        return None;
    }
    let padded = ends.iter().find(|end| end.is_padded());
    let width = padded.map_or(0, |padded| padded.digits.len());
    let fits = |end: &HouseNumber<'_>| {
        let len = end.digits.len();
        len == width || len > width && !end.is_padded()
    };
    if !fits(first) || !fits(last) {
        return None;
    }
    Some(format!("{}{number:0width$}", first.prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the different numbers along a way, in their order.
    fn numbers_along_way(from: &str, to: &str, rule: &str) -> Vec<String> {
        let at = |part: u32| {
            number_at_fraction(
                from,
                to,
                InterpolationRule::parse(rule)?,
                f64::from(part) / 1000.0,
            )
        };
        let mut numbers: Vec<String> = (0..=1000).filter_map(at).collect();
        numbers.dedup();
        numbers
    }

    #[test]
    fn numbers_are_interpolated_if_tag_and_ends_determine_them() {
        for (from, to, rule, expected) in [
            ("2", "8", "even", "2 4 6 8"),
            ("9", "3", "odd", "9 7 5 3"),
            ("2", "6", " Even ", "2 4 6"),
            ("1", "3", "ALL", "1 2 3"),
            ("1", "9", "4", "1 5 9"),
            // The ends say that all numbers are odd.
            ("1", "5", "even", "1 3 5"),
            ("A", "D", "alphabetic", "A B C D"),
            ("d", "a", "Alphabetic", "d c b a"),
            ("25", "25c", "alphabetic", "25 25a 25b 25c"),
            ("25 A", "25 C", "alphabetic", "25 A 25 B 25 C"),
            ("94-01", "94-07", "odd", "94-01 94-03 94-05 94-07"),
            // These numbers are not ranges: 94-098 has a leading zero, and in 94-11, 11 is less than 94.
            ("94-098", "94-102", "2", "94-098 94-100 94-102"),
            ("4-08", "4-12", "even", "4-08 4-10 4-12"),
            ("94-11", "94-21", "5", "94-11 94-16 94-21"),
            ("120-2", "120-6", "even", "120-2 120-4 120-6"),
            ("12/1", "12/3", "all", "12/1 12/2 12/3"),
            ("A-1", "A-5", "odd", "A-1 A-3 A-5"),
            ("94-01A", "94-01C", "alphabetic", "94-01A 94-01B 94-01C"),
            ("N8", "N12", "even", "N8 N10 N12"),
            // The numbers in between do not get the letters of the ends.
            ("12a", "16", "even", "12a 14 16"),
            ("12b", "14a", "even", "12b 14a"),
            ("7", "7a", "odd", "7 7a"),
            ("12", "12", "all", "12"),
        ] {
            assert_eq!(
                numbers_along_way(from, to, rule).join(" "),
                expected,
                "{from} {to} {rule}"
            );
        }
    }

    #[test]
    fn no_number_is_interpolated_between_ends_with_too_many_steps() {
        for (from, to, rule, has_numbers) in [
            ("10000", "19998", "even", true),
            ("1", "10001", "all", true),
            ("1", "10002", "all", false),
            ("10002", "1", "all", false),
            ("1", "20001", "odd", true),
            ("1", "20003", "odd", false),
            ("1", "2000000001", "odd", false),
            ("0", "4294967295", "1", false),
            ("N1", "N2000000001", "odd", false),
            ("0", "4294967295", "4294967295", true),
        ] {
            let found = numbers_along_way(from, to, rule);
            assert_eq!(!found.is_empty(), has_numbers, "{from} {to} {rule}");
            let is_refused = has_too_many_steps(&format!("0:{from},7:{to}"), rule);
            assert_eq!(is_refused, !has_numbers, "{from} {to} {rule}");
            // One pair with too many steps is enough to refuse the way.
            let list = format!("0:1,1:3,2:{from},7:{to}");
            assert!(has_numbers || has_too_many_steps(&list, rule), "{list}");
        }
        for list in ["", "0:1", "0:,1:9", "x", "0:1,1:12;14", "0:1,1:4294967296"] {
            assert!(!has_too_many_steps(list, "odd"), "{list}");
        }
    }

    #[test]
    fn a_number_with_too_many_digits_is_not_interpolated() {
        let zeros = |count: usize| "0".repeat(count);
        for count in [10, 70_000] {
            let [from, to] = ["1", "9"].map(|digit| zeros(count) + digit);
            for rule in ["odd", "all", "alphabetic"] {
                assert!(
                    numbers_along_way(&from, &to, rule).is_empty(),
                    "{count} {rule}"
                );
            }
            assert!(numbers_along_way(&from, "9", "odd").is_empty());
        }
        let [from, to] = ["1", "5"].map(|digit| zeros(9) + digit);
        let all = ["0000000001", "0000000003", "0000000005"];
        assert_eq!(numbers_along_way(&from, &to, "odd"), all);
    }

    #[test]
    fn no_number_is_interpolated_if_tag_and_ends_are_ambiguous() {
        for (from, to, rule) in [
            ("1", "10", "even"),
            ("1", "10", "odd"),
            ("1", "10", "4"),
            ("1", "9", "0"),
            ("1", "9", "-2"),
            ("1", "9", ""),
            ("1", "9", "yes"),
            ("1", "9", "even;odd"),
            ("1", "9", "99999999999999999999"),
            ("12a", "14c", "alphabetic"),
            ("12", "20", "alphabetic"),
            ("A", "12", "alphabetic"),
            ("A", "G", "even"),
            ("12a", "12f", "all"),
            ("94-01", "95-21", "odd"),
            ("1", "94-21", "odd"),
            ("2-4", "8", "even"),
            ("12,14", "20", "even"),
            // Lists and ranges do not count as numbers with a prefix.
            ("10;12", "10;20", "even"),
            ("10; 12", "10; 20", "even"),
            ("10,12", "10,20", "even"),
            ("A;1", "A;5", "odd"),
            ("12;a", "12;c", "alphabetic"),
            ("12-14", "12-18", "even"),
            ("12 - 14", "12 - 18", "even"),
            ("12\u{2013}14", "12\u{2013}18", "even"),
            ("12a-14", "12a-18", "even"),
            ("12/14", "12/18", "even"),
            ("12-12", "12-14", "even"),
            ("12-14a", "12-14c", "alphabetic"),
            ("94-98", "94-102", "2"),
            ("94-90", "94-98", "2"),
            ("10-8", "10-12", "even"),
            ("99999999999-1", "99999999999-5", "odd"),
            ("2", "8bis", "even"),
            ("2", "", "even"),
            ("Haus", "9", "all"),
            ("4294967296", "4294967298", "even"),
        ] {
            let found = numbers_along_way(from, to, rule);
            assert!(found.is_empty(), "{from} {to} {rule}: {found:?}");
        }
        // It is unknown whether the numbers between these ends have a letter or a leading zero.
        for (from, to) in [("2a", "8a"), ("01", "7"), ("001", "09")] {
            assert_eq!(numbers_along_way(from, to, "2"), [from, to]);
        }
    }
}
