//! Objects as comma-separated values, which every command writes that writes objects.

use crate::common::oracle::real_file;
use crate::common::{Arg, Kind, Object, decode, run_fail, run_ok, world};
use crate::csv::{NamedRow, assert_on_geometry, named};
use crate::diff_changes::time;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Standard output of a command.
fn text(args: &[Arg]) -> String {
    String::from_utf8(run_ok(args).stdout).unwrap()
}

/// The text to which `cat` converts a file.
fn cat(input: &Path, format: &str) -> String {
    text(&[&"cat", &"-q", &"-f", &format, &"-o", &"-", &input])
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Node => "node",
        Kind::Way => "way",
        Kind::Relation => "relation",
    }
}

/// Asserts that a row has the values of an object.
fn assert_row(row: &NamedRow, object: &Object) {
    let number = |number: Option<i64>| number.filter(|number| *number != 0);
    let number = |value| number(value).map_or_else(String::new, |value| value.to_string());
    for (name, expected) in [
        ("type", kind_name(object.kind).to_owned()),
        ("id", object.id.to_string()),
        ("version", number(object.version)),
        ("timestamp", object.timestamp.map_or_else(String::new, time)),
        ("changeset", number(object.changeset)),
        ("uid", number(object.uid)),
        ("user", object.user.clone().unwrap_or_default()),
    ] {
        assert_eq!(row[name], expected, "{name} of {object:?}");
    }
    for (name, nano) in [("lon", object.lon_nano), ("lat", object.lat_nano)] {
        if object.kind == Kind::Node {
            let degrees: f64 = row[name].parse().unwrap();
            assert_eq!((degrees * 1e9).round() as i64, nano, "{object:?}");
        } else {
            assert_eq!(row[name], "", "{object:?}");
        }
    }
    let mut tags = Map::new();
    for (key, value) in &object.tags {
        tags.entry(key).or_insert_with(|| json!(value));
    }
    let found: Value = serde_json::from_str(&row["tags"]).unwrap();
    assert_eq!(found, Value::from(tags), "{object:?}");
}

#[test]
fn rows_have_the_values_of_the_objects() {
    let dir = tempfile::tempdir().unwrap();
    let with_users = world(dir.path(), "3000");
    for input in [real_file("monaco.osm.pbf"), with_users] {
        let table = cat(&input, "csv");
        let header = "type,id,version,timestamp,changeset,uid,user,lon,lat,tags\n";
        assert!(table.starts_with(header));
        let (rows, objects) = (named(&table), decode::objects(&input));
        assert_eq!(rows.len(), objects.len());
        rows.iter()
            .zip(&objects)
            .for_each(|(row, object)| assert_row(row, object));
    }
}

#[test]
fn commands_that_write_objects_write_rows_of_the_same_objects() {
    let dir = tempfile::tempdir().unwrap();
    let (input, kept) = (real_file("monaco.osm.pbf"), dir.path().join("kept.osm.pbf"));
    let nodes = ["n21911883", "n21912089"];
    let commands: [&[Arg]; 6] = [
        &[&"getid", &input, &nodes[0], &nodes[1]],
        &[&"tags-filter", &input, &"amenity=restaurant"],
        &[&"extract", &"-b", &"7.41,43.72,7.42,43.74", &input],
        &[&"sort", &input],
        &[&"getparents", &input, &nodes[0]],
        &[&"cat", &"-t", &"relation", &input],
    ];
    for command in commands {
        run_ok(&[command, &[&"-q", &"-O", &"-o", &kept]].concat());
        let table = text(&[command, &[&"-q", &"-f", &"csv", &"-o", &"-"]].concat());
        assert!(table == cat(&kept, "csv"), "{}", command.len());
    }
    run_ok(&[&"getid", &"-q", &"-O", &input, &nodes[0], &"-o", &kept]);
    let shown = text(&[&"show", &"-f", &"csv", &input, &nodes[0]]);
    assert_eq!(shown, cat(&kept, "csv"));
    // The name of the output says the format, too.
    let compressed = dir.path().join("kept.csv.zst");
    run_ok(&[&"cat", &"-q", &kept, &"-o", &compressed]);
    let bytes = zstd::decode_all(std::fs::File::open(&compressed).unwrap()).unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), shown);
}

