//! `export`: writes the objects of a file as features, with geometries.
//!
//! Nodes become points, ways become lines or areas, and multipolygon and boundary relations become areas. Relations are
//! read first, for the ids of their member ways. Nodes and ways are then read once, and relations a second time, when
//! the nodes of their ways are known.

mod builder;
mod config;
mod feature_buffer;
mod members;
mod problem;
#[cfg(feature = "parquet")]
mod raw;
mod rules;
mod sink;
#[cfg(feature = "parquet")]
mod tables;
mod worker;

use crate::area::WayStore;
use crate::engine::IndexType;
use crate::engine::input;
use crate::engine::way_locations::{LocateOptions, NodeParts, WayLocations, WayLocator};
use crate::error::{Error, Result};
use crate::file::{BlobPlan, PbfFile, PlanNeeds};
use crate::formats::FeatureOptions;
#[cfg(feature = "parquet")]
use crate::formats::{GeoParquetOptions, PageCompression};
use crate::index::LocationStore;
use crate::io::OutputTarget;
use crate::osm::{ObjectExpression, ObjectFilter, ObjectKind};
use crate::pbf::{BlobEntry, BlobFlags, feature};
use crate::runtime::{ChunkQueue, Context};
use builder::Totals;
pub use config::{Config, default_config, read_config};
pub use problem::{Problem, ProblemCause, Severity};
pub use rules::{AREA_TAGS, FeatureRules, GeometryTypes, TagRule, WrittenTags};
use serde::Serialize;
use sink::FeatureSink;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use worker::{Found, NodeTask, Shared, Task, Worker};

/// The options of `export`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The input file; `-` is standard input.
    pub input: PathBuf,
    /// The output: a file, or a directory of partitions.
    pub target: OutputTarget,
    /// The format of the features.
    pub format: ExportFormat,
    /// The rules that say which closed ways are areas, and which tags are written.
    pub rules: FeatureRules,
    /// The types of geometries that are written.
    pub geometry_types: GeometryTypes,
    /// Whether features without tags are written.
    pub keep_untagged: bool,
    /// The expressions that select objects; all objects are selected if there are none.
    pub filter: Vec<ObjectExpression>,
    /// The treatment of relations of which a member way or a node of one is not in the file.
    pub incomplete: Incomplete,
    /// Whether the locations in ways are used even if the header does not declare them.
    pub locations_in_ways: bool,
    /// The method of looking up the locations of nodes, if the ways of the input have none.
    pub index_type: IndexType,
    /// The directory for the temporary files of a look-up; `None` for the directory of the output or, if the output is
    /// a stream, the system's temporary directory.
    pub temp_dir: Option<PathBuf>,
    /// The maximum memory in bytes for locations; `None` for four fifths of the available memory.
    pub max_memory: Option<u64>,
}

impl Options {
    /// Options with the given input, output and format, and defaults otherwise: all objects with tags; closed ways are
    /// areas or lines by their tags; incomplete relations are left out.
    pub fn new(input: impl Into<PathBuf>, target: OutputTarget, format: ExportFormat) -> Self {
        Self {
            input: input.into(),
            target,
            format,
            rules: FeatureRules::default(),
            geometry_types: GeometryTypes::default(),
            keep_untagged: false,
            filter: Vec::new(),
            incomplete: Incomplete::default(),
            locations_in_ways: false,
            index_type: IndexType::default(),
            temp_dir: None,
            max_memory: None,
        }
    }
}

setters!(Options {
    rules: FeatureRules,
    geometry_types: GeometryTypes,
    keep_untagged: bool,
    filter: Vec<ObjectExpression>,
    incomplete: Incomplete,
    locations_in_ways: bool,
    index_type: IndexType,
    temp_dir: Option<PathBuf>,
    max_memory: Option<u64>,
});

/// The format of features.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ExportFormat {
    /// Text, in the order of the input.
    Text(FeatureOptions),
    /// GeoParquet, in the order of a Hilbert curve.
    #[cfg(feature = "parquet")]
    GeoParquet(GeoParquetOptions),
    /// Objects without geometries, as tables in Parquet: one for nodes, one for ways, one for relations. Of the other
    /// options, only those of the input and the filter have an effect.
    #[cfg(feature = "parquet")]
    Objects(PageCompression),
}

