//! `repair` of random damage: every object of every undamaged blob is saved, nothing else comes, and the report's numbers
//! add up. Then the places of frames: wrong lengths, damaged headers, missing and moved blobs.

use crate::common::answers::ask;
use crate::common::craft::{self, Message};
use crate::common::decode::{self, Frame};
use crate::common::oracle::{real_file, real_files};
use crate::common::random::Random;
use crate::common::repaired::{repair, repair_to, shown};
use crate::common::{Arg, Object, in_turn, is_canonical, is_long, run_ok};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A damaged file, and the bytes of the original that are damaged.
struct Damaged {
    bytes: Vec<u8>,
    damaged: Vec<Range<usize>>,
    what: String,
}

/// Damages a file in one of eight ways.
fn damage(original: &[u8], random: &mut Random) -> Damaged {
    let mut bytes = original.to_vec();
    let at = random.below(bytes.len());
    let end = (at + 1 + random.below(3000)).min(bytes.len());
    let one = |range: Range<usize>| vec![range];
    let (damaged, what) = match random.below(8) {
        0 => {
            bytes[at] ^= 1 << random.below(8);
            (one(at..at + 1), "a flipped bit")
        }
        1 => {
            bytes.truncate(at);
            (one(at..original.len()), "cut")
        }
        2 => {
            let noise: Vec<u8> = (at..end).map(|_| random.bits(8) as u8).collect();
            bytes.splice(at..at, noise);
            // Between two frames, an insertion damages none.
            (one(at.saturating_sub(1)..at + 1), "insertion")
        }
        3 => {
            bytes.drain(at..end);
            let damaged = at.saturating_sub(1)..(end + 1).min(original.len());
            (one(damaged), "deletion")
        }
        4 => {
            bytes[at..end].fill(0);
            (one(at..end), "zeros")
        }
        5 => {
            bytes.extend_from_slice(original);
            (Vec::new(), "twice")
        }
        kind => {
            let other = random.below(bytes.len());
            let len = (end - at).min(bytes.len() - other);
            let (one, two) = (at..at + len, other..other + len);
            let parts = [&one, &two].map(|part| original[part.clone()].to_vec());
            bytes[one.clone()].copy_from_slice(&parts[1]);
            if kind == 6 {
                (vec![one], "overwritten by another part")
            } else {
                bytes[two.clone()].copy_from_slice(&parts[0]);
                (vec![one, two], "two parts exchanged")
            }
        }
    };
    Damaged {
        bytes,
        damaged,
        what: format!("{what} at {at}..{end}"),
    }
}

/// A blob of a file to damage.
struct Blob {
    place: Range<usize>,
    payload: Vec<u8>,
    /// The number of objects.
    count: usize,
}

/// A file to damage.
struct Original {
    name: String,
    bytes: Vec<u8>,
    blobs: Vec<Blob>,
    every: HashSet<Object>,
    /// lz4 has no checksum: damage may turn an object into another one. A table of contents has one.
    has_checksum: bool,
}

impl Original {
    fn of(path: &Path, has_table: bool) -> Self {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let frames = decode::all_frames(path).into_iter();
        let (mut blobs, mut every) = (Vec::new(), HashSet::new());
        for frame in frames.filter(|frame| frame.blob_type == "OSMData") {
            let (start, objects) = (frame.offset as usize, decode::block(&frame.payload));
            blobs.push(Blob {
                place: start..start + frame.frame_len,
                payload: frame.payload,
                count: objects.len(),
            });
            every.extend(objects);
        }
        Self {
            bytes: fs::read(path).unwrap(),
            blobs,
            every,
            has_checksum: has_table || !name.contains("lz4"),
            name,
        }
    }

    /// Returns the blobs that no part of the damage meets.
    fn whole(&self, damaged: &Damaged) -> Vec<&Blob> {
        let is_whole = |blob: &&Blob| {
            let place = &blob.place;
            let misses = |part: &Range<usize>| part.end <= place.start || place.end <= part.start;
            damaged.damaged.iter().all(misses)
        };
        self.blobs.iter().filter(is_whole).collect()
    }

