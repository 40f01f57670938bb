use super::args::{
    AttributeArg, FormatSpec, GivenRegion, OutputArgs, RunArgs, Stdout, parse_size, region,
};
use super::session::Session;
use super::{CommandAnswer, show};
use crate::commands::extract::{self, ConfigExtract, Extract, Extracted, Strategy, Summary};
use crate::engine::HeaderOption;
use crate::geometry::Shape;
use crate::io::OutputTarget;
use crate::region_file::read_config_for;
use crate::{Context, Disorder, OutputOptions};
use anyhow::{Result, anyhow, bail};
use clap::builder::{PossibleValue, PossibleValuesParser};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Cut out one region, or many in one run
///
/// A region is a box (-b), a polygon of any size from a file (-p: GeoJSON, .poly, or an OSM file with boundary or
/// multipolygon relations or closed ways), or a boundary of the input (-p r62422, --area). A configuration file (-c)
/// lists many regions. The edges belong to the
/// region. All features of a GeoJSON file, or all areas of an OSM file, together form one region. A box without area is
/// an error. A region without data gives an empty file and a warning. A change file that does not say where all of its
/// objects are is an error, too.
///
/// The output has the nodes in the region, the ways that contain one of these nodes, and the relations that have one of
/// these nodes or ways as a member. If ways have locations, nodes that are not in the file lie where the ways say. The
/// strategy adds more: simple adds nothing; complete-ways adds all nodes of the ways, and the parents of the relations;
/// smart also adds all members of multipolygons (see -S).
///
/// The configuration is JSON: {"directory": "out", "extracts": [{"output": "a.osm.pbf", "bbox": [11.3, 48, 11.8,
/// 48.3]}, {"output": "b.osm.pbf", "polygon": {"file_name": "b.geojson"}}]}; "polygon" and "multipolygon" can also hold
/// coordinates as in GeoJSON; {"relation": 62422} and {"area": "Berlin"} are boundaries of the input; {"grid": {"zoom":
/// 10, "bbox": […]}} stands for the tiles that touch a region, with outputs such as 10-545-361.osm.pbf. "strategy" is
/// that of an extract. `pbfhogg regions` keeps such extracts up to date, with change files for each.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg extract -b 11.35,48.05,11.73,48.25 bayern.osm.pbf -o muenchen.osm.pbf
  pbfhogg extract -p berlin.geojson --smart germany.osm.pbf -o berlin.osm.pbf
  pbfhogg extract --area Berlin germany.osm.pbf -o berlin.osm.pbf
  pbfhogg extract -c cities.json -d cities planet.osm.pbf
  pbfhogg extract -b 177,-20,-178,-12 planet.osm.pbf -o fiji.osm.pbf   (across the antimeridian)")]
pub struct Args {
    /// Input file; - is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    #[command(flatten)]
    region: ExtractRegionArgs,
    /// Directory for the outputs that the configuration file names
    #[arg(short, long, value_name = "DIRECTORY", requires = "config")]
    directory: Option<PathBuf>,
    #[command(flatten)]
    strategy: StrategyArgs,
    /// Write the bounding box of the region to the header
    #[arg(long)]
    set_bounds: bool,
    /// Leave out metadata: version, timestamp, changeset, uid, user; comma-separated, repeatable
    #[arg(
        long,
        value_name = "ATTRIBUTE",
        value_delimiter = ',',
        value_enum,
        hide_possible_values = true
    )]
    clean: Vec<AttributeArg>,
    /// Accept a history file: if one version of an object is kept, all its versions are kept
    ///
    /// With this option, a change file is cut, too, as far as it says where its objects are.
    #[arg(short = 'H', long)]
    with_history: bool,
    /// Maximum memory, such as 8G; with many regions, the input is read several times if necessary
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_memory: Option<u64>,
    /// Maximum number of regions in one pass over the input [default: as many as --max-memory allows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_regions_per_pass: Option<u32>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    run: RunArgs,
}

