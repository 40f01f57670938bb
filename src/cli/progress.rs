//! What a person sees while a command works.

use crate::Observer;
use crate::runtime::human_bytes;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A command that takes less time shows no bar.
const PATIENCE: Duration = Duration::from_millis(500);
/// Steps of the bar that a phase has.
const STEPS: u64 = 1000;

/// Shows warnings and, where somebody is there to see it, one bar for the whole command, on standard error.
pub struct Terminal {
    bars: bool,
    quiet: bool,
    verbose: bool,
    started: Instant,
    job: Mutex<Job>,
}

/// How far a command has come: it works in phases, one behind the other.
#[derive(Default)]
struct Job {
    bar: Option<ProgressBar>,
    /// Phases that are expected, and those that are over.
    phases: u64,
    ended: u64,
    /// The phase at work: its name, and how many bytes of input it has taken in and will.
    phase: Option<&'static str>,
    done: u64,
    total: u64,
}

impl Terminal {
    /// `progress` and `no_progress` as given; without either, bars are for terminals only.
    pub fn new(progress: bool, no_progress: bool, quiet: bool, verbose: bool) -> Self {
        let bars = progress || (!no_progress && !quiet && std::io::stderr().is_terminal());
        Self {
            bars,
            quiet,
            verbose,
            started: Instant::now(),
            job: Mutex::default(),
        }
    }

    fn job(&self) -> MutexGuard<'_, Job> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints a line above the bar, where there is one.
    fn print(&self, line: &str) {
        if self.quiet {
            return;
        }
        let print = || super::complain(line);
        match &self.job().bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Changes what is known of the job and shows it.
    fn update(&self, change: impl FnOnce(&mut Job)) {
        if !self.bars {
            return;
        }
        let mut job = self.job();
        change(&mut job);
        if self.started.elapsed() >= PATIENCE {
            job.show();
        }
    }
}

impl Job {
    fn show(&mut self) {
        let phases = self
            .phases
            .max(self.ended + u64::from(self.phase.is_some()));
        let of_phase = match (self.phase, self.total) {
            (Some(_), 1..) => (self.done as f64 / self.total as f64).min(1.0),
            _ => 0.0,
        };
        let position = self.ended * STEPS + (of_phase * STEPS as f64) as u64;
        let bytes = match self.total {
            0 => String::new(),
            total => format!(", {} of {}", human_bytes(self.done), human_bytes(total)),
        };
        let message = format!("{}{bytes}", self.phase.unwrap_or_default());
        let bar = self.bar.get_or_insert_with(begin);
        bar.set_length(phases.max(1) * STEPS);
        bar.set_position(position);
        bar.set_message(message);
    }
}

/// A bar of nothing yet.
fn begin() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr_with_hz(8));
    let template = "{bar:32} {percent:>3} %  {msg}{left}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        let left = |state: &ProgressState, out: &mut dyn Write| {
            // Nothing is known before the first step.
            if state.pos() > 0 {
                let _ = write!(out, "  {} left", HumanDuration(state.eta()));
            }
        };
        bar.set_style(style.with_key("left", left).progress_chars("━╸ "));
    }
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

impl Observer for Terminal {
    fn warn(&self, message: &str) {
        self.print(&format!("pbfhogg: warning: {message}\n"));
    }

    fn info(&self, message: &str) {
        self.print(&format!("pbfhogg: {message}\n"));
    }

    fn debug(&self, message: &str) {
        if self.verbose {
            self.info(message);
        }
    }

    fn phases_expected(&self, more: u64) {
        self.update(|job| job.phases += more);
    }

    fn phase_started(&self, name: &'static str, total_bytes: u64) {
        self.update(|job| (job.phase, job.done, job.total) = (Some(name), 0, total_bytes));
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
    /// A command that failed is over, too.
    fn drop(&mut self) {
        self.finished();
    }
}
