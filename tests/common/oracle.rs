//! Oracles to compare results with: osmium, real files, and crafted blocks of known content.
//!
//! If an oracle is missing, a test prints that it is skipped and passes. With `PBFHOGG_REQUIRE_ORACLES=1` it fails.

use super::craft::{Layout, Message, Shape, block, block_of_groups, file, header_payload};
use super::{
    Arg, Kind, Object, decode, is_long, known, mixed_objects, node, relation, way, with_metadata,
};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The value for an absent coordinate in results of [`opl_objects`] and [`as_opl_shows`].
pub const NO_LOCATION_NANO: i64 = i64::MAX;

/// A real file by name, in `tests/data` or in the folder that `PBFHOGG_DATA` names; `None` if it is in neither.
pub fn real_file(name: &str) -> Option<PathBuf> {
    let mut paths = data_folders().into_iter().map(|folder| folder.join(name));
    let path = paths.find(|path| path.is_file());
    available(path.is_some(), &format!("no {name} in tests/data"));
    path
}

/// Files that short test runs skip, because another file was written by the same program and has the same shape.
const STOOD_FOR: [&str; 4] = [
    "andorra-a.osm.pbf",
    "andorra-b.osm.pbf",
    "liechtenstein-c.osm.pbf",
    "malta.osm.pbf",
];

/// The PBF files in `tests/data` and in the folder that `PBFHOGG_DATA` names, sorted by name: one of each shape, or all
/// of them with `PBFHOGG_LONG=1`.
pub fn real_files() -> Vec<PathBuf> {
    let entries = data_folders()
        .into_iter()
        .flat_map(|folder| std::fs::read_dir(folder).expect("the data folder opens"));
    let paths = entries.map(|entry| entry.expect("the data folder can be listed").path());
    let stands_for_itself =
        |path: &PathBuf| is_long() || !STOOD_FOR.iter().any(|name| path.ends_with(name));
    let files = paths.filter(|path| is_pbf(path) && stands_for_itself(path));
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    files
}

/// The real files of at most 500 kB, for tests that write each in many forms; in the long version all real files.
pub fn small_real_files() -> Vec<PathBuf> {
    let is_small = |path: &PathBuf| path.metadata().expect("a real file").len() <= 500_000;
    let files = real_files().into_iter();
    files.filter(|path| is_long() || is_small(path)).collect()
}

/// Whether osmium can be run.
pub fn osmium() -> bool {
    let version = Command::new("osmium").arg("--version").output();
    available(
        version.is_ok_and(|output| output.status.success()),
        "no osmium on the PATH",
    )
}

/// Whether osmconvert can be run.
pub fn osmconvert() -> bool {
    let ran = Command::new("osmconvert").arg("-h").output();
    available(ran.is_ok(), "no osmconvert on the PATH")
}

/// Runs osmconvert, whose output becomes the file `out`. Returns whether it can read its input.
pub fn osmconvert_to(args: &[Arg], out: &Path) -> bool {
    let mut osmconvert = Command::new("osmconvert");
    osmconvert.args(args.iter().map(|arg| arg.as_ref()));
    let output = osmconvert.output().expect("osmconvert starts");
    std::fs::write(out, output.stdout).expect("the output can be written");
    output.status.success()
}

/// The objects that osmium reads in a file: one line of OPL per object, in file order.
pub fn opl(path: &Path) -> Vec<String> {
    osmium_lines("cat", path)
}

/// The objects that osmium reads in a file, as OPL without coordinates in ways.
pub fn opl_without_locations(path: &Path) -> Vec<String> {
    let (status, lines) = osmium_answer(&[&"cat", &path]);
    assert_eq!(status, 0, "osmium cat {}", path.display());
    lines
}

/// Runs an osmium command that writes OSM data. Returns its exit status and the output as lines of OPL.
pub fn osmium_answer(args: &[Arg]) -> (i32, Vec<String>) {
    let mut osmium = Command::new("osmium");
    osmium.args(args.iter().map(|arg| arg.as_ref()));
    let output = osmium.args(["--no-progress", "-f", "opl"]).output();
    let output = output.expect("osmium starts");
    let status = output.status.code().expect("osmium ends by itself");
    let text = String::from_utf8(output.stdout).expect("OPL is UTF-8");
    (status, text.lines().map(str::to_owned).collect())
}

