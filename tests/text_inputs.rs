//! Text inputs as other programs write them: servers and editors, other encodings, and compression with more than the text.

use crate::common::answers::{ask, file_of};
use crate::common::craft::Message;
use crate::common::{Arg, craft, decode, known, node, run_fail, run_ok, stderr, world};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes a file and returns its path.
fn file(dir: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, content).unwrap();
    path
}

/// OSM XML of version 0.6 with the given content.
fn osm(content: &str) -> String {
    format!("<?xml version='1.0' encoding='UTF-8'?>\n<osm version='0.6'>\n{content}\n</osm>\n")
}

/// The objects of a file as OPL.
fn opl(path: &Path) -> String {
    let shown = ask(&[&"cat", &path, &"-f", &"opl"]);
    assert_eq!((shown.status, shown.stderr.as_str()), (0, ""), "{path:?}");
    shown.stdout
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(content: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// Two nodes and a way, as the API answers; `version` is that of node 1.
fn as_the_api_answers(version: u32) -> String {
    osm(&format!(
        "<node id='1' visible='true' version='{version}' lat='1.5' lon='1.5'/>\
         <node id='2' version='2' lat='1.6' lon='1.6'/>\
         <way id='1' visible='true' version='1'><nd ref='1'/><nd ref='2'/><tag k='highway' v='path'/></way>"
    ))
}

/// Whether `inspect` calls a file a history file.
fn is_history(path: &Path) -> bool {
    let inspected = ask(&[&"inspect", &"--json", &path]);
    inspected.json()["history"].as_bool().unwrap()
}

#[test]
fn visible_objects_are_current_data_for_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (as_the_api_answers(2), as_the_api_answers(5));
    let old = file(dir.path(), "old.osm", old);
    let new = file(dir.path(), "new.osm", new);
    let change = file(
        dir.path(),
        "day.osc",
        "<osmChange version='0.6'><delete><node id='2' version='3'/></delete></osmChange>",
    );
    let out = dir.path().join("out.osm.pbf");
    let commands: [&[Arg]; 6] = [
        &[&"export", &old, &"-f", &"geojsonseq"],
        &[&"apply-changes", &old, &change, &"-f", &"pbf"],
        &[&"derive-changes", &old, &new, &"-f", &"osc"],
        &[&"add-locations-to-ways", &old, &"-f", &"pbf"],
        &[&"add-locations-to-ways", &old, &"-f", &"osm"],
        &[&"renumber", &old, &"-f", &"pbf"],
    ];
    for command in commands {
        for name in [&[][..], &[&"osmium" as Arg]] {
            let output: &[Arg] = &[&"-O", &"-o", &out];
            let done = ask(&[name, command, output].concat());
            assert_eq!(done.status, 0, "{}", done.stderr);
        }
    }
    run_ok(&[
        &"build-geocode-index",
        &old,
        &"-o",
        &dir.path().join("index"),
    ]);
    let merged = ask(&[&"merge", &old, &new, &"-f", &"opl"]).stdout;
    assert_eq!(merged.matches("n1 ").count(), 1, "{merged}");
    assert!(merged.starts_with("n1 v5 "), "{merged}");
    let pbf = dir.path().join("x.osm.pbf");
    run_ok(&[&"cat", &old, &"-o", &pbf]);
    assert!(!is_history(&pbf) && !is_history(&old));
    let shown = ask(&[&"cat", &old, &"-f", &"osm"]).stdout;
    assert!(!shown.contains("visible"), "{shown}");
}

#[test]
fn a_text_is_a_history_if_it_says_so_or_has_deleted_or_several_versions() {
    let dir = tempfile::tempdir().unwrap();
    let one = "<node id='1' visible='true' version='1' lat='1' lon='1'/>";
    let other = "<node id='1' visible='true' version='2' lat='1' lon='1'/>";
    let deleted = "<node id='1' visible='false' version='2'/>";
    for (name, text, expected) in [
        ("one.osm", osm(one), false),
        ("two.osm", osm(&format!("{one}{other}")), true),
        ("same.osm", osm(&format!("{one}{one}")), false),
        ("deleted.osm", osm(deleted), true),
        ("one.osh", osm(one), true),
        ("one.osh.xml", osm(one), true),
        ("cosh.osm", osm(one), false),
        ("one.opl", "n1 v1 dV x1 y1\n".into(), false),
        ("two.opl", "n1 v1 dV x1 y1\nn1 v2 dV x1 y1\n".into(), true),
        ("deleted.opl", "n1 v2 dD x y\n".into(), true),
        ("one.osh.opl", "n1 v1 dV x1 y1\n".into(), true),
        (
            "apart.opl",
            "n1 v2 dV x1 y1\nw1 v1 dV Nn1\nn2 v1 dV x1 y1\nn1 v1 dV x1 y1\n".into(),
            true,
        ),
        (
            "unsorted.opl",
            "n3 v2 dV x1 y1\nw1 v1 dV Nn1\nn1 v1 dV x1 y1\nn3 v2 dV x1 y1\n".into(),
            false,
        ),
        (
            "unknown.opl",
            "n1 v0 dV x1 y1\nn1 v2 dV x1 y1\n".into(),
            false,
        ),
    ] {
        let path = file(dir.path(), name, &text);
        assert_eq!(is_history(&path), expected, "{name}");
        let zipped = file(dir.path(), &format!("{name}.gz"), gzip(text.as_bytes()));
        assert_eq!(is_history(&zipped), expected, "{name}.gz");
    }
    let one = dir.path().join("one.osm");
    for (format, expected) in [("osm", false), ("osh", true), ("osm.gz", false)] {
        let inspected = ask(&[&"inspect", &"--json", &"-F", &format, &one]);
        assert_eq!(inspected.json()["history"], expected, "{format}");
    }
}

#[test]
fn versions_are_seen_where_the_text_is_cut_into_chunks() {
    let dir = tempfile::tempdir().unwrap();
    // Long objects, so that the two versions come into different chunks wherever the text is cut.
    let tag = "x".repeat(700_000);
    let text = format!("n1 v1 dV Ta={tag} x1 y1\nn1 v2 dV Ta={tag} x1 y1\nn2 v1 dV x1 y1\n");
    assert!(is_history(&file(dir.path(), "long.opl", &text)));
    let text = text.replacen("n1 v2", "n2 v1", 1);
    assert!(!is_history(&file(dir.path(), "others.opl", &text)));
}

#[test]
fn xml_is_read_in_the_encoding_that_it_declares() {
    let dir = tempfile::tempdir().unwrap();
    let text = |label: &str| {
        format!(
            "<?xml version=\"1.0\" encoding=\"{label}\"?>\n<osm version=\"0.6\">\
             <node id=\"1\" lat=\"1\" lon=\"2\" user=\"Zoë\"><tag k=\"n\" v=\"café\"/></node></osm>"
        )
    };
    let latin = |text: &str| -> Vec<u8> { text.chars().map(|c| c as u8).collect() };
    let expected = opl(&file(dir.path(), "utf-8.osm", text("UTF-8")));
    assert!(expected.contains("uZoë Tn=café"), "{expected}");
    for label in [
        "ISO-8859-1",
        "iso-8859-1",
        "windows-1252",
        "latin1",
        "ISO-8859-15",
    ] {
        let bytes = latin(&text(label));
        assert_eq!(opl(&file(dir.path(), "latin.osm", &bytes)), expected);
        assert_eq!(
            opl(&file(dir.path(), "latin.osm.gz", gzip(&bytes))),
            expected
        );
        let sorted = ask(&[&"sort", &dir.path().join("latin.osm"), &"-f", &"opl"]);
        assert_eq!(sorted.stdout, expected);
    }
    let words: Vec<u16> = text("UTF-16").encode_utf16().collect();
    let little: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let big: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    for bytes in [
        [&[0xff, 0xfe], &little[..]].concat(),
        [&[0xfe, 0xff], &big[..]].concat(),
        little,
        big,
    ] {
        assert_eq!(opl(&file(dir.path(), "utf-16.osm", &bytes)), expected);
        assert_eq!(
            opl(&file(dir.path(), "utf-16.osm.gz", gzip(&bytes))),
            expected
        );
    }
    let marked = [b"\xef\xbb\xbf", text("UTF-8").as_bytes()].concat();
    assert_eq!(opl(&file(dir.path(), "marked.osm", marked)), expected);
    // A byte of ISO 8859-1 is the character of this number. Windows has other characters there.
    let control = text("ISO-8859-1").replace("é", "\u{85}");
    assert!(opl(&file(dir.path(), "c1.osm", latin(&control))).contains("Tn=caf%85%"));
}

#[test]
fn change_files_and_changesets_are_read_in_their_encoding_too() {
    let dir = tempfile::tempdir().unwrap();
    let latin = |text: &str| -> Vec<u8> { text.chars().map(|c| c as u8).collect() };
    let change = "<?xml version='1.0' encoding='ISO-8859-1'?><osmChange version='0.6'><create>\
                  <node id='1' version='1' lat='1' lon='2'><tag k='n' v='é'/></node></create></osmChange>";
    let change = file(dir.path(), "day.osc", latin(change));
    let base = file(
        dir.path(),
        "base.osm",
        osm("<node id='2' lat='1' lon='1'/>"),
    );
    let applied = ask(&[&"apply-changes", &base, &change, &"-f", &"opl"]);
    assert!(applied.stdout.contains("Tn=é"), "{applied:?}");
    let sets = "<?xml version='1.0' encoding='ISO-8859-1'?><osm version='0.6'>\
                <changeset id='1' user='é' uid='1' open='false'/></osm>";
    let sets = file(dir.path(), "sets.osm", latin(sets));
    assert!(opl(&sets).contains("ué"));
}

#[test]
fn text_that_is_not_in_its_encoding_is_refused_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let text = |declaration: &str| {
        let start = format!(
            "<?xml version='1.0'{declaration}?>\n<osm version='0.6'>\n<node id='1' lat='1' lon='2' user='"
        );
        [start.as_bytes(), b"caf\xe9'/></osm>"].concat()
    };
    for (declaration, cause) in [
        ("", "line 3, column 39: the text is not UTF-8"),
        (
            " encoding='UTF-8'",
            "line 3, column 39: the text is not UTF-8",
        ),
        (
            " encoding='US-ASCII'",
            "line 3, column 39: the text is not UTF-8",
        ),
        (
            " encoding='Shift_JIS'",
            "line 3, column 39: the text is not Shift_JIS",
        ),
        (" encoding='klingon'", "the encoding 'klingon'"),
    ] {
        let path = file(dir.path(), "bad.osm", text(declaration));
        let message = run_fail(&[&"cat", &path, &"-f", &"opl"]);
        assert!(message.contains(cause), "{declaration}: {message}");
    }
}

