//! Change files (OsmChange XML): reading them, and the changes they add up to.

mod change_set;
mod parse;
mod source;
mod write;

pub use change_set::{Batch, Change, ChangeSet, Replication};
pub use write::{ChangeAction, OscText, OscWriter};

use crate::error::Result;
use std::path::Path;

/// Reads change files in the given order; the last version of an object wins.
pub fn read_change_files<P: AsRef<Path>>(paths: &[P]) -> Result<ChangeSet> {
    let mut changes = ChangeSet::default();
    for path in paths {
        let path = path.as_ref();
        parse::read_into(path, &mut changes)?;
        if let Some(state) = source::sidecar_state(path) {
            changes.note_replication(state);
        }
    }
    changes.settle();
    Ok(changes)
}
