//! The table of ids of an open file. It lists the blobs that may contain each object.

use super::pbf_file::PbfFile;
use crate::error::{FormatError, Result};
use crate::osm::{ObjectKind, id_from_rank};
use crate::pbf::{
    BlobEntry, ID_TABLE_TAIL_LEN, IdDirectory, IdRange, IdSection, MAX_TABLE_FRAME_LEN,
    id_fingerprint,
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
        Ok(opened.and_then(|opened| self.usable(opened, ctx)))
    }

    /// Opens the table of ids. Returns `None` if the file has no such table. The inner result is an error if the table
    /// is damaged. The outer result is an error if the file cannot be read.
    pub(crate) fn open_id_table(
        &self,
        ctx: &Context,
    ) -> Result<Option<Result<IdTable<'_>, FormatError>>> {
        let Some((toc, range)) = self.toc.as_ref().zip(self.id_table.clone()) else {
            return Ok(None);
        };
        self.read_directory(range, &toc.entries, ctx).map(Some)
    }

    fn read_directory<'f>(
        &'f self,
        range: Range<u64>,
        entries: &'f [BlobEntry],
        ctx: &Context,
    ) -> Result<Result<IdTable<'f>, FormatError>> {
        let no_end = || FormatError::new("its end is not there");
        let tail_len = (ID_TABLE_TAIL_LEN as u64).min(range.end - range.start);
        let tail = self.read_table(range.end - tail_len..range.end, ctx)?;
        let len = IdDirectory::frame_len(&tail);
        let len = len.filter(|len| *len <= MAX_TABLE_FRAME_LEN.min(range.end - range.start));
        let Some(len) = len else {
            return Ok(Err(no_end()));
        };
        let frame = self.read_table(range.end - len..range.end, ctx)?;
        let directory = match IdDirectory::read(&frame) {
            Ok(directory) => directory,
            Err(problem) => return Ok(Err(problem)),
        };
        if directory.fingerprint != id_fingerprint(entries) {
            return Ok(Err(FormatError::new("it is the table of another file")));
        }
        if directory.sections_len() != range.end - range.start - len {
            return Ok(Err(FormatError::new("its length is wrong")));
        }
        Ok(Ok(IdTable {
            file: self,
            entries,
            range,
            directory,
        }))
    }

    fn read_table(&self, range: Range<u64>, ctx: &Context) -> Result<Vec<u8>> {
        let len = range.end - range.start;
        let mut bytes = vec![0; len as usize];
        self.input.read_all_at(&mut bytes, range.start)?;
        ctx.stats.bytes_read.add(len);
        Ok(bytes)
    }

    /// Returns the value of `read`. If `read` is an error, the table of ids is damaged. In this case returns `None`,
    /// and warns once per file.
    fn usable<T>(&self, read: Result<T, FormatError>, ctx: &Context) -> Option<T> {
        let warn = |problem: &FormatError| {
            if self.id_table_is_damaged.set(()).is_ok() {
                let path = self.input.path().display();
                ctx.warn_with_advice(
                    format!(
                        "{path}: the table of ids cannot be read: {problem}; it is not used, \
                         and more blobs are searched"
                    ),
                    "(`pbfhogg sort`, then `pbfhogg repack --layout hilbert`, make a new one)",
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

    /// Returns the range of bytes of the file that contains the table, if all sections can be read. Warns and returns
    /// `None` if a section is damaged.
    pub(crate) fn sound_range(&self, ctx: &Context) -> Result<Option<Range<u64>>> {
        let read = self.read_all(ctx, |_, _| Ok(()))?;
        Ok(self.file.usable(read.map(|()| self.range.clone()), ctx))
    }

    /// Returns the offsets, in ascending order, of the blobs that may contain an object for which `is_met` is true.
    /// `is_met` is called with a kind and with the first and the last id of a range in canonical order. Reads only the
    /// sections of the table that have a range for which `is_met` may be true. Warns and returns `None` if a section is
    /// damaged.
    pub(crate) fn blobs(
        &self,
        is_met: impl Fn(ObjectKind, i64, i64) -> bool,
        ctx: &Context,
    ) -> Result<Option<Vec<u64>>> {
        let meets = |kind, first, last| is_met(kind, id_from_rank(first), id_from_rank(last));
        let mut is_named = vec![false; self.entries.len()];
        let of_section = |section: &&IdSection| meets(section.kind, section.first, section.last);
        let sections: Vec<&IdSection> = self.directory.sections.iter().filter(of_section).collect();
        let read = self.read(&sections, ctx, |section, range| {
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
        Ok(self.file.usable(read.map(|()| offsets), ctx))
    }

    /// Calls `take` with each range of each section. The inner result is an error if the table is damaged or `take`
    /// fails. The outer result is an error if the file cannot be read.
    pub(crate) fn read_all(
        &self,
        ctx: &Context,
        take: impl FnMut(&IdSection, IdRange<'_>) -> Result<(), FormatError>,
    ) -> Result<Result<(), FormatError>> {
        let sections: Vec<&IdSection> = self.directory.sections.iter().collect();
        self.read(&sections, ctx, take)
    }

    fn read(
        &self,
        sections: &[&IdSection],
        ctx: &Context,
        mut take: impl FnMut(&IdSection, IdRange<'_>) -> Result<(), FormatError>,
    ) -> Result<Result<(), FormatError>> {
        let adjoin = |a: &&IdSection, b: &&IdSection| a.frame.end == b.frame.start;
        for group in sections.chunk_by(adjoin) {
            let mut rest = group;
            while let Some(first) = rest.first() {
                let fits =
                    |section: &&&IdSection| section.frame.end - first.frame.start <= READ_LEN;
                let count = rest.iter().take_while(fits).count().max(1);
                let (now, later) = rest.split_at(count);
                rest = later;
                let end = now[count - 1].frame.end;
                let bytes = self.range.start + first.frame.start..self.range.start + end;
                let frames = self.file.read_table(bytes, ctx)?;
                let start = first.frame.start;
                for section in now {
                    let frame = section.frame.start - start..section.frame.end - start;
                    let frame = &frames[frame.start as usize..frame.end as usize];
                    if let Err(problem) = section.read(frame, |range| take(section, range)) {
                        return Ok(Err(problem));
                    }
                }
            }
        }
        Ok(Ok(()))
    }
}
