//! `export`: writes the objects of a file as features, with geometries.
//!
//! Nodes become points, ways become lines or areas, and multipolygon and boundary relations become areas.

mod builder;
mod config;
mod feature_buffer;
mod late_areas;
mod problem;
#[cfg(feature = "parquet")]
mod raw;
mod rules;
mod selection;
mod sink;
#[cfg(feature = "parquet")]
mod tables;

use crate::engine::IndexType;
use crate::engine::geometry_pass::{GeometryPass, Visits};
use crate::engine::input;
use crate::engine::way_locations::LocateOptions;
use crate::error::Result;
#[cfg(feature = "parquet")]
use crate::file::{BlobPlan, PlanNeeds};
pub use crate::formats::{
    Attribute, Attributes, FeatureFormat, FeatureOptions, TagColumn, UniqueId,
};
#[cfg(feature = "parquet")]
pub use crate::formats::{GeoParquetOptions, GeoParquetVersion, PageCompression};
use crate::io::OutputTarget;
use crate::osm::{ObjectExpression, ObjectFilter, ObjectKind};
use crate::runtime::Context;
use builder::{Builder, ExportPart, Shared, Totals};
pub use config::{Config, default_config, read_config};
pub use problem::{Problem, ProblemCause, Severity};
pub use rules::{AREA_TAGS, FeatureRules, GeometryTypes, TagRule, WrittenTags};
use selection::{may_select, selected_areas};
use serde::Serialize;
use sink::FeatureSink;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The options of `export`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The input file; `-` is standard input.
    pub input: PathBuf,
    /// The output, which is a file or a directory of partitions.
    pub target: OutputTarget,
    /// The format of the features.
    pub format: ExportFormat,
    /// The rules that decide which closed ways are areas, and which tags are written.
    pub rules: FeatureRules,
    /// The types of geometries that are written.
    pub geometry_types: GeometryTypes,
    /// Whether features without tags are written.
    pub keep_untagged: bool,
    /// The expressions that select objects; all objects are selected if there are none.
    pub filter: Vec<ObjectExpression>,
    /// How to treat relations with a member way, or a node of a member way, that is not in the file.
    pub incomplete: Incomplete,
    /// Whether the locations in ways are used even if the header does not declare them.
    pub locations_in_ways: bool,
    /// The method used to look up node locations, if the ways of the input have no locations.
    pub index_type: IndexType,
    /// The directory for the temporary files of a look-up; `None` for the directory of the output or, if the output is
    /// a stream, the system's temporary directory.
    pub temp_dir: Option<PathBuf>,
    /// The maximum memory in bytes for locations; `None` for four fifths of the available memory.
    pub max_memory: Option<u64>,
    /// Whether text output has areas after all points and lines, in the order in which a single pass over the ways of a
    /// sorted file completes the areas. Otherwise areas come in the order of the input.
    pub areas_last: bool,
}

impl Options {
    /// Creates options with the given input, output and format, and defaults otherwise. All objects with tags are
    /// written, closed ways are areas or lines depending on their tags, and incomplete relations are left out.
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
            areas_last: false,
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
    areas_last: bool,
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
    /// Objects without geometries, as Parquet tables of nodes, of ways and of relations. Of the other options, only the
    /// input, the target and the filter have an effect.
    #[cfg(feature = "parquet")]
    Objects(PageCompression),
}

/// How to treat incomplete relations, which are relations with a member way, or a node of a member way, that is not in
/// the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Incomplete {
    /// Incomplete relations are left out and counted.
    #[default]
    LeaveOut,
    /// The closed rings of an incomplete relation are written.
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
    /// The size in bytes of the output.
    pub bytes: u64,
    /// The bounding box of all features in degrees, as left, bottom, right and top; `None` if there are no features.
    pub bbox: Option<[f64; 4]>,
    /// The sum of the areas of all polygons in square degrees.
    pub square_degrees: f64,
    /// The numbers of objects that were left out because of an error, by the kind of the error.
    pub errors: BTreeMap<&'static str, u64>,
    /// The number of relations with a member way, or a node of a member way, that is not in the file.
    pub incomplete: u64,
    /// The numbers of mistakes that do not affect the output, by the kind of mistake. All of these mistakes are in
    /// areas.
    pub warnings: BTreeMap<&'static str, u64>,
    /// The method used to look up locations; `None` if no node had to be looked up.
    pub index_type: Option<IndexType>,
}

impl Eq for Summary {}

/// A function that receives the problems with objects.
pub type Report<'r> = dyn FnMut(&Problem) -> Result<()> + 'r;

/// Writes the objects of a file without history as features.
///
/// Features come in the order nodes, ways, relations, and within each kind in file order. If a way becomes a line and
/// an area, the line comes first. Calls `report` with each problem with an object, in the same order. If `report`
/// fails, so does the command.
///
/// # Memory
///
/// 32 MB, 20 MB per job, 384 bytes per blob, about 5 bytes for each node of a member way of an area (10 bytes with
/// `report`), 8 bytes for each member way, 200 MB with [`Options::areas_last`], and, unless the ways have locations,
/// what [`add_locations_to_ways`](super::add_locations_to_ways::run) uses for locations.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, its file system
///   has too little space, or it cannot be written ([details](crate::commands#errors)).
/// - The input is a history file.
/// - The chosen method of looking up locations needs more memory than [`Options::max_memory`], or more space for
///   temporary files than is free in their directory.
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
    let (mut sink, form) = FeatureSink::open(options, ctx)?;
    let filter = ObjectFilter::new(options.filter.iter().cloned());
    let types = options.geometry_types;
    let visits = Visits {
        nodes: types.points && may_select(&filter, ObjectKind::Node),
        untagged_nodes: options.keep_untagged,
        node_info: form.needs_info(),
        ways: (types.lines || types.areas) && may_select(&filter, ObjectKind::Way),
        areas: types.areas && may_select(&filter, ObjectKind::Relation),
        member_node_ids: report.is_some(),
    };
    let directory = options.temp_dir.clone();
    let locate = LocateOptions {
        index_type: options.index_type,
        temp_dir: directory.unwrap_or_else(|| options.target.scratch_directory()),
        max_memory: options.max_memory,
        ranges: None,
    };
    let pass = GeometryPass::open(&file, visits, options.locations_in_ways, locate, ctx)?;
    let mut report = report;
    let shared = Arc::new(Shared::new(options, form, filter.clone(), report.is_some()));
    let mut totals = Totals::default();
    let index_type = pass.run(
        |block| selected_areas(&filter, block),
        move || Builder::new(&shared),
        |found| match found {
            ExportPart::Features(chunk) => sink.add_text(chunk),
            ExportPart::Problems(problems) => match &mut report {
                Some(report) => problems.iter().try_for_each(report),
                None => Ok(()),
            },
            ExportPart::Tally(tally) => {
                tally.add_to(&mut totals);
                Ok(())
            }
        },
    )?;
    let bytes = sink.finish(ctx)?;
    ctx.stats.bytes_written.add(bytes);
    Ok(Summary {
        bytes,
        index_type,
        ..totals.into_summary()
    })
}
