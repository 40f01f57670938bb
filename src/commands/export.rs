//! `export`: writes the objects of a file as features, with geometries.
//!
//! Nodes become points, ways become lines or areas, multipolygon and boundary relations become areas, and routes become
//! lines.

mod area_problems;
mod batches;
#[cfg(feature = "parquet")]
mod boundaries;
mod builder;
mod config;
mod cuts;
mod feature_pass;
mod feature_writer;
mod late_areas;
mod left_out;
mod line_relations;
mod lookup;
mod maker;
mod object_geometries;
mod output;
#[cfg(feature = "parquet")]
mod parts;
#[cfg(feature = "parquet")]
mod raw;
mod rules;
mod selection;
mod shared;
#[cfg(feature = "parquet")]
mod tables;
mod tally;
mod text;

use super::repeated_keys::warn_of_repeated_keys;
use crate::engine::IndexType;
pub use crate::engine::geometry_pass::LocationsInWays;
pub(crate) use crate::engine::geometry_problem::list_of_problems;
pub use crate::engine::geometry_problem::{Problem, ProblemCause, Severity};
use crate::engine::input;
pub use crate::engine::object_geometry::Incomplete;
use crate::engine::way_locations::LocateOptions;
use crate::error::Result;
pub use crate::formats::{
    Attribute, Attributes, FeatureFormat, FeatureOptions, GeometryTypes, TagColumn, UniqueId,
};
#[cfg(feature = "parquet")]
pub use crate::formats::{
    ColumnType, DerivedColumns, GeoParquetOptions, GeoParquetVersion, MAX_FILE_LEN,
    ObjectTableOptions, PageCompression, PartitionKey, Theme, ThemeColumn,
};
use crate::io::OutputTarget;
use crate::runtime::Context;
pub(crate) use area_problems::area_problems;
pub use batches::batches;
pub use config::{Config, default_config, read_config};
pub(crate) use left_out::warn_of_left_out;
pub use line_relations::LINE_RELATIONS;
pub use lookup::LookupOptions;
pub use maker::{FeatureMaker, FeatureView};
pub(crate) use object_geometries::ObjectGeometries;
pub use rules::{AREA_TAGS, FeatureRules, TagRule, WrittenTags};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

options! {
    /// The options of `export`.
    #[derive(Debug, Clone)]
    #[non_exhaustive]
    pub struct Options {
        /// The input file; `-` is standard input.
        pub input: PathBuf,
        /// The output: a file, or a directory if the format writes several files.
        pub target: OutputTarget,
        /// The format of the features.
        pub format: ExportFormat,
    }
    setters {
        /// The rules for features: which objects become features, and which geometries and tags the features have. By
        /// default, the relations in [`LINE_RELATIONS`] are lines in the table formats, and are left out of the text
        /// formats.
        rules: FeatureRules,
        /// The options for looking up the locations of nodes.
        lookup: LookupOptions,
        /// Whether text output has areas after all points and lines. Areas are then in the order in which a single pass
        /// over the ways of a sorted file completes the areas. Otherwise areas are in the order of the input.
        areas_last: bool,
        /// Whether to warn, and to say why, if there is no feature.
        warns_of_nothing: bool,
    }
}

impl Options {
    /// Creates options with the given input, output and format, and defaults otherwise.
    pub fn new(input: impl Into<PathBuf>, target: OutputTarget, format: ExportFormat) -> Self {
        let rules = FeatureRules::default();
        Self {
            input: input.into(),
            target,
            rules: match format {
                ExportFormat::Text(_) => rules,
                #[cfg(feature = "parquet")]
                _ => rules.with_line_relations(),
            },
            format,
            lookup: LookupOptions::default(),
            areas_last: false,
            warns_of_nothing: true,
        }
    }

    /// Returns the use of the locations in ways, and the options for looking up other locations.
    fn locate_options(&self) -> (LocationsInWays, LocateOptions) {
        self.lookup
            .locate_options(|| self.target.scratch_directory())
    }
}

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
    /// input, the target, the kinds and the filter of the rules, and [`LookupOptions::max_memory`] have an effect.
    #[cfg(feature = "parquet")]
    Objects(ObjectTableOptions),
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
    /// The number of features of each theme. A feature of several themes counts once for each of them, here and in the
    /// numbers of features, points, lines and areas.
    pub themes: BTreeMap<String, u64>,
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
    /// The number of tags that were left out, because an earlier tag of the object has the same key.
    pub repeated_keys: u64,
    /// The method used to look up locations; `None` if no node had to be looked up.
    pub index_type: Option<IndexType>,
}

impl Eq for Summary {}

/// A function that is called with each problem of an object.
pub type Report<'r> = dyn FnMut(&Problem) -> Result<()> + 'r;

/// Writes the objects of a file without history as features.
///
/// The features of text output come in the order nodes, ways, relations, and within each kind in file order. If a way
/// becomes a line and an area, the line comes first. For a node of a way, the location of the node in the file is used.
/// If the file lacks the node, the location that the way stores is used. If the header declares that ways store
/// locations, nodes are looked up only for ways that lack a location. Calls `report` with each problem of an object, in
/// the order of the input. If `report` fails, the command fails.
///
/// # Memory
///
/// 32 MB, 20 MB per job, 384 bytes per blob, about 5 bytes for each node of a member way of an area (10 bytes with
/// `report`), 8 bytes for each member way, 200 MB with [`Options::areas_last`], and, unless all ways have locations,
/// what [`add_locations_to_ways`](super::add_locations_to_ways::run) uses for locations. Tables with the column
/// `country`, or with a column of the type `parents`, also keep the administrative boundaries of the file in memory.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, its file system
///   has too little space, or it cannot be written ([details](crate::commands#errors)).
/// - The input is a history file, or an object occurs twice. Tables of objects ([`ExportFormat::Objects`]) have all
///   versions.
/// - The chosen method of looking up locations needs more memory than [`LookupOptions::max_memory`], or more space for
///   temporary files than is free in their directory.
/// - `report` fails.
pub fn run<'r>(
    options: &Options,
    report: Option<&'r mut Report<'r>>,
    ctx: &Context,
) -> Result<Summary> {
    let file = input::open(&options.input, ctx)?;
    let summary = match &options.format {
        ExportFormat::Text(format) => text::write(&file, options, format, report, ctx)?,
        #[cfg(feature = "parquet")]
        ExportFormat::GeoParquet(format) => tables::write(&file, options, format, report, ctx)?,
        #[cfg(feature = "parquet")]
        ExportFormat::Objects(format) => return raw::write(&file, options, *format, ctx),
    };
    warn_of_repeated_keys(summary.repeated_keys, ctx);
    if options.warns_of_nothing {
        left_out::warn_if_no_features(options, &summary, &file, ctx)?;
    }
    ctx.stats.bytes_written.add(summary.bytes);
    Ok(summary)
}
