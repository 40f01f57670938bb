//! The table of contents is in the blobs of the last objects, so that every blob has an object.

use crate::apply_changes::change_file;
use crate::common::answers::{ask, file_of, history_of, in_order};
use crate::common::decode::{self, Frame};
use crate::common::{Arg, Kind, Object, is_long, node, relation, run_ok, small_world, way};
use std::collections::BTreeSet;
use std::path::Path;

/// The numbers of the fields of a PrimitiveBlock.
fn fields(payload: &[u8]) -> BTreeSet<u32> {
    let mut fields = pbfhogg::unstable::pbf::wire::Fields::new(payload);
    std::iter::from_fn(|| fields.next().unwrap().map(|field| field.number)).collect()
}

/// The data frames of a file. Each has an object and the fields that every reader knows, the first BlobHeader is as
/// short as GraphHopper wants it, and the table describes the file.
fn sound_frames(path: &Path) -> Vec<Frame> {
    let mut frames = decode::all_frames(path);
    assert!(frames.remove(0).header_len <= 14);
    for frame in &frames {
        assert!(
            !decode::block(&frame.payload).is_empty(),
            "{} at {}",
            path.display(),
            frame.offset
        );
        let fields = fields(&frame.payload);
        assert!(fields.is_superset(&[1, 2].into()), "{fields:?}");
        assert!(
            fields.is_subset(&[1, 2, 17, 18, 19, 20].into()),
            "{fields:?}"
        );
    }
    assert!(decode::has_table(path));
    run_ok(&[&"inspect", &"--indexed", &path]);
    run_ok(&[&"check", &"--index", &path]);
    frames
}

#[test]
fn every_blob_of_every_output_has_an_object() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let file = |name: &str| dir.path().join(name);
    let (changes, output) = (file("a.osc"), file("o.osm.pbf"));
    let newer = file("newer.osm.pbf");
    run_ok(&[&"degrade", &"--drop-ids", &"300:7", &world, &"-o", &newer]);
    run_ok(&[
        &"diff", &"-q", &"-f", &"osc", &newer, &world, &"-o", &changes,
    ]);
    let jobs: &[&[Arg]] = &[
        &[&"cat", &world],
        &[&"cat", &"--blob-index", &world],
        &[&"cat", &"--clean", &"user", &world],
        &[&"cat", &world, &world],
        &[&"sort", &world],
        &[&"renumber", &world],
        &[&"add-locations-to-ways", &world],
        &[&"apply-changes", &newer, &changes],
        &[&"extract", &"-b", &"-180,-90,180,90", &world],
        &[&"tags-filter", &world, &"highway"],
        &[&"getid", &world, &"n1", &"w1"],
        &[&"repack", &"--elements-per-blob", &"10", &world],
        &[&"repack", &"--compression", &"none", &world],
        &[&"repack", &"--compression", &"zstd", &world],
    ];
    for job in jobs {
        run_ok(&[*job, &[&"-O", &"-o", &output]].concat());
        let objects = decode::objects(&output);
        sound_frames(&output);
        // The same as a stream.
        let stream = file("stream.osm.pbf");
        std::fs::write(&stream, run_ok(&[*job, &[&"-o", &"-"]].concat()).stdout).unwrap();
        sound_frames(&stream);
        assert!(decode::objects(&stream) == objects);
    }
}

