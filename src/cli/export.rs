use super::add_locations_to_ways::parse_index_type;
use super::args::{RunArgs, parse_size, text_target};
use super::export_format::{FormatArgs, sql_statements};
use super::export_selection::SelectionArgs;
use super::session::Session;
use super::{CommandAnswer, show};
use crate::commands::export::{
    self, AREA_TAGS, Config, ExportFormat, FeatureRules, Incomplete, LocationsInWays,
    LookupOptions, Options, Problem, Severity, Summary, Theme,
};
use crate::engine::IndexType;
use crate::formats::{Attribute, FeatureFormat};
use crate::runtime::Context;
use anyhow::{Result, anyhow};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Turn objects into features: GeoJSON, GeoParquet, CSV, WKT, or tables for PostgreSQL
///
/// Nodes become points, ways become lines, and multipolygon and boundary relations become areas. A closed way becomes
/// an area if its tags imply one (building, landuse, natural=water, area=yes and others; -C prints the list), otherwise
/// a line. Objects without tags are left out.
///
/// Features are written in the order of the file: points, then features of ways, then features of relations. One pass
/// over the file is enough if its ways have locations (`pbfhogg add-locations-to-ways`); otherwise the locations of
/// nodes are kept in memory or, if they do not fit, joined on disk. Locations that only some ways have are used, and
/// the others are looked up.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg export berlin.osm.pbf -o berlin.geojson
  pbfhogg export berlin.osm.pbf --filter w/highway --filter r/route=bus -o roads.geojsonseq.gz
  pbfhogg export berlin.osm.pbf -u type_id -a timestamp,version -f geojsonseq | tippecanoe -o berlin.mbtiles
  pbfhogg export berlin.osm.pbf --geometry-types polygon -a type,id -o areas.pg
  pbfhogg export berlin.osm.pbf -o berlin.parquet --column highway,building
  pbfhogg export berlin.osm.pbf --filter amenity=cafe --column name,phone -o cafes.csv
  pbfhogg export berlin.osm.pbf --partition geometry_type -o berlin-features
  pbfhogg export berlin.osm.pbf --theme roads,buildings -o berlin-themes
  pbfhogg export berlin.osm.pbf --raw -o berlin-tables
  pbfhogg export berlin.osm.pbf -b 13.3,52.4,13.5,52.6 --properties name,highway -o centre.geojson
  pbfhogg export berlin.osm.pbf -e -o berlin.geojson 2> errors.txt
  pbfhogg export -C > export.json

Formats:
  geojson     one object with all features; -f json, .geojson, .json
  geojsonseq  one feature per line, for streams; -f jsonseq, .geojsonseq, .geojsonl, .jsonseq
  csv         a row for each feature: type, id, a point on it, tags; .csv; for spreadsheets, pandas, DuckDB
  text        WKT and tags; -f txt, .txt
  pg          rows for COPY in PostgreSQL with PostGIS; .pg; -v prints the SQL statements
All of these also with .gz, .bz2 or .zst.
  geoparquet  a table with WKB, boxes, tags and metadata, sorted along a Hilbert curve, for DuckDB,
              GeoPandas, Sedona, QGIS; -f parquet, .parquet, .geoparquet

Format options (-x):
  print_record_separator=false   geojsonseq without the character RS before each feature
  tags_type=hstore               pg with tags as hstore; the default is jsonb
  geometry=wkt                   csv with a column @geometry; the default is the point alone")]
