//! `repair` of damaged text: what stands before the damage is saved, and the loss is told.

use crate::common::answers::ask;
use crate::common::oracle::{osmconvert, osmconvert_to};
use crate::common::repaired::{repair, shown};
use crate::common::{Arg, Object, decode, run_ok};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;

const NODES: i64 = 60;
const WAYS: i64 = 20;

fn node_place(id: i64) -> (String, String) {
    (format!("{}.5", id % 80), format!("{}.25", id % 170))
}

/// Objects in OPL and in OSM XML, in order.
fn objects() -> Vec<[String; 2]> {
    let nodes = (1..=NODES).map(|id| {
        let (lat, lon) = node_place(id);
        [
            format!("n{id} v1 Tname=number%20%{id} x{lon} y{lat}\n"),
            format!(
                "<node id='{id}' version='1' lat='{lat}' lon='{lon}'>\
                 <tag k='name' v='number {id}'/></node>\n"
            ),
        ]
    });
    let ways = (1..=WAYS).map(|id| {
        let next = id + 1;
        [
            format!("w{id} v1 Thighway=path Nn{id},n{next}\n"),
            format!(
                "<way id='{id}' version='1'><nd ref='{id}'/><nd ref='{next}'/>\
                 <tag k='highway' v='path'/></way>\n"
            ),
        ]
    });
    nodes.chain(ways).collect()
}

/// A text, and the offset at which each of its objects ends.
fn text(form: usize) -> (String, Vec<usize>) {
    let (mut text, mut ends) = (String::new(), Vec::new());
    if form == 1 {
        text += "<?xml version='1.0' encoding='UTF-8'?>\n<osm version='0.6' generator='hand'>\n";
    }
    for object in objects() {
        text += &object[form];
        // An object of OPL ends with its line break.
        ends.push(text.len() - form);
    }
    if form == 1 {
        text += "</osm>\n";
    }
    (text, ends)
}

/// All objects, as the program reads them in the whole text.
fn all(dir: &Path) -> Vec<Object> {
    let [opl, pbf] = ["all.opl", "all.osm.pbf"].map(|name| dir.join(name));
    fs::write(&opl, text(0).0).unwrap();
    run_ok(&[&"cat", &"-O", &opl, &"-o", &pbf]);
    decode::objects(&pbf)
}

/// Expects that the first objects are saved, and that the report tells of the loss of the others.
fn assert_saved(path: &Path, all: &[Object], saved: usize) -> Value {
    let (found, report, status) = repair(path, &[]);
    assert_eq!(found.len(), saved, "{}: {report}", path.display());
    assert!(shown(&found) == shown(&all[..saved]), "{}", path.display());
    let lost = report["lost"].as_array().unwrap();
    assert_eq!((status, lost.len()), (1, 1), "{}: {report}", path.display());
    let ids = lost[0]["ids"].as_array().unwrap();
    let (kind, first) = if saved < NODES as usize {
        ("node", saved as i64 + 1)
    } else {
        ("way", saved as i64 - NODES + 1)
    };
    if saved != NODES as usize {
        assert_eq!(
            (&ids[0]["kind"], &ids[0]["first"]),
            (&kind.into(), &first.into())
        );
    }
    assert!(ids[0]["last"].is_null() && ids.iter().all(|ids| ids["is_exact"] == false));
    report
}

#[test]
fn text_that_is_cut_gives_the_objects_before_the_cut() {
    let dir = tempfile::tempdir().unwrap();
    let all = all(dir.path());
    let (osm, ends) = text(1);
    let path = dir.path().join("cut.osm");
    for cut in (ends[0]..osm.len() - 8).step_by(osm.len() / 7) {
        fs::write(&path, &osm.as_bytes()[..cut]).unwrap();
        let saved = ends.iter().filter(|end| **end <= cut).count();
        let report = assert_saved(&path, &all, saved);
        assert_eq!(report["text"], "osm");
        assert!(report["lost"][0]["offset"].as_u64().unwrap() <= cut as u64);
    }
    // A line of OPL that is cut is known by fields that are not whole.
    let (opl, _) = text(0);
    let path = dir.path().join("cut.opl");
    for (saved, field) in [(3, "x4.25"), (30, "%20"), (63, ",n")] {
        let lines = opl.split_inclusive('\n');
        let before: usize = lines.take(saved).map(str::len).sum();
        let cut = before + opl[before..].find(field).unwrap() + field.len();
        fs::write(&path, &opl.as_bytes()[..cut]).unwrap();
        let report = assert_saved(&path, &all, saved);
        assert_eq!(report["text"], "opl");
        assert_eq!(report["lost"][0]["offset"], before);
        assert_eq!(report["lost"][0]["bytes"], cut - before);
    }
}

