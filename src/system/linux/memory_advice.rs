//! Advice to the kernel about memory (`madvise`): to use huge pages, and to map pages before they are written.
#![allow(unsafe_code)]

use rustix::mm::{Advice, madvise};
use std::mem::MaybeUninit;

/// The minimum size in bytes of memory for which advice is given.
const LEAST: usize = 4 << 20;

/// Asks the kernel to use pages of 2 MiB for the memory that a list has reserved. The memory is then cleared with fewer
/// page faults, and look-ups have fewer TLB misses. Does nothing for short lists, and where the system has no huge
/// pages.
pub(crate) fn prefer_huge_pages<T>(list: &mut Vec<T>) {
    let len = list.capacity() * size_of::<T>();
    // SAFETY: this is the memory of the list.
    unsafe { advise(list.as_mut_ptr().cast(), len, Advice::LinuxHugepage) };
}

/// Makes the kernel map the memory that an empty list has reserved, on `threads` threads. Without this call, the thread
/// that fills the list has to wait while the kernel clears each page. Does nothing for short lists, for fewer than two
/// threads, and before Linux 5.14.
pub(crate) fn map_reserved<T: Send>(list: &mut Vec<T>, threads: usize) {
    let room = list.spare_capacity_mut();
    if threads < 2 || size_of_val(room) < LEAST {
        return;
    }
    let part = room
        .len()
        .div_ceil(threads)
        .max(LEAST / size_of::<T>().max(1));
    std::thread::scope(|scope| {
        for part in room.chunks_mut(part) {
            let thread = std::thread::Builder::new().name("map".into());
            // If the thread cannot be started, these pages are mapped as the list is filled.
            let _ = thread.spawn_scoped(scope, move || populate_pages(part));
        }
    });
}

fn populate_pages<T>(room: &mut [MaybeUninit<T>]) {
    let len = size_of_val(room);
    // SAFETY: this is the memory of the slice.
    unsafe { advise(room.as_mut_ptr().cast(), len, Advice::LinuxPopulateWrite) };
}

/// Gives advice about the pages that lie within `len` bytes of memory at `start`. Does nothing for little memory, or if
/// the kernel refuses the advice.
///
/// # Safety
///
/// The memory must be borrowed exclusively, and the advice must not change what it contains.
unsafe fn advise(start: *mut u8, len: usize, advice: Advice) {
    if len < LEAST {
        return;
    }
    let page = rustix::param::page_size();
    let skipped = start.align_offset(page);
    let whole = len.saturating_sub(skipped) / page * page;
    // SAFETY: the range is within the memory that the caller has borrowed.
    let _ = unsafe { madvise(start.add(skipped).cast(), whole, advice) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_list_is_empty_and_has_its_capacity() {
        for threads in [1, 3, 100] {
            for room in [0, 1000, (5 << 20) + 7] {
                let mut list: Vec<u64> = Vec::with_capacity(room);
                let capacity = list.capacity();
                prefer_huge_pages(&mut list);
                map_reserved(&mut list, threads);
                assert_eq!((list.len(), list.capacity()), (0, capacity));
                list.extend(0..room as u64);
                assert!(list.iter().copied().eq(0..room as u64));
            }
        }
    }
}
