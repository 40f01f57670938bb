//! `tags-filter`: compared with osmium on real files, and with simple, slow code on awkward files.

use crate::common;
use crate::common::craft::{self, Layout, Shape};
use crate::common::oracle::{osmium, osmium_answer, real_file, real_files, renumbered};
use crate::common::questions::{
    Ids, Inputs, ask_once, assert_as_osmium, assert_same_objects, awkward_file, file_in_blocks,
    file_of, file_of_payloads, many_blocks, name_of, pipe, referenced, taken, tangled_relations,
    tangled_ways, written,
};
use crate::common::{
    Arg, Kind, Object, decode, in_turn, is_long, known, mixed_objects, node, relation,
};
use crate::common::{run_fail, run_ok, way, with_metadata};
use std::path::Path;

// Real files.

/// Expressions, separated by `;`. Those joined by `&` are given in one run.
const EXPRESSIONS: &str = "highway; /note; n/amenity; nw/highway & r/route; nwr/name; r/type & w/none; \
    a/building; na/amenity; wa/natural=water; r/type=multipolygon,boundary; w/highway=primary; \
    w/highway!=primary; highway!=primary,secondary, residential; \
    w/name,name:fi,name:fr=Mannerheimintie,Rue Grimaldi & n/x; addr:*; n/addr:* & a/building=yes; \
    *name*; name=*street*; name=S*; *=yes; name!=*a*; r/*=route; *; none & building=; \
    w/source=Bing/x & highway=primary=x &  building = yes ";

fn expressions() -> Vec<Vec<&'static str>> {
    let together = |several: &'static str| several.split(" & ").collect();
    EXPRESSIONS.split("; ").map(together).collect()
}

const OPTIONS: [&[&str]; 5] = [&[], &["-R"], &["-t"], &["-i"], &["-i", "-R"]];

fn compare_with_osmium(input: &Path, expressions: &[Vec<&str>], options: &[&[&str]]) {
    let dir = tempfile::tempdir().unwrap();
    for expressions in expressions {
        for options in options {
            let mut args: Vec<Arg> = vec![&"tags-filter", &input];
            let rest = options.iter().chain(expressions);
            args.extend(rest.map(|arg| arg as Arg));
            assert_as_osmium(&args, dir.path());
        }
    }
}

#[test]
fn every_expression_gives_what_osmium_gives() {
    let dir = tempfile::tempdir().unwrap();
    let Some(extract) = renumbered("monaco.lz4.osm.pbf", dir.path()) else {
        return;
    };
    let tiny = ["loc_on_ways.osm.pbf", "deleted_nodes.osh.pbf"];
    let inputs = tiny.map(real_file).into_iter().chain([extract]);
    for (first, input) in inputs.enumerate() {
        let is_tiny = first < tiny.len();
        compare_in_turn(&input, first, if is_tiny { 2 } else { 1 });
    }
}

/// Compares each expression with all options; in short runs one of `of` expressions with one option, in turn from `first`
/// on.
fn compare_in_turn(input: &Path, first: usize, of: usize) {
    let at_once = if is_long() { OPTIONS.len() } else { 1 };
    let expressions = expressions();
    for (turn, expressions) in in_turn(first, of, expressions.iter().enumerate()) {
        for more in 0..at_once {
            let options = OPTIONS[(first + turn + more) % OPTIONS.len()];
            compare_with_osmium(input, std::slice::from_ref(expressions), &[options]);
        }
    }
}

#[test]
fn every_expression_gives_what_osmium_gives_where_relations_stand_first() {
    let dir = tempfile::tempdir().unwrap();
    let name = if is_long() {
        "helsinki.osm.pbf"
    } else {
        "monaco.osm.pbf"
    };
    let Some(input) = renumbered(name, dir.path()) else {
        return;
    };
    let parts = ["relation", "way", "node"].map(|kind| {
        let part = dir.path().join(format!("{kind}.osm.pbf"));
        run_ok(&[&"cat", &"-t", &kind, &input, &"-o", &part]);
        part
    });
    let input = dir.path().join("in.osm.pbf");
    run_ok(&[&"cat", &parts[0], &parts[1], &parts[2], &"-o", &input]);
    compare_in_turn(&input, 3, 2);
}

