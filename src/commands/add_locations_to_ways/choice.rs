//! How locations are looked up: what a file asks for, and what the machine has.

use super::partitions::Partitions;
use super::{IndexType, Options, Parts};
use crate::error::{Error, Result};
use crate::file::{BlobReader, PbfFile};
use crate::index::{DiskJoin, LocationStore, StoreForm};
use crate::io::system;
use crate::osm::id_rank;
use crate::pbf::{BlobEntry, ParsedBlock, WayNodes};
use crate::runtime::{Context, human_bytes};
use std::path::{Path, PathBuf};

/// Bytes that the program itself takes, with blobs in flight and what is being written.
const BASE: u64 = 32 << 20;
/// Bytes a worker: a frame, its payload, the same with locations, and their nodes.
const A_JOB: u64 = 20 << 20;
/// Bytes an entry of the plan, of which there are two.
const A_BLOB: u64 = 3 * size_of::<BlobEntry>() as u64;
/// Bytes of temporary files a reference: of real files it takes 5 to 7.
const A_REFERENCE: u64 = 8;
/// Blobs that are looked at for an estimate.
const SAMPLED: usize = 24;
/// Bytes by which a range may turn out larger than others.
const SLACK: u64 = 1 << 20;
/// Files that are open beside those of ranges.
const OTHER_FILES: u64 = 64;
/// The most ranges of ids.
const MOST_PARTITIONS: u64 = 2048;

/// How locations are looked up.
pub(super) enum Choice {
    InMemory(StoreForm),
    /// By a join in a directory.
    OnDisk(Partitions, PathBuf),
}

