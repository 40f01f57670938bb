//! The objects of an index: geometries with tags.
//!
//! While an index is built, an item is a row of bytes, which is sorted. In the index, items are in leaves: coordinates
//! are relative to a corner of the leaf, and strings are references to a dictionary of the leaf.

use super::metric::{Metric, segment_distance};
use crate::error::FormatError;
use crate::geometry::{Edge, Extent, Point};
use crate::osm::ObjectKind;
use crate::pbf::wire::{Varints, put_sint, put_text, put_varint, take_text};
use std::collections::HashMap;

/// Keys that are not in dictionaries. Their order is part of the format.
const KEYS: [&str; 32] = [
    "addr:housenumber",
    "addr:street",
    "addr:place",
    "addr:postcode",
    "addr:city",
    "addr:country",
    "addr:housename",
    "addr:suburb",
    "addr:district",
    "addr:hamlet",
    "addr:state",
    "addr:province",
    "addr:county",
    "addr:unit",
    "addr:interpolation",
    "name",
    "highway",
    "ref",
    "boundary",
    "admin_level",
    "place",
    "postal_code",
    "population",
    "name:en",
    "name:de",
    "name:fr",
    "name:ru",
    "ISO3166-1",
    "ISO3166-1:alpha2",
    "ISO3166-2",
    NUMBERS,
    "wikidata",
];

/// The key under which the house numbers of the nodes of an interpolation way are: "0:12,5:30" says that the first node
/// has the number 12, and the sixth the number 30. No tag has this key.
pub(crate) const NUMBERS: &str = "#";

/// The meaning of the points of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One point.
    Point,
    /// Lines.
    Line,
    /// Rings, whose last point equals the first: what an odd number of them encloses is inside.
    Area,
}

impl Shape {
    fn from_number(number: u64) -> Option<Self> {
        [Self::Point, Self::Line, Self::Area]
            .get(usize::try_from(number).ok()?)
            .copied()
    }
}

/// An object with a geometry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item<'a> {
    pub kind: ObjectKind,
    pub id: i64,
    pub shape: Shape,
    pub lines: &'a [Vec<Point>],
    pub tags: &'a [(&'a str, &'a str)],
}

/// The value of a tag.
pub(crate) fn tag<'a>(tags: &[(&'a str, &'a str)], key: &str) -> Option<&'a str> {
    let found = tags.iter().find(|(other, _)| *other == key);
    found.map(|(_, value)| *value)
}

/// Appends tags with their strings.
pub(crate) fn put_texts(out: &mut Vec<u8>, tags: &[(&str, &str)]) {
    put_varint(out, tags.len() as u64);
    for (key, value) in tags {
        put_text(out, key);
        put_text(out, value);
    }
}

fn text<'b>(bytes: &mut &'b [u8]) -> Result<&'b str, FormatError> {
    std::str::from_utf8(take_text(bytes)?).map_err(|_| BROKEN)
}

/// Reads the tags that [`put_texts`] has written.
pub(crate) fn texts<'b>(bytes: &mut &'b [u8]) -> Result<Vec<(&'b str, &'b str)>, FormatError> {
    let mut values = Varints::new(bytes);
    let count = values.read()?;
    *bytes = values.rest();
    let mut tags = Vec::new();
    for _ in 0..count {
        tags.push((text(bytes)?, text(bytes)?));
    }
    Ok(tags)
}

fn put_head(out: &mut Vec<u8>, kind: ObjectKind, shape: Shape, id: i64) {
    put_varint(out, kind as u64 | (shape as u64) << 2);
    put_sint(out, id);
}

fn put_lines(out: &mut Vec<u8>, lines: &[Vec<Point>], base: Point) {
    put_varint(out, lines.len() as u64);
    for line in lines {
        put_varint(out, line.len() as u64);
        let mut last = base;
        for point in line {
            put_sint(out, i64::from(point.lat_e7) - i64::from(last.lat_e7));
            put_sint(out, i64::from(point.lon_e7) - i64::from(last.lon_e7));
            last = *point;
        }
    }
}

const ORIGIN: Point = Point {
    lat_e7: 0,
    lon_e7: 0,
};

