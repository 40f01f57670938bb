//! The table of contents: the entries of all data blobs of a file, stored in columns (`reference/format.md`).
//!
//! The module `toc_blob` encodes the table as the last blobs of a file and finds it there.

use super::entry::{BlobEntry, BlobFlags};
use super::wire::{put_sint, put_varint, zigzag_decode};
use crate::error::FormatError;
use crate::osm::{Bbox, KindSet};
use crate::pbf::wire::Varints;

/// The first bytes of a table of contents and of a pointer to one.
pub(super) const MAGIC: &[u8; 4] = b"HOGG";
/// The version of tables in the header blob, which are read but no longer written.
pub(super) const VERSION_1: u8 = 1;
/// The version of tables in the last blobs of a file.
pub(super) const VERSION: u8 = 2;
/// The minimum length of a data frame in bytes: prefix, type and datasize.
const MIN_FRAME_LEN: u64 = 15;
/// Facts about a whole file, stored as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TocFlags {
    /// All objects are in canonical order, and no two blobs share an id. The writer has verified this.
    pub sorted: bool,
    /// The file has deleted objects or several versions of an object.
    pub history: bool,
    /// Ways carry the coordinates of their nodes.
    pub locations: bool,
}

impl TocFlags {
    const fn bits(self) -> u64 {
        self.sorted as u64 | (self.history as u64) << 1 | (self.locations as u64) << 2
    }

    const fn from_bits(bits: u64) -> Self {
        Self {
            sorted: bits & 1 != 0,
            history: bits & 2 != 0,
            locations: bits & 4 != 0,
        }
    }
}

/// The table of contents of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Toc {
    /// The offset at which the last data frame ends and the table begins. In version 1, whose table is in the header,
    /// the length of the whole file: a table with another length is stale.
    pub data_end: u64,
    /// Facts about the whole file.
    pub flags: TocFlags,
    /// The entries of the data blobs, in file order.
    pub entries: Vec<BlobEntry>,
}

/// The numbers of the columns. Readers skip columns that they do not know.
mod column {
    /// The number of blobs per entry. Only tables of version 1 have this column, if some entry covers several blobs.
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
}

/// Column coding: one zigzag varint for each value.
const PLAIN: u8 = 0;
/// Column coding: a zigzag varint and the number of times that the value repeats, as a varint.
const RUNS: u8 = 1;
/// Column coding: eight little-endian bytes for each value.
const FIXED64: u8 = 2;