#[test]
fn some_expressions_give_what_osmium_gives_on_every_real_file() {
    if osmium() {
        let others = ["a/building", "highway!=residential"];
        let questions: [(&[&str], &[&str]); 3] = [
            (&["r/*"], &["-t"]),
            (&others, &["-R"]),
            (&others, &["-i", "-R"]),
        ];
        for (turn, input) in real_files().iter().enumerate() {
            for (expressions, options) in in_turn(turn, 3, questions) {
                compare_with_osmium(input, &[expressions.to_vec()], &[options]);
            }
        }
    }
}

#[test]
fn difference_ways_are_kept_where_no_relation_is_and_lost_in_osmium() {
    if !osmium() {
        return;
    }
    let input = real_file("monaco.osm.pbf");
    let (_, theirs) = osmium_answer(&[&"tags-filter", &"-i", &input, &"r/type"]);
    assert!(theirs.iter().all(|line| line.starts_with('n')));
    let mut others = decode::objects(&input);
    others.retain(|object| object.kind != Kind::Relation);
    Inputs::of(&input).expect(&["tags-filter", "-i", "r/type"], &others);
}

// Awkward files, compared with the results of simple, slow code.

fn any_tag(object: &Object, test: impl Fn(&str, &str) -> bool) -> bool {
    object.tags.iter().any(|(key, value)| test(key, value))
}

fn has(object: &Object, key: &str) -> bool {
    any_tag(object, |found, _| found == key)
}

fn is(object: &Object, key: &str, value: &str) -> bool {
    any_tag(object, |found, other| found == key && other == value)
}

fn is_area(object: &Object) -> bool {
    match object.kind {
        Kind::Node => false,
        Kind::Way => object.refs.len() >= 4 && object.refs.first() == object.refs.last(),
        Kind::Relation => is(object, "type", "multipolygon") || is(object, "type", "boundary"),
    }
}

/// Whether an object matches.
type Test = fn(&Object) -> bool;

/// Expressions, and the test that is equivalent to them.
const QUESTIONS: [(&[&str], Test); 13] = [
    (&["highway"], |object| has(object, "highway")),
    (&["*a*=*e*"], |object| {
        any_tag(object, |key, value| {
            key.contains('a') && value.contains('e')
        })
    }),
    // Names of users, roles and values, which must not match as keys.
    (
        &["one,zwölf % , = @,outer,stop,no=one", "outer", "path"],
        |_| false,
    ),
    (&["r/type=site", "r/members", "r/name=x"], |object| {
        let found = is(object, "type", "site") || is(object, "name", "x");
        object.kind == Kind::Relation && (found || has(object, "members"))
    }),
    (&["n/a", "w/area=yes"], |object| match object.kind {
        Kind::Node => has(object, "a"),
        Kind::Way => is(object, "area", "yes"),
        Kind::Relation => false,
    }),
    (&["*"], |object| !object.tags.is_empty()),
    (&["a/*"], |object| {
        is_area(object) && !object.tags.is_empty()
    }),
    (&["name!=x,three"], |object| {
        any_tag(object, |key, value| {
            key == "name" && !["x", "three"].contains(&value)
        })
    }),
    (&["empty=", "id=zero, large"], |object| {
        is(object, "empty", "") || is(object, "id", "zero") || is(object, "id", "large")
    }),
    (&["@version>1"], |object| {
        object.version.is_some_and(|version| version > 1)
    }),
    (
        &["wn/@timestamp<=2017-07 @uid!=5,7", "r/@changeset<5000"],
        |object| {
            let uid = object.uid.filter(|uid| *uid != 0);
            match object.kind {
                Kind::Node | Kind::Way => {
                    // The first second of August 2017.
                    object.timestamp.is_some_and(|time| time < 1_501_545_600)
                        && uid.is_some_and(|uid| uid != 5 && uid != 7)
                }
                Kind::Relation => object.changeset.is_some_and(|changeset| changeset < 5000),
            }
        },
    ),
    (&["*=* @user!=mapper", "@user=mapp*"], |object| {
        let user = object.user.as_deref();
        !object.tags.is_empty() && user.is_some_and(|user| user != "mapper")
            || user.is_some_and(|user| user.starts_with("mapp"))
    }),
    (&["@user=nobody of this name"], |_| false),
];

