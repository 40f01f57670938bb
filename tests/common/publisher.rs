//! A publisher of changes: a directory as a replication server has it, and the data of each day.

use super::kills::content;
use super::{Arg, pbfhogg, run_ok};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The number of days of changes.
pub const DAYS: usize = 12;

/// The names and the contents of the files of a server and of the data, which are made once for all tests.
fn made() -> &'static [(String, Vec<u8>)] {
    static MADE: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
    MADE.get_or_init(make)
}

fn make() -> Vec<(String, Vec<u8>)> {
    const FOLDER: &str = "server/000/000";
    let directory = tempfile::tempdir().unwrap();
    let changes = directory.path().join(FOLDER);
    fs::create_dir_all(&changes).unwrap();
    let synth = |options: &[Arg], day: usize| {
        let data = directory.path().join(format!("day{day}.osm.pbf"));
        // Most small worlds have no changes on the first days. This one has some on the days 1, 4, 5 and 7.
        let world: [Arg; 4] = [&"--objects", &"4000", &"--seed", &"23"];
        let args: [Arg; 4] = [&"synth", &"-q", &"-o", &data];
        run_ok(&[&args[..], &world[..], options].concat());
    };
    let days = DAYS.to_string();
    synth(&[&"--changes", &days, &"--changes-dir", &changes], 0);
    for day in 1..=DAYS {
        synth(&[&"--day", &day.to_string()], day);
    }
    // The state before the first change file. The newest object is older than the first day.
    let state = "sequenceNumber=0\ntimestamp=2025-12-01T00\\:00\\:00Z\n";
    fs::write(changes.join("000.state.txt"), state).unwrap();
    let [before, after] = [0, 1].map(|day| directory.path().join(format!("day{day}.osm.pbf")));
    assert_ne!(fs::read(before).unwrap(), fs::read(after).unwrap());
    let data = content(directory.path()).expect("the directory was made");
    let name = |path: &Path| {
        let name = path.strip_prefix(directory.path()).unwrap();
        name.to_str().unwrap().to_owned()
    };
    let named = data.into_iter().map(|(path, bytes)| (name(&path), bytes));
    named.collect()
}

/// A server in a directory with the changes of some days, and the data of each day.
pub struct Publisher {
    directory: tempfile::TempDir,
}

impl Publisher {
    pub fn new() -> Self {
        let publisher = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        fs::create_dir_all(publisher.path("server/000/000")).unwrap();
        for (name, bytes) in made() {
            fs::write(publisher.path(name), bytes).unwrap();
        }
        publisher.publish(DAYS);
        publisher
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The data after some days.
    pub fn data(&self, day: usize) -> PathBuf {
        self.path(&format!("day{day}.osm.pbf"))
    }

    pub fn server(&self) -> String {
        format!("file://{}", self.path("server").display())
    }

    /// Makes a day the newest state.
    pub fn publish(&self, day: usize) {
        let state = self.path(&format!("server/000/000/{day:03}.state.txt"));
        // A reader sees one state or the other.
        let new = self.path("server/state.txt.new");
        fs::copy(state, &new).unwrap();
        fs::rename(new, self.path("server/state.txt")).unwrap();
    }

    /// A copy of the data of the first day.
    pub fn copy(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::copy(self.data(0), &path).unwrap();
        path
    }

    /// Runs `update` with a server and old data allowed. Returns the exit status and the report.
    pub fn update(&self, file: &Path, more: &[&str]) -> (i32, Value) {
        let mut command = update_from(&self.server(), file);
        let output = command.arg("--json").args(more).output().unwrap();
        let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
            panic!("no report: {}", String::from_utf8_lossy(&output.stderr));
        });
        (output.status.code().unwrap(), report)
    }

    /// The day whose data a file has, as its header says. Its objects must be those of the day.
    pub fn day_of(&self, file: &Path) -> usize {
        let facts = run_ok(&[&"inspect", &"--json", &file]);
        let facts: Value = serde_json::from_slice(&facts.stdout).unwrap();
        let day = facts["replication_sequence"].as_u64().unwrap() as usize;
        run_ok(&[&"diff", &"-q", &file, &self.data(day)]);
        let state = fs::read_to_string(self.path(&format!("server/000/000/{day:03}.state.txt")));
        if let (1.., Ok(state)) = (day, state) {
            // Where the server has no state for a change file, the time of one before it is known.
            let time = facts["replication_timestamp"].as_str().unwrap();
            let published = state.replace('\\', "");
            let (_, published) = published.split_once("timestamp=").unwrap();
            assert!(time <= published.trim());
        }
        day
    }
}

/// `update` of a file from a server, with old data allowed and hardly any pauses.
pub fn update_from(server: &str, file: &Path) -> Command {
    let mut command = pbfhogg();
    command
        .args([
            "update",
            "--no-progress",
            "--max-age",
            "9999",
            "--first-pause",
            "1",
        ])
        .args(["--server", server])
        .arg(file);
    command
}