impl Item<'_> {
    /// Appends the item as a row.
    pub(crate) fn put_row(&self, out: &mut Vec<u8>) {
        put_head(out, self.kind, self.shape, self.id);
        put_lines(out, self.lines, ORIGIN);
        put_texts(out, self.tags);
    }

    /// The box around the item; `None` without points.
    pub(crate) fn extent(&self) -> Option<Extent> {
        Extent::of(self.lines.iter().flatten())
    }
}

/// An item that was read from a row.
#[derive(Debug)]
pub(crate) struct RowItem<'r> {
    kind: ObjectKind,
    shape: Shape,
    id: i64,
    pub lines: Vec<Vec<Point>>,
    pub tags: Vec<(&'r str, &'r str)>,
}

const BROKEN: FormatError = FormatError::new("an item is broken");

fn head(values: &mut Varints<'_>) -> Result<(ObjectKind, Shape, i64), FormatError> {
    let number = values.read()?;
    let kind = ObjectKind::from_number(number & 3).ok_or(BROKEN)?;
    let shape = Shape::from_number(number >> 2).ok_or(BROKEN)?;
    Ok((kind, shape, values.read_sint()?))
}

/// The point that follows `last`.
#[inline]
fn next_point(values: &mut Varints<'_>, last: Point) -> Result<Point, FormatError> {
    let lat = i64::from(last.lat_e7).wrapping_add(values.read_sint()?);
    let lon = i64::from(last.lon_e7).wrapping_add(values.read_sint()?);
    Ok(Point {
        lat_e7: lat as i32,
        lon_e7: lon as i32,
    })
}

impl<'r> RowItem<'r> {
    /// Reads a row.
    pub(crate) fn parse(row: &'r [u8]) -> Result<Self, FormatError> {
        let mut values = Varints::new(row);
        let (kind, shape, id) = head(&mut values)?;
        let mut lines = Vec::new();
        for _ in 0..values.read()? {
            let (mut line, mut last) = (Vec::new(), ORIGIN);
            for _ in 0..values.read()? {
                last = next_point(&mut values, last)?;
                line.push(last);
            }
            lines.push(line);
        }
        let tags = texts(&mut values.rest())?;
        Ok(Self {
            kind,
            shape,
            id,
            lines,
            tags,
        })
    }

    /// The item.
    pub(crate) fn item(&self) -> Item<'_> {
        Item {
            kind: self.kind,
            id: self.id,
            shape: self.shape,
            lines: &self.lines,
            tags: &self.tags,
        }
    }
}

/// Encodes items as a leaf. Also returns the box around them; `None` without points.
pub(crate) fn encode_leaf(items: &[RowItem<'_>]) -> Option<(Vec<u8>, Extent)> {
    let extents = items.iter().filter_map(|item| item.item().extent());
    let extent = extents.reduce(|all, next| all.and(&next))?;
    let mut numbers: HashMap<&str, u64> = (0..).zip(KEYS).map(|(at, key)| (key, at)).collect();
    let mut strings: Vec<&str> = Vec::new();
    let mut reference = |text| {
        *numbers.entry(text).or_insert_with(|| {
            strings.push(text);
            (KEYS.len() + strings.len() - 1) as u64
        })
    };
    let (mut body, mut bytes) = (Vec::new(), Vec::new());
    for item in items {
        bytes.clear();
        put_head(&mut bytes, item.kind, item.shape, item.id);
        put_lines(&mut bytes, &item.lines, extent.low);
        for (key, value) in &item.tags {
            put_varint(&mut bytes, reference(key));
            put_varint(&mut bytes, reference(value));
        }
        put_varint(&mut body, bytes.len() as u64);
        body.extend_from_slice(&bytes);
    }
    let mut leaf = Vec::with_capacity(body.len() + 64);
    put_sint(&mut leaf, extent.low.lat_e7.into());
    put_sint(&mut leaf, extent.low.lon_e7.into());
    put_varint(&mut leaf, body.len() as u64);
    leaf.extend_from_slice(&body);
    strings.iter().for_each(|text| put_text(&mut leaf, text));
    Some((leaf, extent))
}

/// A leaf that is being read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaf<'c> {
    base: Point,
    items: &'c [u8],
    dictionary: &'c [u8],
}

/// An item of a leaf.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeafItem<'c> {
    pub kind: ObjectKind,
    pub id: i64,
    pub shape: Shape,
    leaf: Leaf<'c>,
    /// The lines, and the tags behind them.
    rest: &'c [u8],
}

