use super::add_locations_to_ways::parse_index_type;
use super::args::{RunArgs, parse_size, text_target};
use super::conventions::Conventions;
use super::{Answer, complain, print, show};
use crate::commands::export::{
    self, AREA_TAGS, Config, FeatureRules, GeometryTypes, Incomplete, Options, Problem, Severity,
    Summary,
};
use crate::engine::IndexType;
use crate::formats::{
    Attribute, FeatureFormat, FeatureOptions, TagColumn, TextCompression, UniqueId,
};
use crate::osm::ObjectExpression;
use anyhow::{Result, anyhow, bail};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Turn objects into features: GeoJSON, WKT, or tables for PostgreSQL
///
/// Nodes become points, ways become lines, and multipolygon and boundary relations become areas. A closed way becomes an
/// area if its tags mean one (building, landuse, natural=water, area=yes and others; -C prints the list), and else a
/// line. Objects without tags are left out.
///
/// Features come in the order of the file: points, then those of ways, then those of relations. One pass over the file
/// is enough if its ways have locations (`pbfhogg add-locations-to-ways`); otherwise the locations of nodes are kept in
/// memory or, if that is short, joined on disk.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg export berlin.osm.pbf -o berlin.geojson
  pbfhogg export berlin.osm.pbf --filter w/highway --filter r/route=bus -o roads.geojsonseq.gz
  pbfhogg export berlin.osm.pbf -u type_id -a timestamp,version -f geojsonseq | tippecanoe -o berlin.mbtiles
  pbfhogg export berlin.osm.pbf --geometry-types polygon -a type,id -o areas.pg
  pbfhogg export berlin.osm.pbf -e -o berlin.geojson 2> errors.txt
  pbfhogg export -C > export.json

Formats:
  geojson     one object with all features; -f json, .geojson, .json
  geojsonseq  a feature on each line, for streams; -f jsonseq, .geojsonseq, .geojsonl, .jsonseq
  text        WKT and tags; -f txt, .txt
  pg          rows for COPY in PostgreSQL with PostGIS; .pg; -v prints the statements
All of them with .gz, .bz2 or .zst, too.

Format options (-x):
  print_record_separator=false   geojsonseq without the character RS before each feature
  tags_type=hstore               pg with tags as hstore; the default is jsonb")]
