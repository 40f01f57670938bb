use super::args::{GivenRegion, RunArgs, Stdout, names, region, text_target};
use super::export_format::format_of;
use super::session::Session;
use super::{CommandAnswer, show};
use crate::commands::coastline::{
    self, CLOSE_DISTANCE_M, CoastLayer, CoastOptions, LayerFile, LayerFormat, Options, Projection,
    Summary, Surface,
};
use crate::formats::FeatureOptions;
use crate::runtime::Context;
use anyhow::{Result, bail};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Make polygons of land and water of the coastlines of a file
///
/// Ways with natural=coastline are joined; land is on their left. Gaps are closed. In an extract, the coast ends at the
/// border of the region, which is part of the polygons then. Problems of the data are listed.
///
/// With -o, all layers are written to a directory, as Shapefiles with the names and columns that makers of maps expect:
/// whole land, land and water in cells of a degree, and lines, in EPSG:4326 and EPSG:3857; and errors.geojson.
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("outputs").required(true).multiple(true),
    after_help = "Examples:
  pbfhogg coastline planet.osm.pbf -o coast
  pbfhogg coastline malta.osm.pbf --water water.shp --land land.parquet --errors errors.geojson
  pbfhogg coastline crete.osm.pbf -p crete.poly --split 0.5 --epsg 3857 --water water_polygons.shp
  pbfhogg coastline planet.osm.pbf -o coast -O --against coast --changes 001.osc.gz

Formats, by the name of the file: .shp (Shapefile), .parquet (GeoParquet), .geojson, .geojsonseq,
.csv, .txt (WKT), .pg; text also with .gz, .bz2 or .zst.

Exit status: 1 if --against finds that land is lost; then nothing is written."
)]
pub struct Args {
    /// Input file; - is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Directory for all layers
    #[arg(
        short,
        long,
        group = "outputs",
        value_name = "DIR",
        help_heading = "Common options"
    )]
    output: Option<PathBuf>,
    /// Write the joined coastlines to FILE
    #[arg(long, group = "outputs", value_name = "FILE")]
    lines: Option<PathBuf>,
    /// Write the polygons of land to FILE
    #[arg(long, group = "outputs", value_name = "FILE")]
    land: Option<PathBuf>,
    /// Write the polygons of water to FILE
    #[arg(long, group = "outputs", value_name = "FILE")]
    water: Option<PathBuf>,
    /// Write the problems to FILE, as points and lines
    #[arg(long, group = "outputs", value_name = "FILE")]
    errors: Option<PathBuf>,
    /// Divide land and water into cells of this size in degrees, 0.01 to 180, which overlap by 0.0001 degrees; 0
    /// divides nothing [default: 1 in a directory, else 0]
    #[arg(long, value_name = "DEGREES", value_parser = parse_cell)]
    split: Option<CellSize>,
    /// Coordinate reference system of Shapefiles: 4326 (degrees) or 3857 (Web Mercator) [default: both in a directory,
    /// else 4326]
    #[arg(long, alias = "projection", value_name = "CODE", value_parser = parse_projection)]
    epsg: Option<Projection>,
    /// The region is this box, min_lon,min_lat,max_lon,max_lat [default: the box in the header, else that of the data]
    #[arg(
        short,
        long,
        value_name = "BOX",
        allow_hyphen_values = true,
        conflicts_with = "polygon"
    )]
    bbox: Option<String>,
    /// The region is a polygon: a file (GeoJSON, .poly, OSM), or a relation of the input (r62422)
    #[arg(short, long, value_name = "REGION")]
    polygon: Option<PathBuf>,
    /// Where no coastline meets the border of the region, it is land or water [default: what the file shows]
    #[arg(long, value_name = "SURFACE", value_parser = parse_surface)]
    inside: Option<Surface>,
    /// Close gaps of up to this length in metres; 0 closes none
    #[arg(long, value_name = "METRES", default_value_t = CLOSE_DISTANCE_M, value_parser = parse_distance)]
    close_distance: f64,
    /// Write nothing if the coast has lost land in comparison with OLD: a directory of an earlier run, or a file of
    /// land
    ///
    /// The land in each cell of 10 degrees is compared, and the number of rings. A file is a Shapefile or GeoJSON with
    /// whole polygons.
    #[arg(long, value_name = "OLD")]
    against: Option<PathBuf>,
    /// The share of the land of a cell, and of the rings, that --against lets go, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, requires = "against", value_parser = parse_percent)]
    max_shrink: f64,
    /// Leave the directory as it is if these changes, which the input has, do not concern a coastline
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "output")]
    changes: Vec<PathBuf>,
    /// Replace outputs that exist; a directory only if coastline wrote everything in it
    #[arg(short = 'O', long, help_heading = "Common options")]
    overwrite: bool,
    #[command(flatten)]
    run: RunArgs,
}

/// The size of cells in 1e-7 degree; `None` if land and water are not divided into cells.
#[derive(Debug, Clone, Copy)]
struct CellSize(Option<u32>);

