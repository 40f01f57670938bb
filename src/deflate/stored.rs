//! zlib data that stores its payload uncompressed. The size of the data, and each offset in it, can be computed from
//! the length of the payload.

/// The maximum number of bytes in a stored block of deflate.
const BLOCK_LEN: usize = 65_535;
/// The size in bytes of the checksum at the end of zlib data.
pub(crate) const CHECKSUM_LEN: usize = 4;
/// The size in bytes of the header of a stored block: one byte for the kind of the block, two for its length, and two
/// for the complement of the length.
const STORED_HEADER_LEN: usize = 5;

/// Returns zlib data (RFC 1950) that stores `payload` uncompressed. The last `last_len` bytes of the payload, at most
/// 65,535, are in one stored block. So these bytes are contiguous, and directly before the checksum.
pub(crate) fn zlib_stored(payload: &[u8], last_len: usize) -> Vec<u8> {
    let cut = payload.len().saturating_sub(last_len);
    zlib_stored_in_pieces(payload, &[cut]).0
}

/// Returns zlib data that stores `payload` uncompressed. A stored block begins at each offset in `cuts`, which are
/// ascending offsets in the payload. Also returns, for each cut, the offset of its block in the zlib data.
pub(crate) fn zlib_stored_in_pieces(payload: &[u8], cuts: &[usize]) -> (Vec<u8>, Vec<usize>) {
    let (mut blocks, mut firsts, mut start) = (Vec::new(), Vec::with_capacity(cuts.len()), 0);
    for cut in cuts {
        blocks.extend(payload[start..*cut].chunks(BLOCK_LEN));
        firsts.push(blocks.len());
        start = *cut;
    }
    blocks.extend(payload[start..].chunks(BLOCK_LEN));
    if blocks.is_empty() {
        // A zlib stream has at least one block, so an empty payload becomes an empty block.
        blocks.push(payload);
    }
    let mut out = Vec::with_capacity(zlib_stored_len(payload.len()) + cuts.len() * 5);
    out.extend_from_slice(&[0x78, 0x01]);
    let mut offsets = Vec::with_capacity(blocks.len() + 1);
    for (index, block) in blocks.iter().enumerate() {
        offsets.push(out.len());
        let len = block.len() as u16;
        out.push(u8::from(index + 1 == blocks.len()));
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&(!len).to_le_bytes());
        out.extend_from_slice(block);
    }
    offsets.push(out.len());
    out.extend_from_slice(&libdeflater::adler32(payload).to_be_bytes());
    let begins = firsts.iter().map(|first| offsets[*first]);
    (out, begins.collect())
}

/// Returns the size in bytes of the output of [`zlib_stored`] for `payload_len` bytes and a `last_len` of 0.
pub(crate) fn zlib_stored_len(payload_len: usize) -> usize {
    2 + payload_len.div_ceil(BLOCK_LEN).max(1) * 5 + payload_len + CHECKSUM_LEN
}

/// Returns the content of zlib data that consists of stored blocks alone, without verifying its checksum. Returns
/// `None` for other data.
pub(crate) fn stored_content(zlib: &[u8]) -> Option<Vec<u8>> {
    let blocks = zlib.get(2..zlib.len().checked_sub(CHECKSUM_LEN)?)?;
    let (content, is_end) = content_of_stored_blocks(blocks)?;
    is_end.then_some(content)
}

/// Returns the content of consecutive stored blocks, and whether the last one ends its stream. Returns `None` for other
/// data.
pub(crate) fn content_of_stored_blocks(blocks: &[u8]) -> Option<(Vec<u8>, bool)> {
    let (mut rest, mut content) = (blocks, Vec::with_capacity(blocks.len()));
    while !rest.is_empty() {
        let ([kind, len @ ..], behind) = rest.split_first_chunk::<STORED_HEADER_LEN>()?;
        let [len, complement] = [[len[0], len[1]], [len[2], len[3]]].map(u16::from_le_bytes);
        if *kind > 1 || len != !complement {
            return None;
        }
        let (block, behind) = behind.split_at_checked(usize::from(len))?;
        content.extend_from_slice(block);
        rest = behind;
        if *kind == 1 {
            return rest.is_empty().then_some((content, true));
        }
    }
    Some((content, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_data_inflates_and_ends_with_the_last_payload_bytes() {
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

    #[test]
    fn each_piece_can_be_read_alone() {
        let payload: Vec<u8> = (0..200_000).map(|at| (at * 31 / 7) as u8).collect();
        let cuts = [0, 1, 500, 500, 140_000, 200_000];
        let (zlib, begins) = zlib_stored_in_pieces(&payload, &cuts);
        assert_eq!(stored_content(&zlib).as_ref(), Some(&payload));
        for (cut, begin) in cuts.windows(2).zip(begins.windows(2)) {
            let (piece, is_end) = content_of_stored_blocks(&zlib[begin[0]..begin[1]]).unwrap();
            assert_eq!(piece, payload[cut[0]..cut[1]]);
            assert_eq!(is_end, cut[1] == payload.len());
        }
    }
}
