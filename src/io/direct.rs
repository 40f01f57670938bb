//! Reads that bypass the page cache (`O_DIRECT`), at any offset and into any memory.

use crate::io::backends::{ALIGNMENT, AlignedBuffer};
use crate::runtime::Context;
use crate::system;
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::Path;

thread_local! {
    /// An aligned buffer for the blocks that contain the requested range, one for each thread.
    static BLOCKS: RefCell<AlignedBuffer> = RefCell::default();
}

/// Opens a file for direct reads and tries one read. If opening or reading fails, warns and returns `None`.
pub(super) fn direct_reader(path: &Path, ctx: &Context) -> Option<File> {
    let works = system::open_direct(path).and_then(|file| {
        read_at(&file, &mut [0; 16], 0)?;
        Ok(file)
    });
    works
        .map_err(|error| {
            ctx.warn(format!(
                "{}: the file system refuses direct reads ({error}): reading through the page cache",
                path.display()
            ));
        })
        .ok()
}

/// Reads the aligned blocks that contain a range, and copies the range to `buffer`. Returns the number of bytes read,
/// which is smaller than `buffer.len()` only at the end of the file.
pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let before = (offset % ALIGNMENT as u64) as usize;
    let len = (before + buffer.len()).next_multiple_of(ALIGNMENT);
    BLOCKS.with_borrow_mut(|blocks| {
        let blocks = blocks.slice(len);
        let found = system::read_at(file, blocks, offset - before as u64)?;
        let count = found.saturating_sub(before).min(buffer.len());
        buffer[..count].copy_from_slice(&blocks[before..before + count]);
        Ok(count)
    })
}
