//! A file whose ways have locations is the same after a run with all changes, after a run for each change file, and
//! after anything between: object for object, for each form of such files.

use crate::common::pieces::{DAY, Pieces, START, opl};
use crate::common::random::Random;
use crate::common::{Arg, decode, is_long, run_ok};
use pbfhogg::unstable::osm::format_timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The untagged and tagged nodes of the base. One way has all of them and does not change, so that a file without the
/// nodes that only ways need has all locations.
const NODES: i64 = 40;

/// The way with all nodes of the base.
const WAY_OF_ALL: i64 = 900;

/// Whether a node of the base has tags.
fn is_tagged(node: i64) -> bool {
    node % 7 == 3
}

/// A history whose next changes depend on those before.
struct History {
    random: Random,
    /// Whether objects have timestamps.
    is_timed: bool,
    /// The time of the next change file.
    time: i64,
    versions: BTreeMap<(&'static str, i64), i64>,
    /// The nodes of ways.
    nodes: Vec<i64>,
    /// The nodes that may become members of relations: those with tags in the base, and those that came with a change.
    /// A base without the nodes that only ways need lacks the others as nodes.
    members: Vec<i64>,
    ways: Vec<i64>,
    deleted: BTreeSet<i64>,
    /// The changes of nodes so far.
    sent: Vec<(i64, String)>,
    next_id: i64,
}

impl History {
    fn new(seed: u64, is_timed: bool) -> Self {
        Self {
            random: Random(seed),
            is_timed,
            time: START,
            versions: BTreeMap::new(),
            nodes: (1..=NODES).collect(),
            members: (1..=NODES).filter(|id| is_tagged(*id)).collect(),
            ways: (1..=12).collect(),
            deleted: BTreeSet::new(),
            sent: Vec::new(),
            next_id: 1000,
        }
    }

    fn base(&mut self) -> String {
        let time = if self.is_timed {
            "t2020-01-01T00:00:00Z"
        } else {
            "t"
        };
        let mut text = String::new();
        for id in 1..=NODES {
            let tags = if is_tagged(id) { " Ta=b" } else { "" };
            let (x, y) = (self.random.below(90), self.random.below(80));
            let _ = writeln!(text, "n{id} v1 {time}{tags} x{x} y{y}");
        }
        for id in self.ways.clone() {
            let refs: Vec<String> = (0..1 + self.random.below(5))
                .map(|_| format!("n{}", 1 + self.random.below(NODES)))
                .collect();
            let _ = writeln!(text, "w{id} v1 {time} N{}", refs.join(","));
        }
        let all: Vec<String> = (1..=NODES).map(|id| format!("n{id}")).collect();
        let _ = writeln!(text, "w{WAY_OF_ALL} v1 {time} N{}", all.join(","));
        for (id, members) in [
            (1, "n4@stop,n3@,w1@"),
            (2, "n8@"),
            (3, "n10@,w2@"),
            (4, "n11@,n12@"),
        ] {
            let _ = writeln!(text, "r{id} v1 {time} M{members}");
        }
        text
    }

    fn one_of(&mut self, ids: &[i64]) -> i64 {
        ids[self.random.below(ids.len())]
    }

    fn refs(&mut self) -> String {
        let nodes = self.nodes.clone();
        let count = 1 + self.random.below(5);
        let refs = (0..count).map(|_| format!("<nd ref='{}'/>", self.one_of(&nodes)));
        refs.collect()
    }

    /// The attributes of the next version of an object.
    fn next_version(&mut self, kind: &'static str, id: i64) -> String {
        let version = self.versions.entry((kind, id)).or_insert(1);
        *version += 1;
        let time = format_timestamp(self.time - self.random.below(DAY / 4));
        let time = if self.is_timed {
            format!(" timestamp='{time}'")
        } else {
            String::new()
        };
        format!("id='{id}' version='{version}'{time}")
    }

    fn node(&mut self, id: i64) -> String {
        let version = self.next_version("node", id);
        let (lat, lon) = (self.random.below(80), self.random.below(90));
        let tags = match self.random.below(4) {
            0 => "<tag k='a' v='c'/>",
            _ => "",
        };
        self.deleted.remove(&id);
        if !self.members.contains(&id) {
            self.members.push(id);
        }
        let xml = format!("<modify><node {version} lat='{lat}' lon='{lon}'>{tags}</node></modify>");
        self.sent.push((id, xml.clone()));
        xml
    }

    fn new_id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id
    }

