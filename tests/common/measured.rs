//! The memory and the time of commands, measured by a process of their own.
//!
//! The peak memory of a process is at least that of the process that starts it. The test program can be large, so it
//! starts itself again: that process runs the one test `measured`, which starts the command, and measures its children.

use nix::sys::resource::{UsageWho, getrusage};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The environment variable with the arguments of the command, one a line.
const ARGUMENTS: &str = "PBFHOGG_MEASURED_ARGUMENTS";
/// The environment variable with the path of the file that receives the measurements.
const REPORT: &str = "PBFHOGG_MEASURED_REPORT";

/// The name of the test that [`run_as_helper`] is.
pub const HELPER: &str = "hostile_blocks::measured";

/// A command that has ended.
#[derive(Debug)]
pub struct Measured {
    /// The exit status; `None` if a signal ended the command.
    pub status: Option<i32>,
    /// Standard error.
    pub stderr: String,
    /// The peak resident memory in bytes.
    pub peak: u64,
    /// The wall time.
    pub wall: Duration,
    /// The time of all processors.
    pub cpu: Duration,
}

/// Runs a command, which is killed after `most_time` of wall time.
pub fn measure(arguments: &[PathBuf], most_time: Duration) -> Measured {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("report.json");
    let lines: Vec<String> = arguments
        .iter()
        .map(|argument| argument.to_str().expect("a path that is text").to_owned())
        .collect();
    let seconds = most_time.as_secs().max(1).to_string();
    let lines = [
        vec![
            "timeout".to_owned(),
            "-s".to_owned(),
            "KILL".to_owned(),
            seconds,
        ],
        lines,
    ];
    let ended = Command::new(std::env::current_exe().unwrap())
        .args([HELPER, "--exact", "--nocapture", "--test-threads=1"])
        .env(ARGUMENTS, lines.concat().join("\n"))
        .env(REPORT, &report)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&report).expect("a report")).unwrap();
    let number = |key: &str| report[key].as_u64().unwrap();
    Measured {
        status: report["status"].as_i64().map(|status| status as i32),
        stderr: String::from_utf8_lossy(&ended.stderr).into_owned(),
        peak: number("peak"),
        wall: Duration::from_millis(number("wall")),
        cpu: Duration::from_millis(number("cpu")),
    }
}

/// Runs and measures the command of the environment, if there is one.
pub fn run_as_helper() {
    let variables = (std::env::var(ARGUMENTS), std::env::var(REPORT));
    let (Ok(arguments), Ok(report)) = variables else {
        return;
    };
    let mut words = arguments.lines();
    let start = Instant::now();
    let status = Command::new(words.next().expect("a program"))
        .args(words)
        .env_remove(ARGUMENTS)
        .stdout(Stdio::null())
        .status()
        .expect("the command starts");
    let wall = start.elapsed();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let micros = [usage.user_time(), usage.system_time()]
        .map(|time| time.tv_sec() * 1_000_000 + time.tv_usec());
    let measured = serde_json::json!({
        "status": status.code(),
        // Linux gives kB.
        "peak": usage.max_rss() * 1024,
        "wall": wall.as_millis() as u64,
        "cpu": micros.iter().sum::<i64>() / 1000,
    });
    std::fs::write(report, measured.to_string()).unwrap();
}
