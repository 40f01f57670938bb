//! The command that runs after each update of a file.
//!
//! A record beside the file names the step before the file is replaced. It is removed when the command has succeeded.
//! Until then, the next update begins with the command: if the command fails, or if the machine fails after the file was
//! replaced, neither the command nor the outputs that it reads are lost.

use super::position::Position;
use super::{AugmentedDiff, Goal, Options, ReportedState, Summary};
use crate::commands::augmented_diff::Output as Augmented;
use crate::error::{Error, ErrorKind, Result};
use crate::io::{FileLock, Output, OutputTarget, open_kept};
use crate::runtime::Context;
use crate::system;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A command that runs after the file was replaced.
///
/// The command gets these variables: `PBFHOGG_FILE` is the path of the updated file, `PBFHOGG_SERVER` the URL of the
/// server, `PBFHOGG_SEQUENCE` and `PBFHOGG_TIMESTAMP` are the state of the file, and `PBFHOGG_SEQUENCE_BEFORE` and
/// `PBFHOGG_TIMESTAMP_BEFORE` its state before the update. `PBFHOGG_AUGMENTED_DIFF` and `PBFHOGG_EXPIRED_TILES` are the
/// paths of these outputs, if there are any. Its standard input is empty.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Exec {
    /// The command line, which `sh` runs, or `cmd` on Windows.
    pub command: OsString,
    /// Whether the command writes to standard output of this process. Otherwise, its standard output goes to standard
    /// error.
    pub uses_stdout: bool,
}

impl Exec {
    /// A command whose standard output goes to standard error.
    pub fn new(command: impl Into<OsString>) -> Self {
        Self {
            command: command.into(),
            uses_stdout: false,
        }
    }
}

setters!(Exec { uses_stdout: bool });

/// The result of a command that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Executed {
    /// The exit status of the command; `None` if a signal ended it.
    pub status: Option<i32>,
    /// Whether the next update of the file begins with the command, because the command failed.
    pub is_pending: bool,
}

impl Executed {
    /// Fails with an error of the kind [`ErrorKind::Command`] if the command failed. `file` is the updated file.
    pub fn check(self, file: &Path) -> Result<()> {
        let cause = match self.status {
            Some(0) => return Ok(()),
            Some(status) => format!("exit status {status}"),
            None => "a signal".to_owned(),
        };
        let cause =
            format!("the file was updated, but the command after the update ended with {cause}");
        let error = Error::file_of(file, ErrorKind::Command, cause);
        Err(if self.is_pending {
            error.advise("the next update with --exec begins with the command")
        } else {
            error
        })
    }
}

/// An update of a file from one state to another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct UpdateStep {
    server: String,
    before: ReportedState,
    after: ReportedState,
}

impl UpdateStep {
    fn of(summary: &Summary) -> Self {
        Self {
            server: summary.server.clone(),
            before: summary.before.clone(),
            after: summary.after.clone(),
        }
    }
}

/// The command of a run, with the file that it follows.
pub(super) struct FollowUp<'o> {
    options: &'o Options,
    exec: &'o Exec,
    /// The path of the written file.
    written: &'o Path,
    /// The path of the record; `None` if the update does not replace the file that it reads, so that the next update
    /// repeats the step as a whole.
    record: Option<PathBuf>,
}

impl<'o> FollowUp<'o> {
    /// Returns `None` if the options have no command, or if no file is written.
    pub(super) fn of(options: &'o Options) -> Option<Self> {
        let Goal::File(output) = &options.goal else {
            return None;
        };
        let written = output.target.path();
        Some(Self {
            options,
            exec: options.exec.as_ref()?,
            written,
            record: record_of(&options.file, written),
        })
    }

    /// Runs the command for the last update of the file, if it has not succeeded yet. Returns `None` otherwise.
    ///
    /// # Errors
    ///
    /// The command fails. The file may not be updated then: the outputs that the command reads would be replaced.
    pub(super) fn catch_up(&self, position: &Position) -> Result<Option<Executed>> {
        let Some(step) = self.recorded()? else {
            return Ok(None);
        };
        if !position.is_at(&step.after) {
            // The run ended before it replaced the file, or the file has been replaced since.
            self.remove_record();
            return Ok(None);
        }
        let executed = self.run(&step)?;
        executed.check(self.written)?;
        Ok(Some(executed))
    }

    /// Records the step of an update, before the file is replaced.
    pub(super) fn begin(&self, summary: &Summary) -> Result<()> {
        let Some(path) = &self.record else {
            return Ok(());
        };
        let text = serde_json::to_vec(&UpdateStep::of(summary));
        let text = text.map_err(|error| Error::Internal(error.to_string()))?;
        let (output, file) = Output::create(OutputTarget::File {
            path: path.clone(),
            overwrite: true,
        })?;
        system::write(&file, &text).map_err(|error| Error::io(path, "cannot write", error))?;
        output.commit()
    }

