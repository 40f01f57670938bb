//! Reading and writing OSM XML and OPL.

use crate::common;
use crate::common::answers::{ask, file_of, history_of};
use crate::common::oracle::osmium;
use crate::common::{
    Arg, Kind, Object, craft, decode, every, in_turn, is_long, known, mixed_objects, node, pbfhogg,
    relation, run_fail, run_ok, way, with_metadata, world,
};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The text to which `cat` converts a file.
fn told(input: &Path, format: &str) -> String {
    let output = pbfhogg()
        .args(["cat", "-q", "-f", format, "-o", "-"])
        .arg(input)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Writes a text file and returns its path.
fn text_file(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Converts a file to text formats and back, and compares its objects.
fn assert_round_trip(input: &Path, objects: &[Object], dir: &Path) {
    for name in ["t.opl", "t.osm", "t.opl.gz", "t.osm.zst", "t.osh.bz2"] {
        let (text, back) = (dir.join(name), dir.join("back.osm.pbf"));
        run_ok(&[&"cat", &"-O", &input, &"-o", &text]);
        run_ok(&[&"cat", &"-O", &text, &"-o", &back]);
        let found = decode::objects(&back);
        let differs = found
            .iter()
            .zip(objects)
            .find(|(found, object)| found != object);
        assert_eq!(differs, None, "{} {name}", input.display());
        assert_eq!(found.len(), objects.len(), "{} {name}", input.display());
    }
}

/// Strings with characters that need escaping in one of the formats.
fn strange_strings() -> Vec<String> {
    let codes = (1..0x100).chain([
        0x5ff, 0x600, 0xfff, 0xfeff, 0xfffd, 0xfffe, 0x1f600, 0x10ffff,
    ]);
    let chars = codes.filter_map(char::from_u32);
    let all: String = chars.clone().collect();
    let each = chars.map(|char| format!("{char}"));
    let others = [
        "\r\n", " a  b ", "&amp;", "%20%", "]]>", "<!--", "a,b=c@d", "  ", "\n\n\t",
    ];
    each.chain([all]).chain(others.map(String::from)).collect()
}

fn strange_objects() -> Vec<Object> {
    let mut objects = known(mixed_objects());
    let deleted = |object: Object| Object {
        visible: false,
        lat_nano: i64::from(i32::MAX) * 100,
        lon_nano: i64::from(i32::MAX) * 100,
        ..object
    };
    objects.extend(mixed_objects());
    objects.push(with_metadata(
        deleted(node(70, 0, 0, &[])),
        9,
        60,
        5,
        "gone",
    ));
    for (index, text) in strange_strings().into_iter().enumerate() {
        let id = 1000 + index as i64;
        objects.push(node(id, id, -id, &[(&text, "v"), ("k", &text)]));
        objects.push(relation(
            id,
            &[(Kind::Way, -1, &text), (Kind::Node, id, &text)],
            &[],
        ));
        let named = way(id, &[id, id], &[]);
        objects.push(with_metadata(named, 1, 1_600_000_000, 4, &text));
    }
    objects
}

#[test]
fn strange_strings_ids_places_and_metadata_survive_both_formats() {
    let dir = tempfile::tempdir().unwrap();
    let objects = strange_objects();
    let input = history_of(dir.path(), "in.osh.pbf", &[&objects]);
    assert_round_trip(&input, &objects, dir.path());
    let back = decode::header(&dir.path().join("back.osm.pbf"));
    assert!(
        back.required.contains(&"HistoricalInformation".into()),
        "{back:?}"
    );
}

#[test]
fn every_subset_of_the_metadata_survives_both_formats() {
    let dir = tempfile::tempdir().unwrap();
    let full = file_of(dir.path(), "full.osm.pbf", &[&known(mixed_objects())]);
    for without in [
        "version",
        "timestamp,uid",
        "user,changeset",
        "version,timestamp,changeset,uid,user",
    ] {
        let input = dir.path().join("clean.osm.pbf");
        run_ok(&[&"cat", &"-O", &"-c", &without, &full, &"-o", &input]);
        assert_round_trip(&input, &decode::objects(&input), dir.path());
    }
}

#[test]
fn large_texts_are_cut_into_portions_and_nothing_is_lost_between_them() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), if is_long() { "60000" } else { "30000" });
    let objects = decode::objects(&input);
    assert_round_trip(&input, &objects, dir.path());
    let (one, many) = (dir.path().join("1.osm.pbf"), dir.path().join("4.osm.pbf"));
    let text = dir.path().join("t.osm.zst");
    for (output, jobs) in [(&one, "1"), (&many, "4")] {
        run_ok(&[&"cat", &"-j", &jobs, &text, &"-o", output]);
    }
    assert!(std::fs::read(&one).unwrap() == std::fs::read(&many).unwrap());
    let blocks = decode::blocks(&one);
    // Blocks have the usual number of objects.
    assert!(
        blocks.iter().filter(|block| block.1 < 8000).count() <= 3,
        "{blocks:?}"
    );
    for format in ["osm.gz", "opl.zst"] {
        let texts = [1, 4].map(|jobs: u8| {
            let path = dir.path().join(format!("{jobs}.{format}"));
            run_ok(&[&"cat", &"-j", &jobs.to_string(), &input, &"-o", &path]);
            std::fs::read(path).unwrap()
        });
        assert!(texts[0] == texts[1], "{format}");
    }
}