    fn relation(&mut self) -> String {
        let id = 1 + self.random.below(7);
        let version = self.next_version("relation", id);
        let members = self.members.clone();
        let count = self.random.below(4);
        let nodes = (0..count).map(|_| {
            let node = self.one_of(&members);
            format!("<member type='node' ref='{node}' role=''/>")
        });
        let nodes: String = nodes.collect();
        format!(
            "<modify><relation {version}>{nodes}<member type='way' ref='1' role=''/></relation></modify>"
        )
    }

    /// A change: nodes come before their ways, ways and nodes go, members come and go, and versions come too late.
    fn change(&mut self) -> String {
        let (nodes, ways) = (self.nodes.clone(), self.ways.clone());
        match self.random.below(12) {
            0..=2 => {
                let id = self.new_id();
                self.nodes.push(id);
                self.node(id)
            }
            3 => {
                let id = self.new_id();
                self.ways.push(id);
                let version = self.next_version("way", id);
                format!("<create><way {version}>{}</way></create>", self.refs())
            }
            4 | 5 if !ways.is_empty() => {
                let id = self.one_of(&ways);
                let version = self.next_version("way", id);
                format!("<modify><way {version}>{}</way></modify>", self.refs())
            }
            6 if !ways.is_empty() => {
                let id = self.one_of(&ways);
                self.ways.retain(|way| *way != id);
                format!("<delete><way {}/></delete>", self.next_version("way", id))
            }
            7 => {
                let id = self.one_of(&nodes);
                self.deleted.insert(id);
                let version = self.next_version("node", id);
                format!("<delete><node {version}/></delete>")
            }
            8 | 9 => self.relation(),
            10 if !self.sent.is_empty() => {
                let at = self.random.below(self.sent.len());
                let (id, xml) = self.sent[at].clone();
                // Like any file, these get a deleted node back if its version before comes after its deletion.
                if self.deleted.contains(&id) {
                    self.relation()
                } else {
                    xml
                }
            }
            _ => {
                let id = self.one_of(&nodes);
                self.node(id)
            }
        }
    }

    /// Adds the change files of some days. If objects have timestamps, then also one of a day when all these changes
    /// are too old for their nodes to stay.
    fn publish(&mut self, pieces: &mut Pieces) {
        let days = if is_long() { 29 } else { 12 };
        for day in 1..=days {
            self.time = START + day * DAY;
            let changes: String = (0..14).map(|_| self.change()).collect();
            pieces.add(day as f64, &changes);
        }
        if self.is_timed {
            self.time = START + 70 * DAY;
            self.nodes = (1..=NODES).collect();
            let version = self.next_version("way", 1);
            let way = format!("<modify><way {version}>{}</way></modify>", self.refs());
            pieces.add(70.0, &way);
        }
    }
}

/// A line of OPL without the locations in a way.
fn without_locations(line: &str) -> String {
    let fields = line.split(' ').map(|field| match field.strip_prefix('N') {
        Some(refs) => {
            let refs = refs.split(',');
            let ids = refs.map(|node| node.split('x').next().unwrap_or_default());
            format!("N{}", ids.collect::<Vec<_>>().join(","))
        }
        None => field.to_owned(),
    });
    fields.collect::<Vec<_>>().join(" ")
}

/// Makes a file of one of the forms.
fn base_of(form: &str, pieces: &Pieces, text: &str) -> PathBuf {
    let plain = pieces.base("plain", text);
    let needed = |name: &str| pieces.locate(&plain, name, &[]);
    match form {
        "all" => pieces.locate(&plain, "all", &["-n"]),
        "needed" => needed("needed"),
        "extract" => {
            // With untagged nodes of which the file does not know why it has them.
            let all = opl(&pieces.locate(&plain, "all", &["-n"]));
            let few = opl(&needed("few"));
            let is_spare = |line: &str| {
                let id = line
                    .strip_prefix('n')
                    .and_then(|rest| rest.split(' ').next());
                id.is_some_and(|id| id.ends_with('5') || id.ends_with('0'))
            };
            let lines = all
                .iter()
                .filter(|line| few.contains(line) || is_spare(line));
            let text: String = lines.map(|line| format!("{line}\n")).collect();
            let (file, path) = (pieces.base("spare", &text), pieces.path("extract.osm.pbf"));
            let header: [Arg; 2] = [&"--output-header", &"pbfhogg.NeededNodes=true"];
            let cat: [Arg; 5] = [&"cat", &"-q", &file, &"-o", &path];
            run_ok(&[&cat[..], &header[..]].concat());
            path
        }
        "foreign" => {
            // Without the declaration of this program.
            let (file, path) = (needed("needed"), pieces.path("foreign.osm.pbf"));
            let header: [Arg; 2] = [&"--output-header", &"pbfhogg.NeededNodes=false"];
            let cat: [Arg; 5] = [&"cat", &"-q", &file, &"-o", &path];
            run_ok(&[&cat[..], &header[..]].concat());
            path
        }
        _ => {
            // Ways with odd ids have no locations.
            let lines = opl(&pieces.locate(&plain, "all", &["-n"]));
            let is_odd = |line: &str| {
                let id = line.split(' ').next().unwrap().get(1..).unwrap();
                id.parse::<i64>().unwrap() % 2 == 1
            };
            let lines = lines.iter().map(|line| {
                if line.starts_with('w') && is_odd(line) {
                    without_locations(line)
                } else {
                    line.clone()
                }
            });
            pieces.base("mixed", &(lines.collect::<Vec<_>>().join("\n") + "\n"))
        }
    }
}