/// Encodes a table. `data_start` is the offset of the first data frame.
pub fn encode_toc(toc: &Toc, data_start: u64) -> Vec<u8> {
    let entries = &toc.entries;
    let mut out = Vec::with_capacity(64 + entries.len() * 40);
    out.extend_from_slice(MAGIC);
    out.push(VERSION);
    out.extend_from_slice(&toc.data_end.to_le_bytes());
    put_varint(&mut out, toc.flags.bits());
    put_varint(&mut out, entries.len() as u64);
    type Value = fn(&BlobEntry) -> i64;
    let plain: [(u64, Value); 6] = [
        (column::FRAME_LEN, |entry| i64::from(entry.frame_len)),
        (column::HEADER_LEN, |entry| i64::from(entry.header_len)),
        (column::PAYLOAD_LEN, |entry| i64::from(entry.payload_len)),
        (column::KINDS, |entry| i64::from(entry.kinds.bits())),
        (column::COUNT, |entry| i64::from(entry.count)),
        (column::FLAGS, |entry| i64::from(entry.flags.bits())),
    ];
    for (number, value) in plain {
        put_column(&mut out, number, deltas(entries.iter().map(value)));
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
    // A span of -1 marks an entry without a box, which has no values in the other columns of boxes.
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

fn deltas(values: impl Iterator<Item = i64> + Clone) -> impl Iterator<Item = i64> + Clone {
    let mut last = 0;
    values.map(move |value| {
        let delta = value - last;
        last = value;
        delta
    })
}

/// Appends a column: its number, its length in bytes, its coding and its values. The values are coded as runs if that
/// is shorter.
fn put_column(out: &mut Vec<u8>, number: u64, values: impl Iterator<Item = i64> + Clone) {
    let (mut plain, mut runs) = (vec![PLAIN], vec![RUNS]);
    let mut run: Option<(i64, u64)> = None;
    let put_run = |runs: &mut Vec<u8>, (value, len): (i64, u64)| {
        put_sint(runs, value);
        put_varint(runs, len);
    };
    for value in values {
        put_sint(&mut plain, value);
        run = match run {
            Some((last, len)) if last == value => Some((last, len + 1)),
            Some(ended) => {
                put_run(&mut runs, ended);
                Some((value, 1))
            }
            None => Some((value, 1)),
        };
    }
    if let Some(ended) = run {
        put_run(&mut runs, ended);
    }
    let shorter = if runs.len() < plain.len() {
        runs
    } else {
        plain
    };
    put_varint(out, number);
    put_varint(out, shorter.len() as u64);
    out.extend_from_slice(&shorter);
}

impl Toc {
    /// Decodes the table of a file whose data frames begin at offset `data_start`, and which has `actual_len` bytes.
    ///
    /// Fails if the table is damaged, has an unknown version, or has entries that cover several blobs; the file can be
    /// read without it. Entries are not decoded if [`data_end`](Self::data_end) lies beyond the end of the file.
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
        // Limits the memory that a wrong count can take: to the maximum number of frames in the file, and to far more
        // entries than are usual in a table of this length.
        let most = (bytes.len() as u64 * 16 + 4096).min(actual_len / MIN_FRAME_LEN);
        let count = Some(count).filter(|&count| count <= most);
        let count = count
            .and_then(|count| usize::try_from(count).ok())
            .ok_or_else(damaged)?;
        let columns = Columns::parse(fields, count)?;
        toc.entries = columns.entries(count, data_start)?;
        Ok(toc)
    }
}

/// The decoded columns of a table, as pairs of column number and values.
#[derive(Default)]
struct Columns(Vec<(u64, Vec<i64>)>);

impl Columns {
    fn parse(mut fields: Varints<'_>, count: usize) -> Result<Self, FormatError> {
        let mut columns = Self::default();
        let mut rest = fields.rest();
        while !rest.is_empty() {
            fields = Varints::new(rest);
            let number = fields.read()?;
            let len = usize::try_from(fields.read()?).unwrap_or(usize::MAX);
            let (column, behind) = fields
                .rest()
                .split_at_checked(len)
                .ok_or(FormatError::new("a column is cut off"))?;
            if columns.0.iter().any(|(found, _)| *found == number) {
                return Err(FormatError::new("a column occurs twice"));
            }
            if (column::BLOBS..=column::HASH).contains(&number) {
                columns.0.push((number, decode_column(column, count)?));
            }
            rest = behind;
        }
        Ok(columns)
    }

    /// Removes a column and iterates over its values, which are summed up if `delta_coded`. A missing column has no
    /// values.
    fn take(&mut self, number: u64, delta_coded: bool) -> impl Iterator<Item = i64> + use<> {
        let index = self.0.iter().position(|(found, _)| *found == number);
        let values = index
            .map(|index| self.0.swap_remove(index).1)
            .unwrap_or_default();
        let mut last = 0i64;
        values.into_iter().map(move |value| {
            last = if delta_coded {
                last.wrapping_add(value)
            } else {
                value
            };
            last
        })
    }

    fn entries(mut self, count: usize, data_start: u64) -> Result<Vec<BlobEntry>, FormatError> {
        let short = || FormatError::new("a column is too short");
        let range = || FormatError::new("a value is out of range");
        let mut frame_lens = self.take(column::FRAME_LEN, true);
        let mut header_lens = self.take(column::HEADER_LEN, true);
        let mut payload_lens = self.take(column::PAYLOAD_LEN, true);
        let mut kinds = self.take(column::KINDS, true);
        let mut counts = self.take(column::COUNT, true);
        let mut flags = self.take(column::FLAGS, true);
        if self.take(column::BLOBS, false).any(|blobs| blobs != 1) {
            return Err(FormatError::new(
                "its entries stand for several blobs, as an early version wrote them",
            ));
        }
        let mut gaps = self.take(column::OFFSET_GAP, false);
        let mut mins = self.take(column::MIN_ID, false);
        let mut spans = self.take(column::ID_SPAN, false);
        let mut boxes = Boxes::new(&mut self);
        let mut hashes = self.take(column::HASH, false);
        let mut entries = Vec::new();
        let (mut end, mut number, mut last_id) = (data_start, 1u32, 0i64);
        for _ in 0..count {
            let gap = u64::try_from(gaps.next().unwrap_or(0)).map_err(|_| range())?;
            let min_id = mins.next().ok_or_else(short)?.wrapping_add(last_id);
            let flags = BlobFlags::from_bits(narrow(flags.next())?);
            let hash = match (hashes.next(), flags.has(BlobFlags::HASHED)) {
                (Some(hash), true) => hash as u64,
                (None, true) => return Err(short()),
                (_, false) => 0,
            };
            let entry = BlobEntry {
                offset: end.checked_add(gap).ok_or_else(range)?,
                min_id,
                max_id: spans.next().ok_or_else(short)?.wrapping_add(min_id),
                hash,
                bbox: boxes.next().ok_or_else(range)?,
                frame_len: narrow(frame_lens.next())?,
                payload_len: narrow(payload_lens.next())?,
                count: narrow(counts.next())?,
                number,
                header_len: narrow(header_lens.next())?,
                kinds: KindSet::from_bits(narrow(kinds.next())?).ok_or_else(range)?,
                flags,
            };
            end = entry
                .offset
                .checked_add(u64::from(entry.frame_len))
                .ok_or_else(range)?;
            number = number.checked_add(1).ok_or_else(range)?;
            last_id = entry.max_id;
            entries.push(entry);
        }
        Ok(entries)
    }
}

fn narrow<T: TryFrom<i64>>(value: Option<i64>) -> Result<T, FormatError> {
    let value = value.ok_or(FormatError::new("a column is too short"))?;
    T::try_from(value).map_err(|_| FormatError::new("a value is out of range"))
}

/// Decodes a column of at most `count` values.
fn decode_column(column: &[u8], count: usize) -> Result<Vec<i64>, FormatError> {
    let (coding, bytes) = column
        .split_first()
        .ok_or(FormatError::new("a column is empty"))?;
    let too_long = FormatError::new("a column is too long");
    let mut values = Vec::new();
    let mut varints = Varints::new(bytes);
    match *coding {
        PLAIN => {
            while !varints.is_done() {
                values.push(varints.read_sint()?);
            }
        }
        RUNS => {
            while !varints.is_done() {
                let value = zigzag_decode(varints.read()?);
                let len = usize::try_from(varints.read()?).unwrap_or(usize::MAX);
                if len > count.saturating_sub(values.len()) {
                    return Err(too_long);
                }
                values.resize(values.len() + len, value);
            }
        }
        FIXED64 => {
            let words = bytes
                .chunks_exact(8)
                .filter_map(|word| word.try_into().ok());
            values.extend(words.map(i64::from_le_bytes));
        }
        other => {
            return Err(FormatError::with(format!(
                "column coding {other} is not known"
            )));
        }
    }
    if values.len() > count {
        Err(too_long)
    } else {
        Ok(values)
    }
}

/// Iterates over the four columns of bounding boxes together.
struct Boxes<I> {
    lat_spans: I,
    souths: I,
    wests: I,
    lon_spans: I,
}

impl Boxes<std::vec::IntoIter<i64>> {
    fn new(columns: &mut Columns) -> Self {
        let mut take = |number, delta| columns.take(number, delta).collect::<Vec<_>>().into_iter();
        Self {
            lat_spans: take(column::LAT_SPAN, false),
            souths: take(column::SOUTH, true),
            wests: take(column::WEST, true),
            lon_spans: take(column::LON_SPAN, false),
        }
    }

    /// The bounding box of the next entry; `None` if the columns are damaged.
    fn next(&mut self) -> Option<Bbox> {
        match self.lat_spans.next() {
            None | Some(-1) => Some(Bbox::EMPTY),
            Some(lat_span) => {
                let (south, west) = (self.souths.next()?, self.wests.next()?);
                let lon_span = self.lon_spans.next()?;
                if lat_span < 0 || lon_span < 0 {
                    return None;
                }
                Some(Bbox {
                    min_lat_e7: i32::try_from(south).ok()?,
                    max_lat_e7: i32::try_from(south.checked_add(lat_span)?).ok()?,
                    min_lon_e7: i32::try_from(west).ok()?,
                    max_lon_e7: i32::try_from(west.checked_add(lon_span)?).ok()?,
                })
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::osm::ObjectKind;

    pub(in crate::pbf) fn table(blobs: u32) -> Toc {
        let mut offset = 1000u64;
        let entries = (0..blobs).map(|index| {
            let entry = BlobEntry {
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
            };
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
    fn a_box_that_is_inside_out_makes_a_table_useless() {
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
    fn a_hash_counts_only_where_the_entry_says_that_there_is_one() {
        let mut toc = table(3);
        toc.entries[1].flags.set(BlobFlags::HASHED, false);
        let read = Toc::parse(&encode_toc(&toc, 1000), 1000, 1 << 40).unwrap();
        assert_eq!(read.entries[1].hash, 0);
        assert_eq!(read.entries[2].hash, toc.entries[2].hash);
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
