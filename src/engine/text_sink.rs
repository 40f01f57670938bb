//! Writes outputs as text. Threads convert the parts of an output to chunks of text, which are written in the order of
//! the parts. A thread holds one payload and a few chunks, so its memory does not depend on the compression ratio.

use super::output_chunk::{OutputChunk, OutputChunkReader};
use crate::error::{Error, FormatError, FormatResult, Result};
use crate::file::Written;
use crate::formats::{ObjectChunk, ObjectText, TextDocument, TextOptions};
use crate::io::{Input, OpenOutput};
use crate::osm::TypeThenId;
use crate::pbf::{BlobEntry, Block, EncodedBlock, EncodedFrame, HeaderBlock, Object, feature};
use crate::runtime::{ChunkQueue, ChunkSender, Context};
use std::cell::RefCell;
use std::rc::Rc;

/// The size in bytes at which a chunk of text ends.
const CHUNK: usize = 1 << 20;
/// The size in bytes at which collected small blocks become a part.
const BLOCKS: usize = 1 << 19;

/// A part of an output, to convert to text.
struct TextJob {
    part: OutputChunk,
    form: TextForm,
    /// The index of the output.
    index: usize,
}

/// The form in which objects are written as text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TextForm {
    options: TextOptions,
    is_history: bool,
}

/// Consecutive objects of a part as text.
struct TextPortion {
    /// The index of the output.
    index: usize,
    text: ObjectChunk,
    order: ChunkOrder,
    /// The number of nodes with coordinates finer than 1e-7 degree.
    inexact: u64,
}

type OrderKey = (TypeThenId, u32);

/// The order keys of the first and the last object of a chunk, and whether any object is out of canonical order.
#[derive(Debug, Clone, Copy, Default)]
struct ChunkOrder {
    first: Option<OrderKey>,
    last: Option<OrderKey>,
    is_broken: bool,
}

impl ChunkOrder {
    fn add(&mut self, key: OrderKey) {
        self.is_broken |= Some(key) < self.last;
        self.first = self.first.or(Some(key));
        self.last = Some(key);
    }

    fn append(&mut self, next: &Self) {
        self.is_broken |= next.is_broken || (next.first.is_some() && next.first < self.last);
        self.first = self.first.or(next.first);
        self.last = next.last.or(self.last);
    }
}

/// A document that is being written, and facts about the objects written so far.
struct OpenDocument {
    file: TextDocument,
    objects: u64,
    order: ChunkOrder,
    inexact: u64,
    inexpressible: u64,
}

fn format_count(count: u64, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {many}"),
    }
}

/// Warns that `count` control characters were written to an XML document as references. Does nothing if `count` is 0.
pub(crate) fn warn_of_control_characters(count: u64, ctx: &Context) {
    if count == 0 {
        return;
    }
    ctx.warn(format!(
        "{} written as references like &#x1;: strict readers will refuse them (OPL has no such limit)",
        describe_control_characters(count)
    ));
}

/// Warns that `count` control characters were replaced in an XML document. Does nothing if `count` is 0.
pub(crate) fn warn_of_replaced_characters(count: u64, ctx: &Context) {
    if count > 0 {
        ctx.warn(format!(
            "{} replaced by U+FFFD",
            describe_control_characters(count)
        ));
    }
}

/// Returns the first words of a warning about `count` control characters.
fn describe_control_characters(count: u64) -> String {
    let (one, many) = (
        "control character, which XML 1.0 does not know, was",
        "control characters, which XML 1.0 does not know, were",
    );
    format_count(count, one, many)
}

/// A document whose objects are all written, but which is not flushed to disk.
pub(crate) struct UnflushedText {
    document: OpenDocument,
    ctx: Context,
}

impl UnflushedText {
    /// Completes the file, flushes it to disk, and gives it its name.
    pub(crate) fn finish(self) -> Result<Written> {
        let OpenDocument {
            file,
            objects,
            order,
            inexact,
            inexpressible,
        } = self.document;
        let bytes = file.finish()?;
        self.ctx.stats.bytes_written.add(bytes);
        if inexact > 0 {
            let nodes = format_count(inexact, "node has", "nodes have");
            self.ctx.warn(format!(
                "{nodes} coordinates finer than 1e-7 degree: they were rounded"
            ));
        }
        warn_of_control_characters(inexpressible, &self.ctx);
        Ok(Written {
            bytes,
            objects: Some(objects),
            sorted: !order.is_broken,
            ..Written::default()
        })
    }
}

