//! The expected results of `extract`, computed by simple, slow code.
//!
//! The rules were derived from results of osmium, see `the_plain_search_gives_what_osmium_gives…` in
//! `tests/extract.rs`. Objects are selected by id: a property of one version holds for all versions.

use super::questions::{Answer, Ids, Inputs, name_of, parted, references};
use super::random::Random;
use super::regions::{DEGREE, Place, Region, box_of_degrees, written};
use super::{Kind, Object, node, relation, way, with_metadata};
use std::path::{Path, PathBuf};

/// The objects that are selected in addition to the nodes in a region.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Strategy {
    /// The ways of these nodes, and the relations of these nodes and ways.
    Simple,
    /// As `Simple`, and all nodes of these ways, and the parents of these relations.
    CompleteWays,
    /// As `CompleteWays`, without relations.
    NoRelations,
    /// As `CompleteWays`, and the nodes, ways and nodes of ways of some relations with a node or way in the region:
    /// those of the given types (`None` is any), and those with at least the given percentage of members in the region,
    /// if it is not 0.
    Smart(Option<&'static [&'static str]>, usize),
}

/// The smart strategy with its default options.
pub const SMART: Strategy = Strategy::Smart(Some(&["multipolygon"]), 0);

/// The three strategies with their default options.
pub const STRATEGIES: [Strategy; 3] = [Strategy::Simple, Strategy::CompleteWays, SMART];

/// Strategies with other options.
pub const OPTIONS: [Strategy; 7] = [
    Strategy::NoRelations,
    Strategy::Smart(None, 0),
    Strategy::Smart(Some(&["boundary", "route"]), 0),
    Strategy::Smart(Some(&["none"]), 34),
    Strategy::Smart(Some(&["multipolygon"]), 50),
    Strategy::Smart(Some(&["multipolygon"]), 1),
    Strategy::Smart(Some(&["boundary"]), 100),
];

impl Strategy {
    /// The arguments that select the strategy, in pbfhogg and in osmium.
    pub fn args(self) -> Vec<String> {
        let args = match self {
            Strategy::Simple => "-s simple".to_owned(),
            Strategy::CompleteWays => "-s complete_ways".to_owned(),
            Strategy::NoRelations => "-s complete_ways -S relations=false".to_owned(),
            Strategy::Smart(types, percent) => {
                let types = types.map_or_else(|| "any".to_owned(), |types| types.join(","));
                let types = match types.as_str() {
                    "multipolygon" => String::new(),
                    types => format!(" -S types={types}"),
                };
                let percent = match percent {
                    0 => String::new(),
                    percent => format!(" -S complete-partial-relations={percent}"),
                };
                format!("-s smart{types}{percent}")
            }
        };
        args.split(' ').map(str::to_owned).collect()
    }

    /// Whether the strategy adds the members of a relation of which `inside` members are in the region.
    fn completes(self, relation: &Object, inside: usize) -> bool {
        let Strategy::Smart(types, percent) = self else {
            return false;
        };
        let fits = |(key, value): &(String, String)| {
            key == "type" && types.is_some_and(|types| types.contains(&value.as_str()))
        };
        types.is_none()
            || relation.tags.iter().any(fits)
            || (percent > 0 && inside * 100 >= percent * relation.members.len())
    }
}

/// The location of a node, rounded to 1e-7 degree; `None` for deleted nodes and invalid coordinates.
pub fn place_of(node: &Object) -> Option<Place> {
    let rounded = |nano: i64| (nano + 50 * nano.signum()) / 100;
    let (lon, lat) = (node.lon_nano, node.lat_nano);
    let valid = lat.abs() <= 90_000_000_000 && lon.abs() <= 180_000_000_000;
    let is_somewhere = node.kind == Kind::Node && node.visible && valid;
    is_somewhere.then(|| (rounded(lon), rounded(lat)))
}

