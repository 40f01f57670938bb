//! Properties that must hold for any bytes. Each is a function that panics if it does not hold. `tests/properties.rs`
//! generates random bytes and shrinks counterexamples, `fuzz/` searches for inputs guided by coverage.

use super::craft::{self, Layout, Shape, varint};
use super::{Kind, Object, decode, known, mixed_objects};
use arbitrary::{Arbitrary, Unstructured};
use pbfhogg::FormatError;
use pbfhogg::OutputOptions;
use pbfhogg::commands::{check, sort};
use pbfhogg::unstable::formats::{read_change_files, read_osm_file};
use pbfhogg::unstable::geometry::{AreaIndex, CornerOrder};
use pbfhogg::unstable::osm::{ObjectExpression, ObjectFilter};
use pbfhogg::unstable::pbf::{
    Blob, BlobEntry, BlobHeader, BlobKind, Block, Compression, Compressor, Decompressor, Element,
    IdDirectory, IdSection, IdSectionBytes, IdTableBuilder, Info, InfoFields, TableBlob, TableHost,
    Toc, TocReader, clean_block, decode_blob_index, encode_blob_index, encode_toc,
    encode_toc_frames, parse_header, scan_order, scan_payload, scan_places,
};
use pbfhogg::unstable::region_file::{read_config, read_shape};
use pbfhogg::{Context, ElementReader, Error, Input, Location, ObjectKind};
use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A property, and valid inputs from which a search starts.
pub struct Property {
    /// The name of the property and of its fuzz target.
    pub name: &'static str,
    /// Panics if the property does not hold for some bytes.
    pub holds: fn(&[u8]),
    /// Valid inputs.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// Every property.
pub const ALL: [Property; 16] = [
    Property {
        name: "frame",
        holds: frame,
        seeds: frames,
    },
    Property {
        name: "header",
        holds: header,
        seeds: headers,
    },
    Property {
        name: "block",
        holds: block,
        seeds: blocks,
    },
    Property {
        name: "blob_index",
        holds: blob_index,
        seeds: blob_indexes,
    },
    Property {
        name: "table",
        holds: table,
        seeds: tables,
    },
    Property {
        name: "hosts",
        holds: hosts,
        seeds: frames_of_hosts,
    },
    Property {
        name: "id_table",
        holds: id_table,
        seeds: id_tables,
    },
    Property {
        name: "codec",
        holds: codec,
        seeds: blocks,
    },
    Property {
        name: "change_file",
        holds: change_file,
        seeds: change_files,
    },
    Property {
        name: "osm_text",
        holds: osm_text,
        seeds: osm_texts,
    },
    Property {
        name: "o5m",
        holds: o5m,
        seeds: o5m_files,
    },
    Property {
        name: "tag_expression",
        holds: tag_expression,
        seeds: tag_expressions,
    },
    Property {
        name: "region_file",
        holds: region_file,
        seeds: region_files,
    },
    Property {
        name: "extract_config",
        holds: extract_config,
        seeds: extract_configs,
    },
    Property {
        name: "objects",
        holds: objects,
        seeds: || vec![(0..=255).cycle().take(3000).collect()],
    },
    Property {
        name: "whole_file",
        holds: whole_file,
        seeds: whole_files,
    },
];

// Frames and what they hold.

/// A BlobHeader and a Blob are parsed or rejected. The values of parsed ones are within the limits.
fn frame(bytes: &[u8]) {
    let Some((prefix, rest)) = bytes.split_first_chunk::<4>() else {
        return;
    };
    let Ok(len) = BlobHeader::len_from_prefix(*prefix) else {
        return;
    };
    assert!(len <= 64 * 1024);
    let Some((header, blob)) = rest.split_at_checked(len as usize) else {
        return;
    };
    if let Ok(header) = BlobHeader::parse(header) {
        assert!(header.blob_len <= 32 << 20);
    }
    if let Ok(blob) = Blob::parse(blob) {
        assert!(blob.payload_len <= 32 << 20);
        if let Ok(payload) = Decompressor::default().payload(&blob) {
            assert_eq!(payload.len(), blob.payload_len as usize);
        }
    }
}

fn frames() -> Vec<Vec<u8>> {
    let block = craft::block(&mixed_objects(), &Shape::USUAL);
    let blobs = [
        craft::zlib_blob(&block),
        craft::raw_blob(&block),
        craft::lz4_blob(&block),
        craft::zstd_blob(&block),
    ];
    blobs
        .iter()
        .map(|blob| craft::frame("OSMData", blob))
        .collect()
}

/// A header that can be parsed is unchanged after it is encoded and parsed again.
fn header(bytes: &[u8]) {
    let Ok((header, about_toc)) = parse_header(bytes) else {
        return;
    };
    if let Some(table) = about_toc.toc {
        let _ = Toc::parse(table, 100, 1 << 40);
    }
    let mut written = Vec::new();
    header.encode(&mut written);
    let (again, _) = parse_header(&written).expect("what was written can be read");
    assert_eq!(again, header);
}

fn headers() -> Vec<Vec<u8>> {
    vec![
        craft::header_payload(
            &["OsmSchema-V0.6", "DenseNodes"],
            &["Sort.Type_then_ID", "LocationsOnWays"],
        ),
        craft::Message::new()
            .message(
                1,
                craft::Message::new()
                    .sint(1, -1)
                    .sint(2, 2)
                    .sint(3, 3)
                    .sint(4, -4),
            )
            .bytes(4, b"HistoricalInformation")
            .bytes(17, b"source")
            .varint(32, 1_700_000_000)
            .varint(33, 4711)
            .bytes(34, b"https://example.org/")
            .to_bytes(),
    ]
}

/// Scanning and visiting a valid block find the same number of objects. A cleaned block has the same range of ids.
fn block(payload: &[u8]) {
    let mut entry = BlobEntry::default();
    let scanned = scan_payload(payload, &mut entry);
    let mut count = 0u64;
    let visited = Block::parse(payload).and_then(|block| {
        block.try_for_each(|element| {
            count += 1;
            let _ = converted(&element);
            Ok::<(), FormatError>(())
        })
    });
    places(payload);
    if scanned.is_err() || visited.is_err() {
        return;
    }
    assert_eq!(count, u64::from(entry.count), "objects");
    let mut cleaned = Vec::new();
    if clean_block(payload, InfoFields::ALL, &mut cleaned).is_ok() {
        let mut after = BlobEntry::default();
        scan_payload(&cleaned, &mut after).expect("a cleaned block can be read");
        assert_eq!(
            (after.count, after.min_id, after.max_id, after.kinds),
            (entry.count, entry.min_id, entry.max_id, entry.kinds)
        );
    }
}

/// A scan for locations fails if a scan of the order or the parse fails. It finds the same facts as the former, and the
/// nodes that a visit finds.
fn places(payload: &[u8]) {
    let (mut ordered, mut entry) = (BlobEntry::default(), BlobEntry::default());
    let order = scan_order(payload, &mut ordered);
    let mut found = Vec::new();
    let scanned = scan_places(payload, &mut entry, |ids, locations| {
        found.extend(ids.iter().copied().zip(locations.iter().copied()));
        Ok(())
    });
    let block = Block::parse(payload);
    assert_eq!(scanned.is_ok(), order.is_ok() && block.is_ok());
    if let (Ok(()), Ok(block)) = (scanned, block) {
        assert_eq!(entry, ordered);
        // A scan gives no location if it does not fit, or if the node is deleted.
        let fits = |place: &Location| {
            [place.lat_e7(), place.lon_e7()]
                .iter()
                .all(|e7| ![i32::MIN, i32::MAX].contains(e7))
        };
        let mut nodes = Vec::new();
        let visited = block.try_for_each(|element| {
            if let Element::Node(node) = element {
                let is_visible = node.info().visible;
                let place = node.location().filter(|place| is_visible && fits(place));
                nodes.push((node.id(), place));
            }
            Ok::<(), FormatError>(())
        });
        let found = found
            .into_iter()
            .map(|(id, place)| (id, place.filter(fits)));
        assert!(visited.is_err() || found.eq(nodes), "nodes of {entry:?}");
    }
}

fn blocks() -> Vec<Vec<u8>> {
    let objects = known(mixed_objects());
    let dense = Layout::ALL.into_iter().map(|layout| {
        craft::block(
            &objects,
            &Shape {
                layout,
                history: true,
                ..Shape::USUAL
            },
        )
    });
    let plain = craft::block(
        &objects,
        &Shape {
            dense: false,
            ..Shape::USUAL
        },
    );
    dense
        .chain([plain, craft::block(&mixed_objects(), &Shape::USUAL)])
        .collect()
}

/// An index that can be decoded is unchanged after it is encoded and decoded again.
fn blob_index(bytes: &[u8]) {
    let mut entry = BlobEntry::default();
    if decode_blob_index(bytes, &mut entry).is_none() {
        return;
    }
    if let Some(written) = encode_blob_index(&entry) {
        let mut again = BlobEntry::default();
        decode_blob_index(&written, &mut again).expect("what was written can be read");
        assert_eq!(again, entry);
    }
}

fn blob_indexes() -> Vec<Vec<u8>> {
    let block = craft::block(
        &[super::node(3, 4, 5, &[]), super::node(7, 8, 9, &[])],
        &Shape::USUAL,
    );
    let mut entry = BlobEntry::default();
    scan_payload(&block, &mut entry).expect("a good block");
    encode_blob_index(&entry)
        .map(|bytes| bytes.to_vec())
        .into_iter()
        .collect()
}

/// A table of contents that can be parsed is unchanged after it is encoded and parsed again. A valid checksum is added
/// to the input, since hardly any table could be parsed otherwise.
fn table(bytes: &[u8]) {
    let mut whole = bytes.to_vec();
    whole.extend(crc32c::crc32c(bytes).to_le_bytes());
    let Ok(table) = Toc::parse(&whole, 100, 1 << 20) else {
        return;
    };
    if table.data_end > 1 << 20 {
        return;
    }
    let written = encode_toc(&table, 100);
    let again = Toc::parse(&written, 100, 1 << 20).expect("what was written can be read");
    assert_eq!(again, table);
}

fn tables() -> Vec<Vec<u8>> {
    let mut entries = Vec::new();
    let mut offset = 100;
    for block in blocks() {
        let mut entry = BlobEntry::default();
        (entry.offset, entry.frame_len, entry.header_len) = (offset, 500, 17);
        entry.number = entries.len() as u32 + 1;
        scan_payload(&block, &mut entry).expect("a good block");
        offset = entry.end();
        entries.push(entry);
    }
    let table = Toc {
        data_end: offset,
        entries,
        ..Toc::default()
    };
    let mut bytes = encode_toc(&table, 100);
    bytes.truncate(bytes.len() - 4);
    vec![bytes]
}

/// The blobs with objects among the frames of a table of contents follow each other, and a walk over the frames knows
/// them as such. A frame that is not whole is none of them.
fn hosts(bytes: &[u8]) {
    let mut reader = TocReader::new(7);
    let Ok(used) = reader.add(bytes) else {
        return;
    };
    let Ok((_, entries)) = reader.finish() else {
        return;
    };
    let mut end = 7;
    for entry in &entries {
        assert!(entry.offset >= end && entry.end() <= 7 + used as u64);
        let start = (entry.offset - 7) as usize + entry.header_len as usize;
        let body = &bytes[start..(entry.end() - 7) as usize];
        assert_eq!(TableBlob::of(body), TableBlob::Host);
        assert!(entry.count > 0);
        end = entry.end();
    }
}

fn frames_of_hosts() -> Vec<Vec<u8>> {
    let host = |payload: Vec<u8>| {
        let mut entry = BlobEntry::default();
        scan_payload(&payload, &mut entry).expect("a good block");
        TableHost { payload, entry }
    };
    let of_kinds = blocks().into_iter().map(host);
    let of_kinds: Vec<_> = of_kinds
        .filter(|host| host.entry.kinds.single().is_some() && host.entry.count > 0)
        .collect();
    let encode = |hosts: &[TableHost]| {
        encode_toc_frames(b"some table", 7, hosts, false).expect("good hosts")
    };
    let one = of_kinds
        .iter()
        .map(|host| encode(std::slice::from_ref(host)));
    one.chain([encode(&of_kinds), encode(&[])]).collect()
}

/// A directory of a table of ids that can be decoded is unchanged after it is encoded and decoded again; a valid checksum
/// is added to the input. A section that can be decoded has ranges in order, and the blobs of each in order.
fn id_table(bytes: &[u8]) {
    let mut whole = bytes.to_vec();
    whole.extend(crc32c::crc32c(bytes).to_le_bytes());
    if let Ok(directory) = IdDirectory::decode(&whole) {
        let again = IdDirectory::decode(&directory.encode());
        assert_eq!(again.expect("what was written can be read"), directory);
    }
    let Some((last, bytes)) = bytes.split_first_chunk::<8>() else {
        return;
    };
    let section = IdSectionBytes {
        kind: ObjectKind::Node,
        first: 0,
        last: u64::from_le_bytes(*last),
        bytes: bytes.to_vec(),
    };
    let mut ids = 0;
    let read = section.decode(|range| {
        assert!(ids <= range.first && range.first <= range.last);
        assert!(range.blobs.is_sorted_by(|a, b| a < b));
        ids = range.last;
        Ok(())
    });
    assert!(read.is_err() || ids == section.last);
}

fn id_tables() -> Vec<Vec<u8>> {
    let mut builder = IdTableBuilder::default();
    for rank in 0..500 {
        let blob = u32::from(rank % 7 == 0) * 3;
        builder.add(ObjectKind::Node, rank * rank, blob);
    }
    let sections = builder.finish().into_iter().map(|section| IdSection {
        kind: section.kind,
        first: section.first,
        last: section.last,
        place: 100..100 + section.bytes.len() as u64,
    });
    let mut bytes = IdDirectory::new(99, sections.collect()).encode();
    bytes.truncate(bytes.len() - 4);
    // A range of the ids 0 to 5 in blobs 2 and 3, and one of the ids 7 to 9 in blob 1.
    let section = [&9u64.to_le_bytes()[..], &[0, 5, 2, 2, 0], &[2, 2, 1, 1]].concat();
    vec![bytes, section]
}

const CODECS: [(&str, u32); 3] = [("zlib", 3), ("lz4", 6), ("zstd", 7)];

thread_local! {
    /// Used for one blob after the other, as workers do.
    static DECOMPRESSOR: RefCell<Decompressor> = RefCell::default();
    static COMPRESSORS: RefCell<[Compressor; 3]> = RefCell::new(CODECS.map(|(name, _)| {
        let compression: Compression = name.parse().expect(name);
        Compressor::new(compression)
    }));
}

/// Compressed bytes are unchanged after decompression. Bytes that were not compressed are rejected, or decompress to as
/// many bytes as announced.
fn codec(bytes: &[u8]) {
    DECOMPRESSOR.with_borrow_mut(|decompressor| {
        for (number, (name, field)) in CODECS.into_iter().enumerate() {
            for raw_size in [bytes.len() as u64, 100, 1 << 20] {
                let blob = craft::Message::new()
                    .varint(2, raw_size)
                    .bytes(field, bytes)
                    .to_bytes();
                if let Ok(blob) = Blob::parse(&blob)
                    && let Ok(payload) = decompressor.payload(&blob)
                {
                    assert_eq!(payload.len() as u64, raw_size);
                }
            }
            let mut frame = Vec::new();
            let compressed = COMPRESSORS.with_borrow_mut(|compressors| {
                compressors[number].frame(BlobKind::Data, None, bytes, &mut frame)
            });
            if compressed.is_err() {
                continue;
            }
            let (prefix, rest) = frame.split_first_chunk::<4>().expect("a prefix");
            let blob = &rest[u32::from_be_bytes(*prefix) as usize..];
            let blob = Blob::parse(blob).expect("what was written can be read");
            assert_eq!(decompressor.payload(&blob).expect(name), bytes);
        }
    });
}

// Text.

/// A temporary file with the given bytes, in memory if `/dev/shm` exists.
struct TemporaryFile(tempfile::NamedTempFile);

impl TemporaryFile {
    fn new(bytes: &[u8], suffix: &str) -> Self {
        let memory = Path::new("/dev/shm");
        let mut builder = tempfile::Builder::new();
        builder.suffix(suffix);
        let file = if memory.is_dir() {
            builder.tempfile_in(memory)
        } else {
            builder.tempfile()
        };
        let mut file = file.expect("a temporary file");
        file.write_all(bytes)
            .expect("the temporary file is written");
        Self(file)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

/// The value of a result. An internal error fails the test, other errors do not.
fn sound<T>(result: pbfhogg::Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            assert!(!matches!(error, Error::Internal(_)), "{error}");
            None
        }
    }
}

fn change_file(bytes: &[u8]) {
    let file = TemporaryFile::new(bytes, ".osc");
    sound(read_change_files(&[file.path()], &Context::new(1)));
}

fn change_files() -> Vec<Vec<u8>> {
    let text = "<?xml version='1.0'?><osmChange version='0.6' generator='x'>\n<create><node id='1' version='1' \
        timestamp='2026-01-01T00:00:00Z' changeset='1' uid='1' user='&lt;a&#10;' lat='1.5' lon='-1'>\
        <tag k='a' v='b'/></node></create><modify><way id='-2' version='3'><nd ref='1' lat='1' lon='2'/></way></modify>\
        <delete><relation id='3'><member type='way' ref='2' role=''/></relation></delete><!-- x --></osmChange>";
    vec![text.as_bytes().to_vec()]
}

fn osm_text(bytes: &[u8]) {
    let file = TemporaryFile::new(bytes, ".osm");
    sound(read_osm_file(&Input::open(file.path()).unwrap()));
}

fn osm_texts() -> Vec<Vec<u8>> {
    let xml = "<osm version='0.6'><bounds minlat='1' minlon='2' maxlat='3' maxlon='4'/><node id='1' lat='1' lon='1' \
        visible='false'/><way id='1' action='delete'><nd ref='1'/><tag k='k' v='&amp;'/></way></osm>";
    let opl = "n1 v1 dV c1 t2026-01-01T00:00:00Z i1 ua%20%b Ta=b,c=%3d% x1.5 y-2\nw-1 v2 Nn1x1y2,n2\nr3 Mw1@outer,n2@";
    vec![xml.as_bytes().to_vec(), opl.as_bytes().to_vec()]
}

/// Any bytes behind the start of an o5m or o5c file are objects, or an error that says where.
fn o5m(bytes: &[u8]) {
    for (start, suffix) in [(b"\xff\xe0\x04o5m2", ".o5m"), (b"\xff\xe0\x04o5c2", ".o5c")] {
        let file = TemporaryFile::new(&[start, bytes].concat(), suffix);
        let read = match suffix {
            ".o5m" => read_osm_file(&Input::open(file.path()).unwrap()),
            _ => read_change_files(&[file.path()], &Context::new(1)),
        };
        if let Err(error) = &read {
            let message = error.to_string();
            assert!(
                message.contains(": byte ") && !message.contains('\n'),
                "{message}"
            );
        }
        sound(read);
    }
}

/// Each kind of dataset: bounds, time, nodes with and without metadata, a deletion, a way, a relation, marks.
fn o5m_files() -> Vec<Vec<u8>> {
    let parts: [&[u8]; 12] = [
        b"\xdb\x10\x80\xb4\x89\x13\x80\xda\xc4\x09\x80\xe8\x92\x26\x80\x8e\xce\x1c",
        b"\xdc\x05\x80\x84\xdf\xe0\x0b\xff",
        b"\x10\x1d\x02\x02\x80\x84\xdf\xe0\x0b\x0a\x00\x07\x00bob\x00\x80\xc8\xce\xb4\x0d\x80\x87\xa7\x0e\x00a\x00b\x00",
        b"\x10\x0c\x02\x02\x00\x00\x01\x80\xc8\xce\xb4\x0d\x01\x02",
        b"\x10\x05\x02\x00\x00\x00\x01",
        b"\x10\x02\x02\x00",
        b"\x10\x01\x02",
        b"\xff\x11\x0a\x02\x00\x02\x02\x02\x00a\x00b\x00",
        b"\xff\x12\x13\x02\x00\x0b\x02\x000\x00\x02\x001x\x00\x00\x02\x00a\x00b\x00",
        b"\xee\x03abc\xef\x03abc",
        b"\xf1\x77\x02zz",
        b"\xfe",
    ];
    vec![parts.concat()]
}

/// An expression that can be parsed can be evaluated.
fn tag_expression(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(expressions) = ObjectExpression::parse_lines(text, ObjectExpression::parse) else {
        return;
    };
    let filter = ObjectFilter::new(expressions);
    for key in ["highway", "", "a*b", text] {
        for expression in filter.with_key(key) {
            let _ = expression.matches_value(text);
        }
    }
}

fn tag_expressions() -> Vec<Vec<u8>> {
    let text = "nw/highway=primary,secondary\nr/type!=route\n*name*\n# a comment\nwr/addr:*=1,2*\nhighway\n\
        @version>1\nw/a=b&c~^d.*[e]|f$&g!~h&@uid=5\nname=a\\&b=c & d\nw/shop @timestamp<=2024-02 @user!=a,b\n@uid=5 @changeset!=1,2\n\
        n/!*\n!a,b&c=d&!e~f @id<-3";
    vec![text.as_bytes().to_vec()]
}

/// A region that can be read can be queried with locations.
fn region_file(bytes: &[u8]) {
    for suffix in [".poly", ".geojson"] {
        let file = TemporaryFile::new(bytes, suffix);
        if let Some(shape) = sound(read_shape(file.path(), None)) {
            let areas = AreaIndex::new(std::slice::from_ref(&shape));
            let mut locator = areas.locator();
            let envelope = shape.envelope();
            for (lat, lon) in [
                (0, 0),
                (envelope.min_lat_e7, envelope.min_lon_e7),
                (envelope.max_lat_e7, envelope.max_lon_e7),
            ] {
                locator.at(lat, lon, &mut Vec::new());
            }
        }
    }
}

fn region_files() -> Vec<Vec<u8>> {
    let poly =
        "name\n1\n 0 0\n 1 0\n 1 1\n 0 0\nEND\n!2\n 0.1 0.05\n 0.2 0.1\n 0.2 0.15\nEND\nEND\n";
    let json = r#"{"type":"FeatureCollection","features":[{"type":"Feature","properties":{},"geometry":{"type":"MultiPolygon","coordinates":[[[[0,0],[1,0],[1,1],[0,0]],[[0.1,0.05],[0.2,0.1],[0.2,0.15],[0.1,0.05]]]]}}]}"#;
    vec![poly.as_bytes().to_vec(), json.as_bytes().to_vec()]
}

fn extract_config(bytes: &[u8]) {
    let file = TemporaryFile::new(bytes, ".json");
    sound(read_config(file.path(), CornerOrder::Southwest));
}

fn extract_configs() -> Vec<Vec<u8>> {
    let text = r#"{"directory":"/tmp","extracts":[{"output":"a.osm.pbf","bbox":[0,0,1,1]},{"output":"b.osm.pbf","description":"b","polygon":[[[0,0],[1,0],[1,1],[0,0]]]}]}"#;
    vec![text.as_bytes().to_vec()]
}

// Objects.

/// Objects generated from bytes.
fn drawn_objects(from: &mut Unstructured<'_>, shape: &Shape) -> arbitrary::Result<Vec<Object>> {
    let count = from.int_in_range(0..=30)?;
    (0..count).map(|_| drawn_object(from, shape)).collect()
}

fn drawn_object(from: &mut Unstructured<'_>, shape: &Shape) -> arbitrary::Result<Object> {
    let kind = *from.choose(&[Kind::Node, Kind::Way, Kind::Relation])?;
    let mut object = Object::new(kind, drawn_id(from)?);
    if from.arbitrary()? {
        let unit = (shape.date_granularity / 1000).max(1);
        object.version = Some(from.int_in_range(1..=i64::from(i32::MAX))?);
        object.timestamp = Some(from.int_in_range(1..=1 << 33)? * unit);
        object.changeset = Some(from.int_in_range(1..=1 << 40)?);
    }
    if from.arbitrary()? {
        object.user = Some(format!("u{}", drawn_string(from)?));
        object.uid = Some(from.int_in_range(1..=i64::from(i32::MAX))?);
    }
    object.visible = from.ratio(3, 4)?;
    let tags = from.int_in_range(0..=4)?;
    object.tags = (0..tags)
        .map(|_| Ok((format!("k{}", drawn_string(from)?), drawn_string(from)?)))
        .collect::<arbitrary::Result<_>>()?;
    match kind {
        Kind::Node => (object.lat_nano, object.lon_nano) = drawn_place(from, shape)?,
        Kind::Way => {
            object.refs = (0..from.int_in_range(0..=6)?)
                .map(|_| drawn_id(from))
                .collect::<arbitrary::Result<_>>()?;
            if from.ratio(1, 4)? {
                object.locations = object
                    .refs
                    .iter()
                    .map(|_| drawn_place(from, shape))
                    .collect::<arbitrary::Result<_>>()?;
            }
        }
        Kind::Relation => {
            for _ in 0..from.int_in_range(0..=6)? {
                let kind = *from.choose(&[Kind::Node, Kind::Way, Kind::Relation])?;
                object
                    .members
                    .push((kind, drawn_id(from)?, drawn_string(from)?));
            }
        }
    }
    Ok(object)
}

fn drawn_id(from: &mut Unstructured<'_>) -> arbitrary::Result<i64> {
    match from.int_in_range(0..=3)? {
        0 => from.arbitrary(),
        1 => Ok(*from.choose(&[0, -1, 1, i64::MAX, i64::MIN, i64::MIN + 1, 1 << 62])?),
        _ => from.int_in_range(1..=1000),
    }
}

fn drawn_string(from: &mut Unstructured<'_>) -> arbitrary::Result<String> {
    if from.arbitrary()? {
        Ok((*from.choose(&["", "a", "name", "ü", "\u{1f427}\n%"])?).to_owned())
    } else {
        <&str>::arbitrary(from).map(str::to_owned)
    }
}

/// A latitude and a longitude in nanodegrees that the units of the shape can express.
fn drawn_place(from: &mut Unstructured<'_>, shape: &Shape) -> arbitrary::Result<(i64, i64)> {
    let mut degrees = |most: i64, offset: i64| {
        let units = most * 1_000_000_000 / shape.granularity;
        Ok(offset + from.int_in_range(-units..=units)? * shape.granularity)
    };
    Ok((
        degrees(80, shape.lat_offset)?,
        degrees(170, shape.lon_offset)?,
    ))
}

fn drawn_shape(from: &mut Unstructured<'_>) -> arbitrary::Result<Shape> {
    Ok(Shape {
        layout: *from.choose(&Layout::ALL)?,
        granularity: *from.choose(&[100, 1, 7, 1000])?,
        lat_offset: *from.choose(&[0, 13, -48_000_000_900])?,
        lon_offset: *from.choose(&[0, -13, 7_000_000_900])?,
        date_granularity: *from.choose(&[1000, 1, 60_000])?,
        dense: from.arbitrary()?,
        absent: *from.choose(&[0, -1])?,
        history: from.arbitrary()?,
    })
}

/// Objects encoded by the independent encoder are decoded by the crate and by the independent decoder.
fn objects(bytes: &[u8]) {
    let mut from = Unstructured::new(bytes);
    let Ok(shape) = drawn_shape(&mut from) else {
        return;
    };
    let Ok(objects) = drawn_objects(&mut from, &shape) else {
        return;
    };
    let payload = craft::block(&objects, &shape);
    let plain = decode::block(&payload);
    assert_eq!(
        plain, objects,
        "the plain decoder and the plain writer differ"
    );
    let mut found = Vec::new();
    let block = Block::parse(&payload).expect("a good block");
    let visited = block.try_for_each(|element| {
        found.push(converted(&element));
        Ok::<(), FormatError>(())
    });
    visited.expect("a good block");
    assert_eq!(found.len(), objects.len());
    for (found, made) in found.iter().zip(&objects) {
        assert_eq!(found, made);
    }
    let mut entry = BlobEntry::default();
    scan_payload(&payload, &mut entry).expect("a good block");
    assert_eq!(entry.count as usize, objects.len());
}

/// A whole file is read or rejected without an internal error, by the reader and by commands that read all of it.
fn whole_file(bytes: &[u8]) {
    let file = TemporaryFile::new(bytes, ".osm.pbf");
    let ctx = Context::new(1);
    if let Some(reader) = sound(ElementReader::from_path(file.path())) {
        sound(reader.for_each(|element| drop(converted(&element))));
    }
    let options = check::Options::new(file.path())
        .full(true)
        .relations(true)
        .index(true)
        .max_listed(5);
    sound(check::run(&options, &ctx));
    let mut sorted: PathBuf = file.path().to_owned();
    sorted.set_extension("sorted");
    let output = OutputOptions::file(sorted.clone()).overwrite();
    let options = sort::Options::new(vec![file.path().to_owned()], output);
    if sound(sort::run(&options, &ctx)).is_some() {
        let reader = ElementReader::from_path(&sorted).expect("what was sorted can be read");
        reader
            .for_each(|element| drop(converted(&element)))
            .expect("what was sorted can be read");
        std::fs::remove_file(&sorted).expect("the output is there");
    }
}

fn whole_files() -> Vec<Vec<u8>> {
    let objects = known(mixed_objects());
    let usual = craft::block(
        &objects,
        &Shape {
            history: true,
            ..Shape::USUAL
        },
    );
    let raw = [
        craft::plain_file(&[]),
        craft::frame("OSMData", &craft::raw_blob(&usual)),
    ]
    .concat();
    let unknown = craft::frame_of(
        &[&[0x0a, 3][..], b"Odd", &[0x18], &varint(2)].concat(),
        &[1, 2],
    );
    vec![
        craft::plain_file(&[usual]),
        raw,
        [craft::plain_file(&[]), unknown].concat(),
    ]
}

// Conversion.

/// Converts an element to the form that the independent decoder returns.
pub fn converted(element: &Element<'_>) -> Object {
    let kind = match element {
        Element::Node(_) => Kind::Node,
        Element::Way(_) => Kind::Way,
        Element::Relation(_) => Kind::Relation,
    };
    let mut object = Object::new(kind, element.id());
    let take_info = |object: &mut Object, info: Info<'_>| {
        object.version = info.version.map(i64::from);
        object.timestamp = info.timestamp;
        object.changeset = info.changeset;
        object.uid = info.uid.map(i64::from);
        object.user = info.user.map(str::to_owned);
        object.visible = info.visible;
    };
    match element {
        Element::Node(node) => {
            take_info(&mut object, node.info());
            (object.lat_nano, object.lon_nano) = (node.nano_lat(), node.nano_lon());
            object.tags = node
                .tags()
                .map(|(key, value)| (key.into(), value.into()))
                .collect();
        }
        Element::Way(way) => {
            take_info(&mut object, way.info());
            object.tags = way
                .tags()
                .map(|(key, value)| (key.into(), value.into()))
                .collect();
            object.refs = way.refs().collect();
            object.locations = way.nano_locations().collect();
        }
        Element::Relation(relation) => {
            take_info(&mut object, relation.info());
            object.tags = relation
                .tags()
                .map(|(key, value)| (key.into(), value.into()))
                .collect();
            let kinds = [Kind::Node, Kind::Way, Kind::Relation];
            let members = relation.members();
            object.members = members
                .map(|member| (kinds[member.kind as usize], member.id, member.role.into()))
                .collect();
        }
    }
    object
}
