//! Tests of bugs that were fixed.

use crate::common::answers::{ask, file_of};
use crate::common::oracle::osmconvert;
use crate::common::{
    Kind, Object, craft, decode, node, pbfhogg, relation, run_fail, run_ok, way, with_metadata,
    world,
};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[test]
fn versions_that_go_on_in_the_next_group_of_a_blob_are_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let version = |id: i64, version: i64| {
        with_metadata(
            node(id, id, version, &[]),
            version,
            1_600_000_000 + version,
            1,
            "a",
        )
    };
    let objects: Vec<Object> = [
        version(1, 1),
        version(5, 1),
        version(5, 2),
        version(5, 3),
        version(9, 1),
    ]
    .into();
    let shape = craft::Shape {
        history: true,
        ..craft::Shape::USUAL
    };
    let groups: Vec<&[Object]> = vec![&objects[..2], &objects[2..3], &objects[3..]];
    let required = ["OsmSchema-V0.6", "DenseNodes", "HistoricalInformation"];
    let header = craft::header_payload(&required, &["Sort.Type_then_ID"]);
    let input = dir.path().join("in.osh.pbf");
    let file = craft::file(header, &[craft::block_of_runs(&groups, &shape)]);
    std::fs::write(&input, file).unwrap();
    let inspected = ask(&[&"inspect", &input]);
    assert!(
        inspected.stdout.contains("sorted by kind and id"),
        "{inspected:?}"
    );
    let output = dir.path().join("out.osm.pbf");
    run_ok(&[&"time-filter", &input, &"2030-01-01", &"-o", &output]);
    let expected = [&objects[0], &objects[3], &objects[4]];
    assert!(decode::objects(&output).iter().eq(expected));
}

#[test]
fn a_text_is_not_replaced_by_a_pbf() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().join("by-hand");
    let text = "<osm version='0.6'><node id='1' version='1' lat='1' lon='2'/></osm>";
    std::fs::write(&base, text).unwrap();
    let changes = dir.path().join("day.osc");
    std::fs::write(
        &changes,
        "<osmChange version='0.6'><delete><node id='1' version='2'/></delete></osmChange>",
    )
    .unwrap();
    let message = run_fail(&[&"apply-changes", &"--in-place", &base, &changes]);
    assert!(message.contains("this is a text file"), "{message}");
    assert_eq!(std::fs::read_to_string(&base).unwrap(), text);
}

#[test]
fn a_stream_of_renumbered_objects_is_not_called_sorted_where_it_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let first = file_of(
        dir.path(),
        "a.osm.pbf",
        &[&[node(5, 0, 0, &[]), node(10, 0, 0, &[])]],
    );
    let second = file_of(
        dir.path(),
        "b.osm.pbf",
        &[&[node(3, 0, 0, &[]), node(5, 0, 0, &[])]],
    );
    let sorted = dir.path().join("sorted.osm.pbf");
    run_ok(&[&"sort", &second, &"-o", &sorted]);
    let map = dir.path().join("map");
    std::fs::create_dir(&map).unwrap();
    run_ok(&[
        &"renumber",
        &first,
        &"-i",
        &map,
        &"-o",
        &dir.path().join("o.osm.pbf"),
    ]);
    let stream = pbfhogg()
        .arg("renumber")
        .arg(&sorted)
        .arg("-i")
        .arg(&map)
        .args(["-o", "-"])
        .output()
        .unwrap();
    let path = dir.path().join("stream.osm.pbf");
    std::fs::write(&path, stream.stdout).unwrap();
    assert_eq!(
        decode::objects(&path)
            .iter()
            .map(|node| node.id)
            .collect::<Vec<_>>(),
        [3, 1]
    );
    assert!(
        !decode::header(&path)
            .optional
            .contains(&"Sort.Type_then_ID".into())
    );
}

#[test]
fn versions_out_of_order_are_forgotten_with_the_versions() {
    let dir = tempfile::tempdir().unwrap();
    let [two, three] =
        [2, 3].map(|version| with_metadata(node(1, 0, version, &[]), version, 1, 1, "a"));
    let input = file_of(dir.path(), "in.osm.pbf", &[&[three, two]]);
    let [indexed, clean] = ["indexed.osm.pbf", "clean.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[&"cat", &input, &"-o", &indexed]);
    run_ok(&[&"cat", &"-c", &"version", &indexed, &"-o", &clean]);
    let inspected = ask(&[&"inspect", &clean]);
    assert!(
        inspected.stdout.contains("sorted by kind and id"),
        "{inspected:?}"
    );
}

#[test]
fn an_object_of_a_text_that_fits_no_block_is_told_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let long = "x".repeat(40 << 20);
    for text in [
        format!(
            "<osm version='0.6'>\n<node id='2' lat='1' lon='1'><tag k='a' v='{long}'/></node></osm>"
        ),
        format!("n1 x1 y1\nn2 Ta={long} x1 y1\n"),
    ] {
        let input = dir.path().join("in.txt");
        std::fs::write(&input, text).unwrap();
        let message = run_fail(&[&"cat", &input, &"-o", &dir.path().join("out.osm.pbf")]);
        assert!(
            message.contains("in.txt: line 2, column 1: an object takes more than 24 MB"),
            "{message}"
        );
    }
}

