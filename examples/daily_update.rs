//! The daily job: index a file, apply change files to it, check the result.
//!
//! ```text
//! cargo run --release --example daily_update
//! cargo run --release --example daily_update -- BASE.osm.pbf CHANGE.osc.gz [CHANGE.osc.gz …]
//! ```
//!
//! Without arguments the data is made: a world of a million objects and three days of changes whose
//! outcome is known, so that the result can be compared object by object. With arguments your
//! own files are used; they are only read, and the result goes to a temporary folder.

use pbfhogg::commands::{HeaderOptions, apply_changes, cat, inspect, synth};
use pbfhogg::osm::KindSet;
use pbfhogg::pbf::Element;
use pbfhogg::write::{OutputTarget, WriteOptions};
use pbfhogg::{Context, ElementReader, Result};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Instant;

const ELEMENTS: u64 = 1_000_000;
const DAYS: u32 = 3;

fn main() -> std::process::ExitCode {
    match run() {
        Ok(true) => std::process::ExitCode::SUCCESS,
        Ok(false) => std::process::ExitCode::FAILURE,
        Err(error) => {
            eprintln!("daily_update: {error}");
            std::process::ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let ctx = Context::default();
    let folder = std::env::temp_dir().join(format!("pbfhogg-daily-update-{}", std::process::id()));
    std::fs::create_dir_all(&folder)
        .map_err(|error| pbfhogg::Error::io(&folder, "cannot create", error))?;
    let generated = arguments.len() == 0;
    let (base, changes) = match arguments.next() {
        Some(base) => (base, arguments.collect()),
        None => make_data(&folder, &ctx)?,
    };
    if changes.is_empty() {
        return Err(pbfhogg::Error::Usage(
            "give a base and at least one change file, or nothing".into(),
        ));
    }
    let job = Job { folder, ctx };
    let indexed = job.index(&base)?;
    let updated = job.apply(&indexed, &changes)?;
    let good = job.check(&updated, generated)?;
    if generated {
        let _ = std::fs::remove_dir_all(&job.folder);
        println!(
            "\nNow with your own files:\n  cargo run --release --example daily_update -- BASE.osm.pbf CHANGE.osc.gz"
        );
    } else {
        println!("\nThe result is {}", updated.display());
    }
    Ok(good)
}

fn file(path: PathBuf) -> OutputTarget {
    OutputTarget::File {
        path,
        overwrite: true,
    }
}

fn world(folder: &Path, name: &str, day: u32, changes: u32) -> synth::Options {
    synth::Options {
        elements: ELEMENTS,
        seed: 1,
        day,
        output: file(folder.join(name)),
        // As most files are that come from elsewhere.
        write: WriteOptions {
            toc: false,
            ..WriteOptions::default()
        },
        header: HeaderOptions::default(),
        changes: (changes > 0).then(|| (changes, folder.to_owned())),
    }
}

fn make_data(folder: &Path, ctx: &Context) -> Result<(PathBuf, Vec<PathBuf>)> {
    let started = Instant::now();
    let summary = synth::run(&world(folder, "world.osm.pbf", 0, DAYS), ctx)?;
    step(
        "made",
        started,
        &format!(
            "a world of {} objects in {} towns ({}), and {DAYS} days of changes",
            grouped(summary.written.objects),
            summary.towns,
            megabytes(summary.written.bytes)
        ),
    );
    Ok((
        folder.join("world.osm.pbf"),
        summary.days.into_iter().map(|day| day.path).collect(),
    ))
}

/// The steps of the job, all working in one folder.
struct Job {
    folder: PathBuf,
    ctx: Context,
}

impl Job {
    fn index(&self, base: &Path) -> Result<PathBuf> {
        let started = Instant::now();
        let output = self.folder.join("indexed.osm.pbf");
        let summary = cat::run(
            &cat::Options {
                format: cat::Format::Pbf,
                inputs: vec![base.to_owned()],
                output: file(output.clone()),
                write: WriteOptions::default(),
                header: HeaderOptions::default(),
                kinds: KindSet::ALL,
                clean: pbfhogg::pbf::InfoFields::NONE,
                rescan: false,
            },
            &self.ctx,
        )?;
        step(
            "indexed",
            started,
            &format!(
                "{} blobs with {} objects: from now on one read tells what is in each blob",
                grouped(summary.written.blobs),
                grouped(summary.written.objects)
            ),
        );
        Ok(output)
    }

    fn apply(&self, base: &Path, changes: &[PathBuf]) -> Result<PathBuf> {
        let output = self.folder.join("updated.osm.pbf");
        let mut current = base.to_owned();
        for (number, change) in changes.iter().enumerate() {
            let started = Instant::now();
            let next = if number + 1 == changes.len() {
                output.clone()
            } else {
                self.folder.join(format!("day-{}.osm.pbf", number + 1))
            };
            let summary = apply_changes::run(
                &apply_changes::Options {
                    base: current,
                    changes: vec![change.clone()],
                    output: file(next.clone()),
                    write: WriteOptions::default(),
                    header: HeaderOptions::default(),
                    locations_on_ways: None,
                },
                &self.ctx,
            )?;
            step(
                "applied",
                started,
                &format!(
                    "{}: {} created, {} modified, {} deleted; {} blobs copied untouched, {} rewritten",
                    change.file_name().unwrap_or_default().to_string_lossy(),
                    grouped(summary.created),
                    grouped(summary.modified),
                    grouped(summary.deleted),
                    grouped(summary.blobs_copied),
                    grouped(summary.blobs_rewritten)
                ),
            );
            current = next;
        }
        Ok(output)
    }

    /// Checks the result: it must be in order, and, where the outcome is known, be that.
    fn check(&self, updated: &Path, outcome_known: bool) -> Result<bool> {
        let started = Instant::now();
        let options = inspect::Options::new(updated.to_owned());
        let summary = inspect::run(&options, &self.ctx)?;
        let mut good = summary.sorted == Some(true) && summary.indexed;
        let mut text = format!(
            "{} objects, {}, {}",
            grouped(summary.objects),
            if summary.sorted == Some(true) {
                "sorted"
            } else {
                "NOT SORTED"
            },
            if summary.indexed {
                "indexed"
            } else {
                "NOT INDEXED"
            }
        );
        if outcome_known {
            let expected = self.folder.join("expected.osm.pbf");
            synth::run(&world(&self.folder, "expected.osm.pbf", DAYS, 0), &self.ctx)?;
            let same = digest(updated)? == digest(&expected)?;
            good &= same;
            text += if same {
                "; every object is as it should be after three days"
            } else {
                "; OBJECTS DIFFER from what was expected"
            };
        }
        step("checked", started, &text);
        Ok(good)
    }
}

/// A hash over everything that is in a file, on every core.
fn digest(path: &Path) -> Result<u64> {
    ElementReader::from_path(path)?.par_map_reduce(
        |element| {
            let mut hasher = DefaultHasher::new();
            match &element {
                Element::Node(node) => {
                    (
                        0,
                        node.id(),
                        node.info().version,
                        node.decimicro_lat(),
                        node.decimicro_lon(),
                    )
                        .hash(&mut hasher);
                    node.tags().for_each(|tag| tag.hash(&mut hasher));
                }
                Element::Way(way) => {
                    (1, way.id(), way.info().version).hash(&mut hasher);
                    way.refs().for_each(|id| id.hash(&mut hasher));
                    way.tags().for_each(|tag| tag.hash(&mut hasher));
                }
                Element::Relation(relation) => {
                    (2, relation.id(), relation.info().version).hash(&mut hasher);
                    relation
                        .members()
                        .for_each(|member| (member.kind, member.id, member.role).hash(&mut hasher));
                    relation.tags().for_each(|tag| tag.hash(&mut hasher));
                }
            }
            hasher.finish()
        },
        || 0,
        u64::wrapping_add,
    )
}

fn step(name: &str, started: Instant, text: &str) {
    println!(
        "{name:>8}  {:>6.2} s  {text}",
        started.elapsed().as_secs_f64()
    );
}

fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let chunks: Vec<_> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(String::from_utf8_lossy)
        .collect();
    chunks.join(",")
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
