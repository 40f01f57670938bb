//! `update --cache`: a cache has whole files, and nothing else, whatever ends a run.

use crate::common::kills::{content, end_after, kills, moment, names, time_of};
use crate::common::publisher::{DAYS, Publisher, update_from};
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A run that fetches all changes by way of a cache.
fn update(publisher: &Publisher, file: &Path) -> Command {
    let mut update = update_from(&publisher.server(), file);
    update.arg("-q").arg("--cache").arg(publisher.path("cache"));
    update
}

/// The directory of a cache in which the files of the first thousand states are.
fn cached(publisher: &Publisher) -> PathBuf {
    let cache = publisher.path("cache");
    let server = names(&cache).remove(0);
    cache.join(server).join("000/000")
}

#[test]
fn a_cache_has_whole_files_when_updates_are_ended() {
    let publisher = Publisher::new();
    let file = publisher.copy("file.osm.pbf");
    let takes = time_of(&mut update(&publisher, &file));
    let good = names(&cached(&publisher));
    assert!(
        good.len() >= DAYS && good.iter().all(|name| !name.starts_with('.')),
        "{good:?}"
    );
    let mut ends = [0; 2];
    for number in 0..kills() {
        fs::remove_dir_all(publisher.path("cache")).unwrap();
        let file = publisher.copy("file.osm.pbf");
        let signal = [Signal::KILL, Signal::TERM, Signal::INT][number as usize % 3];
        end_after(
            &mut update(&publisher, &file),
            moment(number, takes),
            signal,
        );
        let day = publisher.day_of(&file);
        assert!(day == 0 || day == DAYS, "{number}: {day}");
        ends[usize::from(day > 0)] += 1;
        if signal != Signal::KILL {
            // The directories of the cache may not be there yet.
            let files = content(&publisher.path("cache")).unwrap_or_default();
            let is_hidden = |path: &Path| {
                let name = path.file_name().unwrap_or_default();
                name.to_string_lossy().starts_with('.')
            };
            let hidden: Vec<_> = files.iter().filter(|(path, _)| is_hidden(path)).collect();
            assert!(hidden.is_empty(), "{number}: {hidden:?}");
        }
        let file = publisher.copy("file.osm.pbf");
        time_of(&mut update(&publisher, &file));
        assert_eq!(publisher.day_of(&file), DAYS, "{number}");
        assert_eq!(names(&cached(&publisher)), good, "{number}");
    }
    println!("update: old {}, new {}", ends[0], ends[1]);
}

#[test]
fn remains_of_killed_updates_in_a_cache_are_removed_and_nothing_else() {
    let publisher = Publisher::new();
    let file = publisher.copy("file.osm.pbf");
    time_of(&mut update(&publisher, &file));
    let cached = cached(&publisher);
    let before = names(&cached);
    // Those of earlier versions, of this one, and of one that is at work.
    for name in [
        ".tmpAb3xYz",
        ".001.osc.gz.pbfhogg-1-1.tmp",
        ".002.osc.gz.pbfhogg-1-1.tmp",
    ] {
        fs::write(cached.join(name), "").unwrap();
    }
    let used = fs::File::open(cached.join(".002.osc.gz.pbfhogg-1-1.tmp")).unwrap();
    used.lock().unwrap();
    let kept = [".tmp", ".tmpnotes.txt", "notes.tmp"];
    for name in kept {
        fs::write(cached.join(name), "mine").unwrap();
    }
    let file = publisher.copy("file.osm.pbf");
    time_of(&mut update(&publisher, &file));
    let mut expected = before;
    expected.extend(kept.map(str::to_owned));
    expected.push(".002.osc.gz.pbfhogg-1-1.tmp".into());
    expected.sort();
    assert_eq!(names(&cached), expected);
}

#[test]
fn a_foreign_file_in_a_cache_is_refused_at_once() {
    let publisher = Publisher::new();
    let file = publisher.copy("file.osm.pbf");
    time_of(&mut update(&publisher, &file));
    let entry = cached(&publisher).join("001.osc.gz");
    let state = cached(&publisher).join("001.state.txt");
    let good = fs::read(&entry).unwrap();
    let refused = |path: &Path, cause: &str| {
        let file = publisher.copy("file.osm.pbf");
        let start = Instant::now();
        let mut child = update(&publisher, &file)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while child.try_wait().unwrap().is_none() {
            if start.elapsed() > Duration::from_secs(20) {
                child.kill().unwrap();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let output = child.wait_with_output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(
            message.contains(cause) && message.lines().count() == 1,
            "{message}"
        );
        assert!(message.contains(&path.display().to_string()), "{message}");
        assert_eq!(publisher.day_of(&file), 0);
    };
    fs::remove_file(&entry).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(&entry)
            .status()
            .unwrap()
            .success()
    );
    refused(&entry, "this is no regular file");
    fs::remove_file(&entry).unwrap();
    fs::create_dir(&entry).unwrap();
    refused(&entry, "this is no regular file");
    fs::remove_dir(&entry).unwrap();
    // A file of a user is not replaced.
    fs::write(&entry, "my notes").unwrap();
    refused(&entry, "is not replaced");
    assert_eq!(fs::read(&entry).unwrap(), b"my notes");
    // One that is damaged is had anew.
    for damaged in [&good[..good.len() - 5], b"", &[0; 100]] {
        fs::write(&entry, damaged).unwrap();
        if state.exists() {
            fs::write(&state, damaged.first().map_or("", |_| "timestamp=")).unwrap();
        }
        let file = publisher.copy("file.osm.pbf");
        time_of(&mut update(&publisher, &file));
        assert_eq!(fs::read(&entry).unwrap(), good);
    }
}
