//! Every command of osmium with every option of its manual pages: both programs run each line of
//! `surface/commands.txt`, this one under its second name.
//!
//! Exit status, standard output, whether there is anything on standard error, and all files that are written have to be
//! equal. A line that begins with `~KEY` is expected to differ, for the reason in the row KEY of
//! `reference/osmium-parity.md`. What [`comparable`] takes out has rows there, too.

use crate::common::missing::allowed;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// A command line of the table.
#[derive(Debug, Clone)]
struct Line {
    text: String,
    /// The key of the reason why the programs differ.
    key: Option<String>,
    words: Vec<String>,
    stdin: Option<String>,
}

impl Line {
    fn parse(text: &str) -> Self {
        let (key, command) = match text.strip_prefix('~') {
            Some(rest) => {
                let (key, command) = rest.split_once(' ').expect("a command behind the key");
                (Some(key.to_owned()), command)
            }
            None => (None, text),
        };
        let (command, stdin) = match command.split_once(" < ") {
            Some((command, name)) => (command, Some(name.to_owned())),
            None => (command, None),
        };
        Self {
            text: text.to_owned(),
            key,
            words: words(command),
            stdin,
        }
    }

    /// Whether the command may write files, so that each program needs a directory of its own.
    fn writes(&self) -> bool {
        let is_writing = |word: &String| {
            ["-o", "-c", "-i", "-u"].contains(&word.as_str())
                || ["--config", "--index", "--update", "--output="]
                    .iter()
                    .any(|start| word.starts_with(start))
        };
        self.words.iter().any(is_writing)
    }
}

/// Splits a command line at spaces. Single quotes hold words together.
pub fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), None::<String>, false);
    for char in command.chars() {
        match char {
            '\'' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            ' ' if !is_quoted => words.extend(word.take()),
            char => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    words
}

/// The result of a command.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub status: Option<i32>,
    pub stdout: String,
    pub has_stderr: bool,
    /// The files that are new or changed.
    pub files: BTreeMap<PathBuf, String>,
}

fn table() -> Vec<Line> {
    let table = include_str!("surface/commands.txt");
    let lines = table.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(Line::parse)
        .collect()
}

fn osmium(directory: &Path, args: &[&str]) {
    let done = Command::new("osmium")
        .args(args)
        .current_dir(directory)
        .output();
    let done = done.expect("osmium starts");
    assert!(done.status.success(), "{args:?}: {done:?}");
}