/// The objects that a filter must keep: all versions of matching objects and of the objects that they refer to, or with
/// -R the matching objects only.
fn filtered(objects: &[Object], test: Test, options: &[&str]) -> Vec<Object> {
    let invert = options.contains(&"-i");
    let matching = objects.iter().filter(|object| test(object) != invert);
    if options.contains(&"-R") {
        return matching.cloned().collect();
    }
    let matched: Ids = matching.map(name_of).collect();
    let added = referenced(objects, &matched);
    taken(objects, &matched, &added, options.contains(&"-t"))
}

/// Compares the answers to questions with all options; in short runs with two or more of them in turn, so that each is
/// given.
fn compare_with_plain_search(input: &Path, objects: &[Object], questions: &[(&[&str], Test)]) {
    let input = Inputs::of(input);
    let at_once = if is_long() {
        OPTIONS.len()
    } else {
        OPTIONS.len().div_ceil(questions.len()).max(2)
    };
    for (turn, (expressions, test)) in questions.iter().enumerate() {
        for &options in OPTIONS.iter().cycle().skip(turn * at_once).take(at_once) {
            let args = [&["tags-filter"], options, expressions].concat();
            // The bytes for these options have a test of their own.
            let answer = match options {
                ["-i", "-R"] => input.ask_for_objects(&args),
                _ => input.ask(&args),
            };
            assert_eq!(answer.status, 0, "{args:?}");
            let expected = filtered(objects, *test, options);
            assert_same_objects(&answer.objects, &expected, &format!("{args:?}"));
        }
    }
}

#[test]
fn every_awkward_block_gives_the_objects_that_match() {
    let dir = tempfile::tempdir().unwrap();
    let (path, objects) = awkward_file(dir.path());
    compare_with_plain_search(&path, &objects, &QUESTIONS);
}

#[test]
fn each_awkward_block_alone_gives_the_objects_that_match() {
    let dir = tempfile::tempdir().unwrap();
    // Some blocks have deleted versions without those before them, as change files have.
    let [input, output] = ["in.osh.pbf", "out.osh.pbf"].map(|name| dir.path().join(name));
    for (turn, crafted) in common::awkward::awkward_blocks().into_iter().enumerate() {
        std::fs::write(&input, crafted.file()).unwrap();
        for (more, (expressions, test)) in QUESTIONS[3..5].iter().enumerate() {
            for options in in_turn(turn + more, OPTIONS.len(), OPTIONS) {
                let args = [&["tags-filter"], options, expressions].concat();
                let answer = ask_once(&args, &input, "1", &output);
                let expected = filtered(&crafted.objects, *test, options);
                let what = format!("{}: {args:?}", crafted.name);
                assert_same_objects(&answer.objects, &expected, &what);
            }
        }
    }
}

#[test]
fn objects_out_of_order_keep_their_places() {
    let dir = tempfile::tempdir().unwrap();
    let mut objects = known(mixed_objects());
    objects.reverse();
    objects.rotate_left(7);
    let path = file_in_blocks(dir.path(), &objects, 5);
    compare_with_plain_search(&path, &objects, &QUESTIONS);
}

#[test]
fn relations_in_circles_and_in_any_order_are_followed_to_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let (mut relations, others) = (tangled_relations(), tangled_ways());
    // Only one relation of the cycle keeps the name x, like some nodes and ways.
    let unnamed = relations.iter_mut().filter(|relation| relation.id != 1);
    unnamed.for_each(|relation| relation.tags.truncate(1));
    let orders = [
        relations.clone(),
        [&others[..], &relations].concat(),
        [relations, others].concat(),
    ];
    for objects in orders {
        let path = file_in_blocks(dir.path(), &objects, 4);
        compare_with_plain_search(&path, &objects, &QUESTIONS[..4]);
    }
}

