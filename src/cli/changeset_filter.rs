use super::args::{OutputArgs, RunArgs, parse_time};
use super::session::Session;
use super::{CommandAnswer, show};
use crate::commands::changeset_filter::{self, Criteria};
use crate::geometry::parse_corners;
use anyhow::Result;
use std::path::PathBuf;

/// Copy the changesets that match all criteria
///
/// Input and output are changeset files, as OSM XML or OPL, plain or compressed. Without criteria, all changesets are
/// copied.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg changeset-filter changesets.osm.bz2 -u somebody -o theirs.osm
  pbfhogg changeset-filter changesets.osm.bz2 --with-discussion -a 2026 -f opl
  pbfhogg changeset-filter changesets.osm.bz2 -B 13,52,14,53 -o berlin-changesets.osm.gz")]
pub struct Args {
    /// Input file; - is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Only changesets that were closed at TIME or later, or are still open
    ///
    /// TIME is 2016-01-01T00:00:00Z, 2016-01-01, 2016-01 or 2016.
    #[arg(short, long, value_name = "TIME")]
    after: Option<String>,
    /// Only changesets that were opened at TIME or earlier
    #[arg(short, long, value_name = "TIME")]
    before: Option<String>,
    /// Only changesets whose bounding box overlaps min_lon,min_lat,max_lon,max_lat, or any two opposite corners
    #[arg(short = 'B', long, value_name = "BOX", allow_hyphen_values = true)]
    bbox: Option<String>,
    /// Only changesets with changes
    #[arg(short = 'c', long, conflicts_with = "without_changes")]
    with_changes: bool,
    /// Only changesets without changes
    #[arg(short = 'C', long)]
    without_changes: bool,
    /// Only changesets with comments
    #[arg(short = 'd', long, conflicts_with = "without_discussion")]
    with_discussion: bool,
    /// Only changesets without comments
    #[arg(short = 'D', long)]
    without_discussion: bool,
    /// Only changesets that are still open
    #[arg(long, conflicts_with = "closed")]
    open: bool,
    /// Only changesets that are closed
    #[arg(long)]
    closed: bool,
    /// Only changesets of the user with this name
    #[arg(short, long, value_name = "USER")]
    user: Option<String>,
    /// Only changesets of the user with this id
    #[arg(short = 'U', long, value_name = "UID")]
    uid: Option<i64>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    run: RunArgs,
}

impl Args {
    fn criteria(&self) -> Result<Criteria> {
        let either = |yes: bool, no: bool| (yes || no).then_some(yes);
        Ok(Criteria {
            after: self.after.as_deref().map(parse_time).transpose()?,
            before: self.before.as_deref().map(parse_time).transpose()?,
            bbox: self
                .bbox
                .as_deref()
                .map(parse_corners)
                .transpose()
                .map_err(anyhow::Error::msg)?,
            has_changes: either(self.with_changes, self.without_changes),
            has_discussion: either(self.with_discussion, self.without_discussion),
            is_open: either(self.open, self.closed),
            user: self.user.clone(),
            uid: self.uid,
        })
    }
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let ctx = args.run.context(session);
    let output = args.output.options(session)?;
    let options = changeset_filter::Options::new(&args.input, output).criteria(args.criteria()?);
    let written = changeset_filter::run(&options, &ctx)?;
    session.report_output(&args.run, &ctx, &written, &options.output.target, || {
        format!(
            "{}, {}",
            show::counted(written.objects.unwrap_or(0), "changeset"),
            show::bytes(written.bytes),
        )
    })
}
