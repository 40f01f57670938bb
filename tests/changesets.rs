//! Changesets among the objects of a file, which are written as text and left out of PBF.

use crate::awkward_objects::{ask_second, text};
use crate::common::answers::{ask, ask_osmium};
use crate::common::oracle::osmium;
use crate::common::{Arg, in_turn};
use std::path::{Path, PathBuf};

const CHANGESETS_FIRST: &str = "c5 k2 s2024-01-01T00:00:00Z e d0 i1 uu x y X Y Tcomment=x\n\
    n1 v1 dV c0 t i0 u Ta=b x1 y1\nn2 v1 dV c0 t i0 u T x2 y2\nw1 v1 dV c0 t i0 u Thighway=x Nn1,n2\n";
const CHANGESETS_LAST: &str = "n1 v1 dV c0 t i0 u Ta=b x1 y1\nn2 v1 dV c0 t i0 u T x2 y2\n\
    w1 v1 dV c0 t i0 u Thighway=x Nn1,n2\nc5 k2 s2024-01-01T00:00:00Z e d0 i1 uu x y X Y Tcomment=x\n";

/// The changesets and objects above in OPL and XML, plain and compressed.
fn mixed_files(dir: &Path) -> Vec<(PathBuf, &'static str)> {
    let mut files = Vec::new();
    for (name, content) in [("first", CHANGESETS_FIRST), ("last", CHANGESETS_LAST)] {
        let opl = text(dir, &format!("{name}.opl"), content);
        for end in ["osm", "osm.gz", "opl.bz2"] {
            let path = dir.join(format!("{name}.{end}"));
            assert_eq!(ask(&[&"cat", &opl, &"-o", &path]).status, 0);
            files.push((path, content));
        }
        files.push((opl, content));
    }
    files
}

#[test]
fn changesets_among_objects_are_written_as_text_and_left_out_of_pbf() {
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in mixed_files(dir.path()) {
        for command in ["cat", "renumber"] {
            let found = ask(&[&command, &path, &"-f", &"opl"]);
            assert_eq!(
                (found.status, found.stdout.as_str()),
                (0, content),
                "{path:?}"
            );
        }
        let kinds = ask(&[&"cat", &"-t", &"way", &path, &"-f", &"opl"]);
        assert_eq!(kinds.stdout, "w1 v1 dV c0 t i0 u Thighway=x Nn1,n2\n");
        let pbf = dir.path().join("out.osm.pbf");
        let found = ask(&[&"cat", &"-O", &path, &"-o", &pbf]);
        assert_eq!(found.status, 0);
        assert!(
            found.stderr.contains("changesets are left out: 1"),
            "{}",
            found.stderr
        );
        assert_eq!(ask(&[&"inspect", &"-g", &"objects", &pbf]).stdout, "3\n");
        let quiet = ask_second(&[&"cat", &"-O", &path, &"-o", &pbf]);
        assert_eq!((quiet.status, quiet.stderr.as_str()), (0, ""));
    }
}

#[test]
fn every_command_works_on_the_objects_of_a_file_with_changesets() {
    let dir = tempfile::tempdir().unwrap();
    let commands: [&[Arg]; 10] = [
        &[&"sort", &"-f", &"opl"],
        &[&"merge", &"-f", &"opl"],
        &[&"add-locations-to-ways", &"-n", &"-f", &"opl"],
        &[&"tags-count"],
        &[&"check-refs"],
        &[&"export", &"-f", &"geojsonseq"],
        &[&"renumber", &"-f", &"opl"],
        &[&"time-filter", &"-f", &"opl"],
        &[&"extract", &"-b", &"0,0,5,5", &"-f", &"opl"],
        &[&"changeset-filter", &"-f", &"opl"],
    ];
    for (turn, (path, _)) in mixed_files(dir.path()).into_iter().enumerate() {
        for command in in_turn(turn, 2, commands) {
            let mut args = command.to_vec();
            args.push(&path);
            assert_eq!(ask(&args).status, 0, "{path:?}");
            if osmium() {
                let (ours, theirs) = (ask_second(&args), ask_osmium(&args));
                assert_eq!(ours.status, theirs.status, "{path:?}");
                assert_eq!(ours.sorted_lines(), theirs.sorted_lines(), "{path:?}");
            }
        }
        let count = ask(&[&"fileinfo", &"-e", &"-g", &"data.count.changesets", &path]);
        assert_eq!(count.stdout, "1\n");
    }
}

#[test]
fn sort_and_merge_write_changesets_behind_the_objects_by_id() {
    let dir = tempfile::tempdir().unwrap();
    let changeset = |id: u32, changes: u32| format!("c{id} k{changes} s e d0 i1 uu x y X Y T\n");
    let node = "n1 v1 dV c0 t i0 u T x1 y1\n";
    let first = changeset(9, 1) + &changeset(2, 1) + node;
    let first = text(dir.path(), "first.opl", &first);
    let second = text(
        dir.path(),
        "second.opl",
        &(node.to_owned() + &changeset(9, 4)),
    );
    let expected = [
        (
            "sort",
            node.repeat(2) + &changeset(2, 1) + &changeset(9, 1) + &changeset(9, 4),
        ),
        (
            "merge",
            node.to_owned() + &changeset(2, 1) + &changeset(9, 4),
        ),
    ];
    for (command, expected) in expected {
        let found = ask(&[&command, &first, &second, &"-f", &"opl"]);
        assert_eq!((found.status, found.stdout), (0, expected), "{command}");
        // Neither PBF nor a change file has room for them.
        for name in ["out.osm.pbf", "out.osc"] {
            let out = dir.path().join(name);
            let found = ask(&[&command, &"-O", &first, &second, &"-o", &out]);
            assert_eq!(found.status, 0, "{}", found.stderr);
            assert_eq!(
                found.stderr.matches("changesets are left out").count(),
                2,
                "{}",
                found.stderr
            );
        }
    }
}

#[test]
fn add_locations_to_ways_keeps_changesets_at_their_place() {
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in mixed_files(dir.path()) {
        let located = content.replace("Nn1,n2", "Nn1x1y1,n2x2y2");
        let found = ask(&[&"add-locations-to-ways", &"-n", &path, &"-f", &"opl"]);
        assert_eq!((found.status, found.stdout), (0, located), "{path:?}");
    }
}

#[test]
fn a_file_of_changesets_alone_is_still_no_input_for_pbf() {
    let dir = tempfile::tempdir().unwrap();
    let path = text(dir.path(), "c.opl", "c5 k0 s e d0 i1 uu x y X Y T\n");
    let found = ask(&[&"sort", &path, &"-f", &"opl"]);
    assert_eq!(found.status, 2);
    assert!(
        found.stderr.contains("nothing but changesets"),
        "{}",
        found.stderr
    );
    let broken = text(dir.path(), "d.opl", "n1 v1 x1 y1\nc5 kx\n");
    assert_eq!(ask(&[&"sort", &broken, &"-f", &"opl"]).status, 2);
}
