//! `ElementReader`, the entry point of the library: reading all objects of a file, on one core or on all.

use crate::common::awkward::awkward_blocks;
use crate::common::craft::{self, Shape};
use crate::common::objects::Kind;
use crate::common::oracle::real_files;
use crate::common::properties::converted;
use crate::common::{Object, decode, known, mixed_objects};
use pbfhogg::{
    Bbox, BlobEntry, BlobPlan, Context, Element, ElementReader, ElementWriter, KindSet, ObjectKind,
    OutputOptions, PbfFile, PlanNeeds,
};
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

#[test]
fn a_stream_is_read_like_a_file() {
    let path = real_files().remove(0);
    let bytes = std::fs::read(&path).unwrap();
    let mut objects = Vec::new();
    let reader = ElementReader::from_reader(bytes.as_slice()).unwrap();
    reader
        .for_each(|element| objects.push(converted(&element)))
        .unwrap();
    assert!(objects == read_all(&path));
}

#[test]
fn a_visitor_can_fail_or_stop_and_sees_nothing_more() {
    let path = real_files().remove(0);
    let reader = ElementReader::from_path(&path).unwrap();
    let mut seen = 0;
    let failed = reader.try_for_each(|_| {
        seen += 1;
        match seen {
            100 => Err(pbfhogg::Error::Usage("enough".into())),
            _ => Ok(()),
        }
    });
    assert_eq!(
        (seen, failed.unwrap_err().to_string()),
        (100, "enough".into())
    );
    let mut seen = 0;
    let found = reader.find_map(|element| {
        seen += 1;
        (seen == 17).then(|| element.id())
    });
    assert_eq!(found.unwrap(), Some(read_all(&path)[16].id));
    assert_eq!((seen, reader.find_map(|_| None::<()>).unwrap()), (17, None));
}

#[test]
fn folding_with_a_state_for_each_thread_sees_every_object_once() {
    let path = real_files().remove(0);
    let expected: i64 = read_all(&path).iter().map(|object| object.id).sum();
    for jobs in [1, 2, 7] {
        let reader = ElementReader::with_context(&path, Context::new(jobs)).unwrap();
        let states = reader.par_fold(|| 0i64, |sum, element| *sum += element.id());
        let states = states.unwrap();
        assert!(states.len() <= jobs);
        assert_eq!(states.iter().sum::<i64>(), expected);
    }
}

#[test]
fn kinds_and_a_box_select_objects_and_spare_reading_blobs() {
    let dir = tempfile::tempdir().unwrap();
    for path in real_files() {
        let indexed = dir.path().join("indexed.osm.pbf");
        crate::common::run_ok(&[&"cat", &"-q", &"-O", &path, &"-o", &indexed]);
        let all = read_all(&path);
        let middle = all[all.len() / 3].clone();
        let e7 = |nano: i64| (nano / 100) as i32;
        let bbox = Bbox {
            min_lat_e7: e7(middle.lat_nano).saturating_sub(20_000),
            max_lat_e7: e7(middle.lat_nano).saturating_add(20_000),
            min_lon_e7: e7(middle.lon_nano).saturating_sub(20_000),
            max_lon_e7: e7(middle.lon_nano),
        };
        let is_inside = |object: &&Object| {
            object.kind == Kind::Node
                && object.visible
                && bbox.contains_nano(object.lat_nano, object.lon_nano)
        };
        let expected: Vec<&Object> = all.iter().filter(is_inside).collect();
        for (file, is_indexed) in [(&path, false), (&indexed, true)] {
            let ctx = Context::new(2);
            let reader = ElementReader::with_context(file, ctx.clone()).unwrap();
            let reader = reader.kinds(KindSet::of(ObjectKind::Node)).within(bbox);
            let mut found = Vec::new();
            reader
                .for_each(|element| found.push(converted(&element)))
                .unwrap();
            assert!(
                found.iter().collect::<Vec<_>>() == expected,
                "{}",
                file.display()
            );
            let decoded = ctx.stats.blobs_decoded.get();
            let file = PbfFile::open(&indexed, &ctx).unwrap();
            let entries = BlobPlan::open(&file, PlanNeeds::Frames, &ctx)
                .unwrap()
                .entries;
            let has_nodes = |entry: &&BlobEntry| entry.kinds.contains(ObjectKind::Node);
            let with_nodes = entries.iter().filter(has_nodes).count() as u64;
            assert!(
                !is_indexed || decoded <= with_nodes,
                "{decoded} of {with_nodes}"
            );
        }
    }
}

#[test]
fn a_file_of_the_writer_is_valid_sorted_and_indexed() {
    let dir = tempfile::tempdir().unwrap();
    for path in real_files() {
        let objects = read_all(&path);
        let mut canonical = objects.clone();
        canonical.sort_by_key(|object| (object.kind as u8, object.id, object.version));
        for sorts in [false, true] {
            if !sorts && objects != canonical {
                continue;
            }
            let output = dir.path().join(format!("out-{sorts}.osm.pbf"));
            let options = OutputOptions::file(&output).overwrite();
            let mut writer = if sorts {
                ElementWriter::sorting(options, Context::new(2)).unwrap()
            } else {
                ElementWriter::new(options, Context::new(2)).unwrap()
            };
            let reader = ElementReader::from_path(&path).unwrap();
            // Relations first where the writer sorts.
            let kinds = if sorts {
                [ObjectKind::Relation, ObjectKind::Node, ObjectKind::Way].map(KindSet::of)
            } else {
                [KindSet::ALL, KindSet::EMPTY, KindSet::EMPTY]
            };
            let mut reader = Some(reader);
            for kinds in kinds {
                let selected = reader.take().unwrap().kinds(kinds);
                selected
                    .try_for_each(|element| writer.write_element(&element))
                    .unwrap();
                reader = Some(selected);
            }
            let written = writer.finish().unwrap();
            assert!(written.sorted && written.indexed, "{}", path.display());
            assert_eq!(written.objects, Some(objects.len() as u64));
            assert!(read_all(&output) == canonical, "{}", path.display());
            crate::common::run_ok(&[&"check", &"-q", &"--index", &output]);
        }
    }
}

#[test]
fn a_writer_refuses_objects_out_of_order_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.osm.pbf");
    let mut writer = ElementWriter::create(&path).unwrap();
    writer
        .write(&pbfhogg::Object::way(3, &[1, 2], &[]))
        .unwrap();
    let error = writer
        .write(&pbfhogg::Object::node(17, None, &[]))
        .unwrap_err();
    assert!(error.to_string().contains("node 17 comes after"), "{error}");
    drop(writer);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    std::fs::write(&path, "mine").unwrap();
    assert!(ElementWriter::create(&path).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}