#[test]
fn xml_of_another_version_or_structure_is_refused_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let node = "<node id='1' lat='1' lon='1'/>";
    let way = |inner: &str| osm(&format!("<way id='1'>{inner}</way>"));
    let in_node = |inner: &str| osm(&format!("<node id='1' lat='1' lon='1'>{inner}</node>"));
    let relation = |inner: &str| osm(&format!("<relation id='1'>{inner}</relation>"));
    let member = "<member type='node' ref='1' role=''/>";
    let changes = |inner: &str| format!("<osmChange version='0.6'>\n{inner}</osmChange>");
    for text in [
        "<osm/>".to_owned(),
        format!("<osm>{node}</osm>"),
        format!("<osm version=''>{node}</osm>"),
        format!("<osm version='0.5'>{node}</osm>"),
        format!("<osm version='0.7'>{node}</osm>"),
        format!("<osmChange><create>{node}</create></osmChange>"),
        format!("<osmChange version='0.3'><create>{node}</create></osmChange>"),
        "<osm version='0.5'><changeset id='1'/></osm>".to_owned(),
        osm(&osm(node).replace("<?xml version='1.0' encoding='UTF-8'?>", "")),
        osm(&format!("<foo><osm version='0.6'>{node}</osm></foo>")),
        osm(&format!("<action>{node}</action>")),
        osm(&format!("<create>{node}</create>")),
        osm("<tag k='a' v='b'/>"),
        osm("<nd ref='1'/>"),
        osm(member),
        in_node("<nd ref='2'/>"),
        in_node(member),
        in_node(node),
        in_node(&format!("<foo>{node}</foo>")),
        in_node("<tag k='a' v='b'><tag k='c' v='d'/></tag>"),
        way(member),
        way(&way("")).replace("<?xml version='1.0' encoding='UTF-8'?>", ""),
        way("<nd ref='1'><nd ref='2'/></nd>"),
        relation("<nd ref='1'/>"),
        relation("<member type='node' ref='1' role=''><tag k='a' v='b'/></member>"),
        changes(node),
        changes("<create><tag k='a' v='b'/></create>"),
        changes(&format!("<create><create>{node}</create></create>")),
        changes(&format!("<create><osm version='0.6'>{node}</osm></create>")),
        format!("<!DOCTYPE osm [<!ENTITY e 'x'>]>\n<osm version='0.6'>{node}</osm>"),
        format!("<!DOCTYPE osm [<!ENTITY % e 'x'>]>\n<osm version='0.6'>{node}</osm>"),
        "<html version='0.6'/>".to_owned(),
        "<diffResult version='0.6'/>".to_owned(),
    ] {
        let path = file(dir.path(), "bad.osm", &text);
        let message = run_fail(&[&"cat", &path, &"-f", &"opl"]);
        assert!(message.contains("bad.osm: "), "{text}: {message}");
        let is_of_changesets = text.contains("changeset");
        assert!(
            is_of_changesets || message.contains(": line "),
            "{text}: {message}"
        );
    }
}

