//! Backends, file systems and signals: all backends write the same bytes, and a failed run leaves no file.
//!
//! Tests that need their own file system mount an image or a tmpfs. If that fails they are among the tests that
//! the end of the run names.

use crate::common::answers::ask;
use crate::common::kills::end_after;
use crate::common::missing::allowed;
use crate::common::oracle::{available, runs, strace};
use crate::common::{Arg, in_turn, is_long, pbfhogg, run_ok, world};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn names(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// A mounted file system, unmounted on drop.
struct Mount(tempfile::TempDir);

impl Mount {
    /// Mounts a file system; `None` if the machine does not allow it.
    fn new(args: &[&str]) -> Option<Self> {
        let point = tempfile::tempdir().unwrap();
        let path = point.path().to_str().unwrap().to_owned();
        let args: Vec<&str> = args.iter().copied().chain([path.as_str()]).collect();
        let is_mounted = runs(Command::new("mount").args(&args));
        allowed(is_mounted, "file systems cannot be mounted").then_some(Self(point))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).status();
    }
}

/// The flags that select backends.
const BACKENDS: [&str; 3] = ["--jobs=2", "--direct-io", "--io-uring"];

/// Calls `test` with a mounted file system of each kind that can share blocks, and with its name.
fn on_sharing_systems(dir: &Path, mut test: impl FnMut(&str, &Path)) {
    for kind in ["btrfs", "xfs"] {
        let image = dir.join(kind);
        let file = std::fs::File::create(&image).unwrap();
        file.set_len(400 << 20).unwrap();
        let image = image.to_str().unwrap();
        let mkfs = format!("mkfs.{kind}");
        let is_made = runs(Command::new(&mkfs).args(["-q", image]));
        if !available(is_made, &format!("no {mkfs} on the PATH")) {
            continue;
        }
        if let Some(mount) = Mount::new(&["-o", "loop", image]) {
            test(kind, mount.path());
        }
    }
}

/// Runs a command, and returns the numbers of bytes that were shared and copied.
#[track_caller]
fn shared_and_copied(dir: &Path, args: &[Arg<'_>]) -> [u64; 2] {
    let stats = dir.join("stats.json");
    let more: [Arg<'_>; 2] = [&"--stats", &stats];
    run_ok(&[args, &more].concat());
    let stats = std::fs::read_to_string(&stats).unwrap();
    let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
    ["bytes_shared", "bytes_copied"].map(|name| stats[name].as_u64().unwrap())
}

#[test]
fn copies_share_blocks_where_the_file_system_can() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "300000");
    let elsewhere = dir.path().join("sorted.osm.pbf");
    run_ok(&[&"sort", &input, &"-o", &elsewhere]);
    let expected = std::fs::read(elsewhere).unwrap();
    on_sharing_systems(dir.path(), |kind, root| {
        let (base, output) = (root.join("world.osm.pbf"), root.join("out.osm.pbf"));
        std::fs::copy(&input, &base).unwrap();
        for backend in BACKENDS {
            for command in ["sort", "cat"] {
                let args: [Arg<'_>; 6] = [&command, &base, &backend, &"-O", &"-o", &output];
                let [shared, copied] = shared_and_copied(dir.path(), &args);
                assert!(
                    std::fs::read(&output).unwrap() == expected,
                    "{kind}: {backend}"
                );
                assert!(
                    shared * 10 > copied * 9,
                    "{kind}: {backend}: {shared} of {copied}"
                );
            }
        }
    });
}

/// Three objects of a file with higher versions and one more tag, as an OsmChange file in `dir`.
fn three_changes(dir: &Path, file: &Path) -> PathBuf {
    let opl = dir.join("world.opl");
    run_ok(&[&"cat", &"-q", &"-O", &file, &"-o", &opl]);
    let opl = std::fs::read_to_string(opl).unwrap();
    let lines: Vec<&str> = opl.lines().collect();
    let changed = [0.2, 0.5, 0.8].map(|part| {
        let line = lines[(lines.len() as f64 * part) as usize];
        let fields = line.split(' ').map(|field| match field.split_at(1) {
            ("v", version) => format!("v{}", version.parse::<u32>().unwrap() + 1),
            ("T", _) => "Tchanged=yes".to_owned(),
            _ => field.to_owned(),
        });
        fields.collect::<Vec<_>>().join(" ") + "\n"
    });
    let (opl, changes) = (dir.join("changes.opl"), dir.join("changes.osc"));
    std::fs::write(&opl, changed.concat()).unwrap();
    run_ok(&[&"cat", &"-q", &"-O", &opl, &"-o", &changes]);
    changes
}

#[test]
fn an_updated_file_shares_what_did_not_change_with_the_file_before() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), if is_long() { "600000" } else { "200000" });
    let elsewhere = dir.path().join("updated.osm.pbf");
    on_sharing_systems(dir.path(), |kind, root| {
        let (base, output) = (root.join("world.osm.pbf"), root.join("out.osm.pbf"));
        std::fs::copy(&input, &base).unwrap();
        let mut lens = Vec::new();
        for round in 0..3 {
            let changes = three_changes(dir.path(), &base);
            for backend in in_turn(round, BACKENDS.len(), BACKENDS) {
                let args: [Arg<'_>; 7] = [
                    &"apply-changes",
                    &base,
                    &changes,
                    &backend,
                    &"-O",
                    &"-o",
                    &output,
                ];
                let [shared, copied] = shared_and_copied(dir.path(), &args);
                assert!(
                    shared * 10 > copied * 9,
                    "{kind}, {backend}, round {round}: {shared} of {copied}"
                );
            }
            run_ok(&[&"check", &"--index", &"--full", &output]);
            run_ok(&[&"apply-changes", &base, &changes, &"-O", &"-o", &elsewhere]);
            run_ok(&[&"diff", &"-q", &elsewhere, &output]);
            std::fs::rename(&output, &base).unwrap();
            lens.push(std::fs::metadata(&base).unwrap().len());
        }
        // Padding is made anew, and does not add up.
        let blobs = 3 * 2 * 4096;
        assert!(lens[2] < lens[0] + blobs, "{kind}: {lens:?}");
        // Programs that know nothing of the padding read the same objects.
        let opl = |program: &str, file: &Path| {
            let args = ["cat", "-f", "opl", "-o", "-"];
            let output = Command::new(program).args(args).arg(file).output();
            output.map(|output| output.stdout)
        };
        if available(runs(Command::new("osmium").arg("--version")), "no osmium") {
            let expected = opl("osmium", &elsewhere).unwrap();
            assert!(opl("osmium", &base).unwrap() == expected && !expected.is_empty());
        }
    });
}

