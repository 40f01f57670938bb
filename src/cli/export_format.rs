//! The arguments of `export` that determine the format of its output.

use super::args::names::Implied;
use super::args::parse_size;
use super::session::Session;
use crate::commands::export::{Config, ExportFormat};
use crate::formats::{
    Attribute, Attributes, DerivedColumns, FeatureFormat, FeatureOptions, GeoParquetOptions,
    GeoParquetVersion, MAX_FILE_LEN, ObjectTableOptions, PageCompression, PartitionKey, TagColumn,
    TextCompression, Theme, UniqueId,
};
use anyhow::{Result, anyhow, bail};
use std::path::Path;

/// The error message if a directory would be written to standard output.
const DIRECTORY: &str =
    "--partition, --max-file-size, several themes and --raw write a directory: name it with -o";
/// The attributes that `--metadata` selects.
const ALL_ATTRIBUTES: [Attribute; 7] = [
    Attribute::Type,
    Attribute::Id,
    Attribute::Version,
    Attribute::Changeset,
    Attribute::Uid,
    Attribute::User,
    Attribute::Timestamp,
];

/// The format of the output and the fields of the features.
#[derive(Debug, clap::Args)]
pub struct FormatArgs {
    /// Attributes to write, comma-separated: type, id, version, changeset, uid, user, timestamp, way_nodes
    /// (of ways that are lines)
    #[arg(short, long, value_name = "NAMES", value_delimiter = ',', value_parser = parse_attribute)]
    attributes: Vec<Attribute>,
    /// Write all attributes: -a type,id,version,changeset,uid,user,timestamp
    #[arg(long)]
    metadata: bool,
    /// Give each feature an id: counter, or type_id such as n17, w4, a8
    ///
    /// With type_id, the number of an area is twice the id of its way, or twice the id of its relation plus 1.
    #[arg(short = 'u', long, value_name = "TYPE", value_parser = parse_unique_id)]
    add_unique_id: Option<UniqueId>,
    /// Set an option of the format; repeatable
    #[arg(short = 'x', long, value_name = "OPTION[=VALUE]")]
    format_option: Vec<String>,
    /// Output format, if not that of the file name: geojson, geojsonseq, csv, text, pg or geoparquet
    ///
    /// All formats except geoparquet can be compressed: geojson.gz, csv.bz2, pg.zst.
    #[arg(
        short = 'f',
        long,
        value_name = "FORMAT",
        help_heading = "Common options"
    )]
    output_format: Option<String>,
    /// GeoParquet: write only these themes, each with columns of its own: names, comma-separated, or a TOML file
    ///
    /// Built in are roads, buildings, pois, addresses, landuse, water, boundaries, places and transit; --print-themes
    /// prints them. Several themes become partitions. A feature of several themes is written to each of them.
    #[arg(
        long,
        value_name = "THEMES",
        value_delimiter = ',',
        conflicts_with = "properties",
        help_heading = "GeoParquet"
    )]
    theme: Vec<String>,
    /// Print the built-in themes as TOML, and exit
    #[arg(long, help_heading = "GeoParquet")]
    pub print_themes: bool,
    /// GeoParquet: write a directory with partitions by these keys, comma-separated: geometry_type, theme,
    /// quadkey:ZOOM, h3:RESOLUTION
    ///
    /// A directory of a partition is named after its value: geometry_type=point, quadkey=0231. A feature is in the
    /// quadkey (1 to 12) or the cell of H3 (0 to 6) of the centre of its box. theme alone writes all built-in themes.
    #[arg(
        long,
        value_name = "KEYS",
        value_delimiter = ',',
        help_heading = "GeoParquet"
    )]
    partition: Vec<PartitionKey>,
    /// Parquet: write a directory with files of at most this size, such as 128M [default: 512 MB with --partition or
    /// --raw; otherwise a single file]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "GeoParquet")]
    max_file_size: Option<u64>,
    /// Parquet: write a directory with tables of the nodes, ways and relations, without geometries
    #[arg(
        long,
        conflicts_with_all = [
            "partition", "bbox", "polygon", "geometry_types", "properties", "clip", "theme", "columns", "derived",
            "no_metadata", "geoparquet_version"
        ],
        help_heading = "GeoParquet"
    )]
    raw: bool,
    /// GeoParquet, CSV: add a column for each of these tag keys; comma-separated
    ///
    /// CSV then has no other columns of tags. Without this option, it has a column for each key of --properties, or
    /// else name, and tags with all tags as JSON.
    #[arg(
        long = "column",
        value_name = "KEYS",
        value_delimiter = ',',
        help_heading = "GeoParquet"
    )]
    columns: Vec<String>,
    /// GeoParquet, CSV: add computed columns, comma-separated: area, length, centroid, country (not in CSV), names,
    /// h3:RESOLUTION
    ///
    /// area_m2 and length_m are measured on the ellipsoid of WGS 84. centroid_lon and centroid_lat are in degrees.
    /// country is a code such as DE, by the boundaries of countries that are complete in the input. names is a map from
    /// languages to the values of tags such as name:de. h3_9 has the cell of H3, of resolution 9, with the
    /// centre of the box of the feature; resolutions are 0 to 15.
    #[arg(
        long = "with",
        value_name = "COLUMNS",
        value_delimiter = ',',
        value_parser = parse_derived,
        help_heading = "GeoParquet"
    )]
    derived: Vec<Derived>,
    /// GeoParquet: leave out version, timestamp, changeset, uid and user
    #[arg(long, help_heading = "GeoParquet")]
    no_metadata: bool,
    /// GeoParquet: compression of pages: none or zstd[:1-22] [default: zstd:2]
    #[arg(long, value_name = "KIND[:LEVEL]", help_heading = "GeoParquet")]
    compression: Option<PageCompression>,
    /// GeoParquet: version 1.1, which all programs read, or 2.0, with Parquet's geometry type [default: 1.1]
    #[arg(long, value_name = "VERSION", value_parser = parse_version, help_heading = "GeoParquet")]
    geoparquet_version: Option<GeoParquetVersion>,
}

