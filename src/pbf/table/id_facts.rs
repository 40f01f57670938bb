//! Facts about the ids in a block: the number and range of ids for each kind, and the order of all ids.

use super::entry::{BlobEntry, BlobFlags};
use crate::error::FormatResult;
use crate::osm::{KindSet, ObjectKind, TypeThenId, id_from_rank, id_rank};
use crate::pbf::block::delta::STRIDE;
use crate::pbf::wire::Varints;

/// The number, range and order of the ids added so far.
#[derive(Debug)]
pub(super) struct IdFacts {
    kinds: [KindIds; 3],
    last: Option<TypeThenId>,
    /// The version of the last object. If the next object has the same kind and id, the versions of the two are
    /// compared.
    last_version: i64,
    sorted: bool,
    /// Whether the objects are in canonical order, and no id occurs twice.
    strict: bool,
    /// The number of objects that directly follow an object of the same kind and id.
    repeated: u64,
}

/// The number of ids of one kind, and their range as ranks in canonical order.
#[derive(Debug, Clone, Copy)]
struct KindIds {
    count: u32,
    min: u64,
    max: u64,
}

/// Facts about successive ids of nodes.
#[derive(Debug)]
pub(super) struct NodeRun {
    count: u32,
    first: i64,
    last: i64,
    /// Whether the ids are positive and ascending.
    is_ascending: bool,
}

impl Default for NodeRun {
    fn default() -> Self {
        Self {
            count: 0,
            first: 0,
            last: 0,
            is_ascending: true,
        }
    }
}

impl NodeRun {
    /// Appends ids.
    pub(super) fn add(&mut self, ids: &[i64]) {
        if self.count == 0 {
            self.first = ids.first().copied().unwrap_or_default();
        }
        for id in ids {
            self.is_ascending &= *id > self.last;
            self.last = *id;
        }
        self.count += ids.len() as u32;
    }
}

impl Default for IdFacts {
    fn default() -> Self {
        let none = KindIds {
            count: 0,
            min: u64::MAX,
            max: 0,
        };
        Self {
            kinds: [none; 3],
            last: None,
            last_version: 0,
            sorted: true,
            strict: true,
            repeated: 0,
        }
    }
}

impl IdFacts {
    /// Adds the next object.
    pub(in crate::pbf) fn add(&mut self, kind: ObjectKind, id: i64, version: i64) {
        let key = (kind, id_rank(id));
        self.add_range(kind, 1, [key.1; 2]);
        match self.last.replace(key) {
            Some(last) if last > key => (self.sorted, self.strict) = (false, false),
            Some(last) if last == key => {
                self.strict = false;
                self.repeated += 1;
                self.sorted &= self.last_version <= version;
            }
            _ => {}
        }
        self.last_version = version;
    }

    /// Adds a column of at least one node id, as [`add_node_run`](Self::add_node_run) does.
    pub(super) fn add_id_column(
        &mut self,
        mut deltas: Varints<'_>,
        last_version: impl FnOnce() -> FormatResult<i64>,
    ) -> FormatResult<bool> {
        let (mut run, mut ids, mut last) = (NodeRun::default(), [0; STRIDE], 0);
        while !deltas.is_done() {
            run.add(deltas.read_sums(&mut ids, &mut last)?);
        }
        self.add_node_run(&run, last_version)
    }

    /// Adds successive node ids if they are positive and ascending, and come after all ids that were added before. This
    /// is the case in nearly all blocks. Returns whether the ids were added. `last_version` must return the version of
    /// the last node.
    pub(super) fn add_node_run(
        &mut self,
        run: &NodeRun,
        last_version: impl FnOnce() -> FormatResult<i64>,
    ) -> FormatResult<bool> {
        let [first, last] = [run.first, run.last].map(|id| (ObjectKind::Node, id_rank(id)));
        if !run.is_ascending || self.last.is_some_and(|before| before >= first) {
            return Ok(false);
        }
        self.add_range(ObjectKind::Node, run.count, [first.1, last.1]);
        self.last = Some(last);
        self.last_version = last_version()?;
        Ok(true)
    }

    /// Counts `count` ids of a kind, with ranks from `min` to `max`.
    fn add_range(&mut self, kind: ObjectKind, count: u32, [min, max]: [u64; 2]) {
        let ids = &mut self.kinds[kind as usize];
        ids.count += count;
        ids.min = ids.min.min(min);
        ids.max = ids.max.max(max);
    }

    /// Returns the number of objects that directly follow an object of the same kind and id.
    pub(in crate::pbf) const fn repeated_count(&self) -> u64 {
        self.repeated
    }

    /// Sets the kinds, the number of objects, the id range and the order flags of `entry`.
    pub(in crate::pbf) fn fill_entry(&self, entry: &mut BlobEntry) {
        let of = |kind: ObjectKind| &self.kinds[kind as usize];
        let found = ObjectKind::ALL
            .into_iter()
            .filter(|kind| of(*kind).count > 0);
        entry.kinds = found.collect::<KindSet>();
        entry.count = self.kinds.iter().map(|ids| ids.count).sum();
        let id = |kind: Option<ObjectKind>, rank: fn(&KindIds) -> u64| {
            kind.map_or(0, |kind| id_from_rank(rank(of(kind))))
        };
        entry.min_id = id(entry.kinds.first(), |ids| ids.min);
        entry.max_id = id(entry.kinds.last(), |ids| ids.max);
        entry.flags.set(BlobFlags::SORTED, self.sorted);
        entry.flags.set(BlobFlags::UNIQUE_IDS, self.strict);
    }
}
