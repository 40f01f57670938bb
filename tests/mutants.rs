//! Mutated files: every command ends with status 0, 1 or 2, in bounded memory and time, leaves no output if it fails,
//! and takes what `check --full` accepts. `PBFHOGG_MUTANTS=2000` tries so many files with all commands (`.ci/long
//! mutants`), those of the program `PBFHOGG_PROGRAM` if it is given; a sample is always tried.

use crate::common::every::{self, arguments};
use crate::common::mutants::{mutant, real_seeds, small_seeds};
use crate::common::random::Random;
use crate::common::{craft, mixed_objects};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The maximum number of bytes of data of a command with one job.
const MOST_BYTES: u64 = 420_000_000;
/// The maximum time of a command.
const MOST_TIME: Duration = Duration::from_secs(60);

/// The reasons for which a command refuses a file that `check --full` accepts: the file is of another sort.
const OTHER_SORTS: [&str; 3] = ["history file", "change file", "run `pbfhogg sort` first"];

/// Whether `check --full` accepts the file.
fn is_accepted(dir: &Path) -> bool {
    let mut check = Command::new(env!("CARGO_BIN_EXE_pbfhogg"));
    check
        .args(["check", "--full", "-j1"])
        .arg(dir.join("in.osm.pbf"));
    check.output().unwrap().status.success()
}

/// Runs a command on a file. Returns what is wrong with it. A command may not refuse a file that is accepted.
fn complaint(command: &str, dir: &Path, is_accepted: bool) -> Result<i32, String> {
    let output = dir.join("out");
    let mut tool = Command::new("prlimit");
    tool.arg(format!("--data={MOST_BYTES}"));
    tool.args(["timeout", "-s", "KILL", "120"]);
    let program = std::env::var_os("PBFHOGG_PROGRAM");
    tool.arg(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_pbfhogg").into()));
    let path = |name: &str| dir.join(name);
    let (input, other, day) = (path("in.osm.pbf"), path("other.osm.pbf"), path("day.osc"));
    tool.args(arguments(
        command,
        &[
            ("{in}", &input),
            ("{other}", &other),
            ("{day}", &day),
            ("{out}", &output),
        ],
    ));
    let start = Instant::now();
    let ended = tool.arg("-j1").stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    let is_written = every::remove_outputs(&output);
    let errors = said.matches("pbfhogg: error: ").count();
    let fault = match ended.status.code() {
        Some(0 | 1) if errors > 0 => "an error without its status",
        Some(0 | 1) => "",
        Some(2) if is_written => "an output of a command that failed",
        Some(2) if errors != 1 => "not one error",
        Some(2) if said.contains("internal error") => "an internal error",
        Some(2) if said.contains("no memory is left") => "too much memory",
        Some(2)
            if is_accepted
                && !command.contains("{other}")
                && !OTHER_SORTS.iter().any(|sort| said.contains(sort)) =>
        {
            "check --full accepts the file"
        }
        Some(2) => "",
        _ => "a signal or a panic",
    };
    let fault = if start.elapsed() > MOST_TIME {
        "too much time"
    } else {
        fault
    };
    match fault {
        "" => Ok(ended.status.code().unwrap_or_default()),
        fault => Err(format!("{command}: {fault}: {said}")),
    }
}

#[test]
fn every_command_ends_well_on_mutated_files() {
    let asked = std::env::var("PBFHOGG_MUTANTS").ok();
    let asked = asked.and_then(|count| count.parse::<usize>().ok());
    let commands = every::lines(&["reads", "copies"]);
    let seeds = [small_seeds(), real_seeds()].concat();
    let next = AtomicUsize::new(0);
    let (wrong, ends) = (Mutex::new(Vec::new()), Mutex::new([0; 3]));
    let worker = || {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let other = craft::block(&mixed_objects(), &craft::Shape::USUAL);
        fs::write(path("other.osm.pbf"), craft::plain_file(&[other])).unwrap();
        let changes = "<osmChange version='0.6'><modify><node id='5' version='9' lat='1' lon='1'/></modify></osmChange>";
        fs::write(path("day.osc"), changes).unwrap();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= asked.unwrap_or(10) {
                return;
            }
            let bytes = mutant(&seeds, &mut Random(number as u64));
            fs::write(path("in.osm.pbf"), &bytes).unwrap();
            let is_accepted = is_accepted(dir.path());
            // The sample has two commands for each file.
            let tried = (0..commands.len()).filter(|at| asked.is_some() || at % 15 == number % 15);
            for at in tried {
                match complaint(commands[at], dir.path(), is_accepted) {
                    Ok(status) => ends.lock().unwrap()[status as usize] += 1,
                    Err(fault) => wrong
                        .lock()
                        .unwrap()
                        .push(format!("mutant {number}: {fault}")),
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
        for _ in 0..threads {
            scope.spawn(worker);
        }
    });
    println!(
        "ended with status 0, 1, 2: {:?}",
        ends.into_inner().unwrap()
    );
    let wrong = wrong.into_inner().unwrap();
    assert!(
        wrong.is_empty(),
        "{} faults:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