/// The size of cells if the output is a directory and no option gives a size: one degree.
const DEGREE: CellSize = CellSize(Some(10_000_000));

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let ctx = args.run.context(session);
    let options = options(session, args, &ctx)?;
    let mut report = |problem: &coastline::CoastProblem| {
        if !args.run.quiet && (args.run.verbose || problem.kind.is_error()) {
            session.print_to_stderr(&format!("{problem}\n"));
        }
    };
    let summary = coastline::run(&options, &mut report, &ctx)?;
    let is_free = !options.files.iter().any(|file| file.target.is_stream());
    session.report(&args.run, &ctx, &summary, Stdout::free_if(is_free), || {
        summary_text(args, &summary)
    })?;
    if let Some((first, others)) = summary.losses.split_first() {
        let more = match others.len() {
            0 => String::new(),
            count => format!(" (and {} more)", show::number(count as u64)),
        };
        session.print_to_stderr(&format!(
            "{}: error: {first}{more}: nothing was written; --max-shrink sets how much may be lost\n",
            session.conventions.name
        ));
    }
    Ok(CommandAnswer::yes_if(summary.losses.is_empty()))
}

fn options(session: &Session, args: &Args, ctx: &Context) -> Result<Options> {
    let mut coast = CoastOptions::new(&args.input);
    let given = GivenRegion {
        bbox: args.bbox.as_deref(),
        polygon: args.polygon.as_deref(),
        area: None,
    };
    coast.region = region(session, given, &args.input, ctx)?;
    coast.inside = args.inside;
    coast.close_distance_m = args.close_distance;
    if let Some(directory) = &args.output {
        names::directory("-o is a directory of all layers").check_name(session, directory)?;
    }
    let files = layer_files(session, args)?;
    let default = if args.output.is_some() {
        DEGREE
    } else {
        CellSize(None)
    };
    let mut options = Options::new(coast)
        .directory(args.output.clone())
        .overwrite(args.overwrite)
        .files(files)
        .cell_e7(args.split.unwrap_or(default).0)
        .against(args.against.clone())
        .max_loss(args.max_shrink / 100.0)
        .changes(args.changes.clone());
    if let Some(projection) = args.epsg {
        options = options.projections(vec![projection]);
    }
    Ok(options)
}

/// Returns the files that --lines, --land, --water and --errors name.
fn layer_files(session: &Session, args: &Args) -> Result<Vec<LayerFile>> {
    let layers = [
        (CoastLayer::Lines, &args.lines),
        (CoastLayer::Land, &args.land),
        (CoastLayer::Water, &args.water),
        (CoastLayer::Errors, &args.errors),
    ];
    let mut files = Vec::new();
    for (layer, path) in layers {
        let Some(path) = path else { continue };
        let format = layer_format(session, path)?;
        let is_projected = args.epsg.is_some_and(|code| code != Projection::Degrees);
        if is_projected && layer != CoastLayer::Errors && format != LayerFormat::Shapefile {
            bail!(
                "{}: --epsg 3857 needs a Shapefile (.shp); other formats have degrees",
                path.display()
            );
        }
        let target = text_target(session, path, args.overwrite)?;
        files.push(LayerFile::new(layer, target, format));
    }
    Ok(files)
}

/// Determines the format of a file from its name.
fn layer_format(session: &Session, path: &Path) -> Result<LayerFormat> {
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    match ending.to_ascii_lowercase().as_str() {
        "shp" => Ok(LayerFormat::Shapefile),
        "parquet" | "geoparquet" => Ok(LayerFormat::GeoParquet),
        _ => {
            let (format, compression) = format_of(session, None, path)?;
            let mut options = FeatureOptions::new(format);
            options.compression = compression;
            Ok(LayerFormat::Features(options))
        }
    }
}

fn summary_text(args: &Args, summary: &Summary) -> String {
    let name = args
        .output
        .as_deref()
        .map_or_else(String::new, |path| format!("{}: ", path.display()));
    if !summary.is_written {
        return if summary.losses.is_empty() {
            format!("{name}no change concerns the coast: the files stay as they are\n")
        } else {
            String::new()
        };
    }
    let mut out = format!(
        "{name}{} of land, {}, {}\n",
        show::counted(summary.land, "polygon"),
        show::counted(summary.lines, "line"),
        show::bytes(summary.bytes)
    );
    for (kind, count) in &summary.problems {
        let _ = writeln!(out, "  {}: {}", kind.name(), show::number(*count));
    }
    out
}

fn parse_cell(text: &str) -> Result<CellSize, String> {
    match text.parse::<f64>() {
        Ok(0.0) => Ok(CellSize(None)),
        Ok(degrees @ 0.01..=180.0) => Ok(CellSize(Some((degrees * 1e7).round() as u32))),
        _ => Err("expected degrees from 0.01 to 180, or 0".into()),
    }
}

fn parse_projection(text: &str) -> Result<Projection, String> {
    match text.trim_start_matches("EPSG:") {
        "4326" => Ok(Projection::Degrees),
        "3857" => Ok(Projection::WebMercator),
        _ => Err("expected 4326 or 3857".into()),
    }
}

fn parse_surface(text: &str) -> Result<Surface, String> {
    match text {
        "land" => Ok(Surface::Land),
        "water" => Ok(Surface::Water),
        _ => Err("expected land or water".into()),
    }
}

fn parse_distance(text: &str) -> Result<f64, String> {
    let metres = text.parse::<f64>().ok();
    let metres = metres.filter(|metres| (0.0..=1_000_000.0).contains(metres));
    metres.ok_or_else(|| "expected metres from 0 to 1000000".into())
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').parse::<f64>().ok();
    let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
    percent.ok_or_else(|| "expected percent from 0 to 100".into())
}
