//! `renumber`, compared with a simple implementation, and with osmium.

use crate::common::answers::{ask, ask_osmium, file_in_shape, file_of, history_of, in_order};
use crate::common::extracts::random_world;
use crate::common::oracle::{osmium, real_file, real_files};
use crate::common::{
    Kind, Object, canonical_key, craft, decode, mixed_objects, node, pbfhogg, relation, run_fail,
    run_ok, way,
};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// New ids by kind and old id.
type Map = HashMap<(Kind, i64), i64>;

const KINDS: [Kind; 3] = [Kind::Node, Kind::Way, Kind::Relation];

/// Numbers objects in canonical order, and then the missing objects that they refer to, in file order.
fn numbered(objects: &[Object], start: [i64; 3], orphans: bool) -> Map {
    let mut map = Map::new();
    let mut next = start;
    let mut add = |kind: Kind, id: i64| {
        let next = &mut next[kind as usize];
        map.entry((kind, id)).or_insert_with(|| {
            *next += next.signum();
            *next - next.signum()
        });
    };
    let mut keys: Vec<(Kind, i64)> = objects
        .iter()
        .map(|object| (object.kind, object.id))
        .collect();
    keys.sort_by_key(|&(kind, id)| canonical_key(kind, id));
    keys.into_iter().for_each(|(kind, id)| add(kind, id));
    if orphans {
        for object in objects.iter().filter(|object| object.kind == Kind::Way) {
            object.refs.iter().for_each(|id| add(Kind::Node, *id));
        }
        for (kind, id, _) in objects.iter().flat_map(|object| &object.members) {
            add(*kind, *id);
        }
    }
    map
}

/// The objects with new ids. Ids that the map does not have are unchanged.
fn with_ids(objects: &[Object], map: &Map) -> Vec<Object> {
    let new = |kind: Kind, id: i64| map.get(&(kind, id)).copied().unwrap_or(id);
    let objects = objects.iter().cloned().map(|mut object| {
        object.id = new(object.kind, object.id);
        object
            .refs
            .iter_mut()
            .for_each(|id| *id = new(Kind::Node, *id));
        for (kind, id, _) in &mut object.members {
            *id = new(*kind, *id);
        }
        object
    });
    objects.collect()
}

fn renumbered(input: &Path, args: &[&str]) -> Vec<Object> {
    let output = input.with_file_name("renumbered.osm.pbf");
    let mut outputs = Vec::new();
    for jobs in ["1", "3"] {
        let mut all: Vec<&dyn AsRef<std::ffi::OsStr>> =
            vec![&"renumber", &"-O", &"-j", &jobs, &input];
        all.extend(args.iter().map(|arg| arg as &dyn AsRef<std::ffi::OsStr>));
        all.extend([&"-o" as &dyn AsRef<std::ffi::OsStr>, &output]);
        run_ok(&all);
        outputs.push(std::fs::read(&output).unwrap());
    }
    assert!(
        outputs[0] == outputs[1],
        "{args:?}: bytes depend on the number of threads"
    );
    // The table of contents is correct.
    let answer = ask(&[&"check", &"--ids", &"-q", &output]);
    assert!(answer.status < 2, "{answer:?}");
    decode::objects(&output)
}

fn file_in_blobs(dir: &Path, objects: &[Object], size: usize) -> PathBuf {
    let blobs: Vec<&[Object]> = objects.chunks(size).collect();
    history_of(dir, "in.osm.pbf", &blobs)
}

#[test]
fn ids_without_gaps_and_references_that_follow() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..6 {
        let objects = random_world(seed, 200, seed % 2 == 1);
        let input = file_in_blobs(dir.path(), &objects, 37);
        for (args, start) in [
            (&[][..], [1; 3]),
            (&["-s", "1000"], [1000; 3]),
            (&["--start-id", "-1"], [-1; 3]),
            (&["-s", "5,-7,900000000000"], [5, -7, 900_000_000_000]),
        ] {
            let expected = with_ids(&objects, &numbered(&objects, start, true));
            assert!(renumbered(&input, args) == expected, "{seed} {args:?}");
        }
        let mut kept = numbered(&objects, [1; 3], false);
        assert!(
            renumbered(&input, &["--orphans", "keep"]) == with_ids(&objects, &kept),
            "{seed}"
        );
        kept = numbered(&objects, [1; 3], true);
        for kind in KINDS {
            let mut some = kept.clone();
            some.retain(|key, _| key.0 == kind);
            let name = ["node", "way", "relation"][kind as usize];
            assert!(
                renumbered(&input, &["-t", name]) == with_ids(&objects, &some),
                "{seed} {name}"
            );
        }
    }
}

