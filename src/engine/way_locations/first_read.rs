//! Stores the locations of nodes during the pass that finds the id ranges of their blobs.

use super::choice::GrowingMemory;
use super::{IndexType, LocateOptions, NodeParts, WayLocations};
use crate::file::BlobPlan;
use crate::index::{LocationStore, NodeBatch, Preparation, StoreForm};
use crate::osm::TypeThenId;
use crate::pbf::BlobEntry;
use crate::runtime::Context;

/// The first read of the nodes of a file without an index. Stores their locations, as long as the locations fit into
/// memory and the nodes come in order. If all locations are stored at the end, no other pass over the nodes is needed.
pub(crate) struct FirstRead {
    memory: GrowingMemory,
    /// The locations; `None` if they did not fit into memory, or if the nodes were not in order.
    store: Option<LocationStore>,
    /// The entries of the blobs that were read.
    entries: Vec<BlobEntry>,
    last: Option<TypeThenId>,
    ctx: Context,
}

impl FirstRead {
    /// Prepares the first read. Returns `None` in these cases:
    ///
    /// - `plan` already has the id ranges of all blobs with nodes;
    /// - nodes also occur after the blobs at the start of the file that contain only nodes;
    /// - the user chose a method of looking up locations;
    /// - the locations would probably not fit into memory.
    pub(crate) fn prepare(plan: &BlobPlan, options: &LocateOptions, ctx: &Context) -> Option<Self> {
        let parts = NodeParts::of(&plan.entries);
        if parts.is_mixed || !parts.nodes.iter().any(BlobEntry::has_only_kinds_known) {
            return None;
        }
        let memory = GrowingMemory::estimate(&parts, options, ctx)?;
        Some(Self {
            // The capacity has a reserve, because a list that has to grow is copied.
            store: Some(LocationStore::new(memory.form, memory.nodes / 4 * 5)),
            memory,
            entries: Vec::new(),
            last: None,
            ctx: ctx.clone(),
        })
    }

    /// Returns the preparation that each batch needs before it is passed to [`add`](Self::add).
    pub(crate) fn preparation(&self) -> Preparation {
        let store = self.store.as_ref();
        store.map_or_else(Preparation::default, LocationStore::preparation)
    }

    /// Adds nodes of the blob that is being read.
    pub(crate) fn add(&mut self, nodes: &NodeBatch) {
        if let Some(store) = &mut self.store {
            store.add(nodes);
        }
    }

    /// Adds the entry of a blob whose nodes were added.
    pub(crate) fn end_blob(&mut self, entry: BlobEntry) {
        let is_in_order = entry
            .first_sort_key()
            .is_none_or(|first| self.last < Some(first));
        self.last = entry.last_sort_key().max(self.last);
        if !self.memory.add(&entry, &self.ctx) || !is_in_order {
            self.store = None;
        }
        self.entries.push(entry);
    }

    /// Ends the read. Returns `plan` with the entries of the blobs that were read, and the locations if they are
    /// stored.
    pub(crate) fn finish(self, plan: &BlobPlan) -> (BlobPlan, Option<(WayLocations, IndexType)>) {
        let rest = plan.entries.iter().skip(self.entries.len()).copied();
        let entries = self.entries.into_iter().chain(rest).collect();
        let index_type = match self.memory.form {
            StoreForm::Dense => IndexType::Dense,
            StoreForm::Sparse => IndexType::Sparse,
        };
        let locations = self.store.map(|mut store| {
            store.close();
            self.ctx.debug(format!(
                "index type {}: the locations were stored when their nodes were read first",
                index_type.name()
            ));
            (WayLocations::InMemory(store), index_type)
        });
        (BlobPlan { entries }, locations)
    }
}
