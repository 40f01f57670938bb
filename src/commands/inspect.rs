//! `inspect`: reports the content of a file.

mod anomalies;
mod blobs;
mod census;
#[cfg(feature = "pages")]
mod charts;
mod compression;
mod contents;
mod coordinates;
mod extended;
mod id_spans;
#[cfg(feature = "pages")]
pub mod page;
pub mod show;
mod top;

pub use anomalies::{Anomalies, Anomaly};
pub use blobs::{BlobLine, IdDistribution, KindSummary};
pub use census::Statistics;
pub use compression::{CompressionSummary, LevelGuess, SampledCompression};
pub use coordinates::{NodeStatistics, WayLocationStatistics};
pub use extended::{ByKind, Extended};
pub use top::{LargeObject, LargestObjects};

use crate::commands::object_census::ObjectCensus;
use crate::engine::input;
use crate::engine::location_form::LocationForm;
use crate::error::{Result, path_without_credentials};
use crate::file::{BlobDecoder, BlobPass, BlobPlan, IndexKind, PbfFile, PlanNeeds, PlannedFile};
use crate::osm::{Bbox, ObjectKind, format_timestamp};
use crate::pbf::{BlobEntry, BlobFlags, Block, feature, scan_counts};
use crate::runtime::Context;
use census::{Census, ObjectCounter};
use contents::Contents;
use id_spans::IdSpans;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

options! {
    /// The options of `inspect`.
    pub struct Options {
        /// The input file; `-` is standard input.
        pub input: PathBuf,
    }
    /// By default, the report has no statistics and no lists, and does not describe the compression of blobs. It needs
    /// only the header and the index.
    new(input: impl Into<PathBuf>);
    setters {
        /// The requested statistics, none by default. Most of them need a visit to every object of the file.
        statistics: Statistics,
        /// The maximum number of blobs to list; `None` for no list.
        list_blobs: Option<usize>,
        /// Whether to report the distribution of the ids of each kind.
        id_ranges: bool,
        /// Whether to report how blobs are compressed, from a sample of at most 16 blobs.
        compression: bool,
        /// Whether the extended statistics name the way with the most nodes and the relation with the most members. Has
        /// no effect without [`Statistics::extended`].
        maxima: bool,
        /// The maximum number of objects in each list of the largest objects; `None` for no lists.
        top: Option<usize>,
    }
}

impl Options {
    /// Whether the report needs facts that the summary of a table of contents does not contain.
    const fn needs_single_blobs(&self) -> bool {
        let asked = self.statistics;
        asked.nodes
            || asked.locations
            || asked.anomalies
            || self.id_ranges
            || self.list_blobs.is_some()
            || self.top.is_some()
    }
}

/// The result of `inspect`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The path of the file.
    pub path: String,
    /// The size of the file in bytes. For an input in a text format, the size before the conversion to PBF.
    pub bytes: u64,
    /// The name of the program that wrote the file, from the header.
    pub generator: Option<String>,
    /// The source of the data, from the header.
    pub source: Option<String>,
    /// The bounding box in the header.
    pub header_bbox: Option<Bbox>,
    /// The union of the bounding boxes of all blobs whose box is known; `None` if no box is known.
    pub data_bbox: Option<Bbox>,
    /// The required features in the header. A program that does not know all of them cannot read the file.
    pub required_features: Vec<String>,
    /// The optional features in the header.
    pub optional_features: Vec<String>,
    /// The time up to which the data contains all changes, such as `2026-11-20T00:00:00Z`, from the header.
    pub replication_timestamp: Option<String>,
    /// The sequence number of the last change file that the data contains, from the header.
    pub replication_sequence: Option<i64>,
    /// The URL of the server that publishes the change files, from the header.
    pub replication_url: Option<String>,
    /// The kind of index that the file has: "table of contents", "per-blob indexes" or "none".
    pub index: &'static str,
    /// Whether the file has a table of contents that fits the file.
    pub indexed: bool,
    /// The number of data blobs.
    pub blobs: u64,
    /// The size of all uncompressed payloads in bytes; `None` unless the size is known for every blob.
    pub payload_bytes: Option<u64>,
    /// The compression of a sample of blobs; `None` if not requested, and for a text input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<SampledCompression>,
    /// The number of objects.
    pub objects: u64,
    /// The number of nodes.
    pub nodes: u64,
    /// The number of ways.
    pub ways: u64,
    /// The number of relations.
    pub relations: u64,
    /// The number and size of the blobs, by the kind of their objects.
    pub kinds: Vec<KindSummary>,
    /// Whether the header declares canonical order.
    pub declared_sorted: bool,
    /// Whether the objects are in canonical order; `None` if the index does not record it.
    pub sorted: Option<bool>,
    /// Whether the objects of each kind are in the order of a Hilbert curve, and the table of contents has the boxes of
    /// all blobs.
    pub spatial_layout: bool,
    /// Whether the file has a table of ids. With this table, the blob of an object is found even if ids are not in
    /// order.
    pub id_table: bool,
    /// Whether the file is a history file, either according to the header or because a blob is known to contain deleted
    /// versions.
    pub history: bool,
    /// Whether ways have the coordinates of their nodes, either according to the header or because a blob is known to
    /// contain ways with coordinates.
    pub locations_on_ways: bool,
    /// Statistics of metadata and sizes; `None` if not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extended: Option<Extended>,
    /// Statistics of the coordinates of nodes; `None` if not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_statistics: Option<NodeStatistics>,
    /// Statistics of the locations in ways; `None` if not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way_locations: Option<WayLocationStatistics>,
    /// Unusual objects and blobs; `None` if not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anomalies: Option<Anomalies>,
    /// The largest objects; `None` if not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top: Option<LargestObjects>,
    /// The distribution of the ids of each kind; `None` if not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_ranges: Option<Vec<IdDistribution>>,
    /// The first blobs of the file, at most as many as [`Options::list_blobs`] allows; `None` if not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob_list: Option<Vec<BlobLine>>,
    /// The smallest and the largest id of each kind, indexed by kind; `None` for a kind without objects. Objects in
    /// blobs of several kinds are included. Not serialized.
    #[serde(skip)]
    pub edge_ids: [Option<(i64, i64)>; 3],
}

