//! Areas: polygons whose edges are sorted into bands of latitude, for point-in-polygon tests.
//!
//! An area is stored as a record with its tags, followed by its parts. Each part is a polygon with its holes. A ray
//! from a point to the east can cross only edges in the band of the point. The test is therefore as fast for half a
//! million corners as for a few.

use super::answer::NearObject;
use super::container::Container;
use super::item::{KEYS, KeyNumber, RowItem, SIZE};
use super::place_names::is_name;
use crate::error::{FormatError, FormatResult, Result};
use crate::geometry::{Edge, Enclosure, Extent, Point, doubled_area};
use crate::osm::ObjectKind;
use crate::pbf::wire::{Varints, put_sint, put_text, put_varint};

/// The approximate number of edges per band.
const BAND_EDGES: usize = 16;
/// The maximum average number of bands in which an edge is stored.
const MAX_COPIES: usize = 3;
/// The size of an edge in bytes.
const EDGE_LEN: usize = 16;
/// The size in bytes of the header of a part. The header has the distance in bytes from the record to the part, the
/// southern edge, the height of a band, and the number of bands. The starts of the bands follow the header.
const HEADER_LEN: usize = 8 + 4 + 4 + 4;
/// The length in metres of 1e-7 degree of a meridian.
const METRES_PER_E7: f64 = 111_195.08 / 1e7;

/// An encoded area.
pub(crate) struct EncodedArea {
    /// The record, followed by the parts.
    pub bytes: Vec<u8>,
    /// The bounding box of each part, and the offset of the part from the start of the record.
    pub parts: Vec<(Extent, u64)>,
}

/// Encodes an area. The lines of `row` are the rings of all parts, with an empty line between two parts.
pub(crate) fn encode_area(row: &RowItem<'_>) -> EncodedArea {
    let RowItem {
        kind,
        id,
        lines,
        tags,
        ..
    } = row;
    let mut record = Vec::new();
    put_varint(&mut record, *kind as u64);
    put_sint(&mut record, *id);
    put_tags(&mut record, tags);
    let mut bytes = (record.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(&record);
    let mut parts = Vec::new();
    for rings in lines.as_slice().split(Vec::is_empty) {
        if let Some(extent) = Extent::of(rings.iter().flatten()) {
            parts.push((extent, bytes.len() as u64));
            put_part(&mut bytes, rings, extent);
        }
    }
    EncodedArea { bytes, parts }
}

/// Returns the size of an area in square metres. `lines` are the rings of all parts, with an empty line between two
/// parts. The outer ring of a part comes before its holes. The size is approximate, which is enough to compare
/// areas around the same point.
pub(super) fn size_m2(lines: &[Vec<Point>]) -> u64 {
    let parts = lines.split(Vec::is_empty).filter_map(|rings| {
        let middle = Extent::of(rings.iter().flatten())?.centre();
        let narrow = (f64::from(middle.lat_e7) / 1e7).to_radians().cos();
        let mut sizes = rings
            .iter()
            .map(|ring| doubled_area(ring).unsigned_abs() as f64 / 2.0);
        let outer = sizes.next()?;
        Some((outer - sizes.sum::<f64>()).max(0.0) * narrow)
    });
    (parts.sum::<f64>() * METRES_PER_E7 * METRES_PER_E7) as u64
}

/// Appends tags. The tags whose keys are in [`KEYS`] come first, preceded by their total length in bytes. A lookup of
/// one of these keys therefore does not read the names in all languages.
fn put_tags(out: &mut Vec<u8>, tags: &[(&str, &str)]) {
    let number = |key: &str| KEYS.iter().position(|other| *other == key);
    let mut known = Vec::new();
    for (key, value) in tags {
        if let Some(number) = number(key) {
            put_varint(&mut known, number as u64 + 1);
            put_text(&mut known, value);
        }
    }
    put_varint(out, known.len() as u64);
    out.extend_from_slice(&known);
    for (key, value) in tags.iter().filter(|(key, _)| number(key).is_none()) {
        put_varint(out, 0);
        put_text(out, key);
        put_text(out, value);
    }
}

const BROKEN_AREA: FormatError = FormatError::new("an area is broken");

/// An iterator over the encoded tags of an area. Each item is a key and a value as bytes, which should be UTF-8. The
/// iteration ends at the first bytes that are not a valid tag.
#[derive(Debug, Clone, Copy)]
struct AreaTags<'c>(Varints<'c>);

