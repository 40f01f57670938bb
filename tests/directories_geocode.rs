//! The directory of a geocoder's index is whole or not there, and answers while it is built anew.

use crate::common::kills::{end_after, killed_at, kills, moment, names, time_of};
use crate::common::service::Service;
use crate::common::{is_long, pbfhogg, run_fail, run_ok};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// Writes a file with houses of a street, whose number at the place that is asked for begins with `prefix`.
fn houses(path: &Path, prefix: &str) {
    let mut text = String::new();
    for id in 1..=3000 {
        let (lon, number) = (10.0 + f64::from(id) / 10_000.0, id);
        text += &format!(
            "n{id} v1 Taddr:housenumber={prefix}{number},addr:street=Main x{lon:.4} y40\n"
        );
    }
    fs::write(path, text).unwrap();
}

fn build(input: &Path, index: &Path) -> Command {
    let mut command = pbfhogg();
    command.args(["build-geocode-index", "-q", "-O"]).arg(input);
    command.arg("-o").arg(index);
    command
}

/// The number of the first house, as an index answers it.
fn asked(index: &Path) -> String {
    let output = run_ok(&[&"geocode", &index, &"40", &"10.0001"]);
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}

/// Two inputs, and the place of an index.
fn places(dir: &Path) -> ([PathBuf; 2], PathBuf) {
    let inputs = ["a.opl", "b.opl"].map(|name| dir.join(name));
    houses(&inputs[0], "1");
    houses(&inputs[1], "2");
    fs::create_dir(dir.join("out")).unwrap();
    (inputs, dir.join("out/index"))
}

/// Fails if the directory of an index, or the directory above it, has more than the index.
fn assert_clean(index: &Path, what: &str) {
    assert_eq!(names(index.parent().unwrap()), ["index"], "{what}");
    let names = names(index);
    let is_index =
        names.len() == 2 && names[0].starts_with("index-") && names[1] == "manifest.json";
    assert!(is_index, "{what}: {names:?}");
}

#[test]
fn an_index_is_old_or_new_when_a_build_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let (inputs, index) = places(dir.path());
    let mut takes = time_of(&mut build(&inputs[1], &index));
    let mut ends = [0; 3];
    for number in 0..kills() {
        fs::remove_dir_all(&index).unwrap();
        let has_old = number / 2 % 2 == 0;
        if has_old {
            time_of(&mut build(&inputs[0], &index));
        }
        end_after(
            &mut build(&inputs[1], &index),
            moment(number, takes),
            Signal::KILL,
        );
        let end = if index.exists() {
            ["11 ", "21 "].iter().position(|number| {
                let answer = asked(&index) + " ";
                answer.contains(&format!("Main {number}")) || answer.contains(number)
            })
        } else {
            Some(2)
        };
        let end = end.unwrap_or_else(|| panic!("{number}: {}", asked(&index)));
        assert!(
            has_old && end != 2 || !has_old && end != 0,
            "{number}: {end}"
        );
        ends[end] += 1;
        takes = time_of(&mut build(&inputs[1], &index));
        assert_clean(&index, &number.to_string());
    }
    println!(
        "index: absent {}, old {}, new {}",
        ends[2], ends[0], ends[1]
    );
}

#[test]
fn a_build_that_was_killed_at_any_name_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (inputs, index) = places(dir.path());
    for has_old in [false, true] {
        for call in ["mkdir", "linkat", "fsync", "rename", "unlink"] {
            // In short runs, the first call and the third one.
            let (most, step) = if is_long() { (20, 1) } else { (4, 2) };
            for nth in (1..most).step_by(step) {
                let _ = fs::remove_dir_all(&index);
                if has_old {
                    time_of(&mut build(&inputs[0], &index));
                }
                let run = build(&inputs[1], &index);
                let Some(is_killed) = killed_at(call, nth, &run) else {
                    return;
                };
                let what = format!("{call} {nth} {has_old}");
                if index.exists() {
                    asked(&index);
                }
                assert!(index.exists() || !has_old, "{what}");
                if !is_killed {
                    assert_clean(&index, &what);
                    break;
                }
                time_of(&mut build(&inputs[1], &index));
                assert_clean(&index, &what);
            }
        }
    }
}

