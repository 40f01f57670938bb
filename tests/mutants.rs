//! Mutated files: every command ends with status 0, 1 or 2, in bounded memory and time, and leaves no output if it
//! fails. `PBFHOGG_MUTANTS=2000` tries so many files with all commands (`.ci/long mutants`), those of the program
//! `PBFHOGG_PROGRAM` if it is given; a sample is always tried.

use crate::common::every::{COPIERS, READERS};
use crate::common::{craft, decode, mixed_objects};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Numbers that follow from a seed (SplitMix64).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// A part of something of a length.
    fn range(&mut self, len: usize, most: usize) -> std::ops::Range<usize> {
        let start = self.below(len);
        start..(start + 1 + self.below(most)).min(len)
    }
}

/// A file in parts: the type and the payload of each blob.
type Blobs = Vec<(String, Vec<u8>)>;

fn blobs_of(path: &Path) -> Blobs {
    let frames = decode::all_frames(path).into_iter();
    let parts = frames.map(|frame| (frame.blob_type, frame.payload));
    parts.take(5).collect()
}

/// Small files of several shapes, and the first blobs of real ones.
fn seeds() -> Vec<Blobs> {
    let dir = tempfile::tempdir().unwrap();
    let mut seeds = Vec::new();
    let mut add = |bytes: Vec<u8>| {
        let path = dir.path().join("seed.osm.pbf");
        fs::write(&path, bytes).unwrap();
        seeds.push(blobs_of(&path));
    };
    for layout in craft::Layout::ALL {
        for (dense, history) in [(true, false), (false, true)] {
            let shape = craft::Shape {
                layout,
                dense,
                history,
                ..craft::Shape::USUAL
            };
            let block = craft::block(&mixed_objects(), &shape);
            add(craft::plain_file(&[block.clone(), block]));
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut files: Vec<PathBuf> = ["data", "fixtures"]
        .iter()
        .filter_map(|name| fs::read_dir(root.join(name)).ok())
        .flat_map(|entries| entries.map(|entry| entry.unwrap().path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "pbf"))
        .filter(|path| fs::metadata(path).is_ok_and(|facts| facts.len() < 1 << 20))
        .collect();
    files.sort();
    for path in files {
        let mut blobs = blobs_of(&path);
        blobs.retain(|(_, payload)| payload.len() < 1 << 19);
        seeds.push(blobs);
    }
    seeds
}

/// Changes some bytes of a message.
fn mutate(bytes: &mut Vec<u8>, draw: &mut Draw) {
    for _ in 0..1 + draw.below(4) {
        let at = draw.below(bytes.len());
        match draw.below(7) {
            0 => bytes[at] ^= 1 << draw.below(8),
            1 => bytes[at] = draw.next() as u8,
            2 => bytes.truncate(at + 1),
            3 => drop(bytes.drain(draw.range(bytes.len(), 40))),
            // A number, a length or a count becomes large.
            4 => {
                let large = craft::varint(draw.next() >> draw.below(64));
                bytes.splice(at..(at + 1).min(bytes.len()), large);
            }
            // A part comes again, some times or very often.
            5 => {
                let range = draw.range(bytes.len(), 24);
                let times = [2, 100, 1 << 16][draw.below(3)];
                let again = bytes[range].repeat(times);
                bytes.splice(at..at, again);
            }
            _ => {
                let range = draw.range(bytes.len(), 200);
                let part = bytes[range].to_vec();
                bytes.splice(at..at, part);
            }
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
}

/// A file that follows from a seed.
fn mutant(seeds: &[Blobs], draw: &mut Draw) -> Vec<u8> {
    let mut blobs = seeds[draw.below(seeds.len())].clone();
    if draw.below(3) == 0 {
        let other = &seeds[draw.below(seeds.len())];
        let range = draw.range(other.len(), 3);
        let at = draw.below(blobs.len() + 1);
        blobs.splice(at..at, other[range].iter().cloned());
    }
    if draw.below(6) == 0 {
        let (one, two) = (draw.below(blobs.len()), draw.below(blobs.len()));
        blobs.swap(one, two);
    }
    // Most mutations are in the payload of a data blob.
    if draw.below(4) > 0 {
        let last = blobs.len().saturating_sub(1);
        let at = (1 + draw.below(last)).min(last);
        if draw.below(10) == 0 {
            mutate(&mut blobs[0].1, draw);
        } else {
            mutate(&mut blobs[at].1, draw);
        }
    }
    let mut file = Vec::new();
    for (kind, payload) in &blobs {
        let blob = match draw.below(8) {
            0 => craft::raw_blob(payload),
            1 => craft::zstd_blob(payload),
            _ => craft::zlib_blob(payload),
        };
        file.extend(craft::frame(kind, &blob));
    }
    if draw.below(4) == 0 {
        mutate(&mut file, draw);
    }
    file
}

/// The maximum number of bytes of data of a command with one job.
const MOST_BYTES: u64 = 420_000_000;
/// The maximum time of a command.
const MOST_TIME: Duration = Duration::from_secs(60);

/// Runs a command on a file. Returns what is wrong with it.
fn complaint(command: &str, dir: &Path) -> Result<i32, String> {
    let output = dir.join("out.osm.pbf");
    let mut tool = Command::new("prlimit");
    tool.arg(format!("--data={MOST_BYTES}"));
    tool.args(["timeout", "-s", "KILL", "120"]);
    let program = std::env::var_os("PBFHOGG_PROGRAM");
    tool.arg(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_pbfhogg").into()));
    for word in command.split_whitespace() {
        match word {
            "{in}" => tool.arg(dir.join("in.osm.pbf")),
            "{other}" => tool.arg(dir.join("other.osm.pbf")),
            "{day}" => tool.arg(dir.join("day.osc")),
            "{out}" => tool.arg(&output),
            word => tool.arg(word),
        };
    }
    let start = Instant::now();
    let ended = tool.arg("-j1").stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    let is_written = fs::remove_file(&output).is_ok();
    let errors = said.matches("pbfhogg: error: ").count();
    let fault = match ended.status.code() {
        Some(0 | 1) if errors > 0 => "an error without its status",
        Some(0 | 1) => "",
        Some(2) if is_written => "an output of a command that failed",
        Some(2) if errors != 1 => "not one error",
        Some(2) if said.contains("internal error") => "an internal error",
        Some(2) if said.contains("no memory is left") => "too much memory",
        Some(2) => "",
        _ => "a signal or a panic",
    };
    let fault = if start.elapsed() > MOST_TIME {
        "too much time"
    } else {
        fault
    };
    match fault {
        "" => Ok(ended.status.code().unwrap_or_default()),
        fault => Err(format!("{command}: {fault}: {said}")),
    }
}

#[test]
fn every_command_ends_well_on_mutated_files() {
    let asked = std::env::var("PBFHOGG_MUTANTS").ok();
    let asked = asked.and_then(|count| count.parse::<usize>().ok());
    let commands: Vec<&str> = READERS.into_iter().chain(COPIERS).collect();
    let (seeds, next) = (seeds(), AtomicUsize::new(0));
    let (wrong, ends) = (Mutex::new(Vec::new()), Mutex::new([0; 3]));
    let worker = || {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let other = craft::block(&mixed_objects(), &craft::Shape::USUAL);
        fs::write(path("other.osm.pbf"), craft::plain_file(&[other])).unwrap();
        let changes = "<osmChange version='0.6'><modify><node id='5' version='9' lat='1' lon='1'/></modify></osmChange>";
        fs::write(path("day.osc"), changes).unwrap();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= asked.unwrap_or(10) {
                return;
            }
            let bytes = mutant(&seeds, &mut Draw(number as u64));
            fs::write(path("in.osm.pbf"), &bytes).unwrap();
            // The sample has two commands for each file.
            let tried = (0..commands.len()).filter(|at| asked.is_some() || at % 15 == number % 15);
            for at in tried {
                match complaint(commands[at], dir.path()) {
                    Ok(status) => ends.lock().unwrap()[status as usize] += 1,
                    Err(fault) => wrong
                        .lock()
                        .unwrap()
                        .push(format!("mutant {number}: {fault}")),
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
        for _ in 0..threads {
            scope.spawn(worker);
        }
    });
    println!(
        "ended with status 0, 1, 2: {:?}",
        ends.into_inner().unwrap()
    );
    let wrong = wrong.into_inner().unwrap();
    assert!(
        wrong.is_empty(),
        "{} faults:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