/// The regions to cut out.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct ExtractRegionArgs {
    /// A box: min_lon,min_lat,max_lon,max_lat; it crosses the antimeridian if min_lon is greater than max_lon
    #[arg(short, long, value_name = "BOX", allow_hyphen_values = true)]
    bbox: Option<String>,
    /// A polygon: a file (GeoJSON, .poly, or OSM), or r62422, a multipolygon or boundary of the input
    #[arg(short, long, value_name = "REGION")]
    polygon: Option<PathBuf>,
    /// The boundary of this name in the input
    #[arg(long, value_name = "NAME")]
    area: Option<String>,
    /// A file with many regions and their outputs
    #[arg(short, long, value_name = "FILE", conflicts_with = "output")]
    config: Option<PathBuf>,
}

/// The strategy of an extract.
#[derive(Debug, clap::Args)]
pub struct StrategyArgs {
    /// Strategy: simple, complete-ways or smart
    #[arg(
        short,
        long,
        value_name = "STRATEGY",
        default_value = "complete-ways",
        value_parser = strategy_names(),
        hide_possible_values = true
    )]
    strategy: String,
    /// The same as --strategy simple
    #[arg(long, conflicts_with_all = ["strategy", "smart"])]
    simple: bool,
    /// The same as --strategy smart
    #[arg(long, conflicts_with = "strategy")]
    smart: bool,
    /// Set an option of the strategy; repeatable
    ///
    /// For smart: types=multipolygon,boundary completes relations of these types (types=any: of all types).
    /// complete-partial-relations=PERCENT also completes other relations if at least PERCENT of their members are kept
    /// anyway. tags=EXPRESSION,… restricts both to relations with one of these tags, as in tags=natural=water,landuse.
    ///
    /// For complete-ways: relations=false keeps no relations.
    #[arg(short = 'S', long = "option", value_name = "NAME=VALUE")]
    options: Vec<String>,
}

impl StrategyArgs {
    /// Returns the strategy.
    pub fn strategy(&self) -> Result<Strategy> {
        let name = match (self.simple, self.smart) {
            (true, _) => "simple",
            (false, true) => "smart",
            (false, false) => &self.strategy,
        };
        let mut strategy = Strategy::parse(name).map_err(anyhow::Error::msg)?;
        for option in &self.options {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let set = strategy.set(name, value);
            set.map_err(|cause| anyhow!("-S {option}: {cause}"))?;
        }
        Ok(strategy)
    }
}

/// Returns the parser of the names of strategies.
fn strategy_names() -> PossibleValuesParser {
    PossibleValuesParser::new([
        PossibleValue::new("simple"),
        PossibleValue::new("complete-ways").alias("complete_ways"),
        PossibleValue::new("smart"),
    ])
}

/// Returns the strategy that a configuration names; `None` if it names none.
pub fn configured_strategy(extract: &ConfigExtract) -> Result<Option<Strategy>, String> {
    let strategy = extract.strategy.as_ref().map(|(name, options)| {
        let mut strategy = Strategy::parse(name).map_err(|cause| format!("strategy: {cause}"))?;
        for (name, value) in options {
            let set = strategy.set(name, value);
            set.map_err(|cause| format!("strategy, {name}: {cause}"))?;
        }
        Ok(strategy)
    });
    strategy.transpose()
}

impl Args {
    fn extracts(&self, session: &Session, ctx: &Context) -> Result<Vec<Extract>> {
        let given = GivenRegion {
            bbox: self.region.bbox.as_deref(),
            polygon: self.region.polygon.as_deref(),
            area: self.region.area.as_deref(),
        };
        let shape = region(session, given, &self.input, ctx)?;
        match (shape, &self.region.config) {
            (Some(shape), _) => self.single_extract(session, shape),
            (None, Some(config)) => self.configured_extracts(session, config, ctx),
            (None, None) => bail!("no region was given: use -b, -p, --area or -c"),
        }
    }

    /// Returns the extract of a region that was given on the command line.
    fn single_extract(&self, session: &Session, shape: Shape) -> Result<Vec<Extract>> {
        let OutputOptions {
            target,
            format,
            header,
            ..
        } = self.output.options(session)?;
        Ok(vec![Extract {
            shape,
            output: target,
            format,
            header,
            strategy: None,
        }])
    }

