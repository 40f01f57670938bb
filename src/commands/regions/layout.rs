//! The files of a region.

use crate::error::{Error, Result};
use crate::io::{OpenOutput, OutputTarget, create_directories};
use crate::replication::{State, path_of};
use crate::runtime::Context;
use crate::system;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The hidden directory for files that are not published yet.
pub(super) const WORK: &str = ".pbfhogg-regions";
/// The hidden directory for the extracts of a run that publishes only change files.
const UNPUBLISHED: &str = ".extracts";
/// The end of the name of a directory of change files.
const UPDATES: &str = "-updates";

/// The paths of the files of a region.
#[derive(Debug)]
pub(super) struct RegionLayout {
    pub extract: PathBuf,
    /// Whether the extract is one of the files that are published.
    pub is_published: bool,
    poly: PathBuf,
    /// The directory of the change files.
    pub updates: PathBuf,
}

impl RegionLayout {
    pub(super) fn new(directory: &Path, name: &str, diffs_only: bool) -> Self {
        let extract = extract_path(name);
        Self {
            extract: if diffs_only {
                directory.join(UNPUBLISHED).join(extract)
            } else {
                directory.join(extract)
            },
            is_published: !diffs_only,
            poly: directory.join(format!("{name}.poly")),
            updates: directory.join(updates_path(name)),
        }
    }

    /// Returns the path of the newest state.
    pub(super) fn newest_state_path(&self) -> PathBuf {
        self.updates.join("state.txt")
    }

    /// Returns the path of the state with a sequence number.
    pub(super) fn state_path(&self, sequence: i64) -> PathBuf {
        self.updates.join(path_of(sequence) + ".state.txt")
    }

    /// Returns the path of the change file with a sequence number.
    pub(super) fn changes_path(&self, sequence: i64) -> PathBuf {
        self.updates.join(path_of(sequence) + ".osc.gz")
    }

    /// Reads a state; `None` if there is no such file. Fails if the file is damaged.
    pub(super) fn read_state(path: &Path) -> Result<Option<State>> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(path, "cannot read", error)),
        };
        let state = State::parse(&text);
        state.map(Some).ok_or_else(|| {
            Error::file(
                path,
                "this is no state: the sequence number or the time is missing",
            )
        })
    }

    /// Writes the polygon, unless the file already contains it.
    pub(super) fn write_poly(&self, poly: &str, ctx: &Context) -> Result<()> {
        if fs::read_to_string(&self.poly).is_ok_and(|known| known == poly) {
            return Ok(());
        }
        write_text(&self.poly, poly, ctx)
    }
}

/// Writes a small file. An existing file is replaced when the new one is complete.
pub(super) fn write_text(path: &Path, text: &str, ctx: &Context) -> Result<()> {
    if let Some(parent) = path.parent() {
        create_directories(parent)?;
    }
    let target = OutputTarget::File {
        path: path.to_owned(),
        overwrite: true,
    };
    let OpenOutput { output, file, .. } = OpenOutput::open(target, ctx)?;
    let written = system::write(&file, text.as_bytes());
    written.map_err(|error| Error::io(path, "cannot write", error))?;
    output.commit()
}

/// Returns the path of an extract, relative to the directory of all extracts.
pub(super) fn extract_path(name: &str) -> String {
    format!("{name}.osm.pbf")
}

/// Returns the path of the change files of a region, relative to the directory of all regions.
pub(super) fn updates_path(name: &str) -> String {
    format!("{name}{UPDATES}")
}

/// Returns the URL of the change files of a region.
pub(super) fn updates_url(base: &str, name: &str) -> String {
    format!("{}/{}", base.trim_end_matches('/'), updates_path(name))
}

/// Fails unless each name is a path within the directory, and no two names are equal. No part of a name may begin with
/// a dot, which would hide the files of the region, or end like the directories of change files. The error is a message
/// for the user.
pub(super) fn check_region_names<'n>(names: impl Iterator<Item = &'n str>) -> Result<(), String> {
    let mut known = BTreeSet::new();
    for name in names {
        let about = |cause: &str| Err(format!("region '{name}': {cause}"));
        let parts = Path::new(name).components();
        let is_plain = |part: Component<'_>| match part {
            Component::Normal(part) => {
                let part = part.to_string_lossy();
                !part.starts_with('.') && !part.ends_with(UPDATES)
            }
            _ => false,
        };
        if name.is_empty() || name.ends_with('/') || !parts.clone().all(is_plain) {
            return about(
                "the name has to be a path within the directory, without parts that begin with a dot or end with \
                 -updates",
            );
        }
        if !known.insert(name) {
            return about("there are two regions of this name");
        }
    }
    Ok(())
}
