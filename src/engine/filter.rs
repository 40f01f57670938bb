//! Writes the selected objects of a file, to one output or to several in one pass.
//!
//! A [`BlobDecision`] about each blob determines whether its objects are visited. A visited blob is parsed. A closure
//! then records in a [`Selection`], for each object of the blob, which outputs keep the object.

mod selection;
mod worker;

use super::block_packer::Encoders;
use super::changesets::{Placement, put};
use super::output_options::{Format, OutputOptions};
use super::partial_blob_cache::PartialBlobCache;
use super::sink::{BlobOutcome, Sink, WriteSummary};
use crate::error::{Error, FormatResult, Result};
use crate::file::{BlobPass, BlobPlan, PbfFile, WriteOptions};
use crate::io::{OpenOutput, SizeHint};
use crate::osm::ObjectKind;
use crate::pbf::{BlobEntry, Block, HeaderBlock, InfoFields, StringTable, clean_block};
use crate::runtime::{Cancellation, Context, PhaseLimits, WorkItem, parallel_single_result_phase};
pub(crate) use selection::{GroupId, Selected, Selection};
use worker::FilterWorker;

/// The decision about a blob, made before its objects are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlobDecision {
    /// No object is kept.
    Drop,
    /// All objects are kept.
    Copy,
    /// The objects have to be visited.
    Visit,
}

impl BlobDecision {
    /// Returns [`Visit`](Self::Visit) if objects may be kept, else [`Drop`](Self::Drop).
    pub(crate) const fn visit_if(may_be_kept: bool) -> Self {
        if may_be_kept { Self::Visit } else { Self::Drop }
    }
}

/// A blob to filter, and the decisions about it for all outputs.
#[derive(Debug, Clone)]
pub(crate) struct FilterItem {
    pub entry: BlobEntry,
    /// The indices of the outputs that keep all objects of the blob.
    pub copied_to: Vec<u32>,
    /// Whether outputs that are not in `copied_to` may keep some objects of the blob. If so, the objects have to be
    /// visited.
    pub is_visited: bool,
    /// Whether the payload is transformed before it is written.
    pub is_transformed: bool,
}

impl FilterItem {
    /// Creates an item for a single output, with the decision for that output.
    pub(crate) fn new(entry: BlobEntry, decision: BlobDecision) -> Self {
        Self {
            entry,
            copied_to: match decision {
                BlobDecision::Copy => vec![0],
                BlobDecision::Drop | BlobDecision::Visit => Vec::new(),
            },
            is_visited: decision == BlobDecision::Visit,
            is_transformed: false,
        }
    }

    /// Returns the same item, marked so that its payload is transformed before it is written.
    pub(crate) fn with_transform(self) -> Self {
        Self {
            is_transformed: true,
            ..self
        }
    }

    fn is_dropped(&self) -> bool {
        self.copied_to.is_empty() && !self.is_visited
    }

    const fn needs_decoding(&self) -> bool {
        self.is_visited || self.is_transformed
    }

    /// Returns the outcome for each output to which the blob is copied.
    fn copies(&self) -> Vec<(u32, BlobOutcome)> {
        let outputs = self.copied_to.iter();
        let copies = outputs.map(|output| (*output, BlobOutcome::Copy(self.entry)));
        copies.collect()
    }
}

impl WorkItem for FilterItem {
    fn input_bytes(&self) -> u64 {
        self.entry.input_bytes()
    }

    fn held_bytes(&self) -> u64 {
        if self.needs_decoding() {
            self.entry.input_bytes() * 4
        } else {
            0
        }
    }
}

