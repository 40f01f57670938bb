//! zlib data in segments: other programs read it, edits copy what has not changed, and wrong segments do no harm.

use crate::common::craft;
use crate::common::decode::{self, Frame};
use crate::common::oracle::real_file;
use crate::common::{Kind, is_long, pbfhogg, run_ok};
use crate::other_readers::check_all;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The end of a segment: the length of an empty stored block, and a whole empty stored block.
const MARKER: [u8; 9] = [0, 0, 0xff, 0xff, 0, 0, 0, 0xff, 0xff];
/// The empty stored block that ends the data.
const END: [u8; 5] = [1, 0, 0, 0xff, 0xff];

fn kinds_of(frame: &Frame) -> Vec<Kind> {
    let mut kinds: Vec<_> = decode::block(&frame.payload)
        .iter()
        .map(|object| object.kind)
        .collect();
    kinds.dedup();
    kinds
}

/// The compressed segments of a frame, each of which is inflated independently; none if the frame has no segments.
fn segments(file: &[u8], frame: &Frame) -> Vec<Vec<u8>> {
    let start = frame.offset as usize;
    let bytes = &file[start..start + frame.frame_len];
    let body = &bytes[..bytes.len() - 4];
    let Some(body) = body
        .strip_suffix(&END)
        .filter(|body| body.ends_with(&MARKER))
    else {
        return Vec::new();
    };
    let zlib = 4 + frame.header_len;
    let first = zlib
        + body[zlib..]
            .windows(2)
            .position(|two| two == [0x78, 0x5e])
            .unwrap()
        + 2;
    let (mut segments, mut payload, mut rest) = (Vec::new(), Vec::new(), &body[first..]);
    while !rest.is_empty() {
        let end = rest.windows(9).position(|nine| nine == MARKER).unwrap() + 9;
        let (segment, behind) = rest.split_at(end);
        let stream = [segment, &END].concat();
        let mut inflate = flate2::read::DeflateDecoder::new(&stream[..]);
        inflate.read_to_end(&mut payload).unwrap();
        segments.push(segment.to_vec());
        rest = behind;
    }
    assert!(payload == frame.payload);
    segments
}

/// The segments of each blob of a file, but for those with the table of contents, which are stored.
fn all_segments(path: &Path) -> Vec<(Frame, Vec<Vec<u8>>)> {
    let file = fs::read(path).unwrap();
    let frames = decode::frames(path).into_iter().skip(1);
    let frames = frames.filter(|frame| !decode::has_part(frame));
    frames
        .map(|frame| {
            let segments = segments(&file, &frame);
            (frame, segments)
        })
        .collect()
}

/// A real file with several blobs of nodes and ways.
fn sample() -> PathBuf {
    real_file(if is_long() {
        "malta.osm.pbf"
    } else {
        "porto.osm.pbf"
    })
}

/// The [`sample`] with locations in its ways, compressed anew.
fn located(dir: &Path) -> PathBuf {
    let output = dir.join("located.osm.pbf");
    let input = sample();
    run_ok(&[&"add-locations-to-ways", &"-n", &input, &"-o", &output]);
    output
}

/// Deletes the way in the middle of the blob of ways in the middle of a file; with the locations in ways kept.
fn delete_a_way(base: &Path, output: &Path) {
    let frames = decode::frames(base);
    let ways: Vec<_> = frames
        .iter()
        .skip(1)
        .filter(|frame| kinds_of(frame) == [Kind::Way])
        .collect();
    let objects = decode::block(&ways[ways.len() / 2].payload);
    let id = objects[objects.len() / 2].id;
    let changes = base.with_extension("osc");
    fs::write(
        &changes,
        format!(
            "<osmChange version='0.6'><delete><way id='{id}' version='99'/></delete></osmChange>"
        ),
    )
    .unwrap();
    let apply = ["apply-changes", "--locations-on-ways", "-O"];
    run_ok(&[
        &apply[0], &apply[1], &apply[2], &base, &changes, &"-o", &output,
    ]);
}

