//! Observers, which receive the messages and the progress of a command.

use crate::error::Advice;

/// Receives the messages and the progress of a command. By default, messages and progress are ignored.
pub trait Observer: Send + Sync {
    /// Receives a line of the command's report. The program prints the line even if it prints no messages.
    fn notice(&self, _line: &str) {}
    /// Receives a problem that does not stop the command.
    fn warn(&self, _message: &str) {}
    /// Receives a problem, as [`warn`](Self::warn) does, and what the user can do. By default, calls
    /// [`warn`](Self::warn) with the advice in words after the message.
    fn warn_with_advice(&self, message: &str, advice: &Advice) {
        self.warn(&format!("{message}; {advice}"));
    }
    /// Receives a fact that may interest the user.
    fn info(&self, _message: &str) {}
    /// Receives a detail, for users who asked for details.
    fn debug(&self, _message: &str) {}
    /// Called when the command is going to run `more` phases in addition to those announced before.
    fn phases_expected(&self, _more: u64) {}
    /// Called when a phase begins. `total_bytes` is the number of bytes of input that the phase processes, 0 if
    /// unknown.
    fn phase_started(&self, _name: &'static str, _total_bytes: u64) {}
    /// Called after [`phase_started`](Self::phase_started) if the progress of the phase is counted in rows, not in
    /// bytes.
    fn counts_rows(&self) {}
    /// Called when the current phase has processed `bytes` more bytes of input.
    fn advanced(&self, _bytes: u64) {}
    /// Called when the current phase has ended.
    fn phase_ended(&self) {}
    /// Called when the command has ended.
    fn finished(&self) {}
}

/// An observer that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl Observer for NoObserver {}

/// Formats a number of bytes with a decimal unit and one decimal, like `541.0 MB`. A number below 1000 has no decimals,
/// like `12 B`.
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
    format!("{scaled:.1} {}", UNITS[unit])
}
