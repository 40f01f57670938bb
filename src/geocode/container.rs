//! The file of an index, which has sections of bytes and a checksum for each block of 16 KiB.
//!
//! A file consists of [`MAGIC`], the sections, the checksums of all blocks, and a footer. The footer has the ranges of
//! the sections and of the checksums, a checksum of the checksums, and a checksum of itself. A block is verified when
//! it is read for the first time. A large index thus opens at once, and no damaged byte is used.

use crate::error::{Advice, Error, Result};
use crate::io::{MappedFile, StreamOutput};
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use twox_hash::XxHash3_64;

/// The first and the last bytes of a file.
const MAGIC: [u8; 8] = *b"pbfhGEO\x01";
/// The size of a block in bytes.
const BLOCK_LEN: usize = 1 << 14;
/// The number of pending bytes at which complete blocks are written.
const WRITE_LEN: usize = 64 * BLOCK_LEN;
/// The size in bytes of the fixed part of the footer. This part has the number of sections, the start and the length of
/// the checksums, the checksum of the checksums, the checksum of the footer, and [`MAGIC`].
const FOOTER_LEN: usize = 8 * 6;
/// The size in bytes of a footer entry, which is the range of a section.
const RANGE_LEN: usize = 16;

/// A writer of a container.
pub(crate) struct ContainerWriter {
    output: StreamOutput,
    sections: Vec<Range<u64>>,
    /// The bytes that are not written yet. They begin at the start of a block.
    pending: Vec<u8>,
    checksums: Vec<u8>,
}

impl ContainerWriter {
    /// Begins a container in `output`.
    pub(crate) fn create(output: StreamOutput) -> Result<Self> {
        let mut writer = Self {
            output,
            sections: Vec::new(),
            pending: Vec::new(),
            checksums: Vec::new(),
        };
        writer.append(&MAGIC)?;
        Ok(writer)
    }

    /// Begins the next section. Sections are numbered from 0.
    pub(crate) fn begin_section(&mut self) -> Result<()> {
        // Pads the file, so that the section begins at a multiple of 8 bytes.
        let missing = self.len().next_multiple_of(8) - self.len();
        self.append(&[0; 8][..missing as usize])?;
        let at = self.len();
        self.sections.push(at..at);
        Ok(())
    }

    /// Returns the size of the current section in bytes; 0 before the first section.
    pub(crate) fn section_len(&self) -> u64 {
        self.sections
            .last()
            .map_or(0, |section| section.end - section.start)
    }

    /// Appends bytes to the current section.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.append(bytes)?;
        let end = self.len();
        let section = self.sections.last_mut();
        let none = || Error::internal("bytes before the first section of an index");
        section.ok_or_else(none)?.end = end;
        Ok(())
    }

    /// Returns the number of bytes that were appended to the container.
    fn len(&self) -> u64 {
        self.output.len() + self.pending.len() as u64
    }

    /// Appends bytes. If enough bytes are pending, writes the complete blocks.
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.pending.extend_from_slice(bytes);
        match self.pending.len() {
            len if len >= WRITE_LEN => self.write_pending(len - len % BLOCK_LEN),
            _ => Ok(()),
        }
    }

    /// Writes the first `len` pending bytes, and adds the checksums of their blocks. The last block may be incomplete.
    fn write_pending(&mut self, len: usize) -> Result<()> {
        let blocks = self.pending[..len].chunks(BLOCK_LEN);
        let checksums = blocks.flat_map(|block| XxHash3_64::oneshot(block).to_le_bytes());
        self.checksums.extend(checksums);
        self.output.write(&self.pending[..len])?;
        self.pending.drain(..len);
        Ok(())
    }

    /// Writes the checksums and the footer.
    pub(crate) fn finish(mut self) -> Result<StreamOutput> {
        let end = self.len();
        self.write_pending(self.pending.len())?;
        self.output.write(&self.checksums)?;
        let mut footer = Vec::new();
        for section in &self.sections {
            footer.extend_from_slice(&section.start.to_le_bytes());
            footer.extend_from_slice(&section.end.to_le_bytes());
        }
        let numbers = [
            self.sections.len() as u64,
            end,
            self.checksums.len() as u64,
            XxHash3_64::oneshot(&self.checksums),
        ];
        for number in numbers {
            footer.extend_from_slice(&number.to_le_bytes());
        }
        let checksum = XxHash3_64::oneshot(&footer);
        footer.extend_from_slice(&checksum.to_le_bytes());
        footer.extend_from_slice(&MAGIC);
        self.output.write(&footer)?;
        Ok(self.output)
    }
}

