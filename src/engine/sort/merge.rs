//! Merges the objects of overlapping blobs. Overlapping blobs form a cluster, which `shards` divides into shards by
//! ranges of keys.

use super::kept::DuplicateChoice;
use super::located::WayLocationRule;
use super::merged::{BlockError, Merged, parse_blocks, units_by_index};
use super::{ResolvedDedupe, SortRules};
use crate::engine::repeat_count::{RepeatCount, RepeatedNeighbours};
use crate::engine::shards::{MergeStep, Shard, Source, Sources, plan_steps};
use crate::error::{CANNOT_WRITE_TEMPORARY, FileResult, Result};
use crate::io::Input;
use crate::pbf::{BlobEntry, Compression, EncodedFrame, FrameEncoder, RawElement, SourceStrings};
use crate::runtime::{Context, Pass, WorkItem};
use crate::system;
use std::path::Path;
use std::sync::Arc;

/// Merges the objects of a shard into frames, in canonical order. `rules` decide which versions of an object are
/// written, and which locations ways have. If all versions are written, also counts the objects that occur again.
/// Fails if a blob of the shard is damaged or contradicts its entry.
pub(crate) fn merge_shard(
    sources: &mut Sources,
    encoder: &mut FrameEncoder,
    shard: &Shard,
    rules: &SortRules,
) -> Result<(Vec<EncodedFrame>, RepeatCount)> {
    let payload = |source: &Source| {
        let payload = sources.payload(source)?;
        let relocated = rules.locations.relocate(&source.entry, &payload);
        let relocated = relocated.map_err(|error| sources.error(source, error))?;
        Ok(relocated.unwrap_or(payload))
    };
    let payloads: Vec<Vec<u8>> = shard.sources.iter().map(payload).collect::<Result<_>>()?;
    let merged = merge_payloads(&payloads, encoder, shard, rules.kept);
    merged.map_err(|error| sources.shard_error(shard, error))
}

/// Merges the objects of a shard, and encodes them. `payloads` has the payload of each blob of the shard.
fn merge_payloads(
    payloads: &[Vec<u8>],
    encoder: &mut FrameEncoder,
    shard: &Shard,
    kept: ResolvedDedupe,
) -> Result<(Vec<EncodedFrame>, RepeatCount), BlockError> {
    let blocks = parse_blocks(payloads)?;
    let mut strings: Vec<SourceStrings<'_>> = blocks
        .iter()
        .map(|block| SourceStrings::new(&block.strings))
        .collect();
    let mut add = |index: usize, object: &RawElement<'_>| {
        let added = encoder.add_raw(object, &blocks[index].units, &mut strings[index]);
        added.map_err(|error| (index, error))
    };
    let mut merged = Merged::new(&blocks, shard)?;
    let units = units_by_index(&blocks);
    // The last object, with the index of its source. The next object may still replace it.
    let mut last: Option<(usize, RawElement<'_>)> = None;
    let mut neighbours = RepeatedNeighbours::default();
    while let Some((index, object)) = merged.next()? {
        if kept == ResolvedDedupe::All {
            neighbours.add_key(object.key);
            add(index, object)?;
            continue;
        }
        let choice = match &last {
            Some((_, before)) if before.key != object.key => DuplicateChoice::Both,
            None => DuplicateChoice::Both,
            Some((source, before)) => kept
                .choose((before, &units(*source)), (object, &units(index)))
                .map_err(|error| (index, error))?,
        };
        match choice {
            DuplicateChoice::First => {}
            DuplicateChoice::Second => last = Some((index, *object)),
            DuplicateChoice::Both => {
                if let Some((index, before)) = &last {
                    add(*index, before)?;
                }
                last = Some((index, *object));
            }
        }
    }
    if let Some((index, object)) = &last {
        add(*index, object)?;
    }
    let frames = encoder.finish().map_err(|error| (0, error))?;
    Ok((frames, neighbours.found))
}

/// Sorted runs in a temporary file. They replace clusters in which too many blobs overlap.
pub(crate) struct Runs {
    pub(crate) input: Input,
    /// The clusters that were sorted, each with the blobs of its runs in the temporary file. A cluster is identified by
    /// its shared pointer.
    clusters: Vec<(Arc<Vec<Source>>, Vec<BlobEntry>)>,
}

/// The maximum number of times that the shards of a cluster may decode a blob, on average over the blobs of the
/// cluster. A cluster that exceeds this number is first sorted into runs.
const MAX_DECODES: u64 = 3;

