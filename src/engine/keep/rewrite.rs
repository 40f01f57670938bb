//! Making of a block what outputs keep of it.

use super::marks::{Class, Keep, Marks, OutputMarks};
use super::{Change, Changed, Done, Fate, Fates, Pass};
use crate::error::{FormatError, Result};
use crate::file::{BlobReader, Glanced, PbfFile, WriteOptions, complete};
use crate::pbf::splice::{EditScript, SpliceOptions, keep_objects, splice_block};
use crate::pbf::{
    Assembler, BlobEntry, BlobFlags, EncodedFrame, FrameEncoder, MAX_PAYLOAD_LEN, ParsedBlock,
    SourceStrings, StringTable, TARGET_ELEMENTS, TARGET_PAYLOAD,
};
use crate::runtime::Context;

/// What the outputs get of a blob, and what is to be noted of it.
type Looked<T> = (Vec<(u32, Done)>, Option<T>);

/// A worker's scratch.
pub(crate) struct Looker<'f> {
    reader: BlobReader<'f>,
    pass: &'f Pass<'f>,
    changed: Vec<u8>,
    marks: Marks,
    rewriter: Rewriter,
}

impl<'f> Looker<'f> {
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
            marks: Marks::default(),
            rewriter: Rewriter {
                encoder: FrameEncoder::new(write.compression, write.blob_index),
                assemblers: Vec::new(),
                spliced: Vec::new(),
            },
        }
    }

    pub(crate) fn look<T>(
        &mut self,
        entry: BlobEntry,
        fates: &Fates,
        mark: impl Fn(&BlobEntry, &ParsedBlock<'_>, &mut Marks) -> Result<T, FormatError>,
    ) -> Result<Looked<T>> {
        // To be copied unread, a blob has to be known as well as if it was read: whether it is read depends
        // on the worker.
        let has = |flag| entry.flags.has(flag);
        let is_known = has(BlobFlags::SCANNED) && has(BlobFlags::HASHED) && !fates.change;
        let glance = self.pass.glance.map(|glance| {
            move |strings: &StringTable<'_>| match glance(strings) {
                Fate::Drop => Some(Vec::new()),
                Fate::Copy if is_known => Some(Done::copies(entry, &Fate::Copy.into())),
                Fate::Copy | Fate::Look => None,
            }
        });
        let held = self.pass.held.filter(|_| fates.copies.is_empty());
        let held = held.and_then(|held| held.take(&entry));
        let payload = match &held {
            Some(held) => held.as_slice(),
            None => match self.reader.payload_unless(&entry, glance)? {
                Glanced::Answered(done) => return Ok((done, None)),
                Glanced::Payload(payload) => payload,
            },
        };
        let mut blob = Blob {
            entry,
            payload,
            is_whole: held.is_none(),
            change: self.pass.change.filter(|_| fates.change),
            changed: &mut self.changed,
        };
        blob.look(fates, &mut self.marks, &mut self.rewriter, mark)
            .map_err(|error| self.reader.error(&entry, error))
    }
}

/// A blob that is looked at.
struct Blob<'a> {
    entry: BlobEntry,
    payload: &'a [u8],
    /// Whether the payload is all there is in the blob.
    is_whole: bool,
    change: Option<Change<'a>>,
    /// Where another payload goes.
    changed: &'a mut Vec<u8>,
}