impl FormatArgs {
    /// Returns the format of an output with the given path.
    pub fn format(&self, session: &Session, path: &Path, config: &Config) -> Result<ExportFormat> {
        if self.raw || self.is_geoparquet(path) {
            self.check_name(session, path)?;
            self.table_format(path)
        } else {
            self.text_format(session, path, config)
        }
    }

    /// Whether the format is GeoParquet. If --output-format is not given, --theme and each option that writes a
    /// directory select GeoParquet. If none of these options is given either, the file name of the output decides.
    fn is_geoparquet(&self, path: &Path) -> bool {
        let ending = path.extension().and_then(|ending| ending.to_str());
        match &self.output_format {
            Some(format) => is_geoparquet(format),
            None if self.needs_directory() || !self.theme.is_empty() => true,
            None => ending.is_some_and(is_geoparquet),
        }
    }

    /// Fails if an option other than --output-format selects Parquet, and the name of the output is that of another
    /// format. Also fails if --output-format contradicts --raw.
    fn check_name(&self, session: &Session, path: &Path) -> Result<()> {
        if let Some(format) = &self.output_format {
            if !is_geoparquet(format) {
                bail!("--raw writes tables in Parquet: leave -f {format} out");
            }
            return Ok(());
        }
        let implied = [
            (self.raw, "--raw writes a directory of Parquet files"),
            (
                !self.partition.is_empty(),
                "--partition writes a directory of Parquet files",
            ),
            (
                self.max_file_size.is_some(),
                "--max-file-size writes a directory of Parquet files",
            ),
            (
                self.theme.len() > 1,
                "several themes are a directory of Parquet files",
            ),
            (!self.theme.is_empty(), "--theme writes GeoParquet"),
        ];
        let what = implied.into_iter().find(|(is_given, _)| *is_given);
        what.map_or(Ok(()), |(_, what)| {
            Implied {
                what,
                endings: &["parquet", "geoparquet"],
                may_be_compressed: false,
                advice: "name the output .parquet, or say -f geoparquet to keep the name",
            }
            .check_name(session, path)
        })
    }

    /// Whether an option requires a directory as the output.
    fn needs_directory(&self) -> bool {
        self.raw
            || !self.partition.is_empty()
            || self.theme.len() > 1
            || self.max_file_size.is_some()
    }

