//! `index.json`, which lists the regions of a directory.

use super::layout::{RegionLayout, extract_path, updates_path, write_text};
use super::{FollowedRegion, Options};
use crate::commands::extract::Strategy;
use crate::commands::planet_step::DataIdentity;
use crate::engine::headers::generator;
use crate::error::{Error, Result};
use crate::osm::{format_timestamp, parse_timestamp};
use crate::replication::State;
use crate::runtime::Context;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use twox_hash::XxHash3_64;

const FILE: &str = "index.json";

/// The regions of a directory.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct RegionIndex {
    generator: String,
    /// The name of the file from which the regions are cut out.
    pub planet: String,
    /// The time up to which the file `planet` has all changes.
    pub timestamp: String,
    pub regions: Vec<RegionRecord>,
}

/// A region in the index.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RegionRecord {
    pub name: String,
    /// The path of the extract; `None` if it is not published.
    pub file: Option<String>,
    pub bytes: u64,
    pub sha256: String,
    /// The edges of the box around the region in degrees.
    pub bbox: [f64; 4],
    pub strategy: String,
    pub poly: String,
    /// The path of the directory of change files.
    pub updates: String,
    pub sequence: i64,
    pub timestamp: String,
    /// The size of the last change file in bytes.
    pub change_bytes: Option<u64>,
    /// The reason why the region is not up to date with the planet; `None` if it is.
    pub problem: Option<String>,
    /// The fingerprint of the area and the strategy.
    pub fingerprint: String,
    /// The state of the planet from which the extract was made; `None` if the next run has to cut out the region.
    #[serde(default)]
    pub planet: Option<DataIdentity>,
}

/// Returns a fingerprint of the program version, the strategy, the treatment of the antimeridian, and the area.
/// Together with the planet, they decide which objects a region has.
pub(super) fn fingerprint(poly: &str, strategy: &Strategy, options: &Options) -> String {
    let rule = options.antimeridian;
    let text = format!("{} {strategy:?} {rule:?} {poly}", generator(None));
    format!("{:016x}", XxHash3_64::oneshot(text.as_bytes()))
}

impl RegionIndex {
    pub(super) fn new(planet: &Path, timestamp: i64, regions: Vec<Option<RegionRecord>>) -> Self {
        let name = planet.file_name().unwrap_or_default();
        Self {
            generator: generator(None),
            planet: name.to_string_lossy().into_owned(),
            timestamp: format_timestamp(timestamp),
            regions: regions.into_iter().flatten().collect(),
        }
    }

    /// Reads the index of an earlier run. Returns an empty index if it is missing or damaged, because this run makes a
    /// new index from the files.
    pub(super) fn read(directory: &Path) -> Self {
        let text = fs::read(directory.join(FILE)).ok();
        let index = text.and_then(|text| serde_json::from_slice(&text).ok());
        index.unwrap_or_default()
    }

    /// Returns the record of the region with the given name.
    pub(super) fn record(&self, name: &str) -> Option<RegionRecord> {
        let mut regions = self.regions.iter();
        regions.find(|region| region.name == name).cloned()
    }

    pub(super) fn write(&self, directory: &Path, ctx: &Context) -> Result<()> {
        let text = serde_json::to_string_pretty(self);
        let text = text.map_err(|error| Error::Internal(error.to_string()))?;
        write_text(&directory.join(FILE), &(text + "\n"), ctx)
    }
}

impl RegionRecord {
    /// Creates the record of a region whose files have the given state.
    pub(super) fn of(
        layout: &RegionLayout,
        region: &FollowedRegion,
        strategy: &Strategy,
        state: State,
        sha256: String,
    ) -> Result<Self> {
        let path = &layout.extract;
        let len = fs::metadata(path).map(|metadata| metadata.len());
        let changes = fs::metadata(layout.changes_path(state.sequence));
        let name = &region.name;
        let edges = region.shape.envelope().edges_e7().into_array();
        Ok(Self {
            name: name.clone(),
            file: layout.is_published.then(|| extract_path(name)),
            bytes: len.map_err(|error| Error::io(path, "cannot read", error))?,
            sha256,
            bbox: edges.map(|edge| f64::from(edge) / 1e7),
            strategy: strategy.name().to_owned(),
            poly: format!("{name}.poly"),
            updates: updates_path(name),
            sequence: state.sequence,
            timestamp: format_timestamp(state.timestamp),
            change_bytes: changes.ok().map(|metadata| metadata.len()),
            problem: None,
            fingerprint: String::new(),
            planet: None,
        })
    }

    /// Returns the record with the given source and problem. `source` is the fingerprint of the region, and the state
    /// of the planet from which the extract was made. `source` is `None` if the next run has to cut out the region.
    pub(super) fn with_source(
        self,
        source: Option<(&str, &DataIdentity)>,
        problem: Option<String>,
    ) -> Self {
        let (fingerprint, planet) = source.unzip();
        Self {
            fingerprint: fingerprint.unwrap_or_default().to_owned(),
            planet: planet.cloned(),
            problem,
            ..self
        }
    }

    /// Whether the record describes the files of a state.
    pub(super) fn matches_state(&self, state: State) -> bool {
        let timestamp = parse_timestamp(&self.timestamp);
        self.sequence == state.sequence && timestamp == Some(state.timestamp)
    }
}
