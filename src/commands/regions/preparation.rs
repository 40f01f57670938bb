//! The new extracts of regions and their change files, before they are published.
//!
//! There are two methods, with the same results. Either a region is cut out of the planet, and its changes are derived
//! from the old and the new extract. Or its changes are found from the changes of the planet, and applied to the old
//! extract.

use super::region_run::{NewExtract, RegionRun};
use super::{Options, PlanetState, RegionChanges, RunOutcome, WorkDirectory};
use crate::commands::extract::{self, Extract};
use crate::commands::planet_step::PlanetStep;
use crate::commands::region_changes::{self, RegionBefore, RegionOutcome};
use crate::commands::{apply_changes, diff};
use crate::engine::OutputOptions;
use crate::error::{ErrorKind, Result};
use crate::io::OutputTarget;
use crate::runtime::{Context, run_tasks};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::fs;
use std::path::PathBuf;

/// Makes new extracts and change files.
pub(super) struct RegionPreparation<'p> {
    pub options: &'p Options,
    pub planet: &'p PlanetState,
    pub work: &'p WorkDirectory,
    pub ctx: &'p Context,
}

/// The reason why a region has to be cut out.
type Reason = String;

impl RegionPreparation<'_> {
    /// Prepares the regions that are not up to date with the planet. Returns the number of passes over the planet that
    /// wrote extracts.
    pub(super) fn run(&self, runs: &mut [RegionRun<'_>]) -> Result<usize> {
        let mut due: Vec<usize> = (0..runs.len())
            .filter(|index| runs[*index].needs_new_extract(self.planet))
            .collect();
        if let Some(step) = &self.options.step {
            self.update_extracts(runs, &mut due, step)?;
        }
        self.cut_out(runs, &due)
    }

    /// Updates extracts by the changes of the planet, and removes their regions from `due`.
    fn update_extracts(
        &self,
        runs: &mut [RegionRun<'_>],
        due: &mut Vec<usize>,
        step: &PlanetStep,
    ) -> Result<()> {
        let mut known = due.clone();
        known.retain(|&index| runs[index].can_apply_step(step, self.planet));
        if known.is_empty() {
            return Ok(());
        }
        let before = known.iter().map(|&index| {
            let run = &runs[index];
            RegionBefore {
                shape: run.region.shape.clone(),
                strategy: self.options.strategy_of(run.region).clone(),
                extract: run.layout.extract.clone(),
                header: run.header(self.options, self.planet),
                output: OutputTarget::file(self.new_extract(index, run).changes),
            }
        });
        let mut options =
            region_changes::Options::new(&self.options.planet, Vec::new(), before.collect())
                .antimeridian(self.options.antimeridian);
        options.scratch = Some(self.work.path.clone());
        let outcomes = match region_changes::run_with_step(&options, step, self.ctx) {
            // An extract that cannot be read must not stop the other regions.
            Err(error) if error.kind() != ErrorKind::Cancelled => {
                let cause = error.to_string();
                vec![RegionOutcome::CutAnew(cause); known.len()]
            }
            outcomes => outcomes?,
        };
        let mut outcomes: FxHashMap<usize, RegionOutcome> =
            known.into_iter().zip(outcomes).collect();
        let all = runs.iter_mut().enumerate();
        let mut tasks: Vec<_> = all
            .filter_map(|(index, run)| {
                let size = fs::metadata(&run.layout.extract).map_or(0, |metadata| metadata.len());
                let outcome = outcomes.remove(&index)?;
                Some(((index, run, outcome), size))
            })
            .collect();
        // Large extracts come first. If the largest came last, the other threads would have to wait for it.
        tasks.sort_by_key(|(_, size)| Reverse(*size));
        let update = |(index, run, outcome): (usize, &mut RegionRun<'_>, _), ctx: &Context| {
            let is_followed = self.update_extract(index, run, outcome, ctx)?;
            Ok(is_followed.then_some(index))
        };
        let take = |followed: Option<usize>| {
            due.retain(|index| Some(*index) != followed);
            Ok(())
        };
        run_tasks("update extracts", tasks, self.ctx, update, take)
    }

    /// Updates the extract of a region. Returns false if the region has to be cut out. Fails only if the run is
    /// cancelled.
    fn update_extract(
        &self,
        index: usize,
        run: &mut RegionRun<'_>,
        outcome: RegionOutcome,
        ctx: &Context,
    ) -> Result<bool> {
        let new = self.new_extract(index, run);
        match self.apply_changes_of_region(run, &new, outcome, ctx) {
            Ok(Ok((changes, objects))) => {
                run.is_followed = true;
                self.hand_over_extract(run, new, objects, Some(changes), ctx)?;
                Ok(true)
            }
            Ok(Err(reason)) => {
                run.cut_out = Some(reason);
                Ok(false)
            }
            Err(error) if error.kind() == ErrorKind::Cancelled => Err(error),
            Err(error) => {
                run.cut_out = Some(error.to_string());
                Ok(false)
            }
        }
    }

    /// Applies the changes of a region to its extract. Returns the numbers of changes and of objects, or the reason why
    /// the region has to be cut out.
    fn apply_changes_of_region(
        &self,
        run: &RegionRun<'_>,
        new: &NewExtract,
        outcome: RegionOutcome,
        ctx: &Context,
    ) -> Result<Result<(RegionChanges, Option<u64>), Reason>> {
        let derived = match outcome {
            RegionOutcome::Written(derived) => derived,
            RegionOutcome::CutAnew(reason) => return Ok(Err(reason)),
        };
        let changes = RegionChanges::of(&derived);
        let output = OutputOptions::file(&new.path).write(self.options.write);
        let base = &run.layout.extract;
        let mut apply = apply_changes::Options::new(base, vec![new.changes.clone()], output);
        let (header, strategy) = (
            run.header(self.options, self.planet),
            self.options.strategy_of(run.region),
        );
        let header = extract::extract_header(&self.planet.header, strategy, &header, None);
        apply.header = Some(header);
        let applied = apply_changes::run(&apply, ctx)?;
        let effect = RegionChanges {
            created: applied.created,
            modified: applied.modified,
            deleted: applied.deleted,
        };
        if effect != changes {
            return Ok(Err("its changes do not lead to the new extract".into()));
        }
        Ok(Ok((changes, applied.written.objects)))
    }

    /// Cuts out regions, and derives their changes. Returns the number of passes over the planet.
    fn cut_out(&self, runs: &mut [RegionRun<'_>], due: &[usize]) -> Result<usize> {
        if due.is_empty() {
            return Ok(0);
        }
        let mut extracts = Vec::with_capacity(due.len());
        for &index in due {
            let run = &runs[index];
            let new = self.new_extract(index, run);
            // An attempt to update the old extract may have left these files.
            let _ = fs::remove_file(&new.path);
            let _ = fs::remove_file(&new.changes);
            let mut extract = Extract::new(run.region.shape.clone(), OutputTarget::file(&new.path));
            extract.strategy.clone_from(&run.region.strategy);
            extract.header = run.header(self.options, self.planet);
            extracts.push(extract);
        }
        let cut = extract::Options::new(&self.options.planet, extracts)
            .strategy(self.options.strategy.clone())
            .write(self.options.write)
            .max_memory(self.options.max_memory)
            .antimeridian(self.options.antimeridian);
        let cut = extract::run(&cut, self.ctx)?;
        for (&index, extracted) in due.iter().zip(&cut.extracts) {
            let run = &mut runs[index];
            let new = self.new_extract(index, run);
            self.hand_over_extract(run, new, extracted.kept.written.objects, None, self.ctx)?;
        }
        Ok(cut.passes)
    }

    /// Hands a new extract to its region. `changes` are the numbers of changes in its change file; `None` if there is
    /// no change file yet. Fails only if the run is cancelled.
    fn hand_over_extract(
        &self,
        run: &mut RegionRun<'_>,
        mut new: NewExtract,
        objects: Option<u64>,
        changes: Option<RegionChanges>,
        ctx: &Context,
    ) -> Result<()> {
        new.is_empty = objects == Some(0);
        match run.prepare(new, changes, self.options, self.planet, ctx) {
            Err(error) if error.kind() == ErrorKind::Cancelled => Err(error),
            Err(error) => {
                run.fail(RunOutcome::Failed, error.to_string(), ctx);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Returns the paths for the new files of a region. The paths have the name of the region, so that warnings about
    /// the files show it.
    fn new_extract(&self, index: usize, run: &RegionRun<'_>) -> NewExtract {
        let name = run.region.name.replace('/', "-");
        let path =
            |suffix: &str| -> PathBuf { self.work.file_path(format!("{index}-{name}.{suffix}")) };
        NewExtract {
            path: path("osm.pbf"),
            is_empty: false,
            sha256: String::new(),
            changes: path("osc.gz"),
        }
    }
}

impl RegionChanges {
    /// Returns the numbers of changes from one extract to another.
    pub(super) fn of(compared: &diff::Summary) -> Self {
        let total = compared.total();
        Self {
            created: total.right,
            modified: total.different,
            deleted: total.left,
        }
    }
}
