//! `tags-edit`: compared with plain, slow code for random rules, on worlds, histories and real files.

use crate::common::answers::{Answer, ask, file_of, history_of};
use crate::common::oracle::small_real_files;
use crate::common::questions::assert_same_objects;
use crate::common::random::Random;
use crate::common::retag::{self, Rule};
use crate::common::{
    Arg, Kind, Object, decode, in_turn, is_long, node, relation, run_fail, run_ok, small_world,
    way, world,
};
use std::path::{Path, PathBuf};

/// Runs `tags-edit` with rules, some of which are in a file.
fn edit(input: &Path, rules: &[Rule], jobs: &str, output: &Path) -> Answer {
    let list = output.with_extension("rules");
    let (in_file, others) = rules.split_at(rules.len() / 2);
    let lines: Vec<_> = in_file.iter().map(|rule| rule.text.as_str()).collect();
    std::fs::write(&list, lines.join("\n# and\n")).unwrap();
    let head: [Arg; 9] = [
        &"tags-edit",
        &input,
        &"-O",
        &"--json",
        &"-j",
        &jobs,
        &"-o",
        &output,
        &"-e",
    ];
    let mut args: Vec<Arg> = head.to_vec();
    args.push(&list);
    args.extend(
        others
            .iter()
            .flat_map(|rule| &rule.option)
            .map(|word| word as Arg),
    );
    ask(&args)
}

/// Fails unless the program edits a file as the plain code edits its objects.
fn assert_edited(input: &Path, objects: &[Object], rules: &[Rule], dir: &Path) {
    let output = dir.join("out.osm.pbf");
    let what = rules
        .iter()
        .map(|rule| rule.text.as_str())
        .collect::<Vec<_>>();
    let what = what.join(" | ");
    let answer = edit(input, rules, "2", &output);
    let (expected, counts) = match retag::edited(objects, rules) {
        Ok(expected) => expected,
        Err(fault) => {
            let (object, key) = *fault;
            assert_eq!(answer.status, 2, "{what}: {answer:?}");
            let kind = format!("{:?}", object.kind).to_lowercase();
            let named = format!("{kind} {}: '", object.id);
            assert!(
                answer.stderr.contains(&named),
                "{what}: {named}: {answer:?}"
            );
            let named = format!("the key '{key}' would occur twice");
            assert!(answer.stderr.contains(&named), "{what}: {answer:?}");
            return;
        }
    };
    assert_eq!(answer.status, 0, "{what}: {answer:?}");
    assert_same_objects(&decode::objects(&output), &expected, &what);
    let report = answer.json();
    let found = report["rules"].as_array().unwrap().iter();
    let found: Vec<_> = found
        .map(|rule| rule["objects"].as_u64().unwrap())
        .collect();
    assert_eq!(found, counts, "{what}");
    // The bytes do not depend on the number of jobs.
    let again = dir.join("again.osm.pbf");
    assert_eq!(edit(input, rules, "1", &again).json(), report, "{what}");
    assert!(
        std::fs::read(&output).unwrap() == std::fs::read(&again).unwrap(),
        "{what}"
    );
}

/// Random rules.
fn rules(random: &mut Random) -> Vec<Rule> {
    (0..1 + random.below(5))
        .map(|_| Rule::random(random))
        .collect()
}

fn rule_sets() -> u64 {
    if is_long() { 1000 } else { 30 }
}

#[test]
fn random_rules_give_what_plain_code_gives() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..rule_sets() {
        let mut random = Random(seed);
        let objects = retag::objects(&mut random, 60);
        let blobs: Vec<_> = objects.chunks(7 + random.below(50_usize)).collect();
        let input = file_of(dir.path(), "in.osm.pbf", &blobs);
        assert_edited(&input, &objects, &rules(&mut random), dir.path());
    }
}

