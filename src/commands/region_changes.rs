//! Makes the change files that update extracts. All extracts were cut out from one file, the planet. The change files
//! are made from the changes of the planet.
//!
//! An object can change in an extract only if the object itself changed, or if another changed object decides whether
//! the extract has it. For example, a node that moved into a region or out of it decides this for its ways, for the
//! other nodes of these ways, and for the relations of these objects (`affected`). The old extract shows which of these
//! objects it had (`before`), and the planet shows where the objects are now. Together, they show which of these
//! objects a region keeps (`membership`). One pass over the planet reads the new versions of these objects. They are
//! compared with the versions in the extracts (`output`).

mod affected;
mod before;
mod membership;
mod output;
mod regions;
mod rows;
mod sorted_file;

use crate::commands::diff::{self, Deletions};
use crate::commands::extract::{self, Strategy};
use crate::commands::planet_step::{DataIdentity, PlanetStep};
use crate::engine::headers::HeaderOptions;
use crate::error::{Error, Result};
use crate::file::PbfFile;
use crate::formats::{ChangeSet, change_sources, read_sources};
use crate::geometry::{Antimeridian, Shape};
use crate::index::{EMPTY_SET, IdMap, IdSet, IdSets, SetAlgebra};
use crate::io::{Input, OutputTarget, ScratchFile};
use crate::osm::ObjectKind;
use crate::runtime::{Context, run_tasks};
use affected::{Affected, AffectedSearch};
use before::{Before, copy_changed};
use membership::Membership;
use output::{Differing, NewVersions, possibly_changed_ids_by_region, write_changes};
use regions::{MAX_STRATEGIES, Regions};
use rustc_hash::FxHashMap;
use sorted_file::{NodeHolders, SortedFile};
use std::cmp::Reverse;
use std::path::PathBuf;

/// A region, with its extract as it was before the changes.
#[derive(Debug, Clone)]
pub struct RegionBefore {
    /// The area of the region.
    pub shape: Shape,
    /// The strategy by which the extract was cut out.
    pub strategy: Strategy,
    /// The path of this extract.
    pub extract: PathBuf,
    /// The fields that are set in the header of the extract after the changes. The change file has the replication
    /// state of this header.
    pub header: HeaderOptions,
    /// The destination of the change file.
    pub output: OutputTarget,
}

options! {
    /// The options of [`run`].
    #[derive(Debug, Clone)]
    #[non_exhaustive]
    pub struct Options {
        /// The planet after the changes: the file from which the regions are cut out.
        pub planet: PathBuf,
        /// The change files that were applied to the planet. All other objects must be as they were when the extracts
        /// were cut out.
        pub changes: Vec<PathBuf>,
        /// The regions.
        pub regions: Vec<RegionBefore>,
    }
    setters {
        /// The treatment of the antimeridian, as in [`extract`](crate::commands::extract::Options).
        antimeridian: Antimeridian,
        /// The rules for deletions, creations and the attributes of objects in the change files.
        deletions: Deletions,
        /// The maximum number of objects that can change in an extract, in percent of its objects. If more objects can
        /// change, no change file is written, and the region has to be cut out anew.
        max_percent: u32,
        /// The directory for temporary files; `None` for the system's directory.
        scratch: Option<PathBuf>,
    }
}

impl Options {
    /// Creates options with the given inputs and regions, and defaults otherwise. The default of `max_percent` is 25.
    pub fn new(
        planet: impl Into<PathBuf>,
        changes: Vec<PathBuf>,
        regions: Vec<RegionBefore>,
    ) -> Self {
        Self {
            planet: planet.into(),
            changes,
            regions,
            antimeridian: Antimeridian::default(),
            deletions: Deletions::default(),
            max_percent: 25,
            scratch: None,
        }
    }
}

/// The result for a region.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RegionOutcome {
    /// The change file is written.
    Written(diff::Summary),
    /// No change file is written, because the region has to be cut out anew. The text says why.
    CutAnew(String),
}