/// The objects of a file in canonical order, as sorted by osmium, as lines of OPL.
pub fn opl_sorted(path: &Path) -> Vec<String> {
    osmium_lines("sort", path)
}

/// Compares lines of OPL. If they differ, panics with the number of lines and the first five differences.
pub fn assert_same_opl(a: &[String], b: &[String]) {
    if a == b {
        return;
    }
    let line = |lines: &[String], index: usize| match lines.get(index) {
        Some(line) => line.chars().take(300).collect(),
        None => String::from("(end)"),
    };
    let longer = a.len().max(b.len());
    let differing: Vec<usize> = (0..longer)
        .filter(|&index| a.get(index) != b.get(index))
        .collect();
    let show = |&index: &usize| {
        format!(
            "line {}\n  a: {}\n  b: {}",
            index + 1,
            line(a, index),
            line(b, index)
        )
    };
    let first: Vec<String> = differing.iter().take(5).map(show).collect();
    let counts = format!(
        "a has {} lines, b has {}, {} differ",
        a.len(),
        b.len(),
        differing.len()
    );
    panic!("{counts}; the first:\n{}", first.join("\n"));
}

/// The objects that osmium reads in a file, comparable with decoded objects after [`as_opl_shows`].
pub fn opl_objects(path: &Path) -> Vec<Object> {
    opl(path).iter().map(|line| opl_object(line)).collect()
}

/// The objects of an OPL file, comparable with decoded objects after [`as_opl_shows`].
pub fn opl_file_objects(path: &Path) -> Vec<Object> {
    let text = std::fs::read_to_string(path).expect("the OPL file can be read");
    text.lines().map(opl_object).collect()
}

/// Copies a real file with new, small ids. They reduce osmium's memory and time.
pub fn renumbered(name: &str, dir: &Path) -> Option<PathBuf> {
    let input = real_file(name).filter(|_| osmium())?;
    let output = dir.join(name);
    let mut command = Command::new("osmium");
    command.args(["renumber", "--no-progress", "-o"]);
    assert!(command.args([&output, &input]).status().unwrap().success());
    Some(output)
}

/// The object with the precision of OPL: coordinates are rounded to 1e-7 degree, and a deleted node or a node with
/// invalid coordinates has no location.
pub fn as_opl_shows(object: &Object) -> Object {
    let mut shown = object.clone();
    if object.kind == Kind::Node {
        let location = (object.lat_nano, object.lon_nano);
        (shown.lat_nano, shown.lon_nano) = shown_location(location, object.visible);
    }
    for location in &mut shown.locations {
        *location = shown_location(*location, true);
    }
    shown
}

/// Reports a missing oracle. The test must return if the result is false.
pub fn available(found: bool, reason: &str) -> bool {
    if !found {
        let required = std::env::var("PBFHOGG_REQUIRE_ORACLES").is_ok_and(|value| value == "1");
        assert!(!required, "PBFHOGG_REQUIRE_ORACLES=1, but {reason}");
        eprintln!("skipped: {reason}");
    }
    found
}

/// `tests/data`, and the folder that `PBFHOGG_DATA` names, if it is set.
fn data_folders() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let more = std::env::var_os("PBFHOGG_DATA").map(PathBuf::from);
    std::iter::once(own).chain(more).collect()
}

fn is_pbf(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "pbf")
}

fn osmium_lines(command: &str, path: &Path) -> Vec<String> {
    let feature = String::from("LocationsOnWays");
    let located = is_pbf(path) && decode::header(path).optional.contains(&feature);
    let format = if located {
        "opl,locations_on_ways=true"
    } else {
        "opl"
    };
    let mut osmium = Command::new("osmium");
    let output = osmium
        .args([command, "--no-progress", "-f", format])
        .arg(path)
        .output()
        .expect("osmium starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "osmium {command} {}: {stderr}",
        path.display()
    );
    let text = String::from_utf8(output.stdout).expect("OPL is UTF-8");
    text.lines().map(str::to_owned).collect()
}

fn shown_location((lat, lon): (i64, i64), visible: bool) -> (i64, i64) {
    let valid = lat.abs() <= 90_000_000_000 && lon.abs() <= 180_000_000_000;
    let rounded = |nano: i64| (nano + 50 * nano.signum()) / 100 * 100;
    if visible && valid {
        (rounded(lat), rounded(lon))
    } else {
        (NO_LOCATION_NANO, NO_LOCATION_NANO)
    }
}