impl Summary {
    /// Returns the value of a key. The keys are the names of the fields in the JSON report, and the names that
    /// `osmium fileinfo` uses (`header.option.generator`, `file.size`, `data.count.nodes`, …). Returns `None` if the
    /// key is unknown or has no value.
    pub fn get(&self, key: &str) -> Option<String> {
        let option = key.strip_prefix("header.option.");
        match option.unwrap_or(key) {
            "file.name" => Some(self.path.clone()),
            "file.size" => Some(self.bytes.to_string()),
            "file.format" => Some("PBF".into()),
            "data.objects_ordered" => Some(if self.sorted? { "yes" } else { "no" }.into()),
            "data.bbox" => self.data_bbox.as_ref().map(|bbox| format!("({bbox})")),
            "data.count.nodes" => Some(self.nodes.to_string()),
            "data.count.ways" => Some(self.ways.to_string()),
            "data.count.relations" => Some(self.relations.to_string()),
            "osmosis_replication_timestamp" => self.replication_timestamp.clone(),
            "osmosis_replication_sequence_number" => Some(self.replication_sequence?.to_string()),
            "osmosis_replication_base_url" => self.replication_url.clone(),
            "sorting" => self.declared_sorted.then(|| "Type_then_ID".into()),
            "header.with_history" => Some(self.history.to_string()),
            "header.boxes" | "header.bbox" => {
                self.header_bbox.as_ref().map(|bbox| format!("({bbox})"))
            }
            "data.timestamp.first" => self.extended.as_ref()?.first_timestamp.clone(),
            "data.timestamp.last" => self.extended.as_ref()?.last_timestamp.clone(),
            "data.multiple_versions" => {
                let extended = self.extended.as_ref()?;
                let answer = match (extended.further_versions, extended.versions_in_a_row) {
                    (_, 1..) => "yes",
                    (Some(_), 0) => "no",
                    (None, 0) => "unknown",
                };
                Some(answer.into())
            }
            field => match self
                .metadata_answer(field)
                .or_else(|| self.min_or_max_id(field))
            {
                Some(value) => Some(value),
                None => self.report_field(field),
            },
        }
    }

    /// Returns "yes" or "no" for the keys `metadata.all_objects.NAME` and `metadata.some_objects.NAME`. Returns `None`
    /// for other keys, and if extended statistics were not requested.
    fn metadata_answer(&self, key: &str) -> Option<String> {
        let (which, name) = key.strip_prefix("metadata.")?.split_once("_objects.")?;
        let extended = self.extended.as_ref()?;
        let count = match name {
            "version" => extended.with_version,
            "timestamp" => extended.with_timestamp,
            "changeset" => extended.with_changeset,
            "uid" => extended.with_uid,
            "user" => extended.with_user,
            _ => return None,
        };
        let answer = match which {
            "all" => count == extended.objects.total(),
            "some" => count > 0,
            _ => return None,
        };
        Some(if answer { "yes" } else { "no" }.into())
    }

