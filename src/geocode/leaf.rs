//! Leaves of the R-tree of a layer: up to 16 neighbouring objects with their tags.
//!
//! A leaf consists of a fixed-size header, the quantized boxes of its items, an offset table, the items, and a string
//! table. A search compares boxes, and parses only the items that may be near enough. A tag is a pair of string
//! numbers. The lowest numbers stand for [`KEYS`], the others for the strings of the leaf. Tags with a key in [`KEYS`]
//! precede the other tags of an item, so that a lookup of such a tag does not read the names in all languages.

use super::child_queue::{ChildQueue, QUEUE_LEN};
use super::item::{BROKEN, ItemShape, KEYS, read_item_header};
use super::lines::for_each_point;
use super::local_projection::{LocalProjection, crosses_ray, squared_segment_distance};
use crate::error::FormatResult;
use crate::geometry::{Edge, Enclosure, Extent, ORIGIN, Point};
use crate::osm::ObjectKind;
use crate::pbf::wire::Varints;

/// The size of the header in bytes. The header has the latitude and longitude of the south-western corner, the offset
/// of the string table, the number of items, the shift of [`Units`], and the widths of the offsets of items and of
/// strings.
pub(super) const HEADER_LEN: usize = 4 + 4 + 4 + 4;
/// The size of a quantized box in bytes. The box has its southern, western, northern and eastern edge, one byte each,
/// in [`Units`] from the south-western corner of the leaf.
pub(super) const BOX_LEN: usize = 4;
/// The maximum number of items of a leaf.
pub(super) const LEAF_ITEMS: usize = QUEUE_LEN;

/// A table of offsets of two bytes each, or of four bytes each if the largest offset needs them.
#[derive(Debug, Clone, Copy)]
pub(super) struct OffsetTable<'c> {
    bytes: &'c [u8],
    len: u8,
}

impl OffsetTable<'_> {
    /// Returns the width in bytes of the offsets in a table whose largest offset is `largest`.
    pub(super) fn offset_width(largest: usize) -> u8 {
        if largest <= usize::from(u16::MAX) {
            2
        } else {
            4
        }
    }

    /// Appends a table of offsets that are `len` bytes wide.
    pub(super) fn put(out: &mut Vec<u8>, len: u8, offsets: impl IntoIterator<Item = usize>) {
        for offset in offsets {
            let bytes = (offset as u32).to_le_bytes();
            out.extend_from_slice(&bytes[..usize::from(len)]);
        }
    }

    /// Returns the offset with index `at`.
    #[inline]
    fn get(&self, at: usize) -> FormatResult<usize> {
        match self.len {
            2 => Ok(u16::from_le_bytes(array(self.bytes, at * 2)?).into()),
            _ => Ok(u32::from_le_bytes(array(self.bytes, at * 4)?) as usize),
        }
    }
}

/// The grid to which the boxes of a leaf are quantized. A unit is 2^`shift` times 1e-7 degree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Units {
    pub base: Point,
    pub shift: u8,
}

impl Units {
    pub(super) fn of(extent: &Extent) -> Self {
        let [west, south, east, north] = extent.edges().map(i64::from).into_array();
        let size = (north - south).max(east - west);
        let bits = i64::BITS - size.leading_zeros();
        Self {
            base: extent.low,
            shift: bits.saturating_sub(8) as u8,
        }
    }

    /// Returns the quantized edges of a box.
    pub(super) fn quantize(self, extent: &Extent) -> [u8; BOX_LEN] {
        let [west, south, east, north] = extent.edges().map(i64::from).into_array();
        let [lat, lon] = [self.base.lat_e7, self.base.lon_e7].map(i64::from);
        [south - lat, west - lon, north - lat, east - lon].map(|from| (from >> self.shift) as u8)
    }