#[test]
fn additions_of_servers_and_editors_are_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let text = "<!DOCTYPE osm SYSTEM 'osm.dtd'>\n<osm version='0.6' upload='false' generator='Overpass API'>
        <note>The data</note><meta osm_base='2026-11-20T00:00:00Z'/>
        <count id='0'><tag k='nodes' v='1'/></count><area id='3600000001'><tag k='a' v='b'/></area>
        <node id='1' lat='50' lon='10' action='modify' foo='bar'><center lat='1' lon='1'/></node>
        <way id='2'><center lat='50.1' lon='10.1'/><bounds minlat='1' minlon='1' maxlat='2' maxlon='2'/>
          <nd ref='1' lat='50' lon='10'/></way>
        <relation id='3'><bounds minlat='1' minlon='1' maxlat='2' maxlon='2'/>
          <member type='node' ref='1' role='stop' lat='50' lon='10'/>
          <member type='way' ref='2' role=''><nd lat='50' lon='10'/><nd/></member></relation>\n</osm>";
    let shown = opl(&file(dir.path(), "overpass.osm", text));
    let shown: Vec<&str> = shown.lines().map(|line| &line[..2]).collect();
    assert_eq!(shown, ["n1", "w2", "r3"]);
}

#[test]
fn a_remark_of_the_server_is_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let remark = "runtime error: Query timed out in \"query\" at line 3 after 26 seconds.";
    let node = "<node id='1' lat='1' lon='1'/>";
    let text = osm(&format!(
        "{node}<remark> {} &amp; <![CDATA[so\non]]></remark>",
        remark.replace('"', "&quot;")
    ));
    let path = file(dir.path(), "overpass.osm", &text);
    let pbf = dir.path().join("out.osm.pbf");
    for command in [
        &[&"cat" as Arg, &path, &"-f", &"opl"][..],
        &[&"sort", &path, &"-O", &"-o", &pbf],
        &[&"tags-count", &path],
    ] {
        let done = ask(command);
        assert_eq!(done.status, 0, "{done:?}");
        let warning = format!("says: {remark} & so on");
        assert!(done.stderr.contains("overpass.osm: "), "{done:?}");
        assert_eq!(done.stderr.matches(&warning).count(), 1, "{done:?}");
        assert_eq!(ask(&[command, &[&"-q" as Arg]].concat()).stderr, "");
        let osmium = ask(&[&[&"osmium" as Arg], command].concat());
        assert_eq!(osmium.stderr, "");
    }
    let path = file(
        dir.path(),
        "empty.osm",
        osm(&format!("{node}<remark> </remark><remark/>")),
    );
    assert!(opl(&path).starts_with("n1"));
}

