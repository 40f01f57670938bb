//! Files of text and of o5m that repeat one thing, compressed to less than 1 MB. An object has just less than the 24 MB
//! of text, or 8 MB of o5m, that are read.

use super::craft::{varint, zigzag};
use super::hostile_files::{HostileFile, file};
use flate2::write::GzEncoder;
use std::io::Write;

/// All files.
pub(super) fn files() -> Vec<HostileFile> {
    let mut files = elements();
    files.extend(attributes());
    files.extend(changes());
    files.extend(changesets());
    files.extend(lines());
    files.extend(o5m());
    files
}

fn gzip(parts: &[&[u8]]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    for part in parts {
        encoder.write_all(part).expect("gzip");
    }
    encoder.finish().expect("gzip")
}

/// A document with a part again and again between a start and an end.
fn document(root: &str, start: &str, part: &str, count: usize, end: &str) -> Vec<u8> {
    let start = format!("<{root} version=\"0.6\">{start}");
    let end = format!("{end}</{root}>");
    let part = part.repeat(count);
    gzip(&[start.as_bytes(), part.as_bytes(), end.as_bytes()])
}

fn osm(start: &str, part: &str, count: usize, end: &str) -> Vec<u8> {
    document("osm", start, part, count, end)
}

const NODES: &str = "<node id=\"1\" version=\"1\" lat=\"0\" lon=\"0\"/><node id=\"2\" version=\"1\" lat=\"0\" lon=\"1\"/>";

fn elements() -> Vec<HostileFile> {
    vec![
        file("elements.osm.gz", 5_000_000, |count| {
            osm("", "<node id=\"1\" lat=\"0\" lon=\"0\"/>", count, "")
        }),
        file("elements-without-attributes.osm.gz", 10_000_000, |count| {
            osm("", "<node/>", count, "")
        }),
        file("tags.osm.gz", 1_250_000, |count| {
            let start = "<node id=\"1\" lat=\"0\" lon=\"0\">";
            osm(start, "<tag k=\"k\" v=\"v\"/>", count, "</node>")
        }),
        file("references.osm.gz", 1_800_000, |count| {
            osm(
                &format!("{NODES}<way id=\"1\">"),
                "<nd ref=\"1\"/>",
                count,
                "</way>",
            )
        }),
        file("members.osm.gz", 650_000, |count| {
            let member = "<member type=\"node\" ref=\"1\" role=\"\"/>";
            osm(
                &format!("{NODES}<relation id=\"1\">"),
                member,
                count,
                "</relation>",
            )
        }),
        file("nested-elements.osm.gz", 3_000_000, |count| {
            osm(NODES, "<a>", count, &"</a>".repeat(count))
        }),
        file("comments.osm.gz", 3_300_000, |count| {
            osm(NODES, "<!---->", count, "")
        }),
        file("spaces.osm.gz", 23_000_000, |count| {
            osm(NODES, " ", count, "")
        }),
        file("remarks.osm.gz", 5_000_000, |count| {
            osm(NODES, "<remark>r</remark>", count, "")
        }),
        file("bounds.osm.gz", 440_000, |count| {
            let bounds = "<bounds minlat=\"0\" minlon=\"0\" maxlat=\"1\" maxlon=\"1\"/>";
            osm("", bounds, count, NODES)
        }),
    ]
}

fn attributes() -> Vec<HostileFile> {
    vec![
        file("attributes.osm.gz", 3_900_000, |count| {
            osm(
                "<node id=\"1\" lat=\"0\" lon=\"0\" ",
                "a=\"b\" ",
                count,
                "/>",
            )
        }),
        file("attributes-of-the-root.osm.gz", 3_900_000, |count| {
            let root = format!("<osm version=\"0.6\" {}>", "a=\"b\" ".repeat(count));
            gzip(&[root.as_bytes(), NODES.as_bytes(), b"</osm>"])
        }),
        file("long-attribute.osm.gz", 23_000_000, |count| {
            osm(
                "<node id=\"1\" lat=\"0\" lon=\"0\"><tag k=\"k\" v=\"",
                "v",
                count,
                "\"/></node>",
            )
        }),
        file("long-id.osm.gz", 23_000_000, |count| {
            osm("<node id=\"", "1", count, "\"/>")
        }),
        file("entities.osm.gz", 4_600_000, |count| {
            let start = "<node id=\"1\" lat=\"0\" lon=\"0\"><tag k=\"k\" v=\"";
            osm(start, "&amp;", count, "\"/></node>")
        }),
        file("nested-entities.osm", 10, |_| {
            let mut text =
                "<?xml version=\"1.0\"?><!DOCTYPE osm [<!ENTITY a0 \"aaaaaaaaaa\">".to_owned();
            for step in 1..12 {
                let inner = format!("&a{};", step - 1).repeat(10);
                text += &format!("<!ENTITY a{step} \"{inner}\">");
            }
            let node = "<node id=\"1\" lat=\"0\" lon=\"0\"><tag k=\"k\" v=\"&a11;\"/></node>";
            (text + "]><osm version=\"0.6\">" + node + "</osm>").into_bytes()
        }),
    ]
}