    /// Returns the smallest box that contains every box with the given quantized edges.
    #[inline]
    fn extent(self, [south, west, north, east]: [u8; BOX_LEN]) -> Extent {
        let edge = |base: i32, units: i64| {
            let edge = i64::from(base) + (units << self.shift);
            edge.min(i32::MAX.into()) as i32
        };
        let Point { lat_e7, lon_e7 } = self.base;
        Extent::from_stored_edges([
            edge(lat_e7, south.into()),
            edge(lon_e7, west.into()),
            edge(lat_e7, i64::from(north) + 1),
            edge(lon_e7, i64::from(east) + 1),
        ])
    }
}

/// Returns the `LEN` bytes at offset `at`.
fn array<const LEN: usize>(bytes: &[u8], at: usize) -> FormatResult<[u8; LEN]> {
    let bytes = at.checked_add(LEN).and_then(|end| bytes.get(at..end));
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or(BROKEN)
}

/// The string table of a leaf.
#[derive(Debug, Clone, Copy)]
struct Texts<'c> {
    /// The number of strings, and the end of each string. The strings follow these offsets in the bytes of the table.
    table: OffsetTable<'c>,
}

impl<'c> Texts<'c> {
    /// Returns the string with the given number. The lowest numbers stand for [`KEYS`], the others for the strings of
    /// the table.
    #[inline]
    fn text(&self, number: u64) -> FormatResult<&'c str> {
        let number = usize::try_from(number).map_err(|_| BROKEN)?;
        let Some(number) = number.checked_sub(KEYS.len()) else {
            return KEYS.get(number).copied().ok_or(BROKEN);
        };
        let count = self.table.get(0)?;
        if number >= count {
            return Err(BROKEN);
        }
        let start = match number {
            0 => 0,
            _ => self.table.get(number)?,
        };
        let end = self.table.get(number + 1)?;
        let texts = (count + 1) * usize::from(self.table.len);
        let texts = self.table.bytes.get(texts..);
        let bytes = texts.and_then(|texts| texts.get(start..end));
        std::str::from_utf8(bytes.ok_or(BROKEN)?).map_err(|_| BROKEN)
    }
}

/// A leaf.
#[derive(Debug, Clone, Copy)]
pub(super) struct ItemLeaf<'c> {
    units: Units,
    boxes: &'c [[u8; BOX_LEN]],
    /// The end of each item in `items`.
    ends: OffsetTable<'c>,
    items: &'c [u8],
    texts: Texts<'c>,
}

impl<'c> ItemLeaf<'c> {
    /// Parses the header of a leaf.
    #[inline]
    pub(super) fn parse(bytes: &'c [u8]) -> FormatResult<Self> {
        let texts_at = u32::from_le_bytes(array(bytes, 8)?) as usize;
        let [count, shift, end_len, text_end_len] = array(bytes, 12)?;
        let is_known = |len: u8| len == 2 || len == 4;
        if usize::from(count) > LEAF_ITEMS
            || shift > 32
            || !is_known(end_len)
            || !is_known(text_end_len)
        {
            return Err(BROKEN);
        }
        let items = bytes.get(HEADER_LEN..texts_at).ok_or(BROKEN)?;
        let boxes = usize::from(count) * BOX_LEN;
        let (boxes, items) = items.split_at_checked(boxes).ok_or(BROKEN)?;
        let ends = usize::from(count) * usize::from(end_len);
        let (ends, items) = items.split_at_checked(ends).ok_or(BROKEN)?;
        Ok(Self {
            units: Units {
                base: Point::new(
                    i32::from_le_bytes(array(bytes, 0)?),
                    i32::from_le_bytes(array(bytes, 4)?),
                ),
                shift,
            },
            boxes: boxes.as_chunks().0,
            ends: OffsetTable {
                bytes: ends,
                len: end_len,
            },
            items,
            texts: Texts {
                table: OffsetTable {
                    bytes: bytes.get(texts_at..).ok_or(BROKEN)?,
                    len: text_end_len,
                },
            },
        })
    }

