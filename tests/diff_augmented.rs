//! Augmented diffs, compared with a plain comparison of both states.

use crate::common::augmented::{actions_between, actions_of};
use crate::common::oracle::andorra;
use crate::common::random::Random;
use crate::common::{Kind, Object, craft, decode, is_long, node, run_fail, run_ok};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// Compares the augmented diff of `changes` to `base` with the states before and after.
fn compare(base: &Path, changes: &Path, dir: &Path) -> usize {
    let [after, diff, spooled] =
        ["after.osm.pbf", "diff.adiff", "spooled.adiff"].map(|name| dir.join(name));
    run_ok(&[&"apply-changes", &"-O", &base, &changes, &"-o", &after]);
    run_ok(&[&"augmented-diff", &"-O", &base, &changes, &"-o", &diff]);
    // Without memory, ways are read twice, and are in a temporary file.
    run_ok(&[
        &"augmented-diff",
        &"-O",
        &"--max-memory",
        &"1",
        &base,
        &changes,
        &"-o",
        &spooled,
    ]);
    assert!(std::fs::read(&diff).unwrap() == std::fs::read(&spooled).unwrap());
    let expected = actions_between(&decode::objects(base), &decode::objects(&after));
    let found = actions_of(&std::fs::read_to_string(&diff).unwrap());
    for (found, expected) in found.iter().zip(&expected) {
        same_lines(&without_version(found), &without_version(expected));
    }
    assert_eq!(found.len(), expected.len());
    found.len()
}

/// Returns the text of an action without the version of a deletion. The state after it does not tell this version.
fn without_version(action: &str) -> String {
    let Some((before, after)) = action.split_once("\nnew\n") else {
        return action.to_owned();
    };
    if !action.starts_with("action type=delete") {
        return action.to_owned();
    }
    let words = after
        .split(' ')
        .filter(|word| !word.starts_with("version="));
    format!("{before}\nnew\n{}", words.collect::<Vec<_>>().join(" "))
}

/// Fails with the first line in which two texts of an action differ, and the head of the action.
fn same_lines(found: &str, expected: &str) {
    if found == expected {
        return;
    }
    let (mut lines, mut wanted) = (found.lines(), expected.lines());
    let mut number = 0;
    loop {
        let (line, other) = (lines.next(), wanted.next());
        number += 1;
        let head: Vec<&str> = found.lines().take(2).collect();
        assert_eq!(
            line, other,
            "line {number} of {head:?}: {found}instead of {expected}"
        );
    }
}

#[test]
fn real_changes_do_what_a_plain_comparison_finds() {
    let dir = tempfile::tempdir().unwrap();
    let changes = dir.path().join("changes.osc");
    let mut actions = 0;
    for ([old, new], is_located) in [(["a", "b"], false), (["b", "c"], true)] {
        let [old, new] = [old, new].map(andorra);
        run_ok(&[
            &"diff", &"-q", &"-O", &"-f", &"osc", &old, &new, &"-o", &changes,
        ]);
        if is_long() || !is_located {
            actions += compare(&old, &changes, dir.path());
        }
        if is_long() || is_located {
            let located = dir.path().join("located.osm.pbf");
            run_ok(&[
                &"add-locations-to-ways",
                &"-O",
                &"-n",
                &old,
                &"-o",
                &located,
            ]);
            actions += compare(&located, &changes, dir.path());
        }
    }
    assert!(actions > if is_long() { 10_000 } else { 3000 }, "{actions}");
}

/// A world that random changes are made to.
struct World {
    random: Random,
    objects: BTreeMap<(Kind, i64), Object>,
    /// The objects of the base with a version above 1.
    later_versions: BTreeSet<(Kind, i64)>,
    /// Versions are counted and written.
    has_versions: bool,
    /// The changeset and the time of the next changes; `None` to leave them out.
    upload: Option<(i64, i64)>,
    /// The version of the next created object, which may be one that was deleted before.
    created: i64,
    body: String,
}

