//! Cancelling: each command and each reader, cancelled at any moment, fails as cancelled, leaves no file, and ends its
//! threads.

use crate::common::every;
use crate::common::publisher::Publisher;
use crate::common::{Arg, in_turn, is_alone, run_ok};
use pbfhogg::changes::{self, Change, ChangeMaker};
use pbfhogg::cli::{CallError, call, commands};
use pbfhogg::read::BatchMaker;
use pbfhogg::{Context, Element, ElementReader, ElementWriter, Error, FormatError, Object};
use pbfhogg::{ErrorKind, OutputOptions};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The inputs of the commands, in a directory, by the placeholders of their paths.
struct Inputs {
    directory: tempfile::TempDir,
    publisher: Publisher,
}

impl Inputs {
    fn new() -> Self {
        let inputs = Self {
            directory: tempfile::tempdir().unwrap(),
            publisher: Publisher::new(),
        };
        let at = |name: &str| inputs.at(name);
        let world: [Arg; 6] = [
            &"synth",
            &"-q",
            &"--objects",
            &"6000",
            &"-o",
            &at("world.osm.pbf"),
        ];
        run_ok(&world);
        let make = |command: &str, from: &str, to: &str| {
            let words = command.split(' ').collect::<Vec<_>>();
            let words: Vec<Arg> = words.iter().map(|word| word as Arg).collect();
            let (from, to) = (at(from), at(to));
            let tail: [Arg; 4] = [&from, &"-q", &"-o", &to];
            run_ok(&[&words[..], &tail[..]].concat());
        };
        make("repack -n 300", "world.osm.pbf", "indexed.osm.pbf");
        make("degrade --strip-index", "indexed.osm.pbf", "in.osm.pbf");
        make(
            "degrade --drop-ids 20:7",
            "indexed.osm.pbf",
            "dropped.osm.pbf",
        );
        make("repack -n 300", "dropped.osm.pbf", "other.osm.pbf");
        let (old, new, day) = (at("in.osm.pbf"), at("other.osm.pbf"), at("day.osc.gz"));
        run_ok(&[&"derive-changes", &"-q", &old, &new, &"-o", &day]);
        make(
            "add-locations-to-ways -n",
            "indexed.osm.pbf",
            "located.osm.pbf",
        );
        make("degrade --unsort", "indexed.osm.pbf", "unsorted.osm.pbf");
        make("cat -f opl", "indexed.osm.pbf", "opl.opl");
        make("cat -f osh.pbf", "indexed.osm.pbf", "history.osh.pbf");
        run_ok(&[
            &"create-locations-index",
            &at("in.osm.pbf"),
            &"-i",
            &at("index"),
        ]);
        let mut damaged = std::fs::read(at("indexed.osm.pbf")).unwrap();
        let middle = damaged.len() / 2;
        damaged[middle..middle + 20].fill(7);
        std::fs::write(at("damaged.osm.pbf"), damaged).unwrap();
        let changeset = |id| format!("c{id} k2 s2024-01-01T00:00:00Z e d0 i1 uu x y X Y T\n");
        let changesets: String = (1..5000).map(changeset).collect();
        std::fs::write(at("changesets.opl"), changesets).unwrap();
        inputs.publisher.copy("old.osm.pbf");
        let regions = r#"{"extracts":[{"output":"a.osm.pbf","bbox":[-180,-90,0,90]},
            {"output":"b.osm.pbf","bbox":[-180,-90,180,90],"strategy":"smart"}]}"#;
        std::fs::write(at("regions.json"), regions).unwrap();
        inputs
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the words of a command that writes to `out`.
    fn words(&self, command: &str, out: &Path) -> Vec<PathBuf> {
        let names = [
            ("{in}", "in.osm.pbf"),
            ("{indexed}", "indexed.osm.pbf"),
            ("{located}", "located.osm.pbf"),
            ("{unsorted}", "unsorted.osm.pbf"),
            ("{other}", "other.osm.pbf"),
            ("{damaged}", "damaged.osm.pbf"),
            ("{history}", "history.osh.pbf"),
            ("{day}", "day.osc.gz"),
            ("{opl}", "opl.opl"),
            ("{changesets}", "changesets.opl"),
            ("{index}", "index"),
            ("{regions}", "regions.json"),
        ];
        let inputs = names.map(|(placeholder, name)| (placeholder, self.at(name)));
        let others = [
            ("{out}", out.join("out")),
            ("{server}", self.publisher.server().into()),
            ("{old}", self.publisher.path("old.osm.pbf")),
        ];
        let values = inputs.iter().chain(&others);
        let values: Vec<(&str, &Path)> = values.map(|(name, path)| (*name, &**path)).collect();
        every::arguments(command, &values)
    }
}

/// Names the files below a directory.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            files.extend(files_below(&entry.path()));
        } else {
            files.push(entry.path());
        }
    }
    files
}

/// Returns the number of threads of this process.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// Runs `work` in contexts that are cancelled at several moments. `work` gets the number of the run.
fn cancel_at_moments(
    name: &str,
    of: usize,
    mut work: impl FnMut(usize, &Context) -> Result<(), Error>,
) {
    const MOMENTS: u64 = 10;
    let (ctx, before) = (Context::new(2), threads());
    let whole = work(0, &ctx);
    assert!(whole.is_ok(), "{name}: {whole:?}");
    let checks = ctx.cancellation_checks();
    assert!(checks > 0, "{name}: never checks");
    let moments: BTreeSet<u64> = (0..MOMENTS)
        .map(|moment| checks * moment / MOMENTS)
        .collect();
    for moment in in_turn(of, 10, moments) {
        let ctx = Context::new(2);
        ctx.cancel_at_check(moment);
        let ended = work(1 + moment as usize, &ctx);
        let is_cancelled = matches!(&ended, Err(error) if error.kind() == ErrorKind::Cancelled);
        assert!(is_cancelled, "{name} at {moment} of {checks}: {ended:?}");
        // The threads of iterators end soon after the iterator.
        let end = Instant::now() + Duration::from_secs(20);
        while threads() > before && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(threads() <= before, "{name} at {moment}: a thread is left");
    }
}

