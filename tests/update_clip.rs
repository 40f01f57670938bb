//! `update --clip`: what the file has stays, and of the changes it gets what an extract of its region would have.

use crate::common::answers::name_of;
use crate::common::clipped::{
    FORMS, Form, Place, REGION, delete, modify, node, relation, tagged_node, way,
};
use crate::common::publisher::update_from;
use crate::common::{decode, run_ok, small_world, stderr};
use pbfhogg::commands::extract::{RelationTypes, Strategy};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

/// Changes of objects that no extract of the region has: 9 objects and a deletion.
fn changes_elsewhere() -> Vec<String> {
    let objects = [
        node(50, 1, 20, 20),
        tagged_node(51, 1, 21, 20),
        node(7, 2, 33, 33),
        way(50, 1, &[50, 51]),
        way(51, 1, &[7, 51, 99]),
        way(3, 2, &[7, 8]),
        relation(50, 1, "multipolygon", &[("way", 50), ("node", 51)]),
        relation(51, 1, "network", &[("relation", 50), ("way", 99)]),
        relation(3, 2, "route", &[("way", 3)]),
    ];
    vec![modify(&objects), delete(&[way(77, 2, &[])])]
}

/// An update whose changes are all elsewhere keeps all objects, in files of all forms.
fn keeps_all_objects(strategy: &str, count: usize) {
    for form in FORMS {
        let mut place = Place::new(strategy, form);
        let before = place.objects();
        if form == Form::Plain {
            assert_eq!(before.len(), count, "{}", place.names());
        }
        let (report, said) = place.apply(&changes_elsewhere());
        assert!(place.objects() == before, "{form:?}: {}", place.names());
        assert_eq!(report["clipped"]["cut_away"], 9, "{form:?}: {report}");
        for effect in ["created", "modified", "deleted"] {
            assert_eq!(report["applied"][effect], 0, "{form:?}: {report}");
        }
        assert_eq!(said, "", "{form:?}");
    }
}

#[test]
fn changes_elsewhere_take_nothing_from_a_simple_extract() {
    keeps_all_objects("simple", 6);
}

#[test]
fn changes_elsewhere_take_nothing_from_an_extract_with_complete_ways() {
    keeps_all_objects("complete-ways", 8);
}

#[test]
fn changes_elsewhere_take_nothing_from_a_smart_extract() {
    keeps_all_objects("smart", 11);
}

#[test]
fn blobs_that_no_change_in_the_region_concerns_are_copied() {
    let mut place = Place::empty();
    let world = small_world(&place.path(""));
    let file = place.file();
    run_ok(&[
        &"repack",
        &"-q",
        &"--objects-per-blob",
        &"100",
        &world,
        &"-o",
        &file,
        &"--output-header",
        &"osmosis_replication_timestamp=2024-01-01T00:00:00Z",
    ]);
    let blobs = || {
        let bytes = fs::read(&file).unwrap();
        let mut frames = decode::all_frames(&file);
        frames.retain(|frame| frame.blob_type == "OSMData" && !decode::has_part(frame));
        let frame = |frame: decode::Frame| {
            let start = frame.offset as usize;
            bytes[start..start + frame.frame_len].to_vec()
        };
        frames.into_iter().map(frame).collect::<Vec<_>>()
    };
    let before = blobs();
    assert!(before.len() > 20, "{}", before.len());
    // Ids between those of the file, and one behind them.
    let ids: BTreeSet<i64> = decode::objects(&file)
        .iter()
        .map(|object| object.id)
        .collect();
    let absent = (1..).filter(|id| !ids.contains(id)).take(38);
    let absent = absent.chain([1_000_000_000]);
    let objects: Vec<String> = absent.map(|id| node(id, 1, 100, 50)).collect();
    place.publish(&[modify(&objects)]);
    let (report, _) = place.update_with("-11,39,-9,41", &[]);
    assert_eq!(report["clipped"]["cut_away"], 39);
    assert!(blobs() == before);
    let copied = report["written"]["blobs_copied"].as_u64().unwrap();
    assert!(copied >= before.len() as u64, "{report}");
}