    /// Returns the extracts of a configuration file.
    fn configured_extracts(
        &self,
        session: &Session,
        path: &Path,
        ctx: &Context,
    ) -> Result<Vec<Extract>> {
        let config = read_config_for(path, &self.input, session.conventions.corners, ctx)?;
        let directory = self.directory.clone().or(config.directory);
        let directory = directory.unwrap_or_default();
        let mut extracts = Vec::with_capacity(config.extracts.len());
        for extract in config.extracts {
            if let Some(warning) = &extract.warning {
                let (path, output) = (path.display(), extract.output.display());
                ctx.warn(format!("{path}: extract {output}: {warning}"));
            }
            let about = |error: String| {
                let output = extract.output.display();
                crate::Error::file(path, format!("extract {output}: {error}"))
            };
            let format = extract.output_format.as_deref();
            let format = format.map(|text| FormatSpec::parse(session.conventions, text));
            let format = format.transpose().map_err(about)?;
            if format.as_ref().is_some_and(FormatSpec::has_pbf_options) {
                let cause = "the options of pbf are those of all extracts: give them with -f";
                return Err(about(cause.into()).into());
            }
            let mut header = self.output.write.header(session);
            for (key, value) in &extract.output_header {
                match (key.as_str(), value) {
                    ("generator", None) => {}
                    // A field without a value keeps the value of the input. `HeaderOption::parse` fails for a field
                    // that PBF does not have. The input cannot have such a field either, so the error is ignored.
                    (key, None) => header
                        .set
                        .extend(HeaderOption::parse(&format!("{key}!")).ok()),
                    ("generator", Some(value)) => header.generator = Some(value.clone()),
                    (key, Some(value)) => {
                        let option = HeaderOption::parse(&format!("{key}={value}"));
                        header.set.push(option.map_err(about)?);
                    }
                }
            }
            let output = directory.join(&extract.output);
            let output = self
                .output
                .write
                .output_as(session, Some(&output), format.as_ref())?;
            extracts.push(Extract {
                strategy: configured_strategy(&extract).map_err(about)?,
                shape: extract.shape,
                output: output.target,
                format: output.format,
                header,
            });
        }
        Ok(extracts)
    }
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let mut ctx = args.run.context(session);
    if args.with_history {
        ctx.disorder = Disorder::Accept;
    }
    let strategy = args.strategy.strategy()?;
    let options = extract::Options {
        input: args.input.clone(),
        extracts: args.extracts(session, &ctx)?,
        strategy,
        set_bounds: args.set_bounds,
        clean: AttributeArg::all_of(&args.clean),
        write: args
            .output
            .write
            .encoding(session, args.output.output.as_deref())?,
        max_memory: args.max_memory,
        refuses_empty: false,
        accepts_changes: args.with_history || session.conventions.filters_changes_as_data,
        antimeridian: session.conventions.antimeridian,
        max_regions_per_pass: args.max_regions_per_pass.map(|most| most as usize),
    };
    let summary = extract::run(&options, &ctx)?;
    let mut outputs = options.extracts.iter().map(|extract| &extract.output);
    let stdout = Stdout::free_if(!outputs.any(OutputTarget::is_stream));
    session.report(&args.run, &ctx, &summary, stdout, || report(&summary))
}

fn report(summary: &Summary) -> String {
    let mut out = String::new();
    for Extracted { output, kept } in &summary.extracts {
        let _ = writeln!(
            out,
            "{}: {}",
            output.display(),
            show::objects_and_size(&kept.written)
        );
    }
    if summary.extracts.len() > 1 || summary.passes > 1 {
        let regions = show::counted(summary.extracts.len() as u64, "region");
        let bytes = summary.extracts.iter().map(|one| one.kept.written.bytes);
        let _ = writeln!(
            out,
            "{regions}, {}; the input was read {}",
            show::bytes(bytes.sum()),
            match summary.passes {
                1 => "once".into(),
                passes => format!("{passes} times"),
            },
        );
    }
    out
}
