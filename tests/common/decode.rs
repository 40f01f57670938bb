//! A simple, slow decoder of PBF files that shares no code with the crate.
//!
//! It implements `fileformat.proto`, `osmformat.proto` and the protobuf encoding completely: fields in any order,
//! unknown fields skipped, repeated scalars packed, unpacked or in pieces. A message is first split into a list of
//! fields and then interpreted, so the order of fields cannot matter. Invalid input panics: a file that a test reads
//! here must be valid.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

pub use super::{Kind, Object};

/// One frame of a file: length word, BlobHeader and Blob.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Offset in the file of the frame's length word.
    pub offset: u64,
    /// BlobHeader.type: "OSMHeader" and "OSMData" are the types that the format defines.
    pub blob_type: String,
    /// BlobHeader.indexdata (field 2).
    pub indexdata: Option<Vec<u8>>,
    /// Length of the BlobHeader message in bytes.
    pub header_len: usize,
    /// Length of the whole frame in bytes: length word, BlobHeader and Blob.
    pub frame_len: usize,
    /// The uncompressed payload; empty in a frame of an unknown type.
    pub payload: Vec<u8>,
    /// "raw", "zlib", "lz4" or "zstd"; "unknown" in a frame of an unknown type.
    pub compression: &'static str,
}

/// The file's HeaderBlock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// Left, right, top and bottom in nanodegrees.
    pub bbox: Option<[i64; 4]>,
    /// required_features.
    pub required: Vec<String>,
    /// optional_features.
    pub optional: Vec<String>,
    /// writingprogram.
    pub program: Option<String>,
    /// source.
    pub source: Option<String>,
    /// osmosis_replication_timestamp in seconds.
    pub replication_timestamp: Option<i64>,
    /// osmosis_replication_sequence_number.
    pub replication_sequence: Option<i64>,
    /// osmosis_replication_base_url.
    pub replication_url: Option<String>,
    /// The table of contents (field 1001, an extension).
    pub toc: Option<Vec<u8>>,
    /// Length of the padding after the table of contents (field 1002).
    pub padding_bytes: usize,
    /// Numbers of all other fields, ascending, each once.
    pub unknown_fields: Vec<u32>,
}

/// The frames of a file in file order, without those that have a part of its table of contents and no objects.
pub fn frames(path: &Path) -> Vec<Frame> {
    let mut frames = all_frames(path);
    frames.retain(|frame| !has_part(frame) || has_group(frame));
    frames
}

/// The frames that have a part of a file's table of contents.
pub fn table_frames(path: &Path) -> Vec<Frame> {
    let mut frames = all_frames(path);
    frames.retain(has_part);
    frames
}

/// Whether a file has a table of contents at its end.
pub fn has_table(path: &Path) -> bool {
    all_frames(path).last().is_some_and(has_part)
}

/// Whether a frame has a part of a table of contents in its strings.
pub fn has_part(frame: &Frame) -> bool {
    frame.blob_type == "OSMData"
        && Fields::parse(&frame.payload, "PrimitiveBlock")
            .message(1, "StringTable")
            .is_some_and(|strings| {
                strings.all_bytes(1).get(1).map(Vec::as_slice) == Some(b"HOGG table of contents")
            })
}

/// Whether a frame has a group of objects.
pub fn has_group(frame: &Frame) -> bool {
    !Fields::parse(&frame.payload, "PrimitiveBlock")
        .all_bytes(2)
        .is_empty()
}

/// All frames of a file, in file order.
pub fn all_frames(path: &Path) -> Vec<Frame> {
    let file = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut frames = Vec::new();
    let mut offset = 0;
    while offset < file.len() {
        let frame = frame_at(&file, offset);
        offset += frame.frame_len;
        frames.push(frame);
    }
    frames
}

/// The HeaderBlock. The first frame of the file must contain it.
pub fn header(path: &Path) -> Header {
    let frames = frames(path);
    let first = frames.first().expect("the file is empty");
    assert_eq!(first.blob_type, "OSMHeader", "type of the first frame");
    header_block(&first.payload)
}