/// A text file. Several text files can share [`TextEncoders`].
pub(crate) struct TextSink {
    encoders: Rc<TextEncoders>,
    /// The index of the file among all files that share the encoders.
    index: usize,
    form: TextForm,
    /// The small blocks collected for the next part.
    blocks: Vec<EncodedBlock>,
    bytes: usize,
}

impl TextSink {
    /// Begins a text document in an open output.
    pub(crate) fn create(
        output: OpenOutput,
        header: &HeaderBlock,
        options: TextOptions,
        encoders: &Rc<TextEncoders>,
    ) -> Result<Self> {
        let is_history = header.has(feature::HISTORY);
        let file = TextDocument::create(output, header, &options)?;
        Ok(Self {
            encoders: encoders.clone(),
            index: encoders.add_document(file),
            form: TextForm {
                options,
                is_history,
            },
            blocks: Vec::new(),
            bytes: 0,
        })
    }

    /// Appends the objects of a blob of an input.
    pub(crate) fn add_blob(&mut self, input: &Input, entry: BlobEntry) -> Result<()> {
        self.put_part(OutputChunk::Blob(input.clone(), entry))
    }

    /// Appends encoded blobs.
    pub(crate) fn add_frames(&mut self, frames: Vec<EncodedFrame>) -> Result<()> {
        self.put_part(OutputChunk::Frames(frames))
    }

    /// Appends a small block.
    pub(crate) fn add_block(&mut self, block: EncodedBlock) -> Result<()> {
        self.bytes += block.payload.len();
        self.blocks.push(block);
        if self.bytes >= BLOCKS {
            self.end_block()
        } else {
            Ok(())
        }
    }

    /// Starts to encode the small blocks that were appended.
    pub(crate) fn end_block(&mut self) -> Result<()> {
        self.bytes = 0;
        match std::mem::take(&mut self.blocks) {
            blocks if blocks.is_empty() => Ok(()),
            blocks => {
                self.encoders
                    .encode(self.index, self.form.clone(), OutputChunk::Blocks(blocks))
            }
        }
    }

    /// Writes all objects appended so far, and then `text`, which is in the format of the output.
    pub(crate) fn add_text(&mut self, text: &str) -> Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.end_block()?;
        self.encoders.add_text(self.index, text)
    }

    /// Sends the small blocks that were appended before to the encoders, and then sends `part`.
    fn put_part(&mut self, part: OutputChunk) -> Result<()> {
        self.end_block()?;
        self.encoders.encode(self.index, self.form.clone(), part)
    }

    /// Writes all objects, and returns the document, so that the caller can complete the file.
    pub(crate) fn finish(mut self) -> Result<UnflushedText> {
        self.end_block()?;
        self.encoders.finish(self.index)
    }
}

/// Threads that convert parts to text, for one output or for several. The threads are started with the first part.
pub(crate) struct TextEncoders {
    ctx: Context,
    queue: RefCell<Option<ChunkQueue<TextJob, TextPortion>>>,
    /// The documents of the outputs; `None` for each output that is finished.
    documents: RefCell<Vec<Option<OpenDocument>>>,
}

impl TextEncoders {
    pub(crate) fn new(ctx: &Context) -> Rc<Self> {
        Rc::new(Self {
            ctx: ctx.clone(),
            queue: RefCell::default(),
            documents: RefCell::default(),
        })
    }

    /// Adds an output, and returns its index.
    fn add_document(&self, file: TextDocument) -> usize {
        let mut documents = self.documents.borrow_mut();
        documents.push(Some(OpenDocument {
            file,
            objects: 0,
            order: ChunkOrder::default(),
            inexact: 0,
            inexpressible: 0,
        }));
        documents.len() - 1
    }

    /// Sends a part of an output to the threads, and writes the chunks that are ready.
    fn encode(&self, index: usize, form: TextForm, part: OutputChunk) -> Result<()> {
        let mut queue = self.queue.borrow_mut();
        let queue = match &mut *queue {
            Some(queue) => queue,
            none => {
                let ctx = self.ctx.clone();
                let init = move || TextWorker::new(&ctx);
                none.insert(ChunkQueue::start(
                    "text",
                    &self.ctx,
                    init,
                    |worker, job, chunks| worker.encode(&job, chunks),
                )?)
            }
        };
        queue.push(TextJob { part, form, index }, |chunk| self.write(chunk))
    }