/// Makes the directory of inputs: the files of `surface/inputs`, and what osmium makes of them.
fn prepare(directory: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/surface/inputs");
    copy_directory(&source, directory, &|_| true);
    let write = |name: &str, bytes: &[u8]| std::fs::write(directory.join(name), bytes).unwrap();
    let read = |name: &str| std::fs::read(directory.join(name)).unwrap();
    write(
        "nothing.osm",
        b"<?xml version='1.0'?>\n<osm version=\"0.6\" generator=\"test\"/>\n",
    );
    for (from, to) in [
        ("data.osm", "data.osm.pbf"),
        ("newer.osm", "newer.osm.pbf"),
        ("other.osm", "other.osm.pbf"),
        ("history.osh", "history.osh.pbf"),
        ("bare.opl", "bare.osm.pbf"),
        ("negative.opl", "negative.osm.pbf"),
        ("unsorted.opl", "unsorted.osm.pbf"),
        ("change.osc", "change.osc.gz"),
        ("nothing.osm", "nothing.osm.pbf"),
    ] {
        osmium(directory, &["cat", from, "-o", to]);
    }
    let located = "pbf,locations_on_ways=true";
    osmium(
        directory,
        &["cat", "located.opl", "-f", located, "-o", "located.osm.pbf"],
    );
    let plain = "pbf,pbf_dense_nodes=false,pbf_compression=none";
    osmium(
        directory,
        &["cat", "data.osm", "-f", plain, "-o", "dense.osm.pbf"],
    );
    osmium(
        directory,
        &[
            "cat",
            "data.osm",
            "-o",
            "replicated.osm.pbf",
            "--output-header=osmosis_replication_sequence_number=17",
            "--output-header=osmosis_replication_timestamp=2015-01-01T00:00:00Z",
            "--output-header=osmosis_replication_base_url=http://example.com/",
        ],
    );
    let whole = [
        "add-locations-to-ways",
        "-n",
        "data.osm.pbf",
        "-o",
        "whole-located.osm.pbf",
    ];
    osmium(directory, &whole);
    for name in ["sub", "index"] {
        std::fs::create_dir(directory.join(name)).unwrap();
    }
    let renumber = [
        "renumber",
        "data.osm.pbf",
        "-i",
        "index",
        "-f",
        "opl",
        "-o",
        "/dev/null",
        "-O",
    ];
    osmium(directory, &renumber);
    osmium(
        directory,
        &["create-locations-index", "-i", "index.dat", "data.osm.pbf"],
    );
    osmium(directory, &["cat", "data.osm", "-o", "data-tags.opl"]);
    let tags = String::from_utf8(read("data-tags.opl")).unwrap();
    write(
        "data-tags.opl",
        tags.replace("building=yes", "building=maybe").as_bytes(),
    );
    write("data.txt", &read("data.osm"));
    write("change.txt", &read("change.osc"));
    write("existing.osm", &read("other.osm"));
    let [xml, pbf] = ["data.osm", "data.osm.pbf"].map(read);
    write("broken.osm", &xml[..xml.len() / 2]);
    write("broken.osm.pbf", &pbf[..pbf.len() * 3 / 4]);
}

/// Copies the files and directories whose names fulfil a condition, and makes hard links to the other ones.
pub fn copy_directory(from: &Path, to: &Path, is_copied: &dyn Fn(&str) -> bool) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        let is_own = is_copied(entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy_directory(&entry.path(), &target, &|name| is_own || is_copied(name));
        } else if is_own {
            std::fs::copy(entry.path(), target).unwrap();
        } else {
            std::fs::hard_link(entry.path(), target).unwrap();
        }
    }
}

/// The contents of all files of a directory and those below it.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = std::fs::read_dir(directory).unwrap();
    let paths = paths.map(|entry| entry.unwrap().path());
    let (directories, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    let files = files.into_iter().map(|path| {
        let bytes = std::fs::read(&path).unwrap();
        (path, bytes)
    });
    let below = directories.iter().flat_map(|directory| contents(directory));
    files.collect::<Vec<_>>().into_iter().chain(below).collect()
}

/// Runs a line in a directory that has the inputs.
fn run(program: &[&str], line: &Line, inputs: &Path) -> Outcome {
    let own = line.writes().then(|| tempfile::tempdir().unwrap());
    if let Some(own) = &own {
        // Neither program writes to an input that the line does not name.
        let is_named = |name: &str| line.words.iter().any(|word| word.contains(name));
        copy_directory(inputs, own.path(), &is_named);
    }
    let directory = own.as_ref().map_or(inputs, |own| own.path());
    let stdin = match &line.stdin {
        None => Stdio::null(),
        Some(name) => std::fs::File::open(inputs.join(name)).unwrap().into(),
    };
    let (program, first) = program.split_first().unwrap();
    let done = Command::new(program)
        .args(first)
        .args(&line.words)
        .current_dir(directory)
        .stdin(stdin)
        .output();
    let done = done.expect("the program starts");
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(!stderr.contains("panicked"), "{}: {stderr}", line.text);
    let mut files = BTreeMap::new();
    if own.is_some() {
        changed_files(directory, directory, inputs, &mut files);
    }
    Outcome {
        status: done.status.code(),
        stdout: comparable(&String::from_utf8_lossy(&done.stdout)),
        has_stderr: !done.stderr.is_empty(),
        files,
    }
}

