//! Finds out whether changes concern a coast.

use super::{Options, WAYS};
use crate::engine::open_any;
use crate::error::{Error, Result};
use crate::formats::read_change_files;
use crate::index::IdSet;
use crate::osm::{KindSet, ObjectKind};
use crate::pbf::Element;
use crate::runtime::Context;
use std::fs;
use std::path::Path;

/// Whether the change files change a coastline or one of its nodes. A way counts as a coastline if its new tags say so,
/// or if it was one in the earlier run. Also true if there is no directory of an earlier run.
pub(super) fn may_change_coast(options: &Options, ctx: &Context) -> Result<bool> {
    let Some(directory) = &options.directory else {
        return Ok(true);
    };
    let Some(known) = read_coastline_ids(&directory.join(WAYS))? else {
        return Ok(true);
    };
    let changes = read_change_files(&options.changes, ctx)?;
    let mut nodes = IdSet::default();
    for (change, object) in changes.iter() {
        match change.key.0 {
            ObjectKind::Node => {
                nodes.insert(change.id());
            }
            ObjectKind::Way if known.contains(change.id()) => return Ok(true),
            ObjectKind::Way if object.tags.iter().any(|tag| is_coastline(*tag)) => return Ok(true),
            ObjectKind::Way | ObjectKind::Relation => {}
        }
    }
    // No coastline itself has changed, so the coastlines of the input are those of the earlier run, with the same
    // nodes.
    has_coastline_with_node(&nodes, options, ctx)
}

fn is_coastline(tag: (&str, &str)) -> bool {
    tag == ("natural", "coastline")
}

/// Whether a coastline of the input refers to one of the nodes.
fn has_coastline_with_node(nodes: &IdSet, options: &Options, ctx: &Context) -> Result<bool> {
    let reader = open_any(&options.coast.input, ctx)?;
    let reader = reader.kinds(KindSet::of(ObjectKind::Way));
    let found = reader.par_fold(
        || false,
        |found, element| {
            if let Element::Way(way) = element {
                *found |=
                    way.tags().any(is_coastline) && way.refs().any(|node| nodes.contains(node));
            }
        },
    )?;
    Ok(found.contains(&true))
}

/// Reads the ids of the coastlines of an earlier run; `None` if there is no file at `path`.
fn read_coastline_ids(path: &Path) -> Result<Option<IdSet>> {
    let Ok(text) = fs::read_to_string(path) else {
        return Ok(None);
    };
    let mut ways = IdSet::default();
    for line in text.lines() {
        let id = line.parse();
        ways.insert(id.map_err(|_| Error::file(path, "this is no list of ids of ways"))?);
    }
    Ok(Some(ways))
}
