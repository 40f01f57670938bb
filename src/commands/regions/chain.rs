//! The states of a region, from one change file to the next.
//!
//! The files of a new state get their names in a fixed order: the change file, its state, the extract, `state.txt`. The
//! files that a killed run leaves show how far the run got. A change file that is newer than `state.txt` is made again.
//! If the extract is newer than `state.txt`, its change file is complete, and only `state.txt` has to be written.

use super::layout::{RegionLayout, write_text};
use crate::error::{Error, Result};
use crate::file::PbfFile;
use crate::io::{create_directories, publish};
use crate::replication::State;
use crate::runtime::Context;
use std::fs;
use std::path::Path;

/// The published state of a region; `None` if the region is new.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RegionChain {
    pub state: Option<State>,
}

impl RegionChain {
    /// Reads the state of a region, and completes a publication of which only the last step is missing.
    ///
    /// # Errors
    ///
    /// - A state or the extract cannot be read.
    /// - The extract is missing, or has neither the published state nor the next one: no change file can follow.
    pub(super) fn open(layout: &RegionLayout, ctx: &Context) -> Result<Self> {
        let published = RegionLayout::read_state(&layout.newest_state_path())?;
        let extract = match fs::symlink_metadata(&layout.extract) {
            Ok(_) => Some(PbfFile::open(&layout.extract, ctx)?.header),
            Err(_) => None,
        };
        let Some(header) = extract else {
            return match published {
                None => Ok(Self::default()),
                Some(_) => Err(Error::file(
                    &layout.extract,
                    format!(
                        "the extract is missing, from which the next changes are derived: put it back, or remove {} to \
                         begin anew",
                        layout.updates.display()
                    ),
                )),
            };
        };
        let sequence = header.replication_sequence;
        if published.is_some() && published.map(|state| state.sequence) == sequence {
            return Ok(Self { state: published });
        }
        let next = published.map_or(0, |state| state.sequence + 1);
        let prepared = RegionLayout::read_state(&layout.state_path(next))?.filter(|state| {
            let is_next = sequence == Some(next) && state.sequence == next;
            is_next && header.replication_timestamp == Some(state.timestamp)
        });
        let Some(state) = prepared.filter(|_| next == 0 || layout.changes_path(next).is_file())
        else {
            let cause = format!(
                "this file does not have the state of {}: it is not an extract of `regions`, or was replaced",
                layout.newest_state_path().display()
            );
            return Err(Error::file(&layout.extract, cause));
        };
        write_text(&layout.newest_state_path(), &state.to_text(), ctx)?;
        Ok(Self { state: Some(state) })
    }

    /// Removes the change files that are more than `days` days older than the newest one. Returns their number.
    pub(super) fn remove_old_changes(&self, layout: &RegionLayout, days: u32) -> u64 {
        let Some(newest) = self.state else {
            return 0;
        };
        let oldest = newest.timestamp - i64::from(days) * 86_400;
        let mut old = Vec::new();
        for sequence in (0..newest.sequence).rev() {
            match RegionLayout::read_state(&layout.state_path(sequence)) {
                Ok(Some(state)) if state.timestamp < oldest => old.push(sequence),
                Ok(Some(_)) => {}
                // Earlier runs have removed all older files.
                _ => break,
            }
        }
        let removed = old.len() as u64;
        // Removes the oldest first, so that a run that ends early leaves no gap.
        for sequence in old.into_iter().rev() {
            let state = layout.state_path(sequence);
            let _ = fs::remove_file(layout.changes_path(sequence));
            let _ = fs::remove_file(&state);
            if sequence % 1000 == 999 {
                // This was the last state in its directory, so the directory is empty.
                let _ = state.parent().map(fs::remove_dir);
            }
        }
        removed
    }
}

/// The files of a new state, which are complete and on disk.
pub(super) struct RegionPublication<'p> {
    pub state: State,
    pub extract: &'p Path,
    /// The change file; `None` for a new region.
    pub changes: Option<&'p Path>,
}

impl RegionPublication<'_> {
    /// Publishes the files. Returns the state of the region.
    pub(super) fn publish_files(
        &self,
        layout: &RegionLayout,
        ctx: &Context,
    ) -> Result<RegionChain> {
        let sequence = self.state.sequence;
        let text = self.state.to_text();
        let state = layout.state_path(sequence);
        for path in [&state, &layout.extract] {
            path.parent().map_or(Ok(()), create_directories)?;
        }
        if let Some(changes) = self.changes {
            publish(changes, &layout.changes_path(sequence), &ctx.cancellation)?;
        }
        write_text(&state, &text, ctx)?;
        publish(self.extract, &layout.extract, &ctx.cancellation)?;
        write_text(&layout.newest_state_path(), &text, ctx)?;
        Ok(RegionChain {
            state: Some(self.state),
        })
    }
}
