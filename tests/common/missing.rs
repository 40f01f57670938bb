//! Comparisons that were not made, because a program is not there or the machine does not allow a step: the end of the
//! run names them, with the reasons.

use super::oracle::available;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::panic::Location;
use std::sync::Mutex;

/// The tests that could not compare, by reason.
static MISSED: Mutex<BTreeMap<String, BTreeSet<String>>> = Mutex::new(BTreeMap::new());

/// The number of tests that the summary names for each reason.
const NAMED: usize = 5;

/// Whether a missing program fails a test: in CI (`CI` is set), and with `PBFHOGG_REQUIRE_ORACLES=1`; but not with
/// `PBFHOGG_WITHOUT_ORACLES=1`.
pub fn is_required() -> bool {
    let is_set = |name: &str| {
        let value = std::env::var(name).unwrap_or_default();
        !["", "0", "false"].contains(&value.as_str())
    };
    !is_set("PBFHOGG_WITHOUT_ORACLES") && (is_set("PBFHOGG_REQUIRE_ORACLES") || is_set("CI"))
}

/// Whether the machine allows a step, such as a mount, of which containers are often deprived. If it does not, the test
/// is named at the end of the run, and has to leave the step out. No installation helps, so the test does not fail.
#[track_caller]
pub fn allowed(is_allowed: bool, reason: &str) -> bool {
    if !is_allowed {
        record(reason, Location::caller());
    }
    is_allowed
}

/// Notes that a test cannot compare. Threads that a test starts have no name: their place in the source stands for it.
pub fn record(reason: &str, place: &Location) {
    let thread = std::thread::current();
    let name = thread.name().filter(|name| name.contains("::"));
    let test = name.map_or_else(|| place.to_string(), str::to_owned);
    let mut missed = MISSED.lock().unwrap();
    if missed.is_empty() {
        at_exit();
    }
    missed.entry(reason.to_owned()).or_default().insert(test);
}

/// Registers the summary with the C library: the harness has no hook for the end of a run, and captures the output of
/// tests that pass.
#[allow(unsafe_code)]
fn at_exit() {
    unsafe extern "C" {
        fn atexit(function: extern "C" fn()) -> std::ffi::c_int;
    }
    extern "C" fn print() {
        let missed = MISSED.lock();
        let text = missed.map_or_else(|_| String::new(), |missed| summary(&missed));
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
    // SAFETY: `atexit` takes a function without arguments and result, which does not unwind.
    let registered = unsafe { atexit(print) };
    assert_eq!(registered, 0);
}

fn summary(missed: &BTreeMap<String, BTreeSet<String>>) -> String {
    let tests: BTreeSet<&String> = missed.values().flatten().collect();
    let mut text = format!(
        "NOT COMPARED: {} tests passed without a part or all of what they compare:\n",
        tests.len()
    );
    for (reason, tests) in missed {
        let named: Vec<&str> = tests.iter().take(NAMED).map(String::as_str).collect();
        let more = match tests.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        text += &format!("  {reason}: {}{more}\n", named.join(", "));
    }
    text + "`.ci/run` installs the programs; with PBFHOGG_REQUIRE_ORACLES=1 a missing one is an error.\n\n"
}

/// A test that runs this one alone, without programs on the PATH.
const ALONE: &str = "common::missing::a_program_that_is_nowhere_is_asked_for";

#[test]
fn a_program_that_is_nowhere_is_asked_for() {
    if std::env::var_os("PBFHOGG_TEST_OF_MISSING").is_some() {
        available(false, "no oracle on the PATH");
    }
}

#[test]
fn a_missing_program_is_named_at_the_end_and_fails_in_ci() {
    let run = |name: &str| {
        let mut tests = std::process::Command::new(std::env::current_exe().unwrap());
        for name in ["CI", "PBFHOGG_REQUIRE_ORACLES", "PBFHOGG_WITHOUT_ORACLES"] {
            tests.env_remove(name);
        }
        tests.args(["--exact", ALONE, "--test-threads=2"]);
        tests.env("PBFHOGG_TEST_OF_MISSING", "1").env(name, "1");
        let ran = tests.output().unwrap();
        let stderr = String::from_utf8(ran.stderr).unwrap();
        (ran.status.success(), stderr)
    };
    let (passed, said) = run("NO_SUCH_SETTING");
    let line = format!("\n  no oracle on the PATH: {ALONE}\n");
    assert!(passed && said.contains("NOT COMPARED: 1 tests"), "{said}");
    assert!(said.contains(&line), "{said}");
    assert!(run("PBFHOGG_WITHOUT_ORACLES").0);
    assert!(!run("CI").0);
    assert!(!run("PBFHOGG_REQUIRE_ORACLES").0);
}