#[test]
fn text_is_read_by_other_programs_compressed_or_not() {
    if !osmium() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), if is_long() { "30000" } else { "10000" });
    let expected = told(&input, "opl");
    for name in [
        "a.osm",
        "a.osm.gz",
        "a.osm.bz2",
        "a.opl",
        "a.opl.gz",
        "a.opl.bz2",
    ] {
        let text = dir.path().join(name);
        run_ok(&[&"cat", &input, &"-o", &text]);
        let read = Command::new("osmium")
            .args(["cat", "--no-progress", "-f", "opl"])
            .arg(&text)
            .output();
        let read = read.unwrap();
        assert!(read.status.success(), "{name}");
        assert!(
            String::from_utf8(read.stdout).unwrap() == expected,
            "{name}"
        );
    }
    let zst = dir.path().join("a.opl.zst");
    run_ok(&[&"cat", &input, &"-o", &zst]);
    let text = zstd::decode_all(std::fs::File::open(zst).unwrap()).unwrap();
    assert!(text == expected.as_bytes());
}

const BY_HAND: &str = "<osm version='0.6' generator='hand'>
  <bounds minlat='1' minlon='2' maxlat='3' maxlon='4'/>
  <node id='1' lat='1.5' lon='2.5'/><node id='2' lat='1.6' lon='2.6'><tag k='amenity' v='pub'/></node>
  <node id='3' lat='1.7' lon='2.7'/>
  <way id='4'><nd ref='1'/><nd ref='2'/><tag k='highway' v='path'/></way>
  <relation id='5'><member type='way' ref='4' role='x'/><tag k='type' v='site'/></relation>
</osm>";

#[test]
fn every_command_takes_text() {
    let dir = tempfile::tempdir().unwrap();
    let pbf = dir.path().join("hand.osm.pbf");
    let osm = text_file(dir.path(), "hand.osm", BY_HAND);
    run_ok(&[&"cat", &osm, &"-o", &pbf]);
    let header = decode::header(&pbf);
    assert_eq!(
        header.bbox,
        Some([2, 4, 3, 1].map(|degree| degree * 1_000_000_000))
    );
    assert!(header.optional.contains(&"Sort.Type_then_ID".into()));
    let inspected = ask(&[&"inspect", &"--json", &osm]).json();
    assert_eq!(inspected["bytes"], BY_HAND.len());
    assert_eq!(inspected["indexed"], false);
    let (gz, opl) = (dir.path().join("hand.osm.gz"), dir.path().join("hand.opl"));
    run_ok(&[&"cat", &pbf, &"-o", &gz]);
    run_ok(&[&"cat", &pbf, &"-o", &opl]);
    let changes = text_file(
        dir.path(),
        "day.osc",
        "<osmChange version='0.6'><modify><node id='1' version='2' lat='9' lon='9'/></modify></osmChange>",
    );
    let out = dir.path().join("out");
    let texts = [&osm, &gz, &opl];
    for text in texts {
        for line in every::lines(&["text"]) {
            let outputs = [&pbf, text].map(|input| {
                let values: [(&str, &Path); 4] = [
                    ("{in}", input),
                    ("{other}", &pbf),
                    ("{day}", &changes),
                    ("{out}", &out),
                ];
                let arguments = every::arguments(line, &values);
                let mut arguments: Vec<Arg> = arguments.iter().map(|word| word as Arg).collect();
                arguments.push(&"-O");
                run_ok(&arguments);
                decode::objects(&dir.path().join("out.osm.pbf"))
            });
            assert!(outputs[0] == outputs[1] && !outputs[0].is_empty(), "{line}");
        }
        for args in [
            vec!["inspect", "--json", "-e"],
            vec!["inspect", "tags"],
            vec!["check"],
            vec!["show"],
        ] {
            let answers = [&pbf, text].map(|input| {
                let mut args: Vec<&dyn AsRef<std::ffi::OsStr>> = args
                    .iter()
                    .map(|arg| arg as &dyn AsRef<std::ffi::OsStr>)
                    .collect();
                args.push(input);
                if args[0].as_ref() == "show" {
                    args.push(&"w4");
                }
                ask(&args).status
            });
            assert_eq!(answers, [0, 0], "{args:?}");
        }
        assert_eq!(ask(&[&"diff", &"-q", text, &pbf]).status, 0);
    }
    let output = pbfhogg().args(["check", "-v"]).arg(&osm).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("hand.osm: an OSM XML file is converted to a temporary PBF"),
        "{said}"
    );
}