pub struct Args {
    /// Input file; - is standard input
    #[arg(value_name = "FILE", required_unless_present_any = ["print_default_config", "show_index_types"])]
    input: Option<PathBuf>,
    /// Configuration file, as of osmium: attributes, tags of lines and areas, tags to write
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the default configuration, and do nothing else
    #[arg(short = 'C', long)]
    print_default_config: bool,
    /// Export only objects that the expression matches, as of tags-filter; repeatable
    #[arg(long, value_name = "EXPRESSION", value_parser = ObjectExpression::parse)]
    filter: Vec<ObjectExpression>,
    /// Types of geometries to write: point, linestring, polygon; several with commas
    #[arg(long, value_name = "TYPES", value_parser = parse_types)]
    geometry_types: Option<GeometryTypes>,
    /// Attributes to write: type, id, version, changeset, uid, user, timestamp, way_nodes; several with commas
    #[arg(short, long, value_name = "NAMES", value_delimiter = ',', value_parser = parse_attribute)]
    attributes: Vec<Attribute>,
    /// Give each feature an id: counter, or type_id such as n17, w4, a8 (areas: twice the id of the way, twice the id
    /// of the relation and 1)
    #[arg(short = 'u', long, value_name = "TYPE", value_parser = parse_unique_id)]
    add_unique_id: Option<UniqueId>,
    /// Also write features without tags
    #[arg(short = 'n', long)]
    keep_untagged: bool,
    /// List the objects that are left out because of an error, or because they are incomplete
    #[arg(short = 'e', long)]
    show_errors: bool,
    /// List mistakes that have no effect, such as wrong roles
    #[arg(long)]
    show_warnings: bool,
    /// Fail at the first object with an error
    #[arg(short = 'E', long)]
    stop_on_error: bool,
    /// Relations of which a part is not in the file: drop them, or keep the rings that close
    #[arg(long, value_name = "HOW", value_parser = parse_incomplete, default_value = "drop")]
    incomplete: Incomplete,
    /// Set an option of the format; repeatable
    #[arg(short = 'x', long, value_name = "OPTION[=VALUE]")]
    format_option: Vec<String>,
    /// Index type for the locations of nodes: auto, dense, sparse, external, or none if ways have them
    #[arg(short, long, value_name = "TYPE", default_value = "auto", value_parser = parse_index)]
    index_type: LocationSource,
    /// Print the index types, and do nothing else
    #[arg(short = 'I', long)]
    show_index_types: bool,
    /// Directory for temporary files [default: beside the output]
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,
    /// Maximum memory for locations, such as 8G [default: four fifths of the available memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_memory: Option<u64>,
    /// Output file; without it, or with -, standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Common options")]
    output: Option<PathBuf>,
    /// Replace the output file if it exists
    #[arg(short = 'O', long, help_heading = "Common options")]
    overwrite: bool,
    /// Format if the name of the output does not show it: geojson, geojsonseq, text or pg, also with .gz, .bz2 or .zst
    #[arg(
        short = 'f',
        long,
        value_name = "FORMAT",
        help_heading = "Common options"
    )]
    output_format: Option<String>,
    #[arg(long, hide = true)]
    fsync: bool,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(args: &Args) -> Result<Answer> {
    let conventions = Conventions::current();
    if args.print_default_config {
        print(&export::default_config(
            (!conventions.exports_twice).then_some(&AREA_TAGS),
        ))?;
        return Ok(Answer::Yes);
    }
    if args.show_index_types {
        print(conventions.index_types)?;
        print("none\n")?;
        return Ok(Answer::Yes);
    }
    let ctx = args.run.context();
    let config = match &args.config {
        Some(path) => {
            let config = export::read_config(path, default_rules());
            // As on the command line, a mistake is wrong usage.
            let config = config.map_err(|error| anyhow!("{error}"))?;
            for warning in &config.warnings {
                ctx.warn(format!("{}: {warning}", path.display()));
            }
            config
        }
        None => Config::new(default_rules()),
    };
    let options = options(args, config)?;
    if args.run.verbose
        && let FeatureFormat::Postgres { tags } = options.features.format
    {
        complain(&statements(&options.features, tags, options.target.path()));
    }
    let mut report = |problem: &Problem| match problem.severity() {
        Severity::Error if args.stop_on_error => Err(crate::Error::file(
            &options.input,
            format!("{problem} (without --stop-on-error it is left out)"),
        )),
        Severity::Error | Severity::Incomplete if !args.show_errors => Ok(()),
        Severity::Warning if !args.show_warnings => Ok(()),
        _ => {
            complain(&format!("{problem}\n"));
            Ok(())
        }
    };
    let reports = args.show_errors || args.show_warnings || args.stop_on_error;
    let summary = export::run(&options, reports.then_some(&mut report), &ctx)?;
    args.run.report(&ctx, &summary, &options.target, || {
        text(&options, &summary, args.show_errors)
    })
}

/// The rules for objects that no configuration speaks about.
fn default_rules() -> FeatureRules {
    match Conventions::current().exports_twice {
        true => FeatureRules::both(),
        false => FeatureRules::default(),
    }
}

