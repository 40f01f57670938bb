//! `apply-changes --locations-on-ways`: the result must be that of applying the changes to data without locations, and
//! then adding locations.

use crate::common::answers::{ask, file_of};
use crate::common::random::Random;
use crate::common::{Arg, Kind, Object, decode, is_long, run_fail, run_ok};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A directory with the same data in three files: without locations in ways; with locations and all nodes; and with
/// locations, but without the nodes that only ways need.
struct Data {
    dir: tempfile::TempDir,
}

/// The flags of `add-locations-to-ways`, and the name of the file made with them.
const VARIANTS: [(&[&str], &str); 2] = [(&["-n"], "all"), (&[], "few")];

impl Data {
    fn of_opl(text: &str) -> Self {
        let data = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        let opl = data.path("base.opl");
        std::fs::write(&opl, text).unwrap();
        run_ok(&[&"cat", &"-q", &opl, &"-o", &data.path("plain.osm.pbf")]);
        data.with_locations()
    }

    fn of_file(file: &Path, dir: tempfile::TempDir) -> Self {
        let data = Self { dir };
        std::fs::copy(file, data.path("plain.osm.pbf")).unwrap();
        data.with_locations()
    }

    fn with_locations(self) -> Self {
        for (args, name) in VARIANTS {
            self.add_locations(args, &self.file(name));
        }
        self
    }

    fn add_locations(&self, args: &[&str], output: &Path) {
        let plain = self.file("plain");
        let mut all: Vec<Arg> = vec![
            &"add-locations-to-ways",
            &"-q",
            &"-O",
            &plain,
            &"-o",
            &output,
        ];
        all.extend(args.iter().map(|arg| arg as Arg));
        run_ok(&all);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path(&format!("{name}.osm.pbf"))
    }

    /// Applies a change file to the three files, and fails if the results do not agree.
    fn apply(&self, change: &Path, what: &str) {
        let next = self.file("next");
        let plain = self.file("plain");
        run_ok(&[
            &"apply-changes",
            &"-q",
            &"-O",
            &plain,
            &change,
            &"-o",
            &next,
        ]);
        std::fs::rename(&next, &plain).unwrap();
        for (args, name) in VARIANTS {
            let base = self.file(name);
            let mut outcomes = Vec::new();
            for jobs in ["1", "3"] {
                run_ok(&[
                    &"apply-changes",
                    &"--locations-on-ways",
                    // Files that are located anew have no recently changed nodes.
                    &"--keep-nodes",
                    &"0",
                    &"-q",
                    &"-O",
                    &"-j",
                    &jobs,
                    &base,
                    &change,
                    &"-o",
                    &next,
                ]);
                outcomes.push(std::fs::read(&next).unwrap());
            }
            assert!(
                outcomes[0] == outcomes[1],
                "{what}: bytes depend on threads"
            );
            std::fs::rename(&next, &base).unwrap();
            let anew = self.file("anew");
            self.add_locations(args, &anew);
            let (found, expected) = (decode::objects(&base), decode::objects(&anew));
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found, expected, "{what}, {name}");
            }
            assert_eq!(found.len(), expected.len(), "{what}, {name}");
            let header = decode::header(&base);
            assert!(header.optional.contains(&"LocationsOnWays".to_owned()));
            let answer = ask(&[&"check", &"--ids", &"-q", &base]);
            assert_eq!(answer.status, 0, "{what}, {name}: {answer:?}");
        }
    }

    /// As [`apply`](Self::apply), with the contents of an osmChange element.
    fn apply_text(&self, changes: &str, what: &str) {
        let path = self.path("change.osc");
        let text = format!("<osmChange version='0.6'>{changes}</osmChange>");
        std::fs::write(&path, text).unwrap();
        self.apply(&path, what);
    }

    fn way(&self, name: &str, id: i64) -> Object {
        let is_it = |object: &Object| object.kind == Kind::Way && object.id == id;
        decode::objects(&self.file(name))
            .into_iter()
            .find(is_it)
            .unwrap()
    }
}

