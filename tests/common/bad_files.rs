//! Invalid files. Each breaks one rule of the format.

use super::craft::{
    Message, bzip2_blob, file, frame, frame_of, header_payload, lz4_blob, lzma_blob, plain_file,
    raw_blob, zlib_blob, zstd_blob,
};

/// A file that breaks a rule.
pub struct BadFile {
    /// A description of the violation.
    pub rule: String,
    /// The contents of the file.
    pub bytes: Vec<u8>,
    /// Whether commands that do not read the invalid part may accept the file.
    pub may_pass: bool,
}

/// The varint of a field whose value is -1.
const MINUS_ONE: u64 = u64::MAX;

/// A file for each rule.
pub fn bad_files() -> Vec<BadFile> {
    let mut files = Vec::new();
    let mut add = |rule: &str, bytes: Vec<u8>| {
        files.push(BadFile {
            rule: rule.to_owned(),
            bytes,
            may_pass: false,
        });
    };
    frames(&mut add);
    blobs(&mut add);
    headers(&mut add);
    nodes(&mut add);
    ways_and_relations(&mut add);
    blocks(&mut add);
    let mut add = |rule: &str, bytes: Vec<u8>| {
        files.push(BadFile {
            rule: rule.to_owned(),
            bytes,
            may_pass: true,
        });
    };
    contents(&mut add);
    files
}

type Add<'a> = &'a mut dyn FnMut(&str, Vec<u8>);

/// A valid block.
fn good_block() -> Vec<u8> {
    of_groups(
        &[dense(&[1, 2, 3], &[1, 2, 3], &[1, 2, 3])],
        &[b"", b"key", b"value"],
    )
}

fn header() -> Vec<u8> {
    plain_file(&[])
}

fn with_frame(bytes: &[u8]) -> Vec<u8> {
    [&header(), bytes].concat()
}

fn of_groups(groups: &[Message], strings: &[&[u8]]) -> Vec<u8> {
    let strings = strings
        .iter()
        .fold(Message::new(), |table, string| table.bytes(1, string));
    let block = Message::new().message(1, strings);
    groups
        .iter()
        .fold(block, |block, group| block.message(2, group.clone()))
        .to_bytes()
}

fn dense_columns(ids: &[i64], lats: &[i64], lons: &[i64]) -> Message {
    Message::new()
        .packed_deltas(1, ids)
        .packed_deltas(8, lats)
        .packed_deltas(9, lons)
}

fn dense(ids: &[i64], lats: &[i64], lons: &[i64]) -> Message {
    Message::new().message(2, dense_columns(ids, lats, lons))
}

fn frames(add: Add) {
    let length = |length: u32| with_frame(&[&length.to_be_bytes()[..], &[0; 100]].concat());
    add("a frame without BlobHeader", length(0));
    add("a BlobHeader of 64 KiB", length(64 * 1024));
    add("a BlobHeader of 4 GiB", length(u32::MAX));
    add("three bytes behind the last frame", with_frame(&[0, 0, 0]));
    let blob = zlib_blob(&good_block());
    let head = |datasize: u64| {
        let header = Message::new()
            .bytes(1, b"OSMData")
            .varint(3, datasize)
            .to_bytes();
        with_frame(&frame_of(&header, &blob))
    };
    let len = blob.len() as u64;
    for (rule, datasize) in [
        ("a datasize of 0", 0),
        ("a datasize that is short by a byte", len - 1),
        ("a datasize that is a byte too long", len + 1),
        ("a datasize of 32 MiB and a byte", (32 << 20) + 1),
        ("a datasize of 2 GiB", 1 << 31),
        ("a datasize past 64 bits", 1 << 63),
        ("a negative datasize", MINUS_ONE),
    ] {
        add(rule, head(datasize));
    }
    let no_size = Message::new().bytes(1, b"OSMData").to_bytes();
    add(
        "a BlobHeader without datasize",
        with_frame(&frame_of(&no_size, &blob)),
    );
    let no_type = Message::new().varint(3, len).to_bytes();
    add(
        "a BlobHeader without type",
        with_frame(&frame_of(&no_type, &blob)),
    );
    add(
        "a BlobHeader of garbage",
        with_frame(&frame_of(&[0xff; 20], &blob)),
    );
}

