//! The configuration file `brokkr.toml`, and the data sets that it names.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, Deserialize)]
pub struct Config {
    pub datasets: BTreeMap<String, Dataset>,
    pub peers: BTreeMap<String, Peer>,
    pub jobs: BTreeMap<String, Job>,
}

#[derive(Debug, Deserialize)]
pub struct Dataset {
    pub file: String,
    #[serde(default)]
    pub changes: BTreeMap<String, String>,
    pub synth: Option<Synth>,
    /// Content hashes that the file may have: of the data that the gates are for, and of the result of `synth`.
    #[serde(default)]
    pub xxh3: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub struct Synth {
    pub elements: u64,
}

#[derive(Debug, Deserialize)]
pub struct Peer {
    pub program: String,
    pub version: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub struct Job {
    pub about: String,
    pub dataset: String,
    pub run: Vec<String>,
    /// The expected exit status.
    #[serde(default)]
    pub status: i32,
    pub peer: Option<String>,
    #[serde(default)]
    pub against: Vec<String>,
    pub gate: Option<Gate>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Gate {
    /// Minimum ratio of the peer's wall time to ours.
    pub ratio: f64,
    /// Maximum peak memory in MB.
    pub memory_mb: f64,
}

impl Gate {
    /// The gate against another build of the program: at most 3 % more time.
    pub const NOT_SLOWER: Self = Self {
        ratio: 0.97,
        memory_mb: f64::INFINITY,
    };
}

impl Job {
    /// The expected exit status of the peer: ours if the peer is osmium, otherwise 0, since the peer is a copy.
    pub fn peer_status(&self) -> i32 {
        match self.peer.as_deref() {
            Some("osmium") => self.status,
            _ => 0,
        }
    }
}

impl Peer {
    /// The path of the program. `pbfhogg` is the build that is measured.
    pub fn path(&self) -> PathBuf {
        match self.program.as_str() {
            "pbfhogg" => env!("CARGO_BIN_EXE_pbfhogg").into(),
            program => program.into(),
        }
    }

    pub fn is_there(&self) -> bool {
        Command::new(self.path())
            .args(&self.version)
            .output()
            .is_ok_and(|output| output.status.success())
    }

    fn version(&self) -> Option<String> {
        let output = Command::new(self.path())
            .args(&self.version)
            .output()
            .ok()?;
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .next()
            .map(str::to_owned)
    }
}

impl Config {
    pub fn load(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    pub fn peer_versions(&self) -> Vec<String> {
        self.peers.values().filter_map(Peer::version).collect()
    }

    /// The files of a data set. The input is made if it is missing, and its content hash is checked. Files that are
    /// derived from it are made by the build `other`, if it is given, because an older build may not know all that a
    /// newer one writes.
    pub fn inputs(&self, name: &str, other: Option<&Path>) -> Result<Inputs, String> {
        let dataset = self
            .datasets
            .get(name)
            .ok_or(format!("brokkr.toml has no data set {name}"))?;
        let directory = data_directory();
        std::fs::create_dir_all(&directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
        let input = directory.join(&dataset.file);
        if !input.is_file() {
            dataset.make(&directory)?;
        }
        let bytes = std::fs::metadata(&input)
            .map_err(|error| format!("{}: {error}", input.display()))?
            .len();
        let hash = content_hash(&input)?;
        if !dataset.xxh3.is_empty() && !dataset.xxh3.contains(&hash) {
            return Err(format!(
                "{} is not the file that brokkr.toml means: its xxh3 is {hash}; remove it to have it made again, \
                 or add the hash",
                input.display()
            ));
        }
        let changes = dataset
            .changes
            .values()
            .next()
            .map(|file| directory.join(file));
        let prefix = if other.is_some() { "other-" } else { "" };
        let indexed = directory.join(format!("{prefix}indexed-{}", dataset.file));
        // An index that is older than the input, or than the other build, belongs to an earlier one of that name.
        if is_older(&indexed, &input) || other.is_some_and(|other| is_older(&indexed, other)) {
            let _ = std::fs::remove_file(&indexed);
        }
        Ok(Inputs {
            input,
            indexed,
            program: other
                .unwrap_or(Path::new(env!("CARGO_BIN_EXE_pbfhogg")))
                .to_owned(),
            changes,
            directory,
            bytes,
            hash,
        })
    }
}

/// Whether file `made` is older than the file that it is made from. False if either is missing.
fn is_older(made: &Path, source: &Path) -> bool {
    let modified = |path: &Path| std::fs::metadata(path).and_then(|metadata| metadata.modified());
    matches!((modified(made), modified(source)), (Ok(made), Ok(source)) if made < source)
}

/// The directory for data sets.
fn data_directory() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    std::env::var_os("PBFHOGG_BENCH_DATA")
        .map_or_else(|| home().join(".cache/pbfhogg-bench"), PathBuf::from)
}

/// xxh3 of the length, the first 64 MB and the last 64 MB of a file: enough to distinguish data sets.
fn content_hash(path: &Path) -> Result<String, String> {
    use std::os::unix::fs::FileExt;
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = std::fs::File::open(path).map_err(failed)?;
    let len = file.metadata().map_err(failed)?.len();
    let mut bytes = vec![0; len.min(64 << 20) as usize];
    let mut hash = len;
    for offset in [0, len - bytes.len() as u64] {
        file.read_exact_at(&mut bytes, offset).map_err(failed)?;
        hash = twox_hash::XxHash3_64::oneshot_with_seed(hash, &bytes);
    }
    Ok(format!("{hash:016x}"))
}

impl Dataset {
    fn make(&self, directory: &Path) -> Result<(), String> {
        let Some(synth) = &self.synth else {
            return Err(format!("{} is missing and cannot be made", self.file));
        };
        eprintln!(
            "making {} ({} synthetic objects)",
            self.file, synth.elements
        );
        let mut command = Command::new(env!("CARGO_BIN_EXE_pbfhogg"));
        command.args([
            "synth",
            "-O",
            "-q",
            "--no-index",
            "--changes",
            "1",
            "--elements",
            &synth.elements.to_string(),
        ]);
        let status = command.arg("-o").arg(directory.join(&self.file)).status();
        if !status.is_ok_and(|status| status.success()) {
            return Err("synth failed".into());
        }
        if let Some(changes) = self.changes.values().next() {
            std::fs::rename(directory.join("001.osc.gz"), directory.join(changes))
                .map_err(|error| error.to_string())?;
            let _ = std::fs::remove_file(directory.join("001.state.txt"));
        }
        Ok(())
    }
}

/// The files of one data set.
pub struct Inputs {
    pub input: PathBuf,
    indexed: PathBuf,
    /// The program that makes the derived files.
    program: PathBuf,
    changes: Option<PathBuf>,
    directory: PathBuf,
    pub bytes: u64,
    pub hash: String,
}

impl Inputs {
    /// Replaces placeholders in a job's arguments by file names. `who` gives each program its own output.
    pub fn fill(&self, arguments: &[String], who: &str) -> Result<Vec<String>, String> {
        arguments
            .iter()
            .map(|argument| self.fill_one(argument, who))
            .collect()
    }

    fn fill_one(&self, argument: &str, who: &str) -> Result<String, String> {
        let path = match argument {
            "{in}" => self.input.clone(),
            "{indexed}" => self.indexed()?,
            "{changes}" => self
                .changes
                .clone()
                .ok_or("the data set has no change file")?,
            "{applied}" => self.applied()?,
            "{located}" => self.located()?,
            "{out}" => self.output(who),
            "{out}.adiff" => self.second_output(who),
            other => return Ok(other.to_owned()),
        };
        Ok(path.to_string_lossy().into_owned())
    }

    fn output(&self, who: &str) -> PathBuf {
        self.directory.join(format!("out-{who}.osm.pbf"))
    }

    /// The augmented diff of a command that writes one beside its output.
    fn second_output(&self, who: &str) -> PathBuf {
        self.directory.join(format!("out-{who}.adiff"))
    }

    /// The data set with a table of contents. It is made once.
    fn indexed(&self) -> Result<PathBuf, String> {
        let arguments = ["cat".as_ref(), self.input.as_os_str()];
        make_once(&self.program, &self.indexed, &arguments)
    }

    /// The data set with its changes applied. It is made once.
    fn applied(&self) -> Result<PathBuf, String> {
        let changes = self
            .changes
            .as_ref()
            .ok_or("the data set has no change file")?;
        self.derived("applied", &["apply-changes"], &[changes])
    }

    /// The data set with locations in its ways, and with all nodes. It is made once.
    fn located(&self) -> Result<PathBuf, String> {
        self.derived("located", &["add-locations-to-ways", "-n"], &[])
    }

    /// The result of a command on the data set with a table of contents. It is made once, unless the input is newer.
    fn derived(&self, what: &str, command: &[&str], more: &[&Path]) -> Result<PathBuf, String> {
        let indexed = self.indexed()?;
        let name = indexed.file_name().unwrap_or_default().to_string_lossy();
        let path = self.directory.join(format!("{what}-{name}"));
        if is_older(&path, &indexed) {
            let _ = std::fs::remove_file(&path);
        }
        let mut arguments: Vec<&OsStr> = command.iter().map(OsStr::new).collect();
        arguments.push(indexed.as_os_str());
        arguments.extend(more.iter().map(|path| path.as_os_str()));
        make_once(&self.program, &path, &arguments)
    }

    /// Removes the outputs of both programs.
    pub fn clean(&self) {
        for who in ["ours", "theirs"] {
            let _ = std::fs::remove_file(self.second_output(who));
            let output = self.output(who);
            if std::fs::remove_file(&output).is_err() {
                let _ = std::fs::remove_dir_all(output);
            }
        }
    }
}

/// Runs a command of `program` that makes a file, unless the file exists. Returns the path of the file.
fn make_once(program: &Path, path: &Path, arguments: &[&OsStr]) -> Result<PathBuf, String> {
    if !path.is_file() {
        let status = Command::new(program)
            .args(arguments)
            .arg("-q")
            .arg("-o")
            .arg(path)
            .status();
        if !status.is_ok_and(|status| status.success()) {
            return Err(format!("{} could not be made", path.display()));
        }
    }
    Ok(path.to_owned())
}