#[test]
fn zeros_behind_compressed_data_are_padding() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (
        b"n1 v1 dV c0 t i0 u T x1 y1\n",
        b"n2 v1 dV c0 t i0 u T x1 y1\n",
    );
    let expected = String::from_utf8([&one[..], two].concat()).unwrap();
    for pack in [gzip, bzip2] {
        let (one, two, zeros) = (pack(one), pack(two), vec![0; 70_000]);
        let padded = [&one, &two, &zeros[..3]].concat();
        assert_eq!(opl(&file(dir.path(), "padded", padded)), expected);
        let padded = [&one, &zeros, &two, &zeros].map(Vec::as_slice).concat();
        assert_eq!(opl(&file(dir.path(), "padded", padded)), expected);
        for garbage in [
            &b"garbage behind the data"[..],
            &[0, 0, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7],
        ] {
            let path = file(dir.path(), "garbage", [&one, garbage].concat());
            run_fail(&[&"cat", &path, &"-f", &"opl"]);
        }
    }
    let base = world(dir.path(), "300");
    let change = dir.path().join("001.osc.gz");
    let [plain, padded] = ["plain.osm.pbf", "padded.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[&"apply-changes", &base, &change, &"-o", &plain]);
    let bytes = [fs::read(&change).unwrap(), vec![0; 512]].concat();
    fs::write(&change, bytes).unwrap();
    run_ok(&[&"apply-changes", &base, &change, &"-o", &padded]);
    assert_eq!(fs::read(plain).unwrap(), fs::read(padded).unwrap());
}

