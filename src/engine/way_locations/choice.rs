//! Chooses the method of looking up locations, depending on the ids in the file and the available memory.

use super::partitions::Partitions;
use super::{IndexType, LocateOptions, NodeParts};
use crate::error::{Advice, Error, Result};
use crate::file::{BlobDecoder, PbfFile};
use crate::index::{DiskJoin, LocationStore, StoreForm};
use crate::osm::id_rank;
use crate::pbf::{BlobEntry, Block};
use crate::runtime::{Context, human_bytes};
use crate::system;
use std::path::{Path, PathBuf};

/// The memory in bytes for the program itself, for blobs in flight, and for chunks that are being written to disk.
const BASE: u64 = 32 << 20;
/// The memory in bytes per worker, for a frame, its payload, the payload with locations, and the nodes of its ways.
const BYTES_PER_JOB: u64 = 20 << 20;
/// The memory in bytes per blob, for its entry in the plan and in copies of the plan.
const BYTES_PER_BLOB: u64 = 3 * size_of::<BlobEntry>() as u64;
/// The estimated size of the temporary files in bytes per reference. Real files need 5 to 7 bytes.
const BYTES_PER_REFERENCE: u64 = 8;
/// The approximate number of sampled blobs from which the number of references is estimated.
const SAMPLED: usize = 24;
/// A limit in the formula for the memory reserve of a range, in bytes. If the locations of an average range need `n`
/// bytes, the reserve is `n / 16 + min(n / 16, SLACK)`.
const SLACK: u64 = 1 << 20;
/// The number of open files that are reserved for purposes other than the temporary files of ranges.
const OTHER_FILES: u64 = 64;
/// The maximum number of ranges of ids.
const MAX_PARTITIONS: u64 = 2048;

/// The method of looking up locations.
pub(super) enum LookupMethod {
    InMemory(StoreForm),
    /// A join on disk, with temporary files in this directory.
    OnDisk(Partitions, PathBuf),
}

impl LookupMethod {
    /// Returns the method that the user chose. For [`IndexType::Auto`], returns the fastest method that fits into
    /// memory. Fails if the chosen method needs more memory than allowed, or if a join needs more disk space than is
    /// free.
    pub(super) fn choose(
        file: &PbfFile,
        parts: &NodeParts,
        options: &LocateOptions,
        ctx: &Context,
    ) -> Result<Self> {
        let memory = Memory::estimate(parts, options, ctx);
        let (choice, reason) = match options.index_type {
            IndexType::Auto => memory.suitable_index(),
            asked => (asked, "as asked for"),
        };
        ctx.debug(format!(
            "index type {}: {reason} ({} nodes: dense {}, sparse {}, of {} to be had)",
            choice.name(),
            memory.nodes,
            human_bytes(memory.fixed + memory.dense),
            human_bytes(memory.fixed + memory.sparse),
            human_bytes(memory.limit),
        ));
        match choice {
            IndexType::Dense => memory.choose_store(file, memory.dense, StoreForm::Dense),
            IndexType::Sparse => memory.choose_store(file, memory.sparse, StoreForm::Sparse),
            IndexType::Auto | IndexType::External => {
                let partitions = memory.plan_partitions(file, parts, options)?;
                check_space(file, parts, &partitions, &options.temp_dir, ctx)?;
                Ok(Self::OnDisk(partitions, options.temp_dir.clone()))
            }
        }
    }

    pub(super) const fn index_type(&self) -> IndexType {
        match self {
            Self::InMemory(StoreForm::Dense) => IndexType::Dense,
            Self::InMemory(StoreForm::Sparse) => IndexType::Sparse,
            Self::OnDisk(..) => IndexType::External,
        }
    }
}

/// Facts about the nodes of some blobs, from which the memory for their locations is estimated.
#[derive(Default)]
struct NodeFacts {
    /// The number of objects in the blobs, which is at least the number of nodes.
    nodes: u64,
    /// The memory in bytes for the locations of all blobs, added up blob by blob: in a dense store, and in a sparse
    /// store.
    sums: [u64; 2],
    /// The ids with the lowest and the highest rank.
    ends: Option<(i64, i64)>,
    largest: i64,
}

