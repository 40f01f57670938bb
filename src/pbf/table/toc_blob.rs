//! Stores the table of contents in the last blobs of a file.
//!
//! The table is stored in parts, as base64 text in strings after the strings of the last objects (`table_host`). Other
//! programs ignore strings that no object uses. A part has a blob of its own, with a string table alone, in two cases:
//! the file has too few objects, or its last object is very long. The last string in the file has the offset of the
//! first frame of the table. The zlib data is stored uncompressed, so the last string can be found in the last bytes of
//! the file. `reference/format.md` has the layout.

use super::blob_index::encode_blob_index;
use super::entry::{BlobEntry, BlobFlags};
use super::id_host::{TITLE_OF_IDS, is_id_host};
use super::scan::scan_payload;
use super::strings_blob::{
    START_LEN, STRING_LEN, is_table_blob, may_be_table_blob, put_stored_frame, put_strings_frame,
    read_stored_payload, sole_string_table, split_data_blob, split_into_strings,
};
use super::table_host::{Host, TableHost, encode_host_payload};
use super::toc::{MAGIC, VERSION};
use crate::deflate::stored::stored_content;
use crate::error::{FormatError, FormatResult};
use crate::pbf::frame::blob::{Blob, Encoding};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;

/// The string that marks a block as a part of a table of contents.
const TITLE: &str = "HOGG table of contents";
/// The prefix of the last string. The offset of the table follows it.
const TRAILER_TITLE: &str = "HOGG table of contents at byte ";
/// The number of decimal digits of the offset in the last string.
const POSITION_DIGITS: usize = 20;
/// The version of encoded pointers. The version of encoded tables is [`VERSION`].
const POINTER_VERSION: u8 = 3;
/// The version in the description of a part that is in a blob of its own. Readers do not treat such a blob as data, so
/// damage to a few bytes must not turn this version into [`BESIDE_OBJECTS`], or the reverse.
const ALONE: &str = "version 2";
/// The version in the description of a part that is in a blob with objects.
const BESIDE_OBJECTS: &str = "version 3 beside objects";
/// The number of bytes at the end of a file that [`find_toc`] needs.
pub const TOC_TAIL_LEN: usize = 1 << 16;
/// The maximum size in bytes of the payload of the last blob, not counting the table. The objects of this blob follow
/// the last string of the table. The string and the objects must be in the last [`TOC_TAIL_LEN`] bytes of the file.
pub const MAX_HOST_LEN: usize = 60_000;

/// The maximum number of bytes of base64 text in a blob. The format recommends blobs below 16 MiB.
const PART_LEN: usize = 12_000 * STRING_LEN;

/// A pointer to the table of contents, in the header of a file (HeaderBlock field 1001, versions 2 and 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TocPointer {
    /// The table is at a known offset of a file of known length.
    At {
        /// The offset of the first frame of the table.
        start: u64,
        /// The size in bytes of the whole file.
        file_len: u64,
    },
    /// The table is at the end of a stream. The length of the stream was unknown when the header was written.
    AtEnd,
}

impl TocPointer {
    /// The size in bytes of an encoded pointer.
    pub const LEN: usize = MAGIC.len() + 1 + 8 + 8 + 4;

    /// Returns the encoded pointer.
    pub fn encode(self) -> Vec<u8> {
        let (start, file_len) = match self {
            Self::At { start, file_len } => (start, file_len),
            Self::AtEnd => (0, 0),
        };
        let mut out = Vec::with_capacity(Self::LEN);
        out.extend_from_slice(MAGIC);
        out.push(POINTER_VERSION);
        out.extend_from_slice(&start.to_le_bytes());
        out.extend_from_slice(&file_len.to_le_bytes());
        out.extend_from_slice(&crc32c::crc32c(&out).to_le_bytes());
        out
    }

    /// Decodes a pointer. Returns `None` if the bytes are damaged or something else, for example a table of version 1.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (body, crc) = bytes.split_last_chunk::<4>()?;
        let (version, rest) = body.strip_prefix(MAGIC)?.split_first()?;
        if ![VERSION, POINTER_VERSION].contains(version) {
            return None;
        }
        let (start, rest) = rest.split_first_chunk::<8>()?;
        let file_len: [u8; 8] = rest.try_into().ok()?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
            return None;
        }
        Some(
            match (u64::from_le_bytes(*start), u64::from_le_bytes(file_len)) {
                (0, 0) => Self::AtEnd,
                (start, file_len) => Self::At { start, file_len },
            },
        )
    }
}