    /// Returns the id for a key such as `data.minid.nodes` or `data.maxid.ways`. Returns `None` for other keys, and for
    /// a kind without objects.
    fn min_or_max_id(&self, key: &str) -> Option<String> {
        let (which, kind) = key.strip_prefix("data.")?.split_once("id.")?;
        let kind = ObjectKind::ALL
            .into_iter()
            .find(|found| found.plural() == kind)?;
        let (min, max) = self.edge_ids[kind as usize]?;
        let id = match which {
            "min" => min,
            "max" => max,
            _ => return None,
        };
        Some(id.to_string())
    }

    /// Returns the value of a field of the JSON report. The names of nested fields are joined by dots.
    fn report_field(&self, name: &str) -> Option<String> {
        let report = serde_json::to_value(self).expect("a report has a form in JSON");
        match name
            .split('.')
            .try_fold(&report, |value, name| value.get(name))?
        {
            serde_json::Value::String(text) => Some(text.clone()),
            serde_json::Value::Null => None,
            other => Some(other.to_string()),
        }
    }

    /// Returns all keys that [`get`](Self::get) knows, including keys without a value. The fields of unrequested parts
    /// of the report are missing.
    pub fn keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        if let Ok(report) = serde_json::to_value(self) {
            put_keys(&report, "", &mut keys);
        }
        let names = ["file.name", "file.size", "file.format", "sorting"];
        keys.extend(names.map(str::to_owned));
        let options = [
            "generator",
            "source",
            "sorting",
            "osmosis_replication_timestamp",
            "osmosis_replication_sequence_number",
            "osmosis_replication_base_url",
        ];
        for option in options {
            keys.extend([option.to_owned(), format!("header.option.{option}")]);
        }
        keys.extend(["header.with_history", "header.boxes", "header.bbox"].map(str::to_owned));
        let data = [
            "objects_ordered",
            "bbox",
            "timestamp.first",
            "timestamp.last",
            "multiple_versions",
        ];
        keys.extend(data.map(|name| format!("data.{name}")));
        for kind in ObjectKind::ALL.map(ObjectKind::plural) {
            keys.extend(["count", "minid", "maxid"].map(|what| format!("data.{what}.{kind}")));
        }
        for which in ["all", "some"] {
            let names = ["version", "timestamp", "changeset", "uid", "user"];
            keys.extend(names.map(|name| format!("metadata.{which}_objects.{name}")));
        }
        keys
    }
}

/// Appends the names of all fields of a JSON object, each preceded by `prefix`. The names of nested fields are joined
/// by dots.
fn put_keys(value: &serde_json::Value, prefix: &str, keys: &mut Vec<String>) {
    if let serde_json::Value::Object(fields) = value {
        for (name, value) in fields {
            let key = format!("{prefix}{name}");
            put_keys(value, &format!("{key}."), keys);
            keys.push(key);
        }
    }
}

/// Determines which kind of index a file has. Reads the header and the table of contents, or only the end of the table
/// if the header contains a summary of the table. If the file has no table of contents, also reads BlobHeaders.
///
/// Fails if the file cannot be opened or read.
pub fn index_kind(options: &Options, ctx: &Context) -> Result<IndexKind> {
    index_kind_of(&input::open_for_summary(&options.input, ctx)?)
}

fn index_kind_of(file: &PbfFile) -> Result<IndexKind> {
    if input::is_from_text(file) {
        Ok(IndexKind::None)
    } else {
        IndexKind::of(file)
    }
}

/// Reports the content of a file, which may be unsorted or a history file.
///
/// Reads the header of the file and the end of its table of contents, in two reads. Reads the whole table if the header
/// has no summary of the table. Also reads the whole table for facts about single blobs, and for [`Options::maxima`].
/// If there is no table of contents, reads all BlobHeaders, and decodes the blobs without an index. Decodes all blobs
/// of several kinds, and the blobs with objects of the kinds that [`Options::statistics`] need. For
/// [`Statistics::extended`], decodes only blobs whose entries in the table of contents have no statistics. Some blobs
/// are also read for [`Options::compression`], [`Options::list_blobs`] and [`Options::maxima`]. [`Options::top`]
/// decodes all blobs once more, and those of relations three times. Writes nothing.
///
/// # Memory
///
/// The [base memory](crate::commands#memory). For [`Options::top`], also the ids of the member ways of multipolygons
/// and boundaries, and 4 bytes for each of them.
///
/// # Errors
///
/// - The input cannot be opened or read, or is damaged ([details](crate::commands#errors)).
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    let (summary, _) = examine::<()>(options, ctx)?;
    Ok(summary)
}

