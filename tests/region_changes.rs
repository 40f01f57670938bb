//! The change files of regions: they turn the extracts of one day into those of the next.

use crate::common::craft::{self, Shape};
use crate::common::extracts::{SMART, STRATEGIES, Strategy, WORLD_SIZE, extracted, random_object};
use crate::common::questions::assert_same_objects;
use crate::common::random::Random;
use crate::common::regions::{DEGREE, Region, box_of_degrees};
use crate::common::{Kind, Object, decode, is_long, with_metadata};
use pbfhogg::commands::region_changes::{self, RegionBefore, RegionOutcome};
use pbfhogg::commands::{apply_changes, diff, extract};
use pbfhogg::write::HeaderOptions;
use pbfhogg::{Context, OutputOptions, OutputTarget};
use std::path::{Path, PathBuf};

/// The last whole degree to the east of which a world of [`World::random`] may lie.
const EDGE: i64 = 180;

/// The objects of a day, in canonical order.
#[derive(Clone)]
struct World {
    objects: Vec<Object>,
    /// The number of objects of each kind at the beginning.
    count: i64,
    /// The longitude of the western edge in degrees.
    west: i64,
}

impl World {
    fn random(random: &mut Random, count: i64) -> Self {
        let west = [0, EDGE - 5][random.below(2) as usize];
        let mut world = Self {
            objects: Vec::new(),
            count,
            west,
        };
        for kind in [Kind::Node, Kind::Way, Kind::Relation] {
            for id in 1..=count {
                if random.below(12) > 0 {
                    let object = world.object(random, kind, id, 1);
                    world.objects.push(object);
                }
            }
        }
        world
    }

    fn object(&self, random: &mut Random, kind: Kind, id: i64, version: i64) -> Object {
        let mut object = random_object(random, kind, id, self.count);
        if kind == Kind::Node {
            let lon = object.lon_nano / (DEGREE * 100) + self.west;
            let lon = if lon >= EDGE { lon - 2 * EDGE } else { lon };
            // The plain search does not know that the meridians of 180 degrees are the same.
            let beside = if self.west == 0 { 0 } else { DEGREE / 2 };
            object.lon_nano = (lon * DEGREE + beside) * 100;
        }
        with_metadata(object, version, 1_600_000_000 + version, 7, "mapper")
    }

    /// The next day: of the objects, one in `rate` is changed, deleted or created.
    fn next(&self, random: &mut Random, rate: i64) -> Self {
        let mut next = Self {
            objects: Vec::new(),
            ..self.clone()
        };
        let mut old = self.objects.iter().peekable();
        for kind in [Kind::Node, Kind::Way, Kind::Relation] {
            for id in 1..=self.count + 2 {
                let old = old.next_if(|old| (old.kind, old.id) == (kind, id));
                let version = old.map_or(5, |old| old.version.unwrap() + 1);
                let object = match (old, random.below(rate)) {
                    (Some(_), 0) if random.below(3) == 0 => None,
                    (Some(old), 0) if random.below(3) == 0 => {
                        let tagged = Object {
                            tags: vec![("day".to_owned(), version.to_string())],
                            ..old.clone()
                        };
                        Some(with_metadata(
                            tagged,
                            version,
                            1_600_000_000 + version,
                            7,
                            "m",
                        ))
                    }
                    (_, 0) => Some(self.object(random, kind, id, version)),
                    (old, _) => old.cloned(),
                };
                next.objects.extend(object);
            }
        }
        assert!(old.peek().is_none());
        next
    }

    fn write(&self, dir: &Path, name: &str, size: usize) -> PathBuf {
        let kinds = self.objects.chunk_by(|one, next| one.kind == next.kind);
        let blocks = kinds.flat_map(|objects| objects.chunks(size));
        let blocks: Vec<_> = blocks
            .map(|objects| craft::block(objects, &Shape::USUAL))
            .collect();
        let path = dir.join(name);
        std::fs::write(&path, craft::plain_file(&blocks)).unwrap();
        path
    }

