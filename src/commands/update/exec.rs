//! The command that runs after each update of a file.
//!
//! Before an update replaces the file, it writes a record beside the file. The record has the states before and after
//! the update, and the paths of the outputs. The record is removed when the command has succeeded. Until then, the
//! command is pending. The next update with a command begins with the pending command. Thus the command is not lost if
//! it fails, or if the machine fails after the file was replaced. The outputs that the command reads are not lost
//! either. An update without a command keeps the record. The next update with a command then runs the command once for
//! all updates since the recorded state.

use super::position::{FilePosition, HeaderState};
use super::record::{Record, UpdateStep};
use super::{AugmentedDiff, Goal, Options, ReportedState, Summary};
use crate::commands::augmented_diff::Output as Augmented;
use crate::error::{Advice, Error, ErrorKind, FileResult, Result};
use crate::io::{FileLock, OutputTarget};
use crate::osm::format_timestamp;
use crate::runtime::Context;
use serde::Serialize;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

options! {
    /// A command that runs after the file was replaced.
    ///
    /// The command gets these environment variables: `PBFHOGG_FILE` is the path of the updated file, and
    /// `PBFHOGG_SERVER` is the URL of the server. `PBFHOGG_SEQUENCE` and `PBFHOGG_TIMESTAMP` are the state of the file.
    /// `PBFHOGG_SEQUENCE_BEFORE` and `PBFHOGG_TIMESTAMP_BEFORE` are its state before the update.
    /// `PBFHOGG_AUGMENTED_DIFF` is the path of the augmented diff, and `PBFHOGG_EXPIRED_TILES` is the path of the list
    /// of expired tiles. These two are set only if the run that updated the file wrote the output. A variable whose
    /// value is not known is not set. The standard input of the command is empty.
    pub struct Exec {
        /// The command line for `sh`, or for `cmd` on Windows.
        pub command: OsString,
    }
    new(command: impl Into<OsString>);
    setters {
        /// Whether the command writes to standard output of this process. Otherwise, its standard output goes to
        /// standard error.
        uses_stdout: bool,
    }
}

/// The result of a command that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Executed {
    /// The exit status of the command; `None` if a signal ended it.
    pub status: Option<i32>,
    /// Whether the command failed and is pending. The next update of the file that has a command begins with the
    /// pending command.
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
            error.advise(Advice::PendingCommand)
        } else {
            error
        })
    }
}

/// The sequence number and the time of a state; `None` if unknown.
type Stated = [Option<OsString>; 2];

/// Returns the sequence number and the time of a known state.
fn sequence_and_timestamp(state: &ReportedState) -> Stated {
    let number = state.sequence.to_string();
    [Some(number.into()), Some(OsString::from(&state.timestamp))]
}

/// The known facts about the update that a command follows.
struct Followed {
    server: Option<OsString>,
    before: Stated,
    after: Stated,
    augmented_diff: Option<OsString>,
    expired_tiles: Option<OsString>,
}

impl From<UpdateStep> for Followed {
    fn from(step: UpdateStep) -> Self {
        Self {
            server: Some(step.server.into()),
            before: sequence_and_timestamp(&step.before),
            after: sequence_and_timestamp(&step.after),
            augmented_diff: step.augmented_diff,
            expired_tiles: step.expired_tiles,
        }
    }
}

impl Followed {
    /// Returns the facts about all updates from `before` to the state in a header. There are no outputs that describe
    /// all of these updates.
    fn of_updates_since(header: &HeaderState, before: Stated) -> Self {
        let number = header.sequence.map(|sequence| sequence.to_string().into());
        let time = header.timestamp.map(|time| format_timestamp(time).into());
        Self {
            server: header.url.as_ref().map(OsString::from),
            before,
            after: [number, time],
            augmented_diff: None,
            expired_tiles: None,
        }
    }

