//! `extract`: what lies in a region, or in each of many.

mod memory;
mod selection;
mod strategy;

pub use strategy::{RelationTypes, Strategy};

use crate::engine::filter::{FilterJob, FilterOutput, write_outputs};
use crate::engine::headers::HeaderOptions;
use crate::engine::input;
use crate::engine::sink::WriteSummary;
use crate::error::{Error, Result};
use crate::file::{BlobPlan, PbfFile, PlanNeeds, WriteOptions};
use crate::geometry::{AreaIndex, Shape};
use crate::io::{OpenOutput, OutputTarget};
use crate::osm::{Bbox, NANO_PER_DECIMICRO};
use crate::pbf::{BlobEntry, HeaderBlock, InfoFields};
use crate::runtime::Context;
use memory::Budget;
use selection::{Limits, RegionMembers};
use serde::Serialize;
use std::path::PathBuf;

/// One region and where what lies in it goes.
#[derive(Debug, Clone)]
pub struct Extract {
    /// What it covers.
    pub shape: Shape,
    /// Where the result goes.
    pub output: OutputTarget,
    /// What its header says.
    pub header: HeaderOptions,
}

/// What to cut out, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The file.
    pub input: PathBuf,
    /// The regions.
    pub extracts: Vec<Extract>,
    /// What comes along.
    pub strategy: Strategy,
    /// Put the box around a region into the header of its file.
    pub set_bounds: bool,
    /// Metadata that is left out.
    pub clean: InfoFields,
    /// How the results are written.
    pub write: WriteOptions,
    /// Bytes of memory to stay under, by reading the input several times if need be.
    pub max_memory: Option<u64>,
    /// How many regions are cut out in one pass at most; `None` leaves that to the command.
    pub most_regions: Option<usize>,
}

/// What `extract` did.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// For each region, in the order in which they were given, what was written.
    pub extracts: Vec<Extracted>,
    /// How often the input was read.
    pub passes: usize,
}

/// What was written for one region.
#[derive(Debug, Clone, Serialize)]
pub struct Extracted {
    /// Where it is.
    pub output: PathBuf,
    /// What was kept.
    #[serde(flatten)]
    pub kept: WriteSummary,
}

/// Extracts.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    if options.extracts.is_empty() {
        return Err(Error::Usage("no region was given".into()));
    }
    // Nodes, ways and relations are found, completed, and written.
    ctx.expect_phases(5);
    let file = input::open_to_copy(&options.input, &options.write, ctx)?;
    let mut outputs = options.extracts.iter().map(|extract| &extract.output);
    outputs.try_for_each(OutputTarget::check)?;
    let plan = BlobPlan::open(&file, PlanNeeds::Ranges, ctx)?;
    let areas = areas_of(&options.extracts);
    let budget = Budget::estimate(options, &areas, &file, &plan, ctx)?;
    budget.check(options)?;
    let mut passes = budget.passes();
    budget.tell(&passes, ctx);
    let mut summary = Summary {
        extracts: Vec::with_capacity(options.extracts.len()),
        passes: 0,
    };
    passes.reverse();
    while let Some(range) = passes.pop() {
        let pass = Pass {
            options,
            file: &file,
            extracts: options.extracts.get(range.clone()).unwrap_or_default(),
            budget: &budget,
        };
        let areas = areas_of(pass.extracts);
        match pass.run(&areas, &plan, ctx)? {
            Some(kept) => {
                summary.passes += 1;
                summary.extracts.extend(pass.extracted(kept));
            }
            // The estimate was too low: half of it at a time.
            None if range.len() == 1 => return Err(budget.too_little(options)),
            None => {
                let middle = range.start + range.len() / 2;
                passes.extend([middle..range.end, range.start..middle]);
            }
        }
    }
    warn_of_empty(options, &summary, &plan, ctx);
    Ok(summary)
}