fn blobs(add: Add) {
    let data = |blob: &[u8]| with_frame(&frame("OSMData", blob));
    let block = good_block();
    add("an empty Blob", data(&[]));
    add("a Blob of garbage", data(&[0xff; 30]));
    add("lzma data", data(&lzma_blob(&block)));
    add("bzip2 data", data(&bzip2_blob(&block)));
    let zlib = |payload: &[u8]| {
        use std::io::Write;
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(payload).unwrap();
        zlib.finish().unwrap()
    };
    let sized = |field: u32, raw_size: u64, bytes: &[u8]| {
        data(
            &Message::new()
                .varint(2, raw_size)
                .bytes(field, bytes)
                .to_bytes(),
        )
    };
    let len = block.len() as u64;
    let compressed = [
        ("zlib", 3, zlib(&block)),
        ("lz4", 6, lz4_flex::block::compress(&block)),
        ("zstd", 7, zstd::encode_all(&block[..], 3).unwrap()),
    ];
    for (name, field, bytes) in &compressed {
        for (lie, raw_size) in [
            ("0", 0),
            ("a byte too few", len - 1),
            ("a byte too many", len + 1),
            ("32 MiB and a byte", (32 << 20) + 1),
            ("2 GiB", 1 << 31),
            ("less than nothing", MINUS_ONE),
        ] {
            add(
                &format!("{name} data with a raw_size of {lie}"),
                sized(*field, raw_size, bytes),
            );
        }
        let cut = &bytes[..bytes.len() / 2];
        add(
            &format!("{name} data that is cut off"),
            sized(*field, len, cut),
        );
        add(
            &format!("{name} data of garbage"),
            sized(*field, len, &[0x55; 40]),
        );
        add(&format!("{name} data of nothing"), sized(*field, len, &[]));
    }
    // 200 MiB of zeros compress to about a thousandth of their length.
    let zeros = vec![0; 200 << 20];
    let bombs = [
        ("zlib", 3, zlib(&zeros)),
        ("lz4", 6, lz4_flex::block::compress(&zeros)),
        ("zstd", 7, zstd::encode_all(&zeros[..], 3).unwrap()),
    ];
    for (name, field, bytes) in &bombs {
        for raw_size in [100, 32 << 20, 200 << 20] {
            add(
                &format!("a bomb of {name} data, raw_size {raw_size}"),
                sized(*field, raw_size, bytes),
            );
        }
    }
    add(
        "zeros, 32 MiB of them",
        data(&zlib_blob(&zeros[..32 << 20])),
    );
    add(
        "a raw payload of 32 MiB and a byte",
        data(&raw_blob(&zeros[..(32 << 20) + 1])),
    );
    add(
        "zstd zeros, 32 MiB of them",
        data(&zstd_blob(&zeros[..32 << 20])),
    );
    add(
        "lz4 zeros, 32 MiB of them",
        data(&lz4_blob(&zeros[..32 << 20])),
    );
}

fn headers(add: Add) {
    let block = good_block();
    let feature = header_payload(&["OsmSchema-V0.6", "Teleport-V2"], &[]);
    add(
        "an unknown required feature",
        file(feature, std::slice::from_ref(&block)),
    );
    add(
        "a header of garbage",
        file(vec![0xff; 40], std::slice::from_ref(&block)),
    );
    let data = frame("OSMData", &zlib_blob(&block));
    add("no header", data.clone());
    add("two headers", [header(), header(), data.clone()].concat());
    add(
        "two files one behind the other",
        [header(), data.clone(), header(), data].concat(),
    );
    add("an empty file", Vec::new());
    add("zeros", vec![0; 4096]);
}

fn block_file(block: Vec<u8>) -> Vec<u8> {
    plain_file(&[good_block(), block])
}

