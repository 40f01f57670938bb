//! `diff` of files with unusual shapes, orders and sizes.

use crate::common;
use crate::common::answers::{ask, ask_osmium, file_in_shape, file_of, history_of, in_order};
use crate::common::comparison::{
    assert_diff, expected, same_content, same_in_all, small, small_files, versioned, without_common,
};
use crate::common::craft::{Layout, Shape};
use crate::common::oracle::{assert_same_opl, osmium};
use crate::common::{Kind, Object, known, mixed_objects, node, relation, run_fail, run_ok, way};
use std::path::{Path, PathBuf};

/// Two lists of a few thousand objects, some of which differ.
fn large() -> [Vec<Object>; 2] {
    let all = |changed: bool| {
        let mut objects = in_order(known(mixed_objects()));
        // `mixed_objects` has none of these ids.
        for id in 1000..5000_i64 {
            let gone = changed && id % 97 == 0 || !changed && id % 89 == 0;
            let moved = i64::from(changed && id % 101 == 0);
            let text = id.to_string();
            if !gone {
                let tags = [("n", text.as_str()), ("k", "v")];
                let tags = if id % 3 == 0 { &tags[..] } else { &[] };
                objects.push(versioned(node(id, id + moved, -id, tags), 1 + moved));
            }
            if id % 5 == 0 && !gone {
                let refs = [id, id + 1 + moved, id + 2];
                objects.push(versioned(way(id, &refs, &[("highway", &text)]), 1 + moved));
            }
            if id % 50 == 0 && !gone {
                let members = [(Kind::Node, id, "a"), (Kind::Way, id, &text)];
                objects.push(versioned(relation(id, &members, &[]), 1));
            }
        }
        in_order(objects)
    };
    [all(false), all(true)]
}

/// Writes the same objects to files of many shapes.
fn shapes(dir: &Path, name: &str, objects: &[Object]) -> Vec<PathBuf> {
    let write = |what: &str, blobs: &[&[Object]], shape: &Shape| {
        file_in_shape(dir, &format!("{name}-{what}.osm.pbf"), blobs, shape)
    };
    let by_kind: Vec<&[Object]> = objects.chunk_by(|a, b| a.kind == b.kind).collect();
    let in_pieces = |size: usize| -> Vec<&[Object]> {
        by_kind
            .iter()
            .flat_map(|objects| objects.chunks(size))
            .collect()
    };
    let plain = Shape {
        dense: false,
        ..Shape::USUAL
    };
    let fine = Shape {
        granularity: 1,
        lat_offset: 7,
        date_granularity: 1,
        ..Shape::USUAL
    };
    let unpacked = Shape {
        layout: Layout::Unpacked,
        ..Shape::USUAL
    };
    let usual = write("usual", &in_pieces(800), &Shape::USUAL);
    let mut files = vec![
        write("small-blobs", &in_pieces(61), &Shape::USUAL),
        write("plain-nodes", &in_pieces(700), &plain),
        write("fine", &in_pieces(900), &fine),
        write("unpacked", &in_pieces(900), &unpacked),
        write(
            "mixed",
            &objects.chunks(1111).collect::<Vec<_>>(),
            &Shape::USUAL,
        ),
        write("one-blob", &[objects], &Shape::USUAL),
    ];
    for (what, args) in [
        ("indexed", &[][..]),
        ("bare", &["--no-index"]),
        ("blob-index", &["--blob-index", "--no-index"]),
        ("zstd", &["--compression", "zstd"]),
    ] {
        let output = dir.join(format!("{name}-{what}.osm.pbf"));
        let mut all: Vec<common::Arg> = vec![&"cat", &usual, &"-o", &output];
        all.extend(args.iter().map(|arg| arg as common::Arg));
        run_ok(&all);
        files.push(output);
    }
    files.push(usual);
    files
}

