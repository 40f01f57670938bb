use super::args::names::{self, Implied};
use super::args::{RegionArgs, RunArgs, Stdout, is_stdout, parse_size, text_target};
use super::session::Session;
use super::{CommandAnswer, show, wrong_files};
use crate::commands::augmented_diff::{self, MAX_ZOOM, Options, Output, Selection, Summary};
use crate::formats::TextCompression;
use crate::osm::ObjectExpression;
use crate::runtime::Context;
use anyhow::{Result, bail};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Write objects before and after changes, with their geometry
///
/// The result has an action for each object of the changes, and for each way and relation that they concern although it
/// has no new version: ways of which a node has changed, and relations of which a member has changed or moved. It is
/// XML as other programs for OpenStreetMap read it (.adiff), GeoJSON, or a Parquet table.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg augmented-diff malta.osm.pbf day.osc.gz -o day.adiff
  pbfhogg augmented-diff --direct-only malta.osm.pbf 4711.osc.gz 4712.osc.gz -o two.adiff.gz
  pbfhogg augmented-diff --split malta.osm.pbf minute.osc.gz -o changesets
  pbfhogg augmented-diff malta.osm.pbf day.osc.gz -o day.parquet
  pbfhogg augmented-diff --expire-tiles 10-16 malta.osm.pbf day.osc.gz -o tiles.txt")]
pub struct Args {
    /// The file before the changes; - is standard input
    #[arg(value_name = "BASE")]
    base: PathBuf,
    /// Change files, applied in this order
    #[arg(required = true, value_name = "CHANGE")]
    changes: Vec<PathBuf>,
    /// Output file, compressed if its name ends in .gz, .bz2 or .zst; - is standard output
    ///
    /// With --split, the directory of the files.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Replace the output file if it exists
    #[arg(short = 'O', long)]
    overwrite: bool,
    /// Output format: adiff, geojson, geojsonseq, csv or parquet [default: by the name of the output]
    ///
    /// adiff has the old and the new object, with the locations of all nodes of ways and members. The others have a
    /// feature or a row for each object, with the old and the new tags, and the geometries that `export` would write,
    /// of which csv has the middle.
    #[arg(short = 'f', long, value_name = "FORMAT", value_parser = parse_form)]
    format: Option<DiffFormArg>,
    /// Write a file for each changeset, CHANGESET.adiff, in the directory that -o names
    ///
    /// If the file of a changeset exists, it is continued: an object that occurs again keeps its first old state, and
    /// gets the last new state. Each changeset is compared with the state right before its own changes.
    #[arg(long, conflicts_with_all = ["overwrite", "format"])]
    split: bool,
    /// Write the tiles in which the changes can be seen, as lines z/x/y, instead of actions
    ///
    /// ZOOMS is a zoom level, or a range such as 10-16. The tiles are those that an old or a new geometry touches, and
    /// those within an area if it is not too large. A tile server can remove them from its cache.
    #[arg(
        long,
        value_name = "ZOOMS",
        value_parser = parse_zooms,
        conflicts_with_all = ["format", "split"]
    )]
    expire_tiles: Option<Zooms>,
    #[command(flatten)]
    selection: ActionArgs,
    /// Memory for ways that are members of relations; what does not fit goes to a temporary file
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_size)]
    max_memory: u64,
    #[command(flatten)]
    run: RunArgs,
}

/// The actions to write. The region and the expressions look at objects before and after the changes.
#[derive(Debug, clap::Args)]
pub struct ActionArgs {
    /// Leave out ways and relations that have no change of their own
    #[arg(long)]
    direct_only: bool,
    #[command(flatten)]
    region: RegionArgs,
    /// Write only objects that match EXPRESSION before or after, as in tags-filter; repeatable
    #[arg(long, value_name = "EXPRESSION", value_parser = ObjectExpression::parse)]
    filter: Vec<ObjectExpression>,
    /// Write relations with more than N members without the geometry of their members
    #[arg(long, value_name = "N")]
    max_relation_members: Option<u64>,
}