#[test]
fn the_last_line_of_opl_needs_no_line_break() {
    let dir = tempfile::tempdir().unwrap();
    let all = all(dir.path());
    let (text, _) = text(0);
    let bytes = text.trim_end().as_bytes();
    for (name, content, is_plain) in [
        ("open.opl", bytes.to_vec(), true),
        (
            "open.opl.gz",
            gzip(bytes, flate2::Compression::fast()),
            false,
        ),
        ("ended.opl", text.clone().into_bytes(), false),
    ] {
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        let (found, report, status) = repair(&path, &[]);
        assert_eq!((status, report["lost"].as_array().unwrap().len()), (0, 0));
        assert!(shown(&found) == shown(&all), "{name}: {report}");
        assert_eq!(report["ends_within_line"], is_plain, "{name}");
        let answer = ask(&[&"repair", &path, &"--dry-run"]);
        assert_eq!(
            answer.stdout.contains("no line break"),
            is_plain,
            "{answer:?}"
        );
    }
}

/// Expects that what is lost of a text begins with `first`, and is all of the text from there on.
fn assert_lost_from(path: &Path, text: &[u8], first: &[u8]) {
    let mut places = text.windows(first.len());
    let start = places.position(|place| place == first).unwrap();
    let (_, report, status) = repair(path, &[]);
    let lost = report["lost"].as_array().unwrap();
    assert_eq!((status, lost.len()), (1, 1), "{report}");
    assert_eq!(lost[0]["offset"], start, "{}: {report}", path.display());
    assert_eq!(lost[0]["bytes"], text.len() - start, "{report}");
}

#[test]
fn the_bytes_of_an_object_that_is_not_whole_are_lost() {
    const NODE: &str = "<node id='1' version='1' lat='1' lon='1'/>";
    let dir = tempfile::tempdir().unwrap();
    let osm = |rest: &str| format!("\u{feff}<osm version='0.6'>\n{NODE}\n{rest}");
    let osc =
        |rest: &str| format!("<osmChange version='0.6'><create>{NODE}</create><delete>{rest}");
    let opl = |rest: &str| format!("n1 v1 x1 y1\n{rest}");
    for (name, text, first) in [
        (
            "a.osm",
            osm("<way id='2'><nd ref='1'/><tag k='a' v='b'/>"),
            "<way",
        ),
        ("b.osm", osm("<way id='2'><nd ref='1'/><tag k='a"), "<way"),
        (
            "c.osm",
            osm("<way id='2'><nd ref='x'/></way></osm>"),
            "<way",
        ),
        ("d.osm", osm("<way id='2' versi"), "<way"),
        (
            "e.osm",
            osm("<way id='2'><tag k='a' v='&nope;'/></way></osm>"),
            "<way",
        ),
        ("f.osm", osm("<way id='x'/></osm>"), "<way"),
        ("g.osm", osm("<way id='2'></node></osm>"), "<way"),
        (
            "h.osm",
            osm("<node id='2' lat='1' lon='1'/></way></osm>"),
            "</way",
        ),
        (
            "i.osc",
            osc("<way id='2' version='3'><nd ref='1'/>"),
            "<way",
        ),
        (
            "j.osc",
            osc("<way id='2' version='3'/></create></osmChange>"),
            "</create></osm",
        ),
        ("k.opl", opl("w2 v1 Nn1 Qa\nw3 v1 Nn1\n"), "w2"),
    ] {
        let path = dir.path().join(name);
        fs::write(&path, &text).unwrap();
        assert_lost_from(&path, text.as_bytes(), first.as_bytes());
    }
    // Bytes that are not UTF-8, within an object and behind one.
    let path = dir.path().join("l.osm");
    for (rest, first) in [
        (
            &b"<way id='2'><tag k='\xff' v='b'/></way></osm>"[..],
            &b"<way"[..],
        ),
        (b"<node id='2' lat='1' lon='1'/>z\xff</osm>", b"\xff"),
    ] {
        let text = [osm("").as_bytes(), rest].concat();
        fs::write(&path, &text).unwrap();
        assert_lost_from(&path, &text, first);
    }
}

