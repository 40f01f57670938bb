//! Real extracts, each in two forms. Short runs take a few streets of one of them.

use super::forms::{ANY, two_inputs};
use super::worlds::World;
use super::{facts, features, making, regions, run_line, selections};
use crate::common::answers::in_order;
use crate::common::oracle::{all_real_files, real_file};
use crate::common::{decode, is_long};
use std::path::{Path, PathBuf};

/// The objects of a file, whose ways have no locations; `None` if they have some, or if the file is a history.
fn plain_world(path: &Path) -> Option<World> {
    let objects = in_order(decode::objects(path));
    let is_plain = |world: &World| {
        let mut objects = world.objects.iter();
        objects.all(|object| object.locations.is_empty() && object.visible)
    };
    Some(World { objects }).filter(is_plain)
}

/// The real extracts; in short runs a part of one.
fn extracts(dir: &Path) -> Vec<PathBuf> {
    if is_long() {
        return all_real_files();
    }
    let part = dir.join("part.osm.pbf");
    let line = "extract -q -b 7.4197,43.7338,7.4209,43.7348 {in} -o {out}";
    let monaco = real_file("monaco.osm.pbf");
    run_line(line, &[("{in}", &monaco), ("{out}", &part)]);
    vec![part]
}

#[test]
fn real_extracts_give_the_same_in_each_form() {
    let dir = tempfile::tempdir().unwrap();
    for (turn, path) in extracts(dir.path()).iter().enumerate() {
        let Some(world) = plain_world(path) else {
            continue;
        };
        let inputs = two_inputs(&world, turn, &ANY, dir.path());
        regions::holds(&world, turn, &inputs);
        features::holds(&world, turn, &inputs);
        selections::holds(&world, turn, &inputs);
        making::holds(&world, turn, &inputs);
        facts::holds(&world, &inputs);
    }
}
