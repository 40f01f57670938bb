//! Who watches a command at work.

/// Watches a command at work. Every method has a default that does nothing.
pub trait Observer: Send + Sync {
    /// Something that the user should know and that is no error.
    fn warn(&self, _message: &str) {}
    /// Something that the user may want to know.
    fn info(&self, _message: &str) {}
    /// Something that only a user who asked for details wants to know.
    fn debug(&self, _message: &str) {}
    /// The command will go through so many more phases than it was known to.
    fn phases_expected(&self, _more: u64) {}
    /// A phase begins that will take in `total_bytes` bytes of input.
    fn phase_started(&self, _name: &'static str, _total_bytes: u64) {}
    /// The phase took in that many bytes more.
    fn advanced(&self, _bytes: u64) {}
    /// The phase is over.
    fn phase_ended(&self) {}
    /// The command is over.
    fn finished(&self) {}
}

/// An observer that looks away.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl Observer for NoObserver {}

/// A number of bytes in the unit that suits it: `541.0 MB`.
pub fn human_bytes(value: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if value < 1000 {
        return format!("{value} B");
    }
    let mut scaled = value as f64 / 1000.0;
    let mut unit = 0;
    while scaled >= 999.95 && unit + 1 < UNITS.len() {
        scaled /= 1000.0;
        unit += 1;
    }
    format!(
        "{scaled:.1} {}",
        UNITS.get(unit).copied().unwrap_or_default()
    )
}