#[test]
fn other_devices_and_pipes_get_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "300000");
    let here = dir.path().join("here.osm.pbf");
    run_ok(&[&"sort", &input, &"-o", &here]);
    let expected = std::fs::read(&here).unwrap();
    let pipe = |args: &[&str]| {
        let output = pbfhogg().args(args).arg(&input).args(["-o", "-"]).output();
        output.unwrap().stdout
    };
    let piped = pipe(&["cat"]);
    assert!(piped.len() > 1_000_000);
    for backend in BACKENDS {
        assert!(pipe(&["cat", backend]) == piped, "{backend}");
    }
    let Some(mount) = Mount::new(&["-t", "tmpfs", "-o", "size=60m", "none"]) else {
        return;
    };
    let there = mount.path().join("there.osm.pbf");
    for backend in BACKENDS {
        run_ok(&[&"sort", &input, &backend, &"-q", &"-O", &"-o", &there]);
        assert!(std::fs::read(&there).unwrap() == expected, "{backend}");
        // Back to the first file system.
        run_ok(&[&"sort", &there, &backend, &"-q", &"-O", &"-o", &here]);
        assert!(std::fs::read(&here).unwrap() == expected, "{backend}");
    }
}

#[test]
fn direct_io_that_is_refused_is_done_without_and_said() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "20000");
    // A file system without direct I/O.
    let Some(mount) = Mount::new(&["-t", "ramfs", "none"]) else {
        return;
    };
    let (first, second) = (
        mount.path().join("first.osm.pbf"),
        mount.path().join("second.osm.pbf"),
    );
    for (from, to, refused) in [(&input, &first, "writes"), (&first, &second, "reads")] {
        let output = run_ok(&[&"sort", &"--direct-io", from, &"-o", to]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            stderr.contains(&format!("refuses direct {refused}")),
            "{stderr}"
        );
    }
    assert!(std::fs::read(&first).unwrap() == std::fs::read(&second).unwrap());
}

#[test]
fn a_full_disk_is_said_before_it_is_met_and_costs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "300000");
    let Some(mount) = Mount::new(&["-t", "tmpfs", "-o", "size=2m", "none"]) else {
        return;
    };
    let output = mount.path().join("out.osm.pbf");
    std::fs::write(&output, "precious").unwrap();
    for backend in BACKENDS {
        // The number of copied bytes is known in advance, that of newly encoded bytes is not.
        for (args, message) in [
            (vec!["sort"], "are free on its file system"),
            (vec!["cat", "-t", "node"], "No space left on device"),
        ] {
            let result = pbfhogg()
                .args(args)
                .arg(&input)
                .args([backend, "-q", "-O", "-o"])
                .arg(&output)
                .output()
                .unwrap();
            let stderr = String::from_utf8_lossy(&result.stderr);
            assert_eq!(result.status.code(), Some(2), "{backend}: {stderr}");
            assert!(
                stderr.contains(message) && stderr.contains("out.osm.pbf"),
                "{backend}: {stderr}"
            );
            assert_eq!(std::fs::read(&output).unwrap(), b"precious");
            assert_eq!(names(mount.path()), std::slice::from_ref(&output));
        }
    }
}

