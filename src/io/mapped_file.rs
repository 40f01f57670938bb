//! Files that are mapped into memory.
#![allow(unsafe_code)]

use crate::error::{FileResult, Result};
use memmap2::Mmap;
use std::fs::File;
use std::path::Path;

/// A file that is mapped into memory and only read. Processes that map the same file share its pages.
#[derive(Debug)]
pub(crate) struct MappedFile {
    bytes: Mmap,
}

impl MappedFile {
    /// Maps a file. No program may change or truncate the file in place while it is mapped. A file satisfies this
    /// condition if it gets its name only when it is complete, and is never changed afterwards.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).for_path(path, "cannot open")?;
        // SAFETY: the file is only read, and its writer never changes it after it has its name. If another program
        // truncates it nevertheless, the process ends with a bus error, as every reader of mapped files does.
        let bytes = unsafe { Mmap::map(&file) };
        let bytes = bytes.for_path(path, "cannot map")?;
        // Queries read few pages, in random order. It does no harm if the system refuses this hint.
        #[cfg(unix)]
        let _ = bytes.advise(memmap2::Advice::Random);
        Ok(Self { bytes })
    }

    /// Returns the bytes of the file.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