/// Reports the content of a file. Also returns the counts of its objects and the plan of the file. The counts are empty
/// unless objects are visited one by one. The plan is empty if the summary of the table of contents is sufficient.
fn examine<C: ObjectCounter>(options: &Options, ctx: &Context) -> Result<(Summary, (C, BlobPlan))> {
    let by_blobs = options.needs_single_blobs();
    let file = if !by_blobs {
        input::open_for_summary(&options.input, ctx)?
    } else {
        input::open(&options.input, ctx)?
    };
    let summary = file.summary.as_deref().filter(|_| !by_blobs);
    let of_summary = summary.and_then(|summary| Some((summary, Contents::of_summary(summary)?)));
    match of_summary {
        Some((summary, contents)) => {
            let census = Census {
                extended: ObjectCensus::of_summary(summary),
                ..Census::default()
            };
            let sample = || compression::entries_at(&file, &summary.sample);
            let mut found = report(options, &file, contents, census, sample, ctx)?;
            if let Some(extended) = found.extended.as_mut().filter(|_| options.maxima) {
                let file = with_whole_table(file, ctx)?;
                let plan = BlobPlan::open(&file, PlanNeeds::Frames, ctx)?;
                extended.find_largest_objects(PlannedFile::new(&file, &plan, ctx))?;
            }
            let entries = Vec::new();
            Ok((found, (C::default(), BlobPlan { entries })))
        }
        None => {
            let file = with_whole_table(file, ctx)?;
            let (plan, census, counts) = plan_with_statistics(&file, options.statistics, ctx)?;
            let source = PlannedFile::new(&file, &plan, ctx);
            let spans = IdSpans::read(source)?;
            let contents = Contents::of_plan(source, &spans)?;
            let sample = || Ok(compression::pick_sample_entries(&plan.entries));
            let mut found = report(options, &file, contents, census, sample, ctx)?;
            if let Some(extended) = found.extended.as_mut().filter(|_| options.maxima) {
                extended.find_largest_objects(source)?;
            }
            let top = options.top.map(|most| top::find(source, most));
            let summary = Summary {
                top: top.transpose()?,
                id_ranges: options
                    .id_ranges
                    .then(|| blobs::id_distributions(&plan, &spans)),
                blob_list: options
                    .list_blobs
                    .map(|most| blobs::list_blobs(source, &spans, most))
                    .transpose()?,
                ..found
            };
            Ok((summary, (counts, plan)))
        }
    }
}

/// Returns a file with its whole table of contents, if it has a table. `file` may have been opened for its summary
/// alone.
fn with_whole_table(file: PbfFile, ctx: &Context) -> Result<PbfFile> {
    if file.summary.is_some() && file.toc.is_none() {
        PbfFile::of_input(file.input.clone(), ctx)
    } else {
        Ok(file)
    }
}

/// Creates the report without the largest objects, the id ranges and the list of blobs. `sample` returns the
/// entries of the blobs whose compression is examined.
fn report(
    options: &Options,
    file: &PbfFile,
    contents: Contents,
    census: Census,
    sample: impl FnOnce() -> Result<Vec<BlobEntry>>,
    ctx: &Context,
) -> Result<Summary> {
    let asked = options.statistics;
    let index = index_kind_of(file)?;
    let [nodes, ways, relations] = contents.tallies.each_ref().map(|tally| tally.count);
    let header = &file.header;
    let bbox = contents.bbox;
    let is_history = header.has(feature::HISTORY) || contents.has_deleted;
    let has_locations = contents.has_locations || census.locations.located_refs > 0;
    let form = LocationForm::of_header(header, has_locations).name();
    Ok(Summary {
        path: path_without_credentials(&options.input).into_owned(),
        bytes: file.input.user_file_len(),
        generator: header.writing_program.clone(),
        source: header.source.clone(),
        header_bbox: header.bbox(),
        data_bbox: (!bbox.is_empty()).then_some(bbox),
        required_features: header.required_features.clone(),
        optional_features: header.optional_features.clone(),
        replication_timestamp: header.replication_timestamp.map(format_timestamp),
        replication_sequence: header.replication_sequence,
        replication_url: header.replication_url.clone(),
        index: index.name(),
        indexed: index == IndexKind::TableOfContents,
        blobs: contents.blobs,
        payload_bytes: contents.payload_bytes,
        objects: contents.objects,
        nodes,
        ways,
        relations,
        kinds: contents.kinds,
        declared_sorted: header.has(feature::SORTED),
        sorted: contents.sorted,
        spatial_layout: contents.is_spatial,
        id_table: contents.has_id_table,
        history: is_history,
        locations_on_ways: header.has(feature::LOCATIONS) || has_locations,
        edge_ids: contents.tallies.map(|tally| tally.ids.0),
        extended: asked
            .extended
            .then(|| Extended::new(&census.extended, contents.sorted == Some(false))),
        node_statistics: asked.nodes.then_some(census.nodes),
        way_locations: asked.locations.then_some(WayLocationStatistics {
            form,
            ..census.locations
        }),
        anomalies: (asked.anomalies)
            .then(|| anomalies::anomalies_of_file(census.anomalies, is_history)),
        compression: examine_compression_if_asked(options, file, sample, ctx)?,
        top: None,
        id_ranges: None,
        blob_list: None,
    })
}

