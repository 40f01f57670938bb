use super::args::{RunArgs, Stdout, parse_percent, parse_size};
use super::extract::{StrategyArgs, configured_strategy};
use super::session::Session;
use super::update::{WebArgs, servers};
use super::{CommandAnswer, show};
use crate::commands::PlanetStep;
use crate::commands::regions::{
    self, FollowedRegion, MAX_SHRINK, Options, RegionChanges, RunOutcome, Summary,
};
use crate::commands::update::{self, Goal};
use crate::engine::OutputOptions;
use crate::file::WriteOptions;
use crate::pbf::Compression;
use crate::region_file::{ConfigExtract, read_config_with_stand_in, read_shape};
use crate::{Context, Error};
use anyhow::Result;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Keep extracts of many regions up to date: an extract server
///
/// Cuts all regions of a configuration (see extract -c) out of PLANET. Each region NAME gets NAME.osm.pbf, its polygon
/// NAME.poly, and NAME-updates with a change file for each run that finds a newer PLANET: what enters the region is in
/// it with all that completes it, and what leaves is deleted. If a web server publishes DIRECTORY, NAME-updates is a
/// replication server for `update` and other programs. index.html and index.json list the regions.
///
/// The first run makes the regions; each later one brings them forward: with --update and --changes by the changes
/// alone, which takes less time, and otherwise out of PLANET. A region in which something is wrong stays as it is. Exit
/// status: 0 all regions have the data of PLANET; 1 some do not; 2 an error; 4 another run is at work on DIRECTORY. A
/// run that was killed leaves each region as before or after it, and the next run goes on.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg regions planet.osm.pbf -c regions.json -d /srv/regions
  pbfhogg regions --update planet.osm.pbf -c regions.json -d /srv/regions --base-url https://example.org/regions
  pbfhogg regions planet.osm.pbf --changes day.osc.gz -c regions.json -d /srv/regions
  pbfhogg regions planet.osm.pbf -c tiles.json -d tiles --keep 60

