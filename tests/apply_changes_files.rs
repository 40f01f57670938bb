//! `apply-changes`: the files that it reads and writes, with their headers, in every compression, and in place.

use crate::apply_changes::{base, change_file};
use crate::common::answers::ask;
use crate::common::oracle::real_file;
use crate::common::{Arg, decode, run_fail, run_ok, stderr};

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

#[test]
fn the_header_carries_the_new_replication_state() {
    let dir = tempfile::tempdir().unwrap();
    let base = base(dir.path());
    let changes = change_file(dir.path(), "123.osc", "");
    let state = "#comment\nsequenceNumber=123\ntimestamp=2026-01-02T03\\:04\\:05Z\n";
    std::fs::write(dir.path().join("123.state.txt"), state).unwrap();
    let output = dir.path().join("out.osm.pbf");
    let before = "osmosis_replication_sequence_number=122";
    let unstated = dir.path().join("unstated.osm.pbf");
    std::fs::rename(&base, &unstated).unwrap();
    run_ok(&[&"cat", &unstated, &"--output-header", &before, &"-o", &base]);
    run_ok(&[&"apply-changes", &base, &changes, &"-o", &output]);
    let header = decode::header(&output);
    assert_eq!(
        (header.replication_sequence, header.replication_timestamp),
        (Some(123), Some(1_767_323_045))
    );
    let by_hand = "osmosis_replication_sequence_number=7";
    run_ok(&[
        &"apply-changes",
        &base,
        &changes,
        &"-O",
        &"--output-header",
        &by_hand,
        &"-o",
        &output,
    ]);
    assert_eq!(decode::header(&output).replication_sequence, Some(7));
}

#[test]
fn in_place_replaces_the_base() {
    let dir = tempfile::tempdir().unwrap();
    let base = base(dir.path());
    let changes = change_file(
        dir.path(),
        "a.osc",
        "<delete><node id='10' version='4'/></delete>",
    );
    run_ok(&[&"apply-changes", &"--in-place", &base, &changes]);
    assert_eq!(decode::objects(&base).len(), 34);
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        2,
        "nothing is left behind"
    );
}

#[test]
fn an_unsorted_base_is_sorted_on_the_way() {
    let base = real_file("baltimore.osm.pbf");
    let dir = tempfile::tempdir().unwrap();
    let changes = change_file(
        dir.path(),
        "a.osc",
        "<delete><node id='281072107' version='99'/></delete>",
    );
    let output = dir.path().join("out.osm.pbf");
    let ran = run_ok(&[&"apply-changes", &"-v", &base, &changes, &"-o", &output]);
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(
        said.contains("sorting them into a temporary file"),
        "{said}"
    );
    let sorted = dir.path().join("sorted.osm.pbf");
    run_ok(&[&"sort", &base, &"-o", &sorted]);
    let mut expected = decode::objects(&sorted);
    expected.retain(|object| object.id != 281_072_107);
    assert!(decode::objects(&output) == expected);
}

#[test]
fn a_history_file_is_refused() {
    let base = real_file("deleted_nodes.osh.pbf");
    let dir = tempfile::tempdir().unwrap();
    let changes = change_file(dir.path(), "a.osc", "");
    let output = dir.path().join("out.osm.pbf");
    let message = run_fail(&[&"apply-changes", &base, &changes, &"-o", &output]);
    assert!(message.contains("history"), "{message}");
}

#[test]
fn change_files_are_read_in_every_compression() {
    let dir = tempfile::tempdir().unwrap();
    let base = base(dir.path());
    let plain = change_file(
        dir.path(),
        "a.osc",
        "<delete><node id='10' version='4'/></delete>",
    );
    let text = std::fs::read(&plain).unwrap();
    let gzip = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, &text).unwrap();
        encoder.finish().unwrap()
    };
    let bzip2 = {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        std::io::Write::write_all(&mut encoder, &text).unwrap();
        encoder.finish().unwrap()
    };
    let zstd = zstd::encode_all(&text[..], 3).unwrap();
    // The contents determine the compression, not the name.
    for (name, bytes) in [("gz", gzip), ("bz2", bzip2), ("zst", zstd)] {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let output = dir.path().join("out.osm.pbf");
        run_ok(&[&"apply-changes", &base, &path, &"-O", &"-o", &output]);
        assert_eq!(decode::objects(&output).len(), 34, "{name}");
    }
}

#[test]
fn a_format_of_changes_is_not_that_of_the_base() {
    let dir = tempfile::tempdir().unwrap();
    let [base, changes, history] = ["base.opl", "c.osc", "h"].map(|name| dir.path().join(name));
    std::fs::write(&base, "n1 v1 dV T x1 y1\nn2 v1 dV T x2 y2\n").unwrap();
    std::fs::write(&history, "n1 v1 dV T x1 y1\nn1 v2 dV T x2 y2\n").unwrap();
    let text = "<osmChange version='0.6'><delete><node id='1' version='3'/></delete></osmChange>";
    std::fs::write(&changes, text).unwrap();
    for format in ["osc", "osc.gz", "osc.pbf", "osc.opl", "osc.xml", "o5c"] {
        let args: [Arg; 7] = [
            &"apply-changes",
            &"-F",
            &format,
            &base,
            &changes,
            &"-f",
            &"opl",
        ];
        let refused = ask(&args);
        assert_eq!(refused.status, 2, "{format}: {refused:?}");
        assert!(
            refused.stderr.contains("--change-file-format gives"),
            "{format}: {refused:?}"
        );
        // osmium takes these formats for those of files with several versions.
        let second = ask(&[&[&"osmium" as Arg][..], &args].concat());
        assert_eq!(second.status, 2, "{format}: {second:?}");
        let refused = ask(&[&"augmented-diff", &"-F", &format, &base, &changes]);
        assert_eq!(refused.status, 2, "{format}: {refused:?}");
        assert!(refused.stderr.contains("not a change file"), "{refused:?}");
    }
    for format in ["opl", "osm.opl"] {
        let args: [Arg; 7] = [
            &"apply-changes",
            &"-F",
            &format,
            &base,
            &changes,
            &"-f",
            &"opl",
        ];
        let applied = ask(&args);
        assert!(applied.stdout.starts_with("n2 v1"), "{applied:?}");
    }
    // -F says that a base is a history, as its name does.
    let args: [Arg; 7] = [
        &"apply-changes",
        &"-F",
        &"osh.opl",
        &history,
        &changes,
        &"-f",
        &"osh.opl",
    ];
    for args in [args.to_vec(), [&[&"osmium" as Arg][..], &args].concat()] {
        let applied = ask(&args);
        assert_eq!(applied.stdout.lines().count(), 3, "{applied:?}");
    }
}
