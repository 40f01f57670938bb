//! Builds valid but awkward PBF files with a protobuf writer that shares no code with the crate.
//!
//! [`block`] encodes any list of objects in the [`Shape`] that a test needs; decoding the result must return the same
//! objects. The smaller functions are for files that are made awkward, or invalid, byte by byte.

use super::{Kind, Object, mixed_objects};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::Write;

// Protobuf messages.

/// The encoding of a message and of all messages in it. All layouts have the same meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Fields in the order in which they were added, repeated scalars packed in one run, as most writers encode them.
    Usual,
    /// Repeated scalars unpacked: each value has its own field key.
    Unpacked,
    /// Repeated scalars in several pieces, one of them empty, between the other fields.
    Split,
    /// Fields by descending field number.
    Reversed,
    /// Each field between fields with unknown numbers, which have all wire types in turn.
    UnknownFields,
}

impl Layout {
    /// Every layout.
    pub const ALL: [Self; 5] = [
        Self::Usual,
        Self::Unpacked,
        Self::Split,
        Self::Reversed,
        Self::UnknownFields,
    ];
}

#[derive(Debug, Clone)]
enum Field {
    Varint(u64),
    Bytes(Vec<u8>),
    Message(Message),
    Packed(Vec<u64>),
}

/// A protobuf message under construction.
#[derive(Debug, Clone, Default)]
pub struct Message {
    fields: Vec<(u32, Field)>,
}

impl Message {
    /// A message without fields.
    pub fn new() -> Message {
        Message::default()
    }

    fn field(mut self, number: u32, field: Field) -> Message {
        self.fields.push((number, field));
        self
    }

    /// Adds an int32, int64, uint32, uint64, bool or enum; negative numbers as `value as u64`.
    pub fn varint(self, number: u32, value: u64) -> Message {
        self.field(number, Field::Varint(value))
    }

    /// Adds a varint field if `value` is present.
    pub fn optional(self, number: u32, value: Option<u64>) -> Message {
        match value {
            Some(value) => self.varint(number, value),
            None => self,
        }
    }

    /// Adds a sint32 or sint64.
    pub fn sint(self, number: u32, value: i64) -> Message {
        self.field(number, Field::Varint(zigzag(value)))
    }

    /// Adds bytes, a string, or an encoded message.
    pub fn bytes(self, number: u32, value: &[u8]) -> Message {
        self.field(number, Field::Bytes(value.to_vec()))
    }

    /// Adds a message, which takes the layout of this one.
    pub fn message(self, number: u32, value: Message) -> Message {
        self.field(number, Field::Message(value))
    }

    /// Adds a repeated int32, uint32, bool or enum; no field if there are no values.
    pub fn packed_uint(self, number: u32, values: &[u64]) -> Message {
        match values {
            [] => self,
            values => self.field(number, Field::Packed(values.to_vec())),
        }
    }

    /// Adds a repeated sint32 or sint64; no field if there are no values.
    pub fn packed_sint(self, number: u32, values: &[i64]) -> Message {
        let values: Vec<u64> = values.iter().copied().map(zigzag).collect();
        self.packed_uint(number, &values)
    }

    /// Adds a repeated sint32 or sint64 with delta encoding.
    pub fn packed_deltas(self, number: u32, values: &[i64]) -> Message {
        let before = std::iter::once(&0).chain(values);
        let deltas: Vec<i64> = values
            .iter()
            .zip(before)
            .map(|(value, before)| value.wrapping_sub(*before))
            .collect();
        self.packed_sint(number, &deltas)
    }

    /// The message in the usual layout.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.encode(Layout::Usual)
    }

    /// The message in a layout.
    pub fn encode(&self, layout: Layout) -> Vec<u8> {
        let mut pieces: Vec<(u32, usize, Vec<u8>)> = Vec::new();
        for (number, field) in &self.fields {
            let encoded = field.encode(*number, layout).into_iter().enumerate();
            pieces.extend(encoded.map(|(index, bytes)| (*number, index, bytes)));
        }
        match layout {
            Layout::Reversed => pieces.sort_by_key(|&(number, ..)| Reverse(number)),
            Layout::Split => pieces.sort_by_key(|&(_, index, _)| index),
            Layout::UnknownFields => return between_unknown_fields(pieces),
            Layout::Usual | Layout::Unpacked => {}
        }
        pieces.into_iter().flat_map(|(.., bytes)| bytes).collect()
    }
}