    /// Returns the index and the box of each item.
    #[inline]
    pub(super) fn boxes(&self) -> impl Iterator<Item = (u8, Extent)> + use<'c> {
        let units = self.units;
        let boxes = (0..).zip(self.boxes);
        boxes.map(move |(number, in_units)| (number, units.extent(*in_units)))
    }

    /// Returns a queue of the items, ordered by the distances of their boxes from the query point.
    #[inline]
    pub(super) fn queue(&self, projection: &LocalProjection) -> ChildQueue {
        let Units { base, shift } = self.units;
        let [lat, lon] = [base.lat_e7, base.lon_e7].map(f64::from);
        let unit = (1u64 << shift) as f64;
        // Collects the same edge of all boxes in one row, so that vector instructions can convert the edges.
        let mut in_units = [[0u8; QUEUE_LEN]; 4];
        for (number, of_box) in self.boxes.iter().enumerate() {
            for (row, edge) in in_units.iter_mut().zip(of_box) {
                row[number] = *edge;
            }
        }
        let [south, west, north, east] = in_units;
        let row = |from: f64, in_units: [u8; QUEUE_LEN]| {
            let mut edges = [0.0; QUEUE_LEN];
            for (edge, units) in edges.iter_mut().zip(in_units) {
                *edge = from + f64::from(units) * unit;
            }
            edges
        };
        let edges = [
            row(lat, south),
            row(lon, west),
            row(lat + unit, north),
            row(lon + unit, east),
        ];
        ChildQueue::of(projection, self.boxes.len(), &edges)
    }

    /// Parses the item with index `number`.
    #[inline]
    pub(super) fn item(&self, number: u8) -> FormatResult<LeafItem<'c>> {
        let start = match number {
            0 => 0,
            _ => self.ends.get(usize::from(number) - 1)?,
        };
        let end = self.ends.get(number.into())?;
        LeafItem::parse(self.items.get(start..end).ok_or(BROKEN)?, self)
    }
}

/// An item of a leaf.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeafItem<'c> {
    pub kind: ObjectKind,
    pub id: i64,
    pub shape: ItemShape,
    texts: Texts<'c>,
    tags: &'c [u8],
    lines: &'c [u8],
}

impl<'c> LeafItem<'c> {
    #[inline]
    fn parse(bytes: &'c [u8], leaf: &ItemLeaf<'c>) -> FormatResult<Self> {
        let mut values = Varints::new(bytes);
        let (kind, shape, id) = read_item_header(&mut values)?;
        let (tags, lines) = (values.read_text()?, values.rest());
        Ok(LeafItem {
            kind,
            id,
            shape,
            texts: leaf.texts,
            tags,
            lines,
        })
    }

    /// Returns the squared distance, in square metres, to `place`, which is the query point. It is 0 if the item is an
    /// area that contains `place`.
    #[inline]
    pub(super) fn squared_distance(
        &self,
        projection: &LocalProjection,
        place: Point,
    ) -> FormatResult<f64> {
        let is_area = self.shape == ItemShape::Area;
        let mut nearest = f64::INFINITY;
        let (mut last, mut is_inside) = ((ORIGIN, [0.0; 2]), false);
        for_each_point(self.lines, |point, is_first| {
            let next = projection.project(point);
            let distance = if is_first {
                next[0] * next[0] + next[1] * next[1]
            } else {
                let (from, to) = (last.0, point);
                is_inside ^= is_area
                    && if !projection.is_polar() {
                        Edge { from, to }.crosses_ray_east_of(place)
                    } else {
                        crosses_ray(last.1, next)
                    };
                squared_segment_distance(last.1, next)
            };
            nearest = nearest.min(distance);
            last = (point, next);
        })?;
        if nearest == f64::INFINITY {
            return Err(BROKEN);
        }
        Ok(if is_inside { 0.0 } else { nearest })
    }

