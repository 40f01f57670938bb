//! `--max-memory`: the peak memory of every command with this option stays below the limit, on sorted, shuffled and
//! hostile input.

use crate::common::answers::ask;
use crate::common::craft::{self, Message, Shape};
use crate::common::{Arg, Kind, Object, node, relation, run_fail, run_ok, way, world};
use crate::common::{decode, hostile, in_turn, is_long};
use std::path::{Path, PathBuf};

/// Objects with scattered ids, at most one in each range of 65,536 ids, in no order and with distinct tags.
fn scattered(dir: &Path) -> PathBuf {
    let id = |at: i64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64) >> 20;
    let tag = |at: i64| (format!("key {at}"), format!("{at} {}", "value ".repeat(8)));
    let nodes: Vec<Object> = (1..120_000)
        .map(|at| {
            let (key, value) = tag(at);
            node(
                id(at),
                at % 900_000_000,
                at % 800_000_000,
                &[(&key, &value)],
            )
        })
        .collect();
    let ways: Vec<Object> = (1..6000)
        .map(|at| {
            let refs: Vec<i64> = (0..40).map(|step| id(at * 17 + step * 29)).collect();
            way(id(at), &refs, &[])
        })
        .collect();
    let relations: Vec<Object> = (1..3000)
        .map(|at| {
            let members = [(Kind::Way, id(at), ""), (Kind::Relation, id(at + 1), "")];
            relation(id(at), &members, &[("type", "multipolygon")])
        })
        .collect();
    // Blobs of several kinds precede the blobs of one kind, and are between them.
    let mut mixed: Vec<Object> = Vec::new();
    mixed.extend_from_slice(&ways[..100]);
    mixed.extend_from_slice(&nodes[..100]);
    let mut blocks = vec![craft::block(&mixed, &Shape::USUAL)];
    for objects in [&relations[..], &ways[100..], &nodes[100..]] {
        blocks.extend(
            objects
                .chunks(3000)
                .map(|part| craft::block(part, &Shape::USUAL)),
        );
    }
    let path = dir.join("hostile.osm.pbf");
    std::fs::write(&path, craft::plain_file(&blocks)).unwrap();
    path
}

fn regions(dir: &Path) -> PathBuf {
    let path = dir.join("regions.json");
    let region = |at: i32| {
        let (west, south) = (at * 17 % 340 - 170, at * 7 % 150 - 75);
        let (east, north) = (west + 8, south + 8);
        format!("{{\"output\":\"{at}.osm.pbf\",\"bbox\":[{west},{south},{east},{north}]}}")
    };
    let regions: Vec<String> = (0..40).map(region).collect();
    let config = format!("{{\"extracts\":[{}]}}", regions.join(","));
    std::fs::write(&path, config).unwrap();
    path
}

