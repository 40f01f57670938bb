//! Reading o5m and o5c: the files of osmconvert, and small ones with what it does not write.

use crate::common::answers::ask;
use crate::common::oracle::{
    assert_same_opl, opl_sorted, opl_without_locations, osmconvert, osmconvert_to, osmium,
    real_file, real_files,
};
use crate::common::{decode, pbfhogg, run_fail, run_ok};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const O5M: &[u8] = b"\xff\xe0\x04o5m2\xff";
const O5C: &[u8] = b"\xff\xe0\x04o5c2\xff";

/// A number without a sign.
fn unsigned(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// A number with a sign.
fn signed(number: i64) -> Vec<u8> {
    unsigned(((number << 1) ^ (number >> 63)) as u64)
}

fn dataset(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let contents = parts.concat();
    [vec![kind], unsigned(contents.len() as u64), contents].concat()
}

/// A node without metadata at a place in units of 1e-7 degree, all of it relative to the one before.
fn node(id: i64, lon: i64, lat: i64, tags: &[u8]) -> Vec<u8> {
    dataset(
        0x10,
        &[&signed(id), b"\0", &signed(lon), &signed(lat), tags],
    )
}

fn write(dir: &Path, name: &str, parts: &[&[u8]]) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, parts.concat()).unwrap();
    path
}

