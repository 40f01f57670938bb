//! Commands that select objects: running them on a file and on its indexed copies, and their expected results, computed
//! by simple, slow code.

use super::awkward::awkward_blocks;
use super::craft::{self, Shape};
use super::is_long;
use super::oracle::{assert_same_opl, opl_without_locations, osmium_answer};
use super::{Arg, Kind, Object, decode, node, pbfhogg, relation, run_ok, way, with_metadata};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The result of a command.
#[derive(Debug)]
pub struct Answer {
    /// The exit status.
    pub status: i32,
    /// The objects of the output.
    pub objects: Vec<Object>,
    /// The summary that the command printed with `--json`.
    pub summary: serde_json::Value,
}

/// Three forms of a file: as it is, with a table of contents, and with per-blob indexes.
pub struct Inputs {
    paths: [PathBuf; 3],
    dir: tempfile::TempDir,
    /// The number of questions before.
    asked: Cell<usize>,
}

impl Inputs {
    /// Makes the indexed copies of a file.
    pub fn of(plain: &Path) -> Inputs {
        let dir = tempfile::tempdir().unwrap();
        let [table, indexes] =
            ["table.osm.pbf", "indexes.osm.pbf"].map(|name| dir.path().join(name));
        run_ok(&[&"cat", &plain, &"-o", &table]);
        let each = [&"cat" as Arg, &"--blob-index", &"--no-index"];
        run_ok(&[&each[..], &[&plain, &"-o", &indexes]].concat());
        let paths = [plain.to_owned(), table, indexes];
        Inputs {
            paths,
            dir,
            asked: Cell::new(0),
        }
    }

    /// Runs a command on the three forms. `args` are the command's name and the arguments after the file. All results
    /// must have the same objects, and the outputs with one job and with four jobs must have the same bytes.
    ///
    /// In short runs this is so for the first question. For each later one, two of the forms have their turn, and one of
    /// these both numbers of jobs.
    pub fn ask(&self, args: &[&str]) -> Answer {
        self.ask_and(args, true)
    }

    /// As [`ask`](Self::ask), without comparing the bytes.
    pub fn ask_for_objects(&self, args: &[&str]) -> Answer {
        self.ask_and(args, false)
    }

    /// As [`ask`](Self::ask), and expects exactly the given objects.
    pub fn expect(&self, args: &[&str], expected: &[Object]) -> Answer {
        let answer = self.ask(args);
        assert_same_objects(&answer.objects, expected, &format!("{args:?}"));
        answer
    }

    fn ask_and(&self, args: &[&str], compare_bytes: bool) -> Answer {
        let outputs =
            ["1", "4"].map(|jobs| (jobs, self.dir.path().join(format!("{jobs}.osm.pbf"))));
        let runs = self.runs();
        let mut answers = runs.into_iter().flat_map(|(input, which)| {
            let outputs = &outputs[which];
            let answers = outputs
                .iter()
                .map(|(jobs, out)| ask_once(args, input, jobs, out));
            let answers: Vec<_> = answers.collect();
            let bytes = outputs.iter().map(|(_, out)| std::fs::read(out).unwrap());
            let bytes: Vec<_> = bytes.collect();
            let same = !compare_bytes || bytes.windows(2).all(|pair| pair[0] == pair[1]);
            assert!(same, "{args:?} {}: bytes by -j", input.display());
            answers
        });
        let first = answers.next().unwrap();
        for answer in answers {
            assert_eq!(answer.status, first.status, "{args:?}");
            assert_same_objects(
                &answer.objects,
                &first.objects,
                &format!("{args:?}, indexed"),
            );
        }
        first
    }

    /// The forms for the next question, each with the places of its numbers of jobs in the list 1, 4.
    fn runs(&self) -> Vec<(&Path, Range<usize>)> {
        let asked = self.asked.replace(self.asked.get() + 1);
        if is_long() || asked == 0 {
            return self
                .paths
                .iter()
                .map(|path| (path.as_path(), 0..2))
                .collect();
        }
        let one = asked / 3 % 2;
        let form = |number: usize| self.paths[number % 3].as_path();
        vec![(form(asked), 0..2), (form(asked + 1), one..one + 1)]
    }
}

/// Runs a command with a file as standard input. Returns the objects that it writes to standard output.
pub fn pipe(args: &[&str], stdin: &Path) -> Vec<Object> {
    let mut command = pbfhogg();
    command.args(args).args(["-o", "-"]);
    let run = command.stdin(std::fs::File::open(stdin).unwrap()).output();
    let run = run.unwrap();
    let stderr = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{args:?}: {stderr}");
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.osm.pbf");
    std::fs::write(&output, run.stdout).unwrap();
    decode::objects(&output)
}

