//! Looks up the locations of nodes for lists of node ids when the locations of all nodes do not fit into memory.
//!
//! The ids are divided into ranges, so that the locations of the nodes of one range fit into memory. A [`Splitter`]
//! splits each list by range, and [`DiskJoin::push`] appends the parts to temporary files, one file per range.
//! [`DiskJoin::resolve_next_range`] reads the file of one range, looks up its ids in a [`LocationStore`] of that range,
//! and writes their locations to another temporary file. [`DiskJoin::read`] reads the locations of a list from the
//! files of all ranges. Files are written sequentially and read almost sequentially. The disk space of a list is freed
//! after the list was read.

use super::location_store::LocationStore;
use crate::error::{CANNOT_WRITE_TEMPORARY, Error, FileResult, FormatError, FormatResult, Result};
use crate::osm::{Location, id_rank};
use crate::pbf::wire::{Varints, put_sint, put_varint, zigzag_encode};
use crate::runtime::{Context, lock, parallel_results_phase};
use crate::system;
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The number of bytes that are buffered before each write to a temporary file.
const BUFFER_LEN: usize = 256 << 10;
/// The minimum number of bytes of encoded ids in a group of lists, except in the last group. A worker looks up one
/// group at a time.
const AT_A_TIME: u64 = 256 << 10;
/// The maximum number of ids that are looked up at once. Lists in real files have fewer ids.
const IDS_AT_ONCE: usize = 1 << 20;
/// The number of bytes of encoded locations at which a worker sends them, even before the end of its group.
const SENT_LEN: usize = 4 << 20;
/// The number of bytes of a list that are read at a time. Lists in real files have fewer bytes.
const READ_LEN: u64 = 256 << 10;
/// The maximum number of bytes of an encoded location.
const LOCATION_LEN: usize = 20;
/// The minimum number of bytes of disk space that one call of [`RangeFile::release`] frees.
const MIN_PUNCH_LEN: u64 = 8 << 20;

/// Lists of node ids on disk, and the locations of these nodes.
pub(crate) struct DiskJoin {
    directory: PathBuf,
    /// The rank of the first id of each range, ascending; the first is 0.
    starts: Vec<u64>,
    /// The files with the encoded ids of the ranges that are not resolved yet, one file per range.
    ids: VecDeque<RangeFile>,
    /// The files with the encoded locations of the ranges that are resolved, one file per range.
    locations: Vec<RangeFile>,
    /// The number of bytes in temporary files. Not updated after all ranges are resolved.
    bytes: u64,
    /// The maximum of [`bytes`](Self::bytes) so far.
    pub(crate) peak_bytes: u64,
    read: Mutex<ReadLists>,
}

/// The indexes of the lists whose locations were read.
#[derive(Default)]
struct ReadLists {
    /// All lists with a smaller index were read.
    end: usize,
    /// The indexes of the lists that were read although the list with index `end` was not. All are greater than `end`.
    later: BTreeSet<usize>,
}

impl ReadLists {
    /// Records that a list was read. Returns the index of the first list that was not read yet.
    fn record_read(&mut self, list: usize) -> usize {
        self.later.insert(list);
        while self.later.remove(&self.end) {
            self.end += 1;
        }
        self.end
    }
}

/// A list of ids that was split by range. For each range, it has the delta-encoded ids of the list in that range.
#[derive(Debug)]
pub(crate) struct SplitIds(Vec<Vec<u8>>);

/// Splits lists of ids by range. The field is the rank of the first id of each range.
pub(crate) struct Splitter(Vec<u64>);

impl Splitter {
    /// Begins to split a list of ids by range.
    pub(crate) fn begin(&self) -> ListSplitter<'_> {
        ListSplitter {
            parts: self.0.iter().map(|_| (Vec::new(), 0)).collect(),
            at: RangeFinder::new(&self.0),
        }
    }
}

/// A list of ids that is being split by range.
pub(crate) struct ListSplitter<'s> {
    /// For each range, the encoded ids, and the id that was added last.
    parts: Vec<(Vec<u8>, i64)>,
    at: RangeFinder<'s>,
}

impl ListSplitter<'_> {
    /// Appends ids to the list.
    pub(crate) fn add(&mut self, ids: &[i64]) {
        for id in ids {
            let (part, last) = &mut self.parts[self.at.find(*id)];
            put_sint(part, id.wrapping_sub(*last));
            *last = *id;
        }
    }

    /// Returns the split list, for [`DiskJoin::push`].
    pub(crate) fn finish(self) -> SplitIds {
        SplitIds(self.parts.into_iter().map(|(part, _)| part).collect())
    }
}

