//! Augmented diffs that other commands write on their way equal those of `augmented-diff`.

use crate::common::oracle::andorra;
use crate::common::publisher::{DAYS, Publisher};
use crate::common::{pbfhogg, run_fail, run_ok};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the augmented diff of changes to a file.
fn plain(base: &Path, changes: &Path) -> Vec<u8> {
    run_ok(&[&"augmented-diff", &"-q", &base, &changes]).stdout
}

struct Pair {
    dir: tempfile::TempDir,
    old: PathBuf,
    new: PathBuf,
    changes: PathBuf,
}

fn pair() -> Pair {
    let dir = tempfile::tempdir().unwrap();
    let changes = dir.path().join("changes.osc");
    let [old, new] = ["b", "c"].map(andorra);
    run_ok(&[&"diff", &"-q", &"-f", &"osc", &old, &new, &"-o", &changes]);
    Pair {
        dir,
        old,
        new,
        changes,
    }
}

#[test]
fn applying_changes_tells_what_they_do() {
    let pair = pair();
    let path = |name: &str| pair.dir.path().join(name);
    let [located, after, also, diff] = [
        "located.osm.pbf",
        "after.osm.pbf",
        "also.osm.pbf",
        "x.adiff",
    ]
    .map(path);
    run_ok(&[&"add-locations-to-ways", &"-n", &pair.old, &"-o", &located]);
    for (base, option) in [(&pair.old, "-q"), (&located, "--locations-on-ways")] {
        let apply = |output: &Path, more: &[crate::common::Arg]| {
            let args: [crate::common::Arg; 7] = [
                &"apply-changes",
                &"-O",
                &option,
                &base,
                &pair.changes,
                &"-o",
                &output,
            ];
            run_ok(&[&args, more].concat());
        };
        apply(&after, &[]);
        apply(&also, &[&"--augmented-diff", &diff]);
        assert!(fs::read(&after).unwrap() == fs::read(&also).unwrap());
        assert!(fs::read(&diff).unwrap() == plain(base, &pair.changes));
    }
    // Both outputs may exist only with --overwrite.
    let message = run_fail(&[
        &"apply-changes",
        &pair.old,
        &pair.changes,
        &"--augmented-diff",
        &diff,
        &"-o",
        &path("other.osm.pbf"),
    ]);
    assert!(message.contains("x.adiff"), "{message}");
    assert!(!path("other.osm.pbf").exists());
}

#[test]
fn two_files_differ_by_the_changes_between_them() {
    let pair = pair();
    let by_name = pair.dir.path().join("x.adiff.gz");
    let expected = plain(&pair.old, &pair.changes);
    let found = run_ok(&[&"diff", &"-q", &"-f", &"adiff", &pair.old, &pair.new]);
    assert!(found.stdout == expected);
    let mut piped = pbfhogg();
    piped
        .args(["diff", "-q", "-f", "adiff", "-"])
        .arg(&pair.new);
    let piped = piped.stdin(fs::File::open(&pair.old).unwrap()).output();
    assert!(piped.unwrap().stdout == expected);
    run_ok(&[&"diff", &"-q", &pair.old, &pair.new, &"-o", &by_name]);
    assert!(fs::metadata(&by_name).unwrap().len() * 3 < expected.len() as u64);
    // The new file may have older versions: all differences are there.
    let back = run_ok(&[&"diff", &"-q", &"-f", &"adiff", &pair.new, &pair.old]);
    let count = |text: &[u8]| String::from_utf8_lossy(text).matches("<action ").count();
    assert_eq!(count(&back.stdout), count(&expected));
    let message = run_fail(&[
        &"diff", &"-f", &"adiff", &"-t", &"node", &pair.old, &pair.new,
    ]);
    assert!(message.contains("all kinds"), "{message}");
}

#[test]
fn an_update_tells_what_each_change_file_does() {
    let publisher = Publisher::new();
    let file = publisher.copy("file.osm.pbf");
    let diffs = publisher.path("diffs");
    for day in [1, DAYS] {
        publisher.publish(day);
        let (status, _) = publisher.update(&file, &["--augmented-diff", diffs.to_str().unwrap()]);
        assert_eq!(status, 0);
        assert_eq!(publisher.day_of(&file), day);
    }
    for day in 1..=DAYS {
        let changes = publisher.path(&format!("server/000/000/{day:03}.osc.gz"));
        let expected = plain(&publisher.data(day - 1), &changes);
        let found = fs::read(diffs.join(format!("{day}.adiff"))).unwrap();
        let (found, expected) = (String::from_utf8(found), String::from_utf8(expected));
        assert_eq!(found, expected, "day {day}");
    }
    assert_eq!(fs::read_dir(&diffs).unwrap().count(), DAYS);
}
