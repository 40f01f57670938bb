//! Encodes objects as compressed frames, for content that cannot be copied.

use super::blob::{Blob, BlobHeader, BlobKind, Encoding, encode_frame};
use super::codec::{Compression, Compressor, Decompressor};
use crate::deflate::padding::padding;
use crate::error::{FormatError, FormatResult, Result};
use crate::pbf::block::object::Object;
use crate::pbf::block::outline::BlockUnits;
use crate::pbf::block::parsed::Block;
use crate::pbf::block::raw_element::RawElement;
use crate::pbf::encode::builder::BlockBuilder;
use crate::pbf::encode::intern::SourceStrings;
use crate::pbf::segments::Segmented;
use crate::pbf::table::blob_index::encode_blob_index;
use crate::pbf::table::entry::{BlobEntry, BlobFlags};
use crate::pbf::table::scan::scan_payload;
use std::ops::Range;
use twox_hash::XxHash3_64;

/// The length in bytes of the header of zlib data without a dictionary.
const ZLIB_HEADER_LEN: usize = 2;

/// A compressed frame and its entry for the table of contents.
#[derive(Debug, Clone)]
pub struct EncodedFrame {
    /// The whole frame.
    pub bytes: Vec<u8>,
    /// The entry of the frame, without offset and `number`, which are not known yet.
    pub entry: BlobEntry,
}

impl EncodedFrame {
    /// Returns a frame with the same payload that is longer by exactly `by` bytes. Returns `None` if this frame does
    /// not have zlib data, or if no padding has the right length.
    pub(crate) fn with_padding(&self, by: usize) -> Option<Self> {
        /// The maximum number of bytes by which padding can lengthen the varints that encode lengths in a frame.
        const MAX_GROWTH: usize = 4;
        let (header, body) = BlobHeader::read(&self.bytes).ok()?;
        let blob = Blob::parse(body).ok()?;
        let (zlib_header, stream) = blob.data.split_at_checked(ZLIB_HEADER_LEN)?;
        if blob.encoding != Encoding::Zlib {
            return None;
        }
        (0..=MAX_GROWTH).find_map(|growth| {
            let padding = padding(by.checked_sub(growth)?)?;
            let data = [zlib_header, &padding, stream].concat();
            let blob = Blob {
                data: &data,
                ..blob
            };
            let mut bytes = Vec::with_capacity(self.bytes.len() + by);
            encode_frame(&mut bytes, BlobKind::Data, header.indexdata, &blob).ok()?;
            if bytes.len() != self.bytes.len() + by {
                return None;
            }
            let entry = BlobEntry {
                frame_len: bytes.len() as u32,
                header_len: frame_header_len(&bytes),
                ..self.entry
            };
            Some(Self { bytes, entry })
        })
    }

    /// Returns the uncompressed payload of the frame.
    pub(crate) fn payload<'a>(
        &'a self,
        decompressor: &'a mut Decompressor,
    ) -> FormatResult<&'a [u8]> {
        let body = &self.bytes[self.entry.header_len as usize..];
        decompressor.payload(&Blob::parse(body)?)
    }
}

/// Encodes objects as frames. A new block begins when the kind or the units change, or when a block is full. Each
/// worker has its own encoder.
#[derive(Debug)]
pub struct FrameEncoder {
    builder: BlockBuilder,
    compressor: Compressor,
    blob_index: bool,
    frames: Vec<EncodedFrame>,
}

impl FrameEncoder {
    /// Creates an encoder without objects. With `blob_index`, every blob that can have a per-blob index gets one in its
    /// BlobHeader.
    pub fn new(compression: Compression, blob_index: bool) -> Self {
        Self {
            builder: BlockBuilder::default(),
            compressor: Compressor::new(compression),
            blob_index,
            frames: Vec::new(),
        }
    }

    /// Omits the coordinates of all ways that are added from now on.
    pub fn drop_locations(&mut self) {
        self.builder.drop_locations();
    }

    /// Writes each node that is added from now on as a message of its own, instead of in DenseNodes.
    pub(crate) fn write_plain_nodes(&mut self) {
        self.builder.write_plain_nodes();
    }

    /// Sets the maximum number of objects per block; 0 for [`TARGET_ELEMENTS`](crate::pbf::TARGET_ELEMENTS).
    pub(crate) fn set_max_objects(&mut self, most: usize) {
        self.builder.set_max_objects(most);
    }

    /// Adds an object.
    pub fn add(&mut self, object: &Object<'_>) -> Result<(), FormatError> {
        self.builder.add(object)?;
        self.compress()
    }