/// Sorts the clusters that exceed [`MAX_DECODES`] into runs, in a temporary file in `directory`. Each part of a cluster
/// becomes a run. Returns `None` if no cluster exceeds [`MAX_DECODES`].
pub(crate) fn sort_clusters_into_runs(
    inputs: &[&Input],
    steps: &[MergeStep],
    shard_bytes: u64,
    directory: &Path,
    ctx: &Context,
) -> Result<Option<Runs>> {
    let clusters = clusters_to_presort(steps);
    if clusters.is_empty() {
        return Ok(None);
    }
    let file = tempfile::tempfile_in(directory).for_path(directory, CANNOT_WRITE_TEMPORARY)?;
    let mut runs = Vec::new();
    let mut offset = 0u64;
    let rules = SortRules {
        kept: ResolvedDedupe::All,
        locations: WayLocationRule::Keep,
        tells_repeats: false,
    };
    for cluster in clusters {
        let parts = cut_cluster(&cluster, shard_bytes);
        let mut entries: Vec<BlobEntry> = Vec::new();
        Pass::new("sort runs", ctx)
            .with_budget(super::MERGE_BUDGET)
            .run(
                parts,
                || {
                    (
                        Sources::new(inputs, ctx),
                        FrameEncoder::new(Compression::Lz4, false),
                    )
                },
                |(sources, encoder), shard| merge_shard(sources, encoder, &shard, &rules),
                |(frames, _)| {
                    for frame in frames {
                        system::write(&file, &frame.bytes)
                            .for_path(directory, CANNOT_WRITE_TEMPORARY)?;
                        entries.push(BlobEntry {
                            offset,
                            ..frame.entry
                        });
                        offset += frame.bytes.len() as u64;
                    }
                    Ok(())
                },
            )?;
        runs.push((cluster, entries));
    }
    let input = Input::from_temporary(file, Path::new("temporary file"))?;
    Ok(Some(Runs {
        input,
        clusters: runs,
    }))
}

/// Returns the clusters that exceed [`MAX_DECODES`]: the payloads that all shards of the cluster decode are together
/// more than [`MAX_DECODES`] times as large as the payloads of the cluster.
fn clusters_to_presort(steps: &[MergeStep]) -> Vec<Arc<Vec<Source>>> {
    let mut found: Vec<(Arc<Vec<Source>>, u64)> = Vec::new();
    for step in steps {
        if let MergeStep::Merge(shard) = step {
            let bytes = step.held_bytes();
            match found.last_mut() {
                Some((cluster, sum)) if Arc::ptr_eq(cluster, &shard.cluster) => *sum += bytes,
                _ => found.push((shard.cluster.clone(), bytes)),
            }
        }
    }
    let payload = |cluster: &[Source]| {
        cluster
            .iter()
            .map(|source| u64::from(source.entry.payload_len))
            .sum::<u64>()
    };
    found.retain(|(cluster, decoded)| *decoded > MAX_DECODES * payload(cluster));
    found.into_iter().map(|(cluster, _)| cluster).collect()
}

/// Cuts a cluster into parts of about `shard_bytes` bytes of payload. Each part becomes a run.
fn cut_cluster(cluster: &Arc<Vec<Source>>, shard_bytes: u64) -> Vec<Shard> {
    // The parts have the blobs in file order, because adjacent blobs of a file are often in order already.
    let mut blobs = cluster.to_vec();
    blobs.sort_by_key(|source| (source.file, source.entry.offset));
    let mut parts = Vec::new();
    let (mut part, mut bytes) = (Vec::new(), 0);
    let end = |sources| Shard {
        sources,
        from: None,
        until: None,
        cluster: cluster.clone(),
    };
    for source in blobs {
        bytes += u64::from(source.entry.payload_len);
        part.push(source);
        if bytes >= shard_bytes {
            parts.push(end(std::mem::take(&mut part)));
            bytes = 0;
        }
    }
    if !part.is_empty() {
        parts.push(end(part));
    }
    parts
}

impl Runs {
    /// Replaces the shards of each cluster that was sorted into runs with steps that merge these runs. `file` is the
    /// index of the temporary file among the inputs.
    pub(crate) fn replace_shards(
        &self,
        steps: Vec<MergeStep>,
        file: usize,
        shard_bytes: u64,
    ) -> Vec<MergeStep> {
        let mut replaced: Vec<MergeStep> = Vec::with_capacity(steps.len());
        let mut last: Option<Arc<Vec<Source>>> = None;
        for step in steps {
            let cluster = match &step {
                MergeStep::Merge(shard) => Some(shard.cluster.clone()),
                MergeStep::Copy(_) => None,
            };
            let runs = cluster.as_ref().and_then(|cluster| {
                self.clusters
                    .iter()
                    .find(|(sorted, _)| Arc::ptr_eq(sorted, cluster))
            });
            match runs {
                None => replaced.push(step),
                Some((sorted, entries)) => {
                    if !last.as_ref().is_some_and(|last| Arc::ptr_eq(last, sorted)) {
                        let blobs = entries
                            .iter()
                            .map(|&entry| Source { file, entry })
                            .collect();
                        let steps = plan_steps(blobs, shard_bytes).into_iter();
                        replaced.extend(steps.map(MergeStep::into_merge));
                        last = Some(sorted.clone());
                    }
                }
            }
        }
        replaced
    }
}