#[test]
fn options_choose_the_columns_of_objects() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.opl");
    let line =
        "n1 v2 dV c3 t2020-01-02T03:04:05Z i4 ua%2c%b Tname=x%22%y,type=z,name=again x1 y2\n";
    std::fs::write(&input, line).unwrap();
    for (format, expected) in [
        (
            "csv",
            "type,id,version,timestamp,changeset,uid,user,lon,lat,tags\n\
             node,1,2,2020-01-02T03:04:05Z,3,4,\"a,b\",1,2,\
             \"{\"\"name\"\":\"\"x\\\"\"y\"\",\"\"type\"\":\"\"z\"\"}\"\n",
        ),
        (
            "csv,add_metadata=false,columns=name+ref",
            "type,id,lon,lat,name,ref\nnode,1,1,2,\"x\"\"y\",\n",
        ),
        (
            "osh.csv,add_metadata=version+uid,columns=ref",
            "type,id,visible,version,uid,lon,lat,ref\nnode,1,true,2,4,1,2,\n",
        ),
    ] {
        assert_eq!(cat(&input, format), expected, "{format}");
    }
    for (format, cause) in [
        (
            "csv,columns=name+type",
            "type: two columns would have this name",
        ),
        ("csv,columns=a+a", "a: two columns would have this name"),
        ("csv,columns=", "expected keys of tags"),
        ("csv,columns", "expected keys of tags"),
    ] {
        let error = run_fail(&[&"cat", &"-f", &format, &input]);
        assert!(error.contains(cause), "{format}: {error}");
    }
    std::fs::write(&input, "c1 k0 s2020-01-01T00:00:00Z e d0 i1 ua x y X Y T\n").unwrap();
    let error = run_fail(&[&"cat", &"-f", &"csv", &input]);
    assert!(error.contains("CSV is for objects"), "{error}");
}

#[test]
fn rows_of_a_history_say_which_objects_are_deleted() {
    let input = real_file("deleted_nodes.osh.pbf");
    let (rows, objects) = (named(&cat(&input, "csv")), decode::objects(&input));
    assert!(objects.iter().any(|object| !object.visible));
    for (row, object) in rows.iter().zip(&objects) {
        assert_eq!(row["visible"], object.visible.to_string());
        assert_eq!(row["lon"].is_empty(), !object.visible);
    }
    assert_eq!(rows.len(), objects.len());
}

#[test]
fn rows_of_ways_that_store_locations_have_a_point_on_the_way() {
    let dir = tempfile::tempdir().unwrap();
    let located = dir.path().join("located.osm.pbf");
    let input = real_file("monaco.osm.pbf");
    let add: [Arg; 4] = [&"add-locations-to-ways", &input, &"-o", &located];
    run_ok(&[&add[..], &[&"--ignore-missing-nodes"]].concat());
    let rows = named(&cat(&located, "csv"));
    let objects = decode::objects(&located);
    assert_eq!(rows.len(), objects.len());
    let mut count = 0;
    for (row, object) in rows.iter().zip(&objects) {
        if object.kind != Kind::Way || row["lon"].is_empty() {
            continue;
        }
        let degrees = |nano: i64| nano as f64 / 1e9;
        let points = object.locations.iter();
        let points: Vec<_> = points
            .map(|(lat, lon)| json!([degrees(*lon), degrees(*lat)]))
            .collect();
        let geometry = json!({"type": "LineString", "coordinates": points});
        let place = (row["lon"].parse().unwrap(), row["lat"].parse().unwrap());
        assert_on_geometry(place, &geometry);
        count += 1;
    }
    assert!(count > 1000, "{count}");
    let without = named(&cat(&located, "csv,locations_on_ways=false"));
    assert!(
        without
            .iter()
            .all(|row| row["type"] == "node" || row["lon"].is_empty())
    );
}