#[test]
fn texts_begin_with_a_byte_order_mark_or_empty_lines() {
    let dir = tempfile::tempdir().unwrap();
    for text in [
        "\u{feff}n1 x1 y1\n",
        "\n\nn1 x1 y1\n",
        "\u{feff}\n <osm version='0.6'><node id='1' lat='1' lon='1'/></osm>",
    ] {
        let (input, output) = (dir.path().join("in.txt"), dir.path().join("out.osm.pbf"));
        std::fs::write(&input, text).unwrap();
        run_ok(&[&"cat", &"-O", &input, &"-o", &output]);
        assert!(
            decode::objects(&output) == [node(1, 10_000_000, 10_000_000, &[])],
            "{text:?}"
        );
    }
}

#[test]
fn what_is_no_xml_is_no_osm_either() {
    let dir = tempfile::tempdir().unwrap();
    for (text, cause) in [
        (
            "<osm version='0.6'><node id='1' lat='1' lon='1' user='a<b'/></osm>",
            "there is < in its value",
        ),
        (
            "<osm version='0.6'/><![CDATA[x]]>",
            "there is text behind </osm>",
        ),
        ("<osm version='0.6'/>&amp;", "there is text behind </osm>"),
    ] {
        let input = dir.path().join("in.osm");
        std::fs::write(&input, text).unwrap();
        let message = run_fail(&[&"cat", &input, &"-o", &dir.path().join("out.osm.pbf")]);
        assert!(message.contains(cause), "{message}");
    }
    let mut damaged = b"BZh9".to_vec();
    damaged.extend([7; 100]);
    let input = dir.path().join("in.osm.bz2");
    std::fs::write(&input, damaged).unwrap();
    let message = run_fail(&[&"cat", &input, &"-o", &dir.path().join("out.osm.pbf")]);
    assert!(
        message.contains("in.osm.bz2: cannot be decompressed"),
        "{message}"
    );
}

#[test]
fn a_null_character_does_not_reach_xml() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.opl");
    std::fs::write(&input, "n1 v1 ua%0%b x1 y1\n").unwrap();
    let answer = ask(&[&"cat", &input, &"-f", &"osm", &"-o", &"-"]);
    assert!(answer.stdout.contains("user=\"a\u{fffd}b\""), "{answer:?}");
    assert!(answer.stderr.contains("1 control character"), "{answer:?}");
    let answer = ask(&[&"cat", &input, &"-f", &"opl", &"-o", &"-"]);
    assert!(answer.stdout.contains(" ua%00%b "), "{answer:?}");
}

#[test]
fn a_list_of_an_opl_line_comes_once() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.opl");
    for line in ["w1 Nn1x1y1,n2 Nn3x3y3", "r1 Mn1@ Mn2@"] {
        std::fs::write(&input, line).unwrap();
        let message = run_fail(&[&"cat", &input, &"-o", &dir.path().join("out.osm.pbf")]);
        assert!(message.contains("a second field"), "{message}");
    }
}

// Properties of our files, but not of osmium's, that other readers could not handle.

/// Writes a small synthetic file with metadata.
fn small_world(dir: &Path) -> PathBuf {
    let path = dir.join("small.osm.pbf");
    run_ok(&[&"synth", &"-q", &"--elements", &"3000", &"-o", &path]);
    path
}

fn stderr(ran: &Output) -> String {
    String::from_utf8_lossy(&ran.stderr).into_owned()
}

#[test]
fn osmconvert_reads_files_without_nodes() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let output = dir.path().join("out.osm.pbf");
    for args in [
        &["cat", "-t", "way,relation"][..],
        &["getid", "w1"],
        &["tags-filter", "-R", "w/highway"],
        &["tags-filter", "-R", "w/no=thing"],
    ] {
        let mut command = pbfhogg();
        command.arg(args[0]).arg(&world).args(&args[1..]);
        command.args(["-O", "-q", "-o"]).arg(&output);
        assert!(command.status().unwrap().code() < Some(2), "{args:?}");
        let required = decode::header(&output).required;
        assert!(required.contains(&"DenseNodes".to_owned()), "{args:?}");
        if osmconvert() {
            let mut osmconvert = Command::new("osmconvert");
            let ran = osmconvert.arg(&output).arg("--out-osm").output().unwrap();
            let said = stderr(&ran);
            assert!(!said.contains("expected feature"), "{args:?}: {said}");
            let text = String::from_utf8_lossy(&ran.stdout);
            let ways = text.matches("<way ").count();
            let expected = decode::objects(&output);
            let expected = expected.iter().filter(|object| object.kind == Kind::Way);
            assert_eq!(ways, expected.count(), "{args:?}");
        }
    }
}

