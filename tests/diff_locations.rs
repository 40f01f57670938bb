//! `diff` and `derive-changes` of files whose ways store locations: a stored location counts if neither file has the
//! node.

use crate::common::answers::{Answer, ask, ask_osmium};
use crate::common::oracle::osmium;
use crate::common::run_ok;
use std::path::{Path, PathBuf};

/// Way 3 has node 9, which no file has. Node 4 is not in the way of anything.
const WORLD: &str = "n1 v1 dV x1 y1\nn2 v1 dV x2 y1\nn3 v1 dV x3 y1 Tname=a\nn4 v1 dV x4 y1\n\
    w1 v1 dV Thighway=a Nn1,n2\nw2 v1 dV Thighway=a Nn2,n3,n2\nw3 v1 dV Thighway=a Nn1,n9\n";

/// The world after node 2 has moved. The versions stay, as those of ways always do when their nodes move.
fn moved() -> String {
    WORLD.replace("x2 y1", "x2.5 y1")
}

/// Writes a file of objects in OPL.
fn file(dir: &Path, name: &str, opl: &str) -> PathBuf {
    let [text, file] = ["opl", "osm.pbf"].map(|suffix| dir.join(format!("{name}.{suffix}")));
    std::fs::write(&text, opl).unwrap();
    run_ok(&[&"cat", &"-q", &"-O", &text, &"-o", &file]);
    file
}

/// Writes a located file of objects in OPL, without the nodes that only ways need.
fn located(dir: &Path, name: &str, opl: &str) -> PathBuf {
    let (plain, file) = (file(dir, "in", opl), dir.join(format!("{name}.osm.pbf")));
    run_ok(&[&"add-locations-to-ways", &"-q", &"-O", &plain, &"-o", &file]);
    file
}

/// The four forms of a file: plain; located, with all nodes; located, needed nodes only; and mixed, which is the form of
/// a located file whose header does not declare its nodes.
fn forms(dir: &Path, name: &str, opl: &str) -> [PathBuf; 4] {
    let plain = file(dir, &format!("{name}-plain"), opl);
    let needed = located(dir, &format!("{name}-needed"), opl);
    let [all, text, mixed] = ["all.osm.pbf", "mixed.opl", "mixed.osm.pbf"]
        .map(|suffix| dir.join(format!("{name}-{suffix}")));
    run_ok(&[
        &"add-locations-to-ways",
        &"-q",
        &"-O",
        &"-n",
        &plain,
        &"-o",
        &all,
    ]);
    run_ok(&[&"cat", &"-q", &"-O", &needed, &"-o", &text]);
    run_ok(&[&"cat", &"-q", &"-O", &text, &"-o", &mixed]);
    [plain, all, needed, mixed]
}

fn diff(options: &[&str], old: &Path, new: &Path) -> Answer {
    let mut args: Vec<crate::common::Arg> = vec![&"diff"];
    args.extend(options.iter().map(|option| option as crate::common::Arg));
    args.extend([&old as crate::common::Arg, &new]);
    ask(&args)
}

/// The objects of a file in OPL, with the locations in ways.
fn objects(path: &Path) -> Vec<String> {
    ask(&[&"cat", &"-q", &path, &"-f", &"opl"]).lines()
}

#[test]
fn ways_differ_if_a_node_has_moved_that_no_file_has() {
    let dir = tempfile::tempdir().unwrap();
    let old = located(dir.path(), "old", WORLD);
    let new = located(dir.path(), "new", &moved());
    let small = dir.path().join("small.osm.pbf");
    run_ok(&[&"repack", &"-q", &"-n", &"1", &new, &"-o", &small]);
    let spatial = dir.path().join("spatial.osm.pbf");
    run_ok(&[
        &"repack",
        &"-q",
        &"--layout",
        &"hilbert",
        &new,
        &"-o",
        &spatial,
    ]);
    for new in [&new, &small, &spatial] {
        for options in [
            &["-c"][..],
            &["-c", "--metadata", "--ignore-user"],
            &["-c", "--verify"],
            &["-c", "-t", "way"],
        ] {
            let found = diff(options, &old, new);
            assert_eq!(found.lines(), ["*w1 v1", "*w2 v1"], "{options:?}");
            assert_eq!(found.status, 1);
        }
        assert_eq!(diff(&["-q"], &old, new).status, 1);
        let json = diff(&["--json"], &old, new).json();
        assert_eq!(json["ways"]["different"], 2);
        assert_eq!(json["ways"]["same"], 1);
        assert_eq!(json["relocated"], 2);
    }
    let details = diff(&["-c", "-v"], &old, &new).lines();
    let line = "    location of n2: 1 2 -> 1 2.5";
    assert_eq!(details, ["*w1 v1", line, "*w2 v1", line]);
    let objects = diff(&["-c", "-f", "opl"], &old, &new).stdout;
    assert!(objects.contains("n2x2y1") && objects.contains("n2x2.5y1"));
    assert_eq!(diff(&["-c"], &old, &old).status, 0);
    assert_eq!(diff(&["-c", "-t", "node"], &old, &new).status, 0);
}

