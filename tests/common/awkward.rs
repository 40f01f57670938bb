//! Crafted blocks of known content that readers are known to handle wrongly.

use super::craft::{Layout, Message, Shape, block, block_of_groups, file, header_payload};
use super::{Kind, Object, known, mixed_objects, node, relation, way, with_metadata};

/// A block and the objects that a decoder must find in it.
#[derive(Debug, Clone)]
pub struct Crafted {
    /// The property that makes the block awkward.
    pub name: &'static str,
    /// The payload of the block's frame.
    pub payload: Vec<u8>,
    /// The objects in the block, in order.
    pub objects: Vec<Object>,
}

impl Crafted {
    fn new(name: &'static str, objects: Vec<Object>, change: impl Fn(&mut Shape)) -> Crafted {
        let mut shape = Shape::USUAL;
        change(&mut shape);
        let payload = block(&objects, &shape);
        Crafted {
            name,
            payload,
            objects,
        }
    }

    /// A file of this block. Its header declares the features that the block uses.
    pub fn file(&self) -> Vec<u8> {
        let mut objects = self.objects.iter();
        let mut required = vec!["OsmSchema-V0.6", "DenseNodes"];
        if objects.clone().any(|object| !object.visible) {
            required.push("HistoricalInformation");
        }
        let located = objects.any(|object| !object.locations.is_empty());
        let optional: &[&str] = if located { &["LocationsOnWays"] } else { &[] };
        let header = header_payload(&required, optional);
        file(header, std::slice::from_ref(&self.payload))
    }
}

/// Valid blocks with properties that readers are known to handle wrongly.
pub fn awkward_blocks() -> Vec<Crafted> {
    let mut blocks = layouts();
    blocks.extend(partial_metadata());
    blocks.extend(other_units());
    blocks.extend(histories());
    blocks.extend(nearly_empty());
    blocks
}

/// The same objects in different layouts.
fn layouts() -> Vec<Crafted> {
    let (bare, full) = (mixed_objects(), known(mixed_objects()));
    let mut blocks = vec![
        Crafted::new("several groups of different kinds", bare.clone(), |_| {}),
        Crafted::new("plain nodes", bare, |s| s.dense = false),
        Crafted::new("full metadata", full.clone(), |_| {}),
        Crafted::new("full metadata on plain nodes", full.clone(), |s| {
            s.dense = false
        }),
    ];
    let layouts = [
        ("unpacked repeated fields", Layout::Unpacked),
        ("packed runs in several pieces", Layout::Split),
        ("fields in reverse order", Layout::Reversed),
        ("unknown fields everywhere", Layout::UnknownFields),
    ];
    for (name, layout) in layouts {
        let change = |shape: &mut Shape| (shape.layout, shape.history) = (layout, true);
        blocks.push(Crafted::new(name, full.clone(), change));
    }
    blocks
}

/// Blocks without some of the metadata.
fn partial_metadata() -> Vec<Crafted> {
    let full = known(mixed_objects());
    let without = |remove: &dyn Fn(&mut Object)| {
        let mut objects = full.clone();
        objects.iter_mut().for_each(remove);
        objects
    };
    let anonymous = without(&|object| (object.uid, object.user) = (None, None));
    let edited = |object: &mut Object| {
        (object.changeset, object.uid, object.user) = (None, None, None);
    };
    let times = without(&edited);
    let versions = without(&|object| {
        edited(object);
        object.timestamp = None;
    });
    let mut some = full.clone();
    for (object, bare) in some.iter_mut().zip(mixed_objects()).step_by(2) {
        *object = bare;
    }
    vec![
        Crafted::new("anonymous edits", anonymous, |_| {}),
        Crafted::new("versions and timestamps", times.clone(), |_| {}),
        Crafted::new("versions only", versions, |_| {}),
        Crafted::new("metadata on some objects", some.clone(), |_| {}),
        Crafted::new("-1 for absent changesets", times, |s| s.absent = -1),
        Crafted::new("-1 for absent metadata", some.clone(), |s| s.absent = -1),
        Crafted::new("-1 for absent metadata of plain nodes", some, |s| {
            (s.absent, s.dense) = (-1, false);
        }),
    ]
}

