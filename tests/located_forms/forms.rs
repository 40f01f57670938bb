//! The forms of a file, the ways to store it, and what results must have in common.

use super::worlds::{NOWHERE, Place, World};
use super::{run_line, try_line};
use crate::common::answers::in_order;
use crate::common::craft::{self, Message, Shape};
use crate::common::questions::assert_same_objects;
use crate::common::{Kind, Object, decode, is_long};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The form of a file with regard to the locations of its ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// All nodes. Ways have no locations.
    Plain,
    /// All nodes. All ways have locations, and the header declares both.
    AllNodes,
    /// Nodes with tags and members of relations. All ways have locations, and the header declares both.
    NeededNodes,
    /// As `NeededNodes`, but the header declares only that ways have locations, as other programs write it.
    Foreign,
    /// Two of three ways have locations, and untagged nodes that no other way needs are left out. The header declares
    /// nothing.
    HalfNeeded,
    /// All nodes. Every second way has locations, although the header declares locations in ways.
    HalfDeclared,
    /// All nodes. All ways have locations, of which half are unknown, although their nodes are in the file.
    UnknownValues,
}

/// All forms except plain.
pub const LOCATED: [Form; 6] = [
    Form::NeededNodes,
    Form::HalfDeclared,
    Form::Foreign,
    Form::AllNodes,
    Form::HalfNeeded,
    Form::UnknownValues,
];

/// The ways to store the objects of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// Small blobs without an index.
    Bare,
    /// Small blobs with a table of contents.
    Indexed,
    /// A spatial layout.
    Spatial,
}

/// The containers in the order of ids.
pub const ORDERED: [Container; 2] = [Container::Bare, Container::Indexed];

/// All containers.
pub const ANY: [Container; 3] = [Container::Bare, Container::Indexed, Container::Spatial];

impl Form {
    /// The objects of a world in this form, in order.
    pub fn objects(self, world: &World) -> Vec<Object> {
        let places = world.places();
        let mut objects = Vec::new();
        for (number, object) in world.objects.iter().enumerate() {
            let mut object = object.clone();
            if object.kind == Kind::Way && self.locates(number) {
                let stored = |(index, id): (usize, &i64)| {
                    let is_left_out =
                        self == Self::UnknownValues && (index + number).is_multiple_of(2);
                    let place = places.get(id).filter(|_| !is_left_out);
                    place.copied().unwrap_or(NOWHERE)
                };
                object.locations = object.refs.iter().enumerate().map(stored).collect();
            }
            objects.push(object);
        }
        if matches!(self, Self::NeededNodes | Self::Foreign | Self::HalfNeeded) {
            let mut needed = world.needed_nodes();
            let bare = objects.iter().filter(|way| way.locations.is_empty());
            needed.extend(bare.flat_map(|way| &way.refs));
            objects.retain(|object| object.kind != Kind::Node || needed.contains(&object.id));
        }
        objects
    }

    /// Whether the way with a number among the objects has locations.
    fn locates(self, number: usize) -> bool {
        match self {
            Self::Plain => false,
            Self::HalfNeeded => !number.is_multiple_of(3),
            Self::HalfDeclared => number.is_multiple_of(2),
            _ => true,
        }
    }

    /// The optional features that the header declares.
    pub fn features(self) -> &'static [&'static str] {
        const SORTED: &str = "Sort.Type_then_ID";
        match self {
            Self::Plain | Self::HalfNeeded => &[SORTED],
            Self::AllNodes => &[SORTED, "LocationsOnWays", "pbfhogg.AllNodes"],
            Self::NeededNodes => &[SORTED, "LocationsOnWays", "pbfhogg.NeededNodes"],
            _ => &[SORTED, "LocationsOnWays"],
        }
    }

    /// Whether the header says what the objects are.
    pub fn is_honest(self) -> bool {
        self != Self::HalfDeclared
    }

    /// Whether each known location of a reference is stored in its way.
    pub fn is_located(self) -> bool {
        matches!(self, Self::AllNodes | Self::NeededNodes | Self::Foreign)
    }
}

/// A file in a form.
#[derive(Debug)]
pub struct Input {
    pub form: Form,
    pub container: Container,
    /// The objects in the order of ids.
    pub objects: Vec<Object>,
    /// The places of the nodes of the world, also of those that the file does not have.
    pub places: HashMap<i64, Place>,
    pub path: PathBuf,
}