#[test]
fn every_command_is_in_the_table_of_cancelled_commands() {
    let table = every::table().into_iter();
    let listed = table.filter(|line| line.has(&["cancel"]));
    let listed: BTreeSet<&str> = listed.map(|line| line.command).collect();
    for command in commands() {
        assert!(listed.contains(command.name.as_str()), "{}", command.name);
    }
}

#[test]
fn a_cancelled_command_fails_without_output_and_without_threads() {
    if !is_alone("cancelling::a_cancelled_command_fails_without_output_and_without_threads") {
        return;
    }
    let inputs = Inputs::new();
    for (turn, command) in every::lines(&["cancel"]).into_iter().enumerate() {
        cancel_at_moments(command, turn, |run, ctx| {
            let out = tempfile::tempdir().unwrap();
            let words = inputs.words(command, out.path());
            let called = call(words.into_iter().map(Into::into).collect(), ctx);
            let files = files_below(out.path());
            match called {
                Ok(_) => Ok(()),
                Err(CallError::Failed(error)) => {
                    assert!(files.is_empty(), "{command}, run {run}: {files:?}");
                    Err(error)
                }
                Err(error) => panic!("{command}: {error}"),
            }
        });
    }
}

/// Counts objects and changes.
#[derive(Default)]
struct Counts(u64);

impl BatchMaker for Counts {
    type Batch = u64;

    fn add(&mut self, _: &Element<'_>) -> Result<(), FormatError> {
        self.0 += 1;
        Ok(())
    }

    fn take(&mut self) -> Option<u64> {
        (self.0 > 0).then(|| std::mem::take(&mut self.0))
    }

    fn is_full(&self) -> bool {
        self.0 >= 50
    }
}

impl ChangeMaker for Counts {
    type Batch = u64;

    fn add(&mut self, _: &Change, _: &Object<'_>) {
        self.0 += 1;
    }

    fn take(&mut self) -> Option<u64> {
        (self.0 > 0).then(|| std::mem::take(&mut self.0))
    }

    fn is_full(&self) -> bool {
        self.0 >= 50
    }
}

#[test]
fn a_cancelled_reader_fails_without_threads() {
    if !is_alone("cancelling::a_cancelled_reader_fails_without_threads") {
        return;
    }
    let inputs = Inputs::new();
    let (path, day) = (inputs.at("in.osm.pbf"), inputs.at("day.osc.gz"));
    type Read<'r> = Box<dyn Fn(&Context) -> Result<(), Error> + 'r>;
    let elements = |ctx: &Context| ElementReader::with_context(&path, ctx.clone());
    let readers: [(&str, Read<'_>); 11] = [
        ("for_each", Box::new(|ctx| elements(ctx)?.for_each(|_| ()))),
        (
            "try_for_each",
            Box::new(|ctx| elements(ctx)?.try_for_each(|_| Ok::<_, Error>(()))),
        ),
        (
            "find_map",
            Box::new(|ctx| elements(ctx)?.find_map(|_| None::<()>).map(drop)),
        ),
        (
            "for_each_pipelined",
            Box::new(|ctx| elements(ctx)?.for_each_pipelined(|_| ())),
        ),
        (
            "par_map_reduce",
            Box::new(|ctx| {
                let counted = elements(ctx)?.par_map_reduce(|_| 1, || 0, |a: u64, b| a + b);
                counted.map(drop)
            }),
        ),
        (
            "blobs",
            Box::new(|ctx| elements(ctx)?.blobs().try_for_each(|blob| blob.map(drop))),
        ),
        (
            "batches",
            Box::new(|ctx| {
                let mut batches = Arc::new(elements(ctx)?).batches(Counts::default);
                batches.try_for_each(|batch| batch.map(drop))
            }),
        ),
        (
            "FeatureReader",
            Box::new(|ctx| {
                let reader = pbfhogg::areas::FeatureReader::with_context(&path, ctx.clone())?;
                reader.for_each(|_| Ok(()))
            }),
        ),
        (
            "changes::read",
            Box::new(|ctx| changes::read(&[&day], ctx).map(drop)),
        ),
        (
            "changes::batches",
            Box::new(|ctx| {
                let mut batches = changes::batches(&day, Counts::default, ctx);
                batches.try_for_each(|batch| batch.map(drop))
            }),
        ),
        (
            "ElementWriter",
            Box::new(|ctx| {
                let directory = tempfile::tempdir().unwrap();
                let output = OutputOptions::file(directory.path().join("a.osm.pbf"));
                let mut writer = ElementWriter::sorting(output, ctx.clone())?;
                let written =
                    (0..20_000).try_for_each(|id| writer.write(&Object::node(id, None, &[])));
                let written = written.and_then(|()| writer.finish());
                assert_eq!(files_below(directory.path()).is_empty(), written.is_err());
                written.map(drop)
            }),
        ),
    ];
    for (turn, (name, read)) in readers.iter().enumerate() {
        cancel_at_moments(name, turn, |_, ctx| read(ctx));
    }
}
