//! The parts of a frame around its compressed data, recognised even if some of their bytes are damaged.

use crate::pbf::wire::{put_bytes_head, put_varint_field, schema};
use crate::pbf::{BlobHeader, BlobKind, FRAME_PREFIX_LEN, encode_blob_header};

/// The parts of a frame around zlib data.
pub(super) struct FrameParts {
    kind: BlobKind,
    blob_len: u32,
    /// The encoded field `raw_size` of the Blob. This field is before or after the data.
    raw_size: Vec<u8>,
    /// The encoded key and length of the field that holds the data.
    data_head: Vec<u8>,
}

impl FrameParts {
    /// Creates the parts around data of `data_len` bytes that becomes a payload of `payload_len` bytes.
    pub(super) fn around(kind: BlobKind, data_len: u32, payload_len: u32) -> Self {
        let (mut raw_size, mut data_head) = (Vec::new(), Vec::new());
        put_varint_field(&mut raw_size, schema::blob::RAW_SIZE, payload_len.into());
        put_bytes_head(&mut data_head, schema::blob::ZLIB_DATA, data_len as usize);
        Self {
            kind,
            blob_len: raw_size.len() as u32 + data_head.len() as u32 + data_len,
            raw_size,
            data_head,
        }
    }

    /// Whether `bytes` are the part of a frame before its data. They may be damaged either in the prefix and the
    /// BlobHeader, or in the fields of the Blob, but not in both.
    pub(super) fn is_head(&self, bytes: &[u8]) -> bool {
        let fields = [&self.raw_size[..], &self.data_head].concat();
        let has_whole_header = |fields: &[u8]| {
            let header_len = bytes.len().checked_sub(fields.len());
            header_len.is_some_and(|len| self.header_with_index_of(&bytes[..len]) == bytes[..len])
        };
        if has_whole_header(&fields) || has_whole_header(&self.data_head) {
            return true;
        }
        if let Some(header) = bytes.strip_suffix(&fields[..]) {
            return header.len() == self.header(None).len()
                || self.has_right_prefix_or_message(header);
        }
        let header = bytes.strip_suffix(&self.data_head[..]);
        header.is_some_and(|header| self.has_right_prefix_or_message(header))
    }

    /// Whether either the prefix or the BlobHeader in `bytes` is right.
    fn has_right_prefix_or_message(&self, bytes: &[u8]) -> bool {
        let parts = bytes.split_first_chunk::<FRAME_PREFIX_LEN>();
        parts.is_some_and(|(prefix, message)| {
            let has_right_len = u32::from_be_bytes(*prefix) as usize == message.len()
                && bytes.len() >= self.header(None).len();
            has_right_len || self.header_with_index_of(bytes)[FRAME_PREFIX_LEN..] == *message
        })
    }

    /// Returns the prefix and the BlobHeader of the frame. If the BlobHeader in `bytes` has an index, the result has
    /// the same index.
    fn header_with_index_of(&self, bytes: &[u8]) -> Vec<u8> {
        let message = bytes.get(FRAME_PREFIX_LEN..);
        self.header(message.and_then(|message| BlobHeader::parse(message).ok()?.indexdata))
    }

    /// Returns the prefix and the BlobHeader of the frame, with the given index.
    fn header(&self, index: Option<&[u8]>) -> Vec<u8> {
        let mut header = Vec::new();
        encode_blob_header(&mut header, self.kind, index, self.blob_len);
        header
    }

    /// Whether `bytes` are exactly the part of a frame after its data.
    pub(super) fn is_tail(&self, bytes: &[u8]) -> bool {
        bytes.is_empty() || bytes == self.raw_size
    }

    /// Removes the fields that follow the data of the frame from the start of `bytes`. Returns all of `bytes` if it
    /// does not begin with these fields.
    pub(super) fn without_tail<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        bytes.strip_prefix(&self.raw_size[..]).unwrap_or(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pbf::{Blob, Encoding, encode_frame};

    /// Returns a frame with `data` and an index of `index_len` bytes. The frame has no index if `index_len` is 0.
    fn frame(data: &[u8], index_len: usize) -> Vec<u8> {
        let (mut frame, index) = (Vec::new(), vec![7; index_len]);
        let blob = Blob {
            encoding: Encoding::Zlib,
            data,
            payload_len: 3 * data.len() as u32,
        };
        let index = (index_len > 0).then_some(&index[..]);
        encode_frame(&mut frame, BlobKind::Data, index, &blob).unwrap();
        frame
    }

    fn parts(data: &[u8]) -> FrameParts {
        FrameParts::around(BlobKind::Data, data.len() as u32, 3 * data.len() as u32)
    }

    #[test]
    fn a_head_is_recognised_in_spite_of_damage_to_one_of_its_bytes() {
        for (data_len, index_len) in [(40, 0), (5000, 0), (60_000, 70)] {
            let data = vec![1; data_len];
            let frame = frame(&data, index_len);
            let head = &frame[..frame.len() - data_len];
            assert!(parts(&data).is_head(head));
            for at in 0..head.len() {
                for bit in 0..8 {
                    let mut damaged = head.to_vec();
                    damaged[at] ^= 1 << bit;
                    assert!(parts(&data).is_head(&damaged), "{at} {bit}");
                }
            }
        }
        let frame = frame(&[1; 500], 0);
        let mut head = frame[..frame.len() - 500].to_vec();
        head[..16].fill(0);
        assert!(parts(&[1; 500]).is_head(&head));
    }

    #[test]
    fn a_tiny_blob_before_a_head_is_not_taken_for_a_head() {
        let data = [1; 500];
        for (tiny_index, index) in [(0, 0), (70, 0), (0, 70), (70, 70)] {
            let frame = frame(&data, index);
            let head = &frame[..frame.len() - data.len()];
            let tiny = self::frame(&[2; 20], tiny_index);
            for from in 0..tiny.len() {
                for bit in 0..8 {
                    let mut bytes = [&tiny, head].concat();
                    bytes[from] ^= 1 << bit;
                    assert!(
                        !parts(&data).is_head(&bytes),
                        "{tiny_index} {index} {from} {bit}"
                    );
                }
            }
        }
    }

    #[test]
    fn parts_of_two_heads_do_not_form_a_head() {
        let (one, two) = (frame(&[2; 20], 0), frame(&[1; 500], 0));
        let head = &two[..two.len() - 500];
        for (from, to) in (0..20).flat_map(|from| (0..head.len()).map(move |to| (from, to))) {
            let bytes = [&one[..from], &head[to..]].concat();
            assert!(
                !parts(&[1; 500]).is_head(&bytes) || from == to,
                "{from} {to}"
            );
        }
    }

    #[test]
    fn the_size_of_the_payload_is_before_the_data_or_behind_it() {
        let (parts, frame) = (parts(&[1; 500]), frame(&[1; 500], 0));
        let (header, fields) = frame[..frame.len() - 500].split_at(16);
        let (raw_size, data_head) = fields.split_at(parts.raw_size.len());
        assert!(parts.is_head(&[header, data_head].concat()));
        assert!(parts.is_tail(raw_size) && parts.is_tail(b"") && !parts.is_tail(b"other"));
        assert_eq!(parts.without_tail(&[raw_size, b"next"].concat()), b"next");
    }
}