/// The ids in the extract, even if the file does not have the objects.
pub fn extracted_ids(objects: &[Object], region: &Region, strategy: Strategy) -> Ids {
    let is_inside = |object: &&Object| place_of(object).is_some_and(|place| region.holds(place));
    let nodes: Ids = objects.iter().filter(is_inside).map(name_of).collect();
    let of = |kind: Kind| objects.iter().filter(move |object| object.kind == kind);
    let ways: Ids = of(Kind::Way)
        .filter(|way| references(way).any(|node| nodes.contains(&node)))
        .map(name_of)
        .collect();
    let inside: Ids = nodes.union(&ways).copied().collect();
    let count_inside = |relation: &Object| {
        references(relation)
            .filter(|name| inside.contains(name))
            .count()
    };
    let is_direct = |relation: &&Object| count_inside(relation) > 0;
    let direct: Ids = of(Kind::Relation).filter(is_direct).map(name_of).collect();

    let mut kept: Ids = inside.union(&direct).copied().collect();
    if strategy == Strategy::Simple {
        return kept;
    }
    kept.extend(parents(objects, direct));
    for relation in of(Kind::Relation).filter(is_direct) {
        if strategy.completes(relation, count_inside(relation)) {
            let members = references(relation).filter(|(kind, _)| *kind != Kind::Relation);
            kept.extend(members);
        }
    }
    let ways = of(Kind::Way).filter(|way| kept.contains(&name_of(way)));
    let nodes: Ids = ways.flat_map(references).collect();
    kept.extend(nodes);
    if strategy == Strategy::NoRelations {
        kept.retain(|(kind, _)| *kind != Kind::Relation);
    }
    kept
}

/// `children`, the relations that have them as members, the relations that have these as members, and so on.
fn parents(objects: &[Object], children: Ids) -> Ids {
    let mut found = children;
    loop {
        let is_parent = |object: &&Object| references(object).any(|name| found.contains(&name));
        let relations = objects
            .iter()
            .filter(|object| object.kind == Kind::Relation);
        let parents: Ids = relations.filter(is_parent).map(name_of).collect();
        if parents.is_subset(&found) {
            return found;
        }
        found.extend(parents);
    }
}

/// The objects in the extract, in file order.
pub fn extracted(objects: &[Object], region: &Region, strategy: Strategy) -> Vec<Object> {
    parted(objects, &extracted_ids(objects, region, strategy)).0
}

/// The ids that osmium 1.15 selects with `simple`: a way with a node in the region only if that is its first node, a
/// relation only if its first member that is a node or a way is selected.
pub fn osmiums_simple_ids(objects: &[Object], region: &Region) -> Ids {
    let is_inside = |object: &&Object| place_of(object).is_some_and(|place| region.holds(place));
    let mut kept: Ids = objects.iter().filter(is_inside).map(name_of).collect();
    for kind in [Kind::Way, Kind::Relation] {
        let first_is_kept = |object: &&Object| {
            let mut references = references(object).filter(|(kind, _)| *kind != Kind::Relation);
            references.next().is_some_and(|first| kept.contains(&first))
        };
        let objects = objects.iter().filter(|object| object.kind == kind);
        let more: Ids = objects.filter(first_is_kept).map(name_of).collect();
        kept.extend(more);
    }
    kept
}

// Running `extract`.

/// Extracts a region, given in a GeoJSON file, from the three forms of a file, and expects the result of the plain
/// search.
pub fn expect_extracts(
    inputs: &Inputs,
    objects: &[Object],
    region: &Region,
    strategies: &[Strategy],
) {
    let dir = tempfile::tempdir().unwrap();
    let file = region.geojson_file(dir.path(), "region");
    for strategy in strategies {
        let expected = extracted(objects, region, *strategy);
        expect_extract(
            inputs,
            &["-p", file.to_str().unwrap()],
            *strategy,
            &expected,
        );
    }
}

/// Runs `extract` and expects exactly the given objects.
pub fn expect_extract(
    inputs: &Inputs,
    args: &[&str],
    strategy: Strategy,
    expected: &[Object],
) -> Answer {
    let strategy = strategy.args();
    let strategy: Vec<&str> = strategy.iter().map(String::as_str).collect();
    inputs.expect(&[&["extract"], args, &strategy].concat(), expected)
}

