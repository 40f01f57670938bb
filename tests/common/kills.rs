//! Runs that a signal ends, and what they leave.

use super::is_long;
use super::missing::allowed;
use super::oracle::strace;
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The names in a directory, in order.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The paths and contents of all files below a directory, in order; `None` if there is no such directory.
pub fn content(directory: &Path) -> Option<Vec<(PathBuf, Vec<u8>)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).ok()? {
        let path = entry.unwrap().path();
        match content(&path) {
            Some(below) => found.extend(below),
            None => found.push((path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    found.sort();
    Some(found)
}

/// Starts a command, and sends it a signal after a time.
pub fn end_after(command: &mut Command, delay: Duration, signal: Signal) -> ExitStatus {
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    std::thread::sleep(delay);
    // The process is not waited for yet, so that the number is still its own.
    let _ = kill_process(Pid::from_child(&child), signal);
    child.wait().unwrap()
}

/// The time that a command takes, which must succeed.
pub fn time_of(command: &mut Command) -> Duration {
    let start = Instant::now();
    let output = command.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {message}");
    start.elapsed()
}

/// The number of kills of a command: with those of all tests, 300 in the long version.
pub fn kills() -> u32 {
    if is_long() { 40 } else { 4 }
}

/// The moment of a kill in a run that takes some time: every second one is near the end, where files get their names.
pub fn moment(number: u32, takes: Duration) -> Duration {
    let part = number.wrapping_mul(2_654_435_761) % 1000;
    match number % 2 {
        0 => takes * part / 1000,
        _ => takes * (700 + part * 2 / 5) / 1000,
    }
}

/// Runs a command under strace, which kills it at the `nth` call of a kind. `None` if strace cannot be used here, and
/// whether the command was killed otherwise.
pub fn killed_at(call: &str, nth: u32, command: &Command) -> Option<bool> {
    use std::os::unix::process::ExitStatusExt;
    let inject = format!("inject={call}:signal=SIGKILL:when={nth}");
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq", "-o", "/dev/null", "-e", &inject]);
    traced.arg(command.get_program()).args(command.get_args());
    if let Some(directory) = command.get_current_dir() {
        traced.current_dir(directory);
    }
    if !strace() {
        return None;
    }
    let output = traced.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    let is_traced = !message.contains("ptrace") && !message.contains("invalid system call");
    if !allowed(is_traced, "processes cannot be traced") {
        return None;
    }
    Some(output.status.signal() == Some(9) || output.status.code() == Some(137))
}