// The OPL format: https://osmcode.org/opl-file-format/

fn opl_object(line: &str) -> Object {
    let mut fields = line.split(' ');
    let (kind, id) = typed_id(fields.next().expect("split gives one field at least"));
    let mut object = Object::new(kind, id);
    for field in fields {
        let (name, value) = field.split_at(1);
        match name {
            "v" => object.version = nonzero(value),
            "d" => object.visible = value == "V",
            "c" => object.changeset = nonzero(value),
            "t" => object.timestamp = (!value.is_empty()).then(|| seconds(value)),
            "i" => object.uid = Some(number(value)),
            "u" => object.user = Some(unescaped(value)).filter(|user| !user.is_empty()),
            "T" => object.tags = items(value).map(tag).collect(),
            "x" => object.lon_nano = nanodegrees(value),
            "y" => object.lat_nano = nanodegrees(value),
            "N" => way_nodes(&mut object, value),
            "M" => object.members = items(value).map(member).collect(),
            _ => panic!("unknown OPL field in: {line}"),
        }
    }
    if object.user.is_none() {
        object.uid = object.uid.filter(|&uid| uid != 0);
    }
    object
}

fn typed_id(field: &str) -> (Kind, i64) {
    let (letter, id) = field.split_at(1);
    let kind = match letter {
        "n" => Kind::Node,
        "w" => Kind::Way,
        "r" => Kind::Relation,
        other => panic!("OPL object type {other}"),
    };
    (kind, number(id))
}

fn way_nodes(way: &mut Object, list: &str) {
    for item in items(list) {
        let (reference, location) = item.split_once('x').unwrap_or((item, "y"));
        let (lon, lat) = location.split_once('y').expect("y in an OPL way node");
        way.refs.push(typed_id(reference).1);
        way.locations.push((nanodegrees(lat), nanodegrees(lon)));
    }
    if way
        .locations
        .iter()
        .all(|&(lat, _)| lat == NO_LOCATION_NANO)
    {
        way.locations.clear();
    }
}

fn member(item: &str) -> (Kind, i64, String) {
    let (object, role) = item.split_once('@').expect("@ in an OPL member");
    let (kind, id) = typed_id(object);
    (kind, id, unescaped(role))
}

fn tag(item: &str) -> (String, String) {
    let (key, value) = item.split_once('=').expect("= in an OPL tag");
    (unescaped(key), unescaped(value))
}

fn items(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').filter(|item| !item.is_empty())
}

fn number(digits: &str) -> i64 {
    digits
        .parse()
        .unwrap_or_else(|error| panic!("OPL number {digits}: {error}"))
}

fn nonzero(digits: &str) -> Option<i64> {
    Some(number(digits)).filter(|&value| value != 0)
}

/// Decodes `%hex%` escapes.
fn unescaped(text: &str) -> String {
    let mut pieces = text.split('%');
    let mut result = pieces.next().unwrap_or("").to_owned();
    while let Some(hex) = pieces.next() {
        let code = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32);
        result.push(code.unwrap_or_else(|| panic!("OPL escape %{hex}%")));
        result.push_str(pieces.next().expect("an OPL escape ends with %"));
    }
    result
}

/// Nanodegrees from decimal degrees with up to 7 decimal places; empty text is [`NO_LOCATION_NANO`].
fn nanodegrees(degrees: &str) -> i64 {
    if degrees.is_empty() {
        return NO_LOCATION_NANO;
    }
    let (whole, fraction) = degrees.split_once('.').unwrap_or((degrees, ""));
    let sign = if degrees.starts_with('-') { -1 } else { 1 };
    number(whole) * 1_000_000_000 + sign * number(&format!("{fraction:0<9}"))
}

