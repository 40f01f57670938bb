use super::add_locations_to_ways::parse_index_type;
use super::args::{RunArgs, names, parse_size};
use super::session::Session;
use super::{CommandAnswer, show};
use crate::commands::build_geocode_index::{self, COARSE_SEARCH_RADIUS, SEARCH_RADIUS};
use crate::commands::geocode;
use crate::engine::IndexType;
use crate::error::FileResult;
use crate::geocode::QueryOptions;
use crate::osm::{Location, format_e7};
use anyhow::{Result, bail};
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Build an index of addresses, streets and areas, for looking up places
///
/// The index is a directory, which `pbfhogg geocode` reads. A file whose ways have locations is read only once.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg build-geocode-index berlin.osm.pbf --output-dir berlin-index
  pbfhogg build-geocode-index planet.osm.pbf --output-dir planet-index --max-memory 8G -O
  pbfhogg geocode berlin-index 52.5163 13.3777")]
pub struct BuildArgs {
    /// Input file; - is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Directory for the index; created if it does not exist
    #[arg(short = 'o', long, alias = "output", value_name = "DIR")]
    output_dir: PathBuf,
    /// Replace an existing index; running programs use the old one until they open the index again
    #[arg(short = 'O', long, alias = "force", overrides_with = "overwrite")]
    overwrite: bool,
    /// Maximum distance in metres at which an address counts as the address of a place
    #[arg(long, value_name = "METRES", default_value_t = SEARCH_RADIUS, value_parser = parse_radius)]
    search_radius: f64,
    /// Maximum distance in metres at which the nearest address and the nearest street are found
    #[arg(long, value_name = "METRES", default_value_t = COARSE_SEARCH_RADIUS, value_parser = parse_radius)]
    coarse_search_radius: f64,
    /// Maximum number of corners of an area, for a smaller index; simplified areas are listed [default: no limit]
    #[arg(long, value_name = "N")]
    max_admin_vertices: Option<usize>,
    /// Index type for the locations of nodes: auto, dense, sparse or external
    #[arg(short, long, value_name = "TYPE", default_value = "auto", value_parser = parse_index_type)]
    index_type: IndexType,
    /// Directory for temporary files [default: the directory of the index]
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,
    /// Maximum memory for locations, such as 8G [default: a sixteenth of the file size, from 1G to 8G]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_memory: Option<u64>,
    /// The cell levels that other tools' geocode indexes have
    ///
    /// Accepted for compatibility, without effect: this index uses a tree of boxes.
    #[arg(long, value_name = "N", hide = true)]
    street_level: Option<u8>,
    #[arg(long, value_name = "N", hide = true)]
    coarse_level: Option<u8>,
    #[arg(long, value_name = "N", hide = true)]
    admin_level: Option<u8>,
    #[command(flatten)]
    run: RunArgs,
}

fn parse_origin(text: &str) -> Result<String, String> {
    let origin = geocode::parse_origin(text).map(str::to_owned);
    origin.ok_or_else(|| "expected *, null or an origin such as https://maps.example.com".into())
}

/// Parses two column numbers, counted from 1. Returns the indices of the columns, counted from 0.
fn parse_columns(text: &str) -> Result<[usize; 2], String> {
    let number = |text: &str| text.trim().parse::<usize>().ok()?.checked_sub(1);
    let numbers = text.split_once(',');
    let numbers = numbers.and_then(|(lat, lon)| Some([number(lat)?, number(lon)?]));
    let numbers = numbers.filter(|[lat, lon]| lat != lon);
    numbers.ok_or_else(|| "expected the numbers of the columns LAT,LON, such as 3,2".into())
}

fn parse_radius(text: &str) -> Result<f64, String> {
    let radius = text.parse::<f64>().ok();
    let radius = radius.filter(|radius| (0.0..=50_000.0).contains(radius));
    radius.ok_or_else(|| "expected metres from 0 to 50000".into())
}

pub fn build(session: &Session, args: &BuildArgs) -> Result<CommandAnswer> {
    let ctx = args.run.context(session);
    names::directory("an index is a directory").check_name(session, &args.output_dir)?;
    let levels = [args.street_level, args.coarse_level, args.admin_level];
    if levels.iter().any(Option::is_some) {
        ctx.warn(
            "--street-level, --coarse-level and --admin-level have no effect: the index is a tree of boxes, \
             which fit the data at every level",
        );
    }
    let options = build_geocode_index::Options::new(&args.input, &args.output_dir)
        .overwrite(args.overwrite)
        .search_radius(args.search_radius)
        .coarse_search_radius(args.coarse_search_radius)
        .max_area_vertices(args.max_admin_vertices)
        .index_type(args.index_type)
        .temp_dir(args.temp_dir.clone())
        .max_memory(args.max_memory);
    let summary = build_geocode_index::run(&options, &ctx)?;
    session.report(&args.run, &ctx, &summary, super::args::Stdout::Free, || {
        build_report(&args.output_dir, &summary)
    })
}

