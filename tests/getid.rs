//! `getid`, `removeid` and `getparents`, compared with simple, slow code on awkward files. `second_name/commands.txt`
//! has them on real files.

use crate::common;
use crate::common::craft::{self, Shape};
use crate::common::oracle::real_file;
use crate::common::questions::{
    Ids, Inputs, ask_once, assert_same_objects, awkward_file, file_in_blocks, file_of,
    file_of_payloads, many_blocks, name_of, parted, pipe, referenced, references, taken,
    tangled_relations, tangled_ways, written,
};
use crate::common::{
    Kind, Object, decode, in_turn, is_long, mixed_objects, node, pbfhogg, relation, run_fail,
    run_ok, way,
};
use crate::common::{known, with_metadata};
use std::path::Path;

/// A coordinate of a location in a way that is not known, in nanodegrees.
const UNKNOWN: i64 = i32::MAX as i64 * 100;

#[test]
fn removeid_is_getid_inverted() {
    let input = real_file("monaco.osm.pbf");
    let dir = tempfile::tempdir().unwrap();
    let [one, other] = ["one.osm.pbf", "other.osm.pbf"].map(|name| dir.path().join(name));
    let objects = decode::objects(&input);
    let id = written(name_of(&objects[1000]));
    run_ok(&[&"removeid", &input, &id, &"-o", &one]);
    run_ok(&[&"getid", &"--invert", &input, &id, &"-o", &other]);
    assert!(std::fs::read(&one).unwrap() == std::fs::read(&other).unwrap());
    assert_eq!(decode::objects(&one).len(), objects.len() - 1);
}

#[test]
fn coordinates_in_ways_are_kept() {
    let input = real_file("loc_on_ways.osm.pbf");
    let objects = decode::objects(&input);
    assert!(!objects[0].locations.is_empty());
    let input = Inputs::of(&input);
    input.expect(&["getid", "w107"], &objects[..1]);
    let (requested, added) = (
        Ids::from([(Kind::Relation, 120)]),
        Ids::from([(Kind::Way, 107)]),
    );
    let expected = taken(&objects, &requested, &added, true);
    input.expect(&["getid", "r120", "-r", "-t", "-H"], &expected);
}

// Awkward files, compared with the results of simple, slow code.