const KINDS: [Kind; 3] = [Kind::Node, Kind::Way, Kind::Relation];

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            random: Random(seed),
            objects: BTreeMap::new(),
            later_versions: BTreeSet::new(),
            has_versions: !seed.is_multiple_of(4),
            upload: None,
            created: 50,
            body: String::new(),
        };
        for (kind, count) in KINDS.into_iter().zip([60, 20, 12]) {
            for id in 1..=count {
                let mut object = Object::new(kind, id);
                world.change(&mut object);
                if world.has_versions {
                    object.version = Some(world.random.between(1, 3).into());
                }
                world.objects.insert((kind, id), object);
            }
        }
        let is_later = |object: &&Object| object.version.is_some_and(|version| version > 1);
        let later = world.objects.values().filter(is_later);
        world.later_versions = later.map(|object| (object.kind, object.id)).collect();
        world
    }

    /// Draws an id. Some ids are those of objects that do not exist.
    fn id(&mut self, kind: Kind) -> i64 {
        let most = match kind {
            Kind::Node => 64,
            Kind::Way => 22,
            Kind::Relation => 13,
        };
        self.random.between(1, most).into()
    }

    /// Changes the place, the nodes or the members of an object, or its tags.
    fn change(&mut self, object: &mut Object) {
        let number = self.random.bits(20);
        object.tags = vec![("n".to_owned(), number.to_string())];
        let count = self.random.between(1, 6);
        match object.kind {
            // Every other change of a node leaves its place.
            Kind::Node if object.lat_nano != 0 && number.is_multiple_of(2) => {}
            Kind::Node => {
                object.lat_nano = i64::from(self.random.between(1, 1_000_000)) * 100;
                object.lon_nano = i64::from(self.random.between(-1_000_000, 1_000_000)) * 100;
            }
            Kind::Way if object.refs.is_empty() || number.is_multiple_of(2) => {
                object.refs = (0..count).map(|_| self.id(Kind::Node)).collect();
            }
            Kind::Relation if object.members.is_empty() || number.is_multiple_of(2) => {
                let member = |world: &mut Self| {
                    let kind = KINDS[world.random.below(3usize)];
                    (kind, world.id(kind), "role".to_owned())
                };
                object.members = (0..count).map(|_| member(self)).collect();
            }
            Kind::Way | Kind::Relation => {}
        }
    }

    /// Makes a random change, and adds it to the change file.
    fn step(&mut self) {
        let kind = KINDS[self.random.below(10usize).saturating_sub(4).min(5) / 2];
        let id = self.id(kind);
        let version = self.has_versions;
        match self.objects.remove(&(kind, id)) {
            Some(mut object) if self.random.below(4u64) == 0 => {
                object.version = object.version.map(|version| version + 1);
                object.visible = false;
                self.put("delete", &object);
            }
            Some(mut object) => {
                let has_older = self.later_versions.contains(&(kind, id));
                if has_older && self.random.below(8u64) == 0 {
                    // An outdated version changes nothing.
                    let mut outdated = object.clone();
                    self.change(&mut outdated);
                    outdated.version = Some(1);
                    self.put("modify", &outdated);
                }
                self.change(&mut object);
                object.version = object.version.map(|version| version + 1);
                self.put("modify", &object);
                self.objects.insert((kind, id), object);
            }
            None => {
                let mut object = Object::new(kind, id);
                self.change(&mut object);
                // An object that was deleted comes back with a high version.
                self.created += 10;
                object.version = version.then_some(self.created);
                self.put("create", &object);
                self.objects.insert((kind, id), object);
            }
        }
    }

    /// Writes the objects as a file.
    fn write_base(&mut self, path: &Path) {
        let objects: Vec<Object> = self.objects.values().cloned().collect();
        let blocks: Vec<Vec<u8>> = objects
            .chunks(self.random.between(1, 30) as usize)
            .map(|objects| craft::block(objects, &craft::Shape::USUAL))
            .collect();
        std::fs::write(path, craft::plain_file(&blocks)).unwrap();
    }

    /// Writes the changes since the last call.
    fn write_changes(&mut self, path: &Path) {
        let body = std::mem::take(&mut self.body);
        std::fs::write(
            path,
            format!("<osmChange version=\"0.6\">{body}</osmChange>"),
        )
        .unwrap();
    }

    fn put(&mut self, action: &str, object: &Object) {
        let kind = format!("{:?}", object.kind).to_lowercase();
        let mut text = format!("<{action}><{kind} id=\"{}\"", object.id);
        if let Some(version) = object.version {
            let _ = write!(text, " version=\"{version}\"");
        }
        if let Some((changeset, seconds)) = self.upload {
            let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
            let time = format!("2024-01-01T{hours:02}:{minutes:02}:{seconds:02}Z");
            let _ = write!(text, " changeset=\"{changeset}\" timestamp=\"{time}\"");
        }
        if object.kind == Kind::Node && object.visible {
            let degrees = |nano: i64| nano as f64 / 1e9;
            let (lat, lon) = (degrees(object.lat_nano), degrees(object.lon_nano));
            let _ = write!(text, " lat=\"{lat:.7}\" lon=\"{lon:.7}\"");
        }
        text.push('>');
        if object.visible {
            for node in &object.refs {
                let _ = write!(text, "<nd ref=\"{node}\"/>");
            }
            for (kind, id, role) in &object.members {
                let kind = format!("{kind:?}").to_lowercase();
                let _ = write!(
                    text,
                    "<member type=\"{kind}\" ref=\"{id}\" role=\"{role}\"/>"
                );
            }
            for (key, value) in &object.tags {
                let _ = write!(text, "<tag k=\"{key}\" v=\"{value}\"/>");
            }
        }
        let _ = write!(self.body, "{text}</{kind}></{action}>");
    }
}