#[test]
fn the_peak_stays_below_the_limit_on_sorted_shuffled_and_hostile_input() {
    let dir = tempfile::tempdir().unwrap();
    let sorted = world(dir.path(), "400000");
    let [shuffled, bare, output, stats, out] = [
        "u.osm.pbf",
        "bare.osm.pbf",
        "out.osm.pbf",
        "stats.json",
        "extracts",
    ]
    .map(|name| dir.path().join(name));
    run_ok(&[
        &"degrade",
        &"--unsort",
        &"--unsort-intra",
        &sorted,
        &"-o",
        &shuffled,
    ]);
    run_ok(&[&"cat", &"--no-index", &shuffled, &"-o", &bare]);
    std::fs::create_dir(&out).unwrap();
    let (hostile, regions) = (scattered(dir.path()), regions(dir.path()));
    let add = |kind: &'static str| -> Vec<&'static str> {
        vec!["add-locations-to-ways", "-O", "--index-type", kind]
    };
    let commands: [(Vec<&str>, u64); 6] = [
        (add("auto"), 130),
        (add("sparse"), 130),
        (add("external"), 130),
        (vec!["extract", "-O", "-s", "smart"], 130),
        (vec!["inspect", "tags"], 110),
        (vec!["inspect", "tags", "-t", "node"], 110),
    ];
    for (turn, input) in [&sorted, &shuffled, &bare, &hostile]
        .into_iter()
        .enumerate()
    {
        // In short runs, only the hostile file has all commands.
        let turns = if input == &hostile { 1 } else { 6 };
        for (words, megabytes) in in_turn(turn, turns, &commands) {
            let limit = format!("{megabytes}M");
            let mut args: Vec<Arg> = words.iter().map(|word| word as Arg).collect();
            args.extend([
                &"-q" as Arg,
                &"-j",
                &"2",
                &"--max-memory",
                &limit,
                &"--stats",
                &stats,
                input,
            ]);
            match words[0] {
                "extract" => args.extend([&"-c" as Arg, &regions, &"-d", &out]),
                "inspect" => {}
                _ => args.extend([&"-o" as Arg, &output]),
            }
            run_ok(&args);
            let report: serde_json::Value =
                serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
            let peak = report["peak_memory_bytes"].as_u64().unwrap();
            println!(
                "{} {words:?}: {:.1} of {megabytes} MB",
                input.display(),
                peak as f64 / 1e6
            );
            assert!(
                peak <= megabytes * 1_000_000,
                "{} {words:?}: {peak}",
                input.display()
            );
        }
    }
}

#[test]
fn a_region_that_needs_more_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let input = scattered(dir.path());
    let output = dir.path().join("out.osm.pbf");
    let message = run_fail(&[
        &"extract",
        &"-b",
        &"-1,-1,1,1",
        &"-j",
        &"2",
        &"--max-memory",
        &"72M",
        &input,
        &"-o",
        &output,
    ]);
    assert!(message.contains("--max-memory 72.0 MB leaves"), "{message}");
    assert!(!output.exists());
}

/// Valid blocks of millions of small things, as only a generator makes them: nodes that are not in order, and
/// references of ways and relations to objects that are not in the file.
#[test]
fn a_block_of_millions_of_small_things_takes_bounded_memory() {
    let dir = tempfile::tempdir().unwrap();
    let [input, output, stats] =
        ["in.osm.pbf", "out.osm.pbf", "stats.json"].map(|name| dir.path().join(name));
    let write = |group: Message| {
        let block = Message::new()
            .message(1, Message::new().bytes(1, b""))
            .message(2, group);
        std::fs::write(&input, craft::plain_file(&[block.to_bytes()])).unwrap();
    };
    let peak = |args: &[Arg]| {
        let said = ask(&[args, &[&"-j", &"1", &"--stats", &stats, &input]].concat());
        let text = std::fs::read(&stats).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&text).unwrap();
        (report["peak_memory_bytes"].as_u64().unwrap(), said.stdout)
    };
    let count = 2_000_000i64;
    let ids: Vec<i64> = (0..count).map(|at| (at + count / 2) % count + 1).collect();
    let zeros = vec![0; ids.len()];
    let nodes = Message::new()
        .packed_deltas(1, &ids)
        .packed_deltas(8, &zeros)
        .packed_deltas(9, &zeros);
    write(Message::new().message(2, nodes));
    let (found, _) = peak(&[&"sort", &"-q", &"-o", &output]);
    assert!(found < 200_000_000, "sort: {found}");
    // 120 bytes for each of the references would be 240 MB.
    let count = if is_long() { 4_000_000 } else { 1_200_000 };
    let refs = Message::new()
        .varint(1, 7)
        .packed_deltas(8, &vec![1; count]);
    write(Message::new().message(3, refs));
    let (found, said) = peak(&[&"check", &"--refs", &"--json"]);
    assert!(found < 100_000_000, "check --refs: {found}");
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(report["missing"]["nodes_in_ways"], count, "{report}");
    let ids: Vec<i64> = (1..=count as i64).collect();
    let members = Message::new()
        .varint(1, 7)
        .packed_uint(8, &vec![0; count])
        .packed_deltas(9, &ids)
        .packed_uint(10, &vec![0; count]);
    write(Message::new().message(4, members));
    let (found, said) = peak(&[&"check", &"-r", &"--json", &"--max-errors", &"3"]);
    assert!(found < 150_000_000, "check -r: {found}");
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(report["missing"]["nodes_in_relations"], count, "{report}");
    assert_eq!(report["listed_refs"].as_array().unwrap().len(), 3);
}

