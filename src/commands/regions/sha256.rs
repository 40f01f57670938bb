//! SHA-256 (FIPS 180-4), with which clients check what they have fetched.

use crate::error::{Error, Result};
use crate::runtime::Context;
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The fractional parts of the cube roots of the first 64 primes.
const ROUNDS: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];

/// The length of a block in bytes.
const BLOCK: usize = 64;

struct Sha256 {
    state: [u32; 8],
    len: u64,
    /// The bytes after the last whole block.
    rest: Vec<u8>,
}

impl Sha256 {
    const fn new() -> Self {
        Self {
            // The fractional parts of the square roots of the first 8 primes.
            state: [
                0x6a09_e667,
                0xbb67_ae85,
                0x3c6e_f372,
                0xa54f_f53a,
                0x510e_527f,
                0x9b05_688c,
                0x1f83_d9ab,
                0x5be0_cd19,
            ],
            len: 0,
            rest: Vec::new(),
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        let mut bytes = bytes;
        if !self.rest.is_empty() {
            let (head, more) = bytes.split_at(bytes.len().min(BLOCK - self.rest.len()));
            self.rest.extend_from_slice(head);
            bytes = more;
            if self.rest.len() < BLOCK {
                return;
            }
            let block = std::mem::take(&mut self.rest);
            self.add_blocks(&block);
        }
        let whole = bytes.len() / BLOCK * BLOCK;
        let (blocks, rest) = bytes.split_at(whole);
        self.add_blocks(blocks);
        self.rest.extend_from_slice(rest);
    }

    fn add_blocks(&mut self, blocks: &[u8]) {
        for block in blocks.chunks_exact(BLOCK) {
            let mut words = [0u32; 64];
            for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
                *word = bytes
                    .iter()
                    .fold(0, |word, byte| word << 8 | u32::from(*byte));
            }
            for at in 16..64 {
                let (early, late) = (words[at - 15], words[at - 2]);
                let early = early.rotate_right(7) ^ early.rotate_right(18) ^ early >> 3;
                let late = late.rotate_right(17) ^ late.rotate_right(19) ^ late >> 10;
                let sum = words[at - 16].wrapping_add(words[at - 7]);
                words[at] = sum.wrapping_add(early).wrapping_add(late);
            }
            self.mix(&words);
        }
    }

    fn mix(&mut self, words: &[u32; 64]) {
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = self.state;
        for (word, round) in words.iter().zip(ROUNDS) {
            let high = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let chosen = (e & f) ^ (!e & g);
            let one = h.wrapping_add(high).wrapping_add(chosen);
            let one = one.wrapping_add(round).wrapping_add(*word);
            let low = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let two = low.wrapping_add((a & b) ^ (a & c) ^ (b & c));
            (h, g, f, e, d, c, b, a) =
                (g, f, e, d.wrapping_add(one), c, b, a, one.wrapping_add(two));
        }
        for (state, word) in self.state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *state = state.wrapping_add(word);
        }
    }

    fn finish(mut self) -> String {
        let bits = self.len * 8;
        let mut end = vec![0x80];
        end.resize(1 + (BLOCK * 2 - 9 - self.rest.len()) % BLOCK, 0);
        end.extend(bits.to_be_bytes());
        self.add(&end);
        let mut text = String::new();
        for word in self.state {
            let _ = write!(text, "{word:08x}");
        }
        text
    }
}

/// Returns the SHA-256 of a file in hexadecimal digits.
pub(super) fn of_file(path: &Path, ctx: &Context) -> Result<String> {
    let failed = |error| Error::io(path, "cannot read", error);
    let mut file = File::open(path).map_err(failed)?;
    let (mut sum, mut buffer) = (Sha256::new(), vec![0; 1 << 18]);
    loop {
        ctx.cancellation.check()?;
        match file.read(&mut buffer).map_err(failed)? {
            0 => return Ok(sum.finish()),
            len => sum.add(&buffer[..len]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_standard() {
        let sum = |parts: &[&[u8]]| {
            let mut sum = Sha256::new();
            parts.iter().for_each(|part| sum.add(part));
            sum.finish()
        };
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sum(&[]), empty);
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sum(&[b"a", b"bc"]), abc);
        let million = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
        let part = [b'a'; 1000];
        assert_eq!(sum(&[part.as_slice(); 1000]), million);
    }
}
