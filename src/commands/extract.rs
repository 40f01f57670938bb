//! `extract`: cuts out the objects of a region, or of each of many regions in one run.

mod change_input;
mod memory;
mod selection;
mod strategy;

pub use crate::geometry::{
    BoxRegion, CornerOrder, Polygon, Ring, ShapeError, parse_bbox, parse_box,
};
pub use crate::region_file::{
    AreaOfFile, ConfigExtract, ExtractConfig, ShapeFileKind, read_area, read_config,
    read_config_for, read_shape, read_shape_as,
};
pub use strategy::{RelationTypes, Strategy};

use super::empty_region;
use crate::engine::filter::{FilterJob, FilterOutput, write_outputs};
use crate::engine::headers::HeaderOptions;
use crate::engine::sink::WriteSummary;
use crate::engine::{Format, input, repeats};
use crate::error::{Error, Result, display_path};
use crate::file::{BlobPlan, PbfFile, PlanNeeds, PlannedFile, WriteOptions};
use crate::geometry::{Antimeridian, AreaIndex, Shape};
use crate::io::{OpenOutput, OutputTarget};
use crate::osm::Bbox;
use crate::pbf::{BlobEntry, HeaderBlock, InfoFields, feature};
use crate::runtime::Context;
use memory::Budget;
pub(super) use selection::{
    CompletedTypes, RegionLookup, regions_with_percent, usable_location_form,
};
use selection::{Limits, RegionMembers};
use serde::Serialize;
use std::path::PathBuf;

/// A region, and the output for the objects of the region.
#[derive(Debug, Clone)]
pub struct Extract {
    /// The area of the region.
    pub shape: Shape,
    /// The destination of the objects of the region.
    pub output: OutputTarget,
    /// The format of the output.
    pub format: Format,
    /// Fields to set in the header of the output.
    pub header: HeaderOptions,
    /// The strategy for this region; `None` for [`Options::strategy`].
    pub strategy: Option<Strategy>,
}

impl Extract {
    /// Creates an extract of the region `shape` that is written as PBF.
    pub fn new(shape: Shape, output: OutputTarget) -> Self {
        Self {
            shape,
            output,
            format: Format::Pbf,
            header: HeaderOptions::default(),
            strategy: None,
        }
    }
}

options! {
    /// The options of `extract`.
    pub struct Options {
        /// The input file; `-` is standard input.
        pub input: PathBuf,
        /// The regions and their outputs.
        pub extracts: Vec<Extract>,
    }
    /// The strategy is complete-ways, and `max_memory` is `None`.
    new(input: impl Into<PathBuf>, extracts: Vec<Extract>);
    setters {
        /// The strategy that selects ways, relations and further nodes, based on the nodes in a region. Regions with
        /// other strategies ([`Extract::strategy`]) are cut out in passes of their own.
        strategy: Strategy,
        /// Whether the header of each output gets the bounding box of its region. Otherwise the headers have no box.
        set_bounds: bool,
        /// The metadata fields that the outputs leave out.
        clean: InfoFields = InfoFields::NONE,
        /// The compression, the indexes and the verification of the outputs.
        write: WriteOptions,
        /// The maximum memory in bytes. If one pass for all regions would need more, the input is read several times.
        /// If `None`, several regions may use three quarters of the memory of the machine.
        max_memory: Option<u64>,
        /// The maximum number of regions per pass over the input; `None` if only memory and open files limit the
        /// number.
        max_regions_per_pass: Option<usize>,
        /// Whether to fail, and to write nothing, if no region contains a node of the file or of its ways. Otherwise, a
        /// region without objects causes only a warning.
        refuses_empty: bool,
        /// Whether a change file is cut although it does not give the locations of all of its objects. Objects without
        /// a location are left out, and a warning gives their number. Otherwise, such a change file is an error.
        accepts_changes: bool,
        /// The treatment of the meridians of 180 degrees east and west. With [`Antimeridian::Cut`], they are the same
        /// meridian: a region that ends at one of them also contains the nodes on the other. With
        /// [`Antimeridian::Keep`], they are different meridians.
        antimeridian: Antimeridian,
    }
}

impl Options {
    /// Returns the strategy for the region with the index `region`.
    fn strategy_of(&self, region: usize) -> &Strategy {
        let own = self
            .extracts
            .get(region)
            .and_then(|own| own.strategy.as_ref());
        own.unwrap_or(&self.strategy)
    }