fn take<'b>(bytes: &mut &'b [u8], len: u64) -> Result<&'b [u8], FormatError> {
    let len = usize::try_from(len).map_err(|_| BROKEN)?;
    let (head, tail) = bytes.split_at_checked(len).ok_or(BROKEN)?;
    *bytes = tail;
    Ok(head)
}

impl<'c> Leaf<'c> {
    /// Reads a leaf.
    #[inline]
    pub(crate) fn parse(bytes: &'c [u8]) -> Result<Self, FormatError> {
        let mut values = Varints::new(bytes);
        let base = next_point(&mut values, ORIGIN)?;
        let len = values.read()?;
        let mut rest = values.rest();
        Ok(Self {
            base,
            items: take(&mut rest, len)?,
            dictionary: rest,
        })
    }

    /// Removes the first of the items that are left.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<LeafItem<'c>>, FormatError> {
        if self.items.is_empty() {
            return Ok(None);
        }
        let item = take_text(&mut self.items)?;
        let mut values = Varints::new(item);
        let (kind, shape, id) = head(&mut values)?;
        Ok(Some(LeafItem {
            kind,
            id,
            shape,
            leaf: *self,
            rest: values.rest(),
        }))
    }

    /// The string with a number.
    fn string(&self, number: u64) -> Result<&'c str, FormatError> {
        let number = usize::try_from(number).map_err(|_| BROKEN)?;
        if let Some(key) = KEYS.get(number) {
            return Ok(key);
        }
        let mut rest = self.dictionary;
        for _ in KEYS.len()..number {
            take_text(&mut rest)?;
        }
        text(&mut rest)
    }
}