/// Warns of regions that meet nothing, and says so where their coordinates look swapped.
fn warn_of_empty(options: &Options, summary: &Summary, plan: &BlobPlan, ctx: &Context) {
    let boxes = plan.entries.iter().map(|entry| entry.bbox);
    let data = boxes.fold(Bbox::EMPTY, |all, bbox| all.union(&bbox));
    for (extract, extracted) in options.extracts.iter().zip(&summary.extracts) {
        if extracted.kept.written.objects != Some(0) {
            continue;
        }
        let region = extract.shape.envelope();
        let swapped = Bbox {
            min_lat_e7: region.min_lon_e7,
            max_lat_e7: region.max_lon_e7,
            min_lon_e7: region.min_lat_e7,
            max_lon_e7: region.max_lat_e7,
        };
        let reason = match data.is_empty() {
            true => " (it has no nodes)".to_owned(),
            false if !region.intersects(&data) && swapped.intersects(&data) => {
                format!("; latitude and longitude look swapped: the data lies in {data}")
            }
            false => format!(": the data lies in {data}"),
        };
        ctx.warn(format!(
            "{}: the region meets nothing of {}{reason}",
            extracted.output.display(),
            options.input.display()
        ));
    }
}

fn areas_of(extracts: &[Extract]) -> AreaIndex {
    let shapes = extracts.iter().map(|extract| extract.shape.clone());
    AreaIndex::new(&shapes.collect::<Vec<_>>())
}

fn opening_stopped() -> Error {
    Error::Internal("the thread that begins the outputs stopped".into())
}

/// Regions that are cut out together.
struct Pass<'a> {
    options: &'a Options,
    file: &'a PbfFile,
    extracts: &'a [Extract],
    budget: &'a Budget,
}

impl Pass<'_> {
    /// Cuts out the regions; `None`, with nothing written, where that takes too much memory.
    fn run(
        &self,
        areas: &AreaIndex,
        plan: &BlobPlan,
        ctx: &Context,
    ) -> Result<Option<Vec<WriteSummary>>> {
        let (members, outputs) = self.find(areas, plan, ctx)?;
        let Some(members) = members else {
            return Ok(None);
        };
        let targets = self.extracts.iter().zip(outputs);
        let targets = targets.map(|(extract, output)| self.target(extract, output));
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

    /// Finds out what the regions keep. To make many files takes a while: the outputs are begun meanwhile, and
    /// one that cannot be is known of soon. Streams are left for later: a pipe waits for who reads it.
    fn find<'i>(
        &self,
        areas: &'i AreaIndex,
        plan: &BlobPlan,
        ctx: &Context,
    ) -> Result<(Option<RegionMembers<'i>>, Vec<Option<OpenOutput>>)> {
        std::thread::scope(|scope| {
            let targets = self.extracts.iter().map(|extract| extract.output.clone());
            let open = |target: OutputTarget| match target.is_stream() {
                true => Ok(None),
                false => OpenOutput::open(target).map(Some),
            };
            let opening = scope.spawn(move || targets.map(open).collect());
            let mut outputs = Vec::new();
            let after_nodes = || {
                let opened: Result<_> = opening.join().map_err(|_| opening_stopped())?;
                outputs = opened?;
                Ok(())
            };
            let limits = Limits {
                held: self.budget.held(),
                ids: self.budget.for_ids(self.extracts.len()),
            };
            let (strategy, file) = (&self.options.strategy, self.file);
            let found = RegionMembers::find(areas, strategy, file, plan, limits, after_nodes, ctx)?;
            Ok((found, outputs))
        })
    }

    fn extracted(&self, kept: Vec<WriteSummary>) -> impl Iterator<Item = Extracted> {
        let outputs = self.extracts.iter().map(|extract| extract.output.path());
        outputs.zip(kept).map(|(output, kept)| Extracted {
            output: output.to_owned(),
            kept,
        })
    }

    fn target(&self, extract: &Extract, output: Option<OpenOutput>) -> Result<FilterOutput> {
        let mut header: HeaderBlock = self.file.header.clone();
        header.bbox_nano = self.options.set_bounds.then(|| {
            let bounds = extract.shape.envelope();
            let edges = [
                bounds.min_lon_e7,
                bounds.max_lon_e7,
                bounds.max_lat_e7,
                bounds.min_lat_e7,
            ];
            edges.map(|edge| i64::from(edge) * NANO_PER_DECIMICRO)
        });
        extract.header.apply(&mut header);
        let output = match output {
            Some(output) => output,
            None => OpenOutput::open(extract.output.clone())?,
        };
        Ok(FilterOutput { output, header })
    }
}
