use super::args::{
    FormatKind, JsonForm, RunArgs, Stdout, WriteArgs, kind_of_name, names, parse_duration,
    parse_size, parse_time,
};
use super::augmented_diff::{self, EffectArgs};
use super::session::Session;
use super::tags_edit::read_rules;
use super::update_report::{UpdatedFile, print_error_event, print_event_list};
use super::{CommandAnswer, message, show, signals};
use crate::commands::augmented_diff::is_replaceable;
use crate::commands::extract::Strategy;
use crate::commands::update::{self, AugmentedDiff, Exec, Goal, Options, Summary};
use crate::commands::{apply_changes, cat};
use crate::engine::{Format, OutputOptions};
use crate::formats::{TextCompression, TextFormat};
use crate::geometry::{BoxRegion, parse_box};
use crate::io::{OutputTarget, ScratchDirectory};
use crate::net::{AnyFiles, CookieJar, Credentials, WebFiles};
use crate::region_file::{AreaOfFile, read_area, read_shape};
use crate::replication::End;
use crate::{Context, Error};
use anyhow::{Result, bail};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The servers that `--server planet` stands for.
const PLANET: [&str; 3] = [
    "https://planet.openstreetmap.org/replication/day",
    "https://planet.openstreetmap.org/replication/hour",
    "https://planet.openstreetmap.org/replication/minute",
];