fn nodes(add: Add) {
    let strings: &[&[u8]] = &[b"", b"key", b"value"];
    let mut dense = |rule: &str, columns: Message| {
        let group = Message::new().message(2, columns);
        add(rule, block_file(of_groups(&[group], strings)));
    };
    let usual = || dense_columns(&[4, 5], &[1, 2], &[1, 2]);
    dense(
        "fewer latitudes than ids",
        dense_columns(&[4, 5], &[1], &[1, 2]),
    );
    dense(
        "more longitudes than ids",
        dense_columns(&[4, 5], &[1, 2], &[1, 2, 3]),
    );
    dense("latitudes without ids", dense_columns(&[], &[1], &[1]));
    dense(
        "keys_vals that end in a key",
        usual().packed_uint(10, &[1, 2, 0, 1]),
    );
    dense(
        "keys_vals of three nodes for two",
        usual().packed_uint(10, &[1, 2, 0, 0, 0]),
    );
    dense(
        "keys_vals without nodes",
        Message::new().packed_uint(10, &[0, 0]),
    );
    dense(
        "keys_vals with a string that is not there",
        usual().packed_uint(10, &[1, 3, 0, 0]),
    );
    let info = |columns: Message| usual().message(5, columns);
    dense(
        "fewer versions than nodes",
        info(Message::new().packed_uint(1, &[1])),
    );
    dense(
        "more timestamps than nodes",
        info(Message::new().packed_deltas(2, &[1, 2, 3])),
    );
    dense(
        "fewer changesets than nodes",
        info(Message::new().packed_deltas(3, &[1])),
    );
    dense(
        "fewer uids than nodes",
        info(Message::new().packed_deltas(4, &[1])),
    );
    dense(
        "more user names than nodes",
        info(Message::new().packed_deltas(5, &[1, 1, 1])),
    );
    dense(
        "fewer visible flags than nodes",
        info(Message::new().packed_uint(6, &[1])),
    );
    dense(
        "a user that is not there",
        info(Message::new().packed_deltas(5, &[1, 77])),
    );
    dense(
        "a negative user",
        info(Message::new().packed_deltas(5, &[1, -1])),
    );
    let overflow = |number| {
        let column = |own: u32, usual: &[i64]| {
            if own == number {
                Message::new().packed_sint(own, &[i64::MAX, i64::MAX])
            } else {
                Message::new().packed_deltas(own, usual)
            }
        };
        let columns = [column(1, &[4, 5]), column(8, &[1, 2]), column(9, &[1, 2])];
        columns.map(|column| column.to_bytes()).concat()
    };
    for (rule, number) in [("latitudes", 8), ("longitudes", 9)] {
        let group = Message::new().bytes(2, &overflow(number));
        add(
            &format!("{rule} that overflow"),
            block_file(of_groups(&[group], strings)),
        );
    }
    let mut single = |rule: &str, node: Message| {
        add(
            rule,
            block_file(of_groups(&[Message::new().message(1, node)], strings)),
        );
    };
    single("a node without id", Message::new().sint(8, 1).sint(9, 1));
    single(
        "a node with a key and no value",
        Message::new()
            .sint(1, 4)
            .sint(8, 1)
            .sint(9, 1)
            .packed_uint(2, &[1]),
    );
    single(
        "a node with two ids",
        Message::new().sint(1, 4).sint(1, 5).sint(8, 1).sint(9, 1),
    );
    single("a node with a key that is not there", {
        let node = Message::new().sint(1, 4).sint(8, 1).sint(9, 1);
        node.packed_uint(2, &[9]).packed_uint(3, &[1])
    });
}