    /// Returns the indices of the regions in an order in which regions with equal strategies follow each other.
    fn indices_by_strategy(&self) -> Vec<usize> {
        let mut known: Vec<&Strategy> = Vec::new();
        let mut order = Vec::with_capacity(self.extracts.len());
        for region in 0..self.extracts.len() {
            let strategy = self.strategy_of(region);
            let number = known.iter().position(|other| *other == strategy);
            if number.is_none() {
                known.push(strategy);
            }
            order.push((number.unwrap_or(known.len() - 1), region));
        }
        order.sort_unstable();
        order.into_iter().map(|(_, region)| region).collect()
    }
}

/// The result of `extract`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The result for each region, in the order of [`Options::extracts`].
    pub extracts: Vec<Extracted>,
    /// The number of passes over the input that wrote outputs.
    pub passes: usize,
}

/// The output of one region.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Extracted {
    /// The path of the output.
    pub output: PathBuf,
    /// The objects and blobs of the output.
    #[serde(flatten)]
    pub kept: WriteSummary,
}

/// Writes the objects of each region to an output of its own.
///
/// Reads one file, which may be unsorted or a history file, and writes one file per region. A pass over the input first
/// finds the nodes in the regions of the pass, then their ways and relations, then the objects that the strategy adds.
/// Finally it writes the outputs. The pass skips blobs that have no objects of the regions according to the index. If
/// the memory does not suffice for all regions, the regions are distributed over several passes. A region without
/// objects gets an empty file and a warning.
///
/// A way lies in a region if one of its nodes does. For a node that is not in the file, the location that the way
/// stores counts. A file whose ways have locations therefore gives the same ways and relations as the file with all
/// nodes. Nodes that are not in the file are not written. If the header does not say which nodes the file has, some
/// blobs are read once more. These are the blobs with ways that store a location in a region for a node that was found
/// in no region, and the blobs that may contain these nodes. In a history file, the locations that ways store do not
/// count.
///
/// # Memory
///
/// 24 MB, 16 MB per job, 256 bytes per blob, and for the regions of one pass:
///
/// - the cache of partial blobs: 96 MB, or an eighth of the limit if that is less;
/// - about 150 bytes per edge of the regions;
/// - 2 bytes per id that the region keeps or, with several regions, 6 bytes per id that any of them keeps; if ways have
///   locations and the header does not say which nodes the file has, the ids of nodes in the regions that are not in
///   the file count, too;
/// - 3 MB per output, if there are several.
///
/// The limit is [`Options::max_memory`] or, without it, three quarters of the memory of the machine. Without
/// `max_memory`, the ids of a single region may exceed the limit.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, its file system
///   has too little space, or it cannot be written ([details](crate::commands#errors)). All outputs are checked before
///   any is written.
/// - An object occurs twice, and the input is neither a history nor a change file.
/// - There is no region.
/// - [`Options::max_memory`] is less than 24 MB, or the ids of a single region need more memory than the limit leaves
///   for ids.
/// - [`Options::refuses_empty`] is set, and no region contains a node of the file or of its ways.
/// - [`Options::accepts_changes`] is not set, and the input is a change file with deletions, with ways whose nodes it
///   does not have, or with relations of which it has no member.
///
/// # Examples
///
/// ```
/// use pbfhogg::commands::extract::{self, Extract, parse_bbox};
/// use pbfhogg::{Context, OutputOptions};
/// # use pbfhogg::commands::synth;
/// # let directory = tempfile::tempdir().unwrap();
/// # let at = |name: &str| directory.path().join(name);
/// # let world = at("world.osm.pbf");
/// # let ctx = Context::default();
/// # synth::run(&synth::Options::new(20_000, OutputOptions::file(&world)), &ctx)?;
/// // The objects around a town, with ways that cross the edge as a whole.
/// let town = parse_bbox("-10.01,39.99,-9.99,40.01").expect("a box");
/// let output = OutputOptions::file(at("town.osm.pbf")).target;
/// let region = Extract::new(town, output);
/// let summary = extract::run(&extract::Options::new(&world, vec![region]), &ctx)?;
/// assert!(summary.extracts[0].kept.written.objects > Some(0));
/// # Ok::<(), pbfhogg::Error>(())
/// ```
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    if options.extracts.is_empty() {
        return Err(Error::Usage("no region was given".into()));
    }
    let outputs = options.extracts.iter().map(|extract| &extract.output);
    if options.extracts.len() > 1 {
        OutputTarget::check_distinct(outputs.clone(), &[&options.input])?;
    }
    outputs.into_iter().try_for_each(OutputTarget::check)?;
    ctx.expect_phases(PHASES);
    let file = input::open_to_copy(&options.input, &options.write, ctx)?;
    change_input::check(&file, options, ctx)?;
    let order = options.indices_by_strategy();
    if order.is_sorted() {
        return write_extracts(&file, options, ctx);
    }
    let of = |region: &usize| options.extracts[*region].clone();
    let sorted = options.clone();
    let sorted = Options {
        extracts: order.iter().map(of).collect(),
        ..sorted
    };
    let mut summary = write_extracts(&file, &sorted, ctx)?;
    let mut extracts: Vec<_> = order.into_iter().zip(summary.extracts).collect();
    extracts.sort_unstable_by_key(|(region, _)| *region);
    summary.extracts = extracts
        .into_iter()
        .map(|(_, extracted)| extracted)
        .collect();
    Ok(summary)
}