/// A file with one block of millions of nodes at one place.
fn many_nodes(path: &Path, count: i64) {
    let ids: Vec<i64> = (1..=count).collect();
    let zeros = vec![0; ids.len()];
    let nodes = Message::new()
        .packed_deltas(1, &ids)
        .packed_deltas(8, &zeros)
        .packed_deltas(9, &zeros);
    let block = Message::new()
        .message(1, Message::new().bytes(1, b""))
        .message(2, Message::new().message(2, nodes));
    std::fs::write(path, craft::plain_file(&[block.to_bytes()])).unwrap();
}

/// Runs a command on one core, and returns its peak memory in bytes.
fn peak_of(args: &[Arg], dir: &Path) -> u64 {
    let stats = dir.join("stats.json");
    run_ok(&[args, &[&"-q", &"-O", &"-j", &"1", &"--stats", &stats]].concat());
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
    report["peak_memory_bytes"].as_u64().unwrap()
}

#[test]
fn rows_of_a_block_of_millions_of_nodes_at_one_place_take_bounded_memory() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.osm.pbf");
    let (count, limit) = if is_long() {
        (3_000_000, 200_000_000)
    } else {
        (1_000_000, 125_000_000)
    };
    many_nodes(&input, count);
    let [raw, table, layout] =
        ["raw", "out.parquet", "layout.osm.pbf"].map(|name| dir.path().join(name));
    let commands: [(&str, Vec<Arg>); 3] = [
        (
            "export --raw",
            vec![&"export", &"--raw", &input, &"-o", &raw],
        ),
        ("export -n", vec![&"export", &"-n", &input, &"-o", &table]),
        (
            "repack",
            vec![&"repack", &"--layout", &"hilbert", &input, &"-o", &layout],
        ),
    ];
    for (name, args) in commands {
        let found = peak_of(&args, dir.path());
        println!("{name}: {:.1} MB", found as f64 / 1e6);
        assert!(found < limit, "{name}: {found}");
    }
    let report: serde_json::Value =
        serde_json::from_str(&ask(&[&"inspect", &"--json", &layout]).stdout).unwrap();
    assert_eq!(report["nodes"], count, "{report}");
}

#[test]
fn rows_of_objects_with_a_million_parts_are_encoded_a_few_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let [input, raw, table] =
        ["in.osm.pbf", "raw", "out.parquet"].map(|name| dir.path().join(name));
    let (parts, limit) = if is_long() {
        (1_000_000, 270_000_000)
    } else {
        (500_000, 190_000_000)
    };
    let groups: [fn(usize) -> Message; 2] = [
        |parts| hostile::tagged_nodes(10, parts),
        |parts| hostile::relations(5, parts),
    ];
    for (turn, group) in groups.into_iter().enumerate() {
        hostile::write(&input, &["", "k", "v"], &[group(parts)]);
        let commands: [Vec<Arg>; 2] = [
            vec![&"export", &"-n", &input, &"-o", &table],
            vec![&"export", &"--raw", &input, &"-o", &raw],
        ];
        for args in in_turn(turn, 2, commands) {
            let found = peak_of(&args, dir.path());
            println!("{:.1} MB", found as f64 / 1e6);
            assert!(found < limit, "{found}");
        }
    }
}