/// Runs the commands with all options for `ids`, and compares the outputs with those of a plain search.
fn compare_with_plain_search(input: &Inputs, objects: &[Object], ids: &Ids) {
    let names: Vec<String> = ids.iter().map(|name| written(*name)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let expect =
        |options: &[&str], expected: &[Object]| input.expect(&[options, &names].concat(), expected);
    let there: Ids = objects.iter().map(name_of).collect();
    let (wanted, others) = parted(objects, ids);

    let answer = expect(&["getid"], &wanted);
    assert_eq!(answer.status == 0, ids.is_subset(&there), "{names:?}");
    let missing = ids.difference(&there).count();
    assert_eq!(answer.summary["missing_count"], missing, "{names:?}");
    assert_eq!(answer.summary["requested"], ids.len());

    let added = referenced(objects, ids);
    let all: Ids = ids.union(&added).copied().collect();
    let ways = objects
        .iter()
        .filter(|object| all.contains(&name_of(object)));
    let located: Ids = ways
        .flat_map(|way| way.refs.iter().zip(&way.locations))
        .filter(|(_, place)| **place != (UNKNOWN, UNKNOWN))
        .map(|(id, _)| (Kind::Node, *id))
        .collect();
    for (options, untagged) in [
        (&["getid", "-r"][..], false),
        (&["getid", "-r", "-t"], true),
    ] {
        let answer = expect(options, &taken(objects, ids, &added, untagged));
        // A node is not missed if a way of the output stores its location.
        let is_missed = |name: &&(Kind, i64)| ids.contains(*name) || !located.contains(*name);
        let missing = all.difference(&there).filter(is_missed).count();
        assert_eq!(answer.status == 0, missing == 0, "-r {names:?}");
        let more = added.difference(ids);
        assert_eq!(answer.summary["missing_count"], missing);
        assert_eq!(answer.summary["referenced"], more.count());
    }

    assert_eq!(expect(&["removeid"], &others).status, 0);

    let refers = |object: &&Object| references(object).any(|name| ids.contains(&name));
    let parents: Vec<Object> = objects.iter().filter(refers).cloned().collect();
    assert_eq!(expect(&["getparents"], &parents).status, 0);
    let with_self = |object: &&Object| refers(object) || ids.contains(&name_of(object));
    let parents: Vec<Object> = objects.iter().filter(with_self).cloned().collect();
    assert_eq!(expect(&["getparents", "-s"], &parents).status, 0);
}

/// Compares the same for single ids (in short runs for half as many), for few and many ids, for all ids, and for ids of
/// missing objects (in short runs for some of these).
fn compare_many_with_plain_search(input: &Path, objects: &[Object], singles: usize) {
    let input = Inputs::of(input);
    let names: Vec<(Kind, i64)> = objects.iter().map(name_of).collect();
    let every = |step: usize| names.iter().copied().step_by(step).collect::<Ids>();
    for name in in_turn(0, 2, names.iter().step_by(names.len().div_ceil(singles))) {
        compare_with_plain_search(&input, objects, &Ids::from([*name]));
    }
    let most: Ids = every(1).difference(&every(9)).copied().collect();
    let mut some_absent = every(4);
    some_absent.extend([(Kind::Node, 77_777), (Kind::Relation, -9_999)]);
    for ids in in_turn(singles, 2, [some_absent, most, every(1)]) {
        compare_with_plain_search(&input, objects, &ids);
    }
}

#[test]
fn ids_at_the_ends_of_their_range_are_ids_like_others() {
    let dir = tempfile::tempdir().unwrap();
    let ids = [0, -1, i64::MIN + 1, i64::MIN, 1, 1 << 40, i64::MAX];
    let member = |id: i64| relation(id, &[(Kind::Way, id, "w"), (Kind::Relation, !id, "r")], &[]);
    let blocks = [
        ids.map(|id| node(id, 1, 2, &[("k", "v")])),
        ids.map(|id| way(id, &[id, 7, id], &[])),
        ids.map(member),
    ];
    let path = file_of(dir.path(), &blocks);
    compare_many_with_plain_search(&path, &blocks.concat(), 7);
}

#[test]
fn every_awkward_block_gives_the_objects_that_were_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let (path, objects) = awkward_file(dir.path());
    compare_many_with_plain_search(&path, &objects, 5);
}

#[test]
fn a_part_of_each_awkward_block_is_kept_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.osm.pbf");
    for (turn, crafted) in common::awkward::awkward_blocks().into_iter().enumerate() {
        let input = dir.path().join("in.osm.pbf");
        std::fs::write(&input, crafted.file()).unwrap();
        let names: Vec<_> = crafted.objects.iter().map(name_of).collect();
        for (start, step) in in_turn(turn, 2, [(0, 1), (0, 2), (1, 2), (2, 5)]) {
            let ids: Ids = names.iter().copied().skip(start).step_by(step).collect();
            let texts: Vec<String> = ids.iter().map(|name| written(*name)).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            if texts.is_empty() {
                continue;
            }
            let [get, remove] = ["getid", "removeid"]
                .map(|name| ask_once(&[&[name], &*texts].concat(), &input, "1", &output));
            let (there, gone) = parted(&crafted.objects, &ids);
            assert_same_objects(&get.objects, &there, crafted.name);
            assert_same_objects(&remove.objects, &gone, crafted.name);
        }
    }
}

#[test]
fn objects_out_of_order_and_ids_that_come_again_keep_their_places() {
    let dir = tempfile::tempdir().unwrap();
    let mut objects = known(mixed_objects());
    objects.reverse();
    objects.extend(known(mixed_objects()));
    objects.extend(tangled_relations());
    objects.rotate_left(7);
    let path = file_in_blocks(dir.path(), &objects, 6);
    compare_many_with_plain_search(&path, &objects, 3);
}

