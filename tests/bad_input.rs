//! Bad input causes one clear line and exit status 2. No data is lost, and no output is left.

use crate::common;
use crate::common::bad_files::bad_files;
use crate::common::craft::{self, Message, Shape};
use crate::common::every::{self, Ran, run_with};
use crate::common::random::Random;
use crate::common::{decode, in_turn, is_long, node, run_fail, run_ok};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub fn block() -> Vec<u8> {
    let objects: Vec<_> = (1..20)
        .map(|id| node(id, id, id, &[("key", "value")]))
        .collect();
    craft::block(&objects, &Shape::USUAL)
}

pub struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Every command fails on the file, with a line that names the file and contains `cause`.
    pub fn refuses(&self, name: &str, bytes: &[u8], cause: &str) {
        let input = self.path(name);
        std::fs::write(&input, bytes).unwrap();
        let changes = self.path("empty.osc");
        std::fs::write(
            &changes,
            "<osmChange version='0.6'><delete><node id='3'/></delete></osmChange>",
        )
        .unwrap();
        let output = self.path("out.osm.pbf");
        let messages = [
            run_fail(&[&"cat", &input, &"-o", &output]),
            run_fail(&[&"inspect", &input]),
            run_fail(&[&"sort", &input, &"-o", &output]),
            run_fail(&[&"apply-changes", &input, &changes, &"-o", &output]),
        ];
        for message in messages {
            assert!(
                message.contains(name) && message.contains(cause),
                "{name}: {message}"
            );
        }
        self.nothing_left(&["empty.osc", name]);
        std::fs::remove_file(input).unwrap();
    }

    pub fn nothing_left(&self, but: &[&str]) {
        let names = std::fs::read_dir(self.dir.path()).unwrap();
        for entry in names {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(
                but.contains(&name.as_str()) || name == "base.osm.pbf",
                "{name} was left behind"
            );
        }
    }
}

/// Maximum time that a command may take to detect bad input. The slowest one takes 0.9 s (15 million ways without ids),
/// and 1.4 s on a machine whose processor is shared with others.
const MOST_TIME: Duration = Duration::from_secs(2);

/// All commands that read a file.
fn commands() -> impl Iterator<Item = &'static str> + Clone {
    every::lines(&["reads", "copies"]).into_iter()
}

/// A file to test, and the other files that [`commands`] need.
struct Trial {
    bench: Bench,
    input: PathBuf,
    other: PathBuf,
    day: PathBuf,
    output: PathBuf,
}

/// The result of a command on a file.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// Exit status 2, one line that names the file, and no output.
    Refused,
    /// Exit status 0 or 1.
    Taken,
    /// Any other result.
    Wrong,
}

impl Trial {
    fn new() -> Self {
        let bench = Bench::new();
        let trial = Self {
            input: bench.path("bad.osm.pbf"),
            other: bench.path("base.osm.pbf"),
            day: bench.path("day.osc"),
            output: bench.path("out"),
            bench,
        };
        std::fs::write(&trial.other, craft::plain_file(&[block()])).unwrap();
        let change = "<osmChange version='0.6'><modify><node id='5' version='9' lat='1' lon='1'/></modify></osmChange>";
        std::fs::write(&trial.day, change).unwrap();
        trial
    }

    fn run(&self, command: &str) -> (Outcome, Ran) {
        let words: [(&str, &Path); 4] = [
            ("{in}", &self.input),
            ("{other}", &self.other),
            ("{day}", &self.day),
            ("{out}", &self.output),
        ];
        let ran = run_with(command, &words);
        let is_told = ran
            .error()
            .is_some_and(|error| error.contains("bad.osm.pbf: "));
        let is_written = every::remove_outputs(&self.output);
        let outcome = match ran.status {
            Some(2) if is_told && !is_written => Outcome::Refused,
            Some(0 | 1) => Outcome::Taken,
            _ => Outcome::Wrong,
        };
        (outcome, ran)
    }

    /// Whether a command is faster than [`MOST_TIME`]. If `time` is longer, two more runs distinguish a slow command
    /// from a busy machine.
    fn is_quick(&self, command: &str, time: Duration) -> bool {
        time <= MOST_TIME || (0..2).any(|_| self.run(command).1.time <= MOST_TIME)
    }
}

