//! `diff` as a list of changes: by region and by tag, as features and tables, and by user or changeset. All of it is
//! compared with plain lists of the objects of both files.

use crate::common::answers::ask;
use crate::common::comparison::{expected, same_content, without_common};
use crate::common::oracle::andorra;
use crate::common::{Arg, Kind, Object, decode, is_long, run_fail, run_ok, world};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A box in the middle of Andorra la Vella: west, south, east, north in degrees.
const BOX: [f64; 4] = [1.51, 42.5, 1.53, 42.515];

type Key = (&'static str, i64);
/// The objects of a file, by kind and id.
type Objects = BTreeMap<Key, Object>;

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Node => "node",
        Kind::Way => "way",
        Kind::Relation => "relation",
    }
}

/// Two states of a country, and their objects.
struct States {
    files: [PathBuf; 2],
    objects: [Objects; 2],
}

fn states() -> &'static States {
    static STATES: LazyLock<States> = LazyLock::new(States::read);
    &STATES
}

impl States {
    fn read() -> Self {
        Self::of(["a", "b"].map(andorra))
    }

    fn of(files: [PathBuf; 2]) -> Self {
        let objects = files.each_ref().map(|path| {
            let objects = decode::objects(path).into_iter();
            objects
                .map(|object| ((name(object.kind), object.id), object))
                .collect::<Objects>()
        });
        Self { files, objects }
    }

    /// Two days of a synthetic world, whose objects have users, unlike those of public extracts.
    fn with_users(dir: &Path) -> Self {
        let old = world(dir, "100000");
        let [changes, new] = ["001.osc.gz", "new.osm.pbf"].map(|name| dir.join(name));
        run_ok(&[&"apply-changes", &"-q", &old, &changes, &"-o", &new]);
        Self::of([old, new])
    }

    fn diff(&self, args: &[Arg]) -> String {
        let [old, new] = &self.files;
        ask(&[&[&"diff" as Arg, old, new], args].concat()).stdout
    }

    /// The states of each object that differs.
    fn changes(&self) -> BTreeMap<Key, [Option<&Object>; 2]> {
        let [old, new] = &self.objects;
        let keys = old.keys().chain(new.keys());
        let pairs = keys.map(|key| (*key, [old.get(key), new.get(key)]));
        pairs
            .filter(|(_, pair)| !matches!(pair, [Some(old), Some(new)] if same_content(old, new)))
            .collect()
    }
}

fn tags(object: &Object) -> Value {
    let tags = object
        .tags
        .iter()
        .map(|(key, value)| (key.clone(), json!(value)));
    Value::Object(tags.collect::<Map<_, _>>())
}

/// Formats a time in seconds since 1970.
pub fn time(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
    let z = days + 719_468;
    let (era, doe) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (day, month) = (
        doy - (153 * mp + 2) / 5 + 1,
        if mp < 10 { mp + 3 } else { mp - 9 },
    );
    let year = yoe + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The properties that the feature of a change has.
fn properties((kind, id): Key, pair: [Option<&Object>; 2]) -> Value {
    let action = match pair {
        [None, _] => "create",
        [_, None] => "delete",
        _ => "modify",
    };
    let mut found = json!({"action": action, "type": kind, "id": id, "indirect": false});
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            found[name] = value;
        }
    };
    let [old, new] = pair;
    put(
        "old_version",
        old.and_then(|old| old.version).map(Value::from),
    );
    put("old_tags", old.map(tags));
    put("new_tags", new.map(tags));
    put(
        "new_version",
        new.and_then(|new| new.version).map(Value::from),
    );
    put(
        "user",
        new.and_then(|new| new.user.clone()).map(Value::from),
    );
    // Public extracts have 0 for what they leave out.
    let known = |number: Option<i64>| number.filter(|number| *number != 0).map(Value::from);
    put("uid", known(new.and_then(|new| new.uid)));
    put("changeset", known(new.and_then(|new| new.changeset)));
    put(
        "timestamp",
        new.and_then(|new| new.timestamp).map(time).map(Value::from),
    );
    found
}

