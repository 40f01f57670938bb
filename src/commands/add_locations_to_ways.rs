//! `add-locations-to-ways`: adds the coordinates of nodes to the ways of a file.
//!
//! Nodes in canonical order are read once, while they are written to the output. Their locations are kept in memory, or
//! are joined on disk with the node references of ways, one range of ids at a time. The encoded form of each way gets
//! two more columns, the latitudes and the longitudes, and is otherwise unchanged. If the file has no location for a
//! node, a location that the way already stores is kept.

mod nodes;

use crate::engine::IndexType;
use crate::engine::changesets::Placement;
use crate::engine::filter::{
    BlobDecision, FilterItem, FilterOutput, FilterPass, FilteredWriter, Transformed, size_hint,
};
use crate::engine::input_content::not_current_error;
use crate::engine::location_form::LocationForm;
use crate::engine::sink::WriteSummary;
use crate::engine::way_locations::{LocateOptions, NodeParts, WayLocations, WayLocator};
use crate::engine::{OutputOptions, Selection, input, repeats};
use crate::error::{Error, FormatError, FormatResult, Result};
use crate::file::{BlobPlan, PbfFile, PlanNeeds, PlannedFile};
use crate::index::{IdSet, LocationStore, NodeBatch};
use crate::io::{Input, OpenOutput, OutputTarget, ScratchFile};
use crate::osm::{Location, ObjectKind};
use crate::pbf::{
    BlobEntry, BlobFlags, Block, HeaderBlock, WayNodeLocations, WayNodes, feature, locate_ways,
};
use crate::runtime::{Context, into_mutex_value, lock};
use nodes::select_except_unneeded_nodes;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

options! {
    /// The options of `add-locations-to-ways`.
    pub struct Options {
        /// The input file; `-` is standard input.
        pub input: PathBuf,
        /// The destination of the output, its encoding and its header.
        pub output: OutputOptions,
    }
    /// By default, the size of the input determines the index type, and nodes without tags are left out unless a
    /// relation refers to them.
    new(input: impl Into<PathBuf>, output: OutputOptions);
    setters {
        /// The method of looking up locations.
        index_type: IndexType = IndexType::Auto,
        /// Whether nodes without tags that are members of no relation are kept.
        keep_untagged_nodes: bool,
        /// Whether nodes without tags that are members of relations are kept.
        keep_member_nodes: bool = true,
        /// Whether the command fails if a location stays unknown. A location stays unknown if the node is not in the
        /// file or has no location, and the way does not store the location. If not set, references to these nodes are
        /// only counted.
        strict: bool,
        /// Whether the command fails if a node of a way is not in the file or has no location. In contrast to `strict`,
        /// it fails even if the way stores the location.
        needs_nodes: bool,
        /// The directory for the temporary files of a join on disk; `None` for the directory of the output or, if the
        /// output is a stream, the system's temporary directory.
        temp_dir: Option<PathBuf>,
        /// The maximum memory in bytes; `None` for four fifths of the available memory, at most 7 GiB.
        max_memory: Option<u64>,
        /// The approximate number of ranges of ids for a join on disk; `None` for as few ranges as `max_memory` allows.
        /// A given number is used even if a range then needs more memory than `max_memory`.
        ranges: Option<u64>,
    }
}

impl Options {
    fn locate_options(&self) -> LocateOptions {
        let directory = self.temp_dir.clone();
        LocateOptions {
            index_type: self.index_type,
            temp_dir: directory.unwrap_or_else(|| self.output.target.scratch_directory()),
            max_memory: self.max_memory,
            ranges: self.ranges,
        }
    }
}

/// The result of `add-locations-to-ways`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The size, blobs and objects of the output, and the numbers of input blobs that were copied, skipped and
    /// rewritten.
    #[serde(flatten)]
    pub kept: WriteSummary,
    /// The index type that was used; never [`IndexType::Auto`].
    pub index_type: IndexType,
    /// The number of ways with at least one node.
    pub ways: u64,
    /// The number of node references in ways.
    pub references: u64,
    /// The number of references whose location stays unknown: the node is not in the file or has no location, and the
    /// way does not store the location either.
    pub missing_references: u64,
    /// The number of distinct nodes to which the `missing_references` refer.
    pub missing_nodes: u64,
    /// The number of references that keep the location stored in the way. Their nodes are not in the file or have no
    /// location.
    pub stored_references: u64,
    /// Statistics of the temporary files of a join on disk; `None` if locations were kept in memory.
    pub scratch: Option<ScratchSummary>,
}

