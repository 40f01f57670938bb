//! `regions`: keeps the extracts of many regions up to date, each with change files from one state to the next.
//!
//! Each run makes the extract of each region from the present planet, and a change file from the extract of the
//! previous run to the new one. It publishes both files, so each region is a replication server of its own. An extract
//! is cut out of the planet and compared with the previous one, or it is made by applying the changes of the planet to
//! the previous one. The latter requires a proof that these changes lead from the previous state of the planet to the
//! present one.

mod chain;
mod index;
mod layout;
#[cfg(feature = "pages")]
mod page;
mod preparation;
mod region_run;
mod sha256;

use crate::commands::extract::Strategy;
use crate::commands::planet_step::{DataIdentity, PlanetStep};
use crate::error::{Advice, Error, Result};
use crate::file::{PbfFile, WriteOptions};
use crate::geometry::{Antimeridian, Shape};
use crate::io::{FileLock, OutputTarget, ScratchDirectory, create_directories};
use crate::osm::format_timestamp;
use crate::pbf::{HeaderBlock, feature};
use crate::runtime::{Cancellation, Context};
use index::RegionIndex;
use layout::RegionLayout;
use preparation::RegionPreparation;
use region_run::RegionRun;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// The default of [`Options::max_shrink`].
pub const MAX_SHRINK: u8 = 20;

/// A region that is kept up to date.
#[derive(Debug, Clone)]
pub struct FollowedRegion {
    /// The name: the path of the extract within the directory, without `.osm.pbf`.
    pub name: String,
    /// The area of the region.
    pub shape: Shape,
    /// The strategy of the region; if `None`, [`Options::strategy`] applies.
    pub strategy: Option<Strategy>,
}

options! {
    /// The options of `regions`.
    #[derive(Debug, Clone)]
    #[non_exhaustive]
    pub struct Options {
        /// The file from which all regions are cut out. Its header states the time up to which the file has all
        /// changes.
        pub planet: PathBuf,
        /// The directory with the files of all regions. It is created if it does not exist.
        pub directory: PathBuf,
        /// The regions.
        pub regions: Vec<FollowedRegion>,
    }
    setters {
        /// The URL of the directory. The header of each extract gets the URL of the region's change files, which is
        /// derived from this URL. If `None`, the headers get no URL.
        base_url: Option<String>,
        /// The strategy of regions that have none of their own.
        strategy: Strategy,
        /// The number of days for which change files are kept; `None` to keep them for ever.
        keep_days: Option<u32>,
        /// Whether only change files are published. The extracts, from which the next change files are derived, are
        /// kept in a hidden directory.
        diffs_only: bool,
        /// The maximum percentage by which an extract may be smaller than the extract that it replaces. An extract that
        /// shrinks more, or has no objects, is not published. With 100, everything is published.
        max_shrink: u8,
        /// The compression, the indexes and the verification of the extracts.
        write: WriteOptions,
        /// The maximum memory of the search for objects, see [`extract::Options`](crate::commands::extract::Options).
        max_memory: Option<u64>,
        /// The treatment of the antimeridian, see [`extract::Options`](crate::commands::extract::Options).
        antimeridian: Antimeridian,
        /// The step that led the planet to its present state. Extracts of the state before this step are updated by the
        /// changes of the step. If `None`, all regions are cut out of the planet.
        step: Option<PlanetStep>,
    }
}

impl Options {
    /// Creates options with the given planet, directory and regions, and defaults otherwise.
    pub fn new(
        planet: impl Into<PathBuf>,
        directory: impl Into<PathBuf>,
        regions: Vec<FollowedRegion>,
    ) -> Self {
        Self {
            planet: planet.into(),
            directory: directory.into(),
            regions,
            base_url: None,
            strategy: Strategy::default(),
            keep_days: None,
            diffs_only: false,
            max_shrink: MAX_SHRINK,
            write: WriteOptions::default(),
            max_memory: None,
            antimeridian: Antimeridian::default(),
            step: None,
        }
    }

    fn strategy_of<'o>(&'o self, region: &'o FollowedRegion) -> &'o Strategy {
        region.strategy.as_ref().unwrap_or(&self.strategy)
    }

