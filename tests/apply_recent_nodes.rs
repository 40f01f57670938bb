//! Files whose ways have locations, and which lack the nodes that only ways need: which nodes of changes stay in them,
//! where ways get their locations, and what is reported.

use crate::common::answers::file_of;
use crate::common::pieces::{Pieces, node_ids, opl, refs_of};
use crate::common::{Arg, decode, run_ok};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Ways that share nodes, a node with tags, and two members of a relation.
const SMALL: &str = "n1 v1 t2020-01-01T00:00:00Z x1 y1\nn2 v1 t2020-01-01T00:00:00Z x2 y1\n\
                     n3 v1 t2020-01-01T00:00:00Z x3 y1\nn4 v1 t2020-01-01T00:00:00Z Ta=b x4 y1\n\
                     n5 v1 t2020-01-01T00:00:00Z x5 y1\nn6 v1 t2020-01-01T00:00:00Z x6 y1\n\
                     n7 v1 t2020-01-01T00:00:00Z x7 y1\nn8 v1 t2020-01-01T00:00:00Z x8 y1\n\
                     w1 v1 t2020-01-01T00:00:00Z Nn1,n2\nw2 v1 t2020-01-01T00:00:00Z Nn2,n3,n4,n5,n6\n\
                     w3 v1 t2020-01-01T00:00:00Z Nn7,n8\n\
                     r1 v1 t2020-01-01T00:00:00Z Mn5@,n6@\n";

const LOCATED: [&str; 1] = ["--locations-on-ways"];

fn node(id: i64, version: i64, day: &str, at: i64) -> String {
    format!(
        "<modify><node id='{id}' version='{version}' timestamp='{day}T12:00:00Z' lat='{at}' lon='{at}'/></modify>"
    )
}

fn way(id: i64, version: i64, refs: &[i64]) -> String {
    let refs: String = refs.iter().map(|id| format!("<nd ref='{id}'/>")).collect();
    format!(
        "<modify><way id='{id}' version='{version}' timestamp='2024-01-02T00:00:00Z'>{refs}</way></modify>"
    )
}

fn relation(id: i64, version: i64, nodes: &[i64]) -> String {
    let members = nodes
        .iter()
        .map(|id| format!("<member type='node' ref='{id}' role=''/>"));
    let members: String = members.collect();
    format!(
        "<modify><relation id='{id}' version='{version}' timestamp='2024-01-02T00:00:00Z'>{members}</relation></modify>"
    )
}

/// The small file with the needed nodes only.
fn needed(pieces: &Pieces) -> PathBuf {
    pieces.locate(&pieces.base("plain", SMALL), "needed", &[])
}

fn features(path: &Path) -> Vec<String> {
    let features = decode::header(path).optional.into_iter();
    let ours = features.filter(|name| name.starts_with("pbfhogg."));
    ours.collect()
}

#[test]
fn a_node_waits_for_its_way_and_goes_after_thirty_days() {
    let mut pieces = Pieces::new();
    let [one, two, three] = [20, 21, 22].map(|id| node(id, 1, "2024-01-02", id));
    pieces.add(1.5, &(one + &two + &three));
    pieces.add(2.0, &way(30, 1, &[20, 21]));
    // The way has used the nodes, and is gone on a day when they still are there.
    pieces.add(3.0, "<delete><way id='30' version='2'/></delete>");
    pieces.add(4.0, &way(31, 1, &[21, 20]));
    pieces.add(31.99, "");
    pieces.add(32.0, "");
    let base = needed(&pieces);
    let kept = |answer: &Value| answer["locations"]["nodes_kept"].clone();
    let first = pieces.apply(&base, &[1], &LOCATED).json();
    assert_eq!(kept(&first), 3, "{first}");
    pieces.apply(&base, &[2], &LOCATED);
    assert_eq!(refs_of(&opl(&base), 30), "n20x20y20,n21x21y21");
    for number in [3, 4, 5] {
        pieces.apply(&base, &[number], &LOCATED);
        assert_eq!(node_ids(&opl(&base)), [4, 5, 6, 20, 21, 22], "{number}");
    }
    let last = pieces.apply(&base, &[6], &LOCATED).json();
    assert_eq!(last["locations"]["nodes_removed"], 3, "{last}");
    let found = opl(&base);
    assert_eq!(node_ids(&found), [4, 5, 6]);
    assert_eq!(refs_of(&found, 31), "n21x21y21,n20x20y20");
    assert_eq!(opl(&pieces.apply_all(&needed(&pieces), 6, &LOCATED)), found);
    // Another number of days.
    for (days, nodes) in [("0", 3), ("31", 6), ("29", 3)] {
        let options = [LOCATED[0], "--keep-nodes", days];
        let file = pieces.apply_all(&needed(&pieces), 6, &options);
        assert_eq!(node_ids(&opl(&file)).len(), nodes, "{days}");
    }
}

