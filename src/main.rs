//! The `pbfhogg` program.

mod allocator;

use allocator::OrEnd;
use std::process::ExitCode;

/// Replaces the allocator of musl. That allocator returns every large block to the system immediately, which can cost
/// up to a third of the run time.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: OrEnd<mimalloc::MiMalloc> = OrEnd(mimalloc::MiMalloc);

#[cfg(not(target_env = "musl"))]
#[global_allocator]
static ALLOCATOR: OrEnd<std::alloc::System> = OrEnd(std::alloc::System);

fn main() -> ExitCode {
    allocator::give_back_large_blocks();
    pbfhogg::cli::main()
}