impl NodeFacts {
    fn of<'e>(blobs: impl Iterator<Item = &'e BlobEntry>) -> Self {
        let mut facts = Self::default();
        blobs.for_each(|entry| facts.add(entry));
        facts
    }

    fn add(&mut self, entry: &BlobEntry) {
        let (count, low, high) = (u64::from(entry.count), entry.min_id, entry.max_id);
        self.nodes += count;
        let forms = [StoreForm::Dense, StoreForm::Sparse];
        for (sum, form) in self.sums.iter_mut().zip(forms) {
            *sum += LocationStore::bytes(form, count, low, high);
        }
        let by_rank = |id: &i64| id_rank(*id);
        let (first, last) = self.ends.unwrap_or((low, high));
        self.ends = Some((
            std::cmp::min_by_key(first, low, by_rank),
            std::cmp::max_by_key(last, high, by_rank),
        ));
        self.largest = self.largest.max(high);
    }

    /// Returns the bytes that the locations use.
    fn bytes(&self, form: StoreForm) -> u64 {
        // Blobs whose id ranges overlap share chunks of the store, so the sum over all blobs may be too high. Therefore
        // the estimate is limited to the memory for the whole range of ids.
        let [dense, sparse] = self.sums;
        let sum = match form {
            StoreForm::Dense => dense,
            StoreForm::Sparse => sparse,
        };
        self.ends.map_or(0, |(first, last)| {
            sum.min(LocationStore::bytes(form, self.nodes, first, last))
        })
    }

    /// Scales the facts about `known` blobs to `blobs` blobs. The other blobs are assumed to have as many nodes on
    /// average, with ids in the same range.
    fn scaled_to(self, known: u64, blobs: u64) -> Self {
        let nodes = u128::from(self.nodes) * u128::from(blobs) / u128::from(known.max(1));
        Self {
            nodes: u64::try_from(nodes).unwrap_or(u64::MAX),
            sums: [u64::MAX; 2],
            ..self
        }
    }
}

/// Returns the memory for everything except locations, in bytes. `blobs` is the number of blobs.
fn bytes_without_locations(blobs: u64, nodes: &NodeFacts, ctx: &Context) -> u64 {
    BASE + ctx.jobs as u64 * BYTES_PER_JOB
        + blobs * BYTES_PER_BLOB
        + LocationStore::table_bytes(nodes.largest)
}

/// Returns the maximum memory that may be used, in bytes.
fn memory_limit(options: &LocateOptions) -> u64 {
    options.max_memory.unwrap_or_else(default_memory_limit)
}

/// Returns the default of the maximum memory, in bytes. More memory would save little time, because a join on disk is
/// hardly slower than lookups in memory.
pub(crate) fn default_memory_limit() -> u64 {
    const MOST: u64 = 7 << 30;
    (system::available_memory() / 5 * 4).min(MOST)
}

/// The memory of a store of locations that is being filled. The id range of a blob is known only after the blob is
/// read.
pub(super) struct GrowingMemory {
    /// Facts about the blobs that were read.
    facts: NodeFacts,
    blobs: u64,
    /// The estimated number of nodes in all blobs.
    pub nodes: u64,
    pub form: StoreForm,
    limit: u64,
}

impl GrowingMemory {
    /// Estimates the memory from the blobs whose id ranges are known. Returns `None` if the user chose an index type,
    /// or if the locations would not fit into memory.
    pub(super) fn estimate(
        parts: &NodeParts,
        options: &LocateOptions,
        ctx: &Context,
    ) -> Option<Self> {
        if options.index_type != IndexType::Auto {
            return None;
        }
        let known = || {
            parts
                .nodes
                .iter()
                .filter(|entry| !entry.has_only_kinds_known())
        };
        let facts = NodeFacts::of(known());
        let facts = facts.scaled_to(known().count() as u64, parts.nodes.len() as u64);
        let (blobs, nodes) = (parts.blob_count(), facts.nodes);
        let memory = Memory::of(facts, blobs, 0, options, ctx);
        let form = match memory.suitable_index() {
            (IndexType::Dense, _) => StoreForm::Dense,
            (IndexType::Sparse, _) => StoreForm::Sparse,
            (IndexType::External | IndexType::Auto, _) => return None,
        };
        Some(Self {
            facts: NodeFacts::default(),
            blobs,
            nodes,
            form,
            limit: memory.limit,
        })
    }

    /// Adds a blob. Returns whether the locations of all blobs up to this one fit into memory.
    pub(super) fn add(&mut self, entry: &BlobEntry, ctx: &Context) -> bool {
        self.facts.add(entry);
        let needed =
            bytes_without_locations(self.blobs, &self.facts, ctx) + self.facts.bytes(self.form);
        needed <= self.limit
    }
}

/// Estimates of memory in bytes, and the numbers that they depend on.
struct Memory {
    /// The number of objects in blobs that contain nodes, which is at least the number of nodes.
    nodes: u64,
    /// The number of blobs that contain ways. A join holds a list of references for each of these blobs.
    lists: u64,
    /// The memory for everything except locations.
    fixed: u64,
    /// The memory for the locations in a dense store.
    dense: u64,
    /// The memory for the locations in a sparse store.
    sparse: u64,
    /// The maximum memory that may be used.
    limit: u64,
}

impl Memory {
    fn estimate(parts: &NodeParts, options: &LocateOptions, ctx: &Context) -> Self {
        let lists = parts.blobs_with_ways().count() as u64;
        let facts = NodeFacts::of(parts.blobs_with_nodes());
        Self::of(facts, parts.blob_count(), lists, options, ctx)
    }

    fn of(
        facts: NodeFacts,
        blobs: u64,
        lists: u64,
        options: &LocateOptions,
        ctx: &Context,
    ) -> Self {
        Self {
            nodes: facts.nodes,
            lists,
            fixed: bytes_without_locations(blobs, &facts, ctx),
            dense: facts.bytes(StoreForm::Dense),
            sparse: facts.bytes(StoreForm::Sparse),
            limit: memory_limit(options),
        }
    }

