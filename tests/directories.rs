//! An output that is a directory, or several files, is whole or not there, whatever ends a run.

use crate::common::islands::{coast_file, coast_objects, island};
use crate::common::kills::{content, end_after, killed_at, kills, moment, names, time_of};
use crate::common::{
    Arg, decode, in_turn, is_long, pbfhogg, run_fail, run_fail_with, run_ok, world,
};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

type Content = Option<Vec<(PathBuf, Vec<u8>)>>;

/// The commands that write tables, or the layers of a coast, as a directory.
const TABLES: [&[&str]; 2] = [
    &[
        "export",
        "-q",
        "--partition",
        "geometry",
        "-f",
        "geoparquet",
    ],
    &["export", "-q", "--raw"],
];

fn command(job: &[&str], input: &Path, output: &Path) -> Command {
    let mut command = pbfhogg();
    command.args(job).arg(input).arg("-o").arg(output);
    command
}

fn run_job(job: &[&str], input: &Path, output: &Path) {
    time_of(&mut command(job, input, output));
}

/// A world, another one, and an empty directory for outputs.
struct Places {
    dir: tempfile::TempDir,
    inputs: [PathBuf; 2],
}

impl Places {
    fn new(elements: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let first = world(dir.path(), elements);
        let second = dir.path().join("second.osm.pbf");
        run_ok(&[&"cat", &"-q", &"-t", &"node,way", &first, &"-o", &second]);
        fs::create_dir(dir.path().join("out")).unwrap();
        Self {
            inputs: [first, second],
            dir,
        }
    }

    fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    /// The content that a job writes for each input.
    fn expected(&self, job: &[&str]) -> [Content; 2] {
        let target = self.out().join("table");
        self.inputs.each_ref().map(|input| {
            let _ = fs::remove_dir_all(&target);
            run_job(job, input, &target);
            content(&target)
        })
    }
}

/// Kills runs of a job, and checks that the directory that it writes is the old one, the new one, or absent.
fn kill_runs(places: &Places, job: &[&str]) {
    let target = places.out().join("table");
    let [old, new] = places.expected(job);
    assert!(old != new);
    let replacing = [job, &["-O"]].concat();
    let mut takes = time_of(&mut command(&replacing, &places.inputs[1], &target));
    for number in 0..kills() {
        // In turn: nothing is there, and the old table is there.
        let has_old = number / 2 % 2 == 0;
        fs::remove_dir_all(&target).unwrap();
        if has_old {
            run_job(job, &places.inputs[0], &target);
        }
        let delay = moment(number, takes);
        let mut run = command(&replacing, &places.inputs[1], &target);
        let status = end_after(&mut run, delay, Signal::KILL);
        let found = content(&target);
        let end = [None, old.clone(), new.clone()]
            .iter()
            .position(|whole| *whole == found);
        let end = end.unwrap_or_else(|| panic!("{job:?} {number}: a part of a table"));
        assert_eq!(end == 1, has_old && end != 2, "{job:?} {number}");
        assert!(!status.success() || end == 2, "{job:?} {number}");
        takes = time_of(&mut command(&replacing, &places.inputs[1], &target));
        assert!(content(&target) == new, "{job:?} {number}");
        assert_eq!(names(&places.out()), ["table"], "{job:?} {number}");
    }
}

#[test]
fn a_table_is_whole_or_absent_when_a_run_is_killed() {
    let places = Places::new(if is_long() { "20000" } else { "5000" });
    for job in TABLES {
        kill_runs(&places, job);
    }
}

/// The command that writes the layers of a coast.
const COAST: &[&str] = &["coastline", "-q", "-b", "0,0,20,10", "--split", "1"];

/// A file with two islands, and one with one of them.
fn coasts() -> Places {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("out")).unwrap();
    let [one, other] = [island([2.0, 2.0, 7.0, 6.0]), island([9.0, 3.0, 12.0, 4.0])];
    let inputs = [
        coast_file(
            dir.path(),
            "both.osm.pbf",
            &coast_objects(&[one.clone(), other]),
        ),
        coast_file(dir.path(), "one.osm.pbf", &coast_objects(&[one])),
    ];
    Places { dir, inputs }
}