pub struct Args {
    /// Input file; - is standard input
    #[arg(value_name = "FILE", required_unless_present_any = ["print_default_config", "print_themes", "show_index_types"])]
    input: Option<PathBuf>,
    /// Configuration file, as for osmium export: attributes, tags of lines and areas, tags to write
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the default configuration, and exit
    #[arg(short = 'C', long)]
    print_default_config: bool,
    #[command(flatten)]
    selection: SelectionArgs,
    /// List the objects that are left out because they have errors or are incomplete
    #[arg(short = 'e', long)]
    show_errors: bool,
    /// List mistakes that do not change the output, such as wrong roles
    #[arg(long)]
    show_warnings: bool,
    /// Fail at the first object with an error
    #[arg(short = 'E', long)]
    stop_on_error: bool,
    /// Relations with parts that are not in the file: drop them, or keep their closed rings
    #[arg(long, value_name = "HOW", value_parser = parse_incomplete, default_value = "drop")]
    incomplete: Incomplete,
    /// Index type for the locations of nodes: auto, dense, sparse, external, or none if ways have them
    #[arg(short, long, value_name = "TYPE", default_value = "auto", value_parser = parse_location_source)]
    index_type: StoredLocationArg,
    /// Print the index types, and exit
    #[arg(short = 'I', long)]
    show_index_types: bool,
    /// Directory for temporary files [default: the directory of the output]
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,
    /// Maximum memory for locations, such as 8G [default: four fifths of the available memory, at most 7G]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_memory: Option<u64>,
    /// Output file; standard output if omitted or -
    #[arg(short, long, value_name = "FILE", help_heading = "Common options")]
    output: Option<PathBuf>,
    /// Replace the output if it exists; a directory only if export wrote everything in it
    #[arg(short = 'O', long, help_heading = "Common options")]
    overwrite: bool,
    #[command(flatten)]
    format: FormatArgs,
    #[arg(long, hide = true)]
    fsync: bool,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let conventions = session.conventions;
    if args.print_default_config {
        return session.answer(&export::default_config(
            (!conventions.exports_twice).then_some(&AREA_TAGS),
        ));
    }
    if args.format.print_themes {
        return session.answer(Theme::built_in_text());
    }
    if args.show_index_types {
        session.print(conventions.index_types)?;
        return session.answer("none\n");
    }
    let ctx = args.run.context(session);
    let config = read_config_or_default(session, args, &ctx)?;
    let options = export_options(session, args, config, &ctx)?;
    if let (true, ExportFormat::Text(features)) = (args.run.verbose, &options.format)
        && let FeatureFormat::Postgres { tags } = features.format
    {
        session.print_to_stderr(&sql_statements(features, tags, options.target.path()));
    }
    let mut report = |problem: &Problem| match problem.severity() {
        Severity::Error if args.stop_on_error => Err(crate::Error::file(
            &options.input,
            format!("{problem} (without --stop-on-error it is left out)"),
        )),
        Severity::Error | Severity::Incomplete if !args.show_errors => Ok(()),
        Severity::Warning if !args.show_warnings => Ok(()),
        _ => {
            session.print_to_stderr(&format!("{problem}\n"));
            Ok(())
        }
    };
    let reports = args.show_errors || args.show_warnings || args.stop_on_error;
    let summary = export::run(&options, reports.then_some(&mut report), &ctx)?;
    warn_of_areas_without_way_nodes(&options, &summary, &ctx);
    if !args.show_errors && should_warn_of_left_out(session, args, &options) {
        export::warn_of_left_out(&summary, options.rules.incomplete, &ctx);
    }
    let answer = session.report(&args.run, &ctx, &summary, &options.target, || {
        summary_text(&options, &summary, args.show_errors)
    })?;
    if args.stop_on_error && conventions.stops_on_incomplete {
        fail_if_incomplete(&options, &summary)?;
    }
    Ok(answer)
}

/// Reads the configuration file. Without one, returns a configuration with the default rules.
fn read_config_or_default(session: &Session, args: &Args, ctx: &Context) -> Result<Config> {
    let Some(path) = &args.config else {
        return Ok(Config::new(default_rules(session)));
    };
    let config = export::read_config(path, default_rules(session));
    // A mistake in the configuration counts as wrong usage. So does every error whose type is not `crate::Error`.
    // Therefore the error is converted to a plain message.
    let config = config.map_err(|error| anyhow!("{error}"))?;
    for warning in &config.warnings {
        ctx.warn(format!("{}: {warning}", path.display()));
    }
    Ok(config)
}

/// Whether to warn about objects that the output lacks. osmium has no such warnings. If a JSON report goes to standard
/// error, it already has the numbers, and should not be mixed with other text.
fn should_warn_of_left_out(session: &Session, args: &Args, options: &Options) -> bool {
    let has_report = args.run.json.is_some() && options.target.is_stream();
    !session.conventions.reports_like_osmium && !has_report
}

/// Fails if the file has incomplete relations.
fn fail_if_incomplete(options: &Options, summary: &Summary) -> crate::Result<()> {
    if summary.incomplete == 0 {
        return Ok(());
    }
    let relations = show::counted(summary.incomplete, "relation");
    let cause = format!("{relations} of which a part is not in the file");
    Err(crate::Error::file(&options.input, cause))
}

