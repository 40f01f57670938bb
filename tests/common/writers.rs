//! Real files as other programs write them.

use super::oracle::{osmconvert, osmosis, python_with_osmium, real_files, runs};
use super::{decode, in_turn, is_long};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// A program that writes files, with its options.
#[derive(Debug, Clone, Copy)]
pub struct Writer {
    /// The name in messages and in tables of commands.
    pub name: &'static str,
    program: Program,
}

#[derive(Debug, Clone, Copy)]
enum Program {
    /// osmium, with a command and its options.
    Osmium(&'static [&'static str]),
    /// osmconvert, with options.
    Osmconvert(&'static [&'static str]),
    /// osmosis, with options of the task that writes.
    Osmosis(&'static [&'static str]),
    /// A script that gives each object to a writer of pyosmium.
    Pyosmium,
}

const fn writer(name: &'static str, program: Program) -> Writer {
    Writer { name, program }
}

/// The writers, in the order in which extracts take them in short runs.
pub const WRITERS: [Writer; 12] = [
    writer("osmosis", Program::Osmosis(&[])),
    writer("osmium-sort", Program::Osmium(&["sort"])),
    writer("osmconvert", Program::Osmconvert(&[])),
    writer(
        "osmium-without-metadata",
        Program::Osmium(&["cat", "-f", "pbf,add_metadata=none"]),
    ),
    writer("pyosmium", Program::Pyosmium),
    writer(
        "osmosis-without-metadata",
        Program::Osmosis(&["omitmetadata=true"]),
    ),
    writer(
        "osmium-plain",
        Program::Osmium(&[
            "cat",
            "-f",
            "pbf,pbf_compression=none,pbf_dense_nodes=false",
        ]),
    ),
    writer("osmium-cat", Program::Osmium(&["cat"])),
    writer(
        "osmium-lz4",
        Program::Osmium(&["cat", "-f", "pbf,pbf_compression=lz4"]),
    ),
    writer(
        "osmium-versions",
        Program::Osmium(&["cat", "-f", "pbf,add_metadata=version+timestamp"]),
    ),
    writer(
        "osmium-located",
        Program::Osmium(&["add-locations-to-ways", "-n", "--ignore-missing-nodes"]),
    ),
    writer(
        "osmconvert-without-authors",
        Program::Osmconvert(&["--drop-author"]),
    ),
];

const PYOSMIUM: &str = "
import osmium, sys
class Handler(osmium.SimpleHandler):
    def node(self, object): writer.add_node(object)
    def way(self, object): writer.add_way(object)
    def relation(self, object): writer.add_relation(object)
writer = osmium.SimpleWriter(sys.argv[2])
Handler().apply_file(sys.argv[1])
writer.close()
";

impl Writer {
    /// Writes the objects of a file to a new file. Returns whether the program is there.
    #[track_caller]
    pub fn write(&self, input: &Path, output: &Path) -> bool {
        let mut command = match self.program {
            Program::Osmium(args) => {
                let mut osmium = Command::new("osmium");
                osmium.args(args).arg(input).arg("-o").arg(output);
                osmium
            }
            Program::Osmconvert(args) => {
                if !osmconvert() {
                    return false;
                }
                let mut osmconvert = Command::new("osmconvert");
                let output = format!("-o={}", output.display());
                osmconvert
                    .arg(input)
                    .args(args)
                    .args(["--out-pbf", &output]);
                osmconvert
            }
            Program::Osmosis(args) => {
                if !osmosis() {
                    return false;
                }
                let mut osmosis = Command::new("osmosis");
                osmosis.args(["-q", "--rb"]).arg(input);
                osmosis.arg("--wb").arg(output).args(args);
                osmosis
            }
            Program::Pyosmium => {
                let Some(name) = python_with_osmium() else {
                    return false;
                };
                let mut python = Command::new(name);
                python.args(["-c", PYOSMIUM]).arg(input).arg(output);
                python
            }
        };
        succeed(&mut command);
        true
    }
}

/// Runs a command, and expects success.
pub fn succeed(command: &mut Command) {
    let done = command.output().expect("the program starts");
    assert!(done.status.success(), "{command:?}: {done:?}");
}

/// The part of an extract that a test takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All objects.
    Whole,
    /// The objects around the middle, about two thousand.
    Middle,
}

/// An extract as a program has written it.
#[derive(Debug, Clone)]
pub struct Shape {
    /// The extract.
    pub extract: PathBuf,
    /// The part of the extract.
    pub part: Part,
    /// The program; `None` for the file as it is.
    pub writer: Option<Writer>,
}

