//! The record of an update whose command has not succeeded yet.

use super::ReportedState;
use super::position::{FilePosition, HeaderState};
use crate::error::{Advice, Error, ErrorKind, FileResult, Result};
use crate::io::{Output, OutputTarget, open_kept_file};
use crate::system;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// An update of a file from one state to another one, with the paths of the outputs that describe the update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UpdateStep {
    pub server: String,
    /// The state in the header of the file that the update replaces. It can lack parts that `before` has.
    pub replaced: HeaderState,
    pub before: ReportedState,
    pub after: ReportedState,
    pub augmented_diff: Option<OsString>,
    pub expired_tiles: Option<OsString>,
}

impl UpdateStep {
    /// Whether a file still has the state before the step. If so, the run that recorded the step ended without
    /// replacing the file.
    pub(super) fn is_not_applied_to(&self, position: &FilePosition) -> bool {
        !position.is_at(&self.after) && position.header == self.replaced
    }
}

/// A record, which is a file beside the updated file. It holds the step after which a command still has to run.
pub(super) struct Record {
    /// The path of the record.
    pub(super) path: PathBuf,
}

impl Record {
    /// Returns the record for an update that replaces `file`. Returns `None` if the update writes another file. Such an
    /// update needs no record: the next update repeats the whole step.
    pub(super) fn for_replaced_file(file: &Path, written: &Path) -> Option<Self> {
        let real = file.canonicalize().ok()?;
        if written.canonicalize().ok()? != real {
            return None;
        }
        let mut name = OsString::from(".");
        name.push(real.file_name()?);
        name.push(".pbfhogg-exec");
        Some(Self {
            path: real.with_file_name(name),
        })
    }

    /// Reads the record. Returns `None` if there is no record, and `Some(Err(_))` if the record is damaged.
    pub(super) fn read(&self) -> Result<Option<serde_json::Result<UpdateStep>>> {
        /// The maximum length of a record in bytes.
        const MAX_LEN: u64 = 1 << 20;
        let path = &self.path;
        let Some(file) = open_kept_file(path)? else {
            return if fs::symlink_metadata(path).is_ok() {
                let cause = "cannot open the record of an update whose command has not succeeded";
                let error = Error::file_of(path, ErrorKind::Denied, cause);
                Err(error.advise(Advice::ReadRecord))
            } else {
                Ok(None)
            };
        };
        let mut text = Vec::new();
        file.take(MAX_LEN)
            .read_to_end(&mut text)
            .for_path(path, "cannot read")?;
        Ok(Some(serde_json::from_slice(&text)))
    }

    /// Returns a message about a damaged record.
    pub(super) fn damage_message(&self, error: &serde_json::Error) -> String {
        let path = self.path.display();
        format!(
            "{path}: the record of an update whose command has not succeeded is damaged: {error}"
        )
    }

    /// Writes the record.
    pub(super) fn write(&self, step: &UpdateStep) -> Result<()> {
        let text = serde_json::to_vec(step).map_err(Error::internal)?;
        let (output, file) = Output::create(OutputTarget::named_file(&self.path, true))?;
        system::write(&file, &text).for_path(&self.path, "cannot write")?;
        output.commit()
    }

    /// Removes the record. If this fails, the command may run once more.
    pub(super) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}
