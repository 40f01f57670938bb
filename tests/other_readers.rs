//! Other programs can read the files of this program, with small and large tables of contents.

use crate::common;
use crate::common::craft::{self, Shape};
use crate::common::oracle::{osmconvert, osmium, osmosis, python_with_osmium, real_file};
use crate::common::{decode, node, run_ok};
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
        &"--elements",
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