/// Statistics of the temporary files of a join on disk.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ScratchSummary {
    /// The number of ranges of ids. Only the locations of one range were in memory at a time.
    pub partitions: u64,
    /// The maximum total size of the temporary files at any time, in bytes.
    pub bytes: u64,
    /// `bytes` divided by the number of references.
    pub bytes_per_reference: f64,
}

impl Eq for ScratchSummary {}

/// Adds the coordinates of nodes to the ways of a file of current data.
///
/// A reference gets the location of its node. If the file lacks the node or its location, the reference keeps the
/// location that the way already stores. If the way does not store it either, the location is unknown. Nodes that were
/// left out of the file earlier are not restored.
///
/// The header of the output declares that the file has all nodes only if [`Options::keep_untagged_nodes`] is set and no
/// reference keeps a stored location. The header of a stream is written before the ways are read. It declares this only
/// if the ways of the input have no locations, or if the header of the input declares the same.
///
/// Reads one file, which may be unsorted, and writes one file. If the only untagged nodes to keep are members of
/// relations, first reads the relations to find these members. Nodes in canonical order are then read once. If
/// locations are kept in memory, ways are read once, and unsorted nodes up to three times. A join on disk reads ways
/// twice. It reads unsorted nodes twice for each range of ids that their blob overlaps, and once more to write them.
/// The temporary files of a join need 5 to 7 bytes per reference.
///
/// # Memory
///
/// 32 MB, 20 MB per job, 384 bytes per blob, 24 bytes for each 65,536 ids up to the largest id, and the locations:
///
/// - sparse: 8 bytes per node, and between 1 bit and 2 bytes for its id;
/// - dense: 4 kB for each 512 neighbouring ids that include a node, and at most 2 kB for each 65,536 ids;
/// - external: for the nodes of one range of ids, as much as for sparse; in addition, 0.5 MB per range, and 16 bytes
///   for each pair of a range and a blob of ways.
///
/// The set of missing nodes and, unless all nodes are kept, the set of nodes that are members of relations need further
/// memory.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, its file system
///   has too little space, or it cannot be written ([details](crate::commands#errors)).
/// - The input is a history file with several versions of an object, or with deleted objects.
/// - An object occurs twice.
/// - The chosen method needs more memory than [`Options::max_memory`], even with the best number of ranges of ids.
/// - The temporary files of a join are estimated to need more space than is free in their directory.
/// - [`Options::strict`] is set, and a location stays unknown.
/// - [`Options::needs_nodes`] is set, and a node of a way is not in the file or has no location.
/// - A block contains nodes and ways, and its units cannot express the locations of all nodes of the ways exactly.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    // One phase reads the members of relations, one the nodes, and one the ways.
    ctx.expect_phases(3);
    let file = input::open_with_changesets(&options.input, &options.output, ctx)?;
    run_on_file(file, options, ctx)
}