/// Panics if there are failures, and lists all of them.
fn nothing_is(wrong: &[String]) {
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn every_rule_of_the_format_that_is_broken_is_told_by_every_command() {
    let trial = Trial::new();
    let mut wrong = Vec::new();
    for (turn, bad) in bad_files().into_iter().enumerate() {
        // In short runs, a file that every command has to refuse is tested with an eighteenth of them, in turn, any
        // other with a quarter of them.
        let turns = if bad.may_pass { 4 } else { 18 };
        std::fs::write(&trial.input, &bad.bytes).unwrap();
        let mut refused = 0;
        for command in in_turn(turn, turns, commands()) {
            let (outcome, ran) = trial.run(command);
            let may_pass = bad.may_pass || every::has(command, &["little"]);
            if outcome == Outcome::Refused {
                refused += 1;
            } else if outcome == Outcome::Wrong || !may_pass {
                wrong.push(format!("{}: {command}: {ran}", bad.rule));
            }
            if !trial.is_quick(command, ran.time) {
                wrong.push(format!("{}: {command}: {:?}", bad.rule, ran.time));
            }
        }
        // None of the commands that have their turn may need the broken part.
        let is_refused = |command| trial.run(command).0 == Outcome::Refused;
        if refused == 0 && !commands().any(is_refused) {
            wrong.push(format!("{}: nobody minds", bad.rule));
        }
    }
    trial.bench.nothing_left(&["bad.osm.pbf", "day.osc"]);
    nothing_is(&wrong);
}

#[test]
fn files_that_are_no_pbf_are_refused() {
    let bench = Bench::new();
    bench.refuses("empty.osm.pbf", b"", "empty");
    bench.refuses(
        "text.osm.pbf",
        b"This is a text file, and not a short one at that.\n",
        "not an OSM file (it looks like text)",
    );
    bench.refuses(
        "xml.osm.pbf",
        b"<?xml version='1.0'?><html></html>",
        "line 1, column 28: expected <osm>, not <html>",
    );
    bench.refuses("zeros.osm.pbf", &[0; 4096], "BlobHeader");
    let data_first = craft::frame("OSMData", &craft::zlib_blob(&block()));
    bench.refuses("headless.osm.pbf", &data_first, "not an OSMHeader");
}

/// With `PBFHOGG_LONG=1` every command is run at every byte, otherwise one command per byte in turn.
#[test]
fn a_file_cut_at_any_byte_is_refused_or_ends_between_two_blobs() {
    let trial = Trial::new();
    let plain = craft::plain_file(&[block(), block()]);
    let indexed = {
        let path = trial.bench.path("indexed.osm.pbf");
        std::fs::write(&trial.input, &plain).unwrap();
        run_ok(&[&"cat", &trial.input, &"-o", &path]);
        let indexed = std::fs::read(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        indexed
    };
    let mut wrong = Vec::new();
    let at_once = if is_long() { commands().count() } else { 1 };
    let mut commands = commands().cycle();
    for (name, file) in [("plain", plain), ("with an index", indexed)] {
        std::fs::write(&trial.input, &file).unwrap();
        let frames = decode::frames(&trial.input);
        let ends: Vec<usize> = frames[1..]
            .iter()
            .map(|frame| frame.offset as usize)
            .collect();
        // In short runs every seventh byte, and those between two blobs.
        let mut cuts: BTreeSet<usize> = in_turn(0, 7, 0..file.len()).collect();
        cuts.extend(ends.iter().copied().filter(|end| *end < file.len()));
        for cut in cuts {
            std::fs::write(&trial.input, &file[..cut]).unwrap();
            for command in commands.by_ref().take(at_once) {
                let (outcome, ran) = trial.run(command);
                // Without a table of contents, a file cut between two blobs cannot be recognised as incomplete.
                let is_whole = name == "plain" && ends.contains(&cut);
                let expected = if is_whole {
                    Outcome::Taken
                } else {
                    Outcome::Refused
                };
                if outcome != expected {
                    wrong.push(format!("{name}, {cut}: {command}: {ran}"));
                }
            }
        }
    }
    trial.bench.nothing_left(&["bad.osm.pbf", "day.osc"]);
    nothing_is(&wrong);
}

#[test]
fn blobs_that_are_not_what_they_say_are_refused_with_number_and_byte() {
    let bench = Bench::new();
    let header = || craft::plain_file(&[]);
    let with = |blob: Vec<u8>| [header(), craft::frame("OSMData", &blob)].concat();
    let place = format!("blob 1 at byte {}", header().len());
    let zlib = craft::zlib_blob(&block());
    let damaged = {
        let mut damaged = zlib.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0xff;
        damaged
    };
    for blob in [
        damaged,
        craft::lzma_blob(&block()),
        craft::bzip2_blob(&block()),
        Vec::new(),
    ] {
        bench.refuses("bad.osm.pbf", &with(blob), &place);
    }
    bench.refuses("lzma.osm.pbf", &with(craft::lzma_blob(&block())), "lzma");
    bench.refuses("bzip2.osm.pbf", &with(craft::bzip2_blob(&block())), "bzip2");
    let stored = {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut zlib, &block()).unwrap();
        zlib.finish().unwrap()
    };
    for raw_size in [
        0,
        1,
        block().len() as u64 - 1,
        block().len() as u64 + 1,
        33 << 20,
        1 << 60,
    ] {
        let blob = Message::new()
            .varint(2, raw_size)
            .bytes(3, &stored)
            .to_bytes();
        bench.refuses("size.osm.pbf", &with(blob), &place);
    }
}

#[test]
fn blocks_that_contradict_themselves_are_refused() {
    let bench = Bench::new();
    let with = |group: Message| {
        let strings = Message::new()
            .bytes(1, b"")
            .bytes(1, b"key")
            .bytes(1, b"value");
        let payload = Message::new()
            .message(1, strings)
            .message(2, group)
            .to_bytes();
        craft::plain_file(&[payload])
    };
    let dense = |lats: &[i64]| {
        Message::new().message(
            2,
            Message::new()
                .packed_deltas(1, &[3, 4])
                .packed_deltas(8, lats)
                .packed_deltas(9, &[1, 2]),
        )
    };
    bench.refuses("short.osm.pbf", &with(dense(&[1])), "2 ids but 1 latitudes");
    let no_id = Message::new().message(3, Message::new().packed_deltas(8, &[1]));
    bench.refuses("noid.osm.pbf", &with(no_id), "without id");
    bench.refuses(
        "garbage.osm.pbf",
        &craft::plain_file(&[vec![0xff; 100]]),
        "blob 1",
    );
}

#[test]
fn a_string_index_out_of_range_is_refused() {
    let bench = Bench::new();
    let strings = || Message::new().bytes(1, b"").bytes(1, b"key");
    let way = |id: u64| {
        Message::new()
            .varint(1, id)
            .packed_uint(2, &[1])
            .packed_uint(3, &[77])
            .packed_deltas(8, &[1])
    };
    let block = |ids: [u64; 2]| {
        let group = Message::new()
            .message(3, way(ids[0]))
            .message(3, way(ids[1]));
        Message::new()
            .message(1, strings())
            .message(2, group)
            .to_bytes()
    };
    bench.refuses(
        "strings.osm.pbf",
        &craft::plain_file(&[block([1, 2])]),
        "string index 77 is out of range",
    );
    bench.refuses(
        "unsorted.osm.pbf",
        &craft::plain_file(&[block([2, 1])]),
        "string index 77 is out of range",
    );
    let dense = Message::new()
        .packed_deltas(1, &[3])
        .packed_deltas(8, &[1])
        .packed_deltas(9, &[1]);
    let node = |tags: &[u64]| {
        let dense = dense.clone().packed_uint(10, tags);
        Message::new()
            .message(1, strings())
            .message(2, Message::new().message(2, dense))
            .to_bytes()
    };
    bench.refuses(
        "node.osm.pbf",
        &craft::plain_file(&[node(&[1, 9, 0])]),
        "string index 9 is out of range",
    );
    let input = bench.path("strings.osm.pbf");
    std::fs::write(&input, craft::plain_file(&[block([1, 2])])).unwrap();
    let reader = pbfhogg::ElementReader::from_path(&input).unwrap();
    let error = reader.for_each(|_| ()).unwrap_err().to_string();
    assert!(error.contains("string index 77"), "{error}");
}

#[test]
fn an_unknown_required_feature_is_refused_by_name() {
    let bench = Bench::new();
    let header = craft::header_payload(&["OsmSchema-V0.6", "Teleport-V2"], &[]);
    bench.refuses(
        "feature.osm.pbf",
        &craft::file(header, &[block()]),
        "Teleport-V2",
    );
}

#[test]
fn wrong_paths_and_options_are_refused_before_anything_is_written() {
    let bench = Bench::new();
    let (missing, output) = (bench.path("missing.osm.pbf"), bench.path("out.osm.pbf"));
    assert!(run_fail(&[&"cat", &missing, &"-o", &output]).contains("missing.osm.pbf"));
    let directory: &Path = bench.dir.path();
    assert!(run_fail(&[&"inspect", &directory]).contains("directory"));
    let status = common::pbfhogg()
        .args(["cat", "--frobnicate"])
        .output()
        .unwrap()
        .status;
    assert_eq!(status.code(), Some(2));
    let input = bench.path("base.osm.pbf");
    std::fs::write(&input, craft::plain_file(&[block()])).unwrap();
    let nowhere = bench.path("no/such/folder/out.osm.pbf");
    assert!(run_fail(&[&"cat", &input, &"-o", &nowhere]).contains("out.osm.pbf"));
    let other = bench.path("out.txt");
    assert!(run_fail(&[&"sort", &input, &"-o", &other]).contains("-f sets it"));
    for (format, cause) in [
        ("opl.xz", "expected pbf, osm"),
        ("opl,colour=true", "is not an option of a format"),
        ("opl,add_metadata=age", "'age' is not true"),
        ("osm,locations_on_ways=maybe", "expected true or false"),
        ("pbf,pbf_compression_level=13", "zlib has levels 1 to 12"),
    ] {
        let message = run_fail(&[&"sort", &input, &"-f", &format, &"-o", &output]);
        assert!(message.contains(cause), "{format}: {message}");
    }
    let message = run_fail(&[&"cat", &missing, &"-o", &output]);
    assert_eq!(message.matches("No such file").count(), 1, "{message}");
    bench.nothing_left(&[]);
}

#[test]
fn a_table_of_contents_that_asks_for_much_memory_is_not_believed() {
    let bench = Bench::new();
    // Runs of millions of entries, encoded in a few bytes.
    let mut table = b"HOGG\x01".to_vec();
    table.extend(1_000_000u64.to_le_bytes());
    table.extend([0, 0xff, 0xff, 0xff, 0x07]);
    for column in 3..=9u8 {
        table.extend([column, 6, 1, 2, 0xff, 0xff, 0xff, 0x07]);
    }
    table.extend(crc32c::crc32c(&table).to_le_bytes());
    let header = Message::new()
        .bytes(4, b"OsmSchema-V0.6")
        .bytes(1001, &table)
        .to_bytes();
    let input = bench.path("bomb.osm.pbf");
    let mut file = craft::file(header, &[block()]);
    file.resize(1_000_000, 0);
    std::fs::write(&input, file).unwrap();
    let script = format!(
        "ulimit -v 1000000; exec {} inspect {}",
        env!("CARGO_BIN_EXE_pbfhogg"),
        input.display()
    );
    let result = std::process::Command::new("bash")
        .args(["-c", &script])
        .output()
        .unwrap();
    assert_eq!(
        result.status.code(),
        Some(2),
        "{}",
        String::from_utf8_lossy(&result.stderr)
    );
}

/// With `PBFHOGG_LONG=1` a hundred times as many cases.
#[test]
fn random_damage_is_refused_or_does_no_harm() {
    let trial = Trial::new();
    let file = craft::plain_file(&[block(), craft::mixed_block()]);
    let mut random = Random(1);
    let mut wrong = Vec::new();
    let rounds = if is_long() { 15_000 } else { 80 };
    for (round, command) in (0..rounds).zip(commands().cycle()) {
        let mut damaged = file.clone();
        for _ in 0..1 + round % 4 {
            let at = random.below(damaged.len());
            damaged[at] = random.bits(8) as u8;
        }
        std::fs::write(&trial.input, &damaged).unwrap();
        let (outcome, ran) = trial.run(command);
        if outcome == Outcome::Wrong {
            wrong.push(format!("round {round}: {command}: {ran}"));
        }
    }
    trial.bench.nothing_left(&["bad.osm.pbf", "day.osc"]);
    nothing_is(&wrong);
}