#[test]
fn zstd_data_may_have_skippable_frames() {
    let dir = tempfile::tempdir().unwrap();
    let frame = |text: &str| zstd::encode_all(text.as_bytes(), 1).unwrap();
    let (one, two) = (frame("n1 v1 x1 y1\n"), frame("n2 v1 x1 y1\n"));
    let skip = |kind: u8, content: &[u8]| {
        let len = u32::try_from(content.len()).unwrap().to_le_bytes();
        [&[0x50 | kind, 0x2a, 0x4d, 0x18], &len[..], content].concat()
    };
    for bytes in [
        [
            skip(0, &[27, 0, 0, 0]),
            one.clone(),
            skip(0, &[9; 9]),
            two.clone(),
        ]
        .concat(),
        [
            skip(15, b""),
            skip(3, &[7; 100_000]),
            one,
            two,
            skip(1, b"end"),
        ]
        .concat(),
    ] {
        let shown = opl(&file(dir.path(), "parallel.opl.zst", bytes));
        assert_eq!(shown.lines().count(), 2, "{shown}");
    }
}

#[test]
fn a_compressed_pbf_is_named_with_the_command_that_decompresses_it() {
    let dir = tempfile::tempdir().unwrap();
    let pbf = fs::read(world(dir.path(), "300")).unwrap();
    let out = dir.path().join("out.osm.pbf");
    let good = dir.path().join("world.osm.pbf");
    for (bytes, command) in [
        (gzip(&pbf), "`gunzip -c`"),
        (bzip2(&pbf), "`bunzip2 -c`"),
        (zstd::encode_all(&pbf[..], 1).unwrap(), "`unzstd -c`"),
    ] {
        let path = file(dir.path(), "x.osm.pbf.packed", bytes);
        for words in [
            &[&"cat" as Arg, &path, &"-o", &out][..],
            &[&"cat", &"-F", &"pbf", &path, &"-o", &out],
            &[&"cat", &"-F", &"osm", &path, &"-o", &out],
            &[&"inspect", &path],
            &[&"check", &path],
            &[&"update", &path],
            &[&"apply-changes", &good, &path, &"-o", &out],
            &[&"apply-changes", &path, &path, &"-o", &out],
            &[&"merge-changes", &path, &"-f", &"osc"],
            &[&"extract", &"-p", &path, &good, &"-o", &out],
        ] {
            let message = run_fail(words);
            assert!(
                message.contains("x.osm.pbf.packed: this is a PBF file"),
                "{message}"
            );
            assert!(message.contains(command), "{message}");
        }
    }
}