#[test]
fn nodes_of_unknown_age_stay() {
    // A node without a timestamp.
    let mut pieces = Pieces::new();
    pieces.add(
        1.0,
        "<create><node id='20' version='1' lat='1' lon='1'/></create>",
    );
    pieces.add(100.0, "");
    let file = pieces.apply_all(&needed(&pieces), 1, &LOCATED);
    assert_eq!(node_ids(&opl(&file)), [4, 5, 6, 20]);
    // A header without a timestamp, which gets its first one later.
    let mut pieces = Pieces::new();
    pieces.add(0.5, &node(20, 1, "2001-01-01", 1));
    let (text, plain) = (pieces.path("plain.opl"), pieces.path("plain.osm.pbf"));
    std::fs::write(&text, SMALL).unwrap();
    run_ok(&[&"cat", &"-q", &text, &"-o", &plain]);
    let file = pieces.locate(&plain, "needed", &[]);
    std::fs::remove_file(pieces.server().join("000/000/001.state.txt")).unwrap();
    pieces.apply(&file, &[1], &LOCATED);
    assert_eq!(node_ids(&opl(&file)), [4, 5, 6, 20]);
    let header = "osmosis_replication_timestamp=2024-01-01T00:00:00Z";
    let options = [LOCATED[0], "--output-header", header];
    pieces.add(100.0, "");
    pieces.apply(&file, &[2], &options);
    assert_eq!(node_ids(&opl(&file)), [4, 5, 6, 20]);
    // A change decides by its own time, also if it is applied again.
    pieces.apply(&file, &[1], &options);
    assert_eq!(node_ids(&opl(&file)), [4, 5, 6]);
}

/// Untagged nodes that are in the file for reasons of which it does not know, such as relations that an extract does
/// not have. Nodes 3 and 4 become too old after the 1st of January 2024, and nodes 1 and 2 were too old before.
const SPARE: &str = "n1 v1 t2020-01-01T00:00:00Z x1 y1\nn2 v1 t2023-12-01T23:59:59Z x2 y2\n\
                     n3 v1 t2023-12-02T00:00:00Z x3 y3\nn4 v1 t2023-12-20T00:00:00Z x4 y4\nn5 v1 t x5 y5\n\
                     n6 v1 t2024-01-01T12:00:00Z Ta=b x6 y6\n\
                     w1 v1 t2020-01-01T00:00:00Z Nn1x1y1,n2x2y2,n3x3y3,n4x4y4,n5x5y5\n";

#[test]
fn only_nodes_that_become_too_old_after_the_base_are_removed() {
    let mut pieces = Pieces::new();
    pieces.add(1.0, &node(20, 1, "2024-01-02", 20));
    pieces.add(40.0, "");
    let base = declared_as_needed(&pieces, "base", SPARE);
    for (days, first, last) in [
        ("30", &[1, 2, 4, 5, 6, 20][..], &[1, 2, 5, 6][..]),
        // Fewer days remove what the default has kept.
        ("7", &[1, 2, 5, 6, 20], &[1, 2, 5, 6]),
        ("0", &[1, 2, 5, 6], &[1, 2, 5, 6]),
        ("100", &[1, 2, 3, 4, 5, 6, 20], &[1, 2, 3, 4, 5, 6, 20]),
    ] {
        let options = [LOCATED[0], "--keep-nodes", days];
        let file = pieces.apply_all(&base, 2, &options);
        assert_eq!(node_ids(&opl(&file)), last, "{days}");
        std::fs::copy(&base, &file).unwrap();
        for (number, expected) in [(1, first), (2, last)] {
            pieces.apply(&file, &[number], &options);
            assert_eq!(node_ids(&opl(&file)), expected, "{days}, {number}");
        }
        assert_eq!(
            refs_of(&opl(&file), 1),
            "n1x1y1,n2x2y2,n3x3y3,n4x4y4,n5x5y5"
        );
    }
}

