//! How bytes reach the disk. Backends differ in nothing else.

mod buffered;

pub(super) use buffered::Buffered;

use crate::error::Result;
use crate::read::Input;

/// Puts bytes, in order, where they belong. `patch` comes after everything else.
pub(super) trait Backend: Send {
    /// Appends bytes.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;
    /// Appends a range of an input file, if possible without reading it into the process.
    fn copy(&mut self, input: &Input, offset: u64, len: u64) -> Result<()>;
    /// Hands everything to the operating system.
    fn flush(&mut self) -> Result<()>;
    /// Overwrites bytes at the start of the output.
    fn patch_start(&mut self, bytes: &[u8]) -> Result<()>;
}