/// Returns the report about a new index as text: its size, its counts, and what was left out.
fn build_report(directory: &Path, summary: &build_geocode_index::Summary) -> String {
    let mut out = format!("{}: {}\n", directory.display(), show::bytes(summary.bytes));
    for (name, count) in &summary.counts {
        let _ = writeln!(out, "  {name}: {}", show::number(*count));
    }
    if !summary.simplified.is_empty() {
        let count = summary.simplified.len() as u64;
        let _ = writeln!(
            out,
            "  {} with fewer corners:",
            show::counted(count, "area")
        );
        for area in &summary.simplified {
            let _ = writeln!(out, "    {area}");
        }
    }
    if summary.incomplete > 0 {
        let _ = writeln!(
            out,
            "  {} left out: not valid, or a part of them is not in the file",
            show::counted(summary.incomplete, "area")
        );
    }
    if summary.not_interpolated > 0 {
        let _ = writeln!(
            out,
            "  {} without numbers between the nodes: too many nodes, or too many numbers",
            show::counted(summary.not_interpolated, "interpolation way")
        );
    }
    if summary.long_tags > 0 {
        let _ = writeln!(
            out,
            "  {} left out: longer than 255 characters",
            show::counted(summary.long_tags, "tag")
        );
    }
    out
}

/// Look up what is at a place: the address, the street, the areas
///
/// A place is a latitude and a longitude, in this order, as two words or as one: 52.5163,13.3777. Without a place,
/// places are read from a file or from standard input, one per line, and answered in order.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg geocode berlin-index 52.5163 13.3777
  pbfhogg geocode berlin-index 52.5163 13.3777 --json --lang de,en
  pbfhogg geocode berlin-index 52.5163,13.3777
  pbfhogg geocode berlin-index < points.txt > addresses.txt
  pbfhogg geocode berlin-index --csv customers.csv > customers-with-addresses.csv
  pbfhogg geocode berlin-index --serve 127.0.0.1:8080

Places on standard input or in a file: latitude and longitude, separated by a space, a comma, a semicolon or a \
tab, or JSON objects with the members lat and lon. Tables with more columns need a first line with \
column names (lat and lon, latitude and longitude, or y and x), or the option --columns. A line \
that is not a place is answered with an error on the same line of the output.

The service answers /reverse?lat=52.5163&lon=13.3777&format=jsonv2 like other geocoders (formats \
json, jsonv2, geojson, geocodejson, xml; parameters zoom, addressdetails, accept-language), \
/geocode?lat=…&lon=… like --json, and /health. A rebuilt index is used at once. SIGTERM stops the \
service.")]
pub struct Args {
    /// Directory of the index
    #[arg(value_name = "INDEX")]
    index: PathBuf,
    /// Latitude in degrees, or LAT,LON; or a file with places, which gets --csv if its name ends in .csv or .tsv
    #[arg(value_name = "LAT", allow_negative_numbers = true)]
    lat: Option<String>,
    /// Longitude in degrees
    #[arg(value_name = "LON", allow_negative_numbers = true)]
    lon: Option<String>,
    /// Print everything that is known about the place, as JSON
    #[arg(long)]
    json: bool,
    /// Append the answers as further columns to the lines of a table, all of which get the same number of columns
    #[arg(long, conflicts_with_all = ["json", "lon", "serve"])]
    csv: bool,
    /// Column numbers of the latitude and the longitude, counted from 1, such as 3,2
    /// [default: the columns named lat and lon, latitude and longitude, or y and x]
    #[arg(long, value_name = "LAT,LON", conflicts_with_all = ["lon", "serve"], value_parser = parse_columns)]
    columns: Option<[usize; 2]>,
    /// Languages for names, comma-separated, preferred language first
    #[arg(long, value_name = "LANGUAGES", value_delimiter = ',')]
    lang: Vec<String>,
    /// Answer only the first N places
    #[arg(long, value_name = "N", conflicts_with = "lon")]
    limit: Option<u64>,
    /// Run an HTTP service: /reverse for programs, and a map for people
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["lat", "json", "lang"])]
    serve: Option<String>,
    /// Maximum number of connections at a time; another one waits one second, then gets status 503
    #[arg(long, value_name = "N", default_value_t = geocode::MAX_CONNECTIONS, requires = "serve",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_connections: u32,
    /// Seconds within which a request must arrive, and within which a client must accept more of a response
    #[arg(long, value_name = "SECONDS", default_value_t = geocode::TIMEOUT.as_secs(), requires = "serve",
          value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Allow web pages of ORIGIN (scheme and host) to use the service; * allows all pages
    /// [default: none; --cors without ORIGIN: *]
    #[arg(long, value_name = "ORIGIN", num_args = 0..=1, default_missing_value = "*", requires = "serve",
          value_parser = parse_origin)]
    cors: Option<String>,
    /// Worker threads; 0 uses all cores
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    jobs: usize,
}

