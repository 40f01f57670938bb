//! The reports of `update`, and its events with `--json=lines`.

use super::args::{JsonForm, RunArgs, Stdout};
use super::session::Session;
use super::{CommandAnswer, message, show, status};
use crate::commands::update::Summary;
use crate::osm::format_timestamp;
use crate::runtime::human_bytes;
use crate::{Context, ErrorKind};
use anyhow::Result;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use std::time::SystemTime;

/// An event of `update`. With --json=lines, an event is printed as one line.
#[derive(Serialize)]
struct UpdateEvent<'a> {
    kind: &'static str,
    /// The time of the event.
    time: String,
    file: String,
    #[serde(flatten)]
    summary: Option<&'a Summary>,
    #[serde(flatten)]
    failure: Option<UpdateFailure>,
}

/// The error that an event reports.
#[derive(Serialize)]
struct UpdateFailure {
    error: String,
    /// The exit status of a run that ends with the error.
    status: u8,
}

impl<'a> UpdateEvent<'a> {
    fn new(kind: &'static str, file: &Path) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            kind,
            time: format_timestamp(now.map_or(0, |now| now.as_secs() as i64)),
            file: file.display().to_string(),
            summary: None,
            failure: None,
        }
    }

    fn from_error(session: &Session, file: &Path, error: &anyhow::Error) -> Self {
        let is_locked = error
            .downcast_ref::<crate::Error>()
            .is_some_and(|error| error.kind() == ErrorKind::Locked);
        let failure = UpdateFailure {
            error: message(error),
            status: status(session.conventions, error),
        };
        Self {
            failure: Some(failure),
            ..Self::new(if is_locked { "locked" } else { "error" }, file)
        }
    }
}

/// The subject of a report: a file, and whether it was only compared with its server.
#[derive(Debug, Clone, Copy)]
pub struct UpdatedFile<'a> {
    pub path: &'a Path,
    pub is_check: bool,
}

impl UpdatedFile<'_> {
    /// Returns the event of a run that has ended without an error.
    fn event(self, summary: &Summary) -> UpdateEvent<'_> {
        let kind = match summary.change_files {
            _ if self.is_check => "check",
            0 => "idle",
            _ => "update",
        };
        UpdateEvent {
            summary: Some(summary),
            ..UpdateEvent::new(kind, self.path)
        }
    }

    /// Prints the report of a run or, with --json=lines, its event.
    pub fn print(
        self,
        session: &Session,
        run: &RunArgs,
        ctx: &Context,
        summary: &Summary,
    ) -> Result<CommandAnswer> {
        let text = || self.text(summary);
        match run.json {
            Some(JsonForm::Lines) => {
                let event = self.event(summary);
                session.report(run, ctx, &event, Stdout::Answer, text)
            }
            _ => session.report(run, ctx, summary, Stdout::Answer, text),
        }
    }

    /// Formats the report for a person.
    fn text(self, summary: &Summary) -> String {
        let (name, after) = (self.path.display(), &summary.after);
        let mut out = format!(
            "{name}: up to {} (sequence {})",
            after.timestamp, after.sequence
        );
        match summary.seconds_behind {
            _ if summary.is_server_behind => {
                let newest = &summary.newest;
                let _ = write!(
                    out,
                    ", and the server is behind it: its newest state is {} (sequence {})",
                    newest.timestamp, newest.sequence
                );
            }
            0 => out += ", as the server",
            seconds => {
                let _ = write!(out, ", {} behind the server", duration_text(seconds));
            }
        }
        if self.is_check {
            let _ = write!(
                out,
                "; the data is {} old",
                duration_text(summary.seconds_old)
            );
        }
        if summary.change_files > 0 {
            let _ = write!(
                out,
                "; {} ({})",
                show::counted(summary.change_files, "change file"),
                human_bytes(summary.change_bytes)
            );
        }
        if let Some(applied) = &summary.applied {
            out += ": ";
            out += &show::changes([applied.created, applied.modified, applied.deleted]);
        }
        if let Some(edited) = summary.edited {
            let _ = write!(out, ", {} edited", show::number(edited));
        }
        if let Some(clipped) = &summary.clipped {
            let _ = write!(out, ", {} cut away", show::number(clipped.cut_away));
        }
        if let Some(augmented) = &summary.augmented_diff {
            let actions = show::counted(augmented.actions(), "action");
            let _ = write!(out, "; {actions} in augmented diffs");
        }
        if let Some(count) = summary.expired_tiles.as_ref().and_then(|of| of.tiles) {
            let _ = write!(out, "; {} to draw again", show::counted(count, "tile"));
        }
        out.push('\n');
        out
    }
}

/// Formats a time in its two largest units: `3 h 20 min`.
fn duration_text(seconds: i64) -> String {
    if seconds == 0 {
        return "0 s".into();
    }
    let units = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let mut left = seconds;
    let parts = units.into_iter().filter_map(|(len, unit)| {
        let count = left / len;
        left %= len;
        (count > 0).then(|| format!("{count} {unit}"))
    });
    parts.take(2).collect::<Vec<_>>().join(" ")
}

/// Prints the events of several files as a list.
pub fn print_event_list(session: &Session, runs: &[(UpdatedFile<'_>, Summary)]) -> Result<()> {
    let events = runs.iter().map(|(file, summary)| file.event(summary));
    let events: Vec<_> = events.collect();
    session.print(&JsonForm::Pretty.text(&events)?)
}

/// Prints an error as an event if --json=lines is given. Prints nothing if the error is a closed pipe.
pub fn print_error_event(
    session: &Session,
    run: &RunArgs,
    file: &Path,
    error: &anyhow::Error,
) -> Result<()> {
    let is_closed = matches!(error.downcast_ref(), Some(crate::Error::ClosedPipe));
    if run.json != Some(JsonForm::Lines) || is_closed {
        return Ok(());
    }
    let event = UpdateEvent::from_error(session, file, error);
    session.print(&JsonForm::Lines.text(&event)?)
}
