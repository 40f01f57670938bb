//! Files of less than 1 MB that repeat one field as often as a block of 32 MiB allows, or that have one giant item.

use super::craft::{self, Message, frame, length_delimited, varint, zigzag, zlib_blob};
use super::hostile_relations::{self, NODE};
use super::{hostile, hostile_texts};

/// A file to try commands on.
pub struct HostileFile {
    /// The file name. Its ending tells the format.
    pub name: &'static str,
    /// The number of repetitions in a file of full size.
    count: usize,
    /// Returns the file with a number of repetitions.
    make: fn(usize) -> Vec<u8>,
}

impl HostileFile {
    /// The file with one `divisor`-th of its repetitions, but at least two.
    pub fn bytes(&self, divisor: usize) -> Vec<u8> {
        (self.make)((self.count / divisor).max(2))
    }
}

pub(super) const fn file(
    name: &'static str,
    count: usize,
    make: fn(usize) -> Vec<u8>,
) -> HostileFile {
    HostileFile { name, count, make }
}

/// All files.
pub fn hostile_files() -> Vec<HostileFile> {
    let mut files = strings();
    files.extend(long_strings());
    files.extend(nodes());
    files.extend(metadata());
    files.extend(ways());
    files.extend(located_ways());
    files.extend(hostile_relations::files());
    files.extend(groups());
    files.extend(headers());
    files.extend(frames());
    files.extend(hostile_texts::files());
    files
}

// Parts of files.

/// The strings of a block by their index.
const STRINGS: [&str; 20] = [
    "",
    "k",
    "v",
    "type",
    "multipolygon",
    "route",
    "building",
    "yes",
    "boundary",
    "outer",
    "admin_level",
    "8",
    "addr:housenumber",
    "1",
    "name",
    "highway",
    "residential",
    "natural",
    "water",
    "addr:street",
];
pub(super) const TAG: [(u8, u8); 1] = [(1, 2)];
const BUILDING: [(u8, u8); 1] = [(6, 7)];
const ROAD: [(u8, u8); 2] = [(15, 16), (14, 1)];

/// A sint64 of a packed run.
pub(super) fn sint(value: i64) -> Vec<u8> {
    varint(zigzag(value))
}

/// The deltas of a packed run of sint64.
pub(super) fn deltas(values: impl IntoIterator<Item = i64>) -> Vec<u8> {
    let mut before = 0;
    let each = values.into_iter().flat_map(|value| {
        let delta = value - before;
        before = value;
        sint(delta)
    });
    each.collect()
}

fn string_table(strings: &[&[u8]]) -> Vec<u8> {
    strings
        .iter()
        .flat_map(|text| length_delimited(1, text))
        .collect()
}

/// A file of one block: the content of its string table, and the fields that follow.
fn block(table: &[u8], fields: &[u8]) -> Vec<u8> {
    craft::plain_file(&[[&length_delimited(1, table), fields].concat()])
}

/// The content of the string table with [`STRINGS`].
fn usual_strings() -> Vec<u8> {
    string_table(&STRINGS.map(str::as_bytes))
}

/// A block of groups with [`STRINGS`].
pub(super) fn block_of(groups: &[&[u8]]) -> Vec<u8> {
    let groups: Vec<u8> = groups
        .iter()
        .flat_map(|group| length_delimited(2, group))
        .collect();
    block(&usual_strings(), &groups)
}

/// A group of dense nodes, with one byte for each delta of ids, and for those of places.
pub(super) fn dense(count: usize, id: u8, place: u8, other: &Message) -> Vec<u8> {
    let columns = [
        length_delimited(1, &vec![id; count]),
        other.to_bytes(),
        length_delimited(8, &vec![place; count]),
        length_delimited(9, &vec![place; count]),
    ];
    length_delimited(2, &columns.concat())
}

/// Dense nodes from id 1 on, at one place.
fn plain_nodes(count: usize) -> Vec<u8> {
    hostile::nodes(count).to_bytes()
}

