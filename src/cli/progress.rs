//! What a person sees while a command works.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pbfhogg::Observer;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Shows warnings and, where somebody is there to see it, a progress bar, on standard error.
pub struct Terminal {
    bars: bool,
    quiet: bool,
    verbose: bool,
    bar: Mutex<Option<ProgressBar>>,
}

impl Terminal {
    /// `progress` and `no_progress` as given; without either, bars are for terminals only.
    pub fn new(progress: bool, no_progress: bool, quiet: bool, verbose: bool) -> Self {
        let bars = progress || (!no_progress && !quiet && std::io::stderr().is_terminal());
        Self {
            bars,
            quiet,
            verbose,
            bar: Mutex::default(),
        }
    }

    fn bar(&self) -> std::sync::MutexGuard<'_, Option<ProgressBar>> {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Terminal {
    /// Prints a line above the bar, where there is one.
    fn print(&self, line: &str) {
        if self.quiet {
            return;
        }
        let print = || super::complain(line);
        match &*self.bar() {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

impl Observer for Terminal {
    fn warn(&self, message: &str) {
        self.print(&format!("pbfhogg: warning: {message}\n"));
    }

    fn tell(&self, message: &str) {
        self.print(&format!("pbfhogg: {message}\n"));
    }

    fn detail(&self, message: &str) {
        if self.verbose {
            self.tell(message);
        }
    }

    fn phase_started(&self, name: &'static str, total_bytes: u64) {
        if !self.bars {
            return;
        }
        let bar =
            ProgressBar::with_draw_target(Some(total_bytes), ProgressDrawTarget::stderr_with_hz(8));
        let template = "{prefix:>10} {bar:32} {percent:>3}%  {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸ "));
        }
        bar.set_prefix(name);
        bar.enable_steady_tick(Duration::from_millis(250));
        *self.bar() = Some(bar);
    }

    fn advanced(&self, bytes: u64) {
        if let Some(bar) = &*self.bar() {
            bar.inc(bytes);
        }
    }

    fn phase_ended(&self) {
        if let Some(bar) = self.bar().take() {
            bar.finish_and_clear();
        }
    }
}