    /// Returns the table format that the options select. Fails if an option that only text formats have is given.
    fn table_format(&self, path: &Path) -> Result<ExportFormat> {
        let is_stream = path.as_os_str() == "-";
        for (is_given, option) in [
            (!self.attributes.is_empty(), "--attributes"),
            (self.add_unique_id.is_some(), "--add-unique-id"),
            (!self.format_option.is_empty(), "--format-option"),
        ] {
            if is_given {
                bail!("{option} is for text: GeoParquet has columns for kind, id and metadata");
            }
        }
        if self.raw {
            if is_stream {
                bail!(DIRECTORY);
            }
            return Ok(ExportFormat::Objects(ObjectTableOptions {
                compression: self.compression.unwrap_or_default(),
                max_file_len: self.max_file_size.unwrap_or(MAX_FILE_LEN),
            }));
        }
        let options = GeoParquetOptions {
            version: self.geoparquet_version.unwrap_or_default(),
            compression: self.compression.unwrap_or_default(),
            has_metadata: !self.no_metadata,
            partition: self.partition.clone(),
            max_file_len: self.max_file_size,
            derived: derived_columns(&self.derived),
            themes: self.themes()?,
            tag_columns: self.columns.clone(),
            ..GeoParquetOptions::default()
        };
        if is_stream && options.is_directory() {
            bail!(DIRECTORY);
        }
        Ok(ExportFormat::GeoParquet(options))
    }

    /// Returns the themes that --theme names or reads from files. Without --theme, returns all built-in themes if the
    /// output is partitioned by theme, otherwise no themes.
    fn themes(&self) -> Result<Vec<Theme>> {
        let built_in = Theme::built_in();
        if self.theme.is_empty() {
            let is_partition = self.partition.contains(&PartitionKey::Theme);
            return Ok(if is_partition { built_in } else { Vec::new() });
        }
        let mut themes = Vec::new();
        for word in &self.theme {
            let known = built_in.iter().position(|theme| theme.name == *word);
            match known {
                Some(at) => themes.push(built_in[at].clone()),
                None if word.contains(['.', '/']) => themes.extend(Theme::read(Path::new(word))?),
                None => {
                    let names: Vec<_> = built_in.into_iter().map(|theme| theme.name).collect();
                    bail!(
                        "--theme {word}: expected {}, or a file such as themes.toml",
                        names.join(", ")
                    );
                }
            }
        }
        Ok(themes)
    }

    /// Returns the text format that the options select. Fails if an option for tables is given and the text format does
    /// not have this option.
    fn text_format(&self, session: &Session, path: &Path, config: &Config) -> Result<ExportFormat> {
        let (format, compression) = format_of(session, self.output_format.as_deref(), path)?;
        let is_csv = format.is_table();
        if !is_csv && !self.columns.is_empty() {
            bail!("--column is for GeoParquet and CSV: say -f geoparquet or -f csv");
        }
        if !is_csv && !self.derived.is_empty() {
            bail!("--with is for GeoParquet and CSV: say -f geoparquet or -f csv");
        }
        if self.derived.contains(&Derived::Country) {
            bail!(
                "--with country is for GeoParquet: rows of CSV are written before all boundaries are known"
            );
        }
        for (is_given, option) in [
            (!self.partition.is_empty(), "--partition"),
            (self.max_file_size.is_some(), "--max-file-size"),
            (!self.theme.is_empty(), "--theme"),
            (self.no_metadata, "--no-metadata"),
            (self.compression.is_some(), "--compression"),
            (self.geoparquet_version.is_some(), "--geoparquet-version"),
        ] {
            if is_given {
                bail!("{option} is for GeoParquet: say -f geoparquet, or name the output .parquet");
            }
        }
        let mut features = FeatureOptions::new(format);
        features.compression = compression;
        let given = self.format_option.iter().map(|option| {
            let (name, value) = option.split_once('=').unwrap_or((option, "true"));
            (name.to_owned(), value.to_owned())
        });
        for (name, value) in config.format_options.iter().cloned().chain(given) {
            set_format_option(session, &mut features.format, &name, &value)?;
        }
        features.attributes = self.attributes(config, is_csv);
        features.tag_columns = (!self.columns.is_empty()).then(|| self.columns.clone());
        features.derived = derived_columns(&self.derived);
        features.unique_id = self.add_unique_id.unwrap_or_default();
        Ok(ExportFormat::Text(features))
    }

    /// Returns the attributes that are written. A table always has the type and the id of the object.
    fn attributes(&self, config: &Config, is_table: bool) -> Attributes {
        let mut attributes = config.attributes.clone();
        let name = |attribute: Attribute| format!("@{}", attribute.name());
        for attribute in [Attribute::Type, Attribute::Id] {
            if is_table && !attributes.has(attribute) {
                attributes.set(attribute, name(attribute));
            }
        }
        let all = ALL_ATTRIBUTES.iter().filter(|_| self.metadata);
        for attribute in all.chain(&self.attributes) {
            attributes.set(*attribute, name(*attribute));
        }
        attributes
    }
}

