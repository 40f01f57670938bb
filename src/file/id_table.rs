//! The table of ids of an open file. For each object, it lists the blobs that may contain the object.

use super::pbf_file::{IdTablePlace, PbfFile};
use crate::error::{Advice, Error, FormatError, FormatResult, Result};
use crate::osm::{ObjectKind, id_from_rank};
use crate::pbf::{
    BlobEntry, ID_TABLE_TAIL_LEN, IdDirectory, IdRange, IdSection, IdSectionBytes,
    MAX_TABLE_FRAME_LEN, id_fingerprint,
};
use crate::runtime::Context;
use std::ops::Range;

/// The maximum number of bytes of adjacent sections that are read at once. A longer section is read alone.
const READ_LEN: u64 = 4 << 20;

/// The table of ids of a file.
#[derive(Debug)]
pub(crate) struct IdTable<'f> {
    file: &'f PbfFile,
    /// The entries of the table of contents.
    entries: &'f [BlobEntry],
    /// The range of bytes of the file that contains the table.
    range: Range<u64>,
    directory: IdDirectory,
}

impl PbfFile {
    /// Opens the table of ids. Returns `None` if the file has no such table. Warns and returns `None` if the table
    /// cannot be used.
    pub(crate) fn usable_id_table(&self, ctx: &Context) -> Result<Option<IdTable<'_>>> {
        if self.id_table_is_damaged.get().is_some() {
            return Ok(None);
        }
        let opened = self.open_id_table(ctx)?;
        Ok(opened.and_then(|opened| self.ok_or_warn(opened, ctx)))
    }

    /// Opens the table of ids. Returns `None` if the file has no such table. The inner result is an error if the table
    /// is damaged. The outer result is an error if the file cannot be read.
    pub(crate) fn open_id_table(&self, ctx: &Context) -> Result<Option<FormatResult<IdTable<'_>>>> {
        let Some((toc, place)) = self.toc.as_ref().zip(self.id_table.as_ref()) else {
            return Ok(None);
        };
        self.read_directory(place, &toc.entries, ctx).map(Some)
    }

    /// Reads the directory of the table. The inner result is an error if the table is damaged.
    fn read_directory<'f>(
        &'f self,
        place: &IdTablePlace,
        entries: &'f [BlobEntry],
        ctx: &Context,
    ) -> Result<FormatResult<IdTable<'f>>> {
        let range = place.range.clone();
        let frame = match &place.directory {
            Some(frame) => Some(frame.clone()),
            None => self.find_directory_frame(&range, ctx)?,
        };
        let Some(frame) = frame else {
            return Ok(Err(FormatError::new("its end is not there")));
        };
        let bytes = self.read_bytes(frame.clone(), ctx)?;
        let directory = match IdDirectory::read(&bytes, place.directory.is_none()) {
            Ok(directory) => directory,
            Err(problem) => return Ok(Err(problem)),
        };
        if directory.fingerprint != id_fingerprint(entries.iter()) {
            return Ok(Err(FormatError::new("it is the table of another file")));
        }
        let (end, limit) = (directory.sections_end(), frame.start - range.start);
        if end > limit || (place.directory.is_none() && end < limit) {
            return Ok(Err(FormatError::new("its length is wrong")));
        }
        Ok(Ok(IdTable {
            file: self,
            entries,
            range,
            directory,
        }))
    }

    /// Returns the range of bytes of the frame that contains the directory, for a table of version 1. The frame ends
    /// with a string that contains the size of the frame. Returns `None` if `table` does not end with this string.
    fn find_directory_frame(
        &self,
        table: &Range<u64>,
        ctx: &Context,
    ) -> Result<Option<Range<u64>>> {
        let len = table.end - table.start;
        let tail_len = (ID_TABLE_TAIL_LEN as u64).min(len);
        let tail = self.read_bytes(table.end - tail_len..table.end, ctx)?;
        let frame_len = IdDirectory::frame_len(&tail);
        let frame_len = frame_len.filter(|frame_len| *frame_len <= MAX_TABLE_FRAME_LEN.min(len));
        Ok(frame_len.map(|frame_len| table.end - frame_len..table.end))
    }

    /// Reads a range of bytes of the file.
    fn read_bytes(&self, range: Range<u64>, ctx: &Context) -> Result<Vec<u8>> {
        let len = range.end - range.start;
        let mut bytes = vec![0; len as usize];
        self.input.read_all_at(&mut bytes, range.start)?;
        ctx.stats.bytes_read.add(len);
        Ok(bytes)
    }

    /// Returns the value of `read`. If `read` is an error, the table of ids is damaged. In this case returns `None`,
    /// and warns once per file.
    fn ok_or_warn<T>(&self, read: FormatResult<T>, ctx: &Context) -> Option<T> {
        let warn = |problem: &FormatError| {
            if self.id_table_is_damaged.set(()).is_ok() {
                let path = self.input.path().display();
                ctx.warn_with_advice(
                    format!(
                        "{path}: the table of ids cannot be read: {problem}; it is not used, \
                         and more blobs are searched"
                    ),
                    Advice::RepackByPlace,
                );
            }
        };
        read.inspect_err(warn).ok()
    }
}