impl DiskJoin {
    /// Creates a join without lists. `starts` is the rank of the first id of each range. The ranks must ascend, and the
    /// first must be 0. Fails if a temporary file cannot be created in `directory`.
    pub(crate) fn new(starts: Vec<u64>, directory: &Path) -> Result<Self> {
        let file = |_: &u64| RangeFile::create(directory);
        Ok(Self {
            ids: starts.iter().map(file).collect::<Result<_>>()?,
            locations: Vec::new(),
            directory: directory.to_owned(),
            starts,
            bytes: 0,
            peak_bytes: 0,
            read: Mutex::default(),
        })
    }

    /// Returns the number of bytes of memory that a join of `lists` lists in `ranges` ranges uses, without the
    /// [`LocationStore`]s.
    pub(crate) const fn memory(ranges: u64, lists: u64) -> u64 {
        ranges * (2 * BUFFER_LEN as u64 + 16 * lists)
    }

    /// Returns a splitter for the ranges of this join.
    pub(crate) fn splitter(&self) -> Splitter {
        Splitter(self.starts.clone())
    }

    /// Appends a list. The index of the list, for [`read`](Self::read), is the number of lists appended before. Fails
    /// if a temporary file cannot be written.
    pub(crate) fn push(&mut self, list: &SplitIds) -> Result<()> {
        if list.0.len() != self.ids.len() {
            let cause = "a list of a join was split into other ranges";
            return Err(Error::internal(cause));
        }
        for (file, part) in self.ids.iter_mut().zip(&list.0) {
            file.append(part, true)
                .for_path(&self.directory, CANNOT_WRITE_TEMPORARY)?;
            self.bytes += part.len() as u64;
        }
        self.peak_bytes = self.peak_bytes.max(self.bytes);
        Ok(())
    }

    /// Looks up the ids of the next range in `store`, which must contain the nodes of that range. Does nothing if all
    /// ranges are resolved.
    pub(crate) fn resolve_next_range(
        &mut self,
        store: &LocationStore,
        ctx: &Context,
    ) -> Result<()> {
        let Some(mut ids) = self.ids.pop_front() else {
            return Ok(());
        };
        ids.flush()
            .for_path(&self.directory, CANNOT_WRITE_TEMPORARY)?;
        let mut locations = RangeFile::create(&self.directory)?;
        let (bytes, peak_bytes) = (&mut self.bytes, &mut self.peak_bytes);
        let phase = ctx.phase("look up", ids.len());
        parallel_results_phase(
            ctx.limits(ctx.byte_budget()),
            ids.groups().into_iter().map(Ok),
            // Most encoded ids have one byte, and most encoded locations have more. The factor is an estimate.
            |group| ids.byte_len_of_lists(group) * 10,
            Lookup::default,
            |lookup, group, results| {
                let send = |found: EncodedLists| results.send((found, None), SENT_LEN as u64);
                let found = lookup.run(&ids, &group, store, &self.directory, &send)?;
                Ok(Some((found, Some(group))))
            },
            |_| (),
            |(found, ended): (EncodedLists, Option<Range<usize>>)| {
                if let Some(group) = ended {
                    phase.advance(ids.byte_len_of_lists(&group));
                    *bytes -= ids.release(group.end);
                }
                for (part, is_end) in found {
                    *bytes += part.len() as u64;
                    locations
                        .append(&part, is_end)
                        .for_path(&self.directory, CANNOT_WRITE_TEMPORARY)?;
                }
                *peak_bytes = (*peak_bytes).max(*bytes);
                Ok(())
            },
        )?;
        locations
            .flush()
            .for_path(&self.directory, CANNOT_WRITE_TEMPORARY)?;
        self.bytes -= ids.unfreed_len();
        self.locations.push(locations);
        Ok(())
    }