/// Returns the frames that store the encoded table of contents `table`. The frames must be the last ones in the file,
/// from offset `start` on. Each of `hosts` becomes a blob with its objects and one part of the table. If the table has
/// more parts than there are hosts, the first parts are in blobs of their own. With `blob_index`, the BlobHeaders of
/// the hosts have an index.
///
/// If there are several hosts, the last part has no text, so that the last blob is short. Workers of a cluster may
/// begin to read at any byte of the file, and look for the next blob from there. Because the last blob is short, they
/// nearly always find one.
pub fn encode_toc_frames(
    table: &[u8],
    start: u64,
    hosts: &[TableHost],
    blob_index: bool,
) -> Result<Vec<u8>, FormatError> {
    let text = STANDARD.encode(table);
    let without_text = usize::from(hosts.len() > 1);
    let parts = (toc_parts(table.len()) + without_text).max(hosts.len());
    let part_len = text
        .len()
        .div_ceil(parts - without_text)
        .next_multiple_of(STRING_LEN);
    let alone = parts - hosts.len();
    let trailer = format!("{TRAILER_TITLE}{start:0POSITION_DIGITS$}");
    let mut frames = Vec::with_capacity(text.len() + text.len() / 100 + 512);
    for part in 0..parts {
        let [from, to] = [part, part + 1].map(|part| text.len().min(part * part_len));
        let mut strings: Vec<&str> = split_into_strings(&text[from..to]).collect();
        if part + 1 == parts {
            strings.push(&trailer);
        }
        let numbers = |version| format!("{version}, part {} of {parts}", part + 1);
        if part < alone {
            let numbers = numbers(ALONE);
            let title = ["", TITLE, &numbers];
            put_strings_frame(&[&title[..], &strings].concat(), &mut frames)?;
        } else {
            let (host, numbers) = (&hosts[part - alone], numbers(BESIDE_OBJECTS));
            let encoded = encode_host_payload(&host.payload, TITLE, &numbers, &strings)?;
            let index = encode_blob_index(&host.entry).filter(|_| blob_index);
            let index = index.as_ref().map(<[u8; _]>::as_slice);
            let last = encoded.payload.len() - encoded.bytes_after_strings - trailer.len();
            put_stored_frame(&encoded.payload, &[last], index, &mut frames)?;
        }
    }
    Ok(frames)
}

/// Returns the number of parts in which a table of `len` bytes is stored.
pub fn toc_parts(len: usize) -> usize {
    (len.div_ceil(3) * 4).div_ceil(PART_LEN).max(1)
}