#[test]
fn random_rules_change_all_versions_of_a_history_but_deleted_ones_without_tags() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..rule_sets() {
        let mut random = Random(seed + 10_000);
        let mut objects = Vec::new();
        for object in retag::objects(&mut random, 40) {
            let next = Object {
                version: object.version.map(|version| version + 1),
                visible: random.below(2) == 0,
                ..object.clone()
            };
            objects.push(object);
            if next.visible || random.below(4) == 0 {
                objects.push(next);
            } else {
                objects.push(Object {
                    tags: Vec::new(),
                    ..next
                });
            }
        }
        let blobs: Vec<_> = objects.chunks(20).collect();
        let input = history_of(dir.path(), "in.osh.pbf", &blobs);
        assert_edited(&input, &objects, &rules(&mut random), dir.path());
    }
}

#[test]
fn random_rules_change_indexed_and_real_files_as_plain_code_does() {
    let dir = tempfile::tempdir().unwrap();
    let mut inputs = small_real_files();
    inputs.push(small_world(dir.path()));
    for (turn, input) in inputs.iter().enumerate() {
        let objects = decode::objects(input);
        for seed in in_turn(turn, 8, 0..8) {
            assert_edited(input, &objects, &rules(&mut Random(seed)), dir.path());
        }
    }
}

/// Runs `tags-edit` on a file, and returns the report.
fn report(input: &Path, options: &[&str], output: &Path) -> serde_json::Value {
    let mut args: Vec<Arg> = vec![&"tags-edit", &input, &"-O", &"--json", &"-o", &output];
    args.extend(options.iter().map(|option| option as Arg));
    let answer = ask(&args);
    assert_eq!(answer.status, 0, "{options:?}: {answer:?}");
    answer.json()
}

/// The objects after `tags-edit`.
fn after(input: &Path, options: &[&str]) -> Vec<Object> {
    let output = input.with_extension("edited.osm.pbf");
    report(input, options, &output);
    decode::objects(&output)
}

/// The tags of an object after `tags-edit`.
fn tags_of(objects: &[Object], kind: Kind, id: i64) -> Vec<(&str, &str)> {
    let mut found = objects
        .iter()
        .filter(|one| (one.kind, one.id) == (kind, id));
    let tags = found.next().unwrap().tags.iter();
    tags.map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}

#[test]
fn blobs_that_no_rule_concerns_are_copied() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "60000");
    let [output, copy, stats] =
        ["out.osm.pbf", "copy.osm.pbf", "stats.json"].map(|name| dir.path().join(name));
    run_ok(&[&"cat", &input, &"-o", &copy]);
    for rules in [
        &["--drop", "no_such_key"][..],
        &["--set-on", "highway=no such value:a=b"],
        &["--rename-on", "no_such_key: highway a"],
        &["--replace", "highway ~^nosuch$ x"],
    ] {
        let found = report(&input, rules, &output);
        assert_eq!(found["edited"], 0, "{rules:?}");
        assert_eq!(found["blobs_rewritten"], 0, "{rules:?}");
        let same = std::fs::read(&output).unwrap() == std::fs::read(&copy).unwrap();
        assert!(same, "{rules:?}: not a copy");
    }
    // Only relations have the key.
    let stats_option = stats.to_str().unwrap();
    let rules = ["--drop", "boundary", "--stats", stats_option];
    let found = report(&input, &rules, &output);
    assert!(found["edited"].as_u64() > Some(0));
    assert!(found["blobs_copied"].as_u64() > Some(0));
    let stats: serde_json::Value = serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
    assert!(stats["blobs_copied"].as_u64() > Some(0), "{stats}");
    assert!(stats["blobs_rewritten"].as_u64() > Some(0), "{stats}");
}

#[test]
fn of_blobs_whose_strings_match_no_rule_only_the_beginning_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "60000");
    let [output, stats] = ["out.osm.pbf", "stats.json"].map(|name| dir.path().join(name));
    let rules = ["--drop", "no_such_key", "--stats", stats.to_str().unwrap()];
    let found = report(&input, &rules, &output);
    assert_eq!(found["edited"], 0);
    let stats: serde_json::Value = serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
    let len = std::fs::metadata(&input).unwrap().len();
    assert!(stats["bytes_read"].as_u64().unwrap() < len / 2, "{stats}");
    assert!(decode::objects(&output) == decode::objects(&input));
}