/// The augmented diffs of commands that apply changes, in addition to the option --augmented-diff of these commands.
#[derive(Debug, clap::Args)]
pub struct EffectArgs {
    /// With --augmented-diff: write a file for each changeset, CHANGESET.adiff, to the directory that it names
    ///
    /// The file of a changeset that goes on is continued, as by augmented-diff --split.
    #[arg(long, requires = "augmented_diff")]
    pub split: bool,
    /// Also write the tiles in which the changes can be seen, as lines z/x/y, to the file of --expire-output
    ///
    /// ZOOMS is a zoom level, or a range such as 10-16. The tiles are those of augmented-diff --expire-tiles.
    #[arg(long, value_name = "ZOOMS", value_parser = parse_zooms, requires = "expire_output")]
    expire_tiles: Option<Zooms>,
    /// The file of the tiles; a file of an earlier run is replaced if the data file is replaced
    #[arg(long, value_name = "FILE", requires = "expire_tiles")]
    pub expire_output: Option<PathBuf>,
}

impl EffectArgs {
    /// Returns the output for the actions. `path` names a file or, with --split, a directory.
    pub fn action_output(&self, session: &Session, path: &Path, overwrite: bool) -> Result<Output> {
        if self.split {
            changeset_output(session, path)
        } else {
            single_file_output(session, path, overwrite, None)
        }
    }

    /// Returns the output for the tiles of --expire-tiles; `None` without this option. `may_replace` tells whether a
    /// file at the path of the output may be replaced.
    pub fn tile_output(
        &self,
        session: &Session,
        may_replace: impl Fn(&Path) -> bool,
    ) -> Result<Option<Output>> {
        let (Some(zooms), Some(path)) = (&self.expire_tiles, &self.expire_output) else {
            return Ok(None);
        };
        Ok(Some(Output::Tiles {
            target: text_target(session, path, may_replace(path))?,
            zooms: zooms.clone(),
        }))
    }
}

impl ActionArgs {
    fn selection(&self, session: &Session, base: &Path, ctx: &Context) -> Result<Selection> {
        Ok(Selection::default()
            .direct_only(self.direct_only)
            .region(self.region.region(session, base, ctx)?)
            .filter(self.filter.clone())
            .max_relation_members(self.max_relation_members))
    }
}

/// The form of an augmented diff in one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffFormArg {
    Xml,
    GeoJson,
    GeoJsonSeq,
    Csv,
    Parquet,
}

/// A range of zoom levels.
type Zooms = RangeInclusive<u8>;

/// Parses the name of a form.
pub fn parse_form(text: &str) -> Result<DiffFormArg, String> {
    match text {
        "adiff" => Ok(DiffFormArg::Xml),
        "geojson" => Ok(DiffFormArg::GeoJson),
        "geojsonseq" => Ok(DiffFormArg::GeoJsonSeq),
        "csv" => Ok(DiffFormArg::Csv),
        "parquet" | "geoparquet" => Ok(DiffFormArg::Parquet),
        _ => Err("expected adiff, geojson, geojsonseq, csv or parquet".into()),
    }
}

fn parse_zooms(text: &str) -> Result<Zooms, String> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    match (low.parse(), high.parse()) {
        (Ok(low), Ok(high)) if low <= high && high <= MAX_ZOOM => Ok(low..=high),
        _ => Err(format!(
            "expected a zoom level from 0 to {MAX_ZOOM}, or a range such as 10-16"
        )),
    }
}

/// Returns the form that the ending of a file name asks for. Returns `None` if the ending is not known.
pub fn form_of_name(path: &Path) -> Option<DiffFormArg> {
    let name = path.to_string_lossy().to_ascii_lowercase();
    let (name, _) = TextCompression::split_extension(&name);
    let (_, ending) = name.rsplit_once('.')?;
    parse_form(ending).ok()
}

/// Whether the ending of a path is that of an augmented diff in one file, in any form.
pub fn is_diff_file_name(path: &Path) -> bool {
    form_of_name(path).is_some()
}

/// The rule for the name of an output that is an augmented diff.
const NAMED: Implied<'_> = Implied {
    what: "an augmented diff is XML, GeoJSON, CSV or Parquet",
    endings: &[
        "adiff",
        "xml",
        "geojson",
        "geojsonseq",
        "csv",
        "parquet",
        "geoparquet",
    ],
    may_be_compressed: true,
    advice: "name it .adiff, .geojson, .geojsonseq, .csv or .parquet",
};