/// Works like [`run`], but with a file that is already open.
pub(crate) fn run_on_file(file: PbfFile, options: &Options, ctx: &Context) -> Result<Summary> {
    let output = OpenOutput::open(options.output.target.clone(), ctx)?;
    let plan = BlobPlan::open(&file, PlanNeeds::Ranges, ctx)?;
    if plan.is_history(&file, ctx) {
        let cause = "this is a history file: a node has a location of its own in each version";
        return Err(not_current_error(&file, cause, ctx));
    }
    let ctx = &repeats::context_refusing_unless_osmium(&file, &plan, ctx)?;
    let source = PlannedFile::new(&file, &plan, ctx);
    let members = match options.keep_untagged_nodes {
        true => None,
        false if options.keep_member_nodes => Some(read_member_node_ids(source)?),
        false => Some(IdSet::default()),
    };
    let parts = NodeParts::of(&plan.entries);
    let locator = WayLocator::new(source, &parts, &options.locate_options())?;
    let job = LocatingRun {
        file: &file,
        parts: &parts,
        members: members.as_ref(),
        declared_nodes: nodes_feature(&file, &plan, options),
        options,
        tally: LocatedCounts::default(),
        ctx,
    };
    let (kept, scratch_bytes) = job.write(&locator, output)?;
    let tally = job.tally;
    let references = tally.references.into_inner();
    let missing = into_mutex_value(tally.missing);
    Ok(Summary {
        kept,
        index_type: locator.index_type(),
        ways: tally.ways.into_inner(),
        references,
        missing_references: missing.references,
        missing_nodes: missing.nodes.len(),
        stored_references: tally.stored.into_inner(),
        scratch: locator
            .range_count()
            .zip(scratch_bytes)
            .map(|(partitions, bytes)| ScratchSummary {
                partitions,
                bytes,
                bytes_per_reference: bytes as f64 / references.max(1) as f64,
            }),
    })
}

/// Adds locations to the ways of a file. The result is a temporary file in the directory `scratch`. It has all nodes
/// and the name of the original file.
pub(crate) fn copy_with_way_locations(
    file: PbfFile,
    scratch: &Path,
    ctx: &Context,
) -> Result<PbfFile> {
    let scratch = ScratchFile::create(scratch)?;
    let (original, header) = (file.input.clone(), file.header.clone());
    let output = OutputOptions::new(OutputTarget::Scratch(scratch.clone()));
    let options = Options::new(original.path(), output).keep_untagged_nodes(true);
    run_on_file(file, &options, ctx)?;
    let mut located = PbfFile::of_input(Input::from_sorted(scratch.open()?, &original)?, ctx)?;
    located.header.text = header.text;
    located.header.is_converted = header.is_converted;
    Ok(located)
}

/// Reads the relations, and returns the ids of the nodes that are their members.
pub(crate) fn read_member_node_ids(source: PlannedFile<'_>) -> Result<IdSet> {
    let mut members = IdSet::default();
    source
        .scan("members")
        .collect_member_ids(ObjectKind::Node, &mut members)?;
    Ok(members)
}

/// Counts that are collected while ways are written.
#[derive(Default)]
struct LocatedCounts {
    ways: AtomicU64,
    references: AtomicU64,
    /// The number of references that keep the location which the way stores.
    stored: AtomicU64,
    missing: Mutex<MissingReferences>,
}

/// The number of references whose locations stay unknown, and the ids of their nodes.
#[derive(Default)]
struct MissingReferences {
    references: u64,
    nodes: IdSet,
}

/// The input, the options and the counts of a run.
struct LocatingRun<'f> {
    file: &'f PbfFile,
    parts: &'f NodeParts,
    /// The nodes that are kept even without tags; `None` if all nodes are kept.
    members: Option<&'f IdSet>,
    /// The feature in the header that says which nodes the output has; `None` if the header does not say it.
    declared_nodes: Option<&'static str>,
    options: &'f Options,
    tally: LocatedCounts,
    ctx: &'f Context,
}

impl<'f> LocatingRun<'f> {
    /// Writes the output. Also returns the maximum total size of the temporary files in bytes, if there were any.
    fn write(
        &self,
        locator: &WayLocator<'_>,
        output: OpenOutput,
    ) -> Result<(WriteSummary, Option<u64>)> {
        let mut writer = self.begin(output)?;
        writer.put_changesets(Placement::Before, &self.options.output)?;
        let locations =
            locator.locate(|nodes, store| self.write_nodes(&mut writer, nodes, store))?;
        let items = if locator.calls_read_for_nodes() {
            self.remaining_items().collect()
        } else {
            self.nodes().chain(self.remaining_items()).collect()
        };
        self.write_ways(&mut writer, items, &locations)?;
        let lacks_nodes = self.tally.stored.load(Ordering::Relaxed) > 0;
        if self.declared_nodes == Some(feature::ALL_NODES) {
            writer.retract(if lacks_nodes {
                feature::ALL_NODES
            } else {
                feature::SOME_NODES
            });
        }
        writer.put_changesets(Placement::Behind, &self.options.output)?;
        Ok((finish(writer)?, locations.scratch_bytes()))
    }