/// The treatment of incomplete relations: a member way, or a node of one, is not in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Incomplete {
    /// They are left out, and counted.
    #[default]
    LeaveOut,
    /// The rings that close are written.
    Keep,
}

/// The result of `export`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The number of features.
    pub features: u64,
    /// The number of points.
    pub points: u64,
    /// The number of lines.
    pub lines: u64,
    /// The number of areas.
    pub areas: u64,
    /// The length of the output in bytes.
    pub bytes: u64,
    /// The box around all features in degrees: left, bottom, right, top; `None` without features.
    pub bbox: Option<[f64; 4]>,
    /// The sum of the areas of all polygons in square degrees.
    pub square_degrees: f64,
    /// The number of objects that were left out because of an error, by its kind.
    pub errors: BTreeMap<&'static str, u64>,
    /// The number of relations of which a member way, or a node of one, is not in the file.
    pub incomplete: u64,
    /// The number of mistakes in areas that have no effect, by their kind.
    pub warnings: BTreeMap<&'static str, u64>,
    /// The method of looking up locations; `None` if no node had to be looked up.
    pub index_type: Option<IndexType>,
}

impl Eq for Summary {}

/// Receives problems with objects.
pub type Report<'r> = dyn FnMut(&Problem) -> Result<()> + 'r;

/// Writes the objects of a file of current data as features.
///
/// Features come in the order nodes, ways, relations, and of each kind in the order of the file. If a way becomes a
/// line and an area, the line comes first. `report` gets each problem with an object, in the same order; if it fails,
/// so does the command.
///
/// # Memory
///
/// 32 MB, 20 MB per job, 216 bytes per blob, about 5 bytes for each node of a member way of an area (10 bytes with
/// `report`), 8 bytes for each such way, and, unless the ways have locations, what
/// [`add_locations_to_ways`](super::add_locations_to_ways::run) takes for locations.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, its file system
///   has too little space, or it cannot be written ([details](crate::commands#errors)).
/// - The input is a history file.
/// - The chosen method of looking up locations takes more than [`Options::max_memory`], or its temporary files take
///   more than the free space in their directory.
/// - `report` fails.
pub fn run<'r>(
    options: &Options,
    report: Option<&'r mut Report<'r>>,
    ctx: &Context,
) -> Result<Summary> {
    let file = input::open(&options.input, ctx)?;
    #[cfg(feature = "parquet")]
    if let ExportFormat::Objects(compression) = options.format {
        let plan = BlobPlan::open(&file, PlanNeeds::Ranges, ctx)?;
        return raw::write(&file, &plan, options, compression, ctx);
    }
    let (sink, form) = FeatureSink::open(options)?;
    let has_locations = options.locations_in_ways || file.header.has(feature::LOCATIONS);
    let plan = match has_locations {
        true => BlobPlan::of_kinds(&file, ctx)?,
        false => BlobPlan::open(&file, PlanNeeds::Ranges, ctx)?,
    };
    plan.check_current(&file, ctx)?;
    if file.header.has(feature::HISTORY) || plan.any(BlobFlags::DELETED) {
        let cause = "this is a history file, and features are made of one version of each object; \
                     run `pbfhogg time-filter` first";
        return Err(Error::file(&options.input, cause));
    }
    let filter = ObjectFilter::new(options.filter.iter().cloned());
    let mut export = Export {
        has_locations,
        file: &file,
        plan: &plan,
        shared: Arc::new(Shared::new(options, form, filter, report.is_some())),
        options,
        sink,
        report,
        totals: Totals::default(),
        index_type: None,
        ctx,
    };
    export.write()?;
    Ok(Summary {
        bytes: export.sink.finish(ctx)?,
        index_type: export.index_type,
        ..export.totals.into_summary()
    })
}

/// The input, the output and the results of a run.
struct Export<'a, 'r> {
    file: &'a PbfFile,
    plan: &'a BlobPlan,
    /// Whether the ways of the file have locations.
    has_locations: bool,
    shared: Arc<Shared>,
    options: &'a Options,
    sink: FeatureSink,
    report: Option<&'r mut Report<'r>>,
    totals: Totals,
    index_type: Option<IndexType>,
    ctx: &'a Context,
}