#[test]
fn characters_that_xml_does_not_know_are_said() {
    let dir = tempfile::tempdir().unwrap();
    let [base, changes, diff] =
        ["base.osm.pbf", "a.osc", "a.adiff"].map(|name| dir.path().join(name));
    let blocks = [craft::block(
        &[node(1, 5, 5, &[("k", "a\u{1}")])],
        &craft::Shape::USUAL,
    )];
    std::fs::write(&base, craft::plain_file(&blocks)).unwrap();
    let body = "<modify><node id=\"1\" version=\"9\" lat=\"1\" lon=\"1\"/></modify>";
    std::fs::write(
        &changes,
        format!("<osmChange version=\"0.6\">{body}</osmChange>"),
    )
    .unwrap();
    let output = run_ok(&[&"augmented-diff", &base, &changes, &"-o", &diff]);
    let messages = String::from_utf8(output.stderr).unwrap();
    assert!(messages.contains("1 control character"), "{messages}");
}

/// In a file without untagged nodes, their locations are those in the ways.
#[test]
fn nodes_that_only_ways_know_have_locations() {
    let dir = tempfile::tempdir().unwrap();
    let [changes, located, diff] =
        ["a.osc", "located.osm.pbf", "a.adiff"].map(|name| dir.path().join(name));
    let [old, new] = ["b", "c"].map(andorra);
    run_ok(&[&"diff", &"-q", &"-f", &"osc", &old, &new, &"-o", &changes]);
    run_ok(&[&"add-locations-to-ways", &old, &"-o", &located]);
    run_ok(&[&"augmented-diff", &located, &changes, &"-o", &diff]);
    let expected = actions_between(&decode::objects(&old), &decode::objects(&new));
    let places = |actions: &[String]| -> Vec<String> {
        let ways = actions
            .iter()
            .filter(|action| object_of(action).starts_with("way"));
        let lines = ways.flat_map(|action| action.lines());
        let nodes = lines.filter(|line| line.starts_with("nd "));
        nodes
            .map(|line| {
                line.split(' ')
                    .filter(|word| !word.starts_with("version="))
                    .collect()
            })
            .collect()
    };
    let found = actions_of(&std::fs::read_to_string(&diff).unwrap());
    let (found, expected) = (places(&found), places(&expected));
    let unknown = |places: &[String]| {
        places
            .iter()
            .filter(|place| !place.contains("lat="))
            .count()
    };
    // Nodes that a change deletes are unknown after it, and so are those that are not in the file.
    assert_eq!(unknown(&found), unknown(&expected));
    let least = if is_long() { 10_000 } else { 2000 };
    assert!(found.len() > least, "{}", found.len());
}

#[test]
fn random_changes_do_what_a_plain_comparison_finds() {
    let dir = tempfile::tempdir().unwrap();
    let [base, located] = ["base.osm.pbf", "located.osm.pbf"].map(|name| dir.path().join(name));
    let changes = dir.path().join("changes.osc");
    let rounds = if is_long() { 2000 } else { 8 };
    for seed in 0..rounds {
        let mut world = World::new(seed);
        world.write_base(&base);
        for _ in 0..1 + world.random.below(40u64) {
            world.step();
        }
        world.write_changes(&changes);
        println!("seed {seed}");
        compare(&base, &changes, dir.path());
        run_ok(&[
            &"add-locations-to-ways",
            &"-q",
            &"-O",
            &"-n",
            &base,
            &"-o",
            &located,
        ]);
        compare(&located, &changes, dir.path());
    }
}