/// Runs a command with a number of jobs, and checks the number of objects in its summary.
pub fn ask_once(args: &[&str], input: &Path, jobs: &str, output: &Path) -> Answer {
    let (name, rest) = args.split_first().unwrap();
    let mut command = pbfhogg();
    command.arg(name).arg(input).args(rest);
    command.args(["--json", "-O", "-j", jobs, "-o"]).arg(output);
    let run = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&run.stderr);
    let status = run.status.code().unwrap();
    assert!(matches!(status, 0 | 1), "{args:?}: {status}: {stderr}");
    let answer = Answer {
        status,
        objects: decode::objects(output),
        summary: serde_json::from_slice(&run.stdout).unwrap(),
    };
    // `extract` has a summary for each of its outputs.
    let counted = answer.summary.pointer("/extracts/0");
    let counted = counted.unwrap_or(&answer.summary);
    assert_eq!(
        counted["written"]["objects"],
        answer.objects.len(),
        "{args:?}"
    );
    answer
}

/// Compares objects, and panics with the first difference.
pub fn assert_same_objects(found: &[Object], expected: &[Object], what: &str) {
    let longer = found.len().max(expected.len());
    let differing = (0..longer).find(|&index| found.get(index) != expected.get(index));
    if let Some(index) = differing {
        panic!(
            "{what}: {} objects, {} expected; at {index}:\n{:?}\n{:?}",
            found.len(),
            expected.len(),
            found.get(index),
            expected.get(index)
        );
    }
}

/// Runs a command that osmium has, too, with the same arguments. Exit status and objects must be those of osmium.
pub fn assert_as_osmium(args: &[Arg], dir: &Path) {
    let shown: Vec<_> = args.iter().map(|arg| arg.as_ref().to_owned()).collect();
    println!("{shown:?}");
    let (status, theirs) = osmium_answer(args);
    // osmium shows deleted versions only in files with this extension.
    let output = dir.join("out.osh.pbf");
    let mut command = pbfhogg();
    command.args(&shown).arg("-O").arg("-o").arg(&output);
    let run = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(status), "{shown:?}: {stderr}");
    assert_same_opl(&opl_without_locations(&output), &theirs);
}

// Simple, slow code.

/// A set of kinds and ids.
pub type Ids = BTreeSet<(Kind, i64)>;

/// The kind and the id of an object.
pub fn name_of(object: &Object) -> (Kind, i64) {
    (object.kind, object.id)
}

/// The usual notation of a kind and an id: `n17`, `w-3`, `r111`.
pub fn written((kind, id): (Kind, i64)) -> String {
    format!("{}{id}", ["n", "w", "r"][kind as usize])
}

/// The objects that an object refers to.
pub fn references(object: &Object) -> impl Iterator<Item = (Kind, i64)> + '_ {
    let nodes = object.refs.iter().map(|&id| (Kind::Node, id));
    nodes.chain(object.members.iter().map(|&(kind, id, _)| (kind, id)))
}

/// The objects that `wanted` refer to, directly or indirectly.
pub fn referenced(objects: &[Object], wanted: &Ids) -> Ids {
    let mut found = Ids::new();
    loop {
        let is_in = |object: &&Object| {
            wanted.contains(&name_of(object)) || found.contains(&name_of(object))
        };
        let more: Ids = objects.iter().filter(is_in).flat_map(references).collect();
        if more.is_subset(&found) {
            return found;
        }
        found.extend(more);
    }
}

/// The objects whose ids are in `ids`, and the other objects.
pub fn parted(objects: &[Object], ids: &Ids) -> (Vec<Object>, Vec<Object>) {
    let is_in = |object: &Object| ids.contains(&name_of(object));
    objects.iter().cloned().partition(is_in)
}

/// The objects whose ids are in `whole`, and those whose ids are in `added`, without tags if `untagged`.
pub fn taken(objects: &[Object], whole: &Ids, added: &Ids, untagged: bool) -> Vec<Object> {
    let take = |object: &Object| {
        let mut object = object.clone();
        if !whole.contains(&name_of(&object)) {
            if !added.contains(&name_of(&object)) {
                return None;
            }
            if untagged {
                object.tags.clear();
            }
        }
        Some(object)
    };
    objects.iter().filter_map(take).collect()
}

// Files.

/// Writes a file with a block for each list of objects.
pub fn file_of(dir: &Path, blocks: &[impl AsRef<[Object]>]) -> PathBuf {
    let block = |objects: &[Object]| craft::block(objects, &Shape::USUAL);
    let payloads: Vec<Vec<u8>> = blocks
        .iter()
        .map(|objects| block(objects.as_ref()))
        .collect();
    file_of_payloads(dir, &payloads)
}

