//! A changing world, and the regions that `regions` cuts out of it each day.

use super::craft::{self, Shape};
use super::extracts::{SMART, Strategy, WORLD_SIZE, extracted, random_box, random_world};
use super::questions::assert_same_objects;
use super::random::Random;
use super::regions::{DEGREE, Region, box_of_degrees, written};
use super::{Arg, Kind, Object, decode, pbfhogg, run, run_ok, stderr};
use flate2::read::GzDecoder;
use pbfhogg::unstable::osm::format_timestamp;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The time of the first day in seconds since 1970.
const START: i64 = 1_700_000_000;
/// The longitude of the western edge of the world, which ends beyond the antimeridian.
const WEST: i64 = 174;

/// How the regions are brought forward.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Route {
    /// They are cut out of the planet.
    CutOut,
    /// The command updates a copy of the planet from the server of its changes.
    Update,
    /// The command applies change files to a copy of the planet.
    Changes,
}

/// A region with its name and its strategy.
pub struct ServedRegion {
    pub name: String,
    pub region: Region,
    pub strategy: Strategy,
}

/// A world of a few hundred objects that changes from day to day, and the directory of its regions.
pub struct Served {
    directory: tempfile::TempDir,
    pub objects: Vec<Object>,
    pub day: i64,
    pub regions: Vec<ServedRegion>,
    /// How the next run brings the regions forward. Each route has a directory of its own.
    pub route: Route,
    /// The number of changes of a day.
    pub changes_of_day: usize,
    random: Random,
    size: i64,
}

impl Served {
    /// A world with about `3 * size` objects and the first `count` of 40 regions: nested, touching, with a hole, of
    /// islands, across the antimeridian, without nodes, and between the nodes of a way.
    pub fn new(seed: u64, size: i64, count: usize) -> Self {
        let mut objects = random_world(seed, size, false);
        for object in &mut objects {
            if object.kind == Kind::Node {
                object.lon_nano = node_lon(object.lon_nano / 100 + WEST * DEGREE) * 100;
            }
        }
        let served = Self {
            directory: tempfile::tempdir().unwrap(),
            changes_of_day: objects.len() / 10,
            route: Route::CutOut,
            objects,
            day: 0,
            regions: regions(&mut Random(seed + 1), count),
            random: Random(seed + 2),
            size,
        };
        served.write();
        fs::create_dir_all(served.path("changes/000/000")).unwrap();
        served.publish();
        served
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The directory of the regions.
    pub fn server(&self) -> PathBuf {
        self.path(match self.route {
            Route::CutOut => "server",
            Route::Update => "updated",
            Route::Changes => "changed",
        })
    }

    /// The planet that the command reads: with [`Route::CutOut`], that of the day, and otherwise a copy of its own.
    pub fn own_planet(&self) -> PathBuf {
        match self.route {
            Route::CutOut => self.planet(),
            Route::Update => self.path("updated.osm.pbf"),
            Route::Changes => self.path("changed.osm.pbf"),
        }
    }

    pub fn planet(&self) -> PathBuf {
        self.path("planet.osm.pbf")
    }

    pub fn extract(&self, name: &str) -> PathBuf {
        self.server().join(format!("{name}.osm.pbf"))
    }

    /// A change file of a region.
    pub fn changes(&self, name: &str, sequence: i64) -> PathBuf {
        self.server()
            .join(format!("{name}-updates/000/000/{sequence:03}.osc.gz"))
    }

    /// The text of a change file of a region.
    pub fn text_of_changes(&self, name: &str, sequence: i64) -> String {
        let mut text = String::new();
        let file = fs::File::open(self.changes(name, sequence)).unwrap();
        GzDecoder::new(file).read_to_string(&mut text).unwrap();
        text
    }

    /// The numbers of objects that a change file of a region creates, modifies and deletes.
    pub fn actions(&self, name: &str, sequence: i64) -> [u64; 3] {
        let text = self.text_of_changes(name, sequence);
        let (mut counts, mut action) = ([0; 3], 0);
        for line in text.lines() {
            match line.trim().split([' ', '>']).next() {
                Some("<create") => action = 0,
                Some("<modify") => action = 1,
                Some("<delete") => action = 2,
                Some("<node" | "<way" | "<relation") => counts[action] += 1,
                _ => {}
            }
        }
        counts
    }

    /// The sequence number in the published state of a region.
    pub fn sequence(&self, name: &str) -> i64 {
        let path = self.server().join(format!("{name}-updates/state.txt"));
        let text = fs::read_to_string(path).unwrap();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("sequenceNumber="));
        line.unwrap().parse().unwrap()
    }