#[test]
fn the_object_that_compressed_text_ends_in_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    for (name, form, first) in [("a.osm.gz", 1, "<node id='41'"), ("a.opl.gz", 0, "n41 ")] {
        let (text, ends) = text(form);
        let text = &text.as_bytes()[..ends[40] - 4];
        // Blocks are stored as they are, and so the text ends where the file does.
        let packed = gzip(text, flate2::Compression::none());
        let path = dir.path().join(name);
        fs::write(&path, &packed[..packed.len() - 8]).unwrap();
        assert_lost_from(&path, text, first.as_bytes());
    }
}

#[test]
fn text_behind_an_object_that_is_too_long_is_lost_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long.opl");
    let long = "x".repeat(25 << 20);
    let text = format!("n1 v1 x1 y1\nn2 v1 x1 y1 T{long}\nn3 v1 x1 y1\n");
    fs::write(&path, &text).unwrap();
    assert_lost_from(&path, text.as_bytes(), b"n2");
}

#[test]
fn damage_within_text_ends_what_is_saved() {
    let dir = tempfile::tempdir().unwrap();
    let all = all(dir.path());
    for (form, name) in [(0, "damaged.opl"), (1, "damaged.osm")] {
        let (text, ends) = text(form);
        let path = dir.path().join(name);
        for (number, damage) in [&b"\xff\xfe"[..], b"\0<\0", b"zzzzzzzzzzzzzzzzzz"]
            .into_iter()
            .enumerate()
        {
            let saved = 7 + 23 * number;
            let at = ends[saved - 1] + 2 + form;
            let mut bytes = text.clone().into_bytes();
            bytes.splice(at..at + damage.len(), damage.iter().copied());
            fs::write(&path, bytes).unwrap();
            assert_saved(&path, &all, saved);
        }
    }
}

fn gzip(bytes: &[u8], level: flate2::Compression) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn compressed_text_is_unpacked_up_to_the_damage() {
    let dir = tempfile::tempdir().unwrap();
    let all = all(dir.path());
    let (text, ends) = text(0);
    let bytes = text.as_bytes();
    let half = ends[all.len() / 2 - 1];
    let members = |pack: &dyn Fn(&[u8]) -> Vec<u8>| {
        let (mut whole, cut) = (pack(&bytes[..half]), pack(&bytes[half..]));
        whole.extend(&cut[..cut.len() - 12]);
        whole
    };
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
    let fast = flate2::Compression::fast();
    for (name, packed, compression) in [
        ("a.opl.bz2", members(&bzip2), "bzip2"),
        ("a.opl.zst", members(&zstd), "zstd"),
    ] {
        let path = dir.path().join(name);
        fs::write(&path, packed).unwrap();
        let report = assert_saved(&path, &all, all.len() / 2);
        assert_eq!(report["unpacked"], compression);
        let cause = report["lost"][0]["cause"].as_str().unwrap();
        assert!(
            cause.contains(&format!("the {compression} data")),
            "{cause}"
        );
    }
    // Of a member of gzip, all that was unpacked is read.
    let path = dir.path().join("a.opl.gz");
    let packed = gzip(bytes, flate2::Compression::none());
    fs::write(&path, &packed[..packed.len() / 2]).unwrap();
    let (found, report, status) = repair(&path, &[]);
    assert!(
        status == 1 && found.len() > 20 && found.len() < all.len(),
        "{report}"
    );
    assert!(shown(&found) == shown(&all[..found.len()]));
    // The text is whole, and the sum of the check at the end is not.
    let mut packed = gzip(bytes, fast);
    let sum = packed.len() - 7;
    packed[sum] ^= 1;
    fs::write(&path, &packed).unwrap();
    let (found, report, status) = repair(&path, &[]);
    assert_eq!((found.len(), status), (all.len(), 1));
    let cause = report["lost"][0]["cause"].as_str().unwrap();
    assert!(cause.contains("its checksum differs"), "{cause}");
}

