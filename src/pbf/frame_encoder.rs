//! Objects in, compressed frames out: what a worker does with content that must be written anew.

use super::blob_index::encode_blob_index;
use super::block::BlockUnits;
use super::block_builder::BlockBuilder;
use super::codec::{Compression, Compressor};
use super::cursor::RawObject;
use super::entry::{BlobEntry, BlobFlags};
use super::frame::BlobKind;
use super::intern::SourceStrings;
use super::object::Object;
use super::scan::scan_payload;
use crate::error::{FormatError, Result};
use twox_hash::XxHash3_64;

/// A compressed frame and what is in it.
#[derive(Debug, Clone)]
pub struct EncodedFrame {
    /// The whole frame.
    pub bytes: Vec<u8>,
    /// What is in it; the offset is not known yet.
    pub entry: BlobEntry,
}

/// Makes frames of objects: a new block where the kind changes or a block is full. One a worker.
#[derive(Debug)]
pub struct FrameEncoder {
    builder: BlockBuilder,
    compressor: Compressor,
    blob_index: bool,
    frames: Vec<EncodedFrame>,
}

impl FrameEncoder {
    /// An encoder; `blob_index` puts an index into every BlobHeader.
    pub fn new(compression: Compression, blob_index: bool) -> Self {
        Self {
            builder: BlockBuilder::default(),
            compressor: Compressor::new(compression),
            blob_index,
            frames: Vec::new(),
        }
    }

    /// Leaves the coordinates of ways out of all blocks from here on.
    pub fn drop_locations(&mut self) {
        self.builder.drop_locations();
    }

    /// Makes blocks of so many objects from here on.
    pub(crate) fn set_max_objects(&mut self, most: usize) {
        self.builder.set_max_objects(most);
    }

    /// Adds an object.
    pub fn add(&mut self, object: &Object<'_>) -> Result<(), FormatError> {
        self.builder.add(object)?;
        self.compress()
    }

    /// Adds an object of another block, whose units and strings are given.
    pub(crate) fn add_raw(
        &mut self,
        object: &RawObject<'_>,
        units: &BlockUnits,
        strings: &mut SourceStrings<'_>,
    ) -> Result<(), FormatError> {
        self.builder.add_raw(object, units, strings)?;
        self.compress()
    }

    /// Ends the block, if one is begun.
    pub fn end_block(&mut self) -> Result<(), FormatError> {
        self.builder.end_block();
        self.compress()
    }

    /// Makes frames of the blocks that are full.
    fn compress(&mut self) -> Result<(), FormatError> {
        if !self.builder.has_blocks() {
            return Ok(());
        }
        for part in self.builder.take_blocks() {
            self.add_payload(&part.payload)?;
            self.builder.reuse(part.payload);
        }
        Ok(())
    }

    /// Adds a block that was encoded elsewhere.
    pub fn add_payload(&mut self, payload: &[u8]) -> Result<(), FormatError> {
        let mut entry = BlobEntry::default();
        scan_payload(payload, &mut entry)?;
        self.add_known(payload, entry)
    }

    /// Adds a block that was made of another in which all that an entry says stayed as it was: kinds, ids, places, and
    /// the order of ids and of versions. Where the entry does not say
    /// everything, that is found out.
    pub(crate) fn add_payload_like(
        &mut self,
        payload: &[u8],
        entry: &BlobEntry,
    ) -> Result<(), FormatError> {
        if !entry.flags.has(BlobFlags::HASHED) {
            return self.add_payload(payload);
        }
        self.add_known(
            payload,
            BlobEntry {
                payload_len: payload.len() as u32,
                hash: XxHash3_64::oneshot(payload),
                ..*entry
            },
        )
    }

    fn add_known(&mut self, payload: &[u8], mut entry: BlobEntry) -> Result<(), FormatError> {
        let index = if self.blob_index {
            encode_blob_index(&entry)
        } else {
            None
        };
        let index = index.as_ref().map(<[u8; _]>::as_slice);
        let mut bytes = Vec::with_capacity(payload.len() / 2 + 64);
        self.compressor
            .frame(BlobKind::Data, index, payload, &mut bytes)?;
        entry.frame_len = bytes.len() as u32;
        entry.header_len = frame_header_len(&bytes);
        self.frames.push(EncodedFrame { bytes, entry });
        Ok(())
    }

    /// The frames made since the last call, in order. A block that is begun stays so.
    pub fn take_frames(&mut self) -> Vec<EncodedFrame> {
        std::mem::take(&mut self.frames)
    }

    /// Ends the block and returns all frames.
    pub fn finish(&mut self) -> Result<Vec<EncodedFrame>, FormatError> {
        self.end_block()?;
        Ok(self.take_frames())
    }
}

/// Length of the prefix and BlobHeader of a frame of our own making.
fn frame_header_len(frame: &[u8]) -> u32 {
    let prefix = frame.first_chunk::<4>().copied().unwrap_or_default();
    4 + u32::from_be_bytes(prefix)
}
