//! A parallel pass over the blobs of a file. Each worker has its own [`BlobDecoder`].

use super::{BlobDecoder, FrameHead};
use crate::error::Result;
use crate::io::Input;
use crate::pbf::BlobEntry;
use crate::runtime::{Context, Pass, WorkItem};

impl WorkItem for BlobEntry {
    fn input_bytes(&self) -> u64 {
        u64::from(self.frame_len)
    }
}

impl WorkItem for &BlobEntry {
    fn input_bytes(&self) -> u64 {
        u64::from(self.frame_len)
    }
}

impl WorkItem for FrameHead {
    fn input_bytes(&self) -> u64 {
        u64::from(self.entry.frame_len)
    }
}

/// An item with additional data. The memory for the additional data is not counted.
impl<T: WorkItem, N: Send> WorkItem for (T, N) {
    const COUNTS_ROWS: bool = T::COUNTS_ROWS;

    fn input_bytes(&self) -> u64 {
        self.0.input_bytes()
    }

    fn held_bytes(&self) -> u64 {
        self.0.held_bytes()
    }
}

/// A parallel pass over blobs of one file. See [`Pass`] for its options.
pub(crate) struct BlobPass<'f, 'c> {
    pass: Pass<'c>,
    input: &'f Input,
    ctx: &'c Context,
}

impl<'f, 'c> BlobPass<'f, 'c> {
    /// Creates a pass that progress and statistics show as `name`.
    pub(crate) fn new(name: &'static str, input: &'f Input, ctx: &'c Context) -> Self {
        Self {
            pass: Pass::new(name, ctx),
            input,
            ctx,
        }
    }

    /// Sets the memory factor, as [`Pass::with_memory_factor`] does. For blobs, the factor applies to the size of the
    /// frame.
    pub(crate) fn with_memory_factor(self, memory_factor: u64) -> Self {
        Self {
            pass: self.pass.with_memory_factor(memory_factor),
            ..self
        }
    }

    /// Calls `work` with each item on all cores, and calls `merge` with the results in the order of the items. `init`
    /// creates the scratch value of a worker.
    pub(crate) fn run<T: WorkItem, S, R: Send>(
        self,
        items: Vec<T>,
        init: impl Fn() -> S + Sync,
        work: impl Fn(&mut BlobDecoder, &mut S, T) -> Result<R> + Sync,
        merge: impl FnMut(R) -> Result<()>,
    ) -> Result<()> {
        let (input, ctx) = (self.input, self.ctx);
        let init = || (BlobDecoder::new(input, ctx), init());
        let work = |(reader, scratch): &mut (BlobDecoder, S), item| work(reader, scratch, item);
        self.pass.run(items, init, work, merge)
    }

    /// Calls `work` with each item of an iterator, as [`run`](Self::run) does. Progress is shown relative to the size
    /// of the file.
    pub(crate) fn run_stream<T: WorkItem, S, R: Send>(
        self,
        items: impl Iterator<Item = Result<T>> + Send,
        init: impl Fn() -> S + Sync,
        work: impl Fn(&mut BlobDecoder, &mut S, T) -> Result<R> + Sync,
        merge: impl FnMut(R) -> Result<()>,
    ) -> Result<()> {
        let (input, ctx) = (self.input, self.ctx);
        let init = || (BlobDecoder::new(input, ctx), init());
        let work = |(reader, scratch): &mut (BlobDecoder, S), item| work(reader, scratch, item);
        self.pass.run_stream(input.len(), items, init, work, merge)
    }
}