#[test]
fn blobs_whose_ids_no_rule_or_table_concerns_are_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "60000");
    let [output, stats, table] =
        ["out.osm.pbf", "stats.json", "table.csv"].map(|name| dir.path().join(name));
    let objects = decode::objects(&input);
    let first = objects.first().unwrap();
    assert_eq!(first.kind, Kind::Node);
    std::fs::write(&table, format!("type,id,key,value\nn,{},a,b\n", first.id)).unwrap();
    let set = format!("n/@id={}: a=b", first.id);
    let edited = |rules: &[&str]| {
        let found = report(
            &input,
            &[rules, &["--stats", stats.to_str().unwrap()]].concat(),
            &output,
        );
        let bytes = std::fs::read(&stats).unwrap();
        let stats: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let read = stats["bytes_read"].as_u64().unwrap();
        assert!(
            read < std::fs::metadata(&input).unwrap().len(),
            "{rules:?}: {stats}"
        );
        found["edited"].as_u64().unwrap()
    };
    for rules in [
        ["--set-on", set.as_str()],
        ["--table", table.to_str().unwrap()],
    ] {
        assert_eq!(edited(&rules), 1, "{rules:?}");
        let found = decode::objects(&output);
        assert_eq!(
            tags_of(&found, Kind::Node, first.id).last(),
            Some(&("a", "b"))
        );
    }
    assert_eq!(edited(&["--set-on", "r/@id=1000000000000: a=b"]), 0);
}

#[test]
fn the_output_does_not_depend_on_the_number_of_jobs() {
    let dir = tempfile::tempdir().unwrap();
    let input = small_world(dir.path());
    let table = dir.path().join("table.csv");
    std::fs::write(
        &table,
        "type,id,key,value\nn,1,a,b\nw,1,name,\nr,1,type,site\n",
    )
    .unwrap();
    let table = table.to_str().unwrap();
    let within = format!("{}:country=AA", region(dir.path()).display());
    let within = within.as_str();
    for rules in [
        &["--drop", "name,building", "--drop-untagged"][..],
        &["--table", table, "--set-on", "w/highway&!name: unnamed=yes"],
        &["--within", within, "--default-on", "n/!*: empty=yes"],
        &["--keep-on", "@id<500: name", "--replace", "* ~[aeiou] $0$0"],
        &["--rule", "a/*: copy building was:building", "--blob-index"],
    ] {
        let outputs = ["1", "2", "5"].map(|jobs| {
            let output = dir.path().join(format!("out{jobs}.osm.pbf"));
            let found = report(&input, &[rules, &["-j", jobs]].concat(), &output);
            let args: Vec<Arg> = vec![&"tags-edit", &input, &"--dry-run", &"--json", &"-j", &jobs];
            let rules = rules
                .iter()
                .filter(|rule| !["--drop-untagged", "--blob-index"].contains(*rule));
            let dry = ask(&[args, rules.map(|rule| rule as Arg).collect()].concat()).json();
            assert_eq!(
                (&dry["edited"], &dry["rules"]),
                (&found["edited"], &found["rules"])
            );
            (found, std::fs::read(&output).unwrap())
        });
        assert!(outputs.iter().all(|one| *one == outputs[0]), "{rules:?}");
    }
}

#[test]
fn removed_tags_cannot_be_read_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let members = [(Kind::Node, 1, "source")];
    let objects = [
        vec![
            node(1, 1, 1, &[("source", "secret"), ("name", "kept")]),
            node(2, 2, 2, &[("private", "secret")]),
        ],
        vec![way(
            1,
            &[1, 2],
            &[("private", "hidden"), ("highway", "path")],
        )],
        vec![relation(
            1,
            &members,
            &[("private", "hidden"), ("type", "site")],
        )],
    ];
    let blobs: Vec<_> = objects.iter().map(Vec::as_slice).collect();
    let input = file_of(dir.path(), "in.osm.pbf", &blobs);
    let output = dir.path().join("out.osm.pbf");
    let options = ["--drop", "source,private", "--compression", "none"];
    report(&input, &options, &output);
    let bytes = std::fs::read(&output).unwrap();
    let has = |text: &str| {
        bytes
            .windows(text.len())
            .any(|found| found == text.as_bytes())
    };
    assert!(!has("secret") && !has("hidden") && !has("private"));
    assert!(
        has("kept") && has("source"),
        "a role has the same text as a removed key"
    );
    let found = decode::objects(&output);
    assert_eq!(found.last().unwrap().members[0].2, "source");
    assert_eq!(tags_of(&found, Kind::Way, 1), [("highway", "path")]);
}