impl Field {
    /// The encoded field, in one or several pieces. The layout decides about their position in the message.
    fn encode(&self, number: u32, layout: Layout) -> Vec<Vec<u8>> {
        let scalar = |value: u64| [varint(u64::from(number) << 3), varint(value)].concat();
        let run = |values: &[u64]| {
            let varints: Vec<Vec<u8>> = values.iter().map(|&value| varint(value)).collect();
            length_delimited(number, &varints.concat())
        };
        match self {
            Field::Varint(value) => vec![scalar(*value)],
            Field::Bytes(bytes) => vec![length_delimited(number, bytes)],
            Field::Message(message) => vec![length_delimited(number, &message.encode(layout))],
            Field::Packed(values) => match (layout, values.as_slice()) {
                (Layout::Unpacked, values) => values.iter().map(|&value| scalar(value)).collect(),
                (Layout::Split, [first]) => vec![run(&[]), scalar(*first)],
                (Layout::Split, [first, second, rest @ ..]) => {
                    vec![scalar(*first), run(&[]), run(&[*second]), run(rest)]
                }
                (_, values) => vec![run(values)],
            },
        }
    }
}

fn between_unknown_fields(pieces: Vec<(u32, usize, Vec<u8>)>) -> Vec<u8> {
    let unknown = |turn: usize| match turn % 4 {
        0 => [varint(2000 << 3), varint(u64::MAX)].concat(),
        1 => [varint(2001 << 3 | 1), vec![0xff; 8]].concat(),
        2 => length_delimited((1 << 29) - 1, b"\x0a\xff not a message"),
        _ => [varint(2003 << 3 | 5), vec![0xff; 4]].concat(),
    };
    let mut bytes = unknown(0);
    for (turn, (.., piece)) in pieces.into_iter().enumerate() {
        bytes.extend(piece);
        bytes.extend(unknown(turn + 1));
    }
    bytes
}

/// A number as a protobuf varint.
pub fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A field of bytes, text or a message, with its key and its length.
pub fn length_delimited(number: u32, content: &[u8]) -> Vec<u8> {
    [
        &varint(u64::from(number) << 3 | 2),
        &varint(content.len() as u64),
        content,
    ]
    .concat()
}

/// A number in the encoding of sint32 and sint64.
pub fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

// Frames and blobs.

/// A frame: length word, BlobHeader and Blob.
pub fn frame(blob_type: &str, blob: &[u8]) -> Vec<u8> {
    frame_of(&blob_header(blob_type, blob).to_bytes(), blob)
}

/// A frame whose BlobHeader carries `indexdata` (field 2).
pub fn frame_with_index(blob_type: &str, indexdata: &[u8], blob: &[u8]) -> Vec<u8> {
    frame_of(
        &blob_header(blob_type, blob).bytes(2, indexdata).to_bytes(),
        blob,
    )
}

/// A frame whose BlobHeader is any bytes.
pub fn frame_of(blob_header: &[u8], blob: &[u8]) -> Vec<u8> {
    let length = u32::try_from(blob_header.len())
        .expect("BlobHeader")
        .to_be_bytes();
    [&length, blob_header, blob].concat()
}

/// The BlobHeader of a blob.
pub fn blob_header(blob_type: &str, blob: &[u8]) -> Message {
    Message::new()
        .bytes(1, blob_type.as_bytes())
        .varint(3, blob.len() as u64)
}

/// A Blob with an uncompressed payload.
pub fn raw_blob(payload: &[u8]) -> Vec<u8> {
    Message::new().bytes(1, payload).to_bytes()
}

/// A Blob with zlib_data.
pub fn zlib_blob(payload: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(payload).expect("zlib");
    blob_with(3, payload, &encoder.finish().expect("zlib"))
}

