//! The backend that writes through the page cache in the calling thread.

use super::Backend;
use super::destination::{Destination, WRITEBACK_LEN};
use crate::error::Result;
use crate::io::input::Input;
use crate::system::Transfer;

/// The backend that writes in the calling thread. It is the only backend that can write streams.
pub(crate) struct Buffered {
    destination: Destination,
    buffer: Vec<u8>,
    /// The number of bytes passed to the operating system, which is the offset of the next write.
    position: u64,
    /// The offset up to which writeback was started.
    writeback_started: u64,
}

impl Buffered {
    /// Creates a backend with a buffer of `buffer_len` bytes. Longer writes bypass the buffer.
    pub(crate) fn new(destination: Destination, buffer_len: usize) -> Self {
        Self {
            destination,
            buffer: Vec::with_capacity(buffer_len),
            position: 0,
            writeback_started: 0,
        }
    }

    /// Writes bytes to the destination. Starts writeback when at least [`WRITEBACK_LEN`] bytes have been written since
    /// the last start of writeback.
    fn write_through(&mut self, bytes: &[u8]) -> Result<()> {
        self.destination.write_at(bytes, self.position)?;
        self.position += bytes.len() as u64;
        if self.position - self.writeback_started >= WRITEBACK_LEN {
            self.start_writeback();
        }
        Ok(())
    }

    /// Starts writeback of all bytes written since the last call.
    fn start_writeback(&mut self) {
        self.destination.start_writeback(
            self.writeback_started,
            self.position - self.writeback_started,
        );
        self.writeback_started = self.position;
    }

    fn flush(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        let written = self.write_through(&buffer);
        self.buffer = buffer;
        self.buffer.clear();
        written
    }
}

impl Backend for Buffered {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.destination
            .stats()
            .bytes_written
            .add(bytes.len() as u64);
        if self.buffer.len() + bytes.len() > self.buffer.capacity() {
            self.flush()?;
        }
        if bytes.len() >= self.buffer.capacity() {
            return self.write_through(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn copy(&mut self, input: &Input, offset: u64, len: u64) -> Result<()> {
        self.flush()?;
        self.start_writeback();
        self.destination.stats().bytes_copied.add(len);
        let transfer = Transfer {
            from: offset,
            to: self.position,
            len,
        };
        self.destination.copy(input, transfer)?;
        self.position += len;
        self.writeback_started = self.position;
        Ok(())
    }

    fn shared_block_len(&self, input: &Input) -> Option<u64> {
        self.destination.shared_block_len(input)
    }

    fn finish(&mut self, start: &[u8], len: u64) -> Result<()> {
        self.flush()?;
        self.destination.set_start_and_len(start, len)
    }
}