/// Whether an open file is a container of any version.
pub(crate) fn is_container(file: &File) -> bool {
    let mut start = [0; MAGIC.len()];
    let is_read = crate::system::read_exact_at(file, &mut start, 0).is_ok();
    is_read && start.starts_with(b"pbfhGEO")
}

/// A memory-mapped container.
#[derive(Debug)]
pub(crate) struct Container {
    file: MappedFile,
    path: PathBuf,
    sections: Vec<Range<u64>>,
    /// The range of the checksums.
    checksums: Range<usize>,
    /// A bit for each block, which is set if the block has been verified.
    verified: Vec<AtomicU64>,
}

/// Returns the number at offset `at`.
fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// Returns the ranges of the sections and of the checksums; `None` if the footer or the checksums are damaged.
fn section_ranges(bytes: &[u8]) -> Option<(Vec<Range<u64>>, Range<usize>)> {
    let fixed = bytes.len().checked_sub(FOOTER_LEN)?;
    let is_magic = bytes.starts_with(&MAGIC) && bytes.ends_with(&MAGIC);
    let count = usize::try_from(u64_at(bytes, fixed)?).ok()?;
    let footer = fixed.checked_sub(count.checked_mul(RANGE_LEN)?)?;
    let is_whole =
        u64_at(bytes, fixed + 32)? == XxHash3_64::oneshot(bytes.get(footer..fixed + 32)?);
    if !is_magic || !is_whole {
        return None;
    }
    let start = usize::try_from(u64_at(bytes, fixed + 8)?).ok()?;
    let len = usize::try_from(u64_at(bytes, fixed + 16)?).ok()?;
    let checksums = start..start.checked_add(len)?;
    let has_all = len == start.div_ceil(BLOCK_LEN) * 8 && checksums.end == footer;
    if !has_all || u64_at(bytes, fixed + 24)? != XxHash3_64::oneshot(bytes.get(checksums.clone())?)
    {
        return None;
    }
    let sections = (0..count).map(|section| {
        let at = footer + section * RANGE_LEN;
        let section = u64_at(bytes, at)?..u64_at(bytes, at + 8)?;
        (section.start <= section.end && section.end <= start as u64).then_some(section)
    });
    Some((sections.collect::<Option<_>>()?, checksums))
}

impl Container {
    /// Opens a file with the given number of sections. Verifies the footer and the checksums, but no section.
    pub(crate) fn open(path: &Path, sections: usize) -> Result<Self> {
        let file = MappedFile::open(path)?;
        let damaged = || {
            let cause = "this is no index of this version, or it is damaged or cut short";
            Error::file(path, cause).advise(Advice::RebuildGeocodeIndex)
        };
        let (found, checksums) = section_ranges(file.bytes()).ok_or_else(damaged)?;
        if found.len() != sections {
            return Err(damaged());
        }
        let blocks = checksums.start.div_ceil(BLOCK_LEN);
        let mut verified = Vec::new();
        verified.resize_with(blocks.div_ceil(64), AtomicU64::default);
        Ok(Self {
            file,
            path: path.to_owned(),
            sections: found,
            checksums,
            verified,
        })
    }

    /// Returns the size of a section in bytes.
    pub(crate) fn section_len(&self, section: usize) -> u64 {
        let place = &self.sections[section];
        place.end - place.start
    }

    /// Returns the `len` bytes of a section from offset `start` on. Fails if the section has fewer bytes, or if a block
    /// is damaged.
    #[inline]
    pub(crate) fn bytes(&self, section: usize, start: u64, len: u64) -> Result<&[u8]> {
        let place = self.sections.get(section).and_then(|place| {
            let start = place.start.checked_add(start)?;
            let end = start.checked_add(len)?;
            (end <= place.end).then_some(start as usize..end as usize)
        });
        let place = place.ok_or_else(|| self.damage_error("a place that is not in it"))?;
        if place.is_empty() {
            return Ok(&[]);
        }
        for block in place.start / BLOCK_LEN..=(place.end - 1) / BLOCK_LEN {
            self.verify_once(block)?;
        }
        let bytes = self.file.bytes().get(place);
        bytes.ok_or_else(|| self.damage_error("a place that is not in it"))
    }