/// New objects. An extract of the region has `n60`, `w60`, `w62`, `r60`, `r62`, `r63` and `r64`, and the nodes of the
/// ways.
fn new_objects() -> Vec<String> {
    let objects = [
        tagged_node(60, 1, 5, 5),
        node(61, 1, 15, 5),
        node(62, 1, 16, 6),
        node(63, 1, 17, 7),
        node(64, 1, 12, 12),
        // Across the edge; outside; across the edge by a node of the file.
        way(60, 1, &[60, 61]),
        way(61, 1, &[62, 63]),
        way(62, 1, &[2, 64]),
        // A member in the region; members outside; parents of new and of old relations, in any order of ids.
        relation(60, 1, "site", &[("way", 60)]),
        relation(61, 1, "site", &[("way", 61), ("node", 62)]),
        relation(62, 1, "network", &[("relation", 64)]),
        relation(63, 1, "network", &[("relation", 1)]),
        relation(64, 1, "network", &[("relation", 60)]),
        relation(65, 1, "network", &[("relation", 61), ("relation", 65)]),
    ];
    vec![modify(&objects)]
}

#[test]
fn a_file_gets_the_new_objects_that_an_extract_of_the_whole_has() {
    let mut place = Place::new("complete-ways", Form::Plain);
    let (report, _) = place.apply(&new_objects());
    let expected = "n1 n2 n3 n6 n60 n61 n64 w1 w60 w62 r1 r2 r4 r60 r62 r63 r64";
    assert_eq!(place.names(), expected);
    assert_eq!(report["applied"]["created"], 9, "{report}");
    let cut = serde_json::json!({
        "cut_away": 5,
        "missing_references": 0,
        "incomplete_ways": 0,
        "incomplete_relations": 0,
    });
    assert_eq!(report["clipped"], cut);
    let mut update = update_from(&place.server(), &place.file());
    place.publish(&[modify(&[node(90, 1, 50, 50), node(91, 1, 51, 50)])]);
    let output = update
        .args(["--clip", REGION, "--stats"])
        .arg(place.path("stats.json"));
    let output = output.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("0 created, 0 modified, 0 deleted, 2 cut away"),
        "{text}"
    );
    let stats = fs::read_to_string(place.path("stats.json")).unwrap();
    let stats: Value = serde_json::from_str(&stats).unwrap();
    assert_eq!(stats["objects_cut_away"], 2);
}

