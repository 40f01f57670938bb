//! `time-filter`: writes the objects of a history file as they were at a time, or all versions between two times.
//!
//! A version is valid from its timestamp to the timestamp of the next version of the object. A blob is copied if all
//! its versions are kept.

use super::add_locations_to_ways;
use crate::engine::filter::{BlobDecision, FilterJob, write_selected};
use crate::engine::headers::header_of_part;
use crate::engine::input_content::refuse_changes;
use crate::engine::repeats::Counting;
use crate::engine::sink::WriteSummary;
use crate::engine::{HeaderOption, HeaderOptions, OutputOptions, Selected, Selection, input};
use crate::error::{Error, FormatResult, Result};
use crate::file::{BlobDecoder, BlobPlan, PbfFile, WriteOptions};
use crate::io::{OpenOutput, ScratchDirectory};
use crate::osm::TypeThenId;
use crate::pbf::{BlobEntry, BlobFlags, Block, Compression, HeaderBlock, InfoFields, feature};
use crate::runtime::Context;
use rustc_hash::FxHashMap;
use std::path::PathBuf;

options! {
    /// The options of `time-filter`.
    pub struct Options {
        /// The input file; `-` is standard input.
        pub input: PathBuf,
        /// The output: where it goes, how it is written, and its header.
        pub output: OutputOptions,
        /// The time or the period of the wanted versions.
        pub when: When,
    }
    /// By default, ways get no locations.
    new(input: impl Into<PathBuf>, when: When, output: OutputOptions);
    setters {
        /// Whether ways get the locations that their nodes had at the wanted time. Requires [`When::At`].
        locations_on_ways: bool,
        /// Whether the input may be a change file, although a change file lacks the unchanged objects.
        accepts_changes: bool,
    }
}

/// The time or the period of the wanted versions, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum When {
    /// The versions that were valid at this time and are not deleted: at most one version of each object.
    At(i64),
    /// All versions, including deleted ones, that were valid at any moment between the first time (inclusive) and the
    /// second time (exclusive).
    Between(i64, i64),
}

impl When {
    /// Whether a version is wanted. The version is valid from its timestamp to `until`.
    const fn wants_version(self, version: ObjectVersion, until: i64) -> bool {
        let from = version.time;
        match self {
            Self::At(time) => from <= time && until > time && !version.is_deleted,
            Self::Between(first, end) => {
                let holds = if from == until {
                    until >= first
                } else {
                    until > first
                };
                from < end && holds
            }
        }
    }
}

impl When {
    /// Decides, from the entry of a blob, whether the blob is dropped, copied or visited. `has_single_versions` states
    /// whether each object of the blob has only one version in this blob and the next blob together.
    fn decide(self, entry: &BlobEntry, has_single_versions: bool) -> BlobDecision {
        let Some(statistics) = entry.statistics else {
            return BlobDecision::Visit;
        };
        // A version without a timestamp counts as a version with time 0.
        let first = if statistics.with_timestamp == entry.count {
            i64::from(statistics.first_timestamp)
        } else {
            0
        };
        let last = i64::from(statistics.last_timestamp);
        let (none, all) = match self {
            Self::At(time) => (first > time, last <= time && statistics.deleted == 0),
            Self::Between(start, end) => (first >= end, last < end && start < i64::MAX),
        };
        match (none, all && has_single_versions) {
            (true, _) => BlobDecision::Drop,
            (false, true) => BlobDecision::Copy,
            (false, false) => BlobDecision::Visit,
        }
    }
}

/// The reason why a change file is refused.
const NOT_OF_CHANGES: &str =
    "it lacks the objects that did not change, and the state before the changes";

/// A version of an object.
#[derive(Debug, Clone, Copy)]
struct ObjectVersion {
    key: TypeThenId,
    /// The timestamp in seconds since 1970; 0 if it is not known.
    time: i64,
    is_deleted: bool,
}