#[test]
fn ids_at_the_ends_of_their_range_are_ids_like_others() {
    let dir = tempfile::tempdir().unwrap();
    let ids = [0, -1, i64::MIN + 1, i64::MIN, 1, 1 << 40, i64::MAX];
    let some = |condition: bool, key: &'static str, value: &'static str| {
        if condition {
            vec![(key, value)]
        } else {
            vec![]
        }
    };
    let members = |id: i64| [(Kind::Way, id, "a"), (Kind::Relation, -(id / 2), "b")];
    let blocks = [
        ids.map(|id| node(id, 1, 2, &some(id % 2 == 0, "a", "e"))),
        ids.map(|id| way(id, &[id, !id, id, id], &some(id > 0, "highway", "x"))),
        ids.map(|id| relation(id, &members(id), &some(id < 0, "type", "site"))),
    ];
    let path = file_of(dir.path(), &blocks);
    compare_with_plain_search(&path, &blocks.concat(), &QUESTIONS);
}

#[test]
fn files_without_objects_or_tags_give_what_little_there_is() {
    let dir = tempfile::tempdir().unwrap();
    for payloads in [&[][..], &[craft::empty_block(), craft::empty_block()]] {
        let path = file_of_payloads(dir.path(), payloads);
        compare_with_plain_search(&path, &[], &QUESTIONS[..1]);
    }
    let mut objects = known(mixed_objects());
    objects.iter_mut().for_each(|object| object.tags.clear());
    let path = file_in_blocks(dir.path(), &objects, 9);
    compare_with_plain_search(&path, &objects, &QUESTIONS[..3]);
}

#[test]
fn areas_are_closed_ways_of_four_nodes_and_multipolygons_and_boundaries() {
    let dir = tempfile::tempdir().unwrap();
    let tags = [("building", "yes")];
    let with = |kind: &'static str| [("building", "yes"), ("type", kind)];
    let objects = [
        node(1, 1, 1, &tags),
        way(1, &[1, 2, 3, 1], &tags),
        way(2, &[1, 2, 1], &tags),
        way(3, &[1, 2, 3, 4], &tags),
        way(4, &[], &tags),
        way(5, &[7, 7, 7, 7], &tags),
        way(6, &[1, 2, 3, 1], &[("type", "multipolygon")]),
        relation(1, &[], &tags),
        relation(2, &[], &with("multipolygon")),
        relation(3, &[], &with("boundary")),
        relation(4, &[], &with("route")),
        relation(5, &[], &[("type", "boundary")]),
        relation(6, &[], &[("type", "multipolygon"), ("building", "yes")]),
        relation(7, &[], &[("kind", "multipolygon"), ("building", "type")]),
    ];
    let input = Inputs::of(&file_of(dir.path(), &[objects]));
    let names = |expression: &str| {
        let found = input.ask(&["tags-filter", "-R", expression]).objects;
        found
            .iter()
            .map(|object| written(name_of(object)))
            .collect::<Vec<_>>()
    };
    assert_eq!(names("a/building"), ["w1", "w5", "r2", "r3", "r6"]);
    assert_eq!(names("a/type=boundary"), ["r3", "r5"]);
    assert_eq!(names("na/building"), ["n1", "w1", "w5", "r2", "r3", "r6"]);
    assert_eq!(names("wa/type"), ["w6", "r2", "r3", "r5", "r6"]);
}

