//! The table of contents and per-blob indexes: short headers, correct tables, detection of stale tables.

use crate::common;
use crate::common::answers::ask;
use crate::common::craft::{self, Shape};
use crate::common::oracle::{assert_same_opl, opl, osmium, real_file};
use crate::common::{Object, decode, node, run_fail, run_ok, way};
use std::path::{Path, PathBuf};

fn nodes(ids: std::ops::Range<i64>) -> Vec<Object> {
    ids.map(|id| node(id, id, -id, &[("k", "value")])).collect()
}

/// An indexed file of three blobs. They are uncompressed, so that blobs of equal shape have equal length.
fn indexed(dir: &Path) -> PathBuf {
    let (plain, indexed) = (dir.join("plain.osm.pbf"), dir.join("indexed.osm.pbf"));
    let ways: Vec<_> = (1..50).map(|id| way(id, &[id, id + 1], &[])).collect();
    let payloads = [nodes(101..151), nodes(201..251), ways]
        .map(|objects| craft::block(&objects, &Shape::USUAL));
    let mut file = craft::plain_file(&[]);
    for payload in &payloads {
        file.extend(craft::frame("OSMData", &craft::raw_blob(payload)));
    }
    std::fs::write(&plain, file).unwrap();
    run_ok(&[&"cat", &plain, &"-o", &indexed]);
    indexed
}

fn json(output: &std::process::Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn an_output_has_a_table_and_plain_blob_headers() {
    let input = real_file("malta.osm.pbf");
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.osm.pbf");
    run_ok(&[&"cat", &input, &"-o", &output]);
    assert!(decode::has_table(&output));
    let frames = decode::all_frames(&output);
    assert_eq!(
        frames[0].compression, "zlib",
        "some readers refuse a raw header"
    );
    assert!(
        frames
            .iter()
            .all(|frame| frame.header_len <= 20 && frame.indexdata.is_none())
    );
    run_ok(&[&"inspect", &"--indexed", &output]);
}

#[test]
fn an_unindexed_file_is_told_by_the_exit_status() {
    let input = real_file("malta.osm.pbf");
    let status = common::pbfhogg()
        .args(["inspect", "--indexed"])
        .arg(&input)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.osm.pbf");
    run_ok(&[&"cat", &"--no-index", &input, &"-o", &output]);
    assert!(decode::header(&output).toc.is_none());
}

#[test]
fn the_per_blob_index_says_what_is_in_each_blob() {
    let input = real_file("malta.osm.pbf");
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.osm.pbf");
    run_ok(&[&"cat", &"--blob-index", &input, &"-o", &output]);
    let frames = decode::frames(&output);
    for frame in &frames[1..] {
        assert!(frame.header_len < 32 * 1024);
        let objects = decode::block(&frame.payload);
        let Some(index) = &frame.indexdata else {
            assert!(
                objects.iter().any(|object| object.kind != objects[0].kind),
                "only mixed blobs have none"
            );
            continue;
        };
        assert_eq!(
            (index.len(), index[0], index[1]),
            (42, 2, objects[0].kind as u8)
        );
        let long = |at: usize| i64::from_le_bytes(index[at..at + 8].try_into().unwrap());
        let ids = || objects.iter().map(|object| object.id);
        assert_eq!(
            (long(2), long(10)),
            (ids().min().unwrap(), ids().max().unwrap())
        );
        assert_eq!(long(18), objects.len() as i64);
        if objects[0].kind == common::Kind::Node {
            let south = i32::from_le_bytes(index[26..30].try_into().unwrap());
            assert_eq!(
                Some(i64::from(south)),
                objects.iter().map(|node| node.lat_nano / 100).min()
            );
        }
    }
    if osmium() {
        assert_same_opl(&opl(&output), &opl(&input));
    }
}

#[test]
fn a_file_with_only_per_blob_indexes_is_planned_without_being_decoded() {
    let input = real_file("heidelberg.osm.pbf");
    let dir = tempfile::tempdir().unwrap();
    let [indexed, changes, output, stats] =
        ["i.osm.pbf", "a.osc", "o.osm.pbf", "s.json"].map(|name| dir.path().join(name));
    run_ok(&[
        &"cat",
        &"--blob-index",
        &"--no-index",
        &input,
        &"-o",
        &indexed,
    ]);
    let report = json(&run_ok(&[
        &"inspect", &"--json", &indexed, &"--stats", &stats,
    ]));
    let stats_of = |path: &Path| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    // One blob is decoded to guess the compression level.
    assert_eq!(
        (&report["index"], &stats_of(&stats)["blobs_decoded"]),
        (&"per-blob indexes".into(), &1.into())
    );
    std::fs::write(
        &changes,
        "<osmChange version='0.6'><create><node id='1' lat='1' lon='1'/></create></osmChange>",
    )
    .unwrap();
    run_ok(&[
        &"apply-changes",
        &indexed,
        &changes,
        &"-o",
        &output,
        &"--stats",
        &stats,
    ]);
    assert!(stats_of(&stats)["blobs_decoded"].as_u64().unwrap() <= 1);
    assert_eq!(
        decode::objects(&output).len(),
        decode::objects(&input).len() + 1
    );
}

#[test]
fn a_truncated_indexed_file_is_an_error_in_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let path = indexed(dir.path());
    let bytes = std::fs::read(&path).unwrap();
    let frames = decode::frames(&path);
    let output = dir.path().join("out.osm.pbf");
    // Within a blob, and between two blobs, where only the table of contents reveals the missing part.
    for cut in [bytes.len() - 1, frames[3].offset as usize] {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        for command in ["cat", "sort"] {
            let message = run_fail(&[&command, &path, &"-o", &output]);
            assert!(
                message.contains("truncated") && message.contains("indexed.osm.pbf"),
                "{message}"
            );
        }
        run_fail(&[&"inspect", &path]);
        assert!(!output.exists());
    }
}