/// Compares the features of the differences with the objects. Returns the number of differences.
fn compare_features(states: &States) -> usize {
    let text = states.diff(&[&"-q", &"-f", &"geojsonseq"]);
    let features = text.lines().map(|line| {
        let feature: Value = serde_json::from_str(line.trim_start_matches('\u{1e}')).unwrap();
        feature
    });
    let mut changes = states.changes();
    let count = changes.len();
    for mut feature in features {
        let found = &mut feature["properties"];
        found.as_object_mut().unwrap().remove("old_geometry");
        let kind = ["node", "way", "relation"]
            .into_iter()
            .find(|kind| found["type"] == *kind);
        let key = (kind.unwrap(), found["id"].as_i64().unwrap());
        let pair = changes.remove(&key).unwrap();
        assert_eq!(*found, properties(key, pair));
        // A node is where its new state is; after a deletion, where it was.
        if let ("node", [old, new]) = (key.0, pair) {
            let node = new.or(old).unwrap();
            let place = [node.lon_nano, node.lat_nano].map(|nano| nano as f64 / 1e9);
            assert_eq!(
                feature["geometry"],
                json!({"type": "Point", "coordinates": place})
            );
        }
    }
    assert!(changes.is_empty(), "{:?}", changes.keys().next());
    count
}

#[test]
fn features_of_changes_are_those_of_a_plain_comparison() {
    let dir = tempfile::tempdir().unwrap();
    assert!(compare_features(states()) > if is_long() { 10_000 } else { 1000 });
    assert!(compare_features(&States::with_users(dir.path())) > 20);
}

/// The rows of a table of comma-separated values, by column.
fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv_core::Reader::new();
    let (mut rest, mut rows) = (text.as_bytes(), Vec::new());
    let mut names: Vec<String> = Vec::new();
    let (mut record, mut ends) = (vec![0; 1 << 20], vec![0; 64]);
    loop {
        let (result, read, _, count) = reader.read_record(rest, &mut record, &mut ends);
        rest = &rest[read..];
        match result {
            csv_core::ReadRecordResult::Record => {}
            csv_core::ReadRecordResult::End => return rows,
            other => panic!("{other:?}"),
        }
        let (mut start, mut cells) = (0, Vec::new());
        for end in &ends[..count] {
            cells.push(String::from_utf8(record[start..*end].to_vec()).unwrap());
            start = *end;
        }
        if names.is_empty() {
            names = cells;
        } else {
            assert_eq!(cells.len(), names.len());
            rows.push(names.iter().cloned().zip(cells).collect());
        }
    }
}

#[test]
fn a_table_of_changes_has_the_same_values_as_the_features() {
    let states = states();
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("changes.csv");
    // The name of the output determines the format.
    states.diff(&[&"-q", &"-t", &"way,relation", &"-o", &table]);
    let changes = states.changes();
    let changes = changes.iter().filter(|(key, _)| key.0 != "node");
    let mut changes: BTreeMap<Key, Value> = changes
        .map(|(key, pair)| (*key, properties(*key, *pair)))
        .collect();
    for row in rows(&std::fs::read_to_string(&table).unwrap()) {
        let kind = ["way", "relation"]
            .into_iter()
            .find(|kind| row["type"] == *kind);
        let expected = changes
            .remove(&(kind.unwrap(), row["id"].parse().unwrap()))
            .unwrap();
        for (column, cell) in &row {
            let value = &expected[column];
            match column.as_str() {
                "lon" | "lat" => assert!(cell.is_empty() || cell.parse::<f64>().unwrap() > 0.9),
                "old_tags" | "new_tags" if !value.is_null() => {
                    assert_eq!(serde_json::from_str::<Value>(cell).unwrap(), *value);
                }
                _ => match value {
                    Value::Null => assert_eq!(cell, ""),
                    Value::String(text) => assert_eq!(cell, text),
                    other => assert_eq!(*cell, other.to_string()),
                },
            }
        }
    }
    assert!(changes.is_empty());
}

