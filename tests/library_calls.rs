//! The calls of the library that read as data comes, stop early, or end a command: streams, folds, ids, cancelling, errors
//! by kind, and outputs to a writer.

use crate::common::craft::{self, Shape};
use crate::common::{decode, known, mixed_objects, node};
use crate::export::fixture;
use pbfhogg::areas::{FeatureReader, Form};
use pbfhogg::commands::export::{
    self, ExportFormat, FeatureFormat, FeatureOptions, FeatureRules, Problem, ProblemCause, TagRule,
};
use pbfhogg::commands::extract::{self, Extract, parse_bbox};
use pbfhogg::commands::{cat, sort, synth};
use pbfhogg::read::BlobStream;
use pbfhogg::{
    Advice, Context, ElementReader, Error, ErrorKind, ObjectId, ObjectKind, Observer,
    OutputOptions, OutputTarget, WriteOptions,
};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A world of some objects, in a directory.
fn world(directory: &Path, elements: u64) -> PathBuf {
    let path = directory.join("world.osm.pbf");
    let options = synth::Options::new(elements, OutputOptions::file(&path));
    synth::run(&options, &Context::default()).unwrap();
    path
}

/// A file of blocks of two objects each.
fn small_blocks(path: &Path) -> usize {
    let objects = known(mixed_objects());
    let blocks: Vec<_> = objects
        .chunks(2)
        .map(|objects| craft::block(objects, &Shape::USUAL))
        .collect();
    std::fs::write(path, craft::plain_file(&blocks)).unwrap();
    blocks.len()
}

#[test]
fn a_blob_is_there_before_the_next_one_has_come() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("in.osm.pbf");
    let blobs = small_blocks(&path);
    let bytes = std::fs::read(&path).unwrap();
    // Gives a byte at a time, and counts them.
    struct Slow<'b>(&'b [u8], Arc<AtomicU64>);
    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.0.read(&mut buffer[..1])?;
            self.1.fetch_add(count as u64, Ordering::Relaxed);
            Ok(count)
        }
    }
    let given = Arc::new(AtomicU64::new(0));
    let mut stream = BlobStream::new(Slow(&bytes, given.clone())).unwrap();
    let mut objects = 0;
    for at in 0..blobs {
        let blob = stream.next().unwrap().unwrap();
        objects += blob.decode().unwrap().objects().unwrap().len();
        let is_last = at + 1 == blobs;
        assert_eq!(given.load(Ordering::Relaxed) == bytes.len() as u64, is_last);
    }
    assert!(stream.next().is_none());
    assert_eq!(objects, mixed_objects().len());
    // Wherever it is cut, the stream ends with an error of that kind, or between two blobs.
    for len in 0..bytes.len() {
        let end = BlobStream::new(&bytes[..len]).and_then(|blobs| {
            blobs
                .map(|blob| blob.map(drop))
                .collect::<Result<Vec<_>, _>>()
        });
        if let Err(error) = end {
            assert_eq!(error.kind(), ErrorKind::Truncated, "{len}: {error}");
        }
    }
}

#[test]
fn blobs_of_a_reader_have_the_objects_of_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = world(directory.path(), 30_000);
    let reader = ElementReader::from_path(&path).unwrap();
    let mut ids = Vec::new();
    for blob in reader.blobs() {
        let block = blob.unwrap().decode().unwrap();
        ids.extend(
            block
                .objects()
                .unwrap()
                .iter()
                .map(|object| (object.kind(), object.id)),
        );
    }
    let mut expected = Vec::new();
    reader
        .for_each(|element| expected.push((element.kind(), element.id())))
        .unwrap();
    assert!(ids == expected && ids.len() > 29_000);
}

#[test]
fn a_fold_that_fails_begins_no_further_blob() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("in.osm.pbf");
    let blobs = small_blocks(&path);
    for jobs in [1, 2, 4] {
        let ctx = Context::new(jobs);
        let reader = ElementReader::with_context(&path, ctx.clone()).unwrap();
        let result = reader.par_try_fold(
            || (),
            |(), element| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
                Err(format!("{} {}", element.kind(), element.id()).into())
            },
        );
        assert!(result.unwrap_err().to_string().contains(' '));
        let decoded = ctx.stats.report().blobs_decoded;
        assert!(
            blobs > 8 && decoded <= 2 * jobs as u64,
            "{decoded} with {jobs} jobs"
        );
        let counts = reader.par_try_fold(
            || 0,
            |count, _| {
                *count += 1;
                Ok::<(), Error>(())
            },
        );
        assert_eq!(counts.unwrap().iter().sum::<usize>(), mixed_objects().len());
    }
}

