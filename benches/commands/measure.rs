//! Measures the time, memory and I/O of one run of a program.
//!
//! A helper process (this program with `HELPER` set) starts each run, so that the resource usage of its children is
//! that of this run alone.

use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

const HELPER: &str = "PBFHOGG_BENCH_HELPER";
/// Environment variable with the exit status that the helper expects.
const HELPER_STATUS: &str = "PBFHOGG_BENCH_STATUS";

/// The resource usage of a run: times in seconds, sizes in MB.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Usage {
    pub wall: f64,
    pub cpu: f64,
    pub peak_mb: f64,
    pub read_mb: f64,
    pub written_mb: f64,
}

impl Usage {
    /// The median of each value.
    pub fn median(runs: &[Self]) -> Option<Self> {
        let of = |value: fn(&Self) -> f64| median(runs.iter().map(value).collect());
        Some(Self {
            wall: of(|usage| usage.wall)?,
            cpu: of(|usage| usage.cpu)?,
            peak_mb: of(|usage| usage.peak_mb)?,
            read_mb: of(|usage| usage.read_mb)?,
            written_mb: of(|usage| usage.written_mb)?,
        })
    }
}

pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Runs a program and returns its resource usage. An exit status other than `status` is an error.
pub fn run(program: &Path, arguments: &[String], status: i32) -> Result<Usage, String> {
    // Flushes the writes of the run before, so that this run does not wait for them.
    let _ = Command::new("sync").status();
    let helper = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(helper)
        .env(HELPER, program)
        .env(HELPER_STATUS, status.to_string())
        .args(arguments)
        .stderr(Stdio::inherit())
        .output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!(
            "{} {} failed",
            program.display(),
            arguments.join(" ")
        ));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

/// Runs the program that the environment names, if this process is a helper; `None` otherwise.
pub fn as_helper() -> Option<ExitCode> {
    let program = std::env::var_os(HELPER)?;
    let expected: i32 = std::env::var(HELPER_STATUS).ok()?.parse().ok()?;
    let mut command = Command::new(program);
    command
        .args(std::env::args_os().skip(1))
        .env_remove(HELPER)
        .env_remove(HELPER_STATUS)
        .stdout(Stdio::null());
    let started = Instant::now();
    let done = command
        .status()
        .is_ok_and(|status| status.code() == Some(expected));
    let wall = started.elapsed().as_secs_f64();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    let [read_mb, written_mb] = io_of_children();
    let usage = Usage {
        wall,
        cpu: seconds(usage.user_time()) + seconds(usage.system_time()),
        // Linux reports kB.
        peak_mb: usage.max_rss() as f64 / 1000.0,
        read_mb,
        written_mb,
    };
    println!("{}", serde_json::to_string(&usage).unwrap_or_default());
    Some(if done {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The number of MB that the children read and wrote. Linux adds them to the parent once it has waited for a child.
fn io_of_children() -> [f64; 2] {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    ["rchar: ", "wchar: "].map(|name| {
        let value = io
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .and_then(|value| value.parse::<f64>().ok());
        value.unwrap_or(0.0) / 1e6
    })
}