#[test]
fn every_version_of_an_object_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let version = |object: Object, version, visible| Object {
        visible,
        ..with_metadata(object, version, 1_600_000_000, 7, "mapper")
    };
    let objects = [
        version(node(1, 1, 1, &[("a", "b")]), 1, true),
        version(node(1, 1, 1, &[]), 2, false),
        version(node(2, 1, 1, &[]), 1, true),
        version(node(2, 5, 5, &[]), 2, true),
        version(way(1, &[1, 2], &[]), 1, true),
        version(way(1, &[2, 3], &[("a", "b")]), 2, true),
        version(way(1, &[], &[]), 3, false),
    ];
    let path = file_in_blocks(dir.path(), &objects, 3);
    compare_many_with_plain_search(&path, &objects, 4);
    let input = Inputs::of(&path);
    assert_eq!(input.ask(&["getid", "n9", "n1"]).status, 1);
    assert_eq!(input.ask(&["getid", "n9", "n1", "-H"]).status, 0);
}

#[test]
fn files_without_objects_give_none() {
    let dir = tempfile::tempdir().unwrap();
    for payloads in [&[][..], &[craft::empty_block(), craft::empty_block()]] {
        let input = Inputs::of(&file_of_payloads(dir.path(), payloads));
        compare_with_plain_search(
            &input,
            &[],
            &Ids::from([(Kind::Node, 1), (Kind::Relation, -1)]),
        );
    }
}

#[test]
fn relations_in_circles_and_in_any_order_are_followed_to_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let (relations, others) = (tangled_relations(), tangled_ways());
    let alone = file_in_blocks(dir.path(), &relations, 3);
    let singles = if is_long() { relations.len() } else { 4 };
    compare_many_with_plain_search(&alone, &relations, singles);
    for objects in [
        [&others[..], &relations].concat(),
        [relations, others].concat(),
    ] {
        let path = file_in_blocks(dir.path(), &objects, 4);
        compare_many_with_plain_search(&path, &objects, if is_long() { 2 } else { 1 });
    }
}

#[test]
fn few_levels_of_relations_are_followed_in_the_blobs_that_have_them() {
    let dir = tempfile::tempdir().unwrap();
    for levels in in_turn(0, 2, 1..8) {
        // The last relation of a chain has the first one as a member, and each has a node of its own.
        let link = |level: i64| {
            let next = level % levels + 1;
            let members = [(Kind::Relation, next * 100, ""), (Kind::Node, level, "")];
            relation(level * 100, &members, &[])
        };
        let other = |id: i64| relation(id, &[(Kind::Relation, 100, ""), (Kind::Node, 9, "")], &[]);
        let nodes = (1..10).map(|id| node(id, 1, 1, &[]));
        let relations = (1..2000).map(|id| match id % 100 {
            0 if id <= levels * 100 => link(id / 100),
            _ => other(id),
        });
        let objects: Vec<Object> = nodes.chain(relations).collect();
        let path = file_in_blocks(dir.path(), &objects, 20);
        let input = Inputs::of(&path);
        let requested = Ids::from([(Kind::Relation, 100)]);
        let added = referenced(&objects, &requested);
        let expected = taken(&objects, &requested, &added, false);
        assert_eq!(expected.len() as i64, 2 * levels);
        input.expect(&["getid", "-r", "r100"], &expected);
        compare_with_plain_search(&input, &objects, &Ids::from([(Kind::Relation, 200)]));
    }
}

#[test]
fn a_long_chain_of_relations_is_followed_in_either_direction() {
    let dir = tempfile::tempdir().unwrap();
    let members = |id: i64| [(Kind::Relation, id + 1, ""), (Kind::Node, id, "")];
    let link = |id: i64| relation(id, &members(id), &[]);
    let mut chain: Vec<Object> = (1..3000).map(link).collect();
    chain.push(node(2999, 1, 1, &[]));
    for _ in 0..2 {
        let input = Inputs::of(&file_in_blocks(dir.path(), &chain, 100));
        let answer = input.expect(&["getid", "-r", "r1"], &chain);
        // Missing are 2,998 nodes and relation 3000, a member of the last relation.
        assert_eq!(answer.summary["missing_count"], 2999);
        chain.reverse();
    }
}

