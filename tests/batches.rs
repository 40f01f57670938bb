//! Batches of objects, features and changes, parts of files, and commands that are called, as other programs use them.

use crate::common::craft::{self, Message};
use crate::common::oracle::real_file;
use pbfhogg::changes::{self, Change, ChangeMaker};
use pbfhogg::cli::{CallError, call};
use pbfhogg::commands::augmented_diff::{self, ActionMaker, ActionView};
use pbfhogg::commands::export::{self, FeatureMaker, FeatureView};
use pbfhogg::commands::repack;
use pbfhogg::read::{BatchMaker, ObjectExpression, ObjectSelection, Parts};
use pbfhogg::{
    Batches, Bbox, Context, Element, ElementReader, ErrorKind, FormatError, KindSet, Object,
    ObjectId, ObjectKind, OutputOptions, OutputTarget, PbfFile,
};
use std::collections::HashSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Collects ids, a few in a batch.
#[derive(Default)]
struct Ids(Vec<ObjectId>);

impl BatchMaker for Ids {
    type Batch = Vec<ObjectId>;

    fn add(&mut self, element: &Element<'_>) -> Result<(), FormatError> {
        self.0.push(id_of(element));
        Ok(())
    }

    fn take(&mut self) -> Option<Vec<ObjectId>> {
        (!self.0.is_empty()).then(|| std::mem::take(&mut self.0))
    }

    fn is_full(&self) -> bool {
        self.0.len() == 100
    }
}

impl FeatureMaker for Ids {
    type Batch = Vec<ObjectId>;

    fn add(&mut self, feature: &FeatureView<'_>) {
        let (kind, id) = (feature.kind(), feature.id());
        self.0.push(ObjectId { kind, id });
    }

    fn take(&mut self) -> Option<Vec<ObjectId>> {
        BatchMaker::take(self)
    }

    fn is_full(&self) -> bool {
        BatchMaker::is_full(self)
    }
}

impl ChangeMaker for Ids {
    type Batch = Vec<ObjectId>;

    fn add(&mut self, _: &Change, object: &Object<'_>) {
        let (kind, id) = (object.kind(), object.id);
        self.0.push(ObjectId { kind, id });
    }

    fn take(&mut self) -> Option<Vec<ObjectId>> {
        BatchMaker::take(self)
    }

    fn is_full(&self) -> bool {
        BatchMaker::is_full(self)
    }
}

impl ActionMaker for Ids {
    type Batch = Vec<ObjectId>;

    fn add(&mut self, action: &ActionView<'_>) {
        let (kind, id) = (action.kind(), action.id());
        self.0.push(ObjectId { kind, id });
    }

    fn take(&mut self) -> Option<Vec<ObjectId>> {
        BatchMaker::take(self)
    }

    fn is_full(&self) -> bool {
        BatchMaker::is_full(self)
    }
}

fn id_of(element: &Element<'_>) -> ObjectId {
    let (kind, id) = (element.kind(), element.id());
    ObjectId { kind, id }
}

fn open(path: &Path, selection: ObjectSelection, ctx: &Context) -> ElementReader {
    let reader = pbfhogg::read::open(path, ctx).unwrap();
    reader.select(selection).unwrap()
}

fn read(path: &Path, selection: ObjectSelection) -> Vec<ObjectId> {
    let ctx = Context::new(3);
    let reader = Arc::new(open(path, selection, &ctx));
    let batches: Vec<_> = reader
        .batches(Ids::default)
        .collect::<Result<_, _>>()
        .unwrap();
    assert!(batches.iter().all(|batch| (1..=100).contains(&batch.len())));
    // A reader reads as often as it is asked to.
    let again: Vec<_> = reader.batches(Ids::default).map(Result::unwrap).collect();
    assert_eq!(again, batches);
    // One by one, it gives the same objects.
    let mut visited = Vec::new();
    reader
        .for_each(|element| visited.push(id_of(&element)))
        .unwrap();
    assert_eq!(visited, batches.concat());
    visited
}

/// The same file without an index, and with one and small blobs.
fn both_files(directory: &Path) -> [std::path::PathBuf; 2] {
    let indexed = directory.join("indexed.osm.pbf");
    let options =
        repack::Options::new(real_file("helsinki.osm.pbf"), OutputOptions::file(&indexed));
    repack::run(&options.objects_per_blob(500), &Context::default()).unwrap();
    [real_file("helsinki.osm.pbf"), indexed]
}