#[test]
fn blobs_with_the_tables_of_a_spatial_layout_have_objects() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let file = |name: &str| dir.path().join(name);
    let [located, spatial, output] = ["l.osm.pbf", "s.osm.pbf", "o.osm.pbf"].map(file);
    run_ok(&[&"add-locations-to-ways", &"-n", &world, &"-o", &located]);
    let objects = decode::objects(&located);
    // Few blobs, and so many that the table of contents has two.
    for size in ["8000", "40"] {
        let layout: &[Arg] = &[&"--layout", &"hilbert", &"-n", &size];
        let args: &[Arg] = &[&"repack", &"-O", &located, &"-o", &spatial];
        run_ok(&[args, layout].concat());
        let frames = sound_frames(&spatial);
        assert!(has_id_table(&spatial) && (size == "8000" || frames.len() > 110));
        let titles = frames.iter().filter(|frame| {
            let title = b"HOGG table of ids";
            (frame.payload.windows(title.len())).any(|text| text == title)
        });
        assert_eq!(titles.count(), 2);
        let jobs: &[&[Arg]] = &[
            &[&"cat", &spatial],
            &[&"cat", &"--blob-index", &spatial],
            &[&"repack", &"--compression", &"zstd", &spatial],
            &[&"sort", &spatial],
        ];
        for job in jobs {
            run_ok(&[*job, &[&"-O", &"-o", &output]].concat());
            sound_frames(&output);
            assert_eq!(in_order(decode::objects(&output)), objects);
            let stream = file("stream.osm.pbf");
            std::fs::write(&stream, run_ok(&[*job, &[&"-o", &"-"]].concat()).stdout).unwrap();
            sound_frames(&stream);
            assert_eq!(in_order(decode::objects(&stream)), objects);
        }
        run_ok(&[&"cat", &"-O", &spatial, &"-o", &output]);
        assert!(std::fs::read(&output).unwrap() == std::fs::read(&spatial).unwrap());
        // The table of contents does not say where the objects beside it are.
        for bounds in ["-180,-90,0,0", "-180,0,0,90", "0,-90,180,0", "0,0,180,90"] {
            let cut = |input: &Path| {
                run_ok(&[&"extract", &"-O", &"-b", &bounds, &input, &"-o", &output]);
                in_order(decode::objects(&output))
            };
            assert_eq!(cut(&spatial), cut(&located));
        }
    }
    // Two blobs are too few for the table of ids.
    let one = file_of(dir.path(), "one.osm.pbf", &[&[node(1, 2, 3, &[])]]);
    run_ok(&[
        &"repack",
        &"-O",
        &"--layout",
        &"hilbert",
        &one,
        &"-o",
        &spatial,
    ]);
    sound_frames(&spatial);
    assert!(!has_id_table(&spatial));
}

/// Without its last object, the blob before it would give away its last object. If that blob is damaged, it is copied as
/// it is, and the table of contents has a blob of its own.
#[test]
fn a_damaged_last_blob_is_copied_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let file = |name: &str| dir.path().join(name);
    let [input, damaged, changes, output] =
        ["i.osm.pbf", "d.osm.pbf", "c.osc", "o.osm.pbf"].map(file);
    let last = decode::objects(&world).last().unwrap().id;
    let change = format!(
        "<osmChange version=\"0.6\"><delete><relation id=\"{last}\"/></delete></osmChange>"
    );
    std::fs::write(&changes, change).unwrap();
    for compression in ["zlib", "none"] {
        run_ok(&[
            &"repack",
            &"-O",
            &"--compression",
            &compression,
            &world,
            &"-o",
            &input,
        ]);
        let (bytes, frames) = (std::fs::read(&input).unwrap(), decode::frames(&input));
        let frame = &frames[frames.len() - 2];
        let blob = frame.offset as usize..frame.offset as usize + frame.frame_len;
        let (mut copies, count) = (0, if is_long() { 400 } else { 40 });
        for number in 0..count {
            let start = blob.start + frame.header_len + 12;
            let mut copy = bytes.clone();
            copy[start + (blob.end - start) * number / count] ^= 1 << (number % 8);
            std::fs::write(&damaged, &copy).unwrap();
            let run = ask(&[&"apply-changes", &"-O", &damaged, &changes, &"-o", &output]);
            if run.status == 0 {
                let written = std::fs::read(&output).unwrap();
                let whole = &copy[blob.clone()];
                copies += usize::from(written.windows(whole.len()).any(|part| part == whole));
                run_ok(&[&"inspect", &"--indexed", &output]);
            } else {
                assert!(
                    run.status == 2 && run.stderr.contains("damaged"),
                    "{}",
                    run.stderr
                );
            }
        }
        assert!(copies > count / 2, "{compression}: {copies} of {count}");
    }
}

