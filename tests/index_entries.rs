//! Entries of indexes may be wrong. Every command that decodes a blob detects a wrong entry of it, and so does
//! `check --index`.

use crate::common::answers::ask;
use crate::common::craft::{self, Shape};
use crate::common::every::{self, run_with};
use crate::common::oracle::real_files;
use crate::common::{
    Arg, Kind, Object, decode, node, relation, run_fail, run_ok, small_world, way,
};
use pbfhogg::Context;
use pbfhogg::unstable::file::{BlobPlan, PbfFile, PlanNeeds, summary_of, toc_of};
use pbfhogg::unstable::osm::{KindSet, ObjectKind};
use pbfhogg::unstable::pbf::{
    BlobEntry, BlobFlags, Toc, TocFlags, TocPointer, TocSummary, encode_blob_index, encode_toc,
    encode_toc_frames, flags_mut, header_frame, statistics_mut,
};
use std::path::{Path, PathBuf};

/// Two blobs of nodes, one of ways, one of relations.
fn blocks() -> Vec<Vec<Object>> {
    let nodes = |ids: std::ops::Range<i64>| {
        let at = |id: i64| node(id, id * 1000, id * 1000, &[("highway", "stop")]);
        ids.map(at).collect::<Vec<_>>()
    };
    let ways = (1..30).map(|id| way(id, &[id, id + 1, 150], &[("highway", "path")]));
    let member = |id: i64| [(Kind::Way, id, "outer"), (Kind::Node, 150, "label")];
    let relations = (1..30).map(|id| relation(id, &member(id), &[("type", "route")]));
    vec![
        nodes(1..100),
        nodes(100..200),
        ways.collect(),
        relations.collect(),
    ]
}

fn file_of(blocks: &[Vec<Object>]) -> Vec<u8> {
    let shape = Shape::USUAL;
    let blocks = blocks.iter().map(|objects| craft::block(objects, &shape));
    let header = craft::header_payload(&["OsmSchema-V0.6", "DenseNodes"], &["Sort.Type_then_ID"]);
    craft::file(header, &blocks.collect::<Vec<_>>())
}

/// Writes a file with a table of contents whose entries are changed by `lie`, and without the summary of the table.
fn with_table(plain: &Path, path: &Path, lie: impl Fn(&mut [BlobEntry])) {
    with_table_and_summary(plain, path, lie, |_| None);
}

/// Writes a file with a table of contents whose entries are changed by `lie`, and the summary that `summarize` makes of
/// them.
fn with_table_and_summary(
    plain: &Path,
    path: &Path,
    lie: impl Fn(&mut [BlobEntry]),
    summarize: impl Fn(BlobPlan) -> Option<TocSummary>,
) {
    run_ok(&[&"cat", &"-O", &"--no-index", &plain, &"-o", &path]);
    let file = PbfFile::open(path, &Context::new(1)).unwrap();
    let mut plan = BlobPlan::open(&file, PlanNeeds::Order, &Context::new(1)).unwrap();
    let flags = TocFlags {
        sorted: plan.is_sorted() == Some(true),
        ..TocFlags::default()
    };
    let mut toc = Toc {
        data_end: file.data_end,
        flags,
        entries: plan.entries.clone(),
    };
    lie(&mut toc.entries);
    plan.entries.clone_from(&toc.entries);
    let summary = summarize(plan);
    let start = toc.data_end;
    let frames = encode_toc_frames(&encode_toc(&toc, file.data_start), start, &[], false).unwrap();
    let pointer = TocPointer::At {
        start,
        file_len: start + frames.len() as u64,
    };
    let mut bytes = header_frame(
        &file.header,
        Some(pointer),
        summary.as_ref(),
        file.data_start as usize,
    )
    .unwrap();
    let data = std::fs::read(path).unwrap();
    bytes.extend(&data[file.data_start as usize..start as usize]);
    bytes.extend(frames);
    std::fs::write(path, bytes).unwrap();
}

/// Returns the entries in the table of contents of a file.
fn entries_of(path: &Path) -> Vec<BlobEntry> {
    let file = PbfFile::open(path, &Context::new(1)).unwrap();
    toc_of(&file).unwrap().entries.clone()
}