/// Dense nodes from id 1 on at some places.
pub(super) fn nodes_at(places: &[(i64, i64)]) -> Vec<u8> {
    let columns = [
        length_delimited(1, &vec![2; places.len()]),
        length_delimited(8, &deltas(places.iter().map(|place| place.0))),
        length_delimited(9, &deltas(places.iter().map(|place| place.1))),
    ];
    length_delimited(2, &columns.concat())
}

/// The nodes 1 to 4 at the corners of a square.
pub(super) fn square() -> Vec<u8> {
    nodes_at(&[(0, 0), (0, 100_000), (100_000, 100_000), (100_000, 0)])
}

/// The references to the nodes of [`square`], again and again.
pub(super) fn around(times: usize) -> Vec<u8> {
    [vec![2], [vec![2, 2, 2], sint(-3)].concat().repeat(times)].concat()
}

pub(super) fn tags(tags: &[(u8, u8)]) -> Message {
    let (keys, values): (Vec<u8>, Vec<u8>) = tags.iter().copied().unzip();
    Message::new().bytes(2, &keys).bytes(3, &values)
}

/// A way as a field of a group.
pub(super) fn way(id: u64, refs: &[u8], with: &[(u8, u8)]) -> Vec<u8> {
    let tags = tags(with).to_bytes();
    let way = [varint(8), varint(id), tags, length_delimited(8, refs)];
    length_delimited(3, &way.concat())
}

pub(super) fn ways_of(count: usize, refs: &[u8], with: &[(u8, u8)]) -> Vec<u8> {
    (1..=count as u64)
        .flat_map(|id| way(id, refs, with))
        .collect()
}

// Strings.

fn strings() -> Vec<HostileFile> {
    vec![
        file("strings-empty.osm.pbf", 15_000_000, |count| {
            let table = b"\n\0".repeat(count);
            block(&table, &length_delimited(2, &plain_nodes(100)))
        }),
        file("strings-of-one-byte.osm.pbf", 8_000_000, |count| {
            let table = [b"\n\0".to_vec(), b"\n\x01a".repeat(count)].concat();
            block(&table, &length_delimited(2, &plain_nodes(100)))
        }),
        file("string-tables.osm.pbf", 5_000_000, |count| {
            let fields = [
                b"\x0a\x02\x0a\0".repeat(count),
                length_delimited(2, &plain_nodes(100)),
            ];
            block(b"\n\0", &fields.concat())
        }),
        file("string-unused.osm.pbf", 16_000_000, |count| {
            long_string(count, &plain_nodes(100))
        }),
    ]
}

/// A block with a string of `len` bytes at index 2, and one at index 1.
fn long_string(len: usize, group: &[u8]) -> Vec<u8> {
    let table = string_table(&[b"", b"k", &vec![b'x'; len]]);
    block(&table, &length_delimited(2, group))
}

/// One long string in each place that has strings.
fn long_strings() -> Vec<HostileFile> {
    vec![
        file("long-value-of-nodes.osm.pbf", 16_000_000, |len| {
            let tags = Message::new().bytes(10, &[1, 2, 0].repeat(20));
            long_string(len, &dense(20, 2, 0, &tags))
        }),
        file("long-key-of-ways.osm.pbf", 16_000_000, |len| {
            let group = length_delimited(2, &square());
            let ways = ways_of(20, &around(1), &[(2, 1)]);
            let table = string_table(&[b"", b"k", &vec![b'x'; len]]);
            block(&table, &[group, length_delimited(2, &ways)].concat())
        }),
        file("long-role.osm.pbf", 16_000_000, |len| {
            let relations: Vec<u8> = (1..=20)
                .flat_map(|id| hostile_relations::relation(id, &[2], 1, NODE, 2, &[]))
                .collect();
            long_string(len, &relations)
        }),
        file("long-user.osm.pbf", 16_000_000, |len| {
            let info = Message::new().varint(1, 1).varint(5, 2);
            let ways = (1..=20).fold(Message::new(), |group, id| {
                let way = Message::new().varint(1, id).message(4, info.clone());
                group.message(3, way.bytes(8, &around(1)))
            });
            long_string(len, &ways.to_bytes())
        }),
        file("text-of-ways.osm.pbf", 2000, |count| {
            let ways = ways_of(count, &around(1), &TAG);
            let nodes = length_delimited(2, &square());
            let table = string_table(&[b"", b"k", &[b'y'; 60_000]]);
            block(&table, &[nodes, length_delimited(2, &ways)].concat())
        }),
    ]
}