#[test]
fn nodes_without_tags_have_a_column_of_tags() {
    let dir = tempfile::tempdir().unwrap();
    let bare = |ids: std::ops::Range<i64>| ids.map(|id| node(id, id, id, &[])).collect::<Vec<_>>();
    let blocks =
        [bare(1..50), bare(100..150)].map(|nodes| craft::block(&nodes, &craft::Shape::USUAL));
    assert_eq!(dense_lengths(&blocks[0]), (49, 0), "the input has none");
    let input = dir.path().join("in.osm.pbf");
    std::fs::write(&input, craft::plain_file(&blocks)).unwrap();
    let changes = dir.path().join("a.osc");
    let text = "<osmChange version='0.6'><delete><node id='7'/></delete></osmChange>";
    std::fs::write(&changes, text).unwrap();
    let output = dir.path().join("out.osm.pbf");
    let runs: [Vec<crate::common::Arg>; 4] = [
        vec![&"apply-changes", &input, &changes],
        vec![&"repack", &"-n", &"10", &input],
        vec![&"cat", &"-c", &"version", &input],
        vec![&"renumber", &input],
    ];
    for run in runs {
        run_ok(&[run.clone(), vec![&"-O", &"-o", &output]].concat());
        let changed = decode::frames(&output);
        let changed = changed
            .iter()
            .skip(1)
            .filter(|frame| !blocks.contains(&frame.payload) && frame.blob_type == "OSMData");
        let mut seen = 0;
        for frame in changed {
            let (nodes, zeros) = dense_lengths(&frame.payload);
            assert_eq!(nodes, zeros);
            seen += 1;
        }
        assert!(seen > 0);
    }
}

/// The number of nodes in a block, and the length of its keys_vals in bytes.
fn dense_lengths(payload: &[u8]) -> (usize, usize) {
    let find = |message: &[u8], wanted: u32| {
        let mut fields = pbfhogg::pbf::wire::Fields::new(message);
        while let Some(field) = fields.next().unwrap() {
            if field.number == wanted {
                return field.bytes().unwrap().to_vec();
            }
        }
        Vec::new()
    };
    let dense = find(&find(payload, 2), 2);
    let ids = find(&dense, 1);
    let count = ids.iter().filter(|byte| **byte < 0x80).count();
    (count, find(&dense, 10).len())
}

#[test]
fn metadata_of_ways_and_relations_has_all_five_attributes() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("in.osm");
    let xml = "<osm version='0.6'><node id='1' lat='1' lon='1'/>\
        <way id='1' version='3' timestamp='2020-01-01T00:00:00Z'><nd ref='1'/></way>\
        <way id='2'><nd ref='1'/></way><relation id='1' version='3'/></osm>";
    std::fs::write(&text, xml).unwrap();
    let output = dir.path().join("out.osm.pbf");
    run_ok(&[&"cat", &text, &"-o", &output]);
    let mut infos = Vec::new();
    for frame in decode::frames(&output).iter().skip(2) {
        let mut block = pbfhogg::pbf::wire::Fields::new(&frame.payload);
        while let Some(group) = block.next().unwrap() {
            if group.number != 2 {
                continue;
            }
            let mut objects = pbfhogg::pbf::wire::Fields::new(group.bytes().unwrap());
            while let Some(object) = objects.next().unwrap() {
                let mut fields = pbfhogg::pbf::wire::Fields::new(object.bytes().unwrap());
                let mut numbers = Vec::new();
                while let Some(field) = fields.next().unwrap() {
                    if field.number == 4 {
                        let mut info = pbfhogg::pbf::wire::Fields::new(field.bytes().unwrap());
                        while let Some(attribute) = info.next().unwrap() {
                            numbers.push(attribute.number);
                        }
                    }
                }
                infos.push(numbers);
            }
        }
    }
    let all = vec![1, 2, 3, 4, 5];
    assert_eq!(infos, [all.clone(), vec![], all]);
}

#[test]
fn apply_changes_widens_the_box_of_the_header() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("in.osm");
    let bounds = "<bounds minlat='1' minlon='1' maxlat='2' maxlon='2'/>";
    std::fs::write(
        &text,
        format!("<osm version='0.6'>{bounds}<node id='1' lat='1' lon='1'/></osm>"),
    )
    .unwrap();
    let [base, changes, output] =
        ["base.osm.pbf", "a.osc", "out.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[&"cat", &text, &"-o", &base]);
    for (node, expected, said) in [
        ("lat='1.5' lon='1.5'", [1.0, 1.0, 2.0, 2.0], false),
        ("lat='-3' lon='7'", [1.0, -3.0, 7.0, 2.0], true),
    ] {
        let change =
            format!("<osmChange version='0.6'><create><node id='9' {node}/></create></osmChange>");
        std::fs::write(&changes, change).unwrap();
        let ran = run_ok(&[
            &"apply-changes",
            &"-v",
            &base,
            &changes,
            &"-O",
            &"-o",
            &output,
        ]);
        let text = stderr(&ran);
        assert_eq!(text.contains("box was widened"), said, "{text}");
        let found = ask(&[&"inspect", &"--json", &output]).json();
        assert_eq!(found["header_bbox"], serde_json::json!(expected));
    }
}

// Wrong results and unreported problems.