/// All objects of a file, in file order.
pub fn objects(path: &Path) -> Vec<Object> {
    let blocks = data_payloads(path);
    blocks.iter().flat_map(|payload| block(payload)).collect()
}

/// The kinds of objects in each OSMData frame, ascending, and the number of its objects.
pub fn blocks(path: &Path) -> Vec<(Vec<Kind>, usize)> {
    let summary = |payload: &Vec<u8>| {
        let objects = block(payload);
        let kinds: BTreeSet<Kind> = objects.iter().map(|object| object.kind).collect();
        (kinds.into_iter().collect(), objects.len())
    };
    data_payloads(path).iter().map(summary).collect()
}

fn data_payloads(path: &Path) -> Vec<Vec<u8>> {
    let mut frames = frames(path);
    frames.retain(|frame| frame.blob_type == "OSMData");
    frames.into_iter().map(|frame| frame.payload).collect()
}

// Frames and blobs (fileformat.proto).

const MAX_HEADER_BYTES: u64 = 64 * 1024;
const MAX_BLOB_BYTES: u64 = 32 * 1024 * 1024;

fn frame_at(file: &[u8], offset: usize) -> Frame {
    let at = format!("frame at byte {offset}");
    let mut rest = &file[offset..];
    let length_word = take(&mut rest, 4, &at).iter();
    let header_len = length_word.fold(0, |length, &byte| length << 8 | u64::from(byte));
    assert!(
        header_len < MAX_HEADER_BYTES,
        "{at}: header of {header_len} bytes"
    );
    let header_bytes = take(&mut rest, header_len, &at);
    let header = Fields::parse(header_bytes, "BlobHeader");
    let blob_len = header.varint(3).expect("BlobHeader.datasize");
    assert!(blob_len <= MAX_BLOB_BYTES, "{at}: blob of {blob_len} bytes");
    let blob = take(&mut rest, blob_len, &at);
    let blob_type = header.string(1).expect("BlobHeader.type");
    let (compression, payload) = match blob_type.as_str() {
        "OSMHeader" | "OSMData" => payload_of(blob, &at),
        _ => ("unknown", Vec::new()),
    };
    Frame {
        offset: offset as u64,
        blob_type,
        indexdata: header.bytes(2),
        header_len: header_bytes.len(),
        frame_len: 4 + header_bytes.len() + blob.len(),
        payload,
        compression,
    }
}

fn payload_of(blob: &[u8], at: &str) -> (&'static str, Vec<u8>) {
    let blob = Fields::parse(blob, "Blob");
    let fields: Vec<u32> = [1, 3, 4, 5, 6, 7]
        .into_iter()
        .filter(|&field| blob.has(field))
        .collect();
    let [field] = fields[..] else {
        panic!("{at}: blob with data fields {fields:?}")
    };
    let data = blob.bytes(field).expect("data");
    let raw_size = blob.varint(2);
    let (compression, payload) = match field {
        1 => ("raw", data),
        3 => ("zlib", inflate(&data)),
        6 => ("lz4", unlz4(&data, raw_size.expect("raw_size of lz4_data"))),
        7 => ("zstd", zstd::decode_all(&data[..]).expect("zstd_data")),
        4 => panic!("{at}: lzma_data is not supported"),
        _ => panic!("{at}: OBSOLETE_bzip2_data is not supported"),
    };
    let size = payload.len() as u64;
    assert!(size <= MAX_BLOB_BYTES, "{at}: payload of {size} bytes");
    assert_eq!(raw_size.unwrap_or(size), size, "{at}: raw_size");
    (compression, payload)
}

fn unlz4(data: &[u8], raw_size: u64) -> Vec<u8> {
    assert!(raw_size <= MAX_BLOB_BYTES, "raw_size {raw_size}");
    lz4_flex::block::decompress(data, raw_size as usize).expect("lz4_data")
}

