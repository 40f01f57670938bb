//! Makes batches of objects on all cores, for a caller that takes the batches one by one.

use super::element_reader::ElementReader;
use crate::error::{FormatError, FormatResult, Result};
use crate::file::BlobDecoder;
use crate::formats::row_limit::{OversizedObjects, RowLimit};
use crate::pbf::{BlobEntry, Block, Element};
use crate::runtime::{Batches, Context, Pass, PassResults};
use std::sync::Arc;

/// Makes batches of objects. Each thread has its own maker.
pub trait BatchMaker {
    /// A batch of objects.
    type Batch: Send + 'static;

    /// Adds an object to the current batch.
    ///
    /// # Errors
    ///
    /// The object is damaged.
    fn add(&mut self, element: &Element<'_>) -> Result<(), FormatError>;

    /// Ends the current batch and returns it. Returns `None` if it has no objects. Called at the end of each blob, and
    /// whenever [`is_full`](Self::is_full).
    fn take(&mut self) -> Option<Self::Batch>;

    /// Whether the current batch is so large that it must end now, although its blob may have more objects.
    fn is_full(&self) -> bool;
}

/// A result that a thread sends for a blob.
enum BlobBatches<B> {
    Batch(B),
    /// The objects of the blob that are too large for a batch.
    LeftOut(OversizedObjects),
}

impl ElementReader {
    /// Starts to read the selected objects, and returns an iterator over the batches, in file order. `maker` creates
    /// the [`BatchMaker`] of each thread. Threads make batches ahead of the caller: up to two per thread, and the
    /// batches of the blobs that are being decoded. The threads end when the iterator is dropped.
    ///
    /// Errors are items of the iterator, which ends after an error.
    pub fn batches<M: BatchMaker>(
        self: &Arc<Self>,
        maker: impl Fn() -> M + Send + Sync + 'static,
    ) -> Batches<M::Batch> {
        let reader = self.clone();
        Batches::start(2 * self.ctx.jobs, &self.ctx, move |ctx, take| {
            reader.make_batches(&maker, ctx, take)
        })
    }

    /// Makes the batches of the selected objects, and calls `take` with each batch, in file order.
    fn make_batches<M: BatchMaker>(
        &self,
        maker: &(impl Fn() -> M + Sync),
        ctx: &Context,
        take: &mut dyn FnMut(M::Batch) -> Result<()>,
    ) -> Result<()> {
        self.find_kinds()?;
        self.prepare(ctx)?;
        let input = &self.file.input;
        let mut oversized = OversizedObjects::default();
        Pass::new("read objects", ctx)
            .with_item_limit()
            .run_results(
                input.len(),
                self.entries(),
                || (BlobDecoder::new(input, ctx), maker()),
                |(decoder, maker), entry, results| {
                    self.make_batches_of_blob(decoder, maker, &entry, results)
                },
                |_| (),
                |found| match found {
                    BlobBatches::Batch(batch) => take(batch),
                    BlobBatches::LeftOut(objects) => {
                        oversized.extend(&objects);
                        Ok(())
                    }
                },
            )?;
        oversized.warn(RowLimit::default(), ctx);
        Ok(())
    }

    /// Makes the batches of a blob.
    fn make_batches_of_blob<M: BatchMaker>(
        &self,
        decoder: &mut BlobDecoder,
        maker: &mut M,
        entry: &BlobEntry,
        results: &PassResults<'_, BlobBatches<M::Batch>>,
    ) -> Result<()> {
        let send = |batch: Option<M::Batch>| match batch
            .map(|batch| results.send(BlobBatches::Batch(batch)))
        {
            Some(Err(error)) => Err(FormatError::with(error.to_string())),
            Some(Ok(())) | None => Ok(()),
        };
        let mut stored = decoder.read(entry)?;
        if self.selection.has_expressions() {
            let is_excluded =
                stored.decide(|strings| self.selection.cannot_match(strings).then_some(()))?;
            if is_excluded.is_some() {
                return Ok(());
            }
        }
        let mut oversized = OversizedObjects::default();
        stored.decode_in_segments(|payload, _| {
            self.visit_block(&Block::parse(payload)?, |element| -> FormatResult<()> {
                element.check_size()?;
                if !RowLimit::default().allows_object(&element, payload.len()) {
                    oversized.add(element.kind(), element.id());
                    return Ok(());
                }
                maker.add(&element)?;
                if maker.is_full() {
                    send(maker.take())?;
                }
                Ok(())
            })?;
            send(maker.take())
        })?;
        if oversized.is_empty() {
            return Ok(());
        }
        results.send(BlobBatches::LeftOut(oversized))
    }
}
