//! Lines that people run from cron and from systemd: each such line of the documents, and chains around `update`, with
//! servers that have much, little or nothing new, and with servers that are gone.
//!
//! The lines are run by `sh` in a directory that takes the place of those that they name. `pbfhogg` is the program, with
//! the options that the data of tests needs. Other programs are scripts that note which update they were started for.

use crate::common::kills::content;
use crate::common::publisher::{DAYS, Publisher};
use crate::common::{pbfhogg, run_ok};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs beside this one that lines of the documents start.
const OTHERS: [&str; 2] = ["duckdb", "render_expired"];

/// A line of a document.
#[derive(Debug)]
struct Line {
    /// The command.
    command: String,
    /// The name of the file that it updates.
    file: String,
}

/// The commands with `update` in the blocks of a document for cron, for systemd and for the shell.
fn lines(document: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut lines = document.lines();
    while let Some(start) = lines.next() {
        let Some(language) = start.strip_prefix("```").filter(|name| !name.is_empty()) else {
            continue;
        };
        for line in lines.by_ref().take_while(|line| *line != "```") {
            let command = match language {
                "crontab" => scheduled(line),
                "ini" => line.strip_prefix("ExecStart="),
                "sh" => Some(line),
                _ => None,
            };
            // A question changes nothing, a log grows with each run, and rules are in a file of their own
            // (`tags_edit_changes.rs`).
            let is_run = |line: &&str| {
                line.contains("pbfhogg update ")
                    && !line.contains("--check")
                    && !line.contains("--json")
                    && !line.contains("--edit")
            };
            if let Some(command) = command.filter(is_run) {
                found.push(Line::of(command));
            }
        }
    }
    found
}

/// The command of a line of a crontab; `None` for a comment or a variable.
fn scheduled(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    for _ in 0..5 {
        let (field, more) = rest.split_once(' ')?;
        let is_time = field
            .chars()
            .all(|one| one.is_ascii_digit() || "*/,-".contains(one));
        if !is_time {
            return None;
        }
        rest = more.trim_start();
    }
    // In a crontab, a percent sign ends the command.
    assert!(!rest.contains('%'), "{line}");
    Some(rest)
}

impl Line {
    /// A command of a document, for the directory of a test.
    fn of(command: &str) -> Self {
        let mut command = command.to_owned();
        for (from, to) in [
            ("/usr/local/bin/", ""),
            ("/srv/osm", "."),
            ("/var/cache/osm", "cache"),
            (" --server planet", ""),
            (" --watch 60", ""),
        ] {
            command = command.replace(from, to);
        }
        let mut words = command.split_whitespace().rev();
        let file = words.find(|word| word.ends_with(".osm.pbf"));
        let file = file.expect("a line names its file");
        let file = file.trim_start_matches("./").to_owned();
        Self { command, file }
    }

    /// Whether the objects of the file are not those of the whole data.
    fn is_clipped(&self) -> bool {
        self.command.contains("--clip")
    }
}

/// A directory in which a line is run.
struct Place<'p> {
    publisher: &'p Publisher,
    directory: PathBuf,
    line: &'p Line,
}