#[test]
fn files_of_the_same_data_have_the_same_ways_in_every_form() {
    let dir = tempfile::tempdir().unwrap();
    let forms = forms(dir.path(), "world", WORLD);
    for old in &forms {
        for new in &forms {
            let found = diff(&["-c", "-t", "way,relation"], old, new);
            assert_eq!((found.status, &*found.stdout), (0, ""), "{old:?} {new:?}");
        }
    }
    // All nodes that ways need are in the plain file, so that it tells of each of them.
    let [.., mixed] = self::forms(dir.path(), "moved", &moved());
    let found = diff(&["-c", "-t", "way"], &forms[0], &mixed);
    assert_eq!(found.status, 0);
    let found = diff(&["-c", "-t", "way"], &forms[2], &mixed);
    assert_eq!(found.lines(), ["*w1 v1", "*w2 v1"]);
}

#[test]
fn an_unknown_location_differs_from_a_known_one_between_located_files() {
    let dir = tempfile::tempdir().unwrap();
    let way = |nodes: &str| format!("w1 v1 dV N{nodes}\nw2 v1 dV Nn7x1y1,n8x2y2\n");
    let known = file(dir.path(), "known", &way("n1x1y1,n2x2y1"));
    let unknown = file(dir.path(), "unknown", &way("n1x1y1,n2"));
    let none = file(dir.path(), "none", &way("n1,n2"));
    let plain = file(dir.path(), "plain", "w1 v1 dV Nn1,n2\nw2 v1 dV Nn7,n8\n");
    for other in [&unknown, &none] {
        assert_eq!(diff(&["-c"], &known, other).lines(), ["*w1 v1"]);
        assert_eq!(diff(&["-c"], other, &known).lines(), ["*w1 v1"]);
    }
    // A plain file says nothing about nodes that it does not have.
    for located in [&known, &unknown, &none] {
        assert_eq!(diff(&["-c"], &plain, located).status, 0);
        assert_eq!(diff(&["-c"], located, &plain).status, 0);
    }
    let details = diff(&["-c", "-v"], &known, &unknown).lines();
    assert_eq!(details[1], "    location of n2: 1 2 -> unknown");
    let derived = ask(&[&"derive-changes", &known, &unknown]);
    assert!(derived.stderr.contains("1 way of the new file without"));
    let derived = ask(&[&"derive-changes", &unknown, &known]).stdout;
    assert!(derived.contains("<nd ref=\"2\" lat=\"1\" lon=\"2\"/>"));
    assert!(!derived.contains("<way id=\"2\""));
}

#[test]
fn a_node_that_one_file_has_counts_instead_of_stored_locations() {
    let dir = tempfile::tempdir().unwrap();
    let old = located(dir.path(), "old", &WORLD.replace("x2 y1", "x2 y1 Tname=b"));
    let new = located(dir.path(), "new", &moved());
    assert_eq!(diff(&["-c"], &old, &new).lines(), ["-n2 v1"]);
    assert_eq!(diff(&["-c"], &new, &old).lines(), ["+n2 v1"]);
}

#[test]
fn stored_locations_of_history_files_are_not_compared() {
    let dir = tempfile::tempdir().unwrap();
    let history = |last: &str| format!("w1 v1 dV Nn1x1y1,n2x2y1\nw1 v2 dV Nn1x1y1,n2x{last}y1\n");
    let [old, new] = ["2", "3"].map(|last| file(dir.path(), last, &history(last)));
    assert_eq!(diff(&["-c"], &old, &new).stdout, "");
}

#[test]
fn the_page_counts_ways_with_other_locations() {
    let dir = tempfile::tempdir().unwrap();
    let old = located(dir.path(), "old", WORLD);
    let new = located(dir.path(), "new", &moved());
    let page = dir.path().join("page.html");
    run_ok(&[&"diff", &"-q", &"--html", &page, &old, &new]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("\"relocated\":2,\"metadata_only\":0"));
}