#[test]
fn a_coast_is_whole_or_absent_when_a_run_is_killed() {
    kill_runs(&coasts(), COAST);
}

#[test]
fn a_table_is_whole_or_absent_when_a_run_is_killed_at_any_name() {
    kill_at_names(&Places::new("2000"), TABLES[0], 0);
    kill_at_names(&coasts(), COAST, 1);
}

/// Kills runs of a job at the system calls that make, flush and name files; in short runs at those whose turn it is.
fn kill_at_names(places: &Places, job: &[&str], turn: usize) {
    let target = places.out().join("table");
    let [old, new] = places.expected(job);
    let run = command(&[job, &["-O"]].concat(), &places.inputs[1], &target);
    let calls = [
        "mkdir",
        "linkat",
        "fsync",
        "rename",
        "renameat2",
        "unlink",
        "rmdir",
    ];
    for call in in_turn(turn, 2, calls) {
        // In short runs, the first call and the fourth one.
        for nth in (1..30).step_by(if is_long() { 1 } else { 3 }) {
            fs::remove_dir_all(&target).unwrap();
            run_job(job, &places.inputs[0], &target);
            let Some(is_killed) = killed_at(call, nth, &run) else {
                return;
            };
            let found = content(&target);
            assert!(found == old || found == new, "{call} {nth}");
            if !is_killed {
                assert_eq!(names(&places.out()), ["table"], "{call} {nth}");
                break;
            }
            run_job(&[job, &["-O"]].concat(), &places.inputs[1], &target);
            assert!(content(&target) == new, "{call} {nth}");
            assert_eq!(names(&places.out()), ["table"], "{call} {nth}");
            if !is_long() && nth == 4 {
                break;
            }
        }
    }
}

#[test]
fn a_table_is_replaced_if_all_of_it_was_written_by_the_program() {
    let places = Places::new("2000");
    let target = places.out().join("table");
    for job in TABLES {
        let [old, new] = places.expected(job);
        let more = [job, &["-O"]].concat();
        let without_q: Vec<&str> = more.iter().copied().filter(|word| *word != "-q").collect();
        let args = |job: &[&str], input: &Path| {
            let output = command(job, input, &target).output().unwrap();
            String::from_utf8(output.stderr).unwrap()
        };
        let message = args(job, &places.inputs[0]);
        assert!(message.contains("the directory is not empty"), "{message}");
        assert!(content(&target) == new);
        fs::set_permissions(&target, std::os::unix::fs::PermissionsExt::from_mode(0o750)).unwrap();
        run_job(&more, &places.inputs[0], &target);
        assert!(content(&target) == old);
        assert_eq!(target.metadata().unwrap().mode() & 0o777, 0o750);
        let directory = fs::read_dir(&target)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        // Files of others, in the directory and below it, stay there, and are named.
        for (path, bytes) in [
            (target.join("notes.txt"), &b"mine"[..]),
            (target.join("_SUCCESS"), b""),
            (
                directory.join("part-0007.parquet"),
                b"PAR1 of another program PAR1",
            ),
        ] {
            fs::write(&path, bytes).unwrap();
            let warning = command(&without_q, &places.inputs[1], &target)
                .output()
                .unwrap();
            let warning = String::from_utf8(warning.stderr).unwrap();
            let name = path.strip_prefix(&target).unwrap().display().to_string();
            assert!(
                warning.contains(&name) && warning.contains("was not written by pbfhogg"),
                "{warning}"
            );
            assert_eq!(fs::read(&path).unwrap(), bytes);
            fs::remove_file(path).unwrap();
            assert!(content(&target) == new);
        }
        // A part that is no more what was written is not replaced.
        let part = directory.join("part-0000.parquet");
        fs::write(&part, "PAR1 of another program PAR1").unwrap();
        let before = content(&target);
        let message = args(&more, &places.inputs[1]);
        assert!(
            message.contains("part-0000.parquet") && message.lines().count() == 1,
            "{message}"
        );
        assert!(content(&target) == before);
        // Symbolic links are not followed.
        let elsewhere = places.dir.path().join("elsewhere");
        fs::rename(&directory, &elsewhere).unwrap();
        symlink(&elsewhere, &directory).unwrap();
        assert!(args(&more, &places.inputs[1]).contains("did not write"));
        assert!(elsewhere.join("part-0000.parquet").exists());
        fs::remove_dir_all(elsewhere).unwrap();
        assert_eq!(names(&places.out()), ["table"]);
        fs::remove_dir_all(&target).unwrap();
    }
}

