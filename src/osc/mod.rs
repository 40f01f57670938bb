//! OSM XML: change files (OsmChange) and the changes they add up to, and plain OSM files.

mod change_set;
mod parse;
mod source;
mod write;

pub use change_set::{Batch, Change, ChangeSet, Replication};
pub use write::{ChangeAction, OscText, OscWriter};

use crate::error::Result;
use parse::Document;
use std::path::Path;

/// Reads change files in the given order; the last version of an object wins.
pub fn read_change_files<P: AsRef<Path>>(paths: &[P]) -> Result<ChangeSet> {
    let mut changes = ChangeSet::default();
    for path in paths {
        let path = path.as_ref();
        parse::read_into(path, Document::OsmChange, &mut changes)?;
        if let Some(state) = source::sidecar_state(path) {
            changes.note_replication(state);
        }
    }
    changes.settle();
    Ok(changes)
}

/// Reads a plain OSM XML file, compressed or not: every object it holds, as the change that creates it.
/// Of several versions of an object the highest stays. What an editor marked as deleted (`action="delete"`)
/// and what a history file says is gone (`visible="false"`) are deletions.
pub fn read_osm_file(path: &Path) -> Result<ChangeSet> {
    let mut objects = ChangeSet::default();
    parse::read_into(path, Document::Osm, &mut objects)?;
    objects.settle();
    Ok(objects)
}

#[cfg(test)]
mod tests;
