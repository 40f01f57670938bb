//! Finds the table of contents when a file is opened. Rejects a table that does not fit the file.

use super::frame_start::{FrameStart, read_blob_message};
use super::pbf_file::{IdTablePlace, PbfFile};
use crate::error::{Error, ErrorKind, FormatError, FormatResult, Result};
use crate::io::Input;
use crate::osm::ObjectKind;
use crate::pbf::{
    BlobEntry, BlobFlags, BlobKind, MAX_BLOB_HEADER_LEN, MAX_BLOB_LEN, MAX_PAYLOAD_LEN,
    TOC_TAIL_LEN, Toc, TocReader, feature, find_toc, is_inner_part, is_lone_part, is_table_blob,
    may_be_toc_blob,
};
use crate::runtime::{Context, human_bytes};

/// The maximum number of bytes of a table of contents that are read at a time. It exceeds the length of any frame, so
/// each read has at least one complete frame.
const MAX_READ_LEN: u64 = 48 << 20;

/// A table of contents that was read from the last blobs of a file.
struct FoundToc {
    toc: Toc,
    /// The entries of the blobs that have both objects and a part of the table. The table itself has no entries for
    /// these blobs.
    hosts: Vec<BlobEntry>,
}

impl PbfFile {
    /// Uses a table of contents of version 1, which is stored in the header itself.
    pub(super) fn use_toc_of_header(&mut self, table: &[u8]) -> Result<()> {
        match Toc::parse(table, self.data_start, self.input.len()) {
            Err(problem) => self.reject_toc(&problem),
            Ok(toc) => {
                if self.check_file_len_matches(toc.data_end)? {
                    let hosts = Vec::new();
                    self.accept_toc(FoundToc { toc, hosts }, self.input.len());
                    self.drop_copied_tocs()?;
                }
            }
        }
        Ok(())
    }

    /// Removes the entries of blobs that contain tables about another file. Programs that know only tables of version 1
    /// mistake these blobs for data blobs without objects, and copy them to other files.
    fn drop_copied_tocs(&mut self) -> Result<()> {
        let Some(mut toc) = self.toc.take() else {
            return Ok(());
        };
        let mut tables = Vec::new();
        for entry in toc.entries.iter().filter(|entry| entry.count == 0) {
            if is_table_blob(&read_blob_message(&self.input, entry)?) {
                tables.push(entry.offset);
            }
        }
        toc.entries.retain(|entry| !tables.contains(&entry.offset));
        self.toc = Some(toc);
        Ok(())
    }

    /// Uses the table of contents at offset `start`. `file_len` is the size of the file in bytes according to its
    /// header.
    pub(super) fn use_toc_at(&mut self, start: u64, file_len: u64, ctx: &Context) -> Result<()> {
        if !self.check_file_len_matches(file_len)? {
            return Ok(());
        }
        if !(self.data_start..file_len).contains(&start) {
            self.reject_toc(&FormatError::new("the header gives an impossible offset"));
            return Ok(());
        }
        match self.read_toc(start, ctx)? {
            Ok(found) => self.accept_toc(found, start),
            Err(problem) => {
                self.reject_toc(&problem);
                if !self.recognize_damaged_toc(start)? {
                    self.check_frame_at(start)?;
                }
            }
        }
        Ok(())
    }

    /// Whether the file has `file_len` bytes, and its last bytes contain `start` as the offset of the table of
    /// contents.
    pub(super) fn ends_with_toc_from(&self, start: u64, file_len: u64) -> Result<bool> {
        if self.input.len() != file_len || self.data_start >= file_len {
            return Ok(false);
        }
        Ok(find_toc(&read_toc_tail(&self.input)?) == Some(start))
    }

    /// Reads the table of contents from offset `start` to the end of the file. The outer result is an error if the file
    /// cannot be read. The inner result is an error if the table is damaged.
    fn read_toc(&self, start: u64, ctx: &Context) -> Result<FormatResult<FoundToc>> {
        let mut reader = TocReader::new(start);
        let (mut frames, mut at) = (Vec::new(), start);
        while at < self.input.len() {
            // A table of contents is stored uncompressed, so reading it needs no more memory than its size in the file.
            let len = (self.input.len() - at).min(MAX_READ_LEN);
            frames.resize(len as usize, 0);
            self.input.read_all_at(&mut frames, at)?;
            ctx.stats.bytes_read.add(len);
            match reader.add(&frames) {
                Ok(used) => at += used as u64,
                Err(problem) => return Ok(Err(problem)),
            }
        }
        Ok(self.parse_toc(reader))
    }