#[test]
fn unordered_nodes_take_no_more_memory_than_ordered_ones() {
    let dir = tempfile::tempdir().unwrap();
    let sparse = |id: i64| node(id * 59_999, id % 900, id % 800, &[]);
    let mut nodes: Vec<Object> = (1..60_000).map(sparse).collect();
    nodes.sort_by_key(|node| node.id.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64));
    let ways: Vec<Object> = (1..2000)
        .map(|id| way(id, &[id * 59_999, (60_000 - id) * 59_999], &[]))
        .collect();
    let mut blocks: Vec<_> = nodes
        .chunks(2000)
        .map(|nodes| craft::block(nodes, &craft::Shape::USUAL))
        .collect();
    blocks.push(craft::block(&ways, &craft::Shape::USUAL));
    let [shuffled, sorted, stats] =
        ["u.osm.pbf", "s.osm.pbf", "stats.json"].map(|name| dir.path().join(name));
    std::fs::write(&shuffled, craft::plain_file(&blocks)).unwrap();
    run_ok(&[&"sort", &shuffled, &"-o", &sorted]);
    for kind in ["sparse", "external"] {
        let mut results = Vec::new();
        for input in [&sorted, &shuffled] {
            let output = dir.path().join("out.osm.pbf");
            run_ok(&[
                &"add-locations-to-ways",
                &"-n",
                &"--index-type",
                &kind,
                &"--max-memory",
                &"120M",
                &input,
                &"-O",
                &"-o",
                &output,
                &"--stats",
                &stats,
            ]);
            let stats: serde_json::Value =
                serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
            let peak = stats["peak_memory_bytes"].as_u64().unwrap();
            assert!(peak < 120_000_000, "{kind}: {peak}");
            let mut ways = decode::objects(&output);
            ways.retain(|object| object.kind == Kind::Way);
            results.push(ways);
        }
        assert!(
            results[0] == results[1] && results[0].len() == 1999,
            "{kind}"
        );
    }
}

#[test]
fn closed_ways_of_a_region_file_count_beside_multipolygons() {
    let dir = tempfile::tempdir().unwrap();
    let square = |first: i64, west: i64, east: i64| {
        let corners = [(west, 0), (east, 0), (east, 10), (west, 10)];
        (first..)
            .zip(corners)
            .map(|(id, (lon, lat))| format!("<node id='{id}' lat='{lat}' lon='{lon}'/>"))
            .collect::<String>()
    };
    let way = |id: i64, first: i64| {
        let refs = [0, 1, 2, 3, 0]
            .map(|at| format!("<nd ref='{}'/>", first + at))
            .concat();
        format!("<way id='{id}'>{refs}</way>")
    };
    let relation = "<relation id='1'><member type='way' ref='1' role='outer'/><tag k='type' v='multipolygon'/></relation>";
    let xml = format!(
        "<osm version='0.6'>{}{}{}{}{relation}</osm>",
        square(1, 0, 10),
        square(11, 20, 30),
        way(1, 1),
        way(2, 11)
    );
    let [region, data, output] =
        ["region.osm", "data.osm", "out.osm.pbf"].map(|name| dir.path().join(name));
    std::fs::write(&region, xml).unwrap();
    let places = [(1, 5), (2, 25), (3, 15)];
    let places = places.map(|(id, lon)| format!("<node id='{id}' lat='5' lon='{lon}'/>"));
    std::fs::write(
        &data,
        format!("<osm version='0.6'>{}</osm>", places.concat()),
    )
    .unwrap();
    run_ok(&[&"extract", &"-p", &region, &data, &"-o", &output]);
    let ids: Vec<i64> = decode::objects(&output)
        .iter()
        .map(|object| object.id)
        .collect();
    assert_eq!(ids, [1, 2]);
}

#[test]
fn what_was_not_checked_is_not_called_none() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = [
        node(1, 0, 0, &[]),
        node(3, 0, 0, &[]),
        node(2, 0, 0, &[]),
        node(3, 0, 0, &[]),
    ];
    let refs = [way(1, &[9], &[]), relation(1, &[(Kind::Way, 5, "")], &[])];
    let path = file_of(dir.path(), "u.osm.pbf", &[&nodes, &refs[..1], &refs[1..]]);
    let text = ask(&[&"check", &path]).stdout;
    let hint = "ids that occur again: not checked: the file is not sorted; --full checks it";
    assert!(text.contains(hint), "{text}");
    let json = ask(&[&"check", &"--json", &path]).json();
    assert!(json["duplicates"].is_null());
    assert_eq!(json["missing"]["nodes_in_ways"], 1);
    for kind in ["nodes", "ways", "relations"] {
        assert!(
            json["missing"][format!("{kind}_in_relations")].is_null(),
            "{json}"
        );
    }
    assert!(ask(&[&"check", &"--index", &"--json", &path]).json()["nodes"].is_null());
    // -r adds to the checks that are made without it.
    let json = ask(&[&"check", &"-r", &"--json", &path]).json();
    assert_eq!(
        (&json["out_of_order"], &json["missing"]["ways_in_relations"]),
        (&1.into(), &1.into())
    );
    assert_eq!(
        ask(&[&"check", &"--full", &"--json", &path]).json()["duplicates"],
        1
    );
    let extended = ask(&[&"inspect", &"-e", &path]).stdout;
    assert!(
        extended.contains("not checked: the file is not sorted"),
        "{extended}"
    );
    let extended = ask(&[&"inspect", &"-e", &"--json", &path]).json();
    assert!(extended["extended"]["further_versions"].is_null());
    let versions = ask(&[&"inspect", &"--get", &"data.multiple_versions", &path]);
    assert_eq!(versions.stdout, "unknown\n");
}