/// A Blob with zstd_data.
pub fn zstd_blob(payload: &[u8]) -> Vec<u8> {
    blob_with(7, payload, &zstd::encode_all(payload, 3).expect("zstd"))
}

/// A Blob with lz4_data.
pub fn lz4_blob(payload: &[u8]) -> Vec<u8> {
    blob_with(6, payload, &lz4_flex::block::compress(payload))
}

/// A Blob with the field lzma_data, whose contents are not lzma.
pub fn lzma_blob(payload: &[u8]) -> Vec<u8> {
    blob_with(4, payload, b"not really lzma")
}

/// A Blob with the field OBSOLETE_bzip2_data, whose contents are not bzip2.
pub fn bzip2_blob(payload: &[u8]) -> Vec<u8> {
    blob_with(5, payload, b"BZh9 not really bzip2")
}

fn blob_with(field: u32, payload: &[u8], compressed: &[u8]) -> Vec<u8> {
    Message::new()
        .varint(2, payload.len() as u64)
        .bytes(field, compressed)
        .to_bytes()
}

/// The payload of an OSMHeader frame with exactly the given features.
pub fn header_payload(required: &[&str], optional: &[&str]) -> Vec<u8> {
    let mut header = Message::new();
    for feature in required {
        header = header.bytes(4, feature.as_bytes());
    }
    for feature in optional {
        header = header.bytes(5, feature.as_bytes());
    }
    header.bytes(16, b"crafted").to_bytes()
}

/// A file of a header payload and block payloads, all in zlib blobs.
pub fn file(header: Vec<u8>, blocks: &[Vec<u8>]) -> Vec<u8> {
    let mut file = frame("OSMHeader", &zlib_blob(&header));
    for block in blocks {
        file.extend(frame("OSMData", &zlib_blob(block)));
    }
    file
}

/// A file of block payloads that need only the features OsmSchema-V0.6 and DenseNodes.
pub fn plain_file(blocks: &[Vec<u8>]) -> Vec<u8> {
    let header = header_payload(&["OsmSchema-V0.6", "DenseNodes"], &[]);
    file(header, blocks)
}

// Blocks.

/// The properties in which blocks with the same objects may differ.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// The layout of the PrimitiveBlock and everything in it.
    pub layout: Layout,
    /// The unit of coordinates in nanodegrees.
    pub granularity: i64,
    /// Offset of latitudes in nanodegrees.
    pub lat_offset: i64,
    /// Offset of longitudes in nanodegrees.
    pub lon_offset: i64,
    /// The unit of timestamps in milliseconds.
    pub date_granularity: i64,
    /// Whether nodes are DenseNodes.
    pub dense: bool,
    /// The value for an absent version or changeset. With -1, as in files of old writers, both are always present.
    pub absent: i64,
    /// Whether `visible` is present for visible objects, too.
    pub history: bool,
}

impl Shape {
    /// The shape that most writers produce.
    pub const USUAL: Shape = Shape {
        layout: Layout::Usual,
        granularity: 100,
        lat_offset: 0,
        lon_offset: 0,
        date_granularity: 1000,
        dense: true,
        absent: 0,
        history: false,
    };

    fn lat(&self, nano: i64) -> i64 {
        exact_quotient(nano - self.lat_offset, self.granularity)
    }

    fn lon(&self, nano: i64) -> i64 {
        exact_quotient(nano - self.lon_offset, self.granularity)
    }

    fn timestamp(&self, object: &Object) -> i64 {
        exact_quotient(object.timestamp.unwrap_or(0) * 1000, self.date_granularity)
    }

    fn has_visible(&self, object: &Object) -> bool {
        self.history || !object.visible
    }
}

fn exact_quotient(value: i64, unit: i64) -> i64 {
    assert_eq!(value % unit, 0, "{value} in units of {unit}");
    value / unit
}