regions.json, with all forms of regions:
  {\"extracts\": [
    {\"output\": \"fiji.osm.pbf\", \"bbox\": [177, -20, -178, -12]},
    {\"output\": \"europe/berlin.osm.pbf\", \"relation\": 62422, \"strategy\": \"smart\"},
    {\"output\": \"coast.osm.pbf\", \"polygon\": {\"file_name\": \"coast.geojson\"}},
    {\"grid\": {\"zoom\": 10, \"bbox\": [4, 57, 32, 72]}}]}")]
pub struct Args {
    /// The file with the data of all regions, whose header has its time
    #[arg(value_name = "PLANET")]
    planet: PathBuf,
    /// The regions and their names, as for extract
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    #[command(flatten)]
    strategy: StrategyArgs,
    /// Directory of all files, which is made if it does not exist
    #[arg(short, long, value_name = "DIRECTORY")]
    directory: PathBuf,
    /// First bring PLANET up to date, as `update` does
    #[arg(long)]
    update: bool,
    /// First apply these change files to PLANET, in place
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "update")]
    changes: Vec<PathBuf>,
    /// With --update: the server of PLANET [default: the one in its header]
    #[arg(long, value_name = "URL", requires = "update")]
    server: Vec<String>,
    /// URL of DIRECTORY, so that the header of an extract names its change files
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Remove change files that are older than DAYS [default: none]
    #[arg(long, value_name = "DAYS")]
    keep: Option<u32>,
    /// Publish only change files; the extracts, from which they are derived, are hidden
    #[arg(long)]
    diffs_only: bool,
    /// Keep the old extract if the new one is smaller by more than PERCENT, or has no objects
    #[arg(long, value_name = "PERCENT", default_value_t = MAX_SHRINK, value_parser = parse_percent())]
    max_shrink: u8,
    /// Compression of new blobs: none, zlib[:1-12], zstd[:1-22] or lz4 [default: zlib:6]
    #[arg(long, value_name = "KIND[:LEVEL]")]
    compression: Option<Compression>,
    /// Maximum memory, such as 8G; the planet is read several times if necessary
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_memory: Option<u64>,
    /// With --update: maximum age of PLANET in days
    #[arg(long, value_name = "DAYS", default_value_t = 90, requires = "update")]
    max_age: u32,
    #[command(flatten)]
    web: WebArgs,
    #[command(flatten)]
    run: RunArgs,
}

impl Args {
    /// Reads the regions of the configuration.
    fn regions(&self, session: &Session, ctx: &Context) -> Result<Vec<FollowedRegion>> {
        // A region whose boundary is broken at the moment must not stop the update of the other regions. It keeps the
        // polygon in the .poly file of an earlier run.
        let stand_in = |output: &Path, cause: String| {
            let poly = self.directory.join(output);
            let poly = poly.with_extension("").with_extension("poly");
            let Ok(shape) = read_shape(&poly, None) else {
                return Err(cause);
            };
            let (output, poly) = (output.display(), poly.display());
            ctx.warn(format!(
                "extract {output}: {cause}: the region stays that of {poly}"
            ));
            Ok(shape)
        };
        let corners = session.conventions.corners;
        let config =
            read_config_with_stand_in(&self.config, &self.planet, corners, &stand_in, ctx)?;
        let regions = config.extracts.into_iter();
        regions.map(|extract| self.region(extract, ctx)).collect()
    }

    /// Converts an extract of the configuration to a region. Fails if the extract has settings that regions do not
    /// support.
    fn region(&self, extract: ConfigExtract, ctx: &Context) -> Result<FollowedRegion> {
        let output = extract.output.display().to_string();
        let about = |cause: String| {
            let cause = format!("extract {output}: {cause}");
            Error::file(&self.config, cause)
        };
        if let Some(warning) = &extract.warning {
            ctx.warn(about(warning.clone()).to_string());
        }
        if extract.output_format.is_some() || !extract.output_header.is_empty() {
            let cause = "regions are PBF, and have headers of their own: leave out output_format and output_header";
            return Err(about(cause.into()).into());
        }
        let Some(name) = output.strip_suffix(".osm.pbf") else {
            return Err(about("the name of the file has to end with .osm.pbf".into()).into());
        };
        Ok(FollowedRegion {
            name: name.to_owned(),
            strategy: configured_strategy(&extract).map_err(about)?,
            shape: extract.shape,
        })
    }

    /// Brings the planet up to date, and returns what changed.
    fn advance_planet(&self, ctx: &Context) -> Result<Option<PlanetStep>> {
        if self.update {
            return self.update_planet(ctx);
        }
        if self.changes.is_empty() {
            return Ok(None);
        }
        let (step, _) = PlanetStep::apply(&self.planet, self.changes.clone(), ctx)?;
        Ok(Some(step))
    }

    fn update_planet(&self, ctx: &Context) -> Result<Option<PlanetStep>> {
        let output = OutputOptions::file(&self.planet).overwrite();
        let options = update::Options::new(&self.planet, Goal::File(output))
            .servers(servers(&self.server))
            .max_age(i64::from(self.max_age) * 86_400)
            .first_pause(self.web.first_pause())
            .patience(self.web.patience());
        let files = self.web.files(&self.server)?;
        let (summary, step) = update::run_with_step(&options, &files, ctx)?;
        if !summary.is_current {
            ctx.warn(format!(
                "{}: the file has the data of {}, and its server that of {}",
                self.planet.display(),
                summary.after.timestamp,
                summary.newest.timestamp
            ));
        }
        Ok(step)
    }
}

/// Returns a line for each region that the run has changed or could not change, and a line with the counts of all
/// regions.
fn report(summary: &Summary) -> String {
    let mut out = String::new();
    for region in &summary.regions {
        let what = match (region.outcome, &region.cause) {
            (RunOutcome::Unchanged, _) => continue,
            // A warning has already given the cause.
            (_, Some(_)) => "not published".to_owned(),
            (_, None) => {
                let changes = region.changes.map(|changes| {
                    let RegionChanges {
                        created,
                        modified,
                        deleted,
                    } = changes;
                    format!(
                        ", {} created, {} modified, {} deleted",
                        show::number(created),
                        show::number(modified),
                        show::number(deleted)
                    )
                });
                let cut_out = region.cut_out.as_ref();
                let cut_out = cut_out.map(|reason| format!("; cut out: {reason}"));
                format!(
                    "{}, {}{}{}",
                    region.sequence.unwrap_or_default(),
                    show::bytes(region.bytes.unwrap_or_default()),
                    changes.unwrap_or_else(|| ", new".to_owned()),
                    cut_out.unwrap_or_default()
                )
            }
        };
        let _ = writeln!(out, "{}: {what}", region.name);
    }
    let of = |outcome, word: &str| {
        let count = summary.count(outcome);
        (count > 0).then(|| format!("{} {word}", show::number(count)))
    };
    let counts = [
        of(RunOutcome::Created, "new"),
        of(RunOutcome::Updated, "updated"),
        of(RunOutcome::Unchanged, "unchanged"),
        of(RunOutcome::Withheld, "withheld"),
        of(RunOutcome::Failed, "failed"),
    ];
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    let regions = show::counted(summary.regions.len() as u64, "region");
    let time = &summary.timestamp;
    let _ = writeln!(out, "{regions} of {time}: {}", counts.join(", "));
    out
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let ctx = args.run.context(session);
    let step = args.advance_planet(&ctx)?;
    let write = WriteOptions {
        compression: args.compression.unwrap_or_default(),
        is_compression_explicit: args.compression.is_some(),
        ..WriteOptions::default()
    };
    let regions = args.regions(session, &ctx)?;
    let options = Options::new(&args.planet, &args.directory, regions)
        .base_url(args.base_url.clone())
        .strategy(args.strategy.strategy()?)
        .keep_days(args.keep)
        .diffs_only(args.diffs_only)
        .max_shrink(args.max_shrink)
        .write(write)
        .max_memory(args.max_memory)
        .antimeridian(session.conventions.antimeridian)
        .step(step);
    let summary = regions::run(&options, &ctx)?;
    session.report(&args.run, &ctx, &summary, Stdout::Answer, || {
        report(&summary)
    })?;
    Ok(CommandAnswer::yes_if(summary.is_complete()))
}