/// The lines of OPL that `cat` makes of a file.
fn told(path: &Path) -> Vec<String> {
    let ran = run_ok(&[&"cat", &"-q", &path, &"-f", &"opl"]);
    let text = String::from_utf8(ran.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn files_of_osmconvert_have_the_objects_of_the_pbf() {
    if !osmconvert() || !osmium() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (text, back) = (dir.path().join("in.o5m"), dir.path().join("back.osm.pbf"));
    let mut count = 0;
    for path in real_files() {
        // It reads neither lz4 nor unsorted files, and takes deleted versions for others.
        let is_history = path.to_string_lossy().ends_with(".osh.pbf");
        if is_history || !osmconvert_to(&[&path, &"--out-o5m"], &text) {
            continue;
        }
        count += 1;
        run_ok(&[&"cat", &"-O", &text, &"-o", &back]);
        let found = opl_without_locations(&back);
        assert_same_opl(&found, &opl_without_locations(&path));
        assert_same_opl(&found, &opl_without_locations(&text));
    }
    assert!(count > 3, "{count}");
}

#[test]
fn differences_of_osmconvert_are_applied_as_change_files_are() {
    let [old, new] = ["andorra-a.osm.pbf", "andorra-b.osm.pbf"].map(real_file);
    if !osmconvert() || !osmium() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (a, b) = (at("a.o5m"), at("b.o5m"));
    assert!(osmconvert_to(&[&old, &"--out-o5m"], &a) && osmconvert_to(&[&new, &"--out-o5m"], &b));
    assert!(osmconvert_to(
        &[&a, &b, &"--diff", &"--out-o5c"],
        &at("d.o5c")
    ));
    assert!(osmconvert_to(
        &[&a, &b, &"--diff", &"--out-osc"],
        &at("d.osc")
    ));
    for (changes, out) in [("d.osc", "a.osm.pbf"), ("d.o5c", "b.osm.pbf")] {
        run_ok(&[&"apply-changes", &old, &at(changes), &"-o", &at(out)]);
    }
    let (a, b) = (
        decode::objects(&at("a.osm.pbf")),
        decode::objects(&at("b.osm.pbf")),
    );
    assert!(a == b, "{} {}", a.len(), b.len());
    // The commands for change files take one for the other.
    for command in ["merge-changes", "sort"] {
        for (changes, out) in [("d.osc", "a.osc"), ("d.o5c", "b.osc")] {
            run_ok(&[&command, &"-O", &at(changes), &"-o", &at(out)]);
        }
        let lines = |name: &str| opl_sorted(&at(name));
        assert_same_opl(&lines("a.osc"), &lines("b.osc"));
    }
    assert!(told(&at("d.o5c")).iter().any(|line| line.contains(" dD ")));
    let filtered = ["a.osc", "b.osc"].map(|out| {
        let changes = if out == "a.osc" { "d.osc" } else { "d.o5c" };
        run_ok(&[
            &"tags-filter",
            &"-O",
            &at(changes),
            &"w/highway",
            &"-o",
            &at(out),
        ]);
        opl_sorted(&at(out))
    });
    assert_same_opl(&filtered[0], &filtered[1]);
}

#[test]
fn an_o5m_file_is_read_compressed_and_from_standard_input() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = [O5M, &node(7, 10, 20, b"\0a\0b\0"), b"\xfe"].concat();
    let plain = write(dir.path(), "any-name", &[&bytes]);
    let wanted = told(&plain);
    assert_eq!(wanted, ["n7 v0 dV c0 t i0 u Ta=b x0.000001 y0.000002"]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&bytes).unwrap();
    let gzip = write(dir.path(), "x.o5m.gz", &[&gzip.finish().unwrap()]);
    assert_eq!(told(&gzip), wanted);
    for format in [&[][..], &["-F", "o5m"], &["-F", "o5c"]] {
        let mut command = pbfhogg();
        command.args(["cat", "-q", "-", "-f", "opl"]).args(format);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        assert_eq!(text.trim_end(), wanted[0]);
    }
}

#[test]
fn the_awkward_parts_of_the_format_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let who = |changeset: i64, user: &[u8]| {
        [
            b"\x03".as_slice(),
            &signed(1_577_836_800),
            &signed(changeset),
            user,
        ]
        .concat()
    };
    let file = write(
        dir.path(),
        "x.o5m",
        &[
            O5M,
            &dataset(
                0xdb,
                &[&signed(-20), &signed(-10), &signed(20), &signed(10)],
            ),
            &dataset(0xdc, &[&signed(1_577_836_800)]),
            // Marks and unknown datasets.
            &dataset(0xee, &[b"abc"]),
            &dataset(0xef, &[&[0; 300]]),
            &dataset(0x77, &[b"\xff"]),
            b"\xf1",
            // A negative id, a user with an id of two bytes, a pair that refers to the one before.
            &dataset(
                0x10,
                &[
                    &signed(-5),
                    &who(9, b"\0\xac\x02\0me\0"),
                    b"\x02\x02\0k\0v\0\x01",
                ],
            ),
            // The same time and changeset, no author.
            &dataset(0x10, &[&signed(1), b"\x03\0\0\0\0\0", b"\x02\x02"]),
            // From the east to the west of the world: a difference of more than 32 bits, and its wrapped form.
            &node(1, 1_800_000_000 - 4, 0, b""),
            &node(1, -3_599_999_998, 0, b""),
            &node(1, 3_600_000_000 - (1 << 32), 0, b""),
            // Deleted: an id alone, an id without metadata, metadata alone.
            &dataset(0x10, &[&signed(1)]),
            &dataset(0x10, &[&signed(1), b"\0"]),
            &dataset(0x10, &[&signed(1), b"\x02\0\0\x01"]),
            b"\xff",
            &dataset(0x11, &[&signed(7), b"\0\0"]),
            &dataset(
                0x11,
                &[&signed(1), b"\0\x02", &signed(-5), &signed(1), b"\0a\0\0"],
            ),
            b"\xff",
            &dataset(
                0x12,
                &[
                    &signed(1),
                    b"\0\x0b",
                    &signed(4),
                    b"\x000x\0",
                    &signed(4),
                    b"\x002\0",
                    &signed(1),
                    b"\x02\0a\0b\0",
                ],
            ),
            b"\xfe",
        ],
    );
    assert_eq!(
        told(&file),
        [
            "n-5 v3 dV c9 t2020-01-01T00:00:00Z i300 ume Tk=v,k=v x0.0000001 y0.0000001",
            "n-4 v3 dV c9 t2020-01-01T00:00:00Z i0 u T x0.0000002 y0.0000002",
            "n-3 v0 dV c0 t i0 u T x179.9999998 y0.0000002",
            "n-2 v0 dV c0 t i0 u T x-180 y0.0000002",
            "n-1 v0 dV c0 t i0 u T x180 y0.0000002",
            "n0 v0 dD c0 t i0 u T x y",
            "n1 v0 dD c0 t i0 u T x y",
            "n2 v2 dD c9 t2020-01-01T00:00:00Z i0 u T x y",
            "w7 v0 dV c0 t i0 u T N",
            "w8 v0 dV c0 t i0 u Ta= Nn-5,n-4",
            "r1 v0 dV c0 t i0 u Ta=b Mn4@x,r4@,n5@x",
        ]
    );
    let facts = ask(&[&"fileinfo", &"-j", &file]).json();
    let text = facts.to_string();
    assert!(
        text.contains("2020-01-01T00:00:00Z") && text.contains("O5M"),
        "{text}"
    );
}