fn inflate(data: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    let mut decoder = flate2::read::ZlibDecoder::new(data);
    decoder.read_to_end(&mut payload).expect("zlib_data");
    let used = decoder.total_in();
    assert_eq!(used, data.len() as u64, "bytes used of zlib_data");
    payload
}

// Blocks (osmformat.proto).

/// Interprets the payload of an OSMHeader frame.
pub fn header_block(payload: &[u8]) -> Header {
    let fields = Fields::parse(payload, "HeaderBlock");
    let corner = |bbox: &Fields, field| unzigzag(bbox.varint(field).expect("HeaderBBox field"));
    let bbox = fields.message(1, "HeaderBBox");
    let known = [1, 4, 5, 16, 17, 32, 33, 34, 1001, 1002];
    let mut unknown: BTreeSet<u32> = fields.0.iter().map(|field| field.number).collect();
    unknown.retain(|number| !known.contains(number));
    Header {
        bbox: bbox.map(|bbox| [1, 2, 3, 4].map(|number| corner(&bbox, number))),
        required: fields.all_bytes(4).into_iter().map(utf8).collect(),
        optional: fields.all_bytes(5).into_iter().map(utf8).collect(),
        program: fields.string(16),
        source: fields.string(17),
        replication_timestamp: fields.i64(32),
        replication_sequence: fields.i64(33),
        replication_url: fields.string(34),
        toc: fields.bytes(1001),
        padding_bytes: fields.all_bytes(1002).iter().map(Vec::len).sum(),
        unknown_fields: unknown.into_iter().collect(),
    }
}

/// The compression of each data blob.
pub fn compressions(path: &Path) -> Vec<&'static str> {
    let frames = frames(path);
    let blobs = frames.iter().skip(1).filter(|frame| !has_part(frame));
    blobs.map(|frame| frame.compression).collect()
}

/// The objects in the payload of an OSMData frame. Changesets are skipped.
pub fn block(payload: &[u8]) -> Vec<Object> {
    let fields = Fields::parse(payload, "PrimitiveBlock");
    let strings = fields.message(1, "StringTable");
    let block = Block {
        strings: strings.expect("stringtable").all_bytes(1),
        granularity: fields.i32(17).unwrap_or(100),
        date_granularity: fields.i32(18).unwrap_or(1000),
        lat_offset: fields.i64(19).unwrap_or(0),
        lon_offset: fields.i64(20).unwrap_or(0),
    };
    let groups = fields.all_bytes(2);
    groups.iter().flat_map(|group| block.group(group)).collect()
}

/// The string table and the units of a block, which its objects refer to.
struct Block {
    strings: Vec<Vec<u8>>,
    granularity: i64,
    date_granularity: i64,
    lat_offset: i64,
    lon_offset: i64,
}

impl Block {
    fn group(&self, group: &[u8]) -> Vec<Object> {
        let fields = Fields::parse(group, "PrimitiveGroup");
        let dense = fields.all_bytes(2).len();
        assert!(dense <= 1, "{dense} DenseNodes in one PrimitiveGroup");
        let mut objects = Vec::new();
        for field in &fields.0 {
            match field.number {
                1 => objects.push(self.plain_node(&Fields::parse(field.bytes(), "Node"))),
                2 => objects.extend(self.dense_nodes(&Fields::parse(field.bytes(), "DenseNodes"))),
                3 => objects.push(self.way(&Fields::parse(field.bytes(), "Way"))),
                4 => objects.push(self.relation(&Fields::parse(field.bytes(), "Relation"))),
                _ => {}
            }
        }
        objects
    }

    fn plain_node(&self, fields: &Fields) -> Object {
        let id = unzigzag(fields.varint(1).expect("Node.id"));
        let mut node = self.tagged_object(Kind::Node, id, fields);
        node.lat_nano = self.lat_nano(unzigzag(fields.varint(8).expect("Node.lat")));
        node.lon_nano = self.lon_nano(unzigzag(fields.varint(9).expect("Node.lon")));
        node
    }

