//! Every file through every format and back: what this program writes under its second name equals what osmium writes,
//! byte for byte for text, and what both read from it is the same.

use crate::common::oracle::{osmium, small_real_files};
use crate::common::{in_turn, is_long, pbfhogg, world};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// The formats with options.
const FORMATS: [&str; 20] = [
    "pbf",
    "osh.pbf",
    "pbf,locations_on_ways=true",
    "pbf,pbf_dense_nodes=false",
    "pbf,pbf_compression=lz4,add_metadata=version+timestamp",
    "osm",
    "osh",
    "osm.gz",
    "osm,add_metadata=false",
    "osm,add_metadata=uid+user",
    "osm,locations_on_ways=true",
    "osm,force_visible_flag=true",
    "osm,xml_change_format=true",
    "osc",
    "opl",
    "opl.bz2",
    "opl,add_metadata=changeset+version",
    "opl,locations_on_ways=true",
    "debug",
    "debug,add_crc32=true,color=true,add_metadata=timestamp",
];

/// Converts a file. Returns whether the program succeeded.
fn cat(program: &mut Command, input: &Path, format: &str, output: &Path) -> bool {
    let done = program
        .arg("cat")
        .arg(input)
        .args(["-O", "--generator", "test", "-f", format, "-o"])
        .arg(output)
        .output();
    done.expect("the program starts").status.success()
}

fn ours(input: &Path, format: &str, output: &Path) {
    let done = cat(pbfhogg().arg("osmium"), input, format, output);
    assert!(done, "{} to {format}", input.display());
}

fn theirs(input: &Path, format: &str, output: &Path) -> bool {
    cat(&mut Command::new("osmium"), input, format, output)
}

/// The text of a file, decompressed. Sections of a change file that follow one another are joined: osmium ends them with
/// each block. Boxes that a PBF file had at first are left out: osmium truncates them to 1e-7 degree, this program rounds
/// them outwards.
fn text(path: &Path, has_rough_box: bool) -> String {
    let unpacked = match path.extension().and_then(|ending| ending.to_str()) {
        Some("gz") => Command::new("zcat").arg(path).output().unwrap().stdout,
        Some("bz2") => Command::new("bzcat").arg(path).output().unwrap().stdout,
        _ => std::fs::read(path).unwrap(),
    };
    let text = String::from_utf8_lossy(&unpacked).into_owned();
    let is_box = |line: &str| {
        let numbers = line.trim().replace([',', ' ', '.', '-'], "");
        line.starts_with("  <bounds")
            || line.matches(',').count() == 2 && numbers.chars().all(|char| char.is_ascii_digit())
    };
    let lines = text.split_inclusive('\n');
    let text: String = lines
        .filter(|line| !(has_rough_box && is_box(line)))
        .collect();
    ["create", "modify", "delete"]
        .iter()
        .fold(text, |text, section| {
            text.replace(&format!("  </{section}>\n  <{section}>\n"), "")
        })
}

fn check(input: &Path, format: &str, directory: &Path) {
    let name = format.split(',').next().unwrap();
    let file = |who: &str| directory.join(format!("{who}.{name}"));
    let [mine, other] = ["ours", "theirs"].map(file);
    ours(input, format, &mine);
    assert!(theirs(input, format, &other), "{}", input.display());
    let what = format!("{} as {format}", input.display());
    let is_pbf = input.to_string_lossy().ends_with(".pbf");
    let text = |path: &Path| text(path, is_pbf);
    if !name.ends_with("pbf") {
        // Not `assert_eq`, which would print both files.
        let (mine, other) = (text(&mine), text(&other));
        let mut lines = mine.lines().zip(other.lines());
        let first = lines.find(|(mine, other)| mine != other);
        assert!(mine == other, "{what}: not what osmium writes: {first:?}");
    }
    if name == "debug" {
        return;
    }
    // Both programs read both files. osmium cannot read OPL with undefined locations, which it writes itself.
    let all = "opl,locations_on_ways=true";
    let mut back = Vec::new();
    for file in [&mine, &other] {
        let output = directory.join("back.opl");
        ours(file, all, &output);
        back.push(text(&output));
        if theirs(file, all, &output) {
            back.push(text(&output));
        } else {
            assert!(format == all, "{what}: osmium cannot read it");
        }
    }
    let same = back.iter().all(|text| *text == back[0]);
    assert!(same, "{what}: not read alike");
}

/// A file with two bounds in its header.
fn several_bounds(directory: &Path) -> PathBuf {
    let path = directory.join("bounds.osm");
    let text = "<osm version='0.6' generator='x'>\n\
        <bounds minlat='1' minlon='2' maxlat='3.5' maxlon='4'/>\n\
        <bounds minlat='-10' minlon='-20.1234567' maxlat='-5' maxlon='0'/>\n\
        <node id='1' version='1' lat='2' lon='3'/>\n</osm>\n";
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn every_format_and_back_is_what_osmium_makes_of_it() {
    if !osmium() {
        return;
    }
    let made = tempfile::tempdir().unwrap();
    let awkward = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/surface/inputs");
    let names = [
        "data.osm",
        "history.osh",
        "bare.opl",
        "negative.opl",
        "located.opl",
        "unsorted.opl",
    ];
    let changesets = awkward.join("changesets.osm");
    for format in ["osm", "osm.gz", "opl", "opl.bz2", "debug"] {
        check(&changesets, format, made.path());
    }
    let mut inputs: Vec<PathBuf> = names.iter().map(|name| awkward.join(name)).collect();
    inputs.push(several_bounds(made.path()));
    inputs.push(world(
        made.path(),
        if is_long() { "300000" } else { "3000" },
    ));
    inputs.extend(small_real_files());
    let jobs = inputs.iter().enumerate().flat_map(|(turn, input)| {
        let is_tiny = std::fs::metadata(input).unwrap().len() < 20_000;
        let formats = in_turn(turn, if is_tiny { 6 } else { 12 }, FORMATS);
        formats.map(move |format| (input, format))
    });
    let jobs = Mutex::new(jobs);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((input, format)) = { jobs.lock().unwrap().next() } {
                    let directory = tempfile::tempdir().unwrap();
                    check(input, format, directory.path());
                }
            });
        }
    });
}
