//! Padding at the beginning of deflate data: blocks without content, which every program can read.

/// A stored block without content.
const STORED: [u8; 5] = [0, 0, 0, 0xff, 0xff];
/// A block with fixed codes and a stored block, both without content.
const FIXED_AND_STORED: [u8; 6] = [2, 0, 0, 0, 0xff, 0xff];

/// Returns `len` bytes of blocks without content; `None` if no sequence of such blocks has this length. Every length
/// from 20 on is possible. The blocks end at a byte boundary, and none is marked as the last of its stream.
pub(crate) fn padding(len: usize) -> Option<Vec<u8>> {
    let long = len % STORED.len();
    let short = len.checked_sub(long * FIXED_AND_STORED.len())? / STORED.len();
    Some([FIXED_AND_STORED.repeat(long), STORED.repeat(short)].concat())
}

/// Returns the length in bytes of the padding at the beginning of `data`.
pub(crate) fn padding_len(data: &[u8]) -> usize {
    let mut rest = data;
    while let Some(behind) = rest
        .strip_prefix(&FIXED_AND_STORED)
        .or_else(|| rest.strip_prefix(&STORED))
    {
        rest = behind;
    }
    data.len() - rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_has_the_wanted_length_and_no_content() {
        let content = b"abcabcabcabc";
        let mut zlib = vec![0; 100];
        let mut compressor = libdeflater::Compressor::default();
        let len = compressor.deflate_compress(content, &mut zlib).unwrap();
        for wanted in 0..5000 {
            let Some(mut padded) = padding(wanted) else {
                assert!(wanted < 20, "{wanted}");
                continue;
            };
            assert_eq!(padded.len(), wanted);
            padded.extend_from_slice(&zlib[..len]);
            assert_eq!(padding_len(&padded), wanted);
            let mut out = [0; 20];
            let mut decompressor = libdeflater::Decompressor::new();
            let inflated = decompressor.deflate_decompress(&padded, &mut out).unwrap();
            assert_eq!(&out[..inflated], content);
        }
        assert_eq!(padding_len(&zlib[..len]), 0);
        assert_eq!(padding_len(&[]), 0);
    }
}
