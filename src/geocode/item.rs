//! Objects with geometries and tags, and their encoding as rows, which the build sorts.

use crate::error::{FormatError, FormatResult};
use crate::geometry::{Extent, Point, put_points, read_points};
use crate::osm::ObjectKind;
use crate::pbf::wire::{Varints, put_sint, put_text, put_varint};
use smallvec::SmallVec;

/// Keys that an index stores as numbers. Their order is part of the format.
pub(super) const KEYS: [&str; 47] = [
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
    "addr:block_number",
    "addr:neighbourhood",
    "addr:conscriptionnumber",
    "addr:streetnumber",
    "addr:quarter",
    "border_type",
    "linked_place",
    LABEL,
    CENTRE,
    STREET,
    "amenity",
    "shop",
    "tourism",
    NAMESAKE,
    SIZE,
];

const _: () = assert!(KEYS.len() <= 64, "a set of key numbers has 64 bits");

/// The number of a key in [`KEYS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyNumber(pub u8);

impl KeyNumber {
    pub(crate) const NAME: Self = Self::of("name");
    pub(crate) const PLACE: Self = Self::of("place");

    /// Returns the number of a key. Panics if the key is not in [`KEYS`]. In a constant, this is a compile-time error.
    pub(crate) const fn of(key: &str) -> Self {
        let (mut number, wanted) = (0, key.as_bytes());
        while number < KEYS.len() {
            let (known, mut at) = (KEYS[number].as_bytes(), 0);
            while at < known.len() && at < wanted.len() && known[at] == wanted[at] {
                at += 1;
            }
            if at == known.len() && at == wanted.len() {
                return Self(number as u8);
            }
            number += 1;
        }
        panic!("the key has no number");
    }
}

/// The synthetic key under which a boundary stores the value of the tag `place` of its label node. No tag in OSM has
/// this key.
pub(crate) const LABEL: &str = "@label";

/// The synthetic key under which a boundary stores the value of the tag `place` of its `admin_centre` node.
pub(crate) const CENTRE: &str = "@admin_centre";

/// The synthetic key of a boundary that contains a city or town with the same name (see the module `namesakes`). The
/// value consists of the value of the city's tag `place` and the levels of the boundaries with other names that contain
/// the node of the city. For example, "city;8;9" stands for `place=city` and for boundaries of the levels 8 and 9.
pub(crate) const NAMESAKE: &str = "@namesake";

/// The synthetic key under which an area stores its size in square metres.
pub(crate) const SIZE: &str = "@size";

/// The synthetic key under which an address stores the id of the way that names its street. An address has this key if
/// it names no street and its `associatedStreet` relation has no name.
pub(crate) const STREET: &str = "@street";

/// The synthetic key under which an interpolation way stores the house numbers of its nodes. The value "0:12,5:30"
/// means that the first node has number 12 and the sixth number 30. In rows, the value is a list of the ids of the
/// nodes.
pub(crate) const NUMBERS: &str = "#";

/// The type of the geometry of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemShape {
    /// One point.
    Point,
    /// Lines.
    Line,
    /// Closed rings. The even-odd rule determines their inside.
    Area,
}

impl ItemShape {
    pub(super) fn from_number(number: u64) -> Option<Self> {
        [Self::Point, Self::Line, Self::Area]
            .get(usize::try_from(number).ok()?)
            .copied()
    }
}

/// The lines or rings of an item.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lines<'a> {
    One(&'a [Point]),
    Many(&'a [Vec<Point>]),
}

impl<'a> Lines<'a> {
    pub(super) fn iter(self) -> impl ExactSizeIterator<Item = &'a [Point]> {
        let count = match self {
            Self::One(_) => 1,
            Self::Many(lines) => lines.len(),
        };
        (0..count).map(move |at| match self {
            Self::One(line) => line,
            Self::Many(lines) => &lines[at],
        })
    }
}

/// An object with a geometry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexedItem<'a> {
    pub kind: ObjectKind,
    pub id: i64,
    pub shape: ItemShape,
    pub lines: Lines<'a>,
    pub tags: &'a [(&'a str, &'a str)],
}

/// The tags of one item. A list of up to six tags needs no memory of its own, and most items have no more.
pub(crate) type ItemTags<'a> = SmallVec<[(&'a str, &'a str); 6]>;

/// Returns the value of the tag with the given key.
pub(crate) fn tag<'a>(tags: &[(&'a str, &'a str)], key: &str) -> Option<&'a str> {
    let found = tags.iter().find(|(other, _)| *other == key);
    found.map(|(_, value)| *value)
}