#[test]
fn the_shape_of_a_file_makes_no_difference() {
    let dir = tempfile::tempdir().unwrap();
    let [old, new] = large();
    let [olds, news] =
        [("old", &old), ("new", &new)].map(|(name, objects)| shapes(dir.path(), name, objects));
    let lines = without_common(&expected(&old, &new, &same_in_all));
    assert!(lines.len() > 100);
    let osc = |old: &Path, new: &Path| {
        // The blobs determine where consecutive changes with the same action share a section: that is not compared.
        let mut action = String::new();
        let mut lines = ask(&[&"derive-changes", &old, &new]).lines();
        lines.retain_mut(|line| {
            let name = line.trim().trim_matches(['<', '/', '>']).to_owned();
            let is_action = ["create", "modify", "delete"].contains(&name.as_str());
            line.insert_str(0, &action);
            if is_action {
                action = name;
            }
            !is_action
        });
        lines
    };
    let changes = osc(&olds[0], &news[0]);
    for (index, one) in olds.iter().enumerate() {
        let other = &olds[(index + 1) % olds.len()];
        for other in [other, &olds[0], one] {
            for option in ["--metadata", "--verify"] {
                let same = ask(&[&"diff", &"-c", &option, one, other]);
                let what = format!("{} {}", one.display(), other.display());
                assert_eq!(
                    (same.status, same.stdout, same.stderr),
                    (0, String::new(), String::new()),
                    "{what}"
                );
            }
        }
        let new = &news[(index * 3 + 1) % news.len()];
        let found = ask(&[&"diff", &"-c", &"--metadata", one, new]);
        assert_same_opl(&found.lines(), &lines);
        let total = |counts: &serde_json::Value, name: &str| {
            let of = |kind: &str| counts[kind][name].as_u64().unwrap();
            of("nodes") + of("ways") + of("relations")
        };
        let counts = ask(&[&"diff", &"--json", &"--metadata", one, new]).json();
        let same = expected(&old, &large()[1], &same_in_all).len() - lines.len();
        assert_eq!(total(&counts, "same"), same as u64);
        assert_same_opl(&osc(one, new), &changes);
    }
}

#[test]
fn the_number_of_jobs_makes_no_difference() {
    let dir = tempfile::tempdir().unwrap();
    let [old, new] = large();
    let files = [("old", &old), ("new", &new)].map(|(name, objects)| {
        let blobs: Vec<&[Object]> = objects.chunks(97).collect();
        file_of(dir.path(), name, &blobs)
    });
    for args in [
        &["diff", "-v"][..],
        &["diff", "--metadata", "-c"],
        &["derive-changes"],
    ] {
        let [one, four] = ["1", "4"].map(|jobs| {
            let args = args.iter().map(|arg| arg as common::Arg);
            let files: [common::Arg; 4] = [&"-j", &jobs, &files[0], &files[1]];
            ask(&args.chain(files).collect::<Vec<_>>()).stdout
        });
        assert!(one == four && !one.is_empty(), "{args:?}");
    }
}

#[test]
fn a_file_that_is_not_in_order_is_compared_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let [old, new] = large();
    let [sorted, new_sorted] =
        [("old", &old), ("new", &new)].map(|(name, objects)| file_of(dir.path(), name, &[objects]));
    let reversed = |objects: &[Object]| objects.iter().rev().cloned().collect::<Vec<_>>();
    let backwards = reversed(&old);
    let blobs: Vec<&[Object]> = backwards.chunks(333).collect();
    let unsorted = file_of(dir.path(), "unsorted", &blobs);
    let blobs: Vec<&[Object]> = new.chunks(500).rev().collect();
    let new_unsorted = file_of(dir.path(), "new-unsorted", &blobs);
    let lines = expected(&old, &new, &same_content);
    for (old, new, notes) in [
        (&unsorted, &new_sorted, 1),
        (&sorted, &new_unsorted, 1),
        (&unsorted, &new_unsorted, 2),
    ] {
        let found = ask(&[&"diff", &"-cv", old, new]);
        assert_eq!(
            found.stderr.matches("not in order").count(),
            notes,
            "{}",
            found.stderr
        );
        assert_same_opl(&ask(&[&"diff", &"-a", old, new]).lines(), &lines);
    }
    let found = ask(&[&"diff", &"-c", &"--metadata", &sorted, &unsorted]);
    assert_eq!((found.status, &*found.stdout), (0, ""));
}