#[test]
fn a_file_of_a_user_that_comes_while_a_table_is_written_is_kept() {
    let places = Places::new("2000");
    let target = places.out().join("table");
    let job = TABLES[1];
    run_job(job, &places.inputs[0], &target);
    let pipe = places.dir.path().join("pipe.osm.pbf");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let mut run = command(&["export", "--raw", "-O"], Path::new("-"), &target);
    let mut child = run
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    fs::write(target.join("late"), "mine").unwrap();
    let mut input = child.stdin.take().unwrap();
    std::io::copy(&mut fs::File::open(&places.inputs[1]).unwrap(), &mut input).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && message.contains("late was not written by pbfhogg"),
        "{message}"
    );
    assert_eq!(fs::read(target.join("late")).unwrap(), b"mine");
    assert_eq!(names(&places.out()), ["table"]);
}

#[test]
fn a_table_is_written_to_the_working_directory_and_to_a_link() {
    let places = Places::new("2000");
    let job = TABLES[0];
    let [_, new] = places.expected(job);
    let table = places.out().join("table");
    let count = new.unwrap().len();
    let place = places.out().join("place");
    for replaces in [false, true] {
        fs::remove_dir_all(&table).unwrap();
        fs::create_dir(&table).unwrap();
        if replaces {
            run_job(job, &places.inputs[0], &table);
        }
        // The shell of the user stays in the directory.
        let inode = table.metadata().unwrap().ino();
        let mut run = command(&[job, &["-O"]].concat(), &places.inputs[1], Path::new("."));
        time_of(run.current_dir(&table));
        assert_eq!(table.metadata().unwrap().ino(), inode);
        assert_eq!(content(&table).unwrap().len(), count);
        // A link stays one.
        let _ = fs::remove_file(&place);
        symlink("table", &place).unwrap();
        run_job(&[job, &["-O"]].concat(), &places.inputs[1], &place);
        assert!(place.symlink_metadata().unwrap().is_symlink());
        assert_eq!(content(&table).unwrap().len(), count);
        assert_eq!(names(&places.out()), ["place", "table"]);
    }
}

#[test]
fn remains_of_a_killed_run_in_the_working_directory_are_cleared() {
    let places = Places::new("2000");
    let table = places.out().join("table");
    let job = TABLES[0];
    fs::create_dir(&table).unwrap();
    let mut run = command(job, &places.inputs[0], Path::new("."));
    run.current_dir(&table);
    time_of(&mut run);
    let whole = content(&table);
    for nth in 1..5 {
        fs::remove_dir_all(&table).unwrap();
        fs::create_dir(&table).unwrap();
        let Some(is_killed) = killed_at("rename", nth, &run) else {
            return;
        };
        if !is_killed {
            assert!(nth > 2, "{nth}");
            break;
        }
        // Without --overwrite: what is there is a remnant.
        time_of(&mut run);
        assert!(content(&table) == whole, "{nth}");
    }
}

/// The commands that replace one file in place, or the maps of ids beside an output.
fn in_place(places: &Places) -> Vec<(Command, PathBuf)> {
    let out = places.out();
    let of = |args: &[Arg]| {
        let mut command = pbfhogg();
        command.args(args.iter().map(|arg| arg.as_ref()));
        command
    };
    let [sorted, map, index] = ["sorted.osm.pbf", "map", "nodes.idx"].map(|name| out.join(name));
    fs::create_dir(&map).unwrap();
    fs::copy(&places.inputs[0], &sorted).unwrap();
    vec![
        (
            of(&[
                &"sort",
                &"-q",
                &"-O",
                &sorted,
                &places.inputs[1],
                &"-o",
                &sorted,
            ]),
            sorted.clone(),
        ),
        (
            of(&[
                &"renumber",
                &"-q",
                &"-O",
                &"-i",
                &map,
                &places.inputs[0],
                &"-o",
                &out.join("small.osm.pbf"),
            ]),
            out.join("small.osm.pbf"),
        ),
        (
            of(&[
                &"create-locations-index",
                &"-q",
                &"-i",
                &index,
                &places.inputs[0],
            ]),
            index,
        ),
    ]
}

