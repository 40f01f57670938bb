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
mod feature_buffer;
mod late_areas;
mod left_out;
mod line_relations;
mod maker;
mod object_geometries;
mod problem;
#[cfg(feature = "parquet")]
mod raw;
mod rules;
mod selection;
mod shared;
mod sink;
#[cfg(feature = "parquet")]
mod tables;
mod tally;

use super::repeated_keys::warn_of_repeated_keys;
use crate::engine::IndexType;
use crate::engine::geometry_pass::{GeometryPass, StoredLocations, Visits};
use crate::engine::input;
#[cfg(feature = "parquet")]
use crate::engine::repeats;
use crate::engine::way_locations::LocateOptions;
use crate::error::Result;
use crate::file::PbfFile;
#[cfg(feature = "parquet")]
use crate::file::{BlobPlan, PlanNeeds};
pub use crate::formats::{
    Attribute, Attributes, FeatureFormat, FeatureOptions, GeometryTypes, TagColumn, UniqueId,
};
#[cfg(feature = "parquet")]
pub use crate::formats::{
    ColumnType, DerivedColumns, GeoParquetOptions, GeoParquetVersion, MAX_FILE_LEN,
    ObjectTableOptions, PageCompression, PartitionKey, Theme, ThemeColumn,
};
use crate::geometry::{Antimeridian, Shape};
use crate::io::OutputTarget;
use crate::osm::{KindSet, ObjectExpression, ObjectFilter, ObjectKind};
use crate::runtime::Context;
pub(crate) use area_problems::area_problems;
pub use batches::batches;
use builder::{Builder, ExportPart};
pub use config::{Config, default_config, read_config};
use feature_buffer::FeatureForm;
pub(crate) use left_out::{list_of_problems, warn_of_left_out};
pub use line_relations::LINE_RELATIONS;
pub use maker::{FeatureMaker, FeatureView};
pub(crate) use object_geometries::ObjectGeometries;
pub use problem::{Problem, ProblemCause, Severity};
pub use rules::{AREA_TAGS, FeatureRules, TagRule, WrittenTags};
use selection::may_select;
use serde::Serialize;
use shared::Shared;
use sink::FeatureSink;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tally::Totals;

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
        /// The rules that decide which closed ways are areas, and which tags are written.
        rules: FeatureRules,
        /// The types of geometries that are written.
        geometry_types: GeometryTypes,
        /// The values of the tag `type` of relations that become lines. The default is [`LINE_RELATIONS`] for tables,
        /// and none for text. The member ways are joined in their order; platforms and stops are left out. A relation
        /// with missing ways becomes the lines of its remaining ways.
        line_relations: Vec<String>,
        /// Whether features without tags are written.
        keep_untagged: bool,
        /// The kinds of objects from which features are made.
        kinds: KindSet,
        /// The expressions that select objects; all objects are selected if there are none.
        filter: Vec<ObjectExpression>,
        /// The region that selects features. A feature is written if its geometry shares a point with the region. A
        /// geometry that crosses the antimeridian is cut there before it is judged, whatever [`Options::antimeridian`]
        /// says. `None` writes all features.
        region: Option<Shape>,
        /// The region at whose edges geometries are cut; `None` for no cuts.
        clip: Option<Shape>,
        /// How to treat lines and areas that cross the antimeridian.
        antimeridian: Antimeridian,
        /// The keys of the tags that are written; `None` for all tags that the rules allow. An object that has only
        /// tags with other keys becomes a feature without tags.
        tag_keys: Option<Vec<String>>,
        /// How to treat relations with a member way, or a node of a member way, that is not in the file.
        incomplete: Incomplete,
        /// Whether the locations in ways are taken even if the header does not declare them. Nodes are looked up for
        /// ways that lack a location.
        locations_in_ways: bool,
        /// Whether no node is looked up, so that a location that a way lacks is unknown even if its node is in the
        /// file.
        only_locations_in_ways: bool,
        /// The method used to look up node locations. It has no effect if all ways of the input have locations.
        index_type: IndexType,
        /// The directory for the temporary files of a look-up; `None` for the directory of the output or, if the output
        /// is a stream, the system's temporary directory.
        temp_dir: Option<PathBuf>,
        /// The maximum memory in bytes for locations; `None` for four fifths of the available memory.
        max_memory: Option<u64>,
        /// Whether text has all tags of an object, even if several have the same key, as osmium writes them. Otherwise,
        /// and in tables, an object has the first tag with a key only.
        keeps_repeated_keys: bool,
        /// Whether text output has areas after all points and lines. Areas are then in the order in which a single pass
        /// over the ways of a sorted file completes the areas. Otherwise areas are in the order of the input.
        areas_last: bool,
        /// Whether to warn, and to say why, if there is no feature.
        warns_of_nothing: bool,
    }
}