/// A function that decides about a blob by its string table alone, before the rest of the payload is decompressed.
pub(crate) type StringPrefilter<'a> = &'a (dyn Fn(&StringTable<'_>) -> BlobDecision + Sync);

/// The result of a [`Transform`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transformed {
    /// The payload stays unchanged, and the output buffer is ignored.
    No,
    /// The output buffer has a new payload. The [`BlobEntry`] describes the new payload, except for the length and the
    /// hash.
    WithEntry(BlobEntry),
    /// The output buffer has a new payload, which has to be scanned for the facts of its entry.
    Yes,
}

/// A function that transforms the payload of a blob, and appends the new payload to the output buffer. The new payload
/// must have the same number of objects, in the same order.
pub(crate) type Transform<'a> =
    &'a (dyn Fn(&BlobEntry, &[u8], &mut Vec<u8>) -> FormatResult<Transformed> + Sync);

/// An open output, its format, and the header to write to it.
pub(crate) struct FilterOutput {
    pub output: OpenOutput,
    pub format: Format,
    pub header: HeaderBlock,
}

/// A file to filter, and the outputs for its selected objects.
pub(crate) struct FilterJob<'a> {
    /// The name of the pass, for progress and statistics.
    pub name: &'static str,
    pub file: &'a PbfFile,
    pub plan: BlobPlan,
    /// The prefilter. It is allowed only with a single output.
    pub prefilter: Option<StringPrefilter<'a>>,
    /// The cache that already holds the kept objects of some blobs.
    pub cache: Option<&'a PartialBlobCache>,
    /// The metadata fields to remove from the objects of all outputs.
    pub clean: InfoFields,
    pub outputs: Vec<FilterOutput>,
    pub write: WriteOptions,
}

impl<'a> FilterJob<'a> {
    /// Creates a job with a single open output, without a prefilter, a cache or cleaning. The output has the format of
    /// `options`. Its header is `header` with the fields that `options` set.
    pub(crate) fn with_output(
        name: &'static str,
        file: &'a PbfFile,
        plan: BlobPlan,
        output: OpenOutput,
        mut header: HeaderBlock,
        options: &OutputOptions,
    ) -> Self {
        options.header.apply(&mut header);
        let output = FilterOutput {
            output,
            format: options.format.clone(),
            header,
        };
        Self {
            name,
            file,
            plan,
            prefilter: None,
            cache: None,
            clean: InfoFields::NONE,
            outputs: vec![output],
            write: options.write,
        }
    }
}

