//! Produces the outcomes of a blob, one for each output that keeps at least one of its objects.

use super::selection::OutputSelection;
use super::{BlobDecision, FilterItem, FilterPass, GroupId, Selected, Selection, Transformed};
use crate::engine::sink::BlobOutcome;
use crate::error::{FormatError, FormatResult, Result};
use crate::file::{BlobDecoder, WriteOptions, completed_entry};
use crate::pbf::{
    BlobEntry, Block, BlockBuilder, EditScript, EncodedFrame, FrameEncoder, MAX_PAYLOAD_LEN,
    Segmented, SourceStrings, SpliceOptions, TARGET_ELEMENTS, TARGET_PAYLOAD, put_kept_messages,
    splice_block,
};
use crate::runtime::lock;
use std::sync::Mutex;

/// The error if a block has more objects than its [`Selection`] has decisions, which is a bug.
const UNDECIDED: FormatError = FormatError::new("internal error: an object without a decision");

/// Payloads of at least this many bytes are transformed one at a time, so that the memory does not grow with the number
/// of threads. Payloads of real files are smaller.
const LARGE_PAYLOAD: usize = 8 << 20;

/// Held while a payload of at least [`LARGE_PAYLOAD`] bytes is transformed.
static LARGE_TRANSFORM: Mutex<()> = Mutex::new(());

/// The outcomes of a blob, each with the index of its output, and the return value of `select`, if `select` was called.
type Filtered<T> = (Vec<(u32, BlobOutcome)>, Option<T>);

/// The state of a worker in a filter pass.
pub(super) struct FilterWorker<'a> {
    pass: &'a FilterPass<'a>,
    write: WriteOptions,
    transformed: Vec<u8>,
    selection: Selection,
    rewriter: Rewriter,
}

impl<'a> FilterWorker<'a> {
    pub(super) fn new(pass: &'a FilterPass<'a>, write: WriteOptions) -> Self {
        Self {
            pass,
            write,
            transformed: Vec::new(),
            selection: Selection::default(),
            rewriter: Rewriter {
                encoder: FrameEncoder::new(write.compression, write.blob_index),
                builders: Vec::new(),
                spliced: Vec::new(),
            },
        }
    }