#[test]
fn every_format_gives_the_same_objects() {
    let dir = tempfile::tempdir().unwrap();
    let input = small_world(dir.path());
    let rules = ["--drop", "source,note", "--set-on", "w/highway:a=b c"];
    let expected = after(&input, &rules);
    for format in ["osm", "osm.gz", "opl", "opl.zst", "osm.pbf"] {
        let [text, output, back] =
            ["in", "out", "back"].map(|name| dir.path().join(format!("{name}.{format}")));
        run_ok(&[&"cat", &"-O", &input, &"-o", &text]);
        report(&text, &rules, &output);
        let back = back.with_extension("osm.pbf");
        run_ok(&[&"cat", &"-O", &output, &"-o", &back]);
        assert_same_objects(&decode::objects(&back), &expected, format);
    }
}

#[test]
fn a_dry_run_counts_what_a_run_changes_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let input = small_world(dir.path());
    let output = dir.path().join("out.osm.pbf");
    let rules = [
        "--drop",
        "highway",
        "--default-on",
        "w/name:a=b",
        "--drop",
        "none",
    ];
    let run = report(&input, &rules, &output);
    std::fs::remove_file(&output).unwrap();
    let dry = |more: &[&str]| {
        let mut args: Vec<Arg> = vec![&"tags-edit", &input, &"--dry-run"];
        args.extend(rules.iter().chain(more).map(|option| option as Arg));
        ask(&args)
    };
    let found = dry(&["--json"]).json();
    assert_eq!(found["rules"], run["rules"]);
    assert_eq!(found["edited"], run["edited"]);
    assert!(!output.exists());
    let rows = found["rules"].as_array().unwrap();
    assert_eq!(rows[0]["rule"], "drop highway");
    assert_eq!(rows[0]["examples"].as_array().unwrap().len(), 3);
    assert_eq!(
        (&rows[2]["objects"], &rows[1]["rule"]),
        (&0.into(), &"w/name: default a=b".into())
    );
    let table = dry(&[]).stdout;
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(lines.len(), 5, "{table}");
    assert!(
        lines[0].trim_start().starts_with("objects  rule"),
        "{table}"
    );
    let example = rows[0]["examples"][0].as_str().unwrap();
    assert!(
        lines[1].contains("  drop highway ") && lines[1].contains(example),
        "{table}"
    );
}

#[test]
fn a_table_changes_single_objects_after_all_rules() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = [
        node(1, 1, 1, &[("name", "a"), ("ref", "1")]),
        node(2, 2, 2, &[("name", "b")]),
    ];
    let ways = [way(1, &[1, 2], &[("name", "c")])];
    let input = file_of(dir.path(), "in.osm.pbf", &[&nodes, &ways]);
    let table = dir.path().join("table.csv");
    std::fs::write(
        &table,
        "type,id,key,value\nn,1,name,\"x, y\"\nnode,1,ref,\nw,9,a,b\n",
    )
    .unwrap();
    let options = ["--set", "name=all", "--table", table.to_str().unwrap()];
    let found = after(&input, &options);
    assert_eq!(tags_of(&found, Kind::Node, 1), [("name", "x, y")]);
    assert_eq!(tags_of(&found, Kind::Node, 2), [("name", "all")]);
    assert_eq!(tags_of(&found, Kind::Way, 1), [("name", "all")]);
    let output = dir.path().join("out.osm.pbf");
    let counts = &report(&input, &options, &output)["rules"];
    assert_eq!(
        (&counts[0]["objects"], &counts[1]["objects"]),
        (&3.into(), &1.into())
    );
    assert_eq!(counts[1]["examples"][0], "n1");
    std::fs::write(&table, "type,id,key,value\nn,1,,x\n").unwrap();
    let message = run_fail(&[&"tags-edit", &input, &"--table", &table, &"-f", &"opl"]);
    assert!(
        message.contains("table.csv: line 2: n1: expected a key"),
        "{message}"
    );
}