#[test]
fn falls_back_and_warns_when_io_uring_is_refused() {
    if !strace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "20000");
    let plain = dir.path().join("plain.osm.pbf");
    run_ok(&[&"sort", &input, &"-o", &plain]);
    for (fault, cause) in [
        ("io_uring_setup:error=ENOSYS", "kernel has no io_uring"),
        ("io_uring_setup:error=EPERM", "forbidden"),
        ("io_uring_register:error=ENOMEM", "RLIMIT_MEMLOCK"),
    ] {
        let output = dir.path().join("out.osm.pbf");
        let result = Command::new("strace")
            .args(["-f", "-o", "/dev/null", "-e", &format!("inject={fault}")])
            .arg(env!("CARGO_BIN_EXE_pbfhogg"))
            .args(["sort", "--io-uring", "-O"])
            .arg(&input)
            .arg("-o")
            .arg(&output)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&result.stderr);
        if !allowed(!stderr.contains("ptrace"), "processes cannot be traced") {
            return;
        }
        assert!(result.status.success(), "{fault}: {stderr}");
        assert!(
            stderr.contains("warning") && stderr.contains(cause),
            "{fault}: {stderr}"
        );
        assert!(std::fs::read(&output).unwrap() == std::fs::read(&plain).unwrap());
    }
}

/// The number of runs to interrupt; set `PBFHOGG_KILLS=200` for a long test.
fn rounds() -> u64 {
    let asked = std::env::var("PBFHOGG_KILLS").ok();
    let asked = asked.and_then(|asked| asked.parse().ok());
    asked.unwrap_or(if is_long() { 24 } else { 9 })
}

#[test]
fn a_run_that_a_signal_ends_leaves_the_old_output_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let elements = if is_long() { "400000" } else { "200000" };
    let input = world(dir.path(), elements);
    let changes = dir.path().join("001.osc.gz");
    let out = dir.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let output = out.join("out.osm.pbf");
    let mut interrupted = 0;
    for round in 0..rounds() {
        std::fs::write(&output, "precious").unwrap();
        let mut command = pbfhogg();
        match round % 3 {
            0 => command.arg("cat").arg("--force").arg(&input),
            1 => command.arg("sort").arg(&input).arg(&input),
            _ => command.arg("apply-changes").arg(&input).arg(&changes),
        };
        command
            .args([BACKENDS[round as usize % 7 % 3], "-q", "-O", "-o"])
            .arg(&output);
        let (signal, status) = [
            (Signal::INT, Some(130)),
            (Signal::TERM, Some(143)),
            (Signal::KILL, None),
        ][round as usize % 5 % 3];
        // The signals are sent at irregular times during the run.
        let delay = Duration::from_micros(round * 7919 % 60_000);
        let result = end_after(&mut command, delay, signal);
        assert_eq!(names(&out), std::slice::from_ref(&output), "round {round}");
        let bytes = std::fs::read(&output).unwrap();
        if bytes == b"precious" {
            // A signal that arrives before the handler is installed kills the process.
            let code = result.code();
            assert!(code == status || code.is_none(), "round {round}: {code:?}");
            interrupted += 1;
        } else {
            run_ok(&[&"inspect", &output]);
            assert!(bytes.len() > 1_000_000, "round {round}");
        }
    }
    assert!(interrupted > 0);
}

