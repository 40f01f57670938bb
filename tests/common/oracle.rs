//! Oracles to compare results with: osmium and other programs, and real files.
//!
//! Tests ask here for every program that they compare with. If one is missing, they leave out the comparison, and the
//! end of the run says so; in CI they fail ([`super::missing`]).

use super::missing::{is_required, record};
use super::{Arg, Kind, Object, decode, is_long};
use std::collections::BTreeMap;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock};

/// The value for an absent coordinate in results of [`opl_objects`] and [`as_opl_shows`].
pub const NO_LOCATION_NANO: i64 = i64::MAX;

/// A real file by name, in `tests/data` or in the folder that `PBFHOGG_DATA` names.
pub fn real_file(name: &str) -> PathBuf {
    let mut paths = data_folders().into_iter().map(|folder| folder.join(name));
    let path = paths.find(|path| path.is_file());
    path.unwrap_or_else(|| panic!("no {name} in tests/data, which is a part of the repository"))
}

/// Files that short test runs skip, because another file was written by the same program and has the same shape.
const STOOD_FOR: [&str; 5] = [
    "andorra-a.osm.pbf",
    "andorra-b.osm.pbf",
    "andorra-c.osm.pbf",
    "liechtenstein-c.osm.pbf",
    "malta.osm.pbf",
];

/// The PBF files in `tests/data` and in the folder that `PBFHOGG_DATA` names, sorted by name: one of each shape, or all
/// of them with `PBFHOGG_LONG=1`. Short runs have the middle of Heidelberg instead of the whole file.
pub fn real_files() -> Vec<PathBuf> {
    let stands_for_itself =
        |path: &PathBuf| is_long() || !STOOD_FOR.iter().any(|name| path.ends_with(name));
    let files = all_real_files().into_iter().filter(stands_for_itself);
    let part = |path: PathBuf| {
        if path.ends_with("heidelberg.osm.pbf") && !is_long() {
            middle_of(path, "8.66,49.39,8.72,49.42")
        } else {
            path
        }
    };
    let mut files: Vec<PathBuf> = files.map(part).collect();
    files.sort();
    files
}

/// All PBF files in `tests/data` and in the folder that `PBFHOGG_DATA` names, in short runs, too, sorted by name.
pub fn all_real_files() -> Vec<PathBuf> {
    let entries = data_folders()
        .into_iter()
        .flat_map(|folder| std::fs::read_dir(folder).expect("the data folder opens"));
    let paths = entries.map(|entry| entry.expect("the data folder can be listed").path());
    let mut files: Vec<PathBuf> = paths.filter(|path| is_pbf(path)).collect();
    files.sort();
    files
}

/// Andorra at one of the times `a`, `b` and `c`; in short runs the middle of the country.
pub fn andorra(time: &str) -> PathBuf {
    let whole = real_file(&format!("andorra-{time}.osm.pbf"));
    if is_long() {
        whole
    } else {
        middle_of(whole, "1.49,42.48,1.56,42.53")
    }
}

/// The middle of a real file, cut out by osmium, which has written the whole file, too. Returns `whole` if osmium is
/// missing.
fn middle_of(whole: PathBuf, edges: &str) -> PathBuf {
    static MIDDLES: Mutex<BTreeMap<PathBuf, Option<PathBuf>>> = Mutex::new(BTreeMap::new());
    let cut = || {
        let name = whole.file_name().expect("a real file").to_string_lossy();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (middle, part) = (
            folder.join(&*name),
            folder.join(format!("{}-{name}", std::process::id())),
        );
        let mut extract = Command::new("osmium");
        extract
            .args(["extract", "-b", edges])
            .args(["--output-header", "osmosis_replication_timestamp!", "-o"])
            .arg(&part)
            .arg(&whole);
        let is_cut = extract.output().is_ok_and(|done| done.status.success());
        (is_cut && std::fs::rename(&part, &middle).is_ok()).then_some(middle)
    };
    let mut middles = MIDDLES.lock().expect("nothing panics while it is locked");
    let middle = middles.entry(whole.clone()).or_insert_with(cut).clone();
    middle.unwrap_or(whole)
}