    /// Returns the fastest method that fits into memory, and the reason for the choice.
    fn suitable_index(&self) -> (IndexType, &'static str) {
        let fits = |bytes: u64| self.fixed + bytes <= self.limit;
        if fits(self.dense) && self.dense <= self.sparse / 8 * 9 {
            (IndexType::Dense, "nearly all ids are in use")
        } else if fits(self.sparse) {
            (IndexType::Sparse, "all locations fit into memory")
        } else {
            (IndexType::External, "not all locations fit into memory")
        }
    }

    /// Chooses a store in memory with the form `form`. `bytes` is the memory for its locations. Fails if the total
    /// memory would exceed the maximum.
    fn choose_store(&self, file: &PbfFile, bytes: u64, form: StoreForm) -> Result<LookupMethod> {
        let needed = self.fixed + bytes;
        if needed > self.limit {
            let message = format!(
                "locations take about {} of memory, and {} is available",
                human_bytes(needed),
                human_bytes(self.limit)
            );
            let error = Error::file(file.input.path(), message);
            return Err(error.advise(Advice::UseExternalIndex));
        }
        Ok(LookupMethod::InMemory(form))
    }

    /// Divides the ids into as few ranges as the maximum memory allows. Fails if the memory is too small for any number
    /// of ranges. If the user chose the number of ranges, the memory is not checked. The maximum number of open files
    /// limits the number of ranges.
    fn plan_partitions(
        &self,
        file: &PbfFile,
        parts: &NodeParts,
        options: &LocateOptions,
    ) -> Result<Partitions> {
        // Ranges differ in size, so the memory for each includes a reserve.
        let store = |ranges: u64| {
            let share = self.sparse / ranges;
            share + share / 16 + SLACK.min(share / 16)
        };
        let needed =
            |ranges: u64| self.fixed + DiskJoin::memory(ranges, self.lists) + store(ranges);
        let fits = |ranges: &u64| needed(*ranges) <= self.limit;
        // Each range has an open temporary file. Half of the permitted files stay free, because there may be more
        // ranges than planned.
        let most =
            MAX_PARTITIONS.min(system::raise_open_file_limit().saturating_sub(OTHER_FILES) / 2);
        let most = most.max(1);
        let ranges = match options.ranges {
            Some(ranges) => Some(ranges.min(most)),
            None => (1..=most).find(fits),
        };
        match ranges {
            Some(ranges) => Ok(Partitions::plan(parts, store(ranges))),
            None => {
                let least = (1..=most).map(needed).min().unwrap_or_default();
                let cause = format!(
                    "at least {} of memory is needed, and {} is allowed",
                    human_bytes(least),
                    human_bytes(self.limit)
                );
                Err(Error::file(file.input.path(), cause))
            }
        }
    }
}

/// Reports the estimated size of a join's temporary files. Fails if the disk has less free space.
fn check_space(
    file: &PbfFile,
    parts: &NodeParts,
    partitions: &Partitions,
    directory: &Path,
    ctx: &Context,
) -> Result<()> {
    let references = estimate_references(file, parts, ctx)?;
    let needed = references * BYTES_PER_REFERENCE;
    let free = system::free_space(directory);
    let there = free.map_or(String::new(), |free| {
        format!(", {} free", human_bytes(free))
    });
    let ranges = match partitions.len() {
        1 => "one range of ids".into(),
        ranges => format!("{ranges} ranges of ids"),
    };
    ctx.info(format!(
        "join of about {references} references in {ranges}: temporary files of about {} in {}{there}",
        human_bytes(needed),
        directory.display(),
    ));
    match free {
        Some(free) if free < needed => {
            let cause = format!(
                "the join takes about {} of temporary files, and {} are free",
                human_bytes(needed),
                human_bytes(free)
            );
            Err(Error::file(directory, cause).advise(Advice::ChooseTempDirectory))
        }
        _ => Ok(()),
    }
}

/// Estimates the number of node references in all ways. Counts the references in a sample of blobs, and scales the
/// count in proportion to the sizes of the frames.
fn estimate_references(file: &PbfFile, parts: &NodeParts, ctx: &Context) -> Result<u64> {
    let ways: Vec<&BlobEntry> = parts.blobs_with_ways().collect();
    let mut reader = BlobDecoder::new(&file.input, ctx);
    let (mut references, mut bytes) = (0, 0);
    for entry in ways.iter().step_by((ways.len() / SAMPLED).max(1)) {
        let payload = reader.payload(entry)?;
        let counted = Block::parse_without_strings(payload).and_then(|block| {
            block.for_each_ref_batch(1 << 16, |refs, _| references += refs.len() as u64)
        });
        counted.map_err(|error| reader.error(entry, error))?;
        bytes += u64::from(entry.frame_len);
    }
    let all: u64 = ways.iter().map(|entry| u64::from(entry.frame_len)).sum();
    let scaled = u128::from(references) * u128::from(all) / u128::from(bytes.max(1));
    Ok(u64::try_from(scaled).unwrap_or(u64::MAX))
}
