//! A file in canonical order in which objects are looked up by id and by reference.

use super::regions::Regions;
use super::rows::{RelationRow, RelationRows};
use crate::commands::extract::usable_location_form;
use crate::engine::filter::{BlobDecision, FilterJob, FilterOutput, select_by_id, write_selected};
use crate::engine::location_form::LocationForm;
use crate::engine::scan::Scan;
use crate::engine::{Format, Selected, input};
use crate::error::{FormatError, Result};
use crate::file::{BlobPlan, PbfFile, PlanNeeds, WriteOptions};
use crate::index::{EMPTY_SET, IdSet, IdSets};
use crate::io::{OpenOutput, OutputTarget, ScratchFile};
use crate::osm::{Location, ObjectId, ObjectKind};
use crate::pbf::{BlobEntry, BlobFlags, Block, Compression, InfoFields, WayNodes, feature};
use crate::runtime::Context;
use std::path::Path;

/// Returns the encoding of temporary files.
pub(super) fn temporary_encoding() -> WriteOptions {
    WriteOptions {
        compression: Compression::Lz4,
        ..WriteOptions::default()
    }
}

/// Nodes, with the ways that have them.
#[derive(Debug, Clone, Default)]
pub(super) struct NodeHolders {
    /// Each pair of a node and a way that has it. A pair can occur several times.
    pub pairs: Vec<(i64, i64)>,
}

impl NodeHolders {
    /// Returns the nodes of the selected pairs.
    pub(super) fn nodes(&self, is_wanted: impl Fn(i64, i64) -> bool) -> IdSet {
        let pairs = self
            .pairs
            .iter()
            .filter(|(node, way)| is_wanted(*node, *way));
        pairs.map(|(node, _)| *node).collect()
    }

    /// Returns the ways of the selected pairs.
    pub(super) fn ways(&self, is_wanted: impl Fn(i64, i64) -> bool) -> IdSets {
        let mut ways = IdSets::default();
        for (node, way) in &self.pairs {
            if is_wanted(*node, *way) {
                ways.insert(ObjectKind::Way, *way);
            }
        }
        ways
    }
}

/// A file in canonical order, with the entries of its blobs.
pub(super) struct SortedFile {
    pub file: PbfFile,
    pub plan: BlobPlan,
}

impl SortedFile {
    pub(super) fn open(path: &Path, ctx: &Context) -> Result<Self> {
        let file = input::open(path, ctx)?;
        let plan = BlobPlan::open(&file, PlanNeeds::Ranges, ctx)?;
        Ok(Self { file, plan })
    }

