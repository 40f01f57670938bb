//! The table of ids of a file in a spatial layout: the same answers from fewer blobs.

use crate::common::oracle::real_file;
use crate::common::{Kind, Object, answers, decode, in_turn, is_long, pbfhogg, run_ok};
use std::path::{Path, PathBuf};

/// A real file whose ways have locations, in order; and the same in a spatial layout with small blobs.
fn files(name: &str, dir: &Path) -> [PathBuf; 2] {
    let input = real_file(name);
    let [located, spatial] = ["located.osm.pbf", "spatial.osm.pbf"].map(|name| dir.join(name));
    let add = "add-locations-to-ways";
    let sorted = dir.join("sorted.osm.pbf");
    run_ok(&[&"sort", &"-O", &input, &"-o", &sorted]);
    run_ok(&[&add, &"-O", &"-n", &sorted, &"-o", &located]);
    lay_out(&located, &spatial);
    [located, spatial]
}

fn lay_out(input: &Path, output: &Path) {
    let layout = ["repack", "-O", "--layout", "hilbert", "-n", "1000"];
    let mut command = pbfhogg();
    let run = command.args(layout).arg(input).arg("-o").arg(output);
    assert!(run.status().unwrap().success());
}

/// The id of an object as commands take it.
fn id(object: &Object) -> String {
    let kind = match object.kind {
        Kind::Node => 'n',
        Kind::Way => 'w',
        Kind::Relation => 'r',
    };
    format!("{kind}{}", object.id)
}

/// The objects that `getid` writes, in order, the number of blobs that it decoded, and its messages.
fn getid(input: &Path, args: &[&str], dir: &Path) -> (Vec<Object>, u64, String) {
    let [output, stats] = ["got.osm.pbf", "stats.json"].map(|name| dir.join(name));
    let mut command = pbfhogg();
    let run = command
        .args(["getid", "-O", "--stats"])
        .arg(&stats)
        .arg("-o")
        .arg(&output)
        .arg(input)
        .args(args)
        .output()
        .unwrap();
    let messages = String::from_utf8(run.stderr).unwrap();
    // The status is 1 if an id is missing.
    assert!(matches!(run.status.code(), Some(0 | 1)), "{messages}");
    let stats: serde_json::Value = serde_json::from_slice(&std::fs::read(stats).unwrap()).unwrap();
    let decoded = stats["blobs_decoded"].as_u64().unwrap();
    let objects = answers::in_order(decode::objects(&output));
    (objects, decoded, messages)
}

#[test]
fn objects_are_found_by_their_ids_in_few_blobs() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let name = if is_long() {
        "malta.osm.pbf"
    } else {
        "monaco.osm.pbf"
    };
    let [located, spatial] = files(name, dir);
    let objects = decode::objects(&located);
    let blobs = decode::frames(&spatial).len() as u64 - 1;
    let (mut decoded, mut asked) = (0, 0);
    let count = if is_long() { 30 } else { 8 };
    for number in 0..count {
        let object = &objects[number * 104_729 % objects.len()];
        let wanted = id(object);
        for options in in_turn(number, 2, [&[][..], &["-r"], &["--add-parents"]]) {
            let args = [options, &[wanted.as_str(), "n1", "w999999999999"]].concat();
            let (found, count, _) = getid(&spatial, &args, dir);
            let (expected, ..) = getid(&located, &args, dir);
            assert!(found == expected && found.contains(object), "{args:?}");
            if options.is_empty() {
                decoded += count;
                asked += 1;
            }
        }
    }
    assert!(
        decoded < asked * blobs / 3,
        "{decoded} of {blobs} blobs, {asked} times"
    );

    // All others; and many ids, of which some are not there.
    let wanted: Vec<String> = objects.iter().step_by(97).map(id).collect();
    let list = dir.join("ids");
    std::fs::write(&list, wanted.join("\n") + "\nn7\nr99999999999\n").unwrap();
    let list = list.to_str().unwrap();
    for args in [
        &["-i", list][..],
        &["--invert", "-i", list],
        &["-r", "-i", list],
        &["--invert", "n1", "w1", &wanted[0]],
    ] {
        let (found, ..) = getid(&spatial, args, dir);
        let (expected, ..) = getid(&located, args, dir);
        assert!(found == expected && !found.is_empty(), "{args:?}");
    }
    let show = |input: &Path| {
        let run = pbfhogg().arg("show").arg(input).args(&wanted[..9]).output();
        String::from_utf8(run.unwrap().stdout).unwrap()
    };
    let lines = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(show(&spatial)), lines(show(&located)));
    for filter in ["w/highway=primary", "r/type=multipolygon", "place"] {
        let of = |input: &Path| {
            let output = dir.join("filtered.osm.pbf");
            run_ok(&[&"tags-filter", &"-O", &input, &filter, &"-o", &output]);
            answers::in_order(decode::objects(&output))
        };
        assert!(of(&spatial) == of(&located), "{filter}");
    }
}

