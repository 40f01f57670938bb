//! Interpolating house numbers along a way.

use super::item::{NUMBERS, tag};
use super::local_projection::{LocalProjection, along, segment_distance};
use crate::geometry::Point;

/// A node with a house number in an interpolation way.
struct Anchor {
    /// The length of the way up to the node, in metres.
    at: f64,
    number: HouseNumber,
}

/// A house number that can be interpolated, such as 12 or 12b.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HouseNumber {
    number: i64,
    letter: Option<char>,
}

impl HouseNumber {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let end = text.find(|char: char| !char.is_ascii_digit());
        let (digits, letter) = text.split_at(end.unwrap_or(text.len()));
        let mut letters = letter.trim().chars();
        let letter = letters.next();
        let is_whole = letters.next().is_none() && letter.is_none_or(|l| l.is_ascii_alphabetic());
        Some(Self {
            number: digits.parse::<u32>().ok().filter(|_| is_whole)?.into(),
            letter,
        })
    }
}

/// Returns the house number at the point of `line` that is nearest to `place`. `line` and `tags` are those of an
/// interpolation way. Interpolates linearly between the nodes with numbers before and after that point. Returns `None`
/// if one of these nodes is missing, or if their numbers do not fit `addr:interpolation`.
pub(super) fn interpolated(line: &[Point], tags: &[(&str, &str)], place: Point) -> Option<String> {
    let projection = LocalProjection::around(place);
    let corners: Vec<[f64; 2]> = line
        .iter()
        .map(|point| projection.project(*point))
        .collect();
    let (mut lengths, mut length, mut best) = (vec![0.0], 0.0, (f64::INFINITY, 0.0));
    for pair in corners.windows(2) {
        let [from, to] = pair else { continue };
        let segment = (to[0] - from[0]).hypot(to[1] - from[1]);
        let distance = segment_distance(*from, *to);
        if distance < best.0 {
            best = (distance, length + along(*from, *to) * segment);
        }
        length += segment;
        lengths.push(length);
    }
    let anchors = tag(tags, NUMBERS)?.split(',').filter_map(|anchor| {
        let (node, number) = anchor.split_once(':')?;
        Some(Anchor {
            at: *lengths.get(node.parse::<usize>().ok()?)?,
            number: HouseNumber::parse(number)?,
        })
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
    between(
        from.number,
        to.number,
        tag(tags, "addr:interpolation")?,
        part,
    )
}

/// Returns the house number at the fraction `part` of the distance from `from` to `to`. `rule` is the value of
/// `addr:interpolation`.
fn between(from: HouseNumber, to: HouseNumber, rule: &str, part: f64) -> Option<String> {
    let step = match rule {
        "even" | "odd" => 2,
        "all" => 1,
        "alphabetic" => {
            let [first, last] =
                [from.letter?, to.letter?].map(|letter| i64::from(u32::from(letter)));
            let letter = first + ((last - first) as f64 * part).round() as i64;
            let letter = char::from_u32(u32::try_from(letter).ok()?)?;
            return (from.number == to.number).then(|| format!("{}{letter}", from.number));
        }
        rule => rule.parse::<i64>().ok().filter(|step| *step > 0)?,
    };
    let distance = to.number - from.number;
    let parity = match rule {
        "even" => Some(0),
        "odd" => Some(1),
        _ => None,
    };
    let fits = parity.is_none_or(|parity| from.number % 2 == parity && to.number % 2 == parity);
    if !fits || distance % step != 0 {
        return None;
    }
    let steps = ((distance / step) as f64 * part).round() as i64;
    Some((from.number + steps * step).to_string())
}