impl Input {
    /// Writes a file of a world. The header may have a state: sequence number and timestamp.
    pub fn new(
        world: &World,
        form: Form,
        container: Container,
        path: &Path,
        state: Option<(u64, i64)>,
    ) -> Self {
        let objects = form.objects(world);
        let bare = path.with_extension("bare");
        let crafted = match container {
            Container::Bare => path,
            _ => bare.as_path(),
        };
        write(crafted, &objects, form.features(), state);
        let line = match container {
            Container::Bare => None,
            Container::Indexed => Some("cat -q -O -F pbf {in} -o {out}"),
            Container::Spatial => Some("repack -q -O -F pbf --layout hilbert -n 9 {in} -o {out}"),
        };
        if let Some(line) = line {
            run_line(line, &[("{in}", crafted), ("{out}", path)]);
        }
        let mut input = Self {
            form,
            container,
            objects,
            places: world.places(),
            path: path.to_owned(),
        };
        if container == Container::Spatial {
            // A layout may give locations to ways that had none.
            let found = in_order(decode::objects(path));
            input.expect(&found, &world.objects, "repack --layout hilbert");
            input.objects = found;
        }
        input
    }

    /// A name for messages.
    pub fn name(&self) -> String {
        format!("{:?} {:?}", self.form, self.container)
    }

    /// The ids of the nodes in the file.
    pub fn nodes(&self) -> HashSet<i64> {
        let nodes = self.objects.iter().filter(|one| one.kind == Kind::Node);
        nodes.map(|node| node.id).collect()
    }

    /// Whether all ways have locations if the header declares so. The command that wrote the container may have changed
    /// the header.
    pub fn is_honest(&self) -> bool {
        let features = decode::header(&self.path).optional;
        !features.iter().any(|name| name == "LocationsOnWays")
            || first_bare(&self.objects).is_none()
    }

    /// Reads an output. If all ways of this file have locations, so must those of the output, as its header says.
    pub fn read(&self, path: &Path, what: &str) -> Vec<Object> {
        if first_bare(&self.objects).is_none() {
            read_honest(path, &format!("{what}, {}", self.name()))
        } else {
            decode::objects(path)
        }
    }

    /// Fails unless `found` is right: it has the objects of `plain`, the result for the plain file, except nodes that
    /// this file does not have; each location in a way is that of the node in the world; and no location is lost.
    pub fn expect(&self, found: &[Object], plain: &[Object], what: &str) {
        let what = format!("{what}, {}", self.name());
        let nodes = self.nodes();
        let is_there = |object: &&Object| object.kind != Kind::Node || nodes.contains(&object.id);
        let expected: Vec<Object> = plain.iter().filter(is_there).map(bare).collect();
        let found_bare: Vec<Object> = found.iter().map(bare).collect();
        assert_same_objects(&in_order(found_bare), &in_order(expected), &what);
        self.expect_locations(found, &what);
    }

    /// Fails unless each location in a way of `found` is that of the node in the world, and no location is lost that
    /// the way of the file has.
    pub fn expect_locations(&self, found: &[Object], what: &str) {
        let before = ways(&self.objects);
        for way in found.iter().filter(|object| object.kind == Kind::Way) {
            assert_right(way, &self.places, what);
            let had = before.get(&way.id).map(|way| stored(way).collect());
            let had: HashMap<i64, Place> = had.unwrap_or_default();
            let has: HashMap<i64, Place> = stored(way).collect();
            let lost = way
                .refs
                .iter()
                .find(|&id| had.contains_key(id) && !has.contains_key(id));
            assert!(lost.is_none(), "{what}: {lost:?} is lost in {way:?}");
        }
    }

    /// Fails unless all ways of `found` have the locations of the file, known and unknown.
    pub fn expect_copies(&self, found: &[Object], what: &str) {
        let before = ways(&self.objects);
        for way in found.iter().filter(|object| object.kind == Kind::Way) {
            let same = before.get(&way.id).map(|way| (&way.refs, &way.locations));
            let name = self.name();
            assert_eq!(
                Some((&way.refs, &way.locations)),
                same,
                "{what}, {name}: way {}",
                way.id
            );
        }
    }
}

