//! Backends, which write the bytes of an output to disk. Given the same bytes and the same ranges of input files, every
//! backend writes the same file.
//!
//! - [`Buffered`] writes through the page cache in the calling thread.
//! - [`Chunked`] cuts the output into chunks at known offsets, which an executor writes in any order: a [`Pool`] of
//!   threads, which bypasses the page cache if the user asks for direct I/O (`O_DIRECT`), or a [`RingExecutor`]
//!   (io_uring).

mod aligned;
mod buffered;
mod chunked;
mod destination;
mod flusher;
mod open;
mod pool;
#[cfg(target_os = "linux")]
mod ring;

pub(crate) use aligned::{ALIGNMENT, AlignedBuffer};
pub(super) use buffered::Buffered;
pub(super) use chunked::Chunked;
pub(super) use destination::Destination;
pub(crate) use open::{check_space, open_backend};
pub(super) use pool::{FilePool, Pool};
#[cfg(target_os = "linux")]
pub(super) use ring::RingExecutor;

use crate::error::Result;
use crate::io::Input;

/// Writes an output from its start to its end.
pub(crate) trait Backend: Send {
    /// Appends bytes.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;
    /// Appends bytes, which the backend may keep instead of copying them.
    fn write_owned(&mut self, bytes: Vec<u8>) -> Result<()> {
        self.write(&bytes)
    }
    /// Appends `len` bytes of an input file from `offset` on, if possible without reading them into the process.
    fn copy(&mut self, input: &Input, offset: u64, len: u64) -> Result<()>;
    /// Returns the length in bytes of the blocks that the output can share with `input`. A copied range shares its
    /// blocks if its offsets in the two files differ by a multiple of this length. Returns `None` if the output shares
    /// no blocks with the input.
    fn shared_block_len(&self, input: &Input) -> Option<u64>;
    /// Writes all buffered bytes, overwrites the start of the output with `start` and sets the size of the output to
    /// `len` bytes. For a stream, only writes the buffered bytes.
    fn finish(&mut self, start: &[u8], len: u64) -> Result<()>;
}