#[test]
fn an_index_answers_while_builds_are_killed() {
    let dir = tempfile::tempdir().unwrap();
    let (inputs, index) = places(dir.path());
    let takes = time_of(&mut build(&inputs[0], &index));
    let service = Service::start(&index);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut answers = 0;
            while !is_done.load(Ordering::Relaxed) {
                let (status, _, body) = service.get("/geocode?lat=40&lon=10.0001");
                assert!(status == 200 && body.contains("Main"), "{status} {body}");
                assert!(asked(&index).contains("Main"));
                answers += 1;
            }
            answers
        });
        for number in 0..kills() {
            let input = &inputs[number as usize % 2];
            if number % 3 < 2 {
                end_after(
                    &mut build(input, &index),
                    moment(number, takes),
                    Signal::KILL,
                );
            } else {
                time_of(&mut build(input, &index));
            }
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(asking.join().unwrap() > 0);
    });
    time_of(&mut build(&inputs[1], &index));
    assert_clean(&index, "served");
}

#[test]
fn a_build_that_fails_or_is_ended_leaves_no_directory() {
    let dir = tempfile::tempdir().unwrap();
    let (inputs, index) = places(dir.path());
    let bad = dir.path().join("bad.opl");
    fs::write(&bad, "n1 v1 x10 y40\nn2 what is this\n").unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    for job in [
        vec![bad.as_path().as_os_str()],
        vec![
            "--temp-dir".as_ref(),
            file.as_os_str(),
            inputs[0].as_os_str(),
        ],
        vec![
            "--max-memory".as_ref(),
            "1".as_ref(),
            "-i".as_ref(),
            "dense".as_ref(),
            inputs[0].as_os_str(),
        ],
    ] {
        let mut command = pbfhogg();
        command
            .args(["build-geocode-index", "-q", "-o"])
            .arg(&index)
            .args(&job);
        let status = command
            .stderr(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success() == index.exists(), "{job:?}");
        assert!(names(index.parent().unwrap()).len() <= 1, "{job:?}");
        let _ = fs::remove_dir_all(&index);
    }
    for number in 0..6 {
        let takes = time_of(&mut build(&inputs[0], &index));
        fs::remove_dir_all(&index).unwrap();
        let signal = [Signal::INT, Signal::TERM][number as usize % 2];
        end_after(
            &mut build(&inputs[0], &index),
            moment(number, takes),
            signal,
        );
        if index.exists() {
            assert_clean(&index, &number.to_string())
        } else {
            assert!(names(index.parent().unwrap()).is_empty())
        }
        let _ = fs::remove_dir_all(&index);
    }
}

#[test]
fn files_of_others_in_the_directory_of_an_index_stay() {
    let dir = tempfile::tempdir().unwrap();
    let (inputs, index) = places(dir.path());
    fs::create_dir(&index).unwrap();
    let kept = [
        "notes.txt",
        "index-1-1.bin",
        "index-old.bin",
        "index-2-1.bin.gz",
    ];
    for name in kept {
        fs::write(index.join(name), "mine").unwrap();
    }
    // The remnants of a killed build.
    let built = dir.path().join("built");
    time_of(&mut build(&inputs[0], &built));
    let data = names(&built).remove(0);
    fs::copy(built.join(data), index.join("index-7-3.bin")).unwrap();
    for input in &inputs {
        time_of(&mut build(input, &index));
        assert_eq!(names(&index).len(), 2 + kept.len());
        assert!(!index.join("index-7-3.bin").exists());
        for name in kept {
            assert_eq!(fs::read(index.join(name)).unwrap(), b"mine");
        }
    }
    assert!(run_fail(&[&"build-geocode-index", &inputs[0], &"-o", &index]).contains("--overwrite"));
}

#[test]
fn an_index_that_is_replaced_keeps_its_access() {
    let dir = tempfile::tempdir().unwrap();
    let ([input, _], index) = places(dir.path());
    let mut build = build(&input, &index);
    assert!(build.status().unwrap().success());
    let files = || {
        let entries = fs::read_dir(&index).unwrap();
        entries.map(|entry| entry.unwrap().path())
    };
    for file in files() {
        fs::set_permissions(file, fs::Permissions::from_mode(0o640)).unwrap();
    }
    assert!(build.status().unwrap().success());
    let modes = files().map(|file| file.metadata().unwrap().mode() & 0o777);
    assert_eq!(modes.collect::<Vec<_>>(), [0o640, 0o640]);
}