#[test]
fn files_are_whole_and_maps_of_ids_go_on_when_runs_are_killed() {
    let places = Places::new(if is_long() { "20000" } else { "5000" });
    let map = places.out().join("map");
    for (mut command, output) in in_place(&places) {
        let before = fs::read(&output).ok();
        let takes = time_of(&mut command);
        let whole = fs::read(&output).unwrap();
        let kept = content(&map);
        let mut ends = [0; 2];
        for number in 0..kills() {
            // From the beginning, with the same inputs.
            match &before {
                Some(bytes) => fs::write(&output, bytes).unwrap(),
                None => drop(fs::remove_file(&output)),
            }
            if number % 4 < 2 && command.get_args().any(|arg| arg == "renumber") {
                for name in names(&map) {
                    fs::remove_file(map.join(name)).unwrap();
                }
            }
            end_after(&mut command, moment(number, takes), Signal::KILL);
            let found = fs::read(&output).ok();
            let is_new = found.as_ref() == Some(&whole);
            assert!(is_new || found == before, "{command:?} {number}");
            ends[usize::from(is_new)] += 1;
            if is_new && before.is_none() && output.extension() == Some("idx".as_ref()) {
                fs::remove_file(&output).unwrap();
            }
            if let (true, Some(bytes)) = (is_new, &before) {
                fs::write(&output, bytes).unwrap();
            }
            time_of(&mut command);
            assert!(fs::read(&output).unwrap() == whole, "{command:?} {number}");
            assert!(
                content(&map).filter(|_| kept.is_some()) == kept,
                "{command:?} {number}"
            );
            let hidden = names(&places.out())
                .into_iter()
                .filter(|name| name.starts_with('.'));
            assert_eq!(hidden.count(), 0, "{command:?} {number}");
        }
        println!(
            "{:?}: old {}, new {}",
            output.file_name().unwrap(),
            ends[0],
            ends[1]
        );
    }
}

#[test]
fn maps_of_ids_take_nothing_for_a_map_that_is_none() {
    let places = Places::new("2000");
    let (map, output) = (places.out().join("map"), places.out().join("out.osm.pbf"));
    fs::create_dir(&map).unwrap();
    let args: [Arg; 6] = [&"renumber", &"-i", &map, &places.inputs[0], &"-o", &output];
    // Eight bytes, which could be an id.
    fs::write(map.join("way.idx"), "my notes").unwrap();
    let message = run_fail(&args);
    assert!(
        message.contains("way.idx") && message.contains("--overwrite"),
        "{message}"
    );
    assert_eq!(fs::read(map.join("way.idx")).unwrap(), b"my notes");
    assert_eq!(names(&map), ["way.idx"]);
    assert!(!output.exists());
    fs::remove_file(map.join("way.idx")).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(map.join("node.idx"))
            .status()
            .unwrap()
            .success()
    );
    let message = run_fail(&args);
    assert!(
        message.contains("node.idx: this is no regular file"),
        "{message}"
    );
    fs::remove_file(map.join("node.idx")).unwrap();
    run_ok(&args);
    assert_eq!(
        names(&map),
        ["node.idx", "relation.idx", "start_ids", "way.idx"]
    );
    // Another run continues it, and two at a time do not.
    let other = places.out().join("other.osm.pbf");
    let again: [Arg; 6] = [&"renumber", &"-i", &map, &places.inputs[1], &"-o", &other];
    let locked = fs::File::open(map.join("way.idx")).unwrap();
    locked.lock().unwrap();
    assert!(run_fail_with(4, &again).contains("another run is replacing this file"));
    drop(locked);
    run_ok(&again);
    assert_eq!(
        decode::objects(&other).len(),
        decode::objects(&places.inputs[1]).len()
    );
}

