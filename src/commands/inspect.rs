//! `inspect`: what is in a file.

use crate::Context;
use crate::error::Result;
use crate::osm::{Bbox, ObjectKind, format_timestamp};
use crate::pbf::{BlobFlags, ParsedBlock, feature};
use crate::read::{BlobPlan, BlobReader, PbfFile, PlanNeeds, PlanSource};
use serde::Serialize;
use std::path::PathBuf;

/// What to inspect.
#[derive(Debug, Clone)]
pub struct Options {
    /// The file.
    pub input: PathBuf,
}

/// Blobs and objects of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KindSummary {
    /// "node", "way", "relation", or "mixed" for blobs of several kinds.
    pub kind: &'static str,
    /// Blobs of that kind alone.
    pub blobs: u64,
    /// Bytes of those blobs in the file.
    pub bytes: u64,
    /// Objects in those blobs.
    pub objects: u64,
    /// The smallest id in canonical order.
    pub min_id: Option<i64>,
    /// The largest id in canonical order.
    pub max_id: Option<i64>,
}

/// What is in a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The file.
    pub path: String,
    /// Length in bytes.
    pub bytes: u64,
    /// The program that wrote it.
    pub generator: Option<String>,
    /// Where the data comes from.
    pub source: Option<String>,
    /// `min_lon,min_lat,max_lon,max_lat` from the header, in degrees.
    pub header_bbox: Option<String>,
    /// `min_lon,min_lat,max_lon,max_lat` of all nodes, in degrees, where an index tells.
    pub data_bbox: Option<String>,
    /// Features that a reader must know.
    pub required_features: Vec<String>,
    /// Features that a reader may use.
    pub optional_features: Vec<String>,
    /// Time up to which changes are contained.
    pub replication_timestamp: Option<String>,
    /// Number of the last change file contained.
    pub replication_sequence: Option<i64>,
    /// Where change files come from.
    pub replication_url: Option<String>,
    /// What the numbers below come from.
    pub index: &'static str,
    /// Whether the file has a table of contents that fits it.
    pub indexed: bool,
    /// Data blobs.
    pub blobs: u64,
    /// Bytes of all payloads, uncompressed, where an index tells.
    pub payload_bytes: Option<u64>,
    /// All objects.
    pub objects: u64,
    /// All nodes.
    pub nodes: u64,
    /// All ways.
    pub ways: u64,
    /// All relations.
    pub relations: u64,
    /// Blobs by what they hold.
    pub kinds: Vec<KindSummary>,
    /// Whether the header declares canonical order.
    pub declared_sorted: bool,
    /// Whether the objects stand in canonical order; `None` where the index does not tell.
    pub sorted: Option<bool>,
    /// Whether the file holds deleted or several versions of objects.
    pub history: bool,
    /// Whether ways carry coordinates.
    pub locations_on_ways: bool,
}

impl Summary {
    /// The value with that key: a field of the JSON report by its name, or one of the names that
    /// other programs use (`header.option.generator`, `file.size`, `data.count.nodes`, …).
    pub fn get(&self, key: &str) -> Option<String> {
        let option = key.strip_prefix("header.option.");
        match option.unwrap_or(key) {
            "file.name" => Some(self.path.clone()),
            "file.size" => Some(self.bytes.to_string()),
            "file.format" => Some("PBF".into()),
            "data.objects_ordered" => Some(if self.sorted? { "yes" } else { "no" }.into()),
            "data.bbox" => self.data_bbox.clone(),
            "data.count.nodes" => Some(self.nodes.to_string()),
            "data.count.ways" => Some(self.ways.to_string()),
            "data.count.relations" => Some(self.relations.to_string()),
            "osmosis_replication_timestamp" => self.replication_timestamp.clone(),
            "osmosis_replication_sequence_number" => Some(self.replication_sequence?.to_string()),
            "osmosis_replication_base_url" => self.replication_url.clone(),
            "sorting" => self.declared_sorted.then(|| "Type_then_ID".into()),
            "header.with_history" => Some(self.history.to_string()),
            "header.boxes" => self.header_bbox.as_ref().map(|bbox| format!("({bbox})")),
            field => match serde_json::to_value(self).ok()?.get(field)? {
                serde_json::Value::String(text) => Some(text.clone()),
                serde_json::Value::Null => None,
                other => Some(other.to_string()),
            },
        }
    }
}

