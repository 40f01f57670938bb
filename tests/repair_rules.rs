//! `repair`: headers that are damaged, losses between joined files, histories, and data of one blob in another.

use crate::common::answers::ask;
use crate::common::craft::{self, Message};
use crate::common::decode::{self, Frame};
use crate::common::oracle::real_file;
use crate::common::repaired::{repair, repair_to, shown};
use crate::common::{Arg, Object, is_long, run_ok};
use std::fs;
use std::path::{Path, PathBuf};

/// The bytes and the frames of a real file.
fn parts(name: &str) -> (Vec<u8>, Vec<Frame>) {
    let path = real_file(name);
    (fs::read(&path).unwrap(), decode::all_frames(&path))
}

/// Changes a byte in the middle of the data of a frame.
fn damage(bytes: &mut [u8], frame: &Frame) {
    bytes[frame.offset as usize + frame.frame_len * 2 / 3] ^= 0x10;
}

#[test]
fn a_header_is_saved_from_a_damaged_frame() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("damaged.osm.pbf");
    let (bytes, frames) = parts("andorra-a.osm.pbf");
    let original = decode::header(&real_file("andorra-a.osm.pbf"));
    assert!(original.replication_timestamp.is_some());
    let blob = 4 + frames[0].header_len;
    // The length of the BlobHeader, the type, the length of the Blob, that of its content, and that of its data.
    for at in [3, 7, 10, 14, blob - 1, blob + 1, blob + 4] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        fs::write(&path, &damaged).unwrap();
        let (output, report, status) = repair_to(&path, &[]);
        assert_eq!(
            (status, &report["headers"]),
            (0, &1.into()),
            "{at}: {report}"
        );
        assert!(report["header_fault"].is_string(), "{at}: {report}");
        let header = decode::header(&output);
        let facts = |header: &decode::Header| (header.bbox, header.replication_timestamp);
        assert_eq!(facts(&header), facts(&original), "{at}");
    }
    // A header that is not there is a loss.
    fs::write(&path, &bytes[frames[1].offset as usize..]).unwrap();
    let (_, report, status) = repair(&path, &[]);
    assert_eq!((status, &report["headers"]), (1, &0.into()));
}

#[test]
fn a_loss_at_the_seam_of_joined_files_is_taken_from_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("damaged.osm.pbf");
    let (mut first, frames) = parts("andorra-a.osm.pbf");
    let (second, _) = parts("monaco.osm.pbf");
    fs::write(&path, [first.clone(), second.clone()].concat()).unwrap();
    let (whole, _, _) = repair(&path, &[]);
    let from = real_file("andorra-a.osm.pbf");
    let last = frames.len() - 1;
    // The last blob of the first file, and one of its nodes, whose ids must be found in spite of the seam.
    for lost in [vec![last], vec![2, last]] {
        let mut damaged = first.clone();
        lost.iter()
            .for_each(|number| damage(&mut damaged, &frames[*number]));
        fs::write(&path, [damaged, second.clone()].concat()).unwrap();
        let (found, report, status) = repair(&path, &[&"--from", &from]);
        let objects: usize = lost
            .iter()
            .map(|number| decode::block(&frames[*number].payload).len())
            .sum();
        // Nodes that the second file may have lost at its start are taken, too.
        let taken = report["from"]["objects"].as_u64();
        assert!(status == 1 && taken >= Some(objects as u64), "{report}");
        assert!(shown(&found) == shown(&whole), "{report}");
    }
    // Without the other file, the report names ids all the same.
    damage(&mut first, &frames[last]);
    fs::write(&path, [first, second].concat()).unwrap();
    let (_, report, _) = repair(&path, &[]);
    assert!(!report["lost"][0]["ids"].as_array().unwrap().is_empty());
}

#[test]
fn data_in_the_place_of_other_data_is_saved_and_the_other_one_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("damaged.osm.pbf");
    let (bytes, _) = parts("loc_on_ways.osm.pbf");
    let every = shown(&decode::objects(&real_file("loc_on_ways.osm.pbf")));
    let start = 107;
    for from in (0..bytes.len()).step_by(if is_long() { 1 } else { 9 }) {
        let len = (bytes.len() - start).min(bytes.len() - from);
        let mut damaged = bytes.clone();
        damaged[start..start + len].copy_from_slice(&bytes[from..from + len]);
        fs::write(&path, &damaged).unwrap();
        let answer = ask(&[&"repair", &"--json", &"--dry-run", &path]);
        if answer.status == 2 {
            continue;
        }
        let (found, report, status) = repair(&path, &[]);
        assert_eq!(status == 0, shown(&found) == every, "{from}: {report}");
    }
}

#[test]
fn a_blob_whose_type_and_data_are_damaged_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("damaged.osm.pbf");
    let (mut bytes, frames) = parts("andorra-a.osm.pbf");
    let lost = &frames[frames.len() / 2];
    damage(&mut bytes, lost);
    bytes[lost.offset as usize + 4 + 8] ^= 2;
    fs::write(&path, &bytes).unwrap();
    let (_, report, status) = repair(&path, &[]);
    assert_eq!(
        (status, report["lost"].as_array().unwrap().len()),
        (1, 1),
        "{report}"
    );
    // A blob of another type is none of ours.
    let other = craft::frame("OSMIndex", &craft::zlib_blob(b"other"));
    let (bytes, frames) = parts("andorra-a.osm.pbf");
    let at = frames[3].offset as usize;
    fs::write(&path, [&bytes[..at], &other, &bytes[at..]].concat()).unwrap();
    let (found, report, status) = repair(&path, &[]);
    assert_eq!(status, 0, "{report}");
    assert!(shown(&found) == shown(&decode::objects(&real_file("andorra-a.osm.pbf"))));
}

