//! Fetches change files in groups. Each group is read before the next group is fetched.

use crate::error::{Error, Result};
use crate::formats::{ChangeReader, ChangeSet, ChangeState, KeptVersions, Replication, SameTime};
use crate::io::Input;
use crate::osm::format_timestamp;
use crate::replication::{ChangeFile, Ladder, Leg, Server, State};
use crate::runtime::{Context, PhaseLimits, parallel_single_result_phase};
use std::path::{Path, PathBuf};

/// The number of files that are fetched at the same time.
const CONNECTIONS: usize = 4;
/// The maximum number of change files that are fetched before they are read.
const GROUP: u64 = 16;

/// Changes, and the state after them.
pub(super) struct Download {
    pub changes: ChangeSet,
    /// The name of each change file that was read.
    pub names: Vec<String>,
    pub state: State,
    /// The number of change files that were read.
    pub files: u64,
    /// The size in bytes of the compressed change files that were read.
    pub bytes: u64,
    /// Whether all wanted change files were read.
    pub is_complete: bool,
    /// The number of changed versions whose tags were edited by rules; `None` if there are no rules.
    pub edited: Option<u64>,
}

/// Fetches and reads change files.
pub(super) struct Downloader<'d> {
    ladder: &'d Ladder<'d>,
    scratch: PathBuf,
    /// The maximum size of the uncompressed text of all change files, in bytes. The first change file is read whatever
    /// its size.
    limit: u64,
    ctx: &'d Context,
    reader: ChangeReader,
    /// The name of each change file that was read.
    names: Vec<String>,
    text_len: u64,
    files: u64,
    bytes: u64,
}

impl<'d> Downloader<'d> {
    /// Creates a downloader that keeps the versions of changes that `versions` selects. Each fetched change file is in
    /// a temporary file in the directory `scratch` until it has been read.
    pub(super) fn new(
        ladder: &'d Ladder<'d>,
        scratch: PathBuf,
        limit: u64,
        versions: KeptVersions,
        ctx: &'d Context,
    ) -> Self {
        Self {
            ladder,
            scratch,
            limit,
            ctx,
            reader: ChangeReader::new(SameTime::LastRead, versions),
            names: Vec::new(),
            text_len: 0,
            files: 0,
            bytes: 0,
        }
    }

    /// Fetches and reads the change files of `legs`. `start` is the state before them, as a state of the server with
    /// the shortest interval.
    pub(super) fn run(mut self, start: State, legs: &[Leg<'_, '_>]) -> Result<Download> {
        let mut state = start;
        let mut is_complete = true;
        for (number, leg) in legs.iter().enumerate() {
            let is_finest =
                number + 1 == legs.len() && std::ptr::eq(leg.server, self.ladder.finest_server().0);
            let last = self.download_leg(leg)?;
            if last >= leg.first {
                state = self.state_after(leg, last, is_finest, state)?;
            }
            if last < leg.end.sequence {
                is_complete = false;
                break;
            }
        }
        let replication = |state: State| Replication {
            sequence: Some(state.sequence),
            timestamp: Some(state.timestamp),
        };
        let states = ChangeState {
            url: Some(self.ladder.finest_server().0.base().to_owned()),
            before: replication(start),
            after: replication(state),
        };
        Ok(Download {
            changes: self.reader.finish(vec![states], self.ctx),
            names: self.names,
            state,
            files: self.files,
            bytes: self.bytes,
            is_complete,
            edited: None,
        })
    }