/// Returns the offset of the table of contents, read from the last [`TOC_TAIL_LEN`] bytes of a file. Returns `None` if
/// the file does not end with a table.
pub fn find_toc(tail: &[u8]) -> Option<u64> {
    let start = memmem::rfind(tail, TRAILER_TITLE.as_bytes())? + TRAILER_TITLE.len();
    let number = tail.get(start..start + POSITION_DIGITS)?;
    if !number.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// Reads the table of contents from the frames at the end of a file.
#[derive(Debug, Default)]
pub struct TocReader {
    /// The offset of the first frame.
    start: u64,
    /// The number of bytes read so far.
    len: u64,
    text: Vec<u8>,
    /// The entries of the blobs that have both objects and a part of the table.
    hosts: Vec<BlobEntry>,
    /// The number of parts read so far.
    parts: u64,
    /// The number of parts of the table, as stated in the first part.
    expected: u64,
    /// The offset of the table, as stated in the last part.
    stated_start: Option<u64>,
}

impl TocReader {
    /// Begins to read a table whose first frame is at offset `start`.
    pub fn new(start: u64) -> Self {
        Self {
            start,
            ..Self::default()
        }
    }

    /// Reads the complete frames at the beginning of `frames` and returns their total length in bytes. Fails if
    /// `frames` does not begin with a complete frame, or if a frame does not have the next part of the table.
    pub fn add(&mut self, frames: &[u8]) -> Result<usize, FormatError> {
        let mut rest = frames;
        while let Some((body, behind)) = split_data_blob(rest) {
            let part = TocPart::parse(body)?.ok_or_else(damage_error)?;
            // `read_stored_payload` fails if the checksum of the blob is wrong.
            read_stored_payload(body, |_| Ok(()))?.ok_or_else(damage_error)?;
            let frame_len = rest.len() - behind.len();
            if let Some(objects) = &part.objects {
                self.add_host(objects, frame_len, frame_len - body.len())?;
            }
            self.add_part(&part)?;
            self.len += frame_len as u64;
            rest = behind;
        }
        match frames.len() - rest.len() {
            0 => Err(damage_error()),
            used => Ok(used),
        }
    }

    /// Adds the entry of a blob with objects, whose payload without the table is `objects`.
    fn add_host(
        &mut self,
        objects: &[u8],
        frame_len: usize,
        header_len: usize,
    ) -> FormatResult<()> {
        let mut entry = BlobEntry {
            offset: self.start + self.len,
            frame_len: frame_len as u32,
            header_len: header_len as u32,
            ..BlobEntry::default()
        };
        entry.flags.set(BlobFlags::HAS_TABLE, true);
        scan_payload(objects, &mut entry)?;
        self.hosts.push(entry);
        Ok(())
    }

    fn add_part(&mut self, part: &TocPart) -> FormatResult<()> {
        self.parts += 1;
        if self.parts == 1 {
            self.expected = part.of;
        }
        let is_next = (part.number, part.of) == (self.parts, self.expected);
        if !is_next || part.start.is_some() != (self.parts == self.expected) {
            return Err(damage_error());
        }
        self.stated_start = part.start;
        self.text.extend_from_slice(&part.text);
        Ok(())
    }

    /// Returns the encoded table, for [`Toc::parse`](crate::pbf::Toc::parse), and the entries of the blobs that have
    /// both objects and a part of the table. The numbers of these blobs in the file are not set. Fails if parts are
    /// missing, or if the last part states another offset of the table.
    pub fn finish(self) -> Result<(Vec<u8>, Vec<BlobEntry>), FormatError> {
        if self.stated_start != Some(self.start) {
            return Err(damage_error());
        }
        let table = STANDARD.decode(self.text).map_err(|_| damage_error())?;
        Ok((table, self.hosts))
    }
}

/// One part of a table of contents, as read from one blob.
struct TocPart {
    /// The number of this part, counted from 1.
    number: u64,
    /// The total number of parts of the table.
    of: u64,
    text: Vec<u8>,
    /// The offset of the table. Only the last part has it.
    start: Option<u64>,
    /// The payload of the blob without the table, if the blob has objects.
    objects: Option<Vec<u8>>,
}

impl TocPart {
    /// Decodes a Blob message. Returns `None` if the blob has no part of a table of contents. Does not check the part,
    /// which may be damaged.
    fn parse(body: &[u8]) -> FormatResult<Option<Self>> {
        let blob = Blob::parse(body)?;
        if blob.encoding != Encoding::Zlib {
            return Ok(None);
        }
        // The checksum of the whole blob is not compared. A mismatch would not show whether the table or the objects
        // are damaged.
        let payload = stored_content(blob.data);
        Ok(payload.as_deref().and_then(Self::from_payload))
    }

    fn from_payload(payload: &[u8]) -> Option<Self> {
        if let Some(host) = Host::parse(payload, TITLE) {
            let (version, number, of) = parse_part_numbers(host.numbers)?;
            let mut objects = Vec::new();
            host.put_objects(&mut objects);
            // If the text is damaged, the part has no text, but the objects are kept.
            let strings = host.text().unwrap_or_default();
            let part = Self::from_strings(strings.iter(), (number, of), Some(objects));
            return (version == BESIDE_OBJECTS).then_some(part);
        }
        let strings = sole_string_table(payload).ok()??;
        let (version, number, of) = parse_part_numbers(strings.get(2).ok()?)?;
        let is_part = version == ALONE && strings.get(1).ok()? == TITLE;
        let part = Self::from_strings(strings.iter().skip(3), (number, of), None);
        is_part.then_some(part)
    }

    fn from_strings<'a>(
        strings: impl Iterator<Item = &'a str>,
        (number, of): (u64, u64),
        objects: Option<Vec<u8>>,
    ) -> Self {
        let mut part = Self {
            number,
            of,
            text: Vec::new(),
            start: None,
            objects,
        };
        for string in strings {
            match string.strip_prefix(TRAILER_TITLE) {
                Some(start) => part.start = start.parse().ok(),
                None => part.text.extend_from_slice(string.as_bytes()),
            }
        }
        part
    }
}