/// The key and the value of an area's tag. The key is its number in [`KEYS`], or its text if it has no number.
type AreaTag<'c> = (Result<KeyNumber, &'c [u8]>, &'c [u8]);

impl<'c> AreaTags<'c> {
    /// Returns the next tag.
    #[inline]
    fn next_tag(&mut self) -> Option<AreaTag<'c>> {
        let mut row = self.0;
        let number = usize::try_from(row.read().ok()?).ok()?;
        let key = match number.checked_sub(1) {
            Some(number) if number < KEYS.len() => Ok(KeyNumber(number as u8)),
            Some(_) => return None,
            None => Err(row.read_text().ok()?),
        };
        let value = row.read_text().ok()?;
        self.0 = row;
        Some((key, value))
    }
}

impl<'c> Iterator for AreaTags<'c> {
    type Item = (&'c [u8], &'c [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.next_tag()?;
        let key = key.map_or_else(|key| key, |number| KEYS[usize::from(number.0)].as_bytes());
        Some((key, value))
    }
}

/// The bands into which a part is divided.
struct Bands {
    south: i64,
    height: i64,
    count: usize,
}

impl Bands {
    fn of(extent: &Extent, count: usize) -> Self {
        let [south, north] = [extent.low, extent.high].map(|point| i64::from(point.lat_e7));
        let rows = (north - south + 1) as u64;
        let height = rows.div_ceil(count as u64).max(1);
        Self {
            south,
            height: height as i64,
            count: rows.div_ceil(height) as usize,
        }
    }

    /// Returns the bands that an edge intersects.
    fn bands_of_edge(&self, (from, to): &(Point, Point)) -> std::ops::RangeInclusive<usize> {
        let band = |lat_e7: i32| ((i64::from(lat_e7) - self.south) / self.height) as usize;
        let (low, high) = (from.lat_e7.min(to.lat_e7), from.lat_e7.max(to.lat_e7));
        band(low)..=band(high)
    }
}

/// Appends a part: its header, the starts of its bands, and the edges of each band.
fn put_part(out: &mut Vec<u8>, rings: &[Vec<Point>], extent: Extent) {
    let edges: Vec<(Point, Point)> = rings
        .iter()
        .flat_map(|ring| ring.iter().copied().zip(ring.iter().copied().skip(1)))
        .collect();
    let mut count = (edges.len() / BAND_EDGES).max(1);
    let bands = loop {
        let bands = Bands::of(&extent, count);
        let copies: usize = edges
            .iter()
            .map(|edge| bands.bands_of_edge(edge).count())
            .sum();
        if copies <= MAX_COPIES * edges.len() || count == 1 {
            break bands;
        }
        count /= 2;
    };
    let mut lists: Vec<Vec<u8>> = vec![Vec::new(); bands.count];
    for edge in &edges {
        for band in bands.bands_of_edge(edge) {
            for number in [edge.0.lat_e7, edge.0.lon_e7, edge.1.lat_e7, edge.1.lon_e7] {
                lists[band].extend_from_slice(&number.to_le_bytes());
            }
        }
    }
    out.extend_from_slice(&(out.len() as u64).to_le_bytes());
    out.extend_from_slice(&extent.low.lat_e7.to_le_bytes());
    out.extend_from_slice(&(bands.height as u32).to_le_bytes());
    out.extend_from_slice(&(bands.count as u32).to_le_bytes());
    let mut start = 0u32;
    for list in &lists {
        out.extend_from_slice(&start.to_le_bytes());
        start += (list.len() / EDGE_LEN) as u32;
    }
    out.extend_from_slice(&start.to_le_bytes());
    lists.iter().for_each(|list| out.extend_from_slice(list));
}

/// An area around a query point.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Area<'c> {
    pub kind: ObjectKind,
    pub id: i64,
    /// The administrative level; `None` if it is absent or not a number.
    pub level: Option<u8>,
    /// Whether the area has `boundary=administrative`.
    pub is_administrative: bool,
    /// The ISO 3166-2 code.
    pub code: Option<&'c str>,
    /// The bounding box of the part that contains the query point.
    pub extent: Extent,
    /// The set of the key numbers in `known`, one bit each.
    present: u64,
    /// The tags whose keys are in [`KEYS`].
    known: AreaTags<'c>,
    /// The tags whose keys are not in [`KEYS`]. These tags are names.
    names: AreaTags<'c>,
}