#[test]
fn blobs_have_segments_that_all_programs_read() {
    let dir = tempfile::tempdir().unwrap();
    let input = sample();
    let [clean, plain] = ["clean.osm.pbf", "plain.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[&"cat", &"--clean", &"changeset", &input, &"-o", &clean]);
    let stored = ["--compression", "none"];
    run_ok(&[
        &"cat",
        &"--clean",
        &"changeset",
        &stored[0],
        &stored[1],
        &input,
        &"-o",
        &plain,
    ]);
    for (frame, segments) in all_segments(&clean) {
        let has_nodes = kinds_of(&frame).contains(&Kind::Node);
        let expected = match frame.payload.len() {
            len if has_nodes => 4 * usize::from(len >= 1 << 13)..=14,
            len if len < 1 << 16 => 0..=0,
            len => len >> 16..=len >> 14,
        };
        let (offset, count) = (frame.offset, segments.len());
        assert!(expected.contains(&count), "{count} segments at {offset}");
    }
    assert!(decode::objects(&clean) == decode::objects(&plain));
    check_all(&clean);
    let found = run_ok(&[&"check", &"--index", &"--json", &clean]).stdout;
    let found: serde_json::Value = serde_json::from_slice(&found).unwrap();
    assert!(
        found["index"]["with_segments"].as_u64().unwrap() > 2,
        "{found}"
    );
}

#[test]
fn an_edit_copies_the_segments_that_it_does_not_touch() {
    let dir = tempfile::tempdir().unwrap();
    let base = located(dir.path());
    let edited = dir.path().join("edited.osm.pbf");
    delete_a_way(&base, &edited);
    let (before, after) = (all_segments(&base), all_segments(&edited));
    assert_eq!(before.len(), after.len());
    let changed = before.iter().zip(&after);
    let changed: Vec<_> = changed
        .filter(|(a, b)| a.0.payload != b.0.payload)
        .collect();
    let [((old_frame, old), (_, new))] = changed[..] else {
        panic!("{} blobs changed", changed.len());
    };
    let kept = new.iter().filter(|segment| old.contains(segment)).count();
    // The one with the length of the group, and the one with the way.
    assert!(
        old.len() > 5 && kept >= old.len() - 2,
        "{kept} of {}",
        old.len()
    );
    // The same as from a base without segments.
    let [plain, expected] =
        ["stored.osm.pbf", "expected.osm.pbf"].map(|name| dir.path().join(name));
    let frames = decode::frames(&base);
    let header = craft::frame("OSMHeader", &craft::zlib_blob(&frames[0].payload));
    let blobs = frames
        .iter()
        .skip(1)
        .map(|frame| craft::frame("OSMData", &craft::zlib_blob(&frame.payload)));
    fs::write(
        &plain,
        [header]
            .into_iter()
            .chain(blobs)
            .collect::<Vec<_>>()
            .concat(),
    )
    .unwrap();
    delete_a_way(&plain, &expected);
    assert!(decode::objects(&edited) == decode::objects(&expected));
    assert!(decode::objects(&edited).len() + 1 == decode::objects(&base).len());
    assert!(old_frame.payload.len() > 1 << 17);
    check_all(&edited);
    run_ok(&[&"check", &"--index", &edited]);
}

#[test]
fn columns_that_stay_are_copied() {
    let dir = tempfile::tempdir().unwrap();
    let input = sample();
    let file = |name: &str| dir.path().join(name);
    let own = file("own.osm.pbf");
    run_ok(&[&"cat", &"--clean", &"uid", &input, &"-o", &own]);
    for (name, command, changed) in [
        ("clean", &["cat", "--clean", "version"][..], 2),
        ("renumbered", &["renumber"], 1),
    ] {
        let [edited, expected] = [
            file(&format!("{name}.osm.pbf")),
            file(&format!("{name}-plain.osm.pbf")),
        ];
        let edit = |extra: &[&str], from: &Path, to: &Path| {
            let mut edit = pbfhogg();
            edit.args(command).args(extra).arg(from).arg("-o").arg(to);
            assert!(edit.status().unwrap().success());
        };
        edit(&[], &own, &edited);
        // The same as from the file of another program, of which nothing can be copied.
        let clean = ["--clean", "uid"];
        let plain = file("plain.osm.pbf");
        match name {
            "clean" => edit(&clean, &input, &expected),
            _ => {
                run_ok(&[
                    &"cat",
                    &"-O",
                    &"--clean",
                    &"uid",
                    &"--compression",
                    &"none",
                    &input,
                    &"-o",
                    &plain,
                ]);
                edit(&[], &plain, &expected);
            }
        }
        assert!(decode::objects(&edited) == decode::objects(&expected));
        let (before, after) = (all_segments(&own), all_segments(&edited));
        assert_eq!(before.len(), after.len());
        let pairs = before.iter().zip(&after);
        for ((frame, old), (_, new)) in pairs.filter(|(old, _)| kinds_of(&old.0) == [Kind::Node]) {
            let kept = new.iter().filter(|segment| old.contains(segment)).count();
            let (offset, count) = (frame.offset, old.len());
            assert!(
                kept + changed >= count,
                "{name}: {kept} of {count} at {offset}"
            );
        }
        // Other programs start slowly.
        if is_long() || name == "clean" {
            check_all(&edited);
        }
        run_ok(&[&"check", &"--index", &edited]);
    }
}

#[test]
fn wrong_segments_are_found_and_do_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let base = located(dir.path());
    // Parts that end as segments do, but refer to the bytes of the parts before them.
    let dependent = |payload: &[u8]| {
        let mut zlib = flate2::Compress::new(flate2::Compression::new(6), true);
        let mut data = Vec::with_capacity(2 * payload.len() + 1000);
        for part in payload.chunks(50_000) {
            zlib.compress_vec(part, &mut data, flate2::FlushCompress::Sync)
                .unwrap();
            data.extend_from_slice(&[0, 0, 0, 0xff, 0xff]);
        }
        data.extend_from_slice(&END);
        let sum = payload.iter().fold((1u32, 0u32), |(a, b), byte| {
            let a = (a + u32::from(*byte)) % 65_521;
            (a, (a + b) % 65_521)
        });
        data.extend_from_slice(&(sum.1 << 16 | sum.0).to_be_bytes());
        data
    };
    let frames = decode::frames(&base);
    let mut file = craft::frame("OSMHeader", &craft::zlib_blob(&frames[0].payload));
    for frame in frames.iter().skip(1) {
        let blob = craft::Message::new()
            .varint(2, frame.payload.len() as u64)
            .bytes(3, &dependent(&frame.payload));
        file.extend(craft::frame("OSMData", &blob.to_bytes()));
    }
    let [wrong, output, expected] =
        ["wrong.osm.pbf", "output.osm.pbf", "expected.osm.pbf"].map(|name| dir.path().join(name));
    fs::write(&wrong, file).unwrap();
    assert!(decode::objects(&wrong) == decode::objects(&base));
    delete_a_way(&wrong, &output);
    delete_a_way(&base, &expected);
    assert!(decode::objects(&output) == decode::objects(&expected));
    let check = pbfhogg()
        .args(["check", "--index"])
        .arg(&wrong)
        .output()
        .unwrap();
    assert_eq!(check.status.code(), Some(1));
    let text = String::from_utf8(check.stdout).unwrap();
    assert!(text.contains("cannot be inflated independently"), "{text}");
}