#[test]
fn a_whole_file_that_cannot_be_decompressed_is_not_called_damaged() {
    let dir = tempfile::tempdir().unwrap();
    // A frame of zstd with a window of 2 GiB, a block of seven bytes, and no checksum.
    let frame = [&b"\x28\xb5\x2f\xfd\0\xa8\x39\0\0"[..], b"n1 x1y1"].concat();
    let path = dir.path().join("long.opl.zst");
    fs::write(&path, frame).unwrap();
    let commands: [&[Arg]; 2] = [
        &[&"cat", &path, &"-f", &"opl"],
        &[&"repair", &path, &"--dry-run"],
    ];
    for args in commands {
        let answer = ask(args);
        assert!(answer.status > 0, "{answer:?}");
        assert!(answer.stderr.contains("--long=31"), "{answer:?}");
        assert!(!answer.stderr.contains("damaged"), "{answer:?}");
    }
}

#[test]
fn what_is_lost_comes_from_another_file() {
    let dir = tempfile::tempdir().unwrap();
    let all = all(dir.path());
    let whole = dir.path().join("all.osm.pbf");
    let (text, ends) = text(1);
    let path = dir.path().join("cut.osm");
    fs::write(&path, &text.as_bytes()[..ends[40] + 9]).unwrap();
    let (found, report, _) = repair(&path, &[&"--from", &whole]);
    assert!(shown(&found) == shown(&all), "{report}");
    assert_eq!(report["from"]["objects"], all.len() - 41);
}

#[test]
fn whole_text_is_a_valid_file_of_all_objects() {
    let dir = tempfile::tempdir().unwrap();
    let all = all(dir.path());
    for (form, name) in [(0, "whole.opl"), (1, "whole.osm")] {
        let path = dir.path().join(name);
        fs::write(&path, text(form).0).unwrap();
        let (found, report, status) = repair(&path, &[]);
        assert_eq!(status, 0, "{report}");
        assert!(shown(&found) == shown(&all));
        assert!(report["lost"].as_array().unwrap().is_empty());
    }
}

#[test]
fn objects_of_text_that_other_programs_refuse_are_mended() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("odd.opl");
    let odd = "n1 v1 dV c5000000000 t2020-01-01T00:00:00Z i1 ua Tk=a,k=b,=c x1 y1\nn2 v1 x1 y95\n";
    fs::write(&path, odd).unwrap();
    let (found, report, status) = repair(&path, &[]);
    assert_eq!((status, found.len()), (1, 1), "{report}");
    let (node, changes) = (&found[0], &report["changes"]);
    assert_eq!(node.tags, [("k".to_owned(), "a".to_owned())]);
    assert_eq!((node.changeset, node.uid), (None, Some(1)));
    assert_eq!(
        (&changes["parts_dropped"], &changes["outside"]),
        (&3.into(), &1.into())
    );
    let answer = ask(&[&"repair", &path, &"--dry-run"]);
    assert!(
        answer.stdout.contains("1 node beyond the earth left out"),
        "{answer:?}"
    );
    fs::write(&path, "n2 v1 x1 y95\n").unwrap();
    let answer = ask(&[&"repair", &path, &"--dry-run"]);
    assert!(
        answer.status == 2 && answer.stderr.contains("no object in it"),
        "{answer:?}"
    );
}

