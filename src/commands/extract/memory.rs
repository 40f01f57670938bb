//! Estimates the memory of a pass, and distributes the regions over passes accordingly.

use super::Options;
use super::selection::{Sample, usable_location_form};
use super::strategy::Strategy;
use crate::engine::location_form::LocationForm;
use crate::error::{Advice, Error, Result};
use crate::file::PlannedFile;
use crate::geometry::AreaIndex;
use crate::osm::{Bbox, ObjectKind};
use crate::pbf::BlobEntry;
use crate::runtime::{Context, human_bytes};
use crate::system;

/// The memory of the program, of blobs in flight and of chunks that wait to be written, in bytes.
const BASE_BYTES: u64 = 24 << 20;
/// The memory per worker, in bytes. It holds a frame, its payload, the payload without metadata, and a block under
/// construction.
const BYTES_PER_JOB: u64 = 16 << 20;
/// The maximum size of the cache of partial blobs, in bytes.
const MAX_CACHE_BYTES: u64 = 96 << 20;
/// The memory per output, in bytes, if there are several. It holds blocks that wait to be packed or encoded, and frames
/// that wait to be written.
const BYTES_PER_OUTPUT: u64 = 3_000_000;
/// The memory per blob, in bytes. It holds two entries, one in the plan and one in the copy of the plan for the writing
/// pass.
const BYTES_PER_BLOB: u64 = 2 * size_of::<BlobEntry>() as u64;
/// The memory per kept id, in bytes, in a pass for one region and in a pass for several.
const BYTES_PER_ID: [u64; 2] = [2, 6];
/// The estimated number of kept ids per counted object in the regions, as numerator and denominator. The additional ids
/// allow for ways, relations, nodes outside of the regions, spare capacity, and the sampling error.
const IDS_PER_NODE: [u64; 2] = [7, 4];
/// The maximum number of blobs in a sample. A sample serves to estimate how many objects of a kind lie in each region.
const SAMPLE_BLOBS: usize = 96;
/// The number of open files that are not outputs.
const OTHER_FILES: u64 = 64;
/// The number of open files per output.
const FILES_PER_OUTPUT: u64 = 3;

/// The estimated memory of all regions, and the limits of a pass.
pub(super) struct Budget {
    /// The estimated number of objects in each region: nodes, and also ways in the cases that
    /// `estimate_objects_in_regions` describes.
    nodes: Vec<u64>,
    /// Memory that does not depend on the regions, in bytes.
    fixed: u64,
    /// Memory of the edges of all regions, in bytes.
    edges: u64,
    /// The maximum memory of a pass, in bytes.
    limit: u64,
    /// Whether the user gave `limit`.
    is_asked: bool,
    max_regions_per_pass: usize,
}

impl Budget {
    /// Estimates the number of objects in each region from a sample of blobs. If the sample has no object in any region
    /// and [`Options::refuses_empty`] is set, counts the objects in all blobs. For a single region, reads nothing.
    pub(super) fn estimate(
        options: &Options,
        areas: &AreaIndex,
        source: PlannedFile<'_>,
    ) -> Result<Self> {
        let regions = options.extracts.len();
        let most_files =
            (system::raise_open_file_limit().saturating_sub(OTHER_FILES) / FILES_PER_OUTPUT).max(1);
        let most_files = usize::try_from(most_files).unwrap_or(usize::MAX);
        Ok(Self {
            nodes: estimate_objects_in_regions(areas, options, source)?,
            fixed: BASE_BYTES
                + source.ctx.jobs as u64 * BYTES_PER_JOB
                + source.plan.entries.len() as u64 * BYTES_PER_BLOB,
            edges: areas.bytes(),
            is_asked: options.max_memory.is_some(),
            limit: options
                .max_memory
                .unwrap_or(system::physical_memory() / 4 * 3),
            max_regions_per_pass: options
                .max_regions_per_pass
                .unwrap_or(regions)
                .min(most_files)
                .max(1),
        })
    }

    /// Whether there are several regions, and neither a node nor a way was found in any of them. If
    /// [`Options::refuses_empty`] is set, all blobs were searched. Otherwise only a sample was searched.
    pub(super) fn has_found_nothing(&self) -> bool {
        self.nodes.len() > 1 && self.nodes.iter().all(|&nodes| nodes == 0)
    }

    /// Returns the maximum size of the cache of partial blobs, in bytes.
    pub(super) fn max_cache_bytes(&self) -> u64 {
        MAX_CACHE_BYTES.min(self.limit / 8)
    }

    /// Returns the estimated memory in bytes of a pass over `regions` regions that together contain `nodes` nodes.
    fn pass_bytes(&self, nodes: u64, regions: usize) -> u64 {
        let an_id = BYTES_PER_ID[usize::from(regions > 1)];
        let ids = nodes * IDS_PER_NODE[0] / IDS_PER_NODE[1] * an_id;
        let outputs = if regions > 1 {
            regions as u64 * BYTES_PER_OUTPUT
        } else {
            0
        };
        self.fixed + self.max_cache_bytes() + self.edges + outputs + ids
    }

