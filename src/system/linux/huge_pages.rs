//! Advice to use huge pages (`madvise`), for memory that is read at random.
#![allow(unsafe_code)]

use rustix::mm::{Advice, madvise};

/// The least memory in bytes for which the advice is given.
const LEAST: usize = 4 << 20;

/// Asks the kernel to use pages of 2 MiB for the memory that a list has reserved. It is then cleared with fewer faults,
/// and look-ups miss fewer translations of addresses. Does nothing for short lists, and where the system has no huge
/// pages.
pub(crate) fn prefer_huge_pages<T>(list: &mut Vec<T>) {
    let len = list.capacity() * size_of::<T>();
    if len < LEAST {
        return;
    }
    let page = rustix::param::page_size();
    let start = list.as_mut_ptr().cast::<u8>();
    let skipped = start.align_offset(page);
    let whole = len.saturating_sub(skipped) / page * page;
    // SAFETY: the range is within the memory of the list. The advice changes how the memory is mapped, and not what it
    // contains.
    let _ = unsafe { madvise(start.add(skipped).cast(), whole, Advice::LinuxHugepage) };
}
