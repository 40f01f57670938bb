//! How bytes reach the disk. Backends differ in nothing else: each is handed the same bytes and the
//! same ranges of input files in the same order.
//!
//! - [`Buffered`]: ordinary writes through the page cache, in the thread that hands them over.
//! - [`Chunked`] cuts the output into chunks of known offset, which an executor writes in any order: a
//!   [`Pool`] of threads, past the page cache where it was asked to (`O_DIRECT`), or a [`Ring`]
//!   (io_uring).

mod aligned;
mod buffered;
mod chunked;
mod destination;
mod open;
mod pool;
mod ring;

pub(crate) use aligned::{ALIGNMENT, AlignedBuffer};
pub(super) use buffered::Buffered;
pub(super) use chunked::Chunked;
pub(super) use destination::Destination;
pub(crate) use open::{check_space, open_backend};
pub(super) use pool::Pool;
pub(super) use ring::Ring;

use crate::error::Result;
use crate::io::Input;

/// Puts bytes, in order, where they belong.
pub(crate) trait Backend: Send {
    /// Appends bytes.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;
    /// Appends a range of an input file, if possible without reading it into the process.
    fn copy(&mut self, input: &Input, offset: u64, len: u64) -> Result<()>;
    /// Hands everything to the operating system, then overwrites the start of the output, which is
    /// `len` bytes long, with `start`. A stream has no start to overwrite.
    fn finish(&mut self, start: &[u8], len: u64) -> Result<()>;
}
