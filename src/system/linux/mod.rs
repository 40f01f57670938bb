//! System calls that only Linux has.

mod clone_range;
mod machine;
mod memory_advice;

pub(in crate::system) use clone_range::clone_range;
pub(crate) use machine::*;
pub(crate) use memory_advice::{map_reserved, prefer_huge_pages};

use super::Transfer;
use rustix::fs::{Advice, AtFlags, CWD, FallocateFlags, Mode, OFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Writes the first bytes of `slices` at `offset`, as many as the system accepts. Returns the number of bytes written.
pub(in crate::system) fn write_slices_once_at(
    file: &File,
    slices: &[IoSlice<'_>],
    offset: u64,
) -> io::Result<usize> {
    Ok(rustix::io::pwritev(file, slices, offset)?)
}

/// Copies at most `len` bytes of a transfer within the kernel. Returns the number of copied bytes.
pub(super) fn copy_range(
    source: &File,
    target: &File,
    transfer: Transfer,
    len: usize,
) -> io::Result<u64> {
    let (mut from, mut to) = (transfer.from, transfer.to);
    let copied = rustix::fs::copy_file_range(source, Some(&mut from), target, Some(&mut to), len);
    Ok(copied? as u64)
}

/// Reserves disk space for a file of `len` bytes. The size of the file does not change.
pub(super) fn reserve(file: &File, len: u64) -> io::Result<()> {
    Ok(rustix::fs::fallocate(
        file,
        FallocateFlags::KEEP_SIZE,
        0,
        len,
    )?)
}

/// Frees the disk space of a range, if the file system supports this. Afterwards, the range reads as zeros. The size of
/// the file does not change. Failures are ignored.
pub(crate) fn punch_hole(file: &File, from: u64, len: u64) {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let _ = rustix::fs::fallocate(file, flags, from, len);
}

/// Advises the kernel that a range of a file is not needed in the page cache (`POSIX_FADV_DONTNEED`). Clean pages are
/// dropped. Dirty pages are kept, and their writeback starts. Failures are ignored.
pub(crate) fn release_cached_range(file: &File, from: u64, len: u64) {
    if let Some(len) = NonZeroU64::new(len) {
        let _ = rustix::fs::fadvise(file, from, Some(len), Advice::DontNeed);
    }
}

/// Flushes all data of the file system that contains `path` to disk.
pub(crate) fn sync_file_system(path: &Path) -> io::Result<bool> {
    rustix::fs::syncfs(File::open(path)?)?;
    Ok(true)
}

/// Creates a file without a name in a directory (`O_TMPFILE`). Returns `None` if the file system does not support this.
pub(crate) fn create_unnamed(directory: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::openat(CWD, directory, flags, Mode::from_raw_mode(0o666)) {
        Ok(file) if Path::new("/proc/self/fd").is_dir() => Ok(Some(file.into())),
        Err(error @ (Errno::NOENT | Errno::ACCESS | Errno::ROFS | Errno::NOTDIR)) => {
            Err(error.into())
        }
        _ => Ok(None),
    }
}

/// Gives a file without a name the name `path`. Fails if there is a file with that name.
pub(crate) fn give_name(file: &File, path: &Path) -> io::Result<()> {
    let unnamed = descriptor_path(file);
    Ok(rustix::fs::linkat(
        CWD,
        unnamed,
        CWD,
        path,
        AtFlags::SYMLINK_FOLLOW,
    )?)
}

/// Exchanges the names of two files or directories atomically.
pub(super) fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    let flags = rustix::fs::RenameFlags::EXCHANGE;
    Ok(rustix::fs::renameat_with(CWD, one, CWD, other, flags)?)
}

/// Whether a directory is the root of a mounted file system, even if the same file system is also mounted elsewhere.
pub(crate) fn is_mount_root(directory: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let found = rustix::fs::statx(CWD, directory, AtFlags::empty(), StatxFlags::BASIC_STATS);
    let is_root =
        found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
    let device = |path: &Path| path.metadata().ok().map(|metadata| metadata.dev());
    // Kernels before 5.8 do not report mount roots. A directory therefore also counts as a mount root if it is on
    // another device than its parent.
    is_root || device(directory) != device(&directory.join(".."))
}

/// Opens a file for reads that bypass the page cache (`O_DIRECT`).
pub(crate) fn open_direct(path: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECT.bits() as i32;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Opens an open file again for writes that bypass the page cache (`O_DIRECT`).
pub(crate) fn reopen_direct(file: &File) -> io::Result<File> {
    let flags = OFlags::DIRECT.bits() as i32;
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(flags);
    options.open(descriptor_path(file))
}

/// Returns a path that refers to an open file.
fn descriptor_path(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}
