//! Functions that replace, on other systems, the system calls that only Linux has.

use super::Transfer;
use std::fs::File;
use std::io::{self, IoSlice};
use std::path::Path;

fn fail_as_unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Fails, so that the caller reads and writes instead.
pub(super) fn copy_range(_: &File, _: &File, _: Transfer, _: usize) -> io::Result<u64> {
    fail_as_unsupported()
}

/// Fails, so that the caller copies instead.
pub(super) fn clone_range(_: &File, _: &File, _: Transfer) -> io::Result<()> {
    fail_as_unsupported()
}

/// Fails, so that space is allocated as the file grows.
pub(super) fn reserve(_: &File, _: u64) -> io::Result<()> {
    fail_as_unsupported()
}

/// Does nothing. The space of the range is freed when the file is deleted.
pub(crate) const fn punch_hole(_: &File, _: u64, _: u64) {}

/// Does nothing, because the system chooses the size of pages.
pub(crate) const fn prefer_huge_pages<T>(_: &mut Vec<T>) {}

/// Does nothing. The memory is mapped as the list is filled.
pub(crate) const fn map_reserved<T>(_: &mut Vec<T>, _: usize) {}

/// Does nothing, because the system decides what stays in its cache.
pub(crate) const fn release_cached_range(_: &File, _: u64, _: u64) {}

/// Returns `false`, so that the caller flushes files one by one.
pub(crate) const fn sync_file_system(_: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Returns `None`, so that the caller creates a hidden temporary file.
pub(crate) const fn create_unnamed(_: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

/// Fails, because there are no files without a name.
pub(crate) fn give_name(_: &File, _: &Path) -> io::Result<()> {
    fail_as_unsupported()
}

/// Fails, so that the caller renames the directories one after the other.
pub(super) fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    fail_as_unsupported()
}

/// Returns `false`, because mount roots are not detected. An attempt to rename a mount root fails later.
pub(crate) const fn is_mount_root(_: &Path) -> bool {
    false
}

/// Fails, so that the caller reads through the system's cache.
pub(crate) fn open_direct(_: &Path) -> io::Result<File> {
    fail_as_unsupported()
}

/// Fails, so that the caller writes through the system's cache.
pub(crate) fn reopen_direct(_: &File) -> io::Result<File> {
    fail_as_unsupported()
}

/// Returns the size in bytes of the machine's physical memory.
#[cfg(windows)]
pub(crate) fn physical_memory() -> u64 {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    system.total_memory()
}

/// Returns the number of bytes of memory that the process can allocate without swapping.
#[cfg(windows)]
pub(crate) fn available_memory() -> u64 {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    system.available_memory()
}

/// Returns the size in bytes of the machine's physical memory, or 4 GiB if it is unknown.
#[cfg(unix)]
pub(crate) fn physical_memory() -> u64 {
    static MEMORY: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *MEMORY.get_or_init(|| {
        let mut command = std::process::Command::new("/usr/sbin/sysctl");
        let told = command.args(["-n", "hw.memsize"]).output().ok();
        let bytes = told.and_then(|told| String::from_utf8(told.stdout).ok()?.trim().parse().ok());
        bytes.unwrap_or(4 << 30)
    })
}

/// Returns the number of bytes of memory that the process can allocate without swapping. This is half of the physical
/// memory, because the amount of free memory is unknown.
#[cfg(unix)]
pub(crate) fn available_memory() -> u64 {
    physical_memory() / 2
}

/// Returns the processor time of the whole process, or 0 if it is unknown.
#[cfg(windows)]
pub(crate) fn cpu_time() -> std::time::Duration {
    use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System, get_current_pid};
    let mut system = System::new();
    let Ok(own) = get_current_pid() else {
        return std::time::Duration::ZERO;
    };
    let what = ProcessRefreshKind::nothing().with_cpu();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[own]), false, what);
    let process = system.process(own);
    let milliseconds = process.map_or(0, sysinfo::Process::accumulated_cpu_time);
    std::time::Duration::from_millis(milliseconds)
}

/// Returns `None`, because the maximum memory of the process is unknown.
pub(crate) const fn peak_memory() -> Option<u64> {
    None
}

/// Returns `None`, because the set of ignored signals is unknown.
#[cfg(all(unix, feature = "cli"))]
pub(crate) const fn ignored_signals() -> Option<u64> {
    None
}

/// Returns 4096 bytes. The block size matters only on systems where files can share blocks.
pub(crate) const fn block_len(_: &File) -> u64 {
    4096
}

/// Writes a part of the first slice, because not every system can write several slices at an offset.
pub(crate) fn write_slices_once_at(
    file: &File,
    slices: &[IoSlice<'_>],
    offset: u64,
) -> io::Result<usize> {
    super::write_once_at(file, &slices[0], offset)
}

/// Returns `false`, because [`clone_range`] always fails.
pub(crate) const fn are_on_same_file_system(_: &File, _: &File) -> bool {
    false
}

/// Returns `false`, because ranges are not cloned.
pub(crate) const fn shares_blocks(_: &File) -> bool {
    false
}

/// Returns the number of free bytes on the file system of `directory` that this process may use. Returns `None` if it
/// is unknown.
pub(crate) fn free_space(directory: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let system = rustix::fs::statvfs(directory).ok()?;
        // A file system that reports a total of zero blocks does not know its free space.
        if system.f_blocks == 0 {
            return None;
        }
        system.f_bavail.checked_mul(system.f_frsize)
    }
    #[cfg(windows)]
    {
        let _ = directory;
        None
    }
}