impl<'f> IdTable<'f> {
    /// Returns the entries of the table of contents. The table of ids refers to a blob by the index of its entry.
    pub(crate) const fn entries(&self) -> &'f [BlobEntry] {
        self.entries
    }

    /// Returns the fingerprint of the blobs that the table was made for.
    pub(crate) const fn fingerprint(&self) -> u64 {
        self.directory.fingerprint
    }

    /// Whether all sections can be read. Warns if a section is damaged.
    pub(crate) fn is_sound(&self, ctx: &Context) -> Result<bool> {
        let read = self.for_each_range(ctx, |_, _| Ok(()))?;
        Ok(self.file.ok_or_warn(read, ctx).is_some())
    }

    /// Calls `take` with the content of each section, in order. Fails if a section is damaged or `take` fails.
    pub(crate) fn for_each_section(
        &self,
        ctx: &Context,
        mut take: impl FnMut(IdSectionBytes) -> Result<()>,
    ) -> Result<()> {
        for section in &self.directory.sections {
            let place =
                self.range.start + section.place.start..self.range.start + section.place.end;
            let bytes = self.file.read_bytes(place, ctx)?;
            let content = self.directory.read_section(section, &bytes);
            take(content.map_err(|error| Error::file(self.file.input.path(), error.to_string()))?)?;
        }
        Ok(())
    }

    /// Returns the offsets, in ascending order, of the blobs that contain ids of the ranges for which `is_met` returns
    /// `true`. The arguments of `is_met` are a kind, and the first and the last id of a range in canonical order. A
    /// section is read only if `is_met` returns `true` for the range of all its ids. Warns and returns `None` if a
    /// section is damaged.
    pub(crate) fn blob_offsets_of_id_ranges(
        &self,
        is_met: impl Fn(ObjectKind, i64, i64) -> bool,
        ctx: &Context,
    ) -> Result<Option<Vec<u64>>> {
        let meets = |kind, first, last| is_met(kind, id_from_rank(first), id_from_rank(last));
        let mut is_named = vec![false; self.entries.len()];
        let of_section = |section: &&IdSection| meets(section.kind, section.first, section.last);
        let sections: Vec<&IdSection> = self.directory.sections.iter().filter(of_section).collect();
        let read = self.read_sections(&sections, ctx, |section, range| {
            if !meets(section.kind, range.first, range.last) {
                return Ok(());
            }
            for blob in range.blobs {
                let named = is_named.get_mut(*blob as usize);
                *named.ok_or(FormatError::new("it names a blob that does not exist"))? = true;
            }
            Ok(())
        })?;
        let named = self.entries.iter().zip(is_named);
        let offsets = named.filter_map(|(entry, is_named)| is_named.then_some(entry.offset));
        let mut offsets: Vec<u64> = offsets.collect();
        offsets.sort_unstable();
        Ok(self.file.ok_or_warn(read.map(|()| offsets), ctx))
    }

    /// Calls `take` with each range of each section. The inner result is an error if the table is damaged or `take`
    /// fails. The outer result is an error if the file cannot be read.
    pub(crate) fn for_each_range(
        &self,
        ctx: &Context,
        take: impl FnMut(&IdSection, IdRange<'_>) -> FormatResult<()>,
    ) -> Result<FormatResult<()>> {
        let sections: Vec<&IdSection> = self.directory.sections.iter().collect();
        self.read_sections(&sections, ctx, take)
    }

    /// Reads sections, and calls `take` with each range of ids in them. The inner result is an error if the table is
    /// damaged or `take` fails.
    fn read_sections(
        &self,
        sections: &[&IdSection],
        ctx: &Context,
        mut take: impl FnMut(&IdSection, IdRange<'_>) -> FormatResult<()>,
    ) -> Result<FormatResult<()>> {
        let adjoin = |a: &&IdSection, b: &&IdSection| a.place.end == b.place.start;
        for group in sections.chunk_by(adjoin) {
            let mut rest = group;
            while let Some(first) = rest.first() {
                let fits =
                    |section: &&&IdSection| section.place.end - first.place.start <= READ_LEN;
                let count = rest.iter().take_while(fits).count().max(1);
                let (now, later) = rest.split_at(count);
                rest = later;
                let end = now[count - 1].place.end;
                let bytes = self.range.start + first.place.start..self.range.start + end;
                let frames = self.file.read_bytes(bytes, ctx)?;
                let start = first.place.start;
                for section in now {
                    let frame = section.place.start - start..section.place.end - start;
                    let frame = &frames[frame.start as usize..frame.end as usize];
                    let content = self.directory.read_section(section, frame);
                    let read =
                        content.and_then(|content| content.decode(|range| take(section, range)));
                    if let Err(problem) = read {
                        return Ok(Err(problem));
                    }
                }
            }
        }
        Ok(Ok(()))
    }
}