fn changes() -> Vec<HostileFile> {
    const NODE: &str = "<node id=\"1\" version=\"1\" lat=\"0\" lon=\"0\"/>";
    vec![
        file("blocks-of-changes.osc.gz", 1_400_000, |count| {
            document("osmChange", "", "<create></create>", count, "")
        }),
        file("blocks-of-a-change.osc.gz", 1_000_000, |count| {
            document(
                "osmChange",
                "",
                &format!("<modify>{NODE}</modify>"),
                count,
                "",
            )
        }),
        file("changes-of-a-node.osc.gz", 4_000_000, |count| {
            document("osmChange", "<modify>", NODE, count, "</modify>")
        }),
        file("deletions-of-a-way.osc.gz", 5_000_000, |count| {
            document(
                "osmChange",
                "<delete>",
                "<way id=\"1\"/>",
                count,
                "</delete>",
            )
        }),
    ]
}

fn changesets() -> Vec<HostileFile> {
    const START: &str = "<changeset id=\"1\" created_at=\"2020-01-01T00:00:00Z\" open=\"true\">";
    vec![
        file("changesets.osm.gz", 2_000_000, |count| {
            osm("", &format!("{START}</changeset>"), count, "")
        }),
        file("tags-of-a-changeset.osm.gz", 1_250_000, |count| {
            osm(START, "<tag k=\"k\" v=\"v\"/>", count, "</changeset>")
        }),
        file("comments-of-a-changeset.osm.gz", 380_000, |count| {
            let comment = "<comment date=\"2020-01-01T00:00:00Z\"><text>t</text></comment>";
            let start = format!("{START}<discussion>");
            osm(&start, comment, count, "</discussion></changeset>")
        }),
    ]
}

fn lines() -> Vec<HostileFile> {
    vec![
        file("lines.opl.gz", 10_000_000, |count| {
            gzip(&["n1 v1 x0 y0\n".repeat(count).as_bytes()])
        }),
        file("empty-lines.opl.gz", 100_000_000, |count| {
            gzip(&[b"n1 x0 y0\n", &vec![b'\n'; count], b"n2 x0 y0\n"])
        }),
        file("fields-of-a-line.opl.gz", 7_800_000, |count| {
            gzip(&[b"n1 x0 y0", " v1".repeat(count).as_bytes(), b"\n"])
        }),
        file("tags-of-a-line.opl.gz", 2_000_000, |count| {
            gzip(&[b"n1 x0 y0 Tk=v", ",k=v".repeat(count - 1).as_bytes(), b"\n"])
        }),
        file("references-of-a-line.opl.gz", 2_000_000, |count| {
            gzip(&[
                b"n1 x0 y0\nw1 Nn1",
                ",n1".repeat(count - 1).as_bytes(),
                b"\n",
            ])
        }),
        file("members-of-a-line.opl.gz", 2_000_000, |count| {
            gzip(&[
                b"n1 x0 y0\nr1 Mn1@",
                ",n1@".repeat(count - 1).as_bytes(),
                b"\n",
            ])
        }),
        file("escapes.opl.gz", 5_000_000, |count| {
            gzip(&[b"n1 x0 y0 Tk=", "%20%".repeat(count).as_bytes(), b"\n"])
        }),
        file("long-line.opl.gz", 23_000_000, |count| {
            gzip(&[b"n1 x0 y0 Tk=", &vec![b'v'; count], b"\n"])
        }),
    ]
}

/// A dataset of o5m.
fn dataset(kind: u8, content: &[u8]) -> Vec<u8> {
    [vec![kind], varint(content.len() as u64), content.to_vec()].concat()
}

const O5M: &[u8] = b"\xff\xe0\x04o5m2\xff";

/// An object of o5m: the delta of its id, no metadata, and the rest.
fn object(kind: u8, id: i64, rest: &[u8]) -> Vec<u8> {
    dataset(kind, &[&varint(zigzag(id))[..], &[0], rest].concat())
}

fn o5m() -> Vec<HostileFile> {
    vec![
        file("resets.o5m.gz", 200_000_000, |count| {
            gzip(&[O5M, &vec![0xff; count], b"\xfe"])
        }),
        file("nodes.o5m.gz", 10_000_000, |count| {
            gzip(&[O5M, &object(0x10, 1, &[0, 0]).repeat(count), b"\xfe"])
        }),
        file("strings.o5m.gz", 1_500_000, |count| {
            let strings = b"\0k\0v\0".repeat(count);
            gzip(&[
                O5M,
                &object(0x10, 1, &[&[0, 0][..], &strings].concat()),
                b"\xfe",
            ])
        }),
        file("repeated-strings.o5m.gz", 7_900_000, |count| {
            let strings = [b"\0k\0v\0".to_vec(), vec![1; count]].concat();
            gzip(&[
                O5M,
                &object(0x10, 1, &[&[0, 0][..], &strings].concat()),
                b"\xfe",
            ])
        }),
        file("references.o5m.gz", 7_900_000, |count| {
            let refs = [varint(count as u64), vec![0; count]].concat();
            gzip(&[O5M, &object(0x11, 1, &refs), b"\xfe"])
        }),
        file("members.o5m.gz", 2_000_000, |count| {
            let members = [b"\x02\x000\0".to_vec(), b"\0\x01".repeat(count - 1)].concat();
            let content = [varint(members.len() as u64), members].concat();
            gzip(&[O5M, &object(0x12, 1, &content), b"\xfe"])
        }),
        file("length-of-a-dataset.o5m.gz", 100_000_000, |count| {
            gzip(&[O5M, &[0x10], &varint(1 << 40), &vec![0; count]])
        }),
        file("unknown-datasets.o5m.gz", 50_000_000, |count| {
            gzip(&[O5M, &b"\xee\0".repeat(count), b"\xfe"])
        }),
    ]
}
