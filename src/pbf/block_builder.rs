//! Objects in, blocks out: uncompressed, so that small ones can still be joined.

use super::block::BlockUnits;
use super::block_encoder::BlockEncoder;
use super::cursor::RawObject;
use super::intern::SourceStrings;
use super::object::Object;
use crate::error::FormatError;
use crate::osm::ObjectKind;

/// A block of objects of one kind that was built and not yet compressed.
#[derive(Debug)]
pub struct EncodedBlock {
    /// The payload.
    pub payload: Vec<u8>,
    /// The kind of its objects.
    pub kind: ObjectKind,
    /// How many objects there are.
    pub count: usize,
}

/// Builds blocks of objects: a new one where the kind changes or a block is full.
#[derive(Debug, Default)]
pub(crate) struct BlockBuilder {
    builder: BlockEncoder,
    /// The kind of the objects in the builder.
    kind: Option<ObjectKind>,
    blocks: Vec<EncodedBlock>,
    spare: Vec<u8>,
}

impl BlockBuilder {
    /// Leaves the coordinates of ways out of all blocks from here on.
    pub(super) fn drop_locations(&mut self) {
        self.builder.drop_locations();
    }

    /// Makes blocks of so many objects from here on.
    pub(crate) fn set_max_objects(&mut self, most: usize) {
        self.builder.set_max_objects(most);
    }

    /// Adds an object.
    pub(crate) fn add(&mut self, object: &Object<'_>) -> Result<(), FormatError> {
        self.make_room(object.kind(), &BlockUnits::default());
        self.builder.add(object)
    }

    /// Adds an object of another block, whose units and strings are given.
    pub(crate) fn add_raw(
        &mut self,
        object: &RawObject<'_>,
        units: &BlockUnits,
        strings: &mut SourceStrings<'_>,
    ) -> Result<(), FormatError> {
        let (object, units) = object.in_default_units(units)?;
        self.make_room(object.key.0, &units);
        object.add_to(&mut self.builder, strings)
    }

    fn make_room(&mut self, kind: ObjectKind, units: &BlockUnits) {
        if self.builder.wants_flush(kind) || !self.builder.accepts_units(units) {
            self.end_block();
        }
        if self.builder.is_empty() {
            self.builder.set_units(units);
        }
        self.kind = Some(kind);
    }

    /// Ends the block, if one is begun.
    pub(crate) fn end_block(&mut self) {
        let count = self.builder.len();
        if let (1.., Some(kind)) = (count, self.kind) {
            let mut payload = std::mem::take(&mut self.spare);
            payload.clear();
            self.builder.finish(&mut payload);
            self.blocks.push(EncodedBlock {
                payload,
                kind,
                count,
            });
        }
    }

    /// Whether a block was ended that was not taken yet.
    pub(crate) fn has_blocks(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// The blocks that were ended since the last call.
    pub(crate) fn take_blocks(&mut self) -> Vec<EncodedBlock> {
        std::mem::take(&mut self.blocks)
    }

    /// Takes back the memory of a block that was compressed.
    pub(super) fn reuse(&mut self, payload: Vec<u8>) {
        self.spare = payload;
    }
}