    fn begin(&self, output: OpenOutput) -> Result<FilteredWriter<'f>> {
        let items: Vec<FilterItem> = self.nodes().chain(self.remaining_items()).collect();
        let output = FilterOutput {
            output,
            format: self.options.output.format.clone(),
            header: self.header(),
        };
        let size_hints = vec![size_hint(&items, 0)];
        let write = self.options.output.write;
        FilteredWriter::begin(self.file, vec![output], write, size_hints, self.ctx)
    }

    /// Writes blobs of nodes, and adds the locations of their nodes to `store`.
    fn write_nodes(
        &self,
        writer: &mut FilteredWriter<'f>,
        nodes: &[BlobEntry],
        store: &mut LocationStore,
    ) -> Result<()> {
        let items = nodes
            .iter()
            .map(|entry| FilterItem::new(*entry, BlobDecision::Visit));
        let preparation = store.preparation();
        let select = |_: &BlobEntry, block: &Block<'_>, selection: &mut Selection| {
            let mut nodes = NodeBatch::default();
            select_except_unneeded_nodes(block, self.members, selection, |id, location| {
                nodes.push(id, location)
            })?;
            preparation.prepare(&mut nodes);
            Ok(nodes)
        };
        let note = |nodes| store.add(&nodes);
        writer.run_pass(FilterPass::plain("nodes"), items.collect(), select, note)
    }

    /// Returns the blobs in [`NodeParts::nodes`]. If all nodes are kept, the blobs are copied; otherwise they are
    /// visited.
    fn nodes(&self) -> impl Iterator<Item = FilterItem> + '_ {
        let decision = match self.members {
            Some(_) => BlobDecision::Visit,
            None => BlobDecision::Copy,
        };
        let nodes = self.parts.nodes.iter();
        nodes.map(move |entry| FilterItem::new(*entry, decision))
    }

    /// Returns the blobs in [`NodeParts::rest`]. Blobs with ways are transformed. Blobs with nodes are visited unless
    /// all nodes are kept.
    fn remaining_items(&self) -> impl Iterator<Item = FilterItem> + '_ {
        self.parts.rest.iter().map(|entry| {
            let drops = self.members.is_some() && entry.kinds.contains(ObjectKind::Node);
            let decision = if drops {
                BlobDecision::Visit
            } else {
                BlobDecision::Copy
            };
            let item = FilterItem::new(*entry, decision);
            if entry.kinds.contains(ObjectKind::Way) {
                item.with_transform()
            } else {
                item
            }
        })
    }

    /// Writes blobs and adds locations to their ways.
    fn write_ways(
        &self,
        writer: &mut FilteredWriter<'f>,
        items: Vec<FilterItem>,
        locations: &WayLocations,
    ) -> Result<()> {
        let transform = |entry: &BlobEntry, payload: &[u8], out: &mut Vec<u8>| {
            let mut of_blob = locations.locations_of_blob(entry)?;
            let find = |nodes: &WayNodes, found: &mut Vec<Option<Location>>| {
                of_blob.append_locations(&nodes.refs, found)
            };
            let count = |nodes: &WayNodes, found: &WayNodeLocations| self.count(nodes, found);
            let has_locations = locate_ways(payload, find, count, out)?;
            of_blob.end()?;
            if out.is_empty() {
                return Ok(Transformed::No);
            }
            let mut entry = *entry;
            entry.flags.set(BlobFlags::LOCATIONS, has_locations);
            entry.flags.set(BlobFlags::BARE_WAYS, false);
            Ok(Transformed::WithEntry(entry))
        };
        let pass = FilterPass {
            transform: Some(&transform),
            ..FilterPass::plain("ways")
        };
        let select = |_: &BlobEntry, block: &Block<'_>, selection: &mut Selection| {
            select_except_unneeded_nodes(block, self.members, selection, |_, _| ())
        };
        writer.run_pass(pass, items, select, |()| ())
    }

    /// Counts the ways and node references of a block, and the missing nodes. Fails if a node is missing and
    /// [`Options::strict`] or [`Options::needs_nodes`] does not allow this.
    fn count(&self, nodes: &WayNodes, found: &WayNodeLocations) -> FormatResult<()> {
        let add = |counter: &AtomicU64, more: usize| {
            counter.fetch_add(more as u64, Ordering::Relaxed);
        };
        let mut last = 0;
        let with_nodes = |(_, end): &&(i64, usize)| std::mem::replace(&mut last, *end) < *end;
        add(
            &self.tally.ways,
            nodes.ways.iter().filter(with_nodes).count(),
        );
        add(&self.tally.references, found.locations.len());
        add(&self.tally.stored, found.stored.len());
        if let (true, Some(&at)) = (self.options.needs_nodes, found.stored.first()) {
            return Err(missing_node_error(nodes, at));
        }
        if !found.locations.contains(&None) {
            return Ok(());
        }
        let is_missing =
            |(_, (_, location)): &(usize, (&i64, &Option<Location>))| location.is_none();
        let missing = nodes
            .refs
            .iter()
            .zip(&found.locations)
            .enumerate()
            .filter(is_missing);
        let mut missing = missing.map(|(at, (node, _))| (at, *node)).peekable();
        let fails = self.options.strict || self.options.needs_nodes;
        if let (true, Some((at, _))) = (fails, missing.peek()) {
            return Err(missing_node_error(nodes, *at));
        }
        let mut found = lock(&self.tally.missing);
        for (_, node) in missing {
            found.references += 1;
            found.nodes.insert(node);
        }
        Ok(())
    }

    fn header(&self) -> HeaderBlock {
        let mut header = self.file.header.clone();
        // The input may declare that it has some of the nodes of its ways. In this case, it is known only at the end of
        // the run whether the output has all of them.
        let has_some = self.options.keep_untagged_nodes && header.has(feature::SOME_NODES);
        header.declare_locations(self.declared_nodes);
        header.set_optional(feature::LOCATIONS, true);
        if has_some && self.declared_nodes != Some(feature::NEEDED_NODES) {
            header.set_optional(feature::SOME_NODES, true);
        }
        self.options.output.header.apply(&mut header);
        header
    }
}

