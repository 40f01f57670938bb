//! A synthetic data set for the benchmark `kernels`.

use pbfhogg::Context;
use pbfhogg::OutputOptions;
use pbfhogg::commands::synth;
use pbfhogg::unstable::file::{BlobDecoder, BlobPlan, PbfFile, PlanNeeds};
use pbfhogg::unstable::osm::ObjectKind;
use std::path::PathBuf;

/// The payload of a full block of each kind, and a change file.
pub struct Sample {
    pub nodes: Vec<u8>,
    pub ways: Vec<u8>,
    pub relations: Vec<u8>,
    pub changes: PathBuf,
    // Keeps the directory of the change file until the sample is dropped.
    _directory: tempfile::TempDir,
}

impl Sample {
    /// Creates the data set and takes the payload with the most objects of each kind.
    pub fn load() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("world.osm.pbf");
        let options = synth::Options::new(1_000_000, OutputOptions::file(path.clone()))
            .changes(Some((1, directory.path().to_owned())));
        let ctx = Context::default();
        synth::run(&options, &ctx).unwrap();
        let file = PbfFile::open(&path, &ctx).unwrap();
        let plan = BlobPlan::open(&file, PlanNeeds::Ranges, &ctx).unwrap();
        let mut reader = BlobDecoder::new(&file.input, &ctx);
        let mut fullest = |kind: ObjectKind| {
            let of_kind = plan
                .entries
                .iter()
                .filter(|entry| entry.kinds.single() == Some(kind));
            reader
                .payload(of_kind.max_by_key(|entry| entry.count).unwrap())
                .unwrap()
                .to_vec()
        };
        Self {
            nodes: fullest(ObjectKind::Node),
            ways: fullest(ObjectKind::Way),
            relations: fullest(ObjectKind::Relation),
            changes: directory.path().join("001.osc.gz"),
            _directory: directory,
        }
    }
}
