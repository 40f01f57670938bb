//! The second name on real files as other programs write them: both programs run each line of
//! `second_name/commands.txt` on the extracts in `tests/data`, written by each of [`WRITERS`](writers::WRITERS).
//!
//! Exit status, standard output, whether there is anything on standard error, and all files that are written have to be
//! equal, as in `tests/surface.rs`, whose lines have every option. A line that begins with `~KEY` may differ, for the
//! reason in the row KEY of `reference/osmium-parity.md`; with `~KEY@NAME,NAME`, only for extracts or writers with one
//! of these names.
//!
//! Short runs have the middle of an extract for each program, and each line on one of them. `.ci/long writers` has
//! every line on every middle by every program, and on all extracts as they are.

use crate::common::decode;
use crate::common::extracts::place_of;
use crate::common::writers::{self, Part, Shape, succeed};
use crate::common::{Kind, Object, in_turn, is_long};
use crate::export::{is_area, with_least_corners, with_short_numbers};
use crate::surface::{
    Outcome, comparable, copy_directory, difference, keys_with_reasons, osmium_is_as_described,
    words,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// A command line of the table.
#[derive(Debug, Clone, Copy)]
struct Line {
    text: &'static str,
    /// The key of the reason why the programs may differ.
    key: Option<&'static str>,
    /// Parts of the names of the files with which they may differ, separated by commas.
    only: Option<&'static str>,
    command: &'static str,
}

impl Line {
    fn parse(text: &'static str) -> Self {
        let (reason, command) = match text.strip_prefix('~') {
            Some(rest) => rest.split_once(' ').expect("a command behind the key"),
            None => ("", text),
        };
        let (key, only) = match reason.split_once('@') {
            Some((key, only)) => (key, Some(only)),
            None => (reason, None),
        };
        Self {
            text,
            key: Some(key).filter(|key| !key.is_empty()),
            only,
            command,
        }
    }

    /// Whether the programs may differ on a file.
    fn may_differ(&self, shape: &Shape) -> bool {
        let name = shape.name();
        let is_named = |parts: &str| parts.split(',').any(|part| name.contains(part));
        self.key.is_some() && self.only.is_none_or(is_named)
    }
}

fn table() -> Vec<Line> {
    let table = include_str!("second_name/commands.txt");
    let lines = table.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(Line::parse)
        .collect()
}

/// A directory with the inputs of the commands.
struct Inputs {
    directory: tempfile::TempDir,
    /// The values of words in the table that stand for something in the file.
    values: [(&'static str, String); 4],
    is_in_order: bool,
}

/// Runs osmium with inputs, and an option that names the output.
fn osmium(args: &[&str], inputs: &[&Path], option: &str, output: &Path) {
    let mut osmium = Command::new("osmium");
    succeed(osmium.args(args).args(inputs).arg(option).arg(output));
}

/// Makes the inputs from an extract; `None` if the program that writes it is missing.
fn prepare(shape: &Shape) -> Option<Inputs> {
    let [directory, scratch] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let at = |name: &str| directory.path().join(name);
    let input = at("in.osm.pbf");
    if !shape.write(scratch.path(), &input) {
        return None;
    }
    let objects = decode::objects(&input);
    write_changes(&objects, directory.path());
    let sorted = scratch.path().join("in-order.osm.pbf");
    let (newer, small, change) = (at("newer.osm.pbf"), at("small.osm.pbf"), at("change.osc"));
    osmium(&["sort"], &[&input], "-o", &sorted);
    osmium(&["apply-changes"], &[&sorted, &change], "-o", &newer);
    osmium(&["cat"], &[&input], "-o", &at("in.osm.gz"));
    // The index has room for every id up to the largest, so the ids have to be small.
    osmium(&["renumber"], &[&sorted], "-o", &small);
    osmium(
        &["create-locations-index"],
        &[&small],
        "-i",
        &at("nodes.idx"),
    );
    std::fs::create_dir(at("maps")).unwrap();
    let middle_of = |kind: Kind| {
        let ids: Vec<i64> = ids(&objects, kind).collect();
        ids.get(ids.len() / 2).copied().unwrap_or(1)
    };
    let listed = |(kind, letter): (Kind, char)| {
        let step = ids(&objects, kind).count() / 20 + 1;
        ids(&objects, kind)
            .step_by(step)
            .map(move |id| format!("{letter}{id}\n"))
            .collect::<String>()
    };
    let kinds = [(Kind::Node, 'n'), (Kind::Way, 'w'), (Kind::Relation, 'r')];
    std::fs::write(at("ids.txt"), kinds.map(listed).concat()).unwrap();
    let edges = middle(&objects);
    std::fs::write(at("area.geojson"), polygon(edges)).unwrap();
    let [west, south, east, north] = edges.map(degrees);
    Some(Inputs {
        values: [
            ("BOX", format!("{west},{south},{east},{north}")),
            ("NODE", middle_of(Kind::Node).to_string()),
            ("WAY", middle_of(Kind::Way).to_string()),
            ("RELATION", middle_of(Kind::Relation).to_string()),
        ],
        is_in_order: crate::common::is_canonical(&objects),
        directory,
    })
}

fn ids(objects: &[Object], kind: Kind) -> impl Iterator<Item = i64> {
    let objects = objects.iter().filter(move |object| object.kind == kind);
    objects.map(|object| object.id)
}

/// West, south, east and north of a box in the middle of the nodes, in 1e-7 degree.
fn middle(objects: &[Object]) -> [i64; 4] {
    let (mut east, mut north): (Vec<i64>, Vec<i64>) = objects.iter().filter_map(place_of).unzip();
    if east.is_empty() {
        return [0, 0, 10_000_000, 10_000_000];
    }
    east.sort_unstable();
    north.sort_unstable();
    let at = |sorted: &[i64], tenths: usize| sorted[sorted.len() * tenths / 10];
    [
        at(&east, 3),
        at(&north, 3),
        at(&east, 6) + 1,
        at(&north, 6) + 1,
    ]
}

fn degrees(e7: i64) -> String {
    let sign = if e7 < 0 { "-" } else { "" };
    let e7 = e7.unsigned_abs();
    format!("{sign}{}.{:07}", e7 / 10_000_000, e7 % 10_000_000)
}

/// A polygon in a box, one of whose corners points inwards.
fn polygon([west, south, east, north]: [i64; 4]) -> String {
    let (width, height) = (east - west, north - south);
    let corners = [
        (west, south),
        (east, south + height / 5),
        (east - width / 10, north),
        (west + width / 3, north - height / 3),
        (west, south),
    ];
    let corners = corners.map(|(lon, lat)| format!("[{},{}]", degrees(lon), degrees(lat)));
    let ring = corners.join(",");
    format!(
        "{{\"type\":\"Feature\",\"properties\":{{}},\
         \"geometry\":{{\"type\":\"Polygon\",\"coordinates\":[[{ring}]]}}}}"
    )
}

/// Writes two change files. The first moves and renames, deletes and creates objects, the second moves nodes far away.
fn write_changes(objects: &[Object], directory: &Path) {
    const TIME: &str = "timestamp='2026-01-01T00:00:00Z'";
    let version = |object: &Object| object.version.unwrap_or(0);
    let name = |object: &Object| ["node", "way", "relation"][object.kind as usize];
    let mut text = String::from("<osmChange version='0.6'><modify>");
    for object in objects.iter().step_by(97) {
        let (name, id, version) = (name(object), object.id, version(object) + 1);
        let _ = write!(text, "<{name} id='{id}' version='{version}' {TIME}");
        if object.kind == Kind::Node {
            let (lon, lat) = place_of(object).unwrap_or((0, 0));
            let _ = write!(
                text,
                " lat='{}' lon='{}'",
                degrees(lat + 1000),
                degrees(lon)
            );
        }
        text.push('>');
        for id in &object.refs {
            let _ = write!(text, "<nd ref='{id}'/>");
        }
        let tag = "<tag k='name' v='changed &amp; moved'/>";
        let _ = write!(text, "{tag}</{name}>");
    }
    text += "</modify><delete>";
    for object in objects.iter().skip(11).step_by(101) {
        let (name, id, version) = (name(object), object.id, version(object) + 2);
        let _ = write!(text, "<{name} id='{id}' version='{version}' {TIME}/>");
    }
    text += "</delete><create>";
    for id in 100_000_000_000_u64..100_000_000_050 {
        let _ = write!(text, "<node id='{id}' version='1' {TIME} lat='1' lon='2'/>");
    }
    let _ = write!(
        text,
        "<way id='100000000000' version='1' {TIME}><nd ref='100000000000'/><nd ref='100000000001'/></way>\
         </create></osmChange>"
    );
    std::fs::write(directory.join("change.osc"), text).unwrap();
    let mut text = String::from("<osmChange version='0.6'><modify>");
    let nodes = objects.iter().filter(|object| object.kind == Kind::Node);
    for node in nodes.skip(3).step_by(211) {
        let (id, version) = (node.id, version(node) + 5);
        let _ = write!(
            text,
            "<node id='{id}' version='{version}' {TIME} lat='1' lon='1'><tag k='a' v='b'/></node>"
        );
    }
    text += "</modify></osmChange>";
    std::fs::write(directory.join("change2.osc"), text).unwrap();
}

/// Runs a line in a directory of its own that has the inputs.
fn run(program: &[&str], line: &Line, inputs: &Inputs, is_whole: bool) -> Outcome {
    let own = tempfile::tempdir().unwrap();
    let inputs_at = inputs.directory.path();
    copy_directory(inputs_at, own.path(), &|name| name == "nodes.idx");
    let mut command = line.command.to_owned();
    for (word, value) in &inputs.values {
        command = command.replace(word, value);
    }
    let words = words(&command);
    let (program, first) = program.split_first().unwrap();
    let done = Command::new(program)
        .args(first)
        .args(&words)
        .current_dir(own.path())
        .stdin(std::process::Stdio::null())
        .output();
    let done = done.expect("the program starts");
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(!stderr.contains("panicked"), "{}: {stderr}", line.text);
    let mut files = BTreeMap::new();
    for name in written(own.path(), inputs_at) {
        let content = content(&own.path().join(&name));
        files.insert(
            name,
            if is_whole {
                without_boxes(&content)
            } else {
                content
            },
        );
    }
    let stdout = String::from_utf8_lossy(&done.stdout);
    let is_export = words.first().is_some_and(|word| word == "export");
    let stdout = if is_export {
        let format = words.iter().skip_while(|word| *word != "-f").nth(1);
        features(&stdout, format.map_or("", String::as_str), is_whole)
    } else if is_whole {
        without_boxes(&comparable(&stdout))
    } else {
        comparable(&stdout)
    };
    Outcome {
        status: done.status.code(),
        stdout,
        has_stderr: !done.stderr.is_empty(),
        files,
    }
}

/// The files in `directory`, and the directory of maps in it, that `inputs` does not have, or with other bytes.
fn written(directory: &Path, inputs: &Path) -> Vec<PathBuf> {
    let mut names = Vec::new();
    for place in ["", "maps"] {
        for entry in std::fs::read_dir(directory.join(place)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(directory).unwrap();
            let is_index = name == Path::new("nodes.idx");
            let is_new = !inputs.join(name).exists();
            let is_changed = || {
                is_index
                    && std::fs::read(&path).unwrap() != std::fs::read(inputs.join(name)).unwrap()
            };
            if is_new || is_changed() {
                names.push(name.to_owned());
            }
        }
    }
    names.sort();
    names
}

/// The content of a file: decompressed and, of a PBF file, the header and all objects as osmium reads them.
fn content(path: &Path) -> String {
    let told = |program: &str, args: &[&str]| {
        let done = Command::new(program).args(args).arg(path).output();
        String::from_utf8_lossy(&done.expect("the program starts").stdout).into_owned()
    };
    let ending = path.extension().and_then(|ending| ending.to_str());
    let text = match ending {
        Some("pbf") => {
            let text = told("osmium", &["cat", "-f", "debug,locations_on_ways=true"]);
            // This program declares canonical order whenever it holds.
            let unlike = ["    sorting = ", "    pbf_optional_feature"];
            let is_alike = |line: &&str| !unlike.iter().any(|start| line.starts_with(start));
            text.lines().filter(is_alike).collect::<Vec<_>>().join("\n")
        }
        Some("gz") => told("zcat", &[]),
        _ => String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned(),
    };
    comparable(&text)
}

/// A text without the boxes of headers: those of some extracts are finer than 1e-7 degree, and osmium truncates them.
fn without_boxes(text: &str) -> String {
    let is_of_box = |char: char| char.is_ascii_digit() || " (),.-".contains(char);
    let is_box = |line: &&str| line.starts_with("  <bounds ") || line.chars().all(is_of_box);
    let lines: Vec<&str> = text.lines().filter(|line| !is_box(line)).collect();
    lines.join("\n")
}

/// Features as comparable lines. Whole extracts have more areas than osmium keeps in a buffer, so that their order is
/// another, and areas in which osmium begins a ring with another corner.
fn features(text: &str, format: &str, is_whole: bool) -> String {
    let is_json = format.starts_with("geojson");
    let line = |line: &str| {
        let line = if is_json {
            with_short_numbers(line.trim_end_matches(','))
        } else {
            line.to_owned()
        };
        if is_whole && is_area(&line, format) {
            with_least_corners(&line, format)
        } else {
            line
        }
    };
    let mut lines: Vec<String> = text.lines().map(line).collect();
    if is_whole {
        lines.sort_unstable();
    }
    lines.join("\n")
}

/// The errors, and the lines whose programs differ as expected.
#[derive(Default)]
struct Findings {
    complaints: Vec<String>,
    differing: BTreeSet<&'static str>,
}

/// The commands that do not need files in order. The others refuse them, or give another result: see `~unsorted` in
/// `reference/osmium-parity.md`.
const WITHOUT_ORDER: [&str; 9] = [
    "cat",
    "fileinfo",
    "getid",
    "getparents",
    "removeid",
    "show",
    "sort",
    "tags-count",
    "tags-filter",
];

/// Runs lines of the table on a file.
fn compare(shape: &Shape, lines: impl Iterator<Item = Line>, findings: &Mutex<Findings>) {
    let Some(inputs) = prepare(shape) else {
        return;
    };
    let is_whole = shape.part == Part::Whole;
    let ours = [env!("CARGO_BIN_EXE_pbfhogg"), "osmium"];
    for line in lines {
        let command = line.command.split(' ').next().unwrap_or_default();
        if !inputs.is_in_order && !WITHOUT_ORDER.contains(&command) {
            continue;
        }
        let [ours, theirs] =
            [&ours[..], &["osmium"][..]].map(|program| run(program, &line, &inputs, is_whole));
        if ours == theirs {
            continue;
        }
        let mut findings = findings.lock().unwrap();
        if line.may_differ(shape) {
            findings.differing.insert(line.text);
        } else {
            let name = shape.name();
            let difference = difference(&ours, &theirs);
            findings
                .complaints
                .push(format!("{}\n  {name}\n{difference}", line.text));
        }
    }
}

#[test]
fn each_command_does_the_same_under_the_second_name_with_files_of_other_programs() {
    if !osmium_is_as_described() {
        return;
    }
    let lines = table();
    let reasons = keys_with_reasons();
    let keys = lines.iter().filter_map(|line| line.key);
    let unknown: Vec<&str> = keys.filter(|key| !reasons.contains(*key)).collect();
    assert!(unknown.is_empty(), "no rows for {unknown:?}");
    let shapes = writers::shapes();
    // In short runs, every second line has its turn with one file.
    let turns = 2 * shapes.len();
    let shapes = Mutex::new(shapes.into_iter().enumerate());
    let findings = Mutex::new(Findings::default());
    let work = || {
        while let Some((turn, shape)) = { shapes.lock().unwrap().next() } {
            let lines = in_turn(turn, turns, lines.iter().copied());
            compare(&shape, lines, &findings);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(work);
        }
    });
    let Findings {
        mut complaints,
        differing,
    } = findings.into_inner().unwrap();
    // In short runs, few files have their turn.
    if is_long() {
        let alike = lines.iter().filter(|line| line.key.is_some());
        let alike = alike.filter(|line| !differing.contains(line.text));
        complaints.extend(alike.map(|line| format!("{}: the programs do not differ", line.text)));
    }
    let count = complaints.len();
    complaints.truncate(40);
    assert!(
        count == 0,
        "{count} differences:\n{}",
        complaints.join("\n")
    );
}