/// Whether a file has a table of contents that fits it: one read.
pub fn is_indexed(options: &Options, ctx: &Context) -> Result<bool> {
    Ok(PbfFile::open(&options.input, ctx)?.toc.is_some())
}

/// Finds out what is in a file.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    let file = PbfFile::open(&options.input, ctx)?;
    let plan = BlobPlan::open(&file, PlanNeeds::Ranges, ctx)?;
    let bbox = plan
        .entries
        .iter()
        .fold(Bbox::EMPTY, |bbox, entry| bbox.union(&entry.bbox));
    let lengths_known = plan.entries.iter().all(|entry| entry.payload_len > 0);
    let payload_bytes = plan
        .entries
        .iter()
        .map(|entry| u64::from(entry.payload_len))
        .sum();
    let [nodes, ways, relations] = count_by_kind(&file, &plan, ctx)?;
    let header = &file.header;
    Ok(Summary {
        path: options.input.display().to_string(),
        bytes: file.input.len(),
        generator: header.writing_program.clone(),
        source: header.source.clone(),
        header_bbox: header.bbox().map(|bbox| bbox.to_string()),
        data_bbox: (!bbox.is_empty()).then(|| bbox.to_string()),
        required_features: header.required_features.clone(),
        optional_features: header.optional_features.clone(),
        replication_timestamp: header.replication_timestamp.map(format_timestamp),
        replication_sequence: header.replication_sequence,
        replication_url: header.replication_url.clone(),
        index: plan.source.name(),
        indexed: plan.source == PlanSource::TableOfContents,
        blobs: plan
            .entries
            .iter()
            .map(|entry| u64::from(entry.blobs))
            .sum(),
        payload_bytes: lengths_known.then_some(payload_bytes),
        objects: plan.count(),
        nodes,
        ways,
        relations,
        kinds: by_kind(&plan),
        declared_sorted: header.has(feature::SORTED),
        sorted: plan.is_sorted(),
        history: header.has(feature::HISTORY) || plan.any(BlobFlags::DELETED),
        locations_on_ways: header.has(feature::LOCATIONS) || plan.any(BlobFlags::LOCATIONS),
    })
}

/// Nodes, ways and relations. What is in a blob of several kinds is counted one by one.
fn count_by_kind(file: &PbfFile, plan: &BlobPlan, ctx: &Context) -> Result<[u64; 3]> {
    let mut counts = [0u64; 3];
    let mut reader = BlobReader::new(&file.input, ctx);
    for entry in &plan.entries {
        match entry.kinds.single() {
            Some(kind) => counts[kind as usize] += u64::from(entry.count),
            None if entry.kinds.is_empty() => {}
            None => {
                let payload = reader.payload(entry)?;
                let counted = ParsedBlock::parse(payload).and_then(|block| {
                    let mut objects = block.cursor();
                    while let Some(object) = objects.next()? {
                        counts[object.key.0 as usize] += 1;
                    }
                    Ok(())
                });
                counted.map_err(|error| reader.error(entry, error))?;
            }
        }
    }
    Ok(counts)
}

fn by_kind(plan: &BlobPlan) -> Vec<KindSummary> {
    let kinds = ObjectKind::ALL.into_iter().map(Some).chain([None]);
    let summaries = kinds.map(|kind| {
        let of_kind = || {
            plan.entries
                .iter()
                .filter(move |entry| entry.kinds.single() == kind && !entry.kinds.is_empty())
        };
        let sum = |value: fn(&crate::pbf::BlobEntry) -> u64| of_kind().map(value).sum();
        let rank = |id: &i64| crate::osm::id_rank(*id);
        let one_kind = kind.is_some();
        KindSummary {
            kind: kind.map_or("mixed", ObjectKind::name),
            blobs: sum(|entry| u64::from(entry.blobs)),
            bytes: sum(|entry| u64::from(entry.frame_len)),
            objects: sum(|entry| u64::from(entry.count)),
            min_id: of_kind()
                .map(|entry| entry.min_id)
                .min_by_key(rank)
                .filter(|_| one_kind),
            max_id: of_kind()
                .map(|entry| entry.max_id)
                .max_by_key(rank)
                .filter(|_| one_kind),
        }
    });
    summaries.filter(|summary| summary.blobs > 0).collect()
}