#[test]
fn changes_of_the_same_objects_take_the_memory_of_the_objects() {
    let dir = tempfile::tempdir().unwrap();
    let [changes, merged, base, output] =
        ["in.osc", "merged.osc", "base.osm.pbf", "out.osm.pbf"].map(|name| dir.path().join(name));
    // 1.5 million changes of 1,000 nodes, and 3,000 of one way with many nodes and long tags; in short runs fewer.
    let (count, of_ways, limit) = if is_long() {
        (1_500_000, 3000, 190_000_000)
    } else {
        (1_200_000, 600, 170_000_000)
    };
    let step = count / of_ways;
    let mut text = String::from("<osmChange version=\"0.6\"><modify>");
    for number in 0..count {
        let (id, version) = (number % 1000 + 1, number / 1000 + 1);
        text += &format!("<node id=\"{id}\" version=\"{version}\" lat=\"1\" lon=\"1\"/>");
        if number % step == step - 1 {
            text += &format!("<way id=\"7\" version=\"{version}\">");
            text += &"<nd ref=\"5\"/>".repeat(2000);
            text += &format!("<tag k=\"note\" v=\"{number}{}\"/></way>", "x".repeat(2000));
        }
    }
    text += "</modify></osmChange>";
    std::fs::write(&changes, text).unwrap();
    many_nodes(&base, 500);
    let merge: [Arg; 5] = [&"merge-changes", &"-s", &changes, &"-o", &merged];
    let found = peak_of(&merge, dir.path());
    println!("merge-changes -s: {:.1} MB", found as f64 / 1e6);
    assert!(found < limit, "merge-changes -s: {found}");
    let text = std::fs::read_to_string(&merged).unwrap();
    assert_eq!(text.matches("<node ").count(), 1000);
    let newest = format!("version=\"{}\"", count / 1000);
    assert_eq!(text.matches(&newest).count(), 1001);
    assert_eq!(text.matches("<nd ").count(), 2000);
    let apply: [Arg; 5] = [&"apply-changes", &base, &changes, &"-o", &output];
    let found = peak_of(&apply, dir.path());
    println!("apply-changes: {:.1} MB", found as f64 / 1e6);
    assert!(found < limit, "apply-changes: {found}");
}

#[test]
fn a_block_of_too_many_dense_messages_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let [input, output] = ["in.osm.pbf", "out.osm.pbf"].map(|name| dir.path().join(name));
    let dense = Message::new()
        .packed_sint(1, &[1])
        .packed_sint(8, &[0])
        .packed_sint(9, &[0]);
    let mut group = Message::new();
    for _ in 0..=1 << 18 {
        group = group.message(2, dense.clone());
    }
    let block = Message::new()
        .message(1, Message::new().bytes(1, b""))
        .message(2, group);
    std::fs::write(&input, craft::plain_file(&[block.to_bytes()])).unwrap();
    let message = run_fail(&[&"getid", &input, &"n1", &"-o", &output]);
    assert!(
        message.contains("more than 262,144 DenseNodes messages"),
        "{message}"
    );
    assert!(!output.exists());
}

#[test]
fn unordered_nodes_take_no_more_memory_than_ordered_ones() {
    let dir = tempfile::tempdir().unwrap();
    let sparse = |id: i64| node(id * 59_999, id % 900, id % 800, &[]);
    let mut nodes: Vec<Object> = (1..60_000).map(sparse).collect();
    nodes.sort_by_key(|node| node.id.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64));
    let ways: Vec<Object> = (1..2000)
        .map(|id| way(id, &[id * 59_999, (60_000 - id) * 59_999], &[]))
        .collect();
    let mut blocks: Vec<_> = nodes
        .chunks(2000)
        .map(|nodes| craft::block(nodes, &craft::Shape::USUAL))
        .collect();
    blocks.push(craft::block(&ways, &craft::Shape::USUAL));
    let [shuffled, sorted, stats] =
        ["u.osm.pbf", "s.osm.pbf", "stats.json"].map(|name| dir.path().join(name));
    std::fs::write(&shuffled, craft::plain_file(&blocks)).unwrap();
    run_ok(&[&"sort", &shuffled, &"-o", &sorted]);
    for kind in ["sparse", "external"] {
        let mut results = Vec::new();
        for input in [&sorted, &shuffled] {
            let output = dir.path().join("out.osm.pbf");
            run_ok(&[
                &"add-locations-to-ways",
                &"-n",
                &"--index-type",
                &kind,
                &"--max-memory",
                &"120M",
                &input,
                &"-O",
                &"-o",
                &output,
                &"--stats",
                &stats,
            ]);
            let stats: serde_json::Value =
                serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
            let peak = stats["peak_memory_bytes"].as_u64().unwrap();
            assert!(peak < 120_000_000, "{kind}: {peak}");
            let mut ways = decode::objects(&output);
            ways.retain(|object| object.kind == Kind::Way);
            results.push(ways);
        }
        assert!(
            results[0] == results[1] && results[0].len() == 1999,
            "{kind}"
        );
    }
}

