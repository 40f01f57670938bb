//! The tables about a file: the table of contents, and the table of ids of a spatial layout.

use super::PbfWriter;
use crate::error::{FormatError, Result};
use crate::file::blob_plan::BlobPlan;
use crate::file::id_table_parts::IdTableParts;
use crate::file::last_blobs::WholeBlob;
use crate::pbf::{
    BlobEntry, IdHostFrame, IdSectionBytes, MAX_HOST_LEN, TableHost, Toc, TocFlags, TocPointer,
    TocReader, TocSummary, encode_toc, encode_toc_frames, feature, id_fingerprint,
};

impl PbfWriter {
    /// Begins a table of ids after all blobs were appended. Returns whether the file gets one: in a spatial layout, in
    /// which the blobs are not in the order of ids, unless it has few blobs or no table of contents.
    pub(crate) fn begin_id_table(&mut self) -> bool {
        if !self.options.has_spatial_layout || !self.options.toc {
            return false;
        }
        let blobs = self.last.take_whole(self.last.len(), &self.ctx);
        match IdTableParts::new(blobs, self.hosts()) {
            Ok(parts) if self.last.is_empty() => self.id_parts = Some(parts),
            Ok(parts) => self.hold_back(parts.into_rest().0),
            Err(blobs) => self.hold_back(blobs),
        }
        self.id_parts.is_some()
    }

    fn hold_back(&mut self, blobs: impl IntoIterator<Item = WholeBlob>) {
        blobs.into_iter().for_each(|blob| self.last.push(blob.blob));
    }

    /// The [fingerprint](id_fingerprint) of all blobs that were appended.
    pub(crate) fn id_fingerprint(&self) -> u64 {
        let parts = self.id_parts.iter().flat_map(IdTableParts::entries);
        id_fingerprint(self.entries.iter().chain(parts).chain(self.last.entries()))
    }

    /// Appends a section of the table of ids. [`begin_id_table`](Self::begin_id_table) must have returned `true`.
    pub(crate) fn put_id_section(&mut self, section: IdSectionBytes) -> Result<()> {
        let is_full = self.id_parts.as_mut().map(|parts| parts.add(section));
        if is_full == Some(true) {
            self.write_id_sections()?;
        }
        Ok(())
    }

    fn write_id_sections(&mut self) -> Result<()> {
        let (position, index) = (self.position, self.options.blob_index);
        let parts = self.id_parts.as_mut();
        let frame = parts.map(|parts| parts.sections_frame(position, index));
        match frame.transpose().map_err(|error| self.failed(&error))? {
            Some(Some(frame)) => self.write_id_host(&frame),
            _ => Ok(()),
        }
    }

    fn write_id_host(&mut self, frame: &IdHostFrame) -> Result<()> {
        self.flush_copies()?;
        self.backend.write(&frame.bytes)?;
        self.ctx.stats.blobs_rewritten.add(1);
        let entry = frame.entry;
        self.take_entry(entry, entry.header_len, entry.frame_len);
        Ok(())
    }

    /// Completes the table of ids for a file with the given fingerprint.
    pub(crate) fn finish_id_table(&mut self, fingerprint: u64) -> Result<()> {
        self.write_id_sections()?;
        while let Some(blob) = self.id_parts.as_mut().and_then(IdTableParts::next_ordinary) {
            self.write(&blob)?;
        }
        let index = self.options.blob_index;
        let parts = self.id_parts.as_mut();
        let frame = parts.map(|parts| parts.directory_frame(fingerprint, index));
        if let Some(frame) = frame.transpose().map_err(|error| self.failed(&error))? {
            self.write_id_host(&frame)?;
            self.has_id_table = true;
        }
        Ok(())
    }

    /// Returns the last blobs of a spatial layout, which get the table of contents. Holds back the blobs before them.
    pub(super) fn take_whole_hosts(&mut self) -> Result<Vec<TableHost>> {
        let blobs = match self.id_parts.take() {
            None => self.last.take_whole(self.hosts(), &self.ctx),
            Some(parts) => {
                let (mut blobs, hosts) = parts.into_rest();
                let hosts = blobs.split_off(blobs.len().saturating_sub(hosts));
                self.hold_back(blobs);
                hosts.into()
            }
        };
        let last = blobs.last().map_or(0, |blob| blob.host.payload.len());
        if last > MAX_HOST_LEN {
            self.hold_back(blobs);
            return Ok(Vec::new());
        }
        Ok(blobs.into_iter().map(|blob| blob.host).collect())
    }

    /// Appends the table of contents. Returns the pointer to it, and its summary.
    pub(super) fn write_toc(
        &mut self,
        hosts: &[TableHost],
    ) -> Result<(Option<TocPointer>, Option<TocSummary>)> {
        let start = self.position;
        // The table does not describe the blobs of the hosts, which contain it.
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
        let frames = frames.map_err(|error| self.failed(&error))?;
        let mut plan = BlobPlan {
            entries: toc.entries,
        };
        let of_hosts = entries_of_hosts(&frames, start).map_err(|error| self.failed(&error))?;
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

/// Returns the entries of the blobs with objects in the frames of a table of contents, as a reader of the file gets
/// them.
fn entries_of_hosts(frames: &[u8], start: u64) -> Result<Vec<BlobEntry>, FormatError> {
    let mut reader = TocReader::new(start);
    reader.add(frames)?;
    reader.finish().map(|(_, entries)| entries)
}
