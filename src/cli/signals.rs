//! Ends the process on SIGINT, SIGTERM and SIGHUP, without leaving temporary files behind.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Makes SIGINT, SIGTERM and SIGHUP remove unfinished outputs and end the process with status 130, 143 and 129, except
/// signals that the process ignored from its start. Makes a write beyond the file size limit fail (SIGXFSZ), instead
/// of ending the process.
pub fn install() {
    // If the system refuses, the signals keep their default effect: the process ends, and a temporary file may
    // remain on a file system without `O_TMPFILE`.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    let wanted: Vec<i32> = [SIGINT, SIGTERM, SIGHUP]
        .into_iter()
        .filter(|signal| !is_ignored(*signal))
        .collect();
    if let Ok(mut signals) = Signals::new(wanted) {
        let _ = std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                if let Some(signal) = signals.forever().next() {
                    crate::io::abandon_unfinished();
                    say_goodbye();
                    std::process::exit(128 + signal);
                }
            });
    }
}

/// The wish of the user that the process ends: SIGINT or SIGTERM. A second signal ends it at once.
pub struct EndRequest(Arc<AtomicBool>);

/// Makes SIGINT and SIGTERM a wish that the caller looks for.
pub fn on_request() -> std::io::Result<EndRequest> {
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    let wanted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, wanted.clone())?;
        signal_hook::flag::register(signal, wanted.clone())?;
    }
    Ok(EndRequest(wanted))
}

impl EndRequest {
    /// Whether the process is to end.
    pub fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits for some time, or until the process is to end. Returns whether it is.
    pub fn wait(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while !self.is_wanted() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
        self.is_wanted()
    }
}

/// Prints to standard error why the process ends. Waits at most 200 ms, because the write may block.
fn say_goodbye() {
    let (said, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _ = std::io::stderr().write_all(b"\npbfhogg: interrupted\n");
        let _ = said.send(());
    });
    let _ = wait.recv_timeout(Duration::from_millis(200));
}

/// Whether the process was started with a signal ignored, as by `nohup` or in the background of a shell.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}
