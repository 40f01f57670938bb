//! `coastline`: makes polygons of land and water from the coastlines of a file.

mod changes;
mod guard;
mod layers;
mod pieces;

pub use crate::coast::{
    CLOSE_DISTANCE_M, CoastOptions, CoastProblem, CoastProblemKind, ProblemPlace, RegionSource,
    Surface,
};
pub use crate::geometry::Projection;
pub use guard::CoastLoss;

use crate::coast::{Coast, Grid, read_coast};
use crate::error::{Error, Result};
use crate::formats::FeatureOptions;
use crate::io::{OutputDirectory, OutputTarget, StreamOutput, commit_together};
use crate::runtime::{Context, Pass};
use guard::LandCensus;
use layers::{LayerPlace, LayerSpec, LayerWriter};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The name of the file, in an output directory, with the summary and the land of the coast.
const SUMMARY: &str = "coastline.json";
/// The name of the file, in an output directory, with the list of the ways of the coast.
const WAYS: &str = "ways.txt";
/// The distance by which cells overlap, in 1e-7 degree: about 11 m at the equator.
const OVERLAP_E7: u32 = 1_000;

/// A layer of a coast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CoastLayer {
    /// The coastlines, joined.
    Lines,
    /// The polygons of land.
    Land,
    /// The polygons of water.
    Water,
    /// The problems of the coast, as points and lines.
    Errors,
}

/// The format of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayerFormat {
    /// A Shapefile, which is five files. It cannot have the layer of errors.
    Shapefile,
    /// Text, in degrees.
    Features(FeatureOptions),
    /// GeoParquet, in degrees.
    #[cfg(feature = "parquet")]
    GeoParquet,
}

/// A file of a layer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LayerFile {
    /// The layer.
    pub layer: CoastLayer,
    /// The target. For a Shapefile, this is the target of the file that ends in `.shp`.
    pub target: OutputTarget,
    /// The format.
    pub format: LayerFormat,
}

impl LayerFile {
    /// Creates a file of a layer.
    pub const fn new(layer: CoastLayer, target: OutputTarget, format: LayerFormat) -> Self {
        Self {
            layer,
            target,
            format,
        }
    }
}

options! {
    /// The options of `coastline`.
    pub struct Options {
        /// The input, the region, and how the coast is read.
        pub coast: CoastOptions,
    }
    /// By default, there are no outputs.
    new(coast: CoastOptions);
    setters {
        /// The directory for all layers.
        directory: Option<PathBuf>,
        /// Whether a directory of an earlier run is replaced.
        overwrite: bool,
        /// Files of single layers.
        files: Vec<LayerFile>,
        /// The size of the cells into which polygons are divided, in 1e-7 degree; `None` for whole polygons.
        cell_e7: Option<u32>,
        /// The coordinate reference systems of Shapefiles. A directory has its Shapefiles in all of these systems. The
        /// Shapefile of a single layer has the first of them.
        projections: Vec<Projection> = vec![Projection::Degrees, Projection::WebMercator],
        /// A directory or a file of an earlier run. The land of the coast is compared with the land in it.
        against: Option<PathBuf>,
        /// The share of the land of a cell, and of the rings of the coast, that may be lost, from 0 to 1.
        max_loss: f64 = 0.01,
        /// Change files. If the directory has the output of an earlier run and the changes do not concern the coast,
        /// nothing is written.
        changes: Vec<PathBuf>,
    }
}