impl<'p> Place<'p> {
    fn new(publisher: &'p Publisher, line: &'p Line, name: &str) -> Self {
        let place = Self {
            publisher,
            directory: publisher.path(name),
            line,
        };
        fs::create_dir_all(place.path("bin")).unwrap();
        fs::copy(publisher.data(0), place.path(&line.file)).unwrap();
        fs::write(place.path("merge.sql"), "").unwrap();
        let corners = "[[[-20,30],[0,30],[0,50],[-20,50],[-20,30]]]";
        let region = format!("{{\"type\":\"Polygon\",\"coordinates\":{corners}}}");
        fs::write(place.path("region.geojson"), region).unwrap();
        let program = pbfhogg().get_program().to_str().unwrap().to_owned();
        let update = format!(
            "if [ \"$1\" = update ]; then shift\n\
             exec {program} update --max-age 9999 --first-pause 1 --server \"$SERVER\" $MORE \"$@\"\nfi\n\
             {NOTE}exec {program} \"$@\"\n"
        );
        place.script("pbfhogg", &update);
        for name in OTHERS {
            place.script(name, &format!("cat > input\n{NOTE}"));
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn script(&self, name: &str, text: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs the line once as cron does, with further options of `update`. Returns the exit status.
    fn run(&self, server: &str, more: &str) -> i32 {
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        let output = Command::new("sh")
            .args(["-c", &self.line.command])
            .current_dir(&self.directory)
            .env("PATH", path)
            .env("SERVER", server)
            .env("MORE", more)
            .env("PLACE", &self.directory)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("panicked"), "{said}");
        output.status.code().unwrap()
    }

    /// The day of the data of the file.
    fn day(&self) -> usize {
        let file = self.path(&self.line.file);
        if self.line.is_clipped() {
            let sequence = run_ok(&[&"inspect", &"--get", &"replication_sequence", &file]);
            let sequence = String::from_utf8(sequence.stdout).unwrap();
            return sequence.trim().parse().unwrap();
        }
        self.publisher.day_of(&file)
    }

    /// The days before and after each update for which another program was started.
    fn noted(&self) -> Vec<(usize, usize)> {
        let text = fs::read_to_string(self.path("noted")).unwrap_or_default();
        let pairs = text.lines().map(|line| {
            let (before, after) = line.split_once(' ').unwrap();
            (before.parse().unwrap(), after.parse().unwrap())
        });
        pairs.collect()
    }

    /// All files that the line has written.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        content(&self.directory).unwrap()
    }
}

/// The part of a script that notes the update for which `--exec` has started it.
const NOTE: &str = "if [ -n \"$PBFHOGG_SEQUENCE\" ]; then \
    echo \"$PBFHOGG_SEQUENCE_BEFORE $PBFHOGG_SEQUENCE\" >> \"$PLACE/noted\"; fi\n";

/// Runs a line with servers of all kinds.
fn holds(line: &Line) {
    let publisher = Publisher::new();
    let server = publisher.server();
    let place = Place::new(&publisher, line, "place");
    let name = &line.command;
    let mut days = vec![0];
    // More changes than one run may take: each run takes one change file.
    publisher.publish(2);
    for (day, status) in [(1, 1), (2, 0)] {
        assert_eq!(place.run(&server, "--max-diff-size 1"), status, "{name}");
        assert_eq!(place.day(), day, "{name}");
        days.push(day);
    }
    // No server, and a server without the next change file.
    let before = place.files();
    publisher.publish(DAYS);
    let next = publisher.path("server/000/000/003.osc.gz");
    let hidden = publisher.path("hidden");
    fs::rename(&next, &hidden).unwrap();
    for server in ["http://127.0.0.1:1", "file:///not/there", &server] {
        assert_eq!(place.run(server, ""), 2, "{name}: {server}");
        let changed = differences(&before, &place.files());
        assert!(changed.is_empty(), "{name}: {server}: {changed:?}");
    }
    fs::rename(&hidden, &next).unwrap();
    // Many change files at once. A run that finds nothing new changes nothing.
    let mut after = Vec::new();
    for run in 0..2 {
        assert_eq!(place.run(&server, ""), 0, "{name}");
        assert_eq!(place.day(), DAYS, "{name}");
        let files = place.files();
        let changed = differences(&after, &files);
        assert!(run == 0 || changed.is_empty(), "{name}: {changed:?}");
        after = files;
    }
    days.push(DAYS);
    let steps: Vec<_> = days.windows(2).map(|pair| (pair[0], pair[1])).collect();
    let noted = if name.contains("--exec") {
        steps
    } else {
        Vec::new()
    };
    assert_eq!(place.noted(), noted, "{name}");
    // One run leaves the same directories of augmented diffs as several.
    let once = Place::new(&publisher, line, "once");
    assert_eq!(once.run(&server, ""), 0, "{name}");
    for directory in ["changesets", "diffs"] {
        let of = |place: &Place<'_>| {
            let files = content(&place.path(directory)).unwrap_or_default();
            let root = place.path(directory);
            let relative = |path: &Path| path.strip_prefix(&root).unwrap().to_owned();
            let named = files
                .into_iter()
                .map(|(path, text)| (relative(&path), text));
            named.collect::<Vec<_>>()
        };
        let (all, parts) = (of(&once), of(&place));
        let is_meant = name.contains(&format!("{directory} ")) && name.contains("--augmented-diff");
        assert_eq!(is_meant, !all.is_empty(), "{name}");
        assert!(all == parts, "{name}: {directory}");
    }
}