/// Returns the feature that says which nodes the output has. Returns `None` if the header of the output does not say
/// it, or keeps [`feature::SOME_NODES`] from the header of the input. [`feature::ALL_NODES`] is removed from the header
/// at the end of the run if a reference has kept the location stored in its way.
fn nodes_feature(file: &PbfFile, plan: &BlobPlan, options: &Options) -> Option<&'static str> {
    if !options.keep_untagged_nodes {
        return options.keep_member_nodes.then_some(feature::NEEDED_NODES);
    }
    // The header of a stream cannot be changed after it is written.
    let is_stream = options.output.target.is_stream();
    let has_all = match LocationForm::of(file, plan) {
        LocationForm::AllNodes => true,
        // The nodes that were left out before cannot be brought back.
        LocationForm::NeededNodes => return Some(feature::NEEDED_NODES),
        LocationForm::Mixed => !is_stream,
        LocationForm::Plain => {
            !is_stream || !plan.entries.iter().any(BlobEntry::may_have_locations)
        }
    };
    has_all.then_some(feature::ALL_NODES)
}

/// Returns the error for the reference `nodes.refs[at]` to a missing node.
fn missing_node_error(nodes: &WayNodes, at: usize) -> FormatError {
    let (way, node) = (nodes.way_id_of(at), nodes.refs[at]);
    let cause =
        format!("way {way} refers to node {node}, which is not in the file or has no location");
    FormatError::lacking(cause, None)
}

fn finish(writer: FilteredWriter<'_>) -> Result<WriteSummary> {
    let kept = writer.finish()?.pop();
    kept.ok_or_else(|| Error::internal("a writer without an output"))
}
