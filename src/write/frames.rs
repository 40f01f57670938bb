//! Objects in, compressed frames out: what a worker does with content that must be written anew.

use crate::error::Result;
use crate::osm::ObjectKind;
use crate::pbf::{
    BlobEntry, BlobKind, BlockBuilder, Compression, Compressor, FormatError, Object, RawObject,
    Scale, SourceStrings, encode_blob_index, scan_payload,
};

/// A compressed frame and what is in it.
#[derive(Debug)]
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
    payload: Vec<u8>,
    blob_index: bool,
    frames: Vec<EncodedFrame>,
}

impl FrameEncoder {
    /// An encoder; `blob_index` puts an index into every BlobHeader.
    pub fn new(compression: Compression, blob_index: bool) -> Self {
        Self {
            builder: BlockBuilder::default(),
            compressor: Compressor::new(compression),
            payload: Vec::new(),
            blob_index,
            frames: Vec::new(),
        }
    }

    /// Leaves the coordinates of ways out of all blocks from here on.
    pub fn drop_locations(&mut self) {
        self.builder.drop_locations();
    }

    /// Adds an object.
    pub fn add(&mut self, object: &Object<'_>) -> Result<(), FormatError> {
        self.make_room(object.kind(), &Scale::default())?;
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
        self.make_room(object.key.0, &scale)?;
        object.add_to(&mut self.builder, strings)
    }

    fn make_room(&mut self, kind: ObjectKind, scale: &Scale) -> Result<(), FormatError> {
        if self.builder.wants_flush(kind) || !self.builder.accepts_scale(scale) {
            self.end_block()?;
        }
        if self.builder.is_empty() {
            self.builder.set_scale(scale);
        }
        Ok(())
    }

    /// Ends the block, if one is begun.
    pub fn end_block(&mut self) -> Result<(), FormatError> {
        if self.builder.is_empty() {
            return Ok(());
        }
        let mut payload = std::mem::take(&mut self.payload);
        payload.clear();
        self.builder.finish(&mut payload);
        let added = self.add_payload(&payload);
        self.payload = payload;
        added
    }

    /// Adds a block that was encoded elsewhere.
    pub fn add_payload(&mut self, payload: &[u8]) -> Result<(), FormatError> {
        let mut entry = BlobEntry::default();
        scan_payload(payload, &mut entry)?;
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
