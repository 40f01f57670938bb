//! Going through several files side by side: which blobs stand for themselves, which overlap others, and in
//! what portions the latter are taken together.

use crate::error::{Error, FormatError, Result};
use crate::file::BlobReader;
use crate::io::{Input, SizeHint};
use crate::osm::TypeThenId;
use crate::pbf::{BlobEntry, BlobFlags};
use crate::runtime::{Context, WorkItem};

use std::sync::Arc;

/// A blob of one of the inputs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    /// Which input.
    pub file: usize,
    pub entry: BlobEntry,
}

/// The objects of a cluster that lie in a range of keys.
#[derive(Debug, Clone)]
pub(crate) struct Shard {
    /// The blobs that reach into the range.
    pub sources: Vec<Source>,
    /// The first key of the range; `None` for everything up to its end.
    pub from: Option<TypeThenId>,
    /// The first key behind the range; `None` for everything from its start.
    pub until: Option<TypeThenId>,
    /// All blobs of the cluster, shared by its shards.
    pub cluster: Arc<Vec<Source>>,
}

/// One step of the output, in canonical order.
#[derive(Debug, Clone)]
pub(crate) enum MergeStep {
    Copy(Source),
    Merge(Shard),
}

impl Shard {
    /// All of one blob.
    pub(crate) fn of(source: Source) -> Self {
        Self {
            sources: vec![source],
            from: None,
            until: None,
            cluster: Arc::new(vec![source]),
        }
    }

    /// The blobs that start in the shard, so that each is counted once.
    fn starting(&self) -> impl Iterator<Item = &BlobEntry> {
        let entries = self.sources.iter().map(|source| &source.entry);
        entries.filter(|entry| self.from.is_none() || entry.first_key() >= self.from)
    }
}

impl WorkItem for Shard {
    fn input_bytes(&self) -> u64 {
        total(&self.sources, |entry| entry.frame_len)
    }

    fn held_bytes(&self) -> u64 {
        total(&self.sources, |entry| entry.payload_len)
    }
}

impl WorkItem for MergeStep {
    fn input_bytes(&self) -> u64 {
        match self {
            Self::Copy(source) => u64::from(source.entry.frame_len),
            Self::Merge(shard) => shard.input_bytes(),
        }
    }

    /// The payloads of the blobs that are merged.
    fn held_bytes(&self) -> u64 {
        match self {
            Self::Copy(_) => 0,
            Self::Merge(shard) => shard.held_bytes(),
        }
    }
}

impl MergeStep {
    /// Blobs of the input that are merged, each counted in the shard it starts in.
    pub(crate) fn blobs_merged(&self) -> u64 {
        match self {
            Self::Copy(_) => 0,
            Self::Merge(shard) => shard.starting().count() as u64,
        }
    }

    /// The bytes that this step adds to the output.
    pub(crate) fn size_hint(&self) -> SizeHint {
        match self {
            Self::Copy(source) => {
                SizeHint::copy_of(source.entry.offset, source.entry.frame_len.into())
            }
            Self::Merge(shard) => {
                let starting = shard.starting();
                SizeHint::new_bytes(starting.map(|entry| u64::from(entry.frame_len)).sum())
            }
        }
    }
}

fn total(sources: &[Source], value: fn(&BlobEntry) -> u32) -> u64 {
    sources
        .iter()
        .map(|source| u64::from(value(&source.entry)))
        .sum()
}

/// Whether two blobs hold the same objects, each once, as far as their hashes tell.
pub(crate) fn are_equal(one: &BlobEntry, other: &BlobEntry) -> bool {
    let hashed = |entry: &BlobEntry| entry.flags.has(BlobFlags::HASHED);
    hashed(one)
        && hashed(other)
        && (one.hash, one.payload_len, one.count) == (other.hash, other.payload_len, other.count)
        && (one.first_key(), one.last_key()) == (other.first_key(), other.last_key())
        // Ids that come again may go on in the blob beside.
        && one.flags.has(BlobFlags::STRICT)
        && one.kinds.single().is_some()
}

/// The blobs without those that hold the same as another.
pub(crate) fn without_equals(mut blobs: Vec<Source>) -> Vec<Source> {
    blobs.sort_by_key(|source| source.entry.first_key());
    blobs.dedup_by(|later, kept| are_equal(&later.entry, &kept.entry));
    blobs
}

/// Cuts the blobs of all inputs into steps.
pub(crate) fn plan_steps(blobs: Vec<Source>, shard_bytes: u64) -> Vec<MergeStep> {
    // Blobs without nodes, ways or relations have no place in the order: they go to the end.
    let (mut blobs, empty): (Vec<_>, Vec<_>) =
        blobs.into_iter().partition(|source| source.entry.count > 0);
    // Stable: blobs that start alike keep the order of the inputs.
    blobs.sort_by_key(|source| source.entry.first_key());
    let mut steps = Vec::new();
    let mut cluster: Vec<Source> = Vec::new();
    let mut last: Option<TypeThenId> = None;
    for source in blobs {
        if !cluster.is_empty() && source.entry.first_key() > last {
            end_cluster(std::mem::take(&mut cluster), shard_bytes, &mut steps);
        }
        last = source.entry.last_key().max(last);
        cluster.push(source);
    }
    end_cluster(cluster, shard_bytes, &mut steps);
    steps.extend(empty.into_iter().map(MergeStep::Copy));
    steps
}