// Nodes.

fn nodes() -> Vec<HostileFile> {
    vec![
        file("nodes.osm.pbf", 10_000_000, |count| {
            block_of(&[&plain_nodes(count)])
        }),
        file("nodes-with-one-id.osm.pbf", 10_000_000, |count| {
            block_of(&[&dense(count, 0, 0, &Message::new())])
        }),
        file("nodes-descending.osm.pbf", 10_000_000, |count| {
            block_of(&[&dense(count, 1, 0, &Message::new())])
        }),
        file("nodes-moving.osm.pbf", 3_000_000, |count| {
            let tags = Message::new().bytes(10, &[1, 2, 0].repeat(count));
            block_of(&[&dense(count, 2, 2, &tags)])
        }),
        file("nodes-without-tags.osm.pbf", 8_000_000, |count| {
            block_of(&[&dense(
                count,
                2,
                0,
                &Message::new().bytes(10, &vec![0; count]),
            )])
        }),
        file("nodes-with-a-tag.osm.pbf", 5_000_000, |count| {
            let tags = Message::new().bytes(10, &[1, 2, 0].repeat(count));
            block_of(&[&dense(count, 2, 0, &tags)])
        }),
        file("addresses.osm.pbf", 3_000_000, |count| {
            let tags = Message::new().bytes(10, &[12, 13, 19, 1, 0].repeat(count));
            block_of(&[&dense(count, 2, 0, &tags)])
        }),
        file("tags-of-a-node.osm.pbf", 2_000_000, |count| {
            let tags = [[1, 2].repeat(count), vec![0]].concat();
            block_of(&[&dense(1, 2, 0, &Message::new().bytes(10, &tags))])
        }),
        file("runs-of-ids.osm.pbf", 5_000_000, |count| {
            let places = vec![0; count];
            let columns = [
                b"\x0a\x01\x02".repeat(count),
                length_delimited(8, &places),
                length_delimited(9, &places),
            ];
            block_of(&[&length_delimited(2, &columns.concat())])
        }),
        file("plain-nodes.osm.pbf", 4_000_000, |count| {
            block_of(&[&b"\x0a\x06\x08\x02\x40\0\x48\0".repeat(count)])
        }),
        file("nodes-without-fields.osm.pbf", 15_000_000, |count| {
            block_of(&[&b"\x0a\0".repeat(count)])
        }),
        file("dense-nodes-without-fields.osm.pbf", 15_000_000, |count| {
            block_of(&[&b"\x12\0".repeat(count)])
        }),
    ]
}

/// A file of dense nodes with all columns of metadata. One byte for each delta of ids, and for `visible`.
fn nodes_with_metadata(count: usize, id: u8, visible: Option<u8>) -> Vec<u8> {
    let column = |byte: u8| vec![byte; count];
    let info = Message::new()
        .bytes(1, &column(1))
        .bytes(2, &column(2))
        .bytes(3, &column(2))
        .bytes(4, &column(2))
        .bytes(5, &column(0));
    let info = match visible {
        Some(visible) => info.bytes(6, &column(visible)),
        None => info,
    };
    let group = dense(count, id, 0, &Message::new().message(5, info));
    let table = length_delimited(1, &usual_strings());
    let features = ["OsmSchema-V0.6", "DenseNodes", "HistoricalInformation"];
    let features = if visible.is_some() {
        &features[..]
    } else {
        &features[..2]
    };
    let header = craft::header_payload(features, &[]);
    craft::file(header, &[[table, length_delimited(2, &group)].concat()])
}