#[test]
fn a_table_of_a_file_that_grew_is_ignored_with_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let path = indexed(dir.path());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend(craft::frame(
        "OSMData",
        &craft::zlib_blob(&craft::block(&[way(60, &[1], &[])], &Shape::USUAL)),
    ));
    std::fs::write(&path, bytes).unwrap();
    let output = run_ok(&[&"inspect", &"--json", &path]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("stale"));
    assert_eq!(json(&output)["objects"], 150);
}

#[test]
fn a_blob_that_was_replaced_in_place_is_found_out_when_it_is_decoded() {
    let dir = tempfile::tempdir().unwrap();
    let path = indexed(dir.path());
    let frames = decode::frames(&path);
    let mut bytes = std::fs::read(&path).unwrap();
    let other = craft::frame(
        "OSMData",
        &craft::raw_blob(&craft::block(&nodes(102..152), &Shape::USUAL)),
    );
    let start = frames[1].offset as usize;
    assert_eq!(other.len(), frames[1].frame_len);
    bytes[start..start + other.len()].copy_from_slice(&other);
    std::fs::write(&path, bytes).unwrap();
    let changes = dir.path().join("a.osc");
    std::fs::write(
        &changes,
        "<osmChange version='0.6'><delete><node id='120'/></delete></osmChange>",
    )
    .unwrap();
    let output = dir.path().join("out.osm.pbf");
    let message = run_fail(&[&"apply-changes", &path, &changes, &"-o", &output]);
    assert!(
        message.contains("blob 1 at byte") && message.contains("cat --force"),
        "{message}"
    );
    assert!(!output.exists());
    // The advice in the message helps.
    let rebuilt = dir.path().join("rebuilt.osm.pbf");
    run_ok(&[&"cat", &"--force", &path, &"-o", &rebuilt]);
    run_ok(&[&"apply-changes", &rebuilt, &changes, &"-o", &output]);
    assert_eq!(decode::objects(&output).len(), 148);
}

#[test]
fn a_per_blob_index_that_lies_is_found_out_before_a_change_is_misplaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lying.osm.pbf");
    let mut index = vec![2u8, 0];
    [101i64, 120, 50]
        .iter()
        .for_each(|value| index.extend(value.to_le_bytes()));
    index.extend([0; 16]);
    let payload = craft::block(&nodes(101..151), &Shape::USUAL);
    let header = craft::header_payload(&["OsmSchema-V0.6", "DenseNodes"], &["Sort.Type_then_ID"]);
    let mut file = craft::file(header, &[]);
    file.extend(craft::frame_with_index(
        "OSMData",
        &index,
        &craft::zlib_blob(&payload),
    ));
    std::fs::write(&path, file).unwrap();
    let changes = dir.path().join("a.osc");
    std::fs::write(
        &changes,
        "<osmChange version='0.6'><delete><node id='110'/></delete></osmChange>",
    )
    .unwrap();
    let output = dir.path().join("out.osm.pbf");
    let message = run_fail(&[&"apply-changes", &path, &changes, &"-o", &output]);
    assert!(message.contains("the range of ids differs"), "{message}");
}