fn options(args: &Args, mut config: Config) -> Result<Options> {
    let path = args.output.as_deref().unwrap_or(Path::new("-"));
    let (format, compression) = format_of(args.output_format.as_deref(), path)?;
    let mut features = FeatureOptions::new(format);
    features.compression = compression;
    let given = args.format_option.iter().map(|option| {
        let (name, value) = option.split_once('=').unwrap_or((option, "true"));
        (name.to_owned(), value.to_owned())
    });
    config.format_options.extend(given);
    for (name, value) in &config.format_options {
        set_format_option(&mut features.format, name, value)?;
    }
    features.attributes = config.attributes;
    for attribute in &args.attributes {
        features
            .attributes
            .set(*attribute, format!("@{}", attribute.name()));
    }
    features.unique_id = args.add_unique_id.unwrap_or_default();
    let target = text_target(path, args.overwrite);
    let input = args.input.clone().unwrap_or_default();
    let mut options = Options::new(input, target, features);
    options.rules = config.rules;
    options.geometry_types = args.geometry_types.unwrap_or_default();
    options.keep_untagged = args.keep_untagged;
    options.filter = args.filter.clone();
    options.incomplete = args.incomplete;
    options.locations_in_ways = args.index_type == LocationSource::Ways;
    options.index_type = match args.index_type {
        LocationSource::Ways => IndexType::default(),
        LocationSource::Nodes(index_type) => index_type,
    };
    options.temp_dir = args.temp_dir.clone();
    options.max_memory = args.max_memory;
    Ok(options)
}

/// The format and the compression that the user named or, without that, those that the name of the output ends with.
fn format_of(format: Option<&str>, path: &Path) -> Result<(FeatureFormat, TextCompression)> {
    const EXPECTED: &str = "geojson, geojsonseq, text or pg, also with .gz, .bz2 or .zst";
    let is_file = path.as_os_str() != "-";
    let (text, problem) = match format {
        Some(format) => (format.to_owned(), format!("{format}: expected {EXPECTED}")),
        None if is_file => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let problem = format!(
                "{}: the name does not show the format: say it with -f ({EXPECTED})",
                path.display()
            );
            (name.into_owned(), problem)
        }
        None if Conventions::current().needs_format => {
            bail!("say the format with --output-format or -f: {EXPECTED}")
        }
        None => return Ok((FeatureFormat::GeoJson, TextCompression::None)),
    };
    let text = text.to_ascii_lowercase();
    let compression = TextCompression::of_name(Path::new(&format!("x.{text}")));
    let name = match compression {
        TextCompression::None => text.as_str(),
        _ => text
            .rsplit_once('.')
            .map_or(text.as_str(), |(name, _)| name),
    };
    let ending = name.rsplit('.').next().unwrap_or_default();
    let has_name = format.is_some() == (ending == name);
    match FeatureFormat::of_name(ending).filter(|_| has_name) {
        Some(format) => Ok((format, compression)),
        None => Err(anyhow!(problem)),
    }
}

fn set_format_option(format: &mut FeatureFormat, name: &str, value: &str) -> Result<()> {
    match (name, format) {
        (
            "print_record_separator",
            FeatureFormat::GeoJsonSeq {
                has_record_separator,
            },
        ) => {
            *has_record_separator = match value {
                "true" | "yes" => true,
                "false" | "no" => false,
                _ => bail!("{name}={value}: expected true or false"),
            };
        }
        ("tags_type", FeatureFormat::Postgres { tags }) => {
            *tags = match value {
                "json" | "jsonb" => TagColumn::Json,
                "hstore" => TagColumn::Hstore,
                _ => bail!("{name}={value}: expected jsonb or hstore"),
            };
        }
        ("print_record_separator" | "tags_type", _) => {}
        _ if Conventions::current().ignores_unknown_options => {}
        _ => bail!(
            "'{name}' is not an option of a format: known are print_record_separator, tags_type"
        ),
    }
    Ok(())
}

