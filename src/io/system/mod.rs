//! The system calls that move bytes, in one place: interrupted ones are repeated, and tests can have
//! any of them fail.

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

/// Kinds of calls, for tests that have one fail.
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

/// In a test, fails or shortens the call as planned; otherwise nothing. Returns how many bytes the
/// call may move.
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

/// Repeats a call that a signal interrupted.
fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Reads at `offset` until `buffer` is full or the file ends; returns how many bytes there were.
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

/// A range of one file, and where in another it goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    pub from: u64,
    pub to: u64,
    pub len: u64,
}

impl Transfer {
    /// What is left behind the first `len` bytes.
    pub(crate) const fn skip(self, len: u64) -> Self {
        Self {
            from: self.from + len,
            to: self.to + len,
            len: self.len - len,
        }
    }

    /// The first `len` bytes, and what is left.
    pub(crate) const fn split(self, len: u64) -> (Self, Self) {
        (Self { len, ..self }, self.skip(len))
    }
}

/// Copies within the kernel; returns how many bytes were copied, 0 at the end of the source.
pub(crate) fn copy_range(source: &File, target: &File, transfer: Transfer) -> io::Result<u64> {
    retry(|| {
        let len = admit(Call::Copy, usize::try_from(transfer.len).unwrap_or(1 << 30))?;
        let (mut from, mut to) = (transfer.from, transfer.to);
        let copied =
            rustix::fs::copy_file_range(source, Some(&mut from), target, Some(&mut to), len);
        Ok(copied? as u64)
    })
}

/// Has two files share blocks (`FICLONERANGE`). All of the transfer must lie on the file system's
/// blocks, but for its end where the source ends.
pub(crate) fn clone_range(source: &File, target: &File, transfer: Transfer) -> io::Result<()> {
    retry(|| {
        admit(Call::Clone, 0)?;
        clone_range::clone_range(source, target, transfer)
    })
}

/// Reserves space for a file of `len` bytes; its length does not change.
pub(crate) fn reserve(file: &File, len: u64) -> io::Result<()> {
    admit(Call::Reserve, 0)?;
    Ok(rustix::fs::fallocate(
        file,
        rustix::fs::FallocateFlags::KEEP_SIZE,
        0,
        len,
    )?)
}

/// Gives the space of a range back to the disk, where the file system can. The file keeps its length, and the range
/// reads as zeros.
pub(crate) fn punch_hole(file: &File, from: u64, len: u64) {
    use rustix::fs::FallocateFlags;
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let _ = rustix::fs::fallocate(file, flags, from, len);
}

/// Writes what the operating system holds of a file, and its length, to the disk.
pub(crate) fn sync(file: &File) -> io::Result<()> {
    retry(|| {
        admit(Call::Sync, 0)?;
        file.sync_all()
    })
}

/// Tells the operating system that a range is not needed in memory. Dirty pages are set to be
/// written and stay until they are. It is advice: a failure changes nothing.
pub(crate) fn release(file: &File, from: u64, len: u64) {
    if let Some(len) = NonZeroU64::new(len) {
        let _ = rustix::fs::fadvise(file, from, Some(len), rustix::fs::Advice::DontNeed);
    }
}
