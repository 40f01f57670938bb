//! Making of a block what outputs keep of it.

use super::selection::{GroupId, OutputSelection, Selected, Selection};
use super::{BlobDecision, BlobDecisions, Done, Pass, Transform, Transformed};
use crate::error::{FormatError, Result};
use crate::file::{BlobReader, PbfFile, Prefiltered, WriteOptions, complete};
use crate::pbf::splice::{EditScript, SpliceOptions, keep_objects, splice_block};
use crate::pbf::{
    BlobEntry, BlobFlags, BlockBuilder, EncodedFrame, FrameEncoder, MAX_PAYLOAD_LEN, ParsedBlock,
    SourceStrings, StringTable, TARGET_ELEMENTS, TARGET_PAYLOAD,
};
use crate::runtime::Context;

/// What the outputs get of a blob, and what is to be noted of it.
type Looked<T> = (Vec<(u32, Done)>, Option<T>);

/// A worker's scratch.
pub(crate) struct FilterWorker<'f> {
    reader: BlobReader<'f>,
    pass: &'f Pass<'f>,
    changed: Vec<u8>,
    selection: Selection,
    rewriter: Rewriter,
}

impl<'f> FilterWorker<'f> {
    pub(crate) fn new(
        file: &'f PbfFile,
        pass: &'f Pass<'f>,
        write: WriteOptions,
        ctx: &Context,
    ) -> Self {
        Self {
            reader: BlobReader::new(&file.input, ctx),
            pass,
            changed: Vec::new(),
            selection: Selection::default(),
            rewriter: Rewriter {
                encoder: FrameEncoder::new(write.compression, write.blob_index),
                builders: Vec::new(),
                spliced: Vec::new(),
            },
        }
    }

    pub(crate) fn look<T>(
        &mut self,
        entry: BlobEntry,
        decisions: &BlobDecisions,
        select: impl Fn(&BlobEntry, &ParsedBlock<'_>, &mut Selection) -> Result<T, FormatError>,
    ) -> Result<Looked<T>> {
        // To be copied unread, a blob has to be known as well as if it was read: whether it is read depends
        // on the worker.
        let has = |flag| entry.flags.has(flag);
        let is_known = has(BlobFlags::SCANNED) && has(BlobFlags::HASHED) && !decisions.change;
        let prefilter = self.pass.prefilter.map(|prefilter| {
            move |strings: &StringTable<'_>| match prefilter(strings) {
                BlobDecision::Drop => Some(Vec::new()),
                BlobDecision::Copy if is_known => {
                    Some(Done::copies(entry, &BlobDecision::Copy.into()))
                }
                BlobDecision::Copy | BlobDecision::Look => None,
            }
        });
        let cache = self.pass.cache.filter(|_| decisions.copies.is_empty());
        let cache = cache.and_then(|cache| cache.take(&entry));
        let payload = match &cache {
            Some(cache) => cache.as_slice(),
            None => match self.reader.payload_unless_decided(&entry, prefilter)? {
                Prefiltered::Decided(done) => return Ok((done, None)),
                Prefiltered::Payload(payload) => payload,
            },
        };
        let mut blob = Blob {
            entry,
            payload,
            is_whole: cache.is_none(),
            change: self.pass.change.filter(|_| decisions.change),
            changed: &mut self.changed,
        };
        blob.look(decisions, &mut self.selection, &mut self.rewriter, select)
            .map_err(|error| self.reader.error(&entry, error))
    }
}

/// A blob that is looked at.
struct Blob<'a> {
    entry: BlobEntry,
    payload: &'a [u8],
    /// Whether the payload is all there is in the blob.
    is_whole: bool,
    change: Option<Transform<'a>>,
    /// Where another payload goes.
    changed: &'a mut Vec<u8>,
}

impl Blob<'_> {
    fn look<T>(
        &mut self,
        decisions: &BlobDecisions,
        selection: &mut Selection,
        rewriter: &mut Rewriter,
        select: impl Fn(&BlobEntry, &ParsedBlock<'_>, &mut Selection) -> Result<T, FormatError>,
    ) -> Result<Looked<T>, FormatError> {
        selection.clear();
        // What is taken out may be what decides.
        let (mut block, mut noted) = (None, None);
        if decisions.look {
            let parsed = block.insert(ParsedBlock::parse(self.payload)?);
            noted = Some(select(&self.entry, parsed, selection)?);
        }
        self.changed.clear();
        let change = match self.change {
            Some(change) => change(&self.entry, self.payload, self.changed)?,
            None => Transformed::Not,
        };
        let payload = match change {
            Transformed::Not => self.payload,
            Transformed::Alike(_) | Transformed::Anew => self.changed.as_slice(),
        };
        let outputs = selection.outputs();
        let (count, is_whole) = (selection.objects().len(), self.is_whole);
        let keeps_all = |selection: &OutputSelection| {
            is_whole && selection.kept == count && !selection.strips_tags
        };
        let any_whole = !decisions.copies.is_empty() || outputs.iter().any(keeps_all);
        if any_whole {
            complete(&mut self.entry, self.payload)?;
        }
        let mut frames = None;
        let mut whole = |rewriter: &mut Rewriter| {
            if change == Transformed::Not {
                return Ok(Done::Copy(self.entry));
            }
            if frames.is_none() {
                frames = Some(rewriter.whole(payload, change)?);
            }
            Ok::<_, FormatError>(Done::Rewritten(
                frames.clone().unwrap_or_default(),
                Vec::new(),
            ))
        };
        let mut done = Vec::new();
        for output in &decisions.copies {
            done.push((*output, whole(rewriter)?));
        }
        let mut partial = Vec::new();
        for output in outputs {
            if decisions.copies.contains(&output.output) {
                continue;
            }
            match keeps_all(&output) {
                true => done.push((output.output, whole(rewriter)?)),
                false => partial.push(output),
            }
        }
        if partial.is_empty() {
            return Ok((done, noted));
        }
        let block = match block.filter(|_| change == Transformed::Not) {
            Some(block) => block,
            None => ParsedBlock::parse(payload)?,
        };
        let source = Source {
            payload,
            block,
            is_whole,
            selection,
        };
        rewriter.parts(&source, partial, &mut done)?;
        Ok((done, noted))
    }
}