    /// Adds converted text to the document of its output.
    fn write(&self, chunk: TextPortion) -> Result<()> {
        let mut documents = self.documents.borrow_mut();
        let document = documents[chunk.index]
            .as_mut()
            .ok_or_else(error_of_finished_output)?;
        document.objects += chunk.text.objects;
        document.order.append(&chunk.order);
        document.inexact += chunk.inexact;
        document.inexpressible += chunk.text.inexpressible;
        document.file.add(chunk.text)
    }

    /// Writes all parts that were added to any output so far, and then writes `text` to the output with the given
    /// index.
    fn add_text(&self, index: usize, text: &str) -> Result<()> {
        self.write_all()?;
        let mut documents = self.documents.borrow_mut();
        let document = documents[index]
            .as_mut()
            .ok_or_else(error_of_finished_output)?;
        document.file.add_text(text)
    }

    /// Writes all parts that were added to any output so far.
    fn write_all(&self) -> Result<()> {
        match &mut *self.queue.borrow_mut() {
            Some(queue) => queue.drain(|chunk| self.write(chunk)),
            None => Ok(()),
        }
    }

    /// Writes all parts that were added to any output so far, then ends the output with the given index and returns its
    /// document.
    fn finish(&self, index: usize) -> Result<UnflushedText> {
        self.write_all()?;
        let document = self.documents.borrow_mut()[index].take();
        Ok(UnflushedText {
            document: document.ok_or_else(error_of_finished_output)?,
            ctx: self.ctx.clone(),
        })
    }
}

/// Returns the error for text that is added to a finished output.
fn error_of_finished_output() -> Error {
    Error::internal("a text without its output")
}

/// The state of a thread that converts parts to text.
struct TextWorker {
    parts: OutputChunkReader,
    text: Option<(TextForm, ObjectText)>,
}

impl TextWorker {
    fn new(ctx: &Context) -> Self {
        Self {
            parts: OutputChunkReader::new(ctx),
            text: None,
        }
    }

    /// Converts a part to text, and sends the chunks.
    fn encode(&mut self, job: &TextJob, chunks: &ChunkSender<TextPortion>) -> Result<()> {
        let text = match &mut self.text {
            Some((form, text)) if *form == job.form => text,
            other => {
                let text = ObjectText::new(&job.form.options, job.form.is_history);
                &mut other.insert((job.form.clone(), text)).1
            }
        };
        let mut writer = ChunkWriter {
            text,
            order: ChunkOrder::default(),
            inexact: 0,
            index: job.index,
            chunks,
        };
        self.parts
            .for_each_payload(&job.part, |payload| writer.put_block(payload))?;
        let ended = writer.end_chunk();
        ended.map_err(Error::internal)
    }
}

/// Converts blocks to chunks of text.
struct ChunkWriter<'a> {
    text: &'a mut ObjectText,
    order: ChunkOrder,
    inexact: u64,
    index: usize,
    chunks: &'a ChunkSender<TextPortion>,
}

impl ChunkWriter<'_> {
    /// Converts the objects of a block to text.
    fn put_block(&mut self, payload: &[u8]) -> FormatResult<()> {
        let block = Block::parse(payload)?;
        let is_exact = block.units.is_exact_in_e7();
        let (mut cursor, mut object, mut info) = (block.cursor(), Object::default(), None);
        while let Some(element) = cursor.next()? {
            let has_same_info = object.fill_reusing_info(element, &block, &mut info)?;
            self.order
                .add((element.key, object.info.version.unwrap_or(0)));
            if !is_exact {
                let is_exact = element.has_exact_location(&block.units)?;
                self.inexact += u64::from(!is_exact);
            }
            self.text.put_next(&object, has_same_info);
            if self.text.len() >= CHUNK {
                self.end_chunk()?;
            }
        }
        Ok(())
    }

    /// Sends the text that was added since the last chunk. The text becomes one chunk, or several chunks if it is very
    /// long.
    fn end_chunk(&mut self) -> FormatResult<()> {
        if self.text.len() == 0 {
            return Ok(());
        }
        let text = self.text.take();
        let failed = |error: &dyn std::fmt::Display| FormatError::with(error.to_string());
        let text = text.map_err(|error| failed(&error))?;
        // The text is cut into pieces, because the text of a single object may be much longer than a chunk.
        text.visit_pieces(8 * CHUNK, |text| {
            let len = text.len();
            let portion = TextPortion {
                index: self.index,
                text,
                order: std::mem::take(&mut self.order),
                inexact: std::mem::take(&mut self.inexact),
            };
            let sent = self.chunks.send(portion, len);
            sent.map_err(|error| failed(&error))
        })
    }
}
