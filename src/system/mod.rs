//! System calls that transfer bytes or query the system. Interrupted calls are repeated, and tests can make calls fail.
//!
//! `linux` has the calls that only Linux has. `portable` replaces them on other systems. Most functions of `portable`
//! do nothing, report that a value is unknown, or fail with the error kind `Unsupported`. If such a function fails, its
//! caller falls back to a portable method, such as plain reads and writes.

#[cfg(all(any(test, feature = "faults"), unix))]
pub(crate) mod faults;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod portable;

#[cfg(target_os = "linux")]
use linux as platform;
#[cfg(not(target_os = "linux"))]
use portable as platform;

pub(crate) use platform::{
    are_on_same_file_system, available_memory, block_len, create_unnamed, free_space, give_name,
    is_mount_root, map_reserved, open_direct, peak_memory, physical_memory, prefer_huge_pages,
    punch_hole, release_cached_range, reopen_direct, shares_blocks,
};

#[cfg(all(unix, feature = "cli"))]
pub(crate) use platform::ignored_signals;

use std::fs::File;
use std::io::{self, IoSlice};
use std::path::Path;
#[cfg(unix)]
use std::time::Duration;

/// The kind of a system call. Tests choose by kind which calls fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    /// Reading bytes of a file.
    Read,
    /// Writing bytes.
    Write,
    /// Copying bytes from file to file within the kernel.
    Copy,
    /// Sharing blocks of a file with another file.
    Clone,
    /// Reserving disk space.
    Reserve,
    /// Flushing a file or a directory.
    Sync,
    /// Giving a file its name.
    Rename,
    /// Exchanging the names of two directories.
    Exchange,
}

/// Returns the number of bytes that a system call may transfer. This is `len`, or less if a test has planned a short
/// transfer. Fails if a test has planned an error. Must be called before each system call that tests can make fail.
#[inline]
pub(crate) fn admit(call: Call, len: usize) -> io::Result<usize> {
    #[cfg(all(any(test, feature = "faults"), unix))]
    return faults::admit(call, len);
    #[cfg(not(all(any(test, feature = "faults"), unix)))]
    {
        let _ = call;
        Ok(len)
    }
}

/// Repeats a call as long as signals interrupt it.
fn retry_if_interrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(unix)]
fn read_once_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(unix)]
fn write_once_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::write_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_once_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

#[cfg(windows)]
fn write_once_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_write(file, bytes, offset)
}

/// Reads at `offset` until `buffer` is full or the file ends. Returns the number of read bytes.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        let rest = &mut buffer[done..];
        let count = retry_if_interrupted(|| {
            let len = admit(Call::Read, rest.len())?;
            read_once_at(file, &mut rest[..len], offset + done as u64)
        })?;
        if count == 0 {
            break;
        }
        done += count;
    }
    Ok(done)
}

/// Fills `buffer` with the bytes at `offset`. Fails if the file ends before `buffer` is full.
pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    if read_at(file, buffer, offset)? == buffer.len() {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// Writes all of `bytes` at `offset`.
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    write_all_with(bytes, |rest, done| write_once_at(file, rest, offset + done))
}