/// A PrimitiveBlock of objects in the given order, with one group per run of objects of one kind.
pub fn block(objects: &[Object], shape: &Shape) -> Vec<u8> {
    let runs: Vec<&[Object]> = objects.chunk_by(|a, b| a.kind == b.kind).collect();
    block_of_runs(&runs, shape)
}

/// A PrimitiveBlock with one group per run. All objects of a run must be of the same kind.
pub fn block_of_runs(runs: &[&[Object]], shape: &Shape) -> Vec<u8> {
    let indexes = HashMap::from([(String::new(), 0)]);
    let mut writer = BlockWriter { shape, indexes };
    let groups: Vec<Message> = runs.iter().map(|run| writer.group(run)).collect();
    let mut strings: Vec<&String> = writer.indexes.keys().collect();
    strings.sort_by_key(|&string| writer.indexes[string]);
    block_of_groups(groups, &strings, shape)
}

/// A PrimitiveBlock of the given groups, which need not be valid.
pub fn block_of_groups(
    groups: Vec<Message>,
    strings: &[impl AsRef<str>],
    shape: &Shape,
) -> Vec<u8> {
    let strings = strings.iter().map(|string| string.as_ref().as_bytes());
    let table = strings.fold(Message::new(), |table, string| table.bytes(1, string));
    let mut block = Message::new().message(1, table);
    for group in groups {
        block = block.message(2, group);
    }
    let unless = |usual: i64, value: i64| (value != usual).then_some(value as u64);
    let block = block
        .optional(17, unless(100, shape.granularity))
        .optional(18, unless(1000, shape.date_granularity))
        .optional(19, unless(0, shape.lat_offset))
        .optional(20, unless(0, shape.lon_offset));
    block.encode(shape.layout)
}

/// Encodes the groups of a block and collects the strings for its string table.
struct BlockWriter<'a> {
    shape: &'a Shape,
    indexes: HashMap<String, u64>,
}