    /// Returns the variables that the command gets. Variables without a value are removed from its environment.
    fn variables(self) -> [(&'static str, Option<OsString>); 7] {
        let [sequence_before, timestamp_before] = self.before;
        let [sequence, timestamp] = self.after;
        [
            ("PBFHOGG_SERVER", self.server),
            ("PBFHOGG_SEQUENCE", sequence),
            ("PBFHOGG_TIMESTAMP", timestamp),
            ("PBFHOGG_SEQUENCE_BEFORE", sequence_before),
            ("PBFHOGG_TIMESTAMP_BEFORE", timestamp_before),
            ("PBFHOGG_AUGMENTED_DIFF", self.augmented_diff),
            ("PBFHOGG_EXPIRED_TILES", self.expired_tiles),
        ]
    }
}

/// The command of a run, and the file whose update it follows.
pub(super) struct FollowUp<'o> {
    options: &'o Options,
    exec: &'o Exec,
    /// The path of the written file.
    written: &'o Path,
    /// The record; `None` if the update does not replace the file that it reads.
    record: Option<Record>,
}

impl<'o> FollowUp<'o> {
    /// Returns the command of a run; `None` if the options have no command, or if no file is written.
    pub(super) fn of(options: &'o Options) -> Option<Self> {
        let Goal::File(output) = &options.goal else {
            return None;
        };
        let written = output.target.path();
        Some(Self {
            options,
            exec: options.exec.as_ref()?,
            written,
            record: Record::for_replaced_file(&options.file, written),
        })
    }

    /// Runs the command if it is pending. Returns `None` otherwise.
    ///
    /// # Errors
    ///
    /// The command fails. In this case, the caller must not update the file: an update would replace the outputs that
    /// the command reads.
    fn run_pending(&self, position: &FilePosition, ctx: &Context) -> Result<Option<Executed>> {
        let Some(record) = &self.record else {
            return Ok(None);
        };
        let followed = match record.read()? {
            None => return Ok(None),
            Some(Ok(step)) => self.followed_update(step, position, ctx),
            Some(Err(error)) => {
                let damage = record.damage_message(&error);
                ctx.warn(format!(
                    "{damage}: the command runs for the present state of the file, and the record is removed when \
                     it succeeds"
                ));
                Some(Followed::of_updates_since(
                    &position.header,
                    Stated::default(),
                ))
            }
        };
        let Some(followed) = followed else {
            record.remove();
            return Ok(None);
        };
        let executed = self.run(followed)?;
        executed.check(self.written)?;
        Ok(Some(executed))
    }

    /// Returns the facts about the update that the command has to follow. `step` is the recorded step. Returns `None`
    /// if the file was not updated: the run that recorded the step ended before it replaced the file.
    fn followed_update(
        &self,
        step: UpdateStep,
        position: &FilePosition,
        ctx: &Context,
    ) -> Option<Followed> {
        if position.is_at(&step.after) {
            return Some(step.into());
        }
        if step.is_not_applied_to(position) {
            return None;
        }
        ctx.warn(format!(
            "{}: the file was replaced again after its update from sequence number {} to {}, and its command was \
             pending: the command runs once for all that has happened since {}, without the paths of outputs",
            self.written.display(),
            step.before.sequence,
            step.after.sequence,
            step.before.sequence,
        ));
        let before = sequence_and_timestamp(&step.before);
        Some(Followed::of_updates_since(&position.header, before))
    }

    /// Returns the step of an update of a file whose state was `position`.
    fn step(&self, summary: &Summary, position: &FilePosition) -> UpdateStep {
        let output = |has_tiles: bool| {
            let mut outputs = self.options.augmented_diffs.iter();
            let output = outputs.find(|output| output.has_tiles() == has_tiles);
            output.and_then(AugmentedDiff::path).map(absolute_path)
        };
        UpdateStep {
            server: summary.server.clone(),
            replaced: position.header.clone(),
            before: summary.before.clone(),
            after: summary.after.clone(),
            augmented_diff: output(false),
            expired_tiles: output(true),
        }
    }

    /// Records the step of an update, before the file is replaced.
    pub(super) fn record_step(&self, summary: &Summary, position: &FilePosition) -> Result<()> {
        let Some(record) = &self.record else {
            return Ok(());
        };
        record.write(&self.step(summary, position))
    }

    /// Removes the record after a failed update, unless the update has replaced the file.
    pub(super) fn discard_record_after_failure(&self, summary: &Summary, ctx: &Context) {
        let position = FilePosition::read(&self.options.file, ctx);
        if let Some(record) = &self.record
            && position.is_ok_and(|position| !position.is_at(&summary.after))
        {
            record.remove();
        }
    }

