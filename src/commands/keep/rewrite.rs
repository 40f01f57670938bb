//! Making of a block what outputs keep of it.

use super::{Done, Fate, Fates, Glance, Keep, Marks, is_known};
use crate::Context;
use crate::commands::held::Held;
use crate::error::Result;
use crate::pbf::splice::{EditScript, SpliceOptions, keep_objects, splice_block};
use crate::pbf::{
    BlobEntry, BlobFlags, FormatError, InfoFields, ParsedBlock, SourceStrings, StringTable,
    TARGET_ELEMENTS, TARGET_PAYLOAD, clean_block, scan_payload,
};
use crate::read::{BlobReader, Glanced, PbfFile, stale_index};
use crate::write::{Assembler, FrameEncoder, WriteOptions};

/// What the outputs get of a blob, and what is to be noted of it.
type Looked<T> = (Vec<(u32, Done)>, Option<T>);

/// A worker's scratch.
pub(super) struct Looker<'f> {
    reader: BlobReader<'f>,
    glance: Option<Glance<'f>>,
    held: Option<&'f Held>,
    clean: InfoFields,
    cleaned: Vec<u8>,
    marks: Marks,
    rewriter: Rewriter,
}

impl<'f> Looker<'f> {
    pub(super) fn new(
        file: &'f PbfFile,
        glance: Option<Glance<'f>>,
        held: Option<&'f Held>,
        clean: InfoFields,
        write: WriteOptions,
        ctx: &Context,
    ) -> Self {
        Self {
            reader: BlobReader::new(&file.input, ctx),
            glance,
            held,
            clean,
            cleaned: Vec::new(),
            marks: Marks::default(),
            rewriter: Rewriter {
                encoder: FrameEncoder::new(write.compression, write.blob_index),
                assemblers: Vec::new(),
                spliced: Vec::new(),
            },
        }
    }