    /// The command that brings the regions forward.
    pub fn command(&self, more: &[&str]) -> Command {
        let (mut command, planet) = (pbfhogg(), self.own_planet());
        if !planet.exists() {
            fs::copy(self.planet(), &planet).unwrap();
        }
        command.arg("regions").arg(&planet);
        command.arg("-c").arg(self.path("regions.json"));
        command.arg("-d").arg(self.server());
        command.args(["--json", "--no-progress"]);
        if !more.contains(&"--max-shrink") {
            command.args(["--max-shrink", "100"]);
        }
        match self.route {
            Route::CutOut => {}
            Route::Update => {
                command.args(["--update", "--max-age", "9999", "--first-pause", "1"]);
                command.arg("--server").arg(self.path("changes"));
            }
            Route::Changes => {
                let missing = sequence_of(&planet) + 1..=self.day;
                command.args(missing.clone().next().map(|_| "--changes"));
                command.args(missing.map(|day| self.changes_of_planet(day)));
            }
        }
        command.args(more);
        command
    }

    fn changes_of_planet(&self, day: i64) -> PathBuf {
        self.path(&format!("changes/000/000/{day:03}.osc.gz"))
    }

    /// Brings the regions forward. Returns the report.
    pub fn run(&self, more: &[&str]) -> Value {
        let output = self.command(more).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        report(&output)
    }

    /// Changes some of the objects, and writes the planet of the next day and its changes.
    pub fn next_day(&mut self) {
        for _ in 0..self.changes_of_day {
            self.change();
        }
        self.end_day();
    }

    /// Writes the planet of the next day, with the present objects, and its changes.
    pub fn end_day(&mut self) {
        self.day += 1;
        let old = self.path("old.osm.pbf");
        fs::rename(self.planet(), &old).unwrap();
        self.write();
        let (planet, changes) = (self.planet(), self.changes_of_planet(self.day));
        run_ok(&[&"derive-changes", &"-q", &old, &planet, &"-o", &changes]);
        self.publish();
    }

    /// Writes the state of the changes of the day.
    fn publish(&self) {
        let time = self.time().replace(':', "\\:");
        let state = format!("sequenceNumber={}\ntimestamp={time}\n", self.day);
        let of_day = format!("changes/000/000/{:03}.state.txt", self.day);
        for path in [&of_day, "changes/state.txt"] {
            fs::write(self.path(path), &state).unwrap();
        }
    }

    /// Changes an object: its place, references or members; deletes it; or creates one that is not there.
    fn change(&mut self) {
        let kinds = [Kind::Node, Kind::Node, Kind::Way, Kind::Relation];
        let kind = kinds[self.random.below(4usize)];
        let id = 1 + self.random.below(self.size + 5);
        let seed = self.random.bits(40);
        // An object of another world that has the same kind of content.
        let other = random_world(seed, self.size.min(id + 4), false);
        let mut new = other
            .into_iter()
            .find(|object| (object.kind, object.id) == (kind, id.min(self.size)))
            .unwrap();
        new.id = id;
        new.timestamp = Some(START + self.day * 86_400 - 1000);
        if kind == Kind::Node {
            let lon = WEST * DEGREE + self.random.below(WORLD_SIZE * DEGREE);
            new.lon_nano = node_lon(lon) * 100;
        }
        let key = |object: &Object| (object.kind, object.id);
        let at = self
            .objects
            .iter()
            .position(|object| key(object) == (kind, id));
        match at {
            Some(at) if self.random.below(4) == 0 => {
                self.objects.remove(at);
            }
            Some(at) => {
                new.version = self.objects[at].version.map(|version| version + 1);
                self.objects[at] = new;
            }
            None => {
                // An object that comes back has a higher version than any that it had.
                new.version = Some(1000 * (self.day + 1));
                self.objects.push(new);
                self.objects.sort_by_key(key);
            }
        }
    }