#[test]
fn plain_nodes_and_other_units_are_kept_exactly() {
    let dir = tempfile::tempdir().unwrap();
    let place = |id: i64| {
        let place = node(id, id * 10, -id * 20, &[("name", "a"), ("n", "b")]);
        with_metadata(place, 1 + id % 3, 1_500_000_000 + id * 60, id % 5, "mapper")
    };
    let objects: Vec<Object> = (1..=400).map(place).collect();
    let mut shapes = [Shape::USUAL; 5];
    shapes[1].dense = false;
    (shapes[2].granularity, shapes[2].lat_offset) = (1000, 500_000);
    (shapes[3].date_granularity, shapes[3].dense) = (60_000, false);
    (
        shapes[4].granularity,
        shapes[4].lon_offset,
        shapes[4].history,
    ) = (1, 7, true);
    let blocks = objects.chunks(80).zip(&shapes);
    let payloads = blocks.map(|(objects, shape)| craft::block(objects, shape));
    let path = file_of_payloads(dir.path(), &payloads.collect::<Vec<_>>());
    compare_many_with_plain_search(&path, &objects, 2);
}

// How blobs are written.

#[test]
fn whole_blobs_are_copied_or_skipped_and_small_remains_are_joined() {
    let dir = tempfile::tempdir().unwrap();
    let blocks = many_blocks(60, 100);
    let path = file_of(dir.path(), &blocks);
    let table = dir.path().join("table.osm.pbf");
    run_ok(&[&"cat", &path, &"-o", &table]);
    let output = dir.path().join("out.osm.pbf");
    let (data, objects) = (blocks.len(), blocks.concat());

    let few: Vec<String> = (0..60)
        .map(|block| format!("n{}", block * 100 + 50))
        .collect();
    ask_once(&["getid", &few.join(" ")], &table, "2", &output);
    assert_eq!(decode::blocks(&output), [(vec![Kind::Node], 60)]);

    let one = ask_once(&["getid", "n250"], &table, "2", &output);
    assert_eq!(one.summary["blobs_skipped"], data - 1);
    assert_eq!(one.summary["blobs_rewritten"], 1);
    let but_one = ask_once(&["removeid", "n250"], &table, "2", &output);
    assert_eq!(but_one.summary["blobs_copied"], data - 1);
    let (_, others) = parted(&objects, &Ids::from([(Kind::Node, 250)]));
    assert_same_objects(&but_one.objects, &others, "removeid");

    let whole: Vec<String> = (301..=400).map(|id| id.to_string()).collect();
    let whole = ask_once(&["getid", &whole.join(",")], &table, "2", &output);
    assert_eq!(whole.summary["blobs_copied"], 1);
    assert_same_objects(&whole.objects, &objects[300..400], "a whole blob");
}

#[test]
fn large_blocks_lose_few_half_or_most_of_their_objects() {
    let dir = tempfile::tempdir().unwrap();
    let mut blocks = many_blocks(3, 8000);
    blocks.truncate(4);
    let path = file_of(dir.path(), &blocks);
    let (input, objects) = (Inputs::of(&path), blocks.concat());
    let list = dir.path().join("ids.txt");
    for step in [2, 3, 10, 1000] {
        let ids: Ids = objects.iter().map(name_of).step_by(step).collect();
        let lines: Vec<String> = ids.iter().map(|name| written(*name) + "\n").collect();
        std::fs::write(&list, lines.concat()).unwrap();
        let (there, gone) = parted(&objects, &ids);
        let list = list.to_str().unwrap();
        input.expect(&["getid", "-i", list], &there);
        input.expect(&["removeid", "-i", list], &gone);
    }
}

#[test]
fn a_blob_whose_kinds_take_turns_becomes_a_file_that_can_be_asked_again() {
    let dir = tempfile::tempdir().unwrap();
    let turn = |id: i64| {
        [
            node(id, id, id, &[]),
            way(id, &[id], &[]),
            relation(id, &[], &[]),
        ]
    };
    let objects: Vec<Object> = (1..500).flat_map(turn).collect();
    let path = file_of(dir.path(), &[&objects]);
    let (_, others) = parted(&objects, &Ids::from([(Kind::Way, 7)]));
    Inputs::of(&path).expect(&["removeid", "w7"], &others);
    let output = dir.path().join("out.osm.pbf");
    run_ok(&[&"removeid", &path, &"w7", &"-o", &output]);
    let ids = Ids::from([(Kind::Relation, 400), (Kind::Way, 7)]);
    compare_with_plain_search(&Inputs::of(&output), &others, &ids);
}