#[test]
fn check_refs_lists_all_and_check_says_what_it_leaves_out() {
    let dir = tempfile::tempdir().unwrap();
    let refs: Vec<i64> = (1..300).collect();
    let path = file_of(dir.path(), "in.osm.pbf", &[&[way(1, &refs, &[])]]);
    let listed = |args: &[crate::common::Arg]| {
        let said = ask(args).stdout;
        (
            said.matches(" in w1").count(),
            said.contains("… and 199 more: --max-errors 0 lists all"),
        )
    };
    assert_eq!(listed(&[&"check-refs", &"-i", &path]), (299, false));
    assert_eq!(listed(&[&"check", &"--refs", &"-i", &path]), (100, true));
}

#[test]
fn verify_finds_a_flipped_bit_in_what_is_copied() {
    let dir = tempfile::tempdir().unwrap();
    let world = world(dir.path(), "60000");
    let [indexed, output] = ["i.osm.pbf", "o.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[&"cat", &world, &"-o", &indexed]);
    let frames = decode::frames(&indexed);
    let frame = &frames[frames.len() / 2];
    let mut bytes = std::fs::read(&indexed).unwrap();
    bytes[frame.offset as usize + frame.frame_len / 2] ^= 8;
    std::fs::write(&indexed, bytes).unwrap();
    let day = dir.path().join("001.osc.gz");
    let place = format!("blob {} at byte {}", frames.len() / 2, frame.offset);
    let runs: [Vec<crate::common::Arg>; 5] = [
        vec![&"cat", &indexed],
        vec![&"sort", &indexed],
        vec![&"merge", &indexed],
        vec![&"extract", &"-b", &"-180,-90,180,90", &indexed],
        vec![&"getid", &"--invert", &indexed, &"n999999999999"],
    ];
    for run in runs {
        let message = run_fail(&[run, vec![&"--verify", &"-o", &output]].concat());
        assert!(message.contains(&place), "{message}");
        assert!(!output.exists());
    }
    run_fail(&[
        &"apply-changes",
        &indexed,
        &day,
        &"--verify",
        &"-o",
        &output,
    ]);
    run_ok(&[&"cat", &indexed, &"-o", &output]);
    run_ok(&[&"cat", &"--verify", &world, &"-O", &"-o", &output]);
}

#[test]
fn objects_deleted_in_an_editor_are_left_out_without_making_a_history() {
    let dir = tempfile::tempdir().unwrap();
    let [text, output] = ["josm.osm", "out.osm.pbf"].map(|name| dir.path().join(name));
    let xml = "<osm version='0.6' generator='JOSM'><node id='1' lat='1' lon='1' action='modify'/>\
        <node id='2' lat='1' lon='1' action='delete'/><way id='3' action='delete'><nd ref='2'/></way></osm>";
    std::fs::write(&text, xml).unwrap();
    let ran = run_ok(&[&"cat", &"-v", &text, &"-o", &output]);
    assert!(
        stderr(&ran).contains("(action=\"delete\") are left out: 2"),
        "{}",
        stderr(&ran)
    );
    assert_eq!(decode::objects(&output).len(), 1);
    assert!(
        !decode::header(&output)
            .required
            .contains(&"HistoricalInformation".into())
    );
}

#[test]
fn a_derived_change_file_is_a_success_and_carries_the_state_of_the_new_file() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let [new, changes, output] =
        ["new.osm.pbf", "c.osc.gz", "out.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[
        &"removeid",
        &world,
        &"n1",
        &"w1",
        &"-q",
        &"--output-header",
        &"osmosis_replication_sequence_number=4711",
        &"--output-header",
        &"osmosis_replication_timestamp=2026-01-02T03:04:05Z",
        &"--output-header",
        &"osmosis_replication_base_url=https://example.org/day",
        &"-o",
        &new,
    ]);
    assert_eq!(
        ask(&[&"derive-changes", &world, &new, &"-o", &changes]).status,
        0
    );
    assert_eq!(ask(&[&"diff", &"-f", &"osc", &world, &new]).status, 0);
    assert_eq!(
        ask(&[&"diff", &"-f", &"osc", &"--exit-code", &world, &new]).status,
        1
    );
    assert_eq!(ask(&[&"diff", &"-q", &world, &new]).status, 1);
    run_ok(&[&"apply-changes", &world, &changes, &"-o", &output]);
    let header = decode::header(&output);
    assert_eq!(header.replication_sequence, Some(4711));
    assert_eq!(header.replication_timestamp, Some(1_767_323_045));
    assert_eq!(
        header.replication_url.as_deref(),
        Some("https://example.org/day")
    );
}