/// Bring a file up to date from a replication server
///
/// Fetches the change files that FILE does not contain yet, and applies them in one step: FILE either stays unchanged
/// or gets the data of one state of the server. The header of FILE records this state and the server. Exit status: 0
/// the file has all changes; 1 more changes are available (see --max-diff-size), or the server is behind the file; 2 an
/// error, and the file is unchanged; 3 the command of --exec failed after the file was updated; 4 another run is
/// replacing the file (see --wait).
///
/// If the ways of FILE have locations, they are kept up to date, as by apply-changes --locations-on-ways. A file that
/// is not in order is sorted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg update berlin.osm.pbf
  pbfhogg update planet.osm.pbf --server planet --cache /var/cache/osm
  pbfhogg update town.osm.pbf --clip town.geojson
  pbfhogg update slim.osm.pbf --edit rules.txt
  pbfhogg update town.osm.pbf --augmented-diff day.parquet --exec 'duckdb town.db < merge.sql'
  pbfhogg update --check berlin.osm.pbf
  pbfhogg update --check --max-behind 2h --json=lines /srv/osm/*.osm.pbf
  pbfhogg update --watch 60 --json=lines berlin.osm.pbf >> events.jsonl
  pbfhogg update --diffs-only berlin.osm.pbf -o since.osc.gz")]
pub struct Args {
    /// The file to update; with --check, several files
    #[arg(value_name = "FILE", required = true)]
    file: Vec<PathBuf>,
    /// Write the result to FILE instead of updating in place
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Server: a URL or directory that contains state.txt, or planet [default: the one in the file's header]
    ///
    /// planet stands for the daily, hourly and minutely changes of planet.openstreetmap.org. Repeat the option for
    /// servers that publish the same changes at different intervals, longest interval first.
    #[arg(long, value_name = "URL")]
    server: Vec<String>,
    /// Keep fetched files in DIRECTORY, so that none is fetched twice
    #[arg(long, value_name = "DIRECTORY")]
    cache: Option<PathBuf>,
    /// Maximum uncompressed size of the changes in one run
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_size)]
    max_diff_size: u64,
    /// Maximum age of the data in days; for older data, changes are not fetched
    #[arg(long, value_name = "DAYS", default_value = "90", value_parser = parse_days)]
    max_age: i64,
    /// Cut the changes to a region: min_lon,min_lat,max_lon,max_lat, a file with a polygon (GeoJSON, .poly or OSM), or
    /// a relation of FILE (r62422)
    ///
    /// Changes of the whole planet add objects outside of an extract, which grows from day to day without --clip. What
    /// FILE has stays, whatever happens to it. Of all other objects, FILE gets nodes in REGION, ways with a node in
    /// REGION and their changed nodes, and relations with a member in FILE. The rest of the changes is cut away and
    /// counted. A relation has to be complete in FILE, and counts as it is before the changes; with --watch, as it is
    /// when the run begins. Out of a larger file, `regions` makes complete extracts.
    #[arg(long, value_name = "REGION", allow_hyphen_values = true)]
    clip: Option<OsString>,
    /// Change the tags of the changes by the rules in RULES, as `tags-edit -e RULES` has changed those of FILE
    #[arg(long, value_name = "RULES", conflicts_with = "check")]
    edit: Option<PathBuf>,
    /// If the ways of FILE have locations: days for which recently changed nodes stay [default: 30]
    ///
    /// A file without the nodes that only ways need gets changed ones for a while, so that ways of later change files
    /// find their locations. 0 keeps no node.
    #[arg(long, value_name = "DAYS", conflicts_with_all = ["check", "diffs_only"])]
    keep_nodes: Option<u32>,
    /// Also write what the changes do: to a file OUT for the whole run, or to a directory OUT for each change file
    ///
    /// A name that ends with .adiff, .geojson, .geojsonseq or .parquet is that of a file, which each run that changes
    /// FILE replaces; one that is no augmented diff only with -O. Any other name is that of a directory. It gets a
    /// file SEQUENCE.adiff for each change file of the last server, and NAME-SEQUENCE.adiff for those of other
    /// servers, after the last part of the server's URL. With --clip, the actions are those in the region. OUT is
    /// complete before FILE is replaced.
    #[arg(long, value_name = "OUT", conflicts_with_all = ["check", "diffs_only"])]
    augmented_diff: Option<PathBuf>,
    #[command(flatten)]
    effects: EffectArgs,
    /// Run CMD in the shell each time that FILE has been replaced, and only then
    ///
    /// CMD runs when FILE and all other outputs are on disk. It gets the variables PBFHOGG_FILE, PBFHOGG_SERVER,
    /// PBFHOGG_SEQUENCE, PBFHOGG_TIMESTAMP, PBFHOGG_SEQUENCE_BEFORE, PBFHOGG_TIMESTAMP_BEFORE, PBFHOGG_AUGMENTED_DIFF
    /// and PBFHOGG_EXPIRED_TILES; the last two are paths. If CMD fails, or if the run ends before CMD does, FILE stays
    /// updated, and a command is pending: the next run with --exec begins with its CMD for the same update, and updates
    /// FILE only if CMD succeeds. A run without --exec warns, updates FILE, and leaves the command pending. CMD then
    /// runs once for all updates since, without the paths.
    #[arg(long, value_name = "CMD", conflicts_with_all = ["check", "diffs_only"])]
    exec: Option<OsString>,
    /// Only print how old each file is and how far behind its server; exit status 1 if one is not current
    #[arg(long, conflicts_with_all = ["output", "clip", "diffs_only", "watch", "expire_tiles", "wait"])]
    check: bool,
    /// With --check: exit status 0 if each file is behind its server by at most TIME, such as 90s, 15min, 2h or 1d
    #[arg(long, value_name = "TIME", requires = "check", value_parser = parse_duration)]
    max_behind: Option<u64>,
    /// Wait at most SECONDS for another run that is replacing the file
    #[arg(long, value_name = "SECONDS", conflicts_with = "diffs_only")]
    wait: Option<u64>,
    /// Write the changes to the change file given with -o, and do not update the file
    ///
    /// The change file is .osc, .osc.gz or .osc.pbf. If FILE has all changes, it has none.
    #[arg(long, requires = "output", conflicts_with_all = ["clip", "watch", "expire_tiles"])]
    diffs_only: bool,
    /// Stop after sequence number N
    #[arg(long, value_name = "N")]
    end_sequence: Option<i64>,
    /// Stop before changes that are newer than TIME
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    end_date: Option<i64>,
    /// Keep updating, with a pause of SECONDS after each update
    ///
    /// With --end-sequence or --end-date, the run ends with status 0 when the file has all changes up to the end.
    #[arg(long, value_name = "SECONDS", conflicts_with = "output", value_parser = clap::value_parser!(u64).range(1..))]
    watch: Option<u64>,
    #[command(flatten)]
    web: WebArgs,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    run: RunArgs,
}

/// Access to web servers.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Access")]
pub struct WebArgs {
    /// File with cookies in the Netscape format, for servers that require a login
    #[arg(long, value_name = "FILE")]
    cookies: Option<PathBuf>,
    /// File with a bearer token for the server, which --server has to name
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Seconds after which a transfer that receives no data fails
    ///
    /// In total, a connection may last this long, plus one second for each 1000 bytes.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        hide_short_help = true
    )]
    timeout: u64,
    /// Milliseconds before the second attempt
    #[arg(long, value_name = "MS", default_value_t = 1000, hide = true)]
    first_pause: u64,
}

/// Returns the URLs of the servers that the values of --server name. The value `planet` alone names three servers.
pub fn servers(given: &[String]) -> Vec<String> {
    match given {
        [planet] if planet == "planet" => PLANET.map(str::to_owned).to_vec(),
        servers => servers.to_vec(),
    }
}

impl Args {
    /// Whether the command runs until a signal ends it.
    pub const fn is_watch(&self) -> bool {
        self.watch.is_some()
    }

    /// Returns the file to update. Fails if there are several.
    fn one_file(&self) -> Result<&Path> {
        match self.file.as_slice() {
            [file] => Ok(file),
            files => bail!(
                "update takes one file, and {} with --check: loop over them, because each has a server of its own",
                show::counted(files.len() as u64, "file")
            ),
        }
    }

    /// Returns the file at `path` as the subject of a report.
    const fn updated_file<'f>(&self, path: &'f Path) -> UpdatedFile<'f> {
        UpdatedFile {
            path,
            is_check: self.check,
        }
    }

    /// Whether a file is as current as --check and --max-behind require.
    fn is_current_enough(&self, summary: &Summary) -> bool {
        let seconds = summary.seconds_behind.unsigned_abs();
        let is_near = self.max_behind.is_some_and(|most| seconds <= most);
        summary.is_current || is_near && !summary.is_server_behind
    }

    /// Returns the output of --diffs-only if it is a change file in PBF; otherwise `None`.
    fn change_pbf_output(&self, session: &Session) -> Result<Option<OutputOptions>> {
        let kind = match &self.write.output_format {
            Some(spec) => spec.kind,
            None => self.output.as_deref().and_then(kind_of_name),
        };
        if !self.diffs_only || !kind.is_some_and(FormatKind::is_change_pbf) {
            return Ok(None);
        }
        self.write.output(session, self.output.as_deref()).map(Some)
    }

    /// Returns the goal that the options set for the update.
    fn goal(&self, session: &Session, file: &Path) -> Result<Goal> {
        let output = match (&self.output, self.diffs_only) {
            _ if self.check => return Ok(Goal::Check),
            (None, _) => self.write.in_place_output(session, file)?,
            (Some(output), false) => self.write.output(session, Some(output))?,
            (Some(output), true) => {
                let output = self.write.output(session, Some(output))?;
                return match output.format {
                    Format::Text(text) if text.format == TextFormat::OsmChange => {
                        Ok(Goal::Changes(output.target, text.compression))
                    }
                    _ => bail!(
                        "--diffs-only writes a change file: name it .osc, .osc.gz or .osc.pbf"
                    ),
                };
            }
        };
        match output.format {
            Format::Pbf => Ok(Goal::File(output)),
            Format::Text(_) => bail!("update writes PBF: give -o a name that ends with .osm.pbf"),
        }
    }

    fn augmented_diffs(&self, session: &Session, file: &Path) -> Result<Vec<AugmentedDiff>> {
        let paths = [&self.augmented_diff, &self.effects.expire_output];
        if paths
            .into_iter()
            .flatten()
            .any(|path| path.as_os_str() == "-")
        {
            bail!("the report of update goes to standard output: name a file or a directory");
        }
        // Without --overwrite, a run that updates a file in place replaces only files that look like outputs of an
        // earlier run. The updated file itself is accepted here. An output with the same path fails later, with the
        // clearer error that this path is an input.
        let may_replace = |path: &Path| {
            let is_earlier = || path == file || is_replaceable(path);
            self.write.overwrite || self.output.is_none() && is_earlier()
        };
        let mut outputs = Vec::new();
        if let Some(path) = &self.augmented_diff {
            let is_file = augmented_diff::is_diff_file_name(path) && !path.is_dir();
            outputs.push(if is_file || self.effects.split {
                AugmentedDiff::OfRun(self.effects.action_output(
                    session,
                    path,
                    may_replace(path),
                )?)
            } else {
                names::check_new_directory(
                    session,
                    path,
                    "--augmented-diff writes a directory of files",
                )?;
                AugmentedDiff::ByChangeFile(path.clone())
            });
        }
        let tiles = self.effects.tile_output(session, may_replace)?;
        outputs.extend(tiles.map(AugmentedDiff::OfRun));
        Ok(outputs)
    }

    /// Returns the command to run after an update; `None` without --exec.
    fn command_after_update(&self, session: &Session) -> Option<Exec> {
        let exec = Exec::new(self.exec.as_ref()?);
        Some(exec.uses_stdout(self.run.json.is_none() && !session.is_call()))
    }

    /// Parses a region, which is a box, the path of a file with a polygon, or the id of an area of the updated `file`.
    fn region(&self, session: &Session, file: &Path, argument: &OsStr) -> Result<BoxRegion> {
        let path = Path::new(argument);
        let corners = argument
            .to_str()
            .filter(|text| text.split(',').count() == 4);
        if let Some(text) = corners.filter(|_| !path.exists()) {
            return Ok(parse_box(text, session.conventions.corners).map_err(Error::Usage)?);
        }
        let shape = match AreaOfFile::of_path(path) {
            Some(area) => read_area(
                file,
                &area,
                session.conventions.antimeridian,
                &self.run.context(session),
            ),
            None => read_shape(path, None),
        };
        Ok(BoxRegion {
            shape: shape?,
            warning: None,
        })
    }

    /// Returns the options for updating `file`, which is one of the files on the command line.
    fn options(&self, session: &Session, file: &Path) -> Result<Options> {
        let goal = self.goal(session, file)?;
        self.options_for(session, file, goal)
    }

    fn options_for(&self, session: &Session, file: &Path, goal: Goal) -> Result<Options> {
        if let Some(cache) = &self.cache {
            names::check_new_directory(session, cache, "--cache is a directory")?;
        }
        let clip = self.clip.as_deref();
        let clip = clip.map(|clip| self.region(session, file, clip));
        let clip = clip.transpose()?;
        if let Some(warning) = clip.as_ref().and_then(|clip| clip.warning.as_ref()) {
            self.run.context(session).warn(warning);
        }
        let end = End {
            sequence: self.end_sequence,
            timestamp: self.end_date,
        };
        Ok(Options::new(file, goal)
            .servers(servers(&self.server))
            .cache(self.cache.clone())
            .max_diff_size(self.max_diff_size)
            .max_age(self.max_age)
            .end(end)
            .clip(clip.map(|clip| (clip.shape, Strategy::default())))
            .edit(self.edit.as_deref().map_or(Ok(Vec::new()), read_rules)?)
            .keep_days(self.keep_nodes.unwrap_or(apply_changes::KEEP_DAYS))
            .augmented_diffs(self.augmented_diffs(session, file)?)
            .exec(self.command_after_update(session))
            .wait(Duration::from_secs(self.wait.unwrap_or(0)))
            .first_pause(self.web.first_pause())
            .patience(self.web.patience()))
    }
}

fn parse_days(text: &str) -> Result<i64, String> {
    let days = text.strip_suffix('d').unwrap_or(text).parse::<u32>();
    let days = days.map_err(|_| format!("'{text}' is not a number of days"))?;
    Ok(i64::from(days) * 86_400)
}

fn parse_moment(text: &str) -> Result<i64, String> {
    parse_time(text).map_err(|error| error.to_string())
}

impl WebArgs {
    /// Creates the access to files and servers for a run. `servers` are the servers that the user names.
    pub fn files(&self, servers: &[String]) -> Result<AnyFiles> {
        // Without --server, the header of the file names the server. Whoever made the file could choose this server, so
        // the token is not sent to it.
        if self.token_file.is_some() && servers.is_empty() {
            bail!(
                "--token-file is for a server that --server names: the token is not sent to one that only the file names"
            );
        }
        let cookies = self.cookies.as_deref().map(CookieJar::read).transpose()?;
        let token = self.token_file.as_deref().map(Credentials::read_token);
        let credentials = Credentials {
            cookies: cookies.unwrap_or_default(),
            token: token.transpose()?,
        };
        Ok(AnyFiles::new(WebFiles::new(
            credentials,
            Some(self.patience()),
        )))
    }

    /// Returns the pause before a second attempt.
    pub const fn first_pause(&self) -> Duration {
        Duration::from_millis(self.first_pause)
    }

    /// Returns the time after which a transfer that receives no data fails.
    pub const fn patience(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let files = args.web.files(&args.server)?;
    if args.check {
        return check(session, args, &files);
    }
    let file = args.one_file()?;
    let updated = match (args.watch, args.change_pbf_output(session)?) {
        (Some(seconds), _) => {
            let options = args.options(session, file)?;
            return watch(
                session,
                args,
                &options,
                &files,
                Duration::from_secs(seconds),
            );
        }
        (None, Some(output)) => write_change_pbf(session, args, file, output, &files),
        (None, None) => {
            let options = args.options(session, file)?;
            let ctx = args.run.context(session);
            update::run(&options, &files, &ctx)
                .map_err(anyhow::Error::from)
                .and_then(|summary| finish(session, args, file, &ctx, &summary))
        }
    };
    if let Err(error) = &updated {
        print_error_event(session, &args.run, file, error)?;
    }
    updated
}

/// Writes the changes that a file lacks to a temporary change file, and converts it to PBF.
fn write_change_pbf(
    session: &Session,
    args: &Args,
    file: &Path,
    output: OutputOptions,
    files: &AnyFiles,
) -> Result<CommandAnswer> {
    let ctx = args.run.context(session);
    let directory = ScratchDirectory::create(None)?;
    let path = directory.path().join("changes.osc");
    let target = OutputTarget::file(&path);
    let goal = Goal::Changes(target, TextCompression::None);
    let options = args.options_for(session, file, goal)?;
    let summary = update::run(&options, files, &ctx)?;
    if path.exists() {
        cat::run(&cat::Options::new(vec![path], output), &ctx)?;
    }
    finish(session, args, file, &ctx, &summary)
}

/// Updates the file repeatedly until a signal arrives, or the end in the options is reached. Returns an error of the
/// first round, because it is likely permanent. Prints an error of a later round, which may be temporary, and
/// continues.
fn watch(
    session: &Session,
    args: &Args,
    options: &Options,
    files: &AnyFiles,
    pause: Duration,
) -> Result<CommandAnswer> {
    let end = signals::catch_end_request()?;
    let (mut is_first, mut was_behind, mut is_ended) = (true, false, false);
    loop {
        let ctx = args.run.context(session);
        let round = update::run(options, files, &ctx).map_err(anyhow::Error::from);
        let round = round.and_then(|summary| {
            let is_news = summary.is_server_behind && !was_behind;
            was_behind = summary.is_server_behind;
            if summary.change_files > 0 || is_news || args.run.json == Some(JsonForm::Lines) {
                finish(session, args, &options.file, &ctx, &summary)?;
            }
            ctx.observer.finished();
            is_ended = summary.is_end_reached;
            // A round may apply only some of the available changes. In that case the next round begins without a
            // pause.
            Ok(summary.is_current || summary.change_files == 0)
        });
        let is_done = match round {
            Ok(is_done) => is_done,
            Err(error) => {
                print_error_event(session, &args.run, &options.file, &error)?;
                if is_first {
                    return Err(error);
                }
                session.print_to_stderr(&format!("pbfhogg: error: {}\n", message(&error)));
                true
            }
        };
        is_first = false;
        if is_ended || end.is_wanted() || is_done && end.wait(pause) {
            return Ok(CommandAnswer::Yes);
        }
    }
}

/// Prints the report. Fails if the command of --exec has failed.
fn finish(
    session: &Session,
    args: &Args,
    file: &Path,
    ctx: &Context,
    summary: &Summary,
) -> Result<CommandAnswer> {
    args.updated_file(file)
        .print(session, &args.run, ctx, summary)?;
    let written = args.output.as_deref().unwrap_or(file);
    summary
        .exec
        .map_or(Ok(()), |executed| executed.check(written))?;
    Ok(CommandAnswer::yes_if(summary.is_current))
}

/// Compares files with their servers. The answer is yes if all files are current or, with --max-behind, not too far
/// behind their servers. With --json, the events of several files are printed as one list. If some files cannot be
/// compared, the other files are still compared, and the last error is returned.
fn check(session: &Session, args: &Args, files: &AnyFiles) -> Result<CommandAnswer> {
    let (mut is_fine, mut failed, mut summaries) = (true, None, Vec::new());
    for file in &args.file {
        let ctx = args.run.context(session);
        let options = args.options(session, file)?;
        match update::run(&options, files, &ctx) {
            Ok(summary) => {
                is_fine &= args.is_current_enough(&summary);
                if args.run.json == Some(JsonForm::Pretty) && args.file.len() > 1 {
                    args.run.end(session, &ctx, Stdout::Answer)?;
                    summaries.push((args.updated_file(file), summary));
                } else {
                    args.updated_file(file)
                        .print(session, &args.run, &ctx, &summary)?;
                }
            }
            Err(error) => {
                let error = error.into();
                print_error_event(session, &args.run, file, &error)?;
                if let Some(before) = failed.replace(error) {
                    session.print_to_stderr(&format!("pbfhogg: error: {}\n", message(&before)));
                }
            }
        }
    }
    if !summaries.is_empty() {
        print_event_list(session, &summaries)?;
    }
    failed.map_or(Ok(CommandAnswer::yes_if(is_fine)), Err)
}