    pub(super) fn look<T>(
        &mut self,
        entry: BlobEntry,
        fates: &Fates,
        mark: impl Fn(&ParsedBlock<'_>, &mut Marks) -> Result<T, FormatError>,
    ) -> Result<Looked<T>> {
        // To be copied unread, a blob has to be known as well as if it was read: whether it is read depends
        // on the worker.
        let has = |flag| entry.flags.has(flag);
        let is_known = has(BlobFlags::SCANNED) && has(BlobFlags::HASHED) && self.clean.is_empty();
        let glance = self.glance.map(|glance| {
            move |strings: &StringTable<'_>| match glance(strings) {
                Fate::Drop => Some(Vec::new()),
                Fate::Copy if is_known => Some(Done::copies(entry, &Fate::Copy.into())),
                Fate::Copy | Fate::Look => None,
            }
        });
        let held = self.held.filter(|_| fates.copies.is_empty());
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
            cleaned: (!self.clean.is_empty()).then_some(&mut self.cleaned),
            clean: self.clean,
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
    /// Where the payload goes without some metadata, where some is taken out.
    cleaned: Option<&'a mut Vec<u8>>,
    clean: InfoFields,
}

impl Blob<'_> {
    fn look<T>(
        &mut self,
        fates: &Fates,
        marks: &mut Marks,
        rewriter: &mut Rewriter,
        mark: impl Fn(&ParsedBlock<'_>, &mut Marks) -> Result<T, FormatError>,
    ) -> Result<Looked<T>, FormatError> {
        let payload = match &mut self.cleaned {
            None => self.payload,
            Some(cleaned) => {
                cleaned.clear();
                clean_block(self.payload, self.clean, cleaned)?;
                cleaned
            }
        };
        marks.clear();
        let block = ParsedBlock::parse(payload)?;
        let noted = match fates.look {
            true => Some(mark(&block, marks)?),
            false => None,
        };
        let is_whole = self.is_whole;
        let keeps_all = |marks: &[Keep]| is_whole && marks.iter().all(|mark| *mark == Keep::Whole);
        let any_whole =
            !fates.copies.is_empty() || marks.iter_mut().any(|(_, marks)| keeps_all(marks));
        if !self.entry.flags.has(BlobFlags::HASHED) && (is_known(&self.entry) || any_whole) {
            verify(&mut self.entry, self.payload)?;
        }
        // Of a blob of which metadata is taken out nothing can be copied.
        let is_clean = self.clean.is_empty();
        let mut frames = None;
        let mut whole = |rewriter: &mut Rewriter| {
            if is_clean {
                return Ok(Done::Copy(self.entry));
            }
            if frames.is_none() {
                rewriter.encoder.add_payload(payload)?;
                frames = Some(rewriter.encoder.finish()?);
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
        for (output, marks) in marks.iter_mut() {
            if fates.copies.contains(&output) || marks.iter().all(|mark| *mark == Keep::Drop) {
                continue;
            }
            match keeps_all(marks) {
                true => done.push((output, whole(rewriter)?)),
                false => partial.push((output, marks)),
            }
        }
        rewriter.parts(payload, is_whole, &block, partial, &mut done)?;
        Ok((done, noted))
    }
}

/// Makes parts of blocks anew.
struct Rewriter {
    encoder: FrameEncoder,
    /// As many as there were outputs that kept a part of a block.
    assemblers: Vec<Assembler>,
    spliced: Vec<u8>,
}

/// What an output keeps of a block, which is some of it.
type Partial<'m> = (u32, &'m mut Vec<Keep>);

impl Rewriter {
    /// Makes what each of some outputs keeps of a block.
    fn parts(
        &mut self,
        payload: &[u8],
        is_whole: bool,
        block: &ParsedBlock<'_>,
        partial: Vec<Partial<'_>>,
        done: &mut Vec<(u32, Done)>,
    ) -> Result<(), FormatError> {
        let mut small = Vec::new();
        for (output, marks) in partial {
            match is_whole && self.spliced(payload, marks)? {
                true => {
                    self.encoder.add_payload(&self.spliced)?;
                    done.push((output, Done::Rewritten(self.encoder.finish()?, Vec::new())));
                }
                false => small.push((output, marks)),
            }
        }
        while self.assemblers.len() < small.len() {
            self.assemblers.push(Assembler::default());
        }
        if small.is_empty() {
            return Ok(());
        }
        if is_whole {
            self.cut_out(payload, block, &mut small)?;
        } else {
            rebuild(
                block,
                small.iter().map(|(_, marks)| marks.as_slice()),
                &mut self.assemblers,
            )?;
        }
        for ((output, _), assembler) in small.iter().zip(&mut self.assemblers) {
            assembler.end_block();
            let parts = assembler.take_parts();
            // What is large enough is compressed here.
            let count: usize = parts.iter().map(|part| part.count).sum();
            let part = if count >= TARGET_ELEMENTS / 2 || payload.len() >= TARGET_PAYLOAD {
                for part in &parts {
                    self.encoder.add_payload(&part.payload)?;
                }
                Done::Rewritten(self.encoder.finish()?, Vec::new())
            } else {
                Done::Rewritten(Vec::new(), parts)
            };
            done.push((*output, part));
        }
        Ok(())
    }

    /// Splices a block where most of it is kept. A splice keeps the strings of what is gone; where much goes,
    /// a new block is smaller.
    fn spliced(&mut self, payload: &[u8], marks: &[Keep]) -> Result<bool, FormatError> {
        let kept = marks.iter().filter(|mark| **mark != Keep::Drop).count();
        if marks.contains(&Keep::Untagged) || kept * 4 < marks.len() * 3 {
            return Ok(false);
        }
        self.spliced.clear();
        let options = SpliceOptions::default();
        splice_block(payload, &script(marks), &[], options, &mut self.spliced)
    }

    /// What each of some outputs keeps. What none of them keeps is cut out on the wire first, which is quicker
    /// than to pass over it object by object.
    fn cut_out(
        &mut self,
        payload: &[u8],
        block: &ParsedBlock<'_>,
        outputs: &mut [Partial<'_>],
    ) -> Result<(), FormatError> {
        let mut all = Vec::new();
        for (_, marks) in &*outputs {
            all.resize(marks.len().max(all.len()), Keep::Drop);
            for (all, mark) in all.iter_mut().zip(&**marks) {
                if *mark != Keep::Drop {
                    *all = Keep::Whole;
                }
            }
        }
        self.spliced.clear();
        let cut;
        let mut block = block;
        if keep_objects(payload, &script(&all), &mut self.spliced)? {
            for (_, marks) in &mut *outputs {
                let mut all = all.iter();
                marks.retain(|_| all.next() == Some(&Keep::Whole));
            }
            cut = block.with_group(&self.spliced)?;
            block = &cut;
        }
        let outputs = outputs.iter().map(|(_, marks)| marks.as_slice());
        rebuild(block, outputs, &mut self.assemblers)
    }
}

fn script(marks: &[Keep]) -> EditScript {
    let mut script = EditScript::default();
    for mark in marks {
        match mark {
            Keep::Drop => script.remove(),
            Keep::Whole | Keep::Untagged => script.keep(),
        }
    }
    script
}

/// Adds to each assembler the objects that its marks keep, in one walk over the block.
fn rebuild<'a>(
    block: &ParsedBlock<'_>,
    outputs: impl Iterator<Item = &'a [Keep]>,
    assemblers: &mut [Assembler],
) -> Result<(), FormatError> {
    let mut outputs: Vec<_> = outputs
        .zip(assemblers)
        .map(|(marks, assembler)| (marks.iter(), assembler, SourceStrings::new(&block.strings)))
        .collect();
    let mut objects = block.cursor();
    while let Some(object) = objects.next()? {
        for (marks, assembler, strings) in &mut outputs {
            let object = match marks.next() {
                None | Some(Keep::Drop) => continue,
                Some(Keep::Whole) => object,
                Some(Keep::Untagged) => object.without_tags(),
            };
            assembler.add_raw(&object, &block.scale, strings)?;
        }
    }
    Ok(())
}

/// Fills in what an entry says; where it claimed something before, that must be so.
fn verify(entry: &mut BlobEntry, payload: &[u8]) -> Result<(), FormatError> {
    let claimed = *entry;
    scan_payload(payload, entry)?;
    if is_known(&claimed) && !claimed.agrees_with(entry) {
        return Err(stale_index("ids or their order differ"));
    }
    Ok(())
}