impl Choice {
    /// What the user wants, or what suits.
    pub(super) fn make(
        file: &PbfFile,
        parts: &Parts,
        options: &Options,
        ctx: &Context,
    ) -> Result<Self> {
        let memory = Memory::estimate(parts, options, ctx);
        let (choice, reason) = match options.index_type {
            IndexType::Auto => memory.suits(),
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
            IndexType::Dense => memory.check(memory.dense, options, StoreForm::Dense),
            IndexType::Sparse => memory.check(memory.sparse, options, StoreForm::Sparse),
            IndexType::Auto | IndexType::External => {
                let directory = options.temp_dir.clone();
                let directory = directory.unwrap_or_else(|| options.output.scratch_directory());
                let partitions = memory.partitions(parts, options)?;
                check_space(file, parts, &partitions, &directory, ctx)?;
                Ok(Self::OnDisk(partitions, directory))
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

/// Bytes of memory.
struct Memory {
    nodes: u64,
    /// Blobs of ways.
    lists: u64,
    /// What is taken beside locations.
    fixed: u64,
    dense: u64,
    sparse: u64,
    /// What may be taken.
    limit: u64,
}

impl Memory {
    fn estimate(parts: &Parts, options: &Options, ctx: &Context) -> Self {
        let blobs = (parts.nodes.len() + parts.rest.len()) as u64;
        let mut memory = Self {
            nodes: 0,
            lists: parts.with_ways().count() as u64,
            fixed: BASE + ctx.jobs as u64 * A_JOB + blobs * A_BLOB,
            dense: 0,
            sparse: 0,
            limit: options
                .max_memory
                .unwrap_or_else(|| system::available_memory() / 5 * 4),
        };
        for entry in parts.with_nodes() {
            let count = u64::from(entry.count);
            let bytes = |form| LocationStore::bytes(form, count, entry.min_id, entry.max_id);
            memory.nodes += count;
            memory.dense += bytes(StoreForm::Dense);
            memory.sparse += bytes(StoreForm::Sparse);
        }
        // Blobs that are not in order share the chunks that they reach into.
        let by_rank = |id: &i64| id_rank(*id);
        let first = parts
            .with_nodes()
            .map(|entry| entry.min_id)
            .min_by_key(by_rank);
        let last = parts
            .with_nodes()
            .map(|entry| entry.max_id)
            .max_by_key(by_rank);
        if let Some((first, last)) = first.zip(last) {
            let bytes = |form| LocationStore::bytes(form, memory.nodes, first, last);
            memory.dense = memory.dense.min(bytes(StoreForm::Dense));
            memory.sparse = memory.sparse.min(bytes(StoreForm::Sparse));
        }
        let largest = parts.with_nodes().map(|entry| entry.max_id).max();
        memory.fixed += LocationStore::table_bytes(largest.unwrap_or_default());
        memory
    }

    /// What suits, and why.
    fn suits(&self) -> (IndexType, &'static str) {
        let fits = |bytes: u64| self.fixed + bytes <= self.limit;
        if fits(self.dense) && self.dense <= self.sparse / 8 * 9 {
            (IndexType::Dense, "nearly all ids are in use")
        } else if fits(self.sparse) {
            (IndexType::Sparse, "all locations fit into memory")
        } else {
            (IndexType::External, "not all locations fit into memory")
        }
    }

    /// Refuses to take more than there is, or than the user allows.
    fn check(&self, bytes: u64, options: &Options, form: StoreForm) -> Result<Choice> {
        let needed = self.fixed + bytes;
        if needed > self.limit {
            let message = format!(
                "locations take about {} of memory, and there are {}; \
                 --index-type external gets by with less",
                human_bytes(needed),
                human_bytes(self.limit)
            );
            return Err(Error::file(&options.input, message));
        }
        Ok(Choice::InMemory(form))
    }

    /// As few ranges of ids as the memory allows.
    fn partitions(&self, parts: &Parts, options: &Options) -> Result<Partitions> {
        // Ranges are not cut evenly.
        let store = |ranges: u64| {
            let share = self.sparse / ranges;
            share + share / 16 + SLACK.min(share / 16)
        };
        let needed =
            |ranges: u64| self.fixed + DiskJoin::memory(ranges, self.lists) + store(ranges);
        let fits = |ranges: &u64| needed(*ranges) <= self.limit;
        // A file for each, of which there may be more than planned.
        let most = MOST_PARTITIONS.min(system::max_open_files().saturating_sub(OTHER_FILES) / 2);
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
                    "this takes at least {} of memory, and {} are allowed",
                    human_bytes(least),
                    human_bytes(self.limit)
                );
                Err(Error::file(&options.input, cause))
            }
        }
    }
}

/// Says what a join will take of the disk, and refuses to begin what cannot end.
fn check_space(
    file: &PbfFile,
    parts: &Parts,
    partitions: &Partitions,
    directory: &Path,
    ctx: &Context,
) -> Result<()> {
    let references = estimate_references(file, parts, ctx)?;
    let needed = references * A_REFERENCE;
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
                "the join takes about {} of temporary files, and {} are free; \
                 --temp-dir names another directory",
                human_bytes(needed),
                human_bytes(free)
            );
            Err(Error::file(directory, cause))
        }
        _ => Ok(()),
    }
}

/// How many references there are, by what is in some blobs.
fn estimate_references(file: &PbfFile, parts: &Parts, ctx: &Context) -> Result<u64> {
    let ways: Vec<&BlobEntry> = parts.with_ways().collect();
    let mut reader = BlobReader::new(&file.input, ctx);
    let (mut references, mut bytes) = (0, 0);
    for entry in ways.iter().step_by((ways.len() / SAMPLED).max(1)) {
        let payload = reader.payload(entry)?;
        let nodes = ParsedBlock::parse_bare(payload).and_then(|block| WayNodes::of(&block));
        let nodes = nodes.map_err(|error| reader.error(entry, error))?;
        references += nodes.refs.len() as u64;
        bytes += u64::from(entry.frame_len);
    }
    let all: u64 = ways.iter().map(|entry| u64::from(entry.frame_len)).sum();
    let scaled = u128::from(references) * u128::from(all) / u128::from(bytes.max(1));
    Ok(u64::try_from(scaled).unwrap_or(u64::MAX))
}