#[test]
fn other_programs_read_files_with_few_and_many_blobs() {
    let dir = tempfile::tempdir().unwrap();
    let (world, output) = (dir.path().join("w.osm.pbf"), dir.path().join("o.osm.pbf"));
    run_ok(&[&"synth", &"--objects", &"40000", &"-o", &world]);
    let many: Vec<_> = (0..3000)
        .map(|id| craft::block(&nodes(id * 3 + 1..id * 3 + 2), &Shape::USUAL))
        .collect();
    let tiny = dir.path().join("t.osm.pbf");
    std::fs::write(&tiny, craft::plain_file(&many)).unwrap();
    for (input, command) in [(&world, "cat"), (&world, "sort"), (&tiny, "cat")] {
        run_ok(&[&command, &input, &"-O", &"-o", &output]);
        if osmium() {
            assert_same_opl(&opl(&output), &opl(input));
        }
    }
}

#[test]
fn a_table_tells_of_every_blob_however_many_there_are() {
    let dir = tempfile::tempdir().unwrap();
    let (plain, output, again) = (
        dir.path().join("p.osm.pbf"),
        dir.path().join("o.osm.pbf"),
        dir.path().join("a.osm.pbf"),
    );
    // Large blobs first, then thousands of tiny ones.
    let large: Vec<_> = (0..70)
        .map(|blob| craft::block(&nodes(blob * 3000 + 1..blob * 3000 + 2900), &Shape::USUAL))
        .collect();
    let tiny = (0..9000).map(|id| {
        craft::block(
            &nodes(300_000 + id * 3..300_000 + id * 3 + 1),
            &Shape::USUAL,
        )
    });
    let blocks: Vec<_> = large.into_iter().chain(tiny).collect();
    std::fs::write(&plain, craft::plain_file(&blocks)).unwrap();
    run_ok(&[&"cat", &plain, &"-o", &output]);
    let stats = dir.path().join("s.json");
    let report = json(&run_ok(&[
        &"inspect", &"--json", &output, &"--stats", &stats,
    ]));
    assert_eq!(
        (&report["blobs"], &report["sorted"], &report["index"]),
        (&9070.into(), &true.into(), &"table of contents".into())
    );
    let objects = decode::objects(&plain);
    assert_eq!(report["objects"], objects.len());
    assert!(decode::objects(&output) == objects);
    run_ok(&[&"sort", &output, &"-o", &again, &"--stats", &stats]);
    assert!(decode::objects(&again) == objects);
    let changes = dir.path().join("a.osc");
    std::fs::write(
        &changes,
        "<osmChange version='0.6'><delete><node id='300003'/><node id='7'/></delete></osmChange>",
    )
    .unwrap();
    run_ok(&[
        &"apply-changes",
        &output,
        &changes,
        &"-O",
        &"-o",
        &again,
        &"--stats",
        &stats,
    ]);
    let expected: Vec<_> = objects
        .into_iter()
        .filter(|object| object.id != 300_003 && object.id != 7)
        .collect();
    assert!(decode::objects(&again) == expected);
}

/// A table of version 1, which is in the header, is used; `cat` converts it.
#[test]
fn a_table_of_version_1_is_read_and_rewritten() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let old = root.join("tests/fixtures/table-version-1.osm.pbf");
    assert!(decode::header(&old).toc.unwrap().len() > 100 && !decode::has_table(&old));
    run_ok(&[&"inspect", &"--indexed", &old]);
    let dir = tempfile::tempdir().unwrap();
    let [new, stats, cut] =
        ["new.osm.pbf", "s.json", "cut.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[&"cat", &old, &"-o", &new, &"--stats", &stats]);
    let stats: serde_json::Value = serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
    // The last blob gets the table.
    assert_eq!(stats["blobs_decoded"], 1);
    assert!(decode::header(&new).toc.unwrap().len() < 100 && decode::has_table(&new));
    assert!(decode::objects(&new) == decode::objects(&old));
    assert_eq!(ask(&[&"check", &"--index", &new]).status, 0);
    // The length of the file is checked for version 1, too.
    let bytes = std::fs::read(&old).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() - 1]).unwrap();
    assert!(run_fail(&[&"inspect", &cut]).contains("truncated"));
}

#[test]
fn a_stream_is_complete_and_has_a_table_at_its_end() {
    let input = real_file("monaco.osm.pbf");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("stream.osm.pbf");
    let output = run_ok(&[&"sort", &input, &"-o", &"-"]).stdout;
    std::fs::write(&path, &output).unwrap();
    assert!(decode::has_table(&path));
    assert!(decode::objects(&path) == decode::objects(&input));
    run_ok(&[&"inspect", &"--indexed", &path]);
    assert_eq!(ask(&[&"check", &"--index", &path]).status, 0);
    let plain = run_ok(&[&"sort", &input, &"--no-index", &"-o", &"-"]).stdout;
    std::fs::write(&path, plain).unwrap();
    assert!(!decode::has_table(&path));
    assert_eq!(ask(&[&"inspect", &"--indexed", &path]).status, 1);
}