/// A file with some versions of one node.
pub fn versions_of_a_node(count: usize) -> Vec<u8> {
    nodes_with_metadata(count, 0, Some(1))
}

fn metadata() -> Vec<HostileFile> {
    vec![
        file("metadata.osm.pbf", 3_000_000, |count| {
            nodes_with_metadata(count, 2, None)
        }),
        file("deleted-nodes.osh.pbf", 3_000_000, |count| {
            nodes_with_metadata(count, 2, Some(0))
        }),
        file("versions-of-a-node.osh.pbf", 3_000_000, versions_of_a_node),
        file("infos-of-a-way.osm.pbf", 3_000_000, |count| {
            let infos = b"\x22\x02\x08\x01".repeat(count);
            let way = [vec![8, 1], infos, length_delimited(8, &[2, 2])].concat();
            block_of(&[&plain_nodes(100), &length_delimited(3, &way)])
        }),
    ]
}

// Ways.

fn ways() -> Vec<HostileFile> {
    vec![
        file("ways-without-fields.osm.pbf", 15_000_000, |count| {
            block_of(&[&b"\x1a\0".repeat(count)])
        }),
        file("ways-with-one-id.osm.pbf", 7_000_000, |count| {
            block_of(&[&plain_nodes(100), &b"\x1a\x02\x08\x01".repeat(count)])
        }),
        file("ways.osm.pbf", 150_000, |count| {
            block_of(&[&plain_nodes(100), &ways_of(count, &[2, 2], &[])])
        }),
        file("way-at-one-node.osm.pbf", 2_000_000, |count| {
            let refs = [vec![2], vec![0; count - 1]].concat();
            block_of(&[&plain_nodes(100), &way(1, &refs, &BUILDING)])
        }),
        file("way-between-two-nodes.osm.pbf", 1_000_000, |count| {
            let refs = [vec![2], [2, 1].repeat(count - 1)].concat();
            block_of(&[&plain_nodes(100), &way(1, &refs, &BUILDING)])
        }),
        file("way-around-a-square.osm.pbf", 499_999, |count| {
            block_of(&[&square(), &way(1, &around(count), &BUILDING)])
        }),
        file("roads-around-a-square.osm.pbf", 499_999, |count| {
            block_of(&[&square(), &ways_of(15, &around(count), &ROAD)])
        }),
        file("way-of-many-nodes.osm.pbf", 1_900_000, |count| {
            let refs = [vec![2; count], sint(1 - count as i64)].concat();
            block_of(&[
                &dense(count, 2, 2, &Message::new()),
                &way(1, &refs, &BUILDING),
            ])
        }),
        file("way-that-crosses-itself.osm.pbf", 1_900_000, |count| {
            let places: Vec<(i64, i64)> = (0..count as i64)
                .map(|at| (at * 3 + at % 2 * 60_000, at % 2 * 100_000))
                .collect();
            let refs = [vec![2; count], sint(1 - count as i64)].concat();
            block_of(&[&nodes_at(&places), &way(1, &refs, &BUILDING)])
        }),
        file("ways-with-many-nodes.osm.pbf", 2_000_000, |count| {
            block_of(&[&plain_nodes(100), &ways_of(15, &vec![2; count], &[])])
        }),
        file("ways-over-all-nodes.osm.pbf", 15_000, |count| {
            block_of(&[&plain_nodes(2000), &ways_of(count, &[2; 1999], &[])])
        }),
        file("way-with-too-many-nodes.osm.pbf", 31_000_000, |count| {
            block_of(&[&way(1, &vec![2; count], &[])])
        }),
        file("tags-of-ways.osm.pbf", 2_000_000, |count| {
            block_of(&[&square(), &ways_of(7, &around(1), &TAG.repeat(count))])
        }),
        file("references-as-fields.osm.pbf", 8_000_000, |count| {
            let way = [vec![8, 1], b"\x40\x02".repeat(count)].concat();
            block_of(&[&plain_nodes(100), &length_delimited(3, &way)])
        }),
        file("unknown-fields-of-a-way.osm.pbf", 5_000_000, |count| {
            let unknown = [varint(2000 << 3), vec![1]].concat().repeat(count);
            block_of(&[
                &plain_nodes(100),
                &length_delimited(3, &[vec![8, 1], unknown].concat()),
            ])
        }),
    ]
}