    fn way(&self, fields: &Fields) -> Object {
        let id = fields.i64(1).expect("Way.id");
        let mut way = self.tagged_object(Kind::Way, id, fields);
        way.refs = fields.deltas(8);
        let (lats, lons) = (fields.deltas(9), fields.deltas(10));
        let counts = (lats.len(), lons.len());
        let all_or_none = counts == (0, 0) || counts == (way.refs.len(), way.refs.len());
        assert!(
            all_or_none,
            "way {id}: {counts:?} coordinates, {} refs",
            way.refs.len()
        );
        let location = |(lat, lon)| (self.lat_nano(lat), self.lon_nano(lon));
        way.locations = lats.into_iter().zip(lons).map(location).collect();
        way
    }

    fn relation(&self, fields: &Fields) -> Object {
        let id = fields.i64(1).expect("Relation.id");
        let mut relation = self.tagged_object(Kind::Relation, id, fields);
        let (roles, ids, kinds) = (fields.repeated(8), fields.deltas(9), fields.repeated(10));
        assert_eq!(roles.len(), ids.len(), "relation {id}: roles");
        assert_eq!(kinds.len(), ids.len(), "relation {id}: member types");
        for ((role, member), kind) in roles.into_iter().zip(ids).zip(kinds) {
            let role = self.string(role);
            relation.members.push((member_kind(kind), member, role));
        }
        relation
    }

    /// Decodes the fields that plain nodes, ways and relations share: keys (2), vals (3) and info (4).
    fn tagged_object(&self, kind: Kind, id: i64, fields: &Fields) -> Object {
        let (keys, values) = (fields.repeated(2), fields.repeated(3));
        assert_eq!(keys.len(), values.len(), "{kind:?} {id}: keys and values");
        let mut object = Object::new(kind, id);
        for (key, value) in keys.into_iter().zip(values) {
            object.tags.push((self.string(key), self.string(value)));
        }
        if let Some(info) = fields.message(4, "Info") {
            object.version = present(info.i32(1));
            object.timestamp = self.seconds(info.i64(2));
            object.changeset = present(info.i64(3));
            (object.uid, object.user) = self.user(info.i32(4), info.i64(5));
            object.visible = info.varint(6) != Some(0);
        }
        object
    }

    fn dense_nodes(&self, fields: &Fields) -> Vec<Object> {
        let (ids, lats, lons) = (fields.deltas(1), fields.deltas(8), fields.deltas(9));
        assert_eq!(lats.len(), ids.len(), "DenseNodes: latitudes and ids");
        assert_eq!(lons.len(), ids.len(), "DenseNodes: longitudes and ids");
        let mut nodes = Vec::new();
        for ((id, lat), lon) in ids.into_iter().zip(lats).zip(lons) {
            let mut node = Object::new(Kind::Node, id);
            (node.lat_nano, node.lon_nano) = (self.lat_nano(lat), self.lon_nano(lon));
            nodes.push(node);
        }
        self.dense_tags(&mut nodes, fields.repeated(10));
        if let Some(info) = fields.message(5, "DenseInfo") {
            self.dense_info(&mut nodes, &info);
        }
        nodes
    }

    /// Distributes keys_vals to nodes: for each node, pairs of key and value indexes, then a 0. The column may be
    /// absent, and a column that ends early leaves the remaining nodes without tags.
    fn dense_tags(&self, nodes: &mut [Object], keys_vals: Vec<u64>) {
        let mut indexes = keys_vals.into_iter();
        for node in nodes.iter_mut() {
            while let Some(key) = indexes.next().filter(|&key| key != 0) {
                let value = indexes.next().expect("keys_vals ends behind a key");
                node.tags.push((self.string(key), self.string(value)));
            }
        }
        assert_eq!(indexes.len(), 0, "keys_vals behind the last node");
    }

