//! A region during a run: whether it needs a new extract, and how the new extract is published.

use super::chain::{RegionChain, RegionPublication};
use super::index::{self, RegionIndex, RegionRecord};
use super::layout::{self, RegionLayout};
use super::{
    FollowedRegion, Options, PlanetState, RegionChanges, RegionReport, RunOutcome, sha256,
};
use crate::commands::diff::{self, Deletions};
use crate::commands::planet_step::PlanetStep;
use crate::engine::headers::HeaderOptions;
use crate::engine::{HeaderOption, KeptField};
use crate::error::{Advice, Error, ErrorKind, Result};
use crate::io::{OutputTarget, check_shrink};
use crate::osm::format_timestamp;
use crate::replication::State;
use crate::runtime::Context;
use std::fs;
use std::path::{Path, PathBuf};

/// A region during a run.
pub(super) struct RegionRun<'o> {
    pub region: &'o FollowedRegion,
    pub layout: RegionLayout,
    /// The fingerprint of the area and the strategy.
    fingerprint: String,
    poly: String,
    pub chain: Result<RegionChain>,
    /// The record that an earlier run wrote to the index.
    record: Option<RegionRecord>,
    /// The new extract that is to be published, with its state.
    new: Option<(State, NewExtract)>,
    outcome: RunOutcome,
    changes: Option<RegionChanges>,
    cause: Option<String>,
    /// Whether the extract was updated by the changes of the planet.
    pub is_followed: bool,
    /// The reason why the extract was not updated by the changes of the planet, although these changes are known.
    pub cut_out: Option<String>,
}

/// An extract that is not published yet.
pub(super) struct NewExtract {
    pub path: PathBuf,
    pub is_empty: bool,
    /// The checksum, which is empty until the extract is to be published.
    pub sha256: String,
    /// The path for the change file.
    pub changes: PathBuf,
}

impl<'o> RegionRun<'o> {
    pub(super) fn new(
        region: &'o FollowedRegion,
        options: &'o Options,
        index: &RegionIndex,
        planet: &PlanetState,
        ctx: &Context,
    ) -> Result<Self> {
        let layout = RegionLayout::new(&options.directory, &region.name, options.diffs_only);
        let poly = crate::region_file::poly_of(&region.name, &region.shape);
        let chain = RegionChain::open(&layout, ctx);
        let mut run = Self {
            region,
            fingerprint: index::fingerprint(&poly, options.strategy_of(region), options),
            poly,
            record: index.record(&region.name),
            chain: Ok(RegionChain::default()),
            layout,
            new: None,
            outcome: RunOutcome::Unchanged,
            changes: None,
            cause: None,
            is_followed: false,
            cut_out: None,
        };
        let is_ahead = |state: &State| state.timestamp > planet.timestamp;
        match &chain {
            Err(error) if error.kind() == ErrorKind::Cancelled => return chain.map(|_| run),
            Err(error) => run.fail(RunOutcome::Failed, error.to_string(), ctx),
            Ok(RegionChain { state: Some(state) }) if is_ahead(state) => {
                let cause = format!(
                    "the region has the data of {}, and the planet is older: {}",
                    format_timestamp(state.timestamp),
                    format_timestamp(planet.timestamp)
                );
                run.fail(RunOutcome::Failed, cause, ctx);
            }
            Ok(_) => {}
        }
        run.chain = chain;
        Ok(run)
    }

    /// Sets the outcome and the cause of a region that is not published, and warns of the cause.
    pub(super) fn fail(&mut self, outcome: RunOutcome, cause: String, ctx: &Context) {
        ctx.warn(format!("{}: not published: {cause}", self.region.name));
        (self.outcome, self.cause) = (outcome, Some(cause));
    }

    /// Whether the region needs a new extract.
    pub(super) fn needs_new_extract(&self, planet: &PlanetState) -> bool {
        let Ok(chain) = &self.chain else {
            return false;
        };
        let is_same = |record: &RegionRecord| {
            let is_named = chain.state.is_some_and(|state| record.matches_state(state));
            let is_of_planet = record.planet.as_ref() == Some(&planet.identity);
            is_named && is_of_planet && record.fingerprint == self.fingerprint
        };
        let is_current = self.record.as_ref().is_some_and(is_same);
        self.outcome != RunOutcome::Failed && !is_current
    }