#[test]
fn strings_longer_than_250_bytes_are_not_in_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let tag = |len: usize, letter: &str| format!("\0k\0{}\0", letter.repeat(len - 1)).into_bytes();
    let file = write(
        dir.path(),
        "x.o5m",
        &[
            O5M,
            &node(1, 0, 0, &tag(249, "a")),
            &node(1, 0, 0, &tag(250, "b")),
            &node(1, 0, 0, &tag(251, "c")),
            &node(1, 0, 0, b"\x01\x02"),
            b"\xfe",
        ],
    );
    let lines = told(&file);
    let tags = format!("Tk={},k={} ", "b".repeat(249), "a".repeat(248));
    assert!(lines[3].contains(&tags), "{}", lines[3]);
}

#[test]
fn the_oldest_string_leaves_a_full_table() {
    let dir = tempfile::tempdir().unwrap();
    let tags: Vec<u8> = (0..15_001)
        .flat_map(|n| format!("\0k\0{n}\0").into_bytes())
        .collect();
    let first = node(1, 0, 0, &tags);
    let last = |number| node(1, 0, 0, &unsigned(number));
    let file = write(
        dir.path(),
        "x.o5m",
        &[O5M, &first, &last(15_000), &last(1), b"\xfe"],
    );
    let lines = told(&file);
    assert!(lines[1].contains(" Tk=1 ") && lines[2].contains(" Tk=15000 "));
    let file = write(dir.path(), "y.o5m", &[O5M, &first, &last(15_001), b"\xfe"]);
    assert!(run_fail(&[&"cat", &file, &"-f", &"opl"]).contains("15001"));
    // A reset empties it.
    let file = write(
        dir.path(),
        "z.o5m",
        &[O5M, &first, b"\xff", &last(1), b"\xfe"],
    );
    assert!(run_fail(&[&"cat", &file, &"-f", &"opl"]).contains("has 0 strings"));
}

