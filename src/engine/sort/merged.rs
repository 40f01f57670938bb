//! Merges the objects of several blocks in canonical order.

use super::portions::Portions;
use crate::engine::shards::{Shard, Source};
use crate::error::{FormatError, FormatResult};
use crate::osm::TypeThenId;
use crate::pbf::{BlobFlags, Block, BlockUnits, RawElement, RawElements};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// The index of a block in its shard, and the error in the block.
pub(super) type BlockError = (usize, FormatError);

/// Parses the blocks of a shard.
pub(super) fn parse_blocks(payloads: &[Vec<u8>]) -> Result<Vec<Block<'_>>, BlockError> {
    let parse =
        |(index, payload): (usize, _)| Block::parse(payload).map_err(|error| (index, error));
    let payloads = payloads.iter().map(Vec::as_slice).enumerate();
    payloads.map(parse).collect()
}

/// Returns a function from the index of a block to the units of the block. A block has the same index as its source in
/// the shard.
pub(super) fn units_by_index<'b>(blocks: &'b [Block<'_>]) -> impl Fn(usize) -> BlockUnits + 'b {
    |index| blocks[index].units
}

/// A stream of the objects of one block in canonical order.
enum Stream<'a> {
    /// The block is in order.
    InOrder(Box<RawElements<'a>>),
    /// The block is not in order. Its objects are sorted by key and version.
    Sorted(Portions<'a>),
}

impl<'a> Stream<'a> {
    /// Creates the stream for a block. Objects before `from` may be left out.
    fn new(block: &'a Block<'a>, source: &Source, from: Option<TypeThenId>) -> Self {
        if source.entry.flags.has(BlobFlags::SORTED) {
            Self::InOrder(Box::new(block.cursor()))
        } else {
            Self::Sorted(Portions::new(block, from))
        }
    }

    fn next(&mut self) -> FormatResult<Option<RawElement<'a>>> {
        match self {
            Self::InOrder(cursor) => cursor.next(),
            Self::Sorted(portions) => portions.next(),
        }
    }

    /// Skips the objects before `from`, and returns the next object.
    fn next_at_or_after(
        &mut self,
        from: Option<TypeThenId>,
    ) -> FormatResult<Option<RawElement<'a>>> {
        loop {
            match self.next()? {
                Some(object) if from.is_some_and(|from| object.key < from) => {}
                found => return Ok(found),
            }
        }
    }
}

/// The sort key of the next object of a stream. It consists of the key and the version of the object, the input and
/// offset of its blob, and the index of the stream.
type StreamKey = Reverse<(TypeThenId, i64, (usize, u64), usize)>;

fn stream_key(object: &RawElement<'_>, source: &Source, stream: usize) -> StreamKey {
    Reverse((
        object.key,
        object.version,
        (source.file, source.entry.offset),
        stream,
    ))
}

/// A merge of the objects of several blocks in canonical order. The versions of an object are adjacent and in ascending
/// order. Objects with equal versions come in the order of the inputs.
pub(super) struct Merged<'a> {
    sources: &'a [Source],
    streams: Vec<Stream<'a>>,
    /// The next object of each stream.
    next_objects: Vec<Option<RawElement<'a>>>,
    heap: BinaryHeap<StreamKey>,
    /// The exclusive end of the range of keys to merge; `None` if the range has no upper limit.
    until: Option<TypeThenId>,
}

impl<'a> Merged<'a> {
    pub(super) fn new(blocks: &'a [Block<'a>], shard: &'a Shard) -> Result<Self, BlockError> {
        let mut merged = Self {
            sources: &shard.sources,
            streams: Vec::with_capacity(blocks.len()),
            next_objects: Vec::with_capacity(blocks.len()),
            heap: BinaryHeap::with_capacity(blocks.len()),
            until: shard.until,
        };
        for (index, (block, source)) in blocks.iter().zip(merged.sources).enumerate() {
            let failed = |error| (index, error);
            let mut stream = Stream::new(block, source, shard.from);
            let next = stream.next_at_or_after(shard.from).map_err(failed)?;
            (merged.heap).extend(next.as_ref().map(|next| stream_key(next, source, index)));
            merged.next_objects.push(next);
            merged.streams.push(stream);
        }
        Ok(merged)
    }

    /// Returns the next object, and the index of its source in the shard.
    pub(super) fn next(&mut self) -> Result<Option<(usize, RawElement<'a>)>, BlockError> {
        let Some(mut top) = self.heap.peek_mut() else {
            return Ok(None);
        };
        let Reverse((key, _, _, index)) = *top;
        if self.until.is_some_and(|until| key >= until) {
            return Ok(None);
        }
        let failed = |error| (index, error);
        let next = self.streams[index].next().map_err(failed)?;
        match &next {
            Some(next) => *top = stream_key(next, &self.sources[index], index),
            None => {
                PeekMut::pop(top);
            }
        }
        let object = std::mem::replace(&mut self.next_objects[index], next);
        let object = object.ok_or(FormatError::new("internal error: a key without an object"));
        Ok(Some((index, object.map_err(failed)?)))
    }
}
