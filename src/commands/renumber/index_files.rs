//! The directory that keeps the map of ids from one run to the next. Its files have the names and the format that
//! osmium uses. `node.idx`, `way.idx` and `relation.idx` contain the old ids in the order of the new ids, and
//! `start_ids` contains the first new ids.

use super::numbering::Numbering;
use crate::error::{Advice, Error, FileResult, Result};
use crate::io::{OpenOutput, OutputTarget, ReplacedFiles, StreamOutput, commit_together};
use crate::osm::ObjectKind;
use crate::runtime::Context;
use std::path::{Path, PathBuf};

/// An old id, and the new id that replaces it.
pub type IdPair = (i64, i64);

fn path_of(directory: &Path, kind: ObjectKind) -> PathBuf {
    directory.join(format!("{}.idx", kind.name()))
}

fn first_ids_path(directory: &Path) -> PathBuf {
    directory.join("start_ids")
}

/// The output files for the maps of ids in a directory.
#[derive(Debug)]
pub(super) struct IndexFiles {
    maps: [OpenOutput; 3],
    starts: OpenOutput,
}

impl IndexFiles {
    /// Opens the files before the work begins. So the run fails early if the directory cannot be written, or if another
    /// run writes to it. Existing files will be replaced. Fails if there is an `.idx` file but no `start_ids`, unless
    /// `overwrite` is set. Such an `.idx` file may not come from an earlier run.
    fn open(directory: &Path, overwrite: bool, ctx: &Context) -> Result<Self> {
        let has_starts = first_ids_path(directory).exists();
        for kind in ObjectKind::ALL {
            let path = path_of(directory, kind);
            if path.exists() && !has_starts && !overwrite {
                let cause = "there is no start_ids beside this file, as beside a map of ids";
                return Err(Error::file(&path, cause).advise(Advice::ContinueMap));
            }
        }
        // A new file gets the access rights of the older files beside it.
        let paths = ObjectKind::ALL.map(|kind| path_of(directory, kind));
        let replaced = ReplacedFiles::with_paths(Path::new(""), paths.to_vec());
        let open = |path: PathBuf| -> Result<OpenOutput> {
            let is_new = !path.exists();
            let target = OutputTarget::named_file(&path, true);
            let output = OpenOutput::open(target, ctx)?;
            if is_new && let Some(warning) = replaced.copy_access_to_file(&path, &output.file) {
                ctx.warn(warning);
            }
            Ok(output)
        };
        let [nodes, ways, relations] = ObjectKind::ALL.map(|kind| path_of(directory, kind));
        Ok(Self {
            maps: [open(nodes)?, open(ways)?, open(relations)?],
            starts: open(first_ids_path(directory))?,
        })
    }

    /// Writes the map of ids for each kind, and the first new ids. The files get their names when all of them are on
    /// disk.
    pub(super) fn write(self, numberings: &[Numbering; 3]) -> Result<()> {
        let [nodes, ways, relations] = numberings.each_ref().map(Numbering::start);
        let mut starts = StreamOutput::new(self.starts);
        starts.write(format!("{nodes},{ways},{relations}\n").as_bytes())?;
        // `start_ids` is renamed first. If the process were killed between the renames, `.idx` files without it would
        // not be recognized as the output of an earlier run.
        let mut outputs = vec![starts];
        for (numbering, output) in numberings.iter().zip(self.maps) {
            let mut output = StreamOutput::new(output);
            numbering.write(&mut output)?;
            outputs.push(output);
        }
        commit_together(outputs)
    }
}

/// Reads the maps of ids from a directory, one for each kind, and opens the files that will replace them. Without a
/// directory, returns empty maps. Fails if the directory does not exist, or if one of its files is damaged or may not
/// be replaced. Also fails if `start` differs from the first ids in `start_ids`.
pub(super) fn read(
    directory: Option<&Path>,
    start: Option<[i64; 3]>,
    overwrite: bool,
    ctx: &Context,
) -> Result<([Numbering; 3], Option<IndexFiles>)> {
    let Some(directory) = directory else {
        return Ok((start.unwrap_or([1; 3]).map(Numbering::new), None));
    };
    if !directory.is_dir() {
        let cause = "the directory for the map of ids does not exist; create it first";
        return Err(Error::file(directory, cause));
    }
    for path in ObjectKind::ALL
        .map(|kind| path_of(directory, kind))
        .into_iter()
        .chain([first_ids_path(directory)])
    {
        // Refuses named pipes and devices before they are opened, because opening a named pipe would wait for a writer.
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            return Err(Error::file(
                &path,
                "this is no regular file, and no map of ids",
            ));
        }
    }
    let stored = read_first_ids(directory)?;
    if let (Some(stored), Some(start)) = (stored, start)
        && stored != start
    {
        let error = Error::file(
            &first_ids_path(directory),
            "the map was begun with other first ids",
        );
        return Err(error.advise(Advice::LeaveFirstIdsOut(stored)));
    }
    let [nodes, ways, relations] = start.or(stored).unwrap_or([1; 3]);
    let of = |kind, start| Numbering::read(&path_of(directory, kind), start);
    let numberings = [
        of(ObjectKind::Node, nodes)?,
        of(ObjectKind::Way, ways)?,
        of(ObjectKind::Relation, relations)?,
    ];
    Ok((
        numberings,
        Some(IndexFiles::open(directory, overwrite, ctx)?),
    ))
}

fn read_first_ids(directory: &Path) -> Result<Option<[i64; 3]>> {
    let path = first_ids_path(directory);
    let text = std::fs::read_to_string(&path).if_exists();
    let Some(text) = text.for_path(&path, "cannot read")? else {
        return Ok(None);
    };
    let starts: Result<Vec<i64>, _> = text.trim().split(',').map(str::parse).collect();
    match starts.map(<[i64; 3]>::try_from) {
        Ok(Ok(starts)) if !starts.contains(&0) => Ok(Some(starts)),
        _ => Err(Error::file(
            &path,
            "expected three ids that are not 0, with commas between them",
        )),
    }
}

/// Reads the map of one kind of objects from a directory. Calls `show` with each pair of an old and a new id, in the
/// order of the new ids.
///
/// Fails if the map is absent, unreadable or damaged.
pub fn show_index(directory: &Path, kind: ObjectKind, mut show: impl FnMut(IdPair)) -> Result<()> {
    let path = path_of(directory, kind);
    if !path.is_file() {
        return Err(Error::file(&path, "there is no map of ids here"));
    }
    let start = read_first_ids(directory)?.unwrap_or([1; 3])[kind as usize];
    Numbering::read(&path, start)?.pairs().for_each(&mut show);
    Ok(())
}