/// Adds the files below a directory that differ from the inputs.
fn changed_files(at: &Path, root: &Path, inputs: &Path, files: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(at).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            changed_files(&path, root, inputs, files);
            continue;
        }
        let name = path.strip_prefix(root).unwrap();
        let [now, before] = [&path, &inputs.join(name)].map(std::fs::metadata);
        if before.is_ok_and(|before| before.ino() == now.unwrap().ino()) {
            continue;
        }
        let before = std::fs::read(inputs.join(name));
        let now = std::fs::read(&path).unwrap();
        if before.ok().as_ref() != Some(&now) {
            files.insert(name.to_owned(), content(&path, &now));
        }
    }
}

/// The content of a file: decompressed and, of a PBF file, the header and all objects as osmium reads them.
fn content(path: &Path, bytes: &[u8]) -> String {
    let told = |program: &str, args: &[&str]| {
        let done = Command::new(program).args(args).arg(path).output();
        String::from_utf8_lossy(&done.expect("the program starts").stdout).into_owned()
    };
    let is_pbf = bytes.starts_with(&[0, 0, 0]);
    let text = match path.extension().and_then(|ending| ending.to_str()) {
        _ if is_pbf => {
            // The declaration of canonical order is left out: this program makes it whenever it holds.
            let header = told("osmium", &["fileinfo", "-e", "-F", "pbf"]);
            let unlike = ["Name:", "Size:", "sorting=", "pbf_optional_feature"];
            let header = header
                .lines()
                .filter(|line| !unlike.iter().any(|part| line.contains(part)));
            let header: Vec<&str> = header.collect();
            let objects = ["cat", "-F", "pbf", "-f", "opl,locations_on_ways=true"];
            header.join("\n") + &told("osmium", &objects)
        }
        Some("gz") => told("zcat", &[]),
        Some("bz2") => told("bzcat", &[]),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    };
    comparable(&text)
}

/// A text without what differs between the programs for reasons that have a row in the document: the name of the
/// program, the layout of osmium's memory, and the places where sections of change files end.
pub fn comparable(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut in_buffers = false;
    for line in text.lines() {
        in_buffers |= line.trim_start().starts_with("\"buffers\"");
        let is_buffer = line.contains("Number of buffers") || line.contains("Sum of buffer");
        if !in_buffers && !is_buffer {
            let section = line.trim().trim_matches(['<', '>']);
            let is_end = |last: &String| last.trim() == format!("</{section}>");
            if lines.last().is_some_and(is_end) {
                lines.pop();
            } else {
                lines.push(generator_replaced(line))
            }
        }
        in_buffers &= !line.contains('}');
    }
    lines.join("\n")
}

fn generator_replaced(line: &str) -> String {
    let mut line = line.to_owned();
    for name in [
        "osmium/1.15.0",
        concat!("pbfhogg/", env!("CARGO_PKG_VERSION")),
    ] {
        line = line.replace(name, "PROGRAM");
    }
    line
}

/// The first difference between the outcomes of both programs, in few lines.
pub fn difference(ours: &Outcome, theirs: &Outcome) -> String {
    let shown = |outcome: &Outcome| {
        let files: Vec<_> = outcome.files.keys().collect();
        format!(
            "{:?}, stderr {}, files {files:?}",
            outcome.status, outcome.has_stderr
        )
    };
    let mut text = format!("  ours:   {}\n  theirs: {}\n", shown(ours), shown(theirs));
    let mut pairs = vec![(ours.stdout.as_str(), theirs.stdout.as_str())];
    for (name, ours) in &ours.files {
        let theirs = theirs.files.get(name).map_or("", String::as_str);
        pairs.push((ours, theirs));
    }
    for (ours, theirs) in pairs.into_iter().filter(|(ours, theirs)| ours != theirs) {
        let (mut ours, mut theirs) = (ours.lines(), theirs.lines());
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => break,
                (one, two) if one != two => {
                    text += &format!("    {one:.120?}\n    {two:.120?}\n");
                    break;
                }
                _ => {}
            }
        }
    }
    text
}