#[test]
fn standard_input_may_be_text() {
    use std::io::Write;
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.osm.pbf");
    let mut command = pbfhogg();
    command.args(["cat", "-", "-o"]).arg(&output);
    let mut child = command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"# by hand\nn1 x1 y2 Ta=b\nw2 Nn1,n1\n")
        .unwrap();
    assert!(child.wait().unwrap().success());
    let expected = [
        node(1, 20_000_000, 10_000_000, &[("a", "b")]),
        way(2, &[1, 1], &[]),
    ];
    assert!(decode::objects(&output) == expected);
}

#[test]
fn new_blobs_of_converted_text_are_compressed_as_the_user_says() {
    let dir = tempfile::tempdir().unwrap();
    let osm = text_file(dir.path(), "hand.osm", BY_HAND);
    for (given, used) in [("zlib", "zlib"), ("zstd:3", "zstd")] {
        for command in ["cat", "sort", "removeid"] {
            let output = dir.path().join("out.osm.pbf");
            let mut args: Vec<&dyn AsRef<std::ffi::OsStr>> =
                vec![&command, &osm, &"-O", &"--compression", &given];
            if command == "removeid" {
                args.push(&"n3");
            }
            args.extend([&"-o" as &dyn AsRef<std::ffi::OsStr>, &output]);
            run_ok(&args);
            let compressions = decode::compressions(&output);
            let is_used = |compression: &&str| *compression == used;
            assert!(compressions.iter().all(is_used), "{command} {given}");
        }
    }
}

#[test]
fn broken_text_is_refused_with_line_and_column_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.osm.pbf");
    for (text, cause) in [
        (
            "n1 x1 y1\nq2 v1\n",
            "line 2, column 1: a line begins with n, w, r, c or #",
        ),
        (
            "n1 x1 y1\n\nn2 x1\n",
            "line 3, column 1: a node with only one of x and y",
        ),
        (
            "n1 v1x\n",
            "line 1, column 4: 'v1x': '1x' is not a number in range",
        ),
        (
            "n1 x1 y215\n",
            "line 1, column 7: '215' is beyond ±214.7483647 degrees",
        ),
        ("n1 dX\n", "'dX' is neither dV nor dD"),
        ("n1 Ta\n", "'a' is not a tag"),
        ("n1 Ta=%zz%\n", "% begins the number of a character"),
        ("n1 Nn1\n", "'Nn1' is not a field of a node"),
        ("w1 Nm1\n", "'m1' is not a node of a way"),
        ("r1 Mx1@\n", "'x1@' is not a member"),
        ("r1 Mn1\n", "'n1' is not a member"),
        ("n1 tyesterday\n", "'yesterday' is not a time"),
        ("n99999999999999999999 x1 y1\n", "is not a number in range"),
        (
            "<osm version='0.6'><node id='1' lat='1' lon='1'/>",
            "the document ends before </osm>",
        ),
        (
            "<osm version='0.6'>\n<node id='1' lat='x' lon='1'/></osm>",
            "line 2",
        ),
        ("<osm version='0.6'><way id='1'></node></osm>", "line 1"),
    ] {
        let input = text_file(dir.path(), "broken.txt", text);
        let message = run_fail(&[&"cat", &input, &"-o", &output]);
        assert!(
            message.contains("broken.txt: line") && message.contains(cause),
            "{text}: {message}"
        );
        let sorted = run_fail(&[&"sort", &input, &"-o", &output]);
        assert_eq!(sorted, message);
    }
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gz, BY_HAND.as_bytes()).unwrap();
    let bytes = gz.finish().unwrap();
    let input = dir.path().join("broken.txt");
    // In short runs, the text ends at every fourth byte.
    for len in in_turn(0, 4, 1..bytes.len()) {
        std::fs::write(&input, &bytes[..len]).unwrap();
        assert!(run_fail(&[&"cat", &input, &"-o", &output]).contains("broken.txt"));
    }
    for len in in_turn(0, 4, 0..BY_HAND.len()) {
        std::fs::write(&input, &BY_HAND[..len]).unwrap();
        assert!(run_fail(&[&"cat", &input, &"-o", &output]).contains("broken.txt"));
    }
    std::fs::remove_file(input).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn properties_that_text_cannot_hold_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let shape = craft::Shape {
        granularity: 1,
        ..craft::Shape::USUAL
    };
    let objects = [Object {
        lat_nano: 1_234_567_891,
        ..node(1, 0, 0, &[("bell", "\u{7}")])
    }];
    let input = common::answers::file_in_shape(dir.path(), "fine.osm.pbf", &[&objects], &shape);
    let output = pbfhogg()
        .args(["cat", "-f", "osm", "-o", "-"])
        .arg(&input)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("1 node has coordinates finer"), "{said}");
    assert!(said.contains("1 control character"), "{said}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("lat=\"1.2345679\"") && text.contains("&#x7;"),
        "{text}"
    );
}