/// Writes a change file for each region. The change file turns the extract of the region before the changes into the
/// extract after the changes. It has the same changes, in the same order, as a [`diff`] of the two extracts.
///
/// Reads the change files for the ids of the objects that they name. In each extract, reads the blobs that may have one
/// of these objects. For a region within another region, reads only the blobs that may have one of the objects found in
/// the extract of the outer region. In the planet, reads the blobs with changed nodes, all ways, and the blobs with
/// nodes of affected ways. If a region keeps relations, also reads the relations of the planet, twice if a region
/// completes relations. In the planet and the extracts, also reads the blobs that may have a deciding object, and the
/// blobs with objects that may enter or leave a region. The presence of a deciding object in a region decides whether
/// the region keeps an affected object. The ways of the planet are read once more if a way left a region although only
/// its nodes changed: another way may keep these nodes.
///
/// A region has to be cut out anew if the planet or the region's extract is a history file, is not in canonical order,
/// may have an object twice, or has locations in its ways. It also has to be cut out anew if its extract contradicts
/// the extract of another region, or if more than [`Options::max_percent`] of its extract may change.
///
/// # Memory
///
/// The [base memory](crate::commands#memory), and 3 MB for each of up to 200 regions. 2 to 6 bytes for each id of: the
/// changes; the nodes and members of affected ways and relations; and for each region, the objects that may change in
/// it. 8 bytes for each node of an affected way or of a way that is a member of an affected relation, and 16 bytes for
/// each member of an affected relation, each pair of nested relations, and each pair of a node that a changed way had
/// and another way that has it. Up to [`Context::jobs`] extracts are read at the same time, each with a base memory of
/// one job. Each region has an open temporary file.
///
/// # Errors
///
/// An input cannot be opened or read, or is damaged; an output exists and may not be overwritten, or it cannot be
/// written ([details](crate::commands#errors)).
pub fn run(options: &Options, ctx: &Context) -> Result<Vec<RegionOutcome>> {
    update_regions(options, |_| changed_ids(&options.changes, ctx), ctx)
}

/// Does the same as [`run`], but with the changes of a step instead of [`Options::changes`]. If the planet is not in
/// the state after the step, all regions have to be cut out anew.
pub(crate) fn run_with_step(
    options: &Options,
    step: &PlanetStep,
    ctx: &Context,
) -> Result<Vec<RegionOutcome>> {
    let changed = |planet: &PbfFile| {
        let is_after = DataIdentity::of(planet) == step.after;
        Ok(is_after.then(|| step.changed.clone()))
    };
    update_regions(options, changed, ctx)
}

/// Writes the change files for the changed objects that `changed` returns. `changed` returns `None` if the planet does
/// not have the state after the changes.
fn update_regions(
    options: &Options,
    changed: impl FnOnce(&PbfFile) -> Result<Option<IdSets>>,
    ctx: &Context,
) -> Result<Vec<RegionOutcome>> {
    let outputs = options.regions.iter().map(|region| &region.output);
    outputs.clone().try_for_each(OutputTarget::check)?;
    OutputTarget::check_distinct(outputs, &[&options.planet])?;
    let cut_all = |reason: String| {
        let count = options.regions.len();
        Ok(vec![RegionOutcome::CutAnew(reason); count])
    };
    let planet = SortedFile::open(&options.planet, ctx)?;
    if let Some(obstacle) = planet.unusable_reason() {
        return cut_all(format!("{}: {obstacle}", options.planet.display()));
    }
    let given = options.regions.iter();
    let given: Vec<_> = given.map(|one| (&one.shape, &one.strategy)).collect();
    let regions = Regions::new(&given, options.antimeridian);
    if regions.strategy_count() > MAX_STRATEGIES {
        return cut_all("the regions have too many different strategies".into());
    }
    let Some(changed) = changed(&planet.file)? else {
        return cut_all("the planet was replaced meanwhile".into());
    };
    let mut update = RegionUpdate {
        options,
        planet,
        regions: &regions,
        changed,
        before: Before::default(),
        old: FxHashMap::default(),
        directory: (options.scratch.clone()).unwrap_or_else(std::env::temp_dir),
        counts: vec![0; options.regions.len()],
        order: Vec::new(),
        outcomes: vec![None; options.regions.len()],
        ctx,
    };
    update.read_changed_objects()?;
    update.write()?;
    let none = || Error::Internal("a region has no outcome".into());
    let outcomes = update.outcomes.into_iter();
    outcomes.map(|outcome| outcome.ok_or_else(none)).collect()
}