/// A blob with objects is not taken for one without, whatever happens to the table of contents behind it.
#[test]
fn hosts_are_known_without_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let file = |name: &str| dir.path().join(name);
    let [input, other, output] = ["i.osm.pbf", "d.osm.pbf", "o.osm.pbf"].map(file);
    for option in ["--blob-index", "--verify"] {
        run_ok(&[&"repack", &"-O", &"-n", &"40", &world, &"-o", &input]);
        run_ok(&[&"cat", &"-O", &option, &input, &"-o", &output]);
        let (bytes, objects) = (std::fs::read(&output).unwrap(), decode::objects(&output));
        let frames = decode::frames(&output);

        // Damage to the text of the table.
        let mut copy = bytes.clone();
        let text = &frames[frames.len() - 2];
        copy[text.offset as usize + text.frame_len / 2] ^= 1;
        std::fs::write(&other, copy).unwrap();
        run_ok(&[&"cat", &"-O", &other, &"-o", &output]);
        assert!(decode::objects(&output) == objects);
        sound_frames(&output);

        // Data that was appended: the first blob of another file.
        let more = decode::frames(&input);
        let first = more[1].offset as usize..more[1].offset as usize + more[1].frame_len;
        let appended = [&bytes[..], &std::fs::read(&input).unwrap()[first]].concat();
        std::fs::write(&other, appended).unwrap();
        run_ok(&[&"cat", &"-O", &option, &other, &"-o", &output]);
        let titles = |path: &Path| {
            let title = b"HOGG table of contents at";
            let bytes = std::fs::read(path).unwrap();
            bytes
                .windows(title.len())
                .filter(|text| text == title)
                .count()
        };
        assert_eq!(titles(&output), 1);
        run_ok(&[&"check", &"--index", &output]);

        // A stream that ends before the last part.
        let stream = run_ok(&[&"cat", &option, &input, &"-o", &"-"]).stdout;
        std::fs::write(&other, &stream).unwrap();
        let last = decode::frames(&other).pop().unwrap();
        std::fs::write(&other, &stream[..last.offset as usize]).unwrap();
        let run = ask(&[&"cat", &"-O", &other, &"-o", &output]);
        assert!(
            run.status == 2 && run.stderr.contains("truncated"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn a_stream_that_ends_within_the_tables_of_a_spatial_layout_is_truncated() {
    let dir = tempfile::tempdir().unwrap();
    let nodes: Vec<Object> = (1..=104).map(|id| node(id, id, 2, &[])).collect();
    let file = |name: &str| dir.path().join(name);
    let [spatial, cut] = ["s.osm.pbf", "c.osm.pbf"].map(file);
    for count in [3, 4, 101, 102, 103, 104] {
        let input = file_of(dir.path(), "in.osm.pbf", &[&nodes[..count]]);
        run_ok(&[
            &"repack",
            &"-O",
            &"--layout",
            &"hilbert",
            &"-n",
            &"1",
            &input,
            &"-o",
            &spatial,
        ]);
        assert!(has_id_table(&spatial), "{count} blobs");
        sound_frames(&spatial);
        let stream = run_ok(&[&"cat", &spatial, &"-o", &"-"]).stdout;
        std::fs::write(&cut, &stream).unwrap();
        assert!(has_id_table(&cut), "{count} blobs");
        let frames = decode::frames(&cut);
        for frame in &frames[frames.len() - 3..] {
            std::fs::write(&cut, &stream[..frame.offset as usize]).unwrap();
            let run = ask(&[&"inspect", &cut]);
            assert!(
                run.status == 2 && run.stderr.contains("truncated"),
                "{}",
                run.stderr
            );
        }
    }
}

fn has_id_table(path: &Path) -> bool {
    let report = run_ok(&[&"inspect", &"--json", &path]).stdout;
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    report["id_table"].as_bool().unwrap()
}

#[test]
fn a_long_table_is_not_in_the_last_blob() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let output = dir.path().join("o.osm.pbf");
    run_ok(&[
        &"repack",
        &"--elements-per-blob",
        &"10",
        &world,
        &"-o",
        &output,
    ]);
    let frames = sound_frames(&output);
    let [.., long, last] = &frames[..] else {
        panic!("{} blobs", frames.len());
    };
    assert!(long.frame_len > 10_000 && last.frame_len < 2_000);
    assert_eq!(decode::block(&last.payload).len(), 1);
    assert!(decode::objects(&output) == decode::objects(&world));
}

#[test]
fn a_file_is_the_same_after_cat_and_nothing_else_is_decoded() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let [once, twice, stats] =
        ["1.osm.pbf", "2.osm.pbf", "s.json"].map(|name| dir.path().join(name));
    run_ok(&[&"cat", &world, &"-o", &once]);
    run_ok(&[&"cat", &once, &"-o", &twice, &"--stats", &stats]);
    assert!(std::fs::read(&once).unwrap() == std::fs::read(&twice).unwrap());
    let stats: serde_json::Value = serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
    assert!(stats["blobs_decoded"].as_u64() <= Some(1), "{stats}");
}

#[test]
fn versions_of_an_object_stay_together() {
    let dir = tempfile::tempdir().unwrap();
    let version = |id: i64, version: i64| Object {
        version: Some(version),
        timestamp: Some(version),
        ..node(id, 1, 2, &[("note", &format!("{id} {}", "x".repeat(900)))])
    };
    let mut objects: Vec<Object> = (1..30).map(|id| version(id, 1)).collect();
    objects.extend((1..8).map(|number| version(30, number)));
    let input = history_of(dir.path(), "h.osh.pbf", &[&objects]);
    let output = dir.path().join("o.osh.pbf");
    run_ok(&[&"cat", &input, &"-o", &output]);
    let frames = sound_frames(&output);
    let counts = frames
        .iter()
        .map(|frame| decode::block(&frame.payload).len());
    assert_eq!(counts.collect::<Vec<_>>(), [29, 7]);
    let report = run_ok(&[&"inspect", &"--json", &output]).stdout;
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["sorted"], true);
    assert!(decode::objects(&output) == objects);
}

