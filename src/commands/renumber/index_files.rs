//! The directory that keeps the map of ids from one run to the next. Its files are the same as those of osmium:
//! `node.idx`, `way.idx` and `relation.idx` contain the old ids in the order of the new ids, and `start_ids` contains
//! the first new ids.

use super::numbering::Numbering;
use crate::error::{Error, Result};
use crate::formats::TextOutput;
use crate::io::OutputTarget;
use crate::osm::ObjectKind;
use std::io;
use std::path::{Path, PathBuf};

/// An old id, and the new id that replaces it.
pub type IdPair = (i64, i64);

fn path_of(directory: &Path, kind: ObjectKind) -> PathBuf {
    directory.join(format!("{}.idx", kind.name()))
}

fn starts_path(directory: &Path) -> PathBuf {
    directory.join("start_ids")
}

/// Reads the maps of ids from a directory, one for each kind; without a directory, returns empty maps. Fails if the
/// directory does not exist, if a file in it is damaged, or if `start` differs from the first ids that it records.
pub(super) fn read(directory: Option<&Path>, start: Option<[i64; 3]>) -> Result<[Numbering; 3]> {
    let Some(directory) = directory else {
        return Ok(start.unwrap_or([1; 3]).map(Numbering::new));
    };
    if !directory.is_dir() {
        let cause = "the directory for the map of ids does not exist; create it first";
        return Err(Error::file(directory, cause));
    }
    let stored = read_starts(directory)?;
    if let (Some(stored), Some(start)) = (stored, start)
        && stored != start
    {
        let [nodes, ways, relations] = stored;
        return Err(Error::file(
            &starts_path(directory),
            format!(
                "the map was begun with --start-id {nodes},{ways},{relations}: leave the option out"
            ),
        ));
    }
    let [nodes, ways, relations] = start.or(stored).unwrap_or([1; 3]);
    let of = |kind, start| Numbering::read(&path_of(directory, kind), start);
    Ok([
        of(ObjectKind::Node, nodes)?,
        of(ObjectKind::Way, ways)?,
        of(ObjectKind::Relation, relations)?,
    ])
}

fn read_starts(directory: &Path) -> Result<Option<[i64; 3]>> {
    let path = starts_path(directory);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(&path, "cannot read", error)),
    };
    let starts: Vec<i64> = text
        .trim()
        .split(',')
        .filter_map(|start| start.parse().ok())
        .collect();
    match <[i64; 3]>::try_from(starts) {
        Ok(starts) if !starts.contains(&0) => Ok(Some(starts)),
        _ => Err(Error::file(
            &path,
            "expected three ids that are not 0, with commas between them",
        )),
    }
}

/// Writes the maps of ids, one for each kind, and the first new ids to a directory. Existing files are replaced.
pub(super) fn write(directory: &Path, numberings: &[Numbering; 3]) -> Result<()> {
    for (kind, numbering) in ObjectKind::ALL.into_iter().zip(numberings) {
        numbering.write(&path_of(directory, kind))?;
    }
    let [nodes, ways, relations] = numberings.each_ref().map(Numbering::start);
    let mut starts = TextOutput::create(OutputTarget::File {
        path: starts_path(directory),
        overwrite: true,
    })?;
    starts.write(&format!("{nodes},{ways},{relations}\n"))?;
    starts.finish().map(drop)
}

/// Calls `show` with each pair of ids that a directory records for objects of one kind, in the order of the new ids.
///
/// Fails if the directory has no map for the kind, or if the map cannot be read or is damaged.
pub fn show_index(directory: &Path, kind: ObjectKind, mut show: impl FnMut(IdPair)) -> Result<()> {
    let path = path_of(directory, kind);
    if !path.is_file() {
        return Err(Error::file(&path, "there is no map of ids here"));
    }
    let start = read_starts(directory)?.unwrap_or([1; 3])[kind as usize];
    Numbering::read(&path, start)?.pairs().for_each(&mut show);
    Ok(())
}