/// The files that are new or not the same.
fn differences(before: &[(PathBuf, Vec<u8>)], after: &[(PathBuf, Vec<u8>)]) -> Vec<PathBuf> {
    let changed = after.iter().filter(|file| !before.contains(file));
    let gone = before
        .iter()
        .filter(|(path, _)| !after.iter().any(|(other, _)| other == path));
    changed
        .chain(gone)
        .map(|(path, _)| path)
        // The state files of a cache say what the server has.
        .filter(|path| !path.to_string_lossy().contains("/cache/"))
        .cloned()
        .collect()
}

/// Runs all lines of a document, of which there must be a number.
fn all_hold(path: &str, count: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let lines = lines(&fs::read_to_string(&path).unwrap());
    assert_eq!(lines.len(), count, "{}: {lines:?}", path.display());
    lines.iter().for_each(holds);
}

#[test]
fn lines_of_the_readme_lose_nothing_and_do_nothing_twice() {
    all_hold("README.md", 2);
}

#[test]
fn lines_of_the_cookbook_lose_nothing_and_do_nothing_twice() {
    all_hold("reference/cookbook.md", 5);
}

#[test]
fn lines_about_changes_lose_nothing_and_do_nothing_twice() {
    all_hold("reference/changes.md", 3);
}

#[test]
fn other_documents_have_no_lines_that_are_not_run() {
    let run = ["cookbook.md", "changes.md"];
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("reference");
    for entry in fs::read_dir(reference).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.ends_with(".md") && !run.contains(&name) {
            let lines = lines(&fs::read_to_string(&path).unwrap());
            assert!(lines.is_empty(), "{name}: {lines:?}");
        }
    }
}

#[test]
fn lines_of_crontabs_are_known_by_their_times() {
    for (line, command) in [
        (
            "0 4 * * *  pbfhogg update a.osm.pbf",
            Some("pbfhogg update a.osm.pbf"),
        ),
        ("*/5 4-6 1,15 * * ./a b", Some("./a b")),
        ("MAILTO=maps@example.com", None),
        ("# Every minute: the new data, and more.", None),
        ("", None),
    ] {
        assert_eq!(scheduled(line), command, "{line}");
    }
}

#[test]
fn a_chain_around_a_change_file_applies_what_is_new_and_nothing_else() {
    let line = Line {
        command: "pbfhogg update -q --diffs-only town.osm.pbf -o since.osc.gz -O && \
            pbfhogg augmented-diff -q -O town.osm.pbf since.osc.gz -o since.adiff && \
            pbfhogg apply-changes -q --in-place town.osm.pbf since.osc.gz"
            .into(),
        file: "town.osm.pbf".into(),
    };
    let publisher = Publisher::new();
    let server = publisher.server();
    let place = Place::new(&publisher, &line, "place");
    let actions = || {
        let text = fs::read_to_string(place.path("since.adiff")).unwrap();
        text.matches("<action ").count()
    };
    publisher.publish(1);
    assert_eq!((place.run(&server, ""), place.day()), (0, 1));
    assert!(actions() > 0);
    // The change file of the run before is not taken for new changes.
    assert_eq!((place.run(&server, ""), place.day()), (0, 1));
    assert_eq!(actions(), 0);
    // Where more changes are there, the chain ends. The file stays as it is.
    publisher.publish(DAYS);
    assert_eq!(
        (place.run(&server, "--max-diff-size 1"), place.day()),
        (1, 1)
    );
    // A server that is behind the file has no changes for it.
    publisher.publish(0);
    assert_eq!((place.run(&server, ""), place.day()), (1, 1));
    publisher.publish(DAYS);
    assert_eq!((place.run(&server, ""), place.day()), (0, DAYS));
    assert!(actions() > 0);
}