    /// Removes the record after a failed update, unless the file was replaced all the same.
    pub(super) fn withdraw(&self, summary: &Summary, ctx: &Context) {
        let position = Position::of(&self.options.file, ctx);
        if position.is_ok_and(|position| !position.is_at(&summary.after)) {
            self.remove_record();
        }
    }

    /// Runs the command after the file was replaced. The lock on the replaced file must be released before. Returns
    /// `None` if another run has locked the new file, and so has begun with the command.
    pub(super) fn run_after(&self, summary: &Summary, ctx: &Context) -> Result<Option<Executed>> {
        let lock = FileLock::of(&self.options.file);
        if self.record.is_some()
            && let Err(error @ Error::File { .. }) = &lock
        {
            ctx.warn(format!("{error}: it runs the command"));
            return Ok(None);
        }
        self.run(&UpdateStep::of(summary)).map(Some)
    }

    /// Runs the command, and removes the record if it succeeds.
    fn run(&self, step: &UpdateStep) -> Result<Executed> {
        let (shell, flag) = if cfg!(windows) {
            ("cmd", "/C")
        } else {
            ("sh", "-c")
        };
        let mut command = Command::new(shell);
        command
            .arg(flag)
            .arg(&self.exec.command)
            .stdin(Stdio::null());
        if !self.exec.uses_stdout {
            command.stdout(std::io::stderr());
        }
        for (name, value) in self.variables(step) {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let status = command.status();
        let status = status.map_err(|error| Error::io(Path::new(shell), "cannot run", error))?;
        if status.success() {
            self.remove_record();
        }
        Ok(Executed {
            status: status.code(),
            is_pending: !status.success() && self.record.is_some(),
        })
    }

    /// Returns the variables that the command gets. Those without a value are removed.
    fn variables(&self, step: &UpdateStep) -> [(&'static str, Option<OsString>); 8] {
        let output = |has_tiles: bool| {
            let mut outputs = self.options.augmented_diffs.iter();
            let output = outputs.find(|output| output.has_tiles() == has_tiles);
            output.and_then(AugmentedDiff::path).map(absolute_path)
        };
        let number = |state: &ReportedState| OsString::from(state.sequence.to_string());
        let time = |state: &ReportedState| OsString::from(&state.timestamp);
        [
            ("PBFHOGG_FILE", Some(absolute_path(self.written))),
            ("PBFHOGG_SERVER", Some(OsString::from(&step.server))),
            ("PBFHOGG_SEQUENCE", Some(number(&step.after))),
            ("PBFHOGG_TIMESTAMP", Some(time(&step.after))),
            ("PBFHOGG_SEQUENCE_BEFORE", Some(number(&step.before))),
            ("PBFHOGG_TIMESTAMP_BEFORE", Some(time(&step.before))),
            ("PBFHOGG_AUGMENTED_DIFF", output(false)),
            ("PBFHOGG_EXPIRED_TILES", output(true)),
        ]
    }

    /// Reads the record. Returns `None` if there is none.
    fn recorded(&self) -> Result<Option<UpdateStep>> {
        let Some(path) = &self.record else {
            return Ok(None);
        };
        let mut text = Vec::new();
        if let Some(file) = open_kept(path)? {
            /// The maximum length of a record in bytes.
            const MAX_LEN: u64 = 1 << 20;
            let read = file.take(MAX_LEN).read_to_end(&mut text);
            read.map_err(|error| Error::io(path, "cannot read", error))?;
        }
        Ok(serde_json::from_slice(&text).ok())
    }

    /// Removes the record. If this fails, the command may run once more.
    fn remove_record(&self) {
        if let Some(path) = &self.record {
            let _ = fs::remove_file(path);
        }
    }
}

impl AugmentedDiff {
    /// Whether the output has tiles instead of actions.
    const fn has_tiles(&self) -> bool {
        matches!(self, Self::OfRun(Augmented::Tiles { .. }))
    }

    /// The path of the file or the directory; `None` for a stream.
    fn path(&self) -> Option<&Path> {
        match self {
            Self::ByChangeFile(directory) | Self::OfRun(Augmented::ByChangeset(directory)) => {
                Some(directory)
            }
            Self::OfRun(output) => match output.target() {
                Some(OutputTarget::File { path, .. }) => Some(path),
                _ => None,
            },
        }
    }
}

/// Returns the absolute path of a file, for a command that may change its directory.
fn absolute_path(path: &Path) -> OsString {
    let absolute = std::path::absolute(path);
    absolute
        .unwrap_or_else(|_| path.to_owned())
        .into_os_string()
}

/// Returns the path of the record for an update that replaces `file`. Returns `None` if it writes another file.
fn record_of(file: &Path, written: &Path) -> Option<PathBuf> {
    let real = file.canonicalize().ok()?;
    if written.canonicalize().ok()? != real {
        return None;
    }
    let mut name = OsString::from(".");
    name.push(real.file_name()?);
    name.push(".pbfhogg-exec");
    Some(real.with_file_name(name))
}