/// Warns if the attribute `way_nodes` was requested and the output has areas, because areas do not have this attribute.
fn warn_of_areas_without_way_nodes(options: &Options, summary: &Summary, ctx: &Context) {
    if let ExportFormat::Text(features) = &options.format
        && features.attributes.has(Attribute::WayNodes)
        && summary.areas > 0
    {
        ctx.warn(format!(
            "{} without way_nodes: only ways that are lines have the ids of their nodes",
            show::counted(summary.areas, "area")
        ));
    }
}

/// Returns the rules that apply without a configuration file.
fn default_rules(session: &Session) -> FeatureRules {
    if session.conventions.exports_twice {
        FeatureRules::both()
    } else {
        FeatureRules::default()
    }
}

fn export_options(
    session: &Session,
    args: &Args,
    config: Config,
    ctx: &Context,
) -> Result<Options> {
    let path = args.output.as_deref().unwrap_or(Path::new("-"));
    let target = text_target(session, path, args.overwrite)?;
    let input = args.input.clone().unwrap_or_default();
    let mut options = Options::new(input, target, args.format.format(session, path, &config)?);
    options.rules = config.rules.line_relations(options.rules.line_relations);
    let input = &options.input;
    args.selection
        .apply_to(session, input, &mut options.rules, ctx)?;
    if let ExportFormat::Text(features) = &mut options.format
        && features.tag_columns.is_none()
    {
        features.tag_columns.clone_from(&options.rules.tag_keys);
    }
    options.rules.incomplete = args.incomplete;
    options.rules.keeps_repeated_keys = session.conventions.keeps_repeated_keys;
    let (in_ways, index_type) = match args.index_type {
        StoredLocationArg::Nodes(index_type) => (LocationsInWays::AsDeclared, index_type),
        StoredLocationArg::Ways if session.conventions.takes_none_for_no_index => {
            (LocationsInWays::Only, IndexType::default())
        }
        StoredLocationArg::Ways => (LocationsInWays::Taken, IndexType::default()),
    };
    options.lookup = LookupOptions::default()
        .locations_in_ways(in_ways)
        .index_type(index_type)
        .temp_dir(args.temp_dir.clone())
        .max_memory(args.max_memory);
    options.areas_last = session.conventions.exports_areas_last;
    options.warns_of_nothing = should_warn_of_left_out(session, args, &options);
    Ok(options)
}

fn summary_text(options: &Options, summary: &Summary, are_shown: bool) -> String {
    if matches!(options.format, ExportFormat::Objects(_)) {
        let objects = show::counted(summary.features, "object");
        let bytes = show::bytes(summary.bytes);
        return format!("{}: {objects}, {bytes}\n", options.target.path().display());
    }
    let mut out = format!(
        "{}: {} ({}, {}, {}), {}\n",
        options.target.path().display(),
        show::counted(summary.features, "feature"),
        show::counted(summary.points, "point"),
        show::counted(summary.lines, "line"),
        show::counted(summary.areas, "area"),
        show::bytes(summary.bytes),
    );
    let errors: u64 = summary.errors.values().sum();
    // Without -e, a warning gives this number.
    if errors > 0 && are_shown {
        let _ = writeln!(
            out,
            "  left out with {}: {}",
            show::counted(errors, "error"),
            export::list_of_problems(&summary.errors)
        );
    }
    if summary.incomplete > 0 && (are_shown || options.rules.incomplete == Incomplete::Keep) {
        let what = match options.rules.incomplete {
            Incomplete::LeaveOut => "left out",
            Incomplete::Keep => "only the rings that close",
        };
        let _ = writeln!(
            out,
            "  {} of which a part is not in the file: {what}",
            show::counted(summary.incomplete, "relation"),
        );
    }
    out
}

/// The source of node locations for ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoredLocationArg {
    Ways,
    Nodes(IndexType),
}

fn parse_location_source(text: &str) -> Result<StoredLocationArg, String> {
    match text {
        "none" => Ok(StoredLocationArg::Ways),
        _ => parse_index_type(text)
            .map(StoredLocationArg::Nodes)
            .map_err(|error| format!("{error}, or none")),
    }
}

fn parse_incomplete(text: &str) -> Result<Incomplete, String> {
    match text {
        "drop" => Ok(Incomplete::LeaveOut),
        "keep" => Ok(Incomplete::Keep),
        _ => Err("expected drop or keep".into()),
    }
}