fn warn_about_swapped_coordinates(session: &Session, summary: &geocode::Summary) {
    if summary.exchanged > 0 {
        let [lat, lon] = summary.columns;
        session.print_to_stderr(&format!(
            "pbfhogg: warning: line {}: this place is outside of the index, and inside with latitude and longitude \
             exchanged ({} like it): --columns {},{} exchanges them\n",
            summary.first_exchanged,
            show::counted(summary.exchanged, "line"),
            lon + 1,
            lat + 1,
        ));
    }
}

impl Args {
    /// Whether the command runs as a service, which handles signals itself.
    pub const fn is_service(&self) -> bool {
        self.serve.is_some()
    }
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let jobs = match args.jobs {
        0 => std::thread::available_parallelism().map_or(1, Into::into),
        jobs => jobs,
    };
    if let Some(address) = &args.serve {
        let options = geocode::ServeOptions::new(&args.index, address)
            .jobs(jobs)
            .max_connections(args.max_connections)
            .timeout(Duration::from_secs(args.timeout))
            .cors(args.cors.clone());
        geocode::serve(&options, &|line| eprintln!("pbfhogg: {line}"))?;
        return Ok(CommandAnswer::Yes);
    }
    let options = geocode::Options::new(&args.index)
        .query(QueryOptions {
            languages: QueryOptions::parse_languages(&args.lang.join(",")),
            ..QueryOptions::default()
        })
        .is_json(args.json)
        .is_csv(args.is_csv())
        .columns(args.columns)
        .limit(args.limit)
        .jobs(jobs);
    match args.parse_or_open_places()? {
        GivenPlaces::One(place) => {
            let (answer, is_exchanged) = geocode::at(&options, place)?;
            if is_exchanged {
                let [lat, lon] = [place.lon_e7(), place.lat_e7()].map(format_e7);
                session.print_to_stderr(&format!(
                    "pbfhogg: warning: this place is outside of the index, and inside with latitude and longitude \
                     exchanged: did you mean {lat} {lon}?\n"
                ));
            }
            session.print(&(answer + "\n"))?;
        }
        GivenPlaces::Lines(name, input) => {
            let options = options.name(name);
            let summary = geocode::run(&options, input, std::io::stdout())?;
            warn_about_swapped_coordinates(session, &summary);
        }
    }
    Ok(CommandAnswer::Yes)
}

/// The places to look up.
enum GivenPlaces {
    One(Location),
    /// The name of an input with a place on each line, and the input.
    Lines(PathBuf, Box<dyn Read>),
}

impl Args {
    /// Whether answers are appended to the lines of a table. This is so with --csv. It is also so if the name of the
    /// input ends in .csv or .tsv and --json is not given.
    fn is_csv(&self) -> bool {
        let ending = self
            .lat
            .as_ref()
            .and_then(|path| Path::new(path).extension());
        let is_table = ending.is_some_and(|ending| ending == "csv" || ending == "tsv");
        self.csv || is_table && self.lon.is_none() && !self.json
    }

    /// Parses the place on the command line, or opens the input with places. Fails if the arguments are neither a place
    /// nor the path of an input.
    fn parse_or_open_places(&self) -> Result<GivenPlaces> {
        let Some(lat) = &self.lat else {
            return Ok(GivenPlaces::Lines(
                "-".into(),
                Box::new(std::io::stdin().lock()),
            ));
        };
        let text = match &self.lon {
            Some(lon) => format!("{lat} {lon}"),
            None => lat.clone(),
        };
        let path = Path::new(&text);
        match geocode::parse_place(&text) {
            Ok(_) if self.csv || self.columns.is_some() || self.limit.is_some() => {
                bail!(
                    "{text}: --csv, --columns and --limit are for a file or standard input, not for one place"
                )
            }
            Ok(place) => Ok(GivenPlaces::One(place)),
            Err(_) if text == "-" => Ok(GivenPlaces::Lines(
                text.into(),
                Box::new(std::io::stdin().lock()),
            )),
            Err(_)
                if self.lon.is_none() && (path.exists() || text.contains(char::is_alphabetic)) =>
            {
                let file = File::open(path).for_path(path, "cannot open")?;
                Ok(GivenPlaces::Lines(text.into(), Box::new(file)))
            }
            Err(cause) => bail!("{text}: {cause}; the order is LAT LON, as in 52.5163 13.3777"),
        }
    }
}