#[test]
fn changes_are_counted_by_user_and_by_changeset() {
    let dir = tempfile::tempdir().unwrap();
    let states = States::with_users(dir.path());
    for by in ["user", "changeset"] {
        let mut expected: BTreeMap<String, [u64; 3]> = BTreeMap::new();
        for [old, new] in states.changes().into_values() {
            let name = match by {
                "user" => new.and_then(|new| new.user.clone()),
                _ => new.and_then(|new| new.changeset).map(|one| one.to_string()),
            };
            let counts = expected.entry(name.unwrap_or_default()).or_default();
            counts[[old.is_none(), old.is_some() && new.is_some(), new.is_none()]
                .iter()
                .position(|is_so| *is_so)
                .unwrap()] += 1;
        }
        let csv = rows(&states.diff(&[&"--by", &by, &"-f", &"csv"]));
        let counts = csv.iter().map(|row| {
            let counts = ["created", "modified", "deleted"].map(|name| row[name].parse().unwrap());
            (row[by].clone(), counts)
        });
        assert!(counts.collect::<BTreeMap<_, [u64; 3]>>() == expected);
        let changes: Vec<u64> = csv
            .iter()
            .map(|row| row["changes"].parse().unwrap())
            .collect();
        assert!(changes.is_sorted_by(|one, other| one >= other));
        let report: Value = serde_json::from_str(&states.diff(&[&"--by", &by, &"--json"])).unwrap();
        assert_eq!(report["groups"].as_array().unwrap().len(), expected.len());
        let geojson: Value =
            serde_json::from_str(&states.diff(&[&"--by", &by, &"-f", &"geojson"])).unwrap();
        let features = geojson["features"].as_array().unwrap();
        for (feature, group) in features.iter().zip(report["groups"].as_array().unwrap()) {
            assert_eq!(feature["bbox"], group["bbox"]);
            assert_eq!(feature["properties"]["created"], group["created"]);
        }
        assert!(csv.len() > 3);
        // Lines for people: a title, and a line for each group.
        let lines = states.diff(&[&"--by", &by]);
        assert_eq!(lines.lines().count(), expected.len() + 1);
        assert!(lines.lines().next().unwrap().contains(by));
    }
}

#[test]
fn files_without_users_are_counted_with_a_warning() {
    let states = states();
    let [old, new] = &states.files;
    let found = ask(&[&"diff", &"--by", &"user", &"-f", &"csv", old, new]);
    let table = rows(&found.stdout);
    assert_eq!((table.len(), &*table[0]["user"]), (1, ""));
    assert_eq!(table[0]["changes"], states.changes().len().to_string());
    let warning = "no new version has a user or a changeset";
    assert!(found.stderr.contains(warning), "{}", found.stderr);
}

/// Whether an object must be, may be, or must not be in the box: a node of it is there, its own box meets that box, or
/// neither.
fn must_be_in_box(objects: &Objects, object: &Object) -> (bool, bool) {
    let place = |object: &Object| {
        let [lon, lat] = [object.lon_nano, object.lat_nano].map(|nano| nano as f64 / 1e9);
        (lon, lat)
    };
    let node = |id: i64| objects.get(&("node", id)).map(place);
    let mut points = match object.kind {
        Kind::Node => vec![place(object)],
        Kind::Way => object.refs.iter().filter_map(|id| node(*id)).collect(),
        Kind::Relation => return (false, true),
    };
    let [west, south, east, north] = BOX;
    let is_in =
        |(lon, lat): &(f64, f64)| (west..=east).contains(lon) && (south..=north).contains(lat);
    let has_point = points.iter().any(is_in);
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return (false, false);
    };
    let meets = first.0 <= east && last.0 >= west;
    let (low, high) = points
        .iter()
        .fold((90f64, -90f64), |(low, high), (_, lat)| {
            (low.min(*lat), high.max(*lat))
        });
    (has_point, meets && low <= north && high >= south)
}