    /// Reads the locations for the list with index `list`. All ranges must be resolved. A list can be read only once;
    /// several threads may read different lists at the same time.
    pub(crate) fn read(&self, list: usize) -> FormatResult<ListReader<'_>> {
        let mut parts = Vec::with_capacity(self.locations.len());
        for file in &self.locations {
            let part = ListPart::begin(file, list);
            parts.push(part.map_err(|error| FormatError::with(self.read_error_text(&error)))?);
        }
        Ok(ListReader {
            join: self,
            list,
            parts,
            at: RangeFinder::new(&self.starts),
        })
    }

    /// Records that a list was read. Frees the disk space of all lists before the first unread list.
    fn free_space_of_read_lists(&self, list: usize) {
        let end = lock(&self.read).record_read(list);
        for file in &self.locations {
            file.release(end);
        }
    }

    fn read_error_text(&self, error: &std::io::Error) -> String {
        let directory = self.directory.display();
        format!("cannot read a temporary file in {directory}: {error}")
    }
}

/// The locations of the ids of a list, in the order of the ids.
pub(crate) struct ListReader<'j> {
    join: &'j DiskJoin,
    list: usize,
    /// The part of the list in each range.
    parts: Vec<ListPart>,
    at: RangeFinder<'j>,
}

/// The encoded locations of a list in one range, which are read from their file piece by piece.
struct ListPart {
    bytes: Vec<u8>,
    /// The position of the next location in `bytes`.
    position: usize,
    /// The latitude and the longitude of the last location that was read.
    last: [i64; 2],
    /// The range in the file of the bytes of this part that were not read into `bytes` yet.
    rest: Range<u64>,
}

impl ListPart {
    /// Reads the first bytes of a list.
    fn begin(file: &RangeFile, list: usize) -> std::io::Result<Self> {
        if list >= file.ends.len() {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let mut part = Self {
            bytes: Vec::new(),
            position: 0,
            last: [0; 2],
            rest: file.span(&(list..list + 1)),
        };
        part.read_more(file)?;
        Ok(part)
    }

    /// Whether the next location may extend beyond the end of `bytes`.
    const fn may_need_more_bytes(&self) -> bool {
        self.bytes.len() - self.position < LOCATION_LEN && self.rest.start < self.rest.end
    }

    /// Reads further bytes.
    fn read_more(&mut self, file: &RangeFile) -> std::io::Result<()> {
        self.bytes.drain(..self.position);
        self.position = 0;
        let end = self.rest.end.min(self.rest.start + READ_LEN);
        file.read_span(self.rest.start..end, &mut self.bytes)?;
        self.rest.start = end;
        Ok(())
    }
}

impl ListReader<'_> {
    /// Appends to `out` the location of each of `ids`, which are the next ids of the list; `None` for a node without a
    /// location. Fails if `ids` has more ids of a range than are left in the list that was pushed.
    pub(crate) fn read_next(
        &mut self,
        ids: &[i64],
        out: &mut Vec<Option<Location>>,
    ) -> FormatResult<()> {
        for id in ids {
            let range = self.at.find(*id);
            let part = &mut self.parts[range];
            if part.may_need_more_bytes() {
                let read = part.read_more(&self.join.locations[range]);
                read.map_err(|error| FormatError::with(self.join.read_error_text(&error)))?;
            }
            let mut rest = Varints::new(&part.bytes[part.position..]);
            out.push(read_location(&mut rest, &mut part.last).map_err(|_| list_mismatch_error())?);
            part.position += rest.position();
        }
        Ok(())
    }

    /// Ends the reading of the list. Fails if the list has further ids.
    pub(crate) fn end(self) -> FormatResult<()> {
        let is_done = |part: &ListPart| part.position == part.bytes.len() && part.rest.is_empty();
        if !self.parts.iter().all(is_done) {
            return Err(list_mismatch_error());
        }
        self.join.free_space_of_read_lists(self.list);
        Ok(())
    }
}

/// Returns the error for ids that do not match the list that was pushed.
fn list_mismatch_error() -> FormatError {
    FormatError::new("the blob changed while the command was running")
}

/// Finds the range of an id. Fast if neighbouring ids are in the same range.
struct RangeFinder<'s> {
    starts: &'s [u64],
    /// The index of the range of the previous id.
    at: usize,
    /// The ranks of the ids in the range of the previous id; empty before the first id.
    ranks: Range<u64>,
}

impl<'s> RangeFinder<'s> {
    const fn new(starts: &'s [u64]) -> Self {
        let ranks = 0..0;
        Self {
            starts,
            at: 0,
            ranks,
        }
    }