/// The statements that make a table for the rows, and load them.
fn statements(features: &FeatureOptions, tags: TagColumn, path: &Path) -> String {
    let mut columns: Vec<(String, &str)> = Vec::new();
    match features.unique_id {
        UniqueId::None => {}
        UniqueId::Counter => columns.push(("id".into(), "BIGINT PRIMARY KEY")),
        UniqueId::TypeAndId => columns.push(("id".into(), "TEXT PRIMARY KEY")),
    }
    columns.push(("geom".into(), "GEOMETRY"));
    for (attribute, name) in features.attributes.iter() {
        let name = match name.strip_prefix('@') {
            Some(plain @ ("type" | "id")) => format!("osm_{plain}"),
            Some(plain) => plain.to_owned(),
            None => name.to_owned(),
        };
        let column_type = match attribute {
            Attribute::Type | Attribute::User => "TEXT",
            Attribute::Id | Attribute::Changeset => "BIGINT",
            Attribute::Version | Attribute::Uid => "INTEGER",
            Attribute::Timestamp => "TIMESTAMP (0) WITH TIME ZONE",
            Attribute::WayNodes => "BIGINT[]",
        };
        columns.push((format!("\"{}\"", name.replace('"', "\"\"")), column_type));
    }
    columns.push((
        "tags".into(),
        match tags {
            TagColumn::Json => "JSONB",
            TagColumn::Hstore => "HSTORE",
        },
    ));
    let columns: Vec<String> = columns
        .iter()
        .map(|(name, column_type)| format!("    {name} {column_type}"))
        .collect();
    format!(
        "CREATE TABLE osmdata (\n{}\n);\n\\copy osmdata FROM '{}'\n",
        columns.join(",\n"),
        path.display()
    )
}

fn text(options: &Options, summary: &Summary, are_shown: bool) -> String {
    let mut out = format!(
        "{}: {} ({}, {}, {}), {}\n",
        options.target.path().display(),
        show::counted(summary.features, "feature"),
        show::counted(summary.points, "point"),
        show::counted(summary.lines, "line"),
        show::counted(summary.areas, "area"),
        show::bytes(summary.bytes),
    );
    let kinds = |counts: &std::collections::BTreeMap<&str, u64>| {
        let kinds = counts.iter();
        let kinds = kinds.map(|(name, count)| format!("{} {count}", name.replace('_', " ")));
        kinds.collect::<Vec<_>>().join(", ")
    };
    let errors: u64 = summary.errors.values().sum();
    if errors > 0 {
        let hint = if are_shown { "" } else { "; -e lists them" };
        let _ = writeln!(
            out,
            "  left out with {}: {}{hint}",
            show::counted(errors, "error"),
            kinds(&summary.errors)
        );
    }
    if summary.incomplete > 0 {
        let what = match options.incomplete {
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

/// The source of the locations of the nodes of ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LocationSource {
    Ways,
    Nodes(IndexType),
}

fn parse_index(text: &str) -> Result<LocationSource, String> {
    match text {
        "none" => Ok(LocationSource::Ways),
        _ => parse_index_type(text)
            .map(LocationSource::Nodes)
            .map_err(|error| format!("{error}, or none")),
    }
}

fn parse_types(text: &str) -> Result<GeometryTypes, String> {
    let mut types = GeometryTypes {
        points: false,
        lines: false,
        areas: false,
    };
    for name in text.split(',') {
        match name {
            "point" => types.points = true,
            "linestring" => types.lines = true,
            "polygon" => types.areas = true,
            _ => return Err("expected point, linestring or polygon".into()),
        }
    }
    Ok(types)
}

fn parse_attribute(text: &str) -> Result<Attribute, String> {
    let known = Attribute::ALL.map(Attribute::name).join(", ");
    Attribute::of_name(text).ok_or_else(|| format!("expected {known}"))
}

fn parse_unique_id(text: &str) -> Result<UniqueId, String> {
    match text {
        "counter" => Ok(UniqueId::Counter),
        "type_id" => Ok(UniqueId::TypeAndId),
        _ => Err("expected counter or type_id".into()),
    }
}

fn parse_incomplete(text: &str) -> Result<Incomplete, String> {
    match text {
        "drop" => Ok(Incomplete::LeaveOut),
        "keep" => Ok(Incomplete::Keep),
        _ => Err("expected drop or keep".into()),
    }
}