/// Returns the ids of all objects in the change files.
fn changed_ids(paths: &[PathBuf], ctx: &Context) -> Result<Option<IdSets>> {
    let _phase = ctx.phase("read changes", 0);
    let inputs = paths.iter().map(|path| Input::open_in(path, ctx));
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let mut all = IdSets::default();
    read_sources(
        &change_sources(&inputs, ctx)?,
        ctx,
        || (),
        |(), _, changes: ChangeSet| Ok(changes.ids().collect::<Vec<_>>()),
        |ids| {
            all.extend(ids);
            Ok(())
        },
    )?;
    Ok(Some(all))
}

/// The regions while their change files are made.
struct RegionUpdate<'a> {
    options: &'a Options,
    planet: SortedFile,
    regions: &'a Regions<'a>,
    changed: IdSets,
    before: Before,
    /// For each region, a temporary file with the changed objects that the extract of the region has.
    old: FxHashMap<u32, ScratchFile>,
    /// The directory for temporary files.
    directory: PathBuf,
    /// The number of objects of each extract.
    counts: Vec<u64>,
    /// The regions whose extracts can be used, as pairs `(region, outer)`. The extract of `outer` has all objects of
    /// the extract of `region`, and `outer` comes earlier in the list. `outer` is `None` if there is no such region.
    order: Vec<(usize, Option<usize>)>,
    outcomes: Vec<Option<RegionOutcome>>,
    ctx: &'a Context,
}

/// The maximum number of regions whose new objects are written in one pass over the planet.
const REGIONS_PER_PASS: usize = 200;

/// The results of looking up nodes in the planet.
#[derive(Default)]
struct NodesInRegions {
    /// The regions that contain each node.
    located: IdMap,
    /// The nodes that the planet has.
    present: IdSet,
    /// The nodes that were looked up.
    known: IdSet,
}

