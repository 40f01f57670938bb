//! The tables about a file: the table of contents, and the table of ids of a spatial layout. A blob with objects in
//! which a part of a table is embedded is called a host.

use super::PbfWriter;
use crate::error::{FormatResult, Result};
use crate::file::blob_plan::BlobPlan;
use crate::file::id_table_parts::IdTableParts;
use crate::pbf::{
    BlobEntry, IdParts, IdSectionBytes, MAX_HOST_LEN, TableHost, Toc, TocFlags, TocPointer,
    TocReader, TocSummary, encode_id_host, encode_toc, encode_toc_frames, feature, id_fingerprint,
};
use std::ops::Range;

impl PbfWriter {
    /// Begins a table of ids. All blobs must have been appended. Returns whether the file gets a table of ids. A file
    /// needs this table only in a spatial layout, in which the blobs are not in the order of ids. It gets none if it
    /// has few blobs or no table of contents.
    pub(crate) fn begin_id_table(&mut self) -> bool {
        // The table of contents needs `toc_host_count()` blobs. The table of ids needs at least two more blobs: one for
        // its sections, and one for its directory.
        let has_blobs = self.last.len() >= self.toc_host_count() + 2;
        let is_wanted = self.options.has_spatial_layout && self.options.toc && has_blobs;
        self.id_parts = is_wanted.then(|| IdTableParts::new(self.toc_host_count()));
        is_wanted
    }

    /// Returns the [fingerprint](id_fingerprint) of all blobs that were appended.
    pub(crate) fn id_fingerprint(&self) -> u64 {
        id_fingerprint(self.entries.iter().chain(self.last.entries()))
    }

    /// Appends a section of the table of ids. [`begin_id_table`](Self::begin_id_table) must have returned `true`.
    pub(crate) fn put_id_section(&mut self, section: IdSectionBytes) -> Result<()> {
        let is_full = self.id_parts.as_mut().map(|parts| parts.add(section));
        if is_full == Some(true) {
            self.write_id_sections()?;
        }
        Ok(())
    }

    /// Writes the unwritten sections of the table of ids, together with a blob that was held back.
    fn write_id_sections(&mut self) -> Result<()> {
        let Some(mut parts) = self.id_parts.take() else {
            return Ok(());
        };
        let sections = parts.unwritten();
        if sections.is_empty() {
            self.id_parts = Some(parts);
            return Ok(());
        }
        // The number of blobs that must be left: those for the table of contents, and one for the directory of the
        // table of ids.
        let reserved = parts.for_toc + 1;
        match self.write_blob_with_id_parts(IdParts::Sections, &sections, reserved)? {
            Some((position, ranges)) => {
                parts.written(position, &ranges);
                self.id_parts = Some(parts);
            }
            None => self.warn_of_left_out_id_table(),
        }
        Ok(())
    }

    /// Writes the next held-back blob that can have `parts` of the table of ids, together with these parts. Returns the
    /// offset of the blob, and the range of each part in the file. Blobs before it that are damaged or too large are
    /// written without parts. Returns `None` if only `reserved` blobs are left.
    fn write_blob_with_id_parts(
        &mut self,
        kind: IdParts,
        parts: &[Vec<u8>],
        reserved: usize,
    ) -> Result<Option<(u64, Vec<Range<u64>>)>> {
        while self.last.len() > reserved
            && let Some(blob) = self.last.pop_front()
        {
            let host = blob.as_host(&self.ctx)?;
            let frame = host
                .and_then(|host| encode_id_host(&host, kind, parts, self.options.blob_index).ok());
            let Some(frame) = frame else {
                self.write_blob(blob)?;
                continue;
            };
            self.flush()?;
            let position = self.position;
            let ranges = frame.parts.iter();
            let ranges = ranges.map(|range| position + range.start..position + range.end);
            let ranges = ranges.collect();
            self.backend.write(&frame.bytes)?;
            self.ctx.stats.blobs_rewritten.add(1);
            let entry = frame.entry;
            self.place_entry(entry, entry.header_len, entry.frame_len);
            return Ok(Some((position, ranges)));
        }
        Ok(None)
    }

    fn warn_of_left_out_id_table(&self) {
        self.ctx.warn(format!(
            "{}: the table of ids is left out, because the last blobs are damaged or too large to have it",
            self.output.path().display()
        ));
    }

    /// Completes the table of ids for a file with the given fingerprint.
    pub(crate) fn finish_id_table(&mut self, fingerprint: u64) -> Result<()> {
        self.write_id_sections()?;
        let Some(parts) = self.id_parts.take() else {
            return Ok(());
        };
        let for_toc = parts.for_toc;
        let directory = parts.directory(fingerprint);
        let written = self.write_blob_with_id_parts(IdParts::Directory, &[directory], for_toc)?;
        self.has_id_table = written.is_some();
        if !self.has_id_table {
            self.warn_of_left_out_id_table();
        }
        Ok(())
    }

    /// Removes the last blobs of an output with a spatial layout. Returns them as hosts for the table of contents. If
    /// the payload of the last blob is longer than `MAX_HOST_LEN`, removes no blobs and returns no hosts.
    pub(super) fn take_last_blobs_as_hosts(&mut self) -> Result<Vec<TableHost>> {
        let hosts = self
            .last
            .hosts_of_last_blobs(self.toc_host_count(), &self.ctx)?;
        let last = hosts.last().map_or(0, |host| host.payload.len());
        if last > MAX_HOST_LEN {
            return Ok(Vec::new());
        }
        hosts.iter().for_each(|_| drop(self.last.pop_back()));
        Ok(hosts)
    }

    /// Appends the table of contents. Returns the pointer to it, and its summary.
    pub(super) fn write_toc(
        &mut self,
        hosts: &[TableHost],
    ) -> Result<(Option<TocPointer>, Option<TocSummary>)> {
        let start = self.position;
        // Removes the entries of the hosts from the end of the list. The table has no entries for hosts, because it is
        // stored in the hosts themselves.
        self.entries.truncate(self.entries.len() - hosts.len());
        let flags = TocFlags {
            sorted: self.written.sorted,
            history: self.header.has(feature::HISTORY),
            locations: self.header.has(feature::LOCATIONS),
            spatial: self.options.has_spatial_layout,
            id_table: self.has_id_table,
        };
        let end = self.entries.last().map(BlobEntry::end);
        let toc = Toc {
            data_end: end.unwrap_or(self.header_len as u64),
            flags,
            entries: std::mem::take(&mut self.entries),
        };
        let table = encode_toc(&toc, self.header_len as u64);
        let frames = encode_toc_frames(&table, start, hosts, self.options.blob_index);
        let frames = frames.map_err(|error| self.output_error(&error))?;
        let mut plan = BlobPlan {
            entries: toc.entries,
        };
        let of_hosts =
            parse_host_entries(&frames, start).map_err(|error| self.output_error(&error))?;
        plan.entries.extend(of_hosts);
        let summary = plan.summary(flags);
        self.backend.write(&frames)?;
        self.position += frames.len() as u64;
        let pointer = TocPointer::At {
            start,
            file_len: self.position,
        };
        Ok((Some(pointer), summary))
    }
}

/// Returns the entries of the hosts in `frames`, the frames of a table of contents. `start` is the offset of the frames
/// in the file. The frames are parsed as a reader of the file parses them. Thus the summary is made from the entries
/// that the reader gets.
fn parse_host_entries(frames: &[u8], start: u64) -> FormatResult<Vec<BlobEntry>> {
    let mut reader = TocReader::new(start);
    reader.add(frames)?;
    reader.finish().map(|(_, entries)| entries)
}