/// A file of ways that store locations: `refs`, `lat` and `lon` are packed runs.
fn with_locations(number: u64, refs: &[u8], lat: &[u8], lon: &[u8], with: &[(u8, u8)]) -> Vec<u8> {
    let ways: Vec<u8> = (1..=number)
        .flat_map(|id| {
            let columns =
                [(8, refs), (9, lat), (10, lon)].map(|(at, run)| length_delimited(at, run));
            let way = [vec![8], varint(id), tags(with).to_bytes(), columns.concat()];
            length_delimited(3, &way.concat())
        })
        .collect();
    let table = length_delimited(1, &usual_strings());
    let header = craft::header_payload(&["OsmSchema-V0.6", "DenseNodes"], &["LocationsOnWays"]);
    craft::file(header, &[[table, length_delimited(2, &ways)].concat()])
}

fn located_ways() -> Vec<HostileFile> {
    vec![
        file("located-roads.osm.pbf", 2_000_000, |count| {
            let run = vec![2; count];
            with_locations(5, &run, &run, &run, &ROAD)
        }),
        file("located-buildings.osm.pbf", 1_900_000, |count| {
            let end = sint(1 - count as i64);
            let refs = [vec![2; count], end].concat();
            let half = count / 2;
            let lon = [vec![2; half], vec![1; half], vec![0; count - 2 * half + 1]].concat();
            with_locations(5, &refs, &refs, &lon, &BUILDING)
        }),
        file("locations-of-one-node.osm.pbf", 10_000_000, |count| {
            let run = vec![0; count];
            with_locations(1, &[2], &run, &run, &ROAD)
        }),
    ]
}

// Blocks, headers and frames.

fn groups() -> Vec<HostileFile> {
    vec![
        file("groups-without-objects.osm.pbf", 15_000_000, |count| {
            block(&usual_strings(), &b"\x12\0".repeat(count))
        }),
        file("groups-of-a-way.osm.pbf", 300_000, |count| {
            let group = length_delimited(2, &way(1, &around(1), &[]));
            let groups = [length_delimited(2, &square()), group.repeat(count)].concat();
            block(&usual_strings(), &groups)
        }),
        file("groups-of-a-dense-node.osm.pbf", 250_000, |count| {
            block(
                &usual_strings(),
                &length_delimited(2, &plain_nodes(1)).repeat(count),
            )
        }),
        file("changesets-of-a-group.osm.pbf", 7_000_000, |count| {
            block_of(&[&b"\x2a\x02\x08\x01".repeat(count)])
        }),
        file("unknown-fields-of-a-group.osm.pbf", 10_000_000, |count| {
            block_of(&[&[plain_nodes(100), b"\xe8\x04\x01".repeat(count)].concat()])
        }),
        file("unknown-fields-of-a-block.osm.pbf", 10_000_000, |count| {
            let group = length_delimited(2, &plain_nodes(100));
            block(
                &usual_strings(),
                &[group, b"\xe8\x04\x01".repeat(count)].concat(),
            )
        }),
        file("granularities.osm.pbf", 10_000_000, |count| {
            let group = length_delimited(2, &plain_nodes(100));
            block(
                &usual_strings(),
                &[group, b"\x88\x01\x64".repeat(count)].concat(),
            )
        }),
    ]
}