    /// Returns the outcomes of a blob. If the cache holds a payload of the blob, uses that payload. Otherwise reads the
    /// payload from the file, unless the prefilter decides about the blob.
    pub(super) fn filter<T>(
        &mut self,
        reader: &mut BlobDecoder,
        item: &FilterItem,
        select: impl Fn(&BlobEntry, &Block<'_>, &mut Selection) -> FormatResult<T>,
    ) -> Result<Filtered<T>> {
        let entry = &item.entry;
        // A reader stops calling a prefilter that rarely decides, so it depends on the worker whether the prefilter is
        // called. The output must not depend on the worker. A visited blob is copied with a completed entry. Therefore
        // a prefilter may decide to copy a blob only if the blob's entry is complete already.
        let is_known = entry.is_complete() && !item.is_transformed;
        let cache = self.pass.cache.filter(|_| item.copied_to.is_empty());
        if let Some(payload) = cache.and_then(|cache| cache.take(entry)) {
            let filtered = self.filter_payload(item, (&payload, None), false, select);
            return filtered.map_err(|error| reader.error(entry, error));
        }
        let mut stored = reader.read(entry)?;
        if let Some(prefilter) = self.pass.prefilter {
            let decided = stored.decide(|strings| match prefilter(strings) {
                BlobDecision::Drop => Some(Vec::new()),
                BlobDecision::Copy if is_known => Some(vec![(0, BlobOutcome::Copy(*entry))]),
                BlobDecision::Copy | BlobDecision::Visit => None,
            })?;
            if let Some(outcomes) = decided {
                return Ok((outcomes, None));
            }
        }
        stored.decode_in_segments(|payload, segments| {
            self.filter_payload(item, (payload, segments.into_segmented()), true, select)
        })
    }

    /// Returns the outcomes of a blob. `data` is the payload and, if known, its segments. `is_whole` is whether the
    /// payload has all objects of the blob. A payload from the cache has only the objects that an output keeps.
    fn filter_payload<T>(
        &mut self,
        item: &FilterItem,
        data: (&[u8], Option<Segmented<'_>>),
        is_whole: bool,
        select: impl Fn(&BlobEntry, &Block<'_>, &mut Selection) -> FormatResult<T>,
    ) -> FormatResult<Filtered<T>> {
        let is_large = item.is_transformed && data.0.len() >= LARGE_PAYLOAD;
        let _one = is_large.then(|| lock(&LARGE_TRANSFORM));
        let filtered = self.outcomes_of_payload(item, data, is_whole, select);
        if is_large {
            self.transformed = Vec::new();
        }
        filtered
    }

    /// Does the same as [`filter_payload`](Self::filter_payload), without the lock for large payloads.
    fn outcomes_of_payload<T>(
        &mut self,
        item: &FilterItem,
        (payload, segments): (&[u8], Option<Segmented<'_>>),
        is_whole: bool,
        select: impl Fn(&BlobEntry, &Block<'_>, &mut Selection) -> FormatResult<T>,
    ) -> FormatResult<Filtered<T>> {
        let Self {
            selection,
            rewriter,
            transformed,
            ..
        } = self;
        selection.clear();
        // The objects are selected before the transform. The selection may depend on metadata, and the transform may
        // remove the metadata.
        let (mut block, mut noted) = (None, None);
        if item.is_visited {
            let parsed = block.insert(Block::parse(payload)?);
            noted = Some(select(&item.entry, parsed, selection)?);
        } else if item.is_transformed {
            self.write.check_strings(payload)?;
        }
        transformed.clear();
        let change = match self.pass.transform.filter(|_| item.is_transformed) {
            Some(transform) => transform(&item.entry, payload, transformed)?,
            None => Transformed::No,
        };
        let payload = match change {
            Transformed::No => payload,
            Transformed::WithEntry(_) | Transformed::Yes => transformed.as_slice(),
        };
        let (whole, partial) = whole_and_partial_outputs(item, selection, is_whole);
        let mut outcomes = Vec::new();
        if !whole.is_empty() {
            let outcome = match change {
                Transformed::No => BlobOutcome::Copy(completed_entry(item.entry, payload)?),
                _ => BlobOutcome::Frames(rewriter.encode_whole(payload, change)?),
            };
            let copies = std::iter::repeat_n(outcome, whole.len());
            outcomes.extend(whole.into_iter().zip(copies));
        }
        if partial.is_empty() {
            return Ok((outcomes, noted));
        }
        let block = match block.filter(|_| change == Transformed::No) {
            Some(block) => block,
            None => Block::parse(payload)?,
        };
        let source = DecidedBlock {
            payload,
            segments,
            block,
            is_whole,
            selection,
        };
        rewriter.encode_parts(&source, partial, &mut outcomes)?;
        Ok((outcomes, noted))
    }
}

/// Returns two lists. The first has the outputs that keep all objects of a blob with their tags. The second has the
/// selections of the other outputs. If `is_whole` is false, the payload lacks objects of the blob. In this case, the
/// first list has only the outputs in [`FilterItem::copied_to`].
fn whole_and_partial_outputs(
    item: &FilterItem,
    selection: &Selection,
    is_whole: bool,
) -> (Vec<u32>, Vec<OutputSelection>) {
    let (mut whole, mut partial) = (item.copied_to.clone(), Vec::new());
    let count = selection.object_groups().len();
    for output in selection.outputs() {
        if item.copied_to.contains(&output.output) {
            continue;
        }
        if is_whole && output.kept == count && !output.strips_tags {
            whole.push(output.output)
        } else {
            partial.push(output)
        }
    }
    (whole, partial)
}

/// A block, and the decisions about its objects.
struct DecidedBlock<'a> {
    payload: &'a [u8],
    /// The segments of the blob, if it has some.
    segments: Option<Segmented<'a>>,
    block: Block<'a>,
    /// Whether the payload contains all objects of the blob.
    is_whole: bool,
    selection: &'a Selection,
}

/// Encodes the kept objects of a block for each output.
struct Rewriter {
    encoder: FrameEncoder,
    /// Builders for the outputs that keep part of the block, one for each output. Builders are reused for later blocks,
    /// so their number is the largest that a block has needed so far.
    builders: Vec<BlockBuilder>,
    spliced: Vec<u8>,
}

impl Rewriter {
    /// Encodes all objects of a payload. A payload that is too long for one blob is split into several.
    fn encode_whole(
        &mut self,
        payload: &[u8],
        change: Transformed,
    ) -> FormatResult<Vec<EncodedFrame>> {
        match change {
            _ if payload.len() > MAX_PAYLOAD_LEN as usize => {
                let block = Block::parse(payload)?;
                let mut strings = SourceStrings::new(&block.strings);
                let mut objects = block.cursor();
                while let Some(object) = objects.next()? {
                    self.encoder.add_raw(object, &block.units, &mut strings)?;
                }
            }
            Transformed::WithEntry(entry) => {
                self.encoder.add_payload_with_entry(payload, &entry)?
            }
            Transformed::No | Transformed::Yes => self.encoder.add_payload(payload)?,
        }
        self.encoder.finish()
    }

    /// Appends the outcome for each of `outputs` to `outcomes`. Each of these outputs keeps only a part of the blob, or
    /// strips tags.
    fn encode_parts(
        &mut self,
        source: &DecidedBlock<'_>,
        outputs: Vec<OutputSelection>,
        outcomes: &mut Vec<(u32, BlobOutcome)>,
    ) -> FormatResult<()> {
        let mut small = Vec::new();
        for output in outputs {
            if self.try_splice_output(source, &output)? {
                self.encoder
                    .add_edited_payload(&self.spliced, source.segments)?;
                let frames = self.encoder.finish()?;
                outcomes.push((output.output, BlobOutcome::Frames(frames)));
            } else {
                small.push(output)
            }
        }
        if small.is_empty() {
            return Ok(());
        }
        while self.builders.len() < small.len() {
            self.builders.push(BlockBuilder::default());
        }
        self.rebuild(source, &small)?;
        for (output, builder) in small.iter().zip(&mut self.builders) {
            builder.end_block();
            let parts = builder.take_blocks();
            // Large parts are compressed on this worker instead of being joined with others. Whether a part is large
            // depends on the kept objects alone, so the output does not depend on the number of workers.
            let bytes: usize = parts.iter().map(|part| part.payload.len()).sum();
            let is_large = output.kept >= TARGET_ELEMENTS / 2 || bytes >= TARGET_PAYLOAD / 2;
            let part = if is_large {
                for part in &parts {
                    self.encoder.add_payload(&part.payload)?;
                }
                BlobOutcome::Frames(self.encoder.finish()?)
            } else {
                BlobOutcome::Blocks(parts)
            };
            outcomes.push((output.output, part));
        }
        Ok(())
    }

    /// Sets `self.spliced` to the payload of the block without the dropped objects. Returns `false` if a new block has
    /// to be built instead. A new block is needed if the output strips tags, if the payload comes from the cache, or if
    /// the block cannot be spliced. A new block is also built if the output keeps less than three quarters of the
    /// objects. It is smaller than a spliced block, because a spliced block keeps the strings of dropped objects.
    fn try_splice_output(
        &mut self,
        source: &DecidedBlock<'_>,
        output: &OutputSelection,
    ) -> FormatResult<bool> {
        let objects = source.selection.object_groups();
        let is_most = output.kept * 4 >= objects.len() * 3;
        if !source.is_whole || output.strips_tags || !is_most {
            return Ok(false);
        }
        self.spliced.clear();
        let kept = objects
            .iter()
            .map(|group| output.decision_for(*group) != Selected::Drop);
        let script = EditScript::from_kept_flags(kept);
        let options = SpliceOptions::default();
        splice_block(source.payload, &script, &[], options, &mut self.spliced)
    }

    /// Adds the kept objects of the block to the builder of each of `outputs`. Objects that all of `outputs` drop are
    /// first cut out of the encoded block. Cutting them out without decoding is faster than skipping them one by one.
    fn rebuild(
        &mut self,
        source: &DecidedBlock<'_>,
        outputs: &[OutputSelection],
    ) -> FormatResult<()> {
        let by_group = source.selection.decisions_by_group(outputs);
        let keeping = |group: GroupId| by_group[group as usize].as_slice();
        let is_kept = |group: GroupId| !keeping(group).is_empty();
        let (objects, kept, cut);
        let (mut groups, mut block) = (source.selection.object_groups(), &source.block);
        if source.is_whole {
            objects = EditScript::from_kept_flags(groups.iter().map(|group| is_kept(*group)));
            self.spliced.clear();
            if put_kept_messages(source.payload, &objects, &mut self.spliced)? {
                let kept_groups = groups.iter().copied().filter(|group| is_kept(*group));
                kept = kept_groups.collect::<Vec<_>>();
                cut = block.with_group(&self.spliced)?;
                (groups, block) = (kept.as_slice(), &cut);
            }
        }
        let strings = outputs.iter().map(|_| SourceStrings::new(&block.strings));
        let mut targets: Vec<_> = self.builders.iter_mut().zip(strings).collect();
        let (mut cursor, mut groups) = (block.cursor(), groups.iter());
        while let Some(object) = cursor.next()? {
            let group = groups.next().ok_or(UNDECIDED)?;
            for &(target, keep) in keeping(*group) {
                let (builder, strings) = &mut targets[target];
                let untagged;
                let object = match keep {
                    Selected::Untagged => {
                        untagged = object.without_tags();
                        &untagged
                    }
                    Selected::Drop | Selected::Whole => object,
                };
                builder.add_raw(object, &block.units, strings)?;
            }
        }
        Ok(())
    }
}