impl Options {
    /// Returns the files of all layers.
    fn layer_specs(&self) -> Result<Vec<LayerSpec>> {
        let is_split = self.cell_e7.is_some();
        let mut specs = match &self.directory {
            Some(_) => LayerSpec::all_for_directory(is_split, &self.projections),
            None => Vec::new(),
        };
        for file in &self.files {
            let is_shapefile = file.format == LayerFormat::Shapefile;
            if is_shapefile && file.layer == CoastLayer::Errors {
                let cause = "errors are points and lines, which a Shapefile cannot have together: name it .geojson";
                return Err(Error::Usage(format!(
                    "{}: {cause}",
                    file.target.path().display()
                )));
            }
            let projection = self.projections.first().copied();
            specs.push(LayerSpec {
                layer: file.layer,
                is_split: is_split && matches!(file.layer, CoastLayer::Land | CoastLayer::Water),
                projection: projection
                    .filter(|_| is_shapefile)
                    .unwrap_or(Projection::Degrees),
                format: file.format.clone(),
                place: LayerPlace::Target(file.target.clone()),
            });
        }
        if specs.is_empty() {
            return Err(Error::Usage("no output was given".into()));
        }
        Ok(specs)
    }
}

/// The result of `coastline`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Whether the outputs were written. The value is `false` if the changes do not concern the coast, or if `losses`
    /// is not empty.
    pub is_written: bool,
    /// The number of lines.
    pub lines: u64,
    /// The number of closed rings.
    pub rings: u64,
    /// The number of whole polygons of land.
    pub land: u64,
    /// The numbers of problems by kind.
    pub problems: BTreeMap<CoastProblemKind, u64>,
    /// The source of the region; `None` if the input was not read.
    pub region: Option<RegionSource>,
    /// The surface that was assumed inside of an outer border of the region that no coastline meets. If there are
    /// several such borders, the value is that of the first one. `None` if coastlines meet all outer borders, or if the
    /// region is the whole world.
    pub inside: Option<Surface>,
    /// The land and the rings that are lost in comparison with an earlier coast.
    pub losses: Vec<CoastLoss>,
    /// The number of rows of all files.
    pub features: u64,
    /// The total size of the files in bytes.
    pub bytes: u64,
}

impl Summary {
    fn of(coast: &Coast) -> Self {
        let mut problems = BTreeMap::new();
        for problem in &coast.problems {
            *problems.entry(problem.kind).or_default() += 1;
        }
        Self {
            lines: coast.lines.len() as u64,
            rings: coast.rings,
            land: coast.land.len() as u64,
            problems,
            region: Some(coast.source),
            inside: coast.inside,
            ..Self::default()
        }
    }
}

/// Makes polygons of land and water from the coastlines of a file.
///
/// Reads one file. Writes single layers to files, or all layers to a directory. Together, land and water cover exactly
/// the region or, if they are divided into cells, exactly the part of the region in each cell. Calls `report` with each
/// problem.
///
/// # Memory
///
/// The [base memory](crate::commands#memory), about 60 bytes for each point of the coast, and the output of some cells.
///
/// # Errors
///
/// - The input cannot be opened or read, or is damaged; an output exists and may not be overwritten, or cannot be
///   written ([details](crate::commands#errors)).
/// - There is no output, or a layer cannot have its format.
/// - The file of an earlier run cannot be read.
/// - A Shapefile would have more than 4 GiB.
///
/// # Examples
///
/// ```no_run
/// use pbfhogg::Context;
/// use pbfhogg::commands::coastline::{self, CoastOptions, Options};
///
/// let options = Options::new(CoastOptions::new("malta.osm.pbf"))
///     .directory(Some("coast".into()))
///     .cell_e7(Some(10_000_000));
/// let summary = coastline::run(&options, &mut |problem| println!("{problem}"), &Context::default())?;
/// assert!(summary.is_written);
/// # Ok::<(), pbfhogg::Error>(())
/// ```
pub fn run(
    options: &Options,
    report: &mut dyn FnMut(&CoastProblem),
    ctx: &Context,
) -> Result<Summary> {
    let specs = options.layer_specs()?;
    let targets: Vec<OutputTarget> = specs.iter().flat_map(LayerSpec::targets).collect();
    targets.iter().try_for_each(OutputTarget::check)?;
    OutputTarget::check_distinct(&targets, &[options.coast.input.as_path()])?;
    let is_stream = options.coast.input.as_os_str() == "-";
    if !options.changes.is_empty() && is_stream {
        let cause = "changes need an input that can be read twice, and standard input cannot";
        return Err(Error::Usage(cause.into()));
    }
    let old = options
        .against
        .as_deref()
        .map(LandCensus::read)
        .transpose()?;
    if !options.changes.is_empty() && !changes::may_change_coast(options, ctx)? {
        return Ok(Summary::default());
    }
    let coast = read_coast(&options.coast, ctx)?;
    coast.problems.iter().for_each(report);
    let mut summary = Summary::of(&coast);
    let census = LandCensus::of(&coast);
    if let Some(old) = old {
        summary.losses = old.losses(&census, options.max_loss);
        if !summary.losses.is_empty() {
            return Ok(summary);
        }
    }
    write_layers(&coast, options, &specs, &census, &mut summary, ctx)?;
    Ok(summary)
}