/// A polygon around the nodes up to 10 of [`places`].
fn region(dir: &Path) -> PathBuf {
    let path = dir.join("re:gion.geojson");
    let ring = "[[-1,-1],[1.05,-1],[1.05,2],[-1,2],[-1,-1]]";
    let text = format!("{{\"type\":\"Polygon\",\"coordinates\":[{ring}]}}");
    std::fs::write(&path, text).unwrap();
    path
}

/// Nodes along a line, ways of two nodes, and relations.
fn places() -> Vec<Vec<Object>> {
    let tags = [("country", "XX")];
    let nodes = (1..=20).map(|id| node(id, 5_000_000, id * 1_000_000, &[]));
    let ways = (1..20).map(|id| way(id, &[id, id + 1], &tags));
    let relations = [
        relation(1, &[(Kind::Way, 3, "")], &[]),
        relation(2, &[(Kind::Node, 15, ""), (Kind::Way, 11, "")], &[]),
        relation(3, &[(Kind::Node, 2, "")], &tags),
        relation(4, &[(Kind::Relation, 1, "")], &[]),
    ];
    vec![nodes.collect(), ways.collect(), relations.to_vec()]
}

#[test]
fn objects_in_a_region_get_a_tag_before_all_rules() {
    let dir = tempfile::tempdir().unwrap();
    let blocks = places();
    let blobs: Vec<_> = blocks.iter().map(Vec::as_slice).collect();
    let input = file_of(dir.path(), "in.osm.pbf", &blobs);
    let located = dir.path().join("located.osm.pbf");
    run_ok(&[&"add-locations-to-ways", &input, &"-o", &located]);
    let within = format!("{}:country=AA", region(dir.path()).display());
    for input in [&input, &located] {
        let found = after(
            input,
            &[
                "--within",
                &within,
                "--rename-on",
                "country=AA: country land",
            ],
        );
        for object in &found {
            let is_inside = match object.kind {
                Kind::Node | Kind::Way => object.id <= 10,
                Kind::Relation => matches!(object.id, 1 | 3),
            };
            let lands = object
                .tags
                .iter()
                .filter(|(key, value)| key == "land" && value == "AA");
            let what = format!("{:?} {}", object.kind, object.id);
            assert_eq!(lands.count(), usize::from(is_inside), "{what}");
        }
    }
    let message = run_fail(&[&"tags-edit", &input, &"--within", &"a.poly", &"-f", &"opl"]);
    assert!(message.contains("expected FILE:KEY=VALUE"), "{message}");
}

