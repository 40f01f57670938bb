//! `apply-changes`: compared with osmium on real data, and each rule on small data.

use crate::common;
use crate::common::craft::{self, Shape};
use crate::common::oracle::{andorra, assert_same_opl, opl, osmium, real_file};
use crate::common::{Object, decode, node, pbfhogg, relation, run_ok, way, with_metadata};
use pbfhogg::unstable::osm::{KindSet, ObjectKind};
use pbfhogg::unstable::pbf::{BlobEntry, encode_blob_index};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A base of three node blobs, a way blob and a relation blob.
pub fn base(dir: &Path) -> PathBuf {
    let nodes = |ids: std::ops::Range<i64>| {
        let ids = ids.map(|id| id * 10);
        let tags: [(&str, &str); 1] = [("kept", "yes")];
        let nodes = ids.map(|id| with_metadata(node(id, id, -id, &tags), 3, 1000, 7, "base"));
        nodes.collect::<Vec<_>>()
    };
    let ways = (1..6)
        .map(|id| with_metadata(way(id * 10, &[10, 20], &[]), 3, 1000, 7, "base"))
        .collect::<Vec<_>>();
    let relations = [with_metadata(
        relation(10, &[(common::Kind::Way, 10, "outer")], &[]),
        3,
        1000,
        7,
        "base",
    )];
    let blocks = [
        nodes(1..10),
        nodes(20..30),
        nodes(40..50),
        ways,
        relations.to_vec(),
    ];
    let blocks: Vec<_> = blocks
        .iter()
        .map(|objects| craft::block(objects, &Shape::USUAL))
        .collect();
    let path = dir.join("base.osm.pbf");
    std::fs::write(&path, craft::plain_file(&blocks)).unwrap();
    path
}

pub fn change_file(dir: &Path, name: &str, body: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(
        &path,
        format!("<osmChange version=\"0.6\">{body}</osmChange>"),
    )
    .unwrap();
    path
}

/// Applies changes to the base and returns the objects of the output and the summary.
fn apply(body: &str) -> (Vec<Object>, serde_json::Value) {
    let dir = tempfile::tempdir().unwrap();
    let (base, changes) = (base(dir.path()), change_file(dir.path(), "a.osc", body));
    let output = dir.path().join("out.osm.pbf");
    let summary = run_ok(&[&"apply-changes", &base, &changes, &"--json", &"-o", &output]);
    let objects = decode::objects(&output);
    assert!(common::is_canonical(&objects));
    (objects, serde_json::from_slice(&summary.stdout).unwrap())
}

fn version_of(objects: &[Object], id: i64) -> Option<Option<i64>> {
    let is_it = |object: &&Object| object.kind == common::Kind::Node && object.id == id;
    objects.iter().find(is_it).map(|object| object.version)
}