/// Writes all files.
fn write_layers(
    coast: &Coast,
    options: &Options,
    specs: &[LayerSpec],
    census: &LandCensus,
    summary: &mut Summary,
    ctx: &Context,
) -> Result<()> {
    let path = options.directory.as_deref();
    let begin = |path: &Path| {
        OutputDirectory::create(path, options.overwrite, layers::is_from_earlier_run, ctx)
    };
    let mut directory = path.map(begin).transpose()?;
    let writers = specs.iter().map(|spec| spec.open(&mut directory, ctx));
    let mut writers: Vec<LayerWriter> = writers.collect::<Result<_>>()?;
    let grid = Grid {
        cell_e7: options.cell_e7.unwrap_or(u32::MAX),
        overlap_e7: OVERLAP_E7,
    };
    ctx.expect_phases(1);
    Pass::new("polygons", ctx)
        .with_memory_factor(6)
        .run_stream(
            0,
            pieces::pieces(coast, grid, specs).map(Ok),
            || (),
            |(), piece| piece.encode(specs),
            |encoded| {
                for (index, rows, encoded) in encoded {
                    summary.features += rows;
                    writers[index].add(encoded)?;
                }
                Ok(())
            },
        )?;
    let (mut own, mut others): (Vec<StreamOutput>, Vec<StreamOutput>) = (Vec::new(), Vec::new());
    for (spec, writer) in specs.iter().zip(writers) {
        let files = writer.finish()?;
        summary.bytes += files.iter().map(StreamOutput::len).sum::<u64>();
        match spec.place {
            LayerPlace::Directory(_) => own.extend(files),
            LayerPlace::Target(_) => others.extend(files),
        }
    }
    summary.is_written = true;
    if let Some(directory) = &mut directory {
        own.extend(write_summary_and_ways(coast, census, summary, directory)?);
    }
    for file in own {
        file.commit_unflushed()?;
    }
    // The files of single layers are complete before the new directory takes the place of the old one.
    commit_together(others)?;
    directory.map_or(Ok(()), |directory| directory.complete(ctx))
}

/// A summary with the land of a coast.
#[derive(Serialize)]
struct StoredSummary<'s> {
    #[serde(flatten)]
    summary: &'s Summary,
    census: &'s LandCensus,
}

/// Writes the summary and the list of ways, which later runs read, to the directory.
fn write_summary_and_ways(
    coast: &Coast,
    census: &LandCensus,
    summary: &Summary,
    directory: &mut OutputDirectory,
) -> Result<[StreamOutput; 2]> {
    let mut ways: Vec<i64> = coast
        .lines
        .iter()
        .flat_map(|line| &line.ways)
        .copied()
        .collect();
    ways.sort_unstable();
    ways.dedup();
    let ways: String = ways.iter().map(|way| format!("{way}\n")).collect();
    let stored = serde_json::to_string_pretty(&StoredSummary { summary, census });
    let stored = stored.map_err(Error::internal)? + "\n";
    let mut file = |name: &str, text: &str| {
        let mut output = StreamOutput::new(directory.open(Path::new(name))?);
        output.write(text.as_bytes())?;
        Ok(output)
    };
    Ok([file(SUMMARY, &stored)?, file(WAYS, &ways)?])
}