    /// Returns the reason why the file cannot be used to find changes of regions; `None` if it can be used.
    pub(super) fn unusable_reason(&self) -> Option<&'static str> {
        if self.file.header.has(feature::HISTORY)
            || self.plan.has_entry_with_flag(BlobFlags::DELETED)
        {
            Some("it is a history file")
        } else if self.file.has_spatial_layout() || self.plan.is_sorted() != Some(true) {
            Some("its objects are not in canonical order")
        } else if !self.plan.has_each_object_once() {
            Some("an object may occur twice in it")
        } else if usable_location_form(&self.file, &self.plan) != LocationForm::Plain {
            Some("its ways store locations")
        } else {
            None
        }
    }

    pub(super) fn scan<'a>(&'a self, name: &'static str, ctx: &'a Context) -> Scan<'a> {
        Scan::without_strings(name, &self.file, &self.plan, ctx)
    }

    /// Calls `find` with those nodes of each block that are in `ids`, each with its location. Calls `take` with the
    /// results of `find`.
    pub(super) fn read_node_locations<T: Send>(
        &self,
        name: &'static str,
        ids: &IdSet,
        ctx: &Context,
        find: impl Fn(Vec<(i64, Option<Location>)>) -> T + Sync,
        take: impl FnMut(T),
    ) -> Result<()> {
        self.scan(name, ctx).run(
            |entry| ids.may_meet_blob(entry, ObjectKind::Node),
            |_, block| {
                let mut found = Vec::new();
                block.for_each_selected_location(
                    |block_ids, selected| ids.append_present(block_ids, selected),
                    |id, location| found.push((id, location)),
                )?;
                Ok(find(found))
            },
            take,
        )
    }

    /// Returns the ways that are in `ids`.
    pub(super) fn ways_by_id(
        &self,
        name: &'static str,
        ids: &IdSet,
        ctx: &Context,
    ) -> Result<WayNodes> {
        let mut all = WayNodes::default();
        self.scan(name, ctx).run(
            |entry| ids.may_meet_blob(entry, ObjectKind::Way),
            |_, block| {
                let mut found = WayNodes::default();
                let (refs, ways) = (&mut found.refs, &mut found.ways);
                block.collect_refs(|| true, |way| ids.contains(way.id), refs, ways)?;
                Ok(found)
            },
            |found| all.append(&found),
        )?;
        Ok(all)
    }

    /// Returns the ways that are in `ids` or have a node in `nodes`. Adds to `holders` all other ways that have a node
    /// in `shared`.
    pub(super) fn read_ways(
        &self,
        name: &'static str,
        (ids, nodes): (&IdSet, &IdSet),
        (shared, holders): (&IdSet, &mut NodeHolders),
        ctx: &Context,
    ) -> Result<WayNodes> {
        let searched: IdSet = nodes.ids().chain(shared.ids()).collect();
        if searched.is_empty() {
            return self.ways_by_id(name, ids, ctx);
        }
        let mut all = WayNodes::default();
        self.scan(name, ctx).run(
            |entry| entry.kinds.contains(ObjectKind::Way),
            |_, block| {
                let ways = WayNodes::from_block(block)?;
                let is_wanted = ways.ways.iter().map(|(id, _)| ids.contains(*id));
                let mut is_wanted: Vec<bool> = is_wanted.collect();
                let mut sharing = Vec::new();
                searched.for_each_present(&ways.refs, |at| {
                    let (node, way) = (ways.refs[at], ways.way_index_of(at));
                    is_wanted[way] |= nodes.contains(node);
                    if shared.contains(node) {
                        sharing.push((node, way));
                    }
                });
                let mut found = WayNodes::default();
                for ((id, refs), is_wanted) in ways.iter().zip(&is_wanted) {
                    if *is_wanted {
                        found.push(id, refs);
                    }
                }
                sharing.retain(|(_, way)| !is_wanted[*way]);
                let pairs = sharing.iter().map(|(node, way)| (*node, ways.ways[*way].0));
                Ok((found, pairs.collect::<Vec<_>>()))
            },
            |(found, pairs)| {
                all.append(&found);
                holders.pairs.extend(pairs);
            },
        )?;
        Ok(all)
    }

    /// Returns the relations that `is_wanted` selects. Reads the blobs that may have a relation in `ids`. If `ids` is
    /// `None`, reads all blobs with relations. If a region keeps the parents of relations, also returns a pair
    /// `(relation, member)` for each member relation of each relation in these blobs.
    pub(super) fn read_relations(
        &self,
        name: &'static str,
        ids: Option<&IdSet>,
        regions: &Regions<'_>,
        is_wanted: impl Fn(RelationRow, &[(ObjectKind, i64)]) -> bool + Sync,
        ctx: &Context,
    ) -> Result<(RelationRows, Vec<(i64, i64)>)> {
        let (mut all, mut all_nested) = (RelationRows::default(), Vec::new());
        let notes_nested = regions.with_parents != EMPTY_SET;
        let mut scan = self.scan(name, ctx);
        if regions.completes_relations() {
            scan = scan.with_strings();
        }
        scan.run(
            |entry| match ids {
                Some(ids) => ids.may_meet_blob(entry, ObjectKind::Relation),
                None => entry.kinds.contains(ObjectKind::Relation),
            },
            |_, block| {
                let mut nested = Vec::new();
                let noted = notes_nested.then_some(&mut nested);
                let rows = RelationRows::of_block(block, regions, noted, &is_wanted)?;
                Ok((rows, nested))
            },
            |(rows, nested)| {
                all.append(&rows);
                all_nested.extend(nested);
            },
        )?;
        Ok((all, all_nested))
    }

    /// Writes the objects of `ids` to a temporary file in `directory`. Calls `find` with the blobs that may have one of
    /// these objects, and `take` with the results. Returns the file, and the number of its objects.
    pub(super) fn copy<T: Send>(
        &self,
        name: &'static str,
        ids: &IdSets,
        directory: &Path,
        find: impl Fn(&BlobEntry, &Block<'_>) -> Result<T, FormatError> + Sync,
        take: impl FnMut(T),
        ctx: &Context,
    ) -> Result<(ScratchFile, u64)> {
        let scratch = ScratchFile::create(directory)?;
        let target = OutputTarget::Scratch(scratch.clone());
        let output = FilterOutput {
            output: OpenOutput::open(target, ctx)?,
            format: Format::Pbf,
            header: self.file.header.clone(),
        };
        let written = write_selected(
            self.job(name, vec![output]),
            |entry| BlobDecision::visit_if(ids.may_meet(entry)),
            |entry, block, selection| {
                select_by_id(block, selection, |kind, id| {
                    Selected::whole_if(ids.contains(kind, id))
                })?;
                find(entry, block)
            },
            take,
            ctx,
        )?;
        Ok((scratch, written.written.objects.unwrap_or(0)))
    }

    /// Returns the job that writes some objects of the file to `outputs`, which are temporary files.
    pub(super) fn job(&self, name: &'static str, outputs: Vec<FilterOutput>) -> FilterJob<'_> {
        FilterJob {
            name,
            file: &self.file,
            plan: self.plan.clone(),
            prefilter: None,
            cache: None,
            clean: InfoFields::NONE,
            outputs,
            write: temporary_encoding(),
        }
    }

    /// Returns the objects of `ids` that the file has.
    pub(super) fn present_objects(
        &self,
        name: &'static str,
        ids: &IdSets,
        ctx: &Context,
    ) -> Result<Vec<ObjectId>> {
        let mut all = Vec::new();
        self.scan(name, ctx).run(
            |entry| ids.may_meet(entry),
            |_, block| {
                let mut found = Vec::new();
                block.for_each_id(|kind, id| {
                    if ids.contains(kind, id) {
                        found.push(ObjectId { kind, id });
                    }
                })?;
                Ok(found)
            },
            |found| all.extend(found),
        )?;
        Ok(all)
    }
}
