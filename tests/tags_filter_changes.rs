//! `tags-filter` of change files: matching objects, the objects that they refer to, and all deletions.

use crate::common;
use crate::common::answers::ask_osmium;
use crate::common::oracle::{assert_same_opl, opl_objects, osmium, real_file};
use crate::common::{Kind, Object, canonical_key, run_ok};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

type Key = (Kind, i64);

fn key(object: &Object) -> Key {
    (object.kind, object.id)
}

/// A change file, and the objects that osmium reads in it; `None` without osmium.
fn changes() -> Option<(PathBuf, Vec<Object>)> {
    let path = real_file("000466354.osc.gz");
    osmium().then(|| (path.clone(), opl_objects(&path)))
}

fn filtered(input: &Path, args: &[&str]) -> (Vec<Object>, serde_json::Value) {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.osc.gz");
    let mut all: Vec<common::Arg> = vec![&"tags-filter", &input, &"--json", &"-o", &output];
    all.extend(args.iter().map(|arg| arg as common::Arg));
    let summary = run_ok(&all);
    let mut objects = opl_objects(&output);
    objects.sort_by_key(|object| canonical_key(object.kind, object.id));
    (objects, serde_json::from_slice(&summary.stdout).unwrap())
}

/// `matched`, and the objects that they refer to directly or indirectly through objects in the change file.
fn with_references(all: &[Object], matched: &HashSet<Key>) -> HashSet<Key> {
    let mut kept = matched.clone();
    loop {
        let before = kept.len();
        for object in all.iter().filter(|object| object.visible) {
            if kept.contains(&key(object)) {
                kept.extend(object.refs.iter().map(|&id| (Kind::Node, id)));
                kept.extend(object.members.iter().map(|&(kind, id, _)| (kind, id)));
            }
        }
        if kept.len() == before {
            return kept;
        }
    }
}

/// The changes that the filter must keep, in canonical order: those in `kept`, and all deletions.
fn expected(all: &[Object], kept: &HashSet<Key>) -> Vec<Object> {
    let mut objects: Vec<Object> = all
        .iter()
        .filter(|object| !object.visible || kept.contains(&key(object)))
        .cloned()
        .collect();
    objects.sort_by_key(|object| canonical_key(object.kind, object.id));
    objects
}

/// Objects for comparison. Of deletions, only the properties that a written deletion has are left.
fn comparable(objects: Vec<Object>) -> Vec<Object> {
    let plain = |object: Object| {
        if object.visible {
            object
        } else {
            Object {
                visible: false,
                version: object.version,
                timestamp: object.timestamp,
                ..Object::new(object.kind, object.id)
            }
        }
    };
    objects.into_iter().map(plain).collect()
}

fn matched(all: &[Object], matches: &dyn Fn(&Object) -> bool) -> HashSet<Key> {
    let visible = all.iter().filter(|object| object.visible);
    visible.filter(|object| matches(object)).map(key).collect()
}

fn has_key(object: &Object, wanted: &str) -> bool {
    object.tags.iter().any(|(key, _)| key == wanted)
}

fn is_highway(object: &Object) -> bool {
    object.kind == Kind::Way && has_key(object, "highway")
}

#[test]
fn matching_changes_are_kept_with_their_references_and_all_deletions() {
    let Some((path, all)) = changes() else { return };
    let deleted = all.iter().filter(|object| !object.visible).count();
    for (args, matches) in [
        (&["w/highway"][..], &is_highway as &dyn Fn(&Object) -> bool),
        (&["r/type"], &|object| {
            object.kind == Kind::Relation && has_key(object, "type")
        }),
        (&["building", "n/source"], &|object| {
            has_key(object, "building") || object.kind == Kind::Node && has_key(object, "source")
        }),
        (&["nothing=like this"], &|_| false),
        (&["-i", "w/highway"], &|object| !is_highway(object)),
    ] {
        let matched = matched(&all, matches);
        let kept = with_references(&all, &matched);
        let (found, summary) = filtered(&path, args);
        let wanted = expected(&all, &kept);
        assert_eq!(comparable(found), comparable(wanted.clone()), "{args:?}");
        assert_eq!(summary["matched"], matched.len(), "{args:?}");
        assert_eq!(summary["deleted"], deleted, "{args:?}");
        assert_eq!(
            summary["referenced"],
            wanted.len() - deleted - matched.len()
        );
        assert_eq!(summary["dropped"], all.len() - wanted.len());
        let (found, _) = filtered(&path, &[&["-R"], args].concat());
        let wanted = expected(&all, &matched);
        assert_eq!(comparable(found), comparable(wanted), "-R {args:?}");
    }
}

