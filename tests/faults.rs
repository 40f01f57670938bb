//! Commands with outputs while system calls of each kind fail, at many positions in the sequence of calls.

use crate::common::{in_turn, is_alone, is_long};
use pbfhogg::commands::extract::{self, Extract, parse_bbox};
use pbfhogg::commands::{apply_changes, cat, diff, renumber, sort, synth, tags_filter};
use pbfhogg::read::ObjectExpression;
use pbfhogg::unstable::faults::{Call, CallFault, Faults};
use pbfhogg::write::{Format, TextCompression, TextFormat, TextOptions};
use pbfhogg::{Context, IoMode, OutputOptions, Result};
use rustix::io::Errno;
use std::fs;
use std::path::{Path, PathBuf};

const MODES: [IoMode; 4] = [
    IoMode::Buffered,
    IoMode::Parallel,
    IoMode::Direct,
    IoMode::IoUring,
];
const OLD: &[u8] = b"the file that was there before";

/// A directory with input files and a subdirectory for outputs.
struct Bench {
    directory: tempfile::TempDir,
    changes: PathBuf,
}

#[derive(Debug, Clone, Copy)]
enum Job {
    CatText,
    Renumber,
    Cat,
    Sort,
    SortAndMerge,
    ApplyChanges,
    TagsFilter,
    Extract,
    Diff,
}

const JOBS: [Job; 9] = [
    Job::CatText,
    Job::Renumber,
    Job::Cat,
    Job::Sort,
    Job::SortAndMerge,
    Job::ApplyChanges,
    Job::TagsFilter,
    Job::Extract,
    Job::Diff,
];

fn context(io: IoMode) -> Context {
    let mut ctx = Context::new(2);
    ctx.io = io;
    ctx
}

impl Bench {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().join("base.osm.pbf");
        let objects = if is_long() { 60_000 } else { 16_000 };
        let world = synth::Options::new(objects, OutputOptions::file(base).overwrite())
            .changes(Some((1, directory.path().to_owned())));
        synth::run(&world, &context(IoMode::Buffered)).unwrap();
        let changes = directory.path().join("001.osc.gz");
        let out = directory.path().join("out");
        fs::create_dir(&out).unwrap();
        Self { directory, changes }
    }

    fn base(&self) -> PathBuf {
        self.directory.path().join("base.osm.pbf")
    }

    fn output(&self) -> PathBuf {
        self.directory.path().join("out/result.osm.pbf")
    }

    /// Runs a job that may replace an existing output.
    fn run(&self, job: Job, io: IoMode) -> Result<()> {
        let ctx = context(io);
        let output = OutputOptions::file(self.output()).overwrite();
        match job {
            Job::Cat => {
                let options = cat::Options::new(vec![self.base()], output);
                cat::run(&options, &ctx).map(drop)
            }
            Job::CatText => {
                let mut text = TextOptions::new(TextFormat::Opl);
                text.compression = TextCompression::Gzip;
                let output = output.format(Format::Text(text));
                let options = cat::Options::new(vec![self.base()], output);
                cat::run(&options, &ctx).map(drop)
            }
            Job::Renumber => {
                let options = renumber::Options::new(self.base(), output);
                renumber::run(&options, &ctx).map(drop)
            }
            Job::Sort | Job::SortAndMerge => {
                let twice = if matches!(job, Job::Sort) { 1 } else { 2 };
                let options = sort::Options::new(vec![self.base(); twice], output);
                sort::run(&options, &ctx).map(drop)
            }
            Job::ApplyChanges => {
                let changes = vec![self.changes.clone()];
                let options = apply_changes::Options::new(self.base(), changes, output);
                apply_changes::run(&options, &ctx).map(drop)
            }
            Job::TagsFilter => {
                let expressions = vec![ObjectExpression::parse("highway=primary").unwrap()];
                let options = tags_filter::Options::new(self.base(), expressions, output);
                tags_filter::run(&options, &ctx).map(drop)
            }
            Job::Extract => {
                let half = Extract::new(parse_bbox("0,-90,180,90").unwrap(), output.target);
                let options = extract::Options::new(self.base(), vec![half]).set_bounds(true);
                extract::run(&options, &ctx).map(drop)
            }
            Job::Diff => {
                let format = diff::Format::Text {
                    common: true,
                    details: false,
                };
                let options = diff::Options::new(self.base(), self.base())
                    .output(Some((format, output.target)));
                diff::run(&options, &ctx).map(drop)
            }
        }
    }

    /// Runs a job over an old output. Returns the result of the job and the content of the output file after it.
    fn run_over_old(&self, job: Job, io: IoMode) -> (Result<()>, Vec<u8>) {
        fs::write(self.output(), OLD).unwrap();
        let result = self.run(job, io);
        (result, fs::read(self.output()).unwrap())
    }

    /// Returns the files in the directory of the output, except the output itself.
    fn litter(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.output().parent().unwrap()).unwrap();
        entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| *path != self.output())
            .collect()
    }
}