#[test]
fn an_object_without_a_user_has_none_whatever_string_0_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "string-0.osm.pbf", with_text_in_string_0());
    let plain = |text: &str| text.replace(" v3", " v0");
    let expected = "n1 v0 dV c0 t i0 u T x0.000001 y0.000001\n\
                    n2 v0 dV c0 t i0 u T x0.000001 y0.000001\n\
                    w1 v0 dV c0 t i0 u Tzero=a Nn1\n";
    for command in ["cat", "sort", "renumber"] {
        let shown = ask(&[&command, &path, &"-f", &"opl"]);
        assert_eq!(plain(&shown.stdout), expected, "{shown:?}");
    }
    // The same objects in a file that was written anew, on other ways.
    let known = file_of(
        dir.path(),
        "other.osm.pbf",
        &[&known(vec![node(9, 1, 1, &[])])],
    );
    for output in ["merge", "repack", "getid", "apply-changes"] {
        let out = dir.path().join(format!("{output}.osm.pbf"));
        let change = "<osmChange version='0.6'><delete><node id='9'/></delete></osmChange>";
        let change = file(dir.path(), "day.osc", change);
        match output {
            "merge" => run_ok(&[&"merge", &path, &known, &"-o", &out]),
            "getid" => run_ok(&[&"getid", &path, &"n2", &"w1", &"-o", &out]),
            "repack" => run_ok(&[&"repack", &path, &"-n", &"1", &"-o", &out]),
            _ => run_ok(&[&"apply-changes", &path, &change, &"-o", &out]),
        };
        let shown = opl(&out);
        assert!(
            !shown.contains("uzero") && shown.contains("zero=a"),
            "{output}: {shown}"
        );
    }
    let info = ask(&[&"osmium", &"fileinfo", &"-e", &path]).stdout;
    assert!(!info.contains("user"), "{info}");
    let features = ask(&[&"export", &path, &"-f", &"geojsonseq", &"-a", &"user"]).stdout;
    assert!(!features.contains("\"@user\""), "{features}");
}

/// A file whose string 0 has text, as no writer makes it on purpose. A node without metadata, a node and a way with
/// metadata but without user, and a tag with that string.
fn with_text_in_string_0() -> Vec<u8> {
    let info = || Message::new().varint(1, 3);
    let strings = [&b"zero"[..], b"a"];
    let table = strings
        .iter()
        .fold(Message::new(), |table, text| table.bytes(1, text));
    let node = |id: i64| Message::new().sint(1, id).sint(8, 10).sint(9, 10);
    let way = Message::new()
        .varint(1, 1)
        .packed_uint(2, &[0])
        .packed_uint(3, &[1])
        .message(4, info())
        .packed_deltas(8, &[1]);
    let nodes = Message::new()
        .message(1, node(1))
        .message(1, node(2).message(4, info()));
    let block = |group: Message| {
        let block = Message::new().message(1, table.clone()).message(2, group);
        block.to_bytes()
    };
    craft::plain_file(&[block(nodes), block(Message::new().message(3, way))])
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