/// The number of phases: find nodes, find ways, find relations, complete ways, and write objects.
const PHASES: u64 = 5;

/// Works like [`run`], but with a file that is already open. Has [`PHASES`] phases.
fn write_extracts(file: &PbfFile, options: &Options, ctx: &Context) -> Result<Summary> {
    let plan = BlobPlan::open(file, PlanNeeds::Ranges, ctx)?;
    plan.check_is_current(file, ctx)?;
    let ctx = &repeats::context_refusing_repeats(file, &plan, ctx)?;
    let areas = area_index_of(shapes(&options.extracts), options.antimeridian);
    let budget = Budget::estimate(options, &areas, PlannedFile::new(file, &plan, ctx))?;
    budget.check(options)?;
    if options.refuses_empty && budget.has_found_nothing() {
        return Err(no_nodes_error(file));
    }
    let mut passes = budget.plan_passes(|region| options.strategy_of(region));
    budget.report(&passes, ctx);
    let mut summary = Summary {
        extracts: Vec::with_capacity(options.extracts.len()),
        passes: 0,
    };
    passes.reverse();
    while let Some(range) = passes.pop() {
        let pass = ExtractPass {
            options,
            strategy: options.strategy_of(range.start),
            file,
            extracts: &options.extracts[range.clone()],
            budget: &budget,
        };
        let areas = area_index_of(shapes(pass.extracts), options.antimeridian);
        match pass.run(&areas, &plan, ctx)? {
            Some(kept) => {
                summary.passes += 1;
                summary.extracts.extend(pass.region_results(kept));
            }
            // The memory did not suffice, so the estimate was too low, and each half of the regions gets its own pass.
            None if range.len() == 1 => return Err(budget.out_of_memory_error(options)),
            None => {
                let middle = range.start + range.len() / 2;
                passes.extend([middle..range.end, range.start..middle]);
            }
        }
    }
    warn_of_empty_regions(options, &summary, file, &plan, ctx);
    Ok(summary)
}

/// The maximum number of empty regions for which each region gets a warning of its own.
const MAX_EMPTY_WARNINGS: usize = 10;

/// Warns about regions without objects, and says why they have none. If there are many of them, such as the tiles of an
/// ocean, a single warning gives their number.
fn warn_of_empty_regions(
    options: &Options,
    summary: &Summary,
    file: &PbfFile,
    plan: &BlobPlan,
    ctx: &Context,
) {
    let may_lack_nodes = usable_location_form(file, plan).may_lack_nodes();
    let boxes = plan.entries.iter().map(|entry| entry.bbox);
    let data = boxes.fold(Bbox::EMPTY, |all, bbox| all.union(&bbox));
    let all = options.extracts.iter().zip(&summary.extracts);
    let empty = all.filter(|(_, extracted)| extracted.kept.written.objects == Some(0));
    let count = empty.clone().count();
    if count > MAX_EMPTY_WARNINGS {
        ctx.warn(format!(
            "{}: {count} of {} regions have no object",
            display_path(&options.input),
            options.extracts.len()
        ));
        return;
    }
    for (extract, extracted) in empty {
        let reason = empty_region::reason(&extract.shape.envelope(), &data, may_lack_nodes);
        ctx.warn(format!(
            "{}: no object of {} lies in the region{reason}",
            extracted.output.display(),
            display_path(&options.input)
        ));
    }
}

fn shapes(extracts: &[Extract]) -> impl Iterator<Item = &Shape> {
    extracts.iter().map(|extract| &extract.shape)
}

/// Returns a spatial index of the regions with the given shapes.
pub(super) fn area_index_of<'s>(
    shapes: impl Iterator<Item = &'s Shape>,
    antimeridian: Antimeridian,
) -> AreaIndex {
    let shapes: Vec<Shape> = shapes.cloned().collect();
    match antimeridian {
        Antimeridian::Cut => AreaIndex::on_map(&shapes),
        Antimeridian::Keep => AreaIndex::new(&shapes),
    }
}

fn no_nodes_error(file: &PbfFile) -> Error {
    let cause = "no node lies in the region: nothing is written";
    Error::file(file.input.path(), cause)
}

fn opening_stopped_error() -> Error {
    Error::internal("the thread that begins the outputs stopped")
}