#[test]
fn updates_of_a_file_without_a_state_remove_the_same_nodes_in_any_number() {
    let mut pieces = Pieces::new();
    pieces.add(1.0, &node(20, 1, "2024-01-02", 20));
    pieces.add(40.0, "");
    let [text, file, other] =
        ["text.opl", "file.osm.pbf", "other.osm.pbf"].map(|name| pieces.path(name));
    std::fs::write(&text, SPARE).unwrap();
    let header: [Arg; 2] = [&"--output-header", &"pbfhogg.NeededNodes=true"];
    let cat: [Arg; 5] = [&"cat", &"-q", &text, &"-o", &file];
    run_ok(&[&cat[..], &header].concat());
    assert_eq!(decode::header(&file).replication_timestamp, None);
    std::fs::copy(&file, &other).unwrap();
    for end in ["1", "2"] {
        pieces.update(&file, &["--end-sequence", end]);
    }
    pieces.update(&other, &[]);
    assert_eq!(node_ids(&opl(&file)), [1, 2, 5, 6]);
    assert_eq!(opl(&file), opl(&other));
}

#[test]
fn an_old_node_goes_with_the_last_way_that_needs_it() {
    let mut pieces = Pieces::new();
    let old = "t2020-01-01T00:00:00Z";
    // Ways 1 and 2 do not know where node 1 is. Of node 2, only the file itself knows why it is there.
    let text = format!(
        "n1 v1 {old} x1 y1\nn2 v1 {old} x2 y2\nw1 v1 {old} Nn1xy,n2x2y2\nw2 v1 {old} Nn2x2y2,n1xy\n"
    );
    pieces.add(0.1, &way(1, 2, &[1, 2]));
    pieces.add(0.2, "<delete><way id='2' version='2'/></delete>");
    let base = declared_as_needed(&pieces, "base", &text);
    for (len, nodes) in [(1, &[1, 2][..]), (2, &[2])] {
        let file = pieces.path("file.osm.pbf");
        std::fs::copy(&base, &file).unwrap();
        pieces.apply(&file, &[1, 2][..len], &LOCATED);
        let found = opl(&file);
        assert_eq!(node_ids(&found), nodes, "{len}");
        assert_eq!(refs_of(&found, 1), "n1x1y1,n2x2y2");
    }
    assert_eq!(
        opl(&pieces.apply_all(&base, 1, &LOCATED)),
        opl(&pieces.apply_all(&base, 2, &LOCATED))
    );
}

#[test]
fn located_anew_a_file_with_some_nodes_stays_declared_as_such_unless_it_has_all() {
    let mut pieces = Pieces::new();
    pieces.add(1.0, &node(20, 1, "2024-01-01", 20));
    let plain = pieces.base("plain", SMALL);
    let keep = [LOCATED[0], "-n"];
    let few = pieces.locate(&plain, "few", &[]);
    pieces.apply(&few, &[1], &keep);
    let all = pieces.path("all.osm.pbf");
    let located = pieces.locate(&plain, "located", &["-n"]);
    let header = ["pbfhogg.AllNodes=false", "pbfhogg.SomeNodes=true"];
    let options = header
        .iter()
        .flat_map(|name| [&"--output-header" as Arg, name]);
    let cat: [Arg; 5] = [&"cat", &"-q", &located, &"-o", &all];
    run_ok(&[&cat[..], &options.collect::<Vec<_>>()].concat());
    for (file, feature) in [(&few, "pbfhogg.SomeNodes"), (&all, "pbfhogg.AllNodes")] {
        assert_eq!(features(file), ["pbfhogg.SomeNodes"]);
        let again = pieces.locate(file, "again", &["-n"]);
        assert_eq!(features(&again), [feature]);
        let needed = pieces.locate(file, "again", &[]);
        assert_eq!(features(&needed), ["pbfhogg.NeededNodes"]);
    }
}

#[test]
fn members_and_tagged_nodes_that_are_no_longer_needed_stay_while_they_are_recent() {
    let mut pieces = Pieces::new();
    let changes = node(6, 2, "2024-01-02", 6) + &node(4, 2, "2024-01-02", 4);
    pieces.add(1.0, &changes);
    pieces.add(2.0, &relation(1, 2, &[]));
    pieces.add(40.0, "");
    for len in [1, 2] {
        let base = needed(&pieces);
        let file = pieces.apply_all(&base, len, &LOCATED);
        assert_eq!(node_ids(&opl(&file)), Vec::<i64>::new(), "{len}");
        let file = needed(&pieces);
        for numbers in [1, 2].chunks(len) {
            pieces.apply(&file, numbers, &LOCATED);
        }
        // Node 5 is older. Its location stays in the way.
        let found = opl(&file);
        assert_eq!(node_ids(&found), [4, 6], "{len}");
        assert_eq!(refs_of(&found, 2), "n2x2y1,n3x3y1,n4x4y4,n5x5y1,n6x6y6");
    }
}