/// Writes a configuration file with the regions as multipolygons. Returns its path and those of the outputs in `dir`,
/// whose names are numbers with a suffix.
pub fn config_of(dir: &Path, regions: &[Region], suffix: &str) -> (PathBuf, Vec<PathBuf>) {
    let name = |number| format!("{number}.{suffix}");
    let extract = |(number, region): (usize, &Region)| {
        let coordinates = region.multipolygon();
        let output = name(number);
        format!("{{\"output\":\"{output}\",\"multipolygon\":{coordinates}}}")
    };
    let extracts: Vec<String> = regions.iter().enumerate().map(extract).collect();
    let directory = dir.display();
    let extracts = extracts.join(",\n");
    let text = format!("{{\"directory\":\"{directory}\",\n\"extracts\":[{extracts}]}}");
    let outputs = (0..regions.len()).map(|number| dir.join(name(number)));
    (written(dir, "config.json", &text), outputs.collect())
}

// Generated data.

/// A box with edges between 0 and `size` degrees.
pub fn random_box(random: &mut Random, size: i64) -> Region {
    let (west, south) = (random.below(size - 1), random.below(size - 1));
    let (width, height) = (1 + random.below(size / 2), 1 + random.below(size / 2));
    let (east, north) = ((west + width).min(size), (south + height).min(size));
    box_of_degrees(west, south, east, north)
}

/// The size of a [`random_world`] in degrees. It begins at longitude and latitude 0.
pub const WORLD_SIZE: i64 = 12;

/// Nodes at whole degrees, and ways and relations with random references, some of them to missing objects. With
/// `history`, objects have up to three versions, some of them deleted.
pub fn random_world(seed: u64, count: i64, history: bool) -> Vec<Object> {
    let mut random = Random(seed);
    let mut objects = Vec::new();
    for kind in [Kind::Node, Kind::Way, Kind::Relation] {
        for id in 1..=count {
            let versions = if history { 1 + random.below(3) } else { 1 };
            for version in 1..=versions {
                let visible = version == 1 || random.below(3) > 0;
                let mut object = random_object(&mut random, kind, id, count);
                if !visible {
                    object = Object::new(kind, id);
                }
                let object = with_metadata(object, version, 1_600_000_000 + version, 7, "mapper");
                objects.push(Object { visible, ..object });
            }
        }
    }
    objects
}

/// A random object of a [`random_world`] of `count` objects of each kind, without metadata.
pub fn random_object(random: &mut Random, kind: Kind, id: i64, count: i64) -> Object {
    // Most references are to objects with similar ids, some to missing objects.
    let near = |random: &mut Random| match random.below(4) {
        0 => 1 + random.below(count + 2),
        _ => (id + random.below(5) - 2).max(1),
    };
    match kind {
        Kind::Node => {
            // Nodes fill one row after the other: neighbours by id are neighbours in space.
            let (lon, lat) = (id % WORLD_SIZE, id / WORLD_SIZE % WORLD_SIZE);
            let lon = (lon + random.below(2)) % WORLD_SIZE;
            node(id, lat * DEGREE, lon * DEGREE, &[])
        }
        Kind::Way => {
            let refs: Vec<i64> = (0..random.below(5)).map(|_| near(random)).collect();
            way(id, &refs, &[("highway", "path")])
        }
        Kind::Relation => {
            let kinds = [Kind::Node, Kind::Way, Kind::Way, Kind::Relation];
            let member = |random: &mut Random| (kinds[random.below(4) as usize], near(random), "");
            let members: Vec<_> = (0..random.below(6)).map(|_| member(random)).collect();
            let types = ["multipolygon", "boundary", "route", "multipolygon"];
            match random.below(5) {
                4 => relation(id, &members, &[]),
                kind => relation(id, &members, &[("type", types[kind as usize])]),
            }
        }
    }
}
