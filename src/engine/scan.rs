//! One phase over the blobs that a plan could not rule out, for what is to be learned from them.

use super::filter::{BlobDecision, StringPrefilter};
use crate::error::{FormatError, Result};
use crate::file::{BlobPlan, BlobReader, PbfFile, Prefiltered};
use crate::pbf::{BlobEntry, ParsedBlock, StringTable};
use crate::runtime::{Context, parallel_classify_phase};

/// What is looked at, and how deeply.
pub(crate) struct Scan<'a> {
    name: &'static str,
    file: &'a PbfFile,
    plan: &'a mut BlobPlan,
    /// What can be said of a blob by its strings.
    prefilter: Option<StringPrefilter<'a>>,
    with_strings: bool,
    ctx: &'a Context,
}

impl<'a> Scan<'a> {
    /// A phase that looks at ids, places and references, and not at strings.
    pub(crate) fn bare(
        name: &'static str,
        file: &'a PbfFile,
        plan: &'a mut BlobPlan,
        ctx: &'a Context,
    ) -> Self {
        Self {
            name,
            file,
            plan,
            prefilter: None,
            with_strings: false,
            ctx,
        }
    }

    /// The same, with the strings of each block.
    pub(crate) fn with_strings(self) -> Self {
        Self {
            with_strings: true,
            ..self
        }
    }

    /// The same, but for blobs that `prefilter` drops by their strings.
    pub(crate) fn glancing(self, prefilter: StringPrefilter<'a>) -> Self {
        Self {
            prefilter: Some(prefilter),
            ..self.with_strings()
        }
    }

    /// Reads the blobs that `selected` picks and hands what `look` makes of each to `take`, in file order.
    pub(crate) fn run<T: Send>(
        self,
        selected: impl Fn(&BlobEntry) -> bool,
        look: impl Fn(&BlobEntry, &ParsedBlock<'_>) -> Result<T, FormatError> + Sync,
        mut take: impl FnMut(T),
    ) -> Result<()> {
        self.try_run(selected, look, |found| {
            take(found);
            Ok(())
        })
    }

    /// As [`run`](Self::run), with a `take` that may fail.
    pub(crate) fn try_run<T: Send>(
        self,
        selected: impl Fn(&BlobEntry) -> bool,
        look: impl Fn(&BlobEntry, &ParsedBlock<'_>) -> Result<T, FormatError> + Sync,
        mut take: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let (file, ctx) = (self.file, self.ctx);
        let entries = self.plan.entries.iter();
        let blobs: Vec<&BlobEntry> = entries.filter(|entry| selected(entry)).collect();
        let bytes = |entry: &BlobEntry| u64::from(entry.frame_len);
        let phase = ctx.phase(self.name, blobs.iter().map(|entry| bytes(entry)).sum());
        let (prefilter, with_strings) = (self.prefilter, self.with_strings);
        parallel_classify_phase(
            ctx.jobs,
            ctx.byte_budget(),
            blobs.into_iter().map(Ok),
            // What is found takes up to 16 bytes an object.
            |entry| bytes(entry) * 2 + u64::from(entry.count) * 16,
            || BlobReader::new(&file.input, ctx),
            |reader, entry| {
                let is_dropped = prefilter.map(|prefilter| {
                    move |strings: &StringTable<'_>| {
                        (prefilter(strings) == BlobDecision::Drop).then_some(())
                    }
                });
                let payload = match reader.payload_unless_decided(entry, is_dropped)? {
                    Prefiltered::Decided(()) => return Ok((bytes(entry), None)),
                    Prefiltered::Payload(payload) => payload,
                };
                let block = match with_strings {
                    true => ParsedBlock::parse(payload),
                    false => ParsedBlock::parse_bare(payload),
                };
                let looked = block.and_then(|block| look(entry, &block));
                let looked = looked.map_err(|error| reader.error(entry, error))?;
                Ok((bytes(entry), Some(looked)))
            },
            |(bytes, looked)| {
                phase.advance(bytes);
                looked.into_iter().try_for_each(&mut take)
            },
        )
    }
}