impl<'c> Area<'c> {
    fn new(kind: ObjectKind, id: i64, extent: Extent, tags: [&'c [u8]; 2]) -> FormatResult<Self> {
        let [known, names] = tags.map(Varints::new);
        let mut area = Self {
            kind,
            id,
            level: None,
            is_administrative: false,
            code: None,
            extent,
            present: 0,
            known: AreaTags(known),
            names: AreaTags(names),
        };
        let mut known = area.known;
        while let Some((key, value)) = known.next_tag() {
            let Ok(key) = key else { continue };
            area.present |= 1 << key.0;
            if key == const { KeyNumber::of("admin_level") } {
                let level = std::str::from_utf8(value).map_err(|_| BROKEN_AREA)?;
                area.level = level.parse().ok();
            } else if key == const { KeyNumber::of("boundary") } {
                area.is_administrative = value == b"administrative";
            } else if key == const { KeyNumber::of("ISO3166-2") } {
                area.code = Some(std::str::from_utf8(value).map_err(|_| BROKEN_AREA)?);
            }
        }
        if known.0.is_done() {
            Ok(area)
        } else {
            Err(BROKEN_AREA)
        }
    }

    /// Returns the area as an object at distance 0.
    pub(crate) fn object(&self) -> NearObject {
        NearObject {
            kind: self.kind,
            id: self.id,
            distance_m: 0.0,
            extent: Some(self.extent),
        }
    }

    /// Returns the value of the tag with a key.
    #[inline]
    pub(crate) fn tag(&self, key: KeyNumber) -> Option<&'c str> {
        let [value] = self.tags([key]);
        value
    }

    /// Returns the values of the tags with several keys.
    #[inline]
    pub(crate) fn tags<const COUNT: usize>(
        &self,
        keys: [KeyNumber; COUNT],
    ) -> [Option<&'c str>; COUNT] {
        let mut values = [None; COUNT];
        let mut wanted = keys.iter().fold(0, |all, key| all | 1 << key.0) & self.present;
        let mut known = self.known;
        while wanted != 0
            && let Some((key, value)) = known.next_tag()
        {
            let Ok(number) = key else { continue };
            wanted &= !(1 << number.0);
            if let Some(at) = keys.iter().position(|key| *key == number) {
                values[at] = std::str::from_utf8(value).ok();
            }
        }
        values
    }

    /// Returns the size in square metres.
    pub(crate) fn size_m2(&self) -> u64 {
        let size = self.tag(const { KeyNumber::of(SIZE) });
        size.and_then(|size| size.parse().ok()).unwrap_or(u64::MAX)
    }

    /// Returns all names: the value of `name`, the names in particular languages, and the alternative names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'c str> {
        let tags = self.known.chain(self.names);
        tags.filter_map(|(key, name)| std::str::from_utf8(name).ok().filter(|_| is_name(key)))
    }

    /// Returns the name in a language. `language` is a language tag, whose upper or lower case does not matter.
    pub(crate) fn name_in(&self, language: &str) -> Option<&'c str> {
        let mut tags = self.known.chain(self.names);
        let (_, name) = tags.find(|(key, _)| {
            let of = key.strip_prefix(b"name:");
            of.is_some_and(|of| of.eq_ignore_ascii_case(language.as_bytes()))
        })?;
        std::str::from_utf8(name).ok()
    }
}

/// The areas of an index file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Areas<'c> {
    pub container: &'c Container,
    /// The number of the section that has the records and the parts.
    pub section: usize,
}

/// Returns `LEN` bytes at offset `at`.
#[inline]
fn bytes_at<const LEN: usize, const ALL: usize>(bytes: &[u8; ALL], at: usize) -> [u8; LEN] {
    std::array::from_fn(|index| bytes[at + index])
}

/// The header of a part.
struct PartHeader {
    /// The offset of the record of the area in the section.
    record: u64,
    south: i64,
    /// The height of a band.
    height: i64,
    /// The number of bands.
    count: u64,
}

impl PartHeader {
    /// Returns the number of the band that contains a latitude.
    fn band_number(&self, lat_e7: i32) -> Option<u64> {
        let north_of = i64::from(lat_e7) - self.south;
        let band = u64::try_from(north_of).ok()? / self.height.unsigned_abs();
        (band < self.count).then_some(band)
    }
}