    /// Repairs a damaged copy, and checks what came out.
    fn check(&self, damaged: &Damaged, path: &Path) {
        fs::write(path, &damaged.bytes).unwrap();
        let what = format!("{}: {}", self.name, damaged.what);
        let whole = self.whole(damaged);
        if whole.is_empty() {
            // Nothing may be left.
            assert!(ask(&[&"repair", &"--dry-run", &path]).status <= 2, "{what}");
            return;
        }
        let (output, report, status) = repair_to(path, &[]);
        // Blobs with the content of a blob of the original need not be decoded.
        let known: HashMap<&[u8], usize> = self
            .blobs
            .iter()
            .map(|blob| (blob.payload.as_slice(), blob.count))
            .collect();
        let frames = decode::frames(&output).into_iter();
        let frames = frames.filter(|frame| frame.blob_type == "OSMData");
        let (copied, others): (Vec<_>, Vec<_>) =
            frames.partition(|frame| known.contains_key(frame.payload.as_slice()));
        let others: HashSet<Object> = others
            .iter()
            .flat_map(|frame| decode::block(&frame.payload))
            .collect();
        let copied: HashMap<&[u8], usize> = copied
            .iter()
            .map(|frame| (frame.payload.as_slice(), known[frame.payload.as_slice()]))
            .collect();
        let found = copied.values().sum::<usize>() + others.len();
        if self.has_checksum {
            for blob in whole
                .iter()
                .filter(|blob| !copied.contains_key(blob.payload.as_slice()))
            {
                let objects = decode::block(&blob.payload);
                let missing: Vec<_> = objects
                    .iter()
                    .filter(|one| !others.contains(*one))
                    .collect();
                let missing = &missing[..missing.len().min(3)];
                assert!(missing.is_empty(), "{what}: {missing:?}\n{report}");
            }
            let new: Vec<_> = others.difference(&self.every).take(3).collect();
            assert!(new.is_empty(), "{what}: {new:?}\n{report}");
        }
        assert_eq!(report["written"]["objects"], found as u64, "{what}");
        self.check_report(found, &report, status, &what);
    }

    /// Checks the numbers of a report.
    fn check_report(&self, found: usize, report: &Value, status: i32, what: &str) {
        let lost = report["lost"].as_array().unwrap();
        let unreadable = report["changes"]["unreadable"].as_u64().unwrap();
        let is_complete = report["headers"].as_u64() > Some(0)
            && lost.iter().all(|loss| loss["objects"] == 0)
            && report["changes"]["more_unreadable"] == false
            && ["unreadable", "outside", "parts_dropped", "texts_replaced"]
                .iter()
                .all(|count| report["changes"][count] == 0);
        assert_eq!(status == 0, is_complete, "{what}: {report}");
        let every = self.every.len();
        let has_all = found == every || !self.has_checksum;
        assert!(status == 1 || has_all, "{what}: {report}");
        let counts = lost.iter().map(|loss| loss["objects"].as_u64());
        if let (Some(lost), true) = (counts.sum::<Option<u64>>(), self.has_checksum) {
            let all = lost + unreadable + found as u64;
            let more = report["changes"]["more_unreadable"] == true;
            assert!(all == every as u64 || more, "{what}: {report}");
        }
    }
}

#[test]
fn objects_of_undamaged_blobs_are_saved_and_no_others_come() {
    let rounds = if is_long() { 500 } else { 1 };
    // A part of the name of the files; all files without it.
    let wanted = std::env::var("PBFHOGG_FILE").unwrap_or_default();
    // Files as they are, and copies with a table of contents.
    std::thread::scope(|threads| {
        for has_table in [false, true] {
            let wanted = wanted.clone();
            threads.spawn(move || {
                let dir = tempfile::tempdir().unwrap();
                let [damaged, indexed] =
                    ["damaged", "indexed"].map(|name| dir.path().join(format!("{name}.osm.pbf")));
                for input in real_files() {
                    if !input.to_str().unwrap().contains(&wanted) {
                        continue;
                    }
                    let mut random = Random(7);
                    let original = if has_table {
                        let args: [Arg; 6] =
                            [&"repack", &"-qO", &"-n2000", &input, &"-o", &indexed];
                        run_ok(&args);
                        Original::of(&indexed, true)
                    } else {
                        Original::of(&input, false)
                    };
                    println!("{} {rounds} times, {has_table}", input.display());
                    for _ in 0..rounds {
                        original.check(&damage(&original.bytes, &mut random), &damaged);
                    }
                }
            });
        }
    });
}