#[test]
fn a_signal_leaves_no_part_of_a_directory_or_of_a_text() {
    let dir = tempfile::tempdir().unwrap();
    let elements = if is_long() { "400000" } else { "50000" };
    let input = world(dir.path(), elements);
    let out = dir.path().join("out");
    let whole = dir.path().join("whole");
    std::fs::create_dir(&out).unwrap();
    let output = out.join("output");
    let jobs: [&[&str]; 5] = [
        &["export", "-f", "geojsonseq", "-o"],
        &["export", "-f", "geoparquet", "-o"],
        &[
            "export",
            "-f",
            "geoparquet",
            "--partition",
            "geometry",
            "-o",
        ],
        &["export", "-f", "parquet", "--raw", "-o"],
        &["build-geocode-index", "--output-dir"],
    ];
    let run = |job: &[&str], output: &Path| {
        let mut command = pbfhogg();
        command.args(job).arg(output).arg("-q").arg(&input);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    for job in jobs {
        let start = Instant::now();
        assert!(run(job, &whole).status().unwrap().success(), "{job:?}");
        let takes = start.elapsed();
        let expected = tree(&whole);
        remove(&whole);
        let mut interrupted = 0;
        for round in 0..rounds().div_ceil(3) {
            let delay = takes * (round as u32 * 37 % 101) / 100;
            let signal = [Signal::INT, Signal::TERM][round as usize % 2];
            end_after(&mut run(job, &output), delay, signal);
            if names(&out).is_empty() {
                interrupted += 1
            } else {
                assert_eq!(tree(&output).len(), expected.len(), "{job:?} {round}")
            }
            remove(&output);
        }
        assert!(interrupted > 0, "{job:?}");
    }
}

/// The lengths of all files below a path, in the order of their paths.
fn tree(path: &Path) -> Vec<u64> {
    let Ok(entries) = std::fs::read_dir(path) else {
        return vec![std::fs::metadata(path).unwrap().len()];
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().flat_map(|path| tree(path)).collect()
}

fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
    let _ = std::fs::remove_dir_all(path);
}

#[test]
fn a_script_that_goes_well_reads_nothing_but_results() {
    let dir = tempfile::tempdir().unwrap();
    let world = world(dir.path(), "2000");
    let output = dir.path().join("out.osm.pbf");
    let ask = |more: &[Arg]| ask(&[&[&"cat" as Arg, &world], more].concat());
    let told = ask(&[&"-o", &output]);
    assert_eq!((&*told.stdout, &*told.stderr), ("", ""));
    let told = ask(&[&"-v", &"-O", &"-o", &output]);
    assert!(
        told.stdout.is_empty() && told.stderr.contains("objects, 3 blobs"),
        "{told:?}"
    );
    let told = ask(&[&"--json", &"-O", &"-o", &output]);
    assert!(
        told.stdout.starts_with('{') && told.stderr.is_empty(),
        "{told:?}"
    );
    // JSON that is asked for goes beside a result on standard output.
    let told = ask(&[&"--json", &"-f", &"opl"]);
    assert!(
        told.stdout.starts_with('n') && told.stderr.starts_with('{'),
        "{told:?}"
    );
}

#[test]
fn the_box_of_the_header_is_set_on_demand() {
    let dir = tempfile::tempdir().unwrap();
    let world = world(dir.path(), "2000");
    let output = dir.path().join("out.osm.pbf");
    let told = |set: &str| {
        run_ok(&[&"cat", &world, &"--set-bbox", &set, &"-O", &"-o", &output]);
        let summary = ask(&[&"inspect", &"--json", &output]).json();
        (summary["header_bbox"].clone(), summary["data_bbox"].clone())
    };
    let (header, data) = told("data");
    assert!(header == data && !data.is_null());
    assert!(told("none").0.is_null());
    // Ways have the places of nodes that are not in the file.
    let located = dir.path().join("located.opl");
    let far = "n1 v1 x1 y1\nw1 v1 Nn1x1y1,n2x5y-6\nw2 v1 Nn3x-3y2,n4\n";
    let alone = "w1 v1 Nn1x1y1,n2x5y-6\n";
    for (text, [west, south, east, north]) in [(far, [-3, -6, 5, 2]), (alone, [1, -6, 5, 1])] {
        std::fs::write(&located, text).unwrap();
        for input in [&located, &output] {
            let again = dir.path().join("again.osm.pbf");
            run_ok(&[&"cat", input, &"--set-bbox", &"data", &"-O", &"-o", &again]);
            let found = ask(&[&"inspect", &"--json", &again]).json()["header_bbox"].clone();
            let expected = [west, south, east, north].map(f64::from);
            assert_eq!(found, serde_json::json!(expected));
            // The second time, blobs are copied.
            std::fs::copy(&again, &output).unwrap();
        }
    }
    let set = serde_json::json!([-1.5, 2.0, 3.0, 4.0]);
    assert_eq!(told("3,4,-1.5,2").0, set);
    let text = ask(&[&"cat", &world, &"--set-bbox", &"1,2,3,4", &"-f", &"osm"]).stdout;
    let bounds = "<bounds minlat=\"2\" minlon=\"1\" maxlat=\"4\" maxlon=\"3\"/>";
    assert!(text.contains(bounds), "{:.200}", text);
    for (form, set) in [
        ("opl", "data"),
        ("pbf", "data"),
        ("opl", "here"),
        ("osm", "170,0,-170,1"),
    ] {
        let told = ask(&[&"cat", &world, &"-f", &form, &"--set-bbox", &set]);
        assert!(told.status == 2 && told.stdout.is_empty(), "{told:?}");
    }
    // With the box of a region, what the user says goes before.
    let cut = [
        "extract",
        "-b",
        "-180,-80,180,80",
        "--set-bounds",
        "--set-bbox",
        "none",
        "-O",
        "-o",
    ];
    let mut args: Vec<Arg> = cut.iter().map(|arg| arg as Arg).collect();
    args.extend([&output as Arg, &world]);
    run_ok(&args);
    assert!(ask(&[&"inspect", &"--json", &output]).json()["header_bbox"].is_null());
}