/// The files of a directory, by changeset. Files without actions are left out.
fn by_changeset(directory: &Path) -> BTreeMap<i64, String> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let changeset = name.strip_suffix(".adiff").unwrap().parse().unwrap();
        let text = std::fs::read_to_string(directory.join(&name)).unwrap();
        if text.contains("<action") {
            files.insert(changeset, text);
        }
    }
    files
}

/// Writes random uploads of a few changesets, and the changes of all of them. Compares the files of the changesets with
/// a plain comparison of the states around each upload. Also writes the files in several runs, as a server does that
/// is updated each minute.
fn compare_changesets(seed: u64, dir: &Path) {
    let path = |name: &str| dir.join(format!("{seed}-{name}"));
    let [base, located, whole, first, minute, after] = [
        "base.osm.pbf",
        "located.osm.pbf",
        "day.osc",
        "now.osm.pbf",
        "minute.osc",
        "after.osm.pbf",
    ]
    .map(path);
    let [at_once, in_runs, of_located] = ["at-once", "in-runs", "of-located"].map(path);
    let mut world = World::new(seed);
    world.write_base(&base);
    std::fs::copy(&base, &first).unwrap();
    let mut day = String::new();
    let mut expected: BTreeMap<i64, BTreeMap<String, String>> = BTreeMap::new();
    let uploads = world.random.between(1, 12).into();
    for upload in 0..uploads {
        let changeset = world.random.between(100, 103).into();
        world.upload = Some((changeset, upload));
        let before: Vec<Object> = world.objects.values().cloned().collect();
        let start = world.body.len();
        for _ in 0..world.random.between(1, 6) {
            world.step();
        }
        day += &world.body[start..];
        let after_it: Vec<Object> = world.objects.values().cloned().collect();
        let of_changeset = expected.entry(changeset).or_default();
        for action in actions_between(&before, &after_it) {
            add_action(of_changeset, &action);
        }
        if upload + 1 == uploads || world.random.below(3u64) == 0 {
            world.write_changes(&minute);
            run_ok(&[
                &"augmented-diff",
                &"--split",
                &first,
                &minute,
                &"-o",
                &in_runs,
            ]);
            run_ok(&[&"apply-changes", &"-O", &first, &minute, &"-o", &after]);
            std::fs::rename(&after, &first).unwrap();
        }
    }
    std::fs::write(
        &whole,
        format!("<osmChange version=\"0.6\">{day}</osmChange>"),
    )
    .unwrap();
    run_ok(&[&"add-locations-to-ways", &"-n", &base, &"-o", &located]);
    for (base, directory) in [(&base, &at_once), (&located, &of_located)] {
        run_ok(&[
            &"augmented-diff",
            &"--split",
            base,
            &whole,
            &"-o",
            directory,
        ]);
    }
    let files = by_changeset(&at_once);
    assert_eq!(files, by_changeset(&of_located));
    expected.retain(|_, actions| !actions.is_empty());
    assert!(files.keys().eq(expected.keys()));
    for (changeset, text) in &files {
        let found = actions_of(text);
        let wanted = &expected[changeset];
        println!("changeset {changeset}");
        for action in &found {
            let wanted = wanted.get(&object_of(action)).map_or("", String::as_str);
            same_lines(&without_version(action), &without_version(wanted));
        }
        assert_eq!(found.len(), wanted.len());
    }
    for (changeset, text) in by_changeset(&in_runs) {
        let wanted = files.get(&changeset).map_or("", String::as_str);
        same_lines(&text, wanted);
    }
    assert!(files.keys().eq(by_changeset(&in_runs).keys()));
}