    /// Returns the index of the range of an id.
    #[inline]
    fn find(&mut self, id: i64) -> usize {
        let rank = id_rank(id);
        if !self.ranks.contains(&rank) {
            let behind = self.starts.partition_point(|start| *start <= rank);
            self.at = behind.saturating_sub(1);
            let start = self.starts[self.at];
            // The end of `ranks` is excluded, so `ranks` never contains the rank `u64::MAX`. The range of the id with
            // that rank is therefore searched for at each look-up.
            self.ranks = start..self.starts.get(behind).copied().unwrap_or(u64::MAX);
        }
        self.at
    }
}

/// Appends an encoded location: 0 for no location, and otherwise 1 plus the zigzag-encoded difference of the latitude,
/// followed by the zigzag-encoded difference of the longitude. The differences are to `last`, which is the latitude and
/// longitude of the previous location, and is updated.
#[inline]
fn put_location(out: &mut Vec<u8>, location: Option<Location>, last: &mut [i64; 2]) {
    match location {
        None => out.push(0),
        Some(location) => {
            let (lat, lon) = (i64::from(location.lat_e7()), i64::from(location.lon_e7()));
            put_varint(out, zigzag_encode(lat - last[0]) + 1);
            put_sint(out, lon - last[1]);
            *last = [lat, lon];
        }
    }
}

/// Reads a location that [`put_location`] has encoded, and updates `last`.
#[inline]
fn read_location(
    locations: &mut Varints<'_>,
    last: &mut [i64; 2],
) -> FormatResult<Option<Location>> {
    let Some(lat) = locations.read()?.checked_sub(1) else {
        return Ok(None);
    };
    last[0] = last[0].wrapping_add(crate::pbf::wire::zigzag_decode(lat));
    last[1] = last[1].wrapping_add(locations.read_sint()?);
    Ok(Location::new(last[0] as i32, last[1] as i32))
}

/// Pieces of the encoded locations of consecutive lists, and for each piece, whether it ends a list.
type EncodedLists = Vec<(Vec<u8>, bool)>;

/// The buffers that a worker reuses for one group of lists after another.
#[derive(Default)]
struct Lookup {
    bytes: Vec<u8>,
    ids: Vec<i64>,
    locations: Vec<Option<Location>>,
}

impl Lookup {
    /// Looks up the ids of `lists`, which are read from `file`. Calls `send` whenever many encoded locations have
    /// accumulated, and returns the remaining ones. `directory` is for messages.
    fn run(
        &mut self,
        file: &RangeFile,
        lists: &Range<usize>,
        store: &LocationStore,
        directory: &Path,
        send: &dyn Fn(EncodedLists) -> Result<()>,
    ) -> Result<EncodedLists> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        file.read(lists.clone(), &mut bytes)
            .for_path(directory, "cannot read a temporary file in this directory")?;
        let (mut start, mut len) = (0, 0);
        let mut found = Vec::with_capacity(lists.len());
        let mut put = |piece: Vec<u8>, is_end: bool| {
            len += piece.len();
            found.push((piece, is_end));
            if len < SENT_LEN {
                return Ok(());
            }
            len = 0;
            send(std::mem::take(&mut found))
        };
        for list in lists.clone() {
            let end = start + file.byte_len_of_lists(&(list..list + 1)) as usize;
            self.look_up(&bytes[start..end], store, &mut put)?;
            start = end;
        }
        self.bytes = bytes;
        Ok(found)
    }

    /// Looks up the encoded ids of a list. Calls `put` with each piece of their encoded locations, and with whether the
    /// piece is the last one.
    fn look_up(
        &mut self,
        ids: &[u8],
        store: &LocationStore,
        put: &mut impl FnMut(Vec<u8>, bool) -> Result<()>,
    ) -> Result<()> {
        let (mut deltas, mut last) = (Varints::new(ids), 0i64);
        let (mut out, mut last_location) = (Vec::new(), [0; 2]);
        while !deltas.is_done() {
            self.ids.clear();
            while self.ids.len() < IDS_AT_ONCE && !deltas.is_done() {
                let damaged = |_| Error::internal("a temporary file changed");
                last = last.wrapping_add(deltas.read_sint().map_err(damaged)?);
                self.ids.push(last);
            }
            self.locations.clear();
            store.get_all(&self.ids, &mut self.locations);
            out.reserve(self.ids.len() * 5);
            for location in &self.locations {
                put_location(&mut out, *location, &mut last_location);
            }
            if out.len() >= SENT_LEN && !deltas.is_done() {
                put(std::mem::take(&mut out), false)?;
            }
        }
        put(out, true)
    }
}

