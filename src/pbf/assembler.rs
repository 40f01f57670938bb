//! Objects in, blocks out: uncompressed, so that small ones can still be joined.

use super::block::Scale;
use super::builder::BlockBuilder;
use super::cursor::RawObject;
use super::intern::SourceStrings;
use super::object::Object;
use crate::error::FormatError;
use crate::osm::ObjectKind;

/// A block of objects of one kind that was built and not yet compressed.
#[derive(Debug)]
pub struct Part {
    /// The payload.
    pub payload: Vec<u8>,
    /// The kind of its objects.
    pub kind: ObjectKind,
    /// How many objects there are.
    pub count: usize,
}

/// Builds blocks of objects: a new one where the kind changes or a block is full.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    builder: BlockBuilder,
    /// The kind of the objects in the builder.
    kind: Option<ObjectKind>,
    parts: Vec<Part>,
    spare: Vec<u8>,
}

impl Assembler {
    /// Leaves the coordinates of ways out of all blocks from here on.
    pub(super) fn drop_locations(&mut self) {
        self.builder.drop_locations();
    }

    /// Makes blocks of so many objects from here on.
    pub(crate) fn set_most(&mut self, most: usize) {
        self.builder.set_most(most);
    }

    /// Adds an object.
    pub(crate) fn add(&mut self, object: &Object<'_>) -> Result<(), FormatError> {
        self.make_room(object.kind(), &Scale::default());
        self.builder.add(object)
    }

    /// Adds an object of another block, whose scale and strings are given.
    pub(crate) fn add_raw(
        &mut self,
        object: &RawObject<'_>,
        scale: &Scale,
        strings: &mut SourceStrings<'_>,
    ) -> Result<(), FormatError> {
        let (object, scale) = object.in_default_scale(scale)?;
        self.make_room(object.key.0, &scale);
        object.add_to(&mut self.builder, strings)
    }

    fn make_room(&mut self, kind: ObjectKind, scale: &Scale) {
        if self.builder.wants_flush(kind) || !self.builder.accepts_scale(scale) {
            self.end_block();
        }
        if self.builder.is_empty() {
            self.builder.set_scale(scale);
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
            self.parts.push(Part {
                payload,
                kind,
                count,
            });
        }
    }

    /// Whether a block was ended that was not taken yet.
    pub(super) fn has_parts(&self) -> bool {
        !self.parts.is_empty()
    }

    /// The blocks that were ended since the last call.
    pub(crate) fn take_parts(&mut self) -> Vec<Part> {
        std::mem::take(&mut self.parts)
    }

    /// Takes back the memory of a block that was compressed.
    pub(super) fn reuse(&mut self, payload: Vec<u8>) {
        self.spare = payload;
    }
}