#[test]
fn a_very_long_last_object_leaves_the_table_to_a_blob_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let members: Vec<_> = (1..40_000)
        .map(|id| (Kind::Node, id * 1_000_003, "role"))
        .collect();
    let long = [relation(1, &members, &[])];
    let input = file_of(dir.path(), "in.osm.pbf", &[&[node(1, 2, 3, &[])], &long]);
    let [output, again] = ["o.osm.pbf", "a.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[&"cat", &input, &"-o", &output]);
    let frames = decode::all_frames(&output);
    assert!(!decode::has_group(frames.last().unwrap()) && decode::has_table(&output));
    run_ok(&[&"inspect", &"--indexed", &output]);
    assert!(decode::objects(&output) == decode::objects(&input));
    // A shorter object behind it gets the table.
    let short = file_of(dir.path(), "short.osm.pbf", &[&[relation(2, &[], &[])]]);
    run_ok(&[&"cat", &output, &short, &"-o", &again]);
    sound_frames(&again);
    // A file without objects has no other place for the table.
    let empty = file_of(dir.path(), "empty.osm.pbf", &[]);
    run_ok(&[&"cat", &empty, &"-O", &"-o", &again]);
    run_ok(&[&"inspect", &"--indexed", &again]);
    assert!(decode::objects(&again).is_empty() && decode::has_table(&again));
}

#[test]
fn daily_additions_leave_no_small_blobs_behind() {
    let dir = tempfile::tempdir().unwrap();
    let nodes: Vec<Object> = (1..9000).map(|id| node(id, 1, 2, &[])).collect();
    let ways: Vec<Object> = (1..3000)
        .map(|id| way(id, &[1, 2], &[("highway", "x")]))
        .collect();
    let input = file_of(dir.path(), "in.osm.pbf", &[&nodes, &ways]);
    let base = dir.path().join("base.osm.pbf");
    run_ok(&[&"cat", &input, &"-o", &base]);
    for day in 0..40 {
        let changes = dir.path().join("day.osc");
        let way =
            |id| format!("<way id='{id}' version='1'><nd ref='1'/><tag k='note' v='{id}'/></way>");
        let new: String = (0..25).map(|index| way(3000 + day * 25 + index)).collect();
        std::fs::write(
            &changes,
            format!("<osmChange version='0.6'><create>{new}</create></osmChange>"),
        )
        .unwrap();
        run_ok(&[&"apply-changes", &"-O", &base, &changes, &"-o", &base]);
    }
    let frames = sound_frames(&base);
    assert!(frames.len() <= 5, "{} blobs", frames.len());
    assert_eq!(decode::objects(&base).len(), 8999 + 2999 + 1000);
}