/// A file whose header has further fields.
fn with_header_fields(fields: &[u8]) -> Vec<u8> {
    let header = craft::header_payload(&["OsmSchema-V0.6", "DenseNodes"], &[]);
    let group = length_delimited(2, &plain_nodes(100));
    let data = [length_delimited(1, &usual_strings()), group].concat();
    craft::file([header, fields.to_vec()].concat(), &[data])
}

fn headers() -> Vec<HostileFile> {
    vec![
        file("required-features.osm.pbf", 15_000_000, |count| {
            with_header_fields(&b"\x22\0".repeat(count))
        }),
        file("optional-features.osm.pbf", 15_000_000, |count| {
            with_header_fields(&b"\x2a\0".repeat(count))
        }),
        file("boxes.osm.pbf", 100_000, |count| {
            with_header_fields(&b"\x0a\x08\x08\0\x10\x02\x18\x02\x20\0".repeat(count))
        }),
        file("sources.osm.pbf", 500, |count| {
            with_header_fields(&length_delimited(17, &[b'x'; 60_000]).repeat(count))
        }),
        file("unknown-fields-of-a-header.osm.pbf", 10_000_000, |count| {
            with_header_fields(&b"\xe8\x04\x01".repeat(count))
        }),
        file("headers.osm.pbf", 7000, |count| {
            let header = craft::header_payload(&["OsmSchema-V0.6", "DenseNodes"], &[]);
            let frames = frame("OSMHeader", &zlib_blob(&header)).repeat(count);
            [frames, frame("OSMData", &zlib_blob(&craft::empty_block()))].concat()
        }),
    ]
}

fn frames() -> Vec<HostileFile> {
    vec![
        file("empty-blocks.osm.pbf", 18_000, |count| {
            let blocks = frame("OSMData", &zlib_blob(&craft::empty_block())).repeat(count);
            [with_header_fields(&[]), blocks].concat()
        }),
        file("unknown-blobs.osm.pbf", 18_000, |count| {
            let blobs = frame("unknown", &zlib_blob(b"unknown")).repeat(count);
            [with_header_fields(&[]), blobs].concat()
        }),
        file("blobs-of-a-node.osm.pbf", 11_000, |count| {
            let blobs = (1..=count as i64).flat_map(|id| {
                let column = |number: u32, value: i64| length_delimited(number, &sint(value));
                let node = [column(1, id + 100), column(8, 0), column(9, 0)].concat();
                let group = length_delimited(2, &length_delimited(2, &node));
                let block = [length_delimited(1, b"\n\0"), group].concat();
                frame("OSMData", &zlib_blob(&block))
            });
            [with_header_fields(&[]), blobs.collect()].concat()
        }),
        file("indexes-of-blobs.osm.pbf", 15, |count| {
            let blob = zlib_blob(&craft::mixed_block());
            let blobs = craft::frame_with_index("OSMData", &[0; 60_000], &blob).repeat(count);
            [with_header_fields(&[]), blobs].concat()
        }),
        file("fields-of-a-frame.osm.pbf", 20_000, |count| {
            let blob = zlib_blob(&craft::mixed_block());
            let fields = b"\xe8\x04\x01".repeat(count);
            let header = [craft::blob_header("OSMData", &blob).to_bytes(), fields].concat();
            [with_header_fields(&[]), craft::frame_of(&header, &blob)].concat()
        }),
        file("fields-of-a-blob.osm.pbf", 300_000, |count| {
            let blob = [
                zlib_blob(&craft::mixed_block()),
                b"\xe8\x04\x01".repeat(count),
            ]
            .concat();
            [with_header_fields(&[]), frame("OSMData", &blob)].concat()
        }),
    ]
}