#[test]
fn ids_of_any_size_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let [input, located, spatial] =
        ["in.opl", "located.osm.pbf", "spatial.osm.pbf"].map(|name| dir.path().join(name));
    let (max, min) = (i64::MAX, i64::MIN + 1);
    let nodes = [0, -1, -70_000, min, 1, 2, 70_000, 1 << 40, max - 1, max];
    let mut opl = String::new();
    for (number, node) in nodes.iter().enumerate() {
        opl += &format!("n{node} v1 x{number} y{number}\n");
    }
    opl += &format!(
        "w-5 v1 Nn0,n{max}\nw7 v1 Nn1,n2\nw{max} v1\nr{min} v1 Mw7@\nr8 v1 Mr{min}@,w{max}@\n"
    );
    std::fs::write(&input, opl).unwrap();
    run_ok(&[&"sort", &input, &"-o", &located]);
    let again = dir.path().join("again.osm.pbf");
    run_ok(&[&"add-locations-to-ways", &"-n", &located, &"-o", &again]);
    lay_out(&again, &spatial);
    run_ok(&[&"check", &"--index", &spatial]);
    let objects = decode::objects(&again);
    assert_eq!(objects.len(), nodes.len() + 5);
    for object in &objects {
        let wanted = id(object);
        let (found, _, messages) = getid(&spatial, &["-r", "--", &wanted], dir.path());
        assert!(found.contains(object), "{wanted}: {messages}");
    }
}

/// The offsets in a file, from `start` to the table of contents, that are within text of a table of ids.
fn offsets_in_texts(bytes: &[u8], start: usize) -> Vec<usize> {
    let title = b"HOGG table of contents";
    let end = bytes.windows(title.len()).position(|text| text == title);
    let is_text = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let within = |at: &usize| bytes[at - 30..at + 30].iter().all(is_text);
    (start + 60..end.unwrap() - 40).filter(within).collect()
}

#[test]
fn a_damaged_table_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let [_, spatial] = files("monaco.osm.pbf", dir);
    let bytes = std::fs::read(&spatial).unwrap();
    let objects = decode::objects(&spatial);
    let wanted: Vec<&Object> = objects.iter().step_by(objects.len() / 9).collect();
    let ids: Vec<String> = wanted.iter().map(|object| id(object)).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let (expected, ..) = getid(&spatial, &ids, dir);
    let title = b"HOGG table of ids";
    let start = bytes.windows(title.len()).position(|text| text == title);
    let texts = offsets_in_texts(&bytes, start.unwrap());
    let damaged = dir.join("damaged.osm.pbf");
    let (mut warned, mut reported) = (0, 0_usize);
    let count = if is_long() { 40 } else { 12 };
    for number in 0..count {
        let mut copy = bytes.clone();
        copy[texts[texts.len() * number / count]] ^= 1;
        std::fs::write(&damaged, copy).unwrap();
        let (found, _, messages) = getid(&damaged, &ids, dir);
        assert!(found == expected, "{number}: {messages}");
        warned += usize::from(messages.contains("the table of ids cannot be read"));
        let check = pbfhogg().args(["check", "--index"]).arg(&damaged).output();
        reported += usize::from(check.unwrap().status.code() == Some(1));
        // A copy has the same objects, and a table only if it is sound.
        let copied = dir.join("copied.osm.pbf");
        for option in in_turn(number, 2, ["--verify", "--force"]) {
            run_ok(&[&"cat", &"-O", &option, &damaged, &"-o", &copied]);
            assert!(decode::objects(&copied) == objects);
            run_ok(&[&"check", &"--index", &copied]);
        }
    }
    assert!(
        2 * warned > count && reported == count,
        "{warned} {reported} of {count}"
    );

    // Without the table, the blobs that had it keep their boxes.
    let ways = dir.join("ways.osm.pbf");
    let located = dir.join("located.osm.pbf");
    run_ok(&[&"cat", &"-O", &"-t", &"node,way", &located, &"-o", &ways]);
    lay_out(&ways, &damaged);
    let mut copy = std::fs::read(&damaged).unwrap();
    let start = copy.windows(title.len()).position(|text| text == title);
    let texts_of_ways = offsets_in_texts(&copy, start.unwrap());
    copy[texts_of_ways[texts_of_ways.len() - 1]] ^= 1;
    std::fs::write(&damaged, copy).unwrap();
    let copied = dir.join("copied.osm.pbf");
    run_ok(&[&"cat", &"-O", &damaged, &"-o", &copied]);
    run_ok(&[&"check", &"--index", &copied]);

    // The user is told once, and what to do.
    std::fs::write(&damaged, {
        let mut copy = bytes.clone();
        copy[texts[texts.len() / 2]] ^= 1;
        copy
    })
    .unwrap();
    let output = dir.join("filtered.osm.pbf");
    let mut command = pbfhogg();
    let run = command.args(["tags-filter", "-O", "-o"]).arg(&output);
    let run = run.arg(&damaged).args(["r/type", "w/highway"]).output();
    let messages = String::from_utf8(run.unwrap().stderr).unwrap();
    assert_eq!(messages.matches("table of ids").count(), 1, "{messages}");
    assert!(messages.contains("repack --layout hilbert"), "{messages}");
    let check = pbfhogg().args(["check", "--index"]).arg(&damaged).output();
    let report = String::from_utf8(check.unwrap().stdout).unwrap();
    assert!(report.contains("1 difference; `pbfhogg sort`"), "{report}");
}

