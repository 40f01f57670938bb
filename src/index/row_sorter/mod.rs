//! Sorts rows of bytes by a key, in bounded memory.
//!
//! Threads add batches of rows. If a batch completes a run, the thread that added the batch sorts the rows of the run,
//! cuts them into blocks and compresses the blocks. Runs beyond the memory limit go to temporary files, one file per
//! run. Many short runs are merged into a long run. In a long run, most rows of a block belong to the same range of
//! keys. Finally, the rows are read in order, one range of keys at a time. The rows of a range come from the blocks of
//! all runs that overlap the range. Ranges depend on the keys alone. Neither the number of runs nor the number of
//! threads changes the order of rows or the ends of ranges.

mod batch;
mod counts;
mod portions;
mod run;

pub(crate) use batch::{RowBatch, SharedRows};
pub(crate) use counts::{KeyBits, KeyRange};

use crate::error::{Error, Result};
use crate::runtime::{Cancellation, Context, lock};
use counts::KeyCounts;
use portions::RowPortions;
use run::{BlockBuffer, RunBuilder, SortedRun, merge_runs};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// The number of runs in files that are merged into a run of the next level. This limits the number of open files per
/// level.
const MERGED: usize = 64;

/// The memory usage in bytes at which the batch of a thread is full.
const FULL_BATCH: usize = 2 << 20;

/// The limits of a sort.
#[derive(Debug, Clone)]
pub(crate) struct RowLimits {
    /// The number of bytes of rows at which a run is complete and is sorted.
    pub run: usize,
    /// The maximum number of bytes of compressed runs in memory.
    pub memory: usize,
}

impl RowLimits {
    pub(crate) const fn new(run: usize, memory: usize) -> Self {
        Self { run, memory }
    }
}

/// Collects rows from several threads, and sorts them.
#[derive(Debug)]
pub(crate) struct RowSorter {
    limits: RowLimits,
    bits: KeyBits,
    directory: PathBuf,
    cancellation: Cancellation,
    state: Mutex<SorterState>,
}

#[derive(Debug)]
struct SorterState {
    /// Rows that are in no run yet. Their size in bytes is `pending_len`.
    pending: Vec<RowBatch>,
    pending_len: usize,
    rows: SortedRows,
    /// The number of threads that are sorting or merging.
    busy: usize,
    /// The first error of a thread.
    failed: Option<Error>,
}

