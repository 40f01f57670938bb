//! The allocator of the program. If an allocation fails, the allocator prints one line to standard error and ends the
//! process with status 2.
//!
//! The standard library would abort the process with a signal. Its hook for failed allocations is not stable, and
//! `try_reserve` covers neither collections that grow element by element nor collections in other crates.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// An allocator that ends the process if `A` has no memory left.
pub struct OrEnd<A>(pub A);

// SAFETY: every call is forwarded unchanged, and its result is returned unchanged unless it is null.
unsafe impl<A: GlobalAlloc> GlobalAlloc for OrEnd<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `alloc`.
        non_null_or_exit(unsafe { self.0.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `alloc_zeroed`.
        non_null_or_exit(unsafe { self.0.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `realloc`.
        non_null_or_exit(unsafe { self.0.realloc(block, layout, size) }, size)
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { self.0.dealloc(block, layout) }
    }
}

/// Makes glibc return large blocks to the system when they are freed.
///
/// By default, glibc raises its thresholds when a block of up to 32 MiB is freed. From then on, it takes blocks up to
/// the size of the freed block from its heaps, and keeps free memory of up to twice that size in each heap. So the
/// memory of one phase of a command would still be held in the next phase. The thresholds below stay fixed. Buffers
/// that commands reuse are smaller than `LARGE`, so they still come from the heaps.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn give_back_large_blocks() {
    const LARGE: libc::c_int = 4 << 20;
    const KEPT: libc::c_int = 16 << 20;
    // SAFETY: `mallopt` has no precondition, and no other thread exists yet.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub const fn give_back_large_blocks() {}

/// Returns `block`, or ends the process if it is null.
#[inline]
fn non_null_or_exit(block: *mut u8, size: usize) -> *mut u8 {
    if block.is_null() {
        exit_out_of_memory(size);
    }
    block
}

/// Reports that no memory is left, and ends the process. Allocates nothing, and acquires no lock that this thread may
/// hold. The system removes outputs that are still unnamed temporary files.
#[cold]
#[inline(never)]
fn exit_out_of_memory(size: usize) -> ! {
    static IS_ENDING: AtomicBool = AtomicBool::new(false);
    // If several threads fail, only the first one writes the message. The others wait here until that thread ends the
    // process.
    while IS_ENDING.swap(true, Ordering::SeqCst) {
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
    let mut line = [0; 200];
    let mut rest = line.as_mut_slice();
    let _ = writeln!(
        rest,
        "pbfhogg: error: no memory is left: {size} bytes more are refused; \
         use fewer jobs (-j) or --max-memory, or allow the process more"
    );
    let left = rest.len();
    let said = line.get(..line.len() - left).unwrap_or_default();
    write_and_exit(said)
}

/// Writes a line to standard error and ends the process. Does not run exit handlers. An exit handler may wait for a
/// lock that this thread holds.
#[cfg(target_os = "linux")]
fn write_and_exit(line: &[u8]) -> ! {
    // SAFETY: the pointer and the length are those of a slice, and `_exit` has no precondition.
    unsafe {
        libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len());
        libc::_exit(2)
    }
}

#[cfg(not(target_os = "linux"))]
fn write_and_exit(line: &[u8]) -> ! {
    let _ = std::io::stderr().write_all(line);
    std::process::exit(2)
}