/// Writes the versions of objects that were valid at a time or in a period.
///
/// Reads one file, a history file or current data. A blob is not decoded if the statistics in its entry show that all
/// of its versions are wanted, or that none is. A file that is not in canonical order is first sorted into a temporary
/// file in the directory of the output. Writes one file: current data for [`When::At`], a history file for
/// [`When::Between`]. With [`Options::locations_on_ways`], the snapshot is first written to a temporary file in the
/// directory of the output.
///
/// # Memory
///
/// The [base memory](crate::commands#memory). With [`Options::locations_on_ways`], the memory of
/// [`add_locations_to_ways`](super::add_locations_to_ways::run).
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, its file system
///   has too little space, or it cannot be written ([details](crate::commands#errors)).
/// - The input is a change file, and [`Options::accepts_changes`] is not set.
/// - [`Options::locations_on_ways`] is set, and [`Options::when`] is not a single time.
///
/// # Examples
///
/// ```
/// use pbfhogg::commands::time_filter::{self, When};
/// use pbfhogg::{Context, OutputOptions};
/// # use pbfhogg::commands::synth;
/// # let directory = tempfile::tempdir().unwrap();
/// # let at = |name: &str| directory.path().join(name);
/// # let world = at("world.osm.pbf");
/// # let ctx = Context::default();
/// # synth::run(&synth::Options::new(20_000, OutputOptions::file(&world)), &ctx)?;
/// // The data as it was on 1 January 2020.
/// let output = OutputOptions::file(at("before.osm.pbf"));
/// time_filter::run(&time_filter::Options::new(&world, When::At(1_577_836_800), output), &ctx)?;
/// # Ok::<(), pbfhogg::Error>(())
/// ```
pub fn run(options: &Options, ctx: &Context) -> Result<WriteSummary> {
    match (options.locations_on_ways, options.when) {
        (false, _) => filter(options, ctx),
        (true, When::At(_)) => filter_with_locations(options, ctx),
        (true, When::Between(..)) => Err(Error::Usage(
            "locations of nodes in ways need a single time: in a period, nodes have several places"
                .into(),
        )),
    }
}

/// Writes a snapshot to a temporary file. Then writes the snapshot, with locations in ways, to the output.
fn filter_with_locations(options: &Options, ctx: &Context) -> Result<WriteSummary> {
    options.output.target.check()?;
    let directory = options.output.target.scratch_directory();
    let temporary = ScratchDirectory::create(Some(&directory))?;
    let snapshot = temporary.path().join("snapshot.osm.pbf");
    let write = WriteOptions {
        compression: Compression::Lz4,
        ..WriteOptions::default()
    };
    let kept_generator = HeaderOptions {
        set: vec![HeaderOption::KeepGenerator],
        ..HeaderOptions::default()
    };
    let output = OutputOptions::file(&snapshot)
        .write(write)
        .header(kept_generator);
    let snapshot_options = Options::new(&options.input, options.when, output);
    filter(
        &snapshot_options.accepts_changes(options.accepts_changes),
        ctx,
    )?;
    let output = options.output.clone().with_way_locations();
    let located = add_locations_to_ways::Options::new(snapshot, output).keep_untagged_nodes(true);
    let summary = add_locations_to_ways::run(&located, ctx)?;
    if summary.missing_references > 0 {
        ctx.warn(format!(
            "references of ways to nodes that did not exist at the time: {}",
            summary.missing_references
        ));
    }
    Ok(summary.kept)
}

/// Writes the wanted versions, without locations in ways.
fn filter(options: &Options, ctx: &Context) -> Result<WriteSummary> {
    ctx.expect_phases(1);
    let file = input::open_to_copy(&options.input, &options.output.encoding(), ctx)?;
    if !options.accepts_changes {
        refuse_changes(&file, NOT_OF_CHANGES, ctx)?;
    }
    let output = OpenOutput::open(options.output.target.clone(), ctx)?;
    let scratch = options.output.target.scratch_directory();
    let (file, plan) = input::sort_if_needed(file, &options.output.encoding(), &scratch, ctx)?;
    let is_history =
        file.header.has(feature::HISTORY) || plan.has_entry_with_flag(BlobFlags::DELETED);
    let is_snapshot = matches!(options.when, When::At(_));
    let counting = Counting::begin(&file, &plan, ctx);
    let ctx = &counting.ctx;
    let continued = Continued::new(&file, &plan, ctx);
    let (header, output_options) = (header(&file, options), &options.output);
    let job = FilterJob {
        // A snapshot has only visible objects, so the attribute `visible` is removed. An input without history does not
        // have this attribute.
        clean: if is_history && is_snapshot {
            InfoFields::VISIBLE
        } else {
            InfoFields::NONE
        },
        ..FilterJob::with_output(
            "filter by time",
            &file,
            plan,
            output,
            header,
            output_options,
        )
    };
    let select = |entry: &BlobEntry, block: &Block<'_>, selection: &mut Selection| {
        select_versions(block, options.when, selection, || continued.next(entry))
    };
    let decide = |entry: &BlobEntry| {
        let is_single =
            entry.flags.has(BlobFlags::UNIQUE_IDS) && !continued.may_continue_in_next_blob(entry);
        options.when.decide(entry, is_single)
    };
    let written = write_selected(job, decide, select, |()| (), ctx)?;
    counting.warn_of_repeats();
    Ok(written)
}