/// The regions that are cut out in one pass over the input.
struct ExtractPass<'a> {
    options: &'a Options,
    strategy: &'a Strategy,
    file: &'a PbfFile,
    extracts: &'a [Extract],
    budget: &'a Budget,
}

impl ExtractPass<'_> {
    /// Cuts out the regions. Returns `None`, and writes nothing, if the ids of the kept objects need too much memory.
    fn run(
        &self,
        areas: &AreaIndex,
        plan: &BlobPlan,
        ctx: &Context,
    ) -> Result<Option<Vec<WriteSummary>>> {
        let (members, outputs) = self.find_members_and_open_outputs(areas, plan, ctx)?;
        let Some(members) = members else {
            return Ok(None);
        };
        if self.options.refuses_empty && self.options.extracts.len() == 1 && members.is_empty() {
            return Err(no_nodes_error(self.file));
        }
        let targets = self.extracts.iter().zip(outputs);
        let targets = targets.map(|(extract, output)| self.open_output(extract, output, ctx));
        let targets = targets.collect::<Result<_>>()?;
        let job = FilterJob {
            name: "write objects",
            file: self.file,
            plan: plan.clone(),
            prefilter: None,
            cache: Some(members.cache()),
            clean: self.options.clean,
            outputs: targets,
            write: self.options.write,
        };
        let kept = write_outputs(
            job,
            |entry: &BlobEntry| members.decide(entry),
            |_, block, selection| members.select(block, selection),
            |()| (),
            ctx,
        )?;
        Ok(Some(kept))
    }

    /// Finds the objects that the regions keep, and opens the outputs. The [`RegionMembers`] are `None` if the ids of
    /// the kept objects need too much memory. Concurrently, a second thread creates the output files, because creating
    /// many files is slow. An error of the second thread is returned as soon as the nodes are found. In the list of
    /// outputs, streams are `None`. They are opened later, because opening a pipe waits for its reader.
    fn find_members_and_open_outputs<'i>(
        &self,
        areas: &'i AreaIndex,
        plan: &BlobPlan,
        ctx: &Context,
    ) -> Result<(Option<RegionMembers<'i>>, Vec<Option<OpenOutput>>)> {
        std::thread::scope(|scope| {
            let targets = self.extracts.iter().map(|extract| extract.output.clone());
            let open = |target: OutputTarget| {
                if target.is_stream() {
                    Ok(None)
                } else {
                    OpenOutput::open(target, ctx).map(Some)
                }
            };
            let opening = scope.spawn(move || targets.map(open).collect());
            let mut outputs = Vec::new();
            let after_nodes = || {
                let opened: Result<_> = opening.join().map_err(|_| opening_stopped_error())?;
                outputs = opened?;
                Ok(())
            };
            let limits = Limits {
                held: self.budget.max_cache_bytes(),
                ids: self.budget.max_id_bytes(self.extracts.len()),
            };
            let source = PlannedFile::new(self.file, plan, ctx);
            let found = RegionMembers::find(areas, self.strategy, source, limits, after_nodes)?;
            Ok((found, outputs))
        })
    }

    /// Returns the results for the regions of this pass.
    fn region_results(&self, kept: Vec<WriteSummary>) -> impl Iterator<Item = Extracted> {
        let outputs = self.extracts.iter().map(|extract| extract.output.path());
        outputs.zip(kept).map(|(output, kept)| Extracted {
            output: output.to_owned(),
            kept,
        })
    }

    fn open_output(
        &self,
        extract: &Extract,
        output: Option<OpenOutput>,
        ctx: &Context,
    ) -> Result<FilterOutput> {
        let bounds = self.options.set_bounds.then(|| extract.shape.envelope());
        let header = extract_header(&self.file.header, self.strategy, &extract.header, bounds);
        let output = match output {
            Some(output) => output,
            None => OpenOutput::open(extract.output.clone(), ctx)?,
        };
        Ok(FilterOutput {
            output,
            format: extract.format.clone(),
            header,
        })
    }
}

/// Returns the header of an extract of the file with the header `whole`. `bounds` is the box to set in the header,
/// unless `options` set another one.
pub(crate) fn extract_header(
    whole: &HeaderBlock,
    strategy: &Strategy,
    options: &HeaderOptions,
    bounds: Option<Bbox>,
) -> HeaderBlock {
    let mut header = whole.clone();
    if !strategy.completes_ways() {
        // The output lacks nodes outside of the region, although its ways may refer to them.
        header.set_optional(feature::ALL_NODES, false);
    }
    options.apply(&mut header);
    if options.bbox.is_none() {
        header.set_bbox(bounds);
    }
    header
}