    /// Adds an object from a block with the given units and strings.
    pub(crate) fn add_raw(
        &mut self,
        object: &RawElement<'_>,
        units: &BlockUnits,
        strings: &mut SourceStrings<'_>,
    ) -> FormatResult<()> {
        self.builder.add_raw(object, units, strings)?;
        self.compress()
    }

    /// Adds the objects at the indices `range` of the block in `payload`.
    pub(crate) fn add_objects(&mut self, payload: &[u8], range: Range<usize>) -> FormatResult<()> {
        let block = Block::parse(payload)?;
        let mut strings = SourceStrings::new(&block.strings);
        let mut objects = block.cursor();
        let mut index = 0;
        while index < range.end
            && let Some(object) = objects.next()?
        {
            if index >= range.start {
                self.add_raw(object, &block.units, &mut strings)?;
            }
            index += 1;
        }
        Ok(())
    }

    /// Ends the current block if it has objects.
    pub fn end_block(&mut self) -> Result<(), FormatError> {
        self.builder.end_block();
        self.compress()
    }

    /// Compresses the ended blocks to frames.
    fn compress(&mut self) -> FormatResult<()> {
        if !self.builder.has_blocks() {
            return Ok(());
        }
        for part in self.builder.take_blocks() {
            self.add_payload(&part.payload)?;
            self.builder.recycle_payload(part.payload);
        }
        Ok(())
    }

    /// Adds the payload of a whole block as a frame. Fails if the payload is damaged.
    pub fn add_payload(&mut self, payload: &[u8]) -> Result<(), FormatError> {
        self.add_edited_payload(payload, None)
    }

    /// Does the same as [`add_payload`](Self::add_payload), for the payload of a block that was edited. `old` is the
    /// blob before the edit. Copies the segments of `old` whose content occurs in the payload.
    pub(crate) fn add_edited_payload(
        &mut self,
        payload: &[u8],
        old: Option<Segmented<'_>>,
    ) -> FormatResult<()> {
        let mut entry = BlobEntry::default();
        scan_payload(payload, &mut entry)?;
        self.add_frame(payload, old, entry)
    }

    /// Adds the payload of a whole block as a frame. Copies the facts about the objects from `entry` without checking
    /// them (kinds, count, ids, order, bounding box, flags and statistics), and computes the length and the hash. If
    /// `entry` has no hash, it may lack other facts, too, so this method scans the payload instead.
    pub(crate) fn add_payload_with_entry(
        &mut self,
        payload: &[u8],
        entry: &BlobEntry,
    ) -> FormatResult<()> {
        self.add_edited_payload_with_entry(payload, None, entry)
    }

    /// Does the same as [`add_payload_with_entry`](Self::add_payload_with_entry), for the payload of a block that was
    /// edited. `old` is the blob before the edit. Copies the segments of `old` whose content occurs in the payload.
    pub(crate) fn add_edited_payload_with_entry(
        &mut self,
        payload: &[u8],
        old: Option<Segmented<'_>>,
        entry: &BlobEntry,
    ) -> FormatResult<()> {
        if !entry.flags.has(BlobFlags::HASHED) {
            return self.add_edited_payload(payload, old);
        }
        let entry = BlobEntry {
            payload_len: payload.len() as u32,
            hash: XxHash3_64::oneshot(payload),
            ..*entry
        };
        self.add_frame(payload, old, entry)
    }

    /// Compresses the payload of a block to a frame. `entry` has the facts about the block, but not the lengths of the
    /// frame.
    fn add_frame(
        &mut self,
        payload: &[u8],
        old: Option<Segmented<'_>>,
        mut entry: BlobEntry,
    ) -> FormatResult<()> {
        entry.flags.set(BlobFlags::HAS_TABLE, false);
        let index = if self.blob_index {
            encode_blob_index(&entry)
        } else {
            None
        };
        let index = index.as_ref().map(<[u8; _]>::as_slice);
        let mut bytes = Vec::with_capacity(payload.len() / 2 + 64);
        self.compressor
            .frame_in_segments(index, payload, old, &mut bytes)?;
        entry.frame_len = bytes.len() as u32;
        entry.header_len = frame_header_len(&bytes);
        self.frames.push(EncodedFrame { bytes, entry });
        Ok(())
    }

    /// Returns the frames that were made since the last call, in order. The current block is not ended.
    pub fn take_frames(&mut self) -> Vec<EncodedFrame> {
        std::mem::take(&mut self.frames)
    }

    /// Ends the current block and returns the frames that were made since the last call.
    pub fn finish(&mut self) -> Result<Vec<EncodedFrame>, FormatError> {
        self.end_block()?;
        Ok(self.take_frames())
    }
}

/// Returns the total size in bytes of the prefix and the BlobHeader of a frame.
fn frame_header_len(frame: &[u8]) -> u32 {
    4 + u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]])
}