#[test]
fn a_damaged_o5m_file_is_an_error_of_one_line_with_the_byte() {
    let dir = tempfile::tempdir().unwrap();
    let long = [&[0x80; 10][..], b"\x01"].concat();
    for (contents, cause) in [
        (
            node(1, 0, 0, b"\x05"),
            "byte 14: a reference to string 5 of the table",
        ),
        (
            node(1, 0, 0, b"\0a\0b"),
            "a string goes on past its dataset",
        ),
        (
            node(1, 0, 0, b"\0\xc3\0b\0"),
            "byte 14: a string is not UTF-8",
        ),
        (
            node(1, 0, 1_000_000_000, b""),
            "a coordinate that is not on earth",
        ),
        (
            dataset(0x10, &[&long]),
            "byte 10: a number has more than 64 bits",
        ),
        (
            dataset(0x10, &[b"\x80"]),
            "a number goes on past its dataset",
        ),
        (
            dataset(0x11, &[b"\x02\0\x09\x02"]),
            "a list of 9 bytes goes on past its dataset",
        ),
        (
            dataset(0x11, &[b"\x02\0\x01\x80\0"]),
            "a number goes on past its list",
        ),
        (
            dataset(0x12, &[b"\x02\0\x04\x02\0x\0"]),
            "the type of a member",
        ),
        (
            dataset(0x12, &[b"\x02\0\x04\x02\x000\0\x01"]),
            "is not a pair",
        ),
        (
            b"\x10\x50\x02".to_vec(),
            "byte 8: the file ends within a dataset of 80 bytes",
        ),
        (
            b"\xee\x50\x02".to_vec(),
            "byte 8: the file ends within a dataset of 80 bytes",
        ),
        (
            [b"\x10".as_slice(), &unsigned(1 << 40)].concat(),
            "a dataset of 1099511627776 bytes",
        ),
        (b"\x10\x80".to_vec(), "the file ends within a dataset"),
        (
            [b"\x10".as_slice(), &long].concat(),
            "the length of a dataset has more than 64 bits",
        ),
        (dataset(0xdb, &[b"\x02"]), "a number goes on"),
        (dataset(0xe0, &[b"o5m2"]), "a second header"),
        (
            b"\xfe<osm>".to_vec(),
            "byte 9: there is something behind the mark of the end",
        ),
    ] {
        let mark: &[u8] = if contents.len() > 3 && contents[0] != 0xfe {
            b"\xfe"
        } else {
            b""
        };
        let file = write(dir.path(), "x.o5m", &[O5M, &contents, mark]);
        let message = run_fail(&[&"cat", &file, &"-f", &"opl"]);
        assert!(
            message.contains("x.o5m: byte ") && message.contains(cause),
            "{cause}: {message}"
        );
        assert_eq!(message.trim_end().lines().count(), 1, "{message}");
    }
}

#[test]
fn a_file_without_the_mark_of_its_end_is_read_with_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let one = [O5M, &node(1, 0, 0, b"")].concat();
    let file = write(dir.path(), "x.o5m", &[&one]);
    let ran = run_ok(&[&"cat", &file, &"-f", &"opl"]);
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(said.contains("without the mark of its end"), "{said}");
    // Several files behind each other are read as one.
    let file = write(dir.path(), "y.o5m", &[&one, b"\xfe", &one, b"\xfe"]);
    assert_eq!(told(&file).len(), 2);
}

#[test]
fn a_change_file_in_o5c_creates_modifies_and_deletes() {
    let dir = tempfile::tempdir().unwrap();
    let version = |id: i64, version: u8| {
        dataset(
            0x10,
            &[&signed(id), &[version, 0], &signed(10), &signed(10)],
        )
    };
    let deleted = dataset(0x10, &[&signed(1), b"\0"]);
    let changes = write(
        dir.path(),
        "x.o5c",
        &[O5C, &version(1, 1), &version(1, 2), &deleted, b"\xfe"],
    );
    let merged = dir.path().join("merged.osc");
    run_ok(&[&"merge-changes", &changes, &"-o", &merged]);
    let text = std::fs::read_to_string(&merged).unwrap();
    let at = |part: &str| {
        text.find(part)
            .unwrap_or_else(|| panic!("{part} is not in {text}"))
    };
    assert!(at("<create>") < at("id=\"1\"") && at("id=\"1\"") < at("<modify>"));
    assert!(at("<modify>") < at("id=\"2\"") && at("id=\"2\"") < at("<delete>"));
    assert!(at("<delete>") < at("id=\"3\""));
    let base = write(
        dir.path(),
        "base.osm",
        &[b"<osm version='0.6'><node id='2' version='1' lat='1' lon='1'/><node id='3' version='1' lat='1' lon='1'/></osm>"],
    );
    let out = dir.path().join("out.osm.pbf");
    run_ok(&[&"apply-changes", &base, &changes, &"-o", &out]);
    let ids: Vec<i64> = decode::objects(&out)
        .iter()
        .map(|object| object.id)
        .collect();
    assert_eq!(ids, [1, 2]);
}

#[test]
fn o5m_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "x.o5m", &[O5M, b"\xfe"]);
    for args in [["-o", "y.o5m"], ["-f", "o5m"], ["-o", "y.o5c.gz"]] {
        let message = run_fail(&[&"cat", &file, &args[0], &args[1]]);
        assert!(message.contains("not written"), "{message}");
    }
}