#[test]
fn the_content_of_a_header_comes_through_xml() {
    let dir = tempfile::tempdir().unwrap();
    let input = text_file(dir.path(), "hand.osm", BY_HAND);
    let [said, text, back] =
        ["said.osm.pbf", "said.osm.zst", "back.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[
        &"cat",
        &input,
        &"--output-header",
        &"osmosis_replication_sequence_number=17",
        &"--output-header",
        &"osmosis_replication_timestamp=2026-11-20T00:00:00Z",
        &"--output-header",
        &"osmosis_replication_base_url=https://example.org/a&b",
        &"-o",
        &said,
    ]);
    run_ok(&[&"cat", &said, &"-o", &text]);
    run_ok(&[&"cat", &text, &"-o", &back]);
    let [said, back] = [&said, &back].map(|path| decode::header(path));
    assert_eq!(back.bbox, said.bbox);
    assert_eq!(back.replication_sequence, Some(17));
    assert_eq!(back.replication_timestamp, said.replication_timestamp);
    assert_eq!(
        back.replication_url.as_deref(),
        Some("https://example.org/a&b")
    );
}

#[test]
fn opl_without_objects_is_an_empty_file() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().join("base.opl");
    std::fs::write(&base, "n1 v1 dV c0 t i0 u T x1 y1\n").unwrap();
    let gzip = |text: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, text).unwrap();
        encoder.finish().unwrap()
    };
    let comments = [&b"# nothing\n"[..], b"#", b"# one\n\n#two\r\n"];
    let blank = [&b""[..], b"\n\n", b"\r\n"];
    let all = comments.iter().chain(&blank);
    for (number, text) in all.enumerate() {
        let is_said = number < comments.len();
        for (ending, bytes) in [("", text.to_vec()), (".gz", gzip(text))] {
            let named = dir.path().join(format!("{number}.opl{ending}"));
            let plain = dir.path().join(format!("{number}{ending}"));
            std::fs::write(&named, &bytes).unwrap();
            std::fs::write(&plain, &bytes).unwrap();
            let lines: [&[common::Arg]; 5] = [
                &[&"cat", &named, &"-f", &"opl"],
                &[&"cat", &"-F", &"opl", &plain, &"-f", &"opl"],
                &[&"inspect", &"--get", &"data.count.nodes", &named],
                &[&"osmium", &"cat", &named, &"-f", &"opl"],
                &[&"merge-changes", &named, &"-f", &"opl"],
            ];
            for args in lines {
                let answer = ask(args);
                assert_eq!(answer.status, 0, "{text:?}{ending}: {answer:?}");
                assert!(matches!(answer.stdout.trim(), "" | "0"), "{answer:?}");
            }
            let merged = ask(&[&"merge", &base, &named, &"-f", &"opl"]);
            assert_eq!(merged.stdout.lines().count(), 1, "{merged:?}");
            // Without a name, only comments tell that it is OPL.
            let unnamed = ask(&[&"cat", &plain, &"-f", &"opl"]);
            assert_eq!(
                unnamed.status == 0,
                is_said,
                "{text:?}{ending}: {unnamed:?}"
            );
            let mut stdin = pbfhogg();
            stdin.args(["cat", "-", "-f", "opl"]);
            stdin.stdin(std::fs::File::open(&named).unwrap());
            let output = stdin.output().unwrap();
            assert_eq!(output.status.success(), is_said, "{text:?}{ending}");
        }
    }
    let text = dir.path().join("text.opl");
    std::fs::write(&text, "# a list\nmilk\n").unwrap();
    assert_eq!(ask(&[&"cat", &text, &"-f", &"opl"]).status, 2);
}