impl RowSorter {
    /// Creates a sorter without rows. Runs beyond the memory limit go to unnamed files in `directory`. Once `ctx` is
    /// cancelled, no more runs are sorted or merged.
    pub(crate) fn new(limits: RowLimits, bits: KeyBits, directory: &Path, ctx: &Context) -> Self {
        Self {
            limits,
            bits,
            directory: directory.to_owned(),
            cancellation: ctx.cancellation.clone(),
            state: Mutex::new(SorterState {
                pending: Vec::new(),
                pending_len: 0,
                rows: SortedRows::new(bits, directory),
                busy: 0,
                failed: None,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, SorterState> {
        lock(&self.state)
    }

    /// Adds rows. If they complete a run, the call also sorts the run, which is slow.
    /// [`check_for_error`](Self::check_for_error) and [`finish`](Self::finish) report errors.
    pub(crate) fn add(&self, batch: RowBatch) {
        let batches = {
            let mut state = self.lock();
            state.pending_len += batch.memory_bytes();
            state.pending.push(batch);
            if state.pending_len < self.limits.run {
                return;
            }
            state.busy += 1;
            state.pending_len = 0;
            std::mem::take(&mut state.pending)
        };
        let added = self.add_run(batches);
        let mut state = self.lock();
        state.busy -= 1;
        if let Err(error) = added {
            state.failed.get_or_insert(error);
        }
    }

    /// Adds the rows of a batch, which is empty afterwards. Does nothing for an empty batch.
    pub(crate) fn add_and_clear(&self, rows: &mut RowBatch) {
        if rows.count() > 0 {
            self.add(std::mem::take(rows));
        }
    }

    /// If a batch is full, adds its rows and empties it. A thread calls this after each row, because a blob can have
    /// gigabytes of rows.
    pub(crate) fn add_if_full(&self, rows: &mut RowBatch) {
        if rows.memory_bytes() >= FULL_BATCH {
            self.add_and_clear(rows);
        }
    }

    /// Fails with the first error of a thread that could not write rows to a temporary file. Reports this error only
    /// once.
    pub(crate) fn check_for_error(&self) -> Result<()> {
        self.lock().failed.take().map_or(Ok(()), Err)
    }

    /// Sorts rows into a run, and adds the run.
    fn add_run(&self, batches: Vec<RowBatch>) -> Result<()> {
        self.cancellation.check()?;
        let rows = batches.iter().map(RowBatch::count).sum();
        let (mut builder, mut keys) = (RunBuilder::default(), Vec::with_capacity(rows));
        for (key, row) in batch::rows_by_key(&batches) {
            builder.push(key, row)?;
            keys.push(key);
        }
        drop(batches);
        let mut run = builder.finish()?;
        {
            let mut state = self.lock();
            state.rows.counts.add(keys.into_iter());
            if state.rows.in_memory + run.bytes_in_memory() <= self.limits.memory {
                state.rows.in_memory += run.bytes_in_memory();
                state.rows.runs.push(run);
                return Ok(());
            }
        }
        run.move_to_file(&self.directory)?;
        self.add_run_in_file(run)
    }

    /// Adds a run that is in a file. Merges runs in files if there are too many.
    fn add_run_in_file(&self, run: SortedRun) -> Result<()> {
        let (mut run, mut level) = (run, 0);
        loop {
            let runs = {
                let mut state = self.lock();
                let levels = &mut state.rows.levels;
                if levels.len() == level {
                    levels.push(Vec::new());
                }
                let runs = &mut levels[level];
                runs.push(run);
                if runs.len() < MERGED {
                    return Ok(());
                }
                std::mem::take(runs)
            };
            run = merge_runs(runs, &self.directory, &self.cancellation)?;
            level += 1;
        }
    }

    /// Sorts the remaining rows, and returns all rows. The sorter has no rows afterwards.
    pub(crate) fn finish(&self) -> Result<SortedRows> {
        let pending = std::mem::take(&mut self.lock().pending);
        self.add_run(pending)?;
        self.check_for_error()?;
        let mut state = self.lock();
        let none = SortedRows::new(self.bits, &self.directory);
        match state.busy {
            0 => Ok(std::mem::replace(&mut state.rows, none)),
            _ => Err(Error::internal("a thread that sorts stopped")),
        }
    }
}

/// Rows that can be read in order.
#[derive(Debug)]
pub(crate) struct SortedRows {
    /// The runs in memory.
    runs: Vec<SortedRun>,
    in_memory: usize,
    /// The runs in files, by level. Except in the first level, each run was merged from runs of the level before.
    levels: Vec<Vec<SortedRun>>,
    counts: KeyCounts,
    directory: PathBuf,
}

impl SortedRows {
    fn new(bits: KeyBits, directory: &Path) -> Self {
        Self {
            runs: Vec::new(),
            in_memory: 0,
            levels: Vec::new(),
            counts: KeyCounts::new(bits),
            directory: directory.to_owned(),
        }
    }

    /// Returns the number of bytes in temporary files.
    pub(crate) fn scratch_len(&self) -> u64 {
        self.levels.iter().flatten().map(SortedRun::len).sum()
    }

    /// Returns the number of rows.
    #[cfg(feature = "parquet")]
    pub(crate) fn count(&self) -> u64 {
        self.counts.total()
    }

    /// Cuts the keys into ranges of about `rows` rows, with at least one range for each group that occurs.
    pub(crate) fn ranges(&self, rows: u64) -> Vec<KeyRange> {
        self.counts.ranges(rows)
    }

    /// Returns the rows with keys in a range, in order. Rows with the same key are ordered by their bytes.
    pub(crate) fn read(&self, keys: &Range<u64>) -> Result<SharedRows> {
        let (mut batch, mut buffer) = (RowBatch::default(), BlockBuffer::default());
        let mut add = |_, key, row: &[u8]| {
            batch.push(key, |out| out.extend_from_slice(row));
            ControlFlow::Continue(())
        };
        for run in self.all_runs() {
            run.for_each(keys, 0, &mut buffer, &self.directory, &mut add)?;
        }
        batch.sort();
        Ok(batch.into_shared())
    }

    /// Returns the rows of a range in parts of up to `memory` bytes. While a part is collected, rows of up to twice
    /// `memory` bytes are in memory, even if many rows have the same key.
    pub(crate) fn portions(&self, range: KeyRange, memory: usize) -> RowPortions<'_> {
        RowPortions::new(self, range, memory)
    }

    /// Returns all rows in order, in parts of up to `memory` bytes. Each part has rows of only one of the ranges that
    /// [`ranges`](Self::ranges) returns for `rows`.
    pub(crate) fn all_portions(
        &self,
        rows: u64,
        memory: usize,
    ) -> impl Iterator<Item = Result<SharedRows>> {
        let ranges = self.ranges(rows).into_iter();
        ranges.flat_map(move |range| self.portions(range, memory))
    }

    fn all_runs(&self) -> impl Iterator<Item = &SortedRun> {
        self.runs.iter().chain(self.levels.iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;

    const BITS: KeyBits = KeyBits::new(8, 32);

    #[test]
    fn rows_come_back_in_order_for_any_number_of_runs() {
        let mut random = Random(3);
        let mut expected: Vec<(u64, Vec<u8>)> = (0..30_000)
            .map(|number| {
                let key = random.below(3) << 32 | random.below(4) << 20 | random.below(70_000);
                let len = random.below(40) as usize;
                (
                    key,
                    [vec![7; len], number.to_string().into_bytes()].concat(),
                )
            })
            .collect();
        let mut all_ranges = Vec::new();
        // The last limits make a thousand runs, which are merged.
        for (memory, run) in [(usize::MAX, usize::MAX), (50_000, 200_000), (0, 1000)] {
            let directory = tempfile::tempdir().unwrap();
            let sorter = RowSorter::new(
                RowLimits { run, memory },
                BITS,
                directory.path(),
                &Context::default(),
            );
            std::thread::scope(|threads| {
                for part in expected.chunks(expected.len().div_ceil(3)) {
                    let sorter = &sorter;
                    threads.spawn(move || {
                        for rows in part.chunks(15) {
                            let mut batch = RowBatch::default();
                            for (key, row) in rows {
                                batch.push(*key, |out| out.extend_from_slice(row));
                            }
                            sorter.add(batch);
                        }
                    });
                }
            });
            let sorted = sorter.finish().unwrap();
            assert_eq!(sorted.scratch_len() > 0, memory < usize::MAX);
            assert_eq!(sorted.levels.len() > 1, run == 1000);
            assert!(sorted.levels.iter().all(|runs| runs.len() < MERGED));
            let ranges = sorted.ranges(1000);
            let mut found = Vec::new();
            for KeyRange { keys, rows } in &ranges {
                let batch = sorted.read(keys).unwrap();
                assert_eq!(batch.count() as u64, *rows);
                assert!(*rows < 1_000 + 70_000 && keys.start >> 32 == (keys.end - 1) >> 32);
                found.extend(batch.iter().map(<[u8]>::to_vec));
            }
            expected.sort_unstable();
            assert!(found.iter().eq(expected.iter().map(|(_, row)| row)));
            all_ranges.push(ranges);
        }
        assert!(all_ranges.windows(2).all(|pair| pair[0] == pair[1]));
        assert!(all_ranges[0].len() > 12);
    }

    #[test]
    fn an_error_of_a_thread_is_reported() {
        let limits = RowLimits { run: 1, memory: 0 };
        let sorter = RowSorter::new(limits, BITS, Path::new("/nonexistent"), &Context::default());
        let mut batch = RowBatch::default();
        batch.push(1, |out| out.push(1));
        sorter.add(batch);
        assert!(sorter.check_for_error().is_err());
    }
}
