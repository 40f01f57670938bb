//! Looks up the locations of the nodes of ways, either in memory, or by a join on disk that processes one range of ids
//! at a time.

mod choice;
mod first_read;
mod nodes;
mod partitions;

use crate::error::{FormatError, FormatResult, Result};
use crate::file::PlannedFile;
use crate::index::{DiskJoin, ListReader, LocationStore, StoreForm};
use crate::osm::{Location, ObjectKind, id_rank};
use crate::pbf::BlobEntry;
use choice::LookupMethod;
pub(crate) use choice::default_memory_limit;
pub(crate) use first_read::FirstRead;
use nodes::{read_locations, read_node_ids};
use partitions::Partitions;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::path::PathBuf;

/// The method of looking up locations. The output does not depend on the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum IndexType {
    /// The fastest method that fits into memory.
    #[default]
    Auto,
    /// Locations are in memory, in an array indexed by id.
    Dense,
    /// Locations are in memory, in an array that has only the nodes of the file, in the order of their ids.
    Sparse,
    /// Locations are looked up by a join on disk.
    External,
}

impl IndexType {
    /// Returns the name that options and reports use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Dense => "dense",
            Self::Sparse => "sparse",
            Self::External => "external",
        }
    }
}

/// The user's options for looking up locations.
#[derive(Debug, Clone)]
pub(crate) struct LocateOptions {
    pub index_type: IndexType,
    /// The directory for the temporary files of a join on disk.
    pub temp_dir: PathBuf,
    /// The maximum memory in bytes; `None` for four fifths of the available memory, at most 7 GiB.
    pub max_memory: Option<u64>,
    /// The approximate number of ranges of ids for a join on disk; `None` for as few ranges as `max_memory` allows. A
    /// number that is set here is used even if a range then needs more than `max_memory`.
    pub ranges: Option<u64>,
}

impl LocateOptions {
    /// Returns options without a number of ranges.
    pub(crate) const fn new(
        index_type: IndexType,
        temp_dir: PathBuf,
        max_memory: Option<u64>,
    ) -> Self {
        Self {
            index_type,
            temp_dir,
            max_memory,
            ranges: None,
        }
    }
}

/// The blobs of a file in two parts. `nodes` has the blobs at the start of the file that contain only nodes, and `rest`
/// has all other blobs.
pub(crate) struct NodeParts {
    pub nodes: Vec<BlobEntry>,
    pub rest: Vec<BlobEntry>,
    /// Whether nodes also occur after the blobs at the start of the file that contain only nodes. If so, a way may
    /// precede its nodes, `nodes` is empty, and `rest` has all blobs.
    is_mixed: bool,
}

impl NodeParts {
    pub(crate) fn of(entries: &[BlobEntry]) -> Self {
        let is_nodes = |entry: &&BlobEntry| entry.kinds.single() == Some(ObjectKind::Node);
        let count = entries.iter().take_while(is_nodes).count();
        let (nodes, rest) = entries.split_at(count);
        let has_nodes = |entry: &BlobEntry| entry.kinds.contains(ObjectKind::Node);
        if rest.iter().any(has_nodes) {
            Self {
                nodes: Vec::new(),
                is_mixed: true,
                rest: entries.to_vec(),
            }
        } else {
            Self {
                nodes: nodes.to_vec(),
                rest: rest.to_vec(),
                is_mixed: false,
            }
        }
    }

    /// Whether all nodes are in `nodes`, and the id ranges of these blobs are in order and do not overlap.
    fn is_in_order(&self) -> bool {
        let key = |entry: &BlobEntry| (id_rank(entry.min_id), id_rank(entry.max_id));
        let is_behind = |one: &BlobEntry, next: &BlobEntry| key(one).1 < key(next).0;
        !self.is_mixed && self.nodes.is_sorted_by(is_behind)
    }

    /// Returns the number of blobs.
    fn blob_count(&self) -> u64 {
        (self.nodes.len() + self.rest.len()) as u64
    }

    /// Returns the blobs that contain nodes.
    fn blobs_with_nodes(&self) -> impl Iterator<Item = &BlobEntry> {
        let all = self.nodes.iter().chain(&self.rest);
        all.filter(|entry| entry.kinds.contains(ObjectKind::Node))
    }