/// Blocks with unusual granularities and offsets.
fn other_units() -> Vec<Crafted> {
    let coarse = |shape: &mut Shape| {
        shape.granularity = 1000;
        (shape.lat_offset, shape.lon_offset) = (48_000_000_100, -7_000_000_900);
    };
    let coarse_plain = |shape: &mut Shape| {
        coarse(shape);
        shape.dense = false;
    };
    let at =
        |id: i64, lat: i64, lon: i64| node(id, 480_000_001 + lat * 10, -70_000_009 + lon * 10, &[]);
    let mut spots = vec![at(1, 0, 0), at(2, -5, 5), at(3, 123_456, -654_321)];
    let mut located = way(9, &[1, 2, 3], &[]);
    located.locations = spots
        .iter()
        .map(|node| (node.lat_nano, node.lon_nano))
        .collect();
    spots.push(located);
    let full = known(mixed_objects());
    vec![
        Crafted::new("granularity 1000 and offsets", spots.clone(), coarse),
        Crafted::new("granularity 1000 and plain nodes", spots, coarse_plain),
        Crafted::new("granularity 1 and offsets", mixed_objects(), |s| {
            (s.granularity, s.lat_offset, s.lon_offset) = (1, -7, 7);
        }),
        Crafted::new("timestamps in milliseconds", full.clone(), |s| {
            s.date_granularity = 1
        }),
        Crafted::new("timestamps in minutes", full, |s| {
            s.date_granularity = 60_000
        }),
    ]
}

/// Blocks with several versions of an object, some deleted.
fn histories() -> Vec<Crafted> {
    let existing = |object, version| with_metadata(object, version, 1_500_000_000, 7, "mapper");
    let deleted = |object, version| {
        let mut object = existing(object, version);
        object.visible = false;
        object
    };
    let versions = vec![
        existing(node(1, 10, 20, &[("a", "b")]), 1),
        deleted(node(1, 10, 20, &[]), 2),
        existing(node(1, 11, 21, &[("a", "c")]), 3),
        existing(way(1, &[1, 2], &[("a", "b")]), 1),
        deleted(way(1, &[], &[]), 2),
        existing(relation(1, &[(Kind::Way, 1, "outer")], &[]), 1),
        deleted(relation(1, &[], &[]), 2),
    ];
    let deleted_node = vec![versions[1].clone()];
    vec![
        Crafted::new("deleted versions", versions.clone(), |_| {}),
        Crafted::new("visible always written", versions.clone(), |s| {
            s.history = true
        }),
        Crafted::new("deleted plain nodes", versions, |s| s.dense = false),
        Crafted::new("nothing but a deleted node", deleted_node, |_| {}),
    ]
}

/// Blocks without parts that nearly all blocks have.
fn nearly_empty() -> Vec<Crafted> {
    let nodes = vec![node(1, 5, 6, &[]), node(2, 5, 6, &[])];
    let case = |name, groups: &[Message], strings: &[&str], holds_nodes: bool| {
        let payload = block_of_groups(groups.to_vec(), strings, &Shape::USUAL);
        let objects = if holds_nodes {
            nodes.clone()
        } else {
            Vec::new()
        };
        Crafted {
            name,
            payload,
            objects,
        }
    };
    let none = Message::new();
    let dense = |columns: &Message| Message::new().message(2, columns.clone());
    let columns = none.clone().packed_sint(1, &[1, 1]);
    let columns = columns.packed_sint(8, &[5, 0]).packed_sint(9, &[6, 0]);
    let two = dense(&columns);
    let no_info = dense(&columns.clone().message(5, Message::new()));
    let no_tags = dense(&columns.packed_uint(10, &[0, 0]));
    let changesets = Message::new().message(5, Message::new().varint(1, 77));
    let around = [none.clone(), two.clone(), none.clone()];
    let two = &[two][..];
    vec![
        case("no group", &[], &[""], false),
        case("no group and no string", &[], &[], false),
        case("an empty group", &around[..1], &[""], false),
        case("empty groups around a full one", &around, &[""], true),
        case("empty DenseNodes", &[dense(&none)], &[""], false),
        case("a group of changesets", &[changesets], &[""], false),
        case("neither DenseInfo nor keys_vals", two, &[""], true),
        case("an empty DenseInfo", &[no_info], &[""], true),
        case("keys_vals without tags", &[no_tags], &[""], true),
        case("nodes and no string", two, &[], true),
        case("strings that nothing uses", two, &["", "a", "b", "b"], true),
    ]
}