/// The expected cause in the error, and a false change to an entry.
type Lie = (&'static str, fn(&mut BlobEntry));

/// Wrong entries that every command that reads the blob must detect.
const LIES: [Lie; 6] = [
    ("the number of objects differs", |entry| entry.count += 1),
    ("the number of objects differs", |entry| entry.count -= 1),
    ("the range of ids differs", |entry| entry.max_id += 7),
    ("the range of ids differs", |entry| entry.min_id += 1),
    ("the range of ids differs", |entry| entry.max_id -= 1),
    ("the content differs", |entry| entry.hash ^= 1),
];

/// Further wrong entries, which `check --index` finds.
const FALSE_FACTS: &[Lie] = &[
    ("the bounding box of the nodes differs", |entry| {
        entry.bbox.min_lat_e7 += 1
    }),
    ("the length of the content differs", |entry| {
        entry.payload_len += 1
    }),
    ("the kinds of objects differ", |entry| {
        entry.kinds = KindSet::of(ObjectKind::Way)
    }),
    ("whether ways have locations differs", |entry| {
        flags_mut(entry).set(BlobFlags::LOCATIONS, true)
    }),
    ("whether there are deleted versions differs", |entry| {
        flags_mut(entry).set(BlobFlags::DELETED, true)
    }),
    ("whether nodes are dense differs", |entry| {
        flags_mut(entry).set(BlobFlags::DENSE, false)
    }),
    ("the statistics of the objects differ", |entry| {
        statistics_mut(entry).unwrap().tagged -= 1
    }),
    ("the statistics of the objects differ", |entry| {
        statistics_mut(entry).unwrap().last_timestamp += 1
    }),
    ("the length of the frame differs", |entry| {
        entry.header_len += 1
    }),
];

struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bench = Self { dir };
        std::fs::write(bench.path("plain.osm.pbf"), file_of(&blocks())).unwrap();
        let changes = "<osmChange version='0.6'><modify>\
            <node id='50' version='9' lat='1' lon='1'/><node id='150' version='9' lat='1' lon='1'/>\
            <way id='5' version='9'><nd ref='1'/></way><relation id='5' version='9'/>\
            </modify></osmChange>";
        std::fs::write(bench.path("day.osc"), changes).unwrap();
        let mut other = blocks();
        for objects in &mut other {
            objects.retain(|object| object.id % 2 == 0);
        }
        std::fs::write(bench.path("other.osm.pbf"), file_of(&other)).unwrap();
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs every command on a file with a wrong entry. Each command must report it, except those that `may_pass` knows
    /// not to read the blob.
    fn finds(&self, input: &Path, cause: &str, blob: u32, may_pass: fn(&str) -> bool) {
        let words = [
            ("{in}", input.to_owned()),
            ("{other}", self.path("other.osm.pbf")),
            ("{day}", self.path("day.osc")),
            ("{out}", self.path("out")),
        ];
        let words = words.each_ref().map(|(name, path)| (*name, path.as_path()));
        for command in every::lines(&["reads"]) {
            let ran = run_with(command, &words);
            let place = format!("blob {blob} at byte");
            let is_it = |error: &str| error.contains(cause) && error.contains(&place);
            if ran.status == Some(2) && ran.error().is_some_and(is_it) {
                let is_left = every::remove_outputs(words[3].1);
                assert!(!is_left, "{command}: an output was left");
            } else {
                let what = format!("{command}: {:?}, {}", ran.status, ran.stderr);
                assert!(
                    may_pass(command) && ran.status != Some(2),
                    "expected {cause}: {what}"
                );
                every::remove_outputs(words[3].1);
            }
        }
    }
}

/// Whether a command reads no nodes, or none of the blobs in question.
fn passes_nodes(command: &str) -> bool {
    every::has(command, &["no-nodes"])
}

/// Whether a command does not decode nodes with a table of contents that has statistics.
fn trusts_statistics(command: &str) -> bool {
    every::has(command, &["no-nodes", "statistics"])
}

#[test]
fn a_wrong_table_of_contents_is_found_out_by_whoever_decodes_a_blob() {
    let bench = Bench::new();
    let input = bench.path("in.osm.pbf");
    for (cause, lie) in LIES {
        with_table(&bench.path("plain.osm.pbf"), &input, |entries| {
            lie(&mut entries[1])
        });
        bench.finds(&input, cause, 2, trusts_statistics);
    }
}