    /// Returns the `LEN` bytes of a section from offset `start` on. Fails like [`bytes`](Self::bytes).
    #[inline]
    pub(crate) fn array<const LEN: usize>(&self, section: usize, start: u64) -> Result<[u8; LEN]> {
        let bytes = self.bytes(section, start, LEN as u64)?;
        let array = bytes.first_chunk().copied();
        array.ok_or_else(|| self.damage_error("a place that is not in it"))
    }

    /// Verifies the checksum of a block, unless the block was verified before.
    #[inline]
    fn verify_once(&self, block: usize) -> Result<()> {
        let bit = 1 << (block % 64);
        match self.verified.get(block / 64) {
            Some(word) if word.load(Ordering::Relaxed) & bit != 0 => Ok(()),
            Some(word) => {
                self.verify(block)?;
                word.fetch_or(bit, Ordering::Relaxed);
                Ok(())
            }
            None => Err(self.damage_error("a place that is not in it")),
        }
    }

    /// Verifies the checksum of a block.
    #[cold]
    fn verify(&self, block: usize) -> Result<()> {
        let start = block * BLOCK_LEN;
        let end = self.checksums.start.min(start + BLOCK_LEN);
        let found = self.file.bytes().get(start..end).map(XxHash3_64::oneshot);
        let expected = u64_at(self.file.bytes(), self.checksums.start + block * 8);
        if found.is_some() && found == expected {
            Ok(())
        } else {
            Err(self.damage_error(&format!("bytes {start} to {end}")))
        }
    }

    /// Returns the error for a damaged index. The message names `place`.
    pub(crate) fn damage_error(&self, place: &str) -> Error {
        let cause = format!("the index is damaged ({place})");
        Error::file(&self.path, cause).advise(Advice::RebuildGeocodeIndex)
    }
}

/// Creates a container with the sections that `write` writes, and opens it.
#[cfg(test)]
pub(super) fn write_and_open_container(
    path: &Path,
    sections: usize,
    write: impl FnOnce(&mut ContainerWriter),
) -> Container {
    let target = crate::io::OutputTarget::named_file(path, true);
    let output = crate::io::OpenOutput::open(target, &crate::runtime::Context::default())
        .expect("a new file");
    let mut writer = ContainerWriter::create(StreamOutput::new(output)).expect("a new container");
    write(&mut writer);
    let output = writer.finish().expect("a finished container");
    output.commit().expect("a complete file");
    Container::open(path, sections).expect("a good container")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_container(path: &Path, sections: &[Vec<u8>]) -> Container {
        write_and_open_container(path, sections.len(), |writer| {
            for section in sections {
                writer.begin_section().unwrap();
                for part in section.chunks(1000) {
                    writer.write(part).unwrap();
                }
                assert_eq!(writer.section_len(), section.len() as u64);
            }
        })
    }

    fn read_all_sections(container: &Container, sections: usize) -> Result<Vec<Vec<u8>>> {
        (0..sections)
            .map(|section| {
                let len = container.section_len(section);
                Ok(container.bytes(section, 0, len)?.to_vec())
            })
            .collect()
    }

    #[test]
    fn sections_round_trip_and_damage_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("index");
        let sections: Vec<Vec<u8>> = [0, 1, 16 << 10, 50_000, 7]
            .map(|len| (0..len).map(|at| (at * 31 % 251) as u8).collect())
            .to_vec();
        let container = write_container(&path, &sections);
        assert_eq!(read_all_sections(&container, 5).unwrap(), sections);
        assert_eq!(
            container.bytes(3, 40_000, 3).unwrap(),
            &sections[3][40_000..40_003]
        );
        for (section, start, len) in [
            (3, 50_000, 1),
            (3, u64::MAX, 1),
            (3, 1, u64::MAX),
            (5, 0, 0),
        ] {
            assert!(container.bytes(section, start, len).is_err());
        }
        assert!(Container::open(&path, 4).is_err());
        let good = std::fs::read(&path).unwrap();
        let bad = directory.path().join("bad");
        for at in (0..good.len())
            .step_by(97)
            .chain(good.len() - 200..good.len())
        {
            let mut bytes = good.clone();
            bytes[at] ^= 0x10;
            std::fs::write(&bad, &bytes).unwrap();
            let read =
                Container::open(&bad, 5).and_then(|container| read_all_sections(&container, 5));
            // Damage to the padding between sections does no harm.
            assert!(
                read.is_err() || read.is_ok_and(|read| read == sections),
                "{at}"
            );
            std::fs::write(&bad, &good[..at]).unwrap();
            assert!(Container::open(&bad, 5).is_err(), "{at}");
        }
    }
}
