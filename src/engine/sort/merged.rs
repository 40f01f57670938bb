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
    Sorted(Box<Portions<'a>>),
}

impl<'a> Stream<'a> {
    /// Creates the stream for a block. Objects before `from` may be left out.
    fn new(block: &'a Block<'a>, source: &Source, from: Option<TypeThenId>) -> Self {
        if source.entry.flags.has(BlobFlags::SORTED) {
            Self::InOrder(Box::new(block.cursor()))
        } else {
            Self::Sorted(Box::new(Portions::new(block, from)))
        }
    }

    /// Returns the object to which the stream was advanced.
    fn current(&self) -> &RawElement<'a> {
        match self {
            Self::InOrder(cursor) => cursor.current(),
            Self::Sorted(portions) => portions.current(),
        }
    }

    /// Advances to the next object. Returns `false` after the last object.
    fn advance(&mut self) -> FormatResult<bool> {
        match self {
            Self::InOrder(cursor) => Ok(cursor.next()?.is_some()),
            Self::Sorted(portions) => Ok(portions.next()?.is_some()),
        }
    }

    /// Skips the objects before `from`, and advances to the next object. Returns `false` after the last object.
    fn advance_to(&mut self, from: Option<TypeThenId>) -> FormatResult<bool> {
        while self.advance()? {
            if from.is_none_or(|from| self.current().key >= from) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the position of the current object in the order of the merge. `rank` is the rank of the stream.
    fn position(&self, rank: u32) -> Position {
        let object = self.current();
        Reverse((packed_key(object.key), object.version, rank))
    }
}

/// The position of an object in the order of the merge: its key as one number, its version, and the rank of its stream.
/// The smallest position is the greatest element of a heap.
type Position = Reverse<(u128, i64, u32)>;

/// Returns a number that has the order of the key. Numbers are compared faster than keys.
const fn packed_key((kind, id_rank): TypeThenId) -> u128 {
    (kind as u128) << 64 | id_rank as u128
}

/// A merge of the objects of several blocks in canonical order. The versions of an object are adjacent and in ascending
/// order. Objects with equal versions come in the order of the inputs.
pub(super) struct Merged<'a> {
    /// A stream for each block.
    streams: Vec<Stream<'a>>,
    /// The indices of the streams in the order of their inputs, and of their offsets in an input. The rank of a stream
    /// is its position in this list.
    by_rank: Vec<usize>,
    /// The positions of the current objects of all streams.
    heap: BinaryHeap<Position>,
    /// Whether the first object of the heap was returned, so that its stream has to be advanced.
    is_returned: bool,
    /// The exclusive end of the range of keys to merge; `None` if the range has no upper limit.
    until: Option<u128>,
}

impl<'a> Merged<'a> {
    pub(super) fn new(blocks: &'a [Block<'a>], shard: &'a Shard) -> Result<Self, BlockError> {
        let sources = &shard.sources;
        let mut streams = Vec::with_capacity(blocks.len());
        let mut by_rank: Vec<usize> = (0..blocks.len()).collect();
        by_rank.sort_by_key(|index| (sources[*index].file, sources[*index].entry.offset));
        for (block, source) in blocks.iter().zip(sources) {
            streams.push(Stream::new(block, source, shard.from));
        }
        let mut heap = BinaryHeap::with_capacity(blocks.len());
        for (rank, &index) in (0..).zip(&by_rank) {
            let stream: &mut Stream<'_> = &mut streams[index];
            if stream
                .advance_to(shard.from)
                .map_err(|error| (index, error))?
            {
                heap.push(stream.position(rank));
            }
        }
        Ok(Self {
            streams,
            by_rank,
            heap,
            is_returned: false,
            until: shard.until.map(packed_key),
        })
    }

    /// Returns the next object, and the index of its source in the shard.
    pub(super) fn next(&mut self) -> Result<Option<(usize, &RawElement<'a>)>, BlockError> {
        if std::mem::take(&mut self.is_returned)
            && let Some(mut first) = self.heap.peek_mut()
        {
            let Reverse((.., rank)) = *first;
            let index = self.by_rank[rank as usize];
            let stream = &mut self.streams[index];
            if stream.advance().map_err(|error| (index, error))? {
                *first = stream.position(rank);
            } else {
                PeekMut::pop(first);
            }
        }
        match self.heap.peek() {
            Some(Reverse((key, _, rank))) if self.until.is_none_or(|until| *key < until) => {
                self.is_returned = true;
                let index = self.by_rank[*rank as usize];
                Ok(Some((index, self.streams[index].current())))
            }
            _ => Ok(None),
        }
    }
}
