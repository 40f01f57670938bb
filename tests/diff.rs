//! `diff`: compared with osmium and with a simple comparison on real files, and each option.

use crate::common;
use crate::common::answers::{Answer, ask, ask_osmium, file_of};
use crate::common::comparison::{
    as_osmium_shows, assert_diff, expected, reordered, same_content, same_in_all, small,
    small_files, status_of, versioned, without_common,
};
use crate::common::oracle::{andorra, assert_same_opl, osmium, real_file};
use crate::common::{Object, decode, is_long, node, run_fail, run_ok};

#[test]
fn real_files_differ_as_osmium_and_a_plain_comparison_say() {
    let [a, b, c] = ["a", "b", "c"].map(andorra);
    let l = real_file("liechtenstein-c.osm.pbf");
    let has_osmium = osmium();
    let pairs = if is_long() {
        vec![[&a, &b], [&l, &l], [&b, &c], [&a, &c]]
    } else {
        vec![[&a, &b], [&c, &c]]
    };
    for [old_path, new_path] in pairs {
        let [old, new] = [old_path, new_path].map(|path| decode::objects(path));
        let (old, new) = (&old[..], &new[..]);
        let ours = ask(&[&"diff", &"--all", &"--metadata", old_path, new_path]);
        let all = expected(old, new, &same_in_all);
        assert_eq!(ours.status, status_of(&all));
        assert_same_opl(&ours.lines(), &all);
        let found = ask(&[&"diff", &"-c", &"--metadata", old_path, new_path]);
        assert_same_opl(&found.lines(), &without_common(&all));
        let found = ask(&[&"diff", &"-c", old_path, new_path]);
        let content = expected(old, new, &same_content);
        assert_same_opl(&found.lines(), &without_common(&content));
        assert_eq!(found.status, status_of(&content));
        if !has_osmium {
            continue;
        }
        let theirs = ask_osmium(&[&"diff", &"--no-progress", old_path, new_path]);
        let other_order = reordered(old, new);
        let mut met = 0;
        // The only intended difference from osmium: the order of tags.
        let theirs: Vec<String> = theirs
            .lines()
            .into_iter()
            .map(|line| {
                let id = line[1..].split(' ').next().unwrap();
                if line.starts_with('*') && other_order.contains(id) {
                    met += 1;
                    return format!(" {}", &line[1..]);
                }
                line
            })
            .collect();
        assert_eq!(met, other_order.len());
        let ours: Vec<String> = ours
            .lines()
            .iter()
            .flat_map(|line| as_osmium_shows(line))
            .collect();
        assert_same_opl(&ours, &theirs);
    }
}

#[test]
fn an_order_that_the_header_claims_wrongly_is_found_out() {
    let path = real_file("baltimore.osm.pbf");
    let dir = tempfile::tempdir().unwrap();
    let sorted = dir.path().join("sorted.osm.pbf");
    run_ok(&[&"sort", &path, &"-o", &sorted]);
    let found = ask(&[&"diff", &"-cv", &"--metadata", &path, &sorted]);
    assert_eq!((found.status, &*found.stdout), (0, ""));
    assert_eq!(found.stderr.matches("not in order").count(), 1);
}

/// Runs `diff` on the small files.
fn small_diff(args: &[&str]) -> Answer {
    let dir = tempfile::tempdir().unwrap();
    let [old, new] = small_files(dir.path());
    let mut all: Vec<common::Arg> = vec![&"diff"];
    all.extend(args.iter().map(|arg| arg as common::Arg));
    all.extend([&old as common::Arg, &new]);
    ask(&all)
}

#[test]
fn every_sort_of_difference_has_its_sign() {
    let lines = [
        " n1 v1",
        "*n2 v1 v2",
        "-n3 v4",
        "+n4 v1",
        " n5 v1 v2",
        "*w1 v1 v2",
        " w2 v1",
        "*r1 v1 v2",
        "-r2 v2",
    ];
    let found = small_diff(&["-a"]);
    assert_eq!(
        (found.status, found.lines()),
        (1, lines.map(str::to_owned).into())
    );
    assert_eq!(found.stderr, "");
    let found = small_diff(&["-c", "--metadata"]);
    let changed = [
        "*n2 v1 v2",
        "-n3 v4",
        "+n4 v1",
        "*n5 v1 v2",
        "*w1 v1 v2",
        "*r1 v1 v2",
        "-r2 v2",
    ];
    assert_eq!(found.lines(), changed);
    assert_eq!(small_diff(&["-c", "-t", "way"]).lines(), ["*w1 v1 v2"]);
    let found = small_diff(&["-c", "-t", "node,relation"]).lines();
    assert_eq!(
        found,
        ["*n2 v1 v2", "-n3 v4", "+n4 v1", "*r1 v1 v2", "-r2 v2"]
    );
    let dir = tempfile::tempdir().unwrap();
    let [old, new] = small_files(dir.path());
    let [old_objects, new_objects] = small();
    assert_diff(&old, &new, [&old_objects, &new_objects], "small");
    assert_diff(&new, &old, [&new_objects, &old_objects], "small, backwards");
}

