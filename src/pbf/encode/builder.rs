//! Builds blocks of objects. The blocks are not compressed yet, so small blocks can be joined.

use super::encoder::BlockEncoder;
use super::intern::SourceStrings;
use crate::error::FormatResult;
use crate::osm::ObjectKind;
use crate::pbf::block::object::Object;
use crate::pbf::block::outline::BlockUnits;
use crate::pbf::block::raw_element::RawElement;

/// An uncompressed block of objects of one kind.
#[derive(Debug, Clone)]
pub struct EncodedBlock {
    /// The PrimitiveBlock message.
    pub payload: Vec<u8>,
    /// The kind of the objects.
    pub kind: ObjectKind,
    /// The number of objects.
    pub count: usize,
}

/// A builder of blocks of objects. A new block begins when the kind or the units change, or when a block is full.
#[derive(Debug, Default)]
pub(crate) struct BlockBuilder {
    builder: BlockEncoder,
    /// The kind of the objects in the current block.
    kind: Option<ObjectKind>,
    blocks: Vec<EncodedBlock>,
    spare: Vec<u8>,
}

impl BlockBuilder {
    /// Omits the coordinates of all ways that are added from now on.
    pub(in crate::pbf) fn drop_locations(&mut self) {
        self.builder.drop_locations();
    }

    /// Writes each node as a message of its own, instead of in DenseNodes.
    pub(in crate::pbf) fn write_plain_nodes(&mut self) {
        self.builder.write_plain_nodes();
    }

    /// Sets the maximum number of objects per block; 0 for [`TARGET_ELEMENTS`](crate::pbf::TARGET_ELEMENTS).
    pub(crate) fn set_max_objects(&mut self, most: usize) {
        self.builder.set_max_objects(most);
    }

    /// Adds an object.
    pub(crate) fn add(&mut self, object: &Object<'_>) -> FormatResult<()> {
        self.prepare_block(object.kind(), &BlockUnits::default());
        self.builder.add(object)
    }

    /// Adds an object from a block with the given units and strings.
    pub(crate) fn add_raw(
        &mut self,
        object: &RawElement<'_>,
        units: &BlockUnits,
        strings: &mut SourceStrings<'_>,
    ) -> FormatResult<()> {
        if units.is_default() {
            self.prepare_block(object.key.0, units);
            return self.builder.add_raw(object, strings);
        }
        let (object, units) = object.into_default_units(units)?;
        self.prepare_block(object.key.0, &units);
        self.builder.add_raw(&object, strings)
    }

    /// Ends the current block if it cannot accept an object of `kind` in `units`.
    fn prepare_block(&mut self, kind: ObjectKind, units: &BlockUnits) {
        if self.builder.must_finish_before(kind) || !self.builder.accepts_units(units) {
            self.end_block();
        }
        if self.builder.is_empty() {
            self.builder.set_units(units);
        }
        self.kind = Some(kind);
    }

    /// Ends the current block if it has objects.
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

    /// Whether [`take_blocks`](Self::take_blocks) would return a block.
    pub(crate) fn has_blocks(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// Returns the blocks that were ended since the last call.
    pub(crate) fn take_blocks(&mut self) -> Vec<EncodedBlock> {
        std::mem::take(&mut self.blocks)
    }

    /// Keeps the memory of `payload` for the next block.
    pub(in crate::pbf) fn recycle_payload(&mut self, payload: Vec<u8>) {
        self.spare = payload;
    }
}
