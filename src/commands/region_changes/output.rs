//! Writes the change files of regions. For each region, the objects of the planet that may change in its extract are
//! written to a temporary file. This file is compared with the old objects of the extract.

use super::membership::{Membership, distribute_to_regions};
use super::regions::{Regions, add_regions, intersection};
use super::sorted_file::{SortedFile, temporary_encoding};
use super::{Options, RegionBefore};
use crate::commands::{diff, sort};
use crate::engine::filter::{BlobDecision, FilterItem, FilterOutput, Selection, write_outputs};
use crate::engine::{Format, GroupId, OutputOptions};
use crate::error::{FormatError, Result};
use crate::index::{IdMap, IdSets, SetAlgebra, SetNumber};
use crate::io::{OpenOutput, OutputTarget, ScratchFile};
use crate::osm::ObjectKind;
use crate::pbf::{Block, HeaderBlock};
use crate::runtime::Context;
use rustc_hash::FxHashMap;
use std::path::Path;

/// For some regions, the objects that the new extract has and that may differ from those of the old extract.
pub(super) struct NewVersions<'a> {
    regions: &'a Regions<'a>,
    /// The regions that have an output, in ascending order. The outputs are in the same order.
    outputs: &'a [u32],
    /// For each kind, a map from the id of an object to the regions whose outputs get the object.
    kept: [IdMap; 3],
}

/// Returns the ids of the objects that may change in each region.
pub(super) fn possibly_changed_ids_by_region(
    membership: &Membership<'_>,
    regions: &Regions<'_>,
) -> FxHashMap<u32, IdSets> {
    let mut sets = FxHashMap::<SetNumber, IdSets>::default();
    for kind in ObjectKind::ALL {
        membership.concerned[kind as usize].for_each(|id, concerned| {
            sets.entry(concerned).or_default().insert(kind, id);
        });
    }
    distribute_to_regions(&sets, regions, |all: &mut IdSets, ids| {
        all.extend(ids.ids());
    })
}

impl<'a> NewVersions<'a> {
    /// Selects the objects that the outputs of the regions in `outputs` get. `outputs` is in ascending order.
    pub(super) fn of(
        membership: &Membership<'_>,
        outputs: &'a [u32],
        regions: &'a Regions<'a>,
    ) -> Self {
        let followed = regions.sets.of(outputs.iter().copied());
        let mut algebra = SetAlgebra::new(&regions.sets);
        let mut kept: [IdMap; 3] = Default::default();
        for (kept, (concerned, all)) in kept
            .iter_mut()
            .zip(membership.concerned.iter().zip(&membership.kept))
        {
            concerned.for_each(|id, concerned| {
                let set = intersection(&mut algebra, concerned, all.get(id));
                let set = intersection(&mut algebra, set, followed);
                add_regions(kept, id, set, &mut algebra);
            });
        }
        Self {
            regions,
            outputs,
            kept,
        }
    }

    /// Writes the objects of each region to a temporary file in `directory`. Each file gets one of `headers`.
    pub(super) fn write(
        &self,
        planet: &SortedFile,
        headers: impl Iterator<Item = HeaderBlock>,
        directory: &Path,
        ctx: &Context,
    ) -> Result<Vec<ScratchFile>> {
        let files = self.outputs.iter().map(|_| ScratchFile::create(directory));
        let files = files.collect::<Result<Vec<_>>>()?;
        let open = |(file, header): (&ScratchFile, HeaderBlock)| {
            Ok(FilterOutput {
                output: OpenOutput::open(OutputTarget::Scratch(file.clone()), ctx)?,
                format: Format::Pbf,
                header,
            })
        };
        let outputs = files.iter().zip(headers).map(open);
        let outputs = outputs.collect::<Result<_>>()?;
        let job = planet.job("get objects", outputs);
        let may_keep =
            |kind: &ObjectKind, ids: (i64, i64)| self.kept[*kind as usize].may_meet(ids.0, ids.1);
        write_outputs(
            job,
            |entry| {
                let is_visited = match entry.kinds.single() {
                    Some(kind) => may_keep(&kind, (entry.min_id, entry.max_id)),
                    None => true,
                };
                FilterItem::new(*entry, BlobDecision::visit_if(is_visited))
            },
            |_, block, selection| self.select(block, selection),
            |()| (),
            ctx,
        )?;
        Ok(files)
    }

    /// Assigns each object of a block to the group of its set of regions. The outputs of these regions get the object.
    fn select(&self, block: &Block<'_>, selection: &mut Selection) -> Result<(), FormatError> {
        let mut groups = FxHashMap::<SetNumber, GroupId>::default();
        block.for_each_id(|kind, id| {
            let set = self.kept[kind as usize].get(id);
            let group = *groups.entry(set).or_insert_with(|| {
                let regions = self.regions.sets.members(set).into_iter();
                let number_of = |region| self.outputs.binary_search(&region).ok();
                let outputs = regions.filter_map(number_of);
                selection.add_group(outputs.map(|number| number as u32))
            });
            selection.push_in_group(group);
        })
    }
}

/// The objects of a region that may differ between its old and its new extract.
pub(super) struct Differing {
    /// The changed objects that the old extract has.
    pub old: ScratchFile,
    /// The objects of the new extract that may differ.
    pub new: ScratchFile,
    /// The ids of the objects that did not change themselves, but may enter or leave the extract.
    pub unchanged: IdSets,
}

/// Writes the change file of a region.
pub(super) fn write_changes(
    options: &Options,
    region: &RegionBefore,
    differing: &Differing,
    directory: &Path,
    ctx: &Context,
) -> Result<diff::Summary> {
    const OLD: &str = "<old objects>";
    const NEW: &str = "<new objects>";
    let old = old_objects_file(region, differing, directory, ctx)?;
    let ctx = ctx.clone();
    let ctx = ctx.with_file(OLD, old.open()?);
    let ctx = ctx.with_file(NEW, differing.new.open()?);
    let format = diff::Format::Osc(options.deletions.clone());
    let compared = diff::Options::new(OLD, NEW).output(Some((format, region.output.clone())));
    diff::run(&compared, &ctx)
}

/// Returns a file with the old versions of changed objects, and with the unchanged objects in `differing` that the
/// extract has.
fn old_objects_file(
    region: &RegionBefore,
    differing: &Differing,
    directory: &Path,
    ctx: &Context,
) -> Result<ScratchFile> {
    const CHANGED: &str = "<changed objects>";
    const UNCHANGED: &str = "<unchanged objects>";
    if differing.unchanged.is_empty() {
        return Ok(differing.old.clone());
    }
    let extract = SortedFile::open(&region.extract, ctx)?;
    let (more, count) = extract.copy(
        "get old objects",
        &differing.unchanged,
        directory,
        |_, _| Ok(()),
        |()| (),
        ctx,
    )?;
    if count == 0 {
        return Ok(differing.old.clone());
    }
    let both = ScratchFile::create(directory)?;
    let output =
        OutputOptions::new(OutputTarget::Scratch(both.clone())).write(temporary_encoding());
    let ctx = ctx.clone();
    let ctx = ctx.with_file(CHANGED, differing.old.open()?);
    let ctx = ctx.with_file(UNCHANGED, more.open()?);
    let inputs = vec![CHANGED.into(), UNCHANGED.into()];
    sort::run(&sort::Options::new(inputs, output), &ctx)?;
    Ok(both)
}