    /// A region of each awkward kind, and random boxes.
    fn regions(&self, random: &mut Random, count: usize) -> Vec<Region> {
        let west = self.west;
        let boxed = |west: i64, south, east: i64, north| {
            let around = |lon: i64, is_over: bool| lon - if is_over { 2 * EDGE } else { 0 };
            let (west, east) = (around(west, west >= EDGE), around(east, east > EDGE));
            box_of_degrees(west, south, east, north)
        };
        let whole = boxed(west, 0, west + WORLD_SIZE, WORLD_SIZE);
        let ring = |region: Region| region.polygons.into_iter().next().unwrap().remove(0);
        let hole = Region::of(&[
            ring(box_of_degrees(west, 1, west + 4, 9)),
            ring(box_of_degrees(west + 1, 2, west + 3, 7)),
        ]);
        let islands = Region {
            polygons: vec![
                vec![ring(box_of_degrees(west, 0, west + 1, 3))],
                vec![ring(box_of_degrees(west + 2, 4, west + 4, 6))],
            ],
        };
        let nowhere = box_of_degrees(40, 40, 41, 41);
        let point = Region::boxed(
            west * DEGREE - 1,
            3 * DEGREE - 1,
            west * DEGREE + 1,
            3 * DEGREE + 1,
        );
        let star = Region::of(&[Region::star(
            ((west + 2) * DEGREE + 1, 5 * DEGREE),
            4 * DEGREE,
            8 * DEGREE,
        )]);
        let halves = [
            boxed(west, 0, west + 6, WORLD_SIZE),
            boxed(west + 6, 0, west + WORLD_SIZE, WORLD_SIZE),
        ];
        let mut regions = vec![whole, hole, islands, nowhere, point, star];
        regions.extend(halves);
        while regions.len() < count {
            let (left, south) = (west + random.below(WORLD_SIZE), random.below(WORLD_SIZE));
            let (width, height) = (1 + random.below(5), 1 + random.below(5));
            regions.push(boxed(left, south, left + width, south + height));
        }
        regions.truncate(count);
        regions
    }
}

fn strategy_of(strategy: Strategy) -> extract::Strategy {
    match strategy {
        Strategy::Simple => extract::Strategy::Simple,
        Strategy::CompleteWays => extract::Strategy::CompleteWays { relations: true },
        Strategy::NoRelations => extract::Strategy::CompleteWays { relations: false },
        Strategy::Smart(types, percent) => {
            let mut smart = extract::Strategy::smart();
            if let extract::Strategy::Smart {
                types: of,
                min_percent,
                ..
            } = &mut smart
            {
                *of =
                    extract::RelationTypes::parse(&types.map_or("any".into(), |all| all.join(",")));
                *min_percent = (percent > 0).then_some(percent as u32);
            }
            smart
        }
    }
}

/// The text of a change file. Where the runs of equal actions are divided depends on the blobs of the files.
fn changes_of(path: &Path) -> String {
    let mut text = std::fs::read_to_string(path).unwrap();
    for action in ["create", "modify", "delete"] {
        text = text.replace(&format!("  </{action}>\n  <{action}>\n"), "");
    }
    text
}

/// A directory with the extracts of a day, and how they are made.
struct Server {
    dir: tempfile::TempDir,
    regions: Vec<(Region, Strategy)>,
    shapes: Vec<extract::Extract>,
    ctx: Context,
}

