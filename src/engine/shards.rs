//! Plans a walk over the blobs of several files in canonical order. A blob that overlaps no other blob is a step of its
//! own. Overlapping blobs form clusters, and each cluster is cut into shards. A shard is a range of keys.

use crate::error::{Error, FormatError, Result};
use crate::file::BlobDecoder;
use crate::io::{Input, SizeHint};
use crate::osm::TypeThenId;
use crate::pbf::{BlobEntry, BlobFlags};
use crate::runtime::{Context, WorkItem};

use std::sync::Arc;

/// A blob, and the input that contains it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    /// The index of the input.
    pub file: usize,
    pub entry: BlobEntry,
}

/// The objects of one cluster whose keys lie in a range.
#[derive(Debug, Clone)]
pub(crate) struct Shard {
    /// The blobs that overlap the range.
    pub sources: Vec<Source>,
    /// The first key of the range; `None` if the range has no lower limit.
    pub from: Option<TypeThenId>,
    /// The first key after the range; `None` if the range has no upper limit.
    pub until: Option<TypeThenId>,
    /// All blobs of the cluster, shared by its shards.
    pub cluster: Arc<Vec<Source>>,
}

/// A step of the walk. Steps are in canonical order.
#[derive(Debug, Clone)]
pub(crate) enum MergeStep {
    /// A blob to copy. It is in order and overlaps no other blob, or it has no objects.
    Copy(Source),
    /// A shard to merge from its blobs.
    Merge(Shard),
}

impl Shard {
    /// Creates a shard of all objects of one blob.
    pub(crate) fn of(source: Source) -> Self {
        Self {
            sources: vec![source],
            from: None,
            until: None,
            cluster: Arc::new(vec![source]),
        }
    }

    /// Returns the blobs whose first key is in the shard's range. Each blob of a cluster starts in exactly one shard,
    /// so a sum over all shards counts each blob once.
    fn starting_blobs(&self) -> impl Iterator<Item = &BlobEntry> {
        let entries = self.sources.iter().map(|source| &source.entry);
        entries.filter(|entry| self.from.is_none() || entry.first_sort_key() >= self.from)
    }
}

impl WorkItem for Shard {
    fn input_bytes(&self) -> u64 {
        sum_of_entries(&self.sources, |entry| entry.frame_len)
    }

    fn held_bytes(&self) -> u64 {
        sum_of_entries(&self.sources, |entry| entry.payload_len)
    }
}

impl WorkItem for MergeStep {
    fn input_bytes(&self) -> u64 {
        match self {
            Self::Copy(source) => u64::from(source.entry.frame_len),
            Self::Merge(shard) => shard.input_bytes(),
        }
    }

    /// Returns the total size in bytes of the payloads to merge.
    fn held_bytes(&self) -> u64 {
        match self {
            Self::Copy(_) => 0,
            Self::Merge(shard) => shard.held_bytes(),
        }
    }
}

impl MergeStep {
    /// Returns the number of input blobs that the step merges. A blob is counted only in the shard that it starts in.
    pub(crate) fn blobs_merged(&self) -> u64 {
        match self {
            Self::Copy(_) => 0,
            Self::Merge(shard) => shard.starting_blobs().count() as u64,
        }
    }

    /// Returns the size hint for the part of the output that this step produces.
    pub(crate) fn size_hint(&self) -> SizeHint {
        match self {
            Self::Copy(source) => {
                SizeHint::copy_of(source.entry.offset, source.entry.frame_len.into())
            }
            Self::Merge(shard) => {
                let starting = shard.starting_blobs();
                SizeHint::new_bytes(starting.map(|entry| u64::from(entry.frame_len)).sum())
            }
        }
    }
}

/// Returns the sum of `value` over the entries of `sources`.
fn sum_of_entries(sources: &[Source], value: fn(&BlobEntry) -> u32) -> u64 {
    sources
        .iter()
        .map(|source| u64::from(value(&source.entry)))
        .sum()
}

/// Whether two blobs have equal payloads according to their content hashes, have objects of a single kind, and contain
/// each id once.
pub(crate) fn have_equal_payloads(one: &BlobEntry, other: &BlobEntry) -> bool {
    let hashed = |entry: &BlobEntry| entry.flags.has(BlobFlags::HASHED);
    hashed(one)
        && hashed(other)
        && (one.hash, one.payload_len, one.count) == (other.hash, other.payload_len, other.count)
        && (one.first_sort_key(), one.last_sort_key()) == (other.first_sort_key(), other.last_sort_key())
        // If an id repeats, the next blob may have further versions of the last object. So blobs in which ids may
        // repeat do not count as equal.
        && one.flags.has(BlobFlags::UNIQUE_IDS)
        && one.kinds.single().is_some()
}

/// The choice of the blob that is kept if several blobs are equal. The choice matters if yet another blob has objects
/// with the same keys: the order of the inputs decides which of these objects are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EqualBlobs {
    KeepFirst,
    KeepLast,
}

/// Sorts blobs by their first keys. Of adjacent equal blobs, keeps only the one that `equal` selects.
pub(crate) fn sort_and_drop_equal(mut blobs: Vec<Source>, equal: EqualBlobs) -> Vec<Source> {
    blobs.sort_by_key(|source| source.entry.first_sort_key());
    blobs.dedup_by(|later, kept| {
        let are_equal = have_equal_payloads(&later.entry, &kept.entry);
        if are_equal && equal == EqualBlobs::KeepLast {
            *kept = *later;
        }
        are_equal
    });
    blobs
}