#[test]
fn damage_to_the_table_harms_no_object_and_damage_to_an_object_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let input = file_of(
        dir.path(),
        "in.osm.pbf",
        &[&[node(1, 2, 3, &[("name", "Rathaus")])]],
    );
    let [path, output] = ["d.osm.pbf", "o.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[&"cat", &input, &"-o", &path]);
    let whole = std::fs::read(&path).unwrap();
    let at = |text: &[u8]| {
        whole
            .windows(text.len())
            .position(|window| window == text)
            .unwrap()
    };
    for (byte, is_object) in [(at(b"Rathaus"), true), (at(b"Rathaus") + 60, false)] {
        let mut damaged = whole.clone();
        damaged[byte] ^= 1;
        std::fs::write(&path, damaged).unwrap();
        let answer = ask(&[&"cat", &path, &"-O", &"-o", &output]);
        let message = &answer.stderr;
        assert!(
            message.contains("the table of contents cannot be read"),
            "{message}"
        );
        assert_eq!(answer.status, if is_object { 2 } else { 0 }, "{message}");
        if !is_object {
            assert!(decode::objects(&output) == decode::objects(&input));
        }
    }
}

/// A table of version 2, which is in a blob of its own, is used; `cat` gives it a place beside an object.
#[test]
fn a_table_of_version_2_is_read_and_rewritten() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let old = root.join("tests/fixtures/table-version-2.osm.pbf");
    assert!(!decode::has_group(decode::all_frames(&old).last().unwrap()));
    run_ok(&[&"inspect", &"--indexed", &old]);
    let dir = tempfile::tempdir().unwrap();
    let [new, stream] = ["new.osm.pbf", "stream.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[&"cat", &old, &"-o", &new]);
    sound_frames(&new);
    assert!(decode::objects(&new) == decode::objects(&old));
    std::fs::write(&stream, run_ok(&[&"cat", &old, &"-o", &"-"]).stdout).unwrap();
    sound_frames(&stream);
    assert!(decode::objects(&stream) == decode::objects(&old));
}

#[test]
fn days_of_new_objects_leave_a_large_blob_alone_and_fill_a_small_one() {
    let dir = tempfile::tempdir().unwrap();
    // From 100 blobs on, two objects have the table beside them.
    let mut blobs: Vec<Vec<Object>> = (1..=110).map(|id| vec![node(id, id, id, &[])]).collect();
    blobs.push(
        (1..=1500)
            .map(|id| relation(id, &[(Kind::Node, 1, "")], &[]))
            .collect(),
    );
    let blobs: Vec<&[Object]> = blobs.iter().map(Vec::as_slice).collect();
    let plain = file_of(dir.path(), "plain.osm.pbf", &blobs);
    let mut base = dir.path().join("base.osm.pbf");
    run_ok(&[&"cat", &plain, &"-o", &base]);
    let mut most = 0;
    for day in 0..if is_long() { 60 } else { 25 } {
        // Each day changes a relation of the large blob, too.
        let mut body = format!(
            "<modify><relation id='{}' version='2'/></modify><create>",
            1 + day
        );
        for new in 0..9 {
            body += &format!("<relation id='{}' version='1'/>", 2000 + day * 9 + new);
        }
        let changes = change_file(dir.path(), "day.osc", &(body + "</create>"));
        let next = dir.path().join(format!("{day}.osm.pbf"));
        run_ok(&[&"apply-changes", &base, &changes, &"-o", &next]);
        base = next;
        let blocks = sound_frames(&base).into_iter();
        let mut counts: Vec<usize> = blocks
            .map(|frame| decode::block(&frame.payload).len())
            .collect();
        let counts = counts.split_off(110);
        let total = counts.iter().sum::<usize>() as i32;
        assert_eq!(total, 1500 + (day + 1) * 9);
        if day == 0 {
            assert_eq!(counts, [1498, 9, 1, 1]);
        }
        most = most.max(counts.len());
    }
    assert_eq!(most, 4);
}
