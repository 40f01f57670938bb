//! How much memory a pass takes, and how many regions it may therefore have.

use super::Options;
use super::selection::count_nodes;
use crate::error::{Error, Result};
use crate::file::{BlobPlan, PbfFile};
use crate::geometry::AreaIndex;
use crate::io::system;
use crate::osm::{Bbox, ObjectKind};
use crate::pbf::BlobEntry;
use crate::runtime::{Context, human_bytes};

/// Bytes that the program itself takes, with blobs in flight and what is being written.
const BASE: u64 = 24 << 20;
/// Bytes a worker: a frame, its payload, the same without metadata, and a block under construction.
const A_JOB: u64 = 16 << 20;
/// Bytes for what is held of blobs until it is written, where there is so much.
const HELD: u64 = 96 << 20;
/// Bytes an output where there are several: held back, gathered, and waiting to be joined.
const AN_OUTPUT: u64 = 3_000_000;
/// Bytes an entry of the plan.
const A_BLOB: u64 = 2 * size_of::<BlobEntry>() as u64;
/// Bytes an id that one region keeps, and that one of several keeps.
const AN_ID: [u64; 2] = [2, 6];
/// What comes to the ids of nodes in the regions: nodes of their ways that lie outside, ways and relations,
/// lists that have room to grow, and what a sample does not tell.
const MORE_IDS: [u64; 2] = [7, 4];
/// Blobs that are looked at for an estimate.
const SAMPLED: usize = 96;
/// Files that are open beside the outputs, and those of an output.
const OTHER_FILES: u64 = 64;
const FILES_AN_OUTPUT: u64 = 3;

/// What the passes over a file are planned by.
pub(super) struct Budget {
    /// Nodes in each region, by a sample.
    nodes: Vec<u64>,
    /// Bytes that do not depend on the regions.
    fixed: u64,
    /// Bytes for the edges of all regions.
    edges: u64,
    limit: u64,
    /// Whether somebody asked for that limit.
    is_asked: bool,
    most_regions: usize,
}

impl Budget {
    /// Looks at some blobs to learn how many nodes the regions hold. A single region is not asked about.
    pub(super) fn estimate(
        options: &Options,
        areas: &AreaIndex,
        file: &PbfFile,
        plan: &BlobPlan,
        ctx: &Context,
    ) -> Result<Self> {
        let regions = options.extracts.len();
        let most_files =
            (system::most_open_files().saturating_sub(OTHER_FILES) / FILES_AN_OUTPUT).max(1);
        let most_files = usize::try_from(most_files).unwrap_or(usize::MAX);
        Ok(Self {
            nodes: nodes_in(areas, regions, file, plan, ctx)?,
            fixed: BASE + ctx.jobs as u64 * A_JOB + plan.entries.len() as u64 * A_BLOB,
            edges: areas.bytes(),
            is_asked: options.max_memory.is_some(),
            limit: options.max_memory.unwrap_or(system::memory() / 4 * 3),
            most_regions: options
                .most_regions
                .unwrap_or(regions)
                .min(most_files)
                .max(1),
        })
    }

    /// Bytes for what is held of blobs so that they need not be read again.
    pub(super) fn held(&self) -> u64 {
        HELD.min(self.limit / 8)
    }

    /// Bytes that a pass with some regions takes at most.
    fn bytes(&self, nodes: u64, regions: usize) -> u64 {
        let an_id = AN_ID[usize::from(regions > 1)];
        let ids = nodes * MORE_IDS[0] / MORE_IDS[1] * an_id;
        let outputs = if regions > 1 {
            regions as u64 * AN_OUTPUT
        } else {
            0
        };
        self.fixed + self.held() + self.edges + outputs + ids
    }

    /// Numbers of regions, in the given order, cut into passes.
    pub(super) fn passes(&self) -> Vec<std::ops::Range<usize>> {
        let (mut passes, mut start, mut nodes) = (Vec::new(), 0, 0);
        for (region, more) in self.nodes.iter().enumerate() {
            let count = region - start;
            let is_full = count >= self.most_regions
                || (count > 0 && self.bytes(nodes + more, count + 1) > self.limit);
            if is_full {
                passes.push(start..region);
                (start, nodes) = (region, 0);
            }
            nodes += more;
        }
        passes.push(start..self.nodes.len());
        passes
    }

    /// Says what the passes will take.
    pub(super) fn tell(&self, passes: &[std::ops::Range<usize>], ctx: &Context) {
        let regions = self.nodes.len();
        if regions < 2 {
            return;
        }
        let of_pass = |pass: &std::ops::Range<usize>| {
            let nodes = self
                .nodes
                .get(pass.clone())
                .unwrap_or_default()
                .iter()
                .sum();
            (self.bytes(nodes, pass.len()), nodes, pass.len())
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
            megabytes(self.fixed + self.held()),
            largest.2,
            megabytes(AN_OUTPUT),
            megabytes(self.edges),
            megabytes(largest.0 - self.bytes(0, largest.2)),
            largest.1,
        ));
    }

    /// Bytes that the ids of a pass with so many regions may take. A single region cannot be cut out in less than one
    /// pass, so that it has no limit but the one that was asked for; of that it has an eighth at least, since the
    /// formula for the rest is generous.
    pub(super) fn for_ids(&self, regions: usize) -> u64 {
        let left = self.limit.saturating_sub(self.bytes(0, regions));
        match (regions, self.is_asked) {
            (0..=1, true) => left.max(self.limit / 8),
            (0..=1, false) => u64::MAX,
            _ => left,
        }
    }

    /// Fails where the limit is below what the program itself takes.
    pub(super) fn check(&self, options: &Options) -> Result<()> {
        if self.limit >= BASE {
            return Ok(());
        }
        let cause = format!(
            "this takes at least {} of memory, and --max-memory allows {}",
            human_bytes(BASE),
            human_bytes(self.limit)
        );
        Err(Error::file(&options.input, cause))
    }

    /// The error for a region that takes more memory than there may be.
    pub(super) fn too_little(&self, options: &Options) -> Error {
        let cause = format!(
            "the ids of a region take more than {} of memory, which --max-memory {} leaves for them; allow more",
            human_bytes(self.for_ids(1)),
            human_bytes(self.limit)
        );
        Error::file(&options.input, cause)
    }
}

/// About how many nodes each region holds.
fn nodes_in(
    areas: &AreaIndex,
    regions: usize,
    file: &PbfFile,
    plan: &BlobPlan,
    ctx: &Context,
) -> Result<Vec<u64>> {
    let mut nodes = vec![0; regions];
    if regions < 2 {
        return Ok(nodes);
    }
    let touches = |bbox: &Bbox| {
        let cover = areas.cover(bbox);
        (cover.inside.is_empty(), cover.touched.is_empty()) != (true, true)
    };
    let is_asked = |entry: &BlobEntry| {
        entry.kinds.contains(ObjectKind::Node) && (entry.bbox.is_empty() || touches(&entry.bbox))
    };
    let asked: Vec<u64> = plan
        .entries
        .iter()
        .filter(|entry| is_asked(entry))
        .map(|entry| entry.offset)
        .collect();
    let step = asked.len().div_ceil(SAMPLED).max(1);
    let sampled: Vec<u64> = asked.iter().copied().step_by(step).collect();
    count_nodes(areas, &sampled, file, plan, ctx, |region, count| {
        if let Some(nodes) = nodes.get_mut(region as usize) {
            *nodes += count * step as u64;
        }
    })?;
    Ok(nodes)
}