/// Writes the selected objects of a file to one output, in file order.
///
/// `decide` classifies a blob by its entry. A blob without an index is always visited. For each object of a block, in
/// order, `select` pushes a decision to the [`Selection`]. Calls `note` with the return values of `select`, in file
/// order.
pub(crate) fn write_selected<T: Send>(
    job: FilterJob<'_>,
    decide: impl Fn(&BlobEntry) -> BlobDecision,
    select: impl Fn(&BlobEntry, &Block<'_>, &mut Selection) -> FormatResult<T> + Sync,
    note: impl FnMut(T),
    ctx: &Context,
) -> Result<WriteSummary> {
    let summaries = write_outputs(
        job,
        |entry| FilterItem::new(*entry, decide(entry)),
        |entry, block, selection| {
            selection.start_one_output();
            select(entry, block, selection)
        },
        note,
        ctx,
    )?;
    let only = summaries.into_iter().next();
    only.ok_or_else(|| Error::internal("a filter has no output"))
}

/// Writes the selected objects of a file to any number of outputs in one pass, as [`write_selected`] does for one
/// output. Returns the summaries in the order of the outputs.
pub(crate) fn write_outputs<T: Send>(
    job: FilterJob<'_>,
    decide: impl Fn(&BlobEntry) -> FilterItem,
    select: impl Fn(&BlobEntry, &Block<'_>, &mut Selection) -> FormatResult<T> + Sync,
    note: impl FnMut(T),
    ctx: &Context,
) -> Result<Vec<WriteSummary>> {
    let cleans = !job.clean.is_empty();
    let clean = |_: &BlobEntry, payload: &[u8], out: &mut Vec<u8>| {
        clean_block(payload, job.clean, out).map(|()| Transformed::Yes)
    };
    let transform: Option<Transform<'_>> = if cleans { Some(&clean) } else { None };
    let entries = job.plan.entries.into_iter();
    let items = entries.map(|entry| {
        let item = if entry.is_indexed() {
            decide(&entry)
        } else {
            FilterItem::new(entry, BlobDecision::Visit)
        };
        if cleans { item.with_transform() } else { item }
    });
    let items: Vec<FilterItem> = items.collect();
    let outputs = 0..job.outputs.len() as u32;
    let size_hints = outputs.map(|output| size_hint(&items, output)).collect();
    let mut writer = FilteredWriter::begin(job.file, job.outputs, job.write, size_hints, ctx)?;
    let pass = FilterPass {
        name: job.name,
        prefilter: job.prefilter,
        cache: job.cache,
        transform,
    };
    writer.run_pass(pass, items, select, note)?;
    writer.finish()
}

/// Returns the size hint for the output with index `output`. The hint counts the bytes that are copied from the input
/// to this output.
pub(crate) fn size_hint(items: &[FilterItem], output: u32) -> SizeHint {
    let is_copied = |item: &&FilterItem| !item.is_transformed && item.copied_to.contains(&output);
    let copies = items.iter().filter(is_copied).map(|item| &item.entry);
    copies.fold(SizeHint::default(), |hint, entry| {
        hint.and(SizeHint::copy_of(entry.offset, entry.frame_len.into()))
    })
}

/// The options of one pass of a [`FilteredWriter`] over some blobs of its file.
pub(crate) struct FilterPass<'a> {
    /// The name of the pass, for progress and statistics.
    pub name: &'static str,
    /// The prefilter. It is allowed only with a single output.
    pub prefilter: Option<StringPrefilter<'a>>,
    /// The cache that already holds the kept objects of some blobs.
    pub cache: Option<&'a PartialBlobCache>,
    /// The transform for the items whose [`FilterItem::is_transformed`] is set.
    pub transform: Option<Transform<'a>>,
}

impl FilterPass<'_> {
    /// Returns the options of a pass without a prefilter, a cache or a transform.
    pub(crate) const fn plain(name: &'static str) -> Self {
        Self {
            name,
            prefilter: None,
            cache: None,
            transform: None,
        }
    }
}

/// Writes selected objects of a file to one or more outputs, in one pass or in several.
pub(crate) struct FilteredWriter<'f> {
    file: &'f PbfFile,
    /// The options with which workers encode blobs.
    encoding: WriteOptions,
    ctx: &'f Context,
    sinks: Vec<Sink>,
    /// The features that the headers of the outputs declared at first, and whose declarations are removed in the end.
    retracted: Vec<&'static str>,
}

impl<'f> FilteredWriter<'f> {
    /// Creates a writer, and begins the outputs. `size_hints` has one hint per output.
    pub(crate) fn begin(
        file: &'f PbfFile,
        outputs: Vec<FilterOutput>,
        write: WriteOptions,
        size_hints: Vec<SizeHint>,
        ctx: &'f Context,
    ) -> Result<Self> {
        if outputs.len() != size_hints.len() {
            let cause = "the outputs of a filter have not one size hint each";
            return Err(Error::internal(cause));
        }
        let write = outputs
            .first()
            .map_or(write, |output| write.for_header(&output.header));
        let (count, encoders) = (outputs.len(), Encoders::new(write, ctx));
        // If at least one output is a PBF file, the workers encode blobs for PBF.
        let are_texts = outputs.iter().all(|output| output.format != Format::Pbf);
        let first = outputs.first().filter(|_| are_texts);
        let format = first.map_or(Format::Pbf, |output| output.format.clone());
        let sinks = outputs.into_iter().zip(size_hints).map(|(output, hint)| {
            let hint = SizeHint {
                others: count - 1,
                ..hint
            };
            let FilterOutput {
                output,
                format,
                header,
            } = output;
            Sink::begin_in_output(output, format, write, header, hint, &encoders, ctx)
        });
        Ok(Self {
            file,
            encoding: format.encoding(write),
            ctx,
            sinks: sinks.collect::<Result<_>>()?,
            retracted: Vec::new(),
        })
    }