impl BlockWriter<'_> {
    fn index(&mut self, string: &str) -> u64 {
        let next = self.indexes.len() as u64;
        *self.indexes.entry(string.to_owned()).or_insert(next)
    }

    fn group(&mut self, run: &[Object]) -> Message {
        let number = match run[0].kind {
            Kind::Node if self.shape.dense => return Message::new().message(2, self.dense(run)),
            Kind::Node => 1,
            Kind::Way => 3,
            Kind::Relation => 4,
        };
        let mut group = Message::new();
        for object in run {
            group = group.message(number, self.single(object));
        }
        group
    }

    /// A Node, Way or Relation message.
    fn single(&mut self, object: &Object) -> Message {
        let tags = object.tags.iter();
        let tags = tags.map(|(key, value)| (self.index(key), self.index(value)));
        let (keys, values): (Vec<_>, Vec<_>) = tags.unzip();
        let message = match object.kind {
            Kind::Node => Message::new().sint(1, object.id),
            Kind::Way | Kind::Relation => Message::new().varint(1, object.id as u64),
        };
        let mut message = message.packed_uint(2, &keys).packed_uint(3, &values);
        if let Some(info) = self.info(object) {
            message = message.message(4, info);
        }
        match object.kind {
            Kind::Node => self.coordinates(message, object),
            Kind::Way => self.refs(message, object),
            Kind::Relation => self.members(message, object),
        }
    }

    fn coordinates(&self, message: Message, node: &Object) -> Message {
        let (lat, lon) = (self.shape.lat(node.lat_nano), self.shape.lon(node.lon_nano));
        message.sint(8, lat).sint(9, lon)
    }

    fn refs(&self, message: Message, way: &Object) -> Message {
        let units = |&(lat, lon): &(i64, i64)| (self.shape.lat(lat), self.shape.lon(lon));
        let (lats, lons): (Vec<_>, Vec<_>) = way.locations.iter().map(units).unzip();
        let message = message.packed_deltas(8, &way.refs);
        message.packed_deltas(9, &lats).packed_deltas(10, &lons)
    }

    fn members(&mut self, message: Message, relation: &Object) -> Message {
        let members = relation.members.iter();
        let roles: Vec<u64> = members.clone().map(|(.., role)| self.index(role)).collect();
        let ids: Vec<i64> = members.clone().map(|&(_, id, _)| id).collect();
        let kinds: Vec<u64> = members.map(|&(kind, ..)| kind as u64).collect();
        let message = message.packed_uint(8, &roles).packed_deltas(9, &ids);
        message.packed_uint(10, &kinds)
    }

    /// An Info message, unless all its fields are absent.
    fn info(&mut self, object: &Object) -> Option<Message> {
        let shape = self.shape;
        let (version, changeset) = (object.version, object.changeset);
        let numbers = [version, object.timestamp, changeset, object.uid];
        let has_metadata = numbers.iter().any(Option::is_some) || object.user.is_some();
        let has_visible = shape.has_visible(object);
        let written = has_metadata || has_visible || shape.absent != 0;
        let timestamp = object.timestamp.map(|_| shape.timestamp(object) as u64);
        written.then(|| {
            Message::new()
                .varint(1, version.unwrap_or(shape.absent) as u64)
                .optional(2, timestamp)
                .varint(3, changeset.unwrap_or(shape.absent) as u64)
                .optional(4, object.uid.map(|uid| uid as u64))
                .optional(5, object.user.as_ref().map(|user| self.index(user)))
                .optional(6, has_visible.then_some(object.visible.into()))
        })
    }

    fn dense(&mut self, nodes: &[Object]) -> Message {
        let mut keys_vals = Vec::new();
        for node in nodes {
            for (key, value) in &node.tags {
                keys_vals.extend([self.index(key), self.index(value)]);
            }
            keys_vals.push(0);
        }
        if keys_vals.len() == nodes.len() {
            keys_vals.clear();
        }
        let column = |value: &dyn Fn(&Object) -> i64| nodes.iter().map(value).collect::<Vec<_>>();
        let mut message = Message::new().packed_deltas(1, &column(&|node| node.id));
        let info = self.dense_info(nodes);
        if !info.fields.is_empty() {
            message = message.message(5, info);
        }
        message
            .packed_deltas(8, &column(&|node| self.shape.lat(node.lat_nano)))
            .packed_deltas(9, &column(&|node| self.shape.lon(node.lon_nano)))
            .packed_uint(10, &keys_vals)
    }

    /// A DenseInfo message without the columns in which all values are absent.
    fn dense_info(&mut self, nodes: &[Object]) -> Message {
        let shape = self.shape;
        let sids = nodes
            .iter()
            .map(|node| self.index(node.user.as_deref().unwrap_or("")) as i64);
        let sids = unless_zero(sids.collect());
        let column =
            |value: &dyn Fn(&Object) -> i64| unless_zero(nodes.iter().map(value).collect());
        let versions = column(&|node| node.version.unwrap_or(shape.absent));
        let versions: Vec<u64> = versions.into_iter().map(|version| version as u64).collect();
        let timestamps = column(&|node| shape.timestamp(node));
        let changesets = column(&|node| node.changeset.unwrap_or(shape.absent));
        let uids = column(&|node| node.uid.unwrap_or(0));
        let mut visibles: Vec<u64> = nodes.iter().map(|node| node.visible.into()).collect();
        if !nodes.iter().any(|node| shape.has_visible(node)) {
            visibles.clear();
        }
        Message::new()
            .packed_uint(1, &versions)
            .packed_deltas(2, &timestamps)
            .packed_deltas(3, &changesets)
            .packed_deltas(4, &uids)
            .packed_deltas(5, &sids)
            .packed_uint(6, &visibles)
    }
}

/// The column, or an empty column if all its values are 0.
fn unless_zero(column: Vec<i64>) -> Vec<i64> {
    let is_indexed = column.iter().any(|&value| value != 0);
    if is_indexed { column } else { Vec::new() }
}

/// A block of [`mixed_objects`]: groups of nodes, ways, relations, and nodes again.
pub fn mixed_block() -> Vec<u8> {
    block(&mixed_objects(), &Shape::USUAL)
}

/// A block without any group.
pub fn empty_block() -> Vec<u8> {
    block(&[], &Shape::USUAL)
}