#[test]
fn the_matches_are_those_of_osmium() {
    let Some((path, _)) = changes() else { return };
    let dir = tempfile::tempdir().unwrap();
    for expression in [
        "w/highway",
        "building=yes",
        "n/source=PGS,survey",
        "r/type!=route",
    ] {
        let ours = dir.path().join("ours.osc");
        run_ok(&[
            &"tags-filter",
            &"-R",
            &path,
            &expression,
            &"-O",
            &"-o",
            &ours,
        ]);
        let visible = |lines: Vec<String>| -> Vec<String> {
            let mut lines: Vec<String> = lines
                .into_iter()
                .filter(|line| line.contains(" dV "))
                .collect();
            lines.sort();
            lines
        };
        let args: [common::Arg; 6] = [&"tags-filter", &"-R", &path, &expression, &"-f", &"opl"];
        let theirs = ask_osmium(&args).lines();
        assert_same_opl(&visible(common::oracle::opl(&ours)), &visible(theirs));
    }
}

#[test]
fn objects_that_are_referred_to_lose_their_tags_on_demand() {
    let Some((path, all)) = changes() else { return };
    let matched = matched(&all, &is_highway);
    let kept = with_references(&all, &matched);
    let mut wanted = expected(&all, &kept);
    let mut lost = 0;
    for object in &mut wanted {
        if object.visible && !matched.contains(&key(object)) {
            lost += object.tags.len();
            object.tags.clear();
        }
    }
    assert!(lost > 0, "no tags to lose");
    let (found, _) = filtered(&path, &["-t", "w/highway"]);
    assert_eq!(comparable(found), comparable(wanted));
}

#[test]
fn the_kind_of_a_change_file_can_be_told_where_its_name_does_not() {
    let Some((path, _)) = changes() else { return };
    let dir = tempfile::tempdir().unwrap();
    let unnamed = dir.path().join("changes");
    std::fs::copy(&path, &unnamed).unwrap();
    let (found, _) = filtered(&unnamed, &["--input-kind", "osc", "w/highway"]);
    assert_eq!(found, filtered(&path, &["w/highway"]).0);
}

#[test]
fn an_object_that_loses_the_tag_is_left_out_as_the_help_says() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("day.osc");
    let text = "<osmChange version='0.6'><modify>\
                <node id='1' version='2' lat='1' lon='1'><tag k='shop' v='yes'/></node>\
                <node id='2' version='2' lat='1' lon='1'><tag k='disused:shop' v='yes'/></node>\
                </modify><delete><node id='3' version='2'/></delete></osmChange>";
    std::fs::write(&input, text).unwrap();
    let found = run_ok(&[&"tags-filter", &input, &"n/shop", &"-f", &"osc"]).stdout;
    let found = String::from_utf8(found).unwrap();
    let has = |id: &str| found.contains(&format!("<node id=\"{id}\""));
    assert!(has("1") && !has("2") && has("3"), "{found}");
    let help = run_ok(&[&"tags-filter", &"--help"]).stdout;
    let help = String::from_utf8(help).unwrap().replace('\n', " ");
    let words: Vec<&str> = help.split_whitespace().collect();
    let said = "An object that loses the tag is left out: where the output is applied, it stays in the base.";
    assert!(words.join(" ").contains(said), "{help}");
}