/// Writes a file with `size` objects per block.
pub fn file_in_blocks(dir: &Path, objects: &[Object], size: usize) -> PathBuf {
    file_of(dir, &objects.chunks(size).collect::<Vec<_>>())
}

/// Writes a file with block payloads, which need not be valid.
pub fn file_of_payloads(dir: &Path, payloads: &[Vec<u8>]) -> PathBuf {
    let path = dir.join("in.osm.pbf");
    let features = ["OsmSchema-V0.6", "DenseNodes", "HistoricalInformation"];
    let header = craft::header_payload(&features, &["LocationsOnWays"]);
    std::fs::write(&path, craft::file(header, payloads)).unwrap();
    path
}

/// Writes all awkward blocks to one file, and returns its objects. Ids are repeated and not in order, some versions are
/// deleted, and blocks are empty or contain several kinds.
pub fn awkward_file(dir: &Path) -> (PathBuf, Vec<Object>) {
    let blocks = awkward_blocks();
    let payloads: Vec<Vec<u8>> = blocks.iter().map(|block| block.payload.clone()).collect();
    let objects = blocks.into_iter().flat_map(|block| block.objects);
    (file_of_payloads(dir, &payloads), objects.collect())
}

/// Relations that refer to themselves, to each other in cycles, to earlier and later relations, and to missing objects.
/// All objects can be reached from relation 1 except relations 5 and 6, way 3 and node 6. Relation 50 comes first,
/// though its id is the highest.
pub fn tangled_relations() -> Vec<Object> {
    use Kind::{Node, Relation, Way};
    let tags = [("type", "tangle"), ("name", "x")];
    let relation = |id, members: &[(Kind, i64, &str)]| {
        with_metadata(relation(id, members, &tags), 2, 1_600_000_000, 3, "name")
    };
    vec![
        relation(50, &[(Relation, 2, "behind"), (Way, 2, "")]),
        relation(4, &[(Relation, 50, ""), (Node, 5, "")]),
        relation(1, &[(Relation, 1, "self"), (Relation, 2, "")]),
        relation(2, &[(Relation, 3, ""), (Way, 1, "outer")]),
        relation(3, &[(Relation, 1, "round"), (Relation, 4, "")]),
        relation(5, &[(Relation, 5, "self alone")]),
        relation(6, &[(Relation, 1, "up"), (Way, 3, ""), (Relation, 99, "")]),
    ]
}

/// The ways and nodes of [`tangled_relations`], some of whose references are to missing objects.
pub fn tangled_ways() -> Vec<Object> {
    let tags = [("highway", "path"), ("name", "x")];
    vec![
        way(1, &[1, 2, 3, 1], &tags),
        way(2, &[4, 98, 4], &tags),
        way(3, &[6, 1], &[]),
        node(1, 1, 1, &[("name", "x")]),
        node(2, 2, 2, &[("highway", "stop")]),
        node(3, 3, 3, &[]),
        node(4, 4, 4, &[]),
        node(5, 5, 5, &[("name", "label")]),
        node(6, 6, 6, &[("highway", "stop")]),
    ]
}

/// Nodes in blocks of `size`, followed by blocks of ways and relations that refer to them. Only every seventh block of
/// nodes has the tag `rare`.
pub fn many_blocks(count: i64, size: i64) -> Vec<Vec<Object>> {
    let nodes = |block: i64| {
        let tags: [(&str, &str); 2] = [("plain", "yes"), ("rare", "yes")];
        let tags = if block % 7 == 3 {
            &tags[..]
        } else {
            &tags[..1]
        };
        let ids = block * size + 1..=(block + 1) * size;
        let tags = |id: i64| if id % 5 == 0 { tags } else { &[] };
        let node = |id| with_metadata(node(id, id, -id, tags(id)), 1, 1_500_000_000, id % 9, "me");
        ids.map(node).collect::<Vec<_>>()
    };
    let ids = 1..count * size / 10;
    let way = |id: i64| way(id, &[id * 10, id * 7, id * 3], &[("highway", "path")]);
    let ways: Vec<_> = ids.clone().map(way).collect();
    let relation = |id: i64| {
        relation(
            id,
            &[(Kind::Way, id, ""), (Kind::Relation, id / 2, "")],
            &[],
        )
    };
    let relations: Vec<_> = ids.step_by(10).map(relation).collect();
    let blocks = |objects: &[Object]| objects.chunks(size as usize).map(<[_]>::to_vec).collect();
    let (ways, relations): (Vec<_>, Vec<_>) = (blocks(&ways), blocks(&relations));
    (0..count).map(nodes).chain(ways).chain(relations).collect()
}
