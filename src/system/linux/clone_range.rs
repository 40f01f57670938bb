//! The `FICLONERANGE` ioctl, which lets two files share blocks on disk (btrfs, xfs, bcachefs).
#![allow(unsafe_code)]

use crate::system::Transfer;
use rustix::ioctl::{Setter, ioctl, opcode};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `struct file_clone_range` of `linux/fs.h`.
#[repr(C)]
struct FileCloneRange {
    source: i64,
    from: u64,
    len: u64,
    to: u64,
}

/// `_IOW(0x94, 13, struct file_clone_range)`.
const FICLONERANGE: rustix::ioctl::Opcode = opcode::write::<FileCloneRange>(0x94, 13);

pub(in crate::system) fn clone_range(
    source: &File,
    target: &File,
    transfer: Transfer,
) -> io::Result<()> {
    let range = FileCloneRange {
        source: i64::from(source.as_raw_fd()),
        from: transfer.from,
        len: transfer.len,
        to: transfer.to,
    };
    // SAFETY: the opcode expects a pointer to a `file_clone_range`, which the kernel only reads. `Setter` passes a
    // pointer that is valid during the call. Both descriptors are open.
    Ok(unsafe { ioctl(target, Setter::<FICLONERANGE, _>::new(range)) }?)
}
