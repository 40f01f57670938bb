//! The table of contents: the entries of all data blobs of a file, stored in columns (`reference/format.md`).
//!
//! The module `toc_blob` writes the table as the last blobs of a file and finds it there.

mod columns;
mod statistics;

use super::entry::{BlobEntry, BlobFlags};
use crate::error::{FormatError, FormatResult};
use crate::osm::{Bbox, KindSet};
use crate::pbf::wire::Varints;
use crate::pbf::wire::put_varint;
use columns::{ColumnReader, Columns, FIXED64, TOO_SHORT, deltas, put_column};
use statistics::StatisticsColumns;

/// The first bytes of a table of contents and of a pointer to one.
pub(super) const MAGIC: &[u8; 4] = b"HOGG";
/// The version of tables of contents in the header blob, which are read but no longer written.
pub(super) const VERSION_1: u8 = 1;
/// The version of tables of contents in the last blobs of a file.
pub(in crate::pbf) const VERSION: u8 = 2;
/// The minimum size in bytes of a data frame: 4 bytes of the prefix, 9 of the field `type` and 2 of the field
/// `datasize`, with an empty blob.
const MIN_FRAME_LEN: u64 = 15;

/// Facts about a whole file, which are stored as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TocFlags {
    /// All objects are in canonical order, and no two blobs share an id. The writer has verified this.
    pub sorted: bool,
    /// The file has deleted objects or several versions of an object.
    pub history: bool,
    /// Ways have the coordinates of their nodes.
    pub locations: bool,
    /// The objects of each kind are in the order of a space-filling curve, no object occurs twice, and entries of ways
    /// and relations have bounding boxes, too.
    pub spatial: bool,
    /// The file has a table of ids. The table is in blobs with objects or, if it has version 1, between the last data
    /// frame and the table of contents.
    pub id_table: bool,
}

impl TocFlags {
    const fn bits(self) -> u64 {
        self.sorted as u64
            | (self.history as u64) << 1
            | (self.locations as u64) << 2
            | (self.spatial as u64) << 3
            | (self.id_table as u64) << 4
    }

    const fn from_bits(bits: u64) -> Self {
        Self {
            sorted: bits & 1 != 0,
            history: bits & 2 != 0,
            locations: bits & 4 != 0,
            spatial: bits & 8 != 0,
            id_table: bits & 16 != 0,
        }
    }
}

/// The table of contents of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Toc {
    /// The offset of the end of the last data frame that the table describes. The table of contents follows.
    ///
    /// For a table of version 1, which is stored in the header, this is the size of the whole file. The table is stale
    /// if the file has another size.
    pub data_end: u64,
    /// Facts about the whole file.
    pub flags: TocFlags,
    /// The entries of the data blobs, in file order.
    pub entries: Vec<BlobEntry>,
}

/// The numbers of the columns. `LAST` is the largest known number; readers skip columns with larger ones.
mod column {
    /// The number of blobs per entry. Occurs only in tables of version 1, if at least one entry covers several blobs.
    pub const BLOBS: u64 = 1;
    pub const OFFSET_GAP: u64 = 2;
    pub const FRAME_LEN: u64 = 3;
    pub const HEADER_LEN: u64 = 4;
    pub const PAYLOAD_LEN: u64 = 5;
    pub const KINDS: u64 = 6;
    pub const COUNT: u64 = 7;
    pub const MIN_ID: u64 = 8;
    pub const ID_SPAN: u64 = 9;
    pub const SOUTH: u64 = 10;
    pub const LAT_SPAN: u64 = 11;
    pub const WEST: u64 = 12;
    pub const LON_SPAN: u64 = 13;
    pub const FLAGS: u64 = 14;
    pub const HASH: u64 = 15;
    /// 1 for an entry with statistics, and 0 for any other entry. The columns from [`FIRST_TIMESTAMP`] on have values
    /// only for entries with statistics.
    pub const STATISTICS: u64 = 16;
    pub const FIRST_TIMESTAMP: u64 = 17;
    pub const LAST_TIMESTAMP: u64 = 18;
    pub const WITH_VERSION: u64 = 19;
    pub const WITH_TIMESTAMP: u64 = 20;
    pub const WITH_CHANGESET: u64 = 21;
    pub const WITH_UID: u64 = 22;
    pub const WITH_USER: u64 = 23;
    pub const DELETED: u64 = 24;
    pub const FURTHER_VERSIONS: u64 = 25;
    pub const TAGGED: u64 = 26;
    pub const TAGS: u64 = 27;
    pub const REFERENCES: u64 = 28;
    pub const MOST_REFERENCES: u64 = 29;
    pub const LAST: u64 = MOST_REFERENCES;
}