#[test]
fn selections_are_those_of_a_loop_over_all_objects() {
    let directory = tempfile::tempdir().unwrap();
    let mut bbox = Bbox::EMPTY;
    bbox.add(601_680_000, 249_400_000);
    bbox.add(601_720_000, 249_450_000);
    let expression = || ObjectExpression::parse("highway").unwrap();
    for path in both_files(directory.path()) {
        let all = ElementReader::from_path(&path).unwrap();
        let (mut every, mut ways, mut tagged, mut within) = (vec![], vec![], vec![], vec![]);
        let mut inside = HashSet::new();
        all.for_each(|element| {
            let id = id_of(&element);
            every.push(id);
            if id.kind == ObjectKind::Way {
                ways.push(id);
            }
            if element.tags().any(|(key, _)| key == "highway") {
                tagged.push(id);
            }
            let of = |kind, id| ObjectId { kind, id };
            let is_inside = match element {
                Element::Node(node) => bbox.contains_nano(node.nano_lat(), node.nano_lon()),
                Element::Way(way) => way
                    .refs()
                    .any(|id| inside.contains(&of(ObjectKind::Node, id))),
                Element::Relation(relation) => relation.members().any(|member| {
                    member.kind != ObjectKind::Relation
                        && inside.contains(&of(member.kind, member.id))
                }),
            };
            if is_inside {
                inside.insert(id);
                within.push(id);
            }
        })
        .unwrap();
        let selected = |change: &dyn Fn(&mut ObjectSelection)| {
            let mut selection = ObjectSelection::default();
            change(&mut selection);
            read(&path, selection)
        };
        assert_eq!(selected(&|_| ()), every);
        assert_eq!(
            selected(&|all| all.kinds = Some(KindSet::of(ObjectKind::Way))),
            ways
        );
        assert_eq!(selected(&|all| all.filter = vec![expression()]), tagged);
        assert_eq!(selected(&|all| all.bbox = Some(bbox)), within);
        assert_eq!(
            selected(&|all| all.ids = Some(ways[..50].to_vec())),
            ways[..50]
        );
        assert!(within.iter().any(|id| id.kind == ObjectKind::Relation));
        let both = selected(&|all| {
            all.bbox = Some(bbox);
            all.filter = vec![expression()];
        });
        let tagged: HashSet<_> = tagged.into_iter().collect();
        assert!(within.iter().filter(|id| tagged.contains(id)).eq(&both));
    }
}

#[test]
fn ids_are_found_in_blobs_of_which_only_the_kind_is_known() {
    let path = real_file("heidelberg.osm.pbf");
    let kinds = Some(KindSet::of(ObjectKind::Node));
    let mut nodes = Vec::new();
    let all = ElementReader::from_path(&path).unwrap();
    let all = all.kinds(KindSet::of(ObjectKind::Node));
    all.for_each(|element| nodes.push(id_of(&element))).unwrap();
    let some: Vec<_> = nodes.into_iter().step_by(5000).collect();
    let mut selection = ObjectSelection::default();
    selection.kinds = kinds;
    selection.ids = Some(some.clone());
    assert_eq!(read(&path, selection), some);
}

#[test]
fn parts_make_up_the_file_and_name_their_blobs() {
    let directory = tempfile::tempdir().unwrap();
    for (number, path) in both_files(directory.path()).iter().enumerate() {
        let is_indexed = number == 1;
        let every = read(path, ObjectSelection::default());
        let file = PbfFile::open(path, &Context::default()).unwrap();
        for count in [1, 2, 7, 1000] {
            let parts = file.parts(Parts::Count(count)).unwrap();
            assert!(parts.len() as u64 <= count);
            let mut found = Vec::new();
            for part in parts {
                let mut selection = ObjectSelection::default();
                selection.part = Some(part.clone());
                let of_part = read(path, selection);
                let kinds = of_part.iter().map(|id| id.kind).collect();
                let expected = is_indexed.then_some((of_part.len() as u64, kinds));
                assert_eq!(part.objects.zip(part.kinds), expected);
                found.extend(of_part);
            }
            assert_eq!(found, every);
        }
    }
    // Damage has the number that it has in the file, without a table of contents, too.
    let mut bytes = std::fs::read(real_file("helsinki.osm.pbf")).unwrap();
    let file = PbfFile::open(&real_file("helsinki.osm.pbf"), &Context::default()).unwrap();
    let part = file.parts(Parts::Count(1000)).unwrap().swap_remove(2);
    bytes[(part.offset + part.len / 2) as usize] ^= 0x55;
    let damaged = directory.path().join("damaged.osm.pbf");
    std::fs::write(&damaged, bytes).unwrap();
    let mut selection = ObjectSelection::default();
    selection.part = Some(part.clone());
    let ctx = Context::default();
    let reader = Arc::new(open(&damaged, selection, &ctx));
    let error = reader.batches(Ids::default).find_map(Result::err).unwrap();
    let place = format!("blob {} at byte {}", part.first_blob, part.offset);
    assert!(error.to_string().contains(&place), "{error}");
}