#[test]
fn changesets_become_what_osmium_makes_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("changesets.osm");
    let xml = "<?xml version='1.0'?>\n<osm version='0.6'>\
        <changeset id='1' created_at='2005-04-09T19:54:13Z' closed_at='2005-04-09T20:54:39Z' open='false' \
        user='S &amp; T' uid='1' min_lat='51.5288506' min_lon='-0.1465242' max_lat='51.5288620' \
        max_lon='-0.1464925' num_changes='2' comments_count='1'><tag k='comment' v='a &lt;b&gt;'/>\
        <discussion><comment uid='5' user='bob' date='2015-01-01T00:00:00Z'><text>hi &amp; &#x263a; <![CDATA[a <b>]]> end</text></comment>\
        </discussion></changeset>\
        <changeset id='2' created_at='2005-04-17T14:45:48Z' open='true' num_changes='0' comments_count='0'/></osm>";
    std::fs::write(&input, xml).unwrap();
    for ending in ["opl", "osm", "osm.bz2"] {
        let [ours, theirs, back] =
            ["ours", "theirs", "back"].map(|name| dir.path().join(format!("{name}.{ending}")));
        run_ok(&[&"cat", &input, &"--generator", &"x", &"-o", &ours]);
        run_ok(&[&"cat", &ours, &"--generator", &"x", &"-o", &back]);
        assert_eq!(std::fs::read(&ours).unwrap(), std::fs::read(&back).unwrap());
        if crate::common::oracle::osmium() && ending != "osm.bz2" {
            run_osmium(&["cat", "--generator", "x", "-o"], &theirs, &input);
            let [ours, theirs] =
                [&ours, &theirs].map(|path| std::fs::read_to_string(path).unwrap());
            assert_eq!(ours, theirs);
        }
    }
    let output = dir.path().join("out.osm.pbf");
    let message = run_fail(&[&"cat", &input, &"-o", &output]);
    assert!(
        message.contains("holds changesets, which PBF cannot hold"),
        "{message}"
    );
    let message = run_fail(&[&"sort", &input, &"-o", &output]);
    assert!(
        message.contains("there is nothing but changesets in the file"),
        "{message}"
    );
}

fn run_osmium(args: &[&str], output: &Path, input: &Path) {
    let status = Command::new("osmium")
        .args(args)
        .arg(output)
        .arg(input)
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn xml_of_a_history_file_has_its_attributes_in_osmiums_order() {
    if !crate::common::oracle::osmium() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let opl = dir.path().join("in.opl");
    let lines = "n1 v1 dV c1 t2020-01-01T00:00:00Z i1 ua T x1 y1\nn1 v2 dD c2 t2021-01-01T00:00:00Z i1 ua T x y\n\
        w1 v1 dV c1 t2020-01-01T00:00:00Z i1 ua Ta=b Nn1\n";
    std::fs::write(&opl, lines).unwrap();
    let [ours, theirs] = ["ours.osh", "theirs.osh"].map(|name| dir.path().join(name));
    run_ok(&[&"cat", &opl, &"--generator", &"x", &"-o", &ours]);
    run_osmium(&["cat", "--generator", "x", "-o"], &theirs, &opl);
    let [ours, theirs] = [&ours, &theirs].map(|path| std::fs::read_to_string(path).unwrap());
    assert_eq!(ours, theirs);
}

/// The compression of each data blob.
fn compressions(path: &Path) -> Vec<&'static str> {
    let frames = decode::frames(path);
    let blobs = frames.iter().skip(1);
    blobs.map(|frame| frame.compression).collect()
}

#[test]
fn the_compression_of_a_format_is_that_of_copied_blobs_too() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let [text, output] = ["in.opl", "out.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[&"cat", &world, &"-o", &text]);
    for (options, name, is_copy) in [
        ("pbf_compression=zstd", "zstd", false),
        ("pbf_compression=lz4,add_metadata=false", "lz4", false),
        ("pbf_compression=none", "raw", false),
        ("pbf_compression_level=9", "zlib", false),
        ("pbf_compression=zlib", "zlib", true),
    ] {
        let format = format!("pbf,{options}");
        let args: [crate::common::Arg; 7] =
            [&"cat", &"--json", &"-f", &format, &"-O", &"-o", &output];
        for input in [&world, &text] {
            let more: [crate::common::Arg; 2] = [&"-v", input];
            let ran = run_ok(&[&args[..], &more].concat());
            assert!(!stderr(&ran).contains("keep the compression"));
            let found = compressions(&output);
            assert!(
                found.iter().all(|kind| *kind == name),
                "{options}: {found:?}"
            );
            run_ok(&[&"check", &output]);
        }
        let world_arg: [crate::common::Arg; 1] = [&world];
        let ran = run_ok(&[&args[..], &world_arg].concat());
        let summary: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
        let (copied, rewritten) = (&summary["blobs_copied"], &summary["blobs_rewritten"]);
        assert_eq!(copied == 0, !is_copy, "{summary}");
        assert_eq!(rewritten == 0, is_copy, "{summary}");
        if !options.contains("metadata") {
            assert!(
                decode::objects(&output) == decode::objects(&world),
                "{options}"
            );
        }
    }
    // Outputs that share their encoders, and blobs that were cut.
    let regions = dir.path().join("regions.json");
    let boxes = r#"{"extracts": [{"output": "a.osm.pbf", "bbox": [-180, -90, 10, 90]},
        {"output": "b.osm.pbf", "bbox": [-180, -90, 180, 90]}]}"#;
    std::fs::write(&regions, boxes).unwrap();
    let format = "pbf,pbf_compression=zstd";
    run_ok(&[
        &"extract",
        &world,
        &"-c",
        &regions,
        &"-d",
        &dir.path(),
        &"-f",
        &format,
    ]);
    for name in ["a.osm.pbf", "b.osm.pbf"] {
        let found = compressions(&dir.path().join(name));
        assert!(
            found.iter().all(|kind| *kind == "zstd"),
            "{name}: {found:?}"
        );
    }
}