/// The real files of at most 500 kB, for tests that write each in many forms; in the long version all real files.
pub fn small_real_files() -> Vec<PathBuf> {
    let is_small = |path: &PathBuf| path.metadata().expect("a real file").len() <= 500_000;
    let files = real_files().into_iter();
    files.filter(|path| is_long() || is_small(path)).collect()
}

/// Whether osmium can be run.
#[track_caller]
pub fn osmium() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    has(&FOUND, "osmium", &["--version"])
}

/// Whether osmconvert can be run.
#[track_caller]
pub fn osmconvert() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    has(&FOUND, "osmconvert", &["-h"])
}

/// Whether osmosis can be run.
#[track_caller]
pub fn osmosis() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    has(&FOUND, "osmosis", &["-q", "-v", "0"])
}

/// Whether osmcoastline can be run, and ogr2ogr, which reads its output.
#[track_caller]
pub fn osmcoastline() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    static READ: OnceLock<bool> = OnceLock::new();
    has(&FOUND, "osmcoastline", &["--version"]) && has(&READ, "ogr2ogr", &["--version"])
}

/// Whether strace can be run.
#[track_caller]
pub fn strace() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    has(&FOUND, "strace", &["-V"])
}

/// Whether ogrinfo of GDAL can be run.
#[track_caller]
pub fn ogrinfo() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    has(&FOUND, "ogrinfo", &["--version"])
}

/// The first Python that has pyosmium.
#[track_caller]
pub fn python_with_osmium() -> Option<&'static str> {
    static FOUND: OnceLock<Option<&str>> = OnceLock::new();
    let names = ["python3", "/usr/bin/python3"];
    let first = || first_of(&names, &["-c", "import osmium"]);
    let found = *FOUND.get_or_init(first);
    available(found.is_some(), "no python3 with pyosmium");
    found
}

/// Runs Python with the packages of `tests/readers/python`. `None` if they cannot be installed.
#[track_caller]
pub fn python_with_readers(args: &[Arg], directory: &Path) -> Option<Output> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers/python");
    let mut command = Command::new(&python);
    command.args(args.iter().map(|arg| arg.as_ref()));
    let output = command.current_dir(directory).output().unwrap();
    let has_readers = output.status.code() != Some(2);
    available(has_readers, "the packages for Python cannot be installed").then_some(output)
}

/// The name of Chromium here.
#[track_caller]
pub fn chromium() -> Option<&'static str> {
    static FOUND: OnceLock<Option<&str>> = OnceLock::new();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = *FOUND.get_or_init(|| first_of(&names, &["--version"]));
    available(found.is_some(), "no Chromium on the PATH");
    found
}

#[track_caller]
fn has(found: &OnceLock<bool>, program: &str, args: &[&str]) -> bool {
    let found = *found.get_or_init(|| runs(Command::new(program).args(args)));
    available(found, &format!("no {program} on the PATH"))
}

fn first_of(programs: &[&'static str], args: &[&str]) -> Option<&'static str> {
    let mut programs = programs.iter().copied();
    programs.find(|program| runs(Command::new(program).args(args)))
}

/// Whether a command can be run and succeeds.
pub fn runs(command: &mut Command) -> bool {
    let output = command.output();
    output.is_ok_and(|output| output.status.success())
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

/// Copies a real file with new, small ids, which reduce osmium's memory and time. `None` without osmium.
pub fn renumbered(name: &str, dir: &Path) -> Option<PathBuf> {
    if !osmium() {
        return None;
    }
    let (input, output) = (real_file(name), dir.join(name));
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

/// Whether a program is there. If it is not, the test fails in CI; elsewhere it is named at the end of the run, and has
/// to leave out the comparison.
#[track_caller]
pub fn available(is_found: bool, reason: &str) -> bool {
    if !is_found {
        assert!(!is_required(), "{reason}, but the test needs it");
        record(reason, Location::caller());
    }
    is_found
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