#[test]
fn a_stream_that_was_cut_off_or_appended_to_is_told_from_a_whole_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = indexed(dir.path());
    let stream = run_ok(&[&"cat", &path, &"-o", &"-"]).stdout;
    std::fs::write(&path, &stream).unwrap();
    let frames = decode::all_frames(&path);
    for frame in &frames[1..] {
        let cut = frame.offset as usize;
        std::fs::write(&path, &stream[..cut]).unwrap();
        let message = run_fail(&[&"inspect", &path]);
        assert!(message.contains("truncated"), "{message}");
        std::fs::write(&path, &stream[..cut + 5]).unwrap();
        run_fail(&[&"inspect", &path]);
    }
    let more = craft::block(&[way(60, &[1], &[])], &Shape::USUAL);
    let mut longer = stream;
    longer.extend(craft::frame("OSMData", &craft::zlib_blob(&more)));
    std::fs::write(&path, longer).unwrap();
    let output = run_ok(&[&"inspect", &"--json", &path]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("stale"));
    assert_eq!(json(&output)["objects"], 150);
    // The stale table is not copied as data.
    let whole = dir.path().join("whole.osm.pbf");
    run_ok(&[&"cat", &path, &"-o", &whole]);
    assert_eq!(decode::table_frames(&whole).len(), 1);
    assert!(decode::has_table(&whole) && decode::objects(&whole).len() == 150);
}

#[test]
fn a_stream_declares_what_it_may_hold_and_no_order_that_was_not_verified() {
    let dir = tempfile::tempdir().unwrap();
    let plain = Shape {
        dense: false,
        ..Shape::USUAL
    };
    let blocks = [
        craft::block(&nodes(200..250), &plain),
        craft::block(&nodes(100..150), &plain),
    ];
    let header = craft::header_payload(&["OsmSchema-V0.6"], &["Sort.Type_then_ID"]);
    let (input, stream) = (
        dir.path().join("in.osm.pbf"),
        dir.path().join("stream.osm.pbf"),
    );
    std::fs::write(&input, craft::file(header, &blocks)).unwrap();
    std::fs::write(&stream, run_ok(&[&"cat", &input, &"-o", &"-"]).stdout).unwrap();
    assert!(
        !decode::header(&stream)
            .optional
            .contains(&"Sort.Type_then_ID".to_owned())
    );
    std::fs::write(&stream, run_ok(&[&"sort", &input, &"-o", &"-"]).stdout).unwrap();
    let header = decode::header(&stream);
    assert!(header.required.contains(&"DenseNodes".to_owned()));
    assert!(header.optional.contains(&"Sort.Type_then_ID".to_owned()));
}

#[test]
fn inspect_counts_kinds_in_blobs_of_several_kinds() {
    let input = real_file("malta.osm.pbf");
    for (key, count) in [
        ("data.count.nodes", "252937"),
        ("data.count.ways", "40028"),
        ("data.count.relations", "527"),
    ] {
        assert_eq!(
            String::from_utf8(run_ok(&[&"inspect", &"-g", &key, &input]).stdout)
                .unwrap()
                .trim(),
            count
        );
    }
}

#[test]
fn a_damaged_table_is_not_used_and_the_data_in_front_of_it_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = indexed(dir.path());
    let whole = std::fs::read(&path).unwrap();
    let table = decode::table_frames(&path).remove(0).offset as usize;
    let objects = decode::objects(&path);
    let output = dir.path().join("out.osm.pbf");
    // Damage to the objects, which stand before the text of the table and behind it, is an error. So is damage to the
    // description of the table, and to what shows where the strings begin and end.
    let find = |text: &[u8]| {
        let found = whole.windows(text.len()).rposition(|window| window == text);
        found.unwrap()
    };
    let text = find(b"SE9HR")..find(b"HOGG table of contents at byte ") + 51;
    for byte in (table..whole.len())
        .step_by(29)
        .chain(table..table + 70)
        .chain(whole.len() - 3..whole.len())
    {
        let mut damaged = whole.clone();
        damaged[byte] ^= 1;
        std::fs::write(&path, damaged).unwrap();
        if !text.contains(&byte) && ask(&[&"cat", &path, &"-O", &"-o", &output]).status == 2 {
            continue;
        }
        let ran = run_ok(&[&"cat", &path, &"-O", &"-o", &output]);
        let warning = String::from_utf8_lossy(&ran.stderr).into_owned();
        let expected = "the table of contents cannot be read";
        assert!(warning.contains(expected), "byte {byte}: {warning}");
        assert!(decode::objects(&output) == objects && decode::has_table(&output));
        assert_eq!(ask(&[&"check", &"--index", &path]).status, 1, "byte {byte}");
    }
}