#[test]
fn repack_compresses_what_is_compressed_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let output = dir.path().join("out.osm.pbf");
    let kinds = compressions;
    for (compression, name) in [
        ("zstd", "zstd"),
        ("lz4", "lz4"),
        ("none", "raw"),
        ("zlib:9", "zlib"),
    ] {
        let ran = run_ok(&[
            &"repack",
            &"-v",
            &"--compression",
            &compression,
            &world,
            &"-O",
            &"-o",
            &output,
        ]);
        assert!(
            kinds(&output).iter().all(|kind| *kind == name),
            "{compression}"
        );
        assert!(decode::objects(&output) == decode::objects(&world));
        assert!(stderr(&ran).contains("recompressed"));
    }
    let ran = run_ok(&[
        &"repack",
        &"-v",
        &"--compression",
        &"zlib",
        &world,
        &"-O",
        &"-o",
        &output,
    ]);
    assert!(!stderr(&ran).contains("recompressed"));
    let ran = run_ok(&[
        &"cat",
        &"--compression",
        &"zstd",
        &world,
        &"-O",
        &"-o",
        &output,
    ]);
    assert!(
        stderr(&ran).contains("keep the compression that they had"),
        "{}",
        stderr(&ran)
    );
}

#[test]
fn an_output_whose_name_says_no_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    for name in ["x.osm.xz", "x.zip", "x.txt", "x"] {
        for command in ["cat", "sort"] {
            let output = dir.path().join(name);
            let message = run_fail(&[&command, &world, &"-o", &output]);
            assert!(
                message.contains("the name does not show the format"),
                "{message}"
            );
            run_ok(&[&command, &world, &"-f", &"pbf", &"-o", &output]);
            std::fs::remove_file(&output).unwrap();
        }
    }
}

#[test]
fn a_region_that_meets_nothing_is_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = [node(1, 500_000_000, 50_000_000, &[])];
    let input = file_of(dir.path(), "in.osm.pbf", &[&nodes]);
    let output = dir.path().join("out.osm.pbf");
    let inspected = ask(&[&"inspect", &"--json", &input]).json();
    let [lon, lat] = [0, 1].map(|at| inspected["data_bbox"][at].as_f64().unwrap());
    let far = run_ok(&[
        &"extract",
        &"-b",
        &"-10,-10,-9,-9",
        &input,
        &"-O",
        &"-o",
        &output,
    ]);
    assert!(
        stderr(&far).contains("lies in the region"),
        "{}",
        stderr(&far)
    );
    assert!(!stderr(&far).contains("swapped"), "{}", stderr(&far));
    let swapped = format!("{},{},{},{}", lat - 1.0, lon - 1.0, lat + 1.0, lon + 1.0);
    let swapped = run_ok(&[&"extract", &"-b", &swapped, &input, &"-O", &"-o", &output]);
    assert!(
        stderr(&swapped).contains("latitude and longitude look swapped"),
        "{}",
        stderr(&swapped)
    );
    let met = format!("{},{},{},{}", lon - 1.0, lat - 1.0, lon + 1.0, lat + 1.0);
    let met = run_ok(&[&"extract", &"-b", &met, &input, &"-O", &"-o", &output]);
    assert_eq!(stderr(&met), "");
    let message = run_fail(&[&"extract", &"-b", &"5,5,5,5", &input, &"-O", &"-o", &output]);
    assert!(message.contains("the box is empty"), "{message}");
}

#[test]
fn all_features_of_a_geojson_file_are_one_region() {
    let dir = tempfile::tempdir().unwrap();
    let square = |west: i64| {
        let east = west + 2;
        format!(
            "{{\"type\":\"Feature\",\"properties\":{{}},\"geometry\":{{\"type\":\"Polygon\",\
             \"coordinates\":[[[{west},0],[{east},0],[{east},2],[{west},2],[{west},0]]]}}}}"
        )
    };
    let [region, data, output] =
        ["region.geojson", "data.osm", "out.osm.pbf"].map(|name| dir.path().join(name));
    let features = [square(0), square(10)].join(",");
    std::fs::write(
        &region,
        format!("{{\"type\":\"FeatureCollection\",\"features\":[{features}]}}"),
    )
    .unwrap();
    let nodes = [1, 5, 11].map(|lon| format!("<node id='{lon}' lat='1' lon='{lon}'/>"));
    std::fs::write(
        &data,
        format!("<osm version='0.6'>{}</osm>", nodes.concat()),
    )
    .unwrap();
    run_ok(&[&"extract", &"-p", &region, &data, &"-o", &output]);
    let ids: Vec<i64> = decode::objects(&output)
        .iter()
        .map(|object| object.id)
        .collect();
    assert_eq!(ids, [1, 11]);
}

