//! Substitutes for the system calls of Linux on other systems.

use super::Transfer;
use std::fs::File;
use std::io;
use std::path::Path;

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Fails: the caller reads and writes.
pub(super) fn copy_range(_: &File, _: &File, _: Transfer, _: usize) -> io::Result<u64> {
    unsupported()
}

/// Fails: the caller copies.
pub(super) fn clone_range(_: &File, _: &File, _: Transfer) -> io::Result<()> {
    unsupported()
}

/// Fails: space is taken as the file grows.
pub(super) fn reserve(_: &File, _: u64) -> io::Result<()> {
    unsupported()
}

/// Does nothing: the space is freed with the file.
pub(crate) const fn punch_hole(_: &File, _: u64, _: u64) {}

/// Does nothing: the system decides what stays in its cache.
pub(crate) const fn release(_: &File, _: u64, _: u64) {}

/// No file: the caller creates a hidden temporary file.
pub(crate) const fn create_unnamed(_: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

/// Fails: no file is without a name.
pub(crate) fn give_name(_: &File, _: &Path) -> io::Result<()> {
    unsupported()
}

/// Fails: the caller renames one after the other.
#[cfg(feature = "parquet")]
pub(super) fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    unsupported()
}

/// Unknown: a directory that cannot be renamed is found when it is.
pub(crate) const fn is_mount_root(_: &Path) -> bool {
    false
}

/// Fails: the caller reads through the system's cache.
pub(crate) fn open_direct(_: &Path) -> io::Result<File> {
    unsupported()
}

/// Fails: the caller writes through the system's cache.
pub(crate) fn reopen_direct(_: &File) -> io::Result<File> {
    unsupported()
}

/// The physical memory of the machine, in bytes.
#[cfg(windows)]
pub(crate) fn memory() -> u64 {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    system.total_memory()
}

/// Memory in bytes that the process may allocate without swapping.
#[cfg(windows)]
pub(crate) fn available_memory() -> u64 {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    system.available_memory()
}

/// The physical memory of the machine, in bytes; 4 GiB if the system does not tell.
#[cfg(unix)]
pub(crate) fn memory() -> u64 {
    static MEMORY: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *MEMORY.get_or_init(|| {
        let mut command = std::process::Command::new("/usr/sbin/sysctl");
        let told = command.args(["-n", "hw.memsize"]).output().ok();
        let bytes = told.and_then(|told| String::from_utf8(told.stdout).ok()?.trim().parse().ok());
        bytes.unwrap_or(4 << 30)
    })
}

/// Memory in bytes that the process may allocate without swapping: half of the machine's, because the system does not
/// tell how much is free.
#[cfg(unix)]
pub(crate) fn available_memory() -> u64 {
    memory() / 2
}

/// Processor time of the whole process; 0 if the system does not tell.
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

/// Unknown.
pub(crate) const fn peak_memory() -> Option<u64> {
    None
}

/// Unknown.
#[cfg(all(unix, feature = "cli"))]
pub(crate) const fn ignored_signals() -> Option<u64> {
    None
}

/// The block size in bytes of the file system that holds a file, which matters for blocks that files share.
pub(crate) const fn block_len(_: &File) -> u64 {
    4096
}

/// No: ranges are not cloned.
pub(crate) const fn shares_blocks(_: &File) -> bool {
    false
}

/// Free bytes on the file system of `directory` that this process may use; `None` if unknown.
pub(crate) fn free_space(directory: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let system = rustix::fs::statvfs(directory).ok()?;
        // Some file systems report zero blocks in all: their free space is unknown.
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