    /// Whether the item is an area that contains a point. Points on an edge belong to the area.
    pub(super) fn holds(&self, place: Point) -> FormatResult<bool> {
        let (mut last, mut around) = (ORIGIN, Enclosure::of(place));
        for_each_point(self.lines, |point, is_first| {
            if !is_first {
                around.add(&Edge::new(last, point));
            }
            last = point;
        })?;
        Ok(self.shape == ItemShape::Area && around.holds())
    }

    /// Returns the lines of the item, or the rings of an area.
    pub(super) fn lines(&self) -> FormatResult<Vec<Vec<Point>>> {
        let mut lines: Vec<Vec<Point>> = Vec::new();
        for_each_point(self.lines, |point, is_first| match lines.last_mut() {
            Some(line) if !is_first => line.push(point),
            _ => lines.push(vec![point]),
        })?;
        Ok(lines)
    }

    /// Returns the bounding box of the item.
    pub(super) fn extent(&self) -> FormatResult<Extent> {
        let mut extent = None;
        for_each_point(self.lines, |point, _| {
            let at = Extent::at(point);
            extent = Some(extent.map_or(at, |extent: Extent| extent.and(&at)));
        })?;
        extent.ok_or(BROKEN)
    }

    /// Returns the first point of the item.
    pub(super) fn first_point(&self) -> FormatResult<Point> {
        let mut first = None;
        for_each_point(self.lines, |point, _| first = first.or(Some(point)))?;
        first.ok_or(BROKEN)
    }

    /// Returns the tags of the item.
    pub(super) fn tags(&self) -> FormatResult<Vec<(&'c str, &'c str)>> {
        let mut values = Varints::new(self.tags);
        let mut tags = Vec::with_capacity(self.tags.len() / 2);
        while !values.is_done() {
            let (key, value) = (values.read()?, values.read()?);
            tags.push((self.texts.text(key)?, self.texts.text(value)?));
        }
        Ok(tags)
    }

