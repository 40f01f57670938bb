//! Other programs can read the files of this program, with small and large tables of contents.

use crate::common;
use crate::common::craft::{self, Shape};
use crate::common::oracle::{osmconvert, osmium, osmosis, python_with_osmium, real_file};
use crate::common::{Arg, Kind, decode, node, pbfhogg, run_ok, small_world, stderr};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Object ids with their kinds, as other programs print them: "n1", "w2", "r3".
type Ids = Vec<String>;

fn ids_of(path: &Path) -> Ids {
    decode::objects(path)
        .iter()
        .map(|object| format!("{}{}", ["n", "w", "r"][object.kind as usize], object.id))
        .collect()
}

fn ids_in_xml(xml: &str) -> Ids {
    let id = |line: &str| {
        let line = line.trim_start();
        let kind = ["n", "w", "r"]
            .into_iter()
            .zip(["<node ", "<way ", "<relation "])
            .find(|(_, tag)| line.starts_with(tag))?
            .0;
        let rest = &line[line.find(" id=\"")? + 5..];
        Some(format!("{kind}{}", &rest[..rest.find('"')?]))
    };
    xml.lines().filter_map(id).collect()
}

fn stdout(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

pub fn check_all(path: &Path) {
    let expected = ids_of(path);
    if osmium() {
        let opl = stdout(
            Command::new("osmium")
                .args(["cat", "--no-progress", "-f", "opl", "-o", "-"])
                .arg(path),
        );
        let ids: Ids = opl
            .lines()
            .map(|line| line.split(' ').next().unwrap().to_owned())
            .collect();
        assert!(ids == expected, "osmium: {}", path.display());
    }
    if osmconvert() {
        let xml = stdout(Command::new("osmconvert").arg(path).arg("--out-osm"));
        assert!(
            ids_in_xml(&xml) == expected,
            "osmconvert: {}",
            path.display()
        );
    }
    if osmosis() {
        let xml = stdout(
            Command::new("osmosis")
                // The runs are too short for the second compiler of Java to be worth its time.
                .env(
                    "JAVACMD_OPTIONS",
                    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                )
                .args(["-q", "--read-pbf"])
                .arg(path)
                .args(["--write-xml", "-"]),
        );
        assert!(ids_in_xml(&xml) == expected, "osmosis: {}", path.display());
    }
    if let Some(python) = python_with_osmium() {
        let script = "import osmium, sys
class H(osmium.SimpleHandler):
    def node(self, o): print('n%d' % o.id)
    def way(self, o): print('w%d' % o.id)
    def relation(self, o): print('r%d' % o.id)
H().apply_file(sys.argv[1])";
        let ids: Ids = stdout(Command::new(python).args(["-c", script]).arg(path))
            .lines()
            .map(str::to_owned)
            .collect();
        assert!(ids == expected, "pyosmium: {}", path.display());
    }
}

/// A file whose table of contents is longer than one read and one zlib block.
fn many_blobs(dir: &Path) -> PathBuf {
    let (plain, indexed) = (dir.join("many-plain.osm.pbf"), dir.join("many.osm.pbf"));
    let block = |id: i64| {
        let object = common::with_metadata(
            node(id * 17, id * 31 % 900_000_000, -id, &[]),
            1,
            1_600_000_000,
            5,
            "u",
        );
        craft::block(&[object], &Shape::USUAL)
    };
    std::fs::write(
        &plain,
        craft::plain_file(&(1..12_000).map(block).collect::<Vec<_>>()),
    )
    .unwrap();
    run_ok(&[&"cat", &plain, &"-o", &indexed]);
    let table: usize = decode::table_frames(&indexed)
        .iter()
        .map(|frame| frame.frame_len)
        .sum();
    assert!(table > 90_000, "{table}");
    indexed
}

#[test]
fn a_small_indexed_file_is_read_by_all() {
    let input = real_file("monaco.osm.pbf");
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.osm.pbf");
    run_ok(&[&"cat", &input, &"-o", &output]);
    check_all(&output);
}

#[test]
fn a_large_table_of_contents_is_passed_over_by_all() {
    let dir = tempfile::tempdir().unwrap();
    check_all(&many_blobs(dir.path()));
}

#[test]
fn blobs_that_were_spliced_and_built_are_read_by_all() {
    let dir = tempfile::tempdir().unwrap();
    let (world, output) = (dir.path().join("w.osm.pbf"), dir.path().join("out.osm.pbf"));
    run_ok(&[
        &"synth",
        &"--objects",
        &"20000",
        &"--changes",
        &"2",
        &"-o",
        &world,
    ]);
    let days = ["001.osc.gz", "002.osc.gz"].map(|name| dir.path().join(name));
    run_ok(&[&"apply-changes", &world, &days[0], &days[1], &"-o", &output]);
    check_all(&output);
}

#[test]
fn metadata_added_to_a_file_without_any_is_read_by_all() {
    let input = real_file("porto.osm.pbf");
    let dir = tempfile::tempdir().unwrap();
    let (changes, output) = (dir.path().join("a.osc"), dir.path().join("out.osm.pbf"));
    let new = "<node id='5' version='1' timestamp='2020-01-01T00:00:00Z' lat='1' lon='1'><tag k='a' v='b'/></node>";
    std::fs::write(
        &changes,
        format!("<osmChange version='0.6'><create>{new}</create></osmChange>"),
    )
    .unwrap();
    run_ok(&[&"apply-changes", &input, &changes, &"-o", &output]);
    check_all(&output);
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
    let runs: [Vec<Arg>; 4] = [
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
        let mut fields = pbfhogg::unstable::pbf::wire::Fields::new(message);
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
        let mut block = pbfhogg::unstable::pbf::wire::Fields::new(&frame.payload);
        while let Some(group) = block.next().unwrap() {
            if group.number != 2 {
                continue;
            }
            let mut objects = pbfhogg::unstable::pbf::wire::Fields::new(group.bytes().unwrap());
            while let Some(object) = objects.next().unwrap() {
                let mut fields = pbfhogg::unstable::pbf::wire::Fields::new(object.bytes().unwrap());
                let mut numbers = Vec::new();
                while let Some(field) = fields.next().unwrap() {
                    if field.number == 4 {
                        let mut info =
                            pbfhogg::unstable::pbf::wire::Fields::new(field.bytes().unwrap());
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