impl Server {
    fn new(regions: Vec<(Region, Strategy)>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let shape = |(number, (region, _)): (usize, &(Region, Strategy))| {
            let file = region.geojson_file(dir.path(), &number.to_string());
            let shape = extract::read_shape(&file, None).unwrap();
            extract::Extract::new(shape, OutputTarget::file("never"))
        };
        Self {
            shapes: regions.iter().enumerate().map(shape).collect(),
            regions,
            dir,
            ctx: Context::new(2),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn extract_of(&self, day: &str, number: usize) -> PathBuf {
        self.path(&format!("{day}-{number}.osm.pbf"))
    }

    /// Cuts out all regions.
    fn cut(&self, planet: &Path, day: &str) {
        let mut left: Vec<usize> = (0..self.regions.len()).collect();
        while let Some(first) = left.first() {
            let strategy = self.regions[*first].1;
            let (these, others) = left
                .iter()
                .partition::<Vec<usize>, _>(|number| self.regions[**number].1 == strategy);
            let extracts = these.iter().map(|number| extract::Extract {
                output: OutputTarget::file(self.extract_of(day, *number)),
                ..self.shapes[*number].clone()
            });
            let options = extract::Options::new(planet, extracts.collect());
            let options = options.strategy(strategy_of(strategy));
            extract::run(&options, &self.ctx).unwrap();
            left = others;
        }
    }

    /// Follows the changes from one file to another, whose extracts exist, and returns the outcomes.
    fn follow(&self, planet: &Path, changes: &Path, max_percent: u32) -> Vec<RegionOutcome> {
        let region = |(number, (_, strategy)): (usize, &(Region, Strategy))| RegionBefore {
            shape: self.shapes[number].shape.clone(),
            strategy: strategy_of(*strategy),
            extract: self.extract_of("old", number),
            header: HeaderOptions::default(),
            output: OutputTarget::file(self.path(&format!("fast-{number}.osc"))),
        };
        let regions = self.regions.iter().enumerate().map(region).collect();
        let options = region_changes::Options::new(planet, vec![changes.to_owned()], regions)
            .max_percent(max_percent);
        region_changes::run(&options, &self.ctx).unwrap()
    }

    fn derive(&self, old: &Path, new: &Path, name: &str) -> PathBuf {
        let path = self.path(name);
        let target = OutputTarget::file(&path);
        let format = diff::Format::Osc(diff::Deletions::default());
        let options = diff::Options::new(old, new).output(Some((format, target)));
        diff::run(&options, &self.ctx).unwrap();
        path
    }

    /// Expects that the change file of a region is the one that is derived of its extracts, and leads from the old one
    /// to the new one.
    fn expect(&self, number: usize, about: &str) {
        let [old, new] = ["old", "new"].map(|day| self.extract_of(day, number));
        let derived = self.derive(&old, &new, &format!("derived-{number}.osc"));
        let fast = self.path(&format!("fast-{number}.osc"));
        let [derived, text] = [&derived, &fast].map(|path| changes_of(path));
        let about = format!("{about}, region {number} {:?}", self.regions[number]);
        if derived != text {
            println!("{about}\n--- derived\n{derived}\n--- fast\n{text}");
            panic!("{about}");
        }
    }

    fn expect_applied(&self, number: usize, about: &str) {
        let applied = self.path(&format!("applied-{number}.osm.pbf"));
        let output = OutputOptions::file(&applied);
        let fast = self.path(&format!("fast-{number}.osc"));
        let options =
            apply_changes::Options::new(self.extract_of("old", number), vec![fast], output);
        apply_changes::run(&options, &self.ctx).unwrap();
        let new = decode::objects(&self.extract_of("new", number));
        assert_same_objects(&decode::objects(&applied), &new, about);
    }
}

/// Follows a random world for some days.
fn follow_world(seed: u64, count: i64, regions: usize, days: usize, strategies: &[Strategy]) {
    let mut random = Random(seed);
    let mut world = World::random(&mut random, count);
    let regions = world.regions(&mut random, regions);
    let strategies = strategies.iter().copied().cycle();
    let regions: Vec<_> = regions.into_iter().zip(strategies).collect();
    for day in 0..days {
        let about = format!("seed {seed}, day {day}");
        let rate = [3, 8, 25, 60][random.below(4) as usize];
        let next = world.next(&mut random, rate);
        let server = Server::new(regions.clone());
        let size = 3 + random.below(60) as usize;
        let [old, new] = [(&world, "old.osm.pbf"), (&next, "new.osm.pbf")]
            .map(|(world, name)| world.write(server.dir.path(), name, size));
        server.cut(&old, "old");
        server.cut(&new, "new");
        let changes = server.derive(&old, &new, "changes.osc");
        for (number, outcome) in server.follow(&new, &changes, 10_000_000).iter().enumerate() {
            match outcome {
                RegionOutcome::Written(_) => server.expect(number, &about),
                other => panic!("{about}: {other:?}"),
            }
            let (region, strategy) = &server.regions[number];
            let expected = extracted(&next.objects, region, *strategy);
            let cut = decode::objects(&server.extract_of("new", number));
            assert_same_objects(&cut, &expected, &about);
            if number < 4 {
                server.expect_applied(number, &about);
            }
        }
        world = next;
    }
}

/// All strategies that the plain search knows.
fn all_strategies() -> Vec<Strategy> {
    let mut all = STRATEGIES.to_vec();
    all.extend(crate::common::extracts::OPTIONS);
    all
}

#[test]
fn change_files_of_regions_are_those_derived_of_extracts() {
    let worlds = if is_long() { 400 } else { 4 };
    for seed in 0..worlds {
        let all = all_strategies();
        match seed % 4 {
            0 => follow_world(seed, 60, 10, 1, &[Strategy::CompleteWays]),
            1 => follow_world(seed, 60, 10, 1, &[SMART]),
            2 => follow_world(seed, 60, 10, 1, &STRATEGIES),
            _ => follow_world(seed, 60, 10, 1, &all),
        }
    }
}

#[test]
fn change_files_of_forty_regions_are_right_for_days() {
    let days = if is_long() { 30 } else { 1 };
    follow_world(99, 200, 40, days, &all_strategies());
}

/// The reasons why regions of a small world have to be cut out anew, after `prepare` changed the files.
fn reasons(max_percent: u32, prepare: impl Fn(&Server, &mut PathBuf)) -> Vec<Option<String>> {
    let mut random = Random(3);
    let world = World::random(&mut random, 80);
    let regions = world.regions(&mut random, 3).into_iter();
    let server = Server::new(regions.map(|one| (one, Strategy::CompleteWays)).collect());
    let next = world.next(&mut random, 9);
    let [old, mut new] = [(&world, "old.osm.pbf"), (&next, "new.osm.pbf")]
        .map(|(world, name)| world.write(server.dir.path(), name, 20));
    server.cut(&old, "old");
    let changes = server.derive(&old, &new, "changes.osc");
    prepare(&server, &mut new);
    let outcomes = server.follow(&new, &changes, max_percent);
    for (number, outcome) in outcomes.iter().enumerate() {
        let is_written = server.path(&format!("fast-{number}.osc")).exists();
        assert_eq!(is_written, matches!(outcome, RegionOutcome::Written(_)));
    }
    let reason = |outcome| match outcome {
        RegionOutcome::CutAnew(reason) => Some(reason),
        _ => None,
    };
    outcomes.into_iter().map(reason).collect()
}

#[test]
fn a_region_of_which_too_much_changes_is_cut_anew() {
    let all = reasons(0, |_, _| ());
    let much = Some("more than 0 percent of its extract may change".to_owned());
    assert_eq!(all, [much.clone(), much.clone(), much]);
    assert_eq!(reasons(100_000, |_, _| ()), [None, None, None]);
}

#[test]
fn an_extract_that_lacks_nodes_of_another_one_is_cut_anew() {
    let empty = |server: &Server, _: &mut PathBuf| {
        let far = [(
            crate::common::regions::box_of_degrees(60, 60, 61, 61),
            SMART,
        )];
        let other = Server::new(far.to_vec());
        other.cut(&server.path("old.osm.pbf"), "old");
        std::fs::copy(other.extract_of("old", 0), server.extract_of("old", 1)).unwrap();
    };
    let all = reasons(100_000, empty);
    let reason = "its extract is not of the state before the changes";
    assert_eq!(all, [None, Some(reason.to_owned()), None]);
}

#[test]
fn files_with_located_ways_are_cut_anew() {
    let locate = |server: &Server, planet: &mut PathBuf| {
        let located = server.path("located.osm.pbf");
        crate::common::run_ok(&[&"add-locations-to-ways", &"-n", planet, &"-o", &located]);
        *planet = located;
    };
    for reason in reasons(100_000, locate) {
        assert!(reason.unwrap().ends_with("its ways store locations"));
    }
}