/// Whether a file name is that of an augmented diff in XML.
pub fn is_xml_file_name(path: &Path) -> bool {
    let name = path.to_string_lossy().to_ascii_lowercase();
    TextCompression::split_extension(&name)
        .0
        .ends_with(".adiff")
}

/// Returns the output of an augmented diff in one file. The name of the file determines the form unless `form` is
/// given.
pub fn single_file_output(
    session: &Session,
    path: &Path,
    overwrite: bool,
    form: Option<DiffFormArg>,
) -> Result<Output> {
    let target = text_target(session, path, overwrite)?;
    if form.is_none() {
        NAMED.check_name(session, path)?;
    }
    let form = form
        .or_else(|| form_of_name(path))
        .unwrap_or(DiffFormArg::Xml);
    Ok(match form {
        DiffFormArg::Xml => Output::Xml(target),
        DiffFormArg::GeoJson => Output::GeoJson {
            target,
            is_sequence: false,
        },
        DiffFormArg::GeoJsonSeq => Output::GeoJson {
            target,
            is_sequence: true,
        },
        DiffFormArg::Csv => Output::Csv(target),
        DiffFormArg::Parquet => Output::Parquet(target),
    })
}

impl Args {
    fn output(&self, session: &Session) -> Result<Output> {
        if let Some(zooms) = &self.expire_tiles {
            return Ok(Output::Tiles {
                target: text_target(session, &self.output, self.overwrite)?,
                zooms: zooms.clone(),
            });
        }
        if !self.split {
            return single_file_output(session, &self.output, self.overwrite, self.format);
        }
        changeset_output(session, &self.output)
    }
}

/// Returns the output that has a file for each changeset, in a directory.
fn changeset_output(session: &Session, directory: &Path) -> Result<Output> {
    if directory == Path::new("-") {
        bail!("--split writes many files: the output names their directory");
    }
    names::directory("--split writes a directory of files").check_name(session, directory)?;
    Ok(Output::ByChangeset(directory.to_owned()))
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    if let Some(kind) = args.run.input_format {
        kind.check_data(session, "the content of a change file shows its format")?;
    }
    let ctx = args.run.context(session);
    let options = Options::new(&args.base, args.changes.clone(), args.output(session)?);
    let options = options
        .selection(args.selection.selection(session, &args.base, &ctx)?)
        .max_memory(Some(args.max_memory));
    let summary = augmented_diff::run(&options, &ctx);
    let output = (!is_stdout(&args.output)).then_some(args.output.as_path());
    let summary = summary.map_err(|error| {
        wrong_files::explain_augmented_error(
            session,
            error.into(),
            &args.base,
            &args.changes,
            output,
        )
    })?;
    let stdout = Stdout::free_if(!is_stdout(&args.output));
    session.report(&args.run, &ctx, &summary, stdout, || report(&summary))
}

/// Formats the summary of an augmented diff as text.
pub fn report(summary: &Summary) -> String {
    let mut text = format!(
        "{}, {} concerned by them\n",
        show::changes([summary.created, summary.modified, summary.deleted]),
        show::counted(summary.indirect, "object"),
    );
    for (count, unit) in [(summary.files, "changeset"), (summary.tiles, "tile")] {
        if let Some(count) = count {
            text += &format!("  {}\n", show::counted(count, unit));
        }
    }
    for (count, cause) in [
        (summary.new_version_only, "with a new version only"),
        (summary.outdated, "outdated: the base has a newer version"),
        (
            summary.absent,
            "deletions of objects that the base does not have",
        ),
        (
            summary.missing,
            "modifications of objects that the base does not have: written as creations",
        ),
        (
            summary.missing_references,
            "references to nodes whose location is not known",
        ),
        (
            summary.unfilled,
            "geometries too large for all of their tiles to be written: polygons have those of their outline",
        ),
        (
            summary.without_geometry,
            "relations with more than --max-relation-members, or 1,000,000 nodes: written without the geometry of their members",
        ),
    ] {
        if count > 0 {
            text += &format!("  {} {cause}\n", show::number(count));
        }
    }
    text
}