/// The kind and the id of the object of an action.
fn object_of(action: &str) -> String {
    let mut lines = action.lines().skip(1).skip_while(|line| *line == "old");
    let head = lines.next().unwrap();
    head.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

/// Adds an action to those of a changeset: the first old state and the last new state of each object are kept.
fn add_action(actions: &mut BTreeMap<String, String>, action: &str) {
    let key = object_of(action);
    let Some(before) = actions.remove(&key) else {
        actions.insert(key, action.to_owned());
        return;
    };
    let old = before
        .split_once("old\n")
        .and_then(|(_, states)| states.split_once("new\n"));
    let old = old.map(|(old, _)| old);
    let is_deletion = action.starts_with("action type=delete");
    let new = match action.split_once("new\n") {
        Some((_, new)) => new,
        None => action.split_once('\n').unwrap().1,
    };
    let both = match (old, is_deletion) {
        (None, true) => return,
        (None, false) => format!("action type=create\n{new}"),
        (Some(old), true) => format!("action type=delete\nold\n{old}new\n{new}"),
        (Some(old), false) => format!("action type=modify\nold\n{old}new\n{new}"),
    };
    actions.insert(key, both);
}

#[test]
fn changesets_do_what_their_uploads_do() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..if is_long() { 1000 } else { 6 } {
        println!("seed {seed}");
        compare_changesets(seed, dir.path());
    }
}

/// The change of a node: its id, version and changeset, and whether it is deleted.
type NodeChange = (i64, i64, i64, bool);

/// Writes a change file of nodes.
fn nodes_changed(path: &Path, nodes: &[NodeChange]) {
    let node = |(id, version, changeset, is_deleted): &NodeChange| {
        let (action, place) = if *is_deleted {
            ("delete", "")
        } else {
            ("modify", " lat=\"1\" lon=\"1\"")
        };
        format!(
            "<{action}><node id=\"{id}\" version=\"{version}\" changeset=\"{changeset}\" \
             timestamp=\"2024-01-01T00:00:{version:02}Z\"{place}/></{action}>"
        )
    };
    let body: String = nodes.iter().map(node).collect();
    std::fs::write(
        path,
        format!("<osmChange version=\"0.6\">{body}</osmChange>"),
    )
    .unwrap();
}

#[test]
fn a_changeset_that_goes_on_keeps_its_deletions() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let [base, next, now] = ["base.osm.pbf", "next.osm.pbf", "now.osm.pbf"].map(path);
    let changes = path("a.osc");
    // The changes of each run, and the actions of changeset 7 after it.
    let runs: [(&[NodeChange], &[&str]); 5] = [
        (&[(1, 2, 7, true)], &["delete node 1"]),
        (&[(1, 3, 7, false), (1, 4, 7, true)], &["delete node 1"]),
        // A node of this changeset that was there before the first run.
        (&[(2, 2, 7, true)], &["delete node 1", "delete node 2"]),
        (
            &[(3, 1, 7, false)],
            &["delete node 1", "delete node 2", "create node 3"],
        ),
        (&[(3, 2, 7, true)], &["delete node 1", "delete node 2"]),
    ];
    let first = Object {
        changeset: Some(7),
        version: Some(1),
        ..node(2, 5, 5, &[])
    };
    let old = Object {
        version: Some(1),
        ..node(1, 5, 5, &[])
    };
    let block = craft::block(&[old, first], &craft::Shape::USUAL);
    std::fs::write(&base, craft::plain_file(&[block])).unwrap();
    std::fs::copy(&base, &now).unwrap();
    for (nodes, expected) in runs {
        nodes_changed(&changes, nodes);
        // An attempt that is repeated changes nothing.
        for _ in 0..2 {
            run_ok(&[
                &"augmented-diff",
                &"-q",
                &"--split",
                &now,
                &changes,
                &"-o",
                &path("sets"),
            ]);
            let text = std::fs::read_to_string(path("sets/7.adiff")).unwrap();
            let actions: Vec<String> = actions_of(&text)
                .iter()
                .map(|action| {
                    let kind = action.lines().next().unwrap().replace("action type=", "");
                    format!("{kind} {}", object_of(action).replace("id=", ""))
                })
                .collect();
            assert_eq!(actions, expected);
        }
        run_ok(&[&"apply-changes", &"-q", &"-O", &now, &changes, &"-o", &next]);
        std::fs::rename(&next, &now).unwrap();
    }
    nodes_changed(&changes, &[(1, 9, i64::MAX, false)]);
    let message = run_fail(&[
        &"augmented-diff",
        &"--split",
        &now,
        &changes,
        &"-o",
        &path("sets"),
    ]);
    assert!(
        message.contains("changeset 9223372036854775807"),
        "{message}"
    );
}