    /// Distributes the DenseInfo columns to nodes. Each column may be absent. A node for which a column has no value
    /// lacks that property.
    fn dense_info(&self, nodes: &mut [Object], info: &Fields) {
        let counts = [1, 2, 3, 4, 5, 6].map(|number| info.repeated(number).len());
        let fits = counts.iter().all(|&count| count <= nodes.len());
        assert!(
            fits,
            "DenseInfo: {counts:?} values for {} nodes",
            nodes.len()
        );
        let (versions, visibles) = (info.repeated(1), info.repeated(6));
        let [timestamps, changesets, uids, sids] = [2, 3, 4, 5].map(|number| info.deltas(number));
        for (index, node) in nodes.iter_mut().enumerate() {
            node.version = present(versions.get(index).copied().map(int32));
            node.timestamp = self.seconds(timestamps.get(index).copied());
            node.changeset = present(changesets.get(index).copied());
            let (uid, sid) = (uids.get(index).copied(), sids.get(index).copied());
            (node.uid, node.user) = self.user(uid, sid);
            node.visible = visibles.get(index) != Some(&0);
        }
    }

    fn string(&self, index: u64) -> String {
        let string = self.strings.get(index as usize);
        let string = string.unwrap_or_else(|| panic!("string {index} of {}", self.strings.len()));
        utf8(string.clone())
    }

    /// A user's id and name. String id 0 means no name, even if the string table is empty.
    fn user(&self, uid: Option<i64>, sid: Option<i64>) -> (Option<i64>, Option<String>) {
        let name = sid
            .filter(|&sid| sid != 0)
            .map(|sid| self.string(sid as u64));
        let name = name.filter(|name| !name.is_empty());
        let uid = uid.filter(|&uid| uid > 0 || (uid == 0 && name.is_some()));
        (uid, name)
    }

    fn seconds(&self, timestamp: Option<i64>) -> Option<i64> {
        let milliseconds = timestamp.unwrap_or(0).checked_mul(self.date_granularity);
        Some(milliseconds.expect("timestamp") / 1000).filter(|&seconds| seconds != 0)
    }

    fn lat_nano(&self, value: i64) -> i64 {
        scaled(self.lat_offset, self.granularity, value)
    }

    fn lon_nano(&self, value: i64) -> i64 {
        scaled(self.lon_offset, self.granularity, value)
    }
}

fn scaled(offset: i64, granularity: i64, value: i64) -> i64 {
    let scaled = granularity.checked_mul(value);
    let nanodegrees = scaled.and_then(|scaled| scaled.checked_add(offset));
    nanodegrees.unwrap_or_else(|| panic!("coordinate {value} overflows"))
}

fn member_kind(value: u64) -> Kind {
    match value {
        0 => Kind::Node,
        1 => Kind::Way,
        2 => Kind::Relation,
        other => panic!("member type {other}"),
    }
}

/// A version or a changeset. Writers use 0 and -1 for "absent".
fn present(value: Option<i64>) -> Option<i64> {
    value.filter(|&value| value != 0 && value != -1)
}

// The protobuf encoding.

/// The fields of a message, in their order in the message.
struct Fields(Vec<Field>);

struct Field {
    number: u32,
    value: Value,
}

enum Value {
    Varint(u64),
    Bytes(Vec<u8>),
    /// Length of a fixed-size field: 4 or 8 bytes. No field of the format has such a type.
    Fixed(usize),
}

impl Field {
    fn bytes(&self) -> &[u8] {
        match &self.value {
            Value::Bytes(bytes) => bytes,
            _ => panic!("field {}: not length-delimited", self.number),
        }
    }
}