#[test]
fn a_row_takes_at_most_64_mb_for_each_gb_of_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (old, new, changes) = (path("old.osm.pbf"), path("new.osm.pbf"), path("day.osc"));
    // A node with three tags of 1 MB each.
    let value = "v".repeat(1 << 20);
    let dense = Message::new()
        .packed_sint(1, &[7])
        .packed_sint(8, &[10])
        .packed_sint(9, &[10])
        .bytes(10, &[1, 4, 2, 4, 3, 4, 0]);
    let group = Message::new().message(2, dense);
    hostile::write(&new, &["", "a", "b", "c", &value], &[group]);
    hostile::write(&old, &[""], &[hostile::nodes(1)]);
    let tags = ["a", "b", "c"].map(|key| format!("<tag k=\"{key}\" v=\"{value}\"/>"));
    let node = format!(
        "<node id=\"7\" version=\"1\" lat=\"1\" lon=\"1\">{}</node>",
        tags.concat()
    );
    let text = format!("<osmChange version=\"0.6\"><create>{node}</create></osmChange>");
    std::fs::write(&changes, text).unwrap();
    let [text, table, raw] = ["out.geojsonseq", "out.parquet", "raw"].map(path);
    let commands: [Vec<Arg>; 7] = [
        vec![&"export", &new, &"-o", &text],
        vec![&"export", &new, &"-o", &table],
        vec![&"export", &"--raw", &new, &"-o", &raw],
        vec![&"diff", &old, &new, &"-o", &text],
        vec![&"diff", &old, &new, &"-o", &table],
        vec![&"augmented-diff", &old, &changes, &"-o", &text],
        vec![&"augmented-diff", &old, &changes, &"-o", &table],
    ];
    for args in commands {
        for (memory, is_left_out) in [("32M", true), ("64M", false)] {
            let answer = ask(&[&args[..], &[&"-O", &"--max-memory", &memory]].concat());
            let shown = (args[0].as_ref(), memory, &answer);
            assert!(answer.status <= 1, "{shown:?}");
            let said = "node 7 is left out: geometry and strings would take more than 2 MB";
            assert_eq!(answer.stderr.contains(said), is_left_out, "{shown:?}");
        }
    }
}

#[test]
fn differences_of_ways_with_many_references_take_bounded_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (short, long, output) = (path("short.osm.pbf"), path("long.osm.pbf"), path("out.csv"));
    let (count, limit) = if is_long() {
        (1_000_000, 200_000_000)
    } else {
        (200_000, 130_000_000)
    };
    hostile::write(&short, &[""], &[hostile::nodes(1)]);
    hostile::write(&long, &[""], &[hostile::ways(30, count)]);
    // A deletion needs the ways of the old file.
    let found = peak_of(&[&"diff", &long, &short, &"-o", &output], dir.path());
    println!("diff: {:.1} MB", found as f64 / 1e6);
    assert!(found < limit, "{found}");
    // The header, thirty deletions and a new node.
    let rows = std::fs::read_to_string(&output).unwrap();
    assert_eq!(rows.lines().count(), 32);
    // The states of the nodes of the ways are bounded, too.
    let few: [Arg; 6] = [&"diff", &long, &short, &"-O", &"-o", &output];
    let message = run_fail(&[&few[..], &[&"--max-memory", &"4M"]].concat());
    let said = format!("what the changes concern has {count} nodes, which take more memory");
    assert!(message.contains(&said), "{message}");
}