#[test]
fn awkward_files_are_renumbered_object_by_object() {
    let dir = tempfile::tempdir().unwrap();
    let mut objects = mixed_objects();
    objects.push(way(i64::MIN, &[i64::MIN, i64::MAX, 0, -1], &[]));
    objects.push(node(i64::MIN, 1, 1, &[]));
    objects.push(node(i64::MAX, 2, 2, &[("a", "b")]));
    objects.push(relation(
        0,
        &[(Kind::Relation, 0, "itself"), (Kind::Node, i64::MIN, "")],
        &[],
    ));
    let expected = with_ids(&objects, &numbered(&objects, [1; 3], true));
    for dense in [true, false] {
        use craft::Layout::{Reversed, Split, UnknownFields, Unpacked, Usual};
        for layout in [Usual, Unpacked, Split, Reversed, UnknownFields] {
            let shape = craft::Shape {
                dense,
                layout,
                granularity: 1,
                ..craft::Shape::USUAL
            };
            let (first, rest) = objects.split_at(objects.len() / 2);
            let input = file_in_shape(dir.path(), "in.osm.pbf", &[first, &[], rest], &shape);
            assert!(renumbered(&input, &[]) == expected, "{dense} {layout:?}");
        }
    }
}

#[test]
fn a_file_without_objects_stays_so() {
    let dir = tempfile::tempdir().unwrap();
    let input = file_of(dir.path(), "in.osm.pbf", &[]);
    assert!(renumbered(&input, &[]).is_empty());
}

#[test]
fn check_finds_what_it_found_before() {
    let dir = tempfile::tempdir().unwrap();
    for input in real_files() {
        let output = dir.path().join("out.osm.pbf");
        run_ok(&[&"renumber", &"-O", &input, &"-o", &output]);
        let found = [&input, &output].map(|path| {
            let answer = ask(&[&"check", &"--refs", &"-r", &"--json", path]);
            let json = answer.json();
            let mut counts = json["references"].clone();
            if let Some(listed) = counts.as_object_mut() {
                listed.retain(|_, value| value.is_number() || value.is_object());
            }
            (answer.status, counts.to_string())
        });
        assert_eq!(found[0], found[1], "{}", input.display());
    }
}

#[test]
fn several_runs_share_a_map() {
    let dir = tempfile::tempdir().unwrap();
    let map = dir.path().join("map");
    let first = file_of(
        dir.path(),
        "a.osm.pbf",
        &[&[
            node(5, 0, 0, &[]),
            node(9, 0, 0, &[]),
            way(3, &[9, 100, 5], &[]),
            relation(1, &[(Kind::Way, 50, ""), (Kind::Relation, 2, "")], &[]),
        ]],
    );
    let second = file_of(
        dir.path(),
        "b.osm.pbf",
        &[&[
            node(7, 0, 0, &[]),
            node(100, 0, 0, &[]),
            way(50, &[5, 7, 200], &[]),
        ]],
    );
    let output = dir.path().join("out.osm.pbf");
    let message = run_fail(&[&"renumber", &first, &"-i", &map, &"-o", &output]);
    assert!(
        message.contains("does not exist; create it first"),
        "{message}"
    );
    std::fs::create_dir(&map).unwrap();
    run_ok(&[
        &"renumber",
        &first,
        &"-i",
        &map,
        &"-s",
        &"10",
        &"-o",
        &output,
    ]);
    run_ok(&[&"renumber", &"-O", &second, &"-i", &map, &"-o", &output]);
    let found = decode::objects(&output);
    let ids: Vec<i64> = found.iter().map(|object| object.id).collect();
    // The first run numbered nodes 5, 9 and 100 (which only way 3 refers to) 10 to 12, and way 3 10.
    assert_eq!(ids, [13, 12, 11]);
    assert_eq!(found[2].refs, [10, 13, 14]);
    let shown = ask(&[&"renumber", &"-i", &map, &"--show-index", &"node"]);
    assert_eq!(shown.lines(), ["5 10", "9 11", "100 12", "7 13", "200 14"]);
    let message = run_fail(&[
        &"renumber",
        &"-O",
        &second,
        &"-s",
        &"1",
        &"-i",
        &map,
        &"-o",
        &output,
    ]);
    assert!(message.contains("--start-id 10,10,10"), "{message}");
    std::fs::write(map.join("way.idx"), [0; 12]).unwrap();
    let message = run_fail(&[&"renumber", &"-O", &second, &"-i", &map, &"-o", &output]);
    assert!(
        message.contains("way.idx: this is not an index of ids"),
        "{message}"
    );
}