    /// Removes the declaration of an optional feature from the headers of all outputs. Has no effect on a stream, whose
    /// header is written first.
    pub(crate) fn retract(&mut self, feature: &'static str) {
        self.retracted.push(feature);
    }

    /// Appends the selected objects of some blobs to the outputs. `select` and `note` are as in [`write_selected`].
    pub(crate) fn run_pass<T: Send>(
        &mut self,
        pass: FilterPass<'_>,
        mut items: Vec<FilterItem>,
        select: impl Fn(&BlobEntry, &Block<'_>, &mut Selection) -> FormatResult<T> + Sync,
        mut note: impl FnMut(T),
    ) -> Result<()> {
        let (input, ctx, encoding) = (&self.file.input, self.ctx, self.encoding);
        let sinks = &mut self.sinks;
        items.retain(|item| {
            if item.is_dropped() {
                ctx.stats.count_skipped_blob(item.entry.is_verified());
                sinks.iter_mut().for_each(Sink::count_skipped_blob);
            }
            !item.is_dropped()
        });
        BlobPass::new(pass.name, input, ctx).run(
            items,
            || FilterWorker::new(&pass, encoding),
            |reader, worker, item| {
                if item.needs_decoding() {
                    worker.filter(reader, &item, &select)
                } else {
                    Ok((item.copies(), None))
                }
            },
            |(outcomes, noted)| {
                noted.into_iter().for_each(&mut note);
                let mut outcomes = outcomes.into_iter();
                outcomes
                    .try_for_each(|(output, outcome)| sinks[output as usize].add(input, outcome))
            },
        )
    }

    /// Writes changesets to the first output, if the file was converted from a text input with changesets that belong
    /// to `place`.
    pub(crate) fn put_changesets(
        &mut self,
        place: Placement,
        output: &OutputOptions,
    ) -> Result<()> {
        let first = self.sinks.first_mut();
        first.map_or(Ok(()), |sink| put(self.file, place, output, sink, self.ctx))
    }

    /// Completes all outputs, and returns their summaries. The last blocks of the outputs are encoded in parallel, and
    /// up to 16 files are flushed to disk at the same time.
    pub(crate) fn finish(mut self) -> Result<Vec<WriteSummary>> {
        const AT_ONCE: usize = 16;
        self.sinks.iter_mut().try_for_each(Sink::end_block)?;
        let files: Result<Vec<_>> = self.sinks.into_iter().map(Sink::close).collect();
        let mut files = files?;
        for feature in self.retracted {
            files.iter_mut().for_each(|file| file.retract(feature));
        }
        let mut summaries = Vec::with_capacity(files.len());
        let _phase = self.ctx.phase("flush", 0);
        parallel_single_result_phase(
            PhaseLimits {
                jobs: AT_ONCE.min(files.len()),
                budget: u64::MAX,
                // Each commit checks for cancellation itself. A file that already has its final name is kept.
                cancellation: &Cancellation::default(),
            },
            files.into_iter().map(Ok),
            |_| 0,
            || (),
            |(), file| file.finish(),
            |summary| {
                summaries.push(summary);
                Ok(())
            },
        )?;
        Ok(summaries)
    }
}

/// Calls `select` with the kind and the id of each object of a block, and pushes each returned decision to `selection`.
/// May be used only with a single output.
pub(crate) fn select_by_id(
    block: &Block<'_>,
    selection: &mut Selection,
    mut select: impl FnMut(ObjectKind, i64) -> Selected,
) -> FormatResult<()> {
    block.for_each_id(|kind, id| selection.push(select(kind, id)))
}
