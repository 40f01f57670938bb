//! Features for callers that make batches of them, such as tables in memory.

use super::builder::ExportPart;
use super::feature_buffer::FeatureForm;
use super::maker::{AnyMaker, FeatureMaker, MakerForm};
use super::{Options, visit, warn_of_left_out};
use crate::engine::input;
use crate::error::Error;
use crate::runtime::{Batches, Context};
use std::sync::Arc;

/// Makes batches of the features of a file, in the order nodes, ways and relations, each in file order. Of `options`,
/// the target, the format, and what concerns them have no effect. With `needs_info`, features have metadata.
///
/// Threads make batches ahead: up to two for each thread, and those of the blobs in work. The threads end when the
/// iterator is dropped. The memory is that of [`run`](super::run), and that of the batches. Errors are those of
/// [`run`](super::run), and items of the iterator.
pub fn batches<M: FeatureMaker + 'static>(
    options: Options,
    needs_info: bool,
    maker: impl Fn() -> M + Send + Sync + 'static,
    ctx: &Context,
) -> Batches<M::Batch> {
    let create = Arc::new(move || Box::new(maker()) as Box<dyn AnyMaker>);
    let form = FeatureForm::Made(MakerForm { create, needs_info });
    Batches::start(2 * ctx.jobs, ctx, move |ctx, take| {
        let file = input::open(&options.input, ctx)?;
        let made = visit(&file, &options, form, false, ctx, |part| match part {
            ExportPart::Made(batch) => {
                let broken = |_| Error::Internal("a batch has another type".into());
                take(*batch.downcast().map_err(broken)?)
            }
            _ => Ok(()),
        });
        warn_of_left_out(&made?, options.incomplete, ctx);
        Ok(())
    })
}