    /// Returns the blobs that contain ways.
    fn blobs_with_ways(&self) -> impl Iterator<Item = &BlobEntry> {
        let rest = self.rest.iter();
        rest.filter(|entry| entry.kinds.contains(ObjectKind::Way))
    }
}

/// Looks up the locations of the nodes of all ways of a file. The method depends on the user's choice and on the
/// available memory.
pub(crate) struct WayLocator<'f> {
    source: PlannedFile<'f>,
    parts: &'f NodeParts,
    choice: LookupMethod,
}

impl<'f> WayLocator<'f> {
    /// Chooses the method of looking up locations. Fails if the chosen method needs more memory than allowed. Also
    /// fails if the method is a join, and the join needs more disk space than is free.
    pub(crate) fn new(
        source: PlannedFile<'f>,
        parts: &'f NodeParts,
        options: &LocateOptions,
    ) -> Result<Self> {
        Ok(Self {
            source,
            parts,
            choice: LookupMethod::choose(source.file, parts, options, source.ctx)?,
        })
    }

    /// Returns the chosen method, which is never [`IndexType::Auto`].
    pub(crate) const fn index_type(&self) -> IndexType {
        self.choice.index_type()
    }

    /// Returns the number of ranges of ids of a join on disk; `None` if locations are in memory.
    pub(crate) fn range_count(&self) -> Option<u64> {
        match &self.choice {
            LookupMethod::InMemory(_) => None,
            LookupMethod::OnDisk(partitions, _) => Some(partitions.len() as u64),
        }
    }

    /// Whether [`locate`](Self::locate) calls its argument `read` with all blobs of [`NodeParts::nodes`]. If `false`,
    /// `locate` reads the locations itself. This happens if a way may precede its nodes, or if the nodes for a join on
    /// disk are not in order.
    pub(crate) fn calls_read_for_nodes(&self) -> bool {
        match &self.choice {
            LookupMethod::InMemory(_) => !self.parts.is_mixed,
            LookupMethod::OnDisk(partitions, _) => partitions.blobs(0).is_some(),
        }
    }

    /// Looks up the locations of the nodes of all ways. If [`calls_read_for_nodes`](Self::calls_read_for_nodes) is
    /// `true`, calls `read` with the blobs of nodes in file order, in one call or in several. `read` must add all nodes
    /// of these blobs to the store, and may also use the nodes for other purposes.
    pub(crate) fn locate(
        &self,
        read: impl FnMut(&[BlobEntry], &mut LocationStore) -> Result<()>,
    ) -> Result<WayLocations> {
        match &self.choice {
            LookupMethod::InMemory(form) => self.locate_in_memory(*form, read),
            LookupMethod::OnDisk(partitions, directory) => {
                let mut join = DiskJoin::new(partitions.starts(), directory)?;
                partitions::split_references(self.source, &mut join)?;
                self.locate_on_disk(partitions, join, read)
            }
        }
    }

    /// Looks up the locations of the nodes of all ways, for a caller that does not need the nodes.
    pub(crate) fn locate_without_reader(&self) -> Result<WayLocations> {
        self.locate(|blobs, store| {
            nodes::read_all_locations(self.source.file, blobs, store, self.source.ctx)
        })
    }

    /// Stores the locations of all nodes in memory, in a store of the given form. `read` adds the nodes of blobs to
    /// this store.
    fn locate_in_memory(
        &self,
        form: StoreForm,
        mut read: impl FnMut(&[BlobEntry], &mut LocationStore) -> Result<()>,
    ) -> Result<WayLocations> {
        let every_rank = 0..=u64::MAX;
        let ctx = self.source.ctx;
        let mut store = if form == StoreForm::Dense || self.parts.is_in_order() {
            let nodes = object_count(self.parts.blobs_with_nodes());
            if self.parts.is_mixed {
                // The blobs also contain other objects, so `nodes` is too large.
                LocationStore::new(form, nodes)
            } else {
                LocationStore::for_node_count(form, nodes, ctx.jobs)
            }
        } else {
            LocationStore::of_ids(read_node_ids(self.source, &every_rank)?, ctx.jobs)
        };
        if self.parts.is_mixed {
            read_locations(self.source, &every_rank, &mut store)?
        } else {
            read(&self.parts.nodes, &mut store)?
        }
        store.close();
        Ok(WayLocations::InMemory(store))
    }