/// Waits until a count of threads is reached.
fn wait_for(is_reached: impl Fn() -> bool) -> bool {
    (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        is_reached()
    })
}

#[test]
fn dropped_batches_end_their_threads() {
    let ctx = Context::new(2);
    let selection = ObjectSelection::default();
    let reader = Arc::new(open(&real_file("malta.osm.pbf"), selection, &ctx));
    let mut batches: Batches<_> = reader.batches(Ids::default);
    assert_eq!(batches.next().unwrap().unwrap().len(), 100);
    drop(batches);
    assert!(wait_for(|| Arc::strong_count(&reader) == 1));
    // Another stream of the same context goes on.
    assert!(reader.batches(Ids::default).all(|batch| batch.is_ok()));
}

#[test]
fn batches_of_features_are_those_of_an_export() {
    let format = export::FeatureFormat::GeoJson;
    let format = export::ExportFormat::Text(export::FeatureOptions::new(format));
    let directory = tempfile::tempdir().unwrap();
    let target = OutputTarget::file(directory.path().join("features.geojson"));
    let input = real_file("helsinki.osm.pbf");
    let options = export::Options::new(&input, target, format);
    let ctx = Context::default();
    let summary = export::run(&options, None, &ctx).unwrap();
    let lookup = export::LookupOptions::default();
    let rules = export::FeatureRules::default();
    let batches = export::batches(&input, rules, lookup, false, Ids::default, &ctx);
    let features = batches
        .map(|batch| batch.unwrap().len() as u64)
        .sum::<u64>();
    assert_eq!(features, summary.features);
}

#[test]
fn batches_of_changes_and_actions_are_those_of_the_files() {
    let ctx = Context::new(3);
    let (base, changes) = (real_file("malta.osm.pbf"), real_file("000466354.osc.gz"));
    let read = changes::batches(&changes, Ids::default, &ctx);
    let found: Vec<_> = read.flat_map(Result::unwrap).collect();
    let newest = changes::read(&[&changes], &ctx).unwrap();
    let listed: HashSet<_> = found.iter().copied().collect();
    let expected = newest.iter().map(|(_, object)| {
        let (kind, id) = (object.kind(), object.id);
        ObjectId { kind, id }
    });
    assert_eq!(listed, expected.collect());
    // Every version of an object is a change, in the order of the file.
    let directory = tempfile::tempdir().unwrap();
    let twice = directory.path().join("twice.osc");
    let nodes = ["2\" version=\"1", "1\" version=\"1", "2\" version=\"2"];
    let nodes = nodes.map(|node| format!("<node id=\"{node}\" lat=\"1\" lon=\"1\"/>"));
    let text = format!(
        "<osmChange version=\"0.6\"><create>{}</create></osmChange>",
        nodes.concat()
    );
    std::fs::write(&twice, text).unwrap();
    let read = changes::batches(&twice, Ids::default, &ctx);
    let found: Vec<_> = read.flat_map(Result::unwrap).map(|id| id.id).collect();
    assert_eq!(found, [2, 1, 2]);

    let target = OutputTarget::file("/dev/null");
    let output = augmented_diff::Output::Xml(target);
    let options = augmented_diff::Options::new(&base, vec![changes.clone()], output);
    let summary = augmented_diff::run(&options, &ctx).unwrap();
    let selection = augmented_diff::Selection::default();
    let actions = augmented_diff::batches(&base, vec![changes], selection, Ids::default, &ctx);
    let actions: Vec<_> = actions.flat_map(Result::unwrap).collect();
    assert_eq!(actions.len() as u64, summary.actions());
    assert!(actions.is_sorted_by_key(|id| (id.kind, id.id.unsigned_abs())));
    let wrong = changes::batches(&base, Ids::default, &ctx).find_map(Result::err);
    assert!(wrong.unwrap().to_string().contains("PBF"));
}