/// An unnamed temporary file for one range of ids. It has one part of each list: the ids or locations in that range.
struct RangeFile {
    file: File,
    /// For each list, the offset at which its part ends.
    ends: Vec<u64>,
    /// The number of bytes that were appended.
    len: u64,
    /// Appended bytes that are not written to the file yet.
    buffer: Vec<u8>,
    /// The number of bytes written to the file.
    written: u64,
    /// The number of bytes at the start of the file whose disk space was freed.
    freed_bytes: Mutex<u64>,
}

impl RangeFile {
    fn create(directory: &Path) -> Result<Self> {
        let file = tempfile::tempfile_in(directory);
        Ok(Self {
            file: file.for_path(directory, CANNOT_WRITE_TEMPORARY)?,
            ends: Vec::new(),
            len: 0,
            buffer: Vec::new(),
            written: 0,
            freed_bytes: Mutex::new(0),
        })
    }

    /// Returns the size of all parts in bytes, including bytes that are not written to the file yet.
    const fn len(&self) -> u64 {
        self.len
    }

    /// Appends bytes to the part of the current list. If `is_end` is set, the part ends with these bytes.
    fn append(&mut self, bytes: &[u8], is_end: bool) -> std::io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        self.len += bytes.len() as u64;
        if is_end {
            self.ends.push(self.len);
        }
        if self.buffer.len() < BUFFER_LEN {
            Ok(())
        } else {
            self.flush()
        }
    }

    /// Writes the buffered bytes to the file.
    fn flush(&mut self) -> std::io::Result<()> {
        system::write_at(&self.file, &self.buffer, self.written)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Returns the range of bytes of the file that contains the parts of `lists`.
    fn span(&self, lists: &Range<usize>) -> Range<u64> {
        let end_of = |list: usize| self.ends[list];
        let start = lists.start.checked_sub(1).map_or(0, end_of);
        let end = lists.end.checked_sub(1).map_or(0, end_of);
        start..end
    }

    /// Returns the size of the parts of `lists` in bytes.
    fn byte_len_of_lists(&self, lists: &Range<usize>) -> u64 {
        let span = self.span(lists);
        span.end - span.start
    }

    /// Divides the lists into groups of neighbouring lists. A worker looks up one group at a time. The parts of a group
    /// have at least [`AT_A_TIME`] bytes in total, except those of the last group.
    fn groups(&self) -> Vec<Range<usize>> {
        let (mut groups, mut start) = (Vec::new(), 0);
        for end in 1..=self.ends.len() {
            if self.byte_len_of_lists(&(start..end)) >= AT_A_TIME || end == self.ends.len() {
                groups.push(start..end);
                start = end;
            }
        }
        groups
    }

    /// Reads the parts of `lists` and appends them to `out`. The parts must have been flushed. Fails if `lists` ends
    /// after the last list.
    fn read(&self, lists: Range<usize>, out: &mut Vec<u8>) -> std::io::Result<()> {
        if lists.end > self.ends.len() {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        self.read_span(self.span(&lists), out)
    }

    /// Reads a range of bytes and appends them to `out`.
    fn read_span(&self, span: Range<u64>, out: &mut Vec<u8>) -> std::io::Result<()> {
        let start = out.len();
        out.resize(start + (span.end - span.start) as usize, 0);
        system::read_exact_at(&self.file, &mut out[start..], span.start)
    }

    /// Returns the number of bytes whose disk space is not freed yet.
    fn unfreed_len(&self) -> u64 {
        let freed_bytes = lock(&self.freed_bytes);
        self.len() - *freed_bytes
    }

    /// Frees the disk space of the first `lists` lists, unless fewer than [`MIN_PUNCH_LEN`] of their bytes are still to
    /// be freed. Returns the number of bytes freed.
    fn release(&self, lists: usize) -> u64 {
        let end = self.span(&(0..lists)).end;
        let mut freed_bytes = lock(&self.freed_bytes);
        let more = end.saturating_sub(*freed_bytes);
        if more < MIN_PUNCH_LEN {
            return 0;
        }
        system::punch_hole(&self.file, *freed_bytes, more);
        *freed_bytes = end;
        more
    }
}

#[cfg(test)]
#[path = "disk_join_tests.rs"]
mod tests;