#[test]
fn a_history_in_order_is_not_sorted_and_what_is_left_out_of_two_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.osm.pbf");
    let (bytes, _) = parts("deleted_nodes.osh.pbf");
    fs::write(&path, &bytes).unwrap();
    let (objects, report, status) = repair(&path, &[]);
    assert_eq!(
        (status, &report["was_sorted"]),
        (0, &true.into()),
        "{report}"
    );
    fs::write(&path, [bytes.clone(), bytes].concat()).unwrap();
    let (found, report, status) = repair(&path, &[]);
    assert_eq!(
        (status, &report["was_sorted"]),
        (0, &false.into()),
        "{report}"
    );
    assert!(shown(&found) == shown(&objects));
    assert_eq!(report["duplicates"], objects.len() as u64, "{report}");
    let answer = ask(&[&"repair", &"--dry-run", &path]);
    assert!(answer.stdout.contains("are not in order\n"), "{answer:?}");
}

/// A file with all nodes, in which a blob of nodes is damaged if `is_damaged`.
fn located(dir: &Path, is_damaged: bool) -> PathBuf {
    let path = dir.join("located.osm.pbf");
    let args: [Arg; 6] = [
        &"add-locations-to-ways",
        &"-qnO",
        &real_file("helsinki.osm.pbf"),
        &"-o",
        &path,
        &"-j1",
    ];
    run_ok(&args);
    if is_damaged {
        let mut bytes = fs::read(&path).unwrap();
        damage(&mut bytes, &decode::all_frames(&path)[1]);
        fs::write(&path, bytes).unwrap();
    }
    path
}

#[test]
fn a_file_without_some_nodes_does_not_declare_all() {
    let dir = tempfile::tempdir().unwrap();
    for is_damaged in [false, true] {
        let (output, report, status) = repair_to(&located(dir.path(), is_damaged), &[]);
        assert_eq!(status == 1, is_damaged, "{report}");
        let optional = decode::header(&output).optional;
        let declares = optional.iter().any(|name| name == "pbfhogg.AllNodes");
        assert_eq!(declares, !is_damaged, "{optional:?}");
    }
}

#[test]
fn header_options_hold_if_objects_are_sorted_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("joined.osm.pbf");
    let (bytes, _) = parts("helsinki.osm.pbf");
    for copies in [1, 2] {
        fs::write(&path, bytes.repeat(copies)).unwrap();
        let (output, ..) = repair_to(&path, &[&"--output-header", &"generator!"]);
        let expected = decode::header(&real_file("helsinki.osm.pbf")).program;
        assert_eq!(decode::header(&output).program, expected, "{copies}");
    }
}

/// Ways behind nodes whose blobs have no valid type, one after the other: the objects are sorted, and no blob overlaps
/// another.
#[test]
fn all_blobs_of_a_sorted_output_have_its_compression() {
    let dir = tempfile::tempdir().unwrap();
    let mut parts = Vec::new();
    for kind in ["way", "node"] {
        let path = dir.path().join(kind).with_extension("osm.pbf");
        run_ok(&[
            &"cat",
            &"-t",
            &kind,
            &real_file("helsinki.osm.pbf"),
            &"-o",
            &path,
        ]);
        let mut bytes = fs::read(&path).unwrap();
        for frame in &decode::frames(&path)[1..] {
            // The third letter of `OSMData`, behind the length, the key and the length of the type.
            bytes[frame.offset as usize + 8] = b'X';
        }
        parts.push(bytes);
    }
    let path = dir.path().join("joined.osm.pbf");
    fs::write(&path, parts.concat()).unwrap();
    for (compression, expected) in [("zlib", "zlib"), ("zstd", "zstd"), ("none", "raw")] {
        let (output, report, _) = repair_to(&path, &[&"--compression", &compression]);
        assert_eq!(report["was_sorted"], false, "{report}");
        let frames = decode::frames(&output);
        // The last blobs have the table of contents, and are stored.
        let found = frames[1..frames.len() - 2]
            .iter()
            .map(|frame| frame.compression);
        assert!(found.clone().count() > 2 && found.clone().all(|found| found == expected));
    }
}

#[test]
fn short_ways_of_mended_blobs_count() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("block.osm.pbf");
    let way = |id| Message::new().varint(1, id).packed_deltas(8, &[1]);
    let broken = Message::new().bytes(1, b"no id");
    let group = [way(1), broken, way(3)]
        .into_iter()
        .fold(Message::new(), |group, way| group.message(3, way));
    let block = Message::new()
        .message(1, Message::new().bytes(1, b""))
        .message(2, group);
    fs::write(&path, craft::plain_file(&[block.to_bytes()])).unwrap();
    let (found, report, status): (Vec<Object>, _, _) = repair(&path, &[]);
    assert_eq!(
        (found.len(), status, &report["short_ways"]),
        (2, 1, &2.into())
    );
}