    /// Parses a table of contents that was read to its end.
    fn parse_toc(&self, reader: TocReader) -> FormatResult<FoundToc> {
        let (table, hosts) = reader.finish()?;
        let toc = Toc::parse(&table, self.data_start, self.input.len())?;
        Ok(FoundToc { toc, hosts })
    }

    /// Uses the table of contents at the end of a file that was written as a stream.
    pub(super) fn use_toc_of_stream(&mut self, ctx: &Context) -> Result<()> {
        let file_len = self.input.len();
        let tail = read_toc_tail(&self.input)?;
        let tail_len = tail.len() as u64;
        ctx.stats.bytes_read.add(tail_len);
        let start = find_toc(&tail).filter(|start| (self.data_start..file_len).contains(start));
        let Some(start) = start else {
            return self.handle_missing_toc();
        };
        let found = match tail_len.checked_sub(file_len - start) {
            Some(skipped) => {
                let frames = &tail[skipped as usize..];
                let mut reader = TocReader::new(start);
                match reader.add(frames) {
                    Ok(used) if used == frames.len() => self.parse_toc(reader),
                    Ok(_) => Err(FormatError::new("it is damaged")),
                    Err(problem) => Err(problem),
                }
            }
            None => self.read_toc(start, ctx)?,
        };
        match found {
            Ok(found) => self.accept_toc(found, start),
            Err(problem) if self.recognize_damaged_toc(start)? => self.reject_toc(&problem),
            // No table begins at `start`. This offset comes from the trailer at the end of the file, so the trailer
            // belongs to another file.
            Err(_) => return self.handle_missing_toc(),
        }
        Ok(())
    }

    /// Whether all frames from offset `start` to the end of the file look like parts of a table of contents. A frame
    /// looks like a part if its first bytes contain the title of the table. The table may be damaged. If all these
    /// frames are marked as parts without objects, sets the end of the data to `start`.
    fn recognize_damaged_toc(&mut self, start: u64) -> Result<bool> {
        let (mut at, mut are_alone) = (start, true);
        while at < self.input.len() {
            let frame_start = FrameStart::read(&self.input, at)?;
            match frame_start.parse() {
                Ok(frame)
                    if frame.header.kind == BlobKind::Data && may_be_toc_blob(frame.blob_start) =>
                {
                    at = frame.entry.end();
                    are_alone &= is_lone_part(frame.blob_start);
                }
                _ => return Ok(false),
            }
        }
        if are_alone {
            self.data_end = start;
        }
        Ok(true)
    }

    /// Checks the frame at offset `start`, where the table of contents should begin. This frame has objects besides a
    /// part of the table. Fails if the type of the frame is not OSMData. The walk over the frames would skip such a
    /// frame and its objects.
    fn check_frame_at(&self, start: u64) -> Result<()> {
        let frame_start = FrameStart::read(&self.input, start)?;
        // Ignores a header that cannot be parsed. The walk over the frames reports this error.
        let frame = frame_start.parse();
        if frame.is_ok_and(|frame| frame.header.kind != BlobKind::Data) {
            let cause =
                format!("the frame at byte {start} has the last objects, but not the type OSMData");
            return Err(Error::file_of(self.input.path(), ErrorKind::Damaged, cause));
        }
        Ok(())
    }

    /// Handles a file that was written as a stream and does not end with its table of contents. If there are tables
    /// before the end of the file, a program has appended data to the file, and the tables are not used. If the last
    /// frame is a damaged table, the frame is excluded from the data. Otherwise the file was truncated, which is an
    /// error.
    fn handle_missing_toc(&mut self) -> Result<()> {
        let (mut frames, mut last) = (self.frames(), None);
        for head in &mut frames {
            last = Some(head?.entry);
        }
        if frames.tables > 0 {
            self.toc_problem =
                Some("the table of contents is stale: data was appended to the file".into());
            return Ok(());
        }
        let is_cut_off = match last {
            Some(entry) if entry.flags.has(BlobFlags::HAS_TABLE) => self.has_inner_part(&entry)?,
            _ => false,
        };
        match last.map(|entry| entry.offset).filter(|_| !is_cut_off) {
            // Without a valid trailer, the offset of the table is unknown. So the last frame is treated as the table if
            // it looks like one.
            Some(start) if self.recognize_damaged_toc(start)? => {
                self.reject_toc(&FormatError::new("it is damaged"));
                Ok(())
            }
            _ => Err(Error::file_of(
                self.input.path(),
                ErrorKind::Truncated,
                "the file is truncated: the table of contents that its header announces is not there",
            )),
        }
    }

