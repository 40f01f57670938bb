//! Ends the process on SIGINT, SIGTERM and SIGHUP, without leaving temporary files behind.

use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Makes SIGINT, SIGTERM and SIGHUP remove unfinished outputs and end the process with status 130, 143 and 129. Signals
/// that were ignored when the process started stay ignored. On macOS, which does not report ignored signals, SIGHUP is
/// left unchanged. Also makes a write beyond the file size limit (SIGXFSZ) fail instead of ending the process.
#[cfg(unix)]
pub fn install() {
    use signal_hook::consts::SIGHUP;
    use signal_hook::iterator::Signals;
    ignore_file_size_signal();
    let wanted: Vec<i32> = match crate::system::ignored_signals() {
        Some(ignored) => [SIGINT, SIGTERM, SIGHUP]
            .into_iter()
            .filter(|signal| ignored & (1 << (signal - 1)) == 0)
            .collect(),
        None if cfg!(target_os = "linux") => vec![SIGINT, SIGTERM, SIGHUP],
        // Outside of Linux, it is unknown whether `nohup` has made the process ignore SIGHUP, so SIGHUP is left
        // unchanged.
        None => vec![SIGINT, SIGTERM],
    };
    // If the handlers cannot be installed, the signals keep their default effect. A signal then ends the process, and a
    // temporary file may remain on a file system without `O_TMPFILE`.
    if let Ok(mut signals) = Signals::new(wanted) {
        spawn_signal_thread(move || signals.forever().next());
    }
}

/// Makes Ctrl-C remove unfinished outputs and end the process.
#[cfg(windows)]
pub fn install() {
    let wanted = Arc::new(AtomicBool::new(false));
    if signal_hook::flag::register(SIGINT, wanted.clone()).is_ok() {
        let request = EndRequest(wanted);
        spawn_signal_thread(move || {
            while !request.wait(Duration::from_secs(3600)) {}
            Some(SIGINT)
        });
    }
}

/// Starts a thread that ends the process after a signal. The thread calls `wait`, which must block until a signal
/// arrives. The thread then removes unfinished outputs and ends the process.
fn spawn_signal_thread(mut wait: impl FnMut() -> Option<i32> + Send + 'static) {
    let _ = std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            if let Some(signal) = wait() {
                crate::io::abandon_unfinished();
                print_interruption();
                std::process::exit(128 + signal);
            }
        });
}

/// Makes a write beyond the file size limit (SIGXFSZ) fail instead of ending the process.
fn ignore_file_size_signal() {
    #[cfg(unix)]
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// A request to end the process, made by SIGINT or SIGTERM. A second signal ends the process at once.
pub struct EndRequest(Arc<AtomicBool>);

/// Makes SIGINT and SIGTERM set the flag of the returned request instead of ending the process. The caller must poll
/// the request.
pub fn catch_end_request() -> std::io::Result<EndRequest> {
    ignore_file_size_signal();
    let wanted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, wanted.clone())?;
        signal_hook::flag::register(signal, wanted.clone())?;
    }
    Ok(EndRequest(wanted))
}

impl EndRequest {
    /// Whether the end of the process was requested.
    pub fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits for the given time, or until the end of the process is requested. Returns whether it was requested.
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

/// Prints to standard error that the process was interrupted. Waits at most 200 ms, because the write may block.
fn print_interruption() {
    let (said, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _ = std::io::stderr().write_all(b"\npbfhogg: interrupted\n");
        let _ = said.send(());
    });
    let _ = wait.recv_timeout(Duration::from_millis(200));
}