/// Returns the I/O modes that are tested for a job. Text is written in the same way in all modes, so one mode is
/// enough. In short runs, two of the modes of other jobs have their turn.
fn modes(job: Job, turn: usize) -> Vec<IoMode> {
    match job {
        Job::CatText | Job::Diff => vec![IoMode::Buffered],
        _ => in_turn(turn, 2, MODES).collect(),
    }
}

/// Returns the positions in the sequence of calls at which a call is made to fail. These are all positions below `all`,
/// and from there on one in `step`. Jobs that decode every object get fewer positions, because they are slow and make
/// the same calls as other jobs. If tests do not run in their long version, `step` is five times as large.
fn places(job: Job) -> impl Iterator<Item = u64> {
    let (all, step) = match job {
        Job::TagsFilter | Job::Extract | Job::Diff => (4, 41),
        Job::CatText | Job::Renumber => (3, 127),
        _ => (10, 7),
    };
    let step = if is_long() { step } else { 5 * step };
    (1..all).chain((all..).step_by(step))
}

#[test]
fn every_backend_writes_the_same_bytes() {
    if !is_alone("faults::every_backend_writes_the_same_bytes") {
        return;
    }
    let (faults, bench) = (Faults::none(), Bench::new());
    for job in JOBS {
        let outputs = MODES.map(|io| {
            let (result, output) = bench.run_over_old(job, io);
            result.unwrap();
            output
        });
        assert!(
            outputs.iter().all(|output| *output == outputs[0]),
            "{job:?}"
        );
        assert!(outputs[0].len() > OLD.len());
    }
    drop(faults);
}

/// Runs each job in each mode with a fault at one position after another, up to the last call that the job makes.
/// Cycles through the faults in `turns`. Calls `check` after each run in which the fault has happened.
fn at_every_place(
    call: Call,
    turns: &[CallFault],
    mut check: impl FnMut(&Bench, &[u8], Result<()>, Vec<u8>, &str),
) {
    let (faults, bench) = (Faults::none(), Bench::new());
    for (turn, job) in JOBS.into_iter().enumerate() {
        let (result, good) = bench.run_over_old(job, IoMode::Buffered);
        result.unwrap();
        for io in modes(job, turn + call as usize) {
            for (nth, &fault) in places(job).zip(turns.iter().cycle()) {
                faults.plan(call, nth, fault);
                let (result, output) = bench.run_over_old(job, io);
                let happened = faults.end();
                let what = format!("{job:?} {io:?} {call:?} {nth} {fault:?}");
                assert_eq!(bench.litter(), Vec::<PathBuf>::new(), "{what}");
                if !happened {
                    assert!(result.is_ok() && output == good, "{what}");
                    break;
                }
                check(&bench, &good, result, output, &what);
            }
        }
    }
}

#[test]
fn a_failing_disk_is_named_and_leaves_the_old_file() {
    if !is_alone("faults::a_failing_disk_is_named_and_leaves_the_old_file") {
        return;
    }
    let errors = [Errno::NOSPC, Errno::IO];
    let words = |error: String| error.split(" (os error").next().unwrap().to_owned();
    let causes = errors.map(|error| words(std::io::Error::from(error).to_string()));
    for call in [Call::Write, Call::Sync, Call::Rename, Call::Read] {
        at_every_place(
            call,
            &errors.map(CallFault::Fails),
            |bench, good, result, output, what| match result {
                // If the output is complete in spite of the error, the failed call was the flush of the directory,
                // which follows after the file got its name.
                Err(error) if output == good => assert!(call == Call::Sync, "{what}: {error}"),
                Err(error) => {
                    let message = error.to_string();
                    let named = [bench.output(), bench.base(), bench.changes.clone()]
                        .iter()
                        .map(PathBuf::as_path)
                        .chain([
                            bench.output().parent().unwrap(),
                            Path::new("temporary file"),
                        ])
                        .any(|path| message.contains(&*path.to_string_lossy()));
                    let tells_why = causes.iter().any(|cause| message.contains(cause));
                    assert!(named && tells_why, "{what}: {message}");
                    assert!(output == OLD, "{what}");
                }
                // A failed direct read does no harm, because the page cache is used instead.
                Ok(()) => assert!(call == Call::Read && output == good, "{what}"),
            },
        );
    }
}

#[test]
fn a_call_with_a_substitute_does_not_fail() {
    if !is_alone("faults::a_call_with_a_substitute_does_not_fail") {
        return;
    }
    for call in [Call::Copy, Call::Clone, Call::Reserve] {
        at_every_place(
            call,
            &[CallFault::Fails(Errno::IO)],
            |_, good, result, output, what| {
                assert!(result.is_ok() && output == good, "{what}");
            },
        );
    }
}

#[test]
fn interrupted_and_short_calls_are_repeated() {
    if !is_alone("faults::interrupted_and_short_calls_are_repeated") {
        return;
    }
    for call in [Call::Read, Call::Write, Call::Copy, Call::Sync] {
        let turns: &[CallFault] = match call {
            Call::Sync => &[CallFault::Interrupted],
            _ => &[CallFault::Interrupted, CallFault::Short],
        };
        at_every_place(call, turns, |_, good, result, output, what| {
            assert!(result.is_ok() && output == good, "{what}");
        });
    }
}
