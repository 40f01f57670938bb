//! The step of a file from one state to the next, with the objects that changed on the way.

use super::apply_changes;
use crate::engine::OutputOptions;
use crate::error::Result;
use crate::file::PbfFile;
use crate::formats::{SameTime, read_changes};
use crate::index::IdSets;
use crate::io::FileLock;
use crate::pbf::feature;
use crate::runtime::Context;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_64;

/// A hash that identifies a state of a file. It covers the replication state, the size and, if the file has a table of
/// contents, the hashes of all blobs in the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DataIdentity(String);

impl DataIdentity {
    pub(crate) fn of(file: &PbfFile) -> Self {
        let header = &file.header;
        let facts = (
            header.replication_timestamp,
            header.replication_sequence,
            &header.replication_url,
            file.input.len(),
        );
        let mut text = format!("{facts:?}").into_bytes();
        let entries = file.toc.iter().flat_map(|toc| &toc.entries);
        text.extend(entries.flat_map(|entry| entry.hash.to_le_bytes()));
        Self(format!("{:016x}", XxHash3_64::oneshot(&text)))
    }

    pub(crate) fn of_path(path: &Path, ctx: &Context) -> Result<Self> {
        Ok(Self::of(&PbfFile::open(path, ctx)?))
    }
}

/// The step of a file from one state to the next, made by this program. The step proves that no objects other than
/// those in `changed` have changed.
#[derive(Debug, Clone)]
pub struct PlanetStep {
    pub(crate) before: DataIdentity,
    pub(crate) after: DataIdentity,
    /// The objects that the changes name.
    pub(crate) changed: IdSets,
}

impl PlanetStep {
    /// Applies change files to a file, and replaces the file. The file is locked meanwhile. Returns the step from the
    /// old state of the file to the new one. Locations in ways are kept up to date.
    ///
    /// # Errors
    ///
    /// - Another run is replacing the file.
    /// - Applying the changes fails ([details](apply_changes::run#errors)).
    pub fn apply(
        planet: &Path,
        changes: Vec<PathBuf>,
        ctx: &Context,
    ) -> Result<(Self, apply_changes::Summary)> {
        // The lock lasts until the step is known.
        let _lock = FileLock::acquire(planet)?;
        let output = OutputOptions::file(planet).overwrite();
        let mut options = apply_changes::Options::new(planet, changes, output);
        options.keeps_locations = true;
        let base = apply_changes::open_base(&options, ctx)?;
        let before = DataIdentity::of(&base);
        if base.header.has(feature::LOCATIONS) {
            options.output = options.output.with_way_locations();
        }
        let mut changed = IdSets::default();
        let read = |versions| {
            let changes = read_changes(&options.changes, SameTime::LastRead, versions, ctx)?;
            changed.extend(changes.ids());
            Ok(changes)
        };
        let summary = apply_changes::apply(&options, base, read, None, ctx)?;
        let step = Self {
            before,
            after: DataIdentity::of_path(planet, ctx)?,
            changed,
        };
        Ok((step, summary))
    }
}
