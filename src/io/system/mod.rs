//! The system calls that transfer bytes. Interrupted calls are repeated, and tests can make any of them fail.

mod clone_range;
#[cfg(test)]
pub(crate) mod faults;
mod machine;
#[cfg(test)]
mod tests;

pub(crate) use machine::*;

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;

/// The kind of a system call. Tests choose by kind which calls fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Call {
    Read,
    Write,
    Copy,
    Clone,
    Reserve,
    Sync,
    Rename,
}

/// Called for each system call that tests can make fail. Returns the number of bytes that the call may transfer:
/// `len`, or less if a test has planned a short transfer. Fails if a test has planned an error.
#[inline]
pub(crate) fn admit(call: Call, len: usize) -> io::Result<usize> {
    #[cfg(test)]
    return faults::admit(call, len);
    #[cfg(not(test))]
    {
        let _ = call;
        Ok(len)
    }
}

/// Repeats a call as long as a signal interrupts it.
fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Reads at `offset` until `buffer` is full or the file ends. Returns the number of bytes read.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let count = retry(|| {
            let len = admit(Call::Read, rest.len())?;
            file.read_at(
                rest.get_mut(..len).unwrap_or_default(),
                offset + done as u64,
            )
        })?;
        if count == 0 {
            break;
        }
        done += count;
    }
    Ok(done)
}

/// Writes all of `bytes` at `offset`.
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    write_by(bytes, |rest, done| file.write_at(rest, offset + done))
}

/// Writes all of `bytes` to a stream.
pub(crate) fn write(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;
    write_by(bytes, |rest, _| file.write(rest))
}

/// Repeats `call` until all bytes are written. `call` gets the remaining bytes and the number of bytes already written,
/// and returns the number of bytes that it has written.
fn write_by(bytes: &[u8], mut call: impl FnMut(&[u8], u64) -> io::Result<usize>) -> io::Result<()> {
    let mut done = 0;
    while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
        let count = retry(|| {
            let len = admit(Call::Write, rest.len())?;
            call(rest.get(..len).unwrap_or_default(), done as u64)
        })?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        done += count;
    }
    Ok(())
}

/// A range of a source file, and its offset in a target file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    /// Offset in the source file.
    pub from: u64,
    /// Offset in the target file.
    pub to: u64,
    /// Length in bytes.
    pub len: u64,
}

impl Transfer {
    /// The remainder after the first `len` bytes. `len` must not exceed the length of the transfer.
    pub(crate) const fn skip(self, len: u64) -> Self {
        Self {
            from: self.from + len,
            to: self.to + len,
            len: self.len - len,
        }
    }

    /// The first `len` bytes, and the remainder.
    pub(crate) const fn split(self, len: u64) -> (Self, Self) {
        (Self { len, ..self }, self.skip(len))
    }
}

/// Copies within the kernel (`copy_file_range`). Returns the number of bytes copied, which may be less than
/// requested; 0 at the end of the source.
pub(crate) fn copy_range(source: &File, target: &File, transfer: Transfer) -> io::Result<u64> {
    retry(|| {
        let len = admit(Call::Copy, usize::try_from(transfer.len).unwrap_or(1 << 30))?;
        let (mut from, mut to) = (transfer.from, transfer.to);
        let copied =
            rustix::fs::copy_file_range(source, Some(&mut from), target, Some(&mut to), len);
        Ok(copied? as u64)
    })
}

/// Lets two files share blocks (`FICLONERANGE`). Both offsets and the length must be multiples of the file system's
/// block size; only a range that ends where the source ends may have any length.
pub(crate) fn clone_range(source: &File, target: &File, transfer: Transfer) -> io::Result<()> {
    retry(|| {
        admit(Call::Clone, 0)?;
        clone_range::clone_range(source, target, transfer)
    })
}

/// Reserves disk space for a file of `len` bytes. The length of the file does not change.
pub(crate) fn reserve(file: &File, len: u64) -> io::Result<()> {
    admit(Call::Reserve, 0)?;
    Ok(rustix::fs::fallocate(
        file,
        rustix::fs::FallocateFlags::KEEP_SIZE,
        0,
        len,
    )?)
}

/// Frees the disk space of a range, if the file system supports it. The length of the file does not change, and the
/// range then reads as zeros. Failures are ignored.
pub(crate) fn punch_hole(file: &File, from: u64, len: u64) {
    use rustix::fs::FallocateFlags;
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let _ = rustix::fs::fallocate(file, flags, from, len);
}

/// Flushes the data and the metadata of a file to disk (`fsync`).
pub(crate) fn sync(file: &File) -> io::Result<()> {
    retry(|| {
        admit(Call::Sync, 0)?;
        file.sync_all()
    })
}

/// Advises the kernel that a range of a file is not needed in the page cache (`POSIX_FADV_DONTNEED`): clean pages are
/// dropped; dirty pages are kept, and their writeback starts. Failures are ignored.
pub(crate) fn release(file: &File, from: u64, len: u64) {
    if let Some(len) = NonZeroU64::new(len) {
        let _ = rustix::fs::fadvise(file, from, Some(len), rustix::fs::Advice::DontNeed);
    }
}