#[test]
fn a_wrong_index_of_a_blob_is_found_out_by_whoever_decodes_it() {
    let bench = Bench::new();
    let usual = bench.path("usual.osm.pbf");
    with_table(&bench.path("plain.osm.pbf"), &usual, |_| ());
    let entries = entries_of(&usual);
    for (cause, lie) in LIES
        .into_iter()
        .filter(|(cause, _)| !cause.contains("content"))
    {
        let mut entries = entries.clone();
        lie(&mut entries[1]);
        let header =
            craft::header_payload(&["OsmSchema-V0.6", "DenseNodes"], &["Sort.Type_then_ID"]);
        let mut file = craft::frame("OSMHeader", &craft::zlib_blob(&header));
        for (entry, objects) in entries.iter().zip(blocks()) {
            let blob = craft::zlib_blob(&craft::block(&objects, &Shape::USUAL));
            let index = encode_blob_index(entry).unwrap();
            file.extend(craft::frame_with_index("OSMData", &index, &blob));
        }
        let input = bench.path("in.osm.pbf");
        std::fs::write(&input, file).unwrap();
        bench.finds(&input, cause, 2, passes_nodes);
    }
}

#[test]
fn a_box_that_leaves_nodes_out_is_found_out_where_it_counts() {
    let bench = Bench::new();
    let input = bench.path("in.osm.pbf");
    with_table(&bench.path("plain.osm.pbf"), &input, |entries| {
        entries[0].bbox.max_lat_e7 -= 50;
    });
    for box_of_degrees in ["0,0,1,1", "0.005,0.005,0.015,0.015"] {
        let output = bench.path("out.osm.pbf");
        let message = run_fail(&[&"extract", &"-b", &box_of_degrees, &input, &"-o", &output]);
        assert!(message.contains("blob 1 at byte"), "{message}");
        assert!(
            message.contains("nodes lie outside of the box"),
            "{message}"
        );
    }
}

#[test]
fn blobs_out_of_the_stated_order_are_detected() {
    let bench = Bench::new();
    let (plain, input) = (bench.path("unsorted.osm.pbf"), bench.path("in.osm.pbf"));
    let mut blocks = blocks();
    blocks[1].swap(3, 7);
    std::fs::write(&plain, file_of(&blocks)).unwrap();
    with_table(&plain, &input, |entries| {
        flags_mut(&mut entries[1]).set(BlobFlags::SORTED, true);
        flags_mut(&mut entries[1]).set(BlobFlags::UNIQUE_IDS, true);
    });
    bench.finds(
        &input,
        "ids are not in the order that the index states",
        2,
        trusts_statistics,
    );
}

#[test]
fn versions_out_of_the_stated_order_are_detected() {
    let bench = Bench::new();
    let (plain, input) = (bench.path("history.osm.pbf"), bench.path("in.osm.pbf"));
    let version = |number: i64| Object {
        version: Some(number),
        timestamp: Some(1_000_000_000),
        ..node(150, 1, 1, &[])
    };
    let required = ["OsmSchema-V0.6", "DenseNodes", "HistoricalInformation"];
    let header = craft::header_payload(&required, &["Sort.Type_then_ID"]);
    let block = craft::block(&[version(2), version(1)], &Shape::USUAL);
    std::fs::write(&plain, craft::file(header, &[block])).unwrap();
    with_table(&plain, &input, |entries| {
        flags_mut(&mut entries[0]).set(BlobFlags::SORTED, true);
        flags_mut(&mut entries[0]).set(BlobFlags::HASHED, false);
    });
    let (other, output) = (bench.path("other.osm.pbf"), bench.path("out.osm.pbf"));
    for command in ["merge", "sort"] {
        let message = run_fail(&[&command, &"-O", &input, &other, &"-o", &output]);
        assert!(message.contains("ids are not in the order"), "{message}");
    }
}

#[test]
fn blobs_skipped_according_to_the_index_are_counted() {
    let bench = Bench::new();
    let input = bench.path("in.osm.pbf");
    with_table(&bench.path("plain.osm.pbf"), &input, |_| ());
    let output = bench.path("out.osm.pbf");
    for (command, passed_over) in [
        (&[&"getid" as Arg, &input, &"n5"][..], "3 blobs"),
        (&[&"cat", &"-t", &"way", &input], "3 blobs"),
        (&[&"tags-filter", &"-R", &input, &"r/type=route"], "3 blobs"),
    ] {
        let said = ask(&[command, &[&"-v", &"-O", &"-o", &output]].concat()).stderr;
        assert!(
            said.contains(&format!("{passed_over} skipped according to the index")),
            "{said}"
        );
    }
    // Without an index no blob is skipped.
    let plain = bench.path("plain.osm.pbf");
    let said = ask(&[&"cat", &"-v", &"-t", &"way", &plain, &"-O", &"-o", &output]).stderr;
    assert!(!said.contains("skipped according"), "{said}");
}