#[test]
fn objects_that_lose_all_tags_are_left_out_unless_others_need_them() {
    let dir = tempfile::tempdir().unwrap();
    let nodes: Vec<_> = (1..=6)
        .map(|id| node(id, id, id, &[("source", "x")]))
        .collect();
    let ways = [
        way(1, &[1, 2], &[("source", "x"), ("highway", "path")]),
        way(2, &[3], &[("source", "x")]),
        way(3, &[4], &[]),
    ];
    let relations = [
        relation(
            1,
            &[(Kind::Way, 3, ""), (Kind::Node, 6, "")],
            &[("type", "site")],
        ),
        relation(2, &[(Kind::Way, 2, "")], &[("source", "x")]),
    ];
    let input = file_of(dir.path(), "in.osm.pbf", &[&nodes, &ways, &relations]);
    let found = after(&input, &["--drop", "source", "--drop-untagged"]);
    let ids = |kind| {
        let of_kind = found.iter().filter(|object| object.kind == kind);
        of_kind.map(|object| object.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(Kind::Node), [1, 2, 4, 6]);
    assert_eq!(ids(Kind::Way), [1, 3]);
    assert_eq!(ids(Kind::Relation), [1]);
    assert_eq!(tags_of(&found, Kind::Way, 1), [("highway", "path")]);
    assert!(
        found
            .iter()
            .all(|object| object.tags.iter().all(|(key, _)| key != "source"))
    );
}

#[test]
fn a_key_twice_and_a_long_value_are_errors_that_name_the_object() {
    let dir = tempfile::tempdir().unwrap();
    let long = "x".repeat(200);
    let nodes = [
        node(1, 1, 1, &[("a", "1")]),
        node(17, 2, 2, &[("a", "1"), ("b", "2"), ("long", &long)]),
    ];
    let input = file_of(dir.path(), "in.osm.pbf", &[&nodes]);
    for (rule, expected) in [
        (
            ["--rename", "a b"],
            "node 17: 'rename a b': the key 'b' would occur twice, as '2' and '1'",
        ),
        (
            ["--copy", "a b"],
            "node 17: 'copy a b': the key 'b' would occur twice, as '2' and '1'",
        ),
        (
            ["--replace", "long ~x xx"],
            "node 17: 'replace long ~x xx': the value of 'long' would have more than 255",
        ),
    ] {
        let [option, value] = rule;
        let output = dir.path().join("out.osm.pbf");
        let message = run_fail(&[&"tags-edit", &input, &option, &value, &"-o", &output]);
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains("repair"), "the file is whole: {message}");
        assert!(!output.exists());
    }
    // Equal values are no contradiction.
    let nodes = [node(1, 1, 1, &[("a", "1"), ("b", "1")])];
    let input = file_of(dir.path(), "equal.osm.pbf", &[&nodes]);
    let found = after(&input, &["--rename", "a b"]);
    assert_eq!(tags_of(&found, Kind::Node, 1), [("b", "1")]);
    // Of a key that the input has twice, `set` keeps the first.
    let nodes = [node(1, 1, 1, &[("a", "1"), ("a", "2")])];
    let input = file_of(dir.path(), "twice.osm.pbf", &[&nodes]);
    let found = after(&input, &["--set", "a=3"]);
    assert_eq!(tags_of(&found, Kind::Node, 1), [("a", "3")]);
}

#[test]
fn a_wrong_rule_is_one_line_with_the_rule_the_column_and_what_was_expected() {
    let dir = tempfile::tempdir().unwrap();
    let input = small_world(dir.path());
    let list = dir.path().join("rules.txt");
    let run = |options: &[&str]| {
        let mut args: Vec<Arg> = vec![&"tags-edit", &input, &"-f", &"opl"];
        args.extend(options.iter().map(|option| option as Arg));
        run_fail(&args)
    };
    for (options, expected) in [
        (
            &["--drop", "a,,b"][..],
            "'drop a,,b', column 8: expected keys",
        ),
        (
            &["--keep-on", "w/highway"],
            "--keep-on 'w/highway', column 10: expected ':' and the arguments of keep",
        ),
        (
            &["--keep-on", "x/a:b"],
            "'x/a: keep b', column 1: expected an expression",
        ),
        (&["--set", "a"], "'set a', column 5: expected KEY=VALUE"),
        (
            &["--replace", "a ~( b"],
            "'replace a ~( b', column 12: expected a regular expression",
        ),
        (
            &["--replace", "a ~b"],
            "'replace a ~b', column 13: expected a value",
        ),
        (&[], "no rule was given"),
    ] {
        let message = run(options);
        assert!(
            message.contains(expected),
            "{message} instead of {expected}"
        );
    }
    let message = run(&["--rule", "x"]);
    assert!(
        message.contains("'x', column 1: expected drop, keep"),
        "{message}"
    );
    std::fs::write(&list, "drop a\n\nw/highway: drp b # c\n").unwrap();
    let message = run(&["-e", list.to_str().unwrap()]);
    let expected = "rules.txt: line 3: 'w/highway: drp b', column 12: expected drop, keep";
    assert!(message.contains(expected), "{message}");
}
