//! A table of counts of keys and tags for concurrent use. The table spills its counts to disk when they exceed a memory
//! limit.

use super::TagCount;
use crate::error::{Error, Result};
use crate::osm::StringPool;
use crate::runtime::{into_mutex_value, lock};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault};
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const SHARDS: usize = 64;
/// The estimated memory of a count in bytes, without its name. It is the sum of an entry in the spans of the
/// [`StringPool`], an entry in the lookup table of the pool, and an entry in the list of counts, each with its share of
/// the spare capacity.
const ENTRY_BYTES: u64 = 40;

/// Counts of keys and tags by name. The name of a tag is the length of its key in bytes, a colon, the key and the
/// value: `7:highwayprimary`. The name of a key is a colon and the key: `:highway`.
pub(super) struct CountTable {
    shards: Vec<Mutex<TableShard>>,
    /// The estimated memory of all shards, in bytes.
    bytes: AtomicU64,
    max_bytes: u64,
    /// Temporary files with counts, each ordered by shard and then by name.
    runs: Mutex<Vec<File>>,
}

#[derive(Default)]
struct TableShard {
    names: StringPool,
    /// The count of each name, by the id of the name in the pool.
    counts: Vec<u64>,
}

impl TableShard {
    /// Adds `more` to the count of a name. Returns the estimated memory of a new name in bytes; 0 for a known name.
    fn add(&mut self, name: &str, more: u64) -> u64 {
        let id = self.names.add(name) as usize;
        match self.counts.get_mut(id) {
            Some(count) => {
                *count += more;
                0
            }
            None => {
                self.counts.push(more);
                name.len() as u64 * 3 / 2 + ENTRY_BYTES
            }
        }
    }

    /// Returns the names and counts so far, and leaves the shard empty.
    fn take(&mut self) -> Self {
        std::mem::take(self)
    }
}

impl CountTable {
    pub(super) fn new(max_bytes: u64) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            bytes: AtomicU64::new(0),
            max_bytes,
            runs: Mutex::default(),
        }
    }

    /// Adds `count` to the count of a tag, or of a key if `value` is `None`.
    pub(super) fn add(&self, key: &str, value: Option<&str>, count: u64) {
        let name = match value {
            None => format!(":{key}"),
            Some(value) => format!("{}:{key}{value}", key.len()),
        };
        let taken = lock(&self.shards[shard_of(&name)]).add(&name, count);
        if taken > 0 {
            self.bytes.fetch_add(taken, Ordering::Relaxed);
        }
    }

    /// Spills all counts, sorted, to a new temporary file if they exceed `max_bytes` of memory. Fails if the file
    /// cannot be created or written.
    pub(super) fn spill_if_large(&self) -> Result<()> {
        if self.bytes.load(Ordering::Relaxed) <= self.max_bytes {
            return Ok(());
        }
        let mut runs = lock(&self.runs);
        // Another thread may have spilled the counts while this thread waited for the lock.
        if self.bytes.load(Ordering::Relaxed) <= self.max_bytes {
            return Ok(());
        }
        self.bytes.store(0, Ordering::Relaxed);
        // Takes and sorts one shard at a time, so that spilling needs little additional memory.
        let directory = std::env::temp_dir();
        let failed = |error| Error::io(&directory, CANNOT_USE, error);
        let mut run = BufWriter::new(tempfile::tempfile().map_err(failed)?);
        for shard in &self.shards {
            let shard = lock(shard).take();
            for (name, count) in sorted_counts(&shard) {
                write_record(&mut run, name, count).map_err(failed)?;
            }
        }
        runs.push(
            run.into_inner()
                .map_err(|error| failed(error.into_error()))?,
        );
        Ok(())
    }

    /// Returns the keys and tags whose count `kept` accepts, in no particular order, and the number of all distinct
    /// keys and tags. Fails if a temporary file cannot be read.
    pub(super) fn finish(self, kept: impl Fn(u64) -> bool) -> Result<(Vec<TagCount>, u64)> {
        let directory = std::env::temp_dir();
        let failed = |error| Error::io(&directory, CANNOT_USE, error);
        let runs = into_mutex_value(self.runs);
        let mut runs: Vec<BufReader<File>> = runs.into_iter().map(BufReader::new).collect();
        for run in &mut runs {
            run.rewind().map_err(failed)?;
        }
        let mut result = Vec::new();
        let mut distinct = 0;
        let mut take = |name: &str, count: u64| {
            distinct += 1;
            if kept(count) {
                result.push(tag_count(name, count));
            }
        };
        // All runs are ordered by shard and then by name, so they can be merged one shard at a time.
        let mut heads: Vec<Option<(String, u64)>> = Vec::new();
        for run in &mut runs {
            heads.push(read_record(run).map_err(failed)?);
        }
        for (number, shard) in self.shards.into_iter().enumerate() {
            let shard = into_mutex_value(shard);
            if runs.is_empty() {
                (0..)
                    .zip(&shard.counts)
                    .for_each(|(id, count)| take(shard.names.get(id), *count));
                continue;
            }
            merge_shard(
                number,
                &sorted_counts(&shard),
                &mut runs,
                &mut heads,
                &mut take,
            )
            .map_err(failed)?;
        }
        Ok((result, distinct))
    }
}