#[test]
fn check_index_finds_every_lie_and_every_rotten_bit() {
    let bench = Bench::new();
    let (plain, input) = (bench.path("plain.osm.pbf"), bench.path("in.osm.pbf"));
    with_table(&plain, &input, |_| ());
    let said = ask(&[&"check", &"--index", &input]);
    assert_eq!(said.status, 0, "{said:?}");
    assert!(
        said.stdout
            .contains("4 blobs; 4 in the table of contents, 4 of them with a hash"),
        "{said:?}"
    );
    for (cause, lie) in LIES.into_iter().chain(FALSE_FACTS.iter().copied()) {
        with_table(&plain, &input, |entries| lie(&mut entries[1]));
        let said = ask(&[&"check", &"--index", &input]);
        assert_eq!(said.status, 1, "{cause}: {said:?}");
        let line = format!(": the table of contents: {cause}");
        let found = said.stdout.lines().filter(|found| found.contains(&line));
        assert_eq!(found.count(), 1, "{cause}: {said:?}");
        assert!(said.stdout.contains("  blob 2 at byte"), "{said:?}");
        assert!(said.stdout.contains("index: 1 difference;"), "{said:?}");
    }
    // A flipped bit in any blob.
    with_table(&plain, &input, |_| ());
    let good = std::fs::read(&input).unwrap();
    let entries = entries_of(&input);
    for (number, entry) in (1..).zip(&entries) {
        let start = entry.offset + u64::from(entry.header_len) + 6;
        for byte in (start..entry.end()).step_by(23) {
            let mut rotten = good.clone();
            rotten[byte as usize] ^= 4;
            std::fs::write(&input, rotten).unwrap();
            let said = ask(&[&"check", &"--index", &input]);
            assert_eq!(said.status, 1, "byte {byte}: {said:?}");
            let place = format!("  blob {number} at byte {}: ", entry.offset);
            assert!(said.stdout.contains(&place), "byte {byte}: {said:?}");
        }
    }
}

#[test]
fn a_repaired_file_has_a_table_of_contents_of_its_own() {
    let bench = Bench::new();
    let [plain, input, output] =
        ["plain", "in", "out"].map(|name| bench.path(&format!("{name}.osm.pbf")));
    let expected = decode::objects(&plain);
    for (cause, lie) in LIES.into_iter().chain(FALSE_FACTS.iter().copied()) {
        with_table(&plain, &input, |entries| lie(&mut entries[1]));
        let repaired = ask(&[&"repair", &"-O", &input, &"-o", &output]);
        assert!(repaired.status < 2, "{cause}: {repaired:?}");
        let said = ask(&[&"check", &"--index", &"--full", &output]);
        assert_eq!(said.status, 0, "{cause}: {said:?}");
        assert!(
            decode::objects(&output) == expected,
            "{cause}: {repaired:?}"
        );
    }
}

/// The report of `inspect -e` as JSON, by the summary in the header and by the whole table of contents.
fn reports(path: &Path) -> [serde_json::Value; 2] {
    let by_summary = run_ok(&[&"inspect", &"-e", &"--json", &path]);
    let by_table = run_ok(&[&"inspect", &"-e", &"--json", &"--id-ranges", &path]);
    [by_summary, by_table].map(|report| {
        let mut report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
        report.as_object_mut().unwrap().remove("id_ranges");
        report
    })
}

/// The number of bytes that `inspect` with `options` reads of a file.
fn bytes_read(options: &[Arg], path: &Path, dir: &Path) -> u64 {
    let stats = dir.join("stats.json");
    run_ok(&[options, &[&"--stats", &stats, &path]].concat());
    let stats: serde_json::Value = serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
    stats["bytes_read"].as_u64().unwrap()
}

#[test]
fn the_summary_in_the_header_says_what_the_table_of_contents_says() {
    let bench = Bench::new();
    let input = bench.path("in.osm.pbf");
    let mut files: Vec<PathBuf> = real_files();
    files.push(bench.path("plain.osm.pbf"));
    // Unsorted, versions that go on in the next blob, blobs of several kinds, no blobs.
    let mut unsorted = blocks();
    unsorted.swap(0, 1);
    let version = |number: i64| Object {
        version: Some(number),
        ..node(150, 1, 1, &[])
    };
    let versions = vec![vec![version(1)], vec![version(2)], vec![version(3)]];
    let mixed = vec![blocks().concat()];
    for (number, blocks) in (0..).zip([unsorted, versions, mixed, vec![]]) {
        let path = bench.path(&format!("awkward-{number}.osm.pbf"));
        std::fs::write(&path, file_of(&blocks)).unwrap();
        files.push(path);
    }
    for plain in files {
        run_ok(&[&"cat", &"-O", &plain, &"-o", &input]);
        let [by_summary, by_table] = reports(&input);
        assert_eq!(by_summary, by_table, "{}", plain.display());
        let said = ask(&[&"check", &"--index", &input]);
        assert_eq!(said.status, 0, "{}: {said:?}", plain.display());
    }
}