#[test]
fn manual_pages_are_written_together() {
    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("man1");
    fs::create_dir(&pages).unwrap();
    // One that is there already, so that none is written.
    fs::write(pages.join("pbfhogg-update.1"), "old").unwrap();
    run_fail(&[&"man", &"-o", &pages]);
    assert_eq!(names(&pages), ["pbfhogg-update.1"]);
    run_ok(&[&"man", &"-O", &"-o", &pages]);
    assert!(names(&pages).len() > 20);
}

#[test]
fn a_signal_removes_temporary_directories_with_their_files() {
    let temp = tempfile::tempdir().unwrap();
    let [input, output] = ["in.osm.pbf", "out"].map(|name| temp.path().join(name));
    let scratch = temp.path().join("scratch");
    fs::create_dir(&scratch).unwrap();
    fs::create_dir(&output).unwrap();
    run_ok(&[&"synth", &"--objects", &"300000", &"-o", &input]);
    let commands: [&[Arg]; 3] = [
        &[&"demo", &"--objects", &"300000"],
        &[
            &"derive-changes",
            &"-f",
            &"pbf",
            &input,
            &input,
            &"-o",
            &"o.pbf",
        ],
        &[&"add-locations-to-ways", &input, &input, &"-o", &"o.pbf"],
    ];
    for args in commands {
        let mut command = pbfhogg();
        args.iter().for_each(|arg| {
            command.arg(arg);
        });
        command.current_dir(&output).env("TMPDIR", &scratch);
        for number in 1..=6 {
            let delay = Duration::from_millis(60 * number);
            end_after(&mut command, delay, Signal::TERM);
            let is_page = |name: &String| name.ends_with(".html");
            let left: Vec<_> = names(&scratch)
                .into_iter()
                .filter(|name| !is_page(name))
                .collect();
            assert!(left.is_empty(), "{command:?} {number}: {left:?}");
        }
    }
}

/// The access of each file and directory in a directory.
fn modes(root: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(modes(&path));
        }
        let mode = path.metadata().unwrap().mode() & 0o777;
        found.push((path, mode));
    }
    found
}

fn set_modes(root: &Path, files: u32, directories: u32) {
    for (path, _) in modes(root) {
        let mode = if path.is_dir() { directories } else { files };
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    }
}

#[test]
fn new_files_of_a_replaced_directory_have_the_access_of_the_old_ones() {
    let places = Places::new("300");
    let target = places.out().join("table");
    let split: &[&str] = &["split", "-q", "-n", "2"];
    for job in [TABLES[0], TABLES[1], split] {
        let replacing = [job, &["-O"]].concat();
        for has_foreign in [false, true] {
            let _ = fs::remove_dir_all(&target);
            run_job(job, &places.inputs[1], &target);
            set_modes(&target, 0o640, 0o750);
            let first = modes(&target).into_iter().find(|(path, _)| path.is_file());
            let (first, _) = first.unwrap();
            // A file without a predecessor has the narrowest access of the old ones.
            if !has_foreign {
                fs::remove_file(&first).unwrap();
            } else {
                fs::write(target.join("notes"), "mine").unwrap();
            }
            run_job(&replacing, &places.inputs[0], &target);
            assert!(first.exists(), "{job:?}");
            for (path, mode) in modes(&target) {
                let is_known = path.is_dir() || !path.ends_with("notes");
                let expected = if path.is_dir() { 0o750 } else { 0o640 };
                assert!(!is_known || mode == expected, "{job:?} {path:?} {mode:o}");
            }
        }
    }
}

#[test]
fn a_map_of_ids_that_is_new_beside_others_has_their_access() {
    let places = Places::new("50");
    let map = places.out().join("map");
    fs::create_dir(&map).unwrap();
    let output = places.out().join("out.osm.pbf");
    let args: [Arg; 7] = [
        &"renumber",
        &"-q",
        &"-O",
        &"-i",
        &map,
        &places.inputs[0],
        &"-o",
    ];
    let args = [&args[..], &[&output]].concat();
    run_ok(&args);
    set_modes(&map, 0o640, 0o750);
    fs::remove_file(map.join("relation.idx")).unwrap();
    run_ok(&args);
    for (path, mode) in modes(&map) {
        assert_eq!(mode, 0o640, "{path:?}");
    }
}