#[test]
fn an_older_day_moves_no_way_back_while_the_nodes_are_recent() {
    let mut pieces = Pieces::new();
    pieces.add(1.0, &node(2, 2, "2024-01-01", 9));
    pieces.add(2.0, &node(2, 3, "2024-01-02", 8));
    let file = needed(&pieces);
    for number in [1, 2, 1] {
        pieces.apply(&file, &[number], &LOCATED);
    }
    assert_eq!(refs_of(&opl(&file), 1), "n1x1y1,n2x8y8");
}

#[test]
fn the_form_of_a_file_is_decided_once_and_declared() {
    let mut pieces = Pieces::new();
    pieces.add(1.0, &node(20, 1, "2001-01-01", 20));
    pieces.add(2.0, &node(21, 1, "2001-01-01", 21));
    let plain = pieces.base("plain", SMALL);
    let all = pieces.locate(&plain, "all", &["-n"]);
    let few = pieces.locate(&plain, "few", &[]);
    let anonymous = |file: &Path| {
        let path = file.with_extension("anonymous.pbf");
        let cat: [Arg; 5] = [&"cat", &"-q", &file, &"-o", &path];
        let header: [Arg; 4] = [
            &"--output-header",
            &"pbfhogg.AllNodes=false",
            &"--output-header",
            &"pbfhogg.NeededNodes=false",
        ];
        run_ok(&[&cat[..], &header[..]].concat());
        assert!(features(&path).is_empty());
        path
    };
    let keep = [LOCATED[0], "-n"];
    for (file, options, feature, nodes) in [
        (all.clone(), &LOCATED[..], "pbfhogg.AllNodes", 10),
        (anonymous(&all), &LOCATED, "pbfhogg.SomeNodes", 10),
        (anonymous(&few), &LOCATED, "pbfhogg.NeededNodes", 3),
        (few.clone(), &LOCATED, "pbfhogg.NeededNodes", 3),
        (few, &keep, "pbfhogg.SomeNodes", 5),
    ] {
        pieces.apply(&file, &[1], options);
        assert_eq!(features(&file), [feature], "{}", file.display());
        // The declaration counts from then on.
        pieces.apply(&file, &[2], &LOCATED);
        assert_eq!(features(&file), [feature], "{}", file.display());
        assert_eq!(node_ids(&opl(&file)).len(), nodes, "{}", file.display());
        // Without the option, ways lose their locations, and the header the declarations.
        let plain = file.with_extension("plain.pbf");
        run_ok(&[
            &"apply-changes",
            &"-q",
            &"-O",
            &file,
            &pieces.change(2),
            &"-o",
            &plain,
        ]);
        assert!(features(&plain).is_empty());
    }
}

#[test]
fn references_without_a_location_are_counted_and_warned_of() {
    let mut pieces = Pieces::new();
    pieces.add(
        1.0,
        &(way(30, 1, &[1, 98, 99]) + &way(31, 1, &[99]) + &way(32, 1, &[1, 2])),
    );
    let (file, other) = (needed(&pieces), pieces.path("other.osm.pbf"));
    std::fs::copy(&file, &other).unwrap();
    let applied = pieces.apply(&file, &[1], &LOCATED);
    let updated = pieces.update(&other, &[]);
    assert_eq!(updated.status, 0, "{updated:?}");
    for answer in [applied, updated] {
        let locations = &answer.json()["locations"];
        assert_eq!(locations["missing_references"], 3, "{answer:?}");
        assert_eq!(locations["incomplete_ways"], 2, "{answer:?}");
        let warning = "3 references of 2 ways get no location";
        assert!(answer.stderr.contains(warning), "{answer:?}");
    }
    assert_eq!(opl(&file), opl(&other));
}

#[test]
fn minutes_in_updates_have_the_result_of_one_update() {
    let mut pieces = Pieces::new();
    pieces.add(
        0.1,
        &(node(20, 1, "2024-01-01", 20) + &node(21, 1, "2024-01-01", 21)),
    );
    pieces.add(0.2, &way(30, 1, &[20, 21]));
    let (file, other) = (needed(&pieces), pieces.path("other.osm.pbf"));
    std::fs::copy(&file, &other).unwrap();
    for end in ["1", "2"] {
        pieces.update(&file, &["--end-sequence", end]);
    }
    pieces.update(&other, &[]);
    assert_eq!(refs_of(&opl(&file), 30), "n20x20y20,n21x21y21");
    assert_eq!(opl(&file), opl(&other));
    // Without recent nodes, it is warned of what cannot be located.
    let file = needed(&pieces);
    pieces.update(&file, &["--end-sequence", "1", "--keep-nodes", "0"]);
    let answer = pieces.update(&file, &[]);
    assert_eq!(refs_of(&opl(&file), 30), "n20xy,n21xy");
    let warning = "2 references of 1 way get no location";
    assert!(answer.stderr.contains(warning), "{answer:?}");
}