#[test]
fn input_and_ids_come_from_standard_input_and_objects_go_to_standard_output() {
    let dir = tempfile::tempdir().unwrap();
    let objects = mixed_objects();
    let path = file_of(dir.path(), &[&objects]);
    let list = dir.path().join("ids.txt");
    std::fs::write(&list, "n0\nw1\n").unwrap();
    let (expected, _) = parted(&objects, &Ids::from([(Kind::Node, 0), (Kind::Way, 1)]));
    let found = pipe(&["getid", "-", "n0", "w1"], &path);
    assert_same_objects(&found, &expected, "input");
    let found = pipe(&["getid", path.to_str().unwrap(), "-i", "-"], &list);
    assert_same_objects(&found, &expected, "ids");
}

// Arguments and messages.

#[test]
fn a_list_of_ids_has_comments_opl_and_empty_lines() {
    let dir = tempfile::tempdir().unwrap();
    let objects = mixed_objects();
    let path = file_of(dir.path(), &[&objects]);
    let list = dir.path().join("ids.txt");
    let text = "# a comment\n\n   \nn0\n  n-1 behind spaces\n\tw1#comment\r\nw2\tx\n1 v1 dV T\n\
                r-7 v3 dV c1 t2020-01-01T00:00:00Z i1 ua T M\n\n#n2\nn0\nr7";
    std::fs::write(&list, text).unwrap();
    let list = list.to_str().unwrap();
    let input = Inputs::of(&path);
    for (options, default) in [
        (&[][..], Kind::Node),
        (&["--default-type", "way"], Kind::Way),
    ] {
        let nodes = [0, -1].map(|id| (Kind::Node, id));
        let others = [
            (Kind::Way, 1),
            (Kind::Way, 2),
            (Kind::Relation, -7),
            (Kind::Relation, 7),
        ];
        let mut ids = Ids::from_iter(nodes.into_iter().chain(others));
        ids.insert((default, 1));
        let (expected, _) = parted(&objects, &ids);
        let answer = input.expect(&[&["getid", "-i", list], options].concat(), &expected);
        assert_eq!(answer.summary["requested"], ids.len());
    }
    // Several lists, and ids on the command line, are combined.
    let answer = input.ask(&["getid", "-i", list, "-i", list, "n2,w3;r6/n3|n6 5"]);
    assert_eq!(answer.summary["requested"], 13);
}

#[test]
fn garbage_among_ids_is_an_error_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = file_of(dir.path(), &[&mixed_objects()]);
    let (list, output) = (dir.path().join("ids.txt"), dir.path().join("out.osm.pbf"));
    let garbage = [
        "xyz",
        "n",
        "n1.5",
        "nn1",
        "w9223372036854775808",
        "\u{feff}n1",
        "ä",
    ];
    for garbage in garbage {
        std::fs::write(&list, format!("n1\n# fine\n{garbage}\nn2\n")).unwrap();
        for command in ["getid", "removeid", "getparents"] {
            let message = run_fail(&[&command, &path, &"-i", &list, &"-o", &output]);
            assert!(message.contains("ids.txt: line 3"), "{garbage}: {message}");
        }
        run_fail(&[&"getid", &path, &garbage, &"-o", &output]);
    }
    std::fs::write(&list, b"n1\n\xff\xfe\n").unwrap();
    let message = run_fail(&[&"getid", &path, &"-i", &list, &"-o", &output]);
    assert!(message.contains("ids.txt: line 2"), "{message}");
    let message = run_fail(&[&"getid", &path, &"-i", &"/nowhere/ids", &"-o", &output]);
    assert!(message.contains("/nowhere/ids"), "{message}");
    let message = run_fail(&[&"getid", &path, &"-I", &list, &"-o", &output]);
    assert!(message.contains("ids.txt"), "{message}");
    let message = run_fail(&[&"removeid", &"-r", &path, &"n1", &"-o", &output]);
    assert!(message.contains("--invert"), "{message}");
    assert!(!output.exists());
}