impl<'c> Areas<'c> {
    /// Returns `len` bytes of the section from offset `start` on.
    fn bytes(&self, start: u64, len: u64) -> Result<&'c [u8]> {
        self.container.bytes(self.section, start, len)
    }

    /// Reads the header of a part.
    fn part_header(&self, part: u64) -> Result<PartHeader> {
        let head: [u8; HEADER_LEN] = self.container.array(self.section, part)?;
        let record = part.checked_sub(u64::from_le_bytes(bytes_at(&head, 0)));
        let record = record.ok_or_else(|| self.container.damage_error("the record of an area"))?;
        let head = PartHeader {
            record,
            south: i32::from_le_bytes(bytes_at(&head, 8)).into(),
            height: u32::from_le_bytes(bytes_at(&head, 12)).into(),
            count: u32::from_le_bytes(bytes_at(&head, 16)).into(),
        };
        if head.height == 0 || head.count == 0 {
            return Err(self.container.damage_error("the bands of an area"));
        }
        Ok(head)
    }

    /// Returns the edges in a range of bands of a part.
    fn edges_of(
        &self,
        part: u64,
        head: &PartHeader,
        bands: std::ops::Range<u64>,
    ) -> Result<impl Iterator<Item = Edge> + use<'c>> {
        let starts = part + HEADER_LEN as u64;
        let start_of = |band: u64| -> Result<u64> {
            let start = self.container.array(self.section, starts + band * 4)?;
            Ok(u32::from_le_bytes(start).into())
        };
        let (start, end) = (start_of(bands.start)?, start_of(bands.end)?);
        let len = end.checked_sub(start);
        let len = len.ok_or_else(|| self.container.damage_error("the edges of an area"))?;
        let (edges, edge_len) = (starts + (head.count + 1) * 4, EDGE_LEN as u64);
        let edges = self.bytes(edges + start * edge_len, len * edge_len)?;
        Ok(edges.as_chunks::<EDGE_LEN>().0.iter().map(|edge| {
            let at = |at| i32::from_le_bytes(bytes_at(edge, at));
            let point = |at_byte| Point::new(at(at_byte), at(at_byte + 4));
            Edge::new(point(0), point(8))
        }))
    }

    /// Returns the offset of the record of a part's area if the part contains `place`; otherwise `None`. `place` must
    /// be in the bounding box of the part.
    pub(crate) fn record_if_part_contains(&self, part: u64, place: Point) -> Result<Option<u64>> {
        let head = self.part_header(part)?;
        let band = head.band_number(place.lat_e7);
        let band = band.ok_or_else(|| self.container.damage_error("the bands of an area"))?;
        let mut around = Enclosure::of(place);
        for edge in self.edges_of(part, &head, band..band + 1)? {
            around.add(&edge);
            if around.is_on_edge() {
                break;
            }
        }
        Ok(around.holds().then_some(head.record))
    }

    /// Calls `visit` with the ends of each edge in the bands that a box intersects, until `visit` returns `false`.
    /// Skips the first `skipped` edges. An edge that is stored in several of these bands is visited once per band.
    pub(crate) fn visit_edges(
        &self,
        part: u64,
        extent: &Extent,
        skipped: usize,
        visit: &mut impl FnMut(Point, Point) -> bool,
    ) -> Result<()> {
        let head = self.part_header(part)?;
        // The box may begin south of the first band or end north of the last one.
        let low = head.band_number(extent.low.lat_e7).unwrap_or(0);
        let high = head
            .band_number(extent.high.lat_e7)
            .unwrap_or(head.count - 1);
        if low <= high {
            let mut edges = self.edges_of(part, &head, low..high + 1)?.skip(skipped);
            edges.all(|edge| visit(edge.from, edge.to));
        }
        Ok(())
    }

    /// Reads the area whose record starts at offset `record`. `extent` is the bounding box of one part of the area.
    pub(crate) fn area(&self, record: u64, extent: Extent) -> Result<Area<'c>> {
        let len = u32::from_le_bytes(self.container.array(self.section, record)?);
        let bytes = self.bytes(record + 4, len.into())?;
        let parsed = || {
            let mut values = Varints::new(bytes);
            let kind = ObjectKind::from_number(values.read()?);
            let kind = kind.ok_or(BROKEN_AREA)?;
            let id = values.read_sint()?;
            let known = values.read_text()?;
            Area::new(kind, id, extent, [known, values.rest()])
        };
        parsed().map_err(|error| self.container.damage_error(&error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;
    use crate::geocode::container::write_and_open_container;
    use crate::geocode::item::{IndexedItem, ItemShape, Lines};

    #[test]
    fn a_part_holds_the_places_that_its_rings_enclose() {
        let mut random = Random(11);
        let directory = tempfile::tempdir().unwrap();
        for corners in [3, 10, 100, 1000] {
            let mut lines: Vec<Vec<Point>> = Vec::new();
            for part in 0..3 {
                // A ring may cross itself, so a place is inside if a ray from it crosses an odd number of edges.
                let mut ring: Vec<Point> = (0..corners)
                    .map(|_| Point::new(random.below(100), random.below(100) + part * 200))
                    .collect();
                ring.push(ring[0]);
                lines.extend([ring, Vec::new()]);
            }
            lines.pop();
            let tags = [("name", "A"), ("admin_level", "8"), ("name:x", "Å")];
            let item = IndexedItem {
                kind: ObjectKind::Relation,
                id: -5,
                shape: ItemShape::Area,
                lines: Lines::Many(&lines),
                tags: &tags,
            };
            let mut row = Vec::new();
            item.put_row(&mut row);
            let area = encode_area(&RowItem::parse(&row).unwrap());
            assert_eq!(area.parts.len(), 3);
            let path = directory.path().join(corners.to_string());
            let container = write_and_open_container(&path, 1, |writer| {
                writer.begin_section().unwrap();
                writer.write(&[0; 3]).unwrap();
                writer.write(&area.bytes).unwrap();
            });
            let areas = Areas {
                container: &container,
                section: 0,
            };
            for (part, (extent, start)) in area.parts.iter().enumerate() {
                for _ in 0..2000 {
                    let place = Point::new(random.below(110) - 5, random.below(510) - 5);
                    let ring = &lines[part * 2];
                    let edges = || {
                        let pairs = ring.iter().copied().zip(ring.iter().copied().skip(1));
                        pairs.map(|(from, to)| Edge { from, to })
                    };
                    let crossed = edges().filter(|edge| edge.crosses_ray_east_of(place));
                    let is_inside =
                        crossed.count() % 2 == 1 || edges().any(|edge| edge.holds(place));
                    assert!(!is_inside || extent.holds(place));
                    if extent.holds(place) {
                        let found = areas.record_if_part_contains(3 + *start, place).unwrap();
                        assert_eq!(found, is_inside.then_some(3), "{place:?} of {ring:?}");
                    }
                }
            }
            let found = areas.area(3, area.parts[0].0).unwrap();
            assert_eq!((found.kind, found.id), (ObjectKind::Relation, -5));
            assert_eq!((found.level, found.is_administrative), (Some(8), false));
            assert_eq!(
                found.tags([KeyNumber::NAME, KeyNumber::PLACE]),
                [Some("A"), None]
            );
            assert_eq!((found.name_in("x"), found.name_in("y")), (Some("Å"), None));
        }
    }

    #[test]
    fn reading_a_truncated_area_or_one_without_bands_fails() {
        let [low, high] = [0, 10].map(|at| Point::new(at, at));
        let corner = Point::new(0, 10);
        let item = IndexedItem {
            kind: ObjectKind::Relation,
            id: 1,
            shape: ItemShape::Area,
            lines: Lines::One(&[low, corner, high, low]),
            tags: &[("name", "A"), ("boundary", "administrative")],
        };
        let mut row = Vec::new();
        item.put_row(&mut row);
        let good = encode_area(&RowItem::parse(&row).unwrap());
        let (extent, start) = good.parts[0];
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("area");
        let read = |bytes: &[u8], extent: Extent| {
            let container = write_and_open_container(&path, 1, |writer| {
                writer.begin_section().unwrap();
                writer.write(bytes).unwrap();
            });
            let areas = Areas {
                container: &container,
                section: 0,
            };
            let record = areas.record_if_part_contains(start, extent.high)?;
            let area = areas.area(record.unwrap_or_default(), extent)?;
            Ok::<_, crate::error::Error>(area.tag(KeyNumber::NAME).map(str::to_owned))
        };
        assert_eq!(read(&good.bytes, extent).unwrap().as_deref(), Some("A"));
        for len in 0..good.bytes.len() {
            assert!(read(&good.bytes[..len], extent).is_err(), "{len}");
        }
        // The damage is, in this order: tags that end within a value, no bands, bands without height, and a place
        // outside the bands.
        let start = start as usize;
        for (at, value) in [(6, 2), (start + 16, 0), (start + 12, 0), (start + 8, 11)] {
            let mut damaged = good.bytes.clone();
            damaged[at] = value;
            let error = read(&damaged, extent).unwrap_err().to_string();
            assert!(error.contains("the index is damaged"), "{at}: {error}");
        }
    }
}