/// Writes the bytes of all slices one after another at `offset`.
pub(crate) fn write_slices_at(
    file: &File,
    mut slices: &mut [IoSlice<'_>],
    mut offset: u64,
) -> io::Result<()> {
    // Skips empty slices at the beginning.
    IoSlice::advance_slices(&mut slices, 0);
    while let Some(first) = slices.first() {
        let all: usize = slices.iter().map(|slice| slice.len()).sum();
        let count = retry_if_interrupted(|| match admit(Call::Write, all)? {
            admitted if admitted == all => platform::write_slices_once_at(file, slices, offset),
            admitted => write_once_at(file, &first[..admitted.min(first.len())], offset),
        })?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        IoSlice::advance_slices(&mut slices, count);
        offset += count as u64;
    }
    Ok(())
}

/// Writes all of `bytes` to a stream.
pub(crate) fn write(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;
    write_all_with(bytes, |rest, _| file.write(rest))
}

/// Repeats `call` until all bytes are written. The arguments of `call` are the remaining bytes and the number of bytes
/// already written. `call` must return the number of bytes that it has written.
fn write_all_with(
    bytes: &[u8],
    mut call: impl FnMut(&[u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let rest = &bytes[done..];
        let count = retry_if_interrupted(|| {
            let len = admit(Call::Write, rest.len())?;
            call(&rest[..len], done as u64)
        })?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        done += count;
    }
    Ok(())
}

/// A range in a source file, and its offset in a target file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    /// The offset in the source file, in bytes.
    pub from: u64,
    /// The offset in the target file, in bytes.
    pub to: u64,
    /// The length in bytes.
    pub len: u64,
}

impl Transfer {
    /// Returns the transfer without its first `len` bytes. `len` must not exceed the length of the transfer.
    pub(crate) const fn skip(self, len: u64) -> Self {
        Self {
            from: self.from + len,
            to: self.to + len,
            len: self.len - len,
        }
    }

    /// Splits the transfer into its first `len` bytes and the remainder. `len` must not exceed the length of the
    /// transfer.
    pub(crate) const fn split(self, len: u64) -> (Self, Self) {
        (Self { len, ..self }, self.skip(len))
    }
}

/// Copies within the kernel (`copy_file_range`). Returns the number of copied bytes. It may be less than requested, and
/// is 0 at the end of the source.
pub(crate) fn copy_range(source: &File, target: &File, transfer: Transfer) -> io::Result<u64> {
    retry_if_interrupted(|| {
        let len = admit(Call::Copy, usize::try_from(transfer.len).unwrap_or(1 << 30))?;
        platform::copy_range(source, target, transfer, len)
    })
}

/// Lets two files share blocks (`FICLONERANGE`). Both offsets must be multiples of the file system's block size. The
/// length must be such a multiple, too, unless the range ends at the end of the source.
pub(crate) fn clone_range(source: &File, target: &File, transfer: Transfer) -> io::Result<()> {
    retry_if_interrupted(|| {
        admit(Call::Clone, 0)?;
        platform::clone_range(source, target, transfer)
    })
}

/// Reserves disk space for a file of `len` bytes. The size of the file does not change.
pub(crate) fn reserve(file: &File, len: u64) -> io::Result<()> {
    admit(Call::Reserve, 0)?;
    platform::reserve(file, len)
}

/// Exchanges the names of two directories atomically. Fails with [`io::ErrorKind::Unsupported`] if the system or the
/// file system cannot do this.
pub(crate) fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    retry_if_interrupted(|| {
        admit(Call::Exchange, 0)?;
        platform::exchange(one, other)
    })
    .map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => io::ErrorKind::Unsupported.into(),
        _ => error,
    })
}

/// Flushes the data and the metadata of a file to disk (`fsync`).
pub(crate) fn sync(file: &File) -> io::Result<()> {
    retry_if_interrupted(|| {
        admit(Call::Sync, 0)?;
        file.sync_all()
    })
}

/// Flushes the data of a file to disk, and the metadata that reading it needs (`fdatasync`).
pub(crate) fn sync_data(file: &File) -> io::Result<()> {
    retry_if_interrupted(|| {
        admit(Call::Sync, 0)?;
        file.sync_data()
    })
}

/// Flushes all data of the file system that contains `path` to disk (`syncfs`). Returns `false` if the system cannot
/// flush one file system alone.
pub(crate) fn sync_file_system(path: &Path) -> io::Result<bool> {
    admit(Call::Sync, 0)?;
    platform::sync_file_system(path)
}

/// Whether a file of `bytes` bytes exceeds half of the machine's memory. Reading or writing it would evict most of the
/// page cache.
pub(crate) fn exceeds_half_of_memory(bytes: u64) -> bool {
    bytes > physical_memory() / 2
}

/// Raises the process's limit of open files to the hard limit and returns the hard limit. If this fails, returns the
/// current limit.
#[cfg(unix)]
pub(crate) fn raise_open_file_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum.unwrap_or(u64::MAX),
        Err(_) => limit.current.unwrap_or(u64::MAX),
    }
}

/// Returns the maximum number of open files. Windows has no relevant limit.
#[cfg(windows)]
pub(crate) const fn raise_open_file_limit() -> u64 {
    u64::MAX
}

/// Returns the processor time of the whole process.
#[cfg(unix)]
pub(crate) fn cpu_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let nanoseconds = time.tv_nsec.unsigned_abs() as u32;
    Duration::new(time.tv_sec.unsigned_abs(), nanoseconds)
}

#[cfg(windows)]
pub(crate) use platform::cpu_time;

/// Returns a duplicate descriptor of standard output.
pub(crate) fn standard_output() -> io::Result<File> {
    let stdout = io::stdout();
    #[cfg(unix)]
    let descriptor = std::os::fd::AsFd::as_fd(&stdout).try_clone_to_owned();
    #[cfg(windows)]
    let descriptor = std::os::windows::io::AsHandle::as_handle(&stdout).try_clone_to_owned();
    descriptor.map(File::from)
}