/// Returns the header of the output.
fn header(file: &PbfFile, options: &Options) -> HeaderBlock {
    // A node can be deleted after the last edit of a way that refers to it. The output may therefore lack nodes of its
    // ways.
    let mut header = header_of_part(file.header.clone(), false);
    let is_snapshot = matches!(options.when, When::At(_));
    header.set_required(feature::HISTORY, !is_snapshot);
    // A replication timestamp after the last wanted second is set to this second. In this case, or if there is no
    // timestamp, the sequence number is removed. If the output kept the replication state of the input, the next update
    // would leave out changes after the last wanted second.
    let last = match options.when {
        When::At(time) => time,
        When::Between(_, end) => end.saturating_sub(1),
    };
    if header
        .replication_timestamp
        .is_none_or(|state| state > last)
    {
        header.replication_sequence = None;
        header.replication_timestamp = header.replication_timestamp.map(|_| last);
    }
    header
}

/// Selects the wanted versions of a block. `next` is called at the end of the block. It returns the version that
/// follows in the file, or `None` if that version cannot belong to the last object of the block.
fn select_versions(
    block: &Block<'_>,
    when: When,
    selection: &mut Selection,
    next: impl FnOnce() -> Option<ObjectVersion>,
) -> FormatResult<()> {
    let mut versions = Versions::new(block);
    let Some(mut version) = versions.next()? else {
        return Ok(());
    };
    let mut select = |version: ObjectVersion, next: Option<ObjectVersion>| {
        let next = next.filter(|next| next.key == version.key);
        let until = next.map_or(i64::MAX, |next| next.time);
        selection.push(Selected::whole_if(when.wants_version(version, until)));
    };
    while let Some(next) = versions.next()? {
        select(version, Some(next));
        version = next;
    }
    select(version, next());
    Ok(())
}

/// The versions in a block, in file order.
struct Versions<'b> {
    block: &'b Block<'b>,
    objects: crate::pbf::BlockWalk<'b>,
}

impl<'b> Versions<'b> {
    fn new(block: &'b Block<'b>) -> Self {
        Self {
            block,
            objects: block.walk(),
        }
    }

    /// Returns the next version; `None` at the end of the block.
    fn next(&mut self) -> FormatResult<Option<ObjectVersion>> {
        let Some(key) = self.objects.next_sort_key()? else {
            return Ok(None);
        };
        let age = self.objects.version_info()?;
        Ok(Some(ObjectVersion {
            key,
            time: self.block.units.seconds(age.timestamp),
            is_deleted: age.is_deleted,
        }))
    }
}

/// A search for the version that follows the last version of a blob. The search is needed only if an object may have
/// versions in both this blob and the next one.
struct Continued<'f> {
    file: &'f PbfFile,
    ctx: &'f Context,
    /// Maps the offset of a blob to the next blob with objects. Contains only pairs of blobs that may both have
    /// versions of one object.
    next: FxHashMap<u64, BlobEntry>,
}

impl<'f> Continued<'f> {
    fn new(file: &'f PbfFile, plan: &BlobPlan, ctx: &'f Context) -> Self {
        let with_objects = || plan.entries.iter().filter(|entry| entry.count > 0);
        let pairs = with_objects().zip(with_objects().skip(1));
        let continued = pairs.filter(|(one, next)| one.last_sort_key() >= next.first_sort_key());
        Self {
            file,
            ctx,
            next: continued.map(|(one, next)| (one.offset, *next)).collect(),
        }
    }

    /// Whether the last object in the blob of `entry` may have further versions in the next blob.
    fn may_continue_in_next_blob(&self, entry: &BlobEntry) -> bool {
        self.next.contains_key(&entry.offset)
    }

    /// Returns the first version in the blob that follows the blob of `entry`. Returns `None` if no object can have
    /// versions in both blobs, or if the next blob cannot be read.
    fn next(&self, entry: &BlobEntry) -> Option<ObjectVersion> {
        let next = self.next.get(&entry.offset)?;
        let mut reader = BlobDecoder::new(&self.file.input, self.ctx);
        // An error in the next blob is reported when that blob itself is processed.
        let payload = reader.payload(next).ok()?;
        let block = Block::parse_without_strings(payload).ok()?;
        Versions::new(&block).next().ok()?
    }
}
