//! Where a file stands, and the lock that keeps two runs apart.

use super::Options;
use crate::error::{Error, Result};
use crate::file::{ElementReader, PbfFile};
use crate::pbf::{Element, feature};
use crate::replication::{Ladder, State};
use crate::runtime::Context;
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

/// The seconds that changes may take until they are published: data may lack changes that are older than its newest object.
const PUBLICATION: i64 = 3600;

/// A lock on a file, until it is dropped or the process ends.
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Locks a file. Fails if another process has locked it, or has replaced it meanwhile.
    pub(super) fn of(path: &Path) -> Result<Self> {
        let failed = |error| Error::io(path, "cannot open", error);
        let file = open_to_lock(path).map_err(failed)?;
        let busy = "another update of this file is running";
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::file(path, busy)),
            Err(TryLockError::Error(error)) => return Err(Error::io(path, "cannot lock", error)),
        }
        match is_at(&file, path).map_err(failed)? {
            true => Ok(Self { _file: file }),
            false => Err(Error::file(path, busy)),
        }
    }
}

/// Opens what is locked: the file itself.
#[cfg(unix)]
fn open_to_lock(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Opens what is locked: a file beside the file, because a locked file cannot be read on Windows.
#[cfg(windows)]
fn open_to_lock(path: &Path) -> io::Result<File> {
    // The file may have several paths.
    let path = path.canonicalize()?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    File::create(path.with_file_name(format!(".{name}.pbfhogg-lock")))
}

/// Whether a locked file is still the one at `path`.
#[cfg(unix)]
fn is_at(locked: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (locked, named) = (locked.metadata()?, path.metadata()?);
    Ok((locked.dev(), locked.ino()) == (named.dev(), named.ino()))
}

/// Whether a locked file is still the one for `path`: always, because it is never replaced.
#[cfg(windows)]
fn is_at(_: &File, path: &Path) -> io::Result<bool> {
    path.metadata().map(|_| true)
}

/// Where a file stands, as its header says.
pub(super) struct Position {
    pub url: Option<String>,
    sequence: Option<i64>,
    timestamp: Option<i64>,
    /// Whether its ways have the locations of their nodes.
    pub has_locations: bool,
}

impl Position {
    pub(super) fn of(path: &Path, ctx: &Context) -> Result<Self> {
        let header = PbfFile::open(path, ctx)?.header;
        if header.has(feature::HISTORY) {
            let cause = "this is a history file, which update cannot bring up to date; `pbfhogg apply-changes -H` adds \
                         the versions of change files";
            return Err(Error::file(path, cause));
        }
        Ok(Self {
            has_locations: header.has(feature::LOCATIONS),
            url: header.replication_url,
            sequence: header.replication_sequence,
            timestamp: header.replication_timestamp,
        })
    }

    /// The state of the finest server that the file has.
    pub(super) fn state(
        &self,
        options: &Options,
        ladder: &Ladder<'_>,
        ctx: &Context,
    ) -> Result<State> {
        let (server, _) = ladder.finest();
        let is_known =
            self.url.as_deref().map(|url| url.trim_end_matches('/')) == Some(server.base());
        match (self.sequence.filter(|_| is_known), self.timestamp) {
            (Some(sequence), Some(timestamp)) => Ok(State {
                sequence,
                timestamp,
            }),
            (Some(sequence), None) => {
                let state = server.state(sequence)?;
                state.ok_or_else(|| {
                    let cause = format!(
                        "the server has no state with the sequence number {sequence} of the header"
                    );
                    Error::file(&options.file, cause)
                })
            }
            (None, Some(timestamp)) => Ok(State {
                timestamp,
                ..ladder.state_at(timestamp)?
            }),
            (None, None) => ladder.state_at(newest_object(&options.file, ctx)? - PUBLICATION),
        }
    }
}

/// The timestamp of the newest object of a file.
fn newest_object(path: &Path, ctx: &Context) -> Result<i64> {
    let reader = ElementReader::with_context(path, ctx.clone())?;
    let timestamp = |element: Element<'_>| element.info().timestamp;
    let newest =
        reader.par_map_reduce(timestamp, || None, |one: Option<i64>, other| one.max(other))?;
    newest.ok_or_else(|| {
        let cause = "neither the header nor the objects say how old the data is; set it with `pbfhogg cat \
                     --output-header osmosis_replication_timestamp=2026-11-20T00:00:00Z`";
        Error::file(path, cause)
    })
}