/// Parses a string like `version 2, part 1 of 3` into the version, the number of the part and the number of parts.
/// Returns `None` for another string.
fn parse_part_numbers(text: &str) -> Option<(&str, u64, u64)> {
    let (version, rest) = text.split_once(", part ")?;
    let (number, of) = rest.split_once(" of ")?;
    Some((version, number.parse().ok()?, of.parse().ok()?))
}

fn damage_error() -> FormatError {
    FormatError::new("it is damaged")
}

/// The part of a table that a blob has, and whether the blob also has objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableBlob {
    /// The blob has no part of a table.
    None,
    /// The blob has a part of the table of contents and no objects.
    TableOfContents,
    /// The blob has a part of another table and no objects.
    Other,
    /// The blob has objects and a part of the table of contents.
    Host,
    /// The blob has objects and a part of the table of ids.
    HostOfIds,
}

impl TableBlob {
    /// Determines which table a blob has a part of, if any, and whether the blob also has objects. `body` is the whole
    /// Blob message.
    pub fn of(body: &[u8]) -> Self {
        if !may_be_table_blob(&body[..body.len().min(START_LEN)]) {
            return Self::None;
        }
        match TocPart::parse(body) {
            Ok(Some(part)) if part.objects.is_some() => Self::Host,
            Ok(Some(_)) => Self::TableOfContents,
            _ if is_id_host(body) => Self::HostOfIds,
            _ if is_table_blob(body) => Self::Other,
            _ => Self::None,
        }
    }

    /// Whether the blob has no objects.
    pub const fn has_no_objects(self) -> bool {
        matches!(self, Self::TableOfContents | Self::Other)
    }

    /// Whether the blob has both objects and a part of a table.
    pub const fn is_host(self) -> bool {
        matches!(self, Self::Host | Self::HostOfIds)
    }
}

/// Whether a Blob message that begins with `start` is a part of a table of contents in a blob without objects. The rest
/// of the message may be damaged. `start` must have at least the first 100 bytes of the message.
pub fn is_lone_part(start: &[u8]) -> bool {
    let description = format!("{ALONE}, part ");
    let has = |text: &str| memmem::find(start, text.as_bytes()).is_some();
    has(TITLE) && has(&description)
}

/// Whether a Blob message that begins with `start` may have a part of a table of contents. `start` must have at least
/// the first 100 bytes of the message.
pub fn may_be_toc_blob(start: &[u8]) -> bool {
    memmem::find(start, TITLE.as_bytes()).is_some()
}

/// Whether `body`, a whole Blob message, has a part of a table of contents other than the last part.
pub fn is_inner_part(body: &[u8]) -> bool {
    matches!(TocPart::parse(body), Ok(Some(part)) if part.number < part.of)
}