/// Another program joined the streams: the trailer of the second one has an offset in that stream.
#[test]
fn streams_one_behind_the_other_are_told_and_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let world = common::world(dir.path(), "30000");
    let small = indexed(dir.path());
    let [one, two] = [&world, &small].map(|path| run_ok(&[&"cat", path, &"-o", &"-"]).stdout);
    let (joined, output) = (dir.path().join("j.osm.pbf"), dir.path().join("o.osm.pbf"));
    for (first, second) in [(&one, &two), (&two, &one), (&two, &two)] {
        std::fs::write(&joined, [first.as_slice(), second].concat()).unwrap();
        for command in ["cat", "sort", "inspect"] {
            let mut args: Vec<common::Arg> = vec![&command, &joined];
            if command != "inspect" {
                args.extend([&"-o" as common::Arg, &output]);
            }
            let message = run_fail(&args);
            assert!(message.contains("a second OSMHeader"), "{message}");
        }
    }
    // A wrong offset in the trailer does not lose data.
    let objects = decode::objects(&small);
    let trailer = b"HOGG table of contents at byte ";
    let trailer_at = two
        .windows(trailer.len())
        .rposition(|window| window == trailer);
    let digits = trailer_at.unwrap() + trailer.len();
    for digit in digits..digits + 20 {
        let mut wrong = two.clone();
        wrong[digit] = if wrong[digit] == b'1' { b'2' } else { b'1' };
        std::fs::write(&joined, wrong).unwrap();
        run_ok(&[&"cat", &joined, &"-O", &"-o", &output]);
        assert!(decode::objects(&output) == objects, "digit {digit}");
    }
}

#[test]
fn a_table_cannot_take_more_memory_than_the_file_has_bytes() {
    use pbfhogg::unstable::pbf::{HeaderBlock, TocPointer, header_frame, reserved_header_len};
    let dir = tempfile::tempdir().unwrap();
    let (path, stats) = (dir.path().join("bomb.osm.pbf"), dir.path().join("s.json"));
    // Strings that compress to a thousandth of their length, under the title of a table.
    let mut strings = vec![
        String::new(),
        "HOGG table of contents".into(),
        "version 2, part 1 of 40".into(),
    ];
    strings.extend(std::iter::repeat_n("A".repeat(1000), 20_000));
    let mut table = Vec::new();
    for string in &strings {
        pbfhogg::unstable::pbf::wire::put_bytes_field(&mut table, 1, string.as_bytes());
    }
    let mut payload = Vec::new();
    pbfhogg::unstable::pbf::wire::put_bytes_field(&mut payload, 1, &table);
    let frame = craft::frame("OSMData", &craft::zlib_blob(&payload));
    let header = HeaderBlock::default();
    let start = reserved_header_len(&header, None);
    let file_len = (start + frame.len() * 40) as u64;
    let pointer = TocPointer::At {
        start: start as u64,
        file_len,
    };
    let mut file = header_frame(&header, Some(pointer), None, start).unwrap();
    (0..40).for_each(|_| file.extend_from_slice(&frame));
    std::fs::write(&path, file).unwrap();
    run_ok(&[&"inspect", &"-j", &"1", &path, &"--stats", &stats]);
    let stats: serde_json::Value = serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
    assert!(
        stats["peak_memory_bytes"].as_u64().unwrap() < 200_000_000,
        "{stats}"
    );
}

#[test]
fn a_table_that_an_earlier_program_passed_on_is_no_data() {
    let dir = tempfile::tempdir().unwrap();
    let path = indexed(dir.path());
    // A program that supports only tables in the header copies every frame, including the table.
    let bytes = std::fs::read(&path).unwrap();
    let frames = decode::all_frames(&path);
    let mut passed_on = craft::plain_file(&[]);
    passed_on.extend(&bytes[frames[1].offset as usize..]);
    let (input, output) = (
        dir.path().join("in.osm.pbf"),
        dir.path().join("out.osm.pbf"),
    );
    std::fs::write(&input, passed_on).unwrap();
    run_ok(&[&"cat", &input, &"-o", &output]);
    assert_eq!(decode::table_frames(&output).len(), 1);
    assert!(decode::objects(&output) == decode::objects(&path));
    assert_eq!(ask(&[&"check", &"--index", &output]).status, 0);
}
