//! The allocator of the program: memory that cannot be had is one line on standard error and exit status 2.
//!
//! The standard library would end the process by a signal. Its hook for this is not stable, and `try_reserve` reaches
//! neither the collections that grow element by element nor those of other crates.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// An allocator that ends the process if `A` has no memory left.
pub struct OrEnd<A>(pub A);

// SAFETY: every call is passed on as it is, and its result is returned as it is unless it is null.
unsafe impl<A: GlobalAlloc> GlobalAlloc for OrEnd<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        or_end(unsafe { self.0.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        or_end(unsafe { self.0.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `realloc`.
        or_end(unsafe { self.0.realloc(block, layout, size) }, size)
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { self.0.dealloc(block, layout) }
    }
}

/// Lets large blocks go back to the system when they are freed.
///
/// By default, glibc keeps up to 32 MiB of each heap once a block of that size has been freed, so that the memory of
/// one phase of a command stays beside that of the next. Buffers that are used again and again are smaller.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn give_back_large_blocks() {
    const LARGE: libc::c_int = 4 << 20;
    const KEPT: libc::c_int = 16 << 20;
    // SAFETY: the function may be called at any time, and other threads do not exist yet.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub const fn give_back_large_blocks() {}

#[inline]
fn or_end(block: *mut u8, size: usize) -> *mut u8 {
    if block.is_null() {
        end(size);
    }
    block
}

/// Says that memory is used up, and ends the process. Takes no memory, and no lock that this thread may hold. Outputs
/// that have no name yet vanish with the process.
#[cold]
#[inline(never)]
fn end(size: usize) -> ! {
    static IS_ENDING: AtomicBool = AtomicBool::new(false);
    // If several threads come here, only one writes the message.
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
    leave(said)
}

/// Writes a line to standard error, and ends the process without running what is registered for its end: that may wait
/// for a lock that this thread holds.
#[cfg(target_os = "linux")]
fn leave(line: &[u8]) -> ! {
    // SAFETY: the pointer and the length are those of a slice, and `_exit` has no precondition.
    unsafe {
        libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len());
        libc::_exit(2)
    }
}

#[cfg(not(target_os = "linux"))]
fn leave(line: &[u8]) -> ! {
    let _ = std::io::stderr().write_all(line);
    std::process::exit(2)
}
