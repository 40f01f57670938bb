use super::args::{OutputArgs, RunArgs, parse_time};
use super::{Answer, show};
use crate::commands::time_filter::{self, When};
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Get the objects that existed at a time, or in a period, from a history file
///
/// With one TIME (default: now) the output is a plain file without deleted objects. With two it is a history file, which
/// also has the deleted versions. A version is valid until the next version of the object; a version without a time is
/// valid from the start.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg time-filter berlin.osh.pbf 2016 -o berlin-2016.osm.pbf
  pbfhogg time-filter --locations-on-ways berlin.osh.pbf 2016 -o berlin-2016-located.osm.pbf
  pbfhogg time-filter berlin.osh.pbf 2016 2017 -o berlin-in-2016.osh.pbf")]
pub struct Args {
    /// Input file; - is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// The time, or the first of two: 2016-01-01T00:00:00Z, 2016-01-01, 2016-01, 2016 (the first moment of a day, month
    /// or year, in UTC), or seconds since 1970 [default: now]
    #[arg(value_name = "TIME")]
    from: Option<String>,
    /// The end of the period: versions that are valid only from then on are left out
    #[arg(value_name = "END")]
    until: Option<String>,
    /// Put the locations that nodes had at the TIME into ways
    #[arg(long, conflicts_with = "until")]
    locations_on_ways: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(args: &Args) -> Result<Answer> {
    let ctx = args.run.context();
    let options = time_filter::Options {
        input: args.input.clone(),
        output: args.output.options()?,
        when: when(args)?,
        locations_on_ways: args.locations_on_ways,
    };
    let kept = time_filter::run(&options, &ctx)?;
    args.run.report(&ctx, &kept, &options.output.target, || {
        format!(
            "{}: {}, {}\n",
            options.output.target.path().display(),
            show::objects(kept.written.objects),
            show::bytes(kept.written.bytes),
        )
    })
}

fn when(args: &Args) -> Result<When> {
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