impl RegionUpdate<'_> {
    /// Records that a region has to be cut out anew.
    fn mark_to_cut_anew(&mut self, region: usize, reason: String) {
        self.outcomes[region] = Some(RegionOutcome::CutAnew(reason));
    }

    /// Returns the regions that do not have a result yet.
    fn pending_regions(&self) -> Vec<usize> {
        let outcomes = self.outcomes.iter().enumerate();
        let open = outcomes.filter(|(_, outcome)| outcome.is_none());
        open.map(|(region, _)| region).collect()
    }

    fn open_extract(&self, region: usize) -> Result<SortedFile> {
        SortedFile::open(&self.options.regions[region].extract, self.ctx)
    }

    /// Calls `read` with each extract that can be used and with the ids to look up in it, several extracts at a time.
    /// Calls `take` with the number of the region and the result. `take` returns the ids that the extract has.
    ///
    /// The ids to look up are `ids` or, for a region within another region, the ids that the extract of the outer
    /// region has. Outer regions are therefore read first.
    fn read_extracts<T: Send>(
        &self,
        name: &'static str,
        ids: &IdSets,
        read: impl Fn(&SortedFile, &IdSets, &Context) -> Result<T> + Sync,
        mut take: impl FnMut(u32, T) -> IdSets,
    ) -> Result<()> {
        let mut found = FxHashMap::<usize, IdSets>::default();
        let mut waiting = self.order.clone();
        while !waiting.is_empty() {
            let is_ready = |(_, around): &(usize, Option<usize>)| {
                around.is_none_or(|around| found.contains_key(&around))
            };
            let (ready, later): (Vec<_>, Vec<_>) = waiting.into_iter().partition(is_ready);
            let tasks = ready.into_iter().map(|(region, around)| {
                let outer = around.and_then(|around| found.get(&around));
                ((region, outer.unwrap_or(ids)), self.counts[region])
            });
            let mut new = Vec::new();
            run_tasks(
                name,
                tasks.collect(),
                self.ctx,
                |(region, ids), ctx| {
                    let path = &self.options.regions[region].extract;
                    Ok((region, read(&SortedFile::open(path, ctx)?, ids, ctx)?))
                },
                |(region, result)| {
                    new.push((region, take(region as u32, result)));
                    Ok(())
                },
            )?;
            found.extend(new);
            waiting = later;
        }
        Ok(())
    }

    /// Reads the changed objects in the extracts. For a region within another region, looks up only the objects that
    /// the extract of the outer region has.
    fn read_changed_objects(&mut self) -> Result<()> {
        self.find_usable_extracts()?;
        let (mut before, mut old) = (Before::default(), FxHashMap::default());
        self.read_extracts(
            "find old versions",
            &self.changed,
            |extract, ids, ctx| copy_changed(extract, (ids, &self.directory), self.regions, ctx),
            |region, (found, file)| {
                old.insert(region, file);
                before.add(region, found, self.regions)
            },
        )?;
        (self.before, self.old) = (before, old);
        let mut algebra = SetAlgebra::new(&self.regions.sets);
        let contradicted = self.before.contradicted_regions(&mut algebra);
        for region in self.regions.sets.members(contradicted) {
            let reason = "its extract is not of the state before the changes";
            self.outcomes[region as usize]
                .get_or_insert_with(|| RegionOutcome::CutAnew(reason.into()));
        }
        Ok(())
    }

    /// Finds the extracts that can be used. For each of them, finds the smallest other extract that has all of its
    /// objects.
    fn find_usable_extracts(&mut self) -> Result<()> {
        let mut extracts: Vec<(usize, Option<i64>)> = Vec::new();
        for region in self.pending_regions() {
            let extract = self.open_extract(region)?;
            if let Some(obstacle) = extract.unusable_reason() {
                let path = self.options.regions[region].extract.display();
                self.mark_to_cut_anew(region, format!("{path}: {obstacle}"));
                continue;
            }
            self.counts[region] = extract.plan.count();
            extracts.push((region, extract.file.header.replication_timestamp));
        }
        extracts.sort_by_key(|(region, _)| Reverse(self.counts[*region]));
        for (position, (region, time)) in extracts.iter().enumerate() {
            let own = &self.options.regions[*region];
            let inside = self.regions.regions_around(&own.shape);
            let has_all = |other: usize| {
                let strategy = &self.options.regions[other].strategy;
                inside.contains(&(other as u32)) && strategy.keeps_superset_of(&own.strategy)
            };
            let larger = extracts.iter().take(position).rev();
            let mut of_time = larger.filter(|(_, other)| other == time);
            let around = of_time.find(|(other, _)| has_all(*other));
            self.order.push((*region, around.map(|(other, _)| *other)));
        }
        Ok(())
    }

    /// Finds the objects that may change in each region, and writes the change files.
    fn write(&mut self) -> Result<()> {
        let mut found = NodesInRegions::default();
        let nodes = self.changed.of(ObjectKind::Node);
        self.find_regions_of_nodes("find changed nodes", nodes, &mut found)?;
        let moved = self
            .before
            .moved_nodes(nodes, &found.located, &found.present);
        let search = AffectedSearch {
            planet: &self.planet,
            regions: self.regions,
            changed: &self.changed,
            moved: &moved,
            before: &self.before,
            ctx: self.ctx,
        };
        let mut affected = search.find_ways()?;
        let nodes = affected.deciding_nodes(&self.before);
        self.find_regions_of_nodes("find nodes", &nodes, &mut found)?;
        search.find_crossing_ways(&mut affected, &found.located);
        if self.regions.with_relations != EMPTY_SET {
            search.find_relations(&mut affected)?;
            let nodes = affected.deciding_nodes(&self.before);
            self.find_regions_of_nodes("find nodes of relations", &nodes, &mut found)?;
        }
        self.read_unchanged_objects(&affected)?;
        let NodesInRegions {
            located, present, ..
        } = &found;
        let mut membership =
            Membership::find(self.regions, &affected, &self.before, located, &moved);
        let undecided = membership.undecided_nodes(present);
        for (region, nodes) in self.nodes_kept_by_ways(undecided, &affected)? {
            membership.keep_nodes(region, &nodes);
        }
        membership.remove_unaffected_regions(&self.changed);
        let ids = possibly_changed_ids_by_region(&membership, self.regions);
        let mut outcomes = self.outcomes_of_large_changes(&ids);
        let mut followed = self.pending_regions();
        followed.retain(|region| outcomes.iter().all(|(other, _)| other != region));
        let followed: Vec<u32> = followed.into_iter().map(|region| region as u32).collect();
        for outputs in followed.chunks(REGIONS_PER_PASS) {
            let objects = NewVersions::of(&membership, outputs, self.regions);
            let written = self.write_regions(&objects, outputs, &ids)?;
            for (region, written) in outputs.iter().zip(written) {
                outcomes.push((*region as usize, RegionOutcome::Written(written)));
            }
        }
        drop(membership);
        for (region, outcome) in outcomes {
            self.outcomes[region] = Some(outcome);
        }
        Ok(())
    }

    /// Returns the pending regions in whose extracts too many objects can change. Each comes with the outcome that it
    /// has to be cut out anew.
    fn outcomes_of_large_changes(
        &self,
        ids: &FxHashMap<u32, IdSets>,
    ) -> Vec<(usize, RegionOutcome)> {
        let max = self.options.max_percent;
        let reason = format!("more than {max} percent of its extract may change");
        let is_too_much = |region: &usize| {
            let concerned = ids.get(&(*region as u32)).map_or(0, IdSets::len);
            concerned * 100 > self.counts[*region].max(1) * u64::from(max)
        };
        let regions = self.pending_regions().into_iter().filter(is_too_much);
        regions
            .map(|region| (region, RegionOutcome::CutAnew(reason.clone())))
            .collect()
    }

    /// Writes the change files of the regions in `outputs`.
    fn write_regions(
        &self,
        objects: &NewVersions<'_>,
        outputs: &[u32],
        ids: &FxHashMap<u32, IdSets>,
    ) -> Result<Vec<diff::Summary>> {
        let header = |region: &u32| {
            let region = &self.options.regions[*region as usize];
            let whole = &self.planet.file.header;
            extract::extract_header(whole, &region.strategy, &region.header, None)
        };
        let headers = outputs.iter().map(header);
        let files = objects.write(&self.planet, headers, &self.directory, self.ctx)?;
        let write = |(region, new): (&u32, ScratchFile), ctx: &Context| {
            let ids = ids.get(region).into_iter().flat_map(IdSets::ids);
            let unchanged = ids.filter(|id| !self.changed.contains(id.kind, id.id));
            let missing = || Error::Internal("a region has no old objects".into());
            let differing = Differing {
                old: self.old.get(region).cloned().ok_or_else(missing)?,
                new,
                unchanged: unchanged.collect(),
            };
            let region = &self.options.regions[*region as usize];
            write_changes(self.options, region, &differing, &self.directory, ctx)
        };
        let tasks = outputs.iter().zip(files).map(|(region, new)| {
            let size = ids.get(region).map_or(0, IdSets::len);
            ((region, new), size)
        });
        let mut written = Vec::new();
        let take = |summary| {
            written.push(summary);
            Ok(())
        };
        run_tasks("compare", tasks.collect(), self.ctx, write, take)?;
        Ok(written)
    }

    /// Finds, for each node in `nodes`, the regions that contain it. Looks up only those nodes in the planet that were
    /// not looked up before.
    fn find_regions_of_nodes(
        &self,
        name: &'static str,
        nodes: &IdSet,
        found: &mut NodesInRegions,
    ) -> Result<()> {
        let mut algebra = SetAlgebra::new(&self.regions.sets);
        let NodesInRegions {
            located,
            present,
            known,
        } = found;
        let nodes: IdSet = nodes.ids().filter(|id| known.insert(*id)).collect();
        self.planet.read_node_locations(
            name,
            &nodes,
            self.ctx,
            |nodes| {
                let mut lookup = self.regions.new_lookup();
                let nodes = nodes.into_iter();
                let nodes = nodes.map(|(id, location)| (id, Regions::at(&mut lookup, location)));
                nodes.collect::<Vec<_>>()
            },
            |nodes| {
                for (id, set) in nodes {
                    present.insert(id);
                    regions::add_regions(located, id, set, &mut algebra);
                }
            },
        )
    }

    /// Records which extracts have the unchanged objects that decide about other objects.
    fn read_unchanged_objects(&mut self, affected: &Affected) -> Result<()> {
        // A region that completes relations may keep a way without any node in the region. The extracts therefore have
        // to be searched for the ways.
        let reads_ways = self.regions.completes_relations();
        if !reads_ways {
            (self.before).add_unchanged_ways(&affected.unchanged_ways, self.regions);
        }
        let ids = affected.unchanged_deciding_ids(&self.changed, reads_ways);
        if ids.is_empty() {
            return Ok(());
        }
        let mut before = std::mem::take(&mut self.before);
        let name = "find old objects";
        self.read_extracts(
            name,
            &ids,
            |extract, ids, ctx| extract.present_objects(name, ids, ctx),
            |region, present| {
                before.add_unchanged_objects(region, &present, self.regions);
                present.into_iter().collect()
            },
        )?;
        self.before = before;
        Ok(())
    }

    /// Returns, for each region, those nodes in `undecided` that an unaffected way of the region's extract has.
    fn nodes_kept_by_ways(
        &self,
        mut undecided: FxHashMap<u32, IdSet>,
        affected: &Affected,
    ) -> Result<Vec<(u32, IdSet)>> {
        let followed = self.pending_regions();
        undecided.retain(|region, _| followed.contains(&(*region as usize)));
        let had: IdSet = self.before.ways.refs.iter().copied().collect();
        let mut found = affected.holders.clone();
        let mut kept = Vec::new();
        // The search for affected ways did not record the ways of the nodes in `others`. These ways are read from the
        // extracts, if the extracts have fewer objects than the planet, and otherwise from the planet.
        let others = undecided.iter().map(|(region, nodes)| {
            let nodes = nodes.ids().filter(|id| !had.contains(*id));
            (*region, nodes.collect::<IdSet>())
        });
        let others: Vec<_> = others.filter(|(_, nodes)| !nodes.is_empty()).collect();
        let regions = others.iter().map(|(region, _)| *region as usize);
        if regions.map(|region| self.counts[region]).sum::<u64>() < self.planet.plan.count() {
            for (region, nodes) in &others {
                let mut found = NodeHolders::default();
                self.add_ways(&self.open_extract(*region as usize)?, nodes, &mut found)?;
                kept.push((*region, found.nodes(|_, way| !affected.ways.contains(way))));
            }
        } else {
            let nodes = others.iter().flat_map(|(_, nodes)| nodes.ids());
            self.add_ways(&self.planet, &nodes.collect(), &mut found)?;
        }
        for (region, nodes) in &undecided {
            let may_keep = |node, way| nodes.contains(node) && !affected.ways.contains(way);
            let ways = found.ways(may_keep);
            if ways.is_empty() {
                continue;
            }
            let extract = self.open_extract(*region as usize)?;
            let ways = extract.present_objects("find ways that keep nodes", &ways, self.ctx)?;
            let ways: IdSet = ways.into_iter().map(|way| way.id).collect();
            kept.push((
                *region,
                found.nodes(|node, way| nodes.contains(node) && ways.contains(way)),
            ));
        }
        Ok(kept)
    }

    /// Adds to `found` the ways of `file` that have a node in `nodes`.
    fn add_ways(&self, file: &SortedFile, nodes: &IdSet, found: &mut NodeHolders) -> Result<()> {
        let none = IdSet::default();
        let name = "find ways that keep nodes";
        file.read_ways(name, (&none, &none), (nodes, found), self.ctx)?;
        Ok(())
    }
}