/// Plans the steps for the blobs of all inputs. The payloads of a shard have about `shard_bytes` bytes in total.
pub(crate) fn plan_steps(blobs: Vec<Source>, shard_bytes: u64) -> Vec<MergeStep> {
    // Blobs without nodes, ways or relations have no position in the order. They are copied at the end.
    let (mut blobs, empty): (Vec<_>, Vec<_>) =
        blobs.into_iter().partition(|source| source.entry.count > 0);
    // The sort is stable, so blobs with the same first key stay in the order of the inputs.
    blobs.sort_by_key(|source| source.entry.first_sort_key());
    let mut steps = Vec::new();
    let mut cluster: Vec<Source> = Vec::new();
    let mut last: Option<TypeThenId> = None;
    for source in blobs {
        if !cluster.is_empty() && source.entry.first_sort_key() > last {
            push_cluster_steps(std::mem::take(&mut cluster), shard_bytes, &mut steps);
        }
        last = source.entry.last_sort_key().max(last);
        cluster.push(source);
    }
    push_cluster_steps(cluster, shard_bytes, &mut steps);
    steps.extend(empty.into_iter().map(MergeStep::Copy));
    steps
}

impl MergeStep {
    /// Replaces a copy of a blob with a merge of that blob alone, if ids may repeat in the blob. The merge can remove
    /// duplicates. Returns other steps unchanged.
    pub(crate) fn merge_if_ids_may_repeat(self) -> Self {
        match self {
            Self::Copy(source) if !source.entry.flags.has(BlobFlags::UNIQUE_IDS) => {
                self.into_merge()
            }
            step => step,
        }
    }

    /// Replaces a copy of a blob with a merge of that blob alone. The merge re-encodes the blob. Blobs of a temporary
    /// file need this, because they do not have the compression of the output. Returns other steps unchanged.
    pub(crate) fn into_merge(self) -> Self {
        match self {
            Self::Copy(source) => Self::Merge(Shard::of(source)),
            merge => merge,
        }
    }
}

/// Adds the steps that write the blobs of a cluster to `steps`.
fn push_cluster_steps(cluster: Vec<Source>, shard_bytes: u64, steps: &mut Vec<MergeStep>) {
    match cluster.as_slice() {
        [] => {}
        [single] if single.entry.flags.has(BlobFlags::SORTED) => {
            steps.push(MergeStep::Copy(*single))
        }
        _ => steps.extend(
            cut_into_shards(cluster, shard_bytes)
                .into_iter()
                .map(MergeStep::Merge),
        ),
    }
}

/// Cuts a cluster, which must be sorted by first keys, into shards. The payloads of a shard have about `shard_bytes`
/// bytes in total.
pub(crate) fn cut_into_shards(cluster: Vec<Source>, shard_bytes: u64) -> Vec<Shard> {
    let cluster = Arc::new(cluster);
    let cuts = shard_keys(&cluster, shard_bytes);
    let starts = std::iter::once(None).chain(cuts.iter().copied().map(Some));
    let ends = cuts.iter().copied().map(Some).chain([None]);
    let mut shards = Vec::new();
    // The blobs that start in earlier shards and extend into the current shard.
    let mut reaching: Vec<Source> = Vec::new();
    let mut rest = cluster.as_slice();
    for (from, until) in starts.zip(ends) {
        let starting = rest
            .iter()
            .take_while(|source| until.is_none() || source.entry.first_sort_key() < until)
            .count();
        let (here, later) = rest.split_at(starting);
        rest = later;
        let mut sources = reaching;
        sources.extend_from_slice(here);
        reaching = sources
            .iter()
            .filter(|source| until.is_some() && source.entry.last_sort_key() >= until)
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

/// Returns the keys, in ascending order, at which to cut a cluster into shards of about `shard_bytes` bytes of payload.
///
/// The objects of a blob of one kind are assumed to be spread evenly between its smallest and its largest id. A blob of
/// several kinds is assumed to have half of its objects at its first key and half at its last key. These assumptions
/// affect only the balance of the shards.
fn shard_keys(cluster: &[Source], shard_bytes: u64) -> Vec<TypeThenId> {
    let samples = (4096 / cluster.len().max(1)).clamp(2, 32) as u64;
    let mut points: Vec<(TypeThenId, u64)> = Vec::with_capacity(cluster.len() * samples as usize);
    for source in cluster {
        let (Some(first), Some(last)) =
            (source.entry.first_sort_key(), source.entry.last_sort_key())
        else {
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

/// Readers of blobs, one for each input. Each worker has its own `Sources`.
pub(crate) struct Sources {
    readers: Vec<BlobDecoder>,
}

impl Sources {
    pub(crate) fn new(inputs: &[&Input], ctx: &Context) -> Self {
        Self {
            readers: inputs
                .iter()
                .map(|input| BlobDecoder::new(input, ctx))
                .collect(),
        }
    }

    /// Reads and decompresses the blob of a source.
    pub(crate) fn payload(&mut self, source: &Source) -> Result<Vec<u8>> {
        let reader = self.readers.get_mut(source.file);
        let reader = reader.ok_or_else(|| Error::internal("a blob without its file"))?;
        reader.take_payload(&source.entry)
    }

    /// Converts an error at the blob with the given index in `shard` to an error that names the blob.
    pub(crate) fn shard_error(&self, shard: &Shard, (index, error): (usize, FormatError)) -> Error {
        match shard.sources.get(index) {
            Some(source) => self.error(source, error),
            None => Error::Internal(error.to_string()),
        }
    }

    /// Converts an error in the blob of a source to an error that names the blob.
    pub(crate) fn error(&self, source: &Source, error: FormatError) -> Error {
        match self.readers.get(source.file) {
            Some(reader) => reader.error(&source.entry, error),
            None => Error::Internal(error.to_string()),
        }
    }
}