#[test]
fn ids_at_the_ends_of_their_range_are_ids_like_others() {
    let dir = tempfile::tempdir().unwrap();
    let ids = [0, -1, 1, 1 << 40, i64::MAX, i64::MIN + 1];
    let objects = |moved: i64| -> Vec<Object> {
        let nodes = ids
            .iter()
            .map(|&id| versioned(node(id, 1 + moved, 2, &[]), 1));
        let ways = ids
            .iter()
            .map(|&id| versioned(way(id, &[id, moved], &[]), 1));
        let member = |id| [(Kind::Node, id, "")];
        let relations = ids
            .iter()
            .map(|&id| versioned(relation(id, &member(id), &[]), 1));
        in_order(nodes.chain(ways).chain(relations).collect())
    };
    let (old, new) = (objects(0), objects(1));
    let files = [("old", &old), ("new", &new), ("few", &old[1..4].to_vec())]
        .map(|(name, objects)| file_of(dir.path(), name, &[objects]));
    assert_diff(&files[0], &files[1], [&old, &new], "extreme ids");
    assert_diff(&files[0], &files[2], [&old, &old[1..4]], "extreme ids gone");
    assert_diff(&files[2], &files[1], [&old[1..4], &new], "extreme ids new");
}

#[test]
fn files_without_objects_or_with_relations_alone_are_compared() {
    let dir = tempfile::tempdir().unwrap();
    let [old, new] = small();
    let relations = |objects: &[Object]| -> Vec<Object> {
        let is_relation = |object: &&Object| object.kind == Kind::Relation;
        objects.iter().filter(is_relation).cloned().collect()
    };
    let lists = [
        ("nothing", Vec::new()),
        ("small", old.clone()),
        ("relations", relations(&old)),
        ("other relations", relations(&new)),
    ];
    let files = lists
        .each_ref()
        .map(|(name, objects)| file_of(dir.path(), name, &[objects]));
    let none = file_of(dir.path(), "no blob", &[]);
    for ((name, old), old_file) in lists.iter().zip(&files) {
        for ((other, new), new_file) in lists.iter().zip(&files) {
            assert_diff(old_file, new_file, [old, new], &format!("{name}, {other}"));
        }
        assert_diff(old_file, &none, [old, &[]], &format!("{name}, no blob"));
        assert_diff(&none, old_file, [&[], old], &format!("no blob, {name}"));
    }
}

#[test]
fn versions_are_told_apart_in_history_files() {
    let dir = tempfile::tempdir().unwrap();
    let at = |id: i64, version: i64| versioned(node(id, id, version, &[]), version);
    let deleted = Object {
        visible: false,
        ..at(1, 3)
    };
    let old = [at(1, 1), at(1, 2), deleted.clone(), at(2, 1), at(3, 1)];
    let mut other = at(2, 1);
    other.lat_nano += 100;
    let new = [at(1, 1), deleted, at(1, 4), other, at(2, 2), at(3, 1)];
    let old = history_of(dir.path(), "old.osh.pbf", &[&old[..2], &old[2..]]);
    let new = history_of(dir.path(), "new.osh.pbf", &[&new]);
    let found = ask(&[&"diff", &"-a", &old, &new]);
    let lines = [
        " n1 v1", "-n1 v2", " n1 v3", "+n1 v4", "*n2 v1", "+n2 v2", " n3 v1",
    ];
    assert_eq!(
        (found.status, found.lines()),
        (1, lines.map(str::to_owned).into())
    );
    if osmium() {
        let theirs = ask_osmium(&[&"diff", &"--no-progress", &old, &new]);
        assert_eq!(theirs.lines(), lines);
    }
    assert_eq!(ask(&[&"diff", &"-q", &old, &old]).status, 0);
    let message = run_fail(&[&"diff", &"--format", &"osc", &old, &new]);
    assert!(message.contains("history"), "{message}");
    run_fail(&[&"derive-changes", &old, &new]);
}

#[test]
fn an_output_that_exists_is_replaced_on_demand_only() {
    let dir = tempfile::tempdir().unwrap();
    let [old, new] = small_files(dir.path());
    for (command, name, status) in [("diff", "text", 1), ("derive-changes", "changes.osc.gz", 0)] {
        let output = dir.path().join(name);
        std::fs::write(&output, "mine").unwrap();
        run_fail(&[&command, &old, &new, &"-o", &output]);
        assert_eq!(std::fs::read(&output).unwrap(), b"mine");
        let found = ask(&[&command, &old, &new, &"-O", &"-o", &output]);
        assert_eq!(found.status, status, "{}", found.stderr);
        assert_ne!(std::fs::read(&output).unwrap(), b"mine");
    }
    let input = std::fs::read(&old).unwrap();
    run_fail(&[&"diff", &old, &new, &"-o", &old]);
    assert!(std::fs::read(&old).unwrap() == input);
}
