//! Change files with replication states, which are applied in pieces or at once.

use super::answers::{Answer, ask};
use super::{Arg, run_ok};
use flate2::Compression;
use flate2::write::GzEncoder;
use pbfhogg::unstable::osm::format_timestamp;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The seconds of a day.
pub const DAY: i64 = 86_400;

/// The time of the bases: 2024-01-01.
pub const START: i64 = 1_704_067_200;

/// The directory of the change files of a server.
const FOLDER: &str = "server/000/000";

/// A server in a directory, with a state file for each change file. The state 0 is that of the bases.
pub struct Pieces {
    directory: tempfile::TempDir,
    count: usize,
}

impl Pieces {
    pub fn new() -> Self {
        let pieces = Self {
            directory: tempfile::tempdir().unwrap(),
            count: 0,
        };
        fs::create_dir_all(pieces.path(FOLDER)).unwrap();
        pieces.write_state(START);
        pieces
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The number of change files.
    pub fn count(&self) -> usize {
        self.count
    }

    pub fn server(&self) -> PathBuf {
        self.path("server")
    }

    fn write_state(&self, time: i64) {
        let time = format_timestamp(time).replace(':', "\\:");
        let state = format!("sequenceNumber={}\ntimestamp={time}\n", self.count);
        let name = format!("{FOLDER}/{:03}.state.txt", self.count);
        fs::write(self.path(&name), &state).unwrap();
        fs::write(self.path("server/state.txt"), &state).unwrap();
    }

    /// Adds a change file with the given elements of `osmChange`. `days` is the time from the start to its state.
    pub fn add(&mut self, days: f64, elements: &str) {
        self.count += 1;
        let file = File::create(self.change(self.count)).unwrap();
        let mut gzip = GzEncoder::new(file, Compression::fast());
        write!(gzip, "<osmChange version='0.6'>{elements}</osmChange>").unwrap();
        gzip.finish().unwrap();
        self.write_state(START + (days * DAY as f64) as i64);
    }

    /// The change file with a number from 1.
    pub fn change(&self, number: usize) -> PathBuf {
        self.path(&format!("{FOLDER}/{number:03}.osc.gz"))
    }

    /// Makes a file of OPL with the state 0.
    pub fn base(&self, name: &str, opl: &str) -> PathBuf {
        let (text, path) = (
            self.path(&format!("{name}.opl")),
            self.path(&format!("{name}.osm.pbf")),
        );
        fs::write(&text, opl).unwrap();
        let time = format!("osmosis_replication_timestamp={}", format_timestamp(START));
        let header: [Arg; 4] = [
            &"--output-header",
            &"osmosis_replication_sequence_number=0",
            &"--output-header",
            &time,
        ];
        let cat: [Arg; 6] = [&"cat", &"-q", &"-O", &text, &"-o", &path];
        run_ok(&[&cat[..], &header[..]].concat());
        path
    }

    /// Makes a file of another one by `add-locations-to-ways` with the given options.
    pub fn locate(&self, plain: &Path, name: &str, options: &[&str]) -> PathBuf {
        let path = self.path(&format!("{name}.osm.pbf"));
        let mut args: Vec<Arg> = vec![&"add-locations-to-ways", &"-q", &"-O", &plain];
        args.extend(options.iter().map(|option| option as Arg));
        args.extend([&"-o" as Arg, &path]);
        run_ok(&args);
        path
    }

    /// Applies change files to a base, which is replaced.
    pub fn apply(&self, base: &Path, numbers: &[usize], options: &[&str]) -> Answer {
        let changes: Vec<PathBuf> = numbers.iter().map(|number| self.change(*number)).collect();
        let mut args: Vec<Arg> = vec![&"apply-changes", &"--json", &"--in-place", &base];
        args.extend(changes.iter().map(|change| change as Arg));
        args.extend(options.iter().map(|option| option as Arg));
        let answer = ask(&args);
        assert_eq!(answer.status, 0, "{answer:?}");
        answer
    }

    /// Applies all change files to a copy of a base, `len` of them in a run. Returns the copy.
    pub fn apply_all(&self, base: &Path, len: usize, options: &[&str]) -> PathBuf {
        let name = base.file_name().unwrap().to_str().unwrap();
        let copy = self.path(&format!("by-{len}-{name}"));
        fs::copy(base, &copy).unwrap();
        let numbers: Vec<usize> = (1..=self.count).collect();
        for numbers in numbers.chunks(len) {
            self.apply(&copy, numbers, options);
        }
        copy
    }

    /// Updates a file from the server.
    pub fn update(&self, file: &Path, options: &[&str]) -> Answer {
        let server = self.server();
        let mut args: Vec<Arg> = vec![&"update", &"--json", &"--max-age", &"99999"];
        args.extend([&"--server" as Arg, &server, &file]);
        args.extend(options.iter().map(|option| option as Arg));
        ask(&args)
    }
}

/// The objects of a file as lines of OPL, with the locations in ways.
pub fn opl(path: &Path) -> Vec<String> {
    let answer = ask(&[&"cat", &"-f", &"opl", &path]);
    assert_eq!(answer.status, 0, "{answer:?}");
    answer.lines()
}

/// The ids of the nodes among lines of OPL.
pub fn node_ids(lines: &[String]) -> Vec<i64> {
    let nodes = lines.iter().filter_map(|line| line.strip_prefix('n'));
    let ids = nodes.map(|line| line.split(' ').next().unwrap().parse().unwrap());
    ids.collect()
}

/// The references of a way among lines of OPL, with their locations: `n1x1y1,n2x2y2`.
pub fn refs_of(lines: &[String], way: i64) -> String {
    let name = format!("w{way} ");
    let line = lines.iter().find(|line| line.starts_with(&name)).unwrap();
    let refs = line.split(' ').find_map(|field| field.strip_prefix('N'));
    refs.unwrap().to_owned()
}