#[test]
fn differences_in_a_box_are_those_of_objects_that_are_or_were_there() {
    let states = states();
    let edges = BOX.map(|edge| edge.to_string()).join(",");
    let [old, new] = &states.objects;
    let lists = [old, new].map(|objects| objects.values().cloned().collect::<Vec<_>>());
    let all = without_common(&expected(&lists[0], &lists[1], &same_content));
    let lines = states.diff(&[&"-b", &edges]);
    let found: Vec<&str> = lines.lines().collect();
    let mut rest = found.clone();
    for line in &all {
        let id = line[1..].split(' ').next().unwrap();
        let kind = match id.as_bytes()[0] {
            b'n' => "node",
            b'w' => "way",
            _ => "relation",
        };
        let key = (kind, id[1..].parse().unwrap());
        let [(was, may_have_been), (is, may_be)] = [old, new].map(|objects| {
            objects
                .get(&key)
                .map_or((false, false), |object| must_be_in_box(objects, object))
        });
        let is_found = found.contains(&line.as_str());
        rest.retain(|found| found != line);
        assert!(is_found || !(was || is), "{line} is missing");
        assert!(!is_found || may_have_been || may_be, "{line} is elsewhere");
    }
    assert!(rest.is_empty(), "{rest:?}");
    assert!(
        found.len() > 50 && found.len() * 4 < all.len(),
        "{}",
        found.len()
    );
    // Every form has the same objects.
    let ids = |text: &str| {
        let ids = text
            .lines()
            .map(|line| line[1..].split(' ').next().unwrap().to_owned());
        let mut ids: Vec<String> = ids.collect();
        ids.dedup();
        ids
    };
    let expected = ids(&lines);
    assert_eq!(ids(&states.diff(&[&"-b", &edges, &"-f", &"opl"])), expected);
    let table = rows(&states.diff(&[&"-b", &edges, &"-f", &"csv"]));
    let listed = table
        .iter()
        .map(|row| format!("{}{}", &row["type"][..1], row["id"]));
    assert_eq!(listed.collect::<Vec<_>>(), expected);
    let counts: Value = serde_json::from_str(&states.diff(&[&"-b", &edges, &"--json"])).unwrap();
    let total = ["nodes", "ways", "relations"].iter().map(|kind| {
        ["left", "right", "different"]
            .map(|name| counts[kind][name].as_u64().unwrap())
            .iter()
            .sum::<u64>()
    });
    assert_eq!(total.sum::<u64>(), found.len() as u64);
}

#[test]
fn a_group_of_a_box_counts_the_changes_that_are_listed_there() {
    let edges = BOX.map(|edge| edge.to_string()).join(",");
    let diff = |more: &[Arg]| states().diff(&[&[&"-q" as Arg, &"-b", &edges], more].concat());
    let list = rows(&diff(&[&"-f", &"csv"]));
    let groups: Value =
        serde_json::from_str(&diff(&[&"--by", &"user", &"-f", &"geojson"])).unwrap();
    let [group] = groups["features"].as_array().unwrap().as_slice() else {
        panic!("{groups}");
    };
    let of = &group["properties"];
    assert_eq!(
        (&of["user"], &of["changes"]),
        (&Value::Null, &json!(list.len()))
    );
    let count = |column: &str, value: &str| list.iter().filter(|row| row[column] == value).count();
    for (field, column, value) in [
        ("created", "action", "create"),
        ("modified", "action", "modify"),
        ("deleted", "action", "delete"),
        ("nodes", "type", "node"),
        ("ways", "type", "way"),
        ("relations", "type", "relation"),
    ] {
        assert_eq!(of[field], json!(count(column, value)), "{field}");
    }
    let times = list.iter().map(|row| &row["timestamp"]);
    let times = times.filter(|time| !time.is_empty());
    assert_eq!(of["first"], json!(times.clone().min()));
    assert_eq!(of["last"], json!(times.max()));
    let edges = |at: usize| group["bbox"][at].as_f64().unwrap();
    for row in list.iter().filter(|row| !row["lon"].is_empty()) {
        let [lon, lat] = ["lon", "lat"].map(|name| row[name].parse::<f64>().unwrap());
        assert!((edges(0)..=edges(2)).contains(&lon), "{row:?}");
        assert!((edges(1)..=edges(3)).contains(&lat), "{row:?}");
    }
}

