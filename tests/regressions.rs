//! What went wrong once.

use crate::common::answers::{ask, file_of};
use crate::common::{Object, craft, decode, node, pbfhogg, run_fail, run_ok, with_metadata};

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
    let text = "<osm><node id='1' version='1' lat='1' lon='2'/></osm>";
    std::fs::write(&base, text).unwrap();
    let changes = dir.path().join("day.osc");
    std::fs::write(
        &changes,
        "<osmChange><delete><node id='1' version='2'/></delete></osmChange>",
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
        format!("<osm>\n<node id='2' lat='1' lon='1'><tag k='a' v='{long}'/></node></osm>"),
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
        "\u{feff}\n <osm><node id='1' lat='1' lon='1'/></osm>",
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
            "<osm><node id='1' lat='1' lon='1' user='a<b'/></osm>",
            "there is < in its value",
        ),
        ("<osm/><![CDATA[x]]>", "there is text behind </osm>"),
        ("<osm/>&amp;", "there is text behind </osm>"),
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