    /// Reads the change files of a leg until a file is not available or would exceed the limit. Returns the sequence
    /// number of the last file that was read; `leg.first - 1` if no file was read. Fails if the first file of the whole
    /// download is not available.
    fn download_leg(&mut self, leg: &Leg<'_, '_>) -> Result<i64> {
        let phase = self.ctx.phase("fetch changes", 0);
        let mut last = leg.first - 1;
        let mut group = 1;
        while last < leg.end.sequence {
            let end = leg.end.sequence.min(last + group as i64);
            let files = self.fetch(leg.server, last + 1..=end)?;
            self.ctx.cancellation.check()?;
            let mut inputs = Vec::new();
            for (file, sequence) in files.into_iter().zip(last + 1..) {
                let file = match file
                    .and_then(|file| file.ok_or_else(|| missing_change_file_error(leg, sequence)))
                {
                    Ok(file) => file,
                    Err(error) if self.files == 0 => return Err(error),
                    Err(error) => {
                        self.ctx
                            .warn(format!("{error}; the changes before it are applied"));
                        break;
                    }
                };
                if self.files > 0 && self.text_len + file.text_len > self.limit {
                    break;
                }
                last = file.sequence;
                self.names.push(self.change_file_name(leg.server, last));
                self.files += 1;
                self.bytes += file.len;
                self.text_len += file.text_len;
                phase.advance(file.len);
                let url = leg.server.url_of(file.sequence);
                inputs.push(Input::from_temporary(file.file, Path::new(&url))?);
            }
            self.reader.add(&inputs, self.ctx)?;
            if last < end {
                break;
            }
            // The next group has only as many files as are expected to fit within the limit.
            let mean = self.text_len / self.files.max(1);
            let more = self.limit.saturating_sub(self.text_len) / mean.max(1);
            group = more.clamp(1, GROUP);
        }
        Ok(last)
    }

    /// Returns the name of a change file, which is its sequence number. If its server does not have the shortest
    /// interval, the last part of the server's URL comes before the number.
    fn change_file_name(&self, server: &Server<'_>, sequence: i64) -> String {
        if std::ptr::eq(server, self.ladder.finest_server().0) {
            return sequence.to_string();
        }
        let url = server.base().trim_end_matches('/');
        let name = url.rsplit_once('/').map_or(url, |(_, name)| name);
        format!("{name}-{sequence}")
    }

    /// Fetches change files. Returns the file or the error for each sequence number.
    fn fetch(
        &self,
        server: &Server<'_>,
        sequences: std::ops::RangeInclusive<i64>,
    ) -> Result<Vec<Result<Option<ChangeFile>>>> {
        // `self.limit` applies to the uncompressed text, but `changes` limits the size of the file, which is smaller
        // than its text. The first file is read even if its text exceeds `self.limit`, so at least 1 GiB is allowed.
        let limit = self.limit.max(1 << 30);
        let limits = PhaseLimits {
            jobs: CONNECTIONS,
            ..self.ctx.limits(u64::MAX)
        };
        let mut files = Vec::new();
        parallel_single_result_phase(
            limits,
            sequences.map(Ok),
            |_| 0,
            || (),
            |(), sequence| Ok(server.changes(sequence, limit, &self.scratch)),
            |file| {
                files.push(file);
                Ok(())
            },
        )?;
        Ok(files)
    }

    /// Returns the state of the data after the change file `last` of a leg, as a state of the server with the shortest
    /// interval. `before` is the state before the leg.
    fn state_after(
        &self,
        leg: &Leg<'_, '_>,
        last: i64,
        is_finest: bool,
        before: State,
    ) -> Result<State> {
        let timestamp = if last == leg.end.sequence {
            Some(leg.end.timestamp)
        } else {
            leg.server.time_of(last)?
        };
        let timestamp = timestamp.map(|time| time.max(before.timestamp));
        if is_finest {
            return Ok(State {
                sequence: last,
                timestamp: timestamp.unwrap_or(before.timestamp),
            });
        }
        match timestamp {
            Some(timestamp) => {
                self.ctx.observer.debug(&format!(
                    "{}: up to {}",
                    leg.server.base(),
                    format_timestamp(timestamp)
                ));
                self.ladder.state_at(timestamp)
            }
            None => Ok(before),
        }
    }
}

/// Returns the error for a change file that the server does not have.
fn missing_change_file_error(leg: &Leg<'_, '_>, sequence: i64) -> Error {
    let newest = leg.end.sequence;
    let cause = format!(
        "the server has no change file {sequence}, although it says that it has those up to {newest}"
    );
    Error::file(Path::new(leg.server.base()), cause)
}