impl Options {
    /// Creates options with the given input, output and format, and defaults otherwise. All objects with tags are
    /// written, closed ways are areas or lines depending on their tags, and incomplete relations are left out.
    pub fn new(input: impl Into<PathBuf>, target: OutputTarget, format: ExportFormat) -> Self {
        let line_relations = match format {
            ExportFormat::Text(_) => Vec::new(),
            #[cfg(feature = "parquet")]
            _ => LINE_RELATIONS.map(str::to_owned).into(),
        };
        Self {
            input: input.into(),
            target,
            format,
            rules: FeatureRules::default(),
            geometry_types: GeometryTypes::default(),
            line_relations,
            keep_untagged: false,
            kinds: KindSet::ALL,
            filter: Vec::new(),
            region: None,
            clip: None,
            antimeridian: Antimeridian::default(),
            tag_keys: None,
            incomplete: Incomplete::default(),
            locations_in_ways: false,
            only_locations_in_ways: false,
            index_type: IndexType::default(),
            temp_dir: None,
            max_memory: None,
            keeps_repeated_keys: false,
            areas_last: false,
            warns_of_nothing: true,
        }
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
    /// input, the target, the kinds and the filter have an effect.
    #[cfg(feature = "parquet")]
    Objects(ObjectTableOptions),
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
/// becomes a line and an area, the line comes first. The location of a node of a way is that of the node, or, if the
/// node is not in the file, the one that the way stores. If the header declares that ways store locations, nodes are
/// looked up only for ways that lack one. Calls `report` with each problem of an object, in the order of the
/// input. If `report` fails, so does the command.
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
    if let ExportFormat::Objects(tables) = options.format {
        let plan = BlobPlan::open(&file, PlanNeeds::Ranges, ctx)?;
        return repeats::count(&file, &plan, ctx, |ctx| {
            raw::write(&file, &plan, options, tables, ctx)
        });
    }
    let (mut sink, form) = FeatureSink::open(options, ctx)?;
    let (reports, mut report) = (report.is_some(), report);
    let summary = visit(&file, options, form, reports, ctx, |found| match found {
        ExportPart::Features(chunk) => sink.add_text(chunk),
        ExportPart::Problems(problems) => match &mut report {
            Some(report) => problems.iter().try_for_each(report),
            None => Ok(()),
        },
        ExportPart::Made(_) | ExportPart::Tally(_) => Ok(()),
    })?;
    let bytes = sink.finish(ctx)?;
    warn_of_repeated_keys(summary.repeated_keys, ctx);
    if options.warns_of_nothing {
        left_out::warn_of_nothing(options, &summary, &file, ctx)?;
    }
    ctx.stats.bytes_written.add(bytes);
    Ok(Summary { bytes, ..summary })
}

/// Makes the features of a file. Calls `take` with what the visitors find, except the numbers of features, which are
/// returned.
fn visit(
    file: &PbfFile,
    options: &Options,
    form: FeatureForm,
    reports: bool,
    ctx: &Context,
    mut take: impl FnMut(ExportPart) -> Result<()>,
) -> Result<Summary> {
    let filter = filter(options, &form);
    let (visits, relations) = visits(options, &form, &filter, reports);
    let directory = options.temp_dir.clone();
    let locate = LocateOptions {
        index_type: options.index_type,
        temp_dir: directory.unwrap_or_else(|| options.target.scratch_directory()),
        max_memory: options.max_memory,
        ranges: None,
    };
    let pass = GeometryPass::open(file, visits, stored_locations(options), locate, ctx)?;
    let names = form.theme_names();
    let shared = Shared::new(options, form, filter, relations, reports);
    let shared = Arc::new(shared);
    let mut totals = Totals::default();
    let index_type = pass.run(
        {
            let shared = shared.clone();
            move |block| shared.selected_areas(block)
        },
        move || Builder::new(&shared),
        |found| match found {
            ExportPart::Tally(tally) => {
                tally.add_to(&mut totals);
                Ok(())
            }
            found => take(found),
        },
    )?;
    totals.oversized().warn(ctx);
    Ok(Summary {
        index_type,
        ..totals.into_summary(names.iter().map(String::as_str))
    })
}

/// Returns the use of the locations in ways.
const fn stored_locations(options: &Options) -> StoredLocations {
    if options.only_locations_in_ways {
        StoredLocations::Only
    } else if options.locations_in_ways {
        StoredLocations::Taken
    } else {
        StoredLocations::AsDeclared
    }
}

/// Returns the filter of the objects that become features.
fn filter(options: &Options, form: &FeatureForm) -> ObjectFilter {
    let expressions = match form.expressions() {
        // Without a filter of the user, only objects that belong to a theme are read.
        Some(of_themes) if options.filter.is_empty() => of_themes,
        _ => options.filter.clone(),
    };
    ObjectFilter::new(expressions)
}

/// Returns which objects are visited, and whether relations become features. Relations may also be visited for the
/// boundaries that columns need.
fn visits(
    options: &Options,
    form: &FeatureForm,
    filter: &ObjectFilter,
    reports: bool,
) -> (Visits, bool) {
    let types = options.geometry_types;
    let selects = |kind| options.kinds.contains(kind) && may_select(filter, kind);
    let has_lines = types.lines && !options.line_relations.is_empty();
    let relations = (types.areas || has_lines) && selects(ObjectKind::Relation);
    let visits = Visits {
        nodes: types.points && selects(ObjectKind::Node),
        untagged_nodes: options.keep_untagged,
        // A filter with conditions on metadata judges an object again after some of its tags were left out.
        info: form.needs_info() || filter.needs_metadata(),
        ways: (types.lines || types.areas) && selects(ObjectKind::Way),
        areas: relations || form.needs_boundaries(),
        member_node_ids: reports,
    };
    (visits, relations)
}