#[test]
fn a_question_about_the_whole_file_reads_no_table() {
    let bench = Bench::new();
    let input = bench.path("in.osm.pbf");
    with_table(&bench.path("plain.osm.pbf"), &input, |_| ());
    let question: [Arg; 3] = [&"inspect", &"--get", &"metadata.all_objects.user"];
    let without = bytes_read(&question, &input, bench.dir.path());
    with_table_and_summary(
        &bench.path("plain.osm.pbf"),
        &input,
        |_| (),
        |plan| summary_of(&plan, TocFlags::default()),
    );
    let with = bytes_read(&question, &input, bench.dir.path());
    assert!(with < without, "{with}, {without}");
    let said = ask(&[&"inspect", &"--indexed", &input]);
    assert!(said.stdout.contains("table of contents"), "{said:?}");
}

#[test]
fn a_summary_that_does_not_fit_the_file_is_not_used() {
    let bench = Bench::new();
    let (plain, input) = (bench.path("plain.osm.pbf"), bench.path("in.osm.pbf"));
    let objects = |path: &Path| {
        let said = ask(&[&"inspect", &"--get", &"objects", &path]);
        (said.stdout.trim().to_owned(), said.stderr)
    };
    run_ok(&[&"cat", &plain, &"-o", &input]);
    let (right, _) = objects(&plain);
    // Data was appended.
    let mut bytes = std::fs::read(&input).unwrap();
    let frame = craft::frame(
        "OSMData",
        &craft::zlib_blob(&craft::block(&blocks()[0], &Shape::USUAL)),
    );
    let more = bytes.len();
    bytes.extend(&frame);
    std::fs::write(&input, &bytes).unwrap();
    let (found, said) = objects(&input);
    assert!(found != right && said.contains("stale"), "{found}: {said}");
    // The end of the file is not a table of contents.
    bytes.truncate(more);
    let trailer = b"contents at byte ";
    let trailer = bytes
        .windows(trailer.len())
        .rposition(|window| window == trailer);
    bytes[trailer.unwrap()] ^= 1;
    std::fs::write(&input, &bytes).unwrap();
    let (found, said) = objects(&input);
    assert!(
        found == right && said.contains("not used"),
        "{found}: {said}"
    );
}

#[test]
fn check_index_finds_a_false_summary() {
    let bench = Bench::new();
    let (plain, input) = (bench.path("plain.osm.pbf"), bench.path("in.osm.pbf"));
    let false_summary = |mut plan: BlobPlan| {
        statistics_mut(&mut plan.entries[1]).unwrap().tagged += 1;
        summary_of(&plan, TocFlags::default())
    };
    with_table_and_summary(&plain, &input, |_| (), false_summary);
    let said = ask(&[&"check", &"--index", &input]);
    assert_eq!(said.status, 1, "{said:?}");
    assert!(
        said.stdout
            .contains("the summary of the table of contents differs"),
        "{said:?}"
    );
}

#[test]
fn one_function_says_which_index_a_file_has() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let empty = dir.path().join("empty.osm.pbf");
    std::fs::write(&empty, craft::plain_file(&[])).unwrap();
    let [foreign, plain] = ["foreign.osm.pbf", "plain.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[
        &"cat",
        &"--blob-index",
        &"--no-index",
        &world,
        &"-o",
        &foreign,
    ]);
    run_ok(&[&"cat", &"--no-index", &world, &"-o", &plain]);
    for (path, index, status) in [
        (&world, "table of contents", 0),
        (&foreign, "per-blob indexes", 1),
        (&plain, "none", 1),
        (&empty, "none", 1),
    ] {
        for args in [&["inspect", "--json"][..], &["inspect", "-e", "--json"]] {
            let args: Vec<Arg> = args.iter().map(|arg| arg as _).collect();
            let found = ask(&[args, vec![path]].concat()).json();
            assert_eq!(
                (&found["index"], &found["indexed"]),
                (&index.into(), &(status == 0).into())
            );
        }
        let said = ask(&[&"inspect", &"--indexed", path]);
        assert_eq!(said.status, status);
        assert!(said.stdout.contains(index), "{said:?}");
    }
}