/// Ways that share nodes, a node with a tag, and members.
const SMALL: &str = "n1 v1 x1 y1\nn2 v1 x2 y2\nn3 v3 x3 y3 Tname=three\nn4 v1 x4 y4\nn5 v1 x5 y5\nn6 v1 x6 y6\n\
                     w1 v1 Nn1,n2,n3\nw2 v1 Nn3,n4,n4,n99\nw3 v2 Nn1,n4,n1\nw4 v1 N\n\
                     r1 v1 Mn5@stop,w1@\nr2 v1 Mn6@\n";

const DEGREE: i64 = 1_000_000_000;

#[test]
fn a_node_that_moves_moves_its_ways() {
    let data = Data::of_opl(SMALL);
    data.apply_text(
        "<modify><node id='1' version='2' lat='10' lon='20'/></modify>",
        "a node moves",
    );
    for name in ["all", "few"] {
        assert_eq!(data.way(name, 3).locations[0], (10 * DEGREE, 20 * DEGREE));
        assert_eq!(data.way(name, 3).locations[1], (4 * DEGREE, 4 * DEGREE));
    }
    data.apply_text(
        "<modify><node id='1' version='3' lat='0' lon='0'/></modify>",
        "to 0,0",
    );
    assert_eq!(data.way("few", 1).locations[0], (0, 0));
    data.apply_text("<delete><node id='4' version='2'/></delete>", "a node goes");
    data.apply_text(
        "<create><node id='99' version='1' lat='9' lon='9'/></create>",
        "a node comes that a way waited for",
    );
    assert_eq!(data.way("few", 2).locations[3], (9 * DEGREE, 9 * DEGREE));
    data.apply_text(
        "<modify><node id='3' version='2' lat='50' lon='50'/></modify>",
        "an older version moves nothing",
    );
    assert_eq!(data.way("few", 2).locations[0], (3 * DEGREE, 3 * DEGREE));
}

#[test]
fn changed_ways_find_their_nodes_wherever_they_are() {
    let data = Data::of_opl(SMALL);
    data.apply_text(
        "<create><node id='7' version='1' lat='7' lon='7'/>\
         <way id='9' version='1'><nd ref='7'/><nd ref='2'/><nd ref='3'/><nd ref='4'/><nd ref='1000'/></way></create>\
         <modify><way id='4' version='2'><nd ref='1'/><nd ref='6'/></way></modify>\
         <modify><way id='3' version='1'><nd ref='2'/></way></modify>",
        "from the change, from ways, from a node, from nowhere, and one that is outdated",
    );
    assert_eq!(data.way("few", 9).locations[1], (2 * DEGREE, 2 * DEGREE));
    data.apply_text("<delete><way id='1' version='2'/></delete>", "a way goes");
    // The location of a node is known from another way, or unknown.
    data.apply_text(
        "<modify><way id='2' version='2'><nd ref='1'/><nd ref='2'/></way></modify>",
        "a way gets nodes of one that is gone",
    );
}

#[test]
fn a_base_without_nodes_that_only_ways_need_stays_so() {
    let data = Data::of_opl(SMALL);
    data.apply_text(
        "<modify><node id='3' version='4' lat='3' lon='3'/></modify>",
        "a node loses its tags",
    );
    data.apply_text(
        "<modify><relation id='2' version='2'/></modify>\
         <delete><relation id='1' version='2'/></delete>",
        "members are members no more",
    );
    let nodes = decode::objects(&data.file("few"));
    assert!(nodes.iter().all(|object| object.kind != Kind::Node));
    data.apply_text(
        "<create><node id='50' version='1' lat='5' lon='5'><tag k='a' v='b'/></node>\
         <node id='51' version='1' lat='5' lon='6'/>\
         <relation id='7' version='1'><member type='node' ref='51' role=''/></relation></create>",
        "a node with tags, and a new member",
    );
    // A dropped node cannot be restored: the command reports it.
    let change = data.path("member.osc");
    let text = "<osmChange version='0.6'><create><relation id='8' version='1'><member type='node' ref='2' role=''/>\
                </relation></create></osmChange>";
    std::fs::write(&change, text).unwrap();
    let (few, out) = (data.file("few"), data.file("out"));
    let flag = "--locations-on-ways";
    let run = run_ok(&[
        &"apply-changes",
        &flag,
        &few,
        &change,
        &"--json",
        &"-o",
        &out,
    ]);
    let summary: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(summary["locations"]["members_missing"], 1);
    let warning = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(
        warning.contains("1 node that relations now refer to"),
        "{warning}"
    );
}

