//! Ending on SIGINT, SIGTERM and SIGHUP, at any moment, without leaving anything behind.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// Has SIGINT, SIGTERM and SIGHUP end the process with status 130, 143 and 129, and a write beyond the limit for
/// files fail rather than end the process.
pub fn install() {
    // Should the system refuse, signals do what they do by default: nothing is lost, a temporary file
    // may stay where the file system knows no unnamed ones.
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

/// Says why the process ends, unless nobody listens.
fn say_goodbye() {
    let (said, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _ = std::io::stderr().write_all(b"\npbfhogg: interrupted\n");
        let _ = said.send(());
    });
    let _ = wait.recv_timeout(Duration::from_millis(200));
}

/// Whether whoever started the process wants it not to be disturbed (`nohup`, a shell's background).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}