#[test]
fn the_exit_status_tells_whether_something_differs() {
    let dir = tempfile::tempdir().unwrap();
    let [old, new] = small_files(dir.path());
    for (new, status) in [(&old, 0), (&new, 1)] {
        for args in [
            &["-q"][..],
            &["-c"],
            &["-s"],
            &["--json"],
            &["-q", "--verify"],
        ] {
            let args = args.iter().map(|arg| arg as common::Arg);
            let args: Vec<common::Arg> = [&"diff" as common::Arg, &old, new]
                .into_iter()
                .chain(args)
                .collect();
            let found = ask(&args);
            assert_eq!(found.status, status, "{}", found.stderr);
        }
    }
    // Objects that are left out do not affect the exit status.
    let nodes = [versioned(node(1, 10, 10, &[]), 1)];
    let other = file_of(dir.path(), "other.osm.pbf", &[&nodes]);
    assert_eq!(ask(&[&"diff", &"-t", &"way", &old, &old]).status, 0);
    assert_eq!(
        ask(&[&"diff", &"-q", &"-t", &"way", &other, &other]).status,
        0
    );
    assert_eq!(
        ask(&[&"diff", &"-q", &"-t", &"way", &other, &new]).status,
        1
    );
    let quiet = ask(&[&"diff", &"-q", &old, &new]);
    assert_eq!((&*quiet.stdout, &*quiet.stderr), ("", ""));
    let missing = dir.path().join("missing.osm.pbf");
    run_fail(&[&"diff", &old, &missing]);
    run_fail(&[&"diff", &missing, &new]);
}

#[test]
fn counts_are_given_as_text_and_as_json() {
    let counts = small_diff(&["-s", "-c"]).stderr;
    let lines: Vec<&str> = counts.lines().map(str::trim).collect();
    let wanted = [
        "Summary: left=2 right=1 same=3 different=3",
        "nodes: left=1 right=1 same=2 different=1",
        "ways: left=0 right=0 same=1 different=1",
        "relations: left=1 right=0 same=0 different=1",
        "1 with a new version only",
    ];
    assert_eq!(lines, wanted);
    let json = small_diff(&["--json", "--metadata"]).json();
    assert_eq!(
        json["nodes"],
        serde_json::json!({"left": 1, "right": 1, "same": 1, "different": 2})
    );
    assert_eq!(json["ways"]["different"], 1);
    assert_eq!(json["new_version_only"], 1);
    assert_eq!(json["relations"]["left"], 1);
    let dir = tempfile::tempdir().unwrap();
    let [old, new] = small_files(dir.path());
    let text = dir.path().join("text");
    let found = ask(&[&"diff", &"-c", &"--json", &old, &new, &"-o", &text]);
    assert_eq!(found.json()["nodes"]["right"], 1);
    let text = std::fs::read_to_string(text).unwrap();
    assert_eq!(text, small_diff(&["-c"]).stdout);
}

#[test]
fn details_say_what_differs() {
    let found = small_diff(&["-c", "-v", "--metadata"]);
    let text = found.stdout.as_str();
    let below = |start: &str| -> Vec<&str> {
        let lines = text.lines().skip_while(|line| !line.starts_with(start));
        lines
            .skip(1)
            .take_while(|line| line.starts_with("    "))
            .map(str::trim)
            .collect()
    };
    let times = "timestamp: 2020-09-13T12:26:41Z -> 2020-09-13T12:26:42Z";
    let changesets = "changeset: 1007 -> 2007";
    let place = "latitude, longitude: 0.000002 0.000002 -> 0.000002 0.0000021";
    assert_eq!(below("*n2"), [place, times, changesets]);
    assert_eq!(below("*n5"), [times, changesets]);
    let nodes = "nodes from index 3: n3 -> n4";
    // Control characters are escaped.
    assert_eq!(below("*w1"), [times, changesets, "-y=2", "+y=3\\n", nodes]);
    let members = "members from index 1: w1@outer -> w1@inner";
    assert_eq!(below("*r1"), [times, changesets, members]);
    assert!(below("-n3").is_empty() && below("+n4").is_empty());
    let found = small_diff(&["-c", "-v"]);
    assert!(
        !found.stdout.contains("changeset") && found.stdout.contains(place),
        "{found:?}"
    );
}

#[test]
fn parts_of_the_metadata_can_be_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let base = versioned(node(1, 10, 10, &[]), 1);
    let old = file_of(dir.path(), "old.osm.pbf", &[std::slice::from_ref(&base)]);
    let changeset = Object {
        changeset: Some(99),
        ..base.clone()
    };
    let uid = Object {
        uid: Some(99),
        ..base.clone()
    };
    let user = Object {
        user: Some("other".into()),
        ..base.clone()
    };
    let time = Object {
        timestamp: Some(99),
        ..base.clone()
    };
    let version = Object {
        version: Some(99),
        ..base.clone()
    };
    let options = ["--ignore-changeset", "--ignore-uid", "--ignore-user"];
    for (object, ignored_by) in [
        (changeset, Some(options[0])),
        (uid, Some(options[1])),
        (user, Some(options[2])),
        (time, None),
        (version, None),
    ] {
        let new = file_of(dir.path(), "new.osm.pbf", &[std::slice::from_ref(&object)]);
        assert_eq!(ask(&[&"diff", &"-q", &old, &new]).status, 0, "{object:?}");
        assert_eq!(
            ask(&[&"diff", &"-q", &"--metadata", &old, &new]).status,
            1,
            "{object:?}"
        );
        for option in options {
            let found = ask(&[&"diff", &"-c", &"-v", &"--metadata", &option, &old, &new]);
            let is_same = ignored_by == Some(option);
            assert_eq!(found.status, i32::from(!is_same), "{option}: {object:?}");
            assert_eq!(found.stdout.is_empty(), is_same, "{option}: {object:?}");
        }
    }
}