#[test]
fn derived_changes_lead_from_one_snapshot_to_the_next() {
    if !osmium() {
        return;
    }
    let [a, b, c] = ["a", "b", "c"].map(andorra);
    let dir = tempfile::tempdir().unwrap();
    let derive = |old: &Path, new: &Path, name: &str| {
        let path = dir.path().join(name);
        let mut command = Command::new("osmium");
        command
            .args(["derive-changes", "--no-progress"])
            .arg(old)
            .arg(new)
            .arg("-o")
            .arg(&path);
        assert!(command.status().unwrap().success());
        path
    };
    let (ab, bc) = (derive(&a, &b, "ab.osc.gz"), derive(&b, &c, "bc.osc.gz"));
    let [to_b, to_c, at_once] =
        ["b.osm.pbf", "c.osm.pbf", "once.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[&"apply-changes", &a, &ab, &"-o", &to_b]);
    run_ok(&[&"apply-changes", &to_b, &bc, &"-o", &to_c]);
    run_ok(&[&"apply-changes", &a, &ab, &bc, &"-o", &at_once]);
    // For osmium a different order of the same tags is no change.
    let tags_in_order =
        |path: &Path| -> Vec<String> { opl(path).iter().map(|line| normal(line)).collect() };
    assert_same_opl(&tags_in_order(&to_b), &tags_in_order(&b));
    assert_same_opl(&tags_in_order(&to_c), &tags_in_order(&c));
    assert_same_opl(&opl(&at_once), &opl(&to_c));
}

/// An OPL line with its tags sorted.
fn normal(line: &str) -> String {
    let field = |field: &str| match field.strip_prefix('T') {
        Some(tags) => {
            let mut tags: Vec<_> = tags.split(',').collect();
            tags.sort_unstable();
            format!("T{}", tags.join(","))
        }
        None => field.to_owned(),
    };
    line.split(' ').map(field).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_real_change_file_gives_what_osmium_makes_of_it() {
    if !osmium() {
        return;
    }
    let [base, changes] = ["malta.osm.pbf", "000466354.osc.gz"].map(real_file);
    let dir = tempfile::tempdir().unwrap();
    let (ours, theirs) = (
        dir.path().join("ours.osm.pbf"),
        dir.path().join("theirs.osm.pbf"),
    );
    run_ok(&[&"apply-changes", &base, &changes, &"-o", &ours]);
    let mut osmium = Command::new("osmium");
    osmium
        .args(["apply-changes", "--no-progress"])
        .arg(&base)
        .arg(&changes)
        .arg("-o")
        .arg(&theirs);
    assert!(osmium.status().unwrap().success());
    assert_same_opl(&opl(&ours), &opl(&theirs));
}

#[test]
fn created_objects_land_at_their_sorted_place() {
    let (objects, summary) = apply(
        "<create>
           <node id='5' version='1' lat='1' lon='2'/><node id='15' version='1' lat='1' lon='2'/>
           <node id='150' version='1' lat='1' lon='2'/><node id='9999' version='1' lat='1' lon='2'/>
           <way id='11' version='1'><nd ref='5'/><nd ref='-3'/><tag k='a' v='b'/></way>
           <relation id='9' version='1'><member type='relation' ref='10' role='sub'/></relation>
         </create>",
    );
    assert_eq!(summary["created"], 6);
    for id in [5, 15, 150, 9999] {
        assert_eq!(version_of(&objects, id), Some(Some(1)));
    }
    let way = objects
        .iter()
        .find(|object| object.kind == common::Kind::Way && object.id == 11)
        .unwrap();
    assert_eq!((&way.refs[..], way.tags.len()), (&[5, -3][..], 1));
    let relation = objects.iter().find(|object| object.id == 9).unwrap();
    assert_eq!(
        relation.members,
        [(common::Kind::Relation, 10, "sub".to_owned())]
    );
}

#[test]
fn modify_of_an_absent_id_inserts_it() {
    let (objects, summary) = apply("<modify><node id='15' version='4' lat='1' lon='2'/></modify>");
    assert_eq!(
        (version_of(&objects, 15), &summary["created"]),
        (Some(Some(4)), &1.into())
    );
}

#[test]
fn delete_of_an_absent_id_changes_nothing() {
    let (objects, summary) = apply("<delete><node id='15' version='4'/><node id='7000'/></delete>");
    assert_eq!(objects.len(), 35);
    assert_eq!(
        (&summary["absent"], &summary["blobs_rewritten"]),
        (&2.into(), &0.into())
    );
}

#[test]
fn an_older_version_does_not_replace_a_newer_one() {
    let (objects, summary) = apply(
        "<modify><node id='10' version='2' lat='1' lon='2'/></modify>
         <delete><node id='20' version='2'/></delete>",
    );
    assert_eq!(
        (version_of(&objects, 10), version_of(&objects, 20)),
        (Some(Some(3)), Some(Some(3)))
    );
    assert_eq!(
        (&summary["outdated"], &summary["blobs_rewritten"]),
        (&2.into(), &0.into())
    );
}

#[test]
fn of_equal_versions_the_later_time_wins_and_then_the_change() {
    let at = |seconds: &str| {
        let body = format!(
            "<modify><node id='10' version='3' timestamp='1970-01-01T{seconds}Z' lat='7' lon='7'/></modify>"
        );
        let (objects, _) = apply(&body);
        objects
            .iter()
            .find(|object| object.id == 10)
            .unwrap()
            .lat_nano
    };
    assert_eq!(
        at("00:16:39"),
        1000,
        "earlier than the base: the base stays"
    );
    assert_eq!(
        at("00:16:40"),
        7_000_000_000,
        "the same time: the change wins"
    );
    assert_eq!(at("00:16:41"), 7_000_000_000, "later: the change wins");
}

#[test]
fn a_change_without_version_counts_as_newest() {
    let (objects, _) = apply("<modify><node id='10' lat='7' lon='7'/></modify>");
    assert_eq!(version_of(&objects, 10), Some(None));
}

#[test]
fn the_last_version_of_an_object_wins_among_all_changes() {
    let (objects, summary) = apply(
        "<create><node id='15' version='1' lat='1' lon='1'/></create>
         <modify><node id='15' version='3' lat='3' lon='3'/><node id='15' version='2' lat='2' lon='2'/></modify>
         <modify><node id='10' version='4' lat='1' lon='1'/></modify>
         <delete><node id='10' version='5'/></delete>",
    );
    assert_eq!(
        (version_of(&objects, 15), version_of(&objects, 10)),
        (Some(Some(3)), None)
    );
    assert_eq!(
        (&summary["created"], &summary["deleted"]),
        (&1.into(), &1.into())
    );
}

#[test]
fn applying_a_day_twice_gives_the_same_objects() {
    let dir = tempfile::tempdir().unwrap();
    let body = "<modify><node id='10' version='4' lat='1' lon='1'><tag k='k' v='&lt;&#10;&quot;'/></node></modify>
                <delete><node id='20' version='4'/></delete><create><way id='3' version='1'><nd ref='1'/></way></create>";
    let (base, changes) = (base(dir.path()), change_file(dir.path(), "a.osc", body));
    let [once, twice] = ["once.osm.pbf", "twice.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[&"apply-changes", &base, &changes, &"-o", &once]);
    run_ok(&[&"apply-changes", &once, &changes, &"-o", &twice]);
    let objects = decode::objects(&once);
    assert_eq!(objects, decode::objects(&twice));
    let changed = objects.iter().find(|object| object.id == 10).unwrap();
    assert_eq!(changed.tags, [("k".to_owned(), "<\n\"".to_owned())]);
}

#[test]
fn untouched_spans_and_blobs_keep_everything_they_had() {
    let (objects, summary) = apply("<delete><node id='240' version='4'/></delete>");
    // The three small blobs of nodes are joined to one.
    assert_eq!(
        (&summary["blobs_copied"], &summary["blobs_rewritten"]),
        (&2.into(), &3.into())
    );
    assert_eq!(objects.len(), 34);
    for object in &objects {
        assert_eq!(
            (object.version, object.user.as_deref(), object.timestamp),
            (Some(3), Some("base"), Some(1000))
        );
        if object.kind == common::Kind::Node {
            assert_eq!(
                (object.lat_nano, object.lon_nano),
                (object.id * 100, -object.id * 100)
            );
            assert_eq!(object.tags.len(), 1);
        }
    }
}

#[test]
fn a_blob_whose_objects_are_all_deleted_disappears() {
    let deletions: String = (20..30)
        .map(|id| format!("<node id='{}' version='9'/>", id * 10))
        .collect();
    let (objects, summary) = apply(&format!("<delete>{deletions}</delete>"));
    assert_eq!((objects.len(), &summary["deleted"]), (25, &10.into()));
    assert_eq!(summary["written"]["blobs"], 3);
}

#[test]
fn blobs_that_are_not_small_stay_for_themselves() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = |ids: std::ops::Range<i64>| {
        let nodes = ids.map(|id| node(id, id, -id, &[]));
        craft::block(&nodes.collect::<Vec<_>>(), &Shape::USUAL)
    };
    let blocks: Vec<_> = (0..5)
        .map(|blob| nodes(blob * 600..blob * 600 + 600))
        .collect();
    let (base, output) = (
        dir.path().join("base.osm.pbf"),
        dir.path().join("out.osm.pbf"),
    );
    std::fs::write(&base, craft::plain_file(&blocks)).unwrap();
    let changes = change_file(
        dir.path(),
        "a.osc",
        "<delete><node id='700' version='4'/><node id='1300' version='4'/></delete>",
    );
    let summary = run_ok(&[&"apply-changes", &base, &changes, &"--json", &"-o", &output]);
    let summary: serde_json::Value = serde_json::from_slice(&summary.stdout).unwrap();
    assert_eq!(
        (&summary["blobs_copied"], &summary["blobs_rewritten"]),
        (&3.into(), &2.into())
    );
    assert_eq!(summary["written"]["blobs"], 5);
}

#[test]
fn many_new_objects_are_cut_into_blobs_of_ordinary_size() {
    let new: String = (0..30_000)
        .map(|id| format!("<node id='{}' version='1' lat='1' lon='1'/>", 101 + id))
        .collect();
    let moved: String = new.replace("id='1", "id='70");
    let dir = tempfile::tempdir().unwrap();
    let base = base(dir.path());
    let changes = change_file(
        dir.path(),
        "a.osc",
        &format!("<create>{new}{moved}</create>"),
    );
    let output = dir.path().join("out.osm.pbf");
    run_ok(&[&"apply-changes", &base, &changes, &"-o", &output]);
    assert!(
        decode::blocks(&output)
            .iter()
            .all(|(_, count)| *count <= 16_000)
    );
    assert!(common::is_canonical(&decode::objects(&output)));
}

/// More new objects than a blob holds, of which the last ones would have room in a blob that they do not follow.
#[test]
fn many_new_objects_stay_in_order_beside_blobs_with_room() {
    let dir = tempfile::tempdir().unwrap();
    for (first, created) in [
        (51, 9000),
        (51, 20_000),
        (500, 17_500),
        (91, 8),
        (301, 9_000),
    ] {
        // The ids 10 to 490 are taken: those from 300 to 390 are a gap of a million ids further on.
        let far = 1_000_000;
        let nodes = |ids: std::ops::Range<i64>, more: i64| {
            let ids = ids.map(|id| id * 10 + more);
            ids.map(|id| node(id, id, id, &[])).collect::<Vec<_>>()
        };
        let blocks = [nodes(1..10, 0), nodes(20..30, 0), nodes(40..50, far)];
        let all: Vec<i64> = blocks.iter().flatten().map(|node| node.id).collect();
        let blocks: Vec<_> = blocks
            .iter()
            .map(|objects| craft::block(objects, &Shape::USUAL))
            .collect();
        let [plain, base, output] =
            ["plain.osm.pbf", "base.osm.pbf", "out.osm.pbf"].map(|name| dir.path().join(name));
        std::fs::write(&plain, craft::plain_file(&blocks)).unwrap();
        run_ok(&[&"cat", &"-O", &plain, &"-o", &base]);
        for start in [first * 10 + 1, first * 10 + 1 + 2 * far] {
            let ids = start..start + created;
            let create = |id| format!("<node id='{id}' version='1' lat='1' lon='1'/>");
            let body: String = ids.clone().map(create).collect();
            let changes = change_file(dir.path(), "day.osc", &format!("<create>{body}</create>"));
            run_ok(&[&"apply-changes", &"-O", &base, &changes, &"-o", &output]);
            let found: Vec<i64> = decode::objects(&output)
                .iter()
                .map(|object| object.id)
                .collect();
            let mut expected: Vec<i64> = all.iter().copied().chain(ids).collect();
            expected.sort_unstable();
            expected.dedup();
            assert!(found == expected, "{created} from {start}");
        }
    }
}

#[test]
fn metadata_columns_that_the_base_lacks_are_added_for_what_brings_them() {
    let dir = tempfile::tempdir().unwrap();
    let nodes: Vec<_> = (1..10).map(|id| node(id * 10, id, id, &[])).collect();
    let base = dir.path().join("bare.osm.pbf");
    std::fs::write(
        &base,
        craft::plain_file(&[craft::block(&nodes, &Shape::USUAL)]),
    )
    .unwrap();
    let body = "<create><node id='15' version='2' timestamp='2020-01-01T00:00:00Z' changeset='5' uid='6' user='ü' lat='1' lon='1'/></create>";
    let changes = change_file(dir.path(), "a.osc", body);
    let output = dir.path().join("out.osm.pbf");
    run_ok(&[&"apply-changes", &base, &changes, &"-o", &output]);
    let mut expected = nodes;
    let new = node(15, 10_000_000, 10_000_000, &[]);
    expected.insert(
        1,
        Object {
            version: Some(2),
            timestamp: Some(1_577_836_800),
            changeset: Some(5),
            uid: Some(6),
            user: Some("ü".into()),
            ..new
        },
    );
    assert_eq!(decode::objects(&output), expected);
}

#[test]
fn awkward_blocks_take_changes_too() {
    let dir = tempfile::tempdir().unwrap();
    let body =
        "<create><node id='4' version='1' lat='0.5' lon='-0.5'><tag k='' v=''/></node></create>
                <delete><node id='3' version='99999'/></delete>";
    let changes = change_file(dir.path(), "a.osc", body);
    for crafted in common::awkward::awkward_blocks() {
        let mut objects = crafted.objects.clone();
        let unique = objects
            .windows(2)
            .all(|pair| (pair[0].kind, pair[0].id) != (pair[1].kind, pair[1].id));
        if !common::is_canonical(&objects)
            || !unique
            || objects.iter().any(|object| !object.visible)
        {
            continue;
        }
        let (base, output) = (
            dir.path().join("base.osm.pbf"),
            dir.path().join("out.osm.pbf"),
        );
        std::fs::write(&base, crafted.file()).unwrap();
        // Coordinates in ways are dropped with a warning: standard error need not be empty.
        run_ok(&[&"apply-changes", &base, &changes, &"-O", &"-o", &output]);
        objects.retain(|object| (object.kind, object.id) != (common::Kind::Node, 3));
        objects.retain(|object| (object.kind, object.id) != (common::Kind::Node, 4));
        objects
            .iter_mut()
            .for_each(|object| object.locations.clear());
        let mut new = node(4, 5_000_000, -5_000_000, &[("", "")]);
        new.version = Some(1);
        objects.push(new);
        objects.sort_by_key(|object| common::canonical_key(object.kind, object.id));
        assert_eq!(decode::objects(&output), objects, "{}", crafted.name);
    }
}

#[test]
fn the_same_bytes_come_out_whatever_the_number_of_jobs() {
    let dir = tempfile::tempdir().unwrap();
    let world = dir.path().join("w.osm.pbf");
    run_ok(&[
        &"synth",
        &"--objects",
        &"60000",
        &"--changes",
        &"2",
        &"-o",
        &world,
    ]);
    let days = ["001.osc.gz", "002.osc.gz"].map(|name| dir.path().join(name));
    let outputs = ["1", "2", "8"].map(|jobs| {
        let output = dir.path().join(format!("{jobs}.osm.pbf"));
        run_ok(&[
            &"apply-changes",
            &world,
            &days[0],
            &days[1],
            &"-j",
            &jobs,
            &"-o",
            &output,
        ]);
        std::fs::read(output).unwrap()
    });
    assert!(outputs[0] == outputs[1] && outputs[1] == outputs[2]);
}

#[test]
fn a_change_without_version_is_newest_wherever_it_stands() {
    let (objects, _) = apply(
        "<modify><node id='10' version='5' lat='1' lon='1'/><node id='10' lat='2' lon='2'/>
         <node id='10' version='4' lat='3' lon='3'/></modify>",
    );
    let node = objects.iter().find(|object| object.id == 10).unwrap();
    assert_eq!((node.version, node.lat_nano), (None, 2_000_000_000));
}

#[test]
fn a_base_of_another_granularity_is_not_broken_into_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let nodes: Vec<_> = (1..2000)
        .map(|id| node(id * 2, id * 10, id * 10, &[]))
        .collect();
    let coarse = Shape {
        granularity: 1000,
        ..Shape::USUAL
    };
    let base = dir.path().join("base.osm.pbf");
    std::fs::write(&base, craft::plain_file(&[craft::block(&nodes, &coarse)])).unwrap();
    let new: String = (10..60)
        .map(|id| {
            format!(
                "<node id='{}' version='1' lat='0.0000001' lon='1'/>",
                id * 6 + 1
            )
        })
        .collect();
    let changes = change_file(dir.path(), "a.osc", &format!("<create>{new}</create>"));
    let output = dir.path().join("out.osm.pbf");
    run_ok(&[&"apply-changes", &base, &changes, &"-o", &output]);
    // The last object has a blob of its own, for the table of contents.
    let blocks: Vec<usize> = decode::blocks(&output)
        .into_iter()
        .map(|block| block.1)
        .collect();
    assert_eq!(blocks, [1999 + 50 - 1, 1]);
    assert_eq!(decode::objects(&output).len(), 1999 + 50);
}

#[test]
fn locations_that_nothing_declares_go_from_blobs_that_are_made_anew_and_this_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.osm.pbf");
    let header = craft::header_payload(&["OsmSchema-V0.6", "DenseNodes"], &["Sort.Type_then_ID"]);
    let mut file = craft::frame("OSMHeader", &craft::zlib_blob(&header));
    for first in [1, 11, 21] {
        let ways: Vec<_> = (first..first + 10)
            .map(|id| Object {
                locations: vec![(100, 200), (300, 400)],
                ..way(id, &[1, 2], &[])
            })
            .collect();
        let mut entry = BlobEntry::default();
        entry.kinds = KindSet::of(ObjectKind::Way);
        (entry.min_id, entry.max_id, entry.count) = (first, first + 9, 10);
        let blob = craft::zlib_blob(&craft::block(&ways, &Shape::USUAL));
        let index = encode_blob_index(&entry).unwrap();
        file.extend(craft::frame_with_index("OSMData", &index, &blob));
    }
    std::fs::write(&input, file).unwrap();
    let changes = change_file(
        dir.path(),
        "a.osc",
        "<modify><way id='15' version='9'><nd ref='1'/><nd ref='2'/></way></modify>",
    );
    let output = dir.path().join("out.osm.pbf");
    let run = pbfhogg()
        .arg("apply-changes")
        .args([&input, &changes])
        .arg("-o")
        .arg(&output)
        .output()
        .unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    assert!(run.status.success(), "{said}");
    let located = |object: &&Object| !object.locations.is_empty();
    let left = decode::objects(&output).iter().filter(located).count();
    assert!(
        said.contains(&format!("{} ways lost their locations", 30 - left)),
        "{left} left: {said}"
    );
}
