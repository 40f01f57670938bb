//! `ElementReader`, the entry point of the library: reading all objects of a file, on one core or on all.

use crate::common::craft::{self, Shape};
use crate::common::oracle::{awkward_blocks, real_files};
use crate::common::properties::converted;
use crate::common::{Object, decode, known, mixed_objects};
use pbfhogg::pbf::Element;
use pbfhogg::{Context, ElementReader};
use std::path::Path;

fn read_all(path: &Path) -> Vec<Object> {
    let mut objects = Vec::new();
    ElementReader::from_path(path)
        .unwrap()
        .for_each(|element| objects.push(converted(&element)))
        .unwrap();
    objects
}

#[test]
fn the_views_give_what_a_plain_decoder_gives_for_every_awkward_block() {
    let dir = tempfile::tempdir().unwrap();
    for crafted in awkward_blocks() {
        let path = dir.path().join("in.osm.pbf");
        std::fs::write(&path, crafted.file()).unwrap();
        assert_eq!(read_all(&path), crafted.objects, "{}", crafted.name);
    }
}

#[test]
fn the_views_give_what_a_plain_decoder_gives_for_every_real_file() {
    for path in real_files() {
        assert!(
            read_all(&path) == decode::objects(&path),
            "{}",
            path.display()
        );
    }
}

#[test]
fn the_pipelined_walk_keeps_the_order_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("in.osm.pbf");
    let blocks: Vec<_> = known(mixed_objects())
        .chunks(2)
        .map(|objects| craft::block(objects, &Shape::USUAL))
        .collect();
    std::fs::write(&path, craft::plain_file(&blocks)).unwrap();
    for jobs in [1, 2, 8] {
        let reader = ElementReader::with_context(&path, Context::new(jobs)).unwrap();
        let mut objects = Vec::new();
        reader
            .for_each_pipelined(|element| objects.push(converted(&element)))
            .unwrap();
        assert_eq!(objects, known(mixed_objects()));
    }
}

#[test]
fn a_map_and_reduce_counts_a_file_on_any_number_of_cores() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("in.osm.pbf");
    let blocks: Vec<_> = mixed_objects()
        .chunks(3)
        .map(|objects| craft::block(objects, &Shape::USUAL))
        .collect();
    std::fs::write(&path, craft::plain_file(&blocks)).unwrap();
    for jobs in [1, 2, 8] {
        let reader = ElementReader::with_context(&path, Context::new(jobs)).unwrap();
        assert_eq!(
            reader.par_map_reduce(|_| 1u64, || 0, |a, b| a + b).unwrap(),
            mixed_objects().len() as u64
        );
        let ids = |element: Element<'_>| vec![element.id()];
        let all = reader
            .par_map_reduce(ids, Vec::new, |a, b| [a, b].concat())
            .unwrap();
        assert_eq!(
            all,
            mixed_objects()
                .iter()
                .map(|object| object.id)
                .collect::<Vec<_>>()
        );
    }
}