    /// Fails if there is no region, or if the name of a region is invalid. Also fails if two regions, or a region and
    /// the planet, would have a file with the same path.
    fn check(&self) -> Result<()> {
        if self.regions.is_empty() {
            return Err(Error::Usage("no region was given".into()));
        }
        let names = self.regions.iter().map(|region| region.name.as_str());
        layout::check_region_names(names.clone()).map_err(Error::Usage)?;
        let extracts = names.map(|name| RegionLayout::new(&self.directory, name, false).extract);
        let extracts: Vec<OutputTarget> = extracts.map(OutputTarget::file).collect();
        OutputTarget::check_distinct(&extracts, &[&self.planet])
    }
}

/// The result of a run for a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RunOutcome {
    /// The region is new.
    Created,
    /// The region has a new change file, and a new extract.
    Updated,
    /// The region already had the data of the planet.
    Unchanged,
    /// The new extract has no objects, or is too small, and was not published.
    Withheld,
    /// The region could not be brought up to date, and is as it was.
    Failed,
}

/// The numbers of objects in a change file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct RegionChanges {
    /// The number of objects that entered the region.
    pub created: u64,
    /// The number of objects that changed.
    pub modified: u64,
    /// The number of objects that left the region.
    pub deleted: u64,
}

/// The result for a region.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RegionReport {
    /// The name.
    pub name: String,
    /// The result of the run for the region.
    pub outcome: RunOutcome,
    /// The sequence number of the region after the run; `None` if it has none.
    pub sequence: Option<i64>,
    /// The time up to which the region has all changes.
    pub timestamp: Option<String>,
    /// The size of the extract in bytes.
    pub bytes: Option<u64>,
    /// The numbers of changes in the new change file; `None` if there is no new change file.
    pub changes: Option<RegionChanges>,
    /// Whether the extract was updated by the changes of the planet, and not cut out of the planet.
    pub followed: bool,
    /// The reason why the region was cut out although the changes of the planet were known.
    pub cut_out: Option<String>,
    /// The cause, if the region was withheld or failed.
    pub cause: Option<String>,
}

/// The result of `regions`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The time up to which the planet has all changes.
    pub timestamp: String,
    /// The result for each region, in the order of [`Options::regions`].
    pub regions: Vec<RegionReport>,
    /// The number of passes over the planet that wrote extracts.
    pub passes: usize,
    /// The number of old change files that were removed.
    pub removed: u64,
}

impl Summary {
    /// Returns the number of regions with an outcome.
    pub fn count(&self, outcome: RunOutcome) -> u64 {
        let regions = self.regions.iter();
        regions.filter(|region| region.outcome == outcome).count() as u64
    }

    /// Whether all regions have the data of the planet.
    pub fn is_complete(&self) -> bool {
        self.count(RunOutcome::Withheld) + self.count(RunOutcome::Failed) == 0
    }
}

/// The facts about the planet.
struct PlanetState {
    /// The time up to which the planet has all changes, in seconds since 1970.
    timestamp: i64,
    identity: DataIdentity,
    header: HeaderBlock,
}

impl PlanetState {
    fn of(path: &Path, ctx: &Context) -> Result<Self> {
        let file = PbfFile::open(path, ctx)?;
        if file.header.has(feature::HISTORY) {
            let cause = "this is a history file, and regions have current data";
            return Err(Error::file(path, cause).advise(Advice::TimeFilter));
        }
        let Some(timestamp) = file.header.replication_timestamp else {
            let cause = "the header does not say up to which time the data has all changes";
            return Err(Error::file(path, cause).advise(Advice::SetTime));
        };
        Ok(Self {
            timestamp,
            identity: DataIdentity::of(&file),
            header: file.header,
        })
    }
}

