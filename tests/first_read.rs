//! Geometries of files without an index, whose nodes are read once for their id ranges and their locations.

use crate::common::craft::{Message, Shape, block, file, header_payload};
use crate::common::{Arg, node, run, run_ok, way};
use std::path::{Path, PathBuf};

/// The number of nodes in a large block. Their locations need more than 8 MB.
const MANY: i64 = 1_000_000;

/// A block of `count` nodes with ascending ids from `first` on.
fn nodes(first: i64, count: i64) -> Vec<u8> {
    let ids: Vec<i64> = (first..first + count).collect();
    let lats: Vec<i64> = ids.iter().map(|id| 100_000_000 + id % 1000).collect();
    let lons: Vec<i64> = ids.iter().map(|id| 200_000_000 + id / 1000).collect();
    let dense = Message::new()
        .packed_deltas(1, &ids)
        .packed_deltas(8, &lats)
        .packed_deltas(9, &lons);
    let group = Message::new().message(2, dense);
    let strings = Message::new().bytes(1, b"");
    Message::new()
        .message(1, strings)
        .message(2, group)
        .to_bytes()
}

/// Writes a file that declares canonical order and has no index. Of the nodes before its ways, `unknown` are in the
/// third block. A search for the kinds of the blocks does not decode this block.
fn written(directory: &Path, name: &str, unknown: Vec<u8>) -> PathBuf {
    let ways = [
        way(1, &[1, 1001, 700_000, MANY + 2], &[("highway", "path")]),
        way(2, &[5_000_000, 5_000_001], &[("highway", "path")]),
        way(3, &[1, 7_777_777], &[("highway", "path")]),
    ];
    let blocks = [
        nodes(1, 10),
        nodes(1001, 10),
        unknown,
        nodes(4_000_001, 10),
        nodes(5_000_000, 10),
        nodes(6_000_000, 10),
        nodes(7_000_000, 10),
        block(&ways, &Shape::USUAL),
    ];
    let required = ["OsmSchema-V0.6", "DenseNodes"];
    let path = directory.join(name);
    let header = header_payload(&required, &["Sort.Type_then_ID"]);
    std::fs::write(&path, file(header, &blocks)).unwrap();
    path
}

/// Runs `export` with the memory that it may use. Returns its output and its messages.
fn exported(input: &Path, memory: &str) -> (Vec<u8>, String) {
    let args: [Arg; 9] = [
        &"export",
        &"-v",
        &"-j",
        &"2",
        &"-f",
        &"geojsonseq",
        &"--max-memory",
        &memory,
        &input,
    ];
    let output = run(&args);
    (output.stdout, String::from_utf8(output.stderr).unwrap())
}

#[test]
fn locations_beyond_the_memory_are_joined_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let input = written(directory.path(), "many.osm.pbf", nodes(10_000, MANY));
    let indexed = directory.path().join("indexed.osm.pbf");
    run_ok(&[&"cat", &input, &"-o", &indexed]);
    let (expected, messages) = exported(&indexed, "1G");
    assert!(messages.contains("index type dense"), "{messages}");
    assert_eq!(expected.iter().filter(|byte| **byte == b'\n').count(), 2);
    let (found, messages) = exported(&input, "1G");
    assert!(
        found == expected && messages.contains("read first"),
        "{messages}"
    );
    // The estimate, which does not know the large block, is that all locations fit into memory.
    let (found, messages) = exported(&input, "82M");
    assert!(found == expected, "{messages}");
    assert!(
        messages.contains("index type external") && !messages.contains("index:"),
        "{messages}"
    );
}

/// The blocks of nodes in the third place are not where they belong, or have nodes that are not in order, or also have a
/// way.
#[test]
fn locations_do_not_depend_on_the_order_of_nodes() {
    let directory = tempfile::tempdir().unwrap();
    let swapped = [node(700_001, 8, 8, &[]), node(700_000, 7, 7, &[])];
    let mixed = [
        node(700_000, 7, 7, &[]),
        way(9, &[1, 700_000], &[("highway", "path")]),
    ];
    let indexed = directory.path().join("indexed.osm.pbf");
    for (name, unknown) in [
        ("before.osm.pbf", nodes(500, 10)),
        ("within.osm.pbf", block(&swapped, &Shape::USUAL)),
        ("mixed.osm.pbf", block(&mixed, &Shape::USUAL)),
    ] {
        let input = written(directory.path(), name, unknown);
        run_ok(&[&"cat", &"-O", &input, &"-o", &indexed]);
        let (found, messages) = exported(&input, "1G");
        if name == "mixed.osm.pbf" {
            // The search for kinds has assumed that the block has only nodes.
            assert!(
                found.is_empty() && messages.contains("blob 3"),
                "{messages}"
            );
            continue;
        }
        let (expected, _) = exported(&indexed, "1G");
        assert!(found == expected && !found.is_empty(), "{name}: {messages}");
    }
}