/// A block of which parts are made.
struct Source<'a> {
    payload: &'a [u8],
    block: ParsedBlock<'a>,
    /// Whether the payload is all there is in the blob.
    is_whole: bool,
    selection: &'a Selection,
}

/// Makes parts of blocks anew.
struct Rewriter {
    encoder: FrameEncoder,
    /// As many as there were outputs that kept a part of a block.
    builders: Vec<BlockBuilder>,
    spliced: Vec<u8>,
}

impl Rewriter {
    /// Frames of all that is in a payload.
    fn whole(
        &mut self,
        payload: &[u8],
        change: Transformed,
    ) -> Result<Vec<EncodedFrame>, FormatError> {
        match change {
            _ if payload.len() > MAX_PAYLOAD_LEN as usize => {
                let block = ParsedBlock::parse(payload)?;
                let mut strings = SourceStrings::new(&block.strings);
                let mut objects = block.cursor();
                while let Some(object) = objects.next()? {
                    self.encoder.add_raw(&object, &block.units, &mut strings)?;
                }
            }
            Transformed::Alike(entry) => self.encoder.add_payload_like(payload, &entry)?,
            Transformed::Not | Transformed::Anew => self.encoder.add_payload(payload)?,
        }
        self.encoder.finish()
    }

    /// Makes what each of some outputs keeps of a block.
    fn parts(
        &mut self,
        source: &Source<'_>,
        outputs: Vec<OutputSelection>,
        done: &mut Vec<(u32, Done)>,
    ) -> Result<(), FormatError> {
        let mut small = Vec::new();
        for output in outputs {
            match self.spliced(source, &output)? {
                true => {
                    self.encoder.add_payload(&self.spliced)?;
                    let frames = self.encoder.finish()?;
                    done.push((output.output, Done::Rewritten(frames, Vec::new())));
                }
                false => small.push(output),
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
            // What is large enough is compressed here. That depends on nothing but what is kept.
            let bytes: usize = parts.iter().map(|part| part.payload.len()).sum();
            let is_large = output.kept >= TARGET_ELEMENTS / 2 || bytes >= TARGET_PAYLOAD / 2;
            let part = if is_large {
                for part in &parts {
                    self.encoder.add_payload(&part.payload)?;
                }
                Done::Rewritten(self.encoder.finish()?, Vec::new())
            } else {
                Done::Rewritten(Vec::new(), parts)
            };
            done.push((output.output, part));
        }
        Ok(())
    }

    /// Splices a block where most of it is kept. A splice keeps the strings of what is gone; where much goes,
    /// a new block is smaller.
    fn spliced(
        &mut self,
        source: &Source<'_>,
        output: &OutputSelection,
    ) -> Result<bool, FormatError> {
        let objects = source.selection.objects();
        let is_most = output.kept * 4 >= objects.len() * 3;
        if !source.is_whole || output.strips_tags || !is_most {
            return Ok(false);
        }
        self.spliced.clear();
        let kept = objects
            .iter()
            .map(|group| output.of(*group) != Selected::Drop);
        let script = EditScript::keeping(kept);
        let options = SpliceOptions::default();
        splice_block(source.payload, &script, &[], options, &mut self.spliced)
    }

    /// Gives an builder for each of some outputs what that keeps. What none of them keeps is cut out on the
    /// wire first, which is quicker than to pass over it object by object.
    fn rebuild(
        &mut self,
        source: &Source<'_>,
        outputs: &[OutputSelection],
    ) -> Result<(), FormatError> {
        let by_group = source.selection.by_group(outputs);
        let keeping = |group: GroupId| {
            let keeping = by_group.get(group as usize);
            keeping.map(Vec::as_slice).unwrap_or_default()
        };
        let is_kept = |group: GroupId| !keeping(group).is_empty();
        let (objects, kept, cut);
        let (mut groups, mut block) = (source.selection.objects(), &source.block);
        if source.is_whole {
            objects = EditScript::keeping(groups.iter().map(|group| is_kept(*group)));
            self.spliced.clear();
            if keep_objects(source.payload, &objects, &mut self.spliced)? {
                let classes_kept = groups.iter().copied().filter(|group| is_kept(*group));
                kept = classes_kept.collect::<Vec<_>>();
                cut = block.with_group(&self.spliced)?;
                (groups, block) = (kept.as_slice(), &cut);
            }
        }
        let strings = outputs.iter().map(|_| SourceStrings::new(&block.strings));
        let mut targets: Vec<_> = self.builders.iter_mut().zip(strings).collect();
        let (mut cursor, mut groups) = (block.cursor(), groups.iter());
        while let Some(object) = cursor.next()? {
            let group = groups.next().copied().unwrap_or(GroupId::MAX);
            for &(target, keep) in keeping(group) {
                let Some((builder, strings)) = targets.get_mut(target) else {
                    continue;
                };
                let object = match keep {
                    Selected::Untagged => object.without_tags(),
                    Selected::Drop | Selected::Whole => object,
                };
                builder.add_raw(&object, &block.units, strings)?;
            }
        }
        Ok(())
    }
}
