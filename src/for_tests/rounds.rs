//! The number of rounds of tests that try many cases.

/// Whether tests run in their long version: `PBFHOGG_LONG=1`.
pub(crate) fn is_long_run() -> bool {
    std::env::var("PBFHOGG_LONG").is_ok_and(|value| value == "1")
}

/// Returns the number of rounds of a test: `all` in a long run, a quarter of `all` in a short run.
pub(crate) fn rounds(all: usize) -> usize {
    if is_long_run() { all } else { all / 4 }
}