/// A column that stores one number per entry, as the difference from the number of the previous entry. Readers that do
/// not know the column skip it.
struct PlainColumn {
    number: u64,
    /// Whether every table has the column. Without the column, entries keep the default value, which means that the
    /// fact is unknown.
    is_required: bool,
    get: fn(&BlobEntry) -> i64,
    /// Stores a value in an entry. Returns `None` if the value is out of range.
    set: fn(&mut BlobEntry, i64) -> Option<()>,
}

/// Describes the column of a field that is a number.
macro_rules! number_column {
    ($number:ident, $field:ident) => {
        PlainColumn {
            number: column::$number,
            is_required: true,
            get: |entry| entry.$field.into(),
            set: |entry, value| {
                entry.$field = value.try_into().ok()?;
                Some(())
            },
        }
    };
}

static PLAIN_COLUMNS: &[PlainColumn] = &[
    number_column!(FRAME_LEN, frame_len),
    number_column!(HEADER_LEN, header_len),
    number_column!(PAYLOAD_LEN, payload_len),
    PlainColumn {
        number: column::KINDS,
        is_required: true,
        get: |entry| entry.kinds.bits().into(),
        set: |entry, value| {
            entry.kinds = KindSet::from_bits(value.try_into().ok()?)?;
            Some(())
        },
    },
    number_column!(COUNT, count),
    PlainColumn {
        number: column::FLAGS,
        is_required: true,
        get: |entry| entry.flags.bits().into(),
        set: |entry, value| {
            entry.flags = BlobFlags::from_bits(value.try_into().ok()?);
            Some(())
        },
    },
];

