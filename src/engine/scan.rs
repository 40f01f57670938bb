//! Read-only passes over the blobs that a closure selects.

use super::filter::{BlobDecision, StringPrefilter};
use super::payload_cache::PayloadCache;
use crate::error::{FormatResult, Result};
use crate::file::{BlobPass, BlobPlan, PbfFile, PlanItem, PlanNeeds, PlannedFile};
use crate::osm::ObjectKind;
use crate::pbf::{
    BlobEntry, BlobFlags, Block, NodeVersions, StringTable, VersionedNodes, has_exactly_nodes,
    scan_order,
};
use crate::runtime::{Context, WorkItem};

/// A pass that parses the blocks of a file, with or without their strings.
pub(crate) struct Scan<'a> {
    name: &'static str,
    file: &'a PbfFile,
    plan: &'a BlobPlan,
    with_strings: bool,
    /// The cache from which payloads are taken.
    source: Option<&'a PayloadCache>,
    /// The cache to which payloads are added.
    target: Option<&'a PayloadCache>,
    ctx: &'a Context,
}

/// A blob to scan.
struct ScanItem<'e>(&'e BlobEntry);

impl WorkItem for ScanItem<'_> {
    fn input_bytes(&self) -> u64 {
        self.0.input_bytes()
    }

    fn held_bytes(&self) -> u64 {
        // Besides the blob, the results of the closures need up to 16 bytes per object.
        self.0.input_bytes() * 2 + u64::from(self.0.count) * 16
    }
}

impl<'a> PlannedFile<'a> {
    /// Creates a pass over the file, as [`Scan::without_strings`] does.
    pub(crate) const fn scan(self, name: &'static str) -> Scan<'a> {
        Scan::without_strings(name, self.file, self.plan, self.ctx)
    }
}

impl<'a> Scan<'a> {
    /// Creates a pass that parses ids, locations and references, but no strings.
    pub(crate) const fn without_strings(
        name: &'static str,
        file: &'a PbfFile,
        plan: &'a BlobPlan,
        ctx: &'a Context,
    ) -> Self {
        Self {
            name,
            file,
            plan,
            with_strings: false,
            source: None,
            target: None,
            ctx,
        }
    }

    /// Returns the same pass, changed to also parse the string table of each block.
    pub(crate) fn with_strings(self) -> Self {
        Self {
            with_strings: true,
            ..self
        }
    }

    /// Returns the same pass, changed to add the payloads of all blobs to `cache`, as long as there is room.
    pub(crate) fn with_cache_to_fill(self, cache: &'a PayloadCache) -> Self {
        Self {
            target: Some(cache),
            ..self
        }
    }

    /// Returns the same pass, changed to take payloads from `cache`, and to decode only the blobs that it does not
    /// have.
    pub(crate) fn with_cache_to_drain(self, cache: &'a PayloadCache) -> Self {
        Self {
            source: Some(cache),
            ..self
        }
    }

