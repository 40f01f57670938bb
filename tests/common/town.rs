//! A file that is updated from a publisher of changes, and the updates that a command was started for.

use super::publisher::{Publisher, update_from};
use super::{Arg, run_ok, stderr};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A command that notes for which update it was started.
pub const NOTE: &str = "echo \"$PBFHOGG_SEQUENCE_BEFORE $PBFHOGG_SEQUENCE\" >> noted";

/// A server, and a directory with a file that is updated.
pub struct Town {
    pub publisher: Publisher,
    pub directory: PathBuf,
}

impl Town {
    pub fn new() -> Self {
        let publisher = Publisher::new();
        let directory = publisher.path("town");
        fs::create_dir(&directory).unwrap();
        fs::copy(publisher.data(0), directory.join("town.osm.pbf")).unwrap();
        Self {
            publisher,
            directory,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub fn command(&self, more: &[&str]) -> Command {
        let mut update = update_from(&self.publisher.server(), Path::new("town.osm.pbf"));
        update.current_dir(&self.directory).args(more);
        update
    }

    /// Runs an update. Returns its exit status and what it printed.
    pub fn update(&self, more: &[&str]) -> (i32, Output) {
        let output = self.command(more).output().unwrap();
        let status = output.status.code().unwrap();
        assert!(!stderr(&output).contains("panicked"), "{output:?}");
        (status, output)
    }

    pub fn day(&self) -> usize {
        self.publisher.day_of(&self.path("town.osm.pbf"))
    }

    /// The days before and after each update that was noted.
    pub fn noted(&self) -> Vec<(usize, usize)> {
        let text = fs::read_to_string(self.path("noted")).unwrap_or_default();
        let pairs = text.lines().map(|line| {
            let (before, after) = line.split_once(' ').unwrap();
            (before.parse().unwrap(), after.parse().unwrap())
        });
        pairs.collect()
    }

    /// The change files of some days.
    pub fn changes(&self, days: std::ops::RangeInclusive<usize>) -> Vec<PathBuf> {
        let path = |day| format!("server/000/000/{day:03}.osc.gz");
        days.map(|day| self.publisher.path(&path(day))).collect()
    }

    /// Returns the output of `augmented-diff` for the changes of some days.
    pub fn plain(&self, days: std::ops::RangeInclusive<usize>, more: &[&str]) -> Vec<u8> {
        let base = self.publisher.data(days.start() - 1);
        let changes = self.changes(days);
        let mut args: Vec<Arg> = vec![&"augmented-diff", &"-q", &base];
        args.extend(changes.iter().map(|path| path as Arg));
        args.extend(more.iter().map(|word| word as Arg));
        run_ok(&args).stdout
    }
}