impl MergeStep {
    /// The step with a blob in which ids come again merged by itself, so that each comes once.
    pub(crate) fn with_each_id_once(self) -> Self {
        match self {
            Self::Copy(source) if !source.entry.flags.has(BlobFlags::STRICT) => self.encoded_anew(),
            step => step,
        }
    }

    /// The step with a blob that would have been copied merged by itself: what is in a temporary
    /// file is not in the form that was asked for.
    pub(crate) fn encoded_anew(self) -> Self {
        match self {
            Self::Copy(source) => Self::Merge(Shard::of(source)),
            merge => merge,
        }
    }
}

fn end_cluster(cluster: Vec<Source>, shard_bytes: u64, steps: &mut Vec<MergeStep>) {
    match cluster.as_slice() {
        [] => {}
        [single] if single.entry.flags.has(BlobFlags::SORTED) => {
            steps.push(MergeStep::Copy(*single))
        }
        _ => steps.extend(
            shards(cluster, shard_bytes)
                .into_iter()
                .map(MergeStep::Merge),
        ),
    }
}

/// Cuts a cluster, which is ordered by first keys, into shards of about `shard_bytes`.
pub(crate) fn shards(cluster: Vec<Source>, shard_bytes: u64) -> Vec<Shard> {
    let cluster = Arc::new(cluster);
    let cuts = cuts(&cluster, shard_bytes);
    let starts = std::iter::once(None).chain(cuts.iter().copied().map(Some));
    let ends = cuts.iter().copied().map(Some).chain([None]);
    let mut shards = Vec::new();
    // Blobs that reach over the cut into the next shard.
    let mut reaching: Vec<Source> = Vec::new();
    let mut rest = cluster.as_slice();
    for (from, until) in starts.zip(ends) {
        let starting = rest
            .iter()
            .take_while(|source| until.is_none() || source.entry.first_key() < until)
            .count();
        let (here, later) = rest.split_at(starting);
        rest = later;
        let mut sources = reaching;
        sources.extend_from_slice(here);
        reaching = sources
            .iter()
            .filter(|source| until.is_some() && source.entry.last_key() >= until)
            .copied()
            .collect();
        shards.push(Shard {
            sources,
            from,
            until,
            cluster: cluster.clone(),
        });
    }
    shards
}

/// Keys that cut a cluster into portions of about `shard_bytes` of payload, ascending.
///
/// The objects of a blob are taken to lie evenly between its smallest and its largest id, which is
/// near enough: a cut in the wrong place costs some balance and nothing else.
fn cuts(cluster: &[Source], shard_bytes: u64) -> Vec<TypeThenId> {
    let samples = (4096 / cluster.len().max(1)).clamp(2, 32) as u64;
    let mut points: Vec<(TypeThenId, u64)> = Vec::with_capacity(cluster.len() * samples as usize);
    for source in cluster {
        let (Some(first), Some(last)) = (source.entry.first_key(), source.entry.last_key()) else {
            continue;
        };
        let bytes = u64::from(source.entry.payload_len) / samples;
        for sample in 0..samples {
            let key = if first.0 == last.0 {
                (first.0, first.1 + (last.1 - first.1) / samples * sample)
            } else if sample < samples / 2 {
                first
            } else {
                last
            };
            points.push((key, bytes));
        }
    }
    points.sort_unstable();
    let mut cuts: Vec<TypeThenId> = Vec::new();
    let mut bytes = 0;
    for (key, more) in points {
        if bytes >= shard_bytes && Some(key) > cuts.last().copied() {
            cuts.push(key);
            bytes = 0;
        }
        bytes += more;
    }
    cuts
}

/// A reader for each input. One a worker.
pub(crate) struct Sources<'f> {
    readers: Vec<BlobReader<'f>>,
}

impl<'f> Sources<'f> {
    pub(crate) fn new(inputs: &[&'f Input], ctx: &Context) -> Self {
        Self {
            readers: inputs
                .iter()
                .map(|input| BlobReader::new(input, ctx))
                .collect(),
        }
    }

    pub(crate) fn payload(&mut self, source: &Source) -> Result<Vec<u8>> {
        let reader = self.readers.get_mut(source.file);
        let reader = reader.ok_or_else(|| Error::Internal("a blob without its file".into()))?;
        reader.payload(&source.entry).map(<[u8]>::to_vec)
    }

    pub(crate) fn error(&self, source: &Source, error: FormatError) -> Error {
        match self.readers.get(source.file) {
            Some(reader) => reader.error(&source.entry, error),
            None => Error::Internal(error.to_string()),
        }
    }
}
