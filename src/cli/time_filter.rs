use super::args::{OutputArgs, RunArgs, parse_time};
use super::session::Session;
use super::{CommandAnswer, show};
use crate::commands::time_filter::{self, When};
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Get the objects that existed at a time, or during a period, from a history file
///
/// With TIME alone (default: now), the output is a normal file without deleted objects. With TIME and END, it is a
/// history file, which also contains deleted versions. A version is valid until the next version of the object; a
/// version without a timestamp is valid from the beginning.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg time-filter berlin.osh.pbf 2016 -o berlin-2016.osm.pbf
  pbfhogg time-filter --locations-on-ways berlin.osh.pbf 2016 -o berlin-2016-located.osm.pbf
  pbfhogg time-filter berlin.osh.pbf 2016 2017 -o berlin-in-2016.osh.pbf")]
pub struct Args {
    /// Input file; - is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// The time, or the start of the period, such as 2016-01-01T00:00:00Z or 2016-01 [default: now]
    ///
    /// 2016-01-01, 2016-01 and 2016 stand for the first moment of the day, month or year, in UTC. A number with nine or
    /// more digits is in seconds since 1970.
    #[arg(value_name = "TIME")]
    from: Option<String>,
    /// The end of the period: versions that became valid at or after END are left out
    #[arg(value_name = "END")]
    until: Option<String>,
    /// Add the locations that nodes had at TIME to ways
    #[arg(long, conflicts_with = "until")]
    locations_on_ways: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let ctx = args.run.context(session);
    let options = time_filter::Options {
        input: args.input.clone(),
        output: args.output.options(session)?,
        when: parse_time_or_period(args)?,
        locations_on_ways: args.locations_on_ways,
        accepts_changes: session.conventions.filters_changes_as_data,
    };
    if args.locations_on_ways && matches!(options.when, When::Between(..)) {
        bail!("--locations-on-ways needs a single time: in a period, nodes have several places");
    }
    let kept = time_filter::run(&options, &ctx)?;
    session.report_output(&args.run, &ctx, &kept, &options.output.target, || {
        show::objects_and_size(&kept.written)
    })
}

/// Returns the time or the period that the arguments give.
fn parse_time_or_period(args: &Args) -> Result<When> {
    let from = match &args.from {
        Some(text) => parse_time(text)?,
        None => SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() as i64,
    };
    match args.until.as_deref().map(parse_time).transpose()? {
        Some(until) if until < from => bail!("the second time lies before the first"),
        Some(until) if until > from => Ok(When::Between(from, until)),
        _ => Ok(When::At(from)),
    }
}