    /// Whether the blob of `entry` has a part of a table of contents, but not the last part.
    fn has_inner_part(&self, entry: &BlobEntry) -> Result<bool> {
        Ok(is_inner_part(&read_blob_message(&self.input, entry)?))
    }

    /// Whether the file has `expected` bytes, which is its size according to its table of contents or its header. If
    /// the file is longer, sets [`toc_problem`](PbfFile::toc_problem). Fails if the file is shorter, because its end is
    /// missing.
    fn check_file_len_matches(&mut self, expected: u64) -> Result<bool> {
        let found = self.input.len();
        if expected > found {
            return Err(Error::file_of(
                self.input.path(),
                ErrorKind::Truncated,
                format!(
                    "the file is truncated: it has {found} bytes, its table of contents says {expected}"
                ),
            ));
        }
        if expected < found {
            self.toc_problem = Some(format!(
                "the table of contents is stale: the file became longer by {}",
                human_bytes(found - expected)
            ));
        }
        Ok(expected == found)
    }

    /// Notes the reason why the table of contents is not used.
    fn reject_toc(&mut self, problem: &FormatError) {
        self.toc_problem = Some(format!("the table of contents cannot be read: {problem}"));
    }

    /// Whether the file can have the spatial layout that its table of contents declares. A history file cannot have a
    /// spatial layout. All ways of a file with a spatial layout must have locations.
    fn may_have_spatial_layout(&self, toc: &Toc) -> bool {
        self.header_allows_spatial_layout() && toc.entries.iter().all(has_located_ways)
    }

    /// Whether the header allows a spatial layout, because it declares locations in ways and no history.
    pub(super) fn header_allows_spatial_layout(&self) -> bool {
        let declares = |feature| self.header.has(feature);
        declares(feature::LOCATIONS) && !declares(feature::HISTORY)
    }

    /// Uses the table in `found` if it fits the file. Otherwise sets [`toc_problem`](PbfFile::toc_problem). `start` is
    /// the offset of the table. All entries of the table must be [possible](is_possible). The data that the table
    /// describes must end at `start`. If a table of ids has blobs of its own between the data and `start`, the data
    /// must end before `start`.
    fn accept_toc(&mut self, found: FoundToc, start: u64) {
        let FoundToc { mut toc, mut hosts } = found;
        let end = toc.entries.last().map_or(self.data_start, BlobEntry::end);
        let id_table = id_table_place(&toc, end, start);
        let fits = match &id_table {
            Some(place) if place.directory.is_none() => end < start,
            _ => end == start,
        };
        let first_number = toc
            .entries
            .last()
            .map_or(1, |entry| entry.number.saturating_add(1));
        for (number, host) in (first_number..).zip(&mut hosts) {
            host.number = number;
        }
        let data_end = hosts.last().map_or(end, BlobEntry::end);
        let stated_end = toc.data_end;
        toc.entries.append(&mut hosts);
        if !fits || stated_end != end || !toc.entries.iter().all(is_possible) {
            self.toc_problem = Some("the table of contents does not fit the file".into());
        } else if toc.flags.spatial && !self.may_have_spatial_layout(&toc) {
            self.toc_problem = Some(
                "the table of contents declares a spatial layout, which only current data with locations in all ways can \
                 have"
                    .into(),
            );
            self.data_end = data_end;
        } else {
            self.id_table = id_table;
            self.data_end = data_end;
            self.toc = Some(toc);
        }
    }
}

/// Reads the last bytes of a file. If the file ends with a table of contents, [`find_toc`] finds its offset in them.
pub(crate) fn read_toc_tail(input: &Input) -> Result<Vec<u8>> {
    let offset = input.len().saturating_sub(TOC_TAIL_LEN as u64);
    let mut tail = vec![0; (input.len() - offset) as usize];
    input.read_all_at(&mut tail, offset)?;
    Ok(tail)
}