#[test]
fn an_object_that_is_not_found_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let objects = [
        way(1, &[1, 2, -3], &[]),
        relation(1, &[(Kind::Way, 1, ""), (Kind::Way, 8, "")], &[]),
    ];
    let path = file_of(dir.path(), &[&objects]);
    let output = dir.path().join("out.osm.pbf");
    let list = dir.path().join("many");
    std::fs::write(&list, "7\n8\n9\n10\n11\n12\nw1\n").unwrap();
    let said = |args: &[&str]| {
        let mut command = pbfhogg();
        command
            .args(args)
            .arg(&path)
            .arg("-O")
            .arg("-o")
            .arg(&output);
        let run = command.output().unwrap();
        let text = [run.stdout, run.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (run.status.code().unwrap(), text)
    };
    let (path, list) = (path.to_str().unwrap(), list.to_str().unwrap());
    let (status, [_, told]) = said(&["getid", "-r", "-I", path]);
    assert_eq!(status, 1);
    assert!(told.contains(": 4 not found: n-3 n1 n2 w8\n"), "{told}");
    let (_, [_, told]) = said(&["getid", "-i", list]);
    let first = "6 not found: n7 n8 n9 n10 n11 …";
    assert!(told.contains(first), "{told}");
    let (status, [_, told]) = said(&["getid", "-i", list, "--verbose-ids"]);
    assert_eq!(status, 1);
    let nodes = "nodes: 7 8 9 10 11 12\n";
    let asked = ["asked for ", nodes, "asked for ways: 1\n", "not found"];
    assert!(told.starts_with(&asked.concat()), "{told}");
    assert_eq!(told.matches(nodes).count(), 2, "{told}");
    let (status, [_, told]) = said(&["getparents", "-i", list, "--verbose-ids"]);
    assert_eq!((status, told.matches(nodes).count()), (0, 1), "{told}");
    let silent = [String::new(), String::new()];
    assert_eq!(said(&["getid", "-q", "-i", list]), (1, silent));
}

#[test]
fn an_output_that_exists_is_left_alone_even_where_nothing_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = file_of(dir.path(), &[&mixed_objects()]);
    let output = dir.path().join("out.osm.pbf");
    std::fs::write(&output, "kept").unwrap();
    for command in ["getid", "removeid", "getparents"] {
        run_fail(&[&command, &path, &"n1", &"-o", &output]);
        assert_eq!(std::fs::read(&output).unwrap(), b"kept");
    }
}

#[test]
fn parents_are_found_upwards_in_the_same_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("in.opl");
    let text = "n1 x1 y1\nn2 x2 y2\nn3 x3 y3\nw1 Nn1,n2 Ta=b\nw2 Nn2,n3\nr1 Mw1@\nr2 Mr1@\nr3 Mr2@\nr4 Mn3@ Ta=b\n";
    std::fs::write(&path, text).unwrap();
    let names = |args: &[&str]| {
        let mut all: Vec<common::Arg> = vec![&"getid", &path, &"-f", &"opl"];
        args.iter().for_each(|arg| all.push(arg));
        let told = common::answers::ask(&all).lines();
        let name = |line: &String| line.split(' ').next().unwrap().to_owned();
        told.iter().map(name).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&["n1", "--add-parents"]), "n1 w1 r1 r2 r3");
    assert_eq!(names(&["w1", "--add-parents", "-r"]), "n1 n2 w1 r1 r2 r3");
    assert_eq!(
        names(&["n2", "--add-parents", "-t", "-r"]),
        "n2 w1 w2 r1 r2 r3"
    );
    assert_eq!(names(&["r3", "--add-parents"]), "r3");
    let table = dir.path().join("table.csv");
    for text in [
        "@type,@id,name\nway,1,x\nnode,2,\"y\"\n",
        "osm_id;osm_type\n1;W\n2;N\n",
        "way,1,x\nnode,2,y\n",
        "w\t1\nnode\t2\n",
        "n2 text\nw1#text\n\n",
    ] {
        std::fs::write(&table, text).unwrap();
        assert_eq!(names(&["-i", table.to_str().unwrap()]), "n2 w1", "{text}");
    }
    for text in ["@type,@id\nhouse,1\n", "way,x\n", "text\n"] {
        std::fs::write(&table, text).unwrap();
        let message = common::run_fail(&[&"getid", &path, &"-i", &table, &"-f", &"opl"]);
        assert!(message.contains("table.csv: line"), "{message}");
    }
}