/// Encodes a table. `data_start` is the offset of the first data frame.
pub fn encode_toc(toc: &Toc, data_start: u64) -> Vec<u8> {
    let entries = &toc.entries;
    let mut out = Vec::with_capacity(64 + entries.len() * 40);
    out.extend_from_slice(MAGIC);
    out.push(VERSION);
    out.extend_from_slice(&toc.data_end.to_le_bytes());
    put_varint(&mut out, toc.flags.bits());
    put_varint(&mut out, entries.len() as u64);
    for column in PLAIN_COLUMNS {
        put_column(
            &mut out,
            column.number,
            deltas(entries.iter().map(column.get)),
        );
    }
    let ends = std::iter::once(data_start).chain(entries.iter().map(BlobEntry::end));
    let gaps = entries
        .iter()
        .zip(ends)
        .map(|(entry, end)| entry.offset.wrapping_sub(end) as i64);
    if gaps.clone().any(|gap| gap != 0) {
        put_column(&mut out, column::OFFSET_GAP, gaps);
    }
    put_id_columns(&mut out, entries);
    put_box_columns(&mut out, entries);
    put_hash_column(&mut out, entries);
    statistics::put_columns(&mut out, entries);
    let crc = crc32c::crc32c(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

fn put_id_columns(out: &mut Vec<u8>, entries: &[BlobEntry]) {
    let lasts = std::iter::once(0).chain(entries.iter().map(|entry| entry.max_id));
    let mins = entries
        .iter()
        .zip(lasts)
        .map(|(entry, last)| entry.min_id.wrapping_sub(last));
    put_column(out, column::MIN_ID, mins);
    let spans = entries
        .iter()
        .map(|entry| entry.max_id.wrapping_sub(entry.min_id));
    put_column(out, column::ID_SPAN, spans);
}

fn put_box_columns(out: &mut Vec<u8>, entries: &[BlobEntry]) {
    let boxes = || {
        entries
            .iter()
            .map(|entry| entry.bbox)
            .filter(|bbox| !bbox.is_empty())
    };
    if boxes().next().is_none() {
        return;
    }
    let span = |low: i32, high: i32| i64::from(high) - i64::from(low);
    // A span of -1 marks an entry without a bounding box. Such an entry has no values in the other columns of boxes.
    let lat_spans = entries.iter().map(|entry| {
        if entry.bbox.is_empty() {
            -1
        } else {
            span(entry.bbox.min_lat_e7, entry.bbox.max_lat_e7)
        }
    });
    put_column(out, column::LAT_SPAN, lat_spans);
    put_column(
        out,
        column::SOUTH,
        deltas(boxes().map(|bbox| i64::from(bbox.min_lat_e7))),
    );
    put_column(
        out,
        column::WEST,
        deltas(boxes().map(|bbox| i64::from(bbox.min_lon_e7))),
    );
    put_column(
        out,
        column::LON_SPAN,
        boxes().map(|bbox| span(bbox.min_lon_e7, bbox.max_lon_e7)),
    );
}

fn put_hash_column(out: &mut Vec<u8>, entries: &[BlobEntry]) {
    if entries
        .iter()
        .any(|entry| entry.flags.has(BlobFlags::HASHED))
    {
        put_varint(out, column::HASH);
        put_varint(out, 1 + entries.len() as u64 * 8);
        out.push(FIXED64);
        entries
            .iter()
            .for_each(|entry| out.extend_from_slice(&entry.hash.to_le_bytes()));
    }
}

impl Toc {
    /// Decodes a table of contents. The data frames of the file begin at offset `data_start`, and the file has
    /// `actual_len` bytes.
    ///
    /// Fails if the table is damaged, has an unknown version, or has entries that cover several blobs. In these cases,
    /// the file can be read without its table. Does not decode the entries if [`data_end`](Self::data_end) lies beyond
    /// the end of the file.
    pub fn parse(bytes: &[u8], data_start: u64, actual_len: u64) -> Result<Self, FormatError> {
        let damaged = || FormatError::new("it is damaged");
        let (body, crc) = bytes.split_last_chunk::<4>().ok_or_else(damaged)?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
            return Err(damaged());
        }
        let rest = body.strip_prefix(MAGIC).ok_or_else(damaged)?;
        let (version, rest) = rest.split_first().ok_or_else(damaged)?;
        if ![VERSION_1, VERSION].contains(version) {
            return Err(FormatError::with(format!(
                "its version is {version}, which this program does not know"
            )));
        }
        let (data_end, rest) = rest.split_first_chunk::<8>().ok_or_else(damaged)?;
        let mut fields = Varints::new(rest);
        let flags = TocFlags::from_bits(fields.read()?);
        let data_end = u64::from_le_bytes(*data_end);
        let mut toc = Self {
            data_end,
            flags,
            entries: Vec::new(),
        };
        let count = fields.read()?;
        if data_end > actual_len {
            return Ok(toc);
        }
        // Limits the memory that a wrong count can allocate. The limit is the maximum number of frames in the file or a
        // generous estimate (16 entries per byte of the table, plus 4096), whichever is smaller.
        let most = (bytes.len() as u64 * 16 + 4096).min(actual_len / MIN_FRAME_LEN);
        let count = Some(count).filter(|&count| count <= most);
        let count = count
            .and_then(|count| usize::try_from(count).ok())
            .ok_or_else(damaged)?;
        let columns = Columns::parse(fields)?;
        toc.entries = columns.decode_entries(count, data_start)?;
        Ok(toc)
    }
}

impl Columns<'_> {
    /// Decodes `count` entries. The data frames of the file begin at offset `data_start`.
    fn decode_entries(&self, count: usize, data_start: u64) -> FormatResult<Vec<BlobEntry>> {
        let range = || FormatError::new("a value is out of range");
        let get = |number, delta_coded| self.get(number, delta_coded);
        check_blobs_per_entry(get(column::BLOBS, false), count)?;
        let plain = PLAIN_COLUMNS.iter();
        let mut plain: Vec<_> = plain.map(|column| get(column.number, true)).collect();
        let mut gaps = get(column::OFFSET_GAP, false);
        let mut mins = get(column::MIN_ID, false);
        let mut spans = get(column::ID_SPAN, false);
        let mut boxes = BoxColumns::new(self);
        let mut hashes = get(column::HASH, false);
        let mut statistics = StatisticsColumns::new(self);
        // A frame length takes at least one byte of its column, unless it is a part of a run. So the length of the
        // column limits the memory that a wrong count can reserve.
        let mut entries =
            Vec::with_capacity(count.min(plain.first().map_or(0, ColumnReader::bytes_left)));
        let (mut end, mut number, mut last_id) = (data_start, 1u32, 0i64);
        for _ in 0..count {
            let mut entry = BlobEntry {
                number,
                ..BlobEntry::default()
            };
            for (column, values) in PLAIN_COLUMNS.iter().zip(&mut plain) {
                match values.next()? {
                    Some(value) => (column.set)(&mut entry, value).ok_or_else(range)?,
                    None if column.is_required => return Err(TOO_SHORT),
                    None => {}
                }
            }
            let gap = u64::try_from(gaps.next()?.unwrap_or(0)).map_err(|_| range())?;
            entry.offset = end.checked_add(gap).ok_or_else(range)?;
            entry.min_id = mins.next_number::<i64>()?.wrapping_add(last_id);
            entry.max_id = spans.next_number::<i64>()?.wrapping_add(entry.min_id);
            entry.hash = match (hashes.next()?, entry.flags.has(BlobFlags::HASHED)) {
                (Some(hash), true) => hash as u64,
                (None, true) => return Err(TOO_SHORT),
                (_, false) => 0,
            };
            entry.bbox = boxes.next()?;
            entry.statistics = statistics.next(entry.count, entry.kinds)?;
            end = entry
                .offset
                .checked_add(u64::from(entry.frame_len))
                .ok_or_else(range)?;
            number = number.checked_add(1).ok_or_else(range)?;
            last_id = entry.max_id;
            entries.push(entry);
        }
        let all = plain.iter().chain([&gaps, &mins, &spans, &hashes]);
        all.into_iter().try_for_each(ColumnReader::check_end)?;
        Ok(entries)
    }
}