/// A value of `--with`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Derived {
    Area,
    Length,
    Centroid,
    Country,
    Names,
    /// The H3 cells of this resolution.
    H3(u8),
}

fn parse_derived(text: &str) -> Result<Derived, String> {
    let resolution = |text: &str| text.parse().ok().filter(|resolution| *resolution <= 15);
    Ok(match text {
        "area" => Derived::Area,
        "length" => Derived::Length,
        "centroid" => Derived::Centroid,
        "country" => Derived::Country,
        "names" => Derived::Names,
        _ => match text
            .strip_prefix("h3")
            .map(|text| text.strip_prefix(':').and_then(resolution))
        {
            Some(Some(resolution)) => Derived::H3(resolution),
            Some(None) => return Err("expected a resolution from 0 to 15, such as h3:9".into()),
            None => {
                return Err(
                    "expected area, length, centroid, country, names or h3:RESOLUTION".into(),
                );
            }
        },
    })
}

fn derived_columns(words: &[Derived]) -> DerivedColumns {
    let mut columns = DerivedColumns::default();
    for word in words {
        match word {
            Derived::Area => columns.area = true,
            Derived::Length => columns.length = true,
            Derived::Centroid => columns.centroid = true,
            Derived::Country => columns.country = true,
            Derived::Names => columns.names = true,
            Derived::H3(resolution) => columns.h3 |= 1 << resolution,
        }
    }
    columns
}

fn is_geoparquet(name: &str) -> bool {
    matches!(name.to_ascii_lowercase().as_str(), "geoparquet" | "parquet")
}

fn parse_version(text: &str) -> Result<GeoParquetVersion, String> {
    match text {
        "1.1" | "1.1.0" => Ok(GeoParquetVersion::V1),
        "2.0" | "2.0.0" => Ok(GeoParquetVersion::V2),
        _ => Err("expected 1.1 or 2.0".into()),
    }
}

/// Returns the format and the compression that `format` names. Without `format`, the ending of the file name determines
/// both.
pub(super) fn format_of(
    session: &Session,
    format: Option<&str>,
    path: &Path,
) -> Result<(FeatureFormat, TextCompression)> {
    const EXPECTED: &str =
        "geojson, geojsonseq, csv, text or pg, also with .gz, .bz2 or .zst; or geoparquet";
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
        None if session.conventions.needs_format => {
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
        None => Err(anyhow!(gdal_format_error(ending, path).unwrap_or(problem))),
    }
}

/// Returns the error message for a format that GDAL writes from GeoJSON, with the commands to run; `None` for another
/// format.
fn gdal_format_error(name: &str, path: &Path) -> Option<String> {
    let (format, ending) = match name {
        "fgb" | "flatgeobuf" => ("FlatGeobuf", "fgb"),
        "gpkg" | "geopackage" => ("GeoPackage", "gpkg"),
        _ => return None,
    };
    let stem = match path.file_stem() {
        Some(_) if path.as_os_str() != "-" => path.with_extension("").display().to_string(),
        _ => "OUT".to_owned(),
    };
    Some(format!(
        "{format} is written by GDAL: `pbfhogg export FILE -o {stem}.geojsonseq && ogr2ogr {stem}.{ending} \
         {stem}.geojsonseq` (each tag is a column: choose some with --properties)"
    ))
}

fn set_format_option(
    session: &Session,
    format: &mut FeatureFormat,
    name: &str,
    value: &str,
) -> Result<()> {
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
        ("geometry", FeatureFormat::Csv { has_geometry }) => {
            *has_geometry = match value {
                "wkt" => true,
                "point" => false,
                _ => bail!("{name}={value}: expected point or wkt"),
            };
        }
        ("print_record_separator" | "tags_type" | "geometry", _) => {}
        _ if session.conventions.ignores_unknown_options => {}
        _ => bail!(
            "'{name}' is not an option of a format: known are print_record_separator, tags_type, geometry"
        ),
    }
    Ok(())
}

/// Returns the SQL statements that create a table for the rows and load them.
pub fn sql_statements(features: &FeatureOptions, tags: TagColumn, path: &Path) -> String {
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
