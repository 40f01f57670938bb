//! Tests that replace directories. Some tests simulate a system that cannot exchange the names of two directories.

use super::*;
use crate::runtime::Context;
use crate::system::faults::{CallFault, Faults};
use rustix::io::Errno;
use std::io::{Read, Write};

/// Whether a file counts as written by an earlier run. The content of such a file begins with `own`.
fn is_own(_: &Path, mut file: &File) -> bool {
    let mut text = String::new();
    file.read_to_string(&mut text).is_ok() && text.starts_with("own")
}

/// A temporary directory that contains the target.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("table")
    }

    /// Writes a table of two parts.
    fn write(&self, text: &str, overwrite: bool) -> Result<()> {
        let mut directory =
            OutputDirectory::create(&self.root(), overwrite, is_own, &Context::default())?;
        for name in ["a/part", "b/part"] {
            let mut file = StreamOutput::new(directory.open(Path::new(name))?);
            file.write(text.as_bytes())?;
            file.commit_unflushed()?;
        }
        directory.complete(&Context::default())
    }

    /// Returns the contents of the two parts; `None` for a missing part.
    fn parts(&self) -> [Option<String>; 2] {
        ["a/part", "b/part"].map(|name| fs::read_to_string(self.root().join(name)).ok())
    }

    fn has_both_parts(&self, text: &str) -> bool {
        self.parts() == [Some(text.to_owned()), Some(text.to_owned())]
    }

    /// Returns the names of the entries beside the target.
    fn names_beside_target(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "table").collect()
    }
}

#[test]
fn a_directory_of_own_files_is_replaced_only_with_overwrite() {
    let (faults, place) = (Faults::none(), Place::new());
    place.write("own 1", false).unwrap();
    assert!(place.has_both_parts("own 1"));
    assert!(place.write("own 2", false).is_err());
    assert!(place.has_both_parts("own 1"));
    place.write("own 3", true).unwrap();
    assert!(place.has_both_parts("own 3"));
    drop(faults);
}

#[test]
fn files_of_others_stay_in_a_directory_that_is_replaced() {
    let (faults, place) = (Faults::none(), Place::new());
    place.write("own 1", false).unwrap();
    let notes = place.root().join("a/notes");
    fs::write(&notes, "mine").unwrap();
    assert!(place.write("own 2", false).is_err());
    place.write("own 3", true).unwrap();
    assert!(place.has_both_parts("own 3") && place.names_beside_target().is_empty());
    assert_eq!(fs::read_to_string(&notes).unwrap(), "mine");
    // A file that has the name of a part is not replaced.
    fs::write(place.root().join("b/part"), "mine").unwrap();
    let error = place.write("own 4", true).unwrap_err().to_string();
    assert!(
        error.contains("did not write") && error.contains("b/part"),
        "{error}"
    );
    let parts = [Some("own 3".to_owned()), Some("mine".to_owned())];
    assert!(place.parts() == parts && place.names_beside_target().is_empty());
    drop(faults);
}

#[test]
fn without_exchange_the_old_directory_is_moved_away_first() {
    let (faults, place) = (Faults::none(), Place::new());
    place.write("own 1", false).unwrap();
    faults.plan_here(Call::Exchange, 1, CallFault::Fails(Errno::INVAL));
    place.write("own 2", true).unwrap();
    assert!(faults.end());
    assert!(place.has_both_parts("own 2") && place.names_beside_target().is_empty());
}

#[test]
fn an_old_directory_moved_away_by_a_killed_process_comes_back() {
    let (faults, place) = (Faults::none(), Place::new());
    place.write("own 1", false).unwrap();
    fs::rename(
        place.root(),
        place.0.path().join(".table.pbfhogg-1-1-replaced.tmp"),
    )
    .unwrap();
    assert!(place.write("own 2", false).is_err());
    assert!(place.has_both_parts("own 1") && place.names_beside_target().is_empty());
    fs::rename(
        place.root(),
        place.0.path().join(".table.pbfhogg-1-1-replaced.tmp"),
    )
    .unwrap();
    place.write("own 2", true).unwrap();
    assert!(place.has_both_parts("own 2") && place.names_beside_target().is_empty());
    drop(faults);
}

#[test]
fn a_directory_that_cannot_be_renamed_gets_the_files_one_after_another() {
    let (faults, place) = (Faults::none(), Place::new());
    place.write("own 1", false).unwrap();
    faults.plan_here(Call::Exchange, 1, CallFault::Fails(Errno::BUSY));
    place.write("own 2", true).unwrap();
    assert!(faults.end());
    assert!(place.has_both_parts("own 2") && place.names_beside_target().is_empty());
    // Imitates a process that was killed after it had moved the first file.
    let staged = place.0.path().join(".table.pbfhogg-1-1.tmp");
    fs::create_dir(&staged).unwrap();
    fs::write(staged.join(".moving"), "").unwrap();
    fs::rename(place.root().join("b"), staged.join("b")).unwrap();
    place.write("own 3", false).unwrap();
    assert!(place.has_both_parts("own 3") && place.names_beside_target().is_empty());
}

#[test]
fn a_failed_call_leaves_the_old_or_the_new_directory() {
    let (faults, place) = (Faults::none(), Place::new());
    place.write("own 1", false).unwrap();
    for call in [Call::Write, Call::Sync, Call::Rename, Call::Exchange] {
        for nth in 1.. {
            faults.plan_here(call, nth, CallFault::Fails(Errno::IO));
            let result = place.write("own 2", true);
            if !faults.end() {
                result.unwrap();
                break;
            }
            let is_new = place.has_both_parts("own 2");
            assert!(is_new || place.has_both_parts("own 1"), "{call:?} {nth}");
            // Only the flush of the parent directory can fail after the exchange.
            assert!(!is_new || call == Call::Sync, "{call:?} {nth}");
            place.write("own 1", true).unwrap();
            assert!(
                place.has_both_parts("own 1") && place.names_beside_target().is_empty(),
                "{call:?} {nth}"
            );
        }
        place.write("own 1", true).unwrap();
    }
}