/// Makes a file that declares to have the needed nodes only.
fn declared_as_needed(pieces: &Pieces, name: &str, opl: &str) -> PathBuf {
    let base = pieces.base(&format!("{name}-0"), opl);
    let path = pieces.path(&format!("{name}.osm.pbf"));
    let header = "pbfhogg.NeededNodes=true";
    run_ok(&[
        &"cat",
        &"-q",
        &base,
        &"--output-header",
        &header,
        &"-o",
        &path,
    ]);
    path
}

#[test]
fn of_two_places_of_an_absent_node_that_of_the_newest_way_counts() {
    let mut pieces = Pieces::new();
    pieces.add(1.0, &way(30, 1, &[1, 2]));
    // A way of a change file that gives locations is newer than both.
    pieces.add(
        2.0,
        "<create><way id='31' version='1' timestamp='2024-01-03T00:00:00Z'><nd ref='1' lat='7' lon='7'/></way></create>\
         <create><way id='32' version='1' timestamp='2024-01-03T00:00:00Z'><nd ref='1'/></way></create>",
    );
    let old = "t2020-01-01T00:00:00Z";
    let new = "t2021-01-01T00:00:00Z";
    for (name, times, place) in [
        ("a", [old, new], "n1x5y5,n2x2y2"),
        ("b", [new, old], "n1x1y1,n2x2y2"),
    ] {
        let text = format!(
            "w1 v1 {} Nn1x1y1,n2x2y2\nw2 v1 {} Nn1x5y5\n",
            times[0], times[1]
        );
        let file = declared_as_needed(&pieces, name, &text);
        pieces.apply(&file, &[1], &LOCATED);
        assert_eq!(refs_of(&opl(&file), 30), place);
        let file = declared_as_needed(&pieces, &format!("{name}-2"), &text);
        pieces.apply(&file, &[1, 2], &LOCATED);
        let found = opl(&file);
        assert_eq!(refs_of(&found, 31), "n1x7y7");
        assert_eq!(refs_of(&found, 32), "n1x7y7");
    }
}

#[test]
fn old_nodes_stay_if_a_way_does_not_have_their_locations() {
    let mut pieces = Pieces::new();
    pieces.add(1.0, &node(3, 2, "2001-01-01", 3));
    pieces.add(2.0, "");
    let old = "v1 t2020-01-01T00:00:00Z";
    let text = format!(
        "n1 {old} x1 y1\nn2 {old} x2 y2\nn4 {old} x4 y4\n\
         w1 {old} Nn1,n3\nw2 {old} Nn2x2y2\nw3 {old} Nn4x4y4,n1x1y1\n"
    );
    for len in [1, 2] {
        let file = declared_as_needed(&pieces, "file", &text);
        let file = pieces.apply_all(&file, len, &LOCATED);
        let found = opl(&file);
        assert_eq!(node_ids(&found), [1, 2, 3, 4], "{len}: {found:?}");
        assert_eq!(refs_of(&found, 1), "n1,n3");
        std::fs::remove_file(pieces.path("file.osm.pbf")).unwrap();
    }
}

#[test]
fn update_keeps_locations_up_to_date_that_the_header_does_not_declare() {
    let mut pieces = Pieces::new();
    let text = SMALL.replace("2020-01-01T00:00:00Z", "2024-01-01T12:00:00Z");
    pieces.add(2.0, &node(2, 2, "2024-01-02", 9));
    let located = pieces.locate(&pieces.base("plain", &text), "all", &["-n"]);
    let objects = decode::objects(&located);
    let file = file_of(&pieces.server(), "undeclared.osm.pbf", &[&objects]);
    assert!(decode::header(&file).optional.is_empty());
    let answer = pieces.update(&file, &[]);
    assert_eq!(answer.status, 0, "{answer:?}");
    assert_eq!(refs_of(&opl(&file), 1), "n1x1y1,n2x9y9");
    assert_eq!(answer.json()["locations"]["ways_moved"], 2, "{answer:?}");
    assert_eq!(features(&file), ["pbfhogg.SomeNodes"]);
}
