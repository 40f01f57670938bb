//! `inspect --html`: reports a file on one page.

use super::charts::{Charts, ObjectCharts};
use super::{Options, Statistics, Summary};
use crate::commands::{pages, tags_count};
use crate::engine::input;
use crate::error::{Error, Result};
use crate::file::{BlobPlan, PlanNeeds};
use crate::io::OutputTarget;
use crate::osm::{KindSet, ObjectKind};
use crate::runtime::Context;
use serde::Serialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("page.html");
/// The maximum number of keys that the page lists.
const KEYS: usize = 30;
/// The maximum memory for counting keys, in bytes.
const KEY_MEMORY: u64 = 256 << 20;

options! {
    /// The options of [`write`](fn@write).
    pub struct PageOptions {
        /// The input file. Standard input is refused, because it cannot be read twice.
        pub input: PathBuf,
        /// The destination of the page.
        pub output: OutputTarget,
    }
    new(input: impl Into<PathBuf>, output: OutputTarget);
    setters {}
}

/// The data of the page.
#[derive(Serialize)]
struct InspectPageData<'a> {
    file: &'a Summary,
    charts: Charts,
    keys: Keys,
    program: &'static str,
}

#[derive(Serialize)]
struct Keys {
    /// The number of distinct keys.
    distinct: u64,
    /// The most frequent keys.
    top: Vec<KeyCount>,
}

/// A key, and the number of objects that have it.
#[derive(Serialize)]
struct KeyCount {
    key: String,
    count: u64,
    nodes: u64,
    ways: u64,
    relations: u64,
}

impl KeyCount {
    fn new((key, [nodes, ways, relations]): (String, [u64; 3])) -> Self {
        Self {
            key,
            count: nodes + ways + relations,
            nodes,
            ways,
            relations,
        }
    }
}

/// Writes an HTML page about a file, with charts. The page shows the locations of the file's nodes, the times of the
/// edits, the most frequent keys, the layout of the blobs, and everything that [`run`](super::run) reports with
/// extended statistics and anomalies. The page contains its data as JSON and loads nothing.
///
/// Reads every blob twice, and without an index four times. The input may be unsorted or a history file.
///
/// # Memory
///
/// The [base memory](crate::commands#memory), 256 MB for counting keys, the counts of all distinct keys, and about 10
/// MB for the page.
///
/// # Errors
///
/// - The input is standard input, cannot be opened or read, or is damaged ([details](crate::commands#errors)).
/// - The output exists and must not be overwritten, or cannot be written.
pub fn write(options: &PageOptions, ctx: &Context) -> Result<Summary> {
    if options.input == Path::new("-") {
        let cause = "a page needs its input twice: give a file instead of standard input";
        return Err(Error::Usage(cause.into()));
    }
    options.output.check()?;
    // The search for anomalies visits every object, so the charts count all objects.
    let statistics = Statistics {
        extended: true,
        anomalies: true,
        ..Statistics::default()
    };
    let questions = Options::new(&options.input)
        .statistics(statistics)
        .compression(true);
    let (summary, (counts, plan)) = super::examine::<ObjectCharts>(&questions, ctx)?;
    let data = InspectPageData {
        file: &summary,
        charts: counts.finish(&plan),
        keys: count_keys(&options.input, ctx)?,
        program: pages::PROGRAM,
    };
    pages::write(PAGE, &data, options.output.clone(), ctx)?;
    Ok(summary)
}

/// Counts the nodes, ways and relations with each key.
fn count_keys(input: &Path, ctx: &Context) -> Result<Keys> {
    let mut counts = HashMap::<String, [u64; 3]>::new();
    // A text input is converted to PBF once, not once for each kind.
    let file = input::open(input, ctx)?;
    let plan = BlobPlan::open(&file, PlanNeeds::Frames, ctx)?;
    for kind in ObjectKind::ALL {
        let options = tags_count::Options::new(input)
            .kinds(KindSet::of(kind))
            .max_memory(KEY_MEMORY);
        for tag in tags_count::count(&file, &plan, &options, ctx)?.tags {
            counts.entry(tag.key).or_default()[kind as usize] = tag.count;
        }
    }
    let distinct = counts.len() as u64;
    let mut top: Vec<_> = counts.into_iter().map(KeyCount::new).collect();
    top.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.key.cmp(&b.key)));
    top.truncate(KEYS);
    Ok(Keys { distinct, top })
}