/// Brings the extracts of all regions up to date with the planet, and writes change files from one state to the next.
///
/// For each region `NAME`, the directory has the extract `NAME.osm.pbf`, its polygon `NAME.poly`, and the directory
/// `NAME-updates`. `NAME-updates` is a replication server: it has `state.txt`, and a change file with its state for
/// each run that found a newer planet. `index.json` and, with the feature `pages`, `index.html` list all regions. The
/// first run makes a region with the sequence number 0.
///
/// An extract has exactly the objects that [`extract`](crate::commands::extract) gives. Applying a change file to the
/// previous extract gives the new one. A change file creates the objects that enter the region, together with all
/// objects that complete them. It deletes the objects that leave the region. A deletion has the version of the deleted
/// object, so that a later change file can create the object again with the same version.
///
/// With [`Options::step`], [`region_changes`](crate::commands::region_changes) makes the change file of a region. The
/// change file is then applied to the region's extract. This is done if the index says that the extract is of the state
/// before the step, and if neither the area nor the strategy changed. All other regions are cut out, in as few passes
/// as possible, and compared with their previous extracts. The results are the same.
///
/// The files of a region are published one after the other: the change file, its state, the extract, and `state.txt`.
/// If a run is killed, the next run continues its work. Two runs for the same directory exclude each other.
///
/// A region that cannot be brought up to date stays as it is, and the others are published.
///
/// # Memory
///
/// The largest of the memory of [`extract::run`](crate::commands::extract::run),
/// [`diff::run`](crate::commands::diff::run) and, with a step,
/// [`region_changes::run`](crate::commands::region_changes::run). With a step, up to [`Context::jobs`] extracts are
/// updated at the same time, each with the memory of [`apply_changes::run`](crate::commands::apply_changes::run) for
/// one job.
///
/// # Errors
///
/// - The planet cannot be opened or read, is damaged, is a history file, or has no time in its header.
/// - There is no region, or two have the same files.
/// - Another run is at work on the directory, or a file in it cannot be written.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    options.check()?;
    let planet = PlanetState::of(&options.planet, ctx)?;
    create_directories(&options.directory)?;
    // The lock lasts until the end of the run.
    let _lock = FileLock::acquire(&options.directory)?;
    let work = WorkDirectory::create(&options.directory)?;
    let index = RegionIndex::read(&options.directory);
    let mut runs = Vec::with_capacity(options.regions.len());
    for region in &options.regions {
        runs.push(RegionRun::new(region, options, &index, &planet, ctx)?);
    }
    let preparation = RegionPreparation {
        options,
        planet: &planet,
        work: &work,
        ctx,
    };
    let passes = preparation.run(&mut runs)?;
    // From here on, the run cannot be cancelled, because a cancelled run would publish only some of the regions.
    let ctx = &Context {
        cancellation: Cancellation::default(),
        max_shrink: None,
        ..ctx.clone()
    };
    runs.iter_mut().for_each(|run| run.publish(ctx));
    let mut removed = 0;
    for run in &runs {
        if let (Some(days), Ok(chain)) = (options.keep_days, &run.chain) {
            removed += chain.remove_old_changes(&run.layout, days);
        }
    }
    let records = runs.iter().map(|run| run.new_record(options, &planet));
    let records = records.collect::<Result<_>>()?;
    let index = RegionIndex::new(&options.planet, planet.timestamp, records);
    index.write(&options.directory, ctx)?;
    #[cfg(feature = "pages")]
    page::write(&index, &options.regions, &options.directory, ctx)?;
    Ok(Summary {
        timestamp: format_timestamp(planet.timestamp),
        regions: runs.iter().map(RegionRun::report).collect(),
        passes,
        removed,
    })
}

/// The hidden directory for files that are not published yet.
struct WorkDirectory {
    path: PathBuf,
    /// The directory of the files, within `path`. It is removed even if a signal ends the program. `None` only while
    /// the value is dropped.
    scratch: Option<ScratchDirectory>,
}

impl WorkDirectory {
    /// Creates the directory. Removes the files that a killed run has left.
    fn create(directory: &Path) -> Result<Self> {
        let path = directory.join(layout::WORK);
        let _ = fs::remove_dir_all(&path);
        create_directories(&path)?;
        let scratch = Some(ScratchDirectory::create(Some(&path))?);
        Ok(Self { path, scratch })
    }

    /// Returns the path of a file with the given name.
    fn file_path(&self, name: String) -> PathBuf {
        let directory = self
            .scratch
            .as_ref()
            .map_or(self.path.as_path(), ScratchDirectory::path);
        directory.join(name)
    }
}

impl Drop for WorkDirectory {
    fn drop(&mut self) {
        self.scratch = None;
        let _ = fs::remove_dir(&self.path);
    }
}