impl Export<'_, '_> {
    /// Writes all features.
    fn write(&mut self) -> Result<()> {
        let shared = self.shared.clone();
        let (has_ways, has_areas) = (shared.has_ways(), shared.has_areas());
        let looks_up = (has_ways || has_areas) && !self.has_locations;
        self.ctx.expect_phases(
            u64::from(shared.has_points() || looks_up)
                + 2 * u64::from(has_areas)
                + u64::from(has_ways || has_areas),
        );
        let wanted = match has_areas {
            true => members::wanted_ways(self.file, self.plan, &shared, self.ctx)?,
            false => Arc::default(),
        };
        let locations = match looks_up {
            true => Some(self.locate()?),
            false => {
                self.nodes(self.of_kind(ObjectKind::Node), None)?;
                None
            }
        };
        if !has_ways && wanted.set().is_empty() {
            return Ok(());
        }
        let mut ways = WayStore::new(wanted.clone(), shared.reports);
        let task = Task::Ways(wanted, locations.map(Arc::new));
        self.pass("ways", self.of_kind(ObjectKind::Way), task, |found| {
            if let Found::Ways(batch) = found {
                ways.add(batch);
            }
        })?;
        match has_areas {
            true => {
                let relations = self.of_kind(ObjectKind::Relation);
                self.pass("areas", relations, Task::Relations(Arc::new(ways)), |_| ())
            }
            false => Ok(()),
        }
    }

    /// The blobs with objects of a kind.
    fn of_kind(&self, kind: ObjectKind) -> Vec<BlobEntry> {
        let entries = self.plan.entries.iter();
        let found = entries.filter(|entry| entry.kinds.contains(kind));
        found.copied().collect()
    }

    /// Writes the points, and reads the locations of all nodes.
    fn locate(&mut self) -> Result<WayLocations> {
        let options = self.options;
        let directory = options.temp_dir.clone();
        let locate = LocateOptions {
            index_type: options.index_type,
            temp_dir: directory.unwrap_or_else(|| options.target.scratch_directory()),
            max_memory: options.max_memory,
            ranges: None,
        };
        let parts = NodeParts::of(&self.plan.entries);
        let locator = WayLocator::new(self.file, self.plan, &parts, &locate, self.ctx)?;
        self.index_type = Some(locator.index_type());
        if !locator.passes_nodes() {
            self.nodes(self.of_kind(ObjectKind::Node), None)?;
        }
        locator.locate(|blobs, store| self.nodes(blobs.to_vec(), Some(store)))
    }

    /// Writes the points of some blobs, and adds the locations of all of their nodes to `store`.
    fn nodes(&mut self, blobs: Vec<BlobEntry>, store: Option<&mut LocationStore>) -> Result<()> {
        let task = NodeTask {
            has_points: self.shared.has_points(),
            has_locations: store.is_some(),
        };
        if !task.has_points && !task.has_locations {
            return Ok(());
        }
        let mut store = store;
        self.pass("nodes", blobs, Task::Nodes(task), |found| {
            if let (Found::Nodes(nodes), Some(store)) = (found, store.as_mut()) {
                store.add(&nodes);
            }
        })
    }

    /// Makes features of some blobs and writes them. `keep` gets what is found besides features and problems.
    fn pass(
        &mut self,
        name: &'static str,
        blobs: Vec<BlobEntry>,
        task: Task,
        mut keep: impl FnMut(Found),
    ) -> Result<()> {
        let phase = self.ctx.phase(
            name,
            blobs.iter().map(|entry| u64::from(entry.frame_len)).sum(),
        );
        let (input, ctx, shared) = (
            self.file.input.clone(),
            self.ctx.clone(),
            self.shared.clone(),
        );
        let init = move || Worker::new(&input, &shared, &ctx);
        let work = move |worker: &mut Worker, entry, chunks: &_| worker.blob(&task, &entry, chunks);
        let mut queue = ChunkQueue::start_with_rest(name, self.ctx.jobs, init, work, Worker::rest)?;
        let mut take = |found| match found {
            Found::Features(chunk) => self.sink.add_text(chunk),
            Found::Problems(problems) => match &mut self.report {
                Some(report) => problems.iter().try_for_each(report),
                None => Ok(()),
            },
            Found::Done(entry, tally) => {
                phase.advance(u64::from(entry.frame_len));
                tally.add_to(&mut self.totals);
                Ok(())
            }
            found @ (Found::Ways(_) | Found::Nodes(_)) => {
                keep(found);
                Ok(())
            }
        };
        for entry in blobs {
            queue.push(entry, &mut take)?;
        }
        queue.drain(&mut take)
    }
}