/// Appends the payload of a blob that has [`BlobFlags::HAS_TABLE`] to `out`, without the strings of the table. The
/// table may be damaged. Fails if the objects are damaged.
pub(crate) fn put_host_objects(blob: &Blob<'_>, out: &mut Vec<u8>) -> FormatResult<()> {
    let payload = stored_content(blob.data);
    let host = payload.as_deref().and_then(|payload| {
        Host::parse(payload, TITLE).or_else(|| Host::parse(payload, TITLE_OF_IDS))
    });
    let damaged = || FormatError::new("the objects beside a table about the file are damaged");
    host.ok_or_else(damaged)?.put_objects(out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::osm::Location;
    use crate::pbf::block::object::Object;
    use crate::pbf::table::strings_blob::read_strings;

    fn decode(frames: &[u8], start: u64) -> FormatResult<(Vec<u8>, Vec<BlobEntry>)> {
        let mut reader = TocReader::new(start);
        if reader.add(frames)? == frames.len() {
            reader.finish()
        } else {
            Err(damage_error())
        }
    }

    /// Returns a host for each of the nodes 1 to `count`. The tags of the nodes look like parts of a table.
    fn hosts(count: i64) -> Vec<TableHost> {
        let host = |id| {
            let tags = [
                (TITLE, "version 3 beside objects, part 1 of 1"),
                (TRAILER_TITLE, ""),
            ];
            let mut encoder = crate::pbf::BlockEncoder::default();
            encoder
                .add(&Object::node(id, Location::new(1, 2), &tags))
                .unwrap();
            let (mut payload, mut entry) = (Vec::new(), BlobEntry::default());
            encoder.finish(&mut payload);
            scan_payload(&payload, &mut entry).unwrap();
            TableHost { payload, entry }
        };
        (1..=count).map(host).collect()
    }

    #[test]
    fn a_table_of_any_length_reads_back_and_is_found_from_the_end() {
        let lens = [
            0,
            1,
            2,
            3,
            749,
            750,
            751,
            48_000,
            49_150,
            PART_LEN,
            PART_LEN * 2,
        ];
        for (len, count) in lens
            .into_iter()
            .flat_map(|len| [0, 1, 2, 5].map(|count| (len, count)))
        {
            let table: Vec<u8> = (0..len).map(|at| (at * 7 / 3) as u8).collect();
            let hosts = hosts(count);
            let frames = encode_toc_frames(&table, 12_345, &hosts, count > 1).unwrap();
            let tail = &frames[frames.len().saturating_sub(TOC_TAIL_LEN)..];
            assert_eq!(find_toc(tail), Some(12_345), "{len}");
            let (found, entries) = decode(&frames, 12_345).unwrap();
            assert_eq!(found, table, "{len}");
            let ids = entries.iter().map(|entry| (entry.min_id, entry.count));
            assert!(ids.eq((1..=count).map(|id| (id, 1))), "{entries:?}");
            assert!(
                entries
                    .iter()
                    .all(|entry| entry.flags.has(BlobFlags::HAS_TABLE))
            );
            assert!(decode(&frames, 12_346).is_err());
        }
    }

    #[test]
    fn hosts_lose_the_table_and_nothing_else() {
        let (hosts, start) = (hosts(1), 77);
        let frames = encode_toc_frames(&[7; 5000], start, &hosts, false).unwrap();
        let (body, behind) = split_data_blob(&frames).unwrap();
        assert!(behind.is_empty() && !is_lone_part(&body[..128]));
        assert_eq!(TableBlob::of(body), TableBlob::Host);
        let part = TocPart::parse(body).unwrap().unwrap();
        let objects = |payload: &[u8]| {
            let block = crate::pbf::Block::parse(payload).unwrap();
            format!("{:?}", block.objects().unwrap())
        };
        assert_eq!(objects(&part.objects.unwrap()), objects(&hosts[0].payload));
        let mut plain = Vec::new();
        put_host_objects(&Blob::parse(body).unwrap(), &mut plain).unwrap();
        assert_eq!(objects(&plain), objects(&hosts[0].payload));
        assert!(plain.len() < hosts[0].payload.len() + 20);
    }

    #[test]
    fn a_table_without_hosts_is_in_blobs_without_objects() {
        let frames = encode_toc_frames(&vec![9; PART_LEN], 1 << 40, &[], false).unwrap();
        let (mut rest, mut parts) = (&frames[..], 0);
        while let Some((body, behind)) = split_data_blob(rest) {
            assert!(is_lone_part(&body[..128]) && is_table_blob(body));
            assert_eq!(TableBlob::of(body), TableBlob::TableOfContents);
            let are_short = read_strings(body, |strings| {
                strings.iter().all(|string| string.len() <= STRING_LEN)
            });
            assert_eq!(are_short.unwrap(), Some(true));
            (rest, parts) = (behind, parts + 1);
        }
        assert!(rest.is_empty() && parts == 2);
    }

    #[test]
    fn a_truncated_table_is_an_error() {
        for hosts in [hosts(0), hosts(1), hosts(2)] {
            let frames = encode_toc_frames(b"some table", 99, &hosts, false).unwrap();
            for index in 0..frames.len() {
                assert!(decode(&frames[..index], 99).is_err(), "cut at {index}");
            }
        }
    }

    #[test]
    fn a_pointer_reads_back_and_a_damaged_one_is_none() {
        for pointer in [
            TocPointer::AtEnd,
            TocPointer::At {
                start: 1 << 40,
                file_len: (1 << 40) + 77,
            },
        ] {
            let bytes = pointer.encode();
            assert_eq!(bytes.len(), TocPointer::LEN);
            assert_eq!(TocPointer::parse(&bytes), Some(pointer));
            for index in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[index] ^= 4;
                assert_eq!(TocPointer::parse(&damaged), None);
            }
        }
    }
}