#[test]
fn one_function_says_which_index_a_file_has() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let empty = dir.path().join("empty.osm.pbf");
    std::fs::write(&empty, craft::plain_file(&[])).unwrap();
    let [foreign, plain] = ["foreign.osm.pbf", "plain.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[
        &"cat",
        &"--blob-index",
        &"--no-index",
        &world,
        &"-o",
        &foreign,
    ]);
    run_ok(&[&"cat", &"--no-index", &world, &"-o", &plain]);
    for (path, index, status) in [
        (&world, "table of contents", 0),
        (&foreign, "per-blob indexes", 1),
        (&plain, "none", 1),
        (&empty, "none", 1),
    ] {
        for args in [&["inspect", "--json"][..], &["inspect", "-e", "--json"]] {
            let args: Vec<crate::common::Arg> = args.iter().map(|arg| arg as _).collect();
            let found = ask(&[args, vec![path]].concat()).json();
            assert_eq!(
                (&found["index"], &found["indexed"]),
                (&index.into(), &(status == 0).into())
            );
        }
        let said = ask(&[&"inspect", &"--indexed", path]);
        assert_eq!(said.status, status);
        assert!(said.stdout.contains(index), "{said:?}");
    }
}

#[test]
fn files_that_are_not_osm_are_called_by_their_name() {
    let dir = tempfile::tempdir().unwrap();
    for (start, name) in [
        (&b"PK\x03\x04 and so on"[..], "a zip archive"),
        (b"\x89PNG\r\n\x1a\n and so on", "a PNG picture"),
        (b"\xff\xe0\x04o6m3 and so on", "an o5m file"),
        (b"just some words\n", "text"),
        (b"{\"type\": \"Feature\"}", "JSON"),
        (b"\x7fELF and so on", "a program"),
    ] {
        let path = dir.path().join("file.osm.pbf");
        std::fs::write(&path, start).unwrap();
        for command in [&["inspect"][..], &["check"], &["sort", "-o", "/dev/null"]] {
            let args: Vec<crate::common::Arg> = command.iter().map(|arg| arg as _).collect();
            let message = run_fail(&[args, vec![&path]].concat());
            assert!(
                message.contains("not an OSM file") && message.contains(name),
                "{message}"
            );
        }
    }
}

#[test]
fn a_folder_for_temporary_files_that_is_not_there_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("in.osm");
    std::fs::write(
        &text,
        "<osm version='0.6'><node id='1' lat='1' lon='1'/></osm>",
    )
    .unwrap();
    let mut command = pbfhogg();
    command
        .env("TMPDIR", "/no/such/folder")
        .arg("inspect")
        .arg(&text);
    let ran = command.output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
    assert!(
        stderr(&ran).contains("/no/such/folder: cannot create a temporary file in this directory"),
        "{}",
        stderr(&ran)
    );
}

#[test]
fn mistakes_on_the_command_line_are_one_line_that_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let cases: [(&[crate::common::Arg], &str); 7] = [
        (&[&"inspect", &world, &world], "inspect takes one file"),
        (
            &[&"inspect", &"--get", &"data.count.node", &world],
            "did you mean data.count.nodes",
        ),
        (
            &[&"inspect", &"--get", &"typo", &world],
            "'typo' is not a key of --get",
        ),
        (&[&"cat", &"--josn", &world], "did you mean --json?"),
        (
            &[&"cat", &"--unrelated", &world],
            "has no option --unrelated; see `pbfhogg cat --help`",
        ),
        (&[&"ct"], "did you mean cat?"),
        (&[&"--unknown"], "see `pbfhogg --help`"),
    ];
    for (args, expected) in cases {
        let message = run_fail(args);
        assert!(message.contains(expected), "{message}");
    }
    let found = ask(&[
        &"getid",
        &world,
        &"n999999999",
        &"-f",
        &"pbf",
        &"-o",
        &"/dev/null",
    ]);
    assert_eq!(found.status, 1);
    assert!(
        found.stderr.contains("1 not found: n999999999"),
        "{found:?}"
    );
}

#[test]
fn every_command_is_in_the_help_of_the_program() {
    let help = ask(&[&"--help"]).stdout;
    for name in [
        "inspect",
        "show",
        "merge",
        "removeid",
        "derive-changes",
        "demo",
        "repack",
    ] {
        assert!(help.contains(&format!("\n  {name} ")), "{name}: {help}");
    }
    for heading in ["Inspect:", "Select:", "Update:", "Transform:"] {
        assert!(help.contains(heading), "{help}");
    }
}

#[test]
fn objects_that_nobody_counted_are_not_called_none() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let [bare, output] = ["bare.osm.pbf", "out.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[&"cat", &"--no-index", &world, &"-o", &bare]);
    let found = ask(&[&"cat", &"--no-index", &bare, &"-o", &output, &"--json"]).json();
    assert!(found["written"]["objects"].is_null(), "{found}");
    let said = ask(&[&"cat", &"-v", &"--no-index", &bare, &"-O", &"-o", &output]).stderr;
    assert!(said.contains("objects not counted"), "{said}");
    let ran = run_ok(&[
        &"cat",
        &"--no-index",
        &"--verify",
        &bare,
        &"-O",
        &"-o",
        &output,
    ]);
    assert!(
        stderr(&ran).contains("have no content hash"),
        "{}",
        stderr(&ran)
    );
}

#[test]
fn counting_tags_of_areas_is_an_error_and_not_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("in.osm.pbf");
    run_ok(&[&"synth", &"-q", &"--elements", &"2000", &"-o", &path]);
    let output = run_fail(&[&"inspect", &"tags", &path, &"a/building"]);
    assert!(output.contains("use wr/ instead of a/"), "{output}");
}