    /// Returns the range of regions of each pass. The regions keep their order. All regions of a pass have the same
    /// strategy.
    pub(super) fn plan_passes<'s>(
        &self,
        strategy_of: impl Fn(usize) -> &'s Strategy,
    ) -> Vec<std::ops::Range<usize>> {
        let (mut passes, mut start, mut nodes) = (Vec::new(), 0, 0);
        for (region, more) in self.nodes.iter().enumerate() {
            let count = region - start;
            let is_full = count >= self.max_regions_per_pass
                || (count > 0 && self.pass_bytes(nodes + more, count + 1) > self.limit);
            if is_full || strategy_of(region) != strategy_of(start) {
                passes.push(start..region);
                (start, nodes) = (region, 0);
            }
            nodes += more;
        }
        passes.push(start..self.nodes.len());
        passes
    }

    /// Reports the number of passes and the memory of the largest pass, if there are several regions.
    pub(super) fn report(&self, passes: &[std::ops::Range<usize>], ctx: &Context) {
        let regions = self.nodes.len();
        if regions < 2 {
            return;
        }
        let of_pass = |pass: &std::ops::Range<usize>| {
            let nodes = self.nodes[pass.clone()].iter().sum();
            (self.pass_bytes(nodes, pass.len()), nodes, pass.len())
        };
        let largest = passes.iter().map(of_pass).max().unwrap_or_default();
        let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
        let passes = match passes.len() {
            1 => "one pass".into(),
            count => format!("{count} passes"),
        };
        ctx.info(format!(
            "{regions} regions in {passes}; at most {} MB of memory: {} MB + {} outputs x {} MB + {} MB of edges \
             + {} MB for the ids of about {} nodes and what comes with them",
            megabytes(largest.0),
            megabytes(self.fixed + self.max_cache_bytes()),
            largest.2,
            megabytes(BYTES_PER_OUTPUT),
            megabytes(self.edges),
            megabytes(largest.0 - self.pass_bytes(0, largest.2)),
            largest.1,
        ));
    }

    /// Returns the maximum memory in bytes of the ids in a pass over `regions` regions. A single region cannot be
    /// divided. Its ids are limited only if the user gave a limit. They may always use an eighth of this limit, because
    /// the estimate for everything else is usually too high.
    pub(super) fn max_id_bytes(&self, regions: usize) -> u64 {
        let left = self.limit.saturating_sub(self.pass_bytes(0, regions));
        match (regions, self.is_asked) {
            (0..=1, true) => left.max(self.limit / 8),
            (0..=1, false) => u64::MAX,
            _ => left,
        }
    }

    /// Fails if the limit is below the memory of the program itself.
    pub(super) fn check(&self, options: &Options) -> Result<()> {
        if self.limit >= BASE_BYTES {
            return Ok(());
        }
        let cause = format!("at least {} of memory is needed", human_bytes(BASE_BYTES));
        Err(Error::file(&options.input, cause).advise(Advice::AllowMemory(self.limit)))
    }

    /// Returns the error for a single region whose ids need more memory than allowed.
    pub(super) fn out_of_memory_error(&self, options: &Options) -> Error {
        let cause = format!(
            "the ids of a region take more than {} of memory",
            human_bytes(self.max_id_bytes(1)),
        );
        Error::file(&options.input, cause).advise(Advice::AllowMemoryForIds(self.limit))
    }
}

/// Estimates the number of objects in each region from a sample of blobs; 0 for a single region. Counts nodes. Also
/// counts ways in two cases: the file lacks the nodes that only ways need, or the file may lack nodes and no node was
/// found in any region. If the sample has no object in any region and [`Options::refuses_empty`] is set, counts the
/// objects in all blobs.
fn estimate_objects_in_regions(
    areas: &AreaIndex,
    options: &Options,
    source: PlannedFile<'_>,
) -> Result<Vec<u64>> {
    let mut found = vec![0; options.extracts.len()];
    if found.len() < 2 {
        return Ok(found);
    }
    let mut count = |kind| estimate_objects_of_kind(kind, areas, options, source, &mut found);
    let found_none = count(ObjectKind::Node)?;
    let counts_ways = match usable_location_form(source.file, source.plan) {
        LocationForm::Plain | LocationForm::AllNodes => false,
        LocationForm::NeededNodes => true,
        LocationForm::Mixed => found_none,
    };
    if counts_ways {
        count(ObjectKind::Way)?;
    }
    Ok(found)
}

/// Adds the estimated number of nodes or ways in each region to `found`. Returns whether all numbers in `found` are 0
/// afterwards.
fn estimate_objects_of_kind(
    kind: ObjectKind,
    areas: &AreaIndex,
    options: &Options,
    source: PlannedFile<'_>,
    found: &mut [u64],
) -> Result<bool> {
    let touches = |bbox: &Bbox| {
        let cover = areas.cover(bbox);
        (cover.inside.is_empty(), cover.touched.is_empty()) != (true, true)
    };
    let is_asked = |entry: &BlobEntry| {
        entry.kinds.contains(kind) && (entry.bbox.is_empty() || touches(&entry.bbox))
    };
    let asked: Vec<u64> = source
        .plan
        .entries
        .iter()
        .filter(|entry| is_asked(entry))
        .map(|entry| entry.offset)
        .collect();
    let step = asked.len().div_ceil(SAMPLE_BLOBS).max(1);
    let sampled: Vec<u64> = asked.iter().copied().step_by(step).collect();
    let sample = Sample {
        areas,
        offsets: &sampled,
        source,
    };
    sample.count(kind, |region, count| {
        found[region as usize] += count * step as u64;
    })?;
    let is_zero = |counts: &[u64]| counts.iter().all(|&count| count == 0);
    if options.refuses_empty && is_zero(found) && step > 1 {
        let all = Sample {
            offsets: &asked,
            ..sample
        };
        all.count(kind, |region, count| found[region as usize] += count)?;
    }
    Ok(is_zero(found))
}