    /// Runs the command after the file was replaced. `position` is the state of the old file, whose lock must have been
    /// released. Returns `None` if another run has locked the new file, or has taken over the step. The other run then
    /// runs the command, or the command stays pending.
    pub(super) fn run_after_update(
        &self,
        summary: &Summary,
        position: &FilePosition,
        ctx: &Context,
    ) -> Result<Option<Executed>> {
        let step = self.step(summary, position);
        let Some(record) = &self.record else {
            return self.run(step.into()).map(Some);
        };
        let file = &self.options.file;
        ctx.debug(format!("{}: replaced; the command follows", file.display()));
        // Other runs can begin and end before the new file is locked. They may have changed the record, so the record
        // is compared with the step.
        let lock = FileLock::acquire(file);
        if let Err(error @ Error::File { .. }) = &lock {
            ctx.warn_with_advice(
                format!("{error}: the command is left to it"),
                Advice::LeaveCommandToNext,
            );
            return Ok(None);
        }
        let recorded = record.read().ok().flatten();
        if !recorded.is_some_and(|recorded| recorded.is_ok_and(|recorded| recorded == step)) {
            ctx.warn(format!(
                "{}: another run has begun after this update, and the command was left to it",
                file.display()
            ));
            return Ok(None);
        }
        let followed = match FilePosition::read(file, ctx) {
            Ok(position) => self.followed_update(step, &position, ctx),
            Err(_) => Some(step.into()),
        };
        followed.map(|followed| self.run(followed)).transpose()
    }

    /// Runs the command, and removes the record if it succeeds.
    fn run(&self, followed: Followed) -> Result<Executed> {
        let (shell, flag) = if cfg!(windows) {
            ("cmd", "/C")
        } else {
            ("sh", "-c")
        };
        let mut command = Command::new(shell);
        command
            .arg(flag)
            .arg(&self.exec.command)
            .env("PBFHOGG_FILE", absolute_path(self.written))
            .stdin(Stdio::null());
        if !self.exec.uses_stdout {
            command.stdout(std::io::stderr());
        }
        for (name, value) in followed.variables() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let status = command.status().for_path(Path::new(shell), "cannot run")?;
        if let Some(record) = &self.record
            && status.success()
        {
            record.remove();
        }
        Ok(Executed {
            status: status.code(),
            is_pending: !status.success() && self.record.is_some(),
        })
    }
}

/// Runs the pending command of a file before its update. If the options have no command, warns if a command is pending.
pub(super) fn run_pending_or_warn(
    follow_up: Option<&FollowUp<'_>>,
    options: &Options,
    position: &FilePosition,
    ctx: &Context,
) -> Result<Option<Executed>> {
    if let Some(follow_up) = follow_up {
        return follow_up.run_pending(position, ctx);
    }
    warn_of_pending_command(options, position, ctx);
    Ok(None)
}

/// Warns if a command is pending, before an update without a command. Removes the record if the run that wrote it ended
/// before it replaced the file. Otherwise keeps the record.
fn warn_of_pending_command(options: &Options, position: &FilePosition, ctx: &Context) {
    let Goal::File(output) = &options.goal else {
        return;
    };
    let Some(record) = Record::for_replaced_file(&options.file, output.target.path()) else {
        return;
    };
    let message = match record.read() {
        Ok(None) => return,
        Ok(Some(Ok(step))) if step.is_not_applied_to(position) => return record.remove(),
        Ok(Some(Ok(step))) => format!(
            "{}: the command after the update from sequence number {} to {} is pending",
            options.file.display(),
            step.before.sequence,
            step.after.sequence,
        ),
        Ok(Some(Err(error))) => record.damage_message(&error),
        Err(error) => error.to_string(),
    };
    ctx.warn_with_advice(message, Advice::PendingRecord(record.path.clone()));
}

impl AugmentedDiff {
    /// Whether the output has tiles instead of actions.
    const fn has_tiles(&self) -> bool {
        matches!(self, Self::OfRun(Augmented::Tiles { .. }))
    }

    /// Returns the path of the file or the directory; `None` for a stream.
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