/// The feature that the header of a file declares about its nodes.
fn declared(path: &Path) -> Vec<String> {
    let features = decode::header(path).optional;
    let ours = features
        .into_iter()
        .filter(|name| name.starts_with("pbfhogg."));
    ours.collect()
}

/// Compares a located file with the same data without locations in ways: the objects, and where they are.
fn assert_is_plain(form: &str, found: &[String], plain: &[String], has_all_nodes: bool) {
    let of = |kind: &[char], lines: &[String]| -> Vec<String> {
        let lines = lines.iter().filter(|line| line.starts_with(kind));
        lines.cloned().collect()
    };
    let (found_nodes, nodes) = (of(&['n'], found), of(&['n'], plain));
    if has_all_nodes {
        assert_eq!(found_nodes, nodes, "{form}");
    }
    let all: BTreeSet<&String> = nodes.iter().collect();
    assert!(
        found_nodes.iter().all(|node| all.contains(node)),
        "{form}: {found_nodes:?}"
    );
    let (found, plain) = (of(&['w', 'r'], found), of(&['w', 'r'], plain));
    assert_eq!(found.len(), plain.len(), "{form}");
    for (found, plain) in found.iter().zip(&plain) {
        if form != "mixed" || found.contains('x') {
            assert_eq!(found, plain, "{form}");
        } else {
            assert_eq!(*found, without_locations(plain), "{form}");
        }
    }
}

fn check(form: &str, seed: u64, is_timed: bool, feature: &str) {
    let (mut pieces, mut history) = (Pieces::new(), History::new(seed, is_timed));
    let text = history.base();
    history.publish(&mut pieces);
    let base = base_of(form, &pieces, &text);
    let located = ["-q", "--locations-on-ways"];
    let at_once = pieces.apply_all(&base, pieces.count(), &located);
    let expected = opl(&at_once);
    assert_eq!(declared(&at_once), [feature], "{form}");
    for len in [1, 5] {
        let file = pieces.apply_all(&base, len, &located);
        let found = opl(&file);
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{form}, seed {seed}, {len} files in a run");
        }
        assert_eq!(found.len(), expected.len(), "{form}, seed {seed}, {len}");
        assert_eq!(declared(&file), [feature], "{form}");
    }
    let plain = pieces.apply_all(&pieces.path("plain.osm.pbf"), pieces.count(), &["-q"]);
    let plain = opl(&pieces.locate(&plain, "expected", &["-n"]));
    let has_all_nodes = !feature.ends_with("NeededNodes");
    assert_is_plain(form, &expected, &plain, has_all_nodes);
}

#[test]
fn a_file_with_all_nodes_does_not_depend_on_the_number_of_runs() {
    check("all", 1, true, "pbfhogg.AllNodes");
}

#[test]
fn a_file_with_needed_nodes_does_not_depend_on_the_number_of_runs() {
    check("needed", 2, true, "pbfhogg.NeededNodes");
}

#[test]
fn an_extract_of_a_file_with_needed_nodes_does_not_depend_on_the_number_of_runs() {
    check("extract", 6, true, "pbfhogg.NeededNodes");
}

#[test]
fn a_file_with_needed_nodes_without_timestamps_does_not_depend_on_the_number_of_runs() {
    check("needed", 3, false, "pbfhogg.NeededNodes");
}

#[test]
fn a_file_with_needed_nodes_of_another_program_does_not_depend_on_the_number_of_runs() {
    check("foreign", 4, true, "pbfhogg.NeededNodes");
}

#[test]
fn a_mixed_file_does_not_depend_on_the_number_of_runs() {
    check("mixed", 5, true, "pbfhogg.SomeNodes");
}
