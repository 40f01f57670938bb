//! The `pbfhogg` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    pbfhogg::cli::main()
}