#[test]
fn new_nodes_without_tags_stay_where_that_is_asked_for() {
    let data = Data::of_opl(SMALL);
    let change = data.path("a.osc");
    let text = "<osmChange version='0.6'><create><node id='70' version='1' lat='1' lon='2'/></create></osmChange>";
    std::fs::write(&change, text).unwrap();
    for (flags, count) in [
        (&["--locations-on-ways"][..], 1),
        (&["--locations-on-ways", "--keep-nodes", "0"], 0),
        (&["--locations-on-ways", "--keep-nodes", "0", "-n"], 1),
    ] {
        let (few, out) = (data.file("few"), data.file("out"));
        let mut args: Vec<Arg> = vec![&"apply-changes", &"-q", &"-O", &few, &change, &"-o", &out];
        args.extend(flags.iter().map(|flag| flag as Arg));
        run_ok(&args);
        let found = decode::objects(&out);
        let is_new = |object: &&Object| object.kind == Kind::Node && object.id == 70;
        assert_eq!(found.iter().filter(is_new).count(), count, "{flags:?}");
    }
}

#[test]
fn a_base_without_locations_is_refused_and_without_the_flag_there_is_a_hint() {
    let data = Data::of_opl(SMALL);
    let change = data.path("a.osc");
    std::fs::write(&change, "<osmChange version='0.6'/>").unwrap();
    let (plain, few, out) = (data.file("plain"), data.file("few"), data.file("out"));
    let flag = "--locations-on-ways";
    let message = run_fail(&[&"apply-changes", &flag, &plain, &change, &"-o", &out]);
    assert!(message.contains("add-locations-to-ways"), "{message}");
    let run = run_ok(&[&"apply-changes", &few, &change, &"-o", &out]);
    let warning = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(warning.contains(flag), "{warning}");
    assert!(
        decode::objects(&out)
            .iter()
            .all(|object| object.locations.is_empty())
    );
    let message = run_fail_with_usage(&[&"apply-changes", &"-n", &few, &change, &"-o", &out]);
    assert!(message.contains(flag), "{message}");
}

fn run_fail_with_usage(args: &[Arg]) -> String {
    let answer = ask(args);
    assert_eq!(answer.status, 2, "{answer:?}");
    answer.stderr
}

#[test]
fn the_nodes_of_a_base_are_not_guessed() {
    // In a base without some nodes, all nodes of the first ways are present.
    let mut text = String::new();
    for id in 1..35 {
        let tags = if id <= 32 { "Ta=b" } else { "" };
        let _ = writeln!(text, "n{id} v1 {tags} x{id} y1");
    }
    let first: Vec<String> = (1..33).map(|id| format!("n{id}")).collect();
    let _ = writeln!(text, "w1 v1 N{}\nw2 v1 Nn33,n34", first.join(","));
    let data = Data::of_opl(&text);
    data.apply_text(
        "<create><node id='1000' version='1' lat='9' lon='9'/>\
         <way id='10' version='1'><nd ref='33'/><nd ref='34'/><nd ref='1000'/></way></create>",
        "tagged nodes first",
    );
    // A base without ways.
    let data = Data::of_opl("n1 v1 Ta=b x1 y1\nn2 v1 x2 y2\n");
    data.apply_text(
        "<create><node id='3' version='1' lat='3' lon='3'/>\
         <way id='1' version='1'><nd ref='1'/><nd ref='3'/></way></create>",
        "no ways before",
    );
    // A part of a base with all nodes does not have all nodes of its ways.
    let data = Data::of_opl(SMALL);
    let (all, part, out) = (data.file("all"), data.file("part"), data.file("out"));
    run_ok(&[
        &"getid", &"-q", &all, &"n1", &"n2", &"w1", &"w2", &"-o", &part,
    ]);
    let change = data.path("a.osc");
    let text = "<osmChange version='0.6'><modify><node id='1' version='2' lat='8' lon='8'/></modify></osmChange>";
    std::fs::write(&change, text).unwrap();
    let flag = "--locations-on-ways";
    run_ok(&[&"apply-changes", &"-q", &flag, &part, &change, &"-o", &out]);
    let nodes: Vec<i64> = decode::objects(&out)
        .iter()
        .filter(|object| object.kind == Kind::Node)
        .map(|node| node.id)
        .collect();
    assert_eq!(nodes, [1, 2]);
}

