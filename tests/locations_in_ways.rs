//! Locations in ways: commands carry them, and none is lost for another.

use crate::add_locations_to_ways::located;
use crate::common;
use crate::common::answers::file_of;
use crate::common::every;
use crate::common::oracle::real_file;
use crate::common::{Arg, Kind, Object, decode, node, run_ok, way};
use std::collections::HashMap;
use std::path::Path;

#[test]
fn a_stream_says_that_it_has_locations() {
    let file = real_file("monaco.osm.pbf");
    let dir = tempfile::tempdir().unwrap();
    let run = run_ok(&[&"add-locations-to-ways", &"-q", &file, &"-o", &"-"]);
    let path = dir.path().join("stream.osm.pbf");
    std::fs::write(&path, &run.stdout).unwrap();
    let header = decode::header(&path);
    assert!(header.optional.contains(&"LocationsOnWays".to_owned()));
    assert_eq!(
        decode::objects(&path),
        located(&decode::objects(&file), false)
    );
}

#[test]
fn every_command_that_writes_ways_carries_their_places() {
    let dir = tempfile::tempdir().unwrap();
    let (plain, located_file) = (
        common::world(dir.path(), "30000"),
        dir.path().join("in.osm.pbf"),
    );
    run_ok(&[
        &"add-locations-to-ways",
        &"-q",
        &"-n",
        &plain,
        &"-o",
        &located_file,
    ]);
    let unsorted = dir.path().join("unsorted.osm.pbf");
    run_ok(&[
        &"degrade",
        &"-q",
        &"--unsort",
        &located_file,
        &"-o",
        &unsorted,
    ]);
    let places = |object: &Object| (object.refs.len(), object.locations.clone());
    let ways = |path: &Path| -> Vec<Object> {
        let objects = decode::objects(path).into_iter();
        objects.filter(|object| object.kind == Kind::Way).collect()
    };
    let all = ways(&located_file);
    let by_id: HashMap<i64, &Object> = all.iter().map(|way| (way.id, way)).collect();
    let some_way = format!("w{}", all[all.len() / 2].id);
    let out = dir.path().join("out");
    let output = dir.path().join("out.osm.pbf");
    for line in every::lines(&["carries"]) {
        let values: [(&str, &Path); 4] = [
            ("{in}", &located_file),
            ("{unsorted}", &unsorted),
            ("{w}", Path::new(&some_way)),
            ("{out}", &out),
        ];
        let arguments = every::arguments(line, &values);
        let mut arguments: Vec<Arg> = arguments.iter().map(|word| word as Arg).collect();
        arguments.extend([&"-q" as Arg, &"-O"]);
        run_ok(&arguments);
        let found = ways(&output);
        let is_renumbered = line.starts_with("renumber");
        assert!(!found.is_empty() || line.starts_with("extract"), "{line}");
        for (at, way) in found.iter().enumerate() {
            let before = if is_renumbered {
                &all[at]
            } else {
                by_id[&way.id]
            };
            assert_eq!(places(way), places(before), "{line}");
        }
        let declared = decode::header(&output).optional;
        let has = declared.contains(&"LocationsOnWays".to_owned());
        assert!(has || found.is_empty(), "{line}");
    }
    // Converted to text and back.
    for format in ["opl", "osm"] {
        let (text, back) = (
            dir.path().join(format!("t.{format}")),
            dir.path().join("b.osm.pbf"),
        );
        run_ok(&[&"cat", &"-q", &located_file, &"-o", &text]);
        run_ok(&[&"cat", &"-q", &"-O", &text, &"-o", &back]);
        assert!(ways(&back) == all, "{format}");
    }
}

#[test]
fn places_are_not_replaced_by_none_in_a_second_run() {
    let dir = tempfile::tempdir().unwrap();
    let objects = [node(1, 5, 6, &[]), way(1, &[1], &[])];
    let input = file_of(dir.path(), "in.osm.pbf", &[&objects[..1], &objects[1..]]);
    let (once, twice) = (
        dir.path().join("once.osm.pbf"),
        dir.path().join("twice.osm.pbf"),
    );
    run_ok(&[&"add-locations-to-ways", &"-q", &input, &"-o", &once]);
    run_ok(&[&"add-locations-to-ways", &"-q", &once, &"-o", &twice]);
    assert_eq!(decode::objects(&twice), located(&objects, false));
    run_ok(&[
        &"add-locations-to-ways",
        &"-q",
        &"-O",
        &"-n",
        &input,
        &"-o",
        &once,
    ]);
    run_ok(&[&"add-locations-to-ways", &"-q", &"-O", &once, &"-o", &twice]);
    assert_eq!(decode::objects(&twice), located(&objects, false));
}