/// Returns the position of the table of ids, if `toc` announces one. The last blob that `toc` describes ends at `end`,
/// and the table of contents begins at `start`.
fn id_table_place(toc: &Toc, end: u64, start: u64) -> Option<IdTablePlace> {
    if !toc.flags.id_table {
        return None;
    }
    let mut hosts = (toc.entries.iter()).filter(|entry| entry.flags.has(BlobFlags::HAS_TABLE));
    let Some(first) = hosts.next() else {
        return Some(IdTablePlace {
            range: end..start,
            directory: None,
        });
    };
    let last = hosts.next_back().unwrap_or(first);
    Some(IdTablePlace {
        range: first.offset..last.end(),
        directory: Some(last.offset..last.end()),
    })
}

/// Whether all ways of a blob may have locations, according to its entry. Ways without nodes need no locations.
fn has_located_ways(entry: &BlobEntry) -> bool {
    let counts = entry.statistics.as_ref();
    !entry.kinds.contains(ObjectKind::Way)
        || entry.flags.has(BlobFlags::LOCATIONS)
        || counts.is_some_and(|counts| counts.references == 0)
}

/// Whether a blob can have the properties in `entry`. The entries of a damaged table must not mislead plans or cause
/// huge allocations.
fn is_possible(entry: &BlobEntry) -> bool {
    (1..entry.frame_len).contains(&entry.header_len)
        && entry.frame_len < MAX_BLOB_LEN + MAX_BLOB_HEADER_LEN
        && entry.payload_len <= MAX_PAYLOAD_LEN
        && entry.count <= MAX_PAYLOAD_LEN
        && entry.first_sort_key() <= entry.last_sort_key()
        // An entry without facts about the contents of its blob is refused, because commands would skip the blob.
        && entry.is_indexed()
}

#[cfg(test)]
mod tests {
    use crate::file::{PbfFile, PbfWriter, WriteOptions};
    use crate::io::{OutputTarget, SizeHint};
    use crate::osm::Location;
    use crate::pbf::{Compression, FrameEncoder, HeaderBlock, Object, ObjectBody, feature};
    use crate::runtime::Context;

    /// Returns a way with the given node references, with or without locations.
    fn way(id: i64, refs: &[i64], is_located: bool) -> Object<'_> {
        let mut way = Object::way(id, refs, Vec::new());
        if is_located && let ObjectBody::Way { locations, .. } = &mut way.body {
            *locations = vec![Location::new(1, 2); refs.len()].into();
        }
        way
    }

    /// Writes a file with one blob for each of `ways`. The table of contents of the file declares a spatial layout.
    /// Returns the problem that is found in the table when the file is opened.
    fn toc_problem_of(ways: &[Object<'_>]) -> Option<String> {
        let directory = tempfile::tempdir().unwrap();
        let (path, ctx) = (directory.path().join("a.osm.pbf"), Context::default());
        let mut header = HeaderBlock::default();
        header.set_optional(feature::LOCATIONS, true);
        let options = WriteOptions {
            has_spatial_layout: true,
            ..WriteOptions::default()
        };
        let target = OutputTarget::file(&path);
        let mut writer =
            PbfWriter::create(target, header, options, SizeHint::default(), &ctx).unwrap();
        for way in ways {
            let mut encoder = FrameEncoder::new(Compression::default(), false);
            encoder.add(way).unwrap();
            let frames = encoder.finish().unwrap();
            frames
                .into_iter()
                .for_each(|frame| writer.frame(frame).unwrap());
        }
        writer.finish().unwrap();
        PbfFile::open(&path, &ctx).unwrap().toc_problem
    }

    #[test]
    fn a_spatial_layout_needs_locations_in_each_blob_of_ways() {
        let (located, empty) = (way(1, &[1, 2], true), way(2, &[], false));
        let bare = way(3, &[1, 2], false);
        assert_eq!(toc_problem_of(&[located.clone(), empty.clone()]), None);
        assert_eq!(toc_problem_of(&[]), None);
        for ways in [[located, bare.clone()], [empty, bare]] {
            let problem = toc_problem_of(&ways).unwrap();
            assert!(problem.contains("locations in all ways"), "{problem}");
        }
    }
}
