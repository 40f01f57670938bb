//! Augmented diffs when something goes wrong: kills, a full disk, a damaged base.

use crate::common::kills::{content, end_after, killed_at, kills, moment, names, time_of};
use crate::common::{in_turn, is_long, pbfhogg, run_fail, run_ok};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A world and the changes of three days.
struct World {
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        run_ok(&[
            &"synth",
            &"-q",
            &"--objects",
            &if is_long() { "100000" } else { "60000" },
            &"--changes",
            &"3",
            &"--changes-dir",
            &world.dir.path(),
            &"-o",
            &world.path("base.osm.pbf"),
        ]);
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The command that writes the changesets of some days to a directory.
    fn split(&self, days: &[&str], directory: &Path) -> Command {
        let mut command = pbfhogg();
        command.args(["augmented-diff", "-q", "--split"]);
        command.arg(self.path("base.osm.pbf"));
        command.args(days.iter().map(|day| self.path(&format!("{day}.osc.gz"))));
        command.arg("-o").arg(directory);
        command
    }

    /// Copies the files of a directory to a new one.
    fn copy(&self, from: &Path, name: &str) -> PathBuf {
        let to = self.path(name);
        std::fs::create_dir(&to).unwrap();
        for file in names(from) {
            std::fs::copy(from.join(&file), to.join(&file)).unwrap();
        }
        to
    }
}

/// The files of a directory by name, without temporary ones.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let all = names(directory).into_iter();
    let files = all.filter(|name| name.ends_with(".adiff"));
    files
        .map(|name| {
            let text = std::fs::read(directory.join(&name)).unwrap();
            (name, text)
        })
        .collect()
}

#[test]
fn a_killed_run_leaves_whole_files_and_the_next_one_completes_it() {
    let world = World::new();
    let [before, after] = ["before", "after"].map(|name| world.path(name));
    time_of(&mut world.split(&["001"], &before));
    let takes = time_of(&mut world.split(&["001"], &after));
    // Changesets of the first day go on, and new ones begin.
    time_of(&mut world.split(&["001", "002"], &after));
    let (old, new) = (files(&before), files(&after));
    assert!(
        old.len() > 20 && new.len() > old.len(),
        "{} {}",
        old.len(),
        new.len()
    );
    let check = |directory: &Path| {
        for file in files(directory) {
            assert!(old.contains(&file) || new.contains(&file), "{}", file.0);
        }
        time_of(&mut world.split(&["001", "002"], directory));
        assert!(files(directory) == new);
        assert_eq!(names(directory).len(), new.len(), "nothing else is left");
    };
    for number in 0..kills() {
        let directory = world.copy(&before, &format!("killed-{number}"));
        let command = &mut world.split(&["001", "002"], &directory);
        end_after(command, moment(number, takes), Signal::KILL);
        check(&directory);
    }
    // While files get their names.
    for number in in_turn(0, 2, [1, 2, 5, 30]) {
        let directory = world.copy(&before, &format!("renamed-{number}"));
        let command = world.split(&["001", "002"], &directory);
        match killed_at("rename", number, &command) {
            None => return,
            Some(is_killed) => assert!(is_killed, "{number}"),
        }
        check(&directory);
    }
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    let world = World::new();
    let directory = world.path("changesets");
    let takes = time_of(&mut world.split(&["001", "002", "003"], &directory));
    let whole = content(&directory).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    for number in 0..kills() {
        let mut command = world.split(&["001", "002", "003"], &directory);
        if !end_after(&mut command, takes / 8, Signal::INT).success() {
            // A run that has begun to give the files their names has nothing but whole files.
            let left = content(&directory).unwrap_or_default();
            let is_whole = left.iter().all(|file| whole.contains(file));
            assert!(is_whole, "run {number}: {} files", left.len());
        }
        let _ = std::fs::remove_dir_all(&directory);
    }
}

#[test]
fn a_full_disk_leaves_nothing() {
    let world = World::new();
    let [base, changes] = ["base.osm.pbf", "001.osc.gz"].map(|name| world.path(name));
    let program = pbfhogg().get_program().to_owned();
    for output in ["x.adiff", "x.geojson", "x.parquet", "--split dir"] {
        let command = format!(
            "trap '' XFSZ; ulimit -f 4; cd {}; exec {} augmented-diff {} {} -o {output}",
            world.dir.path().display(),
            program.display(),
            base.display(),
            changes.display(),
        );
        let command = command.replace("-o --split", "--split -o");
        let output_of = Command::new("sh").args(["-c", &command]).output().unwrap();
        let message = String::from_utf8(output_of.stderr).unwrap();
        assert_eq!(output_of.status.code(), Some(2), "{output}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        for name in ["x.adiff", "x.geojson", "x.parquet"] {
            assert!(!world.path(name).exists(), "{name}");
        }
        assert!(content(&world.path("dir")).unwrap_or_default().is_empty());
    }
}

#[test]
fn a_damaged_base_is_one_line_and_no_output() {
    let world = World::new();
    let [base, damaged, changes, output] =
        ["base.osm.pbf", "damaged.osm.pbf", "001.osc.gz", "x.adiff"].map(|name| world.path(name));
    let mut bytes = std::fs::read(&base).unwrap();
    // All blobs of ways are read.
    let middle = bytes.len() * 9 / 10;
    bytes[middle..middle + 500].fill(0x55);
    std::fs::write(&damaged, bytes).unwrap();
    let message = run_fail(&[&"augmented-diff", &"-q", &damaged, &changes, &"-o", &output]);
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.contains("damaged.osm.pbf"), "{message}");
    assert!(!output.exists());
}

#[test]
fn the_order_of_change_files_does_not_matter() {
    let world = World::new();
    let base = world.path("base.osm.pbf");
    let days = ["001.osc.gz", "002.osc.gz", "003.osc.gz"].map(|name| world.path(name));
    let [one, two, three] = &days;
    let forwards = run_ok(&[&"augmented-diff", &"-q", &base, one, two, three]).stdout;
    let backwards = run_ok(&[&"augmented-diff", &"-q", &base, three, one, two]).stdout;
    assert!(forwards == backwards);
    let [in_order, shuffled] = ["in-order", "shuffled"].map(|name| world.path(name));
    time_of(&mut world.split(&["001", "002", "003"], &in_order));
    time_of(&mut world.split(&["003", "001", "002"], &shuffled));
    assert!(files(&in_order) == files(&shuffled));
}

#[test]
fn no_input_and_no_other_output_is_overwritten() {
    let world = World::new();
    let [base, changes, next] =
        ["base.osm.pbf", "001.osc.gz", "next.osm.pbf"].map(|name| world.path(name));
    let before = std::fs::read(&changes).unwrap();
    let changes_as_xml = world.path("changes.xml.gz");
    std::fs::copy(&changes, &changes_as_xml).unwrap();
    let apply = |diff: &dyn AsRef<std::ffi::OsStr>, output: &dyn AsRef<std::ffi::OsStr>| {
        run_fail(&[
            &"apply-changes",
            &"-O",
            &"--augmented-diff",
            diff,
            &base,
            &changes_as_xml,
            &"-o",
            output,
        ])
    };
    assert!(apply(&changes_as_xml, &next).contains("input"));
    let both = world.path("both.xml");
    assert!(apply(&both, &both).contains("of their own"));
    assert!(apply(&"-", &"-").contains("of their own"));
    run_fail(&[&"augmented-diff", &"-O", &base, &changes, &"-o", &changes]);
    assert!(std::fs::read(&changes).unwrap() == before);
    assert!(!next.exists());
}