#[test]
fn differences_with_a_tag_are_those_of_objects_that_have_or_had_it() {
    let states = states();
    let lines = states.diff(&[&"--filter", &"w/highway=residential"]);
    let has = |object: &Object| {
        let mut tags = object.tags.iter();
        tags.any(|(key, value)| key == "highway" && value == "residential")
    };
    let changes = states.changes();
    let expected = changes.iter().filter(|((kind, _), pair)| {
        *kind == "way" && pair.iter().flatten().any(|object| has(object))
    });
    let found = lines
        .lines()
        .map(|line| line[2..].split(' ').next().unwrap().parse::<i64>().unwrap());
    assert!(found.eq(expected.map(|((_, id), _)| *id)));
    assert!(lines.lines().count() > 20);
}

#[test]
fn objects_with_a_new_version_only_are_counted_and_not_listed() {
    let states = states();
    let [old, new] = &states.objects;
    let pairs = old
        .iter()
        .filter_map(|(key, old)| Some((old, new.get(key)?)));
    let only = pairs.filter(|(old, new)| same_content(old, new) && old.version != new.version);
    let only = only.count() as u64;
    assert!(only > 10);
    for args in [&[&"--json" as Arg][..], &[&"--json", &"--metadata"]] {
        let counts: Value = serde_json::from_str(&states.diff(args)).unwrap();
        assert_eq!(counts["new_version_only"], only);
    }
    let [old, new] = &states.files;
    let dir = tempfile::tempdir().unwrap();
    let features = dir.path().join("changes.geojson");
    let said = ask(&[&"diff", &"-v", old, new, &"-o", &features]);
    assert!(
        said.stderr.contains("with a new version only"),
        "{}",
        said.stderr
    );
    assert_eq!(said.status, 0);
    assert_eq!(
        ask(&[&"diff", &"-q", &"-f", &"csv", &"--exit-code", old, new]).status,
        1
    );
}

#[test]
fn options_of_changes_that_do_not_go_together_are_refused() {
    let states = states();
    let [old, new] = &states.files;
    for (args, cause) in [
        (
            &[&"-f" as Arg, &"osc", &"--filter", &"highway"][..],
            "all differences",
        ),
        (
            &[&"-b", &"1,42,2,43", &"-o", &"x.osc.pbf"],
            "all differences",
        ),
        (&[&"--by", &"user", &"-f", &"opl"], "--by writes"),
        (&[&"--by", &"user", &"-f", &"adiff"], "--by writes"),
        (&[&"-f", &"adiff", &"-t", &"node"], "all kinds"),
        (&[&"-f", &"csv", &"--html", &"x.html"], "page"),
        (&[&"--area", &"Atlantis"], "no boundary"),
    ] {
        let message = run_fail(&[&[&"diff" as Arg, old, new], args].concat());
        assert!(message.contains(cause), "{message}");
    }
    let message = run_fail(&[
        &"derive-changes",
        old,
        new,
        &"--by",
        &"user",
        &"-o",
        &"x.osc",
    ]);
    assert!(message.contains("all differences"), "{message}");
}

#[test]
fn a_page_of_a_region_lists_all_changes_there_and_says_both_times() {
    let states = states();
    let [old, new] = &states.files;
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("changes.html");
    let edges = BOX.map(|edge| edge.to_string()).join(",");
    run_ok(&[&"diff", &"-b", &edges, &"--html", &page, old, new]);
    let text = std::fs::read_to_string(&page).unwrap();
    let (_, rest) = text
        .split_once("<script type=\"application/json\" id=\"data\">")
        .unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    let dates = json!(["2020-05-01T20:59:03Z", "2021-04-14T20:21:42Z"]);
    assert_eq!(data["charts"]["dates"], dates);
    assert_eq!(data["is_selection"], true);
    let listed = data["objects"]["features"].as_array().unwrap();
    assert_eq!(data["objects"]["total"], listed.len());
    let direct = listed
        .iter()
        .filter(|feature| feature["properties"]["indirect"] == false);
    let lines = states.diff(&[&"-b", &edges]).lines().count();
    assert_eq!(direct.count(), lines);
}