#[test]
fn open_files_are_read_under_their_names() {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy");
    for (name, text) in [("helsinki.osm.pbf", false), ("000466354.osc.gz", true)] {
        std::fs::copy(real_file(name), &copy).unwrap();
        let file = File::open(&copy).unwrap();
        std::fs::remove_file(&copy).unwrap();
        let ctx = Context::default().with_file("memory", file);
        let reader = pbfhogg::read::open("memory", &ctx).unwrap();
        let expected = pbfhogg::read::open(real_file(name), &Context::default()).unwrap();
        let ids = |reader: &ElementReader| {
            let mut ids = Vec::new();
            reader
                .for_each(|element| ids.push(id_of(&element)))
                .unwrap();
            ids
        };
        assert_eq!(ids(&reader), ids(&expected));
        assert_eq!(text, changes::read(&["memory"], &ctx).is_ok());
        assert!(pbfhogg::read::open("memory", &Context::default()).is_err());
    }
}

#[test]
fn commands_are_called_and_answer() {
    let words = |words: &[&str]| words.iter().map(Into::into).collect();
    let ctx = Context::default();
    let path = real_file("helsinki.osm.pbf").display().to_string();
    let called = call(words(&["inspect", "--json", &path]), &ctx).unwrap();
    let json: serde_json::Value = serde_json::from_str(&called.printed).unwrap();
    assert!(called.is_yes && json["bytes"].as_u64().unwrap() > 0);
    let called = call(
        words(&[
            "getid",
            &path,
            "n1",
            "--json",
            "-f",
            "opl",
            "-o",
            "/dev/null",
            "-O",
        ]),
        &ctx,
    );
    assert!(!called.unwrap().is_yes);
    let wrong = call(words(&["inspect", "--no-such-option", &path]), &ctx).unwrap_err();
    assert!(matches!(wrong, CallError::Usage(text) if text.contains("--no-such-option")));
    let missing = call(words(&["inspect", "not-there.osm.pbf"]), &ctx).unwrap_err();
    assert!(matches!(missing, CallError::Failed(error) if error.kind() == ErrorKind::NotFound));
    let directory = tempfile::tempdir().unwrap();
    let stats = directory.path().join("stats.json").display().to_string();
    call(words(&["inspect", "--stats", &stats, &path]), &ctx).unwrap();
    let written: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
    assert!(written["phases"].is_array());
    // The mistake is in the words of the call, whatever the words of this program are.
    let wrong = call(words(&["inspect", "--jobs", "many", &path]), &ctx).unwrap_err();
    assert!(wrong.to_string().starts_with("inspect: "), "{wrong}");
    ctx.cancel();
    let ended = call(words(&["check", "--full", &path]), &ctx).unwrap_err();
    assert!(matches!(ended, CallError::Failed(error) if error.kind() == ErrorKind::Cancelled));
}

/// Counts the bytes of tags.
#[derive(Default)]
struct TagBytes(usize);

impl BatchMaker for TagBytes {
    type Batch = usize;

    fn add(&mut self, element: &Element<'_>) -> Result<(), FormatError> {
        let tags = element.tags();
        self.0 += tags
            .map(|(key, value)| key.len() + value.len())
            .sum::<usize>();
        Ok(())
    }

    fn take(&mut self) -> Option<usize> {
        (self.0 > 0).then(|| std::mem::take(&mut self.0))
    }

    fn is_full(&self) -> bool {
        self.0 >= 1 << 20
    }
}

#[test]
fn batches_of_one_blob_are_passed_on_before_its_end() {
    // A million nodes with a tag of a megabyte, which no memory has room for.
    const NODES: usize = 1_000_000;
    let text = vec![b'x'; 1 << 20];
    let strings = [&b""[..], b"key", &text].into_iter();
    let strings = strings.fold(Message::new(), |table, string| table.bytes(1, string));
    let ids: Vec<i64> = (1..=NODES as i64).collect();
    let nodes = Message::new()
        .packed_deltas(1, &ids)
        .packed_deltas(8, &vec![0; NODES])
        .packed_deltas(9, &vec![0; NODES])
        .packed_uint(10, &[1, 2, 0].repeat(NODES));
    let block = Message::new()
        .message(1, strings)
        .message(2, Message::new().message(2, nodes));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("block.osm.pbf");
    std::fs::write(&path, craft::plain_file(&[block.to_bytes()])).unwrap();
    let ctx = Context::new(1);
    let reader = open(&path, ObjectSelection::default(), &ctx);
    let mut batches = Arc::new(reader).batches(TagBytes::default);
    for _ in 0..10 {
        let bytes = batches.next().unwrap().unwrap();
        assert!(bytes > 1 << 20 && bytes < 3 << 20, "{bytes}");
    }
}