    /// Returns the value of the tag with the given key.
    #[inline]
    pub(super) fn tag(&self, key: &str) -> FormatResult<Option<&'c str>> {
        let mut values = Varints::new(self.tags);
        while !values.is_done() {
            let (number, value) = (values.read()?, values.read()?);
            if self.texts.text(number)? == key {
                return self.texts.text(value).map(Some);
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::super::leaf_encoder::LeafEncoder;
    use super::*;
    use crate::geocode::item::{IndexedItem, Lines, RowItem};

    fn point(lat_e7: i32, lon_e7: i32) -> Point {
        Point { lat_e7, lon_e7 }
    }

    fn with_extent<'i, 'r>(row: &'i RowItem<'r>) -> (&'i RowItem<'r>, Extent) {
        (row, row.item().extent().unwrap())
    }

    /// Returns the items of a leaf, and their boxes.
    fn items_of(bytes: &[u8]) -> FormatResult<Vec<(LeafItem<'_>, Extent)>> {
        let leaf = ItemLeaf::parse(bytes)?;
        let with_item = |(number, extent)| Ok((leaf.item(number)?, extent));
        leaf.boxes().map(with_item).collect()
    }

    #[test]
    fn items_round_trip_through_rows_and_leaves() {
        let square = vec![
            point(10, 10),
            point(10, 30),
            point(30, 30),
            point(30, 10),
            point(10, 10),
        ];
        let items = [
            IndexedItem {
                kind: ObjectKind::Way,
                id: i64::MAX,
                shape: ItemShape::Area,
                lines: Lines::One(&square),
                tags: &[
                    ("addr:housenumber", "12"),
                    ("addr:street", "Main Street"),
                    ("x", ""),
                ],
            },
            IndexedItem {
                kind: ObjectKind::Node,
                id: -3,
                shape: ItemShape::Point,
                lines: Lines::One(&[point(i32::MIN, i32::MAX)]),
                tags: &[("addr:street", "Main Street")],
            },
            IndexedItem {
                kind: ObjectKind::Relation,
                id: 7,
                shape: ItemShape::Line,
                lines: Lines::Many(&[vec![point(1, 2), point(3, 4)], vec![point(-5, 6)]]),
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
        let boxed: Vec<_> = parsed.iter().map(with_extent).collect();
        let mut encoder = LeafEncoder::new();
        let (bytes, extent) = encoder.encode(&boxed).unwrap();
        assert_eq!(encoder.encode(&boxed).unwrap(), (bytes.clone(), extent));
        assert_eq!(extent.low, point(i32::MIN, 2));
        let leaf = items_of(&bytes).unwrap();
        assert_eq!(leaf.len(), items.len());
        for ((found, extent), item) in leaf.iter().zip(&items) {
            assert!(
                item.lines
                    .iter()
                    .flatten()
                    .all(|point| extent.holds(*point))
            );
            assert_eq!(
                (found.kind, found.id, found.shape),
                (item.kind, item.id, item.shape)
            );
            assert!(found.lines().unwrap().iter().eq(item.lines.iter()));
            assert_eq!(found.tags().unwrap(), item.tags);
            assert_eq!(
                found.tag("x").unwrap(),
                item.tags.get(2).map(|(_, value)| *value)
            );
        }
        let (area, _) = leaf[0];
        for (place, is_inside) in [
            (point(20, 20), true),
            (point(10, 20), true),
            (point(30, 30), true),
            (point(9, 20), false),
            (point(20, 31), false),
        ] {
            assert_eq!(area.holds(place).unwrap(), is_inside);
            let distance = area
                .squared_distance(&LocalProjection::around(place), place)
                .unwrap();
            assert_eq!(distance == 0.0, is_inside, "{place:?} {distance}");
        }
    }

    #[test]
    fn damaged_leaves_are_errors_or_other_items() {
        let item = IndexedItem {
            kind: ObjectKind::Way,
            id: 1,
            shape: ItemShape::Line,
            lines: Lines::One(&[point(1, 2), point(300, 400)]),
            tags: &[("name", "A"), ("k", "v")],
        };
        let mut row = Vec::new();
        item.put_row(&mut row);
        let row = RowItem::parse(&row).unwrap();
        let (bytes, _) = LeafEncoder::new().encode(&[with_extent(&row)]).unwrap();
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                for (item, _) in items_of(&damaged).unwrap_or_default() {
                    let _ = (item.lines(), item.tags(), item.holds(point(0, 0)));
                }
            }
            let tags = items_of(&bytes[..at]).and_then(|items| {
                let (item, _) = items.first().ok_or(BROKEN)?;
                item.tags()
            });
            assert!(tags.is_err(), "{at}");
        }
        // The damaged leaves have more items than a queue holds, or offsets with a width of neither two nor four bytes.
        for (at, value) in [(12, 17), (14, 0), (14, 3), (15, 0), (15, 1)] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            assert!(ItemLeaf::parse(&damaged).is_err(), "{at}");
        }
    }

    #[test]
    fn an_item_without_points_is_an_error() {
        let item = IndexedItem {
            kind: ObjectKind::Way,
            id: 1,
            shape: ItemShape::Line,
            lines: Lines::Many(&[]),
            tags: &[],
        };
        let mut row = Vec::new();
        item.put_row(&mut row);
        let row = RowItem::parse(&row).unwrap();
        let items = [(&row, Extent::at(point(1, 2)))];
        let (bytes, _) = LeafEncoder::new().encode(&items).unwrap();
        let item = ItemLeaf::parse(&bytes).unwrap().item(0).unwrap();
        let place = point(1, 2);
        assert!(
            item.squared_distance(&LocalProjection::around(place), place)
                .is_err()
        );
        assert!(item.extent().is_err() && item.first_point().is_err());
    }
}