/// The middles of the extracts of [`real_files`]: each program has written that of one extract. In long runs, every
/// program has written each middle, and there is also the whole extract as it is. Histories are left out.
pub fn shapes() -> Vec<Shape> {
    let mut extracts = real_files();
    extracts.retain(|path| !path.to_string_lossy().contains(".osh."));
    let (count, mut shapes) = (extracts.len(), Vec::new());
    for (turn, extract) in extracts.into_iter().enumerate() {
        let shape = |part, writer| Shape {
            extract: extract.clone(),
            part,
            writer,
        };
        let is_small = || std::fs::metadata(&extract).unwrap().len() < 100_000;
        if edges_of_middle(&extract).is_some() || is_small() {
            let writers = in_turn(turn, count, WRITERS);
            shapes.extend(writers.map(|writer| shape(Part::Middle, Some(writer))));
        }
        // osmium does not export such ways without an option.
        let is_located = || {
            let features = decode::header(&extract).optional;
            features.iter().any(|name| name == "LocationsOnWays")
        };
        if is_long() && !is_located() {
            shapes.push(shape(Part::Whole, None));
        }
    }
    shapes
}

/// The boxes that are cut out of extracts, by the start of the name.
static MIDDLES: [(&str, &str); 10] = [
    ("andorra-a.", "1.5348,42.5320,1.5628,42.5520"),
    ("andorra-b.", "1.5344,42.5320,1.5624,42.5520"),
    ("andorra-c.", "1.5327,42.5327,1.5607,42.5527"),
    ("baltimore.", "-76.5759,39.2783,-76.5647,39.2863"),
    ("heidelberg.", "8.7129,49.4090,8.7171,49.4120"),
    ("helsinki.", "24.9429,60.1695,24.9457,60.1715"),
    ("liechtenstein-c.", "9.5322,47.1421,9.5434,47.1501"),
    ("malta.", "14.4464,35.8921,14.4548,35.8981"),
    ("monaco.", "7.4197,43.7338,7.4239,43.7368"),
    ("porto.", "-8.6108,41.1430,-8.6080,41.1450"),
];

/// The edges of the middle of an extract; `None` for an extract that the list does not name.
fn edges_of_middle(extract: &Path) -> Option<&'static str> {
    let name = extract.file_name()?.to_string_lossy();
    let found = MIDDLES.iter().find(|(start, _)| name.starts_with(start));
    found.map(|(_, edges)| *edges)
}

impl Shape {
    /// A name for messages.
    pub fn name(&self) -> String {
        let extract = self.extract.file_name().unwrap_or_default();
        let writer = self.writer.map_or("as-it-is", |writer| writer.name);
        format!("{} {writer}", extract.display())
    }

    /// Writes the file. `directory` gets what is made on the way. Returns whether the program is there.
    #[track_caller]
    pub fn write(&self, directory: &Path, output: &Path) -> bool {
        let part = match (self.part, edges_of_middle(&self.extract)) {
            (Part::Middle, Some(edges)) => part_of(&self.extract, edges, directory),
            _ => self.extract.clone(),
        };
        match &self.writer {
            Some(writer) => writer.write(&part, output),
            None => std::fs::copy(&part, output).is_ok(),
        }
    }
}

/// The part of an extract in a box, in a file in `directory`. It is cut out once for all writers.
fn part_of(extract: &Path, edges: &str, directory: &Path) -> PathBuf {
    static PARTS: Mutex<BTreeMap<PathBuf, Vec<u8>>> = Mutex::new(BTreeMap::new());
    let part = directory.join("part.osm.pbf");
    let mut parts = PARTS.lock().expect("every part can be cut out");
    let bytes = parts.entry(extract.to_owned()).or_insert_with(|| {
        cut(extract, edges, directory, &part);
        std::fs::read(&part).expect("osmium has written the part")
    });
    std::fs::write(&part, bytes).expect("the part can be written");
    part
}

/// Cuts a box out of an extract. The header gets the box and a replication state, as public extracts have them. osmium
/// cuts, and needs files in order: others are sorted before.
fn cut(extract: &Path, edges: &str, directory: &Path, part: &Path) {
    let sorted = directory.join("sorted.osm.pbf");
    let cut_out = |input: &Path| {
        let mut osmium = Command::new("osmium");
        osmium.args(["extract", "-O", "--set-bounds", "-b", edges]);
        osmium.args([
            "--output-header=osmosis_replication_sequence_number=17",
            "--output-header=osmosis_replication_timestamp=2021-10-28T20:21:09Z",
            "--output-header=osmosis_replication_base_url=http://example.com/updates",
        ]);
        osmium.arg("-o").arg(part).arg(input);
        osmium
    };
    if !runs(&mut cut_out(extract)) {
        let mut sort = Command::new("osmium");
        succeed(sort.arg("sort").arg(extract).arg("-o").arg(&sorted));
        succeed(&mut cut_out(&sorted));
    }
}
