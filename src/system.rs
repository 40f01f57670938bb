//! What the machine and its file systems can do.

use rustix::fs::{fstatfs, fstatvfs};
use std::fs::File;
use std::path::Path;

/// Memory of the machine in bytes.
pub(crate) fn memory() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).saturating_mul(u64::from(info.mem_unit))
}

/// Whether that many bytes would push most of what the machine holds out of its memory.
pub(crate) fn is_large(bytes: u64) -> bool {
    bytes > memory() / 2
}

/// How many files the process may have open, after asking for as many as it may ask for.
pub(crate) fn most_open_files() -> u64 {
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

/// The length of a block of the file system that holds `file`.
pub(crate) fn block_len(file: &File) -> u64 {
    fstatvfs(file).map_or(4096, |system| system.f_bsize)
}

/// Whether files can share blocks, so that a copy takes no space (btrfs, xfs, bcachefs, zfs).
pub(crate) fn shares_blocks(file: &File) -> bool {
    const BTRFS: u64 = 0x9123_683e;
    const XFS: u64 = 0x5846_5342;
    const BCACHEFS: u64 = 0xca45_1a4e;
    const ZFS: u64 = 0x2fc1_2fc1;
    fstatfs(file).is_ok_and(|system| [BTRFS, XFS, BCACHEFS, ZFS].contains(&(system.f_type as u64)))
}

/// Bytes that may still be written where `directory` is; `None` where the system does not tell.
pub(crate) fn free_space(directory: &Path) -> Option<u64> {
    let system = rustix::fs::statvfs(directory).ok()?;
    // Some file systems do not say how large they are.
    if system.f_blocks == 0 {
        return None;
    }
    let blocks = if rustix::process::geteuid().is_root() {
        system.f_bfree
    } else {
        system.f_bavail
    };
    blocks.checked_mul(system.f_frsize)
}