    /// Parses the blobs that `picks` selects, calls `find` with each, and calls `take` with the results in file order.
    pub(crate) fn run<T: Send>(
        self,
        picks: impl Fn(&BlobEntry) -> bool,
        find: impl Fn(&BlobEntry, &Block<'_>) -> FormatResult<T> + Sync,
        mut take: impl FnMut(T),
    ) -> Result<()> {
        self.try_run(picks, find, |found| {
            take(found);
            Ok(())
        })
    }

    /// Calls `find` with each of the blocks that `picks` selects, and with a list to which `find` appends its results.
    /// Adds the lists to `all` in file order.
    pub(crate) fn collect<T: Send>(
        self,
        picks: impl Fn(&BlobEntry) -> bool,
        find: impl Fn(&Block<'_>, &mut Vec<T>) -> FormatResult<()> + Sync,
        all: &mut impl Extend<T>,
    ) -> Result<()> {
        let find = |_: &BlobEntry, block: &Block<'_>| {
            let mut found = Vec::new();
            find(block, &mut found).map(|()| found)
        };
        self.run(picks, find, |found| all.extend(found))
    }

    /// Adds the ids of all relation members of the kind `of_kind` to `all`.
    pub(crate) fn collect_member_ids(
        self,
        of_kind: ObjectKind,
        all: &mut impl Extend<i64>,
    ) -> Result<()> {
        self.collect(
            |entry| entry.kinds.contains(ObjectKind::Relation),
            |block, members| {
                block.for_each_member(|_, kind, id| {
                    if kind == of_kind {
                        members.push(id);
                    }
                })
            },
            all,
        )
    }

    /// Does the same as [`run`](Self::run), with a `take` that may fail.
    pub(crate) fn try_run<T: Send>(
        self,
        picks: impl Fn(&BlobEntry) -> bool,
        find: impl Fn(&BlobEntry, &Block<'_>) -> FormatResult<T> + Sync,
        mut take: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let entries = self.plan.entries.iter().filter(|entry| picks(entry));
        let (with_strings, source, target) = (self.with_strings, self.source, self.target);
        let find = |entry: &BlobEntry, payload: &[u8]| {
            let block = if with_strings {
                Block::parse(payload)?
            } else {
                Block::parse_without_strings(payload)?
            };
            find(entry, &block)
        };
        BlobPass::new(self.name, &self.file.input, self.ctx).run(
            entries.map(ScanItem).collect(),
            || (),
            |reader, (), ScanItem(entry)| match source.and_then(|cache| cache.take(entry)) {
                Some(payload) => {
                    let found = find(entry, &payload).map_err(|error| {
                        self.file
                            .input
                            .blob_error(entry.number.into(), entry.offset, error)
                    })?;
                    if let Some(cache) = target.filter(|cache| cache.has_room()) {
                        cache.add(entry, payload);
                    }
                    Ok(found)
                }
                None => reader.decode(entry, |payload| {
                    let found = find(entry, payload)?;
                    if let Some(cache) = target.filter(|cache| cache.has_room()) {
                        cache.add(entry, payload.to_vec());
                    }
                    Ok(found)
                }),
            },
            &mut take,
        )
    }

    /// Calls `find` with the nodes of each blob that `picks` selects, and calls `take` with the results in file order.
    /// For a blob for which `needs_locations` returns `false`, decompresses only the ids and versions if possible.
    pub(crate) fn run_on_node_versions<T: Send>(
        self,
        picks: impl Fn(&BlobEntry) -> bool,
        needs_locations: impl Fn(&BlobEntry) -> bool + Sync,
        find: impl Fn(VersionedNodes<'_, '_>) -> FormatResult<T> + Sync,
        mut take: impl FnMut(T),
    ) -> Result<()> {
        let entries = self.plan.entries.iter().filter(|entry| picks(entry));
        BlobPass::new(self.name, &self.file.input, self.ctx).run(
            entries.map(ScanItem).collect(),
            || (),
            |reader, (), ScanItem(entry)| {
                let mut stored = reader.read(entry)?;
                if !needs_locations(entry) && !entry.flags.has(BlobFlags::HAS_TABLE) {
                    let prefix = stored.prefix(NodeVersions::needed_bytes)?;
                    if let Ok(versions) = NodeVersions::parse_prefix(prefix)
                        && has_exactly_nodes(versions.ids(), entry)
                    {
                        let found = find(VersionedNodes::Versions(&versions));
                        self.ctx.stats.blobs_decoded.add(1);
                        return found.map_err(|error| reader.error(entry, error));
                    }
                }
                let found = Block::parse_without_strings(stored.payload()?)
                    .and_then(|block| find(VersionedNodes::Block(&block)));
                found.map_err(|error| reader.error(entry, error))
            },
            |found| {
                take(found);
                Ok(())
            },
        )
    }
}

/// A pass that plans a file and scans it at the same time. It decodes no blob twice. If no index describes a blob, its
/// entry in the plan has only the facts about ids and order.
pub(crate) struct PlanningScan<'a> {
    pub name: &'static str,
    pub file: &'a PbfFile,
    pub prefilter: StringPrefilter<'a>,
    pub ctx: &'a Context,
}

/// A blob to plan and to scan.
struct PlanningItem(PlanItem);

impl WorkItem for PlanningItem {
    fn input_bytes(&self) -> u64 {
        self.0.input_bytes()
    }

    fn held_bytes(&self) -> u64 {
        // The number of objects may be unknown. Few objects take less than 4 bytes in the file, so four times the input
        // replaces the 16 bytes per object of `ScanItem`.
        self.0.input_bytes() * 6
    }
}

impl PlanningScan<'_> {
    /// Calls `find` with each blob that `picks` selects by its entry, unless the prefilter drops the blob by its
    /// strings. Calls `take` with the results in file order. Returns the plan of the file.
    pub(crate) fn run<T: Send>(
        self,
        picks: impl Fn(&BlobEntry) -> bool + Sync,
        find: impl Fn(&BlobEntry, &Block<'_>) -> FormatResult<T> + Sync,
        mut take: impl FnMut(T),
    ) -> Result<BlobPlan> {
        let (file, prefilter) = (self.file, self.prefilter);
        let is_dropped = |strings: &StringTable<'_>| prefilter(strings) == BlobDecision::Drop;
        let mut entries = Vec::new();
        let items = BlobPlan::items(file, PlanNeeds::Ranges);
        BlobPass::new(self.name, &file.input, self.ctx).run_stream(
            items.map(|item| item.map(PlanningItem)),
            || (),
            |reader, (), PlanningItem(item)| match item {
                PlanItem::Known(entry) if !picks(&entry) => Ok((entry, None)),
                PlanItem::Known(entry) => {
                    let mut stored = reader.read(&entry)?;
                    let dropped = stored.decide(|strings| is_dropped(strings).then_some(()))?;
                    let found = match dropped {
                        Some(()) => None,
                        None => Some(stored.decode_in_segments(|payload, _| {
                            find(&entry, &Block::parse(payload)?)
                        })?),
                    };
                    Ok((entry, found))
                }
                PlanItem::Scan(unscanned) => reader.decode(&unscanned, |payload| {
                    let mut entry = unscanned;
                    scan_order(payload, &mut entry)?;
                    if !picks(&entry) {
                        return Ok((entry, None));
                    }
                    let block = Block::parse(payload)?;
                    if is_dropped(&block.strings) {
                        return Ok((entry, None));
                    }
                    let found = find(&entry, &block)?;
                    Ok((entry, Some(found)))
                }),
            },
            |(entry, found)| {
                entries.push(entry);
                found.into_iter().for_each(&mut take);
                Ok(())
            },
        )?;
        Ok(BlobPlan { entries })
    }
}
