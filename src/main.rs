//! The `pbfhogg` program.

use std::process::ExitCode;

/// The allocator of musl gives every large block back to the system at once, which takes up to a third of a run.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    pbfhogg::cli::main()
}