    /// Whether the changes of a step lead from the published extract to the new one. If they do not, sets `cut_out` to
    /// the reason, unless the region is new.
    pub(super) fn can_apply_step(&mut self, step: &PlanetStep, planet: &PlanetState) -> bool {
        let Some(state) = self.chain.as_ref().ok().and_then(|chain| chain.state) else {
            // The region is new.
            return false;
        };
        let len = fs::metadata(&self.layout.extract).map(|metadata| metadata.len());
        let known = self
            .record
            .as_ref()
            .filter(|record| record.matches_state(state));
        let reason = match known {
            _ if step.after != planet.identity => "the planet was replaced since its update",
            None => "the index does not have the state of the extract",
            Some(record) if record.planet.is_none() => "the last run did not publish it",
            Some(record) if record.bytes != len.unwrap_or(0) => "the extract was replaced",
            Some(record) if record.fingerprint != self.fingerprint => {
                "the extract is of another area or strategy, or of another version of the program"
            }
            Some(record) if record.planet.as_ref() != Some(&step.before) => {
                "the extract is not of the state of the planet before the changes"
            }
            Some(_) => return true,
        };
        self.cut_out = Some(reason.to_owned());
        false
    }

    /// Returns the state of the region after a new extract is published.
    fn next_state(&self, planet: &PlanetState) -> State {
        let state = self.chain.as_ref().ok().and_then(|chain| chain.state);
        State {
            sequence: state.map_or(0, |state| state.sequence + 1),
            timestamp: planet.timestamp,
        }
    }

    /// Returns the header fields of the new extract, which name the change files of the region.
    pub(super) fn header(&self, options: &Options, planet: &PlanetState) -> HeaderOptions {
        let State {
            sequence,
            timestamp,
        } = self.next_state(planet);
        let url = options.base_url.as_deref();
        let url = url.map(|base| layout::updates_url(base, &self.region.name));
        let cleared = HeaderOption::Clear(KeptField::ReplicationUrl);
        HeaderOptions {
            set: vec![
                HeaderOption::ReplicationTimestamp(timestamp),
                HeaderOption::ReplicationSequence(sequence),
                url.map_or(cleared, HeaderOption::ReplicationUrl),
            ],
            ..HeaderOptions::default()
        }
    }

    /// Decides whether a new extract is published. If `changes` is `None`, derives the changes from the published
    /// extract, and writes the change file. Otherwise, the change file is written already, and `changes` has the
    /// numbers of its changes.
    pub(super) fn prepare(
        &mut self,
        mut new: NewExtract,
        changes: Option<RegionChanges>,
        options: &Options,
        planet: &PlanetState,
        ctx: &Context,
    ) -> Result<()> {
        let Ok(chain) = &self.chain else {
            return Ok(());
        };
        let next = self.next_state(planet);
        if let Some(before) = chain.state {
            if let Err(error) = check_size(&self.layout.extract, &new, options.max_shrink) {
                let cause = match error {
                    Error::File { cause, .. } => cause,
                    other => other.to_string(),
                };
                self.fail(RunOutcome::Withheld, cause, ctx);
                return Ok(());
            }
            let derived = || derive_changes(&self.layout.extract, &new, ctx);
            let counts = changes.map_or_else(derived, Ok)?;
            if counts == RegionChanges::default() && before.timestamp == next.timestamp {
                return Ok(());
            }
            self.changes = Some(counts);
        }
        new.sha256 = sha256::of_file(&new.path, ctx)?;
        self.new = Some((next, new));
        Ok(())
    }