#[test]
fn a_relation_of_the_file_is_the_same_region_as_its_box() {
    let boundary = "n10 v1 x0 y0\nn11 v1 x10 y0\nn12 v1 x10 y10\nn13 v1 x0 y10\n\
                    w10 v1 Nn10,n11,n12,n13,n10\n\
                    r10 v1 Ttype=boundary,boundary=administrative,name=Town Mw10@outer\n";
    let updated = |region: &str| {
        let mut place = Place::empty();
        let (opl, file) = (place.path("in.opl"), place.file());
        fs::write(&opl, boundary).unwrap();
        let time = "osmosis_replication_timestamp=2024-01-01T00:00:00Z";
        run_ok(&[&"cat", &"-q", &opl, &"-o", &file, &"--output-header", &time]);
        place.publish(&new_objects());
        let (report, _) = place.update_with(region, &[]);
        // The next update has the region of the updated file.
        place.publish(&[modify(&[node(70, 1, 3, 3), node(71, 1, 30, 3)])]);
        place.update_with(region, &[]);
        (place.objects(), report["clipped"].clone())
    };
    let found = updated("r10");
    assert_eq!(found.0.iter().filter(|object| object.id == 70).count(), 1);
    assert!(found == updated(REGION));
    let mut place = Place::new("simple", Form::Plain);
    place.publish(&new_objects());
    let mut update = update_from(&place.server(), &place.file());
    let refused = update.args(["--clip", "r4711"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let message = stderr(&refused);
    assert!(
        message.contains("r4711: there is no multipolygon or boundary with this id"),
        "{message}"
    );
}

#[test]
fn new_ways_of_located_files_are_where_their_nodes_are_known_to_be() {
    for form in [Form::AllNodes, Form::NeededNodes, Form::Mixed] {
        let mut place = Place::new("complete-ways", form);
        // The node 2 of the way 62 is in the region: as a node, or by the location that the way 1 stores.
        place.apply(&new_objects());
        let names = place.names();
        let rest: Vec<&str> = names
            .split(' ')
            .filter(|name| !name.starts_with('n'))
            .collect();
        assert_eq!(
            rest.join(" "),
            "w1 w60 w62 r1 r2 r4 r60 r62 r63 r64",
            "{form:?}"
        );
        assert!(place.has("n60"), "{form:?}: {names}");
        assert_eq!(place.places(62), [(9, 1), (12, 12)], "{form:?}");
        assert_eq!(place.places(60), [(5, 5), (15, 5)], "{form:?}");
        assert_eq!(place.places(1), [(1, 1), (9, 1), (11, 1)], "{form:?}");
    }
}

#[test]
fn ways_follow_nodes_outside_of_the_region_that_the_file_does_not_have() {
    for form in [Form::AllNodes, Form::NeededNodes, Form::Mixed] {
        let mut place = Place::new("complete-ways", form);
        place.apply(&[modify(&[node(3, 2, 14, 1), node(5, 2, 22, 22)])]);
        assert_eq!(place.places(1), [(1, 1), (9, 1), (14, 1)], "{form:?}");
        assert!(!place.has("n5"), "{form:?}");
    }
}

#[test]
fn an_object_that_moves_out_of_the_region_stays_until_it_is_deleted() {
    for form in FORMS {
        let mut place = Place::new("complete-ways", form);
        let bbox = decode::header(&place.file()).bbox;
        let moved = [
            tagged_node(6, 2, 40, 40),
            way(1, 2, &[1, 3, 65]),
            node(65, 1, 12, 2),
        ];
        let (report, _) = place.apply(&[modify(&moved)]);
        assert_eq!(report["clipped"]["cut_away"], 0, "{form:?}");
        for name in ["n6", "w1", "r1", "r2", "r4"] {
            assert!(place.has(name), "{form:?}: {name}");
        }
        let objects = place.objects();
        let cafe = objects
            .iter()
            .find(|object| name_of(object) == "n6")
            .unwrap();
        assert_eq!((cafe.version, cafe.lon_nano), (Some(2), 40_000_000_000));
        // What lies outside of the region does not widen the box.
        assert_eq!(decode::header(&place.file()).bbox, bbox, "{form:?}");
        assert!(bbox.is_some());
        place.apply(&[delete(&[node(6, 3, 40, 40), relation(2, 2, "site", &[])])]);
        assert!(!place.has("n6") && !place.has("r2"), "{form:?}");
    }
}

#[test]
fn a_way_that_grows_gets_its_nodes_outside() {
    let mut place = Place::new("complete-ways", Form::Plain);
    let grown = [
        way(1, 2, &[1, 2, 3, 65, 66]),
        node(65, 1, 12, 2),
        node(66, 1, 13, 2),
        node(67, 1, 13, 3),
    ];
    let (report, said) = place.apply(&[modify(&grown)]);
    assert_eq!(place.names(), "n1 n2 n3 n6 n65 n66 w1 r1 r2 r4");
    assert_eq!(report["clipped"]["cut_away"], 1);
    assert_eq!(said, "");
}

#[test]
fn nodes_that_were_cut_away_before_their_way_came_are_missed_until_they_change() {
    let mut place = Place::new("complete-ways", Form::Plain);
    place.apply(&[modify(&[
        node(70, 1, 12, 5),
        node(71, 1, 13, 5),
        node(72, 1, 8, 5),
    ])]);
    assert!(!place.has("n70") && place.has("n72"));
    let (report, said) = place.apply(&[modify(&[way(70, 1, &[72, 70, 71])])]);
    assert!(place.has("w70"));
    assert_eq!(report["clipped"]["missing_references"], 2);
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        lines.len() == 1 && said.contains("nodes that the file does not have: 2;"),
        "{said}"
    );
    // A way of the file brings a node that changes, although the way does not change.
    let (report, said) = place.apply(&[modify(&[node(70, 2, 12, 6), node(73, 1, 12, 7)])]);
    assert!(place.has("n70") && !place.has("n73"), "{}", place.names());
    assert_eq!(report["clipped"]["cut_away"], 1);
    assert_eq!(said, "");
}

#[test]
fn an_object_that_was_cut_away_comes_when_it_moves_into_the_region() {
    let mut place = Place::new("complete-ways", Form::Plain);
    let outside = [
        node(80, 1, 12, 5),
        way(80, 1, &[80, 81]),
        node(81, 1, 13, 5),
    ];
    let (report, _) = place.apply(&[modify(&outside)]);
    assert_eq!(report["clipped"]["cut_away"], 3);
    let inside = [node(80, 2, 8, 5), way(80, 2, &[80, 3])];
    place.apply(&[modify(&inside)]);
    assert_eq!(place.names(), "n1 n2 n3 n6 n80 w1 w80 r1 r2 r4");
    // Deletions and older versions of what the file does not have do nothing.
    let before = place.objects();
    let (report, _) = place.apply(&[
        delete(&[node(81, 2, 13, 5), way(3, 3, &[])]),
        modify(&[node(80, 1, 12, 5), way(80, 1, &[80, 81])]),
    ]);
    assert!(place.objects() == before, "{}", place.names());
    assert_eq!(report["clipped"]["cut_away"], 0);
}

#[test]
fn several_days_and_one_run_have_the_same_result() {
    for form in [Form::Plain, Form::NeededNodes] {
        let [mut days, mut once] = [(); 2].map(|()| Place::new("complete-ways", form));
        let second = [
            way(60, 2, &[60, 1]),
            tagged_node(66, 1, 3, 3),
            relation(61, 2, "site", &[("way", 61), ("node", 60)]),
        ];
        let third = [
            delete(&[way(62, 2, &[])]),
            modify(&[tagged_node(66, 2, 4, 4)]),
        ];
        for changes in [new_objects(), vec![modify(&second)], third.to_vec()] {
            days.apply(&changes);
            once.publish(&changes);
        }
        let (report, _) = once.update();
        assert_eq!(report["change_files"], 3);
        let rest = |place: &Place| {
            let mut objects = place.objects();
            // The way 62 has brought a node before it was deleted, and the relation 65 has come only in one run.
            let left_out = ["n64", "r65", "n61"];
            objects.retain(|object| !left_out.contains(&name_of(object).as_str()));
            objects
        };
        assert_eq!(rest(&days), rest(&once), "{form:?}");
    }
}

#[test]
fn the_region_may_be_a_polygon() {
    let mut place = Place::new("complete-ways", Form::Plain);
    let region = place.path("region.geojson");
    let corners = "[[[0,0],[10,0],[0,10],[0,0]]]";
    let text = format!("{{\"type\":\"Polygon\",\"coordinates\":{corners}}}");
    fs::write(&region, text).unwrap();
    // Within the polygon, on its edge, and in its box only.
    place.publish(&[modify(&[
        node(60, 1, 2, 3),
        node(61, 1, 5, 5),
        node(62, 1, 8, 8),
    ])]);
    let (report, _) = place.update_with(region.to_str().unwrap(), &[]);
    assert!(place.has("n60") && place.has("n61") && !place.has("n62"));
    assert_eq!(report["clipped"]["cut_away"], 1);
}

#[test]
fn a_region_in_which_the_file_has_nothing_is_an_error() {
    for form in FORMS {
        let mut place = Place::new("complete-ways", form);
        let before = fs::read(place.file()).unwrap();
        place.publish(&[modify(&[node(60, 1, 101, 1)])]);
        let mut update = update_from(&place.server(), &place.file());
        let output = update.args(["--clip", "100,0,110,10"]).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{form:?}: {said}");
        assert!(
            said.contains("no node lies in the region"),
            "{form:?}: {said}"
        );
        assert!(fs::read(place.file()).unwrap() == before, "{form:?}");
        // A way has a node here. Its node need not be in the file.
        let mut update = update_from(&place.server(), &place.file());
        let output = update.args(["--clip", "8,0,10,2"]).output().unwrap();
        assert!(output.status.success(), "{form:?}: {}", stderr(&output));
    }
}

#[test]
fn the_strategy_simple_brings_neither_nodes_outside_nor_parents() {
    for form in FORMS {
        let mut place = Place::new("simple", form);
        let summary = place.apply_with(&new_objects(), Strategy::Simple);
        let names = place.names();
        let rest: Vec<&str> = names
            .split(' ')
            .filter(|name| !name.starts_with('n'))
            .collect();
        assert_eq!(rest.join(" "), "w1 w60 w62 r1 r2 r60", "{form:?}");
        assert!(!place.has("n61") && !place.has("n64"), "{form:?}: {names}");
        let clipped = summary.clipped.unwrap();
        assert_eq!(
            (clipped.cut_away, clipped.missing_references),
            (10, 0),
            "{form:?}"
        );
        if form != Form::Plain {
            // The way keeps the location of a node that was cut away.
            assert_eq!(place.places(60), [(5, 5), (15, 5)], "{form:?}");
        }
    }
}

#[test]
fn relations_can_be_left_out() {
    let mut place = Place::new("complete-ways", Form::Plain);
    let mut changes = new_objects();
    changes.push(modify(&[relation(
        2,
        2,
        "site",
        &[("node", 6), ("node", 60)],
    )]));
    place.apply_with(&changes, Strategy::CompleteWays { relations: false });
    assert_eq!(place.names(), "n1 n2 n3 n6 n60 n61 n64 w1 w60 w62 r1 r2 r4");
    let objects = place.objects();
    let site = objects
        .iter()
        .find(|object| name_of(object) == "r2")
        .unwrap();
    assert_eq!(site.members.len(), 2);
}

#[test]
fn the_strategy_smart_completes_new_and_old_relations() {
    let mut place = Place::new("smart", Form::Plain);
    let objects = [
        node(90, 1, 30, 30),
        node(91, 1, 31, 30),
        node(92, 1, 40, 40),
        way(90, 1, &[90, 91]),
        way(91, 1, &[92, 91]),
        way(92, 1, &[92, 91]),
        // The old relation 1 changes and gets a member outside. The new one has a member in the file. The third is kept
        // for a member of the second, and is not completed.
        relation(1, 2, "multipolygon", &[("way", 1), ("way", 2), ("way", 90)]),
        relation(91, 1, "multipolygon", &[("way", 1), ("way", 91)]),
        relation(90, 1, "route", &[("way", 91), ("way", 92)]),
    ];
    place.apply_with(&[modify(&objects)], Strategy::smart());
    let expected = "n1 n2 n3 n4 n5 n6 n90 n91 n92 w1 w2 w90 w91 r1 r2 r4 r90 r91";
    assert_eq!(place.names(), expected);
    // A member that the file lacks comes with its next change, although the relation does not change.
    let mut place = Place::new("complete-ways", Form::Plain);
    let changes = [modify(&[way(2, 2, &[4, 5]), node(5, 2, 22, 22)])];
    place.apply_with(&changes, Strategy::smart());
    assert_eq!(place.names(), "n1 n2 n3 n5 n6 w1 w2 r1 r2 r4");
    let half = Strategy::Smart {
        types: RelationTypes::Of(Vec::new()),
        min_percent: Some(50),
        tags: Vec::new(),
    };
    let mut place = Place::new("complete-ways", Form::Plain);
    let objects = [
        way(3, 2, &[7, 8]),
        relation(90, 1, "route", &[("way", 1), ("way", 3)]),
        way(4, 1, &[7, 8]),
        relation(91, 1, "route", &[("way", 1), ("way", 4), ("way", 5)]),
    ];
    place.apply_with(&[modify(&objects)], half);
    assert_eq!(place.names(), "n1 n2 n3 n6 w1 w3 r1 r2 r4 r90 r91");
}

#[test]
fn augmented_diffs_say_what_the_file_gets() {
    let mut place = Place::new("complete-ways", Form::Plain);
    // The way 60 crosses the region without a node in it: the file does not get it.
    let across = [
        node(60, 1, -5, 5),
        node(61, 1, 15, 5),
        way(60, 1, &[60, 61]),
    ];
    place.publish(&[modify(&across), modify(&[tagged_node(62, 1, 5, 5)])]);
    let path = place.path("run.adiff");
    place.update_with(REGION, &["--augmented-diff", path.to_str().unwrap()]);
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches("<action ").count(), 1, "{text}");
    assert!(
        text.contains("\"62\"") && !text.contains("\"60\""),
        "{text}"
    );
    // An object that exists only between two change files has its actions, and the file does not get it.
    place.publish(&[modify(&[tagged_node(63, 1, 6, 6), node(64, 1, 16, 6)])]);
    place.publish(&[delete(&[tagged_node(63, 2, 6, 6), node(64, 2, 16, 6)])]);
    let diffs = place.path("diffs");
    place.update_with(REGION, &["--augmented-diff", diffs.to_str().unwrap()]);
    for name in ["2.adiff", "3.adiff"] {
        let text = fs::read_to_string(diffs.join(name)).unwrap();
        assert_eq!(text.matches("<action ").count(), 1, "{name}: {text}");
        assert!(text.contains("\"63\""), "{name}: {text}");
    }
    assert!(!place.has("n63") && !place.has("n64"));
}