#[test]
fn objects_are_found_by_id_in_one_blob() {
    let directory = tempfile::tempdir().unwrap();
    let path = world(directory.path(), 30_000);
    let wanted = |kind, id| ObjectId { kind, id };
    let ctx = Context::new(1);
    let reader = ElementReader::with_context(&path, ctx.clone()).unwrap();
    let (mut last, mut all) = (0, 0);
    let relations = pbfhogg::KindSet::of(ObjectKind::Way);
    let reader = reader.kinds(relations);
    reader
        .for_each(|element| {
            last = element.id();
            all += 1;
        })
        .unwrap();
    let before = ctx.stats.report().blobs_decoded;
    let reader = reader.ids([wanted(ObjectKind::Way, last), wanted(ObjectKind::Node, 1)]);
    let mut found = Vec::new();
    reader
        .for_each(|element| found.push((element.kind(), element.id())))
        .unwrap();
    assert_eq!(found, [(ObjectKind::Way, last)]);
    assert_eq!(ctx.stats.report().blobs_decoded, before + 1);
    assert!(all > 1000);
}

/// Cancels a context when the work begins to make progress.
struct Impatient(Mutex<Option<Context>>);

impl Observer for Impatient {
    fn advanced(&self, _: u64) {
        if let Some(ctx) = self.0.lock().unwrap().take() {
            ctx.cancel();
        }
    }
}

#[test]
fn a_cancelled_command_leaves_no_output() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let path = world(directory.path(), 60_000);
    std::fs::write(at("old.osm.pbf"), "old").unwrap();
    for jobs in [1, 2] {
        for name in ["new.osm.pbf", "old.osm.pbf", "new.opl"] {
            let observer = Arc::new(Impatient(Mutex::new(None)));
            let ctx = Context::new(jobs).with_observer(observer.clone());
            *observer.0.lock().unwrap() = Some(ctx.clone());
            let output = OutputOptions::new(OutputTarget::File {
                path: at(name),
                overwrite: true,
            });
            let options = sort::Options::new(vec![path.clone(), path.clone()], output);
            let error = sort::run(&options, &ctx).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Cancelled, "{name}: {error}");
        }
    }
    assert_eq!(std::fs::read(at("old.osm.pbf")).unwrap(), b"old");
    let names = std::fs::read_dir(directory.path()).unwrap();
    assert_eq!(names.count(), 2, "the world and the old file");
}

#[test]
fn a_writer_gets_the_output_and_its_failure_ends_the_command() {
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);
    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    struct Full(u64);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self
                .0
                .checked_sub(bytes.len() as u64)
                .ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let path = world(directory.path(), 60_000);
    let ctx = Context::default();
    let bytes = Shared::default();
    let output = OutputOptions::new(OutputTarget::writer(bytes.clone()));
    let options = cat::Options::new(vec![path.clone()], output);
    cat::run(&options, &ctx).unwrap();
    let copy = directory.path().join("copy.osm.pbf");
    std::fs::write(&copy, &*bytes.0.lock().unwrap()).unwrap();
    assert!(decode::objects(&copy) == decode::objects(&path));
    // A target takes one output.
    let again = cat::run(&options, &ctx).unwrap_err();
    assert!(again.to_string().contains("a target of its own"), "{again}");
    for room in [0, 100, 100_000] {
        let output = OutputOptions::new(OutputTarget::writer(Full(room)));
        let error = cat::run(&cat::Options::new(vec![path.clone()], output), &ctx).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Closed | ErrorKind::Io),
            "{error}"
        );
    }
}

/// Keeps the warnings of a command, each with its advice.
#[derive(Default)]
struct Warnings(Mutex<Vec<(String, Advice)>>);

impl Observer for Warnings {
    fn warn_with_advice(&self, message: &str, advice: &Advice) {
        let warning = (message.to_owned(), advice.clone());
        self.0.lock().unwrap().push(warning);
    }
}