    /// Writes the planet and the configuration of the present day.
    pub fn write(&self) {
        let raw = self.path("raw.osm.pbf");
        let blocks = self.objects.chunks(60);
        let blocks: Vec<Vec<u8>> = blocks
            .map(|objects| craft::block(objects, &Shape::USUAL))
            .collect();
        let header = craft::header_payload(&["OsmSchema-V0.6", "DenseNodes"], &[]);
        fs::write(&raw, craft::file(header, &blocks)).unwrap();
        let time = format!("osmosis_replication_timestamp={}", self.time());
        let sequence = format!("osmosis_replication_sequence_number={}", self.day);
        let planet = self.planet();
        run_ok(&[
            &"cat",
            &"-q",
            &raw,
            &"-O",
            &"-o",
            &planet,
            &"--output-header",
            &time,
            &"--output-header",
            &sequence,
            &"--output-header",
            &"osmosis_replication_base_url=https://planet.example/day",
        ]);
        let extracts: Vec<String> = self.regions.iter().map(ServedRegion::json).collect();
        let text = format!("{{\"extracts\":[{}]}}", extracts.join(",\n"));
        written(self.directory.path(), "regions.json", &text);
    }

    /// The time of the present day.
    pub fn time(&self) -> String {
        format_timestamp(START + self.day * 86_400)
    }

    /// Compares the extract of a region with the plain search in the objects of the day.
    pub fn check(&self, region: &ServedRegion, file: &Path) {
        let expected = extracted(&self.objects, &region.region, region.strategy);
        let what = format!("{} on day {}", region.name, self.day);
        assert_same_objects(&decode::objects(file), &expected, &what);
    }

    /// Applies the change files after a sequence number to a file, with our program or with osmium.
    pub fn catch_up(&self, name: &str, file: &Path, with_osmium: bool) {
        for sequence in sequence_of(file) + 1..=self.sequence(name) {
            let changes = self.changes(name, sequence);
            let new = file.with_extension("new.osm.pbf");
            if with_osmium {
                let args: [&dyn AsRef<std::ffi::OsStr>; 7] = [
                    &"apply-changes",
                    &file,
                    &changes,
                    &"-O",
                    &"--no-progress",
                    &"-o",
                    &new,
                ];
                let mut osmium = Command::new("osmium");
                let output = osmium.args(args.map(|arg| arg.as_ref())).output().unwrap();
                assert!(output.status.success(), "{}", stderr(&output));
            } else {
                run_ok(&[&"apply-changes", &"-q", &file, &changes, &"-O", &"-o", &new]);
            }
            fs::rename(&new, file).unwrap();
        }
    }
}

impl ServedRegion {
    fn json(&self) -> String {
        let strategy = match self.strategy {
            Strategy::Simple => "\"simple\"".to_owned(),
            Strategy::CompleteWays => "\"complete-ways\"".to_owned(),
            Strategy::NoRelations => "{\"name\":\"complete-ways\",\"relations\":false}".to_owned(),
            Strategy::Smart(types, percent) => {
                let types = types.map_or_else(|| "any".to_owned(), |types| types.join(","));
                let percent = match percent {
                    0 => String::new(),
                    percent => format!(",\"complete-partial-relations\":{percent}"),
                };
                format!("{{\"name\":\"smart\",\"types\":\"{types}\"{percent}}}")
            }
        };
        format!(
            "{{\"output\":\"{}.osm.pbf\",\"strategy\":{strategy},\"multipolygon\":{}}}",
            self.name,
            self.region.multipolygon()
        )
    }
}