#[test]
fn the_map_is_the_one_that_osmium_keeps() {
    if !osmium() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [one, two] = ["andorra-a.osm.pbf", "andorra-b.osm.pbf"].map(real_file);
    let output = dir.path().join("out.osm.pbf");
    let maps = ["ours", "theirs"].map(|name| dir.path().join(name));
    maps.iter()
        .for_each(|map| std::fs::create_dir(map).unwrap());
    run_ok(&[&"renumber", &one, &"-i", &maps[0], &"-o", &output]);
    let answer = ask_osmium(&[
        &"renumber",
        &one,
        &"--no-progress",
        &"-i",
        &maps[1],
        &"-O",
        &"-o",
        &output,
    ]);
    assert_eq!(answer.status, 0, "{answer:?}");
    // Each program continues with the index files of the other.
    let answer = ask_osmium(&[
        &"renumber",
        &two,
        &"--no-progress",
        &"-i",
        &maps[0],
        &"-O",
        &"-o",
        &output,
    ]);
    assert_eq!(answer.status, 0, "{answer:?}");
    let theirs = decode::objects(&output);
    run_ok(&[&"renumber", &"-O", &two, &"-i", &maps[1], &"-o", &output]);
    let ours = decode::objects(&output);
    let ids = |objects: &[Object]| -> Vec<_> {
        let ids = objects
            .iter()
            .map(|object| (object.id, object.refs.clone(), object.members.clone()));
        ids.collect()
    };
    assert!(ids(&ours) == ids(&theirs));
    for name in ["node.idx", "way.idx", "relation.idx", "start_ids"] {
        let [one, two] = maps
            .each_ref()
            .map(|map| std::fs::read(map.join(name)).unwrap());
        assert!(one.trim_ascii_end() == two.trim_ascii_end(), "{name}");
    }
}

#[test]
fn start_ids_that_make_no_sense_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let input = file_of(dir.path(), "in.osm.pbf", &[&in_order(mixed_objects())]);
    let output = dir.path().join("out.osm.pbf");
    for start in ["1,2", "x", "", "1,2,3,4"] {
        let message = run_fail(&[&"renumber", &input, &"-s", &start, &"-o", &output]);
        assert!(message.contains("--start-id"), "{message}");
    }
    let start = (i64::MAX - 3).to_string();
    let message = run_fail(&[&"renumber", &input, &"-s", &start, &"-o", &output]);
    assert!(message.contains("goes past what an id can be"), "{message}");
    assert!(!output.exists());
}

#[test]
fn references_that_now_mean_others_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let objects = [node(50, 0, 0, &[]), way(1, &[50, 1, 7], &[])];
    let input = file_of(dir.path(), "in.osm.pbf", &[&objects]);
    let output = dir.path().join("out.osm.pbf");
    let answer = ask(&[&"renumber", &"--orphans", &"keep", &input, &"-o", &output]);
    assert!(
        answer
            .stderr
            .contains("1 reference to objects that are not in the file now mean"),
        "{answer:?}"
    );
    assert_eq!(decode::objects(&output)[1].refs, [1, 1, 7]);
}

#[test]
fn a_stream_of_renumbered_objects_is_not_called_sorted_where_it_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let first = file_of(
        dir.path(),
        "a.osm.pbf",
        &[&[node(5, 0, 0, &[]), node(10, 0, 0, &[])]],
    );
    let second = file_of(
        dir.path(),
        "b.osm.pbf",
        &[&[node(3, 0, 0, &[]), node(5, 0, 0, &[])]],
    );
    let sorted = dir.path().join("sorted.osm.pbf");
    run_ok(&[&"sort", &second, &"-o", &sorted]);
    let map = dir.path().join("map");
    std::fs::create_dir(&map).unwrap();
    run_ok(&[
        &"renumber",
        &first,
        &"-i",
        &map,
        &"-o",
        &dir.path().join("o.osm.pbf"),
    ]);
    let stream = pbfhogg()
        .arg("renumber")
        .arg(&sorted)
        .arg("-i")
        .arg(&map)
        .args(["-o", "-"])
        .output()
        .unwrap();
    let path = dir.path().join("stream.osm.pbf");
    std::fs::write(&path, stream.stdout).unwrap();
    assert_eq!(
        decode::objects(&path)
            .iter()
            .map(|node| node.id)
            .collect::<Vec<_>>(),
        [3, 1]
    );
    assert!(
        !decode::header(&path)
            .optional
            .contains(&"Sort.Type_then_ID".into())
    );
}