/// Fails if any of `count` entries covers several blobs.
fn check_blobs_per_entry(mut blobs: ColumnReader<'_>, count: usize) -> FormatResult<()> {
    // A few bytes can stand for a run of any number of values, so only `count` values are read.
    for _ in 0..count {
        match blobs.next()? {
            None => break,
            Some(1) => {}
            Some(_) => {
                return Err(FormatError::new(
                    "its entries stand for several blobs, as an early version wrote them",
                ));
            }
        }
    }
    blobs.check_end()
}

/// Iterates over the four columns of bounding boxes together.
struct BoxColumns<'a> {
    lat_spans: ColumnReader<'a>,
    souths: ColumnReader<'a>,
    wests: ColumnReader<'a>,
    lon_spans: ColumnReader<'a>,
}

impl<'a> BoxColumns<'a> {
    fn new(columns: &Columns<'a>) -> Self {
        Self {
            lat_spans: columns.get(column::LAT_SPAN, false),
            souths: columns.get(column::SOUTH, true),
            wests: columns.get(column::WEST, true),
            lon_spans: columns.get(column::LON_SPAN, false),
        }
    }

    /// Returns the bounding box of the next entry.
    fn next(&mut self) -> FormatResult<Bbox> {
        let height = match self.lat_spans.next()? {
            None | Some(-1) => return Ok(Bbox::EMPTY),
            Some(height) => height,
        };
        let (south, west) = (self.souths.next_number()?, self.wests.next_number()?);
        let width = self.lon_spans.next_number::<i64>()?;
        let end = |start: i32, len: i64| {
            let end = i64::from(start).checked_add(len).filter(|_| len >= 0);
            end.and_then(|end| i32::try_from(end).ok())
                .ok_or(FormatError::new("a box is inside out or too large"))
        };
        Ok(Bbox {
            min_lat_e7: south,
            max_lat_e7: end(south, height)?,
            min_lon_e7: west,
            max_lon_e7: end(west, width)?,
        })
    }
}

#[cfg(test)]
pub(in crate::pbf) mod tests {
    use super::*;
    use crate::osm::ObjectKind;
    use crate::pbf::ObjectStatistics;