#[test]
fn a_warning_has_its_advice_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = world(directory.path(), 2_000);
    let warnings = Arc::new(Warnings::default());
    let ctx = Context::default().with_observer(warnings.clone());
    let mut write = WriteOptions::default();
    write.is_compression_explicit = true;
    let output = OutputOptions::file(directory.path().join("copy.osm.pbf")).write(write);
    cat::run(&cat::Options::new(vec![path], output), &ctx).unwrap();
    let warnings = warnings.0.lock().unwrap();
    let [(message, advice)] = warnings.as_slice() else {
        panic!("{warnings:?}");
    };
    assert!(message.ends_with("keep the compression that they had"));
    assert_eq!(*advice, Advice::Recompress);
}

/// A reader of the fixture of `export`, of which ways are `form`, and nothing without tags is wanted.
fn reader_of_fixture(form: Form, ctx: Context) -> FeatureReader {
    let reader = FeatureReader::with_context(fixture("export.opl"), ctx).unwrap();
    reader.select(
        move |kind, tags| match (kind, tags.iter().any(|(key, _)| *key != "type")) {
            (_, false) => Form::Skip,
            (ObjectKind::Node, true) => Form::Line,
            (ObjectKind::Way, true) => form,
            (ObjectKind::Relation, true) => Form::Area,
        },
    )
}

#[test]
fn a_feature_reader_reports_the_problems_of_an_export() {
    let directory = tempfile::tempdir().unwrap();
    for (form, linear, area) in [
        (Form::Line, Some(TagRule::Any), None),
        (Form::Area, None, Some(TagRule::Any)),
    ] {
        // An export has lines of ways that are not closed, and the reader leaves them out if it is asked for areas.
        let is_compared = |problem: &Problem| {
            form == Form::Line
                || problem.kind != ObjectKind::Way
                || matches!(problem.cause, ProblemCause::Area(_))
        };
        let (mut expected, mut found, mut features) = (Vec::new(), Vec::new(), 0);
        let format = ExportFormat::Text(FeatureOptions::new(FeatureFormat::Text));
        let target = OutputTarget::file(directory.path().join(format!("{form:?}.txt")));
        let options = export::Options::new(fixture("export.opl"), target, format)
            .rules(FeatureRules::default().linear(linear).area(area));
        let mut report = |problem: &Problem| {
            expected.extend(Some(*problem).filter(is_compared));
            Ok(())
        };
        export::run(&options, Some(&mut report), &Context::default()).unwrap();
        let reader = reader_of_fixture(form, Context::default());
        let visit = |_| {
            features += 1;
            Ok(())
        };
        let report = |problem: &Problem| {
            found.extend(Some(*problem).filter(is_compared));
            Ok(())
        };
        reader.for_each_with_problems(visit, report).unwrap();
        assert!(expected.len() > 8 && features > 10, "{expected:?}");
        assert_eq!(found, expected);
    }
}

#[test]
fn a_feature_reader_warns_of_what_it_leaves_out() {
    let warnings = Arc::new(Warnings::default());
    let ctx = Context::default().with_observer(warnings.clone());
    let mut ways = Vec::new();
    let reader = reader_of_fixture(Form::Line, ctx);
    let visited = reader.for_each(|feature| {
        ways.extend((feature.id.kind == ObjectKind::Way).then_some(feature.id.id));
        Ok(())
    });
    visited.unwrap();
    // Their nodes 99 and 6 have no location.
    assert!(!ways.contains(&31) && !ways.contains(&32) && ways.contains(&33));
    let warnings = warnings.0.lock().unwrap();
    let left_out: Vec<_> = warnings
        .iter()
        .filter(|(_, advice)| *advice == Advice::ListLeftOut)
        .collect();
    let [(message, _)] = left_out.as_slice() else {
        panic!("{warnings:?}");
    };
    let start = "left out: 2 relations of which a part is not in the file, and objects with ";
    assert!(message.starts_with(start), "{message}");
}