/// Whether osmium is there, in the version whose behaviour the table and the document describe.
pub fn osmium_is_as_described() -> bool {
    if !crate::common::oracle::osmium() {
        return false;
    }
    let version = Command::new("osmium").arg("--version").output().unwrap();
    let is_known = String::from_utf8_lossy(&version.stdout).contains("osmium version 1.15.0");
    allowed(
        is_known,
        "osmium is not of version 1.15.0, which the table describes",
    )
}

/// The keys of the rows in the document.
pub fn keys_with_reasons() -> BTreeSet<String> {
    let document = include_str!("../reference/osmium-parity.md");
    let cells = document
        .lines()
        .filter_map(|line| line.strip_prefix("| `~"));
    cells
        .filter_map(|cell| cell.split_once('`'))
        .map(|(key, _)| key.to_owned())
        .collect()
}

#[test]
fn the_second_name_follows_the_conventions_of_osmium() {
    if !osmium_is_as_described() {
        return;
    }
    let inputs = tempfile::tempdir().unwrap();
    prepare(inputs.path());
    let before = contents(inputs.path());
    let lines = Mutex::new(table().into_iter());
    let complaints = Mutex::new(Vec::new());
    let reasons = keys_with_reasons();
    let work = || {
        while let Some(line) = { lines.lock().unwrap().next() } {
            let ours = run(
                &[env!("CARGO_BIN_EXE_pbfhogg"), "osmium"],
                &line,
                inputs.path(),
            );
            let theirs = run(&["osmium"], &line, inputs.path());
            let complaint = match (&line.key, ours == theirs) {
                (None, true) => continue,
                (None, false) => format!("{}\n{}", line.text, difference(&ours, &theirs)),
                (Some(key), false) if reasons.contains(key) => continue,
                (Some(key), false) => format!("{}: no row `~{key}`", line.text),
                (Some(_), true) => format!("{}: the programs do not differ", line.text),
            };
            complaints.lock().unwrap().push(complaint);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(work);
        }
    });
    assert!(contents(inputs.path()) == before, "an input has changed");
    let complaints = complaints.into_inner().unwrap();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// The options in the manual page of a command, with their long and short names.
fn options_of_manual(page: &Path) -> BTreeSet<String> {
    let text = Command::new("zcat").arg(page).output().unwrap().stdout;
    let text = String::from_utf8(text).unwrap().replace("\\-", "-");
    let mut options = BTreeSet::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line != ".TP" {
            continue;
        }
        let Some(term) = lines.next().filter(|term| term.starts_with('-')) else {
            continue;
        };
        let words = term.split([' ', ',', '=', '[']);
        options.extend(
            words
                .filter(|word| word.starts_with('-'))
                .map(str::to_owned),
        );
    }
    options
}

#[test]
fn the_table_has_every_option_of_every_manual_page() {
    let lines = table();
    let mut missing = Vec::new();
    let pages = std::fs::read_dir("/usr/share/man/man1");
    // Small systems have no manual pages.
    allowed(pages.is_ok(), "there are no manual pages");
    for entry in pages
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
    {
        let name = entry.file_name().unwrap().to_string_lossy().into_owned();
        let command = name
            .strip_prefix("osmium-")
            .and_then(|name| name.strip_suffix(".1.gz"));
        let Some(command) = command else {
            continue;
        };
        for option in options_of_manual(&entry) {
            let is_used = lines.iter().any(|line| {
                line.words
                    .first()
                    .is_some_and(|first| first == command || is_common(&option))
                    && line
                        .words
                        .iter()
                        .any(|word| *word == option || word.starts_with(&format!("{option}=")))
            });
            if !is_used {
                missing.push(format!("{command} {option}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Whether an option is one that all commands have, so that one command is enough.
fn is_common(option: &str) -> bool {
    let common = [
        "-h",
        "--help",
        "-v",
        "--verbose",
        "--progress",
        "--no-progress",
        "-F",
        "--input-format",
        "-f",
        "--output-format",
        "--fsync",
        "--generator",
        "-o",
        "--output",
        "-O",
        "--overwrite",
        "--output-header",
    ];
    common.contains(&option)
}