impl Blob<'_> {
    fn look<T>(
        &mut self,
        fates: &Fates,
        marks: &mut Marks,
        rewriter: &mut Rewriter,
        mark: impl Fn(&BlobEntry, &ParsedBlock<'_>, &mut Marks) -> Result<T, FormatError>,
    ) -> Result<Looked<T>, FormatError> {
        marks.clear();
        // What is taken out may be what decides.
        let (mut block, mut noted) = (None, None);
        if fates.look {
            let parsed = block.insert(ParsedBlock::parse(self.payload)?);
            noted = Some(mark(&self.entry, parsed, marks)?);
        }
        self.changed.clear();
        let change = match self.change {
            Some(change) => change(&self.entry, self.payload, self.changed)?,
            None => Changed::Not,
        };
        let payload = match change {
            Changed::Not => self.payload,
            Changed::Alike(_) | Changed::Anew => self.changed.as_slice(),
        };
        let outputs = marks.outputs();
        let (count, is_whole) = (marks.objects().len(), self.is_whole);
        let keeps_all = |marks: &OutputMarks| is_whole && marks.kept == count && !marks.strips_tags;
        let any_whole = !fates.copies.is_empty() || outputs.iter().any(keeps_all);
        if any_whole {
            complete(&mut self.entry, self.payload)?;
        }
        let mut frames = None;
        let mut whole = |rewriter: &mut Rewriter| {
            if change == Changed::Not {
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
        for output in &fates.copies {
            done.push((*output, whole(rewriter)?));
        }
        let mut partial = Vec::new();
        for output in outputs {
            if fates.copies.contains(&output.output) {
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
        let block = match block.filter(|_| change == Changed::Not) {
            Some(block) => block,
            None => ParsedBlock::parse(payload)?,
        };
        let source = Source {
            payload,
            block,
            is_whole,
            marks,
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
    marks: &'a Marks,
}

/// Makes parts of blocks anew.
struct Rewriter {
    encoder: FrameEncoder,
    /// As many as there were outputs that kept a part of a block.
    assemblers: Vec<Assembler>,
    spliced: Vec<u8>,
}

impl Rewriter {
    /// Frames of all that is in a payload.
    fn whole(&mut self, payload: &[u8], change: Changed) -> Result<Vec<EncodedFrame>, FormatError> {
        match change {
            _ if payload.len() > MAX_PAYLOAD_LEN as usize => {
                let block = ParsedBlock::parse(payload)?;
                let mut strings = SourceStrings::new(&block.strings);
                let mut objects = block.cursor();
                while let Some(object) = objects.next()? {
                    self.encoder.add_raw(&object, &block.scale, &mut strings)?;
                }
            }
            Changed::Alike(entry) => self.encoder.add_payload_like(payload, &entry)?,
            Changed::Not | Changed::Anew => self.encoder.add_payload(payload)?,
        }
        self.encoder.finish()
    }

    /// Makes what each of some outputs keeps of a block.
    fn parts(
        &mut self,
        source: &Source<'_>,
        outputs: Vec<OutputMarks>,
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
        while self.assemblers.len() < small.len() {
            self.assemblers.push(Assembler::default());
        }
        self.rebuild(source, &small)?;
        for (output, assembler) in small.iter().zip(&mut self.assemblers) {
            assembler.end_block();
            let parts = assembler.take_parts();
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
    fn spliced(&mut self, source: &Source<'_>, output: &OutputMarks) -> Result<bool, FormatError> {
        let objects = source.marks.objects();
        let is_most = output.kept * 4 >= objects.len() * 3;
        if !source.is_whole || output.strips_tags || !is_most {
            return Ok(false);
        }
        self.spliced.clear();
        let kept = objects.iter().map(|class| output.of(*class) != Keep::Drop);
        let script = EditScript::keeping(kept);
        let options = SpliceOptions::default();
        splice_block(source.payload, &script, &[], options, &mut self.spliced)
    }

    /// Gives an assembler for each of some outputs what that keeps. What none of them keeps is cut out on the
    /// wire first, which is quicker than to pass over it object by object.
    fn rebuild(&mut self, source: &Source<'_>, outputs: &[OutputMarks]) -> Result<(), FormatError> {
        let by_class = source.marks.by_class(outputs);
        let keeping = |class: Class| {
            let keeping = by_class.get(class as usize);
            keeping.map(Vec::as_slice).unwrap_or_default()
        };
        let is_kept = |class: Class| !keeping(class).is_empty();
        let (objects, kept, cut);
        let (mut classes, mut block) = (source.marks.objects(), &source.block);
        if source.is_whole {
            objects = EditScript::keeping(classes.iter().map(|class| is_kept(*class)));
            self.spliced.clear();
            if keep_objects(source.payload, &objects, &mut self.spliced)? {
                let classes_kept = classes.iter().copied().filter(|class| is_kept(*class));
                kept = classes_kept.collect::<Vec<_>>();
                cut = block.with_group(&self.spliced)?;
                (classes, block) = (kept.as_slice(), &cut);
            }
        }
        let strings = outputs.iter().map(|_| SourceStrings::new(&block.strings));
        let mut targets: Vec<_> = self.assemblers.iter_mut().zip(strings).collect();
        let (mut cursor, mut classes) = (block.cursor(), classes.iter());
        while let Some(object) = cursor.next()? {
            let class = classes.next().copied().unwrap_or(Class::MAX);
            for &(target, keep) in keeping(class) {
                let Some((assembler, strings)) = targets.get_mut(target) else {
                    continue;
                };
                let object = match keep {
                    Keep::Untagged => object.without_tags(),
                    Keep::Drop | Keep::Whole => object,
                };
                assembler.add_raw(&object, &block.scale, strings)?;
            }
        }
        Ok(())
    }
}
