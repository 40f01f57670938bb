use super::args::{RunArgs, Stdout, region, text_target};
use super::{Answer, show};
use crate::commands::augmented_diff::{self, Options, Output, Selection, Summary};
use crate::osm::ObjectExpression;
use crate::runtime::Context;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// Write what changes do to a file: each object before and after them, with its geometry
///
/// The result has an action for each object of the changes, and for each way and relation that they concern although it
/// has no new version: ways of which a node has changed, and relations of which a member has changed or moved. It is
/// XML as other programs for OpenStreetMap read it (.adiff).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg augmented-diff malta.osm.pbf day.osc.gz -o day.adiff
  pbfhogg augmented-diff --direct-only malta.osm.pbf 4711.osc.gz 4712.osc.gz -o two.adiff.gz
  pbfhogg augmented-diff --split malta.osm.pbf minute.osc.gz -o changesets")]
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
    /// Write a file for each changeset, CHANGESET.adiff, in the directory that -o names
    ///
    /// A changeset whose file is there is continued: an object that comes again keeps its first old state, and gets the
    /// last new state. Each changeset is compared with the state right before its own changes.
    #[arg(long, conflicts_with = "overwrite")]
    split: bool,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    run: RunArgs,
}

/// The actions to write.
#[derive(Debug, clap::Args)]
pub struct SelectionArgs {
    /// Leave out ways and relations that have no change of their own
    #[arg(long)]
    direct_only: bool,
    /// Write only objects that share a point with this box, before or after: min_lon,min_lat,max_lon,max_lat
    #[arg(
        short,
        long,
        value_name = "BOX",
        allow_hyphen_values = true,
        conflicts_with = "polygon"
    )]
    bbox: Option<String>,
    /// Write only objects that share a point with a polygon of this file, before or after: GeoJSON, .poly, or OSM
    #[arg(short, long, value_name = "FILE")]
    polygon: Option<PathBuf>,
    /// Write only objects that match EXPRESSION before or after, as in tags-filter; repeatable
    #[arg(long, value_name = "EXPRESSION", value_parser = ObjectExpression::parse)]
    filter: Vec<ObjectExpression>,
    /// Write relations with more than N members without the geometry of their members
    #[arg(long, value_name = "N")]
    max_relation_members: Option<u64>,
}

impl SelectionArgs {
    fn selection(&self, ctx: &Context) -> Result<Selection> {
        let region = region(self.bbox.as_deref(), self.polygon.as_deref(), ctx)?;
        Ok(Selection::default()
            .direct_only(self.direct_only)
            .region(region)
            .filter(self.filter.clone())
            .max_relation_members(self.max_relation_members))
    }
}

impl Args {
    fn output(&self) -> Result<Output> {
        if !self.split {
            return Ok(Output::Xml(text_target(&self.output, self.overwrite)));
        }
        if self.output == Path::new("-") {
            bail!("--split writes many files: -o names their directory");
        }
        Ok(Output::ByChangeset(self.output.clone()))
    }
}

pub fn run(args: &Args) -> Result<Answer> {
    let ctx = args.run.context();
    let options = Options::new(&args.base, args.changes.clone(), args.output()?);
    let options = options.selection(args.selection.selection(&ctx)?);
    let summary = augmented_diff::run(&options, &ctx)?;
    let stdout = Stdout::free_if(args.output != Path::new("-"));
    args.run.report(&ctx, &summary, stdout, || report(&summary))
}

fn report(summary: &Summary) -> String {
    let mut text = format!(
        "{} created, {} modified, {} deleted, {} concerned by them\n",
        show::number(summary.created),
        show::number(summary.modified),
        show::number(summary.deleted),
        show::counted(summary.indirect, "object"),
    );
    if let Some(changesets) = summary.changesets {
        text += &format!("  {}\n", show::counted(changesets, "changeset"));
    }
    for (count, cause) in [
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
            summary.without_geometry,
            "relations with more than --max-relation-members: written without the geometry of their members",
        ),
    ] {
        if count > 0 {
            text += &format!("  {} {cause}\n", show::number(count));
        }
    }
    text
}