/// A table of version 1, which is in blobs without objects, is used; `cat` converts it.
#[test]
fn a_table_in_blobs_without_objects_is_read_and_rewritten() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let old = root.join("tests/fixtures/spatial-version-2.osm.pbf");
    let lone = decode::all_frames(&old)
        .into_iter()
        .skip(1)
        .filter(|frame| !decode::has_group(frame));
    assert_eq!(lone.count(), 5);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let objects = decode::objects(&old);
    let wanted: Vec<String> = objects.iter().step_by(90).map(id).collect();
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let (expected, decoded, messages) = getid(&old, &wanted, dir);
    assert!(expected.len() == wanted.len() && decoded < 15, "{messages}");
    run_ok(&[&"check", &"--index", &old]);
    let new = dir.join("new.osm.pbf");
    run_ok(&[&"cat", &old, &"-o", &new]);
    assert!(
        decode::all_frames(&new)
            .iter()
            .skip(1)
            .all(decode::has_group)
    );
    run_ok(&[&"check", &"--index", &new]);
    assert!(decode::objects(&new) == objects);
    let (found, in_new, _) = getid(&new, &wanted, dir);
    assert!(found == expected && in_new == decoded, "{in_new} {decoded}");
}

#[test]
fn only_a_copy_of_all_blobs_keeps_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let [_, spatial] = files("monaco.osm.pbf", dir);
    let has_table = |path: &Path| {
        let run = pbfhogg().args(["inspect", "--json"]).arg(path).output();
        let report: serde_json::Value = serde_json::from_slice(&run.unwrap().stdout).unwrap();
        report["id_table"].as_bool().unwrap()
    };
    assert!(has_table(&spatial));
    let output = dir.join("out.osm.pbf");
    let cat = |args: &[&str]| {
        let mut command = pbfhogg();
        let run = command.args(["cat", "-O"]).args(args).arg(&spatial);
        assert!(run.arg("-o").arg(&output).status().unwrap().success());
        run_ok(&[&"check", &"--index", &output]);
        has_table(&output)
    };
    assert!(cat(&[]));
    assert!(cat(&["--compression", "zstd"]));
    assert!(!cat(&["-t", "way"]));
    assert!(!cat(&["--clean", "version"]));
    assert!(!cat(&["-f", "pbf,add_metadata=false"]));
    assert!(!cat(&["-f", "pbf,locations_on_ways=false"]));
    assert!(!cat(&["--force"]));
    let spatial = spatial.to_str().unwrap();
    assert!(!cat(&[spatial]));

    // The second name leaves the locations of ways out.
    let mut osmium = pbfhogg();
    let run = osmium
        .args(["osmium", "cat", "-O", spatial, "-o"])
        .arg(&output);
    assert!(run.status().unwrap().success());
    run_ok(&[&"check", &"--index", &output]);
    assert!(!has_table(&output));

    // A stream: its header was written before its length was known.
    let stream = pbfhogg().args(["cat", spatial]).output().unwrap().stdout;
    std::fs::write(&output, stream).unwrap();
    assert!(has_table(&output));
    let (found, ..) = getid(&output, &["n1", "w4097656"], dir);
    let (expected, ..) = getid(Path::new(spatial), &["n1", "w4097656"], dir);
    assert!(found == expected && !found.is_empty());
}