/// Seconds since 1970 from a time like 2015-09-17T11:52:00Z.
fn seconds(time: &str) -> i64 {
    let parts: Vec<i64> = time
        .trim_end_matches('Z')
        .split(['-', 'T', ':'])
        .map(number)
        .collect();
    let [year, month, day, hour, minute, second] = parts[..] else {
        panic!("OPL timestamp {time}")
    };
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let february = if leap(year) { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let years = (1970..year)
        .map(|year| if leap(year) { 366 } else { 365 })
        .sum::<i64>();
    let days = years + months.iter().take(month as usize - 1).sum::<i64>() + day - 1;
    ((days * 24 + hour) * 60 + minute) * 60 + second
}

// Crafted blocks.

/// A block and the objects that a decoder must find in it.
#[derive(Debug, Clone)]
pub struct Crafted {
    /// The property that makes the block awkward.
    pub name: &'static str,
    /// The payload of the block's frame.
    pub payload: Vec<u8>,
    /// The objects in the block, in order.
    pub objects: Vec<Object>,
}

impl Crafted {
    fn new(name: &'static str, objects: Vec<Object>, change: impl Fn(&mut Shape)) -> Crafted {
        let mut shape = Shape::USUAL;
        change(&mut shape);
        let payload = block(&objects, &shape);
        Crafted {
            name,
            payload,
            objects,
        }
    }

    /// A file of this block. Its header declares the features that the block uses.
    pub fn file(&self) -> Vec<u8> {
        let mut objects = self.objects.iter();
        let mut required = vec!["OsmSchema-V0.6", "DenseNodes"];
        if objects.clone().any(|object| !object.visible) {
            required.push("HistoricalInformation");
        }
        let located = objects.any(|object| !object.locations.is_empty());
        let optional: &[&str] = if located { &["LocationsOnWays"] } else { &[] };
        let header = header_payload(&required, optional);
        file(header, std::slice::from_ref(&self.payload))
    }
}

/// Valid blocks with properties that readers are known to handle wrongly.
pub fn awkward_blocks() -> Vec<Crafted> {
    let mut blocks = layouts();
    blocks.extend(partial_metadata());
    blocks.extend(other_units());
    blocks.extend(histories());
    blocks.extend(nearly_empty());
    blocks
}

/// The same objects in different layouts.
fn layouts() -> Vec<Crafted> {
    let (bare, full) = (mixed_objects(), known(mixed_objects()));
    let mut blocks = vec![
        Crafted::new("several groups of different kinds", bare.clone(), |_| {}),
        Crafted::new("plain nodes", bare, |s| s.dense = false),
        Crafted::new("full metadata", full.clone(), |_| {}),
        Crafted::new("full metadata on plain nodes", full.clone(), |s| {
            s.dense = false
        }),
    ];
    let layouts = [
        ("unpacked repeated fields", Layout::Unpacked),
        ("packed runs in several pieces", Layout::Split),
        ("fields in reverse order", Layout::Reversed),
        ("unknown fields everywhere", Layout::UnknownFields),
    ];
    for (name, layout) in layouts {
        let change = |shape: &mut Shape| (shape.layout, shape.history) = (layout, true);
        blocks.push(Crafted::new(name, full.clone(), change));
    }
    blocks
}

/// Blocks without some of the metadata.
fn partial_metadata() -> Vec<Crafted> {
    let full = known(mixed_objects());
    let without = |remove: &dyn Fn(&mut Object)| {
        let mut objects = full.clone();
        objects.iter_mut().for_each(remove);
        objects
    };
    let anonymous = without(&|object| (object.uid, object.user) = (None, None));
    let edited = |object: &mut Object| {
        (object.changeset, object.uid, object.user) = (None, None, None);
    };
    let times = without(&edited);
    let versions = without(&|object| {
        edited(object);
        object.timestamp = None;
    });
    let mut some = full.clone();
    for (object, bare) in some.iter_mut().zip(mixed_objects()).step_by(2) {
        *object = bare;
    }
    vec![
        Crafted::new("anonymous edits", anonymous, |_| {}),
        Crafted::new("versions and timestamps", times.clone(), |_| {}),
        Crafted::new("versions only", versions, |_| {}),
        Crafted::new("metadata on some objects", some.clone(), |_| {}),
        Crafted::new("-1 for absent changesets", times, |s| s.absent = -1),
        Crafted::new("-1 for absent metadata", some.clone(), |s| s.absent = -1),
        Crafted::new("-1 for absent metadata of plain nodes", some, |s| {
            (s.absent, s.dense) = (-1, false);
        }),
    ]
}

/// Blocks with unusual granularities and offsets.
fn other_units() -> Vec<Crafted> {
    let coarse = |shape: &mut Shape| {
        shape.granularity = 1000;
        (shape.lat_offset, shape.lon_offset) = (48_000_000_100, -7_000_000_900);
    };
    let coarse_plain = |shape: &mut Shape| {
        coarse(shape);
        shape.dense = false;
    };
    let at =
        |id: i64, lat: i64, lon: i64| node(id, 480_000_001 + lat * 10, -70_000_009 + lon * 10, &[]);
    let mut spots = vec![at(1, 0, 0), at(2, -5, 5), at(3, 123_456, -654_321)];
    let mut located = way(9, &[1, 2, 3], &[]);
    located.locations = spots
        .iter()
        .map(|node| (node.lat_nano, node.lon_nano))
        .collect();
    spots.push(located);
    let full = known(mixed_objects());
    vec![
        Crafted::new("granularity 1000 and offsets", spots.clone(), coarse),
        Crafted::new("granularity 1000 and plain nodes", spots, coarse_plain),
        Crafted::new("granularity 1 and offsets", mixed_objects(), |s| {
            (s.granularity, s.lat_offset, s.lon_offset) = (1, -7, 7);
        }),
        Crafted::new("timestamps in milliseconds", full.clone(), |s| {
            s.date_granularity = 1
        }),
        Crafted::new("timestamps in minutes", full, |s| {
            s.date_granularity = 60_000
        }),
    ]
}

/// Blocks with several versions of an object, some deleted.
fn histories() -> Vec<Crafted> {
    let existing = |object, version| with_metadata(object, version, 1_500_000_000, 7, "mapper");
    let deleted = |object, version| {
        let mut object = existing(object, version);
        object.visible = false;
        object
    };
    let versions = vec![
        existing(node(1, 10, 20, &[("a", "b")]), 1),
        deleted(node(1, 10, 20, &[]), 2),
        existing(node(1, 11, 21, &[("a", "c")]), 3),
        existing(way(1, &[1, 2], &[("a", "b")]), 1),
        deleted(way(1, &[], &[]), 2),
        existing(relation(1, &[(Kind::Way, 1, "outer")], &[]), 1),
        deleted(relation(1, &[], &[]), 2),
    ];
    let deleted_node = vec![versions[1].clone()];
    vec![
        Crafted::new("deleted versions", versions.clone(), |_| {}),
        Crafted::new("visible always written", versions.clone(), |s| {
            s.history = true
        }),
        Crafted::new("deleted plain nodes", versions, |s| s.dense = false),
        Crafted::new("nothing but a deleted node", deleted_node, |_| {}),
    ]
}

/// Blocks without parts that nearly all blocks have.
fn nearly_empty() -> Vec<Crafted> {
    let nodes = vec![node(1, 5, 6, &[]), node(2, 5, 6, &[])];
    let case = |name, groups: &[Message], strings: &[&str], holds_nodes: bool| {
        let payload = block_of_groups(groups.to_vec(), strings, &Shape::USUAL);
        let objects = if holds_nodes {
            nodes.clone()
        } else {
            Vec::new()
        };
        Crafted {
            name,
            payload,
            objects,
        }
    };
    let none = Message::new();
    let dense = |columns: &Message| Message::new().message(2, columns.clone());
    let columns = none.clone().packed_sint(1, &[1, 1]);
    let columns = columns.packed_sint(8, &[5, 0]).packed_sint(9, &[6, 0]);
    let two = dense(&columns);
    let no_info = dense(&columns.clone().message(5, Message::new()));
    let no_tags = dense(&columns.packed_uint(10, &[0, 0]));
    let changesets = Message::new().message(5, Message::new().varint(1, 77));
    let around = [none.clone(), two.clone(), none.clone()];
    let two = &[two][..];
    vec![
        case("no group", &[], &[""], false),
        case("no group and no string", &[], &[], false),
        case("an empty group", &around[..1], &[""], false),
        case("empty groups around a full one", &around, &[""], true),
        case("empty DenseNodes", &[dense(&none)], &[""], false),
        case("a group of changesets", &[changesets], &[""], false),
        case("neither DenseInfo nor keys_vals", two, &[""], true),
        case("an empty DenseInfo", &[no_info], &[""], true),
        case("keys_vals without tags", &[no_tags], &[""], true),
        case("nodes and no string", two, &[], true),
        case("strings that nothing uses", two, &["", "a", "b", "b"], true),
    ]
}
