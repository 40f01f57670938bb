//! zlib data that stores its payload uncompressed. Its size, and the offsets in it, depend on the length of the payload
//! only.

/// The maximum number of bytes in a stored block of deflate.
const BLOCK_LEN: usize = 65_535;
/// The size in bytes of the checksum at the end of zlib data.
pub(crate) const CHECKSUM_LEN: usize = 4;
/// The size in bytes of the header of a stored block: a byte with its kind, its length, and the complement of the
/// length.
const STORED_HEADER_LEN: usize = 5;

/// Returns zlib data (RFC 1950) that stores `payload` uncompressed. The last `last_len` bytes of the payload, at most
/// 65,535, are in one stored block. So these bytes are contiguous, and directly before the checksum.
pub(crate) fn zlib_stored(payload: &[u8], last_len: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(zlib_stored_len(payload.len()) + 5);
    out.extend_from_slice(&[0x78, 0x01]);
    let (body, last) = payload.split_at(payload.len().saturating_sub(last_len));
    // A stream has at least one block.
    let empty = payload.is_empty().then_some(payload);
    let mut blocks = body
        .chunks(BLOCK_LEN)
        .chain(last.chunks(BLOCK_LEN))
        .chain(empty)
        .peekable();
    while let Some(block) = blocks.next() {
        let len = block.len() as u16;
        out.push(u8::from(blocks.peek().is_none()));
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&(!len).to_le_bytes());
        out.extend_from_slice(block);
    }
    out.extend_from_slice(&libdeflater::adler32(payload).to_be_bytes());
    out
}

/// Returns the size in bytes of the output of [`zlib_stored`] for `payload_len` bytes and a `last_len` of 0.
pub(crate) fn zlib_stored_len(payload_len: usize) -> usize {
    2 + payload_len.div_ceil(BLOCK_LEN).max(1) * 5 + payload_len + CHECKSUM_LEN
}

/// Returns the content of zlib data that consists of stored blocks alone, without comparing its checksum. Returns `None`
/// for other data.
pub(crate) fn stored_content(zlib: &[u8]) -> Option<Vec<u8>> {
    let mut rest = zlib.get(2..zlib.len().checked_sub(CHECKSUM_LEN)?)?;
    let mut content = Vec::with_capacity(rest.len());
    loop {
        let ([kind, len @ ..], behind) = rest.split_first_chunk::<STORED_HEADER_LEN>()?;
        let [len, complement] = [[len[0], len[1]], [len[2], len[3]]].map(u16::from_le_bytes);
        if *kind > 1 || len != !complement {
            return None;
        }
        let (block, behind) = behind.split_at_checked(usize::from(len))?;
        content.extend_from_slice(block);
        rest = behind;
        if *kind == 1 {
            return rest.is_empty().then_some(content);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_inflates_and_ends_with_its_last_bytes() {
        for len in [0, 1, 100, 65_535, 65_536, 200_000] {
            let payload: Vec<u8> = (0..len).map(|at| (at * 31 / 7) as u8).collect();
            for last_len in [0, 1, 60].map(|last_len: usize| last_len.min(len)) {
                let zlib = zlib_stored(&payload, last_len);
                let mut out = vec![0; len];
                let found = libdeflater::Decompressor::new().zlib_decompress(&zlib, &mut out);
                assert_eq!((found.unwrap(), &out), (len, &payload));
                assert_eq!(stored_content(&zlib).as_ref(), Some(&payload));
                assert_eq!(stored_content(&zlib[..zlib.len() - 1]), None);
                let last = &zlib[..zlib.len() - CHECKSUM_LEN];
                assert!(last.ends_with(&payload[len - last_len..]));
                if last_len == 0 {
                    assert_eq!(zlib.len(), zlib_stored_len(len));
                }
            }
        }
    }
}
