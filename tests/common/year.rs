//! A publisher of a year of changes in steps of days, hours and minutes. Its files are made when they are asked for.

use super::random::Random;
use super::{Kind, run_ok};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use pbfhogg::unstable::osm::{format_timestamp, parse_timestamp};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};

/// The seconds from 1970 to the first state.
pub const START: i64 = 1_767_225_600;
pub const MINUTE: i64 = 60;
pub const HOUR: i64 = 60 * MINUTE;
pub const DAY: i64 = 24 * HOUR;
/// The number of days.
pub const DAYS: i64 = 365;

/// The lengths of the steps in seconds, and the names of their directories.
const STEPS: [(&str, i64); 3] = [("day", DAY), ("hour", HOUR), ("minute", MINUTE)];

type Key = (Kind, i64);

/// A version of an object that begins at a time after the start.
#[derive(Clone)]
struct Change {
    time: i64,
    key: Key,
    version: i64,
    action: &'static str,
    /// The element.
    xml: String,
}

/// The data of the first state, and all changes of a year in the order of time.
pub struct Year {
    directory: tempfile::TempDir,
    base: BTreeMap<Key, String>,
    changes: Vec<Change>,
    /// The seconds from the start to the newest change that is published.
    now: AtomicI64,
}

impl Year {
    /// The year of a synthetic world. Some of its objects are changed again soon, also those that were deleted.
    pub fn new(elements: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().join("base.osm");
        let days = directory.path().join("days");
        let (count, elements) = (DAYS.to_string(), elements.to_string());
        let synth: [super::Arg; 10] = [
            &"synth",
            &"-q",
            &"--objects",
            &elements,
            &"--changes",
            &count,
            &"--changes-dir",
            &days,
            &"-o",
            &base,
        ];
        run_ok(&synth);
        let text = fs::read_to_string(base).unwrap();
        let base: BTreeMap<_, _> = changes_of(&text)
            .into_iter()
            .map(|change| (change.key, change.xml))
            .collect();
        let mut changes = Vec::new();
        for day in 1..=DAYS {
            let mut text = String::new();
            let file = File::open(days.join(format!("{day:03}.osc.gz"))).unwrap();
            GzDecoder::new(file).read_to_string(&mut text).unwrap();
            changes.extend(changes_of(&text));
        }
        change_again(&base, &mut changes);
        changes.sort_by_key(|change| (change.time, change.key, change.version));
        Self {
            directory,
            base,
            changes,
            now: AtomicI64::new(0),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The newest sequence number of a step.
    pub fn newest(&self, step: i64) -> i64 {
        newest_before(self.now.load(Ordering::Relaxed), step)
    }

    /// Publishes all changes up to a time after the start.
    pub fn publish(&self, now: i64) {
        self.now.store(now.min(DAYS * DAY), Ordering::Relaxed);
    }

    /// The file of a server: `/minute/state.txt`, `/day/000/000/001.osc.gz` and so on.
    pub fn file(&self, path: &str) -> Option<Vec<u8>> {
        let (name, file) = path.trim_start_matches('/').split_once('/')?;
        let (_, step) = STEPS.into_iter().find(|(step, _)| *step == name)?;
        let newest = self.newest(step);
        let digits: String = file.chars().filter(char::is_ascii_digit).collect();
        let sequence = digits.parse().unwrap_or(newest);
        if sequence > newest {
            return None;
        }
        let times = time_of(sequence - 1, step)..time_of(sequence, step);
        match file.ends_with(".osc.gz") {
            true if sequence == 0 => None,
            true => Some(self.change_file(times)),
            false => Some(state(sequence, times.end).into_bytes()),
        }
    }

    /// Whether an object changes in some time after the start.
    pub fn changes(&self, key: Key, times: std::ops::Range<i64>) -> bool {
        let mut changes = self.changes.iter();
        changes.any(|change| change.key == key && times.contains(&change.time))
    }

    /// The last version of each object that changed in some time.
    fn change_file(&self, times: std::ops::Range<i64>) -> Vec<u8> {
        let [first, end] =
            [times.start, times.end].map(|end| self.changes.partition_point(|one| one.time < end));
        let last: BTreeMap<_, _> = self.changes[first..end]
            .iter()
            .map(|change| (change.key, change))
            .collect();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        let mut put = |text: &str| gzip.write_all(text.as_bytes()).unwrap();
        put("<?xml version='1.0' encoding='UTF-8'?>\n<osmChange version='0.6'>\n");
        for change in last.values() {
            put(&format!("<{0}>\n{1}\n</{0}>\n", change.action, change.xml));
        }
        put("</osmChange>\n");
        gzip.finish().unwrap()
    }

    /// Writes the data of a time after the start, with a header that has the given fields.
    pub fn write(&self, time: i64, header: &[String], to: &Path) {
        let mut objects = self.base.clone();
        for change in self.changes.iter().take_while(|change| change.time < time) {
            match change.action {
                "delete" => objects.remove(&change.key),
                _ => objects.insert(change.key, change.xml.clone()),
            };
        }
        let text = self.path("data.osm");
        let mut out = String::from("<osm version='0.6'>\n");
        for xml in objects.values() {
            out.push_str(xml);
            out.push('\n');
        }
        out.push_str("</osm>\n");
        fs::write(&text, out).unwrap();
        let mut args: Vec<super::Arg> = vec![&"cat", &"-q", &"-O", &text, &"-o", &to];
        for field in header {
            args.extend([&"--output-header" as super::Arg, field]);
        }
        run_ok(&args);
    }

    /// Whether a file has the objects of a time after the start.
    pub fn is_data_of(&self, file: &Path, time: i64) -> bool {
        let expected = self.path("expected.osm.pbf");
        self.write(time, &[], &expected);
        let diff = super::pbfhogg()
            .args(["diff", "-q"])
            .args([file, &expected])
            .output();
        diff.unwrap().status.success()
    }
}

/// The time of a state after the start. Minutes are published some seconds late, as they are elsewhere.
pub fn time_of(sequence: i64, step: i64) -> i64 {
    let late = match step {
        MINUTE if sequence > 0 => sequence * 7 % 23,
        _ => 0,
    };
    sequence * step + late
}

/// The last sequence number of a step whose state is not newer than a time after the start.
pub fn newest_before(time: i64, step: i64) -> i64 {
    let sequence = time / step;
    if time_of(sequence, step) > time {
        sequence - 1
    } else {
        sequence
    }
}

/// The text of a time after the start.
pub fn time_text(time: i64) -> String {
    format_timestamp(START + time)
}

fn state(sequence: i64, time: i64) -> String {
    let time = time_text(time).replace(':', "\\:");
    format!("sequenceNumber={sequence}\ntimestamp={time}\n")
}

/// The objects of a file as this program writes it: elements begin and end on lines of their own.
fn changes_of(text: &str) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    let (mut action, mut is_open) = ("modify", false);
    for line in text.lines().map(str::trim) {
        let word = line.trim_start_matches('<').split([' ', '>']).next();
        let kind = match word.unwrap_or_default() {
            "create" | "modify" => {
                action = "modify";
                continue;
            }
            "delete" => {
                action = "delete";
                continue;
            }
            "node" => Kind::Node,
            "way" => Kind::Way,
            "relation" => Kind::Relation,
            _ if is_open => {
                changes.last_mut().unwrap().xml.push_str(line);
                is_open = !["</node>", "</way>", "</relation>"].contains(&line);
                continue;
            }
            _ => continue,
        };
        is_open = !line.ends_with("/>");
        changes.push(Change {
            time: parse_timestamp(attribute(line, "timestamp")).unwrap() - START,
            key: (kind, attribute(line, "id").parse().unwrap()),
            version: attribute(line, "version").parse().unwrap(),
            action,
            xml: line.to_owned(),
        });
    }
    changes
}

fn attribute<'x>(line: &'x str, name: &str) -> &'x str {
    let (_, rest) = line.split_once(&format!(" {name}=\"")).unwrap();
    rest.split_once('"').unwrap().0
}

/// Adds versions of objects some hours after those that are there, so that days have several versions of an object.
fn change_again(base: &BTreeMap<Key, String>, changes: &mut Vec<Change>) {
    let mut random = Random(365);
    for one in changes.clone() {
        let mut last = one;
        while random.below(3) == 0 && last.time < (DAYS - 1) * DAY {
            // An object that was deleted comes back as it was.
            let xml = match last.action {
                "delete" => base.get(&last.key).unwrap_or(&last.xml).clone(),
                _ => last.xml.clone(),
            };
            let again = last.time + 1 + random.below(6 * HOUR);
            let mut next = Change {
                time: again,
                version: last.version + 1,
                action: if random.below(4) == 0 {
                    "delete"
                } else {
                    "modify"
                },
                xml,
                ..last
            };
            for (name, value) in [
                ("version", next.version.to_string()),
                ("timestamp", time_text(again)),
            ] {
                let old = format!(" {name}=\"{}\"", attribute(&next.xml, name));
                next.xml = next.xml.replacen(&old, &format!(" {name}=\"{value}\""), 1);
            }
            changes.push(next.clone());
            last = next;
        }
    }
}