/// Determines how the blobs in the sample are compressed. Returns `None` if [`Options::compression`] is not set, or if
/// the input is in a text format.
fn examine_compression_if_asked(
    options: &Options,
    file: &PbfFile,
    sample: impl FnOnce() -> Result<Vec<BlobEntry>>,
    ctx: &Context,
) -> Result<Option<SampledCompression>> {
    if options.compression && !input::is_from_text(file) {
        Ok(Some(compression::examine_sample(file, sample()?, ctx)?))
    } else {
        Ok(None)
    }
}

/// Completes the blob entries of a file, and collects the requested statistics.
fn plan_with_statistics<C: ObjectCounter>(
    file: &PbfFile,
    asked: Statistics,
    ctx: &Context,
) -> Result<(BlobPlan, Census, C)> {
    if asked.any() {
        ctx.expect_phases(1);
        take_census(file, asked, ctx)
    } else {
        let plan = BlobPlan::open(file, PlanNeeds::Ranges, ctx)?;
        Ok((plan, Census::default(), C::default()))
    }
}

/// Collects the requested statistics. Decodes the blobs whose entries do not contain these statistics. In the same
/// pass, completes the entries of blobs whose content is not fully known from an index.
fn take_census<C: ObjectCounter>(
    file: &PbfFile,
    asked: Statistics,
    ctx: &Context,
) -> Result<(BlobPlan, Census, C)> {
    let plan = BlobPlan::open(file, PlanNeeds::Frames, ctx)?;
    let (mut census, mut counts) = (Census::default(), C::default());
    // If the entries of all blobs contain all requested statistics, reading the entries takes less time than starting
    // threads.
    if plan.entries.iter().all(|entry| asked.is_answered_by(entry)) {
        for entry in &plan.entries {
            census.merge(asked.census_of(entry));
        }
        census.finish();
        return Ok((plan, census, counts));
    }
    let mut entries = Vec::with_capacity(plan.entries.len());
    let level = AtomicU32::new(counts.level());
    BlobPass::new("look at objects", &file.input, ctx)
        .with_memory_factor(2)
        .run(
            plan.entries,
            || (),
            |reader, (), entry| {
                if asked.is_answered_by(&entry) {
                    Ok((entry, asked.census_of(&entry), C::default()))
                } else {
                    statistics_of_blob(reader, entry, asked, level.load(Ordering::Relaxed))
                }
            },
            |(entry, found, counted)| {
                entries.push(entry);
                census.merge(found);
                counts.merge(&counted);
                level.store(counts.level(), Ordering::Relaxed);
                Ok(())
            },
        )?;
    let plan = BlobPlan { entries };
    census.finish();
    Ok((plan, census, counts))
}

/// Collects the requested statistics of a blob from its objects, and counts the objects at `level`. Also returns the
/// complete entry of the blob.
fn statistics_of_blob<C: ObjectCounter>(
    reader: &mut BlobDecoder,
    mut entry: BlobEntry,
    asked: Statistics,
    level: u32,
) -> Result<(BlobEntry, Census, C)> {
    let (mut census, mut counts) = (Census::default(), C::at_level(level));
    let known = entry;
    reader.decode(&known, |payload| {
        if asked.extended || !known.flags.has(BlobFlags::SCANNED) {
            let (counts, repeated) = scan_counts(payload, &mut entry)?;
            if asked.extended {
                census.extended = ObjectCensus::of_blob(&entry, counts, repeated);
            }
        }
        if asked.needs_visit(&entry) {
            census.add_block(asked, &entry, &Block::parse(payload)?, &mut counts)
        } else {
            Ok(())
        }
    })?;
    Ok((entry, census, counts))
}