const CANNOT_USE: &str = "cannot use a temporary file in this directory";

fn shard_of(name: &str) -> usize {
    // Uses bits 32 to 37 of the hash, because the hash table of the string pool uses the lowest and the highest bits.
    let hash = BuildHasherDefault::<rustc_hash::FxHasher>::default().hash_one(name);
    (hash >> 32) as usize % SHARDS
}

/// Returns the names and counts of a shard, ordered by name.
fn sorted_counts(shard: &TableShard) -> Vec<(&str, u64)> {
    let names = (0..).zip(&shard.counts);
    let mut counts: Vec<(&str, u64)> = names
        .map(|(id, count)| (shard.names.get(id), *count))
        .collect();
    counts.sort_unstable();
    counts
}

/// Calls `take` with each name of one shard, in ascending order, and with the sum of its counts in memory and in the
/// runs. `in_memory` is ordered by name. `heads` has the next record of each run.
fn merge_shard(
    number: usize,
    in_memory: &[(&str, u64)],
    runs: &mut [BufReader<File>],
    heads: &mut [Option<(String, u64)>],
    take: &mut impl FnMut(&str, u64),
) -> std::io::Result<()> {
    let mut in_memory = in_memory.iter().peekable();
    // For each run that has further names of the shard, the next name, the index of the run, and the count of the name.
    let mut heap: BinaryHeap<Reverse<(String, usize, u64)>> = heads
        .iter()
        .enumerate()
        .filter_map(|(run, head)| head.as_ref().map(|(name, more)| (name.clone(), run, *more)))
        .filter(|(name, ..)| shard_of(name) == number)
        .map(Reverse)
        .collect();
    loop {
        let on_disk = heap.peek().map(|Reverse((name, ..))| name.clone());
        let here = in_memory.peek().map(|(name, _)| *name);
        let name = match (on_disk, here) {
            (None, None) => return Ok(()),
            (Some(disk), Some(here)) if here < disk.as_str() => here.to_owned(),
            (Some(disk), _) => disk,
            (None, Some(here)) => here.to_owned(),
        };
        let mut count = 0;
        if let Some((_, more)) = in_memory.next_if(|(here, _)| *here == name) {
            count += more;
        }
        while heap.peek().is_some_and(|Reverse((head, ..))| *head == name)
            && let Some(Reverse((_, run, more))) = heap.pop()
        {
            count += more;
            heads[run] = read_record(&mut runs[run])?;
            if let Some((next, more)) = &heads[run]
                && shard_of(next) == number
            {
                heap.push(Reverse((next.clone(), run, *more)));
            }
        }
        take(&name, count);
    }
}

/// Converts a name in a [`CountTable`] and its count to a [`TagCount`].
fn tag_count(name: &str, count: u64) -> TagCount {
    let (len, text) = name.split_once(':').unwrap_or(("", name));
    match len
        .parse::<usize>()
        .ok()
        .and_then(|len| text.split_at_checked(len))
    {
        Some((key, value)) => TagCount {
            count,
            key: key.to_owned(),
            value: Some(value.to_owned()),
        },
        None => TagCount {
            count,
            key: text.to_owned(),
            value: None,
        },
    }
}

fn write_record(out: &mut impl Write, name: &str, count: u64) -> std::io::Result<()> {
    out.write_all(&(name.len() as u32).to_le_bytes())?;
    out.write_all(&count.to_le_bytes())?;
    out.write_all(name.as_bytes())
}

/// Reads the next name and its count; `None` at the end of the run.
fn read_record(run: &mut impl Read) -> std::io::Result<Option<(String, u64)>> {
    let (mut len, mut count) = ([0; 4], [0; 8]);
    match run.read_exact(&mut len) {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    run.read_exact(&mut count)?;
    let mut name = vec![0; u32::from_le_bytes(len) as usize];
    run.read_exact(&mut name)?;
    let name = String::from_utf8(name).map_err(std::io::Error::other)?;
    Ok(Some((name, u64::from_le_bytes(count))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_the_same_whether_they_fit_into_memory_or_not() {
        let count = |max_bytes: u64| {
            let table = CountTable::new(max_bytes);
            for turn in 0..5u64 {
                for number in 0..400u64 {
                    let value = format!("{}", number % 150);
                    table.add("name:1", Some(&value), turn + 1);
                    table.add(&format!("1:{}", number % 30), None, 1);
                }
                table.spill_if_large().unwrap();
            }
            let (mut counts, distinct) = table.finish(|count| count > 5).unwrap();
            counts.sort_by(|a, b| (&a.key, &a.value).cmp(&(&b.key, &b.value)));
            (counts, distinct)
        };
        let plain = count(u64::MAX);
        assert_eq!(plain.1, 180);
        assert_eq!(
            plain.0.iter().map(|tag| tag.count).sum::<u64>(),
            15 * 400 + 5 * 400
        );
        assert_eq!(count(0), plain);
        assert_eq!(count(5000), plain);
    }
}