/// Returns the value of a tag without surrounding white space; `None` if nothing remains.
pub(crate) fn nonblank_tag<'a>(tags: &[(&'a str, &'a str)], key: &str) -> Option<&'a str> {
    tag(tags, key)
        .map(str::trim)
        .filter(|value| !value.is_empty())
}

/// Appends the number of tags, followed by their keys and values.
fn put_tags(out: &mut Vec<u8>, tags: &[(&str, &str)]) {
    put_varint(out, tags.len() as u64);
    for (key, value) in tags {
        put_text(out, key);
        put_text(out, value);
    }
}

/// Reads the tags that [`put_tags`] has written.
fn read_tags<'b>(row: &mut Varints<'b>) -> FormatResult<ItemTags<'b>> {
    let count = row.read()?;
    // A tag has at least two bytes, so the rest of the row limits the memory that a wrong count can reserve.
    let mut tags = ItemTags::with_capacity((row.rest().len() / 2).min(count as usize));
    for _ in 0..count {
        tags.push((row.read_str()?, row.read_str()?));
    }
    Ok(tags)
}

pub(super) fn put_item_header(out: &mut Vec<u8>, kind: ObjectKind, shape: ItemShape, id: i64) {
    put_varint(out, kind as u64 | (shape as u64) << 2);
    put_sint(out, id);
}

fn put_lines(out: &mut Vec<u8>, lines: Lines<'_>) {
    let lines = lines.iter();
    put_varint(out, lines.len() as u64);
    for line in lines {
        put_points(out, line);
    }
}

impl IndexedItem<'_> {
    /// Appends the item as a row.
    pub(crate) fn put_row(&self, out: &mut Vec<u8>) {
        put_item_header(out, self.kind, self.shape, self.id);
        put_lines(out, self.lines);
        put_tags(out, self.tags);
    }

    /// Returns the bounding box; `None` if there are no points.
    pub(crate) fn extent(&self) -> Option<Extent> {
        Extent::of(self.lines.iter().flatten())
    }
}

/// An item that was read from a row.
#[derive(Debug)]
pub(crate) struct RowItem<'r> {
    pub kind: ObjectKind,
    pub shape: ItemShape,
    pub id: i64,
    pub lines: RowLines,
    pub tags: ItemTags<'r>,
}

/// The lines or rings of an item that was read from a row. Most items have only one line or ring.
#[derive(Debug, Clone)]
pub(crate) enum RowLines {
    One(Vec<Point>),
    Many(Vec<Vec<Point>>),
}

impl RowLines {
    pub(super) const fn as_slice(&self) -> &[Vec<Point>] {
        match self {
            Self::One(line) => std::slice::from_ref(line),
            Self::Many(lines) => lines.as_slice(),
        }
    }
}

pub(super) const BROKEN: FormatError = FormatError::new("an item is broken");

/// Reads the kind, the shape and the id of an item.
pub(super) fn read_item_header(
    values: &mut Varints<'_>,
) -> FormatResult<(ObjectKind, ItemShape, i64)> {
    let number = values.read()?;
    let kind = ObjectKind::from_number(number & 3).ok_or(BROKEN)?;
    let shape = ItemShape::from_number(number >> 2).ok_or(BROKEN)?;
    Ok((kind, shape, values.read_sint()?))
}

/// Reads a line.
fn read_line_points(values: &mut Varints<'_>) -> FormatResult<Vec<Point>> {
    let mut line = Vec::new();
    read_points(values, &mut line)?;
    Ok(line)
}

impl<'r> RowItem<'r> {
    /// Parses a row.
    pub(crate) fn parse(row: &'r [u8]) -> FormatResult<Self> {
        let mut values = Varints::new(row);
        let (kind, shape, id) = read_item_header(&mut values)?;
        let lines = match values.read()? {
            1 => RowLines::One(read_line_points(&mut values)?),
            count => {
                let lines = (0..count).map(|_| read_line_points(&mut values));
                RowLines::Many(lines.collect::<Result<_, _>>()?)
            }
        };
        let tags = read_tags(&mut values)?;
        Ok(Self {
            kind,
            shape,
            id,
            lines,
            tags,
        })
    }

    /// Returns the row as an item.
    pub(crate) fn item(&self) -> IndexedItem<'_> {
        IndexedItem {
            kind: self.kind,
            id: self.id,
            shape: self.shape,
            lines: Lines::Many(self.lines.as_slice()),
            tags: &self.tags,
        }
    }
}