#[test]
fn a_file_of_another_program_is_told_by_its_nodes() {
    for (args, name) in VARIANTS {
        let data = Data::of_opl(SMALL);
        let base = data.file(name);
        // Without the header's declaration about nodes.
        let other = data.file("other");
        run_ok(&[
            &"cat",
            &"-q",
            &"--output-header",
            &"pbfhogg.AllNodes=false",
            &"--output-header",
            &"pbfhogg.NeededNodes=false",
            &base,
            &"-o",
            &other,
        ]);
        let change = data.path("a.osc");
        let text = "<osmChange version='0.6'><create><node id='70' version='1' lat='8' lon='8'/>\
                    <way id='70' version='1'><nd ref='70'/><nd ref='2'/></way></create></osmChange>";
        std::fs::write(&change, text).unwrap();
        let out = data.file("out");
        let flag = "--locations-on-ways";
        let apply: [Arg; 7] = [&"apply-changes", &"-q", &flag, &other, &change, &"-o", &out];
        run_ok(&[&apply[..], &[&"--keep-nodes", &"0"]].concat());
        let found = decode::objects(&out);
        let has_node = found
            .iter()
            .any(|object| object.kind == Kind::Node && object.id == 70);
        assert_eq!(has_node, !args.is_empty(), "{name}");
        let way = found
            .iter()
            .find(|object| object.kind == Kind::Way && object.id == 70);
        let places = [(8 * DEGREE, 8 * DEGREE), (2 * DEGREE, 2 * DEGREE)];
        assert_eq!(way.unwrap().locations, places, "{name}");
    }
}

#[test]
fn changes_without_effect_move_nothing_and_are_not_counted() {
    let data = Data::of_opl("n1 v5 x1 y1\nn2 v1 x2 y2\nw1 v5 Nn1,n2,n9\nr1 v1 Mn1@\n");
    data.apply_text(
        "<modify><node id='1' version='3' lat='9' lon='9'/><relation id='1' version='2'/></modify>",
        "a node is no member any more, and its change is too late",
    );
    // Changes without effect are not counted.
    let summary = |text: &str| {
        let (change, out) = (data.path("a.osc"), data.file("out"));
        std::fs::write(
            &change,
            format!("<osmChange version='0.6'>{text}</osmChange>"),
        )
        .unwrap();
        let all = data.file("all");
        let flag = "--locations-on-ways";
        let run = run_ok(&[
            &"apply-changes",
            &"-O",
            &"--json",
            &flag,
            &all,
            &change,
            &"-o",
            &out,
        ]);
        let summary: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        let locations = &summary["locations"];
        [&locations["ways_moved"], &locations["missing_references"]]
            .map(|count| count.as_u64().unwrap())
    };
    let late = "<modify><way id='1' version='3'><nd ref='77'/><nd ref='78'/></way></modify>";
    assert_eq!(summary(late), [0, 0]);
    let both = "<delete><way id='1' version='6'/><node id='1' version='6'/></delete>";
    assert_eq!(summary(both), [0, 0]);
    let moved = "<delete><node id='1' version='6'/></delete>";
    assert_eq!(summary(moved), [1, 1]);
}

#[test]
fn nodes_and_ways_in_one_blob() {
    let dir = tempfile::tempdir().unwrap();
    let opl = dir.path().join("base.opl");
    std::fs::write(&opl, SMALL).unwrap();
    let plain = dir.path().join("made.osm.pbf");
    run_ok(&[&"cat", &"-q", &opl, &"-o", &plain]);
    let objects = decode::objects(&plain);
    let one_blob = file_of(dir.path(), "one.osm.pbf", &[&objects]);
    let data = Data::of_file(&one_blob, dir);
    data.apply_text(
        "<modify><node id='3' version='2' lat='50' lon='50'/><node id='1' version='2' lat='8' lon='9'/>\
         <way id='3' version='3'><nd ref='3'/><nd ref='4'/></way></modify>",
        "mixed",
    );
    assert_eq!(data.way("few", 3).locations[0], (3 * DEGREE, 3 * DEGREE));
}