/// Files of a world in the directory `dir`: in all forms and containers in long runs, else [`two_inputs`].
pub fn inputs(world: &World, turn: usize, containers: &[Container], dir: &Path) -> Vec<Input> {
    if !is_long() {
        return two_inputs(world, turn, containers, dir).into();
    }
    let pairs = LOCATED
        .iter()
        .flat_map(|form| containers.iter().map(move |container| (*form, *container)));
    pairs
        .map(|(form, container)| input_of(world, form, container, dir))
        .collect()
}

/// Two files of a world in the directory `dir`. In six turns, each form has two containers.
pub fn two_inputs(world: &World, turn: usize, containers: &[Container], dir: &Path) -> [Input; 2] {
    [0, 1].map(|number| {
        let form = LOCATED[(turn + number * 3) % LOCATED.len()];
        let container = containers[(turn + number * 2) % containers.len()];
        input_of(world, form, container, dir)
    })
}

/// A file of a world. A spatial layout may be refused where some ways have no locations.
fn input_of(world: &World, form: Form, container: Container, dir: &Path) -> Input {
    let path = dir.join(format!("{form:?}-{container:?}.osm.pbf"));
    let container = match (form, container) {
        (Form::HalfNeeded | Form::HalfDeclared, Container::Spatial) => {
            spatial_if_possible(world, form, dir)
        }
        _ => container,
    };
    Input::new(world, form, container, &path, None)
}

/// The spatial container, if `repack` takes a file in the form; else another one.
fn spatial_if_possible(world: &World, form: Form, dir: &Path) -> Container {
    let [input, output] = ["try.osm.pbf", "tried.osm.pbf"].map(|name| dir.join(name));
    write(&input, &form.objects(world), form.features(), None);
    let line = "repack -q -O --layout hilbert {in} -o {out}";
    let tried = try_line(line, &[("{in}", &input), ("{out}", &output)], Stdio::null());
    match tried.status {
        0 => Container::Spatial,
        2 if tried.stderr.contains("locations") => Container::Indexed,
        _ => panic!("{tried:?}"),
    }
}

/// Writes objects to a file with small blobs and no index, and the given optional features in its header.
pub fn write(path: &Path, objects: &[Object], features: &[&str], state: Option<(u64, i64)>) {
    let mut header = craft::header_payload(&["OsmSchema-V0.6", "DenseNodes"], features);
    if let Some((sequence, timestamp)) = state {
        let state = Message::new()
            .varint(32, timestamp as u64)
            .varint(33, sequence);
        header.extend(state.to_bytes());
    }
    let size = 5.max(objects.len() / 40);
    let kinds = objects.chunk_by(|one, next| one.kind == next.kind);
    let blobs = kinds.flat_map(|objects| objects.chunks(size));
    let blocks: Vec<Vec<u8>> = blobs
        .map(|objects| craft::block(objects, &Shape::USUAL))
        .collect();
    std::fs::write(path, craft::file(header, &blocks)).expect("the file can be written");
}

/// Reads the objects of an output, whose header must be honest: all ways have locations if it declares so.
pub fn read_honest(path: &Path, what: &str) -> Vec<Object> {
    let objects = decode::objects(path);
    let features = decode::header(path).optional;
    if features.iter().any(|name| name == "LocationsOnWays") {
        let bare = first_bare(&objects);
        assert!(bare.is_none(), "{what}: LocationsOnWays, and {bare:?}");
    }
    objects
}

/// The first way that has references and no locations.
fn first_bare(objects: &[Object]) -> Option<&Object> {
    let mut objects = objects.iter();
    objects.find(|way| way.refs.len() != way.locations.len())
}

/// The known locations that a way stores, by the ids of nodes.
pub fn stored(way: &Object) -> impl Iterator<Item = (i64, Place)> + '_ {
    let locations = way.refs.iter().copied().zip(way.locations.iter().copied());
    locations.filter(|(_, place)| *place != NOWHERE)
}

/// Fails unless each known location that a way stores is the place of the node.
pub fn assert_right(way: &Object, places: &HashMap<i64, Place>, what: &str) {
    let wrong = stored(way).find(|(id, place)| places.get(id) != Some(place));
    assert!(wrong.is_none(), "{what}: {wrong:?} in {way:?}");
}

/// The object without locations in ways.
pub fn bare(object: &Object) -> Object {
    Object {
        locations: Vec::new(),
        ..object.clone()
    }
}

/// The ways by id.
pub fn ways(objects: &[Object]) -> HashMap<i64, &Object> {
    let ways = objects.iter().filter(|object| object.kind == Kind::Way);
    ways.map(|way| (way.id, way)).collect()
}