    /// Publishes the new extract, if there is one, and the polygon.
    pub(super) fn publish(&mut self, ctx: &Context) {
        if self.outcome != RunOutcome::Unchanged {
            return;
        }
        let published = match &self.new {
            Some((state, new)) => {
                let publication = RegionPublication {
                    state: *state,
                    extract: &new.path,
                    changes: self.changes.is_some().then_some(new.changes.as_path()),
                };
                publication.publish_files(&self.layout, ctx).map(Some)
            }
            None => Ok(None),
        };
        let published = published.and_then(|chain| {
            self.layout.write_poly(&self.poly, ctx)?;
            Ok(chain)
        });
        match published {
            Ok(Some(chain)) => {
                self.chain = Ok(chain);
                self.outcome = match self.changes {
                    Some(_) => RunOutcome::Updated,
                    None => RunOutcome::Created,
                };
            }
            Ok(None) => {}
            Err(error) => {
                self.changes = None;
                self.fail(RunOutcome::Failed, error.to_string(), ctx);
            }
        }
    }

    /// Returns the record of the region for the index.
    pub(super) fn new_record(
        &self,
        options: &Options,
        planet: &PlanetState,
    ) -> Result<Option<RegionRecord>> {
        let cause = self.cause.clone();
        let Some(state) = self.chain.as_ref().ok().and_then(|chain| chain.state) else {
            let record = self.record.clone();
            return Ok(record.map(|record| record.with_source(None, cause)));
        };
        let known = self
            .record
            .clone()
            .filter(|record| record.matches_state(state));
        let is_failed = matches!(self.outcome, RunOutcome::Withheld | RunOutcome::Failed);
        // A region that was not published is cut out again by the next run.
        let source = (!is_failed).then_some((self.fingerprint.as_str(), &planet.identity));
        let record = match known {
            Some(record) => record,
            None => {
                let strategy = options.strategy_of(self.region);
                let sha256 = match &self.new {
                    Some((published, new)) if *published == state => new.sha256.clone(),
                    _ => sha256::of_file(&self.layout.extract, &Context::default())?,
                };
                RegionRecord::of(&self.layout, self.region, strategy, state, sha256)?
            }
        };
        Ok(Some(record.with_source(source, cause)))
    }

    /// Returns the result of the run for the region.
    pub(super) fn report(&self) -> RegionReport {
        let state = self.chain.as_ref().ok().and_then(|chain| chain.state);
        let len = fs::metadata(&self.layout.extract).map(|metadata| metadata.len());
        RegionReport {
            name: self.region.name.clone(),
            outcome: self.outcome,
            sequence: state.map(|state| state.sequence),
            timestamp: state.map(|state| format_timestamp(state.timestamp)),
            bytes: len.ok(),
            changes: self.changes,
            followed: self.is_followed,
            cut_out: self.cut_out.clone(),
            cause: self.cause.clone(),
        }
    }
}

/// Fails if a new extract has no objects, or is too small to replace the old one.
fn check_size(old: &Path, new: &NewExtract, max_shrink: u8) -> Result<()> {
    let len = |path: &Path| {
        let metadata = fs::metadata(path);
        let len = metadata.map(|metadata| metadata.len());
        len.map_err(|error| Error::io(path, "cannot read", error))
    };
    let (old_len, new_len) = (len(old)?, len(&new.path)?);
    // If the old extract has no objects either, the sizes are similar, because only the headers differ.
    if new.is_empty && max_shrink < 100 && new_len < old_len * 3 / 4 {
        let cause = "the new extract has no objects";
        let error = Error::file_of(old, ErrorKind::Shrunk, cause);
        return Err(error.advise(Advice::AllowShrinking));
    }
    check_shrink(old, old_len, new_len, max_shrink)
}

/// Writes the change file that leads from the extract `old` to the extract `new`.
fn derive_changes(old: &Path, new: &NewExtract, ctx: &Context) -> Result<RegionChanges> {
    let target = OutputTarget::file(&new.changes);
    let format = diff::Format::Osc(Deletions::default());
    let summary = diff::run(
        &diff::Options::new(old, &new.path).output(Some((format, target))),
        ctx,
    )?;
    if summary.going_back > 0 {
        ctx.warn(format!(
            "{}: objects that were newer in the extract before: {}; clients keep them",
            old.display(),
            summary.going_back
        ));
    }
    Ok(RegionChanges::of(&summary))
}