#[test]
fn o5m_is_read_up_to_the_damage() {
    if !osmconvert() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let all = all(dir.path());
    let [pbf, path] = ["all.osm.pbf", "cut.o5m"].map(|name| dir.path().join(name));
    assert!(osmconvert_to(&[&pbf, &"--out-o5m"], &path));
    let bytes = fs::read(&path).unwrap();
    for cut in [bytes.len() / 3, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&path, &bytes[..cut]).unwrap();
        let (found, report, status) = repair(&path, &[]);
        assert_eq!((status, &report["text"]), (1, &"o5m".into()), "{report}");
        assert!(found.len() > 5 && shown(&found) == shown(&all[..found.len()]));
        // One cut of the three is before the mark of the end alone.
        assert_eq!(found.len() == all.len(), cut == bytes.len() - 1, "{report}");
        let lost = ["offset", "bytes"].map(|key| report["lost"][0][key].as_u64().unwrap());
        assert_eq!(lost[0] + lost[1], cut as u64, "{report}");
    }
    // All that is behind the damage is lost.
    let behind = vec![7_u8; 4 << 20];
    fs::write(&path, [&bytes[..], &behind].concat()).unwrap();
    let (found, report, _) = repair(&path, &[]);
    assert_eq!(found.len(), all.len());
    assert_eq!(report["lost"][0]["bytes"], behind.len(), "{report}");
}

#[test]
fn no_message_about_text_has_the_words_of_a_library() {
    let dir = tempfile::tempdir().unwrap();
    let (text, _) = text(1);
    let bytes = text.as_bytes();
    let fast = flate2::Compression::fast();
    let changed = |from: &str, to: &str| text.replacen(from, to, 1).into_bytes();
    let flipped = |mut packed: Vec<u8>| {
        let middle = packed.len() / 2;
        packed[middle] ^= 0xff;
        packed
    };
    let cut = |packed: Vec<u8>| packed[..packed.len() * 2 / 3].to_vec();
    let zstd = zstd::encode_all(bytes, 3).unwrap();
    let cases = [
        ("a.osm", cut(bytes.to_vec())),
        ("b.osm", changed("</way>", "</node>")),
        ("c.osm", changed("k='name'", "k='name' k='again'")),
        ("d.osm", changed("k='name'", "k=name")),
        ("e.osm", changed("number 7", "a &nope; b")),
        ("f.osm", changed("number 7", "a & b")),
        ("g.osm", changed("number 7", "&#xfffffff;")),
        ("h.osm", changed("<nd ref='7'", "<nd ref='7")),
        ("i.osm", changed("<nd ref='7'", "<!-- <nd ref='7'")),
        ("j.osm", changed("lat='7.5'", "lat=")),
        ("k.osm.gz", cut(gzip(bytes, fast))),
        ("l.osm.gz", flipped(gzip(bytes, fast))),
        ("m.osm.bz2", cut(bzip2(bytes))),
        ("n.osm.bz2", flipped(bzip2(bytes))),
        ("o.osm.zst", cut(zstd.clone())),
        ("p.osm.zst", flipped(zstd)),
        ("q.osm.gz", gzip(bytes, fast)[..8].to_vec()),
    ];
    for (name, content) in cases {
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        let commands: [&[Arg]; 2] = [
            &[&"cat", &path, &"-f", &"opl"],
            &[&"repair", &path, &"--dry-run"],
        ];
        for args in commands {
            let answer = ask(args);
            let said = answer.stderr
                + if args[0].as_ref() == "repair" {
                    &answer.stdout
                } else {
                    ""
                };
            for words in [
                "quick_xml",
                "quick-xml",
                "from_utf8",
                "read_exact",
                "fill whole buffer",
                "syntax error",
                "ill-formed",
                "deflate",
                "incomplete frame",
                "corrupt",
                "not finished",
                "EOF",
                "at range",
                "recovery",
                "position",
                "bzip2: ",
                "Data corruption",
            ] {
                assert!(!said.contains(words), "{name}: {said}");
            }
            assert!(answer.status > 0, "{name}: {said}");
            if ["k", "m", "o"].contains(&&name[..1]) && args[0].as_ref() == "cat" {
                assert!(said.contains("data ends early; fetch it again"), "{said}");
            }
        }
    }
}