/// Cuts boxes out of a file, one in each pass. Fails if no box has a node. Returns the number of objects in each box.
fn cut_one_by_one(input: &Path, boxes: [&str; 2]) -> Result<Vec<usize>, Error> {
    let directory = tempfile::tempdir().unwrap();
    let at = |number: usize| directory.path().join(format!("{number}.osm.pbf"));
    let region = |(number, shape): (usize, &&str)| {
        Extract::new(parse_bbox(shape).unwrap(), OutputTarget::file(at(number)))
    };
    let regions = boxes.iter().enumerate().map(region).collect();
    let options = extract::Options::new(input, regions).max_regions_per_pass(Some(1));
    let cut = extract::run(&options.refuses_empty(true), &Context::default());
    let count = std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(count, if cut.is_ok() { 2 } else { 0 });
    let cut = cut?;
    assert_eq!(cut.passes, 2);
    Ok((0..2)
        .map(|number| decode::objects(&at(number)).len())
        .collect())
}

#[test]
fn an_extract_without_nodes_is_refused_before_any_pass_writes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("in.osm.pbf");
    // All boxes of blobs meet those of the regions, and the only node there is in a blob that no sample has.
    let blocks: Vec<_> = (0..200)
        .map(|at| {
            let edge = if at == 1 { 0 } else { 100_000_000 };
            let nodes = [
                node(2 * at + 1, -100_000_000, -100_000_000, &[]),
                node(2 * at + 2, edge, edge, &[]),
            ];
            craft::block(&nodes, &Shape::USUAL)
        })
        .collect();
    std::fs::write(&path, craft::plain_file(&blocks)).unwrap();
    let (with, without) = ("-1,-1,1,1", "-3,-3,-2,-2");
    for (boxes, counts) in [([with, without], [1, 0]), ([without, with], [0, 1])] {
        assert_eq!(cut_one_by_one(&path, boxes).unwrap(), counts);
    }
    let error = cut_one_by_one(&path, [without, "2,2,3,3"]).unwrap_err();
    assert!(error.to_string().contains("no node lies"), "{error}");
}

#[test]
fn errors_have_kinds_and_name_what_was_given() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let file = |name: &str, text: &[u8]| {
        std::fs::write(at(name), text).unwrap();
        at(name)
    };
    let kind_of = |path: &Path| ElementReader::from_path(path).unwrap_err();
    assert_eq!(kind_of(&at("absent.osm.pbf")).kind(), ErrorKind::NotFound);
    let texts: [(&str, &[u8], &str); 5] = [
        (
            "a.osc",
            b"<?xml version='1.0'?>\n<osmChange version='0.6'/>",
            "an OsmChange file",
        ),
        ("a.osm", b"<osm version='0.6'></osm>", "an OSM XML file"),
        ("a.opl", b"n1 v1 dV x1 y1\n", "an OPL file"),
        ("a.o5m", b"\xff\xe0\x04o5m2\xfe", "an o5m or o5c file"),
        ("a.txt", b"{}", "not an OSM file (it looks like JSON)"),
    ];
    for (name, text, called) in texts {
        let error = kind_of(&file(name, text));
        assert_eq!(error.kind(), ErrorKind::NotOsm, "{error}");
        assert!(error.to_string().contains(called), "{error}");
    }
    let zipped = flate2_gz(b"<osmChange version='0.6'/>");
    assert!(
        kind_of(&file("a.osc.gz", &zipped))
            .to_string()
            .contains("an OsmChange file")
    );
    // A file that is read by its function.
    let reader = pbfhogg::read::open(at("a.opl"), &Context::default()).unwrap();
    assert_eq!(
        reader.find_map(|element| Some(element.id())).unwrap(),
        Some(1)
    );
    let path = world(directory.path(), 2_000);
    let output = OutputOptions::file(&path);
    let exists = cat::run(
        &cat::Options::new(vec![path.clone()], output),
        &Context::default(),
    );
    let exists = exists.unwrap_err();
    assert_eq!(exists.kind(), ErrorKind::Exists);
    assert!(!exists.to_string().contains("--"));
    assert_eq!(exists.advice(), Some(Advice::Replace));
    let bytes = std::fs::read(&path).unwrap();
    let cut = file("cut.osm.pbf", &bytes[..bytes.len() / 2]);
    assert_eq!(kind_of(&cut).kind(), ErrorKind::Truncated);
}

fn flate2_gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