/// A real file in a directory of its own, with a table of contents or without, and its frames.
struct Copy {
    dir: tempfile::TempDir,
    frames: Vec<Frame>,
    bytes: Vec<u8>,
}

impl Copy {
    fn new(is_indexed: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (path, real) = (
            dir.path().join("whole.osm.pbf"),
            real_file("helsinki.osm.pbf"),
        );
        if is_indexed {
            run_ok(&[&"repack", &"-q", &"-n", &"1000", &real, &"-o", &path]);
        } else {
            fs::copy(&real, &path).unwrap();
        }
        Self {
            frames: decode::all_frames(&path),
            bytes: fs::read(&path).unwrap(),
            dir,
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("damaged.osm.pbf")
    }

    /// The bytes of a frame.
    fn place(&self, frame: usize) -> Range<usize> {
        let start = self.frames[frame].offset as usize;
        start..start + self.frames[frame].frame_len
    }

    /// The first byte of the Blob of a frame.
    fn blob_start(&self, frame: usize) -> usize {
        self.place(frame).start + 4 + self.frames[frame].header_len
    }

    /// Repairs a file with these bytes, of which `lost` blobs cannot be saved. Returns the report and the exit status.
    fn repaired(&self, bytes: &[u8], lost: &[usize]) -> (Value, i32) {
        fs::write(self.path(), bytes).unwrap();
        let (found, report, status) = repair(&self.path(), &[]);
        let frames = self.frames.iter().enumerate();
        let saved =
            frames.filter(|(number, frame)| frame.blob_type == "OSMData" && !lost.contains(number));
        let expected: Vec<Object> = saved
            .flat_map(|(_, frame)| decode::block(&frame.payload))
            .collect();
        assert!(shown(&found) == shown(&expected), "{report}");
        assert!(is_canonical(&found));
        (report, status)
    }
}

#[test]
fn data_is_saved_if_only_the_frame_around_it_is_damaged() {
    for is_indexed in [false, true] {
        let copy = Copy::new(is_indexed);
        let last = copy.frames.len() - 1;
        for (turn, frame) in [1, last].into_iter().enumerate() {
            let (place, blob) = (copy.place(frame), copy.blob_start(frame));
            // The length of the header, its type, the length of the blob, the length of its content, and of its data.
            let places = [
                place.start + 3,
                place.start + 7,
                blob - 1,
                blob + 1,
                blob + 5,
            ];
            for at in in_turn(turn + usize::from(is_indexed), 3, places) {
                let mut bytes = copy.bytes.clone();
                bytes[at] ^= 4;
                let (report, status) = copy.repaired(&bytes, &[]);
                assert_eq!(status, 0, "{is_indexed} {frame} {at}: {report}");
                assert!(report["lost"].as_array().unwrap().is_empty(), "{report}");
                // A blob with a part of the table of contents is written anew in any case.
                let mended = report["mended"].as_array().unwrap().len();
                assert!(mended == 1 || (is_indexed && frame == last), "{report}");
            }
        }
        // The headers of all blobs.
        let mut bytes = copy.bytes.clone();
        for frame in 0..=last {
            bytes[copy.place(frame).start..copy.blob_start(frame)].fill(0);
        }
        let (report, status) = copy.repaired(&bytes, &[]);
        assert_eq!((status, &report["headers"]), (0, &1.into()), "{report}");
        assert!(report["header_fault"].is_string(), "{report}");
    }
}

#[test]
fn a_table_of_contents_names_what_is_lost_of_a_file_that_became_shorter_or_longer() {
    let copy = Copy::new(true);
    let frame = copy.frames.len() / 3;
    let place = copy.place(frame);
    let middle = (place.start + place.end) / 2;
    let objects = decode::block(&copy.frames[frame].payload);
    let cut_out = [&copy.bytes[..middle], &copy.bytes[middle + 50..]].concat();
    let pasted_in = [&copy.bytes[..middle], b"nothing", &copy.bytes[middle..]].concat();
    let gone = [&copy.bytes[..place.start], &copy.bytes[place.end..]].concat();
    for bytes in [&cut_out, &pasted_in, &gone] {
        let (report, status) = copy.repaired(bytes, &[frame]);
        assert_eq!(status, 1);
        let [loss] = report["lost"].as_array().unwrap().as_slice() else {
            panic!("{report}");
        };
        let ids = &loss["ids"][0];
        assert_eq!(loss["objects"], objects.len() as u64, "{report}");
        assert_eq!(ids["first"], objects[0].id);
        assert_eq!(ids["last"], objects[objects.len() - 1].id);
        assert_eq!(ids["is_exact"], true);
    }
    // Bytes that came from elsewhere are no loss.
    let inserted = [
        &copy.bytes[..place.start],
        &[7; 5000],
        &copy.bytes[place.start..],
    ]
    .concat();
    let (report, status) = copy.repaired(&inserted, &[]);
    assert_eq!((status, &report["lost"][0]["objects"]), (0, &0.into()));
}

#[test]
fn blobs_in_another_place_are_found() {
    for is_indexed in [false, true] {
        let copy = Copy::new(is_indexed);
        let (one, two) = (copy.place(1), copy.place(copy.frames.len() / 2));
        let bytes = [
            &copy.bytes[..one.start],
            &copy.bytes[two.clone()],
            &copy.bytes[one.end..two.start],
            &copy.bytes[one.clone()],
            &copy.bytes[two.end..],
        ]
        .concat();
        let (report, status) = copy.repaired(&bytes, &[]);
        assert_eq!(
            (status, &report["was_sorted"]),
            (0, &false.into()),
            "{report}"
        );
        assert!(report["lost"].as_array().unwrap().is_empty(), "{report}");
    }
}

#[test]
fn an_index_in_the_header_of_a_blob_names_what_is_lost() {
    let copy = Copy::new(false);
    let [path, indexed] =
        ["damaged", "indexed"].map(|name| copy.dir.path().join(format!("{name}.osm.pbf")));
    let real = real_file("helsinki.osm.pbf");
    run_ok(&[
        &"repack",
        &"-q",
        &"-n",
        &"1000",
        &"--blob-index",
        &real,
        &"-o",
        &indexed,
    ]);
    let frames = decode::frames(&indexed);
    let lost = &frames[frames.len() / 3];
    let mut bytes = fs::read(&indexed).unwrap();
    bytes[lost.offset as usize + lost.frame_len / 2] ^= 1;
    // A file that was joined to it hides the table of contents.
    bytes.extend_from_slice(&craft::plain_file(&[]));
    fs::write(&path, bytes).unwrap();
    let (_, report, _) = repair(&path, &[]);
    let objects = decode::block(&lost.payload);
    let ids = &report["lost"][0]["ids"][0];
    assert_eq!(
        (&ids["first"], &ids["is_exact"]),
        (&objects[0].id.into(), &true.into()),
        "{report}"
    );
}

#[test]
fn what_is_left_of_a_long_block_is_written_with_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let [path, output, stats] =
        ["in.osm.pbf", "out.osm.pbf", "stats"].map(|name| dir.path().join(name));
    let count: u64 = if is_long() { 10_000_000 } else { 1_000_000 };
    let ids: Vec<i64> = (1..=count as i64).collect();
    let (mut latitudes, longitudes) = (vec![0; ids.len()], vec![0; ids.len()]);
    // The first node is beyond the earth.
    latitudes[0] = 1_000_000_000;
    let nodes = Message::new().packed_deltas(1, &ids);
    let nodes = nodes
        .packed_deltas(8, &latitudes)
        .packed_deltas(9, &longitudes);
    let block = Message::new()
        .message(1, Message::new().bytes(1, b""))
        .message(2, Message::new().message(2, nodes));
    fs::write(&path, craft::plain_file(&[block.to_bytes()])).unwrap();
    let args: [Arg; 8] = [
        &"repair", &"-j", &"1", &"--stats", &stats, &path, &"-o", &output,
    ];
    let answer = ask(&args);
    assert_eq!(answer.status, 1, "{answer:?}");
    let stats: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
    let peak = stats["peak_memory_bytes"].as_u64().unwrap();
    assert!(peak < 150_000_000, "{peak}");
    let counted = ask(&[&"inspect", &"-g", &"data.count.nodes", &output]).stdout;
    assert_eq!(counted.trim(), (count - 1).to_string());
}
