//! The `pbfhogg` program.

mod allocator;

use allocator::OrEnd;
use std::process::ExitCode;

/// The allocator of musl gives every large block back to the system at once, which takes up to a third of a run.
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