impl<'c> LeafItem<'c> {
    /// Calls `visit` with each point of each line, and whether it is the first of its line. Returns the tags.
    #[inline]
    fn for_each_point(
        &self,
        mut visit: impl FnMut(Point, bool),
    ) -> Result<Varints<'c>, FormatError> {
        let mut values = Varints::new(self.rest);
        for _ in 0..values.read()? {
            let mut last = self.leaf.base;
            for at in 0..values.read()? {
                last = next_point(&mut values, last)?;
                visit(last, at == 0);
            }
        }
        Ok(values)
    }

    /// The squared distance in metres: 0 inside of an area.
    #[inline]
    pub(crate) fn distance(&self, metric: &Metric, place: Point) -> Result<f64, FormatError> {
        let mut nearest = f64::INFINITY;
        let (mut last, mut is_inside) = ((ORIGIN, [0.0; 2]), false);
        self.for_each_point(|point, is_first| {
            let next = metric.project(point);
            let distance = match is_first {
                true => next[0] * next[0] + next[1] * next[1],
                false => {
                    let edge = Edge {
                        from: last.0,
                        to: point,
                    };
                    is_inside ^= edge.crosses_ray_east_of(place);
                    segment_distance(last.1, next)
                }
            };
            nearest = nearest.min(distance);
            last = (point, next);
        })?;
        Ok(match self.shape == Shape::Area && is_inside {
            true => 0.0,
            false => nearest,
        })
    }

    /// Whether an area holds a point.
    pub(crate) fn holds(&self, place: Point) -> Result<bool, FormatError> {
        let (mut last, mut is_inside, mut is_on_edge) = (ORIGIN, false, false);
        self.for_each_point(|point, is_first| {
            if !is_first {
                let edge = Edge {
                    from: last,
                    to: point,
                };
                is_inside ^= edge.crosses_ray_east_of(place);
                is_on_edge |= edge.holds(place);
            }
            last = point;
        })?;
        Ok(self.shape == Shape::Area && (is_inside || is_on_edge))
    }

    /// The lines.
    pub(crate) fn lines(&self) -> Result<Vec<Vec<Point>>, FormatError> {
        let mut lines: Vec<Vec<Point>> = Vec::new();
        self.for_each_point(|point, is_first| match lines.last_mut() {
            Some(line) if !is_first => line.push(point),
            _ => lines.push(vec![point]),
        })?;
        Ok(lines)
    }

    /// The tags.
    pub(crate) fn tags(&self) -> Result<Vec<(&'c str, &'c str)>, FormatError> {
        let mut values = self.for_each_point(|_, _| ())?;
        let mut tags = Vec::new();
        while !values.is_done() {
            let (key, value) = (values.read()?, values.read()?);
            tags.push((self.leaf.string(key)?, self.leaf.string(value)?));
        }
        Ok(tags)
    }

    /// The value of a tag.
    pub(crate) fn tag(&self, key: &str) -> Result<Option<&'c str>, FormatError> {
        let mut values = self.for_each_point(|_, _| ())?;
        while !values.is_done() {
            let (number, value) = (values.read()?, values.read()?);
            if self.leaf.string(number)? == key {
                return self.leaf.string(value).map(Some);
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(lat_e7: i32, lon_e7: i32) -> Point {
        Point { lat_e7, lon_e7 }
    }

    #[test]
    fn items_come_back_from_rows_and_leaves() {
        let square = vec![
            point(10, 10),
            point(10, 30),
            point(30, 30),
            point(30, 10),
            point(10, 10),
        ];
        let items = [
            Item {
                kind: ObjectKind::Way,
                id: i64::MAX,
                shape: Shape::Area,
                lines: &[square],
                tags: &[
                    ("addr:street", "Main Street"),
                    ("addr:housenumber", "12"),
                    ("x", ""),
                ],
            },
            Item {
                kind: ObjectKind::Node,
                id: -3,
                shape: Shape::Point,
                lines: &[vec![point(i32::MIN, i32::MAX)]],
                tags: &[("addr:street", "Main Street")],
            },
            Item {
                kind: ObjectKind::Relation,
                id: 7,
                shape: Shape::Line,
                lines: &[vec![point(1, 2), point(3, 4)], vec![point(-5, 6)]],
                tags: &[],
            },
        ];
        let rows = items.map(|item| {
            let mut row = Vec::new();
            item.put_row(&mut row);
            row
        });
        let parsed: Vec<RowItem<'_>> = rows
            .iter()
            .map(|row| RowItem::parse(row).unwrap())
            .collect();
        let (bytes, extent) = encode_leaf(&parsed).unwrap();
        assert_eq!(extent.low, point(i32::MIN, 2));
        let mut leaf = Leaf::parse(&bytes).unwrap();
        for item in &items {
            let found = leaf.next().unwrap().unwrap();
            assert_eq!(
                (found.kind, found.id, found.shape),
                (item.kind, item.id, item.shape)
            );
            assert_eq!(found.lines().unwrap(), item.lines);
            assert_eq!(found.tags().unwrap(), item.tags);
            assert_eq!(
                found.tag("x").unwrap(),
                item.tags.get(2).map(|(_, value)| *value)
            );
        }
        assert!(leaf.next().unwrap().is_none());
        let mut leaf = Leaf::parse(&bytes).unwrap();
        let area = leaf.next().unwrap().unwrap();
        for (place, is_inside) in [
            (point(20, 20), true),
            (point(10, 20), true),
            (point(30, 30), true),
            (point(9, 20), false),
            (point(20, 31), false),
        ] {
            assert_eq!(area.holds(place).unwrap(), is_inside);
            let distance = area.distance(&Metric::around(place), place).unwrap();
            assert_eq!(distance == 0.0, is_inside, "{place:?} {distance}");
        }
    }

    #[test]
    fn damaged_leaves_are_errors_or_other_items() {
        let item = Item {
            kind: ObjectKind::Way,
            id: 1,
            shape: Shape::Line,
            lines: &[vec![point(1, 2), point(300, 400)]],
            tags: &[("name", "A"), ("k", "v")],
        };
        let mut row = Vec::new();
        item.put_row(&mut row);
        let (bytes, _) = encode_leaf(&[RowItem::parse(&row).unwrap()]).unwrap();
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                if let Ok(mut leaf) = Leaf::parse(&damaged) {
                    while let Ok(Some(item)) = leaf.next() {
                        let _ = (item.lines(), item.tags(), item.holds(point(0, 0)));
                    }
                }
            }
            assert!(
                Leaf::parse(&bytes[..at])
                    .and_then(|mut leaf| {
                        let item = leaf.next()?.ok_or(BROKEN)?;
                        item.tags()
                    })
                    .is_err(),
                "{at}"
            );
        }
    }
}
