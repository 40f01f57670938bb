//! Features for callers that make batches of them, such as tables in memory.

use super::feature_pass::FeaturePass;
use super::maker::{FeatureMaker, FeatureView};
use super::output::{FeatureNeeds, FeatureOutput};
use super::{FeatureRules, LookupOptions, warn_of_left_out};
use crate::engine::input;
use crate::error::FormatResult;
use crate::formats::features::Feature;
use crate::geometry::Extent;
use crate::pbf::Relation;
use crate::runtime::{Batches, Context};
use std::path::PathBuf;

/// An output that passes the features of a thread to a maker of the caller.
struct MadeFeatures<M>(M);

impl<M: FeatureMaker> FeatureOutput for MadeFeatures<M> {
    type Part = M::Batch;

    fn put(&mut self, feature: &Feature<'_>, _: &Extent, _: Option<&Relation<'_>>) -> u64 {
        self.0.add(&FeatureView(feature));
        0
    }

    fn take(&mut self, is_end: bool) -> FormatResult<Option<M::Batch>> {
        let is_ready = is_end || self.0.is_full();
        Ok(if is_ready { self.0.take() } else { None })
    }
}

/// Makes batches of the features of a file, in the order nodes, ways and relations, each in file order. With
/// `needs_info`, features have metadata.
///
/// Threads make batches in advance: up to two for each thread, in addition to the batches of the blobs that are being
/// processed. The threads end when the iterator is dropped. The memory is that of [`run`](super::run) plus that of the
/// batches. The errors are those of [`run`](super::run). They are items of the iterator.
pub fn batches<M: FeatureMaker + 'static>(
    input: impl Into<PathBuf>,
    rules: FeatureRules,
    lookup: LookupOptions,
    needs_info: bool,
    maker: impl Fn() -> M + Send + Sync + 'static,
    ctx: &Context,
) -> Batches<M::Batch> {
    let input = input.into();
    Batches::start(2 * ctx.jobs, ctx, move |ctx, take| {
        let file = input::open(&input, ctx)?;
        let pass = FeaturePass {
            file: &file,
            rules: &rules,
            locate: lookup.locate_options(std::env::temp_dir),
            needs: FeatureNeeds {
                info: needs_info,
                ..FeatureNeeds::default()
            },
            ctx,
        };
        let made = pass.run(None, || MadeFeatures(maker()), take)?;
        warn_of_left_out(&made, rules.incomplete, ctx);
        Ok(())
    })
}