fn ways_and_relations(add: Add) {
    let strings: &[&[u8]] = &[b"", b"key", b"value"];
    let mut object = |rule: &str, field: u32, message: Message| {
        let group = Message::new().message(field, message);
        add(rule, block_file(of_groups(&[group], strings)));
    };
    let way = || Message::new().varint(1, 5).packed_deltas(8, &[1, 2]);
    object(
        "a way without id",
        3,
        Message::new().packed_deltas(8, &[1, 2]),
    );
    object("a way with two ids", 3, way().varint(1, 6));
    object(
        "a relation with two ids",
        4,
        Message::new().varint(1, 5).varint(1, 6),
    );
    object(
        "a way with a value that is not there",
        3,
        way().packed_uint(2, &[1]).packed_uint(3, &[3]),
    );
    object(
        "a way of a user that is not there",
        3,
        way().message(4, Message::new().varint(5, 3)),
    );
    object(
        "a way with a key and no value",
        3,
        way().packed_uint(2, &[1]),
    );
    object(
        "a way with fewer places than nodes",
        3,
        way().packed_deltas(9, &[1]).packed_deltas(10, &[1]),
    );
    object(
        "a way with more places than nodes",
        3,
        way()
            .packed_deltas(9, &[1, 2, 3])
            .packed_deltas(10, &[1, 2, 3]),
    );
    object(
        "a way with fewer longitudes than latitudes",
        3,
        way().packed_deltas(9, &[1, 2]).packed_deltas(10, &[1]),
    );
    object(
        "a relation without id",
        4,
        Message::new().packed_deltas(9, &[1]),
    );
    let members = |roles: &[u64]| {
        let relation = Message::new().varint(1, 5).packed_uint(8, roles);
        relation.packed_deltas(9, &[1, 2]).packed_uint(10, &[0, 1])
    };
    object("a role that is not there", 4, members(&[1, 3]));
    let relation = || Message::new().varint(1, 5).packed_deltas(9, &[1, 2]);
    object(
        "members without kinds",
        4,
        relation().packed_uint(8, &[1, 1]),
    );
    object(
        "members without roles",
        4,
        relation().packed_uint(10, &[1, 1]),
    );
    object(
        "a member of kind 7",
        4,
        relation().packed_uint(8, &[1, 1]).packed_uint(10, &[0, 7]),
    );
}

fn blocks(add: Add) {
    let strings: &[&[u8]] = &[b"", b"key"];
    let group = || dense(&[4], &[1], &[1]);
    let with = |number: u32, value: u64| {
        let mut block = of_groups(&[group()], strings);
        block.extend(Message::new().varint(number, value).to_bytes());
        block_file(block)
    };
    add("two string tables", {
        let mut block = of_groups(&[group()], strings);
        let more = Message::new().bytes(1, b"more");
        block.extend(Message::new().message(1, more).to_bytes());
        block_file(block)
    });
    let many = |message: &[u8], times: usize| -> Vec<u8> { message.repeat(times) };
    add("more strings than a block can need", {
        let table = Message::new().bytes(1, &many(&[0x0a, 0], (1 << 22) + 1));
        let mut block = table.to_bytes();
        block.extend(Message::new().message(2, group()).to_bytes());
        block_file(block)
    });
    add("15 million ways without id", {
        let group = many(&[0x1a, 0], 15_000_000);
        block_file(Message::new().bytes(2, &group).to_bytes())
    });
    add("a granularity of 0", with(17, 0));
    add("a negative granularity", with(17, MINUS_ONE));
    add("a granularity past 32 bits", with(17, 1 << 32));
    add("a date_granularity of 0", with(18, 0));
    add("a negative date_granularity", with(18, MINUS_ONE));
    add("a block of garbage", block_file(vec![0xff; 100]));
    let wrong_type = Message::new().varint(2, 7).to_bytes();
    add("a group that is a number", block_file(wrong_type));
    add(
        "a string table that is a number",
        block_file(Message::new().varint(1, 7).to_bytes()),
    );
    let cut = |block: Vec<u8>| block[..block.len() - 1].to_vec();
    add(
        "a group that is cut off",
        block_file(cut(of_groups(&[group()], strings))),
    );
    for wire_type in [3, 4, 6, 7] {
        let block = Message::new().bytes(2, &[2 << 3 | wire_type]).to_bytes();
        add(
            &format!("a group of wire type {wire_type}"),
            block_file(block),
        );
    }
    add(
        "a group in a field of number 0",
        block_file(Message::new().bytes(2, &[2, 0]).to_bytes()),
    );
    // Messages within messages. Each is a byte shorter than its length says.
    let mut nested = vec![0xff; 10];
    for _ in 0..40 {
        nested = Message::new().bytes(2, &nested).to_bytes();
        nested.pop();
    }
    add("nested garbage", block_file(nested));
}

/// Errors that only some commands read.
fn contents(add: Add) {
    let way = Message::new().varint(1, 5).packed_deltas(8, &[1, 2]);
    let tagged = way.packed_uint(2, &[1]).packed_uint(3, &[2]);
    let group = Message::new().message(3, tagged);
    add(
        "strings that are no UTF-8",
        block_file(of_groups(&[group], &[b"", b"\xff\xfe", b"\xc3"])),
    );
}