#[test]
fn strings_tell_what_blocks_need_not_be_read_however_they_are_laid_out_and_compressed() {
    let dir = tempfile::tempdir().unwrap();
    // Blocks in which the string is a tag's key, a value, a user's name, a role, or absent.
    let user = |object: Object| with_metadata(object, 1, 1_500_000_000, 5, "highway");
    let members = [(Kind::Way, 1, "highway"), (Kind::Way, 9, "")];
    let cases = [
        vec![node(1, 1, 1, &[("highway", "stop")]), node(2, 1, 1, &[])],
        vec![node(3, 1, 1, &[("name", "highway")]), node(4, 1, 1, &[])],
        vec![
            user(node(5, 1, 1, &[("name", "x")])),
            user(node(6, 1, 1, &[])),
        ],
        vec![way(1, &[4, 5, 9], &[("name", "stop")])],
        vec![
            way(2, &[6, 3, 2, 6], &[("highway", "path")]),
            way(3, &[1], &[]),
        ],
        vec![relation(1, &members, &[("type", "site")])],
    ];
    use Layout::{Reversed, Split, UnknownFields, Unpacked, Usual};
    let layouts = [Usual, Unpacked, Split, Reversed, UnknownFields];
    // Each layout has objects of its own.
    let shifted = |number: usize, objects: &[Object]| -> Vec<Object> {
        let by = number as i64 * 100;
        let mut objects = objects.to_vec();
        for object in &mut objects {
            object.id += by;
            object.refs.iter_mut().for_each(|id| *id += by);
            object.members.iter_mut().for_each(|member| member.1 += by);
        }
        objects
    };
    let numbers = 0..layouts.len();
    let objects: Vec<_> = numbers
        .flat_map(|number| shifted(number, &cases.concat()))
        .collect();
    let input = dir.path().join("in.osm.pbf");
    let compressions = [
        craft::raw_blob,
        craft::zlib_blob,
        craft::zstd_blob,
        craft::lz4_blob,
    ];
    for (compress, dense) in compressions.into_iter().zip([true, false, true, false]) {
        let mut file = craft::plain_file(&[]);
        for (number, layout) in layouts.into_iter().enumerate() {
            let shape = Shape {
                layout,
                dense,
                ..Shape::USUAL
            };
            for objects in &cases {
                let blob = compress(&craft::block(&shifted(number, objects), &shape));
                file.extend(craft::frame("OSMData", &blob));
            }
        }
        std::fs::write(&input, file).unwrap();
        compare_with_plain_search(&input, &objects, &QUESTIONS[..3]);
    }
}

// How blobs are written.

#[test]
fn the_same_bytes_come_out_however_often_a_look_at_the_strings_is_enough() {
    let dir = tempfile::tempdir().unwrap();
    let blocks = many_blocks(100, 30);
    let questions: [(&[&str], Test); 3] = [
        (&["rare"], |object| has(object, "rare")),
        (&["plain"], |object| has(object, "plain")),
        (&["wr/highway"], |object| has(object, "highway")),
    ];
    let path = file_of(dir.path(), &blocks);
    compare_with_plain_search(&path, &blocks.concat(), &questions);
}

#[test]
fn the_same_bytes_come_out_of_an_inverted_filter_on_any_number_of_cores() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = |block: i64| {
        // A worker that processes eight blocks with the key in a row stops using the prefilter for those after them.
        let tags = [(if block % 65 < 8 { "plain" } else { "other" }, "yes")];
        let ids = block * 200 + 1..=(block + 1) * 200;
        ids.map(|id| node(id, id, id, &tags)).collect::<Vec<_>>()
    };
    let blocks: Vec<Vec<Object>> = (0..260).map(nodes).collect();
    let input = Inputs::of(&file_of(dir.path(), &blocks));
    let mut others = blocks.concat();
    others.retain(|object| has(object, "other"));
    // The distribution of blocks to workers is random.
    for _ in 0..if is_long() { 10 } else { 6 } {
        input.expect(&["tags-filter", "-i", "-R", "plain"], &others);
    }
}