#[test]
fn days_of_a_world() {
    let dir = tempfile::tempdir().unwrap();
    let (world, days) = (dir.path().join("world.osm.pbf"), dir.path().join("days"));
    run_ok(&[
        &"synth",
        &"--objects",
        &"40000",
        &"--changes",
        &"30",
        &"--changes-dir",
        &days,
        &"-o",
        &world,
    ]);
    let data = Data::of_file(&world, dir);
    for day in 1..=if is_long() { 30 } else { 5 } {
        data.apply(
            &days.join(format!("{day:03}.osc.gz")),
            &format!("day {day}"),
        );
    }
}

#[test]
fn days_of_anything_whatever_the_blobs() {
    for seed in 0..if is_long() { 6 } else { 3 } {
        let mut random = Random(seed);
        let dir = tempfile::tempdir().unwrap();
        let opl = dir.path().join("base.opl");
        std::fs::write(&opl, random_base(&mut random)).unwrap();
        let (whole, cut) = (
            dir.path().join("whole.osm.pbf"),
            dir.path().join("cut.osm.pbf"),
        );
        run_ok(&[&"cat", &"-q", &opl, &"-o", &whole]);
        let size = (3 + random.below(30)).to_string();
        run_ok(&[
            &"repack",
            &"-q",
            &"--objects-per-blob",
            &size,
            &whole,
            &"-o",
            &cut,
        ]);
        let data = Data::of_file(&cut, dir);
        for day in 0..4 {
            data.apply_text(
                &random_day(&mut random, 2 + day),
                &format!("seed {seed}, day {day}"),
            );
        }
    }
}

/// A small number of objects that refer to each other and to missing objects. Members of relations have tags, and one
/// way has all nodes: a dropped node could not be restored, and its location would be unknown.
fn random_base(random: &mut Random) -> String {
    let mut text = String::new();
    for id in 1..60 {
        let tags = if id % 5 == 0 { " Ta=b" } else { "" };
        let _ = writeln!(
            text,
            "n{id} v1{tags} x{} y{}",
            random.below(90),
            random.below(80)
        );
    }
    for id in 1..40 {
        let nodes: Vec<String> = (0..random.below(6))
            .map(|_| format!("n{}", 1 + random.below(64)))
            .collect();
        let _ = writeln!(text, "w{id} v1 N{}", nodes.join(","));
    }
    let all: Vec<String> = (1..60).map(|id| format!("n{id}")).collect();
    let _ = writeln!(text, "w900 v1 N{}", all.join(","));
    for id in 1..10 {
        let _ = writeln!(text, "r{id} v1 Mn{}@", 5 * (1 + random.below(11)));
    }
    text
}

fn random_day(random: &mut Random, version: i64) -> String {
    let mut text = String::new();
    for _ in 0..12 {
        let id = 1 + random.below(70);
        // Some versions are outdated. Among nodes only tagged ones: the version of a dropped node is unknown.
        let late = (version - random.below(3)).max(1);
        let node_version = if id % 5 == 0 { late } else { version };
        // Members of relations keep a tag, and so do nodes that are not in the way with all nodes.
        let tags = if id % 5 == 0 || id >= 60 || random.below(4) == 0 {
            "<tag k='a' v='c'/>"
        } else {
            ""
        };
        let (lat, lon) = (random.below(80), random.below(90));
        let nodes: String = (0..random.below(6))
            .map(|_| format!("<nd ref='{}'/>", 1 + random.below(72)))
            .collect();
        let member = 5 * (1 + random.below(11));
        let _ = match random.below(8) {
            0..=2 => write!(
                text,
                "<modify><node id='{id}' version='{node_version}' lat='{lat}' lon='{lon}'>{tags}</node></modify>"
            ),
            3 if id % 5 > 0 => write!(
                text,
                "<delete><node id='{id}' version='{node_version}'/></delete>"
            ),
            3..=5 => write!(
                text,
                "<modify><way id='{id}' version='{late}'>{nodes}</way></modify>"
            ),
            6 => write!(text, "<delete><way id='{id}' version='{late}'/></delete>"),
            _ => write!(
                text,
                "<modify><relation id='{}' version='{late}'><member type='node' ref='{member}' role=''/>\
                 </relation></modify>",
                1 + random.below(12)
            ),
        };
    }
    text
}