#[test]
fn staging_directories_of_running_processes_stay() {
    let (faults, place) = (Faults::none(), Place::new());
    let other = OutputDirectory::create(&place.root(), false, is_own, &Context::default()).unwrap();
    let dead = place.0.path().join(".table.pbfhogg-1-1.tmp");
    fs::create_dir(&dead).unwrap();
    fs::write(dead.join("part"), "own").unwrap();
    place.write("own 1", false).unwrap();
    assert!(!dead.exists() && other.staging.path().exists());
    // `other` is completed second, and finds the directory that `place.write` has created.
    assert!(other.complete(&Context::default()).is_err());
    assert!(place.has_both_parts("own 1") && place.names_beside_target().is_empty());
    drop(faults);
}

#[test]
fn files_are_kept_only_if_the_list_is_written() {
    let faults = Faults::none();
    let temp = tempfile::tempdir().unwrap();
    for (name, exists) in [("new", false), ("old", true)] {
        let root = temp.path().join(name);
        if exists {
            fs::create_dir(&root).unwrap();
        }
        for is_complete in [false, true] {
            let mut directory =
                OutputDirectory::create_or_extend(&root, is_own, &Context::default()).unwrap();
            let mut file = StreamOutput::new(directory.open(Path::new("data")).unwrap());
            file.write(b"data").unwrap();
            if is_complete {
                directory
                    .complete_with_list(vec![file], Path::new("list"), b"list", &Context::default())
                    .unwrap();
            } else {
                file.commit().unwrap();
                drop(directory);
            }
            for file in ["data", "list"] {
                assert_eq!(root.join(file).exists(), is_complete, "{name} {file}");
            }
        }
    }
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 2);
    drop(faults);
}

#[test]
fn a_cancelled_directory_is_not_completed() {
    let (faults, temp) = (Faults::none(), tempfile::tempdir().unwrap());
    let at = |name: &str| temp.path().join(name);
    let write = |output: OpenOutput| {
        let mut file = StreamOutput::new(output);
        file.write(b"data").unwrap();
        file
    };
    let is_cancelled = |result: Result<()>| matches!(result, Err(Error::Cancelled));
    for is_committed in [false, true] {
        let ctx = Context::default();
        let mut whole = OutputDirectory::create(&at("whole"), false, is_own, &ctx).unwrap();
        let mut listed = OutputDirectory::create_or_extend(&at("listed"), is_own, &ctx).unwrap();
        let mut update = OutputDirectory::update(&at("update"), &ctx).unwrap();
        let of_whole = write(whole.open(Path::new("part")).unwrap());
        let of_listed = write(listed.open(Path::new("part")).unwrap());
        let of_update = write(update.open(Path::new("part")).unwrap());
        if is_committed {
            of_whole.commit_unflushed().unwrap();
            of_update.commit_unflushed().unwrap();
            ctx.cancel();
        } else {
            ctx.cancel();
            assert!(is_cancelled(of_whole.commit_unflushed().map(drop)));
            assert!(is_cancelled(of_update.commit_unflushed().map(drop)));
        }
        assert!(is_cancelled(whole.complete(&ctx)));
        assert!(is_cancelled(listed.complete_with_list(
            vec![of_listed],
            Path::new("list"),
            b"list",
            &ctx
        )));
        assert!(is_cancelled(update.complete(&ctx)));
        assert!(!at("whole").exists() && !at("listed").exists());
        assert_eq!(fs::read_dir(at("update")).unwrap().count(), 0);
        fs::remove_dir(at("update")).unwrap();
    }
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
    drop(faults);
}

fn write_file(update: &mut OutputDirectory, name: &str, text: &str) {
    let mut output = update.open(Path::new(name)).unwrap();
    output.file.write_all(text.as_bytes()).unwrap();
    output.output.commit_unflushed().unwrap();
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn files_get_their_names_together() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("dir");
    let mut update = OutputDirectory::update(&root, &Context::default()).unwrap();
    write_file(&mut update, "a", "1");
    assert!(OutputDirectory::update(&root, &Context::default()).is_err());
    drop(update);
    assert!(names(&root).is_empty());
    let mut update = OutputDirectory::update(&root, &Context::default()).unwrap();
    write_file(&mut update, "a", "1");
    write_file(&mut update, "b", "2");
    update.complete(&Context::default()).unwrap();
    let mut update = OutputDirectory::update(&root, &Context::default()).unwrap();
    write_file(&mut update, "b", "3");
    update.complete(&Context::default()).unwrap();
    assert_eq!(names(&root), ["a", "b"]);
    assert_eq!(fs::read_to_string(root.join("b")).unwrap(), "3");
}

#[test]
fn the_next_update_completes_or_undoes_a_killed_one() {
    for is_complete in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let mut update = OutputDirectory::update(root, &Context::default()).unwrap();
        write_file(&mut update, "a", "1");
        write_file(&mut update, "b", "2");
        // A killed process removes nothing. The new name hides the files from `drop`, which would remove them.
        let left = root.join(".update.pbfhogg-1-1.tmp");
        fs::rename(update.staging.path(), &left).unwrap();
        drop(update);
        if is_complete {
            File::create(left.join(COMPLETE)).unwrap();
            fs::rename(left.join("a"), root.join("a")).unwrap();
        }
        drop(OutputDirectory::update(root, &Context::default()).unwrap());
        let expected: &[&str] = if is_complete { &["a", "b"] } else { &[] };
        assert_eq!(names(root), expected);
    }
}
