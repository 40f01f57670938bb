//! The objects of one file in a shard, in canonical order. A shard is a range of keys.

use super::side::Side;
use crate::engine::shards::{Shard, Source};
use crate::error::{Advice, FormatError};
use crate::osm::{KindSet, ObjectId, TypeThenId};
use crate::pbf::{Block, RawElement, RawElements};

/// An object of one of the files, and the block that contains it.
#[derive(Clone, Copy)]
pub(super) struct Head<'a> {
    pub object: RawElement<'a>,
    pub block: &'a Block<'a>,
}

impl Head<'_> {
    /// Whether the object cannot be decoded.
    pub(super) fn is_invalid(&self) -> bool {
        Side::default().fill(&self.object, self.block).is_err()
    }
}

/// The objects of one file in a shard, in canonical order.
pub(super) struct ShardCursor<'a> {
    /// The blocks that follow the current one.
    blocks: std::slice::Iter<'a, (Source, Block<'a>)>,
    /// The current block, and its objects after `head`; `None` before the first block and after each block.
    current: Option<(&'a Source, &'a Block<'a>, RawElements<'a>)>,
    /// The key of the last object that was read.
    last: Option<TypeThenId>,
    /// The first key of the shard; `None` if there is no lower limit.
    from: Option<TypeThenId>,
    /// The first key after the shard; `None` if there is no upper limit.
    until: Option<TypeThenId>,
    kinds: KindSet,
    /// Whether each object may occur only once.
    is_strict: bool,
    /// The next object to compare; `None` at the end of the shard.
    pub head: Option<Head<'a>>,
}

impl<'a> ShardCursor<'a> {
    /// Creates a cursor before the first object of a shard. `blocks` are the blocks of the file, in order.
    pub(super) fn new(
        blocks: &'a [(Source, Block<'a>)],
        shard: &Shard,
        kinds: KindSet,
        is_strict: bool,
    ) -> Self {
        Self {
            blocks: blocks.iter(),
            current: None,
            last: None,
            from: shard.from,
            until: shard.until,
            kinds,
            is_strict,
            head: None,
        }
    }

    /// Returns the blob that contains the object in `head`.
    pub(super) fn source_of_head(&self) -> Option<&'a Source> {
        self.current.as_ref().map(|(source, _, _)| *source)
    }

    /// Moves `head` to the next object of the shard that is of a wanted kind. Fails if the objects are not in order.
    pub(super) fn advance(&mut self) -> Result<(), (Option<&'a Source>, FormatError)> {
        self.head = None;
        loop {
            let Some((source, block, cursor)) = &mut self.current else {
                let Some((source, block)) = self.blocks.next() else {
                    return Ok(());
                };
                self.current = Some((source, block, block.cursor()));
                continue;
            };
            let fail = |error| (Some(*source), error);
            let Some(object) = cursor.next().map_err(fail)? else {
                self.current = None;
                continue;
            };
            if self.last > Some(object.key) {
                let id = ObjectId::from_sort_key(object.key);
                let cause =
                    format!("{id} is out of order although the file declares canonical order");
                return Err(fail(FormatError::with(cause).advise(Advice::Sort)));
            }
            if self.is_strict && self.last == Some(object.key) && self.kinds.contains(object.key.0)
            {
                return Err(fail(repeated_object_error(object.key)));
            }
            self.last = Some(object.key);
            if self.until.is_some() && self.last >= self.until {
                return Ok(());
            }
            if self.last >= self.from && self.kinds.contains(object.key.0) {
                self.head = Some(Head {
                    object: *object,
                    block,
                });
                return Ok(());
            }
        }
    }
}

/// Returns the error for a file that contains an object more than once. Changes cannot be derived from that file.
pub(super) fn repeated_object_error(key: TypeThenId) -> FormatError {
    let object = ObjectId::from_sort_key(key);
    FormatError::repetition(
        object,
        "changes can only be derived from files that have each object once",
    )
}