/// The sequence number in the header of a file.
pub fn sequence_of(file: &Path) -> i64 {
    let facts = run_ok(&[&"inspect", &"--json", &file]);
    let facts: Value = serde_json::from_slice(&facts.stdout).unwrap();
    facts["replication_sequence"].as_i64().unwrap()
}

/// The report of a run with --json.
pub fn report(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no report: {said}"))
}

/// A longitude that lies in the west again beyond the antimeridian.
fn beyond(lon_e7: i64) -> i64 {
    const EDGE: i64 = 180 * DEGREE;
    if lon_e7 > EDGE {
        lon_e7 - 2 * EDGE
    } else {
        lon_e7
    }
}

/// The longitude of a node. None is at the antimeridian, because the plain search does not know that its two sides are
/// the same.
fn node_lon(lon_e7: i64) -> i64 {
    beyond(lon_e7 + i64::from(lon_e7 == 180 * DEGREE))
}

fn regions(random: &mut Random, count: usize) -> Vec<ServedRegion> {
    let at = |west: i64, south: i64, east: i64, north: i64| {
        let [west, east] = [west, east].map(|lon| beyond((WEST + lon) * DEGREE));
        // The antimeridian as a western edge.
        let west = if west == 180 * DEGREE { -west } else { west };
        Region::boxed(west, south * DEGREE, east, north * DEGREE)
    };
    let ring = |west, south, east, north| at(west, south, east, north).polygons.remove(0).remove(0);
    let star = Region::star(
        ((WEST + 3) * DEGREE + 1, 5 * DEGREE + 3),
        5 * DEGREE,
        9 * DEGREE,
    );
    let islands = Region {
        polygons: vec![
            vec![ring(0, 0, 1, 1)],
            vec![ring(4, 4, 5, 6)],
            vec![ring(1, 9, 2, 10)],
        ],
    };
    // Between the nodes, which are at whole degrees on the first day.
    let between = |degrees: i64| WEST * DEGREE + degrees * DEGREE + DEGREE / 3;
    let building = Region::boxed(
        between(2),
        between(3) - WEST * DEGREE,
        between(2) + 20,
        DEGREE * 4,
    );
    let mut all = vec![
        at(0, 0, 12, 12),
        at(0, 0, 6, 6),
        at(6, 0, 12, 6),
        at(0, 6, 6, 12),
        at(6, 6, 12, 12),
        at(2, 2, 5, 5),
        at(3, 3, 4, 4),
        at(5, 2, 8, 9),
        Region::of(&[star, ring(2, 4, 4, 6)]),
        islands,
        box_of_degrees(0, 0, 1, 1),
        building,
    ];
    while all.len() < count {
        let [west, south, east, north] = random_box(random, WORLD_SIZE).envelope();
        let [west, south, east, north] = [west, south, east, north].map(|edge| edge / DEGREE);
        all.push(at(west, south, east, north));
    }
    let strategies = [
        Strategy::CompleteWays,
        SMART,
        Strategy::Simple,
        Strategy::Smart(None, 0),
        Strategy::CompleteWays,
        SMART,
        Strategy::NoRelations,
        Strategy::Smart(Some(&["boundary"]), 50),
    ];
    let named = all.into_iter().take(count).enumerate();
    let named = named.map(|(number, region)| ServedRegion {
        name: format!("{}{number}", if number % 3 == 2 { "deep/" } else { "r" }),
        region,
        strategy: strategies[number % strategies.len()],
    });
    named.collect()
}

/// Runs the program for a directory, and expects an exit status. Returns its messages.
pub fn run_with_status(status: i32, args: &[Arg]) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
    stderr(&output)
}