#[test]
fn the_second_name_compares_stored_locations_as_osmium_does() {
    let dir = tempfile::tempdir().unwrap();
    let files = [
        forms(dir.path(), "world", WORLD),
        forms(dir.path(), "moved", &moved()),
    ];
    let files = files.as_flattened();
    let as_osmium = |old: &Path, new: &Path| ask(&[&"osmium", &"diff", &"-c", &old, &new]);
    let found = as_osmium(&files[2], &files[6]);
    assert_eq!(
        (found.status, found.lines()),
        (1, vec!["*w1 v1".to_owned(), "*w2 v1".to_owned()])
    );
    if !osmium() {
        return;
    }
    for old in &files[..4] {
        for new in files {
            let theirs = ask_osmium(&[&"diff", &"-c", &"--no-progress", old, new]);
            let ours = as_osmium(old, new);
            let what = format!("{old:?} {new:?}");
            assert_eq!(ours.stdout, theirs.stdout, "{what}");
            assert_eq!(ours.status, theirs.status, "{what}");
        }
    }
}

#[test]
fn a_change_file_has_ways_with_the_locations_that_differ() {
    let dir = tempfile::tempdir().unwrap();
    let old = located(dir.path(), "old", WORLD);
    let new = located(dir.path(), "new", &moved());
    let derived = ask(&[&"derive-changes", &old, &new]);
    assert_eq!(derived.status, 0);
    assert!(derived.stderr.contains("2 ways only for the locations"));
    let text = derived.stdout;
    assert_eq!(text.matches("<way ").count(), 2);
    assert_eq!(text.matches("<modify>").count(), 1);
    assert!(text.contains("<nd ref=\"2\" lat=\"1\" lon=\"2.5\"/>"));
    let other = ask(&[&"diff", &"-f", &"osc,locations_on_ways=false", &old, &new]);
    assert_eq!((other.status, other.stdout.contains("<way ")), (0, false));
    assert_eq!(other.stderr, "");
    // Merging changes keeps the locations.
    let [changes, merged] = ["changes.osc", "merged.osc"].map(|name| dir.path().join(name));
    std::fs::write(&changes, &text).unwrap();
    for simplify in [&["merge-changes", "-q"][..], &["merge-changes", "-q", "-s"]] {
        let mut args: Vec<crate::common::Arg> = Vec::new();
        args.extend(simplify.iter().map(|arg| arg as crate::common::Arg));
        args.extend([&"-O" as crate::common::Arg, &changes, &"-o", &merged]);
        run_ok(&args);
        let nodes = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| line.contains("<nd "));
            lines.map(|line| line.trim().to_owned()).collect()
        };
        let merged = std::fs::read_to_string(&merged).unwrap();
        assert_eq!(nodes(&merged), nodes(&text));
    }
}

#[test]
fn a_change_file_has_the_ways_of_a_node_that_is_no_longer_needed() {
    let dir = tempfile::tempdir().unwrap();
    let old = located(dir.path(), "old", &WORLD.replace("x2 y1", "x2 y1 Tname=b"));
    let new = located(dir.path(), "new", WORLD);
    // The ways are equal in both files, and so are their blobs.
    assert_eq!(diff(&["-c"], &old, &new).lines(), ["-n2 v1"]);
    for verify in [&["-q"][..], &["--verify"]] {
        let options = [&["-f", "osc"][..], verify].concat();
        let text = diff(&options, &old, &new).stdout;
        assert!(text.contains("<node id=\"2\""), "{text}");
        assert!(text.contains("<way id=\"1\"") && text.contains("<way id=\"2\""));
        assert!(!text.contains("<way id=\"3\""));
    }
}

#[test]
fn derived_changes_give_located_files_the_locations_of_the_new_file() {
    let dir = tempfile::tempdir().unwrap();
    let tagged = WORLD.replace("x2 y1", "x2 y1 Tname=b");
    let more = format!("{}w4 v1 dV Nn1,n4\n", moved().replace("Nn1,n2", "Nn4,n2"));
    let worlds = [WORLD.to_owned(), moved(), tagged, more];
    let files: Vec<PathBuf> = worlds
        .iter()
        .enumerate()
        .map(|(number, world)| located(dir.path(), &format!("world{number}"), world))
        .collect();
    let [changes, applied] = ["changes.osc", "applied.osm.pbf"].map(|name| dir.path().join(name));
    for old in &files {
        for new in &files {
            run_ok(&[&"derive-changes", &"-q", &"-O", old, new, &"-o", &changes]);
            run_ok(&[
                &"apply-changes",
                &"-q",
                &"-O",
                &"--locations-on-ways",
                old,
                &changes,
                &"-o",
                &applied,
            ]);
            assert_eq!(objects(&applied), objects(new), "{old:?} {new:?}");
        }
    }
}