    pub(in crate::pbf) fn table(blobs: u32) -> Toc {
        let mut offset = 1000u64;
        let entries = (0..blobs).map(|index| {
            let mut entry = BlobEntry {
                offset,
                frame_len: 60_000 + index % 7 * 1000,
                header_len: 17,
                payload_len: 150_000 + index,
                count: 8000,
                number: index + 1,
                min_id: i64::from(index) * 100_000 + 1,
                max_id: i64::from(index) * 100_000 + 90_000,
                kinds: KindSet::of(ObjectKind::Node),
                hash: u64::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15),
                bbox: Bbox {
                    min_lat_e7: index as i32 * -977,
                    max_lat_e7: index as i32 * 13_331,
                    min_lon_e7: -1_800_000_000,
                    max_lon_e7: 1_800_000_000,
                },
                flags: BlobFlags::from_bits(1 | 2 | 8 | 32 | 64),
                ..BlobEntry::default()
            };
            // Every third blob has no statistics.
            entry.statistics = (index % 3 != 2).then_some(ObjectStatistics {
                first_timestamp: 1_000_000_000 + index * 7919,
                last_timestamp: 1_700_000_000 - index * 7919,
                with_version: 8000,
                with_timestamp: 7999,
                with_changeset: 0,
                with_uid: index,
                with_user: 8000 - index,
                deleted: 1,
                further_versions: 2,
                tagged: index,
                tags: index * 3,
                references: 0,
                most_references: 0,
            });
            offset = entry.end();
            entry
        });
        let entries = entries.collect();
        let flags = TocFlags {
            sorted: true,
            ..TocFlags::default()
        };
        Toc {
            data_end: 1 << 40,
            flags,
            entries,
        }
    }

    #[test]
    fn a_table_reads_back_as_it_was_written() {
        for blobs in [0, 1, 2, 500] {
            let toc = table(blobs);
            assert_eq!(
                Toc::parse(&encode_toc(&toc, 1000), 1000, 1 << 40).unwrap(),
                toc
            );
        }
    }

    #[test]
    fn a_table_with_an_inverted_box_is_refused() {
        for turn in [
            (|bbox: &mut Bbox| bbox.max_lat_e7 = bbox.min_lat_e7 - 2) as fn(&mut Bbox),
            |bbox| bbox.max_lon_e7 = bbox.min_lon_e7 - 1,
        ] {
            let mut toc = table(3);
            turn(&mut toc.entries[1].bbox);
            let bytes = encode_toc(&toc, 1000);
            let empty = toc.entries[1].bbox.is_empty();
            assert!(empty || Toc::parse(&bytes, 1000, 1 << 40).is_err());
        }
    }

    #[test]
    fn a_hash_is_stored_only_for_an_entry_with_the_hash_flag() {
        let mut toc = table(3);
        toc.entries[1].flags.set(BlobFlags::HASHED, false);
        let read = Toc::parse(&encode_toc(&toc, 1000), 1000, 1 << 40).unwrap();
        assert_eq!(read.entries[1].hash, 0);
        assert_eq!(read.entries[2].hash, toc.entries[2].hash);
    }

    #[test]
    fn a_run_beyond_the_entries_is_refused_at_once() {
        let mut bytes = [MAGIC.as_slice(), &[VERSION]].concat();
        bytes.extend_from_slice(&0u64.to_le_bytes());
        put_varint(&mut bytes, 0);
        put_varint(&mut bytes, 0);
        let mut run = vec![1, 2];
        put_varint(&mut run, u64::MAX);
        put_varint(&mut bytes, column::BLOBS);
        put_varint(&mut bytes, run.len() as u64);
        bytes.extend_from_slice(&run);
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        assert!(Toc::parse(&bytes, 1000, 1 << 40).is_err());
    }

    #[test]
    fn a_damaged_table_is_refused() {
        let bytes = encode_toc(&table(20), 1000);
        for index in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[index] ^= 0x10;
            assert!(Toc::parse(&damaged, 1000, 1 << 40).is_err(), "byte {index}");
            assert!(
                Toc::parse(&bytes[..index], 1000, 1 << 40).is_err(),
                "cut at {index}"
            );
        }
    }
}