impl Fields {
    fn parse(bytes: &[u8], message: &str) -> Fields {
        let mut rest = bytes;
        let mut fields = Vec::new();
        while !rest.is_empty() {
            let key = take_varint(&mut rest, message);
            let number = (key >> 3) as u32;
            assert!(
                (8..1 << 32).contains(&key),
                "{message}: field number {}",
                key >> 3
            );
            let value = match key & 7 {
                0 => Value::Varint(take_varint(&mut rest, message)),
                1 => Value::Fixed(take(&mut rest, 8, message).len()),
                2 => {
                    let len = take_varint(&mut rest, message);
                    Value::Bytes(take(&mut rest, len, message).to_vec())
                }
                5 => Value::Fixed(take(&mut rest, 4, message).len()),
                other => panic!("{message}: field {number} has wire type {other}"),
            };
            fields.push(Field { number, value });
        }
        Fields(fields)
    }

    fn each(&self, number: u32) -> impl Iterator<Item = &Field> {
        self.0.iter().filter(move |field| field.number == number)
    }

    fn has(&self, number: u32) -> bool {
        self.each(number).next().is_some()
    }

    /// A scalar. The last occurrence counts.
    fn varint(&self, number: u32) -> Option<u64> {
        self.each(number).last().map(|field| match field.value {
            Value::Varint(value) => value,
            _ => panic!("field {number}: not a varint"),
        })
    }

    fn i32(&self, number: u32) -> Option<i64> {
        self.varint(number).map(int32)
    }

    fn i64(&self, number: u32) -> Option<i64> {
        self.varint(number).map(|value| value as i64)
    }

    fn all_bytes(&self, number: u32) -> Vec<Vec<u8>> {
        self.each(number)
            .map(|field| field.bytes().to_vec())
            .collect()
    }

    fn bytes(&self, number: u32) -> Option<Vec<u8>> {
        self.all_bytes(number).pop()
    }

    fn string(&self, number: u32) -> Option<String> {
        self.bytes(number).map(utf8)
    }

    /// An embedded message. Several occurrences are merged: they are parsed as if concatenated.
    fn message(&self, number: u32, name: &str) -> Option<Fields> {
        let joined = self.all_bytes(number).concat();
        self.has(number).then(|| Fields::parse(&joined, name))
    }

    /// A repeated scalar: packed, unpacked, or both.
    fn repeated(&self, number: u32) -> Vec<u64> {
        let mut values = Vec::new();
        for field in self.each(number) {
            match &field.value {
                Value::Varint(value) => values.push(*value),
                Value::Bytes(run) => {
                    let mut rest = run.as_slice();
                    while !rest.is_empty() {
                        values.push(take_varint(&mut rest, "packed run"));
                    }
                }
                Value::Fixed(len) => panic!("field {number}: {len} fixed bytes"),
            }
        }
        values
    }

    /// A repeated, delta-encoded sint field. Overflow wraps around.
    fn deltas(&self, number: u32) -> Vec<i64> {
        let mut sum = 0_i64;
        let mut values = Vec::new();
        for delta in self.repeated(number) {
            sum = sum.wrapping_add(unzigzag(delta));
            values.push(sum);
        }
        values
    }
}

fn take<'a>(rest: &mut &'a [u8], len: u64, message: &str) -> &'a [u8] {
    let left = rest.len();
    assert!(
        len <= left as u64,
        "{message}: {len} bytes expected, {left} left"
    );
    let (taken, behind) = rest.split_at(len as usize);
    *rest = behind;
    taken
}

fn take_varint(rest: &mut &[u8], message: &str) -> u64 {
    let mut value = 0_u64;
    for index in 0..10 {
        let byte = take(rest, 1, message)[0];
        let bits = u64::from(byte & 0x7f);
        assert!(index < 9 || bits <= 1, "{message}: varint of over 64 bits");
        value |= bits << (7 * index);
        if byte < 0x80 {
            return value;
        }
    }
    panic!("{message}: varint of more than 10 bytes");
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// The value of an int32 field: the low 32 bits of its varint.
fn int32(value: u64) -> i64 {
    i64::from(value as u32 as i32)
}

fn utf8(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| panic!("not UTF-8: {error}"))
}