#[test]
fn blobs_that_cannot_match_are_skipped_or_copied() {
    let dir = tempfile::tempdir().unwrap();
    let blocks = many_blocks(20, 50);
    let ways = blocks
        .iter()
        .filter(|block| block[0].kind == Kind::Way)
        .count();
    let path = file_of(dir.path(), &blocks);
    let [table, output] = ["table.osm.pbf", "out.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[&"cat", &path, &"-o", &table]);
    let ask = |args: &[&str]| {
        let args = [&["tags-filter"], args].concat();
        ask_once(&args, &table, "1", &output).summary
    };
    let summary = ask(&["-R", "w/highway"]);
    assert_eq!(summary["blobs_copied"], ways, "all match");
    assert_eq!(summary["blobs_skipped"], blocks.len() - ways);
    let summary = ask(&["-i", "-R", "w/highway"]);
    assert_eq!(summary["blobs_copied"], blocks.len() - ways);
    let summary = ask(&["-R", "n/rare"]);
    assert_eq!(summary["blobs_rewritten"], 3);
    let joined = [(vec![Kind::Node], 30)];
    assert_eq!(decode::blocks(&output), joined);
}

#[test]
fn large_blocks_lose_few_half_or_most_of_their_objects() {
    let dir = tempfile::tempdir().unwrap();
    let numbered = |id: i64| {
        let (text, user) = ((id % 10).to_string(), format!("user {}", id % 100));
        let tags = [("n", text.as_str()), ("id", "x")];
        let place = node(id, id, -id, &tags[..1 + usize::from(id % 3 == 0)]);
        with_metadata(place, 1, 1_500_000_000 + id, id % 100, &user)
    };
    let line = |id: i64| {
        way(
            id,
            &[id, id * 3, 9],
            &[("n", if id % 3 == 0 { "1" } else { "7" })],
        )
    };
    let blocks = [
        (1..8000).map(numbered).collect(),
        (1..8000).map(line).collect::<Vec<_>>(),
    ];
    let questions: [(&[&str], Test); 3] = [
        (&["n/n=1"], |object| {
            object.kind == Kind::Node && is(object, "n", "1")
        }),
        (&["n=1,2,3,4,5"], |object| {
            any_tag(object, |key, value| {
                key == "n" && ("1"..="5").contains(&value)
            })
        }),
        (&["w/n!=1"], |object| {
            object.kind == Kind::Way && !is(object, "n", "1")
        }),
    ];
    let path = file_of(dir.path(), &blocks);
    compare_with_plain_search(&path, &blocks.concat(), &questions);
}

// Arguments and messages.

#[test]
fn the_summary_counts_what_matched_and_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let members = [(Kind::Way, 1, ""), (Kind::Way, 3, ""), (Kind::Node, 3, "")];
    let objects = [
        node(1, 1, 1, &[]),
        node(2, 1, 1, &[("highway", "stop")]),
        node(3, 1, 1, &[]),
        way(1, &[1, 2, 8, 1], &[("highway", "path")]),
        way(2, &[9], &[]),
        relation(1, &members, &[("highway", "group")]),
    ];
    let path = file_in_blocks(dir.path(), &objects, 3);
    let input = Inputs::of(&path);
    for (args, missing) in [
        (&["tags-filter", "highway"][..], 2),
        (&["tags-filter", "-R", "highway"], 0),
    ] {
        let summary = input.ask(args).summary;
        assert_eq!(summary["matched"], 3);
        assert_eq!(summary["missing"], missing);
    }
    let output = dir.path().join("out.osm.pbf");
    let run = run_ok(&[&"tags-filter", &"-v", &path, &"highway", &"-o", &output]);
    let text = String::from_utf8_lossy(&run.stderr);
    let counts = "3 objects that match, 2 that they refer to (2 are missing)";
    assert!(text.contains(counts), "{text}");
    run_fail(&[&"tags-filter", &path, &"highway", &"-o", &output]);
}

#[test]
fn objects_that_come_twice_make_up_for_none_that_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let version = |number| with_metadata(node(1, 1, 1, &[]), number, 1_500_000_000, 1, "mapper");
    let line = way(1, &[1, 2], &[("highway", "path")]);
    let objects = [version(1), version(2), line];
    let input = Inputs::of(&file_of(dir.path(), &[&objects]));
    let answer = input.expect(&["tags-filter", "highway"], &objects);
    assert_eq!(answer.summary["missing"], 1, "node 2");
}

#[test]
fn nodes_of_all_versions_that_are_kept_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let version = |number, refs: &[i64], tags| {
        with_metadata(way(1, refs, tags), number, 1_500_000_000, 1, "mapper")
    };
    let nodes: Vec<Object> = (1..6).map(|id| node(id, 1, 1, &[])).collect();
    let ways = [
        version(1, &[1, 2], &[]),
        version(2, &[2, 3], &[("highway", "path")]),
        version(3, &[4], &[]),
    ];
    let path = file_of(dir.path(), &[&nodes[..], &ways]);
    let expected = [&nodes[..4], &ways].concat();
    Inputs::of(&path).expect(&["tags-filter", "highway"], &expected);
}

#[test]
fn a_file_comes_from_standard_input_and_goes_to_standard_output() {
    let dir = tempfile::tempdir().unwrap();
    let objects = mixed_objects();
    let path = file_of(dir.path(), &[&objects]);
    for options in OPTIONS {
        let found = pipe(&[&["tags-filter", "-", "highway"], options].concat(), &path);
        let expected = filtered(&objects, |object| has(object, "highway"), options);
        assert_same_objects(&found, &expected, &format!("{options:?}"));
    }
}