    /// Joins references with locations, one range of ids at a time.
    fn locate_on_disk(
        &self,
        partitions: &Partitions,
        mut join: DiskJoin,
        mut read: impl FnMut(&[BlobEntry], &mut LocationStore) -> Result<()>,
    ) -> Result<WayLocations> {
        let ctx = self.source.ctx;
        for number in 0..partitions.len() {
            let store = match partitions.blobs(number) {
                Some(blobs) => {
                    let nodes = &self.parts.nodes[blobs];
                    let mut store = LocationStore::new(StoreForm::Sparse, object_count(nodes));
                    read(nodes, &mut store)?;
                    store.close();
                    store
                }
                None => {
                    let ranks = partitions.ranks(number);
                    let mut store =
                        LocationStore::of_ids(read_node_ids(self.source, &ranks)?, ctx.jobs);
                    read_locations(self.source, &ranks, &mut store)?;
                    store
                }
            };
            join.resolve_next_range(&store, ctx)?;
        }
        let ways = self.parts.blobs_with_ways().enumerate();
        Ok(WayLocations::OnDisk {
            lists: ways.map(|(list, entry)| (entry.offset, list)).collect(),
            join,
        })
    }
}

/// The locations of the nodes of all ways of a file.
pub(crate) enum WayLocations {
    InMemory(LocationStore),
    OnDisk {
        join: DiskJoin,
        /// Maps the offset of each blob with ways to the index of its list in `join`.
        lists: FxHashMap<u64, usize>,
    },
}

impl WayLocations {
    /// Returns the locations for the node references of a blob's ways. May be called only once for each blob.
    pub(crate) fn locations_of_blob(&self, entry: &BlobEntry) -> FormatResult<BlobLocations<'_>> {
        Ok(match self {
            Self::InMemory(store) => BlobLocations::InMemory(store),
            Self::OnDisk { join, lists } => {
                let unknown = FormatError::new("internal error: a blob whose ways were not read");
                BlobLocations::OnDisk(join.read(*lists.get(&entry.offset).ok_or(unknown)?)?)
            }
        })
    }

    /// Returns the largest total size in bytes that the temporary files had; `None` if locations are in memory.
    pub(crate) fn scratch_bytes(&self) -> Option<u64> {
        match self {
            Self::InMemory(_) => None,
            Self::OnDisk { join, .. } => Some(join.peak_bytes),
        }
    }
}

/// The locations for the node references of a blob's ways, in the order of the references.
pub(crate) enum BlobLocations<'l> {
    InMemory(&'l LocationStore),
    OnDisk(ListReader<'l>),
}

impl BlobLocations<'_> {
    /// Whether the locations for all references of the blob must be looked up, in order.
    pub(crate) const fn needs_all_refs(&self) -> bool {
        matches!(self, Self::OnDisk(_))
    }

    /// Appends the locations for `refs` to `locations`. If [`needs_all_refs`](Self::needs_all_refs) is `true`, `refs`
    /// must continue where the previous call for this blob ended.
    pub(crate) fn append_locations(
        &mut self,
        refs: &[i64],
        locations: &mut Vec<Option<Location>>,
    ) -> FormatResult<()> {
        match self {
            Self::InMemory(store) => {
                store.get_all(refs, locations);
                Ok(())
            }
            Self::OnDisk(list) => list.read_next(refs, locations),
        }
    }

    /// Ends the look-ups of the blob. Fails if locations for further references are left.
    pub(crate) fn end(self) -> FormatResult<()> {
        match self {
            Self::InMemory(_) => Ok(()),
            Self::OnDisk(list) => list.end(),
        }
    }
}

/// Returns the total number of objects in the blobs of `entries`.
fn object_count<'e>(entries: impl IntoIterator<Item = &'e BlobEntry>) -> u64 {
    let counts = entries.into_iter().map(|entry| u64::from(entry.count));
    counts.sum()
}
