//! Messages and a progress bar on standard error.

use super::advice::with_advice;
use super::{session, show};
use crate::Observer;
use crate::error::Advice;
use crate::runtime::{human_bytes, lock};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The time that a command runs before its bar is shown.
const PATIENCE: Duration = Duration::from_millis(500);
/// The number of steps by which the bar advances in each phase.
const STEPS: u64 = 1000;

/// The messages that are printed. Each level includes the levels before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Errors,
    Warnings,
    Notes,
    Details,
}

/// An [`Observer`] that prints messages and draws one progress bar for the whole command, on standard error.
pub struct Terminal {
    /// Whether another program calls the command. In this case, only the bar is shown, and no messages are printed.
    is_call: bool,
    has_bar: bool,
    level: Level,
    started: Instant,
    job: Mutex<ShownProgress>,
}

/// The progress of a command, which runs one phase after the other.
#[derive(Default)]
struct ShownProgress {
    bar: Option<ProgressBar>,
    /// The number of phases that were announced.
    phases: u64,
    /// The number of phases that have ended.
    ended: u64,
    /// The name of the current phase.
    phase: Option<&'static str>,
    /// The number of bytes of input that the current phase has processed.
    done: u64,
    /// The number of bytes of input of the current phase; 0 if unknown.
    total: u64,
    /// Whether `done` and `total` count rows rather than bytes.
    has_rows: bool,
}

impl Terminal {
    /// Creates an observer that draws a bar if `has_bar`, and prints the messages of `level` and of the levels before
    /// it. If `is_call`, the observer prints no messages.
    pub fn new(has_bar: bool, level: Level, is_call: bool) -> Self {
        Self {
            is_call,
            has_bar,
            level,
            started: Instant::now(),
            job: Mutex::default(),
        }
    }

    fn job(&self) -> MutexGuard<'_, ShownProgress> {
        lock(&self.job)
    }

    /// Prints a message of the given level as a line, above the bar if there is one.
    fn print(&self, level: Level, message: &str) {
        if level > self.level {
            return;
        }
        self.print_line(&format!("pbfhogg: {message}\n"));
    }

    fn print_line(&self, line: &str) {
        if self.is_call {
            return;
        }
        let print = || session::print_to_stderr(line);
        match &self.job().bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Changes the shown progress, and draws the bar if [`PATIENCE`] has passed since the start. Does nothing if no bar
    /// is wanted.
    fn update(&self, change: impl FnOnce(&mut ShownProgress)) {
        if !self.has_bar {
            return;
        }
        let mut job = self.job();
        change(&mut job);
        if self.started.elapsed() >= PATIENCE {
            job.show();
        }
    }
}

impl ShownProgress {
    fn show(&mut self) {
        let phases = self
            .phases
            .max(self.ended + u64::from(self.phase.is_some()));
        let of_phase = match (self.phase, self.total) {
            (Some(_), 1..) => (self.done as f64 / self.total as f64).min(1.0),
            _ => 0.0,
        };
        let position = self.ended * STEPS + (of_phase * STEPS as f64) as u64;
        let message = self.message();
        let bar = self.bar.get_or_insert_with(new_bar);
        bar.set_length(phases.max(1) * STEPS);
        bar.set_position(position);
        bar.set_message(message);
    }
}

impl ShownProgress {
    /// Returns the name of the current phase, with its progress if the total is known.
    fn message(&self) -> String {
        let (done, total) = (self.done, self.total);
        let amounts = match (total, self.has_rows) {
            (0, _) => String::new(),
            (_, true) => format!(", {} of {} rows", show::number(done), show::number(total)),
            (_, false) => format!(", {} of {}", human_bytes(done), human_bytes(total)),
        };
        format!("{}{amounts}", self.phase.unwrap_or_default())
    }
}

/// Formats the remaining time. Until the command ends, the result is at least one second.
fn remaining_time_text(eta: Duration, is_end: bool) -> String {
    let least = Duration::from_secs(u64::from(!is_end));
    format!("{} left", HumanDuration(eta.max(least)))
}

/// Creates a bar at position 0.
fn new_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr_with_hz(8));
    let template = "{bar:32} {percent:>3} %  {msg}{left}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        let left = |state: &ProgressState, out: &mut dyn Write| {
            // Before the first step, the remaining time cannot be estimated, so it is not shown.
            if state.pos() > 0 {
                let is_end = state.len().is_some_and(|len| state.pos() >= len);
                let _ = write!(out, "  {}", remaining_time_text(state.eta(), is_end));
            }
        };
        bar.set_style(style.with_key("left", left).progress_chars("━╸ "));
    }
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

impl Observer for Terminal {
    fn notice(&self, line: &str) {
        self.print_line(&format!("{line}\n"));
    }

    fn warn(&self, message: &str) {
        self.print(Level::Warnings, &format!("warning: {message}"));
    }

    fn warn_with_advice(&self, message: &str, advice: &Advice) {
        self.warn(&with_advice(message, advice));
    }

    fn info(&self, message: &str) {
        self.print(Level::Notes, message);
    }

    fn debug(&self, message: &str) {
        self.print(Level::Details, message);
    }

    fn phases_expected(&self, more: u64) {
        self.update(|job| job.phases += more);
    }

    fn phase_started(&self, name: &'static str, total_bytes: u64) {
        self.update(|job| {
            (job.phase, job.done, job.total) = (Some(name), 0, total_bytes);
            job.has_rows = false;
        });
    }

    fn counts_rows(&self) {
        self.update(|job| job.has_rows = true);
    }

    fn advanced(&self, bytes: u64) {
        self.update(|job| job.done += bytes);
    }

    fn phase_ended(&self) {
        self.update(|job| {
            job.ended += u64::from(job.phase.take().is_some());
            (job.done, job.total) = (0, 0);
        });
    }

    fn finished(&self) {
        if let Some(bar) = self.job().bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Terminal {
    /// Removes the bar if the command failed, because such a command does not call [`Observer::finished`].
    fn drop(&mut self) {
        self.finished();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_bytes_or_rows_and_the_remaining_time() {
        let mut job = ShownProgress {
            phase: Some("tables"),
            done: 2_000,
            total: 30_000,
            ..ShownProgress::default()
        };
        assert_eq!(job.message(), "tables, 2.0 kB of 30.0 kB");
        job.has_rows = true;
        assert_eq!(job.message(), "tables, 2,000 of 30,000 rows");
        job.total = 0;
        assert_eq!(job.message(), "tables");
        assert_eq!(
            remaining_time_text(Duration::from_millis(300), false),
            "1 second left"
        );
        assert_eq!(remaining_time_text(Duration::ZERO, true), "0 seconds left");
        assert_eq!(
            remaining_time_text(Duration::from_secs(5), false),
            "5 seconds left"
        );
    }
}
